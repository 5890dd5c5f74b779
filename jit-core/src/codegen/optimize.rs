//! Optimization levels and the LLVM pass pipeline of each.
//!
//! The pipelines are text in the syntax of `opt -passes=` and part of a compile's options, so that
//! a hook can replace them. They need the target machine: without it the NVPTX passes and cost
//! model are missing.

use super::error::BackendError;
use super::machine::{Machine, PTX_PIPELINE};
use super::session::Session;

/// How much LLVM optimizes.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug, Default)]
pub enum OptLevel {
    /// Only what is needed to emit code.
    O0,
    /// A little.
    O1,
    /// Without the address passes of `O3`.
    O2,
    /// Everything; what kernels are compiled with.
    #[default]
    O3,
}

impl OptLevel {
    /// All levels.
    pub const ALL: [OptLevel; 4] = [OptLevel::O0, OptLevel::O1, OptLevel::O2, OptLevel::O3];

    /// The pass pipeline for PTX.
    pub fn ptx_pipeline(self) -> &'static str {
        match self {
            OptLevel::O0 => "default<O0>",
            OptLevel::O1 => "default<O1>",
            OptLevel::O2 => "default<O2>",
            OptLevel::O3 => PTX_PIPELINE,
        }
    }

    /// The pass pipeline for the host. `O1` is the short one for code that is compiled often and
    /// run little.
    pub fn host_pipeline(self) -> &'static str {
        match self {
            OptLevel::O0 => "default<O0>",
            OptLevel::O1 => HOST_PIPELINE,
            OptLevel::O2 => "default<O2>",
            OptLevel::O3 => "default<O3>",
        }
    }
}

/// Passes that make most of the code of most kernels.
const HOST_PIPELINE: &str = "function(sroa<modify-cfg>,early-cse<memssa>,\
     instcombine<no-verify-fixpoint>,simplifycfg,loop-mssa(licm),gvn<>,\
     instcombine<no-verify-fixpoint>,simplifycfg)";

/// Runs a pass pipeline over a lowered module, after LLVM's verifier.
///
/// # Errors
/// If the module breaks a rule of LLVM, or the pipeline does not parse or reports an error.
pub(crate) fn optimize(
    machine: &Machine,
    session: &Session<'_>,
    module: &inkwell::module::Module<'_>,
    pipeline: &str,
) -> Result<(), BackendError> {
    machine.verify(session, module)?;
    machine.run_passes(session, module, pipeline)
}
