//! The fault channel: how a kernel tells the host about an index out of bounds.
//!
//! The layouts and the protocol are in [`kiln_ir::fault`]. The channel's head is in device memory,
//! where threads claim it; the record is in pinned host memory that the device can write (CUDA C++
//! Programming Guide, "Mapped Memory"), so it is readable even after the context is lost. Stream 0 has
//! the context's channel, each stream beside it one of its own, so that who waits for a stream is told
//! of its launches alone.

use std::ffi::c_void;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering, fence};

use cudarc::driver::sys;
use parking_lot::Mutex;

use kiln_ir::fault::{FaultChannel, FaultRecord};

use super::context::CudaContext;
use super::error::DriverError;
use super::stream::StreamHandle;

const _: () = assert!(size_of::<FaultChannel>() == 16 && size_of::<FaultRecord>() == 64);

/// The two pieces of memory of a context's fault channel; null until created.
#[derive(Debug)]
pub(super) struct FaultBuffers {
    /// Device address of the [`FaultChannel`].
    channel: u64,
    /// The record, behind a lock so that one thread takes a fault.
    record: Mutex<RecordPointer>,
    /// Whether `claimed` may still be 1 although the record was taken.
    disarmed: AtomicBool,
}

/// Host address of the [`FaultRecord`].
#[derive(Debug)]
struct RecordPointer(*mut FaultRecord);

// SAFETY: pinned memory may be read and written on any thread; the lock it is in sees to one at a time.
unsafe impl Send for RecordPointer {}

impl Default for FaultBuffers {
    fn default() -> FaultBuffers {
        FaultBuffers {
            channel: 0,
            record: Mutex::new(RecordPointer(ptr::null_mut())),
            disarmed: AtomicBool::new(false),
        }
    }
}

impl CudaContext {
    /// Device address of the context's [`FaultChannel`], for the hidden last kernel parameter.
    pub fn channel_address(&self) -> u64 {
        self.fault.channel
    }

    /// The fault that a kernel recorded, if one did, and gets the channel ready for the next one.
    /// Call it after a synchronization: before that, kernels may still be writing. Works on a
    /// poisoned context too, since the record may explain it.
    pub fn take_fault(&self) -> Option<FaultRecord> {
        self.fault.take(self, StreamHandle::DEFAULT)
    }

    /// Allocates and initializes the channel.
    pub(super) fn create_fault_buffers(&mut self) -> Result<(), DriverError> {
        self.fault = FaultBuffers::create(self)?;
        Ok(())
    }

    /// Frees what [`CudaContext::create_fault_buffers`] allocated.
    pub(super) fn free_fault_buffers(&mut self) {
        std::mem::take(&mut self.fault).free(self);
    }
}

/// The fault channel of a stream beside stream 0.
pub(crate) struct StreamFaults {
    context: Arc<CudaContext>,
    buffers: FaultBuffers,
}

impl StreamFaults {
    pub(crate) fn create(context: &Arc<CudaContext>) -> Result<StreamFaults, DriverError> {
        Ok(StreamFaults {
            context: Arc::clone(context),
            buffers: FaultBuffers::create(context)?,
        })
    }

    /// Device address of the [`FaultChannel`].
    pub(crate) fn address(&self) -> u64 {
        self.buffers.channel
    }

    /// As [`CudaContext::take_fault`], for the stream that has the channel.
    pub(crate) fn take(&self, stream: StreamHandle) -> Option<FaultRecord> {
        self.buffers.take(&self.context, stream)
    }
}

impl Drop for StreamFaults {
    fn drop(&mut self) {
        // A kernel that may never end may write there.
        if self.context.may_free() {
            std::mem::take(&mut self.buffers).free(&self.context);
        }
    }
}

impl FaultBuffers {
    /// The fault that was recorded, if one was; the channel is ready again behind the work that the
    /// stream has.
    fn take(&self, context: &CudaContext, stream: StreamHandle) -> Option<FaultRecord> {
        let record = self.record.lock();
        let pointer = record.0;
        // With the context goes its memory of the host.
        if pointer.is_null() || context.was_reset() {
            return None;
        }
        // SAFETY: pinned memory of a record's size and alignment, live until drop; volatile since
        // the device writes it.
        let state = unsafe { (&raw const (*pointer).state).read_volatile() };
        let fault = (state == 1).then(|| {
            // The device wrote the other fields before `state`.
            fence(Ordering::Acquire);
            // SAFETY: as above; any bytes are a valid record.
            let fault = unsafe { pointer.read_volatile() };
            // SAFETY: as above. The record is cleared before the channel can be claimed again.
            unsafe { pointer.write_volatile(FaultRecord::default()) };
            fence(Ordering::Release);
            self.disarmed.store(true, Ordering::Relaxed);
            fault
        });
        // A failure to arm the channel again is retried at the next call.
        if self.disarmed.load(Ordering::Relaxed) && self.arm(context, stream).is_ok() {
            self.disarmed.store(false, Ordering::Relaxed);
        }
        fault
    }

    /// Sets `claimed` back to 0, ordered before later work of the stream.
    fn arm(&self, context: &CudaContext, stream: StreamHandle) -> Result<(), DriverError> {
        let table = context.enter()?;
        // SAFETY: `claimed` is the first word of the channel, which lives until drop, as the stream does.
        let code = unsafe { (table.cuMemsetD32Async)(self.channel, 0, 1, stream.0) };
        context.check("cuMemsetD32", code)
    }

    /// Allocates and initializes a channel.
    fn create(context: &CudaContext) -> Result<FaultBuffers, DriverError> {
        let mut buffers = FaultBuffers::default();
        match buffers.fill(context) {
            Ok(()) => Ok(buffers),
            Err(error) => {
                buffers.free(context);
                Err(error)
            }
        }
    }

    fn fill(&mut self, context: &CudaContext) -> Result<(), DriverError> {
        let table = context.enter()?;
        let mut host: *mut c_void = ptr::null_mut();
        let flags = sys::CU_MEMHOSTALLOC_DEVICEMAP | sys::CU_MEMHOSTALLOC_PORTABLE;
        // SAFETY: `host` outlives the call.
        let code = unsafe { (table.cuMemHostAlloc)(&mut host, size_of::<FaultRecord>(), flags) };
        context.check("cuMemHostAlloc", code)?;
        let pointer = host.cast::<FaultRecord>();
        // SAFETY: fresh pinned memory, page-aligned, of a record's size.
        unsafe { pointer.write_volatile(FaultRecord::default()) };
        *self.record.get_mut() = RecordPointer(pointer);

        let mut record = 0;
        // SAFETY: `host` was allocated with DEVICEMAP just now; the flags must be 0.
        let code = unsafe { (table.cuMemHostGetDevicePointer_v2)(&mut record, host, 0) };
        context.check("cuMemHostGetDevicePointer", code)?;
        let mut channel = 0;
        // SAFETY: `channel` outlives the call.
        let code = unsafe { (table.cuMemAlloc_v2)(&mut channel, size_of::<FaultChannel>()) };
        context.check("cuMemAlloc", code)?;
        self.channel = channel;

        let head = FaultChannel {
            claimed: 0,
            padding: 0,
            record,
        };
        let from = (&raw const head).cast::<c_void>();
        // SAFETY: both are of the channel's size; the copy is done with `head` on return.
        let code = unsafe { (table.cuMemcpyHtoD_v2)(channel, from, size_of::<FaultChannel>()) };
        context.check("cuMemcpyHtoD", code)
    }

    /// Frees what was allocated.
    fn free(mut self, context: &CudaContext) {
        let (channel, host) = (self.channel, self.record.get_mut().0);
        if channel != 0 {
            context.release("cuMemFree", |table| {
                // SAFETY: allocated once, freed once; freeing waits for running kernels.
                unsafe { (table.cuMemFree_v2)(channel) }
            });
        }
        if !host.is_null() {
            context.release("cuMemFreeHost", |table| {
                // SAFETY: allocated once, freed once, after the channel that points at it.
                unsafe { (table.cuMemFreeHost)(host.cast::<c_void>()) }
            });
        }
    }
}
