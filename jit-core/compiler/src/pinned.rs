//! Copies that the host does not wait for, and the memory that they are given.

use std::future::Future;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use kiln_runtime::{Device, HostMemory, Pending};

use crate::error::{Error, Result};
use crate::part::Part;
use crate::value::{KernelType, check_values};

/// Values in memory of the host that a device copies from and to while the host goes on. On a GPU that is pinned memory,
/// which copies are faster from, too.
///
/// ```
/// use kiln::prelude::*;
///
/// use std::time::Duration;
///
/// use kiln::core::pinned::Pinned;
///
/// # fn main() -> kiln::Result<()> {
/// let device = Device::best()?;
/// let mut x = Buffer::<u32>::zeros(&device, 4)?;
/// let mut values = Pinned::from_slice(&device, &[1u32, 2, 3])?;
/// values[0] = 7;
/// let written = x.write_later(values)?; // the copy has the values until it is done
/// let values = written.wait()?;
/// assert_eq!(*values, [7, 2, 3]);
/// let read = x.read_later(values)?;
/// println!("{}", read.is_done()?);
/// let mut values = read.wait()?; // or `.await`
/// assert_eq!(*values, [7, 2, 3]);
/// let mut read = x.read_later(values)?;
/// values = match read.wait_for(Duration::from_secs(1))? {
///     Some(values) => values,
///     None => read.wait()?, // it takes longer
/// };
/// assert_eq!(*values, [7, 2, 3]);
/// # Ok(())
/// # }
/// ```
pub struct Pinned<T> {
    memory: HostMemory,
    len: usize,
    element: PhantomData<T>,
}

impl<T> std::fmt::Debug for Pinned<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Pinned<{}>({})", std::any::type_name::<T>(), self.len)
    }
}

impl<T: KernelType> Pinned<T> {
    /// A copy of these values.
    ///
    /// # Errors
    /// Out of memory, or a device that has failed.
    pub fn from_slice(device: &Device, values: &[T]) -> Result<Pinned<T>> {
        let memory = device.alloc_host(size_of_val(values))?;
        let to = memory.start().cast::<T>().as_ptr();
        // SAFETY: the memory is as long as the values, at an address that is a multiple of 256, and is nobody else's.
        unsafe { to.copy_from_nonoverlapping(values.as_ptr(), values.len()) };
        Ok(Pinned::with(memory, values.len()))
    }

    /// What a device has written there.
    fn of(memory: HostMemory, len: usize) -> Result<Pinned<T>> {
        if !T::ANY_BITS {
            // SAFETY: the memory is so long, was zeros at first, and no copy uses it any more.
            let bytes =
                unsafe { std::slice::from_raw_parts(memory.start().as_ptr(), memory.bytes()) };
            check_values::<T>(bytes)?;
        }
        Ok(Pinned::with(memory, len))
    }

    /// The first `len` values in the memory.
    fn with(memory: HostMemory, len: usize) -> Pinned<T> {
        Pinned {
            memory,
            len,
            element: PhantomData,
        }
    }
}

impl<T> Deref for Pinned<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: there are so many values, written by `from_slice` or looked at by `of`; the address is a multiple of
        // 256, and no kernel's type asks for more.
        unsafe { std::slice::from_raw_parts(self.memory.start().cast().as_ptr(), self.len) }
    }
}

impl<T> DerefMut for Pinned<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as above; the memory is this value's alone.
        unsafe { std::slice::from_raw_parts_mut(self.memory.start().cast().as_ptr(), self.len) }
    }
}

impl<T: KernelType> Part<T> {
    /// Overwrites the first values with these, after all work that uses the buffer, without waiting for it;
    /// [`Pinned`] has an example.
    ///
    /// # Errors
    /// More values than the buffer has, or a device that has failed. The values are lost then.
    pub fn write_later(&mut self, values: Pinned<T>) -> Result<Later<Pinned<T>>> {
        self.has_room(values.len)?;
        let len = values.len;
        let pending = self
            .device()
            .upload_later(self.address(), values.memory, self.uses())?;
        // They are the values that they were; between their fields there may be bytes that nobody wrote.
        Ok(Later::of(pending, move |memory| {
            Ok(Pinned::with(memory, len))
        }))
    }

    /// Copies the first values over these, after the work that has written the buffer, without waiting for it.
    ///
    /// # Errors
    /// More values than the buffer has, or a device that has failed. The values are lost then.
    pub fn read_later(&self, values: Pinned<T>) -> Result<Later<Pinned<T>>> {
        self.has_room(values.len)?;
        let (len, device) = (values.len, self.device());
        let address = self.address();
        let pending = device.download_later(address, self.buffer(), values.memory, self.uses())?;
        Ok(Later::of(pending, move |memory| Pinned::of(memory, len)))
    }
}

/// What a copy gives back when it is done. Who drops it neither waits nor stops the copy, whose memory is freed later.
///
/// It is a future, for any executor: a thread of Kiln's looks whether the copy is done and wakes the task. With a time limit
/// (`JitOptions::time_limit`) a task waits on a GPU for no longer than a call does, and has the same error.
#[must_use = "what is copied can be had from it"]
pub struct Later<R> {
    pending: Option<Pending>,
    finish: Option<Finish<R>>,
}

type Finish<R> = Box<dyn FnOnce(HostMemory) -> Result<R> + Send>;

impl<R> std::fmt::Debug for Later<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Later<{}>", std::any::type_name::<R>())
    }
}

impl<R> Unpin for Later<R> {}

impl<R> Later<R> {
    fn of(pending: Pending, finish: impl FnOnce(HostMemory) -> Result<R> + Send + 'static) -> Self {
        Later {
            pending: Some(pending),
            finish: Some(Box::new(finish)),
        }
    }

    /// Waits until the copy is done.
    ///
    /// # Errors
    /// A fault that a launch before the copy has left, or a device that has failed; what was read and is no value of
    /// its type.
    pub fn wait(mut self) -> Result<R> {
        self.take()
    }

    /// Waits until the copy is done, but for no longer than this: `None` if it is not, and it may be waited for again.
    ///
    /// # Errors
    /// As [`Later::wait`].
    pub fn wait_for(&mut self, limit: Duration) -> Result<Option<R>> {
        match &self.pending {
            // What has failed is what waiting tells.
            Some(pending) if matches!(pending.wait_for(limit), Ok(false)) => Ok(None),
            _ => self.take().map(Some),
        }
    }

    /// Whether the copy is done.
    ///
    /// # Errors
    /// A device that has failed.
    pub fn is_done(&self) -> Result<bool> {
        match &self.pending {
            Some(pending) => Ok(pending.is_done()?),
            None => Ok(true),
        }
    }

    fn take(&mut self) -> Result<R> {
        match (self.pending.take(), self.finish.take()) {
            (Some(pending), Some(finish)) => finish(pending.wait()?),
            _ => Err(Error::Internal("a copy was asked for its result again")),
        }
    }
}

impl<R> Future for Later<R> {
    type Output = Result<R>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<R>> {
        if let Some(pending) = &self.pending
            && matches!(pending.is_done(), Ok(false))
        {
            if let Err(error) = pending.wake(cx.waker()) {
                // The device has the memory until the copy is done, should it ever be.
                (self.pending, self.finish) = (None, None);
                return Poll::Ready(Err(error.into()));
            }
            return Poll::Pending;
        }
        Poll::Ready(self.take())
    }
}
