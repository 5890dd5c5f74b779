//! Operations whose result nobody uses, which `ptxas` (13.0 to 13.5) drops by halves.
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

/// Drops what only gives a result that no other line names.
pub(super) fn drop_unused(ptx: &str) -> Cow<'_, str> {
    if !is_operation(ptx) && !ptx.contains(ACQUIRES) {
        return Cow::Borrowed(ptx);
    }
    let kept: Vec<String> = functions(ptx).map(without_unused).collect();
    Cow::Owned(kept.concat())
}

fn without_unused(function: &str) -> String {
    let mut lines: Vec<&str> = function.split_inclusive('\n').collect();
    loop {
        let uses = Uses::of(&lines);
        let before = lines.len();
        // What was given only to a line that goes is not used either.
        lines.retain(|line| !(is_operation(line) && uses.are_unused(line)));
        if lines.len() == before {
            let fenced = lines.iter().map(|line| match acquired_scope(line) {
                Some(scope) if uses.are_unused(line) => {
                    Cow::Owned(format!("\tfence.acq_rel.{scope};\n"))
                }
                _ => Cow::Borrowed(*line),
            });
            return fenced.collect();
        }
    }
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
