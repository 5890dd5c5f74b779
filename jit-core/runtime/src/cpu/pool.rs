//! The queue of launches and the threads that run their blocks.
//!
//! Launches run one after the other, in order, as on a stream. The blocks of the first one are
//! claimed in increasing order, a few at a time, by as many workers as the machine has cores; a
//! block is never given up once it has begun, unless the whole launch is. So a block may wait for one
//! with a lower index (decoupled look-back), not for a higher one. Where a test asks for another order of
//! blocks, each is run by itself in its place. A launch that is known to be short runs at once on
//! the thread that asks for it, if nothing is ahead of it.

use std::collections::VecDeque;
use std::ffi::c_void;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex, MutexGuard};

use kiln_ir::IntrinsicDef;
use kiln_ir::block_order::{BlockOrder, Shuffle};
use kiln_ir::fault::FaultRecord;
use kiln_ir::host_abi::{BlocksFn, HostLaunch};
use kiln_ir::launch::LaunchStopped;
use kiln_ir::stop::{Stop, StopReason};

use super::memory::Allocation;
use super::watch::Watch;
use super::{meaning, stack};
use crate::error::{DeviceError, Result};
use crate::forked::Process;

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
    code: Arc<dyn Blocks>,
    params: Allocation,
    grid: [u32; 3],
    block: [u32; 3],
    dynamic_shared: u32,
    kernel_tag: u64,
    total: u64,
    order: Option<Shuffle>,
    next: AtomicU64,
    done: AtomicU64,
    has_begun: AtomicBool,
    /// What ends it before its time, and after how long that is set.
    stop: Arc<Stop>,
    limit: Option<Duration>,
    fault: Mutex<Option<FaultRecord>>,
    /// What went wrong besides.
    error: Mutex<Option<DeviceError>>,
    report: Report,
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
    /// How long it may run.
    pub(super) limit: Option<Duration>,
}

impl Run {
    pub(super) fn new(code: Arc<dyn Blocks>, spec: &RunSpec<'_>, report: Report) -> Result<Run> {
        let bytes = spec.params.len();
        let total = spec.grid.iter().map(|&n| u64::from(n)).product();
        let params = Allocation::new(bytes).ok_or(DeviceError::HostMemory { bytes })?;
        // SAFETY: the allocation is as long as the parameters.
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
            total,
            order: spec.order.of(total),
            next: AtomicU64::new(0),
            done: AtomicU64::new(0),
            has_begun: AtomicBool::new(false),
            stop: Arc::default(),
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

    fn unclaimed(&self) -> bool {
        self.next.load(Ordering::Relaxed) < self.total
    }

    /// Claims and runs blocks until there are none; whether the last one was among them.
    fn work(&self, chunk: u64, arena: &mut Arena) -> bool {
        let arena = match arena.at_least(self.arena_bytes()) {
            Ok(arena) => arena,
            Err(error) => {
                // Without memory for a block nobody can run it.
                self.give_up(error);
                return self.end_unclaimed();
            }
        };
        let mut mine = 0;
        while !self.stop.is_asked() {
            let first = self.next.fetch_add(chunk, Ordering::Relaxed);
            if first >= self.total {
                break;
            }
            let count = chunk.min(self.total - first);
            match &self.order {
                None => self.run(first, count, arena),
                Some(order) => {
                    let places = first..first + count;
                    places.for_each(|place| self.run(order.at(place), 1, arena));
                }
            }
            mine += count;
        }
        let last = self.count_done(mine);
        last || self.stop.is_asked() && self.end_unclaimed()
    }

    /// Counts blocks that are done; whether the last one is among them.
    fn count_done(&self, count: u64) -> bool {
        count > 0 && self.done.fetch_add(count, Ordering::AcqRel) + count == self.total
    }

    /// Claims what is left, to be run by nobody; whether the last block is among it.
    fn end_unclaimed(&self) -> bool {
        let first = self.next.swap(self.total, Ordering::Relaxed);
        self.count_done(self.total.saturating_sub(first))
    }

    /// Ends the launch, because of this.
    fn give_up(&self, error: DeviceError) {
        self.error.lock().get_or_insert(error);
        self.stop.ask(StopReason::Failed);
    }

    fn run(&self, first: u64, count: u64, arena: *mut u8) {
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
        if let Err(panic) = meaning::catch(&self.stop, code) {
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
    fn failed(&self) -> Option<Failed> {
        if let Some(record) = self.fault.lock().take() {
            return Some(Failed::Fault(record));
        }
        if let Some(error) = self.error.lock().take() {
            return Some(Failed::Error(error));
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
struct Arena(Option<Allocation>);

impl Arena {
    fn at_least(&mut self, bytes: usize) -> Result<*mut u8> {
        if self.0.as_ref().is_none_or(|a| a.bytes() < bytes) {
            self.0 = None;
            self.0 = Some(Allocation::new(bytes).ok_or(DeviceError::HostMemory { bytes })?);
        }
        Ok(self.0.as_ref().map_or(ptr::null_mut(), Allocation::start))
    }
}

/// An entry of the queue.
enum Task {
    Run(Arc<Run>),
    /// Is done when everything before is, at once and under the lock.
    Then(Box<dyn FnOnce() + Send>),
    /// Is done by a worker when everything before is, however long it takes.
    Call(Box<dyn FnOnce() + Send>),
}

/// What a worker does next.
enum Next {
    Run(Arc<Run>),
    Call(Box<dyn FnOnce() + Send>),
}

struct State {
    queue: VecDeque<Task>,
    /// What a thread that launches runs itself.
    inline: Option<Arc<Stop>>,
    arena: Arena,
}

impl State {
    fn is_idle(&self) -> bool {
        self.queue.is_empty() && self.inline.is_none()
    }
}

struct Shared {
    state: Mutex<State>,
    /// There is something to claim.
    work: Condvar,
    /// The queue has become shorter.
    done: Condvar,
    end: AtomicBool,
    watch: Watch,
}

/// The queue with its workers, which are started by the first launch that needs them.
pub(super) struct Pool {
    shared: Arc<Shared>,
    threads: u32,
    /// Stack of a worker.
    stack_bytes: usize,
    workers: Mutex<Vec<JoinHandle<()>>>,
    process: Process,
}

impl Pool {
    pub(super) fn new(threads: u32) -> Pool {
        let state = State {
            queue: VecDeque::new(),
            inline: None,
            arena: Arena::default(),
        };
        Pool {
            shared: Arc::new(Shared {
                state: Mutex::new(state),
                work: Condvar::new(),
                done: Condvar::new(),
                end: AtomicBool::new(false),
                watch: Watch::default(),
            }),
            threads,
            stack_bytes: stack::WORKER,
            workers: Mutex::default(),
            process: Process::this(),
        }
    }

    /// Puts a launch at the end of the queue, or runs it if it is short and nothing is ahead.
    pub(super) fn launch(&self, run: Run) -> Result<()> {
        self.check_process()?;
        if run.limit.is_some() {
            self.shared.watch.start()?;
        }
        let cost = run.code.cost().load(Ordering::Relaxed);
        let short = run.total == 1 || (cost > 0 && cost.saturating_mul(run.total) < SHORT);
        let here = short && stack::has_room(run.code.stack_bytes());
        let mut state = self.shared.state.lock();
        if here && state.is_idle() {
            state.inline = Some(run.stop.clone());
            let mut arena = std::mem::take(&mut state.arena);
            drop(state);
            self.shared.begin(&run);
            run_alone(&run, &mut arena);
            self.shared.watch.end(&run.stop);
            self.shared.end_inline(Some(arena));
            return run.finish();
        }
        let run = Arc::new(run);
        state.queue.push_back(Task::Run(run.clone()));
        drop(state);
        self.shared.work.notify_all();
        self.start_workers()
            .inspect_err(|_| self.shared.take_back(&run))
    }

    /// Runs `work` on the calling thread once everything before is done, and nothing beside it. `stop`
    /// is what ends it.
    pub(super) fn run_here<R>(
        &self,
        stop: &Arc<Stop>,
        limit: Option<Duration>,
        work: impl FnOnce() -> R,
    ) -> Result<R> {
        self.check_process()?;
        if limit.is_some() {
            self.shared.watch.start()?;
        }
        let mut state = self.shared.state.lock();
        while !state.is_idle() {
            self.shared.done.wait(&mut state);
        }
        state.inline = Some(stop.clone());
        drop(state);
        if let Some(limit) = limit {
            self.shared.watch.begin(stop, limit);
        }
        let result = work();
        self.shared.watch.end(stop);
        self.shared.end_inline(None);
        Ok(result)
    }

    /// Ends all launches that have been made and have not ended.
    pub(super) fn cancel(&self) {
        let state = self.shared.state.lock();
        for task in &state.queue {
            if let Task::Run(run) = task {
                run.stop.ask(StopReason::Cancelled);
            }
        }
        if let Some(stop) = &state.inline {
            stop.ask(StopReason::Cancelled);
        }
    }

    fn start_workers(&self) -> Result<()> {
        let mut workers = self.workers.lock();
        while workers.len() < self.threads.max(1) as usize {
            let shared = self.shared.clone();
            let threads = u64::from(self.threads.max(1));
            let worker = std::thread::Builder::new()
                .name("kiln worker".to_owned())
                .stack_size(self.stack_bytes)
                .spawn(move || shared.work(threads));
            match worker {
                Ok(worker) => workers.push(worker),
                // One worker is enough to go on.
                Err(_) if !workers.is_empty() => break,
                Err(error) => return Err(DeviceError::Workers(error.to_string())),
            }
        }
        Ok(())
    }

    /// Refuses a child of the process, in which the workers are not, and may have left anything locked.
    pub(super) fn check_process(&self) -> Result<()> {
        match self.process.is_parent() {
            false => Ok(()),
            true => Err(DeviceError::ForkedProcess {
                device: "a CPU device".to_owned(),
                parent: self.process.id(),
                child: std::process::id(),
            }),
        }
    }

    /// Waits until everything is done.
    pub(super) fn settle(&self) -> Result<()> {
        self.check_process()?;
        let mut state = self.shared.state.lock();
        while !state.is_idle() {
            self.shared.done.wait(&mut state);
        }
        Ok(())
    }

    /// Notes the time when everything launched so far is done.
    pub(super) fn mark(&self) -> Arc<Mutex<Option<Instant>>> {
        let mark = Arc::new(Mutex::new(None));
        let noted = mark.clone();
        self.after_all(move || *noted.lock() = Some(Instant::now()));
        mark
    }

    /// Does something short when everything launched so far is done, without waiting for that.
    pub(super) fn after_all(&self, then: impl FnOnce() + Send + 'static) {
        let mut state = self.shared.state.lock();
        match state.is_idle() {
            true => then(),
            false => state.queue.push_back(Task::Then(Box::new(then))),
        }
    }

    /// Has a worker do something when everything launched so far is done; what is launched later waits for it.
    pub(super) fn call(&self, call: Box<dyn FnOnce() + Send>) -> Result<()> {
        self.check_process()?;
        // Before it is queued, as nobody else could do it.
        self.start_workers()?;
        let mut state = self.shared.state.lock();
        state.queue.push_back(Task::Call(call));
        drop(state);
        self.shared.work.notify_all();
        Ok(())
    }

    /// Whether everything launched so far is done.
    pub(super) fn is_idle(&self) -> bool {
        self.shared.state.lock().is_idle()
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
        // Nobody can see any more what its launches do: no buffer is left.
        if self.check_process().is_err() {
            return;
        }
        self.cancel();
        let _ = self.settle();
        self.shared.end.store(true, Ordering::Release);
        drop(self.shared.state.lock());
        self.shared.work.notify_all();
        for worker in self.workers.lock().drain(..) {
            let _ = worker.join();
        }
    }
}

fn run_alone(run: &Run, arena: &mut Arena) {
    let start = Instant::now();
    run.work(run.total, arena);
    note_cost(run, start);
}

fn note_cost(run: &Run, start: Instant) {
    let took = u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
    let each = (took / run.total.max(1)).max(1);
    run.code.cost().store(each, Ordering::Relaxed);
}

impl Shared {
    fn work(&self, threads: u64) {
        let mut arena = Arena::default();
        while let Some(next) = self.next() {
            let run = match next {
                Next::Run(run) => run,
                Next::Call(call) => {
                    call();
                    self.end_inline(None);
                    continue;
                }
            };
            let chunk = (run.total / (CLAIMS * threads)).max(1);
            let start = Instant::now();
            if run.work(chunk, &mut arena) {
                note_cost(&run, start);
                self.complete(&run);
            }
        }
    }

    /// A launch begins to run: its time counts from here on.
    fn begin(&self, run: &Run) {
        if let Some(limit) = run.limit {
            self.watch.begin(&run.stop, limit);
        }
    }

    /// What a thread ran itself is done.
    fn end_inline(&self, arena: Option<Arena>) {
        let mut state = self.state.lock();
        if let Some(arena) = arena {
            state.arena = arena;
        }
        state.inline = None;
        Self::do_next(&mut state);
        // Whoever queued something meanwhile waits for this.
        if !state.queue.is_empty() {
            self.work.notify_all();
        }
        self.done.notify_all();
    }

    /// Takes a launch out of the queue that nobody can run. Launches of other threads stay: these
    /// threads find out themselves.
    fn take_back(&self, run: &Arc<Run>) {
        let mut state = self.state.lock();
        state.queue.retain(|task| match task {
            Task::Run(queued) => !Arc::ptr_eq(queued, run),
            Task::Then(_) | Task::Call(_) => true,
        });
        Self::do_next(&mut state);
        self.done.notify_all();
    }

    /// Waits for a launch with unclaimed blocks, or a call; `None` when the pool ends.
    fn next(&self) -> Option<Next> {
        let mut state = self.state.lock();
        loop {
            if self.end.load(Ordering::Acquire) {
                return None;
            }
            if state.inline.is_none() {
                match state.queue.front() {
                    Some(Task::Run(run)) if run.unclaimed() => {
                        if !run.has_begun.swap(true, Ordering::Relaxed) {
                            self.begin(run);
                        }
                        return Some(Next::Run(run.clone()));
                    }
                    Some(Task::Call(_)) => {
                        // Nothing goes on beside it, and nobody can end it.
                        if let Some(Task::Call(call)) = state.queue.pop_front() {
                            state.inline = Some(Arc::default());
                            return Some(Next::Call(call));
                        }
                    }
                    _ => {}
                }
            }
            self.work.wait(&mut state);
        }
    }

    fn complete(&self, run: &Arc<Run>) {
        self.watch.end(&run.stop);
        if let Some(failed) = run.failed() {
            (run.report)(failed);
        }
        let mut state = self.state.lock();
        if let Some(Task::Run(front)) = state.queue.front()
            && Arc::ptr_eq(front, run)
        {
            state.queue.pop_front();
        }
        Self::do_next(&mut state);
        if !state.queue.is_empty() {
            self.work.notify_all();
        }
        self.done.notify_all();
    }

    fn do_next(state: &mut MutexGuard<'_, State>) {
        while let Some(Task::Then(_)) = state.queue.front() {
            if let Some(Task::Then(then)) = state.queue.pop_front() {
                then();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Code that does nothing.
    struct Nothing(AtomicU64);

    /// How many blocks each call of it was asked for.
    static CALLS: Mutex<Vec<u64>> = Mutex::new(Vec::new());

    unsafe extern "C" fn nothing(_: *const HostLaunch, _: u64, n: u64, _: *mut u8, _: *mut u8) {
        CALLS.lock().push(n);
    }

    impl Blocks for Nothing {
        fn entry(&self) -> BlocksFn {
            nothing
        }
        fn arena_bytes(&self) -> [usize; 2] {
            [0, 0]
        }
        fn blocks_a_call(&self) -> u64 {
            3
        }
        fn rows(&self) -> &[&'static IntrinsicDef] {
            &[]
        }

        fn name(&self) -> &str {
            "nothing"
        }
        fn stack_bytes(&self) -> usize {
            0
        }
        fn cost(&self) -> &AtomicU64 {
            &self.0
        }
    }

    fn run(report: Report) -> Run {
        let spec = RunSpec {
            params: &[],
            grid: [2, 1, 1],
            block: [1, 1, 1],
            dynamic_shared: 0,
            kernel_tag: 0,
            order: BlockOrder::Increasing,
            limit: None,
        };
        Run::new(Arc::new(Nothing(AtomicU64::new(0))), &spec, report).expect("memory")
    }

    /// Code without loops does not look itself whether its launch is to end.
    #[test]
    fn a_call_asks_for_no_more_blocks_than_code_says() {
        let launch = run(Box::new(|_| ()));
        launch.run(0, 8, ptr::null_mut());
        let calls = std::mem::take(&mut *CALLS.lock());
        // Other tests run code, too, but two blocks at once at most.
        assert_eq!(calls.iter().filter(|&&n| n == 3).count(), 2);
        launch.stop.ask(StopReason::Cancelled);
        launch.run(0, 8, ptr::null_mut());
        assert!(!CALLS.lock().contains(&3));
    }

    /// The launches of other threads stay when no worker can be started, and who waits goes on.
    #[test]
    fn without_workers_no_launch_of_another_is_lost() {
        let mut pool = Pool::new(1);
        // More than any machine has addresses for.
        pool.stack_bytes = 1 << 60;
        let ignore = || -> Report { Box::new(|_| ()) };
        let other = Arc::new(run(ignore()));
        let queued = Task::Run(other.clone());
        pool.shared.state.lock().queue.push_back(queued);
        let mark = pool.mark();
        assert!(matches!(
            pool.launch(run(ignore())),
            Err(DeviceError::Workers(_))
        ));
        assert_eq!(pool.shared.state.lock().queue.len(), 2);
        assert!(mark.lock().is_none());
        // The other thread's own attempt to start one works.
        pool.stack_bytes = stack::WORKER;
        pool.start_workers().expect("a worker");
        pool.settle().expect("this process");
        assert_eq!(other.done.load(Ordering::Acquire), 2);
        pool.wait_for(&mark);
    }

    #[test]
    fn who_waits_for_a_launch_that_is_taken_back_goes_on() {
        let mut pool = Pool::new(1);
        pool.stack_bytes = 1 << 60;
        let taken_back = Arc::new(run(Box::new(|_| ())));
        let task = Task::Run(taken_back.clone());
        pool.shared.state.lock().queue.push_back(task);
        let mark = pool.mark();
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| {
                pool.settle().expect("this process");
                pool.wait_for(&mark);
            });
            pool.shared.take_back(&taken_back);
            waits.join().expect("no panic");
        });
    }

    #[test]
    fn a_cancelled_launch_says_so() {
        let pool = Pool::new(1);
        let told = Arc::new(Mutex::new(String::new()));
        let hears = told.clone();
        let report: Report = Box::new(move |failed| {
            if let Failed::Error(error) = failed {
                *hears.lock() = error.to_string();
            }
        });
        let queued = Task::Run(Arc::new(run(report)));
        pool.shared.state.lock().queue.push_back(queued);
        pool.cancel();
        pool.start_workers().expect("a worker");
        pool.settle().expect("this process");
        assert!(
            told.lock().contains("kernel `nothing` was cancelled"),
            "{}",
            told.lock()
        );
    }
}
