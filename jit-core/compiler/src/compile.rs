//! The pipeline: it reads like the picture in ARCHITECTURE.md, top to bottom, for every target.
//!
//! [`Compiler::compile`] is the whole way. It has two parts: [`Compiler::legalize`] goes from the
//! specialized module to the legal one, [`Compiler::generate`] from there to code. Where code depends on
//! the shape of blocks, only the second is done again for another shape.
//!
//! Nothing else knows the order of the stages. Observing a stage (dump it, time it, compare it) is
//! not hooking: that is a [`StageObserver`], and it is no part of the cache key.

use std::mem::take;
use std::sync::Arc;
use std::time::{Duration, Instant};

use inkwell::context::Context;
use inkwell::module::Module as LlvmModule;
use inkwell::values::BasicValueEnum;
use parking_lot::Mutex;

use crate::answered;
use crate::choices;
use crate::code::{Assembled, Code, CompiledKernel, HostCode, KernelInfo, PtxCode};
use crate::codegen::{
    BackendError, Generator, Isa, Isas, LlvmJob, LlvmKernel, Lowered, LoweredOperation,
    LoweringHooks, OperationLowering, Session, compile_module,
};
use crate::contract::{Before, Contract};
use crate::error::{CompileError, Error, Result};
use crate::expand::{Machine, expand};
use crate::hidden::{pass_fault_channel, pass_hidden};
use crate::hook::{
    At, Hook, HookContext, HookError, HookErrorKind, HookPoint, HookResult, HookSet, at,
};
use crate::ir::fault::fault_insts;
use crate::ir::{FuncId, InstNode, IntrinsicDef, Module, Phase, Processor, verify};
use crate::job::{CompileJob, LegalJob};
use crate::legal::{Legal, NotLegal};
use crate::lower_abi::lower_abi;
use crate::observe::{Clock, Onlooker, Passed, Passing};
pub use crate::observe::{HookStep, NoObserver, Stage, StageObserver};
use crate::promised;
use crate::target::Target;
use crate::under_way::{Compilation, UnderWay};

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
    pub fn legalize(&self, job: CompileJob) -> Result<LegalJob> {
        let kernel = job.module.name.clone();
        let clock = Clock::start();
        let onlooker = Onlooker {
            observer: self.observer,
            kernel: &kernel,
            clock: &clock,
        };

        self.hooks.check(&job.target, self.isas)?;
        verify(&job.module)?;
        if job.module.phase == Phase::Generic {
            return Err(NotLegal::phase_of(&job.module).into());
        }
        let (mut job, contract) = self.prepare(job, onlooker)?;
        choices::write_out(&mut job.module, &job.options);
        let isa = self.isas.of(&job.target);
        let processor = isa.map_or(Processor::Host, |isa| isa.processor());
        answered::answer(&mut job.module, processor);
        let contract = contract.of_changed(&job.module);
        onlooker.stage(Stage::Specialized, &job.module);

        let contract = self.lower(&mut job, contract, onlooker)?;
        let identity = Arc::make_mut(&mut job.identity);
        identity.key = take(&mut identity.key).extended("hooks", &contract.rows_text());
        let legal = Legal::new(job.module)?;
        onlooker.stage(Stage::Legal, &legal);

        Ok(LegalJob {
            info: Arc::new(KernelInfo::new(&legal, job.kernel_tag)),
            legal: Arc::new(legal),
            target: job.target,
            options: job.options,
            identity: job.identity,
            retargeted_by: job.retargeted_by,
        })
    }

    /// The job as hooks leave it that prepare it, and what those behind them keep.
    fn prepare(
        &self,
        mut job: CompileJob,
        onlooker: Onlooker<'_>,
    ) -> Result<(CompileJob, Contract)> {
        let mut contract = Contract::of(&job.module);
        let asked_for = job.target.clone();
        self.hooks
            .each(&at::prepare_job(), onlooker.kernel, |hook, prepare| {
                let before = Before::of(&job.module);
                let target = job.target.clone();
                onlooker.run(
                    (hook, HookPoint::PrepareJob),
                    &mut job,
                    |job| &job.module,
                    |job| prepare(job),
                    |job| keeps(hook, &job.module, &mut contract, &before),
                )?;
                if job.target != target {
                    self.can_be(&job.target, onlooker.kernel)
                        .map_err(|error| HookErrorKind::retargeted(&job.target, error))?;
                    let hook = hook.name().to_owned();
                    job.retargeted_by = (job.target != asked_for).then_some(hook);
                }
                Ok(())
            })?;
        Ok((job, contract))
    }

    /// Whether there can be code for a target that a hook asks for, and each hook can do there what it is for.
    fn can_be(&self, target: &Target, kernel: &str) -> Result<()> {
        self.hooks.check(target, self.isas)?;
        self.isa(target, kernel).map(drop)
    }

    fn isa(&self, target: &Target, kernel: &str) -> Result<Arc<dyn Isa>> {
        let isa = self.isas.of(target);
        Ok(isa.ok_or_else(|| CompileError::NoIsa {
            kernel: kernel.to_owned(),
            target: target.to_string(),
        })?)
    }

    /// From the specialized module to one that can be legal: Kiln's own rewriting, and that of hooks before it and
    /// after it.
    fn lower(
        &self,
        job: &mut CompileJob,
        contract: Contract,
        onlooker: Onlooker<'_>,
    ) -> Result<Contract> {
        let (target, options, tag) = (&job.target, &job.options, job.kernel_tag);
        let isa = self.isas.of(target);
        let machine = Machine {
            processor: (isa.as_ref()).map_or(Processor::Host, |isa| isa.processor()),
            cells: target.cells_before_bodies(),
        };
        let cx = HookContext::new(onlooker.kernel, target, options, &job.identity, tag);
        let mut rewritten = Rewritten {
            hooks: self.hooks,
            onlooker,
            module: &mut job.module,
            contract,
        };
        rewritten.by(&at::rewrite_ir(), |rewrite, m| rewrite(&cx, m))?;
        promised::widen(rewritten.module, target);
        expand(rewritten.module, machine, tag)?;
        if self.hooks.has(&[HookPoint::FaultFunction]) {
            rewritten.by(&at::fault_function(), |fault_function, m| {
                call_before_faults(m, |m| fault_function(&cx, m))
            })?;
            // Those of the functions that were added.
            expand(rewritten.module, machine, tag)?;
        }
        pass_hidden(rewritten.module);
        lower_abi(rewritten.module);
        rewritten.contract = rewritten.contract.of_changed(rewritten.module);
        rewritten.by(&at::lower_abi(), |lower, m| lower(&cx, m))?;
        // Operations that these have put in.
        expand(rewritten.module, machine, tag)?;
        if isa.is_some_and(|isa| isa.has_fault_channel()) {
            pass_fault_channel(rewritten.module);
        }
        Ok(rewritten.contract)
    }

    /// The way from the legal module to code, for the shape of block that the target says.
    ///
    /// # Errors
    /// As [`Compiler::compile`].
    pub fn generate(&self, job: &LegalJob) -> Result<CompiledKernel> {
        let kernel = &job.info.name;
        let isa = self.isa(&job.target, kernel)?;
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
                let (code, passed) = compile_module(&job.legal, move || way.walk())??;
                for passed in passed {
                    passed.tell(self.observer, kernel);
                }
                code
            }
        };
        Ok(CompiledKernel {
            info: job.info.clone(),
            target: job.target.clone(),
            code,
            key: job.identity.key.clone(),
            retargeted_by: job.retargeted_by.clone(),
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

/// How files of machine code begin, and the size of their header.
const ELF: &[u8] = b"\x7fELF";
const ELF_HEADER: usize = 64;

/// A function of a hook on LLVM's module.
type Finish = dyn for<'ctx> Fn(&HookContext<'_>, &LlvmModule<'ctx>) -> HookResult<()> + Send + Sync;

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
        let mut passing = Passing::new(self.keep_text);

        let context = Context::create();
        let session = Session::new(&context);
        let asked = HooksAsked::new(&self.hooks, self.job.context());
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
                return Ok((Code::Interpreted { legal, why }, passing.list));
            }
        };
        session.verify(llvm.module())?;
        asked.check(|| self.still_verifies(&session, llvm.as_ref()))?;
        asked.tell(&mut passing);
        self.finish(&at::finish_module(), &session, llvm.as_ref(), &mut passing)?;
        passing.stage(Stage::Llvm, || text_of(llvm.module()));

        self.optimize(llvm.as_mut(), &mut passing)?;
        session.verify(llvm.module())?;
        let at = &at::finish_optimized_module();
        self.finish(at, &session, llvm.as_ref(), &mut passing)?;
        passing.stage(Stage::OptimizedLlvm, || text_of(llvm.module()));

        let mut code = llvm.emit()?;
        session.check("emit")?;
        self.finish_code(&mut code, &mut passing)?;
        drop(llvm);
        Ok((code, passing.list))
    }

    /// Runs the target's passes, as hooks have changed them.
    fn optimize(&self, llvm: &mut dyn LlvmKernel<'_>, passing: &mut Passing) -> Result<()> {
        let cx = self.job.context();
        let mut passes = llvm.passes();
        let mut changed_by = None;
        self.hooks
            .each(&at::pass_pipeline(), cx.kernel, |hook, change| {
                let before = passes.clone();
                passing.run(
                    (hook, HookPoint::PassPipeline),
                    &mut passes,
                    String::clone,
                    |passes| change(&cx, passes),
                    |_| Ok(()),
                )?;
                if passes != before {
                    changed_by = Some(hook.name().to_owned());
                }
                Ok(())
            })?;
        let reduced = llvm.reduced().filter(|_| changed_by.is_none());
        let optimized = llvm.optimize(&passes);
        passing.passes(&passes, reduced.or_else(|| llvm.reduced_emission()));
        self.passes_run(optimized, llvm, changed_by.as_deref())
    }

    /// What hooks make of the code, which is told to who looks on.
    fn finish_code(&self, code: &mut Code, passing: &mut Passing) -> Result<()> {
        match code {
            Code::Ptx(ptx) => self.finish_ptx(ptx, passing)?,
            Code::Host(HostCode { object, .. }) => {
                passing.stage(Stage::Object, || bytes(object.len()));
            }
            Code::Custom(code) => passing.stage(Stage::Object, || bytes(code.size())),
            Code::Interpreted { why, .. } => {
                self.hooks
                    .check_interpreted(why.as_deref().unwrap_or("that is its code"))?;
            }
        }
        Ok(())
    }

    /// Runs the functions of hooks on PTX, and those that assemble it.
    fn finish_ptx(&self, ptx: &mut PtxCode, passing: &mut Passing) -> Result<(), HookError> {
        let cx = self.job.context();
        let mut text = ptx.text.to_string();
        self.hooks
            .each(&at::rewrite_ptx(), cx.kernel, |hook, rewrite| {
                passing.run(
                    (hook, HookPoint::RewritePtx),
                    &mut text,
                    String::clone,
                    |text| rewrite(&cx, text),
                    |text| match has_entry(text, &ptx.entry) {
                        true => Ok(()),
                        false => Err(HookErrorKind::LostEntry(ptx.entry.clone())),
                    },
                )
            })?;
        ptx.text = text.into();
        passing.stage(Stage::Ptx, || ptx.text.to_string());
        ptx.assembled = self.assembled(&cx, &ptx.text, passing)?;
        if let Some(assembled) = &ptx.assembled {
            passing.stage(Stage::Object, || bytes(assembled.image.len()));
        }
        Ok(())
    }

    /// Runs the functions of hooks on LLVM's module.
    fn finish(
        &self,
        at: &At<Finish>,
        session: &Session<'_>,
        llvm: &dyn LlvmKernel<'_>,
        passing: &mut Passing,
    ) -> Result<(), HookError> {
        let cx = self.job.context();
        self.hooks.each(at, cx.kernel, |hook, finish| {
            passing.run(
                (hook, at.point()),
                &mut (),
                |()| text_of(llvm.module()),
                |()| finish(&cx, llvm.module()),
                |()| self.still_verifies(session, llvm),
            )
        })
    }

    /// What is wrong with the passes, or with what they have left, told of the hook that has changed them last.
    fn passes_run(
        &self,
        ran: Result<(), BackendError>,
        llvm: &dyn LlvmKernel<'_>,
        changed_by: Option<&str>,
    ) -> Result<()> {
        let mut hooks = self.hooks.iter();
        let Some(hook) = changed_by.and_then(|name| hooks.find(|hook| hook.name() == name)) else {
            return Ok(ran?);
        };
        let begins = || llvm.admitted().check_entry(llvm.module(), &llvm.entry());
        ran.map_err(|error| HookErrorKind::Passes(error.message))
            .and_then(|()| begins().map_err(HookErrorKind::NotAdmitted))
            .map_err(|kind| {
                let kernel = &self.job.info.name;
                hook.error(HookPoint::PassPipeline, kernel, kind).into()
            })
    }

    /// The machine code that the first hook that makes some gives.
    fn assembled(
        &self,
        cx: &HookContext<'_>,
        ptx: &str,
        passing: &mut Passing,
    ) -> Result<Option<Assembled>, HookError> {
        let mut assembled: Option<Assembled> = None;
        let is_code = |image: &[u8]| image.len() >= ELF_HEADER && image.starts_with(ELF);
        self.hooks
            .each(&at::assemble(), cx.kernel, |hook, assemble| {
                if assembled.is_some() {
                    return Ok(());
                }
                passing.run(
                    (hook, HookPoint::Assemble),
                    &mut assembled,
                    |assembled| bytes(assembled.as_ref().map_or(0, |code| code.image.len())),
                    |assembled| {
                        *assembled = assemble(cx, ptx)?.map(|image| Assembled {
                            image: image.into(),
                            by: hook.name().to_owned(),
                        });
                        Ok(())
                    },
                    |assembled| match assembled {
                        Some(code) if !is_code(&code.image) => Err(HookErrorKind::NoCubin),
                        _ => Ok(()),
                    },
                )
            })?;
        Ok(assembled)
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
        let vouched = |template: &str, constraints: &str| self.hooks.vouch(template, constraints);
        let admitted = llvm.admitted();
        let checked = admitted.check(llvm.module(), &llvm.entry(), &vouched);
        checked.map_err(HookErrorKind::NotAdmitted)
    }
}

fn text_of(module: &LlvmModule<'_>) -> String {
    module.print_to_string().to_string()
}

/// Whether PTX has a kernel of this name.
fn has_entry(ptx: &str, name: &str) -> bool {
    let mut kernels = ptx.split(".entry").skip(1);
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '$';
    kernels.any(|rest| {
        let behind = rest.trim_start().strip_prefix(name);
        behind.is_some_and(|behind| !behind.starts_with(is_name))
    })
}

fn bytes(count: usize) -> String {
    format!("{count} bytes")
}

/// Asks a [`HookSet`] whether one of its hooks lowers an operation, and keeps the first failure.
struct HooksAsked<'a> {
    hooks: &'a HookSet,
    cx: HookContext<'a>,
    failure: Mutex<Option<HookError>>,
    /// The first hook that lowered something.
    lowered: Mutex<Option<(&'a Hook, HookPoint)>>,
    /// For each hook and point, how long its functions took, and whether one lowered something.
    took: Mutex<Vec<(&'a str, HookPoint, Duration, bool)>>,
}

impl<'a> HooksAsked<'a> {
    fn new(hooks: &'a HookSet, cx: HookContext<'a>) -> Self {
        HooksAsked {
            hooks,
            cx,
            failure: Mutex::new(None),
            lowered: Mutex::new(None),
            took: Mutex::default(),
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

    /// Tells how long hooks took that were asked.
    fn tell(&self, passing: &mut Passing) {
        for &(hook, point, took, any) in self.took.lock().iter() {
            passing.lowered(hook, point, took, any);
        }
    }

    /// Adds the time of one call.
    fn count(&self, hook: &'a str, point: HookPoint, took: Duration, lowered: bool) {
        let mut list = self.took.lock();
        let known = list
            .iter_mut()
            .find(|step| (step.0, step.1) == (hook, point));
        match known {
            Some(step) => {
                step.2 += took;
                step.3 |= lowered;
            }
            None => list.push((hook, point, took, lowered)),
        }
    }

    /// What the first of the functions at a point makes of an operation that makes something of it.
    fn ask<'ctx, F: ?Sized>(
        &self,
        at: &At<F>,
        cx: &OperationLowering<'_, 'ctx>,
        mut f: impl FnMut(&F) -> HookResult<Option<LoweredOperation<'ctx>>>,
    ) -> Result<Option<LoweredOperation<'ctx>>, BackendError> {
        let mut lowered = None;
        for hook in self.hooks.iter() {
            let asked = hook.each(at, self.cx.kernel, |function| {
                if lowered.is_none() {
                    let start = Instant::now();
                    lowered = failed(f(function))?;
                    self.count(hook.name(), at.point(), start.elapsed(), lowered.is_some());
                    let checked = lowered.map_or(Ok(()), |lowered| cx.check_result(lowered));
                    checked.map_err(|error| HookErrorKind::Failed(error.into()))?;
                }
                Ok(())
            });
            if let Err(error) = asked {
                let stop = BackendError::new("lower", error.to_string());
                self.failure.lock().get_or_insert(error);
                return Err(stop);
            }
            if lowered.is_some() {
                self.lowered.lock().get_or_insert((hook, at.point()));
                break;
            }
        }
        Ok(lowered)
    }
}

impl LoweringHooks for HooksAsked<'_> {
    fn lowers_insts(&self) -> bool {
        self.hooks.has(&[HookPoint::LowerInst])
    }

    fn lowers_intrinsics(&self) -> bool {
        self.hooks.has(&[HookPoint::LowerIntrinsic])
    }

    fn context(&self) -> HookContext<'_> {
        self.cx
    }

    fn lower_inst<'ctx>(
        &self,
        cx: &OperationLowering<'_, 'ctx>,
        inst: &InstNode,
        args: &[BasicValueEnum<'ctx>],
    ) -> Result<Option<LoweredOperation<'ctx>>, BackendError> {
        self.ask(&at::lower_inst(), cx, |lower| lower(cx, inst, args))
    }

    fn lower_intrinsic<'ctx>(
        &self,
        cx: &OperationLowering<'_, 'ctx>,
        def: &IntrinsicDef,
        args: &[BasicValueEnum<'ctx>],
    ) -> Result<Option<LoweredOperation<'ctx>>, BackendError> {
        self.ask(&at::lower_intrinsic(), cx, |lower| lower(cx, def, args))
    }
}

/// A module under its hooks.
struct Rewritten<'a> {
    hooks: &'a HookSet,
    onlooker: Onlooker<'a>,
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
        let onlooker = self.onlooker;
        self.hooks.each(at, onlooker.kernel, |hook, function| {
            let before = Before::of(self.module);
            onlooker.run(
                (hook, at.point()),
                self.module,
                |module| module,
                |module| apply(function, module),
                |module| keeps(hook, module, &mut self.contract, &before),
            )
        })?;
        Ok(())
    }
}

/// Has threads that are about to fault call the function that a hook gives, in a module where threads can.
fn call_before_faults(
    module: &mut Module,
    function: impl FnOnce(&mut Module) -> HookResult<Option<FuncId>>,
) -> HookResult<()> {
    if fault_insts(module).is_empty() {
        return Ok(());
    }
    if let Some(function) = function(module)? {
        module.call_before_faults(function)?;
    }
    Ok(())
}

/// Whether a hook has left the module as hooks must.
fn keeps(
    hook: &Hook,
    module: &Module,
    contract: &mut Contract,
    before: &Before,
) -> Result<(), HookErrorKind> {
    verify(module).map_err(HookErrorKind::BrokeIr)?;
    contract.check(hook, module)?;
    contract.note_rows(before, module);
    match hook.removes_checks() {
        true => Ok(()),
        false => before.keeps_checks(module),
    }
}

#[doc(hidden)]
pub fn failed<T>(result: HookResult<T>) -> Result<T, HookErrorKind> {
    result.map_err(HookErrorKind::Failed)
}
