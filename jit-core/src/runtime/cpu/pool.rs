//! The queue of launches and the threads that run their blocks.
//!
//! Launches run one after the other, in order, as on a stream. The blocks of the first one are
//! claimed in increasing order, a few at a time, by as many workers as the machine has cores; a
//! block is never given up once it has begun. So a block may wait for one with a lower index
//! (decoupled look-back), not for a higher one. A launch that is known to be short runs at once on
//! the thread that asks for it, if nothing is ahead of it.

use std::collections::VecDeque;
use std::ffi::c_void;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Instant;

use parking_lot::{Condvar, Mutex, MutexGuard};

use super::memory::Allocation;
use super::stack;
use crate::error::{Error, Result};
use crate::fault::FaultRecord;
use crate::host_abi::{BlocksFn, HostLaunch};

/// Below this many nanoseconds a launch is not worth waking a worker for.
const SHORT: u64 = 20_000;

/// Each worker claims about this many times.
const CLAIMS: u64 = 8;

/// What a launch runs: kept alive until its last block is done.
pub(super) trait Blocks: Send + Sync {
    /// The function that runs blocks.
    fn entry(&self) -> BlocksFn;
    /// Bytes of what is kept between segments, and of a block's memory without dynamic shared
    /// memory.
    fn arena_bytes(&self) -> [usize; 2];
    /// Bytes of stack that the function takes.
    fn stack_bytes(&self) -> usize;
    /// What the latest launch took for a block, in nanoseconds; 0 if there was none.
    fn cost(&self) -> &AtomicU64;
}

/// A launch: code, arguments, and how far it has come.
pub(super) struct Run {
    code: Arc<dyn Blocks>,
    params: Allocation,
    grid: [u32; 3],
    block: [u32; 3],
    dynamic_shared: u32,
    kernel_tag: u64,
    total: u64,
    next: AtomicU64,
    done: AtomicU64,
    fault: Mutex<Option<FaultRecord>>,
    report: Box<dyn Fn(FaultRecord) + Send + Sync>,
}

// SAFETY: the parameters are only read once the run is made.
unsafe impl Sync for Run {}

/// What a launch is made of.
pub(super) struct RunSpec<'a> {
    pub(super) params: &'a [std::mem::MaybeUninit<u8>],
    pub(super) grid: [u32; 3],
    pub(super) block: [u32; 3],
    pub(super) dynamic_shared: u32,
    pub(super) kernel_tag: u64,
}

impl Run {
    pub(super) fn new(
        code: Arc<dyn Blocks>,
        spec: &RunSpec<'_>,
        report: Box<dyn Fn(FaultRecord) + Send + Sync>,
    ) -> Result<Run> {
        let bytes = spec.params.len();
        let params = Allocation::new(bytes).ok_or(Error::HostMemory { bytes })?;
        // SAFETY: the allocation is as long as the parameters; padding is copied as it is.
        unsafe {
            params
                .start()
                .cast::<std::mem::MaybeUninit<u8>>()
                .copy_from_nonoverlapping(spec.params.as_ptr(), bytes);
        }
        Ok(Run {
            code,
            params,
            grid: spec.grid,
            block: spec.block,
            dynamic_shared: spec.dynamic_shared,
            kernel_tag: spec.kernel_tag,
            total: spec.grid.iter().map(|&n| u64::from(n)).product(),
            next: AtomicU64::new(0),
            done: AtomicU64::new(0),
            fault: Mutex::new(None),
            report,
        })
    }

    fn arena_bytes(&self) -> usize {
        let [kept, memory] = self.code.arena_bytes();
        kept + memory + self.dynamic_shared as usize
    }

    fn unclaimed(&self) -> bool {
        self.next.load(Ordering::Relaxed) < self.total
    }

    /// Claims and runs blocks until there are none; whether the last one was among them.
    fn work(&self, chunk: u64, arena: &mut Arena) -> Result<bool> {
        let arena = arena.at_least(self.arena_bytes())?;
        let mut mine = 0;
        loop {
            let first = self.next.fetch_add(chunk, Ordering::Relaxed);
            if first >= self.total {
                break;
            }
            let count = chunk.min(self.total - first);
            self.run(first, count, arena);
            mine += count;
        }
        Ok(mine > 0 && self.done.fetch_add(mine, Ordering::AcqRel) + mine == self.total)
    }

    fn run(&self, first: u64, count: u64, arena: *mut u8) {
        let launch = HostLaunch {
            params: self.params.start(),
            grid: self.grid,
            dynamic_shared: self.dynamic_shared,
            fault: note_fault,
            sink: ptr::from_ref(self).cast(),
            meaning: super::meaning::pure,
            warp_meaning: super::meaning::warp,
        };
        let memory = arena.wrapping_add(self.code.arena_bytes()[0]);
        // SAFETY: the code was made for this signature and stays loaded while `self` holds it; the
        // arena has the bytes that the code asks for, and nobody else has it. What the code
        // accesses besides is what the arguments point at, as for any launch.
        unsafe { (self.code.entry())(&launch, first, count, arena, memory) };
    }

    /// Runs all blocks on the calling thread, or on one with more stack.
    pub(super) fn alone(&self) -> Result<()> {
        let run = || run_alone(self, &mut Arena::default());
        if stack::has_room(self.code.stack_bytes()) {
            return run();
        }
        std::thread::scope(|scope| {
            let thread = std::thread::Builder::new().stack_size(stack::WORKER);
            match thread.spawn_scoped(scope, run).map(|thread| thread.join()) {
                Ok(Ok(result)) => result,
                Ok(Err(_)) => Err(Error::Internal("a thread that runs blocks panicked")),
                Err(error) => Err(Error::Workers(error.to_string())),
            }
        })
    }

    fn finish(&self) {
        if let Some(record) = self.fault.lock().take() {
            (self.report)(record);
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
struct Arena(Option<Allocation>);

impl Arena {
    fn at_least(&mut self, bytes: usize) -> Result<*mut u8> {
        if self.0.as_ref().is_none_or(|a| a.bytes() < bytes) {
            self.0 = None;
            self.0 = Some(Allocation::new(bytes).ok_or(Error::HostMemory { bytes })?);
        }
        Ok(self.0.as_ref().map_or(ptr::null_mut(), Allocation::start))
    }
}

/// An entry of the queue.
enum Task {
    Run(Arc<Run>),
    /// Notes the time when everything before is done.
    Mark(Arc<Mutex<Option<Instant>>>),
}

struct State {
    queue: VecDeque<Task>,
    /// Whether a thread that launches runs something itself.
    inline: bool,
    arena: Arena,
    failed: Option<Error>,
}

struct Shared {
    state: Mutex<State>,
    /// There is something to claim.
    work: Condvar,
    /// The queue has become shorter.
    done: Condvar,
    stop: AtomicBool,
}

/// The queue with its workers, which are started by the first launch that needs them.
pub(super) struct Pool {
    shared: Arc<Shared>,
    threads: u32,
    workers: Mutex<Vec<JoinHandle<()>>>,
}

impl Pool {
    pub(super) fn new(threads: u32) -> Pool {
        let state = State {
            queue: VecDeque::new(),
            inline: false,
            arena: Arena::default(),
            failed: None,
        };
        Pool {
            shared: Arc::new(Shared {
                state: Mutex::new(state),
                work: Condvar::new(),
                done: Condvar::new(),
                stop: AtomicBool::new(false),
            }),
            threads,
            workers: Mutex::default(),
        }
    }

    /// Puts a launch at the end of the queue, or runs it if it is short and nothing is ahead.
    pub(super) fn launch(&self, run: Run) -> Result<()> {
        let cost = run.code.cost().load(Ordering::Relaxed);
        let short = run.total == 1 || (cost > 0 && cost.saturating_mul(run.total) < SHORT);
        let mut state = self.shared.state.lock();
        let here = short && stack::has_room(run.code.stack_bytes());
        if here && state.queue.is_empty() && !state.inline {
            state.inline = true;
            let mut arena = std::mem::take(&mut state.arena);
            drop(state);
            let result = run_alone(&run, &mut arena);
            let mut state = self.shared.state.lock();
            state.arena = arena;
            state.inline = false;
            // Whoever queued something meanwhile waits for this.
            if !state.queue.is_empty() {
                self.shared.work.notify_all();
            }
            self.shared.done.notify_all();
            return result;
        }
        state.queue.push_back(Task::Run(Arc::new(run)));
        drop(state);
        self.shared.work.notify_all();
        self.start_workers()
    }

    fn start_workers(&self) -> Result<()> {
        let mut workers = self.workers.lock();
        while workers.len() < self.threads.max(1) as usize {
            let shared = self.shared.clone();
            let threads = u64::from(self.threads.max(1));
            let worker = std::thread::Builder::new()
                .name("kiln worker".to_owned())
                .stack_size(stack::WORKER)
                .spawn(move || shared.work(threads));
            match worker {
                Ok(worker) => workers.push(worker),
                // One worker is enough to go on.
                Err(_) if !workers.is_empty() => break,
                Err(error) => {
                    self.shared.state.lock().queue.clear();
                    return Err(Error::Workers(error.to_string()));
                }
            }
        }
        Ok(())
    }

    /// Waits until everything is done, and leaves errors to others.
    pub(super) fn settle(&self) {
        let mut state = self.shared.state.lock();
        while !state.queue.is_empty() || state.inline {
            self.shared.done.wait(&mut state);
        }
    }

    /// Waits until everything is done. What went wrong besides faults is the error, once.
    pub(super) fn wait(&self) -> Result<()> {
        let mut state = self.shared.state.lock();
        while !state.queue.is_empty() || state.inline {
            self.shared.done.wait(&mut state);
        }
        match state.failed.take() {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }

    /// Notes the time when everything launched so far is done.
    pub(super) fn mark(&self) -> Arc<Mutex<Option<Instant>>> {
        let mark = Arc::new(Mutex::new(None));
        let mut state = self.shared.state.lock();
        if state.queue.is_empty() {
            *mark.lock() = Some(Instant::now());
        } else {
            state.queue.push_back(Task::Mark(mark.clone()));
        }
        mark
    }

    /// Waits for a mark.
    pub(super) fn wait_for(&self, mark: &Mutex<Option<Instant>>) -> Instant {
        let mut state = self.shared.state.lock();
        loop {
            if let Some(at) = *mark.lock() {
                return at;
            }
            self.shared.done.wait(&mut state);
        }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        // A pool that is gone cannot report what its last launches did.
        let _ = self.wait();
        self.shared.stop.store(true, Ordering::Release);
        drop(self.shared.state.lock());
        self.shared.work.notify_all();
        for worker in self.workers.lock().drain(..) {
            let _ = worker.join();
        }
    }
}

fn run_alone(run: &Run, arena: &mut Arena) -> Result<()> {
    let start = Instant::now();
    let result = run.work(run.total, arena).map(|_| ());
    note_cost(run, start);
    run.finish();
    result
}

fn note_cost(run: &Run, start: Instant) {
    let took = u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
    let each = (took / run.total.max(1)).max(1);
    run.code.cost().store(each, Ordering::Relaxed);
}

impl Shared {
    fn work(&self, threads: u64) {
        let mut arena = Arena::default();
        while let Some(run) = self.next_run() {
            let chunk = (run.total / (CLAIMS * threads)).max(1);
            let start = Instant::now();
            let result = run.work(chunk, &mut arena);
            match result {
                Ok(false) => {}
                Ok(true) => {
                    note_cost(&run, start);
                    self.complete(&run, None);
                }
                Err(error) => {
                    // Without memory for a block nobody can run it: claim what is left.
                    let first = run.next.swap(run.total, Ordering::Relaxed);
                    let left = run.total.saturating_sub(first);
                    let before = run.done.fetch_add(left, Ordering::AcqRel);
                    if before + left == run.total {
                        self.complete(&run, Some(error));
                    } else {
                        self.state.lock().failed.get_or_insert(error);
                    }
                }
            }
        }
    }

    /// Waits for a launch with unclaimed blocks; `None` when the pool ends.
    fn next_run(&self) -> Option<Arc<Run>> {
        let mut state = self.state.lock();
        loop {
            if self.stop.load(Ordering::Acquire) {
                return None;
            }
            if let (false, Some(Task::Run(run))) = (state.inline, state.queue.front())
                && run.unclaimed()
            {
                return Some(run.clone());
            }
            self.work.wait(&mut state);
        }
    }

    fn complete(&self, run: &Arc<Run>, error: Option<Error>) {
        run.finish();
        let mut state = self.state.lock();
        if let Some(error) = error {
            state.failed.get_or_insert(error);
        }
        if let Some(Task::Run(front)) = state.queue.front()
            && Arc::ptr_eq(front, run)
        {
            state.queue.pop_front();
        }
        Self::pass_marks(&mut state);
        if !state.queue.is_empty() {
            self.work.notify_all();
        }
        self.done.notify_all();
    }

    fn pass_marks(state: &mut MutexGuard<'_, State>) {
        while let Some(Task::Mark(mark)) = state.queue.front() {
            *mark.lock() = Some(Instant::now());
            state.queue.pop_front();
        }
    }
}
