//! What a Kiln kernel can call, in chapters like the CUDA programming guide's.
//!
//! | chapter | what is in it |
//! |---|---|
//! | [`index`] | thread, block and grid indices |
//! | [`math`] | square root, fused multiply-add, rounding, exponentials, logarithms, sine, powers |
//! | [`math::directed`] | sums, products, quotients and roots that are rounded up, down or towards 0 |
//! | [`integer`] | methods of integers: counts of bits, rotations, saturation, roots |
//! | [`integer::words`] | instructions of GPUs on integers that Rust has no methods for |
//! | [`number`] | methods of all numbers, and of those with a sign |
//! | [`warp`] | lanes, shuffles, votes, matches and reductions of a warp |
//! | [`time`] | clocks, and waits |
//! | [`debugger`] | breakpoints |
//! | [`random`] | generators of random numbers, uniform and normal ones, integers below a bound |
//! | [`vector`] | short vectors, read and written in one access |
//! | [`cache`] | accesses with cache hints, prefetches |
//! | [`barrier`] | barriers at which the threads of a block vote |
//! | [`named_barrier`] | barriers of some warps of a block |
//! | [`group`] | groups of threads, and what they compute together: reductions, running sums |
//! | [`plain`] | all of it as ordinary Rust, for `#[kernel]` functions |
//!
//! Each chapter shows its operations in a `#[kernel]` function.
//!
//! A chapter is a table. An intrinsic is an entry of it, from which it has its row
//! ([`kiln_jit_core::ir::IntrinsicDef`]), its method of the chapter's extension trait for the builder, and its
//! function or method for kernels and the host; [`registry`] lists all rows, for parsers and for tests.
//! Plain barriers, fences, atomics and shared memory are part of the IR and of the builder itself.
#![forbid(unsafe_code)]

// What `#[device_fn]` writes is named from here, in this crate itself, too.
extern crate self as kiln;

pub mod barrier;
pub mod cache;
pub mod debugger;
pub mod foreign;
mod global;
pub mod group;
pub mod index;
pub mod integer;
pub mod intrinsic;
pub mod math;
pub mod named_barrier;
pub mod number;
pub mod plain;
pub mod random;
mod table;
pub mod target;
pub mod time;
pub mod vector;
pub mod warp;

/// What the code that [`intrinsic!`] writes refers to.
#[doc(hidden)]
pub mod macros {
    pub use crate::intrinsic::{
        Choice, Open, RowResult, RowScalar, RowType, function, has_meaning, is_row_name, params,
        says_memory,
    };
    pub use half::{bf16, f16};
    pub use kiln_jit_core::build::{IntoVal, KernelBuilder, Val};
    pub use kiln_jit_core::error::Result;
    pub use kiln_jit_core::front::macros::{Callable, Front, Operand};
    pub use kiln_jit_core::ir::{IntrinsicDef, Meaning, Scalar, Type, TypePattern};
    pub use kiln_jit_core::jit::Jit;
    pub use kiln_jit_core::runtime::{Global, GlobalArray};

    // For `#[device_fn]` and `#[derive(KernelType)]` in this crate itself.
    pub use crate::plain::{
        conversion::*, dispatch::*, memory::shared_memory, operator::*, resolve::*,
        result::question,
    };
    pub use kiln_jit_core::front::macros::*;
    pub use kiln_jit_core::ir::{Constant, TypeForm};
    pub use kiln_jit_core::value::{DeviceType, KernelType, KernelValue};
}

use kiln_jit_core::ir::IntrinsicDef;

/// All rows of all chapters.
///
/// ```
/// use kiln::stdlib::{find, registry};
///
/// assert!(registry().any(|row| row.name == "math.sqrt"));
/// assert_eq!(find("math.sqrt").map(|row| row.params.len()), Some(1));
/// assert!(find("math.nothing").is_none());
/// ```
pub fn registry() -> impl Iterator<Item = &'static IntrinsicDef> {
    index::rows()
        .chain(warp::rows())
        .chain(barrier::rows())
        .chain(named_barrier::rows())
        .chain(group::grid_rows())
        .chain(math::rows())
        .chain([math::large_angle()])
        .chain(math::directed::rows())
        .chain(number::rows())
        .chain(integer::rows())
        .chain(integer::words::rows())
        .chain(target::rows())
        .chain(time::rows())
        .chain(cache::rows())
        .chain(debugger::rows())
        .chain(plain::atomic_vector::rows())
}

/// The row with this name.
pub fn find(name: &str) -> Option<&'static IntrinsicDef> {
    registry().find(|def| def.name == name)
}

#[cfg(test)]
mod tests {
    use kiln_jit_core::ir::{Meaning, ThreadPosition};

    /// The last threads of the last blocks of grids as large as a GPU takes.
    fn extremes() -> Vec<ThreadPosition> {
        let blocks = [
            [1024, 1, 1],
            [1, 1024, 1],
            [16, 1, 64],
            [7, 5, 3],
            [33, 1, 1],
        ];
        let last = |dim: [u32; 3]| dim.map(|n| n - 1);
        let grid_dim = [u32::MAX >> 1, 65_535, 65_535];
        blocks
            .map(|block_dim| ThreadPosition {
                thread: last(block_dim),
                block: last(grid_dim),
                block_dim,
                grid_dim,
            })
            .to_vec()
    }

    #[test]
    fn results_are_below_their_bounds() {
        for def in crate::registry().filter(|def| def.result_below != 0) {
            let Meaning::Position(f) = def.meaning else {
                panic!("the bound of `{}` is not tested", def.name);
            };
            for at in extremes() {
                assert!(f(&at) < def.result_below, "{} at {at:?}", def.name);
            }
            let largest = extremes().iter().map(f).max();
            let tight = largest == Some(def.result_below - 1);
            assert!(tight, "{}: {largest:?} of {}", def.name, def.result_below);
        }
    }
}
