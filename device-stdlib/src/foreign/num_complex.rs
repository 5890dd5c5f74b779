//! `Complex` of num-complex.

use kiln_kernel_macro::device_fn;
use num_complex::Complex;

use crate::plain::number::Float;

#[device_fn(foreign)]
impl<T: Float> Complex<T> {
    fn new(re: T, im: T) -> Self {
        Complex { re, im }
    }
    fn i() -> Self {
        Complex {
            re: T::ZERO,
            im: T::ONE,
        }
    }
    fn conj(&self) -> Self {
        Complex {
            re: self.re,
            im: -self.im,
        }
    }
    fn norm_sqr(&self) -> T {
        self.re * self.re + self.im * self.im
    }
    fn inv(&self) -> Self {
        let norm_sqr = self.re * self.re + self.im * self.im;
        Complex {
            re: self.re / norm_sqr,
            im: -self.im / norm_sqr,
        }
    }
    fn scale(&self, t: T) -> Self {
        Complex {
            re: self.re * t,
            im: self.im * t,
        }
    }
    fn unscale(&self, t: T) -> Self {
        Complex {
            re: self.re / t,
            im: self.im / t,
        }
    }
}

#[device_fn(foreign)]
impl<T: Float> Neg for Complex<T> {
    type Output = Self;
    fn neg(self) -> Self {
        Complex {
            re: -self.re,
            im: -self.im,
        }
    }
}

#[device_fn(foreign)]
impl<T: Float> Add for Complex<T> {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Complex {
            re: self.re + other.re,
            im: self.im + other.im,
        }
    }
}

#[device_fn(foreign)]
impl<T: Float> Sub for Complex<T> {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Complex {
            re: self.re - other.re,
            im: self.im - other.im,
        }
    }
}

#[device_fn(foreign)]
impl<T: Float> Mul for Complex<T> {
    type Output = Self;
    fn mul(self, other: Self) -> Self {
        Complex {
            re: self.re * other.re - self.im * other.im,
            im: self.re * other.im + self.im * other.re,
        }
    }
}

#[device_fn(foreign)]
impl<T: Float> Div for Complex<T> {
    type Output = Self;
    fn div(self, other: Self) -> Self {
        let norm_sqr = other.re * other.re + other.im * other.im;
        Complex {
            re: (self.re * other.re + self.im * other.im) / norm_sqr,
            im: (self.im * other.re - self.re * other.im) / norm_sqr,
        }
    }
}

#[device_fn(foreign)]
impl<T: Float> AddAssign for Complex<T> {
    fn add_assign(&mut self, other: Self) {
        self.re += other.re;
        self.im += other.im;
    }
}

#[device_fn(foreign)]
impl<T: Float> SubAssign for Complex<T> {
    fn sub_assign(&mut self, other: Self) {
        self.re -= other.re;
        self.im -= other.im;
    }
}

#[device_fn(foreign)]
impl<T: Float> MulAssign for Complex<T> {
    fn mul_assign(&mut self, other: Self) {
        let a = self.re;
        self.re = self.re * other.re - self.im * other.im;
        self.im = self.im * other.re + a * other.im;
    }
}

#[device_fn(foreign)]
impl<T: Float> DivAssign for Complex<T> {
    fn div_assign(&mut self, other: Self) {
        let a = self.re;
        let norm_sqr = other.re * other.re + other.im * other.im;
        self.re = (self.re * other.re + self.im * other.im) / norm_sqr;
        self.im = (self.im * other.re - a * other.im) / norm_sqr;
    }
}

/// Operators with a number on the right, as the crate has them of all numbers.
macro_rules! with_number {
    ($($trait:ident $name:ident |$z:ident, $x:ident| $re:expr, $im:expr;)*) => {$(
        #[device_fn(foreign)]
        impl<T: Float> $trait<T> for Complex<T> {
            type Output = Self;
            fn $name(self, other: T) -> Self {
                let ($z, $x) = (self, other);
                Complex { re: $re, im: $im }
            }
        }
    )*};
}
with_number! {
    Add add |z, x| z.re + x, z.im;
    Sub sub |z, x| z.re - x, z.im;
    Mul mul |z, x| z.re * x, z.im * x;
    Div div |z, x| z.re / x, z.im / x;
}

/// Operators that assign with a number on the right.
macro_rules! assign_number {
    ($($trait:ident $name:ident |$z:ident, $x:ident| $re:expr, $im:expr;)*) => {$(
        #[device_fn(foreign)]
        impl<T: Float> $trait<T> for Complex<T> {
            fn $name(&mut self, other: T) {
                let ($z, $x) = (*self, other);
                self.re = $re;
                self.im = $im;
            }
        }
    )*};
}
assign_number! {
    AddAssign add_assign |z, x| z.re + x, z.im;
    SubAssign sub_assign |z, x| z.re - x, z.im;
    MulAssign mul_assign |z, x| z.re * x, z.im * x;
    DivAssign div_assign |z, x| z.re / x, z.im / x;
}

/// Operators with a number on the left, which the crate has of each number by itself.
macro_rules! of_number {
    ($($number:ident)*) => {$(
        #[device_fn(foreign)]
        impl Add<Complex<$number>> for $number {
            type Output = Complex<$number>;
            fn add(self, z: Complex<$number>) -> Complex<$number> {
                Complex { re: self + z.re, im: z.im }
            }
        }
        #[device_fn(foreign)]
        impl Sub<Complex<$number>> for $number {
            type Output = Complex<$number>;
            fn sub(self, z: Complex<$number>) -> Complex<$number> {
                Complex { re: self - z.re, im: 0.0 - z.im }
            }
        }
        #[device_fn(foreign)]
        impl Mul<Complex<$number>> for $number {
            type Output = Complex<$number>;
            fn mul(self, z: Complex<$number>) -> Complex<$number> {
                Complex { re: self * z.re, im: self * z.im }
            }
        }
        #[device_fn(foreign)]
        impl Div<Complex<$number>> for $number {
            type Output = Complex<$number>;
            fn div(self, z: Complex<$number>) -> Complex<$number> {
                let norm_sqr = z.re * z.re + z.im * z.im;
                Complex { re: self * z.re / norm_sqr, im: 0.0 - self * z.im / norm_sqr }
            }
        }
    )*};
}
of_number! { f32 f64 }
