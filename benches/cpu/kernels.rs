//! The kernels that `benches/cpu.rs` measures, in CUDA style, written with the builder.
//!
//! `benches/peers/cpu/kernels.cl` has the same kernels in OpenCL C, thread for thread.

use kiln::prelude::*;

/// Threads of a one-dimensional block.
pub const BLOCK: u32 = 256;
/// Blocks of a kernel that strides over its input.
pub const GROUPS: u32 = 256;
/// Width and height of a block of the stencils.
pub const STENCIL: (u32, u32) = (64, 4);
/// Width and height of a block of [`mandelbrot`].
pub const PIXELS: (u32, u32) = (32, 8);
/// Steps after which a point belongs to the Mandelbrot set.
pub const MAX_STEPS: u32 = 256;

/// `r = a * b + 2 c - 1`, one element a thread.
pub fn fused(k: &KernelBuilder) {
    let t = Type::F32;
    let (a, b, c, r) = (
        k.slice("a", t),
        k.slice("b", t),
        k.slice("c", t),
        k.slice_mut("r", t),
    );
    let i = k.global_id().x();
    k.if_(i.lt(r.len()), || {
        r.at(i).set(a.at(i) * b.at(i) + 2.0 * c.at(i) - 1.0)
    });
}

/// `y = a x + y`, one element a thread.
pub fn saxpy(k: &KernelBuilder) {
    let t = Type::F32;
    let (a, x, y) = (k.param("a", t), k.slice("x", t), k.slice_mut("y", t));
    let i = k.global_id().x();
    k.if_(i.lt(y.len()), || y.at(i).set(a * x.at(i) + y.at(i)));
}

/// Sums up what the threads of a block have put into `tile`; the result is in `tile[0]`.
fn tree(k: &KernelBuilder, tile: Val<'_>, thread: Val<'_>) {
    k.barrier();
    let step = k.var("step", BLOCK / 2);
    k.while_(
        || step.get().gt(0),
        || {
            k.if_(thread.lt(step), || {
                let mut mine = tile.at(thread);
                mine += tile.at(thread + step);
            });
            k.barrier();
            step.set(step / 2);
        },
    );
}

/// Grid-stride sum: one partial sum a block.
pub fn grid_sum(k: &KernelBuilder) {
    let t = Type::F32;
    let (x, partial) = (k.slice("x", t), k.slice_mut("partial", t));
    let tile = k.shared_array("tile", t, BLOCK);
    let thread = k.thread_idx().x();
    let sum = k.var("sum", k.lit(t, 0.0));
    let (first, step) = (k.global_id().x(), k.global_size_x());
    k.for_loop(first, x.len(), step, Unroll::Auto, |i| {
        sum.set(sum + x.at(i))
    });
    tile.at(thread).set(sum);
    tree(k, tile, thread);
    k.if_(thread.eq(0), || {
        partial.at(k.block_idx().x()).set(tile.at(0))
    });
}

/// One sum for each 256 elements.
pub fn tree_sum(k: &KernelBuilder) {
    let t = Type::F32;
    let (x, out) = (k.slice("x", t), k.slice_mut("out", t));
    let tile = k.shared_array("tile", t, BLOCK);
    let (thread, i) = (k.thread_idx().x(), k.global_id().x());
    k.if_(i.lt(x.len()), || tile.at(thread).set(x.at(i)))
        .else_(|| tile.at(thread).set(0.0));
    tree(k, tile, thread);
    k.if_(thread.eq(0), || out.at(k.block_idx().x()).set(tile.at(0)));
}

/// 5 points, the block and its halo in shared memory; the border of the image is copied.
pub fn stencil(k: &KernelBuilder) {
    let t = Type::F32;
    let (input, out) = (k.slice("in", t), k.slice_mut("out", t));
    let n = k.param("n", Type::U32);
    let (wide, high) = STENCIL;
    let rows = k.array(k.array(t, u64::from(wide) + 2), u64::from(high) + 2);
    let tile = k.shared("tile", rows);
    let (x, y) = (k.global_id().x(), k.global_id().y());
    let (tx, ty) = (k.thread_idx().x() + 1, k.thread_idx().y() + 1);
    let i = y * n + x;
    k.if_(x.lt(n) & y.lt(n), || {
        let load = |row: Val<'_>, column: Val<'_>, from: Val<'_>| {
            tile.at(row).at(column).set(input.at(from))
        };
        load(ty, tx, i);
        k.if_(tx.eq(1) & x.gt(0), || load(ty, tx - 1, i - 1));
        k.if_(tx.eq(wide) & (x + 1).lt(n), || load(ty, tx + 1, i + 1));
        k.if_(ty.eq(1) & y.gt(0), || load(ty - 1, tx, i - n));
        k.if_(ty.eq(high) & (y + 1).lt(n), || load(ty + 1, tx, i + n));
    });
    k.barrier();
    k.if_(x.lt(n) & y.lt(n), || {
        let at = |row, column| tile.at(row).at(column).get();
        let here = k.var("here", at(ty, tx));
        k.if_(inside(x, y, n), || {
            let around = at(ty, tx - 1) + at(ty, tx + 1) + at(ty - 1, tx) + at(ty + 1, tx);
            here.set(0.5 * here + 0.125 * around);
        });
        out.at(i).set(here);
    });
}

/// [`stencil`] with loads straight from global memory.
pub fn stencil_direct(k: &KernelBuilder) {
    let t = Type::F32;
    let (input, out) = (k.slice("in", t), k.slice_mut("out", t));
    let n = k.param("n", Type::U32);
    let (x, y) = (k.global_id().x(), k.global_id().y());
    k.if_(x.lt(n) & y.lt(n), || {
        let i = y * n + x;
        let here = k.var("here", input.at(i));
        k.if_(inside(x, y, n), || {
            let around = input.at(i - 1) + input.at(i + 1) + input.at(i - n) + input.at(i + n);
            here.set(0.5 * here + 0.125 * around);
        });
        out.at(i).set(here);
    });
}

/// Whether a point of an n x n image is not on its border.
fn inside<'k>(x: Val<'k>, y: Val<'k>, n: Val<'k>) -> Val<'k> {
    x.gt(0) & (x + 1).lt(n) & y.gt(0) & (y + 1).lt(n)
}

/// Inclusive scan of each 256 elements (Hillis and Steele), double buffered (GPU Gems 3, 39.2.1).
pub fn scan(k: &KernelBuilder) {
    let t = Type::F32;
    let (x, out) = (k.slice("x", t), k.slice_mut("out", t));
    let tile = k.shared_array("tile", t, 2 * BLOCK);
    let (thread, i) = (k.thread_idx().x(), k.global_id().x());
    k.if_(i.lt(x.len()), || tile.at(thread).set(x.at(i)))
        .else_(|| tile.at(thread).set(0.0));
    k.barrier();
    let (to, step) = (k.var("to", 0u32), k.var("step", 1u32));
    k.while_(
        || step.get().lt(BLOCK),
        || {
            let from = to.get();
            to.set(BLOCK - to);
            let sum = k.var("sum", tile.at(from + thread));
            k.if_(thread.ge(step), || {
                sum.set(sum + tile.at(from + thread - step))
            });
            tile.at(to + thread).set(sum);
            k.barrier();
            step.set(step * 2);
        },
    );
    k.if_(i.lt(out.len()), || out.at(i).set(tile.at(to + thread)));
}

/// Accelerations of bodies; 20 floating-point operations a pair. `out` is x of all, y of all, z of
/// all.
pub fn nbody(k: &KernelBuilder) {
    let t = Type::F32;
    let bodies = ["x", "y", "z"].map(|name| k.slice(name, t));
    let (mass, out) = (k.slice("mass", t), k.slice_mut("out", t));
    let n = mass.len();
    let i = k.global_id().x();
    k.if_(i.lt(n), || {
        let here = bodies.map(|b| b.at(i).get());
        let sums = ["ax", "ay", "az"].map(|name| k.var(name, k.lit(t, 0.0)));
        k.for_range(0, n, |j| {
            let [dx, dy, dz] = [0, 1, 2].map(|d| bodies[d].at(j) - here[d]);
            let inverse = 1.0 / (dx * dx + dy * dy + dz * dz + 0.01).sqrt();
            let s = mass.at(j) * (inverse * inverse * inverse);
            for (sum, d) in sums.iter().zip([dx, dy, dz]) {
                sum.set(*sum + s * d);
            }
        });
        for (place, sum) in [i, n + i, 2 * n + i].into_iter().zip(sums) {
            out.at(place).set(sum);
        }
    });
}

/// `r = sin a * exp b + ln (c + 1)`, one element a thread.
pub fn sin_exp_log(k: &KernelBuilder) {
    let t = Type::F32;
    let (a, b, c, r) = (
        k.slice("a", t),
        k.slice("b", t),
        k.slice("c", t),
        k.slice_mut("r", t),
    );
    let i = k.global_id().x();
    k.if_(i.lt(r.len()), || {
        let product = a.at(i).sin() * b.at(i).exp();
        r.at(i).set(product + (c.at(i) + 1.0).ln());
    });
}

/// Steps until a point of an n x n image leaves the circle of radius 2.
pub fn mandelbrot(k: &KernelBuilder) {
    let (out, n) = (k.slice_mut("out", Type::U32), k.param("n", Type::U32));
    let (x, y) = (k.global_id().x(), k.global_id().y());
    k.if_(x.lt(n) & y.lt(n), || {
        let scale = 2.5 / n.cast(Type::F32);
        let cx = x.cast(Type::F32) * scale - 2.0;
        let cy = y.cast(Type::F32) * scale - 1.25;
        let (zx, zy) = (k.var("zx", 0.0f32), k.var("zy", 0.0f32));
        let steps = k.var("steps", 0u32);
        k.while_(
            || steps.get().lt(MAX_STEPS) & (zx * zx + zy * zy).le(4.0),
            || {
                let next = zx * zx - zy * zy + cx;
                zy.set(2.0 * zx * zy + cy);
                zx.set(next);
                steps.set(steps + 1);
            },
        );
        out.at(y * n + x).set(steps);
    });
}

/// Adds how often each number below 256 occurs: bins in shared memory, then in global memory.
pub fn histogram(k: &KernelBuilder) {
    let t = Type::U32;
    let (keys, counts) = (k.slice("keys", t), k.slice_mut("counts", t));
    let bins = k.shared_array("bins", t, BLOCK);
    let thread = k.thread_idx().x();
    bins.at(thread).set(0);
    k.barrier();
    let (first, step) = (k.global_id().x(), k.global_size_x());
    k.for_loop(first, keys.len(), step, Unroll::Auto, |i| {
        bins.at(keys.at(i) % BLOCK).atomic_add(1);
    });
    k.barrier();
    counts.at(thread).atomic_add(bins.at(thread));
}

/// Nothing.
pub fn empty(_: &KernelBuilder) {}
