//! Directives: a sequential loop nest and what is said of its loops become a GPU kernel.
//!
//! A *region* is a device function that is right when one thread executes it. Marks in it ([`marks`]) say which loops
//! are distributed over the blocks of a grid and over the threads of a block. A [`Program`] is the region with what
//! its marks say, and a [`Schedule`] that in numbers: it can be changed, printed and read again. Under a schedule the
//! program is rewritten into what each thread executes, which is a kernel like any other ([`Scheduled`]).
//!
//! | file | subject |
//! |---|---|
//! | `marks` | what directives leave in the IR |
//! | `program` | a region, and what its marks say |
//! | `schedule` | grids and partitions as a value with a text |
//! | `grid` | virtual grids on the dimensions of the hardware |
//! | `along` | dimensions of blocks, warps and lanes that loops go over |
//! | `apply`, `shares`, `once`, `meeting` | each thread's share of loops, of which it may have one turn; bodies in which threads meet |
//! | `transform`, `interchange`, `peel`, `jam`, `edge` | tiles of loops; inner loops that become outer ones; iterations that are split off; iterations side by side; what is executed beyond their ends |
//! | `uniform`, `levels` | what all threads of a block have the same; what has to hold for a schedule |
//! | `dependence` | whether threads keep the order of the sequential program; `accesses`, `affine`, `owner`, `integer` are what it asks |
//! | `banks` | banks of shared memory, and longer rows for them |
//! | `guidance` | what a schedule costs, as numbers |
//! | `bounds` | indices that are below the slice's length |
//! | `section`, `stage`, `fill` | what a block reads of a slice in a turn of a loop; that it is read from shared memory |
//! | `arrays` | variables of the region that are in shared memory, one for all threads of a block |
//! | `drain` | what a turn writes in shared memory, copied to slices behind it |
//! | `reuse` | one place in shared memory for what is not in use at the same time |
//! | `compute` | that blocks compute what a turn reads of a slice, instead of loops before it |
//! | `private` | variables that iterations hand on |
//! | `privatize` | slices of which each iteration has elements of its own |
//! | `reduce` | elements that iterations combine with values in any order |
//! | `combine` | that threads and the lanes of a warp combine such values before an element is changed |
//! | `scan` | variables that iterations combine with values and hand on, in their order |
//! | `kernel` | programs as kernels |
//! | `search` | looking for a schedule |
//! | `offload` | what the code of `#[offload]` refers to: slices that are on the device, regions that were verified |
//! | `constant` | slices in constant memory: what `constant!(..)` says of a launch |
//! | `data` | what `global!(..)` says: sections that are copied where it stands |
//! | `touched` | what a region reads and writes of slices that were not copied to the device |
//! | `error` | what is refused |
//!
//! The directives are those of hiCUDA (Han and Abdelrahman, "hiCUDA: High-Level GPGPU Programming", IEEE TPDS 22(1),
//! 2011): `loop_partition`, `singular`, `barrier`, `shared`.

mod accesses;
mod affine;
mod along;
mod apply;
mod arrays;
mod banks;
mod bounds;
mod combine;
mod compute;
mod constant;
mod data;
mod dependence;
mod drain;
mod edge;
mod emit;
mod error;
mod fill;
mod grid;
mod guidance;
mod integer;
mod interchange;
mod jam;
mod kernel;
mod lengths;
mod levels;
pub mod marks;
mod meeting;
mod offload;
mod once;
mod owner;
mod peel;
mod private;
mod privatize;
mod program;
mod reduce;
mod reuse;
mod scan;
mod schedule;
mod search;
mod section;
mod shares;
mod stage;
mod touched;
mod transform;
mod uniform;
mod wide;

pub use affine::Known;
pub use error::{DirectiveError, ScheduleError};
pub use guidance::{AccessCost, Guidance, Occupancy, SectionCost};
pub use kernel::Scheduled;
pub use offload::Report;
pub use program::Program;
pub use schedule::{LoopSchedule, OverBlocks, OverThreads, Partition, Schedule, Slices};
pub use search::{Budget, Found, Trial};
pub use section::Section;

/// What the code that `#[offload]` writes refers to.
#[doc(hidden)]
pub mod macros {
    pub use crate::constant::Chosen;
    pub use crate::data::{Section, bounds, check_shape, clear, copy_section};
    pub use crate::offload::*;
}
