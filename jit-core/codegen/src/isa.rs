//! What makes code for a kind of machine: one trait, which the pipeline drives.
//!
//! `compile.rs` knows the order of the steps and runs the hooks between them; an [`Isa`] knows how each
//! step is done for its machine. Nothing here knows a machine: `targets.rs` has the list of Kiln's own.

use std::sync::Arc;

use inkwell::context::Context;
use inkwell::module::Module as LlvmModule;

use kiln_ir::Processor;
use kiln_ir::code::{Code, KeptCode};
use kiln_ir::legal::Legal;

use crate::admitted::Admitted;
use crate::hooks::LoweringHooks;
use crate::illegal::IllegalOperations;
use crate::llvm::error::BackendError;
use crate::llvm::session::Session;
use crate::options::CompileOptions;

/// What makes code for a kind of machine.
pub trait Isa: Send + Sync + 'static {
    /// All that can change code besides the target: versions of what makes it. Part of the cache key.
    fn fingerprint(&self) -> String;

    /// Whether the machine has everything that a kernel uses.
    ///
    /// # Errors
    /// All operations that it does not have, each with its line and a way out.
    fn check(&self, legal: &Legal) -> Result<(), IllegalOperations>;

    /// The machine that questions of kernels about their target are answered for
    /// ([`Known::TargetSm`](kiln_ir::Known::TargetSm)): a CPU, if it says nothing else.
    fn processor(&self) -> Processor {
        Processor::Host
    }

    /// Whether a launch passes the address of a [`FaultChannel`](kiln_ir::fault::FaultChannel): each
    /// function that can fault then has it as a hidden parameter.
    fn has_fault_channel(&self) -> bool {
        false
    }

    /// How code is made.
    fn generator(&self) -> Generator<'_>;

    /// Code of its own form ([`Code::Custom`]) that was kept outside the process, by
    /// [`CustomCode::keep`](kiln_ir::code::CustomCode::keep). `None` if it is not of that form, or this
    /// makes no such code: it is then made anew.
    fn read_kept(&self, _kept: &KeptCode) -> Option<Code> {
        None
    }
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
    fn emit(&self, legal: &Arc<Legal>, options: &CompileOptions) -> Result<Code, BackendError>;
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
    pub options: &'a CompileOptions,
    /// Identifies the kernel in fault records and in the name of its entry.
    pub kernel_tag: u64,
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

    /// Why these passes are fewer than the kernel's options ask for, if they are.
    fn reduced(&self) -> Option<String> {
        None
    }

    /// Why the code generator does less for the module, which passes have run on, than for others, if it does.
    fn reduced_emission(&self) -> Option<String> {
        None
    }

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
