//! Kernels that benches and tests share, written with the builder; `in_rust` has those of the examples,
//! which are the same as `#[kernel]` functions.
#![allow(
    dead_code,
    unused_imports,
    reason = "each program that includes this uses a part of it"
)]

use kiln::Result;
use kiln::prelude::*;

#[path = "../../examples/kernels/mod.rs"]
pub mod in_rust;

pub use in_rust::{TILE, matmul_row, ramp};

/// `y = a * x + y`, one element a thread.
pub fn saxpy() -> Result<Kernel> {
    Kernel::build("saxpy", describe_saxpy)
}

/// The body of [`saxpy`].
pub fn describe_saxpy(k: &KernelBuilder) {
    let t = k.type_param("T").float();
    let (a, x, y) = (k.param("a", t), k.slice("x", t), k.slice_mut("y", t));
    let i = k.global_id().x();
    k.if_(i.lt(y.len()), || y.at(i).set(a * x.at(i) + y.at(i)));
}

/// `c = a * b` for square matrices, one element a thread, no tiles.
pub fn naive_matmul() -> Result<Kernel> {
    Kernel::build("naive_matmul", describe_naive_matmul)
}

/// The body of [`naive_matmul`].
pub fn describe_naive_matmul(k: &KernelBuilder) {
    let t = k.ty::<f32>();
    let (a, b, c) = (k.slice("a", t), k.slice("b", t), k.slice_mut("c", t));
    let n = k.param("n", k.ty::<u32>());
    let (row, column) = (k.global_id().y(), k.global_id().x());
    k.if_(row.lt(n) & column.lt(n), || {
        let sum = k.var("sum", k.lit(t, 0.0));
        k.for_range(0, n, |i| {
            sum.set(sum + a.at(row * n + i) * b.at(i * n + column));
        });
        c.at(row * n + column).set(sum);
    });
}

/// `c = a * b` for square matrices, in 16 x 16 tiles of shared memory (CUDA guide, "Shared
/// Memory"). Any `n`: tiles reach over the edge and are padded with zeros.
pub fn tiled_matmul() -> Result<Kernel> {
    Kernel::build("tiled_matmul", describe_tiled_matmul)
}

/// The body of [`tiled_matmul`].
pub fn describe_tiled_matmul(k: &KernelBuilder) {
    let t = k.ty::<f32>();
    let (a, b, c) = (k.slice("a", t), k.slice("b", t), k.slice_mut("c", t));
    let n = k.param("n", k.ty::<u32>());
    let tile = k.array(k.array(t, TILE.into()), TILE.into());
    let (a_tile, b_tile) = (k.shared("a_tile", tile), k.shared("b_tile", tile));
    let (tx, ty) = (k.thread_idx().x(), k.thread_idx().y());
    let (row, column) = (k.global_id().y(), k.global_id().x());
    let sum = k.var("sum", k.lit(t, 0.0));
    k.for_loop(0, n, TILE, Unroll::Auto, |first| {
        let (ka, kb) = (first + tx, first + ty);
        let element = |slice: Val<'_>, row: Val<'_>, column: Val<'_>, place: Place<'_>| {
            k.if_(row.lt(n) & column.lt(n), || {
                place.set(slice.at(row * n + column))
            })
            .else_(|| place.set(0.0));
        };
        element(a, row, ka, a_tile.at(ty).at(tx));
        element(b, kb, column, b_tile.at(ty).at(tx));
        k.barrier();
        k.for_loop(0u32, TILE, 1, Unroll::Full, |i| {
            sum.set(sum + a_tile.at(ty).at(i) * b_tile.at(i).at(tx));
        });
        k.barrier();
    });
    k.if_(row.lt(n) & column.lt(n), || c.at(row * n + column).set(sum));
}

/// Adds the sum of `x` to `total[0]`: a grid-stride loop, a tree in shared memory, one atomic
/// addition a block ("Scalable Parallel Programming with CUDA", figure 10). Blocks of 256.
pub fn block_sum() -> Result<Kernel> {
    Kernel::build("block_sum", describe_block_sum)
}

/// The body of [`block_sum`].
pub fn describe_block_sum(k: &KernelBuilder) {
    let t = k.type_param("T").num();
    let (x, total) = (k.slice("x", t), k.slice_mut("total", t));
    let tile = k.shared("tile", k.array(t, 256));
    let thread = k.thread_idx().x();
    let sum = k.var("sum", k.zero(t));
    k.for_loop(
        k.global_id().x(),
        x.len(),
        k.global_size_x(),
        Unroll::Auto,
        |i| {
            sum.set(sum + x.at(i));
        },
    );
    tile.at(thread).set(sum);
    k.barrier();
    for half in [128, 64, 32, 16, 8, 4, 2, 1] {
        k.if_(thread.lt(half), || {
            let mut mine = tile.at(thread);
            mine += tile.at(thread + half);
        });
        k.barrier();
    }
    k.if_(thread.eq(0), || {
        total.at(0).atomic_add(tile.at(0));
    });
}
