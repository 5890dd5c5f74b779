//! The ranges a `for` goes over.

use crate::build::{KernelBuilder, Val, Var};
use crate::ir::{BinaryOp, CompareOp, Constant, Type, Unroll};

use super::operand::Kind;
use super::{Front, Operand};

/// `start..end` or `start..=end`, with `.rev()` or `.step_by(n)` or both in this order.
#[derive(Copy, Clone)]
pub(super) struct Range<'k> {
    pub(super) start: Operand<'k>,
    pub(super) end: Operand<'k>,
    pub(super) inclusive: bool,
    pub(super) step: Option<Operand<'k>>,
    pub(super) reversed: bool,
}

impl<'k> Range<'k> {
    /// The type of the index.
    fn ty(self) -> Type {
        self.start.ty()
    }

    pub(super) fn repeat(
        self,
        front: Front<'k>,
        unroll: Unroll,
        body: &mut dyn FnMut(Operand<'k>),
    ) {
        let b = front.builder;
        if self.reversed {
            return self.repeat_reversed(front, unroll, body);
        }
        if self.needs_width() {
            return self.count_widely(front, unroll, body);
        }
        let step = self.step.map(|step| narrow_step(b, step, self.ty()));
        let this = Range { step, ..self };
        if !this.inclusive {
            return this.count(b, unroll, body);
        }
        // The number after the last one need not exist in the type.
        match this.end.known_int() {
            Some(last) if last < i128::from(i32::MAX) => {
                let end = front.int(this.ty(), last + 1);
                Range { end, ..this }.count(b, unroll, body);
            }
            _ => this.count_by_hand(front, body),
        }
    }

    /// Whether there are numbers in this loop that the type of its index, of at most 32 bits, may not
    /// have: the one after the last, or a step that is more than half of the way.
    fn needs_width(self) -> bool {
        let Some(scalar) = self.ty().as_scalar().filter(|scalar| scalar.bits() <= 32) else {
            return false;
        };
        let is_small = |n: i128| n < i128::from(i8::MAX);
        let end_is_small = self.end.known_int().is_some_and(is_small);
        let step_is_small = match self.step {
            None => true,
            Some(step) => step.known_int().is_some_and(is_small),
        };
        let beyond_end = self.inclusive && !end_is_small;
        beyond_end || (scalar.is_signed_int() && !step_is_small)
    }

    /// A `for` of the IR.
    fn count(self, b: &'k KernelBuilder, unroll: Unroll, body: &mut dyn FnMut(Operand<'k>)) {
        let body = |index: Val<'k>| body(Operand::new(b, Kind::Value(index)));
        match self.step {
            Some(step) => b.for_loop(self.start, self.end, step, unroll, body),
            None => b.for_loop(self.start, self.end, 1, unroll, body),
        }
    }

    /// A range of at most 32 bits as a `for` over 64 bits.
    fn count_widely(self, front: Front<'k>, unroll: Unroll, body: &mut dyn FnMut(Operand<'k>)) {
        let ty = self.ty();
        let one = front.int(Type::I64, 1);
        let wide = Range {
            start: self.start.cast(Type::I64),
            end: match self.inclusive {
                true => front.add(self.end.cast(Type::I64), one),
                false => self.end.cast(Type::I64),
            },
            inclusive: false,
            step: self.step.map(|step| step.cast(Type::I64)),
            reversed: false,
        };
        wide.count(front.builder, unroll, &mut |index| body(index.cast(ty)));
    }

    /// `start..=end` of any type: the loop steps at its top, so that `continue` does.
    fn count_by_hand(self, front: Front<'k>, body: &mut dyn FnMut(Operand<'k>)) {
        let b = front.builder;
        let (start, end) = (self.start.read(), self.end.read());
        let step = self.step.map_or_else(
            || b.constant(Constant::Int(1), start.ty()),
            |step| step.read(),
        );
        let index = b.uninit_var("index", start.ty());
        let entered = b.uninit_var("entered", Type::BOOL);
        index.set(start);
        entered.set(false);
        b.loop_(|| {
            b.if_(entered, || advance(b, index, end, step)).else_(|| {
                b.if_(b.compare(CompareOp::Gt, index, end), || b.break_());
                entered.set(true);
            });
            body(Operand::new(b, Kind::Value(index.get())));
        });
    }

    /// `.rev()`: as many iterations, counted from the other end.
    fn repeat_reversed(self, front: Front<'k>, unroll: Unroll, body: &mut dyn FnMut(Operand<'k>)) {
        let forward = Range {
            reversed: false,
            ..self
        };
        let last = match self.inclusive {
            true => self.end,
            false => front.sub(self.end, front.int(self.ty(), 1)),
        };
        forward.repeat(front, unroll, &mut |index| {
            let done = match self.start.known_int() {
                Some(0) => index,
                _ => front.sub(index, self.start),
            };
            body(front.sub(last, done));
        });
    }
}

/// The next index, or the end of the loop if the next one would be beyond `end`.
fn advance<'k>(b: &'k KernelBuilder, index: Var<'k>, end: Val<'k>, step: Val<'k>) {
    let left = b.binary(BinaryOp::Sub, end, index);
    b.if_(b.compare(CompareOp::Lt, left, step), || b.break_());
    index.set(index + step);
}

/// A step, which Rust has as a `usize`, in the type of the index. One that is too large for it is
/// the largest there is: either way one iteration is left.
fn narrow_step<'k>(b: &'k KernelBuilder, step: Operand<'k>, ty: Type) -> Operand<'k> {
    let front = Front::new(b);
    let Some(scalar) = ty.as_scalar() else {
        return step.cast(ty);
    };
    let bits = scalar.bits() - u32::from(scalar.is_signed_int());
    let largest = (1i128 << bits) - 1;
    match step.known_int() {
        Some(n) => front.int(ty, n.min(largest)),
        None if bits >= 32 => step.cast(ty),
        None => {
            let largest = front.int(step.ty(), largest);
            let step = b.binary(BinaryOp::Min, step, largest);
            Operand::new(b, Kind::Value(step)).cast(ty)
        }
    }
}
