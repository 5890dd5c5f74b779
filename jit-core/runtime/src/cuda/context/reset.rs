//! A device that works again after an error that lasts: its primary context is begun anew.
//!
//! What was made in the context that was is lost, and says so: the old [`CudaContext`] is refused every use, as after
//! the error, so that no address and no handle of it reaches the driver again.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use super::{CudaContext, is_fatal, primary};
use crate::cuda::Driver;
use crate::cuda::error::DriverError;

impl CudaContext {
    /// Whether the primary context was begun anew, so that what was made of this is lost.
    pub fn was_reset(&self) -> bool {
        self.was_reset.load(Relaxed)
    }

    /// Begins the device's primary context anew (`cuDevicePrimaryCtxReset`). From here on every use of this one is
    /// [`DriverError::Reset`]; dropping what was made of it calls nobody.
    ///
    /// # Safety
    /// Nothing else uses the primary context: no other thread is in a call to this device, and no other code in the
    /// process (cudarc, cust, a CUDA library) has anything in it.
    ///
    /// # Errors
    /// [`DriverError::NotToReset`] for a context that was [adopted](CudaContext::adopt); a driver that does not reset
    /// the context; [`DriverError::StaysLost`] where the device is as unusable as before, as after an illegal address with
    /// driver 580 on an H100, whatever is released, destroyed or made.
    pub unsafe fn reset(&self) -> Result<Arc<CudaContext>, DriverError> {
        let ordinal = self.info.ordinal;
        if self.adopted.is_some() {
            return Err(DriverError::NotToReset { ordinal });
        }
        if self.process.is_parent() {
            return Err(self.forked());
        }
        let table = &self.driver.table;
        // SAFETY: the caller promises that nobody uses what this ends.
        let code = unsafe { (table.cuDevicePrimaryCtxReset_v2)(self.device) };
        // A driver that refuses leaves the context as it was.
        self.driver.check("cuDevicePrimaryCtxReset", code)?;
        // Nobody enters from here on. What ends a context that has no error of its own is its end.
        if self.poison.get().is_none() {
            self.poison_with("cuDevicePrimaryCtxReset", 709);
        }
        self.was_reset.store(true, Relaxed);
        // SAFETY: retained once in `with_driver`; a poisoned context is not released when it is dropped.
        unsafe { primary::release_all(table, self.device) };
        CudaContext::open_again(self.driver, ordinal)
    }

    /// Opens a device whose primary context was begun anew.
    ///
    /// # Errors
    /// Those of opening it; [`DriverError::StaysLost`] if it is as unusable as before.
    pub(crate) fn open_again(
        driver: &'static Driver,
        ordinal: u32,
    ) -> Result<Arc<CudaContext>, DriverError> {
        CudaContext::with_driver(driver, ordinal).map_err(|error| of_reset(error, ordinal))
    }
}

/// The error of a device whose context was begun anew and that cannot be opened.
fn of_reset(error: DriverError, ordinal: u32) -> DriverError {
    let (call, code) = match error {
        DriverError::Other { call, code } if is_fatal(code.code) => (call, code),
        DriverError::Poisoned { first } => (first.call, first.code.clone()),
        other => return other,
    };
    DriverError::StaysLost {
        ordinal,
        call,
        code,
    }
}
