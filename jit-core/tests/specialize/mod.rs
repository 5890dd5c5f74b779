//! Definitions, binding and specialization, on modules built by hand.
//!
//! A file a subject; [`build`] is what they share.
//! Expected texts are blessed with `UPDATE_EXPECT=1`.

mod binding;
mod build;
mod definitions;
mod facts;
mod instances;
mod rows;
