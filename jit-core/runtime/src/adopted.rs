//! Streams of other code in the process, which a device's work can be given to, and functions of its modules.
//!
//! An adopted stream has a place among the device's ([`crate::order`]) like any other. It is other code's, and may end
//! when nobody here has it any more; its place remains, as buffers have noted what was done there. From then on the
//! place is a second name of the device's own stream, which has been made to wait for the end of the adopted one; and
//! the next that is adopted there waits for the device's own. So a place is one order throughout.

use std::any::Any;
use std::ffi::c_void;
use std::sync::Arc;

use kiln_ir::abi::ParamSlot;

use crate::device::{Device, LoadedCode};
use crate::error::{DeviceError, Result};
use crate::order::Streams;
use crate::stream::outside_of_calls;

/// A CUDA stream of other code, and what keeps it.
#[derive(Clone)]
pub struct LentStream {
    raw: *mut c_void,
    keep: Arc<dyn Any + Send + Sync>,
}

// SAFETY: a handle, which the driver takes on any thread.
unsafe impl Send for LentStream {}
// SAFETY: as above.
unsafe impl Sync for LentStream {}

impl LentStream {
    /// A `CUstream`, null being the legacy default stream.
    ///
    /// # Safety
    /// It lives as long as what `keep` points to.
    pub unsafe fn new(raw: *mut c_void, keep: Arc<dyn Any + Send + Sync>) -> LentStream {
        LentStream { raw, keep }
    }

    pub(crate) fn as_raw(&self) -> *mut c_void {
        self.raw
    }
}

/// A function of a module that other code has loaded, and what keeps it.
#[derive(Clone)]
pub struct LentFunction {
    raw: *mut c_void,
    _keep: Arc<dyn Any + Send + Sync>,
}

// SAFETY: a handle, which the driver takes on any thread.
unsafe impl Send for LentFunction {}
// SAFETY: as above.
unsafe impl Sync for LentFunction {}

impl LentFunction {
    /// A `CUfunction`.
    ///
    /// # Safety
    /// Its module stays loaded as long as what `keep` points to.
    pub unsafe fn new(raw: *mut c_void, keep: Arc<dyn Any + Send + Sync>) -> LentFunction {
        LentFunction { raw, _keep: keep }
    }

    pub(crate) fn as_raw(&self) -> *mut c_void {
        self.raw
    }
}

/// A function of other code's on a device.
pub struct AdoptedFunction {
    /// What launches are given.
    pub code: Box<dyn LoadedCode>,
    /// Where the parameters of the function lie.
    pub params: Vec<ParamSlot>,
}

/// The legacy default stream and that of each thread as handles of their own (`CU_STREAM_LEGACY`,
/// `CU_STREAM_PER_THREAD`).
const LEGACY: usize = 1;
const PER_THREAD: usize = 2;

impl Device {
    /// A place for a stream of other code; [`Device::give_stream_back`] gives it back.
    ///
    /// # Errors
    /// A stream of another context, or the default stream of whichever thread asks; no place that is left; a device
    /// without such streams, or that has failed.
    pub fn adopt_stream(&self, stream: LentStream) -> Result<usize> {
        outside_of_calls()?;
        match stream.raw.addr() {
            0 | LEGACY if self.backend().raw_stream().is_some() => Ok(self.streams().own().place()),
            PER_THREAD => Err(DeviceError::StreamOfThreads),
            _ => self.streams().adopt(&**self.backend(), stream),
        }
    }
}

/// Streams of other code with one handle, which have a place; none once they have ended.
#[derive(Default)]
pub(crate) struct Adoption(Vec<LentStream>);

impl Adoption {
    pub(crate) fn of(stream: LentStream) -> Adoption {
        Adoption(vec![stream])
    }

    /// Whether these are adoptions of this stream.
    pub(crate) fn is_of(&self, stream: &LentStream) -> bool {
        let known = self.0.first();
        known.is_some_and(|known| known.raw == stream.raw)
    }

    /// Keeps the stream for one more that has it.
    pub(crate) fn keep(&mut self, stream: LentStream) {
        let is_same = |known: &LentStream| Arc::ptr_eq(&known.keep, &stream.keep);
        if !self.0.iter().any(is_same) {
            self.0.push(stream);
        }
    }

    /// The end of it: what has kept the stream.
    pub(crate) fn end(&mut self) -> Vec<LentStream> {
        std::mem::take(&mut self.0)
    }

    /// Whether the adoption has ended.
    pub(crate) fn has_ended(&self) -> bool {
        self.0.is_empty()
    }
}

impl Streams {
    /// Ends the adoptions of streams that nobody has any more.
    pub(crate) fn leave_unused(&self) {
        let left = self.unused_adoptions();
        // Outside of locks, as it may be the end of the streams.
        drop(left);
    }
}
