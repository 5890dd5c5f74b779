//! What a backend must be able to do.

use std::any::Any;
use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::ptr::NonNull;
use std::sync::Arc;
use std::time::Duration;

use kiln_interp::checks::Checks;
use kiln_ir::abi::LaunchArgs;
use kiln_ir::code::{CompiledKernel, KernelInfo, PtxCode};
use kiln_ir::launch::LaunchConfig;

use super::{DeviceInfo, MemoryStats, Occupancy};
use crate::adopted::{AdoptedFunction, LentFunction, LentStream};
use crate::code_facts::CodeFacts;
use crate::cuda::{CudaFunction, Driver};
use crate::error::{DeviceError, Result};
use crate::graph::{BackendGraph, Step};
use crate::rows::{Laid, Rows};
use crate::stream::{BackendStream, HostCall, StreamOptions};

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
