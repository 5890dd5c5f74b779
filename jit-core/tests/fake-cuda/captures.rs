//! Captures of streams: what they refuse to other calls, and which of these end them with an error.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::ffi::c_uint;
use std::thread::{self, ThreadId};

use super::{Code, Handle, State, call, with};

const GLOBAL: c_uint = 0;
const RELAXED: c_uint = 2;

/// What may not be part of a capture, and is refused while there is one that is not relaxed: what waits, takes memory,
/// gives it back, or loads code.
const UNSAFE: [&str; 20] = [
    "cuCtxSynchronize",
    "cuEventQuery",
    "cuEventSynchronize",
    "cuLinkComplete",
    "cuMemAlloc_v2",
    "cuMemFreeHost",
    "cuMemFree_v2",
    "cuMemGetInfo_v2",
    "cuMemHostAlloc",
    "cuMemPoolCreate",
    "cuMemPoolDestroy",
    "cuMemPoolTrimTo",
    "cuMemcpyDtoD_v2",
    "cuMemcpyDtoH_v2",
    "cuMemcpyHtoD_v2",
    "cuModuleLoadDataEx",
    "cuModuleUnload",
    "cuStreamDestroy_v2",
    "cuStreamQuery",
    "cuStreamSynchronize",
];

thread_local! {
    static MODE: Cell<c_uint> = const { Cell::new(GLOBAL) };
}

/// A capture of a stream.
struct Capture {
    thread: ThreadId,
    mode: c_uint,
    is_invalid: bool,
}

/// The captures that there are.
#[derive(Default)]
pub(crate) struct Captures {
    streams: BTreeMap<Handle, Capture>,
    /// How much the streams were given meanwhile.
    works: u64,
}

impl Captures {
    /// The code for a call that some capture refuses, which ends all that do.
    pub(crate) fn refuse(&mut self, call: &str) -> Code {
        if self.streams.is_empty() || !UNSAFE.contains(&call) {
            return 0;
        }
        let (mode, here) = (MODE.get(), thread::current().id());
        let mut code = 0;
        for capture in self.streams.values_mut() {
            let own = capture.thread == here && capture.mode != RELAXED;
            let others = mode == GLOBAL && capture.mode == GLOBAL;
            if mode != RELAXED && (own || others) {
                capture.is_invalid = true;
                code = 900;
            }
        }
        code
    }

    /// Notes that a stream is given work.
    pub(crate) fn work(&mut self, stream: Handle) {
        self.works += u64::from(self.streams.contains_key(&stream));
    }

    /// The code for waiting for a stream, which ends its capture.
    pub(crate) fn wait(&mut self, stream: Handle) -> Code {
        match self.streams.get_mut(&stream) {
            None => 0,
            Some(capture) => {
                capture.is_invalid = true;
                900
            }
        }
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuThreadExchangeStreamCaptureMode(mode: *mut c_uint) -> Code {
    call("cuThreadExchangeStreamCaptureMode", true, |_| {
        // SAFETY: the caller's pointer is live.
        let asked = unsafe { *mode };
        if asked > RELAXED {
            return 1;
        }
        // SAFETY: as above.
        unsafe { *mode = MODE.replace(asked) };
        0
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuStreamIsCapturing(stream: Handle, status: *mut c_uint) -> Code {
    call("cuStreamIsCapturing", true, |s| {
        let capture = s.captures.streams.get(&stream);
        let number = capture.map_or(0, |capture| 1 + c_uint::from(capture.is_invalid));
        // SAFETY: the caller's pointer is live.
        unsafe { *status = number };
        0
    })
}

/// Other code begins to capture a stream in this thread.
#[unsafe(no_mangle)]
pub extern "C" fn fake_begin_capture(stream: Handle, mode: c_uint) {
    let capture = Capture {
        thread: thread::current().id(),
        mode,
        is_invalid: false,
    };
    with(|s: &mut State| s.captures.streams.insert(stream, capture));
}

/// The capture of a stream ends: what `cuStreamEndCapture` returns, and how much work was captured.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fake_end_capture(stream: Handle, works: *mut u64) -> Code {
    with(|s: &mut State| {
        // SAFETY: the test passes a live number.
        unsafe { *works = std::mem::take(&mut s.captures.works) };
        match s.captures.streams.remove(&stream) {
            Some(capture) if !capture.is_invalid => 0,
            Some(_) => 901,
            None => 1,
        }
    })
}

/// The mode of this thread.
#[unsafe(no_mangle)]
pub extern "C" fn fake_capture_mode() -> c_uint {
    MODE.get()
}
