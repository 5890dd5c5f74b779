//! Hooks: how users reshape the compiler without changing it.
//!
//! A [`Hook`] is a name and functions, each at one extension point; what it has no function for it has no
//! part in. Each method's documentation says what has run, what the function may assume and what must hold after.
//!
//! ```
//! use kiln::core::hook::{Hook, HookSet};
//!
//! let quiet = Hook::new("no-contraction").prepare_job(|job| {
//!     job.options.contract = false;
//!     Ok(())
//! });
//! let hooks = HookSet::new().with(quiet);
//! # drop(hooks);
//! ```
//!
//! The [`HookSet`] of a `Jit` is an ordered, visible list; there is no global registry. The
//! compiler runs the hooks of one point in list order, on the thread that launches or on one of the compiler's own,
//! of several kernels at once. Hooks add to what the compiler does; they never replace a step of it, so no hook has
//! to call "the default".
//!
//! Everything about a hook that can change code is part of the cache key: its name, its [version](Hook::version)
//! and its [settings](Hook::key), said once, when it is made, and what the rows of intrinsics say that it puts into
//! the kernel, their versions too. A function that holds values where code can be
//! changed needs settings. A hook that fails or panics fails the compilation with an error that names it and the
//! point; nothing is cached and the other kernels are unaffected.
//!
//! A hook is trusted as the compiler is. Its functions are safe to write, but the code that it makes is not
//! looked through: a hook can bake an address into a kernel as a number, and what it writes with inkwell
//! or as PTX is compiled as it stands. Register only hooks that you would also link into your program.
//! What can be seen at little cost is an error that names the hook: after each function on the IR the module
//! must verify, be in the phase that it was in, take the arguments that were bound, and have lost no
//! bounds check unless the hook says that it removes them.
//!
//! Where code depends on the shape of blocks, as for a CPU, the functions on LLVM's module run once for each
//! shape, those before once.
//!
//! A hook with a function at a point that compiling for the target of a `Jit` does not come to is an error, at the
//! first launch; [`Hook::if_supported`] says that it is to do what it can.
//!
//! | method | stage | targets | what it sees |
//! |---|---|---|---|
//! | [`Hook::convert_argument`] | launch | all | a host value that is no argument by itself |
//! | [`Hook::overlay`] | specialization | all | nothing; names device functions that are called in the place of others |
//! | [`Hook::prepare_job`] | before everything | all | the specialized module, target and options |
//! | [`Hook::rewrite_ir`] | IR | all | the specialized module |
//! | [`Hook::fault_function`] | IR | all | the module; gives a function that threads call before they fault |
//! | [`Hook::lower_abi`] | IR | all | the legal module: parameters as they are passed |
//! | [`Hook::lower_inst`], [`Hook::lower_intrinsic`] | lowering | GPUs, CPUs | one operation, with inkwell |
//! | [`Hook::finish_module`] | LLVM | GPUs, CPUs | the module before optimization |
//! | [`Hook::pass_pipeline`] | LLVM | GPUs, CPUs | the text of the pass pipeline |
//! | [`Hook::finish_optimized_module`] | LLVM | GPUs, CPUs | the module after optimization |
//! | [`Hook::rewrite_ptx`] | PTX | NVIDIA's GPUs | the text before it is loaded |
//! | [`Hook::assemble`] | PTX | NVIDIA's GPUs | the text, to be made machine code in the driver's place |
//! | [`Hook::after_load`] | load | all | what the device says of the code |
//! | [`Hook::before_launch`], [`Hook::after_launch`] | run | all | kernel, grid, block, arguments, device; time, if it is asked for |
//! | [`Hook::hidden_arguments`] | run | all | the same; gives what the hook has kernels take besides their arguments |
//!
//! Interpreted kernels, as all are whose launches are checked, come to no point that has LLVM.

mod error;
mod hidden;
mod key;
mod launch;
mod overlay;
mod point;
mod problem;
mod set;

use std::fmt::Debug;
use std::sync::atomic::{AtomicU64, Ordering};

pub use error::{HookError, HookErrorKind, HookSetError};
#[doc(hidden)]
pub use hidden::Given;
pub use hidden::{HiddenArgument, HiddenArguments, HiddenError, IntoHidden};
#[doc(hidden)]
pub use launch::Observed;
pub use launch::{LaunchEvent, LaunchStream, LaunchTime};
#[doc(hidden)]
pub use point::{At, at};
pub use point::{HookPoint, Needs};
pub use problem::{Problem, Problems};
pub use set::HookSet;

pub use crate::codegen::{
    HookContext, KernelIdentity, LoweredOperation, OperationError, OperationLowering,
};

use key::Settings;
use overlay::Overlay;
use point::Points;

use crate::ir::IntrinsicDef;

/// The message a hook fails with; becomes a [`HookError`] that names the hook and the point.
pub type HookFailure = Box<dyn std::error::Error + Send + Sync>;

/// What a hook's function returns.
pub type HookResult<T> = Result<T, HookFailure>;

/// A compiler extension. See the [module](self) documentation.
///
/// ```
/// use kiln::prelude::*;
///
/// use kiln::core::hook::{Hook, HookPoint};
///
/// # fn main() -> kiln::Result<()> {
/// let level = 2;
/// let tuned = Hook::new("tuned")
///     .version(3)
///     .key("level", level)
///     .pass_pipeline(move |_, passes| {
///         passes.push_str(if level > 1 { ",instcombine" } else { "" });
///         Ok(())
///     })
///     .vouches_for_assembly(|template, _| template == "nanosleep.u32 $0;")
///     .may_remove_checks()
///     .if_supported();
/// assert_eq!(tuned.name(), "tuned");
/// assert!(tuned.points().eq([HookPoint::PassPipeline]));
/// let jit = Jit::builder().hook(tuned).build()?;
/// assert_eq!(jit.zeros::<u8>(1)?.to_vec()?, [0]);
/// # Ok(())
/// # }
/// ```
pub struct Hook {
    /// A number that no other hook of the process has.
    number: u64,
    name: String,
    version: u32,
    settings: Settings,
    points: Points,
    overlays: Vec<Overlay>,
    /// The first point that can change code with a function that holds something.
    holds_at: Option<HookPoint>,
    if_supported: bool,
    may_remove_checks: bool,
    may_be_kept: bool,
    rows: Vec<&'static IntrinsicDef>,
    vouches: Option<Box<Vouches>>,
}

/// Whether a hook answers for inline assembly, by template and constraints.
type Vouches = dyn Fn(&str, &str) -> bool + Send + Sync;

impl Debug for Hook {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let points: Vec<HookPoint> = self.points().collect();
        write!(f, "{} at {points:?}", self.key_line().trim_end())
    }
}

impl Hook {
    /// A hook that does nothing yet, by a name that is its own in a [`HookSet`] and part of the cache key.
    pub fn new(name: impl Into<String>) -> Hook {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Hook {
            number: NEXT.fetch_add(1, Ordering::Relaxed),
            name: name.into(),
            version: 1,
            settings: Settings::default(),
            points: Points::default(),
            overlays: Vec::new(),
            holds_at: None,
            if_supported: false,
            may_remove_checks: false,
            may_be_kept: false,
            rows: Vec::new(),
            vouches: None,
        }
    }

    /// The hook's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Says which version of the hook's code it is; raise it whenever the code changes what it does. Part of the
    /// cache key; 1 unless said.
    #[must_use]
    pub fn version(mut self, version: u32) -> Hook {
        self.version = version;
        self
    }

    /// Says a setting that can change code, by its `Debug` text; part of the cache key. A function that holds
    /// values (a closure that captures some, a function pointer) at a point that can change code needs one: all
    /// that decides what it does.
    #[must_use]
    pub fn key(mut self, name: &str, value: impl Debug) -> Hook {
        self.settings.add(name, &value);
        self
    }

    /// Says that the hook clears the flag `checked` of accesses, which it has then shown to be in bounds
    /// ([`InstData::SliceIndex`](crate::ir::InstData::SliceIndex),
    /// [`InstData::ElementPtr`](crate::ir::InstData::ElementPtr)). If it does not say so, an access that
    /// has lost its check is an error.
    #[must_use]
    pub fn may_remove_checks(mut self) -> Hook {
        self.may_remove_checks = true;
        self
    }

    /// Lets code that was compiled with the hook be kept on disk, for other processes and for later builds of this
    /// program. It says that the hook's name, [version](Hook::version) and [settings](Hook::key) tell all that
    /// the hook does from one program to another, so that the version is raised whenever the hook's code changes, and
    /// that it puts nothing into a kernel that is of this process, such as the address of something. Without this,
    /// a `Jit` with a hook that can change code keeps nothing on disk.
    ///
    /// ```
    /// use kiln::core::hook::Hook;
    ///
    /// let plain = Hook::new("plain").version(2).rewrite_ir(|_, _| Ok(()));
    /// assert!(!plain.is_kept());
    /// assert!(plain.may_be_kept().is_kept());
    /// let looks_on = Hook::new("looks-on").before_launch(|_| Ok(()));
    /// assert!(looks_on.is_kept(), "it can change no code");
    /// ```
    #[must_use]
    pub fn may_be_kept(mut self) -> Hook {
        self.may_be_kept = true;
        self
    }

    /// Says which rows of intrinsics the hook puts into kernels. Code that is kept on disk names its rows, and those
    /// that are not the kernel's own are looked for here: a kernel into which hooks have put other rows is not kept.
    ///
    /// ```
    /// use kiln::core::hook::Hook;
    /// use kiln::core::ir::{IntrinsicDef, Meaning, Scalar, TypePattern};
    ///
    /// static ANSWER: IntrinsicDef = IntrinsicDef::new(
    ///     "answer",
    ///     &[],
    ///     TypePattern::Exact(Scalar::U32),
    ///     Meaning::Pure(|_, _| 42),
    /// );
    /// let answers = Hook::new("answers").puts_in([&ANSWER]).may_be_kept();
    /// assert!(answers.is_kept());
    /// ```
    #[must_use]
    pub fn puts_in(mut self, rows: impl IntoIterator<Item = &'static IntrinsicDef>) -> Hook {
        self.rows.extend(rows);
        self
    }

    /// Whether code that was compiled with the hook may be kept on disk: the hook [says so](Hook::may_be_kept), or can
    /// change no code.
    pub fn is_kept(&self) -> bool {
        self.may_be_kept || !self.points().any(HookPoint::changes_code)
    }

    /// What tells the hook from others whose name, version and settings are the same, where these are not said to
    /// tell all that it does.
    #[doc(hidden)]
    pub fn own_number(&self) -> Option<u64> {
        let says_nothing = self.vouches.is_none() && self.rows.is_empty();
        let is_told = self.may_be_kept || says_nothing && self.is_kept();
        (!is_told).then_some(self.number)
    }

    /// Answers for inline assembly that the hook leaves in code for GPUs, by building it or by linking what holds
    /// it: whether `ptxas` and the driver take what has this template and these constraints, and the
    /// constraints say what it does. What rows have in their cells is known without this.
    #[must_use]
    pub fn vouches_for_assembly(
        mut self,
        vouches: impl Fn(&str, &str) -> bool + Send + Sync + 'static,
    ) -> Hook {
        self.vouches = Some(Box::new(vouches));
        self
    }

    /// Lets the hook do what it can where a point that it has a function at is not reached, as that for PTX is not
    /// when code for a CPU is made. Without this that is an error.
    #[must_use]
    pub fn if_supported(mut self) -> Hook {
        self.if_supported = true;
        self
    }

    /// The points that it has a function at.
    pub fn points(&self) -> impl Iterator<Item = HookPoint> {
        self.points.used()
    }

    /// One line: all of it that is part of the cache key.
    pub(crate) fn key_line(&self) -> String {
        let (name, settings) = (key::word(&self.name), self.settings.text());
        format!("{name} v{}{settings}\n", self.version)
    }

    /// Notes a function of some size at a point.
    fn note(&mut self, point: HookPoint, size: usize) {
        if size != 0 && point.changes_code() {
            self.holds_at.get_or_insert(point);
        }
    }

    /// Whether the hook has said what its functions hold.
    fn check_key(&self) -> Result<(), HookSetError> {
        match self.holds_at {
            Some(point) if !self.settings.any() => Err(HookSetError::NoKey {
                hook: self.name.clone(),
                point,
            }),
            _ => Ok(()),
        }
    }

    /// Whether each of its points is reached where there is no more than this.
    fn check_points(&self, has: &[Needs], why: impl Fn() -> String) -> Result<(), HookSetError> {
        let missed = self.points().find(|point| !has.contains(&point.needs()));
        match missed.filter(|_| !self.if_supported) {
            None => Ok(()),
            Some(point) => Err(HookSetError::Unsupported {
                hook: self.name.clone(),
                point,
                why: why(),
            }),
        }
    }

    /// The rows that it says it puts in.
    #[doc(hidden)]
    pub fn rows(&self) -> &[&'static IntrinsicDef] {
        &self.rows
    }

    pub(crate) fn removes_checks(&self) -> bool {
        self.may_remove_checks
    }

    pub(crate) fn vouches(&self, template: &str, constraints: &str) -> bool {
        let vouches = self.vouches.as_ref();
        vouches.is_some_and(|vouches| vouches(template, constraints))
    }
}
