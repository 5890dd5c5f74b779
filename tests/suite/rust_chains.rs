//! Chains of iterators, as on the host: each function runs as plain Rust there, where the iterators are Rust's own, and
//! through the JIT, with equal results.

#![allow(clippy::all, reason = "the ways to write something are what is tested")]

use std::cmp::Ordering;

use kiln::prelude::*;

use super::Outcome;
use super::rust_language::on_host_and_device;

on_host_and_device! {
    sums products counts extremes questions places folds adapters_in_any_order ranges nothing_in_them named_functions
    generic_sums in_a_for counted_on_the_way taken_and_skipped while_it_holds one_of_all by_key parts_of_ranges chunks_with_a_rest left_early inside_of_each_other captures patterns parts_of_slices optional
    by_comparison by_orderings zipped_behind_a_map values_of_options
    ; of_floats no_check_is_left
}

#[device_fn]
fn sums(x: i32) -> i32 {
    let table = [x & 255, 3, x & 5, -7];
    let all: i32 = table.iter().sum();
    let squares = table.iter().map(|v| v.wrapping_mul(*v)).sum::<i32>();
    let wide: i64 = table.iter().map(|&v| i64::from(v) * 3).sum();
    all.wrapping_add(squares) ^ wide as i32
}

#[device_fn]
fn by_comparison(x: i32) -> i32 {
    let table = [x & 31, 7, x & 5, -7, 7];
    let most = table.iter().max_by(|a, b| a.cmp(b)).map_or(0, |v| *v);
    let last = table
        .iter()
        .enumerate()
        .max_by(|(_, a), (_, b)| a.cmp(b))
        .map_or(9, |(i, _)| i as i32);
    let first = table
        .iter()
        .enumerate()
        .min_by(|a, b| (a.1 & 7).cmp(&(b.1 & 7)))
        .map_or(9, |(i, _)| i as i32);
    let floats = table.map(|v| v as f32 * -0.5);
    let total = floats.iter().copied().min_by(f32::total_cmp);
    let partial = floats.iter().max_by(|a, b| a.partial_cmp(b).unwrap());
    let down = floats.iter().copied().max_by(|a, b| b.total_cmp(a));
    let index = (0..5usize).max_by(|&i, &j| table[i].cmp(&table[j]).then(j.cmp(&i)));
    let halves =
        total.unwrap_or(0.0) * 2.0 + partial.map_or(0.0, |v| *v) * 64.0 + down.unwrap_or(3.0);
    most * 1000 + last * 100 + first * 10 + index.unwrap_or(5) as i32 + (halves * 2.0) as i32
}

#[device_fn]
fn by_orderings(x: i32) -> i32 {
    let (a, b) = (x & 3, x >> 2 & 3);
    let order = a.cmp(&b);
    let floats = [f32::NAN, -0.0, 0.0, 1.5, -f32::INFINITY, -f32::NAN];
    let (f, g) = (
        floats[(x & 63) as usize % 6],
        floats[(x >> 6 & 63) as usize % 6],
    );
    let total = match f.total_cmp(&g) {
        Ordering::Less => 1,
        Ordering::Equal => 2,
        Ordering::Greater => 3,
    };
    let partial = match f.partial_cmp(&g) {
        Some(Ordering::Less | Ordering::Greater) => 10,
        Some(_) => 20,
        None => 30,
    };
    let kind = i32::from(order.is_lt())
        + 2 * i32::from(order.is_le())
        + 4 * i32::from(order.is_gt())
        + 8 * i32::from(order.is_ge())
        + 16 * i32::from(order.is_eq())
        + 32 * i32::from(order.is_ne());
    let chosen = order
        .reverse()
        .then(b.cmp(&2))
        .then_with(|| (x & 1 == 1).cmp(&true));
    let pairs =
        (a, f).partial_cmp(&(b, g)).map_or(3, |o| o as i32) + (a, b, x).cmp(&(b, a, 3)) as i32;
    let last = if order == Ordering::Equal {
        7
    } else {
        chosen as i32
    };
    total + partial + 100 * kind + 10000 * (last + 2) + 100000 * pairs
}

#[device_fn]
fn zipped_behind_a_map(x: i32) -> i32 {
    let (left, right) = ([x & 7, 5, x & 1, 4], [3, x & 3, 9]);
    let dot: i32 = left
        .iter()
        .map(|v| v * 2)
        .zip(right.iter())
        .map(|(a, b)| a * b)
        .sum();
    let both = left
        .iter()
        .copied()
        .map(|v| v + 1)
        .zip(right.iter().map(|v| v - 1))
        .filter(|(a, b)| a > b)
        .count();
    let mut sum = 0;
    for (i, (a, &b)) in left
        .iter()
        .enumerate()
        .map(|(i, v)| v + i as i32)
        .zip(&right)
        .enumerate()
    {
        sum += (a ^ b) * (i as i32 + 1);
    }
    let three: i32 = left
        .iter()
        .map(|v| v & 3)
        .zip(right)
        .zip(left.iter().map(|v| v | 8))
        .map(|((a, b), c)| a * b + c)
        .sum();
    dot + 1000 * both as i32 + sum * 3 + three * 7
}

#[device_fn]
fn products(x: i32) -> i32 {
    let table = [x & 7, 3, 2 | x & 1];
    table.iter().product::<i32>() + table.iter().map(|v| v + 1).product::<i32>()
}

#[device_fn]
fn counts(x: i32) -> i32 {
    let table = [x, 3, x & 5, -7, 8];
    let even = table.iter().filter(|v| **v % 2 == 0).count();
    let large = table.iter().filter(|&&v| v > 3).count();
    (even * 10 + large + table.iter().count() * 100) as i32
}

#[device_fn]
fn extremes(x: i32) -> i32 {
    let table = [x & 63, 30, x & 5, -7, 30];
    let most = table.iter().max().map_or(0, |v| *v);
    let least = table.iter().copied().min().unwrap_or(1);
    let odd = table
        .iter()
        .copied()
        .filter(|v| v % 2 != 0)
        .max()
        .unwrap_or(0);
    most * 10000 + least * 100 + odd
}

#[device_fn]
fn questions(x: i32) -> i32 {
    let table = [x, 3, x & 5];
    let any = table.iter().any(|&v| v > 100);
    let all = table.iter().all(|v| *v > 0);
    let none = !table.iter().map(|v| v & 1).any(|v| v == 0);
    i32::from(any) + 10 * i32::from(all) + 100 * i32::from(none)
}

#[device_fn]
fn places(x: i32) -> i32 {
    let table = [x & 3, 3, x & 5, 2];
    let found = table.iter().find(|v| **v == 2).map_or(-1, |v| *v);
    let first = table.iter().position(|&v| v == 3).map_or(9, |at| at as i32);
    let last = table
        .iter()
        .rev()
        .position(|&v| v == 3)
        .map_or(9, |at| at as i32);
    let far = table
        .iter()
        .position(|&v| v == 77)
        .map_or(9, |at| at as i32);
    found * 1000 + first * 100 + last * 10 + far
}

#[device_fn]
fn folds(x: i32) -> i32 {
    let table = [x & 63, 30, x & 5, -7];
    let hash = table
        .iter()
        .fold(17i32, |hash, &v| hash.wrapping_mul(31).wrapping_add(v));
    let most = table.iter().copied().fold(i32::MIN, i32::max);
    let (low, high) = table
        .iter()
        .fold((0, 0), |(low, high), v| (low + (v & 1), high + (v >> 1)));
    let turned = table
        .iter()
        .fold(0i32, |sum, v| sum ^ -v ^ !v ^ v << 3 ^ 5 << (v & 3));
    hash ^ most ^ low ^ high ^ turned
}

#[device_fn]
fn adapters_in_any_order(x: i32) -> i32 {
    let table = [x & 63, 30, x & 5, -7, 12];
    let first = table
        .iter()
        .map(|v| v + 1)
        .filter(|v| v % 2 == 0)
        .map(|v| v * 3)
        .sum::<i32>();
    let second = table
        .iter()
        .filter(|v| **v > 0)
        .take_while(|v| **v < 40)
        .map(|v| v * 2)
        .sum::<i32>();
    let mut seen = 0;
    let third = table
        .iter()
        .inspect(|v| seen += **v)
        .filter_map(|&v| if v > 5 { Some(v - 5) } else { None })
        .count();
    first ^ second ^ seen ^ third as i32
}

#[device_fn]
fn ranges(x: i32) -> i32 {
    let n = x & 15;
    let squares: i32 = (0..n).map(|k| k * k).sum();
    let back = (1..=n)
        .rev()
        .step_by(2)
        .fold(0i32, |sum, k| sum.wrapping_mul(10).wrapping_add(k));
    squares ^ back ^ (0..n).filter(|k| k % 3 == 0).count() as i32
}

#[device_fn]
fn nothing_in_them(x: i32) -> i32 {
    let table = [x, 1];
    let none = &table[..0];
    let sum: i32 = none.iter().sum();
    let product: i32 = none.iter().product();
    let all = none.iter().all(|v| *v > 0);
    let any = none.iter().any(|v| *v > 0);
    let most = none.iter().copied().max().unwrap_or(x);
    sum + product * 10 + i32::from(all) * 100 + i32::from(any) * 1000 + (most & 7)
}

#[device_fn]
fn twice(v: i32) -> i32 {
    v.wrapping_mul(2)
}

#[device_fn]
fn named_functions(x: i32) -> i32 {
    let table = [x, 3, x & 5];
    let add = |a: i32, b: i32| a.wrapping_add(b);
    let of_function = table.iter().copied().map(twice).fold(0, add);
    of_function
        ^ table
            .iter()
            .copied()
            .map(i32::wrapping_neg)
            .fold(0, |a, b| a ^ b)
}

#[device_fn]
fn dot<T: Num>(x: &[T], y: &[T]) -> T {
    x.iter().zip(y).map(|(&a, &b)| a * b).sum()
}

#[device_fn]
fn generic_sums(x: i32) -> i32 {
    let (a, b) = ([x & 63, 2], [3, x & 7]);
    let (c, d) = ([(x & 3) as f32, 2.0], [0.5, 3.0]);
    dot(&a, &b) + dot(&c, &d) as i32
}

#[device_fn]
fn in_a_for(x: i32) -> i32 {
    let table = [x & 63, 30, x & 5, -7];
    let mut sum = 0;
    'rows: for v in table.iter().map(|v| v * 2).filter(|v| *v > 2) {
        for k in (0..3).filter(|k| k % 2 == 0) {
            if v + k == 12 {
                continue 'rows;
            }
            if v > 100 {
                break 'rows;
            }
            sum += v + k;
        }
    }
    sum
}

#[device_fn]
fn left_early(x: i32) -> i32 {
    let table = [x & 63, 30, x & 5, -7];
    for v in table.iter().filter(|v| **v < 10) {
        if *v == 4 {
            return 1000;
        }
    }
    let mut sum = 0;
    for (i, v) in table.iter().enumerate().map(|(i, v)| (i, v * 2)) {
        if v < 0 {
            break;
        }
        sum += v * i as i32;
    }
    sum
}

#[device_fn]
fn inside_of_each_other(x: i32) -> i32 {
    let rows = [[x & 7, 2], [3, x & 3]];
    let largest = rows
        .iter()
        .map(|row| row.iter().sum::<i32>())
        .max()
        .unwrap_or(0);
    let pairs: i32 = (0..3)
        .map(|i| (0..i).map(|j| i * j + x % 5).sum::<i32>())
        .sum();
    largest * 100 + pairs
}

#[device_fn]
fn captures(x: i32) -> i32 {
    let table = [x & 63, 30, x & 5, -7];
    let (mut lowest, limit) = (0, x & 15);
    table
        .iter()
        .filter(|v| **v > limit)
        .for_each(|v| lowest = v ^ lowest);
    let mut order = 0i32;
    let sum: i32 = table
        .iter()
        .map(|v| {
            order = order.wrapping_mul(10).wrapping_add(v & 7);
            v + order
        })
        .fold(0, |sum: i32, v| sum.wrapping_add(v));
    lowest ^ sum ^ order
}

#[device_fn]
fn patterns(x: i32) -> i32 {
    let pairs = [(x & 63, 3), (2, x & 5), (-7, 1)];
    let sum: i32 = pairs.iter().map(|&(a, b)| a * b).sum();
    let most = pairs
        .iter()
        .enumerate()
        .filter(|(i, (a, _))| *a > *i as i32)
        .count();
    let zipped = pairs
        .iter()
        .zip(pairs.iter().rev())
        .map(|((a, _), (_, b))| a - b)
        .sum::<i32>();
    sum ^ zipped ^ most as i32
}

#[device_fn]
fn parts_of_slices(x: i32) -> i32 {
    let table = [x & 63, 30, x & 5, -7, 9, x & 1];
    let sums = table
        .chunks_exact(2)
        .map(|part| part[0] - part[1])
        .filter(|d| *d > 0)
        .sum::<i32>();
    let rising = table.windows(2).filter(|w| w[0] < w[1]).count();
    let tail: i32 = table[2..].iter().skip(1).map(|v| v * 3).sum();
    sums * 10 + rising as i32 + tail
}

#[device_fn]
fn half_of(v: i32) -> Option<i32> {
    if v % 2 == 0 { Some(v / 2) } else { None }
}

#[device_fn]
fn optional(x: i32) -> i32 {
    let table = [x & 63, 30, x & 5];
    table.iter().filter_map(|&v| half_of(v)).sum::<i32>()
}

#[kernel]
fn weighted(x: &[f32], y: &[f32], total: &mut [f32]) {
    total[0] = x.iter().zip(y).map(|(a, b)| a * b).sum();
    total[1] = x.iter().copied().fold(f32::NEG_INFINITY, f32::max);
}

#[device_fn]
fn counted_on_the_way(x: i32) -> i32 {
    let table = [x & 63, 30, x & 5, -7, 12];
    let mut sum = 0;
    for (i, v) in table
        .iter()
        .map(|v| v * 2)
        .filter(|v| v % 4 == 0)
        .enumerate()
    {
        if v > 100 {
            continue;
        }
        sum += v * i as i32;
    }
    let first = table
        .iter()
        .filter(|v| **v > 5)
        .enumerate()
        .map(|(i, v)| v + i as i32)
        .sum::<i32>();
    let ranged = (2..7)
        .enumerate()
        .fold(0, |sum, (i, v)| sum * 3 + v * i as i32);
    sum ^ first ^ ranged
}

#[device_fn]
fn taken_and_skipped(x: i32) -> i32 {
    let table = [x & 63, 30, x & 5, -7, 12, 9];
    let n = (x & 3) as usize;
    let mut seen = 0;
    let some = table
        .iter()
        .inspect(|v| seen += **v)
        .filter(|v| **v > 3)
        .take(n)
        .sum::<i32>();
    let rest = table.iter().map(|v| v + 1).skip(n).sum::<i32>();
    let middle = table.iter().skip(1).take(n).sum::<i32>();
    let far = table
        .iter()
        .skip(n)
        .skip(1)
        .take(9)
        .take(3)
        .copied()
        .sum::<i32>();
    let mut last = 0;
    for v in table.iter().skip(n).rev().take(2) {
        last = last * 10 + v;
    }
    for v in table.iter().filter(|v| **v > 0).take(n) {
        if *v == 30 {
            continue;
        }
        last += v;
    }
    some ^ rest.wrapping_mul(3) ^ middle.wrapping_mul(5) ^ far.wrapping_mul(7) ^ last ^ seen
}

#[device_fn]
fn while_it_holds(x: i32) -> i32 {
    let table = [x & 7, 3, x & 5, 7, 2];
    let behind = table
        .iter()
        .skip_while(|v| **v < 4)
        .map(|v| v * 2)
        .sum::<i32>();
    let until = table
        .iter()
        .map_while(|&v| if v < 6 { Some(v * 10) } else { None })
        .count() as i32;
    behind * 10 + until
}

#[device_fn]
fn one_of_all(x: i32) -> i32 {
    let table = [x & 63, 30, x & 5, -7, 12];
    let n = (x & 7) as usize;
    let last = table
        .iter()
        .filter(|v| **v % 2 == 0)
        .last()
        .map_or(-1, |v| *v);
    let nth = table.iter().map(|v| v + 1).nth(n).unwrap_or(-5);
    let most = table
        .iter()
        .copied()
        .reduce(|a, b| if a > b { a } else { b })
        .unwrap();
    let none = (0..0).map(|v| v * 2).reduce(|a: i32, b| a + b).is_none();
    last ^ nth.wrapping_mul(3) ^ most.wrapping_mul(5) ^ i32::from(none)
}

#[device_fn]
fn by_key(x: i32) -> i32 {
    let table = [[x & 3, 1], [2, 2], [x & 1, 3], [2, 4]];
    let most = table
        .iter()
        .max_by_key(|pair| pair[0])
        .map_or(0, |pair| pair[1]);
    let least = table
        .iter()
        .min_by_key(|pair| pair[0])
        .map_or(0, |pair| pair[1]);
    let near = (0..5).min_by_key(|v| (v * 3 - (x & 15)).abs()).unwrap_or(9);
    most * 100 + least * 10 + near
}

#[device_fn]
fn parts_of_ranges(x: i32) -> i32 {
    let n = (x & 3) as usize;
    let first = (0..10).rev().take(n).sum::<i32>();
    let second = (0..20).step_by(3).skip(n).map(|v| v * v).sum::<i32>();
    let third: usize = (n..9).filter(|v| v % 2 == 1).skip(1).count();
    first * 1000 + second + third as i32
}

#[device_fn]
fn chunks_with_a_rest(x: i32) -> i32 {
    let mut table = [x & 63, 30, x & 5, -7, 12, 9, 4];
    let size = 1 + (x & 3) as usize;
    let lens = table
        .chunks(size)
        .fold(0, |hash, part| hash * 7 + part.len() as i32);
    let sums = table[1..]
        .chunks(4)
        .map(|part| part.iter().sum::<i32>())
        .max()
        .unwrap();
    for part in table.chunks_mut(size) {
        part.reverse();
    }
    let last = table.chunks(3).last().map_or(0, |part| part[0]);
    let first = table.chunks(size).nth(1).map_or(0, |part| part[0]);
    lens ^ sums.wrapping_mul(3) ^ last ^ first.wrapping_mul(11) ^ table[1]
}

fn of_floats(jit: &Jit) -> Outcome {
    let jit = super::exact(jit);
    let (x, y) = ([1.5f32, -2.0, 4.0], [0.5f32, 3.0, 0.25]);
    let (a, b) = (jit.upload(&x)?, jit.upload(&y)?);
    let mut total = jit.zeros(2)?;
    weighted.launch(&jit, (1, 1), &a, &b, &mut total)?;
    let product: f32 = x.iter().zip(&y).map(|(a, b)| a * b).sum();
    assert_eq!(total.to_vec()?, [product, 4.0]);
    Ok(())
}

#[kernel]
fn sum_of_squares(x: &[f32], total: &mut [f32]) {
    if !total.is_empty() {
        total[0] = x.iter().map(|v| v * v).sum();
    }
}

fn no_check_is_left(jit: &Jit) -> Outcome {
    let (x, mut total) = (jit.zeros::<f32>(8)?, jit.zeros::<f32>(1)?);
    let inspection = jit.inspect(&sum_of_squares, args!(&x, &mut total))?;
    let text = inspection.ir();
    assert!(!text.contains("slice_index %0"), "{text}");
    Ok(())
}

#[device_fn]
fn values_of_options(x: i32) -> i32 {
    let cases = [
        [None, None],
        [Some((1, 5)), None],
        [None, Some((2, -3))],
        [Some((7, 1)), Some((4, 9))],
    ];
    let mut sum = 0;
    for (a, b) in cases[(x & 3) as usize].iter().flatten() {
        if *b > 7 {
            break;
        }
        sum += a * 10 + b;
    }
    let own = [
        (x & 4 == 4).then_some(x & 31),
        None,
        (x & 8 == 0).then_some(3),
    ];
    let all: i32 = own.iter().flatten().sum();
    let first = own
        .iter()
        .copied()
        .flatten()
        .take(1)
        .map(|v| v * 2)
        .sum::<i32>();
    let nested = (0..x & 7)
        .map(|k| {
            if k % 3 == 1 {
                Some(Some(k))
            } else if k == 2 {
                Some(None)
            } else {
                None
            }
        })
        .flatten()
        .flatten()
        .count();
    let largest = own.iter().flatten().max().map_or(-1, |v| *v);
    sum + 100 * all + 1000 * first + 7 * nested as i32 + largest
}
