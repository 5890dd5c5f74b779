//! What a method is applied to.

use crate::ir::Type;

use super::operand::Kind;
use super::{Front, Operand};

/// How a method takes its receiver.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Receiver {
    /// `self`.
    Value,
    /// `&self`.
    Shared,
    /// `&mut self`.
    Mutable,
    /// Whatever it is, without being read: slices and arrays.
    Unread,
}

impl<'k> Front<'k> {
    /// Calls a method on `receiver`, or on what that refers to. With `is_place` it is a variable or a
    /// part of one, which the method may change.
    pub(super) fn on_receiver(
        self,
        how: Receiver,
        receiver: Operand<'k>,
        is_place: bool,
        call: impl FnOnce(Operand<'k>) -> Operand<'k>,
    ) -> Operand<'k> {
        let receiver = receiver.target();
        match (how, receiver.kind) {
            (Receiver::Value, _) => call(receiver.eager()),
            (Receiver::Unread, _) => call(receiver),
            // A slice is its own reference.
            (Receiver::Mutable, _) if self.builder.as_slice(receiver.ty()).is_some() => {
                call(receiver.eager())
            }
            (Receiver::Shared, _) => call(receiver.address(false)),
            (Receiver::Mutable, Kind::Var(_) | Kind::Slot(_)) => self.on_variable(receiver, call),
            (Receiver::Mutable, Kind::Value(_) | Kind::Literal(..)) if is_place => receiver
                .unsupported(
                    "this method changes a part of a variable that has no address; copy the part \
                     to a variable of its own, and back",
                ),
            (Receiver::Mutable, _) => call(receiver.address(true)),
        }
    }

    /// A variable without an address is copied to memory and back: nothing else reaches it meanwhile,
    /// as it is mutably borrowed.
    fn on_variable(
        self,
        variable: Operand<'k>,
        call: impl FnOnce(Operand<'k>) -> Operand<'k>,
    ) -> Operand<'k> {
        if variable.ty() == Type::UNIT {
            return call(variable);
        }
        let place = variable.spill(variable.read());
        let result = call(place.address(true));
        self.assign(variable, place);
        result
    }

    /// A receiver as it is before the arguments are evaluated: a value that is passed on as such is
    /// read.
    pub(super) fn ready(self, how: Receiver, receiver: Operand<'k>) -> Operand<'k> {
        let is_reference = self.builder.is_pointer(receiver.ty());
        match how {
            Receiver::Value => receiver.target().eager(),
            _ if is_reference => receiver.eager(),
            _ => receiver,
        }
    }
}
