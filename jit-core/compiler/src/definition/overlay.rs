//! Overlays: device functions that stand in the place of others.

use std::sync::Arc;

use super::Definition;

/// Device functions that calls go to in the place of others, in order.
///
/// A call of a function goes through the list from the first pair to the last, so that what stands in the place of
/// one function may itself be replaced by a later pair. In the body of a function that stands in the place of
/// another, calls of that other one are left as they are: it may call what it replaces.
#[derive(Clone, Debug, Default)]
pub struct Overlays(Vec<Overlay>);

#[derive(Clone, Debug)]
struct Overlay {
    of: Arc<Definition>,
    by: Arc<Definition>,
}

impl Overlays {
    /// Adds a pair at the end: calls of `of` go to `by`.
    pub(crate) fn push(&mut self, of: Arc<Definition>, by: Arc<Definition>) {
        self.0.push(Overlay { of, by });
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What a call of `callee` in the body of `caller` goes to.
    pub(super) fn called<'a>(
        &'a self,
        caller: &Arc<Definition>,
        callee: &'a Arc<Definition>,
    ) -> &'a Arc<Definition> {
        self.0.iter().fold(callee, |called, overlay| {
            let replaced = Arc::ptr_eq(called, &overlay.of) && !Arc::ptr_eq(caller, &overlay.by);
            if replaced { &overlay.by } else { called }
        })
    }

    /// The function in whose place another one stands.
    pub(super) fn original_of(&self, by: &Arc<Definition>) -> Option<&Arc<Definition>> {
        let overlay = self.0.iter().find(|overlay| Arc::ptr_eq(&overlay.by, by))?;
        Some(&overlay.of)
    }
}
