//! Captures of other code: streams whose work becomes a graph in place of being done.
//!
//! While any code of the process captures a stream in the global mode, as `cudaStreamBeginCapture` does if nobody says
//! otherwise, the driver refuses in every thread what may not be part of a capture: taking and freeing memory,
//! loading code, waiting (CUDA Driver API, `cuThreadExchangeStreamCaptureMode`). With that it ends the capture, too, by
//! an error. None of Kiln's own work is part of one, so its calls say of themselves that they are not: for as long as
//! one lasts, its thread is in the relaxed mode. Launches, events and what streams wait for by them are refused to
//! nobody, and pay for nothing.
//!
//! A stream of other code that is being captured itself is given no work: that would become a part of their graph,
//! which runs it again when the buffers are gone, and takes each stream that waits for it into the capture.

use std::ops::Deref;

use cudarc::driver::sys;

use super::context::CudaContext;
use super::error::DriverError;
use super::stream::CudaStream;
use super::table::Table;

/// The mode of a thread whose calls are no part of any capture (`CU_STREAM_CAPTURE_MODE_RELAXED`).
const RELAXED: u32 = 2;
/// The status of a stream that is not captured (`CU_STREAM_CAPTURE_STATUS_NONE`).
const NOT_CAPTURED: u32 = 0;

/// The entry points, in a context that is current, for calls that are no part of a capture of other code.
#[must_use]
pub(super) struct Entered<'a> {
    context: &'a CudaContext,
    table: &'static Table,
    /// The mode that the thread had, if it was changed.
    before: Option<u32>,
}

impl Deref for Entered<'_> {
    type Target = Table;

    fn deref(&self) -> &Table {
        self.table
    }
}

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        if let Some(before) = self.before {
            let exchange = || self.context.exchange_mode(before);
            // What the driver refuses once is tried again.
            let _ = exchange().or_else(exchange);
        }
    }
}

impl CudaContext {
    /// [`CudaContext::enter_at_once`] for calls that the driver refuses while other code captures a stream.
    pub(super) fn enter(&self) -> Result<Entered<'_>, DriverError> {
        let table = self.enter_at_once()?;
        let before = self.exchange_mode(RELAXED);
        Ok(Entered {
            context: self,
            table,
            before: before.filter(|before| *before != RELAXED),
        })
    }

    /// Gives the thread a mode, and says which it had. `None`: a driver that knows no modes, or refuses. Whether the
    /// context is lost is told by the call that this is for.
    fn exchange_mode(&self, mode: u32) -> Option<u32> {
        let exchange = self.driver().table.cuThreadExchangeStreamCaptureMode?;
        let mut mode = mode;
        let place: *mut sys::CUstreamCaptureMode = (&raw mut mode).cast();
        // SAFETY: `mode` outlives the call, and is a number of 32 bits for the driver.
        let code = unsafe { exchange(place) };
        (code == 0).then_some(mode)
    }
}

impl CudaStream {
    /// Refuses a stream that other code captures.
    ///
    /// # Errors
    /// [`DriverError::StreamIsCaptured`]; [`DriverError::Poisoned`].
    pub(crate) fn is_not_captured(&self) -> Result<(), DriverError> {
        let context = &self.context;
        let table = context.enter_at_once()?;
        let Some(ask) = table.cuStreamIsCapturing else {
            return Ok(());
        };
        let mut status = NOT_CAPTURED;
        let place: *mut sys::CUstreamCaptureStatus = (&raw mut status).cast();
        // SAFETY: the stream is live; `status` outlives the call, and is a number of 32 bits for the driver.
        let code = unsafe { ask(self.handle().0, place) };
        context.check("cuStreamIsCapturing", code)?;
        match status {
            NOT_CAPTURED => Ok(()),
            _ => Err(DriverError::StreamIsCaptured),
        }
    }
}
