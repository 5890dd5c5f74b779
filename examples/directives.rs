//! A matrix product, Jacobi's method and a histogram as sequential functions, which directives make programs for a GPU
//! (Han and Abdelrahman, "hiCUDA: High-Level GPGPU Programming", 2011).
//!
//! `sequential` executes a function as it is written, `launch` its kernel regions on a device.

use kiln::prelude::*;

/// The product of an `n` by `k` and a `k` by `m` matrix, each element by a thread.
#[kiln::offload]
fn multiply(a: &[f32], b: &[f32], c: &mut [f32], n: usize, m: usize, k: usize) {
    #[kernel(tblock(n.div_ceil(16), m.div_ceil(16)), thread(16, 16))]
    {
        #[loop_partition(over_tblock, over_thread)]
        for i in 0..n {
            #[loop_partition(over_tblock, over_thread)]
            for j in 0..m {
                let mut sum = 0.0;
                for kk in 0..k {
                    sum += a[i * k + kk] * b[kk * m + j];
                }
                c[i * m + j] = sum;
            }
        }
    }
}

/// Steps of Jacobi's method on a square grid, whose border stays. The grid is copied to the device once, and back once.
#[kiln::offload]
fn relax(old: &mut [f32], n: usize, steps: u32) {
    let mut new: Vec<f32> = vec![0.0; n * n];
    global!(alloc new);
    for _ in 0..steps {
        #[kernel(tblock(8, 8), thread(4, 32), nowait)]
        {
            #[loop_partition(over_tblock, over_thread)]
            for i in 1..n - 1 {
                #[loop_partition(over_tblock, over_thread)]
                for j in 1..n - 1 {
                    let at = i * n + j;
                    new[at] = 0.25 * (old[at - n] + old[at + n] + old[at - 1] + old[at + 1]);
                }
            }
        }
        #[kernel(tblock(8, 8), thread(4, 32), nowait)]
        {
            #[loop_partition(over_tblock, over_thread)]
            for i in 1..n - 1 {
                #[loop_partition(over_tblock, over_thread)]
                for j in 1..n - 1 {
                    old[i * n + j] = new[i * n + j];
                }
            }
        }
    }
}

/// How many of `x` are in each bin; each block counts in shared memory.
#[kiln::offload]
fn histogram(x: &[u32], counts: &mut [u32]) {
    #[kernel(tblock(8), thread(128))]
    {
        #[loop_partition(over_tblock, over_thread, reduction(counts))]
        for i in 0..x.len() {
            counts[x[i] as usize % counts.len()] += 1;
        }
    }
}

fn main() -> kiln::Result<()> {
    let jit = Jit::new()?;
    let (n, m, k) = (100, 60, 40);
    let numbers = |len: usize| -> Vec<f32> { (0..len).map(|i| (i * 7 % 11) as f32).collect() };
    let (a, b) = (numbers(n * k), numbers(k * m));
    let (mut c, mut want) = (vec![0.0; n * m], vec![0.0; n * m]);
    multiply.launch(&jit, &a, &b, &mut c, n, m, k)?;
    multiply.sequential(&a, &b, &mut want, n, m, k);
    assert_eq!(c, want);

    let n = 64;
    let mut old = numbers(n * n);
    let mut want = old.clone();
    let ((), report) = relax.launch_reported(&jit, &mut old, n, 100)?;
    relax.sequential(&mut want, n, 100);
    assert_eq!((report.uploads, report.downloads), (1, 1));
    let off = old.iter().zip(&want).map(|(x, y)| (x - y).abs());
    assert!(
        off.fold(0.0, f32::max) < 1e-4,
        "a sum may be contracted with the product"
    );
    let x: Vec<u32> = (0..10_000).map(|i| i * i).collect();
    let (mut counts, mut want) = ([0; 10], [0; 10]);
    histogram.launch(&jit, &x, &mut counts)?;
    histogram.sequential(&x, &mut want);
    assert_eq!(counts, want);
    println!(
        "{} launches, {} uploads, {} downloads, ok",
        report.launches.len(),
        report.uploads,
        report.downloads
    );
    Ok(())
}
