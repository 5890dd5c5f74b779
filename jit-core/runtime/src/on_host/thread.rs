//! One thread of a block: a coroutine, and the function that its code calls.
//!
//! The code calls [`operate`] for everything that only a GPU has. What concerns the thread alone is
//! done there; for the rest it is left with a [`Wish`], and the block decides when it goes on.

use std::cell::Cell;
use std::ptr;

use corosensei::stack::DefaultStack;
use corosensei::{Coroutine, CoroutineResult, Yielder};

use kiln_ir::gpu_on_host::{Element, Operation, RowCall, Site};
use kiln_ir::named_barrier::NamedBarrier;
use kiln_ir::{Meaning, ThreadPosition};

use super::atomic::{change, change_words};
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
    /// A barrier, where the other threads of the block come.
    Barrier,
    /// A named barrier, to which its warp comes as a whole.
    Named(NamedBarrier),
    /// One thread of each block.
    Grid,
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

    /// Where the thread is in the launch.
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

/// What the code calls. `words` are as many arguments as the site has; the second word of a result of two takes the
/// place of the first of them.
///
/// # Safety
/// Called by the code of a thread that runs, with the number of a site of its code.
pub(super) unsafe extern "C" fn operate(site: usize, words: *mut u64) -> u64 {
    // SAFETY: a thread runs, so that it is there.
    let running = unsafe { &*CURRENT.get() };
    // SAFETY: the sites of code live as long as it does, which outlives its threads; nobody keeps
    // one longer than a thread.
    let sites: &'static [Site] = unsafe { &*running.sites };
    let site = &sites[site];
    let args = match site.arguments {
        0 => &[],
        // SAFETY: the code has put that many words there.
        count => unsafe { std::slice::from_raw_parts(words, count) },
    };
    let result = match &site.operation {
        Operation::Nothing => 0,
        Operation::Thread(axis) => return running.position.thread[usize::from(*axis)].into(),
        Operation::Block(axis) => return running.position.block[usize::from(*axis)].into(),
        Operation::DynamicSharedBytes => return running.dynamic_shared.into(),
        Operation::LowBits(bits) => return args[0] & (u64::MAX >> (u64::BITS - bits)),
        Operation::ToFloat { signed, bits } => return towards_zero(args[0], *signed, *bits),
        Operation::Atomic(what, Element { bits: 128, .. }) => {
            // SAFETY: the kernel accesses what it may, as those who run it promise.
            let [low, high] = unsafe { change_words(*what, args) };
            // SAFETY: there is an address among the arguments, and they are not looked at again.
            unsafe { words.write(high) };
            low
        }
        // SAFETY: the kernel accesses what it may, as those who run it promise.
        Operation::Atomic(what, element) => unsafe { change(*what, *element, args) },
        Operation::Exit => return running.wait(Wish::End),
        Operation::Barrier => return running.wait(Wish::Barrier),
        Operation::Grid => return running.wait(Wish::Grid),
        Operation::Row(call) => return running.row(call, site, args),
        Operation::Turn => {
            running.turn();
            return 0;
        }
        Operation::Accessed => 0,
    };
    running.wait(Wish::GoOn);
    result
}

/// The bits of an integer as `f32`, rounded towards zero.
fn towards_zero(value: u64, signed: bool, bits: u32) -> u64 {
    let value = value << (u64::BITS - bits);
    let value = match signed {
        true => i128::from(value as i64),
        false => i128::from(value),
    } >> (u64::BITS - bits);
    let magnitude = value.unsigned_abs();
    let lost = (u128::BITS - magnitude.leading_zeros()).saturating_sub(f32::MANTISSA_DIGITS);
    let kept = (magnitude >> lost << lost) as f32;
    let result = if value < 0 { -kept } else { kept };
    result.to_bits().into()
}

impl Running {
    fn row(&self, call: &RowCall, site: &'static Site, args: &[u64]) -> u64 {
        match call.row.meaning {
            Meaning::Pure(f) => f(call.scalar, &call.arguments(args)),
            Meaning::Position(f) => f(&self.position),
            Meaning::Warp(_) => {
                let mut words = [0; MAX_ARGS];
                words[..args.len()].copy_from_slice(args);
                self.wait(Wish::Meet(site, words))
            }
            Meaning::NamedBarrier { waits } => self.wait(Wish::Named(NamedBarrier {
                number: args[0] as u32,
                threads: args[1] as u32,
                waits,
            })),
            // It was lowered as a function, or is an operation of its own.
            Meaning::Body(_) | Meaning::Grid => 0,
        }
    }

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_cut_to_floats() {
        let float = |x, signed, bits| f32::from_bits(towards_zero(x, signed, bits) as u32);
        assert_eq!(float(0, true, 32), 0.0);
        assert_eq!(float(16_777_217, false, 32), 16_777_216.0);
        assert_eq!(
            float(-16_777_219_i32 as u32 as u64, true, 32),
            -16_777_218.0
        );
        assert_eq!(float(u64::MAX, false, 32), 4_294_967_040.0);
        assert_eq!(float(u64::MAX, false, 64), 18_446_742_974_197_923_840.0);
        assert_eq!(
            float(i64::MIN as u64, true, 64),
            -9_223_372_036_854_775_808.0
        );
    }
}
