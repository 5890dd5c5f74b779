//! Kernels whose threads work together: shared memory, barriers, atomics, warps, shapes of grids.

use kiln::prelude::*;

use super::{Outcome, chapter, exact};

chapter![
    shared_memory_and_barriers,
    dynamic_shared_memory_passed_to_a_function,
    atomics_of_rust,
    shared_memory_of_device_functions,
    warps,
    shuffles_of_tuples_and_generic_structs,
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

/// The value of the thread `by` before, around the block.
#[device_fn]
fn turned<T: Num>(value: T, by: usize) -> T {
    let tile = shared!([T; 128]);
    let (i, n) = (thread_idx().x, block_dim().x);
    barrier();
    tile[i] = value;
    barrier();
    tile[(i + n - by) % n]
}

/// The same of a function that is inlined: it has memory of its own in each place.
#[device_fn]
fn turned_by<F: Fn(usize) -> usize>(value: u32, by: F) -> u32 {
    let tile = shared!([u32; 128]);
    let (i, n) = (thread_idx().x, block_dim().x);
    tile[i] = value;
    barrier();
    tile[by(i) % n]
}

struct Turning;

#[device_fn]
impl Turning {
    fn once(value: u32) -> u32 {
        let last = shared!(u32);
        barrier();
        if thread_idx().x == block_dim().x - 1 {
            *last = value;
        }
        barrier();
        *last
    }
}

#[kernel]
fn turn_around(x: &[u32], out: &mut [f32], sums: &mut [u32]) {
    let i = thread_idx().x;
    let mut value = x[i];
    // One memory, used again and again, which takes barriers on both sides.
    for by in 1..4 {
        value += turned(value, by);
    }
    // That of another type is another.
    out[i] = turned(value as f32, 1) + turned(value as f32, 2);
    sums[i] = turned_by(value, |i| i + 1) + turned_by(value, |i| 3 * i) + Turning::once(value);
}

fn shared_memory_of_device_functions(jit: &Jit) -> Outcome {
    let jit = exact(jit);
    for n in [1, 32, 77, 128] {
        let host: Vec<u32> = (0..n as u32).map(|i| i * i % 71).collect();
        let (x, mut out, mut sums) = (
            jit.upload(&host)?,
            jit.zeros::<f32>(n)?,
            jit.zeros::<u32>(n)?,
        );
        jit.launch(&turn_around, 1, n as u32, args!(&x, &mut out, &mut sums))?;
        let at = |values: &[u32], i: usize, by: usize| values[(i + 4 * n - by) % n];
        let mut want = host;
        for by in 1..4 {
            want = (0..n).map(|i| want[i] + at(&want, i, by)).collect();
        }
        let floats = (0..n).map(|i| (at(&want, i, 1) + at(&want, i, 2)) as f32);
        let floats: Vec<f32> = floats.collect();
        assert_eq!(out.to_vec()?, floats, "{n} threads");
        let places = |i: usize| want[(i + 1) % n] + want[3 * i % n] + want[n - 1];
        assert_eq!(sums.to_vec()?, (0..n).map(places).collect::<Vec<_>>());
    }
    Ok(())
}

#[derive(Copy, Clone, Debug, PartialEq, KernelType)]
#[repr(C)]
struct Best<T> {
    value: T,
    at: u32,
}

/// The larger value, and where it is.
#[device_fn]
fn best<T: Num>(mut mine: Best<T>) -> Best<T> {
    for lanes in [16, 8, 4, 2, 1] {
        let other = shuffle_xor(FULL_MASK, mine, lanes, 32);
        if other.value > mine.value {
            mine = other;
        }
    }
    mine
}

#[kernel]
fn best_of_warps(x: &[f64], out: &mut [Best<f64>], pairs: &mut [u32]) {
    let i = global_id().x;
    let mine = best(Best {
        value: x[i],
        at: i as u32,
    });
    let (first, (second, third)) = shuffle_idx(
        FULL_MASK,
        (lane_id() as u8, (i as u64, [true, i % 2 == 0])),
        3,
        32,
    );
    out[i] = mine;
    pairs[i] = first as u32 + second as u32 + third[0] as u32 + third[1] as u32;
}

fn shuffles_of_tuples_and_generic_structs(jit: &Jit) -> Outcome {
    let x: Vec<f64> = (0..64).map(|i| f64::from(i * 29 % 64) * 0.5).collect();
    let (mut out, mut pairs) = (jit.zeros::<Best<f64>>(64)?, jit.zeros::<u32>(64)?);
    jit.launch(
        &best_of_warps,
        2,
        32,
        args!(&jit.upload(&x)?, &mut out, &mut pairs),
    )?;
    for (i, got) in out.to_vec()?.into_iter().enumerate() {
        let warp = i / 32 * 32..i / 32 * 32 + 32;
        let at = warp
            .max_by(|&a, &b| x[a].total_cmp(&x[b]))
            .expect("it has lanes");
        let want = Best {
            value: x[at],
            at: at as u32,
        };
        assert_eq!(got, want, "thread {i}");
    }
    // Of lane 3 of the warp, whose number is odd.
    let want = |i: u32| 3 + (i / 32 * 32 + 3) + 1;
    assert_eq!(pairs.to_vec()?, (0..64).map(want).collect::<Vec<_>>());
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
