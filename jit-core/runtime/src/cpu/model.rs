//! The queue of launches under loom, which runs a test again and again, with its threads taking turns in each order
//! that they can: no launch is lost, run twice or beside another, and who waits goes on.
//!
//! The queue is compiled once more, with loom's locks and atomics as its `sync`. What a model would find is planted in
//! these: a lost wake-up, an ordering that is none.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{
    AtomicU32,
    Ordering::{Relaxed, SeqCst},
};

use kiln_ir::stop::Stop;
use loom::sync::atomic::AtomicU32 as Seen;
use loom::thread;

use queue::{Claims, Launch, Queue};

#[allow(clippy::duplicate_mod, reason = "its locks are other ones here")]
#[path = "queue.rs"]
mod queue;

/// What `sync` is in this copy of the queue: loom's, in the form of parking_lot's.
mod sync {
    use super::{Planted, planted};
    pub(super) use std::sync::atomic::Ordering;

    pub(super) struct Mutex<T>(loom::sync::Mutex<T>);

    pub(super) struct MutexGuard<'a, T>(Option<loom::sync::MutexGuard<'a, T>>);

    impl<T> Mutex<T> {
        pub(super) fn new(value: T) -> Mutex<T> {
            Mutex(loom::sync::Mutex::new(value))
        }

        pub(super) fn lock(&self) -> MutexGuard<'_, T> {
            MutexGuard(Some(self.0.lock().expect("no thread panicked")))
        }
    }

    impl<T> std::ops::Deref for MutexGuard<'_, T> {
        type Target = T;
        fn deref(&self) -> &T {
            self.0.as_ref().expect("it waits for nothing")
        }
    }

    impl<T> std::ops::DerefMut for MutexGuard<'_, T> {
        fn deref_mut(&mut self) -> &mut T {
            self.0.as_mut().expect("it waits for nothing")
        }
    }

    pub(super) struct Condvar(loom::sync::Condvar);

    impl Condvar {
        pub(super) fn new() -> Condvar {
            Condvar(loom::sync::Condvar::new())
        }

        pub(super) fn wait<T>(&self, guard: &mut MutexGuard<'_, T>) {
            let own = guard.0.take().map(|own| self.0.wait(own));
            guard.0 = own.map(|own| own.expect("no thread panicked"));
        }

        pub(super) fn notify_all(&self) {
            match planted() {
                Planted::OneIsWoken => self.0.notify_one(),
                _ => self.0.notify_all(),
            }
        }
    }

    pub(super) struct AtomicU64(loom::sync::atomic::AtomicU64);

    impl AtomicU64 {
        pub(super) fn new(value: u64) -> AtomicU64 {
            AtomicU64(loom::sync::atomic::AtomicU64::new(value))
        }

        pub(super) fn load(&self, ordering: Ordering) -> u64 {
            self.0.load(ordering)
        }

        pub(super) fn swap(&self, value: u64, ordering: Ordering) -> u64 {
            self.0.swap(value, ordering)
        }

        pub(super) fn fetch_add(&self, value: u64, ordering: Ordering) -> u64 {
            match planted() {
                Planted::Unordered => self.0.fetch_add(value, Ordering::Relaxed),
                Planted::TwoSteps => {
                    let before = self.0.load(ordering_of_load(ordering));
                    self.0.store(before + value, Ordering::SeqCst);
                    before
                }
                _ => self.0.fetch_add(value, ordering),
            }
        }
    }

    fn ordering_of_load(ordering: Ordering) -> Ordering {
        match ordering {
            Ordering::AcqRel => Ordering::Acquire,
            other => other,
        }
    }
}

/// A mistake that a model has to find.
#[derive(Copy, Clone, PartialEq, Eq)]
enum Planted {
    Nothing,
    /// `notify_all` wakes one thread alone.
    OneIsWoken,
    /// Blocks are counted without an ordering.
    Unordered,
    /// Blocks are claimed by a load and a store.
    TwoSteps,
}

thread_local! {
    static PLANTED: Cell<Planted> = const { Cell::new(Planted::Nothing) };
}

fn planted() -> Planted {
    PLANTED.get()
}

/// A launch whose blocks count how often they were run.
struct Blocks {
    claims: Claims,
    stop: Arc<Stop>,
    /// What each block writes: who does not come after it may see what was there before.
    runs: Vec<Seen>,
    begun: AtomicU32,
    completed: AtomicU32,
    /// What has to be done before the first block, and cannot be under way.
    after: Option<Arc<Blocks>>,
}

impl Launch for Blocks {
    fn claims(&self) -> &Claims {
        &self.claims
    }
    fn stop(&self) -> &Arc<Stop> {
        &self.stop
    }
}

impl Blocks {
    fn new(count: u64, after: Option<&Arc<Blocks>>) -> Arc<Blocks> {
        Arc::new(Blocks {
            claims: Claims::new(count),
            stop: Arc::default(),
            runs: (0..count).map(|_| Seen::new(0)).collect(),
            begun: AtomicU32::new(0),
            completed: AtomicU32::new(0),
            after: after.cloned(),
        })
    }

    fn work(&self) -> bool {
        let chunk = self.claims.total().div_ceil(2);
        let is_last = self.claims.work(&self.stop, chunk, |blocks| {
            if let Some(before) = &self.after {
                before.check(&[1]);
            }
            for block in blocks {
                add_one(&self.runs[block as usize]);
            }
        });
        if is_last {
            self.completed.fetch_add(1, SeqCst);
        }
        is_last
    }

    /// Asserts that the launch is done, and that each block was run one of these numbers of times.
    fn check(&self, times: &[u32]) {
        assert_eq!(self.completed.load(SeqCst), 1);
        for block in &self.runs {
            assert!(times.contains(&block.load(Relaxed)));
        }
    }
}

/// As memory that is no atomic is written, as far as loom knows it.
fn add_one(seen: &Seen) {
    seen.store(seen.load(Relaxed) + 1, Relaxed);
}

type Pool = Arc<Queue<Blocks, ()>>;

/// A pool of so many workers, what a thread does with it, and its end as `Pool` has it.
fn with_pool(workers: u32, does: impl FnOnce(&Pool)) {
    let pool: Pool = Arc::new(Queue::new());
    let workers: Vec<_> = (0..workers).map(|_| worker(&pool)).collect();
    does(&pool);
    pool.settle();
    pool.end();
    workers.into_iter().for_each(|w| w.join().expect("it ends"));
}

fn worker(pool: &Pool) -> thread::JoinHandle<()> {
    let pool = pool.clone();
    thread::spawn(move || {
        let begin = |launch: &Blocks| assert_eq!(launch.begun.fetch_add(1, SeqCst), 0);
        pool.serve(begin, |launch| launch.work());
    })
}

/// Launches as `Pool::launch` does, if `short` on this thread.
fn launch(pool: &Pool, blocks: &Arc<Blocks>, short: bool) {
    if short && pool.try_alone(|()| blocks.stop.clone()).is_some() {
        blocks.work();
        pool.end_alone(Some(()));
        return;
    }
    pool.push(blocks.clone());
}

/// Goes through all orders with at most so many changes of threads that had to go on.
fn explore(model: fn()) {
    let mut builder = loom::model::Builder::new();
    let deep = std::env::var("KILN_MODEL_CHANGES").ok();
    let deep = deep.map(|deep| deep.parse().expect("a number"));
    builder.preemption_bound = Some(deep.unwrap_or(2));
    builder.check(model);
}

/// Whether a model fails with a mistake planted, and how.
fn found(mistake: Planted, model: fn()) -> Option<String> {
    PLANTED.set(mistake);
    let explored = std::panic::catch_unwind(|| explore(model));
    PLANTED.set(Planted::Nothing);
    let panic = explored.err()?;
    let text = panic.downcast_ref::<String>().cloned();
    text.or_else(|| panic.downcast_ref::<&str>().map(|&text| text.to_owned()))
}

/// Two launches and what comes after them: each block is run once, those of the second after all of the first.
fn two_launches() {
    with_pool(2, |pool| {
        let first = Blocks::new(2, None);
        let second = Blocks::new(1, Some(&first));
        launch(pool, &first, false);
        launch(pool, &second, false);
        let noted = Arc::new(AtomicU32::new(0));
        let (notes, at) = (second.clone(), noted.clone());
        pool.after_all(Box::new(move || {
            notes.check(&[1]);
            at.store(1, SeqCst);
        }));
        pool.wait_for(|| (noted.load(SeqCst) == 1).then_some(()));
        first.check(&[1]);
        second.check(&[1]);
    });
}

/// A thread that runs its launch itself, another that queues one, and a call: nothing runs beside another.
fn alone_and_queued() {
    with_pool(1, |pool| {
        // Which of the two is first is open; what both write tells whether they were one after the other.
        let both = Arc::new(Seen::new(0));
        let other = {
            let (pool, both) = (pool.clone(), both.clone());
            thread::spawn(move || {
                pool.call(Box::new(move || add_one(&both)));
            })
        };
        let stop = Arc::default();
        pool.alone(&stop);
        add_one(&both);
        pool.end_alone(None);
        let queued = Blocks::new(1, None);
        launch(pool, &queued, false);
        let short = Blocks::new(1, Some(&queued));
        launch(pool, &short, true);
        other.join().expect("it ends");
        pool.settle();
        short.check(&[1]);
        assert_eq!(both.load(Relaxed), 2);
    });
}

/// A launch that is ended while it runs is done once, and no block of it is run twice.
fn cancelled() {
    with_pool(2, |pool| {
        let ends = Blocks::new(2, None);
        launch(pool, &ends, false);
        pool.cancel();
        let next = Blocks::new(1, None);
        launch(pool, &next, false);
        pool.settle();
        assert!(pool.is_idle() && ends.claims.is_done());
        ends.check(&[0, 1]);
        next.check(&[1]);
    });
}

/// Two threads launch; the attempt of one to start a worker fails, and that of the other may have started one before
/// the launch is taken back: it is run and said to be, or neither.
fn taken_back() {
    with_pool(0, |pool| {
        let (fails, works) = (Blocks::new(1, None), Blocks::new(1, None));
        let other = {
            let (pool, works) = (pool.clone(), works.clone());
            thread::spawn(move || {
                launch(&pool, &works, false);
                worker(&pool)
            })
        };
        launch(pool, &fails, false);
        let is_run = !pool.take_back(&fails);
        let worker = other.join().expect("it ends");
        pool.settle();
        works.check(&[1]);
        assert_eq!(fails.completed.load(SeqCst), u32::from(is_run));
        pool.end();
        worker.join().expect("it ends");
    });
}

#[test]
fn launches_run_once_and_in_order() {
    explore(two_launches);
}

#[test]
fn nothing_runs_beside_what_runs_alone() {
    explore(alone_and_queued);
}

#[test]
fn a_launch_that_is_ended_is_done_once() {
    explore(cancelled);
}

#[test]
fn a_launch_is_taken_back_or_run() {
    explore(taken_back);
}

/// Mistakes in what the queue rests on show in the models; those in the queue itself can be tried by hand.
#[test]
fn planted_mistakes_are_found() {
    let is_stuck = "deadlock";
    for (mistake, model, says) in [
        (Planted::OneIsWoken, two_launches as fn(), is_stuck),
        (Planted::Unordered, two_launches, "times.contains"),
        (Planted::TwoSteps, two_launches, "left: 2"),
        (Planted::TwoSteps, cancelled, "left: 2"),
    ] {
        let how = found(mistake, model).unwrap_or_default();
        assert!(how.contains(says), "{says}: {how:?}");
    }
}
