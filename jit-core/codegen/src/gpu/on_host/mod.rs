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
//! | `access` | inline PTX that reads and writes memory |
//! | `rewrite` | the module's calls, globals, entry |
//!
//! [`Site`]: crate::gpu_on_host::Site

mod access;
mod operation;
mod rewrite;

use std::sync::Arc;

use inkwell::module::Module as LlvmModule;

use kiln_ir::code::Code;
use kiln_ir::gpu_on_host::architecture;
use kiln_ir::legal::Legal;
use kiln_ir::target::{CustomTarget, PtxTarget};

use crate::admitted::Admitted;
use crate::gpu::legal::IllegalOperations;
use crate::gpu::placeless::run_freezing;
use crate::gpu::ptx::PtxIsa;
use crate::isa::{Generator, Isa, LlvmIsa, LlvmJob, LlvmKernel, Lowered};
use crate::llvm::error::BackendError;
use crate::llvm::machine::Machine;

/// Passes over LLVM's IR that the code generator for NVPTX runs before it selects instructions
/// (`NVPTXPassConfig::addIRPasses`), as far as they have no form of their own for PTX: accesses side
/// by side become vectors here, and loads are merged once more.
const GENERATOR_PASSES: &str = "function(sroa<modify-cfg>,infer-address-spaces,\
     separate-const-offset-from-gep,slsr,gvn<>,nary-reassociate,early-cse<>,\
     load-store-vectorizer,sroa<modify-cfg>)";

/// Makes objects of this machine.
pub(crate) struct OnHostIsa {
    target: PtxTarget,
    ptx: PtxIsa,
}

impl OnHostIsa {
    /// For the architecture that a target names, if it does.
    pub(crate) fn new(target: &CustomTarget) -> Option<OnHostIsa> {
        let target = architecture(target)?;
        let ptx = PtxIsa::new(target);
        Some(OnHostIsa { target, ptx })
    }
}

impl Isa for OnHostIsa {
    fn fingerprint(&self) -> String {
        self.ptx.fingerprint()
    }

    fn check(&self, legal: &Legal) -> Result<(), IllegalOperations> {
        self.ptx.check(legal)
    }

    fn generator(&self) -> Generator<'_> {
        Generator::Llvm(self)
    }
}

impl LlvmIsa for OnHostIsa {
    fn lower<'a>(&self, job: LlvmJob<'a>) -> Result<Lowered<'a>, BackendError> {
        Ok(match self.ptx.lower(job)? {
            Lowered::Module(ptx) => Lowered::Module(Box::new(OnHostKernel {
                job,
                target: self.target,
                ptx,
            })),
            interpreted @ Lowered::Interpret(_) => interpreted,
        })
    }
}

/// A kernel on its way to an object: PTX is not written of it.
struct OnHostKernel<'a> {
    job: LlvmJob<'a>,
    target: PtxTarget,
    ptx: Box<dyn LlvmKernel<'a> + 'a>,
}

impl<'a> LlvmKernel<'a> for OnHostKernel<'a> {
    fn module(&self) -> &LlvmModule<'a> {
        self.ptx.module()
    }

    fn entry(&self) -> String {
        self.ptx.entry()
    }

    fn admitted(&self) -> Admitted<'_> {
        self.ptx.admitted()
    }

    fn passes(&self) -> String {
        self.ptx.passes()
    }

    fn optimize(&mut self, passes: &str) -> Result<(), BackendError> {
        self.ptx.optimize(passes)
    }

    fn emit(&mut self) -> Result<Code, BackendError> {
        let (module, session) = (self.module(), self.job.session);
        module.strip_debug_info();
        let gpu = Machine::nvptx(self.target.sm, self.target.ptx)?;
        run_freezing(&gpu, session, (self.job.context, module), GENERATOR_PASSES)?;
        let host = Machine::plain_host()?;
        host.prepare(module);
        let mut code = rewrite::rewrite(&self.job, module, &host.target_data())?;
        session.verify(module)?;
        code.object = host.emit_object(session, module)?;
        Ok(Code::Custom(Arc::new(code)))
    }
}
