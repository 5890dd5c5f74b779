//! Where the lowering asks whether somebody else wants to lower an instruction.
//!
//! The pipeline answers for the hooks of a compilation.

use inkwell::builder::Builder;
use inkwell::context::Context;
use inkwell::module::Module as LlvmModule;
use inkwell::types::BasicTypeEnum;
use inkwell::values::{BasicValueEnum, FunctionValue};

use kiln_ir::{Function, InstNode, IntrinsicDef, Module};

use crate::llvm::error::BackendError;

/// One operation while it is lowered. Hooks on LLVM's level are given it.
///
/// On a GPU its code is built in the kernel itself. On a CPU a thread is a lane of vectors; there the code
/// is built for one thread, in a function that takes the operands, and run for each.
#[derive(Copy, Clone, Debug)]
pub struct OperationLowering<'a, 'ctx> {
    pub(super) context: &'ctx Context,
    pub(super) builder: &'a Builder<'ctx>,
    pub(super) llvm_module: &'a LlvmModule<'ctx>,
    pub(super) llvm_function: FunctionValue<'ctx>,
    pub(super) module: &'a Module,
    pub(super) function: &'a Function,
}

impl<'a, 'ctx> OperationLowering<'a, 'ctx> {
    /// The LLVM context.
    pub fn context(&self) -> &'ctx Context {
        self.context
    }

    /// The builder, at the place of the operation.
    pub fn builder(&self) -> &'a Builder<'ctx> {
        self.builder
    }

    /// The LLVM module being built.
    pub fn llvm_module(&self) -> &'a LlvmModule<'ctx> {
        self.llvm_module
    }

    /// The LLVM function being built.
    pub fn llvm_function(&self) -> FunctionValue<'ctx> {
        self.llvm_function
    }

    /// The IR function being lowered; on a CPU the kernel with what it calls put in place of the calls.
    pub fn function(&self) -> &'a Function {
        self.function
    }

    /// The IR module being lowered.
    pub fn module(&self) -> &'a Module {
        self.module
    }

    /// A hook's value must have the type of the result that it stands for.
    pub(super) fn check_result(
        &self,
        value: BasicValueEnum<'ctx>,
        expected: BasicTypeEnum<'ctx>,
    ) -> Result<(), BackendError> {
        if value.get_type() == expected {
            return Ok(());
        }
        Err(BackendError::new(
            "lower",
            format!(
                "a hook lowered an instruction of function `{}` to a value of LLVM type {} where \
                 {} is needed",
                self.function.name,
                value.get_type().print_to_string(),
                expected.print_to_string()
            ),
        ))
    }
}

/// Replaces the lowering of single instructions.
///
/// Both methods are called with the builder at the place of the instruction and may build
/// instructions and blocks; the builder must be left where execution goes on. A returned value
/// must have the LLVM type of the result.
pub trait LoweringHooks {
    /// Whether to ask at all; `false` makes the lowering skip the other methods.
    fn active(&self) -> bool;

    /// Asked for every instruction that defines a scalar, vector or pointer. `args` are its
    /// operands in order; a slice is two arguments, address and length. `None` leaves the
    /// instruction to Kiln.
    ///
    /// # Errors
    /// An error ends the compile.
    fn lower_inst<'ctx>(
        &self,
        cx: &OperationLowering<'_, 'ctx>,
        inst: &InstNode,
        args: &[BasicValueEnum<'ctx>],
    ) -> Result<Option<BasicValueEnum<'ctx>>, BackendError>;

    /// Asked for every intrinsic that gives a result, after [`LoweringHooks::lower_inst`].
    /// `None` leaves it to the intrinsic's row.
    ///
    /// # Errors
    /// An error ends the compile.
    fn lower_intrinsic<'ctx>(
        &self,
        cx: &OperationLowering<'_, 'ctx>,
        def: &IntrinsicDef,
        args: &[BasicValueEnum<'ctx>],
    ) -> Result<Option<BasicValueEnum<'ctx>>, BackendError>;
}
