//! Globals in kernels: arrays in the memory of a device that the kernels of a `Jit` share, and the host with them.

/// Declares arrays in a device's memory that the kernels of a `Jit` share (CUDA guide, `__device__`).
///
/// In a kernel the array is what the function of its name returns, a `&'static mut [T; N]`; on the host it is
/// `name::on(&jit)`, a [`Global`](kiln_jit_core::runtime::Global), which is read and written between launches. It is made
/// at its first use with the values behind the `=`, else of zeros, and lives as long as the `Jit`; each `Jit` has its own.
/// Threads that change what others read need atomics, as everywhere.
///
/// ```
/// use kiln::prelude::*;
///
/// kiln::global! {
///     /// How many numbers were below the limit, and how many were not.
///     fn found() -> [u32; 2];
///     fn limit() -> [f32; 1] = [0.5];
/// }
///
/// #[device_fn]
/// fn note(below: bool) {
///     let counts = found();
///     atomic_add(&mut counts[if below { 0 } else { 1 }], 1);
/// }
///
/// #[kernel]
/// fn count(x: &[f32]) {
///     let i = global_id().x;
///     if i < x.len() {
///         note(x[i] < limit()[0]);
///     }
/// }
///
/// # fn main() -> kiln::Result<()> {
/// let jit = Jit::new()?;
/// let x = jit.upload(&[0.1, 0.3, 0.6, 0.7, 0.9])?;
/// count.launch(&jit, (1, 32), &x)?;
/// assert_eq!(found::on(&jit)?.to_vec()?, [2, 3]);
/// limit::on(&jit)?.write(&[0.65])?;
/// count.launch(&jit, (1, 32), &x)?;
/// assert_eq!(found::on(&jit)?.to_vec()?, [5, 5]);
/// # Ok(())
/// # }
/// ```
///
/// By the builder it is [`KernelBuilder::global`](kiln_jit_core::build::KernelBuilder::global), under the path of the
/// function, `my_crate::found`.
#[macro_export]
macro_rules! global {
    ($(
        $(#[$attribute:meta])*
        $vis:vis fn $name:ident() -> [$element:ty; $len:expr] $(= $values:expr)?;
    )+) => {$(
        $(#[$attribute])*
        $vis fn $name() -> &'static mut [$element; $len] {
            ::core::panic!("a global is memory of a device; the host has it by `{}::on(&jit)`", ::core::stringify!($name))
        }

        #[doc = concat!("The memory that [`", stringify!($name), "()`] is in kernels.")]
        #[allow(non_camel_case_types, dead_code, reason = "it has the name of the function")]
        $vis enum $name {}

        #[allow(dead_code, reason = "a program may use some of it")]
        impl $name {
            const ARRAY: &'static $crate::macros::GlobalArray<$element, { $len }> =
                &$crate::macros::GlobalArray::new(
                    ::core::concat!(::core::module_path!(), "::", ::core::stringify!($name)),
                    $crate::global!(@values $($values)?),
                );

            /// The memory that kernels of a `Jit` have, made now if there is none so far.
            ///
            /// # Errors
            /// Another array has its name; no memory.
            $vis fn on(
                jit: &$crate::macros::Jit,
            ) -> $crate::macros::Result<$crate::macros::Global<$element>> {
                jit.declared_global(Self::ARRAY)
            }
        }

        #[diagnostic::do_not_recommend]
        impl $crate::macros::Callable for $name {
            fn call<'k>(
                front: $crate::macros::Front<'k>,
                _: &[$crate::macros::Type],
                _: &[$crate::macros::Operand<'k>],
            ) -> $crate::macros::Operand<'k> {
                Self::ARRAY.in_kernel(front)
            }
        }
    )+};
    (@values) => { ::core::option::Option::None };
    (@values $values:expr) => { ::core::option::Option::Some($values) };
    ($($other:tt)*) => {
        ::core::compile_error!(
            "a global is a function that returns an array, with its values at first or without, \
             `fn counts() -> [u32; 4];` or `fn weights() -> [f32; 2] = [0.25, 0.75];`"
        );
    };
}
