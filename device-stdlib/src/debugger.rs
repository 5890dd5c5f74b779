//! What a kernel says to a debugger (CUDA guide, "Breakpoint Function"; PTX ISA, `brkpt`).
//!
//! ```
//! use kiln::prelude::*;
//! use kiln::stdlib::debugger::breakpoint;
//!
//! #[kernel]
//! fn double(x: &mut [i32]) {
//!     let i = global_id().x;
//!     if i < x.len() {
//!         if x[i] < 0 {
//!             breakpoint();
//!         }
//!         x[i] *= 2;
//!     }
//! }
//!
//! # fn main() -> kiln::Result<()> {
//! let jit = Jit::new()?;
//! let mut x = jit.upload(&[1, 2])?;
//! double.launch(&jit, (1, 32), &mut x)?;
//! assert_eq!(x.to_vec()?, [2, 4]);
//! # Ok(())
//! # }
//! ```

use kiln_jit_core::ir::{Cell, Effects, Family, Meaning};

use crate::table::operations;

operations! {
    /// What is said to a debugger, as methods of the builder.
    builder Debugger;

    /// Stops the thread in the debugger of a GPU, cuda-gdb for instance (CUDA `__brkpt`; PTX `brkpt`). Without one the
    /// driver ends the launch with an error or goes on, as its version has it. On a CPU and on the host, where
    /// the signal would end a process that no debugger watches, nothing happens: there a debugger stops at a line.
    fn breakpoint() {} = row("debugger.breakpoint", Meaning::Pure(|_, _| 0))
        .with_effects(Effects::Memory)
        .with_cells(&[Cell::asm(Family::PTX, None, "brkpt;", "~{memory}")]);
}
