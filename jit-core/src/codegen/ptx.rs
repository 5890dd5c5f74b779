//! A verified module to PTX text: the stages in their order, on a compile thread.
//!
//! The compile pipeline runs the same stages with its hooks in between; [`emit_ptx`] is the plain
//! way through, for tests, tools and inspection.

use std::sync::Arc;

use inkwell::context::Context;

use super::effort::passes_for_ptx;
use super::error::{BackendError, CompileThreadError};
use super::legal::{IllegalOperations, check_legal};
use super::lower::{LoweringHooks, lower};
use super::machine::Machine;
use super::options::CodegenOptions;
use super::placeless::{prepare_emission, run_ptx_passes};
use super::ptxas;
use super::session::{Session, on_compile_thread};
use crate::ir::Module;
use crate::target::PtxTarget;

/// Why a module did not become PTX.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PtxError {
    /// It holds operations that the target does not have.
    #[error(transparent)]
    Illegal(#[from] IllegalOperations),
    /// LLVM refused a stage.
    #[error(transparent)]
    Backend(#[from] BackendError),
    /// The compile did not come to an end of its own, or there is no LLVM.
    #[error(transparent)]
    Thread(#[from] CompileThreadError),
}

/// The PTX text of a verified module of [`crate::ir::Phase::Legal`].
///
/// # Errors
/// If the target lacks an operation, a hook or LLVM refuses, or there is no LLVM.
pub fn emit_ptx(
    module: &Arc<Module>,
    target: PtxTarget,
    options: &CodegenOptions,
    hooks: &Arc<dyn LoweringHooks + Send + Sync>,
) -> Result<String, PtxError> {
    check_legal(module, &target)?;
    let name = module.name.clone();
    let (module, options, hooks) = (Arc::clone(module), options.clone(), Arc::clone(hooks));
    let compile = move || {
        let context = Context::create();
        let session = Session::new(&context);
        compile_in(&session, &context, &module, target, &options, &*hooks)
    };
    Ok(on_compile_thread(&name, compile)??)
}

fn compile_in(
    session: &Session<'_>,
    context: &Context,
    module: &Module,
    target: PtxTarget,
    options: &CodegenOptions,
    hooks: &dyn LoweringHooks,
) -> Result<String, BackendError> {
    let machine = Machine::nvptx(target.sm, target.ptx)?;
    let llvm = lower(context, module, &machine, target, options, hooks)?;
    let pipeline = passes_for_ptx(module, options.opt_level);
    machine.verify(session, &llvm)?;
    run_ptx_passes(&machine, session, (context, &llvm), &module.types, pipeline)?;
    ptxas::write_around(context, &llvm)?;
    prepare_emission(&machine, session, (context, &llvm), &module.types)?;
    let ptx = machine.emit_assembly(session, &llvm)?;
    Ok(ptxas::write_around_in_text(&ptx))
}
