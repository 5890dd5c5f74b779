//! Patterns of elements, and what is compared part by part, as on the host: each function runs as plain Rust there and
//! through the JIT, with equal results.

#![allow(clippy::all, reason = "the ways to write something are what is tested")]

use kiln::prelude::*;

use super::Outcome;
use super::rust_language::on_host_and_device;

on_host_and_device! {
    arrays_taken_apart rests of_arrays_behind_references nested literals_of_elements slices_by_length slices_from_both_ends
    slices_themselves rests_of_slices bound_by_reference assigned_through let_else_of_slices closures_of_pairs assigned_at_once
    tuples_compared tuples_in_order slices_compared arrays_compared parts_that_may_not_be_there
    parts_that_are_changed constant_slices byte_strings ranges_that_contain characters characters_changed defaults
    structs_compared structs_in_order
    ; of_windows a_default_of_kernels
}

#[device_fn]
fn arrays_taken_apart(x: i32) -> i32 {
    let [a, mut b, _, d] = [x, x ^ 5, 7, x & 9];
    b += 1;
    let [[e, f], [g, _]] = [[a, b], [d, 4]];
    e.wrapping_mul(3) ^ f ^ g.wrapping_mul(7)
}

#[device_fn]
fn rests(x: i32) -> i32 {
    let table = [x, 2, x & 3, 4, x ^ 5];
    let [first, .., last] = table;
    let [a, middle @ .., b] = table;
    let [.., c, _] = table;
    let [all @ ..] = table;
    let sum: i32 = middle.iter().map(|v| v & 255).sum();
    first ^ last.wrapping_mul(3) ^ a ^ b ^ c ^ sum ^ middle.len() as i32 ^ all[1]
}

#[device_fn]
fn of_arrays_behind_references(x: i32) -> i32 {
    let table = [x & 7, 2, 3];
    let [a, b, _] = &table;
    let [first, rest @ ..] = &table;
    *a + *b * 10 + *first * 100 + rest.len() as i32 * 1000 + rest[0]
}

#[device_fn]
fn nested(x: i32) -> i32 {
    let pair = (Some([x & 3, 5]), [x & 1, 2]);
    match pair {
        (Some([0, b]), _) => b,
        (Some([a, _]), [0, _]) => a * 10,
        (Some([a, b]), [1, c]) => a + b + c,
        (_, [_, d]) => d,
    }
}

#[device_fn]
fn literals_of_elements(x: i32) -> i32 {
    match [x & 1, x >> 1 & 1, x >> 2 & 3] {
        [0, 0, _] => 1,
        [0, 1, 0..=1] => 2,
        [1, n @ (0 | 1), 3] => 3 + n,
        [.., 2] => 5,
        [a, ..] if a == 1 => 6,
        _ => 7,
    }
}

#[device_fn]
fn slices_by_length(x: i32) -> i32 {
    let table = [x & 7, 2, 3, 4, 5];
    let part = &table[..(x & 3) as usize];
    match part {
        [] => -1,
        [one] => *one,
        [a, b] => a * 10 + b,
        [a, .., c] => a * 100 + c,
    }
}

#[device_fn]
fn slices_from_both_ends(x: i32) -> i32 {
    let table = [x & 7, 2, 3, 4, 5, x & 15];
    let part = &table[(x & 1) as usize..3 + (x & 3) as usize];
    let mut sum = 0;
    if let [first, second, .., last] = part {
        sum += first + 10 * second + 100 * last;
    }
    if let [.., a, 4] = part {
        sum += 1000 * a;
    }
    sum
}

#[device_fn]
fn slices_themselves(x: i32) -> i32 {
    let table = [x & 7, 2, x & 3, 4];
    let part = &table[1..];
    let one = if let [a, b, c] = *part { a * b - c } else { -1 };
    let two = match table[(x & 1) as usize..3] {
        [a, b] => a * 10 + b,
        [a, b, c] => a * 100 + b * 10 + c,
        _ => 0,
    };
    let three = match part {
        &[a, ..] => a,
        _ => 9,
    };
    one ^ two ^ three
}

#[device_fn]
fn rests_of_slices(x: i32) -> i32 {
    let table = [x & 7, 2, 3, 4, 5, 6];
    let mut part = &table[..1 + (x & 3) as usize];
    let mut sum = 0;
    while let [first, rest @ ..] = part {
        sum = sum * 10 + first + rest.len() as i32;
        part = rest;
    }
    match &table[(x & 1) as usize..] {
        [_, middle @ .., _] if middle.len() == 4 => sum + middle[3],
        [_, middle @ .., _] => sum - middle[0],
        _ => 0,
    }
}

#[device_fn]
fn bound_by_reference(x: i32) -> i32 {
    let mut table = [x & 7, 2, 3];
    let [a, _, c] = &mut table;
    *a += 10;
    *c *= 2;
    for [p, q] in &mut [[1, 2], [3, 4]] {
        *p += *q;
        table[0] += *p;
    }
    table[0] * 100 + table[2]
}

#[device_fn]
fn assigned_through(x: i32) -> i32 {
    let mut table = [x & 7, 2, 3, 4];
    if let [first, .., last] = &mut table[..3] {
        std::mem::swap(first, last);
    }
    if let [a, rest @ ..] = &mut table[1..] {
        *a = 9;
        rest[1] += 1;
    }
    table[0] * 1000 + table[1] * 100 + table[2] * 10 + table[3]
}

#[device_fn]
fn let_else_of_slices(x: i32) -> i32 {
    let table = [x & 7, 2, 3];
    let [a, b] = table[(x & 1) as usize..3] else {
        return -1;
    };
    let [first, ..] = &table[(x & 1) as usize..(x & 3) as usize | 1] else {
        return a - b;
    };
    a * b + *first
}

#[device_fn]
fn closures_of_pairs(x: i32) -> i32 {
    let pairs = [[x & 7, 2], [3, x & 1]];
    let dot = |[a, b]: [i32; 2]| a * 10 + b;
    let sums = pairs.iter().map(|[a, b]| a * b).sum::<i32>();
    let more = pairs.iter().map(|&[a, _]| a).max().unwrap();
    dot(pairs[0]) + sums + more
}

#[device_fn]
fn assigned_at_once(x: i32) -> i32 {
    let (mut a, mut b, mut c) = (1, x & 7, 3);
    [a, b] = [b, a];
    [c, _, a] = [a, b, c];
    let mut table = [a, b, c];
    [table[2], table[0], _] = table;
    table[0] * 100 + table[1] * 10 + table[2]
}

#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, KernelType)]
#[repr(u8)]
enum Suit {
    Hearts = 2,
    Spades = 7,
}

#[derive(Copy, Clone, Debug, PartialEq, PartialOrd, KernelType)]
#[repr(C)]
struct Card {
    suit: Suit,
    rank: i32,
    weight: f32,
}

#[derive(Copy, Clone, Debug, PartialEq, PartialOrd, KernelType)]
#[repr(C)]
struct Hand<T> {
    cards: [Card; 2],
    value: T,
}

#[device_fn]
fn card(x: i32) -> Card {
    Card {
        suit: if x & 1 == 1 {
            Suit::Spades
        } else {
            Suit::Hearts
        },
        rank: x >> 1 & 3,
        weight: if x & 8 == 8 {
            f32::NAN
        } else {
            (x & 16) as f32
        },
    }
}

#[device_fn]
fn structs_compared(x: i32) -> i32 {
    let (a, b) = (card(x), card(x >> 2));
    let hand = |x: i32| Hand {
        cards: [card(x), card(x ^ 2)],
        value: x & 1,
    };
    let (c, d) = (hand(x), hand(x >> 4));
    let all = [card(x), card(0)];
    let equal = i32::from(a == b) + 2 * i32::from(a != b) + 4 * i32::from(c == d);
    let parts = 8 * i32::from(Some(a) == Some(b)) + 16 * i32::from((a, 1) != (b, x & 1));
    let behind = 32 * i32::from(&a == &b) + 64 * i32::from(all == [b, card(0)]);
    let suits = 128 * i32::from(a.suit == Suit::Spades) + 256 * i32::from(all.contains(&b));
    equal + parts + behind + suits
}

#[device_fn]
fn structs_in_order(x: i32) -> i32 {
    let (a, b) = (card(x), card(x >> 2));
    i32::from(a < b)
        + 2 * i32::from(a <= b)
        + 4 * i32::from(a > b)
        + 8 * i32::from(a >= b)
        + 16 * i32::from(a.suit < b.suit)
        + 32 * i32::from((a, x) < (b, 3))
}

#[device_fn]
fn tuples_compared(x: i32) -> i32 {
    let (a, b) = ((x & 1, 2u8), (0, 2u8));
    let c = ((x & 3, 1.5f32), x & 4 != 0);
    i32::from(a == b) + 2 * i32::from(a != b) + 4 * i32::from(c == ((2, 1.5), true))
}

#[device_fn]
fn tuples_in_order(x: i32) -> i32 {
    let (a, b) = ((x & 3, x >> 2 & 3), (1, 2));
    let nan = (1, f32::NAN);
    let mut best = (i32::MAX, 0);
    for i in 0..4 {
        let candidate = ((x ^ i * 5) & 7, i);
        if candidate < best {
            best = candidate;
        }
    }
    let order = [
        a < b,
        a <= b,
        a > b,
        a >= b,
        nan < nan,
        nan <= nan,
        (0, f32::NAN) < nan,
    ];
    let mut bits = 0;
    for (i, &one) in order.iter().enumerate() {
        bits |= i32::from(one) << i;
    }
    bits + 1000 * best.0 + 10000 * best.1
}

#[device_fn]
fn slices_compared(x: i32) -> i32 {
    let table = [x & 1, 2, 1, 2];
    let (left, right) = (&table[..2], &table[2..]);
    let wide = &table[..2 + (x >> 1 & 1) as usize];
    i32::from(left == right)
        + 2 * i32::from(left != right)
        + 4 * i32::from(*wide == *left)
        + 8 * i32::from(wide == [1, 2])
        + 16 * i32::from(*left == [0, 2])
}

#[device_fn]
fn arrays_compared(x: i32) -> i32 {
    let (a, b) = ([x & 1, 2, x & 3], [1, 2, 3]);
    let nested = [(x & 1, 2), (3, 4)];
    i32::from(a == b) + 2 * i32::from(a != b) + 4 * i32::from(nested == [(1, 2), (3, 4)])
}

#[device_fn]
fn parts_that_may_not_be_there(x: i32) -> i32 {
    let table = [1, 2, 3, 4, x & 15];
    let at = (x & 7) as usize;
    let sum = |part: Option<&[i32]>| match part {
        Some(part) => part.iter().sum::<i32>() + 1,
        None => -1,
    };
    let reversed = (x & 3) as usize;
    sum(table.get(at..at + 2))
        + 100 * sum(table.get(at..))
        + 1000 * sum(table.get(..=at))
        + 7 * sum(table.get(2..reversed))
        + 9 * sum(table[..].get(..at))
        + 11 * sum(table.get(reversed..=reversed + 1))
}

#[device_fn]
fn parts_that_are_changed(x: i32) -> i32 {
    let mut table = [1, 2, 3, 4, x & 15];
    let at = (x & 7) as usize;
    if let Some(part) = table.get_mut(at..at + 2) {
        part[0] = 10;
        part[1] += 20;
    }
    for v in table[1..3].iter_mut() {
        *v *= 2;
    }
    for pair in table[1..].chunks_exact_mut(2) {
        pair.swap(0, 1);
    }
    table.iter().fold(0, |hash, &v| hash * 3 + v)
}

const WORD: &[u8] = b"kiln";
const PRIMES: &[i32] = &[2, 3, 5, 7, 11];
const STEPS: &[[i32; 2]; 3] = &[[1, 0], [0, 1], [-1, -1]];

#[device_fn]
fn constant_slices(x: i32) -> i32 {
    let at = (x & 3) as usize;
    let letter = WORD[at];
    let [dx, dy] = STEPS[at % 3];
    let sum: i32 = PRIMES.iter().sum();
    i32::from(letter) + PRIMES[at] * 1000 + sum * 10000 + dx * 3 + dy * 5 + PRIMES.len() as i32
}

#[device_fn]
fn byte_strings(x: i32) -> i32 {
    let digits = b"0123456789abcdef";
    let text = [b'k', b'i', b'l', b'n' ^ (x & 1) as u8];
    let is_word = text == *b"kiln";
    let also = &text[..] == WORD;
    i32::from(digits[(x & 15) as usize])
        + 1000 * i32::from(is_word)
        + 2000 * i32::from(also)
        + 4000 * i32::from(digits.contains(&b'f'))
}

#[device_fn]
fn ranges_that_contain(x: i32) -> i32 {
    let (low, f) = (x & 3, x as f32);
    let mut bits = i32::from((1..4).contains(&low));
    bits |= i32::from((1..=3).contains(&(x & 7))) << 1;
    bits |= i32::from((..2).contains(&low)) << 2;
    bits |= i32::from((low..).contains(&2)) << 3;
    bits |= i32::from((0.0..1e3).contains(&f)) << 4;
    let value = &low;
    bits | i32::from(!(0..low + 1).contains(value)) << 5
}

#[device_fn]
fn characters(x: i32) -> i32 {
    let c = x as u8;
    let all = [
        c.is_ascii(),
        c.is_ascii_alphabetic(),
        c.is_ascii_alphanumeric(),
        c.is_ascii_digit(),
        c.is_ascii_hexdigit(),
        c.is_ascii_lowercase(),
        c.is_ascii_uppercase(),
        c.is_ascii_punctuation(),
        c.is_ascii_graphic(),
        c.is_ascii_whitespace(),
        c.is_ascii_control(),
        c.eq_ignore_ascii_case(&b'K'),
    ];
    let mut bits = 0;
    for (i, &one) in all.iter().enumerate() {
        bits |= i32::from(one) << i;
    }
    bits | i32::from(c.to_ascii_lowercase()) << 12 | i32::from(c.to_ascii_uppercase()) << 20
}

#[device_fn]
fn characters_changed(x: i32) -> i32 {
    let mut text = [x as u8, b'a', b'Z', b'-'];
    text[0].make_ascii_uppercase();
    for c in text.iter_mut() {
        match *c {
            b'a'..=b'z' => c.make_ascii_uppercase(),
            b'A'..=b'Z' => c.make_ascii_lowercase(),
            _ => {}
        }
    }
    text.iter().fold(0, |hash, &c| hash * 31 + i32::from(c))
}

#[repr(C)]
#[derive(KernelType, Clone, Copy, Debug)]
struct Settings {
    step: f32,
    count: u32,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            step: 0.5,
            count: 3,
        }
    }
}

#[device_fn]
fn zero_of<T: Num + Default + PartialOrd + Clone>(x: T) -> T {
    if x > T::default() { T::default() } else { x }
}

#[device_fn]
fn defaults(x: i32) -> i32 {
    let mut settings = Settings::default();
    settings.step += x as f32;
    let other = Settings {
        count: 7,
        ..Settings::default()
    };
    let zero = u32::default() as i32 + zero_of(x);
    settings.step as i32
        + (settings.count * other.count) as i32
        + zero
        + other.step.to_bits() as i32
}

#[kernel]
fn windows(x: &[i32], out: &mut [i32]) {
    let i = global_id().x;
    if i < out.len() {
        out[i] = x
            .windows(3)
            .filter(|w| {
                if let [a, b, c] = **w {
                    a < b && b > c
                } else {
                    false
                }
            })
            .count() as i32;
        for pair in x.chunks_exact(2) {
            let [a, b] = pair else { continue };
            out[i] += a * b;
        }
    }
}

fn of_windows(jit: &Jit) -> Outcome {
    let x = [1, 3, 2, 2, 5, 4, 9, 1];
    let peaks = x.windows(3).filter(|w| w[0] < w[1] && w[1] > w[2]).count() as i32;
    let products: i32 = x.chunks_exact(2).map(|pair| pair[0] * pair[1]).sum();
    let (x, mut out) = (jit.upload(&x)?, jit.zeros::<i32>(1)?);
    windows.launch(jit, (1, 1), &x, &mut out)?;
    assert_eq!(out.to_vec()?, [peaks + products]);
    Ok(())
}

#[repr(C)]
#[derive(KernelType, Clone, Copy, Debug)]
struct Place {
    at: u32,
}

#[device_fn]
impl Place {
    fn default() -> Place {
        Place {
            at: global_id().x as u32,
        }
    }
}

#[kernel]
fn places(out: &mut [u32]) {
    let place = Place::default();
    if let Some(out) = out.get_mut(global_id().x) {
        *out = place.at;
    }
}

/// A `default()` of the type's own is called by each thread: its value on the host would be another.
fn a_default_of_kernels(jit: &Jit) -> Outcome {
    let mut out = jit.zeros::<u32>(3)?;
    places.launch(jit, (1, 32), &mut out)?;
    assert_eq!(out.to_vec()?, [0, 1, 2]);
    Ok(())
}
