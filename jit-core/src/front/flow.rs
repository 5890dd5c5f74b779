//! Control flow, and values that come out of it.

use crate::build::{BuildErrorKind, IntoVal, KernelBuilder, Val, Var};
use crate::ir::{AddressSpace, Type, TypeData, Unroll};

use super::operand::Kind;
use super::range::Range;
use super::{Front, Operand};

impl KernelBuilder {
    /// Assigns a slot, which has its type from the first assignment.
    pub(super) fn set_slot<'k>(&'k self, slot: usize, value: Operand<'k>) {
        if value.ty() == Type::UNIT {
            return;
        }
        let value = value.into_val(self, self.slot(slot).map(Var::ty));
        match self.slot(slot) {
            Some(var) => var.set(self.fitted(value, var.ty())),
            None => {
                // Another branch may bring a reference into other memory.
                let value = match self.is_address(value.ty()) {
                    true => value.to_generic(),
                    false => value,
                };
                self.fill_slot(slot, value.ty()).set(value);
            }
        }
    }

    /// A value for a place of a type: references become what the place wants.
    pub(super) fn fitted<'k>(&'k self, value: Val<'k>, wanted: Type) -> Val<'k> {
        match value.ty() == wanted || !self.is_address(wanted) {
            true => value,
            false => self.coerced(value, wanted),
        }
    }
}

/// Whether a reference into one address space, mutable or not, can stand for another.
fn stands_for(has: (AddressSpace, bool), wanted: (AddressSpace, bool)) -> bool {
    let space = wanted.0 == has.0 || wanted.0 == AddressSpace::Generic;
    space && (has.1 || !wanted.1)
}

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
    pub(super) fn and(self, left: Operand<'k>, right: impl FnOnce() -> Operand<'k>) -> Operand<'k> {
        let right = || right().read();
        self.value(self.builder.short_circuit(true, left.read(), right))
    }

    /// `left || right`.
    pub(super) fn or(self, left: Operand<'k>, right: impl FnOnce() -> Operand<'k>) -> Operand<'k> {
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

    /// A reference as one of another type that rustc lets it stand for: `&mut` for `&`, an array
    /// for a slice.
    pub(super) fn coerce(self, value: Operand<'k>, wanted: Type) -> Operand<'k> {
        let b = self.builder;
        if value.ty() == wanted || !b.is_address(wanted) {
            return value;
        }
        Operand::new(b, Kind::Value(b.fitted(value.read(), wanted)))
    }
}

impl KernelBuilder {
    fn is_address(&self, ty: Type) -> bool {
        matches!(
            self.type_data(ty),
            TypeData::Slice { .. } | TypeData::Pointer { .. }
        )
    }

    fn coerced<'k>(&'k self, value: Val<'k>, wanted: Type) -> Val<'k> {
        let value = match (self.type_data(value.ty()), self.type_data(wanted)) {
            (TypeData::Pointer { .. }, TypeData::Slice { .. }) => self.slice_of_array(value),
            _ => value,
        };
        // The target keeps what the value points at: in `wanted` that may be a parameter of another
        // function.
        let target = match (self.type_data(value.ty()), self.type_data(wanted)) {
            (
                TypeData::Slice {
                    element,
                    wide,
                    space: from,
                    mutable: writable,
                },
                TypeData::Slice { space, mutable, .. },
            ) if stands_for((from, writable), (space, mutable)) => TypeData::Slice {
                element,
                space,
                mutable,
                wide,
            },
            (
                TypeData::Pointer {
                    pointee,
                    space: from,
                    mutable: writable,
                },
                TypeData::Pointer { space, mutable, .. },
            ) if stands_for((from, writable), (space, mutable)) => TypeData::Pointer {
                pointee,
                space,
                mutable,
            },
            _ => {
                let kind = BuildErrorKind::Unsupported(format!(
                    "a `{}` cannot stand for a `{}`",
                    self.type_name(value.ty()),
                    self.type_name(wanted)
                ));
                return self.error(kind, wanted);
            }
        };
        let target = self.with_types(|types| types.intern(target));
        match target == value.ty() {
            true => value,
            false => self.space_cast(value, target),
        }
    }
}
