//! Counts the instructions that compiled kernels execute, by stepping through them: unlike time, that
//! does not depend on what else the machine does.
//!
//! With its trap flag set, a thread gets a signal after each instruction. The handler counts those that
//! lie in executable memory of no file, which is what Kiln has compiled, on whichever thread.

use crate::ours::{Outcome, Workload};

/// Instructions of compiled code in one run, launches and workers left out.
///
/// # Errors
/// The run's own, and that this is no machine to count on.
pub fn count(workload: &mut dyn Workload) -> Outcome<u64> {
    #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
    return system::count(workload);
    #[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
    return Err(format!("{} cannot be stepped through", std::env::consts::ARCH).into());
}

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod system {
    use std::ffi::{c_int, c_long, c_void};
    use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

    use super::{Outcome, Workload};

    const SIGTRAP: c_int = 5;
    /// `SA_SIGINFO` and `SA_RESTART`.
    const FLAGS: c_int = 0x4 | 0x1000_0000;
    /// The system call that sends a signal to one thread.
    const TGKILL: c_long = 234;

    /// Where a `ucontext_t` has the instruction's address and the flags: behind 40 bytes, the
    /// seventeenth and eighteenth of the registers.
    const INSTRUCTION: usize = 40 + 16 * 8;
    const FLAGS_REGISTER: usize = INSTRUCTION + 8;
    /// The trap flag.
    const TRAP: u64 = 1 << 8;

    /// A `struct sigaction` of the C library.
    #[repr(C)]
    struct Action {
        handler: usize,
        mask: [u64; 16],
        flags: c_int,
        restorer: usize,
    }

    // SAFETY: functions of the C library that Rust links, with its signatures (sigaction(2), syscall(2)).
    unsafe extern "C" {
        fn sigaction(signal: c_int, new: *const Action, old: *mut Action) -> c_int;
        fn syscall(number: c_long, ...) -> c_long;
    }

    static STEPPING: AtomicBool = AtomicBool::new(false);
    static COUNT: AtomicU64 = AtomicU64::new(0);
    /// Starts and ends of executable memory of no file; the rest is 0.
    static CODE: [[AtomicUsize; 2]; 64] = [const { [const { AtomicUsize::new(0) }; 2] }; 64];

    extern "C" fn on_step(_: c_int, _: *const c_void, context: *mut u8) {
        // SAFETY: the system hands the handler a `ucontext_t`, in which the registers lie there.
        let (at, flags) = unsafe {
            let at = context.add(INSTRUCTION).cast::<usize>().read_unaligned();
            (at, context.add(FLAGS_REGISTER).cast::<u64>())
        };
        let steps = STEPPING.load(Ordering::Relaxed);
        let load = |at: &AtomicUsize| at.load(Ordering::Relaxed);
        let mut ranges = CODE.iter().take_while(|[_, end]| load(end) != 0);
        if steps && ranges.any(|[start, end]| (load(start)..load(end)).contains(&at)) {
            COUNT.fetch_add(1, Ordering::Relaxed);
        }
        // SAFETY: as above; the thread goes on with these flags.
        unsafe {
            let others = flags.read_unaligned() & !TRAP;
            flags.write_unaligned(others | if steps { TRAP } else { 0 });
        }
    }

    pub(super) fn count(workload: &mut dyn Workload) -> Outcome<u64> {
        note_code()?;
        let action = Action {
            handler: on_step as *const () as usize,
            mask: [0; 16],
            flags: FLAGS,
            restorer: 0,
        };
        // SAFETY: the handler has the signature that `SA_SIGINFO` asks for.
        if unsafe { sigaction(SIGTRAP, &raw const action, std::ptr::null_mut()) } != 0 {
            return Err(std::io::Error::last_os_error().into());
        }
        COUNT.store(0, Ordering::Relaxed);
        STEPPING.store(true, Ordering::SeqCst);
        for task in std::fs::read_dir("/proc/self/task")? {
            let name = task?.file_name();
            let thread: c_long = name.to_string_lossy().parse()?;
            // SAFETY: its handler is in place.
            unsafe {
                syscall(
                    TGKILL,
                    c_long::from(std::process::id()),
                    thread,
                    c_long::from(SIGTRAP),
                )
            };
        }
        let result = workload.run();
        // Each thread stops stepping at its next instruction.
        STEPPING.store(false, Ordering::SeqCst);
        result.map(|()| COUNT.load(Ordering::Relaxed))
    }

    /// Notes where there is executable memory of no file.
    fn note_code() -> Outcome<()> {
        let maps = std::fs::read_to_string("/proc/self/maps")?;
        let mut places = CODE.iter();
        for line in maps.lines() {
            let words: Vec<&str> = line.split_whitespace().collect();
            let &[range, rights, _, _, "0"] = words.as_slice() else {
                continue;
            };
            let (true, Some((start, end))) = (rights.contains('x'), range.split_once('-')) else {
                continue;
            };
            let [first, last] = places.next().ok_or("too many pieces of code")?;
            first.store(usize::from_str_radix(start, 16)?, Ordering::Relaxed);
            last.store(usize::from_str_radix(end, 16)?, Ordering::Relaxed);
        }
        for [_, last] in places {
            last.store(0, Ordering::Relaxed);
        }
        Ok(())
    }
}
