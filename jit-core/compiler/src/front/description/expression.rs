//! Operations that compute.

use kiln_description::Op;

use crate::ir::{BinaryOp, CompareOp, Constant, Type};

use super::super::pool::Entry;
use super::super::{Front, Operand};
use super::Cursor;

impl<'k> Cursor<'_, '_, 'k> {
    pub(super) fn expression(&mut self, op: Op) -> Operand<'k> {
        let front = self.front();
        match op {
            Op::Local => self.local(),
            Op::Name => self.local().named(),
            Op::Constant | Op::ConstParam | Op::Like => self.constant(op),
            Op::Int | Op::Float | Op::Bool | Op::Zero => self.literal(op),
            Op::Eager => self.eval().eager(),
            Op::EagerWhen => match self.when() {
                true => self.eval().eager(),
                false => self.eval(),
            },
            Op::Neg => front.neg(self.eval()),
            Op::Not => front.not(self.eval()),
            Op::Deref => self.eval().deref(),
            Op::And => {
                let (left, mut right) = (self.eval(), self.region());
                front.and(left, || right.eval())
            }
            Op::Or => {
                let (left, mut right) = (self.eval(), self.region());
                front.or(left, || right.eval())
            }
            Op::InRange => {
                let exclusive = self.code.flag();
                let value = self.eval();
                let (low, high) = (self.option(), self.option());
                front.in_range(value, low, high, exclusive)
            }
            Op::Cast | Op::Convert | Op::Coerce => self.conversion(op),
            Op::Tuple | Op::Array | Op::Repeat | Op::Construct => self.aggregate(op),
            Op::Some => front.some(self.eval()),
            Op::Nothing => front.none(self.ty()),
            Op::Ok | Op::Err | Op::Residual => self.result(op),
            Op::HasValue => front.has_value(self.eval()),
            Op::HeldValue => front.held_value(self.eval()),
            Op::Shared => {
                let name = self.code.text();
                front.shared(name, self.ty())
            }
            Op::Field
            | Op::BoundField
            | Op::Index
            | Op::Address
            | Op::WholeSlice
            | Op::Part
            | Op::PartIf => self.place(op),
            _ => {
                let (left, right) = (self.eval(), self.eval());
                operator(front, op, left, right)
            }
        }
    }

    fn result(&mut self, op: Op) -> Operand<'k> {
        let (front, ty) = (self.front(), self.ty());
        let part = self.eval();
        match op {
            Op::Ok => front.ok(ty, part),
            Op::Err => front.err(ty, part),
            _ => front.residual(ty, part),
        }
    }

    fn local(&mut self) -> Operand<'k> {
        let number = self.code.number();
        self.body.local(number)
    }

    fn constant(&mut self, op: Op) -> Operand<'k> {
        let front = self.front();
        match op {
            Op::Constant => match self.entry() {
                Some(
                    entry @ (Entry::Scalar(..)
                    | Entry::Aggregate(..)
                    | Entry::Elements(_)
                    | Entry::NotAlone),
                ) => front.constant(entry),
                _ => self.unfit(),
            },
            Op::Like => {
                let value = self.eval();
                front.int(value.ty(), self.code.int())
            }
            _ => {
                let number = self.code.number() as usize;
                let param = self.body.consts.borrow().get(number).copied();
                let ty = self.ty();
                match param {
                    Some(param) => front.const_value(param.is, param.ty, ty),
                    None => self.unfit(),
                }
            }
        }
    }

    fn literal(&mut self, op: Op) -> Operand<'k> {
        let front = self.front();
        if op == Op::Bool {
            return front.literal(Type::BOOL, Constant::Bool(self.code.flag()));
        }
        let ty = self.ty();
        match op {
            Op::Int => front.int(ty, self.code.int()),
            Op::Float => {
                let digits = self.code.text();
                // Once: a number of 32 bits that is rounded to 64 before may be another.
                let number = match ty {
                    Type::F32 => digits.parse::<f32>().map(f64::from),
                    _ => digits.parse::<f64>(),
                };
                // rustc has read it before.
                front.literal(ty, Constant::Float(number.unwrap_or(f64::NAN)))
            }
            _ => front.literal(ty, Constant::Zero),
        }
    }

    fn conversion(&mut self, op: Op) -> Operand<'k> {
        if op == Op::Cast {
            let is_call = self.next_op() == Op::CallMethod;
            let (value, ty) = (self.eval(), self.ty());
            return match is_call && matches!(ty, Type::I64 | Type::U64) {
                true => value.whole_len().cast(ty),
                false => value.cast(ty),
            };
        }
        let (value, ty) = (self.eval(), self.ty());
        match op {
            Op::Convert => self.front().convert(ty, value),
            _ => self.front().coerce(value, ty),
        }
    }

    /// An index. `i as usize` of an integer of 64 bits is all of it: a `usize` of kernels has 32, which
    /// index no slice of 2^32 elements or more.
    fn index(&mut self) -> Operand<'k> {
        if self.next_op() != Op::Cast {
            return self.eval();
        }
        let (_, place) = self.code.op();
        let value = self.eval();
        let ty = self.ty();
        match (value.ty(), value.known_int()) {
            (Type::I64 | Type::U64, None) => value,
            _ => self.at(place, |_| value.cast(ty)),
        }
    }

    /// What is a part of something, or refers to it.
    fn place(&mut self, op: Op) -> Operand<'k> {
        match op {
            Op::Field => {
                let name = self.code.text();
                self.eval().field(name)
            }
            Op::BoundField => {
                let name = self.code.text();
                self.eval().bound_field(name)
            }
            Op::Index => {
                let base = self.eval();
                base.index(self.index())
            }
            Op::Address => {
                let mutable = self.code.flag();
                self.eval().address(mutable)
            }
            Op::WholeSlice => {
                let mutable = self.code.flag();
                self.eval().whole_slice(mutable)
            }
            _ => {
                let (mutable, inclusive) = (self.code.flag(), self.code.flag());
                let base = self.eval();
                let (from, to) = (self.option(), self.option());
                match op {
                    Op::PartIf => base.part_if_there(from, to, inclusive, mutable),
                    _ => base.part(from, to, inclusive, mutable),
                }
            }
        }
    }

    fn aggregate(&mut self, op: Op) -> Operand<'k> {
        let front = self.front();
        match op {
            Op::Tuple => front.tuple(&self.list()),
            Op::Array => front.array(&self.list()),
            Op::Repeat => {
                let element = self.eval();
                match self.len() {
                    Some(len) => front.repeat(element, len),
                    None => self.unfit(),
                }
            }
            _ => {
                let ty = self.ty();
                let count = self.code.count();
                let fields: Vec<_> = (0..count)
                    .map(|_| (self.code.text(), self.eval()))
                    .collect();
                let base = self.option();
                front.construct(ty, &fields, base)
            }
        }
    }
}

/// An operator on two operands.
pub(super) fn operator<'k>(
    front: Front<'k>,
    op: Op,
    left: Operand<'k>,
    right: Operand<'k>,
) -> Operand<'k> {
    let arithmetic = |op| front.binary(op, left, right);
    let comparison = |op| front.compared(op, left, right);
    match op {
        Op::Add => arithmetic(BinaryOp::Add),
        Op::Sub => arithmetic(BinaryOp::Sub),
        Op::Mul => arithmetic(BinaryOp::Mul),
        Op::Div => arithmetic(BinaryOp::Div),
        Op::Rem => arithmetic(BinaryOp::Rem),
        Op::BitXor => arithmetic(BinaryOp::Xor),
        Op::BitAnd => arithmetic(BinaryOp::And),
        Op::BitOr => arithmetic(BinaryOp::Or),
        Op::Shl => front.shl(left, right),
        Op::Shr => front.shr(left, right),
        Op::Eq => comparison(CompareOp::Eq),
        Op::Lt => comparison(CompareOp::Lt),
        Op::Le => comparison(CompareOp::Le),
        Op::Ne => comparison(CompareOp::Ne),
        Op::Ge => comparison(CompareOp::Ge),
        Op::Gt => comparison(CompareOp::Gt),
        _ => front.unit(),
    }
}
