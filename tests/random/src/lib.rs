//! Random kernels: a generator of well-formed, race-free kernels, a differential harness over
//! backends, and a reducer.
//!
//! ```text
//! generate(seed, budget) -> Case { module, launch, arguments, buffers }     generate
//! Runner::run(case)      -> the buffers after the launch                    run
//! compare(case, reference, others) -> Mismatch, bit by bit                  run
//! reduce(case, still_fails) -> a small case; sound() keeps it race-free     reduce, sound
//! hooked(case, hooks) -> the case after hooks, which gives the same hooked
//! Case::to_text, Case::from_text                                            text
//! Campaign::run() -> many cases on all cores, with what was found    campaign
//! Visit::run() -> the same on a device that a case may end, as a GPU    visit, gpu
//! coverage(case) -> which constructs, of which types, how deep, divergent   coverage
//! ```
//!
//! # What a generated kernel keeps to
//!
//! The result of a launch is a function of the case alone, on every backend:
//! - A thread writes global memory only at its own place of each output slice (a permutation of its
//!   linear index), or by atomics of one operation an accumulator whose results are not used, by
//!   compare-and-swap, too.
//! - Shared memory is written in sections: barrier, each thread writes its own slot, barrier. It is
//!   read anywhere outside of sections. Every slot is written before the first thread can end.
//! - Barriers are where all threads of the block that have not ended come together: conditions
//!   around them derive from parameters, constants, block indices, and loads of read-only memory at
//!   such indices. A thread may end before a barrier ([`Budget::early_exits`]).
//! - Lanes of a warp write slots of theirs, synchronize, read each other's, and synchronize again.
//! - A flag is raised once, after the data behind it, and looked at but not waited for. Who sees it
//!   differs; what is kept is that data behind a raised flag was right.
//! - Who arrives last sums up what all have written, and blocks wait for earlier ones
//!   ([`Case::waits`]), where no thread has ended. Nothing that differs from run to run is seen but sums.
//! - Each way has the fences and orderings it needs, of scopes that reach all it concerns ([`Talk`]).
//! - Local memory is written before it is read; indices are in bounds; loops end.
//! - No NaN's bits and no sign of a zero that `min` or `max` chose can be seen: floats are made
//!   canonical before they are stored to outputs and before their bits become integers. Multiply and
//!   add must not be contracted, so a backend has to be run without that.

pub mod campaign;
pub mod case;
pub mod coverage;
pub mod generate;
pub mod gpu;
pub mod hooked;
pub mod memory;
pub mod operations;
pub mod random;
pub mod reduce;
pub mod run;
pub mod sound;
pub mod text;
pub mod visit;

pub use campaign::{Campaign, Failure, Report};
pub use case::{Arg, Case};
pub use coverage::{Coverage, coverage};
pub use generate::{Budget, Talk, generate};
pub use hooked::{hook_sets, hooked, hooked_for, hooks_of};
pub use reduce::reduce;
pub use run::{InterpreterRunner, Mismatch, OnHostRunner, Runner, compare, runners};
pub use sound::sound;
