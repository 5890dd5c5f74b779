//! The text of each kind of finding.

use expect_test::{Expect, expect};
use kiln::{Checks, prelude::*};

use super::{Shape, jit, kernel, launch};

/// Compares the text of what is found, with line and column numbers replaced.
fn check(checks: Checks, shape: Shape, describe: impl FnOnce(&KernelBuilder), want: Expect) {
    let error = launch(&jit(checks), &kernel("planted", describe), shape);
    let text = error.expect_err("something is found").to_string();
    let mut parts = text.split(".rs:");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let digits = |part: &str| {
            part.trim_start_matches(|c: char| c.is_ascii_digit())
                .to_owned()
        };
        out += ".rs:L:C";
        out += &digits(digits(part).trim_start_matches(':'));
    }
    want.assert_eq(&out);
}

fn parts(k: &KernelBuilder) -> (Val<'_>, Val<'_>) {
    (k.thread_idx().x(), k.slice_mut("out", Type::U32))
}

#[test]
fn a_race_in_shared_memory() {
    check(
        Checks::all(),
        Shape::BLOCK,
        |k| {
            let (i, out) = parts(k);
            let tile = k.shared_array("tile", Type::F32, 32);
            tile.at(i).set(1.0);
            k.if_(i.ge(4), || {
                out.at(i).set(tile.at(i - 4).get().cast(Type::U32))
            });
        },
        expect![""],
    );
}

#[test]
fn a_race_with_an_atomic() {
    check(
        Checks::all(),
        Shape::BLOCK,
        |k| {
            let (i, out) = parts(k);
            out.at(0).atomic_add(1);
            k.if_(i.eq(2), || out.at(1).set(out.at(0)));
        },
        expect![""],
    );
}

#[test]
fn a_race_between_blocks() {
    check(
        Checks::all(),
        Shape::GRID,
        |k| {
            let (i, out) = parts(k);
            out.at(i).set(1);
        },
        expect![""],
    );
}

#[test]
fn a_race_in_dynamic_shared_memory() {
    check(
        Checks::all(),
        Shape::BLOCK,
        |k| {
            let (i, _) = parts(k);
            k.dynamic_shared(Type::U16).at(i / 2).set(1);
        },
        expect![""],
    );
}

#[test]
fn divergent_barriers() {
    check(
        Checks::all(),
        Shape::BLOCK,
        |k| {
            let (i, out) = parts(k);
            k.if_(i.lt(5), || k.barrier());
            k.if_(i.eq(31), || k.barrier());
            k.barrier();
            out.at(i).set(1);
        },
        expect![""],
    );
}

#[test]
fn uninitialized_shared_memory() {
    check(
        Checks::all(),
        Shape::block2(4, 4),
        |k| {
            let (i, out) = parts(k);
            let tile = k.shared("tile", k.array(k.array(Type::U32, 4), 4));
            tile.at(k.thread_idx().y()).at(i).set(1);
            k.if_(i.eq(2), || out.at(i).set(tile.at(3).at(1)));
        },
        expect![""],
    );
}

#[test]
fn uninitialized_local_memory() {
    check(
        Checks::all(),
        Shape::BLOCK,
        |k| {
            let (i, out) = parts(k);
            let list = k.local_array(Type::U64, 6);
            list.at(0).set(1);
            out.at(i).set(list.at(i).get().cast(Type::U32));
        },
        expect![""],
    );
}

#[test]
fn a_thread_without_end() {
    check(
        Checks::none().watchdog(1000),
        Shape::BLOCK,
        |k| {
            let (i, _) = parts(k);
            k.if_(i.eq(7), || k.loop_(|| {}));
        },
        expect![""],
    );
}

#[test]
fn an_index_out_of_bounds() {
    check(
        Checks::all(),
        Shape::BLOCK,
        |k| {
            let (i, _) = parts(k);
            k.shared_array("tile", Type::U32, 30)
                .at(i.cast(Type::I32) - 1)
                .set(1);
        },
        expect![""],
    );
}
