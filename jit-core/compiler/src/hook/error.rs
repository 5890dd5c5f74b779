//! What hooks can do wrong, and sets of them.

use super::{HiddenError, HookFailure, HookPoint};
use crate::ir::{VerifyErrors, debug_as_text, error_text};
use crate::target::Target;

/// A hook that did not do its work.
#[derive(thiserror::Error)]
#[error("{}", error_text!("hook `{hook}` {kind}\n  kernel: {kernel}, extension point: {point}"))]
pub struct HookError {
    /// The hook's name.
    pub hook: String,
    /// The kernel being compiled or launched.
    pub kernel: String,
    /// Which of its methods.
    pub point: HookPoint,
    /// What happened.
    #[source]
    pub kind: HookErrorKind,
}

debug_as_text!(HookError);

/// What a hook did wrong.
#[derive(thiserror::Error)]
pub enum HookErrorKind {
    /// A hook returned an error.
    #[error("{}", error_text!("failed: {}", .0))]
    Failed(HookFailure),
    /// A hook panicked.
    #[error("{}", error_text!("panicked: {}\n  this is a bug in the hook", .0))]
    Panicked(String),
    /// A hook left a module that does not verify.
    #[error("{}", error_text!("left a module that does not verify; this is a bug in the hook\n{}", .0))]
    BrokeIr(VerifyErrors),
    /// A hook left a kernel that takes other arguments than were bound.
    #[error("{}", error_text!(
        "changed what the kernel's parameters are: {}\n  a launch passes its arguments as they were \
         bound, whatever a hook makes of the parameters; keep their number and types, and convert in \
         the kernel's body", .0
    ))]
    ChangedParams(String),
    /// A hook left a module of another phase.
    #[error("{}", error_text!(
        "changed the module's phase from `{from}` to `{to}`; only the compiler does, so leave \
         `Module::phase` as it is"
    ))]
    ChangedPhase {
        /// The phase before.
        from: &'static str,
        /// The phase now.
        to: &'static str,
    },
    /// A hook declared hidden arguments in a way that no launch could pass them.
    #[error("{}", error_text!("cannot have that hidden argument: {}", .0))]
    WrongHidden(String),
    /// A hook did not give its hidden arguments.
    #[error("{}", error_text!("did not give a hidden argument: {}", .0))]
    NotGiven(HiddenError),
    /// A hook cleared the flag `checked` of an access.
    #[error("{}", error_text!(
        "removed the bounds check of the access at {}; a hook that has shown accesses to be in bounds \
         says so by `Hook::may_remove_checks`", .0
    ))]
    RemovedCheck(String),
    /// A hook changed the target to one that there is no code for, or that the device does not run.
    #[error("{}", error_text!(
        "changed the target to {target}: {error}\n  leave `CompileJob::target` as it is where kernels are launched; \
         `JitOptions::target` says what other machine's code is looked at"
    ))]
    Retargeted {
        /// The target that the hook left.
        target: String,
        /// What is wrong with it.
        error: String,
    },
    /// A hook left an LLVM module that LLVM's verifier rejects.
    #[error("{}", error_text!("left an LLVM module that LLVM rejects; this is a bug in the hook\n{}", .0))]
    BrokeLlvm(String),
    /// A hook left an LLVM module that cannot become code.
    #[error("{}", error_text!("left an LLVM module that cannot become code: {}", .0))]
    NotAdmitted(String),
    /// LLVM cannot run the passes that it asked for.
    #[error("{}", error_text!("changed the passes to some that LLVM does not run: {}", .0))]
    Passes(String),
    /// A hook left PTX without the kernel.
    #[error("{}", error_text!(
        "left PTX that has no kernel `{}` any more, where launches begin; leave its `.entry` as it is", .0
    ))]
    LostEntry(String),
    /// A hook gave machine code of no form that a driver loads.
    #[error(
        "gave bytes that are no `cubin`: those begin as an ELF file does; give what `ptxas` writes, or `None` to leave \
         the PTX to the driver"
    )]
    NoCubin,
}

debug_as_text!(HookErrorKind);

impl HookErrorKind {
    /// A hook has changed the target to one that cannot be: what is wrong with it.
    #[doc(hidden)]
    pub fn retargeted(target: &Target, error: impl std::fmt::Display) -> HookErrorKind {
        HookErrorKind::Retargeted {
            target: target.to_string(),
            error: error.to_string(),
        }
    }
}

/// A list of hooks that does not say one thing, or holds a hook that could not do what it is for.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HookSetError {
    /// Two hooks have one name.
    #[error("{}", error_text!(
        "two hooks are named `{}`; give one of them another name, or put one in the other's place by \
         `HookSet::replace`", .0
    ))]
    Duplicate(String),
    /// A hook was named that is not there.
    #[error("{}", error_text!("there is no hook `{name}`; the hooks are {hooks}"))]
    Unknown {
        /// The name.
        name: String,
        /// The names of the hooks that there are.
        hooks: String,
    },
    /// A hook that holds something says nothing for the cache key.
    #[error("{}", error_text!(
        "hook `{hook}` holds values at `{point}`, which can change code, and says nothing of them for the \
         cache key, so that code made with other values would be taken for the same; say what they are by \
         `Hook::key`"
    ))]
    NoKey {
        /// The hook.
        hook: String,
        /// The first point with a function that holds something.
        point: HookPoint,
    },
    /// A function that is to stand in the place of another one is called in another way.
    #[error("{}", error_text!(
        "hook `{hook}` has a function in the place of one that is called in another way\n  \
         replaced:     {of}\n  in its place: {by}\ngive both the same parameters and result"
    ))]
    OtherSignature {
        /// The hook.
        hook: String,
        /// The signature of the function that is replaced, and where it is defined.
        of: String,
        /// The signature of the function in its place, and where that is defined.
        by: String,
    },
    /// Two functions are to stand in the place of one.
    #[error("{}", error_text!(
        "the hooks `{first}` and `{second}` both have a function in the place of `{function}`; take one of them out, \
         or have the second replace the function of the first"
    ))]
    OverlaidTwice {
        /// The function.
        function: String,
        /// The hook that replaces it.
        first: String,
        /// The hook that replaces it again; it may be the same.
        second: String,
    },
    /// What says for which targets a function is replaced panicked.
    #[error("{}", error_text!(
        "hook `{hook}` panicked when it was asked whether to replace `{function}`: {message}\n  this is a bug in the hook"
    ))]
    Panicked {
        /// The hook.
        hook: String,
        /// The function.
        function: String,
        /// What the panic said.
        message: String,
    },
    /// A point that compiling for the target does not come to.
    #[error("{}", error_text!(
        "hook `{hook}` has `{point}`, and {why}; take the hook out, or say by `Hook::if_supported` that it is to \
         do there what it can"
    ))]
    Unsupported {
        /// The hook.
        hook: String,
        /// The point.
        point: HookPoint,
        /// What the target is or does instead.
        why: String,
    },
}

debug_as_text!(HookSetError);
