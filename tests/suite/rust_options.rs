//! `Option`, and patterns outside of `match`. Each function runs as plain Rust on the host and through the JIT.

#![allow(
    unused_assignments,
    clippy::all,
    reason = "the ways to write something are what is tested"
)]

use kiln::prelude::*;

use super::Outcome;
use super::rust_language::on_host_and_device;

on_host_and_device! {
    returned matched if_let while_let let_else chains question_marks nested tuples structs
    best_so_far references mutable_references combined with_closures replaced compared generic
    patterns in_closures in_arrays shadowed loops_with_labels early_ends; unwrapped
}

#[device_fn]
fn halved(x: i32) -> Option<i32> {
    if x % 2 == 0 {
        return Some(x / 2);
    }
    None
}

#[device_fn]
fn positive(x: i32) -> Option<i32> {
    (x > 0).then_some(x)
}

#[device_fn]
fn returned(x: i32) -> i32 {
    match halved(x) {
        Some(half) => half,
        None => -1,
    }
}

#[device_fn]
fn matched(x: i32) -> i32 {
    let sign = match halved(x) {
        None => 7,
        Some(0) => 0,
        Some(1 | 2) => 1,
        Some(n @ 3..=9) if n % 2 == 0 => n,
        Some(n) if n < 0 => -2,
        Option::Some(_) => 3,
    };
    let by_value = match (halved(x), positive(x)) {
        (Some(a), Some(b)) => a.wrapping_mul(b),
        (Some(a), None) => a,
        (Option::None, Some(b)) => b.wrapping_neg(),
        _ => 11,
    };
    sign ^ by_value
}

#[device_fn]
fn if_let(x: i32) -> i32 {
    let mut sum = 0;
    if let Some(half) = halved(x) {
        sum += half;
    }
    let or_else = if let Some(p) = positive(x) {
        p
    } else if let Some(Some(q)) = halved(x).map(|h| halved(h)) {
        q
    } else {
        -5
    };
    if let 0..=9 | 20 = x {
        sum += 100;
    }
    if let (a, 3) = (x, x & 3) {
        sum ^= a;
    }
    sum.wrapping_add(or_else)
}

#[device_fn]
fn while_let(x: i32) -> i32 {
    let (mut n, mut steps) = (x | 64, 0);
    while let Some(smaller) = halved(n) {
        n = smaller;
        if n == 0 {
            break;
        }
        steps += 1;
        if steps % 3 == 0 {
            continue;
        }
        steps += 10;
    }
    let mut left = Some(x & 7);
    while let Some(k) = left
        && k < 6
        && let Some(h) = halved(k)
    {
        steps += 100 + h;
        left = if k == 4 { None } else { Some(k + 2) };
    }
    n ^ steps
}

#[device_fn]
fn let_else(x: i32) -> i32 {
    let Some(a) = halved(x) else {
        return -3;
    };
    let mut sum = 0;
    for i in 0..6 {
        let (Some(b), 0..=4) = (halved(a.wrapping_add(i)), i) else {
            continue;
        };
        let Some(c) = positive(b) else { break };
        sum = c.wrapping_add(sum);
    }
    let Some(d): Option<i32> = positive(sum) else {
        return 9;
    };
    d ^ a
}

#[device_fn]
fn chains(x: i32) -> i32 {
    let mut out = 0;
    if x > 3
        && let Some(a) = halved(x)
        && a % 3 != 0
        && let Some(b) = halved(a)
    {
        out = a ^ b;
    }
    let chosen = if let Some(a) = halved(x)
        && let Some(b) = halved(a)
    {
        if b == 5 {
            return 1234;
        }
        a.wrapping_add(b)
    } else if x < 0
        && let Some(a) = halved(x.wrapping_add(1))
    {
        a
    } else {
        17
    };
    for i in 0..9 {
        if i > 2
            && let Some(h) = halved(i)
        {
            if h == 3 {
                break;
            }
            out += h;
        } else {
            if i == 1 {
                continue;
            }
            out += 1;
        }
        out = out.wrapping_mul(3);
    }
    out ^ chosen
}

#[device_fn]
fn quarter(x: i32) -> Option<i32> {
    let h = halved(x)?;
    let q = halved(h)?;
    Some(q + 1)
}

#[device_fn]
fn checked(x: i32) -> Option<(i32, bool)> {
    let mut i = 0;
    loop {
        if quarter(x.wrapping_add(i))? > 3 {
            return Some((halved(x)?, i > 2));
        }
        i += 4;
        if i > 12 {
            return None;
        }
    }
}

#[device_fn]
fn applied<F: Fn(i32) -> i32>(x: i32, f: F) -> Option<i32> {
    for i in 0..3 {
        let h = halved(f(x))?;
        if h > i {
            return Some(h);
        }
    }
    Some(halved(x)?.wrapping_sub(1))
}

#[device_fn]
fn question_marks(x: i32) -> i32 {
    let pair = match checked(x) {
        Some((a, true)) => a,
        Some((a, false)) => a ^ 0x100,
        None => -8,
    };
    let inline = applied(x, |v| v & 0xfe).unwrap_or(3) ^ applied(x, |v| v | 1).unwrap_or(4);
    pair ^ quarter(x).unwrap_or(6) ^ inline
}

#[device_fn]
fn nested(x: i32) -> i32 {
    let twice: Option<Option<i32>> = if x > 10 { Some(halved(x)) } else { None };
    let told = match twice {
        None => 1,
        Some(None) => 2,
        Some(Some(n)) => n,
    };
    let flat = twice.flatten();
    told ^ flat.unwrap_or_default().wrapping_mul(4)
}

#[device_fn]
fn tuples(x: i32) -> i32 {
    let mut found = None;
    for i in 0..8 {
        if (x >> i) & 1 == 1 {
            found = Some((i, x >> (i + 1)));
            break;
        }
    }
    let (bit, rest) = found.unwrap_or((40, -1));
    bit ^ rest
}

#[derive(Copy, Clone, PartialEq, Debug, KernelType)]
#[repr(C)]
struct Span {
    low: i32,
    high: i32,
}

#[device_fn]
impl Span {
    fn meet(self, other: Span) -> Option<Span> {
        let (low, high) = (self.low.max(other.low), self.high.min(other.high));
        if low <= high {
            Some(Self { low, high })
        } else {
            None
        }
    }

    fn check(&self) -> Option<i32> {
        let Span { low, high } = *self;
        halved(low)?;
        Some(high)
    }
}

#[device_fn]
fn structs(x: i32) -> i32 {
    let (a, b) = (
        Span { low: x, high: 20 },
        Span {
            low: -5,
            high: x.wrapping_mul(2),
        },
    );
    let checked = a.check().unwrap_or(1);
    match a.meet(b) {
        Some(Span { low: 0, high }) => high + 1000,
        Some(Span { low, high: 20 }) => low,
        Some(both) => both.low ^ both.high,
        None => checked,
    }
}

#[device_fn]
fn best_so_far(x: i32) -> i32 {
    let mut best: Option<i32> = None;
    let mut at = None;
    for i in 0..9u32 {
        let value = (x ^ (i as i32 * 37)) & 63;
        match best {
            Some(b) if b >= value => {}
            _ => {
                best = Some(value);
                at = Some(i);
            }
        }
        if let Some(b) = &mut best {
            *b -= 1;
        }
    }
    best.unwrap() * 16 + at.map_or(0, |at| at as i32)
}

#[device_fn]
fn largest<'a>(values: &'a [i32; 5], floor: i32) -> i32 {
    let mut largest: Option<&i32> = None;
    for v in values {
        if *v > floor && largest.is_none_or(|l| *l < *v) {
            largest = Some(v);
        }
    }
    match largest {
        Some(&v) => v,
        None => floor,
    }
}

#[device_fn]
fn sum_of(part: Option<&[i32]>) -> i32 {
    let mut sum = 0;
    if let Some(part) = part {
        for v in part {
            sum += v;
        }
    }
    sum
}

#[device_fn]
fn references(x: i32) -> i32 {
    let values = [x & 15, 3, x & 7, -4, 9];
    let whole: Option<&[i32]> = Some(&values);
    let none = sum_of(None);
    let part = if x > 0 { Some(&values[1..3]) } else { None };
    let chosen = if x % 2 == 0 { part } else { whole };
    let one = chosen.map(|c| c[0]).unwrap_or(30);
    let held = Some(values[0]);
    let by_ref = held.as_ref().copied().unwrap_or(5);
    largest(&values, x & 3) + 100 * sum_of(chosen) + none + one * by_ref
}

#[device_fn]
fn add_one(to: Option<&mut i32>) {
    if let Some(to) = to {
        *to += 1;
    }
}

#[device_fn]
fn mutable_references(x: i32) -> i32 {
    let (mut a, mut b) = (x & 7, 100);
    add_one(Some(&mut a));
    add_one(None);
    let chosen = if a % 2 == 0 {
        Some(&mut a)
    } else {
        Some(&mut b)
    };
    *chosen.unwrap() += 10;
    let mut held = halved(x);
    if let Some(h) = held.as_mut() {
        *h ^= 1;
    }
    if let Some(h) = &mut held {
        *h ^= 6;
    }
    match &held {
        Some(h) => *h ^ a ^ b,
        None => a + b,
    }
}

#[device_fn]
fn combined(x: i32) -> i32 {
    let (a, b) = (halved(x), positive(x));
    let mut sum = a.or(b).unwrap_or(-1);
    sum ^= a.and(b).unwrap_or(-20);
    sum ^= a.xor(b).unwrap_or(-300);
    if let Some((a, b)) = a.zip(b) {
        sum = sum.wrapping_add(a ^ b);
    }
    sum.wrapping_add(a.is_some() as i32 + 2 * b.is_none() as i32)
}

#[device_fn]
fn with_closures(x: i32) -> i32 {
    let mut calls = 0;
    let a = halved(x)
        .map(|h| h ^ 3)
        .and_then(|h| positive(h))
        .or_else(|| quarter(x));
    let b = halved(x).map_or_else(
        || -9,
        |h| {
            if h > 4 {
                return 4;
            }
            h
        },
    );
    let c = positive(x).unwrap_or_else(|| {
        calls += 1;
        12
    });
    let even = |n: i32| n % 2 == 0;
    let d = halved(x).is_some_and(even) as i32 + 2 * halved(x).filter(|h| *h > 5).is_some() as i32;
    let e = halved(x)
        .map(|h| (h, h > 3))
        .map_or(0, |(h, large)| h ^ large as i32);
    a.unwrap_or(77) ^ (b + d).wrapping_mul(3) ^ c ^ calls ^ e
}

#[device_fn]
fn replaced(x: i32) -> i32 {
    let mut slot = halved(x);
    let first = slot.take();
    let was = slot.replace(x & 31);
    let second = slot.take().unwrap_or(1);
    first.unwrap_or(2) ^ second.wrapping_mul(5) ^ was.is_some() as i32 ^ slot.is_some() as i32
}

#[device_fn]
fn compared(x: i32) -> i32 {
    let (a, b) = (halved(x), halved(x & 6));
    let mut bits = (a == b) as i32;
    bits = bits * 2 + (a != b) as i32;
    bits = bits * 2 + (a == None) as i32;
    bits = bits * 2 + (a == Some(2)) as i32;
    assert_eq!(a.or(b).is_none(), a.is_none() && b.is_none());
    assert_ne!(Some(x), None);
    assert_eq!(a.map(|a| a.wrapping_mul(2)), a.map(|_| x));
    bits * 2 + (Some(b) == Some(None)) as i32
}

#[device_fn]
fn at_least<T: Num>(x: T, limit: T) -> Option<T> {
    if x < limit { None } else { Some(x - limit) }
}

#[device_fn]
fn generic(x: i32) -> i32 {
    let a = at_least(x, 3).unwrap_or(5);
    let b: Option<f32> = at_least((x & 0xff) as f32, 2.5);
    let c = at_least::<u8>(x as u8, 9).map_or(0, |c| c as i32);
    a ^ b.map_or(-1, |b| (b * 2.0) as i32) ^ c
}

#[device_fn]
fn patterns(x: i32) -> i32 {
    let mut n = matches!(x, 0..=9 | 33) as i32;
    n = n * 2 + matches!(halved(x), Some(h) if h > 4) as i32;
    n = n * 2 + matches!(positive(x), None) as i32;
    if matches!(x & 3, 1 | 2) && !matches!((x & 1, x & 2), (1, _)) {
        n += 100;
    }
    n
}

#[device_fn]
fn in_closures(x: i32) -> i32 {
    let third = |n: i32| if n % 3 == 0 { Some(n / 3) } else { None };
    let mut sum = 0;
    for i in 0..5 {
        if let Some(t) = third(x.wrapping_add(i)) {
            sum ^= t;
        }
    }
    sum
}

#[device_fn]
fn in_arrays(x: i32) -> i32 {
    let mut slots = [None; 4];
    slots[(x & 3) as usize] = Some(x & 31);
    slots[1] = halved(x & 15);
    let mut sum = 0;
    for slot in slots {
        sum = sum * 3 + slot.unwrap_or(7);
    }
    let pair = [Some(2), None];
    sum + pair[(x & 1) as usize].unwrap_or(40)
}

#[device_fn]
fn shadowed(x: i32) -> i32 {
    let value = halved(x);
    if let Some(value) = value {
        let value = value + 1;
        if let Some(value) = halved(value) {
            return value;
        }
        return value * 100;
    }
    value.is_some() as i32
}

#[device_fn]
fn loops_with_labels(x: i32) -> i32 {
    let mut n = 0;
    'outer: while let Some(limit) = positive(20 - n) {
        n += 1;
        for i in 0..limit {
            if let Some(h) = halved(i)
                && h == 4
            {
                continue 'outer;
            } else if i > (x & 15) {
                break 'outer;
            }
            n += 1;
        }
    }
    n
}

#[device_fn]
fn early_ends(x: i32) -> i32 {
    let value = 'found: {
        if let Some(h) = halved(x) {
            break 'found h;
        }
        let Some(p) = positive(x) else {
            break 'found -6;
        };
        p ^ 3
    };
    let Some(held) = positive(value & 0xff) else {
        if value > 5 {
            panic!("it is positive");
        }
        return value;
    };
    if let Some(mut n) = halved(held) {
        n += 1;
        return n;
    }
    held
}

#[kernel]
fn unwrap_all(x: &[i32], out: &mut [i32]) {
    let i = global_id().x;
    if i < x.len() {
        out[i] = halved(x[i]).expect("it is odd") + positive(x[i]).unwrap();
    }
}

/// What has no value ends its thread, with the message of Rust or of the program.
fn unwrapped(jit: &Jit) -> Outcome {
    for (x, message) in [
        (3, "it is odd"),
        (-2, "called `Option::unwrap()` on a `None` value"),
    ] {
        let (x, mut out) = (jit.upload(&[2, x, 6])?, jit.zeros::<i32>(3)?);
        unwrap_all.launch(jit, (1, 32), &x, &mut out)?;
        let error = out.to_vec().unwrap_err().to_string();
        assert!(error.contains(message), "{error}");
        assert!(error.contains("rust_options.rs"), "{error}");
    }
    Ok(())
}
