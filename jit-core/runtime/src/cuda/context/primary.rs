//! Primary contexts, of which a process keeps one reference for each device that it has opened until it ends.
//!
//! As the CUDA runtime does (CUDA C++ Programming Guide, "Initialization"): to end a context and then the process takes
//! longer than to end the process (152.6 ms for 137 to 140 on an H200, benches/RESULTS.md).

use std::collections::BTreeSet;
use std::ptr;

use cudarc::driver::sys;
use parking_lot::Mutex;

use crate::cuda::device::DeviceInfo;
use crate::cuda::driver::Driver;
use crate::cuda::error::DriverError;
use crate::cuda::table::Table;

/// A device, and whose it is: the address of an entry point stands for the driver's library, which is never closed.
type OfLibrary = (usize, sys::CUdevice);

/// The devices to whose primary context the process holds a reference that is no [`super::CudaContext`]'s.
static KEPT: Mutex<BTreeSet<OfLibrary>> = Mutex::new(BTreeSet::new());

fn of_library(table: &Table, device: sys::CUdevice) -> OfLibrary {
    (table.cuDevicePrimaryCtxRetain as usize, device)
}

/// Takes a reference to the primary context, with refusals told apart.
pub(super) fn retain(
    driver: &'static Driver,
    device: sys::CUdevice,
    info: &DeviceInfo,
) -> Result<sys::CUcontext, DriverError> {
    let mut handle: sys::CUcontext = ptr::null_mut();
    // SAFETY: `handle` outlives the call; `device` came from `cuDeviceGet`.
    let code = unsafe { (driver.table.cuDevicePrimaryCtxRetain)(&mut handle, device) };
    match code {
        2 => Err(DriverError::OutOfMemory {
            call: "cuDevicePrimaryCtxRetain",
            asked: 0,
            free: None,
            total: info.total_memory,
            used: 0,
            pooled: 0,
        }),
        46 | 101 | 102 | 800 | 805..=810 => Err(DriverError::DeviceUnavailable {
            ordinal: info.ordinal,
            device: info.name.clone(),
            compute_mode: info.compute_mode,
            code: driver.describe(code),
        }),
        _ => {
            driver.check("cuDevicePrimaryCtxRetain", code)?;
            Ok(handle)
        }
    }
}

/// Gives a reference that was taken to the process, which may have others.
pub(super) fn keep(table: &Table, device: sys::CUdevice) {
    KEPT.lock().insert(of_library(table, device));
}

/// Gives a reference that was taken to the process, or back if the process has one.
///
/// # Safety
/// The reference is the caller's, who does not use it from here on.
pub(super) unsafe fn keep_or_release(table: &Table, device: sys::CUdevice) {
    if !KEPT.lock().insert(of_library(table, device)) {
        // SAFETY: the caller's promise. What a driver that refuses keeps, it keeps.
        let _ = unsafe { (table.cuDevicePrimaryCtxRelease_v2)(device) };
    }
}

/// Gives back a reference to a context that was begun anew, and the process's. What the driver refuses to release is the
/// process's from here on.
///
/// # Safety
/// As of [`keep_or_release`].
pub(super) unsafe fn release_all(table: &Table, device: sys::CUdevice) {
    let mut kept = KEPT.lock();
    let this = of_library(table, device);
    let count = 1 + usize::from(kept.contains(&this));
    // SAFETY: the caller's reference; and the process's, of which nobody else asks meanwhile.
    let is_refused = |_: &usize| unsafe { (table.cuDevicePrimaryCtxRelease_v2)(device) } != 0;
    match (0..count).filter(is_refused).count() {
        0 => kept.remove(&this),
        _ => kept.insert(this),
    };
}
