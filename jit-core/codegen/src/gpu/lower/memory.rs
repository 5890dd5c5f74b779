//! Loads, stores, variables, addresses of fields and elements, and aggregates.

use inkwell::values::{BasicValue as _, BasicValueEnum, InstructionValue, PointerValue};

use kiln_ir::{Inst, Type, Value, Var};

use super::FunctionLowering;
use super::function::VarSlot;
use super::value::{Lowered, undef};
use crate::llvm::bindings::{Wrap, build_gep};
use crate::llvm::error::BackendError;

/// Where the length of a slice in memory lies, in bytes after its address.
const SLICE_LENGTH_OFFSET: u64 = 8;

impl<'ctx> FunctionLowering<'_, 'ctx> {
    /// Reads a value of type `ty`. `unchanging` says that nobody writes there while the kernel
    /// runs, which allows `ld.global.nc`.
    pub(super) fn load(
        &self,
        address: PointerValue<'ctx>,
        ty: Type,
        volatile: bool,
        unchanging: bool,
    ) -> Result<Lowered<'ctx>, BackendError> {
        let read = |ty, address, align: u32| -> Result<BasicValueEnum<'ctx>, BackendError> {
            let value = self
                .builder()
                .build_load::<inkwell::types::BasicTypeEnum<'ctx>>(ty, address, "")?;
            if let Some(load) = value.as_instruction_value() {
                describe_access(load, align, volatile);
                if unchanging {
                    let kind = self.context().get_kind_id("invariant.load");
                    // Only a string is refused here.
                    let _ = load.set_metadata(self.context().metadata_node(&[]), kind);
                }
            }
            Ok(value)
        };
        if let Some((at, wide)) = self.types().table().as_slice(ty) {
            let ptr = read(self.types().pointer(at.space).into(), address, 8)?.into_pointer_value();
            let at = self.bytes_after(address, SLICE_LENGTH_OFFSET);
            let len = read(self.types().int(64).into(), at, 8)?.into_int_value();
            let len_type = self.types().slice_length(wide);
            let len = self
                .builder()
                .build_int_truncate_or_bit_cast(len, len_type, "")?;
            return Ok(Lowered::Slice(ptr, len));
        }
        let align = self.types().layout(ty).align as u32;
        let value = read(self.types().access(ty)?, address, align)?;
        if ty == Type::BOOL {
            return self.value_from_memory(value, ty);
        }
        Ok(Lowered::One(value))
    }

    pub(super) fn lower_store(
        &self,
        ptr: Value,
        value: Value,
        volatile: bool,
    ) -> Result<(), BackendError> {
        let address = self.pointer(ptr);
        let ty = self.type_of(value);
        let value = self.get(value);
        if let Lowered::Slice(ptr, len) = value {
            let int = self.types().int(64);
            let len = self
                .builder()
                .build_int_z_extend_or_bit_cast(len, int, "")?;
            describe_access(self.builder().build_store(address, ptr)?, 8, volatile);
            let at = self.bytes_after(address, SLICE_LENGTH_OFFSET);
            describe_access(self.builder().build_store(at, len)?, 8, volatile);
            return Ok(());
        }
        let value = if ty == Type::BOOL {
            self.to_memory(value, ty)?
        } else {
            value.one()
        };
        let align = self.types().layout(ty).align as u32;
        describe_access(self.builder().build_store(address, value)?, align, volatile);
        Ok(())
    }

    /// The address some bytes further on, in the same object.
    pub(super) fn bytes_after(&self, ptr: PointerValue<'ctx>, bytes: u64) -> PointerValue<'ctx> {
        let byte = self.types().int(8).into();
        let index = self.types().int(64).const_int(bytes, false);
        build_gep(self.builder(), byte, ptr, &[index], Wrap::InBoundsForward)
    }

    pub(super) fn lower_var_get(&self, var: Var) -> Result<Lowered<'ctx>, BackendError> {
        let ty = self.function.vars[var].ty;
        let read = |ty, slot| {
            self.builder()
                .build_load::<inkwell::types::BasicTypeEnum<'ctx>>(ty, slot, "")
        };
        match self.var(var) {
            VarSlot::One(slot) => Ok(Lowered::One(read(self.types().value(ty)?, slot)?)),
            VarSlot::Slice(ptr, len) => {
                let (at, wide) = self.types().table().slice_of(ty);
                let ptr = read(self.types().pointer(at.space).into(), ptr)?;
                let len = read(self.types().slice_length(wide).into(), len)?;
                Ok(Lowered::Slice(
                    ptr.into_pointer_value(),
                    len.into_int_value(),
                ))
            }
        }
    }

    pub(super) fn lower_var_set(&self, var: Var, value: Value) -> Result<(), BackendError> {
        match self.var(var) {
            VarSlot::One(slot) => {
                self.builder().build_store(slot, self.one(value))?;
            }
            VarSlot::Slice(ptr_slot, len_slot) => {
                let (ptr, len) = self.get(value).slice();
                self.builder().build_store(ptr_slot, ptr)?;
                self.builder().build_store(len_slot, len)?;
            }
        }
        Ok(())
    }

    pub(super) fn lower_ptr_offset(
        &self,
        ptr: Value,
        index: Value,
    ) -> Result<BasicValueEnum<'ctx>, BackendError> {
        let pointee = self.pointee(ptr);
        let index = self.wide_index(index)?;
        let element = self.types().memory(pointee)?;
        let base = self.pointer(ptr);
        Ok(build_gep(self.builder(), element, base, &[index], Wrap::Unknown).into())
    }

    pub(super) fn lower_field_ptr(
        &self,
        ptr: Value,
        field: u32,
    ) -> Result<BasicValueEnum<'ctx>, BackendError> {
        let pointee = self.types().memory(self.pointee(ptr))?;
        let int = self.types().int(32);
        let path = [int.const_zero(), int.const_int(field.into(), false)];
        let base = self.pointer(ptr);
        Ok(build_gep(self.builder(), pointee, base, &path, Wrap::InBoundsForward).into())
    }

    pub(super) fn lower_element_ptr(
        &mut self,
        inst: Inst,
        ptr: Value,
        index: Value,
        checked: bool,
    ) -> Result<BasicValueEnum<'ctx>, BackendError> {
        let whole = self.pointee(ptr);
        let (element, len) = self.types().table().indexed_of(whole);
        let length = self.types().int(64).const_int(len, false);
        let (index, wrap) = self.checked_index(inst, index, length, checked)?;
        let base = self.pointer(ptr);
        // LLVM has no addresses of lanes, but lanes lie as numbers do.
        if self.types().table().as_vector(whole).is_some() {
            let lane = self.types().memory(element)?;
            return Ok(build_gep(self.builder(), lane, base, &[index], wrap).into());
        }
        let path = [self.types().int(64).const_zero(), index];
        let array = self.types().memory(whole)?;
        Ok(build_gep(self.builder(), array, base, &path, wrap).into())
    }

    pub(super) fn lower_local_alloc(
        &mut self,
        inst: Inst,
        result: Type,
    ) -> Result<BasicValueEnum<'ctx>, BackendError> {
        let pointee = self.types().table().pointee_of(result);
        let local = match self.locals.get(&inst) {
            Some(&known) => known,
            None => self.local_memory(pointee)?,
        };
        self.locals.insert(inst, local);
        if self.zeroed.contains(&inst) {
            let layout = self.types().layout(pointee);
            let zero = self.context().i8_type().const_zero();
            let size = self.context().i64_type().const_int(layout.size, false);
            self.builder()
                .build_memset(local, layout.align as u32, zero, size)?;
        }
        Ok(local.into())
    }

    fn pointee(&self, ptr: Value) -> Type {
        self.types().table().pointee_of(self.type_of(ptr))
    }

    pub(super) fn lower_construct(
        &self,
        parts: &[Value],
        result: Type,
    ) -> Result<Lowered<'ctx>, BackendError> {
        if self.types().table().as_vector(result).is_some() {
            let mut vector = undef(self.types().value(result)?).into_vector_value();
            for (lane, &part) in (0..).zip(parts) {
                vector = self.with_lane(vector, lane, self.one(part))?;
            }
            return Ok(Lowered::One(vector.into()));
        }
        let mut aggregate = undef(self.types().memory(result)?);
        for (index, &part) in (0..).zip(parts) {
            let part = self.to_memory(self.get(part), self.type_of(part))?;
            aggregate = self.insert_part(aggregate, part, index)?;
        }
        Ok(Lowered::One(aggregate))
    }

    pub(super) fn lower_extract(
        &self,
        aggregate: Value,
        index: u32,
        result: Type,
    ) -> Result<Lowered<'ctx>, BackendError> {
        let aggregate = self.one(aggregate);
        if let BasicValueEnum::VectorValue(vector) = aggregate {
            return Ok(Lowered::One(self.lane(vector, index)?));
        }
        let part = self.extract_part(aggregate, index)?;
        self.value_from_memory(part, result)
    }

    pub(super) fn lower_insert(
        &self,
        aggregate: Value,
        index: u32,
        value: Value,
    ) -> Result<BasicValueEnum<'ctx>, BackendError> {
        let aggregate = self.one(aggregate);
        if let BasicValueEnum::VectorValue(vector) = aggregate {
            let lane = self.one(value);
            return Ok(self.with_lane(vector, index, lane)?.into());
        }
        let part = self.to_memory(self.get(value), self.type_of(value))?;
        self.insert_part(aggregate, part, index)
    }

    /// The size of `ty` in memory, in bytes.
    pub(super) fn byte_size(&self, ty: Type) -> u64 {
        self.types().table().layout_of(ty).size
    }

    /// Whether the integer operand's type is signed.
    pub(super) fn is_signed(&self, value: Value) -> bool {
        self.scalar_of(value).is_signed_int()
    }
}

/// Alignment and volatility of a load or store. Alignments are powers of two and the instruction is
/// an access, which is all that LLVM's setters can refuse.
fn describe_access(access: InstructionValue<'_>, align: u32, volatile: bool) {
    let _ = access.set_alignment(align);
    if volatile {
        let _ = access.set_volatile(true);
    }
}
