//! The device: host memory, and launches that run on the thread that makes them.

use std::any::Any;
use std::mem::MaybeUninit;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use once_cell::sync::OnceCell;

use kiln_ir::abi::LaunchArgs;
use kiln_ir::code::{CompiledKernel, KernelInfo};
use kiln_ir::launch::{LaunchConfig, LaunchLimits};

use super::OnHostOptions;
use super::kernel::{BlockMemory, Loaded, OnHostLaunch, SHARED_BYTES};
use crate::cpu::failures::Failures;
use crate::cpu::given;
use crate::cpu::memory::DeviceMemory;
use crate::device::{
    BLOCKS_TOGETHER, Backend, DeviceId, DeviceInfo, DeviceKind, LoadedCode, Marker, MemoryStats,
    Occupancy,
};
use crate::error::{DeviceError, Result};
use crate::stream::HostCall;

/// Tells these devices apart from each other, and from GPUs.
static NEXT_ID: AtomicU32 = AtomicU32::new(1 << 16);

pub(super) struct OnHostDevice {
    info: DeviceInfo,
    options: OnHostOptions,
    memory: DeviceMemory,
    block: OnceCell<BlockMemory>,
    failures: Failures,
}

impl OnHostDevice {
    pub(super) fn new(options: OnHostOptions) -> OnHostDevice {
        let info = DeviceInfo {
            id: DeviceId::Cuda(NEXT_ID.fetch_add(1, Ordering::Relaxed)),
            kind: DeviceKind::Cuda,
            name: format!("code for sm_{} on this CPU", options.sm),
            multiprocessors: 1,
            memory_bytes: 0,
            target: options.target(),
            limits: LaunchLimits {
                block_threads: 1024,
                block: [1024, 1024, 64],
                grid: [i32::MAX as u32, 65_535, 65_535],
                shared_bytes: SHARED_BYTES,
                param_bytes: 32_764,
            },
        };
        OnHostDevice {
            info,
            options,
            memory: DeviceMemory::default(),
            block: OnceCell::new(),
            failures: Failures::default(),
        }
    }

    fn block(&self) -> Result<&BlockMemory> {
        self.block.get_or_try_init(BlockMemory::new)
    }
}

/// What every byte of new memory is.
const UNSPECIFIED: u8 = 0xa5;

struct Timestamp(Instant);

impl Marker for Timestamp {
    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl Backend for OnHostDevice {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn alloc(&self, bytes: usize) -> Result<u64> {
        // Atomics of bytes are those of the word around them, which here ends with the allocation, too.
        let address = self.memory.alloc(bytes.next_multiple_of(4))?;
        // What nobody has written is no zeros, so that tests find who relies on that. From the host's side it is
        // initialized.
        self.memory.with(address, bytes, |to| {
            // SAFETY: the pointer is valid for that many bytes of device memory, which no Rust reference points into.
            unsafe { to.write_bytes(UNSPECIFIED, bytes) }
        })?;
        Ok(address)
    }

    fn memory_stats(&self) -> Option<MemoryStats> {
        Some(self.memory.stats())
    }

    fn keep_freed(&self, bytes: u64) -> Result<()> {
        self.memory.keep_freed(bytes);
        Ok(())
    }

    fn trim(&self) -> Result<()> {
        self.memory.trim();
        Ok(())
    }

    fn free(&self, address: u64, bytes: usize) {
        self.failures
            .leave(address..address.saturating_add(bytes as u64));
        self.memory.free(address);
    }

    fn upload(&self, address: u64, bytes: &[MaybeUninit<u8>]) -> Result<()> {
        self.memory.with(address, bytes.len(), |to| {
            // SAFETY: `to` is valid for that many bytes of device memory, which no Rust reference
            // points into.
            unsafe { to.copy_from_nonoverlapping(bytes.as_ptr().cast(), bytes.len()) }
        })
    }

    fn download(&self, address: u64, bytes: &mut [u8]) -> Result<()> {
        let count = bytes.len();
        self.memory.with(address, count, |from| {
            // SAFETY: `from` is valid for that many bytes of device memory, zeroed when it was made.
            unsafe { from.copy_to_nonoverlapping(bytes.as_mut_ptr(), count) }
        })
    }

    fn clear(&self, address: u64, bytes: usize) -> Result<()> {
        // SAFETY: the pointer is valid for that many bytes of device memory.
        self.memory
            .with(address, bytes, |to| unsafe { to.write_bytes(0, bytes) })
    }

    fn load(&self, kernel: &CompiledKernel) -> Result<Box<dyn LoadedCode>> {
        Ok(Box::new(Loaded::new(kernel, self.block()?)?))
    }

    fn launch(
        &self,
        code: &dyn LoadedCode,
        kernel: &Arc<KernelInfo>,
        config: &LaunchConfig,
        args: &mut LaunchArgs<'_>,
        // What does not end is an error by the number of its turns.
        _limit: Option<Duration>,
    ) -> Result<()> {
        let Some(code) = code.as_any().downcast_ref::<Loaded>() else {
            return Err(DeviceError::Internal(
                "a kernel of another backend reached a GPU on this CPU",
            ));
        };
        let launch = OnHostLaunch {
            grid: config.grid.to_array(),
            block: config.block.to_array(),
            dynamic_shared: config.shared_bytes,
            params: args.bytes(),
            schedule: self.options.schedule,
            sm: self.options.sm,
        };
        // SAFETY: the parameters are the kernel's, whose addresses are of this device's memory; a
        // launch borrows the buffers it is given, and runs while the memory of blocks is held.
        if let Some(record) = unsafe { code.run(&launch, self.block()?)? } {
            let fault = kernel.fault(&record).into();
            self.failures.add(given(args), fault);
        }
        Ok(())
    }

    fn occupancy(&self, code: &dyn LoadedCode, _threads: u32, _shared: u32) -> Result<Occupancy> {
        let code = code.as_any().downcast_ref::<Loaded>();
        let waits = code.is_some_and(Loaded::waits_for_grid);
        Ok(Occupancy {
            blocks: if waits { BLOCKS_TOGETHER } else { 1 },
            multiprocessors: 1,
        })
    }

    fn synchronize(&self) -> Result<()> {
        self.failures.take_first().map_or(Ok(()), Err)
    }

    fn synchronize_memory(&self, address: u64, bytes: usize) -> Result<()> {
        let end = address.saturating_add(bytes as u64);
        self.failures.take_of(address..end).map_or(Ok(()), Err)
    }

    fn mark(&self) -> Result<Box<dyn Marker>> {
        Ok(Box::new(Timestamp(Instant::now())))
    }

    fn elapsed_ms(&self, from: &dyn Marker, to: &dyn Marker) -> Result<f64> {
        let at = |m: &dyn Marker| m.as_any().downcast_ref::<Timestamp>().map(|m| m.0);
        match (at(from), at(to)) {
            (Some(from), Some(to)) => Ok(to.saturating_duration_since(from).as_secs_f64() * 1e3),
            _ => Err(DeviceError::ForeignEvent),
        }
    }

    // Launches run on the thread that makes them.
    fn wait(&self, marker: &dyn Marker) -> Result<()> {
        match marker.as_any().is::<Timestamp>() {
            true => Ok(()),
            false => Err(DeviceError::ForeignEvent),
        }
    }

    fn is_done(&self) -> Result<bool> {
        Ok(true)
    }

    fn then(&self, call: HostCall) -> Result<()> {
        call();
        Ok(())
    }
}
