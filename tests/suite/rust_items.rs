//! `for` over elements of slices and arrays, as on the host: each function runs as plain Rust there and through the
//! JIT, with equal results.

#![allow(clippy::all, reason = "the ways to write something are what is tested")]

use kiln::prelude::*;

use super::Outcome;
use super::rust_language::on_host_and_device;

on_host_and_device! {
    by_value by_reference changed_while_read with_indices pairs backwards parts_of_arrays windows_of_arrays ends steps
    leaves continues inner_loops of_structs mutable_pairs of_parts generic_lengths in_closures of_arrays_of_arrays
    results_of_calls values_in_tuples
    ; slices_of_any_length no_check_is_left the_size_of_parts
}

#[device_fn]
fn by_value(x: i32) -> i32 {
    let table = [x, 3, x & 5, -7];
    let mut sum = 0i32;
    for v in table {
        sum = sum.wrapping_mul(3).wrapping_add(v);
    }
    for mut v in table.into_iter() {
        v ^= 1;
        sum = sum.wrapping_mul(3).wrapping_add(v);
    }
    sum
}

#[device_fn]
fn by_reference(x: i32) -> i32 {
    let mut table = [x & 15, 3, x & 5, -7];
    let mut sum = 0;
    for v in &table {
        sum += *v;
    }
    for v in table.iter() {
        sum += v;
    }
    for &v in &table {
        sum += v * 2;
    }
    for v in &mut table {
        *v += 1;
    }
    for v in table.iter_mut() {
        *v *= 2;
        sum += *v;
    }
    for v in table.iter().copied() {
        sum ^= v;
    }
    for (v, w) in [(1, 2), (sum, 3)].iter().cloned() {
        sum += v * w;
    }
    sum
}

#[device_fn]
fn changed_while_read(x: i32) -> i32 {
    let mut table = [x & 15, 3, 5, 7];
    let mut at = 0;
    // The loop goes over the elements as they were.
    for v in table {
        table[3 - at] = v + 100;
        at += 1;
    }
    let mut sum = 0i32;
    for v in table.iter() {
        sum = sum.wrapping_mul(7).wrapping_add(*v);
    }
    sum
}

#[device_fn]
fn with_indices(x: i32) -> i32 {
    let mut table = [0; 9];
    for (i, v) in table.iter_mut().enumerate() {
        *v = i as i32 * (x & 7);
    }
    let mut sum = 0i32;
    for (i, &v) in table.iter().enumerate() {
        sum = sum.wrapping_mul(3).wrapping_add(v ^ i as i32);
    }
    for (i, _) in table.into_iter().enumerate() {
        sum = sum.wrapping_add(i as i32);
    }
    for pair in table.iter().enumerate() {
        sum = sum.wrapping_mul(3).wrapping_add(*pair.1 ^ pair.0 as i32);
    }
    sum
}

#[device_fn]
fn pairs(x: i32) -> i32 {
    let (short, long) = ([x & 3, 5], [1, 2, x & 7, 4, 5]);
    let mut sum = 0i32;
    for (a, b) in short.iter().zip(&long) {
        sum = sum.wrapping_mul(5).wrapping_add(a * b);
    }
    for (a, b) in long.iter().zip(short) {
        sum = sum.wrapping_mul(5).wrapping_add(a - b);
    }
    for (i, (a, (b, c))) in long
        .into_iter()
        .zip(long[1..].iter().zip(&long[2..]))
        .enumerate()
    {
        sum = sum.wrapping_mul(5).wrapping_add(a + b * c - i as i32);
    }
    for pair in short.iter().zip(long.iter().copied()) {
        sum = sum.wrapping_mul(5).wrapping_add(*pair.0 ^ pair.1);
    }
    sum
}

#[device_fn]
fn backwards(x: i32) -> i32 {
    let (short, long) = ([x & 3, 5], [1, 2, x & 7, 4, 5]);
    let mut sum = 0i32;
    for v in long.iter().rev() {
        sum = sum.wrapping_mul(5).wrapping_add(*v);
    }
    for (i, v) in long.iter().enumerate().rev() {
        sum = sum.wrapping_mul(5).wrapping_add(*v * i as i32);
    }
    for (i, v) in long.iter().rev().enumerate() {
        sum = sum.wrapping_mul(5).wrapping_add(*v * i as i32);
    }
    for (a, b) in long.iter().zip(&short).rev() {
        sum = sum.wrapping_mul(5).wrapping_add(a - b);
    }
    for (a, b) in long.iter().rev().zip(short.iter().rev()) {
        sum = sum.wrapping_mul(5).wrapping_add(a - b);
    }
    for v in long.into_iter().rev().rev() {
        sum = sum.wrapping_mul(5).wrapping_add(v);
    }
    sum
}

#[device_fn]
fn parts_of_arrays(x: i32) -> i32 {
    let mut table = [1, 2, x & 7, 4, 5, x & 31, 7, 8];
    let mut sum = 0i32;
    let size = (x & 3) as usize + 1;
    for part in table.chunks_exact(size) {
        sum = sum
            .wrapping_mul(5)
            .wrapping_add(part[0] - part[size - 1] + part.len() as i32);
    }
    for (i, part) in table.chunks_exact_mut(3).enumerate() {
        part[i] = -x & 7;
        for v in part {
            *v += 1;
        }
    }
    for part in table.chunks_exact(2).rev() {
        for v in part {
            sum = sum.wrapping_mul(5).wrapping_add(*v);
        }
    }
    for part in table[..7].chunks_exact(4) {
        sum = sum.wrapping_mul(5).wrapping_add(part[3]);
    }
    sum
}

#[device_fn]
fn windows_of_arrays(x: i32) -> i32 {
    let table = [1, 2, x & 7, 4, 5];
    let size = (x & 7) as usize + 1;
    let mut sum = 0i32;
    for part in table.windows(size) {
        sum = sum
            .wrapping_mul(5)
            .wrapping_add(part[0] - part[size - 1] + part.len() as i32);
    }
    for (i, part) in table.windows(2).enumerate() {
        sum = sum.wrapping_mul(5).wrapping_add(part[1] * i as i32);
    }
    sum
}

#[device_fn]
fn ends(x: i32) -> i32 {
    let table = [1, 2, x & 7, 4, 5, 6];
    let n = (x & 7) as usize;
    let mut sum = 0i32;
    for v in table.iter().take(n) {
        sum = sum.wrapping_mul(5).wrapping_add(*v);
    }
    for v in table.iter().skip(n) {
        sum = sum.wrapping_mul(5).wrapping_add(*v);
    }
    for (i, v) in table.iter().enumerate().take(4).skip(n).rev() {
        sum = sum.wrapping_mul(5).wrapping_add(*v - i as i32);
    }
    for v in table.iter().rev().take(n) {
        sum = sum.wrapping_mul(5).wrapping_add(*v);
    }
    for v in table.iter().rev().skip(2) {
        sum = sum.wrapping_mul(5).wrapping_add(*v);
    }
    sum
}

#[device_fn]
fn steps(x: i32) -> i32 {
    let table = [1, 2, x & 7, 4, 5, 6, 9];
    let n = (x & 7) as usize;
    let mut sum = 0i32;
    for v in table.iter().step_by(n + 1) {
        sum = sum.wrapping_mul(5).wrapping_add(*v);
    }
    for (i, v) in table.iter().enumerate().skip(n).step_by(2) {
        sum = sum.wrapping_mul(5).wrapping_add(*v * i as i32);
    }
    for v in table.iter().rev().step_by(3) {
        sum = sum.wrapping_mul(5).wrapping_add(*v);
    }
    for v in table[1..].iter().take(n).skip(1).rev().step_by(2) {
        sum = sum.wrapping_mul(5).wrapping_add(*v);
    }
    sum
}

#[device_fn]
fn leaves(x: i32) -> i32 {
    let table = [1, 2, x & 7, 4, 5, 6, 9];
    let mut count = 0;
    for &v in &table {
        if v == x & 15 {
            break;
        }
        count += 1;
    }
    for (i, v) in table.iter().enumerate() {
        if *v > 3 && i > 2 {
            return count * 10 + i as i32;
        }
    }
    count
}

#[device_fn]
fn continues(x: i32) -> i32 {
    let table = [1, 2, x & 7, 4, 5, 6, 9];
    let mut sum = 0;
    'outer: for a in table {
        for b in table.iter().rev() {
            if (a + b) % 3 == 0 {
                continue 'outer;
            }
            if *b == 4 {
                continue;
            }
            if a * b > 40 {
                break 'outer;
            }
            sum += a * b;
        }
    }
    sum
}

#[device_fn]
fn inner_loops(x: i32) -> i32 {
    let mut m = [[0; 3]; 4];
    for (i, row) in m.iter_mut().enumerate() {
        for (j, v) in row.iter_mut().enumerate() {
            *v = (i * 3 + j) as i32 ^ (x & 31);
        }
    }
    let mut sum = 0i32;
    for row in &m {
        for v in row {
            sum = sum.wrapping_mul(3).wrapping_add(*v);
        }
    }
    for row in m {
        let mut least = i32::MAX;
        for v in row {
            least = least.min(v);
        }
        sum = sum.wrapping_add(least);
    }
    sum
}

#[derive(Copy, Clone, KernelType)]
#[repr(C)]
struct Point {
    x: i32,
    y: i32,
}

#[device_fn]
impl std::ops::Add for Point {
    type Output = Point;
    fn add(self, other: Point) -> Point {
        Point {
            x: self.x + other.x,
            y: self.y - other.y,
        }
    }
}

#[device_fn]
fn of_structs(x: i32) -> i32 {
    let mut points = [
        Point { x: x & 7, y: 2 },
        Point { x: 3, y: x & 3 },
        Point { x: 1, y: 1 },
    ];
    for p in points.iter_mut() {
        p.x += 1;
        p.y *= 2;
    }
    let mut sum = Point { x: 0, y: 0 };
    for p in points {
        sum = sum + p;
    }
    for p in points.iter().rev() {
        sum = sum + *p;
    }
    for &Point { x, y } in &points {
        sum.x += x * y;
    }
    for (Point { x, .. }, (i, q)) in points.into_iter().zip(points.iter().enumerate()) {
        sum.y += x * q.y + i as i32;
    }
    sum.x * 100 + sum.y
}

#[device_fn]
fn mutable_pairs(x: i32) -> i32 {
    let mut a = [x & 7, 2, 3];
    let mut b = [4, 5, x & 3, 7];
    for (a, b) in a.iter_mut().zip(b.iter_mut()) {
        let c = *a;
        *a = *b;
        *b = c + 1;
    }
    for (a, b) in a.iter_mut().zip(&b) {
        *a += b;
    }
    let mut sum = 0;
    for (a, b) in a.iter().zip(b.iter()) {
        sum = sum * 11 + a - b;
    }
    sum + b[3]
}

#[device_fn]
fn of_parts(x: i32) -> i32 {
    let mut table = [1, 2, x & 7, 4, 5, 6, 9];
    let (from, to) = ((x & 3) as usize, 4 + (x & 1) as usize);
    for v in &mut table[from..to] {
        *v += 10;
    }
    let mut sum = 0;
    for v in table[from..].iter() {
        sum += v;
    }
    for v in &table[to..to] {
        sum += v + 1000;
    }
    let part = &table[..to];
    for v in part {
        sum ^= v;
    }
    sum
}

#[device_fn]
fn sum_of<T: Num, const N: usize>(x: [T; N], y: &[T; N], z: &[T]) -> T {
    let mut sum = T::ZERO;
    for v in x {
        sum += v;
    }
    for v in y {
        sum += *v;
    }
    for (v, w) in z.iter().zip(y.iter().rev()) {
        sum += *v * *w;
    }
    sum
}

#[device_fn]
fn generic_lengths(x: i32) -> i32 {
    let y = x & 15;
    sum_of([y, 1, 2], &[3, y, 5], &[y, y]) + sum_of([7u8], &[8], &[9, 10, 11]) as i32
}

#[device_fn]
fn folded<F: Fn(i32, i32) -> i32>(x: &[i32], first: i32, f: F) -> i32 {
    let mut result = first;
    for v in x {
        result = f(result, *v);
    }
    result
}

#[device_fn]
fn in_closures(x: i32) -> i32 {
    let table = [1, x & 7, 3];
    let sum = |n: i32| {
        let mut sum = n;
        for v in &table {
            sum += v;
        }
        sum
    };
    let nested = folded(&table, 3, |a, b| {
        let mut c = a;
        for v in table.iter().take(2) {
            c += v * b;
        }
        c
    });
    sum(1) + sum(x & 3) + nested
}

#[device_fn]
fn of_arrays_of_arrays(x: i32) -> i32 {
    let m = [[1, x & 3], [x & 7, 4]];
    let mut sum = 0;
    for row in [[1, x & 1]; 3] {
        sum += row[0] * row[1];
    }
    for (row, factor) in m.iter().zip([10, 100]) {
        sum += row[0] * factor + row[1];
    }
    sum
}

#[device_fn]
fn table_of(x: i32) -> [i32; 4] {
    [x & 1, x & 2, x & 4, x & 8]
}

#[device_fn]
fn results_of_calls(x: i32) -> i32 {
    let mut sum = 0;
    for v in table_of(x) {
        sum = sum * 3 + v;
    }
    for v in table_of(x).iter().rev() {
        sum = sum * 3 + v;
    }
    sum
}

#[device_fn]
fn values_in_tuples(x: i32) -> i32 {
    let mut pairs = [(1, 2u8), (x & 7, 3), (5, 4)];
    let mut sum = 0;
    for (a, b) in pairs {
        sum = sum * 3 + a * b as i32;
    }
    for (a, b) in &mut pairs {
        *a += *b as i32;
    }
    for &(a, b) in pairs.iter() {
        sum = sum * 3 + a * b as i32;
    }
    sum
}

#[kernel]
fn adds(x: &[f32], y: &mut [f32], total: &mut [f32]) {
    for (y, x) in y.iter_mut().zip(x) {
        *y += x;
    }
    for (i, v) in x.iter().enumerate().rev() {
        total[0] += v * i as f32;
    }
    for v in x {
        total[1] += v;
    }
    for part in x.chunks_exact(3) {
        total[2] += part[0] * part[2];
    }
}

fn slices_of_any_length(jit: &Jit) -> Outcome {
    for (n, m) in [(0, 0), (0, 3), (3, 0), (1, 1), (5, 7), (40, 33)] {
        let x: Vec<f32> = (1..=n).map(|i| i as f32).collect();
        let mut y = vec![0.5f32; m];
        let (on_device, mut changed) = (jit.upload(&x)?, jit.upload(&y)?);
        let mut total = jit.zeros(3)?;
        adds.launch(jit, (1, 1), &on_device, &mut changed, &mut total)?;
        y.iter_mut().zip(&x).for_each(|(y, x)| *y += x);
        assert_eq!(changed.to_vec()?, y);
        let weighted = x.iter().enumerate().map(|(i, v)| i as f32 * v).sum();
        let products = x.chunks_exact(3).map(|part| part[0] * part[2]).sum();
        assert_eq!(total.to_vec()?, [weighted, x.iter().sum(), products]);
    }
    Ok(())
}

#[kernel]
fn strided(x: &[u32], y: &mut [u32]) {
    let (start, step) = (global_id().x, global_size().x);
    for (y, x) in y.iter_mut().zip(x).skip(start).step_by(step) {
        *y = x * 2;
    }
}

fn no_check_is_left(jit: &Jit) -> Outcome {
    let ir = jit.inspect(
        &strided,
        args!(&jit.zeros::<u32>(100)?, &mut jit.zeros::<u32>(90)?),
    )?;
    let ir = ir.ir();
    assert_eq!(ir.matches("slice_index unchecked").count(), 2, "{ir}");
    assert_eq!(ir.matches("slice_index").count(), 2, "{ir}");
    let x: Vec<u32> = (0..100).collect();
    let mut y = jit.upload(&[1u32; 90])?;
    strided.launch(jit, (2, 32), &jit.upload(&x)?, &mut y)?;
    assert_eq!(y.to_vec()?, (0..90).map(|i| 2 * i).collect::<Vec<u32>>());
    Ok(())
}

#[kernel]
fn parts_of_size(x: &[u32], n: usize, out: &mut [u32]) {
    for part in x.chunks_exact(n) {
        out[0] += part.len() as u32;
    }
    for part in x.windows(n) {
        out[1] += part[n - 1];
    }
}

fn the_size_of_parts(jit: &Jit) -> Outcome {
    let x = jit.upload(&[1u32, 2, 3, 4, 5])?;
    let mut out = jit.zeros::<u32>(2)?;
    for n in [1usize, 2, 5, 6, u32::MAX as usize] {
        parts_of_size.launch(jit, (1, 1), &x, n, &mut out)?;
    }
    assert_eq!(out.to_vec()?, [5 + 4 + 5, 15 + 14 + 5]);
    parts_of_size.launch(jit, (1, 1), &x, 0, &mut out)?;
    let error = jit
        .synchronize()
        .expect_err("no part has no element")
        .to_string();
    assert!(
        error.contains("panicked: chunk size must be non-zero"),
        "{error}"
    );
    Ok(())
}
