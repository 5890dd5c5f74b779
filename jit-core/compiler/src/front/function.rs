//! Kernels and device functions that are described at their first use, and calls of them.

use std::fmt;
use std::ops::Deref;
use std::panic::Location;
use std::sync::{Mutex, PoisonError};

use once_cell::sync::OnceCell;

use crate::build::{
    BuildErrorKind, BuildOptions, DescriptionId, DeviceFn, IntoVal, Kernel, KernelBuilder, Val,
};
use crate::error::Error;
use crate::ir::{ConstArg, Type};

use super::{Front, Operand, Pooled, TypeOf};

/// What describes a function of the host.
pub type DescribeFn = for<'k> fn(Front<'k>);

/// Something that can be launched: a [`Kernel`], or a `#[kernel]` function.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a kernel",
    note = "launch a `Kernel`, or mark the function with `#[kernel]`; one with a trait of yours as a bound is a kernel for \
            each type, `k.of::<Circle>()`"
)]
pub trait AsKernel {
    /// The kernel.
    ///
    /// # Errors
    /// What is wrong with its description, if this is its first use.
    fn as_kernel(&self) -> Result<&Kernel, Error>;
}

impl AsKernel for Kernel {
    #[inline]
    fn as_kernel(&self) -> Result<&Kernel, Error> {
        Ok(self)
    }
}

/// The names of `#[kernel]` functions, among others.
#[diagnostic::do_not_recommend]
impl<D> AsKernel for D
where
    D: Deref + ?Sized,
    D::Target: AsKernel,
{
    fn as_kernel(&self) -> Result<&Kernel, Error> {
        (**self).as_kernel()
    }
}

/// The value of a `#[kernel]` function: a kernel that is described at its first use.
///
/// It is a static, so that its name is a value that is launched, and so that all uses share one
/// [`Kernel`]. Where statics are made anew, as in the cells of a notebook, nothing is compiled again:
/// a kernel's identity is its content.
pub struct LazyKernel {
    name: &'static str,
    describe: DescribeFn,
    at: &'static Location<'static>,
    options: BuildOptions,
    kernel: OnceCell<Kernel>,
}

impl LazyKernel {
    /// A kernel that `describe` describes, defined where this is called.
    #[track_caller]
    pub const fn new(name: &'static str, describe: DescribeFn) -> Self {
        LazyKernel {
            name,
            describe,
            at: Location::caller(),
            options: BuildOptions { unchecked: false },
            kernel: OnceCell::new(),
        }
    }

    /// A kernel whose indexing, and that of what it calls, is unchecked.
    ///
    /// # Safety
    /// At every launch, every index must be below the length it is used with.
    #[track_caller]
    pub const unsafe fn new_unchecked(name: &'static str, describe: DescribeFn) -> Self {
        LazyKernel {
            name,
            describe,
            at: Location::caller(),
            options: BuildOptions { unchecked: true },
            kernel: OnceCell::new(),
        }
    }

    /// The kernel.
    ///
    /// # Errors
    /// What is wrong with its description, if this is its first use.
    #[inline]
    pub fn get(&self) -> Result<&Kernel, Error> {
        match self.kernel.get() {
            Some(kernel) => Ok(kernel),
            None => self.describe(),
        }
    }

    #[cold]
    fn describe(&self) -> Result<&Kernel, Error> {
        let describe = || {
            Kernel::describe(
                Vec::new(),
                self.name,
                self.at,
                self.options,
                self.described(),
            )
        };
        self.kernel.get_or_try_init(describe)
    }

    /// The kernel with a const parameter bound to a value; see [`Kernel::with_const`].
    ///
    /// # Errors
    /// As [`LazyKernel::get`].
    pub fn with_const(&self, name: &str, value: i128) -> Result<Kernel, Error> {
        Ok(self.get()?.with_const(name, value))
    }

    /// Gives this kernel the body of another one from now on: launches through either name then do
    /// the same. See [`Kernel::redefine`].
    ///
    /// # Errors
    /// What is wrong with either description.
    pub fn redefine(&self, other: &LazyKernel) -> Result<(), Error> {
        self.get()?.redefine_as(other.options, other.described())
    }

    fn described(&self) -> impl Fn(&KernelBuilder) {
        let describe = self.describe;
        move |builder| describe(Front::new(builder))
    }

    /// The kernel's name.
    pub fn name(&self) -> &'static str {
        self.name
    }
}

/// The kernels that a `#[kernel]` function with a trait of the user's as a bound is: one for each type that it is
/// launched with, each with its own function that describes it.
pub struct LazyKernels {
    name: &'static str,
    at: &'static Location<'static>,
    options: BuildOptions,
    known: Mutex<Vec<&'static LazyKernel>>,
}

impl fmt::Debug for LazyKernels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LazyKernels({})", self.name)
    }
}

impl LazyKernels {
    /// The kernels that one is which is defined where this is called.
    #[track_caller]
    pub const fn new(name: &'static str) -> Self {
        LazyKernels {
            name,
            at: Location::caller(),
            options: BuildOptions { unchecked: false },
            known: Mutex::new(Vec::new()),
        }
    }

    /// Kernels whose indexing, and that of what they call, is unchecked.
    ///
    /// # Safety
    /// As [`LazyKernel::new_unchecked`].
    #[track_caller]
    pub const unsafe fn new_unchecked(name: &'static str) -> Self {
        LazyKernels {
            name,
            at: Location::caller(),
            options: BuildOptions { unchecked: true },
            known: Mutex::new(Vec::new()),
        }
    }

    /// The one that `describe` describes. It stays as long as the program; those with equal code are one.
    pub fn of(&self, describe: DescribeFn) -> &'static LazyKernel {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let is_it = |kernel: &&&LazyKernel| std::ptr::fn_addr_eq(kernel.describe, describe);
        if let Some(&kernel) = known.iter().find(is_it) {
            return kernel;
        }
        let kernel: &'static LazyKernel = Box::leak(Box::new(LazyKernel {
            name: self.name,
            describe,
            at: self.at,
            options: self.options,
            kernel: OnceCell::new(),
        }));
        known.push(kernel);
        kernel
    }
}

impl AsKernel for LazyKernel {
    #[inline]
    fn as_kernel(&self) -> Result<&Kernel, Error> {
        self.get()
    }
}

impl fmt::Debug for LazyKernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LazyKernel({})", self.name)
    }
}

/// What `#[kernel]` makes of a function, for the static that has its name.
pub trait Described {
    /// The kernel, before its first use.
    #[allow(
        clippy::declare_interior_mutable_const,
        reason = "it is the value of one static and of nothing else"
    )]
    const KERNEL: LazyKernel;
}

/// What a call in a kernel can call. `#[device_fn]` implements it for a type that has the function's
/// name and no values, as do the functions of the library.
#[diagnostic::on_unimplemented(
    message = "this is not a function of kernels",
    label = "not a device function",
    note = "mark it with `#[device_fn]`; kernels call such functions, and those of `kiln::stdlib`"
)]
pub trait Callable {
    /// Calls it.
    fn call<'k>(front: Front<'k>, types: &[Type], args: &[Operand<'k>]) -> Operand<'k>;

    /// The function as an entry in a pool, found by its type.
    fn pooled() -> Pooled {
        Pooled::call(Self::call)
    }
}

/// A `#[device_fn]` function by its name, which is that of a type as well, and what is described for it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no device function that is described by itself",
    label = "not a `#[device_fn]` function",
    note = "operations of the library are none, nor are functions that take closures; a method is named by \
            `kiln::method!(Type, name)`"
)]
pub trait DescribedFn {
    /// The function.
    fn function() -> &'static LazyDeviceFn;
}

/// A function in a `#[device_fn] impl` block by the number of its name, and what is described for it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no function of this name that is described by itself",
    label = "not a function of a `#[device_fn] impl` block of this type"
)]
pub trait DescribedMethod<const NAME: u64> {
    /// The function.
    fn function() -> &'static LazyDeviceFn;
}

impl DeviceFn {
    /// The device function of a `#[device_fn]` function, which is named as a type is. All that calls it calls this
    /// one. That of a method is `kiln::method!(Type, name)`.
    ///
    /// # Errors
    /// What is wrong with its description, if this is its first use.
    pub fn of<F: DescribedFn>() -> Result<DeviceFn, Error> {
        F::function().get().cloned()
    }

    /// The device function of a method, by the number of its name.
    ///
    /// # Errors
    /// As [`DeviceFn::of`].
    #[doc(hidden)]
    pub fn of_method<T: DescribedMethod<NAME>, const NAME: u64>() -> Result<DeviceFn, Error> {
        T::function().get().cloned()
    }
}

/// What a call can call whose function rustc has found in the checked copy: `F` is its type. Where rustc
/// has found none, `F` stays open, and what has no type of its own in kernels can be called, so that what
/// is wrong is reported once.
#[diagnostic::on_unimplemented(
    message = "this is not a function of kernels",
    label = "not a device function",
    note = "mark it with `#[device_fn]`; kernels call such functions, and those of `kiln::stdlib`"
)]
pub trait CallableFn<F: ?Sized> {
    /// The function as an entry in a pool.
    fn pooled_found(_: &TypeOf<F>) -> Pooled;
}

#[diagnostic::do_not_recommend]
impl<C: Callable, F> CallableFn<F> for C {
    fn pooled_found(_: &TypeOf<F>) -> Pooled {
        C::pooled()
    }
}

/// What a name is in kernels that is no type.
pub mod not_for_kernels {
    use super::{CallableFn, Pooled, TypeOf};

    /// A name that cannot be called.
    #[derive(Debug)]
    pub enum HostFunction {}

    macro_rules! callable {
        ($($open:ty)*) => {$(
            #[diagnostic::do_not_recommend]
            impl CallableFn<$open> for HostFunction {
                fn pooled_found(_: &TypeOf<$open>) -> Pooled {
                    Pooled::call(|front, _, _| front.unit())
                }
            }
        )*};
    }
    // Two of them: rustc would take a single one before it looks at the function.
    callable! { str [()] }
}

/// Any function by the type of its name. One that is a function for each type has `in_kernels` itself.
#[doc(hidden)]
pub trait AnyFunction {
    /// The function that rustc has found, as an entry in a pool.
    fn in_kernels<F: ?Sized, W: ?Sized>(found: &TypeOf<F>, _: TypeOf<W>) -> Pooled
    where
        Self: CallableFn<F>,
    {
        Self::pooled_found(found)
    }
}

impl<C: ?Sized> AnyFunction for C {}

/// The device functions that a function is, one for each type that it is called with: each has its own that describes
/// it.
pub struct LazyDeviceFns {
    name: &'static str,
    at: &'static Location<'static>,
    known: Mutex<Vec<&'static LazyDeviceFn>>,
}

impl fmt::Debug for LazyDeviceFns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LazyDeviceFns({})", self.name)
    }
}

impl LazyDeviceFns {
    /// The functions that one is which is defined where this is called.
    #[track_caller]
    pub const fn new(name: &'static str) -> Self {
        LazyDeviceFns {
            name,
            at: Location::caller(),
            known: Mutex::new(Vec::new()),
        }
    }

    /// The one that `describe` describes. It stays as long as the program, as one that is a static does; those with
    /// equal code are one.
    pub fn of(&self, describe: DescribeFn) -> &'static LazyDeviceFn {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let is_it = |function: &&&LazyDeviceFn| std::ptr::fn_addr_eq(function.describe, describe);
        if let Some(&function) = known.iter().find(is_it) {
            return function;
        }
        let function: &'static LazyDeviceFn = Box::leak(Box::new(LazyDeviceFn {
            name: self.name,
            describe,
            at: self.at,
            function: OnceCell::new(),
        }));
        known.push(function);
        function
    }
}

/// A device function that is described at its first use.
pub struct LazyDeviceFn {
    name: &'static str,
    describe: DescribeFn,
    at: &'static Location<'static>,
    function: OnceCell<DeviceFn>,
}

impl fmt::Debug for LazyDeviceFn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LazyDeviceFn({})", self.name)
    }
}

impl LazyDeviceFn {
    /// A device function that `describe` describes, defined where this is called.
    #[track_caller]
    pub const fn new(name: &'static str, describe: DescribeFn) -> Self {
        LazyDeviceFn {
            name,
            describe,
            at: Location::caller(),
            function: OnceCell::new(),
        }
    }

    /// The device function.
    ///
    /// # Errors
    /// What is wrong with its description, if this is its first use.
    pub(crate) fn get(&self) -> Result<&DeviceFn, Error> {
        self.get_for(&[])
    }

    /// The function, for a description that is under way. No lock is held while it is described: a
    /// function that calls itself would wait for itself, and two threads for each other. If two
    /// describe it at once, the first to finish is kept.
    fn get_for(&self, callers: &[DescriptionId]) -> Result<&DeviceFn, Error> {
        if let Some(function) = self.function.get() {
            return Ok(function);
        }
        let mut chain = callers.to_vec();
        chain.push(DescriptionId {
            address: std::ptr::from_ref(self).addr(),
            name: self.name,
            at: format!("{}:{}:{}", self.at.file(), self.at.line(), self.at.column()),
        });
        let function = DeviceFn::describe(chain, self.name, self.at, |builder| {
            (self.describe)(Front::new(builder));
        })?;
        Ok(self.function.get_or_init(|| function))
    }

    /// The cycle, if describing this function is what needs it now.
    fn recursion(&self, callers: &[DescriptionId]) -> Option<Error> {
        let address = std::ptr::from_ref(self).addr();
        let start = callers.iter().position(|id| id.address == address)?;
        let step = |id: &DescriptionId| (id.name.to_owned(), id.at.clone());
        let cycle = callers[start..].iter().map(step).collect();
        Some(crate::definition::RecursionError { cycle }.into())
    }

    /// Calls it. Arguments that are references become what the parameters want where rustc would let
    /// them.
    pub fn call<'k>(&self, front: Front<'k>, types: &[Type], args: &[Operand<'k>]) -> Operand<'k> {
        let b = front.builder;
        let consts = b.given_consts();
        let callers = b.described_for();
        let function = match self.recursion(callers) {
            Some(error) => Err(error),
            None => self.get_for(callers),
        };
        match function {
            Ok(function) => call(front, function, types, consts, args),
            Err(error) => {
                let (callee, error) = (self.name.to_owned(), error.to_string());
                let kind = BuildErrorKind::Callee { callee, error };
                front.value(b.error(kind, Type::I32))
            }
        }
    }
}

fn call<'k>(
    front: Front<'k>,
    function: &DeviceFn,
    types: &[Type],
    consts: Vec<ConstArg>,
    args: &[Operand<'k>],
) -> Operand<'k> {
    let b = front.builder;
    let (names, wanted) = b.callee_params(function);
    let mut values: Vec<Val<'k>> = Vec::new();
    for (i, &arg) in args.iter().enumerate() {
        let wanted = wanted.get(i).copied().unwrap_or(Type::UNIT);
        values.push(front.coerce(arg, wanted).into_val(b, None));
    }
    let names = names.iter().map(String::as_str);
    let types: Vec<(&str, Type)> = names.zip(types.iter().copied()).collect();
    front.given(b.call_bound(function, &types, consts, &values))
}
