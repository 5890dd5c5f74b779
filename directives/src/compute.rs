//! Slices that blocks compute: what a turn of a loop reads of a slice that loops before it write, computed in shared memory
//! before the turn, in the place of these loops.
//!
//! What turns of several blocks read each of these computes, so that their tiles overlap (Krishnamoorthy et al., "Effective
//! automatic parallelization of stencil computations", PLDI 2007; `compute_at` of Halide). The loops have to be such that it
//! does not matter who executes an iteration, when and how often: one statement writes an element of the slice in each, to another
//! place each time, and they read what the region does not write. From the place of an element the iteration is found by
//! division, as the distance between elements of two turns of one loop is more than all loops within go through.

use std::collections::{HashMap, HashSet};

use kiln_jit_core::ir::{
    BinaryOp, CompareOp, Control, Function, Inst, InstData, Region, Value, Var, VarUse,
};

use crate::accesses::{Access, Accesses};
use crate::affine::{Affine, Atom, Known, Step};
use crate::bounds;
use crate::emit::Emit;
use crate::error::DirectiveError;
use crate::private::Body;
use crate::program::Program;
use crate::schedule::{LoopSchedule, Schedule, Slices};
use crate::touched::{Elements, elements, executes};
use crate::transform::{replace, unsigned};

/// The loops that write a slice, taken out of the program.
#[derive(Clone, Debug)]
pub(crate) struct Producer {
    pub(crate) slice: Value,
    /// The outermost loop.
    nest: Inst,
    /// What an iteration executes, up to the statement that writes the element.
    insts: Vec<Inst>,
    value: Value,
    /// The variables that it assigns.
    vars: Vec<Var>,
    /// The least element that is written.
    first: i128,
    /// The loops, of which those with elements farther apart come first. None: nothing is read.
    loops: Vec<Counted>,
}

/// A loop whose turn is found by the place of an element.
#[derive(Copy, Clone, Debug)]
struct Counted {
    index: Value,
    start: i128,
    step: i128,
    count: i128,
    /// How many elements are from one turn to the next.
    stride: i128,
}

impl Producer {
    /// The indices of the iteration that writes an element, a place in the slice with a sign, and whether there is one. With
    /// `further` that of so many turns of the innermost loop further.
    fn iteration(
        &self,
        emit: &mut Emit<'_>,
        place: Value,
        further: Option<Value>,
    ) -> (Vec<(Value, Value)>, Value) {
        let signed = emit.function.type_of(place);
        let first = emit.int(self.first, signed);
        let ahead = emit.binary(BinaryOp::Sub, place, first);
        // What is before the first one is farther than all others.
        let counted = unsigned(emit.function, place);
        let mut rest = emit.cast(ahead, counted);
        let (mut indices, mut conditions, mut reached) = (Vec::new(), Vec::new(), i128::MAX);
        for (number, held) in self.loops.iter().enumerate() {
            let stride = emit.int(held.stride, counted);
            let mut turn = emit.binary(BinaryOp::Div, rest, stride);
            rest = match held.stride {
                1 => emit.int(0, counted),
                _ => emit.binary(BinaryOp::Rem, rest, stride),
            };
            if reached > held.count * held.stride {
                let count = emit.int(held.count, counted);
                conditions.push(emit.compare(CompareOp::Lt, turn, count));
            }
            if let Some(further) = further
                && number + 1 == self.loops.len()
            {
                let (further, count) = (emit.cast(further, counted), emit.int(held.count, counted));
                turn = emit.binary(BinaryOp::Add, turn, further);
                conditions.push(emit.compare(CompareOp::Lt, turn, count));
            }
            reached = held.stride;
            indices.push((held.index, held.index_of(emit, turn)));
        }
        if reached > 1 {
            let zero = emit.int(0, counted);
            conditions.push(emit.compare(CompareOp::Eq, rest, zero));
        }
        let is_one = emit.all(&conditions);
        (indices, is_one.expect("the first loop has a condition"))
    }

    /// Executes the iteration that writes an element, if there is one: `set` is given what would be written. Otherwise does
    /// what `otherwise` writes.
    pub(crate) fn compute(
        &self,
        emit: &mut Emit<'_>,
        place: Value,
        set: impl FnOnce(&mut Emit<'_>, Value),
        otherwise: Option<impl FnOnce(&mut Emit<'_>)>,
    ) {
        if self.loops.is_empty() {
            if let Some(otherwise) = otherwise {
                otherwise(emit);
            }
            return;
        }
        let (indices, is_one) = self.iteration(emit, place, None);
        let then = emit.region(|emit| {
            let value = self.execute(emit, indices.into_iter().collect());
            set(emit, value);
        });
        match otherwise {
            Some(otherwise) => {
                let otherwise = emit.region(otherwise);
                emit.if_else(is_one, then, otherwise);
            }
            None => emit.if_(is_one, then),
        }
    }

    /// Whether turns of the innermost loop write elements that are so many places apart.
    pub(crate) fn goes_along(&self, stride: i128) -> bool {
        self.loops.last().is_some_and(|held| held.stride == stride)
    }

    /// As [`Producer::compute`], of the element that is so many turns of the innermost loop ahead of a place. Of elements of other turns
    /// of loops around, and where there is none, does what `otherwise` writes. Where threads have a place in common they have the
    /// indices of the loops around in common, too.
    pub(crate) fn compute_along(
        &self,
        emit: &mut Emit<'_>,
        (place, ahead): (Value, Value),
        set: impl FnOnce(&mut Emit<'_>, Value),
        otherwise: impl FnOnce(&mut Emit<'_>),
    ) {
        let (indices, is_one) = self.iteration(emit, place, Some(ahead));
        let then = emit.region(|emit| {
            let value = self.execute(emit, indices.into_iter().collect());
            set(emit, value);
        });
        let otherwise = emit.region(otherwise);
        emit.if_else(is_one, then, otherwise);
    }

    /// Writes an iteration with these indices; the value that it would write.
    fn execute(&self, emit: &mut Emit<'_>, mut values: HashMap<Value, Value>) -> Value {
        let mut own = |var: &Var| {
            let data = emit.function.vars[*var].clone();
            (*var, emit.function.vars.push(data))
        };
        let vars: HashMap<Var, Var> = self.vars.iter().map(&mut own).collect();
        for &inst in &self.insts {
            let copy = emit.function.copy_inst(inst);
            replace(emit.function, &values, &[copy.inst]);
            for &inner in copy.insts.values() {
                let data = &mut emit.function.insts[inner].data;
                data.map_vars(|var| vars.get(&var).copied().unwrap_or(var));
            }
            values.extend(copy.values);
            emit.list.push(copy.inst);
        }
        values.get(&self.value).copied().unwrap_or(self.value)
    }
}

impl Counted {
    /// The index of a turn.
    fn index_of(&self, emit: &mut Emit<'_>, turn: Value) -> Value {
        let ty = emit.function.type_of(self.index);
        let turn = emit.cast(turn, ty);
        let [start, step] = [self.start, self.step.abs()].map(|number| emit.int(number, ty));
        let ahead = emit.binary(BinaryOp::Mul, turn, step);
        match (self.step > 0, self.start) {
            (true, 0) => ahead,
            (true, _) => emit.binary(BinaryOp::Add, start, ahead),
            (false, _) => emit.binary(BinaryOp::Sub, start, ahead),
        }
    }
}

/// Takes the loops out of a program that write what a schedule lets blocks compute; by loop that is left, its number.
pub(crate) fn take_out(
    program: &mut Program,
    schedule: &mut Schedule,
    known: &[Known],
) -> Result<(Vec<Producer>, Vec<usize>), DirectiveError> {
    let computed = schedule
        .loops
        .iter()
        .flat_map(|held| held.computed.numbers());
    let computed = computed.fold(Slices::default(), Slices::with);
    let accesses = Accesses::of(program, schedule)?;
    let mut search = Search {
        program,
        schedule,
        accesses: &accesses,
        affine: Affine::new(program.function(), known),
    };
    let mut producers = Vec::new();
    for param in computed.numbers() {
        producers.push(search.producer(param)?);
    }
    // What is there for each iteration is there for those that blocks execute.
    let proved = bounds::proved(program, schedule, known)?;
    let function = &mut program.module.functions[program.kernel];
    for inst in proved {
        if let InstData::SliceIndex { checked, .. } = &mut function.insts[inst].data {
            *checked = false;
        }
    }
    let mut gone = HashSet::new();
    for producer in &producers {
        let body = function.body;
        function.regions[body]
            .insts
            .retain(|&inst| inst != producer.nest);
        gone.extend(within(function, producer.nest));
    }
    let mut numbers: Vec<usize> = (0..program.loops.len()).collect();
    numbers.retain(|&number| !gone.contains(&program.loops[number].0));
    schedule.loops = numbers
        .iter()
        .map(|&number| schedule.loops[number])
        .collect();
    program.loops = numbers
        .iter()
        .map(|&number| program.loops[number])
        .collect();
    Ok((producers, numbers))
}

/// An instruction and all within.
fn within(function: &Function, inst: Inst) -> Vec<Inst> {
    let mut all = vec![inst];
    for region in function.insts[inst].data.regions() {
        function.walk(region, &mut |_, inner| all.push(inner));
    }
    all
}

struct Search<'p> {
    program: &'p Program,
    schedule: &'p Schedule,
    accesses: &'p Accesses,
    affine: Affine<'p>,
}

const NOT_ONCE: &str = "not each iteration of the loops writes another element of it, at an index that is a sum of the loops' \
                        counters times numbers: write it so";

impl<'p> Search<'p> {
    fn refuse(&self, at: Inst, slice: &str, problem: &'static str) -> DirectiveError {
        let at = self.program.function().insts[at].location;
        DirectiveError::Computed {
            place: self.program.place(at),
            slice: slice.to_owned(),
            problem,
        }
    }

    /// The loops that write a slice.
    fn producer(&mut self, param: u32) -> Result<Producer, DirectiveError> {
        let function = self.program.function();
        let mut loops = self.program.loops.iter().zip(&self.schedule.loops);
        let in_loop = loops.find(|(_, held)| held.computed.contains(param));
        let ((in_loop, _), held) = in_loop.expect("a loop has the clause");
        let Some(data) = function.params.get(param as usize) else {
            let number = param.to_string();
            return Err(self.refuse(*in_loop, &number, "the region has no such parameter"));
        };
        let name = data.name.clone();
        if !held.shared.contains(param) || held.whole.contains(param) {
            let problem = "what a turn reads of it is computed, so that it is among the slices that the loop stages, and not \
                           staged whole";
            return Err(self.refuse(*in_loop, &name, problem));
        }
        let write = self.write(data.value, *in_loop, &name)?;
        let nest = self.nest(write, &name)?;
        self.check_body(write, nest, &name)?;
        self.check_reads(write, nest, (param, &name))?;
        let InstData::Store { value, .. } = function.insts[write.inst].data else {
            unreachable!("the write is a store");
        };
        let (first, loops) = match self.is_read(write) {
            true => self.counted(write),
            false => Ok((0, Vec::new())),
        }
        .map_err(|problem| self.refuse(write.inst, &name, problem))?;
        Ok(Producer {
            slice: data.value,
            nest,
            insts: self.before(write),
            value,
            vars: self.vars(nest, &name)?,
            first,
            loops,
        })
    }

    /// The only write of the slice.
    fn write(&self, slice: Value, in_loop: Inst, name: &str) -> Result<&'p Access, DirectiveError> {
        let accesses: &'p Accesses = self.accesses;
        let mut writes = accesses
            .all
            .iter()
            .filter(|access| access.base == slice && access.writes);
        let Some(write) = writes.next() else {
            let problem = "nothing in the region writes it: stage it by `copyin`";
            return Err(self.refuse(in_loop, name, problem));
        };
        if let Some(second) = writes.next() {
            let problem = "another statement writes it, too: let one do so";
            return Err(self.refuse(second.inst, name, problem));
        }
        let data = &self.program.function().insts[write.inst].data;
        let is_whole = matches!(
            write.steps.as_deref(),
            Some([Step::Index { of: Some(_), .. }])
        );
        match (data, is_whole) {
            (
                InstData::Store {
                    volatile: false, ..
                },
                true,
            ) => Ok(write),
            _ => Err(self.refuse(
                write.inst,
                name,
                "it is written here by something else than `x[i] = v`: write whole elements",
            )),
        }
    }

    /// The outermost of the loops around the write.
    fn nest(&self, write: &Access, name: &str) -> Result<Inst, DirectiveError> {
        let function = self.program.function();
        let around = &write.way[..write.way.len() - 1];
        let is_for =
            |inst: Inst| matches!(function.insts[inst].data.control(), Control::For { .. });
        if around.is_empty()
            || write.may_be_left_out
            || !around.iter().all(|held| is_for(held.inst))
        {
            let problem = "it is not written in each iteration of `for` loops that stand in no `if` and in no other loop: write it so";
            return Err(self.refuse(write.inst, name, problem));
        }
        let nest = around[0].inst;
        let inner = within(function, nest);
        let mut loops = self.program.loops.iter().zip(&self.schedule.loops);
        let directed = loops
            .find(|((inst, _), held)| inner.contains(inst) && **held != LoopSchedule::default());
        match directed {
            Some(((inst, _), _)) => Err(self.refuse(
                *inst,
                name,
                "the loops that write it have directives, and threads that read it execute what is in them: take these away",
            )),
            None => Ok(nest),
        }
    }

    /// Refuses what may not be done in another order, or several times.
    fn check_body(&self, write: &Access, nest: Inst, name: &str) -> Result<(), DirectiveError> {
        let function = self.program.function();
        let own = self
            .accesses
            .all
            .iter()
            .filter(|held| held.way[0].inst == nest);
        for access in own.filter(|held| held.inst != write.inst) {
            if access.writes {
                let problem =
                    "the loops that write it write something else, too: give that loops of its own";
                return Err(self.refuse(access.inst, name, problem));
            }
            let mut all = self.accesses.all.iter();
            let is_known = access.is_of_param(function);
            if !is_known || all.any(|other| other.writes && other.base == access.base) {
                let problem = "the loops that write it read what the region writes: let them read other slices";
                return Err(self.refuse(access.inst, name, problem));
            }
        }
        for inst in within(function, nest) {
            let data = &function.insts[inst].data;
            let returns = matches!(data.control(), Control::Return { .. });
            if returns || data.is_barrier() || self.program.singular.contains_key(&inst) {
                let problem = "the loops that write it hold `return`, a barrier or `singular`: take these out";
                return Err(self.refuse(inst, name, problem));
            }
        }
        for held in &write.loops {
            let how = "which the threads of several blocks execute";
            for region in function.insts[held.inst].data.regions() {
                Body::new(self.program, (held.inst, how), region).check()?;
            }
        }
        Ok(())
    }

    /// The variables that the loops assign. Others that they read may not change behind them.
    fn vars(&self, nest: Inst, name: &str) -> Result<Vec<Var>, DirectiveError> {
        let function = self.program.function();
        let used = |insts: &[Inst]| {
            let uses = insts
                .iter()
                .map(|&inst| (inst, function.insts[inst].data.var_use()));
            let uses = uses.filter_map(|(inst, used)| used.map(|used| (inst, used)));
            uses.collect::<Vec<_>>()
        };
        let own = used(&within(function, nest));
        let set = |held: &(Inst, VarUse)| match held.1 {
            VarUse::Set(var, _) => Some(var),
            VarUse::Get(_) => None,
        };
        let vars: Vec<Var> = own.iter().filter_map(set).collect();
        let body = &function.regions[function.body].insts;
        let behind = body.iter().skip_while(|&&inst| inst != nest).skip(1);
        let behind: Vec<Inst> = behind.flat_map(|&inst| within(function, inst)).collect();
        let changed: Vec<Var> = used(&behind).iter().filter_map(set).collect();
        for (inst, held) in own {
            if let VarUse::Get(var) = held
                && !vars.contains(&var)
                && changed.contains(&var)
            {
                let problem = "the loops that write it read a variable that changes behind them: let it have a name of its own";
                return Err(self.refuse(inst, name, problem));
            }
        }
        Ok(vars)
    }

    /// Refuses reads that are not behind the loops, or of what these do not write.
    fn check_reads(
        &mut self,
        write: &Access,
        nest: Inst,
        (param, name): (u32, &str),
    ) -> Result<(), DirectiveError> {
        let written = elements(&mut self.affine, write);
        let length = self.affine.length(write.base);
        let all = length.and_then(|length| u64::try_from(length).ok());
        let has_all = all.zip(written.as_ref());
        let has_all = has_all.is_some_and(|(len, written)| Elements::all(len).are_among(written));
        let place = write.way[0].position;
        let reads = self.accesses.all.iter();
        for read in reads.filter(|held| held.base == write.base && held.inst != write.inst) {
            let is_staged = |held: &crate::accesses::Around| held.schedule.computed.contains(param);
            if read.way[0].inst == nest || read.way[0].position < place {
                let problem = "it is read before all of it is written, or by the loops that write it: read another slice there";
                return Err(self.refuse(read.inst, name, problem));
            }
            if !read.loops.iter().any(is_staged) {
                let problem = "it is read in a loop that does not say `shared(compute(..))` of it, and is nowhere but in shared memory: \
                               say so there, too";
                return Err(self.refuse(read.inst, name, problem));
            }
            let is_executed = executes(&mut self.affine, read) != Some(false);
            let own = elements(&mut self.affine, read);
            let is_written = own.zip(written.as_ref());
            if is_executed
                && !has_all
                && !is_written.is_some_and(|(own, written)| own.are_among(written))
            {
                let problem = "the loops that write it are not known to write all that is read here: let them write all of the slice";
                return Err(self.refuse(read.inst, name, problem));
            }
        }
        Ok(())
    }

    /// Whether the slice is read in any turn of loops.
    fn is_read(&mut self, write: &Access) -> bool {
        let reads = self.accesses.all.iter();
        let mut reads = reads.filter(|held| held.base == write.base && held.inst != write.inst);
        reads.any(|read| executes(&mut self.affine, read) != Some(false))
    }

    /// The least element that is written, and the loops by which others are; what is wrong with them.
    fn counted(&mut self, write: &Access) -> Result<(i128, Vec<Counted>), &'static str> {
        let Some([Step::Index { index, .. }]) = write.steps.as_deref() else {
            return Err(NOT_ONCE);
        };
        let form = self.affine.form(*index).filter(|form| form.is_exact());
        let form = form.ok_or(NOT_ONCE)?;
        let (mut first, mut loops) = (form.sum.number, Vec::new());
        for held in &write.loops {
            let turns = self.affine.turns(held.inst).ok_or(NOT_ONCE)?;
            let known = turns.start.as_number().zip(turns.count);
            let (start, count) = known.ok_or("how many turns the loops have that write it is not the same each time, or not known: let bounds be numbers of the launch")?;
            let atom = self.affine.turn(held.inst);
            let factor = form.sum.factors.get(atom).copied().unwrap_or(0);
            let data = self.program.function().insts[held.inst].data.control();
            let Control::For { index, .. } = data else {
                return Err(NOT_ONCE);
            };
            if factor == 0 && count > 1 {
                return Err(NOT_ONCE);
            }
            let last = (count - 1).max(0);
            let (start, step) = match factor < 0 {
                true => (start + turns.step * last, -turns.step),
                false => (start, turns.step),
            };
            first += (factor * last).min(0);
            let stride = factor.abs();
            loops.push(Counted {
                index,
                start,
                step,
                count,
                stride,
            });
        }
        self.check_strides(&form.sum.factors, &mut loops)?;
        Ok((first, loops))
    }

    /// Sorts loops by their strides; refuses what lets two iterations write one element.
    fn check_strides(&self, factors: &[i128], loops: &mut [Counted]) -> Result<(), &'static str> {
        let of_turns = factors
            .iter()
            .enumerate()
            .filter(|(_, factor)| **factor != 0);
        let mut atoms = of_turns.map(|(atom, _)| &self.affine.atoms[atom]);
        if !atoms.all(|atom| matches!(atom, Atom::Turn(_))) {
            return Err(NOT_ONCE);
        }
        loops.sort_by_key(|held| -held.stride);
        let mut span = 0;
        for held in loops.iter_mut().rev() {
            if held.count > 1 && held.stride <= span {
                return Err(NOT_ONCE);
            }
            // A loop of one turn at most tells nothing.
            held.stride = held.stride.max(span + 1);
            span += held.stride * (held.count - 1).max(0);
        }
        // Places and their distances are numbers of 64 bits.
        match span < 1 << 62 {
            true => Ok(()),
            false => Err(NOT_ONCE),
        }
    }

    /// What an iteration executes before the write.
    fn before(&self, write: &Access) -> Vec<Inst> {
        let function = self.program.function();
        let insts = |region: Region, end: usize| function.regions[region].insts[..end].to_vec();
        let inner = write.way[1..].iter();
        inner
            .flat_map(|held| insts(held.region, held.position))
            .collect()
    }
}
