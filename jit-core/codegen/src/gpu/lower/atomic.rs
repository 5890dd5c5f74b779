//! Atomics, fences and barriers.
//!
//! Loads, stores and fences are LLVM's own, with ordering and scope, and read-modify-writes where the
//! machine's dialect says that LLVM's are right.
//!
//! Sequential consistency is a fence before the operation (Lustig, Sahasrabuddhe, Giroux: *A Formal
//! Analysis of the NVIDIA PTX Memory Consistency Model*, 2019, table 2), which LLVM's own fences and
//! accesses have, too. What other threads see is kept in LLVM's passes by
//! [`FunctionLowering::let_memory_escape`].

use inkwell::values::{BasicValue as _, BasicValueEnum, InstructionValue, IntValue};
use inkwell::{AtomicOrdering, AtomicRMWBinOp};

use kiln_ir::legal::Proved as _;
use kiln_ir::{AtomicOp, Effects, FloatAtomic, Ordering, ParamData, Scalar, Scope, Type, Value};

use super::value::Lowered;
use super::{Atomic, FunctionLowering, Point};
use crate::llvm::bindings::{SyncScope, build_atomic_fadd, set_sync_scope};
use crate::llvm::error::BackendError;
use crate::llvm::operations::llvm_operation;

/// A memory order and whom it concerns.
pub(in crate::gpu) type Order = (Ordering, Scope);

impl<'a, 'ctx> FunctionLowering<'a, 'ctx> {
    /// Where the machine's dialect builds.
    pub(in crate::gpu) fn point(&self) -> Point<'_, 'a, 'ctx> {
        Point {
            module: self.module,
            builder: self.builder(),
        }
    }

    /// What the dialect has in place of LLVM's own instruction.
    fn own_atomic(
        &self,
        operation: (Atomic, Scalar),
        ptr: Value,
        operands: &[BasicValueEnum<'ctx>],
        order: Order,
    ) -> Result<Option<BasicValueEnum<'ctx>>, BackendError> {
        let space = self.types().table().address_of(self.type_of(ptr)).space;
        let (dialect, address) = (self.module.dialect, (self.pointer(ptr), space));
        dialect.atomic(&self.point(), operation, address, operands, order)
    }

    pub(super) fn lower_atomic_rmw(
        &self,
        op: AtomicOp,
        ptr: Value,
        value: Value,
        order: Order,
    ) -> Result<BasicValueEnum<'ctx>, BackendError> {
        if self.types().table().is_word_pair(self.type_of(value)) {
            return self.swap_words(ptr, (None, value), order);
        }
        let (scalar, operand) = (self.scalar_of(value), self.one(value));
        let operation = (Atomic::Modify(op), scalar);
        if let Some(old) = self.own_atomic(operation, ptr, &[operand], order)? {
            return Ok(old);
        }
        if !scalar.is_float() {
            let op = llvm_operation(op, scalar.is_signed_int());
            return Ok(self
                .modify(op, ptr, operand.into_int_value(), order)?
                .into());
        }
        match op.on_floats().proved("an atomic of floats") {
            FloatAtomic::Add => {
                let (address, operand) = (self.pointer(ptr), operand.into_float_value());
                let old = build_atomic_fadd(self.builder(), address, operand);
                self.order(old, order);
                Ok(old)
            }
            FloatAtomic::Exchange => {
                let bits = self.types().int(scalar.bits());
                let operand = self
                    .builder()
                    .build_bit_cast(operand, bits, "")?
                    .into_int_value();
                let old = self.modify(AtomicRMWBinOp::Xchg, ptr, operand, order)?;
                let float = self.types().float(scalar);
                Ok(self.builder().build_bit_cast(old, float, "")?)
            }
        }
    }

    fn modify(
        &self,
        op: AtomicRMWBinOp,
        ptr: Value,
        operand: IntValue<'ctx>,
        order: Order,
    ) -> Result<IntValue<'ctx>, BackendError> {
        let (address, builder) = (self.pointer(ptr), self.builder());
        let old = builder.build_atomicrmw(op, address, operand, llvm_ordering(order.0))?;
        self.order(old.into(), order);
        Ok(old)
    }

    /// Gives a read-modify-write its ordering and scope.
    fn order(&self, old: BasicValueEnum<'ctx>, (ordering, scope): Order) {
        if let Some(access) = old.as_instruction_value() {
            // It is an atomic instruction, which takes every ordering.
            let _ = access.set_atomic_ordering(llvm_ordering(ordering));
            set_sync_scope(access, self.point().sync_scope(scope));
        }
    }

    pub(super) fn lower_atomic_cas(
        &self,
        ptr: Value,
        expected: Value,
        new: Value,
        order: Order,
    ) -> Result<BasicValueEnum<'ctx>, BackendError> {
        if self.types().table().is_word_pair(self.type_of(new)) {
            return self.swap_words(ptr, (Some(expected), new), order);
        }
        let operation = (Atomic::CompareAndSwap, self.scalar_of(new));
        let operands = [self.one(expected), self.one(new)];
        if let Some(old) = self.own_atomic(operation, ptr, &operands, order)? {
            return Ok(old);
        }
        let (bits, builder) = (self.types().int(operation.1.bits()), self.builder());
        let expected = builder.build_bit_cast(operands[0], bits, "")?;
        let new = builder.build_bit_cast(operands[1], bits, "")?;
        let (success, failure) = (llvm_ordering(order.0), llvm_ordering(order.0.of_load()));
        let (address, expected, new) = (
            self.pointer(ptr),
            expected.into_int_value(),
            new.into_int_value(),
        );
        let result = builder.build_cmpxchg(address, expected, new, success, failure)?;
        if let Some(access) = result.as_instruction() {
            set_sync_scope(access, self.point().sync_scope(order.1));
        }
        let old = builder.build_extract_value(result, 0, "")?;
        Ok(builder.build_bit_cast(old, operands[0].get_type(), "")?)
    }

    /// An exchange of 16 bytes, or with what is expected a compare-and-swap.
    fn swap_words(
        &self,
        ptr: Value,
        (expected, new): (Option<Value>, Value),
        order: Order,
    ) -> Result<BasicValueEnum<'ctx>, BackendError> {
        let (builder, bits) = (self.builder(), self.module.context.i128_type());
        let mut operands = Vec::new();
        for value in expected.into_iter().chain([new]) {
            let whole = builder.build_bit_cast(self.one(value), bits, "")?;
            operands.push(whole.into_int_value());
        }
        let space = self.types().table().address_of(self.type_of(ptr)).space;
        let (dialect, address) = (self.module.dialect, (self.pointer(ptr), space));
        let old = dialect.atomic_of_words(&self.point(), address, &operands, order)?;
        let old = old.proved("an atomic of 16 bytes");
        Ok(builder.build_bit_cast(old, self.one(new).get_type(), "")?)
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
            addresses.push(match self.get(param.value) {
                Lowered::Slice(ptr, _) => ptr.into(),
                Lowered::One(value) => value,
            });
        }
        if addresses.is_empty() || !self.module.orders_memory {
            return Ok(());
        }
        let register = self.module.dialect.address_register();
        let constraints = format!("{register},").repeat(addresses.len()) + "~{memory}";
        self.call_asm("", &constraints, None, &addresses, Effects::Memory)?;
        Ok(())
    }

    /// The fence of a sequentially consistent operation, which then needs only `rest`.
    fn fence_if_consistent(&self, (ordering, scope): Order, rest: Ordering) -> Ordering {
        if ordering != Ordering::SequentiallyConsistent {
            return ordering;
        }
        self.point().fence((ordering, scope));
        rest
    }

    pub(super) fn lower_atomic_load(
        &self,
        ptr: Value,
        result: Type,
        (ordering, scope): Order,
    ) -> Result<Lowered<'ctx>, BackendError> {
        let ordering = self.fence_if_consistent((ordering, scope), Ordering::Acquire);
        let scalar = self.types().table().scalar_of(result);
        let bits = self.types().int(scalar.bytes() * 8);
        let (dialect, address) = (self.module.dialect, self.pointer(ptr));
        let address = dialect.atomic_address(&self.point(), address)?;
        let value = self.builder().build_load(bits, address, "")?;
        if let Some(load) = value.as_instruction_value() {
            make_atomic(load, scalar, ordering, self.point().sync_scope(scope));
        }
        if scalar.is_bool() {
            return self.value_from_memory(value, result);
        }
        let ty = self.types().value(result)?;
        Ok(Lowered::One(self.builder().build_bit_cast(value, ty, "")?))
    }

    pub(super) fn lower_atomic_store(
        &self,
        ptr: Value,
        value: Value,
        (ordering, scope): Order,
    ) -> Result<(), BackendError> {
        let ordering = self.fence_if_consistent((ordering, scope), Ordering::Relaxed);
        let ty = self.type_of(value);
        let scalar = self.types().table().scalar_of(ty);
        let value = match scalar.is_bool() {
            true => self.to_memory(self.get(value), ty)?,
            false => self.one(value),
        };
        let bits = self.types().int(scalar.bytes() * 8);
        let value = self.builder().build_bit_cast(value, bits, "")?;
        let store = self.builder().build_store(self.pointer(ptr), value)?;
        make_atomic(store, scalar, ordering, self.point().sync_scope(scope));
        Ok(())
    }

    pub(super) fn lower_barrier(&self) -> Result<(), BackendError> {
        self.module.dialect.barrier(&self.point())
    }
}

fn make_atomic(access: InstructionValue<'_>, scalar: Scalar, ordering: Ordering, scope: SyncScope) {
    // What the IR's verifier passes as an access and its ordering, LLVM's setters take.
    let _ = access.set_alignment(scalar.bytes());
    let _ = access.set_atomic_ordering(llvm_ordering(ordering));
    set_sync_scope(access, scope);
}

pub(super) fn llvm_ordering(ordering: Ordering) -> AtomicOrdering {
    match ordering {
        Ordering::Relaxed => AtomicOrdering::Monotonic,
        Ordering::Acquire => AtomicOrdering::Acquire,
        Ordering::Release => AtomicOrdering::Release,
        Ordering::AcquireRelease => AtomicOrdering::AcquireRelease,
        Ordering::SequentiallyConsistent => AtomicOrdering::SequentiallyConsistent,
    }
}
