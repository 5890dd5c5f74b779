//! Named barriers: some warps of a block wait for each other, and one comes without waiting. What is written before is seen
//! behind, in shared memory and through slices that no other parameter reaches.

use kiln::prelude::*;

use super::{Outcome, chapter};

chapter![
    one_warp_produces_what_others_consume,
    pairs_of_warps_have_barriers_of_their_own,
    a_barrier_is_used_again_and_again,
    ended_lanes_and_incomplete_warps_count_as_warps,
    what_was_written_is_read_again,
    barriers_of_the_builder,
];

/// Two buffers, which a warp fills in turn and three warps read: a pair of barriers for each.
#[kernel]
fn produce(rounds: u32, sums: &mut [u32]) {
    let tiles = shared!([[u32; 32]; 2]);
    let (thread, lane) = (thread_idx().x, thread_idx().x % 32);
    if thread < 32 {
        for round in 0..rounds {
            let buffer = round % 2;
            if round > 1 {
                barrier_sync(3 + buffer, 128);
            }
            tiles[buffer as usize][lane] = round * 100 + lane as u32;
            barrier_arrive(1 + buffer, 128);
        }
    } else {
        for round in 0..rounds {
            let buffer = round % 2;
            barrier_sync(1 + buffer, 128);
            let i = block_idx().x * 96 + thread - 32;
            sums[i] = sums[i] * 3 + tiles[buffer as usize][31 - lane];
            if round + 2 < rounds {
                barrier_arrive(3 + buffer, 128);
            }
        }
    }
}

fn one_warp_produces_what_others_consume(jit: &Jit) -> Outcome {
    for rounds in [1, 2, 3, 8] {
        let mut sums = jit.zeros::<u32>(2 * 96)?;
        produce.launch(jit, (2, 128), rounds, &mut sums)?;
        let sum = |lane: u32| {
            (0..rounds).fold(0u32, |sum, round| {
                sum.wrapping_mul(3) + round * 100 + 31 - lane
            })
        };
        let wanted: Vec<u32> = (0..2 * 96).map(|i| sum(i % 32)).collect();
        assert_eq!(sums.to_vec()?, wanted, "{rounds} rounds");
    }
    Ok(())
}

/// Each pair of warps turns its numbers round, and the pairs go different ways as often as their number says.
#[kernel]
fn turn_round(x: &mut [u32]) {
    let values = shared!([u32; 256]);
    let thread = thread_idx().x;
    let (pair, place) = (thread / 64, thread % 64);
    values[thread] = x[thread];
    for _ in 0..=pair {
        barrier_sync(1 + pair as u32, 64);
        let other = values[pair * 64 + 63 - place];
        barrier_sync(1 + pair as u32, 64);
        values[thread] = other + 1;
    }
    barrier();
    x[thread] = values[255 - thread];
}

fn pairs_of_warps_have_barriers_of_their_own(jit: &Jit) -> Outcome {
    let start: Vec<u32> = (0..256).map(|i| i * 7).collect();
    let mut x = jit.upload(&start)?;
    turn_round.launch(jit, (1, 256), &mut x)?;
    let mut wanted = start;
    for (pair, numbers) in wanted.chunks_mut(64).enumerate() {
        for _ in 0..=pair {
            numbers.reverse();
            numbers.iter_mut().for_each(|x| *x += 1);
        }
    }
    wanted.reverse();
    assert_eq!(x.to_vec()?, wanted);
    Ok(())
}

/// Two warps add to one number in turn, by one barrier.
#[kernel]
fn in_turn(x: &mut [u32], rounds: u32) {
    let (sum, thread) = (shared!(u32), thread_idx().x);
    if thread < 64 {
        if thread == 0 {
            *sum = 0;
        }
        barrier_sync(15, 64);
        for round in 0..rounds {
            if thread as u32 == round % 64 {
                *sum = *sum * 2 + round;
            }
            barrier_sync(15, 64);
        }
        x[thread] = *sum;
    } else {
        x[thread] = barrier_free(thread as u32);
    }
    barrier();
    x[thread] += *sum;
}

#[device_fn]
fn barrier_free(x: u32) -> u32 {
    x * x
}

fn a_barrier_is_used_again_and_again(jit: &Jit) -> Outcome {
    let mut x = jit.zeros::<u32>(96)?;
    in_turn.launch(jit, (1, 96), &mut x, 70)?;
    let sum = (0..70u32).fold(0u32, |sum, round| sum.wrapping_mul(2).wrapping_add(round));
    let wanted = |i: u32| sum.wrapping_add(if i < 64 { sum } else { i * i });
    assert_eq!(x.to_vec()?, (0..96).map(wanted).collect::<Vec<_>>());
    Ok(())
}

/// Of the first warp each third thread ends, and of the last there are eight.
#[kernel]
fn some_end(x: &mut [u32]) {
    let values = shared!([u32; 72]);
    let thread = thread_idx().x;
    values[thread] = 1000 + thread as u32;
    if thread < 32 && thread % 3 == 0 {
        return;
    }
    if thread < 32 || thread >= 64 {
        barrier_sync(2, 64);
        x[thread] = values[if thread < 32 {
            64 + thread % 8
        } else {
            3 * thread - 191
        }];
    } else {
        x[thread] = 5;
    }
}

fn ended_lanes_and_incomplete_warps_count_as_warps(jit: &Jit) -> Outcome {
    let mut x = jit.zeros::<u32>(72)?;
    some_end.launch(jit, (1, 72), &mut x)?;
    let wanted = |i: u32| match i {
        0..32 if i.is_multiple_of(3) => 0,
        0..32 => 1064 + i % 8,
        32..64 => 5,
        _ => 1000 + 3 * i - 191,
    };
    assert_eq!(x.to_vec()?, (0..72).map(wanted).collect::<Vec<_>>());
    Ok(())
}

/// What another thread has written meanwhile is read, though no other parameter reaches the slice.
#[kernel]
fn again(x: &mut [u32], y: &mut [u32]) {
    let i = thread_idx().x;
    let before = x[63 - i];
    barrier_sync(4, 64);
    x[i] = before + 10;
    barrier_arrive(5, 96 + 32);
    barrier_sync(4, 64);
    y[i] = x[63 - i] + x[i];
    barrier_arrive(5, 96 + 32);
}

fn what_was_written_is_read_again(jit: &Jit) -> Outcome {
    let start: Vec<u32> = (0..64).map(|i| i * i).collect();
    let (mut x, mut y) = (jit.upload(&start)?, jit.zeros::<u32>(64)?);
    again.launch(jit, (1, 64), &mut x, &mut y)?;
    let (i, other) = (0..64u32, |i: u32| 63 - i);
    let wanted: Vec<u32> = i.map(|i| i * i + other(i) * other(i) + 20).collect();
    assert_eq!(y.to_vec()?, wanted);
    Ok(())
}

fn barriers_of_the_builder(jit: &Jit) -> Outcome {
    let kernel = Kernel::build("named", |k| {
        let (out, thread) = (k.slice_mut("out", Type::U32), k.thread_idx().x());
        let tile = k.shared_array("tile", Type::U32, 32);
        k.if_(thread.lt(32), || {
            tile.at(thread).set(thread * 2);
            k.barrier_arrive(7, 64);
        })
        .else_(|| {
            k.barrier_sync(7, 64);
            out.at(thread - 32).set(tile.at(thread - 32));
        });
    })?;
    let mut out = jit.zeros::<u32>(32)?;
    jit.launch(&kernel, 1, 64, args!(&mut out))?;
    assert_eq!(out.to_vec()?, (0..32).map(|i| i * 2).collect::<Vec<u32>>());
    Ok(())
}
