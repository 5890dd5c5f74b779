//! PTX for NVIDIA's GPUs.

use inkwell::module::Module as LlvmModule;

use kiln_ir::code::{Code, PtxCode};
use kiln_ir::legal::Legal;
use kiln_ir::target::PtxTarget;

use super::inline_ptx::WrittenPtx;
use super::legal::{IllegalOperations, check_legal};
use super::lower::{DYNAMIC_SHARED, kernel_entry_name, lower};
use super::placeless::{prepare_emission, run_gpu_passes};
use super::ptxas;
use crate::LLVM_VERSION;
use crate::admitted::{Admitted, Float};
use crate::isa::{Generator, Isa, LlvmIsa, LlvmJob, LlvmKernel, Lowered};
use crate::llvm::effort::passes_for_gpu;
use crate::llvm::error::BackendError;
use crate::llvm::machine::Machine;

/// Makes PTX.
pub(crate) struct PtxIsa {
    target: PtxTarget,
}

impl PtxIsa {
    /// For an architecture and a version of PTX.
    pub(crate) fn new(target: PtxTarget) -> PtxIsa {
        PtxIsa { target }
    }
}

impl Isa for PtxIsa {
    fn fingerprint(&self) -> String {
        format!("LLVM {LLVM_VERSION}")
    }

    fn check(&self, legal: &Legal) -> Result<(), IllegalOperations> {
        check_legal(legal, &self.target)
    }

    fn generator(&self) -> Generator<'_> {
        Generator::Llvm(self)
    }
}

impl LlvmIsa for PtxIsa {
    fn lower<'a>(&self, job: LlvmJob<'a>) -> Result<Lowered<'a>, BackendError> {
        let machine = Machine::nvptx(self.target.sm, self.target.ptx)?;
        let (module, written) = lower(&job, &machine, &self.target)?;
        Ok(Lowered::Module(Box::new(PtxKernel {
            job,
            machine,
            module,
            written,
        })))
    }
}

/// A kernel on its way to PTX.
struct PtxKernel<'a> {
    job: LlvmJob<'a>,
    machine: Machine,
    module: LlvmModule<'a>,
    written: WrittenPtx,
}

impl<'a> LlvmKernel<'a> for PtxKernel<'a> {
    fn module(&self) -> &LlvmModule<'a> {
        &self.module
    }

    fn entry(&self) -> String {
        kernel_entry_name(&self.job.legal.kernel().name, self.job.options.kernel_tag)
    }

    fn admitted(&self) -> Admitted<'_> {
        Admitted {
            family: "nvvm",
            intrinsic: has_instruction,
            assembly: Some(Box::new(|template, constraints| {
                self.written.has(template, constraints) || ptxas::writes(template)
            })),
            symbol: |name| SYSTEM_CALLS.contains(&name) || name == DYNAMIC_SHARED,
        }
    }

    fn passes(&self) -> String {
        passes_for_gpu(self.job.legal, self.job.options.opt_level).to_owned()
    }

    fn optimize(&mut self, passes: &str) -> Result<(), BackendError> {
        let (job, module) = (&self.job, (self.job.context, &self.module));
        let types = &job.legal.types;
        run_gpu_passes(&self.machine, job.session, module, types, passes)?;
        ptxas::write_around(job.context, &self.module)
    }

    fn emit(&mut self) -> Result<Code, BackendError> {
        let (job, module) = (&self.job, (self.job.context, &self.module));
        prepare_emission(&self.machine, job.session, module, &job.legal.types)?;
        let text = self.machine.emit_assembly(job.session, &self.module)?;
        Ok(Code::Ptx(PtxCode {
            text: ptxas::write_around_in_text(&text).into(),
            entry: self.entry(),
        }))
    }
}

/// Functions that the driver adds to the code it loads (PTX Writer's Guide, "System Calls").
const SYSTEM_CALLS: [&str; 4] = ["__assertfail", "free", "malloc", "vprintf"];

/// Whether LLVM's back end selects an intrinsic; see [`crate::llvm::machine`] for what was tried.
fn has_instruction(name: &str, float: Option<Float>) -> bool {
    let operation = name.split('.').nth(1).unwrap_or_default();
    match operation {
        // Of `f32` there are approximations, which take the flag `afn`.
        "sin" | "cos" => float == Some(Float::F32),
        "tan" | "pow" | "tanh" | "exp" | "log" | "log2" | "log10" => false,
        "exp2" => float != Some(Float::F64),
        "canonicalize" => float != Some(Float::BF16),
        _ => true,
    }
}
