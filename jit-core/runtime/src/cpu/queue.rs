//! Which launch runs next, and on which threads: all that the threads of a CPU device agree on.
//!
//! Launches run one after the other, in order. A thread that launches may run its own by itself, if nothing is ahead;
//! what it cannot is queued, and workers claim blocks of the first in the queue. Whoever has done the last block of a
//! launch takes it out.
//!
//! The locks and atomics are those of `sync`. The tests compile this file a second time with loom's (`model.rs`), and
//! go through the orders in which its threads can take turns.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use kiln_ir::stop::{Stop, StopReason};

use super::sync::{AtomicU64, Condvar, Mutex, MutexGuard, Ordering};

/// How far the blocks of a launch have come.
pub(super) struct Claims {
    total: u64,
    next: AtomicU64,
    done: AtomicU64,
}

impl Claims {
    /// All of so many blocks are left.
    pub(super) fn new(total: u64) -> Claims {
        Claims {
            total,
            next: AtomicU64::new(0),
            done: AtomicU64::new(0),
        }
    }

    /// How many blocks the launch has.
    pub(super) fn total(&self) -> u64 {
        self.total
    }

    /// Whether the last block is done.
    #[cfg(test)]
    pub(super) fn is_done(&self) -> bool {
        self.done.load(Ordering::Acquire) == self.total
    }

    fn unclaimed(&self) -> bool {
        self.next.load(Ordering::Relaxed) < self.total
    }

    /// Claims blocks, `chunk` at a time, and has `run` run them, until there are none or the launch is to end;
    /// whether the last one was among them.
    pub(super) fn work(&self, stop: &Stop, chunk: u64, mut run: impl FnMut(Range<u64>)) -> bool {
        let mut mine = 0;
        while !stop.is_asked() {
            let first = self.next.fetch_add(chunk, Ordering::Relaxed);
            if first >= self.total {
                break;
            }
            let count = chunk.min(self.total - first);
            run(first..first + count);
            mine += count;
        }
        let last = self.count_done(mine);
        last || stop.is_asked() && self.end_unclaimed()
    }

    /// Counts blocks that are done; whether the last one is among them. Who has counted the last sees what all
    /// others have written.
    fn count_done(&self, count: u64) -> bool {
        count > 0 && self.done.fetch_add(count, Ordering::AcqRel) + count == self.total
    }

    /// Claims what is left, to be run by nobody; whether the last block is among it.
    pub(super) fn end_unclaimed(&self) -> bool {
        let first = self.next.swap(self.total, Ordering::Relaxed);
        self.count_done(self.total.saturating_sub(first))
    }
}

/// What the queue asks a launch.
pub(super) trait Launch {
    /// How far it has come.
    fn claims(&self) -> &Claims;
    /// What ends it before its time.
    fn stop(&self) -> &Arc<Stop>;
}

/// Something that is done once what was asked for before is done.
pub(super) type Call = Box<dyn FnOnce() + Send>;

/// An entry of the queue.
enum Task<L> {
    Run {
        launch: Arc<L>,
        has_begun: bool,
    },
    /// Is done when everything before is, at once and under the lock.
    Then(Call),
    /// Is done by a worker when everything before is, however long it takes.
    Call(Call),
}

/// What a worker does next.
enum Next<L> {
    Run(Arc<L>),
    Call(Call),
}

struct State<L, K> {
    queue: VecDeque<Task<L>>,
    /// What a thread that launches runs itself, or a worker runs beside nothing.
    alone: Option<Arc<Stop>>,
    kept: K,
    end: bool,
}

impl<L, K> State<L, K> {
    fn is_idle(&self) -> bool {
        self.queue.is_empty() && self.alone.is_none()
    }

    fn do_next(&mut self) {
        while let Some(Task::Then(_)) = self.queue.front() {
            if let Some(Task::Then(then)) = self.queue.pop_front() {
                then();
            }
        }
    }
}

/// Launches in order. `K` is what is kept for the threads that run theirs themselves.
pub(super) struct Queue<L, K> {
    state: Mutex<State<L, K>>,
    /// There is something to claim, or the queue ends.
    work: Condvar,
    /// The queue has become shorter.
    done: Condvar,
}

impl<L: Launch, K: Default> Queue<L, K> {
    pub(super) fn new() -> Queue<L, K> {
        Queue {
            state: Mutex::new(State {
                queue: VecDeque::new(),
                alone: None,
                kept: K::default(),
                end: false,
            }),
            work: Condvar::new(),
            done: Condvar::new(),
        }
    }

    /// Has the calling thread run something beside nothing, if nothing is ahead, and lends it what is kept, from which
    /// `stop` takes what ends it. [`Queue::end_alone`] ends that.
    pub(super) fn try_alone(&self, stop: impl FnOnce(&mut K) -> Arc<Stop>) -> Option<K> {
        let mut state = self.state.lock();
        state.is_idle().then(|| {
            let mut kept = std::mem::take(&mut state.kept);
            state.alone = Some(stop(&mut kept));
            kept
        })
    }

    /// Waits until nothing is ahead, and has the calling thread run something beside nothing.
    pub(super) fn alone(&self, stop: &Arc<Stop>) {
        self.idle().alone = Some(stop.clone());
    }

    /// What a thread ran beside nothing is done.
    pub(super) fn end_alone(&self, kept: Option<K>) {
        let mut state = self.state.lock();
        if let Some(kept) = kept {
            state.kept = kept;
        }
        state.alone = None;
        self.go_on(state);
    }

    /// Puts a launch at the end.
    pub(super) fn push(&self, launch: Arc<L>) {
        let has_begun = false;
        self.put(Task::Run { launch, has_begun });
    }

    /// Puts something at the end that a worker does, and nothing beside it.
    pub(super) fn call(&self, call: Call) {
        self.put(Task::Call(call));
    }

    fn put(&self, task: Task<L>) {
        self.state.lock().queue.push_back(task);
        self.work.notify_all();
    }

    /// Does something short when everything before is done, without waiting for that.
    pub(super) fn after_all(&self, then: Call) {
        let mut state = self.state.lock();
        match state.is_idle() {
            true => then(),
            false => state.queue.push_back(Task::Then(then)),
        }
    }

    /// Takes out a launch that nobody can run; `false` if somebody runs it all the same. Launches of other threads
    /// stay: these threads find out themselves.
    pub(super) fn take_back(&self, launch: &Arc<L>) -> bool {
        let mut state = self.state.lock();
        let place = state.queue.iter().position(|task| {
            matches!(task, Task::Run { launch: own, has_begun: false } if Arc::ptr_eq(own, launch))
        });
        let Some(place) = place else {
            return false;
        };
        state.queue.remove(place);
        self.go_on(state);
        true
    }

    /// Has a worker do what there is, until the queue ends. `begin` is told of a launch before its first block is
    /// claimed; `run` runs blocks, and says whether the last one was among them.
    pub(super) fn serve(&self, begin: impl Fn(&L), mut run: impl FnMut(&Arc<L>) -> bool) {
        while let Some(next) = self.next(&begin) {
            match next {
                Next::Run(launch) => {
                    if run(&launch) {
                        self.complete();
                    }
                }
                Next::Call(call) => {
                    call();
                    self.end_alone(None);
                }
            }
        }
    }

    /// Waits for a launch with unclaimed blocks, or a call; `None` when the queue ends.
    fn next(&self, begin: impl Fn(&L)) -> Option<Next<L>> {
        let mut state = self.state.lock();
        loop {
            if state.end {
                return None;
            }
            if state.alone.is_none() {
                match state.queue.front_mut() {
                    Some(Task::Run { launch, has_begun }) if launch.claims().unclaimed() => {
                        if !std::mem::replace(has_begun, true) {
                            begin(launch);
                        }
                        return Some(Next::Run(launch.clone()));
                    }
                    Some(Task::Call(_)) => {
                        // Nothing goes on beside it, and nobody can end it.
                        if let Some(Task::Call(call)) = state.queue.pop_front() {
                            state.alone = Some(Arc::default());
                            return Some(Next::Call(call));
                        }
                    }
                    _ => {}
                }
            }
            self.work.wait(&mut state);
        }
    }

    /// The last block of the first launch in the queue is done: none other has begun, and what has begun stays there.
    fn complete(&self) {
        let mut state = self.state.lock();
        state.queue.pop_front();
        self.go_on(state);
    }

    /// Something is done: does what waited for that alone, and wakes who waits.
    fn go_on(&self, mut state: MutexGuard<'_, State<L, K>>) {
        state.do_next();
        if !state.queue.is_empty() {
            self.work.notify_all();
        }
        self.done.notify_all();
    }

    /// Ends all launches that have been made and have not ended.
    pub(super) fn cancel(&self) {
        let state = self.state.lock();
        for task in &state.queue {
            if let Task::Run { launch, .. } = task {
                launch.stop().ask(StopReason::Cancelled);
            }
        }
        if let Some(stop) = &state.alone {
            stop.ask(StopReason::Cancelled);
        }
    }

    /// Waits until everything is done.
    pub(super) fn settle(&self) {
        drop(self.idle());
    }

    fn idle(&self) -> MutexGuard<'_, State<L, K>> {
        let mut state = self.state.lock();
        while !state.is_idle() {
            self.done.wait(&mut state);
        }
        state
    }

    /// Waits until there is something that an entry of the queue leaves.
    pub(super) fn wait_for<R>(&self, left: impl Fn() -> Option<R>) -> R {
        let mut state = self.state.lock();
        loop {
            if let Some(left) = left() {
                return left;
            }
            self.done.wait(&mut state);
        }
    }

    /// Whether everything is done.
    pub(super) fn is_idle(&self) -> bool {
        self.state.lock().is_idle()
    }

    /// Sends the workers home.
    pub(super) fn end(&self) {
        self.state.lock().end = true;
        self.work.notify_all();
    }
}
