//! Tensors of other libraries as buffers, and buffers as theirs, without a copy: by DLPack, which NumPy, PyTorch, CuPy and
//! JAX speak. In Rust what is handed over is a pointer; in Python it is in a capsule (the guide's chapter on other
//! crates has a program).
//!
//! ```
//! use kiln::core::lent::dlpack::{Foreign, Shared};
//! use kiln::prelude::*;
//!
//! #[kernel]
//! fn double(x: &mut [f32]) {
//!     let i = global_id().x;
//!     if i < x.len() {
//!         x[i] *= 2.0;
//!     }
//! }
//!
//! # fn main() -> kiln::Result<()> {
//! let jit = Jit::on(Device::cpu());
//! let x = jit.upload(&[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0])?;
//! let tensor = x.into_tensor(&[2, 3])?.hand_over(None)?; // to another library
//!
//! // And from one: here another device takes it.
//! let other = Jit::on(Device::cpu());
//! // SAFETY: it is a tensor, nobody else has it, and no work on it is under way.
//! let mut foreign: Foreign<f32> = unsafe { other.take_tensor(tensor)? };
//! assert_eq!(foreign.shape(), [2, 3]);
//! double.launch(&other, (1, 32), foreign.as_mut()?)?;
//! assert_eq!(foreign.to_vec()?, [2.0, 4.0, 6.0, 8.0, 10.0, 12.0]);
//!
//! // What others only read is shared.
//! let y = std::sync::Arc::new(jit.upload(&[1u8, 2])?);
//! let legacy = Shared::new(y.clone(), &[2])?.hand_over_legacy(None)?;
//! // SAFETY: as above.
//! let back = unsafe { Foreign::<u8>::from_legacy(jit.device(), 0, legacy) };
//! assert!(back.is_err()); // Kiln has that memory: `y`
//! # Ok(())
//! # }
//! ```
//!
//! Elements lie one after the other, the last index the fastest; anything else is refused, as is another device's memory.

use std::ffi::c_void;
use std::ops::Deref;
use std::ptr::NonNull;
use std::sync::Arc;

use kiln_runtime::{Device, DeviceId, DeviceKind, LentStream, outside_of_calls};

mod abi;
mod error;

use self::abi::{CPU, CUDA, CUDA_HOST, CUDA_MANAGED, Managed, Place, READ_ONLY, Tensor, VERSION};
pub use self::abi::{ElementType, LegacyTensor, ManagedTensor, TensorElement};
pub use self::error::TensorError;
use super::{give_up, leave_in, settle, written_in};
use crate::buffer::Buffer;
use crate::error::Result;
use crate::part::Part;
use crate::view::ToSlice;

/// A tensor of another library, as a buffer. Its end waits for the work on it, and then the library is told that
/// nobody here has it any more.
#[derive(Debug)]
pub struct Foreign<T: TensorElement> {
    buffer: Buffer<T>,
    shape: Vec<usize>,
    is_read_only: bool,
    /// The place of the stream that is to wait for the work in the host's place.
    stream: Option<usize>,
    /// Goes last.
    _tensor: Managed,
}

impl<T: TensorElement> Foreign<T> {
    /// A tensor that was handed over, whose earlier work is in the stream of this place, 0 being the device's
    /// own: `Jit::take_tensor` knows the place. After an error it is still the caller's.
    ///
    /// # Safety
    /// `tensor` is one, of this library's to have; what other code has begun on it is in that stream or has ended, and
    /// while this lives nobody else writes it, nor reads it if kernels write it.
    ///
    /// # Errors
    /// [`TensorError`]; memory that Kiln has already.
    pub unsafe fn from_raw(
        device: &Device,
        place: usize,
        tensor: NonNull<ManagedTensor>,
    ) -> Result<Foreign<T>> {
        Foreign::of(device, place, Managed::Versioned(tensor))
    }

    /// [`Foreign::from_raw`] for tensors as they were before DLPack 1.0, which do not say whether they may be written.
    ///
    /// # Safety
    /// As there.
    ///
    /// # Errors
    /// As there.
    pub unsafe fn from_legacy(
        device: &Device,
        place: usize,
        tensor: NonNull<LegacyTensor>,
    ) -> Result<Foreign<T>> {
        Foreign::of(device, place, Managed::Legacy(tensor))
    }

    fn of(device: &Device, place: usize, tensor: Managed) -> Result<Foreign<T>> {
        // Until all is well the tensor is the caller's.
        let tensor = std::mem::ManuallyDrop::new(tensor);
        let shape = read::<T>(device, &tensor)?;
        let len: usize = shape.iter().product();
        let at = tensor.tensor();
        let address = (at.data.addr() as u64).wrapping_add(at.byte_offset);
        if len > 0 && !address.is_multiple_of(align_of::<T>() as u64) {
            let align = align_of::<T>();
            return Err(TensorError::Alignment { address, align }.into());
        }
        if device.info().kind == DeviceKind::Cpu {
            // Kernels reach memory by its address alone.
            let _ = at.data.expose_provenance();
        }
        let bytes = len.saturating_mul(size_of::<T>());
        device.backend().adopt_memory(address, bytes)?;
        let buffer = Buffer::over(device, address, len)?;
        written_in(&buffer, place);
        Ok(Foreign {
            buffer,
            shape,
            is_read_only: tensor.flags() & READ_ONLY != 0,
            stream: None,
            _tensor: std::mem::ManuallyDrop::into_inner(tensor),
        })
    }

    /// How many elements there are in each dimension.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// The buffer, to be written.
    ///
    /// # Errors
    /// [`TensorError::ReadOnly`].
    pub fn as_mut(&mut self) -> Result<&mut Buffer<T>, TensorError> {
        match self.is_read_only {
            true => Err(TensorError::ReadOnly),
            false => Ok(&mut self.buffer),
        }
    }

    /// Has the end of this make a stream wait for the work on the tensor, and not the host; the stream is that of a
    /// place, as for [`Foreign::from_raw`].
    ///
    /// # Safety
    /// What other code does with the memory afterwards is given to that stream or behind it, reuse of the memory
    /// among it.
    pub unsafe fn leave_in(mut self, place: usize) {
        self.stream = Some(place);
    }
}

impl<T: TensorElement> Deref for Foreign<T> {
    type Target = Buffer<T>;

    fn deref(&self) -> &Buffer<T> {
        &self.buffer
    }
}

impl<T: TensorElement> ToSlice<T> for Foreign<T> {
    fn to_slice(&self) -> Result<&Part<T>> {
        Ok(self)
    }
}

impl<T: TensorElement> Drop for Foreign<T> {
    fn drop(&mut self) {
        // As with `LentMut`.
        let _ = match self.stream {
            Some(place) => leave_in(&self.buffer, place),
            None => settle(&self.buffer),
        };
        let _ = give_up(&mut self.buffer);
    }
}

/// Tells a library that nobody here takes a tensor of its, which it then frees.
///
/// # Safety
/// It is a tensor that was handed over, and nobody uses it afterwards.
pub unsafe fn decline(tensor: NonNull<ManagedTensor>) {
    drop(Managed::Versioned(tensor));
}

/// [`decline`] for tensors as they were before DLPack 1.0.
///
/// # Safety
/// As there.
pub unsafe fn decline_legacy(tensor: NonNull<LegacyTensor>) {
    drop(Managed::Legacy(tensor));
}

/// The shape of a tensor that can be a buffer of a device.
fn read<T: TensorElement>(device: &Device, managed: &Managed) -> Result<Vec<usize>, TensorError> {
    let version = managed.version();
    if version.major != VERSION.major {
        return Err(TensorError::Version {
            major: version.major,
            minor: version.minor,
        });
    }
    let tensor = managed.tensor();
    if tensor.element != T::ELEMENT {
        return Err(TensorError::Element {
            found: tensor.element,
            wanted: T::ELEMENT,
        });
    }
    let info = device.info();
    let is_here = match (info.kind, tensor.place.kind) {
        (DeviceKind::Cpu, kind) => matches!(kind, CPU | CUDA_HOST),
        (DeviceKind::Cuda, CUDA_HOST) => true,
        (DeviceKind::Cuda, CUDA | CUDA_MANAGED) => match info.id {
            DeviceId::Cuda(ordinal) => i32::try_from(ordinal) == Ok(tensor.place.ordinal),
            // Whose context it is, is the program's promise.
            _ => true,
        },
        _ => false,
    };
    if !is_here {
        return Err(TensorError::Place {
            kind: tensor.place.kind,
            ordinal: tensor.place.ordinal,
            device: info.name.clone(),
        });
    }
    let dimensions = usize::try_from(tensor.dimensions).unwrap_or_default();
    // SAFETY: a tensor has so many of them; `strides` may be null.
    let (sizes, strides) = unsafe {
        (
            numbers(tensor.shape, dimensions),
            numbers(tensor.strides, dimensions),
        )
    };
    let shape: Option<Vec<usize>> = sizes.iter().map(|&size| size.try_into().ok()).collect();
    let bytes = shape.as_ref().and_then(|shape| {
        let len = shape
            .iter()
            .try_fold(1usize, |len, &size| len.checked_mul(size))?;
        len.checked_mul(size_of::<T>())
    });
    let (Some(shape), Some(bytes)) = (shape, bytes) else {
        return Err(TensorError::Shape {
            shape: sizes.to_vec(),
        });
    };
    if bytes > 0 && !strides.is_empty() && !is_row_major(&shape, strides) {
        let strides = strides.to_vec();
        return Err(TensorError::Strides { shape, strides });
    }
    Ok(shape)
}

/// # Safety
/// At `start` there are so many numbers, or it is null.
unsafe fn numbers<'a>(start: *const i64, len: usize) -> &'a [i64] {
    match start.is_null() || len == 0 {
        true => &[],
        // SAFETY: so the caller says.
        false => unsafe { std::slice::from_raw_parts(start, len) },
    }
}

/// Whether elements lie one after the other, the last index the fastest. Of a dimension of one element the stride
/// means nothing.
fn is_row_major(shape: &[usize], strides: &[i64]) -> bool {
    let mut wanted = 1usize;
    shape.iter().zip(strides).rev().all(|(&size, &stride)| {
        let is_so = size == 1 || usize::try_from(stride) == Ok(wanted);
        wanted = wanted.saturating_mul(size);
        is_so
    })
}

fn row_major(shape: &[usize]) -> Vec<i64> {
    let mut strides = vec![1; shape.len()];
    for at in (1..shape.len()).rev() {
        strides[at - 1] = strides[at] * shape[at].max(1) as i64;
    }
    strides
}

/// A buffer with a shape, about to be handed over to another library.
pub struct Shared {
    owner: Arc<dyn Owner>,
    shape: Vec<i64>,
    strides: Vec<i64>,
    flags: u64,
}

/// A buffer of any type.
trait Owner: Send + Sync {
    fn device(&self) -> &Device;
    fn address(&self) -> u64;
    fn element(&self) -> ElementType;
    fn settle(&self) -> Result<()>;
    fn leave_in(&self, place: usize) -> Result<()>;
}

impl<T: TensorElement> Owner for Buffer<T> {
    fn device(&self) -> &Device {
        Part::device(self)
    }

    fn address(&self) -> u64 {
        Part::address(self)
    }

    fn element(&self) -> ElementType {
        T::ELEMENT
    }

    fn settle(&self) -> Result<()> {
        settle(self)
    }

    fn leave_in(&self, place: usize) -> Result<()> {
        leave_in(self, place)
    }
}

impl<T: TensorElement> Buffer<T> {
    /// The buffer as a tensor of a shape, which whoever gets it may write; [`crate::lent::dlpack`] has an example. It
    /// lives until that library drops it.
    ///
    /// # Errors
    /// [`TensorError::OtherShape`].
    pub fn into_tensor(self, shape: &[usize]) -> Result<Shared, TensorError> {
        let len = self.len();
        Shared::of(Arc::new(self), len, shape, 0)
    }
}

impl Shared {
    /// A buffer that others only read, and that stays Kiln's as well: the tensor says that it is not to be written, as
    /// far as its form can.
    ///
    /// # Errors
    /// [`TensorError::OtherShape`].
    pub fn new<T: TensorElement>(
        buffer: Arc<Buffer<T>>,
        shape: &[usize],
    ) -> Result<Shared, TensorError> {
        let len = buffer.len();
        Shared::of(buffer, len, shape, READ_ONLY)
    }

    fn of(
        owner: Arc<dyn Owner>,
        buffer: usize,
        shape: &[usize],
        flags: u64,
    ) -> Result<Shared, TensorError> {
        let len = shape.iter().try_fold(1usize, |len, &n| len.checked_mul(n));
        if len != Some(buffer) {
            let shape = shape.to_vec();
            return Err(TensorError::OtherShape { buffer, shape });
        }
        Ok(Shared {
            owner,
            strides: row_major(shape),
            shape: shape.iter().map(|&size| size as i64).collect(),
            flags,
        })
    }

    /// The kind and the number of the device as `__dlpack_device__` gives them.
    ///
    /// # Errors
    /// [`TensorError::NoPlace`] for memory of a device that DLPack has no name for.
    pub fn place(&self) -> Result<(i32, i32), TensorError> {
        let info = self.owner.device().info();
        match (info.kind, info.id) {
            (DeviceKind::Cpu, _) => Ok((CPU, 0)),
            (_, DeviceId::Cuda(ordinal)) => Ok((CUDA, ordinal as i32)),
            _ => Err(TensorError::NoPlace {
                device: info.name.clone(),
            }),
        }
    }

    /// Hands the tensor over. `stream` is what `__dlpack__` was given: work of that stream waits for what was launched on
    /// the buffer; with -1 nobody waits. On a CPU, and where the stream is that of whichever thread asks, the host waits.
    ///
    /// # Errors
    /// As [`Shared::place`]; a stream that is none; a device that has failed.
    pub fn hand_over(self, stream: Option<i64>) -> Result<NonNull<ManagedTensor>> {
        let made = self.made(stream)?;
        let raw = Box::leak(Box::new(ManagedTensor {
            version: VERSION,
            context: std::ptr::null_mut(),
            deleter: Some(delete),
            flags: made.flags,
            tensor: made.tensor(),
        }));
        raw.context = Box::into_raw(made).cast();
        Ok(NonNull::from(raw))
    }

    /// [`Shared::hand_over`] in the form that tensors had before DLPack 1.0, which cannot say that a tensor is not to
    /// be written.
    ///
    /// # Errors
    /// As there.
    pub fn hand_over_legacy(self, stream: Option<i64>) -> Result<NonNull<LegacyTensor>> {
        let made = self.made(stream)?;
        let raw = Box::leak(Box::new(LegacyTensor {
            tensor: made.tensor(),
            context: std::ptr::null_mut(),
            deleter: Some(delete_legacy),
        }));
        raw.context = Box::into_raw(made).cast();
        Ok(NonNull::from(raw))
    }

    fn made(self, stream: Option<i64>) -> Result<Box<Made>> {
        let (kind, ordinal) = self.place()?;
        self.order(stream)?;
        Ok(Box::new(Made {
            place: Place { kind, ordinal },
            shared: self,
        }))
    }

    /// Makes a stream of the library's wait for the work on the buffer.
    fn order(&self, stream: Option<i64>) -> Result<()> {
        let (owner, device) = (&self.owner, self.owner.device());
        let stream = match stream {
            Some(-1) => return Ok(()),
            Some(2) => return owner.settle(),
            _ if device.info().kind == DeviceKind::Cpu => return owner.settle(),
            stream => stream.unwrap_or(1) as usize as *mut c_void,
        };
        // SAFETY: it lives during the call, as whoever asks says, and is given back at its end.
        let lent = unsafe { LentStream::new(stream, Arc::new(())) };
        let place = device.adopt_stream(lent)?;
        let ordered = owner.leave_in(place);
        device.give_stream_back(place);
        ordered
    }
}

/// What a tensor that was handed over points to.
struct Made {
    shared: Shared,
    place: Place,
}

impl Deref for Made {
    type Target = Shared;

    fn deref(&self) -> &Shared {
        &self.shared
    }
}

impl Made {
    fn tensor(&self) -> Tensor {
        Tensor {
            data: std::ptr::with_exposed_provenance_mut(self.owner.address() as usize),
            place: self.place,
            dimensions: self.shape.len() as i32,
            element: self.owner.element(),
            shape: self.shape.as_ptr().cast_mut(),
            strides: self.strides.as_ptr().cast_mut(),
            byte_offset: 0,
        }
    }
}

impl Drop for Made {
    fn drop(&mut self) {
        // The library may have work on it in streams that Kiln does not know. A device that cannot wait does no more.
        let _ = self.shared.owner.device().backend().settle();
    }
}

/// The end of a tensor that was handed over; the driver cannot be asked in a call that a stream makes.
fn end(made: Box<Made>) {
    match outside_of_calls() {
        Ok(()) => drop(made),
        // Where there is no thread to be had, the memory stays.
        Err(_) => {
            let made = std::mem::ManuallyDrop::new(made);
            let end = move || drop(std::mem::ManuallyDrop::into_inner(made));
            let _ = std::thread::Builder::new().spawn(end);
        }
    }
}

unsafe extern "C" fn delete(tensor: *mut ManagedTensor) {
    // SAFETY: made by `hand_over`, and deleted once.
    unsafe {
        let tensor = Box::from_raw(tensor);
        end(Box::from_raw(tensor.context.cast::<Made>()));
    }
}

unsafe extern "C" fn delete_legacy(tensor: *mut LegacyTensor) {
    // SAFETY: made by `hand_over_legacy`, and deleted once.
    unsafe {
        let tensor = Box::from_raw(tensor);
        end(Box::from_raw(tensor.context.cast::<Made>()));
    }
}
