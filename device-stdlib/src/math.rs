//! Mathematical functions (CUDA guide, "Mathematical Functions"; PTX ISA, "Floating-Point
//! Instructions"). Each rounds correctly: the result is that of IEEE 754, the same on every
//! backend. `f16` and `bf16` are computed in `f32` and rounded.

use half::{bf16, f16};

use kiln_jit_core::build::{IntoVal, Place, Val, Var};
use kiln_jit_core::ir::{
    Effects, IntrinsicDef, Meaning, PtxCell, PtxLowering, Scalar, TypePattern, Uniformity,
};

const FLOATS: TypePattern =
    TypePattern::OneOf(&[Scalar::F16, Scalar::BF16, Scalar::F32, Scalar::F64]);

/// Cells for `f32` and `f64` through an LLVM intrinsic, and for the 16-bit floats through `f32`.
macro_rules! float_cells {
    ($llvm:literal) => {
        &[
            PtxCell {
                ty: Some(Scalar::F32),
                min_sm: 0,
                lowering: PtxLowering::Llvm {
                    name: $llvm,
                    overloaded: true,
                },
            },
            PtxCell {
                ty: Some(Scalar::F64),
                min_sm: 0,
                lowering: PtxLowering::Llvm {
                    name: $llvm,
                    overloaded: true,
                },
            },
            PtxCell {
                ty: Some(Scalar::F16),
                min_sm: 0,
                lowering: PtxLowering::ViaF32,
            },
            PtxCell {
                ty: Some(Scalar::BF16),
                min_sm: 0,
                lowering: PtxLowering::ViaF32,
            },
        ]
    };
}

macro_rules! float_rows {
    ($($row:ident = $name:literal, $llvm:literal, $params:expr, $f32:expr, $f64:expr;)*) => {
        /// The rows of this chapter.
        pub static ROWS: &[IntrinsicDef] = &[$(IntrinsicDef {
            name: $name,
            params: $params,
            result: TypePattern::SameAs(0),
            uniformity: Uniformity::Function,
            effects: Effects::None,
            result_below: 0,
            ptx: float_cells!($llvm),
            meaning: Meaning::Pure(|scalar, args| float_meaning(scalar, args, $f32, $f64)),
            version: 1,
        }),*];
        #[allow(non_camel_case_types, reason = "row numbers, spelled as the rows")]
        #[derive(Copy, Clone)]
        enum Row { $($row),* }
    };
}
float_rows! {
    sqrt = "math.sqrt", "llvm.sqrt", &[FLOATS], |a| a[0].sqrt(), |a| a[0].sqrt();
    abs = "math.abs", "llvm.fabs", &[FLOATS], |a| a[0].abs(), |a| a[0].abs();
    floor = "math.floor", "llvm.floor", &[FLOATS], |a| a[0].floor(), |a| a[0].floor();
    ceil = "math.ceil", "llvm.ceil", &[FLOATS], |a| a[0].ceil(), |a| a[0].ceil();
    trunc = "math.trunc", "llvm.trunc", &[FLOATS], |a| a[0].trunc(), |a| a[0].trunc();
    rint = "math.rint", "llvm.rint", &[FLOATS], |a| a[0].round_ties_even(), |a| a[0].round_ties_even();
    fma = "math.fma", "llvm.fma", &[FLOATS, TypePattern::SameAs(0), TypePattern::SameAs(0)],
        |a| a[0].mul_add(a[1], a[2]), |a| a[0].mul_add(a[1], a[2]);
}

/// Computes a row on the bits of its arguments.
fn float_meaning(
    scalar: Scalar,
    args: &[u64],
    single: fn(&[f32]) -> f32,
    double: fn(&[f64]) -> f64,
) -> u64 {
    let via_f32 = |widen: fn(u64) -> f32| {
        let mut wide = [0.0; 3];
        for (w, &bits) in wide.iter_mut().zip(args) {
            *w = widen(bits);
        }
        single(&wide)
    };
    match scalar {
        Scalar::F64 => {
            let mut wide = [0.0; 3];
            for (w, &bits) in wide.iter_mut().zip(args) {
                *w = f64::from_bits(bits);
            }
            double(&wide).to_bits()
        }
        Scalar::F16 => {
            u64::from(f16::from_f32(via_f32(|b| f16::from_bits(b as u16).to_f32())).to_bits())
        }
        Scalar::BF16 => {
            u64::from(bf16::from_f32(via_f32(|b| bf16::from_bits(b as u16).to_f32())).to_bits())
        }
        _ => u64::from(via_f32(|b| f32::from_bits(b as u32)).to_bits()),
    }
}

#[track_caller]
fn unary<'k>(row: Row, x: Val<'k>) -> Val<'k> {
    x.builder().intrinsic(&ROWS[row as usize], &[x])
}

/// Mathematical functions, as methods of values. All take floats.
pub trait Math<'k>: Copy {
    /// The value the functions are applied to.
    #[track_caller]
    fn value(self) -> Val<'k>;

    /// The square root, correctly rounded; NaN for negative numbers.
    #[track_caller]
    fn sqrt(self) -> Val<'k> {
        unary(Row::sqrt, self.value())
    }

    /// The absolute value.
    #[track_caller]
    fn abs(self) -> Val<'k> {
        unary(Row::abs, self.value())
    }

    /// The largest integer that is not greater.
    #[track_caller]
    fn floor(self) -> Val<'k> {
        unary(Row::floor, self.value())
    }

    /// The smallest integer that is not less.
    #[track_caller]
    fn ceil(self) -> Val<'k> {
        unary(Row::ceil, self.value())
    }

    /// The integer next to it towards zero.
    #[track_caller]
    fn trunc(self) -> Val<'k> {
        unary(Row::trunc, self.value())
    }

    /// The nearest integer, ties to even.
    #[track_caller]
    fn rint(self) -> Val<'k> {
        unary(Row::rint, self.value())
    }

    /// `self * factor + addend` with one rounding.
    #[track_caller]
    fn mul_add(self, factor: impl IntoVal<'k>, addend: impl IntoVal<'k>) -> Val<'k> {
        let x = self.value();
        let b = x.builder();
        let factor = factor.into_val(b, Some(x.ty()));
        let addend = addend.into_val(b, Some(x.ty()));
        b.intrinsic(&ROWS[Row::fma as usize], &[x, factor, addend])
    }

    /// The power with an exponent known now, by repeated squaring: `x.powi(3)` is two
    /// multiplications. A negative exponent gives the reciprocal of the positive power.
    #[track_caller]
    fn powi(self, exponent: i32) -> Val<'k> {
        let x = self.value();
        let b = x.builder();
        let one = b.lit(x.ty(), 1.0);
        let mut rest = exponent.unsigned_abs();
        let mut square = x;
        let mut power: Option<Val<'k>> = None;
        while rest > 0 {
            if rest & 1 == 1 {
                power = Some(power.map_or(square, |p| p * square));
            }
            rest >>= 1;
            if rest > 0 {
                square = square * square;
            }
        }
        let power = power.unwrap_or(one);
        if exponent < 0 { one / power } else { power }
    }
}

impl<'k> Math<'k> for Val<'k> {
    fn value(self) -> Val<'k> {
        self
    }
}

impl<'k> Math<'k> for Place<'k> {
    #[track_caller]
    fn value(self) -> Val<'k> {
        self.get()
    }
}

impl<'k> Math<'k> for Var<'k> {
    #[track_caller]
    fn value(self) -> Val<'k> {
        self.get()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meaning(name: &str, scalar: Scalar, args: &[u64]) -> u64 {
        match crate::find(name).expect("a row").meaning {
            Meaning::Pure(f) => f(scalar, args),
            Meaning::Position(_) | Meaning::Warp(_) => {
                panic!("{name} is no function of its arguments")
            }
        }
    }

    #[test]
    fn rows_mean_what_they_say() {
        let f32 = |x: f32| u64::from(x.to_bits());
        assert_eq!(
            meaning("math.sqrt", Scalar::F32, &[f32(2.0)]),
            f32(2.0f32.sqrt())
        );
        assert_eq!(meaning("math.rint", Scalar::F32, &[f32(2.5)]), f32(2.0));
        let args = [f32(3.0), f32(4.0), f32(5.0)];
        assert_eq!(meaning("math.fma", Scalar::F32, &args), f32(17.0));
        let half = u64::from(f16::from_f32(9.0).to_bits());
        assert_eq!(
            meaning("math.sqrt", Scalar::F16, &[half]),
            u64::from(f16::from_f32(3.0).to_bits())
        );
    }

    #[test]
    fn names_are_unique() {
        let mut names: Vec<_> = crate::registry().map(|d| d.name).collect();
        names.sort_unstable();
        let before = names.len();
        names.dedup();
        assert_eq!(names.len(), before);
    }
}
