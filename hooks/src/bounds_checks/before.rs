//! What is computed before a loop: what does not change in it, and whether its indices stay in bounds.

use std::collections::{HashMap, HashSet};

use kiln_compiler::ir::{
    BinaryOp, CompareOp, Constant, Function, Inst, InstData, IntrinsicDef, IntrinsicId, Location,
    PrimaryMap, Region, Source, Type, TypeTable, Value, ValueDef, Var, VarUse,
};
use kiln_compiler::simt::Uniformities;

use super::conditions::{Guard, Homes};
use super::counter::defining;
use super::lanes::Block;

/// How deep an expression is looked into.
pub(super) const MAX_DEPTH: u32 = 32;

/// How many values are looked at for an index.
pub(super) const MAX_STEPS: u32 = 1_000;

/// What a loop defines and assigns.
pub(super) struct Inside {
    insts: HashSet<Inst>,
    assigned: HashMap<Var, u32>,
}

impl Inside {
    /// Of a loop, itself included.
    pub(super) fn of(function: &Function, the_loop: Inst) -> Inside {
        let mut inside = Inside {
            insts: HashSet::from([the_loop]),
            assigned: HashMap::new(),
        };
        for region in function.insts[the_loop].data.regions() {
            inside.add(function, region);
        }
        inside
    }

    /// Of a whole function.
    pub(super) fn of_body(function: &Function) -> Inside {
        let mut inside = Inside {
            insts: HashSet::new(),
            assigned: HashMap::new(),
        };
        inside.add(function, function.body);
        inside
    }

    fn add(&mut self, function: &Function, region: Region) {
        function.walk(region, &mut |_, inst| {
            self.insts.insert(inst);
            if let Some(VarUse::Set(var, _)) = function.insts[inst].data.var_use() {
                *self.assigned.entry(var).or_default() += 1;
            }
        });
    }

    /// How many instructions.
    pub(super) fn len(&self) -> usize {
        self.insts.len()
    }

    /// The instructions, in no order.
    pub(super) fn insts(&self) -> impl Iterator<Item = Inst> {
        self.insts.iter().copied()
    }

    /// Whether a value is defined there.
    pub(super) fn defines(&self, function: &Function, value: Value) -> bool {
        match function.values[value].def {
            ValueDef::Inst(inst) | ValueDef::Index(inst) => self.insts.contains(&inst),
            ValueDef::Param(_) => false,
        }
    }

    /// How many instructions assign a variable.
    pub(super) fn assignments(&self, var: Var) -> u32 {
        self.assigned.get(&var).copied().unwrap_or(0)
    }

    /// The variables that are assigned there, in their order.
    pub(super) fn assigned(&self) -> Vec<Var> {
        let mut vars: Vec<Var> = self.assigned.keys().copied().collect();
        vars.sort_unstable();
        vars
    }
}

/// A number of 64 bits, signed: known now, or a value of type `i64` before the loop.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub(super) enum Number {
    Known(i64),
    Value(Value),
}

/// Whether something holds: known now, or a `bool` before the loop.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub(super) enum Truth {
    Known(bool),
    Value(Value),
}

/// Instructions to be put before a loop, no operation twice.
pub(super) struct Before<'f> {
    pub(super) function: &'f mut Function,
    types: &'f TypeTable,
    pub(super) intrinsics: &'f PrimaryMap<IntrinsicId, &'static IntrinsicDef>,
    pub(super) inside: &'f Inside,
    /// Of a loop in which threads meet: all that is asked is the same for the block.
    pub(super) block: Option<&'f Block>,
    /// What is the same in all threads of a block, if that was looked for.
    pub(super) alike: Option<&'f Uniformities>,
    /// What holds at the access that is looked at.
    pub(super) guards: Vec<Guard>,
    /// Whether the code is for a CPU, where what is clamped is asked for, too.
    pub(super) on_cpu: bool,
    /// Whether the length of what is accessed is known.
    pub(super) is_of_array: bool,
    /// Whether a value to which something was added is asked for by how little it is at least.
    pub(super) looks_for_least: bool,
    /// What must hold for the sum that is being found to be what the index is.
    pub(super) needs: Truth,
    /// How many values the search for it may yet look at: an expression may have the same part many times.
    pub(super) steps: u32,
    /// What stands in branches that were looked into, of which nothing is there before the loop.
    pub(super) branches: HashSet<Inst>,
    /// Where instructions stand.
    pub(super) homes: Homes,
    location: Location,
    insts: Vec<Inst>,
    known: HashMap<(InstData, Type), Value>,
    moved: HashMap<Value, Option<Value>>,
}

impl<'f> Before<'f> {
    pub(super) fn new(
        (function, types): (&'f mut Function, &'f TypeTable),
        intrinsics: &'f PrimaryMap<IntrinsicId, &'static IntrinsicDef>,
        inside: &'f Inside,
        (the_loop, block): (Inst, Option<&'f Block>),
    ) -> Before<'f> {
        Before {
            block,
            alike: block.map(Block::uniformities),
            guards: Vec::new(),
            on_cpu: false,
            is_of_array: false,
            looks_for_least: false,
            needs: Truth::Known(true),
            steps: MAX_STEPS,
            branches: HashSet::new(),
            homes: Homes::default(),
            location: function.insts[the_loop].location,
            function,
            types,
            intrinsics,
            inside,
            insts: Vec::new(),
            known: HashMap::new(),
            moved: HashMap::new(),
        }
    }

    /// All that was computed, in order.
    pub(super) fn into_insts(self) -> Vec<Inst> {
        self.insts
    }

    /// The result of an operation on values from before the loop.
    pub(super) fn put(&mut self, data: InstData, ty: Type) -> Value {
        if let Some(&known) = self.known.get(&(data.clone(), ty)) {
            return known;
        }
        let inst = self.function.new_inst(data.clone(), ty, self.location);
        self.insts.push(inst);
        let value = self.function.insts[inst].result;
        let value = value.expect("the operation has a result, of a type that is not unit");
        self.known.insert((data, ty), value);
        value
    }

    /// What a value of the loop is before it, if it is the same in each turn.
    pub(super) fn moved(&mut self, value: Value) -> Option<Value> {
        (!self.differs(value))
            .then(|| self.moved_within(value, 0))
            .flatten()
    }

    /// Begins to look for an index, where `guards` hold.
    pub(super) fn begin(&mut self, guards: Vec<Guard>, is_of_array: bool) {
        (self.guards, self.is_of_array) = (guards, is_of_array);
        (self.needs, self.steps) = (Truth::Known(true), MAX_STEPS);
    }

    /// Whether a value may differ from thread to thread, where that matters.
    pub(super) fn differs(&self, value: Value) -> bool {
        self.block
            .is_some_and(|block| !block.uniformities().is_of_block(value))
    }

    /// Whether a value is not there before the loop.
    pub(super) fn defines(&self, value: Value) -> bool {
        let is_of_branch = match self.function.values[value].def {
            ValueDef::Inst(inst) | ValueDef::Index(inst) => self.branches.contains(&inst),
            ValueDef::Param(_) => false,
        };
        is_of_branch || self.inside.defines(self.function, value)
    }

    fn moved_within(&mut self, value: Value, depth: u32) -> Option<Value> {
        if !self.defines(value) {
            return Some(value);
        }
        if let Some(&known) = self.moved.get(&value) {
            return known;
        }
        let moved = (depth < MAX_DEPTH)
            .then(|| self.compute(value, depth))
            .flatten();
        self.moved.insert(value, moved);
        moved
    }

    fn compute(&mut self, value: Value, depth: u32) -> Option<Value> {
        let ValueDef::Inst(inst) = self.function.values[value].def else {
            return None;
        };
        let mut data = self.function.insts[inst].data.clone();
        let facts = data.facts(self.intrinsics);
        let stays = match facts.source {
            Source::Operands | Source::Row(_) => facts.is_harmless(),
            // In a branch it may be another one than it is before the loop.
            Source::Variable(var) => {
                self.inside.assignments(var) == 0 && !self.branches.contains(&inst)
            }
            Source::None
            | Source::Memory { .. }
            | Source::Own
            | Source::Execution
            | Source::Callee => false,
        };
        if !stays {
            return None;
        }
        let mut all = true;
        data.map_operands(|operand| match self.moved_within(operand, depth + 1) {
            Some(moved) => moved,
            None => {
                all = false;
                operand
            }
        });
        all.then(|| self.put(data, self.function.type_of(value)))
    }

    /// What a variable is before the loop, if all threads have the same where that matters.
    pub(super) fn variable(&mut self, var: Var) -> Option<Value> {
        let block = self.block.map(Block::uniformities);
        let is_same = block.is_none_or(|block| block.is_var_of_block(var));
        is_same.then(|| self.put(InstData::VarGet(var), self.function.vars[var].ty))
    }

    /// An integer from before the loop, as a number.
    pub(super) fn number(&mut self, value: Value) -> Number {
        if let Some(known) = known_integer(self.function, value) {
            return Number::Known(known);
        }
        match self.function.type_of(value) {
            Type::I64 => Number::Value(value),
            _ => Number::Value(self.put(InstData::Cast { arg: value }, Type::I64)),
        }
    }

    /// The number of 64 bits that an integer of fewer is, if it was asked for.
    pub(super) fn known_number(&self, value: Value) -> Option<Value> {
        let cast = (InstData::Cast { arg: value }, Type::I64);
        self.known.get(&cast).copied()
    }

    /// A number as a value of type `i64`.
    pub(super) fn value(&mut self, number: Number) -> Value {
        match number {
            Number::Known(known) => {
                self.put(InstData::Const(Constant::Int(known.into())), Type::I64)
            }
            Number::Value(value) => value,
        }
    }

    pub(super) fn binary(&mut self, op: BinaryOp, left: Number, right: Number) -> Number {
        let args = [self.value(left), self.value(right)];
        Number::Value(self.put(InstData::Binary { op, args }, Type::I64))
    }

    pub(super) fn add(&mut self, left: Number, right: Number) -> Number {
        match (left, right) {
            (Number::Known(a), Number::Known(b)) => Number::Known(a.wrapping_add(b)),
            (Number::Known(0), other) | (other, Number::Known(0)) => other,
            _ => self.binary(BinaryOp::Add, left, right),
        }
    }

    pub(super) fn sub(&mut self, left: Number, right: Number) -> Number {
        match (left, right) {
            (Number::Known(a), Number::Known(b)) => Number::Known(a.wrapping_sub(b)),
            (other, Number::Known(b)) => self.add(other, Number::Known(b.wrapping_neg())),
            _ => self.binary(BinaryOp::Sub, left, right),
        }
    }

    pub(super) fn mul(&mut self, left: Number, right: Number) -> Number {
        match (left, right) {
            (Number::Known(a), Number::Known(b)) => Number::Known(a.wrapping_mul(b)),
            (Number::Known(1), other) | (other, Number::Known(1)) => other,
            (Number::Known(0), _) | (_, Number::Known(0)) => Number::Known(0),
            _ => self.binary(BinaryOp::Mul, left, right),
        }
    }

    /// The largest multiple of `step`, which is above 0, that is not above a number; of a negative one any.
    pub(super) fn multiple(&mut self, number: Number, step: i64) -> Number {
        match number {
            _ if step == 1 => number,
            Number::Known(known) => Number::Known(known - known.rem_euclid(step)),
            _ if step.count_ones() == 1 => {
                self.binary(BinaryOp::And, number, Number::Known(!(step - 1)))
            }
            _ => {
                let times = self.binary(BinaryOp::Div, number, Number::Known(step));
                self.mul(times, Number::Known(step))
            }
        }
    }

    /// A number that is not negative, divided by one above 0.
    pub(super) fn divided(&mut self, number: Number, by: i64) -> Number {
        match number {
            _ if by == 1 => number,
            Number::Known(known) => Number::Known(known / by),
            Number::Value(_) => self.binary(BinaryOp::Div, number, Number::Known(by)),
        }
    }

    /// Whether a number is at least 0 and below `limit`, which is not negative.
    pub(super) fn is_below(&mut self, number: Number, limit: Number) -> Truth {
        if let (Number::Known(number), Number::Known(limit)) = (number, limit) {
            return Truth::Known((0..limit).contains(&number));
        }
        if matches!(number, Number::Known(..0)) {
            return Truth::Known(false);
        }
        self.compare(CompareOp::Lt, number, limit)
    }

    /// Whether a slice has fewer than 2^32 elements.
    pub(super) fn is_narrow(&self, slice: Value) -> bool {
        let ty = self.function.type_of(slice);
        (self.types.as_slice(ty)).is_some_and(|(_, is_wide)| !is_wide)
    }

    /// Whether a number is at least 0.
    pub(super) fn is_not_negative(&mut self, number: Number) -> Truth {
        if let Number::Known(known) = number {
            return Truth::Known(known >= 0);
        }
        let args = [number, Number::Known(0)].map(|number| self.value(number));
        let op = CompareOp::Ge;
        Truth::Value(self.put(InstData::Compare { op, args }, Type::BOOL))
    }

    /// Whether a number is at least 0 and not above `limit`, which is not negative.
    pub(super) fn is_at_most(&mut self, number: Number, limit: Number) -> Truth {
        if let (Number::Known(number), Number::Known(limit)) = (number, limit) {
            return Truth::Known((0..=limit).contains(&number));
        }
        self.compare(CompareOp::Le, number, limit)
    }

    fn compare(&mut self, op: CompareOp, number: Number, limit: Number) -> Truth {
        let args = [number, limit].map(|number| {
            let arg = self.value(number);
            self.put(InstData::Cast { arg }, Type::U64)
        });
        Truth::Value(self.put(InstData::Compare { op, args }, Type::BOOL))
    }

    pub(super) fn and(&mut self, left: Truth, right: Truth) -> Truth {
        match (left, right) {
            (Truth::Known(false), _) | (_, Truth::Known(false)) => Truth::Known(false),
            (Truth::Known(true), other) | (other, Truth::Known(true)) => other,
            (Truth::Value(a), Truth::Value(b)) if a == b => left,
            (Truth::Value(a), Truth::Value(b)) => {
                let (op, args) = (BinaryOp::And, [a, b]);
                Truth::Value(self.put(InstData::Binary { op, args }, Type::BOOL))
            }
        }
    }

    /// A truth as a value of type `bool`.
    pub(super) fn truth(&mut self, truth: Truth) -> Value {
        match truth {
            Truth::Known(known) => self.put(InstData::Const(Constant::Bool(known)), Type::BOOL),
            Truth::Value(value) => value,
        }
    }
}

/// The integer that a value is known to be: a constant, or a sum, difference or product of some.
pub(super) fn known_integer(function: &Function, value: Value) -> Option<i64> {
    known_within(function, value, 0)
}

/// How deep a known number is looked for: `2 * (WIDTH + 1) - 1`.
const MAX_KNOWN_DEPTH: u32 = 4;

fn known_within(function: &Function, value: Value, depth: u32) -> Option<i64> {
    let scalar = function.type_of(value).as_scalar()?;
    if !scalar.is_int() || depth == MAX_KNOWN_DEPTH {
        return None;
    }
    match function.constant(value) {
        Some(Constant::Int(known)) => return i64::try_from(known).ok(),
        Some(Constant::Zero) => return Some(0),
        _ => {}
    }
    let Some(&InstData::Binary { op, args }) = defining(function, value) else {
        return None;
    };
    let [a, b] = args.map(|arg| known_within(function, arg, depth + 1));
    let number = match op {
        BinaryOp::Add => a?.checked_add(b?)?,
        BinaryOp::Sub => a?.checked_sub(b?)?,
        BinaryOp::Mul => a?.checked_mul(b?)?,
        _ => return None,
    };
    // One that wraps around is none that a program means.
    let half = 1i64.checked_shl(scalar.bits() - 1)?;
    let fits = match scalar.is_signed_int() {
        true => half == i64::MIN || (-half..half).contains(&number),
        false => number >= 0 && (half == i64::MIN || number < 2 * half),
    };
    fits.then_some(number)
}
