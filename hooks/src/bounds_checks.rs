//! Bounds checks that are made once: before a loop, and not in each turn; at the start of what runs straight on.
//!
//! What a counted loop reads and writes by an index that grows evenly stays in bounds if its first and its last
//! element do. This hook asks for that before the loop and has two loops behind the question: one without those
//! checks, and the loop as it was, for when the answer is no. So the same thread faults at the same element as
//! before, the first one first.
//!
//! ```text
//! for i in 0..n {                       if n <= x.len() && n <= y.len() {
//!     sum += x[i] * y[i];                   for i in 0..n { sum += x[i] * y[i]; }    // unchecked
//! }                                     } else {
//!                                           for i in 0..n { sum += x[i] * y[i]; }
//!                                       }
//! ```
//!
//! | what | where |
//! |---|---|
//! | functions that are called: their bodies in place of calls, before all else | `calls.rs`, `references.rs` |
//! | what the kernel says twice: computed once, so that a condition on it is one on the index | `once.rs` |
//! | what variables are in loops, where it says that an element of an array of known length is there: no question is needed | `ranges.rs` |
//! | loops with a counter: `for` and `while i < n { ..; i += step }`, also `while i + 4 <= n` | `counter.rs` |
//! | variables that a loop halves, doubles, counts down, or moves on beside its counter | `carried.rs` |
//! | a loop as it is looked at from before it, or from further ahead | `turns.rs` |
//! | an index as a sum of counters and of what stays the same, which may be multiplied with each other | `sum.rs` |
//! | what differs from thread to thread, in loops in which they meet: its ends are the same for all | `lanes.rs` |
//! | what conditions say of values, also those that were put together before, and those that others returned by | `conditions.rs` |
//! | who comes to an access under conditions: what is asked though not each turn makes it | `comes.rs` |
//! | one of several values, which `if`, `select`, `min` and `max` give: the ends of all of them | `chosen.rs` |
//! | the question: both ends of each sum, in 64 bits, so that arithmetic that wraps around is no answer | `proof.rs` |
//! | between which numbers a computed one is, so that what cannot wrap around is not asked | `spans.rs` |
//! | the two loops | `versions.rs` |
//! | what runs straight on: all its checks at once, before it | `runs.rs` |
//! | a kernel from its start on: one question for all threads of a block | `whole.rs` |
//! | indices that are clamped, on CPUs: asked for as if they were checked | `clamped.rs` |
//! | for GPUs: indices that come out of memory, in loops that only compute: looked at on the way, answered behind | `gathers.rs` |
//! | for NVIDIA's: what is read beside such an index, together with it | `held.rs` |
//!
//! Where threads meet in a loop, at a barrier or as a warp, half of a block in one loop and half in the other would
//! not meet: the question is one whose answer is the same in the whole block. So it is on CPUs wherever it can be, as lanes that
//! part there take both ways; and there a kernel is asked about as a whole, if that stands for all of its checks. Runs are for
//! GPUs: on a CPU they made stencils 1.7 times as long as the checks they stand for. The interpreter, which says what a
//! kernel means, runs it as it is written.

mod before;
mod calls;
mod carried;
mod chosen;
mod clamped;
mod code;
mod comes;
mod conditions;
mod counter;
mod gathers;
mod held;
mod lanes;
mod once;
mod proof;
mod ranges;
mod references;
mod runs;
mod spans;
mod sum;
mod turns;
mod versions;
mod whole;

use kiln_compiler::hook::Hook;
use kiln_compiler::ir::Module;
use kiln_compiler::target::Target;

/// Moves bounds checks out of loops. See the [module](self) documentation.
///
/// ```
/// use kiln::prelude::*;
///
/// use kiln::core::hook::HookSet;
/// use kiln::core::target::{PtxTarget, Target};
///
/// #[kernel]
/// fn sums(x: &[f32], columns: u32, y: &mut [f32]) {
///     let row = global_id().x;
///     if row < y.len() {
///         let mut sum = 0.0;
///         for column in 0..columns as usize {
///             sum += x[row * columns as usize + column];
///         }
///         y[row] = sum;
///     }
/// }
///
/// # fn main() -> kiln::Result<()> {
/// let loops = |hooks: HookSet| -> kiln::Result<usize> {
///     let target = Target::Ptx(PtxTarget::for_sm(90));
///     let jit = Jit::builder().device(Device::cpu()).target(target).hooks(hooks).build()?;
///     let (x, mut y) = (jit.zeros::<f32>(6)?, jit.zeros::<f32>(2)?);
///     Ok(jit.inspect(&sums, args!(&x, 3u32, &mut y))?.ir().matches("for %").count())
/// };
/// assert_eq!(loops(HookSet::new())?, 1);
/// assert_eq!(loops(HookSet::from(kiln::hooks::bounds_checks()))?, 2);
/// # Ok(())
/// # }
/// ```
pub fn bounds_checks() -> Hook {
    Hook::new("bounds-checks")
        .may_remove_checks()
        .puts_in(lanes::rows().chain(held::rows()))
        .may_be_kept()
        .rewrite_ir(|cx, module| {
            if !matches!(cx.target, Target::Interpreter) {
                move_checks(module, cx.target);
            }
            Ok(())
        })
}

/// Moves the checks of all functions out of their loops, and to the start of runs or of kernels, where they can be.
fn move_checks(module: &mut Module, target: &Target) {
    let on_cpu = matches!(target, Target::Cpu(_));
    calls::make(module);
    for (_, function) in module.functions.iter_mut() {
        once::make(function, &module.intrinsics);
    }
    ranges::make(module);
    let meeting = versions::meeting(module);
    for (_, function) in module.functions.iter_mut() {
        carried::settle(function, &module.types, on_cpu);
    }
    for id in module.functions.keys() {
        let slow = versions::make(module, (id, &meeting), target);
        if !on_cpu {
            runs::make(module, id, &slow);
        }
    }
}
