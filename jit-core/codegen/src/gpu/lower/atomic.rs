//! Atomics, fences and barriers.
//!
//! Loads, stores and fences are LLVM's own, with ordering and scope. A relaxed read-modify-write of
//! device scope is an `atomicrmw`, which LLVM understands and prints as plain `atom` (PTX ISA,
//! "atom": relaxed, `.gpu`). LLVM drops the ordering and scope of an `atomicrmw`, so every other one
//! is inline PTX that names both.
//!
//! Sequential consistency is a fence before the operation (Lustig, Sahasrabuddhe, Giroux: *A Formal
//! Analysis of the NVIDIA PTX Memory Consistency Model*, 2019, table 2). What other threads see is
//! kept in LLVM's passes by [`FunctionLowering::let_memory_escape`].

use inkwell::attributes::AttributeLoc;
use inkwell::values::{BasicValue as _, BasicValueEnum, InstructionValue, IntValue, PointerValue};
use inkwell::{AtomicOrdering, AtomicRMWBinOp};

use kiln_ir::{AddressSpace, AtomicOp, Effects, Ordering, ParamData, Scalar, Scope, Type, Value};

use super::value::{Lowered, as_float, as_int};
use super::{FunctionLowering, unexpected};
use crate::llvm::bindings::{SyncScope, build_atomic_fadd, build_fence, set_sync_scope};
use crate::llvm::error::BackendError;
use crate::llvm::operations::llvm_operation;

/// `memory(argmem: readwrite)`: what a relaxed atomic reaches and orders.
const ARGUMENT_MEMORY: u64 = 0b11;

/// Inline PTX behind which LLVM does not see where an address comes from, with its constraints.
pub(crate) const HIDDEN_ADDRESS: (&str, &str) = ("mov.b64 $0, $1;", "=l,l");

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
        if order != (Ordering::Relaxed, Scope::Device) {
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
        let ordering = self.fence_if_consistent((ordering, scope), Ordering::Acquire);
        let order = ptx_ordering(ordering);
        let scope = ptx_scope(scope);
        let mut args: Vec<BasicValueEnum<'ctx>> = vec![self.pointer(ptr)?.into()];
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
        let call = self.module.build_asm(
            self.builder(),
            &template,
            &constraints,
            Some(args[1].get_type()),
            &args,
            Effects::Memory,
        )?;
        if ordering == Ordering::Relaxed {
            let attribute = self.module.enum_attribute("memory", ARGUMENT_MEMORY);
            call.add_attribute(AttributeLoc::Function, attribute);
        }
        let old = call.try_as_basic_value().basic();
        old.ok_or_else(|| unexpected("an atomic without a value"))
    }

    /// Says in LLVM's terms that other threads reach what the mutable parameters point at.
    ///
    /// Such a parameter is `noalias`, since rustc and the launch see to it that no other parameter
    /// of the thread reaches the same memory. LLVM would conclude that no barrier and no fence
    /// changes what lies there, as nobody else has the address. Inline assembly that does nothing
    /// takes it, so that anything which touches unknown memory may be an access through it, whereas
    /// two parameters remain two places.
    pub(super) fn let_memory_escape(&self) -> Result<(), BackendError> {
        let function = self.function;
        let reachable = |param: &&ParamData| {
            param.facts.noalias
                && self
                    .types()
                    .table()
                    .is_mutable(function.type_of(param.value))
        };
        let mut addresses = Vec::new();
        for param in function.params.iter().filter(reachable) {
            addresses.push(match self.get(param.value)? {
                Lowered::Slice(ptr, _) => ptr.into(),
                Lowered::One(value) => value,
            });
        }
        if addresses.is_empty() || !self.module.orders_memory {
            return Ok(());
        }
        let constraints = "l,".repeat(addresses.len()) + "~{memory}";
        self.call_asm("", &constraints, None, &addresses, Effects::Memory)?;
        Ok(())
    }

    /// The fence of a sequentially consistent operation, which then needs only `rest`.
    fn fence_if_consistent(&self, (ordering, scope): Order, rest: Ordering) -> Ordering {
        if ordering != Ordering::SequentiallyConsistent {
            return ordering;
        }
        self.lower_fence(ordering, scope);
        rest
    }

    /// The address of an atomic load. LLVM 22 takes every load of global memory that nobody writes for
    /// one of the read-only cache, and its code generator ends the process on an atomic one.
    fn hidden(&self, ptr: Value) -> Result<PointerValue<'ctx>, BackendError> {
        let address = self.pointer(ptr)?;
        let (template, constraints) = HIDDEN_ADDRESS;
        let (ty, args) = (address.get_type().into(), [address.into()]);
        let hidden = self.call_asm(template, constraints, Some(ty), &args, Effects::None)?;
        let hidden = hidden.ok_or_else(|| unexpected("an address without a value"))?;
        Ok(hidden.into_pointer_value())
    }

    pub(super) fn lower_atomic_load(
        &self,
        ptr: Value,
        result: Type,
        (ordering, scope): Order,
    ) -> Result<Lowered<'ctx>, BackendError> {
        let ordering = self.fence_if_consistent((ordering, scope), Ordering::Acquire);
        let scalar = scalar(result)?;
        let bits = self.types().int(scalar.bytes() * 8);
        let address = self.hidden(ptr)?;
        let value = self.builder().build_load(bits, address, "")?;
        if let Some(load) = value.as_instruction_value() {
            make_atomic(load, scalar, ordering, self.sync_scope(scope));
        }
        match scalar {
            Scalar::Bool => self.value_from_memory(value, result),
            _ => {
                let ty = self.types().value(result)?;
                Ok(Lowered::One(self.builder().build_bit_cast(value, ty, "")?))
            }
        }
    }

    pub(super) fn lower_atomic_store(
        &self,
        ptr: Value,
        value: Value,
        (ordering, scope): Order,
    ) -> Result<(), BackendError> {
        let ordering = self.fence_if_consistent((ordering, scope), Ordering::Relaxed);
        let ty = self.type_of(value);
        let scalar = scalar(ty)?;
        let value = match scalar {
            Scalar::Bool => self.to_memory(self.get(value)?, ty)?,
            _ => self.one(value)?,
        };
        let bits = self.types().int(scalar.bytes() * 8);
        let value = self.builder().build_bit_cast(value, bits, "")?;
        let store = self.builder().build_store(self.pointer(ptr)?, value)?;
        make_atomic(store, scalar, ordering, self.sync_scope(scope));
        Ok(())
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

    /// `fence.acq_rel` or `fence.sc` (PTX ISA, "membar / fence").
    pub(super) fn lower_fence(&self, ordering: Ordering, scope: Scope) {
        if ordering != Ordering::Relaxed {
            build_fence(
                self.builder(),
                llvm_ordering(ordering),
                self.sync_scope(scope),
            );
        }
    }

    /// LLVM's name of a scope (LLVM, "User Guide for NVPTX Back-end").
    fn sync_scope(&self, scope: Scope) -> SyncScope {
        let name = match scope {
            Scope::Block => "block",
            Scope::Device => "device",
            Scope::System => "",
        };
        SyncScope::named(self.context(), name)
    }
}

fn scalar(ty: Type) -> Result<Scalar, BackendError> {
    ty.as_scalar()
        .ok_or_else(|| unexpected("an atomic access of no scalar"))
}

fn make_atomic(access: InstructionValue<'_>, scalar: Scalar, ordering: Ordering, scope: SyncScope) {
    // What the IR's verifier passes as an access and its ordering, LLVM's setters take.
    let _ = access.set_alignment(scalar.bytes());
    let _ = access.set_atomic_ordering(llvm_ordering(ordering));
    set_sync_scope(access, scope);
}

fn llvm_ordering(ordering: Ordering) -> AtomicOrdering {
    match ordering {
        Ordering::Relaxed => AtomicOrdering::Monotonic,
        Ordering::Acquire => AtomicOrdering::Acquire,
        Ordering::Release => AtomicOrdering::Release,
        Ordering::AcquireRelease => AtomicOrdering::AcquireRelease,
        Ordering::SequentiallyConsistent => AtomicOrdering::SequentiallyConsistent,
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
        // After the fence that makes the difference.
        Ordering::AcquireRelease | Ordering::SequentiallyConsistent => "acq_rel",
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
