//! Calls of LLVM intrinsics and inline PTX.

use inkwell::attributes::AttributeLoc;
use inkwell::builder::Builder;
use inkwell::intrinsics::Intrinsic;
use inkwell::types::{BasicMetadataTypeEnum, BasicType as _, BasicTypeEnum};
use inkwell::values::{BasicValueEnum, CallSiteValue};

use super::value::call_arguments;
use super::{FunctionLowering, ModuleLowering};
use crate::codegen::error::BackendError;
use crate::ir::Effects;

impl<'ctx> ModuleLowering<'_, 'ctx> {
    /// Calls an LLVM intrinsic; `overloads` are the types that select it if it is overloaded.
    pub(super) fn call_llvm(
        &self,
        builder: &Builder<'ctx>,
        name: &str,
        overloads: &[BasicTypeEnum<'ctx>],
        args: &[BasicValueEnum<'ctx>],
    ) -> Result<Option<BasicValueEnum<'ctx>>, BackendError> {
        let call = self.call_llvm_site(builder, name, overloads, args)?;
        Ok(call.try_as_basic_value().basic())
    }

    /// As [`ModuleLowering::call_llvm`], giving the call itself.
    pub(in crate::codegen) fn call_llvm_site(
        &self,
        builder: &Builder<'ctx>,
        name: &str,
        overloads: &[BasicTypeEnum<'ctx>],
        args: &[BasicValueEnum<'ctx>],
    ) -> Result<CallSiteValue<'ctx>, BackendError> {
        let declaration = Intrinsic::find(name)
            .and_then(|intrinsic| intrinsic.get_declaration(&self.llvm, overloads));
        let Some(declaration) = declaration else {
            return Err(BackendError::new(
                "lower",
                format!("LLVM 22 has no intrinsic `{name}` for these types"),
            ));
        };
        Ok(builder.build_call(declaration, &call_arguments(args), "")?)
    }

    /// Inline PTX without operands that must stay where it is.
    pub(super) fn build_asm_statement(
        &self,
        builder: &Builder<'ctx>,
        template: &str,
    ) -> Result<(), BackendError> {
        self.build_asm(builder, template, "~{memory}", None, &[], Effects::Memory)?;
        Ok(())
    }

    pub(super) fn build_asm(
        &self,
        builder: &Builder<'ctx>,
        template: &str,
        constraints: &str,
        result: Option<BasicTypeEnum<'ctx>>,
        args: &[BasicValueEnum<'ctx>],
        effects: Effects,
    ) -> Result<CallSiteValue<'ctx>, BackendError> {
        let params: Vec<BasicMetadataTypeEnum<'ctx>> =
            args.iter().map(|arg| arg.get_type().into()).collect();
        let ty = match result {
            Some(result) => result.fn_type(&params, false),
            None => self.context.void_type().fn_type(&params, false),
        };
        let asm = self.context.create_inline_asm(
            ty,
            template.to_owned(),
            constraints.to_owned(),
            effects != Effects::None,
            false,
            None,
            false,
        );
        let call = builder.build_indirect_call(ty, asm, &call_arguments(args), "")?;
        call.add_attribute(AttributeLoc::Function, self.enum_attribute("nounwind", 0));
        for (name, value) in asm_attributes(effects, constraints) {
            call.add_attribute(AttributeLoc::Function, self.enum_attribute(name, value));
        }
        Ok(call)
    }
}

/// `memory(inaccessiblemem: readwrite)`: two bits a kind of memory, this one the second.
const INACCESSIBLE_MEMORY: u64 = 0b11 << 2;

/// The attributes of inline PTX (LLVM language reference, "Function Attributes"). What communicates
/// within the warp is neither made conditional (`convergent`) nor merged with its like in another
/// branch (`nomerge`), and unless it clobbers memory, loads and stores may move across it.
fn asm_attributes(effects: Effects, constraints: &str) -> Vec<(&'static str, u64)> {
    match effects {
        Effects::None => vec![("memory", 0)],
        Effects::Memory => Vec::new(),
        Effects::Convergent if constraints.contains("~{memory}") => {
            vec![("convergent", 0), ("nomerge", 0)]
        }
        Effects::Convergent => vec![
            ("convergent", 0),
            ("nomerge", 0),
            ("memory", INACCESSIBLE_MEMORY),
        ],
    }
}

impl<'ctx> FunctionLowering<'_, 'ctx> {
    /// Calls an LLVM intrinsic here.
    pub(in crate::codegen) fn call_llvm(
        &self,
        name: &str,
        overloads: &[BasicTypeEnum<'ctx>],
        args: &[BasicValueEnum<'ctx>],
    ) -> Result<Option<BasicValueEnum<'ctx>>, BackendError> {
        self.module.call_llvm(self.builder(), name, overloads, args)
    }

    /// Calls an LLVM intrinsic that gives a value.
    pub(in crate::codegen) fn llvm_value(
        &self,
        name: &str,
        overloads: &[BasicTypeEnum<'ctx>],
        args: &[BasicValueEnum<'ctx>],
    ) -> Result<BasicValueEnum<'ctx>, BackendError> {
        self.call_llvm(name, overloads, args)?
            .ok_or_else(|| BackendError::new("lower", format!("`{name}` gives no value")))
    }

    /// Inline PTX (LLVM language reference, "Inline Assembler Expressions").
    pub(in crate::codegen) fn call_asm(
        &self,
        template: &str,
        constraints: &str,
        result: Option<BasicTypeEnum<'ctx>>,
        args: &[BasicValueEnum<'ctx>],
        effects: Effects,
    ) -> Result<Option<BasicValueEnum<'ctx>>, BackendError> {
        let call =
            self.module
                .build_asm(self.builder(), template, constraints, result, args, effects)?;
        Ok(call.try_as_basic_value().basic())
    }

    /// Inline PTX that gives a value.
    pub(in crate::codegen) fn asm_value(
        &self,
        template: &str,
        constraints: &str,
        result: BasicTypeEnum<'ctx>,
        args: &[BasicValueEnum<'ctx>],
        effects: Effects,
    ) -> Result<BasicValueEnum<'ctx>, BackendError> {
        self.call_asm(template, constraints, Some(result), args, effects)?
            .ok_or_else(|| BackendError::new("lower", format!("`{template}` gives no value")))
    }
}
