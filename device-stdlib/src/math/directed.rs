//! Arithmetic and conversions that are rounded in a direction (CUDA Math API, `__fadd_rd`, `__int2float_rd` and their kind; PTX
//! ISA, `.rm`, `.rp`, `.rz`), of `f32` and `f64`. `down` is towards negative infinity and `up` towards infinity: between the two the exact result lies,
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
//! /// Numbers in fewer digits, and what they are at most.
//! #[kernel]
//! fn shorter(n: i64, x: f64, singles: &mut [f32], doubles: &mut [f64]) {
//!     (singles[0], singles[1]) = (int_to_f32_down(n), int_to_f32_up(n));
//!     singles[2] = int_to_f32_toward_zero(-n);
//!     (singles[3], singles[4]) = (f64_to_f32_down(x), f64_to_f32_up(x));
//!     singles[5] = f64_to_f32_toward_zero(-x);
//!     (doubles[0], doubles[1]) = (int_to_f64_down(n), int_to_f64_up(n));
//!     doubles[2] = int_to_f64_toward_zero(-n);
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
//!
//! let (mut singles, mut doubles) = (jit.zeros::<f32>(6)?, jit.zeros::<f64>(3)?);
//! shorter.launch(&jit, (1, 1), (1 << 53) + 1, 0.1, &mut singles, &mut doubles)?;
//! let all = 9_007_199_254_740_992.0;
//! assert_eq!(doubles.to_vec()?, [all, all + 2.0, -all]);
//! let (near, below) = (0.1f32, 0.1f32.next_down());
//! assert_eq!(singles.to_vec()?[2..], [-(all as f32), below, near, -below]);
//! # Ok(())
//! # }
//! ```

mod exact;

use kiln_jit_core::ir::{Cell, Family, Scalar};

use crate::plain::number::{Float, Int};
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

/// An instruction that makes an `f32` of integers of each type.
macro_rules! of_integers {
    ($name:literal) => {
        &[
            of_integers!($name, I32, ".f32.s32", "=f,r"),
            of_integers!($name, U32, ".f32.u32", "=f,r"),
            of_integers!($name, I64, ".f32.s64", "=f,l"),
            of_integers!($name, U64, ".f32.u64", "=f,l"),
        ]
    };
    (double $name:literal) => {
        &[
            of_integers!($name, I64, ".f64.s64", "=d,l"),
            of_integers!($name, U64, ".f64.u64", "=d,l"),
        ]
    };
    ($name:literal, $scalar:ident, $types:literal, $constraints:literal) => {
        Cell::asm(
            Family::PTX,
            Some(Scalar::$scalar),
            concat!($name, $types, " $0, $1;"),
            $constraints,
        )
    };
}

/// An instruction that makes an `f32` of an `f64`.
macro_rules! of_double {
    ($name:literal) => {
        &[Cell::asm(
            Family::PTX,
            None,
            concat!($name, ".f32.f64 $0, $1;"),
            "=f,d",
        )]
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

    /// An integer as an `f32`, rounded downwards (CUDA `__int2float_rd`, `__uint2float_rd`, `__ll2float_rd`,
    /// `__ull2float_rd`).
    fn int_to_f32_down<T: Int = [i32, u32, i64, u64]>(x: T) -> f32 {
        exact::of_integer::<T, f32>(x, Direction::Down)
    } = row("math.int_to_f32_down").with_cells(of_integers!("cvt.rm"));

    /// An integer of 64 bits as an `f64`, rounded downwards (CUDA `__ll2double_rd`, `__ull2double_rd`). Those of 32 bits
    /// are `f64`s as they are.
    fn int_to_f64_down<T: Int = [i64, u64]>(x: T) -> f64 {
        exact::of_integer::<T, f64>(x, Direction::Down)
    } = row("math.int_to_f64_down").with_cells(of_integers!(double "cvt.rm"));

    /// An `f64` as an `f32`, rounded downwards (CUDA `__double2float_rd`).
    fn f64_to_f32_down(x: f64) -> f32 {
        exact::narrowed(x, Direction::Down)
    } = row("math.f64_to_f32_down").with_cells(of_double!("cvt.rm"));

    /// An integer as an `f32`, rounded upwards (CUDA `__int2float_ru`, `__uint2float_ru`, `__ll2float_ru`,
    /// `__ull2float_ru`).
    fn int_to_f32_up<T: Int = [i32, u32, i64, u64]>(x: T) -> f32 {
        exact::of_integer::<T, f32>(x, Direction::Up)
    } = row("math.int_to_f32_up").with_cells(of_integers!("cvt.rp"));

    /// An integer of 64 bits as an `f64`, rounded upwards (CUDA `__ll2double_ru`, `__ull2double_ru`). Those of 32 bits
    /// are `f64`s as they are.
    fn int_to_f64_up<T: Int = [i64, u64]>(x: T) -> f64 {
        exact::of_integer::<T, f64>(x, Direction::Up)
    } = row("math.int_to_f64_up").with_cells(of_integers!(double "cvt.rp"));

    /// An `f64` as an `f32`, rounded upwards (CUDA `__double2float_ru`).
    fn f64_to_f32_up(x: f64) -> f32 {
        exact::narrowed(x, Direction::Up)
    } = row("math.f64_to_f32_up").with_cells(of_double!("cvt.rp"));

    /// An integer as an `f32`, rounded towards 0 (CUDA `__int2float_rz`, `__uint2float_rz`, `__ll2float_rz`,
    /// `__ull2float_rz`).
    fn int_to_f32_toward_zero<T: Int = [i32, u32, i64, u64]>(x: T) -> f32 {
        exact::of_integer::<T, f32>(x, Direction::Zero)
    } = row("math.int_to_f32_toward_zero").with_cells(of_integers!("cvt.rz"));

    /// An integer of 64 bits as an `f64`, rounded towards 0 (CUDA `__ll2double_rz`, `__ull2double_rz`). Those of 32 bits
    /// are `f64`s as they are.
    fn int_to_f64_toward_zero<T: Int = [i64, u64]>(x: T) -> f64 {
        exact::of_integer::<T, f64>(x, Direction::Zero)
    } = row("math.int_to_f64_toward_zero").with_cells(of_integers!(double "cvt.rz"));

    /// An `f64` as an `f32`, rounded towards 0 (CUDA `__double2float_rz`).
    fn f64_to_f32_toward_zero(x: f64) -> f32 {
        exact::narrowed(x, Direction::Zero)
    } = row("math.f64_to_f32_toward_zero").with_cells(of_double!("cvt.rz"));
}
