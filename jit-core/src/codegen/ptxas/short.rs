//! Absolute values and negations of 16-bit integers, in 32 bits.
//!
//! `abs.s16` and `neg.s16` of the smallest integer are that integer, but `ptxas` 13.0, and a driver of
//! that age, take their results for numbers of 32 bits: converted, or compared, it is 32768 (seen in
//! SASS: no `PRMT` that extends the sign after `IABS` and `IMAD.MOV`, which 13.5 writes). In 32 bits the
//! smallest integer of 16 bits is one as any other.
//!
//! This is done in the text, since LLVM's code generator makes such operations of others: it
//! computes no more bits than are used, and negates counters of loops.

use std::borrow::Cow;

use super::text::instruction;

/// Computes what PTX computes in 16 bits in 32.
pub(super) fn widen(ptx: &str) -> Cow<'_, str> {
    if !ptx.contains("neg.s16") && !ptx.contains("abs.s16") {
        return Cow::Borrowed(ptx);
    }
    let mut wide = String::with_capacity(ptx.len() + ptx.len() / 16);
    for line in ptx.split_inclusive('\n') {
        match short_operation(line) {
            Some((operation, result, argument)) => {
                wide.push_str(&format!(
                    "\t{{ .reg .b32 wide; cvt.s32.s16 wide, {argument}; {operation}.s32 wide, wide; \
                     cvt.u16.u32 {result}, wide; }}\n"
                ));
            }
            None => wide.push_str(line),
        }
    }
    Cow::Owned(wide)
}

/// The operation of a line, without its type, and its operands.
fn short_operation(line: &str) -> Option<(&str, &str, &str)> {
    let (opcode, mut operands) = instruction(line)?;
    let operation = opcode.strip_suffix(".s16")?;
    let known = ["neg", "abs"].contains(&operation);
    known.then_some((operation, operands.next()?, operands.next()?))
}
