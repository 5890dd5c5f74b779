//! Which kernel to name when an asynchronous error appears.
//!
//! A launch stores one number; names are kept apart, registered when a function is loaded, so the
//! launch path neither locks nor allocates. The answer is a hint: launches of several threads at
//! once may overwrite each other.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};

use parking_lot::Mutex;

/// The kernels launched since the last complete synchronization. By themselves in memory, as threads that launch several
/// kernels write here what the others' launches would else read beside it.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(super) struct RecentLaunches {
    /// Number of the kernel launched last; 0 when none was.
    last: AtomicU32,
    /// Whether kernels of another number were launched as well.
    several: AtomicBool,
    names: Mutex<Vec<Arc<str>>>,
}

impl RecentLaunches {
    /// The number for a kernel's name, from 1.
    pub(super) fn register(&self, name: &Arc<str>) -> u32 {
        let mut names = self.names.lock();
        let index = names
            .iter()
            .position(|known| known == name)
            .unwrap_or_else(|| {
                names.push(Arc::clone(name));
                names.len() - 1
            });
        u32::try_from(index + 1).unwrap_or(0)
    }

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
        let index = (self.last.load(Relaxed) as usize).checked_sub(1);
        let name = index.and_then(|index| self.names.lock().get(index).cloned());
        (name, self.several.load(Relaxed))
    }
}
