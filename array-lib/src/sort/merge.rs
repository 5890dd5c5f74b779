//! Elements in order by a comparison of the user's: each block sorts a tile in shared memory, then runs are merged in
//! pairs, of which each block writes a tile (O. Green, R. McColl, D. A. Bader: "GPU Merge Path: A GPU Merging
//! Algorithm", ICS 2012).
//!
//! Whatever the comparison says, what is written is an element that was there.

use kiln_device_stdlib::index::Index;
use kiln_jit_core::args::{Arg, IntoArg};
use kiln_jit_core::build::{Kernel, KernelBuilder, Val};
use kiln_jit_core::error::Error;
use kiln_jit_core::ir::{Type, Unroll};
use kiln_jit_core::runtime::{Buffer, Part};

use crate::function::Applied;
use crate::signature::{Signature, Word};
use crate::{Array, Element, Result};

/// Elements that a thread puts in order, and then merges.
const ITEMS: u32 = 4;

/// The most elements of a tile.
const MOST: u32 = 1024;

/// The most bytes of shared memory of a block: two tiles, in turn from one to the other.
const BYTES: usize = 32 << 10;

/// The most elements of an array: twice a run has to be a number of 32 bits.
pub(super) const MOST_SORTED: usize = 1 << 31;

/// How many elements blocks have of this size; a power of two.
fn tile(bytes: usize) -> u32 {
    let fit = BYTES / (2 * bytes.max(1));
    let fit = (fit.max(ITEMS as usize) as u32).min(MOST);
    1 << fit.ilog2()
}

/// Whether the first of two elements is before the second.
type Less<'l, 'k> = &'l dyn Fn(Val<'k>, Val<'k>) -> Val<'k>;

/// Two parts of a slice, each in order: where each begins, and how many elements it has.
#[derive(Copy, Clone)]
struct Pair<'k> {
    from: Val<'k>,
    first: (Val<'k>, Val<'k>),
    second: (Val<'k>, Val<'k>),
}

/// A kernel that is being described.
struct Sorter<'l, 'k> {
    k: &'k KernelBuilder,
    less: Less<'l, 'k>,
    tile: u32,
}

impl<'k> Sorter<'_, 'k> {
    fn number(&self, number: u32) -> Val<'k> {
        self.k.lit(Type::U32, number)
    }

    /// Shared memory for two tiles.
    fn memory(&self, ty: Type) -> Val<'k> {
        self.k.shared_array("tiles", ty, 2 * self.tile)
    }

    /// Which elements of so many are a thread's, from the first number to the second.
    fn mine(&self, count: Val<'k>) -> (Val<'k>, Val<'k>) {
        let start = (self.k.thread_idx().x() * ITEMS).min(count);
        (start, (start + ITEMS).min(count))
    }

    /// How many of the first `diagonal` elements of both parts, put together in order, are the first's.
    fn split(&self, pair: &Pair<'k>, diagonal: Val<'k>) -> Val<'k> {
        let k = self.k;
        let (first, second) = (pair.first, pair.second);
        let low = k.var("low", diagonal - diagonal.min(second.1));
        let high = k.var("high", diagonal.min(first.1));
        k.while_(
            || low.get().lt(high.get()),
            || {
                let middle = (low.get() + high.get()) / 2u32;
                let a = pair.from.at(first.0 + middle).get();
                let b = pair.from.at(second.0 + diagonal - 1u32 - middle).get();
                k.if_((self.less)(b, a), || high.set(middle))
                    .else_(|| low.set(middle + 1u32));
            },
        );
        low.get()
    }

    /// Hands on the elements from `start` to `end` of both parts, put together in order.
    fn merge(
        &self,
        pair: &Pair<'k>,
        (start, end): (Val<'k>, Val<'k>),
        write: impl Fn(Val<'k>, Val<'k>),
    ) {
        let k = self.k;
        k.if_(start.lt(end), || {
            let a = k.var("a", self.split(pair, start));
            let b = k.var("b", start - a.get());
            let one = self.number(1);
            k.for_loop(start, end, one, Unroll::Auto, |at| {
                let is_first = k.var("is_first", a.get().lt(pair.first.1));
                let both = is_first.get() & b.get().lt(pair.second.1);
                k.if_(both, || {
                    let own = pair.from.at(pair.first.0 + a.get()).get();
                    let other = pair.from.at(pair.second.0 + b.get()).get();
                    is_first.set(!(self.less)(other, own));
                });
                let (of_first, of_second) = (pair.first.0 + a.get(), pair.second.0 + b.get());
                let place = is_first.get().select(of_first, of_second);
                write(at, pair.from.at(place).get());
                k.if_(is_first.get(), || a.set(a.get() + 1u32))
                    .else_(|| b.set(b.get() + 1u32));
            });
        });
    }

    /// Has each thread put its elements of a tile in order.
    fn sort_own(&self, tiles: Val<'k>, (start, end): (Val<'k>, Val<'k>)) {
        let (k, one) = (self.k, self.number(1));
        k.for_loop(start + 1u32, end, one, Unroll::Auto, |i| {
            let item = tiles.at(i).get();
            let at = k.var("at", i);
            k.loop_(|| {
                k.if_(at.get().le(start), || k.break_());
                let before = tiles.at(at.get() - 1u32).get();
                k.if_(!(self.less)(item, before), || k.break_());
                tiles.at(at.get()).set(before);
                at.set(at.get() - 1u32);
            });
            tiles.at(at.get()).set(item);
        });
    }

    /// Sorts a tile of so many elements, which is at the start of shared memory, and gives where it is after that.
    fn sort_tile(&self, tiles: Val<'k>, count: Val<'k>) -> Val<'k> {
        let k = self.k;
        let (start, end) = self.mine(count);
        self.sort_own(tiles, (start, end));
        k.barrier();
        let (from, run) = (k.var("from", self.number(0)), k.var("run", ITEMS));
        k.while_(
            || run.get().lt(count),
            || {
                let width = run.get();
                let to = self.number(self.tile) - from.get();
                let first = start / (width * 2u32) * (width * 2u32);
                let middle = (first + width).min(count);
                let last = (first + width * 2u32).min(count);
                let pair = Pair {
                    from: tiles,
                    first: (from.get() + first, middle - first),
                    second: (from.get() + middle, last - middle),
                };
                // A thread's elements are of one pair of runs, as these are multiples of them.
                self.merge(&pair, (start - first, end - first), |at, value| {
                    tiles.at(to + first + at).set(value);
                });
                k.barrier();
                from.set(to);
                run.set(width * 2u32);
            },
        );
        from.get()
    }
}

/// Where a block's tile is: the row's first element, the tile's first in it, and how many it has.
struct Tile<'k> {
    row: Val<'k>,
    first: Val<'k>,
    count: Val<'k>,
}

/// The parameters that both kernels begin with.
struct Rows<'k> {
    x: Val<'k>,
    out: Val<'k>,
    tile: Tile<'k>,
    len: Val<'k>,
}

impl<'k> Rows<'k> {
    fn declare(k: &'k KernelBuilder, ty: Type, tile: u32) -> Rows<'k> {
        let (x, out) = (k.slice("x", ty), k.slice_mut("out", ty));
        let (len, tiles) = (k.param("row", Type::U32), k.param("tiles", Type::U32));
        let block = k.block_idx().x();
        let first = block % tiles * tile;
        Rows {
            x,
            out,
            tile: Tile {
                row: block / tiles * len,
                first,
                count: (len - first).min(tile),
            },
            len,
        }
    }
}

/// The kernel that sorts tiles.
fn sort_tiles<T: Element>(less: &Applied) -> Result<Kernel, Error> {
    Kernel::build("sort_tiles", |k| {
        let (ty, tile) = (k.ty::<T>(), tile(size_of::<T>()));
        let rows = Rows::declare(k, ty, tile);
        let captures = less.declare(k);
        let less = |a, b| (less.describe)(&[&[a, b], captures.as_slice()].concat());
        let sorter = Sorter {
            k,
            less: &less,
            tile,
        };
        let tiles = sorter.memory(ty);
        let at = rows.tile.row + rows.tile.first;
        let (thread, threads) = (k.thread_idx().x(), k.block_dim().x());
        let count = rows.tile.count;
        k.for_loop(thread, count, threads, Unroll::Auto, |i| {
            tiles.at(i).set(rows.x.at(at + i).get());
        });
        k.barrier();
        let from = sorter.sort_tile(tiles, count);
        k.for_loop(thread, count, threads, Unroll::Auto, |i| {
            rows.out.at(at + i).set(tiles.at(from + i).get());
        });
    })
}

/// The kernel that merges pairs of runs, of as many tiles as are said.
fn merge_runs<T: Element>(less: &Applied) -> Result<Kernel, Error> {
    Kernel::build("merge_runs", |k| {
        let (ty, tile) = (k.ty::<T>(), tile(size_of::<T>()));
        let rows = Rows::declare(k, ty, tile);
        let run = k.param("run", Type::U32);
        let captures = less.declare(k);
        let less = |a, b| (less.describe)(&[&[a, b], captures.as_slice()].concat());
        let sorter = Sorter {
            k,
            less: &less,
            tile,
        };
        let tiles = sorter.memory(ty);
        let Tile { row, first, count } = rows.tile;
        let begin = first / (run * 2u32) * (run * 2u32);
        let (a_len, rest) = ((rows.len - begin).min(run), rows.len - begin);
        let pair = Pair {
            from: rows.x,
            first: (row + begin, a_len),
            second: (row + begin + a_len, (rest - a_len).min(run)),
        };
        // What the tile has of each run, brought together.
        let start = first - begin;
        let (a, a_end) = (
            sorter.split(&pair, start),
            sorter.split(&pair, start + count),
        );
        let (b, of_first) = (start - a, (a_end.max(a) - a).min(count));
        let last = row + rows.len - 1u32;
        let (thread, threads) = (k.thread_idx().x(), k.block_dim().x());
        k.for_loop(thread, count, threads, Unroll::Auto, |i| {
            let (of_a, of_b) = (pair.first.0 + a + i, pair.second.0 + b + (i - of_first));
            // A comparison that contradicts itself may lead beyond the runs.
            let place = i.lt(of_first).select(of_a, of_b).min(last);
            tiles.at(i).set(rows.x.at(place).get());
        });
        k.barrier();
        let own = Pair {
            from: tiles,
            first: (sorter.number(0), of_first),
            second: (of_first, count - of_first),
        };
        sorter.merge(&own, sorter.mine(count), |at, value| {
            tiles.at(at + tile).set(value);
        });
        k.barrier();
        k.for_loop(thread, count, threads, Unroll::Auto, |i| {
            rows.out.at(row + first + i).set(tiles.at(i + tile).get());
        });
    })
}

/// Which of the two kernels.
const SORT: &str = "sort of tiles";
const MERGE: &str = "merge of runs";

/// A kernel for elements of this type in the order of `less`.
fn kernel<T: Element>(
    x: &Array<T>,
    (name, less): (&'static str, &Applied),
    build: impl FnOnce(&Applied) -> Result<Kernel, Error>,
) -> Result<Kernel> {
    let mut signature = Signature::reduction::<T>(less);
    signature.add(Word::Named(name, T::FORM.digest()));
    Ok(x.arrays.kernel(signature, || build(less))?)
}

/// How the kernels of a sort are launched.
struct Launches<'l, T: Element> {
    x: &'l Array<T>,
    less: &'l Applied,
    /// Elements of a row, and tiles.
    row: [u32; 2],
    blocks: u32,
    threads: u32,
}

impl<T: Element> Launches<'_, T> {
    fn launch(
        &self,
        kernel: &Kernel,
        (from, to): (&Part<T>, &mut Buffer<T>),
        run: Option<u32>,
    ) -> Result<()> {
        let mut args: Vec<Arg<'_>> = vec![from.into_arg(), to.into_arg()];
        args.extend(self.row.into_iter().chain(run).map(IntoArg::into_arg));
        args.extend(self.less.captures.iter().map(|number| number.arg()));
        let jit = self.x.arrays.jit();
        jit.launch(kernel, self.blocks, self.threads, &args)?;
        self.x.arrays.count_launch();
        Ok(())
    }
}

/// Rows of so many elements, one behind the other, each in the order of `less`; alike ones stay in theirs.
///
/// # Errors
/// A comparison that cannot be described; no memory; a device that has failed.
pub(super) fn sort<T: Element>(x: &Array<T>, row: usize, less: &Applied) -> Result<Buffer<T>> {
    let jit = x.arrays.jit();
    let tile = tile(size_of::<T>());
    let mut sorted = jit.unspecified::<T>(x.len())?;
    if x.is_empty() {
        return Ok(sorted);
    }
    let tiles = row.div_ceil(tile as usize);
    let launches = Launches {
        x,
        less,
        row: [row as u32, tiles as u32],
        blocks: (x.len() / row * tiles) as u32,
        threads: tile.div_ceil(ITEMS),
    };
    let sort = kernel(x, (SORT, less), sort_tiles::<T>)?;
    launches.launch(&sort, (x.as_part()?, &mut sorted), None)?;
    let mut run = tile;
    if run as usize >= row {
        return Ok(sorted);
    }
    let merge = kernel(x, (MERGE, less), merge_runs::<T>)?;
    let mut other = jit.unspecified::<T>(x.len())?;
    while (run as usize) < row {
        launches.launch(&merge, (&sorted, &mut other), Some(run))?;
        std::mem::swap(&mut sorted, &mut other);
        run *= 2;
    }
    Ok(sorted)
}
