//! Comparisons of structs that are not those of all fields: each function runs as plain Rust on the host and through
//! the JIT.

#![allow(clippy::all, reason = "the ways to write something are what is tested")]

use std::cmp::Ordering;

use kiln::prelude::*;

use super::rust_language::on_host_and_device;

on_host_and_device! {
    equal_by_hand inside_of_others in_slices as_methods ordered_by_hand orders_inside_of_others asserted
    written_as_derived of_generic_structs between_structs_of_structs of_vectors
    of_what_is_assigned_later
}

/// Equal if they are near, and of one color, whatever else they are.
#[derive(Copy, Clone, Debug, KernelType)]
#[repr(C)]
struct Point {
    at: f32,
    color: u8,
    number: i32,
}

#[device_fn]
impl PartialEq for Point {
    fn eq(&self, other: &Self) -> bool {
        (self.at - other.at).abs() < 1.5 && self.color == other.color
    }
}

/// The largest number first.
#[derive(Copy, Clone, Debug, KernelType)]
#[repr(C)]
struct Task {
    number: u32,
    cost: f32,
}

#[device_fn]
impl PartialEq for Task {
    fn eq(&self, other: &Task) -> bool {
        self.number == other.number
    }
}

#[device_fn]
impl PartialOrd for Task {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        if self.cost.is_nan() {
            return None;
        }
        other.number.partial_cmp(&self.number)
    }
}

/// Ordered by a part of what is compared: fields behind it decide where others do not.
#[derive(Copy, Clone, Debug, PartialEq, KernelType)]
#[repr(C)]
struct Coarse(u32);

#[device_fn]
impl PartialOrd for Coarse {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        (self.0 >> 1).partial_cmp(&(other.0 >> 1))
    }
}

#[derive(Copy, Clone, Debug, PartialEq, PartialOrd, KernelType)]
#[repr(C)]
struct Job {
    first: Coarse,
    task: Task,
    rest: i32,
}

#[derive(Copy, Clone, Debug, PartialEq, KernelType)]
#[repr(C)]
struct Segment {
    ends: [Point; 2],
    name: u8,
}

/// What a derive gives, written out.
#[derive(Copy, Clone, Debug, KernelType)]
#[repr(C)]
struct Plain {
    x: f32,
    y: i32,
}

impl PartialEq for Plain {
    fn eq(&self, other: &Self) -> bool {
        self.x == other.x && self.y == other.y
    }
}

impl PartialOrd for Plain {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        (self.x, self.y).partial_cmp(&(other.x, other.y))
    }
}

#[derive(Copy, Clone, Debug, PartialEq, PartialOrd, KernelType)]
#[repr(C)]
struct Pair<A, B> {
    a: A,
    b: B,
}

#[device_fn]
fn point(x: i32) -> Point {
    Point {
        at: (x & 3) as f32,
        color: (x >> 2 & 1) as u8,
        number: x,
    }
}

#[device_fn]
fn task(x: i32) -> Task {
    Task {
        number: (x & 3) as u32,
        cost: if x & 12 == 12 { f32::NAN } else { 1.0 },
    }
}

#[device_fn]
fn equal_by_hand(x: i32) -> i32 {
    let (a, b) = (point(x), point(x >> 3));
    i32::from(a == b)
        + 2 * i32::from(a != b)
        + 4 * i32::from(&a == &b)
        + 8 * i32::from(point(3) == a)
}

#[device_fn]
fn inside_of_others(x: i32) -> i32 {
    let (a, b) = (point(x), point(x >> 3));
    let one = Segment {
        ends: [a, b],
        name: 1,
    };
    let other = Segment {
        ends: [b, a],
        name: (x & 1) as u8,
    };
    let none = if x & 16 == 0 { Some(b) } else { None };
    i32::from(Some(a) == none)
        + 2 * i32::from((a, 1) == (b, x & 1))
        + 4 * i32::from([a, b] == [b, b])
        + 8 * i32::from(one == other)
        + 16 * i32::from(one != other)
}

#[device_fn]
fn in_slices(x: i32) -> i32 {
    let all = [point(x), point(x >> 1), point(x >> 2), point(5)];
    let found = all.iter().position(|p| *p == point(2)).unwrap_or(9);
    i32::from(all.contains(&point(x >> 4))) + 2 * i32::from(all[..2] == all[2..]) + 4 * found as i32
}

#[device_fn]
fn as_methods(x: i32) -> i32 {
    let (a, b) = (task(x), task(x >> 2));
    let order = a.partial_cmp(&b).map_or(5, |order| order as i32);
    i32::from(a.eq(&b)) + 10 * order
}

#[device_fn]
fn ordered_by_hand(x: i32) -> i32 {
    let (a, b) = (task(x), task(x >> 2));
    i32::from(a < b) + 2 * i32::from(a <= b) + 4 * i32::from(a > b) + 8 * i32::from(a >= b)
}

#[device_fn]
fn orders_inside_of_others(x: i32) -> i32 {
    let job = |x: i32| Job {
        first: Coarse((x & 3) as u32),
        task: task(x >> 2),
        rest: x & 1,
    };
    let (a, b) = (job(x), job(x >> 1));
    i32::from(a < b)
        + 2 * i32::from(a <= b)
        + 4 * i32::from(a > b)
        + 8 * i32::from(a >= b)
        + 16 * i32::from((a.task, x) < (b.task, 3))
        + 32 * i32::from(a == b)
}

#[device_fn]
fn asserted(x: i32) -> i32 {
    assert!(point(1) == point(2));
    assert!(task(x) == task(x & 3 | 256));
    assert!(point(x) != point(x ^ 4));
    7
}

#[device_fn]
fn written_as_derived(x: i32) -> i32 {
    let plain = |x: i32| Plain {
        x: (x & 1) as f32,
        y: x >> 1 & 1,
    };
    let (a, b) = (plain(x), plain(x >> 2));
    i32::from(a == b) + 2 * i32::from(a < b) + 4 * i32::from(a >= b)
}

#[device_fn]
fn of_generic_structs(x: i32) -> i32 {
    let a = Pair {
        a: x & 1,
        b: (x & 2) as f64,
    };
    let b = Pair {
        a: x >> 2 & 1,
        b: if x & 8 == 8 { f64::NAN } else { 2.0 },
    };
    let (c, d) = (
        Pair {
            a: point(x),
            b: 1u8,
        },
        Pair {
            a: point(x >> 2),
            b: 1u8,
        },
    );
    i32::from(a == b) + 2 * i32::from(a < b) + 4 * i32::from(c == d)
}

#[device_fn]
fn between_structs_of_structs(x: i32) -> i32 {
    let segment = |x: i32| Segment {
        ends: [point(x), point(x + 1)],
        name: 0,
    };
    let (a, b) = ([segment(x), segment(3)], [segment(x >> 1), segment(3)]);
    i32::from(a == b) + 2 * i32::from(Some((a, x)) == Some((b, x)))
}

#[derive(Copy, Clone, Debug, PartialEq, KernelType)]
#[repr(C)]
struct Particle {
    at: F32x2,
    number: i32,
}

#[device_fn]
fn of_vectors(x: i32) -> i32 {
    let vector = |x: i32| {
        let y = if x & 2 == 2 { f32::NAN } else { -0.0 };
        F32x2::new((x & 1) as f32, y)
    };
    let particle = |x: i32| Particle {
        at: vector(x),
        number: x >> 2 & 1,
    };
    let (a, b) = (vector(x), vector(x >> 2));
    let (p, q) = (particle(x), particle(x >> 3));
    assert_eq!(particle(x & 1), particle(x & 1));
    assert_ne!(particle(0), particle(1));
    let words = U32x4::splat(x as u32) != U32x4::new(x as u32, 5, x as u32, 5);
    let found = [p, q]
        .iter()
        .position(|&of| of == q)
        .map_or(7, |i| i as i32);
    i32::from(a == b)
        + 2 * i32::from(p == q)
        + 4 * i32::from(p != q)
        + 8 * i32::from(words)
        + 16 * i32::from(Some(a) == Some(b))
        + 32 * i32::from([a, b] == [b, b])
        + 64 * found
}

#[device_fn]
fn of_what_is_assigned_later(x: i32) -> i32 {
    let number;
    let all;
    if x > 3 {
        number = x * 2;
        all = [x, 4];
    } else {
        number = 7;
        all = [4, x];
    }
    let sum: i32 = (&all[..]).iter().sum();
    assert_eq!(number, number);
    i32::from(number == 8) + 2 * i32::from(number != 7) + 4 * i32::from(number < 30) + 8 * sum
}
