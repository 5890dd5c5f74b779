//! Arrays of blocks that are used wrongly, and where their memory lies.

use expect_test::expect;
use kiln::directives::{Known, marks};
use kiln::prelude::*;

use super::directives::refused;

/// The arguments of the regions here: two slices of 64 elements, and 64.
const KNOWN: [Known; 3] = [Known::Length(64), Known::Length(64), Known::Number(64)];

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
    no_barrier_before_others_read, |x, y, _n| {
        let tile = shared!([u32; 8]);
        *tile = [0; 8];
        marks::partition(0, 1);
        for i in 0..8usize {
            tile[i] = x[i];
        }
        marks::partition(0, 1);
        for i in 0..8usize {
            y[i] = tile[7 - i];
        }
    }, expect!["the write at tests/block_arrays.rs:30:13 and the read at tests/block_arrays.rs:34:20 use one element of `tile`, in one iteration, and under `tblock(2) thread(8) loop 0: over_thread; loop 1: over_thread` different threads do so in any order: put a `barrier` between them if they are of one block, distribute the loops around them alike, or let one thread of each block do it by `singular`"];

    what_the_first_thread_writes, |_x, y, _n| {
        let tile = shared!([u32; 8]);
        *tile = [0; 8];
        tile[2] = 5;
        marks::partition(0, 1);
        for i in 0..8usize {
            y[i] = tile[2];
        }
    }, expect!["the write at tests/block_arrays.rs:41:9 and the read at tests/block_arrays.rs:44:20 use one element of `tile`, in one iteration, and under `tblock(2) thread(8) loop 0: over_thread` different threads do so in any order: put a `barrier` between them if they are of one block, distribute the loops around them alike, or let one thread of each block do it by `singular`"];

    an_element_of_all_iterations, |x, y, n| {
        let tile = shared!([u32; 8]);
        *tile = [0; 8];
        marks::partition(0, 1);
        for i in 0..n {
            tile[0] += x[i];
        }
        barrier();
        y[0] = tile[0];
    }, expect!["the read at tests/block_arrays.rs:53:13 and the write at tests/block_arrays.rs:53:13 use one element of `tile`, in iterations of the loop at tests/block_arrays.rs:52:9 that follow one another, and under `tblock(2) thread(8) loop 0: over_thread` different threads do so in any order: leave that loop sequential, or let its iterations use elements of their own"];

    what_another_block_writes, |x, y, n| {
        let tile = shared!([u32; 64]);
        *tile = [0; 64];
        marks::partition(1, 1);
        for i in 0..n {
            tile[i] = x[i];
        }
        barrier();
        marks::partition(1, 1);
        for i in 0..n {
            y[i] = tile[63 - i];
        }
    }, expect!["the write at tests/block_arrays.rs:64:13 and the read at tests/block_arrays.rs:69:20 use one element of `tile`, in one iteration, and under `tblock(2) thread(8) loop 0: over_tblock(BLOCK) over_thread; loop 1: over_tblock(BLOCK) over_thread` different threads do so in any order: put a `barrier` between them if they are of one block, distribute the loops around them alike, or let one thread of each block do it by `singular`"];

    what_blocks_hand_on, |x, y, n| {
        let tile = shared!([u32; 64]);
        *tile = [0; 64];
        marks::partition(1, 0);
        for i in 1..n {
            tile[i] = x[i] + tile[i - 1];
        }
        y[0] = 1;
    }, expect!["the write at tests/block_arrays.rs:78:13 and the read at tests/block_arrays.rs:78:30 use one element of `tile`, in iterations of the loop at tests/block_arrays.rs:77:9 that follow one another, and under `tblock(2) thread(8) loop 0: over_tblock(BLOCK)` different threads do so in any order: leave that loop sequential, or let its iterations use elements of their own"];

    an_array_of_a_thread, |x, y, n| {
        marks::partition(1, 1);
        for i in 0..n {
            let tile = shared!([u32; 4]);
            *tile = [0; 4];
            tile[i % 4] = x[i];
            y[i] = tile[0];
        }
    }, expect!["tests/block_arrays.rs:87:13: an array in shared memory is declared or assigned in a loop over threads, each of whose iterations has one of its own: declare it outside of the loop, or leave it to the threads by taking `#[shared]` away"];

    declared_where_a_condition_varies, |x, y, n| {
        marks::partition(1, 0);
        for i in 0..n {
            if x[i] > 3 {
                let tile = shared!([u32; 4]);
                *tile = [0; 4];
                y[i] = tile[1];
            }
            y[i] = 2;
            if y[i] > 3 {
                let tile = shared!([u32; 4]);
                *tile = [0; 4];
                y[i] = tile[0];
            }
        }
    }, expect!["tests/block_arrays.rs:102:13: a barrier, or a loop that stages slices, in an `if` whose condition threads of a block may have different: put it outside of it"];

    never_assigned, |x, y, _n| {
        let tile = shared!([u32; 8]);
        marks::partition(0, 1);
        for i in 0..8usize {
            tile[i] = x[i];
        }
        y[0] = tile[0];
    }, expect!["tests/block_arrays.rs:111:20: memory of the block is a variable of the region: declare it by `#[shared] let mut a: [f32; 64] = [0.0; 64];`, or assign all of it where it is declared, before it is used"];

    used_before_it_is_assigned, |x, y, _n| {
        let tile = shared!([u32; 8]);
        tile[0] = x[0];
        *tile = [0; 8];
        y[0] = tile[0];
    }, expect!["tests/block_arrays.rs:120:20: memory of the block is a variable of the region: declare it by `#[shared] let mut a: [f32; 64] = [0.0; 64];`, or assign all of it where it is declared, before it is used"];

    too_many_bytes, |x, y, n| {
        let tile = shared!([u32; 8192]);
        *tile = [0; 8192];
        let other = shared!([u32; 4097]);
        *other = [0; 4097];
        y[0] = tile[n] + other[n] + x[0];
    }, expect!["tests/block_arrays.rs:24:1: a block has 49156 bytes of arrays and staged slices in shared memory at the same time, of at most 49152: let arrays be smaller, or stage fewer slices"];
}
