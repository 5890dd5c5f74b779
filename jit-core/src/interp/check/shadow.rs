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
    /// Made when they are needed.
    pages: Vec<Option<Page>>,
}

impl Shadow {
    fn new((start, bytes): (u64, u64)) -> Self {
        let end = start.saturating_add(bytes);
        // Granules are aligned, so that an aligned access is in as few as can be.
        let start = start - start % GRANULE;
        let pages = (end - start).div_ceil(GRANULE).div_ceil(PAGE as u64);
        Shadow {
            start,
            end,
            pages: (0..pages).map(|_| None).collect(),
        }
    }

    fn granule(&mut self, at: u64) -> &mut Granule {
        let at = at as usize;
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
