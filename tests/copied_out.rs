//! Slices that cannot be copied out of shared memory.

use expect_test::expect;
use kiln::directives::{Known, marks};
use kiln::prelude::*;

use super::directives::refused;

/// The arguments of the regions here: two slices of 100 elements, and 100.
const KNOWN: [Known; 3] = [Known::Length(100), Known::Length(100), Known::Number(100)];

/// Regions with what is refused of each.
macro_rules! refused {
    ($($name:ident, |$x:ident, $y:ident, $n:ident| $body:block, $want:expr;)*) => {$(
        #[test]
        fn $name() {
            #[device_fn]
            fn region($x: &[u32], $y: &mut [u32], $n: usize) $body
            refused(DeviceFn::of::<region>(), (&[2], &[8]), &KNOWN, $want);
        }
    )*};
}

refused! {
    a_slice_that_is_read, |x, y, n| {
        marks::partition(1, 1);
        marks::copyout(y.len() as u32);
        for i in 0..n {
            y[i] = x[i] + y[n - 1 - i];
        }
    }, expect!["tests/copied_out.rs:29:27: `y` cannot be staged in shared memory: it is read, or written elsewhere than in the loop whose turns end with `copyout`, and what a turn writes is not in the slice before its end: let the loop alone write it, and nothing read it"];

    written_behind_the_loop, |x, y, n| {
        marks::partition(1, 1);
        marks::copyout(y.len() as u32);
        for i in 1..n {
            y[i] = x[i];
        }
        y[0] = 5;
    }, expect!["tests/copied_out.rs:39:9: `y` cannot be staged in shared memory: it is read, or written elsewhere than in the loop whose turns end with `copyout`, and what a turn writes is not in the slice before its end: let the loop alone write it, and nothing read it"];

    nothing_is_written, |x, y, n| {
        marks::partition(1, 1);
        marks::copyout(x.len() as u32);
        for i in 0..n {
            y[i] = 3;
        }
    }, expect!["tests/copied_out.rs:45:9: `x` cannot be staged in shared memory: nothing in the loop writes an element of it: take it out of the clause"];

    an_index_out_of_memory, |x, y, n| {
        marks::partition(1, 1);
        marks::independent();
        marks::copyout(y.len() as u32);
        for i in 0..n {
            y[x[i] as usize] = 3;
        }
    }, expect!["tests/copied_out.rs:55:13: `y` cannot be staged in shared memory: an index of it is not a sum of the loops' counters times numbers: stage slices whose indices are, and let `Program::apply_for` know the numbers of the launch"];

    two_kinds_of_indices, |x, y, n| {
        marks::partition(1, 0);
        for row in 0..n / 10 {
            marks::copyout(y.len() as u32);
            for _ in 0..2u32 {
                marks::partition(0, 1);
                for i in 0..5usize {
                    y[10 * row + i] = x[i];
                    y[99 - 10 * row - i] = x[i];
                }
            }
        }
    }, expect!["tests/copied_out.rs:63:13: `y` cannot be staged in shared memory: the loop writes elements of it whose indices differ by more than a number, and two of them may be one: let it write a slice by one kind of index"];

    overlapping_blocks, |x, y, n| {
        marks::partition(1, 1);
        marks::copyout(y.len() as u32);
        for i in 1..n {
            y[i] = x[i];
            y[i - 1] = x[i];
        }
    }, expect!["the write at tests/copied_out.rs:77:13 and the write at tests/copied_out.rs:78:13 use one element of `y`, in iterations of the loop at tests/copied_out.rs:76:9 that follow one another, and under `tblock(2) thread(8) loop 0: over_tblock(BLOCK) over_thread copyout(1)` different threads do so in any order: leave that loop sequential, or let its iterations use elements of their own"];
}
