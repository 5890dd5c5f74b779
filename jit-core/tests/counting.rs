//! Counts what each thread allocates, and what is alive of all, in a program that includes this: its allocator is the
//! system's behind counters.
#![allow(
    dead_code,
    reason = "each program that includes this uses a part of it"
)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicI64, Ordering};

/// The bytes that are alive of what Rust code of the program has allocated.
static ALIVE: AtomicI64 = AtomicI64::new(0);

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

/// How often an action allocates in this thread.
pub(crate) fn allocations(act: impl FnOnce()) -> u64 {
    let before = ALLOCATIONS.get();
    act();
    ALLOCATIONS.get() - before
}

/// The bytes that Rust code of this program has allocated and not freed: without the system's allocator's own, what
/// threads keep of freed memory, and what other libraries have.
pub(crate) fn alive() -> i64 {
    ALIVE.load(Ordering::Relaxed)
}

struct Counting;

// SAFETY: everything is handed to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let _ = ALLOCATIONS.try_with(|count| count.set(count.get() + 1));
        ALIVE.fetch_add(layout.size() as i64, Ordering::Relaxed);
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        ALIVE.fetch_sub(layout.size() as i64, Ordering::Relaxed);
        // SAFETY: the caller's promise is passed on.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;
