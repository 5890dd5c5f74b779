//! Signatures of kernels and device functions, and what is promised about their parameters.
//!
//! A kernel's parameters follow [`kiln_ir::abi::ParamLayout`]: one `.param` variable for each slot. A device
//! function takes the same values, a slice as two of them.

use inkwell::attributes::{Attribute, AttributeLoc};
use inkwell::module::Linkage;
use inkwell::types::{
    AnyType as _, BasicMetadataTypeEnum, BasicType as _, BasicTypeEnum, FunctionType,
};
use inkwell::values::FunctionValue;

use kiln_ir::{
    AddressSpace, Entity as _, FastMath, FuncId, Function, FunctionKind, Inline, ParamData,
    ParamFacts, Passing, Type,
};

use super::{ModuleLowering, names};
use crate::gpu::inline_ptx::enum_attribute;
use crate::gpu::types::space_number;
use crate::hooks::lanes_per_piece;
use crate::llvm::bindings::less_than;
use crate::llvm::error::BackendError;
use crate::llvm::reflection::APPROXIMATES;

/// How one IR parameter arrives.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Arrival {
    /// One LLVM parameter in value form.
    Value,
    /// One LLVM parameter in memory form, a `bool` of a kernel.
    Memory,
    /// An address in the parameter block; the IR value is that address.
    ParamAddress(Type),
    /// An address in the parameter block; the IR value is what lies there.
    ParamLoad(Type),
    /// Two LLVM parameters.
    Slice,
}

/// The cost up to which LLVM inlines a function that may write a variable of its caller's, in place of 2475: some
/// 4000 instructions. It is no `alwaysinline`, by which functions that call each other twice would grow without end.
const THRESHOLD_OF_CALLERS_MEMORY: u32 = 20_000;

impl<'ctx> ModuleLowering<'_, 'ctx> {
    pub(super) fn arrival(&self, function: &Function, param: &ParamData) -> Arrival {
        let ty = function.type_of(param.value);
        let kernel = function.kind == FunctionKind::Kernel;
        let types = self.types.table();
        // LLVM would align such a vector, and a struct that holds one, to its size.
        let in_pieces = |(element, lanes)| lanes_per_piece(element, lanes).is_some();
        if types.is_slice(ty) {
            Arrival::Slice
        } else if param.passing == Passing::ByValue {
            Arrival::ParamAddress(types.pointee_of(ty))
        } else if !kernel {
            Arrival::Value
        } else if types.is_aggregate(ty) || types.as_vector(ty).is_some_and(in_pieces) {
            Arrival::ParamLoad(ty)
        } else {
            Arrival::Memory
        }
    }

    fn param_types(
        &self,
        function: &Function,
        param: &ParamData,
        into: &mut Vec<BasicMetadataTypeEnum<'ctx>>,
    ) -> Result<(), BackendError> {
        let ty = function.type_of(param.value);
        match self.arrival(function, param) {
            Arrival::Value => into.push(self.types.value(ty)?.into()),
            Arrival::Memory => into.push(self.types.memory(ty)?.into()),
            Arrival::ParamAddress(_) | Arrival::ParamLoad(_) => {
                let own = self.dialect.param_block().space;
                let space = own.unwrap_or(space_number(AddressSpace::Param));
                into.push(self.context.ptr_type(space.into()).into());
            }
            Arrival::Slice => {
                let (elements, wide) = self.types.table().slice_of(ty);
                into.push(self.types.pointer(elements.space).into());
                into.push(self.types.slice_length(wide).into());
            }
        }
        Ok(())
    }

    fn function_type(&self, function: &Function) -> Result<FunctionType<'ctx>, BackendError> {
        let mut params = Vec::new();
        for param in &function.params {
            self.param_types(function, param, &mut params)?;
        }
        Ok(match self.result_type(function.result)? {
            None => self.context.void_type().fn_type(&params, false),
            Some(result) => result.fn_type(&params, false),
        })
    }

    /// The LLVM type of a device function's result: value form, or a slice's memory form.
    pub(super) fn result_type(
        &self,
        ty: Type,
    ) -> Result<Option<BasicTypeEnum<'ctx>>, BackendError> {
        if ty == Type::UNIT {
            return Ok(None);
        }
        Ok(Some(match self.types.table().as_slice(ty) {
            Some((elements, _)) => self.types.slice_memory(elements.space).into(),
            None => self.types.value(ty)?,
        }))
    }

    pub(crate) fn enum_attribute(&self, name: &str, value: u64) -> Attribute {
        enum_attribute(self.context, name, value)
    }

    /// Declares a function with its attributes; its body follows.
    pub(super) fn declare_function(&self, id: FuncId) -> Result<FunctionValue<'ctx>, BackendError> {
        let function = &self.module.functions[id];
        let ty = self.function_type(function)?;
        let kernel = function.kind == FunctionKind::Kernel;
        let (name, linkage) = if kernel {
            let name = names::kernel_entry_name(&function.name, self.kernel_tag);
            (name, Linkage::External)
        } else {
            let name = names::device_function_name(&function.name, id.index());
            (name, Linkage::Internal)
        };
        let declared = self.llvm.add_function(&name, ty, Some(linkage));
        // Barriers and shuffles must not be moved across branches; LLVM drops `convergent` where it
        // sees that there are none.
        for attribute in ["convergent", "nounwind"] {
            declared.add_attribute(AttributeLoc::Function, self.enum_attribute(attribute, 0));
        }
        let inline = match function.inline {
            Inline::Auto => None,
            Inline::Hint => Some("inlinehint"),
            Inline::Always => Some("alwaysinline"),
            Inline::Never => Some("noinline"),
        };
        if let Some(inline) = inline {
            declared.add_attribute(AttributeLoc::Function, self.enum_attribute(inline, 0));
        } else if !kernel && let Some(cost) = self.inline_threshold(function) {
            let threshold = (self.context)
                .create_string_attribute("function-inline-threshold", &cost.to_string());
            declared.add_attribute(AttributeLoc::Function, threshold);
        }
        if kernel && function.choices.fast.has(FastMath::APPROXIMATE) {
            let approximates = (self.context).create_string_attribute(APPROXIMATES, "");
            declared.add_attribute(AttributeLoc::Function, approximates);
        }
        if self.flushes() {
            // LLVM inlines no function in another that takes these numbers in another way.
            let flush = "preserve-sign,preserve-sign";
            let flush = (self.context).create_string_attribute("denormal-fp-math-f32", flush);
            declared.add_attribute(AttributeLoc::Function, flush);
        }
        if kernel {
            self.kernel_attributes(function, declared)?;
        }
        Ok(declared)
    }

    /// Up to which cost a function is inlined that does not say it itself; `None`: as LLVM judges.
    fn inline_threshold(&self, function: &Function) -> Option<u32> {
        let kernel = self.module.kernel().map(|id| &self.module.functions[id]);
        let chosen = kernel.and_then(|kernel| kernel.choices.inline_threshold);
        chosen.or_else(|| {
            (self.works_on_callers_memory(function)).then_some(THRESHOLD_OF_CALLERS_MEMORY)
        })
    }

    /// Whether a function may write a variable of its caller's. Called, it keeps that in local memory; inlined, in
    /// registers.
    fn works_on_callers_memory(&self, function: &Function) -> bool {
        let may_be_local = |param: &ParamData| {
            let address = self.types.table().address(function.type_of(param.value));
            address.is_some_and(|address| {
                let space = address.space;
                let may_be = matches!(space, AddressSpace::Local | AddressSpace::Generic);
                address.mutable && may_be
            })
        };
        function.params.iter().any(may_be_local)
    }

    /// Whether the kernel takes numbers that are not normal for zero.
    fn flushes(&self) -> bool {
        let kernel = self
            .module
            .kernel()
            .map(|kernel| &self.module.functions[kernel]);
        kernel.is_some_and(|kernel| kernel.choices.fast.has(FastMath::FLUSH))
    }

    fn kernel_attributes(
        &self,
        function: &Function,
        declared: FunctionValue<'ctx>,
    ) -> Result<(), BackendError> {
        declared.set_call_conventions(self.dialect.kernel_convention());
        let choices = function.choices;
        for (name, value) in (self.dialect).kernel_attributes(function.launch_bounds, choices) {
            let attribute = self.context.create_string_attribute(name, &value);
            declared.add_attribute(AttributeLoc::Function, attribute);
        }
        let mut index = 0;
        for param in &function.params {
            let arrival = self.arrival(function, param);
            match arrival {
                Arrival::ParamAddress(ty) | Arrival::ParamLoad(ty) => {
                    self.by_value_attributes(declared, index, ty)?;
                }
                Arrival::Value | Arrival::Memory | Arrival::Slice => {
                    self.pointer_attributes(function, param, declared, index);
                }
            }
            index += if arrival == Arrival::Slice { 2 } else { 1 };
        }
        Ok(())
    }

    /// The value lies in the parameter block and nobody writes to it: read in place.
    fn by_value_attributes(
        &self,
        declared: FunctionValue<'ctx>,
        index: u32,
        ty: Type,
    ) -> Result<(), BackendError> {
        let at = AttributeLoc::Param(index);
        let memory = self.types.memory(ty)?;
        let block = self.dialect.param_block();
        let byval = Attribute::get_named_enum_kind_id(block.by_value);
        let byval = self
            .context
            .create_type_attribute(byval, memory.as_any_type_enum());
        declared.add_attribute(at, byval);
        let align = self.types.layout(ty).align;
        declared.add_attribute(at, self.enum_attribute("align", align));
        declared.add_attribute(at, self.enum_attribute("readonly", 0));
        if let Some(mark) = block.mark {
            let mark = self.context.create_string_attribute(mark, "");
            declared.add_attribute(at, mark);
        }
        Ok(())
    }

    /// What the facts and the type of a pointer or slice parameter promise.
    fn pointer_attributes(
        &self,
        function: &Function,
        param: &ParamData,
        declared: FunctionValue<'ctx>,
        index: u32,
    ) {
        let ty = function.type_of(param.value);
        let Some(address) = self.types.table().address(ty) else {
            return;
        };
        let at = AttributeLoc::Param(index);
        if param.facts.noalias {
            declared.add_attribute(at, self.enum_attribute("noalias", 0));
        }
        if !address.mutable {
            declared.add_attribute(at, self.enum_attribute("readonly", 0));
        }
        let align = u64::from(param.facts.align);
        if align > 1 && align.is_power_of_two() {
            declared.add_attribute(at, self.enum_attribute("align", align));
        }
        if param.facts.short {
            let length = AttributeLoc::Param(index + 1);
            declared.add_attribute(length, less_than(self.context, ParamFacts::SHORT as u32));
        }
    }
}
