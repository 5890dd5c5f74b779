//! Atomics of 16 bytes, of two words and of every vector that is as large: nobody sees one half without the other. GPUs have them
//! from sm_90 on, which kernels ask for themselves.

use kiln::core::ir::Ordering as IrOrdering;
use kiln::prelude::*;

use super::targets::architecture_of;
use super::{Outcome, chapter};

chapter![
    words_of_16_bytes,
    words_in_orders_and_scopes,
    words_of_every_vector,
    words_in_the_builder,
];

const BLOCKS: u32 = 3;
const THREADS: u32 = 40;
const ALL: u32 = BLOCKS * THREADS;

/// Each thread hands its two words on and gets those of another, in a buffer and in shared memory; then it puts itself first
/// in a list, whose head has the number of changes beside it.
#[kernel]
fn change_words(cells: &mut [U64x2], seen: &mut [U64x2], next: &mut [u64]) {
    let tile = shared!([U64x2; 3]);
    let (i, thread) = (global_id().x, thread_idx().x);
    if (target_sm() == 0) | (target_sm() >= 90) {
        let mine = U64x2::new(i as u64, !(i as u64) << 32);
        if thread == 0 {
            tile[1] = U64x2::new(u64::MAX, 1);
        }
        barrier();
        seen[i] = atomic_exchange(&mut cells[1], mine);
        let before = atomic_exchange(&mut tile[1], mine);
        if before.x != u64::MAX && before.y != !before.x << 32 {
            cells[0].x = 1; // Halves of two.
        }
        let list = atomics(cells);
        let mut head = U64x2::new(u64::MAX, 0);
        loop {
            next[i] = head.x;
            let new = U64x2::new(i as u64, head.y + 1);
            let found = list.cas_with(2, head, new, Ordering::AcqRel, Scope::Device);
            if found == head {
                break;
            }
            head = found;
        }
    }
}

fn words_of_16_bytes(jit: &Jit) -> Outcome {
    let start = U64x2::new(u64::MAX, 0);
    let mut cells = jit.upload(&[U64x2::ZERO, start, start, U64x2::ZERO])?;
    let (mut seen, mut next) = (
        jit.zeros::<U64x2>(ALL as usize)?,
        jit.zeros::<u64>(ALL as usize)?,
    );
    change_words.launch(jit, (BLOCKS, THREADS), &mut cells, &mut seen, &mut next)?;
    if matches!(architecture_of(jit), 1..90) {
        return Ok(());
    }
    let (cells, seen, next) = (cells.to_vec()?, seen.to_vec()?, next.to_vec()?);
    assert_eq!([cells[0], cells[3]], [U64x2::ZERO; 2]);
    // What was there first, what all have seen and what is left are all there was.
    let mut all: Vec<[u64; 2]> = seen
        .iter()
        .chain([&cells[1]])
        .map(|v| v.to_array())
        .collect();
    all.sort_unstable();
    let mut wanted: Vec<[u64; 2]> = (0..u64::from(ALL)).map(|i| [i, !i << 32]).collect();
    wanted.push(start.to_array());
    assert_eq!(all, wanted);
    let list = std::iter::successors(Some(cells[2].x), |&at| next.get(at as usize).copied());
    let mut list: Vec<u64> = list.take_while(|&at| at != u64::MAX).take(1000).collect();
    list.sort_unstable();
    assert!(list.iter().copied().eq(0..u64::from(ALL)), "{list:?}");
    assert_eq!(cells[2].y, u64::from(ALL));
    Ok(())
}

#[kernel]
fn order_words(cells: &mut [U64x2], out: &mut [U64x2]) {
    if (target_sm() == 0) | (target_sm() >= 90) {
        let (a, b) = (U64x2::new(1, 2), U64x2::new(3, 1 << 63));
        out[0] = atomic_exchange_with(&mut cells[0], a, Ordering::Relaxed, Scope::Block);
        out[1] = atomic_exchange_with(&mut cells[0], b, Ordering::Acquire, Scope::Device);
        out[2] = atomic_exchange_with(&mut cells[0], a, Ordering::Release, Scope::System);
        out[3] = atomic_exchange_with(&mut cells[0], b, Ordering::AcqRel, Scope::Block);
        out[4] = atomic_exchange_with(&mut cells[0], a, Ordering::SeqCst, Scope::Device);
        out[5] = atomic_cas_with(&mut cells[0], a, b, Ordering::Relaxed, Scope::System);
        out[6] = atomic_cas_with(&mut cells[0], b, a, Ordering::Acquire, Scope::Block);
        out[7] = atomic_cas_with(&mut cells[0], a, b, Ordering::Release, Scope::Device);
        out[8] = atomic_cas_with(&mut cells[0], b, a, Ordering::AcqRel, Scope::System);
        out[9] = atomic_cas_with(&mut cells[0], a, b, Ordering::SeqCst, Scope::Block);
        // One word alone is not what is expected.
        out[10] = atomic_cas(&mut cells[0], U64x2::new(3, 2), a);
        out[11] = atomic_cas(&mut cells[0], U64x2::new(1, 1 << 63), a);
        out[12] = cells[0];
    }
}

fn words_in_orders_and_scopes(jit: &Jit) -> Outcome {
    let (mut cells, mut out) = (jit.zeros::<U64x2>(1)?, jit.zeros::<U64x2>(13)?);
    order_words.launch(jit, (1, 1), &mut cells, &mut out)?;
    if matches!(architecture_of(jit), 1..90) {
        return Ok(());
    }
    let (a, b) = (U64x2::new(1, 2), U64x2::new(3, 1 << 63));
    let mut wanted = vec![U64x2::ZERO];
    wanted.extend([a, b, a, b, a, b, a, b, a, b, b, b]);
    assert_eq!(out.to_vec()?, wanted);
    Ok(())
}

#[kernel]
fn every_vector(
    floats: &mut [F32x4],
    doubles: &mut [F64x2],
    ints: &mut [I32x4],
    words: &mut [U32x4],
    swapped: &mut [u32],
) {
    if (target_sm() == 0) | (target_sm() >= 90) {
        let i = thread_idx().x;
        floats[1 + i] = atomic_exchange(&mut floats[0], F32x4::new(-0.0, i as f32, 2.0, 3.0));
        let doubles = atomics(doubles);
        let was = doubles.exchange_with(0, F64x2::splat(i as f64), Ordering::AcqRel, Scope::Device);
        if was.x != was.y {
            swapped[0] = 100;
        }
        let mine = I32x4::new(i as i32, -1, 2, 3);
        if atomic_cas(&mut ints[0], I32x4::new(9, 8, 7, 6), mine) == I32x4::new(9, 8, 7, 6) {
            atomic_add(&mut swapped[0], 1);
        }
        if atomic_cas(&mut words[0], U32x4::new(9, 8, 7, 5), U32x4::ZERO) == U32x4::new(9, 8, 7, 5)
        {
            atomic_add(&mut swapped[0], 10);
        }
    }
}

fn words_of_every_vector(jit: &Jit) -> Outcome {
    const COUNT: usize = 40;
    let mut floats = jit.upload(&[F32x4::splat(0.5); COUNT + 1])?;
    let mut doubles = jit.upload(&[F64x2::splat(-1.0)])?;
    let mut ints = jit.upload(&[I32x4::new(9, 8, 7, 6)])?;
    let mut words = jit.upload(&[U32x4::new(9, 8, 7, 6)])?;
    let mut swapped = jit.zeros::<u32>(1)?;
    every_vector.launch(
        jit,
        (1, COUNT as u32),
        &mut floats,
        &mut doubles,
        &mut ints,
        &mut words,
        &mut swapped,
    )?;
    if matches!(architecture_of(jit), 1..90) {
        return Ok(());
    }
    let mut seen: Vec<u32> = floats.to_vec()?.iter().map(|v| v.y.to_bits()).collect();
    seen.sort_unstable();
    let mut wanted: Vec<u32> = (0..COUNT).map(|i| (i as f32).to_bits()).collect();
    wanted.push(0.5f32.to_bits());
    wanted.sort_unstable();
    assert_eq!(seen, wanted);
    assert_eq!(
        (swapped.to_vec()?[0], words.to_vec()?[0]),
        (1, U32x4::new(9, 8, 7, 6))
    );
    let ints = ints.to_vec()?[0];
    assert!(ints.x < COUNT as i32 && ints.y == -1, "{ints:?}");
    Ok(())
}

fn words_in_the_builder(jit: &Jit) -> Outcome {
    if matches!(architecture_of(jit), 1..90) {
        return Ok(());
    }
    let kernel = Kernel::build("words", |k| {
        let pairs = k.slice_mut("pairs", k.ty::<U64x2>());
        let quads = k.slice_mut("quads", k.ty::<U32x4>());
        let order = (IrOrdering::AcquireRelease, Scope::Device);
        let change = || {
            let old = pairs.at(0).atomic_exchange(pairs.at(1).get());
            let found = pairs
                .at(0)
                .atomic_cas_with(pairs.at(1).get(), old, order.0, order.1);
            pairs.at(2).set(found);
            quads
                .at(1)
                .set(quads.at(0).atomic_cas(quads.at(0).get(), quads.at(2).get()));
        };
        let sm = k.target_sm();
        k.if_(sm.eq(0) | sm.ge(90), change);
    })?;
    let (one, two) = (U64x2::new(1, 2), U64x2::new(3, 4));
    let mut pairs = jit.upload(&[one, two, U64x2::ZERO])?;
    let mut quads = jit.upload(&[U32x4::splat(5), U32x4::ZERO, U32x4::new(1, 2, 3, 4)])?;
    jit.launch(&kernel, 1, 1, args!(&mut pairs, &mut quads))?;
    assert_eq!(pairs.to_vec()?, [one, two, two]);
    let wanted = [
        U32x4::new(1, 2, 3, 4),
        U32x4::splat(5),
        U32x4::new(1, 2, 3, 4),
    ];
    assert_eq!(quads.to_vec()?, wanted);
    Ok(())
}
