//! Reductions: an array, or an expression over arrays, folded along some dimensions or all.
//!
//! | what is folded | how |
//! |---|---|
//! | all | each block folds its share, which is in one place (then a tree in shared memory; Harris, "Optimizing Parallel Reduction in CUDA"), one block folds what these have left |
//! | rows, whose neighbours lie side by side | a block folds a row, or several do, a share each |
//! | columns, and short rows | a thread folds a column, or several do, a part each |
//!
//! On GPUs (`reduce/gpu.rs`) threads read elements next to each other at once:
//!
//! | what is folded | how |
//! |---|---|
//! | all | each block folds its share, and the one that is done last what all have left: one launch |
//! | rows | some lanes of a warp fold a row, or a block does, or several |
//! | columns | a block folds columns side by side, of which its threads have rows below each other; several blocks a part each |
//!
//! An expression is computed in the loop of the first launch, so it is never stored; what several have left of a row or
//! a column is then folded as an array. What is folded by whom depends on how arrays lie, and on GPUs on how many
//! multiprocessors there are and how many blocks they hold of a kernel as it was first compiled, so results have the same
//! bits each time it is compiled so. Works for any element type, user structs
//! included, with any associative and commutative operation.

pub(crate) mod counters;
mod gpu;

use std::sync::OnceLock;

use kiln_device_stdlib::index::Index;
use kiln_jit_core::args::{Arg, IntoArg};
use kiln_jit_core::build::{Kernel, KernelBuilder, Val, Var};
use kiln_jit_core::error::Error;
use kiln_jit_core::ir::Unroll;
use kiln_jit_core::launch::grid_for;
use kiln_jit_core::runtime::Buffer;

use crate::function::{Applied, ElementFn};
use crate::fused::{Elements, Fused, Passed, Purpose, is_gpu};
use crate::signature::{Signature, Way};
use crate::{Array, Arrays, Axes, Element, Expr, IntoAxes, IntoExpr, Result, Shape};

/// Threads of a block; a power of two.
pub(crate) const BLOCK: u32 = 256;

/// Threads of a block that folds a row which is not long.
const SMALL_BLOCK: u32 = 32;

/// The most blocks of the first launch.
pub(crate) const MAX_BLOCKS: u32 = 1024;

/// How many threads are enough to be busy.
const MANY_THREADS: usize = 16384;

/// Rows of fewer elements are folded by a thread each.
const SHORT_ROW: usize = 32;

/// Describes the kernel; `op` folds two values, given the numbers that it captures.
pub(crate) fn build<T: Element>(
    fused: &Fused<'_>,
    op: &Applied,
    way: Way,
) -> Result<Kernel, Error> {
    Kernel::build(&fused.name("reduce"), |k: &KernelBuilder| {
        let t = k.ty::<T>();
        let out = k.slice_mut("out", t);
        let identity = k.param("identity", t);
        let (parts, total) = match way {
            Way::Rows(_) | Way::Parts | Way::LongRows | Way::Tall(_) => {
                (k.param("parts", k.ty::<u32>()), None)
            }
            Way::Total => (identity, Some(gpu::Total::declare(k))),
            Way::Whole | Way::Columns | Way::Lanes(_) => (identity, None),
        };
        let elements = fused.declare(k, out);
        let captures = op.declare(k);
        let op = |a, b| (op.describe)(&[&[a, b], captures.as_slice()].concat());
        let fold = Fold {
            k,
            fused,
            elements: &elements,
            op: &op,
            out,
            identity,
            sum: k.var("sum", identity),
        };
        if let Some(total) = total {
            fold.total(total);
        }
        match way {
            Way::Total => {}
            Way::Lanes(lanes) => fold.lanes(lanes),
            Way::LongRows => fold.long_rows(parts),
            Way::Tall(along) => fold.tall(along, parts),
            Way::Whole => fold.whole(),
            Way::Rows(block) => fold.rows(parts, block),
            Way::Columns => fold.columns(None),
            Way::Parts => fold.columns(Some(parts)),
        }
    })
}

/// A fold that is being described.
struct Fold<'a, 'f, 'e, 'k> {
    k: &'k KernelBuilder,
    fused: &'a Fused<'e>,
    elements: &'a Elements<'f, 'e, 'k>,
    op: &'a dyn Fn(Val<'k>, Val<'k>) -> Val<'k>,
    out: Val<'k>,
    identity: Val<'k>,
    sum: Var<'k>,
}

impl<'k> Fold<'_, '_, '_, 'k> {
    /// Folds a value into the sum.
    fn add(&self, value: Val<'k>) {
        self.sum.set((self.op)(self.sum.get(), value));
    }

    /// Where the thread's elements are of so many, in the share of one of several blocks: the first, an end, and how far it is
    /// to the next. A share is in one place, as pages of memory are.
    fn share(
        &self,
        (part, parts): (Val<'k>, Val<'k>),
        block: u32,
        count: Val<'k>,
    ) -> (Val<'k>, Val<'k>, Val<'k>) {
        let (k, fused) = (self.k, self.fused);
        let number = |n: u32| fused.widened(k.lit(k.ty::<u32>(), n));
        let rounds = count / fused.widened(parts * block) + number(1);
        let share = rounds * number(block);
        let from = fused.widened(part) * share;
        let end = (from + share).min(count);
        (from + fused.widened(k.thread_idx().x()), end, number(block))
    }

    fn whole(&self) {
        let k = self.k;
        let here = (k.block_idx().x(), k.grid_dim().x());
        let (first, end, stride) = self.share(here, BLOCK, self.elements.count(0));
        k.for_loop(first, end, stride, self.fused.unroll(), |i| {
            self.add(self.elements.at(i))
        });
        self.tree(BLOCK);
    }

    /// Folds the sums of a block's threads, for the block's place of the result.
    fn tree(&self, block: u32) {
        let k = self.k;
        let tile = k.shared_array("tile", self.identity.ty(), block);
        let thread = k.thread_idx().x();
        tile.at(thread).set(self.sum);
        k.barrier();
        let mut half = block / 2;
        while half > 0 {
            k.if_(thread.lt(half), || {
                let other = tile.at(thread + half).get();
                tile.at(thread).set((self.op)(tile.at(thread).get(), other));
            });
            k.barrier();
            half /= 2;
        }
        k.if_(thread.eq(0), || {
            self.out.at(k.block_idx().x()).set(tile.at(0))
        });
    }

    /// Folds a row, or a share of it: each row has so many blocks.
    fn rows(&self, parts: Val<'k>, block: u32) {
        let (k, fused) = (self.k, self.fused);
        let here = k.block_idx().x();
        let row = here / parts;
        let part = here - row * parts;
        let places = self.elements.places(None, 0, fused.widened(row));
        let range = self.share((part, parts), block, self.elements.count(1));
        self.go_along(&places, range, fused.unroll());
        self.tree(block);
    }

    /// Folds a column, or so many elements of it: those of a block's threads are the same rows of columns side by side.
    fn columns(&self, step: Option<Val<'k>>) {
        let (k, fused) = (self.k, self.fused);
        let here = k.global_id().x();
        let (columns, end) = (self.elements.count(0), self.elements.count(1));
        let column = fused.widened(here);
        k.if_(column.lt(columns), || {
            let one = fused.widened(k.lit(k.ty::<u32>(), 1));
            let zero = fused.widened(k.lit(k.ty::<u32>(), 0));
            let part = fused.widened(k.block_idx().y());
            let (place, range) = match step {
                None => (column, (zero, end, one)),
                Some(step) => {
                    let step = fused.widened(step);
                    let first = part * step;
                    (part * columns + column, (first, end.min(first + step), one))
                }
            };
            let places = self.elements.places(None, 0, column);
            self.go_along(&places, range, Unroll::Auto);
            self.out.at(place).set(self.sum);
        });
    }

    /// Folds the elements of a group's second index, from the first on.
    fn go_along(
        &self,
        from: &[Option<Val<'k>>],
        (first, end, stride): (Val<'k>, Val<'k>, Val<'k>),
        unroll: Unroll,
    ) {
        let from = from.to_vec();
        self.k.for_loop(first, end, stride, unroll, |i| {
            let places = self.elements.places(Some(&from), 1, i);
            self.add(self.elements.value(&places, i));
        });
    }
}

/// What a reduction launches: the kernel, and how.
struct Launch<'l> {
    kernel: Kernel,
    grid: (u32, u32),
    block: u32,
    /// Behind the result and the neutral element: how many blocks fold a row, or how many elements a thread.
    parts: Option<u32>,
    passed: Vec<Passed>,
    op: &'l Applied,
}

impl Launch<'_> {
    /// Launches it, for so many results.
    fn run<T: Element>(&self, arrays: &Arrays, results: usize, identity: T) -> Result<Array<T>> {
        let mut out = arrays.jit().unspecified::<T>(results)?;
        let parts = self.parts.map(IntoArg::into_arg);
        self.launch(arrays, &mut out, (identity, parts))?;
        Ok(arrays.of(out, Shape::new(results)))
    }

    /// Launches a fold of all elements, whose blocks leave what they have behind the result: as many as there are at once,
    /// of this many at most.
    fn run_total<T: Element>(
        &self,
        arrays: &Arrays,
        identity: T,
        at_once: &OnceLock<u32>,
        fused: &Fused<'_>,
    ) -> Result<Array<T>> {
        let jit = arrays.jit();
        let mut out = jit.unspecified::<T>(1 + self.grid.0 as usize)?;
        arrays.with_counter(|counters, counter| {
            let mut args = |rounds: u32, launch: &mut dyn FnMut(&[Arg<'_>]) -> Result<()>| {
                let more = [counters.into_arg(), counter.into_arg(), rounds.into_arg()];
                launch(&self.args(&mut out, (identity, more))?)
            };
            if at_once.get().is_none() {
                args(0, &mut |args| {
                    let occupancy = jit.compile(&self.kernel, args)?.occupancy(self.block, 0)?;
                    at_once.get_or_init(|| occupancy.blocks);
                    Ok(())
                })?;
            }
            let of_each = at_once.get().map_or(1, |blocks| (*blocks).max(1));
            let blocks = self.grid.0.min(of_each * gpu::multiprocessors(arrays));
            args(gpu::rounds(fused, blocks), &mut |args| {
                Ok(jit.launch(&self.kernel, blocks, self.block, args)?)
            })
        })?;
        arrays.count_launch();
        Ok(arrays.of(out, Shape::new(1)))
    }

    fn launch<'a, T: Element>(
        &'a self,
        arrays: &Arrays,
        out: &'a mut Buffer<T>,
        (identity, more): (T, impl IntoIterator<Item = Arg<'a>>),
    ) -> Result<()> {
        let args = self.args(out, (identity, more))?;
        arrays
            .jit()
            .launch(&self.kernel, self.grid, self.block, &args)?;
        arrays.count_launch();
        Ok(())
    }

    /// The arguments of the kernel.
    fn args<'a, T: Element>(
        &'a self,
        out: &'a mut Buffer<T>,
        (identity, more): (T, impl IntoIterator<Item = Arg<'a>>),
    ) -> Result<Vec<Arg<'a>>> {
        let mut args: Vec<Arg<'_>> = vec![out.into_arg(), identity.into_arg()];
        args.extend(more);
        for passed in &self.passed {
            args.push(passed.arg()?);
        }
        args.extend(self.op.captures.iter().map(|number| number.arg()));
        Ok(args)
    }
}

/// How dimensions are folded of which some stay.
struct Plan {
    way: Way,
    grid: (u32, u32),
    block: u32,
    /// How many results there are for each that is asked for.
    parts: usize,
    /// Behind the neutral element: how many blocks fold a row, or how many elements a thread.
    passed: Option<u32>,
}

/// How dimensions are folded of which some stay, by threads that have memory read ahead for them.
fn plan(fused: &Fused<'_>, (kept, folded): (usize, usize)) -> Plan {
    if folded >= SHORT_ROW && fused.along() == 1 {
        let block = match folded < 4 * BLOCK as usize {
            true => SMALL_BLOCK,
            false => BLOCK,
        };
        let parts = (MAX_BLOCKS as usize / kept).min(folded / (8 * block as usize));
        let parts = parts.max(1);
        return Plan {
            way: Way::Rows(block),
            grid: ((kept * parts) as u32, 1),
            block,
            parts,
            passed: Some(parts as u32),
        };
    }
    let parts = (MANY_THREADS / kept).min(folded / 64).max(1);
    let step = folded.div_ceil(parts);
    Plan {
        way: if parts > 1 { Way::Parts } else { Way::Columns },
        grid: (grid_for(kept, BLOCK), parts as u32),
        block: BLOCK,
        parts,
        passed: (parts > 1).then_some(step as u32),
    }
}

impl<T: Element> Expr<T> {
    /// Folds all elements with an associative and commutative operation whose neutral element is
    /// `identity`. The order is not specified, but the same each time. Without elements the result is `identity`. The
    /// expression is part of the kernel that folds: `x.map(f).reduce(op, identity)` stores no `f(x)`.
    ///
    /// ```
    /// use kiln::prelude::*;
    ///
    /// # fn main() -> kiln::Result<()> {
    /// let arrays = Arrays::new(&Jit::new()?);
    /// let x = arrays.vector(vec![1.0f32, -5.0, 3.0])?;
    /// let largest = x.abs().reduce(device!(|a, b| a.max(b)), 0.0)?;
    /// assert_eq!(largest, 5.0);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Expr::eval`].
    pub fn reduce(&self, op: ElementFn<(T, T), T>, identity: T) -> Result<T> {
        let total = self.fold_all(&op.applied, identity)?;
        Ok(total.to_vec()?.first().copied().unwrap_or(identity))
    }

    /// [`Expr::reduce`] along some dimensions, which the result does not have; it stays on the device.
    ///
    /// ```
    /// use kiln::prelude::*;
    ///
    /// # fn main() -> kiln::Result<()> {
    /// let arrays = Arrays::new(&Jit::new()?);
    /// let x = arrays.array(vec![1, 2, 3, 4, 5, 6], (2, 3))?;
    /// let products = x.reduce_axis(0, device!(|a, b| a * b), 1)?;
    /// assert_eq!(products.to_vec()?, [4, 10, 18]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Expr::eval`]; a dimension that is not there.
    pub fn reduce_axis(
        &self,
        axes: impl IntoAxes,
        op: ElementFn<(T, T), T>,
        identity: T,
    ) -> Result<Array<T>> {
        self.fold_along(&axes.into_axes(), &op.applied, identity)
    }

    /// Folds all elements to one, in a vector of it.
    fn fold_all(&self, op: &Applied, identity: T) -> Result<Array<T>> {
        if self
            .arrays
            .as_ref()
            .is_some_and(|arrays| is_gpu(arrays.jit()))
        {
            return self.fold_at_once(op, identity);
        }
        let partial = self.fold_shares(op, identity, MAX_BLOCKS)?;
        match partial.len() {
            0 | 1 => Ok(partial),
            _ => partial.expr().fold_shares(op, identity, 1),
        }
    }

    /// Folds all elements by one launch, on a GPU.
    fn fold_at_once(&self, op: &Applied, identity: T) -> Result<Array<T>> {
        let mut signature = Signature::reduction::<T>(op);
        let purpose = Purpose {
            counts: true,
            ..Purpose::default()
        };
        let fused = Fused::new(self, &purpose, &mut signature)?;
        let arrays = fused.arrays()?;
        signature.fold(Way::Total);
        let known = arrays.known(signature, || build::<T>(&fused, op, Way::Total))?;
        let launch = Launch {
            kernel: known.kernel,
            grid: (gpu::most_blocks(&fused, gpu::multiprocessors(arrays)), 1),
            block: BLOCK,
            parts: None,
            passed: fused.passed(),
            op,
        };
        launch.run_total(arrays, identity, &known.blocks, &fused)
    }

    /// Each of at most `max_blocks` blocks folds its share to one partial result.
    fn fold_shares(&self, op: &Applied, identity: T, max_blocks: u32) -> Result<Array<T>> {
        let mut signature = Signature::reduction::<T>(op);
        let purpose = Purpose {
            counts: true,
            ..Purpose::default()
        };
        let fused = Fused::new(self, &purpose, &mut signature)?;
        signature.fold(Way::Whole);
        let arrays = fused.arrays()?;
        let grid = grid_for(fused.shape.len(), BLOCK).min(max_blocks);
        let launch = Launch {
            kernel: arrays.kernel(signature, || build::<T>(&fused, op, Way::Whole))?,
            grid: (grid, 1),
            block: BLOCK,
            parts: None,
            passed: fused.passed(),
            op,
        };
        launch.run(arrays, grid as usize, identity)
    }

    pub(crate) fn fold_along(&self, axes: &Axes, op: &Applied, identity: T) -> Result<Array<T>> {
        let shape = self.shape.clone()?;
        let mask = axes.mask(&shape)?;
        let result = axes.result(&shape, &mask);
        let lens = |folded: bool| -> usize {
            let dims = shape.dims().iter().zip(&mask);
            dims.filter(|(_, is)| **is == folded)
                .map(|(dim, _)| *dim)
                .fold(1, usize::saturating_mul)
        };
        let (kept, folded) = (lens(false), lens(true));
        let arrays = self.arrays.as_ref().ok_or(crate::ArrayError::NoArray)?;
        match (kept, folded) {
            (0, _) => arrays.zeros(result),
            (_, 0) => arrays.full(result, identity),
            (1, _) => self.fold_all(op, identity)?.reshape(result),
            _ => self
                .fold_groups(&mask, (kept, folded), op, identity)?
                .reshape(result),
        }
    }

    /// Folds the dimensions in the mask; those that stay are one.
    fn fold_groups(
        &self,
        mask: &[bool],
        (kept, folded): (usize, usize),
        op: &Applied,
        identity: T,
    ) -> Result<Array<T>> {
        let mut signature = Signature::reduction::<T>(op);
        let purpose = Purpose {
            folded: Some(mask),
            ..Purpose::default()
        };
        let fused = Fused::new(self, &purpose, &mut signature)?;
        let arrays = fused.arrays()?;
        let lens = (kept, folded);
        let for_gpu = match fused.is_for_gpu() {
            true => gpu::plan(&fused, lens, size_of::<T>(), gpu::multiprocessors(arrays)),
            false => None,
        };
        let Plan {
            way,
            grid,
            block,
            parts,
            passed,
        } = for_gpu.unwrap_or_else(|| plan(&fused, lens));
        signature.fold(way);
        let results = kept.saturating_mul(parts);
        if results > i32::MAX as usize || folded > u32::MAX as usize {
            let shape = fused.shape.clone();
            return Err(crate::ArrayError::ManyResults { shape, results });
        }
        let launch = Launch {
            kernel: arrays.kernel(signature, || build::<T>(&fused, op, way))?,
            grid,
            block,
            parts: passed,
            passed: fused.passed(),
            op,
        };
        let partial = launch.run(arrays, kept * parts, identity)?;
        match (way, parts) {
            (_, 1) => Ok(partial),
            (Way::Rows(_) | Way::LongRows, _) => {
                let rows = partial.reshape((kept, parts))?;
                rows.expr().fold_along(&1.into_axes(), op, identity)
            }
            _ => {
                let columns = partial.reshape((parts, kept))?;
                columns.expr().fold_along(&0.into_axes(), op, identity)
            }
        }
    }
}

impl<T: Element> Array<T> {
    /// Folds all elements; see [`Expr::reduce`].
    ///
    /// # Errors
    /// As [`Expr::reduce`].
    pub fn reduce(&self, op: ElementFn<(T, T), T>, identity: T) -> Result<T> {
        self.into_expr().reduce(op, identity)
    }

    /// Folds some dimensions; see [`Expr::reduce_axis`].
    ///
    /// # Errors
    /// As [`Expr::reduce_axis`].
    pub fn reduce_axis(
        &self,
        axes: impl IntoAxes,
        op: ElementFn<(T, T), T>,
        identity: T,
    ) -> Result<Array<T>> {
        self.into_expr().reduce_axis(axes, op, identity)
    }
}
