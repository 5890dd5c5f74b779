//! Types that a kernel declares in its signature, where the launch asks whether kernels hold them.
//!
//! Of one that they do not hold the launch says so. Were the description to ask as well, one missing derive would
//! be an error at each parameter and again where the body names the type.

use std::marker::PhantomData;

use crate::value::DeviceType;

use super::Pooled;

/// A type that a bound of the kernel's launch is about.
pub struct Declared<T: ?Sized>(PhantomData<T>);

impl<T: DeviceType> Declared<T> {
    /// The declared type as an entry in a pool.
    pub fn ty() -> Pooled {
        Pooled::ty::<T>()
    }
}

/// What [`Declared::ty`] is for a type that kernels do not hold: rustc finds it where it finds no other, in
/// programs that it refuses for the bound of the launch.
pub trait Undeclared {
    /// Any entry.
    fn ty() -> Pooled {
        Pooled::ty::<bool>()
    }
}

impl<T: ?Sized> Undeclared for Declared<T> {}
