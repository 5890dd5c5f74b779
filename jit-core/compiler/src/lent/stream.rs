//! Streams of other code in the process, for launches; what is done with them is [`kiln_runtime`]'s.

use std::ffi::c_void;
use std::sync::Arc;

use kiln_runtime::LentStream;

/// A CUDA stream of other code, for `Jit::adopt_stream`. With the features `cust` and `cudarc` the streams of these crates are such.
///
/// # Safety
/// What `as_raw` gives is always the same `CUstream`, and it lives as long as the value, on whichever thread that is.
pub unsafe trait DeviceStream: Send + Sync + 'static {
    /// The stream as the driver knows it: a `CUstream`, or null for the legacy default stream.
    fn as_raw(&self) -> *mut c_void;
}

/// A CUDA stream by its handle, where no type owns it.
#[derive(Debug)]
pub struct RawStream(*mut c_void);

// SAFETY: a handle, which the driver takes on any thread.
unsafe impl Send for RawStream {}
// SAFETY: as above.
unsafe impl Sync for RawStream {}

impl RawStream {
    /// A stream of which somebody else sees to it that it lives; `Jit::adopt_stream` has an example.
    ///
    /// # Safety
    /// `stream` is a `CUstream` that lives as long as this value and what is made of it.
    pub unsafe fn new(stream: *mut c_void) -> RawStream {
        RawStream(stream)
    }
}

// SAFETY: whoever made it has promised that the stream lives.
unsafe impl DeviceStream for RawStream {
    fn as_raw(&self) -> *mut c_void {
        self.0
    }
}

/// A stream with what keeps it, as devices take it.
#[doc(hidden)]
pub fn lent_stream(stream: impl DeviceStream) -> LentStream {
    let (raw, keep) = (stream.as_raw(), Arc::new(stream));
    // SAFETY: so the trait's implementation has promised.
    unsafe { LentStream::new(raw, keep) }
}
