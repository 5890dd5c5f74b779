//! The hooks of a `Jit`: an ordered list that says which is where.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use super::point::At;
use super::{Hook, HookError, HookErrorKind, HookPoint, HookSetError, Needs};
use crate::codegen::{Generator, Isas, in_hook};
use crate::contract::row_text;
use crate::target::Target;

/// The hooks of a `Jit`, in the order they run.
///
/// What is wrong with a list, a name that is there twice for one, is kept and told by the first launch or
/// inspection of the `Jit` that has it.
///
/// ```
/// use kiln::prelude::*;
///
/// use kiln::core::codegen::Isas;
/// use kiln::core::hook::{Hook, HookSet};
///
/// # fn main() -> kiln::Result<()> {
/// let hook = |name: &str| Hook::new(name).before_launch(|_| Ok(()));
/// let hooks = HookSet::new()
///     .with(hook("b"))
///     .first(hook("a"))
///     .after("b", hook("d"))
///     .before("d", hook("c"))
///     .replace(hook("b"))
///     .without("a");
/// assert!(hooks.iter().map(Hook::name).eq(["b", "c", "d"]));
/// let all = kiln::hooks::standard().with_all(&hooks);
/// assert_eq!(all.iter().count(), kiln::hooks::standard().iter().count() + 3);
/// assert_eq!(all.clone().only("c").iter().count(), 1);
/// let jit = Jit::builder().hooks(all).build()?;
/// assert!(jit.hooks().check(jit.target(), &Isas::default()).is_ok());
/// println!("{}", jit.hooks().fingerprint()); // what of it is part of the cache key
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Default)]
pub struct HookSet {
    hooks: Vec<Arc<Hook>>,
    /// The first thing that is wrong with it.
    mistake: Option<HookSetError>,
}

impl std::fmt::Debug for HookSet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list()
            .entries(self.hooks.iter().map(|h| h.name()))
            .finish()
    }
}

impl From<Hook> for HookSet {
    fn from(hook: Hook) -> HookSet {
        HookSet::new().with(hook)
    }
}

impl HookSet {
    /// No hooks.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a hook at the end.
    #[must_use]
    pub fn with(self, hook: Hook) -> Self {
        let end = self.hooks.len();
        self.insert(Some(end), hook)
    }

    /// Adds a hook before all others.
    #[must_use]
    pub fn first(self, hook: Hook) -> Self {
        self.insert(Some(0), hook)
    }

    /// Adds a hook before the one of this name.
    #[must_use]
    pub fn before(mut self, name: &str, hook: Hook) -> Self {
        let place = self.place_of(name);
        self.insert(place, hook)
    }

    /// Adds a hook behind the one of this name.
    #[must_use]
    pub fn after(mut self, name: &str, hook: Hook) -> Self {
        let place = self.place_of(name).map(|place| place + 1);
        self.insert(place, hook)
    }

    /// Puts a hook in the place of the one that has its name.
    #[must_use]
    pub fn replace(mut self, hook: Hook) -> Self {
        if let Some(place) = self.place_of(hook.name()) {
            self.hooks[place] = Arc::new(hook);
        }
        self
    }

    /// The set without the hook of this name.
    #[must_use]
    pub fn without(mut self, name: &str) -> Self {
        if let Some(place) = self.place_of(name) {
            self.hooks.remove(place);
        }
        self
    }

    /// Adds the hooks of another set at the end.
    #[must_use]
    pub fn with_all(mut self, others: &HookSet) -> Self {
        for hook in &others.hooks {
            let end = self.hooks.len();
            self = self.insert(Some(end), Arc::clone(hook));
        }
        if let Some(mistake) = &others.mistake {
            self.wrong(mistake.clone());
        }
        self
    }

    /// The hook of this name alone.
    #[must_use]
    pub fn only(mut self, name: &str) -> Self {
        if self.place_of(name).is_some() {
            self.hooks.retain(|hook| hook.name() == name);
        }
        self
    }

    /// The hooks, in order.
    pub fn iter(&self) -> impl Iterator<Item = &Hook> {
        self.hooks.iter().map(AsRef::as_ref)
    }

    /// One line a hook: all of it that is part of the cache key.
    pub fn fingerprint(&self) -> String {
        self.hooks.iter().map(|hook| hook.key_line()).collect()
    }

    /// Whether each of the rows that a key says were put in is one that a hook says it puts in.
    #[doc(hidden)]
    pub fn puts_in_all(&self, rows: &str) -> bool {
        let said = |line: &str| {
            let mut rows = self.iter().flat_map(Hook::rows);
            rows.any(|row| row_text(row).trim_end() == line)
        };
        rows.lines().all(|line| said(line.trim_end()))
    }

    fn insert(mut self, place: Option<usize>, hook: impl Into<Arc<Hook>>) -> Self {
        let hook = hook.into();
        if self.iter().any(|other| other.name() == hook.name()) {
            self.wrong(HookSetError::Duplicate(hook.name().to_owned()));
        } else if let Some(place) = place {
            self.hooks.insert(place, hook);
        }
        self
    }

    fn place_of(&mut self, name: &str) -> Option<usize> {
        let place = self.hooks.iter().position(|hook| hook.name() == name);
        if place.is_none() {
            self.wrong(HookSetError::Unknown {
                name: name.to_owned(),
                hooks: format!("{self:?}"),
            });
        }
        place
    }

    fn wrong(&mut self, mistake: HookSetError) {
        self.mistake.get_or_insert(mistake);
    }

    /// Whether the list says one thing, and each hook can do for the target what it is for.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn check(&self, target: &Target, isas: &Isas) -> Result<(), HookSetError> {
        if let Some(mistake) = &self.mistake {
            return Err(mistake.clone());
        }
        self.overlays(target)?;
        let Some(isa) = isas.of(target) else {
            // That nothing makes code for it is another error.
            return Ok(());
        };
        let has = match (target, isa.generator()) {
            (Target::Ptx(_), _) => [Needs::Nothing, Needs::Llvm, Needs::Ptx].as_slice(),
            (_, Generator::Llvm(_)) => &[Needs::Nothing, Needs::Llvm],
            (_, Generator::Direct(_)) => &[Needs::Nothing],
        };
        self.iter().try_for_each(|hook| {
            hook.check_key()?;
            hook.check_points(has, || {
                format!("compiling for {target} does not come there")
            })
        })
    }

    /// Whether a kernel that LLVM makes no code for, after all, still is what its hooks want.
    pub(crate) fn check_interpreted(&self, why: &str) -> Result<(), HookSetError> {
        let why = || format!("this kernel is interpreted: {why}");
        self.iter()
            .try_for_each(|hook| hook.check_points(&[Needs::Nothing], why))
    }

    /// Whether a hook has a function at one of these points.
    #[doc(hidden)]
    pub fn has(&self, points: &[HookPoint]) -> bool {
        self.iter()
            .any(|hook| hook.points().any(|point| points.contains(&point)))
    }

    /// Calls `f` with each function at a point, hook by hook. A failure or a panic ends it with an error.
    #[doc(hidden)]
    pub fn each<F: ?Sized>(
        &self,
        at: &At<F>,
        kernel: &str,
        mut f: impl FnMut(&Hook, &F) -> Result<(), HookErrorKind>,
    ) -> Result<(), HookError> {
        for hook in self.iter() {
            hook.each(at, kernel, |function| f(hook, function))?;
        }
        Ok(())
    }

    /// Whether a hook answers for inline assembly, or which has panicked when it was asked.
    pub(crate) fn vouch(&self, template: &str, constraints: &str) -> Result<bool, String> {
        for hook in self.iter() {
            let asked = without_panic(|| hook.vouches(template, constraints));
            if asked.map_err(|message| {
                format!(
                    "`Hook::vouches_for_assembly` of hook `{}` panicked when it was asked for `{template}`: {message}",
                    hook.name()
                )
            })? {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// Runs code of a hook's; what it said if it panics.
pub(super) fn without_panic<R>(code: impl FnOnce() -> R) -> Result<R, String> {
    catch_unwind(AssertUnwindSafe(|| in_hook(code))).map_err(|payload| {
        let text = payload.downcast_ref::<&str>().map(|s| (*s).to_owned());
        text.or_else(|| payload.downcast_ref::<String>().cloned())
            .unwrap_or_else(|| "a payload that is not text".to_owned())
    })
}

impl Hook {
    /// Calls `f` with each of the hook's functions at a point.
    #[doc(hidden)]
    pub fn each<F: ?Sized>(
        &self,
        at: &At<F>,
        kernel: &str,
        mut f: impl FnMut(&F) -> Result<(), HookErrorKind>,
    ) -> Result<(), HookError> {
        for function in (at.functions)(&self.points) {
            self.guarded(at.point, kernel, || f(function))?;
        }
        Ok(())
    }

    /// Runs code of the hook's, turning a panic into an error.
    fn guarded(
        &self,
        point: HookPoint,
        kernel: &str,
        code: impl FnOnce() -> Result<(), HookErrorKind>,
    ) -> Result<(), HookError> {
        without_panic(code)
            .unwrap_or_else(|message| Err(HookErrorKind::Panicked(message)))
            .map_err(|kind| self.error(point, kernel, kind))
    }

    /// What this hook did wrong.
    #[doc(hidden)]
    pub fn error(&self, point: HookPoint, kernel: &str, kind: HookErrorKind) -> HookError {
        HookError {
            hook: self.name().to_owned(),
            kernel: kernel.to_owned(),
            point,
            kind,
        }
    }
}
