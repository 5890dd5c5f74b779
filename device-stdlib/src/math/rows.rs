//! The rows of the chapter.

use half::{bf16, f16};

use kiln_jit_core::build::{DeviceFn, Val};
use kiln_jit_core::ir::{Cell, Family, IntrinsicDef, Meaning, Module, Scalar, Type, TypePattern};

pub(crate) const FLOATS: TypePattern =
    TypePattern::OneOf(&[Scalar::F16, Scalar::BF16, Scalar::F32, Scalar::F64]);

/// The type of exponents of 2.
pub(crate) const EXPONENT: TypePattern = TypePattern::Exact(Scalar::I32);
/// A float, and an exponent of 2.
pub(crate) const WITH_EXPONENT: TypePattern = TypePattern::Tuple(&[TypePattern::Chosen, EXPONENT]);

/// Cells for `f32` and `f64` through an LLVM intrinsic that is an instruction everywhere, or lowered to
/// some, and for the 16-bit floats through `f32`.
pub(crate) const fn cells(llvm: &'static str) -> [Cell; 4] {
    [
        Cell::overloaded(Family::Any, Scalar::F32, llvm),
        Cell::overloaded(Family::Any, Scalar::F64, llvm),
        Cell::via_f32(Family::Any, Scalar::F16),
        Cell::via_f32(Family::Any, Scalar::BF16),
    ]
}

/// A method that is an instruction everywhere: the row's name, and the intrinsic that LLVM has for it.
macro_rules! instruction {
    (@row $name:ident($($arg:ident),*), $row:literal, $llvm:literal) => {
        Some($crate::math::rows::of_floats(
            $row,
            [stringify!($name) $(, stringify!($arg))*].len(),
            const { &$crate::math::rows::cells($llvm) },
            ::kiln_jit_core::ir::Meaning::Pure(|scalar, args| {
                $crate::math::rows::float_meaning(
                    scalar,
                    args,
                    |&[x $(, $arg)*, ..]| f32::$name(x $(, $arg)*),
                    |&[x $(, $arg)*, ..]| f64::$name(x $(, $arg)*),
                )
            }),
        ))
    };
    (@build $row:path, ($x:ident $(, $arg:ident)*), $($how:tt)*) => {
        $crate::math::rows::call(&$row, $x, &[$($arg),*])
    };
}

/// A method that is a function written in the IR: the row's name, and what it computes; the instruction of
/// NVIDIA's GPUs that approximates it, if there is one.
macro_rules! function {
    (@row $name:ident($($arg:ident),*), $row:literal, $body:path, $approximations:path) => {
        match $crate::math::rows::function!(@row $name($($arg),*), $row, $body) {
            Some(row) => Some(row.with_approximations($approximations)),
            None => None,
        }
    };
    (@row $name:ident($($arg:ident),*), $row:literal, $body:path) => {
        Some($crate::math::rows::of_floats(
            $row,
            [stringify!($name) $(, stringify!($arg))*].len(),
            &[],
            ::kiln_jit_core::ir::Meaning::Body(|scalar| {
                $crate::math::rows::function_body(
                    $row,
                    ["x" $(, stringify!($arg))*],
                    scalar,
                    |[x $(, $arg)*]| $body(x $(, $arg)*),
                )
            }),
        ))
    };
    (@build $row:path, ($x:ident $(, $arg:ident)*), $($how:tt)*) => {
        $crate::math::rows::call(&$row, $x, &[$($arg),*])
    };
}

/// A method with two results, a function written in the IR: the row's name, and what it computes; the instructions of
/// NVIDIA's GPUs that approximate it, if there are any.
macro_rules! function_of_two {
    (@row $name:ident(), $row:literal, $body:path, $approximations:path) => {
        match $crate::math::rows::function_of_two!(@row $name(), $row, $body) {
            Some(row) => Some(row.with_approximations($approximations)),
            None => None,
        }
    };
    (@row $name:ident(), $row:literal, $body:path) => {
        Some($crate::math::rows::of_two(
            $row,
            ::kiln_jit_core::ir::Meaning::Body(|scalar| {
                $crate::math::rows::function_body($row, ["x"], scalar, |[x]| {
                    let [first, second] = $body(x);
                    $crate::math::rows::pair(first, second)
                })
            }),
        ))
    };
    (@build $row:path, ($x:ident), $($how:tt)*) => {
        $crate::math::rows::call(&$row, $x, &[])
    };
}

/// A method that takes a float apart or puts it together, a function written in the IR: the row's name, the pattern
/// of its result, and what it computes of the float and, if there is one, of an exponent or of another float.
macro_rules! exponents {
    (@row $name:ident($other:ident), $row:literal, $result:expr, $body:path, of two floats) => {
        Some(::kiln_jit_core::ir::IntrinsicDef::new(
            $row,
            &[
                $crate::math::rows::FLOATS,
                ::kiln_jit_core::ir::TypePattern::SameAs(0),
            ],
            $result,
            ::kiln_jit_core::ir::Meaning::Body(|scalar| {
                let params = ["x", stringify!($other)];
                $crate::math::rows::function_body($row, params, scalar, |[x, y]| $body(x, y))
            }),
        ))
    };
    (@build $row:path, ($x:ident, $other:ident), $name:literal, $result:expr, $body:path, of two floats) => {
        $crate::math::rows::call(&$row, $x, &[$other])
    };
    (@row $name:ident(), $row:literal, $result:expr, $body:path) => {
        Some(::kiln_jit_core::ir::IntrinsicDef::new(
            $row,
            &[$crate::math::rows::FLOATS],
            $result,
            ::kiln_jit_core::ir::Meaning::Body(|scalar| {
                $crate::math::rows::function_body($row, ["x"], scalar, |[x]| $body(x))
            }),
        ))
    };
    (@row $name:ident($exponent:ident), $row:literal, $result:expr, $body:path) => {
        Some(::kiln_jit_core::ir::IntrinsicDef::new(
            $row,
            &[$crate::math::rows::FLOATS, $crate::math::rows::EXPONENT],
            $result,
            ::kiln_jit_core::ir::Meaning::Body(|scalar| {
                let params = [
                    ("x", None),
                    (stringify!($exponent), Some(::kiln_jit_core::ir::Type::I32)),
                ];
                $crate::math::rows::mixed_body($row, params, scalar, |[x, n]| $body(x, n))
            }),
        ))
    };
    (@build $row:path, ($x:ident), $($how:tt)*) => {
        $crate::math::rows::call(&$row, $x, &[])
    };
    (@build $row:path, ($x:ident, $exponent:ident), $($how:tt)*) => {{
        let exponent = $exponent.into_val($x.builder(), Some(::kiln_jit_core::ir::Type::I32));
        $crate::math::rows::call(&$row, $x, &[exponent])
    }};
}

pub(crate) use {exponents, function, function_of_two, instruction};

/// The most parameters of a row.
const MOST: usize = 3;

/// A row of floats of one type, which its result has, too.
pub(crate) const fn of_floats(
    name: &'static str,
    params: usize,
    cells: &'static [Cell],
    meaning: Meaning,
) -> IntrinsicDef {
    const SAME: TypePattern = TypePattern::SameAs(0);
    const PARAMS: &[TypePattern; MOST] = &[FLOATS, SAME, SAME];
    IntrinsicDef::new(name, PARAMS.split_at(params).0, SAME, meaning).with_cells(cells)
}

/// A row of a float with two results of its type.
pub(crate) const fn of_two(name: &'static str, meaning: Meaning) -> IntrinsicDef {
    const TWO: TypePattern = TypePattern::Tuple(&[TypePattern::Chosen, TypePattern::Chosen]);
    IntrinsicDef::new(name, &[FLOATS], TWO, meaning)
}

/// A tuple of two values.
pub(crate) fn pair<'k>(first: Val<'k>, second: Val<'k>) -> Val<'k> {
    let k = first.builder();
    let ty = k.struct_type("tuple", &[("0", first.ty()), ("1", second.ty())]);
    k.construct(ty, &[first, second])
}

/// A call of a method's row.
#[track_caller]
pub(crate) fn call<'k>(
    row: &'static Option<IntrinsicDef>,
    receiver: Val<'k>,
    args: &[Val<'k>],
) -> Val<'k> {
    let args = [&[receiver], args].concat();
    match row {
        Some(row) => receiver.builder().intrinsic(row, &args),
        None => receiver,
    }
}

/// Computes a row on the bits of its arguments.
pub(crate) fn float_meaning(
    scalar: Scalar,
    args: &[u64],
    single: fn(&[f32; MOST]) -> f32,
    double: fn(&[f64; MOST]) -> f64,
) -> u64 {
    let via_f32 = |widen: fn(u64) -> f32| {
        let mut wide = [0.0; MOST];
        for (w, &bits) in wide.iter_mut().zip(args) {
            *w = widen(bits);
        }
        single(&wide)
    };
    match scalar {
        Scalar::F64 => {
            let mut wide = [0.0; MOST];
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

/// A function as a module, of one result or a pair; the 16-bit floats through `f32`.
pub(crate) fn function_body<const N: usize>(
    name: &str,
    params: [&str; N],
    scalar: Scalar,
    body: impl for<'k> Fn([Val<'k>; N]) -> Val<'k>,
) -> Option<Module> {
    mixed_body(name, params.map(|param| (param, None)), scalar, body)
}

/// A function as a module whose parameters are of the float's type or of one of their own; the 16-bit floats through
/// `f32`.
pub(crate) fn mixed_body<const N: usize>(
    name: &str,
    params: [(&str, Option<Type>); N],
    scalar: Scalar,
    body: impl for<'k> Fn([Val<'k>; N]) -> Val<'k>,
) -> Option<Module> {
    if !scalar.is_float() {
        return None;
    }
    let ty = Type::scalar(scalar);
    let computed = if scalar.is_half() { Type::F32 } else { ty };
    fn narrowed(value: Val<'_>, computed: Type, ty: Type) -> Val<'_> {
        if value.ty() == computed {
            value.cast(ty)
        } else {
            value
        }
    }
    let function = DeviceFn::build(&format!("{name}.{}", scalar.name()), |k| {
        let args = params.map(|(param, own)| match own {
            Some(own) => k.param(param, own),
            None => k.param(param, ty).cast(computed),
        });
        let value = body(args);
        let result = match value.ty().as_scalar() {
            Some(_) => narrowed(value, computed, ty),
            None => {
                let [first, second] =
                    ["0", "1"].map(|field| narrowed(value.field(field), computed, ty));
                pair(first, second)
            }
        };
        k.return_value(result);
    });
    function.ok().map(|f| f.module())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meaning(name: &str, scalar: Scalar, args: &[u64]) -> u64 {
        match crate::find(name).expect("a row").meaning {
            Meaning::Pure(f) => f(scalar, args),
            Meaning::Position(_)
            | Meaning::Warp(_)
            | Meaning::Body(_)
            | Meaning::Grid
            | Meaning::NamedBarrier { .. } => {
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
