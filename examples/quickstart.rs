//! The main job, end to end: three kernels in Rust, specialized on their arguments, compiled, launched,
//! checked against plain Rust, launched again from the cache. `kernels/mod.rs` has the kernels.
//!
//! `cargo run --release --example quickstart`: on a GPU 2^26 elements and 4096 x 4096 matrices, on
//! the CPU sizes that take a few seconds in all.

#[path = "kernels/mod.rs"]
mod kernels;

use std::cell::RefCell;
use std::time::Instant;

use kernels::{block_sum, saxpy, tiled_matmul};
use kiln::prelude::*;
use kiln::{Error, Result};

/// Sizes of the three problems.
struct Sizes {
    elements: usize,
    matrix: usize,
}

fn main() {
    if let Err(error) = run() {
        eprintln!("{error}");
        std::process::exit(1);
    }
}

fn run() -> Result<()> {
    let jit = Jit::new()?;
    let info = jit.device().info().clone();
    println!("device: {} ({})", info.name, jit.target());
    let sizes = match info.kind {
        DeviceKind::Cuda => Sizes {
            elements: 1 << 26,
            matrix: 4096,
        },
        _ => Sizes {
            elements: 1 << 22,
            matrix: 512,
        },
    };
    println!(
        "{:<14} {:<26} {:>11} {:>11}  {:<10} check",
        "kernel", "specialization", "compile ms", "run ms", "again"
    );
    run_saxpy(&jit, sizes.elements)?;
    run_matmul(&jit, sizes.matrix)?;
    run_sum(&jit, sizes.elements)?;
    let stats = jit.cache_stats();
    println!(
        "cache: {} compilations, {} hits",
        stats.compiles, stats.hits
    );
    Ok(())
}

/// Compiles, launches and checks, launches again, and reports. The second launch must find the
/// kernel in the cache.
fn report<'a>(
    jit: &Jit,
    kernel: &str,
    specialization: &str,
    compile: impl FnOnce() -> Result<()>,
    mut launch: impl FnMut() -> Result<()> + 'a,
    check: impl FnOnce() -> Result<bool>,
) -> Result<()> {
    let start = Instant::now();
    compile()?;
    let compile_ms = start.elapsed().as_secs_f64() * 1e3;
    launch()?;
    jit.synchronize()?;
    let ok = check()?;
    let before = jit.cache_stats();
    let from = jit.record()?;
    launch()?;
    let run_ms = from.elapsed_ms(&jit.record()?)?;
    let after = jit.cache_stats();
    let hit = after.compiles == before.compiles && after.hits == before.hits + 1;
    println!(
        "{:<14} {specialization:<26} {compile_ms:>11.2} {run_ms:>11.3}  {:<10} {}",
        kernel,
        if hit { "cache hit" } else { "compiled" },
        if ok { "ok" } else { "WRONG" },
    );
    if ok {
        Ok(())
    } else {
        Err(Error::Internal("a quickstart kernel gave a wrong result"))
    }
}

fn run_saxpy(jit: &Jit, n: usize) -> Result<()> {
    let (hx, hy) = (kernels::ramp(n, 0.5), kernels::ramp(n, 0.25));
    let x = jit.upload(&hx)?;
    let y = RefCell::new(jit.upload(&hy)?);
    let grid = grid_for(n, 256);
    report(
        jit,
        saxpy.name(),
        "f32, [f32], mut [f32]",
        || {
            jit.compile(&saxpy, args!(3.0f32, &x, &mut *y.borrow_mut()))?
                .prepare_block(256)
                .map(drop)
        },
        || saxpy.launch(jit, (grid, 256), 3.0, &x, &mut *y.borrow_mut()),
        || {
            let got = y.borrow().to_vec()?;
            Ok(got
                .iter()
                .zip(hx.iter().zip(&hy))
                .all(|(g, (x, y))| close(*g, 3.0 * x + y)))
        },
    )?;
    // Other argument types are another specialization of the same kernel.
    let wide = |v: &[f32]| v.iter().map(|&x| f64::from(x)).collect::<Vec<_>>();
    let (hx, hy) = (wide(&hx), wide(&hy));
    let x = jit.upload(&hx)?;
    let y = RefCell::new(jit.upload(&hy)?);
    report(
        jit,
        saxpy.name(),
        "f64, [f64], mut [f64]",
        || {
            jit.compile(&saxpy, args!(3.0f64, &x, &mut *y.borrow_mut()))?
                .prepare_block(256)
                .map(drop)
        },
        || saxpy.launch(jit, (grid, 256), 3.0, &x, &mut *y.borrow_mut()),
        || {
            let got = y.borrow().to_vec()?;
            let right = |(g, (x, y)): (&f64, (&f64, &f64))| (g - (3.0 * x + y)).abs() < 1e-9;
            Ok(got.iter().zip(hx.iter().zip(&hy)).all(right))
        },
    )
}

fn run_matmul(jit: &Jit, n: usize) -> Result<()> {
    let (ha, hb) = (kernels::ramp(n * n, 0.001), kernels::ramp(n * n, 0.002));
    let (a, b) = (jit.upload(&ha)?, jit.upload(&hb)?);
    let c = RefCell::new(jit.zeros::<f32>(n * n)?);
    let tiles = n.div_ceil(kernels::TILE as usize) as u32;
    let block = (kernels::TILE, kernels::TILE);
    let size = n as u32;
    report(
        jit,
        tiled_matmul.name(),
        "[f32], 16x16 shared tiles",
        || {
            jit.compile(&tiled_matmul, args!(&a, &b, &mut *c.borrow_mut(), size))?
                .prepare_block((16, 16))
                .map(drop)
        },
        || {
            let mut c = c.borrow_mut();
            tiled_matmul.launch(jit, ((tiles, tiles), block), &a, &b, &mut c, size)
        },
        || {
            let got = c.borrow().to_vec()?;
            // Every row of a small product, some rows of a large one.
            Ok((0..n).step_by((n / 64).max(1)).all(|row| {
                let want = kernels::matmul_row(&ha, &hb, n, row);
                want.iter()
                    .zip(&got[row * n..])
                    .all(|(w, g)| close(*g, *w as f32))
            }))
        },
    )
}

fn run_sum(jit: &Jit, n: usize) -> Result<()> {
    let hx: Vec<f32> = (0..n).map(|i| (i % 7) as f32).collect();
    let x = jit.upload(&hx)?;
    let total = RefCell::new(jit.zeros::<f32>(1)?);
    let blocks = grid_for(n, 256).min(1024);
    report(
        jit,
        block_sum.name(),
        "[f32], shared tree, atomic",
        || {
            jit.compile(&block_sum, args!(&x, &mut *total.borrow_mut()))?
                .prepare_block(256)
                .map(drop)
        },
        || block_sum.launch(jit, (blocks, 256), &x, &mut *total.borrow_mut()),
        || {
            let want: f64 = hx.iter().map(|&v| f64::from(v)).sum();
            let got = f64::from(total.borrow().to_vec()?[0]);
            Ok((got - want).abs() <= 1e-4 * want)
        },
    )
}

fn close(a: f32, b: f32) -> bool {
    (a - b).abs() <= 1e-4 * b.abs().max(1.0)
}
