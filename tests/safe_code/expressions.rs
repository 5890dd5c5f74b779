//! Expressions of arrays, however they are put together.

use expect_test::expect;
use kiln::array::IntoExpr as _;
use kiln::prelude::*;

/// Runs with little stack: nothing may need more for a deep expression than for a flat one.
fn on_a_small_stack<R: Send + 'static>(run: impl FnOnce() -> R + Send + 'static) -> R {
    let thread = std::thread::Builder::new().stack_size(128 << 10);
    thread
        .spawn(run)
        .expect("a thread")
        .join()
        .expect("no panic")
}

#[test]
fn the_deepest_expression_is_computed() {
    let arrays = Arrays::new(&Jit::on(Device::cpu()));
    let x = arrays.vector(vec![0.0f32, 1.0, 2.0]).expect("memory");
    let y = on_a_small_stack(move || {
        let mut e = x.clone().into_expr();
        // One node for the array, two for each step.
        for _ in 0..2047 {
            e = e.clone() + &x;
        }
        let y = e.eval();
        drop(e);
        y
    });
    let y = y.expect("it is not too large").to_vec().expect("numbers");
    assert_eq!(y, [0.0, 2048.0, 4096.0]);
}

#[test]
fn a_larger_expression_is_an_error() {
    let arrays = Arrays::new(&Jit::on(Device::cpu()));
    let x = arrays.vector(vec![1.0f32]).expect("memory");
    let text = on_a_small_stack(move || {
        let mut e = x.into_expr();
        for _ in 0..100_000 {
            e = e + 1.0f32;
        }
        e.eval().expect_err("it is too large").to_string()
    });
    expect!["an expression has more than 4096 operations and operands; compute part of it with `eval` and go on from there"].assert_eq(&text);
}

/// An operand counts wherever it is used, as the kernel computes it there.
#[test]
fn so_is_one_that_doubles() {
    let arrays = Arrays::new(&Jit::on(Device::cpu()));
    let x = arrays.vector(vec![1.0f32]).expect("memory");
    let mut e = x.into_expr();
    for _ in 0..64 {
        e = &e + &e;
    }
    assert!(e.eval().is_err());
}

#[test]
fn a_shape_beyond_all_memory_is_an_error() {
    let arrays = Arrays::new(&Jit::on(Device::cpu()));
    for (rows, columns) in [(1 << 32, 1 << 32), (usize::MAX, 2)] {
        let none: Vec<f32> = Vec::new();
        let error = arrays.matrix(none, rows, columns).expect_err("no values");
        assert!(
            error.to_string().contains("0 values do not fill"),
            "{error}"
        );
    }
}
