//! Tricky kernels, one element a thread or several: guards, strides, places that overlap, early
//! returns before barriers, and all shapes of grids and blocks.

use kiln::prelude::*;

use super::warp::noise;
use super::{Outcome, chapter, run_blocks};

chapter![
    guarded_saxpy,
    broadcasts_with_strides,
    buffers_that_overlap,
    grid_stride_loops,
    grid_stride_loops_with_64_bits,
    returns_before_barriers,
    grids_and_blocks_of_all_shapes,
    the_longest_grids,
];

/// One thread, less than a warp, a warp, ragged, whole warps, the most.
const BLOCKS: [u32; 8] = [1, 7, 32, 33, 100, 256, 1000, 1024];

/// Around a warp and around a block.
const LENGTHS: [usize; 8] = [0, 1, 31, 32, 33, 255, 256, 257];

fn guarded_saxpy(jit: &Jit) -> Outcome {
    let kernel = Kernel::build("saxpy", |k| {
        let t = Type::F32;
        let (y, a, x) = (k.slice_mut("y", t), k.param("a", t), k.slice("x", t));
        let i = k.global_id().x();
        k.if_(i.lt(y.len()), || y.at(i).set(a * x.at(i) + y.at(i)));
    })?;
    for block in BLOCKS {
        for n in LENGTHS {
            // Small integers: no sum is rounded, fused or not.
            let hx: Vec<f32> = (0..n).map(|i| (noise(i) % 1000) as f32).collect();
            let x = jit.upload(&hx)?;
            let ones = vec![1f32; n];
            let y = run_blocks(
                jit,
                &kernel,
                grid_for(n, block),
                block,
                &ones,
                args!(3f32, &x),
            )?;
            let want = hx.iter().map(|x| 3.0 * x + 1.0);
            assert_eq!(y, want.collect::<Vec<_>>(), "{n} by {block}");
        }
    }
    Ok(())
}

/// `r[row][column] = a * b + 2 c - 1`, each operand with strides of its own: 0 repeats it along a
/// dimension. Operands start anywhere in their buffers, so that vectors are misaligned.
fn broadcasts_with_strides(jit: &Jit) -> Outcome {
    let kernel = Kernel::build("broadcast", |k| {
        let t = Type::F32;
        let r = k.slice_mut("r", t);
        let operand = |name: &str| {
            let param = |part: &str| k.param(&format!("{name}_{part}"), Type::U32);
            (k.slice(name, t), ["first", "row", "column"].map(param))
        };
        let operands = ["a", "b", "c"].map(operand);
        let (rows, columns) = (k.param("rows", Type::U32), k.param("columns", Type::U32));
        let (row, column) = (k.global_id().y(), k.global_id().x());
        k.if_(row.lt(rows) & column.lt(columns), || {
            let [a, b, c] = operands.map(|(x, [first, by_row, by_column])| {
                x.at(first + row * by_row + column * by_column).get()
            });
            // The first element stays as it is.
            r.at(row * columns + column + 1).set(a * b + 2.0 * c - 1.0);
        });
    })?;
    let host: Vec<f32> = (0..2000).map(|i| (noise(i) % 64) as f32).collect();
    let buffer = jit.upload(&host)?;
    let (rows, columns) = (13u32, 37u32);
    let dense = [1, columns, 1];
    let operands = [
        [dense, dense, dense],
        // A row, a column, a number.
        [[3, 0, 1], [5, 1, 0], [7, 0, 0]],
        // Transposed, every other one, backwards.
        [
            [2, 1, rows],
            [0, 2 * columns, 2],
            [1500, 0, 1u32.wrapping_neg()],
        ],
    ];
    for [a, b, c] in operands {
        for (block, grid) in [
            ((32, 4), (2, 4)),
            ((7, 3), (6, 5)),
            ((100, 1), (1, 13)),
            ((1, 32), (37, 1)),
        ] {
            let out = vec![0f32; (rows * columns + 1) as usize];
            let more = args!(
                &buffer, a[0], a[1], a[2], &buffer, b[0], b[1], b[2], &buffer, c[0], c[1], c[2],
                rows, columns
            );
            let out = run_blocks(jit, &kernel, grid, block, &out, more)?;
            assert_eq!(out[0], 0.0);
            for (i, &got) in out[1..].iter().enumerate() {
                let (row, column) = (i as u32 / columns, i as u32 % columns);
                let at = |[first, by_row, by_column]: [u32; 3]| {
                    let at = first.wrapping_add(row * by_row);
                    host[at.wrapping_add(column.wrapping_mul(by_column)) as usize]
                };
                let want = at(a) * at(b) + 2.0 * at(c) - 1.0;
                assert_eq!(got, want, "{row}, {column} in blocks of {block:?}");
            }
        }
    }
    Ok(())
}

/// Reading and writing the same memory through two addresses: whoever takes them to be different
/// moves a load over a store.
fn buffers_that_overlap(jit: &Jit) -> Outcome {
    // Each thread has 8 elements and adds each to the next, through a second pointer.
    let kernel = Kernel::build("ripple", |k| {
        let x = k.slice_mut("x", Type::U32);
        let (from, to) = (x.as_ptr(), x.as_ptr().offset(1u32));
        let i = k.global_id().x();
        k.if_((i * 8 + 7).lt(x.len()), || {
            k.for_range(i * 8, i * 8 + 7, |j| {
                // SAFETY: the elements of this thread, which are in bounds.
                let (from, mut to) = unsafe { (from.offset(j).deref(), to.offset(j).deref()) };
                to += from;
            });
        });
    })?;
    for block in [1, 7, 33, 64] {
        let host: Vec<u32> = (0..8 * 150).map(noise).collect();
        let x = run_blocks(jit, &kernel, grid_for(150, block), block, &host, args!())?;
        for (got, host) in x.chunks(8).zip(host.chunks(8)) {
            let mut sum = 0u32;
            for (got, host) in got.iter().zip(host) {
                sum = sum.wrapping_add(*host);
                assert_eq!(*got, sum, "blocks of {block}");
            }
        }
    }
    // A block moves its elements by one, in place.
    let kernel = Kernel::build("shift", |k| {
        let x = k.slice_mut("x", Type::U32);
        let (t, n) = (k.thread_idx().x(), k.block_dim().x());
        let first = k.block_idx().x() * (n + 1);
        let mine = x.at(first + t).get();
        k.barrier();
        x.at(first + t + 1).set(mine);
    })?;
    for block in BLOCKS {
        let host: Vec<u32> = (0..2 * (block as usize + 1)).map(noise).collect();
        let x = run_blocks(jit, &kernel, 2, block, &host, args!())?;
        for (got, host) in x
            .chunks(block as usize + 1)
            .zip(host.chunks(block as usize + 1))
        {
            assert_eq!(got[0], host[0]);
            assert_eq!(got[1..], host[..block as usize], "blocks of {block}");
        }
    }
    Ok(())
}

/// What the thread `i` of `threads` sums up, and the first index that it leaves out.
fn strided(x: &[u32], i: usize, threads: usize) -> (u32, u64) {
    let mine = (i..x.len()).step_by(threads);
    let sum = mine
        .clone()
        .fold(0u32, |sum, i| sum.wrapping_mul(3).wrapping_add(x[i]));
    (sum, (i + mine.count() * threads) as u64)
}

fn grid_stride_loops(jit: &Jit) -> Outcome {
    let kernel = Kernel::build("strided", |k| {
        let (out, x) = (k.slice_mut("out", Type::U32), k.slice("x", Type::U32));
        let (sum, i) = (k.var("sum", 0u32), k.var("i", k.global_id().x()));
        k.while_(
            || i.get().lt(x.len()),
            || {
                sum.set(sum * 3 + x.at(i));
                i.set(i + k.global_size_x());
            },
        );
        let me = k.global_id().x();
        out.at(me * 2).set(sum);
        // The variable of the loop lives on: lanes left it in different iterations.
        out.at(me * 2 + 1).set(i);
    })?;
    for block in BLOCKS {
        for n in [0, 5, 100, 1000, 2500] {
            let hx: Vec<u32> = (0..n).map(noise).collect();
            let x = jit.upload(&hx)?;
            let threads = 2 * block as usize;
            let out = run_blocks(jit, &kernel, 2, block, &vec![9; 2 * threads], args!(&x))?;
            for (i, got) in out.chunks(2).enumerate() {
                let (sum, end) = strided(&hx, i, threads);
                assert_eq!(
                    got,
                    [sum, end as u32],
                    "thread {i} of {block}, {n} elements"
                );
            }
        }
    }
    Ok(())
}

fn grid_stride_loops_with_64_bits(jit: &Jit) -> Outcome {
    // The loop counts from beyond 2^32; a counted loop and a `while` must agree.
    const FAR: i64 = 5 << 32;
    let kernel = Kernel::build("far", |k| {
        let (out, x) = (k.slice_mut("out", Type::I64), k.slice("x", Type::U32));
        let first = k.global_id().x().cast(Type::I64) + FAR;
        let step = k.global_size_x().cast(Type::I64);
        let end = x.len64().cast(Type::I64) + FAR;
        let (sum, last) = (k.var("sum", 0u32), k.var("last", first));
        k.for_loop(first, end, step, Unroll::Auto, |i| {
            sum.set(sum * 3 + x.at(i - FAR));
            last.set(i + step);
        });
        let (again, i) = (k.var("again", 0u32), k.var("i", first - FAR));
        k.while_(
            || i.get().lt(x.len64().cast(Type::I64)),
            || {
                again.set(again * 3 + x.at(i));
                i.set(i + step);
            },
        );
        let me = k.global_id().x();
        let same = sum.get().eq(again) & (i.get() + FAR).eq(last);
        out.at(me * 2)
            .set(same.select(sum.get(), 0u32).cast(Type::I64));
        out.at(me * 2 + 1).set(last);
    })?;
    for block in BLOCKS {
        let hx: Vec<u32> = (0..1234).map(noise).collect();
        let x = jit.upload(&hx)?;
        let threads = 3 * block as usize;
        let out = run_blocks(jit, &kernel, 3, block, &vec![9i64; 2 * threads], args!(&x))?;
        for (i, got) in out.chunks(2).enumerate() {
            let (sum, end) = strided(&hx, i, threads);
            let end = end as i64 + FAR;
            assert_eq!(got, [i64::from(sum), end], "thread {i} of {block}");
        }
    }
    Ok(())
}

/// Threads beyond the end return before the barriers of a reduction: some lanes, whole warps, or
/// all threads of a block.
fn returns_before_barriers(jit: &Jit) -> Outcome {
    let kernel = Kernel::build("early", |k| {
        let (out, x) = (k.slice_mut("out", Type::U32), k.slice("x", Type::U32));
        let tile = k.shared_array("tile", Type::U32, 1024);
        let (t, i, n) = (k.thread_idx().x(), k.global_id().x(), k.block_dim().x());
        k.if_(i.ge(x.len()), || k.return_());
        tile.at(t).set(x.at(i));
        k.barrier();
        let there = n.min(x.len() - k.block_idx().x() * n);
        k.for_range(0u32, 10u32, |step| {
            let half = k.lit(Type::U32, 512) >> step;
            k.if_((t + half).lt(there) & t.lt(half), || {
                let mut mine = tile.at(t);
                mine += tile.at(t + half);
            });
            k.barrier();
        });
        out.at(i).set(tile.at(0));
    })?;
    for block in BLOCKS {
        for n in [0, 1, 40, 96, 100, 257, 1500] {
            let hx: Vec<u32> = (0..n).map(noise).collect();
            let x = jit.upload(&hx)?;
            // One block has nothing to do.
            let grid = grid_for(n, block) + 1;
            let out = run_blocks(jit, &kernel, grid, block, &vec![9; n], args!(&x))?;
            for (got, x) in out.chunks(block as usize).zip(hx.chunks(block as usize)) {
                let sum = x.iter().fold(0u32, |sum, x| sum.wrapping_add(*x));
                assert!(got.iter().all(|&got| got == sum), "{n} by {block}");
            }
        }
    }
    Ok(())
}

/// The number of a place in the order of a shape.
fn place<'k>([x, y, z]: [Val<'k>; 3], [w, h, _]: [Val<'k>; 3]) -> Val<'k> {
    (z * h + y) * w + x
}

/// Every thread writes all its coordinates and extents at its place in the order of the grid.
fn grids_and_blocks_of_all_shapes(jit: &Jit) -> Outcome {
    let kernel = Kernel::build("where", |k| {
        let out = k.slice_mut("out", Type::U32);
        let indices = [k.thread_idx(), k.block_dim(), k.block_idx(), k.grid_dim()];
        let coordinates = indices.map(|i| [i.x(), i.y(), i.z()]);
        let [thread, block_dim, block, grid_dim] = coordinates;
        let threads = block_dim[0] * block_dim[1] * block_dim[2];
        let me = place(block, grid_dim) * threads + place(thread, block_dim);
        for (slot, value) in (0u32..).zip(coordinates.into_iter().flatten()) {
            out.at(me * 12 + slot).set(value);
        }
    })?;
    let shapes: [([u32; 3], [u32; 3]); 12] = [
        ([1, 1, 1], [1, 1, 1]),
        ([1, 1, 1], [1024, 1, 1]),
        ([2, 3, 4], [3, 5, 7]),
        ([5, 1, 2], [1, 1, 33]),
        ([1, 6, 1], [1, 100, 1]),
        ([3, 2, 1], [16, 16, 1]),
        ([2, 1, 3], [32, 8, 1]),
        ([1, 2, 2], [8, 8, 4]),
        ([2, 2, 2], [64, 2, 2]),
        ([1, 1, 5], [7, 1, 3]),
        ([2, 1, 1], [2, 2, 64]),
        ([1, 1, 2], [1, 1024, 1]),
    ];
    for (grid, block) in shapes {
        let count = |shape: [u32; 3]| shape.iter().product::<u32>();
        let all = count(grid) * count(block);
        let out = run_blocks(
            jit,
            &kernel,
            grid,
            block,
            &vec![0; 12 * all as usize],
            args!(),
        )?;
        let split = |i: u32, [w, h, _]: [u32; 3]| [i % w, i / w % h, i / w / h];
        for (i, got) in (0u32..).zip(out.chunks(12)) {
            let (at, thread) = (i / count(block), i % count(block));
            let want = [split(thread, block), block, split(at, grid), grid];
            assert_eq!(got, want.concat(), "thread {i} of {grid:?} by {block:?}");
        }
    }
    Ok(())
}

fn the_longest_grids(jit: &Jit) -> Outcome {
    let kernel = Kernel::build("long", |k| {
        let out = k.slice_mut("out", Type::U32);
        let b = k.block_idx();
        let i = b.x() + b.y() + b.z();
        out.at(i).set(i * 3 + k.grid_dim().x());
    })?;
    for grid in [[65_535u32, 1, 1], [1, 65_535, 1], [1, 1, 65_535]] {
        let out = run_blocks(jit, &kernel, grid, 1, &vec![0; 65_535], args!())?;
        let want = (0..65_535).map(|i| i * 3 + grid[0]);
        assert!(out.into_iter().eq(want), "{grid:?}");
    }
    Ok(())
}
