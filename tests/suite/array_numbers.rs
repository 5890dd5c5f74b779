//! What arrays compute in: halves, sums, and how many elements there may be; and what an expression says of itself.

use expect_test::{Expect, expect};
use half::{bf16, f16};
use kiln::array::{ArrayError, where_};
use kiln::core::runtime::DeviceKind;
use kiln::core::target::{PtxTarget, Target};
use kiln::prelude::*;

use super::{Outcome, chapter};

chapter![
    halves_are_rounded_once,
    sums_do_not_wrap,
    indices_of_one_element,
    roots_are_folded,
    sums_of_halves,
    compensated_sums,
    softmax_of_any_size,
    expressions_explain_themselves,
    roots_beside_each_other,
    parts_that_are_used_twice,
    kernels_are_named_by_expressions,
    more_elements_than_indices,
    sums_of_more_elements_than_indices,
];

#[device_fn]
fn third(x: f16) -> f16 {
    x / f16::from_f64(3.0)
}

fn halves_are_rounded_once(jit: &Jit) -> Outcome {
    let jit = super::exact(jit);
    let arrays = Arrays::new(&jit);
    let host: Vec<f16> = (1..2000).map(|i| f16::from_f32(i as f32 / 7.0)).collect();
    let x = arrays.vector(host.clone())?;
    let one = f16::ONE;
    // 60000 + 60000 is too large for a half, their half is not.
    let large = arrays.vector(vec![f16::from_f32(60_000.0)])?;
    let mean = ((&large + &large) / f16::from_f32(2.0)).eval()?;
    assert_eq!(mean.item()?, f16::from_f32(60_000.0));
    let y = (one / (&x * &x) + &x).eval()?.to_vec()?;
    for (x, y) in host.iter().map(|x| x.to_f32()).zip(y) {
        assert_eq!(y, f16::from_f32(1.0 / (x * x) + x));
    }
    // A cast rounds, and a function of halves takes halves.
    let rounded = (large.expr() * one + one)
        .cast::<f32>()
        .cast::<f16>()
        .cast::<f32>();
    assert_eq!(rounded.eval()?.item()?, 60_000.0);
    let thirds = (&x + one).map(device!(third)).eval()?.to_vec()?;
    for (x, third) in host.iter().zip(thirds) {
        let sum = f16::from_f32(x.to_f32() + 1.0);
        assert_eq!(third, f16::from_f32(sum.to_f32() / 3.0));
    }
    let brain = arrays.vector(vec![bf16::from_f32(1.0), bf16::from_f32(256.0)])?;
    let one = bf16::from_f32(1.0);
    let same = ((&brain + one) - one).eval()?;
    assert_eq!(same.to_vec()?, brain.to_vec()?);
    let chosen = where_(brain.gt(one), &brain, one).eval()?;
    assert_eq!((chosen.to_vec()?, brain.argmax()?), (brain.to_vec()?, 1));
    let total = brain.expr().reduce(device!(|a, b| a + b), bf16::ZERO)?;
    assert_eq!(total, bf16::from_f32(257.0));
    Ok(())
}

#[kernel]
fn first_of(x: &[u32], y: &mut [u32]) {
    y[0] = x[0];
}

/// The index of the greatest of all elements, of types whose indexed numbers have padding and have none: an array as any other.
fn indices_of_one_element(jit: &Jit) -> Outcome {
    macro_rules! each {
        ($($number:ty)*) => {$({
            let arrays = Arrays::new(jit);
            let x = arrays.vector([3, 1, 4, 1, 5, 9, 2, 6].map(|x| x as $number).to_vec())?;
            let greatest = x.argmax_axis(0)?;
            assert_eq!((greatest.rank(), greatest.item()?), (0, 5));
            assert_eq!((x.argmax()?, x.argmin()?, x.argmin_axis(0)?.item()?), (5, 1, 1));
            assert_eq!((&greatest + 1).eval()?.item()?, 6);
            let taken = x.take(&greatest.reshape(1)?, 0)?;
            assert_eq!(taken.to_vec()?, [9 as $number]);
            let mut y = jit.zeros::<u32>(1)?;
            jit.launch(&first_of, 1, 1, args!(&greatest.contiguous()?, &mut y))?;
            assert_eq!(y.to_vec()?, [5]);
        })*};
    }
    each!(u8 i16 i32 f32 u64 f64);
    Ok(())
}

/// Sums of what takes long to compute, of which several steps are read at once, in all ways that there are to fold.
fn roots_are_folded(jit: &Jit) -> Outcome {
    let arrays = Arrays::new(jit);
    let is_gpu = jit.device().info().kind == DeviceKind::Cuda;
    // Short columns, of which a block has the more the more there are.
    let many = if is_gpu { 600_000 } else { 9000 };
    for (rows, columns) in [
        (1, 1),
        (3, 5),
        (37, 1000),
        (1000, 37),
        (260, 516),
        (2, 50_000),
        (20_000, 4),
        (3, many),
        (70, many / 4),
    ] {
        let root = |i: usize| i % 7 + i / columns % 3;
        let squares: Vec<f32> = (0..rows * columns).map(|i| root(i).pow(2) as f32).collect();
        let x = arrays.array(squares, (rows, columns))?;
        let sum = |of: &mut dyn Iterator<Item = usize>| of.map(root).sum::<usize>() as f32;
        let name = format!("{rows} x {columns}");
        let all = sum(&mut (0..rows * columns));
        assert_eq!(x.sqrt().sum()?, all, "{name}");
        let along: Vec<f32> = (0..rows)
            .map(|row| sum(&mut (row * columns..(row + 1) * columns)))
            .collect();
        assert_eq!(x.sqrt().sum_axis(1)?.to_vec()?, along, "{name}");
        let down: Vec<f32> = (0..columns)
            .map(|column| sum(&mut (0..rows).map(|row| row * columns + column)))
            .collect();
        assert_eq!(x.sqrt().sum_axis(0)?.to_vec()?, down, "{name}");
    }
    Ok(())
}

fn sums_do_not_wrap(jit: &Jit) -> Outcome {
    let arrays = Arrays::new(jit);
    let x = arrays.full((300, 2), 200u8)?;
    let total: u64 = x.sum()?;
    assert_eq!(
        (total, x.sum_axis(0)?.to_vec()?),
        (120_000, vec![60_000u64; 2])
    );
    let signed = arrays.full((3, 100), i8::MIN)?;
    assert_eq!(
        (signed.sum()?, signed.sum_axis(1)?.to_vec()?),
        (-38_400i64, vec![-12_800; 3])
    );
    let ints = arrays.full(4, i32::MAX)?;
    assert_eq!(
        (ints.sum()?, ints.dot(2)?),
        (4 * i64::from(i32::MAX), 8 * i64::from(i32::MAX))
    );
    assert_eq!(arrays.full(3, 100u16)?.prod()?, 1_000_000);
    assert_eq!(x.sum_as::<u8>()?, 600u32.wrapping_mul(200) as u8);
    let floats: f32 = arrays.ones::<f32>(10)?.sum()?;
    assert_eq!(floats, 10.0);
    Ok(())
}

fn sums_of_halves(jit: &Jit) -> Outcome {
    let arrays = Arrays::new(jit);
    // In halves 2048 + 1 is 2048.
    let ones = arrays.ones::<f16>((2, 5000))?;
    assert_eq!(ones.sum_axis(1)?.to_vec()?, [f16::from_f32(5000.0); 2]);
    assert_eq!(
        (ones.sum()?, ones.mean()?),
        (f16::from_f32(10_000.0), f16::ONE)
    );
    let large = arrays.full(3, f16::from_f32(40_000.0))?;
    assert_eq!(
        (large.mean()?, large.sum()?),
        (f16::from_f32(40_000.0), f16::INFINITY)
    );
    assert_eq!(large.std()?, f16::ZERO);
    assert_eq!(
        arrays.full(4, f16::from_f32(300.0))?.norm()?,
        f16::from_f32(600.0)
    );
    Ok(())
}

fn compensated_sums(jit: &Jit) -> Outcome {
    let arrays = Arrays::new(jit);
    let mut host = vec![1.0f32; 3000];
    (host[7], host[2000]) = (1e9, -1e9);
    let x = arrays.array(&host, (2, 1500))?;
    assert_eq!(
        (
            x.sum_compensated()?,
            x.t().sum_axis_compensated([0, 1])?.item()?
        ),
        (2998.0, 2998.0)
    );
    let doubles = arrays.vector(vec![1e16f64, 1.0, 1.0, -1e16])?;
    assert_eq!(doubles.sum_compensated()?, 2.0);
    for infinite in [f32::INFINITY, f32::NEG_INFINITY] {
        assert_eq!(
            arrays.vector(vec![1.0, infinite])?.sum_compensated()?,
            infinite
        );
    }
    assert!(
        arrays
            .vector(vec![1.0, f32::NAN])?
            .sum_compensated()?
            .is_nan()
    );
    Ok(())
}

fn softmax_of_any_size(jit: &Jit) -> Outcome {
    let jit = super::exact(jit);
    let arrays = Arrays::new(&jit);
    let host: Vec<f64> = (0..3 * 700)
        .map(|i| f64::from(i * 7919 % 1009) - 500.0)
        .collect();
    let x = arrays.array(&host, (3, 700))?;
    let before = arrays.launches();
    let shares = x.softmax(1)?.eval()?;
    assert!(arrays.launches() - before <= 3, "a fold, maybe in parts");
    let (shares, logarithms) = (shares.to_vec()?, x.log_sum_exp_axis(-1)?.to_vec()?);
    for (row, x) in host.chunks(700).enumerate() {
        let greatest = x.iter().fold(f64::NEG_INFINITY, |a, b| a.max(*b));
        let powers: Vec<f64> = x.iter().map(|x| (x - greatest).exp()).collect();
        let sum: f64 = powers.iter().sum();
        for (share, power) in shares[row * 700..].iter().zip(&powers) {
            assert!((share - power / sum).abs() <= 1e-14, "{share}, {power}");
        }
        let logarithm = greatest + sum.ln();
        assert!((logarithms[row] - logarithm).abs() <= 1e-12 * logarithm.abs());
    }
    // Of columns, too, and halves are computed in `f32`.
    let halves = [1000.0f32, -8.0, 1000.0, -8.0].map(f16::from_f32);
    let halves = arrays.array(halves, (2, 2))?;
    assert_eq!(
        halves.softmax(0)?.eval()?.to_vec()?,
        [f16::from_f32(0.5); 4]
    );
    let (inf, nan) = (f32::INFINITY, f32::NAN);
    let odd = arrays.array([-inf, 0.0, -inf, -inf, 1.0, nan, inf, 2.0], (4, 2))?;
    let logarithms = odd.log_sum_exp_axis(1)?.to_vec()?;
    assert_eq!(logarithms[..2], [0.0, -inf]);
    assert!(
        logarithms[2].is_nan() && logarithms[3] == inf,
        "{logarithms:?}"
    );
    assert_eq!(odd.row(0)?.softmax(0)?.eval()?.to_vec()?, [0.0, 1.0]);
    assert_eq!(arrays.zeros::<f32>(0)?.log_sum_exp()?, -inf);
    Ok(())
}

fn expressions_explain_themselves(jit: &Jit) -> Outcome {
    let arrays = Arrays::new(jit);
    let x = arrays.ones::<f32>((4, 30))?;
    let column = arrays.ones::<f32>((4, 1))?;
    let explained = where_(x.gt(0.5), (&x - &column).map(device!(|v| v * v)), 0.0).explain()?;
    assert_eq!(explained.kernel(), "eval_where_gt_fn_sub");
    let text = explained.to_string();
    let (lines, _) = text.rsplit_once('\n').expect("there are several lines");
    expect![[r#"
        one kernel, `eval_where_gt_fn_sub`, one launch: 4x30 of f32
          where(gt(in0, n1), fn(sub(in0, in2)), n3)
          in0: an array of f32, one after the other
          n1: a number, f32
          in2: an array of f32, by distances, neighbours are one element
          n3: a number, f32"#]]
    .assert_eq(lines);
    let far = x.slice(s![.., ..;2])?.t() + arrays.ones::<f32>(1)?;
    let text = far.explain()?.to_string();
    assert!(text.contains("by distances, neighbours apart"), "{text}");
    let many = (0..100).fold(x.expr(), |sum, _| sum + 1.0);
    let text = many.explain()?.to_string();
    assert!(text.contains("201 operations and operands"), "{text}");
    assert!(matches!(
        (&x + arrays.ones::<f32>(7)?).explain(),
        Err(ArrayError::Shape(_))
    ));
    assert_eq!(arrays.kernels(), 0);
    Ok(())
}

/// Roots of numbers side by side, which a thread of a GPU has by one question: each of those that take another way, alone among
/// others and beside each other, has the root that the host gives.
fn roots_beside_each_other(jit: &Jit) -> Outcome {
    let jit = super::exact(jit);
    let arrays = Arrays::new(&jit);
    // Zeros, denormals, those around 2^-101 and around the largest, infinities, and what has no root.
    let seldom = [
        0,
        0x8000_0000,
        1,
        0x8000_0001,
        0x007f_ffff,
        0x0080_0000,
        0x0cff_ffff,
        0x0d00_0000,
        0x0d00_0001,
        0x7f7f_ffff,
        0x7f80_0000,
        0xff80_0000,
        0x7fc0_0000,
        0xbf80_0000,
        0x8d00_0000u32,
    ]
    .map(f32::from_bits);
    let mut numbers: Vec<f32> = Vec::new();
    for odd in seldom {
        for place in 0..8u32 {
            let usual = |i: u32| f32::from_bits(0x3000_0000 + i * 0x0123_4567 + place * 7919);
            numbers.extend((0..8).map(|i| if i == place { odd } else { usual(i) }));
        }
    }
    numbers.extend(seldom);
    let further = (0..2048u32).map(|i| f32::from_bits(i.wrapping_mul(0x0020_0bad)));
    numbers.extend(further);
    let root_of = |x: f32| match x.sqrt() {
        root if root.is_nan() => f32::NAN.to_bits(),
        root => root.to_bits(),
    };
    let bits = |roots: Vec<f32>| -> Vec<u32> {
        let bits = |x: f32| {
            if x.is_nan() {
                f32::NAN.to_bits()
            } else {
                x.to_bits()
            }
        };
        roots.into_iter().map(bits).collect()
    };
    let x = arrays.vector(numbers.clone())?;
    let once: Vec<u32> = numbers.iter().map(|x| root_of(*x)).collect();
    assert_eq!(bits(x.sqrt().eval()?.to_vec()?), once);
    // Roots of roots have a question of their own.
    let twice: Vec<u32> = numbers.iter().map(|x| root_of(x.sqrt() * -*x)).collect();
    assert_eq!(bits((x.sqrt() * -&x).sqrt().eval()?.to_vec()?), twice);
    let halves: Vec<bf16> = numbers.iter().map(|x| bf16::from_f32(*x)).collect();
    let rounded = |x: &bf16| bf16::from_f32(x.to_f32().sqrt());
    let of_halves = arrays.vector(halves.clone())?.sqrt().eval()?.to_vec()?;
    for (x, root) in halves.iter().zip(of_halves) {
        let wanted = rounded(x);
        assert!(
            wanted.to_bits() == root.to_bits() || wanted.is_nan() && root.is_nan(),
            "{x}: {root}, {wanted}"
        );
    }
    Ok(())
}

/// The numbers of a part that an expression uses several times are one parameter each, whatever they are; those of
/// other parts are their own, though they are equal.
fn parts_that_are_used_twice(jit: &Jit) -> Outcome {
    let arrays = Arrays::new(jit);
    let x = arrays.vector(vec![1.0f32, 2.0])?;
    let of = |a: f32, b: f32| {
        let part = a * &x + b;
        &part * &part + a * &part
    };
    let text = of(2.0, 2.0).explain()?.to_string();
    let calls =
        "add(mul(add(mul(n0, in1), n2), add(mul(n0, in1), n2)), mul(n3, add(mul(n0, in1), n2)))";
    assert!(text.contains(calls), "{text}");
    for (a, b) in [(2.0, 2.0), (2.0, 1.0), (0.5, 3.0)] {
        let want = [1.0, 2.0].map(|x| (a * x + b) * (a * x + b) + a * (a * x + b));
        assert_eq!(of(a, b).eval()?.to_vec()?, want);
    }
    assert_eq!(arrays.kernels(), 1);
    // In code for a GPU there are as many roots as where the part is all there is.
    let options = JitOptions::default().target(Target::Ptx(PtxTarget::for_sm(90)));
    let jit = Jit::with(Device::cpu(), kiln::hooks::standard(), options);
    let x = Arrays::new(&jit).vector(vec![1.0f32; 100])?;
    let part = (2.0 * &x + 1.0).sqrt();
    let roots = |expr: &Expr<f32>| -> kiln::Result<usize> {
        let inspection = expr.inspect()?;
        Ok(inspection.ptx()?.matches("rsqrt.approx.ftz.f32 r").count())
    };
    let (once, several) = (roots(&part)?, roots(&(&part * &part + &part + 1.0))?);
    assert!(once > 0 && several == once, "{once}, {several}");
    Ok(())
}

fn kernels_are_named_by_expressions(jit: &Jit) -> Outcome {
    let arrays = Arrays::new(jit);
    let x = arrays.ones::<f32>(100)?;
    let long = (0..50).fold(x.expr(), |sum, _| sum.sqrt());
    for (expr, name) in [
        (&x + 1.0, "eval_add".to_owned()),
        (x.expr(), "eval".to_owned()),
        (x.powi(3), "eval_powi".to_owned()),
        (long.clone(), long.explain()?.kernel().to_owned()),
    ] {
        assert_eq!(expr.explain()?.kernel(), name);
        let inspection = expr.inspect()?;
        assert!(inspection.ir().contains(&name), "{}", inspection.ir());
        assert!(name.len() < 70);
        expr.eval()?;
    }
    Ok(())
}

fn refused<T>(result: Result<T, ArrayError>, text: Expect) {
    let error = result.err().expect("it is refused");
    text.assert_eq(&error.to_string());
}

fn more_elements_than_indices(jit: &Jit) -> Outcome {
    let arrays = Arrays::new(jit);
    let most = 1usize << 33;
    let x = arrays.ones::<u32>(1)?.broadcast_to(most)?;
    let few = arrays.zeros::<u32>(1)?;
    refused(
        x.take(&few, 0),
        expect![
            "`take` of an array of shape 8589934592: its indices tell 4294967295 elements apart; go through it in parts, `x.slice(s![a..b])`"
        ],
    );
    let many = |result: Result<Array<u32>, ArrayError>| {
        // Of an expression it is told with the line of the operation.
        let error = match result.expect_err("it is refused") {
            ArrayError::Operation { why, .. } => *why,
            error => error,
        };
        assert!(
            matches!(
                error,
                ArrayError::TooMany { .. } | ArrayError::ManyIndices { .. }
            ),
            "{error}"
        );
    };
    let mask = arrays.full(1, true)?.broadcast_to(most)?;
    many(x.compress(&mask));
    many(mask.nonzero());
    many(x.bincount(4));
    many(x.cumsum(0));
    many(x.cumprod(0));
    many(x.sort(0));
    many(x.argsort(0));
    many(x.unique());
    many(x.histogram(&arrays.arange(0u32, 3, 1)?));
    many(x.take_along(&few, 0).and_then(|x| x.eval()));
    many(arrays.indices(most).eval());
    many(
        x.reduce_segments(&few, device!(|a, b| a + b), 0)
            .and_then(|x| x.eval()),
    );
    let matrix = arrays.ones::<u32>((1, 1))?;
    many(
        matrix
            .broadcast_to((3, most))?
            .matmul(&matrix.broadcast_to((most, 3))?),
    );
    many(few.take(&arrays.zeros::<u32>(1)?.broadcast_to(most)?, 0));
    // More than there are numbers for.
    let (row, column) = (
        matrix.broadcast_to((1, 1 << 40))?,
        matrix.broadcast_to((1 << 40, 1))?,
    );
    many((&row + &column).eval());
    assert!((&row + &column).sum().is_err());
    assert!((&row + &column).sum_axis(0).is_err());
    assert!(matches!(x.as_view1(), Err(ArrayError::View { .. })));
    Ok(())
}

fn sums_of_more_elements_than_indices(jit: &Jit) -> Outcome {
    let arrays = Arrays::new(jit);
    let x = arrays
        .arange(0u64, 4, 1)?
        .reshape((4, 1))?
        .broadcast_to((4, 1 << 32))?;
    let part = x.slice(s![.., (1isize << 32) - 3..])?;
    assert_eq!(
        (part.sum()?, part.to_vec()?),
        (18, vec![0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3])
    );
    let text = x.expr().explain()?.to_string();
    assert!(text.contains("indices have 64 bits"), "{text}");
    Ok(())
}
