//! What the kernels of `benches/cpu.rs` must compute: their inputs and plain Rust loops.
//!
//! Results are compared by a checksum, so that peers in other processes are checked too: the sum of
//! all results, each times a number that tells its place. All inputs are the same in every language.

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
pub fn checksum(results: impl IntoIterator<Item = f64>) -> f64 {
    let weighted = results.into_iter().enumerate();
    weighted.map(|(i, value)| value * (1 + i % 7) as f64).sum()
}

/// The checksum of what a kernel computes, and how far from it a right result may be. Sums of many
/// numbers differ by their order, Mandelbrot counts by what is fused into one rounding.
pub fn expected(kernel: &str, n: usize) -> (f64, f64) {
    let input = |position: usize, count: usize| floats(count, SALTS[position]);
    let three = || (input(0, n), input(1, n), input(2, n));
    match kernel {
        "fused" => {
            let (a, b, c) = three();
            let values = (0..n).map(|i| a[i] * b[i] + 2.0 * c[i] - 1.0);
            (checksum(values.map(f64::from)), 1e-4)
        }
        "saxpy" => {
            let (x, y) = (input(0, n), input(1, n));
            let values = (0..n).map(|i| SAXPY_A * x[i] + y[i]);
            (checksum(values.map(f64::from)), 1e-4)
        }
        "sum" => (input(0, n).iter().map(|&x| f64::from(x)).sum(), 1e-3),
        "tree" => {
            let x = input(0, n);
            let sums = x
                .chunks(BLOCK as usize)
                .map(|c| c.iter().map(|&x| f64::from(x)).sum());
            (checksum(sums), 1e-4)
        }
        "scan" => (scan(&input(0, n)), 1e-4),
        "matmul" | "matmul-naive" => (matmul(&input(0, n * n), &input(1, n * n), n), 1e-4),
        "stencil" | "stencil-direct" => (stencil(&input(0, n * n), n), 1e-4),
        "nbody" => (nbody(&SALTS.map(|salt| floats(n, salt))), 1e-4),
        "sin-exp-log" => {
            let (a, b, c) = three();
            let value = |i: usize| {
                let (a, b, c) = (f64::from(a[i]), f64::from(b[i]), f64::from(c[i]));
                a.sin() * b.exp() + (c + 1.0).ln()
            };
            (checksum((0..n).map(value)), 1e-4)
        }
        "mandelbrot" => (mandelbrot(n), 1e-3),
        "histogram" => {
            let mut bins = [0u32; BLOCK as usize];
            keys(n).iter().for_each(|&key| bins[key as usize] += 1);
            (checksum(bins.map(f64::from)), 0.0)
        }
        // Launches and compilations compute nothing.
        _ => (0.0, 0.0),
    }
}

fn scan(x: &[f32]) -> f64 {
    let sums = x.chunks(BLOCK as usize).flat_map(|chunk| {
        chunk.iter().scan(0.0, |sum, &x| {
            *sum += f64::from(x);
            Some(*sum)
        })
    });
    checksum(sums)
}

fn matmul(a: &[f32], b: &[f32], n: usize) -> f64 {
    let mut out = vec![0f32; n * n];
    for (row, a) in out.chunks_mut(n).zip(a.chunks(n)) {
        for (&x, b) in a.iter().zip(b.chunks(n)) {
            row.iter_mut().zip(b).for_each(|(o, &y)| *o += x * y);
        }
    }
    checksum(out.into_iter().map(f64::from))
}

fn stencil(image: &[f32], n: usize) -> f64 {
    let value = |i: usize| {
        let (x, y) = (i % n, i / n);
        if x == 0 || x + 1 == n || y == 0 || y + 1 == n {
            return image[i];
        }
        0.5 * image[i] + 0.125 * (image[i - 1] + image[i + 1] + image[i - n] + image[i + n])
    };
    checksum((0..n * n).map(|i| f64::from(value(i))))
}

fn nbody([x, y, z, mass]: &[Vec<f32>; 4]) -> f64 {
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
    checksum(out)
}

fn mandelbrot(n: usize) -> f64 {
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
    checksum((0..n * n).map(steps))
}
