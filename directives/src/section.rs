//! Sections: which elements of a slice the threads of a block read in one turn of a loop, as a box.
//!
//! An index is a sum of turns of loops. In one turn of a loop some of them are the same for all that the block executes
//! side by side: those of loops around that are not distributed over threads. The others range: of a loop around that
//! is distributed over threads, over the turns of one batch, and of a loop within, over all its turns. The section is
//! the origin, which is the sum with each of these at its first turn, and from there a box: along each dimension so
//! many elements that lie a stride apart. Reads whose origins differ by a number, as those of a stencil do, share a box
//! that holds them all; others have boxes of their own. What a turn writes of a slice that is copied out is found in the same way.

use std::collections::{HashMap, HashSet};
use std::fmt;

use kiln_jit_core::ir::{
    Control, Function, Inst, InstData, Module, Read as Way, Source, Value, ValueDef,
};

use self::boxed::boxed;
use crate::accesses::{Access, Accesses, Around};
use crate::affine::{Affine, Atom, Form, Known, Step};
use crate::along::Along;
use crate::banks::padding;
use crate::edge::Edge;
use crate::error::DirectiveError;
use crate::integer::{Linear, ceil};
use crate::program::Program;
use crate::schedule::{LoopSchedule, OverBlocks, Schedule};

/// What ranges in one turn of the loop.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Ranging {
    /// The thread's place in its block.
    Thread(Along),
    /// The number of an iteration among those of a loop around that a thread executes side by side.
    Copy(Inst),
    /// The turn of a loop within, whose index grows by the step.
    Turn { inst: Inst, step: i128 },
}

/// A part of a read's place in the box: `factor` times what ranges from 0 to below `count`.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct Term {
    pub(crate) ranging: Ranging,
    pub(crate) count: i128,
    pub(crate) factor: i128,
}

/// A place along a dimension of a box: a number and terms.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct Place {
    pub(crate) number: i128,
    pub(crate) terms: Vec<Term>,
}

impl Place {
    /// The smallest and the largest number that the place is.
    fn range(&self) -> (i128, i128) {
        let far = |term: &Term| term.factor * (term.count - 1);
        let low: i128 = self.terms.iter().map(|term| far(term).min(0)).sum();
        let high: i128 = self.terms.iter().map(|term| far(term).max(0)).sum();
        (self.number + low, self.number + high)
    }
}

/// A read of a section's elements.
#[derive(Clone, Debug)]
pub(crate) struct Read {
    pub(crate) load: Inst,
    /// Along each dimension.
    pub(crate) places: Vec<Place>,
    /// The index, which is the place of a read of a slice that is staged whole.
    pub(crate) whole: Option<Value>,
}

/// A dimension of a box: the first place from the origin on, how many there are, and how many elements are from one to
/// the next.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct Dimension {
    pub(crate) first: i128,
    pub(crate) extent: i128,
    pub(crate) stride: i128,
}

/// The elements of a slice that the threads of a block read in one turn of a loop, as a box of them.
///
/// ```
/// use kiln::directives::{Known, Program, marks};
/// use kiln::prelude::*;
///
/// #[device_fn]
/// fn smooth(x: &[f32], y: &mut [f32], n: usize) {
///     marks::partition(1, 1); // over_tblock over_thread
///     marks::shared(x.len() as u32); // shared(copyin(x))
///     for i in 1..n - 1 {
///         y[i] = x[i - 1] + x[i] + x[i + 1];
///     }
/// }
///
/// # fn main() -> kiln::Result<()> {
/// let program = Program::of(&DeviceFn::of::<smooth>()?)?;
/// let known = [Known::Length(100), Known::Length(100), Known::Number(100)];
/// let sections = program.sections(&program.schedule(&[4], &[8]), &known)?;
/// // The 8 threads of a block read 8 elements and one at each side.
/// assert_eq!(sections[0].to_string(), "`x` in loop 0: 10 elements, strides 1");
/// assert_eq!((sections[0].slice(), sections[0].in_loop()), ("x", 0));
/// assert_eq!((sections[0].extents(), sections[0].strides()), (vec![10], vec![1]));
/// assert_eq!((sections[0].bytes(), sections[0].padding()), (40, 0));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Section {
    name: String,
    number: usize,
    pub(crate) element_bytes: i128,
    /// How many elements more than it needs a row has in shared memory.
    pub(crate) padding: i128,
    /// The parameter.
    pub(crate) slice: Value,
    /// The index of the first read, which is the origin where all that ranges is at its first turn.
    pub(crate) index: Value,
    /// Whether the index is of an unsigned type and the sum may be below 0, as of `x[i - 1]` that is not read where `i`
    /// is 0.
    pub(crate) is_signed: bool,
    /// Whether the slice has all elements of the box, whatever the turns of loops around are.
    pub(crate) is_within: bool,
    /// Whether the origin, the places of all elements of the box and the slice's length are numbers of 32 bits with a sign.
    pub(crate) is_short: bool,
    /// Whether these are all elements of the slice, and reads' indices any.
    pub(crate) is_whole: bool,
    /// Whether lanes without an iteration read elements of the box, too.
    pub(crate) is_padded: bool,
    /// Whether the elements are written, and copied to the slice behind the turn.
    pub(crate) is_out: bool,
    /// The loops around, up to the one that stages.
    pub(crate) around: Vec<Inst>,
    /// Of falling strides.
    pub(crate) dims: Vec<Dimension>,
    pub(crate) reads: Vec<Read>,
}

impl Section {
    /// The name of the slice.
    pub fn slice(&self) -> &str {
        &self.name
    }

    /// The number of the loop, in one turn of which these are read.
    pub fn in_loop(&self) -> usize {
        self.number
    }

    /// The section with the number of the loop that its loop was.
    pub(crate) fn in_loop_of(self, numbers: &[usize]) -> Section {
        let number = numbers[self.number];
        Section { number, ..self }
    }

    /// How many elements there are along each dimension. None: one element in all.
    pub fn extents(&self) -> Vec<u64> {
        self.dims.iter().map(|dim| dim.extent as u64).collect()
    }

    /// How many elements of the slice are from one place to the next, along each dimension.
    pub fn strides(&self) -> Vec<u64> {
        self.dims.iter().map(|dim| dim.stride as u64).collect()
    }

    /// The bytes of shared memory for all elements, and for what rows are longer by; of elements that are copied out one more for
    /// each, which tells whether it was written.
    pub fn bytes(&self) -> u64 {
        (self.held() * (self.element_bytes + i128::from(self.is_out))) as u64
    }

    /// How many elements more than it needs a row has in shared memory, so that threads find what they read in
    /// different banks.
    pub fn padding(&self) -> u64 {
        self.padding as u64
    }

    /// How many elements are from one place to the next in shared memory, along each dimension, if rows are longer by
    /// some.
    pub(crate) fn pitches(&self, padding: i128) -> Vec<i128> {
        let mut pitch = 1;
        let mut pitches = Vec::with_capacity(self.dims.len());
        for (number, dim) in self.dims.iter().rev().enumerate() {
            pitches.push(pitch);
            pitch *= dim.extent + if number == 0 { padding } else { 0 };
        }
        pitches.reverse();
        pitches
    }

    /// How many elements shared memory has room for.
    pub(crate) fn held(&self) -> i128 {
        let rows = self
            .dims
            .first()
            .zip(self.pitches(self.padding).first().copied());
        rows.map_or(1, |(dim, pitch)| dim.extent * pitch)
    }

    /// How many elements there are; less than 2^31, as their bytes fit into shared memory.
    pub(crate) fn len(&self) -> i128 {
        self.dims.iter().map(|dim| dim.extent).product()
    }
}

impl fmt::Display for Section {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |numbers: &[u64]| {
            let all: Vec<_> = numbers.iter().map(u64::to_string).collect();
            all.join(" x ")
        };
        let (extents, strides) = (self.extents(), self.strides());
        write!(f, "`{}` in loop {}: ", self.name, self.number)?;
        match extents.is_empty() {
            true => f.write_str("1 element"),
            false => write!(f, "{} elements, strides {}", list(&extents), list(&strides)),
        }?;
        match self.padding {
            0 => Ok(()),
            padding => write!(f, ", rows padded by {padding}"),
        }
    }
}

/// The most bytes of shared memory that a kernel declares (CUDA guide, "Compute Capabilities").
pub(crate) const MAX_BYTES: u64 = 48 * 1024;

/// The sections of all slices that a schedule stages, in the order of the loops.
pub(crate) fn sections(
    program: &Program,
    (schedule, edge): (&Schedule, &Edge),
    known: &[Known],
) -> Result<Vec<Section>, DirectiveError> {
    let stages = |held: &LoopSchedule| !held.shared.is_empty() || !held.copied_out.is_empty();
    if !schedule.loops.iter().any(stages) {
        return Ok(Vec::new());
    }
    let accesses = Accesses::of(program, schedule)?;
    let mut search = Search {
        program,
        schedule,
        edge,
        affine: Affine::new(program.function(), known),
        found: Vec::new(),
        last_batches: HashMap::new(),
    };
    for (number, &(inst, _)) in program.loops.iter().enumerate() {
        for param in schedule.loops[number].shared.numbers() {
            search.slice(&accesses, (number, inst), param)?;
        }
        for param in schedule.loops[number].copied_out.numbers() {
            search.slice_out(&accesses, (number, inst), param)?;
        }
    }
    search.fits()?;
    Ok(search.found)
}

struct Search<'p> {
    program: &'p Program,
    schedule: &'p Schedule,
    edge: &'p Edge,
    affine: Affine<'p>,
    found: Vec<Section>,
    /// By loop around that has as many iterations for each thread: the last turn with which a batch begins.
    last_batches: HashMap<Inst, i128>,
}

/// A read, its origin, and by how much its index grows with each turn of what ranges.
struct Sum {
    load: Inst,
    index: Value,
    is_signed: bool,
    origin: Linear,
    around: Vec<Inst>,
    terms: Vec<Term>,
}

/// What is wrong with an index that is no sum.
const NOT_AFFINE: &str = "an index of it is not a sum of the loops' counters times numbers: stage slices whose indices \
                          are, and let `Program::apply_for` know the numbers of the launch";

const NOT_READ: &str = "nothing in the loop reads an element of it: take it out of the clause";
const STAGED_AROUND: &str = "a loop around stages it, too: take it out of one of the clauses";

impl Search<'_> {
    fn refuse(&self, at: Inst, slice: &str, problem: &'static str) -> DirectiveError {
        DirectiveError::Shared {
            place: self
                .program
                .place(self.program.function().insts[at].location),
            slice: slice.to_owned(),
            problem,
        }
    }

    /// Finds the sections of a slice in a loop.
    fn slice(
        &mut self,
        accesses: &Accesses,
        (number, inst): (usize, Inst),
        param: u32,
    ) -> Result<(), DirectiveError> {
        let function = self.program.function();
        let Some(data) = function.params.get(param as usize) else {
            return Err(self.refuse(inst, &param.to_string(), "the region has no such parameter"));
        };
        let (slice, name) = (data.value, &data.name);
        let writes = accesses
            .all
            .iter()
            .find(|access| access.base == slice && access.writes);
        if let Some(write) = writes {
            return Err(self.refuse(
                write.inst,
                name,
                "the region writes it, and what is in shared memory would be the old elements: stage slices that \
                 the region only reads",
            ));
        }
        let is_within = |access: &&Access| access.loops.iter().any(|held| held.inst == inst);
        let own = accesses.all.iter().filter(|access| access.base == slice);
        let own = own.filter(is_within);
        if self.schedule.loops[number].whole.contains(param) {
            return self.whole(own.collect(), (number, inst), slice, name);
        }
        let mut sums = Vec::new();
        for access in own {
            let sum = self.sum(access, inst);
            sums.push(sum.map_err(|problem| self.refuse(access.inst, name, problem))?);
        }
        if sums.is_empty() {
            return Err(self.refuse(inst, name, NOT_READ));
        }
        let taken = |sum: &&Sum| {
            let mut reads = self.found.iter().flat_map(|section| &section.reads);
            reads.any(|read| read.load == sum.load)
        };
        if sums.iter().find(taken).is_some() {
            return Err(self.refuse(inst, name, STAGED_AROUND));
        }
        self.add(sums, (number, inst), slice, name)
    }

    /// Finds the sections of a slice that a loop writes, and that is copied out.
    fn slice_out(
        &mut self,
        accesses: &Accesses,
        (number, inst): (usize, Inst),
        param: u32,
    ) -> Result<(), DirectiveError> {
        let function = self.program.function();
        let Some(data) = function.params.get(param as usize) else {
            return Err(self.refuse(inst, &param.to_string(), "the region has no such parameter"));
        };
        let (slice, name) = (data.value, &data.name);
        let own = accesses.all.iter().filter(|access| access.base == slice);
        let own: Vec<&Access> = own.collect();
        let is_else =
            |access: &&&Access| access.reads || access.loops.iter().all(|held| held.inst != inst);
        if let Some(access) = own.iter().find(is_else) {
            let problem = "it is read, or written elsewhere than in the loop whose turns end with `copyout`, and what a turn writes is \
                           not in the slice before its end: let the loop alone write it, and nothing read it";
            return Err(self.refuse(access.inst, name, problem));
        }
        let mut sums = Vec::new();
        for access in own {
            let sum = self.sum(access, inst);
            sums.push(sum.map_err(|problem| self.refuse(access.inst, name, problem))?);
        }
        if sums.is_empty() {
            let problem = "nothing in the loop writes an element of it: take it out of the clause";
            return Err(self.refuse(inst, name, problem));
        }
        let found = self.found.len();
        self.add(sums, (number, inst), slice, name)?;
        if self.found.len() > found + 1 {
            let problem = "the loop writes elements of it whose indices differ by more than a number, and two of them may be one: let \
                           it write a slice by one kind of index";
            return Err(self.refuse(inst, name, problem));
        }
        self.found[found].is_out = true;
        Ok(())
    }

    /// Adds the section of a slice that is staged whole.
    fn whole(
        &mut self,
        accesses: Vec<&Access>,
        (number, inst): (usize, Inst),
        slice: Value,
        name: &str,
    ) -> Result<(), DirectiveError> {
        let Some(length) = self.affine.length(slice) else {
            let problem = "how many elements it has is not known: let `Program::apply_for` know the lengths of the launch";
            return Err(self.refuse(inst, name, problem));
        };
        let size = self.element_bytes(slice);
        if length
            .checked_mul(size)
            .is_none_or(|bytes| bytes > MAX_BYTES.into())
        {
            let problem = "it has too many elements for shared memory: stage what a turn reads, by `copyin(a)` without `[..]`";
            return Err(self.refuse(inst, name, problem));
        }
        let mut reads = Vec::new();
        for access in accesses {
            let index = self.index(access);
            let index = index.map_err(|problem| self.refuse(access.inst, name, problem))?;
            let mut found = self.found.iter().flat_map(|section| &section.reads);
            if found.any(|read| read.load == access.inst) {
                return Err(self.refuse(inst, name, STAGED_AROUND));
            }
            reads.push(Read {
                load: access.inst,
                places: Vec::new(),
                whole: Some(index),
            });
        }
        let Some(index) = reads.first().and_then(|read| read.whole) else {
            return Err(self.refuse(inst, name, NOT_READ));
        };
        self.found.push(Section {
            name: name.to_owned(),
            number,
            element_bytes: size,
            padding: 0,
            slice,
            index,
            is_signed: false,
            is_within: true,
            is_short: length < 1 << 31,
            is_whole: true,
            is_padded: false,
            is_out: false,
            around: Vec::new(),
            dims: vec![Dimension {
                first: 0,
                extent: length,
                stride: 1,
            }],
            reads,
        });
        Ok(())
    }

    /// The bytes of an element of a slice.
    fn element_bytes(&self, slice: Value) -> i128 {
        let types = &self.program.module.types;
        let element = types.as_slice(self.program.function().type_of(slice));
        let layout = element.and_then(|(address, _)| types.layout(address.pointee));
        let layout = layout.expect("what is read by index is a slice of values");
        layout.size.into()
    }

    /// Adds the sections of reads: one for those whose origins differ by a number.
    fn add(
        &mut self,
        mut sums: Vec<Sum>,
        (number, inst): (usize, Inst),
        slice: Value,
        name: &str,
    ) -> Result<(), DirectiveError> {
        let size = self.element_bytes(slice);
        while !sums.is_empty() {
            let origin = sums[0].origin.clone();
            let is_like = |sum: &Sum| {
                let between = sum.origin.plus(&origin, -1);
                between.is_some_and(|between| between.as_number().is_some())
            };
            let (own, rest): (Vec<_>, Vec<_>) = sums.into_iter().partition(is_like);
            sums = rest;
            let (index, is_signed) = (own[0].index, own[0].is_signed);
            let around = own[0].around.clone();
            let boxed = boxed(own, &origin);
            let too_large = "the elements of it that a block reads in one turn are too many for shared memory: stage in \
                             a loop with fewer of them, of parts of the loop, or give the block fewer threads";
            let Some((dims, reads)) = boxed else {
                return Err(self.refuse(inst, name, too_large));
            };
            let len = dims
                .iter()
                .try_fold(1i128, |len, dim| len.checked_mul(dim.extent));
            let bytes = len.and_then(|len| len.checked_mul(size));
            if bytes.is_none_or(|bytes| bytes > MAX_BYTES.into()) {
                return Err(self.refuse(inst, name, too_large));
            }
            let (is_within, is_short) = self.lies(&origin, &dims, slice).unwrap_or((false, false));
            let mut section = Section {
                name: name.to_owned(),
                number,
                element_bytes: size,
                padding: 0,
                slice,
                index,
                is_signed,
                is_within,
                is_short,
                is_whole: false,
                is_padded: self.edge.pads(),
                is_out: false,
                around,
                dims,
                reads,
            };
            if !self.schedule.loops[number].unpadded {
                section.padding = padding(&section, &self.schedule.threads);
            }
            self.found.push(section);
        }
        Ok(())
    }

    /// Whether a slice has all elements of a box, whatever the turns of loops around are, and whether all that the box is
    /// found by is short.
    fn lies(&mut self, origin: &Linear, dims: &[Dimension], slice: Value) -> Option<(bool, bool)> {
        let origin = self.origins(origin)?;
        let length = self.affine.length(slice)?;
        let (mut low, mut high) = origin;
        for dim in dims {
            let ends = [dim.first, dim.first + dim.extent - 1].map(|place| place * dim.stride);
            (low, high) = (low + ends[0], high + ends[1]);
        }
        // On the way there a sum is no farther from 0 than this.
        let parts = dims
            .iter()
            .map(|dim| (dim.first.abs() + dim.extent) * dim.stride);
        let farthest = origin.0.abs().max(origin.1.abs()) + parts.sum::<i128>();
        let is_short = farthest.max(length) < 1 << 31;
        Some((low >= 0 && high < length, is_short))
    }

    /// What an origin lies in, with turns of loops around with which batches begin.
    fn origins(&mut self, origin: &Linear) -> Option<(i128, i128)> {
        let mut rest = Linear::number(origin.number);
        let (mut low, mut high) = (0, 0);
        for (atom, &factor) in origin.factors.iter().enumerate() {
            match self.affine.atoms.get(atom) {
                Some(Atom::Turn(inst)) if self.last_batches.contains_key(inst) => {
                    let far = factor.checked_mul(self.last_batches[inst])?;
                    (low, high) = (low + far.min(0), high + far.max(0));
                }
                _ => rest = rest.plus(&Linear::variable(atom), factor)?,
            }
        }
        let rest = self.affine.range_of(&rest)?;
        Some((rest.0.checked_add(low)?, rest.1.checked_add(high)?))
    }

    /// What is staged at the same time has to fit, in the loops around one another; if it does not, rows are as long as they
    /// need be.
    fn fits(&mut self) -> Result<(), DirectiveError> {
        if (0..self.found.len()).any(|last| self.bytes_with(last) > MAX_BYTES) {
            self.found
                .iter_mut()
                .for_each(|section| section.padding = 0);
        }
        for (last, section) in self.found.iter().enumerate() {
            if self.bytes_with(last) > MAX_BYTES {
                let at = self.program.loops[section.number].0;
                return Err(self.refuse(
                    at,
                    &section.name,
                    "what the region stages before it leaves too little of shared memory, of which there are 48 KiB: \
                     stage fewer slices, or smaller parts",
                ));
            }
        }
        Ok(())
    }

    /// The bytes of a section with those before it that are staged by its loop or by ones around.
    fn bytes_with(&self, last: usize) -> u64 {
        let section = &self.found[last];
        let before = self.found[..=last].iter();
        let loops = &self.program.loops;
        let is_around = |held: &&Section| {
            held.number == section.number || section.around.contains(&loops[held.number].0)
        };
        before.filter(is_around).map(Section::bytes).sum()
    }

    /// The index of a read as a sum; what is wrong with it.
    fn sum(&mut self, access: &Access, inst: Inst) -> Result<Sum, &'static str> {
        let index = self.index(access)?;
        let depth = access.loops.iter().position(|held| held.inst == inst);
        let depth = depth.expect("the loop is around the access");
        let outer = access.loops[depth].depth;
        let mut around = access.way[..outer].iter();
        if around.any(|held| self.program.singular.contains_key(&held.inst)) {
            return Err(
                "one thread of the block executes the loop, and shares nothing with others: take the clause away",
            );
        }
        let form = self.form(access, index).ok_or(NOT_AFFINE)?;
        let around = access.loops[..=depth].iter();
        let mut sum = Sum {
            load: access.inst,
            index,
            is_signed: !form.is_exact(),
            origin: Linear::number(form.sum.number),
            around: around.map(|held| held.inst).collect(),
            terms: Vec::new(),
        };
        let atoms = form.sum.factors.iter().enumerate();
        for (atom, &factor) in atoms.filter(|(_, factor)| **factor != 0) {
            let Atom::Turn(turned) = self.affine.atoms[atom] else {
                return Err(NOT_AFFINE);
            };
            let place = access.loops.iter().position(|held| held.inst == turned);
            let place = place.ok_or(NOT_AFFINE)?;
            let (held, is_around) = (access.loops[place], place <= depth);
            if is_around {
                let origin = sum.origin.plus(&Linear::variable(atom), factor);
                sum.origin = origin.ok_or(NOT_AFFINE)?;
            } else if held.schedule.partition.over_blocks.is_some() {
                return Err(
                    "a loop within the one that stages it is distributed over blocks, of which each has a part: stage it \
                     in that one",
                );
            }
            for term in self.ranging(&held, is_around) {
                let far = factor.checked_mul(term.factor).ok_or(NOT_AFFINE)?;
                sum.terms.push(Term {
                    factor: far,
                    ..term
                });
            }
        }
        Ok(sum)
    }

    /// The index of an element that is read or written whole.
    fn index(&self, access: &Access) -> Result<Value, &'static str> {
        let data = &self.program.function().insts[access.inst].data;
        if let (
            InstData::Store {
                volatile: false, ..
            },
            Some([Step::Index { index, of: Some(_) }]),
        ) = (data, access.steps.as_deref())
        {
            return Ok(*index);
        }
        let source = data.facts(&self.program.module.intrinsics).source;
        match (source, access.steps.as_deref()) {
            (
                Source::Memory {
                    read: Way::Plain, ..
                },
                Some([Step::Index { index, of: Some(_) }]),
            ) => Ok(*index),
            _ if access.writes => {
                Err("it is written here by something else than `x[i] = v`: write whole elements")
            }
            _ => Err(
                "it is read here by something else than `x[i]`, as a field or a part of it is: read whole elements",
            ),
        }
    }

    /// An index as a sum that is the index wherever the slice has the element.
    fn form(&mut self, access: &Access, index: Value) -> Option<Form> {
        let (module, function) = (&self.program.module, self.program.function());
        if !can_be_copied(module, function, index, &mut HashSet::new()) {
            return None;
        }
        let form = self.affine.form(index)?;
        let length = self.affine.length(access.base);
        // An index below the length is the sum itself if both are no farther from 0 than half of the type's size.
        let is_short = length.is_some_and(|length| length <= form.size() / 2);
        (form.is_exact() || form.is_signed() && is_short).then_some(form)
    }

    /// How many blocks and threads a loop is distributed over.
    fn extents(&self, held: &Around) -> [i128; 2] {
        let (partition, levels) = (held.schedule.partition, held.levels);
        let blocks = self.schedule.blocks.get(levels.blocks);
        let blocks = blocks.filter(|_| partition.over_blocks.is_some());
        [
            blocks.map_or(1, |&extent| i128::from(extent).max(1)),
            self.schedule.places_of(partition, levels).into(),
        ]
    }

    /// What ranges of a loop, and how far, in turns of it; of a loop around that is not distributed over threads, only
    /// iterations side by side.
    fn ranging(&mut self, held: &Around, is_around: bool) -> Vec<Term> {
        let term = |ranging, count, factor| Term {
            ranging,
            count,
            factor,
        };
        let Some(turns) = self.affine.turns(held.inst) else {
            return Vec::new();
        };
        let most = turns.most.max(1);
        let mut terms = Vec::new();
        if !is_around {
            let (inst, step) = (held.inst, turns.step);
            terms.push(term(Ranging::Turn { inst, step }, most, 1));
        } else {
            let partition = held.schedule.partition;
            let [blocks, threads] = self.extents(held);
            let (share, apart) = match partition.over_blocks {
                Some(OverBlocks::Block) => {
                    let chunk = held.schedule.chunk(most, [blocks, threads]);
                    (chunk.min(most), threads)
                }
                // Batches of other blocks are between those of one.
                Some(OverBlocks::Cyclic) => (most, threads * blocks),
                None => (most, threads),
            };
            // If it is not distributed over threads, one place is all.
            let along = held.levels.along(partition);
            let along = along.unwrap_or(Along::Dim(held.levels.threads));
            // Lanes beyond the end read at their places, too.
            let is_padded = self.edge.is_padded(held.inst);
            let (of_threads, of_copies) = match is_padded {
                true => (threads, i128::MAX),
                false => (threads.min(share), ceil(share, threads)),
            };
            terms.push(term(Ranging::Thread(along), of_threads, 1));
            let side_by_side = i128::from(held.schedule.jammed()).min(of_copies);
            let spread = match partition.over_blocks {
                Some(OverBlocks::Cyclic) => blocks,
                Some(OverBlocks::Block) | None => 1,
            };
            if turns.count == Some(share * if spread == 1 { blocks } else { 1 })
                && share % (threads * spread * side_by_side) == 0
            {
                let ahead = (threads - 1) + (side_by_side - 1) * apart;
                self.last_batches.insert(held.inst, most - 1 - ahead);
            }
            terms.push(term(Ranging::Copy(held.inst), side_by_side, apart));
        }
        terms.retain(|term| term.count > 1);
        terms
    }
}

/// Whether an integer is computed of parameters and indices of loops alone, so that it can be computed for other indices.
fn can_be_copied(
    module: &Module,
    function: &Function,
    value: Value,
    seen: &mut HashSet<Value>,
) -> bool {
    if !seen.insert(value) {
        return true;
    }
    match function.values[value].def {
        ValueDef::Param(_) => true,
        ValueDef::Index(inst) => match function.insts[inst].data.control() {
            Control::For {
                bounds: [start, ..],
                ..
            } => can_be_copied(module, function, start, seen),
            _ => false,
        },
        ValueDef::Inst(inst) => {
            let data = &function.insts[inst].data;
            let facts = data.facts(&module.intrinsics);
            let acts = facts.reads || facts.writes || facts.assumes || facts.steers || facts.meets;
            let is_pure = matches!(facts.source, Source::Operands);
            let mut can = is_pure && facts.check.is_none() && !acts;
            data.for_each_operand(|operand| {
                can = can && can_be_copied(module, function, operand, seen)
            });
            can
        }
    }
}

mod boxed;
#[cfg(test)]
mod tests;
