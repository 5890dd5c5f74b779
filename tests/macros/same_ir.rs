//! The kernels of the quickstart example, written in Rust and with the builder: one IR, up to names and lines, and
//! as many instructions of PTX.

use kiln::core::args::Arg;
use kiln::core::front::LazyKernel;
use kiln::core::target::{PtxTarget, Target};
use kiln::prelude::*;

use kernels::in_rust::{block_sum, saxpy, tiled_matmul};
use suite::kernels;

#[kernel]
fn naive_matmul(a: &[f32], b: &[f32], c: &mut [f32], n: u32) {
    let n = n as usize;
    let (row, column) = (global_id().y, global_id().x);
    if row < n && column < n {
        let mut sum = 0.0;
        for i in 0..n {
            sum += a[row * n + i] * b[i * n + column];
        }
        c[row * n + column] = sum;
    }
}

/// The text without files and lines of Rust.
fn without_lines(text: &str) -> String {
    let strip = |line: &str| {
        let indent = line.len() - line.trim_start().len();
        let words: Vec<&str> = line.split_whitespace().collect();
        // `!0:16:1)` ends a list of parameters.
        let words = words.iter().map(|word| match word.strip_prefix('!') {
            Some(rest) => rest.trim_start_matches(|c: char| c.is_ascii_digit() || c == ':'),
            None => word,
        });
        let words: Vec<&str> = words.filter(|w| !w.is_empty()).collect();
        format!("{:indent$}{}", "", words.join(" "))
    };
    let lines = text.lines().filter(|line| !line.starts_with("file "));
    lines.map(strip).collect::<Vec<_>>().join("\n")
}

/// The instructions of a PTX text.
pub(crate) fn instructions(ptx: &str) -> Vec<&str> {
    let lines = ptx.lines().map(str::trim);
    let is_instruction =
        |line: &&str| line.ends_with(';') && !line.starts_with('.') && !line.starts_with("//");
    lines.filter(is_instruction).collect()
}

/// One IR up to names and lines, and as many instructions of PTX.
#[track_caller]
fn check(of_macro: &LazyKernel, of_builder: &Kernel, args: &[Arg<'_>]) {
    let options = JitOptions::default().target(Target::Ptx(PtxTarget::for_sm(90)));
    let jit = Jit::with(Device::cpu(), kiln::hooks::standard(), options);
    let inspect = |kernel: &Kernel| {
        let inspection = jit.inspect(kernel, args).expect("it compiles");
        let ptx = inspection.ptx().expect("the target is PTX");
        (without_lines(inspection.ir()), instructions(ptx).len())
    };
    let of_macro = of_macro.get().expect("it can be described");
    let (of_macro, of_builder) = (inspect(of_macro), inspect(of_builder));
    assert_eq!(of_macro.0, of_builder.0);
    assert_eq!(of_macro.1, of_builder.1, "instructions of PTX");
    assert!(of_macro.1 > 10, "{} instructions of PTX", of_macro.1);
}

#[test]
fn of_saxpy() -> kiln::Result<()> {
    let jit = Jit::on(Device::cpu());
    let (x, mut y) = (jit.zeros::<f32>(8)?, jit.zeros::<f32>(8)?);
    check(&saxpy, &kernels::saxpy()?, args!(3.0f32, &x, &mut y));
    Ok(())
}

#[test]
fn of_matmul() -> kiln::Result<()> {
    let jit = Jit::on(Device::cpu());
    let (a, b, mut c) = (
        jit.zeros::<f32>(8)?,
        jit.zeros::<f32>(8)?,
        jit.zeros::<f32>(8)?,
    );
    check(
        &naive_matmul,
        &kernels::naive_matmul()?,
        args!(&a, &b, &mut c, 2u32),
    );
    check(
        &tiled_matmul,
        &kernels::tiled_matmul()?,
        args!(&a, &b, &mut c, 2u32),
    );
    Ok(())
}

#[test]
fn of_block_sum() -> kiln::Result<()> {
    let jit = Jit::on(Device::cpu());
    let (x, mut total) = (jit.zeros::<f32>(8)?, jit.zeros::<f32>(8)?);
    check(&block_sum, &kernels::block_sum()?, args!(&x, &mut total));
    Ok(())
}
