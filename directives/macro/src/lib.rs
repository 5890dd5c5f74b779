//! `#[offload]`: a function that is a sequential program, and one whose kernel regions run on a device.
//!
//! | file | subject |
//! |---|---|
//! | `clauses` | what stands in the parentheses of directives |
//! | `function` | the item that a function becomes |
//! | `sequential` | the function without directives |
//! | `host` | the function with launches in the place of regions, and copies before whatever else uses the slices |
//! | `region` | a kernel region as a `#[device_fn]` with marks |
//! | `data` | `global!`, `constant!` and `shape!` |
//! | `capture` | which variables of the function a region uses, and how |
//!
//! What a directive cannot say is refused with the span of the token and a sentence that says what to write instead.
#![forbid(unsafe_code)]

mod capture;
mod clauses;
mod data;
mod function;
mod host;
mod region;
mod sequential;

use proc_macro::TokenStream;

#[doc = include_str!("../docs/offload.md")]
#[proc_macro_attribute]
pub fn offload(attribute: TokenStream, item: TokenStream) -> TokenStream {
    function::expand(attribute.into(), item.into()).into()
}
