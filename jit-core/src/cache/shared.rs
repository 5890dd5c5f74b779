//! Code that several `Jit`s of one device have: compiled and loaded once, for as long as one of them keeps it.
//!
//! The table lies with the open device, so that it knows nothing of another one, nor of this one begun anew. It holds on to
//! nothing: what the last `Jit` lets go is unloaded as if the table were not there. Under each key is a place, whose lock who
//! makes the code has meanwhile. Nothing hangs on that lock: who compiles in the middle of another compilation, as hooks do that
//! launch, does not wait, and everybody else waits for a limited time; who did not get it makes code of its own, which nobody
//! shares. So two `Jit`s whose hooks launch in each other's go on.
//!
//! What is under one key is the same code: [`Jit::sharing`](crate::jit::Jit) says what is in it besides the cache key.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};

use super::WordHash;

/// For how long one waits for what another makes.
const PATIENCE: Duration = Duration::from_secs(5);

/// How many places there are before those of code that is gone are looked for.
const FEW: usize = 64;

/// Where code is, while somebody has it.
type Place<V> = Mutex<Weak<V>>;

/// Values that are shared, by what they are of.
pub(crate) struct SharedTable<K, V>(Mutex<Places<K, V>>);

struct Places<K, V> {
    places: HashMap<K, Arc<Place<V>>, WordHash>,
    /// With how many places those of values that are gone go.
    full: usize,
}

impl<K, V> Default for SharedTable<K, V> {
    fn default() -> SharedTable<K, V> {
        SharedTable(Mutex::new(Places {
            places: HashMap::default(),
            full: FEW,
        }))
    }
}

impl<K: Eq + Hash, V> SharedTable<K, V> {
    /// The value that somebody has, if it is `good`, or the one that `make` makes. Who does not wait, or has waited for too
    /// long, makes one that the others do not get.
    pub(crate) fn get_or_make<E>(
        &self,
        key: K,
        waits: bool,
        good: impl FnOnce(&V) -> Result<(), E>,
        make: impl FnOnce() -> Result<V, E>,
    ) -> Result<Arc<V>, E> {
        let place = self.place(key);
        let Some(mut place) = locked(&place, waits) else {
            return make().map(Arc::new);
        };
        if let Some(found) = place.upgrade() {
            return good(&found).map(|()| found);
        }
        let made = Arc::new(make()?);
        *place = Arc::downgrade(&made);
        Ok(made)
    }

    fn place(&self, key: K) -> Arc<Place<V>> {
        let Places { places, full } = &mut *self.0.lock();
        if places.len() >= *full {
            // Nobody comes to a place but through this map, so that of one that only the map has the lock is free.
            let is_used = |place: &Arc<Place<V>>| {
                Arc::strong_count(place) > 1 || place.lock().strong_count() > 0
            };
            places.retain(|_, place| is_used(place));
            *full = FEW.max(2 * places.len());
        }
        places.entry(key).or_default().clone()
    }

    #[cfg(test)]
    fn count(&self) -> usize {
        self.0.lock().places.len()
    }
}

fn locked<V>(place: &Place<V>, waits: bool) -> Option<MutexGuard<'_, Weak<V>>> {
    match waits {
        true => place.try_lock_for(PATIENCE),
        false => place.try_lock(),
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::sync::Barrier;
    use std::sync::atomic::{AtomicU32, Ordering::SeqCst};

    use super::*;

    type Table = SharedTable<u32, u32>;

    fn get(table: &Table, key: u32, value: u32) -> Arc<u32> {
        let made = table.get_or_make(key, true, |_| Ok(()), || Ok::<_, Infallible>(value));
        made.unwrap_or_else(|never| match never {})
    }

    #[test]
    fn a_value_is_there_while_somebody_has_it() {
        let table = Table::default();
        let first = get(&table, 1, 10);
        assert!(Arc::ptr_eq(&first, &get(&table, 1, 11)));
        drop(first);
        assert_eq!(*get(&table, 1, 12), 12);
    }

    #[test]
    fn an_error_leaves_the_place_free() {
        let table = Table::default();
        assert_eq!(
            table.get_or_make(1, true, |_| Ok(()), || Err("no")),
            Err("no")
        );
        let first = get(&table, 1, 10);
        // One that is no longer good is nobody's.
        let refused = table.get_or_make(1, true, |_| Err("gone"), || Ok(11));
        assert_eq!(refused, Err("gone"));
        assert_eq!(*first, 10);
    }

    #[test]
    fn who_is_in_the_middle_of_making_does_not_wait() {
        let table = Table::default();
        let inner = |value| table.get_or_make(1, false, |_| Ok(()), move || Ok::<_, ()>(value));
        let outer = table.get_or_make(1, true, |_| Ok(()), || inner(5).map(|made| *made + 1));
        let outer = outer.expect("it is made");
        // What was made inside is nobody else's.
        assert_eq!((*outer, *get(&table, 1, 0)), (6, 6));
    }

    #[test]
    fn places_of_what_is_gone_go() {
        let table = Table::default();
        let kept: Vec<_> = (0..10).map(|key| get(&table, key, key)).collect();
        for key in 10..10_000 {
            drop(get(&table, key, key));
            assert!(table.count() <= FEW);
        }
        for (key, value) in kept.iter().enumerate() {
            assert!(Arc::ptr_eq(value, &get(&table, key as u32, 77)));
        }
    }

    #[test]
    fn of_many_threads_one_makes() {
        const THREADS: u32 = 8;
        let (made, start) = (AtomicU32::new(0), Barrier::new(THREADS as usize));
        let table = Table::default();
        let ask = |key| {
            let make = || {
                std::thread::yield_now();
                made.fetch_add(1, SeqCst);
                Ok::<_, Infallible>(key)
            };
            let value = table.get_or_make(key, true, |_| Ok(()), make);
            start.wait();
            drop(value);
            start.wait();
        };
        std::thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| (0..200).for_each(ask));
            }
        });
        assert_eq!(made.into_inner(), 200);
    }
}
