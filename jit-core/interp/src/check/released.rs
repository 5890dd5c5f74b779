//! What fences and atomics order: an acquire that sees a release comes after all that was before it (the
//! guide's chapter on memory; PTX ISA, "Release and Acquire Patterns").

use std::collections::HashMap;

use kiln_ir::Ordering;
use kiln_ir::named_barrier::BARRIERS;

/// In place of a thread's number: all threads of the block.
const ALL: u32 = u32::MAX;

/// Entries of a clock, at most: what would have more is taken to come after everything so far, so that
/// large launches cost little and no kernel is accused wrongly.
const MAX_ENTRIES: usize = 1024;

/// What comes before something: of each block, or of a thread of it, all up to a time.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub(super) struct Clock {
    /// Everything up to this time.
    all: u64,
    threads: HashMap<(u32, u32), u64>,
}

impl Clock {
    /// Adds what a thread did up to a time.
    pub(super) fn add_thread(&mut self, block: u32, thread: u32, time: u64) {
        let known = self.threads.entry((block, thread)).or_default();
        *known = time.max(*known);
    }

    /// Adds what all threads of a block did up to a time.
    pub(super) fn add_block(&mut self, block: u32, time: u64) {
        self.add_thread(block, ALL, time);
    }

    /// Whether what a thread did at a time comes before.
    fn covers(&self, block: u32, thread: u32, time: u64) -> bool {
        let of = |thread| self.threads.get(&(block, thread)).copied().unwrap_or(0);
        time <= self.all || time <= of(thread) || time <= of(ALL)
    }

    fn join(&mut self, other: &Clock, now: u64) {
        self.all = self.all.max(other.all);
        for (&(block, thread), &time) in &other.threads {
            self.add_thread(block, thread, time);
        }
        if self.threads.len() > MAX_ENTRIES {
            self.all = now;
            self.threads.clear();
        }
    }

    fn is_empty(&self) -> bool {
        self.all == 0 && self.threads.is_empty()
    }
}

/// What a thread of the block that runs has learnt, and what it tells.
#[derive(Clone, Default)]
struct Thread {
    /// What comes before all it does from now on.
    acquired: Clock,
    /// What the relaxed loads of the thread have seen, for a fence to acquire.
    seen: Clock,
    /// What the thread's latest releasing fence released, for its relaxed stores to tell.
    fenced: Clock,
}

/// An atomic access, to its first byte.
#[derive(Copy, Clone)]
pub(crate) struct AtomicAccess {
    pub(crate) address: u64,
    pub(crate) ordering: Ordering,
    pub(crate) reads: bool,
    pub(crate) writes: bool,
}

/// The least of the addresses that stand for named barriers, which no memory has.
const FIRST_NAMED: u64 = u64::MAX - BARRIERS as u64;

/// What stands for coming to a named barrier: who comes releases there, and who has waited acquires.
pub(crate) fn at_named_barrier(number: u32, ordering: Ordering) -> AtomicAccess {
    AtomicAccess {
        address: FIRST_NAMED + u64::from(number),
        ordering,
        reads: true,
        writes: ordering.releases(),
    }
}

/// Releases and acquires of a launch. Scopes are not looked at.
#[derive(Default)]
pub(super) struct Released {
    threads: Vec<Thread>,
    /// What all threads of the block have behind them since a barrier.
    common: Clock,
    /// By address: what an acquire of the value there comes after.
    places: HashMap<u64, Clock>,
}

impl Released {
    /// For blocks of so many threads.
    pub(super) fn new(threads: usize) -> Self {
        Released {
            threads: vec![Thread::default(); threads],
            ..Released::default()
        }
    }

    /// The next block starts, with shared memory of its own.
    pub(super) fn start_block(&mut self, shared: (u64, u64)) {
        self.threads.fill(Thread::default());
        self.common = Clock::default();
        let shared = shared.0..shared.0 + shared.1;
        let of_block = |address: &u64| shared.contains(address) || *address >= FIRST_NAMED;
        self.places.retain(|address, _| !of_block(address));
    }

    /// What all threads know, all know.
    pub(super) fn barrier(&mut self, now: u64) {
        for thread in &mut self.threads {
            if !thread.acquired.is_empty() {
                self.common.join(&thread.acquired, now);
                thread.acquired = Clock::default();
            }
        }
    }

    /// What some threads know, each of them knows.
    pub(super) fn synchronize(&mut self, threads: impl Iterator<Item = usize> + Clone, now: u64) {
        let mut all = Clock::default();
        for n in threads.clone() {
            all.join(&self.threads[n].acquired, now);
        }
        for n in threads {
            self.threads[n].acquired = all.clone();
        }
    }

    /// What comes before a thread's next access, besides what its block does.
    pub(super) fn clock(&self, thread: u32, now: u64) -> Clock {
        let mut clock = self.common.clone();
        clock.join(&self.threads[thread as usize].acquired, now);
        clock
    }

    /// Whether what another thread did comes before what `thread` does next.
    pub(super) fn covers(&self, thread: u32, other: (u32, u32), time: u64) -> bool {
        let mine = self.threads.get(thread as usize);
        [Some(&self.common), mine.map(|t| &t.acquired)]
            .into_iter()
            .flatten()
            .any(|clock| clock.covers(other.0, other.1, time))
    }

    /// A thread writes plainly, over what was released there.
    pub(super) fn overwrite(&mut self, address: u64) {
        if !self.places.is_empty() {
            self.places.remove(&address);
        }
    }

    /// A fence of a thread; `own` is all that comes before it.
    pub(super) fn fence(&mut self, thread: u32, ordering: Ordering, own: &Clock, now: u64) {
        let thread = &mut self.threads[thread as usize];
        if ordering.acquires() {
            let seen = std::mem::take(&mut thread.seen);
            thread.acquired.join(&seen, now);
        }
        if ordering.releases() {
            thread.fenced = own.clone();
            // A fence that acquires, too, passes on what it acquires.
            thread.fenced.join(&thread.acquired, now);
        }
    }

    /// An atomic access of a thread; `own` is all that comes before it.
    pub(super) fn atomic(&mut self, thread: u32, access: AtomicAccess, own: &Clock, now: u64) {
        let thread = &mut self.threads[thread as usize];
        let before = self.places.get(&access.address);
        let mut told = match access.ordering.releases() {
            true => own.clone(),
            false => thread.fenced.clone(),
        };
        if access.reads
            && let Some(before) = before
        {
            let learns = match access.ordering.acquires() {
                true => &mut thread.acquired,
                false => &mut thread.seen,
            };
            learns.join(before, now);
            // A read-modify-write hands on what the value it changes was released with.
            told.join(before, now);
        }
        if access.writes {
            self.places.insert(access.address, told);
        }
    }
}
