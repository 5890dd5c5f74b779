//! Barriers that not all threads of a block come to, and what does not go beyond one.

use expect_test::expect;
use kiln::directives::marks;
use kiln::prelude::*;

use super::{KNOWN, refused};

refused! {
    a_barrier_in_singular, [2], [32], |x, _y, _n| {
        if marks::singular() {
            x[0] = 1;
            barrier();
        }
    }, expect!["tests/directives.rs:29:1: a barrier in `singular`, which one thread of the block executes: put it behind"];

    a_barrier_in_an_if, [1], [32], |x, _y, n| {
        marks::partition(0, 1);
        for i in 0..n {
            if i > 3 {
                x[i] = 1;
                barrier();
            }
        }
    }, expect!["tests/directives.rs:29:1: a barrier, or a loop that stages slices, in an `if` whose condition threads of a block may have different: put it outside of it"];

    a_barrier_in_a_loop_of_its_own_length, [1], [32], |x, _y, n| {
        marks::partition(0, 1);
        for i in 0..n {
            for _ in 0..i {
                x[i] = 1;
                barrier();
            }
        }
    }, expect!["tests/directives.rs:29:1: a barrier, or a loop that stages slices, in a loop whose bounds threads of a block may have different: let them be the same for all iterations of loops over threads"];

    a_barrier_in_a_while_loop, [1], [32], |x, _y, n| {
        let mut i = 0;
        while i < n {
            barrier();
            i += 1;
        }
        x[0] = 1;
    }, expect!["tests/directives.rs:29:1: a barrier, or a loop that stages slices, in a loop that is no `for`, which threads may leave in different turns: count its turns by a `for`"];

    a_continue_before_a_barrier, [1], [32], |x, _y, n| {
        marks::partition(0, 1);
        for i in 0..n {
            if i == 5 {
                continue;
            }
            x[i] = 1;
            barrier();
        }
    }, expect!["tests/directives.rs:29:1: a loop with a barrier in it, or that stages slices, is left here, and all threads of the block come to the barrier: put what follows into an `if`, and the barrier outside of it"];

    a_reference_over_a_barrier, [1], [32], |x, _y, n| {
        marks::partition(0, 1);
        for i in 0..n {
            let place = &mut x[i];
            *place = 1;
            barrier();
            *place = 2;
        }
    }, expect!["tests/directives.rs:29:1: a reference or slice is made before a barrier in the loop and used behind it: make it again behind the barrier"];

    a_barrier_by_an_inner_counter, [1, 1], [4, 8], |x, _y, n| {
        marks::partition(0, 1);
        for i in 0..2usize {
            marks::partition(0, 1);
            for j in 0..n / 2 {
                if j > 3 {
                    x[i * (n / 2) + j] = 1;
                    barrier();
                }
            }
        }
    }, expect!["tests/directives.rs:29:1: a barrier, or a loop that stages slices, in an `if` whose condition threads of a block may have different: put it outside of it"];
}
