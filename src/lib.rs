//! Kiln: GPU kernels compiled while your program runs.
//!
//! Host code describes a kernel; Kiln specializes it on the arguments it is launched with, runs the
//! hooks its user registered, compiles it to PTX through LLVM, keeps the result, and launches it.
//! A GPU machine needs NVIDIA's driver and nothing else; with no GPU the same kernel runs on the
//! CPU with the same meaning.
//!
//! ```
//! use kiln::prelude::*;
//!
//! #[kernel]
//! fn saxpy<T: Float>(a: T, x: &[T], y: &mut [T]) {
//!     let i = global_id().x;
//!     if i < y.len() {
//!         y[i] = a * x[i] + y[i];
//!     }
//! }
//!
//! fn main() -> kiln::Result<()> {
//!     let jit = Jit::new()?; // a CUDA device if there is one, else this CPU
//!     let n = 1 << 12;
//!     let x = jit.upload(&vec![1.0f32; n])?;
//!     let mut y = jit.upload(&vec![2.0f32; n])?;
//!     jit.launch(&saxpy, grid_for(n, 256), 256, args!(3.0f32, &x, &mut y))?;
//!     assert_eq!(y.to_vec()?[0], 5.0);
//!     // The same, with arguments that rustc checks.
//!     saxpy.launch(&jit, (grid_for(n, 256), 256), 3.0, &x, &mut y)?;
//!     assert_eq!(y.to_vec()?[0], 8.0);
//!     Ok(())
//! }
//! ```
//!
//! The builder describes kernels that a program makes up as it runs:
//!
//! ```
//! use kiln::prelude::*;
//!
//! # fn main() -> kiln::Result<()> {
//! let saxpy = Kernel::build("saxpy", |k| {
//!     let t = k.type_param("T").float();
//!     let (a, x, y) = (k.param("a", t), k.slice("x", t), k.slice_mut("y", t));
//!     let i = k.global_id().x();
//!     k.if_(i.lt(y.len()), || y.at(i).set(a * x.at(i) + y.at(i)));
//! })?;
//! # drop(saxpy);
//! # Ok(())
//! # }
//! ```
//!
//! | path | what is in it |
//! |---|---|
//! | [`prelude`] | what most programs need: `use kiln::prelude::*;` |
//! | [`stdlib`] | what kernels can call, in chapters |
//! | [`array`](mod@array) | arrays whose expressions become kernels |
//! | [`directives`] | sequential loop nests that become kernels |
//! | [`core::jit`] | the [`Jit`]: its options, prepared launches, what is kept |
//! | [`core::build`] | the builder |
//! | [`core::hook`] | hooks; [`core::prelude`](mod@core::prelude) is for those who write some |
//! | [`core::ir`] | the IR, and how it is rewritten |
//! | [`hooks`] | the hooks that a `Jit` has by itself |
//! | [`error`] | every error, by what it is about |
#![forbid(unsafe_code)]

pub use kiln_array_lib as array;
pub use kiln_device_stdlib as stdlib;
pub use kiln_device_stdlib::{global, intrinsic};
pub use kiln_directives as directives;
pub use kiln_directives_macro::offload;
pub use kiln_hooks as hooks;
pub use kiln_jit_core as core;
pub use kiln_kernel_macro::{KernelType, KernelView, device_fn, kernel};

pub use kiln_jit_core::checks::{Checks, Finding};
pub use kiln_jit_core::error::{self, Error, Result};
pub use kiln_jit_core::jit::{Graph, Jit, JitBuilder, JitOptions, Printed, Recording, Stream};
pub use kiln_jit_core::runtime::{Device, StreamOptions};

/// A kernel as an expression: what `#[kernel]` makes of a function, without a name outside. Its value is
/// a reference that lives as long as the program, to a [`LazyKernel`](core::front::LazyKernel) with the
/// launch that rustc checks. The attribute is [`macro@kernel`].
///
/// ```
/// use kiln::prelude::*;
///
/// # fn main() -> kiln::Result<()> {
/// let scale = kiln::kernel_expr!(scale<T: Float>(x: &mut [T], by: T) {
///     let i = global_id().x;
///     if i < x.len() {
///         x[i] *= by;
///     }
/// });
/// let jit = Jit::new()?;
/// let mut x = jit.upload(&[1.0f32, 2.0])?;
/// jit.launch(scale, 1, 32, args!(&mut x, 10.0f32))?;
/// scale.launch(&jit, (1, 32), &mut x, 0.5)?;
/// assert_eq!(x.to_vec()?, [5.0, 10.0]);
/// # Ok(())
/// # }
/// ```
#[macro_export]
macro_rules! kernel_expr {
    ($($kernel:tt)*) => {
        $crate::macros::kernel_expression!($($kernel)*)
    };
}

/// A function of elements for array operations: the name of a `#[device_fn]`, or a closure.
///
/// ```
/// use kiln::prelude::*;
///
/// #[device_fn]
/// fn leaky<T: Float>(x: T) -> T {
///     x.max(x * T::from_f64(0.25))
/// }
///
/// # fn main() -> kiln::Result<()> {
/// let arrays = Arrays::new(&Jit::new()?);
/// let x = arrays.vector(vec![-4.0f32, 4.0])?;
/// assert_eq!(x.map(device!(leaky)).eval()?.to_vec()?, [-1.0, 4.0]);
/// let (scale, shift) = (0.5, 3.0);
/// let y = x.map(device!(|v| leaky(v) * scale + shift));
/// assert_eq!(y.eval()?.to_vec()?, [2.5, 5.0]);
/// # Ok(())
/// # }
/// ```
///
/// The closure is Rust as in kernels, and rustc checks it and infers its types from the array
/// operation. A variable of the host that it names, `scale` above, is copied when the closure is made
/// and becomes a parameter of the kernel, so that other values compile nothing; a name that begins
/// with a capital is a constant of the kernel. Captured are numbers, `bool`, fixed arrays and
/// `#[derive(KernelType)]` structs.
#[macro_export]
macro_rules! device {
    ($($function:tt)*) => {
        $crate::macros::device_expression!($($function)*)
    };
}

/// The device function of a method of kernels, or of another function in a `#[device_fn] impl` block, as
/// [`DeviceFn::of`](core::build::DeviceFn::of) gives that of a function.
///
/// ```
/// use kiln::prelude::*;
///
/// #[repr(C)]
/// #[derive(Clone, Copy, KernelType)]
/// struct Complex {
///     re: f32,
///     im: f32,
/// }
///
/// #[device_fn]
/// impl Complex {
///     fn norm(self) -> f32 {
///         (self.re * self.re + self.im * self.im).sqrt()
///     }
/// }
///
/// # fn main() -> kiln::Result<()> {
/// let norm = kiln::method!(Complex, norm)?;
/// # drop((norm, Complex::norm(Complex { re: 3.0, im: 4.0 })));
/// # Ok(())
/// # }
/// ```
#[macro_export]
macro_rules! method {
    ($ty:ty, $name:ident) => {
        $crate::core::build::DeviceFn::of_method::<
            $ty,
            { $crate::macros::method_name(stringify!($name)) },
        >()
    };
}

#[cfg(doctest)]
mod programs;

/// What the code that `#[kernel]` and its kind write refers to.
#[doc(hidden)]
pub mod macros {
    pub use kiln_array_lib::ElementFn;
    pub use kiln_array_lib::macros::*;
    pub use kiln_device_stdlib::plain::chain::*;
    pub use kiln_device_stdlib::plain::conversion::*;
    pub use kiln_device_stdlib::plain::dispatch::*;
    pub use kiln_device_stdlib::plain::memory::shared_memory;
    pub use kiln_device_stdlib::plain::operator::*;
    pub use kiln_device_stdlib::plain::resolve::*;
    pub use kiln_device_stdlib::plain::result::{Fails, question};
    pub use kiln_jit_core::args::packed::{Packing, Parameters, Viewed, field_key};
    pub use kiln_jit_core::args::{Arg, IntoArg, ReadSlot, RecordedStruct, RecordedValue, SlotMut};
    pub use kiln_jit_core::error::Error;
    pub use kiln_jit_core::front::macros::*;
    pub use kiln_jit_core::ir::{Constant, Type, TypeForm, TypeTable};
    pub use kiln_jit_core::jit::{Jit, Recording};
    pub use kiln_jit_core::launch::LaunchConfig;
    pub use kiln_jit_core::runtime::{Buffer, Part};
    pub use kiln_jit_core::value::{DeviceType, KernelType, KernelValue};
    pub use kiln_jit_core::view::{
        IntoView, KernelView, ToKernel, ToSlice, ToSliceMut, passed_view, slice_type, struct_type,
    };
    pub use kiln_kernel_macro::{device_expression, kernel_expression};
}

/// What programs need that write kernels, by `#[kernel]` or the builder, and launch them, or compute with arrays:
/// `use kiln::prelude::*;`. Those that extend the compiler add
/// [`core::prelude`].
pub mod prelude {
    pub use crate::device;
    pub use kiln_array_lib::{Array, Arrays, ElementFn, Expr, IntoExpr, broadcast, s};
    pub use kiln_device_stdlib::barrier::*;
    pub use kiln_device_stdlib::cache::{
        load_cached_global, load_streaming, prefetch, prefetch_l1, store_cached_global,
        store_streaming, store_write_through,
    };
    pub use kiln_device_stdlib::group::*;
    pub use kiln_device_stdlib::index::Index;
    pub use kiln_device_stdlib::integer::Integer;
    pub use kiln_device_stdlib::integer::words::*;
    pub use kiln_device_stdlib::math::Math;
    pub use kiln_device_stdlib::named_barrier::*;
    pub use kiln_device_stdlib::number::{Number, Signed};
    pub use kiln_device_stdlib::plain::assumption::*;
    pub use kiln_device_stdlib::plain::atomic::*;
    pub use kiln_device_stdlib::plain::atomic_view::{Atomics, atomics};
    pub use kiln_device_stdlib::plain::index::*;
    pub use kiln_device_stdlib::plain::memory::*;
    pub use kiln_device_stdlib::plain::number::{Float, FloatOps as _, Int, Num, SignedOps as _};
    pub use kiln_device_stdlib::plain::ordering::Ordering;
    pub use kiln_device_stdlib::plain::precision::*;
    pub use kiln_device_stdlib::plain::warp::*;
    pub use kiln_device_stdlib::target::*;
    pub use kiln_device_stdlib::warp::{FULL_MASK, Warp};
    pub use kiln_directives_macro::offload;
    pub use kiln_jit_core::args;
    pub use kiln_jit_core::build::{DeviceFn, IntoVal, Kernel, KernelBuilder, Place, Val, Var};
    pub use kiln_jit_core::checks::Checks;
    pub use kiln_jit_core::ir::{Scope, Type, Unroll};
    pub use kiln_jit_core::jit::{Jit, JitOptions};
    pub use kiln_jit_core::launch::{Dim3, LaunchConfig, grid_for};
    pub use kiln_jit_core::runtime::{Buffer, Device, DeviceKind, Part};
    pub use kiln_jit_core::value::{
        BF16x2, F16x2, F32x2, F32x4, F64x2, I32x4, KernelType, U32x4, U64x2,
    };
    pub use kiln_jit_core::view::{IntoView, KernelView, ToKernel, ToSlice, ToSliceMut};
    pub use kiln_kernel_macro::{KernelType, KernelView, device_fn, kernel};
}
