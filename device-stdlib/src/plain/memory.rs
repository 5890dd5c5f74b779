//! Barriers, fences, atomics (CUDA guide, "Synchronization Functions", "Memory Fence Functions",
//! "Atomic Functions") and dynamic shared memory.
//!
//! An atomic takes `&mut` of the element, returns the old value, is relaxed and for all threads of
//! the device.
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
//! Dynamic shared memory has the length that the launch gives it:
//!
//! ```
//! use kiln::prelude::*;
//!
//! #[kernel]
//! fn reverse(x: &mut [f32]) {
//!     let (i, tile) = (thread_idx().x, dynamic_shared::<f32>());
//!     tile[i] = x[i];
//!     barrier();
//!     x[i] = tile[x.len() - 1 - i];
//! }
//!
//! # fn main() -> kiln::Result<()> {
//! let jit = Jit::new()?;
//! let mut x = jit.upload(&[1.0, 2.0, 3.0, 4.0])?;
//! let config = LaunchConfig::new(1, 4).shared_bytes(16);
//! reverse.launch(&jit, config, &mut x)?;
//! assert_eq!(x.to_vec()?, [4.0, 3.0, 2.0, 1.0]);
//! # Ok(())
//! # }
//! ```

use kiln_jit_core::ir::{AtomicOp, Ordering, Scope};
use kiln_jit_core::value::DeviceType;

use super::functions;
use super::number::{Int, Num};

/// An atomic of the IR on the first of two arguments.
macro_rules! rmw {
    ($front:ident, $place:ident, $value:ident, $op:ident) => {
        $front.value($place.place().atomic(
            AtomicOp::$op,
            *$value,
            Ordering::Relaxed,
            Scope::Device,
        ))
    };
}

functions! {
    /// Waits until all threads of the block are here (CUDA `__syncthreads`): every thread of the
    /// block that has not ended must get to the same barrier.
    fn barrier() {} => |front, _, _| {
        front.builder().barrier();
        front.unit()
    };
    /// Orders this thread's memory accesses as seen by all threads of the device (CUDA
    /// `__threadfence`).
    fn thread_fence() {} => |front, _, _| {
        front.builder().fence(Scope::Device);
        front.unit()
    };
    /// Orders this thread's memory accesses as seen by its block (CUDA `__threadfence_block`).
    fn thread_fence_block() {} => |front, _, _| {
        front.builder().fence(Scope::Block);
        front.unit()
    };
    /// Adds `value` to `place` (CUDA `atomicAdd`). `i32`, `u32`, `i64`, `u64`, `f32`, `f64`.
    fn atomic_add<T: Num>(place: &mut T, value: T) -> T {
        let old = *place;
        *place += value;
        old
    } => |front, _, [place, value]| rmw!(front, place, value, Add);
    /// Makes `place` the smaller of it and `value` (CUDA `atomicMin`). Integers.
    fn atomic_min<T: Int>(place: &mut T, value: T) -> T {
        let old = *place;
        *place = old.min(value);
        old
    } => |front, _, [place, value]| rmw!(front, place, value, Min);
    /// Makes `place` the larger of it and `value` (CUDA `atomicMax`). Integers.
    fn atomic_max<T: Int>(place: &mut T, value: T) -> T {
        let old = *place;
        *place = old.max(value);
        old
    } => |front, _, [place, value]| rmw!(front, place, value, Max);
    /// Makes `place` the bits that it has in common with `value` (CUDA `atomicAnd`).
    fn atomic_and<T: Int>(place: &mut T, value: T) -> T {
        let old = *place;
        *place &= value;
        old
    } => |front, _, [place, value]| rmw!(front, place, value, And);
    /// Sets the bits of `value` in `place` (CUDA `atomicOr`).
    fn atomic_or<T: Int>(place: &mut T, value: T) -> T {
        let old = *place;
        *place |= value;
        old
    } => |front, _, [place, value]| rmw!(front, place, value, Or);
    /// Flips the bits of `value` in `place` (CUDA `atomicXor`).
    fn atomic_xor<T: Int>(place: &mut T, value: T) -> T {
        let old = *place;
        *place ^= value;
        old
    } => |front, _, [place, value]| rmw!(front, place, value, Xor);
    /// Replaces `place` by `value` (CUDA `atomicExch`).
    fn atomic_exchange<T: Num>(place: &mut T, value: T) -> T {
        std::mem::replace(place, value)
    } => |front, _, [place, value]| rmw!(front, place, value, Exchange);
    /// Replaces `place` by `new` if it is `expected` (CUDA `atomicCAS`): the old value equals
    /// `expected` if and only if that happened. Integers.
    fn atomic_cas<T: Int>(place: &mut T, expected: T, new: T) -> T {
        let old = *place;
        if old == expected {
            *place = new;
        }
        old
    } => |front, _, [place, expected, new]| front.value(place.place().atomic_cas(*expected, *new));
    /// All dynamic shared memory of the launch, as a slice; the launch decides its length
    /// ([`LaunchConfig::shared_bytes`](kiln_jit_core::launch::LaunchConfig::shared_bytes)). Give the
    /// type: `dynamic_shared::<f32>()`. On the host there is none.
    fn dynamic_shared<T: DeviceType>() -> &'static mut [T] {
        &mut []
    } => |front, types, _| match types.first() {
        Some(&element) => front.dynamic_shared(element),
        None => front.refuse("write the type of the elements: `dynamic_shared::<f32>()`"),
    };
}

/// What `shared!(T)` is to rustc. Kernels are never called on the host, so neither is this.
#[doc(hidden)]
pub fn shared_memory<T: DeviceType>() -> &'static mut T {
    panic!("`shared!` is memory of a thread block and exists in kernels only")
}
