//! Values in the Rust that device functions are written in: numbers, tuples, structs, arrays,
//! references. Each function runs as plain Rust on the host and through the JIT.

#![allow(
    unused_braces,
    unused_assignments,
    clippy::all,
    reason = "the ways to write something are what is tested"
)]

use kiln::prelude::*;

use super::Outcome;
use super::rust_language::on_host_and_device;

on_host_and_device! {
    arithmetic tuples swap arrays nested_arrays structs struct_update references slices
    parts_of_slices parts_of_parts casts
    floats methods shifts suffixes constants items bools wrapping evaluation_order compound_on_parts
    patterns_in_let through_references casts_of_literals numbers_of_any_type;
    parts_of_buffers
}

const LIMIT: i32 = 17;

#[device_fn]
fn arithmetic(x: i32) -> i32 {
    let a = x.wrapping_mul(3) ^ 0x55;
    let b = (a & 0xff) | 1;
    let mut c = a / b;
    c += a % b;
    c -= 7;
    c = c.wrapping_mul(5);
    c ^= !b;
    c |= 4;
    c &= 0xffff;
    -c
}

#[device_fn]
fn min_max(a: i32, b: i32) -> (i32, i32) {
    if a < b { (a, b) } else { (b, a) }
}

#[device_fn]
fn tuples(x: i32) -> i32 {
    let t = (x & 7, (x as u32) >> 28, true);
    let (a, b, c) = t;
    let (low, high) = min_max(a, 3);
    let nested = ((low, high), a);
    let ((l, _), _) = nested;
    let mut p = (1, 2.5f32);
    p.0 += l;
    p.1 *= 2.0;
    p.0 + p.1 as i32 + nested.0.1 * 10 + (b as i32) + (c as i32) * 100
}

#[device_fn]
fn swap(x: i32) -> i32 {
    let (mut a, mut b) = (x & 15, 20);
    for _ in 0..3 {
        (a, b) = (b, a + b);
    }
    a * 1000 + b
}

#[device_fn]
fn arrays(x: i32) -> i32 {
    let mut a = [0; 8];
    for i in 0..a.len() {
        a[i] = i as i32 * x.wrapping_add(1) % 17;
    }
    a[(x & 7) as usize] += 100;
    let b = [1, 2, 3];
    let ones = [1; 5];
    let whole = a;
    let mut sum = b[0] + b[(x & 1) as usize] + ones[3] + b.len() as i32;
    for i in 0..8 {
        sum += whole[i];
    }
    sum
}

#[device_fn]
fn nested_arrays(x: i32) -> i32 {
    let mut m = [[0i32; 3]; 4];
    for i in 0..4 {
        for j in 0..3 {
            m[i][j] = (i * 3 + j) as i32;
        }
    }
    let row = m[(x & 3) as usize];
    m[1][2] = 50;
    row[0] + row[2] * 10 + m[1][2]
}

/// A point with a weight.
#[derive(KernelType, Copy, Clone, Debug, PartialEq)]
#[repr(C)]
struct Point {
    x: i32,
    y: i32,
    weight: f32,
}

#[derive(KernelType, Copy, Clone)]
#[repr(C)]
struct Segment {
    ends: [Point; 2],
    id: u8,
}

#[device_fn]
fn structs(x: i32) -> i32 {
    let y = x & 31;
    let mut p = Point {
        weight: 0.5,
        x: 3,
        y,
    };
    p.x += y;
    p.weight *= 4.0;
    let s = Segment {
        ends: [
            p,
            Point {
                x: 1,
                y: 2,
                weight: 3.0,
            },
        ],
        id: 7,
    };
    let Point { x: px, y: py, .. } = s.ends[(x & 1) as usize];
    let other = s;
    px + py * 10 + (other.ends[0].weight as i32) * 100 + other.id as i32
}

#[device_fn]
fn struct_update(x: i32) -> i32 {
    let base = Point {
        x: 1,
        y: 2,
        weight: 3.0,
    };
    let p = Point { y: x & 7, ..base };
    p.x + p.y * 10 + p.weight as i32 * 100
}

#[device_fn]
fn bump(p: &mut Point, by: &i32, count: &mut i32) {
    p.x += *by;
    p.y = p.x * 2;
    *count += 1;
}

#[device_fn]
fn references(x: i32) -> i32 {
    let mut p = Point {
        x: x & 7,
        y: 0,
        weight: 0.0,
    };
    let mut count = 10;
    let by = 5;
    bump(&mut p, &by, &mut count);
    bump(&mut p, &(x & 3), &mut count);
    let r = &mut count;
    *r += 100;
    let q = &p;
    q.x + q.y * 10 + count
}

#[device_fn]
fn sum(values: &[i32]) -> i32 {
    let mut sum = 0;
    for i in 0..values.len() {
        sum += values[i];
    }
    sum
}

#[device_fn]
fn fill(values: &mut [i32], with: i32) {
    for i in 0..values.len() {
        values[i] = with + i as i32;
    }
}

#[device_fn]
fn third(values: &[i32; 4]) -> i32 {
    values[2]
}

#[device_fn]
fn slices(x: i32) -> i32 {
    let mut a = [0; 4];
    fill(&mut a, x & 15);
    let total = sum(&a) + third(&a);
    let s: &[i32] = &a;
    total + s[1] + s.len() as i32 + sum(s) + sum(&a[..])
}

#[device_fn]
fn parts_of_slices(x: i32) -> i32 {
    let mut a = [1, 2, 3, 4, 5, 6, 7, 8];
    let n = (x & 3) as usize;
    let m = n + ((x >> 2) & 3) as usize;
    let part = &a[n..m];
    let mut total = sum(part) + part.len() as i32 * 100 + sum(&a[n..]) * 1000;
    total += sum(&a[..m]) + sum(&a[n..=m]) * 3 + sum(&a[..=n]) * 5 + (&a[8..]).len() as i32;
    if n < m {
        total += part[m - n - 1] + a[n..m][0];
    }
    fill(&mut a[n..m], 11);
    let rest = &mut a[m..];
    rest[0] = x & 31;
    total + sum(&a)
}

/// The sum, by halves.
#[device_fn]
fn halves(x: &[i32]) -> i32 {
    let (left, right) = (&x[..x.len() / 2], &x[x.len() / 2..]);
    sum(left) - sum(right) * 3 + left.len() as i32
}

#[device_fn]
fn parts_of_parts(x: i32) -> i32 {
    let a = [x & 1, 2, x & 7, 4, 5];
    let n = (x & 3) as usize;
    let inner = &a[1..];
    let inner = &inner[..inner.len() - n];
    let mut last = &a[..];
    for i in 0..n {
        last = &last[1..last.len() - (i & 1)];
    }
    halves(&inner[..]) + halves(&a[n..]) * 10 + halves(last)
}

/// Each thread has a part of its own: of a buffer to read, of one to write, and of shared memory.
#[kernel]
fn rows(x: &[i32], starts: &[u32], sums: &mut [i32], out: &mut [i32]) {
    let i = global_id().x;
    let t = thread_idx().x;
    let tile = shared!([i32; 64]);
    tile[t] = i as i32;
    barrier();
    if i < sums.len() {
        let row = &x[starts[i] as usize..starts[i + 1] as usize];
        sums[i] = sum(row) + sum(&tile[t / 2..t + 1]) * 1000;
        fill(&mut out[2 * i..2 * i + 2], row.len() as i32);
    }
}

fn parts_of_buffers(jit: &Jit) -> Outcome {
    let n = 150;
    let starts: Vec<u32> = (0..=n as u32).map(|i| i * (i % 4) / 3 + i).collect();
    let mut starts = starts;
    starts.sort_unstable();
    let x: Vec<i32> = (0..starts[n] as i32).map(|i| i * 7 % 31).collect();
    let (mut sums, mut out) = (jit.zeros::<i32>(n)?, jit.zeros::<i32>(2 * n)?);
    let (on_device, bounds) = (jit.upload(&x)?, jit.upload(&starts)?);
    rows.launch(jit, (3, 64), &on_device, &bounds, &mut sums, &mut out)?;
    let (sums, out) = (sums.to_vec()?, out.to_vec()?);
    for i in 0..n {
        let row = &x[starts[i] as usize..starts[i + 1] as usize];
        let first = i / 64 * 64;
        let tile: Vec<i32> = (first..first + 64).map(|i| i as i32).collect();
        let t = i % 64;
        assert_eq!(sums[i], sum(row) + sum(&tile[t / 2..t + 1]) * 1000, "{i}");
        assert_eq!(
            out[2 * i..2 * i + 2],
            [row.len() as i32, row.len() as i32 + 1]
        );
    }
    Ok(())
}

#[device_fn]
fn casts(x: i32) -> i32 {
    let a = x as u8 as i32;
    let b = x as i8 as i32;
    let c = (x as f32 * 1.5) as i32;
    let d = (x as i64 * 3) as u32 as i32;
    let e = (x as f32 as f64 * 1e9) as i32;
    let f = (x > 0) as u8 as i32;
    let g = i64::from(x) as i32;
    let h = x as usize as i32;
    a ^ b ^ c ^ d ^ e ^ f ^ g ^ h
}

#[device_fn]
fn floats(x: i32) -> i32 {
    let a = x as f32 / 7.0;
    let b = a.abs().sqrt().mul_add(2.0, 1.0);
    let c = (a.floor() + a.ceil() - a.trunc()).min(b).max(-3.5);
    let d = a.powi(2) - b.recip();
    let e = 0.1 + 0.2;
    let bits = c.to_bits() as i32;
    let nan = (a / 0.0 - a / 0.0).is_nan();
    bits ^ d.to_bits() as i32 ^ (e * 1e16) as i32 ^ nan as i32 ^ f32::max(a, b).to_bits() as i32
}

#[device_fn]
fn methods(x: i32) -> i32 {
    let a = x.min(5).max(-5);
    let b = (x / 2).abs();
    let c = x.wrapping_add(i32::MAX).wrapping_sub(3).wrapping_neg();
    let d = [1, 2, 3].len() as i32;
    let e = (x as u32).min(7) as i32;
    a ^ b ^ c ^ d ^ e
}

#[device_fn]
fn shifts(x: i32) -> i32 {
    let n = (x & 31) as u8;
    let a = x >> 3;
    let b = (x as u32 >> n) as i32;
    let c = x.wrapping_shl(n as u32);
    let mut d = 1i64 << (n + 10);
    d >>= 5;
    a ^ b ^ c ^ d as i32
}

#[device_fn]
fn suffixes(x: i32) -> i32 {
    let a = 200u8;
    let b = 3i64 * 1_000_000_007;
    let c = 2.5f64;
    let d = 1e3f32;
    let e = 0xffu32 + 0b101 + 0o17;
    a as i32 + (b >> 8) as i32 + c as i32 + d as i32 + e as i32 + b'a' as i32 + x
}

const TABLE: [i32; 4] = [5, 6, 7, 8];
const ORIGIN: Point = Point {
    x: 3,
    y: 4,
    weight: 0.25,
};

#[device_fn]
fn constants(x: i32) -> i32 {
    const SCALE: i32 = 3;
    use std::f32::consts::PI;
    let a = TABLE[(x & 3) as usize] * SCALE + LIMIT;
    a + ORIGIN.x + (ORIGIN.weight * 8.0) as i32 + (PI * 100.0) as i32 + (u8::MAX as i32)
}

mod steps {
    pub const SHORT: i32 = 10;
}

/// Items are seen by the whole block that they are in, and hide what is around it.
#[device_fn]
#[allow(
    non_upper_case_globals,
    clippy::items_after_statements,
    reason = "it hides a variable"
)]
fn items(x: i32) -> i32 {
    let scale = 2;
    let mut sum = scale * x;
    if x > 0 {
        const STEP: i32 = 5;
        sum += STEP;
        {
            use steps::SHORT as STEP;
            sum += 100 * STEP;
        }
        sum += STEP;
    } else {
        sum += LATER + STEP;
        const STEP: i32 = 7;
        const LATER: i32 = STEP * 1000;
    }
    sum += {
        const scale: i32 = 11;
        scale
    };
    sum + scale
}

#[device_fn]
fn bools(x: i32) -> i32 {
    let a = x > 3;
    let b = !a;
    let c = a ^ (x % 2 == 0);
    let mut d = a & b | c;
    d &= x != 5;
    d |= a == c;
    d as i32
}

#[device_fn]
fn wrapping(x: i32) -> i32 {
    let a = (x as u32).wrapping_mul(2_654_435_761).wrapping_add(12345);
    let b = a ^ (a >> 15);
    (b as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) as i32
}

#[device_fn]
fn take(n: &mut i32) -> i32 {
    *n += 1;
    *n
}

#[device_fn]
fn evaluation_order(x: i32) -> i32 {
    let mut n = x & 3;
    let mut a = [0; 8];
    // The right side first, then the index.
    a[n as usize] = take(&mut n) * 10;
    a[n as usize] += take(&mut n);
    let b = n + {
        n += 1;
        n
    };
    let c = n * 100 + take(&mut n);
    let mut total = b + c;
    total += {
        total = 1;
        5
    };
    let mut sum = 0;
    for i in 0..8 {
        sum = sum * 7 + a[i];
    }
    sum ^ total
}

#[device_fn]
fn compound_on_parts(x: i32) -> i32 {
    let mut p = [(1, 2u8), (3, 4)];
    p[(x & 1) as usize].0 += 10;
    p[0].1 *= 3;
    p[1].1 <<= 2;
    let mut points = [ORIGIN; 3];
    points[1].x -= x & 7;
    points[(x & 1) as usize].y *= 2;
    p[0].0 + p[1].0 * 2 + p[0].1 as i32 + p[1].1 as i32 + points[1].x * 100 + points[0].y
}

#[device_fn]
fn patterns_in_let(x: i32) -> i32 {
    let (a, _) = min_max(x & 7, 4);
    let (mut b, c) = (a, (x & 3) as u32);
    let _ = b;
    b += 1;
    let (d, e): (i32, f32) = (b, 2.0);
    a + b * 10 + c as i32 * 100 + d + e as i32
}

#[device_fn]
fn nearer(a: &i32, b: &i32, to: i32) -> bool {
    (a - to).abs() < (b - to).abs() && a != b && a.min(b) > &-50
}

#[device_fn]
fn through_references(x: i32) -> i32 {
    let (a, b) = (x & 63, 20);
    let (p, q) = (&a, &b);
    let sum = p + q * 2 - -p;
    sum + p.max(q).wrapping_mul(3) + (!q & p) + nearer(p, q, 10) as i32
}

#[device_fn]
fn casts_of_literals(x: i32) -> i32 {
    let a = 4_000_000_000 as u32;
    let b = -1 as i64;
    let c = (200) as u8;
    let d = 0.1 as f32;
    let e = 7 as f64;
    (a >> 3) as i32 + b as i32 + c as i32 + (d * e as f32) as i32 + (x & 3) * (0xff as usize as i32)
}

#[device_fn]
fn rounded_down<T: Num>(x: T) -> i32 {
    let parts = T::from_f64(0.75) + T::from_f64(100.6) + T::from_f64(-1.5) + T::from_i32(-7);
    x.cast::<i32>() + parts.cast::<i32>() + T::from_f64(300.5).cast::<i32>()
}

#[device_fn]
fn numbers_of_any_type(x: i32) -> i32 {
    let a = rounded_down(x & 3) + rounded_down((x & 3) as f32) + rounded_down(x as i64 & 3);
    let b = times_half(x & 7, |v| v + 1) + times_half((x & 7) as f32, |v| v * 3.0) as i32;
    a * 2 + rounded_down((x & 3) as f64) + b
}

#[device_fn]
fn times_half<T: Num, F: Fn(T) -> T>(x: T, f: F) -> T {
    f(x) + T::from_f64(0.5)
}
