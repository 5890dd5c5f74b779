//! The remainder of a division of floats, exact: Rust's `%`, C's `fmod`.
//!
//! Both numbers are integers times powers of two. The dividend's integer is reduced modulo the
//! divisor's, and again after each multiplication by as much of the power of two between them as an
//! integer has room for. No step rounds. (`x - trunc(x / y) * y`, which LLVM writes for GPUs, does.)

use crate::build::{DeviceFn, KernelBuilder, Val};
use crate::ir::{FloatFormat, Module, Scalar, ScalarKind, Type};

/// The function of a dividend and a divisor, for a type of floats.
pub(super) fn body(scalar: Scalar) -> Option<Module> {
    let ScalarKind::Float(format) = scalar.kind() else {
        return None;
    };
    let ty = Type::scalar(scalar);
    let function = DeviceFn::build(&format!("rem.{}", scalar.name()), |k| {
        let (x, y) = (k.param("x", ty), k.param("y", ty));
        let result = match scalar.is_half() {
            // No remainder has more digits than the numbers, so nothing is rounded on the way back.
            true => (x.cast(Type::F32) % y.cast(Type::F32)).cast(ty),
            false => Division::of(k, x, y, scalar, format).remainder(),
        };
        k.return_value(result);
    });
    function.ok().map(|f| f.module())
}

/// A division of floats that are computed in their own type, as `f32` and `f64` are.
struct Division<'k> {
    k: &'k KernelBuilder,
    x: Val<'k>,
    y: Val<'k>,
    /// The unsigned type of the same width, and that width.
    int: Type,
    width: u32,
    /// Bits of the significand that are stored.
    digits: u32,
    /// The sign's bit.
    sign: Val<'k>,
}

impl<'k> Division<'k> {
    fn of(
        k: &'k KernelBuilder,
        x: Val<'k>,
        y: Val<'k>,
        scalar: Scalar,
        format: FloatFormat,
    ) -> Division<'k> {
        let int = Type::scalar(scalar.unsigned());
        Division {
            k,
            x,
            y,
            int,
            width: scalar.bits(),
            digits: format.precision - 1,
            sign: k.lit(int, 1u64 << (scalar.bits() - 1)),
        }
    }

    fn int(&self, value: u32) -> Val<'k> {
        self.k.lit(self.int, value)
    }

    /// A number's bits but for its sign, which are ordered as numbers are.
    fn magnitude(&self, number: Val<'k>) -> Val<'k> {
        number.bitcast(self.int) & (self.sign - self.int(1))
    }

    /// The power of two of a number, counted from that of the smallest.
    fn exponent(&self, magnitude: Val<'k>) -> Val<'k> {
        (magnitude >> self.int(self.digits)).max(self.int(1))
    }

    /// The integer that a number is in units of its power of two.
    fn significand(&self, magnitude: Val<'k>) -> Val<'k> {
        let hidden = self.int(1) << self.int(self.digits);
        let stored = magnitude & (hidden - self.int(1));
        let is_normal = magnitude.ge(hidden);
        is_normal.select(stored | hidden, stored)
    }

    fn remainder(&self) -> Val<'k> {
        let (a, b) = (self.magnitude(self.x), self.magnitude(self.y));
        let infinity = self.magnitude(self.k.lit(self.x.ty(), f64::INFINITY));
        let result = self.k.var("result", self.x);
        self.k.if_(a.ge(b), || result.set(self.reduced(a, b)));
        let none = a.ge(infinity) | b.gt(infinity) | b.eq(self.int(0));
        none.select(self.k.lit(self.x.ty(), f64::NAN), result.get())
    }

    /// The remainder of numbers of which the first is not smaller.
    fn reduced(&self, a: Val<'k>, b: Val<'k>) -> Val<'k> {
        let k = self.k;
        let divisor = self.significand(b);
        let rest = k.var("rest", self.significand(a) % divisor);
        let left = k.var("left", self.exponent(a) - self.exponent(b));
        let room = self.int(self.width - self.digits - 1);
        k.while_(
            || left.get().gt(self.int(0)),
            || {
                let step = left.get().min(room);
                rest.set((rest.get() << step) % divisor);
                left.set(left.get() - step);
            },
        );
        // In units of the divisor's power of two, which is a number of the type itself.
        let (exponent, digits) = (self.exponent(b), self.int(self.digits));
        let is_normal = exponent.gt(digits);
        let normal = (exponent - digits) << digits;
        let subnormal = self.int(1) << (exponent - self.int(1));
        let unit = is_normal.select(normal, subnormal).bitcast(self.x.ty());
        let size = (rest.get().cast(self.x.ty()) * unit).bitcast(self.int);
        (size | (self.x.bitcast(self.int) & self.sign)).bitcast(self.x.ty())
    }
}
