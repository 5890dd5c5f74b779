//! Which kernel to name when an asynchronous error appears.
//!
//! A launch stores one number; names are kept apart, entered when a function is loaded and left once it is unloaded, so
//! the launch path neither locks nor allocates. The answer is a hint: launches of several threads at
//! once may overwrite each other.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};

use parking_lot::Mutex;

use super::context::CudaContext;

/// The kernels launched since the last complete synchronization. By themselves in memory, as threads that launch several
/// kernels write here what the others' launches would else read beside it.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(super) struct RecentLaunches {
    /// Number of the kernel launched last; 0 when none was.
    last: AtomicU32,
    /// Whether kernels of another number were launched as well.
    several: AtomicBool,
    names: Mutex<Names>,
}

/// The names of functions that are loaded.
#[derive(Debug, Default)]
struct Names {
    numbers: HashMap<Arc<str>, u32>,
    /// With how many functions have it.
    names: HashMap<u32, (Arc<str>, usize)>,
    /// The number that was given last.
    last: u32,
}

/// The number of a kernel's name, for as long as a function of the name is loaded.
pub(super) struct NameNumber {
    context: Arc<CudaContext>,
    pub(super) number: u32,
}

impl NameNumber {
    /// Enters a name.
    pub(super) fn of(context: &Arc<CudaContext>, name: &Arc<str>) -> NameNumber {
        NameNumber {
            context: context.clone(),
            number: context.recent.names.lock().enter(name),
        }
    }
}

impl Drop for NameNumber {
    fn drop(&mut self) {
        self.context.recent.names.lock().leave(self.number);
    }
}

impl Names {
    /// The number for a name, from 1.
    fn enter(&mut self, name: &Arc<str>) -> u32 {
        let number = match self.numbers.entry(name.clone()) {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(new) => {
                let mut number = self.last.wrapping_add(1).max(1);
                while self.names.contains_key(&number) {
                    number = number.wrapping_add(1).max(1);
                }
                self.last = number;
                *new.insert(number)
            }
        };
        let known = self.names.entry(number);
        known.or_insert_with(|| (name.clone(), 0)).1 += 1;
        number
    }

    fn leave(&mut self, number: u32) {
        if let Entry::Occupied(mut known) = self.names.entry(number) {
            known.get_mut().1 -= 1;
            if known.get().1 == 0 {
                let (name, _) = known.remove();
                self.numbers.remove(&name);
            }
        }
    }
}

impl RecentLaunches {
    /// Notes a launch.
    #[inline]
    pub(super) fn note(&self, number: u32) {
        let last = self.last.load(Relaxed);
        if last != number {
            if last != 0 && !self.several.load(Relaxed) {
                self.several.store(true, Relaxed);
            }
            self.last.store(number, Relaxed);
        }
    }

    /// Forgets all launches: they have completed without an error.
    pub(super) fn clear(&self) {
        self.last.store(0, Relaxed);
        self.several.store(false, Relaxed);
    }

    /// The kernel launched last, and whether others were launched too.
    pub(super) fn suspect(&self) -> (Option<Arc<str>>, bool) {
        let names = self.names.lock();
        let name = names.names.get(&self.last.load(Relaxed));
        (
            name.map(|(name, _)| name.clone()),
            self.several.load(Relaxed),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_one_number_and_are_left() {
        let mut names = Names::default();
        let name = |text: &str| -> Arc<str> { Arc::from(text) };
        let held = names.enter(&name("held"));
        assert_eq!(names.enter(&name("held")), held);
        for number in 0..10_000 {
            let number = names.enter(&name(&format!("k{number}")));
            assert!(number != 0 && number != held);
            names.leave(number);
        }
        names.leave(held);
        assert_eq!((names.names.len(), names.numbers.len()), (1, 1));
        names.last = u32::MAX;
        let next = names.enter(&name("next"));
        assert!(next != 0 && next != held);
        names.leave(held);
        names.leave(next);
        assert_eq!((names.names.len(), names.numbers.len()), (0, 0));
    }
}
