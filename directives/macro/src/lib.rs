//! `#[offload]`: a function that is a sequential program, and one whose kernel regions run on a device.
//!
//! | file | subject |
//! |---|---|
//! | `clauses` | what stands in the parentheses of directives |
//! | `function` | the item that a function becomes |
//! | `sequential` | the function without directives |
//! | `host` | the function with launches in the place of regions, and copies before whatever else uses the slices |
//! | `region` | a kernel region as a `#[device_fn]` with marks |
//! | `capture` | which variables of the function a region uses, and how |
//!
//! What a directive cannot say is refused with the span of the token and a sentence that says what to write instead.
#![forbid(unsafe_code)]

mod capture;
mod clauses;
mod function;
mod host;
mod region;
mod sequential;

use proc_macro::TokenStream;

/// Makes of a function an item with the function as it is written, `f.sequential(..)`, and one whose kernel regions
/// run on a device, `f.launch(&jit, ..)`.
///
/// ```
/// use kiln::prelude::*;
///
/// #[offload]
/// fn saxpy(a: f32, x: &[f32], y: &mut [f32], blocks: u32) {
///     #[kernel(tblock(blocks), thread(128))]
///     {
///         #[loop_partition(over_tblock, over_thread)]
///         for i in 0..y.len() {
///             y[i] = a * x[i] + y[i];
///         }
///     }
/// }
///
/// # fn main() -> kiln::Result<()> {
/// let x = vec![1.0; 1000];
/// let (mut y, mut z) = (vec![2.0; 1000], vec![2.0; 1000]);
/// saxpy.sequential(3.0, &x, &mut y, 4);
/// saxpy.launch(&Jit::new()?, 3.0, &x, &mut z, 4)?;
/// assert_eq!(y, z);
/// # Ok(())
/// # }
/// ```
///
/// | directive | where | what it says |
/// |---|---|---|
/// | `#[kernel(tblock(..), thread(..), nowait)]` | on a block | the block runs on a grid of so many blocks and threads, which are expressions; with `nowait` the function goes on meanwhile |
/// | `#[loop_partition(over_tblock(BLOCK), over_thread)]` | on a `for` in a region | its iterations are distributed, in chunks or with `CYCLIC` in turn |
/// | `#[loop_partition(.., unsafe(independent))]` | there | the program promises that no iteration depends on another |
/// | `#[shared(copyin(a, b))]` | there, or on another `for` in a region | before each turn a block copies to shared memory what its threads read of the slices in the turn, and they read it there; rows there are padded against conflicts of banks, but not with `, nopad` |
/// | `#[loop_partition(.., coarsen(4))]` | on a loop over threads | a thread executes so many of its iterations side by side, statement by statement |
/// | `#[loop_transform(tile(16), unroll_and_jam(4), unroll(4))]` | on a `for` in a region | the loop becomes one from tile to tile and one within a tile; so many iterations are executed side by side; the body is written so often |
/// | `#[singular]` | on a block in a region | one thread of each block executes it |
/// | `barrier!();` | in a region | all threads of a block wait for each other |
///
/// A region uses variables of the function: parameters and, where the function's own block declares them with their
/// type, `Vec`s and scalars. Scalars are passed by value, and a region writes none. Slices are copied to the device
/// before the first region that uses them, and back before anything else does, and at the end.
///
/// What the first launch of a region with given numbers reports: iterations that depend on each other under the
/// schedule ([`DirectiveError`](https://docs.rs/kiln-jit)), a loop that is distributed deeper than the grid, barriers
/// that not all threads come to.
#[proc_macro_attribute]
pub fn offload(attribute: TokenStream, item: TokenStream) -> TokenStream {
    function::expand(attribute.into(), item.into()).into()
}
