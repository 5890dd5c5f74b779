//! What is being compiled for this thread: hooks may launch kernels, but none that waits for itself.

use std::cell::RefCell;

use crate::definition::Fingerprint;
use crate::launch::LaunchError;

thread_local! {
    static UNDER_WAY: RefCell<Vec<Compilation>> = const { RefCell::new(Vec::new()) };
}

/// Something that a `Jit`, known by its address, makes once, and for which all who want it wait.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
#[doc(hidden)]
pub struct Compilation {
    /// The `Jit`.
    #[doc(hidden)]
    pub jit: usize,
    /// What the compilation makes.
    #[doc(hidden)]
    pub what: Made,
}

/// What is made once.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
#[doc(hidden)]
pub enum Made {
    /// A specialization of a kernel, by its content.
    Specialization(Fingerprint),
    /// The code of a specialization, by the tag of its key, for a shape of block.
    Code(u64),
}

/// A compilation as long as it is under way.
#[derive(Debug)]
#[doc(hidden)]
pub struct UnderWay;

impl UnderWay {
    /// Begins a compilation, unless this thread is in the middle of it: then a hook has asked for it.
    #[doc(hidden)]
    pub fn begin(
        compilation: Compilation,
        kernel: impl FnOnce() -> String,
    ) -> Result<UnderWay, LaunchError> {
        UNDER_WAY.with_borrow_mut(|list| {
            if list.contains(&compilation) {
                return Err(LaunchError::WaitsForItself { kernel: kernel() });
            }
            list.push(compilation);
            Ok(UnderWay)
        })
    }

    /// Whether this thread makes something in the middle of something else.
    #[doc(hidden)]
    pub fn is_nested() -> bool {
        UNDER_WAY.with_borrow(|list| list.len() > 1)
    }

    /// What is under way on this thread, for one that works for it.
    pub(crate) fn list() -> Vec<Compilation> {
        UNDER_WAY.with_borrow(Clone::clone)
    }

    /// Takes up, on a thread of the compiler's own, what is under way on the one that it works for.
    pub(crate) fn take_up(list: &[Compilation]) {
        UNDER_WAY.with_borrow_mut(|own| *own = list.to_vec());
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        UNDER_WAY.with_borrow_mut(Vec::pop);
    }
}
