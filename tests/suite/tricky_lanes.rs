//! Tricky kernels, lanes that part: loops that each lane leaves in its own iteration and in its own
//! way, and code that must not run, or must do no harm, in lanes that are not there.

use kiln::prelude::*;

use super::warp::noise;
use super::{Outcome, chapter, run_blocks};

chapter![
    mandelbrot_in_integers,
    collatz_with_returns,
    nested_loops_left_in_all_ways,
    loops_in_device_functions,
    hazards_behind_branches,
    addresses_behind_branches,
    loops_that_would_not_end,
    memory_not_written_in_lanes_not_there,
    an_operation_for_each_lane,
];

const BLOCKS: [u32; 8] = [1, 7, 32, 33, 100, 256, 1000, 1024];

/// Runs a kernel with the parameters `out` and `x`, an element for each thread, in blocks of all
/// sizes, and compares with a model of a thread, which is given its `x` and its index.
fn check(
    jit: &Jit,
    describe: impl FnOnce(&KernelBuilder),
    n: usize,
    input: fn(usize) -> u32,
    model: impl Fn(u32, u32) -> u32,
) -> Outcome {
    let kernel = Kernel::build("lanes", describe)?;
    let hx: Vec<u32> = (0..n).map(input).collect();
    let x = jit.upload(&hx)?;
    for block in BLOCKS {
        let grid = grid_for(n, block);
        let out = run_blocks(jit, &kernel, grid, block, &vec![7; n], args!(&x))?;
        for (i, (&got, &x)) in (0u32..).zip(out.iter().zip(&hx)) {
            assert_eq!(got, model(x, i), "thread {i} in blocks of {block}, x = {x}");
        }
    }
    Ok(())
}

/// The result's place and `x` of this thread; a thread beyond the end has returned.
fn mine(k: &KernelBuilder) -> (Place<'_>, Val<'_>) {
    let (out, x) = (k.slice_mut("out", Type::U32), k.slice("x", Type::U32));
    let i = k.global_id().x();
    k.if_(i.ge(x.len()), || k.return_());
    (out.at(i), x.at(i).get())
}

fn squared(z: Var<'_>) -> Val<'_> {
    (z * z) >> 12
}

/// Fixed point with 12 bits of fraction: every backend computes the same.
fn mandelbrot_in_integers(jit: &Jit) -> Outcome {
    const WIDE: u32 = 24;
    let describe = |k: &KernelBuilder| {
        let (out, x) = mine(k);
        let cx = (x % WIDE).cast_to::<i32>() * 512 - 8192;
        let cy = (x / WIDE).cast_to::<i32>() * 512 - 5000;
        let (zx, zy) = (k.var("zx", 0i32), k.var("zy", 0i32));
        let steps = k.var("steps", 0u32);
        k.while_(
            || steps.get().lt(60) & (squared(zx) + squared(zy)).le(4 << 12),
            || {
                let next = squared(zx) - squared(zy) + cx;
                zy.set(((zx * zy) >> 11) + cy);
                zx.set(next);
                steps.set(steps + 1);
            },
        );
        out.set(steps);
    };
    check(
        jit,
        describe,
        480,
        |i| i as u32,
        |x, _| {
            let (cx, cy) = (
                (x % WIDE) as i32 * 512 - 8192,
                (x / WIDE) as i32 * 512 - 5000,
            );
            let (mut zx, mut zy, mut steps) = (0i32, 0i32, 0);
            while steps < 60 && ((zx * zx) >> 12) + ((zy * zy) >> 12) <= 4 << 12 {
                (zx, zy) = (
                    ((zx * zx) >> 12) - ((zy * zy) >> 12) + cx,
                    ((zx * zy) >> 11) + cy,
                );
                steps += 1;
            }
            steps
        },
    )
}

fn collatz_with_returns(jit: &Jit) -> Outcome {
    let describe = |k: &KernelBuilder| {
        let (out, x) = mine(k);
        let (n, steps) = (k.var("n", x % 500), k.var("steps", 0u32));
        k.loop_(|| {
            k.if_(n.get().le(1), || {
                out.set(steps);
                k.return_();
            });
            steps.set(steps + 1);
            k.if_((n % 2).eq(0), || {
                n.set(n / 2);
                k.continue_();
            });
            n.set(n * 3 + 1);
            // Some give up.
            k.if_(steps.get().gt(90), || k.break_());
        });
        out.set(n + 100_000);
    };
    check(jit, describe, 600, noise, |x, _| {
        let (mut n, mut steps) = (x % 500, 0);
        while n > 1 {
            steps += 1;
            if n.is_multiple_of(2) {
                n /= 2;
                continue;
            }
            n = n * 3 + 1;
            if steps > 90 {
                return n + 100_000;
            }
        }
        steps
    })
}

/// Breaks, continues, both of the outer loop, and returns, at three levels.
fn nested_loops_left_in_all_ways(jit: &Jit) -> Outcome {
    let describe = |k: &KernelBuilder| {
        let (out, x) = mine(k);
        let sum = k.var("sum", 0u32);
        k.for_range(0u32, x % 7, |a| {
            k.if_((a + x / 8 % 5).eq(4), || k.continue_());
            let b = k.var("b", a);
            k.while_(
                || b.get().lt(x / 64 % 11),
                || {
                    b.set(b + 1);
                    sum.set(sum * 3 + a + b);
                    k.if_(((sum ^ b) % 13).eq(5), || k.continue_out(1));
                    k.for_range(b, b + sum % 4, |c| {
                        k.if_((sum % 9).eq(c), || k.break_());
                        k.if_((sum % 17).eq(c), || k.continue_out(1));
                        k.if_((sum % 31).eq(c + 7), || k.break_out(2));
                        k.if_((sum % 101).eq(c), || {
                            out.set(sum + 1);
                            k.return_();
                        });
                        sum.set(sum * 5 + c);
                    });
                    sum.set(sum + 1);
                },
            );
            sum.set(sum ^ b);
        });
        out.set(sum);
    };
    check(jit, describe, 1500, noise, |x, _| nested_model(x))
}

fn nested_model(x: u32) -> u32 {
    let mut sum = 0u32;
    'a: for a in 0..x % 7 {
        if a + x / 8 % 5 == 4 {
            continue;
        }
        let mut b = a;
        'b: while b < x / 64 % 11 {
            b += 1;
            sum = sum.wrapping_mul(3).wrapping_add(a + b);
            if (sum ^ b) % 13 == 5 {
                continue 'a;
            }
            for c in b..b + sum % 4 {
                if sum % 9 == c {
                    break;
                }
                if sum % 17 == c {
                    continue 'b;
                }
                if sum % 31 == c + 7 {
                    break 'a;
                }
                if sum % 101 == c {
                    return sum.wrapping_add(1);
                }
                sum = sum.wrapping_mul(5).wrapping_add(c);
            }
            sum = sum.wrapping_add(1);
        }
        sum ^= b;
    }
    sum
}

/// A function that returns from the middle of its loop, called in branches and loops.
fn loops_in_device_functions(jit: &Jit) -> Outcome {
    let smallest_factor = DeviceFn::build("smallest_factor", |f| {
        let n = f.param("n", Type::U32);
        f.if_(n.lt(2), || f.return_value(f.lit(Type::U32, 1)));
        f.for_range(2u32, n, |d| {
            f.if_((n % d).eq(0), || f.return_value(d));
            f.if_((d * d).gt(n), || f.break_());
        });
        f.return_value(n);
    })?;
    let describe = |k: &KernelBuilder| {
        let (out, x) = mine(k);
        let (n, factors) = (k.var("n", x % 1000), k.var("factors", 0u32));
        k.while_(
            || n.get().gt(1),
            || {
                let factor = k.call(&smallest_factor, &[n.get()]);
                factors.set(factors * 2 + factor);
                n.set(n / factor);
            },
        );
        k.if_((x & 1).eq(1), || {
            out.set(k.call(&smallest_factor, &[x / 2 % 100]) + factors)
        })
        .else_(|| out.set(factors));
    };
    check(jit, describe, 500, noise, |x, _| {
        let smallest = |n: u32| (2..n).find(|d| n.is_multiple_of(*d)).unwrap_or(n.max(1));
        let (mut n, mut factors) = (x % 1000, 0);
        while n > 1 {
            let factor = smallest(n);
            factors = factors * 2 + factor;
            n /= factor;
        }
        match x & 1 {
            1 => smallest(x / 2 % 100) + factors,
            _ => factors,
        }
    })
}

/// Operations that are guarded because they would trap or mean nothing on some machines.
fn hazards_behind_branches(jit: &Jit) -> Outcome {
    let describe = |k: &KernelBuilder| {
        let (out, x) = mine(k);
        let sum = k.var("sum", 0u32);
        let d = x % 3;
        k.if_(d.ne(0), || sum.set(sum + 1000 / d + 1000 % (d + 1)));
        let (low, minus) = (x.cast_to::<i32>() - (1 << 23), k.var("minus", 0i32));
        // i32::MIN / -1, but not here.
        let (a, b) = ((low >> 31) & i32::MIN, -(x & 1).cast_to::<i32>());
        k.if_(a.ne(i32::MIN) & b.ne(0), || minus.set((a + 5) / b % 3));
        let wide = a.cast_to::<i64>() << 32;
        k.if_(wide.eq(0) & b.ne(0), || {
            minus.set(minus + (wide / b.cast_to::<i64>()).cast_to::<i32>())
        });
        k.if_(low.ge(0), || {
            let root = low.cast_to::<f32>().sqrt();
            sum.set(sum + root.cast_to::<u32>());
        });
        let shift = x % 64;
        k.if_(shift.lt(32), || sum.set(sum ^ k.lit(Type::U32, 1) << shift))
            .else_(|| {
                sum.set(
                    sum + (k.lit(Type::U64, 1) << shift.cast_to::<u64>() >> 33u64).cast_to::<u32>(),
                )
            });
        out.set(sum + minus.get().cast_to::<u32>());
    };
    check(jit, describe, 700, noise, |x, _| {
        let d = x % 3;
        let mut sum = 1000u32.checked_div(d).map_or(0, |q| q + 1000 % (d + 1));
        let low = x as i32 - (1 << 23);
        let mut minus = 0;
        if low >= 0 && x & 1 == 1 {
            minus = 5 / -1 % 3;
        }
        if low >= 0 {
            sum += (low as f32).sqrt() as u32;
        }
        match x % 64 {
            shift @ 0..32 => sum ^= 1 << shift,
            shift => sum = sum.wrapping_add((1u64 << shift >> 33) as u32),
        }
        sum.wrapping_add(minus as u32)
    })
}

/// An index that is beyond everything unless `is_near`.
fn far_unless<'k>(is_near: Val<'k>, near: Val<'k>) -> Val<'k> {
    let near = near.cast_to::<u64>();
    is_near.select(near, near + (1u64 << 40))
}

/// Unchecked accesses far from everything, behind conditions that keep most lanes away.
fn addresses_behind_branches(jit: &Jit) -> Outcome {
    let describe = |k: &KernelBuilder| {
        let (out, x) = (k.slice_mut("out", Type::U32), k.slice("x", Type::U32));
        let i = k.global_id().x();
        let n = x.len();
        k.if_(i.ge(n), || k.return_());
        let v = k.var("v", x.at(i));
        let is_near = (v % 3).eq(0);
        let at = far_unless(is_near, (i * 7) % n);
        // SAFETY: in the lanes that come here the index is below the length.
        k.if_(is_near, || v.set(unsafe { x.at_unchecked(at) } + 1));
        let table = k.local_array(Type::U32, 8);
        k.for_range(0u32, 8u32, |j| table.at(j).set(j * j));
        let small = (v % 16).lt(8);
        let at = small.select(v % 16, v + 1_000_000u32);
        // SAFETY: the same.
        k.if_(small, || v.set(v + unsafe { table.at_unchecked(at) }));
        let stored = (v % 2).eq(0);
        let at = far_unless(stored, i);
        // SAFETY: the same; each thread has its own element.
        k.if_(stored, || unsafe { out.at_unchecked(at) }.set(v));
    };
    let host: Vec<u32> = (0..900).map(noise).collect();
    check(jit, describe, 900, noise, |x, i| {
        let mut v = x;
        if v.is_multiple_of(3) {
            v = host[i as usize * 7 % 900] + 1;
        }
        if v % 16 < 8 {
            v += (v % 16) * (v % 16);
        }
        if v.is_multiple_of(2) { v } else { 7 }
    })
}

/// Loops that would run for ever in the lanes that are kept away from them, or that left them.
fn loops_that_would_not_end(jit: &Jit) -> Outcome {
    let describe = |k: &KernelBuilder| {
        let (out, x) = mine(k);
        let (i, rounds) = (k.var("i", 0u32), k.var("rounds", 0u32));
        k.if_((x % 2).eq(0), || {
            // Even steps meet an even end, after all others have left.
            k.while_(
                || i.get().ne(x % 40),
                || {
                    i.set(i + 2);
                    let j = k.var("j", i.get() % 6);
                    // 6 - j is never met if j is odd, and it is not.
                    k.while_(
                        || j.get().ne(6),
                        || {
                            j.set(j + 2);
                            rounds.set(rounds + 1);
                        },
                    );
                },
            );
        });
        k.for_loop(x % 5, x % 9, x % 3, Unroll::Auto, |_| {
            rounds.set(rounds + 100)
        });
        out.set(rounds);
    };
    check(jit, describe, 600, noise, |x, _| {
        let (mut i, mut rounds) = (0, 0);
        while x % 2 == 0 && i != x % 40 {
            i += 2;
            rounds += (6 - i % 6) / 2;
        }
        // A step of 0 is a loop without iterations.
        if x % 3 != 0 && x % 9 > x % 5 {
            rounds += (x % 9 - x % 5).div_ceil(x % 3) * 100;
        }
        rounds
    })
}

/// Private memory that is written and read in some lanes only.
fn memory_not_written_in_lanes_not_there(jit: &Jit) -> Outcome {
    let describe = |k: &KernelBuilder| {
        let (out, x) = mine(k);
        let stack = k.local_array(Type::U32, 16);
        let (depth, sum) = (k.var("depth", 0u32), k.var("sum", 0u32));
        // The digits of x to the base 5, pushed and popped: each lane as many as it has.
        let rest = k.var("rest", x);
        k.while_(
            || rest.get().gt(0),
            || {
                stack.at(depth).set(rest % 5);
                depth.set(depth + 1);
                rest.set(rest / 5);
            },
        );
        k.while_(
            || depth.get().gt(0),
            || {
                depth.set(depth - 1);
                sum.set(sum * 3 + stack.at(depth));
            },
        );
        // A variable that is assigned where it is read, and nowhere else.
        let late = k.uninit_var("late", Type::U32);
        k.if_((x % 4).eq(1), || late.set(sum * 2));
        k.if_((x % 4).eq(1), || sum.set(sum + late));
        out.set(sum);
    };
    check(jit, describe, 700, noise, |x, _| {
        let mut digits = Vec::new();
        let mut rest = x;
        while rest > 0 {
            digits.push(rest % 5);
            rest /= 5;
        }
        let sum = digits
            .iter()
            .rev()
            .fold(0u32, |sum, d| sum.wrapping_mul(3).wrapping_add(*d));
        if x % 4 == 1 { sum.wrapping_mul(3) } else { sum }
    })
}

fn edge_operation<'k>(which: u32, a: Val<'k>, b: Val<'k>) -> Val<'k> {
    let (ua, ub) = (a.cast_to::<u32>(), b.cast_to::<u32>());
    let float = || a.cast_to::<f64>() / b.cast_to::<f64>() * 3.0;
    let result = match which {
        0 => a / b,
        1 => a % b,
        2 => a << b,
        3 => a >> b,
        4 => ua / ub,
        5 => ua >> ub,
        6 => float().cast_to::<i32>(),
        7 => float().cast_to::<u32>(),
        8 => float().cast_to::<i8>(),
        _ => (a.cast_to::<f32>() * 1e30).sqrt().cast_to::<i64>(),
    };
    result.cast_to::<i32>()
}

/// Neighbours do different things to the same numbers, the ones at the edge of their types.
fn an_operation_for_each_lane(jit: &Jit) -> Outcome {
    const EDGES: [i32; 8] = [0, 1, -1, i32::MIN, i32::MAX, 33, -33, 7];
    let describe = |k: &KernelBuilder| {
        let (out, x) = mine(k);
        let edges = k.constant_array("edges", &EDGES);
        let (a, b) = (edges.at(x % 8).get(), edges.at(x / 8 % 8).get());
        let result = k.var("result", 0i32);
        for which in 0..10 {
            k.if_((x / 64 % 10).eq(which), || {
                result.set(edge_operation(which, a, b))
            });
        }
        out.set(result.get().cast_to::<u32>());
    };
    let input = |i: usize| (i as u32 * 71) % 640;
    check(jit, describe, 640, input, |x, _| {
        let (a, b) = (EDGES[x as usize % 8], EDGES[x as usize / 8 % 8]);
        let (ua, ub) = (a as u32, b as u32);
        let float = f64::from(a) / f64::from(b) * 3.0;
        let result = match x / 64 % 10 {
            // The IR's rules: x / 0 and MIN / -1 are the dividend, shifts count modulo the width.
            0 => a.checked_div(b).unwrap_or(a),
            1 => a.checked_rem(b).unwrap_or(0),
            2 => a.wrapping_shl(ub),
            3 => a.wrapping_shr(ub),
            4 => ua.checked_div(ub).unwrap_or(ua) as i32,
            5 => ua.wrapping_shr(ub) as i32,
            6 => float as i32,
            7 => float as u32 as i32,
            8 => i32::from(float as i8),
            _ => (a as f32 * 1e30).sqrt() as i64 as i32,
        };
        result as u32
    })
}
