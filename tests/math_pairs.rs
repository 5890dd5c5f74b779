//! That the references of twice the digits are right, by which `tests/gpu/math_errors.rs` tries functions of `f64` at very many
//! points; and some points, on the CPU.

use std::collections::BTreeMap;

use kiln::prelude::*;
use suite::math_errors::every::{self, OF_DOUBLES};
use suite::math_errors::{FUNCTIONS, Function, OF_REFERENCE, WITHOUT, documented, is_told, jit};

use super::math_exact::{answers, line};
use super::math_points::references;
use super::math_rows::{FUNCTIONS as ALL, Tried};

/// How many points of each function are tried on the CPU.
const POINTS: u64 = 1 << 14;

fn cpu() -> Jit {
    jit(Device::cpu())
}

/// What of a list of arguments a function is tried of.
fn within(f: &Function, numbers: &[f64]) -> Vec<usize> {
    let has = |i: &usize| f.takes(numbers[*i]);
    (0..numbers.len()).filter(has).collect()
}

/// The results that are recorded are nearest numbers, so references round to them, or are half a unit away.
#[test]
fn references_are_those_recorded() -> kiln::Result<()> {
    let (jit, mut count) = (cpu(), 0);
    let is_recorded = |f: &&Function| {
        let row = ALL.iter().find(|row| row.name == f.name);
        row.is_some_and(|row| row.tried == Tried::Recorded)
    };
    for f in FUNCTIONS.iter().filter(is_recorded) {
        let [x, _, wanted] = references(f.name);
        let chosen = within(f, &x);
        assert!(chosen.len() >= 20, "{}: {} points", f.name, chosen.len());
        let x: Vec<f64> = chosen.iter().map(|&i| x[i]).collect();
        let [high, low] = f.references(&jit, &x)?;
        for (n, i) in chosen
            .into_iter()
            .enumerate()
            .filter(|&(n, _)| is_told(high[n]))
        {
            let unit = wanted[i].abs().next_up() - wanted[i].abs();
            let off = ((high[n] - wanted[i]) + low[n]).abs() / unit;
            assert!(
                off <= 0.5 + OF_REFERENCE,
                "{} of {:e}: {:e} and {:e}, not {:e}",
                f.name,
                x[n],
                high[n],
                low[n],
                wanted[i]
            );
            count += 1;
        }
    }
    assert!(count > 400, "{count} points");
    Ok(())
}

/// Both numbers of each pair are those of MPFR, up to what a reference may be off.
#[test]
fn references_are_those_of_mpfr() -> kiln::Result<()> {
    let Some(python) = std::env::var_os("KILN_TEST_PYTHON") else {
        eprintln!("no KILN_TEST_PYTHON: `cargo xtask test` sets it");
        return Ok(());
    };
    let (jit, mut text) = (cpu(), String::new());
    for f in FUNCTIONS {
        let x = f.arguments(&jit, 1000, 7)?;
        let [high, low] = f.references(&jit, &x)?;
        for i in (0..x.len()).filter(|&i| is_told(high[i])) {
            line(&mut text, f.name, "pair", &[x[i], 1.0, high[i], low[i]]);
        }
    }
    let answers: BTreeMap<_, _> = answers(python.as_ref(), &text);
    assert_eq!(answers.len(), FUNCTIONS.len());
    for ((name, ..), (off, at)) in answers {
        println!("{name}: 2^{:.1} units at {at}", off.log2());
        assert!(off <= OF_REFERENCE, "{name} of {at} is off by {off} units");
    }
    Ok(())
}

#[test]
fn doubles_are_within_bounds_of_pairs() -> kiln::Result<()> {
    let jit = cpu();
    let mut wrong = Vec::new();
    for f in FUNCTIONS {
        let bound = documented(f).expect("a row of the table");
        let seen = f.sweep(&jit, POINTS, 1)?;
        println!("{}: {seen:?}", f.name);
        if seen.error > bound + OF_REFERENCE || seen.left_out > seen.points / 2 {
            wrong.push(format!("{}: {seen:?}, of {bound}", f.name));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}

#[test]
fn floats_are_within_bounds_of_doubles() -> kiln::Result<()> {
    let jit = cpu();
    let mut wrong = Vec::new();
    for f in FUNCTIONS.iter().filter(|f| f.has_singles()) {
        let bound = every::documented(f).expect("a row of the table");
        let seen = f.sweep_f32(&jit, POINTS)?;
        println!("{}: {seen:?}", f.name);
        if seen.error > bound + OF_DOUBLES {
            wrong.push(format!("{}: {seen:?}, of {bound}", f.name));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}

/// A result of `f32` that is one unit off is seen to be, and so is one that is none, is infinite, or should be.
#[test]
fn floats_that_are_off_are_seen() -> kiln::Result<()> {
    /// What is done to a result of `f32`; the function of `f64` stays.
    fn changed<'k>(x: Val<'k>, change: impl Fn(Val<'k>) -> Val<'k>) -> Val<'k> {
        match x.ty() == Type::F32 {
            true => change(x.sqrt()),
            false => x.sqrt(),
        }
    }
    let next: for<'k> fn(Val<'k>) -> Val<'k> =
        |x| changed(x, |y| (y.bitcast(Type::U32) + 1).bitcast(Type::F32));
    let nothing: for<'k> fn(Val<'k>) -> Val<'k> = |x| changed(x, |y| (-y).sqrt());
    let infinite: for<'k> fn(Val<'k>) -> Val<'k> = |x| changed(x, |y| y * 3.0e38);
    let f = FUNCTIONS
        .iter()
        .find(|f| f.name == "sqrt")
        .expect("it is there");
    let seen = |tried| f.trying(tried).sweep_f32(&cpu(), 1 << 12);
    let (next, nothing, infinite) = (seen(next)?, seen(nothing)?, seen(infinite)?);
    assert!((1.0..=1.5).contains(&next.error), "{next:?}");
    assert_eq!(nothing.error, f64::INFINITY);
    assert!(infinite.error > 1e9, "{infinite:?}");
    Ok(())
}

/// A result that is one unit off is seen to be, and so is one that is none.
#[test]
fn what_is_off_is_seen() -> kiln::Result<()> {
    let next: for<'k> fn(Val<'k>) -> Val<'k> =
        |x| (x.sqrt().bitcast(Type::U64) + 1).bitcast(Type::F64);
    let nothing: for<'k> fn(Val<'k>) -> Val<'k> = |x| (-x).sqrt();
    let f = FUNCTIONS
        .iter()
        .find(|f| f.name == "sqrt")
        .expect("it is there");
    let [next, nothing] = [next, nothing].map(|tried| {
        let seen = f.trying(tried).sweep(&cpu(), 1000, 1);
        seen.map(|seen| seen.error)
    });
    let (next, nothing) = (next?, nothing?);
    assert!((1.0..=1.5).contains(&next), "{next}");
    assert_eq!(nothing, f64::INFINITY);
    Ok(())
}

/// Each function of one number has a reference, or a reason to have none.
#[test]
fn no_function_is_left_out() {
    let of_one = ALL.iter().filter(|f| !OF_TWO.contains(&f.name));
    for f in of_one {
        let has_reference = FUNCTIONS.iter().any(|known| known.name == f.name);
        let has_reason = WITHOUT.iter().any(|(name, _)| f.name.starts_with(name));
        assert!(has_reference != has_reason, "{}", f.name);
    }
    for (name, why) in WITHOUT {
        let is_row = ALL.iter().any(|f| f.name == *name);
        assert!(is_row, "{name}, {why}");
    }
}

/// The functions of two numbers in the table.
const OF_TWO: [&str; 8] = [
    "copysign",
    "fdim",
    "remainder",
    "log",
    "powf",
    "atan2",
    "hypot",
    "rhypot",
];
