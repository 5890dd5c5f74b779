//! Copies that the host does not wait for, and the memory that they are given.

use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};

use kiln_runtime::{Device, HostMemory};

use crate::error::Result;
use crate::later::Later;
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
        Ok(Later::of_copy(pending, move |memory| {
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
        Ok(Later::of_copy(pending, move |memory| {
            Pinned::of(memory, len)
        }))
    }
}
