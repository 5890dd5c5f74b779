//! Running folds along lines whose elements lie apart: down the columns of a matrix, or along many short rows; on a
//! CPU, where blocks gain nothing by tiles, along a whole vector, too.
//!
//! A thread goes along a line, beside threads whose elements are neighbours of its own: nothing is transposed, and no
//! block waits for a row of a few elements. Where there are too few lines for all threads of a device, they are cut
//! into chunks: what each chunk comes to is scanned in the same way, and each thread goes along its chunk once more
//! from what is before it.

use std::ops::RangeInclusive;

use kiln_device_stdlib::index::Index;
use kiln_jit_core::args::{Arg, IntoArg};
use kiln_jit_core::build::{Kernel, KernelBuilder, Val};
use kiln_jit_core::error::Error;
use kiln_jit_core::ir::{Type, Unroll};

use super::Pass;
use crate::function::Applied;
use crate::fused::is_gpu;
use crate::signature::{Signature, Word};
use crate::{Array, Arrays, Element, Result};

/// The longest rows that a thread goes along by itself although its elements are not beside those of other threads.
const SHORT: usize = 32;

/// Which vectors are cut into chunks: of fewer elements a block makes one launch of what takes several here, and indices
/// beyond the last chunk have 32 bits.
const CUT: RangeInclusive<usize> = 1 << 14..=1 << 31;

/// The fewest lines beside each other that fill the lines of a cache.
const BESIDE: usize = 32;

/// The fewest elements of a chunk, which also fill a line of a cache.
const CHUNK: usize = 16;

/// How many threads a GPU and a CPU are given to do, if there are as many chunks.
const GPU_THREADS: usize = 1 << 17;
const CPU_THREADS: usize = 1 << 10;

/// Threads of a block.
const BLOCK: u32 = 128;

/// How many elements of a line are under way at once.
const UNROLL: u32 = 8;

/// What is folded by.
#[derive(Copy, Clone)]
pub(super) enum Op<'l> {
    Sum,
    Product,
    By(&'l Applied),
}

impl Op<'_> {
    /// The signature of a kernel of this name.
    fn signature<T: Element>(self, [sum, product, by]: [&'static str; 3]) -> Signature {
        let named = |name| Word::Named(name, T::FORM.digest());
        match self {
            Op::Sum => Signature::of(named(sum)),
            Op::Product => Signature::of(named(product)),
            Op::By(op) => {
                let mut signature = Signature::reduction::<T>(op);
                signature.add(named(by));
                signature
            }
        }
    }

    /// The numbers that the operator captures.
    fn captures<'k>(self, k: &'k KernelBuilder) -> Vec<Val<'k>> {
        match self {
            Op::Sum | Op::Product => Vec::new(),
            Op::By(op) => op.declare(k),
        }
    }

    fn apply<'k>(self, captures: &[Val<'k>], [a, b]: [Val<'k>; 2]) -> Val<'k> {
        match self {
            Op::Sum => a + b,
            Op::Product => a * b,
            Op::By(op) => (op.describe)(&[&[a, b], captures].concat()),
        }
    }
}

/// Elements in three dimensions, of which lines go along the second.
#[derive(Copy, Clone)]
pub(super) struct Lines {
    pub(super) outer: usize,
    pub(super) along: usize,
    pub(super) inner: usize,
}

impl Lines {
    /// The lines along a dimension.
    pub(super) fn of(dims: &[usize], axis: usize) -> Lines {
        Lines {
            outer: dims[..axis].iter().product(),
            along: dims[axis],
            inner: dims[axis + 1..].iter().product(),
        }
    }

    fn count(self) -> usize {
        self.outer * self.inner
    }

    /// Whether a thread a line is the way to fold them. A GPU goes through rows, short ones, too, in the order of their
    /// elements (`scan/rows.rs`), as memory has these in lines of a cache.
    pub(super) fn have_threads(self, arrays: &Arrays, op: Op<'_>) -> bool {
        let has_tiles = self.inner == 1 && is_gpu(arrays.jit()) && !matches!(op, Op::By(_));
        let are_short = self.along <= SHORT && !has_tiles;
        match self.count() {
            0 => false,
            1 => CUT.contains(&self.along) && !is_gpu(arrays.jit()),
            _ => are_short || self.inner >= BESIDE,
        }
    }

    /// The chunks of each line.
    fn chunks(self, arrays: &Arrays) -> Chunks {
        let threads = if is_gpu(arrays.jit()) {
            GPU_THREADS
        } else {
            CPU_THREADS
        };
        let most = (self.along / CHUNK).max(1);
        let wanted = (threads / self.count()).clamp(1, most);
        let mut len = self.along.div_ceil(wanted);
        if self.count() == 1 && len > CHUNK {
            // An odd number of lines of a cache: chunks a power of two apart would all be in one place of it.
            len = (len.div_ceil(CHUNK) | 1) * CHUNK;
        }
        Chunks {
            count: self.along.div_ceil(len),
            len,
        }
    }
}

/// How a line is cut: into so many chunks of so many elements, of which the last may have fewer.
#[derive(Copy, Clone)]
struct Chunks {
    count: usize,
    len: usize,
}

/// The kernel that folds chunks, or one that goes along them from what is before each.
fn build<T: Element>(op: Op<'_>, pass: Pass) -> Result<Kernel, Error> {
    let name = match pass {
        Pass::Fold => "fold_lines",
        Pass::Inclusive => "scan_lines",
        Pass::Exclusive => "scan_lines_before",
    };
    Kernel::build(name, |k| {
        let ty = k.ty::<T>();
        let (x, out) = (k.slice("x", ty), k.slice_mut("out", ty));
        let numbers = ["threads", "along", "inner", "chunks", "chunk"];
        let [threads, along, inner, chunks, chunk] = numbers.map(|name| k.param(name, Type::U32));
        let before = (pass != Pass::Fold).then(|| k.slice("before", ty));
        let identity = (pass == Pass::Exclusive).then(|| k.param("identity", ty));
        let captures = op.captures(k);
        let thread = k.global_id().x();
        k.if_(thread.lt(threads), || {
            let (place, line) = (thread % inner, thread / inner);
            let (number, outer) = (line % chunks, line / chunks);
            let first = number * chunk;
            let end = (first + chunk).min(along);
            let start = outer * along * inner + place;
            let head = start + first * inner;
            let fold = k.var("fold", x.at(head).get());
            if let Some(identity) = identity {
                let is_first = number.eq(0);
                k.if_(is_first, || out.at(head).set(identity));
            }
            if let Some(before) = &before {
                k.if_(number.gt(0), || {
                    let before = before.at(thread - inner).get();
                    fold.set(op.apply(&captures, [before, fold.get()]));
                    if pass == Pass::Exclusive {
                        out.at(head).set(before);
                    }
                });
            }
            if pass == Pass::Inclusive {
                out.at(head).set(fold.get());
            }
            let step = k.lit(Type::U32, 1);
            k.for_loop(first + 1u32, end, step, Unroll::By(UNROLL), |i| {
                let own = x.at(start + i * inner).get();
                if pass == Pass::Exclusive {
                    out.at(start + i * inner).set(fold.get());
                }
                fold.set(op.apply(&captures, [fold.get(), own]));
                if pass == Pass::Inclusive {
                    out.at(start + i * inner).set(fold.get());
                }
            });
            if pass == Pass::Fold {
                out.at(thread).set(fold.get());
            }
        });
    })
}

/// The kernel for an operator, found by it.
fn kernel<T: Element>(arrays: &Arrays, op: Op<'_>, pass: Pass) -> Result<Kernel> {
    let names = match pass {
        Pass::Fold => ["sums of lines", "products of lines", "fold of lines"],
        Pass::Inclusive => [
            "running sums of lines",
            "running products of lines",
            "running fold of lines",
        ],
        Pass::Exclusive => [
            "running sums before lines",
            "running products before lines",
            "running fold before lines",
        ],
    };
    let signature = op.signature::<T>(names);
    Ok(arrays.kernel(signature, || build::<T>(op, pass))?)
}

/// Launches a kernel for so many chunks of each line, to which more is passed than for all of them.
fn launch<'a, T: Element>(
    x: &'a Array<T>,
    (lines, chunks): (Lines, Chunks),
    (op, pass): (Op<'a>, Pass),
    to: Arg<'a>,
    more: impl IntoIterator<Item = Arg<'a>>,
) -> Result<()> {
    let kernel = kernel::<T>(&x.arrays, op, pass)?;
    let threads = lines.count() * chunks.count;
    let numbers = [threads, lines.along, lines.inner, chunks.count, chunks.len];
    let mut args = vec![x.as_part()?.into_arg(), to];
    args.extend(numbers.map(|number| (number as u32).into_arg()));
    args.extend(more);
    if let Op::By(op) = op {
        args.extend(op.captures.iter().map(|number| number.arg()));
    }
    let blocks = threads.div_ceil(BLOCK as usize) as u32;
    x.arrays.jit().launch(&kernel, blocks, BLOCK, &args)?;
    x.arrays.count_launch();
    Ok(())
}

/// What the chunks of each line come to: lines of as many elements.
fn fold_chunks<T: Element>(
    x: &Array<T>,
    (lines, chunks): (Lines, Chunks),
    op: Op<'_>,
) -> Result<Array<T>> {
    let dims = (lines.outer, chunks.count, lines.inner);
    let mut folds = x.arrays.unspecified::<T>(dims)?;
    let to = folds.owned()?.into_arg();
    launch(x, (lines, chunks), (op, Pass::Fold), to, None)?;
    Ok(folds)
}

/// What lines of an array come to, whose elements lie one after the other in their order; lines have elements.
///
/// # Errors
/// An operator that cannot be described; no memory; a device that has failed.
pub(super) fn fold<T: Element>(x: &Array<T>, mut lines: Lines, op: Op<'_>) -> Result<Array<T>> {
    let mut folds = x.clone();
    while lines.along > 1 {
        let chunks = lines.chunks(&x.arrays);
        folds = fold_chunks(&folds, (lines, chunks), op)?;
        lines.along = chunks.count;
    }
    Ok(folds)
}

/// The running folds of lines of an array whose elements lie one after the other in their order; with a neutral element
/// those of the elements before each.
///
/// # Errors
/// An operator that cannot be described; no memory; a device that has failed.
pub(super) fn scan<T: Element>(
    x: &Array<T>,
    lines: Lines,
    op: Op<'_>,
    identity: Option<T>,
) -> Result<Array<T>> {
    let chunks = lines.chunks(&x.arrays);
    let mut out = x.arrays.unspecified(x.dims().to_vec())?;
    let before = match chunks.count {
        1 => x.arrays.unspecified((lines.outer, 1, lines.inner))?,
        _ => {
            let folds = fold_chunks(x, (lines, chunks), op)?;
            let along = chunks.count;
            scan(&folds, Lines { along, ..lines }, op, None)?
        }
    };
    let more = [before.as_part()?.into_arg()].into_iter();
    let more = more.chain(identity.map(IntoArg::into_arg));
    let pass = Pass::of(identity.is_some());
    launch(
        x,
        (lines, chunks),
        (op, pass),
        out.owned()?.into_arg(),
        more,
    )?;
    Ok(out)
}
