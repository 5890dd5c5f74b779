//! `Result`: a struct of whether it is `Ok`, the value, and the error. What it has not stands for anything: nothing
//! reads it before it has asked. Of `()` there is no field.

use crate::ir::{Constant, StructData, Type, TypeTable};

use super::option::VALUE;
use super::{Front, Operand};

/// The fields of the struct besides that of the value, which descriptions name.
const IS_OK: &str = "is_ok";
const ERROR: &str = "error";

/// The type of results with values of one type and errors of another.
pub(super) fn result_type(types: &mut TypeTable, value: Type, error: Type) -> Type {
    let fields = [(IS_OK, Type::BOOL), (VALUE, value), (ERROR, error)];
    let fields = fields.into_iter().filter(|(_, ty)| *ty != Type::UNIT);
    let fields = fields.map(|(name, ty)| (name.to_owned(), ty)).collect();
    types.intern_struct(StructData::new("Result".to_owned(), fields))
}

/// Whether a type is one of results, by its name and its first field.
pub(super) fn is_result(types: &TypeTable, ty: Type) -> bool {
    types.as_struct(ty).is_some_and(|data| {
        let first = data.fields.first().map(|(name, _)| name.as_str());
        data.name == "Result" && first == Some(IS_OK)
    })
}

impl<'k> Operand<'k> {
    /// Whether a result, or what is behind a reference to one, is `Ok`.
    pub fn is_ok(self) -> Operand<'k> {
        self.field(IS_OK)
    }

    /// The value of a result that is `Ok`; behind a reference to the result, in its place.
    pub fn ok_value(self) -> Operand<'k> {
        self.part_of_result(VALUE)
    }

    /// The error of a result that is `Err`; behind a reference to the result, in its place.
    pub fn err_value(self) -> Operand<'k> {
        self.part_of_result(ERROR)
    }

    fn part_of_result(self, name: &str) -> Operand<'k> {
        let front = Front::new(self.builder);
        match front.field_type(self.target().ty(), name) {
            Some(_) => self.field(name),
            None => front.unit(),
        }
    }
}

impl<'k> Front<'k> {
    /// The type of a field of a struct, if it has that.
    fn field_type(self, ty: Type, name: &str) -> Option<Type> {
        self.builder.with_types(|types| {
            let mut fields = types.as_struct(ty)?.fields.iter();
            fields.find(|(field, _)| field == name).map(|(_, ty)| *ty)
        })
    }

    /// Whether something is a result.
    pub(super) fn is_result(self, operand: Operand<'k>) -> bool {
        let ty = operand.ty();
        self.builder.with_types(|types| is_result(types, ty))
    }

    /// The type of results with values of one type and errors of another.
    pub fn result_type(self, value: Type, error: Type) -> Type {
        self.builder
            .with_types(|types| result_type(types, value, error))
    }

    /// `Ok(value)`, of a type of results.
    pub fn ok(self, ty: Type, value: Operand<'k>) -> Operand<'k> {
        self.result(ty, true, VALUE, value)
    }

    /// `Err(error)`, of a type of results.
    pub fn err(self, ty: Type, error: Operand<'k>) -> Operand<'k> {
        self.result(ty, false, ERROR, error)
    }

    fn result(self, ty: Type, is_ok: bool, name: &str, part: Operand<'k>) -> Operand<'k> {
        let is_ok = self.literal(Type::BOOL, Constant::Bool(is_ok));
        let fields = [(IS_OK, is_ok), (name, part)];
        let count = match part.ty() {
            Type::UNIT => 1,
            _ => 2,
        };
        self.construct(ty, &fields[..count], Some(self.none(ty)))
    }

    /// `if condition { then } else { otherwise }`, where the second is told the type of the first.
    pub fn either_of_type(
        self,
        condition: Operand<'k>,
        then: impl FnOnce() -> Operand<'k>,
        otherwise: impl FnOnce(Type) -> Operand<'k>,
    ) -> Operand<'k> {
        let slot = self.slot();
        let described = || self.assign(slot, then());
        self.if_else(condition, described, || {
            if slot.ty() != Type::UNIT {
                self.assign(slot, otherwise(slot.ty()));
            }
        });
        slot
    }

    /// Whether an option has a value, or a result is `Ok`.
    pub(super) fn has_value(self, operand: Operand<'k>) -> Operand<'k> {
        match self.is_result(operand.target()) {
            true => operand.is_ok(),
            false => operand.is_some(),
        }
    }

    /// What an option or a result holds.
    pub(super) fn held_value(self, operand: Operand<'k>) -> Operand<'k> {
        match self.is_result(operand.target()) {
            true => operand.ok_value(),
            false => operand.some_value(),
        }
    }

    /// What `?` returns of an option or a result without a value, as a function has it that returns this type.
    pub(super) fn residual(self, ty: Type, of: Operand<'k>) -> Operand<'k> {
        let of = of.target();
        if !self.is_result(of) {
            return self.none(ty);
        }
        let error = of.err_value();
        if self.field_type(ty, ERROR).unwrap_or(Type::UNIT) != error.ty() && !of.is_recovered() {
            return self.refuse(
                "`?` of a kernel makes no error of another type; write `.map_err(|e| ..)?`",
            );
        }
        self.err(ty, error)
    }

    /// Whether two results are equal: both are `Ok` with equal values, or neither is and the errors are equal.
    pub(super) fn equal_results(self, left: Operand<'k>, right: Operand<'k>) -> Operand<'k> {
        let (left, right) = (left.eager(), right.eager());
        let (one, other) = (left.is_ok().read(), right.is_ok().read());
        let same = self.value(one.eq(other));
        let equal = |a: Operand<'k>, b: Operand<'k>| match a.ty() {
            Type::UNIT => self.literal(Type::BOOL, Constant::Bool(true)),
            _ => self.compared(crate::ir::CompareOp::Eq, a, b),
        };
        self.and(same, || {
            self.either(
                self.value(one),
                || equal(left.ok_value(), right.ok_value()),
                || equal(left.err_value(), right.err_value()),
            )
        })
    }
}
