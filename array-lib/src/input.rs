//! What the kernel of an expression is passed: arrays and numbers, and what their elements can be.

use std::ops::Range;
use std::sync::Arc;

use kiln_jit_core::args::{Arg, IntoArg, SlotId};
use kiln_jit_core::build::{KernelBuilder, Val};
use kiln_jit_core::error::Error;
use kiln_jit_core::ir::TypeDigest;
use kiln_jit_core::jit::Recording;
use kiln_jit_core::runtime::Buffer;
use kiln_jit_core::value::KernelType;

use crate::recorded::SlotInput;

/// A type of array elements: whatever a kernel can hold.
pub trait Element: KernelType {}

impl<T: KernelType> Element for T {}

/// What identifies an input.
#[derive(Copy, Clone, PartialEq, Eq)]
pub(crate) enum Identity {
    /// A buffer, by its address.
    Buffer(u64),
    /// What a slot of a graph stands for.
    Slot(SlotId),
}

/// Something that is passed to the kernel of an expression.
pub(crate) trait Input: Send + Sync {
    /// The argument: of a buffer all of it.
    fn arg(&self) -> Arg<'_>;
    /// The argument for some elements of a buffer.
    fn part(&self, range: Range<usize>) -> Result<Arg<'_>, Error>;
    /// How many elements the buffer has.
    fn len(&self) -> usize;
    /// The type of an element, as the IR has it.
    fn element(&self) -> TypeDigest;
    /// The type of an element, as Rust names it.
    fn element_name(&self) -> &'static str;
    /// The size of an element in bytes.
    fn element_bytes(&self) -> usize;
    /// Identifies the input: the same buffer occurring twice is one parameter.
    fn identity(&self) -> Option<Identity>;
    /// Declares a parameter for it.
    fn declare<'k>(&self, k: &'k KernelBuilder, name: &str) -> Val<'k>;
    /// Has a graph keep what it is passed as; what it is passed as there, if that is another.
    fn hold(&self, _: &mut Recording) -> Result<Option<Arc<dyn Input>>, Error> {
        Ok(None)
    }
}

/// A buffer of an array.
pub(crate) struct ArrayInput<T: Element>(pub(crate) Arc<Buffer<T>>);

impl<T: Element> Input for ArrayInput<T> {
    fn arg(&self) -> Arg<'_> {
        (&*self.0).into_arg()
    }
    fn part(&self, range: Range<usize>) -> Result<Arg<'_>, Error> {
        Ok(self.0.part(range)?.into_arg())
    }
    fn len(&self) -> usize {
        self.0.len()
    }
    fn element(&self) -> TypeDigest {
        T::FORM.digest()
    }
    fn element_name(&self) -> &'static str {
        std::any::type_name::<T>()
    }
    fn element_bytes(&self) -> usize {
        size_of::<T>()
    }
    fn identity(&self) -> Option<Identity> {
        // All buffers of no element may have one address.
        (!self.0.is_empty()).then(|| Identity::Buffer(self.0.address()))
    }
    fn declare<'k>(&self, k: &'k KernelBuilder, name: &str) -> Val<'k> {
        k.slice(name, k.ty::<T>())
    }
    fn hold(&self, graph: &mut Recording) -> Result<Option<Arc<dyn Input>>, Error> {
        Ok(Some(Arc::new(SlotInput(graph.share(&self.0)))))
    }
}

/// A number from the host.
pub(crate) struct ScalarInput<T: Element>(pub(crate) T);

impl<T: Element> Input for ScalarInput<T> {
    fn arg(&self) -> Arg<'_> {
        self.0.into_arg()
    }
    fn part(&self, _: Range<usize>) -> Result<Arg<'_>, Error> {
        Ok(self.arg())
    }
    fn len(&self) -> usize {
        1
    }
    fn element(&self) -> TypeDigest {
        T::FORM.digest()
    }
    fn element_name(&self) -> &'static str {
        std::any::type_name::<T>()
    }
    fn element_bytes(&self) -> usize {
        size_of::<T>()
    }
    fn identity(&self) -> Option<Identity> {
        None
    }
    fn declare<'k>(&self, k: &'k KernelBuilder, name: &str) -> Val<'k> {
        k.param(name, k.ty::<T>())
    }
}
