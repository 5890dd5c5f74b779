//! Numbers of twice the digits of `f64` in kernels: unevaluated sums of two (Dekker, "A Floating-Point Technique for
//! Extending the Available Precision", 1971; Joldes, Muller and Popescu, "Tight and Rigorous Error Bounds for Basic
//! Building Blocks of Double-Word Arithmetic", 2017).
//!
//! Sums, products, quotients and roots are off by some 2^-104 of the result, sums that cancel, too, as long as no part is
//! subnormal. They are right where a product is rounded before it is added, so kernels of them are compiled without
//! contraction.

use std::ops::{Add, Div, Mul, Neg, Sub};

use kiln::prelude::*;

/// The sum of two numbers of `f64`, the second one at most half a unit in the last place of the first.
#[derive(Copy, Clone)]
pub struct Pair<'k> {
    /// The sum, rounded.
    pub high: Val<'k>,
    /// What is lost of it.
    pub low: Val<'k>,
}

/// A number that is none of `f64`: the nearest one, and what is left.
pub(super) type Constant = [f64; 2];

fn lit(k: &KernelBuilder, number: f64) -> Val<'_> {
    k.lit(Type::F64, number)
}

/// The sum of two numbers whatever they are.
fn two_sum<'k>(a: Val<'k>, b: Val<'k>) -> Pair<'k> {
    let high = a + b;
    let of_b = high - a;
    let low = (a - (high - of_b)) + (b - of_b);
    Pair { high, low }
}

/// The sum of two numbers, the first one the larger.
fn quick_sum<'k>(a: Val<'k>, b: Val<'k>) -> Pair<'k> {
    let high = a + b;
    let low = b - (high - a);
    Pair { high, low }
}

/// The product of two numbers.
fn two_product<'k>(a: Val<'k>, b: Val<'k>) -> Pair<'k> {
    let high = a * b;
    let low = a.mul_add(b, -high);
    Pair { high, low }
}

impl<'k> Pair<'k> {
    pub(super) fn of(number: Val<'k>) -> Pair<'k> {
        let low = lit(number.builder(), 0.0);
        Pair { high: number, low }
    }

    pub(super) fn constant(k: &'k KernelBuilder, [high, low]: Constant) -> Pair<'k> {
        Pair {
            high: lit(k, high),
            low: lit(k, low),
        }
    }

    /// A number that `f64` has, beside another one.
    pub(super) fn beside(self, number: f64) -> Pair<'k> {
        Pair::of(lit(self.builder(), number))
    }

    pub(super) fn builder(self) -> &'k KernelBuilder {
        self.high.builder()
    }

    /// The product with a number.
    pub(super) fn times(self, number: Val<'k>) -> Pair<'k> {
        let product = two_product(self.high, number);
        quick_sum(product.high, self.low.mul_add(number, product.low))
    }

    /// The product with a power of two, of which no digit is lost.
    pub(super) fn scaled(self, power: Val<'k>) -> Pair<'k> {
        Pair {
            high: self.high * power,
            low: self.low * power,
        }
    }

    /// The product with 2^`exponent`, an `i64` of at most 2000 in magnitude: in two steps, of which each has a factor.
    pub(super) fn shifted(self, exponent: Val<'k>) -> Pair<'k> {
        let k = self.builder();
        let half = exponent >> 1;
        let power = |n: Val<'k>| ((n + k.lit(Type::I64, 1023)) << 52).bitcast(Type::F64);
        self.scaled(power(half)).scaled(power(exponent - half))
    }

    pub(super) fn sqrt(self) -> Pair<'k> {
        let root = self.high.sqrt();
        let rest = self - two_product(root, root);
        let is_zero = root.eq(0.0);
        let step = rest.high / (root + root);
        quick_sum(root, is_zero.select(root, step))
    }

    /// The one or the other.
    pub(super) fn chosen(first: Val<'k>, yes: Pair<'k>, no: Pair<'k>) -> Pair<'k> {
        Pair {
            high: first.select(yes.high, no.high),
            low: first.select(yes.low, no.low),
        }
    }

    /// The number with the sign of another one, where it has none.
    pub(super) fn signed(self, as_of: Val<'k>) -> Pair<'k> {
        Pair::chosen(as_of.lt(0.0), -self, self)
    }
}

impl<'k> Neg for Pair<'k> {
    type Output = Pair<'k>;

    fn neg(self) -> Pair<'k> {
        Pair {
            high: -self.high,
            low: -self.low,
        }
    }
}

impl<'k> Add for Pair<'k> {
    type Output = Pair<'k>;

    fn add(self, other: Pair<'k>) -> Pair<'k> {
        let (high, low) = (two_sum(self.high, other.high), two_sum(self.low, other.low));
        let sum = quick_sum(high.high, high.low + low.high);
        quick_sum(sum.high, sum.low + low.low)
    }
}

impl<'k> Sub for Pair<'k> {
    type Output = Pair<'k>;

    fn sub(self, other: Pair<'k>) -> Pair<'k> {
        self + -other
    }
}

impl<'k> Mul for Pair<'k> {
    type Output = Pair<'k>;

    fn mul(self, other: Pair<'k>) -> Pair<'k> {
        let product = two_product(self.high, other.high);
        let low = self.high.mul_add(other.low, self.low * other.low);
        let low = self.low.mul_add(other.high, low);
        quick_sum(product.high, product.low + low)
    }
}

impl<'k> Div for Pair<'k> {
    type Output = Pair<'k>;

    fn div(self, other: Pair<'k>) -> Pair<'k> {
        let first = self.high / other.high;
        let rest = self - other.times(first);
        let second = rest.high / other.high;
        let rest = rest - other.times(second);
        let third = rest.high / other.high;
        let near = quick_sum(first, second);
        near + Pair::of(third)
    }
}

/// A pair in variables.
#[derive(Copy, Clone)]
pub(super) struct Kept<'k>([Var<'k>; 2]);

impl<'k> Kept<'k> {
    pub(super) fn new(first: Pair<'k>) -> Kept<'k> {
        let k = first.builder();
        Kept([k.var("high", first.high), k.var("low", first.low)])
    }

    pub(super) fn get(self) -> Pair<'k> {
        let [high, low] = self.0.map(|var| var.get());
        Pair { high, low }
    }

    pub(super) fn set(self, pair: Pair<'k>) {
        let [high, low] = self.0;
        high.set(pair.high);
        low.set(pair.low);
    }
}

/// The sum of `first` and of `count` terms, each of which `next` makes of the one before and of its number from 1 on, an
/// `f64`: the term, and what is added of it.
pub(super) fn series<'k>(
    first: Pair<'k>,
    count: u32,
    next: impl FnOnce(Pair<'k>, Val<'k>) -> [Pair<'k>; 2],
) -> Pair<'k> {
    let (sum, term) = (Kept::new(first), Kept::new(first));
    first.builder().for_range(1u32, count + 1, |n| {
        let [made, added] = next(term.get(), n.cast(Type::F64));
        term.set(made);
        sum.set(sum.get() + added);
    });
    sum.get()
}

/// What becomes of `first` in `count` steps, each of what is left and of its number from 1 on, an `f64`.
pub(super) fn continued<'k>(
    first: Pair<'k>,
    count: u32,
    next: impl FnOnce(Pair<'k>, Val<'k>) -> Pair<'k>,
) -> Pair<'k> {
    let value = Kept::new(first);
    first.builder().for_range(1u32, count + 1, |n| {
        value.set(next(value.get(), n.cast(Type::F64)));
    });
    value.get()
}
