//! One instruction in all lanes of a warp, and the state while a segment is written.

use std::collections::HashMap;

use inkwell::values::{BasicValueEnum, InstructionOpcode, IntValue, PointerValue};

use kiln_ir::legal::{LegalTypes, Proved as _};
use kiln_ir::{FastMath, Function, Inst, InstData, Passing, Scalar, Type, Value, Var};

use super::emit::{Built, Emit, unexpected};
use super::entry::Entry;
use super::flow::{Level, LoopState};
use super::leaf::{Leaf, Leaves};
use super::plan::Plan;
use crate::llvm::error::BackendError;

/// A warp while its part of a segment is written.
pub(super) struct Warp<'w, 'm, 'ctx> {
    pub(super) emit: &'w Emit<'w, 'ctx>,
    pub(super) kernel: &'w Plan<'m>,
    pub(super) entry: &'w Entry<'ctx>,
    /// The warp's position in the block, or among the warps of several blocks side by side.
    pub(super) warp: IntValue<'ctx>,
    /// The linear index of lane 0's thread.
    pub(super) first_thread: IntValue<'ctx>,
    /// What floats of the instruction that is written may do.
    pub(super) fast: FastMath,
    pub(super) values: HashMap<Value, Leaves<'ctx>>,
    /// A slot for each leaf of each variable.
    pub(super) vars: HashMap<Var, Vec<PointerValue<'ctx>>>,
    pub(super) levels: Vec<Level<'ctx>>,
    pub(super) loops: Vec<LoopState<'ctx>>,
    /// The only lane that can be active, of 64 bits.
    pub(super) single: Option<BasicValueEnum<'ctx>>,
}

impl<'w, 'ctx> Warp<'w, '_, 'ctx> {
    pub(super) fn function(&self) -> &'w Function {
        &self.kernel.flat.function
    }

    pub(super) fn types(&self) -> LegalTypes<'w> {
        self.kernel.types
    }

    pub(super) fn type_of(&self, value: Value) -> Type {
        self.function().type_of(value)
    }

    /// The scalar type of an operand.
    #[track_caller]
    pub(super) fn scalar_of(&self, value: Value) -> Scalar {
        self.types().scalar_of(self.type_of(value))
    }

    pub(super) fn define(&mut self, value: Value, wide: Leaves<'ctx>) {
        self.values.insert(value, wide);
    }

    /// The only lane of a warp is the whole warp.
    fn normalize(&self, mut wide: Leaves<'ctx>) -> Result<Leaves<'ctx>, BackendError> {
        if self.emit.lanes > 1 {
            return Ok(wide);
        }
        for leaf in &mut wide {
            *leaf = Leaf::Uniform(match *leaf {
                Leaf::Uniform(value) | Leaf::Affine { base: value, .. } => value,
                other => self.emit.lane(other.vector(self.emit)?, self.emit.i32(0))?,
            });
        }
        Ok(wide)
    }

    pub(super) fn get(&self, value: Value) -> Result<Leaves<'ctx>, BackendError> {
        let known = self.values.get(&value);
        let known = known.or_else(|| self.entry.values.get(&value)).cloned();
        let known =
            known.ok_or_else(|| unexpected(&format!("{value} is used before it exists")))?;
        match self.single {
            Some(lane) => self.in_lane(known, lane),
            None => Ok(known),
        }
    }

    /// Whether a value is at hand: one of another segment is only if it is kept.
    pub(super) fn has(&self, value: Value) -> bool {
        self.values.contains_key(&value) || self.entry.values.contains_key(&value)
    }

    /// The only leaf of a scalar or a pointer.
    #[track_caller]
    pub(super) fn leaf(&self, value: Value) -> Result<Leaf<'ctx>, BackendError> {
        self.get(value)
            .map(|leaves| all_of(&leaves))
            .map(|[leaf]| leaf)
    }

    /// The address and the length of a slice.
    #[track_caller]
    pub(super) fn slice(&self, value: Value) -> Result<[Leaf<'ctx>; 2], BackendError> {
        self.get(value).map(|leaves| all_of(&leaves))
    }

    /// Writes one instruction.
    // flat match
    pub(super) fn inst(&mut self, inst: Inst) -> Result<(), BackendError> {
        let node = &self.function().insts[inst];
        self.fast = node.fast;
        let result = node.result.map_or(Type::UNIT, |r| self.type_of(r));
        let one = |leaf: Leaf<'ctx>| Some(Leaves::from_elem(leaf, 1));
        if let Some(wide) = self.ask_hooks(node)? {
            if let Some(result) = node.result {
                let wide = self.normalize(wide)?;
                self.define(result, wide);
            } else if node.data.is_barrier() {
                // What a thread does there is the hook's; that threads meet is decided by how the block is cut.
                self.barrier()?;
            }
            return Ok(());
        }
        let value = match node.data {
            InstData::Const(constant) => Some(self.constant(constant, result)?),
            InstData::Unary { op, arg } => one(self.unary(op, arg)?),
            InstData::Binary { op, args } => one(self.binary(op, args)?),
            InstData::ConstParam(_) => None.proved("the value of a const parameter"),
            InstData::Call { .. } => return Err(unexpected("a call after inlining")),
            InstData::Compare { op, args } => one(self.compare(op, args)?),
            InstData::Select {
                cond,
                if_true,
                if_false,
            } => Some(self.select(cond, if_true, if_false)?),
            InstData::Cast { arg } => one(self.cast(arg, result)?),
            InstData::Bitcast { arg } => Some(self.bitcast(arg, result)?),
            InstData::Construct { ref parts } => {
                let mut whole = Leaves::new();
                for &part in parts {
                    whole.extend(self.get(part)?);
                }
                Some(whole)
            }
            InstData::Extract { aggregate, index } => Some(self.extract(aggregate, index)?),
            InstData::Insert {
                aggregate,
                index,
                value,
            } => Some(self.insert(aggregate, index, value)?),
            InstData::VarGet(var) => Some(self.var_get(var)?),
            InstData::VarSet(var, value) => {
                self.var_set(inst, var, value)?;
                None
            }
            InstData::Load { ptr, volatile } => Some(self.load(ptr, result, volatile)?),
            InstData::Store {
                ptr,
                value,
                volatile,
            } => {
                self.store(ptr, value, volatile)?;
                None
            }
            InstData::PtrOffset { ptr, index } => one(self.ptr_offset(ptr, index)?),
            InstData::FieldPtr { ptr, field } => one(self.field_ptr(ptr, field)?),
            InstData::ElementPtr {
                ptr,
                index,
                checked,
            } => one(self.element_ptr(inst, ptr, index, checked)?),
            InstData::SpaceCast { arg } => Some(self.get(arg)?),
            InstData::SliceNew { ptr, len } => Some(self.slice_new(ptr, len, result)?),
            InstData::SliceLen { slice } => one(self.slice_len(slice, result)?),
            InstData::SlicePtr { slice } => {
                let [ptr, _] = self.slice(slice)?;
                one(ptr)
            }
            InstData::SliceIndex {
                slice,
                index,
                checked,
            } => one(self.slice_index(inst, slice, index, checked)?),
            InstData::SharedAddr(var) => {
                let offset = self.kernel.arena.shared[&var];
                let address = self.emit.offset_const(self.entry.arena, offset)?;
                one(Leaf::Uniform(address.into()))
            }
            InstData::DynamicShared => Some(self.dynamic_shared(result)?),
            InstData::LocalAlloc => one(self.local_alloc(inst)?),
            InstData::Hidden(_) => None.proved("a hidden value that is no parameter"),
            InstData::Print { .. } => None.proved("a text that is printed by no call"),
            InstData::GlobalAddr(id) => one(Leaf::Uniform(self.entry.constant(
                self.emit,
                self.kernel.module,
                id,
            )?)),
            InstData::AtomicLoad { ptr, ordering, .. } => {
                Some(self.atomic_load(ptr, result, ordering)?)
            }
            InstData::AtomicStore {
                ptr,
                value,
                ordering,
                ..
            } => {
                self.atomic_store(ptr, value, ordering)?;
                None
            }
            InstData::AtomicRmw {
                op,
                ptr,
                value,
                ordering,
                ..
            } => {
                let used = node.result.is_some_and(|r| self.kernel.is_used(r));
                Some(self.atomic_rmw(op, ptr, value, ordering, used)?)
            }
            InstData::AtomicCas {
                ptr,
                expected,
                new,
                ordering,
                ..
            } => Some(self.atomic_cas(ptr, expected, new, ordering)?),
            InstData::Barrier => {
                self.barrier()?;
                None
            }
            InstData::Assume { cond, checked, .. } => {
                // Unchecked: every lane computes, active or not, so nothing holds for all of a vector.
                if checked {
                    self.assert(inst, cond, None)?;
                }
                None
            }
            InstData::Assert { cond, values, .. } => {
                self.assert(inst, cond, values)?;
                None
            }
            InstData::Fence { ordering, scope } => {
                self.fence(ordering, scope)?;
                None
            }
            InstData::Intrinsic { id, ref args } => {
                let def = self.kernel.module.intrinsics[id];
                self.intrinsic(def, args, result)?
            }
            InstData::If {
                cond,
                then_region,
                else_region,
            } => {
                self.if_(inst, cond, (then_region, else_region))?;
                None
            }
            InstData::Loop { body } => {
                self.loop_(inst, body)?;
                None
            }
            InstData::For {
                index,
                start,
                end,
                step,
                body,
                ..
            } => {
                self.for_(inst, index, [start, end, step], body)?;
                None
            }
            InstData::Break { depth } => {
                self.break_(depth)?;
                None
            }
            InstData::Continue { depth } => {
                self.continue_(depth)?;
                None
            }
            InstData::Return { .. } => {
                self.return_()?;
                None
            }
        };
        if let Some(result) = node.result {
            let mut value = self.normalize(value.proved("the result of an instruction"))?;
            if self.kernel.provenance.is_relied_on(result) {
                for leaf in &mut value {
                    *leaf = self.frozen(*leaf);
                }
            }
            self.define(result, value);
        }
        Ok(())
    }

    fn extract(&self, aggregate: Value, index: u32) -> Result<Leaves<'ctx>, BackendError> {
        let range = self.types().leaves_of_part(self.type_of(aggregate), index);
        Ok(Leaves::from_slice(&self.get(aggregate)?[range]))
    }

    fn insert(
        &self,
        aggregate: Value,
        index: u32,
        value: Value,
    ) -> Result<Leaves<'ctx>, BackendError> {
        let range = self.types().leaves_of_part(self.type_of(aggregate), index);
        let mut whole = self.get(aggregate)?;
        for (slot, leaf) in whole[range].iter_mut().zip(self.get(value)?) {
            *slot = leaf;
        }
        Ok(whole)
    }

    fn var_get(&self, var: Var) -> Result<Leaves<'ctx>, BackendError> {
        let leaves = self.kernel.leaves(self.function().vars[var].ty);
        let uniform = self.kernel.is_uniform_var(var);
        let mut value = Leaves::new();
        for (leaf, &slot) in leaves.iter().zip(&self.vars[&var]) {
            let scalar = self.emit.leaf_type(*leaf);
            let ty = if uniform {
                scalar
            } else {
                self.emit.vector_of(scalar).into()
            };
            value.push(Leaf::from(self.emit.builder.build_load(ty, slot, "")?));
        }
        Ok(value)
    }

    fn var_set(&mut self, inst: Inst, var: Var, value: Value) -> Result<(), BackendError> {
        let value = self.get(value)?;
        if self.kernel.is_uniform_var(var) {
            for (&slot, leaf) in self.vars[&var].iter().zip(value) {
                self.emit.builder.build_store(slot, leaf.uniform()?)?;
            }
            return Ok(());
        }
        let home = self.kernel.scopes.home(var).region;
        let blends = self
            .kernel
            .uniformity
            .blends(&self.kernel.scopes, inst, home);
        let mask = self.mask()?;
        for (&slot, leaf) in self.vars[&var].iter().zip(value) {
            let mut lanes = leaf.vector(self.emit)?;
            if blends {
                let old = self.emit.builder.build_load(lanes.get_type(), slot, "")?;
                lanes = self
                    .emit
                    .select(mask.into(), lanes.into(), old)?
                    .into_vector_value();
            }
            self.emit.builder.build_store(slot, lanes)?;
        }
        Ok(())
    }

    /// Private memory where it is declared: its address, and zeros in it.
    fn local_alloc(&mut self, inst: Inst) -> Result<Leaf<'ctx>, BackendError> {
        let address = self.local_address(inst)?;
        if !self.kernel.zeroed.contains(&inst) {
            return Ok(address);
        }
        match address {
            Leaf::Affine { base, stride } => {
                let size = self.emit.i64(stride);
                self.lane_loop(|warp, lane| {
                    let offset = warp.emit.mul(lane, size.into())?;
                    let at = warp.emit.offset(base, offset)?;
                    warp.emit.clear(at.into_pointer_value(), 1, size)
                })?;
            }
            // Lanes that are not here cannot reach what they had at an earlier turn of a loop.
            spread => {
                let bytes = self.emit.i64(self.kernel.local_bytes(inst) as i64);
                let start = spread.uniform()?.into_pointer_value();
                self.emit.clear(start, 64, bytes)?;
            }
        }
        Ok(address)
    }

    /// The address of private memory, wherever it was declared.
    pub(super) fn local_address(&self, inst: Inst) -> Result<Leaf<'ctx>, BackendError> {
        let bytes = self.kernel.local_bytes(inst);
        let base = match self.kernel.arena.locals.get(&inst) {
            Some(&offset) => {
                let start = self.emit.offset_const(self.entry.arena, offset)?;
                self.of_this_warp(start, bytes)?
            }
            None => {
                let ty = self.emit.int(8).array_type(bytes as u32);
                self.entry.local_slot(self.emit, inst, ty.into())?
            }
        };
        let result = self.function().insts[inst].result;
        if result.is_some_and(|r| self.kernel.is_spread(r)) {
            return Ok(Leaf::Uniform(base.into()));
        }
        Ok(Leaf::Affine {
            base: base.into(),
            stride: (bytes / u64::from(self.emit.lanes)) as i64,
        })
    }

    /// The number of the warp in its block.
    pub(super) fn warp_of_block(&self) -> Built<'ctx> {
        if self.kernel.block.beside == 1 {
            return Ok(self.warp.into());
        }
        let lanes = self.emit.i32(self.emit.lanes).into();
        let first = self.first_thread.into();
        self.emit.binary(InstructionOpcode::UDiv, first, lanes)
    }

    /// This warp's copy of something of which each warp has one.
    pub(super) fn of_this_warp(
        &self,
        start: PointerValue<'ctx>,
        bytes: u64,
    ) -> Result<PointerValue<'ctx>, BackendError> {
        let warp = self.emit.resize(self.warp.into(), 64, false)?;
        let offset = self.emit.mul(warp, self.emit.i64(bytes as i64).into())?;
        Ok(self.emit.offset(start.into(), offset)?.into_pointer_value())
    }
}

/// The leaves of a value of which there are so many.
#[track_caller]
fn all_of<'ctx, const N: usize>(leaves: &[Leaf<'ctx>]) -> [Leaf<'ctx>; N] {
    leaves.try_into().ok().proved("a value of as many leaves")
}

/// The parameters of the kernel, which are the same for all threads.
pub(super) fn param_values<'ctx>(
    emit: &Emit<'_, 'ctx>,
    plan: &Plan<'_>,
    params: PointerValue<'ctx>,
) -> Result<HashMap<Value, Leaves<'ctx>>, BackendError> {
    use kiln_ir::abi::ParamKind;
    let function = &plan.flat.function;
    let mut values = HashMap::new();
    for (param, kind) in function.params.iter().zip(&plan.layout.params) {
        let ty = function.type_of(param.value);
        let mut wide = Leaves::new();
        match (kind, param.passing) {
            (ParamKind::Value(slot), Passing::ByValue) => {
                let address = emit.offset_const(params, slot.offset.into())?;
                wide.push(Leaf::Uniform(address.into()));
            }
            (ParamKind::Value(slot), _) => {
                for leaf in plan.leaves(ty) {
                    let at = u64::from(slot.offset) + leaf.offset;
                    let address = emit.offset_const(params, at)?;
                    let raw = emit.load(emit.leaf_in_memory(leaf), address, leaf.bytes(), false)?;
                    let value = match leaf.scalar() {
                        Some(scalar) => emit.as_computed(raw, scalar)?,
                        None => raw,
                    };
                    wide.push(Leaf::Uniform(value));
                }
            }
            (ParamKind::Reference { address, .. }, _) => {
                let at = emit.offset_const(params, address.offset.into())?;
                let ptr = params.get_type().into();
                wide.push(Leaf::Uniform(emit.load(ptr, at, 8, false)?));
            }
            (ParamKind::Slice { address, length }, _) => {
                let at = emit.offset_const(params, address.offset.into())?;
                let ptr = params.get_type().into();
                wide.push(Leaf::Uniform(emit.load(ptr, at, 8, false)?));
                let at = emit.offset_const(params, length.offset.into())?;
                let ty = emit.int(length.size * 8).into();
                wide.push(Leaf::Uniform(emit.load(ty, at, length.size, false)?));
            }
        }
        values.insert(param.value, wide);
    }
    Ok(values)
}
