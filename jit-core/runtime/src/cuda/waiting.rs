//! Waiting for the device, for a limited time if there is a limit.
//!
//! Nothing ends a kernel on a GPU but the end of its context, so what a limit bounds is the waiting. A
//! call that would wait asks the driver instead whether the work is done, until its time is over, and
//! then says what is known. Memory that is freed meanwhile may still be the kernel's: it is kept, and
//! freed once the work is done, should it ever be.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::context::CudaContext;
use super::error::DriverError;
use super::stream::StreamHandle;
use super::table::Code;

/// The code for work that is not finished.
pub(super) const NOT_READY: Code = 600;

/// Memory that could not be freed since the device is still at work.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct KeptMemory {
    /// How many allocations.
    pub allocations: usize,
    /// The bytes of the memory that is kept.
    pub bytes: u64,
}

/// What a context knows about waiting.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    /// Nanoseconds that a call may wait; 0 for as long as it takes.
    limit: AtomicU64,
    /// Whether a call has waited in vain since the work was last seen done.
    overdue: AtomicBool,
    /// What is to be freed: address and bytes.
    kept: Mutex<Vec<(u64, u64)>>,
}

impl CudaContext {
    /// From now on a call that waits for the device gives up after this long; `None`: never.
    pub fn set_wait_limit(&self, limit: Option<Duration>) {
        let nanos = limit.map_or(0, |limit| {
            u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX).max(1)
        });
        // Each launch says so: threads that launch at once shall not take a line of memory from each other.
        if self.waiting.limit.load(Relaxed) != nanos {
            self.waiting.limit.store(nanos, Relaxed);
        }
    }

    /// For how long a call may wait; `None`: for as long as it takes.
    pub(crate) fn wait_limit(&self) -> Option<Duration> {
        match self.waiting.limit.load(Relaxed) {
            0 => None,
            nanos => Some(Duration::from_nanos(nanos)),
        }
    }

    /// The error of who has asked for so long, by this call, whether work is done.
    pub(crate) fn overdue(&self, call: &'static str, limit: Duration) -> DriverError {
        self.waiting.overdue.store(true, Relaxed);
        self.still_running(call, limit)
    }

    /// What is kept since the device is at work longer than the limit.
    pub fn kept_memory(&self) -> KeptMemory {
        let kept = self.waiting.kept.lock();
        KeptMemory {
            allocations: kept.len(),
            bytes: kept.iter().map(|(_, bytes)| bytes).sum(),
        }
    }

    /// Waits until this says that what a call waits for is done, if there is a limit; the call that is made next
    /// then does not wait.
    pub(super) fn wait_within_limit(
        &self,
        call: &'static str,
        is_done: impl Fn() -> Result<bool, DriverError>,
    ) -> Result<(), DriverError> {
        let Some(limit) = self.wait_limit() else {
            return Ok(());
        };
        let start = Instant::now();
        let mut pause = Duration::from_micros(10);
        while !is_done()? {
            if start.elapsed() >= limit {
                return Err(self.overdue(call, limit));
            }
            std::thread::sleep(pause);
            pause = (2 * pause).min(Duration::from_millis(1));
        }
        // What was waited for may be one stream of several.
        let was_overdue = self.waiting.overdue.load(Relaxed) || self.kept_memory().allocations > 0;
        if was_overdue && self.is_work_done()? {
            self.waiting.overdue.store(false, Relaxed);
            self.free_kept();
        }
        Ok(())
    }

    fn still_running(&self, call: &'static str, limit: Duration) -> DriverError {
        let (kernel, several_kernels) = self.recent.suspect();
        let kept = self.kept_memory();
        DriverError::StillRunning {
            call,
            limit,
            kernel: kernel.map(|kernel: Arc<str>| kernel.to_string()),
            several_kernels,
            kept,
        }
    }

    /// Whether memory may be freed now: no kernel can be using it. Waits for that as long as a call
    /// may, but once in vain only.
    pub(super) fn may_free(&self) -> bool {
        if self.wait_limit().is_none() {
            return true;
        }
        if self.waiting.overdue.load(Relaxed) {
            return self.is_work_done().unwrap_or(true);
        }
        !matches!(
            self.wait_within_limit("cuMemFree", || self.is_work_done()),
            Err(DriverError::StillRunning { .. })
        )
    }

    /// Keeps memory that a kernel may be using.
    pub(super) fn keep(&self, address: u64, bytes: u64) {
        self.waiting.kept.lock().push((address, bytes));
    }

    fn free_kept(&self) {
        let kept = std::mem::take(&mut *self.waiting.kept.lock());
        for (address, _) in kept {
            self.release("cuMemFree", |table| {
                // SAFETY: it was a live allocation that nothing lists any more, and the work that used
                // it is done.
                unsafe { (table.cuMemFree_v2)(address) }
            });
        }
    }

    /// Whether the device has work that it was given long ago; then nothing of the context can be
    /// freed without waiting.
    pub(super) fn is_overdue(&self) -> bool {
        self.waiting.overdue.load(Relaxed) && !self.is_work_done().unwrap_or(true)
    }

    /// Whether the work of all streams is done.
    pub(super) fn is_work_done(&self) -> Result<bool, DriverError> {
        // Held while the streams are asked, so that none of them is destroyed.
        let beside = self.beside.lock();
        let handles = std::iter::once(StreamHandle::DEFAULT).chain(beside.iter().copied());
        for handle in handles {
            if !self.is_stream_done(handle)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether the work of stream 0 is done.
    pub(super) fn is_stream_0_done(&self) -> Result<bool, DriverError> {
        self.is_stream_done(StreamHandle::DEFAULT)
    }

    fn is_stream_done(&self, stream: StreamHandle) -> Result<bool, DriverError> {
        let table = self.enter()?;
        // SAFETY: stream 0 of the current context is always there, and the others are listed while they are.
        match unsafe { (table.cuStreamQuery)(stream.0) } {
            NOT_READY => Ok(false),
            code => self.check("cuStreamQuery", code).map(|()| true),
        }
    }
}
