//! Types of other crates that kernels can hold, each behind the feature of its crate's name. Where their fields lie
//! is asserted as they are compiled: another version of the crate may have them elsewhere.
//!
//! | feature | types |
//! |---|---|
//! | `num-complex` | `Complex<T>` of a number |
//! | `glam` | `Vec2`, `Vec3`, `Vec4`, `Mat2`, `Mat3`, `Mat4` and those that begin with `D` |
//! | `nalgebra` | `SVector<T, N>`, `SMatrix<T, R, C>`: arrays of `N` elements, and of `C` columns |
//! | `bytemuck` | the other way round: the vectors of [`value`](super) are `Pod` |
//!
//! What kernels can call of them is in the library (`device-stdlib/src/foreign`).

#[cfg(any(feature = "num-complex", feature = "glam", feature = "nalgebra"))]
use super::{DeviceType, KernelType};
#[cfg(any(feature = "num-complex", feature = "glam", feature = "nalgebra"))]
use crate::ir::{Constant, TypeForm};

#[cfg(feature = "num-complex")]
mod num_complex {
    use std::mem::offset_of;

    use num_complex::Complex;

    use super::{Constant, DeviceType, KernelType, TypeForm};

    #[diagnostic::do_not_recommend]
    impl<T: DeviceType> DeviceType for Complex<T> {
        const FORM: &'static TypeForm = {
            assert!(offset_of!(Self, re) == 0 && offset_of!(Self, im) == size_of::<T>());
            assert!(
                align_of::<Self>() == align_of::<T>() && size_of::<Self>() == 2 * size_of::<T>()
            );
            &TypeForm::structure("Complex", &[("re", T::FORM), ("im", T::FORM)])
        };

        fn scalars(&self, out: &mut Vec<Constant>) {
            self.re.scalars(out);
            self.im.scalars(out);
        }
    }

    // SAFETY: the assertions in `FORM` prove the layout, and both parts are values of a `KernelType`.
    #[diagnostic::do_not_recommend]
    unsafe impl<T: KernelType> KernelType for Complex<T> {
        const ANY_BITS: bool = T::ANY_BITS;
        fn is_value(bytes: &[u8]) -> bool {
            bytes.chunks(size_of::<T>().max(1)).all(T::is_value)
        }
    }
}

#[cfg(feature = "glam")]
mod glam {
    use glam::{DMat2, DMat3, DMat4, DVec2, DVec3, DVec4, Mat2, Mat3, Mat4, Vec2, Vec3, Vec4};

    use super::{Constant, DeviceType, KernelType, TypeForm};

    /// Structs of glam by their parts, each made of an array of its scalars and of nothing else.
    macro_rules! structs {
        ($($name:ident = [$scalar:ident; $count:literal] { $($part:ident: $ty:ty),* })*) => {$(
            #[diagnostic::do_not_recommend]
            impl DeviceType for $name {
                const FORM: &'static TypeForm = {
                    assert!(size_of::<$name>() == size_of::<[$scalar; $count]>());
                    assert!(align_of::<$name>() >= align_of::<$scalar>() && align_of::<$name>() <= 16);
                    // Some lie in a register, and have their parts by `Deref` alone.
                    let mut scalars = [0.0; $count];
                    let mut i = 0;
                    while i < $count {
                        scalars[i] = i as $scalar;
                        i += 1;
                    }
                    // SAFETY: both are as large, and any bits are floats.
                    let lie: [$scalar; $count] = unsafe { std::mem::transmute(structs!(@of $name, scalars)) };
                    let mut i = 0;
                    while i < $count {
                        assert!(lie[i] == scalars[i], "its parts lie in another order");
                        i += 1;
                    }
                    &TypeForm::aligned_structure(
                        stringify!($name),
                        &[$((stringify!($part), <$ty as DeviceType>::FORM)),*],
                        align_of::<$name>() as u64,
                    )
                };

                fn scalars(&self, out: &mut Vec<Constant>) {
                    $(DeviceType::scalars(&self.$part, out);)*
                }
            }

            // SAFETY: the assertions in `FORM` prove the layout; any bits are floats.
            #[diagnostic::do_not_recommend]
            unsafe impl KernelType for $name {}
        )*};
        (@of Vec2, $all:ident) => { Vec2::from_array($all) };
        (@of Vec3, $all:ident) => { Vec3::from_array($all) };
        (@of Vec4, $all:ident) => { Vec4::from_array($all) };
        (@of DVec2, $all:ident) => { DVec2::from_array($all) };
        (@of DVec3, $all:ident) => { DVec3::from_array($all) };
        (@of DVec4, $all:ident) => { DVec4::from_array($all) };
        (@of $matrix:ident, $all:ident) => { $matrix::from_cols_array(&$all) };
    }

    structs! {
        Vec2 = [f32; 2] { x: f32, y: f32 }
        Vec3 = [f32; 3] { x: f32, y: f32, z: f32 }
        Vec4 = [f32; 4] { x: f32, y: f32, z: f32, w: f32 }
        DVec2 = [f64; 2] { x: f64, y: f64 }
        DVec3 = [f64; 3] { x: f64, y: f64, z: f64 }
        DVec4 = [f64; 4] { x: f64, y: f64, z: f64, w: f64 }
        Mat2 = [f32; 4] { x_axis: Vec2, y_axis: Vec2 }
        Mat3 = [f32; 9] { x_axis: Vec3, y_axis: Vec3, z_axis: Vec3 }
        Mat4 = [f32; 16] { x_axis: Vec4, y_axis: Vec4, z_axis: Vec4, w_axis: Vec4 }
        DMat2 = [f64; 4] { x_axis: DVec2, y_axis: DVec2 }
        DMat3 = [f64; 9] { x_axis: DVec3, y_axis: DVec3, z_axis: DVec3 }
        DMat4 = [f64; 16] { x_axis: DVec4, y_axis: DVec4, z_axis: DVec4, w_axis: DVec4 }
    }
}

#[cfg(feature = "nalgebra")]
mod nalgebra {
    use nalgebra::{SMatrix, Scalar};

    use super::{Constant, DeviceType, KernelType, TypeForm};

    /// The forms of a matrix and of its parts.
    struct Forms<T, const R: usize, const C: usize>(T);

    impl<T: DeviceType, const R: usize, const C: usize> Forms<T, R, C> {
        const COLUMN: &'static TypeForm = &TypeForm::array(T::FORM, R as u64);
        const ROW: &'static TypeForm = &TypeForm::array(T::FORM, C as u64);
        const MATRIX: &'static TypeForm = &TypeForm::array(Self::COLUMN, C as u64);
    }

    #[diagnostic::do_not_recommend]
    impl<T: DeviceType + Scalar, const R: usize, const C: usize> DeviceType for SMatrix<T, R, C> {
        const FORM: &'static TypeForm = {
            assert!(size_of::<Self>() == size_of::<[[T; R]; C]>());
            assert!(align_of::<Self>() == align_of::<T>());
            match (R, C) {
                (_, 1) => Forms::<T, R, C>::COLUMN,
                (1, _) => Forms::<T, R, C>::ROW,
                _ => Forms::<T, R, C>::MATRIX,
            }
        };

        fn scalars(&self, out: &mut Vec<Constant>) {
            for element in self.iter() {
                element.scalars(out);
            }
        }
    }

    // SAFETY: such a matrix is its storage, `[[T; R]; C]`, and what has no size: no more bytes, and no other alignment,
    // are there, as `FORM` asserts. An array of one array is that.
    #[diagnostic::do_not_recommend]
    unsafe impl<T: KernelType + Scalar, const R: usize, const C: usize> KernelType
        for SMatrix<T, R, C>
    {
        const ANY_BITS: bool = T::ANY_BITS;
        fn is_value(bytes: &[u8]) -> bool {
            bytes.chunks(size_of::<T>().max(1)).all(T::is_value)
        }
    }
}

#[cfg(feature = "bytemuck")]
mod bytemuck {
    use bytemuck::{Pod, Zeroable};

    use super::super::{BF16x2, F16x2, F32x2, F32x4, F64x2, I32x4, U32x4, U64x2};

    macro_rules! plain {
        ($($vector:ident)*) => {$(
            // SAFETY: lanes one after the other without padding, as asserted where it is declared; any bits are numbers.
            unsafe impl Zeroable for $vector {}
            // SAFETY: as above, and it is `Copy` and borrows nothing.
            unsafe impl Pod for $vector {}
        )*};
    }
    plain! { F16x2 BF16x2 F32x2 F32x4 F64x2 I32x4 U32x4 U64x2 }
}
