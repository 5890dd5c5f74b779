//! Softmax, and logarithms of sums of powers. The greatest element and the sum of the powers of how far all are below
//! it are folded together (M. Milakov, N. Gimelshein: "Online normalizer calculation for softmax", 2018): one kernel
//! folds, another one has the results.

use kiln_device_stdlib::math::Math;
use kiln_device_stdlib::number::Signed as _;
use kiln_jit_core::build::Val;
use kiln_kernel_macro::KernelType;

use crate::{
    Array, Element, ElementFn, Expr, FloatElement, IntoAxes, NumberElement, Result, keep_dims,
};

/// The greatest of some elements, and the sum of `exp(x - greatest)` of them.
#[derive(Copy, Clone, KernelType)]
#[repr(C)]
struct Powers<T> {
    greatest: T,
    sum: T,
}

/// Each element as what one alone has.
fn alone<T: FloatElement>(x: &Expr<T>) -> Expr<Powers<T::Accumulator>> {
    x.clone().unary("powers", |x| {
        let k = x.builder();
        let greatest = x.cast(k.ty::<T::Accumulator>());
        let one = k.lit(greatest.ty(), 1.0);
        k.construct(k.ty::<Powers<T::Accumulator>>(), &[greatest, one])
    })
}

/// What two have together. NaN is the greatest, and infinities are as far from themselves as other numbers.
fn powers_of<T: Element>() -> ElementFn<(Powers<T>, Powers<T>), Powers<T>> {
    ElementFn::operation("sum_of_powers", |[a, b]: [Val<'_>; 2]| {
        let (x, y) = (a.field("greatest"), b.field("greatest"));
        let is_first = x.ge(y) | x.ne(x);
        let greatest = is_first.select(x, y);
        let one = x.builder().lit(x.ty(), 1.0);
        let factor = x.eq(y).select(one, (-(x - y).abs()).exp());
        let (x_sum, y_sum) = (a.field("sum"), b.field("sum"));
        let (whole, part) = (is_first.select(x_sum, y_sum), is_first.select(y_sum, x_sum));
        let sum = whole + part * factor;
        a.builder().construct(a.ty(), &[greatest, sum])
    })
}

impl<T: FloatElement> Expr<T> {
    fn powers(&self, axes: impl IntoAxes) -> Result<Array<Powers<T::Accumulator>>> {
        let nothing = Powers {
            greatest: T::Accumulator::LEAST,
            sum: T::Accumulator::ZERO,
        };
        alone(self).reduce_axis(axes, powers_of(), nothing)
    }

    /// The powers `exp(x)` as shares of their sum along some dimensions (SciPy's `softmax`), whatever their size: an
    /// expression, which is computed where it is used. What stands in it is folded at once, by one kernel.
    ///
    /// ```
    /// use kiln::prelude::*;
    ///
    /// # fn main() -> kiln::Result<()> {
    /// let arrays = Arrays::new(&Jit::new()?);
    /// let x = arrays.array(vec![0.0f64, 0.0, 1000.0, 1000.0 + 3f64.ln()], (2, 2))?;
    /// let shares = x.softmax(1)?.eval()?;
    /// assert_eq!(shares.row(0)?.to_vec()?, [0.5, 0.5]);
    /// assert!((shares.get([1, 1])? - 0.75).abs() < 1e-9);
    /// assert_eq!(arrays.launches(), 2);
    /// assert!((x.row(0)?.log_sum_exp()? - 2f64.ln()).abs() < 1e-12);
    /// let logarithms = x.log_sum_exp_axis(1)?.to_vec()?;
    /// assert!((logarithms[1] - (1000.0 + 4f64.ln())).abs() < 1e-9);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Expr::reduce_axis`].
    #[track_caller]
    pub fn softmax(&self, axes: impl IntoAxes) -> Result<Expr<T>> {
        let powers = self.powers(keep_dims(axes))?;
        let shares =
            self.clone()
                .binary::<_, T::Accumulator>(powers.expr(), "softmax", |x, powers| {
                    let (greatest, sum) = (powers.field("greatest"), powers.field("sum"));
                    // Elements beside each other have one reciprocal.
                    let share = x.builder().lit(sum.ty(), 1.0) / sum;
                    (x.cast(greatest.ty()) - greatest).exp() * share
                });
        Ok(shares.cast())
    }

    /// The logarithm of the sum of the powers `exp(x)` of all elements, whatever their size (SciPy's `logsumexp`).
    /// [`Expr::softmax`] has an example.
    ///
    /// # Errors
    /// As [`Expr::reduce`].
    #[track_caller]
    pub fn log_sum_exp(&self) -> Result<T> {
        self.log_sum_exp_axis(..)?.item()
    }

    /// The logarithms of the sums of the powers along some dimensions.
    ///
    /// # Errors
    /// As [`Expr::reduce_axis`].
    #[track_caller]
    pub fn log_sum_exp_axis(&self, axes: impl IntoAxes) -> Result<Array<T>> {
        let powers = self.powers(axes)?.expr();
        let logarithms = powers.unary::<T::Accumulator>("log_sum_exp", |powers| {
            powers.field("greatest") + powers.field("sum").ln()
        });
        logarithms.cast::<T>().eval()
    }
}

impl<T: FloatElement> Array<T> {
    /// The powers as shares of their sum along some dimensions; see [`Expr::softmax`].
    ///
    /// # Errors
    /// As [`Expr::softmax`].
    #[track_caller]
    pub fn softmax(&self, axes: impl IntoAxes) -> Result<Expr<T>> {
        self.expr().softmax(axes)
    }

    /// The logarithm of the sum of the powers of all elements; see [`Expr::log_sum_exp`].
    ///
    /// # Errors
    /// As [`Expr::reduce`].
    #[track_caller]
    pub fn log_sum_exp(&self) -> Result<T> {
        self.expr().log_sum_exp()
    }

    /// The logarithms of the sums of the powers along some dimensions.
    ///
    /// # Errors
    /// As [`Expr::reduce_axis`].
    #[track_caller]
    pub fn log_sum_exp_axis(&self, axes: impl IntoAxes) -> Result<Array<T>> {
        self.expr().log_sum_exp_axis(axes)
    }
}
