//! Random numbers as expressions: each element has a stream of its own, so they are the same on all devices, whatever
//! computes them, and are stored only if they are to be.

use kiln_device_stdlib::random::Philox;
use kiln_kernel_macro::{device_expression, device_fn};

use crate::{Arrays, Expr, FloatElement, IntoShape};

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

impl Arrays {
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
    pub fn normal<T: RandomElement>(&self, shape: impl IntoShape, seed: u64) -> Expr<T> {
        T::normal(self.indices(shape), seed)
    }
}
