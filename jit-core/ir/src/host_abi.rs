//! How host code is called: what a launch hands to the function that runs its blocks.

use std::ffi::c_void;

use crate::IntrinsicDef;

/// The symbol of the function that runs blocks.
pub const ENTRY: &str = "kiln_blocks";

/// The C functions that host code may call, which whoever loads it resolves.
pub const FUNCTIONS: [&str; 17] = [
    "memcpy", "memmove", "memset", "fma", "fmaf", "floor", "floorf", "ceil", "ceilf", "trunc",
    "truncf", "rint", "rintf", "fmin", "fminf", "fmax", "fmaxf",
];

/// What all blocks of a launch share. The layout is part of the code.
#[derive(Debug)]
#[repr(C)]
pub struct HostLaunch {
    /// The parameter block, as [`crate::abi::ParamLayout`] says.
    pub params: *const u8,
    /// Blocks of the grid in x, y and z.
    pub grid: [u32; 3],
    /// Dynamic shared memory of a block in bytes.
    pub dynamic_shared: u32,
    /// Called for the first lane that a failed check ends.
    pub fault: FaultFn,
    /// Handed to `fault`.
    pub sink: *const c_void,
    /// The rows of the kernel's module, by their numbers there.
    pub rows: *const &'static IntrinsicDef,
    /// Computes an intrinsic that has no host code from its meaning.
    pub meaning: MeaningFn,
    /// Computes a warp operation that has no host code from its meaning.
    pub warp_meaning: WarpMeaningFn,
    /// A word that is 0 as long as the launch is to go on; see [`crate::stop::Stop`].
    pub stop: *const u32,
}

/// `fault(sink, site, index, length, thread, block x, y, z)`; `thread` is linear in its block.
pub type FaultFn = unsafe extern "C" fn(*const c_void, u32, u64, u64, u32, u32, u32, u32);

/// `meaning(definition, scalar, arguments, number of arguments)`.
pub type MeaningFn = unsafe extern "C" fn(*const c_void, u32, *const u64, u32) -> u64;

/// `meaning(definition, scalar, lanes that take part, arguments and results, number of arguments)`;
/// each argument is a word for each of 32 lanes, and the results replace the first.
pub type WarpMeaningFn = unsafe extern "C" fn(*const c_void, u32, u32, *mut u64, u32);

/// Runs `count` blocks from the linear index `first` on, in order; not all of them, if `stop` is set. The two addresses are what is kept
/// between the segments of a block, and its memory.
pub type BlocksFn = unsafe extern "C" fn(*const HostLaunch, u64, u64, *mut u8, *mut u8);
