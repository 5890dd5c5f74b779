//! What the kernel of an expression is passed: arrays and numbers, and what their elements can be.

use std::sync::Arc;

use kiln_jit_core::args::{Arg, IntoArg};
use kiln_jit_core::build::{KernelBuilder, Val};
use kiln_jit_core::ir::TypeDigest;
use kiln_jit_core::runtime::Buffer;
use kiln_jit_core::value::KernelType;

/// A type of array elements: whatever a kernel can hold.
pub trait Element: KernelType {}

impl<T: KernelType> Element for T {}

/// Something that is passed to the kernel of an expression.
pub(crate) trait Input: Send + Sync {
    /// The argument.
    fn arg(&self) -> Arg<'_>;
    /// The type of an element, as the IR has it.
    fn element(&self) -> TypeDigest;
    /// Identifies the input: the same array occurring twice is one parameter.
    fn address(&self) -> Option<u64>;
    /// Declares a parameter for it.
    fn declare<'k>(&self, k: &'k KernelBuilder, name: &str) -> Val<'k>;
}

/// An array.
pub(crate) struct ArrayInput<T: Element>(pub(crate) Arc<Buffer<T>>);

impl<T: Element> Input for ArrayInput<T> {
    fn arg(&self) -> Arg<'_> {
        (&*self.0).into_arg()
    }
    fn element(&self) -> TypeDigest {
        T::FORM.digest()
    }
    fn address(&self) -> Option<u64> {
        Some(self.0.address())
    }
    fn declare<'k>(&self, k: &'k KernelBuilder, name: &str) -> Val<'k> {
        k.slice(name, k.ty::<T>())
    }
}

/// A number from the host.
pub(crate) struct ScalarInput<T: Element>(pub(crate) T);

impl<T: Element> Input for ScalarInput<T> {
    fn arg(&self) -> Arg<'_> {
        self.0.into_arg()
    }
    fn element(&self) -> TypeDigest {
        T::FORM.digest()
    }
    fn address(&self) -> Option<u64> {
        None
    }
    fn declare<'k>(&self, k: &'k KernelBuilder, name: &str) -> Val<'k> {
        k.param(name, k.ty::<T>())
    }
}
