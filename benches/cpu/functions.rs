//! The mathematical functions that `benches/cpu.rs` measures, in `f32` and in `f64`: `benches/peers/cpu/functions.c` has the
//! same loops in C. Each element's result is a sum of eight values, so that it is the functions that take the time and not
//! the accesses.

use kiln::prelude::*;
use kiln::stdlib::math::FloatOps;

use crate::reference::{SALTS, floats};

/// A function of one number or of two.
pub struct Function {
    /// What its kernels are called, less `-f32` or `-f64`.
    pub name: &'static str,
    /// Where its first arguments are from and to, and its second ones.
    ranges: [[f64; 2]; 2],
    /// What it is in a kernel.
    pub value: for<'k> fn(Val<'k>, Val<'k>) -> Val<'k>,
    /// What it is on the host.
    reference: fn(f64, f64) -> f64,
}

/// Values of an element, and how far apart their arguments are, a number of few bits.
const VALUES: u32 = 8;
const STEP: f64 = 0.03125;

const NONE: [f64; 2] = [0.0, 1.0];
const ANGLE: [f64; 2] = [-8.0, 8.0];
const POSITIVE: [f64; 2] = [0.0625, 100.0];

const fn function(
    name: &'static str,
    ranges: [[f64; 2]; 2],
    value: for<'k> fn(Val<'k>, Val<'k>) -> Val<'k>,
    reference: fn(f64, f64) -> f64,
) -> Function {
    Function {
        name,
        ranges,
        value,
        reference,
    }
}

fn both<'k>(x: Val<'k>, _: Val<'k>) -> Val<'k> {
    let both = x.sin_cos();
    both.field("0") + both.field("1")
}

const FUNCTIONS: &[Function] = &[
    function("sin", [ANGLE, NONE], |x, _| x.sin(), |x, _| x.sin()),
    function("cos", [ANGLE, NONE], |x, _| x.cos(), |x, _| x.cos()),
    function("sin-cos", [ANGLE, NONE], both, |x, _| x.sin() + x.cos()),
    function("exp", [[-10.0, 10.0], NONE], |x, _| x.exp(), |x, _| x.exp()),
    function("log", [POSITIVE, NONE], |x, _| x.ln(), |x, _| x.ln()),
    function(
        "pow",
        [[0.1, 10.0], [-5.0, 5.0]],
        |x, y| x.powf(y),
        |x, y| x.powf(y),
    ),
    function(
        "tanh",
        [[-4.0, 4.0], NONE],
        |x, _| x.tanh(),
        |x, _| x.tanh(),
    ),
    function(
        "atan2",
        [[-1.0, 1.0]; 2],
        |x, y| x.atan2(y),
        |x, y| x.atan2(y),
    ),
    function(
        "erf",
        [[-3.0, 3.0], NONE],
        |x, _| x.erf(),
        |x, _| FloatOps::erf(x),
    ),
    function(
        "rsqrt",
        [POSITIVE, NONE],
        |x, _| x.rsqrt(),
        |x, _| 1.0 / x.sqrt(),
    ),
    function(
        "div",
        [[-10.0, 10.0], [0.5, 10.0]],
        |x, y| x / y,
        |x, y| x / y,
    ),
];

/// The function that a kernel computes, if it is one of these, and whether in `f64`.
pub fn find(kernel: &str) -> Option<(&'static Function, bool)> {
    let (name, ty) = kernel.rsplit_once('-')?;
    let found = FUNCTIONS.iter().find(|function| function.name == name)?;
    match ty {
        "f32" => Some((found, false)),
        "f64" => Some((found, true)),
        _ => None,
    }
}

impl Function {
    /// `n` first and `n` second arguments.
    pub fn inputs(&self, n: usize) -> [Vec<f64>; 2] {
        [0, 1].map(|position| {
            let [from, to] = self.ranges[position];
            let parts = floats(n, SALTS[position]).into_iter();
            parts
                .map(|part| from + (to - from) * f64::from(part))
                .collect()
        })
    }

    /// What it is of all arguments.
    pub fn expected(&self, n: usize, double: bool) -> Vec<f64> {
        let [x, y] = self.inputs(n);
        let rounded = |x: f64| if double { x } else { f64::from(x as f32) };
        let pairs = x.into_iter().zip(y);
        let sum = |(x, y): (f64, f64)| -> f64 {
            let step = |k: u32| f64::from(k) * STEP;
            let values = (0..VALUES).map(|k| (rounded(x) + step(k), rounded(y) + step(k)));
            values.map(|(x, y)| (self.reference)(x, y)).sum()
        };
        pairs.map(sum).collect()
    }

    /// Its kernel: one element a thread, a sum of values.
    pub fn describe(&self, k: &KernelBuilder, t: Type) {
        let (x, y, r) = (k.slice("x", t), k.slice("y", t), k.slice_mut("r", t));
        let i = k.global_id().x();
        k.if_(i.lt(r.len()), || {
            let (x, y) = (x.at(i).get(), y.at(i).get());
            let step = |value: u32| k.lit(t, f64::from(value) * STEP);
            let first = (self.value)(x, y);
            let sum = (1..VALUES).fold(first, |sum, value| {
                sum + (self.value)(x + step(value), y + step(value))
            });
            r.at(i).set(sum)
        });
    }
}
