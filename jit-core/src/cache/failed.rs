//! What LLVM could not go on with, so that it is not tried again.
//!
//! A compile that LLVM ends by a fatal error, or that does not end, leaves its thread parked with what it holds. A
//! launch in a loop would leave one each time. What is remembered is the error, under the key of the code, for as many
//! of the latest as a program can be expected to meet.

use std::collections::VecDeque;

use parking_lot::Mutex;

use kiln_compiler::codegen::CompileThreadError;

/// How many are remembered.
const MOST: usize = 256;

/// Compiles that have cost the process a thread, the latest last.
#[derive(Default)]
pub(crate) struct FailedCompiles(Mutex<VecDeque<([u8; 32], CompileThreadError)>>);

impl FailedCompiles {
    /// The error of an earlier compile under this key.
    pub(crate) fn find(&self, key: &[u8; 32]) -> Option<CompileThreadError> {
        let failed = self.0.lock();
        let found = failed.iter().find(|(known, _)| known == key);
        found.map(|(_, error)| error.clone())
    }

    /// Remembers an error, if it has cost a thread.
    pub(crate) fn note(&self, key: [u8; 32], error: &CompileThreadError) {
        if !error.keeps_thread() {
            return;
        }
        let mut failed = self.0.lock();
        if failed.len() == MOST {
            failed.pop_front();
        }
        failed.push_back((key, error.clone()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_latest_that_cost_a_thread_are_remembered() {
        let failed = FailedCompiles::default();
        let key =
            |i: usize| std::array::from_fn(|at| i.to_le_bytes().get(at).copied().unwrap_or(0));
        let kernel = || "k".to_owned();
        let message = || "no".to_owned();
        let panic = CompileThreadError::Panic {
            kernel: kernel(),
            message: message(),
        };
        failed.note(key(0), &panic);
        assert_eq!(failed.find(&key(0)), None);
        let fatal = CompileThreadError::Fatal {
            kernel: kernel(),
            message: message(),
        };
        for i in 0..=MOST {
            failed.note(key(i), &fatal);
        }
        assert_eq!(failed.find(&key(0)), None);
        assert_eq!(failed.find(&key(1)), Some(fatal.clone()));
        assert_eq!(failed.find(&key(MOST)), Some(fatal));
    }
}
