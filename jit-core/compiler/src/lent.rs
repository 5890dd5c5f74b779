//! Device memory that other code in the process holds, as buffers, and buffers as memory of other code: without a copy.
//!
//! | | who frees it |
//! |---|---|
//! | [`Lent`], [`LentMut`] | the other code, which has lent it: a [`DeviceMemory`] |
//! | [`Buffer::from_raw`] | Kiln |
//! | [`Buffer::into_raw`] | the other code |
//!
//! Tensors of other libraries, Python's among them, are in [`dlpack`].
//!
//! Functions of modules that other code has loaded are launched with Kiln's arguments: `Jit::adopt_function`.
//!
//! With the features `cust` and `cudarc` the buffers of these crates are [`DeviceMemory`].
//!
//! In a stream of other code's that a `Jit` has adopted memory is lent without waiting: `Stream::lend` and
//! `Stream::lend_mut`.
//!
//! Kiln orders its own work on the memory, and waits for it where a [`Lent`] ends, whichever streams it is in. What
//! other code does with it is the program's to see to, which is why these functions are `unsafe`: it has ended before
//! Kiln is given the memory.
//!
//! ```no_run
//! use kiln::core::lent::{DeviceMemory, Lent};
//! use kiln::prelude::*;
//!
//! /// Memory that a library of C's has given.
//! struct Image {
//!     address: u64,
//!     pixels: usize,
//! }
//!
//! // SAFETY: that library allocates it by `cuMemAlloc`, and frees it where an image is dropped.
//! unsafe impl DeviceMemory for Image {
//!     type Element = f32;
//!     fn address(&self) -> u64 {
//!         self.address
//!     }
//!     fn len(&self) -> usize {
//!         self.pixels
//!     }
//! }
//!
//! #[kernel]
//! fn brighten(x: &[f32], out: &mut [f32]) {
//!     let i = global_id().x;
//!     if i < x.len() {
//!         out[i] = 2.0 * x[i];
//!     }
//! }
//!
//! # fn image() -> Image { unreachable!() }
//! # fn main() -> kiln::Result<()> {
//! let jit = Jit::new()?;
//! let image = image();
//! // SAFETY: the library has waited for what it did with the image.
//! let x = unsafe { Lent::new(jit.device(), &image)? };
//! let mut out = jit.zeros(image.len())?;
//! brighten.launch(&jit, (grid_for(image.len(), 256), 256), &x, &mut out)?;
//! jit.launch(&brighten, grid_for(image.len(), 256), 256, args!(&*x, &mut out))?;
//! # Ok(())
//! # }
//! ```

use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};

use kiln_runtime::{Device, DeviceError, DeviceKind};

use crate::buffer::Buffer;
use crate::error::Result;
use crate::part::Part;
use crate::value::KernelType;
use crate::view::{ToSlice, ToSliceMut};

#[cfg(feature = "cudarc")]
mod cudarc;
#[cfg(feature = "cust")]
mod cust;
pub mod dlpack;
mod function;
mod stream;

pub use function::{DeviceFunction, RawFunction, lent_function};
pub use stream::{DeviceStream, RawStream, lent_stream};

/// Memory of a CUDA device that other code holds.
///
/// # Safety
/// At `address` there are `len` values of the type in memory of a device, of one allocation or a part of one. As long
/// as it is borrowed they stay there; of what is borrowed mutably nobody else reads or writes them.
pub unsafe trait DeviceMemory {
    /// The values.
    type Element: KernelType;

    /// The device address of the first.
    fn address(&self) -> u64;

    /// How many there are.
    fn len(&self) -> usize;

    /// Whether there are none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Waits until what its library has begun on the memory is done, as far as the library knows that.
    ///
    /// # Errors
    /// What the library says.
    fn settle(&self) -> Result<()> {
        Ok(())
    }
}

/// A buffer that other code has lent to be read.
#[derive(Debug)]
pub struct Lent<'a, T: KernelType> {
    buffer: LentMut<'a, T>,
}

/// A buffer that other code has lent to be read and written.
#[derive(Debug)]
pub struct LentMut<'a, T: KernelType> {
    buffer: Buffer<T>,
    /// The place of the stream whose order the memory is in; without one the host waits.
    stream: Option<usize>,
    memory: PhantomData<&'a ()>,
}

impl<'a, T: KernelType> Lent<'a, T> {
    /// Memory as a buffer of a device.
    ///
    /// # Safety
    /// The memory is of the device's context, and what other code has begun on it has ended. What is returned is
    /// dropped, neither forgotten nor in a call that a stream makes, and the kernels that use it end within the time
    /// limit of the `Jit`, if it has one.
    ///
    /// # Errors
    /// Memory that Kiln has already, as a buffer of its own or as one that is lent; a device that is no GPU.
    pub unsafe fn new(
        device: &Device,
        memory: &'a impl DeviceMemory<Element = T>,
    ) -> Result<Lent<'a, T>> {
        memory.settle()?;
        let buffer = LentMut::over(device, memory.address(), memory.len())?;
        Ok(Lent { buffer })
    }

    /// `Stream::lend`, with the stream's place.
    ///
    /// # Safety
    /// As there.
    ///
    /// # Errors
    /// As there.
    #[doc(hidden)]
    pub unsafe fn in_place(
        device: &Device,
        place: usize,
        memory: &'a impl DeviceMemory<Element = T>,
    ) -> Result<Lent<'a, T>> {
        let buffer = LentMut::over(device, memory.address(), memory.len())?;
        let buffer = buffer.in_order_of(place);
        Ok(Lent { buffer })
    }
}

impl<'a, T: KernelType> LentMut<'a, T> {
    /// Memory as a buffer of a device.
    ///
    /// # Safety
    /// As [`Lent::new`].
    ///
    /// # Errors
    /// As there.
    pub unsafe fn new(
        device: &Device,
        memory: &'a mut impl DeviceMemory<Element = T>,
    ) -> Result<LentMut<'a, T>> {
        memory.settle()?;
        LentMut::over(device, memory.address(), memory.len())
    }

    /// `Stream::lend_mut`, with the stream's place.
    ///
    /// # Safety
    /// As there.
    ///
    /// # Errors
    /// As there.
    #[doc(hidden)]
    pub unsafe fn in_place(
        device: &Device,
        place: usize,
        memory: &'a mut impl DeviceMemory<Element = T>,
    ) -> Result<LentMut<'a, T>> {
        let buffer = LentMut::over(device, memory.address(), memory.len())?;
        Ok(buffer.in_order_of(place))
    }

    fn over(device: &Device, address: u64, len: usize) -> Result<LentMut<'a, T>> {
        Ok(LentMut {
            buffer: adopted(device, address, len)?,
            stream: None,
            memory: PhantomData,
        })
    }

    /// What other code has begun on the memory is in this stream, and what it begins later, too.
    fn in_order_of(mut self, place: usize) -> Self {
        written_in(&self.buffer, place);
        self.stream = Some(place);
        self
    }
}

/// Refuses a CPU, whose memory no library allocates as memory of a device.
fn own_memory(device: &Device) -> Result<()> {
    let info = device.info();
    if info.kind != DeviceKind::Cpu {
        return Ok(());
    }
    let device = info.name.clone();
    Err(DeviceError::OwnMemoryOnly { device }.into())
}

fn adopted<T: KernelType>(device: &Device, address: u64, len: usize) -> Result<Buffer<T>> {
    own_memory(device)?;
    let bytes = len.saturating_mul(size_of::<T>());
    device.backend().adopt_memory(address, bytes)?;
    Buffer::over(device, address, len)
}

/// Notes what a stream was given so far as having written a buffer.
fn written_in<T: KernelType>(buffer: &Buffer<T>, place: usize) {
    let stream = buffer.device().streams().at(place);
    stream.note(buffer.uses(), true, stream.count());
}

/// Makes a stream wait for all work that uses a buffer, and the host where it cannot.
fn leave_in<T: KernelType>(buffer: &Buffer<T>, place: usize) -> Result<()> {
    let (backend, streams) = (&**buffer.device().backend(), buffer.device().streams());
    let ordered = streams.order(backend, streams.at(place), buffer.uses(), true);
    ordered.or_else(|_| settle(buffer))
}

/// Waits until all work that uses a buffer is done, in any stream.
fn settle<T: KernelType>(buffer: &Buffer<T>) -> Result<()> {
    let (backend, streams) = (&**buffer.device().backend(), buffer.device().streams());
    streams.order(backend, streams.own(), buffer.uses(), true)?;
    let mark = backend.mark()?;
    Ok(backend.wait_until(&*mark)?)
}

/// Has a device forget the memory of a buffer, which is then empty.
fn give_up<T: KernelType>(buffer: &mut Buffer<T>) -> Result<()> {
    let (address, bytes) = (buffer.address(), buffer.len() * size_of::<T>());
    buffer.device().backend().give_up_memory(address, bytes)?;
    buffer.empty();
    Ok(())
}

impl<T: KernelType> Drop for LentMut<'_, T> {
    fn drop(&mut self) {
        // A device that cannot wait does no more work, and there is nobody to tell. What a launch has left is told
        // elsewhere.
        let leave = || match self.stream {
            Some(place) => leave_in(&self.buffer, place),
            None => settle(&self.buffer),
        };
        let _ = leave().or_else(|_| leave());
        let _ = give_up(&mut self.buffer);
    }
}

// What is lent is no buffer to who has it: one could be exchanged for another (`std::mem::swap`), and would then be there
// when its owner has the memory back.
impl<T: KernelType> Deref for Lent<'_, T> {
    type Target = Part<T>;
    fn deref(&self) -> &Part<T> {
        &self.buffer
    }
}

impl<T: KernelType> Deref for LentMut<'_, T> {
    type Target = Part<T>;
    fn deref(&self) -> &Part<T> {
        &self.buffer
    }
}

impl<T: KernelType> DerefMut for LentMut<'_, T> {
    fn deref_mut(&mut self) -> &mut Part<T> {
        &mut self.buffer
    }
}

impl<T: KernelType> ToSlice<T> for Lent<'_, T> {
    fn to_slice(&self) -> Result<&Part<T>> {
        Ok(self)
    }
}

impl<T: KernelType> ToSlice<T> for LentMut<'_, T> {
    fn to_slice(&self) -> Result<&Part<T>> {
        Ok(self)
    }
}

impl<T: KernelType> ToSliceMut<T> for LentMut<'_, T> {
    fn to_slice_mut(&mut self) -> Result<&mut Part<T>> {
        Ok(self)
    }
}

impl<T: KernelType> Buffer<T> {
    /// A buffer of memory that other code has allocated and leaves to Kiln, which frees it by `cuMemFree`.
    ///
    /// ```no_run
    /// use kiln::prelude::*;
    ///
    /// # fn allocated_by_others() -> u64 { 0 }
    /// # fn main() -> kiln::Result<()> {
    /// let jit = Jit::new()?;
    /// // SAFETY: that function allocates 1024 floats by `cuMemAlloc` in the device's primary context.
    /// let x: Buffer<f32> = unsafe { Buffer::from_raw(jit.device(), allocated_by_others(), 1024)? };
    /// let address = x.into_raw()?; // and back: whoever has it frees it
    /// # drop(address);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Safety
    /// `address` is what `cuMemAlloc` gave in the device's context, for that many values at least; nobody else frees
    /// it, and what other code has begun on it has ended.
    ///
    /// # Errors
    /// Memory that Kiln has already; a device that is no GPU.
    pub unsafe fn from_raw(device: &Device, address: u64, len: usize) -> Result<Self> {
        adopted(device, address, len)
    }

    /// Leaves the memory to other code, which is to free it by `cuMemFree`: its address, once the work on it is done.
    /// A buffer without values has none, 0.
    ///
    /// # Errors
    /// What that work left, after which the buffer is freed; a device that is no GPU.
    pub fn into_raw(mut self) -> Result<u64> {
        own_memory(self.device())?;
        let (address, bytes) = (self.address(), self.len() * size_of::<T>());
        self.device()
            .synchronize_memory(address, bytes, self.uses())?;
        settle(&self)?;
        give_up(&mut self)?;
        Ok(address)
    }
}
