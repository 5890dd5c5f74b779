//! One thread of a block: a coroutine, and the function that its code calls.
//!
//! The code calls [`operate`] for everything that only a GPU has. What concerns the thread alone is
//! done there; for the rest it is left with a [`Wish`], and the block decides when it goes on.

use std::cell::Cell;
use std::ptr;

use corosensei::stack::DefaultStack;
use corosensei::{Coroutine, CoroutineResult, Yielder};

use kiln_ir::ThreadPosition;
use kiln_ir::gpu_on_host::{Operation, Site};

use super::access::perform;
use super::block::BlockRun;

/// The most arguments of an operation of a warp.
pub(super) const MAX_ARGS: usize = 8;

/// Turns of loops after which another thread has its turn: one that waits for what another does
/// must let it do so.
const TURNS_AT_A_TIME: u32 = 64;

/// The turns that a thread has at most. Kernels of tests have far fewer, as the interpreter runs
/// them, too.
const MAX_TURNS: u32 = 1_000_000;

/// What a thread waits for.
#[derive(Copy, Clone, Debug)]
pub(super) enum Wish {
    /// To go on at any time.
    GoOn,
    /// The other threads of the block, at a barrier.
    Barrier,
    /// Other lanes, at an operation of the warp.
    Meet(&'static Site, [u64; MAX_ARGS]),
    /// Nothing: it has ended.
    End,
    /// Nothing, in a loop that has no end.
    Endless,
}

/// What the code finds out about its thread.
struct Running {
    position: ThreadPosition,
    sites: *const [Site],
    dynamic_shared: u32,
    turns: Cell<u32>,
    yielder: Cell<*const Yielder<u64, Wish>>,
}

thread_local! {
    /// The thread whose code runs.
    static CURRENT: Cell<*const Running> = const { Cell::new(ptr::null()) };
}

/// The code of a thread: `fn(parameter block)`.
pub(super) type ThreadFn = unsafe extern "C" fn(*const u8);

/// A thread that has not ended.
pub(super) struct Thread {
    coroutine: Coroutine<u64, Wish, (), DefaultStack>,
    running: Box<Running>,
}

impl Thread {
    /// A thread at its beginning.
    ///
    /// # Safety
    /// The block's code may be run with its parameters, and is there with its sites until the thread is
    /// stopped.
    pub(super) unsafe fn new(
        stack: DefaultStack,
        block: &BlockRun<'_>,
        position: ThreadPosition,
    ) -> Thread {
        let (entry, params) = (block.entry, block.params);
        let running = Box::new(Running {
            position,
            sites: block.sites,
            dynamic_shared: block.dynamic_shared,
            turns: Cell::new(0),
            yielder: Cell::new(ptr::null()),
        });
        let body = move |yielder: &Yielder<u64, Wish>, _: u64| {
            // SAFETY: `resume` has put the running thread there, which outlives this.
            unsafe { (*CURRENT.get()).yielder.set(yielder) };
            // SAFETY: the caller's promise.
            unsafe { entry(params) };
        };
        Thread {
            coroutine: Coroutine::with_stack(stack, body),
            running,
        }
    }

    /// Where it is.
    pub(super) fn position(&self) -> &ThreadPosition {
        &self.running.position
    }

    /// Runs it until it has a wish; `result` is what its last one gave.
    pub(super) fn resume(&mut self, result: u64) -> Wish {
        CURRENT.set(&raw const *self.running);
        let outcome = self.coroutine.resume(result);
        CURRENT.set(ptr::null());
        match outcome {
            CoroutineResult::Yield(wish) => wish,
            CoroutineResult::Return(()) => Wish::End,
        }
    }

    /// Stops it where it is; gives its stack back.
    pub(super) fn stop(mut self) -> DefaultStack {
        // SAFETY: the frames on its stack are of code that owns nothing, and of `operate`, which
        // holds nothing to be dropped where it waits.
        unsafe { self.coroutine.force_reset() };
        self.coroutine.into_stack()
    }
}

/// What the code calls. `args` are as many words as the site has arguments.
///
/// # Safety
/// Called by the code of a thread that runs, with the number of a site of its code.
pub(super) unsafe extern "C" fn operate(site: usize, args: *const u64) -> u64 {
    // SAFETY: a thread runs, so that it is there.
    let running = unsafe { &*CURRENT.get() };
    // SAFETY: the sites of code live as long as it does, which outlives its threads; nobody keeps
    // one longer than a thread.
    let sites: &'static [Site] = unsafe { &*running.sites };
    let site = &sites[site];
    let args = match site.arguments {
        0 => &[],
        // SAFETY: the code has put that many words there.
        count => unsafe { std::slice::from_raw_parts(args, count) },
    };
    let result = match &site.operation {
        Operation::Nothing => 0,
        Operation::Position(f) => return f(&running.position),
        Operation::DynamicSharedBytes => return running.dynamic_shared.into(),
        Operation::Function(f) => return f(args[0]),
        Operation::Pure(call, f) => return f(call.scalar, &call.arguments(args)),
        // SAFETY: the kernel accesses what it may, as those who run it promise.
        Operation::Accesses(accesses) => unsafe { perform(accesses, args) },
        Operation::Exit => return running.wait(Wish::End),
        Operation::Barrier => return running.wait(Wish::Barrier),
        Operation::Warp(_) => {
            let mut words = [0; MAX_ARGS];
            words[..args.len()].copy_from_slice(args);
            return running.wait(Wish::Meet(site, words));
        }
        Operation::Turn => {
            running.turn();
            return 0;
        }
        Operation::Accessed => 0,
    };
    running.wait(Wish::GoOn);
    result
}

impl Running {
    fn wait(&self, wish: Wish) -> u64 {
        // SAFETY: the coroutine has set it, and runs.
        unsafe { (*self.yielder.get()).suspend(wish) }
    }

    fn turn(&self) {
        let turns = self.turns.get() + 1;
        self.turns.set(turns);
        if turns > MAX_TURNS {
            self.wait(Wish::Endless);
        } else if turns.is_multiple_of(TURNS_AT_A_TIME) {
            self.wait(Wish::GoOn);
        }
    }
}
