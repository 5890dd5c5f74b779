//! Atomics that no target has on their type: loops around compare-and-swap.
//!
//! Of 16 bits GPUs have compare-and-swap alone (PTX ISA, "atom", `.cas.b16`), and of floats no minimum and maximum.

use crate::build::{DeviceFn, Val};
use crate::ir::{AddressSpace, AtomicOp, Module, Ordering, Scalar, Scope, Type};

/// A read-modify-write, but for its type.
#[derive(Copy, Clone, PartialEq, Eq, Hash)]
pub(super) struct Change {
    pub(super) op: AtomicOp,
    pub(super) ordering: Ordering,
    pub(super) scope: Scope,
    pub(super) space: AddressSpace,
}

impl Change {
    /// The function of an address and an operand that gives the old value.
    pub(super) fn body(self, scalar: Scalar) -> Option<Module> {
        let ty = Type::scalar(scalar);
        let name = format!("atomic.{:?}.{}", self.op, scalar.name());
        let function = DeviceFn::build(&name, |k| {
            let pointer = k.with_types(|types| types.pointer(ty, self.space, true));
            let (place, operand) = (k.param("place", pointer), k.param("operand", ty));
            let change = |old| self.combined(old, operand);
            let old = (place.referent()).atomic_update(self.ordering, self.scope, change);
            k.return_value(old);
        });
        function.ok().map(|f| f.module())
    }

    fn combined<'k>(self, old: Val<'k>, operand: Val<'k>) -> Val<'k> {
        match self.op {
            AtomicOp::Add => old + operand,
            AtomicOp::Min => old.min(operand),
            AtomicOp::Max => old.max(operand),
            AtomicOp::And => old & operand,
            AtomicOp::Or => old | operand,
            AtomicOp::Xor => old ^ operand,
            // What goes round is of `u32`, which every target has it on.
            AtomicOp::Exchange | AtomicOp::Increment | AtomicOp::Decrement => operand,
        }
    }
}
