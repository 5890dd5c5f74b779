//! Planted races, each beside the kernel that does it right.

mod global;
mod shared;
mod warps;

use kiln::core::checks::Access;
use kiln::core::ir::AddressSpace;
use kiln::{Checks, Finding, prelude::*};

use global::{BLOCKS, GLOBAL};
use shared::SHARED;
use warps::WARPS;

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
                site.location.starts_with(file!().trim_end_matches(".rs")),
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

/// The grid is waited for between what each thread writes and what those of another block read, and, but where it is
/// wrong, before that is written again.
#[kernel]
fn of_other_blocks(x: &mut [u32], wrong: u32) {
    let grid = this_grid();
    let (i, n, tile) = (grid.rank() as usize, x.len(), shared!([u32; 8]));
    tile[thread_idx().x] = i as u32;
    for _ in 0..3 {
        x[i] = tile[thread_idx().x];
        grid.sync();
        let other = x[(i + n / 2) % n];
        if wrong == 0 {
            grid.sync();
        }
        x[i] = other;
        grid.sync();
    }
}

#[test]
fn waits_for_the_grid_order_blocks() {
    let jit = jit(Checks::all());
    for wrong in [0, 1] {
        let mut x = jit.zeros::<u32>(32).expect("memory");
        let config = LaunchConfig::new(4, 8).cooperative();
        let launched = of_other_blocks.launch(&jit, config, &mut x, wrong);
        if wrong == 0 {
            assert!(launched.is_ok(), "{launched:?}");
            continue;
        }
        let found = finding("no wait", launched);
        let Finding::Race { first, second, .. } = &found else {
            panic!("no race: {found}");
        };
        assert_ne!(first.block, second.block, "{found}");
        assert_eq!([first.access, second.access], WR, "{found}");
    }
}
