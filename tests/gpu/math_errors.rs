//! How far functions of `f64` are from the exact results: at some points as tests, at very many by an option of the program.
//! `tests/math_pairs.rs` tries some on the CPU, and shows that the references are right.
//!
//! `gpu-tests --math-errors [--points N] [--seed S] [FILTERS]`: N points of each function whose name has one of the
//! filters in it, 10^8 if it is not said, and a table of what was seen. With `--cpu` it has this machine's CPU.

use std::process::ExitCode;
use std::time::Instant;

use kiln::prelude::*;
use libtest_mimic::{Failed, Trial};
use suite::math_errors::{self, FUNCTIONS, Function, OF_REFERENCE, documented};
use suite::options::{takes, takes_number};

/// The option by which the program does this and nothing else.
pub const OPTION: &str = "--math-errors";

/// How many points of each function the tests try.
const POINTS: u64 = 1 << 20;

/// A test for each function.
pub fn tests(device: &Device) -> Vec<Trial> {
    let test = |f: &'static Function| {
        let device = device.clone();
        Trial::test(
            format!("gpu::math_errors::{}", f.name),
            move || match is_within(&math_errors::jit(device), f, POINTS, 1) {
                true => Ok(()),
                false => Err(Failed::from("a result is too far off")),
            },
        )
    };
    FUNCTIONS.iter().map(test).collect()
}

/// Tries the functions as the arguments say, on the first CUDA device.
pub fn run(mut args: Vec<String>, require: bool) -> ExitCode {
    let numbers = ["--points", "--seed"].map(|option| takes_number(&mut args, option));
    let [Ok(points), Ok(seed)] = numbers else {
        eprintln!("gpu-tests {OPTION} [--points N] [--seed S] [--cpu] [--require] [FILTERS]");
        return ExitCode::from(2);
    };
    let (points, seed) = (points.unwrap_or(100_000_000), seed.unwrap_or_default());
    let device = match takes(&mut args, "--cpu") {
        true => Device::cpu(),
        false => match Device::cuda(0) {
            Ok(device) => device,
            Err(error) => {
                println!("no CUDA device, so no function was tried: {error}");
                return u8::from(require).into();
            }
        },
    };
    println!(
        "running on {}, {points} points each, seed {seed}",
        device.info().name
    );
    println!("| function | points | left out | largest error | where | may be | seconds |");
    println!("|---|---|---|---|---|---|---|");
    let jit = math_errors::jit(device);
    let chosen = |f: &&Function| {
        let mut filters = args.iter().skip(1);
        args.len() < 2 || filters.any(|filter| f.name.contains(filter.as_str()))
    };
    let tried = FUNCTIONS.iter().filter(chosen);
    let tried = tried.map(|f| is_within(&jit, f, points, seed));
    let failed = tried.filter(|is_within| !is_within).count();
    println!("{failed} failed");
    u8::from(failed > 0).into()
}

/// Tries a function, says what it has seen, and whether that is within what is documented.
fn is_within(jit: &Jit, f: &Function, points: u64, seed: u64) -> bool {
    let start = Instant::now();
    let seen = f.sweep(jit, points, seed);
    let (Some(bound), Ok(seen)) = (documented(f.name), &seen) else {
        println!("{}: {seen:?}", f.name);
        return false;
    };
    let is_within = seen.error <= bound + OF_REFERENCE && seen.left_out < seen.points / 2;
    println!(
        "| {} | {} | {} | {:.6} | {:e} | {bound}{} | {:.1} |",
        f.name,
        seen.points,
        seen.left_out,
        seen.error,
        seen.at,
        if is_within { "" } else { " **FAILED**" },
        start.elapsed().as_secs_f32()
    );
    is_within
}
