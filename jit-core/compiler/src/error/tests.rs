//! Texts that can be read, whatever they name.

use std::error::Error as _;
use std::path::Path;

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
        LaunchError::OtherFacts {
            kernel: own(),
            argument: 1,
            fact: "equal to 1",
        }
        .into(),
        LaunchStopped::Cancelled { kernel: own() }.into(),
        BackendError::new("verify", text).into(),
        InspectError::tool("ptxas", Path::new(text), own()).into(),
        ModuleError::Text {
            file: own(),
            error: ParseError {
                line: 1,
                column: 1,
                message: own(),
            },
        }
        .into(),
        ModuleError::Declaration {
            module: own(),
            function: own(),
            location: own(),
        }
        .into(),
        NotLegal::NoKernel { module: own() }.into(),
        CompileError::NoIsa {
            kernel: own(),
            target: own(),
        }
        .into(),
        DeviceError::NoChecks {
            kernel: own(),
            device: own(),
        }
        .into(),
        DeviceError::WrongTarget {
            kernel: own(),
            target: own(),
            device: own(),
        }
        .into(),
        DeviceError::Workers(own()).into(),
        LibraryError::new(std::io::Error::other(own())).into(),
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

#[test]
fn the_error_of_a_library_is_found_by_its_type() {
    let launch = || LaunchStopped::Cancelled { kernel: "k".into() };
    let error: Error = LibraryError::new(launch()).into();
    assert_eq!(error.library(), Some(&launch()));
    assert!(error.library::<ModuleError>().is_none());
    assert!(Error::from(launch()).library::<LaunchStopped>().is_none());
    assert_eq!(error.to_string(), launch().to_string());
    assert!(error.source().is_none());
}

#[test]
fn what_public_functions_give_becomes_an_error() {
    fn is_taken<E: Into<Error>>() {}
    is_taken::<ParseError>();
    is_taken::<LinkError>();
    is_taken::<LlvmLibraryError>();
    is_taken::<DeviceError>();
    is_taken::<DriverError>();
    is_taken::<InterpretError>();
    is_taken::<VerifyErrors>();
    is_taken::<NotLegal>();
    is_taken::<HookSetError>();
    is_taken::<LaunchError>();
    is_taken::<InvalidValue>();
}
