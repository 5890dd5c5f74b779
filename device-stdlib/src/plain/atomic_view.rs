//! Atomics by a shared reference: a slice that several closures and functions hold at once.
//!
//! [`atomics`] makes one of a mutable slice, which rustc takes for borrowed as long as that is used. What is behind it
//! is then reached by atomics alone, so it may be copied as often as a kernel likes. The methods are those of
//! [`super::atomic`] with an index: out of bounds it is a fault, as any.
//!
//! ```
//! use kiln::prelude::*;
//!
//! #[device_fn]
//! fn note(counts: Atomics<'_, u32>, x: u32) -> u32 {
//!     counts.fetch_add((x % 4) as usize, 1)
//! }
//!
//! #[kernel]
//! fn spread(x: &[u32], counts: &mut [u32]) {
//!     let counts = atomics(counts);
//!     let even = |x: u32| counts.fetch_max(4, x);
//!     let odd = |x: u32| counts.fetch_max(5, x);
//!     let i = global_id().x;
//!     if i < x.len() {
//!         note(counts, x[i]);
//!         if x[i] % 2 == 0 {
//!             even(x[i]);
//!         } else {
//!             odd(x[i]);
//!         }
//!     }
//! }
//!
//! # fn main() -> kiln::Result<()> {
//! let jit = Jit::new()?;
//! let x = jit.upload(&[1, 2, 3, 4, 5, 6, 9])?;
//! let mut counts = jit.zeros(6)?;
//! spread.launch(&jit, (1, 32), &x, &mut counts)?;
//! assert_eq!(counts.to_vec()?, [1, 3, 2, 1, 6, 9]);
//! # Ok(())
//! # }
//! ```
//!
//! All methods, and on the host:
//!
//! ```
//! use kiln::prelude::*;
//!
//! #[device_fn]
//! fn change(cells: Atomics<'_, u32>) -> u32 {
//!     cells.fetch_add(0, 5);
//!     cells.fetch_sub(0, 1);
//!     cells.fetch_min(1, 3);
//!     cells.fetch_max(1, 2);
//!     cells.fetch_and(2, 6);
//!     cells.fetch_or(2, 1);
//!     cells.fetch_xor(2, 4);
//!     cells.cas(3, 9, 1);
//!     let old = cells.exchange(3, 8);
//!     cells.fetch_add_with(0, 1, Ordering::AcqRel, Scope::Block);
//!     cells.fetch_sub_with(0, 2, Ordering::Acquire, Scope::Block);
//!     cells.fetch_min_with(1, 1, Ordering::Release, Scope::Device);
//!     cells.fetch_max_with(1, 4, Ordering::SeqCst, Scope::Device);
//!     cells.fetch_and_with(2, 7, Ordering::Relaxed, Scope::System);
//!     cells.fetch_or_with(2, 8, Ordering::Relaxed, Scope::Block);
//!     cells.fetch_xor_with(2, 1, Ordering::Relaxed, Scope::Block);
//!     cells.cas_with(3, 8, 6, Ordering::AcqRel, Scope::Device);
//!     cells.exchange_with(4, 7, Ordering::AcqRel, Scope::Device);
//!     cells.fetch_inc(6, 1);
//!     cells.fetch_inc_with(6, 1, Ordering::AcqRel, Scope::Device);
//!     cells.fetch_dec(7, 5);
//!     cells.fetch_dec_with(7, 5, Ordering::Acquire, Scope::System);
//!     cells.store(5, cells.len() as u32, Ordering::Release, Scope::Device);
//!     let last = cells.load(5, Ordering::Acquire, Scope::Device);
//!     if cells.is_empty() { 0 } else { old + last }
//! }
//!
//! #[kernel]
//! fn change_all(cells: &mut [u32], out: &mut [u32]) {
//!     out[0] = change(atomics(cells));
//! }
//!
//! # fn main() -> kiln::Result<()> {
//! let mut on_host = [1, 7, 12, 9, 0, 0, 0, 9];
//! let jit = Jit::new()?;
//! let (mut cells, mut out) = (jit.upload(&on_host)?, jit.zeros(1)?);
//! change_all.launch(&jit, (1, 1), &mut cells, &mut out)?;
//! assert_eq!(out.to_vec()?, [change(atomics(&mut on_host))]);
//! assert_eq!(cells.to_vec()?, on_host);
//! assert_eq!(on_host, [4, 4, 8, 6, 7, 8, 0, 4]);
//! # Ok(())
//! # }
//! ```

use std::cell::Cell;

use kiln_jit_core::ir::{AtomicOp, Ordering as IrOrdering, Scope, Type, TypeTable};
use kiln_jit_core::value::KernelValue;
use kiln_jit_core::view::slice_type;

use super::atomic::{AtomicBits, AtomicValue, itself, negative};
use super::functions;
use super::method::{is_empty, kernel_method};
use super::number::{Int, Num};
use super::ordering::{AnyOrdering, LoadOrdering, StoreOrdering, known, refuse_order};

/// A slice whose elements are read and changed by atomics alone, and that may be copied: see [`atomics`].
#[derive(Copy, Clone, Debug)]
pub struct Atomics<'a, T: AtomicValue>(&'a [Cell<T>]);

#[diagnostic::do_not_recommend]
impl<T: AtomicValue> KernelValue for Atomics<'_, T> {
    fn type_in(types: &mut TypeTable) -> Type {
        slice_type::<T>(types, true)
    }
}

functions! {
    /// A slice as one that is changed by atomics, by as many as hold it.
    fn atomics<T: AtomicValue>(x: &mut [T]) -> Atomics<'_, T> {
        Atomics(Cell::from_mut(x).as_slice_of_cells())
    } => |_front, _, [x]| x.whole_slice(true);
}

impl<T: AtomicValue> Atomics<'_, T> {
    /// How many elements it has.
    pub fn len(self) -> usize {
        self.0.len()
    }

    /// Whether there are no elements.
    pub fn is_empty(self) -> bool {
        self.0.is_empty()
    }
}

impl<T: Num> Atomics<'_, T> {
    /// Reads an element, as [`atomic_load`](super::atomic::atomic_load()) does.
    pub fn load(self, index: usize, ordering: impl LoadOrdering, scope: Scope) -> T {
        let _ = (ordering, scope);
        self.0[index].get()
    }

    /// Writes an element, as [`atomic_store`](super::atomic::atomic_store()) does.
    pub fn store(self, index: usize, value: T, ordering: impl StoreOrdering, scope: Scope) {
        let _ = (ordering, scope);
        self.0[index].set(value);
    }
}

impl<T: AtomicBits> Atomics<'_, T> {
    /// Replaces an element by `new` if it is `expected`, as [`atomic_cas`](super::atomic::atomic_cas()) does.
    pub fn cas(self, index: usize, expected: T, new: T) -> T {
        let old = self.0[index].get();
        if old == expected {
            self.0[index].set(new);
        }
        old
    }

    /// [`Atomics::cas`] with an ordering and a scope.
    pub fn cas_with(
        self,
        index: usize,
        expected: T,
        new: T,
        ordering: impl AnyOrdering,
        scope: Scope,
    ) -> T {
        let _ = (ordering, scope);
        self.cas(index, expected, new)
    }
}

kernel_method! { ['a, T: AtomicValue] Atomics<'a, T>, Unread: len = |front, x| x.len() }
kernel_method! { ['a, T: AtomicValue] Atomics<'a, T>, Unread: is_empty = |front, x| is_empty(x) }
kernel_method! { ['a, T: Num] Atomics<'a, T>, Value: load = |front, x, index, ordering, scope| {
    match known(*ordering, *scope) {
        Some((ordering, scope)) => front.value(x.read().at(*index).atomic_load(ordering, scope)),
        None => refuse_order(front),
    }
} }
kernel_method! { ['a, T: Num] Atomics<'a, T>, Value: store = |front, x, index, value, ordering, scope| {
    match known(*ordering, *scope) {
        Some((ordering, scope)) => {
            x.read().at(*index).atomic_store(*value, ordering, scope);
            front.unit()
        }
        None => refuse_order(front),
    }
} }
kernel_method! { ['a, T: AtomicBits] Atomics<'a, T>, Value: cas = |front, x, index, expected, new| {
    front.value(x.read().at(*index).atomic_cas(*expected, *new))
} }
kernel_method! { ['a, T: AtomicBits] Atomics<'a, T>, Value:
    cas_with = |front, x, index, expected, new, ordering, scope| {
        match known(*ordering, *scope) {
            Some((ordering, scope)) => {
                let place = x.read().at(*index);
                front.value(place.atomic_cas_with(*expected, *new, ordering, scope))
            }
            None => refuse_order(front),
        }
    }
}

/// Read-modify-writes of an element, each relaxed for the device, and with an order of choice.
macro_rules! changes {
    ($(
        $(#[$doc:meta])*
        $name:ident, $with:ident: $(<$generic:ident: $bound:ident>)? $t:ident, $op:ident of $operand:ident,
        |$old:ident, $value:ident| $new:expr;
    )*) => {$(
        impl $(<$generic: $bound>)? Atomics<'_, $t> {
            $(#[$doc])*
            pub fn $name(self, index: usize, $value: $t) -> $t {
                let $old = self.0[index].get();
                self.0[index].set($new);
                $old
            }

            $(#[$doc])*
            /// With an ordering and a scope.
            pub fn $with(self, index: usize, $value: $t, ordering: impl AnyOrdering, scope: Scope) -> $t {
                let _ = (ordering, scope);
                self.$name(index, $value)
            }
        }

        kernel_method! { ['a $(, $generic: $bound)?] Atomics<'a, $t>, Value: $name = |front, x, index, value| {
            front.value(x.read().at(*index).atomic(
                AtomicOp::$op,
                $operand(*value),
                IrOrdering::Relaxed,
                Scope::Device,
            ))
        } }
        kernel_method! { ['a $(, $generic: $bound)?] Atomics<'a, $t>, Value:
            $with = |front, x, index, value, ordering, scope| {
                match known(*ordering, *scope) {
                    Some((ordering, scope)) => {
                        let place = x.read().at(*index);
                        front.value(place.atomic(AtomicOp::$op, $operand(*value), ordering, scope))
                    }
                    None => refuse_order(front),
                }
            }
        }
    )*};
}
changes! {
    /// Adds `value` to an element, and gives what it was.
    fetch_add, fetch_add_with: <T: Num> T, Add of itself, |old, value| old + value;
    /// Takes `value` away from an element, and gives what it was.
    fetch_sub, fetch_sub_with: <T: Num> T, Add of negative, |old, value| old - value;
    /// Makes an element the smaller of it and `value`, and gives what it was.
    fetch_min, fetch_min_with: <T: Num> T, Min of itself, |old, value| old.min(value);
    /// Makes an element the larger of it and `value`, and gives what it was.
    fetch_max, fetch_max_with: <T: Num> T, Max of itself, |old, value| old.max(value);
    /// Makes an element the bits that it has in common with `value`, and gives what it was.
    fetch_and, fetch_and_with: <T: Int> T, And of itself, |old, value| old & value;
    /// Sets the bits of `value` in an element, and gives what it was.
    fetch_or, fetch_or_with: <T: Int> T, Or of itself, |old, value| old | value;
    /// Flips the bits of `value` in an element, and gives what it was.
    fetch_xor, fetch_xor_with: <T: Int> T, Xor of itself, |old, value| old ^ value;
    /// Replaces an element by `value`, and gives what it was.
    exchange, exchange_with: <T: AtomicValue> T, Exchange of itself, |old, value| value;
    /// Adds 1 to an element, or makes it 0 if it is `limit` or more, and gives what it was.
    fetch_inc, fetch_inc_with: u32, Increment of itself, |old, limit| if old >= limit { 0 } else { old + 1 };
    /// Takes 1 from an element, or makes it `limit` if it is 0 or more than `limit`, and gives what it was.
    fetch_dec, fetch_dec_with: u32, Decrement of itself, |old, limit| {
        if old == 0 || old > limit { limit } else { old - 1 }
    };
}
