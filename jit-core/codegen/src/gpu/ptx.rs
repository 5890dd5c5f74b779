//! PTX for NVIDIA's GPUs.

use inkwell::context::Context;
use inkwell::module::Module as LlvmModule;

use kiln_ir::Processor;
use kiln_ir::code::{Code, PtxCode};
use kiln_ir::legal::Legal;
use kiln_ir::target::PtxTarget;

use super::cold;
use super::inline_ptx::WrittenPtx;
use super::kernel::{BackEnd, GpuKernel};
use super::legal::check_legal;
use super::line_info::keep_directives;
use super::lower::DYNAMIC_SHARED;
use super::nvptx::PTX_KERNEL;
use super::ptxas;
use super::recomputed::{WORTH, recompute};
use crate::admitted::{Admitted, Float};
use crate::illegal::IllegalOperations;
use crate::isa::{Generator, Isa, LlvmIsa, LlvmJob, LlvmKernel as _, Lowered};
use crate::llvm::LLVM_VERSION;
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

    fn processor(&self) -> Processor {
        self.target.processor()
    }

    fn has_fault_channel(&self) -> bool {
        true
    }

    fn generator(&self) -> Generator<'_> {
        Generator::Llvm(self)
    }
}

impl LlvmIsa for PtxIsa {
    fn lower<'a>(&self, job: LlvmJob<'a>) -> Result<Lowered<'a>, BackendError> {
        let machine = Machine::nvptx(self.target.sm, self.target.ptx)?;
        let kernel = GpuKernel::new(job, machine, &self.target, PtxBackEnd)?;
        Ok(Lowered::Module(Box::new(kernel)))
    }
}

/// LLVM's code generator for NVPTX, and after it `ptxas` in the driver.
pub(super) struct PtxBackEnd;

impl BackEnd for PtxBackEnd {
    fn admitted<'k>(&self, written: &'k WrittenPtx) -> Admitted<'k> {
        Admitted {
            family: "nvvm",
            intrinsic: has_instruction,
            assembly: Some(Box::new(|template, constraints| {
                written.has(template, constraints) || ptxas::writes(template)
            })),
            entry_convention: PTX_KERNEL,
            symbol: |name| SYSTEM_CALLS.contains(&name) || name == DYNAMIC_SHARED,
        }
    }

    fn write_around<'a>(
        &self,
        context: &'a Context,
        module: &LlvmModule<'a>,
    ) -> Result<(), BackendError> {
        ptxas::write_around(context, module)
    }

    fn emit(&self, kernel: &GpuKernel<'_, Self>) -> Result<Code, BackendError> {
        kernel.prepare_emission()?;
        recompute(kernel.job.context, &kernel.module, WORTH)?;
        cold::move_to_end(&kernel.module);
        let text = kernel
            .machine
            .emit_assembly(kernel.job.session, &kernel.module)?;
        let text = ptxas::write_around_in_text(&keep_directives(text));
        let text = match kernel.job.options.gather_registers {
            true => ptxas::give_registers(&text),
            false => text.as_str().into(),
        };
        Ok(Code::Ptx(PtxCode {
            text: text.into(),
            entry: kernel.entry(),
            assembled: None,
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
