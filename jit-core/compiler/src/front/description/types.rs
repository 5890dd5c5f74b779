//! Types and lengths.

use kiln_description::{Len, TypeOp};

use crate::ir::{ArrayLen, ConstArg, Constant, Type};

use super::super::pool::Entry;
use super::Cursor;

impl Cursor<'_, '_, '_> {
    pub(super) fn ty(&mut self) -> Type {
        let front = self.front();
        match self.code.type_op() {
            TypeOp::Unit => Type::UNIT,
            TypeOp::Pooled => match self.entry() {
                Some(entry @ Entry::Type(_)) => front.type_of(entry),
                _ => {
                    self.unfit();
                    Type::UNIT
                }
            },
            TypeOp::Array => {
                let element = self.ty();
                match self.len() {
                    Some(len) => front.array_type(element, len),
                    None => {
                        self.unfit();
                        Type::UNIT
                    }
                }
            }
            TypeOp::Tuple => front.tuple_type(&self.types()),
            TypeOp::Reference => {
                let mutable = self.code.flag();
                front.reference_type(self.ty(), false, mutable)
            }
            TypeOp::Option => front.option_type(self.ty()),
            TypeOp::Result => {
                let value = self.ty();
                front.result_type(value, self.ty())
            }
            TypeOp::Slice => {
                let mutable = self.code.flag();
                front.reference_type(self.ty(), true, mutable)
            }
        }
    }

    pub(super) fn types(&mut self) -> Vec<Type> {
        (0..self.code.count()).map(|_| self.ty()).collect()
    }

    /// A const argument; none if it is none.
    pub(super) fn const_arg(&mut self) -> Option<ConstArg> {
        match self.code.len() {
            Len::Param(number) => {
                let consts = self.body.consts.borrow();
                consts.get(number as usize).map(|known| known.is)
            }
            Len::Pooled(number) => match self.body.entry(number)? {
                Entry::Scalar(_, constant) => Some(ConstArg::Known(constant)),
                _ => None,
            },
        }
    }

    /// A length; none if it is none.
    pub(super) fn len(&mut self) -> Option<ArrayLen> {
        match self.const_arg()? {
            ConstArg::Param(param) => Some(ArrayLen::Param(param)),
            ConstArg::Known(Constant::Int(len)) => u64::try_from(len).ok().map(ArrayLen::Known),
            ConstArg::Known(Constant::Zero) => Some(ArrayLen::Known(0)),
            ConstArg::Known(_) => None,
        }
    }
}
