//! Slices that cannot be staged in shared memory.

use expect_test::expect;
use kiln::directives::marks;
use kiln::prelude::*;

use super::{KNOWN, refused};

refused! {
    a_staged_slice_that_is_written, [2], [32], |x, y, n| {
        marks::partition(1, 1);
        marks::shared(x.len() as u32);
        for i in 0..n {
            y[i] = x[i];
            x[i] = 1;
        }
    }, expect!["tests/directives.rs:29:1: `x` cannot be staged in shared memory: the region writes it, and what is in shared memory would be the old elements: stage slices that the region only reads"];

    a_staged_slice_of_which_nothing_is_read, [2], [32], |x, y, n| {
        marks::partition(1, 1);
        marks::shared(x.len() as u32);
        for i in 0..n {
            y[i] = 1;
        }
    }, expect!["tests/directives.rs:29:1: `x` cannot be staged in shared memory: nothing in the loop reads an element of it: take it out of the clause"];

    a_slice_that_is_staged_twice, [2], [32], |x, y, n| {
        marks::partition(1, 1);
        marks::shared(x.len() as u32);
        for i in 0..n / 2 {
            let mut sum = 0;
            marks::shared(x.len() as u32);
            for j in 0..2usize {
                sum += x[2 * i + j];
            }
            y[i] = sum;
        }
    }, expect!["tests/directives.rs:29:1: `x` cannot be staged in shared memory: a loop around stages it, too: take it out of one of the clauses"];

    a_staged_index_out_of_memory, [2], [32], |x, y, n| {
        marks::partition(1, 1);
        marks::shared(x.len() as u32);
        for i in 0..n {
            y[2 * i] = x[y[2 * i + 1] as usize];
        }
    }, expect!["tests/directives.rs:29:1: `x` cannot be staged in shared memory: an index of it is not a sum of the loops' counters times numbers: stage slices whose indices are, and let `Program::apply_for` know the numbers of the launch"];

    a_staged_quotient, [2], [32], |x, y, n| {
        marks::partition(1, 1);
        marks::shared(x.len() as u32);
        for i in 0..n {
            y[i] = x[i / 4];
        }
    }, expect!["tests/directives.rs:29:1: `x` cannot be staged in shared memory: an index of it is not a sum of the loops' counters times numbers: stage slices whose indices are, and let `Program::apply_for` know the numbers of the launch"];

    a_staged_element_that_is_not_read_whole, [2], [32], |x, y, n| {
        marks::partition(1, 1);
        marks::shared(x.len() as u32);
        for i in 0..n {
            y[i] = atomic_load(&x[i], Ordering::Relaxed, Scope::Device);
        }
    }, expect!["tests/directives.rs:29:1: `x` cannot be staged in shared memory: it is read here by something else than `x[i]`, as a field or a part of it is: read whole elements"];

    more_than_a_block_has, [1], [32], |x, y, n| {
        marks::shared(x.len() as u32);
        for i in 0..n {
            marks::partition(0, 1);
            for j in 0..20_000usize {
                y[i * 20_000 + j] = x[j];
            }
        }
    }, expect!["tests/directives.rs:29:1: `x` cannot be staged in shared memory: the elements of it that a block reads in one turn are too many for shared memory: stage in a loop with fewer of them, of parts of the loop, or give the block fewer threads"];

    more_than_a_block_has_in_all, [1], [32], |x, y, n| {
        marks::partition(0, 1);
        for i in 0..n {
            let mut sum = 0;
            marks::shared(x.len() as u32);
            for part in 0..2usize {
                for j in 0..9_000usize {
                    sum += x[j + part] + x[2 * j + 5 * part];
                }
            }
            y[i] = sum;
        }
    }, expect!["tests/directives.rs:29:1: `x` cannot be staged in shared memory: what the region stages before it leaves too little of shared memory, of which there are 48 KiB: stage fewer slices, or smaller parts"];

    blocks_within_what_is_staged, [2], [32], |x, y, n| {
        marks::shared(x.len() as u32);
        for i in 0..2usize {
            marks::partition(1, 1);
            for j in 0..n / 2 {
                y[i * (n / 2) + j] = x[j];
            }
        }
    }, expect!["tests/directives.rs:29:1: `x` cannot be staged in shared memory: a loop within the one that stages it is distributed over blocks, of which each has a part: stage it in that one"];

    staged_for_one_thread, [2], [32], |x, y, n| {
        if marks::singular() {
            marks::shared(x.len() as u32);
            for i in 0..n {
                y[i] = x[i];
            }
        }
    }, expect!["tests/directives.rs:29:1: `x` cannot be staged in shared memory: one thread of the block executes the loop, and shares nothing with others: take the clause away"];

    staged_where_not_all_threads_come, [1], [32], |x, y, n| {
        marks::partition(0, 1);
        for i in 0..n {
            let mut sum = 0;
            if i > 3 {
                marks::shared(x.len() as u32);
                for j in 0..4usize {
                    sum += x[j];
                }
            }
            y[i] = sum;
        }
    }, expect!["tests/directives.rs:29:1: a barrier, or a loop that stages slices, in an `if` whose condition threads of a block may have different: put it outside of it"];

    a_part_of_a_slice_that_is_staged, [1], [32], |x, y, n| {
        let part = &x[2..10];
        marks::shared(part.len() as u32);
        for i in 0..n {
            y[i] = part[i % 8];
        }
    }, expect!["tests/directives.rs:29:1: `shared`, `reduction` and `privatize` take slices that are parameters of the region: name the slice itself, not a part of it"];

    staged_without_a_loop, [1], [32], |x, y, _n| {
        marks::shared(x.len() as u32);
        y[0] = x[0];
    }, expect!["tests/directives.rs:29:1: the directive is for a `for` loop, and none follows it; let the bounds of the loop be variables where they are computed by `if` or by loops"];
}
