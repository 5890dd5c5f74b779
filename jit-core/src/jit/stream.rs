//! Streams: orders of work beside a device's own.

use std::ffi::c_void;
use std::ops::Deref;
use std::ptr::NonNull;
use std::sync::Arc;

use super::Jit;
use kiln_compiler::error::Result;
use kiln_compiler::later::Later;
use kiln_compiler::lent::dlpack::{Foreign, ManagedTensor, TensorElement};
use kiln_compiler::lent::{DeviceMemory, DeviceStream, Lent, LentMut, lent_stream};
use kiln_compiler::runtime::{Device, Event, OrderedStream, StreamOptions};
use kiln_compiler::value::KernelType;

/// A place among the streams of a device, given back when nobody has it any more.
pub(super) struct Taken {
    device: Device,
    place: usize,
}

impl Drop for Taken {
    fn drop(&mut self) {
        self.device.give_stream_back(self.place);
    }
}

/// A [`Jit`] whose launches go to an order of work of their own. What is launched to one stream is done one after the
/// other, and beside what is launched to others, with this exception: a launch waits for earlier ones of any stream
/// that have written a buffer which it is given, and for those that have read one which it writes. So safe code has
/// the results that it would have with one stream. Clones are the same stream, and any thread may use them.
///
/// ```
/// use kiln::prelude::*;
///
/// use kiln::StreamOptions;
///
/// #[kernel]
/// fn add(x: &mut [u32], y: u32) {
///     x[global_id().x] += y;
/// }
///
/// #[kernel]
/// fn sum(x: &[u32], y: &[u32], out: &mut [u32]) {
///     let i = global_id().x;
///     out[i] = x[i] + y[i];
/// }
///
/// # fn main() -> kiln::Result<()> {
/// let jit = Jit::new()?;
/// let (left, right) = (jit.stream()?, jit.stream_with(StreamOptions::new().priority(-1))?);
/// let (mut x, mut y) = (jit.upload(&[1u32; 64])?, jit.upload(&[2u32; 64])?);
/// let mut out = jit.zeros::<u32>(64)?;
/// add.launch(&left, (2, 32), &mut x, 10)?; // these two may run at the same time
/// right.launch(&add, 2, 32, args!(&mut y, 20u32))?;
/// sum.launch(&left, (2, 32), &x, &y, &mut out)?; // and this comes after both
/// let summed = left.record()?;
/// right.wait(&summed)?; // orders what no buffer says
/// right.then(|| println!("called when the sum is there"))?;
/// right.synchronize()?;
/// assert!(summed.is_done()? && right.is_done()?);
/// assert_eq!(out.to_vec()?, [33; 64]);
/// # Ok(())
/// # }
/// ```
///
/// What order by use does not see are addresses that a kernel takes from memory or from a number, which it says
/// `unsafe` to use: what goes through them is ordered by [`Stream::wait`].
///
/// Devices without streams of their own, a CPU among them, have one order for all: the results are the same. A GPU has
/// 62 beside its own; of more some share one.
#[derive(Clone)]
pub struct Stream(Jit);

impl std::fmt::Debug for Stream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "Stream({} of {:?})",
            self.0.order().place(),
            self.0.device()
        )
    }
}

impl Deref for Stream {
    type Target = Jit;

    fn deref(&self) -> &Jit {
        &self.0
    }
}

impl Jit {
    /// A stream beside the device's own; [`Stream`] has an example.
    ///
    /// # Errors
    /// A device that has failed.
    pub fn stream(&self) -> Result<Stream> {
        self.stream_with(StreamOptions::default())
    }

    /// A stream with options.
    ///
    /// # Errors
    /// As [`Jit::stream`].
    pub fn stream_with(&self, options: StreamOptions) -> Result<Stream> {
        let device = self.0.device.clone();
        let place = device.take_stream(options)?;
        let taken = Arc::new(Taken { device, place });
        Ok(Stream(Jit(self.0.clone(), Some(taken))))
    }

    /// All that the stream was given until now, as [`Later`]: to be waited for when the host has nothing else to do, or awaited
    /// by a task of any executor. So a launch is awaited, with what goes wrong in it.
    ///
    /// ```
    /// use kiln::prelude::*;
    ///
    /// #[kernel]
    /// fn add(x: &mut [u32], n: u32) {
    ///     x[global_id().x] += n;
    /// }
    ///
    /// async fn adds(jit: &Jit, x: &mut Buffer<u32>) -> kiln::Result<()> {
    ///     add.launch(jit, (1, 32), x, 1)?;
    ///     jit.finish_later()?.await // or `.wait()`, outside of tasks
    /// }
    ///
    /// # fn main() -> kiln::Result<()> {
    /// let jit = Jit::new()?;
    /// let mut x = jit.zeros::<u32>(32)?;
    /// # use std::task::{Context, Poll, Waker};
    /// # fn block_on<T>(task: impl Future<Output = T>) -> T {
    /// #     let mut task = std::pin::pin!(task);
    /// #     loop {
    /// #         if let Poll::Ready(value) = task.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
    /// #             return value;
    /// #         }
    /// #     }
    /// # }
    /// block_on(adds(&jit, &mut x))?; // of the executor
    /// assert_eq!(x.to_vec()?, [1; 32]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// A device that has failed. What [`Stream::synchronize`] would tell then is told by what comes back; nobody is told of
    /// what nobody waits for.
    pub fn finish_later(&self) -> Result<Later<()>> {
        let finishing = self.0.device.finish_later(self.order())?;
        Ok(Later::of_stream(finishing))
    }

    /// A stream of other code in the process, as of cust or cudarc, with the features of these names: launches go to it
    /// itself, behind what it was given before, and what it is given later is behind them. It is kept until nobody has
    /// the [`Stream`], or a clone of it, any more. Buffers are ordered between streams as ever; what other code does
    /// in its stream with a buffer that it knows by address is in the order of that stream.
    ///
    /// ```no_run
    /// use kiln::core::lent::RawStream;
    /// use kiln::prelude::*;
    ///
    /// # fn stream_of_a_library() -> *mut std::ffi::c_void { std::ptr::null_mut() }
    /// # fn main() -> kiln::Result<()> {
    /// let jit = Jit::new()?;
    /// // SAFETY: that library destroys its stream after `main`.
    /// let theirs = jit.adopt_stream(unsafe { RawStream::new(stream_of_a_library()) })?;
    /// let mut x = theirs.zeros::<f32>(1024)?;
    /// x.fill(1.0)?;
    /// theirs.synchronize()?;
    /// let raw = jit.raw_stream(); // and the other way round: a `CUstream` for other code
    /// # drop(raw);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// A stream of another context than the device's; the default stream of whichever thread asks; more streams than
    /// a device has; a device that is no GPU, or that has failed.
    pub fn adopt_stream(&self, stream: impl DeviceStream) -> Result<Stream> {
        let device = self.0.device.clone();
        let place = device.adopt_stream(lent_stream(stream))?;
        let taken = Arc::new(Taken { device, place });
        Ok(Stream(Jit(self.0.clone(), Some(taken))))
    }

    /// The stream that launches go to as other code can use it: on a GPU of NVIDIA's a `CUstream`, of which null is the
    /// legacy default stream. It lives as long as the `Jit` or [`Stream`] that gave it; [`Jit::adopt_stream`] has an
    /// example. A CPU has none.
    pub fn raw_stream(&self) -> Option<*mut c_void> {
        match self.order().work() {
            Some(work) => work.as_raw(),
            None => self.0.device.backend().raw_stream(),
        }
    }

    /// A tensor of another library, as Python's have them ([`kiln_compiler::lent::dlpack`] has an example). What the library has
    /// begun on it is in the stream that launches go to, as its `__dlpack__` sees to if it is given
    /// [`Jit::tensor_stream`]. After an error the tensor is still the caller's.
    ///
    /// ```
    /// use kiln::core::lent::dlpack::Foreign;
    /// use kiln::prelude::*;
    ///
    /// # fn main() -> kiln::Result<()> {
    /// let (jit, other) = (Jit::on(Device::cpu()), Jit::on(Device::cpu()));
    /// assert_eq!(other.tensor_stream(), None); // what a library's `__dlpack__` is to be given
    /// let tensor = jit.upload(&[1u8, 2])?.into_tensor(&[2])?.hand_over(other.tensor_stream())?;
    /// // SAFETY: it is a tensor, and nobody else uses it.
    /// let tensor: Foreign<u8> = unsafe { other.take_tensor(tensor)? };
    /// assert_eq!(tensor.to_vec()?, [1, 2]);
    /// // SAFETY: no other code uses the memory afterwards.
    /// unsafe { other.leave_tensor(tensor) };
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Safety
    /// As [`Foreign::from_raw`].
    ///
    /// # Errors
    /// As there.
    pub unsafe fn take_tensor<T: TensorElement>(
        &self,
        tensor: NonNull<ManagedTensor>,
    ) -> Result<Foreign<T>> {
        // SAFETY: passed on to the caller.
        unsafe { Foreign::from_raw(self.device(), self.order().place(), tensor) }
    }

    /// The stream that launches go to, as `__dlpack__` is given it; `None` on a CPU.
    pub fn tensor_stream(&self) -> Option<i64> {
        let raw = self.raw_stream()?.addr() as i64;
        // The legacy default stream has this number, as 0 could be one or the other default stream.
        Some(if raw == 0 { 1 } else { raw })
    }

    /// Ends a tensor by making the stream that launches go to wait for the work on it, and not the host.
    ///
    /// # Safety
    /// As [`Foreign::leave_in`], of this stream.
    pub unsafe fn leave_tensor<T: TensorElement>(&self, tensor: Foreign<T>) {
        // SAFETY: passed on to the caller.
        unsafe { tensor.leave_in(self.order().place()) }
    }

    /// The stream that launches go to.
    #[inline]
    pub(super) fn order(&self) -> &OrderedStream {
        let streams = self.0.device.streams();
        match &self.1 {
            None => streams.own(),
            Some(taken) => streams.at(taken.place),
        }
    }

    /// This `Jit`, with launches to the stream of another on the same device.
    pub(super) fn in_stream(&self, stream: &Stream) -> Result<Jit> {
        self.0.device.check_same(&stream.0.0.device)?;
        Ok(Jit(self.0.clone(), stream.0.1.clone()))
    }
}

impl Stream {
    /// Memory of other code, to be read, without waiting: what other code has begun on it is in this stream, which is
    /// [adopted](Jit::adopt_stream), and what it begins once the buffer is dropped is in it, too.
    ///
    /// ```no_run
    /// use kiln::core::lent::{DeviceMemory, RawStream};
    /// use kiln::prelude::*;
    ///
    /// #[kernel]
    /// fn double(x: &[f32], y: &mut [f32]) {
    ///     let i = global_id().x;
    ///     y[i] = 2.0 * x[i];
    /// }
    ///
    /// # fn run(raw: *mut std::ffi::c_void, input: impl DeviceMemory<Element = f32>, mut output: impl DeviceMemory<Element = f32>) -> kiln::Result<()> {
    /// let jit = Jit::new()?;
    /// // SAFETY: a stream that lives until the end of the program.
    /// let theirs = jit.adopt_stream(unsafe { RawStream::new(raw) })?;
    /// // SAFETY: a library uses both in that stream alone; what is returned is dropped.
    /// let (x, mut y) = unsafe { (theirs.lend(&input)?, theirs.lend_mut(&mut output)?) };
    /// double.launch(&theirs, (1, 32), &x, &mut y)?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Safety
    /// As [`Lent::new`], but that what other code has begun on the memory, or begins once the buffer is dropped, is
    /// given to this stream, or behind it.
    ///
    /// # Errors
    /// As there.
    pub unsafe fn lend<'a, T: KernelType>(
        &'a self,
        memory: &'a impl DeviceMemory<Element = T>,
    ) -> Result<Lent<'a, T>> {
        // SAFETY: passed on to the caller.
        unsafe { Lent::in_place(self.device(), self.order().place(), memory) }
    }

    /// Memory of other code, to be read and written, without waiting; [`Stream::lend`] has an example.
    ///
    /// # Safety
    /// As there, and as [`LentMut::new`].
    ///
    /// # Errors
    /// As there.
    pub unsafe fn lend_mut<'a, T: KernelType>(
        &'a self,
        memory: &'a mut impl DeviceMemory<Element = T>,
    ) -> Result<LentMut<'a, T>> {
        // SAFETY: passed on to the caller.
        unsafe { LentMut::in_place(self.device(), self.order().place(), memory) }
    }

    /// Waits until the work of this stream is done.
    ///
    /// # Errors
    /// A fault that a launch of this stream has left, once; what a call of [`Stream::then`] has panicked with; a device
    /// that has failed. A CPU does not tell streams apart, and tells what any launch has left.
    pub fn synchronize(&self) -> Result<()> {
        Ok(self.0.0.device.synchronize_stream(self.0.order())?)
    }

    /// Whether the work of this stream is done.
    ///
    /// # Errors
    /// A device that has failed.
    pub fn is_done(&self) -> Result<bool> {
        Ok(self.0.0.device.is_done(self.0.order())?)
    }

    /// Marks the current end of the work of this stream.
    ///
    /// # Errors
    /// A device that has failed.
    pub fn record(&self) -> Result<Event> {
        self.0.record()
    }

    /// Makes what this stream is given from now on wait for an event of any stream of the device, without waiting
    /// here.
    ///
    /// # Errors
    /// An event of another device; a device that has failed.
    pub fn wait(&self, event: &Event) -> Result<()> {
        event.precede(&self.0.0.device, self.0.order())
    }

    /// Calls this on a thread of the device's when all is done that the stream was given so far; what it is given
    /// later waits until the call has returned.
    ///
    /// The call may not launch, copy or wait, which are errors there, and should not wait for another stream's work,
    /// which may be behind it. After an error that ends the device's context it is not made. Buffers that it drops are
    /// freed later.
    ///
    /// # Errors
    /// A device that has failed. What the call panics with is told by who waits for the stream next.
    pub fn then(&self, call: impl FnOnce() + Send + 'static) -> Result<()> {
        let device = &self.0.0.device;
        Ok(device.then(self.0.order(), Box::new(call))?)
    }
}
