//! The device: what a backend must be able to do, and the handle the rest of Kiln holds.

use std::any::Any;
use std::ffi::c_void;
use std::fmt;
use std::mem::MaybeUninit;
use std::ptr::NonNull;
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use kiln_interp::checks::Checks;
use kiln_ir::abi::LaunchArgs;
use kiln_ir::code::{CompiledKernel, KernelInfo, PtxCode};
use kiln_ir::launch::{LaunchConfig, LaunchLimits};
use kiln_ir::target::Target;
use parking_lot::Mutex;

use super::cpu::CpuOptions;
use super::cuda::{CudaContext, CudaFunction, Driver, DriverError};
use super::cuda_device::CudaDevice;
use crate::adopted::{AdoptedFunction, LentFunction, LentStream};
use crate::code_facts::CodeFacts;
use crate::error::{DeviceError, Result};
use crate::graph::{BackendGraph, Step};
use crate::later::HostMemory;
use crate::order::{Streams, Uses};
use crate::rows::{Laid, Rows};
use crate::stream::{BackendStream, HostCall, StreamOptions, outside_of_calls};
use crate::told::Listeners;

/// Which device of this process.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum DeviceId {
    /// A CPU device; each has a number of its own.
    Cpu(u32),
    /// A CUDA device, by ordinal.
    Cuda(u32),
    /// A CUDA device that was reset: by ordinal, and how often. What was made before is another device's.
    CudaAgain(u32, u32),
    /// A CUDA context of the program's own; each has a number of its own.
    CudaContext(u32),
    /// A device of a backend that Kiln does not know; each has a number of its own.
    Custom(u32),
}

impl std::fmt::Display for DeviceId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            DeviceId::Cpu(n) => write!(f, "CPU device {n}"),
            DeviceId::Cuda(n) => write!(f, "CUDA device {n}"),
            DeviceId::CudaAgain(n, 1) => write!(f, "CUDA device {n} after its reset"),
            DeviceId::CudaAgain(n, resets) => write!(f, "CUDA device {n} after reset {resets}"),
            DeviceId::CudaContext(n) => write!(f, "CUDA context {n} of the program"),
            DeviceId::Custom(n) => write!(f, "device {n}"),
        }
    }
}

/// Tells devices apart while they are open.
#[doc(hidden)]
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct DeviceTag(usize);

/// What kind of device.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum DeviceKind {
    /// This machine's CPU.
    Cpu,
    /// An NVIDIA GPU.
    Cuda,
    /// A device of a backend that Kiln does not know.
    Custom,
}

impl fmt::Display for DeviceKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            DeviceKind::Cpu => "CPU",
            DeviceKind::Cuda => "CUDA GPU",
            DeviceKind::Custom => "device of its own kind",
        })
    }
}

/// What a device is.
#[derive(Clone, Debug)]
pub struct DeviceInfo {
    /// Which device of this process it is.
    pub id: DeviceId,
    /// What kind.
    pub kind: DeviceKind,
    /// The device's name for people.
    pub name: String,
    /// Number of multiprocessors; of threads that run blocks for the CPU.
    pub multiprocessors: u32,
    /// Device memory in bytes; 0 when it is the host's.
    pub memory_bytes: u64,
    /// What code for it must be.
    pub target: Target,
    /// What a launch may ask for.
    pub limits: LaunchLimits,
}

impl DeviceInfo {
    /// Refuses checks that the device does not make.
    ///
    /// # Errors
    /// [`DeviceError::NoChecks`].
    pub fn accept(&self, kernel: &str, checks: &Checks) -> Result<()> {
        if checks.is_none() || self.kind == DeviceKind::Cpu {
            return Ok(());
        }
        Err(DeviceError::NoChecks {
            kernel: kernel.to_owned(),
            device: self.name.clone(),
        })
    }
}

/// What the memory of a device is used for, in bytes.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct MemoryStats {
    /// Of the buffers that there are.
    pub used: u64,
    /// The most that these had.
    pub peak: u64,
    /// Of freed buffers, kept for later ones.
    pub pooled: u64,
}

/// A kernel loaded on a device.
pub trait LoadedCode: Any + Send + Sync {
    /// For the backend that made it to get its own type back.
    fn as_any(&self) -> &dyn Any;

    /// What the CUDA device launches, in one call where each launch asks.
    #[doc(hidden)]
    #[inline]
    fn cuda_function(&self) -> Option<&CudaFunction> {
        None
    }

    /// What is known of it.
    fn facts(&self) -> CodeFacts {
        CodeFacts::default()
    }
}

/// How many blocks a device on the host holds at once, each on a thread of the system or of its own making.
pub(crate) const BLOCKS_TOGETHER: u32 = 64;

/// How many blocks of a launch a device holds at once.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Occupancy {
    /// Blocks that a multiprocessor holds at once; 0 of one that is too large.
    pub blocks: u32,
    /// Multiprocessors of the device.
    pub multiprocessors: u32,
}

impl Occupancy {
    /// Blocks that the device holds at once.
    pub fn all_blocks(&self) -> u64 {
        u64::from(self.blocks) * u64::from(self.multiprocessors)
    }
}

/// A point in the order of a device's work.
pub trait Marker: Send + Sync {
    /// For the backend that made it to get its own type back.
    fn as_any(&self) -> &dyn Any;
}

/// What a backend does. Addresses are device addresses; memory comes from `alloc` and is not
/// initialized.
pub trait Backend: Send + Sync {
    /// What the device is.
    fn info(&self) -> &DeviceInfo;
    /// Allocates device memory, aligned to 256 bytes. Zero bytes give any address.
    fn alloc(&self, bytes: usize) -> Result<u64>;
    /// Allocates device memory of zeros.
    fn alloc_zeros(&self, bytes: usize) -> Result<u64> {
        let address = self.alloc(bytes)?;
        let cleared = self.clear(address, bytes);
        if cleared.is_err() {
            self.free(address, bytes);
        }
        cleared.map(|()| address)
    }
    /// Whether what `alloc` gives is there only behind the work that the device's own stream has, so that other streams
    /// wait for that, and is freed behind the work of any stream.
    fn allocates_in_order(&self) -> bool {
        false
    }
    /// What the device's memory is used for; one that does not count says nothing.
    fn memory_stats(&self) -> Option<MemoryStats> {
        None
    }
    /// From now on keeps so many bytes of freed memory, at most, for later allocations.
    fn keep_freed(&self, _bytes: u64) -> Result<()> {
        Ok(())
    }
    /// Gives freed memory that is kept back to the system, as far as no work uses it.
    fn trim(&self) -> Result<()> {
        Ok(())
    }
    /// Frees what `alloc` gave, once work that uses it is done. Never fails visibly: a device that
    /// cannot free is a device that has reported its failure elsewhere.
    fn free(&self, address: u64, bytes: usize);
    /// Copies to the device, after the work launched before.
    fn upload(&self, address: u64, bytes: &[MaybeUninit<u8>]) -> Result<()>;
    /// Copies from the device, after the work launched before.
    fn download(&self, address: u64, bytes: &mut [u8]) -> Result<()>;
    /// Fills with zero bytes, after the work launched before.
    fn clear(&self, address: u64, bytes: usize) -> Result<()>;
    /// Copies between memory of the device, after the work launched before; the ranges do not overlap.
    fn copy(&self, to: u64, from: u64, bytes: usize) -> Result<()> {
        let mut copied = Vec::new();
        let reserved = copied.try_reserve_exact(bytes);
        reserved.map_err(|_| DeviceError::HostMemory { bytes })?;
        copied.resize(bytes, 0);
        self.download(from, &mut copied)?;
        let copied: Vec<_> = copied.into_iter().map(MaybeUninit::new).collect();
        self.upload(to, &copied)
    }
    /// Whether this device copies to memory of another by itself. Other copies go through the host.
    ///
    /// # Errors
    /// A device that has failed, either of them: nothing is asked of the one for the other's sake.
    fn reaches(&self, _other: &dyn Backend) -> Result<bool> {
        Ok(false)
    }
    /// Copies to memory of another device that this one reaches, behind the work of a stream of this one, `None` being the
    /// device's own. Nobody waits for it.
    fn copy_to_other(
        &self,
        _stream: Option<&dyn BackendStream>,
        _other: &dyn Backend,
        _to: u64,
        _from: u64,
        _bytes: usize,
    ) -> Result<()> {
        Err(DeviceError::Internal(
            "a device was to copy to another that it does not reach",
        ))
    }
    /// Makes later work of a stream, `None` being the device's own, wait for a mark of another device, one of which
    /// reaches the other.
    fn wait_for_other(&self, _: Option<&dyn BackendStream>, _: &dyn Marker) -> Result<()> {
        Err(DeviceError::Internal(
            "a device was to wait for another that it does not reach",
        ))
    }
    /// For the backend that made it to get its own type back.
    #[doc(hidden)]
    fn as_any(&self) -> Option<&dyn Any> {
        None
    }
    /// Copies rows between memory of the device, after the work launched before; they do not overlap.
    ///
    /// # Errors
    /// A device that has failed.
    fn copy_rows(&self, to: Laid, from: Laid, rows: Rows) -> Result<()> {
        rows.one_by_one((to, from), |to, from, bytes| self.copy(to, from, bytes))
    }
    /// Copies rows to the device, after the work launched before; they have ended on return.
    ///
    /// # Errors
    /// A device that has failed.
    fn upload_rows(
        &self,
        to: Laid,
        bytes: &[MaybeUninit<u8>],
        from: Laid,
        rows: Rows,
    ) -> Result<()> {
        rows.upload_one_by_one(to, (bytes, from), |to, bytes| self.upload(to, bytes))
    }
    /// Copies rows from the device, after the work launched before; they have ended on return.
    ///
    /// # Errors
    /// A device that has failed.
    fn download_rows(&self, from: Laid, bytes: &mut [u8], to: Laid, rows: Rows) -> Result<()> {
        rows.download_one_by_one(from, (bytes, to), |from, bytes| self.download(from, bytes))
    }
    /// Memory of the host that copies can use while the host goes on, at a multiple of 256. `None`: the device copies
    /// while the host waits, from and to any memory.
    fn alloc_host(&self, _bytes: usize) -> Result<Option<NonNull<u8>>> {
        Ok(None)
    }
    /// Frees what `alloc_host` gave, of so many bytes.
    fn free_host(&self, _start: NonNull<u8>, _bytes: usize) {}
    /// Copies to the device, after the work launched before, without waiting for it.
    ///
    /// # Safety
    /// The memory is valid for so many bytes, and is not written, until a later mark of the stream is reached.
    unsafe fn upload_later(&self, address: u64, from: NonNull<u8>, bytes: usize) -> Result<()> {
        // SAFETY: so the caller promises.
        let from = unsafe { std::slice::from_raw_parts(from.cast().as_ptr(), bytes) };
        self.upload(address, from)
    }
    /// Copies from the device, after the work launched before, without waiting for it.
    ///
    /// # Safety
    /// The memory is valid and initialized for so many bytes, and nobody reads or writes it until a later mark of the
    /// stream is reached.
    unsafe fn download_later(&self, address: u64, to: NonNull<u8>, bytes: usize) -> Result<()> {
        // SAFETY: so the caller promises.
        let to = unsafe { std::slice::from_raw_parts_mut(to.as_ptr(), bytes) };
        self.download(address, to)
    }
    /// Makes a kernel launchable.
    fn load(&self, kernel: &CompiledKernel) -> Result<Box<dyn LoadedCode>>;
    /// What makes machine code of PTX in [`Backend::assemble`], with its version and the machine: such code is
    /// another's wherever this is another. `None`: nothing does.
    fn assembler(&self) -> Option<String> {
        None
    }
    /// Makes machine code of PTX, which is loaded in the text's place and can be kept. `None`: it does not come
    /// about, and the text is loaded.
    fn assemble(&self, _kernel: &str, _code: &PtxCode) -> Option<Arc<[u8]>> {
        None
    }
    /// Makes a kernel launchable with checks. Devices of other kinds than the CPU are never asked.
    fn load_checked(&self, kernel: &CompiledKernel, _: &Checks) -> Result<Box<dyn LoadedCode>> {
        Err(DeviceError::NoChecks {
            kernel: kernel.info.name.clone(),
            device: self.info().name.clone(),
        })
    }
    /// Hands a launch to the device, which may run for as long as `limit` says, where it can be
    /// ended. `args` have the kernel's layout; the backend fills in the fault channel.
    fn launch(
        &self,
        code: &dyn LoadedCode,
        kernel: &Arc<KernelInfo>,
        config: &LaunchConfig,
        args: &mut LaunchArgs<'_>,
        limit: Option<Duration>,
    ) -> Result<()>;
    /// Waits until everything launched is done. A fault it left is the error, once.
    fn synchronize(&self) -> Result<()>;
    /// Waits, for who is about to read this memory: what went wrong elsewhere is left for others,
    /// as far as the device tells it apart.
    fn synchronize_memory(&self, _address: u64, _bytes: usize) -> Result<()> {
        self.synchronize()
    }
    /// Whether the device takes work, as far as is known without asking it: the error that lasts, if there was one.
    fn usable(&self) -> Result<()> {
        Ok(())
    }
    /// Ends all launches that have been made and have not ended, where that is possible.
    fn cancel(&self) -> Result<()> {
        Err(DeviceError::NoCancel {
            device: self.info().name.clone(),
        })
    }
    /// What a launch of the device's own stream has left that has ended, once, without waiting.
    fn fault(&self) -> Result<()> {
        Ok(())
    }
    /// What [`Backend::synchronize`] tells of launches of the device's own stream that have ended, once; who cannot tell
    /// them from others waits for all.
    fn ended(&self) -> Result<()> {
        self.synchronize()
    }
    /// Takes over memory of the device that other code has allocated, as if `alloc` had given it.
    fn adopt_memory(&self, _address: u64, _bytes: usize) -> Result<()> {
        Err(DeviceError::OwnMemoryOnly {
            device: self.info().name.clone(),
        })
    }
    /// Leaves memory that `alloc` gave, or that was adopted, to other code, which frees it.
    fn give_up_memory(&self, _address: u64, _bytes: usize) -> Result<()> {
        Err(DeviceError::OwnMemoryOnly {
            device: self.info().name.clone(),
        })
    }
    /// Begins the device anew after an error that lasts, for the `resets`th time. No use of this backend reaches the
    /// device from then on.
    ///
    /// # Safety
    /// Nothing else uses the device.
    unsafe fn reset(&self, _resets: u32) -> Result<Reset> {
        Err(DeviceError::NothingToReset {
            device: self.info().name.clone(),
        })
    }
    /// Waits until all work that the device has is done, that of other code too, where it can have such. What
    /// launches left is told elsewhere.
    fn settle(&self) -> Result<()> {
        Ok(())
    }
    /// Marks this point of the device's work.
    fn mark(&self) -> Result<Box<dyn Marker>>;
    /// Milliseconds of device time between two marks, waiting for the later one.
    fn elapsed_ms(&self, from: &dyn Marker, to: &dyn Marker) -> Result<f64>;
    /// Waits until a mark is reached.
    fn wait_until(&self, marker: &dyn Marker) -> Result<()> {
        self.elapsed_ms(marker, marker).map(drop)
    }
    /// For how long a call may wait; `None`: for as long as it takes.
    fn wait_limit(&self) -> Option<Duration> {
        None
    }
    /// The error of who has waited for so long in vain.
    fn overdue(&self, _limit: Duration) -> DeviceError {
        DeviceError::Internal("a device without a limit was waited for too long")
    }
    /// Whether a mark is reached; who cannot tell waits for it.
    fn is_reached(&self, marker: &dyn Marker) -> Result<bool> {
        self.wait_until(marker).map(|()| true)
    }
    /// A stream beside the device's own, which all that is above goes to. `None`: the device has one order for all
    /// of its work, and what is given to any stream is done in that.
    fn create_stream(&self, _: StreamOptions) -> Result<Option<Arc<dyn BackendStream>>> {
        Ok(None)
    }
    /// A stream of other code, whose work is ordered as that of the device's streams.
    fn adopt_stream(&self, _: &LentStream) -> Result<Arc<dyn BackendStream>> {
        Err(DeviceError::OwnStreamsOnly {
            device: self.info().name.clone(),
        })
    }
    /// A function of a module that other code has loaded, by the name that errors call it.
    fn adopt_function(&self, _: &LentFunction, _name: &str) -> Result<AdoptedFunction> {
        Err(DeviceError::OwnCodeOnly {
            device: self.info().name.clone(),
        })
    }
    /// The device's own stream as other code can use it: on a GPU of NVIDIA's a `CUstream`, null being the legacy
    /// default stream.
    fn raw_stream(&self) -> Option<*mut c_void> {
        None
    }
    /// How many blocks of so many threads, and so much dynamic shared memory, a multiprocessor holds at once. A device
    /// that runs one block to its end before the next holds one in all.
    fn occupancy(&self, _code: &dyn LoadedCode, _threads: u32, _shared: u32) -> Result<Occupancy> {
        Ok(Occupancy {
            blocks: 1,
            multiprocessors: 1,
        })
    }
    /// The number of threads of a block, at most so many, of which a multiprocessor holds the most. `None`: it is all one.
    fn best_block(&self, _code: &dyn LoadedCode, _shared: u32, _most: u32) -> Result<Option<u32>> {
        Ok(None)
    }
    /// Makes a graph of steps, each behind those whose numbers `after` has for it. `None`: the device has none, and
    /// the steps are done one after the other.
    fn create_graph(
        &self,
        _steps: &[Step<'_>],
        _after: &[Vec<usize>],
    ) -> Result<Option<Box<dyn BackendGraph>>> {
        Ok(None)
    }
    /// Makes later work of the device's own stream wait for what another was given so far. Only who creates streams
    /// is asked.
    fn wait_for(&self, _: &dyn BackendStream) -> Result<()> {
        Err(DeviceError::Internal(
            "a device of one stream was to wait for another",
        ))
    }
    /// Makes later work of the device's own stream wait for a mark of any stream of the device.
    fn wait(&self, marker: &dyn Marker) -> Result<()> {
        self.wait_until(marker)
    }
    /// Whether the work of the device's own stream is done; who cannot tell waits for it.
    fn is_done(&self) -> Result<bool> {
        self.synchronize().map(|()| true)
    }
    /// Calls this on the host when the work of the device's own stream is done. Later work waits until it has
    /// returned. A device that works while it is asked calls it at once.
    fn then(&self, call: HostCall) -> Result<()> {
        self.synchronize()?;
        call();
        Ok(())
    }
}

/// What became of a device that was to be begun anew.
pub enum Reset {
    /// The backend of the device that is begun.
    Begun(Arc<dyn Backend>),
    /// A device that was begun anew before, that of this driver with this ordinal.
    Before(&'static Driver, u32),
}

/// A device of this process. Cheap to clone.
#[derive(Clone)]
pub struct Device(Arc<Opened>);

/// A device with its streams.
struct Opened {
    streams: Streams,
    backend: Arc<dyn Backend>,
    /// Memory that was dropped in calls that streams make, to be freed outside of them.
    left: Mutex<Vec<(u64, usize, Uses)>>,
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
            streams: Streams::default(),
            backend,
            left: Mutex::default(),
            lent: Mutex::default(),
            listeners: Listeners::default(),
            beside: OnceLock::new(),
        }))
    }

    /// What open devices are told apart by, in less than by their ids.
    #[doc(hidden)]
    #[inline]
    pub fn tag(&self) -> DeviceTag {
        DeviceTag(Arc::as_ptr(&self.0).addr())
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
    pub(crate) fn left(&self) -> &Mutex<Vec<(u64, usize, Uses)>> {
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
    fn a_device_that_makes_no_checks() {
        let cpu = Device::cpu();
        let info = cpu.info().clone();
        let gpu = DeviceInfo {
            kind: DeviceKind::Cuda,
            name: "NVIDIA Example".to_owned(),
            ..info.clone()
        };
        assert!(info.accept("k", &Checks::all()).is_ok());
        assert!(gpu.accept("k", &Checks::none()).is_ok());
        let error = gpu.accept("k", &Checks::none().races());
        expect_test::expect!["kernel `k`: NVIDIA Example makes no checks; launch it with these options on `Device::cpu()`, or run the program under NVIDIA's compute-sanitizer"].assert_eq(&error.expect_err("it is refused").to_string());
    }
}
