//! Atomics and fences.
//!
//! A block runs on one thread of the host, so an atomic on shared memory is a plain read, operation
//! and write, lane by lane. On other memory it is an atomic of the host with the order asked for.
//! Where all lanes go to one place and nobody asks for the old values, integers are combined first;
//! an atomic load of one place is one load.

use inkwell::values::{BasicValueEnum, InstructionOpcode, PointerValue};
use inkwell::{AtomicOrdering, AtomicRMWBinOp, IntPredicate};

use kiln_ir::{AddressSpace, AtomicOp, Ordering, Scalar, Scope, Type, Value};

use super::Warp;
use super::emit::Built;
use super::leaf::{Leaf, Leaves, scalar_type};
use crate::llvm::error::BackendError;
use crate::llvm::operations::llvm_operation;

impl<'ctx> Warp<'_, '_, 'ctx> {
    pub(super) fn atomic_rmw(
        &mut self,
        op: AtomicOp,
        ptr: Value,
        value: Value,
        ordering: Ordering,
        used: bool,
    ) -> Result<Leaves<'ctx>, BackendError> {
        if self.types().is_word_pair(self.type_of(value)) {
            return self.swap_words(ptr, (None, value), ordering);
        }
        let scalar = self.scalar_of(value);
        let address = self.leaf(ptr)?;
        let operand = self.leaf(value)?;
        let shared = self.is_shared(ptr);
        let ty = self.emit.vector_of(scalar_type(self.emit, scalar));
        if let (Leaf::Uniform(at), false) = (address, used)
            && op != AtomicOp::Exchange
            && !op.goes_round()
            && scalar.is_int()
        {
            let all = self.combine(op, scalar, operand)?;
            self.rmw_lane(op, scalar, shared, ordering, (at.into_pointer_value(), all))?;
            return Ok(Leaves::from_elem(Leaf::from(ty.const_zero().into()), 1));
        }
        // A shared place is found by its index, lane by lane.
        let indexed = match address {
            Leaf::Indexed(indexed) => Some(indexed),
            _ => None,
        };
        let place: BasicValueEnum<'ctx> = match indexed {
            Some(indexed) => indexed.index.into(),
            None => address.vector(self.emit)?.into(),
        };
        let operands = [place, operand.vector(self.emit)?.into()];
        let act = |warp: &mut Self, lane: &[BasicValueEnum<'ctx>]| {
            let at = match indexed {
                Some(indexed) => indexed.address(warp.emit, lane[0])?,
                None => lane[0],
            };
            let at = at.into_pointer_value();
            warp.rmw_lane(op, scalar, shared, ordering, (at, lane[1]))
        };
        let result = used.then_some(ty);
        let old = if shared {
            self.each_lane_unrolled(result, &operands, act)?
        } else {
            self.each_lane_giving(result, &operands, act)?
        };
        Ok(Leaves::from_elem(
            Leaf::from(old.unwrap_or_else(|| ty.const_zero().into())),
            1,
        ))
    }

    pub(super) fn atomic_load(
        &mut self,
        ptr: Value,
        result: Type,
        ordering: Ordering,
    ) -> Result<Leaves<'ctx>, BackendError> {
        let scalar = self.types().scalar_of(result);
        let order = (!self.is_shared(ptr)).then(|| host_load_ordering(ordering));
        let bits = self.emit.int(scalar.bytes() * 8);
        let address = self.leaf(ptr)?;
        let raw = match address {
            Leaf::Uniform(at) => self
                .emit
                .load_atomic(bits, at.into_pointer_value(), order)?,
            _ => {
                let addresses = address.vector(self.emit)?.into();
                let ty = self.emit.vector_of(bits.into());
                self.value_of_lanes(&[addresses], ty, |warp, lane| {
                    let at = lane[0].into_pointer_value();
                    warp.emit.load_atomic(bits, at, order)
                })?
            }
        };
        let value = self.emit.of_bits(raw, scalar)?;
        Ok(Leaves::from_elem(Leaf::from(value), 1))
    }

    pub(super) fn atomic_store(
        &mut self,
        ptr: Value,
        value: Value,
        ordering: Ordering,
    ) -> Result<(), BackendError> {
        let scalar = self.scalar_of(value);
        let order = (!self.is_shared(ptr)).then(|| host_store_ordering(ordering));
        let value = self.leaf(value)?.vector(self.emit)?.into();
        let value = self.emit.to_bits(value, scalar)?;
        let address = self.leaf(ptr)?.vector(self.emit)?.into();
        self.each_lane(&[address, value], |warp, lane| {
            let at = lane[0].into_pointer_value();
            warp.emit.store_atomic(at, lane[1], scalar.bytes(), order)
        })
    }

    fn is_shared(&self, ptr: Value) -> bool {
        self.types().address_of(self.type_of(ptr)).space == AddressSpace::Shared
    }

    /// What the active lanes do to one place together.
    fn combine(&self, op: AtomicOp, scalar: Scalar, operand: Leaf<'ctx>) -> Built<'ctx> {
        let (name, identity) = reduction(op, scalar);
        let lanes: BasicValueEnum<'ctx> = operand.vector(self.emit)?.into();
        let identity = self.emit.int_like(identity, lanes);
        let lanes = self.emit.select(self.mask()?.into(), lanes, identity)?;
        self.emit.value(name, &[lanes.get_type()], &[lanes])
    }

    fn rmw_lane(
        &self,
        op: AtomicOp,
        scalar: Scalar,
        shared: bool,
        ordering: Ordering,
        (at, operand): (PointerValue<'ctx>, BasicValueEnum<'ctx>),
    ) -> Built<'ctx> {
        let ty = scalar_type(self.emit, scalar);
        if shared {
            let old = self.emit.load(ty, at, scalar.bytes(), false)?;
            let new = self.apply(op, scalar, old, operand)?;
            self.emit.store(at, new, scalar.bytes(), false)?;
            return Ok(old);
        }
        let order = host_ordering(ordering);
        if !scalar.is_float() {
            let op = llvm_operation(op, scalar.is_signed_int());
            let operand = operand.into_int_value();
            return Ok(self
                .emit
                .builder
                .build_atomicrmw(op, at, operand, order)?
                .into());
        }
        let int = self.emit.int(scalar.bits());
        if op == AtomicOp::Exchange {
            let bits = self
                .emit
                .cast(InstructionOpcode::BitCast, operand, int.into())?;
            let old = self.emit.builder.build_atomicrmw(
                AtomicRMWBinOp::Xchg,
                at,
                bits.into_int_value(),
                order,
            )?;
            return self.emit.cast(InstructionOpcode::BitCast, old.into(), ty);
        }
        self.float_rmw(op, scalar, order, (at, operand))
    }

    /// A loop around compare-and-swap.
    fn float_rmw(
        &self,
        op: AtomicOp,
        scalar: Scalar,
        order: AtomicOrdering,
        (at, operand): (PointerValue<'ctx>, BasicValueEnum<'ctx>),
    ) -> Built<'ctx> {
        let int = self.emit.int(scalar.bits());
        let ty = scalar_type(self.emit, scalar);
        let (again, done) = (self.block("retry"), self.block("swapped"));
        let first = self.emit.load(int.into(), at, scalar.bytes(), true)?;
        let before = self.current_block()?;
        self.emit.builder.build_unconditional_branch(again)?;
        self.emit.builder.position_at_end(again);
        let phi = self.emit.builder.build_phi(int, "expected")?;
        let expected = phi.as_basic_value();
        let old = self.emit.cast(InstructionOpcode::BitCast, expected, ty)?;
        let new = self.apply(op, scalar, old, operand)?;
        let new = self
            .emit
            .cast(InstructionOpcode::BitCast, new, int.into())?;
        let pair = self.emit.builder.build_cmpxchg(
            at,
            expected.into_int_value(),
            new.into_int_value(),
            order,
            failure_ordering(order),
        )?;
        let found = self.emit.builder.build_extract_value(pair, 0, "")?;
        let swapped = self.emit.builder.build_extract_value(pair, 1, "")?;
        self.emit
            .builder
            .build_conditional_branch(swapped.into_int_value(), done, again)?;
        phi.add_incoming(&[(&first, before), (&found, again)]);
        self.emit.builder.position_at_end(done);
        Ok(old)
    }

    /// What an operation makes of the old value.
    fn apply(
        &self,
        op: AtomicOp,
        scalar: Scalar,
        old: BasicValueEnum<'ctx>,
        operand: BasicValueEnum<'ctx>,
    ) -> Built<'ctx> {
        let signed = scalar.is_signed_int();
        let pick = |s, u| {
            let name = if signed { s } else { u };
            self.emit.value(name, &[old.get_type()], &[old, operand])
        };
        match op {
            AtomicOp::Add if scalar.is_half() => {
                let (a, b) = (
                    self.widen_half(scalar, old)?,
                    self.widen_half(scalar, operand)?,
                );
                let sum = self.emit.binary(InstructionOpcode::FAdd, a, b)?;
                self.round_to_half(scalar, sum)
            }
            AtomicOp::Add if scalar.is_float() => {
                self.emit.binary(InstructionOpcode::FAdd, old, operand)
            }
            AtomicOp::Add => self.emit.add(old, operand),
            AtomicOp::Min => pick("llvm.smin", "llvm.umin"),
            AtomicOp::Max => pick("llvm.smax", "llvm.umax"),
            AtomicOp::And => self.emit.and(old, operand),
            AtomicOp::Or => self.emit.or(old, operand),
            AtomicOp::Xor => self.emit.binary(InstructionOpcode::Xor, old, operand),
            AtomicOp::Exchange => Ok(operand),
            AtomicOp::Increment => {
                let one = self.emit.int_like(1, old);
                let more = self.emit.add(old, one)?;
                let is_over = self.emit.icmp(IntPredicate::UGE, old, operand)?;
                self.emit.select(is_over, self.emit.int_like(0, old), more)
            }
            AtomicOp::Decrement => {
                let (zero, one) = (self.emit.int_like(0, old), self.emit.int_like(1, old));
                let less = self.emit.binary(InstructionOpcode::Sub, old, one)?;
                let is_over = self.emit.icmp(IntPredicate::UGT, old, operand)?;
                let rest = self.emit.select(is_over, operand, less)?;
                let is_zero = self.emit.icmp(IntPredicate::EQ, old, zero)?;
                self.emit.select(is_zero, operand, rest)
            }
        }
    }

    pub(super) fn atomic_cas(
        &mut self,
        ptr: Value,
        expected: Value,
        new: Value,
        ordering: Ordering,
    ) -> Result<Leaves<'ctx>, BackendError> {
        if self.types().is_word_pair(self.type_of(new)) {
            return self.swap_words(ptr, (Some(expected), new), ordering);
        }
        let scalar = self.scalar_of(new);
        let ty = scalar_type(self.emit, scalar);
        let shared = self.is_shared(ptr);
        let order = host_ordering(ordering);
        let mut operands = Vec::new();
        for operand in [ptr, expected, new] {
            operands.push(self.leaf(operand)?.vector(self.emit)?.into());
        }
        let old = self.value_of_lanes(&operands, self.emit.vector_of(ty), |warp, lane| {
            let at = lane[0].into_pointer_value();
            if shared {
                let old = warp.emit.load(ty, at, scalar.bytes(), false)?;
                let equal = warp.emit.icmp(IntPredicate::EQ, old, lane[1])?;
                let new = warp.emit.select(equal, lane[2], old)?;
                warp.emit.store(at, new, scalar.bytes(), false)?;
                return Ok(old);
            }
            let pair = warp.emit.builder.build_cmpxchg(
                at,
                lane[1].into_int_value(),
                lane[2].into_int_value(),
                order,
                failure_ordering(order),
            )?;
            Ok(warp.emit.builder.build_extract_value(pair, 0, "")?)
        })?;
        Ok(Leaves::from_elem(Leaf::from(old), 1))
    }

    /// An exchange of 16 bytes, or with what is expected a compare-and-swap, lane by lane.
    fn swap_words(
        &mut self,
        ptr: Value,
        (expected, new): (Option<Value>, Value),
        ordering: Ordering,
    ) -> Result<Leaves<'ctx>, BackendError> {
        let (shared, order) = (self.is_shared(ptr), host_ordering(ordering));
        let mut operands = vec![self.leaf(ptr)?.vector(self.emit)?.into()];
        for value in expected.into_iter().chain([new]) {
            for half in self.get(value)? {
                operands.push(half.vector(self.emit)?.into());
            }
        }
        let whole = self.emit.context.i128_type();
        let ty = self.emit.vector_of(whole.into());
        let old = self.value_of_lanes(&operands, ty, |warp, lane| {
            let at = lane[0].into_pointer_value();
            let mut swapped = Vec::new();
            for halves in lane[1..].chunks_exact(2) {
                swapped.push(warp.emit.of_halves([halves[0], halves[1]])?);
            }
            match shared {
                true => warp.swap_in_turn(at, &swapped),
                false => warp.swap_at_once(at, &swapped, order),
            }
        })?;
        let halves = self.emit.halves(old)?;
        Ok(halves.into_iter().map(Leaf::from).collect())
    }

    /// An exchange of 16 bytes, or of two operands a compare-and-swap, where nobody comes between.
    fn swap_in_turn(
        &self,
        at: PointerValue<'ctx>,
        operands: &[BasicValueEnum<'ctx>],
    ) -> Built<'ctx> {
        let whole = self.emit.context.i128_type().into();
        let old = self.emit.load(whole, at, WORD_PAIR_ALIGN, false)?;
        let new = match *operands {
            [expected, new] => {
                let equal = self.emit.icmp(IntPredicate::EQ, old, expected)?;
                self.emit.select(equal, new, old)?
            }
            _ => operands[0],
        };
        self.emit.store(at, new, WORD_PAIR_ALIGN, false)?;
        Ok(old)
    }

    /// An exchange of 16 bytes, or of two operands a compare-and-swap, among the threads of the host.
    fn swap_at_once(
        &self,
        at: PointerValue<'ctx>,
        operands: &[BasicValueEnum<'ctx>],
        order: AtomicOrdering,
    ) -> Built<'ctx> {
        let builder = &self.emit.builder;
        let [expected, new] = *operands else {
            let new = operands[0].into_int_value();
            let old = builder.build_atomicrmw(AtomicRMWBinOp::Xchg, at, new, order)?;
            return Ok(old.into());
        };
        let (expected, new) = (expected.into_int_value(), new.into_int_value());
        let pair = builder.build_cmpxchg(at, expected, new, order, failure_ordering(order))?;
        Ok(builder.build_extract_value(pair, 0, "")?)
    }

    /// Within a block program order is enough.
    pub(super) fn fence(&self, ordering: Ordering, scope: Scope) -> Result<(), BackendError> {
        if ordering == Ordering::Relaxed || scope == Scope::Block {
            return Ok(());
        }
        let order = host_ordering(ordering);
        self.emit.builder.build_fence(order, false, "")?;
        Ok(())
    }
}

/// The alignment of a `u64x2`, in bytes.
const WORD_PAIR_ALIGN: u32 = 16;

/// The reduction over lanes that an atomic amounts to, and what an inactive lane gives it.
fn reduction(op: AtomicOp, scalar: Scalar) -> (&'static str, u64) {
    let bits = scalar.bits();
    let (smallest, largest) = (1u64 << (bits - 1), (1u64 << (bits - 1)) - 1);
    match (op, scalar.is_signed_int()) {
        (AtomicOp::Min, true) => ("llvm.vector.reduce.smin", largest),
        (AtomicOp::Min, false) => ("llvm.vector.reduce.umin", u64::MAX),
        (AtomicOp::Max, true) => ("llvm.vector.reduce.smax", smallest),
        (AtomicOp::Max, false) => ("llvm.vector.reduce.umax", 0),
        (AtomicOp::And, _) => ("llvm.vector.reduce.and", u64::MAX),
        (AtomicOp::Or, _) => ("llvm.vector.reduce.or", 0),
        (AtomicOp::Xor, _) => ("llvm.vector.reduce.xor", 0),
        // Of the others lanes are not combined.
        (AtomicOp::Add | AtomicOp::Exchange | AtomicOp::Increment | AtomicOp::Decrement, _) => {
            ("llvm.vector.reduce.add", 0)
        }
    }
}

/// The host's order for an order of the IR (NVIDIA's mapping of C++ atomics, inverted).
fn host_ordering(ordering: Ordering) -> AtomicOrdering {
    match ordering {
        Ordering::Relaxed => AtomicOrdering::Monotonic,
        Ordering::Acquire => AtomicOrdering::Acquire,
        Ordering::Release => AtomicOrdering::Release,
        Ordering::AcquireRelease => AtomicOrdering::AcquireRelease,
        Ordering::SequentiallyConsistent => AtomicOrdering::SequentiallyConsistent,
    }
}

/// The ordering of a load, which releases nothing.
fn host_load_ordering(ordering: Ordering) -> AtomicOrdering {
    match ordering {
        Ordering::Release => AtomicOrdering::Monotonic,
        Ordering::AcquireRelease => AtomicOrdering::Acquire,
        _ => host_ordering(ordering),
    }
}

/// The ordering of a store, which acquires nothing.
fn host_store_ordering(ordering: Ordering) -> AtomicOrdering {
    match ordering {
        Ordering::Acquire => AtomicOrdering::Monotonic,
        Ordering::AcquireRelease => AtomicOrdering::Release,
        _ => host_ordering(ordering),
    }
}

/// A failed swap writes nothing, so it releases nothing.
fn failure_ordering(order: AtomicOrdering) -> AtomicOrdering {
    match order {
        AtomicOrdering::Acquire | AtomicOrdering::AcquireRelease => AtomicOrdering::Acquire,
        AtomicOrdering::SequentiallyConsistent => AtomicOrdering::SequentiallyConsistent,
        _ => AtomicOrdering::Monotonic,
    }
}
