//! Typed device memory.

use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use kiln_runtime::{Device, DeviceCode, DeviceError, DeviceId, OrderedStream, Uses};

use crate::error::{MemoryError, Result};
use crate::ir::ParamFacts;
use crate::later::Later;
use crate::part::Part;
use crate::pinned::Pinned;
use crate::value::{KernelType, bytes_of, vec_from_bytes};

/// A number of values in device memory. Freed when dropped, after the work that uses it; on a CPU device
/// dropping it does not wait for that work. What is done with its values is in [`Part`], which a buffer dereferences to
/// as a vector does to a slice: `&x[a..b]` is one, too.
///
/// What makes one asks for a [`KernelType`], so that a type which is none is one error, not one for each
/// place that a buffer of it is named at.
///
/// ```
/// use kiln::prelude::*;
///
/// use kiln::core::pinned::Pinned;
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
/// let mut z = Buffer::<f32>::unspecified(&device, 2)?; // of any values, and safe
/// z.fill(0.5)?;
/// assert_eq!(z.to_vec()?, [0.5; 2]);
/// assert_eq!((x.len(), zeros.is_empty()), (3, false));
/// assert_eq!(x.device_id(), zeros.device_id());
/// let (left, right) = x.split_at_mut(2);
/// left.copy_from(&right[..1])?;
/// x.write_later(Pinned::from_slice(&device, &[1])?)?.wait()?;
/// assert_eq!(x.to_vec()?, [1, 5, 6]);
/// println!("at {:#x}", x.address());
/// let numbers = x.into_cast::<i32>()?;
/// assert_eq!(numbers.to_vec()?, [1, 5, 6]);
/// # Ok(())
/// # }
/// ```
pub struct Buffer<T> {
    memory: Memory,
    element: PhantomData<T>,
}

/// What a buffer has, whatever its values are.
#[repr(C)]
pub(crate) struct Memory {
    /// First, as launches hold on to a pointer to it.
    uses: Uses,
    /// Who launches are given all of it by without looking at the address: the device, if it begins at a multiple of 16
    /// and has fewer than 2^31 values.
    usual: DeviceCode,
    /// The address, and how many values there are, as they lie in a block.
    passed: [u8; 16],
    code: DeviceCode,
    device: Device,
    bytes: usize,
    id: DeviceId,
}

impl<T> std::fmt::Debug for Buffer<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "Buffer<{}>({} on {})",
            std::any::type_name::<T>(),
            self.len(),
            self.memory.id
        )
    }
}

impl<T> Deref for Buffer<T> {
    type Target = Part<T>;

    #[inline]
    fn deref(&self) -> &Part<T> {
        Part::whole(&self.memory)
    }
}

impl<T> DerefMut for Buffer<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut Part<T> {
        Part::whole_mut(&mut self.memory)
    }
}

impl Memory {
    fn allocate(
        device: &Device,
        (len, size): (usize, usize),
        alloc: impl FnOnce(usize, &Uses) -> Result<u64, DeviceError>,
    ) -> Result<Self> {
        let (bytes, uses) = (len.saturating_mul(size), Uses::default());
        let address = alloc(bytes, &uses)?;
        let mut memory = Memory {
            uses,
            usual: DeviceCode::NONE,
            passed: [0; 16],
            code: device.code(),
            device: device.clone(),
            bytes,
            id: device.info().id,
        };
        memory.set(address, len);
        Ok(memory)
    }

    /// Notes where it is, and how many values there are.
    fn set(&mut self, address: u64, len: usize) {
        self.passed = in_block(address, len);
        self.usual = match is_usual(address, len) {
            true => self.code,
            false => DeviceCode::NONE,
        };
    }

    /// As a launch is given all of it, and by whom without looking at it.
    #[inline(always)]
    pub(crate) fn passed(&self) -> ([u8; 16], DeviceCode) {
        (self.passed, self.usual)
    }

    /// The device, as several buffers are asked for it at once.
    #[inline(always)]
    pub(crate) fn code(&self) -> DeviceCode {
        self.code
    }

    #[inline]
    pub(crate) fn device(&self) -> &Device {
        &self.device
    }

    #[inline]
    pub(crate) fn address(&self) -> u64 {
        let [address, _] = self.numbers();
        address
    }

    /// How many values it was allocated for.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        let [_, len] = self.numbers();
        len as usize
    }

    #[inline]
    fn numbers(&self) -> [u64; 2] {
        let number = u128::from_le_bytes(self.passed);
        [number as u64, (number >> 64) as u64]
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(crate) fn id(&self) -> DeviceId {
        self.id
    }

    pub(crate) fn uses(&self) -> &Uses {
        &self.uses
    }

    /// Waits for the last use that wrote it.
    pub(crate) fn synchronize(&self) -> Result<(), DeviceError> {
        (self.device).synchronize_memory(self.address(), self.bytes, &self.uses)
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        self.device.free(self.address(), self.bytes, &self.uses);
    }
}

/// A slice as it lies in a block, with the bytes behind its length, if that has four, as zeros.
#[inline(always)]
pub(crate) fn in_block(address: u64, len: usize) -> [u8; 16] {
    (u128::from(len as u64) << 64 | u128::from(address)).to_le_bytes()
}

/// Whether a slice is one that code is for which was compiled for most: at a multiple of 16, of fewer than 2^31 values.
#[inline(always)]
pub(crate) fn is_usual(address: u64, len: usize) -> bool {
    address.is_multiple_of(16) && (len as u64) < ParamFacts::SHORT
}

impl<T: KernelType> Buffer<T> {
    /// A buffer holding a copy of `values`.
    ///
    /// # Errors
    /// Out of memory, or a device that has failed.
    pub fn from_slice(device: &Device, values: &[T]) -> Result<Self> {
        Self::from_slice_in(device, device.streams().own(), values)
    }

    /// [`Buffer::from_slice`] in a stream of the device.
    #[doc(hidden)]
    pub fn from_slice_in(device: &Device, stream: &OrderedStream, values: &[T]) -> Result<Self> {
        let buffer = Self::allocate(device, values.len(), |bytes, uses| {
            device.alloc_in(stream, bytes, uses)
        })?;
        device.upload(buffer.address(), bytes_of(values), buffer.uses())?;
        Ok(buffer)
    }

    /// A buffer of `len` zeros.
    ///
    /// # Errors
    /// Out of memory, or a device that has failed.
    pub fn zeros(device: &Device, len: usize) -> Result<Self> {
        Self::zeros_in(device, device.streams().own(), len)
    }

    /// [`Buffer::zeros`] in a stream of the device.
    #[doc(hidden)]
    pub fn zeros_in(device: &Device, stream: &OrderedStream, len: usize) -> Result<Self> {
        let alloc = |bytes, uses: &Uses| device.alloc_zeros_in(stream, bytes, uses);
        Self::allocate(device, len, alloc)
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
        // SAFETY: passed on to the caller.
        unsafe { Self::uninit_in(device, device.streams().own(), len) }
    }

    /// [`Buffer::uninit`] in a stream of the device.
    ///
    /// # Safety
    /// As there.
    #[doc(hidden)]
    pub unsafe fn uninit_in(device: &Device, stream: &OrderedStream, len: usize) -> Result<Self> {
        let alloc = |bytes, uses: &Uses| device.alloc_in(stream, bytes, uses);
        Self::allocate(device, len, alloc)
    }

    /// A buffer of `len` elements whose values are not specified, which costs less than one of zeros: for kernels that
    /// write all of them. What it holds is what earlier buffers of the process have left, or zeros.
    ///
    /// It needs no `unsafe`: memory of a device is initialized, of this CPU by zeros when it is taken from the system,
    /// and any bits are a value of the type, or what is none is an error where the host reads it ([`KernelType`]).
    ///
    /// # Errors
    /// Out of memory, or a device that has failed.
    pub fn unspecified(device: &Device, len: usize) -> Result<Self> {
        Self::unspecified_in(device, device.streams().own(), len)
    }

    /// [`Buffer::unspecified`] in a stream of the device.
    #[doc(hidden)]
    pub fn unspecified_in(device: &Device, stream: &OrderedStream, len: usize) -> Result<Self> {
        let alloc = |bytes, uses: &Uses| device.alloc_in(stream, bytes, uses);
        Self::allocate(device, len, alloc)
    }

    fn allocate(
        device: &Device,
        len: usize,
        alloc: impl FnOnce(usize, &Uses) -> Result<u64, DeviceError>,
    ) -> Result<Self> {
        let memory = Memory::allocate(device, (len, size_of::<T>()), alloc)?;
        Ok(Buffer::of(memory))
    }

    /// A buffer of memory that is there; [`crate::lent`] says whose.
    pub(crate) fn over(device: &Device, address: u64, len: usize) -> Result<Self> {
        Self::allocate(device, len, |_, _| Ok(address))
    }

    /// [`Part::write`], whose arguments may name the buffer: `x.write(&vec![0; x.len()])`.
    ///
    /// # Errors
    /// As there.
    pub fn write(&mut self, values: &[T]) -> Result<()> {
        Part::write(self, values)
    }

    /// [`Part::write_at`], whose arguments may name the buffer.
    ///
    /// # Errors
    /// As there.
    pub fn write_at(&mut self, start: usize, values: &[T]) -> Result<()> {
        Part::write_at(self, start, values)
    }

    /// [`Part::write_later`], whose arguments may name the buffer.
    ///
    /// # Errors
    /// As there.
    pub fn write_later(&mut self, values: Pinned<T>) -> Result<Later<Pinned<T>>> {
        Part::write_later(self, values)
    }

    /// [`Part::split_at_mut`], whose arguments may name the buffer: `x.split_at_mut(x.len() / 2)`.
    ///
    /// # Panics
    /// As there.
    #[track_caller]
    pub fn split_at_mut(&mut self, middle: usize) -> (&mut Part<T>, &mut Part<T>) {
        Part::split_at_mut(self, middle)
    }

    /// The buffer with its bytes as values of another type; [`Part::cast`] has an example.
    ///
    /// # Errors
    /// As [`Part::cast_mut`], after which the buffer is freed.
    pub fn into_cast<U: KernelType>(self) -> Result<Buffer<U>> {
        self.recast::<U>(true)?;
        let mut memory = self.memory;
        memory.set(memory.address(), memory.bytes / size_of::<U>());
        Ok(Buffer::of(memory))
    }
}

impl<T> Buffer<T> {
    fn of(memory: Memory) -> Self {
        let element = PhantomData;
        Buffer { memory, element }
    }

    /// The buffer for launches of several threads that may each write it: what hooks give as a hidden argument. While it is
    /// made nobody else has the buffer, so all its launches know of it.
    ///
    /// ```
    /// use std::sync::Arc;
    ///
    /// use kiln::prelude::*;
    ///
    /// # fn main() -> kiln::Result<()> {
    /// let counts: Arc<Buffer<u32>> = Jit::new()?.zeros::<u32>(16)?.into_shared();
    /// assert_eq!(counts.to_vec()?, [0; 16]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn into_shared(self) -> Arc<Buffer<T>> {
        self.uses().share();
        Arc::new(self)
    }

    /// Makes a buffer of nothing of this, which frees nothing.
    pub(crate) fn empty(&mut self) {
        self.memory.set(0, 0);
        self.memory.bytes = 0;
    }
}

impl Buffer<u8> {
    /// The first values of another type that its bytes are.
    pub(crate) fn read_as<T: KernelType>(&self, len: usize) -> Result<Vec<T>> {
        self.memory.synchronize()?;
        let (device, uses) = (&self.memory.device, &self.memory.uses);
        vec_from_bytes(len, |bytes| {
            Ok(device.download(self.address(), bytes, uses)?)
        })
    }

    /// Overwrites the first bytes with values of another type.
    pub(crate) fn write_as<T: KernelType>(&self, values: &[T]) -> Result<()> {
        let buffer = self.len() / size_of::<T>().max(1);
        if values.len() > buffer {
            let values = values.len();
            return Err(MemoryError::BufferTooSmall { buffer, values }.into());
        }
        self.memory.synchronize()?;
        let (device, uses) = (&self.memory.device, &self.memory.uses);
        Ok(device.upload(self.address(), bytes_of(values), uses)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_usual_slice_is_aligned_and_short() {
        let longest = usize::try_from(ParamFacts::SHORT - 1).expect("of 31 bits");
        assert!(is_usual(0, 0) && is_usual(256, 1) && is_usual(16, longest));
        assert!(!is_usual(8, 1) && !is_usual(15, longest));
        assert!(!is_usual(16, longest + 1) && !is_usual(0, usize::MAX));
    }
}
