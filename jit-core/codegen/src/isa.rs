//! What makes code for a kind of machine: one trait, which the pipeline drives.
//!
//! `compile.rs` knows the order of the steps and runs the hooks between them; an [`Isa`] knows how each
//! step is done for its machine. Kiln's own are made of their target by [`Isas::of`]; a program can bring
//! one for a [`Target::Custom`].

use std::sync::Arc;

use inkwell::context::Context;
use inkwell::module::Module as LlvmModule;

use kiln_ir::code::Code;
use kiln_ir::legal::Legal;
use kiln_ir::target::{CustomTarget, Target};

use crate::admitted::Admitted;
use crate::cpu::isa::CpuIsa;
use crate::gpu::amdgpu::{self, AmdgpuIsa};
use crate::gpu::legal::IllegalOperations;
#[cfg(feature = "gpu-on-host")]
use crate::gpu::on_host::OnHostIsa;
use crate::gpu::ptx::PtxIsa;
use crate::hooks::LoweringHooks;
use crate::llvm::error::BackendError;
use crate::llvm::session::Session;
use crate::options::CodegenOptions;

/// What makes code for a kind of machine.
pub trait Isa: Send + Sync + 'static {
    /// All that can change code besides the target: versions of what makes it. Part of the cache key.
    fn fingerprint(&self) -> String;

    /// Whether the machine has everything that a kernel uses.
    ///
    /// # Errors
    /// All operations that it does not have, each with its line and a way out.
    fn check(&self, legal: &Legal) -> Result<(), IllegalOperations>;

    /// How code is made.
    fn generator(&self) -> Generator<'_>;
}

/// How code is made.
#[derive(Copy, Clone)]
pub enum Generator<'a> {
    /// Through LLVM, on a compile thread.
    Llvm(&'a dyn LlvmIsa),
    /// In one step, without LLVM: hooks on its modules have no place.
    Direct(&'a dyn DirectIsa),
}

/// An [`Isa`] that makes code in one step.
pub trait DirectIsa: Send + Sync {
    /// Makes the code.
    ///
    /// # Errors
    /// Code that cannot be made.
    fn emit(&self, legal: &Arc<Legal>, options: &CodegenOptions) -> Result<Code, BackendError>;
}

/// An [`Isa`] that makes code through LLVM.
pub trait LlvmIsa: Send + Sync {
    /// Writes a kernel as a module of LLVM, with its machine's layout of data.
    ///
    /// # Errors
    /// Of stage `lower`, if a hook refused or something is not as the proof says; of stage `target`, if
    /// this LLVM does not have it.
    fn lower<'a>(&self, job: LlvmJob<'a>) -> Result<Lowered<'a>, BackendError>;
}

/// What an [`LlvmIsa`] is given.
#[derive(Copy, Clone)]
pub struct LlvmJob<'a> {
    /// Where LLVM keeps what it makes.
    pub context: &'a Context,
    /// LLVM's diagnostics.
    pub session: &'a Session<'a>,
    /// The kernel.
    pub legal: &'a Arc<Legal>,
    /// Options.
    pub options: &'a CodegenOptions,
    /// Who may lower single operations instead.
    pub hooks: &'a dyn LoweringHooks,
}

/// What lowering gives.
pub enum Lowered<'a> {
    /// A module of LLVM.
    Module(Box<dyn LlvmKernel<'a> + 'a>),
    /// Only the interpreter can run the kernel, for this reason.
    Interpret(String),
}

/// A kernel as a module of LLVM, on its way to code.
pub trait LlvmKernel<'a> {
    /// The module.
    fn module(&self) -> &LlvmModule<'a>;

    /// The name of the function where launches begin.
    fn entry(&self) -> String;

    /// What the module may refer to besides what is in it, whatever a hook has made of it.
    fn admitted(&self) -> Admitted<'_>;

    /// The pass pipeline, in the notation of LLVM's `opt -passes`.
    fn passes(&self) -> String;

    /// Runs a pass pipeline.
    ///
    /// # Errors
    /// If the pipeline does not parse, or LLVM reports an error.
    fn optimize(&mut self, passes: &str) -> Result<(), BackendError>;

    /// Makes code of the optimized module, which may change it.
    ///
    /// # Errors
    /// If LLVM refuses.
    fn emit(&mut self) -> Result<Code, BackendError>;
}

/// What makes an [`Isa`] of a target.
type MakeIsa = dyn Fn(&CustomTarget) -> Arc<dyn Isa> + Send + Sync;

/// What makes code for which target: Kiln's own, and what a program adds for machines of its own.
#[derive(Clone, Default)]
pub struct Isas {
    custom: Vec<(&'static str, Arc<MakeIsa>)>,
}

impl std::fmt::Debug for Isas {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let families = self.custom.iter().map(|(family, _)| family);
        f.debug_list().entries(families).finish()
    }
}

impl Isas {
    /// Has code for the machines of a family ([`CustomTarget::family`]) made by what `make` gives; what
    /// was there for the family before is replaced.
    #[must_use]
    pub fn with(
        mut self,
        family: &'static str,
        make: impl Fn(&CustomTarget) -> Arc<dyn Isa> + Send + Sync + 'static,
    ) -> Isas {
        self.custom.retain(|(known, _)| *known != family);
        self.custom.push((family, Arc::new(make)));
        self
    }

    /// What makes code for a target, if there is something.
    pub fn of(&self, target: &Target) -> Option<Arc<dyn Isa>> {
        Some(match target {
            Target::Ptx(ptx) => Arc::new(PtxIsa::new(*ptx)),
            Target::Cpu(cpu) => Arc::new(CpuIsa::new(cpu.clone())),
            Target::Interpreter => Arc::new(Interpreted),
            Target::Custom(custom) => {
                let mut known = self.custom.iter();
                match known.find(|(family, _)| *family == custom.family) {
                    Some((_, make)) => make(custom),
                    None => own(custom)?,
                }
            }
        })
    }
}

/// What Kiln itself has for a machine that a family and settings say all about.
fn own(target: &CustomTarget) -> Option<Arc<dyn Isa>> {
    match target.family {
        amdgpu::FAMILY => Some(Arc::new(AmdgpuIsa::new(target)?)),
        #[cfg(feature = "gpu-on-host")]
        kiln_ir::gpu_on_host::FAMILY => Some(Arc::new(OnHostIsa::new(target)?)),
        _ => None,
    }
}

/// The interpreter takes legal modules as they are.
struct Interpreted;

impl Isa for Interpreted {
    fn fingerprint(&self) -> String {
        "none".to_owned()
    }

    fn check(&self, _: &Legal) -> Result<(), IllegalOperations> {
        Ok(())
    }

    fn generator(&self) -> Generator<'_> {
        Generator::Direct(self)
    }
}

impl DirectIsa for Interpreted {
    fn emit(&self, legal: &Arc<Legal>, _: &CodegenOptions) -> Result<Code, BackendError> {
        Ok(Code::Interpreted {
            legal: legal.clone(),
            why: None,
        })
    }
}
