//! The CPU device: kernels run as host code, or in the interpreter, on host memory.
//!
//! | file | subject |
//! |---|---|
//! | `memory` | allocations |
//! | `kernel` | machine code of a kernel |
//! | `direct` | running machine code without a device |
//! | `object`, `symbols` | loading machine code, and what it may call |
//! | `pool` | the threads that run the blocks of launches |
//! | `run` | a launch: how its blocks are run, and what went wrong |
//! | `queue`, `sync` | which launch runs next: what those threads agree on, and by which locks |
//! | `together` | blocks that wait for each other |
//! | `watch` | time limits |
//! | `failures` | what went wrong, until somebody is told |
//! | `stack` | how much stack a thread has left |
//! | `meaning` | intrinsics without host code |

mod direct;
pub(super) mod failures;
mod kernel;
mod meaning;
pub(super) mod memory;
#[cfg(test)]
mod model;
pub(super) mod object;
mod options;
mod pool;
mod queue;
mod run;
mod stack;
pub(super) mod symbols;
mod sync;
mod together;
mod watch;

use std::any::Any;
use std::mem::MaybeUninit;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

pub use direct::HostModule;
pub use object::ObjectError;
pub use options::CpuOptions;

use failures::{Failures, Given};
use kernel::HostKernel;
use kiln_interp::checks::Checks;
use kiln_interp::{InterpretError, InterpretLaunch, InterpretedKernel};
use kiln_ir::abi::{DeviceAddress, LaunchArg, LaunchArgs};
use kiln_ir::code::{Code, CompiledKernel, KernelInfo};
use kiln_ir::launch::{LaunchConfig, LaunchLimits, LaunchStopped};
use kiln_ir::legal::Legal;
use kiln_ir::stop::Stop;
use kiln_ir::target::{CpuTarget, Target};
use memory::DeviceMemory;
use pool::Pool;
use run::{Failed, Report, RunSpec};

use super::device::{
    BLOCKS_TOGETHER, Backend, DeviceId, DeviceInfo, DeviceKind, LoadedCode, Marker, MemoryStats,
    Occupancy,
};
use crate::code_facts::CodeFacts;
use crate::error::{DeviceError, Result};
use crate::stream::HostCall;

/// Tells CPU devices of one process apart.
static NEXT_ID: AtomicU32 = AtomicU32::new(0);

/// Whether there is code for this machine: what [`object`] can load.
const HAS_CODE: bool = cfg!(all(target_arch = "x86_64", target_os = "linux"));

/// Bytes of dropped buffers that wait for launches before an allocation waits with them.
const MAX_LEAVING: usize = 1 << 29;

/// A CPU device. Launches return before they end, as on a GPU; a fault waits for the next
/// synchronizing call.
pub(super) struct CpuDevice {
    info: DeviceInfo,
    options: CpuOptions,
    memory: Arc<DeviceMemory>,
    /// Bytes of dropped buffers that launches may still reach.
    leaving: Arc<AtomicUsize>,
    failures: Arc<Failures>,
    pool: Pool,
}

impl CpuDevice {
    pub(super) fn new(options: CpuOptions) -> Self {
        let cores = std::thread::available_parallelism().map_or(1, |n| n.get() as u32);
        let threads = options.threads.unwrap_or(cores).max(1);
        let info = DeviceInfo {
            id: DeviceId::Cpu(NEXT_ID.fetch_add(1, Ordering::Relaxed)),
            kind: DeviceKind::Cpu,
            name: "this machine's CPU".to_owned(),
            multiprocessors: threads,
            memory_bytes: 0,
            target: if options.interpret || !HAS_CODE {
                Target::Interpreter
            } else {
                Target::Cpu(CpuTarget {
                    lanes: options.lanes,
                    barriers: options.barriers,
                    ..CpuTarget::host()
                })
            },
            limits: LaunchLimits::CPU,
        };
        CpuDevice {
            info,
            options,
            memory: Arc::default(),
            leaving: Arc::default(),
            failures: Arc::default(),
            pool: Pool::new(threads),
        }
    }

    /// Allocates. It waits for memory that is about to be given back if that is much, as a program that
    /// allocates and drops faster than its launches run would take more and more, and if there is none else.
    fn allocate(&self, alloc: impl Fn() -> Result<u64>) -> Result<u64> {
        let leaving = || self.leaving.load(Ordering::Relaxed);
        if leaving() <= MAX_LEAVING {
            let address = alloc();
            if address.is_ok() || leaving() == 0 {
                return address;
            }
        }
        self.pool.settle()?;
        alloc()
    }

    /// The time of a mark, if it is one of this device's.
    fn mine<'a>(&self, marker: &'a dyn Marker) -> Result<&'a Mutex<Option<Instant>>> {
        self.pool.check_process()?;
        let mark = marker.as_any().downcast_ref::<Timestamp>();
        let mark = mark.filter(|mark| mark.device == self.info.id);
        mark.map(|mark| &*mark.at).ok_or(DeviceError::ForeignEvent)
    }

    fn run(
        &self,
        host: &Arc<HostKernel>,
        kernel: &Arc<KernelInfo>,
        config: &LaunchConfig,
        args: &LaunchArgs<'_>,
        limit: Option<Duration>,
    ) -> Result<()> {
        let spec = RunSpec {
            params: args.bytes(),
            grid: config.grid.to_array(),
            block: config.block.to_array(),
            dynamic_shared: config.shared_bytes,
            kernel_tag: kernel.kernel_tag,
            order: self.options.block_order,
            together: config.cooperative,
            limit,
        };
        let report = || -> Report {
            let (given, failures, kernel) = (given(args), self.failures.clone(), kernel.clone());
            Box::new(move |failed: Failed| {
                let error = match failed {
                    Failed::Fault(record) => kernel.fault(&record).into(),
                    Failed::Error(error) => error,
                };
                failures.add(given.clone(), error);
            })
        };
        self.pool.launch(host, &spec, report)
    }

    fn interpret(
        &self,
        code: &Interpreted,
        kernel: &KernelInfo,
        config: &LaunchConfig,
        args: &LaunchArgs<'_>,
        limit: Option<Duration>,
    ) -> Result<()> {
        let launch = InterpretLaunch {
            grid: config.grid.to_array(),
            block: config.block.to_array(),
            dynamic_shared: config.shared_bytes,
            params: args.bytes(),
            kernel_tag: kernel.kernel_tag,
            step_limit: None,
            order: self.options.block_order,
        };
        let stop = Arc::new(Stop::default());
        let result = self.pool.run_here(&stop, limit, || {
            let (memory, checks) = (self.memory.ranges(), &code.checks);
            // SAFETY: the ranges are this device's allocations, zeroed when they were made and reached
            // only by kernels, one at a time, and by copies, which buffers order: a launch borrows the
            // buffers it is given.
            unsafe { code.kernel.run_until(&launch, &memory, checks, &stop) }
        })?;
        match result {
            Ok(None) => Ok(()),
            Ok(Some(record)) => {
                let fault = kernel.fault(&record).into();
                self.failures.add(given(args), fault);
                Ok(())
            }
            Err(error @ InterpretError::Stopped { .. }) => {
                let stopped = LaunchStopped::of(&stop, &kernel.name, limit);
                Err(stopped.map_or(error.into(), DeviceError::from))
            }
            Err(InterpretError::DesertedGrid(error)) => Err(error.into()),
            Err(error) => Err(error.into()),
        }
    }
}

/// The device addresses that a launch is given.
pub(super) fn given(args: &LaunchArgs<'_>) -> Given {
    let addresses = args.iter().filter_map(LaunchArg::address);
    addresses.map(|DeviceAddress(address)| address).collect()
}

struct Interpreted {
    kernel: InterpretedKernel,
    checks: Checks,
    shared_bytes: u64,
}

impl Interpreted {
    fn new(legal: &Legal, checks: &Checks, info: &KernelInfo) -> Result<Interpreted> {
        Ok(Interpreted {
            kernel: InterpretedKernel::new(legal)?,
            checks: *checks,
            shared_bytes: info.shared_bytes,
        })
    }
}

impl LoadedCode for Interpreted {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn facts(&self) -> CodeFacts {
        CodeFacts {
            shared_bytes: Some(self.shared_bytes),
            ..CodeFacts::default()
        }
    }
}

/// Host code for one shape of block.
struct Compiled {
    kernel: Arc<HostKernel>,
    block: [u32; 3],
    facts: CodeFacts,
}

impl LoadedCode for Compiled {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn facts(&self) -> CodeFacts {
        self.facts.clone()
    }
}

/// A point in the order of one device's work.
struct Timestamp {
    device: DeviceId,
    at: Arc<Mutex<Option<Instant>>>,
}

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
        self.allocate(|| self.memory.alloc(bytes))
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

    fn alloc_zeros(&self, bytes: usize) -> Result<u64> {
        self.allocate(|| self.memory.alloc_zeros(bytes))
    }

    fn free(&self, address: u64, bytes: usize) {
        if self.pool.check_process().is_err() {
            return;
        }
        // The memory stays while launches made before may reach it. Whoever drops it does not wait for
        // them, as one may never end.
        self.leaving.fetch_add(bytes, Ordering::Relaxed);
        let (memory, leaving) = (self.memory.clone(), self.leaving.clone());
        let failures = self.failures.clone();
        self.pool.after_all(move || {
            failures.leave(address..address.saturating_add(bytes as u64));
            memory.free(address);
            leaving.fetch_sub(bytes, Ordering::Relaxed);
        });
    }

    fn upload(&self, address: u64, bytes: &[MaybeUninit<u8>]) -> Result<()> {
        self.pool.settle()?;
        self.memory.with(address, bytes.len(), |to| {
            // SAFETY: `to` is valid for that many bytes of device memory, which no Rust reference
            // points into.
            unsafe { to.copy_from_nonoverlapping(bytes.as_ptr().cast(), bytes.len()) }
        })
    }

    fn download(&self, address: u64, bytes: &mut [u8]) -> Result<()> {
        self.pool.settle()?;
        let count = bytes.len();
        self.memory.with(address, count, |from| {
            // SAFETY: `from` is valid for that many bytes of device memory. Bytes that came from
            // padding may be uninitialized in principle; they become padding again.
            unsafe { from.copy_to_nonoverlapping(bytes.as_mut_ptr(), count) }
        })
    }

    fn clear(&self, address: u64, bytes: usize) -> Result<()> {
        self.pool.settle()?;
        // SAFETY: the pointer is valid for that many bytes of device memory.
        self.memory
            .with(address, bytes, |to| unsafe { to.write_bytes(0, bytes) })
    }

    fn adopt_memory(&self, address: u64, bytes: usize) -> Result<()> {
        self.memory.adopt(address, bytes)
    }

    fn give_up_memory(&self, address: u64, bytes: usize) -> Result<()> {
        // Launches that were made before may reach it.
        self.pool.settle()?;
        match bytes {
            0 => Ok(()),
            _ => self.memory.give_up(address),
        }
    }

    fn copy(&self, to: u64, from: u64, bytes: usize) -> Result<()> {
        self.pool.settle()?;
        let from = self.memory.with(from, bytes, |from| from)?;
        self.memory.with(to, bytes, |to| {
            // SAFETY: both are valid for that many bytes of device memory, which whoever copies has borrowed, and do
            // not overlap; no Rust reference points into them.
            unsafe { to.copy_from_nonoverlapping(from, bytes) }
        })
    }

    fn load(&self, kernel: &CompiledKernel) -> Result<Box<dyn LoadedCode>> {
        self.load_checked(kernel, &Checks::none())
    }

    fn load_checked(
        &self,
        kernel: &CompiledKernel,
        checks: &Checks,
    ) -> Result<Box<dyn LoadedCode>> {
        let name = &kernel.info.name;
        match &kernel.code {
            Code::Interpreted { legal, .. } => {
                Ok(Box::new(Interpreted::new(legal, checks, &kernel.info)?))
            }
            // Host code makes no checks; a `JitOptions::target` may ask for both.
            Code::Host(code) if checks.is_none() => Ok(Box::new(Compiled {
                kernel: Arc::new(HostKernel::load(name, code)?),
                block: code.block,
                facts: CodeFacts {
                    shared_bytes: Some(kernel.info.shared_bytes),
                    code_bytes: Some(code.object.len() as u64),
                    lanes: Some(code.lanes),
                    stack_bytes: Some(code.stack_bytes),
                    ..CodeFacts::default()
                },
            })),
            Code::Host(_) | Code::Ptx(_) | Code::Custom(_) => Err(DeviceError::WrongTarget {
                kernel: name.clone(),
                target: kernel.target.to_string(),
                device: match checks.is_none() {
                    true => self.info.name.clone(),
                    false => format!("{} with `JitOptions::checks`", self.info.name),
                },
            }),
        }
    }

    fn occupancy(&self, code: &dyn LoadedCode, _threads: u32, _shared: u32) -> Result<Occupancy> {
        let interpreted = code.as_any().downcast_ref::<Interpreted>();
        // The interpreter runs a block to its end, but for waits for the grid.
        let one_by_one = interpreted.is_some_and(|code| !code.kernel.waits_for_grid());
        Ok(Occupancy {
            blocks: if one_by_one { 1 } else { BLOCKS_TOGETHER },
            multiprocessors: 1,
        })
    }

    fn launch(
        &self,
        code: &dyn LoadedCode,
        kernel: &Arc<KernelInfo>,
        config: &LaunchConfig,
        args: &mut LaunchArgs<'_>,
        limit: Option<Duration>,
    ) -> Result<()> {
        if let Some(code) = code.as_any().downcast_ref::<Compiled>() {
            if code.block != config.block.to_array() {
                return Err(DeviceError::WrongTarget {
                    kernel: kernel.name.clone(),
                    target: format!("blocks of {:?} threads", code.block),
                    device: self.info.name.clone(),
                });
            }
            return self.run(&code.kernel, kernel, config, args, limit);
        }
        match code.as_any().downcast_ref::<Interpreted>() {
            Some(code) => self.interpret(code, kernel, config, args, limit),
            None => Err(DeviceError::Internal(
                "a kernel of another backend reached the CPU device",
            )),
        }
    }

    fn synchronize(&self) -> Result<()> {
        self.pool.settle()?;
        self.failures.take_first().map_or(Ok(()), Err)
    }

    fn ended(&self) -> Result<()> {
        self.failures.take_first().map_or(Ok(()), Err)
    }

    fn synchronize_memory(&self, address: u64, bytes: usize) -> Result<()> {
        self.pool.settle()?;
        let end = address.saturating_add(bytes as u64);
        self.failures.take_of(address..end).map_or(Ok(()), Err)
    }

    fn cancel(&self) -> Result<()> {
        self.pool.check_process()?;
        self.pool.cancel();
        Ok(())
    }

    fn mark(&self) -> Result<Box<dyn Marker>> {
        self.pool.check_process()?;
        Ok(Box::new(Timestamp {
            device: self.info.id,
            at: self.pool.mark(),
        }))
    }

    fn elapsed_ms(&self, from: &dyn Marker, to: &dyn Marker) -> Result<f64> {
        let (from, to) = (self.mine(from)?, self.mine(to)?);
        let (from, to) = (self.pool.wait_for(from), self.pool.wait_for(to));
        Ok(to.saturating_duration_since(from).as_secs_f64() * 1e3)
    }

    fn is_reached(&self, marker: &dyn Marker) -> Result<bool> {
        Ok(self.mine(marker)?.lock().is_some())
    }

    // All streams are this queue, so that later work is behind every mark.
    fn wait(&self, marker: &dyn Marker) -> Result<()> {
        self.mine(marker).map(drop)
    }

    fn is_done(&self) -> Result<bool> {
        self.pool.check_process()?;
        Ok(self.pool.is_idle())
    }

    fn then(&self, call: HostCall) -> Result<()> {
        self.pool.call(call)
    }
}
