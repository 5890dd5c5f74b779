//! Code for a GPU, as LLVM's passes have left it, made into an object file of this machine.
//!
//! It is how tests run what the passes for NVPTX make of a kernel without a GPU. Up to the end of those
//! passes a kernel goes the way of PTX; then what only a GPU has (`llvm.nvvm.*`, inline PTX, shared memory,
//! the kernel's calling convention) is replaced, so that the passes saw it as it is; the rest, atomics
//! with their scopes, address spaces and halves among it, the host's back end takes as it comes. Each
//! call that is replaced becomes one of a function of the runtime, with the number of a [`Site`] that
//! says what it stands for. What is not known is an error that names it.
//!
//! | file | subject |
//! |---|---|
//! | `operation` | what a call of an intrinsic or inline PTX stands for |
//! | `rewrite` | the module's calls, globals, entry |
//!
//! [`Site`]: crate::gpu_on_host::Site

mod operation;
mod rewrite;

use std::sync::Arc;

use inkwell::context::Context;
use inkwell::module::Module as LlvmModule;

use kiln_ir::Processor;
use kiln_ir::code::{Code, KeptCode};
use kiln_ir::gpu_on_host::{OnHostCode, architecture};
use kiln_ir::legal::Legal;
use kiln_ir::target::{CustomTarget, PtxTarget};

use crate::admitted::Admitted;
use crate::gpu::inline_ptx::WrittenPtx;
use crate::gpu::kernel::{BackEnd, GpuKernel};
use crate::gpu::legal::check_legal;
use crate::gpu::placeless::run_freezing;
use crate::gpu::ptx::{PtxBackEnd, ptx_version};
use crate::gpu::recomputed::recompute;
use crate::gpu::summed::{Held, sum_early};
use crate::illegal::IllegalOperations;
use crate::isa::{Generator, Isa, LlvmIsa, LlvmJob, Lowered};
use crate::llvm::LLVM_VERSION;
use crate::llvm::error::BackendError;
use crate::llvm::machine::Machine;

/// Passes over LLVM's IR that the code generator for NVPTX runs before it selects instructions
/// (`NVPTXPassConfig::addIRPasses`), as far as they have no form of their own for PTX: accesses side
/// by side become vectors here.
const GENERATOR_PASSES: &str = "function(sroa<modify-cfg>,infer-address-spaces,\
     separate-const-offset-from-gep,slsr,early-cse<>,nary-reassociate,early-cse<>,\
     load-store-vectorizer,sroa<modify-cfg>)";

/// Registers that have to become free for an address to be computed again behind a barrier, or a sum before it: few, so that
/// tests have it.
const WORTH_HERE: u32 = 1;

/// Makes objects of this machine.
pub(crate) struct OnHostIsa {
    target: PtxTarget,
}

impl OnHostIsa {
    /// For the architecture that a target names, if it does.
    pub(crate) fn new(target: &CustomTarget) -> Option<OnHostIsa> {
        let target = architecture(target)?;
        Some(OnHostIsa { target })
    }
}

impl Isa for OnHostIsa {
    fn fingerprint(&self) -> String {
        format!("LLVM {LLVM_VERSION}")
    }

    fn check(&self, legal: &Legal) -> Result<(), IllegalOperations> {
        check_legal(legal, &self.target)
    }

    fn processor(&self) -> Processor {
        self.target.processor()
    }

    fn has_fault_channel(&self) -> bool {
        true
    }

    fn generator(&self) -> Generator<'_> {
        Generator::Llvm(self)
    }

    fn read_kept(&self, kept: &KeptCode) -> Option<Code> {
        Some(Code::Custom(Arc::new(OnHostCode::read(kept)?)))
    }
}

impl LlvmIsa for OnHostIsa {
    fn lower<'a>(&self, job: LlvmJob<'a>) -> Result<Lowered<'a>, BackendError> {
        let machine = Machine::nvptx(self.target.sm, ptx_version(self.target, job.legal))?;
        let kernel = GpuKernel::new(job, machine, &self.target, OnHostBackEnd)?;
        Ok(Lowered::Module(Box::new(kernel)))
    }
}

/// This machine's code generator, after as much of that for NVPTX as LLVM has in passes.
struct OnHostBackEnd;

impl BackEnd for OnHostBackEnd {
    fn admitted<'k>(&self, written: &'k WrittenPtx) -> Admitted<'k> {
        PtxBackEnd.admitted(written)
    }

    fn write_around<'a>(
        &self,
        context: &'a Context,
        module: &LlvmModule<'a>,
    ) -> Result<(), BackendError> {
        PtxBackEnd.write_around(context, module)
    }

    fn emit(&self, kernel: &GpuKernel<'_, Self>) -> Result<Code, BackendError> {
        let (job, module) = (&kernel.job, &kernel.module);
        recompute(job.context, module, WORTH_HERE)?;
        sum_early(job.context, module, (WORTH_HERE, Held::ByNothing))?;
        module.strip_debug_info();
        run_freezing(
            &kernel.machine,
            job.session,
            (job.context, module),
            GENERATOR_PASSES,
        )?;
        let host = Machine::plain_host()?;
        host.prepare(module);
        let mut code = rewrite::rewrite(job, module, &host.target_data())?;
        job.session.verify(module)?;
        code.object = host.emit_object(job.session, module)?;
        Ok(Code::Custom(Arc::new(code)))
    }
}
