//! Typed device memory.

use std::convert::Infallible;
use std::marker::PhantomData;
use std::ops::{Index, IndexMut};

use kiln_runtime::{Device, DeviceError, DeviceId, Uses};

use crate::error::{MemoryError, Result};
use crate::value::{KernelType, bytes_of, fill_from_bytes, vec_from_bytes};

/// A number of values in device memory. Freed when dropped, after the work that uses it; on a CPU device
/// dropping it does not wait for that work.
///
/// What makes one asks for a [`KernelType`], so that a type which is none is one error, not one for each
/// place that a buffer of it is named at.
///
/// ```
/// use kiln::prelude::*;
///
/// # fn main() -> kiln::Result<()> {
/// let device = Device::best()?;
/// let mut x = Buffer::from_slice(&device, &[1u32, 2, 3])?; // `jit.upload` with the device of a `Jit`
/// let zeros = Buffer::<f32>::zeros(&device, 4)?;
/// x.write(&[7, 8])?;
/// assert_eq!(x.to_vec()?, [7, 8, 3]);
/// x.write_at(1, &[5, 6])?;
/// let mut last = [0; 2];
/// x.read_into(1, &mut last)?;
/// assert_eq!(last, [5, 6]);
/// let mut copied = Buffer::<u32>::zeros(&device, 4)?;
/// copied.fill(1)?;
/// copied.copy_from(&x)?;
/// assert_eq!(copied.to_vec()?, [7, 5, 6, 1]);
/// // SAFETY: every element is written before one is read.
/// let mut y = unsafe { Buffer::<u32>::uninit(&device, 2)? };
/// y.write(&[3, 4])?;
/// assert_eq!(y.to_vec()?, [3, 4]);
/// assert_eq!((x.len(), zeros.is_empty()), (3, false));
/// assert_eq!(x.device_id(), zeros.device_id());
/// println!("at {:#x}", x.address());
/// # Ok(())
/// # }
/// ```
pub struct Buffer<T> {
    pub(crate) device: Device,
    address: u64,
    len: usize,
    id: DeviceId,
    uses: Uses,
    element: PhantomData<T>,
}

impl<T> std::fmt::Debug for Buffer<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "Buffer<{}>({} on {})",
            std::any::type_name::<T>(),
            self.len,
            self.id
        )
    }
}

impl<T: KernelType> Buffer<T> {
    /// A buffer holding a copy of `values`.
    ///
    /// # Errors
    /// Out of memory, or a device that has failed.
    pub fn from_slice(device: &Device, values: &[T]) -> Result<Self> {
        let buffer = Self::allocate(device, values.len(), |bytes, _| device.alloc(bytes))?;
        device.upload(buffer.address, bytes_of(values), &buffer.uses)?;
        Ok(buffer)
    }

    /// A buffer of `len` zeros.
    ///
    /// # Errors
    /// Out of memory, or a device that has failed.
    pub fn zeros(device: &Device, len: usize) -> Result<Self> {
        Self::allocate(device, len, |bytes, uses| device.alloc_zeros(bytes, uses))
    }

    /// A buffer of `len` elements that nobody has written, which costs less than one of zeros.
    ///
    /// # Safety
    /// No kernel reads an element before one has written it, or the host has. What is read otherwise is what earlier
    /// buffers had there, which may be no value of the type.
    ///
    /// # Errors
    /// Out of memory, or a device that has failed.
    pub unsafe fn uninit(device: &Device, len: usize) -> Result<Self> {
        Self::allocate(device, len, |bytes, _| device.alloc(bytes))
    }

    fn allocate(
        device: &Device,
        len: usize,
        alloc: impl FnOnce(usize, &Uses) -> Result<u64, DeviceError>,
    ) -> Result<Self> {
        let (bytes, uses) = (len.saturating_mul(size_of::<T>()), Uses::default());
        let address = alloc(bytes, &uses)?;
        Ok(Buffer {
            device: device.clone(),
            address,
            len,
            id: device.info().id,
            uses,
            element: PhantomData,
        })
    }

    /// A buffer of memory that is there; [`crate::lent`] says whose.
    pub(crate) fn over(device: &Device, address: u64, len: usize) -> Result<Self> {
        Self::allocate(device, len, |_, _| Ok(address))
    }

    /// Makes a buffer of nothing of this, which frees nothing.
    pub(crate) fn empty(&mut self) {
        (self.address, self.len) = (0, 0);
    }

    /// The number of values.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is no value.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The device address of the first value.
    pub fn address(&self) -> u64 {
        self.address
    }

    /// Where the buffer lies.
    pub fn device_id(&self) -> DeviceId {
        self.id
    }

    pub(crate) fn device(&self) -> &Device {
        &self.device
    }

    /// Which streams have used it.
    #[doc(hidden)]
    #[inline]
    pub fn uses(&self) -> &Uses {
        &self.uses
    }

    /// Copies the values to the host, after all work launched before.
    ///
    /// # Errors
    /// A fault that a launch left which was given the buffer, or a device that has failed. A fault is
    /// told once, here or by `Jit::synchronize`.
    pub fn to_vec(&self) -> Result<Vec<T>> {
        self.read(self.len)
    }

    /// Overwrites the first values with a copy of `values`.
    ///
    /// # Errors
    /// More values than the buffer has, or a device that has failed.
    pub fn write(&mut self, values: &[T]) -> Result<()> {
        if values.len() > self.len {
            let (buffer, values) = (self.len, values.len());
            return Err(MemoryError::BufferTooSmall { buffer, values }.into());
        }
        self.write_at(0, values)
    }

    /// Overwrites the values from element `start` on with a copy of `values`, after all work that uses the buffer.
    ///
    /// # Errors
    /// A part that the buffer does not have, or a device that has failed.
    pub fn write_at(&mut self, start: usize, values: &[T]) -> Result<()> {
        let address = self.part(start, values.len())?;
        Ok(self.device.upload(address, bytes_of(values), &self.uses)?)
    }

    /// Copies the values from element `start` on to `values`, after the work that has written the buffer.
    ///
    /// # Errors
    /// A part that the buffer does not have; else as [`Buffer::to_vec`].
    pub fn read_into(&self, start: usize, values: &mut [T]) -> Result<()> {
        let address = self.part(start, values.len())?;
        let (device, uses) = (&self.device, &self.uses);
        device.synchronize_memory(self.address, self.bytes(), uses)?;
        fill_from_bytes(values, |bytes| Ok(device.download(address, bytes, uses)?))
    }

    /// Overwrites the first values with those of another buffer. On one device nobody waits for it; from another
    /// device they go through the host.
    ///
    /// # Errors
    /// More values than this buffer has; a device that has failed.
    pub fn copy_from(&mut self, other: &Buffer<T>) -> Result<()> {
        if other.len > self.len {
            let (buffer, values) = (self.len, other.len);
            return Err(MemoryError::BufferTooSmall { buffer, values }.into());
        }
        if self.id != other.id {
            return self.write(&other.to_vec()?);
        }
        let (to, from) = ((self.address, &self.uses), (other.address, &other.uses));
        Ok(self.device.copy(to, from, other.bytes())?)
    }

    /// Overwrites every value with this one, after all work that uses the buffer. Nobody waits for it.
    ///
    /// # Errors
    /// A device that has failed.
    pub fn fill(&mut self, value: T) -> Result<()> {
        let first = self.len.min(1);
        self.write_at(0, &[value][..first])?;
        let given = first * size_of::<T>();
        let device = &self.device;
        Ok(device.repeat(self.address, given, self.bytes(), &self.uses)?)
    }

    /// The address of a part.
    fn part(&self, start: usize, values: usize) -> Result<u64> {
        let buffer = self.len;
        match start.checked_add(values).is_some_and(|end| end <= buffer) {
            true => Ok(self.address + (start * size_of::<T>()) as u64),
            false => Err(MemoryError::NoPart {
                buffer,
                start,
                values,
            }
            .into()),
        }
    }
}

impl<T> Buffer<T> {
    /// The bytes of the buffer.
    fn bytes(&self) -> usize {
        self.len * size_of::<T>()
    }

    /// The first values of a type that its bytes are.
    fn read<V: KernelType>(&self, len: usize) -> Result<Vec<V>> {
        let (device, uses) = (&self.device, &self.uses);
        device.synchronize_memory(self.address, self.bytes(), uses)?;
        vec_from_bytes(len, |bytes| {
            Ok(device.download(self.address, bytes, uses)?)
        })
    }
}

/// What the host indexes a [`Buffer`] with: nothing, so that rustc says what to write.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "the host cannot index a buffer, which is memory of a device",
    label = "an element of it is read and written in a kernel",
    note = "`to_vec` copies a buffer to the host, and `write` copies values of the host to it"
)]
pub trait HostIndex {}

#[diagnostic::do_not_recommend]
impl HostIndex for Infallible {}

impl<T, I: HostIndex> Index<I> for Buffer<T> {
    type Output = T;
    fn index(&self, _: I) -> &T {
        unreachable!("there is no value to index a buffer with")
    }
}

impl<T, I: HostIndex> IndexMut<I> for Buffer<T> {
    fn index_mut(&mut self, _: I) -> &mut T {
        unreachable!("there is no value to index a buffer with")
    }
}

impl Buffer<u8> {
    /// The first values of another type that its bytes are.
    pub(crate) fn read_as<T: KernelType>(&self, len: usize) -> Result<Vec<T>> {
        self.read(len)
    }

    /// Overwrites the first bytes with values of another type.
    pub(crate) fn write_as<T: KernelType>(&self, values: &[T]) -> Result<()> {
        let buffer = self.len / size_of::<T>().max(1);
        if values.len() > buffer {
            let values = values.len();
            return Err(MemoryError::BufferTooSmall { buffer, values }.into());
        }
        let (device, uses) = (&self.device, &self.uses);
        device.synchronize_memory(self.address, self.len, uses)?;
        Ok(device.upload(self.address, bytes_of(values), uses)?)
    }
}

impl<T> Drop for Buffer<T> {
    fn drop(&mut self) {
        self.device.free(self.address, self.bytes(), &self.uses);
    }
}
