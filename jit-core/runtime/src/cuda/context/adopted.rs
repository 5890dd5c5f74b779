//! Contexts and memory of other code in the process, which Kiln uses and does not own.

use std::ffi::c_void;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use super::{CudaContext, device_of};
use crate::cuda::driver::Driver;
use crate::cuda::error::DriverError;
use crate::cuda::memory::Allocation;

/// How many contexts have been adopted.
static ADOPTED: AtomicU32 = AtomicU32::new(0);

impl CudaContext {
    /// Works in a context that other code has made, on the device with this ordinal, and makes it current in this
    /// thread. It is not destroyed here.
    ///
    /// # Safety
    /// `context` is a `CUcontext` of that device which lives for as long as what is returned, and all that is made
    /// of it.
    ///
    /// # Errors
    /// [`DriverError::InvalidDevice`], [`DriverError::OutOfMemory`] or [`DriverError::Other`].
    pub unsafe fn adopt(
        driver: &'static Driver,
        ordinal: u32,
        context: *mut c_void,
    ) -> Result<Arc<CudaContext>, DriverError> {
        let (device, info) = device_of(driver, ordinal)?;
        let number = ADOPTED.fetch_add(1, Relaxed);
        CudaContext::of_handle(driver, device, context.cast(), Some(number), info)
    }

    /// The context as the driver knows it, for other code: a `CUcontext`. It lives as long as this object.
    pub fn as_raw(&self) -> *mut c_void {
        self.handle.cast()
    }

    /// The number of a context that was [adopted](CudaContext::adopt).
    pub fn adopted(&self) -> Option<u32> {
        self.adopted
    }

    /// Takes over memory that other code has allocated by `cuMemAlloc`, as if it were allocated here.
    ///
    /// # Errors
    /// [`DriverError::InvalidAddress`] for memory that is known already, or no address; [`DriverError::Poisoned`].
    pub fn adopt_memory(&self, address: u64, bytes: u64) -> Result<(), DriverError> {
        self.enter_at_once()?;
        if bytes == 0 {
            return Ok(());
        }
        let end = address.checked_add(bytes);
        let mut allocations = self.allocations.lock();
        // That which begins before the end is the only one that can reach into it.
        let before = end.and_then(|end| allocations.at_or_before(end - 1));
        let is_apart = before.is_none_or(|(start, length)| start + length <= address);
        if address == 0 || end.is_none() || !is_apart {
            return Err(DriverError::InvalidAddress {
                call: "adopt_memory",
                address,
                bytes,
            });
        }
        allocations.insert(address, Allocation::plain(bytes));
        Ok(())
    }

    /// Forgets an allocation without freeing it: it is other code's from here on.
    ///
    /// # Errors
    /// [`DriverError::InvalidAddress`] when it is not the start of a live allocation.
    pub fn give_up_memory(&self, address: u64) -> Result<(), DriverError> {
        // `cuMemFree` takes memory of a pool, too.
        match self.allocations.lock().remove(address) {
            Some(_) => Ok(()),
            None => Err(DriverError::InvalidAddress {
                call: "give_up_memory",
                address,
                bytes: 0,
            }),
        }
    }
}
