//! Builds the fake driver and gives each test a copy of its own.
//!
//! The library is compiled once per test process with plain `rustc`. A copy under another name has
//! its own statics, so tests run in parallel without seeing each other's failures. Tests of other
//! packages include this file, too.
#![allow(
    dead_code,
    reason = "each program that includes this uses a part of it"
)]

use std::collections::BTreeMap;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use kiln_jit_core::runtime::cuda::{Driver, DriverError, DriverSettings};
use libloading::Library;

/// A path for a library of this process.
fn fresh_path() -> PathBuf {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let name = format!("fake-cuda-{}-{number}.so", std::process::id());
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(name)
}

/// Compiles the fake driver, or with `empty` a library without symbols, and gives its bytes.
fn build(empty: bool) -> Vec<u8> {
    // Packages of several folders include this file.
    let folders = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors();
    let source = folders
        .map(|folder| folder.join("jit-core/tests/fake-cuda/lib.rs"))
        .find(|source| source.exists())
        .expect("the source of the fake driver");
    let output = fresh_path();
    let mut rustc = Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
    rustc.args([
        "--edition=2024",
        "--crate-type=cdylib",
        "--crate-name=fake_cuda",
    ]);
    rustc.args(["-Cpanic=abort", "-Cdebuginfo=0", "-Cstrip=symbols"]);
    if cfg!(target_os = "linux") {
        // What one entry point calls of another is found though its name is taken away.
        rustc.arg("-Clink-arg=-Wl,-Bsymbolic");
    }
    if empty {
        rustc.args(["--cfg", "empty"]);
    }
    let result = rustc.arg("-o").arg(&output).arg(source).output().unwrap();
    assert!(
        result.status.success(),
        "{}",
        String::from_utf8_lossy(&result.stderr)
    );
    let bytes = std::fs::read(&output).unwrap();
    std::fs::remove_file(&output).unwrap();
    bytes
}

/// One loaded copy of the fake driver, with its control functions.
pub(crate) struct Fake {
    library: Library,
    path: PathBuf,
}

/// What is alive in a fake driver.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Ledger {
    pub(crate) memory: u64,
    pub(crate) pinned: u64,
    pub(crate) modules: u64,
    pub(crate) streams: u64,
    pub(crate) events: u64,
    /// References to primary contexts beyond the one of each device that a process keeps.
    pub(crate) contexts: u64,
}

impl Ledger {
    pub(crate) fn total(&self) -> u64 {
        self.memory + self.pinned + self.modules + self.streams + self.events + self.contexts
    }
}

impl Fake {
    pub(crate) fn new() -> Fake {
        Fake::place(Fake::built())
    }

    /// A driver without these entry points.
    pub(crate) fn without(names: &[&str]) -> Fake {
        let mut bytes = Fake::built().to_vec();
        for name in names {
            let symbol = format!("\0{name}\0");
            let is_here = |at: &usize| bytes[*at..].starts_with(symbol.as_bytes());
            let found: Vec<_> = (0..bytes.len()).filter(is_here).collect();
            // Its hash is that of the name still, so that nobody finds it.
            for at in found {
                bytes[at + 1] = b'x';
            }
        }
        Fake::place(&bytes)
    }

    fn built() -> &'static [u8] {
        static BUILT: OnceLock<Vec<u8>> = OnceLock::new();
        BUILT.get_or_init(|| build(false))
    }

    /// A library that opens and has no symbols.
    pub(crate) fn empty() -> Fake {
        Fake::place(&build(true))
    }

    fn place(bytes: &[u8]) -> Fake {
        let path = fresh_path();
        std::fs::write(&path, bytes).unwrap();
        // SAFETY: the fake driver has no initialization routines of its own.
        let library = unsafe { Library::new(&path) }.unwrap();
        Fake { library, path }
    }

    /// A control function.
    fn function<F: Copy>(&self, name: &str) -> F {
        // SAFETY: the callers below give the signatures of `lib.rs`.
        unsafe { *self.library.get::<F>(name).unwrap() }
    }

    pub(crate) fn open(&self) -> Result<&'static Driver, DriverError> {
        Driver::open(&self.path)
    }

    pub(crate) fn open_with_visible(&self, devices: &str) -> Result<&'static Driver, DriverError> {
        Driver::open_with(&DriverSettings {
            library: Some(self.path.clone()),
            visible_devices: Some(devices.to_owned()),
        })
    }

    /// Version, number of devices, result of `cuInit`, bytes of memory.
    pub(crate) fn set(&self, version: c_int, devices: c_int, init_code: u32, total: usize) {
        self.function::<extern "C" fn(c_int, c_int, u32, usize)>("fake_set")(
            version, devices, init_code, total,
        );
    }

    /// Makes it a fresh driver again, without a current context in this thread.
    pub(crate) fn reset(&self) {
        self.function::<extern "C" fn()>("fake_reset")();
    }

    /// Whether devices that are opened from now on have pools of memory.
    pub(crate) fn set_pools(&self, pools: bool) {
        self.function::<extern "C" fn(bool)>("fake_pools")(pools);
    }

    /// How many pools there are, their bytes that are free, and how many of these may be kept.
    pub(crate) fn pooled(&self) -> [u64; 3] {
        let mut out = [0; 3];
        self.function::<extern "C" fn(*mut [u64; 3])>("fake_pooled")(&mut out);
        out
    }

    /// Whether a kernel runs that does not end.
    pub(crate) fn set_busy(&self, busy: bool) {
        self.function::<extern "C" fn(bool)>("fake_busy")(busy);
    }

    /// Whether work is done only once the host has waited for it.
    pub(crate) fn set_lazy(&self, lazy: bool) {
        self.function::<extern "C" fn(bool)>("fake_lazy")(lazy);
    }

    /// Has other code's work in a stream write the allocation at an address.
    pub(crate) fn use_memory(&self, stream: usize, address: u64) {
        self.function::<extern "C" fn(usize, u64)>("fake_use")(stream, address);
    }

    /// Whether launches take a while, so that other threads come between.
    pub(crate) fn set_slow(&self, slow: bool) {
        self.function::<extern "C" fn(bool)>("fake_slow")(slow);
    }

    /// Whether launches of kernels whose names have `_held` wait in the driver, while other threads' calls go on.
    pub(crate) fn set_holds(&self, holds: bool) {
        self.function::<extern "C" fn(bool)>("fake_hold")(holds);
    }

    /// How many launches wait there.
    pub(crate) fn held(&self) -> u64 {
        self.function::<extern "C" fn() -> u64>("fake_held")()
    }

    /// Has other code begin to capture a stream in this thread, in a mode: 0 global, 1 of the thread, 2 relaxed.
    pub(crate) fn begin_capture(&self, stream: usize, mode: u32) {
        self.function::<extern "C" fn(usize, u32)>("fake_begin_capture")(stream, mode);
    }

    /// Ends the capture of a stream: the driver's code, and how much work was captured.
    pub(crate) fn end_capture(&self, stream: usize) -> (u32, u64) {
        let mut works = 0;
        let end = self.function::<extern "C" fn(usize, *mut u64) -> u32>("fake_end_capture");
        (end(stream, &mut works), works)
    }

    /// The mode that this thread has.
    pub(crate) fn capture_mode(&self) -> u32 {
        self.function::<extern "C" fn() -> u32>("fake_capture_mode")()
    }

    /// How often a stream was made to wait for an event.
    pub(crate) fn waits(&self) -> u64 {
        self.function::<extern "C" fn() -> u64>("fake_waits")()
    }

    /// The first race since this was asked last: work that is not ordered and uses the same memory.
    pub(crate) fn race(&self) -> Option<String> {
        let mut text = [0; 200];
        let race = self.function::<extern "C" fn(*mut u8, usize) -> usize>("fake_race");
        let count = race(text.as_mut_ptr(), text.len());
        (count > 0).then(|| String::from_utf8_lossy(&text[..count]).into_owned())
    }

    pub(crate) fn set_compute_mode(&self, mode: c_int) {
        self.function::<extern "C" fn(c_int)>("fake_set_compute_mode")(mode);
    }

    /// Makes the `nth` call from now to `call` ("*" for any) return `code`.
    pub(crate) fn fail(&self, call: &str, nth: u32, code: u32) {
        let call = CString::new(call).unwrap();
        self.function::<extern "C" fn(*const c_char, u32, u32)>("fake_fail")(
            call.as_ptr(),
            nth,
            code,
        );
    }

    /// The call that was made to fail, if it came to that.
    pub(crate) fn failed(&self) -> Option<String> {
        let name = self.function::<extern "C" fn() -> *const c_char>("fake_failed")();
        // SAFETY: null or a C string that lives until the next plan.
        (!name.is_null()).then(|| unsafe { CStr::from_ptr(name) }.to_str().unwrap().to_owned())
    }

    pub(crate) fn sticky_after(&self, launches: u32, code: u32) {
        self.function::<extern "C" fn(u32, u32)>("fake_sticky_after")(launches, code);
    }

    pub(crate) fn reject(&self, code: u32, log: &str) {
        let log = CString::new(log).unwrap();
        self.function::<extern "C" fn(u32, *const c_char)>("fake_reject")(code, log.as_ptr());
    }

    pub(crate) fn calls(&self) -> u64 {
        self.function::<extern "C" fn() -> u64>("fake_calls")()
    }

    /// How often each call was made.
    pub(crate) fn calls_of(&self) -> BTreeMap<String, u64> {
        extern "C" fn tell(name: *const c_char, count: u64, to: *mut c_void) {
            // SAFETY: the driver passes a C string, and the map that it was given.
            let (name, calls) =
                unsafe { (CStr::from_ptr(name), &mut *to.cast::<BTreeMap<_, _>>()) };
            calls.insert(name.to_string_lossy().into_owned(), count);
        }
        type Tell = extern "C" fn(*const c_char, u64, *mut c_void);
        let mut calls = BTreeMap::new();
        let to: *mut BTreeMap<String, u64> = &mut calls;
        self.function::<extern "C" fn(Tell, *mut c_void)>("fake_calls_of")(tell, to.cast());
        calls
    }

    /// The bytes that the driver has allocated and not freed.
    pub(crate) fn alive(&self) -> i64 {
        self.function::<extern "C" fn() -> i64>("fake_alive")()
    }

    pub(crate) fn ledger(&self) -> Ledger {
        let mut out = [0u64; 6];
        self.function::<extern "C" fn(*mut [u64; 6])>("fake_ledger")(&mut out);
        let [memory, pinned, modules, streams, events, contexts] = out;
        Ledger {
            memory,
            pinned,
            modules,
            streams,
            events,
            contexts,
        }
    }

    /// How often machine code was made of PTX, and how much of it is being made.
    pub(crate) fn links(&self) -> [u64; 2] {
        let mut out = [0u64; 2];
        self.function::<extern "C" fn(*mut [u64; 2])>("fake_links")(&mut out);
        out
    }

    /// Graphs and executable graphs that there are, nodes that were set anew, launches.
    pub(crate) fn graphs(&self) -> [u64; 4] {
        let mut out = [0u64; 4];
        self.function::<extern "C" fn(*mut [u64; 4])>("fake_graphs")(&mut out);
        out
    }

    /// Cooperative launches, and how often the driver was asked which block is best.
    pub(crate) fn occupancy(&self) -> [u64; 2] {
        let mut out = [0u64; 2];
        self.function::<extern "C" fn(*mut [u64; 2])>("fake_occupancy")(&mut out);
        out
    }

    /// Has the host no more than this to pin.
    pub(crate) fn set_pinned_limit(&self, bytes: usize) {
        self.function::<extern "C" fn(usize)>("fake_pinned_limit")(bytes);
    }

    /// Copies between contexts.
    pub(crate) fn peer_copies(&self) -> u64 {
        self.function::<extern "C" fn() -> u64>("fake_peer_copies")()
    }

    /// How often rows were copied by one call.
    pub(crate) fn row_copies(&self) -> u64 {
        self.function::<extern "C" fn() -> u64>("fake_row_copies")()
    }

    /// The numbers of a node of the last launch of a graph: of a kernel the function, grid, block, shared bytes, and
    /// parameters.
    pub(crate) fn graph_node(&self, at: usize) -> Vec<u64> {
        let mut out = [0u64; 64];
        type Node = extern "C" fn(usize, *mut u64, usize) -> usize;
        let node = self.function::<Node>("fake_graph_node");
        let count = node(at, out.as_mut_ptr(), out.len());
        out[..count].to_vec()
    }

    /// Grid, block, shared bytes, first parameter.
    pub(crate) fn last_launch(&self) -> [u64; 8] {
        let mut out = [0u64; 8];
        self.function::<extern "C" fn(*mut [u64; 8])>("fake_last_launch")(&mut out);
        out
    }

    /// The parameters of the last launch as they lie in its block, with zeros between them.
    pub(crate) fn last_params(&self) -> Vec<u8> {
        let mut out = vec![0u8; 4096];
        type Params = extern "C" fn(*mut u8, usize) -> usize;
        let params = self.function::<Params>("fake_last_params");
        let count = params(out.as_mut_ptr(), out.len());
        out.truncate(count);
        out
    }

    /// Does what a faulting thread does; whether it claimed the record.
    pub(crate) fn raise_fault(
        &self,
        channel: u64,
        site: u32,
        tag: u64,
        index: u64,
        length: u64,
    ) -> bool {
        let raise =
            self.function::<extern "C" fn(u64, u32, u64, u64, u64) -> u32>("fake_raise_fault");
        raise(channel, site, tag, index, length) == 1
    }

    /// An error's text with the library's path taken out.
    pub(crate) fn text(&self, error: &DriverError) -> String {
        error
            .to_string()
            .replace(&self.path.display().to_string(), "FAKE")
    }
}

impl Drop for Fake {
    fn drop(&mut self) {
        // The mapping stays; only the file goes.
        let _ = std::fs::remove_file(&self.path);
    }
}
