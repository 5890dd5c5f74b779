//! Barriers, fences (CUDA guide, "Synchronization Functions", "Memory Fence Functions"), dynamic shared
//! memory, and memory seen as that of other elements. What they order is in the guide's chapter on memory; the atomics are in
//! [`super::atomic`].
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
//!
//! Several arrays in it, of lengths that the launch decides, each a number of bytes after the start:
//!
//! ```
//! use kiln::prelude::*;
//!
//! #[kernel]
//! fn sorted_by_key(keys: &[u32], x: &mut [f64]) {
//!     let (i, n) = (thread_idx().x, x.len());
//!     let numbers = dynamic_shared_at::<f64>(0, n);
//!     let places = dynamic_shared_at::<u32>(8 * n, n);
//!     numbers[i] = x[i];
//!     places[keys[i] as usize] = i as u32;
//!     barrier();
//!     x[i] = numbers[places[i] as usize];
//! }
//!
//! # fn main() -> kiln::Result<()> {
//! let jit = Jit::new()?;
//! let (keys, mut x) = (jit.upload(&[2, 0, 1])?, jit.upload(&[0.5, 1.5, 2.5])?);
//! let config = LaunchConfig::new(1, 3).shared_bytes(3 * 12);
//! sorted_by_key.launch(&jit, config, &keys, &mut x)?;
//! assert_eq!(x.to_vec()?, [1.5, 2.5, 0.5]);
//! # Ok(())
//! # }
//! ```
//!
//! Memory of numbers as vectors, which are read in one access each:
//!
//! ```
//! use kiln::prelude::*;
//!
//! #[kernel]
//! fn halve(x: &[f32], y: &mut [f32]) {
//!     let (x, y) = (cast_slice::<F32x4>(x), cast_slice_mut::<F32x4>(y));
//!     let i = global_id().x;
//!     if i < x.len() {
//!         y[i] = x[i] * 0.5;
//!     }
//! }
//!
//! # fn main() -> kiln::Result<()> {
//! let jit = Jit::new()?;
//! let (x, mut y) = (jit.upload(&[3.0; 64])?, jit.zeros(64)?);
//! halve.launch(&jit, (1, 32), &x, &mut y)?;
//! assert_eq!(y.to_vec()?, [1.5; 64]);
//! # Ok(())
//! # }
//! ```
//!
//! Fences order what a thread writes before with what it writes after, for those who see the latter:
//!
//! ```
//! use kiln::prelude::*;
//!
//! #[kernel]
//! fn publish(data: &mut [u32], flags: &mut [u32]) {
//!     data[0] = 42;
//!     thread_fence_block(); // for the threads of this block
//!     flags[0] = 1;
//!     thread_fence(); // for all threads of the device
//!     flags[1] = 1;
//!     thread_fence_system(); // for the host, too
//!     flags[2] = 1;
//!     thread_fence_with(Ordering::Release, Scope::Device); // this thread's writes alone
//!     atomic_store(&mut flags[3], 1, Ordering::Relaxed, Scope::Device);
//! }
//!
//! # fn main() -> kiln::Result<()> {
//! let jit = Jit::new()?;
//! let (mut data, mut flags) = (jit.zeros(1)?, jit.zeros(4)?);
//! publish.launch(&jit, (1, 1), &mut data, &mut flags)?;
//! assert_eq!(flags.to_vec()?, [1, 1, 1, 1]);
//! # Ok(())
//! # }
//! ```

use kiln_jit_core::front::macros::{Front, Operand};
use kiln_jit_core::ir::{Scope, Type};
use kiln_jit_core::value::{self, DeviceType, Pod};

use super::functions;
use super::ordering::{FenceOrdering, known, refuse_order};

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
    /// Orders this thread's memory accesses as seen by the host and all devices (CUDA
    /// `__threadfence_system`).
    fn thread_fence_system() {} => |front, _, _| {
        front.builder().fence(Scope::System);
        front.unit()
    };
    /// A fence of an ordering that is not relaxed, for the threads of a scope (CUDA
    /// `cuda::atomic_thread_fence`). The others are sequentially consistent.
    fn thread_fence_with(ordering: impl FenceOrdering, scope: Scope) {
        let _ = (ordering, scope);
    } => |front, _, [ordering, scope]| match known(*ordering, *scope) {
        Some((ordering, scope)) => {
            front.builder().fence_with(ordering, scope);
            front.unit()
        }
        None => refuse_order(front),
    };
    /// All dynamic shared memory of the launch, as a slice; the launch decides its length
    /// ([`LaunchConfig::shared_bytes`](kiln_jit_core::launch::LaunchConfig::shared_bytes)). Give the
    /// type: `dynamic_shared::<f32>()`. On the host there is none.
    fn dynamic_shared<T: DeviceType>() -> &'static mut [T] {
        &mut []
    } => |front, types, _| match types.first() {
        Some(&element) => front.dynamic_shared(element),
        None => front.refuse("write the type of the elements: `dynamic_shared::<f32>()`"),
    };
    /// A part of the dynamic shared memory of the launch, for several arrays in it (CUDA guide, "Shared Memory"): `len`
    /// elements, the first of which is `offset` bytes after the start. Give the type:
    /// `dynamic_shared_at::<f64>(0, n)`. Where the launch has less memory, or the elements would not be aligned, the
    /// launch is an error. Parts that overlap are the same memory. On the host there is none.
    fn dynamic_shared_at<T: DeviceType>(offset: usize, len: usize) -> &'static mut [T] {
        let _ = (offset, len);
        &mut []
    } => |front, types, [offset, len]| match types.first() {
        Some(&element) => {
            front.value(front.builder().dynamic_shared_at(element, *offset, *len))
        }
        None => front.refuse("write the type of the elements: `dynamic_shared_at::<f64>(0, n)`"),
    };
    /// A slice as one of other elements in the same memory, as many as it has bytes for: `cast_slice::<F32x4>(x)`.
    /// Where it does not begin where such elements may, or its bytes are no whole number of them, the launch is an
    /// error, and the host panics.
    fn cast_slice<T: Pod>(x: &[impl Pod]) -> &[T] {
        value::cast_slice(x)
    } => |front, types, [x]| cast(front, types, x.whole_slice(false));
    /// [`cast_slice`] of a slice that may be written: `cast_slice_mut::<F32x4>(x)`.
    fn cast_slice_mut<T: Pod>(x: &mut [impl Pod]) -> &mut [T] {
        value::cast_slice_mut(x)
    } => |front, types, [x]| cast(front, types, x.whole_slice(true));
}

fn cast<'k>(front: Front<'k>, types: &[Type], slice: Operand<'k>) -> Operand<'k> {
    match types.first() {
        Some(&element) => front.value(slice.read().cast_slice(element)),
        None => front.refuse("write the type of the elements: `cast_slice::<F32x4>(x)`"),
    }
}

/// What `shared!(T)` is to rustc. The host has no blocks, and a device function that comes here panics.
#[doc(hidden)]
pub fn shared_memory<T: DeviceType>() -> &'static mut T {
    panic!("`shared!` is memory of a thread block and exists in kernels only")
}
