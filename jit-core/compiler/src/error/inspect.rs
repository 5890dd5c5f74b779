//! Looking at what is not there.

use std::path::{Path, PathBuf};

use crate::ir::{debug_as_text, error_text};

/// Why a stage of a kernel cannot be looked at.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum InspectError {
    /// The target does not have the stage.
    #[error("{}", error_text!(
        "kernel `{kernel}` was compiled for {target}, which has no stage `{stage}`; set `JitOptions::target` to \
         look at another target's code"
    ))]
    NoStage {
        /// The kernel.
        kernel: String,
        /// The stage.
        stage: &'static str,
        /// The target.
        target: &'static str,
    },
    /// The stage depends on the shape of blocks, and none was given.
    #[error("{}", error_text!(
        "kernel `{kernel}`: its code for this machine's CPU depends on the shape of blocks, and so does its \
         stage `{stage}`; use `Jit::inspect_block`"
    ))]
    NoBlock {
        /// The kernel.
        kernel: String,
        /// The stage.
        stage: &'static str,
    },
    /// A program outside of Kiln cannot be used.
    #[error("{}", error_text!(
        "{tool} ({}) failed: {message}\n  set KILN_PTXAS and KILN_NVDISASM to the paths of NVIDIA's tools, or \
         run `cargo xtask setup`",
        path.display()
    ))]
    Tool {
        /// The tool's name.
        tool: &'static str,
        /// The tool's path.
        path: PathBuf,
        /// What the tool said.
        message: String,
    },
}

debug_as_text!(InspectError);

impl InspectError {
    #[doc(hidden)]
    pub fn tool(tool: &'static str, path: &Path, message: String) -> InspectError {
        InspectError::Tool {
            tool,
            path: path.to_owned(),
            message,
        }
    }
}
