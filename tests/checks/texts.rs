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
        expect![
            "kernel `planted`, tests/checks/texts.rs:L:C: a race on element 0 of 32 of `tile` in shared memory: thread 4x0x0 of block 0x0x0 reads it here, thread 0x0x0 of block 0x0x0 writes it at tests/checks/texts.rs:L:C, in no order; put a `barrier()` between them, or make both atomic"
        ],
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
        expect![
            "kernel `planted`, tests/checks/texts.rs:L:C: a race on element 0 of 256 of `out` in global memory: thread 2x0x0 of block 0x0x0 reads it here, thread 0x0x0 of block 0x0x0 changes it atomically at tests/checks/texts.rs:L:C, in no order; make both atomic, or put a `barrier()` between them"
        ],
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
        expect![
            "kernel `planted`, tests/checks/texts.rs:L:C: a race on element 0 of 256 of `out` in global memory: thread 0x0x0 of block 1x0x0 writes it here, thread 0x0x0 of block 0x0x0 writes it at tests/checks/texts.rs:L:C, in no order; blocks run in any order: give each block elements of its own, make both atomic, or divide the kernel in two"
        ],
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
        expect![
            "kernel `planted`, tests/checks/texts.rs:L:C: a race on element 0 of 64 in shared memory: thread 1x0x0 of block 0x0x0 writes it here, thread 0x0x0 of block 0x0x0 writes it at tests/checks/texts.rs:L:C, in no order; put a `barrier()` between them, or make both atomic"
        ],
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
        expect![
            "kernel `planted`: the threads of block 0x0x0 wait at different barriers: 5 threads at tests/checks/texts.rs:L:C (the first is 0x0x0), 26 threads at tests/checks/texts.rs:L:C (the first is 5x0x0), 1 thread at tests/checks/texts.rs:L:C (the first is 31x0x0); let every thread of the block come to the same `barrier()`: take it out of the `if` or the loop that not all threads run alike"
        ],
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
        expect![
            "kernel `planted`, tests/checks/texts.rs:L:C: element 13 of 16 of `tile` in shared memory is read and was not written before (block 0x0x0, thread 2x0x0); write it first, with a `barrier()` before another thread reads it: shared memory starts with anything"
        ],
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
        expect![
            "kernel `planted`, tests/checks/texts.rs:L:C: element 1 of 6 in local memory is read and was not written before (block 0x0x0, thread 1x0x0); write it first: local memory starts with anything"
        ],
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
        expect![
            "kernel `planted`, tests/checks/texts.rs:L:C: a thread made more than 1000 loop iterations (block 0x0x0, thread 7x0x0); end the loop, do not wait in it for another thread of the block, or raise the number of `Checks::watchdog`"
        ],
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
        expect![
            "kernel `planted`, tests/checks/texts.rs:L:C: index -1 is out of bounds for length 30 in shared memory (block 0x0x0, thread 0x0x0); the thread ended there, other threads went on; check the index or guard it with `if`"
        ],
    );
}
