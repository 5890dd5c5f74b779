//! Indices that are clamped: neighbours still, away from the edge.
//!
//! A minimum or a maximum with what all lanes share changes no lane where the first and the last of neighbours are
//! on the right side of it. That is asked once for the warp, as checks are: where it holds, what is accessed is a row;
//! else the lanes are looked at one by one. An index that is at most the last of the slice or array that it goes to is
//! in bounds in all lanes.

use inkwell::IntPredicate;
use inkwell::values::BasicValueEnum;

use kiln_ir::{BinaryOp, Constant, InstData, Scalar, Value, ValueDef};

use super::Warp;
use super::emit::Built;
use super::leaf::{AffineForm, Indexed, Leaf};
use crate::llvm::error::BackendError;
use crate::llvm::operations::by_sign;

impl<'ctx> Warp<'_, '_, 'ctx> {
    /// The smaller or the larger of neighbours and a bound that all lanes share; `None` of anything else.
    pub(super) fn affine_extremum(
        &self,
        op: BinaryOp,
        [a, b]: [Value; 2],
    ) -> Result<Option<Leaf<'ctx>>, BackendError> {
        if !matches!(op, BinaryOp::Min | BinaryOp::Max) {
            return Ok(None);
        }
        let (moving, bound) = match (self.leaf(a)?, self.leaf(b)?) {
            (Leaf::Uniform(_), Leaf::Uniform(_)) => return Ok(None),
            (Leaf::Uniform(bound), _) => (b, bound),
            (_, Leaf::Uniform(bound)) => (a, bound),
            _ => return Ok(None),
        };
        let mut leaf = self.leaf(moving)?;
        let Some((_, 1, _)) = leaf.affine() else {
            return Ok(None);
        };
        // What is compared has to be what is used.
        if self.kernel.provenance.may_race(moving) {
            leaf = self.frozen(leaf);
        }
        let Some((base, stride, when)) = leaf.affine() else {
            return Ok(None);
        };
        let scalar = self.scalar_of(moving);
        let lanes = self.int_binary(op, scalar, leaf.value(self.emit)?, bound)?;
        let unchanged = self.is_unchanged(op, scalar, (base, bound))?;
        let when = match when {
            Some(when) => self.emit.and(when.into(), unchanged)?,
            None => unchanged,
        };
        let affine = AffineForm {
            base,
            stride,
            when: when.into_int_value(),
            unwrapped: Some(scalar.is_signed_int()),
            readable: false,
            part: None,
        };
        Ok(Some(Leaf::Vector {
            lanes: lanes.into_vector_value(),
            affine: Some(affine),
        }))
    }

    /// Whether a minimum or maximum leaves numbers that grow by one from `base` on as they are in all lanes, none of
    /// which has wrapped around.
    fn is_unchanged(
        &self,
        op: BinaryOp,
        scalar: Scalar,
        (base, bound): (BasicValueEnum<'ctx>, BasicValueEnum<'ctx>),
    ) -> Built<'ctx> {
        let signed = scalar.is_signed_int();
        let at_most = |a, b| {
            let predicate = by_sign(signed, IntPredicate::SLE, IntPredicate::ULE);
            self.emit.icmp(predicate, a, b)
        };
        let first = self.emit.resize(base, 64, signed)?;
        let bound = self.emit.resize(bound, 64, signed)?;
        let reach = self.emit.i64(i64::from(self.emit.lanes) - 1);
        let last = self.emit.add(first, reach.into())?;
        let bounded = match op {
            BinaryOp::Min => at_most(last, bound)?,
            _ => at_most(bound, first)?,
        };
        let largest = |bits: u32| (1i64 << (bits - u32::from(signed))) - 1;
        let grows = match (op, scalar.bits()) {
            (_, 64) => at_most(first, last)?,
            // What is at most a number of the narrow type is one itself.
            (BinaryOp::Min, _) => return Ok(bounded),
            (_, bits) => at_most(last, self.emit.i64(largest(bits)).into())?,
        };
        self.emit.and(bounded, grows)
    }

    /// The address of an element whose index is at most the last: where those of the lanes are a row, all may be read.
    /// One lane at least accesses it, so there is an element.
    pub(super) fn clamped_element(
        &self,
        (ptr, size): (Leaf<'ctx>, u64),
        index: Value,
    ) -> Result<Leaf<'ctx>, BackendError> {
        let address = self.element(ptr, self.leaf(index)?, false, size)?;
        // Only of what all lanes have in common is it known where it ends.
        let (Leaf::Uniform(_), Leaf::Indexed(indexed)) = (ptr, address) else {
            return Ok(address);
        };
        let affine = indexed.affine.map(|form| AffineForm {
            readable: true,
            ..form
        });
        Ok(Leaf::Indexed(Indexed { affine, ..indexed }))
    }

    /// Whether an index is at most that of the last element of a slice, or of an array of so many.
    pub(super) fn is_clamped(&self, index: Value, base: Value) -> bool {
        let Some(&InstData::Binary {
            op: BinaryOp::Min,
            args,
        }) = self.made_by(index)
        else {
            return false;
        };
        !self.scalar_of(index).is_signed_int()
            && args.iter().any(|&bound| self.is_last_of(bound, base))
    }

    fn is_last_of(&self, bound: Value, base: Value) -> bool {
        let function = self.function();
        let number = |value| match function.constant(value) {
            Some(Constant::Int(number)) => Some(number),
            _ => None,
        };
        let base_type = self.type_of(base);
        if !self.types().is_slice(base_type) {
            let (_, len) = self.types().indexed_of(self.types().pointee_of(base_type));
            return number(bound).is_some_and(|last| (0..i128::from(len)).contains(&last));
        }
        let Some(&InstData::Binary {
            op: BinaryOp::Sub,
            args: [len, one],
        }) = self.made_by(bound)
        else {
            return false;
        };
        let is_len =
            matches!(self.made_by(len), Some(&InstData::SliceLen { slice }) if slice == base);
        is_len && number(one) == Some(1)
    }

    /// The operation that gives a value.
    fn made_by(&self, value: Value) -> Option<&InstData> {
        let function = self.function();
        match function.values[value].def {
            ValueDef::Inst(inst) => Some(&function.insts[inst].data),
            ValueDef::Index(_) | ValueDef::Param(_) => None,
        }
    }
}
