//! Hooks: how users reshape the compiler without changing it.
//!
//! A [`Hook`] is a trait object whose methods do nothing by default; each method is one extension
//! point, and its documentation says what has run, what it may assume and what must hold after.
//! The [`HookSet`] of a [`crate::jit::Jit`] is an ordered, visible list; there is no global
//! registry. The compiler runs the hooks of one point in list order. Hooks add to what the
//! compiler does; they never replace a step of it, so no hook has to call "the default".
//!
//! Everything about a hook that can change code is part of the cache key: its name, its version and
//! what it writes in [`Hook::fingerprint`]. A hook that fails or panics fails the compilation with
//! an error that names it and the stage; nothing is cached and the other kernels are unaffected.
//!
//! A hook is trusted as the compiler is. Its methods are safe to write, but the code that it makes is not
//! looked through: a hook can bake an address into a kernel as a number, and what it writes with inkwell
//! or as PTX is compiled as it stands. Register only hooks that you would also link into your program.
//! What can be seen at little cost is an error that names the hook: after each method on the IR the module
//! must verify, be in the phase that it was in, take the arguments that were bound, and have lost no
//! bounds check unless the hook says that it removes them.
//!
//! Where code depends on the shape of blocks, as for a CPU, the methods on LLVM's module run once for each
//! shape, those before once.
//!
//! | method | stage | what it sees |
//! |---|---|---|
//! | [`Hook::convert_argument`] | launch | a host value that is no argument by itself |
//! | [`Hook::prepare_job`] | before everything | the specialized module, target and options |
//! | [`Hook::rewrite_ir`] | IR | the specialized module |
//! | [`Hook::lower_abi`] | IR | the legal module: parameters as they are passed |
//! | [`Hook::lower_inst`], [`Hook::lower_intrinsic`] | lowering | one operation, with inkwell |
//! | [`Hook::finish_module`] | LLVM | the module before optimization |
//! | [`Hook::pass_pipeline`] | LLVM | the text of the pass pipeline |
//! | [`Hook::finish_optimized_module`] | LLVM | the module after optimization |
//! | [`Hook::rewrite_ptx`] | PTX | the text before it is loaded; no other target has it |
//! | [`Hook::before_launch`], [`Hook::after_launch`] | run | kernel, grid, block |

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use inkwell::values::BasicValueEnum;

use crate::args::Arg;
use crate::codegen::{OperationLowering, in_hook};
use crate::error::Error;
use crate::ir::{InstNode, IntrinsicDef, Module, VerifyErrors, debug_as_text, error_text};
use crate::job::{CompileJob, CompileOptions};
use crate::launch::LaunchConfig;
use crate::target::Target;

/// The message a hook fails with; becomes a [`HookError`] that names the hook and the stage.
pub type HookFailure = Box<dyn std::error::Error + Send + Sync>;

/// What a hook's method returns.
pub type HookResult<T> = Result<T, HookFailure>;

/// Whether a hook changed what it was given.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Changed {
    /// It is as it was.
    No,
    /// It changed.
    Yes,
}

impl From<bool> for Changed {
    fn from(changed: bool) -> Self {
        if changed { Changed::Yes } else { Changed::No }
    }
}

/// What a hook may know besides what it is given to change.
#[derive(Debug)]
pub struct HookContext<'a> {
    /// The kernel's name.
    pub kernel: &'a str,
    /// What machine the code is for.
    pub target: &'a Target,
    /// The options.
    pub options: &'a CompileOptions,
}

/// A launch, as run-time hooks see it.
#[derive(Debug)]
pub struct LaunchEvent<'a> {
    /// The kernel's name.
    pub kernel: &'a str,
    /// Grid, block, dynamic shared memory.
    pub config: &'a LaunchConfig,
}

/// A compiler extension. See the [module](self) documentation.
#[allow(
    unused_variables,
    reason = "defaults name their parameters for the documentation"
)]
pub trait Hook: Send + Sync {
    /// A name, unique in a [`HookSet`]; part of the cache key.
    fn name(&self) -> &'static str;

    /// Raise it whenever the hook's code changes what it does; part of the cache key.
    fn version(&self) -> u32 {
        1
    }

    /// Writes the hook's settings, all that can change generated code.
    fn fingerprint(&self, key: &mut KeyWriter) {}

    /// Turns a host value passed with [`crate::args::host`] into an argument, or returns `None` if
    /// it is not this hook's. Runs at every launch.
    ///
    /// # Errors
    /// The launch fails with the message.
    fn convert_argument<'a>(
        &self,
        value: &'a (dyn Any + Send + Sync),
    ) -> HookResult<Option<Arg<'a>>> {
        Ok(None)
    }

    /// Changes target or options, or the module as [`Hook::rewrite_ir`] does. Has run: specialization.
    ///
    /// # Errors
    /// The compilation fails with the message, as in all following methods.
    fn prepare_job(&self, job: &mut CompileJob) -> HookResult<()> {
        Ok(())
    }

    /// Whether this hook clears the flag `checked` of accesses, which it has then shown to be in bounds
    /// ([`InstData::SliceIndex`](crate::ir::InstData::SliceIndex),
    /// [`InstData::ElementPtr`](crate::ir::InstData::ElementPtr)). If it does not say so, an access that
    /// has lost its check is an error.
    fn removes_checks(&self) -> bool {
        false
    }

    /// Rewrites the module. Has run: specialization, earlier hooks. May assume: it verifies. Must
    /// hold after, which the compiler checks whatever is returned: it verifies, in the same phase; the
    /// kernel's parameters have the types that the arguments were bound to, where addresses may be said
    /// to lie in another memory and need not be written through, and no more is said to be known of
    /// them. To compute with another type, convert in the body.
    fn rewrite_ir(&self, cx: &HookContext<'_>, module: &mut Module) -> HookResult<Changed> {
        Ok(Changed::No)
    }

    /// Changes how kernel parameters are passed. Has run: all of [`Hook::rewrite_ir`], and the
    /// compiler's own ABI lowering, which passes aggregates by reference. Must hold after: what holds
    /// after [`Hook::rewrite_ir`], in [`crate::ir::Phase::Legal`]; an aggregate is one whether it is
    /// passed by reference or by value.
    fn lower_abi(&self, cx: &HookContext<'_>, module: &mut Module) -> HookResult<Changed> {
        Ok(Changed::No)
    }

    /// Whether [`Hook::lower_inst`] or [`Hook::lower_intrinsic`] do anything; asked once a
    /// compilation, so that hooks of other kinds cost nothing there.
    fn lowers_operations(&self) -> bool {
        false
    }

    /// Lowers one instruction instead of the compiler: returns the LLVM value of its result, or
    /// `None` to leave it. Asked for every instruction that defines a value other than a slice, if
    /// [`Hook::lowers_operations`] says so. `args` are the operands' LLVM values, in order; a slice
    /// is two, address and length.
    ///
    /// The code is one thread's, on a CPU too, where it is run for each lane that executes the
    /// instruction. There calls of device functions are gone by then, and what the threads of a warp do
    /// together cannot be lowered by a hook. Lanes that have the same operands have to get the same value,
    /// as with the instruction's own meaning.
    fn lower_inst<'ctx>(
        &self,
        cx: &OperationLowering<'_, 'ctx>,
        inst: &InstNode,
        args: &[BasicValueEnum<'ctx>],
    ) -> HookResult<Option<BasicValueEnum<'ctx>>> {
        Ok(None)
    }

    /// Lowers one call of an intrinsic instead of the compiler, as [`Hook::lower_inst`].
    fn lower_intrinsic<'ctx>(
        &self,
        cx: &OperationLowering<'_, 'ctx>,
        intrinsic: &IntrinsicDef,
        args: &[BasicValueEnum<'ctx>],
    ) -> HookResult<Option<BasicValueEnum<'ctx>>> {
        Ok(None)
    }

    /// Whether the hook answers for inline assembly that it leaves in code for GPUs, by building it or by
    /// linking what holds it: `ptxas` and the driver take it, and the constraints say what it does. What
    /// rows have in their cells is known without this.
    fn vouches_for_assembly(&self, template: &str, constraints: &str) -> bool {
        false
    }

    /// Changes the LLVM module before it is optimized; link bitcode here. Must hold after, which the
    /// compiler checks: LLVM's verifier accepts it; the kernel is still there; what it calls is in it, or
    /// an intrinsic that the target's back end has an instruction for; inline assembly is that of rows'
    /// cells, or a hook vouches for it.
    fn finish_module(
        &self,
        cx: &HookContext<'_>,
        module: &inkwell::module::Module<'_>,
    ) -> HookResult<()> {
        Ok(())
    }

    /// Changes the pass pipeline, in the notation of LLVM's `opt -passes`.
    fn pass_pipeline(&self, cx: &HookContext<'_>, pipeline: &mut String) -> HookResult<()> {
        Ok(())
    }

    /// Inspects or changes the LLVM module after it was optimized. Must hold after: what holds after
    /// [`Hook::finish_module`].
    fn finish_optimized_module(
        &self,
        cx: &HookContext<'_>,
        module: &inkwell::module::Module<'_>,
    ) -> HookResult<()> {
        Ok(())
    }

    /// Reads or rewrites the PTX text.
    fn rewrite_ptx(&self, cx: &HookContext<'_>, ptx: &mut String) -> HookResult<()> {
        Ok(())
    }

    /// Is told of a launch about to happen; an error vetoes it.
    fn before_launch(&self, launch: &LaunchEvent<'_>) -> HookResult<()> {
        Ok(())
    }

    /// Is told of a launch that was handed to the device, or failed to be.
    fn after_launch(&self, launch: &LaunchEvent<'_>, result: &Result<(), Error>) {}

    /// Whether [`Hook::before_launch`] or [`Hook::after_launch`] do anything; asked once, so that
    /// launches without such hooks cost nothing.
    fn observes_launches(&self) -> bool {
        false
    }
}

/// Collects a hook's settings for the cache key.
#[derive(Debug, Default)]
pub struct KeyWriter {
    text: String,
}

impl KeyWriter {
    /// Adds a setting by name.
    pub fn field(&mut self, name: &str, value: impl std::fmt::Debug) {
        use std::fmt::Write;
        // Writing to a String cannot fail.
        let _ = write!(self.text, " {name}={value:?}");
    }
}

/// Where a hook was called.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum HookPoint {
    /// [`Hook::convert_argument`]
    ConvertArgument,
    /// [`Hook::prepare_job`]
    PrepareJob,
    /// [`Hook::rewrite_ir`]
    RewriteIr,
    /// [`Hook::lower_abi`]
    LowerAbi,
    /// [`Hook::lower_inst`] or [`Hook::lower_intrinsic`]
    Lowering,
    /// [`Hook::finish_module`]
    FinishModule,
    /// [`Hook::pass_pipeline`]
    PassPipeline,
    /// [`Hook::finish_optimized_module`]
    FinishOptimizedModule,
    /// [`Hook::rewrite_ptx`]
    RewritePtx,
    /// [`Hook::before_launch`]
    BeforeLaunch,
    /// [`Hook::after_launch`]
    AfterLaunch,
}

/// A hook that did not do its work.
#[derive(thiserror::Error)]
#[error("{}", error_text!("hook `{hook}` {kind}\n  kernel: {kernel}, extension point: {point:?}"))]
pub struct HookError {
    /// The hook's name.
    pub hook: &'static str,
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
    /// It returned an error.
    #[error("{}", error_text!("failed: {}", .0))]
    Failed(HookFailure),
    /// It panicked.
    #[error("{}", error_text!("panicked: {}\n  this is a bug in the hook; the kernel was not compiled or launched", .0))]
    Panicked(String),
    /// It left a module that does not verify.
    #[error("{}", error_text!("left a module that does not verify; this is a bug in the hook\n{}", .0))]
    BrokeIr(VerifyErrors),
    /// It left a kernel that takes other arguments than were bound.
    #[error("{}", error_text!(
        "changed what the kernel's parameters are: {}\n  a launch passes its arguments as they were \
         bound, whatever a hook makes of the parameters; keep their number and types, and convert in \
         the kernel's body", .0
    ))]
    ChangedParams(String),
    /// It left a module of another phase.
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
    /// It cleared the flag `checked` of an access.
    #[error("{}", error_text!(
        "removed the bounds check of the access at {}; a hook that has shown accesses to be in bounds \
         says so by `Hook::removes_checks`", .0
    ))]
    RemovedCheck(String),
    /// It left an LLVM module that LLVM's verifier rejects.
    #[error("{}", error_text!("left an LLVM module that LLVM rejects; this is a bug in the hook\n{}", .0))]
    BrokeLlvm(String),
    /// It left an LLVM module that cannot become code.
    #[error("{}", error_text!("left an LLVM module that cannot become code: {}", .0))]
    NotAdmitted(String),
}

debug_as_text!(HookErrorKind);

/// The hooks of a [`crate::jit::Jit`], in the order they run.
#[derive(Clone, Default)]
pub struct HookSet {
    hooks: Vec<Arc<dyn Hook>>,
}

impl std::fmt::Debug for HookSet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list()
            .entries(self.hooks.iter().map(|h| h.name()))
            .finish()
    }
}

impl HookSet {
    /// No hooks.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a hook at the end; one with the same name is replaced where it stands.
    #[must_use]
    pub fn with(mut self, hook: impl Hook + 'static) -> Self {
        self.push(Arc::new(hook));
        self
    }

    /// Adds a hook at the end; one with the same name is replaced where it stands.
    pub fn push(&mut self, hook: Arc<dyn Hook>) {
        match self.hooks.iter_mut().find(|h| h.name() == hook.name()) {
            Some(same) => *same = hook,
            None => self.hooks.push(hook),
        }
    }

    /// The set without the hook of this name.
    #[must_use]
    pub fn without(mut self, name: &str) -> Self {
        self.hooks.retain(|h| h.name() != name);
        self
    }

    /// The hooks, in order.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<dyn Hook>> {
        self.hooks.iter()
    }

    /// One line a hook: all of it that is part of the cache key.
    pub fn fingerprint(&self) -> String {
        let mut lines = String::new();
        for hook in &self.hooks {
            let mut key = KeyWriter::default();
            hook.fingerprint(&mut key);
            lines += &format!("{} v{}{}\n", hook.name(), hook.version(), key.text);
        }
        lines
    }

    /// Calls `f` on each hook in order. A failure or a panic ends it with an error.
    pub(crate) fn run(
        &self,
        point: HookPoint,
        kernel: &str,
        mut f: impl FnMut(&dyn Hook) -> Result<(), HookErrorKind>,
    ) -> Result<(), HookError> {
        for hook in &self.hooks {
            guard(|| in_hook(|| f(hook.as_ref()))).map_err(|kind| HookError {
                hook: hook.name(),
                kernel: kernel.to_owned(),
                point,
                kind,
            })?;
        }
        Ok(())
    }
}

/// Runs `f`, turning a panic into an error.
fn guard<T>(f: impl FnOnce() -> Result<T, HookErrorKind>) -> Result<T, HookErrorKind> {
    catch_unwind(AssertUnwindSafe(f)).unwrap_or_else(|payload| {
        let message = payload
            .downcast_ref::<&str>()
            .map(|s| (*s).to_owned())
            .or_else(|| payload.downcast_ref::<String>().cloned())
            .unwrap_or_else(|| "a payload that is not text".to_owned());
        Err(HookErrorKind::Panicked(message))
    })
}
