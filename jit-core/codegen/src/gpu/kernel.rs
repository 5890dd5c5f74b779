//! A kernel on its way to code for a GPU, whichever that is: the passes, and what goes in and out.

use inkwell::context::Context;
use inkwell::module::Module as LlvmModule;

use kiln_ir::code::Code;
use kiln_ir::{Lowering, PtxFunction, TypeTable};

use super::fault_text::FaultBody;
use super::inline_ptx::WrittenPtx;
use super::lower::{Dialect, kernel_entry_name, lower};
use super::placeless::{prepare_emission, run_gpu_passes};
use crate::admitted::Admitted;
use crate::isa::{LlvmJob, LlvmKernel};
use crate::llvm::effort::EffortForGpu;
use crate::llvm::error::BackendError;
use crate::llvm::machine::Machine;
use crate::llvm::unrolled::left_as_loop;

/// What makes code of a module that LLVM's passes for a GPU are done with.
pub(super) trait BackEnd: Sized {
    /// What the module may refer to. `written` is the inline assembly that lowering has written.
    fn admitted<'k>(&self, written: &'k WrittenPtx) -> Admitted<'k>;

    /// Writes in another way what it would make wrong.
    ///
    /// # Errors
    /// If LLVM refuses.
    fn write_around<'a>(
        &self,
        _context: &'a Context,
        _module: &LlvmModule<'a>,
    ) -> Result<(), BackendError> {
        Ok(())
    }

    /// Where the function for faults has its body.
    fn fault_body(&self) -> FaultBody {
        FaultBody::InModule
    }

    /// Passes that it needs for a kernel, if not those that any GPU's code gets.
    fn effort(&self, _types: &TypeTable) -> Option<EffortForGpu> {
        None
    }

    /// Says why it does no more for a module that passes have run on than it must, if it does.
    fn reduced(&self, _module: &LlvmModule<'_>) -> Option<String> {
        None
    }

    /// Makes the code, and may change the module.
    ///
    /// # Errors
    /// If LLVM refuses.
    fn emit(&self, kernel: &GpuKernel<'_, Self>) -> Result<Code, BackendError>;
}

/// A kernel on its way to code.
pub(super) struct GpuKernel<'a, B> {
    pub(super) job: LlvmJob<'a>,
    pub(super) machine: Machine,
    pub(super) module: LlvmModule<'a>,
    written: WrittenPtx,
    effort: EffortForGpu,
    back_end: B,
}

impl<'a, B: BackEnd> GpuKernel<'a, B> {
    /// Lowers a kernel.
    ///
    /// # Errors
    /// As [`lower`].
    pub(super) fn new(
        job: LlvmJob<'a>,
        machine: Machine,
        dialect: &dyn Dialect,
        back_end: B,
    ) -> Result<GpuKernel<'a, B>, BackendError> {
        let (module, written) = lower(&job, &machine, dialect, back_end.fault_body())?;
        let asked = || dialect.passes(job.options.opt_level, job.legal);
        let usual = || EffortForGpu::of(job.legal, &module, asked());
        let needed = back_end.effort(&job.legal.types);
        Ok(GpuKernel {
            effort: needed.unwrap_or_else(usual),
            job,
            machine,
            module,
            written,
            back_end,
        })
    }

    /// The functions that hooks link, each with the row that calls it.
    fn linked(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        let rows = self.job.legal.intrinsics.values();
        let cells =
            rows.flat_map(|row| row.cells.iter().map(move |cell| (row.name, cell.lowering)));
        cells.filter_map(|(row, lowering)| match lowering {
            Lowering::Function { name } => Some((name, row)),
            Lowering::Llvm { .. } | Lowering::Asm { .. } | Lowering::Ptx(_) | Lowering::ViaF32 => {
                None
            }
        })
    }

    /// The functions in PTX that rows call.
    pub(super) fn written_functions(&self) -> impl Iterator<Item = &'static PtxFunction> {
        let rows = self.job.legal.intrinsics.values();
        let cells = rows.flat_map(|row| row.cells.iter().map(|cell| cell.lowering));
        cells.filter_map(|lowering| match lowering {
            Lowering::Ptx(function) => Some(function),
            _ => None,
        })
    }

    /// Whether hooks have linked what rows call.
    fn check_linked(&self) -> Result<(), BackendError> {
        for (name, row) in self.linked() {
            let declared = self.module.get_function(name);
            if declared.is_some_and(|function| function.count_basic_blocks() == 0) {
                let message = format!(
                    "`{row}` calls the function `{name}`, and no hook has linked it; add \
                     `kiln::hooks::link_bitcode` with the file that has it"
                );
                return Err(BackendError::new("link", message));
            }
        }
        Ok(())
    }

    /// Freezes constants for the inference of address spaces in LLVM's code generator.
    ///
    /// # Errors
    /// As [`prepare_emission`].
    pub(super) fn prepare_emission(&self) -> Result<(), BackendError> {
        let (job, module) = (&self.job, (self.job.context, &self.module));
        prepare_emission(&self.machine, job.session, module, &job.legal.types)
    }
}

impl<'a, B: BackEnd> LlvmKernel<'a> for GpuKernel<'a, B> {
    fn module(&self) -> &LlvmModule<'a> {
        &self.module
    }

    fn entry(&self) -> String {
        kernel_entry_name(&self.job.legal.kernel().name, self.job.kernel_tag)
    }

    fn admitted(&self) -> Admitted<'_> {
        // Where no text goes behind the kernel's, they are missing.
        let has_text = self.back_end.fault_body() == FaultBody::InText;
        let written = self.written_functions().filter(|_| has_text);
        let written = written.map(|function| function.name);
        let linked = self.linked().map(|(name, _)| name);
        Admitted {
            linked: linked.chain(written).collect(),
            ..self.back_end.admitted(&self.written)
        }
    }

    fn passes(&self) -> String {
        self.effort.passes.clone()
    }

    fn reduced(&self) -> Option<String> {
        let reduced = self.effort.reduced.clone();
        reduced.or_else(|| left_as_loop(self.job.legal))
    }

    fn reduced_emission(&self) -> Option<String> {
        self.back_end.reduced(&self.module)
    }

    fn optimize(&mut self, passes: &str) -> Result<(), BackendError> {
        self.check_linked()?;
        let (job, module) = (&self.job, (self.job.context, &self.module));
        run_gpu_passes(&self.machine, job.session, module, &job.legal.types, passes)?;
        self.back_end.write_around(job.context, &self.module)
    }

    fn emit(&mut self) -> Result<Code, BackendError> {
        self.back_end.emit(self)
    }
}
