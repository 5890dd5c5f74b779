//! What differs from thread to thread: its least and its largest number in a block.
//!
//! A loop in which threads meet has two versions only if all threads of a block take the same. What is asked before
//! it is then asked of the ends of what differs, which are the same in the whole block: `thread_idx.x` is from 0 to
//! `block_dim.x - 1`, `x % 8` from 0 to 7, and where an `if` around an access says `x < n`, `x` is below `n`.

use std::collections::HashSet;

use kiln_compiler::ir::{
    Axis, BinaryOp, Cell, CompareOp, Control, Family, FuncId, Function, InstData, IntrinsicDef,
    IntrinsicId, Known, Meaning, Module, Scalar, ThreadPosition, Type, TypePattern, Uniformity,
    Value, ValueDef,
};
use kiln_compiler::simt::Uniformities;

use super::before::{Before, MAX_DEPTH, Number, Truth, known_integer};
use super::chosen;
use super::conditions::{Guard, narrowest};
use super::counter::{Counter, Counts, defining};
use super::spans::{self, Spread};
use super::sum::{Found, LARGE, Product, Sum, find};

/// What is known of a kernel whose threads meet.
pub(super) struct Block {
    uniformities: Uniformities,
    /// The rows that give the threads of a block, by dimension, where threads are told apart by it.
    extents: [Option<IntrinsicId>; 3],
}

const fn extent(
    name: &'static str,
    (axis, below): (Axis, u64),
    meaning: fn(&ThreadPosition) -> u64,
    cells: &'static [Cell],
) -> IntrinsicDef {
    IntrinsicDef::new(
        name,
        &[],
        TypePattern::Exact(Scalar::U32),
        Meaning::Position(meaning),
    )
    .known_as(Known::BlockDim(axis))
    .with_uniformity(Uniformity::Block)
    .with_result_below(below)
    .with_cells(cells)
}

/// The threads of a block, as the library's rows have them, which are in a kernel only if it asks for them: a kernel
/// that is printed is read again by these.
static EXTENTS: [IntrinsicDef; 3] = [
    extent(
        "block_dim.x",
        (Axis::X, 1025),
        |position| position.block_dim[0].into(),
        &[Cell::named(Family::PTX, "llvm.nvvm.read.ptx.sreg.ntid.x")],
    ),
    extent(
        "block_dim.y",
        (Axis::Y, 1025),
        |position| position.block_dim[1].into(),
        &[Cell::named(Family::PTX, "llvm.nvvm.read.ptx.sreg.ntid.y")],
    ),
    extent(
        "block_dim.z",
        (Axis::Z, 65),
        |position| position.block_dim[2].into(),
        &[Cell::named(Family::PTX, "llvm.nvvm.read.ptx.sreg.ntid.z")],
    ),
];

/// All rows that the hook puts into kernels.
pub(super) fn rows() -> impl Iterator<Item = &'static IntrinsicDef> {
    EXTENTS.iter()
}

impl Block {
    /// Of a kernel.
    pub(super) fn of(module: &mut Module, kernel: FuncId) -> Block {
        let extents = [Axis::X, Axis::Y, Axis::Z].map(|axis| {
            let row = |known| {
                let mut rows = module.intrinsics.iter();
                let row = rows.find(|(_, row)| row.known == Some(known));
                row.map(|(id, _)| id)
            };
            row(Known::ThreadIdx(axis))?;
            let known = row(Known::BlockDim(axis));
            known.or_else(|| Some(module.intrinsic(&EXTENTS[axis.index()])))
        });
        Block {
            uniformities: Uniformities::of_any_block(module, &module.functions[kernel]),
            extents,
        }
    }

    /// What is the same in all threads of a block.
    pub(super) fn uniformities(&self) -> &Uniformities {
        &self.uniformities
    }
}

/// The counter that stands for a value which an `if` around the access bounds.
pub(super) fn guarded(
    before: &mut Before<'_>,
    counters: &mut Vec<Counter>,
    value: Value,
    depth: u32,
) -> Option<usize> {
    let bounds = |guard: &Guard| Some((*guard, ahead(before.function, guard, value)?));
    let mut guards: Vec<(Guard, i64)> = before.guards.iter().filter_map(bounds).collect();
    if guards.is_empty() {
        return None;
    }
    // Of what is behind the value it says more than of the value itself.
    guards.sort_by_key(|(_, ahead)| std::cmp::Reverse(*ahead));
    let least = least(before, value).filter(|(least, _)| *least >= 0)?.0;
    let risen = match (before.looks_for_least, least) {
        (true, 0) => risen(before, counters, value, depth),
        _ => None,
    };
    let (least, needs) = risen.unwrap_or((least, Truth::Known(true)));
    let mut best = None;
    for (guard, ahead) in guards {
        let known = bounded(counters, value, (guard, least));
        let of = (value, ahead, least);
        let bounded = known.or_else(|| below(before, counters, (guard, of), needs, depth));
        let Some(counter) = bounded else {
            continue;
        };
        // What is known needs no question.
        if let Number::Known(_) = counters[counter].last {
            return Some(counter);
        }
        best = best.or(Some(counter));
    }
    // How many threads there are says more of what fits into an array than how much there is to do, but not than what a
    // turn does.
    let is_of_turn = |at: &usize| {
        counters[*at]
            .guard
            .is_some_and(|bound| bound.below.is_some())
    };
    best.filter(|at| !before.is_of_array || is_of_turn(at))
}

/// How far ahead of a value that is which a guard bounds: `i < n` bounds `i`, and so does `i + 1 < n`.
fn ahead(function: &Function, guard: &Guard, value: Value) -> Option<i64> {
    if guard.step != 1 || guard.value == value {
        return (guard.step == 1).then_some(0);
    }
    let scalar = function.type_of(value).as_scalar()?;
    let Some(&InstData::Binary {
        op: BinaryOp::Add,
        args: [a, b],
    }) = defining(function, guard.value)
    else {
        return None;
    };
    let number = match (a == value, b == value) {
        (true, false) => known_integer(function, b)?,
        (false, true) => known_integer(function, a)?,
        _ => return None,
    };
    let is_narrow = !scalar.is_signed_int() && scalar.bits() <= 32;
    (is_narrow && (1..LARGE).contains(&number)).then_some(number)
}

/// The counter that stands for a value by a guard and the least that it is.
fn bounded(counters: &[Counter], value: Value, (guard, least): (Guard, i64)) -> Option<usize> {
    counters.iter().position(|counter| {
        counter.counts == Counts::Lane(value)
            && counter.first == Number::Known(least)
            && counter.guard.is_some_and(|bound| bound.guard == guard)
    })
}

/// The least that a value is where the guards hold, and which of them says so.
fn least(before: &Before<'_>, value: Value) -> Option<(i64, Option<Guard>)> {
    let scalar = before.function.type_of(value).as_scalar()?;
    let least = |guard: &Guard| {
        let known = known_integer(before.function, guard.value);
        let known = known.filter(|_| guard.bound == value)?;
        Some((known.checked_sub(guard.slack())?, Some(*guard)))
    };
    let said = before.guards.iter().filter_map(least);
    let of_type = (!scalar.is_signed_int()).then_some((0, None));
    // The last one of the largest: what a guard says that the type does not.
    of_type
        .into_iter()
        .chain(said)
        .max_by_key(|(least, _)| *least)
}

/// What is found where no guard holds, and what it needs: so it holds in all of a loop.
fn everywhere<T>(
    before: &mut Before<'_>,
    find: impl FnOnce(&mut Before<'_>) -> Option<T>,
) -> Option<(T, Truth)> {
    let outer = std::mem::replace(&mut before.needs, Truth::Known(true));
    let guards = std::mem::take(&mut before.guards);
    let found = find(before);
    before.guards = guards;
    let needs = std::mem::replace(&mut before.needs, outer);
    Some((found?, needs))
}

/// The least that a value is which is another one and a number, and what must hold for that not to wrap around.
fn risen(
    before: &mut Before<'_>,
    counters: &mut Vec<Counter>,
    value: Value,
    depth: u32,
) -> Option<(i64, Truth)> {
    let Some(&InstData::Binary {
        op: BinaryOp::Add,
        args: [low, more],
    }) = defining(before.function, value)
    else {
        return None;
    };
    let scalar = before.function.type_of(value).as_scalar()?;
    let more = known_integer(before.function, more).filter(|more| (1..LARGE).contains(more))?;
    if scalar.is_signed_int() || scalar.bits() != 32 || depth > MAX_DEPTH {
        return None;
    }
    let find = |before: &mut Before<'_>| ends(before, counters, low, depth + 1);
    let ([_, last], needs) = everywhere(before, find)?;
    let most = before.add(last, Number::Known(more));
    let fits = before.is_below(most, Number::Known(LARGE));
    Some((more, before.and(needs, fits)))
}

/// The counter that stands for a value by what one guard says, how far ahead of it that is said, and the least that it
/// is.
fn below(
    before: &mut Before<'_>,
    counters: &mut Vec<Counter>,
    (guard, (value, ahead, least)): (Guard, (Value, i64, i64)),
    of_least: Truth,
    depth: u32,
) -> Option<usize> {
    let found = everywhere(before, |before| bound(before, counters, guard.bound, depth));
    let ((last, counter), needs) = found?;
    let mut needs = before.and(needs, of_least);
    if ahead > 0 {
        // What is ahead must not have wrapped around, wherever the value is.
        let bits = before.function.type_of(value).as_scalar()?.bits();
        let found = everywhere(before, |before| ends(before, counters, value, depth));
        let ([_, most], so) = found?;
        let most = before.add(most, Number::Known(ahead));
        let fits = before.is_below(most, Number::Known(1 << bits));
        needs = before.and(needs, so);
        needs = before.and(needs, fits);
    }
    let slack = guard.slack() - ahead;
    let last = before.add(last, Number::Known(slack));
    let bound = Bound::most(guard, counter, slack);
    let of_itself = match (before.is_of_array, bound.below, last) {
        (true, Some(_), Number::Value(_)) => of_operation(before, counters, value, depth),
        _ => None,
    };
    let last = match of_itself {
        Some(counter) => {
            needs = before.and(needs, counter.needs);
            before.one_of(BinaryOp::Min, [last, counter.last])
        }
        None => last,
    };
    counters.push(Counter {
        guard: Some(bound),
        ..lane(value, (Number::Known(least), last), needs)
    });
    Some(counters.len() - 1)
}

/// The counter that stands for what another one does, from what a guard says that the value is at least.
pub(super) fn above(
    before: &Before<'_>,
    counters: &mut Vec<Counter>,
    (value, at): (Value, usize),
) -> usize {
    let Some((least, Some(guard))) = least(before, value) else {
        return at;
    };
    let is_bound = |guard: &Guard| {
        let is_known = known_integer(before.function, guard.value).is_some();
        guard.bound == value && guard.step == 1 && !is_known
    };
    // What is known to be below a counter is known of the counter itself.
    let bounds_another = before.guards.iter().any(is_bound);
    let is_above = matches!(counters[at].first, Number::Known(first) if first < least);
    if bounds_another || counters[at].falls || !is_above {
        return at;
    }
    let bound = Bound {
        guard,
        is_most: false,
        below: None,
    };
    let narrowed = Counter {
        first: Number::Known(least),
        guard: Some(bound),
        ..counters[at]
    };
    as_lane(counters, value, narrowed)
}

/// The counter that stands for what another one of a loop does, from what a guard says that the value is at most.
pub(super) fn at_most(
    before: &mut Before<'_>,
    counters: &mut Vec<Counter>,
    (value, at): (Value, usize),
    depth: u32,
) -> usize {
    let bounds = |guard: &&Guard| guard.value == value && guard.step == 1;
    let Some(guard) = before.guards.iter().find(bounds).copied() else {
        return at;
    };
    if counters[at].falls || depth > MAX_DEPTH {
        return at;
    }
    let found = everywhere(before, |before| {
        bound(before, counters, guard.bound, depth + 1)
    });
    let Some(((most, counter), needs)) = found else {
        return at;
    };
    let most = before.add(most, Number::Known(guard.slack()));
    let bound = Bound::most(guard, counter, guard.slack());
    let narrowed = Counter {
        last: before.one_of(BinaryOp::Min, [counters[at].last, most]),
        below: None,
        needs: before.and(counters[at].needs, needs),
        guard: Some(bound),
        ..counters[at]
    };
    as_lane(counters, value, narrowed)
}

/// The counter that stands for a value by what a guard says of another one that does.
fn as_lane(counters: &mut Vec<Counter>, value: Value, narrowed: Counter) -> usize {
    let narrowed = Counter {
        counts: Counts::Lane(value),
        ..narrowed
    };
    let same = |counter: &Counter| {
        let of = |counter: &Counter| (counter.counts, counter.first, counter.last, counter.guard);
        of(counter) == of(&narrowed)
    };
    counters.iter().position(same).unwrap_or_else(|| {
        counters.push(narrowed);
        counters.len() - 1
    })
}

/// The most that the bound of a guard is; and if it is made of one counter, how.
fn bound(
    before: &mut Before<'_>,
    counters: &mut Vec<Counter>,
    bound: Value,
    depth: u32,
) -> Option<(Number, Option<Below>)> {
    if let Some(bound) = before.moved(bound) {
        let number = before.number(bound);
        let scalar = before.function.type_of(bound).as_scalar()?;
        if scalar.bits() == 64 {
            before.needs = before.is_below(number, Number::Known(LARGE));
        }
        return Some((number, None));
    }
    if before.function.type_of(bound).as_scalar()?.is_signed_int() {
        return None;
    }
    let found = find(before, counters, bound, depth + 1)?;
    let [_, last] = ends_of(before, counters, (&found, 0))?;
    let mut terms = found.sum.terms.iter();
    let counter = match (terms.next(), terms.next()) {
        (Some((product, &times)), None) if product.value.is_none() => {
            product.counter.map(|counter| (counter, times))
        }
        _ => None,
    };
    let below = counter.map(|(counter, times)| Below {
        counter,
        times,
        most: found.sum.constant,
    });
    Some((last, below))
}

/// What bounds a value that differs from thread to thread.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct Bound {
    guard: Guard,
    /// Whether the guard says how large the value is at most, or at least.
    pub(super) is_most: bool,
    /// The most that the value is, if that is made of a counter.
    pub(super) below: Option<Below>,
}

impl Bound {
    /// A guard that says how large a value is at most, with what that is made of and how far above it the value is.
    fn most(guard: Guard, below: Option<Below>, slack: i64) -> Bound {
        let below = below.map(|below| Below {
            most: below.most + slack,
            ..below
        });
        Bound {
            guard,
            is_most: true,
            below,
        }
    }
}

/// A counter so many times, and a number.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct Below {
    pub(super) counter: usize,
    pub(super) times: i64,
    pub(super) most: i64,
}

fn lane(value: Value, (first, last): (Number, Number), needs: Truth) -> Counter {
    Counter {
        counts: Counts::Lane(value),
        first,
        last,
        below: None,
        by_one: false,
        is_signed: false,
        falls: false,
        needs,
        guard: None,
    }
}

/// The counter that stands for a value which differs from thread to thread or from turn to turn, if its ends are the
/// same for all.
pub(super) fn differing(
    before: &mut Before<'_>,
    counters: &mut Vec<Counter>,
    value: Value,
    depth: u32,
) -> Option<usize> {
    let known =
        |counter: &Counter| counter.counts == Counts::Lane(value) && counter.guard.is_none();
    let at = match counters.iter().position(known) {
        Some(known) => known,
        None => {
            let scalar = before.function.type_of(value).as_scalar()?;
            let of_operation = match scalar.is_signed_int() {
                true => None,
                false => of_operation(before, counters, value, depth),
            };
            let counter = match of_operation {
                Some(counter) => counter,
                None => {
                    let find =
                        |before: &mut Before<'_>| chosen::ends(before, counters, value, depth);
                    let ([first, last], needs) = everywhere(before, find)?;
                    Counter {
                        is_signed: scalar.is_signed_int(),
                        ..lane(value, (first, last), needs)
                    }
                }
            };
            counters.push(counter);
            counters.len() - 1
        }
    };
    let at = stepped(before, counters, (value, at));
    Some(above(before, counters, (value, at)))
}

/// The counter that stands for what another one does, of which a guard says that it is a multiple of a number.
fn stepped(
    before: &mut Before<'_>,
    counters: &mut Vec<Counter>,
    (value, at): (Value, usize),
) -> usize {
    let steps = before.guards.iter().filter(|guard| guard.value == value);
    let largest = steps.copied().max_by_key(|guard| guard.step);
    let Some(guard) = largest.filter(|guard| guard.step > 1) else {
        return at;
    };
    if counters[at].falls || counters[at].first != Number::Known(0) {
        return at;
    }
    let bound = Bound {
        guard,
        is_most: false,
        below: None,
    };
    let narrowed = Counter {
        last: before.multiple(counters[at].last, guard.step),
        below: None,
        guard: Some(bound),
        ..counters[at]
    };
    as_lane(counters, value, narrowed)
}

/// What an operation on unsigned numbers bounds, whatever they are.
fn of_operation(
    before: &mut Before<'_>,
    counters: &mut Vec<Counter>,
    value: Value,
    depth: u32,
) -> Option<Counter> {
    let counter = match *defining(before.function, value)? {
        InstData::Intrinsic { id, .. } => {
            let last = match before.intrinsics[id].known? {
                Known::ThreadIdx(axis) => {
                    let extent = before.extent(axis)?;
                    let extent = before.number(extent);
                    before.sub(extent, Number::Known(1))
                }
                Known::LaneId => Number::Known(31),
                _ => return None,
            };
            lane(value, (Number::Known(0), last), Truth::Known(true))
        }
        InstData::Binary {
            op: BinaryOp::Rem,
            args: [_, by],
        } if known_integer(before.function, by).is_none() => rest(before, (value, by))?,
        InstData::Binary { op, args: [a, b] } => {
            let number = known_integer(before.function, b);
            let number = number.filter(|number| (0..LARGE).contains(number))?;
            let up_to = |last| {
                lane(
                    value,
                    (Number::Known(0), Number::Known(last)),
                    Truth::Known(true),
                )
            };
            match op {
                BinaryOp::Rem if number > 0 => up_to(number - 1),
                BinaryOp::And => up_to(number),
                BinaryOp::Div if number > 0 => part(before, counters, (value, a, number), depth)?,
                BinaryOp::Shr if number < 32 => {
                    part(before, counters, (value, a, 1 << number), depth)?
                }
                _ => return None,
            }
        }
        _ => return None,
    };
    Some(counter)
}

/// What a division by a number that is the same for all leaves, where that is not 0.
fn rest(before: &mut Before<'_>, (value, by): (Value, Value)) -> Option<Counter> {
    if before.function.type_of(by).as_scalar()?.bits() >= 64 {
        return None;
    }
    let by = before.moved(by)?;
    let by = before.number(by);
    let last = before.sub(by, Number::Known(1));
    let is_above_zero = before.is_not_negative(last);
    Some(lane(value, (Number::Known(0), last), is_above_zero))
}

/// A value that is another one, divided by a number.
fn part(
    before: &mut Before<'_>,
    counters: &mut Vec<Counter>,
    (value, whole, number): (Value, Value, i64),
    depth: u32,
) -> Option<Counter> {
    let (ends, needs) = everywhere(before, |before| ends(before, counters, whole, depth))?;
    let ends = ends.map(|end| before.divided(end, number));
    Some(lane(value, ends.into(), needs))
}

/// The least and the largest number that a value is in a block, in any turn. Adds to what the access needs.
pub(super) fn ends(
    before: &mut Before<'_>,
    counters: &mut Vec<Counter>,
    value: Value,
    depth: u32,
) -> Option<[Number; 2]> {
    let scalar = before.function.type_of(value).as_scalar()?;
    let least = if scalar.is_signed_int() {
        -LARGE / 2
    } else {
        0
    };
    let found = find(before, counters, value, depth + 1)?;
    ends_of(before, counters, (&found, least))
}

/// The ends of a value by the sum that was found for it, and the least number of its type.
pub(super) fn ends_of(
    before: &mut Before<'_>,
    counters: &[Counter],
    (found, least): (&Found, i64),
) -> Option<[Number; 2]> {
    let mut needs = found.sum.needs(before, counters);
    let mut end = |is_last| {
        let end = found.sum.extreme(before, counters, is_last, &mut needs)?;
        let end = end.exact(before, &mut needs);
        Some(before.add(end, Number::Known(found.sum.constant)))
    };
    let ends = [end(false)?, end(true)?];
    if !found.is_exact {
        let is_inside = |before: &Before<'_>, (end, is_last): (Number, bool)| {
            let span = Spread::of(before, end)?.span(before)?;
            let (first, last) = span;
            let fits = match is_last {
                true => last < i128::from(least) + i128::from(LARGE),
                false => first >= i128::from(least),
            };
            Some(fits && spans::is_exact(span))
        };
        for (end, is_last) in ends.into_iter().zip([false, true]) {
            if is_inside(before, (end, is_last)) == Some(true) {
                continue;
            }
            let beyond_least = before.sub(end, Number::Known(least));
            let fits = before.is_below(beyond_least, Number::Known(LARGE));
            needs = before.and(needs, fits);
        }
    }
    before.needs = before.and(before.needs, needs);
    Some(ends)
}

/// Whether an index is below the length of what is accessed, as an `if` around the access or its loop says.
pub(super) fn is_below_length(
    before: &mut Before<'_>,
    counters: &[Counter],
    sum: &Sum,
    slice: Value,
) -> bool {
    let mut terms = sum.terms.iter();
    let (Some((product, 1)), None, 0) = (terms.next(), terms.next(), sum.constant) else {
        return false;
    };
    let counter = product.counter.map(|counter| counters[counter].counts);
    let bounds: Vec<Value> = match (counter, product.value) {
        (Some(Counts::Lane(value)), None) => {
            let below = |guard: &&Guard| guard.value == value && !guard.reaches;
            let guards = before.guards.iter().filter(below);
            guards.map(|guard| guard.bound).collect()
        }
        (Some(Counts::Index(index)), None) => {
            end_above(before.function, index).into_iter().collect()
        }
        _ => return false,
    };
    bounds.into_iter().any(|bound| {
        let bound = narrowest(before.function, bound);
        match defining(before.function, bound) {
            Some(&InstData::SliceLen { slice: own }) => before.moved(own) == Some(slice),
            _ => false,
        }
    })
}

/// The number that the index of a loop is always below, of one that can only rise.
fn end_above(function: &Function, index: Value) -> Option<Value> {
    let ValueDef::Index(inst) = function.values[index].def else {
        return None;
    };
    let scalar = function.type_of(index).as_scalar()?;
    match function.insts[inst].data.control() {
        Control::For {
            bounds: [_, end, _],
            ..
        } if !scalar.is_signed_int() => Some(end),
        _ => None,
    }
}

/// Whether an index is one of a thread, of which no guard says more; of an array also what follows from how many threads
/// there are, and in turns of a known number that of a slice, too.
pub(super) fn is_of_thread(before: &Before<'_>, counters: &[Counter], sum: &Sum) -> bool {
    let is_shaped = |product: &Product| {
        let counter = product.counter.map(|counter| &counters[counter]);
        let is_unguarded = |counter: &&Counter| {
            let (Counts::Lane(value) | Counts::Index(value)) = counter.counts;
            before.guards.iter().all(|guard| guard.value != value)
        };
        let counter = counter.filter(is_unguarded);
        let counter = counter.filter(|_| product.value.is_none());
        counter.is_some_and(|counter| {
            [counter.first, counter.last]
                .iter()
                .all(|&end| is_of_shape(before, end))
        })
    };
    let is_turn = |counter: usize| matches!(counters[counter].counts, Counts::Index(_));
    // What is taken off a slice's index may be what keeps threads at an edge out.
    let is_of_turns = sum.constant >= 0 && sum.counters().any(is_turn);
    if (before.is_of_array || is_of_turns) && sum.terms.keys().all(is_shaped) {
        return true;
    }
    let mut terms = sum.terms.iter();
    let (Some((product, 1)), None, 0) = (terms.next(), terms.next(), sum.constant) else {
        return false;
    };
    let Some(Counts::Lane(value)) = product.counter.map(|counter| counters[counter].counts) else {
        return false;
    };
    is_thread_index(before, value)
        && product.value.is_none()
        && before.guards.iter().all(|guard| guard.value != value)
}

/// Whether a condition holds for the first thread of each block along an axis.
pub(super) fn is_of_first(before: &Before<'_>, cond: Value) -> bool {
    let Some(&InstData::Compare {
        op: CompareOp::Eq,
        args: [index, first],
    }) = defining(before.function, cond)
    else {
        return false;
    };
    let is_zero = known_integer(before.function, first) == Some(0);
    before.block.is_some() && is_thread_index(before, index) && is_zero
}

/// Whether a value is the index of a thread in its block, along an axis.
fn is_thread_index(before: &Before<'_>, value: Value) -> bool {
    match defining(before.function, value) {
        Some(InstData::Intrinsic { id, .. }) => {
            matches!(before.intrinsics[*id].known, Some(Known::ThreadIdx(_)))
        }
        _ => false,
    }
}

/// Whether a number follows from how many threads a block has.
fn is_of_shape(before: &Before<'_>, number: Number) -> bool {
    let mut open = match number {
        Number::Known(_) => Vec::new(),
        Number::Value(value) => vec![value],
    };
    let mut seen = HashSet::new();
    while let Some(value) = open.pop() {
        if !seen.insert(value) {
            continue;
        }
        match defining(before.function, value) {
            Some(InstData::Const(_)) => {}
            Some(InstData::Intrinsic { id, .. })
                if matches!(before.intrinsics[*id].known, Some(Known::BlockDim(_))) => {}
            Some(InstData::Cast { arg }) => open.push(*arg),
            Some(InstData::Binary { args, .. }) => open.extend(args),
            _ => return false,
        }
    }
    true
}

impl Before<'_> {
    /// The threads of a block along an axis.
    fn extent(&mut self, axis: Axis) -> Option<Value> {
        let id = self.block?.extents[axis.index()]?;
        let data = InstData::Intrinsic {
            id,
            args: Default::default(),
        };
        Some(self.put(data, Type::U32))
    }
}
