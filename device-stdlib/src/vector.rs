//! Short vectors in kernels: [`F16x2`], [`BF16x2`], [`F32x2`], [`F32x4`], [`F64x2`], [`I32x4`], [`U32x4`], [`U64x2`] (CUDA guide,
//! "Built-in Vector Types").
//!
//! A thread reads and writes a vector in one access, which is what moves memory fastest (PTX ISA, "Vectors",
//! `ld.global.v4`). It computes with its lanes one by one, but for those of
//! [`F16x2`] and [`BF16x2`]: of others a GPU has no instructions for all of them.
//!
//! | | |
//! |---|---|
//! | made | `F32x4::new(a, b, c, d)`, `F32x4([a, b, c, d])`, `F32x4::splat(a)`, `F32x4::ZERO` |
//! | lanes | `v.x`, `v.y`, `v.z`, `v.w`, and `v[i]` of any index: one that is out of bounds is a fault; each can be assigned |
//! | operators | `+ - * /` and those that assign, lane by lane, with another vector and with a number on either side; `-v` |
//! | comparisons | `==`, `!=` |
//! | methods | `dot`, `sum`, `to_array` |
//!
//! The functions are those of the host, so a `#[device_fn]` computes the same there.
//!
//! ```
//! use kiln::prelude::*;
//!
//! #[kernel]
//! fn blend(x: &[F32x4], y: &mut [F32x4], lengths: &mut [f32], weight: f32) {
//!     let i = global_id().x;
//!     if i < x.len() {
//!         let mut v = weight * x[i] + (1.0 - weight) * y[i];
//!         lengths[i] = v.dot(v).sqrt();
//!         v.w = 1.0;
//!         y[i] = v;
//!     }
//! }
//!
//! # fn main() -> kiln::Result<()> {
//! let jit = Jit::new()?;
//! let x = jit.upload(&[F32x4::new(2.0, 4.0, 6.0, 8.0)])?;
//! let mut y = jit.upload(&[F32x4::splat(0.0)])?;
//! let mut lengths = jit.zeros(1)?;
//! blend.launch(&jit, (1, 32), &x, &mut y, &mut lengths, 0.5)?;
//! assert_eq!(y.to_vec()?, [F32x4([1.0, 2.0, 3.0, 1.0])]);
//! assert_eq!(lengths.to_vec()?, [30f32.sqrt()]);
//! # Ok(())
//! # }
//! ```

use half::{bf16, f16};
use kiln_jit_core::value::{BF16x2, F16x2, F32x2, F32x4, F64x2, I32x4, U32x4, U64x2};
use kiln_kernel_macro::device_fn;

/// One operator of a vector as the host has it, with another and with a scalar on either side, and the one that assigns.
macro_rules! operator {
    ($name:ident of $scalar:ident { $($field:ident)* }: $trait:ident $method:ident $assign:ident $assigning:ident $op:tt) => {
        #[device_fn(foreign)]
        impl $trait for $name {
            type Output = Self;
            fn $method(self, other: Self) -> Self {
                $name::new($(self.$field $op other.$field),*)
            }
        }
        #[device_fn(foreign)]
        impl $trait<$scalar> for $name {
            type Output = Self;
            fn $method(self, other: $scalar) -> Self {
                $name::new($(self.$field $op other),*)
            }
        }
        #[device_fn(foreign)]
        impl $trait<$name> for $scalar {
            type Output = $name;
            fn $method(self, other: $name) -> $name {
                $name::new($(self $op other.$field),*)
            }
        }
        #[device_fn(foreign)]
        impl $assign for $name {
            fn $assigning(&mut self, other: Self) {
                *self = *self $op other;
            }
        }
        #[device_fn(foreign)]
        impl $assign<$scalar> for $name {
            fn $assigning(&mut self, other: $scalar) {
                *self = *self $op other;
            }
        }
    };
}
#[cfg(feature = "glam")]
pub(crate) use operator;

macro_rules! negated {
    (unsigned $($rest:tt)*) => {};
    (signed $name:ident { $($field:ident)* }) => {
        #[device_fn(foreign)]
        impl Neg for $name {
            type Output = Self;
            fn neg(self) -> Self {
                $name::new($(-self.$field),*)
            }
        }
    };
}

macro_rules! vectors {
    ($($name:ident of $sign:ident $lane:ident $fields:tt, $first:ident $($field:ident)*;)*) => {$(
        operator! { $name of $lane $fields: Add add AddAssign add_assign + }
        operator! { $name of $lane $fields: Sub sub SubAssign sub_assign - }
        operator! { $name of $lane $fields: Mul mul MulAssign mul_assign * }
        operator! { $name of $lane $fields: Div div DivAssign div_assign / }
        negated! { $sign $name $fields }

        #[device_fn(foreign)]
        impl $name {
            fn new($first: $lane $(, $field: $lane)*) -> Self {
                $name([$first $(, $field)*])
            }
            fn splat(number: $lane) -> Self {
                let $first = number;
                $(let $field = number;)*
                $name([$first $(, $field)*])
            }
            fn to_array(self) -> [$lane; vectors!(@count $first $($field)*)] {
                [self.$first $(, self.$field)*]
            }
            fn sum(self) -> $lane {
                self.$first $(+ self.$field)*
            }
            fn dot(self, other: Self) -> $lane {
                self.$first * other.$first $(+ self.$field * other.$field)*
            }
        }
    )*};
    (@count x y) => { 2 };
    (@count x y z w) => { 4 };
}
vectors! {
    F16x2 of signed f16 { x y }, x y;
    BF16x2 of signed bf16 { x y }, x y;
    F32x2 of signed f32 { x y }, x y;
    F32x4 of signed f32 { x y z w }, x y z w;
    F64x2 of signed f64 { x y }, x y;
    I32x4 of signed i32 { x y z w }, x y z w;
    U32x4 of unsigned u32 { x y z w }, x y z w;
    U64x2 of unsigned u64 { x y }, x y;
}
