//! Stops a compile that was given up.
//!
//! LLVM looks at no flag while a pass runs, and a thread cannot be ended from outside without what it
//! holds. So its thread is parked where it is: it gets a signal, in whose handler it sleeps for good. It
//! does so only where the signal meets it in code of libLLVM itself; in the allocator or another library
//! it may hold a lock that others need, so there it goes on and is asked again a little later.
//!
//! Parked for good it keeps its memory, and locks of libLLVM's own if it was met while it held one, as
//! where something static is made: a compile that needs such a lock waits and is given up in its turn.
//! Nothing of a hook's is held: while one runs, its thread is not parked, be it in libLLVM or not.

use std::cell::Cell;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::ending::stay_if_over;

thread_local! {
    /// How many hooks are running on this thread, one within the other. A compile thread has it before a
    /// signal can look at it, as there its memory could not be had.
    static HOOKS: Cell<u32> = const { Cell::new(0) };
}

/// Runs a hook, during which the thread is not parked: its locks and files are the program's.
pub fn in_hook<R>(hook: impl FnOnce() -> R) -> R {
    struct Leaves;
    impl Drop for Leaves {
        fn drop(&mut self) {
            HOOKS.set(HOOKS.get() - 1);
            if HOOKS.get() == 0 {
                stay_if_over();
            }
        }
    }
    HOOKS.set(HOOKS.get() + 1);
    let _leaves = Leaves;
    hook()
}

/// Parks a thread once it is in libLLVM's code; whether it was parked, or has come to its end. One thread at a time is
/// parked: this one waits so long for its turn, and `until`, which is asked then, says how long it is tried.
pub(super) fn park(
    thread: &JoinHandle<()>,
    turn: Duration,
    until: impl FnOnce() -> Instant,
) -> bool {
    #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
    return system::park(thread, turn, until);
    #[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
    {
        let _ = (turn, until);
        thread.is_finished()
    }
}

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod system {
    use std::ffi::{c_int, c_ulong, c_void};
    use std::mem::MaybeUninit;
    use std::os::unix::thread::JoinHandleExt as _;
    use std::ptr;
    use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
    use std::thread::{self, JoinHandle};
    use std::time::{Duration, Instant};

    use parking_lot::Mutex;

    use super::HOOKS;
    use crate::llvm::library::library;

    /// `SIGURG`: ignored unless a program asks for it, so that one that comes late does no harm.
    const SIGNAL: c_int = 23;

    /// `SA_SIGINFO`, `SA_RESTART`, and `SA_ONSTACK`: a thread may have little stack left.
    const FLAGS: c_int = 0x4 | 0x1000_0000 | 0x0800_0000;

    /// `SIG_DFL` and `SIG_IGN`.
    const NOBODYS: [usize; 2] = [0, 1];

    /// How long after a thread was asked it is looked at.
    const PAUSE: Duration = Duration::from_millis(2);

    /// Where a `ucontext_t` says which instruction the signal met: behind flags, link and stack, the
    /// seventeenth of the registers.
    const INSTRUCTION: usize = 40 + 16 * 8;

    /// A `struct sigaction` of the C library.
    #[repr(C)]
    struct Action {
        handler: usize,
        mask: [u64; 16],
        flags: c_int,
        restorer: usize,
    }

    // SAFETY: functions of the C library that Rust links, with its signatures (sigaction(2),
    // pthread_kill(3), pthread_self(3), pause(2), sigfillset(3)); a `pthread_t` is a number of this size.
    unsafe extern "C" {
        fn sigaction(signal: c_int, new: *const Action, old: *mut Action) -> c_int;
        fn pthread_kill(thread: c_ulong, signal: c_int) -> c_int;
        fn pthread_self() -> c_ulong;
        fn pause() -> c_int;
        fn sigfillset(set: *mut [u64; 16]) -> c_int;
    }

    /// Who is to park; 0 if nobody, [`PARKED`] once it does. Whoever changes it first, the thread or who
    /// waits for it, has decided.
    static WANTED: AtomicU64 = AtomicU64::new(0);
    const PARKED: u64 = u64::MAX;
    /// The handler is this process's, and one thread at a time is wanted.
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    /// The code of libLLVM.
    static START: AtomicUsize = AtomicUsize::new(0);
    static END: AtomicUsize = AtomicUsize::new(0);

    /// What runs where the signal meets a thread. It may do only what a signal's handler may.
    extern "C" fn on_signal(_: c_int, _: *const c_void, context: *const u8) {
        // SAFETY: asks for the current thread.
        let this = unsafe { pthread_self() };
        if WANTED.load(Ordering::Acquire) != this || HOOKS.get() != 0 {
            return;
        }
        // SAFETY: the system hands the handler a `ucontext_t`, in which that register lies there.
        let at = unsafe { context.add(INSTRUCTION).cast::<usize>().read_unaligned() };
        if !(START.load(Ordering::Relaxed)..END.load(Ordering::Relaxed)).contains(&at) {
            return;
        }
        let decided = WANTED.compare_exchange(this, PARKED, Ordering::AcqRel, Ordering::Relaxed);
        while decided.is_ok() {
            // SAFETY: waits for a signal. While the handler runs all are blocked but those that the C
            // library itself stops every thread with, as for `setuid`.
            unsafe { pause() };
        }
    }

    pub(super) fn park(
        thread: &JoinHandle<()>,
        turn: Duration,
        until: impl FnOnce() -> Instant,
    ) -> bool {
        // In a child of `fork` whoever had it may not be there any more.
        let Some(_guard) = ONE_AT_A_TIME.try_lock_for(turn) else {
            return thread.is_finished();
        };
        let until = until();
        let Some((start, end)) = code_of_library() else {
            return false;
        };
        START.store(start, Ordering::Relaxed);
        END.store(end, Ordering::Relaxed);
        let Some(before) = listen() else {
            return false;
        };
        let id = thread.as_pthread_t();
        WANTED.store(id, Ordering::Release);
        loop {
            // SAFETY: the thread has not been joined, so its number is its own.
            unsafe { pthread_kill(id, SIGNAL) };
            thread::sleep(PAUSE);
            let is_settled = WANTED.load(Ordering::Acquire) == PARKED || thread.is_finished();
            if is_settled || Instant::now() >= until {
                break;
            }
        }
        let is_parked = WANTED.swap(0, Ordering::AcqRel) == PARKED;
        restore(&before);
        is_parked || thread.is_finished()
    }

    /// Puts back what was in place before, unless the program has put a handler of its own there.
    fn restore(before: &Action) {
        let mut current = MaybeUninit::<Action>::uninit();
        // SAFETY: what was in place before is put there, and what is there is written to `current`.
        unsafe {
            if sigaction(SIGNAL, before, current.as_mut_ptr()) == 0
                && current.assume_init_ref().handler != on_signal as *const () as usize
            {
                sigaction(SIGNAL, current.as_ptr(), ptr::null_mut());
            }
        }
    }

    /// Puts the handler in place, unless the program has one for the signal; gives what was there.
    fn listen() -> Option<Action> {
        let mut ours = Action {
            handler: on_signal as *const () as usize,
            mask: [0; 16],
            flags: FLAGS,
            restorer: 0,
        };
        // All but those that the C library keeps for itself. With these blocked for good, the next
        // `setuid` of the process would wait for the parked thread for ever.
        // SAFETY: a set of signals is that large.
        unsafe { sigfillset(&raw mut ours.mask) };
        let mut before = MaybeUninit::<Action>::uninit();
        // SAFETY: without a new action the old one is written, and nothing changed.
        if unsafe { sigaction(SIGNAL, ptr::null(), before.as_mut_ptr()) } != 0 {
            return None;
        }
        // SAFETY: it was written.
        let before = unsafe { before.assume_init() };
        if !NOBODYS.contains(&before.handler) {
            return None;
        }
        // SAFETY: the handler has the signature that `SA_SIGINFO` asks for and is never unloaded while it
        // is in place.
        let set = unsafe { sigaction(SIGNAL, &raw const ours, ptr::null_mut()) };
        (set == 0).then_some(before)
    }

    /// Where the code of libLLVM lies, from the system's list of what is mapped.
    fn code_of_library() -> Option<(usize, usize)> {
        let path = library().ok()?.path.canonicalize().ok()?;
        let path = path.to_str()?;
        let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
        let ranges = maps.lines().filter_map(|line| {
            let mut words = line.split_whitespace();
            let (range, rights) = (words.next()?, words.next()?);
            // The path is the last of a line and may hold blanks.
            let mapped = line.find('/').map(|at| &line[at..]);
            if !rights.contains('x') || mapped != Some(path) {
                return None;
            }
            let (start, end) = range.split_once('-')?;
            let number = |text| usize::from_str_radix(text, 16).ok();
            Some((number(start)?, number(end)?))
        });
        // A library that was laid out anew has its code in several places, and nobody else's lies between them.
        ranges.reduce(|(start, _), (_, end)| (start, end))
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        /// As a process that ends has to while somebody else is parked, or was when it was forked.
        #[test]
        fn a_turn_that_does_not_come_is_given_up() {
            let _guard = ONE_AT_A_TIME.lock();
            let thread = thread::spawn(|| thread::park_timeout(Duration::from_secs(60)));
            let asked = || panic!("it is not its turn");
            assert!(!park(&thread, Duration::from_millis(10), asked));
            thread.thread().unpark();
        }

        extern "C" fn of_the_program(_: c_int, _: *const c_void, _: *const u8) {}

        #[test]
        fn a_handler_that_the_program_puts_in_place_meanwhile_stays() {
            let _guard = ONE_AT_A_TIME.lock();
            let before = listen().expect("nobody listens");
            assert!(listen().is_none(), "one that is there is left alone");
            let theirs = Action {
                handler: of_the_program as *const () as usize,
                mask: [0; 16],
                flags: FLAGS,
                restorer: 0,
            };
            let mut current = MaybeUninit::<Action>::uninit();
            // SAFETY: the handler has the signature, and the old action is written.
            let current = unsafe {
                sigaction(SIGNAL, &raw const theirs, ptr::null_mut());
                restore(&before);
                sigaction(SIGNAL, &raw const before, current.as_mut_ptr());
                current.assume_init()
            };
            assert_eq!(current.handler, theirs.handler);
        }
    }
}
