//! The builder as the macro's code sees it.

use crate::build::KernelBuilder;

/// Describes one function; a builder as the macro's code sees it.
#[derive(Copy, Clone)]
pub struct Front<'k> {
    pub(super) builder: &'k KernelBuilder,
}

impl<'k> Front<'k> {
    /// The face of this builder.
    pub fn new(builder: &'k KernelBuilder) -> Self {
        Front { builder }
    }

    /// Leaves of the const arguments that a call gives those with these numbers.
    pub fn keep_consts(self, numbers: &[usize]) {
        self.builder.keep_consts(numbers);
    }

    /// The builder.
    pub fn builder(self) -> &'k KernelBuilder {
        self.builder
    }
}
