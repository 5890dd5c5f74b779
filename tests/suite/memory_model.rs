//! What threads see of each other's writes: the guide's chapter on memory, case by case.

use kiln::prelude::*;

use super::{Outcome, chapter, exact};

chapter![
    values_are_read_again_however_they_are_reached,
    orderings_and_scopes,
    atomic_loads_of_what_nobody_writes,
    the_last_block_sees_all_parts,
    fences_of_each_scope_hand_over,
    blocks_wait_for_earlier_ones,
    flags_come_after_their_data,
    a_race_on_an_index_reaches_nothing_else,
];

#[kernel]
fn ordered(
    data: &mut [u32],
    flags: &mut [u32],
    wide: &mut [u64],
    float: &mut [f32],
    out: &mut [u32],
) {
    let t = thread_idx().x;
    data[t] = t as u32 + 1;
    atomic_add_with(&mut flags[0], 1, Ordering::AcqRel, Scope::Block);
    thread_fence_with(Ordering::Release, Scope::Block);
    thread_fence_with(Ordering::SeqCst, Scope::System);
    barrier();
    out[t] = atomic_load(&data[t], Ordering::Acquire, Scope::Block)
        + atomic_load(&flags[0], Ordering::SeqCst, Scope::Device);
    barrier();
    atomic_store(&mut data[t], 7, Ordering::Release, Scope::System);
    atomic_store(&mut float[0], 0.5, Ordering::SeqCst, Scope::Block);
    atomic_max_with(&mut wide[0], t as u64, Ordering::SeqCst, Scope::System);
    atomic_cas_with(&mut flags[1], 0, 9, Ordering::Acquire, Scope::Block);
    atomic_exchange_with(&mut flags[2], 3, Ordering::Release, Scope::Device);
}

fn orderings_and_scopes(jit: &Jit) -> Outcome {
    let jit = exact(jit);
    let (mut data, mut flags, mut out) = (jit.zeros(64)?, jit.zeros(3)?, jit.zeros(64)?);
    let (mut wide, mut float) = (jit.zeros(1)?, jit.zeros(1)?);
    ordered.launch(
        &jit,
        (1, 64),
        &mut data,
        &mut flags,
        &mut wide,
        &mut float,
        &mut out,
    )?;
    let want: Vec<u32> = (0..64).map(|t| t + 1 + 64).collect();
    assert_eq!(out.to_vec()?, want);
    assert_eq!(data.to_vec()?, [7; 64]);
    assert_eq!(flags.to_vec()?, [64, 9, 3]);
    assert_eq!((wide.to_vec()?, float.to_vec()?), (vec![63], vec![0.5]));
    Ok(())
}

/// Memory that the whole launch only reads, through `&` and through `&mut`, in global and shared memory.
#[kernel]
fn looked_at(x: &[u32], y: &mut [u64], flags: &[u8], out: &mut [u32]) {
    let t = thread_idx().x;
    let tile = shared!([u32; 64]);
    tile[t] = t as u32;
    barrier();
    let first = atomic_load(&x[t], Ordering::Relaxed, Scope::Device);
    let again = atomic_load(&x[63 - t], Ordering::SeqCst, Scope::System);
    let wide = atomic_load(&y[t], Ordering::Relaxed, Scope::Block) as u32;
    let flag = atomic_load(&flags[t], Ordering::Acquire, Scope::Device);
    let shared = atomic_load(&tile[63 - t], Ordering::Acquire, Scope::Block);
    out[t] = if flag == 1 { first + 2 * again } else { wide } + shared;
}

fn atomic_loads_of_what_nobody_writes(jit: &Jit) -> Outcome {
    let x = jit.upload(&(0..64).map(|n| n * 10).collect::<Vec<u32>>())?;
    let mut y = jit.upload(&(0..64).map(|n| n * 7).collect::<Vec<u64>>())?;
    let flags = jit.upload(&(0..64).map(|n| u8::from(n % 3 == 0)).collect::<Vec<u8>>())?;
    let mut out = jit.zeros::<u32>(64)?;
    looked_at.launch(jit, (1, 64), &x, &mut y, &flags, &mut out)?;
    let want = (0..64).map(|t| match t % 3 {
        0 => t * 10 + 2 * (63 - t) * 10 + 63 - t,
        _ => t * 7 + 63 - t,
    });
    assert_eq!(out.to_vec()?, want.collect::<Vec<u32>>());
    Ok(())
}

#[device_fn]
fn led(x: &mut [u32], t: usize) -> u32 {
    let before = x[0];
    barrier();
    if t == 1 {
        x[0] = before + 1;
    }
    barrier();
    x[0]
}

/// By a function, by a part of a slice, by a slice that is chosen as the kernel runs.
#[kernel]
fn carried_elsewhere(x: &mut [u32], y: &mut [u32], second: u32, out: &mut [u32]) {
    let t = thread_idx().x;
    let first = led(x, t);
    let part = &mut x[1..3];
    let again = led(part, t);
    let chosen = if second == 1 { y } else { x };
    let before = chosen[2];
    barrier();
    if t == 1 {
        chosen[2] = before + 10;
    }
    barrier();
    out[t] = first + 100 * again + 10_000 * chosen[2];
}

fn values_are_read_again_however_they_are_reached(jit: &Jit) -> Outcome {
    for second in [0u32, 1] {
        let (mut x, mut y) = (jit.upload(&[1u32, 2, 3])?, jit.upload(&[4u32, 5, 6])?);
        let mut out = jit.zeros::<u32>(64)?;
        carried_elsewhere.launch(jit, (1, 64), &mut x, &mut y, second, &mut out)?;
        let chosen = [13, 16][second as usize];
        assert_eq!(out.to_vec()?, [2 + 300 + 10_000 * chosen; 64]);
    }
    Ok(())
}

/// Every block writes its part and says so; who comes last reads the parts of all.
#[kernel]
fn last_arriver(parts: &mut [u32], arrived: &mut [u32], out: &mut [u32]) {
    let (t, block) = (thread_idx().x, block_idx().x);
    let last = shared!([u32; 1]);
    parts[block * block_dim().x + t] = (block * 1000 + t) as u32;
    barrier();
    if t == 0 {
        // For all that comes before the ticket, and all that comes after it.
        thread_fence_with(Ordering::AcqRel, Scope::Device);
        last[0] = atomic_add(&mut arrived[0], 1);
        thread_fence_with(Ordering::AcqRel, Scope::Device);
    }
    barrier();
    if last[0] as usize == grid_dim().x - 1 {
        let mut sum = 0;
        for i in (t..parts.len()).step_by(block_dim().x) {
            sum += parts[i];
        }
        out[t] = sum;
    }
}

fn the_last_block_sees_all_parts(jit: &Jit) -> Outcome {
    let (blocks, threads) = (37u32, 64u32);
    let mut parts = jit.zeros::<u32>((blocks * threads) as usize)?;
    let (mut arrived, mut out) = (jit.zeros::<u32>(1)?, jit.zeros::<u32>(threads as usize)?);
    last_arriver.launch(jit, (blocks, threads), &mut parts, &mut arrived, &mut out)?;
    let of = |t| (0..blocks).map(|block| block * 1000 + t).sum::<u32>();
    assert_eq!(out.to_vec()?, (0..threads).map(of).collect::<Vec<_>>());
    Ok(())
}

/// The thread of a block that comes last reads what all of them wrote, by fences of the block; the last block what all
/// blocks wrote, by fences of the system, and the host what that wrote. All of it is in global memory, as NVIDIA's
/// checker of races knows no order of shared memory but that of barriers.
#[kernel]
fn last_by_fences(
    x: &[u32],
    of_threads: &mut [u32],
    parts: &mut [u32],
    arrived: &mut [u32],
    out: &mut [u32],
) {
    let here = shared!([u32; 1]);
    let (t, block) = (thread_idx().x, block_idx().x);
    if t == 0 {
        here[0] = 0;
    }
    barrier();
    of_threads[global_id().x] = x[global_id().x];
    thread_fence_block();
    if atomic_add_with(&mut here[0], 1, Ordering::Relaxed, Scope::Block) == 63 {
        thread_fence_block();
        let mut sum = 0;
        for i in 0..64 {
            sum += of_threads[64 * block + i];
        }
        parts[block] = sum;
        thread_fence_system();
        let before = atomic_add_with(&mut arrived[0], 1, Ordering::Relaxed, Scope::System);
        if before as usize == grid_dim().x - 1 {
            thread_fence_system();
            let mut all = 0;
            for i in 0..parts.len() {
                all += parts[i];
            }
            out[0] = all;
            thread_fence_system();
            atomic_store(&mut out[1], 1, Ordering::Relaxed, Scope::System);
        }
    }
}

fn fences_of_each_scope_hand_over(jit: &Jit) -> Outcome {
    let blocks = 37u32;
    let host: Vec<u32> = (0..blocks * 64).map(|i| i * 5 + 1).collect();
    let x = jit.upload(&host)?;
    let mut own = jit.zeros::<u32>(host.len())?;
    let mut parts = jit.zeros::<u32>(blocks as usize)?;
    let (mut arrived, mut out) = (jit.zeros::<u32>(1)?, jit.zeros::<u32>(2)?);
    let config = (blocks, 64);
    last_by_fences.launch(
        jit,
        config,
        &x,
        &mut own,
        &mut parts,
        &mut arrived,
        &mut out,
    )?;
    assert_eq!(out.to_vec()?, [host.iter().sum(), 1]);
    Ok(())
}

/// Each block adds to what the block before it has handed over.
#[kernel]
fn chain(sums: &mut [u32], ready: &mut [u32]) {
    let (t, block) = (thread_idx().x, block_idx().x);
    let before = shared!([u32; 1]);
    if t == 0 {
        if block == 0 {
            before[0] = 0;
        } else {
            while atomic_load(&ready[block - 1], Ordering::Acquire, Scope::Device) == 0 {}
            before[0] = sums[block - 1];
        }
        sums[block] = before[0] + block as u32;
        atomic_store(&mut ready[block], 1, Ordering::Release, Scope::Device);
    }
}

fn blocks_wait_for_earlier_ones(jit: &Jit) -> Outcome {
    let blocks = 500u32;
    let (mut sums, mut ready) = (jit.zeros::<u32>(500)?, jit.zeros::<u32>(500)?);
    chain.launch(jit, (blocks, 32), &mut sums, &mut ready)?;
    let want: Vec<u32> = (0..blocks).map(|n| n * (n + 1) / 2).collect();
    assert_eq!(sums.to_vec()?, want);
    Ok(())
}

/// A flag that is not waited for: unseen, or the data is right.
#[kernel]
fn unseen_or_right(data: &mut [u32], flags: &mut [u32], wrong: &mut [u32]) {
    let (i, n) = (global_id().x, global_size().x);
    data[i] = i as u32 * 3 + 1;
    atomic_store(&mut flags[i], 1, Ordering::Release, Scope::Device);
    for step in 1..8 {
        let other = (i + step * 37) % n;
        if atomic_load(&flags[other], Ordering::Acquire, Scope::Device) == 1
            && data[other] != other as u32 * 3 + 1
        {
            atomic_add(&mut wrong[0], 1);
        }
    }
}

fn flags_come_after_their_data(jit: &Jit) -> Outcome {
    let n = 64 * 128;
    let (mut data, mut flags) = (jit.zeros::<u32>(n)?, jit.zeros::<u32>(n)?);
    let mut wrong = jit.zeros::<u32>(1)?;
    unseen_or_right.launch(jit, (64, 128), &mut data, &mut flags, &mut wrong)?;
    assert_eq!(wrong.to_vec()?, [0]);
    Ok(())
}

/// A race on an index: any element may be read, none outside.
#[kernel]
fn racing_index(index: &mut [u32], x: &[u32], out: &mut [u32]) {
    let i = global_id().x;
    for round in 0..50 {
        index[0] = if (i + round) % 2 == 0 {
            7
        } else {
            4_000_000_000
        };
        let at = index[0] as usize;
        if at < x.len() {
            out[i] = x[at];
        }
    }
}

fn a_race_on_an_index_reaches_nothing_else(jit: &Jit) -> Outcome {
    let mut index = jit.upload(&[7u32])?;
    let (x, mut out) = (jit.upload(&[5u32; 8])?, jit.upload(&[5u32; 4096])?);
    racing_index.launch(jit, (32, 128), &mut index, &x, &mut out)?;
    assert_eq!(out.to_vec()?, [5; 4096]);
    Ok(())
}
