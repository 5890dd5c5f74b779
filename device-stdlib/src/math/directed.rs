//! Arithmetic that is rounded in a direction (CUDA Math API, `__fadd_rd` and its kind; PTX ISA, `.rm`, `.rp`, `.rz`), of
//! `f32` and `f64`. `down` is towards negative infinity and `up` towards infinity: between the two the exact result lies,
//! and they are equal where it is a float. A sum of 0 is -0.0 downwards, but where both parts are 0.0.
//!
//! Each is one instruction of NVIDIA's GPUs, and never fused with another. A CPU computes in integers, which takes much
//! longer; the results are the same.
//!
//! ```
//! use kiln::prelude::*;
//! use kiln::stdlib::math::directed::*;
//!
//! /// Bounds of a sum, whatever is rounded on the way.
//! #[kernel]
//! fn bounds(x: &[f32], least: &mut [f32], most: &mut [f32]) {
//!     let (mut low, mut high) = (0.0, 0.0);
//!     for i in 0..x.len() {
//!         low = add_down(low, div_down(x[i], 3.0));
//!         high = add_up(high, div_up(x[i], 3.0));
//!     }
//!     (least[0], most[0]) = (low, high);
//!     (least[1], most[1]) = (sqrt_down(mul_down(x[0], 0.1)), sqrt_up(mul_up(x[0], 0.1)));
//!     least[2] = mul_add_down(0.1, 0.1, add_toward_zero(x[0], 1e-9));
//!     most[2] = mul_add_up(0.1, 0.1, mul_toward_zero(x[0], div_toward_zero(1.0, 1.0)));
//!     least[3] = mul_add_toward_zero(-0.1, 0.1, sqrt_toward_zero(-0.0));
//! }
//!
//! # fn main() -> kiln::Result<()> {
//! let jit = Jit::on(Device::cpu());
//! let x = jit.upload(&[1.0f32, 2.0, 4.0])?;
//! let (mut least, mut most) = (jit.zeros(4)?, jit.zeros(4)?);
//! bounds.launch(&jit, (1, 1), &x, &mut least, &mut most)?;
//! let (least, most) = (least.to_vec()?, most.to_vec()?);
//! assert_eq!((least[0], most[0]), (2.333333, 2.3333335));
//! assert!(least[1] < most[1] && least[2] < most[2]);
//! assert_eq!(least[3], -mul_down(0.1f32, 0.1));
//! assert_eq!((add_down(1.0f64, 1e-30), add_up(1.0f64, 1e-30)), (1.0, 1.0 + f64::EPSILON));
//! # Ok(())
//! # }
//! ```

mod exact;

use kiln_jit_core::ir::{Cell, Family, Scalar};

use crate::plain::number::Float;
use crate::table::operations;
use exact::Direction;

/// An instruction for `f32` and `f64`, of one, two or three operands.
macro_rules! cells {
    (one $name:literal) => {
        cells! { $name, "$0, $1;", "=f,f", "=d,d" }
    };
    (two $name:literal) => {
        cells! { $name, "$0, $1, $2;", "=f,f,f", "=d,d,d" }
    };
    (three $name:literal) => {
        cells! { $name, "$0, $1, $2, $3;", "=f,f,f,f", "=d,d,d,d" }
    };
    ($name:literal, $operands:literal, $single:literal, $double:literal) => {
        &[
            Cell::asm(
                Family::PTX,
                Some(Scalar::F32),
                concat!($name, ".f32 ", $operands),
                $single,
            ),
            Cell::asm(
                Family::PTX,
                Some(Scalar::F64),
                concat!($name, ".f64 ", $operands),
                $double,
            ),
        ]
    };
}

operations! {
    /// Arithmetic that is rounded in a direction, as methods of the builder.
    builder Directed;

    /// `x + y`, rounded downwards (CUDA `__fadd_rd`, `__dadd_rd`).
    fn add_down<T: Float = [f32, f64]>(x: T, y: T) -> T {
        exact::add(x, y, Direction::Down)
    } = row("math.add_down").with_cells(cells! { two "add.rm" });

    /// `x + y`, rounded upwards (CUDA `__fadd_ru`, `__dadd_ru`).
    fn add_up<T: Float = [f32, f64]>(x: T, y: T) -> T {
        exact::add(x, y, Direction::Up)
    } = row("math.add_up").with_cells(cells! { two "add.rp" });

    /// `x + y`, rounded towards 0 (CUDA `__fadd_rz`, `__dadd_rz`).
    fn add_toward_zero<T: Float = [f32, f64]>(x: T, y: T) -> T {
        exact::add(x, y, Direction::Zero)
    } = row("math.add_toward_zero").with_cells(cells! { two "add.rz" });

    /// `x * y`, rounded downwards (CUDA `__fmul_rd`, `__dmul_rd`).
    fn mul_down<T: Float = [f32, f64]>(x: T, y: T) -> T {
        exact::mul(x, y, Direction::Down)
    } = row("math.mul_down").with_cells(cells! { two "mul.rm" });

    /// `x * y`, rounded upwards (CUDA `__fmul_ru`, `__dmul_ru`).
    fn mul_up<T: Float = [f32, f64]>(x: T, y: T) -> T {
        exact::mul(x, y, Direction::Up)
    } = row("math.mul_up").with_cells(cells! { two "mul.rp" });

    /// `x * y`, rounded towards 0 (CUDA `__fmul_rz`, `__dmul_rz`).
    fn mul_toward_zero<T: Float = [f32, f64]>(x: T, y: T) -> T {
        exact::mul(x, y, Direction::Zero)
    } = row("math.mul_toward_zero").with_cells(cells! { two "mul.rz" });

    /// `x / y`, rounded downwards (CUDA `__fdiv_rd`, `__ddiv_rd`).
    fn div_down<T: Float = [f32, f64]>(x: T, y: T) -> T {
        exact::div(x, y, Direction::Down)
    } = row("math.div_down").with_cells(cells! { two "div.rm" });

    /// `x / y`, rounded upwards (CUDA `__fdiv_ru`, `__ddiv_ru`).
    fn div_up<T: Float = [f32, f64]>(x: T, y: T) -> T {
        exact::div(x, y, Direction::Up)
    } = row("math.div_up").with_cells(cells! { two "div.rp" });

    /// `x / y`, rounded towards 0 (CUDA `__fdiv_rz`, `__ddiv_rz`).
    fn div_toward_zero<T: Float = [f32, f64]>(x: T, y: T) -> T {
        exact::div(x, y, Direction::Zero)
    } = row("math.div_toward_zero").with_cells(cells! { two "div.rz" });

    /// `x * y + z`, rounded downwards (CUDA `__fmaf_rd`, `__fma_rd`).
    fn mul_add_down<T: Float = [f32, f64]>(x: T, y: T, z: T) -> T {
        exact::mul_add(x, y, z, Direction::Down)
    } = row("math.mul_add_down").with_cells(cells! { three "fma.rm" });

    /// `x * y + z`, rounded upwards (CUDA `__fmaf_ru`, `__fma_ru`).
    fn mul_add_up<T: Float = [f32, f64]>(x: T, y: T, z: T) -> T {
        exact::mul_add(x, y, z, Direction::Up)
    } = row("math.mul_add_up").with_cells(cells! { three "fma.rp" });

    /// `x * y + z`, rounded towards 0 (CUDA `__fmaf_rz`, `__fma_rz`).
    fn mul_add_toward_zero<T: Float = [f32, f64]>(x: T, y: T, z: T) -> T {
        exact::mul_add(x, y, z, Direction::Zero)
    } = row("math.mul_add_toward_zero").with_cells(cells! { three "fma.rz" });

    /// The square root of `x`, rounded downwards (CUDA `__fsqrt_rd`, `__dsqrt_rd`).
    fn sqrt_down<T: Float = [f32, f64]>(x: T) -> T {
        exact::sqrt(x, Direction::Down)
    } = row("math.sqrt_down").with_cells(cells! { one "sqrt.rm" });

    /// The square root of `x`, rounded upwards (CUDA `__fsqrt_ru`, `__dsqrt_ru`).
    fn sqrt_up<T: Float = [f32, f64]>(x: T) -> T {
        exact::sqrt(x, Direction::Up)
    } = row("math.sqrt_up").with_cells(cells! { one "sqrt.rp" });

    /// The square root of `x`, rounded towards 0 (CUDA `__fsqrt_rz`, `__dsqrt_rz`).
    fn sqrt_toward_zero<T: Float = [f32, f64]>(x: T) -> T {
        exact::sqrt(x, Direction::Zero)
    } = row("math.sqrt_toward_zero").with_cells(cells! { one "sqrt.rz" });
}
