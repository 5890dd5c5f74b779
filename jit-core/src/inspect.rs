//! Inspection: what a kernel becomes, stage by stage.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use parking_lot::Mutex;

use crate::cache::{CacheKey, CodeOrigin};
use kiln_compiler::code::{Code, CompiledKernel, HostCode, KernelInfo};
use kiln_compiler::compile::{HookStep, Stage, StageObserver};
use kiln_compiler::environment::Environment;
use kiln_compiler::error::{Error, InspectError, Result};
use kiln_compiler::hook::HookPoint;
use kiln_compiler::job::LegalJob;
use kiln_compiler::target::Target;

/// Keeps every stage's output, and what each hook left.
#[derive(Default)]
pub(crate) struct Recorder {
    stages: Mutex<Vec<(Stage, Duration, String)>>,
    hooks: Mutex<Vec<InspectedHook>>,
    passes: Mutex<Passes>,
}

/// The passes that LLVM runs, and why it does less than was asked for.
#[derive(Clone, Debug, Default)]
struct Passes {
    text: Option<String>,
    reduced: Option<String>,
}

/// What a function of a hook has done to a kernel.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct InspectedHook {
    /// The hook's name.
    pub hook: String,
    /// The extension point that called the function.
    pub point: HookPoint,
    /// How long it took; where it lowers operations, all its calls together.
    pub took: Duration,
    /// Whether the function left something else than it found, or has lowered an operation.
    pub changed: bool,
    /// What the function left, if that is something else than it found: the IR, LLVM's module, the text of the
    /// passes, the PTX.
    /// Empty where it has lowered operations, which [`Stage::Llvm`] shows.
    pub text: Option<String>,
}

impl StageObserver for Recorder {
    fn stage(&self, _: &str, stage: Stage, took: Duration, text: &dyn Fn() -> String) {
        self.stages.lock().push((stage, took, text()));
    }

    fn hook(&self, _: &str, step: &HookStep<'_>) {
        let changed = step.changed.unwrap_or(true);
        self.hooks.lock().push(InspectedHook {
            hook: step.hook.to_owned(),
            point: step.point,
            took: step.took,
            changed,
            text: changed.then(|| step.text()),
        });
    }

    fn passes(&self, _: &str, passes: &str, reduced: Option<&str>) {
        *self.passes.lock() = Passes {
            text: Some(passes.to_owned()),
            reduced: reduced.map(str::to_owned),
        };
    }
}

/// What a kernel becomes for certain argument types: made by [`crate::jit::Jit::inspect`] and
/// [`crate::jit::Jit::inspect_block`], by compiling afresh.
///
/// ```
/// use kiln::prelude::*;
///
/// use kiln::core::target::{PtxTarget, Target};
///
/// #[kernel]
/// fn double(x: &mut [f32]) {
///     x[global_id().x] *= 2.0;
/// }
///
/// # fn main() -> kiln::Result<()> {
/// let sm_90 = JitOptions::default().target(Target::Ptx(PtxTarget::for_sm(90)));
/// let jit = Jit::builder().device(Device::cpu()).options(sm_90).build()?;
/// let mut x = jit.upload(&[1.0f32; 64])?;
/// let inspection = jit.inspect(&double, args!(&mut x))?;
/// assert!(inspection.ir().contains("kernel @double"));
/// assert!(inspection.unoptimized_llvm()?.contains("fmul"));
/// assert!(inspection.llvm()?.contains("fmul") || inspection.llvm()?.contains("fadd"));
/// assert!(inspection.ptx()?.contains(".entry"));
/// println!("{:?}", inspection.sass()); // an error where there is no `ptxas`
/// for (stage, took) in inspection.timings() {
///     println!("{}: {took:?}", stage.name());
/// }
/// for hook in inspection.hooks() {
///     println!("{} took {:?}", hook.hook, hook.took);
/// }
/// assert!(inspection.passes().is_some_and(|passes| passes.contains("loop-unroll<O3>")));
/// assert!(inspection.reduced().is_none(), "few blocks, and loops that are not deep");
/// assert_eq!(inspection.info().name, "double");
/// assert!(inspection.compiled().is_some());
/// assert!(inspection.origin().is_none(), "nothing was launched");
/// println!("{:?}", inspection.key());
/// # Ok(())
/// # }
/// ```
///
/// Where code depends on the shape of blocks, as a CPU's does:
///
/// ```
/// use kiln::prelude::*;
///
/// use kiln::core::compile::Stage;
///
/// #[kernel]
/// fn double(x: &mut [f32]) {
///     x[global_id().x] *= 2.0;
/// }
///
/// # fn main() -> kiln::Result<()> {
/// let jit = Jit::on(Device::cpu());
/// let mut x = jit.upload(&[1.0f32; 64])?;
/// let inspection = jit.inspect_block(&double, 64, args!(&mut x))?;
/// assert!(inspection.stage(Stage::Legal).is_some_and(|ir| ir.contains("load")));
/// match inspection.interpreted() {
///     None => println!("{} lanes", inspection.host_code()?.lanes),
///     Some(why) => println!("interpreted: {why}"),
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Inspection {
    stages: Vec<(Stage, Duration, String)>,
    hooks: Vec<InspectedHook>,
    passes: Passes,
    job: LegalJob,
    compiled: Option<CompiledKernel>,
    origin: Option<CodeOrigin>,
}

impl Inspection {
    pub(crate) fn new(
        recorder: Recorder,
        job: LegalJob,
        compiled: Option<CompiledKernel>,
        origin: Option<CodeOrigin>,
    ) -> Self {
        Self {
            stages: recorder.stages.into_inner(),
            hooks: recorder.hooks.into_inner(),
            passes: recorder.passes.into_inner(),
            job,
            compiled,
            origin,
        }
    }

    /// The output of a stage; `None` if the target has no such stage.
    pub fn stage(&self, stage: Stage) -> Option<&str> {
        self.stages
            .iter()
            .find(|(s, ..)| *s == stage)
            .map(|(.., text)| text.as_str())
    }

    /// How long each stage took.
    pub fn timings(&self) -> impl Iterator<Item = (Stage, Duration)> {
        self.stages.iter().map(|(stage, took, _)| (*stage, *took))
    }

    /// What the hooks did while the kernel was compiled, in order: how long each took, and what it left where it
    /// changed something.
    pub fn hooks(&self) -> &[InspectedHook] {
        &self.hooks
    }

    /// The passes that LLVM ran, in the notation of its `opt -passes`; `None` if the target has no such passes.
    pub fn passes(&self) -> Option<&str> {
        self.passes.text.as_deref()
    }

    /// Why LLVM did less than was asked for: a kernel of very many instructions, blocks or nested loops is
    /// compiled with the few passes whose time grows as it does, one for a GPU of more than 2,000 blocks with each once, one
    /// of more than a thousand sums, products and addresses by the code generator for NVIDIA's GPUs without its own
    /// optimizations, and a loop that would become very long is not unrolled. `None` for an ordinary kernel; of the passes
    /// it is not said where a hook says them.
    pub fn reduced(&self) -> Option<&str> {
        self.passes.reduced.as_deref()
    }

    /// The kernel's IR as the backend gets it, after hooks and ABI lowering.
    pub fn ir(&self) -> &str {
        self.stage(Stage::Legal).unwrap_or_default()
    }

    /// The LLVM IR before optimization.
    ///
    /// # Errors
    /// The target is not compiled through LLVM, or only for blocks of one shape.
    pub fn unoptimized_llvm(&self) -> Result<&str> {
        self.needed(Stage::Llvm)
    }

    /// The optimized LLVM IR.
    ///
    /// # Errors
    /// As [`Inspection::unoptimized_llvm`].
    pub fn llvm(&self) -> Result<&str> {
        self.needed(Stage::OptimizedLlvm)
    }

    /// The PTX text.
    ///
    /// # Errors
    /// The target is not a GPU.
    pub fn ptx(&self) -> Result<&str> {
        self.needed(Stage::Ptx)
    }

    /// What the CPU runs for blocks of the shape: its object file, for a disassembler, with the number
    /// of lanes and what happens at barriers.
    ///
    /// # Errors
    /// The target is not this machine's CPU, [`Jit::inspect_block`](crate::jit::Jit::inspect_block) was
    /// not asked, or the interpreter runs the kernel.
    pub fn host_code(&self) -> Result<&HostCode> {
        match self.code() {
            Some(Code::Host(code)) => Ok(code),
            _ => Err(self.no_stage(Stage::Object)),
        }
    }

    /// Why the interpreter runs the kernel, where the target has machine code.
    pub fn interpreted(&self) -> Option<&str> {
        match self.code()? {
            Code::Interpreted { why, .. } => why.as_deref(),
            _ => None,
        }
    }

    /// The machine code as text (SASS), by NVIDIA's `nvdisasm`: that of a hook that assembles, else what NVIDIA's
    /// `ptxas` makes of the PTX.
    ///
    /// # Errors
    /// The target is not a GPU, or a tool is not found or fails.
    pub fn sass(&self) -> Result<String> {
        let (ptx, Target::Ptx(target)) = (self.ptx()?, &self.job.target) else {
            return Err(self.no_stage(Stage::Ptx));
        };
        let folder = tempfolder()?;
        let cubin = folder.join("kernel.cubin");
        let made = match self.code().and_then(Code::ptx).map(|code| &code.assembled) {
            Some(Some(assembled)) => std::fs::write(&cubin, &assembled.image)
                .map_err(|e| InspectError::tool("write", &cubin, e.to_string()).into()),
            _ => assemble(&folder, ptx, target.sm, &cubin),
        };
        let result = made.and_then(|()| disassemble(&cubin));
        // What is left in the temporary folder harms nobody.
        let _ = std::fs::remove_dir_all(&folder);
        result
    }

    /// What launches need to know of it.
    pub fn info(&self) -> &KernelInfo {
        &self.job.info
    }

    /// What was compiled; `None` where code is for blocks of one shape, and none was given.
    pub fn compiled(&self) -> Option<&CompiledKernel> {
        self.compiled.as_ref()
    }

    /// Where the code came from that launches have of this `Jit`, with arguments of these types and this block: what
    /// is inspected is compiled for that alone. `None` if it has none yet.
    pub fn origin(&self) -> Option<CodeOrigin> {
        self.origin
    }

    /// The cache key, field by field.
    pub fn key(&self) -> &CacheKey {
        &self.job.identity().key
    }

    fn code(&self) -> Option<&Code> {
        self.compiled.as_ref().map(|kernel| &kernel.code)
    }

    fn needed(&self, stage: Stage) -> Result<&str> {
        self.stage(stage).ok_or_else(|| self.no_stage(stage))
    }

    fn no_stage(&self, stage: Stage) -> Error {
        let (kernel, stage) = (self.job.info.name.clone(), stage.name());
        let error = match self.code() {
            Some(code) => InspectError::NoStage {
                kernel,
                stage,
                target: code.kind(),
            },
            None => InspectError::NoBlock { kernel, stage },
        };
        error.into()
    }
}

fn tempfolder() -> Result<PathBuf> {
    use std::sync::atomic::{AtomicU64, Ordering};
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let n = NEXT.fetch_add(1, Ordering::Relaxed);
    let folder = std::env::temp_dir().join(format!("kiln-sass-{}-{n}", std::process::id()));
    std::fs::create_dir_all(&folder)
        .map_err(|e| InspectError::tool("the temporary folder", &folder, e.to_string()))?;
    Ok(folder)
}

fn assemble(folder: &Path, ptx: &str, sm: u32, cubin: &Path) -> Result<()> {
    let source = folder.join("kernel.ptx");
    std::fs::write(&source, ptx)
        .map_err(|e| InspectError::tool("write", &source, e.to_string()))?;
    let ptxas = Environment::get()
        .ptxas
        .clone()
        .unwrap_or_else(|| "ptxas".into());
    let arch = format!("-arch=sm_{sm}");
    run(
        Command::new(&ptxas)
            .arg(arch)
            .arg(&source)
            .arg("-o")
            .arg(cubin),
        "ptxas",
        &ptxas,
    )?;
    Ok(())
}

fn disassemble(cubin: &Path) -> Result<String> {
    let nvdisasm = Environment::get()
        .nvdisasm
        .clone()
        .unwrap_or_else(|| "nvdisasm".into());
    run(
        Command::new(&nvdisasm).arg("-c").arg(cubin),
        "nvdisasm",
        &nvdisasm,
    )
}

fn run(command: &mut Command, tool: &'static str, path: &Path) -> Result<String> {
    let output = command
        .output()
        .map_err(|e| InspectError::tool(tool, path, e.to_string()))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    Err(InspectError::tool(tool, path, said).into())
}
