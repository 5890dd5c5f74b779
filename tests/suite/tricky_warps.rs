//! Tricky kernels, warps: reductions, scans, compaction and exchanges as CUDA programs write them.
//!
//! Shuffles from any lane, votes and reductions by themselves are in `warp`, shorter patterns in
//! `warp_patterns`. Wrong masks, and shuffles from lanes that are not there, are errors and are
//! tested where the interpreter is.

use std::fmt::Debug;
use std::ops::Range;

use half::f16;
use kiln::prelude::*;

use super::warp::{linear, noise, warps};
use super::{Outcome, chapter, owned_args, run_blocks};

chapter![
    trees_of_shuffles_in_all_types,
    scans_in_counted_loops,
    leaders_of_loops_that_lanes_leave,
    stable_compaction_of_a_block,
    votes_in_nested_branches,
    slots_by_groups_of_equal_keys,
    slots_by_who_is_there,
    trees_in_shared_memory_of_a_warp,
    reductions_of_warps_and_blocks,
];

const BLOCKS: [usize; 8] = [1, 7, 32, 33, 100, 256, 1000, 1024];

fn numbers(n: usize) -> Vec<u32> {
    (0..n).map(noise).collect()
}

/// How many bits are set.
fn ones<'k>(x: Val<'k>) -> Val<'k> {
    let pairs = x - ((x >> 1) & 0x5555_5555u32);
    let fours = (pairs & 0x3333_3333u32) + ((pairs >> 2) & 0x3333_3333u32);
    (((fours + (fours >> 4)) & 0x0f0f_0f0fu32) * 0x0101_0101u32) >> 24
}

/// The number of the lowest bit that is set.
fn lowest<'k>(x: Val<'k>) -> Val<'k> {
    ones((x & -x) - 1)
}

/// A reduction by `shfl_down` and one by `shfl_xor`. Every lane is compared: lanes at the edge of a
/// segment add their own value when there is none to get.
fn trees_of<T>(jit: &Jit, make: fn(u32) -> T, add: fn(T, T) -> T) -> Outcome
where
    T: KernelType + PartialEq + Debug,
{
    for width in [8u32, 16, 32] {
        let kernel = Kernel::build("trees", |k| {
            let t = k.ty::<T>();
            let (out, x) = (k.slice_mut("out", t), k.slice("x", t));
            let i = k.block_idx().x() * (k.block_dim().x() * k.block_dim().y()) + linear(k);
            let (down, xor) = (k.var("down", x.at(i)), k.var("xor", x.at(i)));
            let step = k.var("step", width / 2);
            k.while_(
                || step.get().gt(0),
                || {
                    down.set(down + k.shuffle_down(FULL_MASK, down, step, width));
                    xor.set(xor + k.shuffle_xor(FULL_MASK, xor, step, width));
                    step.set(step / 2);
                },
            );
            out.at(i * 2).set(down);
            out.at(i * 2 + 1).set(xor);
        })?;
        for block in [[256, 1, 1], [8, 12, 1]] {
            let n = 2 * block.iter().product::<u32>() as usize;
            let hx: Vec<T> = (0..n).map(|i| make(noise(i))).collect();
            let x = jit.upload(&hx)?;
            let out = run_blocks(jit, &kernel, 2, block, &vec![make(0); 2 * n], args!(&x))?;
            let (mut down, mut xor) = (hx.clone(), hx);
            for step in [16, 8, 4, 2, 1].into_iter().filter(|&s| s < width as usize) {
                let above = |i: usize| match i % width as usize + step < width as usize {
                    true => i + step,
                    false => i,
                };
                down = (0..n).map(|i| add(down[i], down[above(i)])).collect();
                xor = (0..n).map(|i| add(xor[i], xor[i ^ step])).collect();
            }
            for (i, got) in out.chunks(2).enumerate() {
                assert_eq!(got, [down[i], xor[i]], "thread {i} of {block:?} in {width}");
            }
        }
    }
    Ok(())
}

fn trees_of_shuffles_in_all_types(jit: &Jit) -> Outcome {
    trees_of::<u8>(jit, |x| x as u8, u8::wrapping_add)?;
    trees_of::<i16>(jit, |x| x as i16, i16::wrapping_add)?;
    trees_of::<u32>(jit, |x| x << 8, u32::wrapping_add)?;
    trees_of::<i32>(jit, |x| (x << 8) as i32, i32::wrapping_add)?;
    trees_of::<u64>(jit, |x| u64::from(x) << 39, u64::wrapping_add)?;
    trees_of::<i64>(jit, |x| i64::from(x) - (1 << 40), i64::wrapping_add)?;
    // Small integers, of which all sums are exact.
    trees_of::<f16>(jit, |x| f16::from_f32((x % 32) as f32), |a, b| a + b)?;
    trees_of::<f32>(jit, |x| (x % 4096) as f32, |a, b| a + b)?;
    trees_of::<f64>(jit, |x| f64::from(x) - 1e6, |a, b| a + b)
}

/// Inclusive scans by `shfl_up` in segments of each width, in a loop with a uniform bound.
fn scans_in_counted_loops(jit: &Jit) -> Outcome {
    for width in [8u32, 16, 32] {
        let kernel = Kernel::build("scan", |k| {
            let (out, x) = (k.slice_mut("out", Type::U32), k.slice("x", Type::U32));
            let i = k.global_id().x();
            let sum = k.var("sum", x.at(i));
            k.for_range(0u32, width.ilog2(), |round| {
                let delta = k.lit(Type::U32, 1) << round;
                let below = k.shuffle_up(FULL_MASK, sum, delta, width);
                k.if_((k.lane_id() % width).ge(delta), || sum.set(sum + below));
            });
            out.at(i).set(sum);
        })?;
        for block in BLOCKS {
            let hx = numbers(2 * block);
            let x = jit.upload(&hx)?;
            let out = run_blocks(
                jit,
                &kernel,
                2,
                block as u32,
                &vec![0; 2 * block],
                args!(&x),
            )?;
            for (out, x) in out.chunks(block).zip(hx.chunks(block)) {
                for (out, x) in out.chunks(width as usize).zip(x.chunks(width as usize)) {
                    let mut sum = 0;
                    for (got, x) in out.iter().zip(x) {
                        sum += x;
                        assert_eq!(*got, sum, "blocks of {block}, segments of {width}");
                    }
                }
            }
        }
    }
    Ok(())
}

/// Lanes leave a loop after different numbers of rounds; those that are left shuffle among
/// themselves: each gets what the lowest lane and the next lane, around the end, hold.
fn leaders_of_loops_that_lanes_leave(jit: &Jit) -> Outcome {
    let kernel = Kernel::build("leaders", |k| {
        let (out, x) = (k.slice_mut("out", Type::U32), k.slice("x", Type::U32));
        let i = k.global_id().x();
        let (v, round) = (k.var("v", x.at(i)), k.var("round", 0u32));
        let mask = k.var("mask", k.ballot(FULL_MASK, true));
        k.loop_(|| {
            let stays = round.get().lt(x.at(i) % 9);
            mask.set(k.ballot(mask, stays));
            k.if_(!stays, || k.break_());
            let leader = lowest(mask.get());
            let above = mask & k.lanemask_gt();
            let next = above.ne(0).select(lowest(above), leader);
            let of_leader = k.shuffle_idx(mask, v, leader, 32);
            let of_next = k.shuffle_idx(mask, v, next, 32);
            v.set(of_leader * 3 + of_next + round);
            round.set(round + 1);
        });
        out.at(i).set(v);
    })?;
    for block in BLOCKS {
        let hx = numbers(2 * block);
        let x = jit.upload(&hx)?;
        let out = run_blocks(
            jit,
            &kernel,
            2,
            block as u32,
            &vec![0; 2 * block],
            args!(&x),
        )?;
        for (out, x) in out.chunks(block).zip(hx.chunks(block)) {
            for warp in warps(block) {
                assert_eq!(
                    out[warp.clone()],
                    after_rounds(&x[warp]),
                    "blocks of {block}"
                );
            }
        }
    }
    Ok(())
}

/// The model of the kernel above, for a warp.
fn after_rounds(x: &[u32]) -> Vec<u32> {
    let mut v = x.to_vec();
    for round in 0..8 {
        let left: Vec<usize> = (0..x.len()).filter(|&l| x[l] % 9 > round).collect();
        let seen = v.clone();
        for (at, &lane) in left.iter().enumerate() {
            let next = left[(at + 1) % left.len()];
            let sum = seen[left[0]].wrapping_mul(3).wrapping_add(seen[next]);
            v[lane] = sum.wrapping_add(round);
        }
    }
    v
}

/// Elements that pass, in order: ranks by ballot in a warp, offsets of warps through shared memory.
fn stable_compaction_of_a_block(jit: &Jit) -> Outcome {
    let kernel = Kernel::build("compact", |k| {
        let (out, x) = (k.slice_mut("out", Type::U32), k.slice("x", Type::U32));
        let counts = k.slice_mut("counts", Type::U32);
        let of_warp = k.shared_array("of_warp", Type::U32, 32);
        let (i, n, block) = (k.global_id().x(), k.block_dim().x(), k.block_idx().x());
        let passes = k.var("passes", false);
        // Lanes beyond the end vote, too.
        k.if_(i.lt(x.len()), || passes.set((x.at(i) % 5).lt(2)));
        let votes = k.ballot(FULL_MASK, passes);
        k.if_(k.lane_id().eq(0), || {
            of_warp.at(k.warp_id()).set(ones(votes))
        });
        k.barrier();
        let offset = k.var("offset", 0u32);
        k.for_range(0u32, k.warp_id(), |warp| {
            offset.set(offset + of_warp.at(warp))
        });
        let rank = ones(votes & k.lanemask_lt());
        k.if_(passes, || out.at(block * n + offset + rank).set(x.at(i)));
        // The last thread knows how many there are.
        k.if_((k.thread_idx().x() + 1).eq(n), || {
            counts.at(block).set(offset + ones(votes))
        });
    })?;
    for block in BLOCKS {
        let hx = numbers(2 * block + block / 3);
        let x = jit.upload(&hx)?;
        let mut counts = jit.zeros::<u32>(4)?;
        let more = owned_args!(&x, &mut counts);
        let out = run_blocks(jit, &kernel, 4, block as u32, &vec![0; 4 * block], more)?;
        let counts = counts.to_vec()?;
        for (b, out) in out.chunks(block).enumerate() {
            let x = hx.chunks(block).nth(b).unwrap_or_default();
            let want: Vec<u32> = x.iter().copied().filter(|x| x % 5 < 2).collect();
            assert_eq!(counts[b] as usize, want.len(), "block {b} of {block}");
            assert_eq!(out[..want.len()], want, "block {b} of {block}");
        }
    }
    Ok(())
}

/// A vote as a number: `weight` or 0.
fn number(vote: Val<'_>, weight: u32) -> Val<'_> {
    vote.select(vote.builder().lit(Type::U32, weight), 0u32)
}

/// Votes under two branches, each with the mask of those that took both.
fn votes_in_nested_branches(jit: &Jit) -> Outcome {
    let kernel = Kernel::build("votes", |k| {
        let (out, x) = (k.slice_mut("out", Type::U32), k.slice("x", Type::U32));
        let i = k.global_id().x();
        let x = x.at(i).get();
        let bit = |n: u32| (x >> n & 1).ne(0);
        let votes = |mask: Val<'_>| {
            let q = bit(2);
            let sum = number(k.warp_any(mask, q), 1) + number(k.warp_all(mask, q), 2);
            out.at(i * 2).set(sum + number(k.warp_uniform(mask, q), 4));
            out.at(i * 2 + 1).set(k.ballot(mask, q));
        };
        let (p, not_p) = (k.ballot(FULL_MASK, bit(0)), k.ballot(FULL_MASK, !bit(0)));
        k.if_(bit(0), || {
            let (both, one) = (k.ballot(p, bit(1)), k.ballot(p, !bit(1)));
            k.if_(bit(1), || votes(both)).else_(|| votes(one));
        })
        .else_(|| {
            let stays = k.ballot(not_p, bit(1));
            // Those that return are in no mask that follows.
            k.if_(!bit(1), || k.return_());
            votes(stays);
        });
    })?;
    for block in BLOCKS {
        let hx = numbers(2 * block);
        let x = jit.upload(&hx)?;
        let out = run_blocks(
            jit,
            &kernel,
            2,
            block as u32,
            &vec![77; 4 * block],
            args!(&x),
        )?;
        for (out, x) in out.chunks(2 * block).zip(hx.chunks(block)) {
            for warp in warps(block) {
                for i in warp.clone() {
                    let want = nested_votes(x, warp.clone(), i);
                    assert_eq!(out[2 * i..][..2], want, "thread {i} of {block}");
                }
            }
        }
    }
    Ok(())
}

fn nested_votes(x: &[u32], warp: Range<usize>, i: usize) -> [u32; 2] {
    if x[i] & 3 == 0 {
        return [77, 77];
    }
    let peers: Vec<usize> = warp.clone().filter(|&j| x[j] & 3 == x[i] & 3).collect();
    let yes = |j: &&usize| x[**j] & 4 != 0;
    let count = peers.iter().filter(yes).count();
    let (any, all) = (count > 0, count == peers.len());
    let sum = u32::from(any) + 2 * u32::from(all) + 4 * u32::from(all || !any);
    let ballot = peers.iter().filter(yes).map(|j| 1 << (j - warp.start));
    [sum, ballot.sum()]
}

/// Lanes with equal keys elect a leader, which adds for all; the others get the sum from it and
/// take slots of their own.
fn slots_by_groups_of_equal_keys(jit: &Jit) -> Outcome {
    const KEYS: usize = 5;
    let kernel = Kernel::build("groups", |k| {
        let (out, x) = (k.slice_mut("out", Type::U32), k.slice("x", Type::U32));
        let counts = k.slice_mut("counts", Type::U32);
        let (i, room) = (k.global_id().x(), out.len() / KEYS as u32);
        let inside = i.lt(x.len());
        let mask = k.ballot(FULL_MASK, inside);
        k.if_(inside, || {
            let key = x.at(i) % KEYS as u32;
            let peers = k.match_any(mask, key);
            let leader = lowest(peers);
            let first = k.var("first", 0u32);
            k.if_(k.lane_id().eq(leader), || {
                first.set(counts.at(key).atomic_add(ones(peers)))
            });
            let first = k.shuffle_idx(peers, first, leader, 32);
            let slot = first + ones(peers & k.lanemask_lt());
            out.at(key * room + slot).set(i + 1);
        });
    })?;
    for block in BLOCKS {
        let hx = numbers(531);
        let x = jit.upload(&hx)?;
        let mut counts = jit.zeros::<u32>(KEYS)?;
        let more = owned_args!(&x, &mut counts);
        let grid = grid_for(hx.len(), block as u32);
        let out = run_blocks(jit, &kernel, grid, block as u32, &vec![0; KEYS * 531], more)?;
        let counts = counts.to_vec()?;
        for (key, out) in out.chunks(531).enumerate() {
            let mut got: Vec<u32> = out.iter().copied().filter(|&i| i != 0).collect();
            got.sort_unstable();
            let mine = (0..531).filter(|&i| hx[i] as usize % KEYS == key);
            let want: Vec<u32> = mine.map(|i| i as u32 + 1).collect();
            assert_eq!(got, want, "key {key}, blocks of {block}");
            assert_eq!(counts[key] as usize, want.len());
            assert!(
                out[want.len()..].iter().all(|&i| i == 0),
                "a slot was left out"
            );
        }
    }
    Ok(())
}

/// The same for whoever comes along: whatever lanes the mask holds, all get slots.
fn slots_by_who_is_there(jit: &Jit) -> Outcome {
    let kernel = Kernel::build("opportunistic", |k| {
        let (out, x) = (k.slice_mut("out", Type::U32), k.slice("x", Type::U32));
        let count = k.slice_mut("count", Type::U32);
        let i = k.global_id().x();
        k.for_range(0u32, x.at(i) % 4, |round| {
            k.if_(((x.at(i) >> (round + 4)) & 1).ne(0), || {
                let there = k.active_mask();
                let leader = lowest(there);
                let first = k.var("first", 0u32);
                k.if_(k.lane_id().eq(leader), || {
                    first.set(count.at(0).atomic_add(ones(there)))
                });
                let first = k.shuffle_idx(there, first, leader, 32);
                let slot = first + ones(there & k.lanemask_lt());
                out.at(slot).set(i * 4 + round);
            });
        });
    })?;
    for block in BLOCKS {
        let hx = numbers(2 * block);
        let x = jit.upload(&hx)?;
        let mut count = jit.zeros::<u32>(1)?;
        let more = owned_args!(&x, &mut count);
        let mut got = run_blocks(jit, &kernel, 2, block as u32, &vec![0; 8 * block], more)?;
        let mut want = Vec::new();
        for (i, x) in (0u32..).zip(&hx) {
            let rounds = (0..x % 4).filter(|round| x >> (round + 4) & 1 != 0);
            want.extend(rounds.map(|round| 4 * i + round));
        }
        assert_eq!(count.to_vec()?, [want.len() as u32], "blocks of {block}");
        got.truncate(want.len());
        got.sort_unstable();
        assert_eq!(got, want, "blocks of {block}");
    }
    Ok(())
}

/// Each warp sums up its part of shared memory by itself: `warp_sync` between the steps and no
/// barrier of the block.
fn trees_in_shared_memory_of_a_warp(jit: &Jit) -> Outcome {
    let kernel = Kernel::build("warp_trees", |k| {
        let (out, x) = (k.slice_mut("out", Type::U32), k.slice("x", Type::U32));
        let tile = k.shared_array("tile", Type::U32, 1024);
        let (t, i, n) = (k.thread_idx().x(), k.global_id().x(), k.block_dim().x());
        let first = t - k.lane_id();
        tile.at(t).set(x.at(i));
        k.warp_sync(FULL_MASK);
        let half = k.var("half", 16u32);
        k.while_(
            || half.get().gt(0),
            || {
                k.if_(k.lane_id().lt(half) & (t + half).lt(n), || {
                    let mut mine = tile.at(t);
                    mine += tile.at(t + half);
                });
                k.warp_sync(FULL_MASK);
                half.set(half / 2);
            },
        );
        out.at(i).set(tile.at(first));
    })?;
    for block in BLOCKS {
        let hx = numbers(2 * block);
        let x = jit.upload(&hx)?;
        let out = run_blocks(
            jit,
            &kernel,
            2,
            block as u32,
            &vec![0; 2 * block],
            args!(&x),
        )?;
        for (out, x) in out.chunks(block).zip(hx.chunks(block)) {
            for warp in warps(block) {
                let sum: u32 = x[warp.clone()].iter().sum();
                assert!(out[warp].iter().all(|&got| got == sum), "blocks of {block}");
            }
        }
    }
    Ok(())
}

/// The reduction of CUB: shuffles in a warp, shared memory between warps, shuffles in the first
/// warp; with returns of lanes beyond the end before all of it.
fn reductions_of_warps_and_blocks(jit: &Jit) -> Outcome {
    let kernel = Kernel::build("cub", |k| {
        let (out, x) = (k.slice_mut("out", Type::I32), k.slice("x", Type::I32));
        let sums = k.shared_array("sums", Type::I32, 32);
        let (i, n) = (k.global_id().x(), k.block_dim().x());
        let v = k.var("v", 0i32);
        k.if_(i.lt(x.len()), || v.set(x.at(i)));
        let tree = |v: Var<'_>| {
            for delta in [16u32, 8, 4, 2, 1] {
                let above = k.shuffle_down(FULL_MASK, v, delta, 32);
                // Lanes that a short warp does not have are not read.
                let there = (linear(k) + delta).lt(n) & (k.lane_id() + delta).lt(32);
                k.if_(there, || v.set(v + above));
            }
        };
        tree(v);
        k.if_(k.lane_id().eq(0), || sums.at(k.warp_id()).set(v));
        k.barrier();
        k.if_(k.warp_id().eq(0), || {
            let count = (n + 31) / 32;
            let sum = k.var("sum", 0i32);
            k.if_(k.lane_id().lt(count), || sum.set(sums.at(k.lane_id())));
            let total = k.warp_reduce_add(FULL_MASK, sum);
            let least = k.warp_reduce_min(FULL_MASK, sum);
            k.if_(k.lane_id().eq(0), || {
                out.at(k.block_idx().x() * 2).set(total);
                out.at(k.block_idx().x() * 2 + 1).set(least);
            });
        });
    })?;
    for block in BLOCKS {
        let hx: Vec<i32> = (0..2 * block + block / 2)
            .map(|i| noise(i) as i32 - (1 << 23))
            .collect();
        let x = jit.upload(&hx)?;
        let out = run_blocks(jit, &kernel, 3, block as u32, &[7; 6], args!(&x))?;
        for (b, got) in out.chunks(2).enumerate() {
            let x = hx.chunks(block).nth(b).unwrap_or_default();
            let mut sums: Vec<i32> = x.chunks(32).map(|x| x.iter().sum()).collect();
            let total: i32 = sums.iter().sum();
            // The lanes of the first warp that got no sum have 0.
            sums.resize(block.min(32).max(sums.len()), 0);
            let least = sums.into_iter().min().unwrap_or(0);
            assert_eq!(got, [total, least], "block {b} of {block}");
        }
    }
    Ok(())
}
