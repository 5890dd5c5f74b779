//! How far functions of `f64` and of `f32` are from the exact results: at some points as tests, at very many by an option of the
//! program. `tests/math_pairs.rs` tries some on the CPU, and shows that the references are right.
//!
//! `gpu-tests --math-errors [--points N] [--seed S] [FILTERS]`: N points of each function whose name has one of the
//! filters in it, 10^8 if it is not said, and a table of what was seen. With `--f32` it is functions of `f32` at every number
//! there is, or at N of them; with `--cpu` it has this machine's CPU.

use std::process::ExitCode;
use std::time::Instant;

use kiln::prelude::*;
use libtest_mimic::{Failed, Trial};
use suite::math_errors::every::{self, OF_DOUBLES};
use suite::math_errors::{self, FUNCTIONS, Function, OF_REFERENCE, documented};
use suite::options::{takes, takes_number};

/// The option by which the program does this and nothing else.
pub const OPTION: &str = "--math-errors";

/// How many points of each function the tests try.
const POINTS: u64 = 1 << 20;

/// The points that are tried, and their type.
#[derive(Copy, Clone)]
enum Points {
    /// Of `f64`, so many of a seed.
    Doubles(u64, u64),
    /// Of `f32`.
    Floats(u64),
}

/// A test for each function and type.
pub fn tests(device: &Device) -> Vec<Trial> {
    let of_one = |f: &'static Function| {
        let singles = f.has_singles().then_some(("f32", Points::Floats(POINTS)));
        let tried = [("f64", Points::Doubles(POINTS, 1))].into_iter();
        tried.chain(singles).map(move |tried| (f, tried))
    };
    let test = |(f, (ty, points)): (&'static Function, (&str, Points))| {
        let device = device.clone();
        let name = format!("gpu::math_errors::{ty}::{}", f.name);
        Trial::test(name, move || {
            match is_within(&math_errors::jit(device), f, points) {
                true => Ok(()),
                false => Err(Failed::from("a result is too far off")),
            }
        })
    };
    FUNCTIONS.iter().flat_map(of_one).map(test).collect()
}

/// Tries the functions as the arguments say, on the first CUDA device.
pub fn run(mut args: Vec<String>, require: bool) -> ExitCode {
    let numbers = ["--points", "--seed"].map(|option| takes_number(&mut args, option));
    let [Ok(points), Ok(seed)] = numbers else {
        eprintln!(
            "gpu-tests {OPTION} [--points N] [--seed S] [--f32] [--cpu] [--require] [FILTERS]"
        );
        return ExitCode::from(2);
    };
    let points = match takes(&mut args, "--f32") {
        true => Points::Floats(points.unwrap_or(every::ALL)),
        false => Points::Doubles(points.unwrap_or(100_000_000), seed.unwrap_or_default()),
    };
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
    let told = match points {
        Points::Doubles(points, seed) => format!("{points} points of f64 each, seed {seed}"),
        Points::Floats(points) => format!("{points} numbers of f32 each"),
    };
    println!("running on {}, {told}", device.info().name);
    println!("| function | points | left out | largest error | where | may be | seconds |");
    println!("|---|---|---|---|---|---|---|");
    let jit = math_errors::jit(device);
    let chosen = |f: &&Function| {
        let mut filters = args.iter().skip(1);
        let is_named = args.len() < 2 || filters.any(|filter| f.name.contains(filter.as_str()));
        is_named && (matches!(points, Points::Doubles(..)) || f.has_singles())
    };
    let tried = FUNCTIONS.iter().filter(chosen);
    let tried = tried.map(|f| is_within(&jit, f, points));
    let failed = tried.filter(|is_within| !is_within).count();
    println!("{failed} failed");
    u8::from(failed > 0).into()
}

/// Tries a function, says what it has seen, and whether that is within what is documented.
fn is_within(jit: &Jit, f: &Function, points: Points) -> bool {
    let start = Instant::now();
    let (seen, bound, of_reference) = match points {
        Points::Doubles(points, seed) => (f.sweep(jit, points, seed), documented(f), OF_REFERENCE),
        Points::Floats(points) => (f.sweep_f32(jit, points), every::documented(f), OF_DOUBLES),
    };
    let (Some(bound), Ok(seen)) = (bound, &seen) else {
        println!("{}: {seen:?}", f.name);
        return false;
    };
    // Half of all numbers are negative, whose roots and logarithms are none.
    let is_within = seen.error <= bound + of_reference && seen.left_out <= seen.points / 2;
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
