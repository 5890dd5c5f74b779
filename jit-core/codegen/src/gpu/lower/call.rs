//! Calls of LLVM intrinsics and inline PTX.

use inkwell::builder::Builder;
use inkwell::types::{BasicTypeEnum, PointerType};
use inkwell::values::{BasicValueEnum, CallSiteValue};

use kiln_ir::{AddressSpace, Effects, Type};

use super::{FunctionLowering, ModuleLowering, Point};
use crate::gpu::inline_ptx::InlinePtx;
use crate::hooks::{InlineAssembly, OperationError, Place};
use crate::llvm::ask::{call_arguments, declared, value_of};
use crate::llvm::error::BackendError;

impl<'a, 'ctx> ModuleLowering<'a, 'ctx> {
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
    pub(crate) fn call_llvm_site(
        &self,
        builder: &Builder<'ctx>,
        name: &str,
        overloads: &[BasicTypeEnum<'ctx>],
        args: &[BasicValueEnum<'ctx>],
    ) -> Result<CallSiteValue<'ctx>, BackendError> {
        let declaration = declared(&self.llvm, name, overloads)?;
        Ok(builder.build_call(declaration, &call_arguments(args), "")?)
    }

    /// Where the machine's dialect builds.
    pub(super) fn point<'m>(&'m self, builder: &'m Builder<'ctx>) -> Point<'m, 'a, 'ctx> {
        Point {
            module: self,
            builder,
        }
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
        let ptx = InlinePtx {
            template,
            constraints,
            effects,
        };
        self.written.note(ptx);
        ptx.call(self.context, builder, result, args)
    }
}

impl<'ctx> Place<'ctx> for ModuleLowering<'_, 'ctx> {
    fn pointer(&self, space: AddressSpace) -> PointerType<'ctx> {
        self.types.pointer(space)
    }

    fn aggregate(&self, ty: Type) -> Result<BasicTypeEnum<'ctx>, BackendError> {
        self.types.value(ty)
    }

    fn assembly(
        &self,
        builder: &Builder<'ctx>,
        assembly: InlineAssembly<'_>,
        result: Option<BasicTypeEnum<'ctx>>,
        args: &[BasicValueEnum<'ctx>],
    ) -> Result<Option<BasicValueEnum<'ctx>>, OperationError> {
        self.dialect.check_assembly(assembly, result, args)?;
        let (template, constraints) = (assembly.template, assembly.constraints);
        let effects = assembly.effects;
        let call = self.build_asm(builder, template, constraints, result, args, effects)?;
        Ok(call.try_as_basic_value().basic())
    }
}

impl<'ctx> FunctionLowering<'_, 'ctx> {
    /// Calls an LLVM intrinsic here.
    pub(crate) fn call_llvm(
        &self,
        name: &str,
        overloads: &[BasicTypeEnum<'ctx>],
        args: &[BasicValueEnum<'ctx>],
    ) -> Result<Option<BasicValueEnum<'ctx>>, BackendError> {
        self.module.call_llvm(self.builder(), name, overloads, args)
    }

    /// Calls an LLVM intrinsic that gives a value.
    pub(crate) fn llvm_value(
        &self,
        name: &str,
        overloads: &[BasicTypeEnum<'ctx>],
        args: &[BasicValueEnum<'ctx>],
    ) -> Result<BasicValueEnum<'ctx>, BackendError> {
        let builder = self.builder();
        let call = self.module.call_llvm_site(builder, name, overloads, args)?;
        value_of(call, name)
    }

    /// Inline PTX (LLVM language reference, "Inline Assembler Expressions").
    pub(crate) fn call_asm(
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
}
