//! The threads that run the blocks of launches, in the order that the queue (`queue.rs`) gives.
//!
//! Launches run one after the other, in order, as on a stream. The blocks of the first one are
//! claimed in increasing order, a few at a time, by as many workers as the machine has cores; a
//! block is never given up once it has begun, unless the whole launch is. So a block may wait for one
//! with a lower index (decoupled look-back), not for a higher one; in a cooperative launch each block has a thread of
//! its own, and may wait for any. Where a test asks for another order of
//! blocks, each is run by itself in its place. A launch that is known to be short runs at once on
//! the thread that asks for it, if nothing is ahead of it.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use kiln_ir::stop::Stop;

use super::queue::{Call, Queue};
use super::run::{Arena, Blocks, Failed, Kept, Report, Run, RunSpec, note_cost, run_alone};
use super::stack;
use super::watch::Watch;
use crate::error::{DeviceError, Result};
use crate::forked::Process;

/// Below this many nanoseconds a launch is not worth waking a worker for.
const SHORT: u64 = 20_000;

/// Each worker claims about this many times.
const CLAIMS: u64 = 8;

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
        let mut run = match Run::with(code, spec, Box::new(|_| ()), &mut kept) {
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
        let failed = run.failed_alone();
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
    use std::ptr;
    use std::sync::atomic::{AtomicU32, AtomicU64};

    use kiln_ir::IntrinsicDef;
    use kiln_ir::block_order::BlockOrder;
    use kiln_ir::host_abi::{BlocksFn, HostLaunch};
    use kiln_ir::stop::StopReason;

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
