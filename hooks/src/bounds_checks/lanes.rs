//! What differs from thread to thread: its least and its largest number in a block.
//!
//! A loop in which threads meet has two versions only if all threads of a block take the same. What is asked before
//! it is then asked of the ends of what differs, which are the same in the whole block: `thread_idx.x` is from 0 to
//! `block_dim.x - 1`, `x % 8` from 0 to 7, and where an `if` around an access says `x < n`, `x` is below `n`.

use kiln_compiler::ir::{
    Axis, BinaryOp, Cell, CompareOp, Family, FuncId, Function, InstData, IntrinsicDef, IntrinsicId,
    Known, Meaning, Module, Scalar, ThreadPosition, Type, TypePattern, Uniformity, Value,
};
use kiln_compiler::simt::Uniformities;

use super::before::{Before, Number, Truth, known_integer};
use super::counter::{Counter, Counts, defining};
use super::sum::{Found, LARGE, Sum, find};

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

/// What an `if` says of a value where it holds: it is at most `bound`, or below it.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct Guard {
    value: Value,
    bound: Value,
    reaches: bool,
}

impl Guard {
    /// The most that the value is above the bound.
    fn slack(self) -> i64 {
        match self.reaches {
            true => 0,
            false => -1,
        }
    }
}

/// What holds where a condition does.
pub(super) fn guards(function: &Function, cond: Value, into: &mut Vec<Guard>) {
    match defining(function, cond) {
        Some(InstData::Binary {
            op: BinaryOp::And,
            args,
        }) => {
            for &arg in args {
                guards(function, arg, into);
            }
        }
        Some(&InstData::Compare { op, args: [a, b] }) => {
            let (value, bound, reaches) = match op {
                CompareOp::Lt => (a, b, false),
                CompareOp::Le => (a, b, true),
                CompareOp::Gt => (b, a, false),
                CompareOp::Ge => (b, a, true),
                CompareOp::Eq | CompareOp::Ne => return,
            };
            let scalar = function.type_of(value).as_scalar();
            if scalar.is_some_and(|scalar| scalar.is_int()) {
                into.push(Guard {
                    value: narrowest(function, value),
                    bound,
                    reaches,
                });
            }
        }
        _ => {}
    }
}

/// What an unsigned number was before it was made wider.
fn narrowest(function: &Function, value: Value) -> Value {
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

/// The counter that stands for a value which an `if` around the access bounds.
pub(super) fn guarded(
    before: &mut Before<'_>,
    counters: &mut Vec<Counter>,
    value: Value,
    depth: u32,
) -> Option<usize> {
    let here = before.guards.iter().filter(|guard| guard.value == value);
    let guards: Vec<Guard> = here.copied().collect();
    if guards.is_empty() || !is_above_zero(before, value) {
        return None;
    }
    let mut best = None;
    for guard in guards {
        let known = |counter: &Counter| {
            counter.counts == Counts::Lane(value)
                && counter.guard.is_some_and(|bound| bound.guard == guard)
        };
        let known = counters.iter().position(known);
        let Some(counter) = known.or_else(|| below(before, counters, guard, depth)) else {
            continue;
        };
        // What is known needs no question.
        if let Number::Known(_) = counters[counter].last {
            return Some(counter);
        }
        best = best.or(Some(counter));
    }
    // How many threads there are says more of what fits into an array than how much there is to do.
    best.filter(|_| !before.is_of_array)
}

/// Whether a value cannot be negative where the guards hold.
fn is_above_zero(before: &Before<'_>, value: Value) -> bool {
    let scalar = before.function.type_of(value).as_scalar();
    let is_signed = scalar.is_none_or(|scalar| scalar.is_signed_int());
    let is_bounded = |guard: &Guard| {
        let least = known_integer(before.function, guard.value);
        guard.bound == value && least.is_some_and(|least| least >= guard.slack())
    };
    !is_signed || before.guards.iter().any(is_bounded)
}

/// The counter that stands for a value by what one guard says.
fn below(
    before: &mut Before<'_>,
    counters: &mut Vec<Counter>,
    guard: Guard,
    depth: u32,
) -> Option<usize> {
    let outer = std::mem::replace(&mut before.needs, Truth::Known(true));
    // What it stands for holds wherever the guard does.
    let guards = std::mem::take(&mut before.guards);
    let bound = bound(before, counters, guard.bound, depth);
    before.guards = guards;
    let needs = std::mem::replace(&mut before.needs, outer);
    let (last, counter) = bound?;
    let last = before.add(last, Number::Known(guard.slack()));
    let bound = Bound {
        guard,
        below: counter.map(|(counter, apart)| (counter, apart + guard.slack())),
    };
    counters.push(Counter {
        guard: Some(bound),
        ..lane(guard.value, (Number::Known(0), last), needs)
    });
    Some(counters.len() - 1)
}

/// The most that the bound of a guard is; and if it is a counter and a number, which.
fn bound(
    before: &mut Before<'_>,
    counters: &mut Vec<Counter>,
    bound: Value,
    depth: u32,
) -> Option<(Number, Option<(usize, i64)>)> {
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
    let [_, last] = ends_of(before, counters, &found)?;
    let mut terms = found.sum.terms.iter();
    let counter = match (terms.next(), terms.next()) {
        (Some((product, 1)), None) if product.value.is_none() => product.counter,
        _ => None,
    };
    Some((last, counter.map(|counter| (counter, found.sum.constant))))
}

/// What bounds a value that differs from thread to thread.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct Bound {
    guard: Guard,
    /// The counter that it is never more above than a number, if there is one.
    pub(super) below: Option<(usize, i64)>,
}

fn lane(value: Value, (first, last): (Number, Number), needs: Truth) -> Counter {
    Counter {
        counts: Counts::Lane(value),
        first,
        last,
        is_signed: false,
        falls: false,
        needs,
        guard: None,
    }
}

/// The counter that stands for a value which differs from thread to thread, if its ends are the same for all.
pub(super) fn differing(
    before: &mut Before<'_>,
    counters: &mut Vec<Counter>,
    value: Value,
    depth: u32,
) -> Option<usize> {
    let known =
        |counter: &Counter| counter.counts == Counts::Lane(value) && counter.guard.is_none();
    if let Some(known) = counters.iter().position(known) {
        return Some(known);
    }
    let scalar = before.function.type_of(value).as_scalar()?;
    if scalar.is_signed_int() {
        return None;
    }
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
                BinaryOp::And | BinaryOp::Min => up_to(number),
                BinaryOp::Div if number > 0 => part(before, counters, (value, a, number), depth)?,
                BinaryOp::Shr if number < 32 => {
                    part(before, counters, (value, a, 1 << number), depth)?
                }
                _ => return None,
            }
        }
        _ => return None,
    };
    counters.push(counter);
    Some(counters.len() - 1)
}

/// A value that is another one, divided by a number.
fn part(
    before: &mut Before<'_>,
    counters: &mut Vec<Counter>,
    (value, whole, number): (Value, Value, i64),
    depth: u32,
) -> Option<Counter> {
    let outer = std::mem::replace(&mut before.needs, Truth::Known(true));
    // What it stands for holds in all of the loop.
    let guards = std::mem::take(&mut before.guards);
    let ends = ends(before, counters, whole, depth);
    before.guards = guards;
    let needs = std::mem::replace(&mut before.needs, outer);
    let ends = ends?.map(|end| before.divided(end, number));
    Some(lane(value, ends.into(), needs))
}

/// The least and the largest number that a value is in a block, in any turn. Adds to what the access needs.
pub(super) fn ends(
    before: &mut Before<'_>,
    counters: &mut Vec<Counter>,
    value: Value,
    depth: u32,
) -> Option<[Number; 2]> {
    let found = find(before, counters, value, depth + 1)?;
    ends_of(before, counters, &found)
}

/// The ends of an unsigned value by the sum that was found for it.
pub(super) fn ends_of(
    before: &mut Before<'_>,
    counters: &[Counter],
    found: &Found,
) -> Option<[Number; 2]> {
    let mut needs = found.sum.needs(before, counters);
    let mut end = |is_last| {
        let end = found.sum.extreme(before, counters, is_last, &mut needs)?;
        Some(before.add(end, Number::Known(found.sum.constant)))
    };
    let ends = [end(false)?, end(true)?];
    if !found.is_exact {
        for end in ends {
            let fits = before.is_below(end, Number::Known(LARGE));
            needs = before.and(needs, fits);
        }
    }
    before.needs = before.and(before.needs, needs);
    Some(ends)
}

/// Whether an index is one of a thread, of which no guard says more.
pub(super) fn is_of_thread(before: &Before<'_>, counters: &[Counter], sum: &Sum) -> bool {
    let mut terms = sum.terms.iter();
    let (Some((product, 1)), None, 0) = (terms.next(), terms.next(), sum.constant) else {
        return false;
    };
    let Some(Counts::Lane(value)) = product.counter.map(|counter| counters[counter].counts) else {
        return false;
    };
    let is_index = match defining(before.function, value) {
        Some(InstData::Intrinsic { id, .. }) => {
            matches!(before.intrinsics[*id].known, Some(Known::ThreadIdx(_)))
        }
        _ => false,
    };
    is_index && product.value.is_none() && before.guards.iter().all(|guard| guard.value != value)
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
