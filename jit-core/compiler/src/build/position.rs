//! Where instructions are said to come from: the caller's line of Rust, or a place that a front end of another
//! language gives.

use std::panic::Location as RustLocation;

use super::KernelBuilder;
use crate::ir::Location;

impl KernelBuilder {
    /// Runs `describe` with all that it builds at a place of a source file, line and column from 1: what errors,
    /// faults and line tables name. For front ends of other languages; places may nest, the innermost counts.
    ///
    /// ```
    /// # use kiln::core::build::Kernel;
    /// # use kiln::core::ir::Type;
    /// let wrong = Kernel::build("sum", |k| {
    ///     let (a, b) = (k.param("a", Type::F32), k.param("b", Type::U32));
    ///     // `a + b` is in column 5 of the third line of the user's file.
    ///     k.at("model.expr", 3, 5, || a + b);
    /// });
    /// assert!(wrong.unwrap_err().to_string().contains("model.expr:3:5"));
    /// ```
    pub fn at<R>(&self, file: &str, line: u32, column: u32, describe: impl FnOnce() -> R) -> R {
        self.at_location(self.location(file, line, column), describe)
    }

    /// Says where the function is defined, in place of the line of Rust that builds it.
    ///
    /// ```
    /// use kiln::prelude::*;
    ///
    /// let wrong = Kernel::build("sum", |k| {
    ///     k.defined_at("model.expr", 3, 1);
    ///     k.return_value(1.0f32); // a kernel gives nothing
    /// });
    /// assert!(wrong.is_err());
    /// ```
    pub fn defined_at(&self, file: &str, line: u32, column: u32) {
        let location = self.location(file, line, column);
        self.state.borrow_mut().function.location = location;
    }

    /// The place that has been said to be the present one, or else the caller's.
    #[track_caller]
    pub(crate) fn here(&self) -> Location {
        let caller = RustLocation::caller();
        (self.position.get())
            .unwrap_or_else(|| self.location(caller.file(), caller.line(), caller.column()))
    }

    /// A place of a source file.
    pub(crate) fn location(&self, file: &str, line: u32, column: u32) -> Location {
        let module = &mut self.state.borrow_mut().module;
        module.location(file, line, column)
    }

    /// [`KernelBuilder::at`], for a place that is known already.
    pub(crate) fn at_location<R>(&self, location: Location, describe: impl FnOnce() -> R) -> R {
        let before = self.position.replace(Some(location));
        let result = describe();
        self.position.set(before);
        result
    }
}
