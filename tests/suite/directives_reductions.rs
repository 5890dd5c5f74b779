//! Elements that iterations combine with values, beside the functions as they are written: blocks with elements of their own,
//! and slices that have too many of them.

use kiln::prelude::*;

use super::{Outcome, chapter};

chapter![
    histograms,
    sums_of_rows,
    operations_of_all_integers,
    sums_of_floats,
    elements_that_do_not_fit,
    parts_that_not_all_come_to,
    slices_staged_whole,
    read_behind_a_merge,
    lanes_that_combine,
    threads_that_combine,
    loops_within_loops,
    elements_of_inner_loops,
    conditions_and_ends_within,
    elements_that_nothing_changes,
];

/// How many of `x` are in each bin, and the sum of their weights.
#[kiln::offload]
fn histogram(x: &[u32], weights: &[i64], counts: &mut [u32], sums: &mut [i64], blocks: u32) {
    #[kernel(tblock(blocks), thread(32))]
    {
        #[loop_partition(over_tblock, over_thread, coarsen(2), reduction(counts, sums))]
        for i in 0..x.len() {
            let bin = (x[i] as usize) % counts.len();
            counts[bin] += 1;
            sums[bin] += weights[i];
        }
    }
}

fn histograms(jit: &Jit) -> Outcome {
    for (n, bins, blocks) in [(0, 3, 2), (1, 1, 1), (137, 7, 3), (500, 40, 2)] {
        let x: Vec<u32> = (0..n).map(|i| i * i * 7 % 1013).collect();
        let weights: Vec<i64> = (0..i64::from(n)).map(|i| i - 30).collect();
        let (mut counts, mut sums) = (vec![5; bins], vec![-1; bins]);
        let (mut wanted, mut wanted_sums) = (counts.clone(), sums.clone());
        histogram.launch(jit, &x, &weights, &mut counts, &mut sums, blocks)?;
        histogram.sequential(&x, &weights, &mut wanted, &mut wanted_sums, blocks);
        assert_eq!((counts, sums), (wanted, wanted_sums), "{n} {bins} {blocks}");
    }
    Ok(())
}

/// The sums of rows by the threads of a block, which are used behind a barrier.
#[kiln::offload]
fn rows(x: &[u32], sums: &mut [u32], halves: &mut [u32], n: usize, m: usize) {
    #[kernel(tblock(2), thread(16))]
    {
        #[loop_partition(over_tblock)]
        for i in 0..n {
            #[singular]
            {
                sums[i] = 3;
            }
            barrier!();
            #[loop_partition(over_thread, reduction(sums))]
            for j in (0..m).rev() {
                sums[i] += x[i * m + j];
            }
            barrier!();
            #[singular]
            {
                halves[i] = sums[i] / 2;
            }
        }
    }
}

fn sums_of_rows(jit: &Jit) -> Outcome {
    for (n, m) in [(1, 0), (5, 40), (3, 7)] {
        let x: Vec<u32> = (0..(n * m) as u32).collect();
        let (mut sums, mut halves) = (vec![0; n], vec![0; n]);
        let (mut wanted, mut wanted_halves) = (vec![0; n], vec![0; n]);
        rows.launch(jit, &x, &mut sums, &mut halves, n, m)?;
        rows.sequential(&x, &mut wanted, &mut wanted_halves, n, m);
        assert_eq!((sums, halves), (wanted, wanted_halves), "{n} {m}");
    }
    Ok(())
}

/// The operations besides addition.
#[kiln::offload]
fn extremes(x: &[i32], low: &mut [i32], high: &mut [i32], bits: &mut [u64], n: usize) {
    #[kernel(tblock(3), thread(8))]
    {
        #[loop_partition(over_tblock(CYCLIC), over_thread, reduction(low, high))]
        for i in 0..n {
            let at = i % 5;
            low[at] = low[at].min(x[i]);
            high[at] = x[i].max(high[at]);
        }
        #[loop_partition(over_tblock, over_thread, reduction(bits))]
        for i in 0..n {
            bits[2] ^= x[i] as u64;
            bits[i % 2] ^= 3 + i as u64;
        }
    }
}

fn operations_of_all_integers(jit: &Jit) -> Outcome {
    let x: Vec<i32> = (0..101).map(|i| (i * 37 % 89) - 40).collect();
    let made = || (vec![i32::MAX; 5], vec![-3; 5], vec![9, 1 << 40, 7]);
    let ((mut low, mut high, mut bits), mut wanted) = (made(), made());
    extremes.launch(jit, &x, &mut low, &mut high, &mut bits, 101)?;
    extremes.sequential(&x, &mut wanted.0, &mut wanted.1, &mut wanted.2, 101);
    assert_eq!((low, high, bits), wanted);
    Ok(())
}

/// Sums of floats, of numbers whose sums are exact.
#[kiln::offload]
fn moments(x: &[f32], sums: &mut [f32], squares: &mut [f64]) {
    #[kernel(tblock(2), thread(32))]
    {
        #[loop_partition(over_tblock, over_thread, reduction(sums, squares))]
        for i in 0..x.len() {
            sums[0] += x[i];
            squares[i % 3] += (x[i] * x[i]) as f64;
        }
    }
}

fn sums_of_floats(jit: &Jit) -> Outcome {
    let x: Vec<f32> = (0..99).map(|i| (i % 13) as f32 - 5.0).collect();
    let (mut sums, mut squares) = (vec![0.5], vec![0.0; 3]);
    let (mut wanted, mut wanted_squares) = (sums.clone(), squares.clone());
    moments.launch(jit, &x, &mut sums, &mut squares)?;
    moments.sequential(&x, &mut wanted, &mut wanted_squares);
    assert_eq!((sums, squares), (wanted, wanted_squares));
    Ok(())
}

/// More bins than shared memory has room for.
fn elements_that_do_not_fit(jit: &Jit) -> Outcome {
    let bins = 20_000;
    let x: Vec<u32> = (0..300).map(|i| i * i * 71).collect();
    let weights = vec![2; 300];
    let (mut counts, mut sums) = (vec![0; bins], vec![1; bins]);
    let (mut wanted, mut wanted_sums) = (counts.clone(), sums.clone());
    histogram.launch(jit, &x, &weights, &mut counts, &mut sums, 2)?;
    histogram.sequential(&x, &weights, &mut wanted, &mut wanted_sums, 2);
    assert_eq!((counts, sums), (wanted, wanted_sums));
    Ok(())
}

/// A loop that some threads come to, and only in some iterations.
#[kiln::offload]
fn triangle(x: &[u32], counts: &mut [u32], n: usize) {
    #[kernel(tblock(2), thread(4, 2))]
    {
        #[loop_partition(over_tblock, over_thread)]
        for i in 0..n {
            if x[i] % 3 > 0 {
                #[loop_partition(over_thread, reduction(counts))]
                for j in 0..i {
                    counts[(x[j] as usize) % 4] += x[i];
                }
            }
        }
    }
}

fn parts_that_not_all_come_to(jit: &Jit) -> Outcome {
    let x: Vec<u32> = (0..23).map(|i| i * 5 % 7).collect();
    let (mut counts, mut wanted) = (vec![0; 4], vec![0; 4]);
    triangle.launch(jit, &x, &mut counts, 23)?;
    triangle.sequential(&x, &mut wanted, 23);
    assert_eq!(counts, wanted);
    Ok(())
}

/// Elements of a table, of which an iteration needs those that others say.
#[kiln::offload]
fn lookups(at: &[u32], table: &[f32], y: &mut [f32]) {
    #[kernel(tblock(2), thread(16))]
    {
        #[loop_partition(over_tblock, over_thread)]
        #[shared(copyin(table[..]))]
        for i in 0..at.len() {
            let first = at[i] as usize;
            y[i] = table[first] + table[table.len() - 1 - first];
        }
    }
}

fn slices_staged_whole(jit: &Jit) -> Outcome {
    for (n, len) in [(0, 5), (45, 1), (70, 100)] {
        let table: Vec<f32> = (0..len).map(|i| (i * i) as f32).collect();
        let at: Vec<u32> = (0..n).map(|i| i * 31 % len).collect();
        let (mut y, mut wanted) = (vec![0.0; n as usize], vec![0.0; n as usize]);
        let ((), report) = lookups.launch_reported(jit, &at, &table, &mut y)?;
        lookups.sequential(&at, &table, &mut wanted);
        assert_eq!(y, wanted, "{n} {len}");
        let schedule = report.launches[0].to_string();
        assert!(
            schedule.ends_with("over_thread shared(1) whole(1)"),
            "{schedule}"
        );
    }
    Ok(())
}

/// Counts, and what is counted in the bins before each, which another thread has merged.
#[kiln::offload]
fn before_each(x: &[u32], counts: &mut [u32], before: &mut [u32]) {
    #[kernel(tblock(1), thread(64))]
    {
        #[loop_partition(over_thread, reduction(counts))]
        for i in 0..x.len() {
            counts[x[i] as usize] += 1;
        }
        #[loop_partition(over_thread)]
        for bin in 2..before.len() {
            before[bin] = counts[bin - 1];
        }
    }
}

/// A block's elements of its own are merged before anybody reads them: the loop ends with a barrier.
fn read_behind_a_merge(jit: &Jit) -> Outcome {
    let x: Vec<u32> = (0..500).map(|i| i * i * 7 % 150).collect();
    let (mut counts, mut before) = (vec![1; 150], vec![0; 150]);
    let (mut wanted, mut wanted_before) = (counts.clone(), before.clone());
    before_each.launch(jit, &x, &mut counts, &mut before)?;
    before_each.sequential(&x, &mut wanted, &mut wanted_before);
    assert_eq!((counts, before), (wanted, wanted_before));
    Ok(())
}

/// Rows whose elements the lanes of a warp combine, by each operation, of integers of both sizes and of floats.
#[kiln::offload]
fn of_lanes(
    x: &[i32],
    words: &mut [i32],
    longs: &mut [u64],
    bits: &mut [u32],
    floats: &mut [f32],
    doubles: &mut [f64],
    n: usize,
    m: usize,
) {
    #[kernel(tblock(2), thread(2, 64))]
    {
        #[loop_partition(over_tblock, over_thread)]
        for i in 0..n {
            let at = 2 * i;
            #[loop_partition(over_warp)]
            for half in 0..2usize {
                let (first, place) = (half * (m / 2), at + half);
                #[loop_partition(over_lane, reduction(words, longs, bits, floats, doubles))]
                for j in first..first + m / 2 {
                    let value = x[i * m + j];
                    words[place] = words[place].max(value);
                    longs[at] += (value + 50) as u64;
                    bits[place] ^= value as u32;
                    floats[i] += value as f32;
                    doubles[at + 1] += value as f64;
                }
            }
        }
    }
}

fn lanes_that_combine(jit: &Jit) -> Outcome {
    for (n, m) in [(0, 4), (1, 2), (3, 0), (5, 130), (4, 64)] {
        let x: Vec<i32> = (0..(n * m) as i32).map(|i| i * 37 % 89 - 40).collect();
        let made = || {
            let all = 2 * n;
            let (words, bits) = (vec![-70; all], vec![9; all]);
            (
                words,
                vec![7u64; all],
                bits,
                vec![0.5f32; n],
                vec![1.0; all],
            )
        };
        let (mut got, mut wanted) = (made(), made());
        let (a, b, c, d, e) = (&mut got.0, &mut got.1, &mut got.2, &mut got.3, &mut got.4);
        of_lanes.launch(jit, &x, a, b, c, d, e, n, m)?;
        let (a, b, c, d, e) = (
            &mut wanted.0,
            &mut wanted.1,
            &mut wanted.2,
            &mut wanted.3,
            &mut wanted.4,
        );
        of_lanes.sequential(&x, a, b, c, d, e, n, m);
        assert_eq!(got, wanted, "{n} {m}");
    }
    Ok(())
}

/// Sums of rows, more of them than a block has threads, and the sum of all.
#[kiln::offload]
fn rows_and_all(x: &[u32], sums: &mut [u32], all: &mut [i64], n: usize, m: usize, blocks: u32) {
    #[kernel(tblock(blocks), thread(96))]
    {
        #[loop_partition(over_tblock(CYCLIC))]
        for i in 0..n {
            #[loop_partition(over_thread, reduction(sums))]
            for j in (0..m).rev() {
                sums[n - 1 - i] += x[i * m + j];
            }
        }
    }
    #[kernel(tblock(blocks), thread(24))]
    {
        #[loop_partition(over_tblock, over_thread, reduction(all))]
        for i in 0..n * m {
            all[1] += x[i] as i64;
            all[2] += i as i64 - 50;
        }
    }
}

fn threads_that_combine(jit: &Jit) -> Outcome {
    for (n, m, blocks) in [(0, 3, 1), (3, 0, 2), (130, 7, 3), (2, 500, 2), (1, 97, 1)] {
        let x: Vec<u32> = (0..(n * m) as u32).map(|i| i * 7 % 101).collect();
        let (mut sums, mut all) = (vec![3; n], vec![5; 3]);
        let (mut wanted, mut wanted_all) = (sums.clone(), all.clone());
        rows_and_all.launch(jit, &x, &mut sums, &mut all, n, m, blocks)?;
        rows_and_all.sequential(&x, &mut wanted, &mut wanted_all, n, m, blocks);
        assert_eq!((sums, all), (wanted, wanted_all), "{n} {m} {blocks}");
    }
    Ok(())
}

/// A loop over one dimension of threads with one over another within, of which neither has the element's index.
#[kiln::offload]
fn planes(x: &[u32], sums: &mut [u32], n: usize, m: usize, at: usize) {
    #[kernel(tblock(3), thread(3, 32))]
    {
        let mut first = at;
        first += 1;
        #[loop_partition(over_tblock, over_thread, reduction(sums))]
        for i in 0..n {
            #[loop_partition(over_thread)]
            for j in 0..m {
                sums[first] += x[i * m + j];
            }
            // All threads of the inner dimension come to it, and one of them does it.
            sums[first + 1] += i as u32;
        }
    }
}

fn loops_within_loops(jit: &Jit) -> Outcome {
    for (n, m) in [(0, 3), (3, 0), (13, 70), (1, 1)] {
        let x: Vec<u32> = (0..(n * m) as u32).collect();
        let (mut sums, mut wanted) = (vec![3; 5], vec![3; 5]);
        planes.launch(jit, &x, &mut sums, n, m, 1)?;
        planes.sequential(&x, &mut wanted, n, m, 1);
        assert_eq!(sums, wanted, "{n} {m}");
    }
    Ok(())
}

/// Elements that are those of an inner loop each, within loops of others: a thread's own loop, and one over lanes that not all come to.
#[kiln::offload]
fn of_inner(x: &[u32], sums: &mut [u32], n: usize, m: usize) {
    #[kernel(tblock(2), thread(64))]
    {
        #[loop_partition(over_tblock, over_thread, reduction(sums))]
        for i in 0..n {
            for j in 0..m {
                sums[(x[i] as usize) % 7] += x[(i + j) % n];
            }
        }
        #[loop_partition(over_tblock, over_warp, reduction(sums))]
        for i in 0..n {
            if x[i] % 3 > 0 {
                let mut at = i % 5;
                #[loop_partition(over_lane)]
                for j in 0..m {
                    sums[at] += x[(i + j) % n];
                }
                at += 2;
                #[loop_partition(over_lane, coarsen(2))]
                for j in 0..m {
                    sums[at] += j as u32;
                }
            }
        }
    }
}

fn elements_of_inner_loops(jit: &Jit) -> Outcome {
    for (n, m) in [(0, 3), (1, 0), (37, 41), (90, 3)] {
        let x: Vec<u32> = (0..n as u32).map(|i| i * 5 % 23).collect();
        let (mut sums, mut wanted) = (vec![1; 9], vec![1; 9]);
        of_inner.launch(jit, &x, &mut sums, n, m)?;
        of_inner.sequential(&x, &mut wanted, n, m);
        assert_eq!(sums, wanted, "{n} {m}");
    }
    Ok(())
}

/// Statements under conditions, in loops that end early, and an index by a variable that the loop changes.
#[kiln::offload]
fn with_ends(x: &[u32], sums: &mut [u32], n: usize, m: usize) {
    #[kernel(tblock(2), thread(32))]
    {
        #[loop_partition(over_tblock, over_thread, reduction(sums))]
        for i in 0..n {
            let mut at = 2;
            for j in 0..m {
                if x[i] == 7 {
                    continue;
                }
                if x[(i + j) % n] > 90 {
                    break;
                }
                sums[0] += 1;
                sums[at] += 3;
                at = 3 + j % 2;
            }
            if x[i] % 2 == 0 {
                sums[1] += x[i];
            }
        }
    }
}

fn conditions_and_ends_within(jit: &Jit) -> Outcome {
    for (n, m) in [(0, 3), (1, 0), (200, 4), (70, 9)] {
        let x: Vec<u32> = (0..n as u32).map(|i| i * 7 % 101).collect();
        let (mut sums, mut wanted) = (vec![1; 5], vec![1; 5]);
        with_ends.launch(jit, &x, &mut sums, n, m)?;
        with_ends.sequential(&x, &mut wanted, n, m);
        assert_eq!(sums, wanted, "{n} {m}");
    }
    Ok(())
}

/// An element that the slice does not have, where no iteration changes it, and where one does.
#[kiln::offload]
fn beyond(x: &[u32], sums: &mut [u32], n: usize, at: usize) {
    #[kernel(tblock(1), thread(32))]
    {
        #[loop_partition(over_thread, reduction(sums))]
        for i in 0..n {
            if x[i] > 40 {
                sums[at] += x[i];
            }
        }
    }
}

fn elements_that_nothing_changes(jit: &Jit) -> Outcome {
    let x: Vec<u32> = (0..50).collect();
    let mut sums = vec![1; 3];
    beyond.launch(jit, &x, &mut sums, 40, 3)?;
    beyond.launch(jit, &[], &mut sums, 0, 3)?;
    assert_eq!(sums, [1; 3]);
    beyond.launch(jit, &x, &mut sums, 50, 2)?;
    assert_eq!(sums, [1, 1, 1 + (41..50).sum::<u32>()]);
    Ok(())
}
