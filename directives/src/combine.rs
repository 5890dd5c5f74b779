//! Values that a thread's iterations combine with one element of a slice, combined before memory is changed.
//!
//! Of a statement `x[i] op= v` that a loop reduces, the index may be one for all of a loop: it is computed of what the loop does not
//! change. Each thread then combines the values of its iterations in a variable, and behind the loop the element is changed by one
//! atomic operation, if there was an iteration. Where all lanes of a warp come there together and the loop's iterations were shared
//! out over them, the lanes combine their variables by shuffles first, and one of them changes the element for all. A schedule that reduces
//! is for blocks of the threads that it says, so that these warps are whole.
//!
//! What is verified is the program as [`reduce`](crate::reduce) has left it: changing an element at the end of a loop instead of in its
//! iterations, or by a first lane, is one more of the orders that were allowed.

use std::collections::HashMap;

use kiln_device_stdlib::find;
use kiln_jit_core::ir::{
    AtomicOp, BinaryOp, Constant, Control, Function, Inst, InstData, IntrinsicId, Module, Region,
    Scalar, Source, Type, Value, ValueDef, Var, VarUse,
};

use crate::along::{Along, WARP};
use crate::apply::{Levels, Rewrite};
use crate::emit::Emit;
use crate::jam::{holds, leaves};
use crate::program::Program;
use crate::reduce::{address_of, identity};
use crate::schedule::{LoopSchedule, Schedule};
use crate::transform::{Transformed, insert_before, region_of};

/// What stands behind a loop for a statement of its iterations, by the atomic operation there.
pub(crate) type Combined = HashMap<Inst, Behind>;

/// An atomic operation behind a loop, with what the thread's iterations have come to.
#[derive(Debug)]
pub(crate) struct Behind {
    /// The loop.
    pub(crate) of: Inst,
    op: AtomicOp,
    /// Where the element's address is made, whose index is checked if the statement's was.
    address: Inst,
    checked: bool,
    /// Whether the thread had an iteration with the statement.
    any: Var,
    /// What was distributed around the statement.
    levels: Levels,
    /// Whether lanes that come together have each a part.
    by_lanes: bool,
}

/// Takes statements out of the loops that they combine values in with one element.
pub(crate) fn combine(transformed: &mut Transformed<'_>) {
    let atomics = transformed.reduced.iter();
    let mut atomics: Vec<(Inst, AtomicOp)> = atomics.map(|(&inst, &op)| (inst, op)).collect();
    atomics.sort_by_key(|&(inst, _)| inst);
    for (inst, op) in atomics {
        let (program, schedule) = (&*transformed.program, &transformed.schedule);
        let Some(found) = Search { program, schedule }.statement(inst, op) else {
            continue;
        };
        let program = transformed.program.to_mut();
        let (atomic, behind) = found.write(program);
        transformed.reduced.remove(&inst);
        transformed.reduced.insert(atomic, op);
        transformed.combined.insert(atomic, behind);
    }
}

/// A statement, and the loop that it is taken out of.
struct Statement {
    inst: Inst,
    op: AtomicOp,
    of: Inst,
    /// Of the element: where its address is made, the slice, and the index.
    address: Inst,
    checked: bool,
    levels: Levels,
    by_lanes: bool,
}

/// A loop around a statement.
#[derive(Copy, Clone)]
struct Around {
    inst: Inst,
    held: LoopSchedule,
    levels: Levels,
}

#[derive(Copy, Clone)]
struct Search<'p> {
    program: &'p Program,
    schedule: &'p Schedule,
}

impl Search<'_> {
    /// The statement of an atomic operation, with the outermost loop of which all iterations combine values with one element.
    fn statement(self, inst: Inst, op: AtomicOp) -> Option<Statement> {
        let function = self.program.function();
        let ptr = address_of(self.program, inst)?;
        let ValueDef::Inst(address) = function.values[ptr].def else {
            return None;
        };
        let InstData::SliceIndex {
            slice,
            index,
            checked,
        } = function.insts[address].data
        else {
            return None;
        };
        let mut params = function.params.iter();
        let param = params.position(|param| param.value == slice)?;
        let mut around = Vec::new();
        let levels = self.way(function.body, inst, Levels::default(), &mut around)?;
        let reduces = |held: &Around| held.held.reduction.contains(param as u32);
        let first = around.iter().position(reduces)?;
        let place = (first..around.len()).find(|&place| {
            let own = &around[place..];
            own.iter().all(|held| held.held.jammed() == 1)
                && !ends_more(function, own[0].inst)
                && stays(self.program, own[0].inst, index)
        })?;
        let (outer, own) = around.split_at(place);
        let lanes = |held: &Around| self.goes_over_lanes(held);
        let last = self.schedule.threads.last();
        let is_whole = last.is_some_and(|extent| extent % WARP == 0);
        Some(Statement {
            inst,
            op,
            of: own[0].inst,
            address,
            checked,
            levels,
            by_lanes: is_whole && !outer.iter().any(lanes) && own.iter().any(lanes),
        })
    }

    /// The loops on the way to an instruction, and what is distributed around it.
    fn way(
        self,
        region: Region,
        wanted: Inst,
        levels: Levels,
        around: &mut Vec<Around>,
    ) -> Option<Levels> {
        let function = self.program.function();
        for &inst in &function.regions[region].insts {
            if inst == wanted {
                return Some(levels);
            }
            let data = &function.insts[inst].data;
            let number = self.program.number_of(inst);
            let held =
                number.map_or_else(LoopSchedule::default, |number| self.schedule.loops[number]);
            let mut inner = levels.within(held.partition);
            inner.singular |= self.program.singular.contains_key(&inst);
            let is_for = matches!(data.control(), Control::For { .. });
            let depth = around.len();
            if is_for {
                around.push(Around { inst, held, levels });
            }
            for region in data.regions() {
                if let Some(found) = self.way(region, wanted, inner, around) {
                    return Some(found);
                }
            }
            around.truncate(depth);
        }
        None
    }

    /// Whether lanes of one warp have different iterations of a loop.
    fn goes_over_lanes(self, held: &Around) -> bool {
        match held.levels.along(held.held.partition) {
            Some(Along::Lanes) => true,
            Some(Along::Dim(level)) => level + 1 == self.schedule.threads.len(),
            Some(Along::Warps) | None => false,
        }
    }
}

/// Whether a loop ends or continues one around it, or the region.
fn ends_more(function: &Function, inst: Inst) -> bool {
    let mut bodies = function.insts[inst].data.regions().into_iter();
    bodies.any(|body| leaves(function, body, Some(1)))
}

/// Whether a value is one for all iterations of a loop, and can be computed behind it.
fn stays(program: &Program, of: Inst, value: Value) -> bool {
    let function = program.function();
    let inst = match function.values[value].def {
        ValueDef::Param(_) => return true,
        ValueDef::Index(inst) => return !is_in(function, of, inst),
        ValueDef::Inst(inst) if !is_in(function, of, inst) => return true,
        ValueDef::Inst(inst) => inst,
    };
    let data = &function.insts[inst].data;
    if let Some(used) = data.var_use() {
        let sets = |data: &InstData| matches!(data.var_use(), Some(VarUse::Set(var, _)) if var == used.var());
        return !holds(function, of, sets);
    }
    let facts = data.facts(&program.module.intrinsics);
    let acts = facts.reads || facts.writes || facts.assumes || facts.steers || facts.meets;
    let is_pure = matches!(facts.source, Source::None | Source::Operands);
    let mut can = is_pure && facts.check.is_none() && !acts && data.regions().is_empty();
    data.for_each_operand(|operand| can = can && stays(program, of, operand));
    can
}

/// Whether an instruction is one, or is within it.
pub(crate) fn is_in(function: &Function, outer: Inst, inner: Inst) -> bool {
    let mut found = outer == inner;
    for region in function.insts[outer].data.regions() {
        function.walk(region, &mut |_, inst| found |= inst == inner);
    }
    found
}

impl Statement {
    /// Puts a variable in the element's place in the loop, and what changes the element behind it.
    fn write(self, program: &mut Program) -> (Inst, Behind) {
        let function = &mut program.module.functions[program.kernel];
        let InstData::AtomicRmw { value, .. } = function.insts[self.inst].data else {
            unreachable!("what a loop reduces is an atomic operation");
        };
        let at = function.insts[self.inst].location;
        let ty = function.type_of(value);
        let scalar = ty.as_scalar().expect("what is combined is a number");
        let mut emit = Emit::new(function, at);
        let (sum, any) = (
            emit.var("reduction.own", ty),
            emit.var("reduction.any", Type::BOOL),
        );
        let none = emit.value(InstData::Const(identity(self.op, scalar)), ty);
        emit.set(sum, none);
        let no = emit.value(InstData::Const(Constant::Bool(false)), Type::BOOL);
        emit.set(any, no);
        let before = std::mem::take(&mut emit.list);
        let old = emit.get(sum);
        let new = emit.binary(binary(self.op), old, value);
        emit.set(sum, new);
        let yes = emit.value(InstData::Const(Constant::Bool(true)), Type::BOOL);
        emit.set(any, yes);
        let within = std::mem::take(&mut emit.list);
        let (atomic, address) = self.change(&mut emit, sum);
        let behind = emit.list;
        insert_before(function, self.of, before);
        insert_before(function, self.inst, within);
        let region = region_of(function, self.inst);
        function.regions[region]
            .insts
            .retain(|&inst| inst != self.inst);
        self.leave_check_out(function);
        insert_behind(function, self.of, behind);
        let behind = Behind {
            of: self.of,
            op: self.op,
            address,
            checked: self.checked,
            any,
            levels: self.levels,
            by_lanes: self.by_lanes,
        };
        (atomic, behind)
    }

    /// The operation that changes the element, and where its address is made.
    fn change(&self, emit: &mut Emit<'_>, sum: Var) -> (Inst, Inst) {
        let mut data = emit.function.insts[self.inst].data.clone();
        let InstData::SliceIndex { slice, index, .. } = emit.function.insts[self.address].data
        else {
            unreachable!("the address is that of an element");
        };
        let address = emit.function.insts[self.address].result;
        let address = address.expect("an address is a value");
        let (of_element, of_value) = (emit.function.type_of(address), emit.function.vars[sum].ty);
        let value = emit.get(sum);
        let index = copy(emit, self.of, index, &mut HashMap::new());
        let checked = false;
        let new = InstData::SliceIndex {
            slice,
            index,
            checked,
        };
        let new = emit.value(new, of_element);
        let made = *emit.list.last().expect("it has been written");
        if let InstData::AtomicRmw { ptr, value: of, .. } = &mut data {
            (*ptr, *of) = (new, value);
        }
        emit.value(data, of_value);
        (*emit.list.last().expect("it has been written"), made)
    }

    /// Leaves the check of the index out in the loop, where nothing uses the address any more.
    fn leave_check_out(&self, function: &mut Function) {
        let address = function.insts[self.address].result;
        let mut is_used = false;
        function.for_each_inst(|_, inst| {
            let data = &function.insts[inst].data;
            data.for_each_operand(|operand| is_used |= Some(operand) == address);
        });
        if let InstData::SliceIndex { checked, .. } = &mut function.insts[self.address].data {
            *checked &= is_used;
        }
    }
}

/// A value that a loop does not change, computed behind it.
fn copy(emit: &mut Emit<'_>, of: Inst, value: Value, copies: &mut HashMap<Value, Value>) -> Value {
    let ValueDef::Inst(inst) = emit.function.values[value].def else {
        return value;
    };
    if !is_in(emit.function, of, inst) {
        return value;
    }
    if let Some(&copied) = copies.get(&value) {
        return copied;
    }
    let mut data = emit.function.insts[inst].data.clone();
    data.map_operands(|operand| copy(emit, of, operand, copies));
    let copied = emit.value(data, emit.function.type_of(value));
    copies.insert(value, copied);
    copied
}

/// Puts instructions behind another one.
fn insert_behind(function: &mut Function, inst: Inst, list: Vec<Inst>) {
    let region = region_of(function, inst);
    let insts = &mut function.regions[region].insts;
    let place = insts.iter().position(|&held| held == inst);
    let place = place.map_or(insts.len(), |place| place + 1);
    insts.splice(place..place, list);
}

/// The operation on values that an atomic one is.
fn binary(op: AtomicOp) -> BinaryOp {
    match op {
        AtomicOp::Add => BinaryOp::Add,
        AtomicOp::Min => BinaryOp::Min,
        AtomicOp::Max => BinaryOp::Max,
        AtomicOp::And => BinaryOp::And,
        AtomicOp::Or => BinaryOp::Or,
        AtomicOp::Xor => BinaryOp::Xor,
        AtomicOp::Exchange | AtomicOp::Increment | AtomicOp::Decrement => {
            unreachable!("no statement is one of these")
        }
    }
}

/// The lanes of a warp, all of them.
pub(crate) const ALL: i128 = u32::MAX as i128;

/// Rows by which lanes combine values of a type.
enum Lanes {
    /// All at once.
    Reduce(IntrinsicId),
    /// With the lane whose number differs in one digit.
    Shuffle(IntrinsicId),
}

impl Lanes {
    fn of(module: &mut Module, op: AtomicOp, scalar: Scalar) -> Lanes {
        if !scalar.is_int() || scalar.bits() != 32 {
            return Lanes::Shuffle(row(module, "warp.shuffle_xor"));
        }
        let name = match op {
            AtomicOp::Add => "warp.reduce_add",
            AtomicOp::Min => "warp.reduce_min",
            AtomicOp::Max => "warp.reduce_max",
            AtomicOp::And => "warp.reduce_and",
            AtomicOp::Or => "warp.reduce_or",
            AtomicOp::Xor => "warp.reduce_xor",
            AtomicOp::Exchange | AtomicOp::Increment | AtomicOp::Decrement => {
                unreachable!("no statement is one of these")
            }
        };
        Lanes::Reduce(row(module, name))
    }

    /// What all lanes have come to.
    fn combine(&self, emit: &mut Emit<'_>, op: AtomicOp, value: Value) -> Value {
        let ty = emit.function.type_of(value);
        let all = emit.int(ALL, Type::U32);
        let row = match *self {
            Lanes::Reduce(row) => return emit.row_of(row, &[all, value], ty),
            Lanes::Shuffle(row) => row,
        };
        let width = emit.int(WARP.into(), Type::U32);
        [16, 8, 4, 2, 1].into_iter().fold(value, |value, apart| {
            let apart = emit.int(apart, Type::U32);
            let other = emit.row_of(row, &[all, value, apart, width], ty);
            emit.binary(binary(op), value, other)
        })
    }
}

pub(crate) fn row(module: &mut Module, name: &str) -> IntrinsicId {
    let row = find(name).expect("the library has rows of warps");
    module.intrinsic(row)
}

impl Rewrite<'_> {
    /// What stands in the place of an atomic operation behind a loop.
    pub(crate) fn change(&mut self, inst: Inst, behind: &Behind) -> Vec<Inst> {
        let at = self.location(inst);
        let node = self.module.functions[self.kernel].insts[inst].data.clone();
        let InstData::AtomicRmw { ptr, value, .. } = node else {
            unreachable!("what changes the element is an atomic operation");
        };
        let scalar = self.module.functions[self.kernel]
            .type_of(value)
            .as_scalar();
        let scalar = scalar.expect("what is combined is a number");
        let rows = behind.by_lanes.then(|| {
            let lanes = Lanes::of(&mut self.module, behind.op, scalar);
            (lanes, row(&mut self.module, "warp.any"))
        });
        let firsts = self.firsts_of(behind);
        let mut emit = Emit::new(&mut self.module.functions[self.kernel], at);
        let (mut value, mut any) = (value, emit.get(behind.any));
        let mut conditions = firsts;
        if let Some((lanes, vote)) = rows {
            value = lanes.combine(&mut emit, behind.op, value);
            let all = emit.int(ALL, Type::U32);
            any = emit.row_of(vote, &[all, any], Type::BOOL);
            conditions.push(self.grid.is_first_lane(&mut emit));
        }
        conditions.push(any);
        let changes = emit.all(&conditions);
        emit.where_(changes, |emit| {
            let address = emit.checked_again(behind);
            let is_slices = address.0 == ptr;
            let mut data = node;
            if let InstData::AtomicRmw { ptr, value: of, .. } = &mut data {
                *of = value;
                if is_slices {
                    *ptr = address.1;
                }
            }
            let ty = emit.function.type_of(value);
            emit.value(data, ty);
        });
        emit.list
    }

    /// What holds in the one thread of those that have come to the same.
    fn firsts_of(&self, behind: &Behind) -> Vec<Value> {
        let levels = behind.levels;
        let threads = match levels.singular {
            true => Vec::new(),
            false => self.schedule.undivided(levels),
        };
        let threads = threads.into_iter().map(|along| self.grid.thread(along));
        let blocks = self.grid.blocks[levels.blocks..].iter().copied();
        blocks.chain(threads).map(|dim| dim.is_first).collect()
    }
}

impl Emit<'_> {
    /// The address of the element as it was made, and made again with the check that the statement had.
    fn checked_again(&mut self, behind: &Behind) -> (Value, Value) {
        let mut data = self.function.insts[behind.address].data.clone();
        let made = self.function.insts[behind.address].result;
        let made = made.expect("an address is a value");
        if let InstData::SliceIndex { checked, .. } = &mut data {
            *checked = behind.checked;
        }
        let again = self.value(data, self.function.type_of(made));
        (made, again)
    }
}
