//! Streams of other code in the process, which Kiln gives work to and does not own.

use std::ffi::c_void;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::AtomicPtr;
use std::sync::atomic::Ordering::Release;

use cudarc::driver::sys;

use super::{CudaStream, StreamHandle};
use crate::cuda::context::CudaContext;
use crate::cuda::error::DriverError;

impl CudaContext {
    /// A stream that other code has made in this context.
    ///
    /// # Safety
    /// `stream` is a `CUstream`, which lives until what is returned has [left](CudaStream::leave) it or is dropped.
    ///
    /// # Errors
    /// [`DriverError::ForeignHandle`] for a stream of another context; [`DriverError::Poisoned`].
    pub(crate) unsafe fn lent_stream(
        self: &Arc<Self>,
        stream: *mut c_void,
    ) -> Result<CudaStream, DriverError> {
        let lent = CudaStream {
            context: Arc::clone(self),
            handle: AtomicPtr::default(),
            is_lent: true,
        };
        // SAFETY: passed on to the caller.
        unsafe { lent.go_on(stream)? };
        Ok(lent)
    }

    /// Forgets a stream that the work of the context is asked of.
    pub(super) fn unlist(&self, stream: StreamHandle) {
        let mut listed = self.beside.lock();
        if let Some(at) = listed.iter().position(|known| *known == stream) {
            listed.swap_remove(at);
        }
    }
}

impl CudaStream {
    /// Stands for stream 0 from here on, and no longer for other code's stream.
    pub(crate) fn leave(&self) {
        let left = self.handle.swap(ptr::null_mut(), Release);
        self.context.unlist(StreamHandle(left));
    }

    /// Stands for a stream of other code, and no longer for stream 0.
    ///
    /// # Safety
    /// As [`CudaContext::lent_stream`].
    ///
    /// # Errors
    /// As there.
    pub(crate) unsafe fn go_on(&self, stream: *mut c_void) -> Result<(), DriverError> {
        let stream: sys::CUstream = stream.cast();
        let table = self.context.enter()?;
        let mut owner: sys::CUcontext = ptr::null_mut();
        // SAFETY: the stream is live, and `owner` outlives the call.
        let code = unsafe { (table.cuStreamGetCtx)(stream, &mut owner) };
        self.context.check("cuStreamGetCtx", code)?;
        if owner.cast() != self.context.as_raw() {
            return Err(DriverError::ForeignHandle { what: "stream" });
        }
        self.context.note_stream();
        self.context.beside.lock().push(StreamHandle(stream));
        self.handle.store(stream, Release);
        Ok(())
    }
}
