//! Closures in kernels: passed to device functions, captured variables, generic functions, functions
//! that pass them on. Each function runs on the host and as a kernel.

#![allow(clippy::all, reason = "the ways to write something are what is tested")]

use kiln::prelude::*;

use super::Outcome;
use super::rust_language::on_host_and_device;

#[device_fn]
fn apply<T: Num, F: Fn(T) -> T>(x: T, f: F) -> T {
    f(x)
}

#[device_fn]
fn fold<T, A, F>(values: &[T], start: A, mut f: F) -> A
where
    T: Num,
    A: Num,
    F: FnMut(A, T) -> A,
{
    let mut result = start;
    for i in 0..values.len() {
        result = f(result, values[i]);
    }
    result
}

#[device_fn]
fn find<F: Fn(usize) -> bool>(end: usize, is_it: F) -> i32 {
    if end == 0 {
        return -2;
    }
    for i in 0..end {
        'inner: for k in 0..3usize {
            if k == 2 {
                continue 'inner;
            }
            if is_it(i * 2 + k) {
                return (i * 2 + k) as i32;
            }
        }
    }
    -1
}

#[device_fn]
fn each<F: FnMut(i32)>(n: i32, f: &mut F) {
    for i in 0..n {
        f(i);
    }
}

#[device_fn]
fn both<F: Fn(i32) -> i32, G: Fn(i32, i32) -> (i32, i32)>(f: F, x: i32, g: &G) -> i32 {
    let (a, b) = g(f(x), x);
    a.wrapping_mul(7) ^ b
}

/// One of the closures has no name.
#[device_fn]
fn second<F: Fn(i32) -> i32, G: Fn(i32) -> i32>(_: F, x: i32, g: G) -> i32 {
    g(x)
}

#[device_fn]
fn twice<F: Fn(i32) -> i32>(x: i32, f: F) -> i32 {
    apply(apply(x, &f), |v| f(v).wrapping_add(1))
}

#[device_fn]
fn square(x: i32) -> i32 {
    x.wrapping_mul(x)
}

#[device_fn]
fn inlined(x: i32) -> i32 {
    let by = 3;
    apply(x, |v| v.wrapping_mul(by).wrapping_add(1)) ^ apply(x, |v| square(v))
}

#[device_fn]
fn named(x: i32) -> i32 {
    let half = |v: i32| v / 2;
    let f = |a: i32, b| if a > b { half(a) } else { b };
    let g = || f(x, 10);
    let f = f(x, 5) ^ g();
    f
}

#[device_fn]
fn generic(x: i32) -> i32 {
    let a = apply(x as f32, |v| v * 0.5 + 1.0);
    let b = apply::<u8, _>(x as u8, |v| v.wrapping_add(200));
    let c = apply((x & 7) as u64, |v| apply(v + 1, |w| w * v));
    a as i32 ^ b as i32 ^ c as i32
}

#[device_fn]
fn folding(x: i32) -> i32 {
    let values = [x & 15, 3, -4, x & 1];
    let mut count = 0;
    let sum = fold(&values, 0i64, |sum, v| {
        if v > 0 {
            count += 1;
        }
        sum + v as i64 * 1_000_000
    });
    let largest = fold(&values, 0.5f32, |a, v| a.max(v as f32));
    (sum >> 4) as i32 ^ count ^ largest as i32
}

#[device_fn]
fn finding(x: i32) -> i32 {
    let wanted = (x & 31) as usize;
    find(10, |i| i == wanted) * 100 + find(wanted & 1, |i| i > 100) + find(4, |_| x > 3)
}

#[device_fn]
fn assigning(x: i32) -> i32 {
    let (mut sum, mut last) = (0, (0, 7));
    let mut seen = [0; 4];
    let mut note = |i: i32| {
        sum += i;
        last.0 = i;
        seen[(i & 3) as usize] += 1;
    };
    each(x & 7, &mut note);
    note(100);
    sum * 1000 + last.0 + last.1 + seen[0] * 10 + seen[1]
}

#[device_fn]
fn counting(x: i32) -> i32 {
    let mut n = x & 3;
    let mut next = || {
        n += 1;
        n
    };
    let a = [next(), next() * 10, next() * 100];
    let b = next() - next() * 2;
    a[0] + a[1] + a[2] + b
}

#[device_fn]
fn passed_on(x: i32) -> i32 {
    let k = x & 15;
    let third = second(|v| v + 1, k, |v| v * 5);
    twice(k, |v| v * 3) + both(|v| v ^ k, x, &|a, b| (b, a.wrapping_add(k))) + third
}

#[device_fn]
fn in_loops(x: i32) -> i32 {
    let mut total = 0i32;
    for i in 0..5 {
        if find(6, |j| j as i32 == i + (x & 3)) < 0 {
            continue;
        }
        let double = |v: i32| {
            let mut r = v;
            while r < i * 4 {
                r += 3;
                if r % 7 == 0 {
                    break;
                }
            }
            r
        };
        total = total.wrapping_mul(5).wrapping_add(double(x & 7));
    }
    total
}

#[device_fn]
fn nested(x: i32) -> i32 {
    let base = x & 7;
    let outer = |v: i32| {
        let inner = |w: i32| w * 2 + base;
        let v = inner(v) + apply(v, |w| inner(w + v));
        inner(v)
    };
    let base = outer(base);
    outer(1).wrapping_mul(base)
}

#[device_fn]
fn in_arms(x: i32) -> i32 {
    let f = |v: i32| v + 1;
    match x & 3 {
        0 => {
            let f = |v: i32| v * 100;
            f(x & 15)
        }
        1 => f(x),
        f if f == 2 => f + 7,
        _ => apply(x, &f),
    }
}

on_host_and_device! {
    inlined named generic folding finding assigning counting passed_on in_loops nested in_arms
    early moving;
    closures_over_slices_and_shared_memory
}

#[device_fn]
fn reduce_block<T: Num, F: Fn(T, T) -> T>(tile: &mut [T], combine: F) -> T {
    let thread = thread_idx().x;
    let mut half = tile.len() / 2;
    while half > 0 {
        if thread < half {
            tile[thread] = combine(tile[thread], tile[thread + half]);
        }
        barrier();
        half /= 2;
    }
    tile[0]
}

#[kernel]
fn reductions<T: Num>(x: &[T], by: T, out: &mut [T]) {
    let tile = shared!([T; 64]);
    let i = thread_idx().x;
    tile[i] = x[i];
    barrier();
    let largest = reduce_block(tile, |a, b| a.max(b));
    barrier();
    tile[i] = x[i];
    barrier();
    let sum = reduce_block(tile, |a, b| a + b * T::ONE);
    if i == 0 {
        out[0] = apply(largest, |v| v * by);
        out[1] = sum;
    }
}

fn closures_over_slices_and_shared_memory(jit: &Jit) -> Outcome {
    let host: Vec<i32> = (0..64).map(|i| (i * 37) % 64).collect();
    let x = jit.upload(&host)?;
    let mut out = jit.zeros::<i32>(2)?;
    reductions.launch(jit, (1, 64), &x, 2, &mut out)?;
    assert_eq!(out.to_vec()?, [126, 63 * 32]);
    let x = jit.upload(&host.iter().map(|&v| v as f64).collect::<Vec<_>>())?;
    let mut out = jit.zeros::<f64>(2)?;
    reductions.launch(jit, (1, 64), &x, 0.5, &mut out)?;
    assert_eq!(out.to_vec()?, [31.5, 63.0 * 32.0]);
    Ok(())
}

#[device_fn]
fn early(x: i32) -> i32 {
    let digits = |mut n: i32, base: i32| -> i32 {
        if n == 0 {
            return 1;
        }
        let mut count = 0;
        loop {
            if n == 0 {
                return count;
            }
            for i in 0..3 {
                if n == -5 && i == 1 {
                    return 50;
                }
            }
            n /= base;
            count += 1;
        }
    };
    let mut last = 0;
    let mut note = |n: i32| {
        if n < 3 {
            return;
        }
        last = n;
    };
    for i in 0..5 {
        note(digits(x, i + 2));
    }
    let found = find(6, |i| {
        if i == 4 {
            return x > 5;
        }
        i as i32 == x
    });
    last * 10 + found + twice(x & 15, |v| if v > 7 { return 3 } else { v })
}

#[device_fn]
fn moving(x: i32) -> i32 {
    let by = x & 7;
    let mut sum = 0;
    let times = move |v: i32| v.wrapping_mul(by);
    for i in 0..4 {
        sum += times(i);
    }
    sum ^ apply(x, move |v| {
        let mut total = by;
        total = total.wrapping_add(v);
        total
    })
}
