//! The pipeline: it reads like the picture in ARCHITECTURE.md, top to bottom, for every target.
//!
//! [`Compiler::compile`] is the whole way. It has two parts: [`Compiler::legalize`] goes from the
//! specialized module to the legal one, [`Compiler::generate`] from there to code. Where code depends on
//! the shape of blocks, only the second is done again for another shape.
//!
//! Nothing else knows the order of the stages. Observing a stage (dump it, time it, compare it) is
//! not hooking: that is a [`StageObserver`], and it is no part of the cache key.

use std::sync::Arc;
use std::time::{Duration, Instant};

use inkwell::context::Context;
use inkwell::values::BasicValueEnum;
use parking_lot::Mutex;

use crate::code::{Code, CompiledKernel, HostCode, KernelInfo};
use crate::codegen::{
    BackendError, Generator, Isa, Isas, LlvmJob, LlvmKernel, Lowered, LoweringHooks,
    OperationLowering, Session, compile_module,
};
use crate::contract::{Checked, Contract};
use crate::error::{CompileError, Error, Result};
use crate::expand::expand;
use crate::hidden::{pass_fault_channel, pass_hidden};
use crate::hook::{
    At, Hook, HookContext, HookError, HookErrorKind, HookPoint, HookResult, HookSet, at,
};
use crate::ir::{InstNode, IntrinsicDef, Module, Phase, all_variants, verify};
use crate::job::{CompileJob, LegalJob};
use crate::legal::{Legal, NotLegal};
use crate::lower_abi::lower_abi;
use crate::under_way::{Compilation, UnderWay};

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

all_variants! {
    Stage { Specialized, Legal, Llvm, OptimizedLlvm, Ptx, Object }
}

impl Stage {
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

/// Time since the stage before.
struct Clock(Instant);

impl Clock {
    fn start() -> Clock {
        Clock(Instant::now())
    }

    /// Calls `told` with the time that a stage took; what that takes itself is no stage's.
    fn lap(&mut self, told: impl FnOnce(Duration)) {
        told(self.0.elapsed());
        self.0 = Instant::now();
    }
}

/// Compiles jobs: hooks, what makes code for the targets, and who looks on.
#[derive(Copy, Clone)]
pub struct Compiler<'a> {
    /// The hooks, in order.
    pub hooks: &'a HookSet,
    /// What makes code.
    pub isas: &'a Isas,
    /// Who looks on.
    pub observer: &'a dyn StageObserver,
}

impl Compiler<'_> {
    /// Compiles a job, all the way.
    ///
    /// # Errors
    /// A module that does not verify, a hook that fails, an operation the target does not have, a
    /// libLLVM that cannot be used. Nothing is left behind.
    pub fn compile(&self, job: CompileJob) -> Result<CompiledKernel> {
        let legal = self.legalize(job)?;
        self.generate(&legal)
    }

    /// The way on the IR: to the legal module, which is the same for blocks of all shapes.
    ///
    /// # Errors
    /// As [`Compiler::compile`], but for those of the target.
    pub fn legalize(&self, mut job: CompileJob) -> Result<LegalJob> {
        let kernel = job.module.name.clone();
        let mut clock = Clock::start();
        let mut passed = |stage, module: &Module| {
            let text = || module.to_string();
            clock.lap(|took| self.observer.stage(&kernel, stage, took, &text));
        };

        self.hooks.check(&job.target, self.isas)?;
        verify(&job.module)?;
        if job.module.phase == Phase::Generic {
            return Err(NotLegal::phase_of(&job.module).into());
        }
        let mut contract = Contract::of(&job.module);
        let asked_for = job.target.clone();
        self.hooks
            .each(&at::prepare_job(), &kernel, |hook, prepare| {
                let checked = Checked::of(&job.module);
                failed(prepare(&mut job))?;
                keeps(hook, &job.module, &mut contract, &checked)
            })?;
        let CompileJob {
            mut module,
            target,
            options,
            kernel_tag,
            identity,
        } = job;
        if target != asked_for {
            self.hooks.check(&target, self.isas)?;
        }
        passed(Stage::Specialized, &module);

        let cx = HookContext::new(&kernel, &target, &options, &identity, kernel_tag);
        let mut rewritten = Rewritten {
            hooks: self.hooks,
            kernel: &kernel,
            module: &mut module,
            contract,
        };
        rewritten.by(&at::rewrite_ir(), |rewrite, m| rewrite(&cx, m))?;
        expand(rewritten.module, target.cells_before_bodies())?;
        pass_hidden(rewritten.module);
        lower_abi(rewritten.module);
        rewritten.contract = Contract::of(rewritten.module);
        rewritten.by(&at::lower_abi(), |lower, m| lower(&cx, m))?;
        if self
            .isas
            .of(&target)
            .is_some_and(|isa| isa.has_fault_channel())
        {
            pass_fault_channel(&mut module);
        }
        let legal = Legal::new(module)?;
        passed(Stage::Legal, &legal);

        Ok(LegalJob {
            info: Arc::new(KernelInfo::new(&legal, kernel_tag)),
            legal: Arc::new(legal),
            target,
            options,
            identity,
        })
    }

    /// The way from the legal module to code, for the shape of block that the target says.
    ///
    /// # Errors
    /// As [`Compiler::compile`].
    pub fn generate(&self, job: &LegalJob) -> Result<CompiledKernel> {
        let kernel = &job.info.name;
        let isa = self
            .isas
            .of(&job.target)
            .ok_or_else(|| CompileError::NoIsa {
                kernel: kernel.clone(),
                target: job.target.to_string(),
            })?;
        isa.check(&job.legal)?;
        let code = match isa.generator() {
            Generator::Direct(direct) => direct.emit(&job.legal, &job.options)?,
            Generator::Llvm(_) => {
                let way = ThroughLlvm {
                    job: job.clone(),
                    isa: isa.clone(),
                    hooks: self.hooks.clone(),
                    keep_text: self.observer.wants_text(),
                    under_way: UnderWay::list(),
                };
                let (code, stages) = compile_module(&job.legal, move || way.walk())??;
                for (stage, took, text) in stages {
                    self.observer.stage(kernel, stage, took, &|| text.clone());
                }
                code
            }
        };
        Ok(CompiledKernel {
            info: job.info.clone(),
            target: job.target.clone(),
            code,
        })
    }
}

/// Compiles a job for one of Kiln's own targets, all the way.
///
/// # Errors
/// As [`Compiler::compile`].
pub fn compile(
    job: CompileJob,
    hooks: &HookSet,
    observer: &dyn StageObserver,
) -> Result<CompiledKernel> {
    let isas = &Isas::default();
    let compiler = Compiler {
        hooks,
        isas,
        observer,
    };
    compiler.compile(job)
}

/// A stage that has passed, how long it took, and its output if it was to be kept.
type Passed = (Stage, Duration, String);

/// The way through LLVM, as data that a compile thread takes along; only data comes back.
struct ThroughLlvm {
    job: LegalJob,
    isa: Arc<dyn Isa>,
    hooks: HookSet,
    /// Whether the outputs of the stages are to be kept as text.
    keep_text: bool,
    /// What the launch that waits is compiling.
    under_way: Vec<Compilation>,
}

impl ThroughLlvm {
    fn walk(&self) -> Result<(Code, Vec<Passed>)> {
        UnderWay::take_up(&self.under_way);
        let Generator::Llvm(isa) = self.isa.generator() else {
            return Err(Error::Internal("an `Isa` that has changed its generator"));
        };
        let (mut clock, mut stages) = (Clock::start(), Vec::new());
        let mut passed = |stage, text: &dyn Fn() -> String| {
            clock.lap(|took| {
                let text = match self.keep_text {
                    true => text(),
                    false => String::new(),
                };
                stages.push((stage, took, text));
            });
        };
        let kernel = self.job.info.name.as_str();
        let cx = self.job.context();

        let context = Context::create();
        let session = Session::new(&context);
        let asked = HooksAsked::new(&self.hooks, cx);
        let lowered = isa.lower(LlvmJob {
            context: &context,
            session: &session,
            legal: &self.job.legal,
            options: &self.job.options,
            kernel_tag: self.job.info.kernel_tag,
            hooks: &asked,
        });
        let mut llvm = match asked.outcome(lowered)? {
            Lowered::Module(module) => module,
            Lowered::Interpret(why) => {
                self.hooks.check_interpreted(&why)?;
                let (legal, why) = (self.job.legal.clone(), Some(why));
                return Ok((Code::Interpreted { legal, why }, stages));
            }
        };
        session.verify(llvm.module())?;
        asked.check(|| self.still_verifies(&session, llvm.as_ref()))?;
        self.hooks.each(&at::finish_module(), kernel, |_, finish| {
            failed(finish(&cx, llvm.module()))?;
            self.still_verifies(&session, llvm.as_ref())
        })?;
        passed(Stage::Llvm, &|| llvm.module().print_to_string().to_string());

        let mut passes = llvm.passes();
        self.hooks.each(&at::pass_pipeline(), kernel, |_, change| {
            failed(change(&cx, &mut passes))
        })?;
        llvm.optimize(&passes)?;
        session.verify(llvm.module())?;
        self.hooks
            .each(&at::finish_optimized_module(), kernel, |_, finish| {
                failed(finish(&cx, llvm.module()))?;
                self.still_verifies(&session, llvm.as_ref())
            })?;
        passed(Stage::OptimizedLlvm, &|| {
            llvm.module().print_to_string().to_string()
        });

        let mut code = llvm.emit()?;
        session.check("emit")?;
        match &mut code {
            Code::Ptx(ptx) => {
                let mut text = ptx.text.to_string();
                self.hooks.each(&at::rewrite_ptx(), kernel, |_, rewrite| {
                    failed(rewrite(&cx, &mut text))
                })?;
                ptx.text = text.into();
                passed(Stage::Ptx, &|| ptx.text.to_string());
            }
            Code::Host(HostCode { object, .. }) => {
                passed(Stage::Object, &|| format!("{} bytes", object.len()));
            }
            Code::Custom(code) => passed(Stage::Object, &|| format!("{} bytes", code.size())),
            Code::Interpreted { why, .. } => {
                self.hooks
                    .check_interpreted(why.as_deref().unwrap_or("that is its code"))?;
            }
        }
        drop(llvm);
        Ok((code, stages))
    }

    /// Whether a hook has left a module that LLVM accepts, and that can become code.
    fn still_verifies(
        &self,
        session: &Session<'_>,
        llvm: &dyn LlvmKernel<'_>,
    ) -> Result<(), HookErrorKind> {
        // A hook may have left a diagnostic handler of its own.
        session.install();
        session
            .verify(llvm.module())
            .map_err(|e| HookErrorKind::BrokeLlvm(e.message))?;
        let vouched = |template: &str, constraints: &str| {
            let mut hooks = self.hooks.iter();
            hooks.any(|hook| hook.vouches(template, constraints))
        };
        let admitted = llvm.admitted();
        let checked = admitted.check(llvm.module(), &llvm.entry(), &vouched);
        checked.map_err(HookErrorKind::NotAdmitted)
    }
}

/// Asks a [`HookSet`] whether one of its hooks lowers an operation, and keeps the first failure.
struct HooksAsked<'a> {
    hooks: &'a HookSet,
    cx: HookContext<'a>,
    failure: Mutex<Option<HookError>>,
    /// The first hook that lowered something.
    lowered: Mutex<Option<(&'a Hook, HookPoint)>>,
}

impl<'a> HooksAsked<'a> {
    fn new(hooks: &'a HookSet, cx: HookContext<'a>) -> Self {
        HooksAsked {
            hooks,
            cx,
            failure: Mutex::new(None),
            lowered: Mutex::new(None),
        }
    }

    /// What lowering gave, if no hook has failed.
    fn outcome<T>(&self, lowered: Result<T, BackendError>) -> Result<T> {
        match self.failure.lock().take() {
            Some(failure) => Err(failure.into()),
            None => Ok(lowered?),
        }
    }

    /// Checks the module if a hook has lowered something, which is then at fault.
    fn check(&self, check: impl FnOnce() -> Result<(), HookErrorKind>) -> Result<(), HookError> {
        let Some((hook, point)) = *self.lowered.lock() else {
            return Ok(());
        };
        check().map_err(|kind| hook.error(point, self.cx.kernel, kind))
    }

    /// The first value that one of the functions at a point gives.
    fn ask<'ctx, F: ?Sized>(
        &self,
        at: &At<F>,
        mut f: impl FnMut(&F) -> HookResult<Option<BasicValueEnum<'ctx>>>,
    ) -> Result<Option<BasicValueEnum<'ctx>>, BackendError> {
        let mut value = None;
        for hook in self.hooks.iter() {
            let asked = hook.each(at, self.cx.kernel, |function| {
                if value.is_none() {
                    value = failed(f(function))?;
                }
                Ok(())
            });
            if let Err(error) = asked {
                let stop = BackendError::new("lower", error.to_string());
                self.failure.lock().get_or_insert(error);
                return Err(stop);
            }
            if value.is_some() {
                self.lowered.lock().get_or_insert((hook, at.point()));
                break;
            }
        }
        Ok(value)
    }
}

impl LoweringHooks for HooksAsked<'_> {
    fn active(&self) -> bool {
        self.hooks
            .has(&[HookPoint::LowerInst, HookPoint::LowerIntrinsic])
    }

    fn context(&self) -> HookContext<'_> {
        self.cx
    }

    fn lower_inst<'ctx>(
        &self,
        cx: &OperationLowering<'_, 'ctx>,
        inst: &InstNode,
        args: &[BasicValueEnum<'ctx>],
    ) -> Result<Option<BasicValueEnum<'ctx>>, BackendError> {
        self.ask(&at::lower_inst(), |lower| lower(cx, inst, args))
    }

    fn lower_intrinsic<'ctx>(
        &self,
        cx: &OperationLowering<'_, 'ctx>,
        def: &IntrinsicDef,
        args: &[BasicValueEnum<'ctx>],
    ) -> Result<Option<BasicValueEnum<'ctx>>, BackendError> {
        self.ask(&at::lower_intrinsic(), |lower| lower(cx, def, args))
    }
}

/// A module under its hooks.
struct Rewritten<'a> {
    hooks: &'a HookSet,
    kernel: &'a str,
    module: &'a mut Module,
    contract: Contract,
}

impl Rewritten<'_> {
    /// Runs each hook's functions on the IR, in order.
    fn by<F: ?Sized>(
        &mut self,
        at: &At<F>,
        apply: impl Fn(&F, &mut Module) -> HookResult<()>,
    ) -> Result<()> {
        self.hooks.each(at, self.kernel, |hook, function| {
            let checked = Checked::of(self.module);
            failed(apply(function, self.module))?;
            keeps(hook, self.module, &mut self.contract, &checked)
        })?;
        Ok(())
    }
}

/// Whether a hook has left the module as hooks must.
fn keeps(
    hook: &Hook,
    module: &Module,
    contract: &mut Contract,
    checked: &Checked,
) -> Result<(), HookErrorKind> {
    verify(module).map_err(HookErrorKind::BrokeIr)?;
    contract.check(hook, module)?;
    match hook.removes_checks() {
        true => Ok(()),
        false => checked.check(module),
    }
}

pub(crate) fn failed<T>(result: HookResult<T>) -> Result<T, HookErrorKind> {
    result.map_err(HookErrorKind::Failed)
}
