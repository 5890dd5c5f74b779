//! What went wrong in launches that had returned, until somebody is told.
//!
//! It concerns whoever reads a buffer that such a launch was given, and whoever waits for the whole
//! device. Readers of other buffers get their data and hear nothing of it.

use std::collections::VecDeque;
use std::ops::Range;

use smallvec::SmallVec;

use crate::error::DeviceError;
use crate::seldom::Seldom;

/// The most that is remembered; a program that launches on without asking is told the first ones.
const MOST: usize = 1024;

/// The device addresses that a launch was given.
pub(crate) type Given = SmallVec<[u64; 4]>;

/// Failures in the order in which they happened.
#[derive(Default)]
pub(crate) struct Failures(Seldom<VecDeque<(Given, DeviceError)>>);

impl Failures {
    pub(crate) fn add(&self, given: Given, error: DeviceError) {
        self.0.put(|list| {
            if list.len() < MOST {
                list.push_back((given, error));
            }
        });
    }

    /// For who waits for the whole device: the first. The others are forgotten with it.
    pub(crate) fn take_first(&self) -> Option<DeviceError> {
        let first = self.0.take()?.pop_front();
        first.map(|(_, error)| error)
    }

    /// For who reads this memory: the first that concerns it. Others that do are forgotten with it.
    pub(crate) fn take_of(&self, memory: Range<u64>) -> Option<DeviceError> {
        let found = self.0.look(|list| {
            let mut found = None;
            let others = std::mem::take(list);
            for (given, error) in others {
                if given.iter().any(|address| memory.contains(address)) {
                    found.get_or_insert(error);
                } else {
                    list.push_back((given, error));
                }
            }
            found
        });
        found.flatten()
    }

    /// Has what failed concern nobody who is given this memory next: it is given back. Who waits for the whole device
    /// is told all the same.
    pub(crate) fn leave(&self, memory: Range<u64>) {
        self.0.look(|list| {
            for (given, _) in list {
                given.retain(|address| !memory.contains(address));
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use smallvec::smallvec;

    fn text(error: Option<DeviceError>) -> Option<String> {
        error.map(|e| e.to_string())
    }

    #[test]
    fn whom_a_failure_concerns() {
        let failures = Failures::default();
        let error = |bytes| DeviceError::HostMemory { bytes };
        failures.add(smallvec![256, 1024], error(1));
        failures.add(smallvec![512], error(2));
        failures.add(smallvec![1024], error(3));
        assert_eq!(text(failures.take_of(0..256)), None);
        assert_eq!(
            text(failures.take_of(1000..1025)),
            Some(error(1).to_string())
        );
        assert_eq!(text(failures.take_of(1000..1025)), None);
        assert_eq!(text(failures.take_first()), Some(error(2).to_string()));
        assert_eq!(text(failures.take_first()), None);
    }

    #[test]
    fn memory_that_is_given_back_concerns_nobody() {
        let failures = Failures::default();
        let error = |bytes| DeviceError::HostMemory { bytes };
        failures.add(smallvec![256, 1024], error(1));
        failures.add(smallvec![512], error(2));
        failures.leave(256..768);
        assert_eq!(text(failures.take_of(256..768)), None);
        let concerned = failures.take_of(1024..2048);
        assert_eq!(text(concerned), Some(error(1).to_string()));
        assert_eq!(text(failures.take_first()), Some(error(2).to_string()));
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let failures = Failures::default();
        for bytes in 0..2 * MOST {
            failures.add(smallvec![256], DeviceError::HostMemory { bytes });
        }
        assert_eq!(failures.0.look(|list| list.len()), Some(MOST));
    }
}
