//! Planted races of the lanes of a warp.

use kiln::prelude::*;

use super::{Case, RW, Shape, THREADS, WR, filled, me, out};

/// Races that lanes of a warp do not have if they synchronize, and have if they do not.
pub(super) const WARPS: &[Case] = &[
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
