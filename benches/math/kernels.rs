//! The kernels of `benches/math.rs`: a function of four numbers a thread again and again, each time of the next ones.
//! `benches/peers/math.cu` has the same.

use kiln::core::front::LazyKernel;
use kiln::prelude::*;

/// How often a thread computes its four values.
pub const ROUNDS: usize = 1024;
/// Numbers of a thread that are worked on side by side.
pub const CHAINS: usize = 4;

/// Kernels by name, `|x, y|` being what is computed.
macro_rules! kernels {
    ($($name:ident: $ty:ty, |$x:ident, $y:ident| $value:expr;)*) => {
        $(
            #[kernel]
            fn $name(x: &[$ty], y: &[$ty], step: [$ty; 2], out: &mut [$ty]) {
                let (thread, threads) = (global_id().x, out.len());
                let mut xs = [0.0; 4];
                let mut ys = [0.0; 4];
                #[unroll]
                for chain in 0..4 {
                    xs[chain] = x[thread + chain * threads];
                    ys[chain] = y[thread + chain * threads];
                }
                let mut sums = [0.0; 4];
                #[unroll(never)]
                for _ in 0..1024 {
                    #[unroll]
                    for chain in 0..4 {
                        let ($x, $y) = (xs[chain], ys[chain]);
                        sums[chain] += $value;
                        xs[chain] += step[0];
                        ys[chain] += step[1];
                    }
                }
                out[thread] = (sums[0] + sums[1]) + (sums[2] + sums[3]);
            }
        )*

        /// The kernel with a name.
        pub fn named(name: &str) -> Option<&'static LazyKernel> {
            match name {
                $(stringify!($name) => Some(&*$name),)*
                _ => None,
            }
        }
    };
}

#[device_fn]
fn both<T: Float>(x: T) -> T {
    let (sine, cosine) = x.sin_cos();
    sine + cosine
}

kernels! {
    sin_f32: f32, |x, _y| x.sin();
    cos_f32: f32, |x, _y| x.cos();
    sin_cos_f32: f32, |x, _y| both(x);
    exp_f32: f32, |x, _y| x.exp();
    log_f32: f32, |x, _y| x.ln();
    pow_f32: f32, |x, y| x.powf(y);
    tanh_f32: f32, |x, _y| x.tanh();
    atan2_f32: f32, |x, y| x.atan2(y);
    erf_f32: f32, |x, _y| x.erf();
    rsqrt_f32: f32, |x, _y| x.rsqrt();
    div_f32: f32, |x, y| x / y;
    sin_f64: f64, |x, _y| x.sin();
    cos_f64: f64, |x, _y| x.cos();
    sin_cos_f64: f64, |x, _y| both(x);
    exp_f64: f64, |x, _y| x.exp();
    log_f64: f64, |x, _y| x.ln();
    pow_f64: f64, |x, y| x.powf(y);
    tanh_f64: f64, |x, _y| x.tanh();
    atan2_f64: f64, |x, y| x.atan2(y);
    erf_f64: f64, |x, _y| x.erf();
    rsqrt_f64: f64, |x, _y| x.rsqrt();
    div_f64: f64, |x, y| x / y;
    sin_fast: f32, |x, _y| approximate(|| x.sin());
    cos_fast: f32, |x, _y| approximate(|| x.cos());
    sin_cos_fast: f32, |x, _y| {
        let (sine, cosine) = approximate(|| x.sin_cos());
        sine + cosine
    };
    exp_fast: f32, |x, _y| approximate(|| x.exp());
    log_fast: f32, |x, _y| approximate(|| x.ln());
    pow_fast: f32, |x, y| approximate(|| x.powf(y));
    tanh_fast: f32, |x, _y| approximate(|| x.tanh());
    rsqrt_fast: f32, |x, _y| approximate(|| x.rsqrt());
    div_fast: f32, |x, y| approximate(|| x / y);
}
