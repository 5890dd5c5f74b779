//! A device's primary context, and the rule for errors that make it unusable.
//!
//! Every operation starts with [`CudaContext::enter`], a launch with [`CudaContext::enter_at_once`]: they refuse a
//! poisoned context and make this context the thread's current one. Every code goes through [`CudaContext::check`],
//! which poisons on the codes after which the driver accepts no more work (CUDA Driver API, `CUresult`: "leaves the
//! process in an inconsistent state").

mod adopted;
mod primary;
mod reset;

use std::fmt;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

use cudarc::driver::sys;
use parking_lot::Mutex;

use super::device::DeviceInfo;
use super::driver::Driver;
use super::error::{DriverError, PoisonCause};
use super::fault_channel::FaultBuffers;
use super::first::FIRST;
use super::given_up::GivenUp;
use super::memory::Allocations;
use super::pool::Pool;
use super::recent::RecentLaunches;
use super::stream::StreamHandle;
use super::table::{Code, Table};
use super::waiting::Waiting;
use crate::forked::Process;

/// A device's primary context, which lives on when this object is dropped, until the process ends.
///
/// Usable from any thread. Two objects for the same device share the device's one primary context,
/// but not the record of allocations. Memory that was not freed before the object is dropped stays
/// allocated until the process ends or the primary context is begun anew.
pub struct CudaContext {
    pub(super) driver: &'static Driver,
    device: sys::CUdevice,
    handle: sys::CUcontext,
    /// The number of a context that is the program's own, and not released here.
    adopted: Option<u32>,
    info: DeviceInfo,
    poison: OnceLock<Arc<PoisonCause>>,
    process: Process,
    /// Whether the primary context was begun anew, so that all of this is lost.
    was_reset: AtomicBool,
    pub(super) allocations: Mutex<Allocations>,
    pub(super) pool: Option<Pool>,
    /// How many of the first buffers may still be allocated.
    pub(super) first_left: AtomicUsize,
    pub(super) given_up: Mutex<GivenUp>,
    /// Bytes of pinned memory that copies can use.
    pub(super) pinned: AtomicUsize,
    pub(super) recent: RecentLaunches,
    /// Whether streams other than stream 0 exist or existed.
    pub(super) has_streams: AtomicBool,
    /// Whether graphs exist or existed.
    pub(super) has_graphs: AtomicBool,
    /// The streams that stream 0 does not wait for.
    pub(super) beside: Mutex<Vec<StreamHandle>>,
    pub(super) fault: FaultBuffers,
    pub(super) waiting: Waiting,
}

// SAFETY: the driver API may be called from any thread; the context is made current in the calling
// thread before each use, and all other state is behind locks or atomics.
unsafe impl Send for CudaContext {}
// SAFETY: as above.
unsafe impl Sync for CudaContext {}

impl fmt::Debug for CudaContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CudaContext")
            .field("device", &self.info.ordinal)
            .field("name", &self.info.name)
            .field("poisoned", &self.poison.get())
            .finish_non_exhaustive()
    }
}

impl CudaContext {
    /// Opens a device with the process's driver, and makes its context current in this thread.
    ///
    /// # Errors
    /// Those of [`Driver::load`] and [`CudaContext::with_driver`].
    pub fn new(ordinal: u32) -> Result<Arc<CudaContext>, DriverError> {
        CudaContext::with_driver(Driver::load()?, ordinal)
    }

    /// Opens a device with this driver, and makes its context current in this thread.
    ///
    /// # Errors
    /// [`DriverError::NoDevice`], [`DriverError::InvalidDevice`],
    /// [`DriverError::DeviceUnavailable`], [`DriverError::OutOfMemory`], or
    /// [`DriverError::Other`].
    pub fn with_driver(
        driver: &'static Driver,
        ordinal: u32,
    ) -> Result<Arc<CudaContext>, DriverError> {
        let (device, info) = device_of(driver, ordinal)?;
        let handle = primary::retain(driver, device, &info)?;
        CudaContext::of_handle(driver, device, handle, None, info)
    }

    /// A context that exists.
    fn of_handle(
        driver: &'static Driver,
        device: sys::CUdevice,
        handle: sys::CUcontext,
        adopted: Option<u32>,
        info: DeviceInfo,
    ) -> Result<Arc<CudaContext>, DriverError> {
        // From here on, dropping releases what has been acquired.
        let mut context = CudaContext {
            driver,
            device,
            handle,
            adopted,
            info,
            poison: OnceLock::new(),
            process: Process::this(),
            was_reset: AtomicBool::new(false),
            allocations: Mutex::default(),
            pool: None,
            first_left: AtomicUsize::new(FIRST),
            given_up: Mutex::default(),
            pinned: AtomicUsize::new(0),
            recent: RecentLaunches::default(),
            has_streams: AtomicBool::new(false),
            has_graphs: AtomicBool::new(false),
            beside: Mutex::default(),
            fault: FaultBuffers::default(),
            waiting: Waiting::default(),
        };
        context.create_fault_buffers()?;
        context.create_pool()?;
        Ok(Arc::new(context))
    }

    /// The `CUcontext`.
    pub(super) fn handle(&self) -> sys::CUcontext {
        self.handle
    }

    /// The driver.
    pub fn driver(&self) -> &'static Driver {
        self.driver
    }

    /// The device's properties.
    pub fn info(&self) -> &DeviceInfo {
        &self.info
    }

    /// The first error that made the context unusable, if one did.
    pub fn poison_cause(&self) -> Option<&PoisonCause> {
        self.poison.get().map(|cause| &**cause)
    }

    /// Refuses a poisoned context, without asking the driver.
    #[inline]
    pub(crate) fn is_well(&self) -> Result<(), DriverError> {
        match self.poison.get() {
            Some(first) => Err(self.refusal(first)),
            None => Ok(()),
        }
    }

    /// Waits until all work of the context is done (`cuCtxSynchronize`).
    ///
    /// # Errors
    /// [`DriverError::Poisoned`] when earlier work failed; [`DriverError::StillRunning`] if there is a
    /// limit. A checked access that was out of bounds is not an error here: see
    /// [`CudaContext::take_fault`].
    pub fn synchronize(&self) -> Result<(), DriverError> {
        // A child of the process takes no lock.
        self.enter_at_once()?;
        let turns = self.given_up.lock().turns();
        self.wait_within_limit("cuCtxSynchronize", || self.is_work_done())?;
        let table = self.enter()?;
        // SAFETY: the context is current.
        let code = unsafe { (table.cuCtxSynchronize)() };
        self.check("cuCtxSynchronize", code)?;
        self.recent.clear();
        self.free_first(turns);
        Ok(())
    }

    /// Refuses a poisoned context.
    ///
    /// # Errors
    /// [`DriverError::Poisoned`]; a child of the process that opened the driver.
    pub fn usable(&self) -> Result<(), DriverError> {
        self.enter_at_once().map(drop)
    }

    /// Refuses a poisoned context, and a child of the process that opened the driver, which takes no lock.
    #[inline]
    pub(super) fn admits(&self) -> Result<(), DriverError> {
        self.is_well()?;
        match self.process.is_parent() {
            true => Err(self.forked()),
            false => Ok(()),
        }
    }

    /// Refuses a poisoned context; otherwise makes it current and gives the entry points. For launches and events; what
    /// else is asked of the driver is asked behind [`CudaContext::enter`].
    #[inline]
    pub(super) fn enter_at_once(&self) -> Result<&'static Table, DriverError> {
        self.admits()?;
        let table = &self.driver.table;
        // Reading the current context is a read of thread-local memory in the driver, cheaper than
        // setting it; and other code of the thread may change it, so it is read each time.
        let mut current: sys::CUcontext = ptr::null_mut();
        // SAFETY: `current` outlives the call.
        let code = unsafe { (table.cuCtxGetCurrent)(&mut current) };
        if code == 0 && current == self.handle {
            return Ok(table);
        }
        self.make_current()?;
        Ok(table)
    }

    #[cold]
    fn make_current(&self) -> Result<(), DriverError> {
        // SAFETY: the handle is retained until drop.
        let code = unsafe { (self.driver.table.cuCtxSetCurrent)(self.handle) };
        self.check("cuCtxSetCurrent", code)
    }

    /// Turns a code into a result, and poisons the context where the code says so.
    #[inline]
    pub(super) fn check(&self, call: &'static str, code: Code) -> Result<(), DriverError> {
        if code == 0 {
            return Ok(());
        }
        Err(self.error(call, code))
    }

    /// The error for a code other than success.
    #[cold]
    pub(super) fn error(&self, call: &'static str, code: Code) -> DriverError {
        if is_fatal(code) {
            return self.poison_with(call, code);
        }
        match code {
            2 => self.out_of_memory(call, 0),
            // Where the system does not say that a child begins.
            3 if self.process.id() != std::process::id() => self.forked(),
            _ => DriverError::Other {
                call,
                code: self.driver.describe(code),
            },
        }
    }

    fn poison_with(&self, call: &'static str, code: Code) -> DriverError {
        let first = self.poison.get_or_init(|| {
            let (kernel, several_kernels) = self.recent.suspect();
            Arc::new(PoisonCause {
                call,
                code: self.driver.describe(code),
                kernel,
                several_kernels,
            })
        });
        self.refusal(first)
    }

    /// The error for every use of a poisoned context.
    #[cold]
    fn refusal(&self, first: &Arc<PoisonCause>) -> DriverError {
        match self.was_reset.load(Relaxed) {
            true => DriverError::Reset {
                ordinal: self.info.ordinal,
            },
            false => DriverError::Poisoned {
                first: Arc::clone(first),
            },
        }
    }

    /// The error for every use in a child of the process.
    #[cold]
    fn forked(&self) -> DriverError {
        DriverError::ForkedProcess {
            parent: self.process.id(),
            child: std::process::id(),
        }
    }

    /// Runs a release of a handle or of memory: nothing at all on a poisoned context, and without
    /// an error, since there is nobody to tell while dropping.
    pub(super) fn release(&self, call: &'static str, free: impl FnOnce(&Table) -> Code) {
        // What the driver refuses once is tried again: it is the only time.
        let table = self.enter().or_else(|error| match error.is_loss() {
            true => Err(error),
            false => self.enter(),
        });
        if let Ok(table) = table {
            let code = free(&table);
            if is_fatal(code) {
                self.poison_with(call, code);
            }
        }
    }

    /// Gives the process this one's reference to the primary context, without a call, unless it has none.
    fn leave_to_process(&self) {
        if self.adopted.is_none() && !self.was_reset() {
            primary::keep(&self.driver.table, self.device);
        }
    }

    /// Notes that streams other than stream 0 are in use.
    pub(super) fn note_stream(&self) {
        self.has_streams.store(true, Relaxed);
    }
}

impl Drop for CudaContext {
    fn drop(&mut self) {
        let table = &self.driver.table;
        if self.process.is_parent() {
            return;
        }
        if self.is_overdue() {
            // Whatever is released here would wait for a kernel that may never end.
            return self.leave_to_process();
        }
        let mut previous: sys::CUcontext = ptr::null_mut();
        if self.poison.get().is_none() {
            // SAFETY: `previous` outlives the call. On failure it stays null.
            let _ = unsafe { (table.cuCtxGetCurrent)(&mut previous) };
        }
        self.free_at_the_end();
        self.free_fault_buffers();
        self.destroy_pool();
        if self.poison.get().is_none() && !previous.is_null() && previous != self.handle {
            // SAFETY: it was the thread's current context a moment ago.
            let _ = unsafe { (table.cuCtxSetCurrent)(previous) };
        }
        if self.poison.get().is_some() {
            self.leave_to_process();
        } else if self.adopted.is_none() {
            // SAFETY: retained once in `with_driver`, given away once here.
            unsafe { primary::keep_or_release(table, self.device) };
        }
    }
}

/// The device with an ordinal, and what it is.
fn device_of(
    driver: &'static Driver,
    ordinal: u32,
) -> Result<(sys::CUdevice, DeviceInfo), DriverError> {
    let count = driver.device_count()?;
    if ordinal >= count {
        return Err(DriverError::InvalidDevice {
            asked: ordinal,
            count,
            visible_devices: driver.visible_devices(),
        });
    }
    let mut device: sys::CUdevice = 0;
    // SAFETY: `device` outlives the call; the number is below the count, so it fits.
    let code = unsafe { (driver.table.cuDeviceGet)(&mut device, ordinal as i32) };
    driver.check("cuDeviceGet", code)?;
    let info = DeviceInfo::query(driver, device, ordinal)?;
    Ok((device, info))
}

/// Whether the driver accepts no more work in this context, or at all, after this code.
fn is_fatal(code: Code) -> bool {
    matches!(
        code,
        // Driver shutting down, device lost, uncorrectable memory and link errors.
        4 | 46 | 214 | 220 | 226
        // Faults of a kernel; destroyed context.
        | 700 | 702 | 709 | 710 | 714..=719 | 721
        // The MPS server or another of its clients; an external device; anything undocumented.
        | 805..=810 | 911 | 999
    )
}
