//! What the tests of mathematical functions compare with, against MPFR: the host's functions and the recorded results; and
//! kernels' results of `f64`.
//!
//! `math/exact.py` computes with gmpy2, which `cargo xtask test` installs; it names the Python that has it in
//! `KILN_TEST_PYTHON`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use kiln::prelude::*;

use super::math::{apply_to_pairs, powers, spread};
use super::math_points::{OWN_ON_HOST, references};
use super::math_rows::{FUNCTIONS, Function, Tried};

/// How many numbers of each function are tried, in `f32` and in `f64`.
const COUNT: u64 = 1300;

/// How far the host's functions may be off as references of `f32`, in units in the last place of that.
const OF_SINGLE: f64 = 0.001;

/// How far the platform's functions may be off as references of `f64`.
const OF_DOUBLE: f64 = 2.0;

/// How much more than a kernel's functions those that the host has from the library may be off.
const MORE_ON_HOST: f64 = 2.0;

/// The arguments of a function: of all exponents, and as many not far from 1.
fn arguments(f: &Function, seed: u64) -> (Vec<f64>, Vec<f64>) {
    if f.name == "powf" {
        return powers(COUNT).into_iter().unzip();
    }
    let number = |i: u64, is_near: bool| {
        let random = spread(seed ^ i);
        let exponent = match is_near {
            true => 1023 - 8 + spread(random) % 16,
            false => spread(random) % 2046 + 1,
        };
        f64::from_bits((random & 0x800f_ffff_ffff_ffff) | exponent << 52)
    };
    let pair = |i: u64| {
        let (x, y) = (2 * i, 2 * i + 1);
        (number(x, i % 2 == 1), number(y, i % 4 > 1))
    };
    (0..COUNT).map(pair).unzip()
}

/// A line of the script's input: a function and its argument, and results of it.
pub(super) fn line(text: &mut String, name: &str, format: &str, numbers: &[f64]) {
    let _ = write!(text, "{name} {format}");
    for number in numbers {
        let _ = write!(text, " {:016x}", number.to_bits());
    }
    text.push('\n');
}

/// What the script is asked of a function: the host's results of numbers that `f32` has; of others the host's and a kernel's.
fn questions(jit: &Jit, f: &Function, text: &mut String) -> kiln::Result<()> {
    let (x, y) = arguments(f, 0);
    for (x, y) in x.into_iter().zip(y) {
        let (x, y) = (f.argument(f64::from(x as f32)), f64::from(y as f32));
        line(text, f.name, "single", &[x, y, (f.host)(x, y)]);
    }
    let (x, y) = arguments(f, 1 << 32);
    let x: Vec<f64> = x.into_iter().map(|x| f.argument(x)).collect();
    let of_kernel = apply_to_pairs(jit, f.kiln, &x, &y)?;
    for i in 0..x.len() {
        let of_host = (f.host)(x[i], y[i]);
        line(text, f.name, "double", &[x[i], y[i], of_host, of_kernel[i]]);
    }
    Ok(())
}

/// What the script finds: how far each column of results of a function and a format is off, and where.
pub(super) fn answers(
    python: &Path,
    questions: &str,
) -> BTreeMap<(String, String, usize), (f64, String)> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("math/exact.py");
    let mut process = Command::new(python)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .arg(script)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("Python starts");
    let mut input = process.stdin.take().expect("it is a pipe");
    // The script prints nothing before it has read all.
    input.write_all(questions.as_bytes()).expect("it reads");
    drop(input);
    let output = process.wait_with_output().expect("it ends");
    assert!(output.status.success(), "{}", output.status);
    let text = String::from_utf8(output.stdout).expect("it is text");
    let answer = |line: &str| {
        let words: Vec<&str> = line.split(' ').collect();
        let [name, format, column, off, x, y] = words[..] else {
            panic!("{line}")
        };
        let column = column.parse().expect("a column");
        let off = off.parse().expect("a number");
        (
            (name.to_owned(), format.to_owned(), column),
            (off, format!("{x}, {y}")),
        )
    };
    text.lines().map(answer).collect()
}

/// Which functions are tried: those whose results are rounded.
fn rounded() -> impl Iterator<Item = &'static Function> {
    FUNCTIONS.iter().filter(|f| f.bounds[0] > 0.5)
}

/// The most that a column of results may be off.
fn bound(f: &Function, format: &str, column: usize) -> f64 {
    match (format, column) {
        ("single", _) => OF_SINGLE,
        (_, 1) => f.bounds[1],
        _ if OWN_ON_HOST.contains(&f.name) => f.bounds[1] + MORE_ON_HOST,
        _ if f.tried == Tried::Recorded => f64::INFINITY,
        _ => OF_DOUBLE,
    }
}

#[test]
fn references_are_those_of_mpfr() -> kiln::Result<()> {
    let Some(python) = std::env::var_os("KILN_TEST_PYTHON") else {
        eprintln!("no KILN_TEST_PYTHON: `cargo xtask test` sets it");
        return Ok(());
    };
    let jit = Jit::on(Device::cpu());
    let mut text = String::new();
    for f in rounded() {
        questions(&jit, f, &mut text)?;
    }
    assert!(text.lines().count() > 100_000);
    let answers = answers(python.as_ref(), &text);
    let mut wrong = Vec::new();
    for f in rounded() {
        for (format, column) in [("single", 0), ("double", 0), ("double", 1)] {
            let (off, at) = &answers[&(f.name.to_owned(), format.to_owned(), column)];
            println!("{} {format} {column}: {off:.5} at {at}", f.name);
            if *off > bound(f, format, column) {
                wrong.push(format!("{} {format} {column} of {at}: {off} ulp", f.name));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}

/// Those in `math/references.txt` are the nearest numbers.
#[test]
fn recorded_results_are_those_of_mpfr() {
    let Some(python) = std::env::var_os("KILN_TEST_PYTHON") else {
        eprintln!("no KILN_TEST_PYTHON: `cargo xtask test` sets it");
        return;
    };
    let recorded = FUNCTIONS.iter().filter(|f| f.tried == Tried::Recorded);
    let names = recorded.map(|f| f.name).chain(["ln_gamma_of_negative"]);
    let mut text = String::new();
    for name in names {
        let [x, y, results] = references(name);
        for i in 0..x.len() {
            line(&mut text, name, "double", &[x[i], y[i], results[i]]);
        }
    }
    for ((name, ..), (off, at)) in answers(python.as_ref(), &text) {
        assert!(off <= 0.5, "{name} of {at} is off by {off} ulp");
    }
}
