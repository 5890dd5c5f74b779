//! Where the lowering asks whether somebody else wants to lower an instruction.
//!
//! The pipeline answers for the hooks of a compilation.

mod context;
mod operation;
mod signature;

use inkwell::values::BasicValueEnum;

use kiln_ir::{InstNode, IntrinsicDef};

use crate::llvm::error::BackendError;

pub use context::{HookContext, KernelIdentity};
pub(crate) use operation::{InlineAssembly, Place, scalar_type};
pub use operation::{OperationError, OperationLowering};

/// Replaces the lowering of single instructions.
///
/// These are called with the builder at the place of the instruction and may build
/// instructions and blocks; the builder must be left where execution goes on. A returned value
/// must have the LLVM type of the result.
pub trait LoweringHooks {
    /// Whether to ask at all; `false` makes the lowering skip the methods that ask.
    fn active(&self) -> bool;

    /// What hooks may know of the kernel.
    fn context(&self) -> HookContext<'_>;

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
