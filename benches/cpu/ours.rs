//! The kernels of `kernels.rs` on Kiln's CPU device, ready to be run.

use kiln::prelude::*;

use crate::clock::{Sample, timed};
use crate::functions::{self, Function};
use crate::kernels::{self, BLOCK, GROUPS, PIXELS, STENCIL};
use crate::reference::{SALTS, SAXPY_A, floats, keys};

/// A result with any error: of Kiln, of its arrays.
pub type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

/// A kernel with its inputs on a device.
pub trait Workload {
    /// Runs it once and waits for it.
    fn run(&mut self) -> Outcome<()>;

    /// Its results, in order.
    fn results(&mut self) -> Outcome<Vec<f64>> {
        Ok(vec![0.0])
    }

    /// Times `times` runs.
    fn sample(&mut self, times: u32) -> Outcome<Sample> {
        timed(times, || self.run())
    }
}

/// How kernels are built.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Checks {
    /// With bounds checks, as users build them.
    On,
    /// Without, as in OpenCL C and C.
    Off,
}

/// A kernel on `Device::cpu()`, or `None` if Kiln cannot express it yet.
pub fn workload(kernel: &str, n: usize, checks: Checks) -> Outcome<Option<Box<dyn Workload>>> {
    let on = Cpu {
        jit: Jit::on(Device::cpu()),
        checks,
    };
    Ok(Some(match kernel {
        "fused" => on.three_inputs(n, kernels::fused)?,
        "sin-exp-log" => on.three_inputs(n, kernels::sin_exp_log)?,
        "saxpy" => on.saxpy(n)?,
        "sum" => on.sum(n)?,
        "tree" => on.blocks(n, n.div_ceil(BLOCK as usize), kernels::tree_sum)?,
        "scan" => on.blocks(n, n, kernels::scan)?,
        "matmul" => on.matmul(n, crate::shared::describe_tiled_matmul)?,
        "matmul-naive" => on.matmul(n, crate::shared::describe_naive_matmul)?,
        "stencil" => on.image(n, kernels::stencil)?,
        "stencil-direct" => on.image(n, kernels::stencil_direct)?,
        "nbody" => on.nbody(n)?,
        "mandelbrot" => on.mandelbrot(n)?,
        "histogram" => on.histogram(n)?,
        "launch" => on.launch(n as u32)?,
        "compile" => Box::new(Compile { n }),
        _ => match functions::find(kernel) {
            Some((function, false)) => on.function(n, function, |x| x as f32)?,
            Some((function, true)) => on.function(n, function, |x| x)?,
            None => return Ok(None),
        },
    }))
}

/// The fused expression through the array library; `None` for other kernels.
pub fn array_workload(kernel: &str, n: usize) -> Outcome<Option<Box<dyn Workload>>> {
    if kernel != "fused" {
        return Ok(None);
    }
    let arrays = Arrays::new(&Jit::on(Device::cpu()));
    let input = |salt| arrays.vector(floats(n, salt));
    let [a, b, c] = [input(SALTS[0])?, input(SALTS[1])?, input(SALTS[2])?];
    Ok(Some(Box::new(Fused {
        inputs: [a, b, c],
        arrays,
        out: None,
    })))
}

/// A fused array expression: a fresh result each time, as a user gets it.
struct Fused {
    arrays: Arrays,
    inputs: [Array<f32>; 3],
    out: Option<Array<f32>>,
}

impl Workload for Fused {
    fn run(&mut self) -> Outcome<()> {
        let [a, b, c] = &self.inputs;
        // The old result is given back first.
        self.out = None;
        self.out = Some((a * b + 2.0 * c - 1.0).eval()?);
        Ok(self.arrays.jit().synchronize()?)
    }

    fn results(&mut self) -> Outcome<Vec<f64>> {
        let values = self.out.as_ref().map(Array::to_vec);
        let values = values.transpose()?.unwrap_or_default();
        Ok(values.into_iter().map(f64::from).collect())
    }
}

/// What is launched in each run, and the buffer with the results.
struct Launches<T: KernelType, F> {
    jit: Jit,
    out: Buffer<T>,
    launch: F,
}

impl<T, F> Workload for Launches<T, F>
where
    T: KernelType + Into<f64>,
    F: FnMut(&Jit, &mut Buffer<T>) -> kiln::Result<()>,
{
    fn run(&mut self) -> Outcome<()> {
        (self.launch)(&self.jit, &mut self.out)?;
        Ok(self.jit.synchronize()?)
    }

    fn results(&mut self) -> Outcome<Vec<f64>> {
        Ok(self.out.to_vec()?.into_iter().map(Into::into).collect())
    }
}

type Made = Outcome<Box<dyn Workload>>;

/// A device that kernels are made on.
struct Cpu {
    jit: Jit,
    checks: Checks,
}

impl Cpu {
    fn kernel(&self, name: &str, describe: impl FnOnce(&KernelBuilder)) -> Outcome<Kernel> {
        Ok(match self.checks {
            Checks::On => Kernel::build(name, describe)?,
            // SAFETY: each kernel guards its accesses for the sizes it is launched with here, and
            // its results are compared with a checked reference.
            Checks::Off => unsafe { Kernel::build_unchecked(name, describe)? },
        })
    }

    fn input(&self, n: usize, position: usize) -> Outcome<Buffer<f32>> {
        Ok(self.jit.upload(&floats(n, SALTS[position]))?)
    }

    fn ready<T, F>(self, out: Buffer<T>, launch: F) -> Made
    where
        T: KernelType + Into<f64>,
        F: FnMut(&Jit, &mut Buffer<T>) -> kiln::Result<()> + 'static,
    {
        Ok(Box::new(Launches {
            jit: self.jit,
            out,
            launch,
        }))
    }

    fn three_inputs(self, n: usize, describe: impl FnOnce(&KernelBuilder)) -> Made {
        let kernel = self.kernel("three_inputs", describe)?;
        let (a, b, c) = (self.input(n, 0)?, self.input(n, 1)?, self.input(n, 2)?);
        let out = self.jit.zeros::<f32>(n)?;
        self.ready(out, move |jit, r| {
            jit.launch(&kernel, grid_for(n, BLOCK), BLOCK, args!(&a, &b, &c, r))
        })
    }

    fn function<T>(self, n: usize, function: &Function, of: impl Fn(f64) -> T) -> Made
    where
        T: KernelType + Into<f64>,
    {
        let kernel = self.kernel(function.name, |k| function.describe(k, k.ty::<T>()))?;
        let inputs = function.inputs(n).map(|numbers| {
            let numbers: Vec<T> = numbers.into_iter().map(&of).collect();
            self.jit.upload(&numbers)
        });
        let [x, y] = inputs;
        let (x, y, out) = (x?, y?, self.jit.upload(&vec![of(0.0); n])?);
        self.ready(out, move |jit, r| {
            jit.launch(&kernel, grid_for(n, BLOCK), BLOCK, args!(&x, &y, r))
        })
    }

    fn saxpy(self, n: usize) -> Made {
        let kernel = self.kernel("saxpy", kernels::saxpy)?;
        let (x, y) = (self.input(n, 0)?, self.input(n, 1)?);
        self.ready(y, move |jit, y| {
            jit.launch(&kernel, grid_for(n, BLOCK), BLOCK, args!(SAXPY_A, &x, y))
        })
    }

    fn sum(self, n: usize) -> Made {
        let kernel = self.kernel("grid_sum", kernels::grid_sum)?;
        let x = self.input(n, 0)?;
        let mut partial = self.jit.zeros::<f32>(GROUPS as usize)?;
        let out = self.jit.zeros::<f32>(1)?;
        self.ready(out, move |jit, out| {
            jit.launch(&kernel, GROUPS, BLOCK, args!(&x, &mut partial))?;
            jit.launch(&kernel, 1, BLOCK, args!(&partial, out))
        })
    }

    fn blocks(self, n: usize, results: usize, describe: impl FnOnce(&KernelBuilder)) -> Made {
        let kernel = self.kernel("blocks", describe)?;
        let x = self.input(n, 0)?;
        let out = self.jit.zeros::<f32>(results)?;
        self.ready(out, move |jit, out| {
            jit.launch(&kernel, grid_for(n, BLOCK), BLOCK, args!(&x, out))
        })
    }

    fn matmul(self, n: usize, describe: impl FnOnce(&KernelBuilder)) -> Made {
        let kernel = self.kernel("matmul", describe)?;
        let (a, b) = (self.input(n * n, 0)?, self.input(n * n, 1)?);
        let out = self.jit.zeros::<f32>(n * n)?;
        let grid = tiles(n, (16, 16));
        self.ready(out, move |jit, c| {
            jit.launch(&kernel, grid, (16, 16), args!(&a, &b, c, n as u32))
        })
    }

    fn image(self, n: usize, describe: impl FnOnce(&KernelBuilder)) -> Made {
        let kernel = self.kernel("stencil", describe)?;
        let input = self.input(n * n, 0)?;
        let out = self.jit.zeros::<f32>(n * n)?;
        self.ready(out, move |jit, out| {
            jit.launch(
                &kernel,
                tiles(n, STENCIL),
                STENCIL,
                args!(&input, out, n as u32),
            )
        })
    }

    fn nbody(self, n: usize) -> Made {
        let kernel = self.kernel("nbody", kernels::nbody)?;
        let (x, y, z) = (self.input(n, 0)?, self.input(n, 1)?, self.input(n, 2)?);
        let mass = self.input(n, 3)?;
        let out = self.jit.zeros::<f32>(3 * n)?;
        self.ready(out, move |jit, out| {
            jit.launch(
                &kernel,
                grid_for(n, BLOCK),
                BLOCK,
                args!(&x, &y, &z, &mass, out),
            )
        })
    }

    fn mandelbrot(self, n: usize) -> Made {
        let kernel = self.kernel("mandelbrot", kernels::mandelbrot)?;
        let out = self.jit.zeros::<u32>(n * n)?;
        self.ready(out, move |jit, out| {
            jit.launch(&kernel, tiles(n, PIXELS), PIXELS, args!(out, n as u32))
        })
    }

    fn histogram(self, n: usize) -> Made {
        let kernel = self.kernel("histogram", kernels::histogram)?;
        let numbers = self.jit.upload(&keys(n))?;
        let out = self.jit.zeros::<u32>(BLOCK as usize)?;
        self.ready(out, move |jit, counts| {
            jit.launch(&kernel, GROUPS, BLOCK, args!(&numbers, counts))
        })
    }

    fn launch(self, blocks: u32) -> Made {
        let kernel = self.kernel("empty", kernels::empty)?;
        let out = self.jit.zeros::<f32>(1)?;
        self.ready(out, move |jit, _| {
            jit.launch(&kernel, blocks, BLOCK, args!())
        })
    }
}

/// Blocks that cover an n x n image.
fn tiles(n: usize, (wide, high): (u32, u32)) -> (u32, u32) {
    (grid_for(n, wide), grid_for(n, high))
}

/// Describing saxpy and launching it in a fresh `Jit`, less a second launch.
struct Compile {
    n: usize,
}

impl Compile {
    fn once(&self) -> Outcome<Sample> {
        let jit = Jit::on(Device::cpu());
        let x = jit.upload(&floats(self.n, SALTS[0]))?;
        let mut y = jit.upload(&floats(self.n, SALTS[1]))?;
        let grid = grid_for(self.n, BLOCK);
        let mut kernel = None;
        let first = timed(1, || {
            let built = kernel.insert(Kernel::build("saxpy", kernels::saxpy)?);
            jit.launch(built, grid, BLOCK, args!(SAXPY_A, &x, &mut y))?;
            jit.synchronize()
        })?;
        let kernel = kernel.expect("it was built above");
        let second = timed(1, || {
            jit.launch(&kernel, grid, BLOCK, args!(SAXPY_A, &x, &mut y))?;
            jit.synchronize()
        })?;
        Ok(Sample {
            cpu: first.cpu - second.cpu,
            wall: first.wall - second.wall,
        })
    }
}

impl Workload for Compile {
    fn run(&mut self) -> Outcome<()> {
        self.once().map(|_| ())
    }

    fn sample(&mut self, times: u32) -> Outcome<Sample> {
        let mut sum = Sample {
            cpu: 0.0,
            wall: 0.0,
        };
        for _ in 0..times {
            let once = self.once()?;
            sum.cpu += once.cpu / f64::from(times);
            sum.wall += once.wall / f64::from(times);
        }
        Ok(sum)
    }
}
