//! Addresses whose index was made wide in an earlier block.
//!
//! An index of 32 bits times the size of an element, of 64 bits, is one instruction (`mul.wide`), and with the addition of a
//! base one in SASS, too (`IMAD.WIDE`). LLVM's code generator selects it where the index is made wide beside the address, as it
//! looks at one block at a time. Between the two stands the branch of a check, if there is one, and the access to which it
//! leads is a shift and an addition of 64 bits, from two to four instructions of SASS.
//!
//! Passes that would move the conversion are undone by those in the code generator that find what is computed twice; so this is
//! done in the text.

use std::borrow::Cow;
use std::collections::HashMap;

use super::code::{Code, Instruction, Register};
use super::text::functions;

/// Blocks times conversions that are looked at in a function: of code that is longer the time would be seen.
const MANY: usize = 1 << 20;

/// The largest shift of which the factor is a positive number of 32 bits.
const LARGEST: u32 = 30;

/// Multiplies indices of 32 bits where they were made wide and are shifted.
pub(super) fn multiply(ptx: &str) -> Cow<'_, str> {
    let converts = ["cvt.u64.u32", "cvt.s64.s32"];
    if !ptx.contains("shl.b64") || !converts.iter().any(|opcode| ptx.contains(opcode)) {
        return Cow::Borrowed(ptx);
    }
    let rewritten = functions(ptx).map(|function| {
        let shifts = Code::read(function).map(|code| shifts(&code));
        match shifts {
            Some(shifts) if !shifts.is_empty() => Cow::Owned(written(function, &shifts)),
            _ => Cow::Borrowed(function),
        }
    });
    Cow::Owned(rewritten.collect())
}

/// A function with other instructions in place of lines.
fn written(function: &str, lines: &HashMap<usize, String>) -> String {
    let all = function.split_inclusive('\n').enumerate();
    let all = all.map(|(at, line)| lines.get(&at).map_or(line, String::as_str));
    all.collect()
}

/// An index of 32 bits that is made wide.
struct Conversion {
    instruction: usize,
    narrow: Register,
    is_signed: bool,
}

/// The shifts of wide indices, by line, as the multiplications that they are.
fn shifts(code: &Code<'_>) -> HashMap<usize, String> {
    let conversions = conversions(code);
    let mut found = HashMap::new();
    if code.blocks.len() * conversions.len() > MANY {
        return found;
    }
    let mut entered: HashMap<Register, Vec<bool>> = HashMap::new();
    for (block, range) in code
        .blocks
        .iter()
        .map(|block| &block.instructions)
        .enumerate()
    {
        for at in range.clone() {
            let instruction = &code.instructions[at];
            let Some((wide, by)) = shift(instruction) else {
                continue;
            };
            let Some(conversion) = conversions.get(&wide) else {
                continue;
            };
            let is_behind = match range.contains(&conversion.instruction) {
                true => conversion.instruction < at,
                false => {
                    let around = || entered_around(code, conversion.instruction);
                    !entered.entry(wide).or_insert_with(around)[block]
                }
            };
            if is_behind {
                let kind = if conversion.is_signed { "s32" } else { "u32" };
                let to = code.names[instruction.writes[0]];
                let narrow = code.names[conversion.narrow];
                let factor = 1u32 << by;
                let line = format!("\tmul.wide.{kind} \t{to}, {narrow}, {factor};\n");
                found.insert(instruction.line, line);
            }
        }
    }
    found
}

/// The indices that are made wide, by the register that they are then in, where neither is written twice.
fn conversions(code: &Code<'_>) -> HashMap<Register, Conversion> {
    let mut writes = vec![0; code.words.len()];
    for instruction in &code.instructions {
        // Of a line of several it is not known which of its registers it writes.
        let is_line = instruction.opcode.is_empty();
        let written = if is_line {
            &instruction.reads
        } else {
            &instruction.writes
        };
        written.iter().for_each(|&register| writes[register] += 1);
    }
    let conversion = |(at, instruction): (usize, &Instruction<'_>)| {
        let is_signed = match instruction.opcode {
            "cvt.u64.u32" => false,
            "cvt.s64.s32" => true,
            _ => return None,
        };
        let (&[wide], &[narrow]) = (&instruction.writes[..], &instruction.reads[..]) else {
            return None;
        };
        let is_once = writes[wide] == 1 && writes[narrow] == 1;
        let conversion = Conversion {
            instruction: at,
            narrow,
            is_signed,
        };
        is_once.then_some((wide, conversion))
    };
    let all = code.instructions.iter().enumerate();
    all.filter_map(conversion).collect()
}

/// What an instruction shifts, and by how much, if it is a shift of 64 bits by a number.
fn shift(instruction: &Instruction<'_>) -> Option<(Register, u32)> {
    let &[wide] = &instruction.reads[..] else {
        return None;
    };
    if instruction.opcode != "shl.b64" || instruction.conditional {
        return None;
    }
    let (_, by) = instruction
        .operands
        .trim_end_matches(';')
        .rsplit_once(',')?;
    let by = by.trim().parse().ok()?;
    (by <= LARGEST).then_some((wide, by))
}

/// The blocks to which control may come without an instruction having been executed: it is not above what is in these.
fn entered_around(code: &Code<'_>, instruction: usize) -> Vec<bool> {
    let mut entered = vec![false; code.blocks.len()];
    let mut open = vec![0];
    while let Some(block) = open.pop() {
        if std::mem::replace(&mut entered[block], true) {
            continue;
        }
        if !code.blocks[block].instructions.contains(&instruction) {
            open.extend(&code.blocks[block].next);
        }
    }
    entered
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What becomes of a shift of `%rd1` behind a branch, with these lines before it and in the block that is branched over.
    fn shifted(before: &str, over: &str, shift: &str) -> String {
        let function = format!(
            ".func f()\n{{\n{before}\t@%p1 bra \t$L1;\n{over}$L1:\n{shift}\tst.global.b32 \t[%rd2], %r1;\n\tret;\n\n}}\n"
        );
        let multiplied = multiply(&function).into_owned();
        let behind = multiplied.split_once("$L1:\n").map(|(_, behind)| behind);
        let line = behind.and_then(|behind| behind.lines().next());
        line.expect("there is a line behind the label").to_owned()
    }

    const WIDE: &str = "\tld.param.b32 \t%r1, [f_param_0];\n\tcvt.u64.u32 \t%rd1, %r1;\n";
    const SHIFT: &str = "\tshl.b64 \t%rd2, %rd1, 2;\n";

    #[test]
    fn what_was_made_wide_in_an_earlier_block_is_multiplied() {
        let multiplied = "\tmul.wide.u32 \t%rd2, %r1, 4;";
        assert_eq!(shifted(WIDE, "", SHIFT), multiplied);
        let signed = WIDE.replace("u64.u32", "s64.s32");
        let multiplied = multiplied.replace("u32", "s32");
        assert_eq!(shifted(&signed, "", SHIFT), multiplied);
    }

    #[test]
    fn what_may_be_another_number_stays() {
        let stays = SHIFT.trim_end();
        for (before, over) in [
            // The index is written again.
            (WIDE.to_owned(), "\tadd.s32 \t%r1, %r1, 1;\n"),
            // Inline PTX may write it.
            (
                WIDE.to_owned(),
                "\t{ .reg .b32 t; mov.b32 t, %r1; mov.b32 %r1, t; }\n",
            ),
            // The wide one is written again.
            (WIDE.to_owned(), "\tmov.b64 \t%rd1, 0;\n"),
            // It is made wide on one of two ways.
            (String::new(), WIDE),
        ] {
            assert_eq!(shifted(&before, over, SHIFT), stays, "{before}{over}");
        }
        for other in [
            "\tshl.b64 \t%rd2, %rd1, 31;\n",
            "\tshl.b64 \t%rd2, %rd1, %r1;\n",
            "\t@%p1 shl.b64 \t%rd2, %rd1, 2;\n",
        ] {
            assert_eq!(shifted(WIDE, "", other), other.trim_end());
        }
    }
}
