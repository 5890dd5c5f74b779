//! Views: host values that are several arguments of a launch and one struct in the kernel.
//!
//! `#[derive(KernelView)]` on a struct with slices makes it a type of kernels, and writes its twin on the host,
//! which has a buffer for each slice. [`ToKernel`] says which view a type of the host becomes, and how. Each field
//! is an argument of its own: it is borrowed, checked and specialized on as if it were passed by itself, and
//! errors name it, `t.data` of a `t`. The struct is put together where the kernel begins and leaves no trace in
//! code.

use crate::args::packed::{Packing, Parameters, pack_value};
use crate::args::{Arg, value_arg};
use crate::ir::{AddressSpace, StructData, Type, TypeTable};
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
