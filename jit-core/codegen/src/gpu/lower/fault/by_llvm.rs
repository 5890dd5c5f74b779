//! The function that records a fault as LLVM makes it for NVIDIA's GPUs, which its text is compared with.

use std::sync::Arc;

use inkwell::context::Context;
use inkwell::module::Linkage;
use inkwell::values::BasicValueEnum;

use kiln_ir::legal::Legal;
use kiln_ir::target::PtxTarget;
use kiln_ir::{InstNode, IntrinsicDef};

use crate::gpu::fault_text::FaultBody;
use crate::gpu::lower::ModuleLowering;
use crate::hooks::{HookContext, LoweredOperation, LoweringHooks, OperationLowering};
use crate::isa::LlvmJob;
use crate::llvm::error::BackendError;
use crate::llvm::machine::Machine;
use crate::llvm::optimize::OptLevel;
use crate::llvm::session::Session;
use crate::options::CompileOptions;

/// Hooks that lower nothing.
struct NoHooks;

impl LoweringHooks for NoHooks {
    fn lowers_insts(&self) -> bool {
        false
    }

    fn lowers_intrinsics(&self) -> bool {
        false
    }

    fn context(&self) -> HookContext<'_> {
        unreachable!("nobody is asked")
    }

    fn lower_inst<'ctx>(
        &self,
        _: &OperationLowering<'_, 'ctx>,
        _: &InstNode,
        _: &[BasicValueEnum<'ctx>],
    ) -> Result<Option<LoweredOperation<'ctx>>, BackendError> {
        Ok(None)
    }

    fn lower_intrinsic<'ctx>(
        &self,
        _: &OperationLowering<'_, 'ctx>,
        _: &IntrinsicDef,
        _: &[BasicValueEnum<'ctx>],
    ) -> Result<Option<LoweredOperation<'ctx>>, BackendError> {
        Ok(None)
    }
}

/// The function as LLVM's passes and code generator make it for NVIDIA's GPUs, with what stands around it in a text.
pub(in crate::gpu) fn fault_function_by_llvm(
    sm: u32,
    ptx: u32,
    tag: u64,
) -> Result<String, BackendError> {
    let module = kiln_ir::parse("module m legal\n\nkernel @k() {\n}\n", &|_| None);
    let legal = Arc::new(Legal::new(module.expect("it parses")).expect("it verifies"));
    let context = Context::create();
    let session = Session::new(&context);
    let machine = Machine::nvptx(sm, ptx)?;
    let job = LlvmJob {
        context: &context,
        session: &session,
        legal: &legal,
        options: &CompileOptions::default(),
        kernel_tag: tag,
        hooks: &NoHooks,
    };
    let target = PtxTarget { sm, ptx };
    let lowering = ModuleLowering::new(&job, &machine, &target, FaultBody::InModule);
    lowering.fault_function()?.set_linkage(Linkage::External);
    let llvm = lowering.llvm;
    machine.run_passes(&session, &llvm, &OptLevel::O3.ptx_pipeline(false))?;
    machine.emit_assembly(&session, &llvm)
}
