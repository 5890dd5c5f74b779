//! Integers of a program as sums of the turns of loops.
//!
//! A value is a sum of *atoms*: the turn of a loop around, counted from 0, a quotient, or what is not known. Scalars
//! and lengths are the numbers of one launch. Integers of the IR wrap around; a sum is that of the value itself where
//! its range says so, and otherwise tells the value up to a multiple of the type's size.

use std::collections::HashMap;

use kiln_jit_core::ir::{
    BinaryOp, CompareOp, Constant, Control, Function, Inst, InstData, Scalar, UnaryOp, Value,
    ValueDef,
};

use crate::accesses::Access;
use crate::integer::{Linear, System};
use crate::program::Program;
use crate::uniform::base_of;

/// What is known of an argument.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub enum Known {
    /// The number that a scalar is.
    Number(i128),
    /// How many elements a slice has.
    Length(u64),
    /// Nothing.
    Nothing,
}

/// A variable of sums.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Atom {
    /// The turn of a loop, counted from 0.
    Turn(Inst),
    /// `of / by`, rounded down.
    Quotient { of: Linear, by: i128 },
    /// A number in a range, of which nothing else is known.
    Unknown { range: (i128, i128) },
}

/// An integer as a sum.
#[derive(Clone, Debug)]
pub(crate) struct Form {
    pub(crate) sum: Linear,
    /// What the sum lies in.
    range: (i128, i128),
    /// The type.
    scalar: Scalar,
}

impl Form {
    /// Whether the value is the sum, not only up to multiples of the size of its type.
    pub(crate) fn is_exact(&self) -> bool {
        let (low, high) = limits(self.scalar);
        low <= self.range.0 && self.range.1 <= high
    }

    /// Whether the sum is a number of the signed type of this size, whatever the type is.
    pub(crate) fn is_signed(&self) -> bool {
        let half = self.size() / 2;
        -half <= self.range.0 && self.range.1 < half
    }

    /// The size of the type.
    pub(crate) fn size(&self) -> i128 {
        1 << self.scalar.bits()
    }
}

/// The smallest and the largest number of an integer type.
pub(crate) fn limits(scalar: Scalar) -> (i128, i128) {
    let size = 1i128 << scalar.bits();
    match scalar.is_signed_int() {
        true => (-size / 2, size / 2 - 1),
        false => (0, size - 1),
    }
}

/// A loop whose turns are known.
#[derive(Clone, Debug)]
pub(crate) struct Turns {
    pub(crate) start: Linear,
    /// What the index is below, or above for a negative step: all of these.
    pub(crate) ends: Vec<Linear>,
    pub(crate) step: i128,
    /// How many turns there are, if that is the same each time.
    pub(crate) count: Option<i128>,
    /// The most turns that there are.
    pub(crate) most: i128,
}

/// The sums of a program's values.
pub(crate) struct Affine<'p> {
    function: &'p Function,
    known: &'p [Known],
    pub(crate) atoms: Vec<Atom>,
    forms: HashMap<Value, Option<Form>>,
    turn_atoms: HashMap<Inst, usize>,
    loops: HashMap<Inst, Option<Turns>>,
}

impl<'p> Affine<'p> {
    /// The sums of a function's values, with what is known of its arguments.
    pub(crate) fn new(function: &'p Function, known: &'p [Known]) -> Affine<'p> {
        Affine {
            function,
            known,
            atoms: Vec::new(),
            forms: HashMap::new(),
            turn_atoms: HashMap::new(),
            loops: HashMap::new(),
        }
    }

    fn argument(&self, value: Value) -> Known {
        let ValueDef::Param(number) = self.function.values[value].def else {
            return Known::Nothing;
        };
        self.known
            .get(number as usize)
            .copied()
            .unwrap_or(Known::Nothing)
    }

    /// How many elements a slice has.
    pub(crate) fn length(&self, slice: Value) -> Option<i128> {
        match self.argument(slice) {
            Known::Length(len) => Some(len.into()),
            Known::Number(_) | Known::Nothing => None,
        }
    }

    fn atom(&mut self, atom: Atom) -> usize {
        self.atoms.push(atom);
        self.atoms.len() - 1
    }

    /// The atom of a loop's turn.
    pub(crate) fn turn(&mut self, inst: Inst) -> usize {
        match self.turn_atoms.get(&inst) {
            Some(&atom) => atom,
            None => {
                let atom = self.atom(Atom::Turn(inst));
                self.turn_atoms.insert(inst, atom);
                atom
            }
        }
    }

    /// What is known of a loop's turns.
    pub(crate) fn turns(&mut self, inst: Inst) -> Option<Turns> {
        if let Some(known) = self.loops.get(&inst) {
            return known.clone();
        }
        let turns = self.turns_of(inst);
        self.loops.insert(inst, turns.clone());
        turns
    }

    fn turns_of(&mut self, inst: Inst) -> Option<Turns> {
        let Control::For { bounds, .. } = self.function.insts[inst].data.control() else {
            return None;
        };
        let [start, end, step] = bounds;
        let (start, step) = (self.form(start)?, self.form(step)?);
        let step = step.sum.as_number().filter(|_| step.is_exact())?;
        let ends = self.ends(end, step > 0)?;
        if !start.is_exact() {
            return None;
        }
        let count = |ahead: i128| match step {
            0 => 0,
            _ => (ahead.max(0) + step.abs() - 1) / step.abs(),
        };
        let ahead = |from: i128, to: i128| if step > 0 { to - from } else { from - to };
        let (mut known, mut most) = (Some(i128::MAX), i128::MAX);
        for end in &ends {
            let farthest = match step > 0 {
                true => ahead(start.range.0, end.range.1),
                false => ahead(start.range.1, end.range.0),
            };
            most = most.min(count(farthest));
            let between = end.sum.plus(&start.sum, -1)?.as_number();
            let turns = between.map(|between| count(ahead(0, between)));
            most = turns.map_or(most, |turns| most.min(turns));
            known = known.zip(turns).map(|(known, turns)| known.min(turns));
        }
        Some(Turns {
            start: start.sum,
            ends: ends.into_iter().map(|end| end.sum).collect(),
            step,
            count: known,
            most,
        })
    }

    /// The bounds of an index: of the smaller of two numbers both, and of the larger where the loop counts down.
    fn ends(&mut self, end: Value, up: bool) -> Option<Vec<Form>> {
        let both = if up { BinaryOp::Min } else { BinaryOp::Max };
        if let ValueDef::Inst(inst) = self.function.values[end].def
            && let InstData::Binary { op, args } = self.function.insts[inst].data
            && op == both
        {
            let [mut ends, more] = [self.ends(args[0], up)?, self.ends(args[1], up)?];
            ends.extend(more);
            return Some(ends);
        }
        Some(vec![self.form(end).filter(Form::is_exact)?])
    }

    /// A value as a sum; an integer of which nothing is known is an atom of its own.
    pub(crate) fn form(&mut self, value: Value) -> Option<Form> {
        if let Some(form) = self.forms.get(&value) {
            return form.clone();
        }
        let form = self.form_of(value);
        self.forms.insert(value, form.clone());
        form
    }

    fn form_of(&mut self, value: Value) -> Option<Form> {
        let scalar = self
            .function
            .type_of(value)
            .as_scalar()
            .filter(|scalar| scalar.is_int())?;
        let found = match self.function.values[value].def {
            ValueDef::Param(_) => match self.argument(value) {
                Known::Number(number) => Some((Linear::number(number), (number, number))),
                Known::Length(_) | Known::Nothing => None,
            },
            ValueDef::Index(inst) => self.index(inst),
            ValueDef::Inst(inst) => self.operation(inst),
        };
        let (sum, range) = match found {
            Some(found) => found,
            None => {
                let range = limits(scalar);
                (Linear::variable(self.atom(Atom::Unknown { range })), range)
            }
        };
        let form = Form { sum, range, scalar };
        Some(self.reduced(form))
    }

    /// A number of which multiples of the size do not matter, as that of the type.
    fn reduced(&mut self, form: Form) -> Form {
        let (low, high) = limits(form.scalar);
        match form.sum.as_number() {
            Some(number) if !(low..=high).contains(&number) => {
                let number = (number - low).rem_euclid(form.size()) + low;
                Form {
                    sum: Linear::number(number),
                    range: (number, number),
                    ..form
                }
            }
            _ => form,
        }
    }

    /// The index of a loop.
    fn index(&mut self, inst: Inst) -> Option<(Linear, (i128, i128))> {
        let turns = self.turns(inst)?;
        let start = self.range_of(&turns.start)?;
        let turn = Linear::variable(self.turn(inst));
        let last = turns.step.checked_mul((turns.most - 1).max(0))?;
        let range = (start.0 + last.min(0), start.1 + last.max(0));
        let Control::For { index, .. } = self.function.insts[inst].data.control() else {
            return None;
        };
        // Every index lies between the bounds, which are numbers of the type.
        let limits = limits(self.function.type_of(index).as_scalar()?);
        let range = (range.0.max(limits.0), range.1.min(limits.1));
        Some((turns.start.plus(&turn, turns.step)?, range))
    }

    /// What a sum lies in.
    pub(crate) fn range_of(&mut self, sum: &Linear) -> Option<(i128, i128)> {
        let (mut low, mut high) = (sum.number, sum.number);
        for (atom, &factor) in sum.factors.iter().enumerate() {
            if factor == 0 {
                continue;
            }
            let (from, to) = match self.atoms[atom].clone() {
                Atom::Turn(inst) => (0, (self.turns(inst)?.most - 1).max(0)),
                Atom::Unknown { range } => range,
                Atom::Quotient { of, by } => {
                    let (low, high) = self.range_of(&of)?;
                    (low.div_euclid(by), high.div_euclid(by))
                }
            };
            let ends = (factor.checked_mul(from)?, factor.checked_mul(to)?);
            low = low.checked_add(ends.0.min(ends.1))?;
            high = high.checked_add(ends.0.max(ends.1))?;
        }
        Some((low, high))
    }

    fn operation(&mut self, inst: Inst) -> Option<(Linear, (i128, i128))> {
        let sum = match self.function.insts[inst].data {
            InstData::Const(Constant::Int(number)) => Linear::number(number),
            InstData::Const(Constant::Zero) => Linear::number(0),
            InstData::Unary {
                op: UnaryOp::Neg,
                arg,
            } => self.form(arg)?.sum.times(-1)?,
            InstData::Binary { op, args } => self.binary(op, args)?,
            InstData::Cast { arg } => self.cast(inst, arg)?,
            InstData::SliceLen { slice } => Linear::number(self.length(slice)?),
            InstData::Select {
                cond,
                if_true,
                if_false,
            } => {
                let chosen = match self.holds(cond)? {
                    true => if_true,
                    false => if_false,
                };
                self.form(chosen)?.sum
            }
            _ => return None,
        };
        let range = self.range_of(&sum)?;
        Some((sum, range))
    }

    fn binary(&mut self, op: BinaryOp, args: [Value; 2]) -> Option<Linear> {
        let [left, right] = args.map(|arg| self.form(arg));
        let (left, right) = (left?, right?);
        let number = |form: &Form| form.sum.as_number();
        match op {
            BinaryOp::Add => left.sum.plus(&right.sum, 1),
            BinaryOp::Sub => left.sum.plus(&right.sum, -1),
            BinaryOp::Mul => match (number(&left), number(&right)) {
                (Some(factor), _) => right.sum.times(factor),
                (None, Some(factor)) => left.sum.times(factor),
                (None, None) => None,
            },
            BinaryOp::Shl => {
                let by = number(&right)?.rem_euclid(left.scalar.bits().into());
                left.sum.times(1 << by)
            }
            BinaryOp::Min | BinaryOp::Max => {
                let ahead = right.sum.plus(&left.sum, -1)?;
                let (low, high) = self.range_of(&ahead)?;
                let is_exact = left.is_exact() && right.is_exact();
                let is_left_less = match () {
                    () if low >= 0 && is_exact => true,
                    () if high <= 0 && is_exact => false,
                    () => return None,
                };
                match is_left_less == (op == BinaryOp::Min) {
                    true => Some(left.sum),
                    false => Some(right.sum),
                }
            }
            BinaryOp::Div | BinaryOp::Rem => {
                let by = number(&right).filter(|&by| by > 0)?;
                // Of numbers below 0, quotients are rounded towards 0.
                let is_plain = left.is_exact() && right.is_exact() && left.range.0 >= 0;
                let of = is_plain.then(|| left.sum.clone())?;
                let quotient = match of.as_number() {
                    Some(number) => Linear::number(number.div_euclid(by)),
                    None => Linear::variable(self.quotient(of, by)),
                };
                match op {
                    BinaryOp::Div => Some(quotient),
                    _ => left.sum.plus(&quotient, -by),
                }
            }
            _ => None,
        }
    }

    /// Whether a comparison of two integers holds, if their ranges tell.
    fn holds(&mut self, cond: Value) -> Option<bool> {
        let ValueDef::Inst(inst) = self.function.values[cond].def else {
            return None;
        };
        let InstData::Compare { op, args } = self.function.insts[inst].data else {
            return None;
        };
        let [left, right] = args.map(|arg| self.form(arg).filter(Form::is_exact));
        let ahead = right?.sum.plus(&left?.sum, -1)?;
        let (low, high) = self.range_of(&ahead)?;
        let (always, never) = match op {
            CompareOp::Lt => (low > 0, high <= 0),
            CompareOp::Le => (low >= 0, high < 0),
            CompareOp::Gt => (high < 0, low >= 0),
            CompareOp::Ge => (high <= 0, low > 0),
            CompareOp::Eq => (low == 0 && high == 0, low > 0 || high < 0),
            CompareOp::Ne => (low > 0 || high < 0, low == 0 && high == 0),
        };
        (always || never).then_some(always)
    }

    fn quotient(&mut self, of: Linear, by: i128) -> usize {
        let atom = Atom::Quotient { of, by };
        let known = self.atoms.iter().position(|other| *other == atom);
        known.unwrap_or_else(|| self.atom(atom))
    }

    /// A conversion between integers: to as many bits or fewer it keeps the number up to multiples of the new size.
    fn cast(&mut self, inst: Inst, arg: Value) -> Option<Linear> {
        let result = self.function.insts[inst].result?;
        let to = self.function.type_of(result).as_scalar()?;
        let form = self.form(arg)?;
        let keeps = form.is_exact() || to.bits() <= form.scalar.bits();
        keeps.then_some(form.sum)
    }
}

/// The atoms of a program in a system, for one execution of an instruction.
#[derive(Clone)]
pub(crate) struct Execution {
    variables: HashMap<usize, usize>,
    /// Whether the system has all that is known of it.
    pub(crate) is_exact: bool,
}

impl Execution {
    /// An execution of an instruction of which nothing has been said yet.
    pub(crate) fn new() -> Execution {
        Execution {
            variables: HashMap::new(),
            is_exact: true,
        }
    }

    /// The variable of an atom, with what holds of it.
    pub(crate) fn variable(
        &mut self,
        affine: &mut Affine<'_>,
        system: &mut System,
        atom: usize,
    ) -> Option<usize> {
        if let Some(&variable) = self.variables.get(&atom) {
            return Some(variable);
        }
        let variable = system.variable();
        self.variables.insert(atom, variable);
        let own = Linear::variable(variable);
        match affine.atoms[atom].clone() {
            Atom::Turn(inst) => {
                system.at_least.push(own.clone());
                match affine.turns(inst) {
                    Some(turns) if turns.step == 0 => system.at_least.push(Linear::number(-1)),
                    Some(turns) => {
                        // The index is before the end.
                        let index = self
                            .sum(affine, system, &turns.start)?
                            .plus(&own, turns.step)?;
                        let sign = turns.step.signum();
                        for end in &turns.ends {
                            let end = self.sum(affine, system, end)?;
                            let ahead = end.times(sign)?.plus(&index, -sign)?;
                            system.at_least.push(ahead.plus(&Linear::number(-1), 1)?);
                        }
                    }
                    None => self.is_exact = false,
                }
            }
            Atom::Quotient { of, by } => {
                let of = self.sum(affine, system, &of)?;
                let rest = of.plus(&own, -by)?;
                system.at_least.push(rest.clone());
                system
                    .at_least
                    .push(Linear::number(by - 1).plus(&rest, -1)?);
            }
            Atom::Unknown { range: (low, high) } => {
                self.is_exact = false;
                system.at_least.push(own.plus(&Linear::number(-low), 1)?);
                system.at_least.push(Linear::number(high).plus(&own, -1)?);
            }
        }
        Some(variable)
    }

    /// A sum of atoms as one of variables.
    pub(crate) fn sum(
        &mut self,
        affine: &mut Affine<'_>,
        system: &mut System,
        sum: &Linear,
    ) -> Option<Linear> {
        let mut written = Linear::number(sum.number);
        for (atom, &factor) in sum
            .factors
            .iter()
            .enumerate()
            .filter(|(_, factor)| **factor != 0)
        {
            let variable = self.variable(affine, system, atom)?;
            written = written.plus(&Linear::variable(variable), factor)?;
        }
        Some(written)
    }

    /// A value as a sum of variables that is the value itself: multiples of the size are a variable more.
    pub(crate) fn value(
        &mut self,
        affine: &mut Affine<'_>,
        system: &mut System,
        form: &Form,
    ) -> Option<Linear> {
        let sum = self.sum(affine, system, &form.sum)?;
        if form.is_exact() {
            return Some(sum);
        }
        let multiples = Linear::variable(system.variable());
        let value = sum.plus(&multiples, form.size())?;
        let (low, high) = limits(form.scalar);
        system.at_least.push(value.plus(&Linear::number(-low), 1)?);
        system.at_least.push(Linear::number(high).plus(&value, -1)?);
        Some(value)
    }
}

impl Execution {
    /// Adds what holds where an access is executed, by the `if`s around.
    pub(crate) fn conditions(
        &mut self,
        affine: &mut Affine<'_>,
        system: &mut System,
        (program, access): (&Program, &Access),
    ) -> Option<()> {
        for pair in access.way.windows(2) {
            let data = &program.function().insts[pair[0].inst].data;
            let Control::If {
                cond, then_region, ..
            } = data.control()
            else {
                continue;
            };
            if !program.singular.contains_key(&pair[0].inst) {
                let holds = pair[1].region == then_region;
                self.assume(affine, system, cond, holds)?;
            }
        }
        Some(())
    }

    /// Adds that a condition holds, or does not, as far as it is one of sums.
    pub(crate) fn assume(
        &mut self,
        affine: &mut Affine<'_>,
        system: &mut System,
        cond: Value,
        holds: bool,
    ) -> Option<()> {
        let ValueDef::Inst(inst) = affine.function.values[cond].def else {
            self.is_exact = false;
            return Some(());
        };
        match affine.function.insts[inst].data {
            InstData::Binary {
                op: BinaryOp::And,
                args: [a, b],
            } if holds => {
                self.assume(affine, system, a, true)?;
                self.assume(affine, system, b, true)
            }
            InstData::Unary {
                op: UnaryOp::Not,
                arg,
            } => self.assume(affine, system, arg, !holds),
            InstData::Compare { op, args } => self.compare(affine, system, op, args, holds),
            _ => {
                self.is_exact = false;
                Some(())
            }
        }
    }

    fn compare(
        &mut self,
        affine: &mut Affine<'_>,
        system: &mut System,
        op: CompareOp,
        args: [Value; 2],
        holds: bool,
    ) -> Option<()> {
        let [left, right] = args.map(|arg| affine.form(arg));
        let (Some(left), Some(right)) = (left, right) else {
            self.is_exact = false;
            return Some(());
        };
        let left = self.value(affine, system, &left)?;
        let right = self.value(affine, system, &right)?;
        // That `low` is so much below `high`.
        let below = |low: &Linear, high: &Linear, by: i128| {
            high.plus(low, -1)?.plus(&Linear::number(-by), 1)
        };
        match (op, holds) {
            (CompareOp::Eq, true) | (CompareOp::Ne, false) => {
                system.equal.push(left.plus(&right, -1)?)
            }
            (CompareOp::Lt, true) | (CompareOp::Ge, false) => {
                system.at_least.push(below(&left, &right, 1)?)
            }
            (CompareOp::Le, true) | (CompareOp::Gt, false) => {
                system.at_least.push(below(&left, &right, 0)?)
            }
            (CompareOp::Gt, true) | (CompareOp::Le, false) => {
                system.at_least.push(below(&right, &left, 1)?)
            }
            (CompareOp::Ge, true) | (CompareOp::Lt, false) => {
                system.at_least.push(below(&right, &left, 0)?)
            }
            // Two systems, of which none is chosen here.
            (CompareOp::Ne, true) | (CompareOp::Eq, false) => self.is_exact = false,
        }
        Some(())
    }
}

/// The parameter whose memory an address is of, and the indices from there on, where all steps to it are known.
pub(crate) fn path_of(function: &Function, address: Value) -> (Value, Option<Vec<Step>>) {
    let base = base_of(function, address);
    let mut steps = Vec::new();
    let mut at = address;
    while at != base {
        let ValueDef::Inst(inst) = function.values[at].def else {
            return (base, None);
        };
        at = match function.insts[inst].data {
            InstData::SliceIndex { slice, index, .. } => {
                steps.push(Step::Index {
                    index,
                    of: Some(slice),
                });
                slice
            }
            InstData::ElementPtr { ptr, index, .. } => {
                steps.push(Step::Index { index, of: None });
                ptr
            }
            InstData::FieldPtr { ptr, field } => {
                steps.push(Step::Field(field));
                ptr
            }
            InstData::SpaceCast { arg } => arg,
            _ => return (base, None),
        };
    }
    steps.reverse();
    (base, Some(steps))
}

/// A step on the way from a parameter to an address.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Step {
    /// To an element, of a slice if that is said.
    Index { index: Value, of: Option<Value> },
    /// To a field.
    Field(u32),
}
