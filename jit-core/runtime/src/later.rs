//! Work that the host does not wait for: marks that calls and tasks wait for later, and copies, which are lent memory of
//! the host.
//!
//! The memory belongs to the copy until a mark behind it is reached. Who gives a copy up gives its memory to the device,
//! which frees it once the mark is reached: nothing is freed under a copy, and nobody waits for one.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::NonNull;
use std::sync::{Arc, OnceLock};
use std::task::Waker;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use crate::cpu::memory::Allocation;
use crate::device::{Backend, Device, Marker};
use crate::error::{DeviceError, Result};
use crate::order::{OrderedStream, Sharing, Unseen, Uses};
use crate::stream::outside_of_calls;

/// How long who waits by asking sleeps between two questions: at first, and after a while.
const SHORTEST: Duration = Duration::from_micros(20);
const LONGEST: Duration = Duration::from_millis(1);

/// Memory of the host that a device copies from and to while the host goes on.
pub struct HostMemory {
    start: NonNull<u8>,
    bytes: usize,
    source: Source,
}

/// Where memory comes from.
enum Source {
    /// Any memory of the process, for devices that ask for no other.
    Plain(#[expect(dead_code, reason = "is freed with it")] Allocation),
    /// The device's driver.
    Pinned(Arc<dyn Backend>),
}

// SAFETY: the memory belongs to this, and nothing of it is tied to a thread.
unsafe impl Send for HostMemory {}
// SAFETY: it is changed through `&mut` only.
unsafe impl Sync for HostMemory {}

impl Drop for HostMemory {
    fn drop(&mut self) {
        // In a call that a stream makes it stays: nothing can be asked of the device there.
        if let (Source::Pinned(backend), Ok(())) = (&self.source, outside_of_calls()) {
            backend.free_host(self.start, self.bytes.max(1));
        }
    }
}

impl HostMemory {
    /// The first byte, at a multiple of 256.
    pub fn start(&self) -> NonNull<u8> {
        self.start
    }

    /// How many bytes there are.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    fn is_pinned(&self) -> bool {
        matches!(self.source, Source::Pinned(_))
    }
}

/// A mark in a device's work that somebody waits for: a call, or a task, which a thread wakes.
pub struct Reach {
    device: Device,
    marker: Arc<dyn Marker>,
    /// The first time that a task has asked for it.
    asked: OnceLock<Instant>,
}

impl Reach {
    /// Of a mark of this device.
    pub fn of(device: &Device, marker: Arc<dyn Marker>) -> Reach {
        Reach {
            device: device.clone(),
            marker,
            asked: OnceLock::new(),
        }
    }

    /// Whether the mark is reached.
    ///
    /// # Errors
    /// A device that has failed.
    pub fn is_done(&self) -> Result<bool> {
        outside_of_calls()?;
        self.device.backend().is_reached(&*self.marker)
    }

    /// Waits for the mark.
    ///
    /// # Errors
    /// A device that has failed.
    pub fn wait(&self) -> Result<()> {
        outside_of_calls()?;
        let waited = self.device.backend().wait_until(&*self.marker);
        self.device.waited(waited)
    }

    /// Waits for the mark, but for no longer than this. Whether it is reached.
    ///
    /// # Errors
    /// A device that has failed.
    pub fn wait_for(&self, limit: Duration) -> Result<bool> {
        let (start, mut pause) = (Instant::now(), SHORTEST);
        while !self.is_done()? {
            let left = limit.saturating_sub(start.elapsed());
            if left.is_zero() {
                return Ok(false);
            }
            std::thread::sleep(pause.min(left));
            pause = (2 * pause).min(LONGEST);
        }
        Ok(true)
    }

    /// Has a thread wake this once the mark is reached, the device has failed, or a call would have given up waiting.
    ///
    /// # Errors
    /// That a call would have: a task has waited for as long, since it first did so.
    pub fn wake(&self, waker: &Waker) -> Result<()> {
        let (backend, asked) = (self.device.backend(), *self.asked.get_or_init(Instant::now));
        let limit = backend.wait_limit();
        if let Some(limit) = limit.filter(|limit| asked.elapsed() >= *limit) {
            return self.device.told(Err(backend.overdue(limit)));
        }
        Watcher::get().add(Watched {
            device: self.device.clone(),
            marker: self.marker.clone(),
            waker: waker.clone(),
            until: limit.and_then(|limit| asked.checked_add(limit)),
        });
        Ok(())
    }
}

/// What a stream was given up to a mark, and how much of what it waits for was looked at before.
struct Given {
    place: usize,
    number: u64,
    unseen: Unseen,
}

/// All that a stream was given until now, to be waited for later. Nothing is lost by dropping it but who is told.
pub struct Finishing {
    reach: Reach,
    given: Given,
}

impl Finishing {
    /// The mark behind it.
    pub fn reach(&self) -> &Reach {
        &self.reach
    }

    /// Waits for it, as [`Device::synchronize_stream`] does, but for no later work.
    ///
    /// # Errors
    /// As there. A device that does not tell streams apart tells what any launch has left that has ended.
    pub fn wait(self) -> Result<()> {
        outside_of_calls()?;
        let Finishing { reach, given } = self;
        reach.device.waited(given.finished(&reach))
    }
}

impl Given {
    /// Waits for the mark, and tells what went wrong before it.
    fn finished(&self, reach: &Reach) -> Result<()> {
        let (backend, streams) = (&**reach.device.backend(), reach.device.streams());
        backend.wait_until(&*reach.marker)?;
        let stream = streams.at(self.place);
        match stream.work() {
            Some(work) => work.fault()?,
            None => backend.ended()?,
        }
        streams.faults_of(backend, &self.unseen)?;
        streams.note_done(stream, self.number)
    }
}

/// A copy under way, with the host's memory that it reads or writes.
pub struct Pending {
    reach: Reach,
    given: Given,
    /// There until the copy is done or given up.
    memory: Option<HostMemory>,
}

impl Drop for Pending {
    fn drop(&mut self) {
        if let Some(memory) = self.memory.take() {
            let lent = (self.reach.marker.clone(), memory);
            self.reach.device.lent().lock().push(lent);
        }
    }
}

impl Pending {
    /// The mark behind it.
    pub fn reach(&self) -> &Reach {
        &self.reach
    }

    /// Waits for the copy.
    ///
    /// # Errors
    /// A fault that a launch before it has left; a device that has failed.
    pub fn wait(self) -> Result<HostMemory> {
        outside_of_calls()?;
        let device = self.reach.device.clone();
        device.waited(self.wait_untold())
    }

    fn wait_untold(mut self) -> Result<HostMemory> {
        let (device, given) = (self.reach.device.clone(), &self.given);
        let backend = &**device.backend();
        backend.wait_until(&*self.reach.marker)?;
        let memory = self.memory.take();
        match device.streams().at(given.place).work() {
            Some(work) => work.fault()?,
            None => backend.fault()?,
        }
        device.streams().faults_of(backend, &given.unseen)?;
        memory.ok_or(DeviceError::Internal(
            "a copy has given its memory back twice",
        ))
    }
}

impl Device {
    /// Host memory of zeros to be lent to copies.
    ///
    /// # Errors
    /// No memory; a device that has failed.
    pub fn alloc_host(&self, bytes: usize) -> Result<HostMemory> {
        outside_of_calls()?;
        self.take_back_lent();
        let pinned = match self.backend().alloc_host(bytes.max(1)) {
            Err(error) if error.is_no_pinned_memory() => self.alloc_host_again(bytes.max(1)),
            first => first,
        };
        if let Some(start) = self.told(pinned)? {
            // SAFETY: the backend gave so many bytes.
            unsafe { start.write_bytes(0, bytes.max(1)) };
            let source = Source::Pinned(self.backend().clone());
            return Ok(HostMemory {
                start,
                bytes,
                source,
            });
        }
        let plain = Allocation::new(bytes).ok_or(DeviceError::HostMemory { bytes })?;
        let start = NonNull::new(plain.start()).ok_or(DeviceError::HostMemory { bytes })?;
        Ok(HostMemory {
            start,
            bytes,
            source: Source::Plain(plain),
        })
    }

    /// Asks once more for pinned memory, after copies that were given up have ended, and nothing is kept for later buffers.
    fn alloc_host_again(&self, bytes: usize) -> Result<Option<NonNull<u8>>> {
        let markers: Vec<_> = {
            let lent = self.lent().lock();
            lent.iter().map(|(marker, _)| marker.clone()).collect()
        };
        for marker in markers {
            self.backend().wait_until(&*marker)?;
        }
        self.take_back_lent();
        self.backend().trim()?;
        self.backend().alloc_host(bytes)
    }

    /// Frees what copies that were given up no longer use.
    fn take_back_lent(&self) {
        let is_lent =
            |marker: &Arc<dyn Marker>| !self.backend().is_reached(&**marker).unwrap_or(false);
        self.lent().lock().retain(|(marker, _)| is_lent(marker));
    }

    /// Copies all of this to the device, behind all uses of the memory there. Nobody waits for it.
    ///
    /// # Errors
    /// A device that has failed.
    pub fn upload_later(&self, address: u64, memory: HostMemory, uses: &Uses) -> Result<Pending> {
        outside_of_calls()?;
        let (backend, streams) = (&**self.backend(), self.streams());
        let _shared = Sharing::of([(uses, true)]);
        let stream = streams.writer_of(uses);
        streams.order(backend, stream, uses, true)?;
        let (start, bytes) = (memory.start, memory.bytes);
        // SAFETY: the memory stays until the mark that follows is reached, and nobody changes it meanwhile.
        let copied = unsafe {
            match stream.work() {
                Some(work) => work.upload_later(address, start, bytes),
                None => backend.upload_later(address, start, bytes),
            }
        };
        // One that failed may have begun.
        stream.note(uses, true, stream.count());
        self.pending(stream.place(), memory, copied)
    }

    /// Copies from the device, behind the last use that wrote the memory there, which is a part of `whole`. Nobody waits
    /// for it, save on devices that ask for no memory of their own.
    ///
    /// # Errors
    /// A device that has failed; on such devices a fault, too.
    pub fn download_later(
        &self,
        address: u64,
        whole: (u64, usize),
        memory: HostMemory,
        uses: &Uses,
    ) -> Result<Pending> {
        outside_of_calls()?;
        if !memory.is_pinned() {
            self.synchronize_memory(whole.0, whole.1, uses)?;
        }
        let (backend, streams) = (&**self.backend(), self.streams());
        let _shared = Sharing::of([(uses, false)]);
        let stream = streams.writer_of(uses);
        let (start, bytes) = (memory.start, memory.bytes);
        // SAFETY: the memory stays until the mark that follows is reached, and nobody looks at it meanwhile.
        let copied = unsafe {
            match stream.work() {
                Some(work) => work.download_later(address, start, bytes),
                None => backend.download_later(address, start, bytes),
            }
        };
        stream.note(uses, false, stream.count());
        self.pending(stream.place(), memory, copied)
    }

    /// What a stream was given until now, for who waits for it later, in a call or a task.
    ///
    /// # Errors
    /// A device that has failed.
    pub fn finish_later(&self, stream: &OrderedStream) -> Result<Finishing> {
        // Before the mark: what is counted later may be given after it.
        let given = self.given(stream);
        let marker = self.told(self.mark(stream))?;
        Ok(Finishing {
            reach: Reach::of(self, marker.into()),
            given,
        })
    }

    fn given(&self, stream: &OrderedStream) -> Given {
        Given {
            place: stream.place(),
            number: stream.given(),
            unseen: self.streams().unseen_before(stream),
        }
    }

    /// Keeps memory that a copy in a stream may use which the device has refused.
    fn keep_behind(&self, stream: &OrderedStream, memory: HostMemory) {
        match self.mark(stream) {
            Ok(marker) => self.lent().lock().push((marker.into(), memory)),
            // Nothing says when the copy ends. Memory of a device that is lost is not freed anyway.
            Err(error) if !error.is_loss() => std::mem::forget(memory),
            Err(_) => drop(memory),
        }
    }

    /// What comes back of a copy in a stream, which may have begun even where it failed.
    fn pending(&self, place: usize, memory: HostMemory, copied: Result<()>) -> Result<Pending> {
        let stream = self.streams().at(place);
        let given = self.given(stream);
        let marker = copied.and_then(|()| self.mark(stream));
        match marker {
            Ok(marker) => Ok(Pending {
                reach: Reach::of(self, marker.into()),
                given,
                memory: Some(memory),
            }),
            Err(error) => {
                if memory.is_pinned() {
                    self.keep_behind(stream, memory);
                }
                Err(error)
            }
        }
    }
}

/// Somebody to be woken when a mark is reached.
struct Watched {
    device: Device,
    marker: Arc<dyn Marker>,
    waker: Waker,
    /// The end of the time for which the mark is waited for.
    until: Option<Instant>,
}

/// Who looks whether marks are reached: a thread, while there are some. A device does not say so itself: after an error it
/// makes no call on the host.
#[derive(Default)]
struct Watcher {
    state: Mutex<Watching>,
    more: Condvar,
}

#[derive(Default)]
struct Watching {
    list: Vec<Watched>,
    /// Whether there is a thread.
    runs: bool,
}

impl Watcher {
    /// How long the thread stays when there is nothing to look at.
    const IDLE: Duration = Duration::from_millis(500);

    fn get() -> &'static Watcher {
        static WATCHER: OnceLock<Watcher> = OnceLock::new();
        WATCHER.get_or_init(Watcher::default)
    }

    fn add(&'static self, watched: Watched) {
        let mut state = self.state.lock();
        if !state.runs {
            let thread = std::thread::Builder::new().name("kiln watcher".to_owned());
            state.runs = thread.spawn(|| self.watch()).is_ok();
        }
        if state.runs {
            state.list.push(watched);
            self.more.notify_one();
        } else {
            drop(state);
            // Whoever waits asks again, and again.
            watched.waker.wake();
        }
    }

    fn watch(&self) {
        let mut pause = SHORTEST;
        while let Some(list) = self.next(&mut pause) {
            // Wakers and devices run code of others, so nothing is locked.
            let (left, reached): (Vec<_>, Vec<_>) = list.into_iter().partition(|one| {
                let reached = one.device.backend().is_reached(&*one.marker);
                let is_late = one.until.is_some_and(|until| Instant::now() >= until);
                matches!(reached, Ok(false)) && !is_late
            });
            if !reached.is_empty() {
                pause = SHORTEST;
            }
            for one in reached {
                // What a waker panics with is its executor's; the others are still to be woken.
                let _ = catch_unwind(AssertUnwindSafe(|| one.waker.wake()));
            }
            self.state.lock().list.extend(left);
            std::thread::sleep(pause);
            pause = (2 * pause).min(LONGEST);
        }
    }

    /// All that is to be looked at, once there is something. `None` where there was nothing for long, and the thread ends.
    fn next(&self, pause: &mut Duration) -> Option<Vec<Watched>> {
        let mut state = self.state.lock();
        while state.list.is_empty() {
            *pause = SHORTEST;
            let waited = self.more.wait_for(&mut state, Watcher::IDLE);
            if waited.timed_out() && state.list.is_empty() {
                state.runs = false;
                return None;
            }
        }
        Some(std::mem::take(&mut state.list))
    }
}
