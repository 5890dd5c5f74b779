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
