//! What the first use of a mathematical function adds to the time that a kernel takes from IR to PTX: kernels with it and
//! without are compiled in turn. On a machine that others use the medians say little, and the least times more.

use kiln::core::target::{PtxTarget, Target};
use kiln::prelude::*;

use crate::report::{Report, median};

const RUNS: usize = 41;
/// What a function may add, in milliseconds: those of every day, and those of statistics.
const ELEMENTARY_MS: f64 = 2.0;
const SPECIAL_MS: f64 = 6.0;

/// A function by name, of two numbers if it takes so many.
type Function = (&'static str, for<'k> fn(Val<'k>, Val<'k>) -> Val<'k>);

const ELEMENTARY: &[Function] = &[
    ("sin", |x, _| x.sin()),
    ("cos", |x, _| x.cos()),
    ("sin_cos", |x, _| {
        let both = x.sin_cos();
        both.field("0") + both.field("1")
    }),
    ("tan", |x, _| x.tan()),
    ("asin", |x, _| x.asin()),
    ("acos", |x, _| x.acos()),
    ("atan", |x, _| x.atan()),
    ("atan2", |x, y| x.atan2(y)),
    ("exp", |x, _| x.exp()),
    ("exp2", |x, _| x.exp2()),
    ("exp10", |x, _| x.exp10()),
    ("exp_m1", |x, _| x.exp_m1()),
    ("ln", |x, _| x.ln()),
    ("log2", |x, _| x.log2()),
    ("log10", |x, _| x.log10()),
    ("ln_1p", |x, _| x.ln_1p()),
    ("log", |x, y| x.log(y)),
    ("powf", |x, y| x.powf(y)),
    ("sinh", |x, _| x.sinh()),
    ("cosh", |x, _| x.cosh()),
    ("tanh", |x, _| x.tanh()),
    ("asinh", |x, _| x.asinh()),
    ("acosh", |x, _| x.acosh()),
    ("atanh", |x, _| x.atanh()),
    ("cbrt", |x, _| x.cbrt()),
    ("hypot", |x, y| x.hypot(y)),
    ("sin_pi", |x, _| x.sin_pi()),
    ("rsqrt", |x, _| x.rsqrt()),
];

const SPECIAL: &[Function] = &[
    ("erf", |x, _| x.erf()),
    ("erfc", |x, _| x.erfc()),
    ("erfcx", |x, _| x.erfcx()),
    ("erf_inv", |x, _| x.erf_inv()),
    ("erfc_inv", |x, _| x.erfc_inv()),
    ("normcdf", |x, _| x.normcdf()),
    ("normcdf_inv", |x, _| x.normcdf_inv()),
    ("gamma", |x, _| x.gamma()),
    ("ln_gamma", |x, _| x.ln_gamma().field("0")),
];

/// Reports what each function adds to a kernel that adds its two arguments, in `f32` and in `f64`.
pub fn first_uses(report: &mut Report, filter: &str) -> kiln::Result<()> {
    let options = JitOptions::default().target(Target::Ptx(PtxTarget::for_sm(90)));
    let jit = Jit::with(Device::cpu(), kiln::hooks::standard(), options);
    functions::<f32>(&jit, report, ("f32", filter))?;
    functions::<f64>(&jit, report, ("f64", filter))
}

fn functions<T: KernelType + Default>(
    jit: &Jit,
    report: &mut Report,
    (ty, filter): (&str, &str),
) -> kiln::Result<()> {
    for (functions, goal) in [(ELEMENTARY, ELEMENTARY_MS), (SPECIAL, SPECIAL_MS)] {
        for &(name, function) in functions {
            if !format!("{name}_{ty}").contains(filter) {
                continue;
            }
            let kernels = [
                kernel::<T>("without", |x, y| x + y)?,
                kernel::<T>(name, |x, y| function(x, y) + x + y)?,
            ];
            let [without, with] = milliseconds::<T>(jit, &kernels)?;
            let added = |of: fn(&[f64]) -> f64| of(&with) - of(&without);
            let row = format!("{name}_{ty}, first use");
            report.against(&row, added(median), "ms", "goal", goal);
            let least = added(|times| times.iter().copied().fold(f64::INFINITY, f64::min));
            report.row(&format!("{row}, by the least"), least, "ms");
        }
    }
    Ok(())
}

/// A kernel that computes something of two slices.
fn kernel<T: KernelType>(
    name: &str,
    value: impl for<'k> Fn(Val<'k>, Val<'k>) -> Val<'k>,
) -> kiln::Result<Kernel> {
    Kernel::build(name, |k| {
        let (x, y) = (k.slice("x", k.ty::<T>()), k.slice("y", k.ty::<T>()));
        let out = k.slice_mut("out", k.ty::<T>());
        let i = k.global_id().x();
        k.if_(i.lt(out.len()), || {
            out.at(i).set(value(x.at(i).get(), y.at(i).get()))
        });
    })
}

/// Milliseconds that two kernels take from IR to PTX, again and again in turn; the first compilation, which opens libLLVM,
/// is left out.
fn milliseconds<T: KernelType + Default>(
    jit: &Jit,
    kernels: &[Kernel; 2],
) -> kiln::Result<[Vec<f64>; 2]> {
    let (x, mut out) = (jit.upload(&[T::default()])?, jit.upload(&[T::default()])?);
    let mut times = [Vec::new(), Vec::new()];
    for run in 0..=RUNS {
        for (kernel, times) in kernels.iter().zip(&mut times) {
            let inspection = jit.inspect(kernel, args!(&x, &x, &mut out))?;
            let total: std::time::Duration = inspection.timings().map(|(_, took)| took).sum();
            if run > 0 {
                times.push(total.as_secs_f64() * 1e3);
            }
        }
    }
    Ok(times)
}
