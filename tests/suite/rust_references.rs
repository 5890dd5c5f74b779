//! References that meet: `&` of what is mutable and of what is not, arrays and slices, memory of the
//! thread, the block and the grid, in branches, loops, variables, tuples, arrays and arguments. Each
//! function runs on the host and as a kernel.

#![allow(
    unused_assignments,
    clippy::all,
    reason = "the ways to write something are what is tested"
)]

use kiln::prelude::*;

use super::Outcome;
use super::rust_language::on_host_and_device;

on_host_and_device! {
    branches arms arms_of_three_kinds branches_of_branches mutable_and_shared arrays_and_slices
    elements variables variables_with_types loops_that_move_on values_of_loops tuples_that_meet
    tuples_that_are_assigned parts_of_tuples assigned_later as_arguments through_closures
    still_mutable reborrowed methods_of_either; in_every_memory
}

#[device_fn]
fn sum(x: &[i32]) -> i32 {
    let mut sum = 0;
    for i in 0..x.len() {
        sum = sum * 3 + x[i];
    }
    sum
}

#[device_fn]
fn bump(x: &mut [i32]) -> i32 {
    for i in 0..x.len() {
        x[i] += 1;
    }
    x[0]
}

#[device_fn]
fn branches(x: i32) -> i32 {
    let mut y = [x & 7, 2, 3];
    let x3 = [x & 3, 5, 6];
    bump(&mut y);
    let a = if x > 3 { &y[..] } else { &x3[..] };
    let b = if x > 3 { &x3[..] } else { &y[..] };
    let c = if x > 9 { &y } else { &x3 };
    let d = if x > 9 { &x3 } else { &y };
    let result = sum(a) + sum(b) * 2 + c[1] + d[0];
    y[0] = result & 0xff;
    result + y[0]
}

#[device_fn]
fn arms(x: i32) -> i32 {
    let mut y = [x & 7, 2, 3, 4];
    let z = [x & 3, 5, 6];
    bump(&mut y);
    let a = match x & 3 {
        0 => &y[..],
        1 => &z[..],
        2 => &z[1..],
        _ => &y[1..3],
    };
    let b = match x & 1 {
        0 => &z[..],
        _ => &y[..],
    };
    sum(a) ^ sum(b)
}

#[device_fn]
fn arms_of_three_kinds(x: i32) -> i32 {
    let mut y = [x & 7, 2, 3, 4];
    let z = [x & 3, 5, 6];
    let a: &[i32] = match x & 7 {
        0 => &z,
        1 => &mut y,
        2 => &y[1..],
        3 => &[9, 8],
        4 => &mut y[..2],
        _ => &z[..],
    };
    sum(a)
}

#[device_fn]
fn branches_of_branches(x: i32) -> i32 {
    let mut y = [x & 7, 2, 3];
    let z = [x & 3, 5];
    let a: &[i32] = if x & 1 == 0 {
        if x & 2 == 0 { &mut y } else { &y[..1] }
    } else {
        match x & 6 {
            0 => &z,
            2 => {
                y[1] = 50;
                &y
            }
            _ => &z[1..],
        }
    };
    sum(a)
}

#[device_fn]
fn mutable_and_shared(x: i32) -> i32 {
    let mut y = [x & 7, 2];
    let z = [x & 3, 5];
    let a: &[i32] = if x & 1 == 0 { &mut y[..] } else { &z[..] };
    let first = a[0];
    let b: &[i32] = if x & 1 == 0 { &z[..] } else { &mut y[..] };
    first + b[0] * 10
}

#[device_fn]
fn arrays_and_slices(x: i32) -> i32 {
    let (y, z) = ([1, 2, x & 15], [4, 5]);
    let a: &[i32] = if x & 1 == 0 { &y } else { &z };
    let b: &[i32] = if x & 2 == 0 { &z[1..] } else { &y };
    let c: &[_] = if x & 2 == 0 { &z } else { &y[..] };
    sum(a) + sum(b) * 7 + sum(c) * 11
}

#[device_fn]
fn elements(x: i32) -> i32 {
    let mut y = [x & 7, 2];
    let z = [(x & 3, 5), (1, 2)];
    y[1] += 1;
    let a = if x & 1 == 0 { &y[1] } else { &z[0].1 };
    let b = if x & 2 == 0 { &z[1].0 } else { &y[0] };
    *a + *b * 10
}

#[device_fn]
fn variables(x: i32) -> i32 {
    let mut y = [x & 7, 2, 3];
    let z = [x & 3, 5];
    let mut s = &z[..];
    if x & 1 == 0 {
        s = &y[..];
    }
    let mut result = sum(s);
    let mut t = &y[..];
    if x & 2 == 0 {
        t = &z;
    }
    result = result * 5 + sum(t);
    y[0] = 7;
    s = &z[1..];
    t = &y;
    result + sum(s) + sum(t)
}

#[device_fn]
fn variables_with_types(x: i32) -> i32 {
    let mut y = [x & 7, 2, 3];
    let z = [x & 3, 5];
    let mut s: &[i32] = &mut y;
    if x & 1 == 0 {
        s = &z;
    }
    let mut t: &[i32; 2] = &z;
    let w = [8, 9];
    if x & 2 == 0 {
        t = &w;
    }
    sum(s) + sum(t)
}

#[device_fn]
fn loops_that_move_on(x: i32) -> i32 {
    let mut y = [x & 7, 2, 3, 4, 5, 6, 7, 8];
    let z = [40, 41, 42];
    y[2] = 9;
    let mut rest = &y[..];
    let mut result = 0;
    for i in 0..6 {
        result = result * 3 + rest[0];
        rest = if (x + i) & 3 == 0 {
            &z[1..]
        } else {
            &rest[1..]
        };
        if rest.len() < 2 {
            rest = &y[2..];
        }
    }
    result
}

#[device_fn]
fn values_of_loops(x: i32) -> i32 {
    let mut y = [x & 7, 2, 3];
    let z = [40, 41, 42];
    y[1] = 4;
    let mut n = 0;
    let s = loop {
        n += 1;
        if n > (x & 7) {
            break &y[..];
        }
        if n == 5 {
            break &z[1..];
        }
    };
    let t = 'found: {
        if x & 1 == 0 {
            break 'found &z[..];
        }
        &y[..]
    };
    sum(s) + sum(t) * 2
}

#[device_fn]
fn tuples_that_meet(x: i32) -> i32 {
    let mut y = [x & 7, 2, 3];
    let z = [40, 41];
    y[0] += 1;
    let (s, n) = if x & 1 == 0 {
        (&y[..], 3)
    } else {
        (&z[..], x & 7)
    };
    let pair: (&[i32], &[i32]) = match x & 3 {
        0 => (&z, &y),
        1 => (&y, &z[1..]),
        _ => (&y[1..], &[5]),
    };
    sum(s) * n + sum(pair.0) + sum(pair.1) * 5
}

#[device_fn]
fn tuples_that_are_assigned(x: i32) -> i32 {
    let mut y = [x & 7, 2, 3];
    let (z, w) = ([40, 41], [1, 2, 3]);
    let mut pair: (&[i32], (&[_], i32)) = (&mut y, (&z, 4));
    if x & 1 == 0 {
        pair = (&z[1..], (&w, 5));
    }
    pair.1.1 += x & 3;
    sum(pair.0) + sum(pair.1.0) * pair.1.1
}

#[device_fn]
fn parts_of_tuples(x: i32) -> i32 {
    let mut y = [x & 7, 2, 3];
    let z = [40, 41];
    y[2] = x & 1;
    let mut pair = (&z[..], 3);
    if x & 2 == 0 {
        pair.0 = &y[1..];
    }
    sum(pair.0) * pair.1
}

#[device_fn]
fn assigned_later(x: i32) -> i32 {
    let mut y = [x & 7, 2, 3];
    let z = [40, 41];
    let s: &[i32];
    let mut first = 0;
    if x & 1 == 0 {
        s = &mut y;
        first = s[0];
    } else {
        s = &z;
    }
    let t;
    if x & 2 == 0 {
        t = &z[..1];
    } else {
        t = &z[..];
    }
    sum(s) + first * 100 + sum(t)
}

#[device_fn]
fn of_pair(pair: (&[i32], &[i32; 3])) -> i32 {
    sum(pair.0) + pair.1[2]
}

#[device_fn]
fn as_arguments(x: i32) -> i32 {
    let mut y = [x & 7, 2, 3];
    let z = [40, 41];
    bump(&mut y);
    let a = sum(if x & 1 == 0 { &y } else { &z });
    let b = sum(match x & 3 {
        0 => &y[1..],
        1 => &z,
        _ => &y,
    });
    let c = of_pair((if x & 1 == 0 { &z } else { &y }, &y));
    a + b * 3 + c * 5
}

#[device_fn]
fn of_both<F: Fn(&[i32]) -> i32>(a: &[i32], b: &[i32], f: F) -> i32 {
    f(if a.len() > b.len() { a } else { b }) + f(a)
}

#[device_fn]
fn through_closures(x: i32) -> i32 {
    let mut y = [x & 7, 2, 3];
    let z = [40, 41, 42, 43];
    bump(&mut y);
    let first = |s: &[i32]| s[0];
    let pick = |n: i32| if n & 1 == 0 { &y[..] } else { &z[..] };
    let a = first(if x & 1 == 0 { &y } else { &z }) + sum(pick(x));
    a + of_both(&y, &z[(x & 3) as usize..], |s| sum(s) ^ first(s))
}

#[device_fn]
fn still_mutable(x: i32) -> i32 {
    let (mut y, mut z) = ([x & 7, 2, 3], [40, 41]);
    {
        let s = if x & 1 == 0 { &mut y[..] } else { &mut z[..] };
        s[1] += 5;
        bump(s);
        let t: &mut [i32] = match x & 3 {
            0 => &mut y,
            _ => &mut z,
        };
        t[0] *= 2;
    }
    sum(&y) + sum(&z) * 3
}

#[device_fn]
fn reborrowed(x: i32) -> i32 {
    let mut y = [x & 7, 2, 3];
    let z = [40, 41];
    let all = &mut y[..];
    all[1] = 6;
    let s = if x & 1 == 0 { &*all } else { &z };
    let result = sum(s);
    let t: &[i32] = if x & 2 == 0 { all } else { &z };
    result + sum(t) * 3
}

#[derive(Copy, Clone, KernelType)]
#[repr(C)]
struct Point {
    x: i32,
    y: i32,
}

#[device_fn]
impl Point {
    fn norm(&self) -> i32 {
        self.x * self.x + self.y
    }
}

#[device_fn]
fn methods_of_either(x: i32) -> i32 {
    let mut p = Point { x: x & 7, y: 3 };
    let q = Point { x: 2, y: x & 3 };
    p.x += 1;
    let r = if x & 1 == 0 { &p } else { &q };
    let s = if x & 1 == 0 { &q } else { &p };
    let result = r.norm() * 10 + s.norm();
    p.y = 9;
    result + p.norm()
}

/// What each thread reads through references into two memories, and which of them a branch, a loop or a
/// call picks.
#[kernel]
fn every_memory(x: &[i32], y: &mut [i32], out: &mut [i32]) {
    let tile = shared!([i32; 8]);
    let t = thread_idx().x;
    tile[t] = 100 + t as i32;
    barrier();
    let own = [7, 8, t as i32];
    let a = match t & 3 {
        0 => &x[1..],
        1 => &tile[..],
        2 => &own[..],
        _ => &y[..],
    };
    let b = if t & 1 == 0 { &tile[t..] } else { &y[1..] };
    let c = if t & 2 == 0 { &y[2..] } else { &tile[..] };
    let mut d = &tile[..];
    for i in 0..t {
        d = if i & 1 == 0 { &x[i..] } else { &own };
    }
    let (e, n) = if t > 4 { (&y[..], 2) } else { (&tile[..], 3) };
    let got = a[0] + b[0] * 3 + c[0] * 5 + d[0] * 7 + e[0] * n;
    barrier();
    let f = if t & 1 == 0 {
        &mut y[t..]
    } else {
        &mut tile[t..]
    };
    f[0] += got;
    out[t] = f[0];
}

fn in_every_memory(jit: &Jit) -> Outcome {
    let x: Vec<i32> = (0..8).map(|i| 1000 + i).collect();
    let before: Vec<i32> = (0..8).map(|i| 2000 + i * i).collect();
    let (buffer, mut y) = (jit.upload(&x)?, jit.upload(&before)?);
    let mut out = jit.zeros::<i32>(8)?;
    every_memory.launch(jit, (1, 8), &buffer, &mut y, &mut out)?;
    let mut after = before.clone();
    let mut want = Vec::new();
    for t in 0..8 {
        let tile: Vec<i32> = (0..8).map(|t| 100 + t).collect();
        let a = [x[1], tile[0], 7, before[0]][t & 3];
        let b = [tile[t], before[1]][t & 1];
        let c = [before[2], tile[0]][t >> 1 & 1];
        let d = match t {
            0 => tile[0],
            _ if t & 1 == 1 => x[t - 1],
            _ => 7,
        };
        let e = if t > 4 { before[0] * 2 } else { tile[0] * 3 };
        let got = a + b * 3 + c * 5 + d * 7 + e;
        want.push(got + if t & 1 == 0 { before[t] } else { tile[t] });
        if t & 1 == 0 {
            after[t] += got;
        }
    }
    assert_eq!(out.to_vec()?, want);
    assert_eq!(y.to_vec()?, after);
    Ok(())
}
