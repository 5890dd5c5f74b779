//! The CPU device: kernels run in the interpreter, on host memory.

use std::alloc::Layout;
use std::any::Any;
use std::collections::BTreeMap;
use std::mem::MaybeUninit;
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

use parking_lot::Mutex;

use super::device::{Backend, DeviceId, DeviceInfo, DeviceKind, LoadedCode, Marker};
use crate::checks::Checks;
use crate::error::{Error, Result};
use crate::fault::FaultRecord;
use crate::interp::{InterpretLaunch, InterpretedKernel};
use crate::job::{Code, CompiledKernel};
use crate::launch::{KernelFault, LaunchConfig, LaunchLimits};
use crate::runtime::device::describe_fault;
use crate::target::Target;

/// Tells CPU devices of one process apart.
static NEXT_ID: AtomicU32 = AtomicU32::new(0);

/// A CPU device. Launches run at once, on the calling thread; a fault waits for the next
/// synchronizing call, as on a GPU.
pub(super) struct CpuDevice {
    info: DeviceInfo,
    memory: Mutex<BTreeMap<u64, Allocation>>,
    fault: Mutex<Option<KernelFault>>,
    /// Held while a kernel runs.
    running: Mutex<()>,
}

/// Alignment of allocations in bytes, as on a GPU.
const ALIGNMENT: usize = 256;

/// Memory of the device: host memory, reached through its address only.
struct Allocation {
    start: NonNull<u8>,
    layout: Layout,
}

// SAFETY: the memory belongs to the allocation, and nothing about it is tied to a thread.
unsafe impl Send for Allocation {}

impl Allocation {
    fn new(bytes: usize) -> Option<Allocation> {
        let layout = Layout::from_size_align(bytes.max(1), ALIGNMENT).ok()?;
        // SAFETY: the layout has at least one byte.
        let start = NonNull::new(unsafe { std::alloc::alloc_zeroed(layout) })?;
        Some(Allocation { start, layout })
    }

    fn address(&self) -> u64 {
        self.start.as_ptr().expose_provenance() as u64
    }
}

impl Drop for Allocation {
    fn drop(&mut self) {
        // SAFETY: allocated in `new` with this layout, freed once.
        unsafe { std::alloc::dealloc(self.start.as_ptr(), self.layout) };
    }
}

impl CpuDevice {
    pub(super) fn new() -> Self {
        let limits = LaunchLimits {
            block_threads: 1024,
            block: [1024, 1024, 64],
            grid: [i32::MAX as u32, 65_535, 65_535],
            shared_bytes: 227 << 10,
            param_bytes: 32_764,
        };
        let info = DeviceInfo {
            id: DeviceId::Cpu(NEXT_ID.fetch_add(1, Ordering::Relaxed)),
            kind: DeviceKind::Cpu,
            name: "this machine's CPU".to_owned(),
            multiprocessors: 1,
            memory_bytes: 0,
            target: Target::Interpreter,
            limits,
        };
        CpuDevice {
            info,
            memory: Mutex::default(),
            fault: Mutex::new(None),
            running: Mutex::new(()),
        }
    }

    fn ranges(&self) -> Vec<(u64, u64)> {
        let memory = self.memory.lock();
        memory
            .iter()
            .map(|(&base, a)| (base, a.layout.size() as u64))
            .collect()
    }

    /// Gives `f` a pointer to `bytes` bytes at a device address.
    fn with_memory(&self, address: u64, bytes: usize, f: impl FnOnce(*mut u8)) -> Result<()> {
        let memory = self.memory.lock();
        let found = memory.range(..=address).next_back();
        let offset = found.map_or(0, |(base, _)| (address - base) as usize);
        match found {
            Some((_, a)) if offset + bytes <= a.layout.size() => {
                f(a.start.as_ptr().wrapping_add(offset));
                Ok(())
            }
            _ => Err(Error::ForeignAddress { address }),
        }
    }

    fn note_fault(&self, kernel: &CompiledKernel, record: &FaultRecord) {
        self.fault
            .lock()
            .get_or_insert_with(|| describe_fault(kernel, record));
    }
}

struct Interpreted {
    kernel: InterpretedKernel,
    checks: Checks,
    /// The bytes of the parameter block that are not padding.
    defined: Vec<Range<usize>>,
}

impl LoadedCode for Interpreted {
    fn as_any(&self) -> &dyn Any {
        self
    }
}

struct Timestamp(Instant);

impl Marker for Timestamp {
    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl Backend for CpuDevice {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn alloc(&self, bytes: usize) -> Result<u64> {
        let allocation = Allocation::new(bytes).ok_or(Error::HostMemory { bytes })?;
        let address = allocation.address();
        self.memory.lock().insert(address, allocation);
        Ok(address)
    }

    fn free(&self, address: u64, _bytes: usize) {
        self.memory.lock().remove(&address);
    }

    fn upload(&self, address: u64, bytes: &[MaybeUninit<u8>]) -> Result<()> {
        self.with_memory(address, bytes.len(), |to| {
            // SAFETY: `to` is valid for that many bytes of device memory, which no Rust reference
            // points into.
            unsafe { to.copy_from_nonoverlapping(bytes.as_ptr().cast(), bytes.len()) }
        })
    }

    fn download(&self, address: u64, bytes: &mut [u8]) -> Result<()> {
        let count = bytes.len();
        self.with_memory(address, count, |from| {
            // SAFETY: `from` is valid for that many bytes of device memory. Bytes that came from
            // padding may be uninitialized in principle; they become padding again.
            unsafe { from.copy_to_nonoverlapping(bytes.as_mut_ptr(), count) }
        })
    }

    fn clear(&self, address: u64, bytes: usize) -> Result<()> {
        // SAFETY: the pointer is valid for that many bytes of device memory.
        self.with_memory(address, bytes, |to| unsafe { to.write_bytes(0, bytes) })
    }

    fn load(&self, kernel: &CompiledKernel) -> Result<Box<dyn LoadedCode>> {
        self.load_checked(kernel, &Checks::none())
    }

    fn load_checked(
        &self,
        kernel: &CompiledKernel,
        checks: &Checks,
    ) -> Result<Box<dyn LoadedCode>> {
        match &kernel.code {
            Code::Ir(module) => Ok(Box::new(Interpreted {
                kernel: InterpretedKernel::new(module)?,
                checks: *checks,
                defined: kernel.layout.defined_ranges(module),
            })),
            Code::Ptx(_) => Err(Error::WrongTarget {
                kernel: kernel.name.clone(),
                device: self.info.name.clone(),
            }),
        }
    }

    fn launch(
        &self,
        code: &dyn LoadedCode,
        kernel: &CompiledKernel,
        config: &LaunchConfig,
        params: &mut [MaybeUninit<u8>],
    ) -> Result<()> {
        let Some(code) = code.as_any().downcast_ref::<Interpreted>() else {
            return Err(Error::Internal(
                "a kernel of another backend reached the CPU device",
            ));
        };
        let mut block = vec![0; params.len()];
        for range in &code.defined {
            for at in range.clone() {
                // SAFETY: these bytes of an argument are no padding, so its value has them.
                block[at] = unsafe { params[at].assume_init() };
            }
        }
        let launch = InterpretLaunch {
            grid: config.grid.to_array(),
            block: config.block.to_array(),
            dynamic_shared: config.shared_bytes,
            params: &block,
            kernel_tag: kernel.kernel_tag,
            step_limit: None,
        };
        let _running = self.running.lock();
        // SAFETY: the ranges are this device's allocations, zeroed when they were made and reached
        // only by kernels, one at a time under `running`, and by copies, which buffers order: a
        // launch borrows the buffers it is given.
        let fault = unsafe {
            code.kernel
                .run_checked(&launch, &self.ranges(), &code.checks)?
        };
        if let Some(record) = fault {
            self.note_fault(kernel, &record);
        }
        Ok(())
    }

    fn synchronize(&self) -> Result<()> {
        match self.fault.lock().take() {
            Some(fault) => Err(fault.into()),
            None => Ok(()),
        }
    }

    fn mark(&self) -> Result<Box<dyn Marker>> {
        Ok(Box::new(Timestamp(Instant::now())))
    }

    fn elapsed_ms(&self, from: &dyn Marker, to: &dyn Marker) -> Result<f64> {
        let at = |m: &dyn Marker| m.as_any().downcast_ref::<Timestamp>().map(|t| t.0);
        match (at(from), at(to)) {
            (Some(from), Some(to)) => Ok(to.saturating_duration_since(from).as_secs_f64() * 1e3),
            _ => Err(Error::ForeignEvent),
        }
    }
}
