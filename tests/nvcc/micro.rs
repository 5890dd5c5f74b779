//! Kernels of a few lines, each about one thing that is easily made slow, with what `ptxas` makes of them for sm_90
//! beside what it makes of nvcc's.
//!
//! `micro.txt` is what was recorded, as `programs.txt` is: `UPDATE_EXPECT=1 cargo xtask test -p kiln-tests micro`
//! records anew. Kernels are without bounds checks, as nvcc's are.

use std::fmt::Write;

use expect_test::expect_file;
use kiln::core::inspect::Inspection;
use kiln::prelude::*;
use kiln_suite::without_checks;

use super::machine::{HEAD, SM, jit, of_entry, of_nvcc, recorded};

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
    ])
}

#[test]
fn micro_kernels_are_what_is_recorded() -> kiln::Result<()> {
    if std::env::var_os("KILN_PTXAS").is_none() {
        println!("no ptxas: nothing is compared");
        return Ok(());
    }
    let jit = jit(without_checks())?;
    let mut table = String::from(HEAD);
    for (name, inspection) in looks(&jit)? {
        let ours = of_entry(inspection.ptx()?, SM).expect("there is a ptxas");
        let nvcc = of_nvcc(include_str!("micro.cu"), name, SM).map(|machine| machine.to_string());
        let nvcc = nvcc
            .as_deref()
            .or(recorded(RECORDED, name))
            .unwrap_or("not recorded");
        let _ = writeln!(table, "{name:44} | {nvcc} | {ours}");
    }
    expect_file!["micro.txt"].assert_eq(&table);
    Ok(())
}
