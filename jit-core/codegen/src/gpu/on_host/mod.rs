//! Code for a GPU, as LLVM's passes have left it, made into an object file of this machine.
//!
//! It is how tests run what the passes for NVPTX make of a kernel without a GPU. The module comes as
//! bitcode, taken where PTX would be written from it. What only a GPU has (`llvm.nvvm.*`, inline
//! PTX, shared memory, the kernel's calling convention) is replaced then, so that the passes saw it
//! as it is; the rest, atomics with their scopes, address spaces and halves among it, the host's
//! back end takes as it comes. Each call that is replaced becomes one of a function of the runtime,
//! with a [`Site`] that says what it stands for. What is not known is an error that names it.
//!
//! | file | subject |
//! |---|---|
//! | `operation` | what a call of an intrinsic or inline PTX stands for |
//! | `access` | inline PTX that reads and writes memory |
//! | `rewrite` | the module's calls, globals, entry |

mod access;
mod operation;
mod rewrite;

use std::sync::Arc;

use inkwell::context::Context;
use inkwell::memory_buffer::MemoryBuffer;
use inkwell::module::Module;

use kiln_ir::IntrinsicDef;
use kiln_ir::target::PtxTarget;

use super::placeless::run_freezing;
use crate::llvm::machine::Machine;
use crate::llvm::session::{Session, on_compile_thread};
use crate::{BackendError, CompileThreadError};

pub use access::{Access, AccessKind, Element};
pub use operation::{Operation, RowCall, Site};
pub use rewrite::kernel_symbol;

/// The symbol of the function that runs a thread of a kernel, `fn(parameter block)`.
pub const THREAD_ENTRY: &str = "kiln_thread";

/// Passes over LLVM's IR that the code generator for NVPTX runs before it selects instructions
/// (`NVPTXPassConfig::addIRPasses`), as far as they have no form of their own for PTX: accesses side
/// by side become vectors here, and loads are merged once more.
const GENERATOR_PASSES: &str = "function(sroa<modify-cfg>,infer-address-spaces,\
     separate-const-offset-from-gep,slsr,gvn<>,nary-reassociate,early-cse<>,\
     load-store-vectorizer,sroa<modify-cfg>)";

/// A module to be made runnable, as data that a thread of its own can take along.
pub struct OnHostJob {
    /// The kernel's name, for errors.
    pub kernel: String,
    /// What it was compiled for.
    pub target: PtxTarget,
    /// The optimized module.
    pub bitcode: Vec<u8>,
    /// The rows whose cells may be in it.
    pub rows: Vec<&'static IntrinsicDef>,
    /// Where each slot of the parameter block is, in bytes.
    pub slots: Vec<u32>,
    /// The address of the runtime's `fn(&Site, args: *const u64) -> u64`.
    pub callback: usize,
    /// The address of the block's shared memory, and how many bytes there are.
    pub shared: (u64, u64),
}

/// What comes out.
pub struct OnHostCode {
    /// The object file.
    pub object: Vec<u8>,
    /// What the calls stand for; the code has their addresses.
    pub sites: Vec<Arc<Site>>,
    /// Bytes of shared memory before those of the launch.
    pub static_shared: u64,
    /// Bytes of stack that a thread needs at most.
    pub stack_bytes: u64,
}

/// Makes code of it on a thread of its own.
///
/// # Errors
/// There is no libLLVM, or the module has something that is not known here.
pub fn compile_on_host(
    job: OnHostJob,
) -> Result<Result<OnHostCode, BackendError>, CompileThreadError> {
    let kernel = job.kernel.clone();
    on_compile_thread(&kernel, move || run(&job))
}

fn run(job: &OnHostJob) -> Result<OnHostCode, BackendError> {
    let context = Context::create();
    let session = Session::new(&context);
    let buffer = MemoryBuffer::create_from_memory_range_copy(&job.bitcode, "kernel");
    let module = Module::parse_bitcode_from_buffer(&buffer, &context)
        .map_err(|error| BackendError::new("link", error.to_string_lossy()))?;
    module.strip_debug_info();
    let gpu = Machine::nvptx(job.target.sm, job.target.ptx)?;
    run_freezing(&gpu, &session, (&context, &module), GENERATOR_PASSES)?;
    let machine = Machine::plain_host()?;
    machine.prepare(&module);
    let rewritten = rewrite::rewrite(&context, &module, &machine.target_data(), job)?;
    session.verify(&module)?;
    let object = machine.emit_object(&session, &module)?;
    session.check("emit")?;
    Ok(OnHostCode {
        object,
        sites: rewritten.sites,
        static_shared: rewritten.static_shared,
        stack_bytes: rewritten.stack_bytes,
    })
}
