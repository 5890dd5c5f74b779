//! Values that are one of several: what the branches of an `if` set, what is selected, the smaller or larger of two.
//!
//! ```text
//! let west = if x > 0 { x - 1 } else { x };       // from 0 to the largest x
//! let near = (i + 1).min(n - 1);                  // from 0 to n - 1
//! ```
//!
//! Such a value is no sum, but it has ends: the least and the largest of those that it may be. What the condition
//! says of a value in its branch counts there.

use kiln_compiler::ir::{BinaryOp, InstData, Region, Value};

use super::before::{Before, Number};
use super::conditions::{Assigned, Decided, Guard, guards};
use super::counter::{Counter, defining};
use super::lanes;
use super::spans;

/// What a value may be, and what holds where it is that.
type Choices = Vec<(Value, Vec<Guard>)>;

/// The least and the largest number of a value that is one of several. Adds to what must hold.
pub(super) fn ends(
    before: &mut Before<'_>,
    counters: &mut Vec<Counter>,
    value: Value,
    depth: u32,
) -> Option<[Number; 2]> {
    let data = defining(before.function, value)?.clone();
    match data {
        InstData::Binary {
            op: op @ (BinaryOp::Min | BinaryOp::Max),
            args: [a, b],
        } => match between(before, (op, [a, b])) {
            Some(ends) => Some(ends),
            None => smaller_or_larger(before, counters, (op, [a, b]), depth),
        },
        InstData::Select {
            cond,
            if_true,
            if_false,
        } => {
            let choices = [(if_true, true), (if_false, false)];
            let choices = choices.map(|(value, holds)| (value, before.says(&[(cond, holds)])));
            all(before, counters, choices.into(), depth)
        }
        InstData::VarGet(var) => {
            let earlier = before.homes.earlier(before.function, value)?;
            let assigned = Assigned::by(before.function, &earlier, var)?;
            if assigned.in_loop {
                return None;
            }
            for region in assigned.entered {
                before.enter(region);
            }
            let choices = assigned.values.into_iter();
            let choices = choices.map(|(value, decided)| (value, before.says(&decided)));
            let choices = choices.collect();
            all(before, counters, choices, depth)
        }
        _ => None,
    }
}

/// The ends of what is kept between two numbers that are the same for all, `i.max(0).min(n - 1)`: these numbers, whatever
/// `i` is. They are of all there is, and need no question about what `i` is made of.
fn between(before: &mut Before<'_>, (op, args): (BinaryOp, [Value; 2])) -> Option<[Number; 2]> {
    let [a, b] = args;
    if before.function.type_of(a).as_scalar()?.bits() >= 64 {
        return None;
    }
    for (inner, outer) in [(a, b), (b, a)] {
        let Some(&InstData::Binary { op: of, args }) = defining(before.function, inner) else {
            continue;
        };
        let is_other = matches!(of, BinaryOp::Min | BinaryOp::Max) && of != op;
        let Some(outer) = before.moved(outer).filter(|_| is_other) else {
            continue;
        };
        if let Some(inner) = args.into_iter().find_map(|arg| before.moved(arg)) {
            let [outer, inner] = [outer, inner].map(|value| before.number(value));
            let both = before.one_of(op, [outer, inner]);
            return Some(match op {
                BinaryOp::Min => [both, outer],
                _ => [outer, both],
            });
        }
    }
    None
}

/// The ends of the smaller or the larger of two values. The smaller of two unsigned ones needs but one with ends.
fn smaller_or_larger(
    before: &mut Before<'_>,
    counters: &mut Vec<Counter>,
    (op, args): (BinaryOp, [Value; 2]),
    depth: u32,
) -> Option<[Number; 2]> {
    let mut found = Vec::new();
    for arg in args {
        let needs = before.needs;
        match lanes::ends(before, counters, arg, depth) {
            Some(ends) => found.push(ends),
            None => before.needs = needs,
        }
    }
    let is_signed = |value: Value| {
        let scalar = before.function.type_of(value).as_scalar();
        scalar.is_none_or(|scalar| scalar.is_signed_int())
    };
    match found[..] {
        [a, b] => Some([0, 1].map(|end| before.one_of(op, [a[end], b[end]]))),
        [[_, last]] if op == BinaryOp::Min && !is_signed(args[0]) => Some([Number::Known(0), last]),
        _ => None,
    }
}

/// The ends of all that a value may be.
fn all(
    before: &mut Before<'_>,
    counters: &mut Vec<Counter>,
    choices: Choices,
    depth: u32,
) -> Option<[Number; 2]> {
    let mut known: Option<[Number; 2]> = None;
    for (value, guards) in choices {
        let outer = std::mem::replace(&mut before.guards, guards);
        let ends = lanes::ends(before, counters, value, depth);
        before.guards = outer;
        let [first, last] = ends?;
        known = Some(match known {
            None => [first, last],
            Some([least, most]) => [
                before.one_of(BinaryOp::Min, [least, first]),
                before.one_of(BinaryOp::Max, [most, last]),
            ],
        });
    }
    known
}

impl Before<'_> {
    /// What conditions say.
    fn says(&mut self, decided: &[Decided]) -> Vec<Guard> {
        let mut said = Vec::new();
        for &decided in decided {
            guards(self.function, &mut self.homes, decided, &mut said);
        }
        said
    }

    /// Notes that the values of a branch are none of those that are there before the loop.
    fn enter(&mut self, region: Region) {
        let branches = &mut self.branches;
        self.function.walk(region, &mut |_, inst| {
            branches.insert(inst);
        });
    }

    /// The smaller or the larger of two numbers.
    pub(super) fn one_of(&mut self, op: BinaryOp, [a, b]: [Number; 2]) -> Number {
        match (a, b) {
            (Number::Known(a), Number::Known(b)) => Number::Known(match op {
                BinaryOp::Min => a.min(b),
                _ => a.max(b),
            }),
            _ if a == b => a,
            _ => {
                let least = (op == BinaryOp::Min).then(|| spans::least(self, [a, b]));
                let least = least.flatten();
                least.unwrap_or_else(|| self.binary(op, a, b))
            }
        }
    }
}
