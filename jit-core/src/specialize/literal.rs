//! Literals of generic functions at concrete types.
//!
//! In a function over `T`, the literal `2` is an integer until `T` is known. It may then become
//! any number that it equals exactly: an integer in range, a float without rounding. A float
//! literal such as `0.1` becomes a float of any width, rounded to nearest-even, and nothing else,
//! because dropping its fraction silently would change what the program says.

use crate::ir::{Constant, Scalar, Type};

/// `constant` as a constant of `ty`, or what is wrong with it: words that the type follows.
pub(super) fn convert(constant: Constant, ty: Type) -> Result<Constant, &'static str> {
    let Some(scalar) = ty.as_scalar() else {
        return match constant {
            Constant::Zero => Ok(constant),
            _ => Err("is a number, not a value of"),
        };
    };
    match constant {
        Constant::Zero => Ok(constant),
        Constant::Bool(_) if scalar == Scalar::Bool => Ok(constant),
        Constant::Bool(_) => Err("is a bool, not a value of"),
        Constant::Int(_) | Constant::Float(_) if scalar == Scalar::Bool => {
            Err("is a number, not a value of")
        }
        Constant::Int(int) if scalar.is_float() => match exact_float(scalar, int) {
            Some(float) => Ok(Constant::Float(float)),
            None => Err("is not exact in"),
        },
        Constant::Int(int) if int_fits(scalar, int) => Ok(constant),
        Constant::Int(_) => Err("is out of range of"),
        Constant::Float(_) if scalar.is_float() => Ok(constant),
        Constant::Float(_) => Err("is a float, not a value of"),
    }
}

/// Whether `value` is in the range of the integer type `scalar`.
pub(super) fn int_fits(scalar: Scalar, value: i128) -> bool {
    if !scalar.is_int() {
        return false;
    }
    let bits = scalar.bits();
    if scalar.is_signed_int() {
        (-(1 << (bits - 1))..1 << (bits - 1)).contains(&value)
    } else {
        (0..1 << bits).contains(&value)
    }
}

/// `value` as a float of type `scalar`, if it is one.
fn exact_float(scalar: Scalar, value: i128) -> Option<f64> {
    // Significant bits and the largest exponent of the type (IEEE 754-2008, table 3.5; bfloat16
    // has the exponents of binary32).
    let (precision, max_exponent) = match scalar {
        Scalar::F16 => (11, 15),
        Scalar::BF16 => (8, 127),
        Scalar::F32 => (24, 127),
        Scalar::F64 => (53, 1023),
        _ => return None,
    };
    let magnitude = value.unsigned_abs();
    if magnitude == 0 {
        return Some(0.0);
    }
    let exponent = magnitude.ilog2();
    let significant = exponent + 1 - magnitude.trailing_zeros();
    // Every such value has at most 53 significant bits, so the conversion to f64 is exact.
    (significant <= precision && exponent <= max_exponent).then_some(value as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_of_integers() {
        for (scalar, low, high) in [
            (Scalar::I8, i128::from(i8::MIN), i128::from(i8::MAX)),
            (Scalar::U8, 0, i128::from(u8::MAX)),
            (Scalar::I64, i128::from(i64::MIN), i128::from(i64::MAX)),
            (Scalar::U64, 0, i128::from(u64::MAX)),
        ] {
            assert!(int_fits(scalar, low) && int_fits(scalar, high));
            assert!(!int_fits(scalar, low - 1) && !int_fits(scalar, high + 1));
        }
    }

    /// Against the conversions of Rust and of `half`, which round.
    #[test]
    fn exactness_agrees_with_rounding_conversions() {
        let mut values: Vec<i128> = (-5000..5000).collect();
        for shift in 0..127 {
            for near in [-3_i128, -1, 0, 1, 3] {
                values.push((1_i128 << shift).wrapping_add(near));
                values.push((-1_i128 << shift).wrapping_add(near));
            }
        }
        for value in values {
            let exact = |back: f64| back.is_finite() && back as i128 == value;
            // A value that is not exact in f64 is exact in no narrower type.
            let wide = value as f64;
            let in_f64 = exact(wide);
            let cases = [
                (Scalar::F64, in_f64),
                (Scalar::F32, in_f64 && exact(f64::from(wide as f32))),
                (
                    Scalar::F16,
                    in_f64 && exact(half::f16::from_f64(wide).to_f64()),
                ),
                (
                    Scalar::BF16,
                    in_f64 && exact(half::bf16::from_f64(wide).to_f64()),
                ),
            ];
            for (scalar, expected) in cases {
                let given = exact_float(scalar, value);
                assert_eq!(given.is_some(), expected, "{value} in {}", scalar.name());
                assert!(given.is_none_or(|float| float as i128 == value));
            }
        }
    }
}
