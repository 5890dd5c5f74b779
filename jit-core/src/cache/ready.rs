//! What threads launched before, each by itself: the look-up of most launches.
//!
//! A launch that finds its kernel here writes no memory that another thread writes: it looks among the entries of its
//! thread, and holds on to one by a count of its thread's own. What is kept is bounded: an entry gives way to one of
//! its kernel's later content, and a kernel that finds no place is looked up in the map of all.
//!
//! Threads are spread over [`SHARDS`]; those that share one wait for each other for some instructions.

use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;

use kiln_compiler::args::Arg;
use kiln_compiler::args::packed::{PackedKey, is_straight};
use kiln_compiler::definition::Content;
use kiln_compiler::launch::Dim3;

use super::launched::{Consts, KeptSignatures, Passing};
use super::{LoadedKernel, Specialized};

/// More than there are threads that launch at once, on most machines.
const SHARDS: usize = 64;

/// Entries of a set: what one kernel is launched with in turn.
const WAYS: usize = 4;

/// Sets of a shard.
const MOST_SETS: usize = 4096;

/// A launch to be looked up.
#[derive(Copy, Clone)]
pub(crate) struct ReadyLaunch<'a> {
    pub(crate) content: Content,
    pub(crate) consts: Consts<'a>,
    pub(crate) args: &'a [Arg<'a>],
    /// Whether facts about values are compiled in, which all launches of a `Jit` have in common.
    pub(crate) facts: bool,
    /// `None` where any will do.
    pub(crate) block: Option<Dim3>,
}

/// What a launch found.
pub(crate) struct Hit {
    content: Content,
    consts: Box<[(String, i128)]>,
    args: KeptSignatures,
    /// The shape of blocks that the code is for, if it is for one.
    block: Option<Dim3>,
    /// Whether the parameters lie as typed launches write them.
    is_straight: bool,
    /// What tells the types of the arguments of a typed launch, once one was made.
    key: OnceLock<PackedKey>,
    pub(crate) loaded: Arc<LoadedKernel>,
}

impl Hit {
    /// How the arguments of a launch are passed, if this is for it.
    #[inline(always)]
    fn passing(&self, launch: &ReadyLaunch<'_>) -> Option<Passing> {
        let is_other_block = |own| launch.block.is_some_and(|asked| asked != own);
        if self.content != launch.content
            || self.block.is_some_and(is_other_block)
            || !launch.consts.are(&self.consts)
        {
            return None;
        }
        self.args.passing(launch.args)
    }

    #[inline(always)]
    fn is_for_packed(&self, launch: &PackedLaunch<'_>) -> bool {
        self.key.get() == Some(launch.key)
            && self.content == launch.content
            && self.block.is_none_or(|own| own == *launch.block)
            && launch.consts.are(&self.consts)
    }

    /// Notes the key of a launch that found this by its arguments.
    #[cold]
    pub(crate) fn note_key(&self, key: PackedKey) {
        if self.is_straight {
            // Another is of a host type that becomes these arguments in another way.
            let _ = self.key.set(key);
        }
    }
}

/// A typed launch to be looked up, whose arguments are written already. What is looked at once lies where it is: what is
/// read before would have to be kept meanwhile.
#[derive(Copy, Clone)]
pub(crate) struct PackedLaunch<'a> {
    pub(crate) content: Content,
    pub(crate) consts: Consts<'a>,
    pub(crate) key: &'a PackedKey,
    pub(crate) block: &'a Dim3,
}

type Set = [Option<Arc<Hit>>; WAYS];

#[derive(Default)]
struct Entries {
    /// A power of two of them, or none.
    sets: Vec<Set>,
    hits: u64,
}

/// By itself in memory: processors fetch lines of 64 bytes in pairs.
#[derive(Default)]
#[repr(align(128))]
struct Shard(Mutex<Entries>);

/// What the threads of a process launched before.
pub(crate) struct Ready(Box<[Shard; SHARDS]>);

impl Default for Ready {
    fn default() -> Self {
        Ready(Box::new(std::array::from_fn(|_| Shard::default())))
    }
}

impl Ready {
    /// What this thread found before for a launch, and how its arguments are passed.
    #[inline(always)]
    pub(crate) fn get(&self, launch: &ReadyLaunch<'_>) -> Option<(Arc<Hit>, Passing)> {
        let mut entries = self.of_this_thread().lock();
        let set = entries.sets.get(entries.place(launch.content))?;
        for hit in set.iter().flatten() {
            if let Some(passing) = hit.passing(launch) {
                let hit = hit.clone();
                entries.hits += 1;
                return Some((hit, passing));
            }
        }
        None
    }

    /// What this thread found before for a typed launch.
    #[inline(always)]
    pub(crate) fn get_packed(&self, launch: &PackedLaunch<'_>) -> Option<Arc<Hit>> {
        let mut entries = self.of_this_thread().lock();
        let set = entries.sets.get(entries.place(launch.content))?;
        for hit in set.iter().flatten() {
            if hit.is_for_packed(launch) {
                let hit = hit.clone();
                entries.hits += 1;
                return Some(hit);
            }
        }
        None
    }

    /// Keeps what a launch found, if there is a place for it.
    #[cold]
    pub(crate) fn put(
        &self,
        launch: &ReadyLaunch<'_>,
        kernel: &Specialized,
        loaded: &Arc<LoadedKernel>,
    ) {
        let own = |(name, value): (&str, i128)| (name.to_owned(), value);
        let make = || Hit {
            content: launch.content,
            consts: launch.consts.iter().map(own).collect(),
            args: KeptSignatures::of(launch.args, launch.facts, kernel.info()),
            block: launch.block.filter(|_| kernel.is_by_block()),
            is_straight: is_straight(launch.args, &kernel.info().layout),
            key: OnceLock::new(),
            loaded: loaded.clone(),
        };
        // What gives way is dropped without the lock: it may be the last that holds code.
        let given_way = self.of_this_thread().lock().put(launch.content, make);
        drop(given_way);
    }

    /// Drops what the cache has let go.
    pub(super) fn drop_gone(&self) {
        for shard in &*self.0 {
            let mut entries = shard.0.lock();
            let all = entries.sets.iter_mut().flatten();
            let gone: Vec<_> = all
                .filter_map(|entry| entry.take_if(|hit| hit.loaded.is_gone()))
                .collect();
            drop(entries);
            // What was loaded may be unloaded here.
            drop(gone);
        }
    }

    /// How many launches found what they looked for.
    pub(crate) fn hits(&self) -> u64 {
        self.0.iter().map(|shard| shard.0.lock().hits).sum()
    }

    #[inline]
    fn of_this_thread(&self) -> &Mutex<Entries> {
        thread_local! {
            /// The thread's number, or the largest before it has one.
            static NUMBER: Cell<usize> = const { Cell::new(usize::MAX) };
        }
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let mut number = NUMBER.get();
        if number == usize::MAX {
            number = NEXT.fetch_add(1, Ordering::Relaxed);
            NUMBER.set(number);
        }
        &self.0[number % SHARDS].0
    }
}

impl Entries {
    /// Where a kernel's set is; nowhere if there is none.
    #[inline]
    fn place(&self, content: Content) -> usize {
        content.kernel as usize & self.sets.len().wrapping_sub(1)
    }

    /// Puts an entry where there is a place; what gave way to it.
    fn put(&mut self, content: Content, make: impl FnOnce() -> Hit) -> Option<Arc<Hit>> {
        loop {
            let (place, is_full) = (self.place(content), self.sets.len() == MOST_SETS);
            if let Some(set) = self.sets.get_mut(place) {
                let is_own = |old: &Hit| old.content.kernel == content.kernel;
                let is_old = |old: &Hit| is_own(old) && old.content != content;
                let gives_way = |entry: &&mut Option<Arc<Hit>>| entry.as_deref().is_none_or(is_old);
                if let Some(entry) = set.iter_mut().find(gives_way) {
                    return entry.replace(Arc::new(make()));
                }
                if is_full || set.iter().flatten().all(|old| is_own(old)) {
                    return None;
                }
            }
            self.grow();
        }
    }

    fn grow(&mut self) {
        let count = (2 * self.sets.len()).max(16);
        let sets = std::mem::replace(&mut self.sets, vec![Set::default(); count]);
        for hit in sets.into_iter().flatten().flatten() {
            let place = self.place(hit.content);
            let mut entries = self.sets[place].iter_mut();
            // A set is split in two, so each has room.
            if let Some(entry) = entries.find(|entry| entry.is_none()) {
                *entry = Some(hit);
            }
        }
    }
}
