//! Kernels that are no ports, but what one writes who knows CUDA and comes to Kiln. They have no twin: what is compared is
//! their code with checks, with their own without.

mod kernels;

use kiln::core::args::Arg;
use kiln::core::front::AsKernel;
use kiln::prelude::*;

use crate::data::{Random, close_f64};
use crate::{Checked, Launch, Launcher, Size, Workload};
use kernels::BLOCK;

/// A kernel with its input.
pub struct Stranger {
    /// Its name.
    pub name: &'static str,
    /// Makes its input, on the device of a `Jit`. A check compares with the result that was checked first.
    pub make: fn(&Jit, Size) -> kiln::Result<Box<dyn Workload>>,
}

/// A launch of a stranger, with its kernel and arguments.
type Start<'a> = &'a mut dyn FnMut(&dyn AsKernel, &[Arg<'_>]) -> kiln::Result<()>;

/// A kernel on its input, which it has as `I`.
struct Visit<I, T> {
    input: I,
    output: Buffer<T>,
    /// What there is in the output before.
    before: Vec<T>,
    config: LaunchConfig,
    launch: fn(&mut I, &mut Buffer<T>, Start<'_>) -> kiln::Result<()>,
    /// The result that was checked first.
    first: Option<Vec<f64>>,
}

impl<I: 'static, T: KernelType + Into<f64> + Copy + 'static> Visit<I, T> {
    #[allow(clippy::new_ret_no_self, reason = "what is made is any program")]
    fn new(
        jit: &Jit,
        (input, before): (I, Vec<T>),
        config: LaunchConfig,
        launch: fn(&mut I, &mut Buffer<T>, Start<'_>) -> kiln::Result<()>,
    ) -> kiln::Result<Box<dyn Workload>> {
        Ok(Box::new(Visit {
            input,
            output: jit.upload(&before)?,
            before,
            config,
            launch,
            first: None,
        }))
    }
}

impl<I, T: KernelType + Into<f64> + Copy> Workload for Visit<I, T> {
    fn reset(&mut self, _: &mut dyn Launcher) -> kiln::Result<()> {
        self.output.write(&self.before)
    }

    fn run(&mut self, launcher: &mut dyn Launcher) -> kiln::Result<()> {
        let config = self.config;
        (self.launch)(&mut self.input, &mut self.output, &mut |kernel, args| {
            launcher.launch(&Launch {
                kernel,
                twin: "",
                config,
                args,
                lengths: &[],
            })
        })
    }

    fn check(&mut self) -> Checked {
        let found = self.output.to_vec()?;
        let found: Vec<f64> = found.into_iter().map(Into::into).collect();
        close_f64(
            &found,
            self.first.get_or_insert_with(|| found.clone()),
            1e-5,
        )
    }
}

/// A thread an element.
fn line(n: usize) -> LaunchConfig {
    LaunchConfig::new(grid_for(n, BLOCK as u32), BLOCK)
}

/// A thread a place of a grid, of this width and height.
fn plane(width: usize, height: usize) -> LaunchConfig {
    LaunchConfig::new((width.div_ceil(32), height.div_ceil(8)), (32, 8))
}

/// Cells of a square, of which half live.
fn cells(seed: u64, side: usize) -> Vec<u32> {
    let cells = Random::new(seed).integers(side * side, 2);
    cells.into_iter().map(|cell| cell as u32).collect()
}

const LIFE_GUARDED: Stranger = Stranger {
    name: "life, borders by if",
    make: |jit, size| {
        let side = size.of(45, 1000, 8000);
        let cells = cells(40, side);
        let input = (jit.upload(&cells)?, side as u32);
        Visit::new(
            jit,
            (input, cells),
            plane(side, side),
            |(from, side), to, start| {
                start(&kernels::life_guarded, args!(&*from, to, *side, *side))
            },
        )
    },
};

const LIFE_TORUS: Stranger = Stranger {
    name: "life on a torus",
    make: |jit, size| {
        let side = size.of(45, 1000, 8000);
        let cells = cells(41, side);
        let input = (jit.upload(&cells)?, side as u32);
        Visit::new(
            jit,
            (input, cells),
            plane(side, side),
            |(from, side), to, start| start(&kernels::life_torus, args!(&*from, to, *side, *side)),
        )
    },
};

const CONVOLUTION: Stranger = Stranger {
    name: "convolution",
    make: |jit, size| {
        let mut random = Random::new(42);
        let n = size.of(1000, 1 << 20, 1 << 25);
        let input = (jit.upload(&random.units(n))?, jit.upload(&random.units(9))?);
        Visit::new(
            jit,
            (input, vec![0f32; n]),
            line(n),
            |(x, weights), y, start| start(&kernels::convolution, args!(&*x, &*weights, y, 4u32)),
        )
    },
};

const CONVOLUTION_SHARED: Stranger = Stranger {
    name: "convolution, shared memory",
    make: |jit, size| {
        let mut random = Random::new(43);
        let n = size.of(1000, 1 << 20, 1 << 26);
        let input = (jit.upload(&random.units(n))?, jit.upload(&random.units(9))?);
        Visit::new(
            jit,
            (input, vec![0f32; n]),
            line(n),
            |(x, weights), y, start| start(&kernels::convolution_shared, args!(&*x, &*weights, y)),
        )
    },
};

const CONVOLUTION_2D: Stranger = Stranger {
    name: "convolution in two dimensions",
    make: |jit, size| {
        let mut random = Random::new(44);
        let side = size.of(45, 500, 4000);
        let input = (
            jit.upload(&random.units(side * side))?,
            jit.upload(&random.units(25))?,
            side as u32,
        );
        Visit::new(
            jit,
            (input, vec![0f32; side * side]),
            plane(side, side),
            |(image, weights, side), out, start| {
                start(
                    &kernels::convolution_2d,
                    args!(&*image, &*weights, out, *side, *side, 2u32),
                )
            },
        )
    },
};

const MANDELBROT: Stranger = Stranger {
    name: "mandelbrot",
    make: |jit, size| {
        let side = size.of(45, 300, 4000);
        Visit::new(
            jit,
            (side as u32, vec![0u32; side * side]),
            plane(side, side),
            |side, out, start| start(&kernels::mandelbrot, args!(out, *side, *side, 256u32)),
        )
    },
};

const RESIZE: Stranger = Stranger {
    name: "resize",
    make: |jit, size| {
        let mut random = Random::new(46);
        let side = size.of(45, 1000, 8000);
        let from = side * 3 / 4;
        let input = (
            jit.upload(&random.units(from * from))?,
            from as u32,
            side as u32,
        );
        Visit::new(
            jit,
            (input, vec![0f32; side * side]),
            plane(side, side),
            |(image, old, new), out, start| {
                start(
                    &kernels::resize,
                    args!(&*image, out, *old, *old, *new, *new),
                )
            },
        )
    },
};

const FLOYD: Stranger = Stranger {
    name: "shortest paths",
    make: |jit, size| {
        let mut random = Random::new(47);
        let side = size.of(45, 1000, 8000);
        Visit::new(
            jit,
            (side as u32, random.units(side * side)),
            plane(side, side),
            |side, distances, start| start(&kernels::floyd, args!(distances, *side, *side / 2)),
        )
    },
};

const BLACK_SCHOLES: Stranger = Stranger {
    name: "black and scholes",
    make: |jit, size| {
        let mut random = Random::new(48);
        let n = size.of(1000, 1 << 18, 1 << 25);
        let mut numbers = |least: f32| {
            jit.upload(
                &random
                    .units(n)
                    .iter()
                    .map(|x| least + x)
                    .collect::<Vec<_>>(),
            )
        };
        let input = (
            numbers(5.0)?,
            numbers(4.5)?,
            numbers(0.25)?,
            jit.zeros::<f32>(n)?,
        );
        Visit::new(
            jit,
            (input, vec![0f32; n]),
            line(n),
            |(price, strike, years, call), put, start| {
                start(
                    &kernels::black_scholes,
                    args!(&*price, &*strike, &*years, call, put),
                )
            },
        )
    },
};

const STENCIL_3D: Stranger = Stranger {
    name: "stencil in three dimensions",
    make: |jit, size| {
        let mut random = Random::new(49);
        let side = size.of(21, 100, 400);
        let input = (jit.upload(&random.units(side * side * side))?, side as u32);
        let blocks = (side.div_ceil(32), side.div_ceil(8), side);
        let config = LaunchConfig::new(blocks, (32, 8));
        Visit::new(
            jit,
            (input, vec![0f32; side * side * side]),
            config,
            |(from, side), to, start| {
                start(&kernels::stencil_3d, args!(&*from, to, *side, *side, *side))
            },
        )
    },
};

const HISTOGRAM: Stranger = Stranger {
    name: "histogram",
    make: |jit, size| {
        let mut random = Random::new(50);
        let n = size.of(1000, 1 << 20, 1 << 27);
        let x: Vec<u32> = (0..n).map(|_| random.below(1 << 16)).collect();
        let blocks = size.of(2, 8, 528);
        let config = LaunchConfig::new(blocks, 256);
        Visit::new(
            jit,
            (jit.upload(&x)?, vec![0u32; 256]),
            config,
            |x, bins, start| start(&kernels::histogram, args!(&*x, bins)),
        )
    },
};

const SOFTMAX: Stranger = Stranger {
    name: "softmax",
    make: |jit, size| {
        let mut random = Random::new(51);
        let (rows, columns) = size.of((3, 500), (256, 1000), (16384, 4000));
        let input = (jit.upload(&random.units(rows * columns))?, columns as u32);
        let config = LaunchConfig::new(rows, BLOCK);
        Visit::new(
            jit,
            (input, vec![0f32; rows * columns]),
            config,
            |(x, columns), y, start| start(&kernels::softmax, args!(&*x, y, *columns)),
        )
    },
};

const BITONIC: Stranger = Stranger {
    name: "a bitonic step",
    make: |jit, size| {
        let mut random = Random::new(52);
        let n = size.of(1 << 10, 1 << 20, 1 << 27);
        Visit::new(jit, ((), random.units(n)), line(n), |(), values, start| {
            start(&kernels::bitonic, args!(values, 64u32, 256u32))
        })
    },
};

const SCAN: Stranger = Stranger {
    name: "running sums of blocks",
    make: |jit, size| {
        let mut random = Random::new(53);
        let n: usize = size.of(1000, 1 << 18, 1 << 26);
        let x: Vec<u32> = (0..n).map(|_| random.below(100)).collect();
        let input = (jit.upload(&x)?, jit.zeros::<u32>(n.div_ceil(BLOCK))?);
        Visit::new(
            jit,
            (input, vec![0u32; n]),
            line(n),
            |(x, sums), y, start| start(&kernels::scan, args!(&*x, y, sums)),
        )
    },
};

const NEAREST: Stranger = Stranger {
    name: "nearest centre",
    make: |jit, size| {
        let mut random = Random::new(54);
        let n = size.of(500, 1 << 14, 1 << 20);
        let input = (
            jit.upload(&random.units(n * 16))?,
            jit.upload(&random.units(32 * 16))?,
        );
        Visit::new(
            jit,
            (input, vec![0u32; n]),
            line(n),
            |(points, centres), nearest, start| {
                start(
                    &kernels::nearest_centre,
                    args!(&*points, &*centres, nearest, 16u32, 32u32),
                )
            },
        )
    },
};

const POOLING: Stranger = Stranger {
    name: "pooling",
    make: |jit, size| {
        let mut random = Random::new(55);
        let side = size.of(46, 1000, 10000);
        let input = (jit.upload(&random.units(side * side))?, side as u32);
        let half = side / 2;
        Visit::new(
            jit,
            (input, vec![0f32; half * half]),
            plane(half, half),
            |(x, side), y, start| start(&kernels::pooling, args!(&*x, y, *side, *side)),
        )
    },
};

/// All of them.
pub const STRANGERS: &[Stranger] = &[
    LIFE_GUARDED,
    LIFE_TORUS,
    CONVOLUTION,
    CONVOLUTION_SHARED,
    CONVOLUTION_2D,
    MANDELBROT,
    RESIZE,
    FLOYD,
    BLACK_SCHOLES,
    STENCIL_3D,
    HISTOGRAM,
    SOFTMAX,
    BITONIC,
    SCAN,
    NEAREST,
    POOLING,
];
