//! What must hold before a loop for its indices to be in bounds.
//!
//! What is asked of a whole block is asked of both ends of a sum, by as few comparisons as there can be: nothing of
//! what numbers cannot be anyway (`spans.rs`); of a least index that it is not negative, as the largest one is below
//! the length; of several indices of one slice the largest, and of one index of several slices the least length.

use std::collections::{BTreeMap, HashSet};

use kiln_compiler::ir::{
    ArrayLen, BinaryOp, Check, Constant, Control, Function, Inst, InstData, Region, Type,
    TypeTable, Value,
};

use super::before::{Before, Number, Truth, known_integer};
use super::carried;
use super::clamped;
use super::comes::Comes;
use super::conditions::{Guard, guards, guards_behind};
use super::counter::{Counted, Counter, Counts, defining};
use super::lanes;
use super::spans::{self, Spread};
use super::sum::{Product, Sum, sum_of};
use super::turns::Turns;

/// The largest length that an index of 31 bits can be compared with.
const SIGNED_LIMIT: i64 = 1 << 31;

/// The largest length that an index of 32 bits without a sign can be compared with.
const UNSIGNED_LIMIT: i64 = 1 << 32;

/// What an index must be below.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Limit {
    Known(i64),
    /// The length of a slice.
    Of(Value),
}

impl Limit {
    /// The length of a slice, or of the array behind an address.
    pub(super) fn of(function: &Function, types: &TypeTable, base: Value) -> Limit {
        match known_length(function, types, base) {
            Some(length) => Limit::Known(length),
            None => Limit::Of(base),
        }
    }

    fn is_known(self) -> bool {
        matches!(self, Limit::Known(_))
    }
}

/// A checked access of a loop whose index is a sum.
struct Access {
    inst: Inst,
    sum: Sum,
    limits: Vec<Limit>,
    /// What must hold for the index to be the sum.
    needs: Truth,
    /// Whether each turn comes to it, unless it leaves the loop before, or what keeps one from it bounds the index; or
    /// other threads do in the turns in which one does not.
    always: bool,
}

/// A checked access of a loop.
#[derive(Clone)]
struct Seen {
    inst: Inst,
    check: Check,
    comes: Comes,
    /// What holds there.
    guards: Vec<Guard>,
}

/// Accesses whose sums differ in their number alone.
type Terms = Vec<(Product, i64)>;

/// The least and the largest number of sums.
type Span = (i64, i64);

/// Indices, and what each must be below.
type Ends = Vec<(Number, Limit)>;

/// What a loop does not check any more if the test before it holds.
pub(super) struct Proof {
    pub(super) test: Truth,
    /// The accesses that are in bounds then, and the sum that the index of each is.
    pub(super) proved: Vec<(Inst, Sum)>,
    pub(super) counters: Vec<Counter>,
}

/// What there is in a loop.
struct Looked {
    counters: Vec<Counter>,
    accesses: Vec<Seen>,
    /// What holds where it looks.
    guards: Vec<Guard>,
    test: Truth,
}

impl Proof {
    /// What can be proved of the accesses in a counted loop.
    pub(super) fn of(
        before: &mut Before<'_>,
        types: &TypeTable,
        the_loop: Inst,
        guards: &[Guard],
    ) -> Option<Proof> {
        let mut test = Truth::Known(true);
        let turns = Turns::of(before.function, the_loop);
        let (counters, from) = counters(before, &turns, &mut test)?;
        let mut looked = Looked {
            counters,
            accesses: Vec::new(),
            guards: guards.to_vec(),
            test,
        };
        let body = turns.body(before.function)?;
        looked.region(before, types, (body, Comes::Each, from));
        let Looked {
            mut counters,
            accesses,
            mut test,
            ..
        } = looked;
        let (mut sums, mut proved) = (Vec::new(), Vec::new());
        for seen in accesses {
            let Some(access) = access(before, types, &mut counters, seen) else {
                continue;
            };
            match alone(before, &counters, &access) {
                Some(Truth::Known(true)) if by_ends(before, &counters, &access.sum) => {
                    proved.push((access.inst, access.sum));
                }
                None | Some(Truth::Known(false)) => {}
                Some(_) => sums.push(access),
            }
        }
        ask_together(before, &counters, &mut sums, &mut test)?;
        proved.extend(sums.into_iter().map(|access| (access.inst, access.sum)));
        Some(Proof {
            test,
            proved,
            counters,
        })
    }

    /// What must hold for these checked accesses of a kernel to be in bounds for each thread of a block, and for those
    /// of `wished` of which it can be asked and that every thread makes, or all that its bounds let. `None` if it
    /// cannot be asked of one that is needed at the kernel's start.
    pub(super) fn of_all(
        before: &mut Before<'_>,
        types: &TypeTable,
        (needed, wished): (&HashSet<Inst>, &HashSet<Inst>),
    ) -> Option<Proof> {
        let mut looked = Looked {
            counters: Vec::new(),
            accesses: Vec::new(),
            guards: Vec::new(),
            test: Truth::Known(true),
        };
        let body = before.function.body;
        looked.region(before, types, (body, Comes::Each, None));
        let Looked {
            mut counters,
            accesses,
            mut test,
            ..
        } = looked;
        // What a loop does before its variable is known to be between its ends is not looked at.
        let seen: HashSet<Inst> = accesses.iter().map(|seen| seen.inst).collect();
        if !needed.is_subset(&seen) {
            return None;
        }
        let (mut asked, mut proved) = (BTreeMap::new(), Vec::new());
        let mut answered = HashSet::from([Truth::Known(true)]);
        for seen in accesses {
            let is_needed = needed.contains(&seen.inst);
            if !is_needed && !wished.contains(&seen.inst) {
                continue;
            }
            let answers = (!is_needed).then_some(&answered);
            let Some((access, holds)) = askable(before, types, &mut counters, (seen, answers))
            else {
                if is_needed {
                    return None;
                }
                continue;
            };
            answered.insert(holds);
            if let Truth::Value(_) = holds {
                test = before.and(test, access.needs);
                note(&mut asked, &access);
            }
            proved.push((access.inst, access.sum));
        }
        ask_each(before, &counters, asked, &mut test);
        Some(Proof {
            test,
            proved,
            counters,
        })
    }
}

/// The counter of a loop, the other variables of which it is known what turns make of them, and the instruction behind
/// which all this is so, if it is not from the start.
fn counters(
    before: &mut Before<'_>,
    turns: &Turns,
    test: &mut Truth,
) -> Option<(Vec<Counter>, Option<Inst>)> {
    let counted = Counted::of(before.function, turns);
    let mut own = *test;
    let seen =
        counted.and_then(|counted| Some((counted, counted.seen((before, turns), &mut own)?)));
    let (counter, from, counted) = match seen {
        Some((counted, counter)) => {
            *test = own;
            (counter, counted.test, Some(counted))
        }
        None => {
            let (counter, from) = carried::of_loop((before, turns), test)?;
            (counter, Some(from), None)
        }
    };
    let others = carried::beside((before, turns), counter.counts, |before| {
        counted.and_then(|counted| counted.turns(before, &counter))
    });
    let counters = [counter].into_iter().chain(others).collect();
    Some((counters, from))
}

/// An access of which it can be asked whether it is in bounds, and when it is. Of one that not every thread makes, it
/// is only where that is asked anyway, if there are such answers.
fn askable(
    before: &mut Before<'_>,
    types: &TypeTable,
    counters: &mut Vec<Counter>,
    (seen, answered): (Seen, Option<&HashSet<Truth>>),
) -> Option<(Access, Truth)> {
    let known = counters.len();
    let mut best = None;
    for looks_for_least in [false, true] {
        before.looks_for_least = looks_for_least;
        let own = counters.len();
        let found = access(before, types, counters, seen.clone()).and_then(|access| {
            let holds = alone(before, counters, &access)?;
            let is_asked = answered.is_none_or(|all| access.always || all.contains(&holds));
            (is_asked && holds != Truth::Known(false)).then_some((access, holds))
        });
        let Some((access, holds)) = found else {
            counters.truncate(own);
            continue;
        };
        // How little a value is at least is asked only where an index may be negative without that.
        let is_open = may_be_negative(before, counters, &access);
        best = Some((access, holds));
        if !is_open {
            break;
        }
    }
    before.looks_for_least = false;
    if best.is_none() {
        counters.truncate(known);
    }
    best
}

/// Notes what is asked of an access.
fn note(asked: &mut BTreeMap<(Terms, Limit), Span>, access: &Access) {
    for &limit in &access.limits {
        widen(
            asked.entry((terms(&access.sum), limit)),
            access.sum.constant,
        );
    }
}

/// Keeps the accesses that are asked for together, and adds to the test that they are in bounds. `None` if that is not
/// worth another version.
fn ask_together(
    before: &mut Before<'_>,
    counters: &[Counter],
    sums: &mut Vec<Access>,
    test: &mut Truth,
) -> Option<()> {
    let spans = spans(sums);
    let covered = |access: &Access| {
        let own = access.sum.constant;
        let span = spans.get(&terms(&access.sum));
        span.is_some_and(|(low, high)| (*low..=*high).contains(&own))
    };
    sums.retain(|access| covered(access));
    let mut asked: BTreeMap<(Terms, Limit), Span> = BTreeMap::new();
    for access in sums.iter() {
        *test = before.and(*test, access.needs);
        note(&mut asked, access);
    }
    let unrolls = before.block.is_none() && counters[0].is_short() && !asked.is_empty();
    if unrolls && asked.keys().all(|(_, limit)| limit.is_known()) {
        return None;
    }
    ask_each(before, counters, asked, test);
    Some(())
}

/// Adds to the test what was noted.
fn ask_each(
    before: &mut Before<'_>,
    counters: &[Counter],
    asked: BTreeMap<(Terms, Limit), Span>,
    test: &mut Truth,
) {
    let mut ends = Ends::new();
    for ((terms, limit), span) in asked {
        let sum = Sum {
            terms: terms.into_iter().collect(),
            constant: 0,
        };
        ask(before, counters, (&sum, span, limit), (&mut ends, test));
    }
    ask_below(before, ends, test);
}

/// Whether a sum is asked for by the ends of each thing in it: also where several loops count in it and it may be less in a
/// later turn, as the first turn of all is not its least then, nor the last one its most.
fn by_ends(before: &Before<'_>, counters: &[Counter], sum: &Sum) -> bool {
    let is_of_one = || {
        let mut counters = sum.counters();
        let first = counters.next();
        counters.all(|counter| Some(counter) == first)
    };
    let by_turns = || is_of_one() || sum.only_grows(before, counters);
    before.block.is_some() || sum.has_lanes(counters) || !by_turns()
}

/// Whether an access is in bounds, asked by itself, if that is by its ends; the others are asked together.
/// `None` if it cannot be asked.
fn alone(before: &mut Before<'_>, counters: &[Counter], access: &Access) -> Option<Truth> {
    let mut test = access.needs;
    if by_ends(before, counters, &access.sum) {
        let span = (access.sum.constant, access.sum.constant);
        let mut ends = Ends::new();
        for &limit in &access.limits {
            let into = (&mut ends, &mut test);
            ask_ends(before, counters, (&access.sum, span, limit), into)?;
        }
        ask_below(before, ends, &mut test);
    }
    Some(test)
}

/// Whether an index may be negative by what is known of the numbers that it is made of.
fn may_be_negative(before: &mut Before<'_>, counters: &[Counter], access: &Access) -> bool {
    let mut asked = Truth::Known(true);
    let least = access.sum.extreme(before, counters, false, &mut asked);
    least.is_none_or(|least| {
        let index = before.add(least.number, Number::Known(access.sum.constant));
        let spread = Spread::of(before, index);
        let span = spread.and_then(|spread| spread.span(before));
        span.is_none_or(|(least, _)| least < 0)
    })
}

fn widen(entry: std::collections::btree_map::Entry<'_, impl Ord, Span>, constant: i64) {
    let (low, high) = entry.or_insert((constant, constant));
    (*low, *high) = ((*low).min(constant), (*high).max(constant));
}

fn terms(sum: &Sum) -> Terms {
    sum.terms
        .iter()
        .map(|(product, factor)| (*product, *factor))
        .collect()
}

/// What each turn comes to: what only some turns do is no reason for a test that may fail for it alone.
fn spans(sums: &[Access]) -> BTreeMap<Terms, Span> {
    let mut spans = BTreeMap::new();
    for access in sums {
        if access.always {
            widen(spans.entry(terms(&access.sum)), access.sum.constant);
        }
    }
    spans
}

impl Looked {
    /// Looks at a region: who comes there, and from which instruction on.
    fn region(
        &mut self,
        before: &mut Before<'_>,
        types: &TypeTable,
        (region, comes, from): (Region, Comes, Option<Inst>),
    ) {
        let insts = before.function.regions[region].insts.clone();
        let (around, mut begun) = (self.guards.len(), from.is_none());
        for inst in insts {
            let data = before.function.insts[inst].data.clone();
            if from == Some(inst) {
                begun = true;
                continue;
            }
            let check = clamped::check(before.function, types, (inst, before.on_cpu));
            if let (Some(check), true) = (check, begun) {
                self.accesses.push(Seen {
                    inst,
                    check,
                    comes,
                    guards: self.guards.clone(),
                });
            }
            match data.control() {
                Control::For { body, .. } if begun => {
                    let entered = self.enter(before, (region, inst));
                    self.region(before, types, (body, comes.if_known(entered), None));
                }
                Control::Next if begun && before.block.is_some() => {
                    if let Some(assumed) = data.assumption() {
                        self.say(before, (assumed.cond, true));
                    }
                }
                Control::Loop { body } => {
                    let entered = begun.then(|| self.enter(before, (region, inst))).flatten();
                    // A loop of which it is not known what its turns do may make none.
                    let comes = comes.if_known(entered);
                    self.region(before, types, (body, comes, entered.flatten()));
                }
                Control::If {
                    cond,
                    then_region,
                    else_region,
                } => self.arms(
                    before,
                    types,
                    (cond, [Some(then_region), else_region]),
                    comes,
                ),
                Control::For { body, .. } => self.region(before, types, (body, Comes::Any, None)),
                Control::Next | Control::Leave { .. } | Control::Return { .. } => {}
            }
        }
        self.guards.truncate(around);
    }

    /// Looks at what is done where a condition holds and where it does not, and notes what is known behind both.
    fn arms(
        &mut self,
        before: &mut Before<'_>,
        types: &TypeTable,
        (cond, arms): (Value, [Option<Region>; 2]),
        comes: Comes,
    ) {
        let known = self.guards.len();
        for (region, holds) in arms.into_iter().zip([true, false]) {
            let Some(region) = region else {
                continue;
            };
            self.say(before, (cond, holds));
            let comes = comes.where_holds(before, (cond, holds));
            self.region(before, types, (region, comes, None));
            self.guards.truncate(known);
        }
        let homes = &mut before.homes;
        guards_behind(before.function, homes, (cond, arms), &mut self.guards);
    }

    /// Notes what a condition says.
    fn say(&mut self, before: &mut Before<'_>, decided: (Value, bool)) {
        guards(
            before.function,
            &mut before.homes,
            decided,
            &mut self.guards,
        );
    }

    /// Notes the counters of a loop within what is looked at, if their ends are known before, and gives the instruction
    /// behind which they are between them, if they are not from the start.
    fn enter(
        &mut self,
        before: &mut Before<'_>,
        (around, inst): (Region, Inst),
    ) -> Option<Option<Inst>> {
        let mut test = self.test;
        let turns = Turns::within(before.function, (around, inst));
        match counters(before, &turns, &mut test) {
            Some((counters, from)) => {
                self.counters.extend(counters);
                self.test = test;
                Some(from)
            }
            None => self.enter_between(before, inst).map(|()| None),
        }
    }

    /// Notes the counter of a loop whose ends depend on the turn of those around it, in a loop in which threads meet.
    fn enter_between(&mut self, before: &mut Before<'_>, inst: Inst) -> Option<()> {
        before.block?;
        let Control::For {
            index,
            bounds: [start, end, step],
            ..
        } = before.function.insts[inst].data.control()
        else {
            return None;
        };
        let scalar = before.function.type_of(index).as_scalar()?;
        let falls = known_integer(before.function, step).is_some_and(|step| step <= 0);
        if scalar.is_signed_int() || falls {
            return None;
        }
        before.begin(self.guards.clone(), false);
        let [first, _] = lanes::ends(before, &mut self.counters, start, 0)?;
        let [_, end] = lanes::ends(before, &mut self.counters, end, 0)?;
        let last = before.sub(end, Number::Known(1));
        self.counters.push(Counter {
            counts: Counts::Index(index),
            first,
            last,
            below: None,
            by_one: false,
            is_signed: false,
            falls: false,
            needs: before.needs,
            guard: None,
        });
        Some(())
    }
}

/// An access whose index is a sum and whose length is known before the loop.
fn access(
    before: &mut Before<'_>,
    types: &TypeTable,
    counters: &mut Vec<Counter>,
    seen: Seen,
) -> Option<Access> {
    let Seen {
        inst,
        check,
        comes,
        guards,
    } = seen;
    let limit = limit(before, types, check.base)?;
    before.begin(guards, limit.is_known());
    let sum = sum_of(before, counters, check.index)?;
    let mut limits = vec![limit];
    if let Limit::Of(slice) = limit
        && lanes::is_below_length(before, counters, &sum, slice)
    {
        limits.clear();
    }
    let index = before.function.type_of(check.index).as_scalar()?;
    if index.bits() == 32 {
        if index.is_signed_int() {
            limits.push(Limit::Known(SIGNED_LIMIT));
        } else if may_be_wide(before.function, types, check.base) {
            limits.push(Limit::Known(UNSIGNED_LIMIT));
        }
    }
    let of_its_own = sum.needs(before, counters);
    let is_bounded = |counter: usize| counters[counter].guard.is_some_and(|bound| bound.is_most);
    let is_bounded = match before.block {
        Some(_) => sum.counters().any(is_bounded),
        // Each thread asks for itself: one at an edge that some other `if` keeps it from would be slow for it.
        None => sum.has_lanes(counters) && sum.counters().all(is_bounded),
    };
    let is_bounded = is_bounded || lanes::is_of_thread(before, counters, &sum);
    Some(Access {
        inst,
        limits,
        needs: before.and(before.needs, of_its_own),
        always: is_bounded || comes.in_each(before, counters, (check.index, limit), &sum),
        sum,
    })
}

/// Whether there may be 2^32 elements or more, so that one of 32 bits that wraps around is in bounds, too.
fn may_be_wide(function: &Function, types: &TypeTable, base: Value) -> bool {
    match known_length(function, types, base) {
        Some(length) => length > UNSIGNED_LIMIT,
        None => {
            let slice = types.as_slice(function.type_of(base));
            slice.is_some_and(|(_, wide)| wide)
        }
    }
}

/// What an index must be below, as it is before the loop.
fn limit(before: &mut Before<'_>, types: &TypeTable, base: Value) -> Option<Limit> {
    match Limit::of(before.function, types, base) {
        Limit::Of(slice) => before.moved(slice).map(Limit::Of),
        known => Some(known),
    }
}

/// The length of an array, by the type of its address, or of a slice that was made with a known one, as of an array.
pub(super) fn known_length(function: &Function, types: &TypeTable, base: Value) -> Option<i64> {
    let Some((array, ..)) = types.as_pointer(function.type_of(base)) else {
        return match *defining(function, base)? {
            InstData::SpaceCast { arg } => known_length(function, types, arg),
            InstData::SliceNew { len, .. } => match function.constant(len)? {
                Constant::Int(known) => i64::try_from(known).ok().filter(|&known| known >= 0),
                _ => None,
            },
            _ => None,
        };
    };
    match types.as_indexed(array)? {
        (_, ArrayLen::Known(length)) => i64::try_from(length).ok(),
        (_, ArrayLen::Param(_)) => None,
    }
}

/// The length of a slice from before the loop.
pub(super) fn length(before: &mut Before<'_>, slice: Value) -> Number {
    let length = before.put(InstData::SliceLen { slice }, Type::U64);
    Number::Value(before.put(InstData::Cast { arg: length }, Type::I64))
}

/// Notes what must be below what for a sum with each number of a span to be in bounds for every thread of a block, in
/// every turn, and adds to the test what must hold besides.
fn ask_ends(
    before: &mut Before<'_>,
    counters: &[Counter],
    (sum, (low, high), limit): (&Sum, Span, Limit),
    (ends, test): (&mut Ends, &mut Truth),
) -> Option<()> {
    for (is_last, constant) in [(true, high), (false, low)] {
        if is_last || low < 0 || !sum.only_grows(before, counters) {
            let end = sum.extreme(before, counters, is_last, test)?;
            let mut index = before.add(end.number, Number::Known(constant));
            let spread = Spread::of(before, index);
            let span = spread.as_ref().and_then(|spread| spread.span(before));
            if let Some(shorter) = spread.and_then(|spread| spread.put(before)) {
                index = shorter;
            }
            if is_last {
                // Compared as unsigned numbers of 64 bits, it is what it would be if nothing wrapped around.
                if !span.is_some_and(spans::is_modulo_exact) {
                    end.exact(before, test);
                }
                ends.push((index, limit));
                continue;
            }
            // The last one is below the limit, so that what is left is that the first one is not negative.
            match span.filter(|&span| spans::is_exact(span)) {
                Some((0.., _)) => {}
                Some(_) => {
                    let holds = before.is_not_negative(index);
                    *test = before.and(*test, holds);
                }
                None => {
                    end.exact(before, test);
                    let limit = least(before, &[limit]);
                    let holds = before.is_below(index, limit);
                    *test = before.and(*test, holds);
                }
            }
        }
    }
    Some(())
}

/// Adds to the test that indices are below limits: of several limits of one index, that it is below the least, and of
/// several indices of one limit, the largest, where it is known which that is.
fn ask_below(before: &mut Before<'_>, ends: Ends, test: &mut Truth) {
    let mut asked: Vec<(Number, Vec<Limit>)> = Vec::new();
    for (at, &(index, limit)) in ends.iter().enumerate() {
        let others = ends.iter().enumerate();
        let mut others = others.filter(|&(other, &(_, of))| other != at && of == limit);
        let is_below = |before: &Before<'_>, (other, (more, _)): (usize, &(Number, Limit))| {
            match spans::is_at_most(before, index, *more) {
                // Of two that are the same one is asked.
                true => !spans::is_at_most(before, *more, index) || other < at,
                false => false,
            }
        };
        if others.any(|other| is_below(before, other)) {
            continue;
        }
        match asked.iter_mut().find(|(other, _)| *other == index) {
            Some((_, limits)) => limits.push(limit),
            None => asked.push((index, vec![limit])),
        }
    }
    for (index, limits) in asked {
        let least = least(before, &limits);
        let holds = before.is_below(index, least);
        *test = before.and(*test, holds);
    }
}

/// The least of limits, the lengths of slices among them compared in as many bits as they have.
fn least(before: &mut Before<'_>, limits: &[Limit]) -> Number {
    let mut narrow: Option<Value> = None;
    let mut least: Option<Number> = None;
    for &limit in limits {
        let number = match limit {
            Limit::Known(known) => Number::Known(known),
            Limit::Of(slice) if before.is_narrow(slice) => {
                let length = before.put(InstData::SliceLen { slice }, Type::U32);
                narrow = Some(match narrow {
                    Some(other) if other != length => {
                        let (op, args) = (BinaryOp::Min, [other, length]);
                        before.put(InstData::Binary { op, args }, Type::U32)
                    }
                    _ => length,
                });
                continue;
            }
            Limit::Of(slice) => length(before, slice),
        };
        least = Some(match least {
            Some(other) => before.one_of(BinaryOp::Min, [other, number]),
            None => number,
        });
    }
    let narrow = narrow.map(|arg| Number::Value(before.put(InstData::Cast { arg }, Type::I64)));
    match (least, narrow) {
        (Some(a), Some(b)) => before.one_of(BinaryOp::Min, [a, b]),
        (one, other) => one.or(other).expect("there is a limit"),
    }
}

/// Adds to the test that a sum with each number of a span is in bounds in every turn.
fn ask(
    before: &mut Before<'_>,
    counters: &[Counter],
    (sum, (low, high), limit): (&Sum, Span, Limit),
    (ends, test): (&mut Ends, &mut Truth),
) {
    if by_ends(before, counters, sum) {
        // That it can be asked was seen when each access was asked by itself.
        let _ = ask_ends(before, counters, (sum, (low, high), limit), (ends, test));
        return;
    }
    let limit = match limit {
        Limit::Known(known) => Number::Known(known),
        Limit::Of(slice) => length(before, slice),
    };
    if let Some(end) = counts_to(before, counters, (sum, high))
        && low >= 0
    {
        // What the kernel asks or assumes of a number of turns is asked so, and is then known.
        let end = before.add(end, Number::Known(high));
        let holds = before.is_at_most(end, limit);
        *test = before.and(*test, holds);
        return;
    }
    let mut require = |before: &mut Before<'_>, sum: Number, constant: i64| {
        let index = before.add(sum, Number::Known(constant));
        let holds = before.is_below(index, limit);
        *test = before.and(*test, holds);
    };
    let mut exact = Truth::Known(true);
    let mut products = Truth::Known(true);
    let at_last = |counter: usize, _| counters[counter].last;
    let last = sum.evaluate(before, at_last, &mut exact, &mut products);
    require(before, last, high);
    let grows = sum.only_grows(before, counters);
    if !(grows && low >= 0) {
        let at_first = |counter: usize, _| counters[counter].first;
        let first = sum.evaluate(before, at_first, &mut exact, &mut products);
        require(before, first, low);
        if !grows {
            require(before, first, high);
            require(before, last, low);
        }
    }
    let exact = before.and(exact, products);
    *test = before.and(*test, exact);
}

/// What a sum stays below that is a counter alone, but for its number, and never negative. Of a counter by more than
/// one that is only said where nothing is added: the last element of a piece may be the last there is, and the end
/// beyond it.
fn counts_to(
    before: &Before<'_>,
    counters: &[Counter],
    (sum, most): (&Sum, i64),
) -> Option<Number> {
    let (product, 1) = sum.terms.first_key_value()? else {
        return None;
    };
    let is_alone = sum.terms.len() == 1 && product.value.is_none();
    let counter = &counters[product.counter?];
    let end = counter.below?;
    let is_last = counter.by_one || most == 0 && matches!(end, Number::Value(_));
    (is_alone && is_last && sum.only_grows(before, counters)).then_some(end)
}
