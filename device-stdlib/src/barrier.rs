//! Barriers at which the threads of a block vote (CUDA guide, "Synchronization Functions"; PTX ISA, "barrier.red").
//!
//! They are barriers as [`barrier()`](crate::plain::memory::barrier()) is: all threads of the block that have not ended
//! come to the same one, and what was written to memory before it is seen after it. Besides, each thread brings a
//! `bool`, and all get the same answer. A search that goes on until nothing changes any more:
//!
//! ```
//! use kiln::prelude::*;
//!
//! /// Each node gets the smallest number of those that it can be reached from, over `next`.
//! #[kernel]
//! fn components(next: &[u32], label: &mut [u32], rounds: &mut [u32]) {
//!     let (i, labels) = (thread_idx().x, shared!([u32; 64]));
//!     labels[i] = i as u32;
//!     barrier();
//!     loop {
//!         let (mine, there) = (labels[i], next[i] as usize);
//!         let change = labels[there] != mine.min(labels[there]);
//!         if !barrier_or(change) {
//!             break;
//!         }
//!         atomic_min(&mut labels[there], mine);
//!         barrier();
//!         rounds[i] += 1;
//!     }
//!     label[i] = labels[i];
//! }
//!
//! # fn main() -> kiln::Result<()> {
//! let jit = Jit::new()?;
//! // 0 to 9 are a ring, the others point at themselves.
//! let next: Vec<u32> = (0..64).map(|i| if i < 10 { (i + 1) % 10 } else { i }).collect();
//! let (mut label, mut rounds) = (jit.zeros::<u32>(64)?, jit.zeros::<u32>(64)?);
//! components.launch(&jit, (1, 64), &jit.upload(&next)?, &mut label, &mut rounds)?;
//! assert_eq!(label.to_vec()?[8..12], [0, 0, 10, 11]);
//! # Ok(())
//! # }
//! ```
//!
//! How many, and whether all, with the builder's methods, which are those of the trait [`BarrierVote`]:
//!
//! ```
//! use kiln::prelude::*;
//!
//! # fn main() -> kiln::Result<()> {
//! let kernel = Kernel::build("vote", |k| {
//!     let (x, out) = (k.slice("x", Type::U32), k.slice_mut("out", Type::U32));
//!     let value = x.at(k.thread_idx().x()).get();
//!     let count = k.barrier_count(value.lt(3));
//!     let all = k.barrier_and(value.lt(3));
//!     let any = k.barrier_or(value.lt(3));
//!     k.if_(any & !all, || out.at(k.thread_idx().x()).set(count));
//! })?;
//! let jit = Jit::new()?;
//! let (x, mut out) = (jit.upload(&(0..40).collect::<Vec<u32>>())?, jit.zeros::<u32>(40)?);
//! jit.launch(&kernel, 1, 40, args!(&x, &mut out))?;
//! assert_eq!(out.to_vec()?, [3; 40]);
//! # Ok(())
//! # }
//! ```

use kiln_jit_core::ir::{Cell, Effects, Family, Meaning, Module, Scalar, Scope, Type, Uniformity};
use kiln_kernel_macro::device_fn;

use crate::intrinsic::function;
use crate::plain::atomic::{atomic_add, atomic_store};
use crate::plain::memory::barrier;
use crate::plain::ordering::Ordering;
use crate::table::operations;

/// How many threads bring `true`, for machines that have no such barrier.
#[device_fn]
fn count(predicate: bool) -> u32 {
    let count = shared!(u32);
    // The count before this one has been read.
    barrier();
    // Which threads are left nobody knows, so each of them begins it.
    atomic_store(&mut *count, 0, Ordering::Relaxed, Scope::Block);
    barrier();
    if predicate {
        atomic_add(&mut *count, 1);
    }
    barrier();
    *count
}

#[device_fn]
fn and(predicate: bool) -> bool {
    count(!predicate) == 0
}

#[device_fn]
fn or(predicate: bool) -> bool {
    count(predicate) != 0
}

/// The module of a function of a `bool`.
macro_rules! body {
    ($name:literal, $function:ident) => {{
        fn body(_: Scalar) -> Option<Module> {
            function::<$function>($name, &[("predicate", &|_| Type::BOOL)])
        }
        Meaning::Body(body)
    }};
}

/// The cell of NVIDIA's GPUs: inline PTX for a predicate in a register of 32 bits.
const fn cell(template: &'static str) -> Cell {
    Cell::asm(Family::PTX, None, template, "=r,r,~{memory}")
}

/// A barrier whose answer is a `bool`.
macro_rules! answer {
    ($mode:literal) => {
        &[const {
            cell(concat!(
                "{ .reg .pred p, q; setp.ne.u32 p, $1, 0; bar.red.",
                $mode,
                ".pred q, 0, p; selp.u32 $0, 1, 0, q; }"
            ))
        }]
    };
}

operations! {
    /// Barriers at which the threads of a block vote, as methods of the builder. They come with the prelude.
    builder BarrierVote;

    /// Waits as [`barrier()`](crate::plain::memory::barrier()) does, and tells for how many threads of the block
    /// `predicate` is true (CUDA `__syncthreads_count`).
    fn barrier_count(predicate: bool) -> u32 { u32::from(predicate) }
        = row("barrier.count", body!("barrier.count", count))
        .with_uniformity(Uniformity::Block)
        .with_effects(Effects::Synchronizes)
        .with_cells(&[const { cell("{ .reg .pred p; setp.ne.u32 p, $1, 0; bar.red.popc.u32 $0, 0, p; }") }]);

    /// Waits as [`barrier()`](crate::plain::memory::barrier()) does, and tells whether `predicate` is true for all threads
    /// of the block that have not ended (CUDA `__syncthreads_and`).
    fn barrier_and(predicate: bool) -> bool { predicate }
        = row("barrier.and", body!("barrier.and", and))
        .with_uniformity(Uniformity::Block)
        .with_effects(Effects::Synchronizes)
        .with_cells(answer!("and"));

    /// Waits as [`barrier()`](crate::plain::memory::barrier()) does, and tells whether `predicate` is true for a thread of
    /// the block (CUDA `__syncthreads_or`).
    fn barrier_or(predicate: bool) -> bool { predicate }
        = row("barrier.or", body!("barrier.or", or))
        .with_uniformity(Uniformity::Block)
        .with_effects(Effects::Synchronizes)
        .with_cells(answer!("or"));
}
