//! Vectors and matrices of glam.

use glam::{DMat2, DMat3, DMat4, DVec2, DVec3, DVec4, Mat2, Mat3, Mat4, Vec2, Vec3, Vec4};
use kiln_kernel_macro::device_fn;

use crate::vector::operator;

/// Whether glam has `Vec4` in a register, and adds up pairs of its products.
const IN_REGISTER: bool = align_of::<Vec4>() == 16;

/// The operators of a vector, and what is the same for all lengths.
macro_rules! vector {
    ($name:ident of $scalar:ident $fields:tt = new($($field:ident),*)) => {
        operator! { $name of $scalar $fields: Add add AddAssign add_assign + }
        operator! { $name of $scalar $fields: Sub sub SubAssign sub_assign - }
        operator! { $name of $scalar $fields: Mul mul MulAssign mul_assign * }
        operator! { $name of $scalar $fields: Div div DivAssign div_assign / }

        #[device_fn(foreign)]
        impl Neg for $name {
            type Output = Self;
            fn neg(self) -> Self {
                $name::new($(-self.$field),*)
            }
        }

        #[device_fn(foreign)]
        impl $name {
            fn length_squared(self) -> $scalar {
                self.dot(self)
            }
            fn length(self) -> $scalar {
                self.dot(self).sqrt()
            }
            fn length_recip(self) -> $scalar {
                1.0 / self.dot(self).sqrt()
            }
            fn distance_squared(self, other: Self) -> $scalar {
                (self - other).length_squared()
            }
            fn distance(self, other: Self) -> $scalar {
                (self - other).length()
            }
            fn lerp(self, other: Self, s: $scalar) -> Self {
                self * (1.0 - s) + other * s
            }
        }
    };
}
vector! { Vec2 of f32 { x y } = new(x, y) }
vector! { Vec3 of f32 { x y z } = new(x, y, z) }
vector! { Vec4 of f32 { x y z w } = new(x, y, z, w) }
vector! { DVec2 of f64 { x y } = new(x, y) }
vector! { DVec3 of f64 { x y z } = new(x, y, z) }
vector! { DVec4 of f64 { x y z w } = new(x, y, z, w) }

/// What a vector of two, of three and of four numbers has by itself.
macro_rules! lengths {
    ($scalar:ident: $two:ident $three:ident) => {
        #[device_fn(foreign)]
        impl $two {
            fn new(x: $scalar, y: $scalar) -> Self {
                $two { x, y }
            }
            fn splat(v: $scalar) -> Self {
                $two { x: v, y: v }
            }
            fn dot(self, other: Self) -> $scalar {
                self.x * other.x + self.y * other.y
            }
            fn perp_dot(self, other: Self) -> $scalar {
                self.x * other.y - self.y * other.x
            }
            fn normalize(self) -> Self {
                self * self.length_recip()
            }
        }
        #[device_fn(foreign)]
        impl $three {
            fn new(x: $scalar, y: $scalar, z: $scalar) -> Self {
                $three { x, y, z }
            }
            fn splat(v: $scalar) -> Self {
                $three { x: v, y: v, z: v }
            }
            fn dot(self, other: Self) -> $scalar {
                self.x * other.x + self.y * other.y + self.z * other.z
            }
            fn cross(self, other: Self) -> Self {
                $three {
                    x: self.y * other.z - other.y * self.z,
                    y: self.z * other.x - other.z * self.x,
                    z: self.x * other.y - other.x * self.y,
                }
            }
            fn normalize(self) -> Self {
                self * self.length_recip()
            }
        }
    };
}
lengths! { f32: Vec2 Vec3 }
lengths! { f64: DVec2 DVec3 }

#[device_fn(foreign)]
impl DVec4 {
    fn new(x: f64, y: f64, z: f64, w: f64) -> Self {
        DVec4 { x, y, z, w }
    }
    fn splat(v: f64) -> Self {
        DVec4 {
            x: v,
            y: v,
            z: v,
            w: v,
        }
    }
    fn dot(self, other: Self) -> f64 {
        self.x * other.x + self.y * other.y + self.z * other.z + self.w * other.w
    }
    fn normalize(self) -> Self {
        self * self.length_recip()
    }
}

// Where it lies in a register it has no fields, but those of what it dereferences to.
#[device_fn(foreign)]
impl Vec4 {
    fn new(x: f32, y: f32, z: f32, w: f32) -> Self {
        let mut v = Vec4::ZERO;
        v.x = x;
        v.y = y;
        v.z = z;
        v.w = w;
        v
    }
    fn splat(v: f32) -> Self {
        Vec4::new(v, v, v, v)
    }
    fn dot(self, other: Self) -> f32 {
        let p = self * other;
        if IN_REGISTER {
            (p.x + p.z) + (p.y + p.w)
        } else {
            p.x + p.y + p.z + p.w
        }
    }
    fn normalize(self) -> Self {
        if IN_REGISTER {
            self / self.length()
        } else {
            self * self.length_recip()
        }
    }
}

/// The operators and functions of a matrix.
macro_rules! matrix {
    ($name:ident of $vector:ident: $first:ident $x:ident $(, $axis:ident $field:ident)*) => {
        #[device_fn(foreign)]
        impl $name {
            fn from_cols($first: $vector $(, $axis: $vector)*) -> Self {
                let mut m = $name::ZERO;
                m.$first = $first;
                $(m.$axis = $axis;)*
                m
            }
        }
        #[device_fn(foreign)]
        impl Mul<$vector> for $name {
            type Output = $vector;
            fn mul(self, v: $vector) -> $vector {
                self.$first * v.$x $(+ self.$axis * v.$field)*
            }
        }
        #[device_fn(foreign)]
        impl Mul for $name {
            type Output = Self;
            fn mul(self, other: Self) -> Self {
                $name::from_cols(self * other.$first $(, self * other.$axis)*)
            }
        }
        #[device_fn(foreign)]
        impl Add for $name {
            type Output = Self;
            fn add(self, other: Self) -> Self {
                $name::from_cols(self.$first + other.$first $(, self.$axis + other.$axis)*)
            }
        }
        #[device_fn(foreign)]
        impl Sub for $name {
            type Output = Self;
            fn sub(self, other: Self) -> Self {
                $name::from_cols(self.$first - other.$first $(, self.$axis - other.$axis)*)
            }
        }
    };
}
matrix! { Mat2 of Vec2: x_axis x, y_axis y }
matrix! { Mat3 of Vec3: x_axis x, y_axis y, z_axis z }
matrix! { Mat4 of Vec4: x_axis x, y_axis y, z_axis z, w_axis w }
matrix! { DMat2 of DVec2: x_axis x, y_axis y }
matrix! { DMat3 of DVec3: x_axis x, y_axis y, z_axis z }
matrix! { DMat4 of DVec4: x_axis x, y_axis y, z_axis z, w_axis w }

/// Rows for columns.
macro_rules! transposed {
    ($($name:ident of $vector:ident: $([$field:ident $($axis:ident)*])*;)*) => {$(
        #[device_fn(foreign)]
        impl $name {
            fn transpose(&self) -> Self {
                $name::from_cols($($vector::new($(self.$axis.$field),*)),*)
            }
        }
    )*};
}
transposed! {
    Mat2 of Vec2: [x x_axis y_axis] [y x_axis y_axis];
    Mat3 of Vec3: [x x_axis y_axis z_axis] [y x_axis y_axis z_axis] [z x_axis y_axis z_axis];
    Mat4 of Vec4: [x x_axis y_axis z_axis w_axis] [y x_axis y_axis z_axis w_axis]
        [z x_axis y_axis z_axis w_axis] [w x_axis y_axis z_axis w_axis];
    DMat2 of DVec2: [x x_axis y_axis] [y x_axis y_axis];
    DMat3 of DVec3: [x x_axis y_axis z_axis] [y x_axis y_axis z_axis] [z x_axis y_axis z_axis];
    DMat4 of DVec4: [x x_axis y_axis z_axis w_axis] [y x_axis y_axis z_axis w_axis]
        [z x_axis y_axis z_axis w_axis] [w x_axis y_axis z_axis w_axis];
}
