//! Copies between devices of which one reaches the other's memory, without the host.
//!
//! The copy is work of the stream of the source's device that has written the source last, behind the stream of the
//! target's device that has written the target last, which then waits for it. So each device has the copy among its own
//! streams' work, as a read here and as a write there, and whoever uses either buffer later is ordered by that.
//!
//! What a launch on the source's device has left unfinished is in the copy, too. So who reads memory behind a copy from
//! another device is told of that device's faults ([`Beyond`]).

use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{Acquire, Release};

use parking_lot::Mutex;

use crate::device::{Device, Marker, WeakDevice};
use crate::error::{DeviceError, Result};
use crate::order::{OrderedStream, Sharing, Uses};
use crate::stream::outside_of_calls;

/// Memory, and what has used it.
type Used<'a> = (u64, &'a Uses);

impl Device {
    /// Copies from memory of another device that reaches this one: `to` behind all its uses, `from` behind the last that
    /// wrote it. Nobody waits for it here. `false`: that device does not reach this one, and nothing was done.
    ///
    /// ```
    /// use kiln_runtime::{Device, Uses};
    ///
    /// # fn main() -> Result<(), kiln_runtime::DeviceError> {
    /// let (here, there, uses) = (Device::cpu(), Device::cpu(), [Uses::default(), Uses::default()]);
    /// let (to, from) = (here.alloc(64, &uses[0])?, there.alloc_zeros(64, &uses[1])?);
    /// // CPU devices have no copies of their own between them.
    /// assert!(!here.copy_from_other((to, &uses[0]), &there, (from, &uses[1]), 64)?);
    /// here.free(to, 64, &uses[0]);
    /// there.free(from, 64, &uses[1]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// A device that has failed, either of them.
    pub fn copy_from_other(
        &self,
        to: Used<'_>,
        other: &Device,
        from: Used<'_>,
        bytes: usize,
    ) -> Result<bool> {
        outside_of_calls()?;
        if !other.told(other.backend().reaches(&**self.backend()))? {
            return Ok(false);
        }
        if self.check_same(other).is_ok() {
            return self.copy(to, from, bytes).map(|()| true);
        }
        let _shared = Sharing::of([(to.1, true), (from.1, false)]);
        self.copy_in_order(to, other, from, bytes).map(|()| true)
    }

    fn copy_in_order(
        &self,
        to: Used<'_>,
        other: &Device,
        from: Used<'_>,
        bytes: usize,
    ) -> Result<()> {
        let (here, there) = (self.streams(), other.streams());
        let (target, source) = (here.writer_of(to.1), there.writer_of(from.1));
        self.told(here.order(&**self.backend(), target, to.1, true))?;
        let free = self.told(self.mark(target))?;
        other.told(other.wait_for_other(source, &*free))?;
        here.note_other();
        there.note_other();
        let (give, place) = (other.backend(), source.work());
        let copied = other.told(give.copy_to_other(place, &**self.backend(), to.0, from.0, bytes));
        // One that failed may have begun.
        let number = source.count();
        source.note(from.1, false, number);
        let done = other.told(other.mark(source));
        let waits = done.and_then(|done| self.told(self.wait_for_other(target, &*done)));
        if waits.is_err() {
            other.settle_copy();
        }
        let written = target.count();
        target.note(to.1, true, written);
        here.beyond().note(Beyond {
            target: target.place(),
            written: (written, written),
            device: other.downgrade(),
            source: source.place(),
        });
        copied.and(waits)
    }

    /// Makes later work of a stream wait for a mark of another device, one of which reaches the other.
    fn wait_for_other(&self, stream: &OrderedStream, marker: &dyn Marker) -> Result<()> {
        self.backend().wait_for_other(stream.work(), marker)
    }

    /// Waits for a copy of this device's that no stream of the other waits for.
    fn settle_copy(&self) {
        // What the driver refuses once is tried again. In a context that is lost nothing is copied.
        let settle = || self.backend().settle();
        let _ = settle().or_else(|_| settle());
    }

    /// Tells of what went wrong in a stream of another device before what it has given this one.
    fn look_beyond(&self, source: usize) -> Result<()> {
        let (backend, streams) = (&**self.backend(), self.streams());
        let stream = streams.at(source);
        let unseen = streams.unseen_before(stream);
        let looked = match stream.work() {
            Some(work) => work.is_done().and_then(|_| work.fault()),
            None => backend.is_done().and_then(|_| backend.fault()),
        };
        self.told(looked.and_then(|()| streams.faults_of(backend, &unseen)))
    }
}

/// Copies that a stream of a device has waited for, from a stream of another.
#[derive(Clone)]
pub(crate) struct Beyond {
    /// The stream of the device itself, and which of its work the first and the last of these copies were that nobody has
    /// looked behind.
    target: usize,
    written: (u64, u64),
    device: WeakDevice,
    source: usize,
}

/// Copies from other devices, as far as nobody has looked whether what they copied was whole.
#[derive(Default)]
pub(crate) struct FromOthers {
    any: AtomicBool,
    list: Mutex<Vec<Beyond>>,
}

impl FromOthers {
    fn note(&self, new: Beyond) {
        let mut list = self.list.lock();
        list.retain(|known| known.device.is_open());
        let is_same = |known: &&mut Beyond| {
            (known.target, known.source) == (new.target, new.source) && known.device == new.device
        };
        match list.iter_mut().find(is_same) {
            Some(known) => {
                let (first, last) = known.written;
                known.written = (first.min(new.written.0), last.max(new.written.1));
            }
            None => list.push(new),
        }
        self.any.store(true, Release);
    }

    /// The copies that are before the work of a stream, given how much of each stream's it has waited for.
    pub(crate) fn before(&self, waited_for: impl Fn(usize) -> u64) -> Vec<Beyond> {
        if !self.any.load(Acquire) {
            return Vec::new();
        }
        let list = self.list.lock();
        let is_before = |known: &&Beyond| waited_for(known.target) >= known.written.0;
        let before = list.iter().filter(is_before).map(|known| {
            let mut known = known.clone();
            known.written.1 = known.written.1.min(waited_for(known.target));
            known
        });
        before.collect()
    }

    /// Tells of what went wrong before these copies, once for each device that is not lost.
    pub(crate) fn look(&self, before: &[Beyond]) -> Result<()> {
        for seen in before {
            let Some(device) = seen.device.upgrade() else {
                continue;
            };
            self.forget(seen);
            let looked = device.look_beyond(seen.source);
            if looked.as_ref().is_err_and(DeviceError::is_loss) {
                // Whoever reads it next has no better.
                self.note(seen.clone());
            }
            looked?;
        }
        Ok(())
    }

    fn forget(&self, seen: &Beyond) {
        let mut list = self.list.lock();
        list.retain_mut(|known| {
            let is_it = (known.target, known.source) == (seen.target, seen.source)
                && known.device == seen.device;
            if is_it {
                known.written.0 = known.written.0.max(seen.written.1 + 1);
            }
            known.written.0 <= known.written.1
        });
        self.any.store(!list.is_empty(), Release);
    }
}
