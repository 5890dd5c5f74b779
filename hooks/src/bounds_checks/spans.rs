//! Between which two numbers a computed one is, whatever a launch gives: what cannot wrap around is not asked.

use std::collections::BTreeMap;

use kiln_compiler::ir::{BinaryOp, Constant, InstData, Type, Value};

use super::before::{Before, Number, known_integer};
use super::counter::defining;

/// The least and the largest that a number is.
pub(super) type Span = (i128, i128);

/// How many operations deep a number is looked into.
const MAX_DEPTH: u32 = 16;

/// No number is spread into more products.
const MAX_TERMS: usize = 12;

/// The most quotients that are looked behind, one of another among them.
const MAX_QUOTIENTS: u32 = 8;

/// No quotient is looked behind that is of a larger number.
const MAX_DIVISOR: i64 = 1 << 16;

/// What 64 bits tell apart.
const WORD: i128 = 1 << 64;

/// No limit of an index is larger.
const LARGEST_LIMIT: i128 = 1 << 33;

/// A number of 64 bits as products of others, each so many times, as if nothing wrapped around.
#[derive(Clone, Default, Debug)]
pub(super) struct Spread(BTreeMap<[Option<Value>; 2], i128>);

impl Spread {
    /// Of a number; `None` if it is made of too much.
    pub(super) fn of(before: &Before<'_>, number: Number) -> Option<Spread> {
        match number {
            Number::Known(known) => Some(Spread::of_product([None; 2], known.into())),
            Number::Value(value) => Spread::within(before, value, 0),
        }
    }

    fn of_product(product: [Option<Value>; 2], times: i128) -> Spread {
        let terms = [(product, times)].into_iter();
        Spread(terms.filter(|(_, times)| *times != 0).collect())
    }

    fn within(before: &Before<'_>, value: Value, depth: u32) -> Option<Spread> {
        match before.function.constant(value) {
            Some(Constant::Int(known)) => {
                let known = i64::try_from(known).ok()?;
                return Some(Spread::of_product([None; 2], known.into()));
            }
            Some(Constant::Zero) => return Some(Spread::default()),
            _ => {}
        }
        let whole = || Spread::of_product([None, Some(value)], 1);
        if depth == MAX_DEPTH {
            return None;
        }
        let Some(&InstData::Binary { op, args }) = defining(before.function, value) else {
            return Some(whole());
        };
        let sides = || {
            let [a, b] = args.map(|arg| Spread::within(before, arg, depth + 1));
            Some((a?, b?))
        };
        match op {
            BinaryOp::Add => sides().and_then(|(a, b)| a.plus(&b, 1)),
            BinaryOp::Sub => sides().and_then(|(a, b)| a.plus(&b, -1)),
            BinaryOp::Mul => sides().and_then(|(a, b)| a.times(&b)),
            _ => Some(whole()),
        }
    }

    pub(super) fn plus(mut self, other: &Spread, times: i128) -> Option<Spread> {
        for (product, factor) in &other.0 {
            let sum = self.0.entry(*product).or_default();
            *sum = sum.checked_add(factor.checked_mul(times)?)?;
        }
        self.0.retain(|_, factor| *factor != 0);
        (self.0.len() <= MAX_TERMS).then_some(self)
    }

    fn times(&self, other: &Spread) -> Option<Spread> {
        let mut all = Spread::default();
        for (a, times) in &self.0 {
            for (b, more) in &other.0 {
                let mut factors = [None; 2];
                let both = a.iter().chain(b).flatten();
                let count = both.clone().count();
                if count > 2 {
                    return None;
                }
                let places = factors.iter_mut().skip(2 - count);
                places
                    .zip(both)
                    .for_each(|(place, &value)| *place = Some(value));
                factors.sort_unstable();
                all = all.plus(&Spread::of_product(factors, times.checked_mul(*more)?), 1)?;
            }
        }
        Some(all)
    }

    /// The spread as many times as one of the quotients that are subtracted in it is divided by, with the dividend in
    /// that one's place: no more than so many times the spread.
    fn with_a_dividend(&self, before: &Before<'_>) -> Option<Spread> {
        let subtracted = |(&product, &times): (&[Option<Value>; 2], &i128)| {
            let [None, Some(value)] = product else {
                return None;
            };
            let (dividend, by) = quotient(before, value).filter(|_| times < 0)?;
            Some((product, times, dividend, by))
        };
        let (product, times, dividend, by) = self.0.iter().find_map(subtracted)?;
        let mut rest = self.clone();
        rest.0.remove(&product);
        let least = Spread::of_product([None, Some(dividend)], times);
        least.plus(&rest, by)
    }

    /// Between which numbers it is.
    pub(super) fn span(&self, before: &Before<'_>) -> Option<Span> {
        let mut span = (0i128, 0i128);
        for (product, times) in &self.0 {
            let mut own = (*times, *times);
            for value in product.iter().flatten() {
                own = product_of(own, leaf(before, *value)?)?;
            }
            span = (span.0.checked_add(own.0)?, span.1.checked_add(own.1)?);
        }
        Some(span)
    }

    /// The number, computed anew; `None` if a number in it has more than 64 bits.
    pub(super) fn put(&self, before: &mut Before<'_>) -> Option<Number> {
        let known: Option<Vec<i64>> = self.0.values().map(|&n| i64::try_from(n).ok()).collect();
        let mut sum = Number::Known(0);
        // What is subtracted comes last.
        let mut terms: Vec<_> = self.0.keys().copied().zip(known?).collect();
        terms.sort_by_key(|(_, times)| *times < 0);
        for (product, times) in terms {
            let mut number = Number::Known(1);
            for value in product.into_iter().flatten() {
                number = before.mul(number, Number::Value(value));
            }
            sum = match (number, times) {
                (Number::Value(_), -1) => before.sub(sum, number),
                _ => {
                    let number = before.mul(number, Number::Known(times));
                    before.add(sum, number)
                }
            };
        }
        Some(sum)
    }
}

/// Whether a number is at most another one, whatever a launch gives.
pub(super) fn is_at_most(before: &Before<'_>, number: Number, other: Number) -> bool {
    let apart = || {
        let number = Spread::of(before, number)?;
        Spread::of(before, other)?.plus(&number, -1)
    };
    number == other || apart().is_some_and(|apart| is_not_negative(before, apart))
}

/// The one of two numbers of 64 bits that is the lesser, whatever a launch gives, if it is known which.
pub(super) fn least(before: &Before<'_>, [a, b]: [Number; 2]) -> Option<Number> {
    let is_exact = |number: &Number| {
        let span = Spread::of(before, *number).and_then(|spread| spread.span(before));
        span.is_some_and(is_exact)
    };
    if !is_exact(&a) || !is_exact(&b) {
        return None;
    }
    if is_at_most(before, a, b) {
        return Some(a);
    }
    is_at_most(before, b, a).then_some(b)
}

/// Whether a spread is at least 0, whatever a launch gives. Of a quotient that is subtracted it is enough that as much
/// as it is at most is: so twice the half of a block is no more than the block.
fn is_not_negative(before: &Before<'_>, mut spread: Spread) -> bool {
    for _ in 0..MAX_QUOTIENTS {
        if spread.span(before).is_some_and(|(least, _)| least >= 0) {
            return true;
        }
        match spread.with_a_dividend(before) {
            Some(less) => spread = less,
            None => return false,
        }
    }
    false
}

/// The dividend of an unsigned quotient, as a number that was needed elsewhere, and what it is divided by.
fn quotient(before: &Before<'_>, value: Value) -> Option<(Value, i128)> {
    let Some(&InstData::Cast { arg }) = defining(before.function, value) else {
        return None;
    };
    let scalar = before.function.type_of(arg).as_scalar()?;
    let Some(&InstData::Binary { op, args }) = defining(before.function, arg) else {
        return None;
    };
    let [dividend, by] = args;
    let by = known_integer(before.function, by)?;
    let is_amount = (0..i64::from(scalar.bits())).contains(&by);
    let by = match op {
        BinaryOp::Div => by,
        BinaryOp::Shr if is_amount => 1 << by,
        _ => return None,
    };
    let is_quotient = (1..=MAX_DIVISOR).contains(&by);
    let is_unsigned = scalar.bits() < 64 && !scalar.is_signed_int();
    let dividend = before.known_number(dividend)?;
    (is_quotient && is_unsigned).then_some((dividend, by.into()))
}

fn product_of(a: Span, b: Span) -> Option<Span> {
    let ends = [(a.0, b.0), (a.0, b.1), (a.1, b.0), (a.1, b.1)];
    let [p, q, r, s] = ends.map(|(a, b)| a.checked_mul(b));
    let (p, q, r, s) = (p?, q?, r?, s?);
    Some((p.min(q).min(r).min(s), p.max(q).max(r).max(s)))
}

/// Between which numbers a value of 64 bits is that no sum or product gives.
fn leaf(before: &Before<'_>, value: Value) -> Option<Span> {
    if before.function.type_of(value) != Type::I64 {
        return None;
    }
    match *defining(before.function, value)? {
        InstData::Cast { arg } => narrow(before, arg),
        InstData::Binary {
            op: op @ (BinaryOp::Min | BinaryOp::Max),
            args,
        } => {
            // What is compared must be what it would be if nothing wrapped around.
            let of = |arg| {
                let span = Spread::within(before, arg, MAX_DEPTH / 2)?.span(before)?;
                is_exact(span).then_some(span)
            };
            let [a, b] = args.map(of);
            let (a, b) = (a?, b?);
            Some(if op == BinaryOp::Min {
                (a.0.min(b.0), a.1.min(b.1))
            } else {
                (a.0.max(b.0), a.1.max(b.1))
            })
        }
        _ => None,
    }
}

/// Whether a number of such a span is the signed one of its 64 bits.
pub(super) fn is_exact((least, most): Span) -> bool {
    i128::from(i64::MIN) <= least && most <= i128::from(i64::MAX)
}

/// Whether a number of such a span whose 64 bits, unsigned, are below a limit is that.
pub(super) fn is_modulo_exact((least, most): Span) -> bool {
    LARGEST_LIMIT - WORD < least && most < WORD
}

/// The span of an integer of fewer than 64 bits, by its type.
fn narrow(before: &Before<'_>, value: Value) -> Option<Span> {
    let scalar = before.function.type_of(value).as_scalar()?;
    let bits = scalar.bits();
    if !scalar.is_int() || bits >= 64 {
        return None;
    }
    let count = 1i128 << bits;
    Some(match scalar.is_signed_int() {
        true => (-count / 2, count / 2 - 1),
        false => (0, count - 1),
    })
}
