//! Control flow, and values that come out of it.

use crate::ir::{Type, Unroll};

use super::operand::Kind;
use super::range::Range;
use super::{Front, Operand};

impl<'k> Front<'k> {
    /// Where branches leave the value of an `if`, `match`, `loop` or block.
    pub(super) fn slot(self) -> Operand<'k> {
        Operand::new(self.builder, Kind::Slot(self.builder.new_slot()))
    }

    /// `if cond { then }`.
    pub(super) fn if_(self, cond: Operand<'k>, then: impl FnOnce()) {
        self.builder.if_(cond, then);
    }

    /// `if cond { then } else { otherwise }`.
    pub(super) fn if_else(self, cond: Operand<'k>, then: impl FnOnce(), otherwise: impl FnOnce()) {
        self.builder.if_(cond, then).else_(otherwise);
    }

    /// `left && right`.
    pub fn and(self, left: Operand<'k>, right: impl FnOnce() -> Operand<'k>) -> Operand<'k> {
        let right = || right().read();
        self.value(self.builder.short_circuit(true, left.read(), right))
    }

    /// `left || right`.
    pub fn or(self, left: Operand<'k>, right: impl FnOnce() -> Operand<'k>) -> Operand<'k> {
        let right = || right().read();
        self.value(self.builder.short_circuit(false, left.read(), right))
    }

    /// `while cond { body }`.
    pub(super) fn while_(self, cond: impl FnOnce() -> Operand<'k>, body: impl FnOnce()) {
        self.builder.while_(|| cond().read(), body);
    }

    /// `loop { body }`.
    pub(super) fn loop_(self, body: impl FnOnce()) {
        self.builder.loop_(body);
    }

    /// `for index in range { body }`.
    pub(super) fn for_(self, range: Range<'k>, unroll: Unroll, body: &mut dyn FnMut(Operand<'k>)) {
        range.repeat(self, unroll, body);
    }

    /// Leaves the loop `depth` loops out.
    pub(super) fn break_(self, depth: u32) {
        self.builder.break_out(depth);
    }

    /// Goes on with the next iteration of the loop `depth` loops out.
    pub(super) fn continue_(self, depth: u32) {
        self.builder.continue_out(depth);
    }

    /// `return`, of a function that returns nothing.
    pub(super) fn return_(self) {
        self.builder.return_();
    }

    /// `return value`, or the value of the body at its end, unless it never comes about.
    pub(super) fn return_value(self, value: Operand<'k>) {
        match value.ty() {
            Type::UNIT => {}
            _ => self.builder.return_value(value),
        }
    }

    /// Ends a function behind what ends the thread: with any value, if it has to give one.
    pub(super) fn return_never(self, result: Option<Type>) {
        match result {
            None => self.builder.return_(),
            Some(ty) => {
                let never = self.builder.uninit_var("never", ty);
                self.builder.return_value(never);
            }
        }
    }

    /// Whether a value is in `low..=high`, either of them open, without `high` if `exclusive`.
    pub(super) fn in_range(
        self,
        value: Operand<'k>,
        low: Option<Operand<'k>>,
        high: Option<Operand<'k>>,
        exclusive: bool,
    ) -> Operand<'k> {
        let above = low.map(|low| self.ge(value, low));
        let below = high.map(|high| match exclusive {
            true => self.lt(value, high),
            false => self.le(value, high),
        });
        match (above, below) {
            (Some(above), Some(below)) => self.bitand(above, below),
            (Some(one), None) | (None, Some(one)) => one,
            (None, None) => self.value(self.builder.lit(Type::BOOL, true)),
        }
    }
}
