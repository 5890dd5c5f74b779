//! Whether this process is a child of the one that opened a device: devices do not survive `fork`.
//!
//! A child has none of its parent's threads, on which a CPU device runs kernels, and may not use the driver's state
//! that it was given a copy of. So a device remembers the process that has opened it, and every use in another is an
//! error. The system says when a child begins (`pthread_atfork`); to look costs a load and a comparison.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// How many forks lie between this process and the first of its line that opened a device.
static FORKS: AtomicU32 = AtomicU32::new(0);

/// The process that something was made in.
#[derive(Debug)]
pub(crate) struct Process {
    forks: u32,
    id: u32,
}

impl Process {
    /// This process.
    pub(crate) fn this() -> Process {
        watch();
        Process {
            forks: FORKS.load(Relaxed),
            id: std::process::id(),
        }
    }

    /// Whether this process is a child of that one.
    #[inline]
    pub(crate) fn is_parent(&self) -> bool {
        FORKS.load(Relaxed) != self.forks
    }

    /// The number of the process.
    pub(crate) fn id(&self) -> u32 {
        self.id
    }
}

/// Has children counted from here on.
#[cfg(unix)]
fn watch() {
    use std::ffi::c_int;
    use std::sync::Once;

    type Call = Option<unsafe extern "C" fn()>;

    unsafe extern "C" {
        fn pthread_atfork(before: Call, in_parent: Call, in_child: Call) -> c_int;
    }

    unsafe extern "C" fn in_child() {
        FORKS.fetch_add(1, Relaxed);
    }

    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: what is called in a child changes an atomic and nothing else, which is allowed there. It stays as long
        // as the process, as a library that starts threads is never unloaded. Without memory it fails, and nothing is
        // counted.
        let _ = unsafe { pthread_atfork(None, None, Some(in_child)) };
    });
}

#[cfg(not(unix))]
fn watch() {}
