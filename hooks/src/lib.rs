//! The compiler hooks that come with Kiln.
//!
//! Each is one file, written on the public hook interface alone
//! ([`kiln_compiler::hook`]); a user's hooks are their equals. [`standard`] is the list a
//! `Jit` has unless it is given another one.
//!
//! | hook | what it does |
//! |---|---|
//! | [`address_spaces()`] | generic pointers become global, shared, constant or local ones |
//! | [`bounds_checks()`] | bounds checks of loops are made once, before the loop |
//! | [`by_value()`] | aggregates are passed in the parameter block instead of by reference |
//! | [`link_bitcode()`] | functions of a bitcode file become those of kernels that call them; not a standard one |
//! | [`in_place()`] | constants and parameters are indexed where they are, not in a copy of each thread |
#![forbid(unsafe_code)]

pub mod address_spaces;
pub mod bitcode;
pub mod bounds_checks;
pub mod by_value;
pub mod in_place;

pub use address_spaces::address_spaces;
pub use bitcode::link_bitcode;
pub use bounds_checks::bounds_checks;
pub use by_value::by_value;
pub use in_place::in_place;

use kiln_compiler::hook::HookSet;

/// The standard hooks, in order.
///
/// ```
/// use kiln::prelude::*;
///
/// use kiln::core::hook::Hook;
///
/// # fn main() -> kiln::Result<()> {
/// let names: Vec<String> = kiln::hooks::standard().iter().map(|hook| hook.name().to_owned()).collect();
/// assert_eq!(names, ["address-spaces", "bounds-checks", "by-value", "in-place"]);
/// // Another list, in another order, with another hook.
/// let own = Hook::new("own").rewrite_ir(|_, _| Ok(()));
/// let jit = Jit::builder().hooks(kiln::hooks::standard().without("by-value").first(own)).build()?;
/// assert_eq!(jit.hooks().iter().count(), 4);
/// # Ok(())
/// # }
/// ```
pub fn standard() -> HookSet {
    HookSet::new()
        // Before everything that asks what memory an access goes to.
        .with(address_spaces())
        .with(bounds_checks())
        // Works on the parameters that ABI lowering has made references.
        .with(by_value())
        // Reads the parameters where that one has put them.
        .with(in_place())
}
