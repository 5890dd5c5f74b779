//! Tricky kernels, shared memory: reversals, tiled products, transposition, stencils with a halo,
//! scans, sorting, histograms and compaction, as textbooks have them.

use kiln::prelude::*;

use super::warp::{linear, noise};
use super::{Outcome, chapter, owned_args, run_blocks};

chapter![
    reverses,
    two_dynamic_arrays,
    tiled_products,
    padded_transposition,
    rows_with_a_halo,
    images_with_a_halo,
    scans_up_and_down_a_tree,
    bitonic_sorts,
    odd_even_merge_sorts,
    histograms,
    compaction_by_atomic_slots,
];

const BLOCKS: [usize; 8] = [1, 7, 32, 33, 100, 256, 1000, 1024];

fn numbers(n: usize) -> Vec<u32> {
    (0..n).map(noise).collect()
}

/// Each block reverses its elements, through static shared memory and through dynamic.
fn reverses(jit: &Jit) -> Outcome {
    for dynamic in [false, true] {
        let kernel = Kernel::build("reverse", |k| {
            let x = k.slice_mut("x", Type::U32);
            let tile = match dynamic {
                true => k.dynamic_shared(Type::U32),
                false => k.shared_array("tile", Type::U32, 1024),
            };
            let (t, i) = (k.thread_idx().x(), k.global_id().x());
            tile.at(t).set(x.at(i));
            k.barrier();
            x.at(i).set(tile.at(k.block_dim().x() - 1 - t));
        })?;
        for n in BLOCKS {
            let hx = numbers(3 * n);
            let mut x = jit.upload(&hx)?;
            let bytes = if dynamic { 4 * n as u32 } else { 0 };
            let config = LaunchConfig::new(3, n as u32).shared_bytes(bytes);
            jit.launch_with(&kernel, config, args!(&mut x))?;
            jit.synchronize()?;
            let want: Vec<u32> = hx.chunks(n).flat_map(|x| x.iter().rev().copied()).collect();
            assert_eq!(x.to_vec()?, want, "{n}, dynamic: {dynamic}");
        }
    }
    Ok(())
}

/// Two arrays in dynamic shared memory, one after the other, and a static one beside them.
fn two_dynamic_arrays(jit: &Jit) -> Outcome {
    let kernel = Kernel::build("carved", |k| {
        let x = k.slice_mut("x", Type::U32);
        let fixed = k.shared_array("fixed", Type::U32, 1024);
        let all = k.dynamic_shared(Type::U32);
        let (t, n, i) = (k.thread_idx().x(), k.block_dim().x(), k.global_id().x());
        let (first, second) = (|i| all.at(i), |i| all.at(n + i));
        first(t).set(x.at(i));
        // The second one holds floats.
        second(t).set((x.at(i) % 100).cast(Type::F32).bitcast(Type::U32));
        fixed.at(t).set(t);
        k.barrier();
        let other = n - 1 - t;
        let float = second(other).get().bitcast(Type::F32) * 2.0;
        x.at(i)
            .set(first(other) + float.cast(Type::U32) + fixed.at((t + 1) % n));
    })?;
    for n in BLOCKS {
        let hx = numbers(2 * n);
        let mut x = jit.upload(&hx)?;
        let config = LaunchConfig::new(2, n as u32).shared_bytes(8 * n as u32);
        jit.launch_with(&kernel, config, args!(&mut x))?;
        jit.synchronize()?;
        for (got, x) in x.to_vec()?.chunks(n).zip(hx.chunks(n)) {
            for t in 0..n {
                let other = x[n - 1 - t];
                let want = other + other % 100 * 2 + ((t + 1) % n) as u32;
                assert_eq!(got[t], want, "thread {t} of {n}");
            }
        }
    }
    Ok(())
}

/// Depth of a tile of [`product`].
const DEPTH: u32 = 8;

/// `c = a b` for each of several square matrices in tiles as large as a block: `wide` columns,
/// `high` rows, `deep` matrices. Threads share the loading of tiles that have more or fewer
/// elements than the block has threads.
fn product(k: &KernelBuilder, [wide, high, deep]: [u32; 3]) {
    let t = Type::U32;
    let (c, a, b) = (k.slice_mut("c", t), k.slice("a", t), k.slice("b", t));
    let n = k.param("n", t);
    let tile = |name, rows: u32, columns: u32| {
        let row = k.array(t, columns.into());
        k.shared(name, k.array(k.array(row, rows.into()), deep.into()))
    };
    let (a_tile, b_tile) = (tile("a_tile", high, DEPTH), tile("b_tile", DEPTH, wide));
    let (x, y, z) = (k.thread_idx().x(), k.thread_idx().y(), k.thread_idx().z());
    let (row, column) = (k.global_id().y(), k.global_id().x());
    let first = k.global_id().z() * n * n;
    let fill = |tile: Place<'_>, columns: u32, count: u32, at: [Val<'_>; 2], from: Val<'_>| {
        k.for_loop(y * wide + x, count, wide * high, Unroll::Auto, |e| {
            let (r, c) = (e / columns, e % columns);
            let (row, column) = (at[0] + r, at[1] + c);
            let value = k.var("value", 0u32);
            k.if_(row.lt(n) & column.lt(n), || {
                value.set(from.at(first + row * n + column))
            });
            tile.at(z).at(r).at(c).set(value);
        });
    };
    let sum = k.var("sum", 0u32);
    let (top, left) = (row - y, column - x);
    k.for_loop(0u32, n, DEPTH, Unroll::Auto, |depth| {
        fill(a_tile, DEPTH, high * DEPTH, [top, depth], a);
        fill(b_tile, wide, DEPTH * wide, [depth, left], b);
        k.barrier();
        k.for_range(0u32, DEPTH, |i| {
            sum.set(sum + a_tile.at(z).at(y).at(i) * b_tile.at(z).at(i).at(x));
        });
        k.barrier();
    });
    k.if_(row.lt(n) & column.lt(n), || {
        c.at(first + row * n + column).set(sum)
    });
}

fn tiled_products(jit: &Jit) -> Outcome {
    for shape in [[16, 16, 1], [32, 8, 1], [8, 8, 4], [7, 5, 3]] {
        let [wide, high, deep] = shape;
        let kernel = Kernel::build("product", |k| product(k, shape))?;
        for n in [1, 16, 29] {
            let matrix = n * n;
            let all = matrix * deep as usize;
            let (ha, hb) = (
                numbers(all),
                (0..all).map(|i| noise(i + 7)).collect::<Vec<_>>(),
            );
            let (a, b) = (jit.upload(&ha)?, jit.upload(&hb)?);
            let grid = ((n as u32).div_ceil(wide), (n as u32).div_ceil(high));
            let more = args!(&a, &b, n as u32);
            let c = run_blocks(jit, &kernel, grid, shape, &vec![0; all], more)?;
            for (i, &got) in c.iter().enumerate() {
                let (first, row, column) = (i / matrix * matrix, i / n % n, i % n);
                let products = (0..n)
                    .map(|j| ha[first + row * n + j].wrapping_mul(hb[first + j * n + column]));
                let want = products.fold(0u32, u32::wrapping_add);
                assert_eq!(got, want, "{row}, {column} of {n} in {shape:?}");
            }
        }
    }
    Ok(())
}

/// Transposition in tiles of 32 x 32, a column of padding against bank conflicts, four rows a
/// thread.
fn padded_transposition(jit: &Jit) -> Outcome {
    let kernel = Kernel::build("transpose", |k| {
        let t = Type::U32;
        let (y, x) = (k.slice_mut("y", t), k.slice("x", t));
        let (rows, columns) = (k.param("rows", t), k.param("columns", t));
        let tile = k.shared("tile", k.array(k.array(t, 33), 32));
        let (tx, ty) = (k.thread_idx().x(), k.thread_idx().y());
        let (bx, by) = (k.block_idx().x() * 32, k.block_idx().y() * 32);
        k.for_loop(0u32, 32u32, 8u32, Unroll::Full, |j| {
            let (row, column) = (by + ty + j, bx + tx);
            k.if_(row.lt(rows) & column.lt(columns), || {
                tile.at(ty + j).at(tx).set(x.at(row * columns + column))
            });
        });
        k.barrier();
        k.for_loop(0u32, 32u32, 8u32, Unroll::Full, |j| {
            let (row, column) = (bx + ty + j, by + tx);
            k.if_(row.lt(columns) & column.lt(rows), || {
                y.at(row * rows + column).set(tile.at(tx).at(ty + j))
            });
        });
    })?;
    for (rows, columns) in [(32usize, 32usize), (64, 96), (45, 70), (1, 33), (100, 3)] {
        let hx = numbers(rows * columns);
        let x = jit.upload(&hx)?;
        let grid = (columns.div_ceil(32) as u32, rows.div_ceil(32) as u32);
        let more = args!(&x, rows as u32, columns as u32);
        let y = run_blocks(jit, &kernel, grid, (32, 8), &vec![0; hx.len()], more)?;
        for (i, &got) in y.iter().enumerate() {
            let (column, row) = (i / rows, i % rows);
            assert_eq!(got, hx[row * columns + column], "{rows} x {columns}");
        }
    }
    Ok(())
}

/// A stencil of five in a row; threads at the edge of a block load more than one element.
fn rows_with_a_halo(jit: &Jit) -> Outcome {
    const WEIGHTS: [u32; 5] = [1, 3, 5, 7, 11];
    let kernel = Kernel::build("halo", |k| {
        let (out, x) = (k.slice_mut("out", Type::U32), k.slice("x", Type::U32));
        let tile = k.shared_array("tile", Type::U32, 1024 + 4);
        let (t, n, i) = (k.thread_idx().x(), k.block_dim().x(), k.global_id().x());
        // Place `p` of the tile is the element `p - 2` of the block; what is not there is 0.
        let load = |p: Val<'_>| {
            let at = (k.block_idx().x() * n + p).cast(Type::I32) - 2;
            let inside = at.ge(0) & at.lt(x.len().cast(Type::I32));
            k.if_(inside, || tile.at(p).set(x.at(at)))
                .else_(|| tile.at(p).set(0));
        };
        load(t + 2);
        k.if_(t.lt(2), || load(t));
        k.if_((t + 2).ge(n), || load(t + 4));
        // In a block of one thread it has the whole halo to load.
        k.if_(n.eq(1), || {
            load(t + 1);
            load(t + 3);
        });
        k.barrier();
        k.if_(i.lt(out.len()), || {
            let sum = k.var("sum", 0u32);
            for (offset, weight) in (0u32..).zip(WEIGHTS) {
                sum.set(sum + tile.at(t + offset) * weight);
            }
            out.at(i).set(sum);
        });
    })?;
    for block in BLOCKS {
        for n in [1usize, 64, 500] {
            let hx = numbers(n);
            let x = jit.upload(&hx)?;
            let grid = grid_for(n, block as u32);
            let out = run_blocks(jit, &kernel, grid, block as u32, &vec![0; n], args!(&x))?;
            for (i, &got) in out.iter().enumerate() {
                let around = WEIGHTS.iter().enumerate().map(|(offset, weight)| {
                    let at = (i + offset).checked_sub(2).and_then(|at| hx.get(at));
                    at.map_or(0, |x| x * weight)
                });
                assert_eq!(got, around.sum::<u32>(), "{i} of {n} by {block}");
            }
        }
    }
    Ok(())
}

/// The index `at - 1`, or the nearest one below `len`.
fn clamped<'k>(at: Val<'k>, len: Val<'k>) -> Val<'k> {
    at.max(1).min(len) - 1
}

/// The sum of a pixel and its eight neighbours, weighted; the image goes on at its border. A thread
/// in a corner of its block loads four elements, one at an edge two.
fn images_with_a_halo(jit: &Jit) -> Outcome {
    for (bw, bh) in [(16u32, 8u32), (7, 5), (32, 2), (2, 64)] {
        let kernel = Kernel::build("blur", |k| {
            let t = Type::U32;
            let (out, image) = (k.slice_mut("out", t), k.slice("image", t));
            let (w, h) = (k.param("w", t), k.param("h", t));
            let rows = k.array(k.array(t, u64::from(bw) + 2), u64::from(bh) + 2);
            let tile = k.shared("tile", rows);
            let (tx, ty) = (k.thread_idx().x() + 1, k.thread_idx().y() + 1);
            let (x, y) = (k.global_id().x(), k.global_id().y());
            let load = |dx: u32, dy: u32| {
                let from = clamped(y + dy, h) * w + clamped(x + dx, w);
                tile.at(ty + dy - 1).at(tx + dx - 1).set(image.at(from));
            };
            let across = [tx.eq(1), tx.gt(0), tx.eq(bw)];
            let down = [ty.eq(1), ty.gt(0), ty.eq(bh)];
            for (dy, below) in (0u32..).zip(down) {
                for (dx, beside) in (0u32..).zip(across) {
                    k.if_(below & beside, || load(dx, dy));
                }
            }
            k.barrier();
            k.if_(x.ge(w) | y.ge(h), || k.return_());
            let sum = k.var("sum", 0u32);
            for (weight, (dy, dx)) in (1u32..).zip((0..3u32).flat_map(|y| [(y, 0), (y, 1), (y, 2)]))
            {
                sum.set(sum + tile.at(ty + dy - 1).at(tx + dx - 1) * weight);
            }
            out.at(y * w + x).set(sum);
        })?;
        for (w, h) in [(40usize, 23usize), (5, 3)] {
            let image = numbers(w * h);
            let device = jit.upload(&image)?;
            let grid = ((w as u32).div_ceil(bw), (h as u32).div_ceil(bh));
            let more = args!(&device, w as u32, h as u32);
            let out = run_blocks(jit, &kernel, grid, (bw, bh), &vec![0; w * h], more)?;
            for (i, &got) in out.iter().enumerate() {
                let clamp = |at: usize, len: usize| at.max(1).min(len) - 1;
                let places = (0..3).flat_map(|y| [(y, 0), (y, 1), (y, 2)]);
                let want = (1u32..).zip(places).map(|(weight, (dy, dx))| {
                    weight * image[clamp(i / w + dy, h) * w + clamp(i % w + dx, w)]
                });
                assert_eq!(got, want.sum::<u32>(), "{i} of {w} x {h} in {bw} x {bh}");
            }
        }
    }
    Ok(())
}

/// An exclusive scan (Blelloch, GPU Gems 3, 39.2.2): two elements a thread, `if (t < d)` between
/// barriers.
fn scans_up_and_down_a_tree(jit: &Jit) -> Outcome {
    let kernel = Kernel::build("blelloch", |k| {
        let (out, x) = (k.slice_mut("out", Type::U32), k.slice("x", Type::U32));
        let tile = k.shared_array("tile", Type::U32, 2048);
        let (t, threads) = (k.thread_idx().x(), k.block_dim().x());
        let n = threads * 2;
        let first = k.block_idx().x() * n;
        tile.at(t * 2).set(x.at(first + t * 2));
        tile.at(t * 2 + 1).set(x.at(first + t * 2 + 1));
        let (d, offset) = (k.var("d", threads), k.var("offset", 1u32));
        let pair = || {
            let end = offset * (t + 1) * 2 - 1;
            (tile.at(end - offset), tile.at(end))
        };
        k.while_(
            || d.get().gt(0),
            || {
                k.barrier();
                k.if_(t.lt(d), || {
                    let (low, mut high) = pair();
                    high += low;
                });
                offset.set(offset * 2);
                d.set(d / 2);
            },
        );
        k.if_(t.eq(0), || tile.at(n - 1).set(0));
        d.set(1);
        k.while_(
            || d.get().lt(n),
            || {
                offset.set(offset / 2);
                k.barrier();
                k.if_(t.lt(d), || {
                    let (low, high) = pair();
                    let (left, right) = (low.get(), high.get());
                    low.set(right);
                    high.set(left + right);
                });
                d.set(d * 2);
            },
        );
        k.barrier();
        out.at(first + t * 2).set(tile.at(t * 2));
        out.at(first + t * 2 + 1).set(tile.at(t * 2 + 1));
    })?;
    for threads in [1, 2, 16, 32, 128, 1024] {
        let hx = numbers(4 * threads);
        let x = jit.upload(&hx)?;
        let out = run_blocks(
            jit,
            &kernel,
            2,
            threads as u32,
            &vec![9; hx.len()],
            args!(&x),
        )?;
        for (got, x) in out.chunks(2 * threads).zip(hx.chunks(2 * threads)) {
            let mut sum = 0u32;
            for (got, x) in got.iter().zip(x) {
                assert_eq!(*got, sum, "{threads} threads");
                sum = sum.wrapping_add(*x);
            }
        }
    }
    Ok(())
}

/// Launches a kernel that sorts its block's elements of `x`, and compares.
fn check_sort(jit: &Jit, kernel: &Kernel) -> Outcome {
    // Many numbers twice; descending; sorted.
    let inputs: [fn(usize) -> u32; 3] = [|i| noise(i) % 100, |i| 5000 - i as u32, |i| i as u32];
    for n in [1, 2, 16, 32, 64, 256, 1024] {
        for input in inputs {
            let hx: Vec<u32> = (0..2 * n).map(input).collect();
            let got = run_blocks(jit, kernel, 2, n as u32, &hx, args!())?;
            for (got, x) in got.chunks(n).zip(hx.chunks(n)) {
                let mut want = x.to_vec();
                want.sort_unstable();
                assert_eq!(got, want, "{n} threads");
            }
        }
    }
    Ok(())
}

/// Puts the smaller of two places first, or the larger.
fn order<'k>(low: Place<'k>, high: Place<'k>, ascending: Val<'k>) {
    let k = ascending.builder();
    let (a, b) = (low.get(), high.get());
    k.if_(a.gt(b).eq(ascending) & a.ne(b), || {
        low.set(b);
        high.set(a);
    });
}

fn bitonic_sorts(jit: &Jit) -> Outcome {
    let kernel = Kernel::build("bitonic", |k| {
        let x = k.slice_mut("x", Type::U32);
        let tile = k.shared_array("tile", Type::U32, 1024);
        let (t, i, n) = (k.thread_idx().x(), k.global_id().x(), k.block_dim().x());
        tile.at(t).set(x.at(i));
        k.barrier();
        let (run, step) = (k.var("run", 2u32), k.var("step", 0u32));
        k.while_(
            || run.get().le(n),
            || {
                step.set(run / 2);
                k.while_(
                    || step.get().gt(0),
                    || {
                        let other = t ^ step;
                        k.if_(other.gt(t), || {
                            order(tile.at(t), tile.at(other), (t & run).eq(0))
                        });
                        k.barrier();
                        step.set(step / 2);
                    },
                );
                run.set(run * 2);
            },
        );
        x.at(i).set(tile.at(t));
    })?;
    check_sort(jit, &kernel)
}

/// Batcher's odd-even merge sort; a thread for the lower place of each pair.
fn odd_even_merge_sorts(jit: &Jit) -> Outcome {
    let kernel = Kernel::build("batcher", |k| {
        let x = k.slice_mut("x", Type::U32);
        let tile = k.shared_array("tile", Type::U32, 1024);
        let (t, i, n) = (k.thread_idx().x(), k.global_id().x(), k.block_dim().x());
        tile.at(t).set(x.at(i));
        k.barrier();
        let (p, step) = (k.var("p", 1u32), k.var("step", 0u32));
        k.while_(
            || p.get().lt(n),
            || {
                step.set(p);
                k.while_(
                    || step.get().gt(0),
                    || {
                        let (first, other) = (step % p, t + step);
                        let starts = t.ge(first) & ((t - first) / step % 2).eq(0);
                        let together = (t / (p * 2)).eq(other / (p * 2));
                        k.if_(starts & together & other.lt(n), || {
                            order(tile.at(t), tile.at(other), t.ge(0))
                        });
                        k.barrier();
                        step.set(step / 2);
                    },
                );
                p.set(p * 2);
            },
        );
        x.at(i).set(tile.at(t));
    })?;
    check_sort(jit, &kernel)
}

/// Bins in shared memory, then in global memory; more bins than threads and fewer.
fn histograms(jit: &Jit) -> Outcome {
    let kernel = Kernel::build("histogram", |k| {
        let (bins, x) = (k.slice_mut("bins", Type::U32), k.slice("x", Type::U32));
        let mine = k.shared_array("mine", Type::U32, 300);
        let (t, threads) = (k.thread_idx().x(), k.block_dim().x());
        let each_bin = |act: &dyn Fn(Val<'_>)| {
            k.for_loop(t, bins.len(), threads, Unroll::Auto, act);
        };
        each_bin(&|bin| mine.at(bin).set(0));
        k.barrier();
        let (first, step) = (k.global_id().x(), k.global_size_x());
        k.for_loop(first, x.len(), step, Unroll::Auto, |i| {
            mine.at(x.at(i) % bins.len()).atomic_add(1);
        });
        k.barrier();
        each_bin(&|bin| {
            k.if_(mine.at(bin).get().ne(0), || {
                bins.at(bin).atomic_add(mine.at(bin));
            });
        });
    })?;
    for block in BLOCKS {
        for count in [1usize, 10, 300] {
            let hx = numbers(2345);
            let x = jit.upload(&hx)?;
            let got = run_blocks(jit, &kernel, 3, block as u32, &vec![0; count], args!(&x))?;
            let mut want = vec![0u32; count];
            hx.iter().for_each(|x| want[*x as usize % count] += 1);
            assert_eq!(got, want, "{count} bins, {block} threads");
        }
    }
    Ok(())
}

/// Elements that pass go to slots that an atomic in shared memory gives, after room that one in
/// global memory gives to the block: what an atomic returns is an index.
fn compaction_by_atomic_slots(jit: &Jit) -> Outcome {
    let kernel = Kernel::build("slots", |k| {
        let (out, x) = (k.slice_mut("out", Type::U32), k.slice("x", Type::U32));
        let count = k.slice_mut("count", Type::U32);
        let shared = k.shared_array("shared", Type::U32, 2);
        let (taken, room) = (shared.at(0), shared.at(1));
        let (t, i) = (linear(k), k.global_id().x());
        k.if_(t.eq(0), || taken.set(0));
        k.barrier();
        let (passes, slot) = (k.var("passes", false), k.var("slot", 0u32));
        k.if_(i.lt(x.len()), || passes.set((x.at(i) % 3).eq(1)));
        k.if_(passes, || slot.set(taken.atomic_add(1)));
        k.barrier();
        k.if_(t.eq(0), || room.set(count.at(0).atomic_add(taken)));
        k.barrier();
        k.if_(passes, || out.at(room + slot).set(x.at(i)));
    })?;
    for block in BLOCKS {
        let hx = numbers(777);
        let x = jit.upload(&hx)?;
        let mut count = jit.zeros::<u32>(1)?;
        let grid = grid_for(hx.len(), block as u32);
        let more = owned_args!(&x, &mut count);
        let mut got = run_blocks(jit, &kernel, grid, block as u32, &vec![0; 777], more)?;
        let mut want: Vec<u32> = hx.iter().copied().filter(|x| x % 3 == 1).collect();
        assert_eq!(count.to_vec()?, [want.len() as u32]);
        got.truncate(want.len());
        got.sort_unstable();
        want.sort_unstable();
        assert_eq!(got, want, "{block} threads");
    }
    Ok(())
}
