//! Groups of threads and what they compute together, against the host: in blocks of any size and shape, in tiles that a
//! block does not fill, where lanes have ended or gone apart, with operators whose operands may not change places.

use std::ops::Range;

use kiln::prelude::*;

use super::warp::{SHAPES, mask_of, noise, threads, warps};
use super::{Outcome, chapter};

chapter![
    ranks_and_sizes,
    shuffles_by_rank,
    votes_of_groups,
    tiles_combine_in_order,
    lanes_apart_combine_in_order,
    ended_lanes_are_no_members,
    lanes_of_a_mask_that_have_not_ended,
    one_lane_is_elected,
    blocks_combine_in_order,
    blocks_of_several_dimensions_combine,
    blocks_combine_again_and_again,
    tuples_and_structs_are_combined,
    elements_change_their_arrangement,
    blocks_hand_values_on,
    threads_that_have_ended_send_nothing,
    blocks_refuse_ranks_and_memory,
];

/// The function `x -> factor * x + sum`, modulo 2^32: one after the other is associative, and not commutative.
#[derive(KernelType, Copy, Clone, Debug, PartialEq, Eq)]
#[repr(C)]
pub(super) struct Affine {
    pub(super) factor: u32,
    pub(super) sum: u32,
}

#[device_fn]
impl Affine {
    pub(super) fn then(self, next: Affine) -> Affine {
        Affine {
            factor: self.factor.wrapping_mul(next.factor),
            sum: self.sum.wrapping_mul(next.factor).wrapping_add(next.sum),
        }
    }
}

const SAME: Affine = Affine { factor: 1, sum: 0 };

fn affines(n: usize) -> Vec<Affine> {
    let affine = |i| Affine {
        factor: noise(i) | 1,
        sum: noise(7 * i),
    };
    (0..n).map(affine).collect()
}

/// All in order; after `first`.
fn in_order(first: Affine, all: impl IntoIterator<Item = Affine>) -> Affine {
    all.into_iter().fold(first, Affine::then)
}

/// What a kernel of this chapter gives a thread: the whole, that up to it, that before it.
type Three = [Affine; 3];

/// What members have, in order: for the one with a rank.
fn three_of(members: &[Affine], rank: usize) -> Three {
    let first = Affine { factor: 3, sum: 5 };
    [
        in_order(SAME, members.iter().copied()),
        in_order(SAME, members[..=rank].iter().copied()),
        in_order(first, members[..rank].iter().copied()),
    ]
}

#[device_fn]
fn three(group: LaneGroup, mine: Affine) -> Three {
    let first = Affine { factor: 3, sum: 5 };
    [
        group_reduce(group, mine, |a, b| a.then(b)),
        group_inclusive_scan(group, mine, |a, b| a.then(b)),
        group_exclusive_scan(group, mine, first, |a, b| a.then(b)),
    ]
}

const NONE: Three = [Affine { factor: 0, sum: 0 }; 3];

/// The number of the thread in its block.
#[device_fn]
fn linear() -> usize {
    this_block().rank() as usize
}

#[kernel]
fn positions(out: &mut [[u32; 6]]) {
    let (block, warp, four) = (this_block(), this_warp(), tile(4));
    let halves = labeled(warp, lane_id() % 3 == 0);
    out[linear()] = [
        block.size(),
        warp.size() + 100 * warp.rank(),
        four.size() + 100 * four.rank(),
        four.mask(),
        halves.size() + 100 * halves.rank(),
        halves.lane(halves.rank()) + 100 * halves.is_first() as u32,
    ];
}

fn ranks_and_sizes(jit: &Jit) -> Outcome {
    for shape in SHAPES {
        let n = threads(shape);
        let mut out = jit.upload(&vec![[0u32; 6]; n])?;
        jit.launch(&positions, 1, shape, args!(&mut out))?;
        let out = out.to_vec()?;
        for warp in warps(n) {
            for i in warp.clone() {
                let lane = i - warp.start;
                let four = (lane / 4 * 4..(lane / 4 * 4 + 4).min(warp.len())).len() as u32;
                let in_half =
                    |j: usize| (j - warp.start).is_multiple_of(3) == lane.is_multiple_of(3);
                let half: Vec<usize> = warp.clone().filter(|&j| in_half(j)).collect();
                let rank = half.iter().position(|&j| j == i).expect("it is a member") as u32;
                let want = [
                    n as u32,
                    warp.len() as u32 + 100 * lane as u32,
                    four + 100 * (lane as u32 % 4),
                    (u32::MAX >> (32 - four)) << (lane / 4 * 4),
                    half.len() as u32 + 100 * rank,
                    lane as u32 + 100 * u32::from(rank == 0),
                ];
                assert_eq!(out[i], want, "thread {i} of {shape:?}");
            }
        }
    }
    Ok(())
}

#[kernel]
fn shuffles(x: &[u32], out: &mut [[u32; 5]]) {
    let i = linear();
    let group = labeled(this_warp(), x[i] % 2 == 0);
    out[i] = [
        group.shuffle(x[i], x[i] % 40),
        group.shuffle_up(x[i], 2),
        group.shuffle_down(x[i], 3),
        group.shuffle_xor(x[i], 5),
        group.broadcast(x[i]),
    ];
}

fn shuffles_by_rank(jit: &Jit) -> Outcome {
    for shape in SHAPES {
        let n = threads(shape);
        let x: Vec<u32> = (0..n).map(noise).collect();
        let mut out = jit.upload(&vec![[0u32; 5]; n])?;
        jit.launch(&shuffles, 1, shape, args!(&jit.upload(&x)?, &mut out))?;
        let out = out.to_vec()?;
        for warp in warps(n) {
            for i in warp.clone() {
                let group: Vec<u32> = warp
                    .clone()
                    .map(|j| x[j])
                    .filter(|v| v % 2 == x[i] % 2)
                    .collect();
                let below = warp.start..i;
                let rank = below.filter(|&j| x[j] % 2 == x[i] % 2).count();
                let of = |rank: usize| group.get(rank).copied().unwrap_or(x[i]);
                let up = rank.checked_sub(2).map_or(x[i], of);
                let want = [
                    of(x[i] as usize % 40),
                    up,
                    of(rank + 3),
                    of(rank ^ 5),
                    group[0],
                ];
                assert_eq!(out[i], want, "thread {i} of {shape:?}");
            }
        }
    }
    Ok(())
}

#[kernel]
fn group_votes(x: &[u32], out: &mut [[u32; 5]]) {
    let i = linear();
    let (group, yes) = (tile(8), x[i] % 3 == 0);
    group.sync();
    out[i] = [
        group.any(yes) as u32,
        group.all(yes) as u32,
        group.count(yes),
        group.ballot(yes),
        group.rank_where(yes),
    ];
}

fn votes_of_groups(jit: &Jit) -> Outcome {
    for shape in SHAPES {
        let n = threads(shape);
        let x: Vec<u32> = (0..n).map(|i| noise(i / 8) % 2 * noise(i)).collect();
        let mut out = jit.upload(&vec![[0u32; 5]; n])?;
        jit.launch(&group_votes, 1, shape, args!(&jit.upload(&x)?, &mut out))?;
        let out = out.to_vec()?;
        for warp in warps(n) {
            for i in warp.clone() {
                let tile = (i - warp.start) / 8;
                let is_yes = |j: usize| (j - warp.start) / 8 == tile && x[j].is_multiple_of(3);
                let yes = mask_of(warp.clone(), is_yes);
                let size = warp
                    .clone()
                    .filter(|j| (j - warp.start) / 8 == tile)
                    .count() as u32;
                let count = yes.count_ones();
                let below = (yes & ((1 << (i - warp.start)) - 1)).count_ones();
                let want = [
                    (count > 0).into(),
                    (count == size).into(),
                    count,
                    yes,
                    below,
                ];
                assert_eq!(out[i], want, "thread {i} of {shape:?}");
            }
        }
    }
    Ok(())
}

#[kernel]
fn in_tiles<const N: u32>(x: &[Affine], out: &mut [Three]) {
    let i = linear();
    out[i] = three(tile(N), x[i]);
}

fn check_tiles<const N: u32>(jit: &Jit) -> Outcome {
    for shape in [[64, 1, 1], [7, 1, 1], [100, 1, 1], [5, 3, 3]] {
        let n = threads(shape);
        let x = affines(n);
        let mut out = jit.upload(&vec![NONE; n])?;
        in_tiles.launch::<N>(jit, (1, shape), &jit.upload(&x)?, &mut out)?;
        let out = out.to_vec()?;
        for (at, tile) in x.chunks(N as usize).enumerate() {
            for rank in 0..tile.len() {
                let i = at * N as usize + rank;
                assert_eq!(
                    out[i],
                    three_of(tile, rank),
                    "thread {i} of {shape:?}, tiles of {N}"
                );
            }
        }
    }
    Ok(())
}

fn tiles_combine_in_order(jit: &Jit) -> Outcome {
    check_tiles::<1>(jit)?;
    check_tiles::<2>(jit)?;
    check_tiles::<4>(jit)?;
    check_tiles::<8>(jit)?;
    check_tiles::<16>(jit)?;
    check_tiles::<32>(jit)
}

/// The members of `x` in a warp for which `chosen` is what it is for `i`, and the rank of `i` among them.
fn members(
    x: &[Affine],
    warp: Range<usize>,
    i: usize,
    chosen: impl Fn(usize) -> u32,
) -> (Vec<Affine>, usize) {
    let alike = |j: &usize| chosen(*j) == chosen(i);
    let rank = (warp.start..i).filter(alike).count();
    (warp.filter(alike).map(|j| x[j]).collect(), rank)
}

#[kernel]
fn apart(x: &[Affine], class: &[u32], out: &mut [Three], masked: &mut [Three]) {
    let i = linear();
    let label = class[i];
    let group = labeled(this_warp(), label);
    let (low, mine) = (ballot(FULL_MASK, label == 0), x[i]);
    // Each class in a place of its own, and all of them in one.
    if label == 0 {
        let first = Affine { factor: 3, sum: 5 };
        masked[i] = [
            warp_reduce(low, mine, |a, b| a.then(b)),
            warp_inclusive_scan(low, mine, |a, b| a.then(b)),
            warp_exclusive_scan(low, mine, first, |a, b| a.then(b)),
        ];
    } else {
        masked[i] = three(group, mine);
    }
    out[i] = three(group, mine);
}

fn lanes_apart_combine_in_order(jit: &Jit) -> Outcome {
    let classes: [fn(usize) -> u32; 4] = [
        |i| noise(i) % 3,
        |i| (i / 5) as u32 % 2,
        |i| u32::from(i % 32 > 20),
        |i| i as u32,
    ];
    for (shape, class) in SHAPES.into_iter().zip(classes.into_iter().cycle()) {
        let n = threads(shape);
        let (x, class): (_, Vec<u32>) = (affines(n), (0..n).map(class).collect());
        let (mut out, mut masked) = (jit.upload(&vec![NONE; n])?, jit.upload(&vec![NONE; n])?);
        let inputs = (jit.upload(&x)?, jit.upload(&class)?);
        jit.launch(
            &apart,
            1,
            shape,
            args!(&inputs.0, &inputs.1, &mut out, &mut masked),
        )?;
        let (out, masked) = (out.to_vec()?, masked.to_vec()?);
        for warp in warps(n) {
            for i in warp.clone() {
                let (members, rank) = members(&x, warp.clone(), i, |j| class[j]);
                let want = three_of(&members, rank);
                assert_eq!([out[i], masked[i]], [want; 2], "thread {i} of {shape:?}");
            }
        }
    }
    Ok(())
}

#[kernel]
fn after_ends(x: &[Affine], out: &mut [Three], together: &mut [u32]) {
    let i = linear();
    if x[i].sum % 3 == 0 {
        return;
    }
    out[i] = three(this_warp(), x[i]);
    let here = coalesced();
    together[i] = here.size() + 100 * here.rank();
}

fn ended_lanes_are_no_members(jit: &Jit) -> Outcome {
    let exact = jit.device().info().kind == DeviceKind::Cpu;
    for shape in SHAPES {
        let n = threads(shape);
        let x = affines(n);
        let (mut out, mut together) = (jit.upload(&vec![NONE; n])?, jit.zeros::<u32>(n)?);
        jit.launch(
            &after_ends,
            1,
            shape,
            args!(&jit.upload(&x)?, &mut out, &mut together),
        )?;
        let (out, together) = (out.to_vec()?, together.to_vec()?);
        for warp in warps(n) {
            for i in warp.clone() {
                let what = format!("thread {i} of {shape:?}");
                if x[i].sum.is_multiple_of(3) {
                    assert_eq!((out[i], together[i]), (NONE, 0), "{what}");
                    continue;
                }
                let is_left = |j: usize| u32::from(!x[j].sum.is_multiple_of(3));
                let (members, rank) = members(&x, warp.clone(), i, is_left);
                assert_eq!(out[i], three_of(&members, rank), "{what}");
                // On a GPU it is up to the machine who is there.
                let all = members.len() as u32 + 100 * rank as u32;
                assert!(!exact || together[i] == all, "{what}");
            }
        }
    }
    Ok(())
}

/// One class of three has ended, the others come by two ways; each mask has more lanes than are there.
#[kernel]
fn by_masks(x: &[Affine], out: &mut [Three], groups: &mut [[u32; 3]]) {
    let i = linear();
    let class = x[i].sum % 3;
    let others = ballot(FULL_MASK, class != 1);
    if class == 0 {
        return;
    }
    let group = if class == 1 {
        lanes_of(!others)
    } else {
        lanes_of(others)
    };
    out[i] = three(group, x[i]);
    groups[i] = [group.mask(), group.size(), group.rank()];
}

fn lanes_of_a_mask_that_have_not_ended(jit: &Jit) -> Outcome {
    for shape in SHAPES {
        let n = threads(shape);
        let x = affines(n);
        let (mut out, mut groups) = (jit.upload(&vec![NONE; n])?, jit.zeros::<[u32; 3]>(n)?);
        let input = jit.upload(&x)?;
        jit.launch(&by_masks, 1, shape, args!(&input, &mut out, &mut groups))?;
        let (out, groups) = (out.to_vec()?, groups.to_vec()?);
        for warp in warps(n) {
            for i in warp.clone() {
                let class = |j: usize| x[j].sum % 3;
                let (mut want, mut group) = (NONE, [0; 3]);
                if class(i) != 0 {
                    let (members, rank) = members(&x, warp.clone(), i, class);
                    let mask = mask_of(warp.clone(), |j| class(j) == class(i));
                    want = three_of(&members, rank);
                    group = [mask, members.len() as u32, rank as u32];
                }
                assert_eq!(
                    (out[i], groups[i]),
                    (want, group),
                    "thread {i} of {shape:?}"
                );
            }
        }
    }
    Ok(())
}

#[kernel]
fn elections(x: &[u32], out: &mut [u32]) {
    let i = linear();
    let odd = ballot(FULL_MASK, x[i] % 2 == 1);
    let first = elect(FULL_MASK);
    if x[i] % 2 == 1 {
        out[i] = elect(odd) as u32 + 2 * first as u32;
    } else {
        out[i] = elect(!odd) as u32 + 2 * first as u32;
    }
}

fn one_lane_is_elected(jit: &Jit) -> Outcome {
    for shape in SHAPES {
        let n = threads(shape);
        let x: Vec<u32> = (0..n).map(noise).collect();
        let mut out = jit.zeros::<u32>(n)?;
        jit.launch(&elections, 1, shape, args!(&jit.upload(&x)?, &mut out))?;
        let out = out.to_vec()?;
        for warp in warps(n) {
            for i in warp.clone() {
                let is_first = !(warp.start..i).any(|j| x[j] % 2 == x[i] % 2);
                let want = u32::from(is_first) + 2 * u32::from(i == warp.start);
                assert_eq!(out[i], want, "thread {i} of {shape:?}");
            }
        }
    }
    Ok(())
}

#[kernel]
fn of_block(x: &[Affine], out: &mut [Three]) {
    let i = linear();
    let first = Affine { factor: 3, sum: 5 };
    out[i] = [
        block_reduce(x[i], |a, b| a.then(b)),
        block_inclusive_scan(x[i], |a, b| a.then(b)),
        block_exclusive_scan(x[i], first, |a, b| a.then(b)),
    ];
}

#[kernel]
fn of_block_to_first(x: &[Affine], out: &mut [Affine]) {
    let sum = block_reduce_to_first(x[linear()], |a, b| a.then(b));
    if linear() == 0 {
        out[0] = sum;
    }
}

fn check_block(jit: &Jit, shape: [u32; 3]) -> Outcome {
    let n = threads(shape);
    let x = affines(n);
    let mut first = jit.upload(&[SAME])?;
    jit.launch(
        &of_block_to_first,
        1,
        shape,
        args!(&jit.upload(&x)?, &mut first),
    )?;
    assert_eq!(first.to_vec()?, [in_order(SAME, x.iter().copied())]);
    let mut out = jit.upload(&vec![NONE; n])?;
    jit.launch(&of_block, 1, shape, args!(&jit.upload(&x)?, &mut out))?;
    let whole = in_order(SAME, x.iter().copied());
    let (mut up_to, mut before) = (SAME, Affine { factor: 3, sum: 5 });
    for (i, (got, &mine)) in out.to_vec()?.into_iter().zip(&x).enumerate() {
        up_to = up_to.then(mine);
        assert_eq!(got, [whole, up_to, before], "thread {i} of {shape:?}");
        before = before.then(mine);
    }
    Ok(())
}

fn blocks_combine_in_order(jit: &Jit) -> Outcome {
    for n in [1, 31, 32, 33, 64, 100, 256, 1000, 1024] {
        check_block(jit, [n, 1, 1])?;
    }
    Ok(())
}

fn blocks_of_several_dimensions_combine(jit: &Jit) -> Outcome {
    for shape in [[8, 8, 2], [5, 3, 3], [3, 50, 1], [1, 1, 40]] {
        check_block(jit, shape)?;
    }
    Ok(())
}

/// Sums of rows, which every thread adds up once more; an own block for each part.
#[kernel]
fn rows(x: &[u32], width: u32, out: &mut [u32]) {
    let (block, thread) = (block_idx().x, thread_idx().x);
    let mut sum = 0;
    for row in 0..width as usize {
        let here = x[(block * width as usize + row) * block_dim().x + thread];
        let total = block_reduce(here, |a, b| a.wrapping_add(b));
        let up_to = block_inclusive_scan(here, |a, b| if a > b { a } else { b });
        sum += total.wrapping_mul(3).wrapping_add(up_to);
    }
    out[global_id().x] = sum;
}

fn blocks_combine_again_and_again(jit: &Jit) -> Outcome {
    for n in [32, 70, 256] {
        let (blocks, width) = (3, 4);
        let x: Vec<u32> = (0..blocks * width * n).map(noise).collect();
        let mut out = jit.zeros::<u32>(blocks * n)?;
        let input = jit.upload(&x)?;
        jit.launch(
            &rows,
            blocks as u32,
            n as u32,
            args!(&input, width as u32, &mut out),
        )?;
        let mut want = vec![0u32; blocks * n];
        for (row, x) in x.chunks(n).enumerate() {
            let total = x.iter().fold(0u32, |a, b| a.wrapping_add(*b));
            for (i, sum) in want[row / width * n..][..n].iter_mut().enumerate() {
                let largest = x[..=i].iter().max().expect("there is one");
                *sum = sum.wrapping_add(total.wrapping_mul(3).wrapping_add(*largest));
            }
        }
        assert_eq!(out.to_vec()?, want, "{n} threads");
    }
    Ok(())
}

/// A count, a sum and limits: 24 bytes with padding.
#[derive(KernelType, Copy, Clone, Debug, PartialEq)]
#[repr(C)]
struct Moments {
    count: u8,
    sum: i64,
    limits: [i16; 2],
}

#[kernel]
fn moments(x: &[i16], out: &mut [Moments], best: &mut [u32]) {
    let i = thread_idx().x;
    let mine = Moments {
        count: (x[i] % 2 == 0) as u8,
        sum: x[i] as i64,
        limits: [x[i], x[i]],
    };
    let all = block_reduce(mine, |a, b| Moments {
        count: a.count + b.count,
        sum: a.sum + b.sum,
        limits: [a.limits[0].min(b.limits[0]), a.limits[1].max(b.limits[1])],
    });
    let (value, at) = block_reduce((x[i], i as u32), |a, b| if b.0 > a.0 { b } else { a });
    if i == 0 {
        out[0] = all;
        best[0] = at;
        best[1] = value as u32;
    }
}

fn tuples_and_structs_are_combined(jit: &Jit) -> Outcome {
    for n in [20, 96, 130] {
        let x: Vec<i16> = (0..n).map(|i| (noise(i) % 1000) as i16).collect();
        let none = Moments {
            count: 0,
            sum: 0,
            limits: [0; 2],
        };
        let (mut out, mut best) = (jit.upload(&[none])?, jit.zeros::<u32>(2)?);
        jit.launch(
            &moments,
            1,
            n as u32,
            args!(&jit.upload(&x)?, &mut out, &mut best),
        )?;
        let (least, largest) = (x.iter().min().expect("some"), x.iter().max().expect("some"));
        let want = Moments {
            count: x.iter().filter(|x| **x % 2 == 0).count() as u8,
            sum: x.iter().map(|x| i64::from(*x)).sum(),
            limits: [*least, *largest],
        };
        let at = x.iter().position(|x| x == largest).expect("it is there");
        assert_eq!(out.to_vec()?, [want]);
        assert_eq!(best.to_vec()?, [at as u32, *largest as u32]);
    }
    Ok(())
}

#[kernel]
fn rearrange(x: &[Affine], out: &mut [Affine], back: &mut [Affine]) {
    let (i, n, memory) = (
        linear(),
        this_block().size() as usize,
        shared!([Affine; 384]),
    );
    let blocked = [x[3 * i], x[3 * i + 1], x[3 * i + 2]];
    let striped = block_to_striped(blocked, memory);
    let again = block_to_blocked(striped, memory);
    for k in 0..3 {
        out[k * n + i] = striped[k];
        back[3 * i + k] = again[k];
    }
}

fn elements_change_their_arrangement(jit: &Jit) -> Outcome {
    for shape in [[1, 1, 1], [33, 1, 1], [128, 1, 1], [5, 3, 3]] {
        let x = affines(3 * threads(shape));
        let none = vec![SAME; x.len()];
        let (mut out, mut back) = (jit.upload(&none)?, jit.upload(&none)?);
        jit.launch(
            &rearrange,
            1,
            shape,
            args!(&jit.upload(&x)?, &mut out, &mut back),
        )?;
        assert_eq!(out.to_vec()?, x, "{shape:?}");
        assert_eq!(back.to_vec()?, x, "{shape:?}");
    }
    Ok(())
}

/// Each thread gets that of `from`, that of another warp by its own rank, and its own where there is none.
#[kernel]
fn hand_on(x: &[Affine], from: u32, out: &mut [[Affine; 4]], sums: &mut [i64]) {
    let (block, memory) = (this_block(), shared!([Affine; 1024]));
    let (i, n) = (linear(), block.size());
    let own = Moments {
        count: i as u8,
        sum: -(i as i64),
        limits: [i as i16, 7],
    };
    out[i] = [
        block.broadcast(x[i], from),
        block.shuffle(x[i], n - 1 - i as u32, memory),
        block.shuffle(x[i], (i as u32 * 7 + 40) % n, memory),
        block.shuffle(x[i], if i % 2 == 0 { n } else { u32::MAX }, memory),
    ];
    let sent = block.broadcast(own, from);
    let (at, is_even) = block.broadcast((i as u32, i % 2 == 0), n - 1);
    sums[i] = sent.sum * 10 + sent.limits[1] as i64 + 10_000_000 * at as i64 + is_even as i64;
}

fn blocks_hand_values_on(jit: &Jit) -> Outcome {
    for shape in [[1, 1, 1], [5, 3, 3], [1024, 1, 1]] {
        let n = threads(shape);
        let x = affines(n);
        for from in [0, n / 2, n - 1] {
            let mut out = jit.upload(&vec![[SAME; 4]; n])?;
            let mut sums = jit.zeros::<i64>(n)?;
            let input = jit.upload(&x)?;
            let args = args!(&input, from as u32, &mut out, &mut sums);
            jit.launch(&hand_on, 1, shape, args)?;
            let want = |i: usize| [x[from], x[n - 1 - i], x[(i * 7 + 40) % n], x[i]];
            let what = format!("{shape:?} from {from}");
            assert_eq!(
                out.to_vec()?,
                (0..n).map(want).collect::<Vec<_>>(),
                "{what}"
            );
            let last = n as i64 - 1;
            let sum = 7 - 10 * from as i64 + 10_000_000 * last + i64::from(last % 2 == 0);
            assert_eq!(sums.to_vec()?, vec![sum; n], "{what}");
        }
    }
    Ok(())
}

/// Threads from 40 on are left, and none of them asks for others.
#[kernel]
fn left_hand_on(x: &[u32], out: &mut [u32]) {
    let (block, memory) = (this_block(), shared!([u32; 100]));
    let i = linear();
    if i < 40 {
        return;
    }
    let turned = block.shuffle(x[i], if i == 99 { 40 } else { i as u32 + 1 }, memory);
    out[i] = 1000 * block.broadcast(x[i], 70) + turned;
}

fn threads_that_have_ended_send_nothing(jit: &Jit) -> Outcome {
    let x: Vec<u32> = (0..100).map(|i| noise(i) % 1000).collect();
    let mut out = jit.zeros::<u32>(100)?;
    left_hand_on.launch(jit, (1, 100), &jit.upload(&x)?, &mut out)?;
    let want = |i: usize| match i {
        0..40 => 0,
        99 => 1000 * x[70] + x[40],
        _ => 1000 * x[70] + x[i + 1],
    };
    assert_eq!(out.to_vec()?, (0..100).map(want).collect::<Vec<_>>());
    Ok(())
}

#[kernel]
fn hand_on_wrong(out: &mut [u32], which: u32) {
    let (block, memory) = (this_block(), shared!([u32; 33]));
    out[linear()] = if which == 0 {
        block.broadcast(7, block.size())
    } else {
        block.shuffle(7, 0, memory)
    };
}

fn blocks_refuse_ranks_and_memory(jit: &Jit) -> Outcome {
    let mut out = jit.zeros::<u32>(34)?;
    hand_on_wrong.launch(jit, (1, 33), &mut out, 1)?;
    for (which, told) in [
        (0, "a block's broadcast is of one of its threads"),
        (
            1,
            "a block's shuffle takes memory for a value of each thread",
        ),
    ] {
        let launched = hand_on_wrong.launch(jit, (1, 34), &mut out, which);
        let error = launched.and_then(|()| jit.synchronize());
        let text = error.expect_err("it is refused").to_string();
        assert!(text.contains(told), "{text}");
    }
    Ok(())
}
