//! `Option`: a struct of whether there is a value, and the value. Where there is none, what stands for the value is
//! anything: nothing reads it before it has asked.

use crate::build::Val;
use crate::ir::{Constant, StructData, Type, TypeTable};

use super::operand::Kind;
use super::{Front, Operand};

/// The fields of the struct, which descriptions name.
const IS_SOME: &str = "is_some";
pub(super) const VALUE: &str = "value";

/// The type of options of values of a type.
pub(super) fn option_type(types: &mut TypeTable, value: Type) -> Type {
    let fields = [(IS_SOME, Type::BOOL), (VALUE, value)];
    let fields = fields.map(|(name, ty)| (name.to_owned(), ty));
    types.intern_struct(StructData::new("Option".to_owned(), fields.into()))
}

/// Whether a type is one of options, by its name and its fields.
pub(super) fn is_option(types: &TypeTable, ty: Type) -> bool {
    types.as_struct(ty).is_some_and(|data| {
        let mut names = data.fields.iter().map(|(name, _)| name.as_str());
        data.name == "Option" && names.next() == Some(IS_SOME) && names.next() == Some(VALUE)
    })
}

impl<'k> Operand<'k> {
    /// Whether an option, or what is behind a reference to one, has a value.
    pub fn is_some(self) -> Operand<'k> {
        self.field(IS_SOME)
    }

    /// The value of an option that has one; behind a reference to the option, in its place.
    pub fn some_value(self) -> Operand<'k> {
        self.field(VALUE)
    }
}

impl<'k> Front<'k> {
    /// The type of options of values of a type.
    pub fn option_type(self, value: Type) -> Type {
        self.builder.with_types(|types| option_type(types, value))
    }

    /// Whether something is an option.
    pub(super) fn is_option(self, operand: Operand<'k>) -> bool {
        let ty = operand.ty();
        self.builder.with_types(|types| is_option(types, ty))
    }

    /// `Some(value)`.
    pub fn some(self, value: Operand<'k>) -> Operand<'k> {
        let value = value.read();
        if value.ty() == Type::UNIT {
            return self.refuse(
                "an `Option` of a kernel has a value: use a `bool` in place of `Option<()>`",
            );
        }
        let is_some = self.builder.constant(Constant::Bool(true), Type::BOOL);
        self.option(is_some, value)
    }

    /// An option that has the value if the condition holds.
    pub fn option(self, is_some: Val<'k>, value: Val<'k>) -> Operand<'k> {
        let ty = self.option_type(value.ty());
        let option = self.builder.construct(ty, &[is_some, value]);
        Operand::new(self.builder, Kind::Value(option))
    }

    /// `None`, of a type of options.
    pub fn none(self, ty: Type) -> Operand<'k> {
        let b = self.builder;
        // A reference to nothing is no constant.
        let none = match b.with_types(|types| types.has_references(ty)) {
            true => b.uninit_var("none", ty).get(),
            false => b.zero(ty),
        };
        Operand::new(b, Kind::Value(none))
    }

    /// `if condition { Some(value) } else { None }`.
    pub fn some_if(
        self,
        condition: Operand<'k>,
        value: impl FnOnce() -> Operand<'k>,
    ) -> Operand<'k> {
        self.option_if(condition, || self.some(value()))
    }

    /// `if condition { option } else { None }`.
    pub fn option_if(
        self,
        condition: Operand<'k>,
        option: impl FnOnce() -> Operand<'k>,
    ) -> Operand<'k> {
        let slot = self.slot();
        let described = || self.assign(slot, option());
        self.if_else(condition, described, || {
            if slot.ty() != Type::UNIT {
                self.assign(slot, self.none(slot.ty()));
            }
        });
        slot
    }

    /// `if condition { then } else { otherwise }`.
    pub fn either(
        self,
        condition: Operand<'k>,
        then: impl FnOnce() -> Operand<'k>,
        otherwise: impl FnOnce() -> Operand<'k>,
    ) -> Operand<'k> {
        let slot = self.slot();
        let (then, otherwise) = (
            || self.assign(slot, then()),
            || self.assign(slot, otherwise()),
        );
        self.if_else(condition, then, otherwise);
        slot
    }

    /// An option of a reference to the value of an option that is behind a reference.
    pub fn option_of_part(self, option: Operand<'k>, mutable: bool) -> Operand<'k> {
        let option = option.target();
        let value = option.some_value().address(mutable);
        self.option(option.is_some().read(), value.read())
    }

    /// Assigns an option that is behind a reference, and gives what it was before.
    pub fn replaced(
        self,
        option: Operand<'k>,
        with: impl FnOnce(Operand<'k>) -> Operand<'k>,
    ) -> Operand<'k> {
        let option = option.target();
        let before = option.eager();
        self.assign(option, with(before));
        before
    }

    /// Ends the thread with a message where an option has no value, and goes on with the value.
    pub fn unwrap(self, option: Operand<'k>, message: &str) -> Operand<'k> {
        self.builder.assert(option.is_some(), message);
        option.some_value()
    }
}
