//! What threads see of what others have written to global memory: kernels without races, whose
//! threads talk through it over barriers, warp synchronization, fences and atomics. Each reads, before
//! another thread writes, what it reads again afterwards: a compiler that takes a slice for its own
//! thread's alone keeps the first value.

use kiln::prelude::*;

use super::{Outcome, chapter};

chapter![
    over_barriers,
    over_warp_synchronization,
    loops_that_others_end,
    through_variables,
    through_functions,
    through_arrays_of_structs,
    over_fences_and_atomics,
    stores_that_others_read,
    neighbours_round_by_round
];

/// Shapes of blocks: less than a warp, a warp, some of the next, many.
const BLOCKS: [usize; 4] = [7, 32, 40, 256];

#[kernel]
fn over_barrier(x: &mut [u32], out: &mut [u32]) {
    let t = thread_idx().x;
    let before = x[0];
    barrier();
    if t == 1 {
        x[0] = before + 1;
    }
    barrier();
    out[t] = x[0];
}

fn over_barriers(jit: &Jit) -> Outcome {
    for threads in BLOCKS {
        let (mut x, mut out) = (jit.upload(&[5u32])?, jit.zeros::<u32>(threads)?);
        over_barrier.launch(jit, (1, threads as u32), &mut x, &mut out)?;
        assert_eq!(out.to_vec()?, vec![6; threads]);
    }
    Ok(())
}

#[kernel]
fn over_warp_sync(x: &mut [u32], out: &mut [u32]) {
    let t = thread_idx().x;
    let warp = t / 32;
    let before = x[warp];
    warp_sync(FULL_MASK);
    if t % 32 == 1 {
        x[warp] = before + 1;
    }
    warp_sync(FULL_MASK);
    out[t] = x[warp];
}

fn over_warp_synchronization(jit: &Jit) -> Outcome {
    let (mut x, mut out) = (jit.upload(&[5u32, 50])?, jit.zeros::<u32>(64)?);
    over_warp_sync.launch(jit, (1, 64), &mut x, &mut out)?;
    assert_eq!(out.to_vec()?, [[6; 32], [51; 32]].concat());
    Ok(())
}

#[kernel]
fn count_down(x: &mut [u32], rounds: &mut [u32]) {
    let t = thread_idx().x;
    let mut n = 0;
    while x[0] > 0 {
        barrier();
        if t == 0 {
            x[0] -= 1;
        }
        barrier();
        n += 1;
    }
    rounds[t] = n;
}

fn loops_that_others_end(jit: &Jit) -> Outcome {
    for threads in BLOCKS {
        let (mut x, mut rounds) = (jit.upload(&[5u32])?, jit.zeros::<u32>(threads)?);
        count_down.launch(jit, (1, threads as u32), &mut x, &mut rounds)?;
        assert_eq!(rounds.to_vec()?, vec![5; threads]);
    }
    Ok(())
}

#[kernel]
fn in_turn(x: &mut [u32], out: &mut [u32]) {
    let t = thread_idx().x;
    let mut seen = x[0];
    let mut trace = 0;
    for round in 0..4 {
        barrier();
        if t == round {
            x[0] = seen * 3 + 1;
        }
        barrier();
        seen = x[0];
        trace = trace * 7 + seen;
    }
    out[t] = trace;
}

fn through_variables(jit: &Jit) -> Outcome {
    for threads in BLOCKS {
        let (mut x, mut out) = (jit.upload(&[2u32])?, jit.zeros::<u32>(threads)?);
        in_turn.launch(jit, (1, threads as u32), &mut x, &mut out)?;
        let (mut seen, mut trace) = (2, 0);
        for _ in 0..4 {
            seen = seen * 3 + 1;
            trace = trace * 7 + seen;
        }
        assert_eq!(out.to_vec()?, vec![trace; threads]);
    }
    Ok(())
}

#[device_fn]
fn bump(x: &mut [u32], t: usize, who: usize) -> u32 {
    let before = x[0];
    barrier();
    if t == who {
        x[0] = before + 1;
    }
    barrier();
    x[0]
}

#[device_fn]
fn bump_twice(x: &mut [u32], t: usize) -> u32 {
    bump(x, t, 0) + 100 * bump(x, t, 1)
}

#[kernel]
fn by_calls(x: &mut [u32], out: &mut [u32]) {
    let t = thread_idx().x;
    let first = bump_twice(x, t);
    out[t] = first + 10_000 * bump(x, t, 2);
}

fn through_functions(jit: &Jit) -> Outcome {
    for threads in BLOCKS {
        let (mut x, mut out) = (jit.upload(&[4u32])?, jit.zeros::<u32>(threads)?);
        by_calls.launch(jit, (1, threads as u32), &mut x, &mut out)?;
        assert_eq!(out.to_vec()?, vec![5 + 600 + 70_000; threads]);
    }
    Ok(())
}

#[derive(Clone, Copy, Debug, PartialEq, KernelType)]
#[repr(C)]
struct Sample {
    level: f32,
    owner: u32,
}

#[kernel]
fn hand_on(samples: &mut [Sample], out: &mut [f32]) {
    let t = thread_idx().x;
    let next = (t + 1) % block_dim().x;
    let before = samples[next].level;
    barrier();
    samples[t].level = before + 1.0;
    samples[t].owner = next as u32;
    barrier();
    out[t] = samples[next].level + samples[next].owner as f32 * 1000.0;
}

fn through_arrays_of_structs(jit: &Jit) -> Outcome {
    for threads in BLOCKS {
        let sample = |i: usize| Sample {
            level: i as f32,
            owner: 0,
        };
        let host: Vec<Sample> = (0..threads).map(sample).collect();
        let (mut samples, mut out) = (jit.upload(&host)?, jit.zeros::<f32>(threads)?);
        hand_on.launch(jit, (1, threads as u32), &mut samples, &mut out)?;
        let after = |t: usize| (t + 2) % threads;
        let want = (0..threads).map(|t| (after(t) + 1) as f32 + after(t) as f32 * 1000.0);
        assert_eq!(out.to_vec()?, want.collect::<Vec<_>>());
    }
    Ok(())
}

#[kernel]
fn last_to_arrive(data: &mut [u32], arrived: &mut [u32], out: &mut [u32]) {
    let t = thread_idx().x;
    let n = block_dim().x;
    let next = (t + 1) % n;
    let before = data[next];
    barrier();
    data[t] = t as u32 + 100;
    thread_fence();
    if atomic_add(&mut arrived[0], 1) == n as u32 - 1 {
        thread_fence();
        out[0] = before;
        out[1] = data[next];
        out[2] = next as u32;
    }
}

fn over_fences_and_atomics(jit: &Jit) -> Outcome {
    for threads in BLOCKS {
        let mut data = jit.upload(&vec![3u32; threads])?;
        let (mut arrived, mut out) = (jit.zeros::<u32>(1)?, jit.zeros::<u32>(3)?);
        let shape = (1, threads as u32);
        last_to_arrive.launch(jit, shape, &mut data, &mut arrived, &mut out)?;
        let out = out.to_vec()?;
        assert_eq!(out[..2], [3, out[2] + 100]);
    }
    Ok(())
}

#[kernel]
fn overwritten(x: &mut [u32], out: &mut [u32]) {
    let t = thread_idx().x;
    if t == 0 {
        x[0] = 7;
    }
    barrier();
    if t == 1 {
        out[0] = x[0];
    }
    barrier();
    if t == 0 {
        x[0] = 9;
    }
}

fn stores_that_others_read(jit: &Jit) -> Outcome {
    for threads in BLOCKS {
        let (mut x, mut out) = (jit.zeros::<u32>(1)?, jit.zeros::<u32>(1)?);
        overwritten.launch(jit, (1, threads as u32), &mut x, &mut out)?;
        assert_eq!([x.to_vec()?[0], out.to_vec()?[0]], [9, 7]);
    }
    Ok(())
}

#[kernel]
fn smooth(x: &mut [i32], out: &mut [i32]) {
    let t = thread_idx().x;
    let n = block_dim().x;
    let (left, right) = ((t + n - 1) % n, (t + 1) % n);
    for _ in 0..5 {
        let next = x[left] - 2 * x[t] + x[right];
        barrier();
        x[t] = next;
        barrier();
    }
    out[t] = x[left] + x[right];
}

fn neighbours_round_by_round(jit: &Jit) -> Outcome {
    for threads in BLOCKS {
        let mut host: Vec<i32> = (0..threads).map(|i| (i * i % 17) as i32).collect();
        let (mut x, mut out) = (jit.upload(&host)?, jit.zeros::<i32>(threads)?);
        smooth.launch(jit, (1, threads as u32), &mut x, &mut out)?;
        let beside =
            |host: &[i32], t: usize| (host[(t + threads - 1) % threads], host[(t + 1) % threads]);
        for _ in 0..5 {
            let next = |t| beside(&host, t).0 - 2 * host[t] + beside(&host, t).1;
            host = (0..threads).map(next).collect();
        }
        let want = (0..threads).map(|t| beside(&host, t).0 + beside(&host, t).1);
        assert_eq!(out.to_vec()?, want.collect::<Vec<_>>());
    }
    Ok(())
}
