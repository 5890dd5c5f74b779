//! Programs of `benches/suite` as loops with directives, with small inputs, and what a function would launch.

use kiln::prelude::*;
use kiln_suite::{DIRECTED, Directed, OnJit, STEPS, Size};

use super::{Outcome, chapter};

/// A case for each program, which is called like the benchmark that it is.
macro_rules! programs {
    ($($case:ident: $name:literal,)*) => {
        chapter![a_plan_launches_nothing, steps_of_the_product, $($case),*];
        $(fn $case(jit: &Jit) -> Outcome {
            run($name, jit)
        })*

        /// The names of the programs that are cases.
        pub const NAMES: &[&str] = &[$($name),*];
    };
}

programs! {
    matmul_naive: "matmul naive",
    matmul_tiled: "matmul tiled",
    matmul_registers: "matmul registers",
    matmul_tiled_remainder: "matmul tiled, remainder",
    matmul_registers_remainder: "matmul registers, remainder",
    jacobi: "jacobi",
    hotspot: "hotspot",
    coulomb: "coulomb",
    coulomb_remainder: "coulomb, remainder",
    coulomb_by_value: "coulomb, by value",
    transpose: "transpose",
    tpacf: "tpacf",
}

/// Runs a program twice, since one run must leave nothing behind that the next one meets.
fn run(name: &str, jit: &Jit) -> Outcome {
    let named = DIRECTED.iter().find(|program| program.benchmark == name);
    let program = named.ok_or_else(|| format!("no program `{name}`"))?;
    twice(program, jit)
}

fn steps_of_the_product(jit: &Jit) -> Outcome {
    STEPS.iter().try_for_each(|step| twice(step, jit))
}

fn twice(program: &Directed, jit: &Jit) -> Outcome {
    let mut workload = program.make(jit, Size::Small)?;
    for _ in 0..2 {
        workload.reset(&mut OnJit(jit))?;
        workload.run(&mut OnJit(jit))?;
        workload.check()?;
    }
    Ok(())
}

#[kiln::offload]
fn scale(y: &mut [f32], x: &[f32], by: f32, n: usize) {
    #[kernel(tblock(2), thread(8))]
    {
        #[loop_partition(over_tblock, over_thread)]
        for i in 0..n {
            y[i] = by * x[i];
        }
    }
}

/// The kernel of a plan has the parameters in the function's order, and can be launched by whoever has buffers.
fn a_plan_launches_nothing(jit: &Jit) -> Outcome {
    let (x, mut y) = (vec![2.0; 20], vec![1.0; 20]);
    let plan = scale.plan(&mut y, &x, 3.0, 20)?;
    assert_eq!(y, [1.0; 20]);
    assert_eq!((plan.uploads, plan.uploaded_bytes), (2, 160));
    assert_eq!((plan.downloads, plan.downloaded_bytes), (1, 80));
    assert_eq!(plan.launches.len(), 1);
    let kernel = &plan.kernels[0];
    let (from, mut to) = (jit.upload(&x)?, jit.zeros::<f32>(20)?);
    let args = args!(&mut to, &from, 3.0f32, 20u32);
    jit.launch(kernel.kernel(), kernel.grid(), kernel.block(), args)?;
    assert_eq!(to.to_vec()?, [6.0; 20]);
    Ok(())
}
