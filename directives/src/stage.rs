//! Staging: what a block reads of a slice in one turn of a loop, read from shared memory.
//!
//! Before each turn all threads of the block come together at a barrier, behind which nobody reads the elements of the
//! turn before any more. Then they copy the section of each slice to shared memory, neighbours neighbouring elements,
//! and meet again. Elements that the slice does not have are left out: the box may be larger than what is read; they are zero
//! where lanes beyond the end of a loop read them (`edge`). In the turn the slice's elements are read from there. The index of the slice is checked unless it is proved to be one (`bounds`),
//! and the region does not write the slice, so that the elements are those that the sequential program reads.

use std::collections::{BTreeMap, HashMap};

use kiln_jit_core::ir::{
    AddressSpace, BinaryOp, CompareOp, Constant, Control, Function, Inst, InstData, Module,
    SharedData, SharedVar, Type, Value, ValueDef,
};
use kiln_jit_core::launch::Dim3;

use crate::affine::{Affine, Known};
use crate::apply::Rewrite;
use crate::compute::Producer;
use crate::drain::{Drain, Flags};
use crate::edge::Edge;
use crate::emit::{Emit, folded, position_row};
use crate::error::DirectiveError;
use crate::fill::Filler;
use crate::grid::Grid;
use crate::program::Program;
use crate::reduce::{Own, is_for_block};
use crate::reuse::shared_bytes;
use crate::scan::{Scan, insert};
use crate::schedule::Schedule;
use crate::section::{MAX_BYTES, Ranging, Read, Section, sections};
use crate::transform::{Transformed, region_of, replace};

/// A program with barriers where turns begin that stage, and what they stage.
pub(crate) struct Staged {
    pub(crate) program: Program,
    /// By barrier.
    pub(crate) stages: BTreeMap<Inst, Stage>,
    /// By loop whose iterations are executed side by side: the number of the one among them, for now 0.
    pub(crate) numbers: HashMap<Inst, Value>,
    /// Elements of slices that loops reduce, of the block's own.
    pub(crate) own: Vec<Own>,
    /// Loops that write slices of which blocks compute what they read.
    producers: Vec<Producer>,
    /// By barrier: the running value that threads compute there.
    pub(crate) scans: BTreeMap<Inst, Scan>,
    /// By barrier: what tells that nothing is written yet.
    clears: BTreeMap<Inst, Vec<Flags>>,
    /// Whether lines of threads fill rows of sections.
    pub(crate) fills_rows: bool,
}

/// What is staged before a turn of a loop.
#[derive(Debug, Default)]
pub(crate) struct Stage {
    tiles: Vec<Tile>,
    /// What is copied to slices behind the turn.
    drains: Vec<Drain>,
    /// Which elements of the block's own are to be used behind it, and which were before it.
    begins: Vec<usize>,
    ends: Vec<usize>,
}

/// A section in shared memory.
#[derive(Debug)]
pub(crate) struct Tile {
    pub(crate) section: Section,
    shared: SharedVar,
    /// The type of the address of all elements there.
    array: Type,
    pub(crate) element: Element,
    /// The number of the loops that compute its elements, if it is not copied.
    producer: Option<usize>,
}

/// The types of an element.
#[derive(Debug)]
pub(crate) struct Element {
    pub(crate) ty: Type,
    /// Of the address in the slice.
    pub(crate) in_slice: Type,
    in_shared: Type,
}

impl Staged {
    /// A program as its schedule stages it.
    pub(crate) fn of(
        transformed: &Transformed<'_>,
        edge: &Edge,
        known: &[Known],
    ) -> Result<Staged, DirectiveError> {
        let (program, schedule) = (&*transformed.program, &transformed.schedule);
        let mut staged = Staged {
            program: program.clone(),
            stages: BTreeMap::new(),
            numbers: HashMap::new(),
            own: Vec::new(),
            producers: transformed.producers.clone(),
            scans: BTreeMap::new(),
            clears: BTreeMap::new(),
            fills_rows: false,
        };
        let with_scans = schedule.loops.iter().enumerate();
        for (number, _) in with_scans.filter(|(_, held)| held.scan) {
            let scans = insert(&mut staged.program, schedule, number)?;
            staged.scans.extend(scans);
        }
        let used = shared_bytes(&staged.program.module, program.kernel);
        let mut room = MAX_BYTES.saturating_sub(used);
        let mut barriers: HashMap<usize, Inst> = HashMap::new();
        let mut ends: HashMap<usize, Inst> = HashMap::new();
        for section in sections(program, (schedule, edge), known)? {
            let number = section.in_loop();
            let inst = program.loops[number].0;
            let barrier = *barriers
                .entry(number)
                .or_insert_with(|| staged.barrier_in(inst));
            room = room.saturating_sub(section.bytes());
            let tile = staged.tile(section);
            if tile.section.is_out {
                let flags = Flags::of(&mut staged.program, &tile.section);
                let end = *ends
                    .entry(number)
                    .or_insert_with(|| staged.barrier_behind(inst));
                let drains = &mut staged.stages.entry(end).or_default().drains;
                drains.push(Drain { tile, flags });
                staged.clears.entry(barrier).or_default().push(flags);
                staged.stages.entry(barrier).or_default();
                continue;
            }
            staged.stages.entry(barrier).or_default().tiles.push(tile);
        }
        staged.reduce(transformed, known, room);
        if !staged.stages.is_empty() {
            let loops = program.loops.iter().zip(&schedule.loops);
            for ((inst, _), _) in loops.filter(|(_, held)| held.jammed() > 1) {
                staged.number_in(*inst);
            }
        }
        Ok(staged)
    }

    /// What is staged, in the order of the loops.
    pub(crate) fn sections(&self) -> Vec<Section> {
        let tiles = self.stages.values().flat_map(|stage| {
            let out = stage.drains.iter().map(|drain| &drain.tile);
            stage.tiles.iter().chain(out)
        });
        let mut sections: Vec<Section> = tiles.map(|tile| tile.section.clone()).collect();
        sections.sort_by_key(Section::in_loop);
        sections
    }

    fn function(&mut self) -> &mut Function {
        &mut self.program.module.functions[self.program.kernel]
    }

    /// Leaves the checks of indices out that were proved for these arguments, which the kernel asserts.
    pub(crate) fn leave_checks_out(&mut self, proved: &[Inst]) {
        for &inst in proved {
            let data = &mut self.function().insts[inst].data;
            if let InstData::SliceIndex { checked, .. } = data {
                *checked = false;
            }
        }
    }

    /// Puts a barrier before what is in a loop.
    fn barrier_in(&mut self, inst: Inst) -> Inst {
        let function = self.function();
        let body = function.insts[inst].data.regions().into_iter().next();
        let body = body.expect("a schedule's loops have bodies");
        let at = function.insts[inst].location;
        let barrier = function.new_inst(InstData::Barrier, Type::UNIT, at);
        function.regions[body].insts.insert(0, barrier);
        barrier
    }

    /// Puts a barrier behind what is in a loop.
    fn barrier_behind(&mut self, inst: Inst) -> Inst {
        let function = self.function();
        let body = function.insts[inst].data.regions().into_iter().next();
        let body = body.expect("a schedule's loops have bodies");
        let at = function.insts[inst].location;
        let barrier = function.new_inst(InstData::Barrier, Type::UNIT, at);
        function.regions[body].insts.push(barrier);
        barrier
    }

    /// Gives blocks elements of their own of slices that loops reduce, as far as there is room.
    fn reduce(&mut self, transformed: &Transformed<'_>, known: &[Known], mut room: u64) {
        let schedule = &transformed.schedule;
        let (reduced, combined) = (&transformed.reduced, &transformed.combined);
        let threads: i128 = schedule.threads.iter().copied().map(i128::from).product();
        for (number, held) in schedule.loops.iter().enumerate() {
            let inst = self.program.loops[number].0;
            if held.reduction.is_empty() || !is_for_block(&self.program, schedule, inst) {
                continue;
            }
            let behind = combined.iter().filter(|(_, behind)| behind.of == inst);
            let mut behind: Vec<Inst> = behind.map(|(&atomic, _)| atomic).collect();
            behind.sort();
            let (mut own, mut meets) = (Vec::new(), false);
            for param in held.reduction.numbers() {
                let slice = self.function().params[param as usize].value;
                let asked = (reduced, &behind[..], known);
                let Some((of, bytes)) = Own::of(&mut self.program, (inst, slice), asked, room)
                else {
                    continue;
                };
                room -= bytes;
                meets = true;
                if of.is_worth_it(combined, threads) {
                    own.push(self.own.len());
                    self.own.push(of);
                }
            }
            if meets {
                self.meet_around((inst, &behind), own);
            }
        }
    }

    /// Puts barriers around a loop and what stands behind it, between which blocks use elements of their own. What is changed there
    /// is to be seen behind, whether it is of their own or not.
    fn meet_around(&mut self, (inst, behind): (Inst, &[Inst]), own: Vec<usize>) {
        let function = self.function();
        let at = function.insts[inst].location;
        let [first, last] = [(); 2].map(|()| function.new_inst(InstData::Barrier, Type::UNIT, at));
        let region = region_of(function, inst);
        let insts = &mut function.regions[region].insts;
        let place = insts.iter().position(|&held| held == inst).unwrap_or(0);
        let is_last = |held: &Inst| *held == inst || behind.contains(held);
        let end = insts.iter().rposition(is_last).unwrap_or(place);
        insts.insert(end + 1, last);
        insts.insert(place, first);
        if !own.is_empty() {
            let begins = own.clone();
            self.stages.entry(first).or_default().begins = begins;
            self.stages.entry(last).or_default().ends = own;
        }
    }

    /// Puts the number of an iteration among those side by side into a loop. The conversion keeps it from being taken
    /// for the constant that it is in the first one.
    fn number_in(&mut self, inst: Inst) {
        let function = self.function();
        let body = function.insts[inst].data.regions().into_iter().next();
        let body = body.expect("a schedule's loops have bodies");
        let at = function.insts[inst].location;
        let mut emit = Emit::new(function, at);
        let zero = emit.int(0, Type::U8);
        let number = emit.value(InstData::Cast { arg: zero }, Type::U32);
        let list = emit.list;
        function.regions[body].insts.splice(0..0, list);
        self.numbers.insert(inst, number);
    }

    /// Declares the shared memory of a section.
    fn tile(&mut self, section: Section) -> Tile {
        let ty = self.function().type_of(section.slice);
        let types = &mut self.program.module.types;
        let (slice, _) = types.as_slice(ty).expect("sections are of slices");
        let layout = types
            .layout(slice.pointee)
            .expect("their elements have a size");
        let array = types.array(slice.pointee, section.held() as u64);
        let element = Element {
            ty: slice.pointee,
            in_slice: types.pointer(slice.pointee, slice.space, slice.mutable),
            in_shared: types.pointer(slice.pointee, AddressSpace::Shared, true),
        };
        let of_all = types.pointer(array, AddressSpace::Shared, true);
        let shared = self.function().shared.push(SharedData {
            name: format!("offload.{}", section.slice()),
            ty: array,
            align: layout.align as u32,
        });
        let mut producers = self.producers.iter();
        let producer = producers.position(|producer| producer.slice == section.slice);
        Tile {
            section,
            shared,
            array: of_all,
            element,
            producer,
        }
    }

    /// Instructions that end a launch on another grid, or with other arguments, than those that the sections are for, or in other
    /// blocks than those that running values are for: no
    /// thread then reads or writes besides them. The extents of the grid are numbers from there on.
    pub(crate) fn assert_launch(
        &mut self,
        schedule: &Schedule,
        known: Option<&[Known]>,
        (grid, block): (&mut Grid, Dim3),
    ) -> Vec<Inst> {
        let is_for_arguments = known.is_some();
        if !is_for_arguments && self.scans.is_empty() {
            return Vec::new();
        }
        let (module, kernel) = (&mut self.program.module, self.program.kernel);
        let axes = [0, 1, 2].map(|axis| position_row(module, "block_dim", axis));
        let known = known.unwrap_or_default();
        let arguments = arguments(module, &module.functions[kernel], known);
        let function = &mut module.functions[kernel];
        let at = function.location;
        let mut emit = Emit::new(function, at);
        let mut wanted: Vec<(Value, i128, &str)> = Vec::new();
        let dims = grid.blocks.iter_mut().zip(&schedule.blocks);
        let dims = dims.filter(|_| is_for_arguments);
        let dims = dims.chain(grid.threads.iter_mut().zip(&schedule.threads));
        for (dim, &extent) in dims {
            wanted.push((dim.extent, extent.into(), "grid"));
            dim.extent = emit.int(extent.into(), Type::U32);
        }
        for (row, extent) in axes.into_iter().zip([block.x, block.y, block.z]) {
            wanted.push((emit.row(row, Type::U32), extent.into(), "grid"));
        }
        for (param, number) in arguments {
            let value = match emit.function.type_of(param).as_scalar() {
                Some(_) => param,
                None => emit.len(param),
            };
            wanted.push((value, number, "numbers and lengths"));
        }
        emit.are_for(&wanted);
        emit.list
    }

    /// Lets reads in the turns read shared memory, and writes there write it, which are for iterations alone. The grid is known there,
    /// but not yet part of the program.
    pub(crate) fn redirect(&mut self, grid: &Grid, edge: &mut Edge) {
        for own in &self.own {
            own.redirect(&mut self.program);
        }
        let (module, kernel) = (&mut self.program.module, self.program.kernel);
        let tiles = self.stages.values().flat_map(|stage| {
            let out = stage
                .drains
                .iter()
                .map(|drain| (&drain.tile, Some(drain.flags)));
            stage.tiles.iter().map(|tile| (tile, None)).chain(out)
        });
        let function = &mut module.functions[kernel];
        for (tile, flags) in tiles {
            for read in &tile.section.reads {
                let written = redirect(function, (grid, &self.numbers), (tile, flags), read);
                if flags.is_some() {
                    edge.close(written);
                }
            }
        }
    }
}

/// A program for arguments of which something is known, which are numbers in it.
pub(crate) fn for_arguments(program: &Program, known: &[Known]) -> Program {
    let mut program = program.clone();
    let numbers = arguments(&program.module, program.function(), known);
    let function = &mut program.module.functions[program.kernel];
    let (body, at) = (function.body, function.location);
    let mut emit = Emit::new(function, at);
    let (mut new, mut lengths) = (HashMap::new(), HashMap::new());
    for (param, number) in numbers {
        let ty = emit.function.type_of(param);
        if ty.as_scalar().is_some() {
            new.insert(param, emit.int(number, ty));
        } else {
            lengths.insert(param, number);
        }
    }
    let constants = emit.list;
    let own = function.regions[body].insts.clone();
    replace(function, &new, &own);
    let mut asked = Vec::new();
    function.walk(body, &mut |_, inst| asked.push(inst));
    for inst in asked {
        if let InstData::SliceLen { slice } = function.insts[inst].data
            && let Some(&number) = lengths.get(&slice)
        {
            function.insts[inst].data = InstData::Const(Constant::Int(number));
        }
        // What is computed of these is a number, too: each operand comes before.
        if let Some(number) = folded(function, inst) {
            function.insts[inst].data = InstData::Const(Constant::Int(number));
        }
    }
    function.regions[body].insts.splice(0..0, constants);
    program
}

/// The parameters of which something is known: what a number is, and the length of a slice.
pub(crate) fn arguments(
    module: &Module,
    function: &Function,
    known: &[Known],
) -> Vec<(Value, i128)> {
    let mut affine = Affine::new(function, known);
    let params = function.params.iter().map(|param| param.value);
    let asked = params.zip(known).filter_map(|(param, known)| {
        let number = match known {
            Known::Number(_) => affine.form(param)?.sum.as_number(),
            Known::Length(_) => {
                let slice = module.types.as_slice(function.type_of(param));
                slice.and_then(|_| affine.length(param))
            }
            Known::Nothing => None,
        };
        Some((param, number?))
    });
    asked.collect()
}

impl Emit<'_> {
    /// Ends the launch where one of some values is another number than the one that the kernel was made for. Each
    /// thread asks once for all of them, and where they are others, which.
    fn are_for(&mut self, wanted: &[(Value, i128, &str)]) {
        let mut numbers = Vec::new();
        let mut differ = Vec::new();
        for &(value, number, _) in wanted {
            let number = self.int(number, self.function.type_of(value));
            numbers.push(number);
            differ.push(self.compare(CompareOp::Ne, value, number));
        }
        let either = |a, b| self.binary(BinaryOp::Or, a, b);
        let Some(any) = differ.into_iter().reduce(either) else {
            return;
        };
        let asserts = self.region(|emit| {
            for (&(value, _, what), &number) in wanted.iter().zip(&numbers) {
                let same = emit.compare(CompareOp::Eq, value, number);
                let message = format!(
                    "a kernel with numbers of a launch in it is for the {what} that it was made for"
                );
                emit.assert(same, &message, [value, number]);
            }
        });
        self.if_(any, asserts);
    }
}

/// Where a thread is in the grid, and by loop the number of an iteration among those side by side.
type Places<'a> = (&'a Grid, &'a HashMap<Inst, Value>);

/// Lets a read read the tile, or a write write there, which flags tell; what is written before it for that.
fn redirect(
    function: &mut Function,
    places: Places<'_>,
    (tile, flags): (&Tile, Option<Flags>),
    read: &Read,
) -> Vec<Inst> {
    let at = function.insts[read.load].location;
    let mut emit = Emit::new(function, at);
    let place = place_in(&mut emit, places, tile, read);
    let address = tile.address(&mut emit, place);
    if let Some(flags) = flags {
        flags.set(&mut emit, place);
    }
    let list = emit.list;
    let data = &mut function.insts[read.load].data;
    match data {
        InstData::Store { ptr, .. } => *ptr = address,
        // The address is all that a read takes.
        _ => data.map_operands(|_| address),
    }
    let mut found = None;
    function.for_each_inst(|region, inst| {
        if inst == read.load {
            found = Some(region);
        }
    });
    if let Some(region) = found {
        let insts = &mut function.regions[region].insts;
        let place = insts.iter().position(|&inst| inst == read.load);
        let place = place.unwrap_or(0);
        insts.splice(place..place, list.iter().copied());
    }
    list
}

/// The number of a read's element in its tile: no part of the sum is below 0, so that none wraps around.
fn place_in(emit: &mut Emit<'_>, (grid, numbers): Places<'_>, tile: &Tile, read: &Read) -> Value {
    let pitches = tile.section.pitches(tile.section.padding);
    if let Some(index) = read.whole {
        return emit.cast(index, Type::U32);
    }
    let (mut number, mut parts) = (0, Vec::new());
    let dims = tile.section.dims.iter().zip(pitches);
    for ((dim, pitch), place) in dims.zip(&read.places) {
        number += (place.number - dim.first) * pitch;
        for term in &place.terms {
            let mut part = match term.ranging {
                Ranging::Thread(along) => grid.thread(along).index,
                Ranging::Copy(inst) => numbers[&inst],
                Ranging::Turn { inst, step } => turn(emit, inst, step),
            };
            if term.factor < 0 {
                number += term.factor * (term.count - 1) * pitch;
                let last = emit.int(term.count - 1, Type::U32);
                part = emit.binary(BinaryOp::Sub, last, part);
            }
            let factor = emit.int(term.factor.abs() * pitch, Type::U32);
            parts.push(emit.binary(BinaryOp::Mul, part, factor));
        }
    }
    let number = emit.int(number, Type::U32);
    let add = |sum, part| emit.binary(BinaryOp::Add, sum, part);
    parts.into_iter().fold(number, add)
}

/// The turn of a loop around what is written, counted from 0, as a `u32`.
fn turn(emit: &mut Emit<'_>, inst: Inst, step: i128) -> Value {
    let Control::For { index, bounds, .. } = emit.function.insts[inst].data.control() else {
        unreachable!("what ranges is the turn of a `for`");
    };
    let start = bounds[0];
    let [from, to] = if step > 0 {
        [start, index]
    } else {
        [index, start]
    };
    let ahead = emit.binary(BinaryOp::Sub, to, from);
    // The difference of two numbers of a signed type may be none of it.
    let scalar = emit.function.type_of(ahead).as_scalar();
    let unsigned = scalar.map_or(Type::U64, |scalar| Type::scalar(scalar.unsigned()));
    let ahead = emit.cast(ahead, unsigned);
    let size = emit.int(step.abs(), unsigned);
    let turn = emit.binary(BinaryOp::Div, ahead, size);
    emit.cast(turn, Type::U32)
}

impl Tile {
    /// The address of an element.
    pub(crate) fn address(&self, emit: &mut Emit<'_>, index: Value) -> Value {
        let ptr = emit.value(InstData::SharedAddr(self.shared), self.array);
        let data = InstData::ElementPtr {
            ptr,
            index,
            checked: false,
        };
        emit.value(data, self.element.in_shared)
    }
}

impl Rewrite<'_> {
    /// Whether nobody uses shared memory before a stage: there is no other one, and threads come to it once at most. What is written
    /// before is seen behind the barrier that ends it, and what it copies the region does not write.
    fn is_first(&self, stage: &Stage) -> bool {
        let staged = self.staged;
        let is_alone = staged.stages.len() == 1 && staged.scans.is_empty() && staged.own.is_empty();
        let mut tiles = stage.tiles.iter();
        let comes_once = tiles.all(|tile| {
            let mut around = tile.section.around.iter();
            !tile.section.is_whole && around.all(|inst| self.once_each.contains(inst))
        });
        is_alone && comes_once && stage.drains.is_empty() && self.program.arrays.is_empty()
    }

    /// What stands in the place of a stage's barrier.
    pub(crate) fn fill(&mut self, barrier: Inst, stage: &Stage) -> Vec<Inst> {
        let (of_block, producers) = (&self.staged.own, &self.staged.producers);
        let at = self.location(barrier);
        let (program, grid) = (self.program, self.grid);
        let threads = &self.schedule.threads;
        let is_first = self.is_first(stage);
        let rows = self.staged.fills_rows && grid.has_whole_warps_along_x(threads);
        let mut emit = Emit::new(&mut self.module.functions[self.kernel], at);
        if !is_first {
            emit.list.push(barrier);
        }
        let (own, count) = grid.linear(&mut emit, threads);
        let along = rows.then(|| grid.along_rows(&mut emit, threads));
        for &ended in &stage.ends {
            of_block[ended].end(&mut emit, (own, count));
        }
        for &begun in &stage.begins {
            of_block[begun].begin(&mut emit, (own, count));
        }
        let out = stage.drains.iter();
        let out = out.map(|drain| (&drain.tile, Some(drain.flags)));
        let tiles = stage.tiles.iter().map(|tile| (tile, None));
        for (tile, flags) in tiles.chain(out) {
            let mut origin = Origin {
                function: program.function(),
                around: &tile.section.around,
                firsts: &self.firsts,
                copies: HashMap::new(),
            };
            let origin = match tile.section.is_whole {
                true => tile.section.index,
                false => origin.copy(&mut emit, tile.section.index),
            };
            let filler = Filler {
                tile,
                producer: tile.producer.map(|number| &producers[number]),
                out: flags,
                own,
                threads: count,
                along,
            };
            filler.fill(&mut emit, origin);
        }
        for flags in self.staged.clears.get(&barrier).into_iter().flatten() {
            flags.clear(&mut emit, (own, count));
        }
        // The next turn begins with one before it uses what was copied out.
        if stage.drains.is_empty() {
            emit.barrier();
        }
        emit.list
    }
}

/// An index where all that ranges is at its first turn.
struct Origin<'r> {
    function: &'r Function,
    around: &'r [Inst],
    /// By distributed loop: the index of the block's first thread.
    firsts: &'r HashMap<Inst, Value>,
    copies: HashMap<Value, Value>,
}

impl Origin<'_> {
    /// A value computed again, with these indices.
    fn copy(&mut self, emit: &mut Emit<'_>, value: Value) -> Value {
        if let Some(&copy) = self.copies.get(&value) {
            return copy;
        }
        let copy = match self.function.values[value].def {
            ValueDef::Param(_) => value,
            ValueDef::Index(inst) => match self.function.insts[inst].data.control() {
                Control::For {
                    bounds: [start, ..],
                    ..
                } if !self.around.contains(&inst) => self.copy(emit, start),
                _ => self.firsts.get(&inst).copied().unwrap_or(value),
            },
            ValueDef::Inst(inst) => {
                let mut data = self.function.insts[inst].data.clone();
                data.map_operands(|operand| self.copy(emit, operand));
                emit.value(data, self.function.type_of(value))
            }
        };
        self.copies.insert(value, copy);
        copy
    }
}
