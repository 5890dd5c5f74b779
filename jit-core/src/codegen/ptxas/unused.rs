//! Operations of a warp whose result nobody uses, dropped.
//!
//! A vote, match or reduction with a mask that differs from lane to lane parts the lanes: SASS has
//! `WARPSYNC.EXCLUSIVE` before it, and `BSYNC`, where they meet again, after it. `ptxas` (13.0 to 13.5)
//! drops an operation whose result is not used and with it the `BSYNC`, but not the `WARPSYNC`. It
//! goes on as if the lanes were together, with registers that all lanes of a warp share, which
//! one part then overwrites for the next.
//!
//! LLVM keeps such an operation, as other lanes may be waiting for it. Its result is all that it gives
//! (it orders no memory), so no lane misses it if all lanes leave it out. This is done in the text:
//! LLVM's code generator still finds that results are not used.

use std::borrow::Cow;
use std::collections::HashMap;

use super::text::{functions, instruction, registers};

/// The operations (PTX ISA, "vote.sync", "match.sync", "redux.sync").
const OPERATIONS: [&str; 4] = [
    "vote.sync",
    "match.any.sync",
    "match.all.sync",
    "redux.sync",
];

/// Drops the lines of inline PTX that only give a result that no other line names.
pub(super) fn drop_unused(ptx: &str) -> Cow<'_, str> {
    if !is_operation(ptx) {
        return Cow::Borrowed(ptx);
    }
    let kept: Vec<Cow<'_, str>> = functions(ptx).map(without_unused).collect();
    Cow::Owned(kept.concat())
}

fn without_unused(function: &str) -> Cow<'_, str> {
    let mut lines: Vec<&str> = function.split_inclusive('\n').collect();
    let before = lines.len();
    loop {
        let uses = Uses::of(&lines);
        let count = lines.len();
        // What was given only to a line that goes is not used either.
        lines.retain(|line| !uses.is_unused(line));
        if lines.len() == count {
            break;
        }
    }
    match lines.len() == before {
        true => Cow::Borrowed(function),
        false => Cow::Owned(lines.concat()),
    }
}

fn is_operation(text: &str) -> bool {
    OPERATIONS.iter().any(|name| text.contains(name))
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

    /// Whether a line is an operation of a warp, and no other line names what it gives.
    fn is_unused(&self, line: &str) -> bool {
        let mut results = results(line).peekable();
        let alone = |register: &str| self.0.get(register) == Some(&1);
        is_operation(line) && results.peek().is_some() && results.all(alone)
    }
}

/// The first operand of an instruction, which may have a label.
fn first_operand(labelled: &str) -> Option<&str> {
    let (_, text) = labelled.rsplit_once(": ").unwrap_or(("", labelled));
    instruction(text)?.1.next()
}

/// The registers that the instructions of a line of inline PTX write.
fn results(line: &str) -> impl Iterator<Item = &str> {
    let block = line.trim().trim_matches(['{', '}']);
    let written = block.split_inclusive(';').filter_map(first_operand);
    written.filter(|operand| operand.starts_with('%'))
}
