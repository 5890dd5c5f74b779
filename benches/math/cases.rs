//! What `benches/math.rs` measures: functions, and the numbers that they are computed of.

/// How exact a function is.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Exactness {
    /// To the last places, as `x.sin()` is and libdevice's.
    Precise,
    /// Within `approximate(|| ..)`, as nvcc's intrinsics are.
    Fast,
}

/// A function of numbers from a range.
#[derive(Copy, Clone, Debug)]
pub struct Case {
    /// How reports call it, if not as the kernel.
    pub name: &'static str,
    /// The kernel's name in `kernels.rs` and in `benches/peers/math.cu`.
    pub kernel: &'static str,
    /// Where first arguments are from and to, and second ones.
    pub ranges: [[f64; 2]; 2],
    /// How exact it is.
    pub exactness: Exactness,
    /// Whether it counts for the geometric mean: of each function one range does.
    pub counts: bool,
}

const NONE: [f64; 2] = [0.0, 1.0];
const ANGLE: [f64; 2] = [-8.0, 8.0];
const POSITIVE: [f64; 2] = [0.01, 100.0];

const fn precise(kernel: &'static str, x: [f64; 2], y: [f64; 2]) -> Case {
    Case {
        name: kernel,
        kernel,
        ranges: [x, y],
        exactness: Exactness::Precise,
        counts: true,
    }
}

const fn fast(kernel: &'static str, x: [f64; 2], y: [f64; 2]) -> Case {
    Case {
        exactness: Exactness::Fast,
        ..precise(kernel, x, y)
    }
}

/// Angles that need as many digits of pi as there are.
const fn large(name: &'static str, kernel: &'static str, x: [f64; 2]) -> Case {
    Case {
        name,
        counts: false,
        ..precise(kernel, x, NONE)
    }
}

const LARGE_SINGLE: [f64; 2] = [2e5, 1e9];
const LARGE_DOUBLE: [f64; 2] = [1e10, 1e15];

/// All of them.
pub const CASES: &[Case] = &[
    precise("sin_f32", ANGLE, NONE),
    precise("cos_f32", ANGLE, NONE),
    precise("sin_cos_f32", ANGLE, NONE),
    precise("exp_f32", [-10.0, 10.0], NONE),
    precise("log_f32", POSITIVE, NONE),
    precise("pow_f32", [0.1, 10.0], [-5.0, 5.0]),
    precise("tanh_f32", [-4.0, 4.0], NONE),
    precise("atan2_f32", [-1.0, 1.0], [-1.0, 1.0]),
    precise("erf_f32", [-3.0, 3.0], NONE),
    precise("rsqrt_f32", POSITIVE, NONE),
    precise("div_f32", [-10.0, 10.0], [0.5, 10.0]),
    precise("sin_f64", ANGLE, NONE),
    precise("cos_f64", ANGLE, NONE),
    precise("sin_cos_f64", ANGLE, NONE),
    precise("exp_f64", [-10.0, 10.0], NONE),
    precise("log_f64", POSITIVE, NONE),
    precise("pow_f64", [0.1, 10.0], [-5.0, 5.0]),
    precise("tanh_f64", [-4.0, 4.0], NONE),
    precise("atan2_f64", [-1.0, 1.0], [-1.0, 1.0]),
    precise("erf_f64", [-3.0, 3.0], NONE),
    precise("rsqrt_f64", POSITIVE, NONE),
    precise("div_f64", [-10.0, 10.0], [0.5, 10.0]),
    large("sin_f32, large angles", "sin_f32", LARGE_SINGLE),
    large("cos_f32, large angles", "cos_f32", LARGE_SINGLE),
    large("sin_f64, large angles", "sin_f64", LARGE_DOUBLE),
    large("cos_f64, large angles", "cos_f64", LARGE_DOUBLE),
    fast("sin_fast", ANGLE, NONE),
    fast("cos_fast", ANGLE, NONE),
    fast("sin_cos_fast", ANGLE, NONE),
    fast("exp_fast", [-10.0, 10.0], NONE),
    fast("log_fast", POSITIVE, NONE),
    fast("pow_fast", [0.1, 10.0], [-5.0, 5.0]),
    fast("tanh_fast", [-4.0, 4.0], NONE),
    fast("rsqrt_fast", POSITIVE, NONE),
    fast("div_fast", [-10.0, 10.0], [0.5, 10.0]),
];
