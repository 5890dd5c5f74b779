//! Where the lowering asks whether somebody else wants to lower an instruction.
//!
//! The pipeline answers for the hooks of a compilation.

mod context;
mod lowered;
mod operation;
mod signature;

use inkwell::values::BasicValueEnum;

use kiln_ir::{Control, InstData, InstNode, IntrinsicDef};

use crate::llvm::error::BackendError;

pub use context::{HookContext, KernelIdentity};
pub use lowered::LoweredOperation;
pub(crate) use operation::{InlineAssembly, Place, lanes_per_piece, scalar_type};
pub use operation::{OperationError, OperationLowering};

/// Replaces the lowering of single instructions.
///
/// These are called with the builder at the place of the instruction and may build
/// instructions and blocks; the builder must be left where execution goes on. What they give
/// must be what the instruction gives ([`OperationLowering::check_result`]).
pub trait LoweringHooks {
    /// Whether to ask for instructions: `false` if [`LoweringHooks::lower_inst`] always gives `None`.
    fn lowers_insts(&self) -> bool;

    /// Whether to ask for intrinsics: `false` if [`LoweringHooks::lower_intrinsic`] always gives `None`.
    fn lowers_intrinsics(&self) -> bool;

    /// What hooks may know of the kernel.
    fn context(&self) -> HookContext<'_>;

    /// Asked for every instruction but those that are control flow, and variables. `args` are its
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
    ) -> Result<Option<LoweredOperation<'ctx>>, BackendError>;

    /// Asked for every intrinsic, after [`LoweringHooks::lower_inst`]. `None` leaves it to the
    /// intrinsic's row.
    ///
    /// # Errors
    /// An error ends the compile.
    fn lower_intrinsic<'ctx>(
        &self,
        cx: &OperationLowering<'_, 'ctx>,
        def: &IntrinsicDef,
        args: &[BasicValueEnum<'ctx>],
    ) -> Result<Option<LoweredOperation<'ctx>>, BackendError>;
}

/// Whether hooks are asked for an operation. Where control goes is no value that code could give, and a variable has
/// no address: a hook would have no name for its place.
fn is_asked_for(data: &InstData) -> bool {
    matches!(data.control(), Control::Next) && data.var_use().is_none()
}

impl dyn LoweringHooks + '_ {
    /// Whether there is somebody to ask for an operation.
    pub(crate) fn want(&self, data: &InstData) -> bool {
        let asks = || data.intrinsic().is_some() && self.lowers_intrinsics();
        is_asked_for(data) && (self.lowers_insts() || asks())
    }

    /// What a hook makes of an operation, if one does, of the types that the operation has.
    pub(crate) fn ask<'ctx>(
        &self,
        cx: &OperationLowering<'_, 'ctx>,
        args: &[BasicValueEnum<'ctx>],
    ) -> Result<Option<LoweredOperation<'ctx>>, BackendError> {
        let mut lowered = self.lower_inst(cx, cx.inst, args)?;
        if let (None, Some((id, _))) = (lowered, cx.inst.data.intrinsic()) {
            lowered = self.lower_intrinsic(cx, cx.module.intrinsics[id], args)?;
        }
        if let Some(lowered) = lowered {
            cx.check_result(lowered)?;
        }
        Ok(lowered)
    }
}
