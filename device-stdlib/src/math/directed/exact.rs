//! Results rounded in a direction: exact in integers of 128 bits, cut off once.

use crate::plain::number::{Float, Int};

/// Which neighbour of the exact result is taken.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Direction {
    Down,
    Up,
    Zero,
}

/// The floats of a type: their digits, the exponent of the last place of the smallest ones, and the largest.
#[derive(Copy, Clone, Debug)]
pub(super) struct Format {
    digits: i32,
    least: i32,
    most: f64,
}

impl Format {
    fn of<T: Float>() -> Format {
        let (digits, least, most) = match size_of::<T>() {
            8 => (53, -1074, f64::MAX),
            4 => (24, -149, f32::MAX.into()),
            // What only one of the two has.
            _ if T::from_f64(65_536.0).to_f64().is_finite() => (8, -133, half::bf16::MAX.into()),
            _ => (11, -24, half::f16::MAX.into()),
        };
        Format {
            digits,
            least,
            most,
        }
    }
}

/// `digits * 2^exponent`, and less than one digit more, with a sign.
#[derive(Copy, Clone)]
struct Exact {
    negative: bool,
    digits: u128,
    exponent: i32,
    /// Whether there is something below the last digit.
    more: bool,
}

impl Exact {
    /// A finite number, which is not 0.
    fn of(x: f64) -> Exact {
        let bits = x.to_bits();
        let (exponent, fraction) = ((bits >> 52 & 0x7ff) as i32, bits & ((1 << 52) - 1));
        let (digits, exponent) = match exponent {
            0 => (fraction, -1074),
            _ => (fraction | 1 << 52, exponent - 1075),
        };
        Exact {
            negative: x.is_sign_negative(),
            digits: digits.into(),
            exponent,
            more: false,
        }
    }

    fn length(&self) -> i32 {
        128 - self.digits.leading_zeros() as i32
    }

    /// The sum with another number, which has no more digits than 106; neither has something below its digits.
    fn plus(self, other: Exact) -> Option<Exact> {
        let (high, low) = match self.exponent >= other.exponent {
            true => (self, other),
            false => (other, self),
        };
        let apart = high.exponent - low.exponent;
        // A bit is left for the carry.
        let left = apart.min(126 - high.length());
        let (digits, right) = (high.digits << left, apart - left);
        let (small, more) = match right {
            0 => (low.digits, false),
            1..128 => (low.digits >> right, low.digits << (128 - right) != 0),
            _ => (0, true),
        };
        let (digits, negative) = if high.negative == low.negative {
            (digits + small, high.negative)
        } else if digits >= small {
            // What is below the last digit is taken away, too.
            (digits - small - u128::from(more), high.negative)
        } else {
            (small - digits, low.negative)
        };
        (digits != 0).then_some(Exact {
            negative,
            digits,
            exponent: high.exponent - left,
            more,
        })
    }

    fn rounded(self, to: Direction, format: Format) -> f64 {
        let last = (self.exponent + self.length() - format.digits).max(format.least);
        let shift = last - self.exponent;
        let (kept, lost) = match shift {
            ..1 => (self.digits << -shift, false),
            1..128 => (self.digits >> shift, self.digits << (128 - shift) != 0),
            _ => (0, true),
        };
        let away = match to {
            Direction::Down => self.negative,
            Direction::Up => !self.negative,
            Direction::Zero => false,
        };
        let kept = kept + u128::from(away && (lost || self.more));
        let power = match last {
            // Beyond all formats.
            1000.. => f64::INFINITY,
            -1022.. => f64::from_bits(((last + 1023) as u64) << 52),
            _ => f64::from_bits(1 << (last + 1074)),
        };
        let size = match kept as f64 * power {
            size if size <= format.most => size,
            _ if away => f64::INFINITY,
            _ => format.most,
        };
        if self.negative { -size } else { size }
    }
}

fn is_plain(x: f64) -> bool {
    x.is_finite() && x != 0.0
}

/// `a * b + c`.
pub(super) fn mul_add<T: Float>(a: T, b: T, c: T, to: Direction) -> T {
    let [a, b, c] = [a, b, c].map(|x| x.to_f64());
    T::from_f64(sum_of_product(a, b, c, to, Format::of::<T>()))
}

fn sum_of_product(a: f64, b: f64, c: f64, to: Direction, format: Format) -> f64 {
    if ![a, b, c].iter().all(|x| x.is_finite()) {
        return a.mul_add(b, c);
    }
    let negative = a.is_sign_negative() != b.is_sign_negative();
    // A sum of 0 has a sign by the direction, but where both parts have the same.
    let zero = if to == Direction::Down { -0.0 } else { 0.0 };
    if !(is_plain(a) && is_plain(b)) {
        return match c == 0.0 && negative != c.is_sign_negative() {
            true => zero,
            false => c,
        };
    }
    let (a, b) = (Exact::of(a), Exact::of(b));
    let product = Exact {
        negative,
        digits: a.digits * b.digits,
        exponent: a.exponent + b.exponent,
        more: false,
    };
    if c == 0.0 {
        return product.rounded(to, format);
    }
    let sum = product.plus(Exact::of(c));
    sum.map_or(zero, |sum| sum.rounded(to, format))
}

/// `a + b`.
pub(super) fn add<T: Float>(a: T, b: T, to: Direction) -> T {
    mul_add(a, T::ONE, b, to)
}

/// `a * b`.
pub(super) fn mul<T: Float>(a: T, b: T, to: Direction) -> T {
    let [x, y] = [a, b].map(|x| x.to_f64());
    match is_plain(x) && is_plain(y) {
        true => mul_add(a, b, T::ZERO, to),
        false => a * b,
    }
}

/// `a / b`.
pub(super) fn div<T: Float>(a: T, b: T, to: Direction) -> T {
    let [x, y] = [a, b].map(|x| x.to_f64());
    if !(is_plain(x) && is_plain(y)) {
        return a / b;
    }
    let (a, b) = (Exact::of(x), Exact::of(y));
    // However few digits a subnormal number has, the quotient has more than any format.
    let left = 126 - a.length();
    let dividend = a.digits << left;
    let quotient = Exact {
        negative: a.negative != b.negative,
        digits: dividend / b.digits,
        exponent: a.exponent - b.exponent - left,
        more: dividend % b.digits != 0,
    };
    T::from_f64(quotient.rounded(to, Format::of::<T>()))
}

/// The square root of `a`.
pub(super) fn sqrt<T: Float>(a: T, to: Direction) -> T {
    let x = a.to_f64();
    if !is_plain(x) || x < 0.0 {
        return T::from_f64(x.sqrt());
    }
    let a = Exact::of(x);
    // An even exponent, and more digits than a root needs.
    let left = 126 - a.length();
    let left = left - (a.exponent - left).rem_euclid(2);
    let digits = a.digits << left;
    let root = digits.isqrt();
    let root = Exact {
        negative: false,
        digits: root,
        exponent: (a.exponent - left) / 2,
        more: root * root != digits,
    };
    T::from_f64(root.rounded(to, Format::of::<T>()))
}

/// An integer.
pub(super) fn of_integer<T: Int, F: Float>(x: T, to: Direction) -> F {
    let negative = x < T::ZERO;
    let digits = match negative {
        true => x.cast::<i64>().unsigned_abs(),
        false => x.cast::<u64>(),
    };
    if digits == 0 {
        return F::ZERO;
    }
    let exact = Exact {
        negative,
        digits: digits.into(),
        exponent: 0,
        more: false,
    };
    F::from_f64(exact.rounded(to, Format::of::<F>()))
}

/// An `f64` in the digits of an `f32`.
pub(super) fn narrowed(x: f64, to: Direction) -> f32 {
    match is_plain(x) {
        true => Exact::of(x).rounded(to, Format::of::<f32>()) as f32,
        false => x as f32,
    }
}
