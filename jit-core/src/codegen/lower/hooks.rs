//! Where the lowering asks whether somebody else wants to lower an instruction.
//!
//! The public hook interface is built on this trait; with [`NoHooks`] the lowering asks nothing.

use inkwell::types::BasicTypeEnum;
use inkwell::values::BasicValueEnum;

use super::FunctionLowering;
use crate::codegen::error::BackendError;
use crate::ir::{InstNode, IntrinsicDef};

/// Replaces the lowering of single instructions.
///
/// Both methods are called with the builder at the place of the instruction and may build
/// instructions and blocks; the builder must be left where execution goes on. A returned value
/// must have the LLVM type of the result.
pub trait LoweringHooks {
    /// Whether to ask at all; `false` makes the lowering skip the other methods.
    fn active(&self) -> bool {
        true
    }

    /// Asked for every instruction that defines a scalar, vector or pointer. `args` are its
    /// operands in order; a slice is two arguments, address and length. `None` leaves the
    /// instruction to Kiln.
    ///
    /// # Errors
    /// An error ends the compile.
    fn lower_inst<'ctx>(
        &self,
        cx: &mut FunctionLowering<'_, 'ctx>,
        inst: &InstNode,
        args: &[BasicValueEnum<'ctx>],
    ) -> Result<Option<BasicValueEnum<'ctx>>, BackendError> {
        let _ = (cx, inst, args);
        Ok(None)
    }

    /// Asked for every intrinsic that gives a result, after [`LoweringHooks::lower_inst`].
    /// `result` is the LLVM type of the result. `None` leaves it to the intrinsic's row.
    ///
    /// # Errors
    /// An error ends the compile.
    fn lower_intrinsic<'ctx>(
        &self,
        cx: &mut FunctionLowering<'_, 'ctx>,
        def: &IntrinsicDef,
        args: &[BasicValueEnum<'ctx>],
        result: BasicTypeEnum<'ctx>,
    ) -> Result<Option<BasicValueEnum<'ctx>>, BackendError> {
        let _ = (cx, def, args, result);
        Ok(None)
    }
}

/// Leaves everything to Kiln.
#[derive(Copy, Clone, Debug, Default)]
pub struct NoHooks;

impl LoweringHooks for NoHooks {
    fn active(&self) -> bool {
        false
    }
}
