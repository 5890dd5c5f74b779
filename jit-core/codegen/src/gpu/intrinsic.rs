//! Intrinsics: the cell of a row becomes a call of an LLVM intrinsic or inline PTX.
//!
//! Conventions of the cells: `lower/registers.rs` says how values are in inline PTX. In LLVM intrinsics every type
//! is itself, and several results are a struct.

use inkwell::IntPredicate;
use inkwell::attributes::AttributeLoc;
use inkwell::types::{BasicType as _, FunctionType};
use inkwell::values::{BasicValue as _, BasicValueEnum, FunctionValue, InstructionValue};

use kiln_ir::{
    Effects, Function, InstData, IntrinsicDef, IntrinsicId, Known, Lowering, Scalar, Type, Value,
};

use super::lower::{FunctionLowering, Lowered};
use crate::llvm::ask::{call_arguments, given_by_cell};
use crate::llvm::error::BackendError;
use crate::llvm::operations::quotient_flags;

fn refused(def: &IntrinsicDef, what: &str) -> BackendError {
    BackendError::new("lower", format!("intrinsic `{}` {what}", def.name))
}

/// Whether a function assumes something.
fn assumes(function: &Function) -> bool {
    let mut found = false;
    function.for_each_inst(|_, inst| {
        found |= matches!(function.insts[inst].data, InstData::Assume { .. });
    });
    found
}

impl<'ctx> FunctionLowering<'_, 'ctx> {
    pub(super) fn lower_intrinsic(
        &mut self,
        id: IntrinsicId,
        args: &[Value],
        result: Type,
    ) -> Result<Option<Lowered<'ctx>>, BackendError> {
        let def = self.module.module.intrinsics[id];
        let types: Vec<Type> = args.iter().map(|&arg| self.type_of(arg)).collect();
        let values: Vec<_> = args.iter().map(|&arg| self.one(arg)).collect();
        let dialect = self.module.dialect;
        if let Some(known) = def.known.filter(|&known| dialect.knows(known)) {
            let scalar = def.meaning_type(&self.types().table(), &types, result);
            let value = dialect.known(&self.point(), (known, scalar), &values)?;
            return Ok(value.map(Lowered::One));
        }
        let cell = def
            .cell_of(
                self.fast,
                def.cell_type(&self.types().table(), &types, result),
                self.module.dialect.processor(),
            )
            .ok_or_else(|| refused(def, "is not legal here; `check_legal` refuses it"))?;
        let value = match cell.lowering {
            Lowering::ViaF32 => self.via_f32(def, &types, &values, result)?,
            lowering => self.cell_call(def, lowering, &types, &values, result)?,
        };
        Ok(value.map(Lowered::One))
    }

    /// The `f32` cell on widened halves, its result rounded.
    fn via_f32(
        &self,
        def: &'static IntrinsicDef,
        types: &[Type],
        values: &[BasicValueEnum<'ctx>],
        result: Type,
    ) -> Result<Option<BasicValueEnum<'ctx>>, BackendError> {
        let wide = def
            .cell(Some(Scalar::F32), self.module.dialect.processor())
            .ok_or_else(|| refused(def, "has no f32 cell to go through"))?;
        let is_half = |ty: Type| ty.as_scalar().is_some_and(Scalar::is_half);
        let widened = |ty: Type| if is_half(ty) { Type::F32 } else { ty };
        let wide_types: Vec<Type> = types.iter().copied().map(widened).collect();
        let mut wide_values = Vec::with_capacity(values.len());
        for (&ty, &value) in types.iter().zip(values) {
            wide_values.push(if is_half(ty) {
                self.widen_half(value)?
            } else {
                value
            });
        }
        let value = self.cell_call(
            def,
            wide.lowering,
            &wide_types,
            &wide_values,
            widened(result),
        )?;
        match (value, result.as_scalar()) {
            (Some(value), Some(half)) if half.is_half() => {
                self.round_to_half(value, half).map(Some)
            }
            (value, _) => Ok(value),
        }
    }

    fn cell_call(
        &self,
        def: &'static IntrinsicDef,
        lowering: Lowering,
        types: &[Type],
        values: &[BasicValueEnum<'ctx>],
        result: Type,
    ) -> Result<Option<BasicValueEnum<'ctx>>, BackendError> {
        let value = match lowering {
            Lowering::Llvm { name, overloaded } => {
                let overloads = if overloaded {
                    let selecting = def.overload_type(&self.types().table(), types, result);
                    vec![self.types().value(selecting)?]
                } else {
                    Vec::new()
                };
                let builder = self.builder();
                let call = self
                    .module
                    .call_llvm_site(builder, name, &overloads, values)?;
                if def.effects.meets() {
                    for name in ["convergent", "nomerge"] {
                        let attribute = self.module.enum_attribute(name, 0);
                        call.add_attribute(AttributeLoc::Function, attribute);
                    }
                }
                let value = call.try_as_basic_value().basic();
                if let Some(call) = value.and_then(|v| v.as_instruction_value()) {
                    self.bound_result(def, call, result);
                    self.bound_index(def, name, value)?;
                    if call.get_type() == self.types().float(Scalar::F32).into() {
                        // What gives a float takes the flags.
                        let _ = call.set_fast_math_flags(quotient_flags(self.fast));
                    }
                }
                match value {
                    Some(several @ BasicValueEnum::StructValue(_)) => {
                        Some(self.value_from_registers(result, several)?)
                    }
                    value => value,
                }
            }
            Lowering::Asm {
                template,
                constraints,
            } => self.cell_asm(def, (template, constraints), types, values, result)?,
            Lowering::Function { name } => self.call_linked(def, name, values, result)?,
            Lowering::Ptx(function) => self.call_linked(def, function.name, values, result)?,
            Lowering::ViaF32 => return Err(refused(def, "goes through f32 in its f32 cell")),
        };
        match result {
            Type::UNIT => Ok(None),
            _ => given_by_cell(def, value, self.types().value(result)?).map(Some),
        }
    }

    /// Calls a function that a hook links afterwards, without which the module is refused as it calls what it has not, or whose
    /// text goes behind the kernel's.
    fn call_linked(
        &self,
        def: &IntrinsicDef,
        name: &str,
        values: &[BasicValueEnum<'ctx>],
        result: Type,
    ) -> Result<Option<BasicValueEnum<'ctx>>, BackendError> {
        let params: Vec<_> = values.iter().map(|value| value.get_type().into()).collect();
        let ty = match result {
            Type::UNIT => self.context().void_type().fn_type(&params, false),
            _ => self.types().value(result)?.fn_type(&params, false),
        };
        let module = &self.module.llvm;
        let function = match module.get_function(name) {
            Some(known) if known.get_type() == ty => known,
            Some(_) => {
                let what = format!("calls `{name}`, which another row has with other types");
                return Err(refused(def, &what));
            }
            None => self.declare_linked(def, name, ty),
        };
        let call = self
            .builder()
            .build_call(function, &call_arguments(values), "")?;
        if def.effects.meets() {
            let attribute = self.module.enum_attribute("convergent", 0);
            call.add_attribute(AttributeLoc::Function, attribute);
        }
        Ok(call.try_as_basic_value().basic())
    }

    /// Declares a function of a row, and what LLVM would see of its body.
    fn declare_linked(
        &self,
        def: &IntrinsicDef,
        name: &str,
        ty: FunctionType<'ctx>,
    ) -> FunctionValue<'ctx> {
        let function = self.module.llvm.add_function(name, ty, None);
        if def.effects == Effects::None {
            for name in ["memory", "nounwind", "willreturn"] {
                let attribute = self.module.enum_attribute(name, 0);
                function.add_attribute(AttributeLoc::Function, attribute);
            }
        }
        function
    }

    /// Tells LLVM the bounds of an integer result (`!range`). Code that runs has a thread, and so do its block and grid.
    fn bound_result(&self, def: &IntrinsicDef, call: InstructionValue<'ctx>, result: Type) {
        let Some(scalar) = result.as_scalar().filter(|s| s.is_int()) else {
            return;
        };
        let below = self.result_below(def);
        let fits = scalar.bits() == 64 || below < 1 << (scalar.bits() - 1);
        if below == 0 || !fits {
            return;
        }
        let int = self.types().int(scalar.bits());
        let counts = matches!(def.known, Some(Known::BlockDim(_) | Known::GridDim(_)));
        let ends =
            [u64::from(counts && below > 1), below].map(|end| int.const_int(end, false).into());
        let range = self.context().metadata_node(&ends);
        // Only a string is refused here.
        let _ = call.set_metadata(range, self.context().get_kind_id("range"));
    }

    /// Says that the index of a thread is below the size of its block, where a kernel asks for that and assumes something,
    /// which may be it. In all kernels LLVM would have more to go through, and know nothing of use.
    fn bound_index(
        &self,
        def: &IntrinsicDef,
        name: &str,
        index: Option<BasicValueEnum<'ctx>>,
    ) -> Result<(), BackendError> {
        let (Some(Known::ThreadIdx(axis)), Some(BasicValueEnum::IntValue(index))) =
            (def.known, index)
        else {
            return Ok(());
        };
        let module = self.module.module;
        let mut rows = module.intrinsics.values();
        let asks = rows.any(|row| row.known == Some(Known::BlockDim(axis)));
        if !asks || !module.functions.values().any(assumes) {
            return Ok(());
        }
        let size = self.call_llvm(&name.replace(".tid.", ".ntid."), &[], &[])?;
        if let Some(BasicValueEnum::IntValue(size)) = size {
            let is_below = self
                .builder()
                .build_int_compare(IntPredicate::ULT, index, size, "")?;
            self.call_llvm("llvm.assume", &[], &[is_below.into()])?;
        }
        Ok(())
    }

    /// What a row's result is below, 0 if nothing is known: what the row says, or what the kernel promises of the
    /// blocks that it is launched with.
    fn result_below(&self, def: &IntrinsicDef) -> u64 {
        let module = self.module.module;
        let kernel = module.kernel().map(|id| &module.functions[id]);
        let bounds = kernel.and_then(|kernel| kernel.launch_bounds);
        let threads = bounds.map(|bounds| u64::from(bounds.max_threads));
        let promised = threads.filter(|&threads| threads > 0);
        match (def.known, promised) {
            (Some(Known::ThreadIdx(_)), Some(threads)) => threads.min(def.result_below),
            (Some(Known::BlockDim(_)), Some(threads)) => (threads + 1).min(def.result_below),
            _ => def.result_below,
        }
    }

    fn cell_asm(
        &self,
        def: &IntrinsicDef,
        (template, constraints): (&str, &str),
        types: &[Type],
        values: &[BasicValueEnum<'ctx>],
        result: Type,
    ) -> Result<Option<BasicValueEnum<'ctx>>, BackendError> {
        let mut args = Vec::with_capacity(values.len());
        for (&ty, &value) in types.iter().zip(values) {
            self.push_registers(ty, value, &mut args)?;
        }
        let register = self.register_types(result)?;
        let value = self.call_asm(template, constraints, register, &args, def.effects)?;
        match value {
            Some(value) => self.value_from_registers(result, value).map(Some),
            None => Ok(None),
        }
    }
}
