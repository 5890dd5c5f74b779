//! Views: host values that are several arguments of a launch and one struct in the kernel.
//!
//! `#[derive(KernelView)]` on a struct with slices makes it a type of kernels, and writes its twin on the host,
//! which has a buffer for each slice. [`ToKernel`] says which view a type of the host becomes, and how. Each field
//! is an argument of its own: it is borrowed, checked and specialized on as if it were passed by itself, and
//! errors name it, `t.data` of a `t`. The struct is put together where the kernel begins and leaves no trace in
//! code.

use crate::args::packed::{Packing, Parameters, pack_value};
use std::cell::{Ref, RefMut};
use std::rc::Rc;
use std::sync::{Arc, MutexGuard, RwLockReadGuard, RwLockWriteGuard};

use crate::args::{Arg, value_arg};
use crate::error::Error;
use crate::ir::{AddressSpace, StructData, Type, TypeTable};
use crate::runtime::{Buffer, Part};
use crate::value::{KernelType, KernelValue};

/// A type as a kernel sees it: a [`KernelType`], which is passed as it is, or a struct with slices, which
/// `#[derive(KernelView)]` implements this for.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is nothing that a kernel sees of an argument",
    note = "write `#[derive(KernelView)]` on a struct with slices, `#[derive(KernelType)]` on one without"
)]
pub trait KernelView<'a> {
    /// What the host passes for it: for a struct `Tensor` with slices `TensorArgs`, which has a buffer for each of
    /// them.
    type Args;

    /// The argument.
    fn arg(args: Self::Args) -> Arg<'a>;

    /// Writes what is passed to the block of a launch, if it is of a kind that is written so.
    #[doc(hidden)]
    #[inline(always)]
    fn pack<'b>(_args: &'b Self::Args, packing: Packing, _to: &mut Parameters<'_, 'b>) -> Packing {
        packing.apart()
    }
}

/// A type of the host that is passed to kernels as something else. Implement it for references:
///
/// ```
/// use kiln::prelude::*;
///
/// #[derive(KernelView)]
/// struct Tensor<'a> {
///     data: &'a [f32],
///     columns: u32,
/// }
///
/// struct HostTensor {
///     data: Buffer<f32>,
///     columns: u32,
/// }
///
/// impl<'a> ToKernel<'a> for &'a HostTensor {
///     type View = Tensor<'a>;
///     fn to_kernel(self) -> TensorArgs<'a> {
///         TensorArgs { data: &self.data, columns: self.columns }
///     }
/// }
/// ```
///
/// A type of another crate is wrapped in one of yours, or passed by [`crate::args::host`] to a hook.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is passed to kernels as nothing",
    note = "implement `ToKernel` for it, whose `View` is the `#[derive(KernelView)]` struct that the kernel takes"
)]
pub trait ToKernel<'a> {
    /// What the kernel sees.
    type View: KernelView<'a>;

    /// What is passed.
    fn to_kernel(self) -> <Self::View as KernelView<'a>>::Args;

    /// Writes it to the block of a launch, if it is passed as it is.
    #[doc(hidden)]
    #[inline(always)]
    fn pack<'b>(&'b self, packing: Packing, _to: &mut Parameters<'_, 'b>) -> Packing {
        packing.apart()
    }
}

#[diagnostic::do_not_recommend]
impl<'a, T: KernelType> KernelView<'a> for T {
    type Args = T;

    fn arg(value: T) -> Arg<'a> {
        value_arg(&value)
    }

    #[inline(always)]
    fn pack<'b>(value: &'b T, packing: Packing, to: &mut Parameters<'_, 'b>) -> Packing {
        pack_value(value, packing, to)
    }
}

#[diagnostic::do_not_recommend]
impl<'a, T: KernelType> ToKernel<'a> for T {
    type View = T;

    fn to_kernel(self) -> T {
        self
    }

    #[inline(always)]
    fn pack<'b>(&'b self, packing: Packing, to: &mut Parameters<'_, 'b>) -> Packing {
        pack_value(self, packing, to)
    }
}

/// What the typed launch of a kernel takes for a [view](KernelView) `V`: what [becomes](ToKernel) it, and what may fail to.
/// A type that can be seen as several views has one implementation for each.
///
/// ```
/// use kiln::core::error::{Error, LibraryError};
/// use kiln::prelude::*;
///
/// #[derive(KernelView)]
/// struct Pairs<'a> {
///     data: &'a [f32],
/// }
///
/// struct List(Buffer<f32>);
///
/// impl<'a> IntoView<'a, Pairs<'a>> for &'a List {
///     fn into_view(self) -> Result<PairsArgs<'a>, Error> {
///         match self.0.len() % 2 {
///             0 => Ok(PairsArgs { data: &self.0 }),
///             _ => Err(LibraryError::new(std::fmt::Error).into()),
///         }
///     }
/// }
///
/// #[kernel]
/// fn products(pairs: Pairs<'_>, out: &mut [f32]) {
///     let i = global_id().x;
///     if i < out.len() {
///         out[i] = pairs.data[2 * i] * pairs.data[2 * i + 1];
///     }
/// }
///
/// # fn main() -> kiln::Result<()> {
/// let jit = Jit::new()?;
/// let mut out = jit.zeros::<f32>(1)?;
/// products.launch(&jit, (1, 32), &List(jit.upload(&[2.0, 4.0])?), &mut out)?;
/// assert_eq!(out.to_vec()?, [8.0]);
/// let refused = products.launch(&jit, (1, 32), &List(jit.upload(&[2.0])?), &mut out);
/// assert!(refused.unwrap_err().library::<std::fmt::Error>().is_some());
/// # Ok(())
/// # }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is passed to kernels as nothing that is a `{V}`",
    note = "implement `ToKernel` for it, whose `View` is the `#[derive(KernelView)]` struct that the kernel takes"
)]
pub trait IntoView<'a, V: KernelView<'a>> {
    /// What is passed.
    ///
    /// # Errors
    /// What is no such view.
    fn into_view(self) -> Result<V::Args, Error>;
}

#[diagnostic::do_not_recommend]
impl<'a, T: ToKernel<'a>> IntoView<'a, T::View> for T {
    #[inline(always)]
    fn into_view(self) -> Result<<T::View as KernelView<'a>>::Args, Error> {
        Ok(self.to_kernel())
    }
}

/// What the typed launch of a kernel takes behind a `&` for a slice of `T`: a buffer, a part of one, and what a library
/// keeps elements in.
///
/// ```
/// use kiln::core::error::Error;
/// use kiln::prelude::*;
///
/// struct Samples {
///     all: Buffer<f32>,
///     used: usize,
/// }
///
/// impl ToSlice<f32> for Samples {
///     fn to_slice(&self) -> Result<&Part<f32>, Error> {
///         self.all.part(..self.used)
///     }
/// }
///
/// impl ToSliceMut<f32> for Samples {
///     fn to_slice_mut(&mut self) -> Result<&mut Part<f32>, Error> {
///         self.all.part_mut(..self.used)
///     }
/// }
///
/// #[kernel]
/// fn double(x: &[f32], y: &mut [f32]) {
///     let i = global_id().x;
///     if i < x.len() {
///         y[i] = 2.0 * x[i];
///     }
/// }
///
/// # fn main() -> kiln::Result<()> {
/// let jit = Jit::new()?;
/// let x = Samples { all: jit.upload(&[1.0, 2.0, 3.0])?, used: 2 };
/// let mut y = jit.zeros::<f32>(3)?;
/// double.launch(&jit, (1, 32), &x, &mut y)?;
/// assert_eq!(y.to_vec()?, [2.0, 4.0, 0.0]);
/// let mut z = Samples { all: y, used: 2 };
/// double.launch(&jit, (1, 32), &x, &mut z)?;
/// # Ok(())
/// # }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no elements `{T}` on a device for a slice of the kernel",
    label = "no buffer of `{T}`",
    note = "a kernel takes buffers for slices, `&x` or `&mut x`: `let x = jit.upload(&values)?;` copies values of the \
            host to one"
)]
pub trait ToSlice<T> {
    /// The elements.
    ///
    /// # Errors
    /// Elements that do not lie as a slice has them.
    fn to_slice(&self) -> Result<&Part<T>, Error>;
}

/// What the typed launch of a kernel takes behind a `&mut` for a slice of `T` that it may write; [`ToSlice`] has an
/// example.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no elements `{T}` on a device for a slice that the kernel writes",
    label = "no buffer of `{T}` that may be written",
    note = "a kernel takes buffers for slices, `&x` or `&mut x`: `let mut x = jit.zeros::<T>(len)?;` makes one"
)]
pub trait ToSliceMut<T> {
    /// The elements.
    ///
    /// # Errors
    /// Elements that do not lie as a slice has them.
    fn to_slice_mut(&mut self) -> Result<&mut Part<T>, Error>;
}

impl<T> ToSlice<T> for Part<T> {
    #[inline(always)]
    fn to_slice(&self) -> Result<&Part<T>, Error> {
        Ok(self)
    }
}

impl<T> ToSliceMut<T> for Part<T> {
    #[inline(always)]
    fn to_slice_mut(&mut self) -> Result<&mut Part<T>, Error> {
        Ok(self)
    }
}

impl<T> ToSlice<T> for Buffer<T> {
    #[inline(always)]
    fn to_slice(&self) -> Result<&Part<T>, Error> {
        Ok(self)
    }
}

impl<T> ToSliceMut<T> for Buffer<T> {
    #[inline(always)]
    fn to_slice_mut(&mut self) -> Result<&mut Part<T>, Error> {
        Ok(self)
    }
}

macro_rules! behind {
    ($($pointer:ty)*) => {$(
        #[diagnostic::do_not_recommend]
        impl<T, B: ToSlice<T> + ?Sized> ToSlice<T> for $pointer {
            #[inline(always)]
            fn to_slice(&self) -> Result<&Part<T>, Error> {
                (**self).to_slice()
            }
        }
    )*};
    (mut $($pointer:ty)*) => {$(
        #[diagnostic::do_not_recommend]
        impl<T, B: ToSliceMut<T> + ?Sized> ToSliceMut<T> for $pointer {
            #[inline(always)]
            fn to_slice_mut(&mut self) -> Result<&mut Part<T>, Error> {
                (**self).to_slice_mut()
            }
        }
    )*};
}
behind!(&B &mut B Arc<B> Box<B> Rc<B> Ref<'_, B> RefMut<'_, B> MutexGuard<'_, B> RwLockReadGuard<'_, B> RwLockWriteGuard<'_, B>);
behind!(mut &mut B Box<B> RefMut<'_, B> MutexGuard<'_, B> RwLockWriteGuard<'_, B>);

/// What a parameter is to rustc where nothing is passed: in the copy of a kernel that is checked, and that nobody
/// calls.
#[doc(hidden)]
pub fn passed_view<T>() -> T {
    panic!("a view is passed to kernels, and those run on devices only")
}

/// The type of a slice of `T` in a kernel.
#[doc(hidden)]
pub fn slice_type<T: KernelValue>(types: &mut TypeTable, mutable: bool) -> Type {
    let element = T::type_in(types);
    types.slice(element, AddressSpace::Generic, mutable)
}

/// The type of a struct in a kernel.
#[doc(hidden)]
pub fn struct_type(types: &mut TypeTable, name: &str, fields: &[(&str, Type)]) -> Type {
    let fields = fields.iter().map(|(name, ty)| ((*name).to_owned(), *ty));
    let fields = fields.collect();
    let name = name.to_owned();
    types.intern_struct(StructData::new(name, fields))
}
