//! Atomics that a target does not have on their type: loops around compare-and-swap.
//!
//! Of 16 bits GPUs have compare-and-swap alone (PTX ISA, "atom", `.cas.b16`), and of floats no minimum and maximum. Of
//! 8 bits NVIDIA's have nothing: the loop is then around that of the 32-bit word which the byte is in, and leaves the
//! other bytes as they are. Their own writers are not disturbed, since a word that has changed is not written; `ptxas`
//! makes the same of `.cas.b16`.

use crate::build::{DeviceFn, KernelBuilder, Place, Val};
use crate::ir::{AddressSpace, AtomicOp, Module, Ordering, Scalar, Scope, Type};

/// What is done in one step.
#[derive(Copy, Clone, PartialEq, Eq, Hash)]
pub(super) enum Step {
    /// A read-modify-write.
    Modify(AtomicOp),
    /// Compare and swap.
    Swap,
}

/// An atomic, but for its type.
#[derive(Copy, Clone, PartialEq, Eq, Hash)]
pub(super) struct Change {
    pub(super) step: Step,
    pub(super) order: (Ordering, Scope),
    pub(super) space: AddressSpace,
    /// Whether the word around the number is what is changed.
    pub(super) in_word: bool,
}

impl Change {
    /// The function of an address and of the operands that gives the old value.
    pub(super) fn body(self, scalar: Scalar) -> Option<Module> {
        let ty = Type::scalar(scalar);
        let step = match self.step {
            Step::Modify(op) => format!("{op:?}"),
            Step::Swap => "Swap".to_owned(),
        };
        let function = DeviceFn::build(&format!("atomic.{step}.{}", scalar.name()), |k| {
            let pointer = k.with_types(|types| types.pointer(ty, self.space, true));
            let place = k.param("place", pointer);
            let old = match self.step {
                Step::Modify(op) => self.modify(k, op, (place, ty)),
                Step::Swap => self.swap(k, (place, ty)),
            };
            k.return_value(old);
        });
        function.ok().map(|f| f.module())
    }

    fn modify<'k>(
        self,
        k: &'k KernelBuilder,
        op: AtomicOp,
        (place, ty): (Val<'k>, Type),
    ) -> Val<'k> {
        let operand = k.param("operand", ty);
        let (ordering, scope) = self.order;
        if !self.in_word {
            let change = |old| combined(op, old, operand);
            return (place.referent()).atomic_update(ordering, scope, change);
        }
        let word = Word::around(k, place, ty, self.space);
        let change = |old| word.with(old, combined(op, word.byte(old), operand));
        word.byte(word.place.atomic_update(ordering, scope, change))
    }

    /// The word is tried again as long as the byte is the expected one and another has changed.
    fn swap<'k>(self, k: &'k KernelBuilder, (place, ty): (Val<'k>, Type)) -> Val<'k> {
        let (expected, new) = (k.param("expected", ty), k.param("new", ty));
        let (ordering, scope) = self.order;
        let word = Word::around(k, place, ty, self.space);
        let found = k.var("found", word.place.atomic_load(ordering.of_load(), scope));
        k.loop_(|| {
            let old = found.get();
            k.if_(word.byte(old).ne(expected), || k.break_());
            let new = word.with(old, new);
            let before = word.place.atomic_cas_with(old, new, ordering, scope);
            found.set(before);
            k.if_(before.eq(old), || k.break_());
        });
        word.byte(found.get())
    }
}

fn combined<'k>(op: AtomicOp, old: Val<'k>, operand: Val<'k>) -> Val<'k> {
    match op {
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

/// The 32-bit word that a byte is in.
struct Word<'k> {
    place: Place<'k>,
    /// How far up in it the byte is, in bits: a word's first byte is its lowest.
    shift: Val<'k>,
    /// The type of the byte.
    ty: Type,
}

impl<'k> Word<'k> {
    fn around(k: &'k KernelBuilder, byte: Val<'k>, ty: Type, space: AddressSpace) -> Word<'k> {
        let address = byte.bitcast(Type::U64);
        let pointer = k.with_types(|types| types.pointer(Type::U32, space, true));
        Word {
            place: (address & !3u64).bitcast(pointer).referent(),
            shift: (address & 3u64).cast(Type::U32) * 8u32,
            ty,
        }
    }

    fn byte(&self, word: Val<'k>) -> Val<'k> {
        (word >> self.shift).cast(self.ty)
    }

    /// A word with another byte there.
    fn with(&self, word: Val<'k>, byte: Val<'k>) -> Val<'k> {
        let k = word.builder();
        let mask = k.lit(Type::U32, 0xff) << self.shift;
        (word & !mask) | (byte.cast(Type::U8).cast(Type::U32) << self.shift)
    }
}
