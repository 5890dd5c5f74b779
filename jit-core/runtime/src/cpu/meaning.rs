//! Intrinsics without host code: computed from the meaning in their row.
//!
//! A row's function is the user's, and may panic. Host code cannot be unwound through, so the panic is
//! caught here, noted, and ends the launch.

use std::cell::Cell;
use std::ffi::c_void;
use std::ptr;

use kiln_ir::row_panic::RowPanic;
use kiln_ir::stop::{Stop, StopReason};
use kiln_ir::{IntrinsicDef, Lanes, Meaning, Scalar, ThreadPosition, WARP_LANES, WarpArgs};

use super::together::Meeting;

/// The most arguments a row has.
const MAX_ARGS: usize = 8;

thread_local! {
    /// The launch whose code runs on this thread, and the first panic in it.
    static RUNNING: Running = const {
        Running {
            stop: Cell::new(ptr::null()),
            meeting: Cell::new(ptr::null()),
            panic: Cell::new(None),
        }
    };
}

struct Running {
    stop: Cell<*const Stop>,
    /// The place where blocks of the launch wait for each other.
    meeting: Cell<*const Meeting>,
    panic: Cell<Option<RowPanic>>,
}

/// Runs host code of a launch, whose blocks meet there. A panic in a row's function sets the launch's flag and is the
/// error.
pub(super) fn catch(
    stop: &Stop,
    meeting: Option<&Meeting>,
    code: impl FnOnce(),
) -> Result<(), RowPanic> {
    RUNNING.with(|running| {
        running.stop.set(ptr::from_ref(stop));
        running
            .meeting
            .set(meeting.map_or(ptr::null(), ptr::from_ref));
        code();
        running.stop.set(ptr::null());
        running.meeting.set(ptr::null());
        running.panic.take().map_or(Ok(()), Err)
    })
}

/// Calls a row's function; `None` if it panics, or something ended the launch before.
fn call<R>(row: &IntrinsicDef, f: impl FnOnce() -> R) -> Option<R> {
    RUNNING.with(|running| {
        // SAFETY: null, or the flag that `catch` was given, which is waiting for this code.
        let stop = unsafe { running.stop.get().as_ref() };
        if stop.is_some_and(Stop::is_asked) {
            return None;
        }
        match RowPanic::catch(row.name, f) {
            Ok(value) => Some(value),
            Err(panic) => {
                running.panic.set(Some(panic));
                if let Some(stop) = stop {
                    stop.ask(StopReason::Failed);
                }
                None
            }
        }
    })
}

/// Waits for the other blocks of the launch, if there are any.
fn meet() {
    RUNNING.with(|running| {
        // SAFETY: null, or what `catch` was given, which is waiting for this code.
        let (stop, meeting) =
            unsafe { (running.stop.get().as_ref(), running.meeting.get().as_ref()) };
        if let (Some(stop), Some(meeting)) = (stop, meeting) {
            meeting.wait(stop);
        }
    });
}

/// Computes a function of its arguments, or of where the thread is: then the arguments are the numbers of
/// its [`ThreadPosition`], in their order. 0 for rows that are neither.
///
/// # Safety
/// `row` is a row of the intrinsic table, `args` are `count` words.
pub(super) unsafe extern "C" fn pure(
    row: *const c_void,
    scalar: u32,
    args: *const u64,
    count: u32,
) -> u64 {
    // SAFETY: the code embeds the address of a static row.
    let row = unsafe { &*row.cast::<IntrinsicDef>() };
    // SAFETY: the code passes that many words on its stack.
    let args = unsafe { std::slice::from_raw_parts(args, count as usize) };
    match (row.meaning, Scalar::ALL.get(scalar as usize)) {
        (Meaning::Pure(f), Some(&scalar)) => call(row, || f(scalar, args)).unwrap_or(0),
        (Meaning::Grid, _) => {
            meet();
            0
        }
        (Meaning::Position(f), _) => call(row, || f(&position(args))).unwrap_or(0),
        _ => 0,
    }
}

fn position(numbers: &[u64]) -> ThreadPosition {
    let number = |at: usize| numbers.get(at).map_or(0, |&n| n as u32);
    let three = |first: usize| std::array::from_fn(|axis| number(first + axis));
    ThreadPosition {
        thread: three(0),
        block: three(3),
        block_dim: three(6),
        grid_dim: three(9),
    }
}

/// Computes what the lanes of a warp do together. `args` are `count` words for each of 32 lanes,
/// argument by argument; the results go to the first 32 words.
///
/// # Safety
/// `row` is a row of the intrinsic table, `args` are that many words, at least 32.
pub(super) unsafe extern "C" fn warp(
    row: *const c_void,
    scalar: u32,
    lanes: u32,
    args: *mut u64,
    count: u32,
) {
    // SAFETY: the code embeds the address of a static row.
    let row = unsafe { &*row.cast::<IntrinsicDef>() };
    let mut lists: [Lanes; MAX_ARGS] = [[0; WARP_LANES]; MAX_ARGS];
    let count = (count as usize).min(MAX_ARGS);
    for (i, list) in lists[..count].iter_mut().enumerate() {
        // SAFETY: the code passes 32 words an argument on its stack.
        *list = unsafe { args.cast::<Lanes>().add(i).read() };
    }
    let (Meaning::Warp(f), Some(&scalar)) = (row.meaning, Scalar::ALL.get(scalar as usize)) else {
        return;
    };
    let args_of_lanes = WarpArgs {
        lanes,
        args: &lists[..count],
    };
    let results = call(row, || f(scalar, &args_of_lanes)).unwrap_or([0; WARP_LANES]);
    // SAFETY: there are at least 32 words.
    unsafe { args.cast::<Lanes>().write(results) };
}
