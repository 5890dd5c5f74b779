//! Atomics (CUDA guide, "Atomic Functions"; PTX ISA, "Memory Consistency Model").
//!
//! A read-modify-write takes `&mut` of the element and returns the old value. By its short name it
//! is relaxed and for all threads of the device; with `_with` it takes an [`Ordering`] and a
//! [`Scope`]. What they order is in the guide's chapter on memory.
//!
//! | | 8 and 16-bit integers | 32 and 64-bit integers | `f16`, `bf16` | `f32`, `f64` | vectors of 16 bytes |
//! |---|---|---|---|---|---|
//! | add, sub | loop | yes | yes or loop | yes | lane by lane |
//! | min, max | loop | yes | loop | loop | |
//! | and, or, xor | loop | yes | | | |
//! | exchange | loop | yes | loop | yes | yes |
//! | compare-and-swap | yes or loop | yes | | | yes, of integers |
//! | inc, dec | | yes, `u32` only | | | |
//! | load, store (`bool`, too) | yes | yes | yes | yes | |
//! | subnormal numbers in add, sub | | | kept | kept, but of `f32` 0 in global memory of GPUs | as of the lanes |
//!
//! A *loop* is one around compare-and-swap, which is as right as an instruction, and slower where many threads change one
//! place. Additions of `f16` are instructions of NVIDIA's GPUs, those of `bf16` from sm_90 on. Of 8 and 16 bits GPUs swap
//! the 32-bit word around the number, which is written only where it has not changed: what other threads write beside it
//! stays, and threads that change numbers of one word wait for each other (as CUDA's `cuda::atomic_ref` has it).
//!
//! `atomic_add` takes vectors, too ([`F32x2`](kiln_jit_core::value::F32x2) and its kind): each lane is added by itself,
//! as CUDA has it of `__half2` and `float2`. Relaxed and for the device that is one instruction of NVIDIA's GPUs for
//! `F16x2`, from sm_90 on for `BF16x2`, and from sm_100 on in global memory for `F32x2` and `F32x4`; else one a lane.
//!
//! Of 16 bytes ([`U64x2`] and its kind) there are exchange and compare-and-swap, which NVIDIA's GPUs have from sm_90 on;
//! for an older one the kernel is refused. Two words then change together, as an index and a tag that tells its uses apart.
//! What is there is read in one step by comparing and swapping anything with itself.
//!
//! Of floats, the smaller and the larger are those of `f32::min` and `f32::max`: where one of the two is NaN, the other
//! one stays; of 0.0 and -0.0 either may. The order of additions is open, and so are the last bits of a sum.
//!
//! Additions of `f32` to global memory take subnormal numbers, below 2^-126 in magnitude, for zeros of their sign on NVIDIA's
//! GPUs: what is there, what is added, and the sum (PTX ISA, "atom"). Those to shared memory keep them, as do those of
//! other floats, and all on a CPU.
//!
//! A block counts in shared memory, then adds its counts to everybody's:
//!
//! ```
//! use kiln::prelude::*;
//!
//! #[kernel]
//! fn histogram(x: &[u32], bins: &mut [u32]) {
//!     let counts = shared!([u32; 16]);
//!     let thread = thread_idx().x;
//!     if thread < 16 {
//!         counts[thread] = 0;
//!     }
//!     barrier();
//!     for i in (global_id().x..x.len()).step_by(global_size().x) {
//!         atomic_add(&mut counts[(x[i] % 16) as usize], 1);
//!     }
//!     barrier();
//!     if thread < 16 {
//!         atomic_add(&mut bins[thread], counts[thread]);
//!     }
//! }
//!
//! # fn main() -> kiln::Result<()> {
//! let jit = Jit::new()?;
//! let x = jit.upload(&(0..1000).collect::<Vec<u32>>())?;
//! let mut bins = jit.zeros(16)?;
//! histogram.launch(&jit, (4, 64), &x, &mut bins)?;
//! assert_eq!(bins.to_vec()?[7..10], [63, 62, 62]);
//! # Ok(())
//! # }
//! ```
//!
//! A flag says that data is there. Who acquires the flag sees what was written before it was released:
//!
//! ```
//! use kiln::prelude::*;
//!
//! #[kernel]
//! fn hand_over(data: &mut [u32], flag: &mut [u32], out: &mut [u32]) {
//!     if block_idx().x == 0 {
//!         data[0] = 42;
//!         atomic_store(&mut flag[0], 1, Ordering::Release, Scope::Device);
//!     } else if atomic_load(&flag[0], Ordering::Acquire, Scope::Device) == 1 {
//!         out[0] = data[0];
//!     } else {
//!         out[0] = 42; // Block 0 has not come so far.
//!     }
//! }
//!
//! # fn main() -> kiln::Result<()> {
//! let jit = Jit::new()?;
//! let (mut data, mut flag, mut out) = (jit.zeros(1)?, jit.zeros(1)?, jit.zeros(1)?);
//! hand_over.launch(&jit, (2, 1), &mut data, &mut flag, &mut out)?;
//! assert_eq!(out.to_vec()?, [42]);
//! # Ok(())
//! # }
//! ```
//!
//! Every read-modify-write gives the old value, here with 32 threads at once:
//!
//! ```
//! use kiln::prelude::*;
//!
//! #[kernel]
//! fn change(cells: &mut [u32], old: &mut [u32]) {
//!     let lane = thread_idx().x as u32;
//!     atomic_min(&mut cells[0], lane);
//!     atomic_max(&mut cells[1], lane);
//!     atomic_and(&mut cells[2], !(1 << lane));
//!     atomic_or(&mut cells[3], 1 << lane);
//!     atomic_xor(&mut cells[4], lane);
//!     // Whoever finds 0 is the first, and there is one.
//!     if atomic_cas(&mut cells[5], 0, 7) == 0 {
//!         old[0] = atomic_exchange(&mut cells[6], 8);
//!     }
//! }
//!
//! # fn main() -> kiln::Result<()> {
//! let jit = Jit::new()?;
//! let mut cells = jit.upload(&[5, 5, u32::MAX, 0, 0, 0, 9])?;
//! let mut old = jit.zeros(1)?;
//! change.launch(&jit, (1, 32), &mut cells, &mut old)?;
//! assert_eq!(cells.to_vec()?, [0, 31, 0, u32::MAX, 0, 7, 8]);
//! assert_eq!(old.to_vec()?, [9]);
//! # Ok(())
//! # }
//! ```
//!
//! Numbers that go round, and floats. A slot of a ring for each thread, and the extremes of what they have:
//!
//! ```
//! use kiln::prelude::*;
//!
//! #[kernel]
//! fn extremes(x: &[f32], ring: &mut [u32], least: &mut [f32], most: &mut [f32], left: &mut [u32]) {
//!     let i = global_id().x;
//!     if i < x.len() {
//!         let slot = atomic_inc(&mut ring[0], 3); // 0, 1, 2, 3, 0, ..
//!         atomic_dec(&mut ring[1], 3); // 3, 2, 1, 0, 3, ..
//!         atomic_min(&mut least[slot as usize], x[i]);
//!         atomic_max(&mut most[0], x[i]);
//!         atomic_sub(&mut left[0], 1);
//!     }
//! }
//!
//! # fn main() -> kiln::Result<()> {
//! let jit = Jit::new()?;
//! let x = jit.upload(&[0.5, -2.5, f32::NAN, 8.0, 0.25])?;
//! let (mut ring, mut left) = (jit.zeros(2)?, jit.upload(&[5])?);
//! let (mut least, mut most) = (jit.upload(&[f32::INFINITY; 4])?, jit.upload(&[f32::NAN])?);
//! extremes.launch(&jit, (1, 32), &x, &mut ring, &mut least, &mut most, &mut left)?;
//! assert_eq!((ring.to_vec()?, left.to_vec()?), (vec![1, 3], vec![0]));
//! assert_eq!(least.to_vec()?.into_iter().reduce(f32::min), Some(-2.5));
//! assert_eq!(most.to_vec()?, [8.0]);
//! # Ok(())
//! # }
//! ```
//!
//! Two words at once. Each thread puts its element first in a list, with a tag that counts the changes, so that nobody takes
//! a list for unchanged whose first element has been away and come back:
//!
//! ```
//! use kiln::prelude::*;
//!
//! const NONE: u64 = u64::MAX;
//!
//! #[kernel]
//! fn push_all(head: &mut [U64x2], next: &mut [u64]) {
//!     let i = global_id().x;
//!     let mut seen = U64x2::new(NONE, 0);
//!     loop {
//!         next[i] = seen.x;
//!         let new = U64x2::new(i as u64, seen.y + 1);
//!         let found = atomic_cas_with(&mut head[0], seen, new, Ordering::AcqRel, Scope::Device);
//!         if found == seen {
//!             break;
//!         }
//!         seen = found;
//!     }
//! }
//!
//! # fn main() -> kiln::Result<()> {
//! # let jit = Jit::on(Device::cpu()); // GPUs before sm_90 have none.
//! let (mut head, mut next) = (jit.upload(&[U64x2::new(NONE, 0)])?, jit.zeros(64)?);
//! push_all.launch(&jit, (2, 32), &mut head, &mut next)?;
//! let (head, next) = (head.to_vec()?[0], next.to_vec()?);
//! let list = std::iter::successors(Some(head.x), |&at| next.get(at as usize).copied());
//! let mut list: Vec<u64> = list.take_while(|&at| at != NONE).collect();
//! list.sort();
//! assert_eq!((list, head.y), ((0..64).collect(), 64));
//! # Ok(())
//! # }
//! ```
//!
//! With an ordering and a scope:
//!
//! ```
//! use kiln::prelude::*;
//!
//! #[kernel]
//! fn ordered(cells: &mut [u32]) {
//!     atomic_add_with(&mut cells[0], 1, Ordering::AcqRel, Scope::Device);
//!     atomic_min_with(&mut cells[1], 1, Ordering::Acquire, Scope::Block);
//!     atomic_max_with(&mut cells[2], 1, Ordering::Release, Scope::Device);
//!     atomic_and_with(&mut cells[3], 1, Ordering::SeqCst, Scope::System);
//!     atomic_or_with(&mut cells[4], 1, Ordering::Relaxed, Scope::Block);
//!     atomic_xor_with(&mut cells[5], 1, Ordering::AcqRel, Scope::Block);
//!     atomic_exchange_with(&mut cells[6], 1, Ordering::AcqRel, Scope::Device);
//!     atomic_cas_with(&mut cells[7], 0, 1, Ordering::SeqCst, Scope::Device);
//!     atomic_sub_with(&mut cells[8], 1, Ordering::Release, Scope::Block);
//!     atomic_inc_with(&mut cells[9], 5, Ordering::AcqRel, Scope::Device);
//!     atomic_dec_with(&mut cells[10], 5, Ordering::Acquire, Scope::System);
//! }
//!
//! # fn main() -> kiln::Result<()> {
//! let jit = Jit::new()?;
//! let mut cells = jit.zeros(11)?;
//! ordered.launch(&jit, (1, 1), &mut cells)?;
//! assert_eq!(cells.to_vec()?, [1, 0, 1, 0, 1, 1, 1, 1, u32::MAX, 1, 5]);
//! # Ok(())
//! # }
//! ```

use kiln_jit_core::front::macros::{Front, Operand};
use kiln_jit_core::ir::{AtomicOp, Ordering as IrOrdering, Scope};
use kiln_jit_core::value::{DeviceType, F32x4, F64x2, I32x4, U32x4, U64x2};

use super::atomic_vector::{AtomicSum, add};
use super::functions;
use super::number::{Int, Num};
#[cfg(doc)]
use super::ordering::Ordering;
use super::ordering::{AnyOrdering, LoadOrdering, StoreOrdering, known, refuse_order};

/// What [`atomic_exchange`](atomic_exchange()) exchanges in one step: numbers, and vectors of 16 bytes.
#[diagnostic::on_unimplemented(
    message = "there are no atomics of `{Self}`",
    label = "not a number, and no vector of 16 bytes",
    note = "put what changes together into a `U64x2`, or into one integer"
)]
pub trait AtomicValue: DeviceType + Copy {}

#[diagnostic::do_not_recommend]
impl<T: Num> AtomicValue for T {}

/// What [`atomic_cas`](atomic_cas()) compares and swaps: integers, and vectors of integers of 16 bytes.
#[diagnostic::on_unimplemented(
    message = "there is no compare-and-swap of `{Self}`",
    label = "not an integer, and no vector of integers of 16 bytes",
    note = "compare and swap the bits of a float, `x.to_bits()`; put what changes together into a `U64x2`, or into one integer"
)]
pub trait AtomicBits: AtomicValue + PartialEq {}

#[diagnostic::do_not_recommend]
impl<T: Int> AtomicBits for T {}

macro_rules! words {
    ($($trait:ident: $($t:ty)*;)*) => {$($(
        #[diagnostic::do_not_recommend]
        impl $trait for $t {}
    )*)*};
}
words! {
    AtomicValue: F32x4 F64x2 I32x4 U32x4 U64x2;
    AtomicBits: I32x4 U32x4 U64x2;
}

/// Read-modify-writes, each relaxed for the device, and with an order of choice.
macro_rules! changes {
    ($(
        $(#[$doc:meta])*
        $name:ident, $with:ident: $bound:ident, $op:ident of $operand:ident, |$old:ident, $value:ident| $new:expr;
    )*) => {
        functions! {$(
            $(#[$doc])*
            fn $name<T: $bound>(place: &mut T, $value: T) -> T {
                let $old = *place;
                *place = $new;
                $old
            } => |front, _, [place, value]| front.value(place.place().atomic(
                AtomicOp::$op,
                $operand(*value),
                IrOrdering::Relaxed,
                Scope::Device,
            ));
            $(#[$doc])*
            /// With an ordering and a scope.
            fn $with<T: $bound>(place: &mut T, $value: T, ordering: impl AnyOrdering, scope: Scope) -> T {
                let _ = (ordering, scope);
                let $old = *place;
                *place = $new;
                $old
            } => |front, _, [place, value, ordering, scope]| match known(*ordering, *scope) {
                Some((ordering, scope)) => {
                    front.value(place.place().atomic(AtomicOp::$op, $operand(*value), ordering, scope))
                }
                None => refuse_order(front),
            };
        )*}
    };
}
changes! {
    /// Takes `value` away from `place` (CUDA `atomicSub`).
    atomic_sub, atomic_sub_with: Num, Add of negative, |old, value| old - value;
    /// Makes `place` the smaller of it and `value` (CUDA `atomicMin`).
    atomic_min, atomic_min_with: Num, Min of itself, |old, value| old.min(value);
    /// Makes `place` the larger of it and `value` (CUDA `atomicMax`).
    atomic_max, atomic_max_with: Num, Max of itself, |old, value| old.max(value);
    /// Makes `place` the bits that it has in common with `value` (CUDA `atomicAnd`).
    atomic_and, atomic_and_with: Int, And of itself, |old, value| old & value;
    /// Sets the bits of `value` in `place` (CUDA `atomicOr`).
    atomic_or, atomic_or_with: Int, Or of itself, |old, value| old | value;
    /// Flips the bits of `value` in `place` (CUDA `atomicXor`).
    atomic_xor, atomic_xor_with: Int, Xor of itself, |old, value| old ^ value;
    /// Replaces `place` by `value` (CUDA `atomicExch`). Numbers, and vectors of 16 bytes, which GPUs exchange from sm_90
    /// on.
    atomic_exchange, atomic_exchange_with: AtomicValue, Exchange of itself, |old, value| value;
}

pub(super) fn itself(value: Operand<'_>) -> Operand<'_> {
    value
}

/// The number that is added where `value` is to be taken away.
pub(super) fn negative(value: Operand<'_>) -> Operand<'_> {
    let value = value.target().read();
    Front::new(value.builder()).value(-value)
}

/// Changes around a limit, each relaxed for the device, and with an order of choice.
macro_rules! around {
    ($($(#[$doc:meta])* $name:ident, $with:ident, |$old:ident, $limit:ident| $new:expr;)*) => {
        functions! {$(
            $(#[$doc])*
            fn $name(place: &mut u32, $limit: u32) -> u32 {
                let $old = *place;
                *place = $new;
                $old
            } => |front, _, [place, limit]| {
                front.value(place.place().$name(*limit, IrOrdering::Relaxed, Scope::Device))
            };
            $(#[$doc])*
            /// With an ordering and a scope.
            fn $with(place: &mut u32, $limit: u32, ordering: impl AnyOrdering, scope: Scope) -> u32 {
                let _ = (ordering, scope);
                let $old = *place;
                *place = $new;
                $old
            } => |front, _, [place, limit, ordering, scope]| match known(*ordering, *scope) {
                Some((ordering, scope)) => front.value(place.place().$name(*limit, ordering, scope)),
                None => refuse_order(front),
            };
        )*}
    };
}
around! {
    /// Adds 1 to `place`, or makes it 0 if it is `limit` or more (CUDA `atomicInc`).
    atomic_inc, atomic_inc_with, |old, limit| if old >= limit { 0 } else { old + 1 };
    /// Takes 1 from `place`, or makes it `limit` if it is 0 or more than `limit` (CUDA `atomicDec`).
    atomic_dec, atomic_dec_with, |old, limit| if old == 0 || old > limit { limit } else { old - 1 };
}

functions! {
    /// Adds `value` to `place` (CUDA `atomicAdd`). Of a vector each lane is added by itself, and no other thread need
    /// see all of them change at once.
    fn atomic_add<T: AtomicSum>(place: &mut T, value: T) -> T {
        let old = *place;
        *place = old + value;
        old
    } => |front, _, [place, value]| {
        add(front, *place, *value, (IrOrdering::Relaxed, Scope::Device))
    };
    /// [`atomic_add`] with an ordering and a scope, of a vector those of each lane.
    fn atomic_add_with<T: AtomicSum>(
        place: &mut T,
        value: T,
        ordering: impl AnyOrdering,
        scope: Scope
    ) -> T {
        let _ = (ordering, scope);
        let old = *place;
        *place = old + value;
        old
    } => |front, _, [place, value, ordering, scope]| match known(*ordering, *scope) {
        Some(order) => add(front, *place, *value, order),
        None => refuse_order(front),
    };
    /// Replaces `place` by `new` if it is `expected` (CUDA `atomicCAS`): the old value equals
    /// `expected` if and only if that happened. Integers, and vectors of integers of 16 bytes, which GPUs
    /// compare and swap from sm_90 on.
    fn atomic_cas<T: AtomicBits>(place: &mut T, expected: T, new: T) -> T {
        let old = *place;
        if old == expected {
            *place = new;
        }
        old
    } => |front, _, [place, expected, new]| front.value(place.place().atomic_cas(*expected, *new));
    /// [`atomic_cas`] with an ordering and a scope.
    fn atomic_cas_with<T: AtomicBits>(
        place: &mut T,
        expected: T,
        new: T,
        ordering: impl AnyOrdering,
        scope: Scope
    ) -> T {
        let _ = (ordering, scope);
        let old = *place;
        if old == expected {
            *place = new;
        }
        old
    } => |front, _, [place, expected, new, ordering, scope]| match known(*ordering, *scope) {
        Some((ordering, scope)) => {
            front.value(place.place().atomic_cas_with(*expected, *new, ordering, scope))
        }
        None => refuse_order(front),
    };
    /// Reads `place` atomically (CUDA `cuda::atomic_ref::load`): relaxed, acquire or sequentially
    /// consistent. Any number.
    fn atomic_load<T: Num>(place: &T, ordering: impl LoadOrdering, scope: Scope) -> T {
        let _ = (ordering, scope);
        *place
    } => |front, _, [place, ordering, scope]| match known(*ordering, *scope) {
        Some((ordering, scope)) => front.value(place.place().atomic_load(ordering, scope)),
        None => refuse_order(front),
    };
    /// Writes `place` atomically (CUDA `cuda::atomic_ref::store`): relaxed, release or sequentially
    /// consistent. Any number.
    fn atomic_store<T: Num>(
        place: &mut T,
        value: T,
        ordering: impl StoreOrdering,
        scope: Scope
    ) {
        let _ = (ordering, scope);
        *place = value;
    } => |front, _, [place, value, ordering, scope]| match known(*ordering, *scope) {
        Some((ordering, scope)) => {
            place.place().atomic_store(*value, ordering, scope);
            front.unit()
        }
        None => refuse_order(front),
    };
}
