//! Tricky kernels, threads that have ended: what a block does when some of its warps, or all of
//! them, have nothing left to run. What the others share must not come from them, and loops must
//! end though nobody is left to say so.
//!
//! Kernels have the parameters `out` and `x`. Threads beyond the end of `x` return at once.

use kiln::prelude::*;

use super::warp::noise;
use super::{Outcome, chapter, run_blocks};

chapter![
    values_read_after_returns,
    variables_set_after_returns,
    branches_after_returns,
    counted_rounds_after_returns,
    loops_that_only_variables_end,
    loops_that_only_memory_ends,
    nested_loops_of_nobody,
    loops_without_anything_else,
    returns_between_barriers,
    faults_between_barriers,
    loops_of_whole_warps,
];

const BLOCKS: [usize; 8] = [1, 7, 32, 33, 100, 256, 1000, 1024];

/// What a kernel of this chapter begins with.
#[derive(Copy, Clone)]
struct Parts<'k> {
    k: &'k KernelBuilder,
    out: Val<'k>,
    x: Val<'k>,
    tile: Val<'k>,
    t: Val<'k>,
    i: Val<'k>,
}

fn parts(k: &KernelBuilder) -> Parts<'_> {
    let (out, x) = (k.slice_mut("out", Type::U32), k.slice("x", Type::U32));
    let (t, i) = (k.thread_idx().x(), k.global_id().x());
    Parts {
        k,
        out,
        x,
        tile: k.shared_array("tile", Type::U32, 1024),
        t,
        i,
    }
}

impl<'k> Parts<'k> {
    fn return_beyond_end(self) {
        self.k.if_(self.i.ge(self.x.len()), || self.k.return_());
    }

    /// The first element of the block: an address that is the same in all its threads.
    fn first(self) -> Val<'k> {
        let first = self.k.block_idx().x() * self.k.block_dim().x();
        self.x.at(first).get()
    }

    /// What the block's first thread puts into the tile.
    fn shown_by_first(self, value: impl IntoVal<'k>) -> Val<'k> {
        self.k.barrier();
        self.tile.at(self.t).set(value);
        self.k.barrier();
        self.tile.at(0).get()
    }
}

/// Launches more blocks than `x` has elements for, with `x` of lengths at which lanes, warps and
/// blocks have nothing to do, and compares with the model of a block's `x`.
fn check(jit: &Jit, describe: fn(&KernelBuilder), model: impl Fn(&[u32]) -> Vec<u32>) -> Outcome {
    let kernel = Kernel::build("ends", describe)?;
    for block in BLOCKS {
        for n in [0, 1, block / 3 + 1, block + block / 2, 2 * block] {
            let hx: Vec<u32> = (0..n).map(noise).collect();
            let x = jit.upload(&hx)?;
            let out = run_blocks(jit, &kernel, 4, block as u32, &vec![7; n], args!(&x))?;
            for (got, x) in out.chunks(block).zip(hx.chunks(block)) {
                assert_eq!(got, model(x), "{n} elements, blocks of {block}");
            }
        }
    }
    Ok(())
}

/// A value that is loaded for all threads, when the last warps are already gone.
fn values_read_after_returns(jit: &Jit) -> Outcome {
    let describe = |k: &KernelBuilder| {
        let p = parts(k);
        p.return_beyond_end();
        let (shared, mine) = (p.first(), p.x.at(p.i).get());
        let of_first = p.shown_by_first(mine + 1);
        let v = k.var("v", mine);
        k.for_range(0u32, shared % 5, |round| {
            v.set(v * 3 + p.shown_by_first(v + round))
        });
        p.out.at(p.i).set(v + shared * 5 + of_first);
    };
    check(jit, describe, |x| {
        let mut v = x.to_vec();
        for round in 0..x[0] % 5 {
            let of_first = v[0].wrapping_add(round);
            v.iter_mut()
                .for_each(|v| *v = v.wrapping_mul(3).wrapping_add(of_first));
        }
        let rest = x[0].wrapping_mul(5).wrapping_add(x[0] + 1);
        v.iter().map(|v| v.wrapping_add(rest)).collect()
    })
}

/// A variable of all threads that those that are left assign, before and after barriers.
fn variables_set_after_returns(jit: &Jit) -> Outcome {
    let describe = |k: &KernelBuilder| {
        let p = parts(k);
        let (a, b) = (k.var("a", 1u32), k.var("b", 2u32));
        p.return_beyond_end();
        a.set(p.first() + a);
        let of_first = p.shown_by_first(a + b);
        b.set(a * 3 + of_first);
        k.barrier();
        a.set(a + b);
        k.barrier();
        p.out.at(p.i).set(p.x.at(p.i) + a * b);
    };
    check(jit, describe, |x| {
        let a = x[0] + 1;
        let b = a.wrapping_mul(3).wrapping_add(a + 2);
        let product = a.wrapping_add(b).wrapping_mul(b);
        x.iter().map(|x| x.wrapping_add(product)).collect()
    })
}

/// Branches of the whole block by a number that is loaded after returns.
fn branches_after_returns(jit: &Jit) -> Outcome {
    let describe = |k: &KernelBuilder| {
        let p = parts(k);
        p.return_beyond_end();
        let v = k.var("v", p.x.at(p.i));
        k.if_((p.first() % 2).eq(0), || v.set(v + p.shown_by_first(v)))
            .else_(|| v.set(v ^ p.shown_by_first(v * 3)));
        p.out.at(p.i).set(v);
    };
    check(jit, describe, |x| {
        let each = |v: &u32| match x[0] % 2 {
            0 => v.wrapping_add(x[0]),
            _ => v ^ x[0].wrapping_mul(3),
        };
        x.iter().map(each).collect()
    })
}

fn counted_rounds_after_returns(jit: &Jit) -> Outcome {
    let describe = |k: &KernelBuilder| {
        let p = parts(k);
        p.return_beyond_end();
        let v = k.var("v", p.x.at(p.i));
        k.for_range(0u32, 3u32, |round| {
            v.set(v * 3 + p.shown_by_first(v + round));
            // Every round some more leave; the first thread stays.
            k.if_((v % 4).eq(round) & p.t.ne(0), || k.return_());
            p.out.at(p.i).set(v);
        });
        p.out.at(p.i).set(v + 1);
    };
    check(jit, describe, |x| {
        let mut v: Vec<(u32, u32, bool)> = x.iter().map(|&x| (x, 7, true)).collect();
        for round in 0..3 {
            let of_first = v[0].0.wrapping_add(round);
            for (t, (v, out, there)) in v.iter_mut().enumerate().filter(|(_, v)| v.2) {
                *v = v.wrapping_mul(3).wrapping_add(of_first);
                *there = t == 0 || *v % 4 != round;
                *out = if *there { *v } else { *out };
            }
        }
        let last =
            |(v, out, there): &(u32, u32, bool)| if *there { v.wrapping_add(1) } else { *out };
        v.iter().map(last).collect()
    })
}

/// Loops with barriers that end by a variable, which nobody counts up in a block without threads.
/// Nothing in the loop can end a thread.
fn loops_that_only_variables_end(jit: &Jit) -> Outcome {
    let describe = |k: &KernelBuilder| {
        let p = parts(k);
        let round = k.var("round", 0u32);
        p.return_beyond_end();
        k.loop_(|| {
            k.barrier();
            round.set(round + 1);
            k.if_(round.get().gt(4), || k.break_());
            k.barrier();
        });
        k.while_(
            || round.get().gt(2),
            || {
                k.barrier();
                round.set(round - 1);
            },
        );
        p.out.at(p.i).set(p.x.at(p.i) + round);
    };
    check(jit, describe, |x| x.iter().map(|x| x + 2).collect())
}

/// The same by what is in memory. The accesses are not checked, so that they cannot end a thread.
fn loops_that_only_memory_ends(jit: &Jit) -> Outcome {
    let describe = |k: &KernelBuilder| {
        let p = parts(k);
        p.return_beyond_end();
        let left = k.shared("left", Type::U32);
        k.if_(p.t.eq(0), || left.set(p.first() % 5));
        k.barrier();
        k.while_(
            || left.get().gt(0),
            || {
                k.barrier();
                k.if_(p.t.eq(0), || left.set(left - 1));
                k.barrier();
            },
        );
        k.barrier();
        k.if_(p.t.eq(0), || left.set(p.first() % 7));
        k.barrier();
        let seen = k.var("seen", left);
        k.loop_(|| {
            let now = left.get();
            k.barrier();
            k.if_(now.ge(20), || k.break_());
            k.if_(p.t.eq(0), || left.set(now + 3));
            k.barrier();
        });
        seen.set(seen * 100 + left);
        p.out.at(p.i).set(p.x.at(p.i) + seen);
    };
    check(jit, describe, |x| {
        let first = x[0] % 7;
        let last = (0..10).map(|i| first + 3 * i).find(|v| *v >= 20);
        let seen = first * 100 + last.unwrap_or(0);
        x.iter().map(|x| x + seen).collect()
    })
}

/// Loops in loops, of which the inner one ends the outer one.
fn nested_loops_of_nobody(jit: &Jit) -> Outcome {
    let describe = |k: &KernelBuilder| {
        let p = parts(k);
        p.return_beyond_end();
        let (a, b) = (k.var("a", 0u32), k.var("b", 0u32));
        k.loop_(|| {
            k.barrier();
            a.set(a + 1);
            k.loop_(|| {
                k.barrier();
                b.set(b + a);
                k.if_(b.get().gt(40), || k.break_out(1));
                k.if_((b % 3).eq(0), || k.continue_out(1));
                k.if_((b % 5).eq(0), || k.break_());
            });
            b.set(b + 2);
        });
        p.out.at(p.i).set(p.x.at(p.i) + a * 100 + b);
    };
    check(jit, describe, |x| {
        let (mut a, mut b) = (0, 0);
        'a: loop {
            a += 1;
            loop {
                b += a;
                if b > 40 {
                    break 'a;
                }
                if b % 3 == 0 {
                    continue 'a;
                }
                if b % 5 == 0 {
                    break;
                }
            }
            b += 2;
        }
        x.iter().map(|x| x + a * 100 + b).collect()
    })
}

/// A kernel that is one loop, and all that decides is a parameter.
fn loops_without_anything_else(jit: &Jit) -> Outcome {
    let kernel = Kernel::build("one", |k| {
        let (out, once) = (k.slice_mut("out", Type::U32), k.param("once", Type::BOOL));
        k.loop_(|| {
            let i = k.global_id().x();
            k.if_(out.at(i).get().gt(4), || k.return_());
            out.at(i).set(out.at(i) + 1);
            k.barrier();
            k.if_(once, || k.break_());
        });
    })?;
    for block in BLOCKS {
        for once in [true, false] {
            let host: Vec<u32> = (0..2 * block).map(|i| noise(i) % 8).collect();
            let got = run_blocks(jit, &kernel, 2, block as u32, &host, args!(once))?;
            let end = |&v: &u32| if once && v < 5 { v + 1 } else { v.max(5) };
            assert!(
                got.iter().copied().eq(host.iter().map(end)),
                "{once}, blocks of {block}"
            );
        }
    }
    Ok(())
}

/// Whole warps return between two barriers, by their number and by data.
fn returns_between_barriers(jit: &Jit) -> Outcome {
    let describe = |k: &KernelBuilder| {
        let p = parts(k);
        p.return_beyond_end();
        let count = k.shared("count", Type::U32);
        k.if_(p.t.eq(0), || count.set(0));
        k.barrier();
        // Of four warps one stays, and of that the lanes with odd numbers, and the first thread.
        k.if_((p.t / 32 % 4).ne(0) & p.t.ne(0), || k.return_());
        count.atomic_add(1);
        k.barrier();
        let all = count.get();
        k.if_((p.x.at(p.i) % 2).eq(0) & p.t.ne(0), || k.return_());
        k.barrier();
        count.atomic_add(1000);
        k.barrier();
        p.out.at(p.i).set(all * 3 + count);
    };
    check(jit, describe, |x| {
        let first: Vec<usize> = (0..x.len()).filter(|t| t / 32 % 4 == 0).collect();
        let stays = |t: &usize| x[*t] % 2 == 1 || *t == 0;
        let second: Vec<usize> = first.iter().copied().filter(stays).collect();
        let all = first.len() as u32;
        let mut out = vec![7; x.len()];
        for &t in &second {
            out[t] = all * 3 + all + 1000 * second.len() as u32;
        }
        out
    })
}

/// An index out of bounds ends a thread as a return does: the last warp of each block ends so.
fn faults_between_barriers(jit: &Jit) -> Outcome {
    let kernel = Kernel::build("faults", |k| {
        let p = parts(k);
        let round = k.var("round", 0u32);
        let last = (k.block_dim().x() - 1) / 32;
        let limit = (p.t / 32).eq(last).select(p.x.len(), p.i);
        let mine = p.x.at(limit).get();
        let of_first = p.shown_by_first(mine);
        k.loop_(|| {
            k.barrier();
            round.set(round + 1);
            k.if_(round.get().gt(3), || k.break_());
        });
        p.out.at(p.i).set(mine + of_first * 3 + round);
    })?;
    for block in BLOCKS {
        let hx: Vec<u32> = (0..3 * block).map(noise).collect();
        let (mut out, x) = (jit.upload(&vec![7; 3 * block])?, jit.upload(&hx)?);
        jit.launch(&kernel, 3, block as u32, args!(&mut out, &x))?;
        let fault = jit.synchronize();
        assert!(
            matches!(
                fault,
                Err(kiln::Error::Run(kiln::error::RunError::Fault(_)))
            ),
            "{fault:?}"
        );
        let left = (block - 1) / 32 * 32;
        for (got, x) in out.to_vec()?.chunks(block).zip(hx.chunks(block)) {
            let want = x[..left].iter().map(|v| v + x[0] * 3 + 4);
            let ended = std::iter::repeat_n(7, block - left);
            let want: Vec<u32> = want.chain(ended).collect();
            assert_eq!(got, want, "blocks of {block}");
        }
    }
    Ok(())
}

/// Loops whose bounds are the same in a warp of a row and differ between warps, left by lanes in
/// all ways.
fn loops_of_whole_warps(jit: &Jit) -> Outcome {
    let kernel = Kernel::build("rows", |k| {
        let (out, x) = (k.slice_mut("out", Type::U32), k.slice("x", Type::U32));
        let (column, row) = (k.thread_idx().x(), k.thread_idx().y());
        let i = row * k.block_dim().x() + column;
        let (v, rounds) = (k.var("v", x.at(i)), k.var("rounds", 0u32));
        k.for_range(0u32, row + 1, |j| {
            rounds.set(rounds + 1);
            k.if_((v % 7).eq(j), || k.continue_());
            k.if_((v % 11).eq(j + 3), || k.break_());
            k.if_((v % 13).eq(j + 5), || {
                out.at(i).set(v);
                k.return_();
            });
            v.set(v * 3 + row + j);
            // A variable of the warp that only some lanes assign.
            k.if_((v % 2).eq(0), || rounds.set(rounds + row));
        });
        out.at(i).set(v * 5 + rounds);
    })?;
    for block in [[32u32, 8], [64, 4], [16, 16], [7, 9], [1, 33], [8, 128]] {
        let n = (block[0] * block[1]) as usize;
        let hx: Vec<u32> = (0..n).map(noise).collect();
        let x = jit.upload(&hx)?;
        let shape = (block[0], block[1]);
        let out = run_blocks(jit, &kernel, 1, shape, &vec![7; n], args!(&x))?;
        for (i, (&got, &x)) in out.iter().zip(&hx).enumerate() {
            let row = i as u32 / block[0];
            assert_eq!(got, row_model(x, row), "thread {i} of {block:?}");
        }
    }
    Ok(())
}

fn row_model(x: u32, row: u32) -> u32 {
    let (mut v, mut rounds) = (x, 0);
    for j in 0..=row {
        rounds += 1;
        if v % 7 == j {
            continue;
        }
        if v % 11 == j + 3 {
            break;
        }
        if v % 13 == j + 5 {
            return v;
        }
        v = v.wrapping_mul(3).wrapping_add(row + j);
        if v.is_multiple_of(2) {
            rounds += row;
        }
    }
    v.wrapping_mul(5).wrapping_add(rounds)
}
