//! Where in the source of the host program instructions come from.

use std::fmt;
use std::panic::Location;

use super::KernelBuilder;

/// A place in a source file. Line and column start at 1.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct Position {
    /// The file, as rustc names it.
    pub(crate) file: &'static str,
    /// The line.
    pub(crate) line: u32,
    /// The column, in characters.
    pub(crate) column: u32,
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file, self.line, self.column)
    }
}

impl KernelBuilder {
    /// The position that has been said to be the present one, or else the caller's.
    #[track_caller]
    pub(crate) fn here(&self) -> Position {
        let caller = Location::caller();
        self.position.get().unwrap_or(Position {
            file: caller.file(),
            line: caller.line(),
            column: caller.column(),
        })
    }

    /// Runs `describe` with all instructions at a position.
    pub(crate) fn at<R>(&self, position: Position, describe: impl FnOnce() -> R) -> R {
        let before = self.position.replace(Some(position));
        let result = describe();
        self.position.set(before);
        result
    }
}
