//! Orderings of atomics and fences, as rustc checks them: a load does not release, a store does not
//! acquire, a fence orders something.
//!
//! ```
//! use kiln::prelude::*;
//!
//! #[kernel]
//! fn wait_for_two(flags: &mut [u32]) {
//!     atomic_store(&mut flags[0], 1, Ordering::Release, Scope::Device);
//!     let before = atomic_add_with(&mut flags[1], 1, Ordering::AcqRel, Scope::Device);
//!     if before == 1 {
//!         flags[2] = atomic_load(&flags[0], Ordering::Acquire, Scope::Device);
//!     }
//! }
//!
//! # fn main() -> kiln::Result<()> {
//! let jit = Jit::new()?;
//! let mut flags = jit.zeros(3)?;
//! wait_for_two.launch(&jit, (2, 1), &mut flags)?;
//! assert_eq!(flags.to_vec()?, [1, 2, 1]);
//! # Ok(())
//! # }
//! ```

use kiln_jit_core::front::macros::{Front, Operand};
use kiln_jit_core::ir::{Constant, Ordering as IrOrdering, Scope, TypeForm};
use kiln_jit_core::value::DeviceType;

/// The memory orderings (PTX ISA, "Memory Consistency Model"; those of Rust's
/// `std::sync::atomic::Ordering`). Each is of a type of its own.
#[derive(Debug)]
pub enum Ordering {}

/// The orderings that there are.
mod sealed {
    pub trait Ordering {}
}

/// An ordering that every read-modify-write can have.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an ordering",
    label = "write an ordering, like `Ordering::Acquire`"
)]
pub trait AnyOrdering: DeviceType + sealed::Ordering {}

/// An ordering of loads.
#[diagnostic::on_unimplemented(
    message = "a load has no ordering `{Self}`",
    label = "a load is `Ordering::Relaxed`, `Ordering::Acquire` or `Ordering::SeqCst`"
)]
pub trait LoadOrdering: DeviceType + sealed::Ordering {}

/// An ordering of stores.
#[diagnostic::on_unimplemented(
    message = "a store has no ordering `{Self}`",
    label = "a store is `Ordering::Relaxed`, `Ordering::Release` or `Ordering::SeqCst`"
)]
pub trait StoreOrdering: DeviceType + sealed::Ordering {}

/// An ordering of fences.
#[diagnostic::on_unimplemented(
    message = "a fence has no ordering `{Self}`",
    label = "a fence is `Ordering::Acquire`, `Ordering::Release`, `Ordering::AcqRel` or `Ordering::SeqCst`"
)]
pub trait FenceOrdering: DeviceType + sealed::Ordering {}

/// What the numbers of orderings stand for.
const ORDERINGS: [IrOrdering; 5] = [
    IrOrdering::Relaxed,
    IrOrdering::Acquire,
    IrOrdering::Release,
    IrOrdering::AcquireRelease,
    IrOrdering::SequentiallyConsistent,
];

macro_rules! orderings {
    ($($(#[$doc:meta])* $name:ident = $number:literal: $($of:ident)*;)*) => {
        $(
            $(#[$doc])*
            #[derive(Copy, Clone, PartialEq, Eq, Debug)]
            pub struct $name;

            impl sealed::Ordering for $name {}

            #[diagnostic::do_not_recommend]
            impl DeviceType for $name {
                const FORM: &'static TypeForm = u32::FORM;

                fn scalars(&self, out: &mut Vec<Constant>) {
                    out.push(Constant::Int($number));
                }
            }

            $(
                #[diagnostic::do_not_recommend]
                impl $of for $name {}
            )*
        )*

        #[allow(non_upper_case_globals, reason = "they are written as the variants of Rust's")]
        impl Ordering {
            $(
                $(#[$doc])*
                pub const $name: $name = $name;
            )*
        }
    };
}
orderings! {
    /// Atomic, orders nothing else.
    Relaxed = 0: AnyOrdering LoadOrdering StoreOrdering;
    /// What another thread wrote before it released is seen after this.
    Acquire = 1: AnyOrdering LoadOrdering FenceOrdering;
    /// What this thread wrote before this is seen by who acquires it.
    Release = 2: AnyOrdering StoreOrdering FenceOrdering;
    /// Acquires and releases.
    AcqRel = 3: AnyOrdering FenceOrdering;
    /// Acquires and releases, and all threads of the scope see these in one order.
    SeqCst = 4: AnyOrdering LoadOrdering StoreOrdering FenceOrdering;
}

/// The ordering and scope that constants say.
pub(super) fn known(ordering: Operand<'_>, scope: Operand<'_>) -> Option<(IrOrdering, Scope)> {
    let number = |operand: Operand<'_>| usize::try_from(operand.known_int()?).ok();
    let ordering = ORDERINGS.get(number(ordering)?)?;
    Some((*ordering, *Scope::ALL.get(number(scope)?)?))
}

/// Refuses what [`known`] does not know.
pub(super) fn refuse_order(front: Front<'_>) -> Operand<'_> {
    front.refuse(
        "the ordering and the scope are written where they are used, like `Ordering::Acquire` and \
         `Scope::Device`: they are part of the instruction",
    )
}
