//! Operations whose result nobody uses, which `ptxas` (13.0 to 13.5) drops by halves, or waits for.
//!
//! A vote, match or reduction of a warp with a mask that differs from lane to lane parts the lanes: SASS
//! has `WARPSYNC.EXCLUSIVE` before it, and `BSYNC`, where they meet again, after it. Unused, it goes, and
//! so does the `BSYNC`, but not the `WARPSYNC`. The lanes go on apart, with registers that all lanes
//! of a warp share, which one part then overwrites for the next. LLVM keeps such an operation, as other
//! lanes may be waiting for it. Its result is all that it gives (it orders no memory), so no lane misses it
//! if all lanes leave it out.
//!
//! Of a load that acquires, the load goes and what orders (`CCTL.IVALL`) stays; accesses after it then use
//! a descriptor of memory that nothing has set (`R2UR` of a register without a value), which is an
//! illegal instruction. A fence is left in its place, which orders the same.
//!
//! A read-modify-write becomes a reduction (PTX ISA, "red"), for which no thread waits. `ptxas` makes reductions of `atom`
//! itself, but not in a kernel that calls a function, as every kernel does that may fault: a sum with one `atom` a block
//! took 9 % longer than with `red` (`benches/RESULTS.md`). A reduction is no read, so that a fence behind it acquires
//! nothing (PTX ISA, "Memory Consistency Model"): where there are fences, all stay.
//!
//! This is done in the text: LLVM's code generator still finds that results are not used.

use std::borrow::Cow;
use std::collections::HashMap;

use super::text::{functions, instruction, registers};

/// The operations of a warp (PTX ISA, "vote.sync", "match.sync", "redux.sync").
const OPERATIONS: [&str; 4] = [
    "vote.sync",
    "match.any.sync",
    "match.all.sync",
    "redux.sync",
];

/// Loads that acquire (PTX ISA, "ld"); the scope comes next.
const ACQUIRES: &str = "ld.acquire.";

/// Read-modify-writes (PTX ISA, "atom"); order, scope and space come next, each if it is said, and then the operation.
const MODIFIES: &str = "atom.";

/// The operations that there are without a result, too (PTX ISA, "red").
const REDUCTIONS: [&str; 8] = [
    ".add.", ".min.", ".max.", ".inc.", ".dec.", ".and.", ".or.", ".xor.",
];

/// What makes an acquire of a read before it (PTX ISA, "membar / fence").
const FENCES: [&str; 2] = ["fence.", "membar."];

/// Drops what only gives a result that no other line names, or the result alone.
pub(super) fn drop_unused(ptx: &str) -> Cow<'_, str> {
    let has_fence = FENCES.iter().any(|fence| ptx.contains(fence));
    let reduces = ptx.contains(MODIFIES) && !has_fence;
    if !is_operation(ptx) && !ptx.contains(ACQUIRES) && !reduces {
        return Cow::Borrowed(ptx);
    }
    let kept: Vec<String> = functions(ptx)
        .map(|function| without_unused(function, reduces))
        .collect();
    Cow::Owned(kept.concat())
}

fn without_unused(function: &str, reduces: bool) -> String {
    let mut lines: Vec<&str> = function.split_inclusive('\n').collect();
    loop {
        let uses = Uses::of(&lines);
        let before = lines.len();
        // What was given only to a line that goes is not used either.
        lines.retain(|line| !(is_operation(line) && uses.are_unused(line)));
        if lines.len() == before {
            let without_results = lines.iter().map(|line| match uses.are_unused(line) {
                true => without_result(line, reduces),
                false => Cow::Borrowed(*line),
            });
            return without_results.collect();
        }
    }
}

/// What is left of a line whose result nobody uses.
fn without_result(line: &str, reduces: bool) -> Cow<'_, str> {
    if let Some(scope) = acquired_scope(line) {
        return Cow::Owned(format!("\tfence.acq_rel.{scope};\n"));
    }
    let reduction = reduces.then(|| reduction(line)).flatten();
    reduction.map_or(Cow::Borrowed(line), Cow::Owned)
}

/// A read-modify-write without its result, if there is such an instruction: none acquires.
fn reduction(line: &str) -> Option<String> {
    let (opcode, _) = instruction(line)?;
    let rest = opcode.strip_prefix(MODIFIES)?;
    let (_, operands) = line.split_once(',')?;
    let is_there = REDUCTIONS.iter().any(|operation| rest.contains(operation));
    let acquires = rest.starts_with("acq");
    (is_there && !acquires).then(|| format!("\tred.{rest} \t{}", operands.trim_start()))
}

/// Whether a line, or a text, has an operation of a warp.
fn is_operation(text: &str) -> bool {
    OPERATIONS.iter().any(|name| text.contains(name))
}

/// The scope of a load that acquires.
fn acquired_scope(line: &str) -> Option<&str> {
    let (opcode, _) = instruction(line)?;
    opcode.strip_prefix(ACQUIRES)?.split('.').next()
}

/// In how many lines each register is.
struct Uses<'a>(HashMap<&'a str, usize>);

impl<'a> Uses<'a> {
    fn of(lines: &[&'a str]) -> Uses<'a> {
        let mut uses = HashMap::new();
        for &line in lines {
            let mut named: Vec<&str> = registers(line).collect();
            named.sort_unstable();
            named.dedup();
            for register in named {
                *uses.entry(register).or_default() += 1;
            }
        }
        Uses(uses)
    }

    /// Whether a line gives results, and no other line names one of them.
    fn are_unused(&self, line: &str) -> bool {
        let mut results = results(line).peekable();
        let alone = |register: &str| self.0.get(register) == Some(&1);
        results.peek().is_some() && results.all(alone)
    }
}

/// The first operand of an instruction, which may have a label.
fn first_operand(labelled: &str) -> Option<&str> {
    let (_, text) = labelled.rsplit_once(": ").unwrap_or(("", labelled));
    instruction(text)?.1.next()
}

/// The registers that the instructions of a line write.
fn results(line: &str) -> impl Iterator<Item = &str> {
    let block = line.trim().trim_matches(['{', '}']);
    let written = block.split_inclusive(';').filter_map(first_operand);
    written.filter(|operand| operand.starts_with('%'))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What becomes of a function of one operation, whose result `%r1` is used if another line says so.
    fn dropped(operation: &str, then: &str) -> String {
        let ptx = format!(".func f()\n{{\n\t{operation}\n{then}\tret;\n\n}}\n");
        let dropped = drop_unused(&ptx).into_owned();
        let body = dropped.strip_prefix(".func f()\n{\n");
        let body = body.and_then(|body| body.strip_suffix("\tret;\n\n}\n"));
        body.expect("the function is still there").to_owned()
    }

    #[test]
    fn read_modify_writes_become_reductions() {
        for (atom, red) in [
            (
                "atom.global.add.u32 \t%r1, [%rd1], %r2;",
                "red.global.add.u32 \t[%rd1], %r2;",
            ),
            (
                "atom.relaxed.sys.global.min.s64 %r1, [%rd1+8], %rd2;",
                "red.relaxed.sys.global.min.s64 \t[%rd1+8], %rd2;",
            ),
            (
                "atom.release.gpu.xor.b32 %r1, [%rd1], %r2;",
                "red.release.gpu.xor.b32 \t[%rd1], %r2;",
            ),
            (
                "atom.shared.inc.u32 \t%r1, [%r4], 7;",
                "red.shared.inc.u32 \t[%r4], 7;",
            ),
        ] {
            assert_eq!(dropped(atom, ""), format!("\t{red}\n"));
        }
    }

    #[test]
    fn what_is_used_or_has_no_reduction_stays() {
        let used = "\tst.global.b32 \t[%rd1], %r1;\n";
        let add = "atom.global.add.u32 \t%r1, [%rd1], %r2;";
        assert_eq!(dropped(add, used), format!("\t{add}\n{used}"));
        for stays in [
            "atom.global.exch.b32 \t%r1, [%rd1], 1;",
            "atom.global.cas.b32 \t%r1, [%rd1], %r2, %r3;",
            "atom.acquire.gpu.global.add.u32 %r1, [%rd1], %r2;",
            "atom.acq_rel.gpu.global.add.u32 %r1, [%rd1], %r2;",
        ] {
            assert_eq!(dropped(stays, ""), format!("\t{stays}\n"));
        }
        let fence = "\tfence.acq_rel.gpu;\n";
        assert_eq!(dropped(add, fence), format!("\t{add}\n{fence}"));
    }
}
