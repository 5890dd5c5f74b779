//! Streams, and events for timing and waiting.
//!
//! Streams are created blocking with respect to stream 0, the legacy default stream: work of
//! stream 0 waits for theirs and theirs for it (CUDA C++ Programming Guide, "Default Stream"), so
//! the copies of this crate see finished results. Streams *beside* stream 0 are not: nothing waits
//! but what events say, which [`crate::order`] sees to.

use std::ffi::{c_int, c_uint, c_void};
use std::fmt;
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::AtomicPtr;
use std::sync::atomic::Ordering::{Acquire, Relaxed};

use cudarc::driver::sys;

use super::context::CudaContext;
use super::error::DriverError;
use super::waiting::NOT_READY;

mod lent;

/// A stream as the launch takes it: valid as long as the stream it came from.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct StreamHandle(pub(super) sys::CUstream);

// SAFETY: a number; using it is what needs care (see `CudaContext::launch`).
unsafe impl Send for StreamHandle {}
// SAFETY: as above.
unsafe impl Sync for StreamHandle {}

impl StreamHandle {
    /// Stream 0, the legacy default stream of whichever context is current.
    pub const DEFAULT: StreamHandle = StreamHandle(ptr::null_mut());

    /// A `CUstream` of other code, for instance of another crate. The launch that uses it carries
    /// the promise that it is live.
    pub fn from_raw(stream: *mut std::ffi::c_void) -> StreamHandle {
        StreamHandle(stream.cast())
    }

    /// The `CUstream`.
    pub fn as_raw(self) -> *mut std::ffi::c_void {
        self.0.cast()
    }
}

/// A stream of a context. Destroyed when dropped; its work still runs to the end.
pub struct CudaStream {
    pub(super) context: Arc<CudaContext>,
    /// Is another one only where the stream is lent.
    pub(super) handle: AtomicPtr<sys::CUstream_st>,
    /// Whether the stream is other code's, and not destroyed here.
    pub(super) is_lent: bool,
}

// SAFETY: a stream may be used from any thread; every use goes through the context.
unsafe impl Send for CudaStream {}
// SAFETY: as above; nothing is changed after construction.
unsafe impl Sync for CudaStream {}

impl fmt::Debug for CudaStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("CudaStream").field(&self.raw()).finish()
    }
}

impl CudaContext {
    /// Stream 0, the legacy default stream.
    pub fn default_stream(self: &Arc<Self>) -> CudaStream {
        CudaStream {
            context: Arc::clone(self),
            handle: AtomicPtr::default(),
            is_lent: false,
        }
    }

    /// A new stream.
    ///
    /// # Errors
    /// [`DriverError::OutOfMemory`] or [`DriverError::Poisoned`].
    pub fn create_stream(self: &Arc<Self>) -> Result<CudaStream, DriverError> {
        let table = self.enter()?;
        let mut handle: sys::CUstream = ptr::null_mut();
        let flags = sys::CUstream_flags::CU_STREAM_DEFAULT as c_uint;
        // SAFETY: `handle` outlives the call.
        let code = unsafe { (table.cuStreamCreate)(&mut handle, flags) };
        self.check("cuStreamCreate", code)?;
        self.note_stream();
        Ok(CudaStream {
            context: Arc::clone(self),
            handle: handle.into(),
            is_lent: false,
        })
    }

    /// A new stream whose work and that of stream 0 do not wait for each other. The priority is
    /// the nearest that the device has; lower numbers go first (CUDA C++ Programming Guide,
    /// "Stream Priorities").
    ///
    /// # Errors
    /// [`DriverError::OutOfMemory`] or [`DriverError::Poisoned`].
    pub fn create_stream_beside(
        self: &Arc<Self>,
        priority: i32,
    ) -> Result<CudaStream, DriverError> {
        let table = self.enter()?;
        let (mut least, mut greatest): (c_int, c_int) = (0, 0);
        // SAFETY: both outlive the call.
        let code = unsafe { (table.cuCtxGetStreamPriorityRange)(&mut least, &mut greatest) };
        self.check("cuCtxGetStreamPriorityRange", code)?;
        // The greatest priority is the lowest number.
        let priority = priority.max(greatest).min(least);
        let mut handle: sys::CUstream = ptr::null_mut();
        let flags = sys::CUstream_flags::CU_STREAM_NON_BLOCKING as c_uint;
        // SAFETY: `handle` outlives the call.
        let code = unsafe { (table.cuStreamCreateWithPriority)(&mut handle, flags, priority) };
        self.check("cuStreamCreateWithPriority", code)?;
        self.note_stream();
        self.beside.lock().push(StreamHandle(handle));
        Ok(CudaStream {
            context: Arc::clone(self),
            handle: handle.into(),
            is_lent: false,
        })
    }

    /// A new event that only orders work, which costs less than one that records times.
    pub(crate) fn create_order_event(self: &Arc<Self>) -> Result<CudaEvent, DriverError> {
        self.create_event_with(sys::CUevent_flags::CU_EVENT_DISABLE_TIMING)
    }

    /// A new event that records times.
    ///
    /// # Errors
    /// [`DriverError::OutOfMemory`] or [`DriverError::Poisoned`].
    pub fn create_event(self: &Arc<Self>) -> Result<CudaEvent, DriverError> {
        self.create_event_with(sys::CUevent_flags::CU_EVENT_DEFAULT)
    }

    fn create_event_with(
        self: &Arc<Self>,
        flags: sys::CUevent_flags,
    ) -> Result<CudaEvent, DriverError> {
        let table = self.enter()?;
        let mut handle: sys::CUevent = ptr::null_mut();
        // SAFETY: `handle` outlives the call.
        let code = unsafe { (table.cuEventCreate)(&mut handle, flags as c_uint) };
        self.check("cuEventCreate", code)?;
        Ok(CudaEvent {
            context: Arc::clone(self),
            handle,
        })
    }
}

impl CudaStream {
    /// The handle for a launch.
    #[inline]
    pub fn handle(&self) -> StreamHandle {
        StreamHandle(self.raw())
    }

    #[inline]
    pub(super) fn raw(&self) -> sys::CUstream {
        self.handle.load(Acquire)
    }

    /// Waits until the stream's work is done.
    ///
    /// # Errors
    /// [`DriverError::Poisoned`] when earlier work failed.
    pub fn synchronize(&self) -> Result<(), DriverError> {
        self.context
            .wait_within_limit("cuStreamSynchronize", || self.is_done())?;
        let table = self.context.enter()?;
        // SAFETY: the stream is live and of the current context.
        let code = unsafe { (table.cuStreamSynchronize)(self.raw()) };
        self.context.check("cuStreamSynchronize", code)?;
        // All launches were in stream 0 as long as there was no other stream.
        if self.raw().is_null() && !self.context.has_streams.load(Relaxed) {
            self.context.recent.clear();
        }
        Ok(())
    }

    /// Whether the stream's work is done, without waiting.
    ///
    /// # Errors
    /// [`DriverError::Poisoned`] when earlier work failed.
    pub fn is_done(&self) -> Result<bool, DriverError> {
        let table = self.context.enter()?;
        // SAFETY: the stream is live and of the current context.
        match unsafe { (table.cuStreamQuery)(self.raw()) } {
            NOT_READY => Ok(false),
            code => self.context.check("cuStreamQuery", code).map(|()| true),
        }
    }

    /// Copies host bytes to device memory behind the stream's work, and waits for that. Padding may
    /// be among them, so they need not be initialized.
    ///
    /// # Errors
    /// [`DriverError::InvalidAddress`]; [`DriverError::Poisoned`], also for an earlier launch.
    pub fn copy_to_device(
        &self,
        destination: u64,
        source: &[MaybeUninit<u8>],
    ) -> Result<(), DriverError> {
        let context = &self.context;
        if !context.is_range("cuMemcpyHtoDAsync", destination, source.len() as u64)? {
            return Ok(());
        }
        // The copy may wait for the stream, too.
        context.wait_within_limit("cuMemcpyHtoDAsync", || self.is_done())?;
        let (table, from) = (context.enter()?, source.as_ptr().cast::<c_void>());
        // SAFETY: both ranges are valid for the length, `source` until the stream was waited for,
        // whatever kind of host memory it is; the stream is live.
        let code =
            unsafe { (table.cuMemcpyHtoDAsync_v2)(destination, from, source.len(), self.raw()) };
        self.copied(context.check("cuMemcpyHtoDAsync", code))
    }

    /// Copies device memory to host bytes behind the stream's work, and waits for that.
    ///
    /// # Errors
    /// [`DriverError::InvalidAddress`]; [`DriverError::Poisoned`], also for an earlier launch. The
    /// host bytes are then unspecified.
    pub fn copy_to_host(&self, destination: &mut [u8], source: u64) -> Result<(), DriverError> {
        let context = &self.context;
        if !context.is_range("cuMemcpyDtoHAsync", source, destination.len() as u64)? {
            return Ok(());
        }
        context.wait_within_limit("cuMemcpyDtoHAsync", || self.is_done())?;
        let (table, to) = (context.enter()?, destination.as_mut_ptr().cast::<c_void>());
        // SAFETY: both ranges are valid for the length until the stream was waited for; the stream
        // is live.
        let code =
            unsafe { (table.cuMemcpyDtoHAsync_v2)(to, source, destination.len(), self.raw()) };
        self.copied(context.check("cuMemcpyDtoHAsync", code))
    }

    /// Copies between device memory behind the stream's work, without waiting for it. Overlapping
    /// ranges give unspecified bytes.
    ///
    /// # Errors
    /// [`DriverError::InvalidAddress`] for either range; [`DriverError::Poisoned`].
    pub fn copy_on_device(
        &self,
        destination: u64,
        source: u64,
        bytes: u64,
    ) -> Result<(), DriverError> {
        let context = &self.context;
        let table = context.enter()?;
        let both = context.is_range("cuMemcpyDtoDAsync", destination, bytes)?
            && context.is_range("cuMemcpyDtoDAsync", source, bytes)?;
        if !both {
            return Ok(());
        }
        // SAFETY: both ranges are inside live allocations, so the length fits in `usize`; the stream is live.
        let code = unsafe {
            (table.cuMemcpyDtoDAsync_v2)(destination, source, bytes as usize, self.raw())
        };
        context.check("cuMemcpyDtoDAsync", code)
    }

    /// Copies to memory of another context behind the stream's work, without waiting for it (CUDA Driver API,
    /// `cuMemcpyPeerAsync`: where the devices have no way between them the driver goes through the host).
    ///
    /// # Errors
    /// [`DriverError::InvalidAddress`] for either range; [`DriverError::ForeignHandle`] for a context of another driver;
    /// [`DriverError::Poisoned`] for either context.
    pub fn copy_to_other(
        &self,
        other: &CudaContext,
        destination: u64,
        source: u64,
        bytes: u64,
    ) -> Result<(), DriverError> {
        const CALL: &str = "cuMemcpyPeerAsync";
        let context = &self.context;
        same_driver(context, other, "context")?;
        other.enter_at_once()?;
        let both =
            other.is_range(CALL, destination, bytes)? && context.is_range(CALL, source, bytes)?;
        let table = context.enter()?;
        if !both {
            return Ok(());
        }
        let (to, from) = (other.handle(), context.handle());
        // SAFETY: both ranges are inside live allocations of these contexts, so the length fits in `usize`; the stream is
        // live and of the current context.
        let code = unsafe {
            let (bytes, stream) = (bytes as usize, self.raw());
            (table.cuMemcpyPeerAsync)(destination, to, source, from, bytes, stream)
        };
        context.check(CALL, code)
    }

    /// Copies host bytes to device memory behind the stream's work, without waiting for it.
    ///
    /// # Errors
    /// As [`CudaStream::copy_to_device`].
    ///
    /// # Safety
    /// The memory is valid for so many bytes and not written until the copy is done.
    pub(crate) unsafe fn copy_to_device_later(
        &self,
        destination: u64,
        source: *const u8,
        bytes: usize,
    ) -> Result<(), DriverError> {
        let context = &self.context;
        if !context.is_range("cuMemcpyHtoDAsync", destination, bytes as u64)? {
            return Ok(());
        }
        let table = context.enter()?;
        // SAFETY: the range on the device is valid for the length, that of the host as the caller promises.
        let code =
            unsafe { (table.cuMemcpyHtoDAsync_v2)(destination, source.cast(), bytes, self.raw()) };
        context.check("cuMemcpyHtoDAsync", code)
    }

    /// Copies device memory to host bytes behind the stream's work, without waiting for it.
    ///
    /// # Errors
    /// As [`CudaStream::copy_to_host`].
    ///
    /// # Safety
    /// The memory is valid for so many bytes and nobody's else until the copy is done.
    pub(crate) unsafe fn copy_to_host_later(
        &self,
        destination: *mut u8,
        source: u64,
        bytes: usize,
    ) -> Result<(), DriverError> {
        let context = &self.context;
        if !context.is_range("cuMemcpyDtoHAsync", source, bytes as u64)? {
            return Ok(());
        }
        let table = context.enter()?;
        // SAFETY: the range on the device is valid for the length, that of the host as the caller promises.
        let code =
            unsafe { (table.cuMemcpyDtoHAsync_v2)(destination.cast(), source, bytes, self.raw()) };
        context.check("cuMemcpyDtoHAsync", code)
    }

    /// Waits for a copy without a limit: the host's memory is the copy's until then.
    pub(super) fn copied(&self, begun: Result<(), DriverError>) -> Result<(), DriverError> {
        begun?;
        let wait = || {
            let table = self.context.enter()?;
            // SAFETY: the stream is live and of the current context.
            let code = unsafe { (table.cuStreamSynchronize)(self.raw()) };
            self.context.check("cuStreamSynchronize", code)
        };
        // Whatever the driver refuses, the host's memory is not given back under the copy.
        wait().inspect_err(|_| drop(wait()))
    }

    /// Calls this on a thread of the driver's when the stream's work is done; later work waits until
    /// it has returned. After an error of the context it is never called (CUDA Driver API,
    /// `cuLaunchHostFunc`). It must not panic, nor call the driver.
    pub(crate) fn call(&self, call: Box<dyn FnOnce() + Send>) -> Result<(), DriverError> {
        unsafe extern "C" fn run(data: *mut c_void) {
            // SAFETY: the box that was given away below; the driver calls once.
            let call = unsafe { Box::from_raw(data.cast::<Box<dyn FnOnce() + Send>>()) };
            call();
        }
        let table = self.context.enter()?;
        let data = Box::into_raw(Box::new(call));
        // SAFETY: the stream is live; `data` is the function's, which frees it.
        let code = unsafe { (table.cuLaunchHostFunc)(self.raw(), Some(run), data.cast()) };
        // Before anything is dropped, which may ask the driver for something, too.
        let called = self.context.check("cuLaunchHostFunc", code);
        if called.is_err() {
            // SAFETY: a call that the driver has refused is not made, so that the box is ours.
            drop(unsafe { Box::from_raw(data) });
        }
        called
    }

    /// Makes later work of this stream wait for the event, without waiting here.
    ///
    /// # Errors
    /// [`DriverError::ForeignHandle`] for an event of another context; [`DriverError::Poisoned`].
    pub fn wait(&self, event: &CudaEvent) -> Result<(), DriverError> {
        same_context(&self.context, &event.context, "event")?;
        self.wait_for_other(event)
    }

    /// [`CudaStream::wait`] for an event of any context of the driver.
    ///
    /// # Errors
    /// [`DriverError::ForeignHandle`] for an event of another driver; [`DriverError::Poisoned`].
    pub fn wait_for_other(&self, event: &CudaEvent) -> Result<(), DriverError> {
        same_driver(&self.context, &event.context, "event")?;
        let table = self.context.enter_at_once()?;
        // SAFETY: stream and event are live, the event of whichever context; the flags must be 0.
        let code = unsafe { (table.cuStreamWaitEvent)(self.raw(), event.handle, 0) };
        self.context.check("cuStreamWaitEvent", code)
    }
}

impl Drop for CudaStream {
    fn drop(&mut self) {
        let handle = *self.handle.get_mut();
        if !handle.is_null() {
            self.context.unlist(StreamHandle(handle));
            if self.is_lent {
                return;
            }
            self.context.give_back_of(StreamHandle(handle));
            self.context.release("cuStreamDestroy", |table| {
                // SAFETY: created once, destroyed once.
                unsafe { (table.cuStreamDestroy_v2)(handle) }
            });
        }
    }
}

/// A point in a stream's work. Destroyed when dropped.
pub struct CudaEvent {
    context: Arc<CudaContext>,
    handle: sys::CUevent,
}

// SAFETY: an event may be used from any thread; every use goes through the context.
unsafe impl Send for CudaEvent {}
// SAFETY: as above; nothing is changed after construction.
unsafe impl Sync for CudaEvent {}

impl fmt::Debug for CudaEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("CudaEvent").field(&self.handle).finish()
    }
}

impl CudaEvent {
    /// Marks the point after all work given to the stream so far.
    ///
    /// # Errors
    /// [`DriverError::ForeignHandle`] for a stream of another context; [`DriverError::Poisoned`].
    pub fn record(&self, stream: &CudaStream) -> Result<(), DriverError> {
        same_context(&self.context, &stream.context, "stream")?;
        let table = self.context.enter_at_once()?;
        // SAFETY: event and stream are live and of the current context.
        let code = unsafe { (table.cuEventRecord)(self.handle, stream.raw()) };
        self.context.check("cuEventRecord", code)
    }

    /// Whether the point has been reached. An event never recorded counts as reached.
    ///
    /// # Errors
    /// [`DriverError::Poisoned`] when earlier work failed.
    pub fn is_done(&self) -> Result<bool, DriverError> {
        let table = self.context.enter()?;
        // SAFETY: the event is live.
        match unsafe { (table.cuEventQuery)(self.handle) } {
            NOT_READY => Ok(false),
            code => self.context.check("cuEventQuery", code).map(|()| true),
        }
    }

    /// Waits until the point is reached.
    ///
    /// # Errors
    /// [`DriverError::Poisoned`] when earlier work failed.
    pub fn synchronize(&self) -> Result<(), DriverError> {
        self.context
            .wait_within_limit("cuEventSynchronize", || self.is_done())?;
        let table = self.context.enter()?;
        // SAFETY: the event is live.
        let code = unsafe { (table.cuEventSynchronize)(self.handle) };
        self.context.check("cuEventSynchronize", code)
    }

    /// Milliseconds from `start` to this event, with a resolution of about half a microsecond.
    /// Waits for this event first.
    ///
    /// # Errors
    /// [`DriverError::ForeignHandle`] for an event of another context; [`DriverError::Other`] when
    /// either was never recorded; [`DriverError::Poisoned`].
    pub fn elapsed_ms_since(&self, start: &CudaEvent) -> Result<f32, DriverError> {
        same_context(&self.context, &start.context, "event")?;
        self.synchronize()?;
        let table = self.context.enter()?;
        let elapsed = table
            .cuEventElapsedTime_v2
            .unwrap_or(table.cuEventElapsedTime);
        let mut milliseconds = 0f32;
        // SAFETY: both events are live; the result outlives the call.
        let code = unsafe { elapsed(&mut milliseconds, start.handle, self.handle) };
        self.context.check("cuEventElapsedTime", code)?;
        Ok(milliseconds)
    }
}

impl Drop for CudaEvent {
    fn drop(&mut self) {
        let handle = self.handle;
        self.context.release("cuEventDestroy", |table| {
            // SAFETY: created once, destroyed once.
            unsafe { (table.cuEventDestroy_v2)(handle) }
        });
    }
}

fn same_driver(
    one: &CudaContext,
    other: &CudaContext,
    what: &'static str,
) -> Result<(), DriverError> {
    match ptr::eq(one.driver, other.driver) {
        true => Ok(()),
        false => Err(DriverError::ForeignHandle { what }),
    }
}

fn same_context(
    one: &Arc<CudaContext>,
    other: &Arc<CudaContext>,
    what: &'static str,
) -> Result<(), DriverError> {
    if Arc::ptr_eq(one, other) {
        Ok(())
    } else {
        Err(DriverError::ForeignHandle { what })
    }
}
