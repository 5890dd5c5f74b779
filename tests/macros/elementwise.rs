//! Device functions and closures in array expressions become the code that the same expression with
//! operators becomes.

use kiln::core::target::{PtxTarget, Target};
use kiln::prelude::*;

use super::same_ir::instructions;

#[device_fn]
fn square<T: Num>(x: T) -> T {
    x * x
}

#[device_fn]
fn root_of_sum<T: Float>(a: T, b: T) -> T {
    (a + b).sqrt()
}

/// The instructions of the expression's kernel by what they do, without registers.
fn operations<T: KernelType>(expr: &Expr<T>) -> Vec<String> {
    let inspection = expr.inspect().expect("it compiles");
    let ptx = inspection.ptx().expect("the target is PTX");
    let mut calls = ptx.lines().filter(|line| line.contains("call."));
    assert!(calls.all(|line| line.contains("kiln_fault")), "{ptx}");
    let words = instructions(ptx).into_iter().map(|line| {
        let mut words = line.split_whitespace();
        // `@%p1 bra` is one operation.
        let predicate = words.next().unwrap_or_default();
        match predicate.starts_with('@') {
            true => words.next().unwrap_or_default().to_owned(),
            false => predicate.to_owned(),
        }
    });
    let mut words: Vec<String> = words.collect();
    words.sort();
    words
}

/// Instruction for instruction the same: one kernel, in which all functions are inlined. The calls
/// that both have report an index out of bounds.
#[track_caller]
fn check<T: KernelType>(of_functions: &Expr<T>, of_operators: &Expr<T>) {
    let (functions, operators) = (operations(of_functions), operations(of_operators));
    assert!(functions.len() > 10, "{functions:?}");
    assert_eq!(functions, operators);
}

#[test]
fn functions_become_what_operators_become() -> Result<(), Box<dyn std::error::Error>> {
    let options = JitOptions::default().target(Target::Ptx(PtxTarget::for_sm(90)));
    let jit = Jit::with(Device::cpu(), kiln::hooks::standard(), options);
    let arrays = Arrays::new(&jit);
    let (x, y) = (
        arrays.vector(vec![1.0f64; 8])?,
        arrays.vector(vec![2.0f64; 8])?,
    );
    let scale = 3.0;
    check(
        &x.map(device!(|v| square(v) * scale + v)),
        &(&x * &x * scale + &x),
    );
    check(&x.map(device!(square)), &(&x * &x));
    check(
        &broadcast((&x, &y), device!(root_of_sum)).map(device!(|v| -v)),
        &-(&x + &y).sqrt(),
    );
    // Functions of functions, and a closure in a closure.
    check(
        &broadcast(
            (&x, &y, scale),
            device!(|a, b, c| {
                let half = |v: f64| square(v) / c;
                root_of_sum(half(a), square(b))
            }),
        ),
        &(&x * &x / scale + &y * &y).sqrt(),
    );
    Ok(())
}
