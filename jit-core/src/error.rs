//! Every error a user of Kiln can meet, by whose subject it is.
//!
//! Each variant is a typed value; its text says what happened, where (kernel, argument, line of
//! Rust) and what to do about it.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::build::BuildErrors;
use crate::checks::Finding;
use crate::codegen::{BackendError, CompileThreadError, IllegalOperations};
use crate::definition::{RecursionError, SignatureChanged};
use crate::hook::{HookError, HookSetError};
use crate::interp::InterpretError;
use crate::ir::{VerifyErrors, readable};
use crate::launch::{KernelFault, LaunchError, LaunchStopped};
use crate::legal::NotLegal;
use crate::row_panic::RowPanic;
use crate::runtime::DeviceError;
use crate::runtime::cuda::DriverError;
use crate::specialize::{BindError, SpecializeError};

/// What can go wrong between describing a kernel and reading its results.
///
/// Its text is of a length that can be read, whatever names and types a program has: what is longer
/// than 16 KiB has its middle left out. Its `Debug` form is that text, too, because it is what `main`
/// and `unwrap` print.
#[non_exhaustive]
pub enum Error {
    /// The description of a kernel or device function is wrong.
    Build(BuildErrors),
    /// A redefinition changes the signature that callers rely on.
    SignatureChanged(SignatureChanged),
    /// A function calls itself, directly or not.
    Recursion(RecursionError),
    /// The arguments of a launch do not fit the kernel.
    Bind(BindError),
    /// A kernel cannot be specialized for its arguments.
    Specialize(SpecializeError),
    /// A module breaks the rules of the IR, or uses what the target does not have.
    Verify(VerifyErrors),
    /// A kernel uses what the target does not have.
    Illegal(IllegalOperations),
    /// A hook failed, panicked or broke a module.
    Hook(HookError),
    /// A list of hooks does not say one thing, or holds a hook that cannot do here what it is for.
    HookSet(HookSetError),
    /// A compilation did not come to an end: no libLLVM, or what LLVM cannot compile.
    CompileThread(CompileThreadError),
    /// LLVM rejects what it was given.
    Backend(BackendError),
    /// The CUDA driver cannot be used or reports an error.
    Driver(DriverError),
    /// A buffer that does not hold what its type says.
    InvalidValue(crate::value::InvalidValue),
    /// A device did not do what it was asked for.
    Device(DeviceError),
    /// A launch that cannot be.
    Launch(LaunchError),
    /// A thread of an earlier launch ended because it did something it must not.
    Fault(KernelFault),
    /// A launch was ended before its time.
    Stopped(LaunchStopped),
    /// The function of an intrinsic's row panicked.
    RowPanic(RowPanic),
    /// The interpreter met something that ends the launch.
    Interpret(InterpretError),
    /// A check found something; see [`crate::checks`].
    Finding(Box<Finding>),
    /// More values than a buffer has.
    BufferTooSmall {
        /// Values the buffer has.
        buffer: usize,
        /// Values given.
        values: usize,
    },
    /// The host has no memory left.
    HostMemory {
        /// What was asked for.
        bytes: usize,
    },
    /// A stage that the target does not have.
    NoStage {
        /// The kernel.
        kernel: String,
        /// The stage.
        stage: &'static str,
        /// The target.
        target: &'static str,
    },
    /// A stage that depends on the shape of blocks, and none was given.
    NoBlock {
        /// The kernel.
        kernel: String,
        /// The stage.
        stage: &'static str,
    },
    /// A program outside of Kiln that cannot be used.
    Tool {
        /// Which.
        tool: &'static str,
        /// Its path.
        path: PathBuf,
        /// What it said.
        message: String,
    },
    /// A module that no code is made of.
    NotLegal(NotLegal),
    /// A target that nothing makes code for.
    NoIsa {
        /// The kernel.
        kernel: String,
        /// The target.
        target: String,
    },
    /// A bug in Kiln.
    Internal(&'static str),
}

/// The variants that hold the error of a subject: its text is theirs, and so is its source.
macro_rules! subjects {
    ($($(#[$only:meta])* $name:ident($subject:ty),)*) => {
        $(
            $(#[$only])*
            impl From<$subject> for Error {
                fn from(error: $subject) -> Error {
                    Error::$name(error)
                }
            }
        )*

        impl Error {
            fn subject(&self) -> Option<&(dyn std::error::Error + 'static)> {
                match self {
                    $($(#[$only])* Error::$name(error) => Some(error),)*
                    Error::Interpret(error) => Some(error),
                    Error::Device(error) => Some(error),
                    _ => None,
                }
            }
        }
    };
}

subjects! {
    Build(BuildErrors),
    SignatureChanged(SignatureChanged),
    Recursion(RecursionError),
    Bind(BindError),
    Specialize(SpecializeError),
    Verify(VerifyErrors),
    NotLegal(NotLegal),
    Illegal(IllegalOperations),
    Hook(HookError),
    HookSet(HookSetError),
    CompileThread(CompileThreadError),
    Backend(BackendError),
    Driver(DriverError),
    InvalidValue(crate::value::InvalidValue),
    Launch(LaunchError),
    Fault(KernelFault),
    Stopped(LaunchStopped),
    RowPanic(RowPanic),
    Finding(Box<Finding>),
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.subject().and_then(std::error::Error::source)
    }
}

/// The text of an error, whole.
struct Whole<'a>(&'a Error);

impl fmt::Display for Whole<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Error::Build(subject) => subject.fmt(f),
            Error::SignatureChanged(subject) => subject.fmt(f),
            Error::Recursion(subject) => subject.fmt(f),
            Error::Bind(subject) => subject.fmt(f),
            Error::Specialize(subject) => subject.fmt(f),
            Error::Verify(subject) => subject.fmt(f),
            Error::NotLegal(subject) => subject.fmt(f),
            Error::Illegal(subject) => subject.fmt(f),
            Error::Hook(subject) => subject.fmt(f),
            Error::HookSet(subject) => subject.fmt(f),
            Error::CompileThread(subject) => subject.fmt(f),
            Error::Backend(subject) => subject.fmt(f),
            Error::Driver(subject) => subject.fmt(f),
            Error::InvalidValue(subject) => subject.fmt(f),
            Error::Launch(subject) => subject.fmt(f),
            Error::Fault(subject) => subject.fmt(f),
            Error::Stopped(subject) => subject.fmt(f),
            Error::RowPanic(subject) => subject.fmt(f),
            Error::Finding(subject) => subject.fmt(f),
            Error::Device(subject) => subject.fmt(f),
            Error::Interpret(subject) => subject.fmt(f),
            Error::BufferTooSmall { buffer, values } => write!(
                f,
                "{values} values do not fit a buffer of {buffer}; allocate a larger one"
            ),
            Error::HostMemory { bytes } => write!(
                f,
                "the host has no {bytes} bytes of memory left; use smaller buffers or drop some"
            ),
            Error::NoStage {
                kernel,
                stage,
                target,
            } => write!(
                f,
                "kernel `{kernel}` was compiled for {target}, which has no stage `{stage}`; set \
                 `JitOptions::target` to look at another target's code"
            ),
            Error::NoBlock { kernel, stage } => write!(
                f,
                "kernel `{kernel}`: its code for this machine's CPU depends on the shape of blocks, and so \
                 does its stage `{stage}`; use `Jit::inspect_block`"
            ),
            Error::Tool {
                tool,
                path,
                message,
            } => write!(
                f,
                "{tool} ({}) failed: {message}\n  set KILN_PTXAS and KILN_NVDISASM to the paths of \
                 NVIDIA's tools, or run `cargo xtask setup`",
                path.display()
            ),
            Error::NoIsa { kernel, target } => write!(
                f,
                "kernel `{kernel}`: nothing makes code for the target `{target}`; add what does to \
                 `JitOptions::isas`"
            ),
            Error::Internal(what) => write!(f, "internal error, please report it: {what}"),
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

impl From<InterpretError> for Error {
    fn from(error: InterpretError) -> Error {
        match error {
            InterpretError::Finding(finding) => Error::Finding(finding),
            InterpretError::RowPanic(panic) => Error::RowPanic(panic),
            InterpretError::HostMemory { bytes } => Error::HostMemory { bytes },
            error => Error::Interpret(error),
        }
    }
}

impl From<DeviceError> for Error {
    fn from(error: DeviceError) -> Error {
        match error {
            DeviceError::Driver(error) => Error::Driver(error),
            DeviceError::Fault(fault) => Error::Fault(fault),
            DeviceError::Stopped(stopped) => Error::Stopped(stopped),
            DeviceError::RowPanic(panic) => Error::RowPanic(panic),
            DeviceError::Interpret(error) => error.into(),
            DeviceError::HostMemory { bytes } => Error::HostMemory { bytes },
            DeviceError::Internal(what) => Error::Internal(what),
            error => Error::Device(error),
        }
    }
}

impl Error {
    pub(crate) fn tool(tool: &'static str, path: &Path, message: String) -> Error {
        Error::Tool {
            tool,
            path: path.to_owned(),
            message,
        }
    }
}

/// The result of anything that can fail in Kiln.
pub type Result<T, E = Error> = std::result::Result<T, E>;

#[cfg(test)]
mod tests {
    use std::error::Error as _;

    use super::*;
    use crate::build::{BuildError, BuildErrorKind};
    use crate::checks::{Access, AccessSite, MemoryPlace};
    use crate::codegen::{Illegal, LlvmLibraryError, Searched};
    use crate::hook::{HookErrorKind, HookPoint};
    use crate::ir::{AddressSpace, ParseError, READABLE, VerifyError};
    use crate::launch::Dim3;
    use crate::runtime::ObjectError;
    use crate::runtime::cuda::{ErrorCode, PoisonCause};
    use crate::simt::InlineError;
    use crate::specialize::{ArgumentPlace, CodePlace};

    /// Errors of every kind that is given text by a user's program, with `text` for each.
    fn all_of(text: &str) -> Vec<Error> {
        let own = || text.to_owned();
        let at = || {
            Box::new(ArgumentPlace {
                kernel: own(),
                position: 0,
                name: own(),
                declared_at: own(),
            })
        };
        let hook = |kind| HookError {
            hook: "a".into(),
            kernel: own(),
            point: HookPoint::RewriteIr,
            kind,
        };
        vec![
            BindError::Count {
                kernel: own(),
                params: vec![own(); 100],
                given: 1,
                declared_at: own(),
            }
            .into(),
            BindError::Mismatch {
                at: at(),
                expected: own(),
                given: own(),
            }
            .into(),
            BindError::TypeConflict {
                param: own(),
                first: at(),
                first_type: own(),
                second: at(),
                second_type: own(),
            }
            .into(),
            hook(HookErrorKind::Failed(text.into())).into(),
            hook(HookErrorKind::Panicked(own())).into(),
            hook(HookErrorKind::ChangedParams(own())).into(),
            LaunchError::Zero {
                kernel: own(),
                what: "grid",
                given: Dim3::from(0),
            }
            .into(),
            LaunchError::OtherSignature {
                kernel: own(),
                prepared: own(),
                given: own(),
            }
            .into(),
            LaunchStopped::Cancelled { kernel: own() }.into(),
            BackendError::new("verify", text).into(),
            Error::tool("ptxas", Path::new(text), own()),
            NotLegal::NoKernel { module: own() }.into(),
            Error::NoIsa {
                kernel: own(),
                target: own(),
            },
            DeviceError::NoChecks {
                kernel: own(),
                device: own(),
            }
            .into(),
            DeviceError::WrongTarget {
                kernel: own(),
                device: own(),
            }
            .into(),
            DeviceError::Workers(own()).into(),
        ]
    }

    /// Errors of every other type that a call returns by itself, or that an [`Error`] holds.
    fn subjects(text: &str) -> Vec<Box<dyn std::error::Error>> {
        let own = || text.to_owned();
        let at = || CodePlace {
            function: own(),
            location: own(),
        };
        let site = || AccessSite {
            access: Access::Write,
            location: own(),
            block: Dim3::from(0),
            thread: Dim3::from(0),
        };
        let code = || ErrorCode {
            code: 700,
            name: own(),
            description: own(),
        };
        let poisoned = PoisonCause {
            call: "cuLaunchKernel",
            code: code(),
            kernel: Some(text.into()),
            several_kernels: false,
        };
        let illegal = IllegalOperations {
            module: own(),
            target: own(),
            list: vec![
                Illegal {
                    function: own(),
                    location: own(),
                    message: own(),
                };
                3
            ],
        };
        let mistake = BuildError {
            kind: BuildErrorKind::Unsupported(own()),
            at: own(),
        };
        let broken = VerifyError {
            function: own(),
            inst: None,
            location: own(),
            message: own(),
        };
        let searched = Searched {
            place: own(),
            reason: own(),
        };
        vec![
            Box::new(ParseError {
                line: 1,
                column: 1,
                message: own(),
            }),
            Box::new(InlineError {
                kernel: own(),
                what: own(),
            }),
            Box::new(LlvmLibraryError::NotFound {
                searched: vec![searched; 3],
            }),
            Box::new(mistake.kind.clone()),
            Box::new(BuildErrors {
                function: own(),
                errors: vec![mistake; 3],
            }),
            Box::new(VerifyErrors {
                module: own(),
                errors: vec![broken; 3],
                listing: own(),
            }),
            Box::new(SpecializeError::KernelCalled {
                at: Box::new(at()),
                callee: own(),
            }),
            Box::new(RecursionError {
                cycle: vec![(own(), own()); 3],
            }),
            Box::new(SignatureChanged {
                name: own(),
                current: own(),
                current_location: own(),
                new: own(),
                new_location: own(),
            }),
            Box::new(Finding::Race {
                kernel: own(),
                place: MemoryPlace {
                    space: AddressSpace::Shared,
                    name: Some(own()),
                    index: 0,
                    length: 1,
                    element_bytes: 4,
                    offset: 0,
                },
                first: site(),
                second: site(),
            }),
            Box::new(DriverError::JitRejected {
                kernel: own(),
                code: code(),
                log: own(),
            }),
            Box::new(DriverError::Poisoned {
                first: poisoned.into(),
            }),
            Box::new(CompileThreadError::Panic {
                kernel: own(),
                message: own(),
            }),
            Box::new(InterpretError::WarpOperation {
                kernel: own(),
                location: own(),
                operation: "a",
                block: [0; 3],
                thread: [0; 3],
                what: own(),
            }),
            Box::new(RowPanic {
                kernel: own(),
                row: "a",
                message: own(),
            }),
            Box::new(ObjectError {
                kernel: own(),
                what: own(),
            }),
            Box::new(illegal),
        ]
    }

    /// That the texts of an error and of its sources can be read.
    fn assert_readable(error: &(dyn std::error::Error + 'static)) {
        let chain = std::iter::successors(Some(error), |&error| error.source());
        for error in chain {
            for shown in [format!("{error}"), format!("{error:?}")] {
                assert!(
                    shown.len() <= READABLE,
                    "{} bytes: {}",
                    shown.len(),
                    shown.chars().take(100).collect::<String>()
                );
            }
        }
    }

    #[test]
    fn what_a_user_names_makes_no_text_too_long() {
        for text in ["n".repeat(1 << 20), "\u{e4}\n".repeat(1 << 15)] {
            for error in all_of(&text) {
                assert_readable(&error);
                if let Some(subject) = error.subject() {
                    assert_readable(subject);
                }
            }
            for error in subjects(&text) {
                assert_readable(&*error);
            }
        }
    }

    #[test]
    fn texts_of_common_length_are_whole() {
        for error in all_of("n") {
            assert_eq!(error.to_string(), Whole(&error).to_string());
        }
    }

    #[test]
    fn the_source_of_an_error_is_that_of_its_subject() {
        let subject = LaunchStopped::Cancelled { kernel: "k".into() };
        assert!(Error::from(subject).source().is_none());
        let hook = HookError {
            hook: "a".into(),
            kernel: "k".into(),
            point: HookPoint::RewriteIr,
            kind: HookErrorKind::Panicked("b".into()),
        };
        let source = Error::from(hook).source().map(ToString::to_string);
        assert!(source.is_some_and(|text| text.starts_with("panicked: b")));
    }
}
