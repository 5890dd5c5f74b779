//! What kernels call in a `Jit` whose hooks put device functions in the place of others.

use std::collections::HashMap;
use std::sync::Arc;

use kiln_compiler::build::Kernel;
use kiln_compiler::definition::{CurrentSnapshot, Fingerprint, Overlays, Snapshot};
use kiln_compiler::error::Result;
use kiln_compiler::hook::{HookSet, HookSetError};
use kiln_compiler::target::Target;
use parking_lot::RwLock;

use super::Jit;

/// The overlays of a `Jit`, with its own snapshots of kernels.
pub(super) struct Overlaid {
    /// What is wrong with them is told by each launch.
    overlays: Result<Arc<Overlays>, HookSetError>,
    /// By the address of the kernel's definition, which its snapshot keeps alive.
    snapshots: RwLock<HashMap<usize, Arc<CurrentSnapshot>>>,
}

impl Overlaid {
    /// `None` where kernels call what they say.
    pub(super) fn of(hooks: &HookSet, target: &Target) -> Option<Overlaid> {
        let overlays = hooks.overlays(target).map(Arc::new);
        if overlays.as_ref().is_ok_and(|overlays| overlays.is_empty()) {
            return None;
        }
        Some(Overlaid {
            overlays,
            snapshots: RwLock::default(),
        })
    }

    /// What this `Jit` knows of a kernel.
    fn kernel(&self, kernel: &Kernel) -> Result<Arc<CurrentSnapshot>> {
        let definition = kernel.definition();
        let address = Arc::as_ptr(definition).addr();
        if let Some(known) = self.snapshots.read().get(&address) {
            return Ok(known.clone());
        }
        let overlays = self.overlays.clone()?;
        let new = Arc::new(CurrentSnapshot::with(definition.clone(), overlays));
        Ok(self.snapshots.write().entry(address).or_insert(new).clone())
    }
}

impl Jit {
    /// The content of a kernel with everything that it calls here.
    #[inline]
    pub(super) fn fingerprint(&self, kernel: &Kernel) -> Result<Fingerprint> {
        match &self.0.overlaid {
            None => kernel.fingerprint(),
            Some(overlaid) => Ok(overlaid.kernel(kernel)?.fingerprint()?),
        }
    }

    /// A kernel with everything that it calls here.
    pub(super) fn snapshot(&self, kernel: &Kernel) -> Result<Arc<Snapshot>> {
        match &self.0.overlaid {
            None => kernel.snapshot(),
            Some(overlaid) => Ok(overlaid.kernel(kernel)?.get()?),
        }
    }
}
