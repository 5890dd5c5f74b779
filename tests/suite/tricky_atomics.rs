//! Tricky kernels, atomics: every operation and width under contention, locks and tickets of
//! blocks, and blocks that wait for blocks that started before them.
//!
//! Left out, as the IR has none: atomics that wrap at a bound (`atomicInc`, `atomicDec`) and
//! smaller or larger of floats, which are loops of compare-and-swap here. A lock that lanes of one
//! warp take from each other is left out, too: on the CPU and on GPUs before sm_70 a warp runs in
//! lockstep, and the lane that holds the lock may wait for the one that spins. So is a block that
//! waits for a block of a higher number: nobody promises that it runs.

use kiln::core::ir::{AtomicOp, Ordering};
use kiln::prelude::*;

use super::warp::noise;
use super::{Outcome, chapter, owned_args, run_blocks};

chapter![
    every_operation_under_contention,
    the_same_in_shared_memory,
    sums_of_floats,
    loops_of_compare_and_swap,
    exchanges_lose_nothing,
    tickets_are_given_once,
    a_lock_for_blocks,
    the_last_block_sums_up,
    scans_that_look_back,
];

const BLOCKS: [u32; 8] = [1, 7, 32, 33, 100, 256, 1000, 1024];
/// For kernels that are compiled for many types.
const FEW_BLOCKS: [u32; 4] = [7, 33, 256, 1024];
const OPERATIONS: [AtomicOp; 6] = [
    AtomicOp::Add,
    AtomicOp::Min,
    AtomicOp::Max,
    AtomicOp::And,
    AtomicOp::Or,
    AtomicOp::Xor,
];

/// All operations of an integer type: each thread applies its number to a place for each, of which
/// there are three, so that lanes of a warp meet at one place and part for another.
macro_rules! every_operation {
    ($jit:expr, $shared:expr, $($t:ty)*) => {$({
        let kernel = Kernel::build("operations", |k| {
            let t = k.ty::<$t>();
            let (out, x) = (k.slice_mut("out", t), k.slice("x", t));
            let i = k.global_id().x();
            let mine = k.shared_array("mine", t, 18);
            let places = if $shared { mine } else { out };
            let first = k.thread_idx().x().eq(0);
            if $shared {
                k.if_(first, || k.for_range(0u32, 18u32, |j| mine.at(j).set(out.at(j))));
                k.barrier();
            }
            k.if_(i.lt(x.len()), || {
                for (slot, op) in (0u32..).zip(OPERATIONS) {
                    let place = places.at(i % 3 + slot * 3);
                    place.atomic(op, x.at(i), Ordering::Relaxed, Scope::Device);
                }
            });
            if $shared {
                k.barrier();
                k.if_(first, || k.for_range(0u32, 18u32, |j| out.at(j).set(mine.at(j))));
            }
        })?;
        let hx: Vec<$t> = (0..500).map(|i| (noise(i) as $t).wrapping_mul(0x0123_4567_89ab_cdef_u64 as $t)).collect();
        let start: [$t; 6] = [5, <$t>::MAX, <$t>::MIN, !0, 0, 1];
        let start: Vec<$t> = start.into_iter().flat_map(|x| [x; 3]).collect();
        let apply: [fn($t, $t) -> $t; 6] = [
            <$t>::wrapping_add,
            Ord::min,
            Ord::max,
            |a, b| a & b,
            |a, b| a | b,
            |a, b| a ^ b,
        ];
        for block in FEW_BLOCKS {
            // Of shared memory, one block's is compared.
            let n = if $shared { (block as usize).min(hx.len()) } else { hx.len() };
            let x = $jit.upload(&hx[..n])?;
            let got = run_blocks($jit, &kernel, grid_for(n, block), block, &start, args!(&x))?;
            for (slot, got) in got.iter().enumerate() {
                let mine = hx[..n].iter().skip(slot % 3).step_by(3);
                let want = mine.fold(start[slot], |a, &b| apply[slot / 3](a, b));
                let what = OPERATIONS[slot / 3];
                assert_eq!(*got, want, "{what:?} of {}, blocks of {block}", stringify!($t));
            }
        }
    })*};
}

fn every_operation_under_contention(jit: &Jit) -> Outcome {
    every_operation!(jit, false, i32 u32 i64 u64);
    Ok(())
}

fn the_same_in_shared_memory(jit: &Jit) -> Outcome {
    every_operation!(jit, true, i32 u32 i64 u64);
    Ok(())
}

fn sums_of_floats(jit: &Jit) -> Outcome {
    let kernel = Kernel::build("floats", |k| {
        let t = k.type_param("T").float();
        let (out, x) = (k.slice_mut("out", t), k.slice("x", t));
        let i = k.global_id().x();
        k.if_(i.lt(x.len()), || {
            out.at(0).atomic_add(x.at(i));
            out.at(i % 4 + 1).atomic_add(x.at(i));
        });
    })?;
    // Halves, of which all sums are exact, in any order.
    let halves: Vec<f32> = (0..700).map(|i| (noise(i) % 1000) as f32 * 0.5).collect();
    let sum = |first: usize, step: usize| -> f32 { halves.iter().skip(first).step_by(step).sum() };
    let want = [sum(0, 1), sum(0, 4), sum(1, 4), sum(2, 4), sum(3, 4)];
    for block in BLOCKS {
        let x = jit.upload(&halves)?;
        let grid = grid_for(halves.len(), block);
        let got = run_blocks(jit, &kernel, grid, block, &[0f32; 5], args!(&x))?;
        assert_eq!(got, want, "blocks of {block}");
        let x = jit.upload(&halves.iter().map(|&x| f64::from(x)).collect::<Vec<_>>())?;
        let got = run_blocks(jit, &kernel, grid, block, &[0f64; 5], args!(&x))?;
        assert_eq!(got, want.map(f64::from), "blocks of {block}");
    }
    Ok(())
}

/// Counters that wrap at a bound, and the largest of floats, by compare-and-swap.
fn loops_of_compare_and_swap(jit: &Jit) -> Outcome {
    let kernel = Kernel::build("swaps", |k| {
        let (out, x) = (k.slice_mut("out", Type::U32), k.slice("x", Type::F32));
        let (bound, i) = (k.param("bound", Type::U32), k.global_id().x());
        let update = |place: Place<'_>, next: &dyn Fn(Var<'_>)| {
            let old = k.var("old", place.atomic_add(0));
            k.loop_(|| {
                let new = k.var("new", old);
                next(new);
                let seen = place.atomic_cas(old, new);
                k.if_(seen.eq(old), || k.break_());
                old.set(seen);
            });
        };
        k.if_(i.lt(x.len()), || {
            update(out.at(0), &|v| v.set(v.get().ge(bound).select(0u32, v + 1)));
            update(out.at(1), &|v| {
                let end = v.get().eq(0) | v.get().gt(bound);
                v.set(end.select(bound, v - 1))
            });
            update(out.at(2), &|v| {
                v.set(v.get().bitcast(Type::F32).max(x.at(i)).bitcast(Type::U32))
            });
        });
    })?;
    let hx: Vec<f32> = (0..300).map(|i| noise(i) as f32 * 0.25 - 1e6).collect();
    let x = jit.upload(&hx)?;
    let largest = hx.iter().copied().fold(f32::MIN, f32::max);
    for block in BLOCKS {
        let start = [0, 0, f32::MIN.to_bits()];
        let grid = grid_for(hx.len(), block);
        let got = run_blocks(jit, &kernel, grid, block, &start, args!(&x, 12u32))?;
        // 300 steps around 13 numbers.
        let want = [300 % 13, 13 - 300 % 13, largest.to_bits()];
        assert_eq!(got, want, "blocks of {block}");
    }
    Ok(())
}

/// Threads exchange their numbers with a place: what they got and what is left is what was there.
fn exchanges_lose_nothing(jit: &Jit) -> Outcome {
    let kernel = Kernel::build("exchanges", |k| {
        let (out, places) = (
            k.slice_mut("out", Type::U64),
            k.slice_mut("places", Type::U64),
        );
        let i = k.global_id().x();
        k.if_(i.lt(out.len()), || {
            let number = i.cast_to::<u64>() << 33u64 | 1u64;
            out.at(i).set(places.at(i % 3).atomic_exchange(number));
        });
    })?;
    for block in BLOCKS {
        let mut places = jit.upload(&[2u64, 4, 6])?;
        let grid = grid_for(400, block);
        let mut all = run_blocks(
            jit,
            &kernel,
            grid,
            block,
            &vec![0u64; 400],
            owned_args!(&mut places),
        )?;
        all.extend(places.to_vec()?);
        all.sort_unstable();
        let mut want: Vec<u64> = (0..400).map(|i| i << 33 | 1).chain([2, 4, 6]).collect();
        want.sort_unstable();
        assert_eq!(all, want, "blocks of {block}");
    }
    Ok(())
}

/// Numbers from a counter, some threads twice, in a loop of its own length.
fn tickets_are_given_once(jit: &Jit) -> Outcome {
    let kernel = Kernel::build("tickets", |k| {
        let (out, counter) = (
            k.slice_mut("out", Type::U32),
            k.slice_mut("counter", Type::U32),
        );
        let i = k.global_id().x();
        k.for_range(0u32, i % 3, |_| {
            let ticket = counter.at(0).atomic_add(1);
            out.at(ticket).set(ticket + 1);
        });
        // Those that subtract meet those that add.
        k.if_((i % 2).eq(1), || {
            counter.at(1).atomic_add(k.lit(Type::U32, 0) - 1u32);
        })
        .else_(|| {
            counter.at(1).atomic_add(1);
        });
    })?;
    for block in BLOCKS {
        let threads = 3 * block;
        let count: u32 = (0..threads).map(|i| i % 3).sum();
        let mut counter = jit.zeros::<u32>(2)?;
        let out = vec![0u32; 3 * threads as usize];
        let out = run_blocks(jit, &kernel, 3, block, &out, owned_args!(&mut counter))?;
        assert_eq!(counter.to_vec()?, [count, threads % 2], "blocks of {block}");
        let want = (1..=count).chain(std::iter::repeat(0)).take(out.len());
        assert!(out.iter().copied().eq(want), "blocks of {block}");
    }
    Ok(())
}

/// One thread of each block takes a lock in global memory and changes what it guards, which is not
/// atomic.
fn a_lock_for_blocks(jit: &Jit) -> Outcome {
    let kernel = Kernel::build("lock", |k| {
        let (out, lock) = (
            k.slice_mut("out", Type::U32),
            k.slice_mut("lock", Type::U32),
        );
        let sum = k.shared_array("sum", Type::U32, 1).at(0);
        let t = k.thread_idx().x();
        k.if_(t.eq(0), || sum.set(0));
        k.barrier();
        sum.atomic_add(t + 1);
        k.barrier();
        k.if_(t.eq(0), || {
            k.loop_(|| {
                let free = lock.at(0).atomic_cas(0, 1).eq(0);
                k.if_(free, || k.break_());
            });
            k.fence(Scope::Device);
            out.at(0).set(out.at(0) + sum);
            out.at(1).set(out.at(1) * 3 + 1);
            k.fence(Scope::Device);
            lock.at(0)
                .atomic(AtomicOp::Exchange, 0, Ordering::Release, Scope::Device);
        });
    })?;
    for block in BLOCKS {
        let mut lock = jit.zeros::<u32>(1)?;
        let out = run_blocks(jit, &kernel, 20, block, &[0u32; 2], owned_args!(&mut lock))?;
        let threes = (0..20).fold(0u32, |x, _| x.wrapping_mul(3).wrapping_add(1));
        assert_eq!(
            out,
            [20 * block * (block + 1) / 2, threes],
            "blocks of {block}"
        );
        assert_eq!(lock.to_vec()?, [0]);
    }
    Ok(())
}

/// Blocks write their sums; the block that finishes last, by a counter, adds them up (CUDA guide,
/// "Memory Fence Functions").
fn the_last_block_sums_up(jit: &Jit) -> Outcome {
    let kernel = Kernel::build("last", |k| {
        let (out, x) = (k.slice_mut("out", Type::U32), k.slice("x", Type::U32));
        let (sums, done) = (
            k.slice_mut("sums", Type::U32),
            k.slice_mut("done", Type::U32),
        );
        let sum = k.shared_array("sum", Type::U32, 1).at(0);
        let is_last = k.shared_array("is_last", Type::U32, 1).at(0);
        let (t, i) = (k.thread_idx().x(), k.global_id().x());
        k.if_(t.eq(0), || sum.set(0));
        k.barrier();
        k.if_(i.lt(x.len()), || {
            sum.atomic_add(x.at(i));
        });
        k.barrier();
        let grid = k.grid_dim().x();
        k.if_(t.eq(0), || {
            sums.at(k.block_idx().x()).set(sum);
            k.fence(Scope::Device);
            let before =
                done.at(0)
                    .atomic(AtomicOp::Add, 1, Ordering::AcquireRelease, Scope::Device);
            is_last.set((before + 1).eq(grid).select(k.lit(Type::U32, 1), 0u32));
            sum.set(0);
        });
        k.barrier();
        // The same in all threads, by way of memory.
        k.if_(is_last.get().ne(0), || {
            k.fence(Scope::Device);
            k.for_loop(t, grid, k.block_dim().x(), Unroll::Auto, |b| {
                sum.atomic_add(sums.at(b));
            });
            k.barrier();
            k.if_(t.eq(0), || out.at(0).set(sum));
        });
    })?;
    for block in BLOCKS {
        let hx: Vec<u32> = (0..60 * block as usize - block as usize / 2)
            .map(noise)
            .collect();
        let x = jit.upload(&hx)?;
        let (mut sums, mut done) = (jit.zeros::<u32>(60)?, jit.zeros::<u32>(1)?);
        let more = owned_args!(&x, &mut sums, &mut done);
        let out = run_blocks(jit, &kernel, 60, block, &[0u32], more)?;
        let want = hx.iter().fold(0u32, |sum, x| sum.wrapping_add(*x));
        assert_eq!(out, [want], "blocks of {block}");
    }
    Ok(())
}

/// A scan in one pass: a block adds up what blocks before it have published, back to one that knows
/// all before it (Merrill and Garland). Blocks number themselves in the order in which they start,
/// so that a block waits only for blocks that run already: no order of blocks is assumed.
fn scans_that_look_back(jit: &Jit) -> Outcome {
    let kernel = Kernel::build("look_back", |k| {
        let (out, x) = (k.slice_mut("out", Type::U32), k.slice("x", Type::U32));
        let [sums, totals, state] = ["sums", "totals", "state"].map(|n| k.slice_mut(n, Type::U32));
        let [number, before] = ["number", "before"].map(|n| k.shared_array(n, Type::U32, 1).at(0));
        let tile = k.shared_array("tile", Type::U32, 1024);
        let (t, n) = (k.thread_idx().x(), k.block_dim().x());
        // The last element of `state` counts the blocks.
        k.if_(t.eq(0), || {
            number.set(state.at(state.len() - 1).atomic_add(1))
        });
        k.barrier();
        let block = number.get();
        let i = block * n + t;
        let value = k.var("value", 0u32);
        k.if_(i.lt(x.len()), || value.set(x.at(i)));
        tile.at(t).set(value);
        k.barrier();
        let step = k.var("step", 1u32);
        k.while_(
            || step.get().lt(n),
            || {
                k.if_(t.ge(step), || value.set(value + tile.at(t - step)));
                k.barrier();
                tile.at(t).set(value);
                k.barrier();
                step.set(step * 2);
            },
        );
        k.if_(t.eq(0), || {
            let sum = tile.at(n - 1).get();
            let publish = |place: Place<'_>, value: Val<'_>, new: u32| {
                place.set(value);
                k.fence(Scope::Device);
                let flag = state.at(block);
                flag.atomic(AtomicOp::Exchange, new, Ordering::Release, Scope::Device);
            };
            publish(sums.at(block), sum, 1);
            let (all, at) = (k.var("all", 0u32), k.var("at", block));
            k.while_(
                || at.get().gt(0),
                || {
                    let flag = state.at(at - 1);
                    let seen = flag.atomic(AtomicOp::Add, 0, Ordering::Acquire, Scope::Device);
                    k.fence(Scope::Device);
                    k.if_(seen.eq(2), || {
                        all.set(all + totals.at(at - 1));
                        k.break_();
                    });
                    k.if_(seen.eq(1), || {
                        all.set(all + sums.at(at - 1));
                        at.set(at - 1);
                    });
                },
            );
            publish(totals.at(block), all + sum, 2);
            before.set(all);
        });
        k.barrier();
        k.if_(i.lt(out.len()), || out.at(i).set(before + value));
    })?;
    for block in BLOCKS {
        const GRID: usize = 40;
        let hx: Vec<u32> = (0..GRID * block as usize - 1).map(noise).collect();
        let x = jit.upload(&hx)?;
        let [mut sums, mut totals] = [jit.zeros::<u32>(GRID)?, jit.zeros::<u32>(GRID)?];
        let mut state = jit.zeros::<u32>(GRID + 1)?;
        let more = owned_args!(&x, &mut sums, &mut totals, &mut state);
        let out = run_blocks(jit, &kernel, GRID as u32, block, &vec![0; hx.len()], more)?;
        let mut sum = 0u32;
        for (i, (got, x)) in out.iter().zip(&hx).enumerate() {
            sum = sum.wrapping_add(*x);
            assert_eq!(*got, sum, "element {i}, blocks of {block}");
        }
    }
    Ok(())
}
