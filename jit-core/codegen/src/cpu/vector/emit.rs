//! LLVM instructions on values that may be scalars or vectors: what inkwell's typed builder does
//! not do in one call for both.
//!
//! All values are of the context and module being built, on the compile thread. Nothing here knows
//! the IR.

use std::cell::Cell;
use std::num::NonZeroU32;

use inkwell::attributes::{Attribute, AttributeLoc};
use inkwell::basic_block::BasicBlock;
use inkwell::builder::Builder;
use inkwell::context::Context;
use inkwell::llvm_sys::core::{
    LLVMBuildFCmp, LLVMBuildGEP2, LLVMBuildICmp, LLVMBuildSelect, LLVMBuildShuffleVector,
    LLVMConstVector, LLVMGetPoison,
};
use inkwell::module::Module as LlvmModule;
use inkwell::types::{AsTypeRef as _, BasicTypeEnum, IntType, VectorType};
use inkwell::values::{
    AsValueRef as _, BasicValue as _, BasicValueEnum, CallSiteValue, FastMathFlags, FunctionValue,
    InstructionOpcode, IntValue, PointerValue, VectorValue,
};
use inkwell::{AtomicOrdering, FloatPredicate, IntPredicate};

use crate::hooks::LoweringHooks;
use crate::llvm::ask::{call_arguments, declared, value_of};
use crate::llvm::error::BackendError;
use crate::llvm::unrolled::LeftAsLoop;

/// A builder for `lanes` lanes.
pub(super) struct Emit<'a, 'ctx> {
    pub(super) context: &'ctx Context,
    pub(super) module: &'a LlvmModule<'ctx>,
    pub(super) builder: Builder<'ctx>,
    pub(super) lanes: u32,
    /// Who may lower operations instead.
    pub(super) hooks: &'a dyn LoweringHooks,
    /// A loop that is left as one though it asks to be unrolled.
    pub(super) left_as_loop: &'a Cell<Option<LeftAsLoop>>,
}

pub(super) type Built<'ctx> = Result<BasicValueEnum<'ctx>, BackendError>;

/// An error for what the analyses should have excluded. What the verifier has proved needs none
/// ([`Proved`](kiln_ir::legal::Proved)).
pub(super) fn unexpected(what: &str) -> BackendError {
    BackendError::new("vectorize", format!("{what}; this is a bug in Kiln"))
}

impl<'ctx> Emit<'_, 'ctx> {
    /// The integer type of a width in bits: 1, 8, 16, 32 or 64.
    pub(super) fn int(&self, bits: u32) -> IntType<'ctx> {
        match bits {
            1 => self.context.bool_type(),
            8 => self.context.i8_type(),
            16 => self.context.i16_type(),
            32 => self.context.i32_type(),
            128 => self.context.i128_type(),
            _ => self.context.i64_type(),
        }
    }

    /// A 32-bit constant.
    pub(super) fn i32(&self, value: u32) -> IntValue<'ctx> {
        self.int(32).const_int(value.into(), false)
    }

    /// A 64-bit constant.
    pub(super) fn i64(&self, value: i64) -> IntValue<'ctx> {
        self.int(64).const_int(value as u64, true)
    }

    /// A bool in all lanes, made as a number whose bits are all the same: combining several of these
    /// is scalar arithmetic, where instruction selection would go through vectors of bytes.
    fn splat_bool(&self, scalar: BasicValueEnum<'ctx>) -> Result<VectorValue<'ctx>, BackendError> {
        let bits = self.cast(InstructionOpcode::SExt, scalar, self.bits_type()?.into())?;
        let mask = self.builder.build_bit_cast(bits, self.mask_type(), "")?;
        Ok(mask.into_vector_value())
    }

    /// The vector of all lanes.
    pub(super) fn vector_of(&self, scalar: BasicTypeEnum<'ctx>) -> VectorType<'ctx> {
        self.vector(scalar, self.lanes)
    }

    /// The vector of some lanes.
    pub(super) fn vector(&self, scalar: BasicTypeEnum<'ctx>, lanes: u32) -> VectorType<'ctx> {
        match scalar {
            BasicTypeEnum::IntType(t) => t.vec_type(lanes),
            BasicTypeEnum::FloatType(t) => t.vec_type(lanes),
            BasicTypeEnum::PointerType(t) => t.vec_type(lanes),
            // Leaves are numbers and pointers.
            _ => self.int(64).vec_type(lanes),
        }
    }

    /// The type of a lane of `like`'s kind: `scalar`, or a vector of it if `like` is a vector.
    pub(super) fn shaped(
        &self,
        scalar: BasicTypeEnum<'ctx>,
        like: BasicValueEnum<'ctx>,
    ) -> BasicTypeEnum<'ctx> {
        if like.is_vector_value() {
            self.vector_of(scalar).into()
        } else {
            scalar
        }
    }

    /// Has LLVM say how much stack a function takes, with a diagnostic that
    /// [`crate::llvm::session::stack_bytes`] reads.
    pub(super) fn report_stack(&self, function: FunctionValue<'ctx>) {
        let attribute = self.context.create_string_attribute("warn-stack-size", "0");
        function.add_attribute(AttributeLoc::Function, attribute);
    }

    /// Whether control has left the current place.
    pub(super) fn has_left(&self) -> bool {
        let block = self.builder.get_insert_block();
        block.is_none_or(|block| block.get_terminator().is_some())
    }

    /// Goes on in a block, unless control has left.
    pub(super) fn jump(&self, to: BasicBlock<'ctx>) -> Result<(), BackendError> {
        if !self.has_left() {
            self.builder.build_unconditional_branch(to)?;
        }
        Ok(())
    }

    /// Branches to `yes`, as nearly always.
    pub(super) fn likely(
        &self,
        cond: IntValue<'ctx>,
        yes: BasicBlock<'ctx>,
        no: BasicBlock<'ctx>,
    ) -> Result<(), BackendError> {
        let branch = self.builder.build_conditional_branch(cond, yes, no)?;
        let weights = self.context.metadata_node(&[
            self.context.metadata_string("branch_weights").into(),
            self.i32(1 << 20).into(),
            self.i32(1).into(),
        ]);
        let kind = self.context.get_kind_id("prof");
        // Only a string is refused here.
        let _ = branch.set_metadata(weights, kind);
        Ok(())
    }

    /// Zeros in `bytes` bytes of memory, which is aligned to `align`.
    pub(super) fn clear(
        &self,
        at: PointerValue<'ctx>,
        align: u32,
        bytes: IntValue<'ctx>,
    ) -> Result<(), BackendError> {
        let zero = self.int(8).const_zero();
        self.builder.build_memset(at, align, zero, bytes)?;
        Ok(())
    }

    /// A constant of `like`'s shape.
    pub(super) fn int_like(&self, value: u64, like: BasicValueEnum<'ctx>) -> BasicValueEnum<'ctx> {
        match like.get_type() {
            BasicTypeEnum::VectorType(vector) => {
                let ty = vector.get_element_type().into_int_type();
                self.const_lanes(ty, |_| value).into()
            }
            ty => ty.into_int_type().const_int(value, false).into(),
        }
    }

    /// A constant vector of integers.
    pub(super) fn const_lanes(
        &self,
        ty: IntType<'ctx>,
        value: impl Fn(u32) -> u64,
    ) -> VectorValue<'ctx> {
        let mut lanes: Vec<_> = (0..self.lanes)
            .map(|lane| ty.const_int(value(lane), false).as_value_ref())
            .collect();
        // SAFETY: constants of one type and context.
        unsafe { VectorValue::new(LLVMConstVector(lanes.as_mut_ptr(), self.lanes)) }
    }

    /// One scalar in all lanes.
    pub(super) fn splat(
        &self,
        scalar: BasicValueEnum<'ctx>,
    ) -> Result<VectorValue<'ctx>, BackendError> {
        if scalar.is_int_value() && self.int_bits(scalar) == 1 && self.lanes > 1 {
            return self.splat_bool(scalar);
        }
        let ty = self.vector_of(scalar.get_type());
        // SAFETY: types and values of this context; the mask has one element a lane.
        let poison = unsafe { VectorValue::new(LLVMGetPoison(ty.as_type_ref())) };
        let first = self
            .builder
            .build_insert_element(poison, scalar, self.i32(0), "")?;
        let zero = self.int(32).vec_type(self.lanes).const_zero();
        // SAFETY: as above.
        Ok(unsafe {
            VectorValue::new(LLVMBuildShuffleVector(
                self.builder.as_mut_ptr(),
                first.as_value_ref(),
                poison.as_value_ref(),
                zero.as_value_ref(),
                c"".as_ptr(),
            ))
        })
    }

    /// Two values in one shape: vectors if one of them is.
    pub(super) fn same_shape(
        &self,
        a: BasicValueEnum<'ctx>,
        b: BasicValueEnum<'ctx>,
    ) -> Result<(BasicValueEnum<'ctx>, BasicValueEnum<'ctx>), BackendError> {
        Ok(match (a.is_vector_value(), b.is_vector_value()) {
            (true, false) => (a, self.splat(b)?.into()),
            (false, true) => (self.splat(a)?.into(), b),
            _ => (a, b),
        })
    }

    /// A binary operation, lane by lane.
    pub(super) fn binary(
        &self,
        opcode: InstructionOpcode,
        a: BasicValueEnum<'ctx>,
        b: BasicValueEnum<'ctx>,
    ) -> Built<'ctx> {
        let (a, b) = self.same_shape(a, b)?;
        Ok(self.builder.build_binop(opcode, a, b, "")?)
    }

    /// A sum, a difference or a product of floats with LLVM's flags.
    pub(super) fn float_binary(
        &self,
        opcode: InstructionOpcode,
        a: BasicValueEnum<'ctx>,
        b: BasicValueEnum<'ctx>,
        flags: FastMathFlags,
    ) -> Built<'ctx> {
        let value = self.binary(opcode, a, b)?;
        if let Some(instruction) = value.as_instruction_value() {
            // Float operations take the flags, which is all that can be refused.
            let _ = instruction.set_fast_math_flags(flags);
        }
        Ok(value)
    }

    pub(super) fn add(&self, a: BasicValueEnum<'ctx>, b: BasicValueEnum<'ctx>) -> Built<'ctx> {
        self.binary(InstructionOpcode::Add, a, b)
    }

    pub(super) fn sub(&self, a: BasicValueEnum<'ctx>, b: BasicValueEnum<'ctx>) -> Built<'ctx> {
        self.binary(InstructionOpcode::Sub, a, b)
    }

    pub(super) fn mul(&self, a: BasicValueEnum<'ctx>, b: BasicValueEnum<'ctx>) -> Built<'ctx> {
        self.binary(InstructionOpcode::Mul, a, b)
    }

    pub(super) fn and(&self, a: BasicValueEnum<'ctx>, b: BasicValueEnum<'ctx>) -> Built<'ctx> {
        self.binary(InstructionOpcode::And, a, b)
    }

    pub(super) fn or(&self, a: BasicValueEnum<'ctx>, b: BasicValueEnum<'ctx>) -> Built<'ctx> {
        self.binary(InstructionOpcode::Or, a, b)
    }

    /// Two words as one number of 128 bits, the low one first.
    pub(super) fn of_halves(&self, [low, high]: [BasicValueEnum<'ctx>; 2]) -> Built<'ctx> {
        let (low, high) = (
            self.resize(low, 128, false)?,
            self.resize(high, 128, false)?,
        );
        let high = self.binary(InstructionOpcode::Shl, high, self.int_like(64, high))?;
        self.or(low, high)
    }

    /// The low and the high word of a number of 128 bits.
    pub(super) fn halves(
        &self,
        whole: BasicValueEnum<'ctx>,
    ) -> Result<[BasicValueEnum<'ctx>; 2], BackendError> {
        let high = self.binary(InstructionOpcode::LShr, whole, self.int_like(64, whole))?;
        Ok([
            self.resize(whole, 64, false)?,
            self.resize(high, 64, false)?,
        ])
    }

    /// The complement of all bits.
    pub(super) fn not(&self, value: BasicValueEnum<'ctx>) -> Built<'ctx> {
        self.binary(
            InstructionOpcode::Xor,
            value,
            self.int_like(u64::MAX, value),
        )
    }

    /// An integer or pointer comparison, lane by lane.
    pub(super) fn icmp(
        &self,
        predicate: IntPredicate,
        a: BasicValueEnum<'ctx>,
        b: BasicValueEnum<'ctx>,
    ) -> Built<'ctx> {
        let (a, b) = self.same_shape(a, b)?;
        // SAFETY: both operands have one type; the builder is positioned. The result is a bool or a
        // vector of them.
        Ok(unsafe {
            BasicValueEnum::new(LLVMBuildICmp(
                self.builder.as_mut_ptr(),
                predicate.into(),
                a.as_value_ref(),
                b.as_value_ref(),
                c"".as_ptr(),
            ))
        })
    }

    /// A float comparison, lane by lane.
    pub(super) fn fcmp(
        &self,
        predicate: FloatPredicate,
        a: BasicValueEnum<'ctx>,
        b: BasicValueEnum<'ctx>,
    ) -> Built<'ctx> {
        let (a, b) = self.same_shape(a, b)?;
        // SAFETY: as in `icmp`.
        Ok(unsafe {
            BasicValueEnum::new(LLVMBuildFCmp(
                self.builder.as_mut_ptr(),
                predicate.into(),
                a.as_value_ref(),
                b.as_value_ref(),
                c"".as_ptr(),
            ))
        })
    }

    /// `a` or `b`; the condition may be a scalar for vectors.
    pub(super) fn select(
        &self,
        cond: BasicValueEnum<'ctx>,
        a: BasicValueEnum<'ctx>,
        b: BasicValueEnum<'ctx>,
    ) -> Built<'ctx> {
        let (mut a, mut b) = self.same_shape(a, b)?;
        if cond.is_vector_value() && !a.is_vector_value() {
            a = self.splat(a)?.into();
            b = self.splat(b)?.into();
        }
        // SAFETY: both values have one type, and a vector condition has as many lanes.
        Ok(unsafe {
            BasicValueEnum::new(LLVMBuildSelect(
                self.builder.as_mut_ptr(),
                cond.as_value_ref(),
                a.as_value_ref(),
                b.as_value_ref(),
                c"".as_ptr(),
            ))
        })
    }

    /// A conversion to `to`, lane by lane.
    pub(super) fn cast(
        &self,
        opcode: InstructionOpcode,
        value: BasicValueEnum<'ctx>,
        to: BasicTypeEnum<'ctx>,
    ) -> Built<'ctx> {
        let to = self.shaped(to, value);
        if value.get_type() == to {
            return Ok(value);
        }
        Ok(self.builder.build_cast(opcode, value, to, "")?)
    }

    /// The width of an integer, or of the lanes of a vector of them.
    pub(super) fn int_bits(&self, value: BasicValueEnum<'ctx>) -> u32 {
        match value.get_type() {
            BasicTypeEnum::VectorType(v) => match v.get_element_type() {
                BasicTypeEnum::IntType(t) => t.get_bit_width(),
                _ => 0,
            },
            BasicTypeEnum::IntType(t) => t.get_bit_width(),
            _ => 0,
        }
    }

    /// An integer in another width.
    pub(super) fn resize(
        &self,
        value: BasicValueEnum<'ctx>,
        bits: u32,
        signed: bool,
    ) -> Built<'ctx> {
        let from = self.int_bits(value);
        let opcode = match (from.cmp(&bits), signed) {
            (std::cmp::Ordering::Equal, _) => return Ok(value),
            (std::cmp::Ordering::Greater, _) => InstructionOpcode::Trunc,
            (std::cmp::Ordering::Less, true) => InstructionOpcode::SExt,
            (std::cmp::Ordering::Less, false) => InstructionOpcode::ZExt,
        };
        self.cast(opcode, value, self.int(bits).into())
    }

    /// The address of an element of `size` bytes; array and index may be vectors.
    pub(super) fn element(
        &self,
        base: BasicValueEnum<'ctx>,
        index: BasicValueEnum<'ctx>,
        size: u64,
    ) -> Built<'ctx> {
        match size {
            // What an access multiplies by itself: it is found in the type of the element.
            2 | 4 | 8 => Ok(self.steps(base, index, self.int(8 * size as u32))),
            _ => self.offset(base, self.mul(index, self.int_like(size, index))?),
        }
    }

    /// The address some bytes after `base`; either may be a vector.
    pub(super) fn offset(
        &self,
        base: BasicValueEnum<'ctx>,
        bytes: BasicValueEnum<'ctx>,
    ) -> Built<'ctx> {
        Ok(self.steps(base, bytes, self.int(8)))
    }

    /// The address that many integers of a type after `base`; either may be a vector.
    fn steps(
        &self,
        base: BasicValueEnum<'ctx>,
        count: BasicValueEnum<'ctx>,
        step: IntType<'ctx>,
    ) -> BasicValueEnum<'ctx> {
        let mut index = [count.as_value_ref()];
        // SAFETY: a pointer or vector of pointers and 64-bit integers; an integer has a size. The
        // result is a pointer, or a vector of pointers if one operand is a vector.
        unsafe {
            BasicValueEnum::new(LLVMBuildGEP2(
                self.builder.as_mut_ptr(),
                step.as_type_ref(),
                base.as_value_ref(),
                index.as_mut_ptr(),
                1,
                c"".as_ptr(),
            ))
        }
    }

    /// The address a constant number of bytes after `base`.
    pub(super) fn offset_const(
        &self,
        base: PointerValue<'ctx>,
        bytes: u64,
    ) -> Result<PointerValue<'ctx>, BackendError> {
        if bytes == 0 {
            return Ok(base);
        }
        Ok(self
            .offset(base.into(), self.i64(bytes as i64).into())?
            .into_pointer_value())
    }

    /// A lane of a vector, by constant or computed index.
    pub(super) fn lane(&self, vector: VectorValue<'ctx>, lane: IntValue<'ctx>) -> Built<'ctx> {
        Ok(self.builder.build_extract_element(vector, lane, "")?)
    }

    /// The lanes of a vector in another order: each lane gets the one that `source` names for it.
    pub(super) fn permute(
        &self,
        vector: VectorValue<'ctx>,
        source: impl Fn(u32) -> u32,
    ) -> Result<VectorValue<'ctx>, BackendError> {
        let order = self.const_lanes(self.int(32), |lane| source(lane).into());
        Ok(self
            .builder
            .build_shuffle_vector(vector, vector, order, "")?)
    }

    /// The place of the lowest bit that is set; the width if none is.
    pub(super) fn lowest_bit(&self, bits: IntValue<'ctx>) -> Result<IntValue<'ctx>, BackendError> {
        let no_poison = self.int(1).const_zero().into();
        let place = self.value(
            "llvm.cttz",
            &[bits.get_type().into()],
            &[bits.into(), no_poison],
        )?;
        Ok(place.into_int_value())
    }

    /// Calls an LLVM intrinsic; `overloads` are the types that select it.
    pub(super) fn call(
        &self,
        name: &str,
        overloads: &[BasicTypeEnum<'ctx>],
        args: &[BasicValueEnum<'ctx>],
    ) -> Result<CallSiteValue<'ctx>, BackendError> {
        let function = declared(self.module, name, overloads)?;
        Ok(self
            .builder
            .build_call(function, &call_arguments(args), "")?)
    }

    /// Calls an LLVM intrinsic that gives a value.
    pub(super) fn value(
        &self,
        name: &str,
        overloads: &[BasicTypeEnum<'ctx>],
        args: &[BasicValueEnum<'ctx>],
    ) -> Built<'ctx> {
        value_of(self.call(name, overloads, args)?, name)
    }

    /// Reads a scalar or a vector.
    pub(super) fn load(
        &self,
        ty: BasicTypeEnum<'ctx>,
        address: PointerValue<'ctx>,
        align: u32,
        volatile: bool,
    ) -> Built<'ctx> {
        let value = self.builder.build_load(ty, address, "")?;
        if let Some(load) = value.as_instruction_value() {
            // Powers of two, on an access: nothing that LLVM's setters refuse.
            let _ = load.set_alignment(align);
            let _ = load.set_volatile(volatile);
        }
        Ok(value)
    }

    /// Writes a scalar or a vector.
    pub(super) fn store(
        &self,
        address: PointerValue<'ctx>,
        value: BasicValueEnum<'ctx>,
        align: u32,
        volatile: bool,
    ) -> Result<(), BackendError> {
        let store = self.builder.build_store(address, value)?;
        // As in `load`.
        let _ = store.set_alignment(align);
        let _ = store.set_volatile(volatile);
        Ok(())
    }

    /// Reads an integer atomically; without an order only as one that no other thread of the host
    /// can reach.
    pub(super) fn load_atomic(
        &self,
        ty: IntType<'ctx>,
        address: PointerValue<'ctx>,
        order: Option<AtomicOrdering>,
    ) -> Built<'ctx> {
        let value = self.load(ty.into(), address, ty.get_bit_width() / 8, false)?;
        if let (Some(load), Some(order)) = (value.as_instruction_value(), order) {
            // Orders of loads, on a load: nothing that LLVM's setter refuses.
            let _ = load.set_atomic_ordering(order);
        }
        Ok(value)
    }

    /// Writes an integer atomically; as [`Emit::load_atomic`].
    pub(super) fn store_atomic(
        &self,
        address: PointerValue<'ctx>,
        value: BasicValueEnum<'ctx>,
        align: u32,
        order: Option<AtomicOrdering>,
    ) -> Result<(), BackendError> {
        let store = self.builder.build_store(address, value)?;
        let _ = store.set_alignment(align);
        if let Some(order) = order {
            let _ = store.set_atomic_ordering(order);
        }
        Ok(())
    }

    /// The type of a mask.
    pub(super) fn mask_type(&self) -> VectorType<'ctx> {
        self.int(1).vec_type(self.lanes)
    }

    /// The integer with a bit for each lane.
    fn bits_type(&self) -> Result<IntType<'ctx>, BackendError> {
        let lanes = NonZeroU32::new(self.lanes).unwrap_or(NonZeroU32::MIN);
        let ty = self.context.custom_width_int_type(lanes);
        ty.map_err(|e| BackendError::new("vectorize", e))
    }

    /// The integer that holds a mask in memory and in loops over its lanes: of 32 bits or, for
    /// more lanes, as many bits as there are lanes.
    pub(super) fn mask_word(&self) -> Result<IntType<'ctx>, BackendError> {
        if self.lanes <= 32 {
            return Ok(self.int(32));
        }
        self.bits_type()
    }

    /// A mask as a [`Self::mask_word`], lane 0 the lowest bit.
    pub(super) fn mask_as_word(
        &self,
        mask: VectorValue<'ctx>,
    ) -> Result<IntValue<'ctx>, BackendError> {
        let bits = self.mask_bits(mask)?;
        let word = self.mask_word()?;
        Ok(self
            .builder
            .build_int_z_extend_or_bit_cast(bits, word, "")?)
    }

    /// A mask as an integer, lane 0 the lowest bit.
    pub(super) fn mask_bits(
        &self,
        mask: VectorValue<'ctx>,
    ) -> Result<IntValue<'ctx>, BackendError> {
        let ty = self.bits_type()?;
        Ok(self.builder.build_bit_cast(mask, ty, "")?.into_int_value())
    }

    /// The mask whose bits are the lowest of an integer.
    pub(super) fn mask_from_bits(
        &self,
        bits: BasicValueEnum<'ctx>,
    ) -> Result<VectorValue<'ctx>, BackendError> {
        let ty = self.bits_type()?;
        let bits = if self.lanes < 32 {
            self.cast(InstructionOpcode::Trunc, bits, ty.into())?
        } else {
            bits
        };
        let mask = self.builder.build_bit_cast(bits, self.mask_type(), "")?;
        Ok(mask.into_vector_value())
    }

    /// Whether a lane of a mask is on.
    pub(super) fn any(&self, mask: VectorValue<'ctx>) -> Result<IntValue<'ctx>, BackendError> {
        let bits = self.mask_bits(mask)?;
        let zero = bits.get_type().const_zero();
        Ok(self
            .builder
            .build_int_compare(IntPredicate::NE, bits, zero, "")?)
    }

    /// The intrinsics of masked accesses take the alignment as an attribute of the address.
    fn masked(
        &self,
        name: &str,
        overloads: &[BasicTypeEnum<'ctx>],
        args: &[BasicValueEnum<'ctx>],
        (address, align): (u32, u32),
    ) -> Result<CallSiteValue<'ctx>, BackendError> {
        let call = self.call(name, overloads, args)?;
        let kind = Attribute::get_named_enum_kind_id("align");
        let attribute = self.context.create_enum_attribute(kind, align.into());
        call.add_attribute(AttributeLoc::Param(address), attribute);
        Ok(call)
    }

    /// Reads neighbouring elements in active lanes; the others are zero.
    pub(super) fn masked_load(
        &self,
        ty: VectorType<'ctx>,
        at: PointerValue<'ctx>,
        align: u32,
        mask: VectorValue<'ctx>,
    ) -> Built<'ctx> {
        let overloads = [ty.into(), at.get_type().into()];
        let args = [at.into(), mask.into(), ty.const_zero().into()];
        let name = "llvm.masked.load";
        value_of(self.masked(name, &overloads, &args, (0, align))?, name)
    }

    /// Writes neighbouring elements in active lanes.
    pub(super) fn masked_store(
        &self,
        value: VectorValue<'ctx>,
        at: PointerValue<'ctx>,
        align: u32,
        mask: VectorValue<'ctx>,
    ) -> Result<(), BackendError> {
        let overloads = [value.get_type().into(), at.get_type().into()];
        let args = [value.into(), at.into(), mask.into()];
        self.masked("llvm.masked.store", &overloads, &args, (1, align))?;
        Ok(())
    }

    /// Reads an element in each active lane; the others are zero.
    pub(super) fn gather(
        &self,
        ty: VectorType<'ctx>,
        addresses: VectorValue<'ctx>,
        align: u32,
        mask: VectorValue<'ctx>,
    ) -> Built<'ctx> {
        let overloads = [ty.into(), addresses.get_type().into()];
        let args = [addresses.into(), mask.into(), ty.const_zero().into()];
        let name = "llvm.masked.gather";
        value_of(self.masked(name, &overloads, &args, (0, align))?, name)
    }

    /// Writes an element in each active lane, in order.
    pub(super) fn scatter(
        &self,
        value: VectorValue<'ctx>,
        addresses: VectorValue<'ctx>,
        align: u32,
        mask: VectorValue<'ctx>,
    ) -> Result<(), BackendError> {
        let overloads = [value.get_type().into(), addresses.get_type().into()];
        let args = [value.into(), addresses.into(), mask.into()];
        self.masked("llvm.masked.scatter", &overloads, &args, (1, align))?;
        Ok(())
    }
}
