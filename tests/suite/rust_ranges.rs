//! Ranges that have a name, and numbers beside elements: each function runs as plain Rust on the host and through the JIT.

#![allow(
    clippy::all,
    unused_variables,
    reason = "the ways to write something are what is tested"
)]

use kiln::prelude::*;

use super::rust_language::on_host_and_device;

on_host_and_device! {
    indexed_by walked asked inclusive open_at_one_end shadowed in_closures in_order numbered_before numbered_behind
    numbers_of_both
}

#[device_fn]
fn values(x: i32) -> [i32; 12] {
    let mut all = [0; 12];
    for (i, v) in all.iter_mut().enumerate() {
        *v = ((x >> i) & 0xfff) ^ (7 * i as i32);
    }
    all
}

#[device_fn]
fn mixed(all: &[i32]) -> i32 {
    all.iter().fold(17, |sum: i32, v| {
        sum.wrapping_mul(31).wrapping_add(*v) & 0xffff
    })
}

#[device_fn]
fn indexed_by(x: i32) -> i32 {
    let (mut all, at) = (values(x), (x & 3) as usize);
    let range = at..at + 5;
    let sum = mixed(&all[range.clone()]);
    all[range.clone()].reverse();
    let part = &mut all[range];
    part[1] += 3;
    let there = all.get(at..20).is_none() as i32;
    sum ^ mixed(&all) ^ there
}

#[device_fn]
fn walked(x: i32) -> i32 {
    let all = values(x);
    let range = (x & 3) as usize..9;
    let mut sum = 0;
    for i in range.clone() {
        sum += all[i];
    }
    for i in range.clone().rev().step_by(2) {
        sum = sum * 3 + i as i32;
    }
    for (i, v) in range.clone().zip(&all[range.clone()]) {
        sum += i as i32 * (v & 15);
    }
    let most = range.clone().map(|i| all[i] & 63).max().unwrap_or(-1);
    sum.wrapping_add(most) ^ range.map(|i| i as i32).sum::<i32>()
}

#[device_fn]
fn asked(x: i32) -> i32 {
    let range = (x & 7)..5;
    let mut bits = range.is_empty() as i32 + 2 * range.contains(&3) as i32;
    bits += 4 * (range.start == 2) as i32 + 8 * range.end;
    let places = (x & 1) as usize..7;
    bits + 100 * places.len() as i32
}

#[device_fn]
fn inclusive(x: i32) -> i32 {
    let all = values(x);
    let range = (x & 3) as usize..=5;
    let mut sum = (*range.start() + 10 * *range.end()) as i32;
    for i in range.clone() {
        sum += all[i] & 31;
    }
    let none = 6..=(x & 7);
    sum ^ mixed(&all[range]) ^ none.is_empty() as i32 ^ 4 * none.contains(&7) as i32
}

#[device_fn]
fn open_at_one_end(x: i32) -> i32 {
    let (all, at) = (values(x), (x & 7) as usize);
    let (tail, head) = (1, 2);
    let tail = at..;
    let head = ..at;
    mixed(&all[tail.clone()]) ^ 3 * mixed(&all[head]) ^ tail.contains(&3) as i32 ^ tail.start as i32
}

#[device_fn]
fn shadowed(x: i32) -> i32 {
    let (range, pair) = (0, [5, 6]);
    let range = range..(x & 3);
    let mut sum = range.end;
    {
        let range = [10, 20, 30];
        sum += range.len() as i32 + range[1];
    }
    for range in 2..4 {
        sum += range;
    }
    if let Some(range) = pair.get((x & 3) as usize) {
        sum += *range;
    } else {
        sum += 100 * range.start + range.end;
    }
    sum += match x & 1 {
        0 => range.end,
        range => 50 + range,
    };
    let twice = |range: i32| 2 * range;
    sum += twice(9);
    let range = 5..range.end + 6;
    sum += range.len() as i32;
    let range = sum;
    range * 2
}

#[device_fn]
fn in_closures(x: i32) -> i32 {
    let range = (x & 15)..(x & 15) + 8;
    let inside = |v: i32| range.contains(&v);
    (0..32).filter(|&v| inside(v)).count() as i32 + inside(12) as i32 * 100
}

/// The ends are what they are where the range is made.
#[device_fn]
fn in_order(x: i32) -> i32 {
    let (mut low, mut high) = (x & 3, 7);
    let range = low..high;
    low += 2;
    high -= 3;
    range.map(|v| v * 3).sum::<i32>() ^ low << 8 ^ high << 16
}

#[device_fn]
fn numbered_before(x: i32) -> i32 {
    let all = values(x);
    let mut sum = 0;
    for (i, v) in (1..).zip(&all) {
        sum += i * (v & 7);
    }
    for (i, v) in (5u32..9).zip(all.iter().rev()) {
        sum = sum * 3 + i as i32 + (v & 3);
    }
    for (i, v) in (0..100).zip(all.iter().filter(|v| **v & 1 == 1)) {
        sum += i * (v & 31);
    }
    let first = (0..x & 7)
        .zip(all)
        .map(|(i, v)| i ^ v)
        .fold(0, |a, b| a ^ b);
    sum.wrapping_add(first)
}

#[device_fn]
fn numbered_behind(x: i32) -> i32 {
    let all = values(x);
    let mut sum = 0;
    for (v, i) in all.iter().zip(3..) {
        sum += i * (v & 7);
    }
    for (v, i) in all.iter().map(|v| v & 15).filter(|v| *v > 2).zip(0..4usize) {
        sum = sum * 2 + i as i32 * v;
    }
    // The item that no number is left for has been taken.
    let mut seen = 0;
    let pairs = all.iter().inspect(|_| seen += 1).zip(0..2).count();
    sum + 100 * seen + 1000 * pairs as i32
}

#[device_fn]
fn numbers_of_both(x: i32) -> i32 {
    let steps = (0..(x & 7)).zip(10..).map(|(a, b)| a * b).sum::<i32>();
    let other = (0..20)
        .zip(3..7u32)
        .zip(0..)
        .map(|((a, b), c)| a + b as i32 * c)
        .sum::<i32>();
    steps ^ other << 10
}
