//! What `benches/cpu.rs` measures: kernels, sizes, and the figures to meet.

/// A figure to meet.
#[derive(Copy, Clone, Debug)]
pub enum Goal {
    /// At least this many times as fast as a peer.
    Speed(&'static str, f64),
    /// At most this many seconds.
    Seconds(f64),
}

/// What a run handles, for a rate.
#[derive(Copy, Clone, Debug)]
pub enum Work {
    /// Bytes a run reads and writes.
    Bytes(fn(f64) -> f64),
    /// Floating-point operations.
    Flops(fn(f64) -> f64),
    /// Elements or pixels.
    Elements(fn(f64) -> f64),
    /// A run stands for itself.
    Nothing,
}

impl Work {
    /// The rate of a run of size `n` that takes `seconds`, with its unit.
    pub fn rate(self, n: usize, seconds: f64) -> Option<(f64, &'static str)> {
        let (work, unit) = match self {
            Work::Bytes(work) => (work, "GB/s"),
            Work::Flops(work) => (work, "GF/s"),
            Work::Elements(work) => (work, "Gelem/s"),
            Work::Nothing => return None,
        };
        Some((work(n as f64) / seconds * 1e-9, unit))
    }
}

/// A kernel at a size.
#[derive(Copy, Clone, Debug)]
pub struct Case {
    /// Its name in reports and in `--kernel`.
    pub name: &'static str,
    /// The kernel's name in `kernels.rs` and in the peers' programs.
    pub kernel: &'static str,
    /// Elements, or elements along an edge, as the kernel takes it.
    pub size: usize,
    /// The same under `--quick`.
    pub quick: usize,
    /// What a run handles.
    pub work: Work,
    /// The figures to meet.
    pub goals: &'static [Goal],
}

const fn case(
    name: &'static str,
    (size, quick): (usize, usize),
    work: Work,
    goals: &'static [Goal],
) -> Case {
    Case {
        name,
        kernel: name,
        size,
        quick,
        work,
        goals,
    }
}

impl Case {
    /// The case as another name for `kernel`.
    const fn of(self, kernel: &'static str) -> Case {
        Case { kernel, ..self }
    }
}

/// A mathematical function, of `functions.rs`.
const fn function(name: &'static str) -> Case {
    // So few that they stay in a cache.
    case(
        name,
        (1 << 16, 1 << 12),
        Elements(|n| n),
        &[Speed("gcc", 0.8)],
    )
}

const LINEAR: (usize, usize) = (1 << 22, 1 << 16);
const LARGE: (usize, usize) = (1 << 25, 1 << 17);
const IMAGE: (usize, usize) = (2048, 128);
const MATRIX: (usize, usize) = (512, 64);

use Goal::{Seconds, Speed};
use Work::{Bytes, Elements, Flops, Nothing};

/// All cases.
pub const CASES: &[Case] = &[
    case("fused", LINEAR, Bytes(|n| 16.0 * n), &[Speed("gcc", 0.95)]),
    case(
        "fused-large",
        LARGE,
        Bytes(|n| 16.0 * n),
        &[Speed("gcc", 0.95)],
    )
    .of("fused"),
    case("saxpy", LINEAR, Bytes(|n| 12.0 * n), &[]),
    case("sum", LARGE, Bytes(|n| 4.0 * n), &[Speed("gcc", 0.9)]),
    case("tree", LINEAR, Bytes(|n| 4.0 * n), &[Speed("intel", 3.0)]),
    case(
        "matmul",
        MATRIX,
        Flops(|n| 2.0 * n * n * n),
        &[Speed("intel", 2.0), Speed("gcc", 1.5)],
    ),
    case("matmul-naive", MATRIX, Flops(|n| 2.0 * n * n * n), &[]),
    case(
        "stencil",
        IMAGE,
        Bytes(|n| 8.0 * n * n),
        &[Speed("gcc", 1.0)],
    ),
    case(
        "stencil-direct",
        IMAGE,
        Bytes(|n| 8.0 * n * n),
        &[Speed("gcc", 1.0)],
    ),
    case("scan", LINEAR, Bytes(|n| 8.0 * n), &[Speed("intel", 4.0)]),
    case(
        "nbody",
        (4096, 256),
        Flops(|n| 20.0 * n * n),
        &[Speed("intel", 1.0)],
    ),
    case(
        "sin-exp-log",
        LINEAR,
        Elements(|n| n),
        &[Speed("intel", 1.5)],
    ),
    case(
        "mandelbrot",
        (1024, 64),
        Elements(|n| n * n),
        &[Speed("intel", 1.0)],
    ),
    case("histogram", LINEAR, Elements(|n| n), &[Speed("intel", 4.0)]),
    case("launch-1", (1, 1), Nothing, &[Seconds(5e-6)]).of("launch"),
    case("launch-4096", (4096, 4096), Nothing, &[Seconds(60e-6)]).of("launch"),
    case("compile", (4096, 4096), Nothing, &[Seconds(10e-3)]),
    function("sin-f32"),
    function("cos-f32"),
    function("sin-cos-f32"),
    function("exp-f32"),
    function("log-f32"),
    function("pow-f32"),
    function("tanh-f32"),
    function("atan2-f32"),
    function("erf-f32"),
    function("rsqrt-f32"),
    function("div-f32"),
    function("sin-f64"),
    function("cos-f64"),
    function("sin-cos-f64"),
    function("exp-f64"),
    function("log-f64"),
    function("pow-f64"),
    function("tanh-f64"),
    function("atan2-f64"),
    function("erf-f64"),
    function("rsqrt-f64"),
    function("div-f64"),
];
