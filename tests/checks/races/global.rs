//! Planted races in global memory, in a block and between blocks.

use kiln::core::ir::{AtomicOp, Ordering};
use kiln::prelude::*;

use super::{AR, Case, RA, RW, Shape, THREADS, WA, WR, WW, barrier_unless, me, out};

/// Races in global memory between threads of one block.
pub(super) const GLOBAL: &[Case] = &[
    Case(
        "a flag of a thread of the block that is not waited for",
        Shape::BLOCK,
        WR,
        |k, wrong| flag(k, wrong, Scope::Block, me(k)),
    ),
    Case(
        "neighbours in global memory",
        Shape::BLOCK,
        RW,
        |k, wrong| {
            let (i, out) = (me(k), out(k));
            out.at(i).set(i);
            barrier_unless(k, wrong);
            out.at(i + 64).set(out.at(i + 1));
        },
    ),
    Case("transpose in place", Shape::block2(4, 4), WR, |k, wrong| {
        let (x, y, out) = (me(k), k.thread_idx().y(), out(k));
        let value = out.at(y * 4 + x).get();
        barrier_unless(k, wrong);
        out.at(x * 4 + y).set(value);
    }),
    Case("two threads one element", Shape::BLOCK, WW, |k, wrong| {
        let (i, out) = (me(k), out(k));
        out.at(if wrong { i / 8 * 8 } else { i }).set(i);
    }),
    Case(
        "histogram in global memory",
        Shape::BLOCK,
        WR,
        |k, wrong| {
            let (i, out) = (me(k), out(k));
            let mut bin = out.at(i * 7 % 16);
            if wrong {
                bin += 1;
            } else {
                bin.atomic_add(1);
            }
        },
    ),
    Case(
        "a total without atomics in one block",
        Shape::BLOCK,
        WR,
        |k, wrong| {
            let (i, out) = (me(k), out(k));
            if wrong {
                out.at(0).set(out.at(0) + i);
            } else {
                out.at(0).atomic_add(i);
            }
        },
    ),
    Case(
        "an atomic maximum that is read at once",
        Shape::BLOCK,
        AR,
        |k, wrong| {
            let (i, out) = (me(k), out(k));
            out.at(0).atomic_max(i);
            barrier_unless(k, wrong);
            k.if_(i.eq(5), || out.at(1).set(out.at(0)));
        },
    ),
    Case(
        "in a block of many, where only the last goes wrong",
        Shape::GRID,
        WW,
        |k, wrong| {
            let (i, out) = (k.global_id().x(), out(k));
            let last = k.block_idx().x().eq(if wrong { 2 } else { 9 });
            out.at(last.select(i / 2, i) + last.select(k.lit(Type::U32, 128), k.lit(Type::U32, 0)))
                .set(1);
        },
    ),
];

/// Races in global memory between blocks.
pub(super) const BLOCKS: &[Case] = &[
    Case(
        "every block writes the same part",
        Shape::GRID,
        WW,
        |k, wrong| {
            let out = out(k);
            out.at(if wrong { me(k) } else { k.global_id().x() }).set(1);
        },
    ),
    Case(
        "a block reads what the one before wrote",
        Shape::GRID,
        WR,
        |k, wrong| {
            let (i, out) = (k.global_id().x(), out(k));
            out.at(i).set(i);
            k.if_(i.ge(32), || {
                out.at(i + 96).set(out.at(if wrong { i - 32 } else { i }))
            });
        },
    ),
    Case(
        "a block reads what the next one writes",
        Shape::GRID,
        RW,
        |k, wrong| {
            let (i, out) = (k.global_id().x(), out(k));
            out.at(i + 128).set(out.at(if wrong { i + 32 } else { i }));
            out.at(i).set(1);
        },
    ),
    Case(
        "a barrier does not order blocks",
        Shape::GRID,
        WR,
        |k, wrong| {
            let (i, out) = (k.global_id().x(), out(k));
            out.at(i).set(i);
            k.barrier();
            let from = if wrong { (i + 64) % 96 } else { i ^ 1 };
            out.at(i + 96).set(out.at(from));
        },
    ),
    Case("every block stores a total", Shape::GRID, WW, |k, wrong| {
        let (i, out) = (me(k), out(k));
        k.if_(i.eq(0), || {
            if wrong {
                out.at(0).set(k.block_idx().x());
            } else {
                out.at(0).atomic_add(k.block_idx().x());
            }
        });
    }),
    Case(
        "every block adds to a total",
        Shape::GRID,
        WR,
        |k, wrong| {
            let (i, out) = (me(k), out(k));
            k.if_(i.eq(0), || {
                let mut total = out.at(0);
                if wrong {
                    total += 1;
                } else {
                    total.atomic_add(1);
                }
            });
        },
    ),
    Case(
        "a grid-stride loop with a block's stride",
        Shape::GRID,
        WW,
        |k, wrong| {
            let (i, out) = (k.global_id().x(), out(k));
            let step = if wrong {
                k.lit(Type::U32, THREADS)
            } else {
                k.global_size_x()
            };
            k.for_loop(i, out.len(), step, Unroll::Auto, |at| out.at(at).set(at));
        },
    ),
    Case(
        "a part that is one too long",
        Shape::GRID,
        WW,
        |k, wrong| {
            let (i, out) = (k.global_id().x(), out(k));
            k.if_(if wrong { me(k).ge(0) } else { me(k).lt(31) }, || {
                out.at(i + 1).set(1)
            });
            k.if_(me(k).eq(0), || out.at(i).set(0));
        },
    ),
    Case(
        "an atomic and a plain write",
        Shape::GRID,
        WA,
        |k, wrong| {
            let (i, out) = (k.global_id().x(), out(k));
            k.if_(i.eq(0), || {
                if wrong {
                    out.at(0).set(5);
                } else {
                    out.at(0).atomic_exchange(5);
                }
            });
            k.if_(i.eq(40), || {
                out.at(0).atomic_add(1);
            });
        },
    ),
    Case("an atomic and a plain read", Shape::GRID, AR, |k, wrong| {
        let (i, out) = (k.global_id().x(), out(k));
        k.if_(i.lt(64), || {
            out.at(0).atomic_add(1);
        });
        k.if_(i.eq(95), || {
            let seen = if wrong {
                out.at(0).get()
            } else {
                out.at(0).atomic_add(0)
            };
            out.at(1).set(seen);
        });
    }),
    Case("a plain read and an atomic", Shape::GRID, RA, |k, wrong| {
        let (i, out) = (k.global_id().x(), out(k));
        k.if_(i.eq(0), || {
            let seen = if wrong {
                out.at(0).get()
            } else {
                out.at(0).atomic_add(0)
            };
            out.at(1).set(seen);
        });
        k.if_(i.eq(70), || {
            out.at(0).atomic_add(1);
        });
    }),
    Case(
        "two far blocks, a reader between",
        Shape::GRID,
        RW,
        |k, wrong| {
            let (b, out) = (k.block_idx().x(), out(k));
            // Blocks 0 and 1 only read; block 2 reads with two threads and then writes.
            let seen = out.at(0).get();
            out.at(k.global_id().x() + 64).set(seen);
            k.barrier();
            k.if_(b.eq(2) & me(k).eq(3), || {
                out.at(if wrong { 0 } else { 1 }).set(1)
            });
        },
    ),
    Case(
        "the last block adds up, without a fence",
        Shape::GRID,
        WR,
        |k, wrong| {
            last_block_adds_up(k, |ticket| {
                if wrong {
                    return ticket.atomic_add(1);
                }
                k.fence(Scope::Device);
                let taken = ticket.atomic_add(1);
                k.fence(Scope::Device);
                taken
            });
        },
    ),
    Case(
        "the last block adds up, with a fence before the ticket alone",
        Shape::GRID,
        WR,
        |k, wrong| {
            last_block_adds_up(k, |ticket| {
                k.fence(Scope::Device);
                let taken = ticket.atomic_add(1);
                if !wrong {
                    k.fence(Scope::Device);
                }
                taken
            });
        },
    ),
    Case(
        "a fence of each thread, a ticket of one",
        Shape::GRID,
        WR,
        |k, wrong| {
            let (b, out, last) = (
                k.block_idx().x(),
                out(k),
                k.shared_array("last", Type::BOOL, 1),
            );
            out.at(k.global_id().x() + 8).set(b);
            if wrong {
                k.fence(Scope::Device);
            }
            k.barrier();
            k.if_(me(k).eq(0), || {
                let order = if wrong {
                    Ordering::Relaxed
                } else {
                    Ordering::AcquireRelease
                };
                let ticket = out.at(0).atomic(AtomicOp::Add, 1, order, Scope::Device);
                last.at(0).set(ticket.eq(2));
            });
            k.barrier();
            if wrong {
                k.fence(Scope::Device);
            }
            k.if_(last.at(0).get(), || {
                out.at(me(k) + 128).set(out.at(me(k) + 8).get());
            });
        },
    ),
    Case(
        "a flag of another block that is not waited for",
        Shape::GRID,
        WR,
        |k, wrong| {
            let b = k.block_idx().x();
            k.if_(me(k).eq(0), || flag(k, wrong, Scope::Device, b));
        },
    ),
    Case(
        "the last block adds up, with a relaxed ticket",
        Shape::GRID,
        WR,
        |k, wrong| {
            let order = if wrong {
                Ordering::Relaxed
            } else {
                Ordering::AcquireRelease
            };
            last_block_adds_up(k, |ticket| {
                ticket.atomic(AtomicOp::Add, 1, order, Scope::Device)
            });
        },
    ),
];

/// Each thread writes a number, raises its flag, and looks at the flag of the thread before.
fn flag<'k>(k: &'k KernelBuilder, wrong: bool, scope: Scope, i: Val<'k>) {
    let out = out(k);
    let (release, acquire) = match wrong {
        true => (Ordering::Release, Ordering::Relaxed),
        false => (Ordering::Release, Ordering::Acquire),
    };
    out.at(i + 1).set(i * 3);
    out.at(i + 130).atomic_store(1, release, scope);
    k.if_(out.at(i + 129).atomic_load(acquire, scope).eq(1), || {
        out.at(255).atomic_add(out.at(i));
    });
}

/// Each block writes a partial result; the one that gets the last ticket reads them all.
fn last_block_adds_up<'k>(k: &'k KernelBuilder, take: impl FnOnce(Place<'k>) -> Val<'k>) {
    let (b, out) = (k.block_idx().x(), out(k));
    k.if_(me(k).eq(0), || {
        out.at(b + 1).set(b * 10);
        let ticket = take(out.at(0));
        k.if_(ticket.eq(2), || {
            out.at(10).set(out.at(1) + out.at(2) + out.at(3));
        });
    });
}
