//! Values that are made once, however many threads ask for them, and let go of.
//!
//! Under each key is a cell, which is empty while its value is made. Whoever comes first makes it, whoever comes meanwhile
//! waits for the same one, and no lock of the map is held. A value that could not be made leaves nothing behind: the
//! error is that of who has tried, and the next one tries anew.
//!
//! The map, its cells and who counts their owners are those of `sync`. The tests compile this file a second time with maps and cells of loom's
//! locks (`model.rs`), and go through the orders in which threads can take turns.

use std::borrow::Borrow;
use std::hash::Hash;

use super::sync::{Arc, Map, OnceCell};

/// Where a value is put by whoever comes first.
type Cell<V> = OnceCell<Arc<V>>;

/// Values by what they are of.
pub(super) struct Flights<K, V> {
    cells: Map<K, Cell<V>>,
}

impl<K: Eq + Hash, V> Default for Flights<K, V> {
    fn default() -> Flights<K, V> {
        Flights {
            cells: Map::default(),
        }
    }
}

impl<K: Clone + Eq + Hash, V> Flights<K, V> {
    /// The value that is there.
    pub(super) fn find<Q>(&self, key: &Q) -> Option<Arc<V>>
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        self.cells.with(key, |cell| cell.get().cloned())?
    }

    /// The value, made by `make` if it is not there. However many threads ask, one makes it.
    pub(super) fn get_or_make<E>(
        &self,
        key: K,
        make: impl FnOnce() -> Result<V, E>,
    ) -> Result<Arc<V>, E> {
        let cell = self.cells.cell(key.clone());
        let made = cell.get_or_try_init(|| make().map(Arc::new)).cloned();
        drop(cell);
        if made.is_err() {
            // Of those who have tried in this cell the last one finds that nobody has it any more.
            let is_left = |cell: &Arc<Cell<V>>| Arc::strong_count(cell) == 1;
            self.cells
                .remove_if(&key, |cell| is_left(cell) && cell.get().is_none());
        }
        made
    }

    /// How many keys there are, also those whose value is being made.
    #[cfg(test)]
    pub(super) fn count(&self) -> usize {
        let mut count = 0;
        self.cells.each(|_| count += 1);
        count
    }

    /// Hands over all values.
    pub(super) fn each(&self, mut of: impl FnMut(&Arc<V>)) {
        self.cells
            .each(|cell| cell.get().into_iter().for_each(&mut of));
    }

    /// Lets go of the values that are not to stay; what is being made stays.
    pub(super) fn retain(&self, mut stays: impl FnMut(&Arc<V>) -> bool) {
        self.cells.retain(|cell| cell.get().is_none_or(&mut stays));
    }

    /// Lets go of the values that nobody else has, or is about to have.
    pub(super) fn retain_used(&self) {
        self.cells.retain(|cell| {
            let is_used = |value: &Arc<V>| Arc::strong_count(value) > 1;
            Arc::strong_count(cell) > 1 || cell.get().is_none_or(is_used)
        });
    }
}
