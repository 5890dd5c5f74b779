//! The map and the cells of `flight`, and the counts of who has them, which `model.rs` has loom's in place of.

use std::borrow::Borrow;
use std::hash::Hash;
pub(super) use std::sync::Arc;

use dashmap::DashMap;
pub(super) use once_cell::sync::OnceCell;

use super::WordHash;

/// Cells by keys; what it is given is called under a lock of it.
pub(super) struct Map<K, C>(DashMap<K, Arc<C>, WordHash>);

impl<K: Eq + Hash, C> Default for Map<K, C> {
    fn default() -> Map<K, C> {
        Map(DashMap::default())
    }
}

impl<K: Eq + Hash, C: Default> Map<K, C> {
    /// The cell under a key, new if there is none.
    pub(super) fn cell(&self, key: K) -> Arc<C> {
        self.0.entry(key).or_default().value().clone()
    }

    /// What there is to be known of a cell that is there.
    #[inline]
    pub(super) fn with<Q, R>(&self, key: &Q, of: impl FnOnce(&Arc<C>) -> R) -> Option<R>
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        self.0.get(key).map(|cell| of(cell.value()))
    }

    /// Takes a cell out of which this is so.
    pub(super) fn remove_if(&self, key: &K, is_so: impl FnOnce(&Arc<C>) -> bool) {
        self.0.remove_if(key, |_, cell| is_so(cell));
    }

    /// Takes out all others.
    pub(super) fn retain(&self, mut stays: impl FnMut(&Arc<C>) -> bool) {
        self.0.retain(|_, cell| stays(cell));
    }

    /// Hands over all cells.
    pub(super) fn each(&self, mut of: impl FnMut(&Arc<C>)) {
        self.0.iter().for_each(|entry| of(entry.value()));
    }
}
