//! Every error a user of Kiln can meet, by what it is about.
//!
//! [`Error`] says in which part of a program's work something went wrong, and the value in it what. Each is a
//! typed value; its text says what happened, where (kernel, argument, line of Rust) and what to do about it.
//!
//! ```
//! use kiln::core::error::{Error, RunError};
//!
//! fn say(error: &Error) -> String {
//!     match error {
//!         Error::Run(RunError::Fault(fault)) => format!("index {} at {}", fault.index, fault.location),
//!         Error::Launch(_) | Error::Bind(_) => "the launch is wrong".into(),
//!         error => error.to_string(),
//!     }
//! }
//! # drop(say);
//! ```
//!
//! A library on top of Kiln has errors of its own, which become an [`Error`] at a `?` as well: [`LibraryError`].

mod compile;
mod describe;
mod graph;
mod inspect;
mod library;
mod memory;
mod run;
#[cfg(test)]
mod tests;

use std::fmt;

pub use compile::CompileError;
pub use describe::DescribeError;
pub use graph::GraphError;
pub use inspect::InspectError;
pub use library::LibraryError;
pub use memory::MemoryError;
pub use run::RunError;

use crate::build::BuildErrors;
use crate::checks::Finding;
use crate::codegen::{BackendError, CompileThreadError, IllegalOperations, LlvmLibraryError};
use crate::definition::{ModuleError, RecursionError, SignatureChanged};
use crate::hook::{HookError, HookSetError};
use crate::interp::InterpretError;
use crate::ir::{LinkError, ParseError, VerifyErrors, readable};
use crate::launch::{DesertedGrid, KernelFault, LaunchError, LaunchStopped};
use crate::legal::NotLegal;
use crate::lent::dlpack::TensorError;
use crate::row_panic::RowPanic;
use crate::runtime::DeviceError;
use crate::runtime::cuda::DriverError;
use crate::specialize::{BindError, SpecializeError};
use crate::value::InvalidValue;

/// What can go wrong between describing a kernel and reading its results.
///
/// Its text is of a length that can be read, whatever names and types a program has: what is longer
/// than 16 KiB has its middle left out. Its `Debug` form is that text, too, because it is what `main`
/// and `unwrap` print.
#[non_exhaustive]
pub enum Error {
    /// A kernel or device function is described wrongly.
    Describe(DescribeError),
    /// The arguments of a launch do not fit the kernel.
    Bind(BindError),
    /// A kernel cannot be compiled for its arguments and the target.
    Compile(CompileError),
    /// A hook failed, panicked or broke a module.
    Hook(HookError),
    /// A list of hooks does not say one thing, or holds a hook that cannot do here what it is for.
    HookSet(HookSetError),
    /// A launch that cannot be.
    Launch(LaunchError),
    /// A graph that cannot be, or a replay that it does not take.
    Graph(GraphError),
    /// A launch did not come to its end as it should have.
    Run(RunError),
    /// A device did not do what it was asked for, or cannot be used.
    Device(DeviceError),
    /// Memory, or what is in it, is not as was asked for.
    Memory(MemoryError),
    /// There is nothing of what is to be looked at, or no tool to look with.
    Inspect(InspectError),
    /// A library on top of Kiln was asked for what cannot be; [`Error::library`] gives the library's own error.
    Library(LibraryError),
    /// A bug in Kiln.
    Internal(&'static str),
}

/// The variants that hold the error of a subject, and what that is made of: the text of the error is theirs, and
/// so is its source.
macro_rules! subjects {
    ($($name:ident($subject:ty): [$($part:ty),*];)*) => {
        $(
            impl From<$subject> for Error {
                fn from(error: $subject) -> Error {
                    Error::$name(error)
                }
            }

            $(
                impl From<$part> for Error {
                    fn from(error: $part) -> Error {
                        Error::$name(error.into())
                    }
                }
            )*
        )*

        impl Error {
            fn subject(&self) -> Option<&(dyn std::error::Error + 'static)> {
                match self {
                    $(Error::$name(error) => Some(error),)*
                    Error::Device(error) => Some(error),
                    Error::Internal(_) => None,
                }
            }
        }
    };
}

subjects! {
    Describe(DescribeError): [BuildErrors, ModuleError, SignatureChanged, RecursionError, ParseError, LinkError];
    Bind(BindError): [];
    Compile(CompileError):
        [SpecializeError, VerifyErrors, NotLegal, IllegalOperations, CompileThreadError, LlvmLibraryError, BackendError];
    Hook(HookError): [];
    HookSet(HookSetError): [];
    Launch(LaunchError): [];
    Graph(GraphError): [];
    Run(RunError): [KernelFault, LaunchStopped, DesertedGrid, RowPanic, Box<Finding>];
    Memory(MemoryError): [InvalidValue, TensorError];
    Inspect(InspectError): [];
    Library(LibraryError): [];
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.subject().and_then(std::error::Error::source)
    }
}

/// The whole text, however long.
struct Whole<'a>(&'a Error);

impl fmt::Display for Whole<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Error::Internal(what) => write!(f, "internal error, please report it: {what}"),
            error => error
                .subject()
                .map_or(Ok(()), |subject| write!(f, "{subject}")),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&readable(Whole(self).to_string()))
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl From<DriverError> for Error {
    fn from(error: DriverError) -> Error {
        Error::Device(error.into())
    }
}

/// What a launch did is told as such, whoever ran it.
impl From<InterpretError> for Error {
    fn from(error: InterpretError) -> Error {
        match error {
            InterpretError::Finding(finding) => finding.into(),
            InterpretError::RowPanic(panic) => panic.into(),
            InterpretError::HostMemory { bytes } => MemoryError::Host { bytes }.into(),
            error => RunError::Interpret(error).into(),
        }
    }
}

impl From<DeviceError> for Error {
    fn from(error: DeviceError) -> Error {
        match error {
            DeviceError::Fault(fault) => fault.into(),
            DeviceError::Stopped(stopped) => stopped.into(),
            DeviceError::DesertedGrid(deserted) => deserted.into(),
            DeviceError::RowPanic(panic) => panic.into(),
            DeviceError::Interpret(error) => error.into(),
            DeviceError::HostMemory { bytes } => MemoryError::Host { bytes }.into(),
            DeviceError::Internal(what) => Error::Internal(what),
            error => Error::Device(error),
        }
    }
}

impl Error {
    /// What a thread did that it must not, if that is the error.
    pub fn fault(&self) -> Option<&KernelFault> {
        match self {
            Error::Run(RunError::Fault(fault)) => Some(fault),
            _ => None,
        }
    }

    /// What a check found, if that is the error; see [`crate::checks`].
    pub fn finding(&self) -> Option<&Finding> {
        match self {
            Error::Run(RunError::Finding(finding)) => Some(finding),
            _ => None,
        }
    }

    /// The error of a library on top of Kiln, if that is the error and is an `E`; see [`LibraryError`].
    ///
    /// ```
    /// use kiln::array::ArrayError;
    /// use kiln::prelude::*;
    ///
    /// fn first(jit: &Jit) -> kiln::Result<Vec<f32>> {
    ///     let arrays = Arrays::new(jit);
    ///     let (x, y) = (arrays.vector(vec![1.0; 3])?, arrays.vector(vec![1.0; 4])?);
    ///     Ok((x + y).eval()?.to_vec()?)
    /// }
    ///
    /// # fn main() -> kiln::Result<()> {
    /// let refused = first(&Jit::new()?).expect_err("3 elements do not go with 4");
    /// assert!(matches!(refused.library(), Some(ArrayError::Shape(shapes)) if shapes.left.len() == 3));
    /// # Ok(())
    /// # }
    /// ```
    pub fn library<E: std::error::Error + 'static>(&self) -> Option<&E> {
        match self {
            Error::Library(error) => error.downcast_ref(),
            _ => None,
        }
    }
}

/// What Kiln's functions give.
pub type Result<T, E = Error> = std::result::Result<T, E>;
