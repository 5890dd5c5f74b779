//! Running sums along the rows of a matrix, in one pass over all of its elements, however long the rows are.
//!
//! Tiles are those of a single row (`scan/look_back.rs`), and what is combined begins anew where a row begins. A tile in
//! which one begins knows at once what it leaves to the next: what lies behind the last beginning. So only tiles that lie
//! within a row wait for those before.

use kiln_device_stdlib::group::{block_exclusive_scan, block_to_blocked, block_to_striped};
use kiln_device_stdlib::plain::assumption::assume;
use kiln_device_stdlib::plain::index::{block_dim, thread_idx};
use kiln_device_stdlib::plain::memory::barrier;
use kiln_device_stdlib::plain::number::Num;
use kiln_jit_core::args::IntoArg;
use kiln_jit_core::build::Kernel;
use kiln_kernel_macro::{device_fn, kernel};

use super::look_back::{
    BLOCK, before_tile, nothing_said, publish_all, publish_own, tile_by_ticket,
};
use crate::{Array, NumberElement, Result};

/// Elements of a thread; odd, so that threads that have theirs next to each other are at different banks of shared
/// memory.
const ITEMS: usize = 15;

/// Elements of a tile.
const TILE: usize = BLOCK as usize * ITEMS;

/// The elements that a thread has of a tile that begins here, next to each other; beyond the end there is nothing.
#[device_fn]
fn loaded<T: Num>(x: &[T], start: usize, none: T, memory: &mut [T; TILE]) -> [T; ITEMS] {
    let mut items = [none; ITEMS];
    #[unroll]
    for i in 0..ITEMS {
        let at = start + i * BLOCK as usize + thread_idx().x;
        if at < x.len() {
            items[i] = x[at];
        }
    }
    block_to_blocked(items, memory)
}

/// Writes what a thread has of a tile, as far as there are elements.
#[device_fn]
fn store<T: Num>(items: [T; ITEMS], out: &mut [T], start: usize, memory: &mut [T; TILE]) {
    let items = block_to_striped(items, memory);
    #[unroll]
    for i in 0..ITEMS {
        let at = start + i * BLOCK as usize + thread_idx().x;
        if at < out.len() {
            out[at] = items[i];
        }
    }
}

/// What the tiles before this one leave to the row that this one begins in, for the first warp of a block. `own` is what
/// this tile leaves, all of its elements if no row begins in it.
#[device_fn]
fn before_row<T: Num, F: Fn(T, T) -> T>(
    tile: usize,
    begins_within: bool,
    (has_begun, own): (bool, T),
    none: T,
    state: &mut [u64],
    op: F,
) -> T {
    if has_begun {
        publish_all(tile, own, state);
    } else {
        publish_own(tile, own, state);
    }
    let mut before = none;
    if begins_within {
        before = before_tile(tile, none, state, |a, b| op(a, b));
    }
    if !has_begun {
        publish_all(tile, op(before, own), state);
    }
    before
}

/// Running sums of the elements of a thread, from where rows begin in them, and whether one does.
#[device_fn]
fn from_beginnings<T: Num, F: Fn(T, T) -> T>(
    items: [T; ITEMS],
    first: usize,
    row: usize,
    op: F,
) -> ([T; ITEMS], bool) {
    let (mut sums, mut sum) = (items, items[0]);
    let (mut column, mut has_begun) = (first, first == 0);
    #[unroll]
    for i in 1..ITEMS {
        column += 1;
        if column == row {
            column = 0;
            has_begun = true;
            sum = items[i];
        } else {
            sum = op(sum, items[i]);
        }
        sums[i] = sum;
    }
    (sums, has_begun)
}

/// A tile of running sums.
#[device_fn]
fn scan_tile<T: Num, F: Fn(T, T) -> T>(
    x: &[T],
    out: &mut [T],
    row: usize,
    none: T,
    state: &mut [u64],
    op: F,
) {
    assume(block_dim().x == BLOCK as usize && block_dim().y == 1 && block_dim().z == 1);
    let (thread, memory) = (thread_idx().x, shared!([T; TILE]));
    let (left, from_warp) = (shared!([(bool, T); 1]), shared!([T; 1]));
    let tile = tile_by_ticket(state);
    let items = loaded(x, tile * TILE, none, memory);
    // How far the thread's first element is from its row's beginning.
    let first = (tile * TILE + thread * ITEMS) % row;
    let (mut items, has_begun) = from_beginnings(items, first, row, |a, b| op(a, b));
    let sum = items[ITEMS - 1];
    let combine = |a: (bool, T), b: (bool, T)| if b.0 { b } else { (a.0, op(a.1, b.1)) };
    let before_thread = block_exclusive_scan((has_begun, sum), (false, none), |a, b| combine(a, b));
    if thread + 1 == BLOCK as usize {
        left[0] = combine(before_thread, (has_begun, sum));
    }
    barrier();
    if thread < 32 {
        let begins_within = tile * TILE % row > 0;
        let before = before_row(tile, begins_within, left[0], none, state, |a, b| op(a, b));
        if thread == 0 {
            from_warp[0] = before;
        }
    }
    barrier();
    let mut before = before_thread.1;
    if !before_thread.0 {
        before = op(from_warp[0], before);
    }
    #[unroll]
    for i in 0..ITEMS {
        if first > 0 && i < row - first {
            items[i] = op(before, items[i]);
        }
    }
    store(items, out, tile * TILE, memory);
}

/// The kernels, each with what it combines by.
macro_rules! kernels {
    ($($(#[$doc:meta])* $name:ident = |$a:ident, $b:ident| $op:expr;)*) => {$(
        $(#[$doc])*
        #[kernel]
        pub(super) fn $name<T: Num>(
            x: &[T],
            out: &mut [T],
            row: usize,
            none: T,
            state: &mut [u64],
        ) {
            scan_tile(x, out, row, none, state, |$a, $b| $op);
        }
    )*};
}
kernels! {
    /// Running sums of rows.
    scan_rows_sums = |a, b| a + b;
    /// Running products of rows.
    scan_rows_products = |a, b| a * b;
}

/// Running sums by one of the kernels along the rows of a matrix, whose elements lie one after the other; `none` is what
/// changes nothing where it is added.
///
/// # Errors
/// No memory; a device that has failed.
pub(super) fn scan<T: NumberElement>(x: &Array<T>, kernel: &Kernel, none: T) -> Result<Array<T>> {
    let (arrays, (rows, row)) = (&x.arrays, (x.dims()[0], x.dims()[1]));
    let mut out = arrays.unspecified((rows, row))?;
    let tiles = (rows * row).div_ceil(TILE);
    if tiles == 0 {
        return Ok(out);
    }
    let jit = arrays.jit();
    let mut state = nothing_said::<T>(jit, tiles)?;
    let args = [
        x.as_part()?.into_arg(),
        out.owned()?.into_arg(),
        (row as u32).into_arg(),
        none.into_arg(),
        (&mut state).into_arg(),
    ];
    jit.launch(kernel, tiles as u32, BLOCK, &args)?;
    drop(args);
    arrays.count_launch();
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Arrays;
    use kiln_jit_core::jit::Jit;
    use kiln_jit_core::runtime::Device;

    fn number(i: usize) -> u32 {
        (i as u32).wrapping_mul(2_654_435_761) >> 20
    }

    #[test]
    fn running_sums_of_rows_of_any_length() {
        let arrays = Arrays::new(&Jit::on(Device::cpu()));
        let sums = scan_rows_sums.get().expect("it is one");
        for (rows, row) in [
            (9000, 1),
            (3000, 2),
            (700, 7),
            (600, 15),
            (500, 16),
            (400, 31),
            (5, TILE - 1),
            (5, TILE),
            (5, TILE + 1),
            (40, 3 * TILE + 5),
            (2, 50 * TILE),
        ] {
            let x: Vec<u32> = (0..rows * row).map(number).collect();
            let mut expected = x.clone();
            for i in (0..x.len()).filter(|i| i % row > 0) {
                expected[i] = expected[i].wrapping_add(expected[i - 1]);
            }
            let array = arrays.array(x, (rows, row)).expect("there is memory");
            let seen = scan(&array, sums, 0).expect("it runs");
            assert_eq!(
                seen.to_vec().expect("it ran"),
                expected,
                "{rows} rows of {row}"
            );
        }
    }
}
