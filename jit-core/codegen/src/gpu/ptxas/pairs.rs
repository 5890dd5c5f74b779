//! Pairs of 16-bit integers and constants, half by half.
//!
//! Of `add.s16x2` with a constant pair, whose result is used in one half only, `ptxas` 13.0 adds the other
//! half of the constant: `VIADD.16x2 R5, R22, 0x0` where the low half of the constant is 1; 13.5 adds 1.
//! LLVM writes such pairs for sums over slices of 16-bit integers. Two operations on halves are right.

use std::borrow::Cow;
use std::collections::HashSet;

use super::text::{functions, instruction};

/// Computes the halves one by one where an operand is a constant.
pub(super) fn split(ptx: &str) -> Cow<'_, str> {
    if !ptx.contains("16x2") {
        return Cow::Borrowed(ptx);
    }
    Cow::Owned(functions(ptx).map(split_in_function).collect())
}

fn split_in_function(function: &str) -> String {
    let constants: HashSet<&str> = function.lines().filter_map(constant).collect();
    let mut text = String::with_capacity(function.len());
    for line in function.split_inclusive('\n') {
        match on_pairs(line) {
            Some((operation, [result, left, right]))
                if constants.contains(left) || constants.contains(right) =>
            {
                // A line an instruction, for what looks at the text after this.
                text.push_str(&format!(
                    "\t{{ .reg .b16 a, b, c, d;\n\tmov.b32 {{a, b}}, {left};\n\
                     \tmov.b32 {{c, d}}, {right};\n\t{operation} a, a, c;\n\t{operation} b, b, d;\n\
                     \tmov.b32 {result}, {{a, b}};\n\t}}\n"
                ));
            }
            _ => text.push_str(line),
        }
    }
    text
}

/// The register that a line sets to a number.
fn constant(line: &str) -> Option<&str> {
    let (opcode, mut operands) = instruction(line)?;
    let (result, value) = (operands.next()?, operands.next()?);
    let is_number = value.starts_with(|c: char| c.is_ascii_digit() || c == '-');
    (opcode == "mov.b32" && is_number).then_some(result)
}

/// The operation on a half, and the operands, of an operation on pairs of integers.
fn on_pairs(line: &str) -> Option<(&str, [&str; 3])> {
    let (opcode, mut operands) = instruction(line)?;
    let half = opcode.strip_suffix("x2")?;
    let known = ["add.s16", "min.s16", "max.s16", "min.u16", "max.u16"].contains(&half);
    let operands = [operands.next()?, operands.next()?, operands.next()?];
    known.then_some((half, operands))
}
