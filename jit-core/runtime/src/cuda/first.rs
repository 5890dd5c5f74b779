//! A context's first buffers, which come from `cuMemAlloc` and not from the pool.
//!
//! A driver takes 8 to 10 ms for the first allocation from any pool, whatever its size, and a third of one for the
//! first by `cuMemAlloc` (`benches/RESULTS.md`): a program that allocates, launches, reads and ends never needs the
//! pool, also if it drops buffers meanwhile. So a context's first [`FIRST`] allocations are plain ones; from then on memory
//! is the pool's.
//!
//! `cuMemFree` waits for the device, and whoever drops a buffer does not. So a first buffer is either live or given up,
//! and what is given up is listed with the stream whose work is behind all uses of it:
//!
//! - An allocation of as many bytes in that stream takes it again: there it is behind those uses. No other stream does.
//! - It is freed once all work that the context had by then is seen done: at the next wait for the context, where what
//!   is kept is given back, where memory is out, and at the context's end.
//!
//! What is given up counts as kept for later buffers.

use super::context::CudaContext;
use super::error::DriverError;
use super::stream::StreamHandle;

/// How many allocations may be plain. `cuMemAlloc` takes 0.01 to 0.13 ms of each, many times what the pool takes: together
/// they cost a fifth of what the pool's first allocation does, at most.
const FIRST: usize = 16;

/// What a context knows of its first buffers.
pub(super) struct FirstBuffers {
    /// How many more may be allocated.
    left: usize,
    /// The addresses of those that are in use.
    live: Vec<u64>,
    given_up: Vec<GivenUp>,
    /// How often one was given up.
    turns: u64,
}

/// A first buffer that nobody has any more.
struct GivenUp {
    address: u64,
    bytes: u64,
    /// Whose work is behind all uses.
    stream: StreamHandle,
    /// How often one had been given up before.
    turn: u64,
}

impl Default for FirstBuffers {
    fn default() -> FirstBuffers {
        FirstBuffers {
            left: FIRST,
            live: Vec::new(),
            given_up: Vec::new(),
            turns: 0,
        }
    }
}

impl FirstBuffers {
    /// What is given up of this length behind this stream's work, in use again.
    fn take_again(&mut self, bytes: u64, stream: StreamHandle) -> Option<u64> {
        let fits = |known: &GivenUp| known.bytes == bytes && known.stream == stream;
        let at = self.given_up.iter().position(fits)?;
        let address = self.given_up.swap_remove(at).address;
        self.live.push(address);
        Some(address)
    }

    /// Whether one more may be allocated, which is then taken for one that was.
    fn may_allocate(&mut self) -> bool {
        let may = self.left > 0;
        self.left -= usize::from(may);
        may
    }

    /// Forgets a live one. Whether it was of the first.
    pub(super) fn forget(&mut self, address: u64) -> bool {
        let at = self.live.iter().position(|known| *known == address);
        at.map(|at| self.live.swap_remove(at)).is_some()
    }

    /// How often one was given up so far: what these used is done once all work is that the context has now.
    pub(super) fn turns(&self) -> u64 {
        self.turns
    }

    /// The bytes of all that are given up.
    pub(super) fn given_up(&self) -> u64 {
        self.given_up.iter().map(|known| known.bytes).sum()
    }
}

impl CudaContext {
    /// Allocates one of the first buffers; `None` where memory is the pool's by now.
    ///
    /// # Errors
    /// As [`CudaContext::alloc`].
    pub(super) fn alloc_first(
        &self,
        bytes: u64,
        stream: StreamHandle,
    ) -> Result<Option<u64>, DriverError> {
        {
            let mut first = self.first.lock();
            if let Some(address) = first.take_again(bytes, stream) {
                self.allocations.lock().insert(address, bytes);
                return Ok(Some(address));
            }
            if !first.may_allocate() {
                return Ok(None);
            }
        }
        let address = self.alloc(bytes)?;
        self.first.lock().live.push(address);
        Ok(Some(address))
    }

    /// Gives up one of the first buffers, behind the work that a stream of the context's own has. Whether it is one.
    pub(super) fn give_up_first(&self, address: u64, stream: StreamHandle) -> bool {
        let mut first = self.first.lock();
        if !first.forget(address) {
            return false;
        }
        if let Some(bytes) = self.allocations.lock().remove(address) {
            let turn = first.turns;
            first.given_up.push(GivenUp {
                address,
                bytes,
                stream,
                turn,
            });
            first.turns += 1;
        }
        true
    }

    /// Frees what is given up, if all work of the context is done.
    pub(super) fn free_given_up(&self) {
        let turns = self.first.lock().turns();
        if turns > 0 && self.is_work_done().unwrap_or(false) {
            self.free_first(turns);
        }
    }

    /// Frees what was given up in the first so many turns; all work that the context had then is done.
    pub(super) fn free_first(&self, turns: u64) {
        let mut refused = Vec::new();
        loop {
            let known = {
                let mut first = self.first.lock();
                let at = first.given_up.iter().position(|known| known.turn < turns);
                at.map(|at| first.given_up.swap_remove(at))
            };
            let Some(known) = known else { break };
            if !self.free_now(known.address) {
                refused.push(known);
            }
        }
        self.first.lock().given_up.append(&mut refused);
    }

    /// Frees what no work uses; a driver that refuses is asked again the next time.
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
            if self.first.get_mut().given_up.is_empty() || self.poison_cause().is_some() {
                return;
            }
            let _ = self.synchronize();
        }
    }
}
