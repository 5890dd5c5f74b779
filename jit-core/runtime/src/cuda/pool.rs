//! The pool that buffers come from: memory that is allocated and freed in the order of a stream (CUDA guide, "Stream
//! Ordered Memory Allocator").
//!
//! `cuMemFree` waits for the device, and `cuMemAlloc` maps memory anew. A pool does neither: what is freed stays mapped
//! for later allocations, and is theirs behind the work that the stream had when it was freed. Each context has a pool
//! of its own, so that what other code does with the device's default pool is nobody's business here. A context's first
//! buffers are not of it (`first.rs`), and of small ones that are used again it does not hear (`given_up.rs`).

use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use cudarc::driver::sys::{self, CUmemPool_attribute as Attribute};

use super::context::CudaContext;
use super::error::DriverError;
use super::memory::{Allocation, Origin, in_words};
use super::stream::StreamHandle;
use super::table::{Code, Table};

/// The entry points, which a driver has all or none of.
#[derive(Copy, Clone)]
struct Entries {
    destroy: unsafe extern "C" fn(sys::CUmemoryPool) -> Code,
    set: unsafe extern "C" fn(sys::CUmemoryPool, Attribute, *mut c_void) -> Code,
    get: unsafe extern "C" fn(sys::CUmemoryPool, Attribute, *mut c_void) -> Code,
    trim: unsafe extern "C" fn(sys::CUmemoryPool, usize) -> Code,
    alloc: unsafe extern "C" fn(
        *mut sys::CUdeviceptr,
        usize,
        sys::CUmemoryPool,
        sys::CUstream,
    ) -> Code,
    free: unsafe extern "C" fn(sys::CUdeviceptr, sys::CUstream) -> Code,
}

impl Entries {
    fn of(table: &Table) -> Option<Entries> {
        Some(Entries {
            destroy: table.cuMemPoolDestroy?,
            set: table.cuMemPoolSetAttribute?,
            get: table.cuMemPoolGetAttribute?,
            trim: table.cuMemPoolTrimTo?,
            alloc: table.cuMemAllocFromPoolAsync?,
            free: table.cuMemFreeAsync?,
        })
    }
}

/// A context's pool.
pub(super) struct Pool {
    entries: Entries,
    handle: sys::CUmemoryPool,
    /// Whether the program has said how much of what is freed is kept.
    is_limited: AtomicBool,
}

impl CudaContext {
    /// Creates the pool, where the driver and the device have such. Without one, buffers are allocated one by one.
    ///
    /// # Errors
    /// A driver that refuses it though the device has pools.
    pub(super) fn create_pool(&mut self) -> Result<(), DriverError> {
        let driver = self.driver;
        let (Some(entries), Some(create)) =
            (Entries::of(&driver.table), driver.table.cuMemPoolCreate)
        else {
            return Ok(());
        };
        if !self.info().has_pools {
            return Ok(());
        }
        let entered = self.enter()?;
        // SAFETY: zeros are a value of the structure: no handle, no place, no limit.
        let mut wanted: sys::CUmemPoolProps = unsafe { std::mem::zeroed() };
        wanted.allocType = sys::CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED;
        wanted.location.type_ = sys::CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE;
        wanted.location.id = self.info().ordinal as _;
        let mut handle: sys::CUmemoryPool = ptr::null_mut();
        // SAFETY: both outlive the call.
        let code = unsafe { create(&mut handle, &wanted) };
        self.check("cuMemPoolCreate", code)?;
        drop(entered);
        self.pool = Some(Pool {
            entries,
            handle,
            is_limited: AtomicBool::new(false),
        });
        // What is freed is kept, unless the program says how much.
        self.set_pool_limit(u64::MAX)
    }

    /// Destroys the pool, once its memory is free.
    pub(super) fn destroy_pool(&mut self) {
        if let Some(pool) = self.pool.take() {
            self.release("cuMemPoolDestroy", |_| {
                // SAFETY: created once, destroyed once; what is allocated from it stays until it is freed.
                unsafe { (pool.entries.destroy)(pool.handle) }
            });
        }
    }

    /// Whether there is a pool.
    pub(crate) fn has_pool(&self) -> bool {
        self.pool.is_some()
    }

    /// How much freed memory the pool keeps when the device is waited for.
    ///
    /// # Errors
    /// [`DriverError::Poisoned`] or [`DriverError::Other`].
    pub fn set_pool_limit(&self, bytes: u64) -> Result<(), DriverError> {
        let _entered = self.enter()?;
        let Some(pool) = &self.pool else {
            return Ok(());
        };
        let mut bytes = bytes;
        let attribute = Attribute::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD;
        // SAFETY: the pool is there, and the attribute is a number of 64 bits.
        let code = unsafe { (pool.entries.set)(pool.handle, attribute, (&raw mut bytes).cast()) };
        self.check("cuMemPoolSetAttribute", code)?;
        pool.is_limited.store(bytes < u64::MAX, Relaxed);
        if bytes < u64::MAX {
            self.give_back();
        }
        Ok(())
    }

    /// Whether all is kept that is freed.
    pub(super) fn keeps_all(&self) -> bool {
        let pool = self.pool.as_ref();
        pool.is_some_and(|pool| !pool.is_limited.load(Relaxed))
    }

    /// Gives the memory that the pool keeps back to the device, as far as the work is done that used it.
    ///
    /// # Errors
    /// [`DriverError::Poisoned`] or [`DriverError::Other`].
    pub fn trim_pool(&self) -> Result<(), DriverError> {
        let _entered = self.enter()?;
        let Some(pool) = &self.pool else {
            return Ok(());
        };
        self.free_first_if_done();
        self.give_back();
        // SAFETY: the pool is there.
        let code = unsafe { (pool.entries.trim)(pool.handle, 0) };
        self.check("cuMemPoolTrimTo", code)
    }

    /// The bytes that the pool has of the device, in use or kept. The pool may be asked when the context is poisoned.
    pub(super) fn pool_bytes(&self) -> Option<u64> {
        let pool = self.pool.as_ref()?;
        let mut bytes = 0u64;
        let attribute = Attribute::CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT;
        // SAFETY: the pool is there, and the attribute is a number of 64 bits.
        let code = unsafe { (pool.entries.get)(pool.handle, attribute, (&raw mut bytes).cast()) };
        (code == 0).then_some(bytes)
    }

    /// Allocates device memory that is there behind the work of a stream: one of the first buffers, or from the pool, if
    /// there is one.
    ///
    /// If there is none left, what is freed is waited for and given back, and it is tried once more.
    ///
    /// # Errors
    /// [`DriverError::OutOfMemory`] with what is held; [`DriverError::Poisoned`].
    pub(crate) fn alloc_in_order(
        &self,
        bytes: u64,
        stream: StreamHandle,
    ) -> Result<u64, DriverError> {
        match self.alloc_once(bytes, stream) {
            Err(DriverError::OutOfMemory { .. }) if self.has_pool() => {
                self.synchronize()?;
                self.trim_pool()?;
                self.alloc_once(bytes, stream)
            }
            result => result,
        }
    }

    fn alloc_once(&self, bytes: u64, stream: StreamHandle) -> Result<u64, DriverError> {
        let (Some(pool), 1..) = (&self.pool, bytes) else {
            return self.alloc(bytes);
        };
        self.admits()?;
        if let Some(address) = self.alloc_again(bytes, stream) {
            return Ok(address);
        }
        let _entered = self.enter()?;
        if self.may_allocate_first() {
            return self.alloc_plain(bytes, Origin::First);
        }
        const CALL: &str = "cuMemAllocFromPoolAsync";
        let Some(size) = in_words(bytes) else {
            return Err(self.out_of_memory(CALL, bytes));
        };
        let mut address = 0;
        // SAFETY: `address` outlives the call; the pool is there, and so is the stream, as whoever has its handle promises.
        let code = unsafe { (pool.entries.alloc)(&mut address, size, pool.handle, stream.0) };
        if code == 2 {
            return Err(self.out_of_memory(CALL, bytes));
        }
        self.check(CALL, code)?;
        let origin = Origin::Pool;
        let allocation = Allocation { bytes, origin };
        self.allocations.lock().insert(address, allocation);
        Ok(address)
    }

    /// Frees memory of the pool, or one of the first buffers, behind the work that a stream of the context's own has,
    /// without waiting. Whether it is such memory.
    ///
    /// # Errors
    /// As [`CudaContext::free_pooled`].
    pub(crate) fn free_in_order(
        &self,
        address: u64,
        stream: StreamHandle,
    ) -> Result<bool, DriverError> {
        self.admits()?;
        let is_ordered = |origin| origin != Origin::Plain;
        let Some(allocation) = self.allocations.lock().remove_of(address, is_ordered) else {
            return Ok(false);
        };
        if !self.give_up(address, allocation, stream) {
            self.free_listed(address, allocation, stream)?;
        }
        Ok(true)
    }

    /// Frees memory of the pool behind the work that a stream has, without waiting. Whether it is of the pool.
    ///
    /// # Errors
    /// [`DriverError::Poisoned`], after which the memory is gone with the process; [`DriverError::Other`].
    pub(crate) fn free_pooled(
        &self,
        address: u64,
        stream: StreamHandle,
    ) -> Result<bool, DriverError> {
        self.admits()?;
        let is_pooled = |origin| origin == Origin::Pool;
        let Some(allocation) = self.allocations.lock().remove_of(address, is_pooled) else {
            return Ok(false);
        };
        self.free_listed(address, allocation, stream)?;
        Ok(true)
    }

    /// Frees memory of the pool that was listed until now, and is again where the driver refuses.
    fn free_listed(
        &self,
        address: u64,
        allocation: Allocation,
        stream: StreamHandle,
    ) -> Result<(), DriverError> {
        let freed = self.free_to_pool(address, stream);
        if freed.is_err() {
            self.allocations.lock().insert(address, allocation);
        }
        freed
    }

    /// Gives memory that nothing lists back to the pool, behind the work of a stream.
    pub(super) fn free_to_pool(
        &self,
        address: u64,
        stream: StreamHandle,
    ) -> Result<(), DriverError> {
        let _entered = self.enter()?;
        let Some(pool) = &self.pool else {
            return Ok(());
        };
        // SAFETY: it was a live allocation of the pool, and is no longer listed, so nobody frees it twice. Whoever frees
        // it has ordered the stream, which is there, behind its uses.
        let code = unsafe { (pool.entries.free)(address, stream.0) };
        self.check("cuMemFreeAsync", code)
    }
}
