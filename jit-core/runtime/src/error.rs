//! What goes wrong on a device, whichever it is.

use kiln_interp::InterpretError;
use kiln_ir::launch::{DesertedGrid, KernelFault, LaunchStopped};
use kiln_ir::row_panic::RowPanic;
use kiln_ir::{debug_as_text, error_text};

use crate::cpu::ObjectError;
use crate::cuda::DriverError;
use crate::device::DeviceId;

/// A device did not do what it was asked for, or found that an earlier launch went wrong.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum DeviceError {
    /// The CUDA driver cannot be used or reports an error.
    #[error(transparent)]
    Driver(#[from] DriverError),
    /// Machine code that a hook made cannot be loaded.
    #[error("{}", error_text!(
        "the machine code that the hook `{hook}` has made of the PTX of kernel `{kernel}` cannot be loaded; it has to be \
         for this device and hold the kernel under the name that the PTX has: {error}"
    ))]
    Assembled {
        /// The hook.
        hook: String,
        /// The kernel.
        kernel: String,
        /// What the driver says.
        #[source]
        error: DriverError,
    },
    /// A thread of an earlier launch ended because it did something it must not.
    #[error(transparent)]
    Fault(#[from] KernelFault),
    /// A launch was ended before its time.
    #[error(transparent)]
    Stopped(#[from] LaunchStopped),
    /// Blocks waited for others that had ended.
    #[error(transparent)]
    DesertedGrid(#[from] DesertedGrid),
    /// The function of an intrinsic's row panicked.
    #[error(transparent)]
    RowPanic(#[from] RowPanic),
    /// The interpreter met something that ends the launch, or a check found something.
    #[error(transparent)]
    Interpret(#[from] InterpretError),
    /// Machine code that cannot be loaded.
    #[error(transparent)]
    Object(#[from] ObjectError),
    /// Code for a GPU did on this CPU what ends a launch.
    #[cfg(feature = "gpu-on-host")]
    #[error(transparent)]
    OnHost(#[from] crate::OnHostError),
    /// A device that cannot end launches.
    #[error("{}", error_text!(
        "{device} cannot end a kernel before its time; set `JitOptions::time_limit`, so that waiting for it \
         ends"
    ))]
    NoCancel {
        /// The device.
        device: String,
    },
    /// Checks on a device that makes none.
    #[error("{}", error_text!(
        "kernel `{kernel}`: {device} makes no checks; launch it with these options on `Device::cpu()`, or run \
         the program under NVIDIA's compute-sanitizer"
    ))]
    NoChecks {
        /// The kernel.
        kernel: String,
        /// The device.
        device: String,
    },
    /// The host has no memory left.
    #[error("{}", error_text!(
        "the host has no {bytes} bytes of memory left; use smaller buffers or drop some"
    ))]
    HostMemory {
        /// What was asked for.
        bytes: usize,
    },
    /// The operating system gives no thread to run blocks on.
    #[error("{}", error_text!(
        "no thread could be started to run kernels on this CPU: {}; the process has too many", .0
    ))]
    Workers(String),
    /// An address that is not of this device's memory.
    #[error("{}", error_text!(
        "{address:#x} is no address of this device's memory; use buffers of this device"
    ))]
    ForeignAddress {
        /// The address.
        address: u64,
    },
    /// Memory of other code on a device that knows its own alone.
    #[error("{}", error_text!(
        "{device} has no memory that other code allocates; copy it, by `Jit::upload` and `Buffer::to_vec`"
    ))]
    OwnMemoryOnly {
        /// The device.
        device: String,
    },
    /// Memory that was lent and that the device has already.
    #[error("{}", error_text!(
        "the memory at {address:#x} is a buffer already, or a part of one; use that, or end it first"
    ))]
    KnownMemory {
        /// The address.
        address: u64,
    },
    /// An event of another device.
    #[error("the two events are of different devices; record both on one")]
    ForeignEvent,
    /// A stream of another device.
    #[error("{}", error_text!(
        "the stream is of {owner}, and the kernel was made ready for {device}; use a stream of that"
    ))]
    ForeignStream {
        /// The stream's device.
        owner: DeviceId,
        /// The kernel's.
        device: DeviceId,
    },
    /// A stream of other code on a device that knows its own alone.
    #[error("{}", error_text!(
        "{device} has no streams of other code; use `Jit::stream`"
    ))]
    OwnStreamsOnly {
        /// The device.
        device: String,
    },
    /// A function of other code on a device that launches what Kiln has compiled alone.
    #[error("{}", error_text!(
        "{device} has no functions of other code; launch them on a GPU of NVIDIA's, or write them as kernels"
    ))]
    OwnCodeOnly {
        /// The device.
        device: String,
    },
    /// The default stream of whichever thread asks, in the place of a stream.
    #[error("{}", error_text!(
        "the handle of the per-thread default stream (`CU_STREAM_PER_THREAD`) is another stream on each thread, so that \
         work in it has no order that Kiln could keep; give a stream that was created, or the legacy default stream"
    ))]
    StreamOfThreads,
    /// More streams than a device has places for.
    #[error("{}", error_text!(
        "the device has 62 streams beside its own, of which none can be given back for a stream of other code; drop some \
         that are not used"
    ))]
    NoStreamLeft,
    /// Code for another kind of device.
    #[error("{}", error_text!(
        "kernel `{kernel}` was compiled for {target}, which {device} does not run; where kernels are launched, leave \
         `JitOptions::target` unset"
    ))]
    WrongTarget {
        /// The kernel.
        kernel: String,
        /// The machine that the code is for.
        target: String,
        /// The device.
        device: String,
    },
    /// A device is used in a child of the process that opened it.
    #[error("{}", error_text!(
        "{device} was opened in process {parent} and is used in its child {child}, which has none of its threads. Start \
         workers with exec or spawn, or open the device after the fork"
    ))]
    ForkedProcess {
        /// The device.
        device: String,
        /// The process that opened it.
        parent: u32,
        /// This process.
        child: u32,
    },
    /// A device that has no errors that last.
    #[error("{}", error_text!(
        "{device} is not reset: no error of it lasts, so that it can be used as it is"
    ))]
    NothingToReset {
        /// The device.
        device: String,
    },
    /// A device was asked for something in a call that a stream makes.
    #[error("{}", error_text!(
        "a call that a stream makes (`Stream::then`) cannot launch, copy or wait, as the device waits for it; hand the \
         work to a thread, as by a channel"
    ))]
    InHostCall,
    /// A call that a stream makes has panicked.
    #[error("{}", error_text!(
        "a call that a stream makes (`Stream::then`) panicked: {message}; the work behind it went on"
    ))]
    HostCallPanicked {
        /// The text of the panic.
        message: String,
    },
    /// What a backend that Kiln does not know says.
    #[error("{}", error_text!("{device}: {message}"))]
    Backend {
        /// The device.
        device: String,
        /// What happened, and what to do.
        message: String,
    },
    /// A bug in Kiln.
    #[error("{}", error_text!("internal error, please report it: {}", .0))]
    Internal(&'static str),
}

debug_as_text!(DeviceError);

impl DeviceError {
    /// Whether all that was made on the device is lost.
    pub(crate) fn is_loss(&self) -> bool {
        match self {
            DeviceError::Driver(error) => error.is_loss(),
            DeviceError::ForkedProcess { .. } => true,
            _ => false,
        }
    }

    /// Whether the host gives no more memory that a device copies from and to.
    pub(crate) fn is_no_pinned_memory(&self) -> bool {
        matches!(self, DeviceError::Driver(DriverError::PinnedMemory { .. }))
    }

    /// Whether a kernel did what it must not, or the device is lost by one.
    pub(crate) fn is_fault(&self) -> bool {
        #[cfg(feature = "gpu-on-host")]
        if matches!(self, DeviceError::OnHost(_)) {
            return true;
        }
        match self {
            DeviceError::Fault(_) | DeviceError::RowPanic(_) | DeviceError::Interpret(_) => true,
            DeviceError::Driver(error) => matches!(error, DriverError::Poisoned { .. }),
            _ => false,
        }
    }
}

/// The result of what a device is asked for.
pub type Result<T, E = DeviceError> = std::result::Result<T, E>;
