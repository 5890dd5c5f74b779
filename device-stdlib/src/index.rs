//! Thread, block and grid indices (CUDA guide, "Built-in Variables"; PTX ISA, "Special
//! Registers"). All are `u32`, but for those that say otherwise; x is the fastest dimension.
//!
//! An index is a function for `#[kernel]` functions and the host ([`plain::index`](crate::plain::index)), where it
//! is a `usize`, and a method of the builder ([`Index`]), where it is a `u32`. One table writes both and the rows.
//!
//! ```
//! use kiln::prelude::*;
//!
//! #[kernel]
//! fn number(blocks: &mut [u32], threads: &mut [u32]) {
//!     let i = block_idx().x * block_dim().x + thread_idx().x; // global_id().x
//!     if i < blocks.len() {
//!         blocks[i] = block_idx().x as u32;
//!         threads[i] = thread_idx().x as u32;
//!     }
//! }
//!
//! # fn main() -> kiln::Result<()> {
//! let jit = Jit::new()?;
//! let (mut blocks, mut threads) = (jit.zeros(5)?, jit.zeros(5)?);
//! number.launch(&jit, (3, 2), &mut blocks, &mut threads)?;
//! assert_eq!(blocks.to_vec()?, [0, 0, 1, 1, 2]);
//! assert_eq!(threads.to_vec()?, [0, 1, 0, 1, 0]);
//! # Ok(())
//! # }
//! ```
//!
//! Threads and blocks have numbers, too, in whatever dimensions they are, and all of that in 64 bits:
//!
//! ```
//! use kiln::prelude::*;
//!
//! #[kernel]
//! fn tell(out: &mut [[u64; 4]]) {
//!     let (id, size) = (global_id_u64(), global_size_u64());
//!     let in_row = id.y * size.x + id.x;
//!     let in_block = block_linear_id() * block_size() as u64 + thread_linear_id() as u64;
//!     out[global_linear_id() as usize] = [in_row, in_block, global_linear_id(), global_linear_size()];
//! }
//!
//! # fn main() -> kiln::Result<()> {
//! let jit = Jit::new()?;
//! let mut out = jit.zeros(8)?;
//! tell.launch(&jit, ((2, 1), (2, 2)), &mut out)?;
//! assert_eq!(out.to_vec()?[2..5], [[4, 2, 2, 8], [5, 3, 3, 8], [2, 4, 4, 8]]);
//! # Ok(())
//! # }
//! ```
//!
//! In the builder they are methods of `k`, by the trait [`Index`]; a dimension is a method, too:
//!
//! ```
//! use kiln::prelude::*;
//!
//! # fn main() -> kiln::Result<()> {
//! let number = Kernel::build("number", |k| {
//!     let out = k.slice_mut("out", k.ty::<u32>());
//!     let row = k.block_idx().y() * k.block_dim().y() + k.thread_idx().y();
//!     let columns = k.global_size().x(); // k.grid_dim().x() * k.block_dim().x()
//!     let i = row * columns + k.global_id().x();
//!     let layer = k.thread_idx().z() + k.grid_dim().z();
//!     k.if_(i.lt(out.len()), || out.at(i).set(i * layer));
//! })?;
//! let jit = Jit::new()?;
//! let mut out = jit.zeros::<u32>(6)?;
//! jit.launch(&number, (1, 2), (3, 1), args!(&mut out))?;
//! assert_eq!(out.to_vec()?, [0, 1, 2, 3, 4, 5]);
//! # Ok(())
//! # }
//! ```

use kiln_jit_core::build::{KernelBuilder, Val};
use kiln_jit_core::ir::{
    Axis, Cell, Family, IntrinsicDef, Known, Meaning, Scalar, ThreadPosition, Type, TypePattern,
    Uniformity,
};

/// A row for one dimension of an index.
const fn row(
    name: &'static str,
    meaning: fn(&ThreadPosition) -> u64,
    known: Known,
    uniformity: Uniformity,
    below: u64,
    cells: &'static [Cell],
) -> IntrinsicDef {
    IntrinsicDef::new(
        name,
        &[],
        TypePattern::Exact(Scalar::U32),
        Meaning::Position(meaning),
    )
    .known_as(known)
    .with_uniformity(uniformity)
    .with_result_below(below)
    .with_cells(cells)
}

/// The rows of an index, x, y and z.
macro_rules! dimensions {
    ($name:ident, $register:literal, $known:ident, $uniformity:ident, $below:expr, $meaning:expr) => {
        [
            dimensions!(@one $name, $register, $known, $uniformity, $below, $meaning, 0, X "x"),
            dimensions!(@one $name, $register, $known, $uniformity, $below, $meaning, 1, Y "y"),
            dimensions!(@one $name, $register, $known, $uniformity, $below, $meaning, 2, Z "z"),
        ]
    };
    (
        @one $name:ident, $register:literal, $known:ident, $uniformity:ident, $below:expr, $meaning:expr,
        $at:literal, $axis:ident $dimension:literal
    ) => {
        row(
            concat!(stringify!($name), ".", $dimension),
            |position| {
                let index: fn(&ThreadPosition) -> [u32; 3] = $meaning;
                index(position)[$at].into()
            },
            Known::$known(Axis::$axis),
            Uniformity::$uniformity,
            $below[$at],
            &[Cell::named(
                Family::PTX,
                concat!("llvm.nvvm.read.ptx.sreg.", $register, ".", $dimension),
            )],
        )
    };
}

/// The table of indices. `registers` have a row for each dimension: what they are on the host, where there is
/// one thread, the special register, the operation, how they differ, what they are below, and where they are
/// in a thread's position. `computed` are made of those, in the builder, for an axis; `numbers` have no dimensions.
macro_rules! indices {
    (
        registers {$(
            $(#[$doc:meta])*
            fn $name:ident = $host:ident,
                $register:literal $known:ident $uniformity:ident below $below:expr, $meaning:expr;
        )*}
        computed {$(
            $(#[$computed_doc:meta])*
            fn $computed:ident -> $index:ident = $computed_host:ident, |$k:ident, $axis:ident| $value:expr;
        )*}
        numbers {$(
            $(#[$number_doc:meta])*
            fn $number:ident -> $plain:ty = $number_host:literal, |$b:ident| $number_value:expr;
        )*}
    ) => {
        /// The rows of this chapter: of each register one in x, y, z.
        pub(crate) fn rows() -> impl Iterator<Item = &'static IntrinsicDef> {
            [$(rows::$name.as_slice()),*].into_iter().flatten()
        }

        #[allow(non_upper_case_globals, reason = "rows have their index's name")]
        mod rows {
            use super::*;
            $(pub(super) static $name: [IntrinsicDef; 3] =
                dimensions!($name, $register, $known, $uniformity, $below, $meaning);)*
        }

        #[allow(non_camel_case_types, reason = "it has the name of the index")]
        #[derive(Copy, Clone)]
        enum Of {
            $($name,)*
            $($computed,)*
        }

        impl<'k> Index3<'k> {
            /// One dimension.
            #[track_caller]
            fn along(self, axis: usize) -> Val<'k> {
                match self.of {
                    $(Of::$name => self.builder.intrinsic(&rows::$name[axis], &[]),)*
                    $(Of::$computed => {
                        let ($k, $axis) = (self.builder, axis);
                        $value
                    })*
                }
            }
        }

        /// Indices, as methods of the builder.
        pub trait Index {
            $($(#[$doc])* fn $name(&self) -> Index3<'_>;)*
            $($(#[$computed_doc])* fn $computed(&self) -> Index3<'_>;)*
            $($(#[$number_doc])* #[track_caller] fn $number(&self) -> Val<'_>;)*
            /// Threads of the grid in x, `u32`: the step of a grid-stride loop.
            #[track_caller]
            fn global_size_x(&self) -> Val<'_> {
                self.global_size().x()
            }
        }

        impl Index for KernelBuilder {
            $(fn $name(&self) -> Index3<'_> {
                Index3 { builder: self, of: Of::$name }
            })*
            $(fn $computed(&self) -> Index3<'_> {
                Index3 { builder: self, of: Of::$computed }
            })*
            $(#[track_caller]
            fn $number(&self) -> Val<'_> {
                let $b = self;
                $number_value
            })*
        }

        /// The functions of [`plain::index`](crate::plain::index).
        pub(crate) mod functions {
            use super::*;
            use crate::plain::functions;
            use crate::plain::index::{Index3, WideIndex3};
            functions! {
                $(
                    $(#[$doc])*
                    fn $name() -> Index3 { Index3::$host } => |front, _, _| front.lazy(|k, name| {
                        Some(k.$name().along(axis(name)?))
                    });
                )*
                $(
                    $(#[$computed_doc])*
                    fn $computed() -> $index { $index::$computed_host } => |front, _, _| {
                        front.lazy(|k, name| Some(k.$computed().along(axis(name)?)))
                    };
                )*
                $(
                    $(#[$number_doc])*
                    fn $number() -> $plain { $number_host } => |front, _, _| {
                        front.value(front.builder().$number())
                    };
                )*
            }
        }
    };
}
// Limits: CUDA guide, "Compute Capabilities", technical specifications.
indices! {
    registers {
        /// The index of the thread in its block (CUDA `threadIdx`).
        fn thread_idx = ORIGIN, "tid" ThreadIdx Lane below [1024, 1024, 64], |at| at.thread;
        /// The index of the block in the grid (CUDA `blockIdx`).
        fn block_idx = ORIGIN,
            "ctaid" BlockIdx Block below [(1 << 31) - 1, 65_535, 65_535], |at| at.block;
        /// The threads of a block (CUDA `blockDim`).
        fn block_dim = ONE, "ntid" BlockDim Block below [1025, 1025, 65], |at| at.block_dim;
        /// The blocks of the grid (CUDA `gridDim`).
        fn grid_dim = ONE, "nctaid" GridDim Block below [1 << 31, 65_536, 65_536], |at| at.grid_dim;
    }
    computed {
        /// The index of the thread in the grid: `block_idx() * block_dim() + thread_idx()`. It wraps around
        /// beyond 2^32 threads; `global_id_u64` does not.
        fn global_id -> Index3 = ORIGIN, |k, axis| {
            k.block_idx().along(axis) * k.block_dim().along(axis) + k.thread_idx().along(axis)
        };
        /// The threads of the grid: `grid_dim() * block_dim()`. Its x is the step of a grid-stride loop.
        fn global_size -> Index3 = ONE, |k, axis| k.grid_dim().along(axis) * k.block_dim().along(axis);
        /// The index of the thread in the grid in 64 bits, a `u64`: for grids of 2^32 threads and more.
        fn global_id_u64 -> WideIndex3 = ORIGIN, |k, axis| {
            let block = k.block_idx().along(axis).cast(Type::U64);
            block * k.block_dim().along(axis).cast(Type::U64) + k.thread_idx().along(axis).cast(Type::U64)
        };
        /// The threads of the grid in 64 bits, a `u64`.
        fn global_size_u64 -> WideIndex3 = ONE, |k, axis| {
            k.grid_dim().along(axis).cast(Type::U64) * k.block_dim().along(axis).cast(Type::U64)
        };
    }
    numbers {
        /// The number of the thread in its block, x fastest, then y (CUDA guide, "Thread Hierarchy"; cooperative
        /// groups' `thread_rank`): warps are runs of 32 of them.
        fn thread_linear_id -> usize = 0, |k| {
            let (at, of) = (k.thread_idx(), k.block_dim());
            (at.z() * of.y() + at.y()) * of.x() + at.x()
        };
        /// The threads of a block, in all dimensions.
        fn block_size -> usize = 1, |k| k.block_dim().x() * k.block_dim().y() * k.block_dim().z();
        /// The number of the block in the grid, x fastest, then y, in 64 bits (cooperative groups' `block_rank`).
        fn block_linear_id -> u64 = 0, |k| {
            let [x, y, z] = [0, 1, 2].map(|axis| k.block_idx().along(axis).cast(Type::U64));
            let [width, height] = [0, 1].map(|axis| k.grid_dim().along(axis).cast(Type::U64));
            (z * height + y) * width + x
        };
        /// The number of the thread among all threads of the grid: those of a block one after another, one block after
        /// another, in 64 bits. It wraps around beyond 2^64 threads.
        fn global_linear_id -> u64 = 0, |k| {
            let in_block = k.thread_linear_id().cast(Type::U64);
            k.block_linear_id() * k.block_size().cast(Type::U64) + in_block
        };
        /// The threads of the grid, in all dimensions, in 64 bits.
        fn global_linear_size -> u64 = 1, |k| {
            let [x, y, z] = [0, 1, 2].map(|axis| k.global_size_u64().along(axis));
            x * y * z
        };
    }
}

/// An index or extent in three dimensions. A dimension costs instructions when it is asked for.
#[derive(Copy, Clone)]
pub struct Index3<'k> {
    builder: &'k KernelBuilder,
    of: Of,
}

impl<'k> Index3<'k> {
    /// The fastest dimension.
    #[track_caller]
    pub fn x(self) -> Val<'k> {
        self.along(0)
    }

    /// The middle dimension.
    #[track_caller]
    pub fn y(self) -> Val<'k> {
        self.along(1)
    }

    /// The slowest dimension.
    #[track_caller]
    pub fn z(self) -> Val<'k> {
        self.along(2)
    }
}

/// The dimension that a field of an index is.
fn axis(field: &str) -> Option<usize> {
    ["x", "y", "z"].iter().position(|axis| *axis == field)
}
