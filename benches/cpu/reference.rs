//! What the kernels of `benches/cpu.rs` must compute: their inputs and plain Rust loops.
//!
//! Our results are compared one by one, those of peers in other processes by a checksum: the sum of
//! all results, each times a number that tells its place. All inputs are the same in every language.

use crate::functions;
use crate::kernels::{BLOCK, MAX_STEPS};

/// The salts of a kernel's inputs, in order.
pub const SALTS: [u32; 4] = [1, 358, 701, 17];

/// The factor of `saxpy`: so small that many runs change `y` little.
pub const SAXPY_A: f32 = 1e-6;

/// `count` numbers from 0 to 1.
pub fn floats(count: usize, salt: u32) -> Vec<f32> {
    let number = |i: usize| (i as u32 % 1009 * 331 + salt) % 1009;
    (0..count).map(|i| number(i) as f32 / 1009.0).collect()
}

/// `count` numbers below 256.
pub fn keys(count: usize) -> Vec<u32> {
    let mix = |i: u32| {
        let x = i.wrapping_mul(0x9E37_79B1);
        (x ^ (x >> 15)).wrapping_mul(0x85EB_CA77) >> 24
    };
    (0..count).map(|i| mix(i as u32)).collect()
}

/// The checksum of results in order.
pub fn checksum(results: &[f64]) -> f64 {
    let weighted = results.iter().enumerate();
    weighted
        .map(|(i, value)| value * (1 + i % 1009) as f64)
        .sum()
}

/// What a kernel must compute.
pub struct Expected {
    values: Vec<f64>,
    /// How far a checksum may be off, as a part of it.
    tolerance: f64,
    /// Which part of the results may be wrong.
    exempt: f64,
}

impl Expected {
    /// Results that differ by the rounding of `f32` at most.
    fn rounded(values: Vec<f64>) -> Expected {
        Expected {
            values,
            tolerance: 1e-6,
            exempt: 0.0,
        }
    }

    /// Compares results one by one.
    ///
    /// # Errors
    /// The first wrong one, and how many there are.
    pub fn check(&self, results: &[f64]) -> Result<(), String> {
        let want = &self.values;
        if results.len() != want.len() {
            return Err(format!("{} results, not {}", results.len(), want.len()));
        }
        let largest = want.iter().fold(0.0, |max: f64, x| max.max(x.abs()));
        // A NaN is wrong too.
        let is_right =
            |&(x, want): &(&f64, &f64)| (x - want).abs() <= 1e-4 * want.abs() + 1e-5 * largest;
        let pairs = results.iter().zip(want);
        let mut wrong = (0..).zip(pairs).filter(|(_, pair)| !is_right(pair));
        let Some((first, (got, right))): Option<(usize, _)> = wrong.next() else {
            return Ok(());
        };
        let count = 1 + wrong.count();
        if count as f64 <= self.exempt * want.len() as f64 {
            return Ok(());
        }
        Err(format!(
            "{count} of {} results are wrong; result {first} is {got}, not {right}",
            want.len()
        ))
    }

    /// Compares a checksum.
    ///
    /// # Errors
    /// Both checksums.
    pub fn check_sum(&self, got: f64) -> Result<(), String> {
        let want = checksum(&self.values);
        match (got - want).abs() <= self.tolerance * want.abs() {
            true => Ok(()),
            false => Err(format!("its checksum is {got}, not {want}")),
        }
    }
}

/// What a kernel computes for size `n`, by plain loops.
pub fn expected(kernel: &str, n: usize) -> Expected {
    let input = |position: usize, count: usize| floats(count, SALTS[position]);
    let values = match kernel {
        "fused" => {
            let (a, b, c) = (input(0, n), input(1, n), input(2, n));
            let value = |i| a[i] * b[i] + 2.0 * c[i] - 1.0;
            (0..n).map(|i| f64::from(value(i))).collect()
        }
        "saxpy" => {
            let (x, y) = (input(0, n), input(1, n));
            let value = |i| SAXPY_A * x[i] + y[i];
            (0..n).map(|i| f64::from(value(i))).collect()
        }
        "sum" => vec![total(&input(0, n))],
        "tree" => input(0, n).chunks(BLOCK as usize).map(total).collect(),
        "scan" => scan(&input(0, n)),
        "matmul" | "matmul-naive" => matmul(&input(0, n * n), &input(1, n * n), n),
        "stencil" | "stencil-direct" => stencil(&input(0, n * n), n),
        "nbody" => nbody(&SALTS.map(|salt| floats(n, salt))),
        "sin-exp-log" => sin_exp_log(&[0, 1, 2].map(|position| input(position, n))),
        "mandelbrot" => {
            // What is fused into one rounding moves some points near the edge of the set.
            return Expected {
                values: mandelbrot(n),
                tolerance: 1e-3,
                exempt: 0.01,
            };
        }
        "histogram" => histogram(&keys(n)),
        // Launches and compilations compute nothing.
        _ => match functions::find(kernel) {
            Some((function, double)) => function.expected(n, double),
            None => vec![0.0],
        },
    };
    Expected::rounded(values)
}

fn total(x: &[f32]) -> f64 {
    x.iter().map(|&x| f64::from(x)).sum()
}

fn sin_exp_log([a, b, c]: &[Vec<f32>; 3]) -> Vec<f64> {
    let value = |i: usize| {
        let (a, b, c) = (f64::from(a[i]), f64::from(b[i]), f64::from(c[i]));
        a.sin() * b.exp() + (c + 1.0).ln()
    };
    (0..a.len()).map(value).collect()
}

fn histogram(keys: &[u32]) -> Vec<f64> {
    let mut bins = vec![0.0; BLOCK as usize];
    keys.iter().for_each(|&key| bins[key as usize] += 1.0);
    bins
}

fn scan(x: &[f32]) -> Vec<f64> {
    let sums = x.chunks(BLOCK as usize).flat_map(|chunk| {
        chunk.iter().scan(0.0, |sum, &x| {
            *sum += f64::from(x);
            Some(*sum)
        })
    });
    sums.collect()
}

fn matmul(a: &[f32], b: &[f32], n: usize) -> Vec<f64> {
    let mut out = vec![0f32; n * n];
    for (row, a) in out.chunks_mut(n).zip(a.chunks(n)) {
        for (&x, b) in a.iter().zip(b.chunks(n)) {
            row.iter_mut().zip(b).for_each(|(o, &y)| *o += x * y);
        }
    }
    out.into_iter().map(f64::from).collect()
}

fn stencil(image: &[f32], n: usize) -> Vec<f64> {
    let value = |i: usize| {
        let (x, y) = (i % n, i / n);
        if x == 0 || x + 1 == n || y == 0 || y + 1 == n {
            return image[i];
        }
        0.5 * image[i] + 0.125 * (image[i - 1] + image[i + 1] + image[i - n] + image[i + n])
    };
    (0..n * n).map(|i| f64::from(value(i))).collect()
}

fn nbody([x, y, z, mass]: &[Vec<f32>; 4]) -> Vec<f64> {
    let n = x.len();
    let mut out = vec![0.0; 3 * n];
    for i in 0..n {
        let mut sums = [0f32; 3];
        for j in 0..n {
            let d = [x[j] - x[i], y[j] - y[i], z[j] - z[i]];
            let inverse = 1.0 / (d[0] * d[0] + d[1] * d[1] + d[2] * d[2] + 0.01).sqrt();
            let s = mass[j] * (inverse * inverse * inverse);
            sums.iter_mut().zip(d).for_each(|(sum, d)| *sum += s * d);
        }
        for (d, sum) in sums.into_iter().enumerate() {
            out[d * n + i] = f64::from(sum);
        }
    }
    out
}

fn mandelbrot(n: usize) -> Vec<f64> {
    let scale = 2.5 / n as f32;
    let steps = |i: usize| {
        let (cx, cy) = ((i % n) as f32 * scale - 2.0, (i / n) as f32 * scale - 1.25);
        let (mut zx, mut zy, mut steps) = (0f32, 0f32, 0u32);
        while steps < MAX_STEPS && zx * zx + zy * zy <= 4.0 {
            (zx, zy) = (zx * zx - zy * zy + cx, 2.0 * zx * zy + cy);
            steps += 1;
        }
        f64::from(steps)
    };
    (0..n * n).map(steps).collect()
}
