//! Folds in order by any operator along rows, and running ones: each block folds a tile, what these have left is scanned
//! in the same way, and each block then goes through its tile once more, from what is before it.

use kiln_device_stdlib::index::Index;
use kiln_jit_core::args::{Arg, IntoArg};
use kiln_jit_core::build::{Kernel, KernelBuilder, Val};
use kiln_jit_core::error::Error;
use kiln_jit_core::ir::{Type, Unroll};

use super::Pass;
use crate::function::Applied;
use crate::signature::{Signature, Word};
use crate::{Array, Element, Result};

/// The most elements of a thread, and the most threads of a block; a power of two.
const MOST_ITEMS: u32 = 15;
const MOST_THREADS: u32 = 256;

/// The most bytes of shared memory of a block.
const BYTES: usize = 40 << 10;

/// How a tile is shared out: threads of a block, and elements of each.
#[derive(Copy, Clone)]
struct Shares {
    threads: u32,
    items: u32,
}

impl Shares {
    /// Of elements of a size in bytes.
    fn of(bytes: usize) -> Shares {
        // Of each thread its elements, and twice what they come to.
        let fit = (BYTES / bytes.max(1)).max(3) as u32;
        let threads = (1 << (fit / 3).ilog2()).min(MOST_THREADS);
        let items = (fit / threads - 2).clamp(1, MOST_ITEMS);
        // Of tiles of one element there would be no fewer than elements, ever. Where a block has no memory for two, the
        // launch says that.
        let items = items.max(2 / threads);
        Shares { threads, items }
    }

    fn tile(self) -> u32 {
        self.threads * self.items
    }
}

/// A kernel that is being described.
struct Scanner<'l, 'k> {
    k: &'k KernelBuilder,
    op: &'l dyn Fn(Val<'k>, Val<'k>) -> Val<'k>,
    shares: Shares,
    /// The elements of the tile, which has so many, and what each thread has of it.
    tile: Val<'k>,
    count: Val<'k>,
    sums: Val<'k>,
}

impl<'k> Scanner<'_, 'k> {
    fn number(&self, number: u32) -> Val<'k> {
        self.k.lit(Type::U32, number)
    }

    /// Which elements of the tile are the thread's, from the first number to the second.
    fn mine(&self) -> (Val<'k>, Val<'k>) {
        let start = (self.k.thread_idx().x() * self.shares.items).min(self.count);
        (start, (start + self.shares.items).min(self.count))
    }

    /// Replaces each element by the fold of the thread's up to it, and has the threads' folds, of those that have
    /// elements, be scanned by the block.
    fn scan(&self) {
        let k = self.k;
        let thread = k.thread_idx().x();
        let (start, end) = self.mine();
        let one = self.number(1);
        k.for_loop(start + 1u32, end, one, Unroll::Auto, |i| {
            let before = self.tile.at(i - 1u32).get();
            self.tile
                .at(i)
                .set((self.op)(before, self.tile.at(i).get()));
        });
        k.if_(start.lt(end), || {
            self.sums.at(thread).set(self.tile.at(end - 1u32).get());
        });
        // In turn from one half of the memory to the other (W. D. Hillis, G. L. Steele: "Data Parallel Algorithms",
        // CACM 1986).
        let mut apart = 1;
        let (mut from, mut to) = (0, self.shares.threads);
        while apart < self.shares.threads {
            k.barrier();
            k.if_(start.lt(end), || {
                let own = self.sums.at(thread + from).get();
                k.if_(thread.ge(apart), || {
                    let before = self.sums.at(thread + from - apart).get();
                    self.sums.at(thread + to).set((self.op)(before, own));
                })
                .else_(|| self.sums.at(thread + to).set(own));
            });
            apart *= 2;
            (from, to) = (to, from);
        }
        k.barrier();
    }

    /// What the threads up to one have, behind the scan.
    fn up_to(&self, thread: Val<'k>) -> Val<'k> {
        let steps = self.shares.threads.ilog2();
        self.sums.at(thread + steps % 2 * self.shares.threads).get()
    }

    /// Puts what is before the thread, which is what is before the tile and what the threads before have, before each
    /// of its elements.
    fn begin_with(&self, has_before: Val<'k>, before: impl Fn() -> Val<'k>) {
        let (k, thread) = (self.k, self.k.thread_idx().x());
        let (start, end) = self.mine();
        let has_threads = thread.gt(0);
        k.if_(start.lt(end) & (has_threads | has_before), || {
            let first = k.uninit_var("first", self.tile.at(0).ty());
            k.if_(has_threads, || first.set(self.up_to(thread - 1u32)));
            k.if_(has_before, || {
                k.if_(has_threads, || first.set((self.op)(before(), first.get())))
                    .else_(|| first.set(before()));
            });
            let one = self.number(1);
            k.for_loop(start, end, one, Unroll::Auto, |i| {
                let own = self.tile.at(i).get();
                self.tile.at(i).set((self.op)(first.get(), own));
            });
        });
    }
}

/// The kernel that folds tiles, or one that goes through them from what is before, which is passed then.
fn build<T: Element>(op: &Applied, pass: Pass) -> Result<Kernel, Error> {
    let name = match pass {
        Pass::Fold => "fold_tiles",
        Pass::Inclusive => "scan_tiles",
        Pass::Exclusive => "scan_tiles_before",
    };
    Kernel::build(name, |k| {
        let (ty, shares) = (k.ty::<T>(), Shares::of(size_of::<T>()));
        let (x, out) = (k.slice("x", ty), k.slice_mut("out", ty));
        let (row, tiles) = (k.param("row", Type::U32), k.param("tiles", Type::U32));
        let before = (pass != Pass::Fold).then(|| k.slice("before", ty));
        let identity = (pass == Pass::Exclusive).then(|| k.param("identity", ty));
        let captures = op.declare(k);
        let op = |a, b| (op.describe)(&[&[a, b], captures.as_slice()].concat());
        let (block, thread) = (k.block_idx().x(), k.thread_idx().x());
        let first = block % tiles * shares.tile();
        let at = block / tiles * row + first;
        let scanner = Scanner {
            k,
            op: &op,
            shares,
            tile: k.shared_array("tile", ty, shares.tile()),
            count: (row - first).min(shares.tile()),
            sums: k.shared_array("sums", ty, 2 * shares.threads),
        };
        let step = scanner.number(shares.threads);
        k.for_loop(thread, scanner.count, step, Unroll::Auto, |i| {
            scanner.tile.at(i).set(x.at(at + i).get());
        });
        k.barrier();
        scanner.scan();
        let Some(before) = before else {
            let last = (scanner.count - 1u32) / shares.items;
            k.if_(thread.eq(0), || {
                out.at(block).set(scanner.up_to(last));
            });
            return;
        };
        scanner.begin_with(first.gt(0), || before.at(block - 1u32).get());
        k.barrier();
        let Some(identity) = identity else {
            k.for_loop(thread, scanner.count, step, Unroll::Auto, |i| {
                out.at(at + i).set(scanner.tile.at(i).get());
            });
            return;
        };
        // Each is that of the next element; the last one of a row is nobody's.
        k.if_(thread.eq(0) & first.eq(0), || out.at(at).set(identity));
        let end = scanner.count.min(row - first - 1u32);
        k.for_loop(thread, end, step, Unroll::Auto, |i| {
            out.at(at + i + 1u32).set(scanner.tile.at(i).get());
        });
    })
}

/// The kernel for an operator, found by it.
fn kernel<T: Element>(x: &Array<T>, op: &Applied, pass: Pass) -> Result<Kernel> {
    let name = match pass {
        Pass::Fold => "fold of tiles",
        Pass::Inclusive => "running fold of tiles",
        Pass::Exclusive => "running fold before tiles",
    };
    let mut signature = Signature::reduction::<T>(op);
    signature.add(Word::Named(name, T::FORM.digest()));
    Ok(x.arrays.kernel(signature, || build::<T>(op, pass))?)
}

/// How many tiles a row has.
fn tiles<T: Element>(row: usize) -> usize {
    row.div_ceil(Shares::of(size_of::<T>()).tile() as usize)
}

/// Launches a kernel for the tiles of the rows of a matrix, to which more is passed than for all of them.
fn launch<'a, T: Element>(
    x: &'a Array<T>,
    (op, pass): (&'a Applied, Pass),
    to: Arg<'a>,
    more: impl IntoIterator<Item = Arg<'a>>,
) -> Result<()> {
    let (count, row) = (x.dims()[0], x.dims()[1]);
    let (tiles, threads) = (tiles::<T>(row), Shares::of(size_of::<T>()).threads);
    let kernel = kernel(x, op, pass)?;
    let mut args = vec![x.as_part()?.into_arg(), to];
    args.extend([row as u32, tiles as u32].map(IntoArg::into_arg));
    args.extend(more);
    args.extend(op.captures.iter().map(|number| number.arg()));
    let blocks = (count * tiles) as u32;
    x.arrays.jit().launch(&kernel, blocks, threads, &args)?;
    x.arrays.count_launch();
    Ok(())
}

/// What the tiles of the rows of a matrix come to.
fn fold_tiles<T: Element>(x: &Array<T>, op: &Applied) -> Result<Array<T>> {
    let dims = (x.dims()[0], tiles::<T>(x.dims()[1]));
    let mut folds = x.arrays.unspecified(dims)?;
    launch(x, (op, Pass::Fold), folds.owned()?.into_arg(), None)?;
    Ok(folds)
}

/// What the rows of a matrix come to, whose elements lie one after the other, in a column; rows have elements.
///
/// # Errors
/// An operator that cannot be described; no memory; a device that has failed.
pub(super) fn fold<T: Element>(x: &Array<T>, op: &Applied) -> Result<Array<T>> {
    let mut folds = x.clone();
    while folds.dims()[1] > 1 {
        folds = fold_tiles(&folds, op)?;
    }
    Ok(folds)
}

/// The running folds of the rows of a matrix, whose elements lie one after the other; with a neutral element those of the
/// elements before each.
///
/// # Errors
/// An operator that cannot be described; no memory; a device that has failed.
pub(super) fn rows<T: Element>(
    x: &Array<T>,
    op: &Applied,
    identity: Option<T>,
) -> Result<Array<T>> {
    let (count, row) = (x.dims()[0], x.dims()[1]);
    let mut out = x.arrays.unspecified((count, row))?;
    if out.is_empty() {
        return Ok(out);
    }
    // Of one tile a row there is nothing before.
    let before = match tiles::<T>(row) {
        1 => x.arrays.unspecified::<T>((count, 1))?,
        _ => rows(&fold_tiles(x, op)?, op, None)?,
    };
    let more = [before.as_part()?.into_arg()].into_iter();
    let more = more.chain(identity.map(IntoArg::into_arg));
    let pass = Pass::of(identity.is_some());
    launch(x, (op, pass), out.owned()?.into_arg(), more)?;
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiles_are_fewer_than_elements() {
        for bytes in (0..1 << 16).chain([1 << 20, 1 << 31]) {
            let shares = Shares::of(bytes);
            assert!(shares.tile() > 1, "{bytes}");
            assert!(shares.threads.is_power_of_two(), "{bytes}");
            let memory = bytes * (shares.tile() + 2 * shares.threads) as usize;
            assert!(memory <= BYTES || bytes > BYTES / 4, "{bytes}");
        }
    }
}
