//! Programs of the suite as sequential loops with directives: the loops' text is that of a function of the host, and the
//! kernels that Kiln makes of it do what the `#[kernel]`s and the twin do, on the same input.

use std::collections::HashMap;
use std::sync::Arc;

use kiln::core::args::{Arg, Payload};
use kiln::directives::{Report, Scheduled};
use kiln::prelude::*;

use crate::{BENCHMARKS, Benchmark, Checked, Launch, Launcher, Size, Workload};
use crate::{clauses, coulomb, hotspot, jacobi, matmul, tpacf, transpose};

/// A program with directives.
pub struct Directed {
    /// The name of the program of [`BENCHMARKS`] that it is.
    pub benchmark: &'static str,
    /// The name of the way to it, that of the program if there is one.
    pub name: &'static str,
    /// The file with its function.
    pub source: &'static str,
    pub(crate) make: Make,
}

/// How a program's input is made.
pub(crate) enum Make {
    /// As the benchmark's, in whose launches a function with directives is in the place of its kernel.
    OfBenchmark(Plan),
    /// By the program.
    Own(fn(&Jit, Size) -> kiln::Result<Box<dyn Workload>>),
}

/// What a function with directives would launch on a device, by the numbers and the lengths that the arguments are; 0 of others.
pub(crate) type Plan = fn(&Jit, &[usize]) -> kiln::Result<Report>;

impl Directed {
    pub(crate) const fn of(benchmark: &'static str, source: &'static str, plan: Plan) -> Directed {
        Directed {
            benchmark,
            name: benchmark,
            source,
            make: Make::OfBenchmark(plan),
        }
    }

    /// As one of several ways to the program.
    pub(crate) const fn named(self, name: &'static str) -> Directed {
        Directed { name, ..self }
    }

    /// The program that it is.
    pub fn benchmark(&self) -> &'static Benchmark {
        let mut all = BENCHMARKS.iter().chain(clauses::BY_HAND);
        let named = all.find(|benchmark| benchmark.name == self.benchmark);
        named.expect("it is one of the suite")
    }

    /// Makes its input.
    ///
    /// # Errors
    /// Those of the device.
    pub fn make(&self, jit: &Jit, size: Size) -> kiln::Result<Box<dyn Workload>> {
        match self.make {
            Make::Own(make) => make(jit, size),
            Make::OfBenchmark(plan) => Ok(Box::new(OfBenchmark {
                workload: (self.benchmark().make)(jit, size)?,
                scheduling: Scheduling::new(jit, plan),
            })),
        }
    }
}

/// The programs with directives.
pub const DIRECTED: &[Directed] = &[
    matmul::directed::NAIVE,
    matmul::directed::TILED,
    matmul::directed::REGISTERS,
    matmul::directed::TILED_REMAINDER,
    matmul::directed::REGISTERS_REMAINDER,
    jacobi::directed::JACOBI,
    hotspot::directed::HOTSPOT,
    coulomb::directed::COULOMB,
    coulomb::directed::REMAINDER,
    coulomb::constant::BY_VALUE,
    transpose::directed::TRANSPOSE,
    tpacf::directed::TPACF,
];

/// Clauses of directives, each beside a kernel by hand.
pub const CLAUSES: &[Directed] = &clauses::directed::CLAUSES;

/// The product of matrices, step by step.
pub const STEPS: &[Directed] = &matmul::steps::STEPS;

/// The kernels of a function with directives, by what they were made for.
pub(crate) struct Scheduling {
    jit: Jit,
    plan: Plan,
    made: HashMap<Vec<usize>, Arc<Scheduled>>,
}

impl Scheduling {
    pub(crate) fn new(jit: &Jit, plan: Plan) -> Scheduling {
        Scheduling {
            jit: jit.clone(),
            plan,
            made: HashMap::new(),
        }
    }

    /// The only kernel that the function launches with such arguments, which it has in this order.
    fn kernel(&mut self, args: &[Arg<'_>]) -> kiln::Result<Arc<Scheduled>> {
        let number = |arg: &Arg<'_>| match arg.payload() {
            Payload::Word(word) => word as usize,
            Payload::Slice { length, .. } => length as usize,
            _ => 0,
        };
        let numbers: Vec<usize> = args.iter().map(number).collect();
        if let Some(known) = self.made.get(&numbers) {
            return Ok(known.clone());
        }
        let kernels = (self.plan)(&self.jit, &numbers)?.kernels;
        let [kernel] = &kernels[..] else {
            panic!("{} regions are launched, not one", kernels.len());
        };
        let extents = kernel.extents();
        assert!(extents.is_empty(), "a grid as the hardware has it");
        self.made.insert(numbers, kernel.clone());
        Ok(kernel.clone())
    }

    /// Launches it.
    pub(crate) fn launch(
        &mut self,
        launcher: &mut dyn Launcher,
        twin: &'static str,
        args: &[Arg<'_>],
    ) -> kiln::Result<()> {
        let scheduled = self.kernel(args)?;
        launcher.launch(&Launch {
            kernel: scheduled.kernel(),
            twin,
            config: LaunchConfig::new(scheduled.grid(), scheduled.block()),
            args,
            lengths: &[],
        })
    }
}

/// A benchmark in whose launches a function with directives is in the place of its kernel.
struct OfBenchmark {
    workload: Box<dyn Workload>,
    scheduling: Scheduling,
}

struct InPlace<'a>(&'a mut dyn Launcher, &'a mut Scheduling);

impl Launcher for InPlace<'_> {
    fn launch(&mut self, launch: &Launch<'_>) -> kiln::Result<()> {
        self.1.launch(self.0, launch.twin, launch.args)
    }
}

impl Workload for OfBenchmark {
    fn reset(&mut self, launcher: &mut dyn Launcher) -> kiln::Result<()> {
        self.workload.reset(launcher)
    }

    fn again(&mut self, launcher: &mut dyn Launcher) -> kiln::Result<()> {
        self.workload.again(launcher)
    }

    fn run(&mut self, launcher: &mut dyn Launcher) -> kiln::Result<()> {
        self.workload
            .run(&mut InPlace(launcher, &mut self.scheduling))
    }

    fn check(&mut self) -> Checked {
        self.workload.check()
    }
}
