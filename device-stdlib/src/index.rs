//! Thread, block and grid indices (CUDA guide, "Built-in Variables"; PTX ISA, "Special
//! Registers"). All are `u32`; x is the fastest dimension.
//!
//! `#[kernel]` functions call the functions of [`plain::index`](crate::plain::index), where an index is a
//! `usize`; the methods here are for the builder.
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

use kiln_jit_core::build::{KernelBuilder, Val};
use kiln_jit_core::ir::{
    Axis, Cell, Family, IntrinsicDef, Known, Meaning, Scalar, ThreadPosition, TypePattern,
    Uniformity,
};

macro_rules! index_rows {
    ($($name:literal, $register:literal, $known:ident($axis:ident), $uniformity:ident, below $below:expr,
        |$p:ident| $meaning:expr;)*) => {
        /// The rows of this chapter: `thread_idx`, `block_idx`, `block_dim`, `grid_dim`, each in
        /// x, y, z.
        pub static ROWS: &[IntrinsicDef] = &[$(IntrinsicDef::new(
            $name,
            &[],
            TypePattern::Exact(Scalar::U32),
            Meaning::Position(|$p: &ThreadPosition| u64::from($meaning)),
        )
        .known_as(Known::$known(Axis::$axis))
        .with_uniformity(Uniformity::$uniformity)
        .with_result_below($below)
        .with_cells(&[Cell::named(
            Family::PTX,
            concat!("llvm.nvvm.read.ptx.sreg.", $register),
        )])),*];
    };
}
// Limits: CUDA guide, "Compute Capabilities", technical specifications.
index_rows! {
    "thread_idx.x", "tid.x", ThreadIdx(X), Lane, below 1024, |p| p.thread[0];
    "thread_idx.y", "tid.y", ThreadIdx(Y), Lane, below 1024, |p| p.thread[1];
    "thread_idx.z", "tid.z", ThreadIdx(Z), Lane, below 64, |p| p.thread[2];
    "block_idx.x", "ctaid.x", BlockIdx(X), Block, below (1 << 31) - 1, |p| p.block[0];
    "block_idx.y", "ctaid.y", BlockIdx(Y), Block, below 65_535, |p| p.block[1];
    "block_idx.z", "ctaid.z", BlockIdx(Z), Block, below 65_535, |p| p.block[2];
    "block_dim.x", "ntid.x", BlockDim(X), Block, below 1025, |p| p.block_dim[0];
    "block_dim.y", "ntid.y", BlockDim(Y), Block, below 1025, |p| p.block_dim[1];
    "block_dim.z", "ntid.z", BlockDim(Z), Block, below 65, |p| p.block_dim[2];
    "grid_dim.x", "nctaid.x", GridDim(X), Block, below 1 << 31, |p| p.grid_dim[0];
    "grid_dim.y", "nctaid.y", GridDim(Y), Block, below 65_536, |p| p.grid_dim[1];
    "grid_dim.z", "nctaid.z", GridDim(Z), Block, below 65_536, |p| p.grid_dim[2];
}

// The first of three rows each.
const THREAD_IDX: usize = 0;
const BLOCK_IDX: usize = 3;
const BLOCK_DIM: usize = 6;
const GRID_DIM: usize = 9;

/// An index or extent in three dimensions. A dimension costs an instruction when it is asked for.
#[derive(Copy, Clone)]
pub struct Index3<'k> {
    builder: &'k KernelBuilder,
    first: usize,
}

impl<'k> Index3<'k> {
    #[track_caller]
    fn row(self, dimension: usize) -> Val<'k> {
        self.builder.intrinsic(&ROWS[self.first + dimension], &[])
    }

    /// The fastest dimension, `u32`.
    #[track_caller]
    pub fn x(self) -> Val<'k> {
        self.row(0)
    }

    /// The middle dimension, `u32`.
    #[track_caller]
    pub fn y(self) -> Val<'k> {
        self.row(1)
    }

    /// The slowest dimension, `u32`.
    #[track_caller]
    pub fn z(self) -> Val<'k> {
        self.row(2)
    }
}

/// The index of a thread in the grid. A dimension is computed when it is asked for.
#[derive(Copy, Clone)]
pub struct GlobalId<'k>(&'k KernelBuilder);

impl<'k> GlobalId<'k> {
    /// `block_idx.x * block_dim.x + thread_idx.x`, `u32`; wraps beyond 2^32 threads.
    #[track_caller]
    pub fn x(self) -> Val<'k> {
        self.0.block_idx().x() * self.0.block_dim().x() + self.0.thread_idx().x()
    }

    /// `block_idx.y * block_dim.y + thread_idx.y`, `u32`.
    #[track_caller]
    pub fn y(self) -> Val<'k> {
        self.0.block_idx().y() * self.0.block_dim().y() + self.0.thread_idx().y()
    }

    /// `block_idx.z * block_dim.z + thread_idx.z`, `u32`.
    #[track_caller]
    pub fn z(self) -> Val<'k> {
        self.0.block_idx().z() * self.0.block_dim().z() + self.0.thread_idx().z()
    }
}

/// Indices, as methods of the builder.
pub trait Index {
    /// Index of the thread in its block (CUDA `threadIdx`).
    fn thread_idx(&self) -> Index3<'_>;
    /// Index of the block in the grid (CUDA `blockIdx`).
    fn block_idx(&self) -> Index3<'_>;
    /// Threads of a block (CUDA `blockDim`).
    fn block_dim(&self) -> Index3<'_>;
    /// Blocks of the grid (CUDA `gridDim`).
    fn grid_dim(&self) -> Index3<'_>;
    /// Index of the thread in the grid.
    fn global_id(&self) -> GlobalId<'_>;
    /// Threads of the grid in x, `u32`: the step of a grid-stride loop.
    #[track_caller]
    fn global_size_x(&self) -> Val<'_> {
        self.grid_dim().x() * self.block_dim().x()
    }
}

impl Index for KernelBuilder {
    fn thread_idx(&self) -> Index3<'_> {
        Index3 {
            builder: self,
            first: THREAD_IDX,
        }
    }
    fn block_idx(&self) -> Index3<'_> {
        Index3 {
            builder: self,
            first: BLOCK_IDX,
        }
    }
    fn block_dim(&self) -> Index3<'_> {
        Index3 {
            builder: self,
            first: BLOCK_DIM,
        }
    }
    fn grid_dim(&self) -> Index3<'_> {
        Index3 {
            builder: self,
            first: GRID_DIM,
        }
    }
    fn global_id(&self) -> GlobalId<'_> {
        GlobalId(self)
    }
}
