//! Memory that nobody has any more and that is not freed yet, for whoever allocates as much of it next.
//!
//! Who drops a buffer does not wait, as `cuMemFree` would; and where each operation makes a small result anew, the pool's
//! two calls take longer than Kiln does for all else. So one of the first buffers, and a small one of the pool, is listed
//! with the stream whose work is behind all uses of it:
//!
//! - An allocation of as many bytes in that stream takes it again: there it is behind those uses. No other stream does.
//! - One of the first buffers is freed once all work that the context had by then is seen done: at the next wait for the
//!   context, where what is kept is given back, where memory is out, and at the context's end.
//! - What is of the pool goes back to it behind the stream's work: the oldest where there are more than [`MOST`], and all
//!   where what is kept is given back, where memory is out, where the program says how much is kept, and where the stream
//!   or the context ends.
//!
//! What is given up counts as kept for later buffers.

use super::context::CudaContext;
use super::memory::{Allocation, Origin};
use super::stream::StreamHandle;

/// The most bytes of what is of the pool: operations on more take longer than the driver's calls.
const SMALL: u64 = 1 << 20;

/// How many of the pool there are at most: together 32 MiB.
const MOST: usize = 32;

/// What is given up.
#[derive(Default)]
pub(super) struct GivenUp {
    /// What was given up last is at the end.
    known: Vec<Known>,
    /// How often one was given up.
    turns: u64,
}

/// Memory that nobody has any more.
struct Known {
    address: u64,
    allocation: Allocation,
    /// Whose work is behind all uses.
    stream: StreamHandle,
    /// How often one had been given up before.
    turn: u64,
}

impl Known {
    fn is_pooled(&self) -> bool {
        self.allocation.origin == Origin::Pool
    }
}

impl GivenUp {
    /// What is given up of this length behind this stream's work, which is then no more.
    fn take_again(&mut self, bytes: u64, stream: StreamHandle) -> Option<Known> {
        let fits = |known: &Known| known.allocation.bytes == bytes && known.stream == stream;
        let at = self.known.iter().rposition(fits)?;
        Some(self.known.remove(at))
    }

    /// The first for which this holds, which is then given up no more.
    fn take(&mut self, is: impl Fn(&Known) -> bool) -> Option<Known> {
        let at = self.known.iter().position(is)?;
        Some(self.known.remove(at))
    }

    /// Lists one more, and gives what there is no room for any more.
    fn put(&mut self, address: u64, allocation: Allocation, stream: StreamHandle) -> Option<Known> {
        let turn = self.turns;
        self.turns += 1;
        self.known.push(Known {
            address,
            allocation,
            stream,
            turn,
        });
        let pooled = || self.known.iter().filter(|known| known.is_pooled());
        if self.known.len() <= MOST || pooled().count() <= MOST {
            return None;
        }
        self.take(Known::is_pooled)
    }

    /// How often one was given up so far: what these used is done once all work is that the context has now.
    pub(super) fn turns(&self) -> u64 {
        self.turns
    }

    /// The bytes of those that are not of the pool, which counts its own.
    pub(super) fn plain_bytes(&self) -> u64 {
        let plain = self.known.iter().filter(|known| !known.is_pooled());
        plain.map(|known| known.allocation.bytes).sum()
    }
}

impl CudaContext {
    /// Memory of so many bytes that was given up in this stream, in use again.
    pub(super) fn alloc_again(&self, bytes: u64, stream: StreamHandle) -> Option<u64> {
        let known = self.given_up.lock().take_again(bytes, stream)?;
        let mut allocations = self.allocations.lock();
        allocations.insert(known.address, known.allocation);
        Some(known.address)
    }

    /// Gives up memory that is listed nowhere any more, behind the work that a stream of the context's own has. Whether it
    /// may be.
    pub(super) fn give_up(
        &self,
        address: u64,
        allocation: Allocation,
        stream: StreamHandle,
    ) -> bool {
        let may = match allocation.origin {
            Origin::Plain => false,
            Origin::First => true,
            Origin::Pool => allocation.bytes <= SMALL && self.keeps_all(),
        };
        if may {
            let left = self.given_up.lock().put(address, allocation, stream);
            if let Some(left) = left.and_then(|left| self.refused(left)) {
                self.given_up.lock().known.insert(0, left);
            }
        }
        may
    }

    /// Frees those of the first buffers that are given up, if all work of the context is done.
    pub(super) fn free_first_if_done(&self) {
        let turns = self.given_up.lock().turns();
        if turns > 0 && self.is_work_done().unwrap_or(false) {
            self.free_first(turns);
        }
    }

    /// Frees those of the first buffers that were given up in the first so many turns; all work that the context had then
    /// is done.
    pub(super) fn free_first(&self, turns: u64) {
        self.free_those(|known| !known.is_pooled() && known.turn < turns);
    }

    /// Gives back to the pool what is of it.
    pub(super) fn give_back(&self) {
        self.free_those(Known::is_pooled);
    }

    /// Gives back to the pool what is behind the work of a stream that is about to end.
    pub(super) fn give_back_of(&self, stream: StreamHandle) {
        let is_its = |known: &Known| known.is_pooled() && known.stream == stream;
        self.free_those(is_its);
        // What the driver refuses is tried again, and then left to the pool's end: another stream may have the handle.
        while let Some(known) = self.given_up.lock().take(is_its) {
            self.refused(known);
        }
    }

    /// Frees all for which this holds; a driver that refuses is asked again the next time.
    fn free_those(&self, is: impl Fn(&Known) -> bool) {
        let mut refused = Vec::new();
        loop {
            // In a line of its own, as freeing takes long.
            let known = self.given_up.lock().take(&is);
            let Some(known) = known else { break };
            refused.extend(self.refused(known));
        }
        if !refused.is_empty() {
            self.given_up.lock().known.append(&mut refused);
        }
    }

    /// Frees memory, and gives it back where the driver refuses.
    fn refused(&self, known: Known) -> Option<Known> {
        let is_freed = match known.is_pooled() {
            true => self.free_to_pool(known.address, known.stream).is_ok(),
            false => self.free_now(known.address),
        };
        (!is_freed).then_some(known)
    }

    /// Frees what no work uses.
    fn free_now(&self, address: u64) -> bool {
        let mut is_freed = false;
        self.release("cuMemFree", |table| {
            // SAFETY: it was allocated by `cuMemAlloc`, nothing lists it any more, and the work that used it is done.
            let code = unsafe { (table.cuMemFree_v2)(address) };
            is_freed = code == 0;
            code
        });
        is_freed
    }

    /// Frees what is given up at the context's end, behind all work.
    pub(super) fn free_at_the_end(&mut self) {
        // What a driver refuses once is tried again: it is the only time.
        for _ in 0..2 {
            if self.given_up.get_mut().known.is_empty() || self.poison_cause().is_some() {
                return;
            }
            let _ = self.synchronize();
            self.give_back();
        }
    }
}
