//! What becomes of compiles when the process ends.
//!
//! `exit`, which a `main` that returns comes to, destroys libLLVM's static objects while other threads go on. One that
//! compiles then works with what is gone, and ends the process in its own way ("pure virtual method called", a signal;
//! llvm/llvm-project#132452). So a handler is registered (`atexit`) that comes before the destructors: from there on
//! nothing is compiled any more, and compiles under way have [`GRACE`] to come to their end. What is then still in LLVM is
//! parked where it is (`park.rs`), and whoever waits for it is told. The program ends with the status that it gave. What is
//! no compile, or has its result already, is not parked but ends by itself, and is waited for longer ([`SOON`]).
//!
//! The handler waits for no more than [`GRACE`], [`PARKING`] and [`SOON`] together, so it comes to its end wherever `exit` was called:
//! in a hook, whose compile is the thread's own and is not waited for, or on a thread that a hook waits for. What is in a
//! hook for longer, or cannot be parked, goes on at its own risk. A child of `fork` has none of its parent's compiles.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex, MutexGuard};

use super::park::park;

/// How long compiles under way may take until they are parked. Those of most kernels take less.
const GRACE: Duration = Duration::from_millis(200);

/// How long it is tried to park those that take longer, all together.
const PARKING: Duration = Duration::from_secs(1);

/// How long what ends by itself may take besides. It takes milliseconds where a processor is free for it.
const SOON: Duration = Duration::from_secs(5);

/// How long a compile that is given up waits for its turn to be parked.
const TURN: Duration = Duration::from_secs(60);

/// The compiles of this process.
static COMPILES: Mutex<Compiles> = Mutex::new(Compiles {
    is_ending: false,
    begun: 0,
    under_way: Vec::new(),
});

/// Tells the handler that a compile is at its end.
static ONE_LESS: Condvar = Condvar::new();

/// Whether the time is over that compiles have at the process's end.
static IS_OVER: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// The number of the compile that this thread does, 0 if none. It needs no destructor, so that the handler finds it
    /// where the thread's other variables are gone.
    static OWN: Cell<u64> = const { Cell::new(0) };
}

struct Compiles {
    is_ending: bool,
    /// How many were begun, which gives each its number.
    begun: u64,
    under_way: Vec<UnderWay>,
}

struct UnderWay {
    number: u64,
    /// The process that has begun it; its children have no such thread.
    process: u32,
    /// The thread, if it is one of its own and nobody waits for its end.
    thread: Option<JoinHandle<()>>,
    /// Set of what ends by itself: of no compile, and of one that has its result.
    ends_soon: bool,
    /// Tells who waits for the compile that there will be nothing.
    give_up: Box<dyn Fn() + Send>,
}

impl UnderWay {
    /// Whether the compile's thread may still come to LLVM.
    fn is_busy(&self) -> bool {
        let is_at_its_end = self.thread.as_ref().is_some_and(JoinHandle::is_finished);
        self.number != OWN.get() && self.process == std::process::id() && !is_at_its_end
    }
}

/// Has the process's end wait for something with libLLVM that is no compile; `None` if the process ends already.
pub(super) fn unless_ending<R>(work: impl FnOnce() -> R) -> Option<R> {
    let begun = {
        let mut compiles = COMPILES.lock();
        if compiles.is_ending {
            return None;
        }
        compiles.add(None, || ())
    };
    let result = work();
    begun.leave();
    Some(result)
}

/// Why a compile was not begun.
pub(super) enum NotBegun {
    /// The process ends.
    Ending,
    /// The system gave no thread.
    Thread(std::io::Error),
}

/// A compile that was begun. It is under way until it is joined or left.
pub(super) struct Begun(u64);

/// Begins a compile on a thread of its own. `give_up` tells who waits for it that it was stopped.
///
/// # Errors
/// The process ends, or there is no thread.
pub(super) fn begin(
    builder: thread::Builder,
    work: impl FnOnce() + Send + 'static,
    give_up: impl Fn() + Send + 'static,
) -> Result<Begun, NotBegun> {
    let mut compiles = COMPILES.lock();
    if compiles.is_ending {
        return Err(NotBegun::Ending);
    }
    let number = compiles.begun + 1;
    let thread = builder.spawn(move || {
        OWN.set(number);
        work();
    });
    let thread = thread.map_err(NotBegun::Thread)?;
    Ok(compiles.add(Some(thread), give_up))
}

impl Compiles {
    /// One more that is under way, of the next number.
    fn add(
        &mut self,
        thread: Option<JoinHandle<()>>,
        give_up: impl Fn() + Send + 'static,
    ) -> Begun {
        self.begun += 1;
        self.under_way.push(UnderWay {
            number: self.begun,
            process: std::process::id(),
            ends_soon: thread.is_none(),
            thread,
            give_up: Box::new(give_up),
        });
        Begun(self.begun)
    }
}

impl Begun {
    /// Waits until the thread is at its end, if nobody has parked it.
    pub(super) fn join(self) {
        let thread = of(&mut COMPILES.lock(), self.0).and_then(|compile| {
            compile.ends_soon = true;
            compile.thread.take()
        });
        if let Some(thread) = thread {
            // A panic was caught on the thread.
            let _ = thread.join();
        }
        self.leave();
    }

    /// Leaves the thread where it is: parked, or with nothing more to do with LLVM.
    pub(super) fn leave(self) {
        let mut compiles = COMPILES.lock();
        compiles
            .under_way
            .retain(|compile| compile.number != self.0);
        drop(compiles);
        ONE_LESS.notify_all();
    }

    /// Parks the thread; whether it was parked, or has come to its end, within so long from its turn on: one that stays
    /// in a hook takes all of its own time, and none of the others'. One that goes on stays under way.
    pub(super) fn park(self, within: Duration) -> bool {
        let Some(thread) = self.thread() else {
            return true;
        };
        let is_parked = park(&thread, TURN, || Instant::now() + within);
        if is_parked {
            self.leave();
        } else if let Some(compile) = of(&mut COMPILES.lock(), self.0) {
            compile.thread = Some(thread);
        }
        is_parked
    }

    fn thread(&self) -> Option<JoinHandle<()>> {
        of(&mut COMPILES.lock(), self.0)?.thread.take()
    }
}

/// The compile of a number.
fn of(compiles: &mut Compiles, number: u64) -> Option<&mut UnderWay> {
    let mut under_way = compiles.under_way.iter_mut();
    under_way.find(|compile| compile.number == number)
}

/// Has the process end compiles before it destroys what was made so far. To be called before libLLVM is opened, since
/// a process may end meanwhile, and once it is.
pub(super) fn register() {
    #[cfg(unix)]
    {
        // SAFETY: the function needs nothing that goes before the process does. Without memory for it none is registered.
        let _ = unsafe { libc::atexit(end) };
    }
}

/// What the process does at its end, once.
#[cfg(unix)]
extern "C" fn end() {
    let until = Instant::now() + GRACE;
    // Whoever has the list has it for a moment, but for a parent of `fork`.
    let Some(mut compiles) = COMPILES.try_lock_until(until) else {
        return;
    };
    if std::mem::replace(&mut compiles.is_ending, true) {
        return;
    }
    wait_while(&mut compiles, until, UnderWay::is_busy);
    IS_OVER.store(true, Ordering::Release);
    let until = Instant::now() + PARKING;
    for compile in compiles
        .under_way
        .iter_mut()
        .filter(|compile| compile.is_busy())
    {
        let Some(thread) = &compile.thread else {
            continue;
        };
        let rest = until.saturating_duration_since(Instant::now());
        if park(thread, rest, || until) {
            // Nobody waits for its end.
            compile.thread = None;
        }
        (compile.give_up)();
    }
    let ends = |compile: &UnderWay| compile.ends_soon && compile.is_busy();
    wait_while(&mut compiles, Instant::now() + SOON, ends);
}

/// Waits while any that is under way is so, or until a time.
#[cfg(unix)]
fn wait_while(
    compiles: &mut MutexGuard<'_, Compiles>,
    until: Instant,
    is_so: impl Fn(&UnderWay) -> bool,
) {
    while compiles.under_way.iter().any(&is_so) {
        if ONE_LESS.wait_until(compiles, until).timed_out() {
            return;
        }
    }
}

/// Keeps a compile's thread from coming back to LLVM once the process ends. To be called where it holds nothing of others'.
pub(super) fn stay_if_over() {
    while IS_OVER.load(Ordering::Acquire) && OWN.get() != 0 {
        thread::park();
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    /// Longer than compiles are waited for, as it cannot be parked; a compile itself is not.
    #[test]
    fn what_ends_by_itself_is_waited_for() {
        static LIST: Mutex<Compiles> = Mutex::new(Compiles {
            is_ending: false,
            begun: 0,
            under_way: Vec::new(),
        });
        let ends = |compile: &UnderWay| compile.ends_soon && compile.is_busy();
        let mut list = LIST.lock();
        let compile = thread::spawn(|| thread::park_timeout(Duration::from_secs(60)));
        let stays = compile.thread().clone();
        list.add(Some(compile), || ());
        assert!(!list.under_way.iter().any(ends), "it would be waited for");
        let ending = list.add(None, || ()).0;
        let work = thread::spawn(move || {
            thread::sleep(2 * GRACE);
            LIST.lock().under_way.retain(|work| work.number != ending);
            ONE_LESS.notify_all();
        });
        wait_while(&mut list, Instant::now() + SOON, ends);
        assert_eq!(list.under_way.len(), 1);
        drop(list);
        stays.unpark();
        work.join().expect("it does not panic");
    }
}
