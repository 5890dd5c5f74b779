//! Directives where they mean nothing, grids that none is, and regions that are none.

use expect_test::expect;
use kiln::directives::marks;
use kiln::prelude::*;

use super::{KNOWN, read, refused};

refused! {
    a_partition_deeper_than_the_grid, [2], [32], |x, _y, n| {
        marks::partition(1, 0);
        for i in 0..10usize {
            marks::partition(1, 1);
            for j in 0..n / 10 {
                x[i * (n / 10) + j] = 1;
            }
        }
    }, expect!["tests/directives.rs:29:1: the loop is number 2 of its nest that is distributed over blocks, and `tblock` has 1 of them: give it 2 or take the clause away"];

    threads_deeper_than_the_block, [2], [32], |x, _y, n| {
        marks::partition(1, 1);
        for i in 0..10usize {
            marks::partition(0, 1);
            for j in 0..n / 10 {
                x[i * (n / 10) + j] = 1;
            }
        }
    }, expect!["tests/directives.rs:29:1: the loop is number 2 of its nest that is distributed over threads, and `thread` has 1 of them: give it 2 or take the clause away"];

    neither_clause, [2], [32], |x, _y, n| {
        marks::partition(0, 0);
        for i in 0..n {
            x[i] = 1;
        }
    }, expect!["tests/directives.rs:29:1: `loop_partition` has no clause: write `over_tblock`, one of `over_thread`, `over_warp` and `over_lane`, or both"];

    a_partition_without_a_loop, [2], [32], |x, _y, _n| {
        marks::partition(1, 1);
        x[0] = 1;
    }, expect!["tests/directives.rs:29:1: the directive is for a `for` loop, and none follows it; let the bounds of the loop be variables where they are computed by `if` or by loops"];

    a_partition_before_an_if, [2], [32], |x, _y, n| {
        marks::partition(1, 1);
        if n > 5 {
            x[0] = 1;
        }
    }, expect!["tests/directives.rs:29:1: the directive is for a `for` loop, and none follows it; let the bounds of the loop be variables where they are computed by `if` or by loops"];

    a_partition_in_singular, [2], [32], |x, _y, n| {
        if marks::singular() {
            marks::partition(0, 1);
            for i in 0..n {
                x[i] = 1;
            }
        }
    }, expect!["tests/directives.rs:29:1: `loop_partition` within `singular`, which one thread of the block executes: take one of them away"];

    singular_in_singular, [2], [32], |x, _y, _n| {
        if marks::singular() {
            x[1] = 1;
            x[2] = 1;
            if marks::singular() { x[0] = 1; }
        }
    }, expect!["tests/directives.rs:29:1: `singular` within `singular`: one of them is enough"];

    singular_in_threads, [2], [32], |x, _y, n| {
        marks::partition(1, 1);
        for i in 0..n {
            if marks::singular() {
                x[i] = 1;
            }
        }
    }, expect!["tests/directives.rs:29:1: `singular` within a loop over threads, of whose iterations the first thread has some only: put it outside of the loop, or take the clause for threads away"];

    singular_with_else, [2], [32], |x, _y, _n| {
        if marks::singular() {
            x[0] = 1;
        } else {
            x[1] = 1;
        }
    }, expect!["tests/directives.rs:29:1: the mark of `singular` is the condition of an `if` without `else`"];

    the_place_of_a_thread, [1], [32], |x, _y, n| {
        marks::partition(0, 1);
        for i in 0..n {
            x[i] = thread_idx().x as u32;
        }
    }, expect!["tests/directives.rs:29:1: a region is a sequential program, and has no thread that knows its place: use directives, or write a `#[kernel]`"];

    memory_of_the_block, [1], [32], |x, _y, n| {
        let tile = shared!([u32; 32]);
        marks::partition(0, 1);
        for i in 0..n {
            tile[i % 32] = 1;
            x[i] = tile[i % 32];
        }
    }, expect!["tests/directives.rs:29:1: memory of the block is a variable of the region: declare it by `#[shared] let mut a: [f32; 64] = [0.0; 64];`, or assign all of it where it is declared, before it is used"];

    no_dimensions, [], [32], |x, _y, _n| {
        x[0] = 1;
    }, expect!["tblock(): a grid has one dimension or more, each of at least 1"];

    a_dimension_of_nothing, [2], [4, 0], |x, _y, _n| {
        x[0] = 1;
    }, expect!["thread(4, 0): a grid has one dimension or more, each of at least 1"];

    too_many_threads, [2], [33, 32], |x, _y, _n| {
        x[0] = 1;
    }, expect!["thread(33, 32): these are 1056 in all, and at most 1024 are launched: choose smaller dimensions, a loop takes any number of turns"];

    too_many_blocks, [65536, 65536, 65536], [32], |x, _y, _n| {
        x[0] = 1;
    }, expect!["tblock(65536, 65536, 65536): these are 281474976710656 in all, and at most 2147483647 are launched: choose smaller dimensions, a loop takes any number of turns"];

    a_break_of_a_distributed_loop, [1], [32], |x, _y, n| {
        marks::partition(0, 1);
        for i in 0..n {
            if i == 50 {
                break;
            }
            x[i] = 1;
        }
    }, expect!["tests/directives.rs:29:1: `break` ends a loop that is distributed, whose later iterations other threads execute: take the clauses away, or test in each iteration whether there is something to do"];

    a_return_of_a_distributed_loop, [1], [32], |x, _y, n| {
        marks::partition(0, 1);
        for i in 0..n {
            if i == 50 {
                return;
            }
            x[i] = 1;
        }
    }, expect!["tests/directives.rs:29:1: `return` ends the region for one thread, and in the sequential program for all that comes after: put what follows into an `if`"];
}

#[test]
fn what_is_no_region_is_refused() {
    #[device_fn]
    fn gives(x: u32) -> u32 {
        x + 1
    }
    #[device_fn]
    fn generic<T: Num>(x: &mut [T]) {
        x[0] += x[1];
    }
    let gives = read(DeviceFn::of::<gives>()).expect_err("it gives something");
    expect!["`gives` is no region: a region is a function without a result and without type and const parameters"].assert_eq(&gives.to_string());
    let generic = read(DeviceFn::of::<generic>()).expect_err("it has a type parameter");
    expect!["`generic` is no region: a region is a function without a result and without type and const parameters"].assert_eq(&generic.to_string());
}

/// A mark that is launched is an error on every device.
#[test]
fn marks_that_are_left_are_errors() -> kiln::Result<()> {
    #[kernel]
    fn marked(x: &mut [u32]) {
        marks::partition(1, 1);
        for i in 0..4usize {
            x[i] = 1;
        }
    }
    let jit = Jit::on(Device::cpu());
    let mut x = jit.zeros::<u32>(4)?;
    let launched = marked
        .launch(&jit, (1, 1), &mut x)
        .and_then(|()| x.to_vec());
    let error = launched.expect_err("it is left").to_string();
    assert!(
        error.contains("a directive's mark is left in the kernel"),
        "{error}"
    );
    let target = kiln::core::target::Target::Ptx(kiln::core::target::PtxTarget::for_sm(90));
    let gpu = Jit::with(
        Device::cpu(),
        kiln::hooks::standard(),
        JitOptions::default().target(target),
    );
    let inspected = gpu
        .inspect(&marked, args!(&x))
        .map(|inspection| inspection.ptx().map(str::to_owned));
    assert!(
        !matches!(inspected, Ok(Ok(_))),
        "a GPU has no such instruction"
    );
    Ok(())
}
