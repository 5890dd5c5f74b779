//! How much stack the current thread has left.
//!
//! Code for a kernel takes as much stack as its frame has, which LLVM tells. A launch that would run
//! on the thread that asks for it does so only if that is known to be there; workers have enough.

use std::cell::Cell;

/// Stack of a thread that runs blocks, in bytes: what any code may take, and a margin.
pub(super) const WORKER: usize = 8 << 20;

/// What code calls besides: reports of faults, the meanings of intrinsics, the C library.
const MARGIN: usize = 128 << 10;

thread_local! {
    /// The lowest and the highest address of this thread's stack, once they were asked for.
    static BOUNDS: Cell<Option<(usize, usize)>> = const { Cell::new(None) };
}

/// Whether code that takes this much stack can run on the current thread.
pub(super) fn has_room(bytes: usize) -> bool {
    let marker = 0u8;
    let here = (&raw const marker).addr();
    let bounds = BOUNDS.with(|known| {
        let bounds = known.get().or_else(system::bounds);
        known.set(bounds);
        bounds
    });
    // A thread may run on a stack that its owner made, of which the system knows nothing.
    bounds.is_some_and(|(low, high)| {
        (low..high).contains(&here) && here - low >= bytes.saturating_add(MARGIN)
    })
}

#[cfg(target_os = "linux")]
mod system {
    use std::ffi::{c_int, c_ulong, c_void};
    use std::mem::MaybeUninit;
    use std::ptr;

    /// A `pthread_attr_t`, which has at most 64 bytes on the machines that Linux runs on.
    #[repr(C, align(16))]
    struct Attributes([u8; 128]);

    // SAFETY: functions of the C library that Rust links, with its signatures (pthread_getattr_np(3),
    // pthread_attr_getstack(3)); a `pthread_t` is a number of this size.
    unsafe extern "C" {
        fn pthread_self() -> c_ulong;
        fn pthread_getattr_np(thread: c_ulong, attributes: *mut Attributes) -> c_int;
        fn pthread_attr_getstack(
            attributes: *const Attributes,
            start: *mut *mut c_void,
            bytes: *mut usize,
        ) -> c_int;
        fn pthread_attr_destroy(attributes: *mut Attributes) -> c_int;
    }

    /// The bounds of this thread's stack, if the system says them.
    pub(super) fn bounds() -> Option<(usize, usize)> {
        let mut attributes = MaybeUninit::<Attributes>::uninit();
        let at = attributes.as_mut_ptr();
        // SAFETY: there is room for the attributes, which the call initializes if it gives 0.
        if unsafe { pthread_getattr_np(pthread_self(), at) } != 0 {
            return None;
        }
        let (mut start, mut bytes) = (ptr::null_mut(), 0);
        // SAFETY: initialized above; the results outlive the call; destroyed once.
        let code = unsafe {
            let code = pthread_attr_getstack(at, &mut start, &mut bytes);
            pthread_attr_destroy(at);
            code
        };
        (code == 0).then(|| (start.addr(), start.addr().saturating_add(bytes)))
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    /// Other systems have other ways, and no host code yet.
    pub(super) fn bounds() -> Option<(usize, usize)> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_knows_its_stack() {
        for bytes in [512 << 10, 4 << 20] {
            let thread = std::thread::Builder::new().stack_size(bytes);
            // The system may give more than was asked for, from an earlier thread, not that much.
            let asked = thread.spawn(move || (has_room(bytes / 4), has_room(bytes << 16)));
            let (some, all) = asked.expect("a thread").join().expect("no panic");
            assert!(some, "{bytes}");
            assert!(!all, "{bytes}");
        }
    }
}
