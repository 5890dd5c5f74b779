//! Rules about numbers: constants, arithmetic, comparisons, conversions, counted loops.

use super::MAX_UNROLL;
use super::rules::{Rule, Rules};
use crate::{
    BinaryOp, CompareOp, Constant, Phase, Scalar, Takes, Type, TypeBound, TypeData, Unroll, Value,
};

impl Rules<'_> {
    pub(super) fn constant(&self, constant: Constant, ty: Type) -> Rule {
        let fits = match (constant, self.types.data(ty)) {
            (_, TypeData::Unit) => false,
            (Constant::Zero, _) => true,
            (Constant::Int(_), TypeData::Param(_)) => self.is_number(ty),
            (Constant::Float(_), TypeData::Param(_)) => self.bound(ty) == Some(TypeBound::Float),
            (constant, TypeData::Scalar(scalar)) => scalar_holds(*scalar, constant),
            _ => false,
        };
        if fits {
            return Ok(());
        }
        let constant = crate::print::constant_text(constant);
        Err(format!("`{constant}` is no value of `{}`", self.name(ty)))
    }

    pub(super) fn binary(&self, op: BinaryOp, [a, _]: [Value; 2]) -> Rule {
        let ty = self.ty(a);
        let legal = self.module.phase == Phase::Legal;
        if matches!(op, BinaryOp::Rem) && ty.is_float() && legal {
            return Err("the remainder of floats is a call in a legal module".to_owned());
        }
        self.operator(op.takes(), ty)
    }

    pub(super) fn operator(&self, takes: Takes, ty: Type) -> Rule {
        let holds = match takes {
            Takes::Numbers => self.is_number(ty),
            Takes::Integers => self.is_integer(ty),
            Takes::Bits => self.is_integer(ty) || ty == Type::BOOL,
        };
        match holds {
            true => Ok(()),
            false => Err(format!(
                "it takes {}, not `{}`",
                takes.words(),
                self.name(ty)
            )),
        }
    }

    pub(super) fn compare(&self, op: CompareOp, [a, _]: [Value; 2]) -> Rule {
        let ty = self.ty(a);
        let ordered = self.is_number(ty) || self.types.is_pointer(ty);
        match op {
            CompareOp::Eq | CompareOp::Ne => {
                let holds = ordered || ty == Type::BOOL;
                self.expect(holds, "numbers, bools and addresses are compared", ty)
            }
            CompareOp::Lt | CompareOp::Le | CompareOp::Gt | CompareOp::Ge => {
                self.expect(ordered, "numbers and addresses are ordered", ty)
            }
        }
    }

    pub(super) fn cast(&self, from: Type, to: Type) -> Rule {
        let from_scalar = self.is_number(from) || from == Type::BOOL;
        self.expect(from_scalar, "a number or a bool is cast", from)?;
        let to_scalar = self.is_number(to) || to == Type::BOOL && from == Type::BOOL;
        let taken = "a cast gives a number; for a bool, compare with zero";
        self.expect(to_scalar, taken, to)
    }

    pub(super) fn bitcast(&self, from: Type, to: Type) -> Rule {
        for ty in [from, to] {
            let number = ty != Type::BOOL && ty.as_scalar().is_some();
            let flat = self.types.as_vector(ty).is_some() || self.types.is_pointer(ty);
            let taken = "the bits of numbers, vectors and pointers can be cast";
            self.expect(number || flat, taken, ty)?;
        }
        let size = |ty| self.types.layout(ty).map(|layout| layout.size);
        if size(from) != size(to) {
            let (from, to) = (self.name(from), self.name(to));
            return Err(format!("`{from}` and `{to}` differ in size"));
        }
        let (source, target) = (self.types.as_pointer(from), self.types.as_pointer(to));
        if let (Some((_, space, mutable)), Some((_, other, gets_mutable))) = (source, target)
            && (space != other || gets_mutable && !mutable)
        {
            return Err(format!(
                "`{}` does not become `{}`: a bit cast keeps the address space and makes nothing \
                 mutable",
                self.name(from),
                self.name(to)
            ));
        }
        Ok(())
    }

    pub(super) fn counted_loop(&self, ty: Type, unroll: Unroll) -> Rule {
        self.expect(self.is_integer(ty), "a `for` counts in integers", ty)?;
        wrong_factor(unroll).map_or(Ok(()), Err)
    }
}

/// What is wrong with how a loop is to be unrolled.
pub(super) fn wrong_factor(unroll: Unroll) -> Option<String> {
    match unroll {
        Unroll::By(factor) if !(1..=MAX_UNROLL).contains(&factor) => Some(format!(
            "an unroll factor is 1 to {MAX_UNROLL}, not {factor}"
        )),
        _ => None,
    }
}

/// Whether a constant that is not [`Constant::Zero`] is a value of a scalar type.
pub(super) fn scalar_holds(scalar: Scalar, constant: Constant) -> bool {
    match constant {
        Constant::Zero => true,
        Constant::Bool(_) => scalar == Scalar::Bool,
        Constant::Float(_) => scalar.is_float(),
        Constant::Int(n) => scalar.holds(n),
    }
}
