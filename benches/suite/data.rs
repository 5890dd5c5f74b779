//! Input, and comparison of results.

use std::fmt::Display;

use crate::Checked;

/// Numbers that look random and are the same in each run (splitmix64; Steele, Lea, Flood 2014).
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Below `end`.
    pub fn below(&mut self, end: u32) -> u32 {
        (((self.next() >> 32) * u64::from(end)) >> 32) as u32
    }

    /// In `0.0..1.0`.
    pub fn unit(&mut self) -> f32 {
        (self.next() >> 40) as f32 / (1 << 24) as f32
    }

    pub fn units(&mut self, n: usize) -> Vec<f32> {
        (0..n).map(|_| self.unit()).collect()
    }

    pub fn integers(&mut self, n: usize, end: u32) -> Vec<i32> {
        (0..n).map(|_| self.below(end) as i32).collect()
    }
}

/// That two lists are equal.
pub fn equal<T: PartialEq + Display>(found: &[T], wanted: &[T]) -> Checked {
    differ(found, wanted, |found, wanted| found == wanted)
}

/// That each number is off by at most `tolerance` of it, or of 1 if it is smaller.
pub fn close(found: &[f32], wanted: &[f32], tolerance: f32) -> Checked {
    differ(found, wanted, |found, wanted| {
        (found - wanted).abs() <= tolerance * wanted.abs().max(1.0)
    })
}

/// [`close`] of `f64`.
pub fn close_f64(found: &[f64], wanted: &[f64], tolerance: f64) -> Checked {
    differ(found, wanted, |found, wanted| {
        (found - wanted).abs() <= tolerance * wanted.abs().max(1.0)
    })
}

fn differ<T: Display>(found: &[T], wanted: &[T], is_same: impl Fn(&T, &T) -> bool) -> Checked {
    if found.len() != wanted.len() {
        return Err(format!("{} results, not {}", found.len(), wanted.len()).into());
    }
    let other = (found.iter().zip(wanted)).position(|(found, wanted)| !is_same(found, wanted));
    match other {
        None => Ok(()),
        Some(i) => Err(format!("result {i} is {}, not {}", found[i], wanted[i]).into()),
    }
}
