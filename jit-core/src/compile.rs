//! The pipeline: one function that reads like the picture in ARCHITECTURE.md, top to bottom.
//!
//! Nothing else knows the order of the stages. Observing a stage (dump it, time it, compare it) is
//! not hooking: that is a [`StageObserver`], and it is no part of the cache key.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::abi::ParamLayout;
use crate::codegen::PtxJob;
use crate::contract::{Checked, Contract};
use crate::error::{Error, Result};
use crate::expand::expand;
use crate::fault::fault_sites;
use crate::hook::{Changed, Hook, HookContext, HookErrorKind, HookPoint, HookResult, HookSet};
use crate::ir::{Module, Phase, Verified, verify};
use crate::job::{Code, CompileJob, CompiledKernel, CpuCode};
use crate::lower_abi::lower_abi;
use crate::target::{PtxTarget, Target};

/// A named point of the pipeline with an output one can look at.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Stage {
    /// The specialized module, before hooks.
    Specialized,
    /// The legal module, after IR hooks and ABI lowering.
    Legal,
    /// The LLVM module before optimization.
    Llvm,
    /// The LLVM module after optimization.
    OptimizedLlvm,
    /// PTX text.
    Ptx,
    /// Machine code of the host, as a line about it.
    Object,
}

impl Stage {
    /// All stages, in order.
    pub const ALL: [Stage; 6] = [
        Stage::Specialized,
        Stage::Legal,
        Stage::Llvm,
        Stage::OptimizedLlvm,
        Stage::Ptx,
        Stage::Object,
    ];

    /// The stage's name.
    pub fn name(self) -> &'static str {
        match self {
            Stage::Specialized => "specialized",
            Stage::Legal => "legal",
            Stage::Llvm => "llvm",
            Stage::OptimizedLlvm => "optimized-llvm",
            Stage::Ptx => "ptx",
            Stage::Object => "object",
        }
    }
}

/// Looks on while a kernel is compiled.
pub trait StageObserver: Sync {
    /// A stage is done. `text` prints its output, if asked; `took` is the time since the stage
    /// before, printing excluded.
    fn stage(&self, kernel: &str, stage: Stage, took: Duration, text: &dyn Fn() -> String);

    /// Whether it will ask for the text of LLVM's stages, which costs time to print.
    fn wants_text(&self) -> bool {
        true
    }
}

/// Looks away.
#[derive(Copy, Clone, Debug)]
pub struct NoObserver;

impl StageObserver for NoObserver {
    fn stage(&self, _: &str, _: Stage, _: Duration, _: &dyn Fn() -> String) {}

    fn wants_text(&self) -> bool {
        false
    }
}

/// Tells an observer how long each stage took.
pub(crate) struct StageClock<'a> {
    observer: &'a dyn StageObserver,
    kernel: &'a str,
    last: Instant,
}

impl<'a> StageClock<'a> {
    fn new(observer: &'a dyn StageObserver, kernel: &'a str) -> Self {
        Self {
            observer,
            kernel,
            last: Instant::now(),
        }
    }

    /// Reports stages that passed on another thread; the last one's output is `ptx` by now.
    fn replay(&mut self, stages: Vec<(Stage, Duration, String)>, ptx: &str) {
        for (stage, took, text) in stages {
            let text = if stage == Stage::Ptx {
                ptx.to_owned()
            } else {
                text
            };
            self.observer
                .stage(self.kernel, stage, took, &|| text.clone());
        }
        self.last = Instant::now();
    }

    fn done(&mut self, stage: Stage, text: &dyn Fn() -> String) {
        self.observer
            .stage(self.kernel, stage, self.last.elapsed(), text);
        self.last = Instant::now();
    }
}

/// Compiles a job.
///
/// # Errors
/// A module that does not verify, a hook that fails, an operation the target does not have, a
/// libLLVM that cannot be used. Nothing is left behind.
pub fn compile(
    mut job: CompileJob,
    hooks: &HookSet,
    observer: &dyn StageObserver,
) -> Result<CompiledKernel> {
    let kernel = job.module.name.clone();
    let kernel_tag = job.kernel_tag;
    let mut clock = StageClock::new(observer, &kernel);
    verify(&job.module)?;
    let mut contract = Contract::of(&job.module);
    hooks.run(HookPoint::PrepareJob, &kernel, |hook| {
        let checked = Checked::of(&job.module);
        failed(hook.prepare_job(&mut job))?;
        keeps(hook, &job.module, &mut contract, &checked)
    })?;
    let CompileJob {
        mut module,
        target,
        options,
        ..
    } = job;
    let cx = HookContext {
        kernel: &kernel,
        target: &target,
        options: &options,
    };

    clock.done(Stage::Specialized, &|| module.to_string());
    let mut rewritten = Rewritten {
        hooks,
        kernel: &kernel,
        module: &mut module,
        contract,
    };
    rewritten.by(HookPoint::RewriteIr, |h, m| h.rewrite_ir(&cx, m))?;
    expand(rewritten.module)?;
    lower_abi(rewritten.module);
    rewritten.contract = rewritten.contract.in_phase(Phase::Legal);
    rewritten.by(HookPoint::LowerAbi, |h, m| h.lower_abi(&cx, m))?;
    let module = Arc::new(Verified::new(module)?);
    clock.done(Stage::Legal, &|| module.to_string());

    let (entry, code) = match &target {
        Target::Interpreter => (kernel.clone(), Code::Ir(Arc::new(Module::clone(&module)))),
        Target::Cpu => {
            let module = Arc::new(Module::clone(&module));
            (kernel.clone(), Code::Cpu(CpuCode::new(module, &options)))
        }
        Target::Ptx(ptx) => {
            let (entry, text) = emit_ptx(&module, *ptx, kernel_tag, &cx, hooks, &mut clock)?;
            (entry, Code::Ptx(text.into()))
        }
    };
    describe(&module, &kernel, entry, code, kernel_tag)
}

/// From the legal module to PTX.
fn emit_ptx(
    module: &Arc<Verified<Module>>,
    target: PtxTarget,
    kernel_tag: u64,
    cx: &HookContext<'_>,
    hooks: &HookSet,
    clock: &mut StageClock<'_>,
) -> Result<(String, String)> {
    let output = crate::codegen::compile_ptx(PtxJob {
        module: module.clone(),
        target,
        options: cx.options.clone(),
        hooks: hooks.clone(),
        kernel_tag,
        keep_text: clock.observer.wants_text(),
    })?;
    let mut text = output.ptx;
    hooks.run(HookPoint::RewritePtx, cx.kernel, |h| {
        failed(h.rewrite_ptx(cx, &mut text))
    })?;
    clock.replay(output.stages, &text);
    Ok((output.entry, text))
}

/// A module under its hooks.
struct Rewritten<'a> {
    hooks: &'a HookSet,
    kernel: &'a str,
    module: &'a mut Module,
    contract: Contract,
}

impl Rewritten<'_> {
    /// Runs a method on the IR of each hook in order.
    fn by(
        &mut self,
        point: HookPoint,
        apply: impl Fn(&dyn Hook, &mut Module) -> HookResult<Changed>,
    ) -> Result<()> {
        self.hooks.run(point, self.kernel, |hook| {
            let checked = Checked::of(self.module);
            failed(apply(hook, self.module))?;
            keeps(hook, self.module, &mut self.contract, &checked)
        })?;
        Ok(())
    }
}

/// Whether a hook has left the module as hooks must. What it says of its changes does not matter: a hook
/// that is wrong there would have the next one blamed.
fn keeps(
    hook: &dyn Hook,
    module: &Module,
    contract: &mut Contract,
    checked: &Checked,
) -> Result<(), HookErrorKind> {
    verify(module).map_err(HookErrorKind::BrokeIr)?;
    contract.check(module)?;
    match hook.removes_checks() {
        true => Ok(()),
        false => checked.check(module),
    }
}

pub(crate) fn failed<T>(result: HookResult<T>) -> Result<T, HookErrorKind> {
    result.map_err(HookErrorKind::Failed)
}

/// The portable result.
fn describe(
    module: &Module,
    name: &str,
    entry: String,
    code: Code,
    kernel_tag: u64,
) -> Result<CompiledKernel> {
    let layout = ParamLayout::of(module).ok_or(Error::NoKernel {
        module: name.to_owned(),
    })?;
    let kernel = module.kernel().map(|id| &module.functions[id]);
    let shared = module.functions.values().flat_map(|f| f.shared.values());
    let shared_bytes = shared.fold(0u64, |total, s| {
        let bytes = module.types.layout(s.ty).map_or(0, |l| l.size);
        total.next_multiple_of(u64::from(s.align.max(1))) + bytes
    });
    Ok(CompiledKernel {
        name: name.to_owned(),
        entry,
        code,
        param_names: kernel
            .iter()
            .flat_map(|k| &k.params)
            .map(|p| p.name.clone())
            .collect(),
        layout,
        fault_sites: fault_sites(module),
        kernel_tag,
        launch_bounds: kernel.and_then(|k| k.launch_bounds),
        shared_bytes,
    })
}
