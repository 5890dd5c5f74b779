//! Numbers as bytes, `into`, `try_into`, `Default::default()`, the limits of `usize`: each function runs as plain Rust on the
//! host and through the JIT.

#![allow(clippy::all, reason = "the ways to write something are what is tested")]

use kiln::prelude::*;

use super::Outcome;
use super::rust_language::on_host_and_device;

on_host_and_device! {
    integers_as_bytes floats_as_bytes bytes_as_numbers converted converted_or_ended arrays_of_slices
    defaults_by_type limits; not_converted
}

#[device_fn]
fn mixed<const N: usize>(bytes: [u8; N]) -> i32 {
    bytes.iter().fold(0, |all: i32, &byte| {
        all.wrapping_mul(31).wrapping_add(byte as i32)
    })
}

#[device_fn]
fn integers_as_bytes(x: i32) -> i32 {
    let (short, long) = ((x >> 7) as i16, x as i64 * 0x1_0203_0405);
    let small = mixed((x as u8).to_be_bytes()) ^ mixed((x as i8).to_le_bytes());
    let medium = mixed(short.to_be_bytes()) ^ mixed((short as u16).to_le_bytes());
    let native = mixed(x.to_ne_bytes()).wrapping_mul(3);
    small
        ^ medium
        ^ native
        ^ mixed(x.to_be_bytes())
        ^ mixed(long.to_be_bytes())
        ^ mixed((long as u64).to_le_bytes())
}

#[device_fn]
fn floats_as_bytes(x: i32) -> i32 {
    let (single, double) = (x as f32 / 3.0, x as f64 / 7.0);
    let again = f32::from_le_bytes(single.to_le_bytes());
    let (big, same) = (
        double.to_be_bytes(),
        f64::from_ne_bytes(double.to_ne_bytes()),
    );
    mixed(single.to_be_bytes()) ^ mixed(big) ^ (again == single && same == double) as i32
}

#[device_fn]
fn bytes_as_numbers(x: i32) -> i32 {
    let [a, b, c, d] = x.to_le_bytes();
    let word = u32::from_be_bytes([a, b, c, d]) ^ u32::from_le_bytes([d, 0x80, b, a]);
    let wide = i64::from_be_bytes([a, b, c, d, 0xff, 1, 2, b])
        ^ i64::from_le_bytes([d, c, b, a, 9, 8, 7, c]);
    let short = i16::from_be_bytes([a, d]) as i32 ^ u16::from_ne_bytes([c, b]) as i32;
    let single = u8::from_be_bytes([a]) as i32 + i8::from_le_bytes([d]) as i32;
    word as i32 ^ (wide >> 17) as i32 ^ short ^ single
}

#[device_fn]
fn widened(small: u8) -> u32 {
    small.into()
}

#[device_fn]
fn converted(x: i32) -> i32 {
    let (small, half, is_odd): (u8, i16, bool) = (x as u8, (x >> 3) as i16, x & 1 == 1);
    let mut sum: i64 = x.into();
    sum += i64::from(half) << 8;
    let scaled: f64 = half.into();
    let flag: i32 = is_odd.into();
    let index: usize = small.into();
    let double: f64 = (small as f32 / 2.0).into();
    sum as i32 ^ widened(small) as i32 ^ flag ^ index as i32 ^ (scaled / 2.0 + double) as i32
}

#[device_fn]
fn converted_or_ended(x: i32) -> i32 {
    let byte: u8 = (x & 0xff).try_into().unwrap();
    let signed: i8 = ((x & 0xff) - 128).try_into().expect("below 128");
    let length: usize = (x as i64 & 0xfff).try_into().unwrap();
    let back: i32 = (byte as u64 + length as u64).try_into().unwrap();
    let negative: i64 = (-(byte as i16)).try_into().unwrap();
    back ^ signed as i32 ^ negative as i32
}

#[device_fn]
fn arrays_of_slices(x: i32) -> i32 {
    let bytes = [x as u8, 1, (x >> 8) as u8, 3, 4, (x >> 16) as u8, 6, 7, 8];
    let at = (x & 3) as usize;
    let word = u32::from_be_bytes(bytes[at..at + 4].try_into().unwrap());
    let [first, .., last]: [u8; 3] = bytes[2 * at..2 * at + 3].try_into().expect("three of them");
    let by_reference: &[u8; 4] = bytes[3..7].try_into().unwrap();
    let mut sum = word ^ by_reference[2] as u32 ^ mixed(*by_reference) as u32;
    for part in bytes.chunks_exact(2) {
        sum = sum.wrapping_mul(5) ^ u16::from_le_bytes(part.try_into().unwrap()) as u32;
    }
    sum as i32 ^ first as i32 ^ (last as i32) << 9
}

#[derive(Copy, Clone, PartialEq, Default, KernelType)]
#[repr(C)]
struct Token {
    literal: u8,
    length: u16,
    at: [i32; 2],
}

#[derive(Copy, Clone, KernelType)]
#[repr(C)]
struct Settings {
    token: Token,
    gain: i32,
}

#[device_fn]
impl Default for Settings {
    fn default() -> Self {
        Settings {
            token: Token {
                length: 7,
                ..Default::default()
            },
            gain: 3 + i32::default(),
        }
    }
}

#[device_fn]
fn defaults_by_type(x: i32) -> i32 {
    let token = Token {
        length: x as u16,
        ..Default::default()
    };
    let settings = Settings {
        gain: x,
        ..Default::default()
    };
    let other: Settings = Default::default();
    let (zero, none): (i32, [u32; 3]) = (Default::default(), Default::default());
    let same = (token == Default::default()) as i32;
    token.length as i32
        ^ settings.token.length as i32 * 3
        ^ settings.gain
        ^ other.gain * 5
        ^ zero
        ^ none[1] as i32
        ^ same
}

const NOWHERE: usize = usize::MAX;
/// Counted from the limits.
const SKIPPED: usize = usize::MAX - 1;
const FIRST: isize = isize::MIN + 3;
const LAST: isize = isize::MAX - 2;

#[device_fn]
fn limits(x: i32) -> i32 {
    let at = if x & 1 == 0 {
        NOWHERE
    } else {
        (x & 7) as usize
    };
    let found = (at != usize::MAX) as i32 + 2 * (at == NOWHERE) as i32;
    let (least, most) = (isize::MIN, isize::MAX);
    let inside = (x as isize) >= least && (x as isize) <= most;
    let smallest = [5, usize::MAX, at, 9].into_iter().min().unwrap_or(0);
    let skipped = if x & 2 == 0 { SKIPPED } else { at };
    let near = (skipped == usize::MAX - 1) as i32
        + 2 * (NOWHERE - SKIPPED == 1) as i32
        + 4 * (FIRST - isize::MIN) as i32
        + 16 * (isize::MAX - LAST) as i32
        + 64 * (SKIPPED < NOWHERE && FIRST < LAST) as i32;
    found + 4 * inside as i32 + 8 * smallest as i32 + 1000 * near
}

#[kernel]
fn narrowed(x: &[i32], out: &mut [u8]) {
    let i = global_id().x;
    if i < x.len() {
        out[i] = x[i].try_into().unwrap();
    }
}

#[kernel]
fn in_fours(x: &[u8], size: usize, out: &mut [u32]) {
    out[0] = u32::from_le_bytes(x[..size].try_into().expect("a word has four bytes"));
}

#[kernel]
fn bits_of_an_index(out: &mut [u32]) {
    out[0] = usize::BITS;
    out[1] = usize::MAX.count_ones() + isize::BITS;
}

/// A conversion that fails ends the thread, and the launch tells where and why.
fn not_converted(jit: &Jit) -> Outcome {
    let mut out = jit.zeros(2)?;
    narrowed.launch(jit, (1, 2), &jit.upload(&[255, 0])?, &mut out)?;
    assert_eq!(out.to_vec()?, [255, 0]);
    for bad in [256, -1, i32::MIN] {
        let mut out = jit.zeros(1)?;
        narrowed.launch(jit, (1, 1), &jit.upload(&[bad])?, &mut out)?;
        let error = out.to_vec().unwrap_err().to_string();
        assert!(
            error.contains("called `Result::unwrap()` on an `Err` value"),
            "{error}"
        );
        assert!(error.contains("rust_conversions.rs"), "{error}");
    }
    let bytes = jit.upload(&[1u8, 2, 3, 4, 5])?;
    let mut out = jit.zeros(1)?;
    in_fours.launch(jit, (1, 1), &bytes, 4, &mut out)?;
    assert_eq!(out.to_vec()?, [0x0403_0201]);
    for size in [3, 5] {
        let mut out = jit.zeros(1)?;
        in_fours.launch(jit, (1, 1), &bytes, size, &mut out)?;
        let error = out.to_vec().unwrap_err().to_string();
        assert!(error.contains("a word has four bytes"), "{error}");
    }
    // A kernel's index has 32 bits, the host's 64.
    let mut out = jit.zeros(2)?;
    bits_of_an_index.launch(jit, (1, 1), &mut out)?;
    assert_eq!(out.to_vec()?, [32, 64]);
    Ok(())
}
