//! The LLVM half of the compile pipeline: lowering, optimization and emission with hooks between
//! them, on a compile thread.

use std::sync::Arc;
use std::time::{Duration, Instant};

use inkwell::context::Context;
use inkwell::types::BasicTypeEnum;
use inkwell::values::BasicValueEnum;
use parking_lot::Mutex;

use super::effort::passes_for_ptx;
use super::error::BackendError;
use super::legal::check_legal;
use super::lower::{FunctionLowering, LoweringHooks, kernel_entry_name, lower};
use super::machine::Machine;
use super::options::CodegenOptions;
use super::placeless::{prepare_emission, run_ptx_passes};
use super::ptxas;
use super::session::{Session, compile_module};
use crate::compile::{Stage, failed};
use crate::error::Error;
use crate::hook::{Hook, HookContext, HookError, HookErrorKind, HookPoint, HookResult, HookSet};
use crate::ir::{InstNode, IntrinsicDef, Module, Verified};
use crate::job::CompileOptions;
use crate::target::{PtxTarget, Target};

/// A compilation to PTX, as data that a thread of its own can take along.
pub(crate) struct PtxJob {
    pub(crate) module: Arc<Verified<Module>>,
    pub(crate) target: PtxTarget,
    pub(crate) options: CompileOptions,
    pub(crate) hooks: HookSet,
    pub(crate) kernel_tag: u64,
    /// Whether the outputs of the stages are to be kept as text.
    pub(crate) keep_text: bool,
}

/// What comes out.
pub(crate) struct PtxOutput {
    /// The kernel's symbol.
    pub(crate) entry: String,
    /// The PTX text.
    pub(crate) ptx: String,
    /// Stages passed, how long each took, and its output if it was to be kept.
    pub(crate) stages: Vec<(Stage, Duration, String)>,
}

/// Compiles on a thread of its own; only data crosses.
pub(crate) fn compile_ptx(job: PtxJob) -> Result<PtxOutput, Error> {
    check_legal(&job.module, &job.target)?;
    let module = job.module.clone();
    compile_module(&module, move || run(&job))?
}

fn run(job: &PtxJob) -> Result<PtxOutput, Error> {
    let mut stages = Vec::new();
    let mut last = Instant::now();
    let mut done = |stage, text: &dyn Fn() -> String| {
        let took = last.elapsed();
        stages.push((
            stage,
            took,
            if job.keep_text { text() } else { String::new() },
        ));
        last = Instant::now();
    };
    let kernel = job.module.name.as_str();
    let target = Target::Ptx(job.target);
    let cx = HookContext {
        kernel,
        target: &target,
        options: &job.options,
    };
    let options = CodegenOptions {
        kernel_tag: job.kernel_tag,
        contract: job.options.contract,
        opt_level: job.options.opt_level,
        line_info: job.options.line_info,
    };

    let context = Context::create();
    let session = Session::new(&context);
    let machine = Machine::nvptx(job.target.sm, job.target.ptx)?;
    let asked = HooksAsked {
        hooks: &job.hooks,
        kernel,
        failure: Mutex::new(None),
    };
    let lowered = lower(
        &context,
        &job.module,
        &machine,
        job.target,
        &options,
        &asked,
    );
    if let Some(failure) = asked.failure.into_inner() {
        return Err(failure.into());
    }
    let llvm = lowered?;
    machine.verify(&session, &llvm)?;
    let verify = || {
        // A hook may have left a diagnostic handler of its own.
        session.install();
        machine
            .verify(&session, &llvm)
            .map_err(|e| HookErrorKind::BrokeLlvm(e.message))
    };
    job.hooks.run(HookPoint::FinishModule, kernel, |h| {
        failed(h.finish_module(&cx, &llvm)).and_then(|()| verify())
    })?;
    done(Stage::Llvm, &|| llvm.print_to_string().to_string());

    let mut passes = passes_for_ptx(&job.module, job.options.opt_level).to_owned();
    job.hooks.run(HookPoint::PassPipeline, kernel, |h| {
        failed(h.pass_pipeline(&cx, &mut passes))
    })?;
    let types = &job.module.types;
    run_ptx_passes(&machine, &session, (&context, &llvm), types, &passes)?;
    ptxas::write_around(&context, &llvm)?;
    job.hooks
        .run(HookPoint::FinishOptimizedModule, kernel, |h| {
            failed(h.finish_optimized_module(&cx, &llvm)).and_then(|()| verify())
        })?;
    prepare_emission(&machine, &session, (&context, &llvm), types)?;
    done(Stage::OptimizedLlvm, &|| llvm.print_to_string().to_string());

    let ptx = ptxas::write_around_in_text(&machine.emit_assembly(&session, &llvm)?);
    session.finish("emit")?;
    done(Stage::Ptx, &|| ptx.clone());
    Ok(PtxOutput {
        entry: kernel_entry_name(kernel, job.kernel_tag),
        ptx,
        stages,
    })
}

/// Asks a [`HookSet`] whether one of its hooks lowers an operation, and keeps the first failure.
struct HooksAsked<'a> {
    hooks: &'a HookSet,
    kernel: &'a str,
    failure: Mutex<Option<HookError>>,
}

impl HooksAsked<'_> {
    /// The first value that a hook gives.
    fn ask<'ctx>(
        &self,
        mut f: impl FnMut(&dyn Hook) -> HookResult<Option<BasicValueEnum<'ctx>>>,
    ) -> Result<Option<BasicValueEnum<'ctx>>, BackendError> {
        let mut value = None;
        let run = self.hooks.run(HookPoint::Lowering, self.kernel, |hook| {
            if value.is_none() {
                value = failed(f(hook))?;
            }
            Ok(())
        });
        match run {
            Ok(()) => Ok(value),
            Err(error) => {
                let stop = BackendError::new("lower", error.to_string());
                self.failure.lock().get_or_insert(error);
                Err(stop)
            }
        }
    }
}

impl LoweringHooks for HooksAsked<'_> {
    fn active(&self) -> bool {
        self.hooks.iter().any(|h| h.lowers_operations())
    }

    fn lower_inst<'ctx>(
        &self,
        cx: &mut FunctionLowering<'_, 'ctx>,
        inst: &InstNode,
        args: &[BasicValueEnum<'ctx>],
    ) -> Result<Option<BasicValueEnum<'ctx>>, BackendError> {
        self.ask(|hook| hook.lower_inst(cx, inst, args))
    }

    fn lower_intrinsic<'ctx>(
        &self,
        cx: &mut FunctionLowering<'_, 'ctx>,
        def: &IntrinsicDef,
        args: &[BasicValueEnum<'ctx>],
        _result: BasicTypeEnum<'ctx>,
    ) -> Result<Option<BasicValueEnum<'ctx>>, BackendError> {
        self.ask(|hook| hook.lower_intrinsic(cx, def, args))
    }
}
