//! Short vectors: a few numbers that a thread reads and writes in one access.

use std::ops::{
    Add, AddAssign, Deref, DerefMut, Div, DivAssign, Index, IndexMut, Mul, MulAssign, Neg, Sub,
    SubAssign,
};

use half::{bf16, f16};

use super::{DeviceType, KernelType, Pod};
use crate::front::macros::{Callable, Front, Operand};
use crate::ir::{Constant, Scalar, Type, TypeForm};

/// The lanes of a vector of two, by name: `v.x` of an [`F32x2`].
#[derive(Copy, Clone, PartialEq, Debug)]
#[repr(C)]
pub struct Pair<T> {
    /// Lane 0.
    pub x: T,
    /// Lane 1.
    pub y: T,
}

/// The lanes of a vector of four, by name: `v.w` of an [`F32x4`].
#[derive(Copy, Clone, PartialEq, Debug)]
#[repr(C)]
pub struct Quad<T> {
    /// Lane 0.
    pub x: T,
    /// Lane 1.
    pub y: T,
    /// Lane 2.
    pub z: T,
    /// Lane 3.
    pub w: T,
}

/// An operator, lane by lane, with another vector and with a number on either side, and the one that assigns.
macro_rules! operator {
    ($name:ident [$lane:ty; $($index:literal)*]: $trait:ident $method:ident $assign:ident $assigning:ident $op:tt) => {
        impl $trait for $name {
            type Output = $name;
            fn $method(self, other: $name) -> $name {
                $name([$(self.0[$index] $op other.0[$index]),*])
            }
        }

        impl $trait<$lane> for $name {
            type Output = $name;
            fn $method(self, other: $lane) -> $name {
                $name([$(self.0[$index] $op other),*])
            }
        }

        // What a number is multiplied by is mostly a number, which is what rustc is to speak of.
        #[diagnostic::do_not_recommend]
        impl $trait<$name> for $lane {
            type Output = $name;
            fn $method(self, other: $name) -> $name {
                $name([$(self $op other.0[$index]),*])
            }
        }

        impl $assign for $name {
            fn $assigning(&mut self, other: $name) {
                *self = *self $op other;
            }
        }

        impl $assign<$lane> for $name {
            fn $assigning(&mut self, other: $lane) {
                *self = *self $op other;
            }
        }
    };
}

/// What only signed lanes have.
macro_rules! negated {
    (unsigned $($rest:tt)*) => {};
    (signed $name:ident $($index:literal)*) => {
        impl Neg for $name {
            type Output = $name;
            fn neg(self) -> $name {
                $name([$(-self.0[$index]),*])
            }
        }
    };
}

/// The sum of the elements with these indices.
macro_rules! sum {
    ($lanes:expr; $first:literal $($index:literal)*) => {
        $lanes[$first] $(+ $lanes[$index])*
    };
}

macro_rules! vectors {
    ($(
        $name:ident = [$lane:ty; $lanes:literal] $scalar:ident align $align:literal,
        $sign:ident $zero:expr, $named:ident($($index:literal $field:ident)*);
    )*) => {$(
        #[doc = concat!(
            stringify!($lanes), " lanes of `", stringify!($lane), "`, aligned to ",
            stringify!($align), " bytes (CUDA guide, \"Built-in Vector Types\"): read and written in one access."
        )]
        ///
        #[doc = concat!(
            "A lane is `v[i]`, or a field of [`", stringify!($named), "`]. Operators work lane by lane, with another \
             vector and with a number on either side."
        )]
        #[derive(Copy, Clone, PartialEq, Debug, Default)]
        #[repr(C, align($align))]
        pub struct $name(pub [$lane; $lanes]);

        const _: () = assert!(
            size_of::<$name>() == size_of::<$lane>() * $lanes
                && align_of::<$name>() == size_of::<$name>()
                && align_of::<$name>() <= 16
        );

        impl $name {
            /// All lanes zero.
            pub const ZERO: $name = $name::splat($zero);

            /// A vector of these lanes.
            pub const fn new($($field: $lane),*) -> $name {
                $name([$($field),*])
            }

            /// A vector with the same number in all lanes.
            pub const fn splat(number: $lane) -> $name {
                $name([number; $lanes])
            }

            /// The lanes as an array.
            pub const fn to_array(self) -> [$lane; $lanes] {
                self.0
            }

            /// The sum of the products of the lanes, of the first lanes first.
            pub fn dot(self, other: $name) -> $lane {
                (self * other).sum()
            }

            /// The sum of the lanes, from the first to the last.
            pub fn sum(self) -> $lane {
                sum!(self.0; $($index)*)
            }
        }

        operator! { $name [$lane; $($index)*]: Add add AddAssign add_assign + }
        operator! { $name [$lane; $($index)*]: Sub sub SubAssign sub_assign - }
        operator! { $name [$lane; $($index)*]: Mul mul MulAssign mul_assign * }
        operator! { $name [$lane; $($index)*]: Div div DivAssign div_assign / }
        negated! { $sign $name $($index)* }

        impl Index<usize> for $name {
            type Output = $lane;
            fn index(&self, lane: usize) -> &$lane {
                &self.0[lane]
            }
        }

        impl IndexMut<usize> for $name {
            fn index_mut(&mut self, lane: usize) -> &mut $lane {
                &mut self.0[lane]
            }
        }

        impl Deref for $name {
            type Target = $named<$lane>;
            fn deref(&self) -> &$named<$lane> {
                const { assert!(size_of::<$named<$lane>>() == size_of::<$name>()) };
                // SAFETY: both are the lanes one after the other, and the vector is aligned to more.
                unsafe { &*std::ptr::from_ref(self).cast() }
            }
        }

        impl DerefMut for $name {
            fn deref_mut(&mut self) -> &mut $named<$lane> {
                // SAFETY: as above; every bit pattern of the lanes is a value of both.
                unsafe { &mut *std::ptr::from_mut(self).cast() }
            }
        }

        #[diagnostic::do_not_recommend]
        impl DeviceType for $name {
            const FORM: &'static TypeForm = &TypeForm::vector(Scalar::$scalar, $lanes);
            fn scalars(&self, out: &mut Vec<Constant>) {
                self.0.scalars(out);
            }
        }

        // SAFETY: lanes one after the other, size without padding, aligned to the size, at most
        // 16 bytes: the layout of an IR vector, asserted above. Lanes are numbers.
        #[diagnostic::do_not_recommend]
        unsafe impl KernelType for $name {}

        // SAFETY: the same.
        #[diagnostic::do_not_recommend]
        unsafe impl Pod for $name {}

        /// The vector of an array's elements in a kernel, as its constructor.
        #[diagnostic::do_not_recommend]
        impl Callable for $name {
            fn call<'k>(front: Front<'k>, _: &[Type], args: &[Operand<'k>]) -> Operand<'k> {
                match args {
                    [lanes] => front.vector(front.builder().device_type::<$name>(), *lanes),
                    // rustc has counted them.
                    _ => front.unit(),
                }
            }
        }

        impl From<[$lane; $lanes]> for $name {
            fn from(lanes: [$lane; $lanes]) -> Self {
                Self(lanes)
            }
        }

        impl From<$name> for [$lane; $lanes] {
            fn from(vector: $name) -> Self {
                vector.0
            }
        }
    )*};
}

vectors! {
    F16x2 = [f16; 2] F16 align 4, signed f16::ZERO, Pair(0 x 1 y);
    BF16x2 = [bf16; 2] BF16 align 4, signed bf16::ZERO, Pair(0 x 1 y);
    F32x2 = [f32; 2] F32 align 8, signed 0.0, Pair(0 x 1 y);
    F32x4 = [f32; 4] F32 align 16, signed 0.0, Quad(0 x 1 y 2 z 3 w);
    F64x2 = [f64; 2] F64 align 16, signed 0.0, Pair(0 x 1 y);
    I32x4 = [i32; 4] I32 align 16, signed 0, Quad(0 x 1 y 2 z 3 w);
    U32x4 = [u32; 4] U32 align 16, unsigned 0, Quad(0 x 1 y 2 z 3 w);
    U64x2 = [u64; 2] U64 align 16, unsigned 0, Pair(0 x 1 y);
}
