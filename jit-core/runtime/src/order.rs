//! What runs later: the order of a device's work, by what it uses.
//!
//! A launch returns while it runs, and by then its borrows have ended. In one stream the order of launches is the
//! order of the program; between streams it would be nobody's. So each buffer records which streams have used it:
//!
//! - A *stream* is one order of a device's work. It has a place among the streams of its device, and counts what it
//!   was given, each time after the driver has taken it. So an event that is recorded once the count was read as `n`
//!   comes after the first `n` of the stream's work.
//! - A buffer has its [`Uses`]: the last that wrote it, as stream and number, and the streams that have read it since.
//! - Before work is given to a stream, the stream is made to wait for the last write of each buffer that the work
//!   reads or writes, and for the reads of each that it writes, as far as they were given to other streams and it has
//!   not waited for as much of these before. Afterwards the work is noted as the buffer's use.
//!
//! The host takes part: a copy is work of the stream that wrote last, and memory is given back behind the last use.
//! A buffer that threads share, to be written by kernels that several of them launch, is ordered and noted while it is
//! held ([`Sharing`]); any other has one that writes it, or several that read it, as Rust's borrows have it until the
//! launch was made.
//!
//! A stream that nobody has any more stays with its device, and whoever asks for one next gets it if it has nothing
//! left to do. So a place never stands for two orders. Where all places are taken, streams share them: what shares a
//! place is in one order.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU64, fence};
use std::sync::{Arc, OnceLock};

use parking_lot::{Mutex, RwLock, RwLockReadGuard, RwLockWriteGuard};
use smallvec::SmallVec;

use crate::adopted::{Adoption, LentStream};
use crate::between::{Beyond, FromOthers};
use crate::device::Backend;
use crate::error::{DeviceError, Result};
use crate::seldom::Seldom;
use crate::stream::{BackendStream, StreamOptions};

/// How many streams a device has room for, its own among them.
const PLACES: usize = 63;
/// The bit of [`Uses`] that says that threads do not share the buffer. Set, so that what the readers of several
/// buffers have in common has it where none of them is shared.
const ALONE: u64 = 1 << PLACES;
/// Bits of a number of work.
const NUMBER_BITS: u32 = 48;

/// Which streams have used a buffer since it was written last.
///
/// Whoever changes it has the buffer: a launch that writes has borrowed it as `&mut`, and those that read at the same
/// time only add themselves.
#[derive(Debug)]
pub struct Uses {
    /// The stream that wrote last, in the upper 16 bits, and which of its work that was; 0 is nobody.
    writer: AtomicU64,
    /// A bit for each stream that has read since, and [`ALONE`].
    readers: AtomicU64,
    /// Who gives work that uses the buffer, which threads share: one that writes it, or any that read it.
    sharing: RwLock<()>,
}

/// Buffers that threads share, each held while work that uses it is ordered, given to the driver and noted: alone by
/// who writes it, together by those that read it.
///
/// That what writes waits for the driver's call of another thread cannot be avoided, whichever way the threads would
/// agree: a stream waits for an event, an event is of what its stream was given before, and one that was not recorded
/// yet nobody waits for. So the second of two launches that conflict can be ordered only once the driver has taken the
/// first. Launches that do not conflict wait for no other: there is no lock of the device.
pub struct Sharing<'a> {
    held: SmallVec<[Hold<'a>; 4]>,
}

#[expect(dead_code, reason = "what is held is let go when it is dropped")]
enum Hold<'a> {
    ToRead(RwLockReadGuard<'a, ()>),
    ToWrite(RwLockWriteGuard<'a, ()>),
}

impl<'a> Sharing<'a> {
    /// Holds those of these buffers that threads share, each of which the work writes or only reads.
    pub fn of(uses: impl IntoIterator<Item = (&'a Uses, bool)>) -> Sharing<'a> {
        let shared = uses.into_iter().filter(|(uses, _)| uses.is_shared());
        let mut shared: SmallVec<[(&Uses, bool); 4]> = shared.collect();
        let place = |uses: &Uses| std::ptr::from_ref(uses).addr();
        // By their places in memory, so that no two threads wait for each other; once, also where it comes twice.
        shared.sort_unstable_by_key(|(uses, writes)| (place(uses), !writes));
        shared.dedup_by_key(|(uses, _)| place(uses));
        let hold = |(uses, writes): (&'a Uses, bool)| match writes {
            true => Hold::ToWrite(uses.sharing.write()),
            false => Hold::ToRead(uses.sharing.read()),
        };
        Sharing {
            held: shared.into_iter().map(hold).collect(),
        }
    }

    /// Whether threads share none of the buffers.
    pub fn is_empty(&self) -> bool {
        self.held.is_empty()
    }
}

impl Default for Uses {
    fn default() -> Uses {
        Uses {
            writer: AtomicU64::new(0),
            readers: AtomicU64::new(ALONE),
            sharing: RwLock::new(()),
        }
    }
}

impl Uses {
    /// Notes that from now on launches of several threads may write the buffer.
    pub fn share(&self) {
        if !self.is_shared() {
            self.readers.fetch_and(!ALONE, Relaxed);
        }
    }

    /// The uses, moved out of a buffer that ends.
    pub(crate) fn take(&self) -> Uses {
        Uses {
            writer: AtomicU64::new(self.writer.load(Relaxed)),
            readers: AtomicU64::new(self.readers.load(Relaxed)),
            sharing: RwLock::new(()),
        }
    }

    /// Whether a stream has read since the last write, whoever's that was, so that one more read of its is in order and
    /// noted already.
    #[inline]
    pub fn are_noted(&self, reads: ReadsOf) -> bool {
        reads.are_in(self.readers())
    }

    /// Who has read since the last write, for [`ReadsOf::are_in`].
    #[inline(always)]
    pub fn readers(&self) -> u64 {
        self.readers.load(Relaxed)
    }

    fn is_shared(&self) -> bool {
        self.readers.load(Relaxed) & ALONE == 0
    }

    /// The place of the stream that wrote last, and which of its work that was.
    fn writer(&self) -> (usize, u64) {
        let writer = self.writer.load(Relaxed);
        let number = writer & ((1 << NUMBER_BITS) - 1);
        ((writer >> NUMBER_BITS) as usize, number)
    }
}

/// What the uses of a buffer have in common with that a stream has read since it was written.
#[derive(Copy, Clone)]
pub struct ReadsOf(u64);

impl ReadsOf {
    /// Of the stream in a place.
    #[inline]
    pub fn new(place: usize) -> ReadsOf {
        ReadsOf(1 << place | ALONE)
    }

    /// Whether these are the readers of a buffer that the stream has read, or what the readers of several such have in
    /// common, none of which threads share.
    #[inline(always)]
    pub fn are_in(self, readers: u64) -> bool {
        let are_in = readers & self.0 == self.0;
        // What another thread noted as a read of this stream it had ordered before. Here and not where each is read, so
        // that what is written between those stays in the hands of the compiler.
        fence(Acquire);
        are_in
    }
}

/// One stream of a device, and how far it has come.
pub struct OrderedStream {
    place: usize,
    /// What does the work; the device's own stream is the backend's.
    work: Option<Arc<dyn BackendStream>>,
    /// How much it was given.
    given: AtomicU64,
    /// How much of it somebody has seen done.
    done: AtomicU64,
    /// How much of each stream's work it waits for.
    waits_for: [AtomicU64; PLACES],
    /// What a call on the host has panicked with.
    panic: Arc<Seldom<Option<String>>>,
}

impl OrderedStream {
    fn new(place: usize, work: Option<Arc<dyn BackendStream>>) -> OrderedStream {
        OrderedStream {
            place,
            work,
            given: AtomicU64::new(0),
            done: AtomicU64::new(0),
            waits_for: std::array::from_fn(|_| AtomicU64::new(0)),
            panic: Arc::default(),
        }
    }

    /// Which of the device's streams it is; its own is 0.
    pub fn place(&self) -> usize {
        self.place
    }

    /// What does the work; `None` for the device's own stream, which its backend does.
    pub fn work(&self) -> Option<&dyn BackendStream> {
        self.work.as_deref()
    }

    /// Whether all that matters of a buffer's uses is in this stream already, or before it: a stream that has read a
    /// buffer was made to wait for its last write before, and a write leaves no readers.
    #[inline]
    pub fn is_behind(&self, uses: &Uses, writes: bool) -> bool {
        // What another thread noted as a read of this stream it had ordered before.
        let readers = uses.readers.load(Acquire) ^ ALONE;
        let own = 1 << self.place;
        let others = if writes { !own } else { ALONE };
        let wrote = || uses.writer.load(Relaxed) >> NUMBER_BITS == self.place as u64;
        readers & others == 0 && (readers & own != 0 || wrote())
    }

    /// How much work the driver has taken.
    pub(crate) fn given(&self) -> u64 {
        self.given.load(Acquire)
    }

    /// Counts work that the driver has taken, and gives its number.
    #[inline]
    pub fn count(&self) -> u64 {
        self.given.fetch_add(1, Release) + 1
    }

    /// Notes work of this stream as a buffer's latest use.
    #[inline]
    pub fn note(&self, uses: &Uses, writes: bool, number: u64) {
        let (readers, own) = (uses.readers.load(Relaxed), 1 << self.place);
        if !writes {
            if readers & own == 0 {
                uses.readers.fetch_or(own, Release);
            }
            return;
        }
        let writer = (self.place as u64) << NUMBER_BITS | number;
        uses.writer.store(writer, Relaxed);
        if readers & ALONE == 0 {
            uses.readers.fetch_and(ALONE, Relaxed);
        } else if readers != ALONE {
            uses.readers.store(ALONE, Relaxed);
        }
    }

    /// Where a call on the host leaves what it has panicked with.
    pub(crate) fn panic_place(&self) -> Arc<Seldom<Option<String>>> {
        self.panic.clone()
    }

    /// What went wrong in calls on the host, once.
    fn panicked(&self) -> Result<()> {
        match self.panic.take().flatten() {
            Some(message) => Err(DeviceError::HostCallPanicked { message }),
            None => Ok(()),
        }
    }
}

/// A stream beside the device's own, as it was handed out.
struct Handed {
    priority: i32,
    /// How many have it.
    handles: usize,
    /// Of a stream of other code.
    adoption: Option<Adoption>,
}

/// What a stream has waited for that may have left a fault.
pub(crate) struct Unseen {
    /// Places, and how much of the work there.
    here: SmallVec<[(usize, u64); 8]>,
    /// Copies from other devices.
    beyond: Vec<Beyond>,
}

/// The streams of a device.
pub struct Streams {
    own: OrderedStream,
    beside: [OnceLock<Box<OrderedStream>>; PLACES - 1],
    handed: Mutex<Vec<Handed>>,
    /// Copies from other devices, and whether there was any from or to another.
    from_others: FromOthers,
    has_copied: AtomicBool,
}

impl Default for Streams {
    fn default() -> Streams {
        Streams {
            own: OrderedStream::new(0, None),
            beside: std::array::from_fn(|_| OnceLock::new()),
            handed: Mutex::default(),
            from_others: FromOthers::default(),
            has_copied: AtomicBool::new(false),
        }
    }
}

impl Streams {
    /// The device's own stream.
    pub fn own(&self) -> &OrderedStream {
        &self.own
    }

    /// The stream in a place; its own where there is none.
    #[inline]
    pub fn at(&self, place: usize) -> &OrderedStream {
        self.find(place).unwrap_or(&self.own)
    }

    fn find(&self, place: usize) -> Option<&OrderedStream> {
        match place.checked_sub(1) {
            None => Some(&self.own),
            Some(beside) => self.beside.get(beside)?.get().map(|stream| &**stream),
        }
    }

    /// All that there are.
    fn all(&self) -> impl Iterator<Item = &OrderedStream> {
        let beside = self.beside.iter().map_while(|stream| stream.get());
        std::iter::once(&self.own).chain(beside.map(|stream| &**stream))
    }

    /// The stream that has written a buffer last.
    pub(crate) fn writer_of(&self, uses: &Uses) -> &OrderedStream {
        self.at(uses.writer().0)
    }

    /// A stream that has used a buffer, after which as few others as possible have.
    pub(crate) fn last_of(&self, uses: &Uses) -> &OrderedStream {
        let (writer, _) = uses.writer();
        let readers = uses.readers.load(Relaxed) & !ALONE;
        match readers & !(1 << writer) {
            0 => self.at(writer),
            others => self.at(others.trailing_zeros() as usize),
        }
    }

    /// Makes later work of a stream wait for what matters of a buffer's uses.
    ///
    /// # Errors
    /// A device that has failed.
    pub fn order(
        &self,
        backend: &dyn Backend,
        stream: &OrderedStream,
        uses: &Uses,
        writes: bool,
    ) -> Result<()> {
        let (writer, number) = uses.writer();
        if number > 0 {
            self.wait_for(backend, stream, writer, Some(number))?;
        }
        if !writes {
            return Ok(());
        }
        let mut readers = uses.readers.load(Relaxed) & !ALONE;
        while readers != 0 {
            self.wait_for(backend, stream, readers.trailing_zeros() as usize, None)?;
            readers &= readers - 1;
        }
        Ok(())
    }

    /// Makes later work of a stream wait for this much of another's, or for all that this was given.
    fn wait_for(
        &self,
        backend: &dyn Backend,
        stream: &OrderedStream,
        place: usize,
        number: Option<u64>,
    ) -> Result<()> {
        if place == stream.place {
            return Ok(());
        }
        let Some(other) = self.find(place) else {
            // A buffer of another backend that says it is this device.
            return backend.synchronize();
        };
        // Before the event is recorded: what is counted later may be given after it.
        let given = other.given.load(Acquire);
        let waits_for = &stream.waits_for[place];
        let known = waits_for.load(Acquire).max(other.done.load(Acquire));
        if known >= number.unwrap_or(given) {
            return Ok(());
        }
        match (stream.work(), other.work()) {
            (Some(stream), other) => stream.wait_for(other)?,
            (None, Some(other)) => backend.wait_for(other)?,
            (None, None) => {}
        }
        waits_for.fetch_max(given, Release);
        Ok(())
    }

    /// Waits until a stream's work is done.
    pub(crate) fn synchronize(&self, backend: &dyn Backend, stream: &OrderedStream) -> Result<()> {
        let given = stream.given.load(Acquire);
        match stream.work() {
            Some(work) => work.synchronize()?,
            None => backend.synchronize()?,
        }
        self.note_done(stream, given)
    }

    /// Notes that so much of a stream's work is done, and tells what went wrong in calls on the host.
    pub(crate) fn note_done(&self, stream: &OrderedStream, number: u64) -> Result<()> {
        stream.done.fetch_max(number, Release);
        stream.panicked()
    }

    /// How much of each stream's work a stream waits for, as far as nobody has looked whether it left a fault.
    pub(crate) fn unseen_before(&self, stream: &OrderedStream) -> Unseen {
        let unseen = |other: &OrderedStream| {
            let waits_for = stream.waits_for[other.place].load(Acquire);
            (waits_for > other.done.load(Acquire)).then_some((other.place, waits_for))
        };
        let waited_for = |place: usize| match place == stream.place {
            true => stream.given.load(Acquire),
            // What the host has waited for nobody waits for.
            false => {
                let done = self.at(place).done.load(Acquire);
                stream.waits_for[place].load(Acquire).max(done)
            }
        };
        Unseen {
            here: self.all().filter_map(unseen).collect(),
            beyond: self.from_others.before(waited_for),
        }
    }

    /// What launches have left of streams that a stream has waited for; that stream's work is done.
    pub(crate) fn faults_of(&self, backend: &dyn Backend, unseen: &Unseen) -> Result<()> {
        for (place, number) in &unseen.here {
            let other = self.at(*place);
            match other.work() {
                Some(work) => work.fault()?,
                None => backend.fault()?,
            }
            other.done.fetch_max(*number, Release);
        }
        self.from_others.look(&unseen.beyond)
    }

    /// Copies from other devices.
    pub(crate) fn beyond(&self) -> &FromOthers {
        &self.from_others
    }

    /// Notes that a copy between the device and another was begun.
    pub(crate) fn note_other(&self) {
        self.has_copied.store(true, Release);
    }

    /// Whether one was.
    pub(crate) fn has_copied(&self) -> bool {
        self.has_copied.load(Acquire)
    }

    /// A place for a stream of these options: one that is there and has nothing to do, a new one, or, where all
    /// places are taken, that of a stream that others have, too.
    pub(crate) fn take(&self, backend: &dyn Backend, options: StreamOptions) -> Result<usize> {
        let mut handed = self.handed.lock();
        for (known, stream) in handed.iter_mut().zip(self.all().skip(1)) {
            let is_free = known.handles == 0
                && known.adoption.is_none()
                && known.priority == options.priority;
            let is_done = |work: &dyn BackendStream| work.is_done().unwrap_or(false);
            if is_free && stream.work().is_some_and(is_done) {
                known.handles = 1;
                return Ok(stream.place);
            }
        }
        if let Some(place) = self.beside.get(handed.len()) {
            let Some(work) = backend.create_stream(options)? else {
                return Ok(self.own.place);
            };
            handed.push(Handed {
                priority: options.priority,
                handles: 1,
                adoption: None,
            });
            let stream = OrderedStream::new(handed.len(), Some(work));
            return Ok(place.get_or_init(|| Box::new(stream)).place);
        }
        let load = |known: &Handed| (known.priority != options.priority, known.handles);
        let own = (0..handed.len()).filter(|&at| handed[at].adoption.is_none());
        let Some(at) = own.min_by_key(|&at| load(&handed[at])) else {
            return Ok(self.own.place);
        };
        handed[at].handles += 1;
        Ok(at + 1)
    }

    /// A place for a stream of other code: that which it has, one whose stream has ended, or a new one.
    pub(crate) fn adopt(&self, backend: &dyn Backend, stream: LentStream) -> Result<usize> {
        self.leave_unused();
        let mut handed = self.handed.lock();
        for (at, known) in handed.iter_mut().enumerate() {
            let Some(adoption) = &mut known.adoption else {
                continue;
            };
            if adoption.is_of(&stream) {
                adoption.keep(stream);
                known.handles += 1;
                return Ok(at + 1);
            }
        }
        let ended = |known: &Handed| known.adoption.as_ref().is_some_and(Adoption::has_ended);
        let ended = handed.iter().position(ended);
        let at = ended.unwrap_or(handed.len());
        let Some(place) = self.beside.get(at) else {
            return Err(DeviceError::NoStreamLeft);
        };
        match place.get().and_then(|known| known.work()) {
            Some(work) => work.go_on(&stream)?,
            None => {
                let work = backend.adopt_stream(&stream)?;
                let ordered = OrderedStream::new(at + 1, Some(work));
                place.get_or_init(|| Box::new(ordered));
            }
        }
        let known = Handed {
            priority: 0,
            handles: 1,
            adoption: Some(Adoption::of(stream)),
        };
        match handed.get_mut(at) {
            Some(ended) => *ended = known,
            None => handed.push(known),
        }
        Ok(at + 1)
    }

    /// Ends the adoptions of streams that nobody has any more, and gives what has kept these.
    pub(crate) fn unused_adoptions(&self) -> Vec<LentStream> {
        let mut left = Vec::new();
        for (known, stream) in self.handed.lock().iter_mut().zip(self.all().skip(1)) {
            let is_unused = known.handles == 0;
            let adoption = known.adoption.as_mut().filter(|_| is_unused);
            let Some(adoption) = adoption.filter(|adoption| !adoption.has_ended()) else {
                continue;
            };
            // Of a device that has failed nothing more is asked.
            if let Some(work) = stream.work() {
                let _ = work.leave();
            }
            left.extend(adoption.end());
        }
        left
    }

    /// Takes back what [`Streams::take`] or [`Streams::adopt`] gave; whether it was the last of a stream of other code.
    pub(crate) fn give_back(&self, place: usize) -> bool {
        let Some(at) = place.checked_sub(1) else {
            return false;
        };
        let known = &mut self.handed.lock()[at];
        known.handles -= 1;
        known.handles == 0 && known.adoption.is_some()
    }

    /// Waits until the work of all streams is done. What went wrong in any is told once: of several the first.
    pub(crate) fn synchronize_all(&self, backend: &dyn Backend) -> Result<()> {
        let given: SmallVec<[_; 8]> = self
            .all()
            .map(|stream| stream.given.load(Acquire))
            .collect();
        let mut first = Ok(());
        // What is well is not moved.
        let mut note = |result: Result<()>| {
            if let (Err(error), Ok(())) = (result, &first) {
                first = Err(error);
            }
            first.is_ok()
        };
        note(backend.synchronize());
        for (stream, given) in self.all().zip(given) {
            if let Some(work) = stream.work() {
                note(work.synchronize());
            }
            if note(stream.panicked()) {
                stream.done.fetch_max(given, Release);
            }
        }
        first
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_of_streams_are_behind_a_write_that_each_has_read_behind() {
        let [writer, first, second] = [0, 1, 2].map(|place| OrderedStream::new(place, None));
        let uses = Uses::default();
        writer.note(&uses, true, writer.count());
        for stream in [&first, &second] {
            assert!(
                !stream.is_behind(&uses, false),
                "nobody has waited for the write yet"
            );
            assert!(!uses.are_noted(ReadsOf::new(stream.place())));
            stream.note(&uses, false, stream.count());
        }
        for stream in [&first, &second] {
            assert!(
                stream.is_behind(&uses, false),
                "readers do not wait for each other"
            );
            assert!(uses.are_noted(ReadsOf::new(stream.place())));
            assert!(!stream.is_behind(&uses, true), "the other may still read");
        }
        assert!(!writer.is_behind(&uses, true));
        writer.note(&uses, true, writer.count());
        assert!(
            !first.is_behind(&uses, false),
            "a write leaves no reader behind it"
        );
        assert!(!uses.are_noted(ReadsOf::new(first.place())));
        first.note(&uses, false, first.count());
        assert!(
            first.is_behind(&uses, true),
            "the only reader is behind the write itself"
        );
    }

    #[test]
    fn what_threads_share_is_behind_nothing() {
        let stream = OrderedStream::new(1, None);
        let uses = Uses::default();
        stream.note(&uses, false, stream.count());
        uses.share();
        assert!(!stream.is_behind(&uses, false));
        assert!(!stream.is_behind(&uses, true));
        assert!(!uses.are_noted(ReadsOf::new(1)));
    }
}
