//! Methods in `#[kernel]` functions: what `x.name(..)` builds. rustc checks them against the methods that
//! the types have in Rust.
//!
//! | of | are in |
//! |---|---|
//! | all numbers | [`crate::number::Number`] |
//! | floats and signed integers | [`crate::number::Signed`] |
//! | floats | [`crate::math::Math`] |
//! | integers | [`crate::integer::Integer`] |
//! | slices and arrays | here: `len`, `is_empty`; the others in [`super::slice`] |
//! | `Option` | [`super::option`] |
//! | `Result` | [`super::result`] |
//!
//! ```
//! use kiln::prelude::*;
//!
//! #[kernel]
//! fn distances(x: &[f32], y: &[f32], out: &mut [f32]) {
//!     let i = global_id().x;
//!     if i < out.len().min(x.len()) {
//!         out[i] = x[i].mul_add(x[i], y[i] * y[i]).sqrt();
//!     }
//! }
//!
//! # fn main() -> kiln::Result<()> {
//! let jit = Jit::new()?;
//! let (x, y) = (jit.upload(&[3.0, 8.0])?, jit.upload(&[4.0, 15.0])?);
//! let mut out = jit.zeros(2)?;
//! distances.launch(&jit, (1, 32), &x, &y, &mut out)?;
//! assert_eq!(out.to_vec()?, [5.0, 17.0]);
//! # Ok(())
//! # }
//! ```

use kiln_jit_core::front::macros::Operand;
use kiln_jit_core::value::DeviceType;

/// A method of kernels, for `x.name(..)` and for `Type::name(x, ..)`: the types that have it, how it takes
/// its receiver, and what it builds of receiver and arguments.
macro_rules! kernel_method {
    (
        [$($generics:tt)*] $t:ty, $how:ident:
        $name:ident = |$front:ident, $receiver:ident $(, $arg:ident)*| $value:expr
    ) => {
        #[diagnostic::do_not_recommend]
        impl<$($generics)*>
            $crate::plain::resolve::Method<
                { ::kiln_description::method_name(stringify!($name)) },
                (),
            > for $t
        {
            const RECEIVER: ::kiln_jit_core::front::macros::Receiver =
                ::kiln_jit_core::front::macros::Receiver::$how;
            const CHANGES: bool = false;

            fn call<'k>(
                $front: ::kiln_jit_core::front::macros::Front<'k>,
                _: &[::kiln_jit_core::ir::Type],
                args: &[::kiln_jit_core::front::macros::Operand<'k>],
            ) -> ::kiln_jit_core::front::macros::Operand<'k> {
                let args: Vec<_> = args.iter().map(|arg| arg.target()).collect();
                match args.as_slice() {
                    [$receiver $(, $arg)*] => $value,
                    // rustc has counted them.
                    _ => $front.unit(),
                }
            }
        }

        #[diagnostic::do_not_recommend]
        impl<$($generics)*, F>
            $crate::plain::resolve::AssociatedFn<
                { ::kiln_description::method_name(stringify!($name)) },
                F,
            > for $t
        {
            fn call<'k>(
                front: ::kiln_jit_core::front::macros::Front<'k>,
                types: &[::kiln_jit_core::ir::Type],
                args: &[::kiln_jit_core::front::macros::Operand<'k>],
            ) -> ::kiln_jit_core::front::macros::Operand<'k> {
                <Self as $crate::plain::resolve::Method<
                    { ::kiln_description::method_name(stringify!($name)) },
                    (),
                >>::call(front, types, args)
            }
        }
    };
}
pub(crate) use kernel_method;

pub(super) fn is_empty<'k>(x: &Operand<'k>) -> Operand<'k> {
    let len = x.len().read();
    let front = kiln_jit_core::front::macros::Front::new(len.builder());
    front.value(len.eq(len.builder().zero(len.ty())))
}

kernel_method! { [T] [T], Unread: len = |front, x| x.len() }
kernel_method! { [T] [T], Unread: is_empty = |front, x| is_empty(x) }
kernel_method! { [T: DeviceType, const N: usize] [T; N], Unread: len = |front, x| x.len() }
kernel_method! { [T: DeviceType, const N: usize] [T; N], Unread: is_empty = |front, x| is_empty(x) }
