//! What turns of loops write in shared memory and blocks copy to slices behind them, beside the functions as they are written.

use kiln::directives::{Known, Program, marks};
use kiln::prelude::*;

use super::{Outcome, chapter};

chapter![
    columns_that_are_rows_in_shared_memory,
    rows_that_are_padded,
    elements_that_are_left_out,
    turns_that_write_again,
    copied_in_and_out,
    every_third_element,
    loops_within_a_turn,
    windows_that_count_down,
    sections_of_writes,
    iterations_side_by_side,
    edges_that_are_left_out,
    turns_side_by_side,
    lanes_side_by_side,
];

fn numbers(len: usize) -> Vec<u32> {
    (0..len as u32).map(|i| i * 7 % 23 + 1).collect()
}

/// A transposition that reads rows and writes rows.
#[kiln::offload]
fn transpose(x: &[u32], y: &mut [u32], n: usize, m: usize) {
    #[kernel(tblock(2, 2), thread(4, 8))]
    {
        #[loop_partition(over_tblock, over_thread)]
        for i in 0..n {
            #[loop_partition(over_tblock(CYCLIC), over_thread)]
            #[shared(copyout(y))]
            for j in 0..m {
                y[j * n + i] = 3 * x[i * m + j];
            }
        }
    }
}

fn columns_that_are_rows_in_shared_memory(jit: &Jit) -> Outcome {
    for (n, m) in [(8, 16), (13, 21), (1, 1), (0, 4), (30, 3)] {
        let x = numbers(n * m);
        let (mut y, mut z) = (vec![0; n * m], vec![0; n * m]);
        let ((), report) = transpose.launch_reported(jit, &x, &mut y, n, m)?;
        transpose.sequential(&x, &mut z, n, m);
        assert_eq!(y, z, "{n} {m}");
        let schedule = report.launches[0].to_string();
        assert!(schedule.ends_with("over_thread copyout(1)"), "{schedule}");
    }
    Ok(())
}

/// As [`transpose`], by whole warps: rows are longer in shared memory, and a block has several turns.
#[kiln::offload]
fn by_warps(x: &[u32], y: &mut [u32], n: usize, m: usize) {
    #[kernel(tblock(1, 1), thread(8, 32))]
    {
        #[loop_partition(over_tblock, over_thread)]
        for i in 0..n {
            #[loop_partition(over_tblock, over_thread)]
            #[shared(copyout(y))]
            for j in 0..m {
                y[j * n + i] = 3 * x[i * m + j];
            }
        }
    }
}

fn rows_that_are_padded(jit: &Jit) -> Outcome {
    let (n, m) = (20, 70);
    let x = numbers(n * m);
    let (mut y, mut z) = (vec![0; n * m], vec![0; n * m]);
    let ((), report) = by_warps.launch_reported(jit, &x, &mut y, n, m)?;
    by_warps.sequential(&x, &mut z, n, m);
    assert_eq!(y, z);
    let section = &report.guidance[0].sections[0];
    assert!(section.section.contains("rows padded by"), "{section:?}");
    assert!(section.degree < section.unpadded, "{section:?}");
    Ok(())
}

/// Writes where a condition holds, and two neighbours elsewhere; the others keep what they have.
#[kiln::offload]
fn some(x: &[u32], y: &mut [u32], n: usize) {
    #[kernel(tblock(3), thread(8))]
    {
        #[loop_partition(over_tblock, over_thread)]
        #[shared(copyout(y))]
        for i in 0..n {
            if x[i] % 3 == 0 {
                y[2 * i] = x[i];
            }
            if x[i] % 5 == 0 {
                y[2 * i + 1] = i as u32;
                y[2 * i + 1] = 7 * x[i];
            }
        }
    }
}

fn elements_that_are_left_out(jit: &Jit) -> Outcome {
    for n in [0, 1, 24, 45] {
        let x = numbers(n);
        let (mut y, mut z) = (vec![9; 2 * n], vec![9; 2 * n]);
        some.launch(jit, &x, &mut y, n)?;
        some.sequential(&x, &mut z, n);
        assert_eq!(y, z, "{n}");
    }
    Ok(())
}

/// Each turn of the loop that copies out writes some elements of the turn before again.
#[kiln::offload]
fn again(x: &[u32], y: &mut [u32], n: usize, turns: usize) {
    #[kernel(tblock(2), thread(8))]
    {
        #[loop_partition(over_tblock)]
        for row in 0..n {
            #[shared(copyout(y))]
            for turn in 0..turns {
                #[loop_partition(over_thread)]
                for i in 0..10usize {
                    if (i + turn) % 3 > 0 {
                        y[row * 40 + 9 - i + 2 * turn] = x[i] + 100 * turn as u32;
                    }
                }
            }
        }
    }
}

fn turns_that_write_again(jit: &Jit) -> Outcome {
    let x = numbers(10);
    for (n, turns) in [(3, 5), (1, 1), (4, 0)] {
        let (mut y, mut z) = (vec![9; n * 40], vec![9; n * 40]);
        let launched = again.launch(jit, &x, &mut y, n, turns);
        again.sequential(&x, &mut z, n, turns);
        // Different threads write one element in turns that follow one another, between which all meet.
        launched?;
        assert_eq!(y, z, "{n} {turns}");
    }
    Ok(())
}

/// A stencil whose elements come from and go to shared memory.
#[kiln::offload]
fn smooth(x: &[f32], y: &mut [f32], n: usize) {
    #[kernel(tblock(2), thread(8))]
    {
        #[loop_partition(over_tblock, over_thread)]
        #[shared(copyin(x), copyout(y))]
        for i in 1..n - 1 {
            y[n - 1 - i] = 0.5 * (x[i - 1] + x[i + 1]);
        }
    }
}

fn copied_in_and_out(jit: &Jit) -> Outcome {
    for n in [2, 3, 17, 40] {
        let x: Vec<f32> = numbers(n).into_iter().map(|x| x as f32).collect();
        let (mut y, mut z) = (vec![9.0; n], vec![9.0; n]);
        smooth.launch(jit, &x, &mut y, n)?;
        smooth.sequential(&x, &mut z, n);
        assert_eq!(y, z, "{n}");
    }
    Ok(())
}

/// Structs, a stride of three apart.
#[derive(Copy, Clone, Debug, PartialEq, KernelType)]
#[repr(C)]
struct Pair {
    a: u32,
    b: u16,
}

#[kiln::offload]
fn thirds(x: &[u32], y: &mut [Pair], n: usize) {
    #[kernel(tblock(2), thread(8))]
    {
        #[loop_partition(over_tblock, over_thread)]
        #[shared(copyout(y))]
        for i in 0..n {
            y[3 * i + 1] = Pair {
                a: x[i],
                b: i as u16,
            };
        }
    }
}

fn every_third_element(jit: &Jit) -> Outcome {
    let (x, n) = (numbers(29), 29);
    let (mut y, mut z) = (
        vec![Pair { a: 5, b: 6 }; 3 * n],
        vec![Pair { a: 5, b: 6 }; 3 * n],
    );
    thirds.launch(jit, &x, &mut y, n)?;
    thirds.sequential(&x, &mut z, n);
    assert_eq!(y, z);
    Ok(())
}

/// A turn writes all that a loop within it does.
#[kiln::offload]
fn within(x: &[u32], y: &mut [u32], n: usize) {
    #[kernel(tblock(2), thread(4))]
    {
        #[loop_partition(over_tblock, over_thread)]
        #[shared(copyout(y))]
        for i in 0..n {
            for j in (0..5usize).rev() {
                y[i * 5 + j] = x[i] * j as u32;
            }
        }
    }
}

fn loops_within_a_turn(jit: &Jit) -> Outcome {
    for n in [1, 8, 19] {
        let x = numbers(n);
        let (mut y, mut z) = (vec![9; 5 * n], vec![9; 5 * n]);
        within.launch(jit, &x, &mut y, n)?;
        within.sequential(&x, &mut z, n);
        assert_eq!(y, z, "{n}");
    }
    Ok(())
}

/// Indices of 32 bits with signs, in a loop that counts down.
#[kiln::offload]
fn down(x: &[u32], y: &mut [u32], n: i32) {
    #[kernel(tblock(3), thread(4))]
    {
        #[loop_partition(over_tblock, over_thread)]
        #[shared(copyout(y))]
        for i in (2..n).rev() {
            y[(n - 1 - i) as usize] = x[i as usize];
        }
    }
}

fn windows_that_count_down(jit: &Jit) -> Outcome {
    let x = numbers(30);
    let (mut y, mut z) = (vec![9; 30], vec![9; 30]);
    down.launch(jit, &x, &mut y, 30)?;
    down.sequential(&x, &mut z, 30);
    assert_eq!(y, z);
    Ok(())
}

#[device_fn]
fn rows(x: &mut [f32], n: usize) {
    marks::partition(1, 1);
    for i in 0..n {
        marks::partition(1, 1);
        marks::copyout(x.len() as u32);
        for j in 0..n {
            x[j * n + i] = 1.0;
        }
    }
}

/// A section is the box of what the threads of a block write in a turn; the text of a schedule is read again.
fn sections_of_writes(_: &Jit) -> Outcome {
    let program = Program::of(&DeviceFn::of::<rows>()?)?;
    let schedule = program.schedule(&[2, 2], &[4, 8]);
    assert_eq!(schedule.to_string().parse(), Ok(schedule.clone()));
    let known = [Known::Length(1024), Known::Number(32)];
    let sections = program.sections(&schedule, &known)?;
    let text = sections[0].to_string();
    assert!(
        text.starts_with("`x` in loop 1: 8 x 4 elements, strides 32 x 1"),
        "{text}"
    );
    assert_eq!(sections[0].bytes(), 8 * (4 + sections[0].padding()) * 5);
    Ok(())
}

/// Numbers of rows and columns from a seed, also none, one, and such as no block divides.
fn sizes(seed: u64, most: u64) -> impl Iterator<Item = (usize, usize)> {
    let mut state = seed;
    let mut size = move || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        ((state >> 33) % (most + 1)) as usize
    };
    let chosen = [(0, 3), (1, 1), (16, 32)].into_iter();
    chosen.chain(std::iter::repeat_with(move || (size(), size())).take(6))
}

/// As [`transpose`], with eight elements of a thread side by side.
#[kiln::offload]
fn eight_of_a_thread(x: &[u32], y: &mut [u32], n: usize, m: usize) {
    #[kernel(tblock(2, 2), thread(4, 8))]
    {
        #[loop_partition(over_tblock, over_thread, coarsen(4))]
        for i in 0..n {
            #[loop_partition(over_tblock(CYCLIC), over_thread, coarsen(2))]
            #[shared(copyout(y))]
            for j in 0..m {
                y[j * n + i] = 3 * x[i * m + j];
            }
        }
    }
}

fn iterations_side_by_side(jit: &Jit) -> Outcome {
    for (n, m) in sizes(3, 70) {
        let x = numbers(n * m);
        let (mut y, mut z) = (vec![9; n * m], vec![9; n * m]);
        let ((), report) = eight_of_a_thread.launch_reported(jit, &x, &mut y, n, m)?;
        eight_of_a_thread.sequential(&x, &mut z, n, m);
        assert_eq!(y, z, "{n} {m}");
        let schedule = report.launches[0].to_string();
        assert!(
            schedule.ends_with("copyout(1) unroll_and_jam(2)"),
            "{schedule}"
        );
    }
    Ok(())
}

/// A loop that all threads go through, so that lanes beyond the end compute as the others do, and writes behind it where a condition
/// holds, of which some elements of the slice keep what they have.
#[kiln::offload]
fn sums(x: &[u32], y: &mut [u32], n: usize, m: usize) {
    #[kernel(tblock(2), thread(8))]
    {
        #[loop_partition(over_tblock, over_thread, coarsen(3))]
        #[shared(copyin(x), copyout(y))]
        for i in 0..n {
            let mut sum = 0;
            for j in 0..m {
                sum += x[i * m + j];
            }
            y[2 * i] = sum;
            if sum % 3 > 0 {
                y[2 * i + 1] = 5 * sum;
            }
        }
    }
}

fn edges_that_are_left_out(jit: &Jit) -> Outcome {
    for (n, m) in sizes(5, 40) {
        let x = numbers(n * m);
        // Elements behind those that the last iteration writes are the slice's, too.
        let (mut y, mut z) = (vec![9; 2 * n + 60], vec![9; 2 * n + 60]);
        sums.launch(jit, &x, &mut y, n, m)?;
        sums.sequential(&x, &mut z, n, m);
        assert_eq!(y, z, "{n} {m}");
    }
    Ok(())
}

/// The loop that copies out is within iterations side by side, and those of a thread are written out in a loop of their own.
#[kiln::offload]
fn bands(x: &[u32], y: &mut [u32], n: usize, m: usize) {
    #[kernel(tblock(2), thread(4, 4))]
    {
        #[loop_partition(over_tblock, over_thread, coarsen(2))]
        for row in 0..n {
            #[shared(copyout(y))]
            for band in 0..3usize {
                #[loop_partition(over_thread, coarsen(3))]
                for i in 0..m {
                    for k in 0..2usize {
                        y[(row * 3 + band) * 2 * m + 2 * i + k] = x[i] + (band + k) as u32;
                    }
                }
            }
        }
    }
}

fn turns_side_by_side(jit: &Jit) -> Outcome {
    for (n, m) in sizes(7, 30) {
        let x = numbers(m);
        let (mut y, mut z) = (vec![9; 6 * n * m], vec![9; 6 * n * m]);
        bands.launch(jit, &x, &mut y, n, m)?;
        bands.sequential(&x, &mut z, n, m);
        assert_eq!(y, z, "{n} {m}");
    }
    Ok(())
}

/// Lanes that have two columns of a row side by side, which a block copies out.
#[kiln::offload]
fn reversed(x: &[u32], y: &mut [u32], n: usize, m: usize) {
    #[kernel(tblock(2), thread(64))]
    {
        #[loop_partition(over_tblock, over_warp)]
        for i in 0..n {
            #[loop_partition(over_lane, coarsen(2))]
            #[shared(copyout(y))]
            for j in 0..m {
                if x[i * m + j] % 4 > 0 {
                    y[i * m + (m - 1 - j)] = x[i * m + j];
                }
            }
        }
    }
}

fn lanes_side_by_side(jit: &Jit) -> Outcome {
    for (n, m) in sizes(9, 90) {
        let x = numbers(n * m);
        let (mut y, mut z) = (vec![9; n * m], vec![9; n * m]);
        reversed.launch(jit, &x, &mut y, n, m)?;
        reversed.sequential(&x, &mut z, n, m);
        assert_eq!(y, z, "{n} {m}");
    }
    Ok(())
}
