//! Arrays on a GPU beside copies by the driver and CUB.
//!
//! `cargo bench --bench arrays` on a machine with a CUDA device and nvcc. A fused expression reads and writes memory once, so
//! its peer is a copy of as much; whole sums, running sums, sorting and selecting have CUB's. Ours are timed as a program has
//! them: expressions into an array that is there, all else with its result's allocation; sums stay on the device, the
//! index of the greatest is read.

mod driver;
mod report;

use std::collections::HashMap;
use std::process::Command;

use kiln::array::ArrayError;
use kiln::core::runtime::Event;
use kiln::core::target::Target;
use kiln::prelude::*;
use report::{Report, median};

/// Timed runs of each, and those before them that are not.
const RUNS: usize = 11;
const FIRST: usize = 3;

fn main() -> kiln::Result<()> {
    let jit = Jit::new()?;
    let Target::Ptx(target) = jit.target() else {
        println!("no CUDA device: nothing to measure");
        return Ok(());
    };
    let mut bench = Bench {
        arrays: Arrays::new(&jit),
        peers: peers(target.sm),
        report: Report::new("arrays"),
    };
    bench.expressions(1 << 28)?;
    bench.sums(1 << 28)?;
    bench.axes(1 << 14)?;
    bench.structure(1 << 28, 1 << 26)?;
    bench.running()?;
    bench.product(4096)?;
    bench.report.print();
    Ok(())
}

/// The times of the peers in milliseconds, where there is nvcc.
fn peers(sm: u32) -> HashMap<String, f64> {
    let (source, program) = (
        driver::peers().join("arrays.cu"),
        std::env::temp_dir().join(format!("kiln-arrays-{}", std::process::id())),
    );
    let mut nvcc = Command::new("nvcc");
    nvcc.args(["-O3", "--extended-lambda", &format!("-arch=sm_{sm}"), "-o"]);
    match nvcc.arg(&program).arg(&source).status() {
        Ok(status) if status.success() => {}
        Ok(_) => panic!("nvcc rejects {}", source.display()),
        Err(_) => return HashMap::new(),
    }
    let output = Command::new(&program).output().expect("it was built");
    let _ = std::fs::remove_file(&program);
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let lines = String::from_utf8_lossy(&output.stdout).into_owned();
    let time = |line: &str| {
        let (name, ms) = line.split_once(' ')?;
        Some((name.to_owned(), ms.parse().ok()?))
    };
    lines.lines().filter_map(time).collect()
}

struct Bench {
    arrays: Arrays,
    peers: HashMap<String, f64>,
    report: Report,
}

impl Bench {
    /// Times something in the device's order, and the host's part of it where that is longer.
    fn time<R>(
        &mut self,
        name: &str,
        peer: (&str, f64),
        mut run: impl FnMut() -> Result<R, ArrayError>,
    ) -> kiln::Result<()> {
        let device = self.arrays.jit().device().clone();
        let mut times = Vec::new();
        for at in 0..RUNS + FIRST {
            let start = Event::record(&device)?;
            drop(run()?);
            let end = Event::record(&device)?;
            let ms = start.elapsed_ms(&end)?;
            if at >= FIRST {
                times.push(ms);
            }
        }
        let (named, share) = peer;
        match self.peers.get(named) {
            Some(ms) => self
                .report
                .against(name, median(&times), "ms", named, ms * share),
            None => self.report.row(name, median(&times), "ms"),
        }
        Ok(())
    }

    /// Expressions of `n` floats, beside a copy of as many bytes read and written.
    fn expressions(&mut self, n: usize) -> kiln::Result<()> {
        let arrays = self.arrays.clone();
        let x = arrays.full(n, 0.5f32)?;
        let mut y = arrays.zeros::<f32>(n)?;
        let t = 2.0 * &x * &x + 6.0 * x.powi(3) - x.sqrt();
        let polynomial = 3.0 * &t * &t + 5.0 * &t + 2.0;
        self.time("polynomial f32 2^28", ("copy", 1.0), || {
            polynomial.eval_into(&mut y)
        })?;
        let z = arrays.ones::<f32>(n)?;
        let axpy = 2.0 * &x + &z;
        self.time("axpy f32 2^28", ("copy", 1.5), || axpy.eval_into(&mut y))?;
        let strided = x.slice(s![..;2])? + 1.0;
        let mut half = arrays.zeros::<f32>(n / 2)?;
        self.time("every second f32 2^28", ("copy", 0.75), || {
            strided.eval_into(&mut half)
        })?;
        drop((y, z, half));
        let m = x.reshape((1 << 14, n >> 14))?;
        let mut out = arrays.zeros::<f32>((n >> 14, 1 << 14))?;
        let transposed = m.t() + 1.0;
        self.time("transposed f32 16384^2", ("copy", 1.0), || {
            transposed.eval_into(&mut out)
        })
    }

    fn sums(&mut self, n: usize) -> kiln::Result<()> {
        let arrays = self.arrays.clone();
        let x = arrays.full(n, 0.5f32)?;
        self.time("sum f32 2^28", ("sum_f32", 1.0), || x.sum_axis(..))?;
        let x = arrays.full(n / 2, 0.5f64)?;
        self.time("sum f64 2^27", ("sum_f64", 1.0), || x.sum_axis(..))?;
        let x = arrays.full(n, 3i32)?;
        self.time("sum i32 2^28", ("sum_i32", 1.0), || x.sum_axis(..))?;
        let x = arrays.full(1 << 20, 0.5f32)?;
        self.time("sum f32 2^20", ("sum_f32_small", 1.0), || x.sum_axis(..))?;
        let x = arrays.full(n, 0.5f32)?;
        self.time("argmax f32 2^28", ("sum_f32", 1.0), || x.argmax())
    }

    /// Sums along the dimensions of a square matrix, beside CUB's of as many elements.
    fn axes(&mut self, n: usize) -> kiln::Result<()> {
        let arrays = self.arrays.clone();
        let x = arrays.full((n, n), 0.5f32)?;
        self.time("sum of columns 16384^2", ("sum_f32", 1.0), || x.sum_axis(0))?;
        self.time("sum of rows 16384^2", ("sum_f32", 1.0), || x.sum_axis(1))?;
        for (name, dims, share) in [
            ("(64, 2^20)", [1, 64, 1 << 20], 0.25),
            ("(2^20, 64)", [1, 1 << 20, 64], 0.25),
            ("(256, 512, 2048)", [256, 512, 2048], 1.0),
        ] {
            let x = arrays.full(&dims[..], 0.5f32)?;
            let first = usize::from(dims[0] == 1);
            for axis in first..3 {
                let name = format!("sum {name} axis {}", axis - first);
                self.time(&name, ("sum_f32", share), || x.sum_axis(axis as isize))?;
            }
        }
        let soft = arrays.full((1 << 13, 1 << 13), 0.5f32)?;
        self.time("softmax of rows 8192^2", ("copy", 0.25), || {
            let shifted = &soft - &soft.max_axis(kiln::array::keep_dims(1))?;
            let powers = shifted.exp();
            let sums = powers.sum_axis(kiln::array::keep_dims(1))?;
            (&powers / &sums).eval()
        })
    }

    fn structure(&mut self, n: usize, sorted: usize) -> kiln::Result<()> {
        let arrays = self.arrays.clone();
        let x = arrays
            .indices(n)
            .map(device!(
                |i| (i * 2_654_435_761) ^ ((i * 2_654_435_761) >> 15)
            ))
            .eval()?;
        self.time("running sums u32 2^28", ("scan_u32", 1.0), || x.cumsum(0))?;
        self.time("running maxima u32 2^28", ("scan_max_u32", 1.0), || {
            x.accumulate(0, device!(|a, b| a.max(b)))
        })?;
        let mask = (&x % 2u32).eq(0).eval()?;
        self.time("select u32 2^28", ("select_u32", 1.0), || x.compress(&mask))?;
        drop(mask);
        let x = x.slice(s![..sorted as isize])?.copy()?;
        self.time("sort u32 2^26", ("sort_u32", 1.0), || x.sort(0))?;
        self.time("argsort u32 2^26", ("sort_pairs_u32", 1.0), || x.argsort(0))?;
        self.time(
            "sort by a comparison u32 2^26",
            ("merge_sort_u32", 1.0),
            || x.sort_by(0, device!(|a, b| a < b)),
        )?;
        let x = x.cast::<f32>().eval()?;
        self.time("sort f32 2^26", ("sort_f32", 1.0), || x.sort(0))
    }

    /// Running sums along the dimensions of matrices, beside a copy of as many elements.
    fn running(&mut self) -> kiln::Result<()> {
        let arrays = self.arrays.clone();
        for (name, dims, axes) in [
            ("16384^2", [1 << 14, 1 << 14], 0..2),
            ("(2^23, 16)", [1 << 23, 16], 1..2),
            ("(64, 2^20)", [64, 1 << 20], 0..2),
        ] {
            let x = arrays.full(&dims[..], 1u32)?;
            let share = (dims[0] * dims[1]) as f64 / (1u64 << 28) as f64;
            for axis in axes {
                let axis: isize = axis;
                let name = format!("running sums u32 {name} axis {axis}");
                self.time(&name, ("copy", share), || x.cumsum(axis))?;
            }
        }
        Ok(())
    }

    fn product(&mut self, n: usize) -> kiln::Result<()> {
        let arrays = self.arrays.clone();
        let (a, b) = (arrays.full((n, n), 0.5f32)?, arrays.full((n, n), 2.0f32)?);
        self.time("product f32 4096", ("", 1.0), || a.matmul(&b))
    }
}
