//! Everything that can go wrong between this crate and the CUDA driver.
//!
//! Each text says what happened, where, and what to do about it. Codes, names and descriptions are
//! the driver's own (CUDA Driver API, "Data types used by CUDA driver", `CUresult`).

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use kiln_ir::{debug_as_text, error_text};

use super::waiting::KeptMemory;

/// A driver error code with the driver's name and description of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrorCode {
    /// The `CUresult` as a number.
    pub code: u32,
    /// The code's name, such as `CUDA_ERROR_INVALID_VALUE`.
    pub name: String,
    /// The driver's description.
    pub description: String,
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}: {})", self.name, self.code, self.description)
    }
}

/// Why a context became unusable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoisonCause {
    /// The driver call that reported it. The cause may be an earlier launch.
    pub call: &'static str,
    /// The code it returned.
    pub code: ErrorCode,
    /// The kernel launched last since the last complete synchronization, if any was.
    pub kernel: Option<Arc<str>>,
    /// Whether other kernels were launched since then as well.
    pub several_kernels: bool,
}

impl fmt::Display for PoisonCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} returned {}", self.call, self.code)?;
        match (&self.kernel, self.several_kernels) {
            (None, _) => f.write_str("; no kernel was launched since the last synchronization"),
            (Some(kernel), false) => write!(
                f,
                "; kernel `{kernel}` is the only one launched since the last synchronization"
            ),
            (Some(kernel), true) => write!(
                f,
                "; kernel `{kernel}` was launched last, other kernels were launched since the \
                 last synchronization: synchronize after each launch to find which one it was"
            ),
        }
    }
}

/// An error of the CUDA driver, or of reaching it.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DriverError {
    /// No driver library could be opened.
    #[error("{}", error_text!(
        "no CUDA driver library could be opened; tried {}. Install the NVIDIA driver (in a \
         container, start it with GPU support), or set KILN_LIBCUDA to the full path of libcuda, \
         or use the CPU device",
        tried.join("; ")
    ))]
    LibraryNotFound {
        /// Each name or path tried, with the loader's reason.
        tried: Vec<String>,
    },
    /// The library lacks an entry point that every supported driver has.
    #[error("{}", error_text!(
        "`{library}` has no symbol `{symbol}`, so it is not a CUDA driver that Kiln can use. \
         Update the NVIDIA driver, or check KILN_LIBCUDA"
    ))]
    SymbolMissing {
        /// The entry point.
        symbol: &'static str,
        /// The library's name or path.
        library: String,
    },
    /// The driver is older than [`super::MIN_DRIVER_VERSION`].
    #[error("{}", error_text!(
        "the CUDA driver `{library}` is of CUDA {}, and Kiln needs {} or newer. Update the NVIDIA \
         driver, or use the CPU device",
        CudaVersion(*version), CudaVersion(*required)
    ))]
    DriverTooOld {
        /// The driver's version, as `cuDriverGetVersion` gives it (12.8 is 12080).
        version: u32,
        /// The oldest version accepted, likewise.
        required: u32,
        /// The library's name or path.
        library: String,
    },
    /// The library is the toolkit's link-time stub.
    #[error("{}", error_text!(
        "`{library}` is the CUDA toolkit's stub library, which has no driver behind it. Remove \
         the toolkit's `stubs` folder from the library search path, or set KILN_LIBCUDA to the \
         driver's own libcuda"
    ))]
    StubLibrary {
        /// The library's name or path.
        library: String,
    },
    /// The driver is there and sees no device.
    #[error("{}", error_text!("the CUDA driver sees no device. {}", no_device_advice(visible_devices.as_deref())))]
    NoDevice {
        /// The value of CUDA_VISIBLE_DEVICES, if it is set.
        visible_devices: Option<String>,
    },
    /// A device number that does not exist.
    #[error("{}", error_text!(
        "there is no CUDA device {asked}: the driver sees {count}, numbered from 0{}. Ask for a \
         lower number",
        visible_note(visible_devices.as_deref())
    ))]
    InvalidDevice {
        /// The number asked for.
        asked: u32,
        /// How many devices there are.
        count: u32,
        /// The value of CUDA_VISIBLE_DEVICES, if it is set.
        visible_devices: Option<String>,
    },
    /// The device is there and does not accept a context of this process.
    #[error("{}", error_text!(
        "CUDA device {ordinal} ({device}) refused a context: {code}. Its compute mode is \
         {compute_mode}: in an exclusive mode end the other process that uses it, in the \
         prohibited mode ask the administrator (`nvidia-smi -c 0`); under MPS check that its \
         server runs"
    ))]
    DeviceUnavailable {
        /// The device's number.
        ordinal: u32,
        /// The device's name.
        device: String,
        /// The device's compute mode.
        compute_mode: &'static str,
        /// What the driver returned.
        code: ErrorCode,
    },
    /// The device has not enough free memory.
    #[error("{}", error_text!(
        "out of device memory in {call}: asked for {asked} bytes, {} free of {total}; this program's buffers have {used}, and \
         {pooled} are kept for later ones. Drop buffers, use smaller ones, or end other processes on the device; \
         earlier buffers are intact",
        Bytes(*free)
    ))]
    OutOfMemory {
        /// The driver call.
        call: &'static str,
        /// Bytes asked for; 0 where the driver decides (loading, launching).
        asked: u64,
        /// Bytes free, if the driver still said.
        free: Option<u64>,
        /// Bytes of memory of the device.
        total: u64,
        /// Bytes of the buffers that there are in the context.
        used: u64,
        /// Bytes that its pool keeps for later ones, after what could be was given back.
        pooled: u64,
    },
    /// The host gives no more memory that the device copies from and to.
    #[error("{}", error_text!(
        "cuMemHostAlloc (2: out of memory): no {asked} bytes of pinned memory of the host are left, beside {used} that this program has; drop what copies have \
         given back, use smaller copies, or `write` and `to_vec`, which need none"
    ))]
    PinnedMemory {
        /// Bytes asked for.
        asked: usize,
        /// Bytes that the program has, copies that are under way among them.
        used: usize,
    },
    /// The device is at work for longer than a call may wait.
    #[error("{}", error_text!(
        "{call}: the device has not finished after {limit:?}, the time limit; {}. No call can end a \
         kernel on a GPU: look for a loop or a wait that does not end, raise \
         `JitOptions::time_limit`, or end the process. {}",
        suspect(kernel.as_deref(), *several_kernels), kept_note(kept)
    ))]
    StillRunning {
        /// The driver call that would have waited.
        call: &'static str,
        /// How long it waited.
        limit: Duration,
        /// The kernel launched last since the last complete synchronization, if any was.
        kernel: Option<String>,
        /// Whether other kernels were launched since then as well.
        several_kernels: bool,
        /// What could not be freed.
        kept: KeptMemory,
    },
    /// A range of addresses that is not inside a live allocation of this context.
    #[error("{}", error_text!(
        "{call}: {bytes} bytes at device address {address:#x} are not inside a live allocation of \
         this context. Check that the array was not freed, is of this device, and is long enough"
    ))]
    InvalidAddress {
        /// The operation.
        call: &'static str,
        /// First address of the range.
        address: u64,
        /// The range's length in bytes.
        bytes: u64,
    },
    /// PTX text or a name with a NUL byte inside, which the driver would take for its end.
    #[error("{}", error_text!(
        "the PTX text or name for kernel `{kernel}` has a NUL byte at offset {offset}. Remove it; \
         if a hook wrote the text, look there"
    ))]
    NulByte {
        /// The kernel.
        kernel: String,
        /// Where the byte is.
        offset: usize,
    },
    /// The driver's PTX compiler refused a kernel.
    #[error("{}", error_text!(
        "the driver refused the code of kernel `{kernel}`: {code}. {} Log: {log}",
        jit_advice(code.code)
    ))]
    JitRejected {
        /// The kernel.
        kernel: String,
        /// What the driver returned.
        code: ErrorCode,
        /// The JIT's error log, trimmed; may be empty.
        log: String,
    },
    /// What was to be loaded as machine code is none.
    #[error("{}", error_text!(
        "the machine code of kernel `{kernel}` is no ELF file; give a `cubin`, as `ptxas` writes it"
    ))]
    NotMachineCode {
        /// The kernel.
        kernel: String,
    },
    /// The PTX is of a newer language version than the driver knows.
    #[error("{}", error_text!(
        "kernel `{kernel}` is PTX {ptx_version}, and the driver (CUDA {}) knows PTX up to \
         {}.{}. Compile for that PTX version, or update the NVIDIA driver. Log: {log}",
        CudaVersion(*driver_version), newest.0, newest.1
    ))]
    UnsupportedPtxVersion {
        /// The kernel.
        kernel: String,
        /// The version on the text's `.version` line, or "of no version".
        ptx_version: String,
        /// The driver's version, as `cuDriverGetVersion` gives it (12.8 is 12080).
        driver_version: u32,
        /// The newest PTX ISA version that such a driver accepts: major, minor.
        newest: (u32, u32),
        /// The JIT's error log, trimmed; may be empty.
        log: String,
    },
    /// A loaded module has no such kernel or global.
    #[error("{}", error_text!(
        "the module of kernel `{kernel}` has no symbol `{symbol}`. Use a name that its PTX \
         declares `.visible`"
    ))]
    SymbolNotFound {
        /// The kernel that the module was loaded for.
        kernel: Arc<str>,
        /// The name looked for.
        symbol: String,
    },
    /// The driver refused a launch. The context is still usable.
    #[error("{}", error_text!(
        "launch of kernel `{kernel}` refused by {call}: {code}; grid {grid:?}, block {block:?}, \
         {shared_bytes} bytes of dynamic shared memory. {}",
        limit.as_deref().unwrap_or("No known limit is exceeded: check the parameters")
    ))]
    LaunchFailed {
        /// The kernel.
        kernel: Arc<str>,
        /// The driver call: of a launch, or one that makes or sets the node of a graph.
        call: &'static str,
        /// What the driver returned.
        code: Box<ErrorCode>,
        /// Blocks in x, y, z.
        grid: [u32; 3],
        /// Threads of a block in x, y, z.
        block: [u32; 3],
        /// Dynamic shared memory of a block in bytes.
        shared_bytes: u32,
        /// The limit that was exceeded, if one was.
        limit: Option<Box<str>>,
    },
    /// A handle of another context.
    #[error("{}", error_text!(
        "the {what} belongs to another CUDA context than the one it is used with. Create both \
         from the same context"
    ))]
    ForeignHandle {
        /// Which handle.
        what: &'static str,
    },
    /// A stream of other code whose work becomes a graph of theirs.
    #[error("{}", error_text!(
        "the stream is being captured by other code (`cudaStreamBeginCapture`), whose graph would run this again when its \
         buffers are gone. Launch before the capture begins or once it has ended, or record a graph of Kiln's (`Jit::graph`)"
    ))]
    StreamIsCaptured,
    /// CUDA is used in a child of the process that initialized it.
    #[error("{}", error_text!(
        "CUDA was initialized in process {parent} and is used in its child {child}: a CUDA context \
         does not survive fork. Start workers with exec or spawn, or open the device after the fork"
    ))]
    ForkedProcess {
        /// The process that created the context.
        parent: u32,
        /// This process.
        child: u32,
    },
    /// The context is unusable since an earlier error.
    #[error("{}", error_text!(
        "the CUDA context is unusable: {first}. {}",
        poison_advice(first.code.code)
    ))]
    Poisoned {
        /// The first cause.
        first: Arc<PoisonCause>,
    },
    /// Something of a context that was begun anew since.
    #[error("{}", error_text!(
        "CUDA device {ordinal} was reset since this was made, and it is lost: make it again with the `Jit` that \
         `Jit::reset` gave"
    ))]
    Reset {
        /// The device's number.
        ordinal: u32,
    },
    /// A context that other code has made cannot be begun anew here.
    #[error("{}", error_text!(
        "the context on CUDA device {ordinal} was adopted, and is not Kiln's to reset: have the code that made it \
         destroy it, make another, and adopt that"
    ))]
    NotToReset {
        /// The device's number.
        ordinal: u32,
    },
    /// The driver keeps what was wrong with a device whose context was begun anew.
    #[error("{}", error_text!(
        "the driver keeps the error of CUDA device {ordinal} when its context is begun anew: {call} returned {code}. \
         Start the process again"
    ))]
    StaysLost {
        /// The device's number.
        ordinal: u32,
        /// The driver call.
        call: &'static str,
        /// The code that the driver returned.
        code: ErrorCode,
    },
    /// Any other code.
    #[error("{}", error_text!("{call} failed: {code}. {}", advice(code.code)))]
    Other {
        /// The driver call.
        call: &'static str,
        /// What the driver's function returned.
        code: ErrorCode,
    },
}

debug_as_text!(DriverError);

impl DriverError {
    /// Whether all that was made on the device is lost.
    pub(crate) fn is_loss(&self) -> bool {
        use DriverError::{ForkedProcess, Poisoned, Reset, StaysLost};
        matches!(
            self,
            Poisoned { .. } | Reset { .. } | StaysLost { .. } | ForkedProcess { .. }
        )
    }
}

/// A CUDA version number: 12080 prints as 12.8.
struct CudaVersion(u32);

impl fmt::Display for CudaVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.0 / 1000, self.0 % 1000 / 10)
    }
}

/// A number of bytes that may be unknown.
struct Bytes(Option<u64>);

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(bytes) => write!(f, "{bytes}"),
            None => f.write_str("an unknown number"),
        }
    }
}

fn no_device_advice(visible_devices: Option<&str>) -> String {
    match visible_devices {
        Some(value) => format!(
            "CUDA_VISIBLE_DEVICES is set to \"{value}\", which may hide the devices: unset it, or \
             use the CPU device"
        ),
        None => "Check `nvidia-smi`, and in a container that GPUs are passed through; or use the \
                 CPU device"
            .to_owned(),
    }
}

fn visible_note(visible_devices: Option<&str>) -> String {
    match visible_devices {
        Some(value) => format!(" (CUDA_VISIBLE_DEVICES is \"{value}\")"),
        None => String::new(),
    }
}

fn jit_advice(code: u32) -> &'static str {
    match code {
        209 => "It is for another architecture than the device's: compile for the device's.",
        221 => {
            "The driver's PTX compiler library (libnvidia-ptxjitcompiler) is missing: install the \
             complete driver, or in a container ask for its `compute` capability."
        }
        223 => "CUDA_DISABLE_PTX_JIT is set: unset it.",
        _ => {
            "If a hook wrote or changed the PTX, correct it at the line the log names; otherwise \
             report it with the PTX."
        }
    }
}

fn poison_advice(code: u32) -> &'static str {
    match code {
        4 => "The driver is shutting down because the process exits: drop devices before that",
        700 | 716 | 717 => {
            "A kernel accessed memory it must not. Reset the device (`Jit::reset`) or start the \
             process again; run with bounds checks on to get the kernel's line"
        }
        702 => {
            "A kernel ran longer than the watchdog of a display GPU allows. Reset the device \
             (`Jit::reset`) or start the process again, and split the kernel or use a GPU without \
             a display"
        }
        710 => {
            "A device-side assertion failed. Reset the device (`Jit::reset`) or start the process \
             again"
        }
        714 | 715 | 718 | 719 | 721 => {
            "A kernel failed on the device. Reset the device (`Jit::reset`) or start the process \
             again; run with bounds checks on to find an invalid access"
        }
        _ => {
            "The device, another process or the driver caused it, not necessarily a kernel of \
             yours. Check `nvidia-smi` and the system log, then reset the device (`Jit::reset`) or \
             start the process again"
        }
    }
}

fn advice(code: u32) -> &'static str {
    match code {
        3 => "The driver is not initialized: was the library loaded before a fork?",
        600 => "The work is not finished: synchronize first",
        801 => "The device or the system does not support this operation",
        802 => "The system is not ready: on a machine with NVSwitch start nvidia-fabricmanager",
        803 => "libcuda and the kernel module are of different versions: reboot after an update",
        900..=908 => {
            "Other code of the process captures a stream (`cudaStreamBeginCapture`): make this call before or after, or have it \
             captured in the mode `cudaStreamCaptureModeThreadLocal`; what is captured meanwhile may have to be captured again"
        }
        804 => {
            "The forward-compatibility libcuda does not support this device: use the driver's own"
        }
        _ => {
            "See this code in the CUDA Driver API reference; run with CUDA_LAUNCH_BLOCKING=1 to \
              find the call that caused it"
        }
    }
}

/// What may be running.
fn suspect(kernel: Option<&str>, several: bool) -> String {
    match (kernel, several) {
        (None, _) => "no kernel was launched since the last synchronization".to_owned(),
        (Some(kernel), false) => {
            format!("kernel `{kernel}` is the only one launched since the last synchronization")
        }
        (Some(kernel), true) => format!(
            "kernel `{kernel}` was launched last, other kernels were launched since the last \
             synchronization"
        ),
    }
}

fn kept_note(kept: &KeptMemory) -> String {
    match kept.allocations {
        0 => "No buffer waits to be freed".to_owned(),
        count => format!(
            "{count} buffers of {} bytes that were dropped meanwhile are kept until it has finished",
            kept.bytes
        ),
    }
}
