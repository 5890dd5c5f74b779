//! What the algorithms of this chapter need to know of a float format, and the operations that
//! give the same bits on every device.
//!
//! A compiler may fuse a product with the addition that follows it (see [`kiln_jit_core::ir`],
//! "Defined everywhere"). Nothing here adds a product, or what a caller passes in, with `+` or
//! `-`: fused operations are written as such, and [`sum`] and [`difference`] round once whatever
//! their operands are.

use kiln_jit_core::build::{KernelBuilder, Val};
use kiln_jit_core::ir::Type;

use super::Math as _;

/// A number for `f32` and one for `f64`.
pub(super) type Constant = [f64; 2];

/// Coefficients for `f32` and for `f64`, that of the lowest power first.
pub(super) type Coefficients = [&'static [f64]; 2];

/// `f32` or `f64` (IEEE 754 binary32, binary64).
#[derive(Copy, Clone)]
pub(super) struct Format<'k> {
    builder: &'k KernelBuilder,
    /// The float type.
    pub(super) ty: Type,
    /// The signed integer type of the same width.
    pub(super) int: Type,
    /// Bits of the significand that are stored.
    pub(super) digits: i64,
    /// The exponent field of 1.0.
    pub(super) bias: i64,
    /// 0 for `f32`, 1 for `f64`.
    column: usize,
}

impl<'k> Format<'k> {
    /// The format of an `f32` or `f64`.
    pub(super) fn of(x: Val<'k>) -> Self {
        let double = x.ty() == Type::F64;
        Self {
            builder: x.builder(),
            ty: if double { Type::F64 } else { Type::F32 },
            int: if double { Type::I64 } else { Type::I32 },
            digits: if double { 52 } else { 23 },
            bias: if double { 1023 } else { 127 },
            column: usize::from(double),
        }
    }

    pub(super) fn builder(self) -> &'k KernelBuilder {
        self.builder
    }

    /// Whether this is `f64`.
    pub(super) fn is_double(self) -> bool {
        self.column == 1
    }

    /// Bits of a number.
    pub(super) fn width(self) -> i64 {
        if self.is_double() { 64 } else { 32 }
    }

    /// A float that is the same number in both formats.
    pub(super) fn float(self, value: f64) -> Val<'k> {
        self.builder.lit(self.ty, value)
    }

    /// A float that differs between the formats.
    pub(super) fn constant(self, value: Constant) -> Val<'k> {
        self.float(value[self.column])
    }

    /// An integer of the format's width.
    pub(super) fn integer(self, value: i64) -> Val<'k> {
        self.builder.lit(self.int, value)
    }

    pub(super) fn infinity(self) -> Val<'k> {
        self.float(f64::INFINITY)
    }

    pub(super) fn nan(self) -> Val<'k> {
        self.float(f64::NAN)
    }

    /// The bits of a float.
    pub(super) fn bits(self, x: Val<'k>) -> Val<'k> {
        x.bitcast(self.int)
    }

    /// The bits of a float as an unsigned integer.
    pub(super) fn unsigned_bits(self, x: Val<'k>) -> Val<'k> {
        x.bitcast(if self.is_double() {
            Type::U64
        } else {
            Type::U32
        })
    }

    /// The float with these bits.
    pub(super) fn with_bits(self, bits: Val<'k>) -> Val<'k> {
        bits.bitcast(self.ty)
    }

    /// The bit of the sign.
    pub(super) fn sign_bit(self) -> i64 {
        if self.is_double() {
            i64::MIN
        } else {
            i32::MIN.into()
        }
    }

    /// `2^n` for an integer value that is the exponent of a normal number.
    pub(super) fn power_of_two(self, n: Val<'k>) -> Val<'k> {
        self.with_bits((n + self.integer(self.bias)) << self.integer(self.digits))
    }

    /// `x * 2^n` of a normal number, where that is one, too.
    pub(super) fn times_power_of_two(self, x: Val<'k>, n: Val<'k>) -> Val<'k> {
        self.with_bits(self.bits(x) + (n << self.integer(self.digits)))
    }

    /// `x * 2^n`, for twice the range of exponents that a normal number has; rounds once.
    pub(super) fn scaled(self, x: Val<'k>, n: Val<'k>) -> Val<'k> {
        let half = n >> self.integer(1);
        x * self.power_of_two(half) * self.power_of_two(n - half)
    }

    /// `x * factor` rounded to an integer, as a float and as an integer; below `2^22` for `f32`
    /// and `2^51` for `f64`. Of a larger number or NaN the integer has no meaning.
    ///
    /// Adding `1.5 * 2^digits` leaves the integer in the low bits of the sum.
    pub(super) fn rounded_product(self, x: Val<'k>, factor: Val<'k>) -> (Val<'k>, Val<'k>) {
        let shift = 1.5 * (self.digits as f64).exp2();
        let shifted = x.mul_add(factor, self.float(shift));
        let shift_bits = if self.is_double() {
            shift.to_bits() as i64
        } else {
            (shift as f32).to_bits().into()
        };
        let integer = self.bits(shifted) - self.integer(shift_bits);
        (shifted - self.float(shift), integer)
    }

    /// `1 / x`, within a unit in the last place, of a number that is normal, as is the result, neither of them next to the
    /// largest or the least of the format.
    ///
    /// By operations that give the same bits on every device, and fewer than a division takes on most: bits of a first
    /// guess (Blinn, "Floating-point tricks", 1997) that is off by a twentieth at most, steps of Halley's, of which each
    /// trebles the digits, and one of Newton's.
    pub(super) fn reciprocal(self, x: Val<'k>) -> Val<'k> {
        let guess = if self.is_double() {
            0x7fde_6200_0000_0000
        } else {
            0x7ef3_1000
        };
        let first = self.with_bits(self.integer(guess) - self.bits(x));
        let one = self.float(1.0);
        let steps = if self.is_double() { 2 } else { 1 };
        let near = (0..steps).fold(first, |y, _| {
            let rest = (-x).mul_add(y, one);
            rest.mul_add(rest, rest).mul_add(y, y)
        });
        (-x).mul_add(near, one).mul_add(near, near)
    }

    /// A polynomial in `x` (Horner's scheme).
    pub(super) fn polynomial(self, x: Val<'k>, coefficients: Coefficients) -> Val<'k> {
        let mut terms = coefficients[self.column].iter().rev();
        let highest = terms.next().copied().unwrap_or(0.0);
        terms.fold(self.float(highest), |sum, &c| sum.mul_add(x, self.float(c)))
    }
}

/// `a + b`, rounded once.
pub(super) fn sum<'k>(a: Val<'k>, b: Val<'k>) -> Val<'k> {
    a.mul_add(Format::of(a).float(1.0), b)
}

/// `a - b`, rounded once.
pub(super) fn difference<'k>(a: Val<'k>, b: Val<'k>) -> Val<'k> {
    b.mul_add(Format::of(b).float(-1.0), a)
}

/// A number as the unevaluated sum of two, the second one small.
#[derive(Copy, Clone)]
pub(super) struct Pair<'k> {
    pub(super) high: Val<'k>,
    pub(super) low: Val<'k>,
}

/// `a + b` exactly; `a` is zero or not smaller in magnitude (Dekker 1971).
pub(super) fn exact_sum<'k>(a: Val<'k>, b: Val<'k>) -> Pair<'k> {
    let high = sum(a, b);
    Pair {
        high,
        low: sum(difference(a, high), b),
    }
}

/// `a + b` exactly, whichever is larger (Knuth, "Seminumerical Algorithms", 4.2.2).
pub(super) fn exact_sum_of_any<'k>(a: Val<'k>, b: Val<'k>) -> Pair<'k> {
    let high = sum(a, b);
    let part = difference(high, a);
    let rest = difference(a, difference(high, part));
    Pair {
        high,
        low: sum(rest, difference(b, part)),
    }
}

/// `a * b` exactly.
pub(super) fn exact_product<'k>(a: Val<'k>, b: Val<'k>) -> Pair<'k> {
    let high = a * b;
    Pair {
        high,
        low: a.mul_add(b, -high),
    }
}
