//! A launch on the CPU: its code and arguments, how its blocks are run, and how it went wrong.

use std::ffi::c_void;
use std::ops::Range;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use kiln_ir::IntrinsicDef;
use kiln_ir::block_order::{BlockOrder, Shuffle};
use kiln_ir::fault::FaultRecord;
use kiln_ir::host_abi::{BlocksFn, HostLaunch};
use kiln_ir::launch::{DesertedGrid, LaunchStopped};
use kiln_ir::stop::{Stop, StopReason};

use super::memory::Allocation;
use super::queue::{Claims, Launch};
use super::together::Meeting;
use super::{meaning, stack};
use crate::error::{DeviceError, Result};

/// What a launch runs: kept alive until its last block is done.
pub(super) trait Blocks: Send + Sync {
    /// The function that runs blocks.
    fn entry(&self) -> BlocksFn;
    /// Bytes of what is kept between segments, and of a block's memory without dynamic shared
    /// memory.
    fn arena_bytes(&self) -> [usize; 2];
    /// How many blocks the function may be asked for at once; at least 1.
    fn blocks_a_call(&self) -> u64;
    /// The rows that its code has calls of, by their numbers.
    fn rows(&self) -> &[&'static IntrinsicDef];
    /// The kernel's name.
    fn name(&self) -> &str;
    /// Bytes of stack that the function takes.
    fn stack_bytes(&self) -> usize;
    /// What the latest launch took for a block, in nanoseconds; 0 if there was none.
    fn cost(&self) -> &AtomicU64;
}

/// A launch: code, arguments, and how far it has come.
pub(super) struct Run {
    pub(super) code: Arc<dyn Blocks>,
    params: Allocation,
    grid: [u32; 3],
    block: [u32; 3],
    dynamic_shared: u32,
    kernel_tag: u64,
    pub(super) claims: Claims,
    order: Option<Shuffle>,
    /// Whether all blocks have to be there at the same time.
    together: bool,
    /// What ends it before its time, and after how long that is set.
    pub(super) stop: Arc<Stop>,
    pub(super) limit: Option<Duration>,
    fault: Mutex<Option<FaultRecord>>,
    /// What went wrong besides.
    error: Mutex<Option<Box<DeviceError>>>,
    pub(super) report: Report,
}

/// Is told once how a launch went wrong, if it did.
pub(super) type Report = Box<dyn Fn(Failed) + Send + Sync>;

/// How a launch went wrong.
pub(super) enum Failed {
    /// A thread ended at a failed check; others went on.
    Fault(FaultRecord),
    /// The launch could not go on.
    Error(DeviceError),
}

// SAFETY: the parameters are only read once the run is made.
unsafe impl Sync for Run {}

/// What a launch is made of.
pub(super) struct RunSpec<'a> {
    pub(super) params: &'a [u8],
    pub(super) grid: [u32; 3],
    pub(super) block: [u32; 3],
    pub(super) dynamic_shared: u32,
    pub(super) kernel_tag: u64,
    /// The order in which blocks begin.
    pub(super) order: BlockOrder,
    /// Whether all blocks have to be there at the same time.
    pub(super) together: bool,
    /// How long it may run.
    pub(super) limit: Option<Duration>,
}

impl RunSpec<'_> {
    /// How many blocks there are.
    pub(super) fn total(&self) -> u64 {
        self.grid.iter().map(|&n| u64::from(n)).product()
    }
}

impl Run {
    pub(super) fn new(code: Arc<dyn Blocks>, spec: &RunSpec<'_>, report: Report) -> Result<Run> {
        Run::with(code, spec, report, &mut Kept::default())
    }

    /// A launch that takes the memory of its parameters and its flag from what is kept, if they are there.
    #[inline]
    pub(super) fn with(
        code: Arc<dyn Blocks>,
        spec: &RunSpec<'_>,
        report: Report,
        kept: &mut Kept,
    ) -> Result<Run> {
        let (bytes, total) = (spec.params.len(), spec.total());
        let params = match kept.params.take() {
            Some(params) if params.bytes() >= bytes => params,
            _ => Allocation::new(bytes).ok_or(DeviceError::HostMemory { bytes })?,
        };
        // SAFETY: the allocation is at least as long as the parameters.
        unsafe {
            params
                .start()
                .copy_from_nonoverlapping(spec.params.as_ptr(), bytes);
        }
        Ok(Run {
            code,
            params,
            grid: spec.grid,
            block: spec.block,
            dynamic_shared: spec.dynamic_shared,
            kernel_tag: spec.kernel_tag,
            claims: Claims::new(total),
            order: spec.order.of(total),
            together: spec.together && total > 1,
            stop: kept.stop.take().unwrap_or_default(),
            limit: spec.limit,
            fault: Mutex::new(None),
            error: Mutex::new(None),
            report,
        })
    }

    fn arena_bytes(&self) -> usize {
        let [kept, memory] = self.code.arena_bytes();
        kept + memory + self.dynamic_shared as usize
    }

    /// Claims and runs blocks until there are none; whether the last one was among them.
    pub(super) fn work(&self, chunk: u64, arena: &mut Arena) -> bool {
        if self.together {
            let all = self.claims.total();
            return (self.claims).work(&self.stop, all, |blocks| self.run_together(blocks));
        }
        let arena = match arena.at_least(self.arena_bytes()) {
            Ok(arena) => arena,
            Err(error) => {
                // Without memory for a block nobody can run it.
                self.give_up(error);
                return self.claims.end_unclaimed();
            }
        };
        self.claims
            .work(&self.stop, chunk, |blocks| match &self.order {
                None => self.run(blocks.start, blocks.end - blocks.start, arena, None),
                Some(order) => {
                    for place in blocks {
                        self.run(order.at(place), 1, arena, None);
                    }
                }
            })
    }

    /// Runs all blocks on this thread, which nobody else claims any of.
    fn work_alone(&self, arena: &mut Arena) {
        let total = self.claims.total();
        if self.together || self.order.is_some() {
            self.work(total, arena);
            return;
        }
        match arena.at_least(self.arena_bytes()) {
            Ok(arena) => self.run(0, total, arena, None),
            // Without memory for a block nobody can run it.
            Err(error) => self.give_up(error),
        }
    }

    /// Ends the launch, because of this.
    fn give_up(&self, error: DeviceError) {
        self.error.lock().get_or_insert_with(|| Box::new(error));
        self.stop.ask(StopReason::Failed);
    }

    /// Runs blocks, each on a thread of its own.
    fn run_together(&self, blocks: Range<u64>) {
        let total = blocks.end - blocks.start;
        let meeting = Meeting::new(total);
        let work = |block| {
            match Arena::default().at_least(self.arena_bytes()) {
                Ok(arena) => self.run(block, 1, arena, Some(&meeting)),
                Err(error) => self.give_up(error),
            }
            meeting.end(&self.stop);
        };
        std::thread::scope(|scope| {
            for place in blocks {
                let block = self.order.as_ref().map_or(place, |order| order.at(place));
                let thread = std::thread::Builder::new().stack_size(stack::WORKER);
                let thread = thread.name("kiln block".to_owned());
                if let Err(error) = thread.spawn_scoped(scope, move || work(block)) {
                    self.give_up(DeviceError::Workers(error.to_string()));
                    break;
                }
            }
        });
        if let Some(waiting) = meeting.deserted() {
            let deserted = DesertedGrid {
                kernel: self.code.name().to_owned(),
                waiting,
                blocks: total,
            };
            self.give_up(deserted.into());
        }
    }

    pub(super) fn run(&self, first: u64, count: u64, arena: *mut u8, meeting: Option<&Meeting>) {
        let launch = HostLaunch {
            params: self.params.start(),
            grid: self.grid,
            dynamic_shared: self.dynamic_shared,
            fault: note_fault,
            sink: ptr::from_ref(self).cast(),
            rows: self.code.rows().as_ptr(),
            meaning: meaning::pure,
            warp_meaning: meaning::warp,
            stop: self.stop.as_ptr(),
        };
        let memory = arena.wrapping_add(self.code.arena_bytes()[0]);
        // SAFETY: the code was made for this signature and stays loaded while `self` holds it; the
        // arena has the bytes that the code asks for, and nobody else has it. What the code
        // accesses besides is what the arguments point at, as for any launch.
        let call =
            |first, count| unsafe { (self.code.entry())(&launch, first, count, arena, memory) };
        let code = || {
            let (mut at, end) = (first, first.saturating_add(count));
            while at < end && !self.stop.is_asked() {
                let some = self.code.blocks_a_call().min(end - at);
                call(at, some);
                at += some;
            }
        };
        if let Err(panic) = meaning::catch(&self.stop, meeting, code) {
            self.give_up(panic.in_kernel(self.code.name()).into());
        }
    }

    /// Runs all blocks on the calling thread, or on one with more stack.
    pub(super) fn alone(&self) -> Result<()> {
        let run = || {
            run_alone(self, &mut Arena::default());
            self.finish()
        };
        if stack::has_room(self.code.stack_bytes()) {
            return run();
        }
        std::thread::scope(|scope| {
            let thread = std::thread::Builder::new().stack_size(stack::WORKER);
            match thread.spawn_scoped(scope, run).map(|thread| thread.join()) {
                Ok(Ok(result)) => result,
                Ok(Err(_)) => Err(DeviceError::Internal("a thread that runs blocks panicked")),
                Err(error) => Err(DeviceError::Workers(error.to_string())),
            }
        })
    }

    /// How the run went wrong, if it did. A fault comes first: what an ended thread did not do may be why
    /// others never ended.
    pub(super) fn failed(&self) -> Option<Failed> {
        let (fault, error) = (self.fault.lock().take(), self.error.lock().take());
        self.failed_by(fault, error)
    }

    /// [`Run::failed`] of a run that nobody else has.
    pub(super) fn failed_alone(&mut self) -> Option<Failed> {
        let (fault, error) = (self.fault.get_mut().take(), self.error.get_mut().take());
        self.failed_by(fault, error)
    }

    #[inline]
    fn failed_by(
        &self,
        fault: Option<FaultRecord>,
        error: Option<Box<DeviceError>>,
    ) -> Option<Failed> {
        if let Some(record) = fault {
            return Some(Failed::Fault(record));
        }
        if let Some(error) = error {
            return Some(Failed::Error(*error));
        }
        let stopped = LaunchStopped::of(&self.stop, self.code.name(), self.limit)?;
        Some(Failed::Error(stopped.into()))
    }

    /// Reports how it went wrong, save errors that the caller hands back itself.
    fn finish(&self) -> Result<()> {
        match self.failed() {
            Some(Failed::Error(error)) => Err(error),
            Some(fault) => {
                (self.report)(fault);
                Ok(())
            }
            None => Ok(()),
        }
    }
}

/// Called by host code for the first lane that a failed check ends.
///
/// # Safety
/// `sink` is the run that the code belongs to.
unsafe extern "C" fn note_fault(
    sink: *const c_void,
    site: u32,
    index: u64,
    length: u64,
    thread: u32,
    x: u32,
    y: u32,
    z: u32,
) {
    // SAFETY: `Run::run` passed itself, and is waiting for this code to return.
    let run = unsafe { &*sink.cast::<Run>() };
    let [columns, rows, _] = run.block;
    run.fault.lock().get_or_insert(FaultRecord {
        state: 1,
        site,
        kernel_tag: run.kernel_tag,
        index,
        length,
        block: [x, y, z],
        thread: [
            thread % columns,
            thread / columns % rows,
            thread / columns / rows,
        ],
        padding: [0; 2],
    });
}

/// Memory of a block, kept from launch to launch.
#[derive(Default)]
pub(super) struct Arena(Option<Allocation>);

impl Arena {
    fn at_least(&mut self, bytes: usize) -> Result<*mut u8> {
        if self.0.as_ref().is_none_or(|a| a.bytes() < bytes) {
            self.0 = None;
            self.0 = Some(Allocation::new(bytes).ok_or(DeviceError::HostMemory { bytes })?);
        }
        Ok(self.0.as_ref().map_or(ptr::null_mut(), Allocation::start))
    }
}

/// What is kept for launches that run on the thread that asks for them, so that these allocate nothing.
#[derive(Default)]
pub(super) struct Kept {
    pub(super) arena: Arena,
    pub(super) params: Option<Allocation>,
    /// A flag that is not set, and that nobody else has.
    pub(super) stop: Option<Arc<Stop>>,
}

impl Kept {
    /// The flag of the next launch.
    pub(super) fn stop(&mut self) -> Arc<Stop> {
        self.stop.get_or_insert_default().clone()
    }

    /// What a launch leaves that has ended.
    #[inline]
    pub(super) fn of(run: Run, arena: Arena) -> Kept {
        // Of a launch with a limit the thread for limits may have the flag still.
        let is_unused = run.limit.is_none() && !run.stop.is_asked();
        Kept {
            arena,
            params: Some(run.params),
            stop: is_unused.then_some(run.stop),
        }
    }
}

impl Launch for Run {
    fn claims(&self) -> &Claims {
        &self.claims
    }

    fn stop(&self) -> &Arc<Stop> {
        &self.stop
    }
}

/// Runs all blocks on this thread, and notes what one took where that is of use.
pub(super) fn run_alone(run: &Run, arena: &mut Arena) {
    let total = run.claims.total();
    // What one block takes matters to launches of more, which look at the clock, too; to look at it takes as long as an
    // empty block.
    let is_timed = total > 1 || run.code.cost().load(Ordering::Relaxed) == 0;
    let start = is_timed.then(Instant::now);
    run.work_alone(arena);
    if let Some(start) = start {
        note_cost(run, start);
    }
}

/// Notes what a block of a launch took that began then and has ended.
pub(super) fn note_cost(run: &Run, start: Instant) {
    let took = u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
    let each = (took / run.claims.total().max(1)).max(1);
    run.code.cost().store(each, Ordering::Relaxed);
}
