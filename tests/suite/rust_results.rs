//! `Result`, and names in alternatives of patterns: each function runs as plain Rust on the host and through the JIT.

#![allow(
    unused_assignments,
    unreachable_patterns,
    irrefutable_let_patterns,
    clippy::all,
    reason = "the ways to write something are what is tested"
)]

use kiln::prelude::*;

use super::Outcome;
use super::rust_language::on_host_and_device;

on_host_and_device! {
    returned matched question_marks of_nothing mapped chosen asked from_options compared nested behind_references in_loops
    assigned early_from_closures of_structs by_another_name
    alternatives alternatives_of_results alternatives_behind_guards alternatives_elsewhere alternatives_by_reference
    ; unwrapped
}

#[derive(Copy, Clone, Debug, PartialEq, KernelType)]
#[repr(u32)]
enum Defect {
    Odd,
    Negative,
    Large,
}

#[derive(Copy, Clone, Debug, PartialEq, KernelType)]
#[repr(C)]
struct Where {
    at: i32,
    defect: Defect,
}

#[device_fn]
fn halved(x: i32) -> Result<i32, Defect> {
    if x % 2 != 0 {
        return Err(Defect::Odd);
    }
    if x < 0 {
        Err(Defect::Negative)
    } else {
        Ok(x / 2)
    }
}

#[device_fn]
fn code(defect: Defect) -> i32 {
    match defect {
        Defect::Odd => 1000,
        Defect::Negative => 2000,
        Defect::Large => 3000,
    }
}

#[device_fn]
fn returned(x: i32) -> i32 {
    match halved(x) {
        Ok(half) => half,
        Err(defect) => code(defect),
    }
}

#[device_fn]
fn matched(x: i32) -> i32 {
    let first = match halved(x) {
        Ok(0) => 5,
        Ok(n @ 1..=9) if n % 2 == 0 => n,
        Err(Defect::Odd) => -1,
        Result::Err(Defect::Negative) => -2,
        Err(_) => -3,
        Ok(n) => n ^ 3,
    };
    let both = match (halved(x), halved(x ^ 2)) {
        (Ok(a), Ok(b)) => a.wrapping_mul(b),
        (Err(Defect::Odd), _) | (_, Err(Defect::Odd)) => 7,
        (_, Err(_)) => 8,
        (Err(_), Ok(b)) => b,
    };
    first ^ both
}

#[device_fn]
fn quartered(x: i32) -> Result<i32, Defect> {
    let quarter = halved(halved(x)?)?;
    if quarter > 9 {
        Err::<(), _>(Defect::Large)?;
    }
    Ok(quarter + 1)
}

#[device_fn]
fn located(x: i32) -> Result<i32, Where> {
    let half = halved(x).map_err(|defect| Where { at: x, defect })?;
    let quarter = halved(half).map_err(|defect| Where { at: half, defect });
    Ok(quarter?.wrapping_mul(3))
}

#[device_fn]
fn question_marks(x: i32) -> i32 {
    let quarter = quartered(x).unwrap_or(-4);
    quarter
        ^ match located(x) {
            Ok(n) => n,
            Err(Where { at, defect }) => at.wrapping_add(code(defect)),
        }
}

#[device_fn]
fn checked(x: i32) -> Result<(), i32> {
    if x & 3 == 1 {
        return Err(x);
    }
    Ok(())
}

#[device_fn]
fn tried(x: i32) -> Result<i32, ()> {
    if x & 4 == 4 { Err(()) } else { Ok(x ^ 9) }
}

#[device_fn]
fn checked_twice(x: i32) -> Result<(), i32> {
    checked(x)?;
    checked(x ^ 2)?;
    Ok(())
}

#[device_fn]
fn of_nothing(x: i32) -> i32 {
    let first = match checked_twice(x) {
        Ok(()) => 10,
        Err(x) => x & 255,
    };
    let second = if let Err(()) = tried(x) {
        3
    } else {
        tried(x).unwrap_or(2)
    };
    let third = checked(x).is_ok() as i32 + checked(x).map(|_| 4).unwrap_or(5);
    first ^ second ^ third.wrapping_mul(77)
}

#[device_fn]
fn mapped(x: i32) -> i32 {
    let a = halved(x).map(|n| n as f32 + 0.5);
    let b = a.map_err(|defect| code(defect) as u32);
    let c = halved(x)
        .and_then(|n| halved(n))
        .or_else(|defect| match defect {
            Defect::Odd => Ok::<i32, u32>(11),
            other => Err(code(other) as u32),
        });
    let d = halved(x).map_or(4, |n| n & 31) + halved(x).map_or_else(|e| code(e), |n| n & 7);
    let shift = |n: i32| n.wrapping_mul(3);
    let e = halved(x).map(shift).unwrap_or_else(|defect| code(defect));
    b.map_or(1, |n| n as i32) ^ c.unwrap_or(6) ^ d.wrapping_mul(5) ^ e
}

#[device_fn]
fn chosen(x: i32) -> i32 {
    let (a, b) = (halved(x), halved(x ^ 1));
    let either = a.or(b).unwrap_or(-1);
    let both = a.and(b).unwrap_or(-2);
    let ok = a.ok().unwrap_or(-3) ^ a.err().map_or(0, |defect| code(defect));
    either ^ both.wrapping_mul(3) ^ ok.wrapping_mul(5) ^ a.unwrap_or_default().wrapping_mul(7)
}

#[device_fn]
fn asked(x: i32) -> i32 {
    let a = halved(x);
    i32::from(a.is_ok())
        + 2 * i32::from(a.is_err())
        + 4 * i32::from(a.is_ok_and(|n| n > 3))
        + 8 * i32::from(a.is_err_and(|defect| defect as u32 == 1))
}

#[device_fn]
fn from_options(x: i32) -> i32 {
    let table = [x, 4, x ^ 8];
    let at = (x & 3) as usize;
    let found = table.get(at).ok_or(at as u32);
    let copied = found.copied().map_or(-1, |n| n);
    let lazily = x.checked_add(1).ok_or_else(|| x & 15);
    copied ^ lazily.unwrap_or_else(|e| e) ^ found.err().unwrap_or(40) as i32
}

#[device_fn]
fn compared(x: i32) -> i32 {
    let same = halved(x) == halved(x & !4);
    let zero = halved(x) == Ok(0);
    let odd = halved(x) != Err(Defect::Odd);
    let nothing = checked(x) == Ok(());
    i32::from(same) + 2 * i32::from(zero) + 4 * i32::from(odd) + 8 * i32::from(nothing)
}

#[device_fn]
fn nested(x: i32) -> i32 {
    let optional = (x > 5).then(|| halved(x));
    let deep: Result<Option<i32>, Result<i32, Defect>> = match halved(x) {
        Ok(n) if n > 7 => Ok(Some(n)),
        Ok(_) => Ok(None),
        Err(Defect::Odd) => Err(Ok(x)),
        Err(other) => Err(Err(other)),
    };
    let first = match optional {
        Some(Ok(n)) => n,
        Some(Err(_)) => 1,
        None => 2,
    };
    first
        ^ match deep {
            Ok(Some(n)) | Err(Ok(n)) => n.wrapping_mul(3),
            Ok(None) => 5,
            Err(Err(defect)) => code(defect),
        }
}

#[device_fn]
fn behind_references(x: i32) -> i32 {
    let mut result = halved(x);
    if let Ok(n) = &mut result {
        *n += 3;
    }
    let kept = &result;
    match kept {
        Ok(n) => *n,
        Err(defect) => code(*defect),
    }
}

#[device_fn]
fn in_loops(x: i32) -> i32 {
    let mut sum: i32 = 0;
    for i in 0..9 {
        let Ok(n) = halved(x.wrapping_add(i)) else {
            continue;
        };
        sum = n ^ sum.wrapping_mul(3);
    }
    let mut n = x;
    while let Ok(half) = halved(n) {
        n = half - 1;
        sum += 1;
    }
    sum
}

#[device_fn]
fn assigned(x: i32) -> i32 {
    let mut last = Err(Defect::Large);
    let mut count = 0;
    for i in 0..5 {
        last = halved(x.wrapping_mul(i));
        if last.is_err() {
            count += 1;
        }
    }
    let later;
    if x > 3 {
        later = Ok(x);
    } else {
        later = Err(x as u32 >> 3);
    }
    count ^ last.unwrap_or(3) ^ later.unwrap_or_else(|e| e as i32)
}

#[device_fn]
fn early_from_closures(x: i32) -> i32 {
    let step = |n: i32| -> Result<i32, u32> {
        if n % 3 == 0 {
            return Err(n as u32 & 7);
        }
        Ok(n + 1)
    };
    match step(x).and_then(|n| step(n)) {
        Ok(n) => n,
        Err(e) => e as i32,
    }
}

#[device_fn]
fn of_structs(x: i32) -> i32 {
    let result: Result<Where, (i32, f32)> = match halved(x) {
        Err(defect) => Ok(Where { at: x, defect }),
        Ok(n) => Err((n, 0.5)),
    };
    match result {
        Ok(Where {
            at,
            defect: Defect::Odd,
        }) => at,
        Ok(place) => code(place.defect),
        Err((n, half)) => (n as f32 * half) as i32,
    }
}

type Checked<T = i32> = Result<T, Defect>;
type Found = Option<i32>;

#[device_fn]
fn eighth(x: i32) -> Checked {
    let quarter: Checked<i32> = quartered(x);
    halved(quarter?)
}

#[device_fn]
fn found(x: i32) -> Found {
    Some(halved(x).ok()? + eighth(x).ok()?)
}

#[device_fn]
fn by_another_name(x: i32) -> i32 {
    eighth(x).unwrap_or(-1) ^ found(x).unwrap_or(-2)
}

#[device_fn]
fn alternatives(x: i32) -> i32 {
    let ends = match (x & 3, x >> 2 & 3) {
        (0, n) | (n, 0) => n * 10,
        (1, n @ 1..=2) | (n, 2) => n + 100,
        (a, b) | (b, a) => a * 7 + b,
    };
    let list = match [x & 1, x & 2, x & 4] {
        [0, a, b] | [a, 0, b] | [a, b, 0] => a * 8 + b,
        [a, ..] => a,
    };
    ends ^ list
}

#[device_fn]
fn alternatives_of_results(x: i32) -> i32 {
    let (Ok(n) | Err(n)) = tried(x).map_err(|()| 17);
    let twice = match (halved(x), halved(x ^ 1)) {
        (Ok(n), Err(_)) | (Err(_), Ok(n)) => n,
        (Ok(_), Ok(_)) => 1,
        (Err(a), Err(b)) => code(a) + code(b),
    };
    n ^ twice
}

#[device_fn]
fn alternatives_behind_guards(x: i32) -> i32 {
    match (x & 7, x >> 3 & 7) {
        (n, 3) | (3, n) if n > 4 => n,
        (n, m) | (m, n) if n > m + 3 => n * 10 + m,
        (1 | 2, n) if n == 5 => 200,
        _ => -1,
    }
}

#[device_fn]
fn alternatives_elsewhere(x: i32) -> i32 {
    let pair = (halved(x), x & 3);
    let mut sum = 0;
    if let (Ok(n), 0 | 1) | (_, n) = pair {
        sum += n;
    }
    let ((Ok(a), _) | (Err(_), a)) = pair;
    if let (Err(Defect::Odd), mut b) | (Err(Defect::Negative), mut b) = pair {
        b += 5;
        sum ^= b;
    }
    let pick = |(Ok(v) | Err(v)): Result<i32, i32>| v;
    sum ^ a ^ pick(Ok(x)) ^ pick(Err(5))
}

#[device_fn]
fn alternatives_by_reference(x: i32) -> i32 {
    let mut pair = [Ok(x), Err(x ^ 1), Ok(4)];
    for entry in pair.iter_mut() {
        match entry {
            Ok(n) | Err(n) if *n > 3 => *n ^= 8,
            Ok(n) | Err(n) => *n = n.wrapping_mul(3),
        }
    }
    let mut sum = 0;
    for entry in &pair {
        let (Ok(n) | Err(n)) = entry;
        sum = *n ^ sum;
    }
    sum
}

#[kernel]
fn first_error(x: &[i32], out: &mut [i32]) {
    let i = global_id().x;
    if i < out.len() {
        out[i] = halved(x[i]).expect("a number that has no half");
    }
}

fn unwrapped(jit: &Jit) -> Outcome {
    let mut out = jit.zeros(2)?;
    first_error.launch(jit, (1, 32), &jit.upload(&[4, 8])?, &mut out)?;
    assert_eq!(out.to_vec()?, [2, 4]);
    first_error.launch(jit, (1, 32), &jit.upload(&[4, 7])?, &mut out)?;
    let error = out.to_vec().unwrap_err().to_string();
    assert!(error.contains("a number that has no half"), "{error}");
    Ok(())
}
