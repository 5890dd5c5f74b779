//! The programs of `benches/suite`, with small inputs.

use kiln::prelude::*;
use kiln_suite::{BENCHMARKS, OnJit, Size};

use super::{Outcome, chapter, unchecked};

/// A case for each program, which is called like its folder and the part after it.
macro_rules! programs {
    ($($case:ident: $name:literal,)*) => {
        chapter![$($case),*];
        $(fn $case(jit: &Jit) -> Outcome {
            run($name, jit)
        })*

        /// The names of the programs that are cases.
        pub const NAMES: &[&str] = &[$($name),*];
    };
}

programs! {
    saxpy: "saxpy",
    triad: "triad",
    matmul_naive: "matmul naive",
    matmul_tiled: "matmul tiled",
    matmul_registers: "matmul registers",
    matmul_naive_remainder: "matmul naive, remainder",
    matmul_tiled_remainder: "matmul tiled, remainder",
    matmul_registers_remainder: "matmul registers, remainder",
    pathfinder: "pathfinder",
    nw: "nw",
    nw_remainder: "nw, remainder",
    hotspot: "hotspot",
    lud: "lud",
    lud_remainder: "lud, remainder",
    jacobi: "jacobi",
    transpose: "transpose",
    coulomb: "coulomb",
    coulomb_remainder: "coulomb, remainder",
    coulomb_by_value: "coulomb, by value",
    backprop: "backprop",
    backprop_remainder: "backprop, remainder",
    nn: "nn",
    bfs: "bfs",
    spmv_mesh_scalar: "spmv mesh, a thread a row",
    spmv_mesh_cached: "spmv mesh, cached",
    spmv_mesh_warp: "spmv mesh, a warp a row",
    spmv_power_scalar: "spmv power law, a thread a row",
    spmv_power_cached: "spmv power law, cached",
    spmv_power_warp: "spmv power law, a warp a row",
    reduce_i32: "reduce i32",
    reduce_f32: "reduce f32",
    reduce_f64: "reduce f64",
    reduce_pair: "reduce pair of i64",
    reduce_argmax: "reduce argmax",
    plus_reduce: "plus_reduce",
    tpacf: "tpacf",
    streamcluster: "streamcluster",
    particlefilter: "particlefilter",
    leukocyte: "leukocyte",
}

/// Runs a program twice, since one run must leave nothing behind that the next one meets, and once without checks.
fn run(name: &str, jit: &Jit) -> Outcome {
    let named = BENCHMARKS.iter().find(|benchmark| benchmark.name == name);
    let benchmark = named.ok_or_else(|| format!("no program `{name}`"))?;
    for (jit, runs) in [(jit, 2), (&unchecked(jit), 1)] {
        let mut workload = (benchmark.make)(jit, Size::Small)?;
        for _ in 0..runs {
            workload.reset(&mut OnJit(jit))?;
            workload.run(&mut OnJit(jit))?;
            workload.check()?;
        }
    }
    Ok(())
}
