//! Atomics, fences and barriers.
//!
//! Relaxed read-modify-write up to device scope is an `atomicrmw`, which LLVM understands and
//! prints as plain `atom` (PTX ISA, "atom": relaxed, `.gpu`). LLVM drops the ordering and scope of
//! an `atomicrmw`, so everything else is inline PTX that names both.

use inkwell::values::{BasicValueEnum, IntValue};
use inkwell::{AtomicOrdering, AtomicRMWBinOp};

use super::bindings::build_atomic_fadd;
use super::value::{as_float, as_int};
use super::{FunctionLowering, unexpected};
use crate::codegen::error::BackendError;
use crate::codegen::operations::llvm_operation;
use crate::ir::{AddressSpace, AtomicOp, Effects, Ordering, Scalar, Scope, Value};

/// A memory order and whom it concerns.
pub(super) type Order = (Ordering, Scope);

impl<'ctx> FunctionLowering<'_, 'ctx> {
    pub(super) fn lower_atomic_rmw(
        &self,
        op: AtomicOp,
        ptr: Value,
        value: Value,
        order: Order,
    ) -> Result<BasicValueEnum<'ctx>, BackendError> {
        let scalar = self.scalar_of(value)?;
        if !matches!(order, (Ordering::Relaxed, Scope::Block | Scope::Device)) {
            let operation = ptx_operation(op, scalar);
            return self.atomic_asm(&operation, ptr, &[value], order);
        }
        let address = self.pointer(ptr)?;
        let operand = self.one(value)?;
        if !scalar.is_float() {
            let op = llvm_operation(op, scalar.is_signed_int());
            return Ok(self.relaxed_rmw(op, ptr, as_int(operand)?)?.into());
        }
        match op {
            AtomicOp::Add => Ok(build_atomic_fadd(
                self.builder(),
                address,
                as_float(operand)?,
            )),
            AtomicOp::Exchange => {
                let bits = self.types().int(scalar.bits());
                let operand = as_int(self.builder().build_bit_cast(operand, bits, "")?)?;
                let old = self.relaxed_rmw(AtomicRMWBinOp::Xchg, ptr, operand)?;
                let float = self.types().float(scalar);
                Ok(self.builder().build_bit_cast(old, float, "")?)
            }
            _ => Err(unexpected("an integer atomic on floats")),
        }
    }

    fn relaxed_rmw(
        &self,
        op: AtomicRMWBinOp,
        ptr: Value,
        operand: IntValue<'ctx>,
    ) -> Result<IntValue<'ctx>, BackendError> {
        let address = self.pointer(ptr)?;
        let order = AtomicOrdering::Monotonic;
        Ok(self
            .builder()
            .build_atomicrmw(op, address, operand, order)?)
    }

    pub(super) fn lower_atomic_cas(
        &self,
        ptr: Value,
        expected: Value,
        new: Value,
        order: Order,
    ) -> Result<BasicValueEnum<'ctx>, BackendError> {
        let bits = self.scalar_of(new)?.bits();
        self.atomic_asm(&format!("cas.b{bits}"), ptr, &[expected, new], order)
    }

    /// `atom.<order>.<scope>.<space>.<operation>` (PTX ISA, "atom").
    fn atomic_asm(
        &self,
        operation: &str,
        ptr: Value,
        operands: &[Value],
        (ordering, scope): Order,
    ) -> Result<BasicValueEnum<'ctx>, BackendError> {
        let space = self
            .types()
            .table()
            .as_pointer(self.type_of(ptr))
            .map(|(_, space, _)| space);
        let space = match space {
            Some(AddressSpace::Generic) => "",
            Some(AddressSpace::Global) => ".global",
            Some(AddressSpace::Shared) => ".shared",
            _ => return Err(unexpected("an atomic in read-only or private memory")),
        };
        let order = ptx_ordering(ordering);
        let scope = ptx_scope(scope);
        let address = self.pointer(ptr)?;
        let word = self.types().int(64);
        let address = self.builder().build_ptr_to_int(address, word, "")?;
        let mut args: Vec<BasicValueEnum<'ctx>> = vec![address.into()];
        for &operand in operands {
            args.push(self.one(operand)?);
        }
        let register = ptx_register(self.scalar_of(operands[0])?);
        let mut template = format!("atom.{order}.{scope}{space}.{operation} $0, [$1]");
        let mut constraints = format!("={register},l");
        for i in 0..operands.len() {
            template.push_str(&format!(", ${}", i + 2));
            constraints.push_str(&format!(",{register}"));
        }
        template.push(';');
        constraints.push_str(",~{memory}");
        let result = args[1].get_type();
        self.asm_value(&template, &constraints, result, &args, Effects::Memory)
    }

    pub(super) fn lower_barrier(&self) -> Result<(), BackendError> {
        let barrier = self.types().int(32).const_zero();
        self.call_llvm(
            "llvm.nvvm.barrier.cta.sync.aligned.all",
            &[],
            &[barrier.into()],
        )?;
        Ok(())
    }

    /// `membar`, which is sequentially consistent and so at least what was asked for (PTX ISA,
    /// "membar / fence").
    pub(super) fn lower_fence(&self, ordering: Ordering, scope: Scope) -> Result<(), BackendError> {
        if ordering == Ordering::Relaxed {
            return Ok(());
        }
        let name = match scope {
            Scope::Block => "llvm.nvvm.membar.cta",
            Scope::Device => "llvm.nvvm.membar.gl",
            Scope::System => "llvm.nvvm.membar.sys",
        };
        self.call_llvm(name, &[], &[])?;
        Ok(())
    }
}

/// The operation and type of an `atom` instruction. There is no signed 64-bit addition, nor need
/// for one.
fn ptx_operation(op: AtomicOp, scalar: Scalar) -> String {
    let bits = scalar.bits();
    let signed = if scalar.is_signed_int() { 's' } else { 'u' };
    match op {
        AtomicOp::Add if scalar.is_float() => format!("add.f{bits}"),
        AtomicOp::Add => format!("add.u{bits}"),
        AtomicOp::Min => format!("min.{signed}{bits}"),
        AtomicOp::Max => format!("max.{signed}{bits}"),
        AtomicOp::And => format!("and.b{bits}"),
        AtomicOp::Or => format!("or.b{bits}"),
        AtomicOp::Xor => format!("xor.b{bits}"),
        AtomicOp::Exchange => format!("exch.b{bits}"),
    }
}

fn ptx_ordering(ordering: Ordering) -> &'static str {
    match ordering {
        Ordering::Relaxed => "relaxed",
        Ordering::Acquire => "acquire",
        Ordering::Release => "release",
        Ordering::AcquireRelease => "acq_rel",
    }
}

fn ptx_scope(scope: Scope) -> &'static str {
    match scope {
        Scope::Block => "cta",
        Scope::Device => "gpu",
        Scope::System => "sys",
    }
}

/// The inline assembly constraint for a scalar's register (NVPTX: `h` 16, `r` 32, `l` 64 bits).
fn ptx_register(scalar: Scalar) -> char {
    match scalar {
        Scalar::F32 => 'f',
        Scalar::F64 => 'd',
        _ if scalar.bits() == 64 => 'l',
        _ if scalar.bits() == 32 => 'r',
        _ => 'h',
    }
}
