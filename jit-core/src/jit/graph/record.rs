//! What a graph records: launches with their code and what is passed, and which step comes after which.

use std::collections::HashMap;
use std::sync::Arc;

use super::{Bound, Graph, Kept, Memory, Recorded, User, step_of};
use crate::cache::{Consts, LoadedKernel};
use crate::jit::Jit;
use crate::jit::load::with_consts;
use kiln_compiler::abi::ParamKind;
use kiln_compiler::args::{
    Arg, Converted, Payload, Place, ReadSlot, Slot, SlotMut, Tag, bytes_of_value,
};
use kiln_compiler::build::Kernel;
use kiln_compiler::code::KernelInfo;
use kiln_compiler::error::{Error, GraphError, Result};
use kiln_compiler::front::{AsKernel, LazyKernel};
use kiln_compiler::ir::HiddenSource;
use kiln_compiler::ir::printed::GLOBAL;
use kiln_compiler::launch::{Dim3, LaunchConfig, check_config};
use kiln_compiler::runtime::Buffer;
use kiln_compiler::value::KernelType;
use smallvec::SmallVec;

/// What the closure of [`Jit::graph`] records with.
///
/// ```
/// use kiln::prelude::*;
///
/// #[kernel]
/// fn reverse(x: &mut [f32]) {
///     let (i, tile) = (thread_idx().x, dynamic_shared::<f32>());
///     tile[i] = x[i];
///     barrier();
///     x[i] = tile[x.len() - 1 - i];
/// }
///
/// #[kernel]
/// fn double(x: &mut [f32]) {
///     x[thread_idx().x] *= 2.0;
/// }
///
/// # fn main() -> kiln::Result<()> {
/// let jit = Jit::new()?;
/// let (x, mut y) = (jit.upload(&[1.0f32, 2.0, 3.0])?, jit.zeros::<f32>(3)?);
/// let mut graph = jit.graph((&x, &mut y), |g, (x, mut y)| {
///     let table = g.keep(jit.upload(&[7.0f32])?);
///     let mut spare = g.keep(jit.zeros::<f32>(2)?);
///     g.fill(&mut spare, 1.0)?;
///     g.copy(&table, &mut spare)?;
///     g.copy(&x, &mut y)?;
///     g.launch(&double, 1, 3, args!(&mut y))?;
///     g.launch_with(&reverse, LaunchConfig::new(1, 3).shared_bytes(12), args!(&mut y))
/// })?;
/// graph.replay(args!(&x, &mut y))?;
/// assert_eq!(y.to_vec()?, [6.0, 4.0, 2.0]);
/// # Ok(())
/// # }
/// ```
pub struct Recording {
    jit: Jit,
    number: u64,
    steps: Vec<Recorded>,
    after: Vec<Vec<usize>>,
    slots: Vec<Bound>,
    kept: Vec<Kept>,
    accesses: HashMap<Place, Accesses>,
}

/// Refuses a slot of a buffer that an earlier argument is of, too, if either is written: slots are read by clones of theirs,
/// so rustc does not see it.
fn check_alone(kernel: &str, args: &[Arg<'_>], second: usize, tag: &Tag) -> Result<(), GraphError> {
    let is_same = |earlier: &Arg<'_>| match earlier.payload() {
        Payload::Host(value) => Tag::of(value).is_some_and(|other| {
            let writes = other.signature().writes() || tag.signature().writes();
            other.place == tag.place && tag.signature().is_slice() && writes
        }),
        _ => false,
    };
    match args[..second].iter().position(is_same) {
        Some(first) => Err(GraphError::Aliased {
            kernel: kernel.to_owned(),
            first,
            second,
        }),
        None => Ok(()),
    }
}

/// Which steps have used a piece of memory.
#[derive(Default)]
struct Accesses {
    written: Option<usize>,
    read_since: Vec<usize>,
}

impl std::fmt::Debug for Recording {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let steps = self.steps.len();
        write!(f, "Recording({steps} steps for {:?})", self.jit.device())
    }
}

/// The memory that a step uses, and whether it writes there.
type StepUses = SmallVec<[(Place, bool); 8]>;

impl Recording {
    pub(super) fn new(jit: Jit, number: u64, slots: Vec<Bound>) -> Recording {
        Recording {
            jit,
            number,
            steps: Vec::new(),
            after: Vec::new(),
            slots,
            kept: Vec::new(),
            accesses: HashMap::new(),
        }
    }

    /// Records a launch. Arguments are slots, and values, which are the same in all replays.
    ///
    /// # Errors
    /// As [`Jit::launch`]; a buffer that is neither a slot's nor kept; a kernel for which a hook gives a value at each
    /// launch.
    pub fn launch(
        &mut self,
        kernel: &(impl AsKernel + ?Sized),
        grid: impl Into<Dim3>,
        block: impl Into<Dim3>,
        args: &[Arg<'_>],
    ) -> Result<()> {
        self.launch_with(kernel, LaunchConfig::new(grid, block), args)
    }

    /// [`Recording::launch`] with dynamic shared memory.
    ///
    /// # Errors
    /// As [`Recording::launch`].
    pub fn launch_with(
        &mut self,
        kernel: &(impl AsKernel + ?Sized),
        config: LaunchConfig,
        args: &[Arg<'_>],
    ) -> Result<()> {
        self.launch_kernel(kernel.as_kernel()?, &[], config, args)
    }

    /// What the `record` of a kernel does, whose arguments rustc has checked; const parameters that no argument
    /// determines come by name.
    ///
    /// # Errors
    /// As [`Recording::launch`].
    #[doc(hidden)]
    pub fn launch_typed(
        &mut self,
        kernel: &LazyKernel,
        config: LaunchConfig,
        consts: &[(&str, i128)],
        args: &[Arg<'_>],
    ) -> Result<()> {
        self.launch_kernel(kernel.get()?, consts, config, args)
    }

    fn launch_kernel(
        &mut self,
        kernel: &Kernel,
        consts: &[(&str, i128)],
        config: LaunchConfig,
        args: &[Arg<'_>],
    ) -> Result<()> {
        let converted = self.converted(|| kernel.name(), args)?;
        let args = converted.as_ref().map_or(args, Converted::args);
        let loaded = match consts {
            [] => {
                let consts = Consts::Bound(kernel.consts());
                self.jit.loaded(kernel, consts, &config, args)?
            }
            given => {
                let kernel = with_consts(kernel, given);
                let consts = Consts::Bound(kernel.consts());
                self.jit.loaded(&kernel, consts, &config, args)?
            }
        };
        self.add_launch(loaded, config, args)
    }

    /// The arguments with what hooks make of host values; slots stay.
    pub(in crate::jit) fn converted<'a>(
        &self,
        name: impl Fn() -> String,
        args: &'a [Arg<'_>],
    ) -> Result<Option<Converted<'a>>> {
        Converted::of(args, |position, value| match Tag::of(value) {
            Some(tag) => Ok(tag.arg()),
            None => self.jit.convert_one(name(), position, value),
        })
    }

    /// Whether this `Jit` records, in whatever stream.
    pub(in crate::jit) fn is_of(&self, jit: &Jit) -> bool {
        Arc::ptr_eq(&self.jit.0, &jit.0)
    }

    /// Records a launch of code that was made for these arguments.
    pub(in crate::jit) fn add_launch(
        &mut self,
        loaded: Arc<LoadedKernel>,
        config: LaunchConfig,
        args: &[Arg<'_>],
    ) -> Result<()> {
        let info = &loaded.compiled.info;
        check_config(&config, &self.jit.0.limits, info)?;
        if config.cooperative {
            let info = &loaded.compiled.info;
            self.jit.check_all_at_once(info, loaded.code(), &config)?;
        }
        let mut block = vec![0; info.layout.size as usize];
        let (step, mut uses, mut users) = (self.steps.len(), StepUses::new(), Vec::new());
        for (position, (arg, kind)) in args.iter().zip(&info.layout.params).enumerate() {
            let tag = match arg.payload() {
                Payload::Host(value) => Tag::of(value),
                _ => None,
            };
            match tag {
                Some(tag) => {
                    self.check_own(tag, || format!("kernel `{}`", info.name))?;
                    check_alone(&info.name, args, position, tag)?;
                    let copy = self.pass_slot(tag, kind, &mut block)?;
                    uses.extend(copy.map(|number| (Place::Kept(number), false)));
                    if tag.signature().is_slice() {
                        uses.push((tag.place, tag.signature().writes()));
                    }
                    if let Place::Argument(at) = tag.place {
                        let param = Some(*kind);
                        users.push((at, User { step, param, copy }));
                    }
                }
                None => self.pass(arg, info, (position, kind), &mut block, &mut uses)?,
            }
        }
        self.pass_globals(info, &mut block, &mut uses)?;
        for (slot, user) in users {
            self.slots[slot].users.push(user);
        }
        let block = block.into();
        let launch = Recorded::Launch {
            loaded,
            config,
            block,
        };
        self.add(launch, &uses);
        Ok(())
    }

    /// Records a copy: the first values of a buffer become those of another, as many as that has.
    ///
    /// # Errors
    /// A slot of another graph. That there is room is looked at for the samples and at each replay.
    pub fn copy<T: KernelType>(
        &mut self,
        from: &impl ReadSlot<T>,
        to: &mut SlotMut<T>,
    ) -> Result<()> {
        let (from, to) = (from.read_tag(), to.tag());
        let user = || "a copy".to_owned();
        self.check_own(from, user)?;
        self.check_own(to, user)?;
        let (from, to) = (from.place, to.place);
        self.add_plain(Recorded::Copy { to, from }, &[(from, false), (to, true)])
    }

    /// Records that every value of a buffer becomes this one.
    ///
    /// # Errors
    /// A slot of another graph; a value whose bytes do not repeat every 1, 2 or 4.
    pub fn fill<T: KernelType>(&mut self, to: &mut SlotMut<T>, value: T) -> Result<()> {
        let to = to.tag();
        self.check_own(to, || "a fill".to_owned())?;
        let bytes = bytes_of_value(&value);
        let bytes = &bytes[..size_of::<T>()];
        let repeats = |period: usize| {
            bytes.len().is_multiple_of(period)
                && bytes.chunks(period).all(|part| *part == bytes[..period])
        };
        let Some(period) = [1, 2, 4]
            .into_iter()
            .find(|&period| bytes.len() >= period && repeats(period))
        else {
            let bytes = bytes.len();
            return Err(GraphError::FillValue { bytes }.into());
        };
        let (to, value) = (to.place, SmallVec::from_slice(&bytes[..period]));
        self.add_plain(Recorded::Fill { to, value }, &[(to, true)])
    }

    /// Gives a buffer to the graph, which frees it at its end. Its slot goes where a sample's does; what replays write
    /// there is there at the next.
    pub fn keep<T: KernelType>(&mut self, buffer: Buffer<T>) -> SlotMut<T> {
        let slot = SlotMut::kept(self.number, self.kept.len(), &buffer);
        self.hold(Box::new(buffer));
        slot
    }

    /// Gives the graph a share of a buffer that others read, too. Its slot is read from.
    ///
    /// ```
    /// # use kiln::prelude::*;
    /// # use std::sync::Arc;
    /// # fn main() -> kiln::Result<()> {
    /// let jit = Jit::new()?;
    /// let (table, mut y) = (Arc::new(jit.upload(&[1u32, 2, 3])?), jit.zeros::<u32>(3)?);
    /// let mut graph = jit.graph((&mut y,), |g, (mut y,)| {
    ///     let table = g.share(&table);
    ///     g.copy(&table, &mut y)
    /// })?;
    /// graph.replay(args!(&mut y))?;
    /// assert_eq!(y.to_vec()?, table.to_vec()?);
    /// # Ok(())
    /// # }
    /// ```
    pub fn share<T: KernelType>(&mut self, buffer: &Arc<Buffer<T>>) -> Slot<T> {
        let slot = Slot::kept(self.number, self.kept.len(), buffer);
        self.hold(Box::new(buffer.clone()));
        slot
    }

    /// Has replays take a buffer of the sample's length and no other, for what was recorded for so many elements.
    ///
    /// ```
    /// # use kiln::prelude::*;
    /// # fn main() -> kiln::Result<()> {
    /// let jit = Jit::new()?;
    /// let mut x = jit.zeros::<u32>(4)?;
    /// let mut graph = jit.graph((&mut x,), |g, (mut x,)| {
    ///     g.fix_length(&x)?;
    ///     g.fill(&mut x, 1)
    /// })?;
    /// graph.replay(args!(&mut x))?;
    /// assert!(graph.replay(args!(&mut jit.zeros::<u32>(5)?)).is_err());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// A slot of another graph.
    pub fn fix_length<T: KernelType>(&mut self, slot: &impl ReadSlot<T>) -> Result<()> {
        let tag = slot.read_tag();
        self.check_own(tag, || "`fix_length`".to_owned())?;
        if let Place::Argument(at) = tag.place
            && let super::Value::Slice { length, .. } = self.slots[at].value
        {
            self.slots[at].fixed = Some(length);
        }
        Ok(())
    }

    /// The `Jit` that records.
    pub fn jit(&self) -> &Jit {
        &self.jit
    }

    fn hold(&mut self, memory: Box<dyn Memory>) -> Place {
        let written = false;
        self.kept.push(Kept { memory, written });
        Place::Kept(self.kept.len() - 1)
    }

    fn check_own(&self, tag: &Tag, user: impl FnOnce() -> String) -> Result<(), GraphError> {
        if tag.recording != self.number {
            return Err(GraphError::OtherGraph { user: user() });
        }
        let device = self.jit.0.id;
        match tag.place {
            Place::Kept(number) if self.kept[number].memory.device() != device => {
                Err(GraphError::ForeignKept {
                    user: user(),
                    owner: self.kept[number].memory.device(),
                    device,
                })
            }
            _ => Ok(()),
        }
    }

    /// Passes what a slot stands for as yet. What comes back is the number of a copy of it.
    fn pass_slot(
        &mut self,
        tag: &Tag,
        param: &ParamKind,
        block: &mut [u8],
    ) -> Result<Option<usize>> {
        let number = match tag.place {
            Place::Argument(at) => at,
            Place::Kept(number) => {
                let (address, length, _) = self.kept[number].memory.range();
                super::Value::Slice { address, length }.write(param, block);
                return Ok(None);
            }
        };
        let value = &self.slots[number].value;
        let ParamKind::Reference { address, .. } = param else {
            value.write(param, block);
            return Ok(None);
        };
        let copy = value.copy_for(&self.jit.0.device, param)?;
        address.write_number(block, copy.address());
        self.hold(Box::new(copy));
        Ok(Some(self.kept.len() - 1))
    }

    /// Passes a value that is the same in all replays.
    fn pass(
        &mut self,
        arg: &Arg<'_>,
        info: &KernelInfo,
        (position, kind): (usize, &ParamKind),
        block: &mut [u8],
        uses: &mut StepUses,
    ) -> Result<()> {
        if matches!(arg.payload(), Payload::Slice { .. }) {
            return Err(GraphError::NotHeld {
                kernel: info.name.clone(),
                position,
                argument: info.param_names.get(position).cloned().unwrap_or_default(),
            }
            .into());
        }
        let mut copies = Vec::new();
        self.jit
            .pack_other(info, position, (arg, kind), block, &mut copies)?;
        for copy in copies {
            uses.push((self.hold(Box::new(copy)), false));
        }
        Ok(())
    }

    /// Passes the addresses of globals, which the graph keeps.
    fn pass_globals(
        &mut self,
        info: &Arc<KernelInfo>,
        block: &mut [u8],
        uses: &mut StepUses,
    ) -> Result<()> {
        for hidden in &info.hidden {
            let Some(kind) = hidden.passed else { continue };
            let (HiddenSource::Global(initial), ParamKind::Value(slot)) = (&hidden.source, kind)
            else {
                return Err(GraphError::Hidden {
                    kernel: info.name.clone(),
                    hidden: hidden.name.clone(),
                    giver: hidden.source.to_string(),
                }
                .into());
            };
            let state = &self.jit.0;
            let memory = state
                .globals
                .enter(&state.device, hidden, initial.as_deref())?;
            if hidden.name == GLOBAL {
                state.output.know(info, &memory);
            }
            let address = memory.address();
            slot.write_number(block, address);
            let known = |kept: &Kept| kept.memory.range().0 == address;
            let place = match self.kept.iter().position(known) {
                Some(number) => Place::Kept(number),
                None => self.hold(Box::new(memory)),
            };
            uses.push((place, true));
        }
        Ok(())
    }

    /// Adds a copy or a fill, once it is seen that it can be done with the samples.
    fn add_plain(&mut self, step: Recorded, uses: &[(Place, bool)]) -> Result<()> {
        step_of(&step, &self.slots, &self.kept)?;
        for (place, _) in uses {
            if let Place::Argument(at) = place {
                let (step, param, copy) = (self.steps.len(), None, None);
                self.slots[*at].users.push(User { step, param, copy });
            }
        }
        self.add(step, uses);
        Ok(())
    }

    /// Adds a step behind those that it depends on.
    fn add(&mut self, step: Recorded, uses: &[(Place, bool)]) {
        let at = self.steps.len();
        let mut after = Vec::new();
        for (place, writes) in uses {
            let accesses = self.accesses.entry(*place).or_default();
            // Those that read come after what was written before, so they are enough.
            match (*writes, accesses.read_since.is_empty()) {
                (true, false) => after.append(&mut accesses.read_since),
                _ => after.extend(accesses.written),
            }
            match writes {
                true => accesses.written = Some(at),
                false => accesses.read_since.push(at),
            }
            if let (Place::Kept(number), true) = (place, *writes) {
                self.kept[*number].written = true;
            }
        }
        after.sort_unstable();
        after.dedup();
        // One that is passed twice.
        after.retain(|&before| before != at);
        self.steps.push(step);
        self.after.push(after);
    }

    /// The graph, made ready by the device.
    pub(super) fn end(self) -> Result<Graph> {
        if self.steps.is_empty() {
            return Err(GraphError::Empty.into());
        }
        if let Some(position) = self.slots.iter().position(|slot| slot.users.is_empty()) {
            return Err(GraphError::Unused { position }.into());
        }
        let Recording {
            jit,
            steps,
            after,
            mut slots,
            kept,
            ..
        } = self;
        for slot in &mut slots {
            let numbers: Option<Vec<_>> = slot.users.iter().map(User::number).collect();
            slot.numbers = numbers.unwrap_or_default();
        }
        let each = steps.iter().map(|step| step_of(step, &slots, &kept));
        let described = each.collect::<Result<Vec<_>, Error>>()?;
        let backend = jit.0.device.backend();
        let made = backend.create_graph(&described, &after)?;
        drop(described);
        let prints = steps.iter().any(|step| match step {
            Recorded::Launch { loaded, .. } => !loaded.compiled.info.print_sites.is_empty(),
            _ => false,
        });
        Ok(Graph {
            prints,
            jit,
            made,
            steps,
            after,
            slots,
            kept,
            stale: Vec::new(),
        })
    }
}
