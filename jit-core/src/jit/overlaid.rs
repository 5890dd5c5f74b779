//! What kernels call in a `Jit` whose hooks put device functions in the place of others.

use std::sync::Arc;

use kiln_compiler::build::Kernel;
use kiln_compiler::definition::{Fingerprint, Overlays, Snapshot};
use kiln_compiler::error::Result;
use kiln_compiler::hook::{HookSet, HookSetError};
use kiln_compiler::target::Target;

use super::Jit;

/// The overlays of a `Jit`. Kernels keep what was found of them, as long as there is this `Jit`.
pub(super) struct Overlaid {
    /// What is wrong with them is told by each launch.
    overlays: Result<Arc<Overlays>, HookSetError>,
}

impl Overlaid {
    /// `None` where kernels call what they say.
    pub(super) fn of(hooks: &HookSet, target: &Target) -> Option<Overlaid> {
        let overlays = hooks.overlays(target).map(Arc::new);
        if overlays.as_ref().is_ok_and(|overlays| overlays.is_empty()) {
            return None;
        }
        Some(Overlaid { overlays })
    }

    /// A kernel with everything that it calls through them.
    fn snapshot(&self, kernel: &Kernel) -> Result<Arc<Snapshot>> {
        match &self.overlays {
            Ok(overlays) => kernel.snapshot_with(overlays),
            Err(error) => Err(error.clone().into()),
        }
    }
}

impl Jit {
    /// The content of a kernel with everything that it calls here.
    #[inline]
    pub(super) fn fingerprint(&self, kernel: &Kernel) -> Result<Fingerprint> {
        match &self.0.overlaid {
            None => kernel.fingerprint(),
            Some(overlaid) => Ok(overlaid.snapshot(kernel)?.fingerprint),
        }
    }

    /// A kernel with everything that it calls here.
    pub(super) fn snapshot(&self, kernel: &Kernel) -> Result<Arc<Snapshot>> {
        match &self.0.overlaid {
            None => kernel.snapshot(),
            Some(overlaid) => overlaid.snapshot(kernel),
        }
    }
}
