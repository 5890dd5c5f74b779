//! Kernels of CUDA programs as `#[kernel]` functions, each with its twin in CUDA C++, its input and its check.
//!
//! A folder is a benchmark: `mod.rs` has the kernels as a user writes them, what is launched in which order, and
//! what the host says of the result; `twin.cu` has the same kernels in CUDA C++, written from the same description
//! of the algorithm. A [`Launcher`] decides what a launch is: Kiln's, nvcc's, or a look at the code. So one run and
//! one check serve all.
//!
//! A twin has `int` indices and `__restrict__` pointers, and no pragma that the `#[kernel]` has not. Its parameters
//! are those of the `#[kernel]`, slices as pointers, and after them the lengths that a slice would know.

mod backprop;
mod bfs;
mod clauses;
mod coulomb;
mod data;
mod directed;
mod hotspot;
mod jacobi;
mod launcher;
mod leukocyte;
mod lines;
mod lud;
mod matmul;
mod nn;
mod nw;
mod particlefilter;
mod pathfinder;
mod plus_reduce;
mod reduce;
mod saxpy;
mod spmv;
mod strangers;
mod streamcluster;
mod tpacf;
mod transpose;
mod unchecked;

use std::error::Error;

use kiln::prelude::*;

pub use directed::{CLAUSES, DIRECTED, Directed, STEPS};
pub use launcher::{Launch, Launcher, OnJit};
pub use lines::Lines;
pub use strangers::{STRANGERS, Stranger};
pub use unchecked::without_checks;

/// A program of the suite.
pub struct Benchmark {
    /// Its name, and that of its folder.
    pub name: &'static str,
    /// What limits it.
    pub bound: Bound,
    /// The file with its kernels, Rust.
    pub source: &'static str,
    /// The twins of its kernels, CUDA C++.
    pub twin: &'static str,
    /// Makes its input, on the device of a `Jit`.
    pub make: fn(&Jit, Size) -> kiln::Result<Box<dyn Workload>>,
}

impl Benchmark {
    /// How long the kernels of the program's folder are, in Rust and in CUDA C++.
    pub fn lines(&self) -> Lines {
        Lines::of(self.source, self.twin)
    }
}

/// What limits a program on a GPU.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Bound {
    /// Memory.
    Memory,
    /// Arithmetic, shared memory, or the time from one step to the next.
    Arithmetic,
    /// Accesses whose indices come from memory.
    Gather,
}

/// How large the input is.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Size {
    /// For tests: an interpreter runs it in a moment, and blocks and tiles are not full, but for programs with tiles, of
    /// which there is one for whole tiles and one with a remainder.
    Small,
    /// For a CPU: some milliseconds.
    Medium,
    /// For a GPU: at least a millisecond.
    Full,
}

impl Size {
    /// One of three, by size.
    pub(crate) fn of<T>(self, small: T, medium: T, full: T) -> T {
        match self {
            Size::Small => small,
            Size::Medium => medium,
            Size::Full => full,
        }
    }
}

/// What a check says of a wrong result.
pub type Checked = Result<(), Box<dyn Error>>;

/// A program with its input.
pub trait Workload {
    /// Makes the input what it was, for programs that write over it.
    ///
    /// # Errors
    /// Those of the launcher.
    fn reset(&mut self, _: &mut dyn Launcher) -> kiln::Result<()> {
        Ok(())
    }

    /// Makes the input what it has to be for another run to do as much, if one changes that.
    ///
    /// # Errors
    /// Those of the launcher.
    fn again(&mut self, _: &mut dyn Launcher) -> kiln::Result<()> {
        Ok(())
    }

    /// Launches all that belongs to one run.
    ///
    /// # Errors
    /// Those of the launcher.
    fn run(&mut self, launcher: &mut dyn Launcher) -> kiln::Result<()>;

    /// Compares the result of one run after a reset with what the host computes; at [`Size::Full`] a part of it.
    ///
    /// # Errors
    /// Where they differ.
    fn check(&mut self) -> Checked;
}

/// All programs.
pub const BENCHMARKS: &[Benchmark] = &[
    saxpy::SAXPY,
    saxpy::TRIAD,
    matmul::NAIVE,
    matmul::TILED,
    matmul::REGISTERS,
    matmul::NAIVE_REMAINDER,
    matmul::TILED_REMAINDER,
    matmul::REGISTERS_REMAINDER,
    pathfinder::PATHFINDER,
    nw::NW,
    nw::REMAINDER,
    hotspot::HOTSPOT,
    lud::LUD,
    lud::REMAINDER,
    jacobi::JACOBI,
    transpose::TRANSPOSE,
    coulomb::COULOMB,
    coulomb::REMAINDER,
    coulomb::BY_VALUE,
    backprop::BACKPROP,
    backprop::REMAINDER,
    nn::NN,
    bfs::BFS,
    spmv::MESH_SCALAR,
    spmv::MESH_CACHED,
    spmv::MESH_WARP,
    spmv::POWER_SCALAR,
    spmv::POWER_CACHED,
    spmv::POWER_WARP,
    reduce::SUM_I32,
    reduce::SUM_F32,
    reduce::SUM_F64,
    reduce::SUM_PAIR,
    reduce::ARGMAX,
    plus_reduce::PLUS_REDUCE,
    tpacf::TPACF,
    streamcluster::STREAMCLUSTER,
    particlefilter::PARTICLEFILTER,
    leukocyte::LEUKOCYTE,
];
