//! Every cell of the library's rows, launched on a device and compared with the interpreter bit by bit.
//!
//! With what a row is launched, and what of it is compared, follows from the row itself, for each type that its
//! parameters leave open: a row that the table gets is launched from then on. One that cannot be, as devices differ in
//! what it gives or as it takes more than a launch like the others, is in [`APART`], with the cases that launch it.
//! Approximations are of instructions that may be one, and no launch here has any: how near they are is checked by
//! [`APPROXIMATIONS`].
//!
//! All bits of all results are compared, and those of the memory that a row writes; a zero has its sign. A NaN is any NaN,
//! as no device says what is in it (PTX ISA, "Floating Point Instructions": "unspecified NaN"), but of what moves
//! numbers and computes none, which are shuffles and accesses with cache hints: those keep its bits.

mod call;
mod input;
mod launch;

use kiln::core::ir::IntrinsicDef;
use kiln::core::runtime::CpuOptions;
use kiln::prelude::*;

use super::Outcome;
use call::{calls, opens};
use launch::Launch;

/// How many types of a row one kernel has: to compile many takes less than to compile many kernels, and code generation
/// takes longer the longer a function is.
const AT_ONCE: usize = 4;

/// A row that is not launched as the others are.
#[derive(Copy, Clone, Debug)]
pub struct Apart {
    /// The row's name.
    pub row: &'static str,
    /// Why it is not.
    pub why: &'static str,
    /// The path of a case that launches it, and checks what holds of it on every device.
    pub case: &'static str,
}

const fn apart(row: &'static str, case: &'static str, why: &'static str) -> Apart {
    Apart { row, why, case }
}

/// All rows that are not launched as the others are.
pub const APART: &[Apart] = &[
    apart(
        "warp.active_mask",
        "warp::active_masks_hold_who_is_there",
        "which lanes come together is up to the device",
    ),
    apart(
        "barrier.sync",
        "named_barriers::barriers_of_the_builder",
        "it waits until others have come to it",
    ),
    apart(
        "barrier.arrive",
        "named_barriers::barriers_of_the_builder",
        "others wait until it has been come to",
    ),
    apart(
        "grid.sync",
        "grids::all_blocks_see_what_all_wrote",
        "it takes a launch that is cooperative",
    ),
    apart(
        "target.is_gpu",
        "targets::answers_in_the_builder",
        "devices answer it differently",
    ),
    apart(
        "target.sm",
        "targets::answers_in_the_builder",
        "devices answer it differently",
    ),
    apart(
        "time.clock",
        "rust_time::clocks_in_the_builder",
        "no two looks at a clock have to be the same",
    ),
    apart(
        "time.global_timer",
        "rust_time::clocks_in_the_builder",
        "no two looks at a clock have to be the same",
    ),
    apart(
        "debugger.breakpoint",
        "rust_time::breakpoints_change_nothing",
        "a GPU without a debugger may end the launch at it",
    ),
];

/// The path of the case that launches every row with approximations as one, and checks how near it is.
pub const APPROXIMATIONS: &str = "rust_choices::approximations_are_as_near_as_is_said";

/// A row, to be launched for each type.
#[derive(Copy, Clone, Debug)]
pub struct Row(&'static IntrinsicDef);

impl Row {
    /// The library's rows, but those in [`APART`].
    pub fn all() -> Vec<Row> {
        let is_apart = |def: &IntrinsicDef| APART.iter().any(|apart| apart.row == def.name);
        let rows = kiln::stdlib::registry().filter(|def| !is_apart(def));
        rows.map(Row).collect()
    }

    /// A row of one's own.
    pub fn of(def: &'static IntrinsicDef) -> Row {
        Row(def)
    }

    /// The row's name.
    pub fn name(self) -> &'static str {
        self.0.name
    }

    /// For how many types the row is launched.
    pub fn count(self) -> usize {
        opens(self.0).len()
    }

    /// Launches the row for each of its types on a device and in the interpreter, with the numbers of a seed.
    ///
    /// # Errors
    /// Where a result differs, of which arguments, and the seed; a row that takes or gives what no launch here has.
    pub fn check(self, jit: &Jit, seed: u64) -> Outcome {
        let interpreter = Device::cpu_with(CpuOptions::default().interpret(true));
        let interpreter = Jit::with(interpreter, kiln::hooks::standard(), JitOptions::default());
        let mut wrong = Vec::new();
        for calls in calls(self.0)?.chunks(AT_ONCE) {
            let launch = Launch::new(self.0, calls, seed);
            let [wanted, given] = [&interpreter, jit].map(|jit| launch.run(jit));
            wrong.extend(launch.differences(&wanted?, &given?));
        }
        match wrong.is_empty() {
            true => Ok(()),
            false => Err(format!("{}, seed {seed}:\n{}", self.name(), wrong.join("\n")).into()),
        }
    }
}

/// The seed of the numbers: what `KILN_CELL_SEED` says, else 1.
///
/// # Panics
/// If that is no number.
pub fn seed() -> u64 {
    let Ok(text) = std::env::var("KILN_CELL_SEED") else {
        return 1;
    };
    text.parse()
        .unwrap_or_else(|_| panic!("KILN_CELL_SEED: `{text}` is no number"))
}
