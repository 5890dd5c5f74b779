//! What must hold before a loop for its indices to be in bounds.

use std::collections::BTreeMap;

use kiln_compiler::ir::{ArrayLen, Check, Control, Inst, InstData, Region, Type, TypeTable, Value};

use super::before::{Before, Number, Truth};
use super::counter::{Counted, Counter};
use super::sum::{Product, Sum, sum_of};

/// The largest length that an index of 31 bits can be compared with.
const SIGNED_LIMIT: i64 = 1 << 31;

/// What an index must be below.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Limit {
    Known(i64),
    /// The length of a slice from before the loop.
    Of(Value),
}

impl Limit {
    fn is_known(self) -> bool {
        matches!(self, Limit::Known(_))
    }
}

/// A checked access of a loop whose index is a sum.
struct Access {
    inst: Inst,
    sum: Sum,
    limits: Vec<Limit>,
    /// Whether each turn comes to it, unless it leaves the loop before.
    always: bool,
}

/// Accesses whose sums differ in their number alone.
type Terms = Vec<(Product, i64)>;

/// The least and the largest number of sums.
type Span = (i64, i64);

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
    /// Accesses with whether each turn comes to them.
    accesses: Vec<(Inst, Check, bool)>,
    test: Truth,
}

impl Proof {
    /// What can be proved of the accesses in a counted loop.
    pub(super) fn of(before: &mut Before<'_>, types: &TypeTable, the_loop: Inst) -> Option<Proof> {
        let mut test = Truth::Known(true);
        let counted = Counted::of(before.function, the_loop, before.inside)?;
        let counter = counted.seen(before, &mut test)?;
        let mut looked = Looked {
            counters: vec![counter],
            accesses: Vec::new(),
            test,
        };
        let [body] = before.function.insts[the_loop].data.regions()[..] else {
            return None;
        };
        looked.region(before, body, (true, counted.test));
        let Looked {
            counters,
            accesses,
            mut test,
        } = looked;
        let mut sums = Vec::new();
        for (inst, check, always) in accesses {
            sums.extend(access(before, types, &counters, (inst, check, always)));
        }
        let spans = spans(&sums, &counters, before);
        let covered = |access: &Access| {
            let own = access.sum.constant;
            let span = spans.get(&terms(&access.sum));
            span.is_some_and(|(low, high)| (*low..=*high).contains(&own))
        };
        sums.retain(|access| covered(access));
        let mut asked: BTreeMap<(Terms, Limit), Span> = BTreeMap::new();
        for access in &sums {
            for &limit in &access.limits {
                widen(
                    asked.entry((terms(&access.sum), limit)),
                    access.sum.constant,
                );
            }
        }
        if counters[0].is_short() && asked.keys().all(|(_, limit)| limit.is_known()) {
            return None;
        }
        for ((terms, limit), span) in asked {
            let sum = Sum {
                terms: terms.into_iter().collect(),
                constant: 0,
            };
            ask(before, &counters, (&sum, span, limit), &mut test);
        }
        Some(Proof {
            test,
            proved: sums
                .into_iter()
                .map(|access| (access.inst, access.sum))
                .collect(),
            counters,
        })
    }
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
fn spans(sums: &[Access], counters: &[Counter], before: &Before<'_>) -> BTreeMap<Terms, Span> {
    let mut spans = BTreeMap::new();
    for access in sums {
        let only_one = access.sum.counters().all(|counter| counter == 0);
        let can_be_asked = only_one || access.sum.only_grows(before, counters);
        if access.always && can_be_asked {
            widen(spans.entry(terms(&access.sum)), access.sum.constant);
        }
    }
    spans
}

impl Looked {
    /// Looks at a region: whether each turn comes there, and from which instruction on.
    fn region(
        &mut self,
        before: &mut Before<'_>,
        region: Region,
        (always, from): (bool, Option<Inst>),
    ) {
        let insts = before.function.regions[region].insts.clone();
        let mut begun = from.is_none();
        for inst in insts {
            let data = before.function.insts[inst].data.clone();
            if from == Some(inst) {
                begun = true;
                continue;
            }
            if let (Some(check), true) = (data.check(), begun) {
                self.accesses.push((inst, check, always));
            }
            match data.control() {
                Control::For { body, .. } if begun => {
                    let counted = self.enter(before, inst);
                    self.region(before, body, (always && counted, None));
                }
                // A loop that is not counted may make no turn.
                Control::Loop { body } => self.region(before, body, (false, None)),
                _ => {
                    for region in data.regions() {
                        self.region(before, region, (false, None));
                    }
                }
            }
        }
    }

    /// Notes the counter of a loop within the loop, if its ends are known before.
    fn enter(&mut self, before: &mut Before<'_>, inst: Inst) -> bool {
        let mut test = self.test;
        let counted = Counted::of(before.function, inst, before.inside);
        match counted.and_then(|counted| counted.seen(before, &mut test)) {
            Some(counter) => {
                self.counters.push(counter);
                self.test = test;
                true
            }
            None => false,
        }
    }
}

/// An access whose index is a sum and whose length is known before the loop.
fn access(
    before: &mut Before<'_>,
    types: &TypeTable,
    counters: &[Counter],
    (inst, check, always): (Inst, Check, bool),
) -> Option<Access> {
    let sum = sum_of(before, counters, check.index)?;
    let mut limits = vec![limit(before, types, check.base)?];
    let index = before.function.type_of(check.index).as_scalar()?;
    if index.is_signed_int() && index.bits() == 32 {
        limits.push(Limit::Known(SIGNED_LIMIT));
    }
    Some(Access {
        inst,
        sum,
        limits,
        always,
    })
}

/// The length of a slice, or of the array behind an address.
fn limit(before: &mut Before<'_>, types: &TypeTable, base: Value) -> Option<Limit> {
    let ty = before.function.type_of(base);
    if let Some(length) = known_length(types, ty) {
        return Some(Limit::Known(length));
    }
    before.moved(base).map(Limit::Of)
}

/// The length of an array, by the type of its address.
pub(super) fn known_length(types: &TypeTable, base: Type) -> Option<i64> {
    let (array, ..) = types.as_pointer(base)?;
    match types.as_array(array)? {
        (_, ArrayLen::Known(length)) => i64::try_from(length).ok(),
        (_, ArrayLen::Param(_)) => None,
    }
}

/// The length of a slice from before the loop.
pub(super) fn length(before: &mut Before<'_>, slice: Value) -> Number {
    let length = before.put(InstData::SliceLen { slice }, Type::U64);
    Number::Value(before.put(InstData::Cast { arg: length }, Type::I64))
}

/// Adds to the test that a sum with each number of a span is in bounds in every turn.
fn ask(
    before: &mut Before<'_>,
    counters: &[Counter],
    (sum, (low, high), limit): (&Sum, Span, Limit),
    test: &mut Truth,
) {
    let limit = match limit {
        Limit::Known(known) => Number::Known(known),
        Limit::Of(slice) => length(before, slice),
    };
    let mut require = |before: &mut Before<'_>, sum: Number, constant: i64| {
        let index = before.add(sum, Number::Known(constant));
        let holds = before.is_below(index, limit);
        *test = before.and(*test, holds);
    };
    let mut exact = Truth::Known(true);
    let last = sum.evaluate(before, |counter| counters[counter].last, &mut exact);
    require(before, last, high);
    let grows = sum.only_grows(before, counters);
    if !(grows && low >= 0) {
        let first = sum.evaluate(before, |counter| counters[counter].first, &mut exact);
        require(before, first, low);
        if !grows {
            require(before, first, high);
            require(before, last, low);
        }
    }
    *test = before.and(*test, exact);
}
