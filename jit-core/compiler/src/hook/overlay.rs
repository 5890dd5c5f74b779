//! Overlays: device functions that a hook puts in the place of others.

use std::sync::Arc;

use super::set::without_panic;
use super::{Hook, HookSet, HookSetError};
use crate::build::DeviceFn;
use crate::definition::{Definition, Overlays, SignatureChanged};
use crate::target::Target;

/// A function in the place of another one.
pub(super) struct Overlay {
    of: DeviceFn,
    by: DeviceFn,
    /// For which targets; all if it does not say.
    wanted: Option<Box<Wanted>>,
}

type Wanted = dyn Fn(&Target) -> bool + Send + Sync;

impl Hook {
    /// Has kernels call the device function `by` wherever they call `of`: each kernel of the
    /// `Jit`, and all that it calls. In the body of `by` itself `of` is what it was, so that `by` may call it.
    ///
    /// Both have the same parameters, of types and consts too, and the same result; `of` is any function that is
    /// described by itself, not one that takes closures. What hooks link into a module calls what it says. Of two
    /// overlays of one list, the later sees what the earlier has made of a call; that two replace one function
    /// is an error, told as other mistakes of a [`HookSet`] are. The content of `by` is in the key of the code, and
    /// its redefinition reaches the next launch.
    ///
    /// ```
    /// use kiln::core::build::DeviceFn;
    /// use kiln::core::hook::Hook;
    /// use kiln::core::ir::Type;
    /// use kiln::core::target::Target;
    ///
    /// # fn main() -> Result<(), kiln::core::error::Error> {
    /// let square = DeviceFn::build("square", |k| {
    ///     let x = k.param("x", Type::F32);
    ///     k.return_value(x * x);
    /// })?;
    /// let at_least_one = DeviceFn::build("at_least_one", |k| {
    ///     let x = k.param("x", Type::F32);
    ///     k.return_value(k.call(&square, &[x]) + 1.0);
    /// })?;
    /// let hook = Hook::new("larger").overlay(&square, &at_least_one);
    /// let on_gpus = |target: &Target| matches!(target, Target::Ptx(_));
    /// let there_alone = Hook::new("larger").overlay_for(on_gpus, &square, &at_least_one);
    /// # drop((hook, there_alone));
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn overlay(self, of: &DeviceFn, by: &DeviceFn) -> Hook {
        self.with_overlay(of, by, None)
    }

    /// [`Hook::overlay`] where the target of the `Jit` is one of those that `wanted` says.
    #[must_use]
    pub fn overlay_for(
        self,
        wanted: impl Fn(&Target) -> bool + Send + Sync + 'static,
        of: &DeviceFn,
        by: &DeviceFn,
    ) -> Hook {
        self.with_overlay(of, by, Some(Box::new(wanted)))
    }

    fn with_overlay(mut self, of: &DeviceFn, by: &DeviceFn, wanted: Option<Box<Wanted>>) -> Hook {
        self.overlays.push(Overlay {
            of: of.clone(),
            by: by.clone(),
            wanted,
        });
        self
    }
}

impl HookSet {
    /// Which functions stand in the place of others in what is compiled for a target.
    ///
    /// # Errors
    /// Functions of different signatures, two in the place of one.
    #[doc(hidden)]
    pub fn overlays(&self, target: &Target) -> Result<Overlays, HookSetError> {
        let mut overlays = Overlays::default();
        let mut replaced: Vec<(&Arc<Definition>, &Hook)> = Vec::new();
        for hook in self.iter() {
            for overlay in &hook.overlays {
                overlay.check(hook)?;
                if !overlay.is_for(target, hook)? {
                    continue;
                }
                let (of, by) = (overlay.of.definition(), overlay.by.definition());
                if let Some((_, first)) = replaced.iter().find(|(known, _)| Arc::ptr_eq(known, of))
                {
                    return Err(HookSetError::OverlaidTwice {
                        function: of.name().to_owned(),
                        first: first.name().to_owned(),
                        second: hook.name().to_owned(),
                    });
                }
                replaced.push((of, hook));
                overlays.push(of.clone(), by.clone());
            }
        }
        Ok(overlays)
    }
}

impl Overlay {
    /// Whether callers of the one can call the other.
    fn check(&self, hook: &Hook) -> Result<(), HookSetError> {
        let (of, by) = (self.of.definition(), self.by.definition());
        let Err(differ) = of.accepts(&by.body()) else {
            return Ok(());
        };
        let SignatureChanged {
            current,
            current_location,
            new,
            new_location,
            ..
        } = differ;
        Err(HookSetError::OtherSignature {
            hook: hook.name().to_owned(),
            of: format!("{current}, defined at {current_location}"),
            by: format!("{new}, defined at {new_location}"),
        })
    }

    fn is_for(&self, target: &Target, hook: &Hook) -> Result<bool, HookSetError> {
        let Some(wanted) = &self.wanted else {
            return Ok(true);
        };
        without_panic(|| wanted(target)).map_err(|message| HookSetError::Panicked {
            hook: hook.name().to_owned(),
            function: self.of.definition().name().to_owned(),
            message,
        })
    }
}
