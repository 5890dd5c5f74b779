//! Streams beside a device's own, and what the host does with memory that several streams use.
//!
//! The order is that of [`crate::order`]; here is who asks for it: the copies, the end of a buffer, waiting, and calls
//! on the host.

use std::any::Any;
use std::cell::Cell;
use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::NonNull;
use std::sync::Arc;
use std::time::Duration;

use kiln_ir::abi::LaunchArgs;
use kiln_ir::code::KernelInfo;
use kiln_ir::launch::LaunchConfig;

use crate::adopted::LentStream;
use crate::device::{Device, LoadedCode, Marker, MemoryStats};
use crate::error::{DeviceError, Result};
use crate::order::{OrderedStream, Sharing, Uses};
use crate::rows::{Laid, Rows};

/// What a stream is asked for with.
///
/// ```
/// use kiln_runtime::StreamOptions;
///
/// let urgent = StreamOptions::new().priority(-1);
/// assert!(urgent != StreamOptions::default());
/// ```
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct StreamOptions {
    pub(crate) priority: i32,
}

impl StreamOptions {
    /// The options that a stream has by itself.
    pub fn new() -> StreamOptions {
        StreamOptions::default()
    }

    /// Sets the priority, 0 if it is not said. Of the blocks that wait for a place on the device those of the stream
    /// with the lower number begin first (CUDA guide, "Stream Priorities"); a number beyond those that the device
    /// has is the nearest that it has. On a CPU it means nothing.
    #[must_use = "it gives the options back"]
    pub fn priority(self, priority: i32) -> StreamOptions {
        StreamOptions { priority }
    }
}

/// What is done on the host when a stream comes to it.
pub type HostCall = Box<dyn FnOnce() + Send>;

/// A stream of a backend's, beside the one that every device has. What it is given is done in order; beside the work
/// of other streams, unless it waits for them.
pub trait BackendStream: Send + Sync {
    /// For the backend that made it to get its own type back.
    fn as_any(&self) -> &dyn Any;
    /// Hands a launch to the stream, as [`Backend::launch`](crate::Backend::launch) does to the device's own.
    ///
    /// # Errors
    /// A launch that the device refuses, a device that has failed.
    fn launch(
        &self,
        code: &dyn LoadedCode,
        kernel: &Arc<KernelInfo>,
        config: &LaunchConfig,
        args: &mut LaunchArgs<'_>,
        limit: Option<Duration>,
    ) -> Result<()>;
    /// Copies to the device, behind the work that the stream has; it has ended on return.
    ///
    /// # Errors
    /// A device that has failed.
    fn upload(&self, address: u64, bytes: &[MaybeUninit<u8>]) -> Result<()>;
    /// Copies from the device, behind the work that the stream has; it has ended on return.
    ///
    /// # Errors
    /// A device that has failed.
    fn download(&self, address: u64, bytes: &mut [u8]) -> Result<()>;
    /// Copies between memory of the device, behind the work that the stream has; the ranges do not overlap.
    ///
    /// # Errors
    /// A device that has failed.
    fn copy(&self, to: u64, from: u64, bytes: usize) -> Result<()>;
    /// Copies rows between memory of the device, behind the work that the stream has; they do not overlap.
    ///
    /// # Errors
    /// A device that has failed.
    fn copy_rows(&self, to: Laid, from: Laid, rows: Rows) -> Result<()> {
        rows.one_by_one((to, from), |to, from, bytes| self.copy(to, from, bytes))
    }
    /// Copies rows to the device, behind the work that the stream has; they have ended on return.
    ///
    /// # Errors
    /// A device that has failed.
    fn upload_rows(
        &self,
        to: Laid,
        bytes: &[MaybeUninit<u8>],
        from: Laid,
        rows: Rows,
    ) -> Result<()> {
        rows.upload_one_by_one(to, (bytes, from), |to, bytes| self.upload(to, bytes))
    }
    /// Copies rows from the device, behind the work that the stream has; they have ended on return.
    ///
    /// # Errors
    /// A device that has failed.
    fn download_rows(&self, from: Laid, bytes: &mut [u8], to: Laid, rows: Rows) -> Result<()> {
        rows.download_one_by_one(from, (bytes, to), |from, bytes| self.download(from, bytes))
    }
    /// Copies to the device, behind the work that the stream has, without waiting for it.
    ///
    /// # Safety
    /// As [`Backend::upload_later`](crate::Backend::upload_later).
    ///
    /// # Errors
    /// A device that has failed.
    unsafe fn upload_later(&self, address: u64, from: NonNull<u8>, bytes: usize) -> Result<()>;
    /// Copies from the device, behind the work that the stream has, without waiting for it.
    ///
    /// # Safety
    /// As [`Backend::download_later`](crate::Backend::download_later).
    ///
    /// # Errors
    /// A device that has failed.
    unsafe fn download_later(&self, address: u64, to: NonNull<u8>, bytes: usize) -> Result<()>;
    /// Allocates memory that is there behind the work that the stream has. `None`: the device allocates it.
    ///
    /// # Errors
    /// No memory; a device that has failed.
    fn alloc(&self, _bytes: usize) -> Result<Option<u64>> {
        Ok(None)
    }
    /// Fills what [`BackendStream::alloc`] gave with zero bytes.
    ///
    /// # Errors
    /// A device that has failed.
    fn clear(&self, _address: u64, _bytes: usize) -> Result<()> {
        Err(DeviceError::Internal(
            "a stream that allocates nothing was given memory to clear",
        ))
    }
    /// Frees memory of a device that [allocates in order](crate::Backend::allocates_in_order) behind the work that the
    /// stream has. `false`: it is of another kind, which the device frees.
    fn free(&self, _address: u64) -> bool {
        false
    }
    /// Makes later work of this stream wait for what another was given so far; `None` is the device's own.
    ///
    /// # Errors
    /// A device that has failed.
    fn wait_for(&self, other: Option<&dyn BackendStream>) -> Result<()>;
    /// Makes later work wait for a mark of any stream of the device.
    ///
    /// # Errors
    /// A mark of another device; a device that has failed.
    fn wait(&self, marker: &dyn Marker) -> Result<()>;
    /// Marks the end of what the stream was given so far.
    ///
    /// # Errors
    /// A device that has failed.
    fn mark(&self) -> Result<Box<dyn Marker>>;
    /// Waits until the stream's work is done. A fault that one of its launches left is the error, once.
    ///
    /// # Errors
    /// The fault; a device that has failed.
    fn synchronize(&self) -> Result<()>;
    /// A fault that a launch of the stream left which has ended, once, without waiting.
    ///
    /// # Errors
    /// The fault.
    fn fault(&self) -> Result<()>;
    /// Whether the stream's work is done.
    ///
    /// # Errors
    /// A device that has failed.
    fn is_done(&self) -> Result<bool>;
    /// Calls this on the host when the stream's work is done; later work waits until it has returned.
    ///
    /// # Errors
    /// A device that has failed.
    fn then(&self, call: HostCall) -> Result<()>;
    /// The stream as other code can use it: on a GPU of NVIDIA's a `CUstream`.
    fn as_raw(&self) -> Option<*mut c_void> {
        None
    }
    /// Has the device's own stream wait for the work of one of other code's, and stands for the device's own from
    /// here on.
    ///
    /// # Errors
    /// A stream that is no other code's; a device that has failed.
    fn leave(&self) -> Result<()> {
        Err(DeviceError::Internal("no stream of other code was left"))
    }
    /// Stands for another stream of other code after the one that it has left, and has it wait for the device's own.
    ///
    /// # Errors
    /// As [`BackendStream::leave`]; a stream of another context.
    fn go_on(&self, _: &LentStream) -> Result<()> {
        Err(DeviceError::Internal("no stream of other code was left"))
    }
}

thread_local! {
    /// Whether this thread is in a call of a stream's.
    static CALLED: Cell<bool> = const { Cell::new(false) };
}

/// Refuses to ask a device for something in a call that a stream makes, which the device waits for.
///
/// # Errors
/// [`DeviceError::InHostCall`].
#[inline]
pub fn outside_of_calls() -> Result<()> {
    match is_in_call() {
        false => Ok(()),
        true => Err(DeviceError::InHostCall),
    }
}

/// Whether this thread is in a call that a stream makes.
#[inline]
pub fn is_in_call() -> bool {
    CALLED.get()
}

/// Memory of a device that several streams use, and the copies and the end of it.
impl Device {
    /// Allocates memory that [`Device::free`] frees, and whose uses are these.
    ///
    /// # Errors
    /// No memory; a device that has failed.
    pub fn alloc(&self, bytes: usize, uses: &Uses) -> Result<u64> {
        self.free_left()?;
        let address = self.told(self.backend().alloc(bytes))?;
        if self.backend().allocates_in_order() && bytes > 0 {
            // To another stream the memory is not there before.
            let own = self.streams().own();
            own.note(uses, true, own.count());
        }
        Ok(address)
    }

    /// What the device's memory is used for; nothing of devices that do not count it.
    ///
    /// ```
    /// use kiln_runtime::{Device, Uses};
    ///
    /// # fn main() -> Result<(), kiln_runtime::DeviceError> {
    /// let (device, uses) = (Device::cpu(), Uses::default());
    /// let address = device.alloc(1 << 20, &uses)?;
    /// assert_eq!(device.memory_stats().used, 1 << 20);
    /// device.keep_freed(1 << 30)?; // of what is freed from now on
    /// device.free(address, 1 << 20, &uses);
    /// device.synchronize()?;
    /// let stats = device.memory_stats();
    /// assert_eq!((stats.used, stats.peak, stats.pooled), (0, 1 << 20, 1 << 20));
    /// device.trim()?;
    /// assert_eq!(device.memory_stats().pooled, 0);
    /// # Ok(())
    /// # }
    /// ```
    pub fn memory_stats(&self) -> MemoryStats {
        self.backend().memory_stats().unwrap_or_default()
    }

    /// Sets how much of what is freed is kept for later buffers: on a GPU all that there is if this is not said, on a CPU
    /// 512 MiB. More is given back when it is freed, on a GPU when the device is next waited for.
    ///
    /// # Errors
    /// A device that has failed.
    pub fn keep_freed(&self, bytes: u64) -> Result<()> {
        outside_of_calls()?;
        self.backend().keep_freed(bytes)
    }

    /// Gives what is kept for later buffers back to the system, for other programs or libraries. What work may still
    /// use stays: wait for that first. A buffer for which there is no memory left does so by itself.
    ///
    /// # Errors
    /// A device that has failed.
    pub fn trim(&self) -> Result<()> {
        outside_of_calls()?;
        self.backend().trim()
    }

    /// [`Device::alloc`] in a stream of the device, where that allocates: the memory is there for the work that the stream
    /// is given next, and others wait for it as for a use.
    ///
    /// # Errors
    /// As [`Device::alloc`].
    pub fn alloc_in(&self, stream: &OrderedStream, bytes: usize, uses: &Uses) -> Result<u64> {
        match self.alloc_beside(stream, bytes, uses)? {
            Some(address) => Ok(address),
            None => self.alloc(bytes, uses),
        }
    }

    /// [`Device::alloc_zeros`] in a stream, as [`Device::alloc_in`].
    ///
    /// # Errors
    /// As [`Device::alloc`].
    pub fn alloc_zeros_in(&self, stream: &OrderedStream, bytes: usize, uses: &Uses) -> Result<u64> {
        let (Some(address), Some(work)) = (self.alloc_beside(stream, bytes, uses)?, stream.work())
        else {
            return self.alloc_zeros(bytes, uses);
        };
        if let Err(error) = self.told(work.clear(address, bytes)) {
            self.free(address, bytes, uses);
            return Err(error);
        }
        stream.note(uses, true, stream.count());
        Ok(address)
    }

    fn alloc_beside(
        &self,
        stream: &OrderedStream,
        bytes: usize,
        uses: &Uses,
    ) -> Result<Option<u64>> {
        let Some(work) = stream.work().filter(|_| bytes > 0) else {
            return Ok(None);
        };
        outside_of_calls()?;
        self.free_left()?;
        let address = self.told(work.alloc(bytes))?;
        if address.is_some() {
            stream.note(uses, true, stream.count());
        }
        Ok(address)
    }

    /// Allocates memory of zeros.
    ///
    /// # Errors
    /// As [`Device::alloc`].
    pub fn alloc_zeros(&self, bytes: usize, uses: &Uses) -> Result<u64> {
        self.free_left()?;
        let address = self.told(self.backend().alloc_zeros(bytes))?;
        let own = self.streams().own();
        own.note(uses, true, own.count());
        Ok(address)
    }

    /// Copies to the device, behind all uses of the memory.
    ///
    /// # Errors
    /// A device that has failed.
    pub fn upload(&self, address: u64, bytes: &[MaybeUninit<u8>], uses: &Uses) -> Result<()> {
        outside_of_calls()?;
        self.told(self.upload_untold(address, bytes, uses))
    }

    fn upload_untold(&self, address: u64, bytes: &[MaybeUninit<u8>], uses: &Uses) -> Result<()> {
        let (backend, streams) = (self.backend(), self.streams());
        let _shared = Sharing::of([(uses, true)]);
        let stream = streams.writer_of(uses);
        streams.order(&**backend, stream, uses, true)?;
        let copied = match stream.work() {
            Some(work) => work.upload(address, bytes),
            None => backend.upload(address, bytes),
        };
        // One that failed may have begun.
        stream.note(uses, true, stream.count());
        copied
    }

    /// Copies from the device, behind the last use that wrote the memory.
    ///
    /// # Errors
    /// A device that has failed.
    pub fn download(&self, address: u64, bytes: &mut [u8], uses: &Uses) -> Result<()> {
        outside_of_calls()?;
        self.waited(self.download_untold(address, bytes, uses))
    }

    fn download_untold(&self, address: u64, bytes: &mut [u8], uses: &Uses) -> Result<()> {
        let (backend, streams) = (self.backend(), self.streams());
        let _shared = Sharing::of([(uses, false)]);
        let stream = streams.writer_of(uses);
        let copied = match stream.work() {
            Some(work) => work.download(address, bytes),
            None => backend.download(address, bytes),
        };
        if copied.is_err() {
            // It may have begun.
            stream.note(uses, false, stream.count());
        }
        copied
    }

    /// Reads the start of memory that launches share, which says how many bytes are used behind it, and these, and clears
    /// all of them, without a launch between that uses it.
    ///
    /// # Errors
    /// A device that has failed.
    pub fn read_and_clear(
        &self,
        address: u64,
        head: usize,
        used: impl FnOnce(&[u8]) -> usize,
        uses: &Uses,
    ) -> Result<Vec<u8>> {
        outside_of_calls()?;
        let (backend, streams) = (self.backend(), self.streams());
        let _shared = Sharing::of([(uses, true)]);
        let stream = streams.writer_of(uses);
        let read = |from: u64, bytes: &mut [u8]| match stream.work() {
            Some(work) => work.download(from, bytes),
            None => backend.download(from, bytes),
        };
        let mut bytes = vec![0; head];
        read(address, &mut bytes)?;
        let used = used(&bytes);
        bytes.resize(head + used, 0);
        read(address + head as u64, &mut bytes[head..])?;
        streams.order(&**backend, stream, uses, true)?;
        let cleared = match stream.work() {
            Some(work) => work.clear(address, bytes.len()),
            None => backend.clear(address, bytes.len()),
        };
        stream.note(uses, true, stream.count());
        cleared.map(|()| bytes)
    }

    /// Copies between memory of the device: `to` behind all its uses, `from` behind the last that wrote it. Nobody
    /// waits for it here.
    ///
    /// # Errors
    /// A device that has failed.
    pub fn copy(&self, to: (u64, &Uses), from: (u64, &Uses), bytes: usize) -> Result<()> {
        outside_of_calls()?;
        self.told(self.copy_untold(to, from, bytes))
    }

    fn copy_untold(&self, to: (u64, &Uses), from: (u64, &Uses), bytes: usize) -> Result<()> {
        let (backend, streams) = (&**self.backend(), self.streams());
        let _shared = Sharing::of([(to.1, true), (from.1, false)]);
        let stream = streams.writer_of(from.1);
        streams.order(backend, stream, from.1, false)?;
        streams.order(backend, stream, to.1, true)?;
        let copied = match stream.work() {
            Some(work) => work.copy(to.0, from.0, bytes),
            None => backend.copy(to.0, from.0, bytes),
        };
        // One that failed may have begun.
        let number = stream.count();
        stream.note(from.1, false, number);
        stream.note(to.1, true, number);
        copied
    }

    /// Fills memory with what its first `given` bytes are, a divisor of them all, behind all its uses.
    ///
    /// # Errors
    /// A device that has failed.
    pub fn repeat(&self, address: u64, given: usize, bytes: usize, uses: &Uses) -> Result<()> {
        let mut done = given;
        while done > 0 && done < bytes {
            let count = done.min(bytes - done);
            self.copy((address + done as u64, uses), (address, uses), count)?;
            done += count;
        }
        Ok(())
    }

    /// Waits for the last use that wrote the memory, for who is about to read it.
    ///
    /// # Errors
    /// A fault that the stream or one that it has waited for has left, as far as the device knows that it matters to
    /// this memory; a device that has failed.
    pub fn synchronize_memory(&self, address: u64, bytes: usize, uses: &Uses) -> Result<()> {
        outside_of_calls()?;
        self.waited(self.synchronize_memory_untold(address, bytes, uses))
    }

    fn synchronize_memory_untold(&self, address: u64, bytes: usize, uses: &Uses) -> Result<()> {
        let (backend, streams) = (&**self.backend(), self.streams());
        let stream = streams.writer_of(uses);
        // What was written may come from what a launch there has left unfinished.
        let unseen = streams.unseen_before(stream);
        match stream.work() {
            Some(_) => streams.synchronize(backend, stream)?,
            None => backend.synchronize_memory(address, bytes)?,
        }
        streams.faults_of(backend, &unseen)
    }

    /// Frees memory behind all its uses, later where this is a call that a stream makes, or the order cannot be had now:
    /// nothing is freed under work. On a device that is lost it stays.
    pub fn free(&self, address: u64, bytes: usize, uses: &Uses) {
        if outside_of_calls().is_err() {
            let uses = uses.take();
            self.left().put(|left| left.push((address, bytes, uses)));
            return;
        }
        let (backend, streams) = (&**self.backend(), self.streams());
        // Who frees behind the work of the stream that used it last makes no other wait.
        let last = streams.last_of(uses);
        if let (true, Some(work)) = (backend.allocates_in_order(), last.work())
            && streams.order(backend, last, uses, true).is_ok()
            && work.free(address)
        {
            return;
        }
        match streams.order(backend, streams.own(), uses, true) {
            Ok(()) => backend.free(address, bytes),
            Err(error) if error.is_loss() => {}
            Err(_) => (self.left()).put(|left| left.push((address, bytes, uses.take()))),
        }
    }

    /// Frees what was dropped in calls that streams make.
    fn free_left(&self) -> Result<()> {
        outside_of_calls()?;
        // In a line of its own, as freeing may wait.
        let left = self.left().take();
        for (address, bytes, uses) in left.into_iter().flatten() {
            self.free(address, bytes, &uses);
        }
        Ok(())
    }

    /// Waits until everything that was given to any stream is done.
    ///
    /// # Errors
    /// A fault that a kernel left, once, and of several the first; what a call on the host has panicked with; a device
    /// that has failed.
    pub fn synchronize(&self) -> Result<()> {
        outside_of_calls()?;
        // In two arms, as what is well is then not moved.
        match self.waited(self.streams().synchronize_all(&**self.backend())) {
            Ok(()) => self.free_left(),
            Err(error) => {
                let _ = self.free_left();
                Err(error)
            }
        }
    }

    /// A stream of its own, if the device has several and not all are taken; [`Device::give_stream_back`] gives it
    /// back.
    ///
    /// # Errors
    /// A device that has failed.
    pub fn take_stream(&self, options: StreamOptions) -> Result<usize> {
        outside_of_calls()?;
        self.streams().take(&**self.backend(), options)
    }

    /// Gives back what [`Device::take_stream`] gave.
    pub fn give_stream_back(&self, place: usize) {
        // In a call that a stream makes nothing is asked of the driver: the next who wants a stream does.
        if self.streams().give_back(place) && outside_of_calls().is_ok() {
            self.streams().leave_unused();
        }
    }

    /// Waits until a stream's work is done.
    ///
    /// # Errors
    /// As [`Device::synchronize`], of this stream alone where the device tells streams apart.
    pub fn synchronize_stream(&self, stream: &OrderedStream) -> Result<()> {
        outside_of_calls()?;
        self.waited(self.streams().synchronize(&**self.backend(), stream))
    }

    /// Whether a stream's work is done.
    ///
    /// # Errors
    /// A device that has failed.
    pub fn is_done(&self, stream: &OrderedStream) -> Result<bool> {
        outside_of_calls()?;
        match stream.work() {
            Some(work) => work.is_done(),
            None => self.backend().is_done(),
        }
    }

    /// Makes later work of a stream wait for a mark.
    ///
    /// # Errors
    /// A mark of another device; a device that has failed.
    pub fn wait(&self, stream: &OrderedStream, marker: &dyn Marker) -> Result<()> {
        outside_of_calls()?;
        match stream.work() {
            Some(work) => work.wait(marker),
            None => self.backend().wait(marker),
        }
    }

    /// Marks the end of what a stream was given so far.
    ///
    /// # Errors
    /// A device that has failed.
    pub fn mark(&self, stream: &OrderedStream) -> Result<Box<dyn Marker>> {
        outside_of_calls()?;
        match stream.work() {
            Some(work) => work.mark(),
            None => self.backend().mark(),
        }
    }

    /// Calls `call` on the host when a stream's work is done. What it panics with is told by who waits for the stream
    /// next.
    ///
    /// # Errors
    /// A device that has failed.
    pub fn then(&self, stream: &OrderedStream, call: HostCall) -> Result<()> {
        outside_of_calls()?;
        let (device, panicked) = (self.clone(), stream.panic_place());
        let guarded = Box::new(move || {
            CALLED.set(true);
            if let Err(panic) = catch_unwind(AssertUnwindSafe(call)) {
                panicked.put(|first| _ = first.get_or_insert_with(|| message(&*panic)));
            }
            // The end of a device waits for its work, this call among it.
            device.keep_if_last();
            CALLED.set(false);
        });
        match stream.work() {
            Some(work) => work.then(guarded),
            None => self.backend().then(guarded),
        }
    }
}

/// What a panic says.
fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    text.unwrap_or_else(|| "something that is no text".to_owned())
}
