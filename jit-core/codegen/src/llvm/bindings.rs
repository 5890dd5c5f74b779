//! LLVM-C calls that inkwell 0.11 does not offer, behind safe functions.
//!
//! All take values of the context and module being built, on the compile thread. Nothing here
//! knows the IR.

use std::num::NonZeroU32;
use std::ptr;

use inkwell::AtomicOrdering;
use inkwell::attributes::Attribute;
use inkwell::builder::Builder;
use inkwell::context::Context;
use inkwell::llvm_sys::core::{
    LLVMBuildAtomicRMW, LLVMBuildFenceSyncScope, LLVMBuildFreeze, LLVMBuildGEPWithNoWrapFlags,
    LLVMCreateConstantRangeAttribute, LLVMGetMDKindIDInContext, LLVMGetSyncScopeID,
    LLVMMDNodeInContext2, LLVMMDStringInContext2, LLVMMetadataAsValue, LLVMSetAtomicSyncScopeID,
    LLVMSetMetadata, LLVMValueAsMetadata,
};
use inkwell::llvm_sys::debuginfo::{LLVMMetadataReplaceAllUsesWith, LLVMTemporaryMDNode};
use inkwell::llvm_sys::prelude::LLVMMetadataRef;
use inkwell::llvm_sys::{LLVMAtomicOrdering, LLVMAtomicRMWBinOp};
use inkwell::types::{AsTypeRef as _, BasicTypeEnum};
use inkwell::values::{
    AsValueRef as _, BasicValueEnum, FloatValue, InstructionValue, IntValue, PointerValue,
};

/// What is known about an address computation (LLVM language reference, `getelementptr`).
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Wrap {
    /// Nothing.
    Unknown,
    /// The address stays in the object.
    InBounds,
    /// An address within its allocation, and an index that is not negative.
    InBoundsForward,
}

/// Says of an integer of 32 bits that a number is above it (LLVM language reference, `range`).
pub(crate) fn less_than(context: &Context, end: u32) -> Attribute {
    let kind = Attribute::get_named_enum_kind_id("range");
    let (from, to) = ([0u64], [u64::from(end)]);
    // SAFETY: a range of 32 bits has one word for each of its ends, and `kind` is an attribute of ranges.
    unsafe {
        Attribute::new(LLVMCreateConstantRangeAttribute(
            context.raw(),
            kind,
            32,
            from.as_ptr(),
            to.as_ptr(),
        ))
    }
}

/// The address of an element reached by `indices` from `ptr`, which points at a `pointee`.
pub(crate) fn build_gep<'ctx>(
    builder: &Builder<'ctx>,
    pointee: BasicTypeEnum<'ctx>,
    ptr: PointerValue<'ctx>,
    indices: &[IntValue<'ctx>],
    wrap: Wrap,
) -> PointerValue<'ctx> {
    let flags = match wrap {
        Wrap::Unknown => 0,
        Wrap::InBounds => 1,
        Wrap::InBoundsForward => 1 | 4,
    };
    let mut refs: Vec<_> = indices.iter().map(|i| i.as_value_ref()).collect();
    // SAFETY: all values are of the module being built and the builder is positioned; the indices
    // fit the type, which the IR's verifier has checked. A pointer with a scalar index has a
    // pointer as its element address.
    unsafe {
        PointerValue::new(LLVMBuildGEPWithNoWrapFlags(
            builder.as_mut_ptr(),
            pointee.as_type_ref(),
            ptr.as_value_ref(),
            refs.as_mut_ptr(),
            refs.len() as u32,
            c"".as_ptr(),
            flags,
        ))
    }
}

/// `atomicrmw fadd`, relaxed.
pub(crate) fn build_atomic_fadd<'ctx>(
    builder: &Builder<'ctx>,
    ptr: PointerValue<'ctx>,
    value: FloatValue<'ctx>,
) -> BasicValueEnum<'ctx> {
    // SAFETY: both values are of the module being built and the builder is positioned; the result
    // has the operand's type.
    unsafe {
        BasicValueEnum::new(LLVMBuildAtomicRMW(
            builder.as_mut_ptr(),
            LLVMAtomicRMWBinOp::LLVMAtomicRMWBinOpFAdd,
            ptr.as_value_ref(),
            value.as_value_ref(),
            LLVMAtomicOrdering::LLVMAtomicOrderingMonotonic,
            0,
        ))
    }
}

/// A synchronization scope of LLVM (LLVM language reference, "Memory Model for Concurrent
/// Operations"); the empty name is that of all threads there are.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct SyncScope(u32);

impl SyncScope {
    pub(crate) fn named(context: &Context, name: &str) -> Self {
        // SAFETY: the context is alive; LLVM copies the name.
        SyncScope(unsafe { LLVMGetSyncScopeID(context.raw(), name.as_ptr().cast(), name.len()) })
    }
}

/// Gives an atomic load or store the threads that it is ordered with.
pub(crate) fn set_sync_scope(access: InstructionValue<'_>, scope: SyncScope) {
    // SAFETY: the instruction is of the module being built and, as its ordering was set, atomic.
    unsafe { LLVMSetAtomicSyncScopeID(access.as_value_ref(), scope.0) };
}

/// A fence.
pub(crate) fn build_fence(builder: &Builder<'_>, ordering: AtomicOrdering, scope: SyncScope) {
    // SAFETY: the builder is positioned; no fence is relaxed, which the IR's verifier has checked.
    unsafe {
        LLVMBuildFenceSyncScope(builder.as_mut_ptr(), ordering.into(), scope.0, c"".as_ptr());
    }
}

/// The value, or some value of its type where LLVM knows none (LLVM language reference, "freeze").
pub(crate) fn build_freeze<'ctx>(
    builder: &Builder<'ctx>,
    value: BasicValueEnum<'ctx>,
) -> BasicValueEnum<'ctx> {
    // SAFETY: the value is of the module being built and the builder is positioned; the result has
    // its type.
    unsafe {
        BasicValueEnum::new(LLVMBuildFreeze(
            builder.as_mut_ptr(),
            value.as_value_ref(),
            c"".as_ptr(),
        ))
    }
}

/// What a loop asks of the unroller (LLVM language reference, `llvm.loop.unroll`).
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum UnrollHint {
    /// `llvm.loop.unroll.disable`
    Disable,
    /// `llvm.loop.unroll.full`
    Full,
    /// `llvm.loop.unroll.count`
    Count(NonZeroU32),
}

/// Attaches `!llvm.loop` with an unroll hint to the branch that closes a loop.
pub(crate) fn set_unroll_hint(context: &Context, branch: InstructionValue<'_>, hint: UnrollHint) {
    let raw = context.raw();
    let string = |text: &str| {
        // SAFETY: the context is alive; LLVM copies the text.
        unsafe { LLVMMDStringInContext2(raw, text.as_ptr().cast(), text.len()) }
    };
    let node = |operands: &mut [LLVMMetadataRef]| {
        // SAFETY: the operands are metadata of this context.
        unsafe { LLVMMDNodeInContext2(raw, operands.as_mut_ptr(), operands.len()) }
    };
    let hint = match hint {
        UnrollHint::Disable => node(&mut [string("llvm.loop.unroll.disable")]),
        UnrollHint::Full => node(&mut [string("llvm.loop.unroll.full")]),
        UnrollHint::Count(count) => {
            let count = context.i32_type().const_int(count.get().into(), false);
            // SAFETY: a constant of this context.
            let count = unsafe { LLVMValueAsMetadata(count.as_value_ref()) };
            node(&mut [string("llvm.loop.unroll.count"), count])
        }
    };
    // A loop's node is its own first operand, which makes it distinct from every other loop's.
    // SAFETY: the temporary node is replaced, and thereby freed, right after the node that holds it
    // is made; the branch belongs to a module of this context.
    unsafe {
        let own = LLVMTemporaryMDNode(raw, ptr::null_mut(), 0);
        let loop_node = node(&mut [own, hint]);
        LLVMMetadataReplaceAllUsesWith(own, loop_node);
        let kind = LLVMGetMDKindIDInContext(raw, c"llvm.loop".as_ptr(), 9);
        LLVMSetMetadata(
            branch.as_value_ref(),
            kind,
            LLVMMetadataAsValue(raw, loop_node),
        );
    }
}
