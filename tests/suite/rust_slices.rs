//! Methods of slices and arrays. Each function runs as plain Rust on the host and through the JIT.

#![allow(clippy::all, reason = "the ways to write something are what is tested")]

use kiln::prelude::*;

use super::Outcome;
use super::rust_language::on_host_and_device;

on_host_and_device! {
    elements elements_in_place ends splits checked_splits whole_arrays in_place copies searched at_ends mapped
    empty_slices of_structs of_options in_generic swapped; of_buffers out_of_bounds
}

#[device_fn]
fn filled(x: i32) -> [i32; 9] {
    let mut values = [0; 9];
    for i in 0..9 {
        values[i] = (x >> i) ^ (i as i32 * 5);
    }
    values
}

#[device_fn]
fn elements(x: i32) -> i32 {
    let values = filled(x);
    let at = (x & 15) as usize;
    let by_ref = match values.get(at) {
        Some(v) => *v,
        None => 1000,
    };
    let part = &values[2..6];
    let copied = part.get(at).copied().unwrap_or(-7);
    let last = part.get(3).map_or(0, |v| *v);
    by_ref ^ copied.wrapping_mul(3) ^ last ^ part.get(4).is_none() as i32
}

#[device_fn]
fn elements_in_place(x: i32) -> i32 {
    let mut values = filled(x);
    let at = (x & 15) as usize;
    if let Some(v) = values.get_mut(at) {
        *v = 77;
    }
    let part = &mut values[3..];
    if let Some(v) = part.get_mut(at) {
        *v ^= 0x55;
    }
    let mut single = [5];
    if let Some(v) = single.first_mut() {
        *v += x & 3;
    }
    let mut sum = single[0];
    for v in values {
        sum = sum.wrapping_mul(3).wrapping_add(v);
    }
    sum
}

#[device_fn]
fn ends(x: i32) -> i32 {
    let mut values = filled(x);
    if let Some(last) = values.last_mut() {
        *last += 1;
    }
    let (first, last) = (values.first().unwrap(), values.last().unwrap());
    let part = &values[..(x & 3) as usize];
    let of_part = part.first().copied().unwrap_or(3) ^ part.last().copied().unwrap_or(5);
    let mut sum = first ^ last ^ of_part;
    let mut rest = &values[..];
    while let Some((head, tail)) = rest.split_first() {
        sum = sum.wrapping_mul(5) ^ head;
        rest = tail;
    }
    if let Some((last, before)) = part.split_last() {
        sum ^= last ^ before.len() as i32;
    }
    if let Some((head, tail)) = values.split_first_mut() {
        *head = 4;
        tail[0] = 5;
    }
    if let Some((tail, heads)) = values.split_last_mut() {
        *tail += heads[0];
    }
    sum ^ values[0] ^ values[1] ^ values[8]
}

#[device_fn]
fn splits(x: i32) -> i32 {
    let mut values = filled(x);
    let middle = (x & 7) as usize;
    let (low, high) = values.split_at(middle);
    let mut sum = (low.len() * 16 + high.len()) as i32;
    for v in low {
        sum ^= v;
    }
    for v in high.split_at(1).1 {
        sum = sum.wrapping_mul(3) ^ v;
    }
    let (low, high) = values.split_at_mut(4);
    for (a, b) in low.iter_mut().zip(high) {
        (*a, *b) = (*b, *a);
    }
    sum ^ values[0] ^ values[5]
}

#[device_fn]
fn checked_splits(x: i32) -> i32 {
    let mut values = filled(x);
    let middle = (x & 15) as usize;
    let lens = match values.split_at_checked(middle) {
        Some((low, high)) => low.len() * 100 + high.len(),
        None => 5,
    };
    if let Some((_, high)) = values.split_at_mut_checked(middle)
        && let Some(v) = high.first_mut()
    {
        *v = 9;
    }
    lens as i32 ^ values[(x & 7) as usize]
}

#[device_fn]
fn sum_of(values: &[i32]) -> i32 {
    let mut sum = 0i32;
    for v in values {
        sum = sum.wrapping_mul(7).wrapping_add(*v);
    }
    sum
}

#[device_fn]
fn whole_arrays(x: i32) -> i32 {
    let mut values = filled(x);
    let whole = values.as_mut_slice();
    whole[0] = 3;
    sum_of(values.as_slice())
}

#[device_fn]
fn in_place(x: i32) -> i32 {
    let mut values = filled(x);
    values.swap((x & 7) as usize, 3);
    values.swap(2, 2);
    values.reverse();
    let first = sum_of(&values);
    let mut even = [1, 2, x, 4];
    even.reverse();
    values[2..5].reverse();
    values[5..].fill(x);
    let part = &mut values[1..4];
    part.swap(0, 2);
    part.reverse();
    let mut zeros = [9; 3];
    zeros.fill(0);
    let mut no = [8, 7];
    no[1..1].reverse();
    first ^ sum_of(&values).wrapping_mul(3) ^ sum_of(&even) ^ sum_of(&zeros) ^ no[0]
}

#[device_fn]
fn copies(x: i32) -> i32 {
    let mut values = filled(x);
    let others = [x, 2, 3, 4];
    values[3..7].copy_from_slice(&others);
    let (low, high) = values.split_at_mut(5);
    low[1..3].clone_from_slice(&high[2..]);
    let mut all = [0; 4];
    all.copy_from_slice(&others);
    let part: &[i32] = &others[1..];
    all[..3].copy_from_slice(part);
    sum_of(&values) ^ sum_of(&all)
}

#[device_fn]
fn searched(x: i32) -> i32 {
    let values = filled(x & 0xff);
    let mut n = values.contains(&5) as i32;
    n = n * 2 + values[..4].contains(&x) as i32;
    n = n * 2 + values[3..3].contains(&0) as i32;
    n * 2 + [1.5f32, 2.5].contains(&((x & 3) as f32 + 0.5)) as i32
}

#[device_fn]
fn at_ends(x: i32) -> i32 {
    let text = [b'a', b'b', x as u8 & 1 | b'b', b'a', b'b'];
    let part = &text[..(x & 7) as usize % 6];
    let starts = part.starts_with(b"ab") as i32
        + 2 * text.starts_with(&part[..1.min(part.len())]) as i32
        + 4 * text.starts_with(part) as i32;
    let ends = part.ends_with(b"ab") as i32
        + 2 * part.ends_with(&text[3..]) as i32
        + 4 * part.ends_with(&text) as i32;
    starts + 8 * ends
}

#[device_fn]
fn mapped(x: i32) -> i32 {
    let values = filled(x);
    let pairs = values.map(|v| (v & 7, v > x));
    let floats = [1, 2, 3].map(|v| v as f32 * 0.5);
    let twice = |v: i32| v.wrapping_mul(2);
    let mut sum = sum_of(&values.map(twice));
    for (low, above) in pairs {
        sum = sum.wrapping_mul(2) ^ low ^ (above as i32 * 8);
    }
    sum ^ (floats[(x & 1) as usize] * 4.0) as i32
}

#[device_fn]
fn empty_slices(x: i32) -> i32 {
    let values = filled(x);
    let none = &values[4..4];
    let mut n = none.first().is_some() as i32;
    n = n * 2 + none.last().is_some() as i32;
    n = n * 2 + none.split_first().is_some() as i32;
    n = n * 2 + none.get(0).is_some() as i32;
    let (low, high) = none.split_at(0);
    n * 2 + low.is_empty() as i32 + high.len() as i32
}

#[derive(Copy, Clone, PartialEq, Debug, KernelType)]
#[repr(C)]
struct Body {
    at: [f32; 2],
    mass: i32,
}

#[device_fn]
fn of_structs(x: i32) -> i32 {
    let mut bodies = [Body {
        at: [0.5, x as f32],
        mass: x,
    }; 3];
    bodies[1].mass = 9;
    bodies.swap(0, 1);
    if let Some(Body { mass, .. }) = bodies.get_mut((x & 3) as usize) {
        *mass ^= 3;
    }
    let heaviest = match bodies.last() {
        Some(&Body { mass, at }) => mass + at[0] as i32,
        None => 0,
    };
    heaviest ^ bodies[0].mass ^ bodies[1].mass
}

#[device_fn]
fn of_options(x: i32) -> i32 {
    let mut slots = [None, Some(x), Some(4)];
    slots.swap(0, 1);
    slots.reverse();
    slots.first().copied().flatten().unwrap_or(8) ^ slots[1].unwrap_or(16)
}

#[device_fn]
fn ends_of<T: Num>(values: &mut [T], fill: T) -> T {
    values.swap(0, 1);
    values[2..].fill(fill);
    match (values.first(), values.last()) {
        (Some(&a), Some(&b)) => a + b,
        _ => T::ZERO,
    }
}

#[device_fn]
fn in_generic(x: i32) -> i32 {
    let (mut ints, mut floats) = ([x & 15, 2, 3], [1.5f32, 2.5, 3.5, 4.5]);
    ends_of(&mut ints, x & 7) + ends_of(&mut floats, 0.5) as i32 + ints[0] + floats[3] as i32
}

#[device_fn]
fn swapped(x: i32) -> i32 {
    let (mut a, mut b) = (x & 15, 3);
    std::mem::swap(&mut a, &mut b);
    let before = core::mem::replace(&mut a, 20);
    let taken = std::mem::take(&mut b);
    let mut values = [x, 5, 6];
    let (low, high) = values.split_at_mut(1);
    std::mem::swap(&mut low[0], &mut high[1]);
    a ^ b ^ before.wrapping_mul(3) ^ taken.wrapping_mul(5) ^ values[2]
}

#[kernel]
fn turned(x: &mut [u32], out: &mut [u32], shift: usize) {
    let tile = shared!([u32; 64]);
    let i = thread_idx().x;
    tile[i] = x.get(i + shift).copied().unwrap_or(100);
    barrier();
    if let (Some(to), Some(&from)) = (out.get_mut(i), tile.get(63 - i)) {
        *to = from;
    }
    if i == 0 {
        let (low, high) = x.split_at_mut(2);
        high.reverse();
        low.swap(0, 1);
        if let Some(last) = high.last_mut() {
            *last += 10;
        }
    }
}

fn of_buffers(jit: &Jit) -> Outcome {
    for (len, shift) in [(5u32, 0usize), (64, 3), (70, 0)] {
        let mut values: Vec<u32> = (1..=len).collect();
        let (mut x, mut out) = (jit.upload(&values)?, jit.zeros::<u32>(64)?);
        turned.launch(jit, (1, 64), &mut x, &mut out, shift)?;
        let at = |i: usize| values.get(i + shift).copied().unwrap_or(100);
        let want: Vec<u32> = (0..64).map(|i| at(63 - i)).collect();
        assert_eq!(out.to_vec()?, want);
        values[2..].reverse();
        values.swap(0, 1);
        *values.last_mut().expect("there are some") += 10;
        assert_eq!(x.to_vec()?, values);
    }
    Ok(())
}

#[kernel]
fn swap_far(x: &mut [i32], i: usize, j: usize) {
    x.swap(i, j);
}

#[kernel]
fn split_far(x: &mut [i32], middle: usize) {
    let (low, high) = x.split_at_mut(middle);
    low.reverse();
    high.reverse();
}

#[kernel]
fn copy_far(x: &mut [i32], other: &[i32]) {
    x[0] = 5;
    x.copy_from_slice(other);
}

/// What Rust panics at ends the thread before anything is changed, and the launch tells where.
fn out_of_bounds(jit: &Jit) -> Outcome {
    let values = [1, 2, 3];
    let mut x = jit.upload(&values)?;
    swap_far.launch(jit, (1, 1), &mut x, 0, 2)?;
    assert_eq!(x.to_vec()?, [3, 2, 1]);
    for (i, j) in [(1, 3), (3, 1)] {
        let mut x = jit.upload(&values)?;
        swap_far.launch(jit, (1, 1), &mut x, i, j)?;
        let error = x.to_vec().unwrap_err().to_string();
        assert!(
            error.contains("index 3") && error.contains("length 3"),
            "{error}"
        );
        assert!(error.contains("rust_slices.rs"), "{error}");
    }
    for (middle, want) in [(0, [3, 2, 1]), (1, [1, 3, 2]), (3, [3, 2, 1])] {
        let mut x = jit.upload(&values)?;
        split_far.launch(jit, (1, 1), &mut x, middle)?;
        assert_eq!(x.to_vec()?, want);
    }
    let mut x = jit.upload(&values)?;
    split_far.launch(jit, (1, 1), &mut x, 4)?;
    let error = x.to_vec().unwrap_err().to_string();
    assert!(
        error.contains("index 4") && error.contains("length 3"),
        "{error}"
    );
    let (mut x, other) = (jit.upload(&values)?, jit.upload(&[7, 8])?);
    copy_far.launch(jit, (1, 1), &mut x, &other)?;
    let error = x.to_vec().unwrap_err().to_string();
    assert!(
        error.contains("copy_from_slice") && error.contains("left: 2, right: 3"),
        "{error}"
    );
    Ok(())
}
