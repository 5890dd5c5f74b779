//! Launches that did not come to their end.

use crate::checks::Finding;
use crate::interp::InterpretError;
use crate::ir::debug_as_text;
use crate::launch::{DesertedGrid, KernelFault, LaunchStopped};
use crate::row_panic::RowPanic;

/// What a launch did, or what was done to it, instead of coming to its end.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// A thread ended because it did something it must not.
    #[error(transparent)]
    Fault(#[from] KernelFault),
    /// A launch that was ended before its time.
    #[error(transparent)]
    Stopped(#[from] LaunchStopped),
    /// Blocks waited for others that had ended.
    #[error(transparent)]
    DesertedGrid(#[from] DesertedGrid),
    /// The function of an intrinsic's row panicked.
    #[error(transparent)]
    RowPanic(#[from] RowPanic),
    /// A check found something; see [`crate::checks`].
    #[error(transparent)]
    Finding(#[from] Box<Finding>),
    /// The interpreter met something else that ends the launch.
    #[error(transparent)]
    Interpret(InterpretError),
}

debug_as_text!(RunError);
