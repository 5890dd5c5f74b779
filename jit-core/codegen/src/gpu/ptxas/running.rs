//! Addresses that run through a loop.
//!
//! Of what is added to a base, `strides` makes the later addresses of a turn from the first, `base + offset`. Where the
//! first of the next turn is the last of this one and a stride, too, it is made of that, and base and offset are held no more:
//!
//! ```text
//! LOOP:                                   add.s64 %rd5, %rd1, %rd3;
//! add.s64 %rd5, %rd1, %rd3;               LOOP:
//! add.s64 %rd6, %rd5, %rd2;               add.s64 %rd6, %rd5, %rd2;
//! add.s64 %rd1, %rd1, %rd4;               add.s64 %rd5, %rd6, %rd2;      // %rd4 = 2 %rd2
//! ```

use super::code::{Code, Register};
use super::strides::{Chain, Lines, Sum, Values, terms};

/// Whether nothing but a way back to it is in a loop besides a block.
pub(super) fn is_all_of(code: &Code<'_>, around: &[usize], block: usize) -> bool {
    let mut others = around.iter().filter(|&&other| other != block);
    others.all(|&other| {
        let of_other = &code.instructions[code.blocks[other].instructions.clone()];
        code.blocks[other].next == [block] && matches!(of_other, [one] if one.is_branch())
    })
}

/// Has the chains of a loop of one block run through it, base by base, where that can be seen to be the same.
pub(super) fn run_through(
    (function, code): (&str, &Code<'_>),
    values: &Values<'_, '_>,
    (around, block): (&[usize], usize),
    chains: &[Chain],
    lines: &mut Lines,
) {
    let Some(entry) = entry(function, code, (around, block)) else {
        return;
    };
    let mut bases: Vec<Register> = chains.iter().map(|chain| chain.begin.terms[0]).collect();
    bases.sort_unstable();
    bases.dedup();
    for base in bases {
        let of_base = chains.iter().filter(|chain| chain.begin.terms[0] == base);
        let chains: Vec<&Chain> = of_base.collect();
        let running = growth(code, block, base).and_then(|(at, by)| {
            let is_for =
                is_for(code, block, at, base, &chains) && !is_needed_behind(code, around, base);
            let nexts = chains
                .iter()
                .map(|chain| next(code, values, block, (at, by), chain));
            let nexts: Option<Vec<Sum>> = if is_for { nexts.collect() } else { None };
            nexts
        });
        let Some(nexts) = running else {
            continue;
        };
        for (chain, next) in chains.into_iter().zip(nexts) {
            let before = lines
                .entry(entry.line)
                .or_insert_with(|| entry.text.to_owned());
            before.insert_str(0, &chain.begin.text(code));
            lines.insert(code.instructions[chain.begin.at].line, String::new());
            let grown = lines.entry(code.instructions[next.at].line).or_default();
            grown.push_str(&next.text(code));
        }
    }
}

/// The line before which a loop of one block is entered.
struct Entry<'a> {
    line: usize,
    text: &'a str,
}

/// Where a loop of one block is entered, if that is from the block above it alone.
fn entry<'a>(
    function: &'a str,
    code: &Code<'_>,
    (around, block): (&[usize], usize),
) -> Option<Entry<'a>> {
    let above = block.checked_sub(1)?;
    let ways = |from: usize| {
        let next = code.blocks[from].next.iter();
        next.filter(|&&to| to == block).count()
    };
    let mut all = 0..code.blocks.len();
    let once = all.all(|from| around.contains(&from) || ways(from) == usize::from(from == above));
    let last = &code.instructions[code.blocks[above].instructions.end - 1];
    if !once || around.contains(&above) || last.is_branch() && !last.conditional {
        return None;
    }
    let lines = function
        .split_inclusive('\n')
        .enumerate()
        .skip(last.line + 1);
    let mut labels = lines.filter(|(_, text)| text.starts_with('$') && text.contains(':'));
    let (line, text) = labels.next()?;
    let first = &code.instructions[code.blocks[block].instructions.start];
    (line < first.line).then_some(Entry { line, text })
}

/// The sum by which a base grows in a turn, and what is added to it, if nothing else writes it there.
fn growth(code: &Code<'_>, block: usize, base: Register) -> Option<(usize, Register)> {
    let range = code.blocks[block].instructions.clone();
    let mut writes = range.filter(|&at| {
        let instruction = &code.instructions[at];
        let hidden = instruction.opcode.is_empty() && instruction.reads.contains(&base);
        hidden || instruction.writes.contains(&base)
    });
    let at = writes.next().filter(|_| writes.next().is_none())?;
    let mut sums = terms(&code.instructions[at]);
    let (_, by) = sums.find(|[of, _]| *of == base).map(|[of, by]| (of, by))?;
    Some((at, by))
}

/// Whether chains are all that is done with a base in a loop before it grows.
fn is_for(code: &Code<'_>, block: usize, growth: usize, base: Register, chains: &[&Chain]) -> bool {
    let mut range = code.blocks[block].instructions.clone();
    let is_known = |at: usize| {
        let mut sums = chains
            .iter()
            .flat_map(|chain| std::iter::once(&chain.begin).chain(&chain.sums));
        let is_of_chain = at < growth && sums.any(|sum| sum.at == at);
        at == growth || is_of_chain || !code.instructions[at].reads.contains(&base)
    };
    range.all(is_known)
}

/// Whether a register may be read behind a loop.
fn is_needed_behind(code: &Code<'_>, around: &[usize], register: Register) -> bool {
    let mut seen = vec![false; code.blocks.len()];
    let ways = around.iter().flat_map(|&block| &code.blocks[block].next);
    let mut left: Vec<usize> = ways.filter(|to| !around.contains(to)).copied().collect();
    while let Some(block) = left.pop() {
        if std::mem::replace(&mut seen[block], true) {
            continue;
        }
        let mut instructions = code.instructions[code.blocks[block].instructions.clone()].iter();
        let first = instructions.find(|one| {
            one.reads.contains(&register) || one.writes.contains(&register) && !one.conditional
        });
        match first {
            Some(first) if first.reads.contains(&register) => return true,
            Some(_) => {}
            None => left.extend(&code.blocks[block].next),
        }
    }
    false
}

/// What the first sum of a chain is made of for the next turn; `None` if it may be something else.
fn next(
    code: &Code<'_>,
    values: &Values<'_, '_>,
    block: usize,
    (growth, by): (usize, Register),
    chain: &Chain,
) -> Option<Sum> {
    let (step, step_form) = chain.step.as_ref()?;
    let Sum {
        at: begin,
        result,
        terms: [_, offset],
    } = chain.begin;
    let further = chain
        .added
        .clone()
        .plus(step_form, 1)
        .plus(&values.sum(offset), -1);
    let range = code.blocks[block].instructions.clone();
    let stays = values.makers[offset].is_some_and(|maker| !range.contains(&maker));
    let is_known = values.is_known(by, growth) && values.is_known(*step, growth);
    let mut all =
        (0..code.instructions.len()).filter(|&at| code.instructions[at].reads.contains(&result));
    // From where it was made up to where it is made for the next turn.
    let is_here = all.all(|at| range.contains(&at) && begin < at && at < growth);
    let same = further == values.sum(by) && chain.sums.iter().all(|sum| sum.at != growth);
    (same && stays && is_known && is_here).then_some(Sum {
        at: growth,
        result,
        terms: [chain.last, *step],
    })
}

#[cfg(test)]
mod tests {
    use super::super::strides::chain;
    use super::Code;

    /// A loop that is entered so, has this in its turns and is followed by that.
    fn chained(before: &str, turn: &str, behind: &str) -> String {
        let back = match turn.contains("bra.uni") {
            true => "",
            false => "\t@%p1 bra \t$L__BB0_1;\n",
        };
        let function = format!(
            "{{\n\tld.param.b64 \t%rd2, [n];\n\tld.param.b64 \t%rd3, [a];\n\tshl.b64 \t%rd9, %rd2, 1;\n\
             \tadd.s64 \t%rd4, %rd3, %rd2;\n\tadd.s64 \t%rd5, %rd9, %rd3;\n\tmul.lo.s64 \t%rd6, %rd2, 3;\n{before}\
             $L__BB0_1:\n{turn}{back}{behind}\tret;\n}}\n"
        );
        chain(&function, &Code::all(&function)).replace('\t', "")
    }

    const BEFORE: &str = "\tmov.b64 \t%rd1, 0;\n";
    const TURN: &str = "\tadd.s64 \t%rd10, %rd1, %rd3;\n\tld.global.b32 \t%r1, [%rd10];\n\tadd.s64 \t%rd11, %rd4, %rd1;\n\
                        \tadd.s64 \t%rd12, %rd1, %rd5;\n\tadd.s64 \t%rd1, %rd1, %rd6;\n";

    /// Whether the first address runs through the loop.
    fn runs(before: &str, turn: &str, behind: &str) -> bool {
        let text = chained(before, turn, behind);
        assert!(text.contains("add.s64 %rd12, %rd11, %rd2;\n"), "{text}");
        let runs = text.contains("add.s64 %rd10, %rd12, %rd2;\n");
        assert_ne!(runs, text.contains("add.s64 %rd1, %rd1, %rd6;\n"), "{text}");
        runs
    }

    #[test]
    fn the_first_address_of_a_turn_is_made_in_the_turn_before() {
        let text = chained(BEFORE, TURN, "");
        let (_, text) = text.split_once("mov.b64 %rd1, 0;\n").expect("it is there");
        assert_eq!(
            text,
            "add.s64 %rd10, %rd1, %rd3;\n$L__BB0_1:\nld.global.b32 %r1, [%rd10];\nadd.s64 %rd11, %rd10, %rd2;\n\
             add.s64 %rd12, %rd11, %rd2;\nadd.s64 %rd10, %rd12, %rd2;\n@%p1 bra $L__BB0_1;\nret;\n}\n"
        );
    }

    #[test]
    fn a_branch_back_may_be_a_block_of_its_own() {
        let turn = format!("{TURN}\t@%p1 bra \t$L__BB0_2;\n\tbra.uni \t$L__BB0_1;\n");
        assert!(runs(BEFORE, &turn, "$L__BB0_2:\n"));
    }

    #[test]
    fn a_base_that_something_else_needs_stays() {
        assert!(runs(BEFORE, TURN, "\tst.global.b64 \t[%rd3], %rd12;\n"));
        let reads = "\tst.global.b64 \t[%rd3], %rd1;\n";
        assert!(!runs(BEFORE, TURN, reads));
        assert!(!runs(BEFORE, &format!("{TURN}{reads}"), ""));
        assert!(!runs(BEFORE, TURN, "\tst.global.b64 \t[%rd3], %rd10;\n"));
    }

    #[test]
    fn a_loop_that_is_entered_elsewhere_stays() {
        let elsewhere = format!("{BEFORE}\t@%p2 bra \t$L__BB0_1;\n");
        assert!(!runs(&elsewhere, TURN, ""));
        let jumps = format!("{BEFORE}\tbra.uni \t$L__BB0_1;\n");
        assert!(!runs(&jumps, TURN, ""));
    }

    #[test]
    fn a_base_that_grows_by_something_else_stays() {
        let text = chained(
            "\tmov.b64 \t%rd1, 0;\n\tld.param.b64 \t%rd7, [m];\n",
            &TURN.replace("%rd6", "%rd7"),
            "",
        );
        assert!(text.contains("add.s64 %rd1, %rd1, %rd7;\n"), "{text}");
        let offset = format!("{TURN}\tld.param.b64 \t%rd3, [a];\n");
        assert!(chained(BEFORE, &offset, "").contains("add.s64 %rd1, %rd1, %rd6;\n"));
    }
}
