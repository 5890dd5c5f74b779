//! What conditions say of values: of an `if` around an access, of one before it that does not come back, and of a `bool`
//! that was put together earlier.
//!
//! ```text
//! let here = row < rows && mask[row];          // here = row < rows; if here { here = mask[row] }
//! if !here { return; }
//! x[row]                                       // row < rows
//! ```
//!
//! A variable that is true was assigned on one of the ways to where it is read. If it cannot be true by the others, as
//! they assign `false` or what a condition on the way says is false, all that decides the one way holds.

use std::collections::{HashMap, HashSet};

use kiln_compiler::ir::{
    BinaryOp, CompareOp, Constant, Control, Function, Inst, InstData, Region, UnaryOp, Value,
    ValueDef, Var, VarUse,
};

use super::before::{MAX_STEPS, known_integer};
use super::counter::defining;
use super::sum::LARGE;

/// A value is one of so many at most.
const MAX_CHOICES: usize = 8;

/// How many variables deep a condition is looked into.
const MAX_VARIABLES: u32 = 8;

/// What an `if` says of a value where it holds: it is at most `bound`, or below it; or it is a multiple of `step`, and
/// `bound` is the value itself.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct Guard {
    pub(super) value: Value,
    pub(super) bound: Value,
    pub(super) reaches: bool,
    pub(super) step: i64,
}

impl Guard {
    /// The most that the value is above the bound.
    pub(super) fn slack(self) -> i64 {
        match self.reaches {
            true => 0,
            false => -1,
        }
    }
}

/// The regions in which instructions stand, once that was asked.
#[derive(Default)]
pub(super) struct Homes(HashMap<Inst, Region>);

impl Homes {
    /// The instructions before that which defines a value, in its region.
    pub(super) fn earlier(&mut self, function: &Function, value: Value) -> Option<Vec<Inst>> {
        let ValueDef::Inst(inst) = function.values[value].def else {
            return None;
        };
        if self.0.is_empty() {
            for (region, data) in function.regions.iter() {
                self.0.extend(data.insts.iter().map(|&inst| (inst, region)));
            }
        }
        let insts = &function.regions[*self.0.get(&inst)?].insts;
        let at = insts.iter().position(|&other| other == inst)?;
        Some(insts[at.saturating_sub(MAX_STEPS as usize)..at].to_vec())
    }
}

/// A condition, and whether it holds.
pub(super) type Decided = (Value, bool);

/// What a variable may have been assigned.
#[derive(Default)]
pub(super) struct Assigned {
    /// The values, each with what decides that it is this one.
    pub(super) values: Vec<(Value, Vec<Decided>)>,
    /// The branches and loops that were looked into.
    pub(super) entered: Vec<Region>,
    /// Whether one of these is a loop, of which the value may be that of any turn.
    pub(super) in_loop: bool,
}

impl Assigned {
    /// By instructions, the last ones first; `None` if that is not known.
    pub(super) fn by(function: &Function, insts: &[Inst], var: Var) -> Option<Assigned> {
        let mut found = Assigned::default();
        found.add(function, (insts, var), &[])?;
        Some(found)
    }

    fn add(
        &mut self,
        function: &Function,
        (insts, var): (&[Inst], Var),
        decided: &[Decided],
    ) -> Option<()> {
        let is_one = |&(_, inst): &(usize, &Inst)| assigns(function, *inst, var);
        let (at, &inst) = insts.iter().enumerate().rev().find(is_one)?;
        let data = &function.insts[inst].data;
        if let Some(VarUse::Set(_, value)) = data.var_use() {
            self.values.push((value, decided.to_vec()));
            return (self.values.len() <= MAX_CHOICES).then_some(());
        }
        let (cond, then_region, else_region) = match data.control() {
            Control::If {
                cond,
                then_region,
                else_region,
            } => (cond, then_region, else_region),
            Control::For { body, .. } | Control::Loop { body } => {
                self.add_loop(function, (body, var), decided)?;
                return self.add(function, (&insts[..at], var), decided);
            }
            _ => return None,
        };
        for (region, holds) in [(Some(then_region), true), (else_region, false)] {
            let decided = [decided, &[(cond, holds)]].concat();
            // What was before it, if this branch assigns nothing.
            let mut path = insts[..at].to_vec();
            path.extend(
                region
                    .iter()
                    .flat_map(|&region| &function.regions[region].insts),
            );
            self.entered.extend(region);
            self.add(function, (&path, var), &decided)?;
        }
        Some(())
    }

    /// What any turn of a loop assigns, however it comes to that.
    fn add_loop(
        &mut self,
        function: &Function,
        (body, var): (Region, Var),
        decided: &[Decided],
    ) -> Option<()> {
        function.walk(body, &mut |_, inst| {
            if let Some(VarUse::Set(set, value)) = function.insts[inst].data.var_use()
                && set == var
            {
                self.values.push((value, decided.to_vec()));
            }
        });
        self.entered.push(body);
        self.in_loop = true;
        (self.values.len() <= MAX_CHOICES).then_some(())
    }

    /// What decides that the variable is `wanted`, its value itself among it, if there is one way to that alone.
    fn only_way_to(&self, function: &Function, wanted: bool) -> Option<Vec<Decided>> {
        let is_possible = |(value, decided): &&(Value, Vec<Decided>)| {
            let (value, is) = without_not(function, (*value, wanted));
            match function.constant(value) {
                Some(Constant::Bool(known)) => known == is,
                _ => !decided
                    .iter()
                    .any(|&decided| without_not(function, decided) == (value, !is)),
            }
        };
        let mut possible = self.values.iter().filter(is_possible);
        let (value, decided) = possible.next()?;
        let is_only = possible.next().is_none();
        is_only.then(|| [&decided[..], &[(*value, wanted)]].concat())
    }
}

/// A condition behind all its `!`.
fn without_not(function: &Function, (mut value, mut holds): Decided) -> Decided {
    while let Some(&InstData::Unary {
        op: UnaryOp::Not,
        arg,
    }) = defining(function, value)
    {
        (value, holds) = (arg, !holds);
    }
    (value, holds)
}

/// Whether an instruction, or one in its regions, assigns a variable.
fn assigns(function: &Function, inst: Inst, var: Var) -> bool {
    let data = &function.insts[inst].data;
    let mut is_one = matches!(data.var_use(), Some(VarUse::Set(set, _)) if set == var);
    for region in data.regions() {
        function.walk(region, &mut |_, inner| {
            let data = &function.insts[inner].data;
            is_one |= matches!(data.var_use(), Some(VarUse::Set(set, _)) if set == var);
        });
    }
    is_one
}

/// What is known where a condition holds, or where it does not.
pub(super) fn guards(
    function: &Function,
    homes: &mut Homes,
    decided: Decided,
    into: &mut Vec<Guard>,
) {
    guards_within(function, homes, (decided, 0), into);
}

/// What decides a condition: what is put together in it, but for what is known.
pub(super) fn decisions(
    function: &Function,
    homes: &mut Homes,
    decided: Decided,
    into: &mut Vec<Decided>,
) {
    decisions_within(function, homes, (decided, 0), into);
}

fn decisions_within(
    function: &Function,
    homes: &mut Homes,
    (decided, variables): (Decided, u32),
    into: &mut Vec<Decided>,
) {
    let (cond, holds) = without_not(function, decided);
    if function.constant(cond).is_some() {
        return;
    }
    let way = match defining(function, cond) {
        Some(&InstData::Binary {
            op: BinaryOp::And | BinaryOp::Or,
            args,
        }) => Some(args.map(|arg| (arg, holds)).to_vec()),
        Some(&InstData::VarGet(var)) if variables < MAX_VARIABLES => {
            let earlier = homes.earlier(function, cond);
            let assigned = earlier.and_then(|earlier| Assigned::by(function, &earlier, var));
            assigned.and_then(|assigned| assigned.only_way_to(function, holds))
        }
        _ => None,
    };
    match way {
        Some(way) => way.into_iter().for_each(|decided| {
            decisions_within(function, homes, (decided, variables + 1), into);
        }),
        None => into.push((cond, holds)),
    }
}

/// What is known behind an `if`, as one of its branches never comes to its end.
pub(super) fn guards_behind(
    function: &Function,
    homes: &mut Homes,
    (cond, arms): (Value, [Option<Region>; 2]),
    into: &mut Vec<Guard>,
) {
    let leaves = arms.map(|arm| arm.is_some_and(|arm| never_ends(function, arm)));
    match leaves {
        [true, false] => guards(function, homes, (cond, false), into),
        [false, true] => guards(function, homes, (cond, true), into),
        _ => {}
    }
}

/// Whether a region ends with a jump out of it.
fn never_ends(function: &Function, region: Region) -> bool {
    let last = function.regions[region].insts.last();
    last.is_some_and(|&last| {
        let control = function.insts[last].data.control();
        matches!(control, Control::Leave { .. } | Control::Return { .. })
    })
}

fn guards_within(
    function: &Function,
    homes: &mut Homes,
    (decided, variables): (Decided, u32),
    into: &mut Vec<Guard>,
) {
    let (cond, holds) = without_not(function, decided);
    let all = if holds { BinaryOp::And } else { BinaryOp::Or };
    match defining(function, cond) {
        Some(InstData::Binary { op, args }) if *op == all => {
            for &arg in args {
                guards_within(function, homes, ((arg, holds), variables), into);
            }
        }
        Some(&InstData::Compare { op, args }) => into.extend(compared(function, (op, args), holds)),
        Some(&InstData::VarGet(var)) if variables < MAX_VARIABLES => {
            of_variable(function, homes, ((cond, var), holds, variables), into);
        }
        _ => {}
    }
}

/// What a variable says by what it was assigned, of values that are there where it is read.
fn of_variable(
    function: &Function,
    homes: &mut Homes,
    ((read, var), holds, variables): ((Value, Var), bool, u32),
    into: &mut Vec<Guard>,
) -> Option<()> {
    let earlier = homes.earlier(function, read)?;
    let assigned = Assigned::by(function, &earlier, var)?;
    let mut said = Vec::new();
    for decided in assigned.only_way_to(function, holds)? {
        guards_within(function, homes, (decided, variables + 1), &mut said);
    }
    let mut inner = HashSet::new();
    for region in assigned.entered {
        function.walk(region, &mut |_, inst| {
            inner.insert(inst);
        });
    }
    let is_there = |value: Value| match function.values[value].def {
        ValueDef::Inst(inst) | ValueDef::Index(inst) => !inner.contains(&inst),
        ValueDef::Param(_) => true,
    };
    said.retain(|guard| is_there(guard.value) && is_there(guard.bound));
    into.extend(said);
    Some(())
}

/// What a comparison of integers says.
fn compared(
    function: &Function,
    (op, [a, b]): (CompareOp, [Value; 2]),
    holds: bool,
) -> Option<Guard> {
    let scalar = function.type_of(a).as_scalar();
    let scalar = scalar.filter(|scalar| scalar.is_int())?;
    let (value, bound, reaches) = match (op, holds) {
        (CompareOp::Lt, true) | (CompareOp::Ge, false) => (a, b, false),
        (CompareOp::Le, true) | (CompareOp::Gt, false) => (a, b, true),
        (CompareOp::Gt, true) | (CompareOp::Le, false) => (b, a, false),
        (CompareOp::Ge, true) | (CompareOp::Lt, false) => (b, a, true),
        (CompareOp::Eq, true) | (CompareOp::Ne, false) => {
            return multiple(function, [a, b]).or_else(|| multiple(function, [b, a]));
        }
        (CompareOp::Ne, true) | (CompareOp::Eq, false) => {
            // An unsigned number that is not 0 is above it.
            if scalar.is_signed_int() || known_integer(function, b) != Some(0) {
                return None;
            }
            (b, a, false)
        }
    };
    Some(Guard {
        value: narrowest(function, value),
        bound: narrowest(function, bound),
        reaches,
        step: 1,
    })
}

/// What `value % step == 0` says.
fn multiple(function: &Function, [rest, zero]: [Value; 2]) -> Option<Guard> {
    let Some(&InstData::Binary {
        op: BinaryOp::Rem,
        args: [value, step],
    }) = defining(function, rest)
    else {
        return None;
    };
    let step = constant(function, step).filter(|step| (1..LARGE).contains(step));
    let is_zero = known_integer(function, zero) == Some(0);
    Some(Guard {
        value,
        bound: value,
        reaches: true,
        step: step.filter(|_| is_zero)?,
    })
}

/// The number that a product of constants is, of a type in which one that is used wraps around for none.
fn constant(function: &Function, value: Value) -> Option<i64> {
    let is_wide = function.type_of(value).as_scalar()?.bits() >= 32;
    match defining(function, value) {
        Some(InstData::Binary {
            op: BinaryOp::Mul,
            args: [a, b],
        }) if is_wide => known_integer(function, *a)?.checked_mul(known_integer(function, *b)?),
        _ => known_integer(function, value),
    }
}

/// What an unsigned number was before it was made wider.
pub(super) fn narrowest(function: &Function, value: Value) -> Value {
    if let Some(&InstData::Cast { arg }) = defining(function, value) {
        let [from, to] = [arg, value].map(|value| function.type_of(value).as_scalar());
        if let (Some(from), Some(to)) = (from, to)
            && from.is_int()
            && !from.is_signed_int()
            && from.bits() < to.bits()
        {
            return narrowest(function, arg);
        }
    }
    value
}
