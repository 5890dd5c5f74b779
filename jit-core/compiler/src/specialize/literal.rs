//! Literals of generic functions at concrete types.
//!
//! In a function over `T`, the literal `2` is an integer until `T` is known. It may then become
//! any number that it equals exactly: an integer in range, a float without rounding. A float
//! literal such as `0.1` becomes a float of any width, rounded to nearest-even, and nothing else,
//! because dropping its fraction silently would change what the program says.

use crate::ir::{Constant, Type};

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
        Constant::Bool(_) if scalar.is_bool() => Ok(constant),
        Constant::Bool(_) => Err("is a bool, not a value of"),
        Constant::Int(_) | Constant::Float(_) if scalar.is_bool() => {
            Err("is a number, not a value of")
        }
        Constant::Int(int) if scalar.is_float() => match scalar.exact_float(int) {
            Some(float) => Ok(Constant::Float(float)),
            None => Err("is not exact in"),
        },
        Constant::Int(int) if scalar.holds(int) => Ok(constant),
        Constant::Int(_) => Err("is out of range of"),
        Constant::Float(_) if scalar.is_float() => Ok(constant),
        Constant::Float(_) => Err("is a float, not a value of"),
    }
}
