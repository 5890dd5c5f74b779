//! Counted loops: `for` of the IR, and `while i < n { ..; i += step }`, also `while i + 4 <= n`.

use kiln_compiler::ir::{
    BinaryOp, CompareOp, Control, Function, Inst, InstData, Region, Scalar, UnaryOp, Unroll, Value,
    ValueDef, Var,
};

use super::before::{Before, Inside, Number, Truth, known_integer};
use super::carried::Carried;
use super::lanes::Bound;
use super::sum::LARGE;
use super::turns::Turns;

/// What counts the turns of a loop.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Counts {
    /// The index of a `for`, or what a variable is in a turn before it is assigned.
    Index(Value),
    /// Nothing: the value differs from thread to thread, between the same two ends in each turn.
    Lane(Value),
}

/// The first number of a counter.
#[derive(Copy, Clone, Debug)]
enum Start {
    Value(Value),
    /// What a variable is before the loop.
    Var(Var),
}

/// A loop whose turns are counted.
#[derive(Copy, Clone, Debug)]
pub(super) struct Counted {
    pub(super) counts: Counts,
    start: Start,
    /// Not reached, unless `reaches_end`.
    end: Value,
    /// What is added to the counter before it is compared with the end.
    ahead: i64,
    /// Whether a turn is made where what is compared is equal to the end, too.
    reaches_end: bool,
    step: Value,
    /// The instruction behind which the counter is below the end, if it is not from the start.
    pub(super) test: Option<Inst>,
    /// Whether no turn begins without the step of the one before.
    always_steps: bool,
    pub(super) scalar: Scalar,
}

/// A counter as it is seen from before a loop.
#[derive(Copy, Clone, Debug)]
pub(super) struct Counter {
    pub(super) counts: Counts,
    pub(super) first: Number,
    pub(super) last: Number,
    /// The number that the counter, which rises, stays below.
    pub(super) below: Option<Number>,
    /// Whether the last number of the counter is the one before `below`.
    pub(super) by_one: bool,
    pub(super) is_signed: bool,
    /// Whether the last number is the least.
    pub(super) falls: bool,
    /// What must hold for the ends to be such.
    pub(super) needs: Truth,
    /// What bounds it.
    pub(super) guard: Option<Bound>,
}

/// A loop of so many turns is unrolled anyway.
const SHORT: i64 = 32;

impl Counter {
    /// The largest number, or the least.
    pub(super) fn end(&self, is_largest: bool) -> Number {
        match is_largest != self.falls {
            true => self.last,
            false => self.first,
        }
    }

    /// Whether the loop is known to make few turns: then each of its checks of an array of known length stands
    /// alone in the end, and is made once or not at all.
    pub(super) fn is_short(&self) -> bool {
        match (self.first, self.last) {
            (Number::Known(first), Number::Known(last)) => (last - first).abs() < SHORT,
            _ => false,
        }
    }
}

/// Whether a loop is known to make few turns, or to be unrolled as its kernel asks for it.
pub(super) fn has_few_turns(function: &Function, the_loop: Inst) -> bool {
    let Control::For { bounds, .. } = function.insts[the_loop].data.control() else {
        return false;
    };
    let is_asked = matches!(
        function.insts[the_loop].data,
        InstData::For {
            unroll: Unroll::Full,
            ..
        }
    );
    match bounds.map(|bound| known_integer(function, bound)) {
        [Some(start), Some(end), Some(step)] if step != 0 => {
            is_asked || end.abs_diff(start) / step.unsigned_abs() < SHORT.unsigned_abs()
        }
        _ => false,
    }
}

impl Counted {
    /// What counts the turns of a loop, if something does.
    pub(super) fn of(function: &Function, turns: &Turns) -> Option<Counted> {
        match function.insts[turns.inst].data.control() {
            Control::For {
                index,
                bounds: [start, end, step],
                ..
            } => Some(Counted {
                counts: Counts::Index(index),
                start: Start::Value(start),
                end,
                ahead: 0,
                reaches_end: false,
                step,
                test: None,
                always_steps: true,
                scalar: function.type_of(index).as_scalar()?,
            }),
            Control::Loop { body } => while_below(function, body, &turns.inside),
            _ => None,
        }
    }

    /// Adds to `test` that a counter of 64 bits, as `-radius..=radius` of 32 bits has one, is between numbers of hardly more
    /// than 32; whether that may be. What is computed of known ones further apart would wrap around.
    fn stays_narrow(&self, before: &mut Before<'_>, ends: [Number; 2], test: &mut Truth) -> bool {
        let below_zero = match self.scalar.is_signed_int() {
            true => LARGE / 2,
            false => 0,
        };
        for end in ends {
            let above = before.add(end, Number::Known(below_zero));
            let narrow = before.is_below(above, Number::Known(LARGE + below_zero));
            *test = before.and(*test, narrow);
        }
        *test != Truth::Known(false)
    }

    /// The counter's first and last number, where each turn adds a known step or, of an unsigned counter, one
    /// that stays the same.
    ///
    /// Adds to `test` what must hold besides. Where a loop makes no turn, the numbers mean nothing.
    pub(super) fn seen(
        &self,
        (before, turns): (&mut Before<'_>, &Turns),
        test: &mut Truth,
    ) -> Option<Counter> {
        let start = match self.start {
            Start::Value(start) => before.moved(start)?,
            Start::Var(var) => turns.first(before, var)?,
        };
        let (end, step) = (before.moved(self.end)?, before.moved(self.step)?);
        let is_signed = self.scalar.is_signed_int();
        let (first, end) = (before.number(start), before.number(end));
        if self.scalar.bits() == 64 && !self.stays_narrow(before, [first, end], test) {
            return None;
        }
        let beyond = before.add(end, Number::Known(self.reaches_end.into()));
        let end = before.sub(beyond, Number::Known(self.ahead));
        let known = known_integer(before.function, step);
        let last = match known {
            Some(step @ 1..LARGE) => {
                let top = before.sub(end, Number::Known(1));
                let way = before.sub(top, first);
                match before.multiple(way, step) {
                    same if same == way => top,
                    turns => before.add(first, turns),
                }
            }
            Some(step) if (-LARGE..0).contains(&step) && self.test.is_none() => {
                let way = before.sub(first, end);
                let way = before.sub(way, Number::Known(1));
                let turns = before.multiple(way, -step);
                before.sub(first, turns)
            }
            None if !is_signed && self.scalar.bits() < 64 => before.sub(end, Number::Known(1)),
            _ => return None,
        };
        if self.test.is_some() {
            self.never_wraps(before, (first, beyond), step, test);
        }
        Some(Counter {
            counts: self.counts,
            first,
            last,
            below: known.is_none_or(|step| step > 0).then_some(end),
            by_one: known.is_none_or(|step| step == 1),
            is_signed,
            falls: known.is_some_and(|step| step < 0),
            needs: Truth::Known(true),
            guard: None,
        })
    }

    /// How many turns the loop makes behind the first one, of a counter with a known step.
    pub(super) fn turns(&self, before: &mut Before<'_>, counter: &Counter) -> Option<Number> {
        let step = known_integer(before.function, self.step);
        let step = step.filter(|step| *step != 0 && self.always_steps)?;
        let way = match counter.falls {
            true => before.sub(counter.first, counter.last),
            false => before.sub(counter.last, counter.first),
        };
        Some(before.divided(way, step.abs()))
    }

    /// A variable is assigned once more than what is compared is below `beyond`, and would begin anew if that wrapped
    /// around; so would what is compared, also of the first number.
    fn never_wraps(
        &self,
        before: &mut Before<'_>,
        (first, beyond): (Number, Number),
        step: Value,
        test: &mut Truth,
    ) {
        let largest = match self.scalar.bits() {
            64 => return,
            bits => (1i64 << (bits - u32::from(self.scalar.is_signed_int()))) - 1,
        };
        let step = before.number(step);
        let assigned = before.add(beyond, step);
        // What is compared last is at most `beyond - 1`.
        let fits = before.is_below(assigned, Number::Known(largest + 2));
        *test = before.and(*test, fits);
        if self.ahead > 0 {
            let compared = before.add(first, Number::Known(self.ahead));
            let fits = before.is_below(compared, Number::Known(largest + 1));
            *test = before.and(*test, fits);
        }
    }
}

/// `loop { if !(v < end) { break }; ..; v = v + step; .. }`, also with `v + 4` and `<=`.
fn while_below(function: &Function, body: Region, inside: &Inside) -> Option<Counted> {
    let (test, (compared, end, reaches_end)) = is_left_unless(function, body)?;
    let (counter, ahead) = without_constant(function, compared);
    let carried = Carried::of_read(function, (body, inside), counter)?;
    let step = carried.added()?;
    carried.is_behind(function, body, test).then_some(Counted {
        counts: carried.counts,
        start: Start::Var(carried.var),
        end,
        ahead,
        reaches_end,
        step,
        test: Some(test),
        always_steps: !carried.is_passed_over(function, body),
        scalar: carried.scalar,
    })
}

/// A comparison: `a`, `b`, and whether they may be equal.
pub(super) type Below = (Value, Value, bool);

/// The test of a loop that is left where it fails, before which nothing else branches, and what it says of a turn.
pub(super) fn is_left_unless(function: &Function, body: Region) -> Option<(Inst, Below)> {
    let mut insts = function.regions[body].insts.iter();
    let &test = insts.find(|&&inst| !function.insts[inst].data.regions().is_empty())?;
    let Control::If {
        cond,
        then_region,
        else_region: None,
    } = function.insts[test].data.control()
    else {
        return None;
    };
    let [out] = function.regions[then_region].insts[..] else {
        return None;
    };
    let leaves = matches!(
        function.insts[out].data.control(),
        Control::Leave {
            depth: 0,
            again: false
        }
    );
    let below = not_below(function, cond).filter(|_| leaves)?;
    Some((test, below))
}

/// What `!(a < b)` and `!(a <= b)` are the opposite of, however it is written; of an unsigned number also that it is not 0.
fn not_below(function: &Function, cond: Value) -> Option<Below> {
    let (is_not, compare) = match *defining(function, cond)? {
        InstData::Unary {
            op: UnaryOp::Not,
            arg,
        } => (true, defining(function, arg)?),
        ref other => (false, other),
    };
    let InstData::Compare { op, args: [a, b] } = *compare else {
        return None;
    };
    match (is_not, op) {
        (true, CompareOp::Lt) | (false, CompareOp::Ge) => Some((a, b, false)),
        (true, CompareOp::Gt) | (false, CompareOp::Le) => Some((b, a, false)),
        (true, CompareOp::Le) | (false, CompareOp::Gt) => Some((a, b, true)),
        (true, CompareOp::Ge) | (false, CompareOp::Lt) => Some((b, a, true)),
        (true, CompareOp::Ne) | (false, CompareOp::Eq) => {
            let is_signed = function.type_of(a).as_scalar()?.is_signed_int();
            let is_zero = known_integer(function, b) == Some(0);
            (is_zero && !is_signed).then_some((b, a, false))
        }
        (true, CompareOp::Eq) | (false, CompareOp::Ne) => None,
    }
}

/// `v` and the number of `v + 4`; of another value itself, and 0.
fn without_constant(function: &Function, value: Value) -> (Value, i64) {
    let Some(&InstData::Binary {
        op: BinaryOp::Add,
        args: [a, b],
    }) = defining(function, value)
    else {
        return (value, 0);
    };
    let known = |value| known_integer(function, value).filter(|known| (1..LARGE).contains(known));
    match (known(a), known(b)) {
        (_, Some(ahead)) => (a, ahead),
        (Some(ahead), None) => (b, ahead),
        (None, None) => (value, 0),
    }
}

/// The operation that defines a value.
pub(super) fn defining(function: &Function, value: Value) -> Option<&InstData> {
    match function.values[value].def {
        ValueDef::Inst(inst) => Some(&function.insts[inst].data),
        ValueDef::Param(_) | ValueDef::Index(_) => None,
    }
}
