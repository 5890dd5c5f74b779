//! One function's body: the list of all instructions, and the state while they are lowered.
//!
//! The function starts with a block of stack slots (variables and local memory, variables set to
//! zero), which is closed when the rest is done. Slots of variables become LLVM values in the first
//! optimization pass.

use std::collections::{HashMap, HashSet};

use inkwell::basic_block::BasicBlock;
use inkwell::builder::Builder;
use inkwell::context::Context;
use inkwell::values::{BasicValueEnum, FunctionValue, PointerValue};

use kiln_ir::legal::Proved as _;
use kiln_ir::{
    AddressSpace, Entity as _, FastMath, FuncId, Function, FunctionKind, HiddenSource, Inst,
    InstData, InstNode, ParamData, Scalar, Type, Value, Var,
};

use super::ModuleLowering;
use super::control::LoopBlocks;
use super::signature::Arrival;
use super::value::Lowered;
use crate::gpu::types::TypeLowering;
use crate::hooks::{LoweredOperation, OperationLowering};
use crate::llvm::bindings::build_freeze;
use crate::llvm::error::BackendError;
use crate::private::needs_zeros;
use crate::provenance::Provenance;

/// Where a mutable variable lives.
#[derive(Copy, Clone)]
pub(super) enum VarSlot<'ctx> {
    /// One stack slot.
    One(PointerValue<'ctx>),
    /// A slice: its address and its length apart, so that each becomes a value.
    Slice(PointerValue<'ctx>, PointerValue<'ctx>),
}

/// A function while its body is lowered.
pub(crate) struct FunctionLowering<'a, 'ctx> {
    pub(crate) module: &'a ModuleLowering<'a, 'ctx>,
    pub(super) id: FuncId,
    pub(super) function: &'a Function,
    pub(super) llvm_function: FunctionValue<'ctx>,
    builder: Builder<'ctx>,
    slot_builder: Builder<'ctx>,
    values: Vec<Option<Lowered<'ctx>>>,
    pub(super) vars: Vec<VarSlot<'ctx>>,
    pub(super) locals: HashMap<Inst, PointerValue<'ctx>>,
    /// Local memory that is zeroed where it is declared.
    pub(super) zeroed: HashSet<Inst>,
    pub(super) loops: Vec<LoopBlocks<'ctx>>,
    /// Which memory nobody writes, and which values a race may have left undetermined.
    pub(super) provenance: Provenance,
    /// What floats of the instruction being lowered may do.
    pub(crate) fast: FastMath,
    /// Whether the current region was left: what follows is never executed.
    pub(super) left: bool,
}

impl<'a, 'ctx> FunctionLowering<'a, 'ctx> {
    pub(super) fn new(
        module: &'a ModuleLowering<'a, 'ctx>,
        id: FuncId,
    ) -> Result<Self, BackendError> {
        let function = &module.module.functions[id];
        let llvm_function = module.function_value(id);
        let slot_block = module.context.append_basic_block(llvm_function, "slots");
        let slot_builder = module.context.create_builder();
        slot_builder.position_at_end(slot_block);
        Ok(FunctionLowering {
            module,
            id,
            function,
            llvm_function,
            builder: module.context.create_builder(),
            slot_builder,
            values: vec![None; function.values.len()],
            vars: Vec::new(),
            locals: HashMap::new(),
            zeroed: needs_zeros(function),
            loops: Vec::new(),
            provenance: Provenance::of(module.module, function),
            fast: FastMath::NONE,
            left: false,
        })
    }

    pub(crate) fn context(&self) -> &'ctx Context {
        self.module.context
    }

    /// The builder, at the place of the instruction being lowered.
    pub(crate) fn builder(&self) -> &Builder<'ctx> {
        &self.builder
    }

    /// What a hook is given to lower the instruction.
    fn operation<'s>(&'s self, inst: &'s InstNode) -> OperationLowering<'s, 'ctx> {
        OperationLowering {
            hook: self.module.hooks.context(),
            place: self.module,
            context: self.module.context,
            builder: &self.builder,
            llvm_module: &self.module.llvm,
            llvm_function: self.llvm_function,
            module: self.module.module,
            function: self.function,
            inst,
        }
    }

    pub(crate) fn types(&self) -> &TypeLowering<'a, 'ctx> {
        &self.module.types
    }

    /// Lowers the whole body.
    pub(super) fn lower_body(mut self) -> Result<(), BackendError> {
        let body = self.append_block("body");
        self.builder.position_at_end(body);
        self.locate(self.function.location);
        self.bind_params()?;
        self.declare_vars()?;
        self.lower_region(self.function.body)?;
        if !self.left {
            if self.function.result == Type::UNIT {
                self.builder.build_return(None)?;
            } else {
                self.builder.build_unreachable()?;
            }
        }
        self.slot_builder.build_unconditional_branch(body)?;
        Ok(())
    }

    fn bind_params(&mut self) -> Result<(), BackendError> {
        if let Some(line_info) = &self.module.line_info {
            line_info.attach(self.id, self.llvm_function);
        }
        let arguments = self.llvm_function.get_params();
        let mut rest = arguments.iter().copied();
        // It was declared with what `arrival` says.
        let mut next = || rest.next().proved("a parameter");
        let function = self.function;
        for param in &function.params {
            let ty = function.type_of(param.value);
            let arrived = match self.module.arrival(function, param) {
                Arrival::Value => Lowered::One(next()),
                Arrival::ParamAddress(_) => {
                    Lowered::One(self.in_param_block(next().into_pointer_value())?.into())
                }
                Arrival::Memory => {
                    let value = next();
                    self.value_from_memory(value, ty)?
                }
                Arrival::ParamLoad(ty) => {
                    let address = self.in_param_block(next().into_pointer_value())?;
                    self.load(address, ty, false, true)?
                }
                Arrival::Slice => {
                    Lowered::Slice(next().into_pointer_value(), next().into_int_value())
                }
            };
            let arrived = self.frozen_if_relied_on(param.value, arrived);
            self.define(param.value, arrived);
            self.apply_facts(param, arrived)?;
        }
        if self.function.kind == FunctionKind::Kernel {
            self.let_memory_escape()?;
        }
        Ok(())
    }

    /// An address in the parameter block, as the IR has it.
    fn in_param_block(
        &self,
        address: PointerValue<'ctx>,
    ) -> Result<PointerValue<'ctx>, BackendError> {
        let ty = self.types().pointer(AddressSpace::Param);
        Ok(self.builder.build_address_space_cast(address, ty, "")?)
    }

    /// Tells LLVM what is known about a kernel's argument beyond its attributes.
    fn apply_facts(
        &mut self,
        param: &ParamData,
        arrived: Lowered<'ctx>,
    ) -> Result<(), BackendError> {
        if self.function.kind != FunctionKind::Kernel {
            return Ok(());
        }
        let ty = self.function.type_of(param.value);
        let divisor = param.facts.divisor;
        if divisor > 1 && divisor.is_power_of_two() && ty.is_int() {
            let value = arrived.one().into_int_value();
            let ty = value.get_type();
            let low = ty.const_int(u64::from(divisor) - 1, false);
            let remainder = self.builder.build_and(value, low, "")?;
            let equal = inkwell::IntPredicate::EQ;
            let known = self
                .builder
                .build_int_compare(equal, remainder, ty.const_zero(), "")?;
            self.call_llvm("llvm.assume", &[], &[known.into()])?;
        }
        Ok(())
    }

    fn declare_vars(&mut self) -> Result<(), BackendError> {
        for data in self.function.vars.values() {
            let zero = self.zero(data.ty)?;
            let slot = match zero {
                Lowered::One(zero) => VarSlot::One(self.zeroed_slot(zero)?),
                Lowered::Slice(ptr, len) => {
                    VarSlot::Slice(self.zeroed_slot(ptr.into())?, self.zeroed_slot(len.into())?)
                }
            };
            self.vars.push(slot);
        }
        Ok(())
    }

    fn zeroed_slot(&self, zero: BasicValueEnum<'ctx>) -> Result<PointerValue<'ctx>, BackendError> {
        let slot = self.slot_builder.build_alloca(zero.get_type(), "")?;
        self.slot_builder.build_store(slot, zero)?;
        Ok(slot)
    }

    /// Stack memory for one value, living as long as the call, as a local pointer.
    pub(super) fn local_memory(&self, ty: Type) -> Result<PointerValue<'ctx>, BackendError> {
        let slot = self
            .slot_builder
            .build_alloca(self.types().memory(ty)?, "")?;
        let align = self.types().layout(ty).align;
        if let Some(alloca) = slot.as_instruction() {
            // Alignments are powers of two, which is all that can be refused.
            let _ = alloca.set_alignment(align as u32);
        }
        let local = self.types().pointer(AddressSpace::Local);
        Ok(self
            .slot_builder
            .build_address_space_cast(slot, local, "")?)
    }

    pub(super) fn append_block(&self, name: &str) -> BasicBlock<'ctx> {
        self.module
            .context
            .append_basic_block(self.llvm_function, name)
    }

    /// Makes the builder attribute what follows to a source location.
    pub(super) fn locate(&self, location: kiln_ir::Location) {
        if let Some(line_info) = &self.module.line_info {
            line_info.locate(self.module.context, &self.builder, self.id, location);
        }
    }

    pub(super) fn define(&mut self, value: Value, lowered: Lowered<'ctx>) {
        self.values[value.index()] = Some(lowered);
    }

    /// What may race and stands for checks, as what is the same number wherever it is used.
    fn frozen_if_relied_on(&self, value: Value, lowered: Lowered<'ctx>) -> Lowered<'ctx> {
        if !self.provenance.is_relied_on(value) {
            return lowered;
        }
        let freeze = |value| build_freeze(self.builder(), value);
        match lowered {
            Lowered::One(value) => Lowered::One(freeze(value)),
            Lowered::Slice(ptr, len) => Lowered::Slice(
                freeze(ptr.into()).into_pointer_value(),
                freeze(len.into()).into_int_value(),
            ),
        }
    }

    /// The LLVM form of an operand.
    #[track_caller]
    pub(super) fn get(&self, value: Value) -> Lowered<'ctx> {
        self.values[value.index()].proved("the definition of an operand")
    }

    #[track_caller]
    pub(crate) fn one(&self, value: Value) -> BasicValueEnum<'ctx> {
        self.get(value).one()
    }

    #[track_caller]
    pub(super) fn pointer(&self, value: Value) -> PointerValue<'ctx> {
        self.one(value).into_pointer_value()
    }

    pub(crate) fn type_of(&self, value: Value) -> Type {
        self.function.type_of(value)
    }

    /// The scalar type of an operand.
    #[track_caller]
    pub(super) fn scalar_of(&self, value: Value) -> Scalar {
        self.types().table().scalar_of(self.type_of(value))
    }

    pub(super) fn var(&self, var: Var) -> VarSlot<'ctx> {
        self.vars[var.index()]
    }

    /// Where faults are told, in a function with something that can fault.
    #[track_caller]
    pub(super) fn fault_channel(&self) -> PointerValue<'ctx> {
        let is_channel = |id| self.module.module.hidden[id].source == HiddenSource::FaultChannel;
        let mut params = self.function.params.iter();
        let channel = params.find(|param| param.hidden.is_some_and(is_channel));
        self.pointer(channel.proved("the fault channel").value)
    }

    /// Lowers one instruction: a hook's way if it has one, else ours.
    pub(super) fn lower_inst(&mut self, inst: Inst) -> Result<(), BackendError> {
        let function = self.function;
        let node = &function.insts[inst];
        self.locate(node.location);
        self.fast = node.fast;
        let lowered = match self.ask_hooks(node)? {
            Some(LoweredOperation::Value(value)) => Some(Lowered::One(value)),
            Some(LoweredOperation::Slice { address, length }) => {
                Some(Lowered::Slice(address, length))
            }
            Some(LoweredOperation::Done) => None,
            None => self.lower_data(inst, node)?,
        };
        if let Some(result) = node.result {
            let lowered = lowered.proved("the result of an instruction");
            self.define(result, self.frozen_if_relied_on(result, lowered));
        }
        Ok(())
    }

    fn ask_hooks(&self, node: &InstNode) -> Result<Option<LoweredOperation<'ctx>>, BackendError> {
        let hooks = self.module.hooks;
        if !hooks.want(&node.data) {
            return Ok(None);
        }
        let mut args = Vec::new();
        node.data
            .for_each_operand(|operand| self.get(operand).flatten(&mut args));
        hooks.ask(&self.operation(node), &args)
    }

    /// The list of all instructions.
    // flat match
    fn lower_data(
        &mut self,
        inst: Inst,
        node: &InstNode,
    ) -> Result<Option<Lowered<'ctx>>, BackendError> {
        let result = node.result.map_or(Type::UNIT, |r| self.type_of(r));
        let one = |value: BasicValueEnum<'ctx>| Ok(Some(Lowered::One(value)));
        match node.data {
            InstData::Const(constant) => self.lower_const(constant, result).map(Some),
            InstData::ConstParam(_) => None.proved("the value of a const parameter"),
            InstData::Unary { op, arg } => one(self.lower_unary(op, arg)?),
            InstData::Binary { op, args } => one(self.lower_binary(op, args)?),
            InstData::Compare { op, args } => one(self.lower_compare(op, args)?),
            InstData::Select {
                cond,
                if_true,
                if_false,
            } => self.lower_select(cond, if_true, if_false).map(Some),
            InstData::Cast { arg } => one(self.lower_cast(arg, result)?),
            InstData::Bitcast { arg } => one(self.lower_bitcast(arg, result)?),
            InstData::Construct { ref parts } => self.lower_construct(parts, result).map(Some),
            InstData::Extract { aggregate, index } => {
                self.lower_extract(aggregate, index, result).map(Some)
            }
            InstData::Insert {
                aggregate,
                index,
                value,
            } => one(self.lower_insert(aggregate, index, value)?),
            InstData::VarGet(var) => self.lower_var_get(var).map(Some),
            InstData::VarSet(var, value) => self.lower_var_set(var, value).map(|()| None),
            InstData::Load { ptr, volatile } => {
                let address = self.pointer(ptr);
                let unchanging = self.provenance.is_unchanging(ptr);
                self.load(address, result, volatile, unchanging).map(Some)
            }
            InstData::Store {
                ptr,
                value,
                volatile,
            } => self.lower_store(ptr, value, volatile).map(|()| None),
            InstData::PtrOffset { ptr, index } => one(self.lower_ptr_offset(ptr, index)?),
            InstData::FieldPtr { ptr, field } => one(self.lower_field_ptr(ptr, field)?),
            InstData::ElementPtr {
                ptr,
                index,
                checked,
            } => one(self.lower_element_ptr(inst, ptr, index, checked)?),
            InstData::SpaceCast { arg } => self.lower_space_cast(arg, result).map(Some),
            InstData::SliceNew { ptr, len } => self.lower_slice_new(ptr, len, result).map(Some),
            InstData::SliceLen { slice } => one(self.lower_slice_len(slice, result)?),
            InstData::SlicePtr { slice } => one(self.get(slice).slice().0.into()),
            InstData::SliceIndex {
                slice,
                index,
                checked,
            } => one(self.lower_slice_index(inst, slice, index, checked)?),
            InstData::SharedAddr(var) => one(self.module.shared_address(self.id, var).into()),
            InstData::DynamicShared => self.lower_dynamic_shared(result).map(Some),
            InstData::LocalAlloc => one(self.lower_local_alloc(inst, result)?),
            InstData::Hidden(_) => None.proved("a hidden value that is no parameter"),
            InstData::Print { .. } => None.proved("a text that is printed by no call"),
            InstData::GlobalAddr(id) => one(self.module.constant_address(id).into()),
            InstData::AtomicLoad {
                ptr,
                ordering,
                scope,
            } => self
                .lower_atomic_load(ptr, result, (ordering, scope))
                .map(Some),
            InstData::AtomicStore {
                ptr,
                value,
                ordering,
                scope,
            } => self
                .lower_atomic_store(ptr, value, (ordering, scope))
                .map(|()| None),
            InstData::AtomicRmw {
                op,
                ptr,
                value,
                ordering,
                scope,
            } => one(self.lower_atomic_rmw(op, ptr, value, (ordering, scope))?),
            InstData::AtomicCas {
                ptr,
                expected,
                new,
                ordering,
                scope,
            } => one(self.lower_atomic_cas(ptr, expected, new, (ordering, scope))?),
            InstData::Barrier => self.lower_barrier().map(|()| None),
            InstData::Assume { cond, checked, .. } => {
                self.lower_assume(inst, cond, checked).map(|()| None)
            }
            InstData::Assert { cond, values, .. } => {
                self.lower_assert(inst, cond, values).map(|()| None)
            }
            InstData::Fence { ordering, scope } => {
                self.point().fence((ordering, scope));
                Ok(None)
            }
            InstData::Call {
                callee, ref args, ..
            } => self.lower_call(callee, args, result),
            InstData::Intrinsic { id, ref args } => self.lower_intrinsic(id, args, result),
            InstData::If {
                cond,
                then_region,
                else_region,
            } => self.lower_if(cond, then_region, else_region).map(|()| None),
            InstData::Loop { body } => self.lower_loop(body).map(|()| None),
            InstData::For {
                index,
                start,
                end,
                step,
                body,
                ..
            } => {
                let bounds = super::control::ForBounds { start, end, step };
                self.lower_for(inst, index, bounds, body).map(|()| None)
            }
            InstData::Break { depth } => self.lower_break(depth).map(|()| None),
            InstData::Continue { depth } => self.lower_continue(depth).map(|()| None),
            InstData::Return { value } => self.lower_return(value).map(|()| None),
        }
    }

    /// The integer constant that defines `value`, if one does.
    pub(super) fn known_int(&self, value: Value) -> Option<i128> {
        match self.function.constant(value)? {
            kiln_ir::Constant::Int(number) => Some(number),
            kiln_ir::Constant::Zero => Some(0),
            _ => None,
        }
    }
}
