//! Target machines: what LLVM 22 compiles for, and its passes and emission behind error values.
//!
//! # What this LLVM accepts (LLVM 22.1.2, tried one by one)
//! - PTX ISA `+ptx60` ... `+ptx65`, `+ptx70` ... `+ptx78`, `+ptx80` ... `+ptx88`, `+ptx90`; nothing
//!   newer. An unknown feature or processor is a line on stderr and is then ignored, and a PTX
//!   version below a processor's minimum is a fatal error, so neither reaches LLVM: see
//!   [`PTX_VERSIONS`]. Without a feature, LLVM takes the processor's minimum.
//! - The variants `sm_90a`, `sm_100a`, `sm_103a`, `sm_110a`, `sm_120a`, `sm_121a` and the family
//!   ones (`sm_100f` ...) exist too and are not in the table: their code runs on one generation.
//! - Data layout of nvptx64: `e-p6:32:32-i64:64-i128:128-i256:256-v16:16-v32:32-n16:32:64`.
//!
//! # What must not reach it
//! These pass LLVM's verifier and end in a fatal error, which costs a leaked compile thread:
//! `llvm.sin`, `cos`, `tan`, `pow`, `tanh` of every float type, `exp`, `log`, `log2`, `log10` of f32
//! and f64, `exp2` of f64, `canonicalize` of bf16. These crash inside LLVM, which nothing catches:
//! `exp`, `log`, `log2`, `log10` of f16 and bf16, `tan` of bf16. An `alloca` in address space 5
//! compiles to wrong addresses (a second `cvta.local`): local variables are `alloca` in address
//! space 0, from which the back end infers `.local`.
//!
//! # Vectorizers
//! For NVPTX the SLP vectorizer runs, as clang has it: LLVM gives the target 32-bit vector
//! registers, so it packs pairs of 16-bit floats (`add.rn.f16x2`) and leaves the rest alone. The
//! loop vectorizer does not run, save on loops whose metadata asks for it: threads, not lanes, go
//! through a kernel's data; on the host they are vectors already. It is switched off by a knob
//! (`effort`), as the options of a pipeline say nothing to `default<O3>`.

use inkwell::OptimizationLevel;
use inkwell::attributes::AttributeLoc;
use inkwell::llvm_sys::error::{LLVMDisposeErrorMessage, LLVMGetErrorMessage};
use inkwell::llvm_sys::target_machine::LLVMTargetMachineRef;
use inkwell::llvm_sys::transforms::pass_builder::LLVMRunPasses;
use inkwell::module::Module;
use inkwell::passes::PassBuilderOptions;
use inkwell::targets::{
    CodeModel, FileType, RelocMode, Target, TargetData, TargetMachine, TargetTriple,
};

use once_cell::sync::OnceCell;

use kiln_ir::target::CpuFeatures;

use super::error::BackendError;
use super::idle::{IDLE, InUse, Kind};
use super::session::Session;

/// A processor and the oldest PTX version that knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PtxMinimum {
    /// Compute capability: 90 is `sm_90`.
    pub sm: u32,
    /// PTX ISA as 10 x major + minor: 78 is PTX ISA 7.8 (PTX ISA, release notes).
    pub ptx: u32,
}

/// The processors Kiln compiles for, in order. Each compiles with every version of [`PTX_ISAS`]
/// from its minimum on.
pub(crate) const PTX_VERSIONS: [PtxMinimum; 13] = [
    PtxMinimum { sm: 75, ptx: 63 },
    PtxMinimum { sm: 80, ptx: 70 },
    PtxMinimum { sm: 86, ptx: 71 },
    PtxMinimum { sm: 87, ptx: 74 },
    PtxMinimum { sm: 88, ptx: 90 },
    PtxMinimum { sm: 89, ptx: 78 },
    PtxMinimum { sm: 90, ptx: 78 },
    PtxMinimum { sm: 100, ptx: 86 },
    PtxMinimum { sm: 101, ptx: 86 },
    PtxMinimum { sm: 103, ptx: 88 },
    PtxMinimum { sm: 110, ptx: 90 },
    PtxMinimum { sm: 120, ptx: 87 },
    PtxMinimum { sm: 121, ptx: 88 },
];

/// The PTX versions this LLVM writes, in order, as 10 x major + minor: 83 is PTX ISA 8.3.
pub(crate) const PTX_ISAS: [u32; 25] = [
    60, 61, 62, 63, 64, 65, 70, 71, 72, 73, 74, 75, 76, 77, 78, 80, 81, 82, 83, 84, 85, 86, 87, 88,
    90,
];

/// The processor this program runs on. Asking it takes instructions that trap in virtual machines,
/// so it is asked once.
struct Host {
    /// The processor's name, for which code is scheduled.
    cpu: String,
    /// A processor that has nothing that the host lacks, if one is known.
    base: Option<&'static str>,
}

impl Host {
    /// To be called once LLVM is open.
    fn get() -> &'static Host {
        static HOST: OnceCell<Host> = OnceCell::new();
        HOST.get_or_init(|| {
            let cpu = TargetMachine::get_host_cpu_name();
            Host {
                cpu: cpu.to_string_lossy().into_owned(),
                base: cfg!(target_arch = "x86_64").then_some("x86-64"),
            }
        })
    }
}

/// A target LLVM compiles for.
pub(crate) struct Machine {
    machine: InUse,
    triple: TargetTriple,
}

impl Machine {
    /// NVPTX for `sm_<sm>` and PTX ISA `ptx` (83 is 8.3). To be called on a compile thread.
    ///
    /// # Errors
    /// If the processor is not in [`PTX_VERSIONS`], this LLVM cannot write the PTX version, or the
    /// version does not know the processor.
    pub(crate) fn nvptx(sm: u32, ptx: u32) -> Result<Machine, BackendError> {
        let refused = |message: String| Err(BackendError::new("target", message));
        let Some(row) = PTX_VERSIONS.iter().find(|row| row.sm == sm) else {
            let known = PTX_VERSIONS.map(|row| format!("sm_{}", row.sm)).join(", ");
            return refused(format!(
                "sm_{sm} is not known to LLVM 22; known are {known}"
            ));
        };
        let (major, minor) = (ptx / 10, ptx % 10);
        if !PTX_ISAS.contains(&ptx) {
            return refused(format!(
                "LLVM 22 does not write PTX ISA {major}.{minor}; it writes 6.0 to 9.0"
            ));
        }
        if ptx < row.ptx {
            return refused(format!(
                "PTX ISA {major}.{minor} does not know sm_{sm}, which needs {}.{} or newer",
                row.ptx / 10,
                row.ptx % 10
            ));
        }
        let triple = TargetTriple::create("nvptx64-nvidia-cuda");
        // At Aggressive the NVPTX back end runs GVN in the place of EarlyCSE: a tenth of its time and more, for a
        // thousandth of the instructions (`benches/RESULTS.md`).
        let level = OptimizationLevel::Default;
        let (cpu, features) = (format!("sm_{sm}"), format!("+ptx{ptx}"));
        Machine::new(triple, &cpu, &features, level)
    }

    /// A processor of the host's kind with these features, position-independent. To be called on a
    /// compile thread.
    ///
    /// # Errors
    /// If this libLLVM was built without the host's target.
    pub(crate) fn host(
        features: &CpuFeatures,
        level: OptimizationLevel,
    ) -> Result<Machine, BackendError> {
        let host = Host::get();
        Machine::new(
            TargetMachine::get_default_triple(),
            host.base.unwrap_or(&host.cpu),
            &features.to_string(),
            level,
        )
    }

    /// The least processor of the kind that this program runs on, position-independent: code for it
    /// is the same on all of them. To be called on a compile thread.
    ///
    /// # Errors
    /// If this libLLVM was built without the host's target.
    #[cfg(any(test, feature = "gpu-on-host"))]
    pub(crate) fn plain_host() -> Result<Machine, BackendError> {
        let triple = TargetMachine::get_default_triple();
        let cpu = Host::get().base.unwrap_or("generic");
        Machine::new(triple, cpu, "", OptimizationLevel::None)
    }

    /// Has the functions of a module scheduled for the processor this program runs on.
    pub(crate) fn tune(&self, module: &Module<'_>) {
        let context = module.get_context();
        let attribute = context.create_string_attribute("tune-cpu", &Host::get().cpu);
        for function in module.get_functions() {
            function.add_attribute(AttributeLoc::Function, attribute);
        }
    }

    /// A processor of a kind that this LLVM has been initialized for, position-independent. To be called on a
    /// compile thread.
    ///
    /// # Errors
    /// If this libLLVM was built without the kind.
    pub(crate) fn new(
        triple: TargetTriple,
        cpu: &str,
        features: &str,
        level: OptimizationLevel,
    ) -> Result<Machine, BackendError> {
        let kind = Kind {
            triple: triple.as_str().to_string_lossy().into_owned(),
            cpu: cpu.to_owned(),
            features: features.to_owned(),
            level,
        };
        let target = Target::from_triple(&triple)
            .map_err(|error| BackendError::new("target", error.to_string_lossy()))?;
        let machine = IDLE.take(&kind, || {
            target.create_target_machine(
                &triple,
                cpu,
                features,
                level,
                RelocMode::PIC,
                CodeModel::Default,
            )
        });
        match machine {
            Some(machine) => Ok(Machine { machine, triple }),
            None => Err(BackendError::new(
                "target",
                format!(
                    "libLLVM makes no target machine for {}",
                    triple.as_str().to_string_lossy()
                ),
            )),
        }
    }

    /// A machine for what this one is for, with a code generator that does what it must and no more, in time that grows as the
    /// module does.
    ///
    /// # Errors
    /// As [`Machine::new`].
    pub(crate) fn quick(&self) -> Result<Machine, BackendError> {
        let Kind { cpu, features, .. } = self.machine.kind();
        let triple = self.machine.get_triple();
        Machine::new(triple, cpu, features, OptimizationLevel::None)
    }

    /// Sizes, offsets and alignments of LLVM types on this target.
    pub(crate) fn target_data(&self) -> TargetData {
        self.machine.get_target_data()
    }

    /// Gives a module this machine's triple and data layout. To be done before anything is built
    /// in it: without a layout LLVM assumes other alignments and splits 64-bit accesses.
    pub(crate) fn prepare(&self, module: &Module<'_>) {
        module.set_triple(&self.triple);
        module.set_data_layout(&self.target_data().get_data_layout());
    }

    /// Runs a pass pipeline in the syntax of `opt -passes=`.
    ///
    /// # Errors
    /// If the pipeline does not parse, or a pass reported an error.
    pub(crate) fn run_passes(
        &self,
        session: &Session<'_>,
        module: &Module<'_>,
        pipeline: &str,
    ) -> Result<(), BackendError> {
        let options = PassBuilderOptions::create();
        run_pipeline(module, pipeline, self.machine.as_mut_ptr(), &options)?;
        session.check("optimize")
    }

    /// The module as assembly: PTX text for NVPTX. Emission changes the module; print it before.
    ///
    /// # Errors
    /// If LLVM refuses or reported an error diagnostic; its output is then not to be used.
    pub(crate) fn emit_assembly(
        &self,
        session: &Session<'_>,
        module: &Module<'_>,
    ) -> Result<String, BackendError> {
        let bytes = self.emit(session, module, FileType::Assembly)?;
        String::from_utf8(bytes).map_err(|_| BackendError::new("emit", "assembly is not UTF-8"))
    }

    /// The module as an object file of the host.
    ///
    /// # Errors
    /// As [`Machine::emit_assembly`]. NVPTX has no object form.
    pub(crate) fn emit_object(
        &self,
        session: &Session<'_>,
        module: &Module<'_>,
    ) -> Result<Vec<u8>, BackendError> {
        self.emit(session, module, FileType::Object)
    }

    fn emit(
        &self,
        session: &Session<'_>,
        module: &Module<'_>,
        kind: FileType,
    ) -> Result<Vec<u8>, BackendError> {
        let buffer = self.machine.write_to_memory_buffer(module, kind);
        session.check("emit")?;
        match buffer {
            Ok(buffer) => Ok(buffer.as_slice().to_vec()),
            Err(error) => Err(BackendError::new("emit", error.to_string_lossy())),
        }
    }
}

/// Runs a pass pipeline in the syntax of `opt -passes=`, which knows nothing of the machine.
///
/// # Errors
/// If the pipeline does not parse.
pub(crate) fn run_passes_of_no_machine(
    module: &Module<'_>,
    pipeline: &str,
) -> Result<(), BackendError> {
    let options = PassBuilderOptions::create();
    run_pipeline(module, pipeline, std::ptr::null_mut(), &options)
}

fn run_pipeline(
    module: &Module<'_>,
    pipeline: &str,
    machine: LLVMTargetMachineRef,
    options: &PassBuilderOptions,
) -> Result<(), BackendError> {
    if pipeline.contains('\0') {
        return Err(BackendError::new(
            "optimize",
            "the pass pipeline contains a NUL",
        ));
    }
    let text = [pipeline.as_bytes(), b"\0"].concat();
    // SAFETY: module and options are alive, and the machine, if there is one; the text is NUL-terminated.
    let error = unsafe {
        LLVMRunPasses(
            module.as_mut_ptr(),
            text.as_ptr().cast(),
            machine,
            options.as_mut_ptr(),
        )
    };
    if error.is_null() {
        return Ok(());
    }
    // SAFETY: a failure is consumed by asking for its text, which LLVM allocates and takes
    // back itself (inkwell would free it with the wrong allocator).
    let message = unsafe {
        let text = LLVMGetErrorMessage(error);
        let message = std::ffi::CStr::from_ptr(text)
            .to_string_lossy()
            .into_owned();
        LLVMDisposeErrorMessage(text);
        message
    };
    let message = format!("`{pipeline}`: {message}");
    Err(BackendError::new("optimize", message))
}

#[cfg(test)]
#[path = "machine_tests.rs"]
mod tests;
