//! Tricky kernels, barriers: legal, but at places where a compiler that runs a block warp by warp
//! has to think, or must give up and interpret (`tests/cpu_code.rs` says which).
//!
//! All kernels of this chapter have the parameters `out` and `x`, a number for each thread, and one
//! dimension, so that one function can launch them all. A model computes a block of `out` from a
//! block of `x`.
//!
//! Barriers that not all threads come to are errors and are in `tests/checks/barriers.rs`. Named
//! barriers (warps that produce and warps that consume) are left out: the IR has none.

use kiln::prelude::*;

use super::warp::noise;
use super::{Outcome, chapter};

chapter![
    tree_reductions,
    loops_with_a_bound_in_memory,
    branches_around_barriers,
    loops_that_threads_return_from,
    breaks_and_continues_around_barriers,
    values_that_live_across_barriers,
    sums_used_behind_a_barrier,
    private_arrays_across_barriers,
    parity_of_a_thread,
    loops_steered_by_votes_of_the_block,
    loops_left_at_different_times,
];

/// One warp and less, ragged, whole warps, as many threads as a block can have.
const SIZES: [usize; 8] = [1, 7, 32, 33, 100, 256, 1000, 1024];
/// Blocks of a launch.
const BLOCKS: usize = 3;
/// Elements of shared memory: one for each thread that a block can have.
const MOST: u32 = 1024;

/// What a kernel of this chapter begins with.
#[derive(Copy, Clone)]
struct Parts<'k> {
    k: &'k KernelBuilder,
    /// This thread's result.
    out: Place<'k>,
    x: Val<'k>,
    /// The thread in its block, the threads of the block, the thread in the grid.
    t: Val<'k>,
    n: Val<'k>,
    i: Val<'k>,
    tile: Val<'k>,
}

fn parts(k: &KernelBuilder) -> Parts<'_> {
    let (out, x) = (k.slice_mut("out", Type::U32), k.slice_mut("x", Type::U32));
    let i = k.global_id().x();
    Parts {
        k,
        out: out.at(i),
        x,
        t: k.thread_idx().x(),
        n: k.block_dim().x(),
        i,
        tile: k.shared_array("tile", Type::U32, MOST),
    }
}

impl<'k> Parts<'k> {
    /// The element of `x` of the block's first thread: an address that is the same in all threads.
    fn first(self) -> Val<'k> {
        self.x.at(self.k.block_idx().x() * self.n).get()
    }

    /// What the thread `distance` further has in the tile, around the end.
    fn from(self, distance: impl IntoVal<'k>) -> Val<'k> {
        let distance = distance.into_val(self.k, Some(Type::U32));
        self.tile.at((self.t + distance) % self.n).get()
    }

    /// Puts `value` into the tile, between barriers, and reads what the next thread has put there.
    fn exchange(self, value: impl IntoVal<'k>) -> Val<'k> {
        self.k.barrier();
        self.tile.at(self.t).set(value);
        self.k.barrier();
        self.from(1)
    }
}

/// What each thread of a block gets from the next one.
fn exchanged(values: &[u32]) -> Vec<u32> {
    let n = values.len();
    (0..n).map(|t| values[(t + 1) % n]).collect()
}

/// Builds a kernel, launches it with blocks of `sizes`, and compares with the model, which is
/// given a block of `x`. `input` makes `x` from the index and the size of a block.
fn check(
    jit: &Jit,
    describe: fn(&KernelBuilder),
    sizes: &[usize],
    input: fn(usize, usize) -> u32,
    model: fn(&[u32]) -> Vec<u32>,
) -> Outcome {
    let kernel = Kernel::build("tricky", describe)?;
    for &n in sizes {
        let hx: Vec<u32> = (0..n * BLOCKS).map(|i| input(i, n)).collect();
        let (mut out, mut x) = (jit.zeros::<u32>(n * BLOCKS)?, jit.upload(&hx)?);
        jit.launch(&kernel, BLOCKS as u32, n as u32, args!(&mut out, &mut x))?;
        jit.synchronize()?;
        let out = out.to_vec()?;
        for (block, (got, x)) in out.chunks(n).zip(hx.chunks(n)).enumerate() {
            assert_eq!(got, model(x), "block {block} of {n} threads");
        }
    }
    Ok(())
}

fn any(i: usize, _: usize) -> u32 {
    noise(i)
}

/// The same in all threads of a block, another in each block, in the upper 8 bits: `(b + 1) * 3`;
/// without a pattern below.
fn alike(i: usize, n: usize) -> u32 {
    ((i / n + 1) as u32 * 3) << 24 | noise(i)
}

fn sum_of(x: &[u32]) -> Vec<u32> {
    let sum = x.iter().fold(0u32, |sum, x| sum.wrapping_add(*x));
    vec![sum; x.len()]
}

/// The tree of every tutorial, for any number of threads.
pub fn tree_for(k: &KernelBuilder) {
    let p = parts(k);
    p.tile.at(p.t).set(p.x.at(p.i));
    k.barrier();
    k.for_range(0u32, 10u32, |step| {
        let half = k.lit(Type::U32, MOST / 2) >> step;
        k.if_(p.t.lt(half) & (p.t + half).lt(p.n), || {
            let mut mine = p.tile.at(p.t);
            mine += p.tile.at(p.t + half);
        });
        k.barrier();
    });
    p.out.set(p.tile.at(0));
}

/// The same with a `while` and the number of threads that are left.
pub fn tree_while(k: &KernelBuilder) {
    let p = parts(k);
    p.tile.at(p.t).set(p.x.at(p.i));
    let left = k.var("left", p.n);
    k.barrier();
    k.while_(
        || left.get().gt(1),
        || {
            let half = (left + 1) / 2;
            k.if_(p.t.lt(left / 2), || {
                let mut mine = p.tile.at(p.t);
                mine += p.tile.at(p.t + half);
            });
            k.barrier();
            left.set(half);
        },
    );
    p.out.set(p.tile.at(0));
}

/// The number of threads that are left is in shared memory; thread 0 keeps it.
pub fn tree_with_shared_bound(k: &KernelBuilder) {
    let p = parts(k);
    let left = k.shared_array("left", Type::U32, 1).at(0);
    k.if_(p.t.eq(0), || left.set(p.n));
    p.tile.at(p.t).set(p.x.at(p.i));
    k.barrier();
    k.while_(
        || left.get().gt(1),
        || {
            let half = (left + 1) / 2;
            k.if_(p.t.lt(left / 2), || {
                let mut mine = p.tile.at(p.t);
                mine += p.tile.at(p.t + half);
            });
            k.barrier();
            k.if_(p.t.eq(0), || left.set(half));
            k.barrier();
        },
    );
    p.out.set(p.tile.at(0));
}

fn tree_reductions(jit: &Jit) -> Outcome {
    for describe in [tree_for, tree_while, tree_with_shared_bound] {
        check(jit, describe, &SIZES, any, sum_of)?;
    }
    Ok(())
}

/// A bound in global memory, read in each iteration.
pub fn loaded_bound(k: &KernelBuilder) {
    let p = parts(k);
    let (round, v) = (k.var("round", 0u32), k.var("v", p.x.at(p.i)));
    k.while_(
        || round.get().lt(p.first() % 6),
        || {
            v.set(v * 3 + p.exchange(v));
            round.set(round + 1);
        },
    );
    p.out.set(v);
}

/// A counted loop whose bounds and step are in global memory.
pub fn loaded_range(k: &KernelBuilder) {
    let p = parts(k);
    let v = k.var("v", p.x.at(p.i));
    let (start, step) = (p.first() % 4, p.first() % 3 + 1);
    let end = start + p.first() % 6 * step;
    k.for_loop(start, end, step, Unroll::Auto, |i| {
        let of_next = p.exchange(v);
        v.set(v * 3 + of_next + (i - start) / step);
    });
    p.out.set(v);
}

fn loops_with_a_bound_in_memory(jit: &Jit) -> Outcome {
    fn rounds(x: &[u32], weight: u32) -> Vec<u32> {
        let mut v = x.to_vec();
        for round in 0..x[0] % 6 {
            let shown = exchanged(&v);
            for (v, next) in v.iter_mut().zip(shown) {
                let sum = v.wrapping_mul(3).wrapping_add(next);
                *v = sum.wrapping_add(round * weight);
            }
        }
        v
    }
    check(jit, loaded_bound, &SIZES, any, |x| rounds(x, 0))?;
    check(jit, loaded_range, &SIZES, any, |x| rounds(x, 1))
}

/// What the two branches of the kernels below do: one has barriers, the other has none.
fn branch<'k>(p: Parts<'k>, cond: Val<'k>) {
    let v = p.k.var("v", p.x.at(p.i));
    p.k.if_(cond, || v.set(v + p.exchange(v)))
        .else_(|| v.set(v * 7));
    // Another for all.
    p.out.set(v * 5 + p.exchange(v));
}

fn branched(x: &[u32], cond: bool) -> Vec<u32> {
    let mix = |v: &[u32], factor: u32| -> Vec<u32> {
        let each = v.iter().zip(exchanged(v));
        each.map(|(v, next)| v.wrapping_mul(factor).wrapping_add(next))
            .collect()
    };
    let v = match cond {
        true => mix(x, 1),
        false => x.iter().map(|v| v.wrapping_mul(7)).collect(),
    };
    mix(&v, 5)
}

/// The condition is a parameter.
pub fn branch_by_param(k: &KernelBuilder) {
    let p = parts(k);
    branch(p, (p.x.len() % 2).eq(0));
}

/// The condition is loaded, from one address for the block.
pub fn branch_by_loaded(k: &KernelBuilder) {
    let p = parts(k);
    branch(p, (p.first() >> 24 & 1).eq(0));
}

/// Each thread looks at its own data, which happen to agree.
pub fn branch_by_agreement(k: &KernelBuilder) {
    let p = parts(k);
    branch(p, (p.x.at(p.i) >> 24 & 1).eq(0));
}

/// A barrier in each branch, and one branch inside another.
pub fn branches_in_branches(k: &KernelBuilder) {
    let p = parts(k);
    let v = k.var("v", p.x.at(p.i));
    let bits = p.first() >> 24;
    k.if_((bits & 1).eq(0), || {
        v.set(v + p.exchange(v));
        k.if_((bits & 2).eq(0), || v.set(v + p.exchange(v * 3)))
            .else_(|| v.set(v + 1));
        k.barrier();
    })
    .else_(|| {
        k.if_((p.t % 2).eq(0), || v.set(v * 11));
        v.set(v ^ p.exchange(v));
    });
    p.out.set(v);
}

fn branches_around_barriers(jit: &Jit) -> Outcome {
    check(jit, branch_by_param, &SIZES, any, |x| {
        branched(x, (x.len() * BLOCKS).is_multiple_of(2))
    })?;
    for describe in [branch_by_loaded, branch_by_agreement] {
        check(jit, describe, &SIZES, alike, |x| {
            branched(x, x[0] >> 24 & 1 == 0)
        })?;
    }
    check(jit, branches_in_branches, &SIZES, alike, |x| {
        let bits = x[0] >> 24;
        let mut v = x.to_vec();
        let mut put = |weight: u32, mix: fn(u32, u32) -> u32| {
            let values: Vec<u32> = v.iter().map(|v| v.wrapping_mul(weight)).collect();
            for (v, next) in v.iter_mut().zip(exchanged(&values)) {
                *v = mix(*v, next);
            }
        };
        if bits & 1 == 0 {
            put(1, u32::wrapping_add);
            if bits & 2 == 0 {
                put(3, u32::wrapping_add);
            } else {
                v.iter_mut().for_each(|v| *v = v.wrapping_add(1));
            }
            return v;
        }
        for v in v.iter_mut().step_by(2) {
            *v = v.wrapping_mul(11);
        }
        let next = exchanged(&v);
        v.iter().zip(next).map(|(v, next)| v ^ next).collect()
    })
}

/// The number of threads that are still there in each round, up to a thread's own number.
fn left_in_rounds(x: &[u32]) -> Vec<u32> {
    let left = |round| x.iter().filter(|&&x| x % 5 > round).count() as u32;
    let sum = |x: &u32| (0..x % 5).map(left).sum();
    x.iter().map(sum).collect()
}

/// A loop with a barrier that each thread leaves after a number of rounds of its own. Nothing
/// follows, so that those that left are those that ended.
pub fn ragged_loop(k: &KernelBuilder) {
    let p = parts(k);
    k.if_(p.t.eq(0), || {
        k.for_range(0u32, 5u32, |i| p.tile.at(i).set(0));
    });
    k.barrier();
    k.for_range(0u32, p.x.at(p.i) % 5, |round| {
        p.tile.at(round).atomic_add(1);
        k.barrier();
        p.out.set(p.out.get() + p.tile.at(round));
    });
}

/// The same in an endless loop that threads return from: by and by the whole block has ended.
pub fn ragged_returns(k: &KernelBuilder) {
    let p = parts(k);
    k.if_(p.t.eq(0), || {
        k.for_range(0u32, 5u32, |i| p.tile.at(i).set(0));
    });
    k.barrier();
    let round = k.var("round", 0u32);
    k.loop_(|| {
        k.if_(round.get().ge(p.x.at(p.i) % 5), || k.return_());
        p.tile.at(round).atomic_add(1);
        k.barrier();
        p.out.set(p.out.get() + p.tile.at(round));
        round.set(round + 1);
    });
}

fn check_ragged(jit: &Jit, describe: fn(&KernelBuilder)) -> Outcome {
    check(jit, describe, &SIZES, any, left_in_rounds)?;
    // Whole warps leave at once, and one warp before another.
    let by_warp: fn(usize, usize) -> u32 = |i, n| (i % n / 32) as u32;
    check(jit, describe, &SIZES, by_warp, left_in_rounds)?;
    // Nobody enters.
    check(jit, describe, &SIZES, |_, _| 5, left_in_rounds)
}

fn loops_that_threads_return_from(jit: &Jit) -> Outcome {
    check_ragged(jit, ragged_returns)
}

/// The last case: if a device waits for threads that left the loop to end, it waits for ever.
fn loops_left_at_different_times(jit: &Jit) -> Outcome {
    check_ragged(jit, ragged_loop)
}

/// A `break` and a `continue` that all threads take together, by numbers from memory.
pub fn uniform_break(k: &KernelBuilder) {
    let p = parts(k);
    let (stop, skip) = (p.first() % 8, p.first() / 8 % 8);
    let v = k.var("v", p.x.at(p.i));
    k.for_range(0u32, 7u32, |round| {
        k.if_(round.eq(skip), || k.continue_());
        v.set(v * 3 + p.exchange(v));
        k.if_(round.eq(stop), || k.break_());
        v.set(v + p.exchange(v + round));
    });
    p.out.set(v);
}

/// Each thread decides by its own data, and all decide alike.
pub fn break_by_agreement(k: &KernelBuilder) {
    let p = parts(k);
    let (stop, round) = (p.x.at(p.i) >> 24, k.var("round", 0u32));
    let v = k.var("v", p.x.at(p.i));
    k.loop_(|| {
        k.if_(round.get().ge(stop), || k.break_());
        v.set(v * 3 + p.exchange(v));
        round.set(round + 1);
    });
    p.out.set(v);
}

/// The condition is what a thread has put into shared memory.
pub fn break_by_shared(k: &KernelBuilder) {
    let p = parts(k);
    let (v, round) = (k.var("v", p.x.at(p.i)), k.var("round", 0u32));
    k.loop_(|| {
        let of_next = p.exchange(v);
        k.if_((p.tile.at(0).get() % 4).eq(0), || k.break_());
        round.set(round + 1);
        k.if_(round.get().gt(9), || k.break_());
        v.set(v * 5 + of_next);
    });
    p.out.set(v);
}

/// Jumps out of and to the next iteration of the outer one of two loops with barriers.
pub fn jumps_over_two_loops(k: &KernelBuilder) {
    let p = parts(k);
    let (stop, skip) = (p.first() % 8, p.first() / 8 % 8);
    let v = k.var("v", p.x.at(p.i));
    k.for_range(0u32, 4u32, |a| {
        k.for_range(0u32, 3u32, |b| {
            v.set(v * 3 + p.exchange(v + b));
            k.if_((a * 2 + b).eq(skip), || k.continue_out(1));
            k.if_((a + b * 3).eq(stop), || k.break_out(1));
        });
        v.set(v + 1);
    });
    p.out.set(v);
}

/// `v * factor + next`, where the next thread shows its `v + shift`.
fn mix(v: &mut [u32], factor: u32, shift: u32) {
    let shown: Vec<u32> = v.iter().map(|v| v.wrapping_add(shift)).collect();
    for (v, next) in v.iter_mut().zip(exchanged(&shown)) {
        *v = v.wrapping_mul(factor).wrapping_add(next);
    }
}

fn breaks_and_continues_around_barriers(jit: &Jit) -> Outcome {
    check(jit, uniform_break, &SIZES, any, |x| {
        let (stop, skip) = (x[0] % 8, x[0] / 8 % 8);
        let mut v = x.to_vec();
        for round in (0..7).filter(|&round| round != skip) {
            mix(&mut v, 3, 0);
            if round == stop {
                break;
            }
            mix(&mut v, 1, round);
        }
        v
    })?;
    check(jit, break_by_agreement, &SIZES, alike, |x| {
        let mut v = x.to_vec();
        (0..x[0] >> 24).for_each(|_| mix(&mut v, 3, 0));
        v
    })?;
    check(jit, break_by_shared, &SIZES, any, |x| {
        let mut v = x.to_vec();
        for _ in 0..9 {
            if v[0] % 4 == 0 {
                break;
            }
            mix(&mut v, 5, 0);
        }
        v
    })?;
    check(jit, jumps_over_two_loops, &SIZES, any, |x| {
        let (stop, skip) = (x[0] % 8, x[0] / 8 % 8);
        let mut v = x.to_vec();
        'outer: for a in 0..4 {
            for b in 0..3 {
                mix(&mut v, 3, b);
                if a * 2 + b == skip {
                    continue 'outer;
                }
                if a + b * 3 == stop {
                    break 'outer;
                }
            }
            v.iter_mut().for_each(|v| *v = v.wrapping_add(1));
        }
        v
    })
}

/// Loops with barriers at both levels. `loaded` lives across all of them and its place in memory is
/// overwritten: it must be kept. `cheap` can be kept or computed again, `mixed` is of both kinds.
pub fn nested_barriers(k: &KernelBuilder) {
    let p = parts(k);
    let loaded = p.x.at(p.i).get();
    let cheap = p.t * 3 + 1;
    let mixed = loaded ^ cheap;
    p.x.at(p.i).set(0);
    let sum = k.var("sum", 0u32);
    k.for_range(0u32, 3u32, |a| {
        sum.set(sum + p.exchange(loaded + a) * cheap);
        k.for_range(0u32, a + 1, |b| {
            sum.set(sum * 3 + p.exchange(mixed + b + sum));
        });
        k.barrier();
    });
    p.out.set(sum ^ loaded);
}

/// A value that is changed in branches that threads take apart, with a barrier between.
pub fn changed_between_barriers(k: &KernelBuilder) {
    let p = parts(k);
    let v = k.var("v", p.x.at(p.i));
    let before = p.exchange(v);
    k.if_((v % 2).eq(1), || v.set(v * 3 + before));
    let after = p.exchange(v);
    k.if_((p.t % 3).eq(0), || {
        v.set(v + after);
        k.if_((v % 2).eq(0), || v.set(v + 1));
    })
    .else_(|| v.set(v ^ before));
    p.out.set(v * 5 + p.exchange(v));
}

fn values_that_live_across_barriers(jit: &Jit) -> Outcome {
    check(jit, nested_barriers, &SIZES, any, |x| {
        let n = x.len();
        let mut sum = vec![0u32; n];
        let cheap = |t: usize| t as u32 * 3 + 1;
        for a in 0..3u32 {
            for t in 0..n {
                let next = x[(t + 1) % n].wrapping_add(a);
                sum[t] = sum[t].wrapping_add(next.wrapping_mul(cheap(t)));
            }
            for b in 0..=a {
                let mixed = |t: usize| (x[t] ^ cheap(t)).wrapping_add(b).wrapping_add(sum[t]);
                let shown: Vec<u32> = (0..n).map(mixed).collect();
                for (sum, next) in sum.iter_mut().zip(exchanged(&shown)) {
                    *sum = sum.wrapping_mul(3).wrapping_add(next);
                }
            }
        }
        sum.iter().zip(x).map(|(sum, x)| sum ^ x).collect()
    })?;
    check(jit, changed_between_barriers, &SIZES, any, |x| {
        let mut v = x.to_vec();
        let before = exchanged(&v);
        for (v, before) in v.iter_mut().zip(&before) {
            if *v % 2 == 1 {
                *v = v.wrapping_mul(3).wrapping_add(*before);
            }
        }
        let after = exchanged(&v);
        for (t, v) in v.iter_mut().enumerate() {
            *v = match t % 3 {
                0 => v.wrapping_add(after[t]) | 1,
                _ => *v ^ before[t],
            };
        }
        mix(&mut v, 5, 0);
        v
    })
}

/// How many sums of two there are in [`sums_behind`]: what they are made of takes ten registers more than they do.
const SUMS: u32 = 10;

/// Sums of what a thread has read that only some threads use, and behind a barrier: for a GPU they are computed before it, as
/// their summands have no other use (`sums_over_barrier` of `tests/nvcc/micro.rs`).
pub fn sums_behind(k: &KernelBuilder) {
    let p = parts(k);
    let begin = k.block_idx().x() * p.n;
    let read = |distance: u32| p.x.at(begin + (p.t + distance) % p.n).get();
    let sums: Vec<Val<'_>> = (0..SUMS).map(|j| read(2 * j) + read(2 * j + 1)).collect();
    let next = p.exchange(sums[0]);
    p.out.set(next);
    k.if_((p.t % 3).eq(0u32), || {
        let sums = sums.iter().copied();
        p.out.set(sums.fold(next, |all, sum| all * 31u32 + sum));
    });
}

fn sums_used_behind_a_barrier(jit: &Jit) -> Outcome {
    check(jit, sums_behind, &SIZES, any, |x| {
        let n = x.len();
        let sum = |t: usize, j: usize| x[(t + 2 * j) % n].wrapping_add(x[(t + 2 * j + 1) % n]);
        let next = |t: usize| sum((t + 1) % n, 0);
        let all = |t: usize| {
            let sums = (0..SUMS as usize).map(|j| sum(t, j));
            sums.fold(next(t), |all, sum| all.wrapping_mul(31).wrapping_add(sum))
        };
        (0..n)
            .map(|t| if t % 3 == 0 { all(t) } else { next(t) })
            .collect()
    })
}

/// A private array, indexed by data, that lives across barriers.
pub fn private_array(k: &KernelBuilder) {
    let p = parts(k);
    let mine = k.local_array(Type::U32, 4);
    let x = p.x.at(p.i).get();
    k.for_range(0u32, 4u32, |j| mine.at(j).set(x + j));
    mine.at(p.t % 4).set(100);
    k.for_range(0u32, 3u32, |round| {
        let next = p.exchange(mine.at((x + round) % 4));
        let mut place = mine.at((next ^ round) % 4);
        place += next;
    });
    k.barrier();
    p.out
        .set(mine.at(0) + mine.at(1) * 3 + mine.at(2) * 5 + mine.at(3) * 7);
}

fn private_arrays_across_barriers(jit: &Jit) -> Outcome {
    check(jit, private_array, &SIZES, any, |x| {
        let mut arrays: Vec<[u32; 4]> = x.iter().map(|&x| [x, x + 1, x + 2, x + 3]).collect();
        for (t, array) in arrays.iter_mut().enumerate() {
            array[t % 4] = 100;
        }
        for round in 0..3u32 {
            let shown = arrays.iter().zip(x);
            let shown: Vec<u32> = shown.map(|(a, x)| a[((x + round) % 4) as usize]).collect();
            for (array, next) in arrays.iter_mut().zip(exchanged(&shown)) {
                let at = ((next ^ round) % 4) as usize;
                array[at] = array[at].wrapping_add(next);
            }
        }
        let parts = arrays.iter().map(|a| a.iter().zip([1u32, 3, 5, 7]));
        let sum = parts.map(|p| p.fold(0u32, |sum, (a, f)| sum.wrapping_add(a.wrapping_mul(f))));
        sum.collect()
    })
}

/// An inclusive scan (Hillis and Steele) with two halves of a tile; each thread has its own
/// variable that says which half is which.
fn parity_scan(k: &KernelBuilder, first: fn(Parts<'_>) -> Val<'_>) {
    let p = parts(k);
    let tile = k.shared_array("halves", Type::U32, 2 * MOST);
    let (from, step) = (k.var("from", first(p)), k.var("step", 1u32));
    tile.at(from * MOST + p.t).set(p.x.at(p.i));
    k.barrier();
    k.while_(
        || step.get().lt(p.n),
        || {
            let (here, there) = (from * MOST, (1 - from) * MOST);
            let sum = k.var("sum", tile.at(here + p.t));
            k.if_(p.t.ge(step), || sum.set(sum + tile.at(here + p.t - step)));
            tile.at(there + p.t).set(sum);
            from.set(1 - from);
            k.barrier();
            step.set(step * 2);
        },
    );
    p.out.set(tile.at(from * MOST + p.t));
}

/// The parity starts as a constant: it is uniform, and that can be seen.
pub fn parity(k: &KernelBuilder) {
    parity_scan(k, |p| p.k.lit(Type::U32, 0));
}

/// The parity starts as something from memory: it is uniform, and that cannot be seen.
pub fn hidden_parity(k: &KernelBuilder) {
    parity_scan(k, |p| p.x.at(p.i) >> 24 & 1);
}

/// A hidden parity decides which of two barriers is come to.
pub fn parity_of_barriers(k: &KernelBuilder) {
    let p = parts(k);
    let (v, odd) = (k.var("v", p.x.at(p.i)), k.var("odd", p.x.at(p.i) >> 24 & 1));
    k.for_range(0u32, 4u32, |_| {
        k.if_(odd.get().eq(1), || v.set(v * 3 + p.exchange(v)))
            .else_(|| v.set(v + p.exchange(v)));
        odd.set(1 - odd);
    });
    p.out.set(v);
}

fn parity_of_a_thread(jit: &Jit) -> Outcome {
    for describe in [parity, hidden_parity] {
        check(jit, describe, &SIZES, alike, |x| {
            let scan = x.iter().scan(0u32, |sum, x| {
                *sum = sum.wrapping_add(*x);
                Some(*sum)
            });
            scan.collect()
        })?;
    }
    check(jit, parity_of_barriers, &SIZES, alike, |x| {
        let mut v = x.to_vec();
        for round in 0..4 {
            mix(&mut v, [1, 3][((x[0] >> 24) + round) as usize % 2], 0);
        }
        v
    })
}

/// Spreads the smallest number along each run of neighbours whose lowest bits agree, until nothing
/// changes: the vote is a number in shared memory, as of `__syncthreads_or`.
pub fn until_nothing_changes(k: &KernelBuilder) {
    let p = parts(k);
    let changed = k.shared_array("changed", Type::U32, 1).at(0);
    let v = k.var("v", p.x.at(p.i));
    p.tile.at(p.t).set(v);
    k.loop_(|| {
        k.if_(p.t.eq(0), || changed.set(0));
        k.barrier();
        let least = k.var("least", v);
        let look = |at: Val<'_>| {
            let seen = p.tile.at(at).get();
            k.if_((seen & 1).eq(v & 1), || least.set(least.get().min(seen)));
        };
        k.if_(p.t.gt(0), || look(p.t - 1));
        k.if_((p.t + 1).lt(p.n), || look(p.t + 1));
        k.barrier();
        k.if_(least.get().ne(v), || {
            v.set(least);
            p.tile.at(p.t).set(v);
            changed.atomic_add(1);
        });
        k.barrier();
        let stop = changed.get().eq(0);
        k.barrier();
        k.if_(stop, || k.break_());
    });
    p.out.set(v);
}

/// Halves numbers until half of the block has small ones: a vote by counting.
pub fn until_half_are_small(k: &KernelBuilder) {
    let p = parts(k);
    let small = k.shared_array("small", Type::U32, 2);
    let (v, round) = (k.var("v", p.x.at(p.i)), k.var("round", 0u32));
    k.if_(p.t.lt(2), || small.at(p.t).set(0));
    // A block of one thread has both to clear.
    k.if_(p.n.eq(1), || small.at(1).set(0));
    k.barrier();
    k.loop_(|| {
        let (here, other) = (round % 2, (round + 1) % 2);
        k.if_(v.get().lt(1000), || {
            small.at(here).atomic_add(1);
        });
        k.barrier();
        let count = small.at(here).get();
        k.if_((count * 2).ge(p.n), || k.break_());
        // Nobody adds to the other number before the next barrier, nor reads it after this one.
        k.if_(p.t.eq(0), || small.at(other).set(0));
        k.if_((p.t % 4).ne(3), || v.set(v / 2));
        round.set(round + 1);
        k.barrier();
    });
    p.out.set(v * 100 + round);
}

fn loops_steered_by_votes_of_the_block(jit: &Jit) -> Outcome {
    // Runs of a few threads; the smallest number may be anywhere in one.
    let runs: fn(usize, usize) -> u32 = |i, _| noise(i) & !1 | (i / 6 % 2) as u32;
    check(jit, until_nothing_changes, &SIZES, runs, |x| {
        let runs = x.chunk_by(|a, b| (a & 1) == (b & 1));
        runs.flat_map(|run| vec![run.iter().copied().min().unwrap_or(0); run.len()])
            .collect()
    })?;
    check(jit, until_half_are_small, &SIZES, any, |x| {
        let mut v = x.to_vec();
        let mut round = 0;
        while v.iter().filter(|&&v| v < 1000).count() * 2 < v.len() {
            let moving = v.iter_mut().enumerate().filter(|(t, _)| t % 4 != 3);
            moving.for_each(|(_, v)| *v /= 2);
            round += 1;
        }
        v.iter().map(|v| v.wrapping_mul(100) + round).collect()
    })
}
