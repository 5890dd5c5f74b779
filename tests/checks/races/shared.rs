//! Planted races in shared memory.

use kiln::prelude::*;

use super::{AR, AW, Case, RA, RW, Shape, THREADS, WA, WR, WW, barrier_unless, filled, me, out};

/// Races in shared memory.
pub(super) const SHARED: &[Case] = &[
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
    Case(
        "a warp that comes to a named barrier and does not wait",
        Shape {
            block: [64, 1, 1],
            ..Shape::BLOCK
        },
        WR,
        |k, wrong| {
            let (i, out) = (me(k), out(k));
            let tile = k.shared_array("tile", Type::U32, 32);
            k.if_(i.lt(32), || {
                tile.at(i).set(i);
                k.barrier_arrive(1, 64);
            })
            .else_(|| {
                match wrong {
                    true => k.barrier_arrive(1, 64),
                    false => k.barrier_sync(1, 64),
                }
                out.at(i).set(tile.at(i - 32));
            });
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
