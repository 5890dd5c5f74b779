//! Programs of `benches/suite` as loops with directives, with small inputs, and what a function would launch.

use kiln::prelude::*;
use kiln_suite::{CLAUSES, DIRECTED, Directed, OnJit, STEPS, Size};

use super::{Outcome, chapter};

/// A case for each program, which is called like the benchmark that it is.
macro_rules! programs {
    ($($case:ident: $name:literal,)*) => {
        chapter![a_plan_launches_nothing, steps_of_the_product, clauses_by_hand, staged_as_the_device_has_it, $($case),*];
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

/// Clauses beside kernels by hand, both checked.
fn clauses_by_hand(jit: &Jit) -> Outcome {
    for clause in CLAUSES {
        twice(clause, jit)?;
        let mut workload = (clause.benchmark().make)(jit, Size::Small)?;
        workload.reset(&mut OnJit(jit))?;
        workload.run(&mut OnJit(jit))?;
        workload.check()?;
    }
    Ok(())
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

/// A sum of neighbours, elements that were summed before, between which all threads meet where they stage, and what iterations side by
/// side read again.
#[kiln::offload]
fn neighbours(x: &[u32], y: &mut [u32], z: &mut [u32], n: usize) {
    #[kernel(tblock(2), thread(8))]
    {
        #[loop_partition(over_tblock, over_thread)]
        #[shared(copyin(x))]
        for i in 0..n {
            y[i] = x[i] + x[i + 1];
        }
    }
    #[kernel(tblock(1), thread(8))]
    {
        #[loop_partition(over_thread)]
        for i in 0..n {
            z[i] = y[i];
        }
        #[shared(copyin(x))]
        for k in 0..3usize {
            #[loop_partition(over_thread)]
            for i in 0..n {
                z[(i + k) % n] += x[i + k];
            }
        }
    }
    #[kernel(tblock(2), thread(4))]
    {
        #[loop_partition(over_tblock, over_thread, coarsen(2))]
        for i in 0..n {
            let mut sum = 0;
            #[shared(copyin(x))]
            for k in 0..n {
                sum += x[k] * i as u32;
            }
            y[i] += sum;
        }
    }
}

/// Slices are copied to shared memory where that is nearer or the barriers that come with it are needed. What the schedules say is the
/// same.
fn staged_as_the_device_has_it(jit: &Jit) -> Outcome {
    let (x, n) = ((1..30).collect::<Vec<u32>>(), 26);
    let (mut y, mut z) = (vec![0; n], vec![0; n]);
    let (mut own_y, mut own_z) = (y.clone(), z.clone());
    let launched = neighbours.launch_reported(jit, &x, &mut y, &mut z, n);
    neighbours.sequential(&x, &mut own_y, &mut own_z, n);
    let ((), report) = launched?;
    assert_eq!((y, z), (own_y, own_z));
    let staged = report.kernels.iter().map(|kernel| {
        let module = kernel.module().to_string();
        module.contains("offload.x")
    });
    let staged: Vec<bool> = staged.collect();
    let is_cpu = matches!(jit.target(), kiln::core::target::Target::Cpu(_));
    assert_eq!(staged, [!is_cpu, true, true]);
    assert!(report.launches[0].to_string().contains("shared(0)"));
    Ok(())
}
