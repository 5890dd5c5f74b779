//! Graphs: launches, copies and fills that are recorded once and replayed with other arguments.
//!
//! A graph keeps what it has recorded: code, constant arguments, buffers that were given to it. What changes is bound at
//! each replay, by borrow, so nothing dangles, and the buffers of a replay are its uses: a replay is ordered among other
//! work as a launch is (`runtime/order.rs`). Inside, steps are ordered by the same rule, by what they use; it is worked
//! out while they are recorded (`record.rs`).

mod record;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use smallvec::SmallVec;

use super::{Jit, Stream};
use crate::cache::LoadedKernel;
use kiln_compiler::abi::{ParamKind, ParamSlot};
use kiln_compiler::args::{Arg, ArgSignature, GraphSamples, Payload, Place, Sample, Unfit};
use kiln_compiler::error::{Error, GraphError, Result};
use kiln_compiler::launch::LaunchConfig;
use kiln_compiler::runtime::{
    BackendGraph, Buffer, Device, DeviceId, OrderedStream, Part, Sharing, Step, Uses,
    outside_of_calls,
};
use kiln_compiler::value::KernelType;

pub use record::Recording;

/// Work that was recorded and is replayed: launches, copies and fills.
///
/// A GPU is given all of it by one call, and begins each step when those are done that it depends on: a step comes after
/// an earlier one that has written what it uses, or has used what it writes. Steps between which there is nothing of the
/// kind run at the same time. Devices without graphs, a CPU among them, do one step after the other.
///
/// ```
/// use kiln::prelude::*;
///
/// #[kernel]
/// fn scale(x: &[f32], by: f32, y: &mut [f32]) {
///     let i = global_id().x;
///     if i < y.len() {
///         y[i] = x[i] * by;
///     }
/// }
///
/// #[kernel]
/// fn add(x: &[f32], y: &mut [f32]) {
///     let i = global_id().x;
///     if i < y.len() {
///         y[i] += x[i];
///     }
/// }
///
/// # fn main() -> kiln::Result<()> {
/// let jit = Jit::new()?;
/// let (x, mut y) = (jit.upload(&[1.0f32; 64])?, jit.zeros::<f32>(64)?);
/// // Samples of what replays are given; the closure has a slot in the place of each.
/// let mut graph = jit.graph((&x, 2.0f32, &mut y), |g, (x, by, mut y)| {
///     let mut scaled = g.keep(jit.zeros::<f32>(64)?); // memory of the graph
///     g.launch(&scale, 2, 32, args!(&x, &by, &mut scaled))?;
///     g.launch(&scale, 2, 32, args!(&x, 1.0f32, &mut y))?; // beside the first
///     g.launch(&add, 2, 32, args!(&scaled, &mut y)) // after both
/// })?;
/// assert_eq!(graph.dependencies(), [vec![], vec![], vec![0, 1]]);
/// graph.replay(args!(&x, 2.0f32, &mut y))?;
/// assert_eq!(y.to_vec()?, [3.0; 64]);
/// let (other, mut sum) = (jit.upload(&[5.0f32; 64])?, jit.zeros::<f32>(64)?);
/// graph.replay(args!(&other, 10.0f32, &mut sum))?;
/// assert_eq!(sum.to_vec()?, [55.0; 64]);
/// graph.replay_on(&jit.stream()?, args!(&x, 0.0f32, &mut y))?;
/// assert_eq!(y.to_vec()?, [1.0; 64]);
/// # Ok(())
/// # }
/// ```
///
/// What a replay reads and writes rustc looks at as for a launch:
///
/// ```compile_fail,E0502
/// # use kiln_jit_core::{args, jit::Graph, runtime::Buffer};
/// fn both(graph: &mut Graph, mut x: Buffer<f32>) {
///     let _ = graph.replay(args!(&x, &mut x));
/// }
/// ```
///
/// The shapes of launches are those that were recorded, whatever the lengths of the buffers. A kernel that is defined
/// anew is in the graph what it was: record the graph again. A fault is told as that of a launch, by who waits for the
/// stream of the replay or reads what it wrote. A graph that is dropped while it runs goes on to its end.
pub struct Graph {
    jit: Jit,
    /// What the device has made of it, before what that names; `None` where steps are done one after the other.
    made: Option<Box<dyn BackendGraph>>,
    steps: Vec<Recorded>,
    after: Vec<Vec<usize>>,
    slots: Vec<Bound>,
    kept: Vec<Kept>,
    /// Steps that are yet to be set to what the slots have.
    stale: Vec<usize>,
    /// Whether a kernel prints.
    prints: bool,
}

/// A step, with what it has now.
enum Recorded {
    Launch {
        loaded: Arc<LoadedKernel>,
        config: LaunchConfig,
        /// What is passed; what a device has made of the graph has its own.
        block: Box<[u8]>,
    },
    Copy {
        to: Place,
        from: Place,
    },
    Fill {
        to: Place,
        value: SmallVec<[u8; 4]>,
    },
}

/// What a slot stands for, as nodes have it.
struct Bound {
    signature: ArgSignature,
    /// The type of the sample, for errors.
    ty: String,
    /// Bytes of an element of a slice.
    element: usize,
    /// The number of elements, where replays are to have as many.
    fixed: Option<u64>,
    value: Value,
    users: Vec<User>,
    /// The places of its value, if all that use it are launches that are passed it in at most 8 bytes.
    numbers: Vec<(usize, ParamSlot)>,
}

/// Where what a slot stands for goes.
struct User {
    step: usize,
    /// The parameter, in a launch.
    param: Option<ParamKind>,
    /// The graph's memory that has a copy of what is passed by reference.
    copy: Option<usize>,
}

#[derive(Clone, PartialEq)]
enum Value {
    Slice { address: u64, length: u64 },
    Bytes(SmallVec<[u8; 16]>),
}

/// Memory that a graph has.
struct Kept {
    memory: Box<dyn Memory>,
    written: bool,
}

trait Memory: Send + Sync {
    fn uses(&self) -> &Uses;
    /// The address, the number of elements, and the size of one.
    fn range(&self) -> (u64, u64, usize);
    fn device(&self) -> DeviceId;
}

impl<T: KernelType> Memory for Buffer<T> {
    fn uses(&self) -> &Uses {
        Part::uses(self)
    }

    fn range(&self) -> (u64, u64, usize) {
        (self.address(), self.len() as u64, size_of::<T>())
    }

    fn device(&self) -> DeviceId {
        self.device_id()
    }
}

impl<T: KernelType> Memory for Arc<Buffer<T>> {
    fn uses(&self) -> &Uses {
        Part::uses(self)
    }

    fn range(&self) -> (u64, u64, usize) {
        (**self).range()
    }

    fn device(&self) -> DeviceId {
        self.device_id()
    }
}

impl std::fmt::Debug for Graph {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (steps, device) = (self.steps.len(), self.jit.device());
        write!(f, "Graph({steps} steps on {device:?})")
    }
}

impl Jit {
    /// Records a graph: what the closure launches, copies and fills by its first argument. Nothing of it is done.
    /// `samples` are a tuple of arguments like those that replays are given, which decide what kernels are compiled for;
    /// the second argument of the closure has a slot for each, which is passed in its place. [`Graph`] has an example.
    ///
    /// # Errors
    /// What the closure gives; nothing recorded, or a sample that nothing uses; hooks that are asked or told at each
    /// launch, as replays do neither; a device that has failed.
    pub fn graph<'a, S: GraphSamples<'a>>(
        &self,
        samples: S,
        record: impl FnOnce(&mut Recording, S::Slots) -> Result<()>,
    ) -> Result<Graph> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        outside_of_calls()?;
        if self.0.observes_launches {
            return Err(GraphError::Observed.into());
        }
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let (samples, slots) = samples.into_slots(number);
        let bound = samples.iter().enumerate();
        let bound = bound.map(|(position, sample)| self.sampled(position, sample));
        let mut recording = Recording::new(self.clone(), number, bound.collect::<Result<_>>()?);
        record(&mut recording, slots)?;
        recording.end()
    }

    fn sampled(&self, position: usize, sample: &Sample<'_>) -> Result<Bound> {
        let Sample { arg, element } = sample;
        self.check_owner("graph", position, arg)?;
        Ok(Bound {
            signature: arg.shape(),
            ty: arg.type_form(),
            element: *element,
            fixed: None,
            value: value_of(arg).ok_or(Error::Internal("a sample has no value"))?,
            users: Vec::new(),
            numbers: Vec::new(),
        })
    }

    fn check_owner(
        &self,
        what: &'static str,
        position: usize,
        arg: &Arg<'_>,
    ) -> Result<(), GraphError> {
        match arg.device() {
            Some(owner) if owner != self.0.id => Err(GraphError::ForeignBuffer {
                what,
                position,
                owner,
                device: self.0.id,
            }),
            _ => Ok(()),
        }
    }
}

impl User {
    /// The step and the slot of its block that has the whole of a value of at most 8 bytes.
    fn number(&self) -> Option<(usize, ParamSlot)> {
        match self.param {
            Some(ParamKind::Value(slot)) if slot.size <= 8 => Some((self.step, slot)),
            _ => None,
        }
    }
}

impl Bound {
    /// The number of elements that is asked for, and that of an argument with others.
    #[inline]
    fn other_length(&self, arg: &Arg<'_>) -> Option<(u64, u64)> {
        match (self.fixed, arg.payload()) {
            (Some(fixed), Payload::Slice { length, .. }) if fixed != length => {
                Some((fixed, length))
            }
            _ => None,
        }
    }
}

/// What an argument passes.
fn value_of(arg: &Arg<'_>) -> Option<Value> {
    match arg.payload() {
        Payload::Slice { address, length } => Some(Value::Slice { address, length }),
        payload => payload.whole().map(Value::Bytes),
    }
}

/// Whether an argument passes what is bound, without making a value of it.
fn passes(arg: &Arg<'_>, bound: &Value) -> bool {
    match (arg.payload(), bound) {
        (Payload::Slice { address, length }, Value::Slice { .. }) => {
            *bound == Value::Slice { address, length }
        }
        (Payload::Word(word), Value::Bytes(bytes)) if bytes.len() >= 8 => {
            bytes[..8] == word.to_le_bytes()
        }
        _ => value_of(arg).as_ref() == Some(bound),
    }
}

impl Value {
    /// The first 8 bytes of a value of any number of them.
    fn word(&self) -> Option<u64> {
        match self {
            Value::Bytes(bytes) => bytes.first_chunk().map(|word| u64::from_le_bytes(*word)),
            Value::Slice { .. } => None,
        }
    }

    /// Passes it for a parameter, with another copy in the place of an earlier one, which replays may still read.
    fn pass(
        &self,
        device: &Device,
        param: &ParamKind,
        block: &mut [u8],
        kept: Option<&mut Kept>,
    ) -> Result<()> {
        if let (ParamKind::Reference { address, .. }, Some(kept)) = (param, kept) {
            let copy = self.copy_for(device, param)?;
            address.write_number(block, copy.address());
            kept.memory = Box::new(copy);
        }
        self.write(param, block);
        Ok(())
    }

    /// A copy on the device of what is passed by reference.
    fn copy_for(&self, device: &Device, param: &ParamKind) -> Result<Buffer<u8>> {
        let (Value::Bytes(value), ParamKind::Reference { bytes, .. }) = (self, param) else {
            return Err(Error::Internal("a slice is passed by reference"));
        };
        Buffer::from_slice(device, &value[..*bytes as usize])
    }

    /// Writes what is passed for a parameter.
    fn write(&self, kind: &ParamKind, block: &mut [u8]) {
        match (self, kind) {
            (
                Value::Slice { address, length },
                ParamKind::Slice {
                    address: a,
                    length: l,
                },
            ) => {
                a.write_number(block, *address);
                l.write_number(block, *length);
            }
            (Value::Slice { address, .. }, ParamKind::Value(slot)) => {
                slot.write_number(block, *address);
            }
            (Value::Bytes(bytes), ParamKind::Value(slot)) => {
                let range = slot.range();
                let count = range.len();
                block[range].copy_from_slice(&bytes[..count]);
            }
            // Addresses of copies are written by whoever makes them.
            (_, ParamKind::Reference { .. }) | (Value::Bytes(_), ParamKind::Slice { .. }) => {}
        }
    }
}

impl Graph {
    /// Does what was recorded, with these arguments in the place of the samples. On a GPU it returns while that runs.
    ///
    /// # Errors
    /// Arguments of another number, of other types or facts than the samples, or of another device; a copy that does
    /// not fit; a device that has failed.
    pub fn replay(&mut self, args: &[Arg<'_>]) -> Result<()> {
        self.replay_in(None, args)
    }

    /// [`Graph::replay`] in a stream of the device; by itself a graph is replayed in that of the `Jit` that has
    /// recorded it.
    ///
    /// # Errors
    /// A stream of another device; else as [`Graph::replay`].
    pub fn replay_on(&mut self, stream: &Stream, args: &[Arg<'_>]) -> Result<()> {
        let device = &self.jit.0.device;
        device.check_same(stream.device())?;
        self.replay_in(Some(stream), args)
    }

    /// For each step, in the order in which they were recorded, those that it waits for.
    pub fn dependencies(&self) -> &[Vec<usize>] {
        &self.after
    }

    fn replay_in(&mut self, jit: Option<&Jit>, args: &[Arg<'_>]) -> Result<()> {
        outside_of_calls()?;
        self.bind(args)?;
        self.set_stale()?;
        let Graph {
            made, steps, slots, ..
        } = self;
        let jit = jit.unwrap_or(&self.jit);
        let (device, stream) = (&jit.0.device, jit.order());
        let kept = &self.kept;
        let kept_uses = || kept.iter().map(|kept| (kept.memory.uses(), kept.written));
        let all = || args.iter().filter_map(Arg::uses).chain(kept_uses());
        let streams = device.streams();
        let _shared = match all().all(|(uses, writes)| stream.is_behind(uses, writes)) {
            true => None,
            false => {
                let shared = Sharing::of(all());
                for (uses, writes) in all() {
                    streams.order(device.backend().as_ref(), stream, uses, writes)?;
                }
                Some(shared)
            }
        };
        let limit = jit.0.options.time_limit;
        let result = match made {
            Some(made) => made.launch(stream.work(), limit).map_err(Error::from),
            None => each_step(device, stream, steps, slots, kept, limit),
        };
        // One that failed may have begun.
        let number = stream.count();
        all().for_each(|(uses, writes)| stream.note(uses, writes, number));
        if self.prints {
            jit.0.output.expect(stream);
        }
        result
    }

    /// Binds the slots to arguments, and notes the steps that have others now.
    fn bind(&mut self, args: &[Arg<'_>]) -> Result<()> {
        let (recorded, given) = (self.slots.len(), args.len());
        if recorded != given {
            return Err(GraphError::Count { recorded, given }.into());
        }
        for (position, (arg, slot)) in args.iter().zip(&self.slots).enumerate() {
            self.check(position, arg, slot)?;
        }
        for (arg, slot) in args.iter().zip(&mut self.slots) {
            if passes(arg, &slot.value) {
                continue;
            }
            let Some(value) = value_of(arg) else { continue };
            // Should a copy fail, it is nothing, which the next replay is not of.
            slot.value = Value::Bytes(SmallVec::new());
            let word = value.word();
            if let (Some(word), Some(made), [_, ..]) = (word, &mut self.made, &*slot.numbers) {
                self.stale
                    .extend(slot.numbers.iter().map(|(step, _)| *step));
                made.write_numbers(&slot.numbers, word)?;
                slot.value = value;
                continue;
            }
            for User { step, param, copy } in &slot.users {
                self.stale.push(*step);
                let Some(param) = param else { continue };
                // Where the device has what is passed it is written there, and nowhere else.
                let block = match (&mut self.made, &mut self.steps[*step]) {
                    (Some(made), _) => made.block_mut(*step),
                    (None, Recorded::Launch { block, .. }) => Some(&mut **block),
                    (None, _) => None,
                };
                const NO_BLOCK: Error = Error::Internal("a step with a parameter is no launch");
                let block = block.ok_or(NO_BLOCK)?;
                match (param, word) {
                    (ParamKind::Value(slot), Some(word)) if slot.size <= 8 => {
                        slot.write_number(block, word);
                    }
                    _ => {
                        let kept = copy.map(|number| &mut self.kept[number]);
                        value.pass(&self.jit.0.device, param, block, kept)?;
                    }
                }
            }
            slot.value = value;
        }
        Ok(())
    }

    #[inline]
    fn check(&self, position: usize, arg: &Arg<'_>, slot: &Bound) -> Result<()> {
        let fits = arg.shape().fits(slot.signature);
        let is_own = arg.device().is_none_or(|id| id == self.jit.0.id);
        if fits.is_ok() && arg.is_bound() && is_own && slot.other_length(arg).is_none() {
            return Ok(());
        }
        self.refuse(position, arg, slot, fits)
    }

    #[cold]
    fn refuse(
        &self,
        position: usize,
        arg: &Arg<'_>,
        slot: &Bound,
        fits: Result<(), Unfit>,
    ) -> Result<()> {
        self.jit.check_owner("replay", position, arg)?;
        Err(match (fits, slot.other_length(arg)) {
            (Err(Unfit::Fact(fact)), _) => GraphError::Fact { position, fact },
            (Ok(()), Some((recorded, given))) => GraphError::Length {
                position,
                recorded,
                given,
            },
            _ => GraphError::Type {
                position,
                recorded: slot.ty.clone(),
                given: arg.type_form(),
            },
        }
        .into())
    }

    /// Sets the steps anew that have other arguments than the device knows of. Those that could not be set stay stale.
    fn set_stale(&mut self) -> Result<()> {
        if self.stale.is_empty() {
            return Ok(());
        }
        // Those of one slot are in order.
        if !self.stale.is_sorted_by(|before, after| before < after) {
            self.stale.sort_unstable();
            self.stale.dedup();
        }
        if let Some(made) = &mut self.made {
            made.begin()?;
        }
        loop {
            if let Some(made) = &mut self.made {
                made.set_blocks(&mut self.stale)?;
            }
            let Some(&at) = self.stale.last() else {
                return Ok(());
            };
            let step = step_of(&self.steps[at], &self.slots, &self.kept)?;
            if let Some(made) = &mut self.made {
                made.set(at, &step)?;
            }
            self.stale.pop();
        }
    }
}

/// Does all steps one after the other.
fn each_step(
    device: &Device,
    stream: &OrderedStream,
    steps: &[Recorded],
    slots: &[Bound],
    kept: &[Kept],
    limit: Option<std::time::Duration>,
) -> Result<()> {
    for step in steps {
        device.take_step(stream, &step_of(step, slots, kept)?, limit)?;
    }
    Ok(())
}

/// The step as the device takes it.
fn step_of<'a>(step: &'a Recorded, slots: &[Bound], kept: &[Kept]) -> Result<Step<'a>> {
    let range = |place: &Place| -> (u64, usize) {
        let (address, length, element) = match *place {
            Place::Kept(number) => kept[number].memory.range(),
            Place::Argument(at) => match slots[at].value {
                Value::Slice { address, length } => (address, length, slots[at].element),
                Value::Bytes(_) => (0, 0, 0),
            },
        };
        (address, length as usize * element)
    };
    match step {
        Recorded::Launch {
            loaded,
            config,
            block,
        } => Ok(Step::Launch {
            code: loaded.code(),
            kernel: &loaded.compiled.info,
            config,
            block,
        }),
        Recorded::Copy { to, from } => {
            let ((to, room), (from, bytes)) = (range(to), range(from));
            match bytes {
                0 => Err(GraphError::NothingToDo.into()),
                _ if bytes > room => {
                    let (from, to) = (bytes, room);
                    Err(GraphError::CopyTooLarge { from, to }.into())
                }
                _ => Ok(Step::Memcpy { to, from, bytes }),
            }
        }
        Recorded::Fill { to, value } => match range(to) {
            (_, 0) => Err(GraphError::NothingToDo.into()),
            (to, bytes) => Ok(Step::Fill { to, value, bytes }),
        },
    }
}
