//! Random numbers as expressions: each element has a stream of its own, so they are the same on all devices, whatever
//! computes them, and are stored only if they are to be.

use std::ops::Range;

use kiln_device_stdlib::random::Philox;
use kiln_kernel_macro::{device_expression, device_fn};

use crate::{Array, ArrayError, Arrays, Expr, FloatElement, IntegerElement, IntoShape, Result};

/// A type of random numbers.
pub trait RandomElement: FloatElement {
    /// Numbers from 0 to 1 without 1, for each number of an element.
    #[doc(hidden)]
    fn uniform(numbers: Expr<u32>, seed: u64) -> Expr<Self>;

    /// Numbers of the normal distribution, for each number of an element.
    #[doc(hidden)]
    fn normal(numbers: Expr<u32>, seed: u64) -> Expr<Self>;
}

#[device_fn]
fn uniform_f32(seed: u64, number: u32) -> f32 {
    let mut random = Philox::new(seed, number as u64);
    random.uniform_f32()
}

#[device_fn]
fn uniform_f64(seed: u64, number: u32) -> f64 {
    let mut random = Philox::new(seed, number as u64);
    random.uniform_f64()
}

#[device_fn]
fn normal_f32(seed: u64, number: u32) -> f32 {
    let mut random = Philox::new(seed, number as u64);
    random.normal_f32()
}

#[device_fn]
fn normal_f64(seed: u64, number: u32) -> f64 {
    let mut random = Philox::new(seed, number as u64);
    random.normal_f64()
}

macro_rules! elements {
    ($($element:ty: $uniform:ident $normal:ident;)*) => {$(
        impl RandomElement for $element {
            fn uniform(numbers: Expr<u32>, seed: u64) -> Expr<Self> {
                numbers.map(device_expression!(|number| $uniform(seed, number)))
            }
            fn normal(numbers: Expr<u32>, seed: u64) -> Expr<Self> {
                numbers.map(device_expression!(|number| $normal(seed, number)))
            }
        }
    )*};
}
elements! {
    f32: uniform_f32 normal_f32;
    f64: uniform_f64 normal_f64;
}

/// An integer type of random numbers.
pub trait RandomInteger: IntegerElement + std::fmt::Debug + PartialOrd {
    /// Integers from the first on and below the other, for each number of an element.
    #[doc(hidden)]
    fn integers(numbers: Expr<u32>, seed: u64, range: (Self, Self)) -> Expr<Self>;
}

#[device_fn]
fn integer_u32(seed: u64, number: u32, first: u32, end: u32) -> u32 {
    let mut random = Philox::new(seed, number as u64);
    first + random.below(end - first)
}

#[device_fn]
fn integer_u64(seed: u64, number: u32, first: u64, end: u64) -> u64 {
    let mut random = Philox::new(seed, number as u64);
    first + random.below_u64(end - first)
}

#[device_fn]
fn integer_i32(seed: u64, number: u32, first: i32, end: i32) -> i32 {
    let mut random = Philox::new(seed, number as u64);
    random.range_i32(first, end)
}

#[device_fn]
fn integer_i64(seed: u64, number: u32, first: i64, end: i64) -> i64 {
    let mut random = Philox::new(seed, number as u64);
    random.range_i64(first, end)
}

macro_rules! integers {
    ($($integer:ty: $drawn:ident;)*) => {$(
        impl RandomInteger for $integer {
            fn integers(numbers: Expr<u32>, seed: u64, range: (Self, Self)) -> Expr<Self> {
                let (first, end) = range;
                numbers.map(device_expression!(|number| $drawn(seed, number, first, end)))
            }
        }
    )*};
}
integers! {
    u32: integer_u32;
    u64: integer_u64;
    i32: integer_i32;
    i64: integer_i64;
}

impl Arrays {
    /// Random integers in a range, each as likely as any other, which the seed decides (NumPy's `rng.integers`): an
    /// expression, computed where it is used.
    ///
    /// ```
    /// use kiln::prelude::*;
    ///
    /// # fn main() -> kiln::Result<()> {
    /// let arrays = Arrays::new(&Jit::new()?);
    /// let dice = arrays.integers(6000, 1..7, 3)?.eval()?;
    /// assert_eq!((dice.min()?, dice.max()?), (1, 6));
    /// assert!(dice.eq(6).count()?.abs_diff(1000) < 150);
    /// assert!(arrays.integers(3, 5..5, 3).is_err());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// A range without integers.
    #[track_caller]
    pub fn integers<T: RandomInteger>(
        &self,
        shape: impl IntoShape,
        range: Range<T>,
        seed: u64,
    ) -> Result<Expr<T>> {
        if range.start < range.end {
            return Ok(T::integers(
                self.indices(shape),
                seed,
                (range.start, range.end),
            ));
        }
        Err(ArrayError::EmptyRange {
            range: format!("{range:?}"),
        })
    }

    /// The numbers from 0 to `count - 1` in a random order, which the seed decides (NumPy's `rng.permutation`): taken
    /// with [`Array::take`](crate::Array::take) they shuffle.
    ///
    /// ```
    /// use kiln::prelude::*;
    ///
    /// # fn main() -> kiln::Result<()> {
    /// let arrays = Arrays::new(&Jit::new()?);
    /// let order = arrays.permutation(5, 1)?;
    /// assert_eq!(order.sort(0)?.to_vec()?, [0, 1, 2, 3, 4]);
    /// let shuffled = arrays.linspace(0.0f32, 1.0, 5)?.take(&order, 0)?;
    /// assert_eq!(shuffled.sort(0)?.to_vec()?, [0.0, 0.25, 0.5, 0.75, 1.0]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Those of [`Array::sort`](crate::Array::sort).
    #[track_caller]
    pub fn permutation(&self, count: usize, seed: u64) -> Result<Array<u32>> {
        // Keys of 64 bits: that two of them are alike does not happen.
        self.integers(count, 0..u64::MAX, seed)?.eval()?.argsort(0)
    }

    /// Random numbers from 0 to 1 without 1, which the seed decides: an expression, computed where it is used.
    ///
    /// ```
    /// use kiln::prelude::*;
    ///
    /// # fn main() -> kiln::Result<()> {
    /// let arrays = Arrays::new(&Jit::new()?);
    /// const N: usize = 100_000;
    /// // Nothing is stored: drawn, squared, compared and counted by one kernel.
    /// let (x, y) = (arrays.uniform::<f32>(N, 1), arrays.uniform::<f32>(N, 2));
    /// let inside = (&x * &x + &y * &y).lt(1.0).count()?;
    /// let pi = 4.0 * inside as f64 / N as f64;
    /// assert!((pi - std::f64::consts::PI).abs() < 0.02, "{pi}");
    /// let same = arrays.uniform::<f32>(4, 1).eval()?;
    /// assert_eq!(same.to_vec()?, arrays.uniform::<f32>((2, 2), 1).eval()?.to_vec()?);
    /// # Ok(())
    /// # }
    /// ```
    #[track_caller]
    pub fn uniform<T: RandomElement>(&self, shape: impl IntoShape, seed: u64) -> Expr<T> {
        T::uniform(self.indices(shape), seed)
    }

    /// Random numbers of the normal distribution, of mean 0 and standard deviation 1, which the seed decides: an
    /// expression, computed where it is used.
    ///
    /// ```
    /// use kiln::prelude::*;
    ///
    /// # fn main() -> kiln::Result<()> {
    /// let arrays = Arrays::new(&Jit::new()?);
    /// let x = (10.0 + 2.0 * arrays.normal::<f64>(10_000, 7)).eval()?;
    /// assert!((x.mean()? - 10.0).abs() < 0.1 && (x.std()? - 2.0).abs() < 0.1);
    /// # Ok(())
    /// # }
    /// ```
    #[track_caller]
    pub fn normal<T: RandomElement>(&self, shape: impl IntoShape, seed: u64) -> Expr<T> {
        T::normal(self.indices(shape), seed)
    }
}
