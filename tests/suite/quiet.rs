//! Panics that are expected: what panics where they are says nothing about it.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::Once;

thread_local! {
    static IS_QUIET: Cell<bool> = const { Cell::new(false) };
}

/// What an action gives, or nothing if it panics. Where this thread panics in it, nothing is printed.
pub fn unless_it_panics<T>(act: impl FnOnce() -> T) -> Option<T> {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let tell = take_hook();
        set_hook(Box::new(move |panic| {
            if !IS_QUIET.get() {
                tell(panic);
            }
        }));
    });
    let before = IS_QUIET.replace(true);
    // Whoever calls this knows what a panic leaves half done.
    let given = catch_unwind(AssertUnwindSafe(act));
    IS_QUIET.set(before);
    given.ok()
}
