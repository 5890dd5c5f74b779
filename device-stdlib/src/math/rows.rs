//! The rows of the chapter.

use half::{bf16, f16};

use kiln_jit_core::build::{DeviceFn, Val};
use kiln_jit_core::ir::{Cell, Family, IntrinsicDef, Meaning, Module, Scalar, Type, TypePattern};

use super::{exponential, power, trigonometric};

const FLOATS: TypePattern =
    TypePattern::OneOf(&[Scalar::F16, Scalar::BF16, Scalar::F32, Scalar::F64]);

/// Cells for `f32` and `f64` through an LLVM intrinsic that is an instruction everywhere, or lowered to
/// some, and for the 16-bit floats through `f32`.
macro_rules! float_cells {
    ($llvm:literal) => {
        &[
            Cell::overloaded(Family::Any, Scalar::F32, $llvm),
            Cell::overloaded(Family::Any, Scalar::F64, $llvm),
            Cell::via_f32(Family::Any, Scalar::F16),
            Cell::via_f32(Family::Any, Scalar::BF16),
        ]
    };
}

macro_rules! float_rows {
    ($($row:ident = $name:literal, $llvm:literal, $params:expr, $f32:expr, $f64:expr;)*) => {
        /// The rows of this chapter that are instructions.
        pub static ROWS: &[IntrinsicDef] = &[$(IntrinsicDef::new(
            $name,
            $params,
            TypePattern::SameAs(0),
            Meaning::Pure(|scalar, args| float_meaning(scalar, args, $f32, $f64)),
        )
        .with_cells(float_cells!($llvm))),*];
        #[allow(non_camel_case_types, reason = "row numbers, spelled as the rows")]
        #[derive(Copy, Clone)]
        pub(super) enum Row { $($row),* }
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
        // The rows' patterns take floats only.
        Scalar::F32
        | Scalar::Bool
        | Scalar::I8
        | Scalar::I16
        | Scalar::I32
        | Scalar::I64
        | Scalar::U8
        | Scalar::U16
        | Scalar::U32
        | Scalar::U64 => u64::from(via_f32(|b| f32::from_bits(b as u32)).to_bits()),
    }
}

macro_rules! function_rows {
    ($($row:ident = $name:literal, $params:expr, $body:expr;)*) => {
        /// The rows of this chapter that are functions written in the IR.
        pub static FUNCTIONS: &[IntrinsicDef] = &[$(IntrinsicDef::new(
            $name,
            $params,
            TypePattern::SameAs(0),
            Meaning::Body(|scalar| function_body($name, $params.len(), scalar, $body)),
        )),*];
        #[allow(non_camel_case_types, reason = "row numbers, spelled as the rows")]
        #[derive(Copy, Clone)]
        pub(super) enum Function { $($row),* }
    };
}
function_rows! {
    exp = "math.exp", &[FLOATS], |a| exponential::exp(a[0]);
    exp2 = "math.exp2", &[FLOATS], |a| exponential::exp2(a[0]);
    log = "math.log", &[FLOATS], |a| exponential::ln(a[0]);
    log2 = "math.log2", &[FLOATS], |a| exponential::log2(a[0]);
    log10 = "math.log10", &[FLOATS], |a| exponential::log10(a[0]);
    sin = "math.sin", &[FLOATS], |a| trigonometric::sin(a[0]);
    cos = "math.cos", &[FLOATS], |a| trigonometric::cos(a[0]);
    tanh = "math.tanh", &[FLOATS], |a| exponential::tanh(a[0]);
    pow = "math.pow", &[FLOATS, TypePattern::SameAs(0)], |a| power::pow(a[0], a[1]);
}

/// A function as a module; the 16-bit floats through `f32`.
fn function_body(
    name: &str,
    params: usize,
    scalar: Scalar,
    body: impl for<'k> Fn(&[Val<'k>]) -> Val<'k>,
) -> Option<Module> {
    if !scalar.is_float() {
        return None;
    }
    let ty = Type::scalar(scalar);
    let computed = if scalar.is_half() { Type::F32 } else { ty };
    let function = DeviceFn::build(&format!("{name}.{}", scalar.name()), |k| {
        let args: Vec<Val<'_>> = ["x", "y"][..params]
            .iter()
            .map(|param| k.param(param, ty).cast(computed))
            .collect();
        k.return_value(body(&args).cast(ty));
    });
    function.ok().map(|f| f.module())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meaning(name: &str, scalar: Scalar, args: &[u64]) -> u64 {
        match crate::find(name).expect("a row").meaning {
            Meaning::Pure(f) => f(scalar, args),
            Meaning::Position(_) | Meaning::Warp(_) | Meaning::Body(_) => {
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
