//! Operators, conversions and mathematical functions, at their edges.

use half::{bf16, f16};
use kiln::core::job::CompileOptions;
use kiln::prelude::*;

use super::{Outcome, chapter};

chapter![
    saxpy_in_two_types,
    integer_division_is_defined_everywhere,
    shifts_count_modulo_the_width,
    floats_to_integers_saturate,
    half_types_round_each_result,
    min_and_max_prefer_numbers,
    math_functions,
    powers_of_any_exponent_are_the_same_products,
    selects_and_bools,
];

fn saxpy_in_two_types(jit: &Jit) -> Outcome {
    let saxpy = super::kernels::saxpy()?;
    let n = 1000;
    let x = jit.upload(&(0..n).map(|i| i as f32).collect::<Vec<_>>())?;
    let mut y = jit.upload(&vec![1.0f32; n])?;
    jit.launch(&saxpy, grid_for(n, 128), 128, args!(2.0f32, &x, &mut y))?;
    assert!(
        y.to_vec()?
            .iter()
            .enumerate()
            .all(|(i, &v)| v == 2.0 * i as f32 + 1.0)
    );
    let x = jit.upload(&(0..n).map(|i| i as f64).collect::<Vec<_>>())?;
    let mut y = jit.upload(&vec![1.0f64; n])?;
    jit.launch(&saxpy, grid_for(n, 128), 128, args!(2.0f64, &x, &mut y))?;
    assert!(
        y.to_vec()?
            .iter()
            .enumerate()
            .all(|(i, &v)| v == 2.0 * i as f64 + 1.0)
    );
    Ok(())
}

/// Applies `op` to every pair of `values` on the device.
fn pairs<T: KernelType>(
    jit: &Jit,
    values: &[T],
    op: impl for<'k> Fn(Val<'k>, Val<'k>) -> Val<'k>,
) -> Result<Vec<(T, T, T)>, kiln::Error> {
    let (left, right): (Vec<T>, Vec<T>) = values
        .iter()
        .flat_map(|&a| values.iter().map(move |&b| (a, b)))
        .unzip();
    let kernel = Kernel::build("pairs", |k| {
        let t = k.ty::<T>();
        let (out, a, b) = (k.slice_mut("out", t), k.slice("a", t), k.slice("b", t));
        let i = k.global_id().x();
        k.if_(i.lt(out.len()), || {
            out.at(i).set(op(a.at(i).get(), b.at(i).get()))
        });
    })?;
    let (a, b) = (jit.upload(&left)?, jit.upload(&right)?);
    let mut out = jit.upload(&left)?;
    jit.launch(
        &kernel,
        grid_for(left.len(), 64),
        64,
        args!(&mut out, &a, &b),
    )?;
    let out = out.to_vec()?;
    Ok(left
        .into_iter()
        .zip(right)
        .zip(out)
        .map(|((a, b), o)| (a, b, o))
        .collect())
}

macro_rules! division {
    ($jit:expr, $($t:ty)*) => {$(
        let values = [0 as $t, 1, 2, 3, 7, <$t>::MAX, <$t>::MIN, <$t>::MAX - 1, <$t>::MIN + 1];
        for (a, b, q) in pairs($jit, &values, |a, b| a / b)? {
            assert_eq!(q, a.checked_div(b).unwrap_or(a), "{a} / {b} in {}", stringify!($t));
        }
        for (a, b, r) in pairs($jit, &values, |a, b| a % b)? {
            assert_eq!(r, a.checked_rem(b).unwrap_or(0), "{a} % {b} in {}", stringify!($t));
        }
        for (a, b, p) in pairs($jit, &values, |a, b| a * b - b + a)? {
            assert_eq!(p, a.wrapping_mul(b).wrapping_sub(b).wrapping_add(a), "{a}, {b}");
        }
    )*};
}

fn integer_division_is_defined_everywhere(jit: &Jit) -> Outcome {
    division!(jit, i8 i16 i32 i64 u8 u16 u32 u64);
    Ok(())
}

macro_rules! shifts {
    ($jit:expr, $($t:ty)*) => {$(
        let values = [0 as $t, 1, 3, 7, 8, 31, 32, 33, 63, 64, 65, <$t>::MAX, <$t>::MIN];
        for (a, b, s) in pairs($jit, &values, |a, b| a << b)? {
            assert_eq!(s, a.wrapping_shl(b as u32), "{a} << {b} in {}", stringify!($t));
        }
        for (a, b, s) in pairs($jit, &values, |a, b| a >> b)? {
            assert_eq!(s, a.wrapping_shr(b as u32), "{a} >> {b} in {}", stringify!($t));
        }
    )*};
}

fn shifts_count_modulo_the_width(jit: &Jit) -> Outcome {
    shifts!(jit, i8 i16 i32 i64 u8 u16 u32 u64);
    Ok(())
}

fn convert<T: KernelType, U: KernelType>(
    jit: &Jit,
    values: &[T],
    zero: U,
) -> Result<Vec<U>, kiln::Error> {
    let kernel = Kernel::build("convert", |k| {
        let out = k.slice_mut("out", k.ty::<U>());
        let values = k.slice("values", k.ty::<T>());
        let i = k.global_id().x();
        k.if_(i.lt(out.len()), || {
            out.at(i).set(values.at(i).get().cast_to::<U>())
        });
    })?;
    let input = jit.upload(values)?;
    let mut out = jit.upload(&vec![zero; values.len()])?;
    jit.launch(
        &kernel,
        grid_for(values.len(), 64),
        64,
        args!(&mut out, &input),
    )?;
    out.to_vec()
}

macro_rules! saturation {
    ($jit:expr, $from:ty: $($to:ty)*) => {$(
        let values: Vec<$from> = vec![
            0.0, -0.0, 0.5, -0.5, 1.9, -1.9, 127.5, 128.0, -128.9, -129.0, 255.9, 256.0, 65_536.0,
            2_147_483_648.0, -2_147_483_904.0, 4_294_967_296.0, 9.3e18, -9.3e18, 1.9e19, 1e30,
            <$from>::NAN, <$from>::INFINITY, <$from>::NEG_INFINITY,
        ];
        let got = convert::<$from, $to>($jit, &values, 0)?;
        for (x, n) in values.iter().zip(got) {
            assert_eq!(n, *x as $to, "{x} from {} to {}", stringify!($from), stringify!($to));
        }
    )*};
}

fn floats_to_integers_saturate(jit: &Jit) -> Outcome {
    saturation!(jit, f32: i8 i16 i32 i64 u8 u16 u32 u64);
    saturation!(jit, f64: i8 i16 i32 i64 u8 u16 u32 u64);
    let integers = [i64::MIN, i64::MAX, -1, 0, 1, 16_777_217, (1 << 53) + 1];
    let want: Vec<f32> = integers.iter().map(|&n| n as f32).collect();
    assert_eq!(convert::<i64, f32>(jit, &integers, 0.0)?, want);
    let want: Vec<u8> = integers.iter().map(|&n| n as u8).collect();
    assert_eq!(convert::<i64, u8>(jit, &integers, 0)?, want);
    Ok(())
}

fn half_types_round_each_result(jit: &Jit) -> Outcome {
    // Contraction would leave out the rounding of the product.
    let compile = CompileOptions::default().contract(false);
    let options = JitOptions::default().compile(compile);
    let jit = &Jit::with(jit.device().clone(), jit.hooks().clone(), options);
    let numbers = [0.0f32, 1.0, -1.5, 0.1, 3.25, 65_000.0, 1e-7, 1000.5];
    let values = numbers.map(f16::from_f32);
    for (a, b, o) in pairs(jit, &values, |a, b| a * b + a)? {
        let product = f16::from_f32(a.to_f32() * b.to_f32());
        let want = f16::from_f32(product.to_f32() + a.to_f32());
        assert_eq!(o.to_bits(), want.to_bits(), "{a} * {b} + {a}");
    }
    let values = numbers.map(bf16::from_f32);
    for (a, b, o) in pairs(jit, &values, |a, b| a * b + a)? {
        let product = bf16::from_f32(a.to_f32() * b.to_f32());
        let want = bf16::from_f32(product.to_f32() + a.to_f32());
        assert_eq!(o.to_bits(), want.to_bits(), "{a} * {b} + {a}");
    }
    Ok(())
}

fn min_and_max_prefer_numbers(jit: &Jit) -> Outcome {
    let values = [1.0f32, -2.0, f32::INFINITY, f32::NAN];
    for (a, b, m) in pairs(jit, &values, |a, b| a.min(b))? {
        assert!(
            m == a.min(b) || (m.is_nan() && a.is_nan() && b.is_nan()),
            "min({a}, {b}) = {m}"
        );
    }
    for (a, b, m) in pairs(jit, &values, |a, b| a.max(b))? {
        assert!(
            m == a.max(b) || (m.is_nan() && a.is_nan() && b.is_nan()),
            "max({a}, {b}) = {m}"
        );
    }
    for (a, b, m) in pairs(jit, &[i32::MIN, -1, 0, 5, i32::MAX], |a, b| a.min(b))? {
        assert_eq!(m, a.min(b));
    }
    for (a, b, m) in pairs(jit, &[0u64, 1, u64::MAX], |a, b| a.max(b))? {
        assert_eq!(m, a.max(b));
    }
    Ok(())
}

fn math_functions(jit: &Jit) -> Outcome {
    let values = [0.0f64, 1.0, 2.5, -2.5, 1e10, -0.1, 3.5];
    let check = |name: &str, got: Vec<(f64, f64, f64)>, want: fn(f64) -> f64| {
        for (a, _, o) in got {
            let want = want(a);
            assert!(
                o == want || (o.is_nan() && want.is_nan()),
                "{name}({a}) = {o}, not {want}"
            );
        }
    };
    check("sqrt", pairs(jit, &values, |a, _| a.sqrt())?, f64::sqrt);
    check("abs", pairs(jit, &values, |a, _| a.abs())?, f64::abs);
    check("floor", pairs(jit, &values, |a, _| a.floor())?, f64::floor);
    check("ceil", pairs(jit, &values, |a, _| a.ceil())?, f64::ceil);
    check("trunc", pairs(jit, &values, |a, _| a.trunc())?, f64::trunc);
    check(
        "round_ties_even",
        pairs(jit, &values, |a, _| a.round_ties_even())?,
        f64::round_ties_even,
    );
    for (a, b, o) in pairs(jit, &values, |a, b| a.mul_add(b, a))? {
        assert_eq!(o, a.mul_add(b, a));
    }
    for (a, _, o) in pairs(jit, &values, |a, _| a.powi(-3))? {
        let want = 1.0 / (a * (a * a));
        assert!(
            (o - want).abs() <= 1e-12 * want.abs() || o == want,
            "powi({a}, -3) = {o}"
        );
    }
    Ok(())
}

/// Where the exponent is known a power is multiplications, else a loop: of the same factors in one order.
fn powers_of_any_exponent_are_the_same_products(jit: &Jit) -> Outcome {
    let exponents = [-17i32, -3, -1, 0, 1, 2, 7, 30, i32::MIN];
    let values = [1.1f32, -0.75, 3.0, 0.0, -2.5];
    let count = exponents.len() as u32;
    let kernel = Kernel::build("powers", |k| {
        let (known, other) = (
            k.slice_mut("known", Type::F32),
            k.slice_mut("other", Type::F32),
        );
        let (x, n) = (k.slice("x", Type::F32), k.slice("n", Type::I32));
        let i = k.global_id().x();
        k.if_(i.lt(x.len()), || {
            let x = x.at(i).get();
            for (j, &exponent) in (0u32..).zip(&exponents) {
                known.at(i * count + j).set(x.powi(exponent));
                other.at(i * count + j).set(x.powi(n.at(j).get()));
            }
        });
    })?;
    let (x, n) = (jit.upload(&values)?, jit.upload(&exponents)?);
    let mut powers = [0, 1].map(|_| jit.zeros::<f32>(values.len() * exponents.len()));
    let [Ok(known), Ok(other)] = &mut powers else {
        panic!("memory")
    };
    jit.launch(&kernel, 1, 32, args!(&mut *known, &mut *other, &x, &n))?;
    let bits = |powers: &[f32]| powers.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
    assert_eq!(bits(&known.to_vec()?), bits(&other.to_vec()?));
    Ok(())
}

fn selects_and_bools(jit: &Jit) -> Outcome {
    let values = [-3i32, 0, 4, 7];
    for (a, b, o) in pairs(jit, &values, |a, b| {
        ((a.lt(b) & !a.eq(0)) | b.ge(7)).select(a, -b)
    })? {
        assert_eq!(o, if (a < b && a != 0) || b >= 7 { a } else { -b });
    }
    Ok(())
}
