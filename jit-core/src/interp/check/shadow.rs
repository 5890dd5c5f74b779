//! Who accessed memory lately, and whether an access races with that.
//!
//! Memory is watched in granules of four bytes. A granule keeps one history as long as accesses
//! cover all of it, and one for each byte from the first access that does not: neighbouring bytes
//! are exact, and a buffer of words costs a quarter of what one of bytes does.
//!
//! A history keeps few accesses and loses no race: of plain writes the latest is enough, because
//! another thread's in the same interval would have been reported; of reads (and of atomic
//! accesses) two of different threads in the latest interval are enough, because one of them is not
//! by the thread that asks, and one of an earlier block.

use crate::checks::Access;
use crate::interp::ops::Target;

/// Bytes of a granule.
const GRANULE: u64 = 4;

/// Granules of a page, the unit in which shadow memory is made.
const PAGE: usize = 64;

/// When: intervals between barriers are numbered from 1 through all of the launch.
#[derive(Copy, Clone, Default)]
pub(super) struct Moment {
    /// The interval that runs.
    pub(super) interval: u64,
    /// The first interval of the block that runs.
    block_start: u64,
}

impl Moment {
    /// The next block's first interval.
    pub(super) fn start_block(&mut self) {
        self.interval += 1;
        self.block_start = self.interval;
    }
}

/// Who accessed memory, when, and by which op. Interval 0: nobody.
#[derive(Copy, Clone, Default)]
pub(super) struct Who {
    pub(super) interval: u64,
    pub(super) thread: u32,
    pub(super) pc: Target,
}

impl Who {
    fn is_somebody(&self) -> bool {
        self.interval != 0
    }

    /// Whether nothing orders this earlier access and one now by `other`.
    fn is_unordered(&self, other: Who, now: &Moment, blocks: bool) -> bool {
        let in_block = self.interval == other.interval && self.thread != other.thread;
        in_block || (blocks && self.is_somebody() && self.interval < now.block_start)
    }
}

/// An earlier access that a new one races with.
pub(super) struct Clash {
    pub(super) who: Who,
    pub(super) access: Access,
}

/// The accesses of one kind that can still matter.
#[derive(Copy, Clone, Default)]
struct Recent {
    /// Two of different threads in the latest interval.
    latest: [Who; 2],
    /// One of a block before that interval's.
    before: Who,
}

impl Recent {
    fn note(&mut self, who: Who, now: &Moment) {
        let [first, second] = self.latest;
        if first.interval != who.interval {
            if first.is_somebody() && first.interval < now.block_start {
                self.before = first;
            }
            self.latest = [who, Who::default()];
        } else if first.thread != who.thread && !second.is_somebody() {
            self.latest[1] = who;
        }
    }

    fn unordered(&self, who: Who, now: &Moment, blocks: bool) -> Option<Who> {
        let [first, second] = self.latest;
        let mut candidates = [first, second, self.before].into_iter();
        candidates.find(|w| w.is_unordered(who, now, blocks))
    }
}

/// What happened to some bytes.
#[derive(Clone, Default)]
struct History {
    writer: Who,
    readers: Recent,
    /// Apart, because few bytes have any.
    atomics: Option<Box<Recent>>,
}

impl History {
    /// Notes an access, unless it races with an earlier one.
    fn access(&mut self, who: Who, access: Access, now: &Moment, blocks: bool) -> Option<Clash> {
        let writer = Some(self.writer).filter(|w| w.is_unordered(who, now, blocks));
        let mut found = writer.map(|w| (w, Access::Write));
        if access != Access::Atomic {
            let atomics = self.atomics.as_ref();
            let atomic = atomics.and_then(|a| a.unordered(who, now, blocks));
            found = found.or(atomic.map(|w| (w, Access::Atomic)));
        }
        if access != Access::Read {
            let reader = self.readers.unordered(who, now, blocks);
            found = found.or(reader.map(|w| (w, Access::Read)));
        }
        match access {
            Access::Read => self.readers.note(who, now),
            Access::Write => self.writer = who,
            Access::Atomic => self.atomics.get_or_insert_default().note(who, now),
        }
        found.map(|(who, access)| Clash { who, access })
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
        now: &Moment,
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
                clash = clash.or(history.access(who, access, now, blocks));
            }
        }
        clash
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An access that happened.
    #[derive(Copy, Clone)]
    struct Event {
        block: u64,
        who: Who,
        access: Access,
        address: u64,
        bytes: u64,
    }

    /// What a race is, said plainly: the first of all earlier events that races with this one.
    fn by_definition(events: &[Event], new: &Event, blocks: bool) -> bool {
        events.iter().any(|old| {
            let overlap =
                old.address < new.address + new.bytes && new.address < old.address + old.bytes;
            let harmless = matches!(
                (old.access, new.access),
                (Access::Read, Access::Read) | (Access::Atomic, Access::Atomic)
            );
            let unordered = if old.block == new.block {
                old.who.interval == new.who.interval && old.who.thread != new.who.thread
            } else {
                blocks
            };
            overlap && !harmless && unordered
        })
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

    /// A launch of random accesses, up to its first race; how many accesses that took.
    fn launch(seed: u64) -> usize {
        let random = &mut Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
        let blocks = random.below(2) == 0;
        let (start, length) = (1000 + random.below(4), 4 + random.below(40));
        let mut races = Races::new(&[(start, length), (5000, 8)], blocks);
        let (mut now, mut events) = (Moment::default(), Vec::new());
        // Few writes, so that launches last.
        let writes = 1 + random.below(30);
        for block in 0..1 + random.below(4) {
            now.start_block();
            for _ in 0..1 + random.below(6) {
                for _ in 0..random.below(30) {
                    let bytes = 1 << random.below(4);
                    let address = (start + random.below(length)).next_multiple_of(bytes);
                    if address + bytes > start + length {
                        continue;
                    }
                    let access = match random.below(32) {
                        n if n < writes => Access::Write,
                        n if n < 20 => Access::Read,
                        _ => Access::Atomic,
                    };
                    let who = Who {
                        interval: now.interval,
                        thread: random.below(3) as u32,
                        pc: events.len() as Target,
                    };
                    let new = Event {
                        block,
                        who,
                        access,
                        address,
                        bytes,
                    };
                    assert!(races.watches(address));
                    let found = races.access(&now, who, access, address, bytes as u8);
                    let wanted = by_definition(&events, &new, blocks);
                    assert_eq!(
                        found.is_some(),
                        wanted,
                        "seed {seed}, {} events",
                        events.len()
                    );
                    if let Some(clash) = found {
                        let first = events[clash.who.pc as usize];
                        assert!(first.access == clash.access, "seed {seed}");
                        assert!(by_definition(&[first], &new, blocks), "seed {seed}");
                        return events.len();
                    }
                    events.push(new);
                }
                now.interval += 1;
            }
        }
        events.len()
    }

    #[test]
    fn races_are_found_as_defined() {
        let lengths: Vec<usize> = (0..20_000).map(launch).collect();
        assert!(lengths.iter().filter(|&&n| n > 20).count() > 1000);
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
