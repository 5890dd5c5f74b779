//! The handle of a device that the rest of Kiln holds, and the CUDA devices that are open. What a backend must be able to
//! do is in `device/backend.rs`, what devices are in `device/info.rs`.

mod backend;
mod info;

use std::any::Any;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock, Weak};

use parking_lot::Mutex;

use super::cpu::CpuOptions;
use super::cuda::{CudaContext, Driver, DriverError};
use super::cuda_device::CudaDevice;
use crate::error::{DeviceError, Result};
use crate::later::HostMemory;
use crate::order::{Streams, Uses};
use crate::seldom::Seldom;
use crate::stream::outside_of_calls;
use crate::told::Listeners;

pub use backend::{Backend, LoadedCode, Marker, Reset};
pub(crate) use info::BLOCKS_TOGETHER;
pub use info::{DeviceId, DeviceInfo, DeviceKind, MemoryStats, Occupancy};

/// Tells open devices apart, also several at once: each code has half of its bits set, so that what the codes of
/// several have in common is the code of one only if it is that of all.
#[doc(hidden)]
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct DeviceCode(u64);

impl DeviceCode {
    /// Of no device.
    pub const NONE: DeviceCode = DeviceCode(0);

    /// One that no device had before; none is left after 2^32 devices.
    fn next() -> DeviceCode {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        DeviceCode::of(NEXT.fetch_add(1, Relaxed))
    }

    fn of(number: u64) -> DeviceCode {
        match u32::try_from(number) {
            Ok(number) => DeviceCode(u64::from(number) << 32 | u64::from(!number)),
            Err(_) => DeviceCode::NONE,
        }
    }

    /// What two have in common.
    #[inline(always)]
    pub fn and(self, other: DeviceCode) -> DeviceCode {
        DeviceCode(self.0 & other.0)
    }
}

/// A device of this process. Cheap to clone.
#[derive(Clone)]
pub struct Device(Arc<Opened>);

/// A device with its streams.
struct Opened {
    code: DeviceCode,
    streams: Streams,
    backend: Arc<dyn Backend>,
    /// Memory that was dropped in calls that streams make, to be freed outside of them.
    left: Seldom<Vec<(u64, usize, Uses)>>,
    /// Memory of the host that copies use which were given up, until the mark behind each is reached.
    lent: Mutex<Vec<Lent>>,
    listeners: Listeners,
    /// What the layer above keeps for all who have the device.
    beside: OnceLock<Box<dyn Any + Send + Sync>>,
}

/// Memory of the host, and when a copy no longer uses it.
type Lent = (Arc<dyn Marker>, HostMemory);

impl Drop for Opened {
    fn drop(&mut self) {
        if self.streams.has_copied() {
            // A context that ends would end a copy under way with it. What goes wrong now nobody can be told.
            let settle = || self.backend.settle();
            let _ = settle().or_else(|_| settle());
        }
        for (marker, memory) in std::mem::take(self.lent.get_mut()) {
            let wait = || self.backend.wait_until(&*marker);
            match wait().or_else(|_| wait()) {
                // The copy may go on. Memory of a device that is lost is not freed anyway.
                Err(error) if !error.is_loss() => std::mem::forget(memory),
                _ => {}
            }
        }
        for (address, bytes, uses) in std::mem::take(self.left.get_mut()) {
            let own = self.streams.own();
            if self.streams.order(&*self.backend, own, &uses, true).is_ok() {
                self.backend.free(address, bytes);
            }
        }
    }
}

/// A device that it does not keep open.
#[derive(Clone)]
pub(crate) struct WeakDevice(Weak<Opened>);

impl PartialEq for WeakDevice {
    fn eq(&self, other: &WeakDevice) -> bool {
        Weak::ptr_eq(&self.0, &other.0)
    }
}

impl WeakDevice {
    /// The device, while somebody has it.
    pub(crate) fn upgrade(&self) -> Option<Device> {
        self.0.upgrade().map(Device)
    }

    /// Whether somebody has the device.
    pub(crate) fn is_open(&self) -> bool {
        self.0.strong_count() > 0
    }
}

/// The CUDA devices that are open: who opens one twice has one, with its streams.
static CUDA_DEVICES: Mutex<Vec<OpenedCuda>> = Mutex::new(Vec::new());

/// A CUDA device that is or was open.
struct OpenedCuda {
    /// The driver's address, and the device's number.
    place: (usize, u32),
    /// How often it was reset, which nobody forgets: what was made before is another device's.
    resets: u32,
    device: Weak<Opened>,
}

impl std::fmt::Debug for Device {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Device({})", self.info().name)
    }
}

impl Device {
    /// This machine's CPU. Each call gives a device of its own; buffers do not mix.
    pub fn cpu() -> Device {
        Device::cpu_with(CpuOptions::default())
    }

    /// This machine's CPU with other settings than by default.
    pub fn cpu_with(options: CpuOptions) -> Device {
        Device::of(Arc::new(super::cpu::CpuDevice::new(options)))
    }

    /// The CUDA device with this ordinal. While it is open, who opens it again gets the same.
    ///
    /// # Errors
    /// No driver, a driver that is too old, no such device; each says what to do.
    pub fn cuda(ordinal: u32) -> Result<Device> {
        Device::cuda_of(Driver::load()?, ordinal)
    }

    /// The CUDA device with this ordinal of a driver that the program has opened itself.
    ///
    /// # Errors
    /// As [`Device::cuda`].
    pub fn cuda_of(driver: &'static Driver, ordinal: u32) -> Result<Device> {
        let place = (std::ptr::from_ref(driver).addr(), ordinal);
        let mut devices = CUDA_DEVICES.lock();
        devices.retain(|known| known.resets > 0 || known.device.strong_count() > 0);
        let known = devices.iter_mut().find(|known| known.place == place);
        if let Some(open) = known.as_ref().and_then(|known| known.device.upgrade()) {
            return Ok(Device(open));
        }
        let resets = known.as_ref().map_or(0, |known| known.resets);
        let context = CudaContext::with_driver(driver, ordinal)?;
        let device = Device::of(CudaDevice::of(context, ordinal, resets));
        match known {
            Some(known) => known.device = Arc::downgrade(&device.0),
            None => devices.push(OpenedCuda {
                place,
                resets,
                device: Arc::downgrade(&device.0),
            }),
        }
        Ok(device)
    }

    /// The device begun anew, which works again after an error that lasts. Everything that was made on this one is
    /// lost: buffers, loaded kernels, streams, events; each use is an error, and dropping them does nothing. Who
    /// resets a device again that was reset gets what it has become.
    ///
    /// # Safety
    /// Nothing else uses the device's primary context meanwhile: no other thread is in a call to this device, and no
    /// other code in the process (cudarc, cust, a CUDA library) has anything in it. Memory of the host that the device
    /// gave (`Pinned`) is neither read nor written any more.
    ///
    /// # Errors
    /// A device that has no errors that last ([`DeviceError::NothingToReset`]), a context that was adopted
    /// ([`DriverError::NotToReset`]), a driver that does not reset it or whose device stays unusable.
    pub unsafe fn reset(&self) -> Result<Device> {
        outside_of_calls()?;
        let mut devices = CUDA_DEVICES.lock();
        let own = Arc::downgrade(&self.0);
        let is_this = |known: &&mut OpenedCuda| Weak::ptr_eq(&known.device, &own);
        let Some(known) = devices.iter_mut().find(is_this) else {
            drop(devices);
            // SAFETY: as promised.
            return unsafe { self.0.backend.reset(0) }.and_then(|again| match again {
                Reset::Begun(backend) => Ok(Device::of(backend)),
                Reset::Before(driver, ordinal) => Device::cuda_of(driver, ordinal),
            });
        };
        let resets = known.resets + 1;
        // SAFETY: as promised.
        let backend = match unsafe { self.0.backend.reset(resets)? } {
            Reset::Begun(backend) => backend,
            // It was reset, and could not be opened then.
            Reset::Before(driver, ordinal) => {
                CudaDevice::of(CudaContext::open_again(driver, ordinal)?, ordinal, resets)
            }
        };
        let device = Device::of(backend);
        known.resets = resets;
        known.device = Arc::downgrade(&device.0);
        Ok(device)
    }

    /// A device whose work is done in a CUDA context that other code has made, on the device with this ordinal. The
    /// context is made current in threads that ask for something, and is not destroyed. The primary context, which
    /// cudarc and `cust::context::Context` work in, is shared by [`Device::cuda`] itself.
    ///
    /// # Safety
    /// `context` is a `CUcontext` of that device, which lives for as long as the device and what is made of it.
    ///
    /// # Errors
    /// As [`Device::cuda`].
    pub unsafe fn adopt_cuda(ordinal: u32, context: *mut std::ffi::c_void) -> Result<Device> {
        // SAFETY: as promised.
        unsafe { Device::adopt_cuda_of(Driver::load()?, ordinal, context) }
    }

    /// [`Device::adopt_cuda`] with a driver that the program has opened itself.
    ///
    /// # Safety
    /// As there.
    ///
    /// # Errors
    /// As [`Device::cuda`].
    pub unsafe fn adopt_cuda_of(
        driver: &'static Driver,
        ordinal: u32,
        context: *mut std::ffi::c_void,
    ) -> Result<Device> {
        // SAFETY: as promised.
        let context = unsafe { CudaContext::adopt(driver, ordinal, context)? };
        Ok(Device::of(CudaDevice::of(context, ordinal, 0)))
    }

    /// The first CUDA device, or this machine's CPU if there is no CUDA driver or no device.
    ///
    /// # Errors
    /// A driver or device that is there but cannot be used: this is not passed over in silence.
    pub fn best() -> Result<Device> {
        match Device::cuda(0) {
            Err(DeviceError::Driver(
                DriverError::LibraryNotFound { .. } | DriverError::NoDevice { .. },
            )) => Ok(Device::cpu()),
            result => result,
        }
    }

    /// A device of a backend's. A program that brings one brings an `Isa` for its
    /// target, too, if Kiln has none.
    pub fn of(backend: Arc<dyn Backend>) -> Device {
        Device(Arc::new(Opened {
            code: DeviceCode::next(),
            streams: Streams::default(),
            backend,
            left: Seldom::default(),
            lent: Mutex::default(),
            listeners: Listeners::default(),
            beside: OnceLock::new(),
        }))
    }

    /// What open devices are told apart by, in less than by their ids.
    #[doc(hidden)]
    #[inline]
    pub fn code(&self) -> DeviceCode {
        self.0.code
    }

    /// The streams of the device.
    #[inline]
    pub fn streams(&self) -> &Streams {
        &self.0.streams
    }

    /// Refuses another device, whose streams are others.
    ///
    /// # Errors
    /// [`DeviceError::ForeignStream`].
    pub fn check_same(&self, other: &Device) -> Result<()> {
        match Arc::ptr_eq(&self.0, &other.0) {
            true => Ok(()),
            false => Err(DeviceError::ForeignStream {
                owner: other.info().id,
                device: self.info().id,
            }),
        }
    }

    /// What the layer above keeps for all who have the device, of one type; `None` to who asks for another.
    #[doc(hidden)]
    pub fn beside<T: Any + Send + Sync + Default>(&self) -> Option<&T> {
        let beside = self.0.beside.get_or_init(|| Box::<T>::default());
        beside.downcast_ref()
    }

    /// Memory that is to be freed once no call of a stream's is under way.
    pub(crate) fn left(&self) -> &Seldom<Vec<(u64, usize, Uses)>> {
        &self.0.left
    }

    /// Who listens to it.
    pub(crate) fn listeners(&self) -> &Listeners {
        &self.0.listeners
    }

    /// Memory of the host that copies use which were given up.
    pub(crate) fn lent(&self) -> &Mutex<Vec<Lent>> {
        &self.0.lent
    }

    /// The device without keeping it open.
    pub(crate) fn downgrade(&self) -> WeakDevice {
        WeakDevice(Arc::downgrade(&self.0))
    }

    /// Gives this up without ending the device, should nobody else have it.
    pub(crate) fn keep_if_last(self) {
        if let Some(opened) = Arc::into_inner(self.0) {
            std::mem::forget(opened);
        }
    }

    /// What the device is.
    pub fn info(&self) -> &DeviceInfo {
        self.0.backend.info()
    }

    /// What does the work.
    #[inline]
    pub fn backend(&self) -> &Arc<dyn Backend> {
        &self.0.backend
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_of_several_devices_have_none_of_theirs_in_common() {
        let numbers = [0, 1, 2, 3, 0xFFFF, 0x1_0000, u64::from(u32::MAX)];
        for (at, one) in numbers.map(DeviceCode::of).into_iter().enumerate() {
            assert_ne!(one, DeviceCode::NONE);
            assert_eq!(one.and(one), one);
            for other in numbers.iter().skip(at + 1).map(|n| DeviceCode::of(*n)) {
                let both = one.and(other);
                assert!(both != one && both != other, "{one:?}, {other:?}");
            }
        }
        assert_eq!(DeviceCode::of(1 << 32), DeviceCode::NONE);
        assert_ne!(Device::cpu().code(), Device::cpu().code());
    }
}
