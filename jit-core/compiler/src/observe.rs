//! Looking on while a kernel is compiled: stages, and what each hook does between them.
//!
//! Who looks on changes nothing, and is no part of the cache key.

use std::cell::Cell;
use std::fmt;
use std::time::{Duration, Instant};

use crate::compile::failed;
use crate::hook::{Hook, HookErrorKind, HookPoint, HookResult};
use crate::ir::{Module, all_variants};

/// A named point of the pipeline with an output one can look at.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub enum Stage {
    /// The specialized module, before hooks.
    Specialized,
    /// The legal module, after IR hooks and ABI lowering.
    Legal,
    /// The LLVM module before optimization.
    Llvm,
    /// The LLVM module after optimization.
    OptimizedLlvm,
    /// PTX text.
    Ptx,
    /// Machine code of the host, or of a GPU if a hook has assembled it, as a line about it.
    Object,
}

all_variants! {
    Stage { Specialized, Legal, Llvm, OptimizedLlvm, Ptx, Object }
}

impl Stage {
    /// The stage's name.
    pub fn name(self) -> &'static str {
        match self {
            Stage::Specialized => "specialized",
            Stage::Legal => "legal",
            Stage::Llvm => "llvm",
            Stage::OptimizedLlvm => "optimized-llvm",
            Stage::Ptx => "ptx",
            Stage::Object => "object",
        }
    }
}

/// Looks on while a kernel is compiled.
///
/// ```
/// use kiln::prelude::*;
///
/// use std::sync::Arc;
/// use std::time::Duration;
///
/// use kiln::core::compile::{HookStep, Stage, StageObserver};
///
/// /// Prints how long everything took, and the IR that hooks leave.
/// struct Printer;
///
/// impl StageObserver for Printer {
///     fn stage(&self, kernel: &str, stage: Stage, took: Duration, _: &dyn Fn() -> String) {
///         println!("{kernel}: {} took {took:?}", stage.name());
///     }
///
///     fn hook(&self, kernel: &str, step: &HookStep<'_>) {
///         println!("{kernel}: {} at {}: {}", step.hook, step.point, step.text());
///     }
/// }
///
/// #[kernel]
/// fn double(x: &mut [f32]) {
///     x[global_id().x] *= 2.0;
/// }
///
/// # fn main() -> kiln::Result<()> {
/// let jit = Jit::builder().observer(Arc::new(Printer)).build()?;
/// let mut x = jit.upload(&[1.0f32; 32])?;
/// jit.launch(&double, 1, 32, args!(&mut x))?;
/// assert_eq!(x.to_vec()?, [2.0; 32]);
/// # Ok(())
/// # }
/// ```
pub trait StageObserver: Sync {
    /// A stage is done. `text` prints its output, if asked; `took` is the time since the stage
    /// before, printing excluded.
    fn stage(&self, kernel: &str, stage: Stage, took: Duration, text: &dyn Fn() -> String);

    /// A function of a hook has run, in a part of the time of the stage that it belongs to. Those that lower operations
    /// are told once for each hook, with the time of all.
    fn hook(&self, _kernel: &str, _step: &HookStep<'_>) {}

    /// LLVM has run these passes, in the notation of its `opt -passes`. `reduced` says why they are fewer than the
    /// kernel's options ask for, or why the code generator does less than for other kernels, if it is so.
    fn passes(&self, _kernel: &str, _passes: &str, _reduced: Option<&str>) {}

    /// Whether the observer will ask for texts, of LLVM's stages and of what hooks leave, which cost time to print.
    fn wants_text(&self) -> bool {
        true
    }
}

/// What a function of a hook has done while a kernel was compiled.
#[non_exhaustive]
pub struct HookStep<'a> {
    /// The hook's name.
    pub hook: &'a str,
    /// The extension point that called the function.
    pub point: HookPoint,
    /// How long it took, without the checks after it.
    pub took: Duration,
    /// Whether the function left something else than it found; `None` if nobody
    /// [wants](StageObserver::wants_text) texts.
    pub changed: Option<bool>,
    text: &'a dyn Fn() -> String,
}

impl HookStep<'_> {
    /// What the function left: the IR, LLVM's module, the text of the passes, the PTX. Empty where it lowers
    /// operations or gives machine code, and beyond the IR if nobody [wants](StageObserver::wants_text) texts.
    pub fn text(&self) -> String {
        (self.text)()
    }
}

impl fmt::Debug for HookStep<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let HookStep {
            hook, point, took, ..
        } = self;
        write!(
            f,
            "{hook} at {point}, {took:?}, changed: {:?}",
            self.changed
        )
    }
}

/// Looks away.
#[derive(Copy, Clone, Debug)]
pub struct NoObserver;

impl StageObserver for NoObserver {
    fn stage(&self, _: &str, _: Stage, _: Duration, _: &dyn Fn() -> String) {}

    fn wants_text(&self) -> bool {
        false
    }
}

/// Time since the stage before, without what those take who look on.
pub(crate) struct Clock {
    start: Cell<Instant>,
    apart: Cell<Duration>,
}

impl Clock {
    pub(crate) fn start() -> Clock {
        Clock {
            start: Cell::new(Instant::now()),
            apart: Cell::default(),
        }
    }

    /// Calls `told` with the time that a stage took; what that takes itself is no stage's.
    pub(crate) fn lap(&self, told: impl FnOnce(Duration)) {
        let took = self.start.get().elapsed();
        told(took.saturating_sub(self.apart.take()));
        self.start.set(Instant::now());
    }

    /// Does what is no part of a stage.
    fn apart<R>(&self, looks: impl FnOnce() -> R) -> R {
        let start = Instant::now();
        let result = looks();
        self.apart.set(self.apart.get() + start.elapsed());
        result
    }
}

/// Who looks at what hooks make of the IR.
#[derive(Copy, Clone)]
pub(crate) struct Onlooker<'a> {
    pub(crate) observer: &'a dyn StageObserver,
    pub(crate) kernel: &'a str,
    pub(crate) clock: &'a Clock,
}

impl Onlooker<'_> {
    /// Tells that a stage is done.
    pub(crate) fn stage(self, stage: Stage, module: &Module) {
        let text = || module.to_string();
        let told = |took| self.observer.stage(self.kernel, stage, took, &text);
        self.clock.lap(told);
    }

    /// Runs a function of a hook on the IR, or on what holds it, and checks what it leaves.
    pub(crate) fn run<T>(
        self,
        (hook, point): (&Hook, HookPoint),
        on: &mut T,
        module: impl Fn(&T) -> &Module,
        function: impl FnOnce(&mut T) -> HookResult<()>,
        check: impl FnOnce(&T) -> Result<(), HookErrorKind>,
    ) -> Result<(), HookErrorKind> {
        let wants_text = self.observer.wants_text();
        let before = wants_text.then(|| self.clock.apart(|| module(on).to_string()));
        let start = Instant::now();
        failed(function(on))?;
        let took = start.elapsed();
        check(on)?;
        let text = || module(on).to_string();
        self.clock.apart(|| {
            let step = HookStep {
                hook: hook.name(),
                point,
                took,
                changed: before.map(|before| before != text()),
                text: &text,
            };
            self.observer.hook(self.kernel, &step);
        });
        Ok(())
    }
}

/// What has passed on a compile thread, and its output if that was to be kept.
pub(crate) enum Passed {
    Stage(Stage, Duration, String),
    Hook {
        hook: String,
        point: HookPoint,
        took: Duration,
        changed: Option<bool>,
        text: String,
    },
    Passes {
        passes: String,
        reduced: Option<String>,
    },
}

impl Passed {
    /// Tells it to who looks on.
    pub(crate) fn tell(&self, observer: &dyn StageObserver, kernel: &str) {
        match self {
            Passed::Stage(stage, took, text) => {
                observer.stage(kernel, *stage, *took, &|| text.clone());
            }
            Passed::Hook {
                hook,
                point,
                took,
                changed,
                text,
            } => {
                let step = HookStep {
                    hook,
                    point: *point,
                    took: *took,
                    changed: *changed,
                    text: &|| text.clone(),
                };
                observer.hook(kernel, &step);
            }
            Passed::Passes { passes, reduced } => {
                observer.passes(kernel, passes, reduced.as_deref());
            }
        }
    }
}

/// What passes on a compile thread, as it passes.
pub(crate) struct Passing {
    /// Whether the outputs are to be kept as text.
    keep_text: bool,
    clock: Clock,
    pub(crate) list: Vec<Passed>,
}

impl Passing {
    pub(crate) fn new(keep_text: bool) -> Passing {
        Passing {
            keep_text,
            clock: Clock::start(),
            list: Vec::new(),
        }
    }

    /// A stage is done.
    pub(crate) fn stage(&mut self, stage: Stage, text: impl FnOnce() -> String) {
        let (keep_text, list) = (self.keep_text, &mut self.list);
        self.clock.lap(|took| {
            let text = if keep_text { text() } else { String::new() };
            list.push(Passed::Stage(stage, took, text));
        });
    }

    /// LLVM has run passes.
    pub(crate) fn passes(&mut self, passes: &str, reduced: Option<String>) {
        let passes = passes.to_owned();
        self.list.push(Passed::Passes { passes, reduced });
    }

    /// Runs a function of a hook on what it may change, and checks what it leaves.
    pub(crate) fn run<T>(
        &mut self,
        (hook, point): (&Hook, HookPoint),
        on: &mut T,
        text: impl Fn(&T) -> String,
        function: impl FnOnce(&mut T) -> HookResult<()>,
        check: impl FnOnce(&T) -> Result<(), HookErrorKind>,
    ) -> Result<(), HookErrorKind> {
        let clock = &self.clock;
        let before = self.keep_text.then(|| clock.apart(|| text(on)));
        let start = Instant::now();
        failed(function(on))?;
        let took = start.elapsed();
        check(on)?;
        let after = self.keep_text.then(|| clock.apart(|| text(on)));
        self.list.push(Passed::Hook {
            hook: hook.name().to_owned(),
            point,
            took,
            changed: before.as_ref().map(|_| before != after),
            text: after.unwrap_or_default(),
        });
        Ok(())
    }

    /// A hook has lowered operations, or looked at them.
    pub(crate) fn lowered(&mut self, hook: &str, point: HookPoint, took: Duration, any: bool) {
        self.list.push(Passed::Hook {
            hook: hook.to_owned(),
            point,
            took,
            changed: Some(any),
            text: String::new(),
        });
    }
}
