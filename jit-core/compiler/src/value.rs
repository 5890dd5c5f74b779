//! Host types that kernels can take, keep in memory and give back.
//!
//! [`KernelType`] ties a Rust type to its IR type and promises that both have one layout, so a
//! value is moved between host and device by copying its bytes. The numbers, `bool`, fixed arrays
//! and a few short vectors implement it here; [`kernel_type!`](crate::kernel_type) declares structs
//! that do. Layout is C's on a 64-bit machine, see [`TypeTable::layout`].

pub(crate) mod comparison;
#[cfg(any(
    feature = "num-complex",
    feature = "glam",
    feature = "nalgebra",
    feature = "bytemuck"
))]
mod foreign;
mod vector;

use std::mem::MaybeUninit;
use std::ops::{Range, RangeInclusive};

use smallvec::SmallVec;

use crate::error::{Error, MemoryError};
use crate::ir::{Constant, Scalar, Type, TypeForm, TypeTable, debug_as_text, error_text};

pub use vector::{BF16x2, F16x2, F32x2, F32x4, F64x2, I32x4, Pair, Quad, U32x4, U64x2};

/// A Rust type that can be written in a kernel: one with a counterpart in the IR.
///
/// This says nothing about layout; [`KernelType`] does. Type parameters of `#[kernel]` functions and
/// `usize`, which has 32 bits in kernels, are device types and no kernel types.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a type that kernels can hold",
    label = "kernels do not know this type",
    note = "they know numbers, `bool`, fixed arrays, and structs with `#[derive(Copy, Clone, KernelType)]` and \
            `#[repr(C)]` before them; a struct with slices has `#[derive(KernelView)]` and is written with \
            its lifetime, `View<'_>`"
)]
pub trait DeviceType: Copy + 'static {
    /// The IR type, written out.
    const FORM: &'static TypeForm;

    /// The IR type, entered in `types` if it is new.
    fn ir_type(types: &mut TypeTable) -> Type {
        Self::FORM.enter(types)
    }

    /// Appends the scalars of this value, in memory order.
    fn scalars(&self, out: &mut Vec<Constant>);
}

/// A Rust type that something in a kernel can have: a [`DeviceType`], or a `#[derive(KernelView)]` struct,
/// which has slices inside and is [seen](crate::view) in kernels alone.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a type that kernels can hold",
    label = "kernels do not know this type",
    note = "they know numbers, `bool`, fixed arrays, and structs with `#[derive(Copy, Clone, KernelType)]` and \
            `#[repr(C)]` before them; a struct with slices has `#[derive(KernelView)]` and is written with \
            its lifetime, `View<'_>`"
)]
pub trait KernelValue {
    /// The IR type, entered in `types` if it is new.
    fn type_in(types: &mut TypeTable) -> Type;
}

#[diagnostic::do_not_recommend]
impl<T: DeviceType> KernelValue for T {
    fn type_in(types: &mut TypeTable) -> Type {
        T::ir_type(types)
    }
}

/// A Rust type whose values kernels can hold.
///
/// # Safety
///
/// - Size, alignment and field offsets of the Rust type are those that [`TypeTable::layout`] and
///   [`TypeTable::struct_layout`] give for [`DeviceType::ir_type`].
/// - Every bit pattern is a valid value of the Rust type, because buffers are read back as values of
///   it; if [`KernelType::ANY_BITS`] is false, those for which [`KernelType::is_value`] is true are.
///   Nothing is relied on that a kernel does: a place may never have been written, or have been
///   written through a view of another type, as of dynamic shared memory.
/// - `ir_type` is not overridden: it gives the type that [`DeviceType::FORM`] is, by whose digest code
///   for the type is found.
///
/// Padding bytes of a struct have no defined value; whoever copies a value must not look at them.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a type that kernels can hold",
    label = "kernels do not know this type",
    note = "they know numbers, `bool`, fixed arrays, and structs with `#[derive(Copy, Clone, KernelType)]` and \
            `#[repr(C)]` before them; a struct with slices has `#[derive(KernelView)]` and is written with \
            its lifetime, `View<'_>`"
)]
pub unsafe trait KernelType: DeviceType + Send + Sync {
    /// Whether all bit patterns are values. If not, each value is checked when it is read back.
    const ANY_BITS: bool = true;

    /// Whether some bytes are a value of the type, for types where not all are.
    fn is_value(bytes: &[u8]) -> bool {
        let _ = bytes;
        true
    }
}

/// A type whose values are any bits, without padding: numbers, vectors, and arrays of them. The memory of such
/// elements may be seen as that of others.
///
/// # Safety
/// All bit patterns of all its bytes are values, and no byte of a value is undefined.
#[diagnostic::on_unimplemented(
    message = "memory is not seen as `{Self}`, nor memory of that as something else",
    label = "not any bits are a value of this type, or it has padding",
    note = "slices of numbers, of `F32x4` and its kind and of arrays of them are cast"
)]
pub unsafe trait Pod: KernelType {}

// SAFETY: its bytes are those of the elements.
#[diagnostic::do_not_recommend]
unsafe impl<T: Pod, const N: usize> Pod for [T; N] {}

/// A slice as one of other elements in the same memory, as [`Val::cast_slice`](crate::build::Val::cast_slice) is in
/// kernels.
///
/// # Panics
/// The slice does not begin where such elements may, or its bytes are no whole number of them.
pub fn cast_slice<T: Pod, U: Pod>(x: &[T]) -> &[U] {
    let (start, len) = (x.as_ptr().cast::<U>(), cast_len::<T, U>(x));
    // SAFETY: as many bytes as `x` has, aligned; any bits are a value.
    unsafe { std::slice::from_raw_parts(start, len) }
}

/// [`cast_slice`] of a slice that may be written.
///
/// # Panics
/// As [`cast_slice`].
pub fn cast_slice_mut<T: Pod, U: Pod>(x: &mut [T]) -> &mut [U] {
    let len = cast_len::<T, U>(x);
    let start = x.as_mut_ptr().cast::<U>();
    // SAFETY: as many bytes as `x` has, aligned; any bits are a value of both types.
    unsafe { std::slice::from_raw_parts_mut(start, len) }
}

fn cast_len<T: Pod, U: Pod>(x: &[T]) -> usize {
    const { assert!(size_of::<U>() > 0, "elements without bytes are not counted") };
    assert!(
        x.as_ptr().cast::<U>().is_aligned(),
        "the elements are not aligned"
    );
    assert!(
        size_of_val(x).is_multiple_of(size_of::<U>()),
        "the bytes are no whole number of elements"
    );
    size_of_val(x) / size_of::<U>()
}

macro_rules! device_scalars {
    ($($rust:ty => $scalar:ident, |$value:ident| $constant:expr;)*) => {$(
        #[diagnostic::do_not_recommend]
        impl DeviceType for $rust {
            const FORM: &'static TypeForm = &TypeForm::scalar(Scalar::$scalar);
            fn scalars(&self, out: &mut Vec<Constant>) {
                let $value = *self;
                out.push($constant);
            }
        }
    )*};
}

device_scalars! {
    bool => Bool, |b| Constant::Bool(b);
    i8 => I8, |n| Constant::Int(n.into());
    i16 => I16, |n| Constant::Int(n.into());
    i32 => I32, |n| Constant::Int(n.into());
    i64 => I64, |n| Constant::Int(n.into());
    u8 => U8, |n| Constant::Int(n.into());
    u16 => U16, |n| Constant::Int(n.into());
    u32 => U32, |n| Constant::Int(n.into());
    u64 => U64, |n| Constant::Int(n.into());
    // Kernels index with 32 bits, so they are a machine whose pointers have 32: the limits of the host's are those
    // of such a machine, and so is what is counted from them.
    isize => I32, |n| Constant::Int(from_limits(
        n as i128,
        isize::MIN as i128..=isize::MAX as i128,
        i32::MIN.into()..=i32::MAX.into(),
    ));
    usize => U32, |n| Constant::Int(from_limits(
        n as i128,
        0..=usize::MAX as i128,
        0..=u32::MAX.into(),
    ));
    half::f16 => F16, |x| Constant::Float(x.to_f64());
    half::bf16 => BF16, |x| Constant::Float(x.to_f64());
    f32 => F32, |x| Constant::Float(x.into());
    f64 => F64, |x| Constant::Float(x);
}

/// A number of the host's limits that is so far from one of them as from that of the device's: `usize::MAX - 1`. What is
/// nearer to neither than half of the device's numbers are, is itself.
fn from_limits(n: i128, host: RangeInclusive<i128>, device: RangeInclusive<i128>) -> i128 {
    const NEAR: i128 = 1 << 31;
    match (n - host.start(), host.end() - n) {
        (below, _) if below < NEAR => device.start() + below,
        (_, above) if above < NEAR => device.end() - above,
        _ => n,
    }
}

/// What comparisons give, `a.cmp(&b)`: the integer that Rust has for it.
#[diagnostic::do_not_recommend]
impl DeviceType for std::cmp::Ordering {
    const FORM: &'static TypeForm = i8::FORM;
    fn scalars(&self, out: &mut Vec<Constant>) {
        (*self as i8).scalars(out);
    }
}

macro_rules! scalars {
    ($($rust:ty)*) => {$(
        const _: () = assert!(size_of::<$rust>() == align_of::<$rust>());

        // SAFETY: the IR scalar of the same name has the same size and is aligned to it; all bit
        // patterns of numbers are valid.
        #[diagnostic::do_not_recommend]
        unsafe impl KernelType for $rust {}

        // SAFETY: the same.
        #[diagnostic::do_not_recommend]
        unsafe impl Pod for $rust {}
    )*};
}

const _: () = assert!(size_of::<bool>() == 1 && align_of::<bool>() == 1);

// SAFETY: the IR's `bool` is a byte, too; 0 and 1 are its values.
#[diagnostic::do_not_recommend]
unsafe impl KernelType for bool {
    const ANY_BITS: bool = false;
    fn is_value(bytes: &[u8]) -> bool {
        matches!(bytes, [0 | 1])
    }
}

scalars! { i8 i16 i32 i64 u8 u16 u32 u64 half::f16 half::bf16 f32 f64 }

#[diagnostic::do_not_recommend]
impl<T: DeviceType, const N: usize> DeviceType for [T; N] {
    const FORM: &'static TypeForm = &TypeForm::array(T::FORM, N as u64);
    fn scalars(&self, out: &mut Vec<Constant>) {
        for element in self {
            element.scalars(out);
        }
    }
}

/// Tuples, which kernels hold and buffers do not: Rust does not say where their fields lie.
macro_rules! tuples {
    ($(($($t:ident $field:tt)*))*) => {$(
        #[diagnostic::do_not_recommend]
        impl<$($t: DeviceType),*> DeviceType for ($($t,)*) {
            const FORM: &'static TypeForm =
                &TypeForm::structure("tuple", &[$((stringify!($field), $t::FORM)),*]);
            fn scalars(&self, out: &mut Vec<Constant>) {
                $(self.$field.scalars(out);)*
            }
        }
    )*};
}

tuples! {
    (A 0)
    (A 0 B 1)
    (A 0 B 1 C 2)
    (A 0 B 1 C 2 D 3)
    (A 0 B 1 C 2 D 3 E 4)
    (A 0 B 1 C 2 D 3 E 4 F 5)
    (A 0 B 1 C 2 D 3 E 4 F 5 G 6)
    (A 0 B 1 C 2 D 3 E 4 F 5 G 6 H 7)
}

// SAFETY: an array is its elements one after the other, aligned as an element, in both worlds.
#[diagnostic::do_not_recommend]
unsafe impl<T: KernelType, const N: usize> KernelType for [T; N] {
    const ANY_BITS: bool = T::ANY_BITS;
    fn is_value(bytes: &[u8]) -> bool {
        bytes.chunks(size_of::<T>().max(1)).all(T::is_value)
    }
}

/// Declares structs that kernels can hold.
///
/// The struct gets `#[repr(C)]`, `Copy`, `Clone`, `Debug`, `PartialEq` and [`KernelType`]; further
/// attributes and derives may be given, save those that change the layout, which do not compile.
/// Every field's type must be a [`KernelType`]. In the IR it is a struct of the same name.
///
/// ```
/// kiln::core::kernel_type! {
///     /// A point of the plane.
///     pub struct Point {
///         pub x: f32,
///         pub y: f32,
///     }
/// }
/// assert_eq!(std::mem::size_of::<Point>(), 8);
/// ```
///
/// ```compile_fail
/// kiln_compiler::kernel_type! {
///     #[repr(packed)]
///     struct Odd { a: u8, b: u32 }
/// }
/// ```
#[macro_export]
macro_rules! kernel_type {
    ($(
        $(#[$attribute:meta])*
        $visibility:vis struct $name:ident {
            $($(#[$field_attribute:meta])* $field_visibility:vis $field:ident : $ty:ty),* $(,)?
        }
    )*) => {$(
        $(#[$attribute])*
        #[derive(Copy, Clone, Debug, PartialEq)]
        #[repr(C)]
        $visibility struct $name {
            $($(#[$field_attribute])* $field_visibility $field: $ty,)*
        }

        // The layout algorithm of `TypeTable::struct_layout`, on the Rust sizes of the fields,
        // which their own `KernelType` promises to be those of the IR.
        const _: () = {
            #[allow(unused_mut, reason = "a struct without fields assigns neither")]
            let (mut size, mut align) = (0_usize, 1_usize);
            $(
                size = size.next_multiple_of(::core::mem::align_of::<$ty>());
                assert!(::core::mem::offset_of!($name, $field) == size, "field is not where C has it");
                size += ::core::mem::size_of::<$ty>();
                if ::core::mem::align_of::<$ty>() > align {
                    align = ::core::mem::align_of::<$ty>();
                }
            )*
            assert!(::core::mem::align_of::<$name>() == align, "alignment is not C's");
            assert!(
                ::core::mem::size_of::<$name>() == size.next_multiple_of(align),
                "size is not C's"
            );
        };

        // SAFETY: the assertions above prove the layout; every field is a `KernelType`, so what a
        // kernel stores in one is valid there.
        #[diagnostic::do_not_recommend]
        unsafe impl $crate::value::KernelType for $name {
            const ANY_BITS: bool =
                true $(&& <$ty as $crate::value::KernelType>::ANY_BITS)*;
            fn is_value(bytes: &[u8]) -> bool {
                let _ = bytes;
                true $(&& {
                    let start = ::core::mem::offset_of!($name, $field);
                    let end = start + ::core::mem::size_of::<$ty>();
                    bytes
                        .get(start..end)
                        .is_some_and(<$ty as $crate::value::KernelType>::is_value)
                })*
            }
        }

        #[diagnostic::do_not_recommend]
        impl $crate::value::DeviceType for $name {
            const FORM: &'static $crate::ir::TypeForm = &$crate::ir::TypeForm::structure(
                ::core::stringify!($name),
                &[$((::core::stringify!($field), <$ty as $crate::value::DeviceType>::FORM)),*],
            );
            fn scalars(&self, out: &mut ::std::vec::Vec<$crate::ir::Constant>) {
                let _ = &out;
                $($crate::value::DeviceType::scalars(&self.$field, out);)*
            }
        }
    )*};
}

/// The bytes of values, padding included.
pub fn bytes_of<T: KernelType>(values: &[T]) -> &[MaybeUninit<u8>] {
    // SAFETY: the pointer and the length in bytes are those of `values`; any byte, padding too, is
    // a valid `MaybeUninit<u8>`.
    unsafe { std::slice::from_raw_parts(values.as_ptr().cast(), size_of_val(values)) }
}

/// The bytes of values, padding replaced by zeros.
pub(crate) fn defined_bytes<T: KernelType>(values: &[T]) -> Vec<u8> {
    values.iter().flat_map(value_bytes).collect()
}

/// The bytes of a value that has at most 16, as they lie in memory; padding and what follows is zeros.
#[inline]
pub(crate) fn value_words<T: KernelType>(value: &T) -> [u64; 2] {
    let mut bytes = [0; 16];
    let to = &mut bytes[..size_of::<T>()];
    match const { T::FORM.is_dense() } {
        // SAFETY: the value has no padding, by the contract of `KernelType`, so its bytes are initialized.
        true => to.copy_from_slice(unsafe {
            std::slice::from_raw_parts(std::ptr::from_ref(value).cast(), size_of::<T>())
        }),
        false => to.copy_from_slice(&value_bytes(value)),
    }
    let word = |at| u64::from_le_bytes(std::array::from_fn(|i| bytes[at + i]));
    [word(0), word(8)]
}

/// The bytes of a value, padding replaced by zeros. Up to 16 take no allocation.
pub(crate) fn value_bytes<T: KernelType>(value: &T) -> SmallVec<[u8; 16]> {
    let start: *const u8 = std::ptr::from_ref(value).cast();
    // SAFETY: for ranges of bytes that are no padding. `T` has its fields where its form has them, by the
    // contract of `KernelType`, and the bytes of a field are initialized.
    let defined = |range: Range<usize>| unsafe {
        std::slice::from_raw_parts(start.add(range.start), range.len())
    };
    if const { T::FORM.is_dense() } {
        return SmallVec::from_slice(defined(0..size_of::<T>()));
    }
    let mut bytes = SmallVec::from_elem(0, size_of::<T>());
    T::FORM.for_each_defined(&mut |range| bytes[range.clone()].copy_from_slice(defined(range)));
    bytes
}

/// A value that was read back and is none of its type: a kernel stored something else there.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", error_text!(
    "element {index} of a buffer of `{ty}` holds no value of that type; initialize the buffer with \
     `upload`, and look for the kernel that wrote another number there"
))]
pub struct InvalidValue {
    /// The Rust type.
    pub ty: &'static str,
    /// The first element that is none.
    pub index: usize,
}

debug_as_text!(InvalidValue);

/// A vector of `len` values whose bytes `fill` writes.
///
/// # Errors
/// Those of `fill`, what is no value of the type, and a host without memory for them.
pub(crate) fn vec_from_bytes<T: KernelType>(
    len: usize,
    fill: impl FnOnce(&mut [u8]) -> Result<(), Error>,
) -> Result<Vec<T>, Error> {
    let bytes = len.saturating_mul(size_of::<T>());
    let mut values: Vec<T> = Vec::new();
    let reserved = values.try_reserve_exact(len);
    reserved.map_err(|_| MemoryError::Host { bytes })?;
    let start: *mut u8 = values.as_mut_ptr().cast();
    // SAFETY: the vector has room for `bytes` bytes, which `write_bytes` initializes before they
    // are lent as `u8`. Any bytes are a value of the type by the contract of `KernelType`, or are
    // checked.
    unsafe {
        start.write_bytes(0, bytes);
        let filled = std::slice::from_raw_parts_mut(start, bytes);
        fill(filled)?;
        if !T::ANY_BITS {
            check_values::<T>(filled)?;
        }
        values.set_len(len);
    }
    Ok(values)
}

/// Overwrites values with bytes that `fill` writes.
///
/// # Errors
/// As [`vec_from_bytes`].
pub(crate) fn fill_from_bytes<T: KernelType>(
    values: &mut [T],
    fill: impl FnOnce(&mut [u8]) -> Result<(), Error>,
) -> Result<(), Error> {
    if !T::ANY_BITS || const { !T::FORM.is_dense() } {
        values.copy_from_slice(&vec_from_bytes(values.len(), fill)?);
        return Ok(());
    }
    // SAFETY: the pointer and the length in bytes are those of `values`, which have no padding, so that all bytes
    // are initialized; any bytes are a value of the type.
    let bytes =
        unsafe { std::slice::from_raw_parts_mut(values.as_mut_ptr().cast(), size_of_val(values)) };
    fill(bytes)
}

pub(crate) fn check_values<T: KernelType>(bytes: &[u8]) -> Result<(), InvalidValue> {
    let wrong = bytes
        .chunks(size_of::<T>().max(1))
        .position(|value| !T::is_value(value));
    match wrong {
        None => Ok(()),
        Some(index) => Err(InvalidValue {
            ty: std::any::type_name::<T>(),
            index,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::{Layout, TypeData};

    crate::kernel_type! {
        #[derive(Default)]
        struct Inner {
            flag: bool,
            at: [u16; 3],
        }

        #[repr(C)]
        #[derive(Default)]
        struct Outer {
            small: u8,
            inner: Inner,
            wide: F32x4,
            big: f64,
        }

        struct Nothing {}
    }

    fn check<T: KernelType>() {
        let mut types = TypeTable::new();
        let ty = T::ir_type(&mut types);
        let expected = Layout {
            size: size_of::<T>() as u64,
            align: align_of::<T>() as u64,
        };
        assert_eq!(types.layout(ty), Some(expected), "{}", types.display(ty));
        assert_eq!(T::ir_type(&mut types), ty);
    }

    #[test]
    fn layouts_agree() {
        check::<bool>();
        check::<i8>();
        check::<i16>();
        check::<i32>();
        check::<i64>();
        check::<u8>();
        check::<u16>();
        check::<u32>();
        check::<u64>();
        check::<half::f16>();
        check::<half::bf16>();
        check::<f32>();
        check::<f64>();
        check::<[u16; 5]>();
        check::<[[f64; 2]; 0]>();
        check::<F32x2>();
        check::<F32x4>();
        check::<F64x2>();
        check::<I32x4>();
        check::<U64x2>();
        check::<U32x4>();
        check::<F16x2>();
        check::<BF16x2>();
        check::<[F32x2; 3]>();
        check::<Inner>();
        check::<Outer>();
        check::<Nothing>();
    }

    #[test]
    fn padding_is_zeros() {
        let value = Outer {
            small: 1,
            inner: Inner {
                flag: true,
                at: [2, 3, 4],
            },
            wide: F32x4([0.0; 4]),
            big: 5.0,
        };
        let mut expected = [0; size_of::<Outer>()];
        let inner = std::mem::offset_of!(Outer, inner);
        let big = std::mem::offset_of!(Outer, big);
        expected[0] = 1;
        expected[inner] = 1;
        expected[inner + 2..inner + 8].copy_from_slice(&[2, 0, 3, 0, 4, 0]);
        expected[big..big + 8].copy_from_slice(&5.0f64.to_ne_bytes());
        assert_eq!(value_bytes(&value)[..], expected);
        assert_eq!(defined_bytes(&[value; 3]), expected.repeat(3));
        assert_eq!(value_bytes(&0x0102_0304_u32)[..], [4, 3, 2, 1]);
        assert!(value_bytes(&Nothing {}).is_empty());
    }

    #[test]
    fn field_offsets_agree() {
        let mut types = TypeTable::new();
        let ty = Outer::ir_type(&mut types);
        let TypeData::Struct(id) = *types.data(ty) else {
            panic!("not a struct")
        };
        let offsets = [
            std::mem::offset_of!(Outer, small) as u64,
            std::mem::offset_of!(Outer, inner) as u64,
            std::mem::offset_of!(Outer, wide) as u64,
            std::mem::offset_of!(Outer, big) as u64,
        ];
        assert_eq!(types.struct_layout(id).unwrap().1, offsets);
        assert_eq!(types.display(ty), "@Outer");
    }
}
