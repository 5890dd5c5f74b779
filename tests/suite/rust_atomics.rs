//! Atomics on every type that has them, in memory of each kind, by threads that come at the same time.

use half::{bf16, f16};
use kiln::core::ir::Ordering as IrOrdering;
use kiln::prelude::*;

use super::{Outcome, chapter};

chapter![
    integers_of_16_bits,
    integers_of_8_bits,
    bytes_beside_others,
    bytes_in_the_builder,
    halves,
    extremes_of_floats,
    differences_and_rounds,
    rounds_in_shared_memory,
    places_of_every_kind,
    generic_types,
    held_by_several,
    rounds_held_by_several,
    vectors_lane_by_lane,
    vectors_in_shared_memory,
    subnormal_sums,
];

const BLOCKS: u32 = 3;
const THREADS: u32 = 40;
const ALL: u32 = BLOCKS * THREADS;

#[kernel]
fn change_short(cells: &mut [u16], signed: &mut [i16], seen: &mut [u32]) {
    let i = global_id().x as u16;
    let old = atomic_add(&mut cells[1], 7);
    atomic_or(&mut seen[old as usize / 7 / 32], 1 << (old as u32 / 7 % 32));
    atomic_sub(&mut cells[2], i);
    atomic_and(&mut cells[3], !(1 << (i % 16)));
    atomic_or(&mut cells[4], 1 << (i % 13));
    atomic_xor(&mut cells[5], i * 31);
    atomic_min(&mut cells[6], 500 - i);
    atomic_max(&mut cells[7], i * 3);
    atomic_min_with(&mut signed[0], 5 - i as i16, Ordering::AcqRel, Scope::Block);
    atomic_max(&mut signed[1], i as i16 - 300);
    if atomic_cas(&mut signed[2], -1, i as i16) == -1 {
        atomic_exchange(&mut cells[8], i);
    }
}

fn integers_of_16_bits(jit: &Jit) -> Outcome {
    // Cells 0 and 9 are neighbours that have to stay.
    let mut cells = jit.upload(&[9u16, 0, 0, 0xffff, 0, 0, 400, 5, 0xffff, 9, 1])?;
    let (mut signed, mut seen) = (jit.upload(&[100i16, -400, -1])?, jit.zeros(4)?);
    change_short.launch(jit, (BLOCKS, THREADS), &mut cells, &mut signed, &mut seen)?;
    let all = 0..ALL as u16;
    let difference = all.clone().fold(0u16, u16::wrapping_sub);
    let flipped = all.clone().fold(0, |bits, i| bits ^ (i * 31));
    let (cells, signed) = (cells.to_vec()?, signed.to_vec()?);
    let wanted = [9, 7 * 120, difference, 0, 0x1fff, flipped, 381, 357];
    assert_eq!(cells[..8], wanted);
    assert_eq!(cells[9..], [9, 1]);
    assert_eq!(signed[..2], [5 - 119, 119 - 300]);
    assert!(all.contains(&cells[8]) && signed[2] as u16 == cells[8]);
    // Each saw a sum of its own.
    assert_eq!(
        seen.to_vec()?,
        [u32::MAX, u32::MAX, u32::MAX, (1 << 24) - 1]
    );
    Ok(())
}

#[kernel]
fn change_bytes(cells: &mut [u8], signed: &mut [i8], seen: &mut [u32], sums: &mut [u8]) {
    let tile = shared!([u8; 5]);
    let (i, thread) = (global_id().x as u8, thread_idx().x);
    if thread < 5 {
        tile[thread] = 10 * thread as u8;
    }
    barrier();
    let old = atomic_add(&mut cells[1], 2);
    atomic_or(&mut seen[old as usize / 2 / 32], 1 << (old as u32 / 2 % 32));
    atomic_sub(&mut cells[2], i);
    atomic_and(&mut cells[3], !(1 << (i % 8)));
    atomic_or(&mut cells[4], 1 << (i % 5));
    atomic_xor(&mut cells[5], i.wrapping_mul(31));
    atomic_min(&mut cells[6], 200 - i);
    atomic_max(&mut cells[7], i);
    atomic_min_with(&mut signed[0], 5 - i as i8, Ordering::AcqRel, Scope::Block);
    atomic_max_with(
        &mut signed[1],
        i as i8 - 100,
        Ordering::SeqCst,
        Scope::System,
    );
    if atomic_cas(&mut signed[2], -1, i as i8) == -1 {
        atomic_exchange(&mut cells[8], i);
    }
    // Until nobody comes between.
    let shared = atomics(cells);
    let mut seen = shared.load(10, Ordering::Relaxed, Scope::Device);
    loop {
        let found = shared.cas_with(
            10,
            seen,
            seen.wrapping_mul(3),
            Ordering::AcqRel,
            Scope::Device,
        );
        if found == seen {
            break;
        }
        seen = found;
    }
    atomic_add(&mut tile[1 + 2 * (thread % 2)], 1);
    barrier();
    if thread < 5 {
        sums[5 * block_idx().x + thread] = tile[thread];
    }
}

fn integers_of_8_bits(jit: &Jit) -> Outcome {
    // Cells 0 and 9 are neighbours that have to stay.
    let mut cells = jit.upload(&[9u8, 0, 0, 0xff, 0, 0, 250, 5, 0xff, 9, 1])?;
    let (mut signed, mut seen) = (jit.upload(&[100i8, -120, -1])?, jit.zeros(4)?);
    let mut sums = jit.zeros(5 * BLOCKS as usize)?;
    change_bytes.launch(
        jit,
        (BLOCKS, THREADS),
        &mut cells,
        &mut signed,
        &mut seen,
        &mut sums,
    )?;
    let all = 0..ALL as u8;
    let difference = all.clone().fold(0u8, u8::wrapping_sub);
    let flipped = all.clone().fold(0u8, |bits, i| bits ^ i.wrapping_mul(31));
    let (cells, signed) = (cells.to_vec()?, signed.to_vec()?);
    assert_eq!(cells[..8], [9, 240, difference, 0, 0x1f, flipped, 81, 119]);
    let power = all.clone().fold(1u8, |power, _| power.wrapping_mul(3));
    assert_eq!(cells[9..], [9, power]);
    assert_eq!(signed[..2], [5 - 119, 119 - 100]);
    assert!(all.contains(&cells[8]) && signed[2] as u8 == cells[8]);
    // Each saw a sum of its own.
    assert_eq!(
        seen.to_vec()?,
        [u32::MAX, u32::MAX, u32::MAX, (1 << 24) - 1]
    );
    assert_eq!(sums.to_vec()?, [0, 30, 20, 50, 40].repeat(BLOCKS as usize));
    Ok(())
}

/// Of each word a thread writes two bytes as it likes, two change a third together, and the fourth stays.
#[kernel]
fn beside(bytes: &mut [u8], counts: &mut [u32]) {
    let i = global_id().x;
    for turn in 0..50u8 {
        bytes[4 * i] = turn;
        let next = 4 * ((i + 1) % global_size().x);
        let before = [
            atomic_add(&mut bytes[4 * i + 1], 1),
            atomic_add(&mut bytes[next + 1], 1),
        ];
        counts[i] += (before[0] > 2 * turn + 51 || before[1] > 2 * turn + 51) as u32;
        bytes[4 * i + 3] = bytes[4 * i] + 100;
    }
}

fn bytes_beside_others(jit: &Jit) -> Outcome {
    let mut bytes = jit.upload(&[7u8, 0, 5, 0].repeat(ALL as usize))?;
    let mut counts = jit.zeros(ALL as usize)?;
    beside.launch(jit, (BLOCKS, THREADS), &mut bytes, &mut counts)?;
    assert_eq!(bytes.to_vec()?, [49, 100, 5, 149].repeat(ALL as usize));
    assert_eq!(counts.to_vec()?, [0; ALL as usize]);
    Ok(())
}

fn bytes_in_the_builder(jit: &Jit) -> Outcome {
    let kernel = Kernel::build("bytes", |k| {
        let x = k.slice_mut("x", k.ty::<u8>());
        let signed = k.slice_mut("signed", k.ty::<i8>());
        x.at(1).atomic_add(1);
        signed
            .at(1)
            .atomic_min(k.global_id().x().cast_to::<i8>() - 100);
        let found = x.at(2).atomic_cas(3, 8);
        k.if_(found.eq(3), || {
            let _ = x.at(0).atomic_exchange(found + 1);
        });
        let order = (IrOrdering::AcquireRelease, Scope::Device);
        // Each doubles and adds one, so the last bits are ones.
        signed
            .at(2)
            .atomic_update(order.0, order.1, |old| old * 2 + 1);
    })?;
    let (mut x, mut signed) = (jit.upload(&[1u8, 200, 3, 77])?, jit.upload(&[6i8, 0, 0])?);
    jit.launch(&kernel, BLOCKS, THREADS, args!(&mut x, &mut signed))?;
    assert_eq!(x.to_vec()?, [4, 64, 8, 77]);
    assert_eq!(signed.to_vec()?, [6, -100, -1]);
    Ok(())
}

#[kernel]
fn change_halves(x: &mut [f16], y: &mut [bf16], shared_sum: &mut [f16]) {
    let tile = shared!([f16; 3]);
    let (i, thread) = (global_id().x, thread_idx().x);
    if thread == 0 {
        tile[1] = f16::from_f64(0.0);
    }
    barrier();
    atomic_add(&mut tile[1], f16::from_f64(0.5));
    atomic_add(&mut x[1], f16::from_f64(2.0));
    atomic_min(&mut x[2], f16::from_f64(3.0 - i as f64));
    atomic_max_with(
        &mut x[3],
        f16::from_f64(i as f64),
        Ordering::Release,
        Scope::Device,
    );
    atomic_add(&mut y[0], bf16::from_f64(1.0));
    atomic_sub(&mut y[1], bf16::from_f64(0.5));
    if i == 7 {
        atomic_exchange(&mut y[2], bf16::from_f64(1.5));
    }
    barrier();
    if thread == 0 {
        shared_sum[block_idx().x] = tile[1];
    }
}

fn halves(jit: &Jit) -> Outcome {
    let half = f16::from_f32;
    let short = bf16::from_f32;
    let mut x = jit.upload(&[half(7.0), half(0.0), f16::NAN, f16::NEG_INFINITY, half(7.0)])?;
    let mut y = jit.upload(&[short(0.0), short(60.0), short(0.0)])?;
    let mut sums = jit.zeros::<f16>(BLOCKS as usize)?;
    change_halves.launch(jit, (BLOCKS, THREADS), &mut x, &mut y, &mut sums)?;
    let floats = |x: Vec<f16>| x.into_iter().map(f16::to_f32).collect::<Vec<_>>();
    assert_eq!(floats(x.to_vec()?), [7.0, 240.0, -116.0, 119.0, 7.0]);
    assert_eq!(y.to_vec()?, [short(120.0), short(0.0), short(1.5)]);
    assert_eq!(floats(sums.to_vec()?), [20.0; BLOCKS as usize]);
    Ok(())
}

#[kernel]
fn extremes(x: &[f32], least: &mut [f32], most: &mut [f64], old: &mut [f32]) {
    let i = global_id().x;
    if i < x.len() {
        old[i] = atomic_min(&mut least[0], x[i]);
        atomic_max(&mut least[1], x[i]);
        atomic_min_with(&mut most[0], x[i] as f64, Ordering::SeqCst, Scope::System);
        atomic_max_with(
            &mut most[1],
            x[i] as f64 * 2.0,
            Ordering::Acquire,
            Scope::Block,
        );
        atomic_max(&mut most[2], f64::NAN);
        atomic_min(&mut least[2], f32::NAN);
    }
}

fn extremes_of_floats(jit: &Jit) -> Outcome {
    let number = |i: u32| match i % 10 {
        3 => f32::NAN,
        _ => ((i * 37) % 101) as f32 - 50.0,
    };
    let x: Vec<f32> = (0..ALL).map(number).collect();
    let mut least = jit.upload(&[f32::INFINITY, f32::NAN, 2.5])?;
    let mut most = jit.upload(&[f64::NAN, f64::NEG_INFINITY, f64::NAN])?;
    let mut old = jit.zeros(x.len())?;
    let on_device = jit.upload(&x)?;
    extremes.launch(
        jit,
        (BLOCKS, THREADS),
        &on_device,
        &mut least,
        &mut most,
        &mut old,
    )?;
    let smallest = x.iter().copied().fold(f32::NAN, f32::min);
    let largest = x.iter().copied().fold(f32::NAN, f32::max);
    assert_eq!(least.to_vec()?, [smallest, largest, 2.5]);
    let most = most.to_vec()?;
    assert_eq!(most[..2], [f64::from(smallest), 2.0 * f64::from(largest)]);
    assert!(most[2].is_nan());
    // What was there is no smaller than what is there in the end, and somebody found the first value.
    let old = old.to_vec()?;
    assert!(old.iter().all(|&old| old >= smallest));
    assert!(old.contains(&f32::INFINITY));
    Ok(())
}

#[kernel]
fn differences(cells: &mut [u32], wide: &mut [i64], real: &mut [f64], slots: &mut [u32]) {
    let i = global_id().x;
    atomic_sub(&mut cells[0], i as u32);
    atomic_sub(&mut wide[0], 1 << 40);
    atomic_sub(&mut real[0], 0.25);
    let up = atomic_inc(&mut cells[1], 9);
    let down = atomic_dec(&mut cells[2], 6);
    atomic_add(&mut slots[up as usize], 1);
    atomic_add(&mut slots[16 + down as usize], 1);
    // Above its limit, a number is 0 or the limit next.
    atomic_inc_with(&mut cells[3], 0, Ordering::AcqRel, Scope::Device);
    atomic_dec_with(&mut cells[4], 0, Ordering::Relaxed, Scope::System);
    if i == 5 {
        atomic_inc(&mut cells[5], u32::MAX);
        atomic_dec(&mut cells[6], u32::MAX);
        atomic_inc(&mut cells[7], 20);
        atomic_dec(&mut cells[8], 20);
    }
}

fn differences_and_rounds(jit: &Jit) -> Outcome {
    let mut cells = jit.upload(&[1, 0, 0, 0, 0, u32::MAX - 1, 0, 77, 77])?;
    let (mut wide, mut real) = (jit.upload(&[5i64])?, jit.upload(&[1.0f64])?);
    let mut slots = jit.zeros(32)?;
    differences.launch(
        jit,
        (BLOCKS, THREADS),
        &mut cells,
        &mut wide,
        &mut real,
        &mut slots,
    )?;
    let difference = (0..ALL).fold(1u32, u32::wrapping_sub);
    let wanted = [difference, 0, 6, 0, 0, u32::MAX, u32::MAX, 0, 20];
    assert_eq!(cells.to_vec()?, wanted);
    assert_eq!(wide.to_vec()?, [5 - (i64::from(ALL) << 40)]);
    assert_eq!(real.to_vec()?, [1.0 - 0.25 * f64::from(ALL)]);
    let slots = slots.to_vec()?;
    assert_eq!(slots[..10], [12; 10]);
    // 120 is 17 times 7 and one more, which found the 0 at the start.
    assert_eq!(slots[16..23], [18, 17, 17, 17, 17, 17, 17]);
    Ok(())
}

#[kernel]
fn rounds_of_a_block(limit: u32, out: &mut [u32], slots: &mut [u32]) {
    let (cells, thread) = (shared!([u32; 4]), thread_idx().x);
    if thread < 4 {
        cells[thread] = 9 * thread as u32;
    }
    barrier();
    atomic_inc(&mut cells[0], limit);
    atomic_dec_with(&mut cells[1], limit, Ordering::Relaxed, Scope::Block);
    let up = atomic_inc(&mut cells[2 + thread % 2], limit);
    atomic_add(&mut slots[up as usize], 1);
    barrier();
    if thread < 4 {
        out[thread] = cells[thread];
    }
}

fn rounds_in_shared_memory(jit: &Jit) -> Outcome {
    for (limit, threads) in [(6u32, 100u32), (0, 33), (40, 31), (u32::MAX, 64)] {
        let (mut out, mut slots) = (jit.zeros::<u32>(4)?, jit.zeros::<u32>(128)?);
        rounds_of_a_block.launch(jit, (1, threads), limit, &mut out, &mut slots)?;
        let mut cells = [0u32, 9, 18, 27];
        let mut found = [0; 128];
        let up = |x: u32| if x >= limit { 0 } else { x + 1 };
        for thread in 0..threads as usize {
            cells[0] = up(cells[0]);
            let down = cells[1];
            cells[1] = if down == 0 || down > limit {
                limit
            } else {
                down - 1
            };
            let place = 2 + thread % 2;
            found[cells[place] as usize] += 1;
            cells[place] = up(cells[place]);
        }
        assert_eq!(out.to_vec()?, cells, "{limit} {threads}");
        assert_eq!(slots.to_vec()?, found, "{limit} {threads}");
    }
    Ok(())
}

/// Numbers of several sizes one behind the other.
#[derive(Copy, Clone, PartialEq, Debug, KernelType)]
#[repr(C)]
struct Counts {
    before: u16,
    short: u16,
    wide: u64,
    least: [f32; 2],
}

#[device_fn]
fn count(counts: &mut Counts, by: u32) {
    atomic_add(&mut counts.short, 1);
    atomic_add(&mut counts.wide, by as u64);
    atomic_min(&mut counts.least[1], by as f32);
}

#[kernel]
fn count_all(all: &mut [Counts], sums: &mut [u64]) {
    let tile = shared!([Counts; 2]);
    let (i, thread) = (global_id().x, thread_idx().x);
    if thread < 2 {
        tile[thread] = Counts {
            before: 3,
            short: 0,
            wide: 0,
            least: [0.0, 1000.0],
        };
    }
    barrier();
    count(&mut all[i % all.len()], i as u32);
    count(&mut tile[thread % 2], i as u32);
    barrier();
    if thread == 0 {
        sums[block_idx().x] = tile[0].wide + 1000 * tile[1].short as u64;
    }
}

fn places_of_every_kind(jit: &Jit) -> Outcome {
    let start = Counts {
        before: 8,
        short: 65_535,
        wide: 1 << 40,
        least: [1.0, f32::NAN],
    };
    let (mut all, mut sums) = (jit.upload(&[start; 3])?, jit.zeros(BLOCKS as usize)?);
    count_all.launch(jit, (BLOCKS, THREADS), &mut all, &mut sums)?;
    let mut on_host = [start; 3];
    for i in 0..ALL {
        let counts = &mut on_host[i as usize % 3];
        counts.short = counts.short.wrapping_add(1);
        counts.wide += u64::from(i);
        counts.least[1] = counts.least[1].min(i as f32);
    }
    assert_eq!(all.to_vec()?, on_host);
    let of_block = |block: u32| {
        let threads = (0..THREADS).step_by(2).map(|t| block * THREADS + t);
        threads.map(u64::from).sum::<u64>() + 20_000
    };
    let wanted: Vec<u64> = (0..BLOCKS).map(of_block).collect();
    assert_eq!(sums.to_vec()?, wanted);
    Ok(())
}

#[kernel]
fn gather<T: Num>(x: &[T], out: &mut [T]) {
    let i = global_id().x;
    if i < x.len() {
        atomic_add(&mut out[0], x[i]);
        atomic_min(&mut out[1], x[i]);
        atomic_max(&mut out[2], x[i]);
        atomic_sub(&mut out[3], x[i]);
    }
}

fn gathered<T: KernelType + Num>(jit: &Jit, number: impl Fn(i32) -> T) -> kiln::Result<Vec<T>> {
    let x: Vec<T> = (1..=30).map(&number).collect();
    let mut out = jit.upload(&[number(0), number(90), number(0), number(500)])?;
    gather.launch(jit, (2, 16), &jit.upload(&x)?, &mut out)?;
    out.to_vec()
}

fn generic_types(jit: &Jit) -> Outcome {
    assert_eq!(gathered(jit, |n| n as u16)?, [465, 1, 30, 35]);
    assert_eq!(gathered(jit, |n| -n as i16)?, [-465, -90, 0, -35]);
    assert_eq!(gathered(jit, |n| n as u32)?, [465, 1, 30, 35]);
    assert_eq!(gathered(jit, i64::from)?, [465, 1, 30, 35]);
    assert_eq!(gathered(jit, |n| n as f32)?, [465.0, 1.0, 30.0, 35.0]);
    assert_eq!(gathered(jit, f64::from)?, [465.0, 1.0, 30.0, 35.0]);
    let half = |n: i32| f16::from_f32(n as f32);
    assert_eq!(gathered(jit, half)?, [465, 1, 30, 35].map(half));
    // 465 and 500 in 8 bits.
    let byte = |n: i32| n as u8;
    assert_eq!(gathered(jit, byte)?, [209, 1, 30, 35]);
    assert_eq!(gathered(jit, |n| -n as i8)?, [47, -90, 0, -35]);
    Ok(())
}

#[device_fn]
fn twice<F: Fn(u32) -> u32>(f: F, x: u32) -> u32 {
    f(x) + f(x + 1)
}

#[device_fn]
fn raise<T: Num>(cells: Atomics<'_, T>, at: usize, by: T) -> T {
    let old = cells.fetch_add(at, by);
    cells.fetch_max(at + 1, old);
    old
}

/// Counts even and odd numbers by two closures, in shared memory and in a buffer.
#[kernel]
fn hold(x: &[u32], counts: &mut [u32], halves: &mut [f16], out: &mut [u32]) {
    let tile = shared!([u32; 4]);
    let (i, thread) = (global_id().x, thread_idx().x);
    if thread < 4 {
        tile[thread] = 0;
    }
    barrier();
    let (in_tile, in_counts) = (atomics(&mut tile[..]), atomics(counts));
    let halves = atomics(halves);
    if i < x.len() {
        let even = |x: u32| in_tile.fetch_add((x % 2) as usize, 1);
        let both = |x: u32| {
            in_counts.fetch_sub_with(4, 1, Ordering::AcqRel, Scope::Device);
            even(x + 1)
        };
        twice(even, x[i]);
        twice(both, x[i]);
        raise(in_counts, 2, x[i]);
        raise(in_tile, 2, 1);
        raise(halves, 0, f16::from_f64(1.0));
    }
    barrier();
    if thread == 0 {
        for k in 0..4 {
            let found = in_tile.load(k, Ordering::Relaxed, Scope::Block);
            out[block_idx().x * 4 + k] = found;
        }
        in_counts.fetch_add(5, in_counts.len() as u32);
    }
}

#[kernel]
fn hold_wrong(counts: &mut [u32], at: usize) {
    atomics(counts).exchange(at, 7);
}

fn held_by_several(jit: &Jit) -> Outcome {
    let x: Vec<u32> = (0..ALL).map(|i| i * 3).collect();
    let (mut counts, mut out) = (jit.zeros::<u32>(6)?, jit.zeros::<u32>(4 * BLOCKS as usize)?);
    let mut halves = jit.zeros::<f16>(2)?;
    let input = jit.upload(&x)?;
    hold.launch(
        jit,
        (BLOCKS, THREADS),
        &input,
        &mut counts,
        &mut halves,
        &mut out,
    )?;
    let counts = counts.to_vec()?;
    let sum: u32 = x.iter().sum();
    assert_eq!(counts[..3], [0, 0, sum]);
    // The sum before the last number was added.
    assert!(x.contains(&(sum - counts[3])), "{counts:?}");
    assert_eq!(counts[4..], [0u32.wrapping_sub(2 * ALL), 6 * BLOCKS]);
    let halves = halves.to_vec()?;
    assert_eq!(
        halves.iter().map(|x| x.to_f32()).collect::<Vec<_>>(),
        [120.0, 119.0]
    );
    let of_block = [2 * THREADS, 2 * THREADS, THREADS, THREADS - 1];
    assert_eq!(out.to_vec()?, of_block.repeat(BLOCKS as usize));
    let mut cells = jit.zeros::<u32>(3)?;
    let launched = hold_wrong.launch(jit, (1, 1), &mut cells, 3);
    let error = launched
        .and_then(|()| cells.to_vec())
        .expect_err("index 3 of 3");
    assert!(error.to_string().contains("index 3"), "{error}");
    // On the host it is the same.
    let mut on_host = [1u64, 5];
    assert_eq!(raise(atomics(&mut on_host), 0, 9), 1);
    assert_eq!(on_host, [10, 5]);
    Ok(())
}

/// Numbers that go round, each by a closure and a function: two begin at 0, two above the limit.
#[kernel]
fn hold_rounds(limit: u32, cells: &mut [u32], seen: &mut [u32], out: &mut [u32]) {
    let tile = shared!([u32; 2]);
    let thread = thread_idx().x;
    if thread < 2 {
        tile[thread] = 0;
    }
    barrier();
    let (cells, seen, in_tile) = (atomics(cells), atomics(seen), atomics(&mut tile[..]));
    let up = |at: u32| cells.fetch_inc(at as usize, limit);
    let down = |at: u32| cells.fetch_dec_with(at as usize, limit, Ordering::AcqRel, Scope::Device);
    let place = up(0);
    seen.fetch_add(place as usize % 2, 1);
    up(1);
    down(2);
    down(3);
    in_tile.fetch_inc_with(0, limit, Ordering::Relaxed, Scope::Block);
    in_tile.fetch_dec(1, limit);
    barrier();
    if thread < 2 {
        let last = in_tile.load(thread, Ordering::Relaxed, Scope::Block);
        out[2 * block_idx().x + thread] = last;
    }
}

fn rounds_held_by_several(jit: &Jit) -> Outcome {
    for limit in [0, 1, 6, 119, u32::MAX - 1] {
        let first = [0, limit + 1, 0, limit + 1];
        let (mut cells, mut seen) = (jit.upload(&first)?, jit.zeros::<u32>(2)?);
        let mut out = jit.zeros::<u32>(2 * BLOCKS as usize)?;
        let config = (BLOCKS, THREADS);
        hold_rounds.launch(jit, config, limit, &mut cells, &mut seen, &mut out)?;
        let round = u64::from(limit) + 1;
        let up = |n: u32| (u64::from(n) % round) as u32;
        let down = |n: u32| ((round - u64::from(n) % round) % round) as u32;
        let mut on_host = first;
        let held = atomics(&mut on_host);
        for _ in 0..ALL {
            held.fetch_inc(0, limit);
            held.fetch_inc(1, limit);
            held.fetch_dec(2, limit);
            held.fetch_dec(3, limit);
        }
        assert_eq!(cells.to_vec()?, on_host, "{limit}");
        // What is above the limit goes to an end first.
        assert_eq!(on_host[..3], [up(ALL), up(ALL - 1), down(ALL)], "{limit}");
        let of_block = [up(THREADS), down(THREADS)];
        assert_eq!(out.to_vec()?, of_block.repeat(BLOCKS as usize), "{limit}");
        let odd = (0..ALL).filter(|&n| up(n) % 2 == 1).count() as u32;
        assert_eq!(seen.to_vec()?, [ALL - odd, odd], "{limit}");
    }
    Ok(())
}

/// In the order of their types: the cell between two that have to stay.
#[kernel]
fn add_vectors(
    halves: &mut [F16x2],
    brains: &mut [BF16x2],
    pairs: &mut [F32x2],
    quads: &mut [F32x4],
    doubles: &mut [F64x2],
    counts: &mut [U32x4],
    seen: &mut [[u32; 4]],
) {
    let i = global_id().x as u32;
    let (one, two) = (f16::from_f64(1.0), f16::from_f64(2.0));
    let old = atomic_add(&mut halves[1], F16x2::new(one, two));
    atomic_or(
        &mut seen[0][f32::from(old.x) as usize / 32],
        1 << (f32::from(old.x) as u32 % 32),
    );
    let old = atomic_add(
        &mut brains[1],
        BF16x2::new(bf16::from_f64(2.0), bf16::from_f64(1.0)),
    );
    atomic_or(
        &mut seen[1][f32::from(old.y) as usize / 32],
        1 << (f32::from(old.y) as u32 % 32),
    );
    let old = atomic_add(&mut pairs[1], F32x2::new(i as f32, 1.0));
    atomic_or(&mut seen[2][old.y as usize / 32], 1 << (old.y as u32 % 32));
    let old = atomic_add(&mut quads[1], F32x4::new(1.0, -1.0, i as f32, 0.5));
    atomic_or(&mut seen[3][old.x as usize / 32], 1 << (old.x as u32 % 32));
    atomic_add(&mut doubles[1], F64x2::new(0.25, i as f64));
    atomic_add(&mut counts[1], U32x4::new(1, i, 0, 7));
    // With an order of choice.
    atomic_add_with(
        &mut pairs[2],
        F32x2::splat(1.0),
        Ordering::AcqRel,
        Scope::Device,
    );
    atomic_add_with(
        &mut halves[2],
        F16x2::splat(one),
        Ordering::Release,
        Scope::System,
    );
}

fn vectors_lane_by_lane(jit: &Jit) -> Outcome {
    let (half, brain) = (f16::from_f64, bf16::from_f64);
    let nine = half(9.0);
    let mut halves = jit.upload(&[
        F16x2::splat(nine),
        F16x2::ZERO,
        F16x2::ZERO,
        F16x2::splat(nine),
    ])?;
    let mut brains = jit.upload(&[
        BF16x2::splat(brain(9.0)),
        BF16x2::ZERO,
        BF16x2::splat(brain(9.0)),
    ])?;
    let mut pairs = jit.upload(&[
        F32x2::splat(9.0),
        F32x2::ZERO,
        F32x2::ZERO,
        F32x2::splat(9.0),
    ])?;
    let mut quads = jit.upload(&[F32x4::splat(9.0), F32x4::ZERO, F32x4::splat(9.0)])?;
    let mut doubles = jit.upload(&[F64x2::splat(9.0), F64x2::ZERO, F64x2::splat(9.0)])?;
    let mut counts = jit.upload(&[U32x4::splat(9), U32x4::ZERO, U32x4::splat(9)])?;
    let mut seen = jit.zeros::<[u32; 4]>(4)?;
    add_vectors.launch(
        jit,
        (BLOCKS, THREADS),
        &mut halves,
        &mut brains,
        &mut pairs,
        &mut quads,
        &mut doubles,
        &mut counts,
        &mut seen,
    )?;
    let (n, all) = (f64::from(ALL), (0..ALL).sum::<u32>());
    let sum = F16x2::new(half(n), half(2.0 * n));
    let wanted = [
        F16x2::splat(nine),
        sum,
        F16x2::splat(half(n)),
        F16x2::splat(nine),
    ];
    assert_eq!(halves.to_vec()?, wanted);
    let sum = BF16x2::new(brain(2.0 * n), brain(n));
    assert_eq!(brains.to_vec()?[1], sum);
    assert_eq!(
        pairs.to_vec()?[1..3],
        [F32x2::new(all as f32, n as f32), F32x2::splat(n as f32)]
    );
    let sum = F32x4::new(n as f32, -n as f32, all as f32, n as f32 / 2.0);
    assert_eq!(quads.to_vec()?, [F32x4::splat(9.0), sum, F32x4::splat(9.0)]);
    assert_eq!(doubles.to_vec()?[1], F64x2::new(n / 4.0, all.into()));
    assert_eq!(counts.to_vec()?[1], U32x4::new(ALL, all, 0, 7 * ALL));
    // Of the lanes that count, each saw a number of its own.
    assert_eq!(
        seen.to_vec()?,
        [[u32::MAX, u32::MAX, u32::MAX, (1 << 24) - 1]; 4]
    );
    // On the host.
    let mut place = F32x2::new(1.0, 2.0);
    assert_eq!(
        atomic_add(&mut place, F32x2::splat(3.0)),
        F32x2::new(1.0, 2.0)
    );
    assert_eq!(place, F32x2::new(4.0, 5.0));
    Ok(())
}

/// A block's sums, then everybody's.
#[kernel]
fn add_in_shared(halves: &mut [F16x2], pairs: &mut [F32x2], quads: &mut [F32x4]) {
    let half_sum = shared!([F16x2; 2]);
    let pair_sum = shared!([F32x2; 2]);
    let quad_sum = shared!([F32x4; 2]);
    let thread = thread_idx().x;
    if thread < 2 {
        half_sum[thread] = F16x2::ZERO;
        pair_sum[thread] = F32x2::ZERO;
        quad_sum[thread] = F32x4::ZERO;
    }
    barrier();
    let place = thread % 2;
    let by = f16::from_f64(0.5);
    atomic_add(&mut half_sum[place], F16x2::new(by, -by));
    atomic_add(&mut pair_sum[place], F32x2::new(1.0, thread as f32));
    atomic_add(
        &mut quad_sum[place],
        F32x4::new(1.0, 2.0, 3.0, thread as f32),
    );
    barrier();
    if thread < 2 {
        atomic_add(&mut halves[thread], half_sum[thread]);
        atomic_add(&mut pairs[thread], pair_sum[thread]);
        atomic_add(&mut quads[thread], quad_sum[thread]);
    }
}

fn vectors_in_shared_memory(jit: &Jit) -> Outcome {
    let (mut halves, mut pairs, mut quads) = (
        jit.upload(&[F16x2::ZERO; 2])?,
        jit.upload(&[F32x2::ZERO; 2])?,
        jit.upload(&[F32x4::ZERO; 2])?,
    );
    add_in_shared.launch(jit, (BLOCKS, THREADS), &mut halves, &mut pairs, &mut quads)?;
    let threads = |first: u32| BLOCKS * (first..THREADS).step_by(2).sum::<u32>();
    for (first, sum) in [threads(0), threads(1)].into_iter().enumerate() {
        let (n, sum) = (ALL as f32 / 2.0, sum as f32);
        let half = |x: f32| f16::from_f32(x / 2.0);
        assert_eq!(halves.to_vec()?[first], F16x2::new(half(n), half(-n)));
        assert_eq!(pairs.to_vec()?[first], F32x2::new(n, sum));
        assert_eq!(quads.to_vec()?[first], F32x4::new(n, 2.0 * n, 3.0 * n, sum));
    }
    Ok(())
}

/// Sums of numbers below the normal ones, of `f32` in shared memory and of the others anywhere.
#[kernel]
fn add_subnormal(single: &mut [f32], double: &mut [f64], half: &mut [f16]) {
    let sums = shared!([f32; 2]);
    let i = thread_idx().x;
    if i < 2 {
        sums[i] = 0.0;
    }
    barrier();
    atomic_add(&mut sums[0], f32::from_bits(3));
    atomic_sub(&mut sums[1], f32::from_bits(5));
    atomic_add(&mut double[0], f64::from_bits(3));
    atomic_add(&mut half[0], f16::from_bits(3));
    barrier();
    if i < 2 {
        single[i] = sums[i];
    }
}

/// Everywhere but in global memory, whose sums of `f32` a GPU takes for zeros (PTX ISA, "atom").
fn subnormal_sums(jit: &Jit) -> Outcome {
    let (mut single, mut double) = (jit.zeros::<f32>(2)?, jit.zeros::<f64>(1)?);
    let mut half = jit.zeros::<f16>(1)?;
    add_subnormal.launch(jit, (1, THREADS), &mut single, &mut double, &mut half)?;
    let bits: Vec<u32> = single.to_vec()?.into_iter().map(f32::to_bits).collect();
    assert_eq!(bits, [3 * THREADS, (1 << 31) | (5 * THREADS)]);
    assert_eq!(double.to_vec()?[0].to_bits(), u64::from(3 * THREADS));
    assert_eq!(half.to_vec()?[0].to_bits(), 3 * THREADS as u16);
    Ok(())
}
