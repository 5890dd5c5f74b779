//! A program under a schedule: what each thread of the grid executes.

use std::collections::{HashMap, HashSet};

use kiln_jit_core::ir::{
    Constant, Control, FuncId, Function, Inst, InstData, Location, Module, Region, Type, Unroll,
    Value,
};
use kiln_jit_core::launch::Dim3;

use crate::accesses::is_local;
use crate::affine::Known;
use crate::arrays::array_of;
use crate::bounds;
use crate::combine::{Combined, combine};
use crate::edge::Edge;
use crate::emit::Emit;
use crate::error::DirectiveError;
use crate::grid::{Dim, Grid, Mapping, write_grid};
use crate::integer::ceil;
use crate::jam::{Jam, Jammer};
use crate::lengths::by_numbers;
use crate::once::{Once, always_entered, once};
use crate::program::Program;
use crate::reuse::{share_storage, shared_bytes};
use crate::schedule::{LoopSchedule, OverThreads, Partition, Schedule};
use crate::section::MAX_BYTES;
use crate::stage::{Staged, for_arguments};
use crate::transform::{Transformed, replace, split_off_whole};
use crate::uniform::{Uniform, base_of};

/// A module of what each thread of a grid executes, and the grid.
#[derive(Clone, Debug)]
pub(crate) struct Applied {
    pub(crate) module: Module,
    pub(crate) grid: Dim3,
    pub(crate) block: Dim3,
    /// The arguments behind those of the program.
    pub(crate) extents: Vec<u32>,
}

/// What a program is applied for.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Purpose<'k> {
    pub(crate) known: &'k [Known],
    /// Whether for these arguments alone.
    pub(crate) is_for_arguments: bool,
    /// Whether for a CPU, on which the threads of a warp that access neighbouring elements do so at once, and any others one by one.
    pub(crate) is_for_cpu: bool,
}

/// The program's loops distributed as a schedule says.
pub(crate) fn apply(
    program: &Program,
    schedule: &Schedule,
    known: &[Known],
) -> Result<Applied, DirectiveError> {
    let purpose = Purpose {
        known,
        is_for_arguments: schedule.is_for_arguments(),
        is_for_cpu: false,
    };
    apply_as(program, schedule, purpose)
}

/// As [`apply`], for a purpose.
pub(crate) fn apply_as(
    program: &Program,
    schedule: &Schedule,
    purpose: Purpose<'_>,
) -> Result<Applied, DirectiveError> {
    check_loops(program, schedule)?;
    // A kernel that stages is for these arguments alone, and says so.
    match purpose.is_for_arguments {
        true => distributed(&for_arguments(program, purpose.known), schedule, purpose),
        false => distributed(program, schedule, purpose),
    }
}

fn distributed(
    program: &Program,
    schedule: &Schedule,
    purpose: Purpose<'_>,
) -> Result<Applied, DirectiveError> {
    let (known, is_for_arguments) = (purpose.known, purpose.is_for_arguments);
    let mut transformed = Transformed::of(program, schedule, known)?;
    combine(&mut transformed);
    let (program, schedule) = (&*transformed.program, &transformed.schedule);
    let (blocks, threads) = (
        Mapping::of_blocks(schedule)?,
        Mapping::of_threads(schedule)?,
    );
    let mut edge = Edge::of(program, schedule);
    let once = once(program, schedule, known);
    let mut staged = Staged::of(&transformed, &edge, known)?;
    staged.fills_rows = purpose.is_for_cpu;
    if is_for_arguments {
        staged.leave_checks_out(&bounds::proved(program, schedule, known)?);
    }
    let dims = [schedule.blocks.len(), schedule.threads.len()];
    let module = &mut staged.program.module;
    let (mut start, mut grid) = write_grid(module, program.kernel, [&blocks, &threads], dims);
    let launched = (&mut grid, threads.hardware);
    let asked = is_for_arguments.then_some(known);
    start.extend(staged.assert_launch(schedule, asked, launched));
    if schedule.has_warps() {
        let function = &mut staged.program.module.functions[program.kernel];
        start.extend(grid.write_warps(function));
    }
    staged.redirect(&grid, &mut edge);
    let mut module = rewritten(&staged, &transformed, &grid, (&edge, &once))?;
    if is_for_arguments {
        start.extend(by_numbers(&mut module, program.kernel, known));
    }
    let function = &mut module.functions[program.kernel];
    let body = function.body;
    function.regions[body].insts.splice(0..0, start);
    share_storage(&mut module, program.kernel);
    let bytes = shared_bytes(&module, program.kernel);
    if bytes > MAX_BYTES {
        let problem = format!(
            "a block has {bytes} bytes of arrays and staged slices in shared memory at the same time, of at most {MAX_BYTES}: \
             let arrays be smaller, or stage fewer slices"
        );
        return Err(program.placement(program.function().location, &problem));
    }
    let extents = blocks.linear.iter().chain(&threads.linear);
    Ok(Applied {
        module,
        grid: blocks.hardware,
        block: threads.hardware,
        extents: extents.flatten().copied().collect(),
    })
}

/// The module in which a thread executes its iterations.
fn rewritten(
    staged: &Staged,
    transformed: &Transformed<'_>,
    grid: &Grid,
    (edge, once_each): (&Edge, &HashSet<Inst>),
) -> Result<Module, DirectiveError> {
    let (program, schedule) = (&staged.program, &transformed.schedule);
    let places: Vec<Value> = grid.of_threads().map(|dim| dim.index).collect();
    let uniform = Uniform::of(program, schedule, &places);
    crate::levels::check(program, schedule, &uniform)?;
    let module = program.module.clone();
    let body = module.functions[program.kernel].body;
    let mut rewrite = Rewrite {
        program,
        schedule,
        staged,
        uniform: &uniform,
        grid,
        edge,
        once_each,
        partial: &transformed.partial,
        combined: &transformed.combined,
        module,
        kernel: program.kernel,
        firsts: HashMap::new(),
        apart: HashSet::new(),
        before: HashMap::new(),
        jams: Vec::new(),
        once: HashSet::new(),
    };
    rewrite.region(body, Levels::default(), None)?;
    let mut module = rewrite.jammed()?;
    let function = &mut module.functions[program.kernel];
    always_entered(function, function.body);
    Ok(module)
}

/// Refuses a schedule of another program.
pub(crate) fn check_loops(program: &Program, schedule: &Schedule) -> Result<(), DirectiveError> {
    let (given, loops) = (schedule.loops.len(), program.loops.len());
    let program = program.name().to_owned();
    match given == loops {
        true => Ok(()),
        false => Err(DirectiveError::Loops {
            program,
            given,
            loops,
        }),
    }
}

/// How many loops around are distributed over blocks, and over threads.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Levels {
    pub(crate) blocks: usize,
    /// Over dimensions of threads, each of which is a level.
    pub(crate) threads: usize,
    /// Whether one is distributed over warps, and one over lanes.
    pub(crate) warps: bool,
    pub(crate) lanes: bool,
    /// Whether one thread of a block is here.
    pub(crate) singular: bool,
}

impl Levels {
    /// Within a loop of this partition.
    pub(crate) fn within(self, partition: Partition) -> Levels {
        let over = |threads| partition.over_threads == Some(threads);
        Levels {
            blocks: self.blocks + usize::from(partition.over_blocks.is_some()),
            threads: self.threads + usize::from(over(OverThreads::Threads)),
            warps: self.warps || over(OverThreads::Warps),
            lanes: self.lanes || over(OverThreads::Lanes),
            singular: self.singular,
        }
    }

    /// Whether a loop is distributed over threads of the block.
    pub(crate) fn parts_threads(self) -> bool {
        self.threads > 0 || self.warps || self.lanes
    }
}

/// A module on the way from a program to what a thread executes.
pub(crate) struct Rewrite<'p> {
    pub(crate) program: &'p Program,
    pub(crate) schedule: &'p Schedule,
    /// What is staged behind barriers, and by loop whose iterations are executed side by side the number of the one among
    /// them.
    pub(crate) staged: &'p Staged,
    pub(crate) uniform: &'p Uniform,
    pub(crate) grid: &'p Grid,
    /// What is executed beyond the ends of loops.
    pub(crate) edge: &'p Edge,
    /// Loops of which a thread has one group of iterations at most.
    pub(crate) once_each: &'p HashSet<Inst>,
    /// Loops within tiles that may be shorter than a tile.
    partial: &'p [Inst],
    /// What changes elements behind loops of which all iterations combine values with one.
    combined: &'p Combined,
    pub(crate) module: Module,
    pub(crate) kernel: FuncId,
    /// By distributed loop around: the index that the block's first thread has.
    pub(crate) firsts: HashMap<Inst, Value>,
    /// Values that are new and that threads of a block may have different.
    pub(crate) apart: HashSet<Value>,
    /// What has to be written before an instruction.
    pub(crate) before: HashMap<Inst, Vec<Inst>>,
    /// Loops whose iterations are executed side by side, inner ones first.
    jams: Vec<Jam>,
    /// What fills shared memory.
    once: HashSet<Inst>,
}

impl Rewrite<'_> {
    /// The module with iterations side by side, and without marks.
    fn jammed(self) -> Result<Module, DirectiveError> {
        let mut module = self.module;
        self.program.take_marks_out(&mut module);
        let mut jammer = Jammer {
            program: self.program,
            module: &mut module,
            kernel: self.kernel,
            once: self.once,
            either: HashSet::new(),
        };
        for jam in self.jams {
            jammer.jam(jam)?;
        }
        for &inst in self.partial {
            split_off_whole(&mut module.functions[self.kernel], inst);
        }
        Ok(module)
    }

    /// Rewrites what is in a region; with a guard, what is not for all threads is executed where it holds.
    pub(crate) fn region(
        &mut self,
        region: Region,
        levels: Levels,
        guard: Option<Guard>,
    ) -> Result<(), DirectiveError> {
        let insts = self.module.functions[self.kernel].regions[region]
            .insts
            .clone();
        let insts = match guard {
            Some(guard) => self.guarded(insts, levels, guard)?,
            None => self.list(insts, levels, None)?,
        };
        self.module.functions[self.kernel].regions[region].insts = insts;
        Ok(())
    }

    /// Rewrites instructions one by one. The guard is for those that hold a barrier, within.
    pub(crate) fn list(
        &mut self,
        insts: Vec<Inst>,
        levels: Levels,
        guard: Option<Guard>,
    ) -> Result<Vec<Inst>, DirectiveError> {
        let mut list = Vec::with_capacity(insts.len());
        for inst in insts {
            list.extend(self.before.remove(&inst).into_iter().flatten());
            if let Some(stage) = self.staged.stages.get(&inst) {
                let fill = self.fill(inst, stage);
                self.once.extend(fill.iter().copied());
                list.extend(fill);
                continue;
            }
            if let Some(scan) = self.staged.scans.get(&inst) {
                list.extend(self.scan(inst, scan, (levels, guard)));
                continue;
            }
            if let Some(behind) = self.combined.get(&inst) {
                list.extend(self.change(inst, behind));
                continue;
            }
            let held = self.schedule_of(inst);
            if held.partition.is_some() || held.jammed() > 1 {
                list.extend(self.distribute(inst, held, levels, guard)?);
                continue;
            }
            let mut inner = levels;
            if self.program.singular.contains_key(&inst) {
                self.let_one_thread_in(inst);
                inner.singular = true;
            }
            let data = self.module.functions[self.kernel].insts[inst].data.clone();
            for region in data.regions() {
                let within = guard.filter(|guard| guard.is_open || self.uniform.meets(inst));
                self.region(region, inner, within)?;
            }
            list.extend(self.executed_once(inst, levels)?);
        }
        Ok(list)
    }

    /// An instruction, of which one thread of those that execute the same iterations does what it does to memory:
    /// the first one along dimensions over which no loop around is distributed.
    fn executed_once(&mut self, inst: Inst, levels: Levels) -> Result<Vec<Inst>, DirectiveError> {
        let function = &self.module.functions[self.kernel];
        if self.program.is_mark(inst) || !acts(function, inst, &self.module) {
            return Ok(vec![inst]);
        }
        let of_block = self.stores_to_array(inst);
        if let Some(fill) = self.fill_array(inst) {
            self.once.extend(fill.iter().copied());
            return Ok(fill);
        }
        // Each block has an array of its own.
        let blocks = self.grid.blocks[levels.blocks..]
            .iter()
            .filter(|_| !of_block);
        let threads = match levels.singular {
            true => Vec::new(),
            false => self.schedule.undivided(levels),
        };
        let threads = threads.into_iter().map(|along| self.grid.thread(along));
        let dims = blocks.copied().chain(threads);
        let firsts: Vec<Value> = dims.map(|dim| dim.is_first).collect();
        if firsts.is_empty() {
            return Ok(vec![inst]);
        }
        let at = self.location(inst);
        let mut emit = Emit::new(&mut self.module.functions[self.kernel], at);
        let Some(is_first) = emit.all(&firsts) else {
            return Ok(vec![inst]);
        };
        let then = emit.region(|inner| inner.list.push(inst));
        emit.if_(is_first, then);
        let (list, result) = (
            emit.list,
            self.module.functions[self.kernel].insts[inst].result,
        );
        match result.filter(|&result| self.is_used(result)) {
            None => Ok(list),
            Some(_) => Err(DirectiveError::Repeated {
                place: self.program.place(at),
                what: "the result of what is done to memory here is used",
            }),
        }
    }

    /// Whether an instruction writes an array of the block, not what is copied to a slice.
    fn stores_to_array(&self, inst: Inst) -> bool {
        let function = &self.module.functions[self.kernel];
        let InstData::Store { ptr, .. } = function.insts[inst].data else {
            return false;
        };
        let array = array_of(function, base_of(function, ptr));
        array.is_some_and(|array| self.program.arrays.contains_key(&array))
    }

    /// Whether anything in the program uses a value.
    fn is_used(&self, value: Value) -> bool {
        let function = self.program.function();
        let mut found = false;
        function.for_each_inst(|_, user| {
            function.insts[user]
                .data
                .for_each_operand(|operand| found |= operand == value);
        });
        found
    }

    /// What the schedule says of an instruction, if that is a loop.
    fn schedule_of(&self, inst: Inst) -> LoopSchedule {
        let number = self.program.number_of(inst);
        number.map_or_else(LoopSchedule::default, |number| self.schedule.loops[number])
    }

    /// Makes the first thread of the block the one that enters an `if`.
    fn let_one_thread_in(&mut self, inst: Inst) {
        let first = self.grid.is_first;
        let data = &mut self.module.functions[self.kernel].insts[inst].data;
        data.map_operands(|_| first);
    }

    /// A loop of which a thread executes its share, or several iterations side by side.
    fn distribute(
        &mut self,
        inst: Inst,
        held: LoopSchedule,
        levels: Levels,
        guard: Option<Guard>,
    ) -> Result<Vec<Inst>, DirectiveError> {
        let node = self.module.functions[self.kernel].insts[inst].clone();
        let InstData::For {
            body,
            index,
            start,
            end,
            step,
            unroll,
        } = node.data
        else {
            return Ok(vec![inst]);
        };
        let inner = levels.within(held.partition);
        let meets = self.uniform.meets(inst);
        let shares = self.shares(inst, held, levels, ([start, end, step], unroll));
        let function = &mut self.module.functions[self.kernel];
        let mut emit = Emit::new(function, node.location);
        let (own, turn) = match meets {
            true => shares.write_meeting(&mut emit),
            false => shares.write(&mut emit),
        };
        let list = emit.list;
        let may_be_left = shares.padded && held.jammed() > 1 && !self.fills(&list, &turn, held);
        let is_copy = may_be_left.then(|| self.placeholder(&turn, node.location));
        let turn_guard = [turn.guard, is_copy].into_iter().flatten();
        let own_guards: Vec<Value> = turn_guard.collect();
        if shares.thread.is_some() || self.uniform.is_varying(index) {
            self.apart.insert(own);
        }
        self.firsts.insert(inst, turn.first);
        self.replace_value(index, own, body);
        let guard = match shares.padded || meets {
            true => self.all_hold(guard, (&own_guards, shares.padded), (&turn, node.location)),
            false => guard.filter(|guard| guard.is_open),
        };
        self.region(body, inner, guard)?;
        self.enter_body(&turn, body);
        let written = list.last().filter(|_| held.jammed() > 1);
        self.jams.extend(written.map(|&written| Jam {
            inst: written,
            count: held.jammed(),
            number: self.staged.numbers.get(&inst).copied(),
            guard: is_copy,
            once: shares.once != Once::No,
        }));
        Ok(list)
    }

    /// How a loop is shared out. Whether the grid has dimensions for it has been checked.
    fn shares(
        &self,
        inst: Inst,
        held: LoopSchedule,
        levels: Levels,
        (bounds, unroll): ([Value; 3], Unroll),
    ) -> Shares {
        let partition = held.partition;
        let block = partition.over_blocks;
        let along = levels.along(partition);
        Shares {
            block: block.map(|how| (self.grid.blocks[levels.blocks], how)),
            thread: along.map(|along| self.grid.thread(along)),
            bounds,
            unroll,
            jammed: held.jammed(),
            padded: self.edge.is_padded(inst),
            once: match self.once_each.contains(&inst) {
                true if self.staged.stages.is_empty() => Once::Asserted,
                true => Once::Known,
                false => Once::No,
            },
        }
    }

    /// Whether each thread has full groups of a loop, as is known by its numbers.
    fn fills(&mut self, list: &[Inst], turn: &Turn, held: LoopSchedule) -> bool {
        let function = &mut self.module.functions[self.kernel];
        let written = list.last().map(|&inst| function.insts[inst].data.control());
        let Some(Control::For { bounds, .. }) = written else {
            return false;
        };
        let emit = Emit::new(function, Location::unknown());
        let numbers = bounds.map(|bound| emit.number(bound));
        let [Some(start), Some(end), Some(step @ 1..)] = numbers else {
            return false;
        };
        let turns = ceil((end - start).max(0), step);
        turn.guard.is_none() && turns % i128::from(held.jammed()) == 0
    }

    /// What holds in the first copy of an iteration, and will tell whether another one is an iteration.
    fn placeholder(&mut self, turn: &Turn, at: Location) -> Value {
        let function = &mut self.module.functions[self.kernel];
        let mut emit = Emit::new(function, at);
        let holds = emit.value(InstData::Const(Constant::Bool(true)), Type::BOOL);
        let written = emit.list;
        function.regions[turn.region].insts.extend(written);
        holds
    }

    /// The guard of a turn, within what may be guarded itself.
    fn all_hold(
        &mut self,
        outer: Option<Guard>,
        (own, is_open): (&[Value], bool),
        (turn, at): (&Turn, Location),
    ) -> Option<Guard> {
        if own.is_empty() {
            return outer;
        }
        let all: Vec<Value> = outer
            .map(|guard| guard.holds)
            .into_iter()
            .chain(own.iter().copied())
            .collect();
        let function = &mut self.module.functions[self.kernel];
        let mut emit = Emit::new(function, at);
        let holds = emit.all(&all)?;
        let written = emit.list;
        function.regions[turn.region].insts.extend(written);
        // What is around everything of a part of an outer one is so here, too.
        let is_open = is_open && outer.is_none_or(|guard| guard.is_open);
        Some(Guard { holds, is_open })
    }

    /// Puts a value in the place of another in a region and all within.
    pub(crate) fn replace_value(&mut self, old: Value, new: Value, region: Region) {
        self.replace_values(&HashMap::from([(old, new)]), self.insts_of(region));
    }

    /// The instructions of a region.
    fn insts_of(&self, region: Region) -> Vec<Inst> {
        self.module.functions[self.kernel].regions[region]
            .insts
            .clone()
    }

    /// Puts values in the place of others in instructions and all within.
    pub(crate) fn replace_values(&mut self, new: &HashMap<Value, Value>, insts: Vec<Inst>) {
        replace(&mut self.module.functions[self.kernel], new, &insts);
    }

    /// Moves what is in a loop's body to the end of the region of a turn.
    fn enter_body(&mut self, turn: &Turn, body: Region) {
        let insts = self.insts_of(body);
        self.module.functions[self.kernel].regions[turn.region]
            .insts
            .extend(insts);
    }

    /// Where an instruction comes from.
    pub(crate) fn location(&self, inst: Inst) -> Location {
        self.module.functions[self.kernel].insts[inst].location
    }

    /// Whether threads of a block may have a value different.
    pub(crate) fn is_varying(&self, value: Value) -> bool {
        self.apart.contains(&value) || self.uniform.is_varying(value)
    }
}

/// Whether an instruction writes memory that other threads see, or prints.
fn acts(function: &Function, inst: Inst, module: &Module) -> bool {
    let data = &function.insts[inst].data;
    if data.is_local() || data.var_use().is_some() || !data.facts(&module.intrinsics).writes {
        return false;
    }
    match *data {
        InstData::Store { ptr, .. } => !is_local(function, base_of(function, ptr)),
        _ => true,
    }
}

/// A turn of a distributed loop.
pub(crate) struct Turn {
    /// Where what is in the loop goes, behind what is there.
    pub(crate) region: Region,
    /// What holds for the threads that have an iteration in the turn; none if that is all.
    pub(crate) guard: Option<Value>,
    /// The index that the block's first thread has, where all come to the turn together.
    pub(crate) first: Value,
}

/// A condition that tells whether a thread has an iteration.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Guard {
    pub(crate) holds: Value,
    /// Whether the condition is around what [`Edge`] has closed alone.
    pub(crate) is_open: bool,
}

/// How a loop is shared out.
pub(crate) struct Shares {
    pub(crate) block: Option<(Dim, crate::schedule::OverBlocks)>,
    pub(crate) thread: Option<Dim>,
    pub(crate) bounds: [Value; 3],
    pub(crate) unroll: Unroll,
    /// How many iterations a thread executes side by side.
    pub(crate) jammed: u32,
    /// Whether threads without an iteration execute the last one.
    pub(crate) padded: bool,
    pub(crate) once: Once,
}
