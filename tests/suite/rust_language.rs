//! The Rust that device functions are written in: each function runs as plain Rust on the host and
//! through the JIT with equal results.

#![allow(
    unused_braces,
    unused_assignments,
    overlapping_range_endpoints,
    clippy::all,
    reason = "the ways to write something are what is tested"
)]

use kiln::prelude::*;

use super::{Outcome, chapter, exact};

chapter![on_the_host_and_through_the_jit];

/// Numbers that are near where something changes.
fn inputs() -> Vec<i32> {
    let mut inputs: Vec<i32> = (-70..70).collect();
    inputs.extend([i32::MIN, i32::MIN + 1, i32::MAX, i32::MAX - 1, 1000, -1000]);
    inputs
}

/// For each function a kernel that applies it to every input, and a test that compares.
macro_rules! cases {
    ($($name:ident)*) => {
        mod kernels {
            use kiln::prelude::*;
            $(
                #[kernel]
                pub fn $name(x: &[i32], out: &mut [i32]) {
                    let i = global_id().x;
                    if i < x.len() {
                        out[i] = super::$name(x[i]);
                    }
                }
            )*
        }

        fn on_the_host_and_through_the_jit(jit: &Jit) -> Outcome {
            let jit = exact(jit);
            let mut failed = Vec::new();
            $(
                if let Err(error) = compare(&jit, &kernels::$name, super::rust_language::$name) {
                    failed.push(format!("{}: {error}", stringify!($name)));
                }
            )*
            match failed.is_empty() {
                true => Ok(()),
                false => Err(failed.join("\n").into()),
            }
        }
    };
}

fn compare(jit: &Jit, kernel: &kiln::core::front::LazyKernel, host: fn(i32) -> i32) -> Outcome {
    let inputs = inputs();
    let x = jit.upload(&inputs)?;
    let mut out = jit.zeros::<i32>(inputs.len())?;
    jit.launch(kernel, grid_for(inputs.len(), 64), 64, args!(&x, &mut out))?;
    jit.synchronize()?;
    for (x, got) in inputs.iter().zip(out.to_vec()?) {
        // Overflow panics in a debug build of the host; kernels wrap. An index out of bounds is one
        // in both.
        let Ok(want) = std::panic::catch_unwind(|| host(*x)) else {
            assert!(!(-70..70).contains(x), "{x} panics on the host");
            continue;
        };
        if got != want {
            return Err(format!("{x} gives {want} on the host and {got} on the device").into());
        }
    }
    Ok(())
}

cases! {
    arithmetic shadowing inferred_literals blocks conditions matches guards ranges_in_patterns
    while_loops loop_values labelled for_loops inclusive reversed stepped narrow_loops
    early_return short_circuit tuples swap arrays nested_arrays array_of_calls structs struct_update
    references slices casts floats methods shifts suffixes constants bools unit_calls
    labelled_blocks deferred early_values nested_calls generic_calls unrolled wrapping
    evaluation_order last_expression_if loops_at_the_edge compound_on_parts patterns_in_let
    through_references casts_of_literals
}

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
fn shadowing(x: i32) -> i32 {
    let a = x & 15;
    let a = a + 1;
    let b = {
        let a = a * 2;
        a + 1
    };
    let mut a = a;
    {
        let a = 100;
        let _ = a;
    }
    a += b;
    a
}

#[device_fn]
fn inferred_literals(x: i32) -> i32 {
    let mut steps = 0;
    let mut n = (x & 63) as u32;
    let mut wide = 0;
    while n > 1 {
        n = if n % 2 == 0 { n / 2 } else { 3 * n + 1 };
        steps += 1;
        wide += 1_000_000_000_000;
    }
    let total: u64 = wide;
    let steps: i32 = steps;
    steps + (total >> 33) as i32
}

#[device_fn]
fn blocks(x: i32) -> i32 {
    let y = {
        let t = x & 7;
        { t * t }
    };
    y + { 1 } + if x > 0 { 1 } else { 2 } * 3
}

#[device_fn]
fn conditions(x: i32) -> i32 {
    let sign = if x > 0 {
        1
    } else if x < 0 {
        -1
    } else {
        0
    };
    let mut r = sign * 10;
    if x % 2 == 0 {
        r += 1;
    }
    if x > 5 {
        r += 2;
    } else {
        r += 3;
    }
    r
}

#[device_fn]
fn matches(x: i32) -> i32 {
    let a = match x {
        0 => 10,
        1 | 2 | 3 => 20,
        -5 => 25,
        i32::MAX => 26,
        _ => 30,
    };
    let b = match x > 3 {
        true => 1,
        false => 2,
    };
    match (a, b) {
        (10, _) => 1,
        (20, 1) => 2,
        (n, 2) => n + 100,
        (n, m) => n * 10 + m,
    }
}

#[device_fn]
fn guards(x: i32) -> i32 {
    match x {
        n if n < -10 => -1,
        n if n > 10 && n % 2 == 0 => n / 2,
        n @ 0..=5 => n * 100,
        5..=7 if x != 6 => 8,
        n => n,
    }
}

const LIMIT: i32 = 17;

#[device_fn]
fn ranges_in_patterns(x: i32) -> i32 {
    match x {
        ..=-20 => 1,
        -19..-3 => 2,
        -3..=LIMIT => 3,
        40.. => 4,
        _ => 5,
    }
}

#[device_fn]
fn while_loops(x: i32) -> i32 {
    let mut i = 0;
    let mut sum = 0;
    while i < 20 {
        i += 1;
        if i % 3 == 0 {
            continue;
        }
        if sum > (x & 63) {
            break;
        }
        sum += i;
    }
    sum * 100 + i
}

#[device_fn]
fn loop_values(x: i32) -> i32 {
    let mut n = x & 31;
    let found = loop {
        n += 1;
        if n * n > 500 {
            break n;
        }
        if n % 13 == 0 {
            break -n;
        }
    };
    found
}

#[device_fn]
fn labelled(x: i32) -> i32 {
    let mut sum = 0;
    'outer: for a in 0..10 {
        for b in 0..10 {
            if (a + b) % 5 == x & 3 {
                continue 'outer;
            }
            if a * b > 40 {
                break 'outer;
            }
            sum += a * b;
            loop {
                sum += 1;
                if sum % 2 == 0 {
                    break;
                }
                if sum > 1000 {
                    break 'outer;
                }
            }
        }
        sum += 1000;
    }
    sum
}

#[device_fn]
fn for_loops(x: i32) -> i32 {
    let mut sum = 0;
    for i in 0..x & 15 {
        sum += i * i;
    }
    for _ in 3..7 {
        sum += 1;
    }
    for mut i in -3..3 {
        i *= 2;
        sum += i;
    }
    for i in 5..2 {
        sum += i * 1000;
    }
    sum
}

#[device_fn]
fn inclusive(x: i32) -> i32 {
    let mut sum = 0;
    for i in 0..=x & 15 {
        if i == 7 {
            continue;
        }
        sum += i;
    }
    for i in 1..=10 {
        sum += i * 100;
    }
    let last = 255u8;
    for i in 250..=last {
        sum += i as i32;
    }
    for i in i64::MAX - 2..=i64::MAX {
        if i == i64::MAX - 1 {
            continue;
        }
        sum += (i & 7) as i32;
    }
    for i in 5i64..=4 {
        sum += i as i32;
    }
    sum
}

#[device_fn]
fn reversed(x: i32) -> i32 {
    let mut hash = 0i32;
    for i in (0..x & 15).rev() {
        hash = hash.wrapping_mul(31).wrapping_add(i);
    }
    for i in (2..=6u32).rev() {
        hash = hash.wrapping_mul(31).wrapping_add(i as i32);
    }
    for i in (0..20).rev().step_by(6) {
        hash = hash.wrapping_mul(31).wrapping_add(i);
    }
    for i in (0u8..=255).rev().step_by(100) {
        hash = hash.wrapping_mul(31).wrapping_add(i as i32);
    }
    hash
}

#[device_fn]
fn stepped(x: i32) -> i32 {
    let step = (x & 7) as usize + 1;
    let mut hash = 0i32;
    for i in (0..50).step_by(step) {
        hash = hash.wrapping_mul(31).wrapping_add(i);
    }
    for i in (1..=50u32).step_by(7) {
        hash = hash.wrapping_mul(31).wrapping_add(i as i32);
    }
    for i in (0u8..200).step_by(step * 90) {
        hash = hash.wrapping_mul(31).wrapping_add(i as i32);
    }
    for i in (-100i8..=127).step_by(step * 40) {
        hash = hash.wrapping_mul(31).wrapping_add(i as i32);
    }
    hash
}

#[device_fn]
fn narrow_loops(x: i32) -> i32 {
    let mut count = 0;
    for i in (x as u8)..200 {
        count += i as i32;
    }
    for i in -5i16..(x as i16) & 7 {
        count += i as i32;
    }
    count
}

#[device_fn]
fn early_return(x: i32) -> i32 {
    if x < 0 {
        return -1;
    }
    for i in 0..100 {
        if i * i > x {
            return i;
        }
    }
    let y = if x % 2 == 0 { return 1000 } else { x };
    y + 1
}

#[device_fn]
fn short_circuit(x: i32) -> i32 {
    let table = [1, 2, 3, 4];
    let i = x as usize;
    // Without the left side the index would be out of bounds.
    let a = x >= 0 && i < 4 && table[i] > 2;
    let b = x < 0 || i >= 4 || table[i] == 1;
    let c = (x > 3 && x < 9) || x == 20;
    (a as i32) + 2 * (b as i32) + 4 * (c as i32)
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

#[device_fn]
fn array_of_calls(x: i32) -> i32 {
    let a = [for_loops(x & 3), blocks(x & 7), x & 1];
    a[0] + a[1] * a[2]
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
fn nothing(_x: i32) {}

#[device_fn]
fn count_up(n: &mut i32) {
    if *n > 100 {
        return;
    }
    *n += 1;
}

#[device_fn]
fn unit_calls(x: i32) -> i32 {
    let mut n = x;
    nothing(n);
    count_up(&mut n);
    count_up(&mut n);
    n
}

#[device_fn]
fn labelled_blocks(x: i32) -> i32 {
    let a = 'found: {
        if x < 0 {
            break 'found -1;
        }
        for i in 0..10 {
            if i * i >= x {
                break 'found i;
            }
        }
        100
    };
    let mut b = 0;
    'all: for i in 0..10 {
        'skip: {
            if i % 3 == x & 1 {
                break 'skip;
            }
            if i == 8 {
                break 'all;
            }
            if i == 5 {
                continue 'all;
            }
            b += i;
        }
        b += 100;
    }
    a * 10_000 + b
}

#[device_fn]
fn deferred(x: i32) -> i32 {
    let a;
    let b: f32;
    if x > 0 {
        a = x & 7;
        b = 1.5;
    } else {
        a = 3;
        b = 2.5;
    }
    a + (b * 2.0) as i32
}

#[device_fn]
fn early_values(x: i32) -> i32 {
    let v = match x & 3 {
        0 => return 7,
        1 => 5,
        2 => {
            let t = x & 15;
            t * 2
        }
        _ => loop {
            break 9;
        },
    };
    v + 1
}

#[device_fn]
fn nested_calls(x: i32) -> i32 {
    blocks(conditions(x & 7) + matches(guards(x)))
}

#[device_fn]
fn lerp<T: Float>(a: T, b: T, t: T) -> T {
    a + (b - a) * t
}

#[device_fn]
fn largest<T: Num>(a: T, b: T) -> T {
    if a > b { a } else { b }
}

#[device_fn]
fn first<T: KernelType>(pair: (T, T)) -> T {
    pair.0
}

#[device_fn]
fn halve<T: Int>(mut n: T) -> i32 {
    let mut steps = 0;
    while n > T::ONE {
        n = n / T::from_i32(2);
        n ^= T::ZERO;
        steps += 1;
    }
    steps + n.cast::<i32>()
}

#[device_fn]
fn polynomial<T: Float>(x: T) -> T {
    let half = T::from_f64(0.5);
    x.mul_add(half, T::ONE).sqrt().max(x.abs() * half)
}

#[device_fn]
fn generic_calls(x: i32) -> i32 {
    let a = lerp(x as f32, 100.0, 0.25);
    let b = lerp::<f64>(x as f64, 100.0, 0.75);
    let c = largest(x, 5) + largest(2.5f32, 1.0) as i32;
    let d = first((c, x)) + first((1u8, 2)) as i32;
    let e = halve((x & 127) as u64) + halve(x & 15);
    let f = polynomial(2.5f32) as i32 + polynomial(-200.0f64) as i32;
    a as i32 ^ b as i32 ^ c ^ d ^ e ^ f
}

#[device_fn]
fn unrolled(x: i32) -> i32 {
    let mut sum = 0;
    for half in [8, 4, 2, 1] {
        if x & half != 0 {
            sum += half;
        }
    }
    #[unroll]
    for i in 0..4 {
        sum = sum * 2 + i;
    }
    #[unroll(2)]
    for i in 0..x & 7 {
        sum += i;
    }
    #[unroll(never)]
    for i in 0..5 {
        sum ^= i;
    }
    sum
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
fn last_expression_if(x: i32) -> i32 {
    if x > 10 {
        x - 10
    } else if x > 0 {
        match x {
            1..=3 => 33,
            _ => {
                let y = x * 2;
                y + 1
            }
        }
    } else {
        return 1;
    }
}

#[device_fn]
fn loops_at_the_edge(x: i32) -> i32 {
    let mut count = 0;
    for i in i32::MAX - 3..i32::MAX {
        count += i & 1;
    }
    for _ in i32::MIN..=i32::MIN + 2 {
        count += 1;
    }
    for _ in (i32::MAX - 2)..=i32::MAX {
        count += 10;
    }
    for _ in (x & 3..=x & 3).rev() {
        count += 100;
    }
    count
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
