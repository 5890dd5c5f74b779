//! Groups for kernels from the builder: the functions of this chapter as methods.
//!
//! ```
//! use kiln::prelude::*;
//!
//! # fn main() -> kiln::Result<()> {
//! /// Sums of so many numbers next to each other, and of all numbers of the block.
//! fn sums(width: u32) -> kiln::Result<Kernel> {
//!     Kernel::build("sums", |k| {
//!         let (x, out) = (k.slice("x", Type::U32), k.slice_mut("out", Type::U32));
//!         let i = k.global_id().x();
//!         let tile = k.tile(width);
//!         let sum = tile.reduce(x.at(i), |a, b| a + b);
//!         let all = k.this_block().reduce(x.at(i), |a, b| a + b);
//!         k.if_(tile.is_first(), || out.at(i / width).set(sum + 1000 * all));
//!     })
//! }
//! let jit = Jit::new()?;
//! let x = jit.upload(&[1u32, 2, 3, 4, 5, 6, 7, 8])?;
//! let mut out = jit.zeros::<u32>(2)?;
//! jit.launch(&sums(4)?, 1, 8, args!(&x, &mut out))?;
//! assert_eq!(out.to_vec()?, [36_010, 36_026]);
//! # Ok(())
//! # }
//! ```
//!
//! All of a group of lanes, of a block, and of the grid of a cooperative launch:
//!
//! ```
//! use kiln::prelude::*;
//!
//! # fn main() -> kiln::Result<()> {
//! let all = Kernel::build("all", |k| {
//!     let (out, memory) = (k.slice_mut("out", Type::U32), k.slice_mut("memory", Type::U32));
//!     let i = k.global_id().x();
//!     let even = (i % 2).eq(0);
//!     let tile = k.this_warp().labeled(k.lit(Type::U32, 0));
//!     let members = tile.mask() + tile.size() + tile.lane(0);
//!     let values = tile.shuffle(i, 1) + tile.broadcast(i) + tile.ballot(even);
//!     let last = tile.any(even) & tile.rank().eq(3);
//!     k.if_(last, || out.at(0).set(members + values * 100));
//!     tile.sync();
//!     out.at(i + 4).set(tile.shuffle_up(i, 1) + tile.shuffle_down(i, 1) * 10);
//!     let before = tile.rank_where(even) + tile.count(even) * 10;
//!     out.at(i + 8).set(tile.shuffle_xor(i, 1) + before * 10);
//!     let (block, shared) = (k.this_block(), k.shared_array("shared", Type::U32, 4));
//!     let other = block.shuffle(i, block.size() - 1 - block.rank(), shared);
//!     let sum = other + block.broadcast(i, 2) + block.count(even) + block.any(even).cast(Type::U32);
//!     out.at(i + 12).set(sum);
//!     block.sync();
//!     let grid = k.this_grid();
//!     let number = grid.size() + grid.num_blocks() + grid.block_rank() + grid.count(even);
//!     let first = grid.any(even) & grid.rank().eq(0);
//!     let sent = grid.broadcast(i, 3, memory);
//!     k.if_(first, || out.at(1).set(number.cast(Type::U32) + sent * 100));
//!     grid.sync();
//! })?;
//! let jit = Jit::on(Device::cpu());
//! let (mut out, mut memory) = (jit.zeros::<u32>(16)?, jit.zeros::<u32>(1)?);
//! let config = LaunchConfig::new(1, 4).cooperative();
//! jit.launch_with(&all, config, args!(&mut out, &mut memory))?;
//! let out = out.to_vec()?;
//! assert_eq!(out[..4], [619, 307, 0, 0]);
//! assert_eq!(out[4..8], [10, 20, 31, 32]);
//! assert_eq!(out[8..12], [201, 210, 213, 222]);
//! assert_eq!(out[12..], [8, 7, 6, 5]);
//! # Ok(())
//! # }
//! ```

use kiln_jit_core::build::{IntoVal, KernelBuilder, Val};
use kiln_jit_core::front::macros::{DescribedMethod, method_name};
use kiln_jit_core::ir::Type;

use super::block::{BlockGroup, this_block};
use super::collectives::{
    block_exclusive_scan, block_inclusive_scan, block_reduce, block_reduce_to_first,
    group_exclusive_scan, group_inclusive_scan, group_reduce,
};
use super::grid::{GridGroup, this_grid};
use super::grid_collectives::{grid_exclusive_scan, grid_inclusive_scan, grid_reduce};
use super::lanes::{LaneGroup, coalesced, labeled, lanes_of, this_warp, tile};
use super::raking::{block_exclusive_scan_in, block_inclusive_scan_in};

/// Groups of threads in kernels from the builder.
pub trait Groups {
    /// The warp of this thread, as [`this_warp()`](super::this_warp()).
    fn this_warp(&self) -> Lanes<'_>;
    /// Lanes next to each other, `size` of them, as [`tile()`](super::tile()).
    fn tile(&self, size: u32) -> Lanes<'_>;
    /// The lanes that are here together, as [`coalesced()`](super::coalesced()).
    fn coalesced(&self) -> Lanes<'_>;
    /// The lanes of a mask, as [`lanes_of()`](super::lanes_of()).
    fn lanes_of<'k>(&'k self, mask: impl IntoVal<'k>) -> Lanes<'k>;
    /// The block of this thread, as [`this_block()`](super::this_block()).
    fn this_block(&self) -> BlockThreads<'_>;
    /// The grid of a cooperative launch, as [`this_grid()`](super::this_grid()).
    fn this_grid(&self) -> GridThreads<'_>;
}

impl Groups for KernelBuilder {
    #[track_caller]
    fn this_warp(&self) -> Lanes<'_> {
        Lanes(self.call_fn::<this_warp>(&[]))
    }

    #[track_caller]
    fn tile(&self, size: u32) -> Lanes<'_> {
        Lanes(self.call_fn::<tile>(&[self.lit(Type::U32, size)]))
    }

    #[track_caller]
    fn coalesced(&self) -> Lanes<'_> {
        Lanes(self.call_fn::<coalesced>(&[]))
    }

    #[track_caller]
    fn lanes_of<'k>(&'k self, mask: impl IntoVal<'k>) -> Lanes<'k> {
        Lanes(self.call_fn::<lanes_of>(&[mask.into_val(self, Some(Type::U32))]))
    }

    #[track_caller]
    fn this_block(&self) -> BlockThreads<'_> {
        BlockThreads(self.call_fn::<this_block>(&[]))
    }

    #[track_caller]
    fn this_grid(&self) -> GridThreads<'_> {
        GridThreads(self.call_fn::<this_grid>(&[]))
    }
}

/// Lanes of one warp that work together, as [`LaneGroup`].
#[derive(Copy, Clone, Debug)]
pub struct Lanes<'k>(Val<'k>);

/// The threads of a block, as [`BlockGroup`].
#[derive(Copy, Clone, Debug)]
pub struct BlockThreads<'k>(Val<'k>);

/// The threads of a grid, as [`GridGroup`].
#[derive(Copy, Clone, Debug)]
pub struct GridThreads<'k>(Val<'k>);

/// The type that a literal has in the place of an argument; other values keep theirs.
macro_rules! literal {
    (rank32) => {
        Some(Type::U32)
    };
    (rank64) => {
        Some(Type::U64)
    };
    ($any:ident) => {
        None
    };
}

/// The methods of a group as those of what the builder has in its place.
macro_rules! methods {
    ($built:ident of $group:ident { $(fn $name:ident($($arg:ident: $as:ident),*);)* }) => {
        impl<'k> $built<'k> {
            /// The group as a value.
            pub fn value(self) -> Val<'k> {
                self.0
            }

            #[track_caller]
            fn method<const NAME: u64>(self, args: &[Val<'k>]) -> Val<'k>
            where
                $group: DescribedMethod<NAME>,
            {
                let mut all = vec![self.0];
                all.extend(args);
                self.0.builder().call_method::<$group, NAME>(&all)
            }

            $(
                #[doc = concat!("What [`", stringify!($group), "::", stringify!($name), "`] gives.")]
                #[track_caller]
                pub fn $name(self $(, $arg: impl IntoVal<'k>)*) -> Val<'k> {
                    let args = [$($arg.into_val(self.0.builder(), literal!($as))),*];
                    self.method::<{ method_name(stringify!($name)) }>(&args)
                }
            )*
        }
    };
}

methods! { Lanes of LaneGroup {
    fn mask();
    fn size();
    fn rank();
    fn is_first();
    fn lane(rank: rank32);
    fn sync();
    fn shuffle(value: any, rank: rank32);
    fn shuffle_up(value: any, delta: rank32);
    fn shuffle_down(value: any, delta: rank32);
    fn shuffle_xor(value: any, bits: rank32);
    fn broadcast(value: any);
    fn any(predicate: any);
    fn all(predicate: any);
    fn count(predicate: any);
    fn ballot(predicate: any);
    fn rank_where(predicate: any);
} }

methods! { BlockThreads of BlockGroup {
    fn size();
    fn rank();
    fn sync();
    fn any(predicate: any);
    fn all(predicate: any);
    fn count(predicate: any);
    fn broadcast(value: any, from_rank: rank32);
    fn shuffle(value: any, rank: rank32, memory: any);
} }

methods! { GridThreads of GridGroup {
    fn size();
    fn rank();
    fn num_blocks();
    fn block_rank();
    fn sync();
    fn any(predicate: any);
    fn all(predicate: any);
    fn count(predicate: any);
    fn broadcast(value: any, from_rank: rank64, memory: any);
} }

/// Functions with an operator as methods of what the builder has for a group. Literals have the type of the value.
macro_rules! collectives {
    ($built:ident: $(fn $name:ident(value $(, $arg:ident)*) = $function:ident;)*) => {
        impl<'k> $built<'k> {$(
            #[doc = concat!("What [`", stringify!($function), "()`](super::", stringify!($function), "()) gives.")]
            #[track_caller]
            pub fn $name(
                self,
                value: impl IntoVal<'k>,
                $($arg: impl IntoVal<'k>,)*
                op: impl Fn(Val<'k>, Val<'k>) -> Val<'k>,
            ) -> Val<'k> {
                let k = self.0.builder();
                let value = value.into_val(k, None);
                let mut args = self.leading();
                args.extend([value, $($arg.into_val(k, Some(value.ty()))),*]);
                k.call_inline::<$function>(&args, &[&|args| op(args[0], args[1])])
            }
        )*}
    };
}

collectives! { Lanes:
    fn reduce(value) = group_reduce;
    fn inclusive_scan(value) = group_inclusive_scan;
    fn exclusive_scan(value, first) = group_exclusive_scan;
}

collectives! { BlockThreads:
    fn reduce(value) = block_reduce;
    fn reduce_to_first(value) = block_reduce_to_first;
    fn inclusive_scan(value) = block_inclusive_scan;
    fn exclusive_scan(value, first) = block_exclusive_scan;
    fn inclusive_scan_in(value, memory) = block_inclusive_scan_in;
    fn exclusive_scan_in(value, first, memory) = block_exclusive_scan_in;
}

collectives! { GridThreads:
    fn reduce(value, memory) = grid_reduce;
    fn inclusive_scan(value, memory) = grid_inclusive_scan;
    fn exclusive_scan(value, first, memory) = grid_exclusive_scan;
}

// What comes before the value among the arguments of these functions.
impl<'k> BlockThreads<'k> {
    fn leading(self) -> Vec<Val<'k>> {
        Vec::new()
    }
}

impl<'k> GridThreads<'k> {
    fn leading(self) -> Vec<Val<'k>> {
        Vec::new()
    }
}

impl<'k> Lanes<'k> {
    fn leading(self) -> Vec<Val<'k>> {
        vec![self.0]
    }

    /// The members for which `label` is the same, as [`labeled()`](super::labeled()).
    #[track_caller]
    pub fn labeled(self, label: impl IntoVal<'k>) -> Lanes<'k> {
        let k = self.0.builder();
        Lanes(k.call_fn::<labeled>(&[self.0, label.into_val(k, None)]))
    }
}
