//! What warp operations are made for, and how they go with branches, loops, returns, barriers, device
//! functions and generic types.

use kiln::prelude::*;

use super::warp::{SHAPES, WIDTHS, linear, mask_of, noise, run, threads, warps};
use super::{Outcome, chapter};

chapter![
    sums_by_shuffles,
    scans_by_shuffles,
    compaction_by_ballots,
    leaders_by_matches,
    sums_of_lanes_that_match,
    loops_that_lanes_leave,
    lanes_that_return_early,
    exchanges_between_lanes_through_shared_memory,
    warps_between_barriers,
    warp_operations_in_device_functions,
    warp_operations_of_any_type,
];

/// How many bits are set.
fn ones<'k>(x: Val<'k>) -> Val<'k> {
    let pairs = x - ((x >> 1) & 0x5555_5555u32);
    let fours = (pairs & 0x3333_3333u32) + ((pairs >> 2) & 0x3333_3333u32);
    (((fours + (fours >> 4)) & 0x0f0f_0f0fu32) * 0x0101_0101u32) >> 24
}

fn sums_by_shuffles(jit: &Jit) -> Outcome {
    let kernel = Kernel::build("sums", |k| {
        let (out, x) = (k.slice_mut("out", Type::F32), k.slice("x", Type::F32));
        let (i, n) = (linear(k), x.len());
        for (slot, width) in (0u32..).zip(WIDTHS) {
            let (down, xor) = (k.var("down", x.at(i)), k.var("xor", x.at(i)));
            let step = k.var("step", k.lit(Type::U32, width / 2));
            k.while_(
                || step.get().gt(0),
                || {
                    down.set(down + k.shuffle_down(FULL_MASK, down, step, width));
                    xor.set(xor + k.shuffle_xor(FULL_MASK, xor, step, width));
                    step.set(step >> 1);
                },
            );
            out.at(n * (2 * slot) + i).set(down);
            out.at(n * (2 * slot + 1) + i).set(xor);
        }
    })?;
    for shape in [[64, 1, 1], [8, 8, 2]] {
        let n = threads(shape);
        let hx: Vec<f32> = (0..n).map(|i| (noise(i) % 1000) as f32).collect();
        let x = jit.upload(&hx)?;
        let out = run(jit, &kernel, shape, vec![0f32; 12 * n], args!(&x))?;
        for (slot, width) in WIDTHS.into_iter().enumerate() {
            let (down, xor) = out[2 * slot * n..][..2 * n].split_at(n);
            for i in 0..n {
                let first = i / width as usize * width as usize;
                let want: f32 = hx[first..][..width as usize].iter().sum();
                assert_eq!(xor[i], want, "thread {i}, width {width}");
                if i == first {
                    assert_eq!(down[i], want, "thread {i}, width {width}");
                }
            }
        }
    }
    Ok(())
}

fn scans_by_shuffles(jit: &Jit) -> Outcome {
    let kernel = Kernel::build("scan", |k| {
        let (out, x) = (k.slice_mut("out", Type::U32), k.slice("x", Type::U32));
        let width = k.param("width", Type::U32);
        let i = linear(k);
        let (sum, delta) = (k.var("sum", x.at(i)), k.var("delta", k.lit(Type::U32, 1)));
        k.while_(
            || delta.get().lt(width),
            || {
                let below = k.shuffle_up(FULL_MASK, sum, delta, 32);
                k.if_(k.lane_id().ge(delta), || sum.set(sum + below));
                delta.set(delta * 2);
            },
        );
        out.at(i).set(sum);
    })?;
    for shape in SHAPES {
        let n = threads(shape);
        let hx: Vec<u32> = (0..n).map(noise).collect();
        let x = jit.upload(&hx)?;
        let out = run(jit, &kernel, shape, vec![0u32; n], args!(&x, 32u32))?;
        for warp in warps(n) {
            let mut sum = 0u32;
            for i in warp {
                sum = sum.wrapping_add(hx[i]);
                assert_eq!(out[i], sum, "thread {i} of {shape:?}");
            }
        }
    }
    Ok(())
}

fn compaction_by_ballots(jit: &Jit) -> Outcome {
    let kernel = Kernel::build("compact", |k| {
        let (out, x) = (k.slice_mut("out", Type::U32), k.slice("x", Type::U32));
        let count = k.slice_mut("count", Type::U32);
        let i = k.global_id().x();
        k.if_(i.ge(x.len()), || k.return_());
        let keep = (x.at(i) % 3).eq(0);
        let kept = k.ballot(FULL_MASK, keep);
        let first = k.var("first", k.lit(Type::U32, 0));
        k.if_(k.lane_id().eq(0) & kept.ne(0), || {
            first.set(count.at(0).atomic_add(ones(kept)));
        });
        let first = k.shuffle_idx(FULL_MASK, first, 0, 32);
        let rank = ones(kept & k.lanemask_lt());
        k.if_(keep, || out.at(first + rank).set(x.at(i)));
    })?;
    for n in [0, 1, 31, 32, 33, 500, 1000] {
        let hx: Vec<u32> = (0..n).map(noise).collect();
        let want: Vec<u32> = hx.iter().copied().filter(|x| x % 3 == 0).collect();
        let x = jit.upload(&hx)?;
        let (mut out, mut count) = (jit.zeros::<u32>(n)?, jit.zeros::<u32>(1)?);
        jit.launch(&kernel, 8, 128, args!(&mut out, &x, &mut count))?;
        assert_eq!(count.to_vec()?, [want.len() as u32]);
        let mut got = out.to_vec()?[..want.len()].to_vec();
        let mut want = want;
        got.sort_unstable();
        want.sort_unstable();
        assert_eq!(got, want, "of {n}");
    }
    Ok(())
}

fn leaders_by_matches(jit: &Jit) -> Outcome {
    let kernel = Kernel::build("histogram", |k| {
        let (bins, x) = (k.slice_mut("bins", Type::U32), k.slice("x", Type::U32));
        let atomics = k.slice_mut("atomics", Type::U32);
        let i = k.global_id().x();
        let inside = i.lt(x.len());
        let mask = k.ballot(FULL_MASK, inside);
        k.if_(inside, || {
            let bin = x.at(i) % bins.len();
            let peers = k.match_any(mask, bin);
            k.if_((peers & k.lanemask_lt()).eq(0), || {
                bins.at(bin).atomic_add(ones(peers));
                atomics.at(0).atomic_add(1);
            });
        });
    })?;
    let hx: Vec<u32> = (0..1000).map(noise).collect();
    let x = jit.upload(&hx)?;
    let (mut bins, mut atomics) = (jit.zeros::<u32>(5)?, jit.zeros::<u32>(1)?);
    jit.launch(&kernel, 11, 100, args!(&mut bins, &x, &mut atomics))?;
    let mut want = [0u32; 5];
    hx.iter().for_each(|x| want[*x as usize % 5] += 1);
    assert_eq!(bins.to_vec()?, want);
    // Each warp adds once for each bin it meets.
    let mut leaders = 0;
    for block in hx.chunks(100) {
        for warp in block.chunks(32) {
            let bins: std::collections::BTreeSet<u32> = warp.iter().map(|x| x % 5).collect();
            leaders += bins.len() as u32;
        }
    }
    assert_eq!(atomics.to_vec()?, [leaders]);
    Ok(())
}

/// Lanes at one place with member masks of their own: what is the same in all lanes of a mask differs
/// from lane to lane.
fn sums_of_lanes_that_match(jit: &Jit) -> Outcome {
    let kernel = Kernel::build("groups", |k| {
        let (out, x) = (k.slice_mut("out", Type::U32), k.slice("x", Type::U32));
        let (i, n) = (linear(k), x.len());
        let value = x.at(i).get();
        let peers = k.match_any(FULL_MASK, value % 5);
        let odd = (value & 1).ne(0);
        let results = [
            k.warp_reduce_add(peers, value),
            k.warp_reduce_max(peers, value),
            k.ballot(peers, odd),
            k.warp_all(peers, odd).select(k.lit(Type::U32, 1), 0u32),
            k.match_any(peers, value & 1),
            k.match_all(peers, value & 1),
        ];
        for (slot, result) in (0u32..).zip(results) {
            out.at(n * slot + i).set(result);
        }
        // Only lanes of groups that are all odd go here.
        k.if_(results[3].ne(0), || out.at(n * 6 + i).set(k.active_mask()));
    })?;
    let exact = jit.device().info().kind == DeviceKind::Cpu;
    for shape in SHAPES {
        let n = threads(shape);
        let hx: Vec<u32> = (0..n).map(|i| noise(i) % 1000).collect();
        let x = jit.upload(&hx)?;
        let out = run(jit, &kernel, shape, vec![0u32; 7 * n], args!(&x))?;
        for warp in warps(n) {
            let peers = |i: usize| mask_of(warp.clone(), |j| hx[j] % 5 == hx[i] % 5);
            let odd = mask_of(warp.clone(), |j| hx[j] & 1 == 1);
            let alone = mask_of(warp.clone(), |j| peers(j) & !odd == 0);
            for i in warp.clone() {
                let values = || warp.clone().map(|j| hx[j]).filter(|x| x % 5 == hx[i] % 5);
                let like = if hx[i] & 1 == 1 { odd } else { !odd };
                let (peers, alike) = (peers(i), peers(i) & like);
                let want = [
                    values().sum(),
                    values().max().unwrap_or(0),
                    peers & odd,
                    (peers & !odd == 0).into(),
                    alike,
                    if alike == peers { peers } else { 0 },
                ];
                let got: Vec<u32> = (0..7).map(|slot| out[slot * n + i]).collect();
                assert_eq!(got[..6], want, "thread {i} of {shape:?}");
                let here = if want[3] == 1 { alone } else { 0 };
                assert!(!exact || got[6] == here, "thread {i} of {shape:?}");
            }
        }
    }
    Ok(())
}

fn loops_that_lanes_leave(jit: &Jit) -> Outcome {
    // A round of each lane for each of its `x`, with those that are left.
    let kernel = Kernel::build("rounds", |k| {
        let (out, x) = (k.slice_mut("out", Type::U32), k.slice("x", Type::U32));
        let i = linear(k);
        let (round, seen) = (
            k.var("round", k.lit(Type::U32, 0)),
            k.var("seen", k.lit(Type::U32, 0)),
        );
        let mask = k.var("mask", k.lit(Type::U32, FULL_MASK));
        k.loop_(|| {
            let more = round.get().lt(x.at(i));
            mask.set(k.ballot(mask, more));
            k.if_(!more, || k.break_());
            seen.set(seen + k.warp_reduce_add(mask, round + 1u32));
            round.set(round + 1u32);
        });
        out.at(i).set(seen);
    })?;
    for shape in SHAPES {
        let n = threads(shape);
        let hx: Vec<u32> = (0..n).map(|i| noise(i) % 20).collect();
        let x = jit.upload(&hx)?;
        let out = run(jit, &kernel, shape, vec![0u32; n], args!(&x))?;
        for warp in warps(n) {
            for i in warp.clone() {
                let left = |round| hx[warp.clone()].iter().filter(|&&x| x > round).count() as u32;
                let want: u32 = (0..hx[i]).map(|round| (round + 1) * left(round)).sum();
                assert_eq!(out[i], want, "thread {i} of {shape:?}");
            }
        }
    }
    Ok(())
}

fn lanes_that_return_early(jit: &Jit) -> Outcome {
    let kernel = Kernel::build("ragged", |k| {
        let (out, x) = (k.slice_mut("out", Type::U32), k.slice("x", Type::U32));
        let (i, n) = (linear(k), x.len());
        let value = x.at(i).get();
        k.if_((value % 4).eq(1), || k.return_());
        out.at(i).set(k.ballot(FULL_MASK, true));
        // An index out of bounds ends its thread too.
        k.if_((value % 4).eq(2), || out.at(out.len()).set(1));
        let left = k.ballot(FULL_MASK, true);
        out.at(n + i).set(left);
        out.at(n * 2 + i).set(k.warp_reduce_add(left, value));
        k.barrier();
        out.at(n * 3 + i).set(k.match_all(FULL_MASK, n));
    })?;
    for shape in SHAPES {
        let n = threads(shape);
        let hx: Vec<u32> = (0..n).map(noise).collect();
        let x = jit.upload(&hx)?;
        let mut out = jit.zeros::<u32>(4 * n)?;
        jit.launch(&kernel, 1, shape, args!(&mut out, &x))?;
        let fault = jit.synchronize();
        assert!(
            matches!(
                fault,
                Err(kiln::Error::Run(kiln::error::RunError::Fault(_)))
            ),
            "{fault:?}"
        );
        let out = out.to_vec()?;
        for warp in warps(n) {
            let first = mask_of(warp.clone(), |i| hx[i] % 4 != 1);
            let left = mask_of(warp.clone(), |i| hx[i] % 4 != 1 && hx[i] % 4 != 2);
            let sum = warp.clone().filter(|i| left >> (i % 32) & 1 == 1);
            let sum = sum.fold(0u32, |sum, i| sum.wrapping_add(hx[i]));
            for i in warp {
                let want = match hx[i] % 4 {
                    1 => [0; 4],
                    2 => [first, 0, 0, 0],
                    _ => [first, left, sum, left],
                };
                let got: Vec<u32> = (0..4).map(|slot| out[slot * n + i]).collect();
                assert_eq!(got, want, "thread {i} of {shape:?}");
            }
        }
    }
    Ok(())
}

fn exchanges_between_lanes_through_shared_memory(jit: &Jit) -> Outcome {
    let kernel = Kernel::build("exchange", |k| {
        let (out, x) = (k.slice_mut("out", Type::U32), k.slice("x", Type::U32));
        let tile = k.shared_array("tile", Type::U32, 128);
        let i = linear(k);
        let partner = (i & !31u32) + (i + 1) % 32;
        tile.at(i).set(x.at(i));
        k.for_range(0u32, 5u32, |_| {
            k.warp_sync(FULL_MASK);
            let next = tile.at(partner).get();
            k.warp_sync(FULL_MASK);
            tile.at(i).set(next * 3);
        });
        out.at(i).set(tile.at(i));
    })?;
    for shape in [[64, 1, 1], [8, 8, 2]] {
        let n = threads(shape);
        let hx: Vec<u32> = (0..n).map(noise).collect();
        let x = jit.upload(&hx)?;
        let out = run(jit, &kernel, shape, vec![0u32; n], args!(&x))?;
        for (i, &got) in out.iter().enumerate() {
            let from = i / 32 * 32 + (i + 5) % 32;
            assert_eq!(got, hx[from].wrapping_mul(243), "thread {i}");
        }
    }
    Ok(())
}

fn warps_between_barriers(jit: &Jit) -> Outcome {
    // The sum of a block: of each warp, then of the warps.
    let kernel = Kernel::build("block_sum", |k| {
        let (out, x) = (k.slice_mut("out", Type::U32), k.slice("x", Type::U32));
        let sums = k.shared_array("sums", Type::U32, 32);
        let total = k.shared_array("total", Type::U32, 1);
        let (i, n) = (linear(k), x.len());
        k.if_(i.lt(32), || sums.at(i).set(0));
        k.barrier();
        let sum = k.warp_reduce_add(FULL_MASK, x.at(i));
        k.if_(k.lane_id().eq(0), || sums.at(k.warp_id()).set(sum));
        k.barrier();
        k.if_(k.warp_id().eq(0), || {
            let mine = (i * 32u32).lt(n).select(sums.at(i), k.lit(Type::U32, 0));
            let sum = k.warp_reduce_add(FULL_MASK, mine);
            k.if_(i.eq(0), || total.at(0).set(sum));
        });
        k.barrier();
        out.at(i).set(total.at(0));
    })?;
    for shape in [
        [32, 1, 1],
        [33, 1, 1],
        [100, 1, 1],
        [16, 8, 2],
        [1000, 1, 1],
    ] {
        let n = threads(shape);
        let hx: Vec<u32> = (0..n).map(noise).collect();
        let want = hx.iter().fold(0u32, |sum, x| sum.wrapping_add(*x));
        let x = jit.upload(&hx)?;
        let out = run(jit, &kernel, shape, vec![0u32; n], args!(&x))?;
        assert_eq!(out, vec![want; n], "{shape:?}");
    }
    Ok(())
}

fn warp_operations_in_device_functions(jit: &Jit) -> Outcome {
    let rank = DeviceFn::build("rank", |f| {
        let (mask, x) = (f.param("mask", Type::U32), f.param("x", Type::U32));
        f.if_((x & 1).eq(0), || {
            f.return_value(f.warp_reduce_min(f.active_mask(), x))
        });
        f.return_value(ones(f.match_any(mask, x) & f.lanemask_lt()));
    })?;
    let kernel = Kernel::build("ranks", |k| {
        let (out, x) = (k.slice_mut("out", Type::U32), k.slice("x", Type::U32));
        let i = linear(k);
        let odd = k.ballot(FULL_MASK, (x.at(i) & 1).ne(0));
        k.if_((x.at(i) & 1).ne(0), || {
            out.at(i).set(k.call(&rank, &[odd, x.at(i).get()]))
        });
    })?;
    for shape in SHAPES {
        let n = threads(shape);
        let hx: Vec<u32> = (0..n).map(|i| noise(i) % 8).collect();
        let x = jit.upload(&hx)?;
        let out = run(jit, &kernel, shape, vec![77u32; n], args!(&x))?;
        for warp in warps(n) {
            for i in warp.clone() {
                let rank = (warp.start..i).filter(|&j| hx[j] == hx[i]).count() as u32;
                let want = if hx[i] % 2 == 1 { rank } else { 77 };
                assert_eq!(out[i], want, "thread {i} of {shape:?}");
            }
        }
    }
    Ok(())
}

fn warp_operations_of_any_type(jit: &Jit) -> Outcome {
    // The type is bound when the kernel is launched.
    let kernel = Kernel::build("any_type", |k| {
        let t = k.type_param("T").any();
        let (out, x) = (k.slice_mut("out", t), k.slice("x", t));
        let i = linear(k);
        out.at(i).set(k.shuffle_xor(FULL_MASK, x.at(i), 1, 32));
    })?;
    let x = jit.upload(&(0..64u64).map(|i| i << 33).collect::<Vec<_>>())?;
    let out = run(jit, &kernel, [64, 1, 1], vec![0u64; 64], args!(&x))?;
    assert!(out.iter().zip(0u64..).all(|(&got, i)| got == (i ^ 1) << 33));
    let x = jit.upload(&(0..64).map(|i| i as f32 * 0.5).collect::<Vec<_>>())?;
    let out = run(jit, &kernel, [64, 1, 1], vec![0f32; 64], args!(&x))?;
    assert!(
        out.iter()
            .zip(0u32..)
            .all(|(&got, i)| got == (i ^ 1) as f32 * 0.5)
    );
    Ok(())
}
