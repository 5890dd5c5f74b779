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

use super::Outcome;
use super::quiet::unless_it_panics;

/// Numbers that are near where something changes.
fn inputs() -> Vec<i32> {
    let mut inputs: Vec<i32> = (-70..70).collect();
    inputs.extend([i32::MIN, i32::MIN + 1, i32::MAX, i32::MAX - 1, 1000, -1000]);
    inputs
}

/// For each function a kernel that applies it to every input, and a case that compares, beside other
/// cases of the chapter.
macro_rules! on_host_and_device {
    ($($name:ident)* $(; $($case:ident)*)?) => {
        $crate::chapter![on_the_host_and_through_the_jit $($(, $case)*)?];

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

        fn on_the_host_and_through_the_jit(jit: &Jit) -> $crate::Outcome {
            let jit = $crate::exact(jit);
            let mut failed = Vec::new();
            $(
                let compared =
                    $crate::rust_language::compare(&jit, &kernels::$name, $name);
                if let Err(error) = compared {
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
pub(crate) use on_host_and_device;

/// Runs a function on the host and as a kernel.
pub fn compare(jit: &Jit, kernel: &kiln::core::front::LazyKernel, host: fn(i32) -> i32) -> Outcome {
    let inputs = inputs();
    let x = jit.upload(&inputs)?;
    let mut out = jit.zeros::<i32>(inputs.len())?;
    jit.launch(kernel, grid_for(inputs.len(), 64), 64, args!(&x, &mut out))?;
    jit.synchronize()?;
    for (x, got) in inputs.iter().zip(out.to_vec()?) {
        // Overflow panics in a debug build of the host; kernels wrap. An index out of bounds is one
        // in both.
        let Some(want) = unless_it_panics(|| host(*x)) else {
            assert!(!(-70..70).contains(x), "{x} panics on the host");
            continue;
        };
        if got != want {
            return Err(format!("{x} gives {want} on the host and {got} on the device").into());
        }
    }
    Ok(())
}

on_host_and_device! {
    shadowing inferred_literals blocks conditions matches guards ranges_in_patterns while_loops
    loop_values labelled for_loops inclusive reversed stepped narrow_loops early_return
    short_circuit array_of_calls unit_calls labelled_blocks deferred early_values nested_calls
    generic_calls unrolled last_expression_if loops_at_the_edge
    assertions patterns_of_arrays
}

#[device_fn]
fn patterns_of_arrays(x: i32) -> i32 {
    let mut sum: i32 = 0;
    for (a, [b, c]) in [(x & 7, [1, 2]), (3, [x & 1, 5])] {
        sum = sum * 3 + a * b - c;
    }
    sum
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
fn array_of_calls(x: i32) -> i32 {
    let a = [for_loops(x & 3), blocks(x & 7), x & 1];
    a[0] + a[1] * a[2]
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
fn assertions(x: i32) -> i32 {
    assert!(x & 1 < 2);
    assert_eq!(x & 7, x.rem_euclid(8), "two ways to say it");
    debug_assert!(x <= i32::MAX, "{{}}");
    let n = match x & 3 {
        0 => 7,
        n @ 1..=3 => n,
        _ => unreachable!("two bits"),
    };
    assert_ne! { n, 0 }
    if n > 7 {
        panic!();
    }
    n
}
