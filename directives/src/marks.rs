//! Marks: what a directive leaves in the IR of a region, for [`Program`](crate::Program) to read.
//!
//! | mark | where it stands | what it says |
//! |---|---|---|
//! | [`partition()`] | before a `for`, whose bounds alone come between | how the loop's iterations are distributed |
//! | [`independent()`] | there, too | the program's promise that no iteration depends on another |
//! | [`shared()`] | there, too, for each slice | a block copies what a turn reads of the slice to shared memory first |
//! | [`whole()`] | there, too, for each slice | a block copies all of the slice to shared memory before a turn |
//! | [`copyout()`] | there, too, for each slice | what a turn writes of the slice is in shared memory until the turn ends |
//! | [`compute()`] | there, too, for each slice | a block computes what a turn reads of the slice first, instead of the loops that write it |
//! | [`reduction()`] | there, too, for each slice | iterations combine elements of the slice with values in any order |
//! | [`scan()`] | there, too | variables that iterations combine with values and hand on are computed by threads together |
//! | [`privatize()`] | there, too, for each slice | each iteration has elements of the slice of its own |
//! | [`interchange()`] | there, too | the loop that alone is in it becomes the one around it |
//! | [`peel_first()`], [`peel_last()`] | there, too | so many of the loop's first or last iterations are split off |
//! | [`tile()`] | there, too | the loop becomes two: from tile to tile, and within a tile |
//! | [`jam()`] | there, too | so many of the loop's iterations are executed side by side |
//! | [`unroll()`] | there, too | how often the loop's body is written |
//! | [`singular()`] | the condition of an `if` without `else` | one thread of each block executes what the `if` holds |
//!
//! The barrier is that of kernels. A mark has no meaning of its own: a kernel in which one is left ends with an error.

/// What a loop without a clause for blocks has as its first number.
pub const NOT_OVER_BLOCKS: u32 = 0;
/// What a loop has as its first number whose iterations go to blocks in contiguous chunks.
pub const BLOCK: u32 = 1;
/// What a loop has as its first number whose iterations go to blocks in turn.
pub const CYCLIC: u32 = 2;

/// What a loop without a clause for threads has as its second number.
pub const NOT_OVER_THREADS: u32 = 0;
/// What a loop has as its second number that goes over the threads of a dimension.
pub const THREADS: u32 = 1;
/// What a loop has as its second number that goes over warps.
pub const WARPS: u32 = 2;
/// What a loop has as its second number that goes over the lanes of a warp.
pub const LANES: u32 = 3;

fn over_threads(number: Option<i128>) -> Result<(), String> {
    match number {
        Some(0..=3) => Ok(()),
        _ => Err("a literal 0, 1, 2 or 3, for a clause".to_owned()),
    }
}

fn clause(number: Option<i128>) -> Result<(), String> {
    match number {
        Some(0..=2) => Ok(()),
        _ => Err("a literal 0, 1 or 2, for a clause".to_owned()),
    }
}

/// What [`unroll()`] has for a loop all of whose turns are written.
pub const UNROLL_FULL: u32 = 0;
/// What [`unroll()`] has for a loop that is left as it is.
pub const UNROLL_NEVER: u32 = 1;

fn count(number: Option<i128>) -> Result<(), String> {
    match number {
        Some(0..=65_536) => Ok(()),
        _ => Err("a literal up to 65536, for a count of iterations".to_owned()),
    }
}

/// How a thread meets a mark that no schedule has taken out.
fn left_in() -> ! {
    panic!("a directive's mark is left in the kernel: launch what `Program::apply` gives")
}

kiln_device_stdlib::intrinsic! {
    /// The iterations of the next loop are distributed: over blocks by the first number ([`NOT_OVER_BLOCKS`], [`BLOCK`] or
    /// [`CYCLIC`]), over the threads of a block by the second ([`NOT_OVER_THREADS`], [`THREADS`], [`WARPS`] or [`LANES`]).
    pub fn partition(blocks: u32, threads: u32)
        where blocks is clause, threads is over_threads
    {
        let _ = (blocks, threads);
        left_in()
    } = row("offload.partition").with_effects(kiln_jit_core::ir::Effects::Memory);

    /// The iterations of the next loop are independent, as the program promises.
    pub fn independent() {
        left_in()
    } = row("offload.independent").with_effects(kiln_jit_core::ir::Effects::Memory);

    /// What the next loop reads in a turn of a slice, a parameter of the region, a block copies to shared memory before the
    /// turn. The slice is named by its length, `shared(x.len() as u32)`.
    pub fn shared(len: u32) {
        let _ = len;
        left_in()
    } = row("offload.shared").with_effects(kiln_jit_core::ir::Effects::Memory);

    /// As [`shared()`], of all elements, whatever their indices are.
    pub fn whole(len: u32) {
        let _ = len;
        left_in()
    } = row("offload.whole").with_effects(kiln_jit_core::ir::Effects::Memory);

    /// What the next loop writes in a turn of a slice, a parameter of the region that is named by its length, is written in shared
    /// memory, from where a block copies it to the slice behind the turn.
    pub fn copyout(len: u32) {
        let _ = len;
        left_in()
    } = row("offload.copyout").with_effects(kiln_jit_core::ir::Effects::Memory);

    /// What the next loop reads in a turn of a slice, a parameter of the region that is named by its length, a block computes in
    /// shared memory before the turn, as the loops before it do that write the slice, in the place of these loops.
    pub fn compute(len: u32) {
        let _ = len;
        left_in()
    } = row("offload.compute").with_effects(kiln_jit_core::ir::Effects::Memory);

    /// Iterations of the next loop combine elements of a slice, a parameter of the region that is named by its length, with
    /// values by an operation whose order does not matter.
    pub fn reduction(len: u32) {
        let _ = len;
        left_in()
    } = row("offload.reduction").with_effects(kiln_jit_core::ir::Effects::Memory);

    /// What iterations of the next loop combine with values and hand on, the threads of a block compute together.
    pub fn scan() {
        left_in()
    } = row("offload.scan").with_effects(kiln_jit_core::ir::Effects::Memory);

    /// Each iteration of the next loop has elements of its own of a slice, a parameter of the region that is named by its length,
    /// and writes what it reads of them before.
    pub fn privatize(len: u32) {
        let _ = len;
        left_in()
    } = row("offload.privatize").with_effects(kiln_jit_core::ir::Effects::Memory);

    /// The rows of what the next loop has in shared memory are as long as they need be.
    pub fn unpadded() {
        left_in()
    } = row("offload.unpadded").with_effects(kiln_jit_core::ir::Effects::Memory);

    /// The loop that alone is in the next loop becomes the one around it.
    pub fn interchange() {
        left_in()
    } = row("offload.interchange").with_effects(kiln_jit_core::ir::Effects::Memory);

    /// Of the next loop's iterations so many of the first ones are split off, and come before it.
    pub fn peel_first(iterations: u32)
        where iterations is count
    {
        let _ = iterations;
        left_in()
    } = row("offload.peel_first").with_effects(kiln_jit_core::ir::Effects::Memory);

    /// Of the next loop's iterations so many of the last ones are split off, and come behind it.
    pub fn peel_last(iterations: u32)
        where iterations is count
    {
        let _ = iterations;
        left_in()
    } = row("offload.peel_last").with_effects(kiln_jit_core::ir::Effects::Memory);

    /// The next loop becomes two: one that goes from tile to tile of so many iterations, and one within a tile.
    pub fn tile(iterations: u32)
        where iterations is count
    {
        let _ = iterations;
        left_in()
    } = row("offload.tile").with_effects(kiln_jit_core::ir::Effects::Memory);

    /// Of the next loop's iterations that a thread has, so many are executed side by side.
    pub fn jam(iterations: u32)
        where iterations is count
    {
        let _ = iterations;
        left_in()
    } = row("offload.jam").with_effects(kiln_jit_core::ir::Effects::Memory);

    /// The next loop's body is written so many times, [`UNROLL_FULL`] and [`UNROLL_NEVER`] among the numbers; of a loop
    /// of tiles, that of the loop within a tile.
    pub fn unroll(times: u32)
        where times is count
    {
        let _ = times;
        left_in()
    } = row("offload.unroll").with_effects(kiln_jit_core::ir::Effects::Memory);

    /// The condition of an `if` that one thread of each block enters.
    pub fn singular() -> bool {
        left_in()
    } = row("offload.singular").with_effects(kiln_jit_core::ir::Effects::Memory);
}
