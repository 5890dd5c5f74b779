//! Stops a compile that was given up.
//!
//! LLVM looks at no flag while a pass runs, and a thread cannot be ended from outside without what it
//! holds. So its thread is parked where it is: it gets a signal, in whose handler it sleeps for good. It
//! does so only where the signal meets it in code of libLLVM itself; in the allocator or another library
//! it may hold a lock that others need, so there it goes on and is asked again a little later.
//!
//! Parked for good it keeps its memory. Code of a hook is never stopped.

use std::thread::JoinHandle;

/// Parks a thread once it is in libLLVM's code; whether it was parked, or has come to its end, in the time
/// that there is.
pub(super) fn park(thread: &JoinHandle<()>) -> bool {
    #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
    return system::park(thread);
    #[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
    return thread.is_finished();
}

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod system {
    use std::ffi::{c_int, c_ulong, c_void};
    use std::mem::MaybeUninit;
    use std::os::unix::thread::JoinHandleExt as _;
    use std::ptr;
    use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
    use std::thread::{self, JoinHandle};
    use std::time::Duration;

    use parking_lot::Mutex;

    use crate::codegen::library::library;

    /// `SIGURG`: ignored unless a program asks for it, so that one that comes late does no harm.
    const SIGNAL: c_int = 23;

    /// `SA_SIGINFO` and `SA_RESTART`.
    const FLAGS: c_int = 0x4 | 0x1000_0000;

    /// `SIG_DFL` and `SIG_IGN`.
    const NOBODYS: [usize; 2] = [0, 1];

    /// How often a thread is asked, and how long after each time it is looked at.
    const TIMES: u32 = 1000;
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
    // pthread_kill(3), pthread_self(3), pause(2)); a `pthread_t` is a number of this size.
    unsafe extern "C" {
        fn sigaction(signal: c_int, new: *const Action, old: *mut Action) -> c_int;
        fn pthread_kill(thread: c_ulong, signal: c_int) -> c_int;
        fn pthread_self() -> c_ulong;
        fn pause() -> c_int;
    }

    /// Who is to park; 0 if nobody.
    static WANTED: AtomicU64 = AtomicU64::new(0);
    static PARKED: AtomicBool = AtomicBool::new(false);
    /// The code of libLLVM.
    static START: AtomicUsize = AtomicUsize::new(0);
    static END: AtomicUsize = AtomicUsize::new(0);

    /// What runs where the signal meets a thread. It may do only what a signal's handler may.
    extern "C" fn on_signal(_: c_int, _: *const c_void, context: *const u8) {
        // SAFETY: asks for the current thread.
        if WANTED.load(Ordering::Acquire) != unsafe { pthread_self() } {
            return;
        }
        // SAFETY: the system hands the handler a `ucontext_t`, in which that register lies there.
        let at = unsafe { context.add(INSTRUCTION).cast::<usize>().read_unaligned() };
        if !(START.load(Ordering::Relaxed)..END.load(Ordering::Relaxed)).contains(&at) {
            return;
        }
        PARKED.store(true, Ordering::Release);
        loop {
            // SAFETY: waits for a signal; all of them are blocked while the handler runs.
            unsafe { pause() };
        }
    }

    pub(super) fn park(thread: &JoinHandle<()>) -> bool {
        static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
        let _guard = ONE_AT_A_TIME.lock();
        let Some((start, end)) = code_of_library() else {
            return false;
        };
        START.store(start, Ordering::Relaxed);
        END.store(end, Ordering::Relaxed);
        PARKED.store(false, Ordering::Relaxed);
        let Some(before) = listen() else {
            return false;
        };
        let id = thread.as_pthread_t();
        WANTED.store(id, Ordering::Release);
        let stopped = || PARKED.load(Ordering::Acquire) || thread.is_finished();
        for _ in 0..TIMES {
            // SAFETY: the thread has not been joined, so its number is its own.
            unsafe { pthread_kill(id, SIGNAL) };
            thread::sleep(PAUSE);
            if stopped() {
                break;
            }
        }
        WANTED.store(0, Ordering::Release);
        // A handler that was entered before decides now.
        thread::sleep(PAUSE);
        // SAFETY: what was in place before.
        unsafe { sigaction(SIGNAL, &raw const before, ptr::null_mut()) };
        stopped()
    }

    /// Puts the handler in place, unless the program has one for the signal; gives what was there.
    fn listen() -> Option<Action> {
        let ours = Action {
            handler: on_signal as *const () as usize,
            mask: [u64::MAX; 16],
            flags: FLAGS,
            restorer: 0,
        };
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
        maps.lines().find_map(|line| {
            let mut words = line.split_whitespace();
            let (range, rights) = (words.next()?, words.next()?);
            if !rights.contains('x') || !line.ends_with(path) {
                return None;
            }
            let (start, end) = range.split_once('-')?;
            let number = |text| usize::from_str_radix(text, 16).ok();
            Some((number(start)?, number(end)?))
        })
    }
}
