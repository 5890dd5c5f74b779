//! Loops with a barrier that are unrolled by four although nobody asks, for NVIDIA's GPUs.
//!
//! Between two barriers a block does nothing but what stands there, and the warps that are through wait. What a turn computes for
//! itself, such as addresses, stands behind its first barrier, as `ptxas` moves nothing from turn to turn: of four turns in one
//! block of code three have it where it waits for nothing. `ptxas` unrolls no loop with a barrier, and LLVM only to
//! a quarter of the size of what it unrolls to the end, which is twice or not at all; nvcc does it by four.

use kiln_ir::{Control, Function, Inst, Processor, Region, Unroll};

use crate::llvm::bindings::UnrollHint;
use crate::llvm::unrolled::{asked, instructions, turns};

/// How many turns become one: what nvcc has.
const TURNS: std::num::NonZeroU32 = std::num::NonZeroU32::new(4).unwrap();
/// The fewest turns of such a loop: one of fewer may be written out to the end by LLVM, if it is short.
const FEWEST: u64 = 32;
/// The fewest and the most instructions of the IR of a turn, with what is written out in it; a third of them are left of most
/// bodies. LLVM unrolls shorter ones by more than four.
const LENGTHS: std::ops::RangeInclusive<u64> = 24..=128;

/// How a loop is unrolled for a machine if it meets often: only by what divides its turns, as LLVM puts what is left over in a
/// loop of its own, and not if there are barriers in it.
pub(super) fn hint_of_meetings(
    processor: Processor,
    function: &Function,
    looping: Inst,
) -> Option<UnrollHint> {
    let data = &function.insts[looping].data;
    let Control::For { bounds, body, .. } = data.control() else {
        return None;
    };
    let is_nvidias = matches!(processor, Processor::Ptx { .. });
    let is_unasked = asked(function, looping) == Unroll::Auto;
    if !is_nvidias || !is_unasked || !meets(function, body) {
        return None;
    }
    let turns = turns(function, bounds)?;
    let is_many = turns >= FEWEST && turns.is_multiple_of(TURNS.get().into());
    let is_short = || LENGTHS.contains(&instructions(function, body));
    (is_many && is_short()).then_some(UnrollHint::Count(TURNS))
}

/// Whether a region has a barrier that is not in a loop inside of it.
fn meets(function: &Function, region: Region) -> bool {
    let mut insts = function.regions[region].insts.iter();
    insts.any(|&inst| function.insts[inst].data.is_barrier())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is asked of the only loop of a kernel, of so many turns, with a number of additions and what else is in a turn.
    fn hint(
        processor: Processor,
        turns: u32,
        unroll: &str,
        (additions, rest): (usize, &str),
    ) -> Option<UnrollHint> {
        let additions: String = (0..additions)
            .map(|n| format!("%{}: u32 = add %4, %4\n", n + 5))
            .collect();
        let text = format!(
            "module m legal\nkernel @k(%0 x: u32) {{\n%1: u32 = const 0\n%2: u32 = const {turns}\n%3: u32 = const 1\n\
             for %4: u32 in %1 .. %2 step %3{unroll} {{\n{additions}{rest}\n}}\n}}\n"
        );
        let module = kiln_ir::parse(&text, &|_| None).unwrap_or_else(|e| panic!("{e}\n{text}"));
        let function = module.functions.values().next().expect("the kernel");
        let mut insts = function.insts.keys();
        let looping =
            insts.find(|&inst| matches!(function.insts[inst].data.control(), Control::For { .. }));
        hint_of_meetings(processor, function, looping.expect("the loop"))
    }

    #[test]
    fn short_loops_of_many_turns_with_a_barrier_are_unrolled() {
        let nvidias = Processor::Ptx { sm: 90 };
        let four = Some(UnrollHint::Count(TURNS));
        let body = (40, "barrier");
        assert_eq!(hint(nvidias, 64, "", body), four);
        assert_eq!(hint(nvidias, 32, "", body), four);
        assert_eq!(hint(nvidias, 64, "", (23, "barrier")), four);
        assert_eq!(hint(nvidias, 64, "", (127, "barrier")), four);
        // Of 62 two would be left over, and 28 may be written out to the end.
        assert_eq!(hint(nvidias, 62, "", body), None);
        assert_eq!(hint(nvidias, 28, "", body), None);
        assert_eq!(hint(nvidias, 64, "", (22, "barrier")), None);
        assert_eq!(hint(nvidias, 64, "", (128, "barrier")), None);
        assert_eq!(hint(nvidias, 64, " unroll(never)", body), None);
        assert_eq!(hint(nvidias, 64, "", (40, "")), None);
        assert_eq!(hint(Processor::Amdgpu, 64, "", body), None);
    }
}
