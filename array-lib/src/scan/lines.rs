//! Running folds along lines whose elements lie apart: down the columns of a matrix, or along many short rows.
//!
//! A thread goes along a line, beside threads whose elements are neighbours of its own: nothing is transposed, and no block
//! waits for a row of a few elements. Where there are too few lines for all threads of a device, they are cut into chunks: what
//! each chunk comes to is scanned in the same way, and each thread goes along its chunk once more from what is before it.

use kiln_device_stdlib::index::Index;
use kiln_jit_core::args::{Arg, IntoArg};
use kiln_jit_core::build::{Kernel, KernelBuilder, Val};
use kiln_jit_core::error::Error;
use kiln_jit_core::ir::{Type, Unroll};

use crate::function::Applied;
use crate::fused::is_gpu;
use crate::signature::{Signature, Word};
use crate::{Array, Arrays, Element, Result};

/// The longest rows that a thread goes along by itself although its elements are not beside those of other threads.
const SHORT: usize = 32;

/// The fewest lines beside each other that fill the lines of a cache.
const BESIDE: usize = 32;

/// The fewest elements of a chunk.
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
        let has_tiles = self.inner == 1 && is_gpu(arrays) && !matches!(op, Op::By(_));
        let are_short = self.along <= SHORT && !has_tiles;
        self.count() > 1 && (are_short || self.inner >= BESIDE)
    }

    /// How many chunks each line has.
    fn chunks(self, arrays: &Arrays) -> usize {
        let threads = if is_gpu(arrays) {
            GPU_THREADS
        } else {
            CPU_THREADS
        };
        let most = (self.along / CHUNK).max(1);
        let wanted = (threads / self.count()).clamp(1, most);
        // As many as chunks of the same length make.
        self.along.div_ceil(self.along.div_ceil(wanted))
    }
}

/// The kernel that folds chunks, or, if it `goes_through`, the one that goes along them from what is before each.
fn build<T: Element>(op: Op<'_>, goes_through: bool) -> Result<Kernel, Error> {
    let name = match goes_through {
        true => "scan_lines",
        false => "fold_lines",
    };
    Kernel::build(name, |k| {
        let ty = k.ty::<T>();
        let (x, out) = (k.slice("x", ty), k.slice_mut("out", ty));
        let numbers = ["threads", "along", "inner", "chunks", "chunk"];
        let [threads, along, inner, chunks, chunk] = numbers.map(|name| k.param(name, Type::U32));
        let before = goes_through.then(|| k.slice("before", ty));
        let captures = op.captures(k);
        let thread = k.global_id().x();
        k.if_(thread.lt(threads), || {
            let (place, line) = (thread % inner, thread / inner);
            let (number, outer) = (line % chunks, line / chunks);
            let first = number * chunk;
            let end = (first + chunk).min(along);
            let start = outer * along * inner + place;
            let fold = k.var("fold", x.at(start + first * inner).get());
            if let Some(before) = &before {
                k.if_(number.gt(0), || {
                    let before = before.at(thread - inner).get();
                    fold.set(op.apply(&captures, [before, fold.get()]));
                });
                out.at(start + first * inner).set(fold.get());
            }
            let step = k.lit(Type::U32, 1);
            k.for_loop(first + 1u32, end, step, Unroll::By(UNROLL), |i| {
                let own = x.at(start + i * inner).get();
                fold.set(op.apply(&captures, [fold.get(), own]));
                if goes_through {
                    out.at(start + i * inner).set(fold.get());
                }
            });
            if !goes_through {
                out.at(thread).set(fold.get());
            }
        });
    })
}

/// The kernel for an operator, found by it.
fn kernel<T: Element>(arrays: &Arrays, op: Op<'_>, goes_through: bool) -> Result<Kernel> {
    let names = match goes_through {
        true => [
            "running sums of lines",
            "running products of lines",
            "running fold of lines",
        ],
        false => ["sums of lines", "products of lines", "fold of lines"],
    };
    let signature = op.signature::<T>(names);
    Ok(arrays.kernel(signature, || build::<T>(op, goes_through))?)
}

/// The running folds of lines of an array whose elements lie one after the other in their order.
///
/// # Errors
/// An operator that cannot be described; no memory; a device that has failed.
pub(super) fn scan<T: Element>(x: &Array<T>, lines: Lines, op: Op<'_>) -> Result<Array<T>> {
    let (arrays, chunks) = (&x.arrays, lines.chunks(&x.arrays));
    let mut out = arrays.unspecified(x.dims().to_vec())?;
    let chunk = lines.along.div_ceil(chunks);
    let threads = lines.count() * chunks;
    let launch = |kernel: &Kernel, to: Arg<'_>, before: Option<Arg<'_>>| {
        let numbers = [threads, lines.along, lines.inner, chunks, chunk];
        let mut args = vec![x.as_part()?.into_arg(), to];
        args.extend(numbers.map(|number| (number as u32).into_arg()));
        args.extend(before);
        if let Op::By(op) = op {
            args.extend(op.captures.iter().map(|number| number.arg()));
        }
        let blocks = threads.div_ceil(BLOCK as usize) as u32;
        arrays.jit().launch(kernel, blocks, BLOCK, &args)?;
        arrays.count_launch();
        Ok::<_, crate::Error>(())
    };
    let mut before = arrays.unspecified::<T>((lines.outer, chunks, lines.inner))?;
    if chunks > 1 {
        let fold = kernel::<T>(arrays, op, false)?;
        launch(&fold, before.owned()?.into_arg(), None)?;
        let along = chunks;
        before = scan(&before, Lines { along, ..lines }, op)?;
    }
    let before = before.as_part()?.into_arg();
    let scan = kernel::<T>(arrays, op, true)?;
    launch(&scan, out.owned()?.into_arg(), Some(before))?;
    Ok(out)
}
