//! Numbers, and the memories that addresses point into.

use std::ops::RangeInclusive;

use half::{bf16, f16};

use crate::all_variants;

/// The numeric types and `bool`.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum Scalar {
    /// True or false; one byte in memory, 0 or 1.
    Bool,
    /// Signed 8-bit integer, two's complement like all signed integers here.
    I8,
    /// Signed 16-bit integer.
    I16,
    /// Signed 32-bit integer.
    I32,
    /// Signed 64-bit integer.
    I64,
    /// Unsigned 8-bit integer.
    U8,
    /// Unsigned 16-bit integer.
    U16,
    /// Unsigned 32-bit integer.
    U32,
    /// Unsigned 64-bit integer.
    U64,
    /// IEEE 754 binary16.
    F16,
    /// bfloat16: the upper half of a binary32.
    BF16,
    /// IEEE 754 binary32.
    F32,
    /// IEEE 754 binary64.
    F64,
}

/// What sort of number a scalar is.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum ScalarKind {
    /// True or false.
    Bool,
    /// An integer.
    Int {
        /// Whether the integer has negative values.
        signed: bool,
    },
    /// A floating-point number.
    Float(FloatFormat),
}

/// The floats of 16 bits.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Half {
    /// IEEE 754 binary16.
    F16,
    /// bfloat16.
    BF16,
}

/// Which numbers a binary floating-point type has.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct FloatFormat {
    /// Significant bits, the one that is not stored included.
    pub precision: u32,
    /// The largest exponent of a finite number.
    pub max_exponent: u32,
}

impl FloatFormat {
    /// Whether an integer is such a number.
    pub(crate) fn holds(self, n: i128) -> bool {
        let magnitude = n.unsigned_abs();
        let Some(exponent) = magnitude.checked_ilog2() else {
            return true;
        };
        let significant = exponent + 1 - magnitude.trailing_zeros();
        significant <= self.precision && exponent <= self.max_exponent
    }
}

// Scalars in the order of their fixed type indices.
all_variants! {
    Scalar { Bool, I8, I16, I32, I64, U8, U16, U32, U64, F16, BF16, F32, F64 }
    AddressSpace { Generic, Global, Shared, Constant, Local, Param }
}

impl Scalar {
    /// The name in the text form, which is Rust's where Rust has one.
    pub const fn name(self) -> &'static str {
        match self {
            Scalar::Bool => "bool",
            Scalar::I8 => "i8",
            Scalar::I16 => "i16",
            Scalar::I32 => "i32",
            Scalar::I64 => "i64",
            Scalar::U8 => "u8",
            Scalar::U16 => "u16",
            Scalar::U32 => "u32",
            Scalar::U64 => "u64",
            Scalar::F16 => "f16",
            Scalar::BF16 => "bf16",
            Scalar::F32 => "f32",
            Scalar::F64 => "f64",
        }
    }

    /// Size and alignment in memory, in bytes.
    pub const fn bytes(self) -> u32 {
        match self {
            Scalar::Bool | Scalar::I8 | Scalar::U8 => 1,
            Scalar::I16 | Scalar::U16 | Scalar::F16 | Scalar::BF16 => 2,
            Scalar::I32 | Scalar::U32 | Scalar::F32 => 4,
            Scalar::I64 | Scalar::U64 | Scalar::F64 => 8,
        }
    }

    /// Width in bits; 1 for `bool`.
    pub fn bits(self) -> u32 {
        if self.is_bool() { 1 } else { self.bytes() * 8 }
    }

    /// A value, by its bits, as Rust's `{:?}` shows it.
    pub fn shown(self, bits: u64) -> String {
        match self {
            Scalar::Bool => (bits & 1 != 0).to_string(),
            Scalar::I8 => (bits as i8).to_string(),
            Scalar::I16 => (bits as i16).to_string(),
            Scalar::I32 => (bits as i32).to_string(),
            Scalar::I64 => (bits as i64).to_string(),
            Scalar::U8 => (bits as u8).to_string(),
            Scalar::U16 => (bits as u16).to_string(),
            Scalar::U32 => (bits as u32).to_string(),
            Scalar::U64 => bits.to_string(),
            Scalar::F16 => format!("{:?}", f16::from_bits(bits as u16)),
            Scalar::BF16 => format!("{:?}", bf16::from_bits(bits as u16)),
            Scalar::F32 => format!("{:?}", f32::from_bits(bits as u32)),
            Scalar::F64 => format!("{:?}", f64::from_bits(bits)),
        }
    }

    /// What sort of number it is.
    pub const fn kind(self) -> ScalarKind {
        // IEEE 754-2008, table 3.5; bfloat16 has the exponents of binary32.
        const fn float(precision: u32, max_exponent: u32) -> ScalarKind {
            ScalarKind::Float(FloatFormat {
                precision,
                max_exponent,
            })
        }
        match self {
            Scalar::Bool => ScalarKind::Bool,
            Scalar::I8 | Scalar::I16 | Scalar::I32 | Scalar::I64 => {
                ScalarKind::Int { signed: true }
            }
            Scalar::U8 | Scalar::U16 | Scalar::U32 | Scalar::U64 => {
                ScalarKind::Int { signed: false }
            }
            Scalar::F16 => float(11, 15),
            Scalar::BF16 => float(8, 127),
            Scalar::F32 => float(24, 127),
            Scalar::F64 => float(53, 1023),
        }
    }

    /// Whether this is `bool`.
    pub const fn is_bool(self) -> bool {
        matches!(self.kind(), ScalarKind::Bool)
    }

    /// Whether this is one of `i8` .. `u64`.
    pub const fn is_int(self) -> bool {
        matches!(self.kind(), ScalarKind::Int { .. })
    }

    /// Whether this is one of `i8` .. `i64`.
    pub const fn is_signed_int(self) -> bool {
        matches!(self.kind(), ScalarKind::Int { signed: true })
    }

    /// Whether this is `f16`, `bf16`, `f32` or `f64`.
    pub const fn is_float(self) -> bool {
        matches!(self.kind(), ScalarKind::Float(_))
    }

    /// The unsigned integer that has as many bytes.
    pub const fn unsigned(self) -> Scalar {
        match self {
            Scalar::Bool | Scalar::I8 | Scalar::U8 => Scalar::U8,
            Scalar::I16 | Scalar::U16 | Scalar::F16 | Scalar::BF16 => Scalar::U16,
            Scalar::I32 | Scalar::U32 | Scalar::F32 => Scalar::U32,
            Scalar::I64 | Scalar::U64 | Scalar::F64 => Scalar::U64,
        }
    }

    /// The smallest and the largest value of an integer type; `None` for other types.
    pub fn int_range(self) -> Option<RangeInclusive<i128>> {
        let ScalarKind::Int { signed } = self.kind() else {
            return None;
        };
        let bits = self.bits() - u32::from(signed);
        let end = 1i128 << bits;
        Some(if signed { -end } else { 0 }..=end - 1)
    }

    /// The float of this type that equals an integer, if this is a float type and has it.
    pub fn exact_float(self, n: i128) -> Option<f64> {
        match self.kind() {
            // Such a number has at most 53 significant bits: it becomes an `f64` without rounding.
            ScalarKind::Float(format) => format.holds(n).then_some(n as f64),
            ScalarKind::Bool | ScalarKind::Int { .. } => None,
        }
    }

    /// Whether an integer is a value of this type: in range, or a float without rounding. None is a
    /// `bool`.
    pub fn holds(self, n: i128) -> bool {
        match self.kind() {
            ScalarKind::Bool => false,
            ScalarKind::Int { .. } => self.int_range().is_some_and(|range| range.contains(&n)),
            ScalarKind::Float(format) => format.holds(n),
        }
    }

    /// Which float of 16 bits it is, if it is one: stored in these, computed in `f32` and rounded.
    pub const fn as_half(self) -> Option<Half> {
        match self {
            Scalar::F16 => Some(Half::F16),
            Scalar::BF16 => Some(Half::BF16),
            Scalar::Bool
            | Scalar::I8
            | Scalar::I16
            | Scalar::I32
            | Scalar::I64
            | Scalar::U8
            | Scalar::U16
            | Scalar::U32
            | Scalar::U64
            | Scalar::F32
            | Scalar::F64 => None,
        }
    }

    /// Whether this is `f16` or `bf16`.
    pub const fn is_half(self) -> bool {
        self.as_half().is_some()
    }
}

/// Where the memory behind a pointer lies (CUDA guide, "Memory Hierarchy"; PTX ISA, "State
/// Spaces"). The numbers that LLVM gives these exist only in `codegen`.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub enum AddressSpace {
    /// Any of the others; found out at run time by the machine.
    Generic,
    /// Device memory, visible to all threads and to the host.
    Global,
    /// Memory of one thread block, for the block's lifetime.
    Shared,
    /// Read-only memory of a module, filled when it is loaded.
    Constant,
    /// Memory of one thread.
    Local,
    /// The kernel's parameter block: read-only, the same for all threads.
    Param,
}

impl AddressSpace {
    /// The name in the text form.
    pub const fn name(self) -> &'static str {
        match self {
            AddressSpace::Generic => "generic",
            AddressSpace::Global => "global",
            AddressSpace::Shared => "shared",
            AddressSpace::Constant => "constant",
            AddressSpace::Local => "local",
            AddressSpace::Param => "param",
        }
    }
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
            assert!(scalar.holds(low) && scalar.holds(high));
            assert!(!scalar.holds(low - 1) && !scalar.holds(high + 1));
            assert_eq!(scalar.int_range(), Some(low..=high));
        }
        for scalar in Scalar::ALL.into_iter().filter(|s| !s.is_int()) {
            assert_eq!(scalar.int_range(), None, "{scalar:?}");
        }
        assert!(!Scalar::Bool.holds(0) && !Scalar::Bool.holds(1));
    }

    #[test]
    fn unsigned_integers_have_the_same_bytes() {
        for scalar in Scalar::ALL {
            let unsigned = scalar.unsigned();
            assert!(unsigned.is_int() && !unsigned.is_signed_int());
            assert_eq!(unsigned.bytes(), scalar.bytes(), "{scalar:?}");
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
                let given = scalar.exact_float(value);
                assert_eq!(given.is_some(), expected, "{value} in {}", scalar.name());
                assert_eq!(
                    scalar.holds(value),
                    expected,
                    "{value} in {}",
                    scalar.name()
                );
                assert!(given.is_none_or(|float| float as i128 == value));
            }
        }
    }
}
