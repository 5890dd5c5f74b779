//! Parts of buffers: what `&x[a..b]` and `&mut x[a..b]` are.
//!
//! Indexing has to give a reference, and there is no [`Part`] in memory that one could point to. So a part is a type of
//! no size whose reference says all: its pointer is that of the buffer's [`Memory`], and its metadata, which a slice of
//! a type without size has room for, is where the part begins and how long it is. As for slices of the host, rustc then
//! knows what borrows what, a part costs nothing, and two of them cannot be exchanged (`std::mem::swap`), as their type
//! has no size.
//!
//! Where a part begins is counted in alignments of its elements, so that it can be seen as one of other elements. Either
//! number has half the bits of the metadata: 32, so a part begins in the first 2^32 alignments (4 GiB of bytes, 16 GiB
//! of `f32`) and is shorter than 2^32 elements. A whole buffer, of whatever length, has a number of its own.

use std::cell::UnsafeCell;
use std::fmt::Display;
use std::marker::{PhantomData, PhantomPinned};
use std::ops::{
    Index, IndexMut, Range, RangeFrom, RangeFull, RangeInclusive, RangeTo, RangeToInclusive,
};
use std::ptr;

use kiln_runtime::{Device, DeviceId, Uses};

use crate::buffer::Memory;
use crate::error::{MemoryError, Result};
use crate::value::{KernelType, bytes_of, fill_from_bytes, vec_from_bytes};

/// Bits of the metadata for the length of a part, and for where it begins.
const HALF: u32 = usize::BITS / 2;
/// The largest number of so many bits.
const LARGEST: usize = (1 << HALF) - 1;
/// The metadata of all of a buffer.
const WHOLE: usize = usize::MAX;
/// The metadata of all of a buffer seen as values of another type.
const CAST: usize = usize::MAX - 1;

/// Some of a [`Buffer`](crate::runtime::Buffer)'s values, one after the other, or all of them: behind `&` and `&mut` what
/// a slice is to a vector. A kernel takes it where it takes a buffer.
///
/// ```
/// use kiln::prelude::*;
///
/// #[kernel]
/// fn double(x: &[u32], out: &mut [u32]) {
///     let i = global_id().x;
///     if i < out.len() {
///         out[i] = 2 * x[i];
///     }
/// }
///
/// # fn main() -> kiln::Result<()> {
/// let jit = Jit::new()?;
/// let mut x = jit.upload(&[1u32, 2, 3, 4, 5, 6])?;
/// let (left, right) = x.split_at_mut(3);
/// double.launch(&jit, (1, 32), left, right)?; // or `args!(&*left, right)`
/// assert_eq!(x.to_vec()?, [1, 2, 3, 2, 4, 6]);
/// x[1..3].fill(7)?;
/// assert_eq!(x[..4].to_vec()?, [1, 7, 7, 2]);
/// assert_eq!((x[4..].len(), x[6..].is_empty()), (2, true));
/// assert_eq!(x[4..].address(), x.address() + 16);
/// assert_eq!(x[4..].device_id(), x.device_id());
/// x[3..].write_at(1, &[8, 9])?;
/// x.part_mut(..2)?.copy_from(&jit.upload(&[5])?)?;
/// let mut last = [0; 2];
/// x.split_at(3).1.read_into(1, &mut last)?;
/// assert_eq!((x.to_vec()?, last), (vec![5, 7, 7, 2, 8, 9], [8, 9]));
/// # Ok(())
/// # }
/// ```
///
/// Streams order the use of a part as that of the whole buffer. A part whose address is no multiple of 16 is passed to
/// code of its own, which makes no use of that. A buffer that was [split](Part::split_at_mut) is held by each launch from
/// then on, as threads may use its parts at the same time: alone where it is written, together where it is read.
#[repr(transparent)]
pub struct Part<T> {
    element: PhantomData<T>,
    place: [Place],
}

/// An element of the slice that a part is, as many as its metadata says. It lets rustc conclude nothing from a reference
/// to a part: neither that the memory behind the pointer stays as it is, nor that nobody else has such a pointer, as the
/// other part of a buffer does.
struct Place(UnsafeCell<()>, PhantomPinned);

const _: () = assert!(size_of::<Place>() == 0 && align_of::<Place>() == 1);

// SAFETY: a part is a way to a buffer, which may be sent where its values may, and nothing is in its cells.
unsafe impl<T: Send> Send for Part<T> {}
// SAFETY: as above.
unsafe impl<T: Sync> Sync for Part<T> {}

impl<T> std::fmt::Debug for Part<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (name, at, memory) = (std::any::type_name::<T>(), self.span(), self.memory());
        match self.place.len() {
            WHOLE | CAST => write!(f, "Part<{name}>({} on {})", at.len, memory.id()),
            _ => write!(
                f,
                "Part<{name}>({} from byte {} on {})",
                at.len,
                at.byte,
                memory.id()
            ),
        }
    }
}

/// Where a part lies in the memory of its buffer.
struct Span {
    /// The first byte.
    byte: usize,
    /// The number of elements.
    len: usize,
}

impl Span {
    /// The metadata that says so; `None` where it has too few bits.
    fn packed<T>(&self) -> Option<usize> {
        let start = self.byte / align_of::<T>();
        (start < LARGEST && self.len <= LARGEST).then_some(start << HALF | self.len)
    }
}

impl<T> Part<T> {
    /// All of a buffer.
    #[inline]
    pub(crate) fn whole(memory: &Memory) -> &Part<T> {
        // SAFETY: the memory is borrowed for as long.
        unsafe { &*pointer(memory, WHOLE) }
    }

    /// All of a buffer, to be written.
    #[inline]
    pub(crate) fn whole_mut(memory: &mut Memory) -> &mut Part<T> {
        // SAFETY: the memory is borrowed for as long, mutably; a part has no bytes that a reference could be to.
        unsafe { &mut *pointer(memory, WHOLE).cast_mut() }
    }

    /// What the pointer is to.
    #[inline]
    pub(crate) fn memory(&self) -> &Memory {
        let address = ptr::from_ref(self).cast::<()>().addr();
        // SAFETY: `pointer` has made it of a reference to a `Memory`, which it has exposed, and which is borrowed for as
        // long as the part. Nobody has it mutably meanwhile: the parts of it are ways to the same, and change of it what
        // is atomic.
        unsafe { &*ptr::with_exposed_provenance(address) }
    }

    /// Whether the part is all of a buffer of such values.
    #[inline(always)]
    pub(crate) fn is_whole(&self) -> bool {
        self.place.len() == WHOLE
    }

    #[inline]
    fn span(&self) -> Span {
        let all = |memory: &Memory| match size_of::<T>() {
            0 => memory.len(),
            size => memory.bytes() / size,
        };
        match self.place.len() {
            WHOLE | CAST => Span {
                byte: 0,
                len: all(self.memory()),
            },
            packed => Span {
                byte: (packed >> HALF) * align_of::<T>(),
                len: packed & LARGEST,
            },
        }
    }

    /// The pointer to a part of this, if the part is there.
    fn pointer_to<U>(&self, part: Span) -> Result<*const Part<U>, MemoryError> {
        let packed = part.packed::<U>().ok_or(MemoryError::FarPart {
            start: part.byte / size_of::<U>().max(1),
            values: part.len,
        })?;
        Ok(pointer(self.memory(), packed))
    }

    /// The pointer to some of the elements.
    fn find(&self, (start, end): (usize, usize)) -> Result<*const Part<T>, MemoryError> {
        let at = self.span();
        if start == 0 && end == at.len {
            return Ok(self);
        }
        let len = end.checked_sub(start).filter(|_| end <= at.len);
        let len = len.ok_or(MemoryError::NoPart {
            buffer: at.len,
            start,
            values: end.saturating_sub(start),
        })?;
        // One of no elements begins where the buffer does: behind its end others may lie.
        let byte = match len {
            0 => 0,
            _ => at.byte + start * size_of::<T>(),
        };
        self.pointer_to(Span { byte, len })
    }

    /// The number of values.
    #[inline]
    pub fn len(&self) -> usize {
        self.span().len
    }

    /// Whether there is no value.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The device address of the first value.
    #[inline]
    pub fn address(&self) -> u64 {
        self.memory().address() + self.span().byte as u64
    }

    /// Where the buffer lies.
    pub fn device_id(&self) -> DeviceId {
        self.memory().id()
    }

    #[inline]
    pub(crate) fn device(&self) -> &Device {
        self.memory().device()
    }

    /// Which streams have used the buffer.
    #[doc(hidden)]
    #[inline]
    pub fn uses(&self) -> &Uses {
        self.memory().uses()
    }

    /// Where all of the buffer lies, and how many bytes it has.
    pub(crate) fn buffer(&self) -> (u64, usize) {
        (self.memory().address(), self.memory().bytes())
    }

    /// Waits for who has written the buffer. What went wrong there is told to whoever reads any of it.
    pub(crate) fn synchronize(&self) -> Result<()> {
        Ok(self.memory().synchronize()?)
    }

    /// Some of the values, if they are there; what `&x[a..b]` gives or panics.
    ///
    /// ```
    /// # use kiln::prelude::*;
    /// # fn main() -> kiln::Result<()> {
    /// let x = Jit::new()?.upload(&[1u32, 2, 3])?;
    /// assert_eq!(x.part(1..)?.to_vec()?, [2, 3]);
    /// assert!(x.part(2..4).is_err());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Values that are not there; a part that begins behind the first 2^32 alignments of an element, or of 2^32 elements
    /// or more.
    pub fn part(&self, range: impl PartRange<T>) -> Result<&Part<T>> {
        let found = self.find(range.within(self.len()))?;
        // SAFETY: it is a part of this, and borrowed for as long.
        Ok(unsafe { &*found })
    }

    /// Some of the values to be written, if they are there; what `&mut x[a..b]` gives or panics.
    ///
    /// # Errors
    /// As [`Part::part`].
    pub fn part_mut(&mut self, range: impl PartRange<T>) -> Result<&mut Part<T>> {
        let found = self.find(range.within(self.len()))?;
        // SAFETY: as above, mutably.
        Ok(unsafe { &mut *found.cast_mut() })
    }

    /// The first `middle` values, and the others.
    ///
    /// # Panics
    /// If there are fewer, or as `&x[middle..]` does.
    #[track_caller]
    pub fn split_at(&self, middle: usize) -> (&Part<T>, &Part<T>) {
        (&self[..middle], &self[middle..])
    }

    /// The first `middle` values and the others, to be passed to one launch or used by two threads.
    ///
    /// # Panics
    /// As [`Part::split_at`].
    #[track_caller]
    pub fn split_at_mut(&mut self, middle: usize) -> (&mut Part<T>, &mut Part<T>) {
        let found = |range| there(self.find(range));
        let (left, right) = (found((0, middle)), found((middle, self.len())));
        self.uses().share();
        // SAFETY: both are parts of this and borrowed for as long. No value is in both. What they are ways to changes
        // what is atomic, in an order for which the buffer is held from now on.
        unsafe { (&mut *left.cast_mut(), &mut *right.cast_mut()) }
    }
}

/// A pointer to a part of a buffer with this metadata.
#[inline]
fn pointer<T>(memory: &Memory, packed: usize) -> *const Part<T> {
    let start = ptr::with_exposed_provenance(ptr::from_ref(memory).expose_provenance());
    ptr::slice_from_raw_parts::<Place>(start, packed) as *const Part<T>
}

/// What is found, for who has said that it is there.
#[track_caller]
fn there<T, E: Display>(found: Result<T, E>) -> T {
    match found {
        Ok(found) => found,
        Err(error) => panic!("{error}"),
    }
}

impl<T: KernelType> Part<T> {
    /// Copies the values to the host, after all work launched before.
    ///
    /// # Errors
    /// A fault that a launch left which was given the buffer, or a device that has failed. A fault is
    /// told once, here or by `Jit::synchronize`.
    pub fn to_vec(&self) -> Result<Vec<T>> {
        self.synchronize()?;
        let (device, uses, address) = (self.device(), self.uses(), self.address());
        vec_from_bytes(self.len(), |bytes| {
            Ok(device.download(address, bytes, uses)?)
        })
    }

    /// Overwrites the first values with a copy of `values`.
    ///
    /// # Errors
    /// More values than there are, or a device that has failed.
    pub fn write(&mut self, values: &[T]) -> Result<()> {
        self.has_room(values.len())?;
        self.write_at(0, values)
    }

    /// Overwrites the values from element `start` on with a copy of `values`, after all work that uses the buffer.
    ///
    /// # Errors
    /// Values that are not there, or a device that has failed.
    pub fn write_at(&mut self, start: usize, values: &[T]) -> Result<()> {
        let address = self.address_of(start, values.len())?;
        Ok(self
            .device()
            .upload(address, bytes_of(values), self.uses())?)
    }

    /// Copies the values from element `start` on to `values`, after the work that has written the buffer.
    ///
    /// # Errors
    /// Values that are not there; else as [`Part::to_vec`].
    pub fn read_into(&self, start: usize, values: &mut [T]) -> Result<()> {
        let address = self.address_of(start, values.len())?;
        self.synchronize()?;
        let (device, uses) = (self.device(), self.uses());
        fill_from_bytes(values, |bytes| Ok(device.download(address, bytes, uses)?))
    }

    /// Overwrites the first values with those of another buffer or part. On one device, and from one GPU to another, nobody
    /// waits for it: what uses either buffer later is behind the copy. Between a CPU and any other device they go through
    /// the host.
    ///
    /// # Errors
    /// More values than there are here; a device that has failed. What a launch on another device has left unfinished is
    /// told by who reads the copy.
    pub fn copy_from(&mut self, other: &Part<T>) -> Result<()> {
        self.has_room(other.len())?;
        let (to, from) = (
            (self.address(), self.uses()),
            (other.address(), other.uses()),
        );
        let bytes = other.len() * size_of::<T>();
        if self.device_id() == other.device_id() {
            return Ok(self.device().copy(to, from, bytes)?);
        }
        match self
            .device()
            .copy_from_other(to, other.device(), from, bytes)?
        {
            true => Ok(()),
            false => self.write(&other.to_vec()?),
        }
    }

    /// Overwrites every value with this one, after all work that uses the buffer. Nobody waits for it.
    ///
    /// # Errors
    /// A device that has failed.
    pub fn fill(&mut self, value: T) -> Result<()> {
        let first = self.len().min(1);
        self.write_at(0, &[value][..first])?;
        let (given, all) = (first * size_of::<T>(), self.len() * size_of::<T>());
        Ok(self
            .device()
            .repeat(self.address(), given, all, self.uses())?)
    }

    /// Refuses more values than there are.
    pub(crate) fn has_room(&self, values: usize) -> Result<(), MemoryError> {
        let buffer = self.len();
        match values <= buffer {
            true => Ok(()),
            false => Err(MemoryError::BufferTooSmall { buffer, values }),
        }
    }

    /// The address of so many values.
    fn address_of(&self, start: usize, values: usize) -> Result<u64> {
        let buffer = self.len();
        match start.checked_add(values).is_some_and(|end| end <= buffer) {
            true => Ok(self.address() + (start * size_of::<T>()) as u64),
            false => Err(MemoryError::NoPart {
                buffer,
                start,
                values,
            }
            .into()),
        }
    }

    /// The bytes of the values as values of another type.
    ///
    /// ```
    /// # use kiln::prelude::*;
    /// # fn main() -> kiln::Result<()> {
    /// let mut x = Jit::new()?.upload(&[1.0f32, 2.0])?;
    /// assert_eq!(x.cast::<u32>()?.to_vec()?, [1.0f32.to_bits(), 2.0f32.to_bits()]);
    /// x.cast_mut::<[u16; 2]>()?.write(&[[0, 0x4080]])?;
    /// assert_eq!(x.to_vec()?, [4.0, 2.0]);
    /// let bits = x.into_cast::<u64>()?; // the buffer itself
    /// assert_eq!(bits.len(), 1);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Bytes that are no whole number of such values or lie at no address for them; a type with padding, or, of the
    /// other, with bits that are no value, as of `bool`.
    pub fn cast<U: KernelType>(&self) -> Result<&Part<U>> {
        let found = self.recast(false)?;
        // SAFETY: it is all of this, and borrowed for as long.
        Ok(unsafe { &*found })
    }

    /// The bytes of the values as values of another type, to be written.
    ///
    /// # Errors
    /// As [`Part::cast`]; and this type has bits that are no value.
    pub fn cast_mut<U: KernelType>(&mut self) -> Result<&mut Part<U>> {
        let found = self.recast(true)?;
        // SAFETY: as above, mutably.
        Ok(unsafe { &mut *found.cast_mut() })
    }

    /// The pointer to this as a part of other elements, which may then be written as such.
    pub(crate) fn recast<U: KernelType>(
        &self,
        writes: bool,
    ) -> Result<*const Part<U>, MemoryError> {
        let bytes = self.len() * size_of::<T>();
        let why = if const { !T::FORM.is_dense() || !U::FORM.is_dense() } {
            Some("there is padding between the fields of one of them")
        } else if !U::ANY_BITS || writes && !T::ANY_BITS {
            Some("not all bits are values of one of them")
        } else if size_of::<U>() == 0 || !bytes.is_multiple_of(size_of::<U>()) {
            Some("their number of bytes is none of such values")
        } else if !self.address().is_multiple_of(align_of::<U>() as u64) {
            Some("their address is none for such values")
        } else {
            None
        };
        if let Some(why) = why {
            return Err(MemoryError::NoCast {
                from: std::any::type_name::<T>(),
                to: std::any::type_name::<U>(),
                values: self.len(),
                why,
            });
        }
        match self.place.len() {
            WHOLE | CAST => Ok(pointer(self.memory(), CAST)),
            _ => self.pointer_to(Span {
                byte: self.span().byte,
                len: bytes / size_of::<U>(),
            }),
        }
    }
}

/// What the host indexes a buffer with: ranges of `usize`, as a slice.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "the host cannot index a buffer, which is memory of a device",
    label = "an element of it is read and written in a kernel",
    note = "`to_vec` copies a buffer to the host, and `write` copies values of the host to it; `&x[a..b]` is a part \
            of it"
)]
pub trait PartRange<T> {
    /// A part; said by each range, so that rustc says nothing more of what is none.
    type Output: ?Sized;

    /// First and end of the elements that a range stands for among so many.
    fn within(&self, len: usize) -> (usize, usize);

    /// The part that a range stands for.
    #[track_caller]
    fn of(self, part: &Part<T>) -> &Self::Output;

    /// The part that a range stands for, to be written.
    #[track_caller]
    fn of_mut(self, part: &mut Part<T>) -> &mut Self::Output;
}

macro_rules! ranges {
    ($($range:ty: |$own:ident, $len:ident| $within:expr;)*) => {$(
        #[diagnostic::do_not_recommend]
        impl<T> PartRange<T> for $range {
            type Output = Part<T>;

            fn within(&self, $len: usize) -> (usize, usize) {
                let $own = self;
                $within
            }

            #[track_caller]
            fn of(self, part: &Part<T>) -> &Part<T> {
                there(part.part(self))
            }

            #[track_caller]
            fn of_mut(self, part: &mut Part<T>) -> &mut Part<T> {
                there(part.part_mut(self))
            }
        }
    )*};
}

// An end beyond `usize` is none, as no buffer is so long.
ranges! {
    Range<usize>: |range, _len| (range.start, range.end);
    RangeFrom<usize>: |range, len| (range.start, len);
    RangeTo<usize>: |range, _len| (0, range.end);
    RangeFull: |_range, len| (0, len);
    RangeInclusive<usize>: |range, _len| (*range.start(), range.end().saturating_add(1));
    RangeToInclusive<usize>: |range, _len| (0, range.end.saturating_add(1));
}

impl<T, I: PartRange<T>> Index<I> for Part<T> {
    type Output = I::Output;

    #[track_caller]
    fn index(&self, index: I) -> &I::Output {
        index.of(self)
    }
}

impl<T, I: PartRange<T>> IndexMut<I> for Part<T> {
    #[track_caller]
    fn index_mut(&mut self, index: I) -> &mut I::Output {
        index.of_mut(self)
    }
}
