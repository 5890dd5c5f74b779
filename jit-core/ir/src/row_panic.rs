//! Panics in the functions of intrinsic rows, which users write: error values, wherever they happen.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::{debug_as_text, error_text};

/// The function of an intrinsic's row panicked.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", error_text!(
    "kernel `{kernel}`: the function that says what the intrinsic `{row}` means panicked: {message}; \
     it must give a value for all arguments"
))]
pub struct RowPanic {
    /// The kernel; empty as long as it is not known.
    pub kernel: String,
    /// The row's name.
    pub row: &'static str,
    /// The panic's message.
    pub message: String,
}

debug_as_text!(RowPanic);

impl RowPanic {
    /// Calls a row's function.
    pub fn catch<R>(row: &'static str, f: impl FnOnce() -> R) -> Result<R, RowPanic> {
        // What a row's function leaves behind in its own statics is its own matter.
        catch_unwind(AssertUnwindSafe(f)).map_err(|payload| RowPanic {
            kernel: String::new(),
            row,
            message: message(&*payload),
        })
    }

    /// The panic with the name of the kernel, which is known by now.
    pub fn in_kernel(self, kernel: &str) -> RowPanic {
        RowPanic {
            kernel: kernel.to_owned(),
            ..self
        }
    }
}

/// The text a panic carries; `panic_any` may carry none.
pub fn message(payload: &(dyn Any + Send)) -> String {
    if let Some(text) = payload.downcast_ref::<&str>() {
        (*text).to_owned()
    } else if let Some(text) = payload.downcast_ref::<String>() {
        text.clone()
    } else {
        "(the panic has no message)".to_owned()
    }
}
