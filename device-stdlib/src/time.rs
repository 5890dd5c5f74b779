//! Clocks, and waits (CUDA guide, "Time Function", "Nanosleep Function"; PTX ISA, "Special Registers", `nanosleep`).
//!
//! ```
//! use kiln::prelude::*;
//! use kiln::stdlib::time::{clock, global_timer, nanosleep};
//!
//! #[kernel]
//! fn measure(x: &mut [f32], cycles: &mut [u64], nanoseconds: &mut [u64]) {
//!     let i = global_id().x;
//!     if i < x.len() {
//!         let (start, start_ns) = (clock(), global_timer());
//!         for _ in 0..100 {
//!             x[i] = (x[i] * 1.5).sin();
//!         }
//!         nanosleep(100);
//!         cycles[i] = clock() - start;
//!         nanoseconds[i] = global_timer() - start_ns;
//!     }
//! }
//!
//! # fn main() -> kiln::Result<()> {
//! let jit = Jit::new()?;
//! let (mut x, mut cycles, mut nanoseconds) = (jit.zeros(4)?, jit.zeros(4)?, jit.zeros(4)?);
//! measure.launch(&jit, (1, 32), &mut x, &mut cycles, &mut nanoseconds)?;
//! assert!(cycles.to_vec()?.iter().all(|&cycles| cycles > 0));
//! # Ok(())
//! # }
//! ```
//!
//! A look at a clock stays where it is beside other looks, and beside reads and writes of memory. A computation may
//! move across it, as in CUDA: what is to be measured begins with a value that is read, and ends with one that is
//! written.
//!
//! How long a whole launch takes tell [events](kiln_jit_core::runtime::Event), from the host.

use std::sync::LazyLock;
use std::time::{Duration, Instant};

use kiln_jit_core::ir::{Cell, Effects, Family, Meaning, Uniformity};

use crate::table::operations;

/// When this process first looked at the clock.
static START: LazyLock<Instant> = LazyLock::new(Instant::now);

/// Nanoseconds from the first look on, of which a `u64` has 584 years.
fn nanoseconds() -> u64 {
    START.elapsed().as_nanos() as u64
}

operations! {
    /// Clocks and waits, as methods of the builder.
    builder Time;

    /// A count that goes up while the thread runs: on a GPU the cycles of its multiprocessor (CUDA `clock64()`; PTX
    /// `%clock64`), on a CPU nanoseconds. It never goes down. Only differences mean something, and those of one thread:
    /// another multiprocessor counts from another time.
    fn clock() -> u64 {
        nanoseconds()
    } = row("time.clock")
        .with_effects(Effects::Memory)
        .with_uniformity(Uniformity::Lane)
        .with_cells(&[Cell::asm(Family::PTX, None, "mov.u64 $0, %clock64;", "=l,~{memory}")]);

    /// Nanoseconds of a clock that all threads of the device share (PTX `%globaltimer`), of which GPUs make steps of up
    /// to 1 or 2 microseconds. It never goes down. From when it counts is the device's own affair.
    fn global_timer() -> u64 {
        nanoseconds()
    } = row("time.global_timer")
        .with_effects(Effects::Memory)
        .with_uniformity(Uniformity::Lane)
        .with_cells(&[Cell::asm(Family::PTX, None, "mov.u64 $0, %globaltimer;", "=l,~{memory}")]);

    /// Has the thread wait for about as many nanoseconds, from none up to twice as many, and for at most a millisecond
    /// (CUDA `__nanosleep`; PTX `nanosleep`): in a loop that asks again and again for what another thread writes, so
    /// that it asks less often. On a CPU, where one thread of the system runs a block, that gives way to others once,
    /// and waits no longer.
    fn nanosleep(duration: u32) {
        std::thread::sleep(Duration::from_nanos(duration.min(1_000_000).into()));
    } = row("time.nanosleep", Meaning::Pure(|_, _| {
        std::thread::yield_now();
        0
    }))
        .with_effects(Effects::Memory)
        .with_cells(&[Cell::asm(Family::PTX, None, "nanosleep.u32 $0;", "r,~{memory}")]);
}
