//! Reductions: a whole array to one value.
//!
//! One kernel, launched twice: each block folds its share of the array (a grid-stride loop, then a
//! tree in shared memory; Harris, "Optimizing Parallel Reduction in CUDA") into one partial result,
//! and one block folds those. Works for any element type, user structs included, with any
//! associative and commutative operation.

use kiln_device_stdlib::index::Index;
use kiln_jit_core::args;
use kiln_jit_core::build::{Kernel, KernelBuilder, Val};
use kiln_jit_core::error::Error;
use kiln_jit_core::launch::grid_for;

use crate::expr::{FunctionName, closure_name};
use crate::{Array, Element, Result};

/// Threads of a block; a power of two.
const BLOCK: u32 = 256;

/// The most blocks of the first launch.
const MAX_BLOCKS: u32 = 1024;

fn build<T: Element>(op: &dyn for<'k> Fn(Val<'k>, Val<'k>) -> Val<'k>) -> Result<Kernel, Error> {
    Kernel::build("reduce", |k: &KernelBuilder| {
        let t = k.ty::<T>();
        let (x, out) = (k.slice("x", t), k.slice_mut("out", t));
        let identity = k.param("identity", t);
        let tile = k.shared_array("tile", t, BLOCK);
        let thread = k.thread_idx().x();

        let sum = k.var("sum", identity);
        k.for_loop(
            k.global_id().x(),
            x.len(),
            k.global_size_x(),
            kiln_jit_core::ir::Unroll::Auto,
            |i| sum.set(op(sum.get(), x.at(i).get())),
        );
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

impl<T: Element> Array<T> {
    /// Folds all elements with an associative and commutative operation whose neutral element is
    /// `identity`. The order is not specified. An empty array gives `identity`.
    ///
    /// # Errors
    /// An operation that does not give a `T`, or a device that has failed.
    pub fn reduce<F>(&self, op: F, identity: T) -> Result<T>
    where
        F: for<'k> Fn(Val<'k>, Val<'k>) -> Val<'k> + Send + Sync + 'static,
    {
        self.reduce_named(closure_name::<F>(), &op, identity)
    }

    fn reduce_named(
        &self,
        name: Option<FunctionName>,
        op: &dyn for<'k> Fn(Val<'k>, Val<'k>) -> Val<'k>,
        identity: T,
    ) -> Result<T> {
        let jit = self.arrays.jit();
        let signature = name.map(|n| format!("reduce {}: {n:?}", std::any::type_name::<T>()));
        let kernel = self.arrays.kernel(signature, || build::<T>(op))?;
        let blocks = grid_for(self.len(), BLOCK).min(MAX_BLOCKS);
        let mut partial = jit.zeros::<T>(blocks as usize)?;
        jit.launch(
            &kernel,
            blocks,
            BLOCK,
            args!(&*self.buffer, &mut partial, identity),
        )?;
        self.arrays.count_launch();
        if blocks > 1 {
            let mut total = jit.zeros::<T>(1)?;
            jit.launch(&kernel, 1, BLOCK, args!(&partial, &mut total, identity))?;
            self.arrays.count_launch();
            partial = total;
        }
        let result = partial.to_vec()?;
        Ok(result.first().copied().unwrap_or(identity))
    }

    /// The sum of all elements; numbers. The order of additions is not specified.
    ///
    /// # Errors
    /// An element type without addition, or a device that has failed.
    pub fn sum(&self) -> Result<T>
    where
        T: Default,
    {
        let name = Some(FunctionName::Operation("sum".to_owned()));
        self.reduce_named(name, &|a, b| a + b, T::default())
    }
}
