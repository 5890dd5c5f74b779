//! Numbers as 16-bit floats, rounded once, to nearest-even.
//!
//! The conversions of the crate `half` drop the low digits of an `f64` before they round, and going
//! through an `f32` rounds twice: both miss the nearest number by one in the last digit where what
//! was lost decides a tie. Here what is lost on the way sets the last digit, "rounds to odd", and
//! rounding that to fewer digits gives what rounding the number itself does (Boldo and Melquiond,
//! "Emulation of FMA and correctly rounded sums", 2008).

use half::{bf16, f16};

/// The nearest `f16`.
pub fn f16_from_f64(value: f64) -> f16 {
    f16::from_f32(odd_f32(value))
}

/// The nearest `bf16`.
pub fn bf16_from_f64(value: f64) -> bf16 {
    bf16::from_f32(odd_f32(value))
}

/// The nearest `f16`.
pub fn f16_from_int(value: i128) -> f16 {
    f16_from_f64(odd_f64(value))
}

/// The nearest `bf16`.
pub fn bf16_from_int(value: i128) -> bf16 {
    bf16_from_f64(odd_f64(value))
}

/// An integer as an `f64`, rounded to odd.
fn odd_f64(value: i128) -> f64 {
    // Of the 53 digits of an f64 40 are enough, as the next step keeps 24.
    const DIGITS: u32 = 40;
    let size = value.unsigned_abs();
    let extra = (u128::BITS - size.leading_zeros()).saturating_sub(DIGITS);
    let kept = size >> extra;
    let lost = kept << extra != size;
    let size = ((kept | u128::from(lost)) << extra) as f64;
    if value < 0 { -size } else { size }
}

/// An `f64` as an `f32`, rounded to odd.
fn odd_f32(value: f64) -> f32 {
    let nearest = value as f32;
    let back = f64::from(nearest);
    if back == value || value.is_nan() {
        return nearest;
    }
    // Towards zero first; below infinity is the largest number.
    let away = u32::from(back.abs() > value.abs());
    f32::from_bits((nearest.to_bits() - away) | 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is nearest follows from the distances to the neighbours, which `f64` holds exactly.
    fn check(value: f64, rounded: f64, below: f64, above: f64, even: bool) {
        let (off, left, right) = (rounded - value, below - value, above - value);
        let nearest = off.abs() <= left.abs() && off.abs() <= right.abs();
        let tie = off.abs() == left.abs() || off.abs() == right.abs();
        assert!(
            nearest && (even || !tie),
            "{value:e} became {rounded:e}, beside {below:e} and {above:e}"
        );
    }

    fn check_f16(value: f64) {
        let bits = f16_from_f64(value).to_bits();
        let at = |bits: u16| f16::from_bits(bits).to_f64();
        check(value, at(bits), at(bits - 1), at(bits + 1), bits & 1 == 0);
    }

    fn check_bf16(value: f64) {
        let bits = bf16_from_f64(value).to_bits();
        let at = |bits: u16| bf16::from_bits(bits).to_f64();
        check(value, at(bits), at(bits - 1), at(bits + 1), bits & 1 == 0);
    }

    #[test]
    fn what_an_f32_has_no_digits_for_decides_ties() {
        for bits in [1, 2, 0x3c00, 0x3c01, 0x7800, 0x7801_u16] {
            for (low, high) in [
                (
                    f16::from_bits(bits).to_f64(),
                    f16::from_bits(bits + 1).to_f64(),
                ),
                (
                    bf16::from_bits(bits).to_f64(),
                    bf16::from_bits(bits + 1).to_f64(),
                ),
            ] {
                let middle = (low + high) / 2.0;
                for near in [middle.next_down(), middle, middle.next_up()] {
                    if near < 65504.0 && near > 1e-7 {
                        check_f16(near);
                    }
                    check_bf16(near);
                }
            }
        }
    }

    #[test]
    fn integers_round_once() {
        for shift in 20..100 {
            for part in [0x101_i128, 0x103, 0x1ff] {
                let tie = part << shift;
                for value in [tie - 1, tie, tie + 1] {
                    let above = i128::from(value > tie) - i128::from(value < tie);
                    let even = (part >> 1) + (part >> 1 & 1);
                    let expected = match above {
                        1 => (part >> 1) + 1,
                        -1 => part >> 1,
                        _ => even,
                    };
                    let expected = (expected << (shift + 1)) as f64;
                    assert_eq!(bf16_from_int(value).to_f64(), expected, "{value:#x}");
                    assert_eq!(bf16_from_int(-value).to_f64(), -expected, "-{value:#x}");
                }
            }
        }
        assert_eq!(f16_from_int(65_519).to_f64(), 65_504.0);
        assert_eq!(f16_from_int(65_520), f16::INFINITY);
        assert_eq!(f16_from_int(i128::MIN), f16::NEG_INFINITY);
    }

    #[test]
    fn what_is_no_number_stays_so() {
        assert!(f16_from_f64(f64::NAN).is_nan() && bf16_from_f64(f64::NAN).is_nan());
        assert_eq!(f16_from_f64(f64::INFINITY), f16::INFINITY);
        assert_eq!(bf16_from_f64(f64::MAX), bf16::INFINITY);
        assert_eq!(bf16_from_f64(-0.0).to_bits(), 0x8000);
        assert_eq!(f16_from_f64(-5e-324).to_bits(), 0x8000);
    }
}
