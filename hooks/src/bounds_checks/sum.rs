//! Indices as sums: of counters, of what does not change in the loop, and of a number.
//!
//! The arithmetic of an index wraps around at its width. A sum is what the index would be if nothing wrapped: the
//! two differ by a multiple of 2^32 (2^64 for an index of 64 bits), so where the sum is in bounds, which takes no
//! more than 32 bits, the index is the sum.

use std::collections::BTreeMap;

use kiln_compiler::ir::{BinaryOp, InstCopy, InstData, Type, UnaryOp, Value};

use super::before::{Before, MAX_DEPTH, Number, Truth, known_integer};
use super::code::Code;
use super::counter::{Counter, Counts, defining};
use super::lanes;

/// Values of 64 bits are looked at below this bound, and so are products: sums of a few then have no more than 63.
pub(super) const LARGE: i64 = 1 << 32;

/// No number of a sum is larger.
const MAX_FACTOR: i64 = 1 << 20;

/// No sum has more terms.
const MAX_TERMS: usize = 6;

/// What is multiplied in a term: a counter by number, a value from before the loop.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) struct Product {
    pub(super) counter: Option<usize>,
    pub(super) value: Option<Value>,
}

/// A sum of products, each so many times, and a number.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(super) struct Sum {
    pub(super) terms: BTreeMap<Product, i64>,
    pub(super) constant: i64,
}

/// The least or the largest that a sum can be.
pub(super) struct Extreme {
    pub(super) number: Number,
    /// What must hold for no product in it to have wrapped around.
    pub(super) products: Truth,
}

impl Extreme {
    /// The number, where `test` holds, to which is added what that takes.
    pub(super) fn exact(self, before: &mut Before<'_>, test: &mut Truth) -> Number {
        *test = before.and(*test, self.products);
        self.number
    }
}

/// A sum, and whether the value is it whatever the sum is.
pub(super) struct Found {
    pub(super) sum: Sum,
    pub(super) is_exact: bool,
}

impl Sum {
    fn constant(constant: i64) -> Sum {
        Sum {
            constant,
            ..Sum::default()
        }
    }

    fn of(product: Product) -> Sum {
        Sum {
            terms: BTreeMap::from([(product, 1)]),
            constant: 0,
        }
    }

    fn plus(mut self, other: &Sum, times: i64) -> Option<Sum> {
        for (product, factor) in &other.terms {
            let sum = self.terms.entry(*product).or_default();
            *sum = sum.checked_add(factor.checked_mul(times)?)?;
        }
        self.terms.retain(|_, factor| *factor != 0);
        self.constant = self
            .constant
            .checked_add(other.constant.checked_mul(times)?)?;
        self.is_small().then_some(self)
    }

    fn is_small(&self) -> bool {
        let is_small = |factor: &i64| factor.unsigned_abs() <= MAX_FACTOR as u64;
        self.terms.len() <= MAX_TERMS
            && self.terms.values().all(is_small)
            && self.constant.unsigned_abs() <= LARGE as u64
    }

    /// Whether all that is in it grows with each counter, and nothing can be negative but the number.
    pub(super) fn only_grows(&self, before: &Before<'_>, counters: &[Counter]) -> bool {
        self.terms.iter().all(|(product, &factor)| {
            let value = product.value.map(|value| before.function.type_of(value));
            let is_signed = |ty: Type| ty.as_scalar().is_none_or(|scalar| scalar.is_signed_int());
            let counter = product.counter.is_some_and(|n| counters[n].is_signed);
            factor > 0 && !counter && !value.is_some_and(is_signed)
        })
    }

    /// The least or the largest that the sum can be without its number. Adds to `test` what must hold for that to be
    /// so: what a counter is multiplied with is not negative.
    pub(super) fn extreme(
        &self,
        before: &mut Before<'_>,
        counters: &[Counter],
        is_last: bool,
        test: &mut Truth,
    ) -> Option<Extreme> {
        let counted = |product: &&Product| product.counter.is_some();
        for value in self
            .terms
            .keys()
            .filter(counted)
            .filter_map(|product| product.value)
        {
            let scalar = before.function.type_of(value).as_scalar()?;
            if scalar.is_signed_int() {
                let number = before.number(value);
                let is_positive = before.is_below(number, Number::Known(LARGE));
                *test = before.and(*test, is_positive);
            }
        }
        let end = |counter: usize, factor: i64| counters[counter].end((factor > 0) == is_last);
        let (rest, apart) = self.without_pairs(before, counters, is_last);
        let mut products = Truth::Known(true);
        let rest = rest.evaluate(before, end, test, &mut products);
        let number = before.add(rest, apart);
        Some(Extreme { number, products })
    }

    /// The sum without counters that bound each other and are subtracted from each other, and what these are at most
    /// or at least.
    fn without_pairs(
        &self,
        before: &mut Before<'_>,
        counters: &[Counter],
        is_last: bool,
    ) -> (Sum, Number) {
        let (mut rest, mut apart) = (self.clone(), Number::Known(0));
        let of = |counter| Product {
            counter: Some(counter),
            value: None,
        };
        for lane in self.counters() {
            let below = counters[lane].guard.and_then(|bound| bound.below);
            let Some(below) = below else {
                continue;
            };
            let (Some(&factor), Some(&other)) = (
                rest.terms.get(&of(lane)),
                rest.terms.get(&of(below.counter)),
            ) else {
                continue;
            };
            // The other end is that of each by itself.
            if (factor > 0) != is_last || factor.checked_mul(below.times) != Some(-other) {
                continue;
            }
            rest.terms.remove(&of(lane));
            rest.terms.remove(&of(below.counter));
            let end = before.mul(Number::Known(below.most), Number::Known(factor));
            apart = before.add(apart, end);
        }
        (rest, apart)
    }

    /// Whether counters are in it, all of known ends, and nothing else.
    pub(super) fn is_counted_out(&self, counters: &[Counter]) -> bool {
        let is_known = |counter: usize| {
            let ends = (counters[counter].first, counters[counter].last);
            matches!(ends, (Number::Known(_), Number::Known(_)))
        };
        let mut products = self.terms.keys();
        !self.terms.is_empty()
            && products
                .all(|product| product.value.is_none() && product.counter.is_some_and(is_known))
            && !self.has_lanes(counters)
    }

    /// Whether something is in it that no turn counts.
    pub(super) fn has_lanes(&self, counters: &[Counter]) -> bool {
        let is_lane = |counter: usize| matches!(counters[counter].counts, Counts::Lane(_));
        self.counters().any(is_lane)
    }

    /// What must hold for the ends of its counters to be such.
    pub(super) fn needs(&self, before: &mut Before<'_>, counters: &[Counter]) -> Truth {
        self.counters().fold(Truth::Known(true), |needs, counter| {
            before.and(needs, counters[counter].needs)
        })
    }

    /// The counters in it.
    pub(super) fn counters(&self) -> impl Iterator<Item = usize> {
        self.terms.keys().filter_map(|product| product.counter)
    }

    /// The sum without its number, with counters as `at` says. Adds to `test` what must hold for that to be so, and to
    /// `products` what must hold for no product of it to wrap around.
    pub(super) fn evaluate(
        &self,
        before: &mut Before<'_>,
        at: impl Fn(usize, i64) -> Number,
        test: &mut Truth,
        products: &mut Truth,
    ) -> Number {
        let mut sum = Number::Known(0);
        for (product, &factor) in &self.terms {
            let value = product.value.map(|value| factor_of(before, value, test));
            let counter = product.counter.map(|counter| at(counter, factor));
            let number = match (counter, value) {
                (Some(counter), Some(value)) => {
                    let number = before.mul(counter, value);
                    // The factors have 32 bits, so that the product has 64 at most.
                    let middle = before.add(number, Number::Known(LARGE));
                    let is_small = before.is_below(middle, Number::Known(2 * LARGE));
                    *products = before.and(*products, is_small);
                    number
                }
                (Some(number), None) | (None, Some(number)) => number,
                (None, None) => Number::Known(1),
            };
            let number = before.mul(number, Number::Known(factor));
            sum = before.add(sum, number);
        }
        sum
    }
}

/// A value as a number; one of 64 bits must be small.
fn factor_of(before: &mut Before<'_>, value: Value, test: &mut Truth) -> Number {
    let number = before.number(value);
    let scalar = before.function.type_of(value).as_scalar();
    if let Some(scalar) = scalar.filter(|scalar| scalar.bits() == 64) {
        let below_zero = if scalar.is_signed_int() { LARGE / 2 } else { 0 };
        let middle = before.add(number, Number::Known(below_zero));
        let is_small = before.is_below(middle, Number::Known(LARGE));
        *test = before.and(*test, is_small);
    }
    number
}

/// The sum that an index is, if it is one.
pub(super) fn sum_of(
    before: &mut Before<'_>,
    counters: &mut Vec<Counter>,
    index: Value,
) -> Option<Sum> {
    let bits = before.function.type_of(index).as_scalar()?.bits();
    let found = find(before, counters, index, 0)?;
    (found.is_exact || bits >= 32).then_some(found.sum)
}

pub(super) fn find(
    before: &mut Before<'_>,
    counters: &mut Vec<Counter>,
    value: Value,
    depth: u32,
) -> Option<Found> {
    let scalar = before.function.type_of(value).as_scalar()?;
    if !scalar.is_int() || depth > MAX_DEPTH || before.steps == 0 {
        return None;
    }
    before.steps -= 1;
    if let Some(number) = number_of_counter(counters, value) {
        let number = lanes::above(before, counters, (value, number));
        let number = lanes::at_most(before, counters, (value, number), depth);
        let product = Product {
            counter: Some(number),
            value: None,
        };
        return Some(Found {
            sum: Sum::of(product),
            is_exact: true,
        });
    }
    if let Some(known) = known_integer(before.function, value) {
        let sum = Sum::constant(known);
        return sum.is_small().then_some(Found {
            sum,
            is_exact: true,
        });
    }
    let leaf = |counter, value| Found {
        sum: Sum::of(Product { counter, value }),
        is_exact: true,
    };
    if let Some(counter) = lanes::guarded(before, counters, value, depth) {
        return Some(leaf(Some(counter), None));
    }
    let is_inside = before.defines(value);
    let needs = before.needs;
    let built = (is_inside || before.differs(value))
        .then(|| built(before, counters, value, depth))
        .flatten();
    if built.is_some() {
        return built;
    }
    before.needs = needs;
    match before.moved(value) {
        Some(moved) => Some(leaf(None, Some(moved))),
        None => {
            let counter = lanes::differing(before, counters, value, depth)?;
            Some(leaf(Some(counter), None))
        }
    }
}

fn number_of_counter(counters: &[Counter], value: Value) -> Option<usize> {
    counters.iter().position(|counter| match counter.counts {
        Counts::Index(index) => index == value,
        Counts::Lane(_) => false,
    })
}

/// The sum that an operation of the loop gives.
fn built(
    before: &mut Before<'_>,
    counters: &mut Vec<Counter>,
    value: Value,
    depth: u32,
) -> Option<Found> {
    let bits = |before: &Before<'_>, value| {
        before
            .function
            .type_of(value)
            .as_scalar()
            .map(|scalar| scalar.bits())
    };
    let data = defining(before.function, value)?.clone();
    let width = bits(before, value)?;
    if let InstData::Cast { arg } = data {
        return cast(before, counters, (arg, value), depth);
    }
    if width < 32 {
        return None;
    }
    let mut of = |value| find(before, counters, value, depth + 1);
    let sum = match data {
        InstData::Binary {
            op: BinaryOp::Add,
            args: [a, b],
        } => of(a)?.sum.plus(&of(b)?.sum, 1)?,
        InstData::Binary {
            op: BinaryOp::Sub,
            args: [a, b],
        } => of(a)?.sum.plus(&of(b)?.sum, -1)?,
        InstData::Unary {
            op: UnaryOp::Neg,
            arg,
        } => Sum::default().plus(&of(arg)?.sum, -1)?,
        InstData::Binary {
            op: BinaryOp::Shl,
            args: [a, amount],
        } => {
            let amount = known_integer(before.function, amount).filter(|n| (0..20).contains(n))?;
            let a = find(before, counters, a, depth + 1)?;
            Sum::default().plus(&a.sum, 1 << amount)?
        }
        InstData::Binary {
            op: BinaryOp::Mul,
            args,
        } => product(before, counters, args, depth)?,
        _ => return None,
    };
    Some(Found {
        sum,
        is_exact: false,
    })
}

/// A number of another width or sign.
fn cast(
    before: &mut Before<'_>,
    counters: &mut Vec<Counter>,
    (arg, value): (Value, Value),
    depth: u32,
) -> Option<Found> {
    let [from, to] = [arg, value].map(|value| before.function.type_of(value).as_scalar());
    let (from, to) = (from.filter(|from| from.is_int())?, to?);
    let found = find(before, counters, arg, depth + 1)?;
    let keeps_all = to.bits() > from.bits() && (to.is_signed_int() || !from.is_signed_int());
    let keeps_low = to.bits() <= from.bits() && to.bits() >= 32;
    // Of a negative number all upper bits become 1, so that it stays the sum but for a multiple of 2^64.
    let extends = found.is_exact && to.bits() >= 32;
    let widens = to.bits() > from.bits() && !from.is_signed_int();
    if before.block.is_some() && !found.is_exact && widens {
        // In a loop of one thread it is a value of its own.
        lanes::ends_of(before, counters, (&found, 0))?;
        return Some(Found {
            is_exact: true,
            ..found
        });
    }
    (keeps_low || extends || found.is_exact && keeps_all).then_some(Found {
        is_exact: found.is_exact && keeps_all,
        ..found
    })
}

/// A product of two sums, one of which does not change in the loop.
fn product(
    before: &mut Before<'_>,
    counters: &mut Vec<Counter>,
    [a, b]: [Value; 2],
    depth: u32,
) -> Option<Sum> {
    let [x, y] = [a, b].map(|value| find(before, counters, value, depth + 1));
    let (x, y) = (x?.sum, y?.sum);
    if x.terms.is_empty() {
        return Sum::default().plus(&y, x.constant);
    }
    if y.terms.is_empty() {
        return Sum::default().plus(&x, y.constant);
    }
    let [x_counts, y_counts] = [&x, &y].map(|sum| sum.counters().next().is_some());
    let (fixed, varying) = match (x_counts, y_counts) {
        (false, true) => (a, y),
        (true, false) => (b, x),
        // Of two that do not change the product is a value of its own; of two counters it is no sum.
        (false, false) | (true, true) => return None,
    };
    let fixed = before.moved(fixed)?;
    let mut sum = Sum::default();
    for (product, factor) in &varying.terms {
        let value = match product.value {
            None => fixed,
            Some(_) if product.counter.is_some() => return None,
            Some(value) => {
                let ty = before.function.type_of(fixed);
                let [bits, own] = [value, fixed].map(|value| {
                    let scalar = before.function.type_of(value).as_scalar();
                    scalar.map(|scalar| scalar.bits())
                });
                if bits != own {
                    return None;
                }
                // Of the other sign it has the same bits, and so has the product.
                let value = match before.function.type_of(value) {
                    same if same == ty => value,
                    _ => before.put(InstData::Cast { arg: value }, ty),
                };
                let (op, args) = (BinaryOp::Mul, [value, fixed]);
                before.put(InstData::Binary { op, args }, ty)
            }
        };
        let counter = product.counter;
        let term = Sum::of(Product {
            counter,
            value: Some(value),
        });
        sum = sum.plus(&term, *factor)?;
    }
    let fixed = Sum::of(Product {
        counter: None,
        value: Some(fixed),
    });
    sum.plus(&fixed, varying.constant)
}

/// A sum as an index of 64 bits: what it is made of in the loop.
pub(super) struct Wide {
    /// Whether the index stays what it is.
    is_own: bool,
    /// What does not change, but for the number.
    base: Option<Value>,
    /// Counters, and how many times, if that is not once.
    terms: Vec<(Counts, Option<Value>)>,
    constant: i64,
}

impl Wide {
    /// An index that stays what it is.
    pub(super) fn own() -> Wide {
        Wide {
            base: None,
            terms: Vec::new(),
            constant: 0,
            is_own: true,
        }
    }

    /// Computes before the loop what does not change in it.
    pub(super) fn of(sum: &Sum, before: &mut Before<'_>, counters: &[Counter]) -> Wide {
        let fixed = |(product, factor): (&Product, &i64)| {
            product.counter.is_none().then_some((*product, *factor))
        };
        let fixed = Sum {
            terms: sum.terms.iter().filter_map(fixed).collect(),
            constant: 0,
        };
        // What must hold has been asked.
        let mut asked = Truth::Known(true);
        let mut products = Truth::Known(true);
        let base = fixed.evaluate(before, |_, _| Number::Known(0), &mut asked, &mut products);
        let mut terms = Vec::new();
        for (product, &factor) in &sum.terms {
            let Some(counter) = product.counter else {
                continue;
            };
            let times = match product.value {
                Some(value) => before.number(value),
                None => Number::Known(1),
            };
            let times = match before.mul(times, Number::Known(factor)) {
                Number::Known(1) => None,
                times => Some(before.value(times)),
            };
            terms.push((counters[counter].counts, times));
        }
        let base = match base {
            Number::Known(0) => None,
            base => Some(before.value(base)),
        };
        Wide {
            is_own: false,
            base,
            terms,
            constant: sum.constant,
        }
    }

    /// The index in the loop, of type `u64` unless it stays what it is.
    pub(super) fn put(&self, code: &mut Code<'_>, copy: &InstCopy) -> Value {
        if self.is_own {
            return code.index();
        }
        let mut sum = self.base;
        let add = |code: &mut Code<'_>, sum: Option<Value>, term: Value| match sum {
            None => term,
            Some(sum) => {
                let (op, args) = (BinaryOp::Add, [sum, term]);
                code.value(InstData::Binary { op, args }, Type::I64)
            }
        };
        for &(counts, times) in &self.terms {
            let counter = match counts {
                Counts::Index(value) | Counts::Lane(value) => {
                    copy.values.get(&value).copied().unwrap_or(value)
                }
            };
            let mut term = match code.function.type_of(counter) {
                Type::I64 => counter,
                _ => code.value(InstData::Cast { arg: counter }, Type::I64),
            };
            if let Some(times) = times {
                let (op, args) = (BinaryOp::Mul, [term, times]);
                term = code.value(InstData::Binary { op, args }, Type::I64);
            }
            sum = Some(add(code, sum, term));
        }
        if self.constant != 0 || sum.is_none() {
            let constant = code.constant(self.constant, Type::I64);
            sum = Some(add(code, sum, constant));
        }
        let arg = sum.expect("a sum has a term or a number");
        code.value(InstData::Cast { arg }, Type::U64)
    }
}
