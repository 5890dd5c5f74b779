//! Planted races, each beside the kernel that does it right.

use kiln::core::checks::Access;
use kiln::core::ir::{AddressSpace, AtomicOp, Ordering};
use kiln::{Checks, Finding, prelude::*};

use super::{Shape, THREADS, finding, is_usable, jit, kernel, launch};

/// A kernel in two forms: with the mistake if `wrong`, else without.
type Twins = fn(k: &KernelBuilder, wrong: bool);

/// A planted race: its name, its launch, the two accesses in the order in which the interpreter
/// comes to them, and the kernel. Every kernel takes one mutable slice of 256 zeros, `out`.
struct Case(&'static str, Shape, [Access; 2], Twins);

const RW: [Access; 2] = [Access::Read, Access::Write];
const WR: [Access; 2] = [Access::Write, Access::Read];
const WW: [Access; 2] = [Access::Write, Access::Write];
const AW: [Access; 2] = [Access::Atomic, Access::Write];
const AR: [Access; 2] = [Access::Atomic, Access::Read];
const WA: [Access; 2] = [Access::Write, Access::Atomic];
const RA: [Access; 2] = [Access::Read, Access::Atomic];

fn me(k: &KernelBuilder) -> Val<'_> {
    k.thread_idx().x()
}

fn out(k: &KernelBuilder) -> Val<'_> {
    k.slice_mut("out", Type::U32)
}

/// A shared array with one element a thread, each its number.
fn filled(k: &KernelBuilder) -> Val<'_> {
    let tile = k.shared_array("tile", Type::U32, THREADS);
    tile.at(me(k)).set(me(k));
    tile
}

fn barrier_unless(k: &KernelBuilder, wrong: bool) {
    if !wrong {
        k.barrier();
    }
}

/// Races in shared memory.
const SHARED: &[Case] = &[
    Case(
        "reduction without a barrier after the fill",
        Shape::BLOCK,
        RW,
        |k, wrong| {
            let (i, out, tile) = (me(k), out(k), filled(k));
            barrier_unless(k, wrong);
            k.if_(i.lt(16), || out.at(i).set(tile.at(i) + tile.at(i + 16)));
        },
    ),
    Case(
        "unrolled tree without barriers between steps",
        Shape::BLOCK,
        RW,
        |k, wrong| {
            let (i, out, tile) = (me(k), out(k), filled(k));
            k.barrier();
            for half in [16, 8, 4, 2, 1] {
                k.if_(i.lt(half), || {
                    tile.at(i).set(tile.at(i) + tile.at(i + half))
                });
                barrier_unless(k, wrong);
            }
            k.if_(i.eq(0), || out.at(0).set(tile.at(0)));
        },
    ),
    Case(
        "tree in a loop without a barrier",
        Shape::BLOCK,
        RW,
        |k, wrong| {
            let (i, out, tile) = (me(k), out(k), filled(k));
            k.barrier();
            let half = k.var("half", 16u32);
            k.while_(
                || half.get().gt(0),
                || {
                    k.if_(i.lt(half), || {
                        tile.at(i).set(tile.at(i) + tile.at(i + half))
                    });
                    half.set(half / 2);
                    barrier_unless(k, wrong);
                },
            );
            k.if_(i.eq(0), || out.at(0).set(tile.at(0)));
        },
    ),
    Case(
        "result read before the last step is over",
        Shape::BLOCK,
        WR,
        |k, wrong| {
            let (i, out) = (me(k), out(k));
            let tile = k.shared_array("tile", Type::U32, 2);
            k.if_(i.lt(2), || tile.at(i).set(i));
            k.barrier();
            k.if_(i.eq(0), || tile.at(0).set(tile.at(0) + tile.at(1)));
            barrier_unless(k, wrong);
            out.at(i).set(tile.at(0));
        },
    ),
    Case(
        "broadcast without a barrier",
        Shape::BLOCK,
        WR,
        |k, wrong| {
            let (i, out) = (me(k), out(k));
            let value = k.shared("value", Type::U32);
            k.if_(i.eq(0), || value.set(7));
            barrier_unless(k, wrong);
            out.at(i).set(value);
        },
    ),
    Case(
        "broadcast by the last thread",
        Shape::BLOCK,
        RW,
        |k, wrong| {
            let (i, out) = (me(k), out(k));
            let value = k.shared("value", Type::U32);
            k.if_(i.eq(THREADS - 1), || value.set(7));
            barrier_unless(k, wrong);
            out.at(i).set(value);
        },
    ),
    Case(
        "a barrier before both instead of between",
        Shape::BLOCK,
        RW,
        |k, wrong| {
            let (i, out) = (me(k), out(k));
            let tile = k.shared_array("tile", Type::U32, THREADS);
            if wrong {
                k.barrier();
            }
            tile.at(i).set(i);
            barrier_unless(k, wrong);
            out.at(i).set(tile.at((i + 1) % THREADS));
        },
    ),
    Case(
        "two threads one byte, neighbours are fine",
        Shape::BLOCK,
        WW,
        |k, wrong| {
            let (i, out) = (me(k), out(k));
            let bytes = k.shared_array("bytes", Type::U8, THREADS);
            bytes
                .at(if wrong { i / 2 } else { i })
                .set(i.cast(Type::U8));
            k.barrier();
            out.at(i).set(bytes.at(i / 2).get().cast(Type::U32));
        },
    ),
    Case(
        "two threads one half word, neighbours are fine",
        Shape::BLOCK,
        WW,
        |k, wrong| {
            let (i, out) = (me(k), out(k));
            let halves = k.shared_array("halves", Type::U16, THREADS);
            halves
                .at(if wrong { i % 31 } else { i })
                .set(i.cast(Type::U16));
            k.barrier();
            out.at(i).set(halves.at(i % 31).get().cast(Type::U32));
        },
    ),
    Case("two threads one double", Shape::BLOCK, WW, |k, wrong| {
        let (i, out) = (me(k), out(k));
        let wide = k.shared_array("wide", Type::F64, THREADS);
        wide.at(if wrong { i & 30 } else { i })
            .set(i.cast(Type::F64));
        k.barrier();
        out.at(i).set(wide.at(i & 30).get().cast(Type::U32));
    }),
    Case(
        "bytes written and read as words",
        Shape::BLOCK,
        RW,
        |k, wrong| {
            let (i, out) = (me(k), out(k));
            let (bytes, words) = (k.dynamic_shared(Type::U8), k.dynamic_shared(Type::U32));
            bytes.at(i).set(i.cast(Type::U8));
            barrier_unless(k, wrong);
            k.if_((i % 4).eq(0), || out.at(i).set(words.at(i / 4)));
        },
    ),
    Case(
        "words written and read as bytes",
        Shape::BLOCK,
        WR,
        |k, wrong| {
            let (i, out) = (me(k), out(k));
            let (bytes, words) = (k.dynamic_shared(Type::U8), k.dynamic_shared(Type::U32));
            k.if_(i.lt(8), || words.at(i).set(i));
            barrier_unless(k, wrong);
            out.at(i).set(bytes.at(i).get().cast(Type::U32));
        },
    ),
    Case("a double over two words", Shape::BLOCK, WR, |k, wrong| {
        let (i, out) = (me(k), out(k));
        let (words, wide) = (k.dynamic_shared(Type::U32), k.dynamic_shared(Type::U64));
        k.if_(i.lt(2), || words.at(i).set(i));
        barrier_unless(k, wrong);
        k.if_(i.eq(1), || out.at(i).set(wide.at(0).get().cast(Type::U32)));
    }),
    Case(
        "the same field of a struct",
        Shape::BLOCK,
        WW,
        |k, wrong| {
            let (i, out) = (me(k), out(k));
            let pair = k.struct_type("Pair", &[("a", Type::U8), ("b", Type::U8)]);
            let shared = k.shared("pair", pair);
            k.if_(i.eq(0), || shared.field("a").set(1));
            k.if_(i.eq(1), || {
                shared.field(if wrong { "a" } else { "b" }).set(2)
            });
            k.barrier();
            out.at(i).set(shared.field("a").get().cast(Type::U32));
        },
    ),
    Case("all write the same value", Shape::BLOCK, WW, |k, wrong| {
        let (i, out) = (me(k), out(k));
        let flag = k.shared("flag", Type::U32);
        k.if_(if wrong { i.lt(99) } else { i.eq(3) }, || flag.set(1));
        k.barrier();
        out.at(i).set(flag);
    }),
    Case("a counter without atomics", Shape::BLOCK, WR, |k, wrong| {
        let (i, out) = (me(k), out(k));
        let mut count = k.shared("count", Type::U32);
        k.if_(i.eq(0), || count.set(0));
        k.barrier();
        if wrong {
            count += 1;
        } else {
            count.atomic_add(1);
        }
        k.barrier();
        out.at(i).set(count);
    }),
    Case(
        "a counter that is not cleared in time",
        Shape::BLOCK,
        WA,
        |k, wrong| {
            let (i, out) = (me(k), out(k));
            let count = k.shared("count", Type::U32);
            k.if_(i.eq(0), || count.set(0));
            barrier_unless(k, wrong);
            count.atomic_add(1);
            k.barrier();
            out.at(i).set(count);
        },
    ),
    Case(
        "a counter that is cleared by the last thread",
        Shape::BLOCK,
        AW,
        |k, wrong| {
            let (i, out) = (me(k), out(k));
            let count = k.shared("count", Type::U32);
            k.if_(i.eq(0), || count.set(0));
            k.barrier();
            count.atomic_add(1);
            barrier_unless(k, wrong);
            k.if_(i.eq(THREADS - 1), || count.set(0));
            k.barrier();
            out.at(i).set(count);
        },
    ),
    Case(
        "a count that is read too early",
        Shape::BLOCK,
        AR,
        |k, wrong| {
            let (i, out) = (me(k), out(k));
            let count = k.shared("count", Type::U32);
            k.if_(i.eq(0), || count.set(0));
            k.barrier();
            count.atomic_add(1);
            barrier_unless(k, wrong);
            k.if_(i.eq(9), || out.at(i).set(count));
        },
    ),
    Case(
        "a minimum read while it is made",
        Shape::BLOCK,
        RA,
        |k, wrong| {
            let (i, out) = (me(k), out(k));
            let least = k.shared("least", Type::U32);
            k.if_(i.eq(0), || least.set(100));
            k.barrier();
            k.if_(i.eq(0), || out.at(0).set(least));
            barrier_unless(k, wrong);
            least.atomic_min(i);
        },
    ),
    Case(
        "a lock that is opened by a plain write",
        Shape::BLOCK,
        WA,
        |k, wrong| {
            let (i, out) = (me(k), out(k));
            let lock = k.shared("lock", Type::U32);
            k.if_(i.eq(0), || lock.set(0));
            k.barrier();
            let seen = lock.atomic_cas(0, 1);
            if wrong {
                lock.set(0);
            } else {
                lock.atomic_exchange(0);
            }
            out.at(i).set(seen);
        },
    ),
    Case("histogram without atomics", Shape::BLOCK, WR, |k, wrong| {
        let (i, out) = (me(k), out(k));
        let bins = k.shared_array("bins", Type::U32, 8);
        k.if_(i.lt(8), || bins.at(i).set(0));
        k.barrier();
        let mut bin = bins.at(i * 5 % 8);
        if wrong {
            bin += 1;
        } else {
            bin.atomic_add(1);
        }
        k.barrier();
        k.if_(i.lt(8), || out.at(i).set(bins.at(i)));
    }),
    Case(
        "transpose without a barrier",
        Shape::block2(4, 4),
        RW,
        |k, wrong| {
            let (x, y, out) = (me(k), k.thread_idx().y(), out(k));
            let row = k.array(Type::U32, 5);
            let tile = k.shared("tile", k.array(row, 4));
            tile.at(y).at(x).set(y * 4 + x);
            barrier_unless(k, wrong);
            out.at(y * 4 + x).set(tile.at(x).at(y));
        },
    ),
    Case("rows that overlap", Shape::block2(4, 4), WW, |k, wrong| {
        let (x, y, out) = (me(k), k.thread_idx().y(), out(k));
        let tile = k.shared_array("tile", Type::U32, 16);
        tile.at(y * if wrong { 3 } else { 4 } + x).set(x);
        k.barrier();
        out.at(y * 4 + x).set(tile.at(x));
    }),
    Case(
        "an index that forgets a dimension",
        Shape::block2(8, 4),
        WW,
        |k, wrong| {
            let (x, y, out) = (me(k), k.thread_idx().y(), out(k));
            let tile = k.shared_array("tile", Type::U32, 32);
            tile.at(if wrong { x } else { y * 8 + x }).set(y);
            k.barrier();
            out.at(y * 8 + x).set(tile.at(x));
        },
    ),
    Case(
        "double buffer with one barrier missing",
        Shape::BLOCK,
        RW,
        |k, wrong| {
            let (i, out) = (me(k), out(k));
            let (a, b) = (filled(k), k.shared_array("b", Type::U32, THREADS));
            k.barrier();
            k.for_range(0u32, 3, |_| {
                b.at(i).set(a.at((i + 1) % THREADS));
                barrier_unless(k, wrong);
                a.at(i).set(b.at((i + 1) % THREADS));
                k.barrier();
            });
            out.at(i).set(a.at(i));
        },
    ),
    Case(
        "double buffer with the loop's barrier missing",
        Shape::BLOCK,
        RW,
        |k, wrong| {
            let (i, out) = (me(k), out(k));
            let (a, b) = (filled(k), k.shared_array("b", Type::U32, THREADS));
            k.barrier();
            k.for_range(0u32, 3, |_| {
                b.at(i).set(a.at((i + 1) % THREADS));
                k.barrier();
                a.at(i).set(b.at((i + 1) % THREADS));
                barrier_unless(k, wrong);
            });
            out.at(i).set(a.at(i));
        },
    ),
    Case(
        "stencil before the tile is full",
        Shape::BLOCK,
        WR,
        |k, wrong| {
            let (i, out, tile) = (me(k), out(k), filled(k));
            barrier_unless(k, wrong);
            k.if_(i.gt(0), || out.at(i).set(tile.at(i) + tile.at(i - 1)));
        },
    ),
    Case("stencil in place", Shape::BLOCK, WR, |k, wrong| {
        let (i, out, tile) = (me(k), out(k), filled(k));
        k.barrier();
        let left = tile.at((i + 31) % THREADS).get();
        barrier_unless(k, wrong);
        tile.at(i).set(left + 1);
        k.barrier();
        out.at(i).set(tile.at(i));
    }),
    Case(
        "scan with one barrier a step",
        Shape::BLOCK,
        WR,
        |k, wrong| {
            let (i, out, tile) = (me(k), out(k), filled(k));
            k.barrier();
            for step in [1, 2, 4, 8, 16] {
                let sum = k.var("sum", tile.at(i));
                k.if_(i.ge(step), || sum.set(sum + tile.at(i - step)));
                barrier_unless(k, wrong);
                tile.at(i).set(sum);
                k.barrier();
            }
            out.at(i).set(tile.at(i));
        },
    ),
    Case(
        "a tile refilled while it is read",
        Shape::BLOCK,
        RW,
        |k, wrong| {
            let (i, out) = (me(k), out(k));
            let tile = k.shared_array("tile", Type::U32, THREADS);
            let sum = k.var("sum", 0u32);
            k.for_range(0u32, 4, |step| {
                tile.at(i).set(step);
                k.barrier();
                sum.set(sum + tile.at((i + 1) % THREADS));
                barrier_unless(k, wrong);
            });
            out.at(i).set(sum);
        },
    ),
    Case("partners swap in place", Shape::BLOCK, WR, |k, wrong| {
        let (i, out, tile) = (me(k), out(k), filled(k));
        k.barrier();
        let other = tile.at(i ^ 1).get();
        barrier_unless(k, wrong);
        tile.at(i).set(other);
        k.barrier();
        out.at(i).set(tile.at(i));
    }),
    Case(
        "odd-even sort without a barrier a step",
        Shape::BLOCK,
        WR,
        |k, wrong| {
            let (i, out, tile) = (me(k), out(k), filled(k));
            k.barrier();
            k.for_range(0u32, 8, |step| {
                let left = i * 2 + step % 2;
                k.if_((left + 1).lt(THREADS), || {
                    let (a, b) = (tile.at(left).get(), tile.at(left + 1).get());
                    tile.at(left).set(a.min(b));
                    tile.at(left + 1).set(a.max(b));
                });
                barrier_unless(k, wrong);
            });
            out.at(i).set(tile.at(i));
        },
    ),
    Case("producers and consumers", Shape::BLOCK, WR, |k, wrong| {
        let (i, out) = (me(k), out(k));
        let queue = k.shared_array("queue", Type::U32, 16);
        k.if_(i.lt(16), || queue.at(i).set(i));
        barrier_unless(k, wrong);
        k.if_(i.ge(16), || out.at(i).set(queue.at(i - 16)));
    }),
    Case("one thread out of the way", Shape::BLOCK, WR, |k, wrong| {
        let (i, out, tile) = (me(k), out(k), filled(k));
        k.if_(i.eq(30), || {
            out.at(0).set(tile.at(if wrong { 29 } else { 30 }))
        });
    }),
    Case(
        "only in the last iteration",
        Shape::BLOCK,
        WR,
        |k, wrong| {
            let (i, out, tile) = (me(k), out(k), filled(k));
            k.barrier();
            k.for_range(0u32, 10, |step| {
                let reach = if wrong { 9 } else { 10 };
                let at = step.lt(reach).select(i, (i + 1) % THREADS);
                tile.at(at).set(tile.at(at) + step);
            });
            k.barrier();
            out.at(i).set(tile.at(i));
        },
    ),
    Case(
        "halves of dynamic shared memory that overlap",
        Shape::BLOCK,
        WW,
        |k, wrong| {
            let (i, out) = (me(k), out(k));
            let all = k.dynamic_shared(Type::U32);
            k.if_(i.lt(16), || all.at(i).set(1));
            k.if_(i.ge(16), || all.at(i - u32::from(wrong)).set(2));
            k.barrier();
            out.at(i).set(all.at(i / 2));
        },
    ),
    Case("in a device function", Shape::BLOCK, WW, |k, wrong| {
        let put = DeviceFn::build("put", |f| {
            let t = f.slice_mut("to", Type::U32);
            let i = f.param("i", Type::U32);
            t.at(i).set(i);
        });
        let put = put.expect("it is right");
        let (i, out) = (me(k), out(k));
        let tile = k.shared_array("tile", Type::U32, THREADS);
        k.call(&put, &[tile.to_generic(), if wrong { i / 2 } else { i }]);
        k.barrier();
        out.at(i).set(tile.at(i / 2));
    }),
    Case(
        "threads that end are not waited for, nor excused",
        Shape::BLOCK,
        RW,
        |k, wrong| {
            let (i, out, tile) = (me(k), out(k), filled(k));
            barrier_unless(k, wrong);
            k.if_(i.ge(16), || k.return_());
            out.at(i).set(tile.at(i + 16));
        },
    ),
];

/// Races in global memory between threads of one block.
const GLOBAL: &[Case] = &[
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
const BLOCKS: &[Case] = &[
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

/// Races that lanes of a warp do not have if they synchronize, and have if they do not.
const WARPS: &[Case] = &[
    Case(
        "neighbours of a warp without a synchronization",
        Shape::BLOCK,
        RW,
        |k, wrong| {
            let (i, out, tile) = (me(k), out(k), filled(k));
            if !wrong {
                k.warp_sync(FULL_MASK);
            }
            out.at(i).set(tile.at((i + 1) % THREADS));
        },
    ),
    Case(
        "a shuffle orders no memory",
        Shape::BLOCK,
        WR,
        |k, wrong| {
            let (i, out, tile) = (me(k), out(k), filled(k));
            if wrong {
                k.shuffle_idx(FULL_MASK, i, 0u32, 32);
            } else {
                k.warp_sync(FULL_MASK);
            }
            out.at(i).set(tile.at(0));
        },
    ),
    Case("a vote orders no memory", Shape::BLOCK, WR, |k, wrong| {
        let (i, out, tile) = (me(k), out(k), filled(k));
        if wrong {
            k.ballot(FULL_MASK, i.lt(5));
        } else {
            k.warp_sync(FULL_MASK);
        }
        out.at(i).set(tile.at(31));
    }),
    Case(
        "another warp is not synchronized",
        Shape::block2(64, 1),
        WR,
        |k, wrong| {
            let (i, out) = (me(k), out(k));
            let tile = k.shared_array("tile", Type::U32, 64);
            tile.at(i).set(i);
            k.warp_sync(FULL_MASK);
            let other = if wrong { 63u32 - i } else { i ^ 31 };
            k.if_(i.ge(32), || out.at(i).set(tile.at(other)));
        },
    ),
    Case(
        "the other half is not synchronized",
        Shape::BLOCK,
        WR,
        |k, wrong| {
            let (i, out, tile) = (me(k), out(k), filled(k));
            k.if_(i.lt(16), || k.warp_sync(0xffffu32))
                .else_(|| k.warp_sync(0xffff_0000u32));
            out.at(i)
                .set(tile.at(if wrong { 31u32 - i } else { i ^ 15 }));
        },
    ),
    Case(
        "a tree of a warp with a step missing",
        Shape::BLOCK,
        RW,
        |k, wrong| {
            let (i, out, tile) = (me(k), out(k), filled(k));
            k.warp_sync(FULL_MASK);
            for half in [16, 8, 4, 2, 1] {
                k.if_(i.lt(half), || {
                    tile.at(i).set(tile.at(i) + tile.at(i + half))
                });
                if !(wrong && half == 4) {
                    k.warp_sync(FULL_MASK);
                }
            }
            k.if_(i.eq(0), || out.at(0).set(tile.at(0)));
        },
    ),
    Case(
        "an order through a third lane",
        Shape::BLOCK,
        WR,
        |k, wrong| {
            let (i, out) = (me(k), out(k));
            let value = k.shared("value", Type::U32);
            k.if_(i.eq(0), || value.set(1));
            // Lane 1 meets lane 0, and then lane 2; or the other way round.
            let (first, second) = if wrong { (6u32, 3u32) } else { (3, 6) };
            for mask in [first, second] {
                k.if_(
                    ((i.lt(3).select(k.lit(Type::U32, mask), k.lit(Type::U32, 0)) >> i) & 1).eq(1),
                    || {
                        k.warp_sync(mask);
                    },
                );
            }
            k.if_(i.eq(2), || out.at(i).set(value));
        },
    ),
    Case(
        "many readers, and a writer that met all but one",
        Shape::BLOCK,
        RW,
        |k, wrong| {
            let (i, out) = (me(k), out(k));
            let value = k.shared("value", Type::U32);
            k.if_(i.eq(0), || value.set(1));
            k.barrier();
            out.at(i).set(value);
            let met = if wrong { 0xffff_fbffu32 } else { FULL_MASK };
            k.if_(if wrong { i.ne(10) } else { i.ne(99) }, || k.warp_sync(met));
            k.if_(i.eq(20), || value.set(2));
        },
    ),
    Case(
        "lanes that meet in global memory",
        Shape::BLOCK,
        RW,
        |k, wrong| {
            let (i, out) = (me(k), out(k));
            out.at(i).set(i);
            if !wrong {
                k.warp_sync(FULL_MASK);
            }
            out.at(i + 64).set(out.at(i ^ 1));
        },
    ),
];

fn check(cases: &[Case], space: AddressSpace, same_block: bool) {
    let (some, all) = (jit(Checks::none().races()), jit(Checks::all()));
    for Case(name, shape, accesses, twins) in cases {
        let right = launch(&all, &kernel("right", |k| twins(k, false)), *shape);
        assert!(right.is_ok(), "{name}: {right:?}");
        let bad = kernel("wrong", |k| twins(k, true));
        let found = finding(name, launch(&some, &bad, *shape));
        let Finding::Race {
            kernel,
            place,
            first,
            second,
        } = &found
        else {
            panic!("{name}: no race: {found}")
        };
        assert_eq!(kernel, "wrong", "{name}");
        assert_eq!(place.space, space, "{name}: {found}");
        assert!(
            place.name.is_some()
                || place.length == u64::from(shape.dynamic) / u64::from(place.element_bytes),
            "{name}: {place}"
        );
        assert!(place.index < place.length, "{name}: {found}");
        assert_eq!([first.access, second.access], *accesses, "{name}: {found}");
        assert_eq!(first.block == second.block, same_block, "{name}: {found}");
        assert!(
            !same_block || first.thread != second.thread,
            "{name}: {found}"
        );
        for site in [first, second] {
            assert!(
                site.location.starts_with(&format!("{}:", file!())),
                "{name}: {found}"
            );
        }
        assert_eq!(found.location(), second.location);
        // Whatever else is checked, the mistake is not passed over.
        finding(name, launch(&all, &bad, *shape));
        let unchecked = launch(&jit(Checks::none()), &bad, *shape);
        assert!(unchecked.is_ok(), "{name}: {unchecked:?}");
        is_usable(&some);
        is_usable(&all);
    }
}

#[test]
fn in_shared_memory() {
    check(SHARED, AddressSpace::Shared, true);
}

#[test]
fn in_a_warp() {
    let (last, rest) = WARPS.split_last().expect("there are some");
    check(rest, AddressSpace::Shared, true);
    check(std::slice::from_ref(last), AddressSpace::Global, true);
}

#[test]
fn in_global_memory() {
    check(GLOBAL, AddressSpace::Global, true);
}

#[test]
fn between_blocks() {
    check(BLOCKS, AddressSpace::Global, false);
}

#[test]
fn there_are_many() {
    assert!(SHARED.len() + GLOBAL.len() + BLOCKS.len() >= 45);
}

#[test]
fn both_sites_are_exact() {
    let line = line!() + 4;
    let racy = kernel("exact", |k| {
        let (i, out) = (me(k), out(k));
        let tile = k.shared_array("tile", Type::U32, 64);
        tile.at(i + 3).set(i);
        k.if_(i.eq(9), || out.at(0).set(tile.at(9)));
    });
    let found = finding(
        "exact",
        launch(&jit(Checks::none().races()), &racy, Shape::BLOCK),
    );
    let Finding::Race {
        place,
        first,
        second,
        ..
    } = found
    else {
        panic!("{found}")
    };
    assert_eq!(
        (place.name.as_deref(), place.index, place.length),
        (Some("tile"), 9, 64)
    );
    assert_eq!((place.offset, place.element_bytes), (36, 4));
    assert_eq!((first.thread.x, second.thread.x), (6, 9));
    for (site, line) in [(first, line), (second, line + 1)] {
        let start = format!("{}:{line}:", file!());
        assert!(
            site.location.starts_with(&start),
            "{} is not at {start}",
            site.location
        );
    }
}

/// Bytes of one buffer that different blocks write: only the same byte is a race.
#[test]
fn bytes_of_global_memory() {
    for wrong in [false, true] {
        let bytes = kernel("bytes", |k| {
            let out = k.slice_mut("out", Type::U8);
            let i = k.global_id().x();
            out.at(if wrong { i / 2 } else { i }).set(1);
        });
        let jit = jit(Checks::all());
        let mut out = jit.zeros::<u8>(100).expect("memory");
        // Blocks of 5 threads, so that words and pairs of bytes are shared by blocks.
        let result = jit.launch(&bytes, 20, 5, args!(&mut out));
        assert_eq!(result.is_err(), wrong, "{result:?}");
    }
}

/// What one launch did is no matter for the next.
#[test]
fn launches_are_in_order() {
    let jit = jit(Checks::all());
    let put = kernel("put", |k| out(k).at(me(k)).set(me(k)));
    let take = kernel("take", |k| {
        let out = out(k);
        out.at(me(k) + 32).set(out.at(31u32 - me(k)));
    });
    let mut out = jit.zeros::<u32>(64).expect("memory");
    for _ in 0..3 {
        jit.launch(&put, 1, 32, args!(&mut out)).expect("no race");
        jit.launch(&take, 1, 32, args!(&mut out)).expect("no race");
    }
}
