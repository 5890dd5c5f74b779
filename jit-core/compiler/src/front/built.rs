//! Calls of `#[device_fn]` functions by the builder.
//!
//! The functions are named as types are, `k.call_fn::<tile>(..)`: each has a type of its name, which calls in kernels go
//! through, too.

use crate::build::{KernelBuilder, Val};

use super::function::{DescribedFn, DescribedMethod, LazyDeviceFn};
use super::inline::{Closure, Inlinable, InlineCall};
use super::{Front, Operand};

/// A closure that is passed to a function by the builder: what it makes of its arguments.
pub type BuiltClosure<'c, 'k> = &'c dyn Fn(&[Val<'k>]) -> Val<'k>;

impl KernelBuilder {
    /// Calls a `#[device_fn]` function, which is named as a type is. Functions that take closures are called by
    /// [`KernelBuilder::call_inline`].
    ///
    /// ```
    /// use kiln::prelude::*;
    ///
    /// #[device_fn]
    /// fn squared(x: f32) -> f32 {
    ///     x * x
    /// }
    ///
    /// # fn main() -> kiln::Result<()> {
    /// let kernel = Kernel::build("all_squared", |k| {
    ///     let x = k.slice_mut("x", k.ty::<f32>());
    ///     let i = k.global_id().x();
    ///     k.if_(i.lt(x.len()), || x.at(i).set(k.call_fn::<squared>(&[x.at(i).get()])));
    /// })?;
    /// let jit = Jit::new()?;
    /// let mut x = jit.upload(&[squared(2.0), 3.0])?;
    /// jit.launch(&kernel, 1, 32, args!(&mut x))?;
    /// assert_eq!(x.to_vec()?, [16.0, 9.0]);
    /// # Ok(())
    /// # }
    /// ```
    #[track_caller]
    pub fn call_fn<'k, F: DescribedFn>(&'k self, args: &[Val<'k>]) -> Val<'k> {
        self.call_described(F::function(), args)
    }

    /// Calls a function of a `#[device_fn] impl` block, by the number of its name.
    #[doc(hidden)]
    #[track_caller]
    pub fn call_method<'k, T: DescribedMethod<NAME>, const NAME: u64>(
        &'k self,
        args: &[Val<'k>],
    ) -> Val<'k> {
        self.call_described(T::function(), args)
    }

    #[track_caller]
    fn call_described<'k>(&'k self, function: &LazyDeviceFn, args: &[Val<'k>]) -> Val<'k> {
        let front = Front::new(self);
        let args: Vec<Operand<'k>> = args.iter().map(|&arg| front.given(arg)).collect();
        self.at_location(self.here(), || function.call(front, &[], &args).read())
    }

    /// Calls a `#[device_fn]` function that takes closures, which is named as a type is: its values, and for each of
    /// its closures what that makes of its own arguments. The function becomes a part of the kernel here.
    ///
    /// ```
    /// use kiln::prelude::*;
    ///
    /// #[device_fn]
    /// fn twice<F: Fn(f32) -> f32>(x: f32, f: F) -> f32 {
    ///     f(f(x))
    /// }
    ///
    /// # fn main() -> kiln::Result<()> {
    /// let scaled = |factor: f32| {
    ///     Kernel::build("scaled", |k| {
    ///         let x = k.slice_mut("x", k.ty::<f32>());
    ///         let value = x.at(0).get();
    ///         x.at(0).set(k.call_inline::<twice>(&[value], &[&|args| args[0] * factor]));
    ///     })
    /// };
    /// let jit = Jit::new()?;
    /// let mut x = jit.upload(&[twice(2.0, |x| x + 1.0)])?;
    /// jit.launch(&scaled(3.0)?, 1, 1, args!(&mut x))?;
    /// assert_eq!(x.to_vec()?, [36.0]);
    /// # Ok(())
    /// # }
    /// ```
    #[track_caller]
    pub fn call_inline<'k, F: Inlinable>(
        &'k self,
        args: &[Val<'k>],
        closures: &[BuiltClosure<'_, 'k>],
    ) -> Val<'k> {
        let front = Front::new(self);
        let (scope, at) = (self.scope(), self.here());
        let args: Vec<Operand<'k>> = args.iter().map(|&arg| front.given(arg)).collect();
        let described = |closure: BuiltClosure<'_, 'k>, args: &[Operand<'k>]| {
            let args: Vec<Val<'k>> = args.iter().map(|arg| arg.read()).collect();
            let before = self.enter_scope(scope);
            let value = self.at_location(at, || closure(&args));
            self.enter_scope(before);
            front.given(value)
        };
        let closures: Vec<_> = closures
            .iter()
            .map(|&closure| move |args: &[Operand<'k>]| described(closure, args))
            .collect();
        let closures: Vec<Closure<'_, 'k>> = closures.iter().map(|c| c as _).collect();
        let call = InlineCall {
            types: &[],
            consts: &[],
            args: &args,
            closures: &closures,
        };
        self.at_location(at, || F::call_inline(front, &call).read())
    }
}
