//! Who accessed memory lately, and whether an access races with that.
//!
//! Memory is watched in granules of four bytes. A granule keeps one history as long as accesses
//! cover all of it, and one for each byte from the first access that does not: neighbouring bytes
//! are exact, and a buffer of words costs a quarter of what one of bytes does.
//!
//! A history keeps few accesses and loses no race. Of plain writes the latest is enough: an earlier
//! one is ordered before it, or would have been reported. Of reads (and of atomic accesses of each
//! kind) since the latest barrier it keeps those that none of the later ones is ordered after; two of them are
//! enough where only barriers order anything, because one is not by the thread that asks. One of an
//! earlier block stands for all of those. Where releases order accesses, one access of each thread of the
//! block is kept, and a few of earlier blocks: races with others of these are lost.

use smallvec::SmallVec;

use super::order::{Order, Who};
use crate::checks::Access;

/// Bytes of a granule.
const GRANULE: u64 = 4;

/// Granules of a page, the unit in which shadow memory is made.
const PAGE: usize = 64;

/// Accesses of earlier blocks that are kept where releases order accesses.
const OF_EARLIER_BLOCKS: usize = 8;

/// An earlier access that a new one races with.
pub(super) struct Clash {
    pub(super) who: Who,
    pub(super) access: Access,
}

/// The accesses of one kind that can still matter.
#[derive(Clone, Default)]
struct Recent {
    /// Since one barrier, the latest that one of these accesses came after.
    latest: SmallVec<[Who; 2]>,
    /// One of a block before that.
    before: Who,
}

impl Recent {
    fn note(&mut self, who: Who, order: &Order) {
        if order.has_releases() {
            return self.note_each_thread(who, order);
        }
        let first = self.latest.first().copied();
        if let Some(first) = first.filter(|first| order.is_of_earlier_block(*first)) {
            self.before = first;
        }
        self.latest.retain(|w| order.is_unordered(*w, who.thread));
        if self.latest.len() < 2 || !order.needs_two_threads() {
            self.latest.push(who);
        }
    }

    /// In the order of time as far as blocks go; the latest of each thread of the block that runs.
    fn note_each_thread(&mut self, who: Who, order: &Order) {
        let mut mine = self.latest.iter_mut().rev();
        let mut mine = mine
            .by_ref()
            .take_while(|w| !order.is_of_earlier_block(**w));
        if let Some(before) = mine.find(|w| w.thread == who.thread) {
            *before = who;
            return;
        }
        let earlier = self
            .latest
            .iter()
            .take_while(|w| order.is_of_earlier_block(**w));
        let dropped = earlier.count().saturating_sub(OF_EARLIER_BLOCKS);
        self.latest.drain(..dropped);
        self.latest.push(who);
    }

    /// One of them that nothing orders before an access now by `thread`.
    fn unordered(&self, thread: u32, order: &Order, blocks: bool) -> Option<Who> {
        let mut all = self.latest.iter().chain([&self.before]).copied();
        all.find(|w| is_unordered(*w, thread, order, blocks))
    }
}

/// Whether nothing orders an earlier access, of another block too if `blocks`, before one now.
fn is_unordered(who: Who, thread: u32, order: &Order, blocks: bool) -> bool {
    order.is_unordered(who, thread) || (blocks && order.is_unordered_of_earlier_block(who, thread))
}

/// What happened to some bytes.
#[derive(Clone, Default)]
struct History {
    writer: Who,
    readers: Recent,
    /// Apart, because few bytes have any.
    atomics: Option<Box<Atomics>>,
}

/// Atomic accesses, by what they do.
#[derive(Clone, Default)]
struct Atomics {
    reads: Recent,
    writes: Recent,
    changes: Recent,
}

impl History {
    /// Notes an access, unless it races with an earlier one.
    fn access(&mut self, who: Who, access: Access, order: &Order, blocks: bool) -> Option<Clash> {
        let by = who.thread;
        let writer = Some(self.writer).filter(|w| is_unordered(*w, by, order, blocks));
        let found = writer.map(|who| Clash {
            who,
            access: Access::Write,
        });
        let found = found.or_else(|| {
            let conflicts = self
                .recent()
                .filter(|(kind, _)| access.conflicts_with(*kind));
            let mut clashes = conflicts.filter_map(|(kind, recent)| {
                let who = recent.unordered(by, order, blocks)?;
                Some(Clash { who, access: kind })
            });
            clashes.next()
        });
        match access {
            Access::Read => self.readers.note(who, order),
            Access::Write => self.writer = who,
            Access::AtomicRead => self.atomics().reads.note(who, order),
            Access::AtomicWrite => self.atomics().writes.note(who, order),
            Access::Atomic => self.atomics().changes.note(who, order),
        }
        found
    }

    /// The accesses of each kind but plain writes.
    fn recent(&self) -> impl Iterator<Item = (Access, &Recent)> {
        let atomics = self.atomics.iter().flat_map(|atomics| {
            [
                (Access::Atomic, &atomics.changes),
                (Access::AtomicWrite, &atomics.writes),
                (Access::AtomicRead, &atomics.reads),
            ]
        });
        atomics.chain([(Access::Read, &self.readers)])
    }

    fn atomics(&mut self) -> &mut Atomics {
        self.atomics.get_or_insert_default()
    }
}

/// The history of four bytes.
enum Granule {
    Whole(History),
    Bytes(Box<[History; GRANULE as usize]>),
}

impl Granule {
    /// The histories of some of its bytes.
    fn bytes(&mut self, first: usize, end: usize) -> &mut [History] {
        if end - first == GRANULE as usize {
            return match self {
                Granule::Whole(history) => std::slice::from_mut(history),
                Granule::Bytes(bytes) => &mut bytes[..],
            };
        }
        if let Granule::Whole(history) = self {
            let bytes = std::array::from_fn(|_| history.clone());
            *self = Granule::Bytes(Box::new(bytes));
        }
        match self {
            Granule::Whole(history) => std::slice::from_mut(history),
            Granule::Bytes(bytes) => &mut bytes[first..end],
        }
    }
}

/// Some granules that follow each other.
type Page = Box<[Granule]>;

/// The shadow of one range of memory.
struct Shadow {
    start: u64,
    end: u64,
    /// Made when they are needed, the list as well as each page.
    pages: Vec<Option<Page>>,
}

impl Shadow {
    fn new((start, bytes): (u64, u64)) -> Self {
        let end = start.saturating_add(bytes);
        // Granules are aligned, so that an aligned access is in as few as can be.
        let start = start - start % GRANULE;
        Shadow {
            start,
            end,
            pages: Vec::new(),
        }
    }

    fn granule(&mut self, at: u64) -> &mut Granule {
        let at = at as usize;
        if self.pages.is_empty() {
            let granules = (self.end - self.start).div_ceil(GRANULE) as usize;
            self.pages.resize_with(granules.div_ceil(PAGE), || None);
        }
        let page = self.pages[at / PAGE].get_or_insert_with(|| {
            let empty = || Granule::Whole(History::default());
            std::iter::repeat_with(empty).take(PAGE).collect()
        });
        &mut page[at % PAGE]
    }
}

/// The races of some ranges of memory.
pub(super) struct Races {
    /// In the order of their addresses.
    shadows: Vec<Shadow>,
    /// The one of the latest access.
    latest: usize,
    /// Whether accesses of two blocks race.
    blocks: bool,
}

impl Races {
    /// No access yet to these ranges, as (start, bytes).
    pub(super) fn new(ranges: &[(u64, u64)], blocks: bool) -> Self {
        let mut shadows: Vec<Shadow> = ranges.iter().copied().map(Shadow::new).collect();
        shadows.sort_unstable_by_key(|s| s.start);
        Races {
            shadows,
            latest: 0,
            blocks,
        }
    }

    /// Whether an address is in one of the ranges.
    pub(super) fn watches(&mut self, address: u64) -> bool {
        let inside = |s: &Shadow| s.start <= address && address < s.end;
        if self.shadows.get(self.latest).is_some_and(inside) {
            return true;
        }
        let after = self.shadows.partition_point(|s| s.start <= address);
        self.latest = after.saturating_sub(1);
        self.shadows.get(self.latest).is_some_and(inside)
    }

    /// Notes an access to memory that [`Races::watches`] has just found; the earlier access it
    /// races with.
    pub(super) fn access(
        &mut self,
        order: &Order,
        who: Who,
        access: Access,
        address: u64,
        bytes: u8,
    ) -> Option<Clash> {
        let blocks = self.blocks;
        let shadow = self.shadows.get_mut(self.latest)?;
        let first = address - shadow.start;
        let end = first + u64::from(bytes);
        let mut clash = None;
        for at in first / GRANULE..end.div_ceil(GRANULE) {
            let from = first.max(at * GRANULE) % GRANULE;
            let to = (end - at * GRANULE).min(GRANULE);
            let histories = shadow.granule(at).bytes(from as usize, to as usize);
            for history in histories {
                clash = clash.or(history.access(who, access, order, blocks));
            }
        }
        clash
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Threads of a block: two lanes of one warp and two of the next, or one more.
    const THREADS: [u32; 5] = [0, 1, 2, 32, 33];

    /// An access that happened.
    #[derive(Copy, Clone)]
    struct Event {
        block: u64,
        access: Access,
        address: u64,
        bytes: u64,
    }

    /// What is ordered, said plainly: for each thread, the events that are before all it does.
    #[derive(Default)]
    struct Definition {
        events: Vec<Event>,
        /// The events that all threads of the block have behind them.
        passed: usize,
        before: [Vec<bool>; THREADS.len()],
    }

    impl Definition {
        fn is_before(&self, event: usize, thread: usize) -> bool {
            event < self.passed || self.before[thread].get(event) == Some(&true)
        }

        fn synchronize(&mut self, lanes: &[usize]) {
            let behind = |event| lanes.iter().any(|&lane| self.is_before(event, lane));
            let all: Vec<bool> = (0..self.events.len()).map(behind).collect();
            for &lane in lanes {
                self.before[lane] = all.clone();
            }
        }

        fn push(&mut self, event: Event, thread: usize) {
            self.events.push(event);
            self.before[thread].resize(self.events.len(), false);
            self.before[thread][self.events.len() - 1] = true;
        }

        fn races(&self, old: usize, new: &Event, thread: usize, blocks: bool) -> bool {
            let before = &self.events[old];
            let overlap = before.address < new.address + new.bytes
                && new.address < before.address + before.bytes;
            let unordered = if before.block == new.block {
                !self.is_before(old, thread)
            } else {
                blocks
            };
            let kinds = [before.access, new.access];
            let writes = kinds
                .iter()
                .any(|kind| matches!(kind, Access::Write | Access::AtomicWrite | Access::Atomic));
            let plain = kinds
                .iter()
                .any(|kind| matches!(kind, Access::Read | Access::Write));
            overlap && writes && plain && unordered
        }
    }

    struct Random(u64);

    impl Random {
        fn below(&mut self, n: u64) -> u64 {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            (self.0 >> 11) % n
        }
    }

    /// A launch of random accesses, up to its first race: how many accesses that took, and whether
    /// there was one.
    fn launch(seed: u64) -> (usize, bool) {
        let random = &mut Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
        let (blocks, warps) = (random.below(2) == 0, random.below(3) > 0);
        let (start, length) = (1000 + random.below(4), 4 + random.below(60));
        let mut races = Races::new(&[(start, length), (5000, 8)], blocks);
        let (mut order, mut definition) = (Order::new(34, warps, false), Definition::default());
        // Few writes, so that launches last.
        let writes = random.below(8);
        let atomics = writes + random.below(8);
        for block in 0..1 + random.below(3) {
            order.start_block((0, 0));
            definition.passed = definition.events.len();
            for _ in 0..random.below(120) {
                let thread = random.below(THREADS.len() as u64) as usize;
                match random.below(20) {
                    0 => {
                        order.barrier();
                        definition.passed = definition.events.len();
                        continue;
                    }
                    1..=6 if warps => {
                        let (first, end) = if thread < 3 { (0, 3) } else { (3, 5) };
                        let skipped = random.below(5) as usize;
                        let lanes: Vec<_> = (first..end).filter(|n| *n != skipped).collect();
                        let mask = lanes.iter().fold(0, |m, n| m | 1 << (THREADS[*n] % 32));
                        order.synchronize(THREADS[first], mask);
                        definition.synchronize(&lanes);
                        continue;
                    }
                    _ => {}
                }
                let bytes = 1 << random.below(4);
                let address = (start + random.below(length)).next_multiple_of(bytes);
                if address + bytes > start + length {
                    continue;
                }
                let access = match random.below(40) {
                    n if n < writes => Access::Write,
                    n if n < atomics => match random.below(3) {
                        0 => Access::AtomicRead,
                        1 => Access::AtomicWrite,
                        _ => Access::Atomic,
                    },
                    _ => Access::Read,
                };
                let count = definition.events.len();
                let who = Who {
                    time: order.now(),
                    thread: THREADS[thread],
                    pc: count as u32,
                };
                let new = Event {
                    block,
                    access,
                    address,
                    bytes,
                };
                assert!(races.watches(address));
                let found = races.access(&order, who, access, address, bytes as u8);
                let wanted = (0..count).any(|old| definition.races(old, &new, thread, blocks));
                assert_eq!(found.is_some(), wanted, "seed {seed}, {count} events");
                if let Some(clash) = found {
                    let old = clash.who.pc as usize;
                    assert!(definition.events[old].access == clash.access, "seed {seed}");
                    assert!(definition.races(old, &new, thread, blocks), "seed {seed}");
                    return (count, true);
                }
                definition.push(new, thread);
            }
        }
        (definition.events.len(), false)
    }

    #[test]
    fn races_are_found_as_defined() {
        let runs: Vec<_> = (0..40_000).map(launch).collect();
        let long = runs.iter().filter(|(n, race)| *race && *n > 20).count();
        assert!(long > 2000, "{long} of the races come late");
    }

    #[test]
    fn memory_outside_is_not_watched() {
        let mut races = Races::new(&[(1000, 8), (2000, 4)], true);
        for (address, inside) in [(999, false), (1000, true), (1007, true), (1008, false)] {
            assert_eq!(races.watches(address), inside, "{address}");
        }
        assert!(races.watches(2003) && !races.watches(2004) && !races.watches(u64::MAX));
        assert!(!Races::new(&[], true).watches(0));
    }
}
