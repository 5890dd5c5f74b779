//! Mathematical functions (CUDA guide, "Mathematical Functions"; PTX ISA, "Floating-Point
//! Instructions"), with the same bits on every device. `f16` and `bf16` are computed in `f32` and
//! rounded.
//!
//! Square root, fused multiply-add and the roundings are instructions everywhere and give the result of IEEE 754; what
//! takes a float apart is exact, too. The others are functions written in Kiln's IR. Their largest errors, in units in the
//! last place, against the exact result:
//!
#![doc = include_str!("math/errors.md")]
//!
//! The table is made of what tests try, not all numbers: of `f32` 2,048 of each exponent against `f64`; of `f64` 256 of each
//! exponent against the platform's functions, or points whose results are known to all digits, and 1,300 numbers against
//! MPFR, which what the others are compared with is checked by, too; of `powf` and `atan2` 2^18 pairs in both. The logarithm
//! of the gamma function of a negative number x is 0 next to some that the table leaves out, of `f64` next to some down to -23:
//! there no number of units bounds it, but what is off is at most as many units of `ln_gamma(1 - x)` as the table says.
//!
//! In `#[kernel]` functions they are the methods that floats have in Rust, where a type parameter has them
//! by its bound `Float` ([`FloatOps`]); the trait [`Math`] has them for the builder. On the host they are the
//! platform's: those of the table may differ there in their last bits.
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
//! | [`directed`] | arithmetic that is rounded in a direction |
//! | `math/parts` | nearest integers, exponents, classes, neighbours |
//! | `math/exponential` | exponentials, logarithms, tanh |
//! | `math/hyperbolic` | exponentials and logarithms near 1, hyperbolic functions and their inverses |
//! | `math/trigonometric` | sine, cosine, tangent |
//! | `math/inverse` | arc tangent, arc sine, arc cosine |
//! | `math/power` | powers, logarithms to any base |
//! | `math/error` | the error function, its complement, their inverses, the normal distribution |
//! | `math/gamma` | the gamma function |
//! | `math/root` | cube roots, lengths of vectors |
//! | `math/approximation` | instructions of NVIDIA's GPUs |
//! | `math/host` | on the host what Rust's floats lack |
//!
//! What is exact is so on every device:
//!
//! ```
//! use kiln::prelude::*;
//!
//! #[kernel]
//! fn exact(x: f32, y: &mut [f32]) {
//!     y[0] = x.floor();
//!     y[1] = x.ceil();
//!     y[2] = x.trunc();
//!     y[3] = x.round_ties_even();
//!     y[4] = x.copysign(1.0);
//!     y[5] = x.mul_add(2.0, 0.5);
//!     y[6] = x.recip();
//!     y[7] = x.powi(3);
//! }
//!
//! #[kernel]
//! fn bits(x: &[f32], out: &mut [u32]) {
//!     let i = global_id().x;
//!     if i < x.len() && !x[i].is_nan() {
//!         out[i] = x[i].to_bits();
//!     }
//! }
//!
//! # fn main() -> kiln::Result<()> {
//! let jit = Jit::new()?;
//! let mut y = jit.zeros(8)?;
//! exact.launch(&jit, (1, 1), -2.5, &mut y)?;
//! assert_eq!(y.to_vec()?, [-3.0, -2.0, -2.0, -2.0, 2.5, -4.5, -0.4, -15.625]);
//! let (x, mut out) = (jit.upload(&[1.0, f32::NAN])?, jit.zeros(2)?);
//! bits.launch(&jit, (1, 32), &x, &mut out)?;
//! assert_eq!(out.to_vec()?, [0x3f80_0000, 0]);
//! # Ok(())
//! # }
//! ```
//!
//! So is what a float is made of:
//!
//! ```
//! use kiln::prelude::*;
//!
//! #[kernel]
//! fn parts(x: f32, y: &mut [f32], n: &mut [i32], class: &mut [u32]) {
//!     y[0] = x.round();
//!     y[1] = x.fract();
//!     y[2] = x.rsqrt();
//!     y[3] = x.to_radians().to_degrees().round();
//!     y[4] = x.ldexp(-3);
//!     (y[5], n[0]) = x.frexp();
//!     n[1] = x.ilogb();
//!     y[8] = x.logb();
//!     y[6] = x.next_up().next_down();
//!     y[7] = f32::from_bits(x.to_bits() ^ 0x8000_0000);
//!     for is in [
//!         x.is_finite(), x.is_infinite(), x.is_normal(), x.is_subnormal(),
//!         x.is_sign_positive(), x.is_sign_negative(),
//!     ] {
//!         class[0] = 2 * class[0] + is as u32;
//!     }
//! }
//!
//! # fn main() -> kiln::Result<()> {
//! let jit = Jit::new()?;
//! let (mut y, mut n, mut class) = (jit.zeros(9)?, jit.zeros(2)?, jit.zeros(1)?);
//! parts.launch(&jit, (1, 1), 6.25, &mut y, &mut n, &mut class)?;
//! assert_eq!(y.to_vec()?, [6.0, 0.25, 0.4, 6.0, 0.78125, 0.78125, 6.25, -6.25, 2.0]);
//! assert_eq!((n.to_vec()?, class.to_vec()?), (vec![3, 2], vec![0b101010]));
//! # Ok(())
//! # }
//! ```
//!
//! A sine and a cosine of one angle are one function, as on the host:
//!
//! ```
//! use kiln::prelude::*;
//!
//! #[kernel]
//! fn circle(angles: &[f32], x: &mut [f32], y: &mut [f32]) {
//!     let i = global_id().x;
//!     if i < angles.len() {
//!         let (sine, cosine) = angles[i].sin_cos();
//!         x[i] = cosine;
//!         y[i] = sine;
//!     }
//! }
//!
//! # fn main() -> kiln::Result<()> {
//! let jit = Jit::new()?;
//! let angles = jit.upload(&[0.5f32, 2.0])?;
//! let (mut x, mut y) = (jit.zeros::<f32>(2)?, jit.zeros::<f32>(2)?);
//! circle.launch(&jit, (1, 32), &angles, &mut x, &mut y)?;
//! for (angle, (x, y)) in [0.5f32, 2.0].into_iter().zip(x.to_vec()?.into_iter().zip(y.to_vec()?)) {
//!     assert!((x - angle.cos()).abs() < 1e-6 && (y - angle.sin()).abs() < 1e-6);
//! }
//! # Ok(())
//! # }
//! ```
//!
//! The others are near what the host has, here as methods of the builder's values:
//!
//! ```
//! use kiln::prelude::*;
//!
//! # fn main() -> kiln::Result<()> {
//! let curves = Kernel::build("curves", |k| {
//!     let (x, y) = (k.param("x", k.ty::<f64>()), k.slice_mut("y", k.ty::<f64>()));
//!     let arcs = [x.atan(), x.atan2(-2.0), x.tanh().asin(), x.tanh().acos(), x.tan()];
//!     let all = [x.exp2(), x.ln(), x.log2(), x.log10(), x.sin(), x.cos(), x.tanh(), x.powf(0.3)];
//!     let all = all.into_iter().chain(arcs);
//!     for (i, curve) in all.enumerate() {
//!         y.at(i as u32).set(curve);
//!     }
//! })?;
//! let jit = Jit::new()?;
//! let mut y = jit.zeros::<f64>(13)?;
//! let x = 1.25f64;
//! jit.launch(&curves, 1, 1, args!(x, &mut y))?;
//! let host = [x.exp2(), x.ln(), x.log2(), x.log10(), x.sin(), x.cos(), x.tanh(), x.powf(0.3)];
//! let arcs = [x.atan(), x.atan2(-2.0), x.tanh().asin(), x.tanh().acos(), x.tan()];
//! for (device, host) in y.to_vec()?.iter().zip(host.into_iter().chain(arcs)) {
//!     assert!((device - host).abs() < 1e-14);
//! }
//! # Ok(())
//! # }
//! ```
//!
//! Functions near 1, hyperbolic ones, roots, the error function:
//!
//! ```
//! use kiln::prelude::*;
//!
//! #[device_fn]
//! fn all<T: Float>(x: T, y: T) -> [T; 13] {
//!     [
//!         x.exp_m1(), x.ln_1p(), x.exp10(), x.log(y),
//!         x.sinh(), x.cosh(), x.asinh(), y.acosh(), x.atanh(),
//!         x.cbrt(), x.hypot(y), x.erf(), x.erfc(),
//!     ]
//! }
//!
//! #[kernel]
//! fn functions(x: f64, y: f64, out: &mut [[f64; 13]]) {
//!     out[0] = all(x, y);
//! }
//!
//! # fn main() -> kiln::Result<()> {
//! let jit = Jit::new()?;
//! let mut out = jit.zeros::<[f64; 13]>(1)?;
//! functions.launch(&jit, (1, 1), 0.125, 3.0, &mut out)?;
//! for (device, host) in out.to_vec()?[0].into_iter().zip(all(0.125f64, 3.0)) {
//!     assert!((device - host).abs() < 1e-15);
//! }
//! # Ok(())
//! # }
//! ```
//!
//! Functions of statistics, angles in half turns, and what is left of CUDA's:
//!
//! ```
//! use kiln::prelude::*;
//!
//! #[device_fn]
//! fn all<T: Float>(x: T, y: T) -> [T; 17] {
//!     let (log, _) = y.ln_gamma();
//!     let (fraction, whole) = y.modf();
//!     let (rest, _) = y.remquo(x);
//!     [
//!         x.sin_pi(), x.cos_pi(), x.erfcx(), x.erf_inv(), x.erfc_inv(), x.normcdf(),
//!         x.normcdf_inv(), y.gamma(), log, x.rcbrt(), x.rhypot(y), y.fdim(x), y.saturate(),
//!         fraction, whole, y.remainder(x), rest,
//!     ]
//! }
//!
//! #[kernel]
//! fn functions(x: f64, y: f64, out: &mut [[f64; 17]]) {
//!     out[0] = all(x, y);
//! }
//!
//! # fn main() -> kiln::Result<()> {
//! let jit = Jit::new()?;
//! let mut out = jit.zeros::<[f64; 17]>(1)?;
//! functions.launch(&jit, (1, 1), 0.25, 4.5, &mut out)?;
//! for (device, host) in out.to_vec()?[0].into_iter().zip(all(0.25f64, 4.5)) {
//!     assert!((device - host).abs() < 1e-14);
//! }
//! # Ok(())
//! # }
//! ```

mod approximation;
pub mod directed;
mod error;
mod exponential;
mod format;
mod gamma;
mod host;
mod hyperbolic;
mod inverse;
mod parts;
pub(crate) mod power;
mod root;
pub(crate) mod rows;
mod trigonometric;

use std::ops::Neg;

use kiln_jit_core::build::Val;
use kiln_jit_core::ir::{IntrinsicDef, Type, TypePattern};

use crate::number::Signed as _;
use crate::number::SignedOps;
use crate::plain::number::NumOps as _;
use crate::table::{builds, methods};
use parts::Bits;
use rows::{EXPONENT, WITH_EXPONENT, exponents, function, function_of_two, instruction};

methods! {
    /// What can be done with a [`Float`](crate::plain::number::Float) besides.
    host FloatOps: [SignedOps + Neg<Output = Self>] on [f32, f64, half::f16, half::bf16];
    /// Mathematical functions, as methods of values. All take floats.
    builder Math;

    all {
        /// The square root, correctly rounded; NaN for negative numbers.
        fn sqrt(self) -> Self = instruction!("math.sqrt", "llvm.sqrt");
        /// The largest integer that is not greater.
        fn floor(self) -> Self = instruction!("math.floor", "llvm.floor");
        /// The smallest integer that is not less.
        fn ceil(self) -> Self = instruction!("math.ceil", "llvm.ceil");
        /// The integer next to it towards zero.
        fn trunc(self) -> Self = instruction!("math.trunc", "llvm.trunc");
        /// The nearest integer, ties to even.
        fn round_ties_even(self) -> Self = instruction!("math.rint", "llvm.rint");
        /// The nearest integer, ties away from zero.
        fn round(self) -> Self = function!("math.round", parts::round);
        /// What is left of the number without [`trunc`](Self::trunc); NaN for infinities.
        fn fract(self) -> Self = function!("math.fract", parts::fract);
        /// `self * factor + addend` with one rounding.
        fn mul_add(self, factor: Self, addend: Self) -> Self = instruction!("math.fma", "llvm.fma");
        /// The number with the sign of another, that of a zero, too, and of a NaN, but for one that an
        /// operation gave: its sign is left to the machine.
        fn copysign(self, sign: Self) -> Self = instruction!("math.copysign", "llvm.copysign");

        /// `e` to this power (see the module's table of errors, also for the following).
        fn exp(self) -> Self = function!("math.exp", exponential::exp, approximation::EXP);
        /// 2 to this power.
        fn exp2(self) -> Self = function!("math.exp2", exponential::exp2, approximation::EXP2);
        /// The natural logarithm; of zero minus infinity, of negative numbers NaN, like the others.
        fn ln(self) -> Self = function!("math.log", exponential::ln, approximation::LN);
        /// The logarithm to base 2.
        fn log2(self) -> Self = function!("math.log2", exponential::log2, approximation::LOG2);
        /// The logarithm to base 10.
        fn log10(self) -> Self = function!("math.log10", exponential::log10, approximation::LOG10);
        /// The logarithm to a base, a quotient of two natural ones.
        fn log(self, base: Self) -> Self = function!("math.log_of_base", power::log);
        /// `e` to this power less 1, also of small numbers.
        fn exp_m1(self) -> Self = function!("math.exp_m1", hyperbolic::exp_m1);
        /// The natural logarithm of the number and 1, also of small numbers; of -1 minus infinity, below NaN.
        fn ln_1p(self) -> Self = function!("math.ln_1p", hyperbolic::ln_1p);
        /// 10 to this power (CUDA `exp10`).
        fn exp10(self) -> Self
            host(|x| Self::from_f64(10f64.powf(x.to_f64())))
            = function!("math.exp10", exponential::exp10);
        /// The sine of an angle in radians; NaN for infinities.
        fn sin(self) -> Self = function!("math.sin", trigonometric::sin, approximation::SIN);
        /// The cosine of an angle in radians; NaN for infinities.
        fn cos(self) -> Self = function!("math.cos", trigonometric::cos, approximation::COS);
        /// The sine and the cosine, with the same bits as [`sin`](Self::sin) and [`cos`](Self::cos) and at
        /// little more than the cost of one; in the builder the fields `0` and `1` of a struct.
        fn sin_cos(self) -> (Self, Self) = function_of_two!("math.sin_cos", trigonometric::sin_cos, approximation::SIN_COS);
        /// The tangent of an angle in radians; NaN for infinities.
        fn tan(self) -> Self = function!("math.tan", trigonometric::tan, approximation::TAN);
        /// The sine of pi times the number, of an angle in half turns (C23 and CUDA `sinpi`): of integers 0; NaN for
        /// infinities.
        fn sin_pi(self) -> Self
            host(|x| Self::from_f64(host::sin_pi(x.to_f64())))
            = function!("math.sin_pi", trigonometric::sin_pi);
        /// The cosine of pi times the number, of an angle in half turns (C23 and CUDA `cospi`): of integers 1 or -1;
        /// NaN for infinities.
        fn cos_pi(self) -> Self
            host(|x| Self::from_f64(host::cos_pi(x.to_f64())))
            = function!("math.cos_pi", trigonometric::cos_pi);
        /// The arc tangent, from -pi / 2 to pi / 2.
        fn atan(self) -> Self = function!("math.atan", inverse::atan);
        /// The angle of the point `(other, self)`, from -pi to pi, with C's `atan2` for special values.
        fn atan2(self, other: Self) -> Self = function!("math.atan2", inverse::atan2);
        /// The arc sine, from -pi / 2 to pi / 2; NaN beyond 1.
        fn asin(self) -> Self = function!("math.asin", inverse::asin);
        /// The arc cosine, from 0 to pi; NaN beyond 1.
        fn acos(self) -> Self = function!("math.acos", inverse::acos);
        /// The hyperbolic tangent.
        fn tanh(self) -> Self = function!("math.tanh", exponential::tanh, approximation::TANH);
        /// The hyperbolic sine.
        fn sinh(self) -> Self = function!("math.sinh", hyperbolic::sinh);
        /// The hyperbolic cosine.
        fn cosh(self) -> Self = function!("math.cosh", hyperbolic::cosh);
        /// The inverse of the hyperbolic sine.
        fn asinh(self) -> Self = function!("math.asinh", hyperbolic::asinh);
        /// The inverse of the hyperbolic cosine, from 0 on; NaN below 1.
        fn acosh(self) -> Self = function!("math.acosh", hyperbolic::acosh);
        /// The inverse of the hyperbolic tangent; of 1 and -1 an infinity, beyond NaN.
        fn atanh(self) -> Self = function!("math.atanh", hyperbolic::atanh);
        /// The error function: twice the integral of e^(-t^2) from 0 to the number, by the root of pi (CUDA `erf`).
        fn erf(self) -> Self
            host(|x| Self::from_f64(error::on_host::erf(x.to_f64())))
            = function!("math.erf", error::erf);
        /// 1 less the [error function](Self::erf), also where that is next to 1 (CUDA `erfc`).
        fn erfc(self) -> Self
            host(|x| Self::from_f64(error::on_host::erfc(x.to_f64())))
            = function!("math.erfc", error::erfc);
        /// `e^(x^2)` times the [complement](Self::erfc) of the error function, which does not vanish where that does
        /// (CUDA `erfcx`).
        fn erfcx(self) -> Self
            host(|x| Self::from_f64(error::on_host::erfcx(x.to_f64())))
            = function!("math.erfcx", error::erfcx);
        /// The number whose [error function](Self::erf) this is (CUDA `erfinv`): of 1 and -1 an infinity, beyond NaN.
        fn erf_inv(self) -> Self
            host(|x| Self::from_f64(error::on_host::erf_inv(x.to_f64())))
            = function!("math.erf_inv", error::erf_inv);
        /// The number whose [complement](Self::erfc) this is (CUDA `erfcinv`): of 0 and 2 an infinity, beyond NaN.
        fn erfc_inv(self) -> Self
            host(|x| Self::from_f64(error::on_host::erfc_inv(x.to_f64())))
            = function!("math.erfc_inv", error::erfc_inv);
        /// How likely a number of the normal distribution, of mean 0 and standard deviation 1, is to be less (CUDA
        /// `normcdf`).
        fn normcdf(self) -> Self
            host(|x| Self::from_f64(error::on_host::normcdf(x.to_f64())))
            = function!("math.normcdf", error::normcdf);
        /// The number of which [`normcdf`](Self::normcdf) is this (CUDA `normcdfinv`): of 0 and 1 an infinity, beyond NaN.
        fn normcdf_inv(self) -> Self
            host(|x| Self::from_f64(error::on_host::normcdf_inv(x.to_f64())))
            = function!("math.normcdf_inv", error::normcdf_inv);
        /// The gamma function, of a positive integer the factorial of that before it (C and CUDA `tgamma`): of 0
        /// infinity, with its sign; NaN for negative integers.
        fn gamma(self) -> Self
            host(|x| Self::from_f64(gamma::on_host::gamma(x.to_f64())))
            = function!("math.gamma", gamma::gamma);
        /// The natural logarithm of the magnitude of the [gamma function](Self::gamma), and the sign of that, 1 or -1
        /// (C and CUDA `lgamma`): of 0 and of negative integers infinity. In the builder the fields `0` and `1` of a
        /// struct.
        fn ln_gamma(self) -> (Self, i32)
            host(|x| {
                let (value, sign) = gamma::on_host::ln_gamma(x.to_f64());
                (Self::from_f64(value), sign)
            })
            = exponents!("math.ln_gamma", WITH_EXPONENT, gamma::ln_gamma);
        /// The cube root, also of a negative number.
        fn cbrt(self) -> Self = function!("math.cbrt", root::cbrt);
        /// The length of the vector of two numbers, without overflow on the way; infinite with one that is.
        fn hypot(self, other: Self) -> Self = function!("math.hypot", root::hypot);
        /// The power with an exponent of the same type, with C's `pow` for special values.
        fn powf(self, exponent: Self) -> Self = function!("math.pow", power::pow, approximation::POW);

        /// The power by repeated squaring: `x.powi(3)` is two multiplications, and where the exponent is
        /// not known yet there is a loop of the same ones. A negative exponent gives the reciprocal of
        /// the positive power.
        fn powi(self, exponent: i32) -> Self
            host(|x, n| power::known_power(x, Self::ONE, n))
            = builds!(|x, n| power::powi(x, n));
        /// `1 / self`.
        fn recip(self) -> Self
            host(|x| Self::ONE / x)
            = builds!(|x| x.builder().lit(x.ty(), 1.0) / x);
        /// The reciprocal of the square root (CUDA `rsqrt`), off by 1.5 units in the last place at most, in which it may
        /// differ from `1 / self.sqrt()`, as it takes no division; of 0 infinite, of negative numbers NaN. One instruction
        /// where [`approximate`](crate::plain::precision::approximate()) permits it.
        fn rsqrt(self) -> Self
            host(|x| Self::ONE / x.sqrt())
            = function!("math.rsqrt", root::rsqrt, approximation::RSQRT);
        /// `1 / self.cbrt()`, two operations that round (CUDA `rcbrt`).
        fn rcbrt(self) -> Self
            host(|x| Self::ONE / x.cbrt())
            = builds!(|x| x.builder().lit(x.ty(), 1.0) / x.cbrt());
        /// The reciprocal of [`hypot`](Self::hypot), without overflow on the way (CUDA `rhypot`).
        fn rhypot(self, other: Self) -> Self
            host(|x, y| Self::from_f64(host::rhypot(x.to_f64(), y.to_f64())))
            = function!("math.rhypot", root::rhypot);
        /// How much the number is more than another, rounded once, or 0 if it is not (C and CUDA `fdim`); NaN if one of
        /// them is.
        fn fdim(self, other: Self) -> Self
            host(|x, y| if x <= y { Self::ZERO } else { x - y })
            = function!("math.fdim", parts::fdim);
        /// The number from 0 to 1 that is nearest (CUDA `__saturatef`); 0 for NaN.
        fn saturate(self) -> Self
            host(|x| if x > Self::ZERO { x.min(Self::ONE) } else { Self::ZERO })
            = builds!(|x| x.max(0.0).min(1.0));
        /// What is behind the point, and the integer next to it towards zero, both with the sign of the number (C and
        /// CUDA `modf`): of infinities 0 and themselves. In the builder the fields `0` and `1` of a struct.
        fn modf(self) -> (Self, Self)
            host(|x| {
                let (fraction, whole) = host::modf(x.to_f64());
                (Self::from_f64(fraction), Self::from_f64(whole))
            })
            = function_of_two!("math.modf", parts::modf);
        /// What is left of the number without the multiple of another that is nearest to it, of two such the even one
        /// (IEEE 754 `remainder`; C and CUDA `remainder`): exact, from minus half of the other's magnitude to half of it;
        /// NaN for infinities and of a division by 0. `%` is towards zero instead.
        fn remainder(self, divisor: Self) -> Self
            host(|x, y| Self::from_f64(host::remquo(x.to_f64(), y.to_f64()).0))
            = function!("math.remainder", parts::remainder);
        /// The [remainder](Self::remainder) and the lowest three bits of the integer that is nearest to the quotient, with
        /// the quotient's sign (C and CUDA `remquo`); 0 where the remainder is NaN. In the builder the fields `0` and `1`
        /// of a struct.
        fn remquo(self, divisor: Self) -> (Self, i32)
            host(|x, y| {
                let (remainder, quotient) = host::remquo(x.to_f64(), y.to_f64());
                (Self::from_f64(remainder), quotient)
            })
            = exponents!("math.remquo", WITH_EXPONENT, parts::remquo, of two floats);
        /// An angle in radians as one in degrees, a product.
        fn to_degrees(self) -> Self = function!("math.to_degrees", parts::to_degrees);
        /// An angle in degrees as one in radians, a product.
        fn to_radians(self) -> Self = function!("math.to_radians", parts::to_radians);
        /// The number times a power of 2, rounded once (C and CUDA `ldexp`).
        fn ldexp(self, exponent: i32) -> Self
            host(|x, n| Self::from_f64(host::ldexp(x.to_f64(), n)))
            = exponents!("math.ldexp", TypePattern::Chosen, parts::ldexp);
        /// A fraction whose magnitude is from 1/2 to 1 and the power of 2 that it is multiplied by (C and CUDA
        /// `frexp`); zeros, infinities and NaN are themselves, with 0. In the builder the fields `0` and `1` of a struct.
        fn frexp(self) -> (Self, i32)
            host(|x| {
                let (fraction, exponent) = host::frexp(x.to_f64());
                (Self::from_f64(fraction), exponent)
            })
            = exponents!("math.frexp", WITH_EXPONENT, parts::frexp);
        /// The exponent of 2 with which the number is 1 to 2 times that power (CUDA `ilogb`); of 0 and NaN `i32::MIN`,
        /// of infinities `i32::MAX`.
        fn ilogb(self) -> i32
            host(|x| host::ilogb(x.to_f64()))
            = exponents!("math.ilogb", EXPONENT, parts::ilogb);
        /// The exponent of 2 with which the number is 1 to 2 times that power, as a float (C and CUDA `logb`): exact, also
        /// of subnormal numbers; of 0 minus infinity, of infinities infinity, of NaN that.
        fn logb(self) -> Self
            host(|x| Self::from_f64(host::logb(x.to_f64())))
            = function!("math.logb", parts::logb);
        /// Whether the number is NaN.
        fn is_nan(self) -> bool = builds!(|x| x.ne(x));
        /// Whether the number is neither infinite nor NaN.
        fn is_finite(self) -> bool = builds!(|x| x.abs().lt(x.builder().lit(x.ty(), f64::INFINITY)));
        /// Whether the number is an infinity.
        fn is_infinite(self) -> bool = builds!(|x| x.abs().eq(x.builder().lit(x.ty(), f64::INFINITY)));
        /// Whether the sign is minus, that of a zero and of a NaN, too, but for a NaN that an operation gave: its sign
        /// is left to the machine.
        fn is_sign_negative(self) -> bool = builds!(|x| sign(x).lt(x.builder().lit(x.ty(), 0.0)));
        /// Whether the sign is plus, where [`is_sign_negative`](Self::is_sign_negative) says no.
        fn is_sign_positive(self) -> bool = builds!(|x| sign(x).gt(x.builder().lit(x.ty(), 0.0)));
    }
    known {
        /// Whether the number is neither zero, subnormal, infinite nor NaN.
        fn is_normal(self) -> bool = builds!(|x| Bits::map(x, Bits::is_normal));
        /// Whether the number is closer to zero than normal ones, and not zero.
        fn is_subnormal(self) -> bool = builds!(|x| Bits::map(x, Bits::is_subnormal));
        /// The least number that is greater, of the largest one infinity; infinity and NaN stay.
        fn next_up(self) -> Self = builds!(|x| Bits::map(x, Bits::next_up));
        /// The largest number that is less, of the least one minus infinity; minus infinity and NaN stay.
        fn next_down(self) -> Self = builds!(|x| Bits::map(x, Bits::next_down));
        /// The bits, as an unsigned integer of the same width. In kernels `f32::from_bits(n)` gives the float of
        /// bits, in the builder [`bitcast`](Val::bitcast).
        fn to_bits(self) -> Bits = builds!(|x| x.bitcast(bits_of(x.ty())));
    }
}

/// The row that functions of this chapter call for large angles.
pub(crate) fn large_angle() -> &'static IntrinsicDef {
    &trigonometric::LARGE_ANGLE
}

/// 1 with the sign of a float.
#[track_caller]
fn sign(x: Val<'_>) -> Val<'_> {
    x.builder().lit(x.ty(), 1.0).copysign(x)
}

/// The integer type of a float's bits.
pub(crate) fn bits_of(ty: Type) -> Type {
    ty.as_scalar()
        .map_or(ty, |scalar| Type::scalar(scalar.unsigned()))
}
