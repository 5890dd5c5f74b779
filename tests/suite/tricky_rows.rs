//! Tricky kernels, rows: accesses of neighbouring elements by some of the lanes, at the edges of
//! arrays and of index types, and branches that one lane of a row takes.

use kiln::prelude::*;

use super::warp::noise;
use super::{Outcome, chapter, owned_args, run_blocks};

chapter![
    rows_that_hang_over_an_edge,
    rows_of_signed_and_wide_indices,
    rows_written_over_an_edge,
    rows_between_barriers,
    a_leader_in_each_row,
    a_leader_that_returns,
];

const BLOCKS: [u32; 6] = [1, 31, 64, 100, 128, 1000];

fn input(n: u32) -> Vec<u32> {
    (0..n as usize).map(noise).collect()
}

/// An element some places before or behind, where there is one: the index wraps around in the lanes
/// that do not access anything.
fn rows_that_hang_over_an_edge(jit: &Jit) -> Outcome {
    const N: u32 = 700;
    let kernel = Kernel::build("edges", |k| {
        let (out, x) = (k.slice_mut("out", Type::U32), k.slice("x", Type::U32));
        let i = k.global_id().x();
        k.if_(i.ge(x.len()), || k.return_());
        let sum = k.var("sum", 0u32);
        k.for_range(0u32, 90u32, |s| {
            k.if_(i.ge(s), || sum.set(sum * 3 + x.at(i - s)));
            k.if_((i + s).lt(x.len()), || sum.set(sum * 5 + x.at(i + s)));
            // An edge on both sides, and a step that no vector has.
            k.if_(i.ge(s * 7) & (i - s * 7).lt(N - 40), || {
                sum.set(sum ^ x.at(i - s * 7 + 40));
            });
        });
        out.at(i).set(sum);
    })?;
    let hx = input(N);
    let x = jit.upload(&hx)?;
    let model = |i: u32| {
        let at = |i: u32| hx[i as usize];
        let mut sum = 0u32;
        for s in 0..90 {
            if i >= s {
                sum = sum.wrapping_mul(3).wrapping_add(at(i - s));
            }
            if i + s < N {
                sum = sum.wrapping_mul(5).wrapping_add(at(i + s));
            }
            if i >= s * 7 && i - s * 7 < N - 40 {
                sum ^= at(i - s * 7 + 40);
            }
        }
        sum
    };
    for block in BLOCKS {
        let grid = grid_for(N as usize, block);
        let out = run_blocks(
            jit,
            &kernel,
            grid,
            block,
            &vec![7u32; N as usize],
            args!(&x),
        )?;
        for (i, &got) in (0u32..).zip(&out) {
            assert_eq!(got, model(i), "thread {i} in blocks of {block}");
        }
    }
    Ok(())
}

/// The same with indices below zero, of 16, 32 and 64 bits, and elements of 2 and 8 bytes.
fn rows_of_signed_and_wide_indices(jit: &Jit) -> Outcome {
    const N: u32 = 300;
    let kernel = Kernel::build("indices", |k| {
        let out = k.slice_mut("out", Type::U64);
        let (x, y) = (k.slice("x", Type::U64), k.slice("y", Type::U16));
        let i = k.global_id().x();
        k.if_(i.ge(x.len()), || k.return_());
        let sum = k.var("sum", 0u64);
        k.for_range(0u32, 80u32, |s| {
            let near = i.cast_to::<i32>() - s.cast_to::<i32>();
            k.if_(near.ge(0), || sum.set(sum * 3 + x.at(near)));
            let narrow = i.cast_to::<i16>() - s.cast_to::<i16>() * 2;
            k.if_(narrow.ge(0), || {
                sum.set(sum * 5 + y.at(narrow).get().cast_to::<u64>());
            });
            let wide = i.cast_to::<i64>() + s.cast_to::<i64>() - 40;
            k.if_(wide.ge(0) & wide.lt(i64::from(N)), || {
                sum.set(sum * 7 + x.at(wide));
            });
        });
        out.at(i).set(sum);
    })?;
    let hx: Vec<u64> = input(N).iter().map(|&x| u64::from(x) << 20).collect();
    let hy: Vec<u16> = input(N).iter().map(|&x| x as u16).collect();
    let (x, y) = (jit.upload(&hx)?, jit.upload(&hy)?);
    let model = |i: i64| {
        let mut sum = 0u64;
        for s in 0..80 {
            if i >= s {
                sum = sum.wrapping_mul(3).wrapping_add(hx[(i - s) as usize]);
            }
            if i >= 2 * s {
                let y = hy[(i - 2 * s) as usize];
                sum = sum.wrapping_mul(5).wrapping_add(y.into());
            }
            if (0..i64::from(N)).contains(&(i + s - 40)) {
                sum = sum.wrapping_mul(7).wrapping_add(hx[(i + s - 40) as usize]);
            }
        }
        sum
    };
    for block in BLOCKS {
        let (grid, before) = (grid_for(N as usize, block), vec![7u64; N as usize]);
        let out = run_blocks(jit, &kernel, grid, block, &before, args!(&x, &y))?;
        for (i, &got) in (0i64..).zip(&out) {
            assert_eq!(got, model(i), "thread {i} in blocks of {block}");
        }
    }
    Ok(())
}

/// What lies beside a row stays as it is.
fn rows_written_over_an_edge(jit: &Jit) -> Outcome {
    const SHIFTS: u32 = 90;
    let kernel = Kernel::build("written", |k| {
        let out = k.slice_mut("out", Type::U32);
        let (i, width) = (k.thread_idx().x(), k.block_dim().x());
        k.for_range(0u32, SHIFTS, |s| {
            // A row of `out` for each shift: its first elements are nobody's.
            let row = s * width;
            k.if_(i.lt(width - s % width), || {
                out.at(row + s % width + i).set(row + i);
            });
            k.if_(i.ge(s) & i.lt(width - 1), || {
                // The last row is added to.
                out.at(width * SHIFTS + i - s).atomic_add(1);
            });
        });
    })?;
    for block in [1u32, 40, 64, 96, 256] {
        let len = (block * (SHIFTS + 1)) as usize;
        let out = run_blocks(jit, &kernel, 1, block, &vec![0u32; len], args!())?;
        let mut expected = vec![0u32; len];
        for s in 0..SHIFTS {
            for i in 0..block {
                let from = s % block;
                if i < block - from {
                    expected[(s * block + from + i) as usize] = s * block + i;
                }
                if i >= s && i + 1 < block {
                    expected[(block * SHIFTS + i - s) as usize] += 1;
                }
            }
        }
        assert_eq!(out, expected, "a block of {block}");
    }
    Ok(())
}

/// Sums of what lies up to 2^n places before, in shared memory, as in a scan.
fn rows_between_barriers(jit: &Jit) -> Outcome {
    const MOST: u32 = 256;
    let kernel = Kernel::build("scan", |k| {
        let (out, x) = (k.slice_mut("out", Type::U32), k.slice("x", Type::U32));
        let tile = k.shared_array("tile", Type::U32, 2 * MOST);
        let (t, i) = (k.thread_idx().x(), k.global_id().x());
        let to = k.var("to", 0u32);
        tile.at(t).set(x.at(i));
        k.barrier();
        let step = k.var("step", 1u32);
        k.while_(
            || step.get().lt(k.block_dim().x()),
            || {
                let from = to.get();
                to.set(MOST - from);
                let sum = k.var("sum", tile.at(from + t));
                k.if_(t.ge(step), || sum.set(sum + tile.at(from + t - step)));
                tile.at(to + t).set(sum);
                k.barrier();
                step.set(step * 2);
            },
        );
        out.at(i).set(tile.at(to + t));
    })?;
    for block in [1u32, 16, 33, 64, 100, 128, 256] {
        let n = block * 3;
        let hx = input(n);
        let x = jit.upload(&hx)?;
        let out = run_blocks(jit, &kernel, 3, block, &vec![7u32; n as usize], args!(&x))?;
        let sums = hx.chunks(block as usize).flat_map(|xs| {
            xs.iter().scan(0u32, |sum, &x| {
                *sum = sum.wrapping_add(x);
                Some(*sum)
            })
        });
        assert_eq!(out, sums.collect::<Vec<_>>(), "blocks of {block}");
    }
    Ok(())
}

/// One thread of a block works with values of all kinds that it had before, and all go on.
fn a_leader_in_each_row(jit: &Jit) -> Outcome {
    let kernel = Kernel::build("leader", |k| {
        let out = k.slice_mut("out", Type::U32);
        let (x, count) = (k.slice("x", Type::U32), k.slice_mut("count", Type::U32));
        let (t, i) = (k.thread_idx().x(), k.global_id().x());
        let leader = k.block_idx().x() * 37 % k.block_dim().x();
        let mine = k.local_array(Type::U32, 4);
        k.for_range(0u32, 4u32, |n| mine.at(n).set(x.at(i) + n * i));
        let (sum, odd) = (k.var("sum", x.at(i)), k.var("odd", i * 2 + 1));
        k.if_((t + 5).eq(leader + 5) & (i % 3).lt(2), || {
            k.for_range(0u32, (x.at(i) % 9).min(7), |n| {
                sum.set(sum * 3 + mine.at(n % 4));
                k.if_(sum.get().gt(1u32 << 30), || k.break_());
            });
            mine.at(sum % 4).set(t);
            k.if_((odd % 4).eq(1), || {
                count.at(0).atomic_add(1);
                odd.set(t);
            })
            .else_(|| odd.set(sum ^ x.at(leader)));
        });
        out.at(i).set(sum + odd + mine.at(i % 4));
    })?;
    const BLOCKS: u32 = 5;
    for block in [1u32, 8, 32, 64, 96, 200] {
        let n = block * BLOCKS;
        let hx = input(n);
        let x = jit.upload(&hx)?;
        let mut count = jit.upload(&[0u32])?;
        let before = vec![7u32; n as usize];
        let out = run_blocks(
            jit,
            &kernel,
            BLOCKS,
            block,
            &before,
            owned_args!(&x, &mut count),
        )?;
        let mut counted = 0;
        for i in 0..n {
            let (t, leader) = (i % block, i / block * 37 % block);
            let at = |i: u32| hx[i as usize];
            let mut mine = [0, 1, 2, 3].map(|n: u32| at(i).wrapping_add(n * i));
            let (mut sum, mut odd) = (at(i), i * 2 + 1);
            if t == leader && i % 3 < 2 {
                for n in 0..(at(i) % 9).min(7) {
                    sum = sum.wrapping_mul(3).wrapping_add(mine[n as usize % 4]);
                    if sum > 1 << 30 {
                        break;
                    }
                }
                mine[sum as usize % 4] = t;
                if odd % 4 == 1 {
                    counted += 1;
                    odd = t;
                } else {
                    odd = sum ^ at(leader);
                }
            }
            let expected = sum.wrapping_add(odd).wrapping_add(mine[i as usize % 4]);
            assert_eq!(out[i as usize], expected, "thread {i} in blocks of {block}");
        }
        assert_eq!(count.to_vec()?, [counted], "blocks of {block}");
    }
    Ok(())
}

/// One thread ends in its branch, the others after a barrier.
fn a_leader_that_returns(jit: &Jit) -> Outcome {
    let kernel = Kernel::build("returns", |k| {
        let (out, x) = (k.slice_mut("out", Type::U32), k.slice("x", Type::U32));
        let tile = k.shared_array("tile", Type::U32, 256);
        let (t, i) = (k.thread_idx().x(), k.global_id().x());
        tile.at(t).set(x.at(i));
        k.barrier();
        k.if_(t.eq(k.block_idx().x() + 3), || {
            out.at(i).set(tile.at(t) * 2 + tile.at(0));
            k.return_();
        });
        k.if_(t.eq(1u32), || tile.at(t + 1).set(i));
        k.barrier();
        out.at(i).set(tile.at((t + 1) % k.block_dim().x()));
    })?;
    for block in [8u32, 33, 64, 128, 256] {
        let n = block * 4;
        let hx = input(n);
        let x = jit.upload(&hx)?;
        let out = run_blocks(jit, &kernel, 4, block, &vec![7u32; n as usize], args!(&x))?;
        for i in 0..n {
            let (t, first) = (i % block, i / block * block);
            let at = |t: u32| hx[(first + t) as usize];
            let next = (t + 1) % block;
            let expected = if t == i / block + 3 {
                at(t).wrapping_mul(2).wrapping_add(at(0))
            } else if next == 2 {
                first + 1
            } else {
                at(next)
            };
            assert_eq!(out[i as usize], expected, "thread {i} in blocks of {block}");
        }
    }
    Ok(())
}
