//! Some operations on 16-bit integers, in 32 bits.
//!
//! `abs.s16` and `neg.s16` of the smallest integer are that integer, but `ptxas` 13.0, and a driver of
//! that age, take their results for numbers of 32 bits: converted, or compared, it is 32768 (seen in
//! SASS: no `PRMT` that extends the sign after `IABS` and `IMAD.MOV`, which 13.5 writes). In 32 bits the
//! smallest integer of 16 bits is one as any other.
//!
//! Whether a minimum or maximum is one of its operands, `ptxas` 13.0 takes from the instruction that
//! computes it. That of 16 bits works on pairs and answers for either half; both answers go to one
//! predicate, where that of the upper half, which nobody asked for, is left (SASS: `VIMNMX.U16x2 R0, P0,
//! P0`). In 32 bits there is one answer.
//!
//! This is done in the text, since LLVM's code generator makes such operations of others: it
//! computes no more bits than are used, and negates counters of loops.

use std::borrow::Cow;

use super::text::instruction;

/// The operations.
const SHORT: [&str; 6] = [
    "neg.s16", "abs.s16", "min.s16", "max.s16", "min.u16", "max.u16",
];

/// Computes what PTX computes in 16 bits in 32.
pub(super) fn widen(ptx: &str) -> Cow<'_, str> {
    if !SHORT.iter().any(|opcode| ptx.contains(opcode)) {
        return Cow::Borrowed(ptx);
    }
    let mut wide = String::with_capacity(ptx.len() + ptx.len() / 16);
    for line in ptx.split_inclusive('\n') {
        match in_32_bits(line) {
            Some(text) => wide.push_str(&text),
            None => wide.push_str(line),
        }
    }
    Cow::Owned(wide)
}

/// A line's operation in 32 bits, if it is one of [`SHORT`].
fn in_32_bits(line: &str) -> Option<String> {
    let (opcode, mut operands) = instruction(line)?;
    if !SHORT.contains(&opcode) {
        return None;
    }
    let (operation, kind) = opcode.split_once('.')?;
    let sign = kind.strip_suffix("16")?;
    let (result, first) = (operands.next()?, operands.next()?);
    let convert = |to: &str, operand: &str| format!("cvt.{sign}32.{sign}16 {to}, {operand}; ");
    let (converted, arguments) = match operands.next() {
        None => (convert("wide", first), "wide"),
        Some(second) => (
            convert("wide", first) + &convert("other", second),
            "wide, other",
        ),
    };
    Some(format!(
        "\t{{ .reg .b32 wide, other; {converted}{operation}.{sign}32 wide, {arguments}; \
         cvt.u16.u32 {result}, wide; }}\n"
    ))
}
