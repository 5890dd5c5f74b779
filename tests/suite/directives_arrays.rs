//! Arrays of blocks, `#[shared] let mut tile: [f32; 64] = [0.0; 64];`, beside the functions as they are written.

use kiln::directives::{Known, Program, marks};
use kiln::prelude::*;

use super::{Outcome, chapter};

chapter![
    tiles_turned_round,
    transposed_through_rows,
    tables_of_each_block,
    sums_of_a_block,
    arrays_that_begin_with_numbers,
    arrays_that_are_assigned_again,
    arrays_one_after_the_other,
    arrays_beside_staged_slices,
    array_indices_are_checked,
    arrays_of_one_thread,
];

fn numbers(len: usize) -> Vec<u32> {
    (0..len as u32).map(|i| i * 7 % 23 + 1).collect()
}

/// Turns each eight elements round.
#[kiln::offload]
fn turn_round(x: &[u32], y: &mut [u32], n: usize) {
    #[kernel(tblock(3), thread(4))]
    {
        #[loop_partition(over_tblock)]
        for first in (0..n).step_by(8) {
            #[shared]
            let mut tile: [u32; 8] = [0; 8];
            #[loop_partition(over_thread)]
            for i in 0..8usize {
                if first + i < n {
                    tile[i] = x[first + i];
                }
            }
            barrier!();
            #[loop_partition(over_thread)]
            for i in 0..8usize {
                if first + i < n {
                    y[first + i] = 3 * y[first + i] + tile[7 - i];
                }
            }
        }
    }
}

fn tiles_turned_round(jit: &Jit) -> Outcome {
    for n in [0, 1, 7, 8, 9, 50] {
        let x = numbers(n);
        let (mut y, mut z) = (vec![2; n], vec![2; n]);
        turn_round.launch(jit, &x, &mut y, n)?;
        turn_round.sequential(&x, &mut z, n);
        assert_eq!(y, z, "{n}");
    }
    Ok(())
}

/// A transposition by tiles whose rows are longer than they need be.
#[kiln::offload]
fn transpose(x: &[f32], y: &mut [f32], n: usize, m: usize) {
    #[kernel(tblock(2, 2), thread(2, 4))]
    {
        #[loop_partition(over_tblock(CYCLIC))]
        for top in (0..n).step_by(4) {
            #[loop_partition(over_tblock)]
            for left in (0..m).step_by(4) {
                #[shared]
                let mut tile: [[f32; 5]; 4] = [[-1.5; 5]; 4];
                #[loop_partition(over_thread)]
                for i in 0..4usize {
                    #[loop_partition(over_thread)]
                    for j in 0..4usize {
                        if top + i < n && left + j < m {
                            tile[i][j] = x[(top + i) * m + left + j];
                        }
                    }
                }
                barrier!();
                #[loop_partition(over_thread)]
                for j in 0..4usize {
                    #[loop_partition(over_thread)]
                    for i in 0..4usize {
                        if top + i < n && left + j < m {
                            y[(left + j) * n + top + i] = tile[i][j] + tile[i][4];
                        }
                    }
                }
            }
        }
    }
}

fn transposed_through_rows(jit: &Jit) -> Outcome {
    for (n, m) in [(4, 4), (9, 14), (1, 3), (0, 5)] {
        let x: Vec<f32> = (0..n * m).map(|i| (i * 5 % 37) as f32).collect();
        let (mut y, mut z) = (vec![0.0; n * m], vec![0.0; n * m]);
        transpose.launch(jit, &x, &mut y, n, m)?;
        transpose.sequential(&x, &mut z, n, m);
        assert_eq!(y, z, "{n} {m}");
    }
    Ok(())
}

/// Each block computes a table, which no loop over blocks is around, and all look up what any index says.
#[kiln::offload]
fn look_up(x: &[u32], y: &mut [u32], n: usize) {
    #[kernel(tblock(4), thread(8))]
    {
        #[shared]
        let mut table: [u32; 16] = [0; 16];
        #[loop_partition(over_thread)]
        for i in 0..16usize {
            table[i] = (i * i) as u32 + 1;
        }
        barrier!();
        #[loop_partition(over_tblock, over_thread)]
        for i in 0..n {
            y[i] += table[(x[i] % 16) as usize];
        }
    }
}

fn tables_of_each_block(jit: &Jit) -> Outcome {
    for n in [0, 5, 100] {
        let x = numbers(n);
        let (mut y, mut z) = (vec![2; n], vec![2; n]);
        look_up.launch(jit, &x, &mut y, n)?;
        look_up.sequential(&x, &mut z, n);
        assert_eq!(y, z, "{n}");
    }
    Ok(())
}

/// Sums of rows, halved step by step: what no loop distributes, the first thread does.
#[kiln::offload]
fn row_sums(x: &[u32], y: &mut [u32], n: usize, m: usize) {
    #[kernel(tblock(2), thread(8))]
    {
        #[loop_partition(over_tblock)]
        for row in 0..n {
            #[shared]
            let mut sums: [u32; 8] = [0; 8];
            for part in 0..m.div_ceil(8) {
                #[loop_partition(over_thread)]
                for i in 0..8usize {
                    if part * 8 + i < m {
                        sums[i] += x[row * m + part * 8 + i];
                    }
                }
            }
            barrier!();
            let mut all = 0;
            for i in 0..8usize {
                all += sums[i];
            }
            barrier!();
            y[row] = all;
            sums[3] = all;
            #[singular]
            {
                y[row] += sums[3];
            }
        }
    }
}

fn sums_of_a_block(jit: &Jit) -> Outcome {
    for (n, m) in [(5, 21), (3, 8), (1, 0)] {
        let x = numbers(n * m);
        let (mut y, mut z) = (vec![0; n], vec![0; n]);
        row_sums.launch(jit, &x, &mut y, n, m)?;
        row_sums.sequential(&x, &mut z, n, m);
        assert_eq!(y, z, "{n} {m}");
    }
    Ok(())
}

/// An array of different numbers, which the first thread of each block writes.
#[kiln::offload]
fn weigh(x: &[u32], y: &mut [u32], n: usize) {
    #[kernel(tblock(3), thread(4))]
    {
        #[shared]
        let mut weights: [u32; 3] = [5, 1, n as u32];
        #[loop_partition(over_tblock(CYCLIC), over_thread)]
        for i in 0..n {
            y[i] = x[i] * weights[i % 3];
        }
    }
}

fn arrays_that_begin_with_numbers(jit: &Jit) -> Outcome {
    let (x, n) = (numbers(40), 40);
    let (mut y, mut z) = (vec![0; n], vec![0; n]);
    weigh.launch(jit, &x, &mut y, n)?;
    weigh.sequential(&x, &mut z, n);
    assert_eq!(y, z);
    Ok(())
}

/// An array that begins anew in the middle, with a number of the launch.
#[kiln::offload]
fn again(y: &mut [u32], with: u32) {
    #[kernel(tblock(2), thread(8))]
    {
        #[loop_partition(over_tblock)]
        for row in 0..5usize {
            #[shared]
            let mut held: [u32; 11] = [with; 11];
            #[loop_partition(over_thread)]
            for i in 0..11usize {
                held[i] += i as u32;
            }
            barrier!();
            #[loop_partition(over_thread)]
            for i in 0..11usize {
                y[row * 11 + i] = held[10 - i];
            }
            held = [with + 1; 11];
            #[loop_partition(over_thread)]
            for i in 0..11usize {
                y[row * 11 + i] += 100 * held[i / 2];
            }
        }
    }
}

fn arrays_that_are_assigned_again(jit: &Jit) -> Outcome {
    let (mut y, mut z) = (vec![0; 55], vec![0; 55]);
    again.launch(jit, &mut y, 7)?;
    again.sequential(&mut z, 7);
    assert_eq!(y, z);
    Ok(())
}

/// Two arrays in blocks of their own, which have one place, and one of both.
#[kiln::offload]
fn one_by_one(x: &[u32], y: &mut [u32], n: usize) {
    #[kernel(tblock(2), thread(8))]
    {
        #[loop_partition(over_tblock)]
        for first in (0..n).step_by(16) {
            #[shared]
            let mut of_both: [u32; 16] = [1; 16];
            for _ in 0..2u32 {
                #[shared]
                let mut small: [u16; 16] = [0; 16];
                #[loop_partition(over_thread)]
                for i in 0..16usize {
                    small[i] = x[first + i] as u16;
                }
                barrier!();
                #[loop_partition(over_thread)]
                for i in 0..16usize {
                    of_both[i] += small[15 - i] as u32;
                }
            }
            for turn in 0..2u32 {
                #[shared]
                let mut large: [u64; 16] = [3; 16];
                #[loop_partition(over_thread)]
                for i in 0..16usize {
                    large[i] += (of_both[i] + turn) as u64;
                }
                barrier!();
                #[loop_partition(over_thread)]
                for i in 0..16usize {
                    y[first + i] += large[15 - i] as u32;
                }
            }
        }
    }
}

fn arrays_one_after_the_other(jit: &Jit) -> Outcome {
    let (x, n) = (numbers(64), 64);
    let (mut y, mut z) = (vec![0; n], vec![0; n]);
    let ((), report) = one_by_one.launch_reported(jit, &x, &mut y, n)?;
    one_by_one.sequential(&x, &mut z, n);
    assert_eq!(y, z);
    // 16 of 4 bytes, and 16 of 8, in whose place those of 2 are, too.
    assert_eq!(report.guidance[0].occupancy.shared, 64 + 128);
    Ok(())
}

/// An array beside a slice that is staged in a loop within.
#[kiln::offload]
fn beside(x: &[u32], w: &[u32], y: &mut [u32], n: usize) {
    #[kernel(tblock(2), thread(8))]
    {
        #[loop_partition(over_tblock)]
        for first in (0..n).step_by(8) {
            #[shared]
            let mut sums: [u32; 8] = [0; 8];
            #[loop_partition(over_thread)]
            for i in 0..8usize {
                let mut sum = 0;
                #[shared(copyin(w))]
                for part in 0..4usize {
                    sum += w[part * 8 + i] * x[first + i];
                }
                sums[i] = sum;
            }
            barrier!();
            #[loop_partition(over_thread)]
            for i in 0..8usize {
                y[first + i] = sums[7 - i];
            }
        }
    }
}

fn arrays_beside_staged_slices(jit: &Jit) -> Outcome {
    let (x, w, n) = (numbers(40), numbers(32), 40);
    let (mut y, mut z) = (vec![0; n], vec![0; n]);
    beside.launch(jit, &x, &w, &mut y, n)?;
    beside.sequential(&x, &w, &mut z, n);
    assert_eq!(y, z);
    Ok(())
}

/// Reads an array at an index of run time.
#[kiln::offload]
fn read_at(at: &[u32], y: &mut [u32]) {
    #[kernel(tblock(1), thread(4))]
    {
        #[shared]
        let mut held: [u32; 6] = [9; 6];
        #[loop_partition(over_tblock, over_thread)]
        for i in 0..y.len() {
            y[i] = held[at[i] as usize];
        }
    }
}

fn array_indices_are_checked(jit: &Jit) -> Outcome {
    let mut y = vec![0; 3];
    read_at.launch(jit, &[0, 5, 2], &mut y)?;
    assert_eq!(y, [9; 3]);
    let error = read_at.launch(jit, &[0, 6, 2], &mut y);
    let error = error.expect_err("it is out of bounds").to_string();
    assert!(error.contains("index 6"), "{error}");
    Ok(())
}

#[device_fn]
fn turned(x: &[u32], y: &mut [u32]) {
    marks::partition(1, 0);
    for first in 0..3usize {
        let tile = shared!([u32; 4]);
        *tile = [0; 4];
        marks::partition(0, 1);
        for i in 0..4usize {
            tile[i] = x[first * 4 + i];
        }
        barrier();
        marks::partition(0, 1);
        for i in 0..4usize {
            y[first * 4 + i] = tile[3 - i];
        }
    }
}

/// The sequential program, which one thread executes, has the arrays, too.
fn arrays_of_one_thread(jit: &Jit) -> Outcome {
    let program = Program::of(&DeviceFn::of::<turned>()?)?;
    let x = numbers(12);
    let wanted: Vec<u32> = x
        .chunks(4)
        .flat_map(|four| four.iter().rev())
        .copied()
        .collect();
    let (from, mut to) = (jit.upload(&x)?, jit.zeros::<u32>(12)?);
    jit.launch(&program.sequential()?, 1, 1, args!(&from, &mut to))?;
    assert_eq!(to.to_vec()?, wanted);
    for (blocks, threads) in [(1, 1), (2, 3), (5, 8)] {
        let schedule = program.schedule(&[blocks], &[threads]);
        program.verify(&schedule, &[Known::Length(12), Known::Length(12)])?;
        let scheduled = program.apply(&schedule)?;
        let mut to = jit.zeros::<u32>(12)?;
        let (grid, block) = (scheduled.grid(), scheduled.block());
        jit.launch(scheduled.kernel(), grid, block, args!(&from, &mut to))?;
        assert_eq!(to.to_vec()?, wanted, "{blocks} {threads}");
    }
    Ok(())
}
