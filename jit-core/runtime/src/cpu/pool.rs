//! The threads that run the blocks of launches, in the order that the queue (`queue.rs`) gives.
//!
//! Launches run one after the other, in order, as on a stream. The blocks of the first one are
//! claimed in increasing order, a few at a time, by as many workers as the machine has cores; a
//! block is never given up once it has begun, unless the whole launch is. So a block may wait for one
//! with a lower index (decoupled look-back), not for a higher one; in a cooperative launch each block has a thread of
//! its own, and may wait for any. Where a test asks for another order of
//! blocks, each is run by itself in its place. A launch that is known to be short runs at once on
//! the thread that asks for it, if nothing is ahead of it.

use std::ffi::c_void;
use std::ops::Range;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use kiln_ir::IntrinsicDef;
use kiln_ir::block_order::{BlockOrder, Shuffle};
use kiln_ir::fault::FaultRecord;
use kiln_ir::host_abi::{BlocksFn, HostLaunch};
use kiln_ir::launch::{DesertedGrid, LaunchStopped};
use kiln_ir::stop::{Stop, StopReason};

use super::memory::Allocation;
use super::queue::{Call, Claims, Launch, Queue};
use super::together::Meeting;
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
    claims: Claims,
    order: Option<Shuffle>,
    /// Whether all blocks have to be there at the same time.
    together: bool,
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
    /// Whether all blocks have to be there at the same time.
    pub(super) together: bool,
    /// How long it may run.
    pub(super) limit: Option<Duration>,
}

impl RunSpec<'_> {
    /// How many blocks there are.
    fn total(&self) -> u64 {
        self.grid.iter().map(|&n| u64::from(n)).product()
    }
}

impl Run {
    pub(super) fn new(code: Arc<dyn Blocks>, spec: &RunSpec<'_>, report: Report) -> Result<Run> {
        Run::with(code, spec, report, &mut Kept::default())
    }

    /// A launch that takes the memory of its parameters and its flag from what is kept, if they are there.
    fn with(
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
    fn work(&self, chunk: u64, arena: &mut Arena) -> bool {
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

    /// Ends the launch, because of this.
    fn give_up(&self, error: DeviceError) {
        self.error.lock().get_or_insert(error);
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

    fn run(&self, first: u64, count: u64, arena: *mut u8, meeting: Option<&Meeting>) {
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

/// What is kept for launches that run on the thread that asks for them, so that these allocate nothing.
#[derive(Default)]
struct Kept {
    arena: Arena,
    params: Option<Allocation>,
    /// A flag that is not set, and that nobody else has.
    stop: Option<Arc<Stop>>,
}

impl Kept {
    /// The flag of the next launch.
    fn stop(&mut self) -> Arc<Stop> {
        self.stop.get_or_insert_default().clone()
    }

    /// What a launch leaves that has ended.
    fn of(run: Run, arena: Arena) -> Kept {
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

struct Shared {
    queue: Queue<Run, Kept>,
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
        Pool {
            shared: Arc::new(Shared {
                queue: Queue::new(),
                watch: Watch::default(),
            }),
            threads,
            stack_bytes: stack::WORKER,
            workers: Mutex::default(),
            process: Process::this(),
        }
    }

    /// Puts a launch at the end of the queue, or runs it if it is short and nothing is ahead. Who is told of what goes
    /// wrong is asked for once it is needed.
    pub(super) fn launch<C: Blocks + 'static>(
        &self,
        code: &Arc<C>,
        spec: &RunSpec<'_>,
        report: impl FnOnce() -> Report,
    ) -> Result<()> {
        self.check_process()?;
        if spec.limit.is_some() {
            self.shared.watch.start()?;
        }
        let (cost, total) = (code.cost().load(Ordering::Relaxed), spec.total());
        let is_cheap = cost > 0 && cost.saturating_mul(total) < SHORT;
        let short = total == 1 || (is_cheap && !spec.together);
        let here = short && stack::has_room(code.stack_bytes());
        let kept = here.then(|| self.shared.queue.try_alone(Kept::stop));
        if let Some(kept) = kept.flatten() {
            return self.launch_here(code.clone(), spec, kept, report);
        }
        let run = Arc::new(Run::new(code.clone(), spec, report())?);
        self.shared.queue.push(run.clone());
        match self.start_workers() {
            Err(error) if self.shared.queue.take_back(&run) => Err(error),
            // Where another thread's attempt has started one meanwhile, it is run.
            _ => Ok(()),
        }
    }

    /// Runs a launch beside nothing, with what the queue has lent for that.
    fn launch_here(
        &self,
        code: Arc<dyn Blocks>,
        spec: &RunSpec<'_>,
        mut kept: Kept,
        report: impl FnOnce() -> Report,
    ) -> Result<()> {
        // A closure without values takes no memory.
        let run = match Run::with(code, spec, Box::new(|_| ()), &mut kept) {
            Ok(run) => run,
            Err(error) => {
                self.shared.queue.end_alone(Some(kept));
                return Err(error);
            }
        };
        self.shared.begin(&run);
        run_alone(&run, &mut kept.arena);
        if run.limit.is_some() {
            self.shared.watch.end(&run.stop);
        }
        let failed = run.failed();
        self.shared.queue.end_alone(Some(Kept::of(run, kept.arena)));
        match failed {
            None => Ok(()),
            Some(Failed::Error(error)) => Err(error),
            Some(fault) => {
                report()(fault);
                Ok(())
            }
        }
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
        self.shared.queue.alone(stop);
        if let Some(limit) = limit {
            self.shared.watch.begin(stop, limit);
        }
        let result = work();
        self.shared.watch.end(stop);
        self.shared.queue.end_alone(None);
        Ok(result)
    }

    /// Ends all launches that have been made and have not ended.
    pub(super) fn cancel(&self) {
        self.shared.queue.cancel();
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
        self.shared.queue.settle();
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
        self.shared.queue.after_all(Box::new(then));
    }

    /// Has a worker do something when everything launched so far is done; what is launched later waits for it.
    pub(super) fn call(&self, call: Call) -> Result<()> {
        self.check_process()?;
        // Before it is queued, as nobody else could do it.
        self.start_workers()?;
        self.shared.queue.call(call);
        Ok(())
    }

    /// Whether everything launched so far is done.
    pub(super) fn is_idle(&self) -> bool {
        self.shared.queue.is_idle()
    }

    /// Waits for a mark.
    pub(super) fn wait_for(&self, mark: &Mutex<Option<Instant>>) -> Instant {
        self.shared.queue.wait_for(|| *mark.lock())
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
        self.shared.queue.end();
        for worker in self.workers.lock().drain(..) {
            let _ = worker.join();
        }
    }
}

fn run_alone(run: &Run, arena: &mut Arena) {
    let total = run.claims.total();
    // What one block takes matters to launches of more, which look at the clock, too; to look at it takes as long as an
    // empty block.
    let is_timed = total > 1 || run.code.cost().load(Ordering::Relaxed) == 0;
    let start = is_timed.then(Instant::now);
    run.work(total, arena);
    if let Some(start) = start {
        note_cost(run, start);
    }
}

fn note_cost(run: &Run, start: Instant) {
    let took = u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
    let each = (took / run.claims.total().max(1)).max(1);
    run.code.cost().store(each, Ordering::Relaxed);
}

impl Shared {
    fn work(&self, threads: u64) {
        let mut arena = Arena::default();
        let run = |run: &Arc<Run>| {
            let chunk = (run.claims.total() / (CLAIMS * threads)).max(1);
            let start = Instant::now();
            let is_last = run.work(chunk, &mut arena);
            if is_last {
                note_cost(run, start);
                self.watch.end(&run.stop);
                if let Some(failed) = run.failed() {
                    (run.report)(failed);
                }
            }
            is_last
        };
        self.queue.serve(|run| self.begin(run), run);
    }

    /// A launch begins to run: its time counts from here on.
    fn begin(&self, run: &Run) {
        if let Some(limit) = run.limit {
            self.watch.begin(&run.stop, limit);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU32;

    use super::*;

    /// Code that does nothing, or what the function does.
    struct Nothing(AtomicU64, BlocksFn);

    /// How many blocks each call of it was asked for.
    static CALLS: Mutex<Vec<u64>> = Mutex::new(Vec::new());

    unsafe extern "C" fn nothing(_: *const HostLaunch, _: u64, n: u64, _: *mut u8, _: *mut u8) {
        CALLS.lock().push(n);
    }

    impl Blocks for Nothing {
        fn entry(&self) -> BlocksFn {
            self.1
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

    const SPEC: RunSpec<'_> = RunSpec {
        params: &[],
        grid: [2, 1, 1],
        block: [1, 1, 1],
        dynamic_shared: 0,
        kernel_tag: 0,
        order: BlockOrder::Increasing,
        together: false,
        limit: None,
    };

    fn code() -> Arc<Nothing> {
        Arc::new(Nothing(AtomicU64::new(0), nothing))
    }

    fn run(report: Report) -> Run {
        Run::new(code(), &SPEC, report).expect("memory")
    }

    /// Code without loops does not look itself whether its launch is to end.
    #[test]
    fn a_call_asks_for_no_more_blocks_than_code_says() {
        let launch = run(Box::new(|_| ()));
        launch.run(0, 8, ptr::null_mut(), None);
        let calls = std::mem::take(&mut *CALLS.lock());
        // Other tests run code, too, but two blocks at once at most.
        assert_eq!(calls.iter().filter(|&&n| n == 3).count(), 2);
        launch.stop.ask(StopReason::Cancelled);
        launch.run(0, 8, ptr::null_mut(), None);
        assert!(!CALLS.lock().contains(&3));
    }

    /// Asks for its own end if the first byte that it is passed is 9, and else notes the byte.
    unsafe extern "C" fn noting(l: *const HostLaunch, _: u64, _: u64, _: *mut u8, _: *mut u8) {
        // SAFETY: the launch is there while its code runs, is passed at least a byte, and its flag is an atomic.
        let (first, stop) = unsafe {
            let launch = &*l;
            (*launch.params, AtomicU32::from_ptr(launch.stop.cast_mut()))
        };
        match first {
            9 => stop.store(StopReason::Cancelled as u32, Ordering::Relaxed),
            _ => NOTED.lock().push(first),
        }
    }

    static NOTED: Mutex<Vec<u8>> = Mutex::new(Vec::new());

    #[test]
    fn what_is_kept_of_a_launch_is_nothing_of_the_next() {
        let pool = Pool::new(1);
        let code = Arc::new(Nothing(AtomicU64::new(0), noting));
        let launch = |params: &[u8]| {
            let (grid, limit) = ([1, 1, 1], (params[0] == 7).then_some(Duration::MAX));
            let spec = RunSpec {
                params,
                grid,
                limit,
                ..SPEC
            };
            pool.launch(&code, &spec, || Box::new(|_| ()))
        };
        let lists: [&[u8]; 6] = [&[1], &[2; 300], &[9], &[3, 4], &[7; 9], &[5]];
        let results = lists.map(|params| launch(params).is_ok());
        assert_eq!(results, [true, true, false, true, true, true]);
        assert_eq!(*NOTED.lock(), [1, 2, 3, 7, 5]);
        let kept = pool.shared.queue.try_alone(Kept::stop).expect("it is idle");
        assert!(kept.params.is_some_and(|params| params.bytes() >= 300));
        assert!(kept.stop.is_some_and(|stop| !stop.is_asked()));
        pool.shared.queue.end_alone(None);
    }

    /// The launches of other threads stay when no worker can be started, and who waits goes on.
    #[test]
    fn without_workers_no_launch_of_another_is_lost() {
        let mut pool = Pool::new(1);
        // More than any machine has addresses for.
        pool.stack_bytes = 1 << 60;
        let ignore = || -> Report { Box::new(|_| ()) };
        let other = Arc::new(run(ignore()));
        pool.shared.queue.push(other.clone());
        let mark = pool.mark();
        assert!(matches!(
            pool.launch(&code(), &SPEC, ignore),
            Err(DeviceError::Workers(_))
        ));
        assert!(!pool.is_idle() && mark.lock().is_none());
        // The other thread's own attempt to start one works.
        pool.stack_bytes = stack::WORKER;
        pool.start_workers().expect("a worker");
        pool.settle().expect("this process");
        assert!(other.claims.is_done());
        pool.wait_for(&mark);
    }

    #[test]
    fn who_waits_for_a_launch_that_is_taken_back_goes_on() {
        let mut pool = Pool::new(1);
        pool.stack_bytes = 1 << 60;
        let taken_back = Arc::new(run(Box::new(|_| ())));
        pool.shared.queue.push(taken_back.clone());
        let mark = pool.mark();
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| {
                pool.settle().expect("this process");
                pool.wait_for(&mark);
            });
            assert!(pool.shared.queue.take_back(&taken_back));
            waits.join().expect("no panic");
        });
    }

    /// Blocks that [`counting`] was asked for.
    static BLOCKS: AtomicU64 = AtomicU64::new(0);

    unsafe extern "C" fn counting(_: *const HostLaunch, _: u64, n: u64, _: *mut u8, _: *mut u8) {
        BLOCKS.fetch_add(n, Ordering::Relaxed);
    }

    /// What threads do of all that a pool can, in any order; by `cargo xtask tsan` also for races. Nothing is lost and
    /// nothing done twice, but for what was cancelled, of which somebody is told.
    #[test]
    fn launches_of_many_threads() {
        for cancels in [false, true] {
            let pool = Pool::new(3);
            let (told, called) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
            let count = |counter: &Arc<AtomicU64>| {
                let counter = counter.clone();
                move || _ = counter.fetch_add(1, Ordering::Relaxed)
            };
            BLOCKS.store(0, Ordering::Relaxed);
            std::thread::scope(|scope| {
                for thread in 0..4 {
                    let (pool, told, called) = (&pool, &told, &called);
                    let code = Arc::new(Nothing(AtomicU64::new(0), counting));
                    scope.spawn(move || {
                        for n in 0..100 {
                            match (n + thread) % 5 {
                                0 => pool.settle().expect("this process"),
                                1 => drop(pool.wait_for(&pool.mark())),
                                2 => pool.call(Box::new(count(called))).expect("a worker"),
                                3 => pool
                                    .run_here(&Arc::default(), None, || ())
                                    .expect("this process"),
                                _ if cancels => pool.cancel(),
                                _ => {}
                            }
                            let report = || -> Report {
                                let tell = count(told);
                                Box::new(move |_| tell())
                            };
                            if pool.launch(&code, &SPEC, report).is_err() {
                                told.fetch_add(1, Ordering::Relaxed);
                            }
                        }
                    });
                }
            });
            pool.settle().expect("this process");
            assert!(pool.is_idle());
            let [blocks, told, called] =
                [&BLOCKS, &*told, &*called].map(|count| count.load(Ordering::Relaxed));
            // Two blocks for each of 400 launches, of which a cancelled one has as many as were begun.
            assert!(told <= if cancels { 400 } else { 0 }, "{told}");
            assert!((2 * (400 - told)..=800).contains(&blocks), "{blocks}");
            assert_eq!(called, 80);
        }
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
        pool.shared.queue.push(Arc::new(run(report)));
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
