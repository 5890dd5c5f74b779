//! Kernels of a few lines, each about one thing that is easily made slow, with what `ptxas` makes of them for sm_90
//! beside what it makes of nvcc's.
//!
//! `micro.txt` is what was recorded, as `programs.txt` is: `UPDATE_EXPECT=1 cargo xtask test -p kiln-tests micro`
//! records anew. Kernels are without bounds checks, as nvcc's are, and with them. `transform` and `search` are whole
//! algorithms: what they stress comes together there alone.

use std::fmt::Write;

use expect_test::expect_file;
use kiln::core::inspect::Inspection;
use kiln::core::job::CompileOptions;
use kiln::prelude::*;
use kiln_suite::without_checks;

use super::machine::{Assembled, HEAD, SM, jit, machines, of_nvcc, recorded};

/// What was recorded, a line a kernel.
const RECORDED: &str = include_str!("micro.txt");

/// Sine and cosine of one angle, as two functions.
#[kernel]
fn sine_and_cosine(x: &[f64], y: &mut [f64]) {
    let i = global_id().x;
    y[i] = x[i].sin() * x[i].cos();
}

/// The same as one function.
#[kernel]
fn sine_cosine(x: &[f64], y: &mut [f64]) {
    let i = global_id().x;
    let (sine, cosine) = x[i].sin_cos();
    y[i] = sine * cosine;
}

#[kernel]
fn single_sine(x: &[f32], y: &mut [f32]) {
    let i = global_id().x;
    y[i] = x[i].sin();
}

/// A loop over bytes, which is no work for the loop vectorizer.
#[kernel]
fn triple_bytes(x: &[u8], y: &mut [u8]) {
    for i in 0..y.len() {
        y[i] = x[i] * 3;
    }
}

const BOX: [u8; 64] = {
    let mut bytes = [0; 64];
    let mut i = 0;
    while i < 64 {
        bytes[i] = (i * i % 251) as u8;
        i += 1;
    }
    bytes
};

/// A table of constants, indexed by what was read.
#[kernel]
fn substitute(x: &[u8], y: &mut [u8]) {
    let i = global_id().x;
    y[i] = BOX[(x[i] % 64) as usize];
}

/// What a launch passes by value.
#[derive(Copy, Clone, KernelType)]
#[repr(C)]
struct Filter {
    scale: f32,
    weights: [f32; 16],
}

/// An array in a struct that is passed by value, indexed by what was read.
#[kernel]
fn weigh(filter: Filter, x: &[u32], y: &mut [f32]) {
    let i = global_id().x;
    y[i] = filter.scale * filter.weights[(x[i] % 16) as usize];
}

#[kernel]
fn count_trailing(x: &[u32], y: &mut [u32]) {
    let i = global_id().x;
    y[i] = x[i].trailing_zeros();
}

#[kernel]
fn count_leading(x: &[u32], y: &mut [u32]) {
    let i = global_id().x;
    y[i] = x[i].leading_zeros();
}

#[kernel]
fn sum_of_differences(x: &[u32], y: &[u32], z: &mut [u32]) {
    let i = global_id().x;
    z[i] += x[i].abs_diff(y[i]);
}

#[kernel]
fn sum_of_short_differences(x: &[u16], y: &[u16], z: &mut [u32]) {
    let i = global_id().x;
    z[i] += x[i].abs_diff(y[i]) as u32;
}

/// The division is by a power of two, and of what is below it.
#[kernel(launch_bounds(64))]
fn bounded(y: &mut [u32]) {
    let t = thread_idx().x;
    y[t] = (t / 64) as u32;
}

/// A part of a transform, on memory of the thread.
#[device_fn]
fn turn(values: &mut [f32; 16], by: f32) {
    for j in 0..8 {
        let (a, b) = (values[j], values[j + 8]);
        values[j] = (a + b) * by;
        values[j + 8] = (a - b).mul_add(by, a);
    }
    for j in 0..4 {
        let (a, b) = (values[j], values[j + 4]);
        values[j] = (a + b) * by;
        values[j + 4] = (a - b).mul_add(by, a);
    }
}

/// A function that takes memory of the thread, called twice.
#[kernel]
fn turn_twice(x: &mut [f32], by: f32) {
    let i = global_id().x;
    let mut values = [0.0; 16];
    for j in 0..16 {
        values[j] = x[i + j * 32];
    }
    turn(&mut values, by);
    turn(&mut values, by + 1.0);
    for j in 0..16 {
        x[i + j * 32] = values[j];
    }
}

/// Four numbers that belong together.
#[derive(Copy, Clone, KernelType)]
#[repr(C)]
struct Body {
    at: [f32; 3],
    mass: f32,
}

/// A struct of four numbers is one access.
#[kernel]
fn read_structs(x: &[Body], y: &mut [f32]) {
    let i = global_id().x;
    let body = x[i];
    y[i] = body.mass * (body.at[0] + body.at[1] + body.at[2]);
}

/// So are four neighbours.
#[kernel]
fn read_four(x: &[f32], y: &mut [f32]) {
    let i = global_id().x;
    let four = &x[4 * i..4 * i + 4];
    y[i] = four[3] * (four[0] + four[1] + four[2]);
}

/// A tile that is whole in all blocks but the last.
#[kernel]
fn scale_tile(x: &[u32], y: &mut [u32], n: usize) {
    let first = block_idx().x * 2048 + thread_idx().x;
    let full = (block_idx().x + 1) * 2048 <= n;
    #[unroll]
    for j in 0..16 {
        let i = first + j * 128;
        if full || i < n {
            y[i] = x[i] * 3;
        }
    }
}

/// Four neighbours behind a guard that names them all: it says what their checks ask.
#[kernel]
fn guarded_four(x: &[f32], y: &mut [f32]) {
    let i = 4 * thread_idx().x;
    if i + 4 <= x.len() && i + 4 <= y.len() {
        y[i] = x[i] + x[i + 1];
        y[i + 1] = x[i + 1] + x[i + 2];
        y[i + 2] = x[i + 2] + x[i + 3];
        y[i + 3] = x[i + 3] + x[i];
    }
}

/// The same of all blocks, where the guard may wrap around: that it did not is asked once.
#[kernel]
fn guarded_four_of_grid(x: &[f32], y: &mut [f32]) {
    let i = 4 * global_id().x;
    if i + 4 <= x.len() && i + 4 <= y.len() {
        y[i] = x[i] + x[i + 1];
        y[i + 1] = x[i + 1] + x[i + 2];
        y[i + 2] = x[i + 2] + x[i + 3];
        y[i + 3] = x[i + 3] + x[i];
    }
}

/// The same as a loop.
#[kernel]
fn guarded_loop(x: &[f32], sums: &mut [f32]) {
    let (mut i, mut sum) = (0, 0.0);
    while i + 4 <= x.len() {
        sum += x[i] * x[i + 1] - x[i + 2] * x[i + 3];
        i += 4;
    }
    if global_id().x < sums.len() {
        sums[global_id().x] = sum;
    }
}

/// Sums that are stored behind a barrier: added up there they need a register for each summand meanwhile.
#[kernel]
fn sums_over_barrier(x: &mut [f32]) {
    let tile = shared!([f32; 128]);
    let (i, thread) = (global_id().x, thread_idx().x);
    let mut sums = [0.0; 16];
    for j in 0..16 {
        sums[j] = x[i + j * 128] + x[i + (j + 16) * 128];
    }
    tile[thread] = sums[0];
    barrier();
    let first = tile[0];
    if first > 0.0 {
        for j in 0..16 {
            x[i + j * 128] = sums[j] * first;
        }
    }
}

/// A division of numbers that have 12 bits.
#[kernel]
fn divide_few_bits(x: &[u32], y: &[u32], z: &mut [u32]) {
    let i = global_id().x;
    z[i] = (x[i] & 0xfff) / (y[i] & 0xfff).max(1);
}

#[kernel]
fn divide(x: &[u32], y: &[u32], z: &mut [u32]) {
    let i = global_id().x;
    z[i] = x[i] / y[i].max(1);
}

/// Has a result for -2^31 / -1, too, and for a division by zero.
#[kernel]
fn divide_signed(x: &[i32], y: &[i32], z: &mut [i32]) {
    let i = global_id().x;
    z[i] = x[i] / y[i];
}

/// Constants of 64 bits, which no instruction has room for.
#[kernel]
fn polynomials(x: &[f64], y: &mut [f64], turns: usize) {
    let i = global_id().x;
    let mut v = x[i];
    for _ in 0..turns {
        v = ((v * 0.123456789 + 1.23456789) * v + 3.456789012) * v + 0.456789012;
    }
    y[i] = v;
}

/// The same in a loop that is not unrolled.
#[kernel]
fn polynomials_rolled(x: &[f64], y: &mut [f64], turns: usize) {
    let i = global_id().x;
    let mut v = x[i];
    #[unroll(never)]
    for _ in 0..turns {
        v = ((v * 0.123456789 + 1.23456789) * v + 3.456789012) * v + 0.456789012;
    }
    y[i] = v;
}

#[derive(Copy, Clone, KernelType)]
#[repr(C)]
struct Complex {
    re: f32,
    im: f32,
}

#[device_fn]
fn plus(a: Complex, b: Complex) -> Complex {
    Complex {
        re: a.re + b.re,
        im: a.im + b.im,
    }
}

#[device_fn]
fn minus(a: Complex, b: Complex) -> Complex {
    Complex {
        re: a.re - b.re,
        im: a.im - b.im,
    }
}

/// A transform of four of the values.
#[device_fn]
fn transform_four(values: &mut [Complex; 16], first: usize, apart: usize) {
    let (a, b) = (values[first], values[first + apart]);
    let (c, d) = (values[first + 2 * apart], values[first + 3 * apart]);
    let (even, odd) = (plus(a, c), plus(b, d));
    let (left, right) = (minus(a, c), minus(b, d));
    values[first] = plus(even, odd);
    values[first + apart] = Complex {
        re: left.re + right.im,
        im: left.im - right.re,
    };
    values[first + 2 * apart] = minus(even, odd);
    values[first + 3 * apart] = Complex {
        re: left.re - right.im,
        im: left.im + right.re,
    };
}

/// Local arrays in registers, sine and cosine, complex numbers: a Fourier transform of 16 elements that are a column apart,
/// with the factors of a larger one.
#[kernel]
fn transform(x: &mut [Complex], columns: usize, step: f32) {
    let i = global_id().x;
    let mut values = [Complex { re: 0.0, im: 0.0 }; 16];
    for j in 0..16 {
        values[j] = x[i + j * columns];
    }
    for j in 0..4 {
        transform_four(&mut values, j, 4);
    }
    for j in 1..16 {
        let (sine, cosine) = (step * (i * j) as f32).sin_cos();
        let value = values[j];
        values[j] = Complex {
            re: value.re * cosine + value.im * sine,
            im: value.im * cosine - value.re * sine,
        };
    }
    for j in 0..4 {
        transform_four(&mut values, 4 * j, 1);
    }
    for j in 0..16 {
        x[i + j * columns] = values[j];
    }
}

/// The same where the loop with the factors says that it is to be unrolled: the other is written out without.
#[kernel]
fn transform_unrolled(x: &mut [Complex], columns: usize, step: f32) {
    let i = global_id().x;
    let mut values = [Complex { re: 0.0, im: 0.0 }; 16];
    for j in 0..16 {
        values[j] = x[i + j * columns];
    }
    for j in 0..4 {
        transform_four(&mut values, j, 4);
    }
    #[unroll]
    for j in 1..16 {
        let (sine, cosine) = (step * (i * j) as f32).sin_cos();
        let value = values[j];
        values[j] = Complex {
            re: value.re * cosine + value.im * sine,
            im: value.im * cosine - value.re * sine,
        };
    }
    for j in 0..4 {
        transform_four(&mut values, 4 * j, 1);
    }
    for j in 0..16 {
        x[i + j * columns] = values[j];
    }
}

/// A search with a small stack of bytes of the thread, which ends early.
#[kernel]
fn search(edges: &[u8], wanted: &[u8], steps: &mut [u32]) {
    let i = global_id().x;
    if i < steps.len() {
        let mut stack = [0u8; 16];
        let (mut depth, mut count) = (1, 0);
        while depth > 0 {
            depth -= 1;
            let node = stack[depth];
            count += 1;
            if node == wanted[i] {
                break;
            }
            for k in 0..4 {
                let next = edges[4 * node as usize + k];
                if next != 0 && depth < 16 {
                    stack[depth] = next;
                    depth += 1;
                }
            }
        }
        steps[i] = count;
    }
}

/// Kernels whose checks say nothing new: with them the code is that without.
const FREE: [&str; 1] = ["guarded_four"];

/// Looks at a kernel, whose twin has its name.
macro_rules! look {
    ($jit:ident, $kernel:ident($($arg:expr),*)) => {
        (stringify!($kernel), $jit.inspect(&$kernel, args!($($arg),*))?)
    };
}

fn looks(jit: &Jit) -> kiln::Result<Vec<(&'static str, Inspection)>> {
    let (x64, mut y64) = (jit.zeros::<f64>(8)?, jit.zeros::<f64>(8)?);
    let (x32, mut y32) = (jit.zeros::<f32>(8)?, jit.zeros::<f32>(8)?);
    let (x8, mut y8) = (jit.zeros::<u8>(8)?, jit.zeros::<u8>(8)?);
    let bodies = jit.zeros::<Body>(8)?;
    let u32s = jit.zeros::<u32>(8)?;
    let u16s = jit.zeros::<u16>(8)?;
    let mut z = jit.zeros::<u32>(8)?;
    let (i32s, mut y_i32) = (jit.zeros::<i32>(8)?, jit.zeros::<i32>(8)?);
    let mut complex = jit.zeros::<Complex>(8)?;
    let filter = Filter {
        scale: 1.0,
        weights: [0.5; 16],
    };
    Ok(vec![
        look!(jit, sine_and_cosine(&x64, &mut y64)),
        look!(jit, sine_cosine(&x64, &mut y64)),
        look!(jit, single_sine(&x32, &mut y32)),
        look!(jit, triple_bytes(&x8, &mut y8)),
        look!(jit, substitute(&x8, &mut y8)),
        look!(jit, weigh(filter, &u32s, &mut y32)),
        look!(jit, count_trailing(&u32s, &mut z)),
        look!(jit, count_leading(&u32s, &mut z)),
        look!(jit, sum_of_differences(&u32s, &u32s, &mut z)),
        look!(jit, sum_of_short_differences(&u16s, &u16s, &mut z)),
        look!(jit, bounded(&mut z)),
        look!(jit, turn_twice(&mut y32, 0.5f32)),
        look!(jit, read_structs(&bodies, &mut y32)),
        look!(jit, read_four(&x32, &mut y32)),
        look!(jit, scale_tile(&u32s, &mut z, 8usize)),
        look!(jit, guarded_four(&x32, &mut y32)),
        look!(jit, guarded_four_of_grid(&x32, &mut y32)),
        look!(jit, guarded_loop(&x32, &mut y32)),
        look!(jit, sums_over_barrier(&mut y32)),
        look!(jit, divide_few_bits(&u32s, &u32s, &mut z)),
        look!(jit, divide(&u32s, &u32s, &mut z)),
        look!(jit, divide_signed(&i32s, &i32s, &mut y_i32)),
        look!(jit, polynomials(&x64, &mut y64, 8usize)),
        look!(jit, polynomials_rolled(&x64, &mut y64, 8usize)),
        look!(jit, transform(&mut complex, 8usize, 0.5f32)),
        look!(jit, transform_unrolled(&mut complex, 8usize, 0.5f32)),
        look!(jit, search(&x8, &x8, &mut z)),
    ])
}

#[test]
fn micro_kernels_are_what_is_recorded() -> kiln::Result<()> {
    if std::env::var_os("KILN_PTXAS").is_none() {
        println!("no ptxas: nothing is compared");
        return Ok(());
    }
    let (unchecked, checked) = (jit(without_checks())?, jit(CompileOptions::default())?);
    let mut table = format!(
        "{}: of nvcc | without checks | with checks\n",
        HEAD.trim_end()
    );
    let ways = looks(&unchecked)?.into_iter().zip(looks(&checked)?);
    let (mut names, mut assembled) = (Vec::new(), Vec::new());
    for ((name, unchecked), (_, checked)) in ways {
        names.push(name);
        for inspection in [unchecked, checked] {
            assembled.extend(Assembled::of_entry(inspection.ptx()?, SM));
        }
    }
    let Some(machines) = machines(assembled, SM) else {
        println!("no nvdisasm: nothing is compared");
        return Ok(());
    };
    for (name, ways) in names.into_iter().zip(machines.chunks(2)) {
        let [unchecked, checked] = ways else {
            panic!("{name} is there in two ways");
        };
        if FREE.contains(&name) {
            assert_eq!(checked, unchecked, "{name} with checks, and without");
        }
        let nvcc = of_nvcc(include_str!("micro.cu"), name, SM).map(|machine| machine.to_string());
        let nvcc = nvcc
            .as_deref()
            .or(recorded(RECORDED, name))
            .unwrap_or("not recorded");
        let _ = writeln!(table, "{name:44} | {nvcc} | {unchecked} | {checked}");
    }
    expect_file!["micro.txt"].assert_eq(&table);
    Ok(())
}
