//! The fault channel: how a kernel tells the host about an index out of bounds.
//!
//! The layouts and the protocol are in [`kiln_ir::fault`]. The channel's head is in device memory,
//! where threads claim it; the record is in pinned host memory that the device can write (CUDA C++
//! Programming Guide, "Mapped Memory"), so it is readable even after the context is lost.

use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering, fence};

use cudarc::driver::sys;
use parking_lot::Mutex;

use kiln_ir::fault::{FaultChannel, FaultRecord};

use super::context::CudaContext;
use super::error::DriverError;

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
        let record = self.fault.record.lock();
        let pointer = record.0;
        if pointer.is_null() {
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
            self.fault.disarmed.store(true, Ordering::Relaxed);
            fault
        });
        // A failure to arm the channel again is retried at the next call.
        if self.fault.disarmed.load(Ordering::Relaxed) && self.arm().is_ok() {
            self.fault.disarmed.store(false, Ordering::Relaxed);
        }
        fault
    }

    /// Sets `claimed` back to 0, ordered before later work of stream 0 and of blocking streams.
    fn arm(&self) -> Result<(), DriverError> {
        let table = self.enter()?;
        // SAFETY: `claimed` is the first word of the channel, which lives until drop.
        let code = unsafe { (table.cuMemsetD32Async)(self.fault.channel, 0, 1, ptr::null_mut()) };
        self.check("cuMemsetD32", code)
    }

    /// Allocates and initializes the channel. What was allocated before a failure is freed by
    /// [`CudaContext::free_fault_buffers`].
    pub(super) fn create_fault_buffers(&mut self) -> Result<(), DriverError> {
        let table = self.enter()?;
        let mut host: *mut c_void = ptr::null_mut();
        let flags = sys::CU_MEMHOSTALLOC_DEVICEMAP | sys::CU_MEMHOSTALLOC_PORTABLE;
        // SAFETY: `host` outlives the call.
        let code = unsafe { (table.cuMemHostAlloc)(&mut host, size_of::<FaultRecord>(), flags) };
        self.check("cuMemHostAlloc", code)?;
        let pointer = host.cast::<FaultRecord>();
        // SAFETY: fresh pinned memory, page-aligned, of a record's size.
        unsafe { pointer.write_volatile(FaultRecord::default()) };
        *self.fault.record.get_mut() = RecordPointer(pointer);

        let mut record = 0;
        // SAFETY: `host` was allocated with DEVICEMAP just now; the flags must be 0.
        let code = unsafe { (table.cuMemHostGetDevicePointer_v2)(&mut record, host, 0) };
        self.check("cuMemHostGetDevicePointer", code)?;
        let mut channel = 0;
        // SAFETY: `channel` outlives the call.
        let code = unsafe { (table.cuMemAlloc_v2)(&mut channel, size_of::<FaultChannel>()) };
        self.check("cuMemAlloc", code)?;
        self.fault.channel = channel;

        let head = FaultChannel {
            claimed: 0,
            padding: 0,
            record,
        };
        let from = (&raw const head).cast::<c_void>();
        // SAFETY: both are of the channel's size; the copy is done with `head` on return.
        let code = unsafe { (table.cuMemcpyHtoD_v2)(channel, from, size_of::<FaultChannel>()) };
        self.check("cuMemcpyHtoD", code)
    }

    /// Frees what [`CudaContext::create_fault_buffers`] allocated.
    pub(super) fn free_fault_buffers(&mut self) {
        let channel = std::mem::take(&mut self.fault.channel);
        let host = std::mem::replace(&mut self.fault.record.get_mut().0, ptr::null_mut());
        if channel != 0 {
            self.release("cuMemFree", |table| {
                // SAFETY: allocated once, freed once; freeing waits for running kernels.
                unsafe { (table.cuMemFree_v2)(channel) }
            });
        }
        if !host.is_null() {
            self.release("cuMemFreeHost", |table| {
                // SAFETY: allocated once, freed once, after the channel that points at it.
                unsafe { (table.cuMemFreeHost)(host.cast::<c_void>()) }
            });
        }
    }
}
