//! Which function a method or a path like `Complex::new` means in a kernel.
//!
//! rustc resolves both in the checked copy, which tells the types: that of the receiver, and that of
//! the function which a path names. By these the description finds an implementation of [`Method`] or
//! [`AssociatedFn`] for the name. `#[device_fn]` on an `impl` block writes them; for the methods of
//! numbers the tables of the chapters do, and those of slices are in [`super::method`]. Where rustc has found nothing, the last parameter of
//! these traits stays open, and only the implementations for `str` fit: what is wrong is reported once.

use std::marker::PhantomData;

use kiln_description::method_name;
use kiln_jit_core::front::{Front, Operand, Pooled, Receiver, TypeOf};
use kiln_jit_core::ir::Type;
use kiln_jit_core::value::KernelValue;

use super::number::NumOps;

/// A method that kernels can call, by the number of its name; `()` for one that rustc has found, too.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no such method in kernels",
    label = "not a method of kernels",
    note = "mark the `impl` block that it is in with `#[device_fn]`, or write a `#[device_fn]` function",
    note = "of the methods that numbers have in Rust, kernels have those which the traits `Number`, `Signed`, \
            `Math` and `Integer` of `kiln::prelude` list; slices and arrays have `len` and `is_empty`"
)]
pub trait Method<const NAME: u64, Found: ?Sized> {
    /// How the method takes its receiver.
    const RECEIVER: Receiver;
    /// Whether the method may assign something that is not its own: its receiver, or what an argument refers to.
    const CHANGES: bool;

    /// Calls it. The first argument is the receiver; `types` are those written at the call.
    fn call<'k>(front: Front<'k>, types: &[Type], args: &[Operand<'k>]) -> Operand<'k>;

    /// The entry of a pool for a call of it.
    fn pooled(_: &MethodOf<Self, Found>) -> Pooled {
        Pooled::method(Self::RECEIVER, Self::CHANGES, Self::call)
    }
}

/// A function of a type that kernels can call, by the number of its name and the type that rustc has for
/// the function.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no such function in kernels",
    label = "not a function of kernels",
    note = "mark the `impl` block that it is in with `#[device_fn]`",
    note = "of the functions that numbers have in Rust, kernels have `from` and the methods, `f32::max(a, b)`"
)]
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
}

/// What methods return. rustc calls nothing on the result of a method that it has not found.
pub trait MethodResult {
    /// Notes that there is such a method.
    fn __kiln_found<T: ?Sized>(&self, _: &MethodOf<T, ()>) {}
}

impl<R: ?Sized> MethodResult for R {}

/// What methods of kernels are called on.
pub trait MethodReceiver {
    /// Fixes the type of the receiver. rustc finds this method behind references as it finds the
    /// method that is called.
    fn __kiln_receiver<Found: ?Sized>(&self, _: &MethodOf<Self, Found>) {}
}

impl<T: KernelValue> MethodReceiver for T {}
// Of any elements: that kernels do not know them is said where the slice is declared.
impl<T> MethodReceiver for [T] {}

/// Lets a path name a function of a type: in `Complex::__kiln_pooled`, rustc infers the parameters of
/// the type that are not written.
pub trait Associated {
    /// The entry of a pool for a call of the function of this type which rustc has resolved.
    fn __kiln_pooled<const NAME: u64, F: ?Sized>(_: &TypeOf<F>) -> Pooled
    where
        Self: AssociatedFn<NAME, F>,
    {
        Pooled::call(<Self as AssociatedFn<NAME, F>>::call)
    }
}

impl<T: ?Sized> Associated for T {}
