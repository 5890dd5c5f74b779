//! Operations that hooks lower.
//!
//! A hook builds code for one thread. It is put in a function of its own, which takes the operands and
//! gives the result, and is called for each active lane, or once where all lanes have the same. It is
//! inlined before everything else.

use inkwell::attributes::{Attribute, AttributeLoc};
use inkwell::builder::Builder;
use inkwell::module::Linkage;
use inkwell::types::{BasicMetadataTypeEnum, BasicTypeEnum, FunctionType, PointerType};
use inkwell::values::{BasicValueEnum, FunctionValue, PointerValue};

use kiln_ir::{AddressSpace, InstNode, LeafType, Type, Uniformity, Value};

use super::Warp;
use super::emit::{Built, Emit};
use super::hook_values::HookValues;
use super::leaf::{Leaf, Leaves};
use crate::hooks::{InlineAssembly, OperationError, OperationLowering, Place};
use crate::llvm::ask::value_of;
use crate::llvm::error::BackendError;

/// The name of the first function that holds a hook's code.
pub(crate) const HOOKED: &str = "kiln_hooked";

/// A leaf of an operand: where all lanes have it, or each its own.
enum Operand<'ctx> {
    Same(BasicValueEnum<'ctx>),
    EachLane(PointerValue<'ctx>),
}

impl<'ctx> Warp<'_, '_, 'ctx> {
    /// What a hook makes of an instruction, if there is one that wants it: the leaves of its result, none where it
    /// gives nothing.
    pub(super) fn ask_hooks(
        &mut self,
        node: &InstNode,
    ) -> Result<Option<Leaves<'ctx>>, BackendError> {
        if !self.emit.hooks.want(&node.data) {
            return Ok(None);
        }
        let ty = node.result.map_or(Type::UNIT, |r| self.type_of(r));
        let Some(function) = self.outline(node, ty)? else {
            return Ok(None);
        };
        let mut leaves = Vec::new();
        for operand in operands(node) {
            let types = self.kernel.leaves(self.type_of(operand));
            leaves.extend(self.get(operand)?.into_iter().zip(types));
        }
        let uniform = |(leaf, _): &(Leaf<'ctx>, LeafType)| matches!(leaf, Leaf::Uniform(_));
        let alone = self.single.is_some() || self.emit.lanes == 1;
        // What gives nothing is done for what it does, by each thread.
        let result_is_same = |result| self.kernel.uniformity.value(result) != Uniformity::Lane;
        let same = node.result.is_some_and(result_is_same) && leaves.iter().all(uniform);
        match alone || same {
            true => self.call_once(function, &leaves).map(Some),
            false => self.call_for_lanes(function, &leaves, ty).map(Some),
        }
    }

    fn call_once(
        &self,
        function: FunctionValue<'ctx>,
        leaves: &[(Leaf<'ctx>, LeafType)],
    ) -> Result<Leaves<'ctx>, BackendError> {
        let args = leaves.iter().map(|(leaf, _)| leaf.uniform());
        let args = args.collect::<Result<Vec<_>, _>>()?;
        let parts = self.emit.call_hooked(function, &args)?;
        Ok(parts.into_iter().map(Leaf::Uniform).collect())
    }

    fn call_for_lanes(
        &mut self,
        function: FunctionValue<'ctx>,
        leaves: &[(Leaf<'ctx>, LeafType)],
        result: Type,
    ) -> Result<Leaves<'ctx>, BackendError> {
        let mut operands = Vec::new();
        for &(leaf, ty) in leaves {
            operands.push((self.operand(leaf, ty)?, ty));
        }
        let results = self.kernel.leaves(result);
        let mut slots = Vec::new();
        for ty in &results {
            let vector = self.emit.vector_of(lane_memory(self.emit, *ty));
            let slot = self.entry.slot(self.emit, vector.into())?;
            self.emit.builder.build_store(slot, vector.const_zero())?;
            slots.push((slot, vector));
        }
        self.lane_loop(|warp, lane| {
            let mut args = Vec::new();
            for (operand, ty) in &operands {
                args.push(match *operand {
                    Operand::Same(value) => value,
                    Operand::EachLane(slot) => warp.load_lane(slot, *ty, lane)?,
                });
            }
            let parts = warp.emit.call_hooked(function, &args)?;
            for ((part, ty), &(slot, _)) in parts.into_iter().zip(&results).zip(&slots) {
                warp.store_lane(slot, *ty, lane, part)?;
            }
            Ok(())
        })?;
        let mut wide = Leaves::new();
        for ((slot, vector), ty) in slots.into_iter().zip(&results) {
            let value = self.emit.builder.build_load(vector, slot, "")?;
            wide.push(Leaf::from(self.as_leaf(value, *ty)?));
        }
        Ok(wide)
    }

    fn operand(&self, leaf: Leaf<'ctx>, ty: LeafType) -> Result<Operand<'ctx>, BackendError> {
        if let Leaf::Uniform(value) = leaf {
            return Ok(Operand::Same(value));
        }
        let lanes: BasicValueEnum<'ctx> = leaf.vector(self.emit)?.into();
        let lanes = self.as_byte(lanes, ty)?;
        let slot = self.entry.slot(self.emit, lanes.get_type())?;
        self.emit.builder.build_store(slot, lanes)?;
        Ok(Operand::EachLane(slot))
    }

    fn load_lane(
        &self,
        slot: PointerValue<'ctx>,
        ty: LeafType,
        lane: BasicValueEnum<'ctx>,
    ) -> Built<'ctx> {
        let memory = lane_memory(self.emit, ty);
        let at = self.lane_slot(slot, memory, lane)?;
        let value = self.emit.builder.build_load(memory, at, "")?;
        self.as_leaf(value, ty)
    }

    fn store_lane(
        &self,
        slot: PointerValue<'ctx>,
        ty: LeafType,
        lane: BasicValueEnum<'ctx>,
        value: BasicValueEnum<'ctx>,
    ) -> Result<(), BackendError> {
        let at = self.lane_slot(slot, lane_memory(self.emit, ty), lane)?;
        let value = self.as_byte(value, ty)?;
        self.emit.builder.build_store(at, value)?;
        Ok(())
    }

    /// Vectors of bits have no addressable parts: a bool takes a byte.
    fn as_byte(&self, value: BasicValueEnum<'ctx>, ty: LeafType) -> Built<'ctx> {
        match ty.scalar() {
            Some(scalar) => self.emit.as_stored(value, scalar),
            None => Ok(value),
        }
    }

    fn as_leaf(&self, value: BasicValueEnum<'ctx>, ty: LeafType) -> Built<'ctx> {
        match ty.scalar() {
            Some(scalar) => self.emit.as_computed(value, scalar),
            None => Ok(value),
        }
    }

    /// The function with the code that a hook builds for the instruction, if one does. It takes and gives
    /// leaves.
    fn outline(
        &self,
        node: &InstNode,
        result: Type,
    ) -> Result<Option<FunctionValue<'ctx>>, BackendError> {
        let emit = self.emit;
        let mut params = Vec::new();
        for operand in operands(node) {
            params.extend(self.kernel.leaves(self.type_of(operand)));
        }
        let results = self.kernel.leaves(result);
        let ty = function_type(emit, &params, &results);
        let function = emit
            .module
            .add_function(HOOKED, ty, Some(Linkage::Internal));
        let inline = Attribute::get_named_enum_kind_id("alwaysinline");
        let inline = emit.context.create_enum_attribute(inline, 0);
        function.add_attribute(AttributeLoc::Function, inline);
        let builder = emit.context.create_builder();
        builder.position_at_end(emit.context.append_basic_block(function, "entry"));

        let inner = Emit { builder, ..*emit };
        let seen = HookValues {
            emit: &inner,
            types: self.types(),
        };
        let mut leaves = function.get_param_iter();
        let mut args = Vec::new();
        for operand in operands(node) {
            seen.push_args(self.type_of(operand), &mut leaves, &mut args)?;
        }
        let operation = OperationLowering {
            hook: emit.hooks.context(),
            place: &seen,
            context: emit.context,
            builder: &inner.builder,
            llvm_module: emit.module,
            llvm_function: function,
            module: self.kernel.module,
            function: self.function(),
            inst: node,
        };
        let Some(lowered) = emit.hooks.ask(&operation, &args)? else {
            // SAFETY: nothing calls it yet, and nothing holds what is in it.
            unsafe { function.delete() };
            return Ok(None);
        };
        seen.return_leaves(lowered, result)?;
        Ok(Some(function))
    }
}

fn operands(node: &InstNode) -> Vec<Value> {
    let mut operands = Vec::new();
    node.data.for_each_operand(|value| operands.push(value));
    operands
}

fn lane_memory<'ctx>(emit: &Emit<'_, 'ctx>, ty: LeafType) -> BasicTypeEnum<'ctx> {
    match ty.scalar() {
        Some(scalar) => emit.stored_type(scalar),
        None => emit.leaf_type(ty),
    }
}

fn function_type<'ctx>(
    emit: &Emit<'_, 'ctx>,
    params: &[LeafType],
    results: &[LeafType],
) -> FunctionType<'ctx> {
    let params: Vec<BasicMetadataTypeEnum<'ctx>> = params
        .iter()
        .map(|&leaf| emit.leaf_type(leaf).into())
        .collect();
    let results: Vec<BasicTypeEnum<'ctx>> =
        results.iter().map(|&leaf| emit.leaf_type(leaf)).collect();
    emit.context
        .struct_type(&results, false)
        .fn_type(&params, false)
}

impl<'ctx> Place<'ctx> for HookValues<'_, '_, 'ctx> {
    fn pointer(&self, _: AddressSpace) -> PointerType<'ctx> {
        self.emit.address_type()
    }

    fn aggregate(&self, ty: Type) -> Result<BasicTypeEnum<'ctx>, BackendError> {
        Ok(self.memory_type(ty))
    }

    /// Without a parser of assembly LLVM would end the process.
    fn assembly(
        &self,
        _: &Builder<'ctx>,
        assembly: InlineAssembly<'_>,
        _: Option<BasicTypeEnum<'ctx>>,
        _: &[BasicValueEnum<'ctx>],
    ) -> Result<Option<BasicValueEnum<'ctx>>, OperationError> {
        Err(OperationError::NoAssembly {
            machine: "a CPU",
            template: assembly.template.to_owned(),
        })
    }
}

impl<'ctx> Emit<'_, 'ctx> {
    /// Calls a function that [`Warp::outline`] has made; the leaves of its result.
    fn call_hooked(
        &self,
        function: FunctionValue<'ctx>,
        args: &[BasicValueEnum<'ctx>],
    ) -> Result<Vec<BasicValueEnum<'ctx>>, BackendError> {
        let args: Vec<_> = args.iter().map(|&arg| arg.into()).collect();
        let call = self.builder.build_call(function, &args, "")?;
        let whole = value_of(call, HOOKED)?.into_struct_value();
        (0..whole.get_type().count_fields())
            .map(|i| Ok(self.builder.build_extract_value(whole, i, "")?))
            .collect()
    }
}
