//! Devices, their memory, and points in their work: what happens after the code is there.

pub use kiln_runtime::*;

pub use crate::buffer::Buffer;
pub use crate::event::{Event, Reached};
pub use crate::globals::Global;
#[doc(hidden)]
pub use crate::globals::{GlobalArray, Globals};
pub use crate::part::Part;
