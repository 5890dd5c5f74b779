//! Device memory by address: allocate, free, copy, fill.
//!
//! Addresses are plain numbers. Every range is looked up among the context's live allocations
//! before the driver sees it: under unified addressing the driver would take a host address as
//! well, and write there. All operations are ordered in stream 0 (the legacy default stream, which
//! waits for the streams that this crate creates), and copies to and from the host have finished
//! with the host memory when they return (CUDA Driver API, "API synchronization behavior").

use std::collections::BTreeMap;
use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::atomic::Ordering::Relaxed;

use cudarc::driver::sys;

use super::context::CudaContext;
use super::error::DriverError;
use super::stream::StreamHandle;
use super::table::Code;
use crate::device::MemoryStats;

/// How much device memory there is.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct MemoryInfo {
    /// Bytes free for all processes.
    pub free: u64,
    /// Bytes in all.
    pub total: u64,
}

/// Where memory comes from, by which it is freed.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Origin {
    /// `cuMemAlloc`, or other code.
    Plain,
    /// `cuMemAlloc`, as one of the context's first buffers.
    First,
    /// The context's pool.
    Pool,
}

/// An allocation, but for its address.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct Allocation {
    pub(super) bytes: u64,
    pub(super) origin: Origin,
}

/// The live allocations of a context.
#[derive(Default)]
pub(super) struct Allocations {
    by_address: BTreeMap<u64, Allocation>,
    /// The bytes of all that are live, and the most that these had.
    used: u64,
    peak: u64,
    /// The bytes of those that are of the pool.
    pooled: u64,
}

impl Allocations {
    pub(super) fn insert(&mut self, address: u64, allocation: Allocation) {
        self.by_address.insert(address, allocation);
        self.used += allocation.bytes;
        self.peak = self.peak.max(self.used);
        self.pooled += allocation.pooled();
    }

    pub(super) fn remove(&mut self, address: u64) -> Option<Allocation> {
        let allocation = self.by_address.remove(&address)?;
        self.used -= allocation.bytes;
        self.pooled -= allocation.pooled();
        Some(allocation)
    }

    /// Removes an allocation whose origin this says.
    pub(super) fn remove_of(
        &mut self,
        address: u64,
        is: impl FnOnce(Origin) -> bool,
    ) -> Option<Allocation> {
        let allocation = self.by_address.get(&address)?;
        is(allocation.origin)
            .then(|| self.remove(address))
            .flatten()
    }

    /// The last that begins at an address or before it: its first address, and its length in bytes.
    pub(super) fn at_or_before(&self, address: u64) -> Option<(u64, u64)> {
        let found = self.by_address.range(..=address).next_back();
        found.map(|(start, allocation)| (*start, allocation.bytes))
    }
}

impl Allocation {
    pub(super) fn plain(bytes: u64) -> Allocation {
        let origin = Origin::Plain;
        Allocation { bytes, origin }
    }

    fn pooled(&self) -> u64 {
        match self.origin {
            Origin::Pool => self.bytes,
            Origin::Plain | Origin::First => 0,
        }
    }
}

/// What the driver is asked for: atomics of one and of two bytes are those of the word around them, which is then part of the
/// allocation, too. `None` where there is no such number.
pub(super) fn in_words(bytes: u64) -> Option<usize> {
    usize::try_from(bytes.checked_next_multiple_of(4)?).ok()
}

impl CudaContext {
    /// Allocates device memory, aligned to 256 bytes; its content is undefined. Zero bytes give
    /// address 0 and allocate nothing.
    ///
    /// # Errors
    /// [`DriverError::OutOfMemory`] with what was free; [`DriverError::Poisoned`].
    pub fn alloc(&self, bytes: u64) -> Result<u64, DriverError> {
        self.alloc_plain(bytes, Origin::Plain)
    }

    /// [`CudaContext::alloc`], of a buffer that is freed as this says.
    pub(super) fn alloc_plain(&self, bytes: u64, origin: Origin) -> Result<u64, DriverError> {
        let table = self.enter()?;
        if bytes == 0 {
            return Ok(0);
        }
        let Some(size) = in_words(bytes) else {
            return Err(self.out_of_memory("cuMemAlloc", bytes));
        };
        let mut address = 0;
        // SAFETY: `address` outlives the call.
        let code = unsafe { (table.cuMemAlloc_v2)(&mut address, size) };
        if code == 2 {
            return Err(self.out_of_memory("cuMemAlloc", bytes));
        }
        self.check("cuMemAlloc", code)?;
        let allocation = Allocation { bytes, origin };
        self.allocations.lock().insert(address, allocation);
        Ok(address)
    }

    /// Frees an allocation, after the work that may use it. Address 0 is fine. If that work takes
    /// longer than a call may wait, the memory is kept and freed later; see
    /// [`CudaContext::kept_memory`].
    ///
    /// # Errors
    /// [`DriverError::InvalidAddress`] when it is not the start of a live allocation;
    /// [`DriverError::Poisoned`], after which the memory is gone with the process.
    pub fn free(&self, address: u64) -> Result<(), DriverError> {
        self.admits()?;
        if address == 0 || self.free_in_order(address, StreamHandle::DEFAULT)? {
            return Ok(());
        }
        let table = self.enter()?;
        let Some(allocation) = self.allocations.lock().remove(address) else {
            return Err(DriverError::InvalidAddress {
                call: "cuMemFree",
                address,
                bytes: 0,
            });
        };
        if !self.may_free() {
            self.keep(address, allocation.bytes);
            return Ok(());
        }
        // SAFETY: it was a live allocation, and is no longer listed, so nobody frees it twice.
        let code = unsafe { (table.cuMemFree_v2)(address) };
        if code != 0 {
            self.allocations.lock().insert(address, allocation);
        }
        self.check("cuMemFree", code)
    }

    /// Allocates pinned memory of the host, on a page of its own, which copies can use while the host goes on.
    ///
    /// # Errors
    /// [`DriverError::PinnedMemory`]; [`DriverError::Poisoned`].
    pub(crate) fn alloc_host(&self, bytes: usize) -> Result<*mut u8, DriverError> {
        let table = self.enter()?;
        let mut host: *mut c_void = ptr::null_mut();
        let flags = sys::CU_MEMHOSTALLOC_DEVICEMAP | sys::CU_MEMHOSTALLOC_PORTABLE;
        // SAFETY: `host` outlives the call.
        let code = unsafe { (table.cuMemHostAlloc)(&mut host, bytes, flags) };
        if code == 2 {
            let used = self.pinned.load(Relaxed);
            return Err(DriverError::PinnedMemory { asked: bytes, used });
        }
        self.check("cuMemHostAlloc", code)?;
        self.pinned.fetch_add(bytes, Relaxed);
        Ok(host.cast())
    }

    /// Frees what [`CudaContext::alloc_host`] gave, of so many bytes.
    ///
    /// # Safety
    /// It was not freed before, and no copy uses it.
    pub(crate) unsafe fn free_host(&self, host: *mut u8, bytes: usize) {
        self.pinned.fetch_sub(bytes, Relaxed);
        self.release("cuMemFreeHost", |table| {
            // SAFETY: passed on to the caller.
            unsafe { (table.cuMemFreeHost)(host.cast()) }
        });
    }

    /// Copies host bytes to device memory. Padding of structs may be among them, so they need not be
    /// initialized.
    ///
    /// # Errors
    /// [`DriverError::InvalidAddress`]; [`DriverError::Poisoned`], also for an earlier launch.
    pub fn copy_to_device(
        &self,
        destination: u64,
        source: &[MaybeUninit<u8>],
    ) -> Result<(), DriverError> {
        let table = self.enter()?;
        if !self.is_range("cuMemcpyHtoD", destination, source.len() as u64)? {
            return Ok(());
        }
        self.wait_within_limit("cuMemcpyHtoD", || self.is_stream_0_done())?;
        let from = source.as_ptr().cast::<c_void>();
        // SAFETY: both ranges are valid for the length; the call is done with `source` on return.
        let code = unsafe { (table.cuMemcpyHtoD_v2)(destination, from, source.len()) };
        self.check("cuMemcpyHtoD", code)
    }

    /// Copies device memory to host bytes, after all earlier work of stream 0.
    ///
    /// # Errors
    /// [`DriverError::InvalidAddress`]; [`DriverError::Poisoned`], also for an earlier launch. The
    /// host bytes are then unspecified.
    pub fn copy_to_host(&self, destination: &mut [u8], source: u64) -> Result<(), DriverError> {
        let table = self.enter()?;
        if !self.is_range("cuMemcpyDtoH", source, destination.len() as u64)? {
            return Ok(());
        }
        self.wait_within_limit("cuMemcpyDtoH", || self.is_stream_0_done())?;
        let to = destination.as_mut_ptr().cast::<c_void>();
        // SAFETY: both ranges are valid for the length; the copy is complete on return.
        let code = unsafe { (table.cuMemcpyDtoH_v2)(to, source, destination.len()) };
        self.check("cuMemcpyDtoH", code)
    }

    /// Copies between device memory, without waiting for it. Overlapping ranges give unspecified
    /// bytes.
    ///
    /// # Errors
    /// [`DriverError::InvalidAddress`] for either range; [`DriverError::Poisoned`].
    pub fn copy_on_device(
        &self,
        destination: u64,
        source: u64,
        bytes: u64,
    ) -> Result<(), DriverError> {
        let table = self.enter()?;
        let both = self.is_range("cuMemcpyDtoD", destination, bytes)?
            && self.is_range("cuMemcpyDtoD", source, bytes)?;
        if !both {
            return Ok(());
        }
        // SAFETY: both ranges are inside live allocations, so the length fits in `usize`.
        let code = unsafe { (table.cuMemcpyDtoD_v2)(destination, source, bytes as usize) };
        self.check("cuMemcpyDtoD", code)
    }

    /// Fills device memory with a byte, without waiting for it.
    ///
    /// # Errors
    /// [`DriverError::InvalidAddress`]; [`DriverError::Poisoned`].
    pub fn fill_u8(&self, address: u64, value: u8, bytes: u64) -> Result<(), DriverError> {
        self.fill_u8_in(StreamHandle::DEFAULT, address, value, bytes)
    }

    /// [`CudaContext::fill_u8`] in a stream, which is live.
    ///
    /// # Errors
    /// As there.
    pub(crate) fn fill_u8_in(
        &self,
        stream: StreamHandle,
        address: u64,
        value: u8,
        bytes: u64,
    ) -> Result<(), DriverError> {
        let table = self.enter()?;
        if !self.is_range("cuMemsetD8", address, bytes)? {
            return Ok(());
        }
        // SAFETY: the range is inside a live allocation; the stream is live.
        let code = unsafe { (table.cuMemsetD8Async)(address, value, bytes as usize, stream.0) };
        self.check("cuMemsetD8", code)
    }

    /// Fills `count` 32-bit words of device memory, without waiting for it. The address must be a
    /// multiple of 4.
    ///
    /// # Errors
    /// [`DriverError::InvalidAddress`]; [`DriverError::Other`] for a misaligned address;
    /// [`DriverError::Poisoned`].
    pub fn fill_u32(&self, address: u64, value: u32, count: u64) -> Result<(), DriverError> {
        let table = self.enter()?;
        if !self.is_range("cuMemsetD32", address, count.saturating_mul(4))? {
            return Ok(());
        }
        // SAFETY: the range is inside a live allocation; the stream is the default one.
        let code =
            unsafe { (table.cuMemsetD32Async)(address, value, count as usize, ptr::null_mut()) };
        self.check("cuMemsetD32", code)
    }

    /// How much memory the device has free, and in all.
    ///
    /// # Errors
    /// [`DriverError::Poisoned`] or [`DriverError::Other`].
    pub fn memory_info(&self) -> Result<MemoryInfo, DriverError> {
        let table = self.enter()?;
        let (mut free, mut total) = (0usize, 0usize);
        // SAFETY: both outlive the call.
        let code: Code = unsafe { (table.cuMemGetInfo_v2)(&mut free, &mut total) };
        self.check("cuMemGetInfo", code)?;
        Ok(MemoryInfo {
            free: free as u64,
            total: total as u64,
        })
    }

    /// The error for code 2. Asking for the free memory may itself fail; the first error counts.
    pub(super) fn out_of_memory(&self, call: &'static str, asked: u64) -> DriverError {
        let (mut free, mut total) = (0usize, 0usize);
        // SAFETY: both outlive the call; the context is current since `enter`.
        let code = unsafe { (self.driver.table.cuMemGetInfo_v2)(&mut free, &mut total) };
        let stats = self.memory_stats();
        DriverError::OutOfMemory {
            call,
            asked,
            free: (code == 0).then_some(free as u64),
            total: self.info().total_memory,
            used: stats.used,
            pooled: stats.pooled,
        }
    }

    /// What the context's buffers have of the device's memory, and what its pool keeps.
    pub fn memory_stats(&self) -> MemoryStats {
        let (used, peak, in_use) = {
            let allocations = self.allocations.lock();
            (allocations.used, allocations.peak, allocations.pooled)
        };
        let pooled = self.pool_bytes().unwrap_or(0).saturating_sub(in_use);
        let pooled = pooled + self.given_up.lock().plain_bytes();
        MemoryStats { used, peak, pooled }
    }

    /// Whether there is anything to do, for a range inside one live allocation.
    pub(super) fn is_range(
        &self,
        call: &'static str,
        address: u64,
        bytes: u64,
    ) -> Result<bool, DriverError> {
        if bytes == 0 {
            return Ok(false);
        }
        let found = self.allocations.lock().at_or_before(address);
        let inside = found.is_some_and(|(start, length)| {
            let offset = address - start;
            offset < length && bytes <= length - offset
        });
        if inside {
            Ok(true)
        } else {
            Err(DriverError::InvalidAddress {
                call,
                address,
                bytes,
            })
        }
    }
}
