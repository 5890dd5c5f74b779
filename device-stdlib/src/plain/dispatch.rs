//! Static dispatch in `#[kernel]` functions: what a type parameter has by a trait of the user's, `T: Shape`.
//!
//! A device function with such a parameter is one function for each type that it is called with, and each of them calls
//! the functions which that type has of the trait. `#[device_fn]` is on the `impl` block of each type, and on the trait
//! if it has bodies for all types or supertraits.
//!
//! ```
//! use kiln::prelude::*;
//!
//! trait Shape: Copy {
//!     const SIDES: u32;
//!     fn unit() -> Self;
//!     fn area(&self) -> f32;
//! }
//!
//! #[derive(Copy, Clone, KernelType)]
//! #[repr(C)]
//! struct Circle {
//!     radius: f32,
//! }
//!
//! #[device_fn]
//! impl Shape for Circle {
//!     const SIDES: u32 = 0;
//!     fn unit() -> Self {
//!         Circle { radius: 1.0 }
//!     }
//!     fn area(&self) -> f32 {
//!         3.0 * self.radius * self.radius
//!     }
//! }
//!
//! #[derive(Copy, Clone, KernelType)]
//! #[repr(C)]
//! struct Square {
//!     side: f32,
//! }
//!
//! #[device_fn]
//! impl Shape for Square {
//!     const SIDES: u32 = 4;
//!     fn unit() -> Self {
//!         Square { side: 1.0 }
//!     }
//!     fn area(&self) -> f32 {
//!         self.side * self.side
//!     }
//! }
//!
//! #[device_fn]
//! fn relative<T: Shape>(shape: T) -> f32 {
//!     shape.area() / T::unit().area() + T::SIDES as f32
//! }
//!
//! #[kernel]
//! fn compare(circles: &[Circle], squares: &[Square], out: &mut [f32]) {
//!     let i = global_id().x;
//!     if i < out.len() {
//!         out[i] = relative(circles[i]) + 100.0 * relative(squares[i]);
//!     }
//! }
//!
//! # fn main() -> kiln::Result<()> {
//! let jit = Jit::new()?;
//! let circles = jit.upload(&[Circle { radius: 2.0 }])?;
//! let squares = jit.upload(&[Square { side: 3.0 }])?;
//! let mut out = jit.zeros(1)?;
//! compare.launch(&jit, (1, 32), &circles, &squares, &mut out)?;
//! assert_eq!(out.to_vec()?, [1304.0]);
//! # Ok(())
//! # }
//! ```

use std::marker::PhantomData;

use kiln_jit_core::front::macros::{Front, Operand, Pooled, Receiver};
use kiln_jit_core::ir::Type;

use super::resolve::Without;

/// The name of a trait, letter by letter and up to the 24th: a type, so that what rustc says of it can be read.
#[rustfmt::skip]
pub struct Spelled<const C0: char = '\0', const C1: char = '\0', const C2: char = '\0', const C3: char = '\0', const C4: char = '\0', const C5: char = '\0',
    const C6: char = '\0', const C7: char = '\0', const C8: char = '\0', const C9: char = '\0', const C10: char = '\0', const C11: char = '\0',
    const C12: char = '\0', const C13: char = '\0', const C14: char = '\0', const C15: char = '\0', const C16: char = '\0', const C17: char = '\0',
    const C18: char = '\0', const C19: char = '\0', const C20: char = '\0', const C21: char = '\0', const C22: char = '\0', const C23: char = '\0'>;

/// The functions that a type has in kernels of the trait with this name.
#[diagnostic::on_unimplemented(
    message = "what `{Self}` has of the trait that bounds this parameter is not for kernels",
    label = "its functions of the trait are for the host alone",
    note = "mark the `impl` block of the trait for this type with `#[device_fn]`, and call the trait by one name everywhere"
)]
pub trait TraitFns<Trait> {
    /// The function with this number of its name, as a method or by its path.
    fn entry(name: u64, as_method: bool) -> Option<Pooled>;
}

/// What the name of a trait without `#[device_fn]` is as a function.
#[doc(hidden)]
pub mod no_bodies {
    use super::Pooled;

    /// No function: the trait has no bodies for kernels.
    #[allow(non_snake_case, reason = "it is imported as a trait is")]
    pub fn HostDefaults<T: ?Sized>(_: u64, _: bool) -> Option<Pooled> {
        None
    }
}

/// What an entry of a pool is made of, where it may be one of the traits of a parameter.
#[doc(hidden)]
pub struct OfParam<Entry, T: ?Sized>(Entry, PhantomData<fn() -> *const T>);

impl<Entry, T: ?Sized> OfParam<Entry, T> {
    /// What is found for a type by itself.
    #[doc(hidden)]
    pub const fn new(entry: Entry) -> Self {
        OfParam(entry, PhantomData)
    }
}

impl<T: ?Sized> OfParam<Without<T>, T> {
    /// The entry of the first of the traits that has it: the parameter has none by itself.
    #[doc(hidden)]
    pub fn or_of(
        self,
        name: u64,
        as_method: bool,
        traits: &[fn(u64, bool) -> Option<Pooled>],
    ) -> Pooled {
        let found = traits.iter().find_map(|of| of(name, as_method));
        found.unwrap_or_else(|| match as_method {
            true => Pooled::method(Receiver::Value, false, of_no_bound),
            false => Pooled::call(of_no_bound),
        })
    }
}

fn of_no_bound<'k>(front: Front<'k>, _: &[Type], _: &[Operand<'k>]) -> Operand<'k> {
    front.refuse(
        "the bounds of this type parameter have this function by another trait, or by a body that a trait has for all; \
         mark the trait with `#[device_fn]`, or bound the parameter by the trait itself and write the function in the \
         `impl` block of each type",
    )
}

/// What is not of the parameter: of other types, or found.
#[doc(hidden)]
pub trait OfOther {
    /// What is found, if anything.
    type Entry;
    /// The entry as it is.
    fn or_of(self, _: u64, _: bool, _: &[fn(u64, bool) -> Option<Pooled>]) -> Self::Entry;
}

impl<Entry, T: ?Sized> OfOther for OfParam<Entry, T> {
    type Entry = Entry;
    fn or_of(self, _: u64, _: bool, _: &[fn(u64, bool) -> Option<Pooled>]) -> Entry {
        self.0
    }
}

/// The types among all that are written at a call which are parameters of its description.
#[doc(hidden)]
pub fn picked(all: &[Type], numbers: &[usize]) -> Vec<Type> {
    let numbers = numbers.iter();
    numbers
        .filter_map(|&number| all.get(number).copied())
        .collect()
}
