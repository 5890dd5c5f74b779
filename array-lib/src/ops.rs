//! Operators and named element-wise functions: one line each.

use std::ops;

use half::{bf16, f16};
use kiln_device_stdlib::math::Math;
use kiln_device_stdlib::number::{Number, Signed};
use kiln_jit_core::build::Val;
use kiln_jit_core::ir::Type;
use kiln_jit_core::value::DeviceType;

use crate::{
    Array, Element, ElementFn, Expr, FloatElement, IntoExpr, NumberElement, SignedElement,
    broadcast,
};

macro_rules! operators {
    ($($trait:ident $method:ident for $($scalar:ident)*;)*) => {$(
        operators!(@on $trait $method Expr<T>, &Expr<T>, Array<T>, &Array<T>);
        $(operators!(@scalar $trait $method $scalar, Expr<$scalar>, &Expr<$scalar>, Array<$scalar>, &Array<$scalar>);)*
    )*};
    (@on $trait:ident $method:ident $($left:ty),*) => {$(
        impl<T: Element, R: IntoExpr<T>> ops::$trait<R> for $left {
            type Output = Expr<T>;
            #[track_caller]
            fn $method(self, right: R) -> Expr<T> {
                let right = right.into_expr();
                self.into_expr().binary(right, stringify!($method), |a, b| ops::$trait::$method(a, b))
            }
        }
    )*};
    (@scalar $trait:ident $method:ident $scalar:ident, $($right:ty),*) => {$(
        #[diagnostic::do_not_recommend]
        impl ops::$trait<$right> for $scalar {
            type Output = Expr<$scalar>;
            #[track_caller]
            fn $method(self, right: $right) -> Expr<$scalar> {
                ops::$trait::$method(self.into_expr(), right)
            }
        }
    )*};
}
operators! {
    Add add for f32 f64 i32 i64 u32 u64 i8 i16 u8 u16 f16 bf16;
    Sub sub for f32 f64 i32 i64 u32 u64 i8 i16 u8 u16 f16 bf16;
    Mul mul for f32 f64 i32 i64 u32 u64 i8 i16 u8 u16 f16 bf16;
    Div div for f32 f64 i32 i64 u32 u64 i8 i16 u8 u16 f16 bf16;
    Rem rem for f32 f64 i32 i64 u32 u64 i8 i16 u8 u16 f16 bf16;
    BitAnd bitand for i32 i64 u32 u64 i8 i16 u8 u16 bool;
    BitOr bitor for i32 i64 u32 u64 i8 i16 u8 u16 bool;
    BitXor bitxor for i32 i64 u32 u64 i8 i16 u8 u16 bool;
    Shl shl for i32 i64 u32 u64 i8 i16 u8 u16;
    Shr shr for i32 i64 u32 u64 i8 i16 u8 u16;
}

macro_rules! unary_operators {
    ($($trait:ident $method:ident: $($operand:ty),*;)*) => {$($(
        impl<T: Element> ops::$trait for $operand {
            type Output = Expr<T>;
            fn $method(self) -> Expr<T> {
                self.into_expr().unary(stringify!($method), |x| ops::$trait::$method(x))
            }
        }
    )*)*};
}
unary_operators! {
    Neg neg: Expr<T>, &Expr<T>, Array<T>, &Array<T>;
    Not not: Expr<T>, &Expr<T>, Array<T>, &Array<T>;
}

/// Methods of expressions and of arrays, which become expressions. Those with `known` have an argument that is part of
/// the code; the others' arguments are arrays, expressions and numbers.
macro_rules! functions {
    ($(
        $(#[$doc:meta])*
        $bound:ident: $name:ident($($arg:ident: $of:ty),*) -> $result:ty = |$($x:ident),*| $body:expr;
    )*) => {$(
        impl<T: $bound> Expr<T> {
            $(#[$doc])*
            #[track_caller]
            pub fn $name(self $(, $arg: impl IntoExpr<$of>)*) -> Expr<$result> {
                functions!(@apply self, $name($($arg: $of),*) -> $result = |$($x),*| $body)
            }
        }
        impl<T: $bound> Array<T> {
            $(#[$doc])*
            #[track_caller]
            pub fn $name(&self $(, $arg: impl IntoExpr<$of>)*) -> Expr<$result> {
                self.expr().$name($($arg),*)
            }
        }
    )*};
    (@apply $this:ident, $name:ident() -> $result:ty = |$x:ident| $body:expr) => {
        $this.unary(stringify!($name), |$x: Val<'_>| $body)
    };
    (@apply $this:ident, $name:ident($arg:ident: $of:ty) -> $result:ty = |$x:ident, $y:ident| $body:expr) => {
        $this.binary::<$of, $result>($arg.into_expr(), stringify!($name), |$x, $y| $body)
    };
    (@apply $this:ident, $name:ident($a:ident: $of:ty, $b:ident: $other:ty) -> $result:ty
        = |$x:ident, $y:ident, $z:ident| $body:expr) => {{
        let operation = ElementFn::operation(stringify!($name), |[$x, $y, $z]: [Val<'_>; 3]| $body);
        broadcast::<(T, $of, $other), $result>(($this, $a, $b), operation)
    }};
}
functions! {
    /// Whether each element equals the other; false for NaN.
    Element: eq(other: T) -> bool = |x, y| x.eq(y);
    /// Whether each element differs from the other; true for NaN.
    Element: ne(other: T) -> bool = |x, y| x.ne(y);
    /// Whether each element is less than the other; false for NaN.
    NumberElement: lt(other: T) -> bool = |x, y| x.lt(y);
    /// Whether each element is less than the other or equal; false for NaN.
    NumberElement: le(other: T) -> bool = |x, y| x.le(y);
    /// Whether each element is greater than the other; false for NaN.
    NumberElement: gt(other: T) -> bool = |x, y| x.gt(y);
    /// Whether each element is greater than the other or equal; false for NaN.
    NumberElement: ge(other: T) -> bool = |x, y| x.ge(y);

    /// The smaller of two elements; NaN if one of them is, as NumPy's `minimum`.
    NumberElement: minimum(other: T) -> T = |x, y| (x.lt(y) | x.ne(x)).select(x, y);
    /// The larger of two elements; NaN if one of them is, as NumPy's `maximum`.
    NumberElement: maximum(other: T) -> T = |x, y| (x.gt(y) | x.ne(x)).select(x, y);
    /// The smaller of two elements; the other one if one of them is NaN, as NumPy's `fmin`.
    NumberElement: fmin(other: T) -> T = |x, y| x.min(y);
    /// The larger of two elements; the other one if one of them is NaN, as NumPy's `fmax`.
    NumberElement: fmax(other: T) -> T = |x, y| x.max(y);
    /// Each element, or the limit that it is beyond; NaN stays (NumPy's `clip`).
    NumberElement: clamp(low: T, high: T) -> T = |x, low, high| Number::clamp(x, low, high);
    /// What is left of each element without a multiple of the other, never negative. Of integers by 0 it is 0.
    NumberElement: rem_euclid(by: T) -> T = |x, y| Number::rem_euclid(x, y);

    /// The absolute value; the smallest integer is its own.
    SignedElement: abs() -> T = |x| Signed::abs(x);
    /// -1, 0 or 1, as the element is negative, zero or positive; NaN stays (NumPy's `sign`).
    SignedElement: sign() -> T = |x| sign(x);

    /// The square root; NaN for negative elements.
    FloatElement: sqrt() -> T = |x| Math::sqrt(x);
    /// 1 divided by the square root.
    FloatElement: rsqrt() -> T = |x| Math::rsqrt(x);
    /// The cube root.
    FloatElement: cbrt() -> T = |x| Math::cbrt(x);
    /// 1 divided by each element.
    FloatElement: recip() -> T = |x| Math::recip(x);
    /// The largest integer that is not greater.
    FloatElement: floor() -> T = |x| Math::floor(x);
    /// The smallest integer that is not less.
    FloatElement: ceil() -> T = |x| Math::ceil(x);
    /// The integer next to each element towards zero.
    FloatElement: trunc() -> T = |x| Math::trunc(x);
    /// The nearest integer, of two the one further from zero. NumPy's `round` is [`round_ties_even`](Self::round_ties_even).
    FloatElement: round() -> T = |x| Math::round(x);
    /// The nearest integer, of two the even one.
    FloatElement: round_ties_even() -> T = |x| Math::round_ties_even(x);
    /// What is left of each element without its integer part.
    FloatElement: fract() -> T = |x| Math::fract(x);
    /// `e` to this power.
    FloatElement: exp() -> T = |x| Math::exp(x);
    /// 2 to this power.
    FloatElement: exp2() -> T = |x| Math::exp2(x);
    /// 10 to this power.
    FloatElement: exp10() -> T = |x| Math::exp10(x);
    /// `e` to this power less 1, also of small elements.
    FloatElement: exp_m1() -> T = |x| Math::exp_m1(x);
    /// The natural logarithm; NaN for negative elements.
    FloatElement: ln() -> T = |x| Math::ln(x);
    /// The logarithm to base 2.
    FloatElement: log2() -> T = |x| Math::log2(x);
    /// The logarithm to base 10.
    FloatElement: log10() -> T = |x| Math::log10(x);
    /// The natural logarithm of 1 and the element, also of small ones.
    FloatElement: ln_1p() -> T = |x| Math::ln_1p(x);
    /// The logarithm to a base.
    FloatElement: log(base: T) -> T = |x, y| Math::log(x, y);
    /// The sine of an angle in radians.
    FloatElement: sin() -> T = |x| Math::sin(x);
    /// The cosine of an angle in radians.
    FloatElement: cos() -> T = |x| Math::cos(x);
    /// The tangent of an angle in radians.
    FloatElement: tan() -> T = |x| Math::tan(x);
    /// The sine of pi times the element.
    FloatElement: sin_pi() -> T = |x| Math::sin_pi(x);
    /// The cosine of pi times the element.
    FloatElement: cos_pi() -> T = |x| Math::cos_pi(x);
    /// The arc sine; NaN beyond 1.
    FloatElement: asin() -> T = |x| Math::asin(x);
    /// The arc cosine; NaN beyond 1.
    FloatElement: acos() -> T = |x| Math::acos(x);
    /// The arc tangent.
    FloatElement: atan() -> T = |x| Math::atan(x);
    /// The angle of the point `(other, self)`, from -pi to pi.
    FloatElement: atan2(other: T) -> T = |x, y| Math::atan2(x, y);
    /// The hyperbolic sine.
    FloatElement: sinh() -> T = |x| Math::sinh(x);
    /// The hyperbolic cosine.
    FloatElement: cosh() -> T = |x| Math::cosh(x);
    /// The hyperbolic tangent.
    FloatElement: tanh() -> T = |x| Math::tanh(x);
    /// The inverse of the hyperbolic sine.
    FloatElement: asinh() -> T = |x| Math::asinh(x);
    /// The inverse of the hyperbolic cosine; NaN below 1.
    FloatElement: acosh() -> T = |x| Math::acosh(x);
    /// The inverse of the hyperbolic tangent; NaN beyond 1.
    FloatElement: atanh() -> T = |x| Math::atanh(x);
    /// The error function.
    FloatElement: erf() -> T = |x| Math::erf(x);
    /// 1 less the error function, also where that is next to 1.
    FloatElement: erfc() -> T = |x| Math::erfc(x);
    /// `e^(x^2)` times the complement of the error function.
    FloatElement: erfcx() -> T = |x| Math::erfcx(x);
    /// The number whose error function this is.
    FloatElement: erf_inv() -> T = |x| Math::erf_inv(x);
    /// The number whose complement of the error function is this; of 0 and 2 an infinity, beyond NaN.
    FloatElement: erfc_inv() -> T = |x| Math::erfc_inv(x);
    /// How likely a number of the normal distribution is to be less.
    FloatElement: normcdf() -> T = |x| Math::normcdf(x);
    /// The number than which one of the normal distribution is less so likely; of 0 and 1 an infinity, beyond NaN.
    FloatElement: normcdf_inv() -> T = |x| Math::normcdf_inv(x);
    /// The gamma function.
    FloatElement: gamma() -> T = |x| Math::gamma(x);
    /// The natural logarithm of the gamma function's magnitude.
    FloatElement: ln_gamma() -> T = |x| Math::ln_gamma(x).field("0");
    /// The element from 0 to 1 that is nearest; 0 for NaN.
    FloatElement: saturate() -> T = |x| Math::saturate(x);
    /// An angle in radians as one in degrees.
    FloatElement: to_degrees() -> T = |x| Math::to_degrees(x);
    /// An angle in degrees as one in radians.
    FloatElement: to_radians() -> T = |x| Math::to_radians(x);
    /// The power with an exponent of the same type.
    FloatElement: powf(exponent: T) -> T = |x, y| Math::powf(x, y);
    /// The length of the vector of two elements, without overflow on the way.
    FloatElement: hypot(other: T) -> T = |x, y| Math::hypot(x, y);
    /// 1 divided by the length of the vector of two elements.
    FloatElement: rhypot(other: T) -> T = |x, y| Math::rhypot(x, y);
    /// The element with the sign of another.
    FloatElement: copysign(sign: T) -> T = |x, y| Math::copysign(x, y);
    /// How much the element is more than another, or 0.
    FloatElement: fdim(other: T) -> T = |x, y| Math::fdim(x, y);
    /// The element times a factor and another added, rounded once.
    FloatElement: mul_add(factor: T, addend: T) -> T = |x, y, z| Math::mul_add(x, y, z);
    /// Whether the element is NaN.
    FloatElement: is_nan() -> bool = |x| Math::is_nan(x);
    /// Whether the element is neither infinite nor NaN.
    FloatElement: is_finite() -> bool = |x| Math::is_finite(x);
    /// Whether the element is an infinity.
    FloatElement: is_infinite() -> bool = |x| Math::is_infinite(x);
}

fn sign(x: Val<'_>) -> Val<'_> {
    let k = x.builder();
    let number = |n: i32| match k.type_name(x.ty()).starts_with(['f', 'b']) {
        true => k.lit(x.ty(), f64::from(n)),
        false => k.lit(x.ty(), n),
    };
    let not_positive = x
        .lt(number(0))
        .select(number(-1), x.eq(number(0)).select(number(0), x));
    x.gt(number(0)).select(number(1), not_positive)
}

impl<T: FloatElement> Expr<T> {
    /// Each element to a power known now, which is part of the code.
    ///
    /// ```
    /// use kiln::prelude::*;
    ///
    /// # fn main() -> kiln::Result<()> {
    /// let arrays = Arrays::new(&Jit::new()?);
    /// let x = arrays.vector(vec![-4.0f32, 2.0])?;
    /// assert_eq!(x.powi(3).eval()?.to_vec()?, [-64.0, 8.0]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn powi(self, exponent: i32) -> Expr<T> {
        self.unary(format!("powi {exponent}"), move |x| Math::powi(x, exponent))
    }
}

impl<T: FloatElement> Array<T> {
    /// Each element to a power known now; see [`Expr::powi`].
    pub fn powi(&self, exponent: i32) -> Expr<T> {
        self.expr().powi(exponent)
    }
}

impl<T: Element> Expr<T> {
    /// The elements converted to another type, with the meaning of Rust's `as`; a `bool` is 0 or 1, and a number as a
    /// `bool` whether it is not 0.
    ///
    /// ```
    /// use kiln::prelude::*;
    ///
    /// # fn main() -> kiln::Result<()> {
    /// let arrays = Arrays::new(&Jit::new()?);
    /// let x = arrays.vector(vec![-1.5f32, 0.0, 300.0])?;
    /// assert_eq!(x.cast::<u8>().eval()?.to_vec()?, [0, 0, 255]);
    /// assert_eq!(x.cast::<bool>().cast::<f64>().eval()?.to_vec()?, [1.0, 0.0, 1.0]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn cast<U: Element>(self) -> Expr<U> {
        let to = <U as DeviceType>::FORM.digest();
        if to == <T as DeviceType>::FORM.digest() {
            return self.retyped();
        }
        self.unary(format!("cast {to:?}"), |x| cast::<U>(x))
    }
}

impl<T: Element> Array<T> {
    /// The elements converted to another type; see [`Expr::cast`].
    pub fn cast<U: Element>(&self) -> Expr<U> {
        self.expr().cast()
    }
}

fn cast<U: Element>(x: Val<'_>) -> Val<'_> {
    let k = x.builder();
    let ty = k.ty::<U>();
    match (x.ty() == Type::BOOL, ty == Type::BOOL) {
        (true, false) => x.cast(Type::U8).cast(ty),
        (false, true) => x.ne(k.zero(x.ty())),
        _ => x.cast(ty),
    }
}

/// The elements of `a` where the condition is true, those of `b` where it is false (NumPy's `where`).
///
/// ```
/// use kiln::array::where_;
/// use kiln::prelude::*;
///
/// # fn main() -> kiln::Result<()> {
/// let arrays = Arrays::new(&Jit::new()?);
/// let x = arrays.vector(vec![-1.0f32, 4.0, 9.0])?;
/// let y = where_(x.gt(0.0), x.sqrt(), 0.0);
/// assert_eq!(y.eval()?.to_vec()?, [0.0, 2.0, 3.0]);
/// let inside = x.gt(0.0) & x.lt(5.0);
/// assert_eq!((!inside).select(1, 0).eval()?.to_vec()?, [1, 0, 1]);
/// # Ok(())
/// # }
/// ```
#[track_caller]
pub fn where_<T: Element>(
    condition: impl IntoExpr<bool>,
    a: impl IntoExpr<T>,
    b: impl IntoExpr<T>,
) -> Expr<T> {
    let operation = ElementFn::operation("where", |[condition, a, b]: [Val<'_>; 3]| {
        condition.select(a, b)
    });
    broadcast::<(bool, T, T), T>((condition, a, b), operation)
}

impl Expr<bool> {
    /// The elements of `a` where this is true, those of `b` where it is false; [`where_`] as a method.
    #[track_caller]
    pub fn select<T: Element>(self, a: impl IntoExpr<T>, b: impl IntoExpr<T>) -> Expr<T> {
        where_(self, a, b)
    }
}

impl Array<bool> {
    /// The elements of `a` where this is true, those of `b` where it is false; see [`where_`].
    #[track_caller]
    pub fn select<T: Element>(&self, a: impl IntoExpr<T>, b: impl IntoExpr<T>) -> Expr<T> {
        where_(self, a, b)
    }
}
