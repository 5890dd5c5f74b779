//! Slots: what stands for an argument in a recorded launch, until a replay says which it is.
//!
//! A graph is recorded with samples of the arguments that its replays get. The closure that records has a slot in the
//! place of each, and passes it to launches as it would pass the argument: a slot made of `&buffer` as `&slot`, one
//! made of `&mut buffer` as `&slot` or `&mut slot`, so that rustc looks for aliases as it does in a launch, and one
//! made of a value as `&slot`.

use std::any::Any;
use std::marker::PhantomData;

use super::signature::Passed;
use super::{Arg, ArgSignature, IntoArg, Payload, shared_slice_arg, value_arg};
use crate::runtime::{Buffer, Part};
use crate::value::{KernelType, value_bytes};
use smallvec::SmallVec;

/// What a slot stands for.
#[doc(hidden)]
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub enum Place {
    /// The argument of a replay at a position.
    Argument(usize),
    /// A buffer that the graph has, by its number.
    Kept(usize),
}

/// What a launch is passed for a slot.
#[doc(hidden)]
#[derive(Copy, Clone)]
pub struct Tag {
    /// The number of the recording that has made it.
    pub recording: u64,
    /// What the slot stands for.
    pub place: Place,
    /// The number of elements of the sample.
    length: usize,
    signature: ArgSignature,
}

/// Tells what slots stand for apart: slots of one buffer have the same.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub struct SlotId {
    recording: u64,
    place: Place,
}

impl std::fmt::Debug for Tag {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?} of recording {}", self.place, self.recording)
    }
}

impl Tag {
    /// The argument, which has the type of what it stands for and no value. No launch takes it but that of a graph.
    #[doc(hidden)]
    pub fn arg(&self) -> Arg<'_> {
        Arg::host(self.signature, self)
    }

    /// What a host value is, if it is a slot.
    #[doc(hidden)]
    pub fn of(value: &(dyn Any + Send + Sync)) -> Option<&Tag> {
        value.downcast_ref()
    }

    /// The signature of what it stands for.
    #[doc(hidden)]
    pub fn signature(&self) -> ArgSignature {
        self.signature
    }

    fn id(&self) -> SlotId {
        SlotId {
            recording: self.recording,
            place: self.place,
        }
    }

    fn slice<T: KernelType>(&self, mutable: bool) -> Tag {
        let facts = self.signature.facts;
        let slices = match mutable {
            true => const { &Passed::slices::<T>(true) },
            false => const { &Passed::slices::<T>(false) },
        };
        let passed = slices.iter().find(|passed| passed.facts == facts);
        let signature = ArgSignature {
            facts,
            ..ArgSignature::of(passed.unwrap_or(&slices[0]))
        };
        Tag { signature, ..*self }
    }
}

/// The sample of an argument, as a recording takes it.
#[doc(hidden)]
pub struct Sample<'a> {
    /// The argument.
    pub arg: Arg<'a>,
    /// Bytes of an element of a slice.
    pub element: usize,
}

/// What stands for a buffer that replays read. Clones stand for the same.
///
/// ```
/// use kiln::prelude::*;
///
/// #[kernel]
/// fn double(x: &mut [f32]) {
///     let i = global_id().x;
///     if i < x.len() {
///         x[i] *= 2.0;
///     }
/// }
///
/// # fn main() -> kiln::Result<()> {
/// let jit = Jit::new()?;
/// let (x, mut y) = (jit.upload(&[1.0f32; 100])?, jit.zeros::<f32>(100)?);
/// let mut graph = jit.graph((&x, &mut y), |g, (x, mut y)| {
///     assert_eq!((x.len(), y.is_empty()), (100, false)); // of the samples
///     assert!(x.id() != y.id() && y.as_slot().id() == y.id());
///     g.copy(&x, &mut y)?;
///     g.fix_length(&y)?; // as the grid is for so many
///     double.record(g, (grid_for(y.len(), 32), 32), &mut y)
/// })?;
/// graph.replay(args!(&x, &mut y))?;
/// assert_eq!(y.to_vec()?, [2.0; 100]);
/// assert!(graph.replay(args!(&x, &mut jit.zeros::<f32>(200)?)).is_err());
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Slot<T> {
    read: Tag,
    element: PhantomData<fn() -> T>,
}

impl<T> Clone for Slot<T> {
    fn clone(&self) -> Self {
        Slot { ..*self }
    }
}

impl<T> Slot<T> {
    /// The number of elements of the sample.
    pub fn len(&self) -> usize {
        self.read.length
    }

    /// Whether the sample has no element.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What tells slots of other buffers apart from it.
    pub fn id(&self) -> SlotId {
        self.read.id()
    }
}

/// What stands for a buffer that replays read and write, or that a graph has.
#[derive(Debug)]
pub struct SlotMut<T> {
    read: Tag,
    write: Tag,
    element: PhantomData<fn() -> T>,
}

/// What stands for a value. Clones stand for the same.
#[derive(Debug)]
pub struct ValueSlot<T> {
    value: Tag,
    ty: PhantomData<fn() -> T>,
}

impl<T> Clone for ValueSlot<T> {
    fn clone(&self) -> Self {
        ValueSlot { ..*self }
    }
}

impl<T> ValueSlot<T> {
    /// What tells slots of other samples apart from it.
    pub fn id(&self) -> SlotId {
        self.value.id()
    }
}

impl<T> SlotMut<T> {
    /// The number of elements of the sample, or of the buffer that the graph has.
    pub fn len(&self) -> usize {
        self.read.length
    }

    /// Whether there is no element.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What tells slots of other buffers apart from it.
    pub fn id(&self) -> SlotId {
        self.read.id()
    }

    /// A slot of the same buffer, to be read. A launch that is given both is an error.
    pub fn as_slot(&self) -> Slot<T> {
        Slot {
            read: self.read,
            element: PhantomData,
        }
    }
}

impl<T: KernelType> Slot<T> {
    /// A slot for a buffer that a graph shares.
    #[doc(hidden)]
    pub fn kept(recording: u64, number: usize, buffer: &Buffer<T>) -> Slot<T> {
        SlotMut::kept(recording, number, buffer).as_slot()
    }
}

impl<T: KernelType> SlotMut<T> {
    /// A slot for a buffer that a graph has.
    #[doc(hidden)]
    pub fn kept(recording: u64, number: usize, buffer: &Buffer<T>) -> SlotMut<T> {
        let signature = shared_slice_arg(buffer).type_signature();
        SlotMut::of(Tag {
            recording,
            place: Place::Kept(number),
            length: buffer.len(),
            signature,
        })
    }

    fn of(tag: Tag) -> SlotMut<T> {
        SlotMut {
            read: tag.slice::<T>(false),
            write: tag.slice::<T>(true),
            element: PhantomData,
        }
    }

    /// What the slot stands for.
    #[doc(hidden)]
    pub fn tag(&self) -> &Tag {
        &self.write
    }
}

/// A slot that can be read from as a buffer of `T`.
pub trait ReadSlot<T> {
    /// What the slot stands for.
    #[doc(hidden)]
    fn read_tag(&self) -> &Tag;

    /// What a launch is given that reads it.
    #[doc(hidden)]
    fn read_arg(&self) -> Arg<'_> {
        self.read_tag().arg()
    }
}

impl<T> ReadSlot<T> for Slot<T> {
    fn read_tag(&self) -> &Tag {
        &self.read
    }
}

impl<T> ReadSlot<T> for SlotMut<T> {
    fn read_tag(&self) -> &Tag {
        &self.read
    }
}

#[diagnostic::do_not_recommend]
impl<'a, T: KernelType> IntoArg<'a> for &'a Slot<T> {
    fn into_arg(self) -> Arg<'a> {
        self.read.arg()
    }
}

#[diagnostic::do_not_recommend]
impl<'a, T: KernelType> IntoArg<'a> for &'a SlotMut<T> {
    fn into_arg(self) -> Arg<'a> {
        self.read.arg()
    }
}

#[diagnostic::do_not_recommend]
impl<'a, T: KernelType> IntoArg<'a> for &'a mut SlotMut<T> {
    fn into_arg(self) -> Arg<'a> {
        self.write.arg()
    }
}

#[diagnostic::do_not_recommend]
impl<'a, T: KernelType> IntoArg<'a> for &'a ValueSlot<T> {
    fn into_arg(self) -> Arg<'a> {
        self.value.arg()
    }
}

/// What stands for a value in the `record` of a kernel: the slot of a sample, as `&slot`, or a value, which is the same in
/// all replays.
#[diagnostic::on_unimplemented(
    message = "`{Self}` stands for no value of type `{T}` in a recorded launch",
    note = "it is the slot of a sample, `&slot`, or a value of the parameter's type"
)]
pub trait RecordedValue<T> {
    /// What the launch is given.
    #[doc(hidden)]
    fn recorded_arg(&self) -> Arg<'_>;
}

#[diagnostic::do_not_recommend]
impl<T: KernelType> RecordedValue<T> for T {
    fn recorded_arg(&self) -> Arg<'_> {
        value_arg(self)
    }
}

impl<T> RecordedValue<T> for &ValueSlot<T> {
    fn recorded_arg(&self) -> Arg<'_> {
        self.value.arg()
    }
}

/// What stands for a struct in the `record` of a kernel: the slot of a sample, as `&slot`, or a value. That it is of the
/// parameter's type is looked at when it is recorded.
#[diagnostic::on_unimplemented(
    message = "`{Self}` stands for no value in a recorded launch",
    note = "it is the slot of a sample, `&slot`, or a value of the parameter's type"
)]
pub trait RecordedStruct {
    /// What the launch is given.
    #[doc(hidden)]
    fn recorded_arg(&self) -> Arg<'_>;
}

#[diagnostic::do_not_recommend]
impl<T: KernelType> RecordedStruct for T {
    fn recorded_arg(&self) -> Arg<'_> {
        value_arg(self)
    }
}

impl<T> RecordedStruct for &ValueSlot<T> {
    fn recorded_arg(&self) -> Arg<'_> {
        self.value.arg()
    }
}

macro_rules! narrowed_values {
    ($($host:ident => $kernel:ident;)*) => {$(
        impl RecordedValue<$host> for $host {
            fn recorded_arg(&self) -> Arg<'_> {
                (*self).into_arg()
            }
        }

        /// Kernels have 32 bits of it, and so has its sample.
        impl RecordedValue<$host> for &ValueSlot<$kernel> {
            fn recorded_arg(&self) -> Arg<'_> {
                self.value.arg()
            }
        }
    )*};
}

narrowed_values! {
    usize => u32;
    isize => i32;
}

/// A sample of an argument that replays of a graph are given: `&buffer` and `&mut buffer`, also of a part, or a value.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a sample of what a graph's replays are given",
    note = "a sample is `&buffer`, `&mut buffer` or a value of a `KernelType`, and the samples are a tuple of at most \
            12: `jit.graph((&x, &mut y, 2.0f32), |g, (x, mut y, a)| ..)`; of one it is `(&x,)`"
)]
pub trait GraphSample<'a> {
    /// What stands for the argument while the graph is recorded.
    type Slot;

    /// The slot at a position of a recording, and the sample.
    #[doc(hidden)]
    fn into_slot(self, recording: u64, position: usize) -> (Sample<'a>, Self::Slot);
}

fn tag(arg: &Arg<'_>, recording: u64, position: usize) -> Tag {
    let length = match arg.payload() {
        Payload::Slice { length, .. } => length as usize,
        _ => 1,
    };
    Tag {
        recording,
        place: Place::Argument(position),
        length,
        signature: arg.type_signature(),
    }
}

impl<'a, T: KernelType> GraphSample<'a> for &'a Part<T> {
    type Slot = Slot<T>;

    fn into_slot(self, recording: u64, position: usize) -> (Sample<'a>, Slot<T>) {
        let arg = self.into_arg();
        let slot = Slot {
            read: tag(&arg, recording, position),
            element: PhantomData,
        };
        let element = size_of::<T>();
        (Sample { arg, element }, slot)
    }
}

impl<'a, T: KernelType> GraphSample<'a> for &'a mut Part<T> {
    type Slot = SlotMut<T>;

    fn into_slot(self, recording: u64, position: usize) -> (Sample<'a>, SlotMut<T>) {
        let arg = self.into_arg();
        let slot = SlotMut::of(tag(&arg, recording, position));
        let element = size_of::<T>();
        (Sample { arg, element }, slot)
    }
}

impl<'a, T: KernelType> GraphSample<'a> for &'a Buffer<T> {
    type Slot = Slot<T>;

    fn into_slot(self, recording: u64, position: usize) -> (Sample<'a>, Slot<T>) {
        let part: &'a Part<T> = self;
        part.into_slot(recording, position)
    }
}

impl<'a, T: KernelType> GraphSample<'a> for &'a mut Buffer<T> {
    type Slot = SlotMut<T>;

    fn into_slot(self, recording: u64, position: usize) -> (Sample<'a>, SlotMut<T>) {
        let part: &'a mut Part<T> = self;
        part.into_slot(recording, position)
    }
}

#[diagnostic::do_not_recommend]
impl<'a, T: KernelType> GraphSample<'a> for T {
    type Slot = ValueSlot<T>;

    fn into_slot(self, recording: u64, position: usize) -> (Sample<'a>, ValueSlot<T>) {
        let arg = value_arg(&self);
        let value = ValueSlot {
            value: tag(&arg, recording, position),
            ty: PhantomData,
        };
        (Sample { arg, element: 0 }, value)
    }
}

/// Samples of all arguments that replays of a graph are given, as a tuple.
pub trait GraphSamples<'a> {
    /// A slot for each.
    type Slots;

    /// The slots, and the samples.
    #[doc(hidden)]
    fn into_slots(self, recording: u64) -> (Vec<Sample<'a>>, Self::Slots);
}

macro_rules! samples {
    ($($name:ident $at:tt),*) => {
        impl<'a, $($name: GraphSample<'a>),*> GraphSamples<'a> for ($($name,)*) {
            type Slots = ($($name::Slot,)*);

            fn into_slots(self, recording: u64) -> (Vec<Sample<'a>>, Self::Slots) {
                let mut samples = Vec::new();
                let slots = ($({
                    let (sample, slot) = self.$at.into_slot(recording, $at);
                    samples.push(sample);
                    slot
                },)*);
                let _ = recording;
                (samples, slots)
            }
        }
    };
}

#[diagnostic::do_not_recommend]
impl<'a> GraphSamples<'a> for () {
    type Slots = ();

    fn into_slots(self, _: u64) -> (Vec<Sample<'a>>, ()) {
        (Vec::new(), ())
    }
}

samples!(A 0);
samples!(A 0, B 1);
samples!(A 0, B 1, C 2);
samples!(A 0, B 1, C 2, D 3);
samples!(A 0, B 1, C 2, D 3, E 4);
samples!(A 0, B 1, C 2, D 3, E 4, F 5);
samples!(A 0, B 1, C 2, D 3, E 4, F 5, G 6);
samples!(A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7);
samples!(A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8);
samples!(A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9);
samples!(A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9, K 10);
samples!(A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9, K 10, L 11);

impl Arg<'_> {
    /// The argument as a value that code takes which was made for a sample: without facts about values.
    #[doc(hidden)]
    pub fn shape(&self) -> ArgSignature {
        self.type_signature()
    }

    /// Whether the argument is one that a replay can pass: a value with bytes, or a slice.
    #[doc(hidden)]
    pub fn is_bound(&self) -> bool {
        !matches!(
            self.payload(),
            Payload::Host(_) | Payload::View | Payload::OutOfRange(_) | Payload::Refused(_)
        )
    }
}

/// The bytes of a value, padding zeros.
#[doc(hidden)]
pub fn bytes_of_value<T: KernelType>(value: &T) -> SmallVec<[u8; 16]> {
    value_bytes(value)
}
