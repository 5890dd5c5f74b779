//! A stand-in for the CUDA driver library, for tests on machines without a GPU.
//!
//! Exports the entry points that Kiln resolves, backed by host memory, with checks that a real
//! driver makes (current context, live handles, launch limits), a plan of failures, and a ledger of
//! what is alive. The tests build it with `rustc --crate-type cdylib` and load a copy each, so every
//! test has a driver of its own. It runs no kernels: `fake_raise_fault` does what a faulting thread
//! does.
#![cfg(not(empty))]
#![allow(
    clippy::missing_safety_doc,
    reason = "the safety rules are those of the CUDA driver API"
)]
#![allow(non_snake_case, reason = "exported names are the driver's")]

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::sync::Mutex;

type Code = u32;
type Handle = usize;

const FATAL: &[u32] = &[
    4, 214, 700, 702, 709, 710, 714, 715, 716, 717, 718, 719, 999,
];

#[derive(Default)]
struct State {
    version: c_int,
    devices: c_int,
    init_code: Code,
    total: usize,
    compute_mode: c_int,
    /// Fail the `nth` call from now whose name matches, with `code`.
    plan: Option<(String, u32, Code)>,
    failed: Option<CString>,
    calls: u64,
    /// After this many launches, every call returns the code.
    sticky_after: Option<(u32, Code)>,
    sticky: Code,
    reject: Option<(Code, CString)>,
    memory: BTreeMap<u64, Vec<u64>>,
    lengths: BTreeMap<u64, usize>,
    pinned: BTreeMap<usize, Vec<u64>>,
    modules: BTreeMap<Handle, String>,
    functions: BTreeMap<Handle, (Handle, String, c_int)>,
    globals: BTreeMap<(Handle, String), Vec<u64>>,
    streams: BTreeSet<Handle>,
    events: BTreeMap<Handle, bool>,
    retained: i64,
    next: Handle,
    /// Whether a kernel runs that does not end.
    busy: bool,
    last_launch: [u64; 8],
}

static STATE: Mutex<Option<State>> = Mutex::new(None);

const CONTEXT: usize = 0xC0_0000;

thread_local! {
    static CURRENT: Cell<usize> = const { Cell::new(0) };
}

fn with<R>(body: impl FnOnce(&mut State) -> R) -> R {
    let mut guard = STATE
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner());
    body(guard.get_or_insert_with(|| State {
        version: 12080,
        devices: 1,
        total: 1 << 30,
        next: 0x1000,
        ..State::default()
    }))
}

/// A driver call: counted, failed where the plan says so, refused after a sticky error.
fn call(name: &str, needs_context: bool, body: impl FnOnce(&mut State) -> Code) -> Code {
    with(|state| {
        state.calls += 1;
        if let Some((wanted, nth, code)) = &mut state.plan
            && (wanted == "*" || wanted == name)
        {
            *nth -= 1;
            if *nth == 0 {
                let code = *code;
                state.plan = None;
                state.failed = CString::new(name).ok();
                if FATAL.contains(&code) {
                    state.sticky = code;
                }
                return code;
            }
        }
        if needs_context && state.sticky != 0 {
            return state.sticky;
        }
        if needs_context && CURRENT.get() != CONTEXT {
            return 201;
        }
        body(state)
    })
}

impl State {
    fn handle(&mut self) -> Handle {
        self.next += 0x10;
        self.next
    }

    /// The host address of a device range that is inside one allocation or global.
    fn range(&self, address: u64, bytes: usize) -> Option<*mut u8> {
        let inside = |start: u64, length: usize| {
            address >= start
                && address - start <= length as u64
                && bytes as u64 <= length as u64 - (address - start)
        };
        let allocated = self
            .lengths
            .iter()
            .any(|(start, length)| inside(*start, *length));
        let global = self
            .globals
            .values()
            .any(|words| inside(words.as_ptr() as u64, words.len() * 8));
        (allocated || global).then_some(address as *mut u8)
    }

    fn used(&self) -> usize {
        self.lengths.values().sum()
    }
}

// --- Control by the tests ---------------------------------------------------------------------

#[unsafe(no_mangle)]
pub extern "C" fn fake_set(version: c_int, devices: c_int, init_code: Code, total: usize) {
    with(|s| {
        s.version = version;
        s.devices = devices;
        s.init_code = init_code;
        s.total = total;
    });
}

/// A kernel runs from now on, or has ended.
#[unsafe(no_mangle)]
pub extern "C" fn fake_busy(busy: bool) {
    with(|s| s.busy = busy);
}

/// Forgets everything, including this thread's current context.
#[unsafe(no_mangle)]
pub extern "C" fn fake_reset() {
    *STATE
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner()) = None;
    CURRENT.set(0);
}

#[unsafe(no_mangle)]
pub extern "C" fn fake_set_compute_mode(mode: c_int) {
    with(|s| s.compute_mode = mode);
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn fake_fail(name: *const c_char, nth: u32, code: Code) {
    // SAFETY: the test passes a C string.
    let name = unsafe { CStr::from_ptr(name) }
        .to_string_lossy()
        .into_owned();
    with(|s| {
        s.failed = None;
        s.plan = Some((name, nth, code));
    });
}

/// The call that the plan made fail, or null.
#[unsafe(no_mangle)]
pub extern "C" fn fake_failed() -> *const c_char {
    with(|s| {
        s.failed
            .as_ref()
            .map_or(std::ptr::null(), |name| name.as_ptr())
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn fake_sticky_after(launches: u32, code: Code) {
    with(|s| s.sticky_after = Some((launches, code)));
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn fake_reject(code: Code, log: *const c_char) {
    // SAFETY: the test passes a C string.
    let log = unsafe { CStr::from_ptr(log) }.to_owned();
    with(|s| s.reject = Some((code, log)));
}

#[unsafe(no_mangle)]
pub extern "C" fn fake_calls() -> u64 {
    with(|s| s.calls)
}

/// Allocations, pinned allocations, modules, streams, events, retained contexts.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fake_ledger(out: *mut [u64; 6]) {
    let ledger = with(|s| {
        [
            s.memory.len() as u64,
            s.pinned.len() as u64,
            s.modules.len() as u64,
            s.streams.len() as u64,
            s.events.len() as u64,
            s.retained as u64,
        ]
    });
    // SAFETY: the test passes a live array.
    unsafe { *out = ledger };
}

/// Grid, block, shared bytes and first parameter of the last launch.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fake_last_launch(out: *mut [u64; 8]) {
    // SAFETY: the test passes a live array.
    unsafe { *out = with(|s| s.last_launch) };
}

/// What a faulting thread does with the channel at this address; 1 if it claimed the record.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fake_raise_fault(
    channel: u64,
    site: u32,
    tag: u64,
    index: u64,
    length: u64,
) -> u32 {
    with(|s| {
        if s.range(channel, 16).is_none() {
            return 2;
        }
        // SAFETY: inside a live allocation of at least 16 bytes, aligned to 8.
        unsafe {
            let claimed = channel as *mut u32;
            if claimed.read_volatile() != 0 {
                return 0;
            }
            claimed.write_volatile(1);
            let record = (channel as *const u64).add(1).read_volatile() as *mut u8;
            record.add(4).cast::<u32>().write_volatile(site);
            record.add(8).cast::<u64>().write_volatile(tag);
            record.add(16).cast::<u64>().write_volatile(index);
            record.add(24).cast::<u64>().write_volatile(length);
            record.add(32).cast::<[u32; 3]>().write_volatile([1, 2, 3]);
            record.add(44).cast::<[u32; 3]>().write_volatile([4, 5, 6]);
            record.cast::<u32>().write_volatile(1);
        }
        1
    })
}

// --- Initialization and devices ---------------------------------------------------------------

#[unsafe(no_mangle)]
pub extern "C" fn cuInit(flags: c_uint) -> Code {
    call(
        "cuInit",
        false,
        |s| if flags == 0 { s.init_code } else { 1 },
    )
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDriverGetVersion(version: *mut c_int) -> Code {
    call("cuDriverGetVersion", false, |s| {
        // SAFETY: the caller's pointer is live.
        unsafe { *version = s.version };
        0
    })
}

fn error_text(code: Code) -> Option<(&'static CStr, &'static CStr)> {
    Some(match code {
        1 => (c"CUDA_ERROR_INVALID_VALUE", c"invalid argument"),
        2 => (c"CUDA_ERROR_OUT_OF_MEMORY", c"out of memory"),
        3 => (c"CUDA_ERROR_NOT_INITIALIZED", c"initialization error"),
        4 => (c"CUDA_ERROR_DEINITIALIZED", c"driver shutting down"),
        46 => (
            c"CUDA_ERROR_DEVICE_UNAVAILABLE",
            c"device busy or unavailable",
        ),
        218 => (c"CUDA_ERROR_INVALID_PTX", c"a PTX JIT compilation failed"),
        222 => (
            c"CUDA_ERROR_UNSUPPORTED_PTX_VERSION",
            c"unsupported PTX version",
        ),
        400 => (c"CUDA_ERROR_INVALID_HANDLE", c"invalid resource handle"),
        700 => (c"CUDA_ERROR_ILLEGAL_ADDRESS", c"illegal memory access"),
        701 => (
            c"CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES",
            c"too many resources requested",
        ),
        719 => (c"CUDA_ERROR_LAUNCH_FAILED", c"unspecified launch failure"),
        803 => (c"CUDA_ERROR_SYSTEM_DRIVER_MISMATCH", c"version mismatch"),
        _ => return None,
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuGetErrorName(code: Code, text: *mut *const c_char) -> Code {
    call("cuGetErrorName", false, |_| match error_text(code) {
        // SAFETY: the caller's pointer is live.
        Some((name, _)) => unsafe {
            *text = name.as_ptr();
            0
        },
        None => 1,
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuGetErrorString(code: Code, text: *mut *const c_char) -> Code {
    call("cuGetErrorString", false, |_| match error_text(code) {
        // SAFETY: the caller's pointer is live.
        Some((_, description)) => unsafe {
            *text = description.as_ptr();
            0
        },
        None => 1,
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDeviceGetCount(count: *mut c_int) -> Code {
    call("cuDeviceGetCount", false, |s| {
        // SAFETY: the caller's pointer is live.
        unsafe { *count = s.devices };
        0
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDeviceGet(device: *mut c_int, ordinal: c_int) -> Code {
    call("cuDeviceGet", false, |s| {
        if ordinal < 0 || ordinal >= s.devices {
            return 101;
        }
        // SAFETY: the caller's pointer is live.
        unsafe { *device = ordinal };
        0
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDeviceGetName(name: *mut c_char, length: c_int, _: c_int) -> Code {
    call("cuDeviceGetName", false, |_| {
        let text = c"Fake GPU";
        if (length as usize) < text.to_bytes_with_nul().len() {
            return 1;
        }
        // SAFETY: the buffer has the length given.
        unsafe { name.copy_from(text.as_ptr(), text.to_bytes_with_nul().len()) };
        0
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDeviceGetAttribute(value: *mut c_int, which: u32, _: c_int) -> Code {
    call("cuDeviceGetAttribute", false, |s| {
        let found = match which {
            1 => 1024,
            2 | 3 => 1024,
            4 => 64,
            5 => i32::MAX,
            6 | 7 => 65535,
            8 => 48 * 1024,
            10 => 32,
            12 => 65536,
            13 => 1_980_000,
            16 => 132,
            20 => s.compute_mode,
            36 => 2_619_000,
            37 => 5120,
            38 => 50 << 20,
            39 => 2048,
            75 => 9,
            76 => 0,
            81 => 228 * 1024,
            97 => 227 * 1024,
            _ => return 1,
        };
        // SAFETY: the caller's pointer is live.
        unsafe { *value = found };
        0
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDeviceTotalMem_v2(bytes: *mut usize, _: c_int) -> Code {
    call("cuDeviceTotalMem_v2", false, |s| {
        // SAFETY: the caller's pointer is live.
        unsafe { *bytes = s.total };
        0
    })
}

// --- Contexts ---------------------------------------------------------------------------------

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDevicePrimaryCtxRetain(context: *mut Handle, _: c_int) -> Code {
    call("cuDevicePrimaryCtxRetain", false, |s| {
        if s.compute_mode == 2 {
            return 46;
        }
        s.retained += 1;
        // SAFETY: the caller's pointer is live.
        unsafe { *context = CONTEXT };
        0
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuDevicePrimaryCtxRelease_v2(_: c_int) -> Code {
    call("cuDevicePrimaryCtxRelease_v2", false, |s| {
        s.retained -= 1;
        0
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuCtxGetCurrent(context: *mut Handle) -> Code {
    call("cuCtxGetCurrent", false, |_| {
        // SAFETY: the caller's pointer is live.
        unsafe { *context = CURRENT.get() };
        0
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuCtxSetCurrent(context: Handle) -> Code {
    call("cuCtxSetCurrent", false, |_| {
        CURRENT.set(context);
        0
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuCtxSynchronize() -> Code {
    call("cuCtxSynchronize", true, |_| 0)
}

// --- Memory -----------------------------------------------------------------------------------

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemGetInfo_v2(free: *mut usize, total: *mut usize) -> Code {
    call("cuMemGetInfo_v2", true, |s| {
        // SAFETY: the caller's pointers are live.
        unsafe {
            *free = s.total - s.used();
            *total = s.total;
        }
        0
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemAlloc_v2(address: *mut u64, bytes: usize) -> Code {
    call("cuMemAlloc_v2", true, |s| {
        if bytes == 0 {
            return 1;
        }
        if bytes > s.total - s.used() {
            return 2;
        }
        let words = vec![0xDEAD_BEEF_DEAD_BEEF; bytes.div_ceil(8)];
        let start = words.as_ptr() as u64;
        s.memory.insert(start, words);
        s.lengths.insert(start, bytes);
        // SAFETY: the caller's pointer is live.
        unsafe { *address = start };
        0
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemFree_v2(address: u64) -> Code {
    call("cuMemFree_v2", true, |s| {
        // A driver waits for the kernel, which here is never done.
        if s.busy {
            return 999;
        }
        s.lengths.remove(&address);
        if s.memory.remove(&address).is_some() {
            0
        } else {
            1
        }
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemHostAlloc(pointer: *mut usize, bytes: usize, flags: c_uint) -> Code {
    call("cuMemHostAlloc", true, |s| {
        if flags != 3 {
            return 1;
        }
        let words = vec![0u64; bytes.div_ceil(8)];
        let start = words.as_ptr() as usize;
        s.pinned.insert(start, words);
        // SAFETY: the caller's pointer is live.
        unsafe { *pointer = start };
        0
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemHostGetDevicePointer_v2(
    device: *mut u64,
    host: usize,
    flags: c_uint,
) -> Code {
    call("cuMemHostGetDevicePointer_v2", true, |s| {
        if flags != 0 || !s.pinned.contains_key(&host) {
            return 1;
        }
        // SAFETY: the caller's pointer is live.
        unsafe { *device = host as u64 };
        0
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemFreeHost(host: usize) -> Code {
    call("cuMemFreeHost", true, |s| {
        if s.pinned.remove(&host).is_some() {
            0
        } else {
            1
        }
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemcpyHtoD_v2(to: u64, from: *const u8, bytes: usize) -> Code {
    call("cuMemcpyHtoD_v2", true, |s| match s.range(to, bytes) {
        // SAFETY: both ranges have this many bytes.
        Some(to) => unsafe {
            to.copy_from(from, bytes);
            0
        },
        None => 1,
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemcpyDtoH_v2(to: *mut u8, from: u64, bytes: usize) -> Code {
    call("cuMemcpyDtoH_v2", true, |s| match s.range(from, bytes) {
        // SAFETY: both ranges have this many bytes.
        Some(from) => unsafe {
            to.copy_from(from, bytes);
            0
        },
        None => 1,
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemcpyDtoD_v2(to: u64, from: u64, bytes: usize) -> Code {
    call("cuMemcpyDtoD_v2", true, |s| {
        match (s.range(to, bytes), s.range(from, bytes)) {
            // SAFETY: both ranges have this many bytes.
            (Some(to), Some(from)) => unsafe {
                to.copy_from(from, bytes);
                0
            },
            _ => 1,
        }
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemsetD8Async(to: u64, value: u8, count: usize, _: Handle) -> Code {
    call("cuMemsetD8Async", true, |s| match s.range(to, count) {
        // SAFETY: the range has this many bytes.
        Some(to) => unsafe {
            to.write_bytes(value, count);
            0
        },
        None => 1,
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemsetD32Async(to: u64, value: u32, count: usize, _: Handle) -> Code {
    call("cuMemsetD32Async", true, |s| match s.range(to, count * 4) {
        Some(to) if to as usize % 4 == 0 => {
            for i in 0..count {
                // SAFETY: the range has this many aligned words.
                unsafe { to.cast::<u32>().add(i).write(value) };
            }
            0
        }
        _ => 1,
    })
}

// --- Modules ----------------------------------------------------------------------------------

/// Writes a log into the buffer given by a pair of options, cut to its size.
unsafe fn write_log(log: &CStr, which: u32, options: &[u32], values: &[*mut c_void]) {
    let value = |option| options.iter().position(|o| *o == option).map(|i| values[i]);
    if let (Some(buffer), Some(size)) = (value(which), value(which + 1)) {
        let bytes = log.to_bytes_with_nul();
        let count = bytes.len().min(size as usize);
        // SAFETY: the buffer has the size given.
        unsafe { buffer.cast::<u8>().copy_from(bytes.as_ptr(), count) };
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuModuleLoadDataEx(
    module: *mut Handle,
    image: *const c_char,
    count: c_uint,
    options: *const u32,
    values: *const *mut c_void,
) -> Code {
    call("cuModuleLoadDataEx", true, |s| {
        // SAFETY: the arrays have `count` elements, and the image is a C string.
        let (options, values, text) = unsafe {
            (
                std::slice::from_raw_parts(options, count as usize),
                std::slice::from_raw_parts(values, count as usize),
                CStr::from_ptr(image).to_string_lossy().into_owned(),
            )
        };
        if let Some((code, log)) = s.reject.take() {
            // SAFETY: as above.
            unsafe { write_log(&log, 5, options, values) };
            return code;
        }
        // Machine code is not looked into: only its first text.
        if !text.contains(".version") && !text.starts_with("\x7fELF") {
            let log = c"ptxas fatal   : Missing .version directive\n";
            // SAFETY: as above.
            unsafe { write_log(log, 5, options, values) };
            return 218;
        }
        // SAFETY: as above.
        unsafe { write_log(c"ptxas info    : Used 32 registers\n", 3, options, values) };
        let handle = s.handle();
        for line in text.lines() {
            if let Some(rest) = line.trim().strip_prefix(".global .align 8 .b8 ")
                && let Some((name, size)) = rest.trim_end_matches("];").split_once('[')
                && let Ok(size) = size.parse::<usize>()
            {
                s.globals
                    .insert((handle, name.to_owned()), vec![0; size.div_ceil(8)]);
            }
        }
        s.modules.insert(handle, text);
        // SAFETY: the caller's pointer is live.
        unsafe { *module = handle };
        0
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuModuleUnload(module: Handle) -> Code {
    call("cuModuleUnload", true, |s| {
        s.functions.retain(|_, (owner, _, _)| *owner != module);
        s.globals.retain(|(owner, _), _| *owner != module);
        if s.modules.remove(&module).is_some() {
            0
        } else {
            400
        }
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuModuleGetFunction(
    function: *mut Handle,
    module: Handle,
    name: *const c_char,
) -> Code {
    call("cuModuleGetFunction", true, |s| {
        // SAFETY: the name is a C string.
        let name = unsafe { CStr::from_ptr(name) }
            .to_string_lossy()
            .into_owned();
        let Some(text) = s.modules.get(&module) else {
            return 400;
        };
        if !text.contains(&format!(".entry {name}(")) {
            return 500;
        }
        let handle = s.handle();
        s.functions.insert(handle, (module, name, 48 * 1024));
        // SAFETY: the caller's pointer is live.
        unsafe { *function = handle };
        0
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuModuleGetGlobal_v2(
    address: *mut u64,
    bytes: *mut usize,
    module: Handle,
    name: *const c_char,
) -> Code {
    call("cuModuleGetGlobal_v2", true, |s| {
        // SAFETY: the name is a C string.
        let name = unsafe { CStr::from_ptr(name) }
            .to_string_lossy()
            .into_owned();
        let Some(words) = s.globals.get(&(module, name)) else {
            return 500;
        };
        // SAFETY: the caller's pointers are live.
        unsafe {
            *address = words.as_ptr() as u64;
            *bytes = words.len() * 8;
        }
        0
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuFuncGetAttribute(value: *mut c_int, which: u32, f: Handle) -> Code {
    call("cuFuncGetAttribute", true, |s| {
        if !s.functions.contains_key(&f) {
            return 400;
        }
        let found = match which {
            0 => 512,
            1 => 1024,
            2 => 360,
            3 => 16,
            4 => 128,
            6 => 90,
            _ => return 1,
        };
        // SAFETY: the caller's pointer is live.
        unsafe { *value = found };
        0
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuFuncSetAttribute(function: Handle, which: u32, value: c_int) -> Code {
    call("cuFuncSetAttribute", true, |s| {
        match s.functions.get_mut(&function) {
            Some(entry) if which == 8 && value <= 226 * 1024 => {
                entry.2 = value;
                0
            }
            Some(_) => 1,
            None => 400,
        }
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuOccupancyMaxActiveBlocksPerMultiprocessor(
    blocks: *mut c_int,
    function: Handle,
    threads: c_int,
    _: usize,
) -> Code {
    call("cuOccupancyMaxActiveBlocksPerMultiprocessor", true, |s| {
        if !s.functions.contains_key(&function) || threads == 0 {
            return 1;
        }
        // SAFETY: the caller's pointer is live.
        unsafe { *blocks = 2048 / threads };
        0
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuLaunchKernel(
    function: Handle,
    gx: c_uint,
    gy: c_uint,
    gz: c_uint,
    bx: c_uint,
    by: c_uint,
    bz: c_uint,
    shared: c_uint,
    stream: Handle,
    params: *mut *mut c_void,
    extra: *mut *mut c_void,
) -> Code {
    call("cuLaunchKernel", true, |s| {
        let Some((_, _, shared_limit)) = s.functions.get(&function) else {
            return 400;
        };
        if stream != 0 && !s.streams.contains(&stream) {
            return 400;
        }
        let threads = u64::from(bx) * u64::from(by) * u64::from(bz);
        let size = [gx, gy, gz, bx, by, bz];
        let most = [i32::MAX as u32, 65535, 65535, 1024, 1024, 64];
        let outside = size.iter().zip(most).any(|(n, most)| *n == 0 || *n > most);
        if outside || threads > 1024 || shared as c_int > *shared_limit || !extra.is_null() {
            return 1;
        }
        if threads > 512 {
            return 701;
        }
        let first = if params.is_null() {
            0
        } else {
            // SAFETY: the block of parameters has at least 8 bytes from the first on, that of the fault channel
            // among them.
            unsafe { (*params).cast::<u64>().read_unaligned() }
        };
        let [gx, gy, gz, bx, by, bz] = size.map(u64::from);
        s.last_launch = [gx, gy, gz, bx, by, bz, u64::from(shared), first];
        if let Some((left, code)) = &mut s.sticky_after {
            *left -= 1;
            if *left == 0 {
                s.sticky = *code;
                s.sticky_after = None;
            }
        }
        0
    })
}

// --- Streams and events -----------------------------------------------------------------------

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuStreamCreate(stream: *mut Handle, _: c_uint) -> Code {
    call("cuStreamCreate", true, |s| {
        let handle = s.handle();
        s.streams.insert(handle);
        // SAFETY: the caller's pointer is live.
        unsafe { *stream = handle };
        0
    })
}

fn stream_call(name: &str, stream: Handle) -> Code {
    call(name, true, |s| {
        if stream == 0 || s.streams.contains(&stream) {
            0
        } else {
            400
        }
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuStreamDestroy_v2(stream: Handle) -> Code {
    call("cuStreamDestroy_v2", true, |s| {
        if s.streams.remove(&stream) { 0 } else { 400 }
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuStreamSynchronize(stream: Handle) -> Code {
    stream_call("cuStreamSynchronize", stream)
}

#[unsafe(no_mangle)]
pub extern "C" fn cuStreamQuery(stream: Handle) -> Code {
    match stream_call("cuStreamQuery", stream) {
        0 if with(|s| s.busy) => 600,
        code => code,
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn cuStreamWaitEvent(stream: Handle, _: Handle, flags: c_uint) -> Code {
    if flags != 0 {
        return 1;
    }
    stream_call("cuStreamWaitEvent", stream)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuEventCreate(event: *mut Handle, _: c_uint) -> Code {
    call("cuEventCreate", true, |s| {
        let handle = s.handle();
        s.events.insert(handle, false);
        // SAFETY: the caller's pointer is live.
        unsafe { *event = handle };
        0
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuEventDestroy_v2(event: Handle) -> Code {
    call("cuEventDestroy_v2", true, |s| {
        if s.events.remove(&event).is_some() {
            0
        } else {
            400
        }
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuEventRecord(event: Handle, stream: Handle) -> Code {
    call("cuEventRecord", true, |s| {
        if stream != 0 && !s.streams.contains(&stream) {
            return 400;
        }
        match s.events.get_mut(&event) {
            Some(recorded) => {
                *recorded = true;
                0
            }
            None => 400,
        }
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuEventQuery(event: Handle) -> Code {
    call("cuEventQuery", true, |s| {
        if s.events.contains_key(&event) {
            0
        } else {
            400
        }
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuEventSynchronize(event: Handle) -> Code {
    call("cuEventSynchronize", true, |s| {
        if s.events.contains_key(&event) {
            0
        } else {
            400
        }
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuEventElapsedTime(ms: *mut f32, start: Handle, end: Handle) -> Code {
    call("cuEventElapsedTime", true, |s| {
        if s.events.get(&start) != Some(&true) || s.events.get(&end) != Some(&true) {
            return 400;
        }
        // SAFETY: the caller's pointer is live.
        unsafe { *ms = 1.5 };
        0
    })
}
