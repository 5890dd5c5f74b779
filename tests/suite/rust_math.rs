//! Mathematical functions in `#[kernel]` functions: the bits that the builder's methods give, near
//! what the host computes.

use half::{bf16, f16};
use kiln::core::front::{AsKernel, LazyKernel};
use kiln::prelude::*;

use super::{Outcome, chapter, exact};

chapter![
    functions_have_the_bits_of_the_builder,
    functions_are_near_the_host,
    functions_by_path_and_of_halves,
    signs_of_every_float,
    sine_and_cosine_of_every_float,
    conversions_round_once,
    remainders_of_floats,
    names_that_rust_keeps_for_later,
];

/// A function of one number in the builder.
type Built = for<'k> fn(Val<'k>) -> Val<'k>;

/// A function's name, its kernel, what the builder makes of it, and the host's.
type Function = (&'static str, &'static LazyKernel, Built, fn(f64) -> f64);

/// For each function a kernel, what the builder makes of it, and the host's.
macro_rules! functions {
    ($($name:ident)*) => {
        mod kernels {
            use kiln::prelude::*;
            $(
                #[kernel]
                pub fn $name<T: Float>(x: &[T], y: &mut [T]) {
                    let i = global_id().x;
                    if i < x.len() {
                        y[i] = x[i].$name();
                    }
                }
            )*
        }

        fn functions() -> [Function; 11] {
            [$((stringify!($name), &kernels::$name, |x| x.$name(), f64::$name)),*]
        }
    };
}
functions! { exp exp2 ln log2 log10 sin cos atan asin acos tanh }

/// Numbers of every size, and where functions have their edges.
fn inputs() -> Vec<f32> {
    let mut inputs: Vec<f32> = (-60..60).map(|i| i as f32 * 0.37).collect();
    inputs.extend((-120..120).map(|e| 1.7 * (e as f32).exp2()));
    inputs.extend([0.0, -0.0, 1.0, -1.0, f32::INFINITY, f32::NAN]);
    inputs
}

fn apply<T: KernelType>(
    jit: &Jit,
    kernel: &(impl AsKernel + ?Sized),
    x: &[T],
) -> kiln::Result<Vec<T>> {
    let input = jit.upload(x)?;
    let mut y = jit.upload(x)?;
    jit.launch(kernel, grid_for(x.len(), 64), 64, args!(&input, &mut y))?;
    y.to_vec()
}

fn functions_have_the_bits_of_the_builder(jit: &Jit) -> Outcome {
    for (name, kernel, built, _) in functions() {
        let by_hand = Kernel::build(name, |k| {
            let t = k.type_param("T").float();
            let (x, y) = (k.slice("x", t), k.slice_mut("y", t));
            let i = k.global_id().x();
            k.if_(i.lt(x.len()), || y.at(i).set(built(x.at(i).get())));
        })?;
        let x = inputs();
        let bits = |y: Vec<f32>| y.into_iter().map(f32::to_bits).collect::<Vec<_>>();
        let (got, want) = (apply(jit, kernel, &x)?, apply(jit, &by_hand, &x)?);
        assert_eq!(bits(got), bits(want), "{name} of singles");
        let x: Vec<f64> = x.into_iter().map(f64::from).collect();
        let bits = |y: Vec<f64>| y.into_iter().map(f64::to_bits).collect::<Vec<_>>();
        let (got, want) = (apply(jit, kernel, &x)?, apply(jit, &by_hand, &x)?);
        assert_eq!(bits(got), bits(want), "{name} of doubles");
    }
    Ok(())
}

/// Whether `got` is within `relative` of `want`, both NaN or both the same infinity.
fn near(got: f64, want: f64, relative: f64, smallest: f64) -> bool {
    got == want
        || got.is_nan() && want.is_nan()
        || (got - want).abs() <= relative * want.abs().max(smallest)
}

fn functions_are_near_the_host(jit: &Jit) -> Outcome {
    for (name, kernel, _, host) in functions() {
        let x = inputs();
        for (x, got) in x.iter().zip(apply(jit, kernel, &x)?) {
            // The largest result before infinity, and subnormal ones, are coarse.
            let want = f64::from(host(f64::from(*x)) as f32);
            let fits = near(f64::from(got), want, 4.0 * f64::from(f32::EPSILON), 1e-37);
            assert!(fits, "{name} of {x:e} is {want:e}, not {got:e}");
        }
    }
    Ok(())
}

#[device_fn]
fn density(x: f32, sigma: f32) -> f32 {
    let t = x / sigma;
    (-0.5 * t * t).exp() / (sigma * 2.506_628_3)
}

#[device_fn]
fn decay<T: Float>(x: T, rate: T) -> T {
    x.abs().powf(rate) * T::cos(x).tanh()
}

#[kernel]
fn mixed(x: &[f32], halves: &[f16], out: &mut [f32], powers: &mut [f16]) {
    let i = global_id().x;
    if i < x.len() {
        out[i] = density(x[i], 1.5) + decay(x[i], 0.75) + f32::sin(x[i]);
        powers[i] = halves[i].exp2().powf(f16::ONE) + decay(halves[i], halves[i].cos());
    }
}

fn functions_by_path_and_of_halves(jit: &Jit) -> Outcome {
    let jit = exact(jit);
    let host: Vec<f32> = (-40..40).map(|i| i as f32 * 0.11).collect();
    let halves: Vec<f16> = host.iter().map(|&x| f16::from_f32(x)).collect();
    let (x, h) = (jit.upload(&host)?, jit.upload(&halves)?);
    let mut out = jit.zeros::<f32>(host.len())?;
    let mut powers = jit.zeros::<f16>(host.len())?;
    let grid = grid_for(host.len(), 64);
    jit.launch(&mixed, grid, 64, args!(&x, &h, &mut out, &mut powers))?;
    let (out, powers) = (out.to_vec()?, powers.to_vec()?);
    for (i, &x) in host.iter().enumerate() {
        let want = density(x, 1.5) + decay(x, 0.75) + x.sin();
        let fits = near(out[i].into(), want.into(), 1e-6, 1.0);
        assert!(fits, "of {x} it is {want}, not {}", out[i]);
        let h = halves[i];
        let want = h.exp2().powf(f16::ONE) + decay(h, h.cos());
        // Two results that are rounded to 11 bits, and their sum.
        let fits = near(powers[i].into(), want.into(), 3e-3, 1.0);
        assert!(fits, "of {h} it is {want}, not {}", powers[i]);
    }
    Ok(())
}

/// The point on the unit circle, and its distance from the centre squared.
#[device_fn]
fn on_circle<T: Float>(angle: T) -> [T; 3] {
    let (sine, cosine) = angle.sin_cos();
    let (again, _) = T::sin_cos(angle);
    [cosine, sine, again * sine + cosine * cosine]
}

#[kernel]
fn points<T: Float>(angles: &[T], out: &mut [[T; 3]]) {
    let i = global_id().x;
    if i < angles.len() {
        out[i] = on_circle(angles[i]);
    }
}

fn sine_and_cosine_of_every_float(jit: &Jit) -> Outcome {
    fn check<T: Float + KernelType>(jit: &Jit, room: f64, wide: fn(T) -> f64) -> Outcome
    where
        [T; 3]: KernelType,
    {
        let angles = [0.0, 0.5, -2.0, 3.25, 40.0].map(T::from_f64);
        let (x, mut out) = (jit.upload(&angles)?, jit.upload(&[[T::ZERO; 3]; 5])?);
        jit.launch(&points, 1, 32, args!(&x, &mut out))?;
        for (angle, found) in angles.into_iter().zip(out.to_vec()?) {
            for (found, wanted) in found.into_iter().zip(on_circle(angle)) {
                let (found, wanted) = (wide(found), wide(wanted));
                assert!((found - wanted).abs() <= room, "{found} is not {wanted}");
            }
        }
        Ok(())
    }
    check::<f32>(jit, 1e-6, f64::from)?;
    check::<f64>(jit, 1e-14, |x| x)?;
    check::<f16>(jit, 2e-3, f64::from)?;
    check::<bf16>(jit, 2e-2, f64::from)
}

#[device_fn]
fn signs<T: Float>(x: T, y: T) -> [T; 4] {
    // Which sign the negation of a NaN has is left to the machine.
    let other = if x.is_nan() || y.is_nan() {
        y
    } else {
        T::copysign(x, -y)
    };
    [x.copysign(y), x.signum(), x.abs(), other]
}

#[kernel]
fn all_signs<T: Float>(x: &[T], out: &mut [[T; 4]]) {
    let i = global_id().x;
    for j in 0..x.len() {
        out[i * x.len() + j] = signs(x[i], x[j]);
    }
}

fn signs_of_every_float(jit: &Jit) -> Outcome {
    fn check<T: Float + KernelType + std::fmt::Debug>(jit: &Jit) -> Outcome
    where
        [T; 4]: KernelType,
    {
        let numbers = [0.0, -0.0, 1.0, -2.5, 1e-5, -6e4];
        let numbers = numbers
            .iter()
            .chain(&[f64::INFINITY, f64::NEG_INFINITY, f64::NAN]);
        let x: Vec<T> = numbers.map(|&x| T::from_f64(x)).collect();
        let mut out = jit.upload(&vec![[T::ZERO; 4]; x.len() * x.len()])?;
        all_signs.launch(jit, (1, x.len() as u32), &jit.upload(&x)?, &mut out)?;
        let shown = |part: T| match part.is_nan() {
            true => "NaN".to_owned(),
            false => format!("{:?}", part.to_f64()),
        };
        for (i, got) in out.to_vec()?.into_iter().enumerate() {
            let (x, y) = (x[i / x.len()], x[i % x.len()]);
            let want = signs(x, y).map(shown);
            assert_eq!(got.map(shown), want, "of {x:?} and {y:?}");
        }
        Ok(())
    }
    check::<f32>(jit)?;
    check::<f64>(jit)?;
    check::<f16>(jit)?;
    check::<bf16>(jit)
}

#[device_fn]
fn narrowed<T: Num>(x: T) -> (f16, bf16, f32) {
    (x.cast::<f16>(), x.cast::<bf16>(), x.cast::<f32>())
}

/// A little more than the middle of two numbers, for both types of 16 bits.
#[device_fn]
fn above_ties<T: Float>() -> T {
    T::from_f64(1.000_488_281_250_000_2) * T::from_f64(1.003_906_250_000_000_2)
}

#[kernel]
fn narrow<T: Num>(x: &[T], half: &mut [f16], brain: &mut [bf16], single: &mut [f32]) {
    let i = global_id().x;
    if i < x.len() {
        (half[i], brain[i], single[i]) = narrowed(x[i]);
    }
    if i == x.len() {
        half[i] = above_ties::<f16>();
        brain[i] = above_ties::<bf16>();
    }
}

/// What `narrow` gives of numbers is what the host gives, to the bit.
fn narrowed_as_on_the_host<T: Num + KernelType>(jit: &Jit, x: &[T]) -> Outcome {
    let more = x.len() + 1;
    let (mut half, mut brain) = (jit.zeros::<f16>(more)?, jit.zeros::<bf16>(more)?);
    let (input, mut single) = (jit.upload(x)?, jit.zeros::<f32>(more)?);
    let args = args!(&input, &mut half, &mut brain, &mut single);
    jit.launch(&narrow, grid_for(more, 64), 64, args)?;
    let (half, brain, single) = (half.to_vec()?, brain.to_vec()?, single.to_vec()?);
    for (i, &number) in x.iter().enumerate() {
        let want = narrowed(number);
        let got = (half[i], brain[i], single[i]);
        assert_eq!(got, want, "number {i}");
    }
    assert_eq!(half[x.len()], above_ties::<f16>());
    assert_eq!(brain[x.len()], above_ties::<bf16>());
    Ok(())
}

/// What lies beside the middle of two 16-bit floats, by less than an `f32` or the upper half of an
/// `f64` can tell, decides to which it is rounded.
fn conversions_round_once(jit: &Jit) -> Outcome {
    let jit = exact(jit);
    let mut floats = Vec::new();
    let mut integers = vec![u64::MAX, u64::MAX / 2, 0];
    for part in [0x201_u64, 0x203, 0x1fff, 0x1001, 0x1003, 0x0101, 0x0303] {
        for shift in 0..48 {
            let tie = part << shift;
            integers.extend([tie - 1, tie, tie + 1]);
        }
        for power in [-32, -24, -20, -3, 0, 3, 40] {
            let tie = part as f64 * f64::from(power).exp2();
            let near = [tie.next_down(), tie, tie.next_up()];
            floats.extend(near.into_iter().flat_map(|x| [x, -x]));
        }
    }
    let signed: Vec<i64> = integers
        .iter()
        .map(|&n| (n as i64).wrapping_neg())
        .collect();
    narrowed_as_on_the_host(&jit, &floats)?;
    narrowed_as_on_the_host(&jit, &integers)?;
    narrowed_as_on_the_host(&jit, &signed)
}

#[device_fn]
fn remainder<T: Num>(x: T, y: T) -> T {
    let mut rest = x % y;
    rest %= y;
    rest
}

#[kernel]
fn remainders<T: Num>(x: &[T], y: &[T], out: &mut [T]) {
    let i = global_id().x;
    if i < x.len() {
        out[i] = remainder(x[i], y[i]);
    }
}

/// Every value with every value: what the host's `%` gives, to the bit, or no number where that gives none.
fn remainders_as_on_the_host<T: Float + KernelType>(jit: &Jit, values: &[T]) -> Outcome {
    let pairs = values
        .iter()
        .flat_map(|&x| values.iter().map(move |&y| (x, y)));
    let (x, y): (Vec<T>, Vec<T>) = pairs.unzip();
    let (a, b) = (jit.upload(&x)?, jit.upload(&y)?);
    let mut out = jit.zeros::<T>(x.len())?;
    let args = args!(&a, &b, &mut out);
    jit.launch(&remainders, grid_for(x.len(), 64), 64, args)?;
    for (i, got) in out.to_vec()?.into_iter().enumerate() {
        let (x, y) = (x[i].to_f64(), y[i].to_f64());
        let (want, got) = (remainder(x, y), got.to_f64());
        let equal = got.to_bits() == want.to_bits() || got.is_nan() && want.is_nan();
        assert!(equal, "{x:e} % {y:e} is {want:e}, not {got:e}");
    }
    Ok(())
}

/// The remainder has no more digits than the numbers, so `f64`'s is that of the narrower types.
fn remainders_of_floats(jit: &Jit) -> Outcome {
    let mut bits = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = || {
        bits ^= bits << 13;
        bits ^= bits >> 7;
        bits ^= bits << 17;
        bits
    };
    let mut halves: Vec<u16> = vec![0, 1, 2, 0x3ff, 0x400, 0x401, 0x3c00, 0x3c01, 0x4248, 0x7bff];
    halves.extend([0x7c00, 0x7c01, 0x7f7f, 0x7f80, 0x7fff, 0x80, 0x7f]);
    halves.extend(halves.clone().iter().map(|n| n | 0x8000));
    halves.extend((0..30).map(|_| random() as u16));
    let wide: Vec<f64> = [
        1.0,
        3.0,
        0.1,
        1e-310,
        5e-324,
        f64::MIN_POSITIVE,
        f64::MAX,
        1e300,
        0.0,
    ]
    .into_iter()
    .chain([f64::INFINITY, f64::NAN, 4.5, 2f64.powi(53) - 1.0])
    .flat_map(|x| [x, -x])
    .chain((0..30).map(|_| f64::from_bits(random())))
    .collect();
    let single: Vec<f32> = [
        1e-45,
        f32::MIN_POSITIVE,
        f32::MAX,
        1.0,
        0.1,
        3.0,
        1e-40,
        16_777_215.0,
    ]
    .into_iter()
    .chain([0.0, f32::INFINITY, f32::NAN, 7.5])
    .flat_map(|x| [x, -x])
    .chain((0..30).map(|_| f32::from_bits(random() as u32)))
    .collect();
    remainders_as_on_the_host::<f16>(
        jit,
        &halves
            .iter()
            .map(|&n| f16::from_bits(n))
            .collect::<Vec<_>>(),
    )?;
    remainders_as_on_the_host::<bf16>(
        jit,
        &halves
            .iter()
            .map(|&n| bf16::from_bits(n))
            .collect::<Vec<_>>(),
    )?;
    remainders_as_on_the_host(jit, &single)?;
    remainders_as_on_the_host(jit, &wide)
}

/// Methods of concrete types whose names Rust has for methods that are not stable: nothing warns of them.
#[device_fn]
fn both_areas(x: f64) -> f64 {
    x.erf() + x.erfc()
}

#[kernel]
fn areas(x: &[f64], single: &[f32], out: &mut [f64]) {
    let i = global_id().x;
    if i < x.len() {
        out[i] = both_areas(x[i]) - (single[i].erfc() + f32::erf(single[i])) as f64;
    }
}

fn names_that_rust_keeps_for_later(jit: &Jit) -> Outcome {
    let x: Vec<f64> = (-40..40).map(|i| f64::from(i) * 0.125).collect();
    let single: Vec<f32> = x.iter().map(|&x| x as f32).collect();
    let mut out = jit.zeros(x.len())?;
    let (a, b) = (jit.upload(&x)?, jit.upload(&single)?);
    areas.launch(jit, (2, 64), &a, &b, &mut out)?;
    for (x, difference) in x.into_iter().zip(out.to_vec()?) {
        assert!(difference.abs() < 1e-6, "{x}: {difference}");
        assert!((both_areas(x) - 1.0).abs() < 1e-15);
    }
    Ok(())
}
