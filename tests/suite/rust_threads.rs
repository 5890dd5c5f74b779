//! Kernels whose threads work together: shared memory, barriers, atomics, warps, shapes of grids.

use kiln::prelude::*;

use super::{Outcome, chapter, exact};

chapter![
    shared_memory_and_barriers,
    dynamic_shared_memory_passed_to_a_function,
    atomics_of_rust,
    warps,
    three_dimensions
];

#[kernel]
fn reverse(x: &mut [f32]) {
    let tile = shared!([f32; 256]);
    let i = thread_idx().x;
    tile[i] = x[i];
    barrier();
    x[i] = tile[255 - i];
}

fn shared_memory_and_barriers(jit: &Jit) -> Outcome {
    let jit = exact(jit);
    let mut x = jit.upload(&(0..256).map(|i| i as f32).collect::<Vec<_>>())?;
    jit.launch(&reverse, 1, 256, args!(&mut x))?;
    let want: Vec<f32> = (0..256).rev().map(|i| i as f32).collect();
    assert_eq!(x.to_vec()?, want);
    Ok(())
}

#[device_fn]
fn add_up(tile: &mut [i32], thread: usize) -> i32 {
    let mut half = tile.len() / 2;
    while half > 0 {
        if thread < half {
            tile[thread] += tile[thread + half];
        }
        barrier();
        half /= 2;
    }
    tile[0]
}

#[kernel(launch_bounds(128))]
fn dynamic_sum(x: &[i32], out: &mut [i32]) {
    let tile = dynamic_shared::<i32>();
    let thread = thread_idx().x;
    tile[thread] = x[global_id().x];
    barrier();
    let sum = add_up(tile, thread);
    if thread == 0 {
        out[block_idx().x] = sum;
    }
}

fn dynamic_shared_memory_passed_to_a_function(jit: &Jit) -> Outcome {
    let jit = exact(jit);
    let x = jit.upload(&(0..512).collect::<Vec<i32>>())?;
    let mut out = jit.zeros::<i32>(4)?;
    let config = LaunchConfig::new(4, 128).shared_bytes(128 * 4);
    jit.launch_with(&dynamic_sum, config, args!(&x, &mut out))?;
    let want: Vec<i32> = (0..4).map(|b| (b * 128..b * 128 + 128).sum()).collect();
    assert_eq!(out.to_vec()?, want);
    Ok(())
}

#[kernel]
fn histogram(x: &[u8], bins: &mut [u32]) {
    let local = shared!([u32; 256]);
    local[thread_idx().x] = 0;
    barrier();
    for i in (global_id().x..x.len()).step_by(global_size().x) {
        atomic_add(&mut local[x[i] as usize], 1);
    }
    barrier();
    let bin = thread_idx().x;
    atomic_add(&mut bins[bin], local[bin]);
}

#[kernel]
fn extremes(x: &[i32], out: &mut [i32]) {
    let v = x[global_id().x];
    atomic_min(&mut out[0], v);
    atomic_max(&mut out[1], v);
    atomic_or(&mut out[2], 1 << (v & 7));
    atomic_xor(&mut out[3], v);
    atomic_and(&mut out[4], v | !15);
    let old = atomic_cas(&mut out[5], 0, 1);
    if old == 0 {
        atomic_exchange(&mut out[6], v + 1000);
    }
    thread_fence();
}

fn atomics_of_rust(jit: &Jit) -> Outcome {
    let jit = exact(jit);
    let data: Vec<u8> = (0..5000u32).map(|i| (i * i % 251) as u8).collect();
    let x = jit.upload(&data)?;
    let mut bins = jit.zeros::<u32>(256)?;
    jit.launch(&histogram, 3, 256, args!(&x, &mut bins))?;
    let mut want = vec![0u32; 256];
    data.iter().for_each(|&v| want[usize::from(v)] += 1);
    assert_eq!(bins.to_vec()?, want);

    let x = jit.upload(&(-32..32).collect::<Vec<i32>>())?;
    let mut out = jit.upload(&[0, 0, 0, 0, -1, 0, 0])?;
    jit.launch(&extremes, 2, 32, args!(&x, &mut out))?;
    let got = out.to_vec()?;
    assert_eq!(got[..6], [-32, 31, 255, 0, -16, 1]);
    assert!((968..1032).contains(&got[6]));
    Ok(())
}

#[kernel]
fn warp_sum(x: &[f32], out: &mut [f32], counts: &mut [u32]) {
    let i = global_id().x;
    let mut sum = x[i];
    let mut delta = 16;
    while delta > 0 {
        sum += shuffle_down(FULL_MASK, sum, delta, 32);
        delta /= 2;
    }
    let even = ballot(FULL_MASK, lane_id() % 2 == 0);
    let total = warp_reduce_add(FULL_MASK, lane_id());
    if lane_id() == 0 {
        out[i / 32] = sum;
        counts[i / 32] = even.wrapping_add(total) + warp_any(1, true) as u32;
    }
}

fn warps(jit: &Jit) -> Outcome {
    let jit = exact(jit);
    let x = jit.upload(&(0..128).map(|i| i as f32).collect::<Vec<_>>())?;
    let (mut out, mut counts) = (jit.zeros::<f32>(4)?, jit.zeros::<u32>(4)?);
    jit.launch(&warp_sum, 2, 64, args!(&x, &mut out, &mut counts))?;
    let want: Vec<f32> = (0..4)
        .map(|w| (w * 32..w * 32 + 32).sum::<i32>() as f32)
        .collect();
    assert_eq!(out.to_vec()?, want);
    assert_eq!(counts.to_vec()?, vec![0x5555_5555 + 496 + 1; 4]);
    Ok(())
}

#[kernel]
fn shape(out: &mut [u32]) {
    let (g, b) = (global_id(), block_idx());
    let size = global_size();
    let at = (g.z * size.y + g.y) * size.x + g.x;
    let dim = block_dim();
    out[at] = (b.x + b.y * 10 + b.z * 100) as u32
        + (thread_idx().x + thread_idx().y + thread_idx().z) as u32 * 1000
        + (dim.x * dim.y * dim.z) as u32 * 100_000
        + (grid_dim().x + grid_dim().y + grid_dim().z) as u32 * 10_000;
}

fn three_dimensions(jit: &Jit) -> Outcome {
    let jit = exact(jit);
    let mut out = jit.zeros::<u32>(8 * 6 * 2)?;
    jit.launch(&shape, (2, 3, 1), (4, 2, 2), args!(&mut out))?;
    let out = out.to_vec()?;
    for (at, got) in out.into_iter().enumerate() {
        let (x, y, z) = (at % 8, at / 8 % 6, at / 48);
        let want = x / 4 + y / 2 * 10 + (x % 4 + y % 2 + z) * 1000 + 16 * 100_000 + 60_000;
        assert_eq!(got, want as u32, "at {x} {y} {z}");
    }
    Ok(())
}
