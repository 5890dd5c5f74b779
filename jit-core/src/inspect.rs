//! Inspection: what a kernel becomes, stage by stage.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use parking_lot::Mutex;

use crate::cache::CacheKey;
use crate::codegen::{Barriers, HostOutput};
use crate::compile::{Stage, StageObserver};
use crate::environment::Environment;
use crate::error::{Error, Result};
use crate::job::{Code, CompiledKernel};
use crate::launch::{Dim3, LaunchLimits, check_block};
use crate::runtime::list_host_code;
use crate::target::Target;

/// Keeps every stage's output.
#[derive(Default)]
pub(crate) struct Recorder {
    stages: Mutex<Vec<(Stage, Duration, String)>>,
}

impl StageObserver for Recorder {
    fn stage(&self, _: &str, stage: Stage, took: Duration, text: &dyn Fn() -> String) {
        self.stages.lock().push((stage, took, text()));
    }
}

/// What a kernel becomes for certain argument types: made by [`crate::jit::Jit::inspect`], by
/// compiling afresh.
#[derive(Clone, Debug)]
pub struct Inspection {
    stages: Vec<(Stage, Duration, String)>,
    compiled: CompiledKernel,
    key: CacheKey,
    target: Target,
}

impl Inspection {
    pub(crate) fn new(
        recorder: Recorder,
        compiled: CompiledKernel,
        key: CacheKey,
        target: Target,
    ) -> Self {
        Self {
            stages: recorder.stages.into_inner(),
            compiled,
            key,
            target,
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

    /// The kernel's IR as the backend gets it, after hooks and ABI lowering.
    pub fn ir(&self) -> &str {
        self.stage(Stage::Legal).unwrap_or_default()
    }

    /// The optimized LLVM IR.
    ///
    /// # Errors
    /// The target is not compiled through LLVM.
    pub fn llvm(&self) -> Result<&str> {
        self.stage(Stage::OptimizedLlvm)
            .ok_or_else(|| self.no_stage(Stage::OptimizedLlvm))
    }

    /// The PTX text.
    ///
    /// # Errors
    /// The target is not a GPU.
    pub fn ptx(&self) -> Result<&str> {
        self.stage(Stage::Ptx)
            .ok_or_else(|| self.no_stage(Stage::Ptx))
    }

    /// What the CPU runs for blocks of a shape: the code depends on it.
    ///
    /// # Errors
    /// The target is not this machine's CPU, a block that it does not have, or code that cannot be
    /// compiled.
    pub fn host_code(&self, block: impl Into<Dim3>) -> Result<HostListing> {
        let Code::Cpu(code) = &self.compiled.code else {
            return Err(self.no_stage(Stage::Object));
        };
        let block = block.into();
        check_block(block, &LaunchLimits::CPU, &self.compiled.name)?;
        let (lanes, output) = list_host_code(code, block.to_array())?;
        Ok(match output {
            HostOutput::Code(code) => HostListing {
                lanes: code.lanes,
                barriers: code.barriers,
                interpreted: None,
                stages: code.stages,
                object: code.object,
            },
            HostOutput::Interpret(why) => HostListing {
                lanes,
                barriers: Barriers::default(),
                interpreted: Some(why),
                stages: Vec::new(),
                object: Vec::new(),
            },
        })
    }

    /// The machine code as text (SASS), by NVIDIA's `ptxas` and `nvdisasm`.
    ///
    /// # Errors
    /// The target is not a GPU, or a tool is not found or fails.
    pub fn sass(&self) -> Result<String> {
        let (ptx, Target::Ptx(target)) = (self.ptx()?, &self.target) else {
            return Err(self.no_stage(Stage::Ptx));
        };
        let folder = tempfolder()?;
        let result = disassemble(&folder, ptx, target.sm);
        // What is left in the temporary folder harms nobody.
        let _ = std::fs::remove_dir_all(&folder);
        result
    }

    /// What was compiled.
    pub fn compiled(&self) -> &CompiledKernel {
        &self.compiled
    }

    /// The cache key, field by field.
    pub fn key(&self) -> &CacheKey {
        &self.key
    }

    fn no_stage(&self, stage: Stage) -> Error {
        let target = match self.compiled.code {
            Code::Ptx(_) => "a GPU",
            Code::Ir(_) => "the interpreter",
            Code::Cpu(_) => "the CPU",
        };
        Error::NoStage {
            kernel: self.compiled.name.clone(),
            stage: stage.name(),
            target,
        }
    }
}

/// The CPU's code for one shape of block, stage by stage.
#[derive(Clone, Debug)]
pub struct HostListing {
    /// Lanes of a vector.
    pub lanes: u32,
    /// What happens at barriers.
    pub barriers: Barriers,
    /// Why the interpreter runs the kernel, if it has to.
    pub interpreted: Option<String>,
    stages: Vec<(Stage, Duration, String)>,
    object: Vec<u8>,
}

impl HostListing {
    /// The LLVM IR before optimization; empty if the kernel is interpreted.
    pub fn llvm(&self) -> &str {
        self.text(Stage::Llvm)
    }

    /// The optimized LLVM IR; empty if the kernel is interpreted.
    pub fn optimized_llvm(&self) -> &str {
        self.text(Stage::OptimizedLlvm)
    }

    /// The object file, for a disassembler; empty if the kernel is interpreted.
    pub fn object(&self) -> &[u8] {
        &self.object
    }

    /// How long each stage took.
    pub fn timings(&self) -> impl Iterator<Item = (Stage, Duration)> {
        self.stages.iter().map(|(stage, took, _)| (*stage, *took))
    }

    fn text(&self, stage: Stage) -> &str {
        let found = self.stages.iter().find(|(s, ..)| *s == stage);
        found.map_or("", |(_, _, text)| text)
    }
}

fn tempfolder() -> Result<PathBuf> {
    use std::sync::atomic::{AtomicU64, Ordering};
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let n = NEXT.fetch_add(1, Ordering::Relaxed);
    let folder = std::env::temp_dir().join(format!("kiln-sass-{}-{n}", std::process::id()));
    std::fs::create_dir_all(&folder)
        .map_err(|e| Error::tool("the temporary folder", &folder, e.to_string()))?;
    Ok(folder)
}

fn disassemble(folder: &Path, ptx: &str, sm: u32) -> Result<String> {
    let (source, cubin) = (folder.join("kernel.ptx"), folder.join("kernel.cubin"));
    std::fs::write(&source, ptx).map_err(|e| Error::tool("write", &source, e.to_string()))?;
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
            .arg(&cubin),
        "ptxas",
        &ptxas,
    )?;
    let nvdisasm = Environment::get()
        .nvdisasm
        .clone()
        .unwrap_or_else(|| "nvdisasm".into());
    run(
        Command::new(&nvdisasm).arg("-c").arg(&cubin),
        "nvdisasm",
        &nvdisasm,
    )
}

fn run(command: &mut Command, tool: &'static str, path: &Path) -> Result<String> {
    let output = command
        .output()
        .map_err(|e| Error::tool(tool, path, e.to_string()))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    Err(Error::tool(
        tool,
        path,
        String::from_utf8_lossy(&output.stderr).into_owned(),
    ))
}
