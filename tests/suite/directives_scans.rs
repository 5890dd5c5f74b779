//! Running values that the threads of a block compute together, beside the functions as they are written: read before and behind the
//! statement that combines them, of all operations, in blocks of any shape.

use kiln::directives::{Known, Program, marks};
use kiln::prelude::*;

use super::{Outcome, chapter};

chapter![
    sums_up_to_each,
    before_and_behind,
    operations_of_all_types,
    one_by_another,
    dimensions_of_threads,
    elements_that_are_kept,
    counted_down,
    peeled,
    random_blocks,
];

/// Numbers of iterations: none, and such as no number of threads divides.
const SIZES: [usize; 9] = [0, 1, 31, 32, 33, 64, 100, 257, 1500];

fn numbers(len: usize) -> Vec<u32> {
    (0..len as u32).map(|i| i * 7 % 23 + 1).collect()
}

#[kiln::offload]
fn summed(x: &[u32], y: &mut [u32], n: usize, m: usize, threads: usize) {
    #[kernel(tblock(2), thread(threads))]
    {
        #[loop_partition(over_tblock)]
        for i in 0..n {
            let mut sum = 0;
            #[loop_partition(over_thread, scan(sum))]
            for j in 0..m {
                sum += x[i * m + j];
                y[i * m + j] = sum;
            }
        }
    }
}

fn sums_up_to_each(jit: &Jit) -> Outcome {
    for m in SIZES {
        for threads in [1, 7, 32, 48, 64, 96, 1024] {
            let (x, mut y) = (numbers(3 * m), vec![0; 3 * m]);
            let mut z = y.clone();
            let ((), report) = summed.launch_reported(jit, &x, &mut y, 3, m, threads)?;
            summed.sequential(&x, &mut z, 3, m, threads);
            assert_eq!(y, z, "{m} {threads}");
            assert!(report.launches[0].to_string().contains("over_thread scan"));
        }
    }
    Ok(())
}

/// Where each row of a sparse matrix starts and ends, and how many elements there are.
#[kiln::offload]
fn rows(counts: &[u32], starts: &mut [u32], ends: &mut [u32], all: &mut [u32], n: usize) {
    #[kernel(tblock(1), thread(32))]
    {
        let mut place = 5;
        #[loop_partition(over_thread, scan(place))]
        for i in 0..n {
            starts[i] = place;
            place += counts[i];
            ends[i] = place;
        }
        all[0] = place;
        place *= 2;
        all[1] = place;
    }
}

fn before_and_behind(jit: &Jit) -> Outcome {
    for n in SIZES {
        let counts = numbers(n);
        let [mut starts, mut ends, mut all] = [vec![0; n], vec![0; n], vec![0; 2]];
        let [mut u, mut v, mut w] = [starts.clone(), ends.clone(), all.clone()];
        rows.launch(jit, &counts, &mut starts, &mut ends, &mut all, n)?;
        rows.sequential(&counts, &mut u, &mut v, &mut w, n);
        assert_eq!((starts, ends, all), (u, v, w), "{n}");
    }
    Ok(())
}

#[kiln::offload]
fn operations(
    x: &[u32],
    i: &mut [i64],
    u: &mut [u32],
    f: &mut [f32],
    d: &mut [f64],
    n: usize,
    threads: usize,
) {
    #[kernel(tblock(1), thread(threads))]
    {
        let (mut product, mut least, mut most) = (1u32, 1000i64, -1000i64);
        let (mut all, mut any, mut odd) = (!0u32, 0u32, 3u32);
        let (mut sum, mut low, mut high, mut half) = (0.5f64, 99.0f32, -99.0f32, 1.0f64);
        #[loop_partition(
            over_thread,
            scan(product, least, most, all, any, odd, sum, low, high, half)
        )]
        for k in 0..n {
            let value = x[k];
            product = product.wrapping_mul(value | 1);
            least = least.min(500 - value as i64 * 3);
            most = (value as i64 - 40).max(most);
            all &= value | 0xff0;
            any |= value << (k % 8);
            odd ^= value;
            sum += value as f64;
            low = low.min(30.0 - value as f32);
            high = high.max(value as f32 - 30.0);
            half *= if value > 20 { 0.5 } else { 1.0 };
            i[2 * k] = least;
            i[2 * k + 1] = most;
            u[4 * k] = product;
            u[4 * k + 1] = all;
            u[4 * k + 2] = any;
            u[4 * k + 3] = odd;
            f[2 * k] = low;
            f[2 * k + 1] = high;
            d[2 * k] = sum;
            d[2 * k + 1] = half;
        }
    }
}

fn operations_of_all_types(jit: &Jit) -> Outcome {
    // In shared memory, in a warp, in several.
    for (n, threads) in [0, 1, 16, 40, 150]
        .into_iter()
        .flat_map(|n| [16, 32, 64].map(|threads| (n, threads)))
    {
        let x = numbers(n);
        let (mut i, mut u) = (vec![0; 2 * n], vec![0; 4 * n]);
        let (mut f, mut d) = (vec![0.0; 2 * n], vec![0.0; 2 * n]);
        let (mut i2, mut u2, mut f2, mut d2) = (i.clone(), u.clone(), f.clone(), d.clone());
        operations.launch(jit, &x, &mut i, &mut u, &mut f, &mut d, n, threads)?;
        operations.sequential(&x, &mut i2, &mut u2, &mut f2, &mut d2, n, threads);
        assert_eq!((i, u, f, d), (i2, u2, f2, d2), "{n} {threads}");
    }
    Ok(())
}

/// Sums of sums, and of what threads find in memory.
#[kiln::offload]
fn sums_of_sums(x: &[u32], y: &mut [u32], n: usize) {
    #[kernel(tblock(1), thread(32))]
    {
        let (mut once, mut twice) = (0, 0);
        #[loop_partition(over_thread, scan(once, twice))]
        for i in 0..n {
            once += x[i];
            twice += once;
            y[i] = twice;
        }
    }
}

fn one_by_another(jit: &Jit) -> Outcome {
    for n in SIZES {
        let (x, mut y) = (numbers(n), vec![0; n]);
        let mut z = y.clone();
        sums_of_sums.launch(jit, &x, &mut y, n)?;
        sums_of_sums.sequential(&x, &mut z, n);
        assert_eq!(y, z, "{n}");
    }
    Ok(())
}

/// Threads of a row compute its sums; those along another dimension use one each.
#[kiln::offload]
fn of_two_dimensions(x: &[u32], y: &mut [u32], z: &mut [u32], n: usize, m: usize) {
    #[kernel(tblock(2), thread(3, 16))]
    {
        #[loop_partition(over_tblock, over_thread)]
        for i in 0..n {
            let mut sum = i as u32;
            #[loop_partition(over_thread, scan(sum))]
            for j in 0..m {
                y[i * m + j] = sum;
                sum += x[j];
            }
        }
        #[loop_partition(over_tblock)]
        for i in 0..n {
            let mut most = 0;
            #[loop_partition(over_thread, scan(most))]
            for j in 0..m {
                most = most.max(x[j] * (i as u32 % 3));
                #[loop_partition(over_thread)]
                for k in 0..20usize {
                    z[(i * m + j) * 20 + k] = most + k as u32;
                }
            }
        }
    }
}

fn dimensions_of_threads(jit: &Jit) -> Outcome {
    for (n, m) in [(0, 4), (4, 0), (1, 1), (5, 17), (7, 40)] {
        let (x, mut y, mut z) = (numbers(m), vec![0; n * m], vec![0; n * m * 20]);
        let (mut u, mut v) = (y.clone(), z.clone());
        of_two_dimensions.launch(jit, &x, &mut y, &mut z, n, m)?;
        of_two_dimensions.sequential(&x, &mut u, &mut v, n, m);
        assert_eq!((y, z), (u, v), "{n} {m}");
    }
    Ok(())
}

/// Elements that fulfil a condition, in their order, and how many they are.
#[kiln::offload]
fn kept(x: &[u32], out: &mut [u32], count: &mut [u32], n: usize) {
    #[kernel(tblock(1), thread(64))]
    {
        let mut place = 0;
        #[loop_partition(over_thread, scan(place), unsafe(independent))]
        for i in 0..n {
            let value = x[i];
            let keeps = if value % 3 == 0 { 1 } else { 0 };
            if keeps == 1 {
                out[place as usize] = value;
            }
            place += keeps;
        }
        count[0] = place;
    }
}

fn elements_that_are_kept(jit: &Jit) -> Outcome {
    for n in SIZES {
        let (x, mut out, mut count) = (numbers(n), vec![0; n], vec![9]);
        let (mut u, mut v) = (out.clone(), count.clone());
        kept.launch(jit, &x, &mut out, &mut count, n)?;
        kept.sequential(&x, &mut u, &mut v, n);
        assert_eq!((out, count), (u, v), "{n}");
    }
    Ok(())
}

/// From the last to the first, each second one, staged.
#[kiln::offload]
fn from_the_end(x: &[u32], y: &mut [u32], n: usize) {
    #[kernel(tblock(1), thread(32))]
    {
        let mut sum = 1;
        #[loop_partition(over_thread, scan(sum))]
        #[shared(copyin(x))]
        for i in (1..n).rev() {
            y[i] = sum;
            sum += x[i] + x[i - 1];
        }
    }
}

fn counted_down(jit: &Jit) -> Outcome {
    for n in [2, 33, 34, 100] {
        let (x, mut y) = (numbers(n), vec![0; n]);
        let mut z = y.clone();
        from_the_end.launch(jit, &x, &mut y, n)?;
        from_the_end.sequential(&x, &mut z, n);
        assert_eq!(y, z, "{n}");
    }
    Ok(())
}

#[kiln::offload]
fn split(x: &[u32], y: &mut [u32], n: usize) {
    #[kernel(tblock(1), thread(32))]
    {
        let mut sum = 1;
        #[loop_partition(over_thread, scan(sum))]
        #[loop_transform(peel_first(1), peel_last(2))]
        for i in 0..n {
            sum += if i == 0 { 100 } else { x[i] };
            y[i] = sum;
        }
    }
}

fn peeled(jit: &Jit) -> Outcome {
    for n in SIZES {
        let (x, mut y) = (numbers(n), vec![0; n]);
        let mut z = y.clone();
        split.launch(jit, &x, &mut y, n)?;
        split.sequential(&x, &mut z, n);
        assert_eq!(y, z, "{n}");
    }
    Ok(())
}

#[device_fn]
fn running(x: &[u32], y: &mut [u32], n: usize, m: usize, l: usize) {
    marks::partition(marks::CYCLIC, marks::NOT_OVER_THREADS);
    for i in 0..n {
        marks::partition(0, marks::THREADS);
        for j in 0..m {
            let mut sum = 1;
            marks::partition(0, marks::THREADS);
            marks::scan();
            for k in 0..l {
                let at = (i * m + j) * l + k;
                y[at] = sum;
                sum += 3 * x[at];
                y[at] += 7 * sum;
            }
        }
    }
}

/// Blocks of random extents, and random numbers of iterations.
fn random_blocks(jit: &Jit) -> Outcome {
    let program = Program::of(&DeviceFn::of::<running>()?)?;
    let mut state = 0x3c6e_f372_fe94_f82b_u64;
    let mut below = |end: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) % end
    };
    for _ in 0..60 {
        let blocks = [1 + below(3) as u32];
        let lines = 1 + below(5) as u32;
        let columns = match below(3) {
            0 => 1 + below(40) as u32,
            // Lines in a warp, and lines of warps.
            1 => 1 << below(6),
            _ => 32 * (1 + below(6) as u32),
        };
        let threads = [lines, columns];
        let [n, m, l] = [below(4), below(7), below(500)].map(|number| number as usize);
        let len = n * m * l;
        let schedule = program.schedule(&blocks, &threads);
        let numbers_of = [n, m, l].map(|number| Known::Number(number as i128));
        let lengths = [Known::Length(len as u64); 2];
        program.verify(&schedule, &[&lengths[..], &numbers_of].concat())?;
        let kernel = program.apply(&schedule)?;
        let (x, mut wanted) = (numbers(len), Vec::new());
        for row in x.chunks(l.max(1)) {
            let mut sum = 1;
            for &value in row {
                let before = sum;
                sum += 3 * value;
                wanted.push(before + 7 * sum);
            }
        }
        let (x, mut y) = (jit.upload(&x)?, jit.zeros::<u32>(len)?);
        let args = args!(&x, &mut y, n as u32, m as u32, l as u32);
        jit.launch(kernel.kernel(), kernel.grid(), kernel.block(), args)?;
        assert_eq!(y.to_vec()?, wanted, "{schedule} {n} {m} {l}");
    }
    Ok(())
}
