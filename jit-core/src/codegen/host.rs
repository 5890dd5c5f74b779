//! From a legal module to an object file for this machine, on a compile thread.

use std::sync::Arc;
use std::time::{Duration, Instant};

use inkwell::OptimizationLevel;
use inkwell::context::Context;
use once_cell::sync::OnceCell;

use super::effort::Effort;
use super::error::BackendError;
use super::machine::Machine;
use super::optimize::OptLevel;
use super::session::{Session, compile_module, on_compile_thread, stack_bytes};
use super::split::split_long_blocks;
use super::vector::{
    Barriers, Bug, Plan, PlanOptions, Unplannable, take_frame_bytes, write_kernel,
};
use crate::compile::Stage;
use crate::error::Error;
use crate::ir::Module;
use crate::simt::BlockShape;

/// A compilation for the host, as data that a thread of its own can take along.
#[derive(Clone, Debug)]
pub(crate) struct HostJob {
    pub(crate) module: Arc<Module>,
    pub(crate) block: BlockShape,
    pub(crate) contract: bool,
    pub(crate) opt_level: OptLevel,
    /// What to do at barriers, if it is to be set.
    pub(crate) barriers: Option<Barriers>,
    /// Whether lanes are told apart by the number in the job: there are warp operations.
    pub(crate) warps_matter: bool,
    pub(crate) bug: Option<Bug>,
    /// Whether the outputs of the stages are to be kept as text.
    pub(crate) keep_text: bool,
}

/// What comes out.
#[derive(Debug)]
pub(crate) enum HostOutput {
    /// Code.
    Code(HostCode),
    /// The kernel's barriers lie where only the interpreter can run them, and why.
    Interpret(String),
}

/// Code for the host.
#[derive(Debug)]
pub(crate) struct HostCode {
    /// The object file.
    pub(crate) object: Vec<u8>,
    /// Lanes of a vector.
    pub(crate) lanes: u32,
    /// What happens at barriers.
    pub(crate) barriers: Barriers,
    /// Bytes of what is kept for a block while it runs, and of its memory without dynamic shared
    /// memory.
    pub(crate) arena_bytes: [u64; 2],
    /// Bytes of stack that the code takes.
    pub(crate) stack_bytes: u64,
    /// Stages passed, how long each took, and its output if it was to be kept.
    pub(crate) stages: Vec<(Stage, Duration, String)>,
}

/// The most stack that code may take, in bytes: what the threads that run blocks have, less a margin.
const MAX_STACK: u64 = 4 << 20;

/// Makes functions of coroutines; the passes after it see nothing special.
const SPLIT_COROUTINES: &str = "coro-early,cgscc(coro-split),coro-cleanup";

/// Compiles on a thread of its own; only data crosses.
pub(crate) fn compile_host(job: HostJob) -> Result<HostOutput, Error> {
    let module = job.module.clone();
    compile_module(&module, move || run(&job))?
}

/// The way to run a kernel: cut at its barriers; else with a coroutine for each warp; else, where
/// lanes of a warp part at a barrier, for each thread.
fn plan(job: &HostJob, has_f16c: bool) -> Result<Plan<'_>, Unplannable> {
    let options = |barriers| PlanOptions {
        contract: job.contract,
        has_f16c,
        barriers,
        bug: job.bug,
    };
    let wants = [
        job.barriers,
        Some(Barriers::Segments),
        Some(Barriers::Coroutines),
    ];
    let mut latest = None;
    for barriers in wants.into_iter().flatten() {
        match Plan::new(&job.module, job.block, options(barriers)) {
            Err(error @ Unplannable::Barrier { .. }) => latest = Some(error),
            other => return other,
        }
    }
    match latest {
        Some(error) if job.warps_matter => Err(error),
        _ => {
            let one_lane = BlockShape {
                lanes: 1,
                ..job.block
            };
            Plan::new(&job.module, one_lane, options(Barriers::Coroutines))
        }
    }
}

fn run(job: &HostJob) -> Result<HostOutput, Error> {
    let mut stages = Vec::new();
    let mut last = Instant::now();
    let mut done = |stage, text: &dyn Fn() -> String| {
        let took = last.elapsed();
        let text = if job.keep_text { text() } else { String::new() };
        stages.push((stage, took, text));
        last = Instant::now();
    };
    let machine = Machine::host(job.opt_level.host_emission())?;
    let plan = match plan(job, machine.converts_f16()) {
        Ok(plan) => plan,
        Err(Unplannable::Backend(error)) => return Err(error.into()),
        Err(other) => return Ok(HostOutput::Interpret(other.to_string())),
    };
    let context = Context::create();
    let session = Session::new(&context);
    let llvm = context.create_module("kernel");
    machine.prepare(&llvm);
    write_kernel(&context, &llvm, &plan)?;
    machine.tune(&llvm);
    machine.verify(&session, &llvm)?;
    let effort = Effort::of(&llvm, &machine.target_data(), job.opt_level);
    done(Stage::Llvm, &|| llvm.print_to_string().to_string());
    let mut arena_bytes = plan.arena_bytes();
    if plan.barriers() == Barriers::Coroutines {
        machine.run_passes(&session, &llvm, SPLIT_COROUTINES)?;
        arena_bytes[0] += plan.frame_bytes(take_frame_bytes(&llvm)?);
    }
    machine.run_passes(&session, &llvm, effort.pipeline())?;
    split_long_blocks(&context, &llvm, &machine.target_data())?;
    machine.verify(&session, &llvm)?;
    done(Stage::OptimizedLlvm, &|| llvm.print_to_string().to_string());
    let object = Machine::host(effort.emission())?.emit_object(&session, &llvm)?;
    let stack_bytes = stack_bytes(&session.finish("emit")?);
    if stack_bytes > MAX_STACK {
        let why = format!("its code takes {stack_bytes} bytes of stack");
        return Ok(HostOutput::Interpret(why));
    }
    done(Stage::Object, &|| format!("{} bytes", object.len()));
    Ok(HostOutput::Code(HostCode {
        object,
        lanes: plan.lanes(),
        barriers: plan.barriers(),
        arena_bytes,
        stack_bytes,
        stages,
    }))
}

/// The widest vectors of 32-bit numbers that this machine computes with at once; asked once.
///
/// # Errors
/// There is no libLLVM to ask, or it does not know this machine.
pub(crate) fn host_vector_lanes() -> Result<u32, Error> {
    static LANES: OnceCell<u32> = OnceCell::new();
    let ask = || Machine::host(OptimizationLevel::None).map(|m| m.native_lanes());
    let lanes = LANES.get_or_try_init(|| -> Result<u32, Error> {
        on_compile_thread("host", ask)?.map_err(|error: BackendError| error.into())
    })?;
    Ok(*lanes)
}
