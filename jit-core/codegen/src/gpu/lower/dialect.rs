//! What GPUs have in different ways: what lowering asks the machine that it is for.
//!
//! A kernel becomes the same module of LLVM for each GPU but for this: how a kernel is called and its
//! parameters arrive, how a thread finds out where it is, meets others and ends, and which atomics
//! LLVM's back end gets right by itself.

use inkwell::IntPredicate;
use inkwell::builder::Builder;
use inkwell::types::{BasicTypeEnum, FloatType, IntType};
use inkwell::values::{BasicValueEnum, CallSiteValue, IntValue, PointerValue};

use kiln_ir::{
    AddressSpace, AtomicOp, Choices, Effects, Known, LaunchBounds, Module, Ordering, Processor,
    Scalar, Scope,
};

use super::ModuleLowering;
use super::atomic::{Order, llvm_ordering};
use crate::hooks::{InlineAssembly, OperationError};
use crate::llvm::ask::value_of;
use crate::llvm::bindings::{SyncScope, build_fence};
use crate::llvm::error::BackendError;
use crate::llvm::optimize::OptLevel;

/// How values lie in the parameter block of a kernel.
#[derive(Copy, Clone, Debug)]
pub(in crate::gpu) struct ParamBlock {
    /// LLVM's number of its address space, if it is not that of generic addresses.
    pub(in crate::gpu) space: Option<u16>,
    /// The attribute of a parameter that is the address of a value in the block.
    pub(in crate::gpu) by_value: &'static str,
    /// An attribute that a back end asks for beside the usual ones, as a string.
    pub(in crate::gpu) mark: Option<&'static str>,
}

/// An atomic read-modify-write.
#[derive(Copy, Clone, Debug)]
pub(in crate::gpu) enum Atomic {
    /// Combines what is there with the operand.
    Modify(AtomicOp),
    /// Puts the second operand there if the first is there.
    CompareAndSwap,
}

/// A GPU, as lowering sees it.
pub(in crate::gpu) trait Dialect {
    /// The machine, as cells of rows have it.
    fn processor(&self) -> Processor;

    /// LLVM's number of the calling convention of a kernel.
    fn kernel_convention(&self) -> u32;

    /// Attributes of a kernel, as strings, by what it promises of its launches and chooses.
    fn kernel_attributes(
        &self,
        bounds: Option<LaunchBounds>,
        choices: Choices,
    ) -> Vec<(&'static str, String)>;

    /// How values are handed over.
    fn param_block(&self) -> ParamBlock;

    /// The pass pipeline of a level for a kernel.
    fn passes(&self, level: OptLevel, kernel: &Module) -> String;

    /// LLVM's name of a scope; the empty one is that of all threads there are.
    fn scope(&self, scope: Scope) -> &'static str;

    /// The letter of inline assembly for a register that holds an address.
    fn address_register(&self) -> char;

    /// The index of the thread in its block, 0 for x to 2 for z, as 32 bits.
    fn thread_index<'ctx>(
        &self,
        at: &Point<'_, '_, 'ctx>,
        axis: usize,
    ) -> Result<IntValue<'ctx>, BackendError>;

    /// The index of the block in the grid, 0 for x to 2 for z, as 32 bits.
    fn block_index<'ctx>(
        &self,
        at: &Point<'_, '_, 'ctx>,
        axis: usize,
    ) -> Result<IntValue<'ctx>, BackendError>;

    /// Bytes of the launch's dynamic shared memory, as 32 bits.
    fn dynamic_shared_bytes<'ctx>(
        &self,
        at: &Point<'_, '_, 'ctx>,
    ) -> Result<IntValue<'ctx>, BackendError>;

    /// Waits for all threads of the block, and sees what they wrote.
    fn barrier(&self, at: &Point<'_, '_, '_>) -> Result<(), BackendError>;

    /// Orders what the thread wrote before what it writes, for the host.
    fn publish(&self, at: &Point<'_, '_, '_>) -> Result<(), BackendError>;

    /// Ends the thread.
    fn end_thread(&self, at: &Point<'_, '_, '_>) -> Result<(), BackendError>;

    /// The address of an atomic load, as the back end is to be given it.
    fn atomic_address<'ctx>(
        &self,
        _: &Point<'_, '_, 'ctx>,
        address: PointerValue<'ctx>,
    ) -> Result<PointerValue<'ctx>, BackendError> {
        Ok(address)
    }

    /// An atomic read-modify-write that LLVM's own instruction is not right for.
    fn atomic<'ctx>(
        &self,
        _: &Point<'_, '_, 'ctx>,
        _: (Atomic, Scalar),
        _: (PointerValue<'ctx>, AddressSpace),
        _: &[BasicValueEnum<'ctx>],
        _: Order,
    ) -> Result<Option<BasicValueEnum<'ctx>>, BackendError> {
        Ok(None)
    }

    /// An exchange of 16 bytes, or with two operands a compare-and-swap, whose first one is expected: integers of 128
    /// bits, as the old value is. `None`: the machine has none.
    fn atomic_of_words<'ctx>(
        &self,
        _: &Point<'_, '_, 'ctx>,
        _: (PointerValue<'ctx>, AddressSpace),
        _: &[IntValue<'ctx>],
        _: Order,
    ) -> Result<Option<BasicValueEnum<'ctx>>, BackendError> {
        Ok(None)
    }

    /// An integer of 32 or 64 bits as `f32`, rounded towards zero. Where there is no instruction for
    /// it, the digits that `f32` has no room for are cut before it is converted, which is then exact.
    fn towards_zero<'ctx>(
        &self,
        at: &Point<'_, '_, 'ctx>,
        value: IntValue<'ctx>,
        from: Scalar,
    ) -> Result<BasicValueEnum<'ctx>, BackendError> {
        let (builder, ty) = (at.builder, value.get_type());
        let negative = builder.build_int_compare(IntPredicate::SLT, value, ty.const_zero(), "")?;
        let magnitude = match from.is_signed_int() {
            true => {
                let opposite = builder.build_int_neg(value, "")?;
                let chosen = builder.build_select(negative, opposite, value, "")?;
                chosen.into_int_value()
            }
            false => value,
        };
        let overloads = [ty.into()];
        let no = at.int(1).const_zero();
        let zeros = at.value("llvm.ctlz", &overloads, &[magnitude.into(), no.into()])?;
        let spare = ty.const_int(u64::from(from.bits() - f32::MANTISSA_DIGITS), false);
        let lost = at.value("llvm.usub.sat", &overloads, &[spare.into(), zeros])?;
        let lost = lost.into_int_value();
        let kept = builder.build_right_shift(magnitude, lost, false, "")?;
        let kept = builder.build_left_shift(kept, lost, "")?;
        let float = at.float(Scalar::F32);
        let result = builder.build_unsigned_int_to_float(kept, float, "")?;
        if !from.is_signed_int() {
            return Ok(result.into());
        }
        let opposite = builder.build_float_neg(result, "")?;
        Ok(builder.build_select(negative, opposite, result, "")?)
    }

    /// Whether inline assembly of a hook's is such that LLVM can write it.
    fn check_assembly<'ctx>(
        &self,
        assembly: InlineAssembly<'_>,
        _: Option<BasicTypeEnum<'ctx>>,
        _: &[BasicValueEnum<'ctx>],
    ) -> Result<(), OperationError> {
        Err(OperationError::NoAssembly {
            machine: "this GPU",
            template: assembly.template.to_owned(),
        })
    }

    /// Whether the GPU has code of its own for an operation that rows are known by, and needs no cell.
    fn knows(&self, _: Known) -> bool {
        false
    }

    /// Code for an operation that the GPU knows, on numbers of the type that selects a cell of its row: a value, or
    /// nothing where the operation gives none.
    fn known<'ctx>(
        &self,
        _: &Point<'_, '_, 'ctx>,
        _: (Known, Scalar),
        _: &[BasicValueEnum<'ctx>],
    ) -> Result<Option<BasicValueEnum<'ctx>>, BackendError> {
        Ok(None)
    }
}

/// The point in the code where a dialect builds what it has.
#[derive(Copy, Clone)]
pub(in crate::gpu) struct Point<'m, 'a, 'ctx> {
    pub(super) module: &'m ModuleLowering<'a, 'ctx>,
    pub(in crate::gpu) builder: &'m Builder<'ctx>,
}

impl<'ctx> Point<'_, '_, 'ctx> {
    /// An integer type of 1 to 64 bits.
    pub(in crate::gpu) fn int(&self, bits: u32) -> IntType<'ctx> {
        self.module.types.int(bits)
    }

    /// The type of a float.
    pub(in crate::gpu) fn float(&self, scalar: Scalar) -> FloatType<'ctx> {
        self.module.types.float(scalar)
    }

    /// Calls an LLVM intrinsic; `overloads` are the types that select it if it is overloaded.
    pub(in crate::gpu) fn call(
        &self,
        name: &str,
        overloads: &[BasicTypeEnum<'ctx>],
        args: &[BasicValueEnum<'ctx>],
    ) -> Result<Option<BasicValueEnum<'ctx>>, BackendError> {
        self.module.call_llvm(self.builder, name, overloads, args)
    }

    /// Calls an LLVM intrinsic that gives a value.
    pub(in crate::gpu) fn value(
        &self,
        name: &str,
        overloads: &[BasicTypeEnum<'ctx>],
        args: &[BasicValueEnum<'ctx>],
    ) -> Result<BasicValueEnum<'ctx>, BackendError> {
        self.call(name, overloads, args)?
            .ok_or_else(|| BackendError::new("lower", format!("`{name}` gives no value")))
    }

    /// Calls an LLVM intrinsic that gives an integer.
    pub(in crate::gpu) fn number(
        &self,
        name: &str,
        args: &[BasicValueEnum<'ctx>],
    ) -> Result<IntValue<'ctx>, BackendError> {
        Ok(self.value(name, &[], args)?.into_int_value())
    }

    /// Inline assembly.
    pub(in crate::gpu) fn asm_call(
        &self,
        (template, constraints): (&str, &str),
        result: Option<BasicTypeEnum<'ctx>>,
        args: &[BasicValueEnum<'ctx>],
        effects: Effects,
    ) -> Result<CallSiteValue<'ctx>, BackendError> {
        (self.module).build_asm(self.builder, template, constraints, result, args, effects)
    }

    /// Inline assembly that gives a value.
    pub(in crate::gpu) fn asm(
        &self,
        asm: (&str, &str),
        result: BasicTypeEnum<'ctx>,
        args: &[BasicValueEnum<'ctx>],
        effects: Effects,
    ) -> Result<BasicValueEnum<'ctx>, BackendError> {
        let call = self.asm_call(asm, Some(result), args, effects)?;
        value_of(call, asm.0)
    }

    /// Inline assembly without operands that must stay where it is.
    pub(in crate::gpu) fn asm_statement(&self, text: &str) -> Result<(), BackendError> {
        self.asm_call((text, "~{memory}"), None, &[], Effects::Memory)?;
        Ok(())
    }

    /// A fence; a relaxed one is none.
    pub(in crate::gpu) fn fence(&self, (ordering, scope): Order) {
        if ordering != Ordering::Relaxed {
            let scope = self.sync_scope(scope);
            build_fence(self.builder, llvm_ordering(ordering), scope);
        }
    }

    /// A scope, by the machine's name.
    pub(super) fn sync_scope(&self, scope: Scope) -> SyncScope {
        SyncScope::named(self.module.context, self.module.dialect.scope(scope))
    }

    /// An attribute of functions and calls that LLVM knows by name.
    pub(in crate::gpu) fn attribute(
        &self,
        name: &str,
        value: u64,
    ) -> inkwell::attributes::Attribute {
        self.module.enum_attribute(name, value)
    }
}
