//! Counts instructions by stepping through them: unlike time, that does not depend on what else the
//! machine does.
//!
//! With its trap flag set, a thread gets a signal after each instruction. The handler counts those that
//! are asked for.
#![allow(dead_code, reason = "each bench uses a part of it")]

/// What counting can fail with.
pub type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

/// Which instructions are counted.
#[derive(Copy, Clone, PartialEq, Eq)]
pub enum Counted {
    /// Those in executable memory of no file, which is what Kiln has compiled, on whichever thread.
    CompiledCode,
    /// All of the calling thread but those of the CUDA driver's library and of what it calls, and those that counting
    /// itself takes.
    ThisThread,
}

/// Instructions of one run.
///
/// # Errors
/// The run's own, and that this is no machine to count on.
pub fn count(counted: Counted, run: &mut dyn FnMut() -> Outcome<()>) -> Outcome<u64> {
    #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
    return match counted {
        Counted::CompiledCode => Ok(system::count(counted, run)?.all),
        Counted::ThisThread => {
            let around = system::count(counted, &mut || Ok(()))?;
            Ok(system::count(counted, run)?.all.saturating_sub(around.all))
        }
    };
    #[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
    return {
        let _ = (counted, run);
        Err(format!("{} cannot be stepped through", std::env::consts::ARCH).into())
    };
}

/// The instructions of a call to the driver by this thread, by where they are.
#[derive(Copy, Clone, Default, Debug)]
pub struct Parts {
    /// Before [`mark`] is called the first time.
    pub before: u64,
    /// From there to the driver's last function that is called.
    pub there: u64,
    /// From that function's return until [`mark`] is called again.
    pub back: u64,
    /// Behind that.
    pub behind: u64,
}

/// Says where the call begins and where it has ended. What the pointer is to has its values before.
#[inline(never)]
pub extern "C" fn mark(what: *const ()) {
    std::hint::black_box(what);
}

/// [`count`] by parts, without those of a run that does nothing between its marks.
///
/// # Errors
/// As [`count`]; a run without two marks or without a call to the driver.
pub fn parts(run: &mut dyn FnMut() -> Outcome<()>) -> Outcome<Parts> {
    #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
    return {
        let mut nothing: Box<dyn FnMut() -> Outcome<()>> = Box::new(|| {
            mark(std::ptr::null());
            mark(std::ptr::null());
            Ok(())
        });
        let around = system::count(Counted::ThisThread, &mut nothing)?;
        let counts = system::count(Counted::ThisThread, run)?;
        let ([begun, done], Some(driver)) = (counts.marks, counts.driver) else {
            return Err("no call to the driver".into());
        };
        if !(0 < begun && begun <= driver && driver <= done) {
            return Err("no marks around a call to the driver".into());
        }
        let less = |count: u64, of: u64| count.saturating_sub(of);
        Ok(Parts {
            before: less(begun, around.marks[0]),
            there: less(driver - begun, around.marks[1] - around.marks[0]),
            back: done - driver,
            behind: less(counts.all - done, around.all - around.marks[1]),
        })
    };
    #[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
    return {
        let _ = run;
        Err(format!("{} cannot be stepped through", std::env::consts::ARCH).into())
    };
}

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod system {
    use std::ffi::{c_int, c_long, c_void};
    use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

    use super::{Counted, Outcome};

    const SIGTRAP: c_int = 5;
    /// `SA_SIGINFO` and `SA_RESTART`.
    const FLAGS: c_int = 0x4 | 0x1000_0000;
    /// What the files of drivers' libraries begin with, those of tests among them.
    const DRIVERS: [&str; 2] = ["/libcuda", "/fake-cuda-"];
    /// The system call that sends a signal to one thread.
    const TGKILL: c_long = 234;
    /// The system call that tells the calling thread's number.
    const GETTID: c_long = 186;

    /// Where a `ucontext_t` has the instruction's address and the flags: behind 40 bytes, the
    /// seventeenth and eighteenth of the registers.
    const INSTRUCTION: usize = 40 + 16 * 8;
    const FLAGS_REGISTER: usize = INSTRUCTION + 8;
    /// The sixteenth has the address of the stack's end.
    const STACK: usize = 40 + 15 * 8;
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
    /// Whether what lies in [`PLACES`] is counted, or everything else.
    static INSIDE: AtomicBool = AtomicBool::new(true);
    /// The stack's end at the first instruction of the library that is left out, until it has returned; else 0.
    static LEFT_AT: AtomicUsize = AtomicUsize::new(0);
    /// What was counted when [`super::mark`] was called first and last.
    static MARKS: [AtomicU64; 2] = [const { AtomicU64::new(0) }; 2];
    /// What was counted when the library that is left out was called last.
    static CALLED: AtomicU64 = AtomicU64::new(u64::MAX);
    /// Starts and ends of executable memory; the rest is 0.
    static PLACES: [[AtomicUsize; 2]; 64] = [const { [const { AtomicUsize::new(0) }; 2] }; 64];

    extern "C" fn on_step(_: c_int, _: *const c_void, context: *mut u8) {
        // SAFETY: the system hands the handler a `ucontext_t`, in which the registers lie there.
        let (at, stack, flags) = unsafe {
            let read = |register| context.add(register).cast::<usize>().read_unaligned();
            let flags = context.add(FLAGS_REGISTER).cast::<u64>();
            (read(INSTRUCTION), read(STACK), flags)
        };
        let steps = STEPPING.load(Ordering::Relaxed);
        let load = |at: &AtomicUsize| at.load(Ordering::Relaxed);
        let mut ranges = PLACES.iter().take_while(|[_, end]| load(end) != 0);
        let inside = ranges.any(|[start, end]| (load(start)..load(end)).contains(&at));
        let is_counted = match INSIDE.load(Ordering::Relaxed) {
            true => inside,
            false => is_outside(inside, stack),
        };
        if steps && is_counted {
            let counted = COUNT.fetch_add(1, Ordering::Relaxed);
            if at == super::mark as *const () as usize {
                let is_first = MARKS[0].load(Ordering::Relaxed) == 0;
                MARKS[usize::from(!is_first)].store(counted, Ordering::Relaxed);
            }
        }
        // SAFETY: as above; the thread goes on with these flags.
        unsafe {
            let others = flags.read_unaligned() & !TRAP;
            flags.write_unaligned(others | if steps { TRAP } else { 0 });
        }
    }

    /// Whether an instruction is neither of what is left out nor of what that calls, which returns with the stack as
    /// it was before it.
    fn is_outside(inside: bool, stack: usize) -> bool {
        let left_at = LEFT_AT.load(Ordering::Relaxed);
        if left_at != 0 && stack <= left_at {
            return false;
        }
        LEFT_AT.store(if inside { stack } else { 0 }, Ordering::Relaxed);
        if inside {
            CALLED.store(COUNT.load(Ordering::Relaxed), Ordering::Relaxed);
        }
        !inside
    }

    /// What was counted.
    pub(super) struct Counts {
        pub(super) all: u64,
        pub(super) marks: [u64; 2],
        pub(super) driver: Option<u64>,
    }

    pub(super) fn count(counted: Counted, run: &mut dyn FnMut() -> Outcome<()>) -> Outcome<Counts> {
        note_places(counted)?;
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
        MARKS
            .iter()
            .for_each(|mark| mark.store(0, Ordering::Relaxed));
        CALLED.store(u64::MAX, Ordering::Relaxed);
        STEPPING.store(true, Ordering::SeqCst);
        for thread in threads(counted)? {
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
        let result = run();
        // Each thread stops stepping at its next instruction.
        STEPPING.store(false, Ordering::SeqCst);
        let load = |count: &AtomicU64| count.load(Ordering::Relaxed);
        result.map(|()| Counts {
            all: load(&COUNT),
            marks: [load(&MARKS[0]), load(&MARKS[1])],
            driver: Some(load(&CALLED)).filter(|called| *called != u64::MAX),
        })
    }

    /// The threads to be stepped through.
    fn threads(counted: Counted) -> Outcome<Vec<c_long>> {
        if counted == Counted::ThisThread {
            // SAFETY: it takes no arguments.
            return Ok(vec![unsafe { syscall(GETTID) }]);
        }
        let mut threads = Vec::new();
        for task in std::fs::read_dir("/proc/self/task")? {
            threads.push(task?.file_name().to_string_lossy().parse()?);
        }
        Ok(threads)
    }

    /// Notes the executable memory that is counted, or that is left out.
    fn note_places(counted: Counted) -> Outcome<()> {
        let inside = counted == Counted::CompiledCode;
        INSIDE.store(inside, Ordering::Relaxed);
        let maps = std::fs::read_to_string("/proc/self/maps")?;
        let mut places = PLACES.iter();
        for line in maps.lines() {
            let mut words = line.split_whitespace();
            let (range, rights, file) = (words.next(), words.next(), words.nth(3));
            let is_noted = match file {
                None => inside,
                Some(file) => !inside && DRIVERS.iter().any(|name| file.contains(name)),
            };
            let range = range.filter(|_| is_noted && rights.is_some_and(|r| r.contains('x')));
            let Some((start, end)) = range.and_then(|range| range.split_once('-')) else {
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
