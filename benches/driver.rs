//! The CUDA driver as a C program uses it: what benches compare Kiln with. Panics on any error,
//! as a bench may.
#![allow(dead_code, reason = "each bench uses a part of it")]

use std::ffi::{CString, c_void};
use std::path::PathBuf;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicU32, Ordering};

use cudarc::driver::sys;
use kiln::prelude::LaunchConfig;

/// Panics unless a driver call succeeded.
fn check(result: sys::CUresult) {
    assert_eq!(result, sys::CUresult::CUDA_SUCCESS);
}

/// A kernel loaded by the bench itself into the current context.
#[derive(Copy, Clone)]
pub struct Function(sys::CUfunction);

// SAFETY: any thread may launch a function of the driver's (CUDA Driver API, "Execution Control").
unsafe impl Sync for Function {}

impl Function {
    /// The driver's own name for it.
    pub fn raw(self) -> sys::CUfunction {
        self.0
    }
}

/// A context, which each thread makes current before it calls the driver itself.
#[derive(Copy, Clone)]
pub struct Context(sys::CUcontext);

// SAFETY: a context may be current in any number of threads (CUDA Driver API, "Context Management").
unsafe impl Sync for Context {}

impl Context {
    /// The context that is current in this thread.
    pub fn current() -> Context {
        let mut context = null_mut();
        // SAFETY: the result is valid for writes.
        unsafe { check(sys::cuCtxGetCurrent(&mut context)) };
        Context(context)
    }

    /// Makes it current in this thread.
    pub fn enter(&self) {
        // SAFETY: the device that it is of lives to the end of the bench.
        unsafe { check(sys::cuCtxSetCurrent(self.0)) };
    }
}

/// Loads PTX text or a cubin.
pub fn load(image: &[u8], name: &str) -> Function {
    let mut image = image.to_vec();
    image.push(0);
    let name = CString::new(name).expect("a kernel name");
    let (mut module, mut function) = (null_mut(), null_mut());
    // SAFETY: the image ends with NUL, the name is a C string, the results are valid for writes.
    unsafe {
        check(sys::cuModuleLoadData(&mut module, image.as_ptr().cast()));
        check(sys::cuModuleGetFunction(
            &mut function,
            module,
            name.as_ptr(),
        ));
    }
    Function(function)
}

/// One launch on stream 0, of two dimensions.
///
/// # Safety
/// As [`launch_with`].
pub unsafe fn launch(
    function: Function,
    grid: (u32, u32),
    block: (u32, u32),
    params: &mut [*mut c_void],
) {
    // SAFETY: the caller's promise.
    unsafe { launch_with(function, &LaunchConfig::new(grid, block), params) };
}

/// One launch on stream 0.
///
/// # Safety
/// `params` are pointers to arguments of the kernel's types, whose buffers are there.
pub unsafe fn launch_with(function: Function, config: &LaunchConfig, params: &mut [*mut c_void]) {
    let LaunchConfig { grid, block, .. } = config;
    // SAFETY: the caller's promise; the function is of the current context.
    let result = unsafe {
        sys::cuLaunchKernel(
            function.0,
            grid.x,
            grid.y,
            grid.z,
            block.x,
            block.y,
            block.z,
            0,
            null_mut(),
            params.as_mut_ptr(),
            null_mut(),
        )
    };
    check(result);
}

/// One launch on stream 0 of a block of 32 threads, whose parameters lie one after the other in a block of memory.
///
/// # Safety
/// The block holds arguments of the kernel's types, whose buffers are there.
pub unsafe fn launch_block(function: Function, block: &mut [u8]) {
    let mut size = block.len();
    let named = |name: u32| std::ptr::without_provenance_mut(name as usize);
    let mut extra: [*mut c_void; 5] = [
        named(sys::CU_LAUNCH_PARAM_BUFFER_POINTER_AS_INT),
        block.as_mut_ptr().cast(),
        named(sys::CU_LAUNCH_PARAM_BUFFER_SIZE_AS_INT),
        (&raw mut size).cast(),
        named(sys::CU_LAUNCH_PARAM_END_AS_INT),
    ];
    let (none, extra) = (null_mut(), extra.as_mut_ptr());
    // SAFETY: the caller's promise; the function is of the current context.
    let result =
        unsafe { sys::cuLaunchKernel(function.0, 1, 1, 1, 32, 1, 1, 0, null_mut(), none, extra) };
    check(result);
}

/// A stream of the current context.
pub struct Stream(sys::CUstream);

// SAFETY: any thread may launch in a stream (CUDA Driver API, "Stream Management").
unsafe impl Sync for Stream {}

impl Stream {
    /// Stream 0.
    pub const DEFAULT: Stream = Stream(null_mut());

    /// One that stream 0 does not wait for; it is there until the process ends.
    pub fn new() -> Stream {
        let mut stream = null_mut();
        let flags = sys::CUstream_flags::CU_STREAM_NON_BLOCKING as u32;
        // SAFETY: the result is valid for writes.
        unsafe { check(sys::cuStreamCreateWithPriority(&mut stream, flags, 0)) };
        Stream(stream)
    }

    /// One launch of a block of 32 threads.
    ///
    /// # Safety
    /// As [`launch_with`].
    pub unsafe fn launch(&self, function: Function, params: &mut [*mut c_void]) {
        let (params, none) = (params.as_mut_ptr(), null_mut());
        // SAFETY: the caller's promise; the stream is of the current context.
        let result =
            unsafe { sys::cuLaunchKernel(function.0, 1, 1, 1, 32, 1, 1, 0, self.0, params, none) };
        check(result);
    }
}

/// A point in stream 0 of the current context, with its time.
pub struct Event(sys::CUevent);

impl Event {
    /// One that is there until the process ends.
    pub fn new() -> Event {
        let mut event = null_mut();
        // SAFETY: the result is valid for writes.
        unsafe { check(sys::cuEventCreate(&mut event, 0)) };
        Event(event)
    }

    /// Marks the end of what stream 0 was given.
    pub fn record(&self) {
        // SAFETY: the event is of the current context.
        unsafe { check(sys::cuEventRecord(self.0, null_mut())) };
    }

    /// Milliseconds since another, once this is reached.
    pub fn since(&self, start: &Event) -> f64 {
        let mut milliseconds = 0.0f32;
        // SAFETY: both were recorded; the result is valid for writes.
        unsafe {
            check(sys::cuEventSynchronize(self.0));
            check(sys::cuEventElapsedTime_v2(
                &mut milliseconds,
                start.0,
                self.0,
            ));
        }
        milliseconds.into()
    }
}

/// Compiles CUDA C++ with nvcc to what an option says, `-cubin` or `-ptx`, or to a program; `None` if there is no nvcc.
pub fn compiled(source: &str, sm: u32, to: &str) -> Option<Vec<u8>> {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let folder = format!("kiln-twin-{}-{number}", std::process::id());
    let folder = std::env::temp_dir().join(folder);
    std::fs::create_dir_all(&folder).expect("the temporary folder can be written");
    let (from, out) = (folder.join("twin.cu"), folder.join("twin.out"));
    std::fs::write(&from, source).expect("the temporary folder can be written");
    let mut nvcc = std::process::Command::new("nvcc");
    nvcc.args(["-O3", &format!("-arch=sm_{sm}"), to, "-o"]);
    let status = nvcc.arg(&out).arg(&from).status().ok()?;
    assert!(status.success(), "nvcc rejects a twin:\n{source}");
    let image = std::fs::read(&out).expect("nvcc wrote it");
    let _ = std::fs::remove_dir_all(&folder);
    Some(image)
}

/// Compiles a CUDA C++ file of `benches/peers` with nvcc; `None` if there is no nvcc.
pub fn nvcc(file: &str, sm: u32) -> Option<Vec<u8>> {
    compiled(&source(file), sm, "-cubin")
}

/// The folder of the peers' files: `benches/peers`, or that of a bundle.
pub fn peers() -> PathBuf {
    std::env::var_os("KILN_PEERS").map_or_else(|| "benches/peers".into(), PathBuf::from)
}

/// The text of a file of theirs.
pub fn source(file: &str) -> String {
    let path = peers().join(file);
    std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}
