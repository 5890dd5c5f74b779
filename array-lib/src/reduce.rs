//! Reductions: a whole array, or an expression over arrays, to one value.
//!
//! One kernel, launched twice: each block folds its share (a grid-stride loop, then a tree in shared
//! memory; Harris, "Optimizing Parallel Reduction in CUDA") into one partial result, and one block folds
//! those. An expression is computed in the loop of the first launch, so it is never stored; partial
//! results are then folded by the kernel for plain arrays. Works for any element type, user structs
//! included, with any associative and commutative operation.

use kiln_device_stdlib::index::Index;
use kiln_jit_core::args::{Arg, IntoArg};
use kiln_jit_core::build::{Kernel, KernelBuilder, Val};
use kiln_jit_core::error::Error;
use kiln_jit_core::ir::Unroll;
use kiln_jit_core::launch::grid_for;

use crate::broadcast::Fused;
use crate::function::{Applied, ElementFn};
use crate::signature::Signature;
use crate::{Array, Element, Expr, IntoExpr, Result, Shape};

/// Threads of a block; a power of two.
pub(crate) const BLOCK: u32 = 256;

/// The most blocks of the first launch.
pub(crate) const MAX_BLOCKS: u32 = 1024;

/// Describes the kernel; `op` folds two values, given the numbers that it captures.
pub(crate) fn build<T: Element>(fused: &Fused<'_>, op: &Applied) -> Result<Kernel, Error> {
    Kernel::build("reduce", |k: &KernelBuilder| {
        let t = k.ty::<T>();
        let out = k.slice_mut("out", t);
        let identity = k.param("identity", t);
        let elements = fused.declare(k, out);
        let captures: Vec<Val<'_>> = op
            .captures
            .iter()
            .enumerate()
            .map(|(n, capture)| capture.declare(k, &format!("by{n}")))
            .collect();
        let op = |a, b| (op.describe)(&[&[a, b], captures.as_slice()].concat());
        let tile = k.shared_array("tile", t, BLOCK);
        let thread = k.thread_idx().x();

        let sum = k.var("sum", identity);
        let (first, stride) = (k.global_id().x(), k.global_size_x());
        k.for_loop(first, elements.len(), stride, Unroll::Auto, |i| {
            sum.set(op(sum.get(), elements.at(i)));
        });
        tile.at(thread).set(sum);
        k.barrier();
        let mut half = BLOCK / 2;
        while half > 0 {
            k.if_(thread.lt(half), || {
                let other = tile.at(thread + half).get();
                tile.at(thread).set(op(tile.at(thread).get(), other));
            });
            k.barrier();
            half /= 2;
        }
        k.if_(thread.eq(0), || out.at(k.block_idx().x()).set(tile.at(0)));
    })
}

impl<T: Element> Expr<T> {
    /// Folds all elements with an associative and commutative operation whose neutral element is
    /// `identity`. The order is not specified. Without elements the result is `identity`. The
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
        let partial = self.fold(&op.applied, identity, MAX_BLOCKS)?;
        let total = match partial.len() {
            0 | 1 => partial,
            _ => partial.expr().fold(&op.applied, identity, 1)?,
        };
        Ok(total.to_vec()?.first().copied().unwrap_or(identity))
    }

    /// Each of at most `max_blocks` blocks folds its share to one partial result.
    fn fold(&self, op: &Applied, identity: T, max_blocks: u32) -> Result<Array<T>> {
        let mut signature = Signature::reduction::<T>(op);
        let fused = Fused::new(self, &mut signature)?;
        let arrays = fused.arrays()?;
        let kernel = arrays.kernel(signature, || build::<T>(&fused, op))?;
        let blocks = grid_for(fused.shape.len(), BLOCK).min(max_blocks);
        let jit = arrays.jit();
        let mut out = jit.zeros::<T>(blocks as usize)?;
        let mut args: Vec<Arg<'_>> = vec![(&mut out).into_arg(), identity.into_arg()];
        args.extend(fused.args());
        args.extend(op.captures.iter().map(|number| number.arg()));
        jit.launch(&kernel, blocks, BLOCK, &args)?;
        arrays.count_launch();
        drop(args);
        Ok(arrays.of(out, Shape::Vector(blocks as usize)))
    }

    /// The sum of all elements; numbers. The order of additions is not specified.
    ///
    /// ```
    /// use kiln::prelude::*;
    ///
    /// # fn main() -> kiln::Result<()> {
    /// let arrays = Arrays::new(&Jit::new()?);
    /// let x = arrays.vector((1..=1000).collect::<Vec<u32>>())?;
    /// assert_eq!(x.sum()?, 500_500);
    /// assert_eq!((&x * &x).sum()?, 333_833_500); // multiplied and added by one kernel
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// An element type without addition, or as [`Expr::eval`].
    pub fn sum(&self) -> Result<T>
    where
        T: Default,
    {
        self.reduce(ElementFn::operation("sum", |[a, b]| a + b), T::default())
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

    /// The sum of all elements; numbers. The order of additions is not specified.
    ///
    /// ```
    /// use kiln::prelude::*;
    ///
    /// # fn main() -> kiln::Result<()> {
    /// let arrays = Arrays::new(&Jit::new()?);
    /// let x = arrays.vector((1..=1000).collect::<Vec<u32>>())?;
    /// assert_eq!(x.sum()?, 500_500);
    /// assert_eq!((&x * &x).sum()?, 333_833_500); // multiplied and added by one kernel
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// An element type without addition, or a device that has failed.
    pub fn sum(&self) -> Result<T>
    where
        T: Default,
    {
        self.into_expr().sum()
    }
}
