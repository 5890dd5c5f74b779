//! Mathematical functions (CUDA guide, "Mathematical Functions"; PTX ISA, "Floating-Point
//! Instructions"), with the same bits on every device. `f16` and `bf16` are computed in `f32` and
//! rounded.
//!
//! Square root, fused multiply-add and the roundings are instructions everywhere and give the
//! result of IEEE 754. The others are functions written in Kiln's IR; their largest errors, in
//! units in the last place, against the exact result (`f32` of one argument: all numbers tried):
//!
//! | function | `f32` | `f64` |
//! |---|---|---|
//! | `exp`, `exp2` | 1 | 2 |
//! | `ln` | 1.5 | 2 |
//! | `log2` | 2 | 2 |
//! | `log10` | 2.5 | 2 |
//! | `sin`, `cos`, of every argument | 2 | 2 |
//! | `tanh` | 2 | 3 |
//! | `powf` | 1.5 | 2 |
//!
//! In `#[kernel]` functions they are the methods that floats have in Rust; the trait [`Math`] has them
//! for the builder.
//!
//! ```
//! use kiln::prelude::*;
//!
//! #[device_fn]
//! fn gaussian<T: Float>(x: T, width: T) -> T {
//!     let z = x / width;
//!     (-z * z).exp() / (width * T::from_f64(std::f64::consts::PI).sqrt())
//! }
//!
//! #[kernel]
//! fn bell(x: &mut [f32], width: f32) {
//!     let i = global_id().x;
//!     if i < x.len() {
//!         x[i] = gaussian(x[i], width);
//!     }
//! }
//!
//! # fn main() -> kiln::Result<()> {
//! let jit = Jit::new()?;
//! let mut x = jit.upload(&[0.0, 1.5])?;
//! bell.launch(&jit, (1, 32), &mut x, 2.0)?;
//! for (y, x) in x.to_vec()?.into_iter().zip([0.0, 1.5]) {
//!     assert!((y - gaussian(x, 2.0)).abs() < 1e-6);
//! }
//! # Ok(())
//! # }
//! ```
//!
//! | file | subject |
//! |---|---|
//! | `math/rows` | the rows |
//! | `math/format` | float formats; operations that round once |
//! | `math/exponential` | exponentials, logarithms, tanh |
//! | `math/trigonometric` | sine, cosine |
//! | `math/power` | powers |

mod exponential;
mod format;
mod power;
mod rows;
mod trigonometric;

use kiln_jit_core::build::{IntoVal, Place, Val, Var};

pub use rows::{FUNCTIONS, ROWS};
use rows::{Function, Row};

#[track_caller]
fn unary<'k>(row: Row, x: Val<'k>) -> Val<'k> {
    x.builder().intrinsic(&ROWS[row as usize], &[x])
}

#[track_caller]
fn function<'k>(function: Function, x: Val<'k>) -> Val<'k> {
    x.builder().intrinsic(&FUNCTIONS[function as usize], &[x])
}

/// Mathematical functions, as methods of values. All take floats.
pub trait Math<'k>: Copy {
    /// The value the functions are applied to.
    #[track_caller]
    fn value(self) -> Val<'k>;

    /// The square root, correctly rounded; NaN for negative numbers.
    #[track_caller]
    fn sqrt(self) -> Val<'k> {
        unary(Row::sqrt, self.value())
    }

    /// The absolute value.
    #[track_caller]
    fn abs(self) -> Val<'k> {
        unary(Row::abs, self.value())
    }

    /// The largest integer that is not greater.
    #[track_caller]
    fn floor(self) -> Val<'k> {
        unary(Row::floor, self.value())
    }

    /// The smallest integer that is not less.
    #[track_caller]
    fn ceil(self) -> Val<'k> {
        unary(Row::ceil, self.value())
    }

    /// The integer next to it towards zero.
    #[track_caller]
    fn trunc(self) -> Val<'k> {
        unary(Row::trunc, self.value())
    }

    /// The nearest integer, ties to even.
    #[track_caller]
    fn rint(self) -> Val<'k> {
        unary(Row::rint, self.value())
    }

    /// `self * factor + addend` with one rounding.
    #[track_caller]
    fn mul_add(self, factor: impl IntoVal<'k>, addend: impl IntoVal<'k>) -> Val<'k> {
        let x = self.value();
        let b = x.builder();
        let factor = factor.into_val(b, Some(x.ty()));
        let addend = addend.into_val(b, Some(x.ty()));
        b.intrinsic(&ROWS[Row::fma as usize], &[x, factor, addend])
    }

    /// `e` to this power (see the module's table of errors, also for the following).
    #[track_caller]
    fn exp(self) -> Val<'k> {
        function(Function::exp, self.value())
    }

    /// 2 to this power.
    #[track_caller]
    fn exp2(self) -> Val<'k> {
        function(Function::exp2, self.value())
    }

    /// The natural logarithm; of zero minus infinity, of negative numbers NaN, like the others.
    #[track_caller]
    fn ln(self) -> Val<'k> {
        function(Function::log, self.value())
    }

    /// The logarithm to base 2.
    #[track_caller]
    fn log2(self) -> Val<'k> {
        function(Function::log2, self.value())
    }

    /// The logarithm to base 10.
    #[track_caller]
    fn log10(self) -> Val<'k> {
        function(Function::log10, self.value())
    }

    /// The sine of an angle in radians; NaN for infinities.
    #[track_caller]
    fn sin(self) -> Val<'k> {
        function(Function::sin, self.value())
    }

    /// The cosine of an angle in radians; NaN for infinities.
    #[track_caller]
    fn cos(self) -> Val<'k> {
        function(Function::cos, self.value())
    }

    /// The hyperbolic tangent.
    #[track_caller]
    fn tanh(self) -> Val<'k> {
        function(Function::tanh, self.value())
    }

    /// The power with an exponent of the same type, with C's `pow` for special values.
    #[track_caller]
    fn powf(self, exponent: impl IntoVal<'k>) -> Val<'k> {
        let x = self.value();
        let b = x.builder();
        let exponent = exponent.into_val(b, Some(x.ty()));
        b.intrinsic(&FUNCTIONS[Function::pow as usize], &[x, exponent])
    }

    /// The power with an exponent known now, by repeated squaring: `x.powi(3)` is two
    /// multiplications. A negative exponent gives the reciprocal of the positive power.
    #[track_caller]
    fn powi(self, exponent: i32) -> Val<'k> {
        let x = self.value();
        let b = x.builder();
        let one = b.lit(x.ty(), 1.0);
        let mut rest = exponent.unsigned_abs();
        let mut square = x;
        let mut power: Option<Val<'k>> = None;
        while rest > 0 {
            if rest & 1 == 1 {
                power = Some(power.map_or(square, |p| p * square));
            }
            rest >>= 1;
            if rest > 0 {
                square = square * square;
            }
        }
        let power = power.unwrap_or(one);
        if exponent < 0 { one / power } else { power }
    }
}

impl<'k> Math<'k> for Val<'k> {
    fn value(self) -> Val<'k> {
        self
    }
}

impl<'k> Math<'k> for Place<'k> {
    #[track_caller]
    fn value(self) -> Val<'k> {
        self.get()
    }
}

impl<'k> Math<'k> for Var<'k> {
    #[track_caller]
    fn value(self) -> Val<'k> {
        self.get()
    }
}
