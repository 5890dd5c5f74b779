//! Slices, index arithmetic and bounds checks.
//!
//! A checked index is compared once, unsigned, in the wider of its own type and the length's. A
//! negative index is then beyond every length, save a 32-bit length of 2^31 or more: for signed
//! indices of that width the length is capped at 2^31 first, which is hoisted out of loops.

use inkwell::IntPredicate;
use inkwell::basic_block::BasicBlock;
use inkwell::types::IntType;
use inkwell::values::{BasicValueEnum, IntValue};

use kiln_ir::{Inst, Type, Value};

use super::FunctionLowering;
use super::value::Lowered;
use crate::llvm::bindings::{Wrap, build_freeze, build_gep};
use crate::llvm::error::BackendError;

/// How much likelier an index is in bounds than not, for LLVM's block placement.
const IN_BOUNDS_WEIGHT: u64 = 1 << 20;

impl<'ctx> FunctionLowering<'_, 'ctx> {
    pub(super) fn lower_slice_new(
        &self,
        ptr: Value,
        len: Value,
        result: Type,
    ) -> Result<Lowered<'ctx>, BackendError> {
        let (_, wide) = self.types().table().slice_of(result);
        let len = self.one(len).into_int_value();
        let len = self.resize_unsigned(len, self.types().slice_length(wide))?;
        Ok(Lowered::Slice(self.pointer(ptr), len))
    }

    pub(super) fn lower_slice_len(
        &self,
        slice: Value,
        result: Type,
    ) -> Result<BasicValueEnum<'ctx>, BackendError> {
        let (_, len) = self.get(slice).slice();
        let ty = self.types().value(result)?.into_int_type();
        Ok(self.resize_unsigned(len, ty)?.into())
    }

    fn resize_unsigned(
        &self,
        value: IntValue<'ctx>,
        ty: IntType<'ctx>,
    ) -> Result<IntValue<'ctx>, BackendError> {
        Ok(self
            .builder()
            .build_int_cast_sign_flag(value, ty, false, "")?)
    }

    pub(super) fn lower_space_cast(
        &self,
        arg: Value,
        result: Type,
    ) -> Result<Lowered<'ctx>, BackendError> {
        let space = self.types().table().address_of(result).space;
        let ty = self.types().pointer(space);
        let cast = |ptr| self.builder().build_address_space_cast(ptr, ty, "");
        Ok(match self.get(arg) {
            Lowered::One(ptr) => Lowered::One(cast(ptr.into_pointer_value())?.into()),
            Lowered::Slice(ptr, len) => Lowered::Slice(cast(ptr)?, len),
        })
    }

    /// All dynamic shared memory.
    pub(super) fn lower_dynamic_shared(&self, result: Type) -> Result<Lowered<'ctx>, BackendError> {
        let (elements, wide) = self.types().table().slice_of(result);
        let int = self.types().int(32);
        let bytes = self.module.dialect.dynamic_shared_bytes(&self.point())?;
        let size = int.const_int(self.byte_size(elements.pointee).max(1), false);
        let len = self.builder().build_int_unsigned_div(bytes, size, "")?;
        let len = self.resize_unsigned(len, self.types().slice_length(wide))?;
        Ok(Lowered::Slice(self.module.dynamic_shared(), len))
    }

    pub(super) fn lower_slice_index(
        &mut self,
        inst: Inst,
        slice: Value,
        index: Value,
        checked: bool,
    ) -> Result<BasicValueEnum<'ctx>, BackendError> {
        let (elements, _) = self.types().table().slice_of(self.type_of(slice));
        let (ptr, len) = self.get(slice).slice();
        let (index, wrap) = self.checked_index(inst, index, len, checked)?;
        let element = self.types().memory(elements.pointee)?;
        Ok(build_gep(self.builder(), element, ptr, &[index], wrap).into())
    }

    /// An index as 64 bits, sign- or zero-extended by its type.
    pub(super) fn wide_index(&self, index: Value) -> Result<IntValue<'ctx>, BackendError> {
        let signed = self.is_signed(index);
        let value = self.one(index).into_int_value();
        self.resize(value, 64, signed)
    }

    pub(super) fn resize(
        &self,
        value: IntValue<'ctx>,
        bits: u32,
        signed: bool,
    ) -> Result<IntValue<'ctx>, BackendError> {
        let ty = self.types().int(bits);
        Ok(self
            .builder()
            .build_int_cast_sign_flag(value, ty, signed, "")?)
    }

    /// The index as 64 bits, after a bounds check if `checked`, and what is then known of it.
    pub(super) fn checked_index(
        &mut self,
        inst: Inst,
        index: Value,
        len: IntValue<'ctx>,
        checked: bool,
    ) -> Result<(IntValue<'ctx>, Wrap), BackendError> {
        let signed = self.is_signed(index);
        let mut value = self.one(index).into_int_value();
        if checked {
            if self.provenance.may_race(index) {
                value = build_freeze(self.builder(), value.into()).into_int_value();
            }
            self.check_bounds(inst, value, signed, len)?;
        }
        let wrap = if checked || !signed {
            Wrap::InBoundsForward
        } else {
            Wrap::InBounds
        };
        Ok((self.resize(value, 64, signed)?, wrap))
    }

    fn check_bounds(
        &mut self,
        inst: Inst,
        index: IntValue<'ctx>,
        signed: bool,
        len: IntValue<'ctx>,
    ) -> Result<(), BackendError> {
        let bits = index.get_type().get_bit_width();
        let narrow_len = match len.get_zero_extended_constant() {
            // A known length is compared in the type of the index where it fits.
            Some(known) if known < 1 << 31 => self.types().int(32).const_int(known, false),
            _ => len,
        };
        let width = bits.max(narrow_len.get_type().get_bit_width());
        let wide = self.resize(index, width, signed)?;
        let mut limit = self.resize(narrow_len, width, false)?;
        if signed && width == 32 && !limit.is_constant_int() {
            let cap = limit.get_type().const_int(1 << 31, false);
            let ty = limit.get_type().into();
            let capped = self.llvm_value("llvm.umin", &[ty], &[limit.into(), cap.into()])?;
            limit = capped.into_int_value();
        }
        let in_bounds =
            self.builder()
                .build_int_compare(IntPredicate::ULT, wide, limit, "in_bounds")?;
        if in_bounds.get_zero_extended_constant() == Some(1) {
            return Ok(());
        }
        let next = self.unless_likely(in_bounds, ["in_bounds", "out_of_bounds"])?;
        let index = self.resize(index, 64, signed)?;
        let len = self.resize(len, 64, false)?;
        self.call_fault(inst, index, len)?;
        self.builder().position_at_end(next);
        Ok(())
    }

    /// Goes to the first of two new blocks if a condition holds, as it nearly always does; the builder is left in the
    /// second. Gives the first.
    fn unless_likely(
        &self,
        holds: IntValue<'ctx>,
        names: [&str; 2],
    ) -> Result<BasicBlock<'ctx>, BackendError> {
        let [next, otherwise] = names.map(|name| self.append_block(name));
        let branch = self
            .builder()
            .build_conditional_branch(holds, next, otherwise)?;
        let int = self.types().int(32);
        let weights = self.context().metadata_node(&[
            self.context().metadata_string("branch_weights").into(),
            int.const_int(IN_BOUNDS_WEIGHT, false).into(),
            int.const_int(1, false).into(),
        ]);
        // Only a string is refused here.
        let _ = branch.set_metadata(weights, self.context().get_kind_id("prof"));
        self.builder().position_at_end(otherwise);
        Ok(next)
    }

    /// Ends the thread if a condition does not hold; unchecked, tells LLVM that it does.
    pub(super) fn lower_assume(
        &mut self,
        inst: Inst,
        cond: Value,
        checked: bool,
    ) -> Result<(), BackendError> {
        if checked {
            return self.lower_assert(inst, cond, None);
        }
        let holds = self.one(cond).into_int_value();
        self.call_llvm("llvm.assume", &[], &[holds.into()])?;
        Ok(())
    }

    /// Ends the thread if a condition does not hold, and leaves two values in the record.
    pub(super) fn lower_assert(
        &mut self,
        inst: Inst,
        cond: Value,
        values: Option<[Value; 2]>,
    ) -> Result<(), BackendError> {
        let mut holds = self.one(cond).into_int_value();
        if self.provenance.may_race(cond) {
            holds = build_freeze(self.builder(), holds.into()).into_int_value();
        }
        let next = self.unless_likely(holds, ["assumed", "not_as_assumed"])?;
        let none = self.types().int(64).const_zero();
        let [left, right] = match values {
            None => [none, none],
            Some([left, right]) => [self.bits(left)?, self.bits(right)?],
        };
        self.call_fault(inst, left, right)?;
        self.builder().position_at_end(next);
        Ok(())
    }

    /// The bits of a number or a bool, zero-extended.
    fn bits(&self, value: Value) -> Result<IntValue<'ctx>, BackendError> {
        let scalar = self.scalar_of(value);
        let number = match scalar.is_float() {
            true => {
                let bits = self.types().int(scalar.bits());
                self.builder().build_bit_cast(self.one(value), bits, "")?
            }
            false => self.one(value),
        };
        let long = self.types().int(64);
        let number = number.into_int_value();
        Ok(self
            .builder()
            .build_int_z_extend_or_bit_cast(number, long, "")?)
    }
}
