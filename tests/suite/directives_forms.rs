//! Forms of hiCUDA's slides and text, and programs that say nothing of data: what is copied, and when.

use kiln::prelude::*;

use super::{Outcome, chapter};

chapter![
    all_allocated_and_a_part_copied,
    what_a_whole_program_copies,
    nothing_said_of_data,
    short_last_chunks_are_staged,
];

fn numbers(len: usize) -> Vec<u32> {
    (0..len as u32).map(|i| i * 7 % 23 + 1).collect()
}

/// `alloc ptr[*] copyin ptr[1:98]` behind `shape ptr[N]`.
#[kiln::offload]
fn inner(ptr: &mut [u32], n: usize) {
    shape!(ptr[n]);
    global!(alloc ptr[..] copyin ptr[1..=98]);
    #[kernel(tblock(2), thread(16))]
    {
        #[loop_partition(over_tblock, over_thread)]
        for i in 1..99usize {
            ptr[i] = 2 * ptr[i] + 1;
        }
    }
    global!(copyout ptr[1..=98]);
}

fn all_allocated_and_a_part_copied(jit: &Jit) -> Outcome {
    let mut x = numbers(100);
    let mut z = x.clone();
    let ((), report) = inner.launch_reported(jit, &mut x, 100)?;
    inner.sequential(&mut z, 100);
    assert_eq!(x, z);
    assert_eq!((report.uploads, report.uploaded_bytes), (1, 98 * 4));
    assert!(report.downloaded_bytes >= 98 * 4);
    // A shape of more elements than the slice has.
    let refused = inner.launch(jit, &mut numbers(100), 101);
    let text = refused.expect_err("it has 100").to_string();
    assert_eq!(
        text,
        "the slice has 100 elements, and its shape is [101]: `shape!` says all that it has"
    );
    Ok(())
}

/// A product of two matrices: what a program by hand copies, and no more.
#[kiln::offload]
fn multiply(a: &[f32], b: &[f32], c: &mut [f32], n: usize) {
    global!(alloc c);
    #[kernel(tblock(2, 2), thread(4, 8))]
    {
        #[loop_partition(over_tblock, over_thread)]
        for i in 0..n {
            #[loop_partition(over_tblock, over_thread)]
            for j in 0..n {
                let mut sum = 0.0;
                for k in 0..n {
                    sum += a[i * n + k] * b[k * n + j];
                }
                c[i * n + j] = sum;
            }
        }
    }
}

fn what_a_whole_program_copies(jit: &Jit) -> Outcome {
    let n = 19;
    let (a, b): (Vec<f32>, Vec<f32>) = (0..n * n).map(|i| ((i % 5) as f32, (i % 7) as f32)).unzip();
    let (mut c, mut d) = (vec![9.0; n * n], vec![9.0; n * n]);
    let ((), report) = multiply.launch_reported(jit, &a, &b, &mut c, n)?;
    multiply.sequential(&a, &b, &mut d, n);
    assert_eq!(c, d);
    let bytes = n * n * 4;
    assert_eq!((report.uploads, report.uploaded_bytes), (2, 2 * bytes));
    assert_eq!((report.downloads, report.downloaded_bytes), (1, bytes));
    Ok(())
}

/// Regions in loops of the host, of which some are left out, with a vector of the function's own and a number that the host
/// computes of what regions have written.
#[kiln::offload]
fn settle(x: &mut [u32], kept: &mut [u32], n: usize, steps: u32) -> u32 {
    let mut half: Vec<u32> = vec![0; n];
    for step in 0..steps {
        let add: u32 = step;
        #[kernel(tblock(2), thread(8), nowait)]
        {
            #[loop_partition(over_tblock, over_thread)]
            for i in 0..n {
                half[i] = x[i] / 2 + add;
            }
        }
        if step % 2 == 0 {
            #[kernel(tblock(2), thread(8), nowait)]
            {
                #[loop_partition(over_tblock, over_thread)]
                for i in 0..n {
                    x[i] = half[i] + half[n - 1 - i];
                }
            }
        }
    }
    let mut most: u32 = 0;
    for i in 0..n {
        most = most.max(x[i]);
    }
    #[kernel(tblock(1), thread(8))]
    {
        #[loop_partition(over_thread)]
        for i in 0..n {
            kept[i] = x[i] + most;
        }
    }
    most
}

fn nothing_said_of_data(jit: &Jit) -> Outcome {
    let n = 21;
    let (mut x, mut kept) = (numbers(n), vec![1; n]);
    let (mut z, mut held) = (x.clone(), kept.clone());
    let (most, report) = settle.launch_reported(jit, &mut x, &mut kept, n, 6)?;
    assert_eq!(most, settle.sequential(&mut z, &mut held, n, 6));
    assert_eq!((x, kept), (z, held));
    assert_eq!(report.launches.len(), 10);
    // `x` and `half` before the first region and `x` again behind the host's turn, `kept`; `x` back before it, `kept` at the end.
    assert_eq!((report.uploads, report.downloads), (4, 2));
    Ok(())
}

/// A stencil over chunks of which the last one is short, staged by batches of which the last one is not full.
#[kiln::offload]
fn smooth(x: &[u32], y: &mut [u32], n: usize) {
    #[kernel(tblock(3), thread(4))]
    {
        #[loop_partition(over_tblock(BLOCK), over_thread)]
        #[shared(copyin(x))]
        for i in 1..n - 1 {
            y[i] = x[i - 1] + 2 * x[i] + 3 * x[i + 1];
        }
    }
}

fn short_last_chunks_are_staged(jit: &Jit) -> Outcome {
    for n in [2, 3, 4, 15, 22, 29] {
        let x = numbers(n);
        let (mut y, mut z) = (vec![5; n], vec![5; n]);
        smooth.launch(jit, &x, &mut y, n)?;
        smooth.sequential(&x, &mut z, n);
        assert_eq!(y, z, "{n}");
    }
    Ok(())
}
