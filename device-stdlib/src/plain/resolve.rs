//! Which function a method or a path like `Complex::new` means in a kernel.
//!
//! rustc resolves both in the checked copy, which tells the types: that of the receiver, and that of
//! the function which a path names. By these the description finds an implementation of [`Method`] or
//! [`AssociatedFn`] for the name. `#[device_fn]` on an `impl` block writes them; for the methods of
//! numbers the tables of the chapters do, and those of slices are in [`super::method`]. Where rustc has found nothing, the last parameter of
//! these traits stays open, and only the implementations for `str` fit: what is wrong is reported once.

use std::marker::PhantomData;

use kiln_description::method_name;
use kiln_jit_core::build::IntoVal as _;
use kiln_jit_core::front::macros::{
    Front, InlineCall, Named as _, Operand, Pooled, Receiver, Receives, TypeOf,
};
use kiln_jit_core::ir::Type;
use kiln_jit_core::value::DeviceType;

use super::number::{FloatOps, NumOps};
use crate::math::bits_of;

/// A method that kernels can call, by the number of its name; `()` for one that rustc has found, too.
pub trait Method<const NAME: u64, Found: ?Sized> {
    /// How the method takes its receiver.
    const RECEIVER: Receiver;
    /// Whether the method may assign something that is not its own: its receiver, or what an argument refers to.
    const CHANGES: bool;

    /// Calls it. The first argument is the receiver; `types` are those written at the call.
    fn call<'k>(front: Front<'k>, types: &[Type], args: &[Operand<'k>]) -> Operand<'k>;
}

/// Methods without closures of types: how they take their receiver, whether they change it, and what they build.
macro_rules! methods {
    ($(
        [$($generics:tt)*] $t:ty, $how:ident, $changes:literal:
        $name:ident = |$front:ident, $receiver:pat_param $(, $arg:pat_param)*| $value:expr;
    )*) => {$(
        #[diagnostic::do_not_recommend]
        impl<$($generics)*> Method<{ method_name(stringify!($name)) }, ()> for $t {
            const RECEIVER: Receiver = Receiver::$how;
            const CHANGES: bool = $changes;

            fn call<'k>($front: Front<'k>, _: &[Type], args: &[Operand<'k>]) -> Operand<'k> {
                match args {
                    &[$receiver $(, $arg)*] => $value,
                    // rustc has counted them.
                    _ => $front.unit(),
                }
            }
        }
    )*};
}
pub(super) use methods;

/// A method that takes closures, by the number of its name; described in place of each call, as a closure describes what
/// is around it.
pub trait InlineMethod<const NAME: u64, Found: ?Sized> {
    /// Describes it here. The first argument is the receiver.
    fn call_inline<'k>(front: Front<'k>, call: &InlineCall<'_, 'k>) -> Operand<'k>;
}

/// A function of a type that kernels can call, by the number of its name and the type that rustc has for
/// the function.
pub trait AssociatedFn<const NAME: u64, F: ?Sized> {
    /// Calls it. `types` are those written at the call.
    fn call<'k>(front: Front<'k>, types: &[Type], args: &[Operand<'k>]) -> Operand<'k>;
}

impl<const NAME: u64, T: ?Sized> Method<NAME, str> for T {
    const RECEIVER: Receiver = Receiver::Value;
    const CHANGES: bool = false;

    fn call<'k>(front: Front<'k>, _: &[Type], _: &[Operand<'k>]) -> Operand<'k> {
        front.unit()
    }
}

impl<const NAME: u64, T: ?Sized> InlineMethod<NAME, str> for T {
    fn call_inline<'k>(front: Front<'k>, _: &InlineCall<'_, 'k>) -> Operand<'k> {
        front.unit()
    }
}

impl<const NAME: u64, T: ?Sized> AssociatedFn<NAME, str> for T {
    fn call<'k>(front: Front<'k>, _: &[Type], _: &[Operand<'k>]) -> Operand<'k> {
        front.unit()
    }
}

// With one implementation only, rustc would take it before it looks at the function.
impl<const NAME: u64, T: ?Sized> AssociatedFn<NAME, [()]> for T {
    fn call<'k>(front: Front<'k>, _: &[Type], _: &[Operand<'k>]) -> Operand<'k> {
        front.unit()
    }
}

/// `T::from_f64(x)` of a number whose type a function of the host leaves open, around `device!(..)`.
macro_rules! conversions {
    ($($name:ident)*) => {$(
        #[diagnostic::do_not_recommend]
        impl<T: NumOps, F> AssociatedFn<{ method_name(stringify!($name)) }, F> for T {
            fn call<'k>(front: Front<'k>, _: &[Type], args: &[Operand<'k>]) -> Operand<'k> {
                match args {
                    [number] => front.convert(front.builder().device_type::<T>(), *number),
                    _ => front.unit(),
                }
            }
        }
    )*};
}
conversions! { from_f64 from_i32 }

/// `f32::from_bits(x)`.
#[diagnostic::do_not_recommend]
impl<T: FloatOps + DeviceType, F> AssociatedFn<{ method_name("from_bits") }, F> for T {
    fn call<'k>(front: Front<'k>, _: &[Type], args: &[Operand<'k>]) -> Operand<'k> {
        let builder = front.builder();
        let ty = builder.device_type::<T>();
        match args {
            [bits] => front.value(bits.into_val(builder, Some(bits_of(ty))).bitcast(ty)),
            _ => front.unit(),
        }
    }
}

/// What rustc infers for a method call of the checked copy: the type of the receiver, without
/// references, and `()` if there is such a method. What the receiver borrows ends with the copy, so a longer
/// borrow stands for a shorter one.
pub struct MethodOf<T: ?Sized, Found: ?Sized>(PhantomData<fn() -> (*const T, *const Found)>);

impl<T: ?Sized, Found: ?Sized> Copy for MethodOf<T, Found> {}

impl<T: ?Sized, Found: ?Sized> Clone for MethodOf<T, Found> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T: ?Sized, Found: ?Sized> MethodOf<T, Found> {
    /// A call that is still to be inferred.
    pub const OPEN: Self = MethodOf(PhantomData);

    /// The method of this name, by its number.
    #[doc(hidden)]
    pub const fn named<const NAME: u64>(self) -> NamedMethod<T, Found, NAME> {
        NamedMethod(self)
    }
}

/// A method by its name. Where kernels have it, `entry` is its own and gives the entry of a pool; where they do not,
/// `entry` is that of [`NoMethod`], whose result is not one, and rustc says what [`HasMethod`] has to say: of the number of
/// a name nobody is to read.
pub struct NamedMethod<T: ?Sized, Found: ?Sized, const NAME: u64>(MethodOf<T, Found>);

impl<T: ?Sized + Method<NAME, Found>, Found: ?Sized, const NAME: u64> NamedMethod<T, Found, NAME> {
    /// The entry of a pool for a call of it.
    #[doc(hidden)]
    pub fn entry(&self) -> Pooled {
        Pooled::method(T::RECEIVER, T::CHANGES, T::call)
    }
}

impl<T: ?Sized + InlineMethod<NAME, Found>, Found: ?Sized, const NAME: u64>
    NamedMethod<T, Found, NAME>
{
    /// The entry of a pool for a call of it with closures.
    #[doc(hidden)]
    pub fn inline_entry(&self) -> Pooled {
        Pooled::inline(T::call_inline)
    }
}

/// A method that kernels do not have.
pub trait NoMethod {
    /// The type without the method.
    type Of: ?Sized;

    /// What is no entry of a pool.
    fn entry(&self) -> Without<Self::Of> {
        Without(PhantomData)
    }

    /// What is no entry of a pool for a method that takes closures.
    fn inline_entry(&self) -> Without<Self::Of> {
        Without(PhantomData)
    }
}

impl<T: ?Sized, Found: ?Sized, const NAME: u64> NoMethod for NamedMethod<T, Found, NAME> {
    type Of = T;
}

/// A type without the method or the function that is called.
pub struct Without<T: ?Sized>(PhantomData<fn() -> *const T>);

/// What an entry of a pool for a method is made of.
pub trait HasMethod {
    /// The entry.
    fn pooled(self) -> Pooled;
}

impl HasMethod for Pooled {
    fn pooled(self) -> Pooled {
        self
    }
}

impl<T: ?Sized + MethodInKernels> HasMethod for Without<T> {
    fn pooled(self) -> Pooled {
        T::none()
    }
}

/// No type implements it: it is what rustc is asked about a type without the method that is called.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no such method in kernels",
    label = "not a method of kernels",
    note = "mark the `impl` block that it is in with `#[device_fn]`, or write a `#[device_fn]` function",
    note = "of the methods that numbers have in Rust, kernels have those which the traits `Number`, `Signed`, \
            `Math` and `Integer` of `kiln::prelude` list; those of slices, arrays and `Option` are in the guide's chapter \
            on the Rust of kernels"
)]
pub trait MethodInKernels {
    /// Any entry.
    fn none() -> Pooled;
}

/// What methods return. rustc calls nothing on the result of a method that it has not found.
pub trait MethodResult {
    /// Notes that there is such a method.
    #[doc(hidden)]
    fn __kiln_found<T: ?Sized>(&self, _: &MethodOf<T, ()>) {}
}

impl<R: ?Sized> MethodResult for R {}

/// What methods of kernels are called on.
pub trait MethodReceiver {
    /// Fixes the type of the receiver. rustc finds this method behind references as it finds the
    /// method that is called.
    #[doc(hidden)]
    fn __kiln_receiver<Found: ?Sized>(&self, _: &MethodOf<Self, Found>) {}
}

impl<T: Receives> MethodReceiver for T {}
// Of any elements: that kernels do not know them is said where the slice is declared.
impl<T> MethodReceiver for [T] {}

/// Lets a path name a function of a type: in `Complex::__kiln_named`, rustc infers the parameters of
/// the type that are not written.
pub trait Associated {
    /// The function of this type which rustc has resolved.
    #[doc(hidden)]
    fn __kiln_named<const NAME: u64, F: ?Sized>(of: &TypeOf<F>) -> NamedFn<Self, F, NAME> {
        NamedFn(*of, PhantomData)
    }
}

impl<T: ?Sized> Associated for T {}

/// A function of a type by its name, as [`NamedMethod`] is a method.
pub struct NamedFn<T: ?Sized, F: ?Sized, const NAME: u64>(TypeOf<F>, PhantomData<fn() -> *const T>);

impl<T: ?Sized + AssociatedFn<NAME, F>, F: ?Sized, const NAME: u64> NamedFn<T, F, NAME> {
    /// The entry of a pool for a call of it.
    #[doc(hidden)]
    pub fn entry(&self) -> Pooled {
        Pooled::call(<T as AssociatedFn<NAME, F>>::call)
    }
}

impl<T: ?Sized, F: ?Sized, const NAME: u64> NoMethod for NamedFn<T, F, NAME> {
    type Of = T;
}

/// What an entry of a pool for a function of a type is made of.
pub trait HasFunction {
    /// The entry.
    fn pooled(self) -> Pooled;
}

impl HasFunction for Pooled {
    fn pooled(self) -> Pooled {
        self
    }
}

impl<T: ?Sized + FunctionInKernels> HasFunction for Without<T> {
    fn pooled(self) -> Pooled {
        T::none()
    }
}

/// What an entry of a pool for `T::default()` is made of: a function of kernels where the type has one, otherwise the value
/// that the host has.
#[diagnostic::on_unimplemented(
    message = "a kernel cannot have this `default()`",
    note = "mark the `impl` block that it is in with `#[device_fn]`, or give the type `#[derive(KernelType)]`, so that its value is \
            one of kernels"
)]
pub trait HasDefault {
    /// The entry.
    fn pooled_default(self, front: Front<'_>) -> Pooled;
}

/// The function that `Default::default()` of the type which rustc has inferred is.
#[doc(hidden)]
pub fn default_of<T>(_: &TypeOf<T>) -> NamedFn<T, fn() -> T, { method_name("default") }> {
    NamedFn(TypeOf::OPEN, PhantomData)
}

impl HasDefault for Pooled {
    fn pooled_default(self, _: Front<'_>) -> Pooled {
        self
    }
}

impl<T: DeviceType + Default> HasDefault for Without<T> {
    fn pooled_default(self, front: Front<'_>) -> Pooled {
        T::default().pooled(front)
    }
}

/// No type implements it: it is what rustc is asked about a type without the function that is called.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no such function in kernels",
    label = "not a function of kernels",
    note = "mark the `impl` block that it is in with `#[device_fn]`",
    note = "of the functions that numbers have in Rust, kernels have `from`, `from_be_bytes` and its kind, floats \
            `from_bits`, and the methods, `f32::max(a, b)`"
)]
pub trait FunctionInKernels {
    /// Any entry.
    fn none() -> Pooled;
}
