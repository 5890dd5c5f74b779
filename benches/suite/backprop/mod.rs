//! A layer of a neural network forward, and its weights corrected (Rodinia's backprop): blocks of 16 inputs by 16
//! hidden units, whose products are added up by a tree in shared memory.

use kiln::prelude::*;

use crate::data::{Random, close};
use crate::{Benchmark, Bound, Checked, Launch, Launcher, Size, Workload};

pub const BACKPROP: Benchmark = benchmark("backprop", |jit, size| {
    Backprop::boxed(jit, size.of(4, 4096, 65_535) * SIDE)
});

pub const REMAINDER: Benchmark = benchmark("backprop, remainder", |jit, size| {
    Backprop::boxed(jit, size.of(37, 65_531, 1_048_549))
});

const fn benchmark(
    name: &'static str,
    make: fn(&Jit, Size) -> kiln::Result<Box<dyn Workload>>,
) -> Benchmark {
    Benchmark {
        name,
        bound: Bound::Memory,
        source: include_str!("mod.rs"),
        twin: include_str!("twin.cu"),
        make,
    }
}

/// Hidden units, and inputs of a block.
const SIDE: usize = 16;

/// The sum of a block's inputs for each hidden unit. Inputs and units count from 1; weight 0 of each is its bias.
#[kernel]
fn forward(input: &[f32], weights: &mut [f32], sums: &mut [f32]) {
    let values = shared!([f32; SIDE]);
    let products = shared!([[f32; SIDE]; SIDE]);
    let (by, tx, ty) = (block_idx().y, thread_idx().x, thread_idx().y);
    let row = SIDE * by + ty + 1;
    let at = (SIDE + 1) * row + tx + 1;
    if tx == 0 && row < input.len() {
        values[ty] = input[row];
    }
    barrier();
    products[ty][tx] = if row < input.len() {
        weights[at] * values[ty]
    } else {
        0.0
    };
    barrier();
    for half in [1, 2, 4, 8] {
        if ty % (2 * half) == 0 {
            products[ty][tx] += products[ty + half][tx];
        }
        barrier();
    }
    if row < input.len() {
        weights[at] = products[ty][tx];
    }
    if tx == 0 {
        sums[by * SIDE + ty] = products[0][ty];
    }
}

const RATE: f32 = 0.3;
const MOMENTUM: f32 = 0.3;

#[kernel]
fn adjust(delta: &[f32], input: &[f32], weights: &mut [f32], old: &mut [f32]) {
    let (by, tx, ty) = (block_idx().y, thread_idx().x, thread_idx().y);
    let row = SIDE * by + ty + 1;
    let at = (SIDE + 1) * row + tx + 1;
    if row < input.len() {
        let change = RATE * delta[tx + 1] * input[row] + MOMENTUM * old[at];
        weights[at] += change;
        old[at] = change;
    }
    barrier();
    if ty == 0 && by == 0 {
        let change = RATE * delta[tx + 1] + MOMENTUM * old[tx + 1];
        weights[tx + 1] += change;
        old[tx + 1] = change;
    }
}

struct Host {
    input: Vec<f32>,
    weights: Vec<f32>,
    delta: Vec<f32>,
}

struct Backprop {
    input: Buffer<f32>,
    weights: Buffer<f32>,
    old: Buffer<f32>,
    sums: Buffer<f32>,
    delta: Buffer<f32>,
    host: Host,
}

impl Backprop {
    fn boxed(jit: &Jit, inputs: usize) -> kiln::Result<Box<dyn Workload>> {
        let mut random = Random::new(13);
        let host = Host {
            input: random.units(inputs + 1),
            weights: random.units((inputs + 1) * (SIDE + 1)),
            delta: random.units(SIDE + 1),
        };
        Ok(Box::new(Backprop {
            input: jit.upload(&host.input)?,
            weights: jit.upload(&host.weights)?,
            old: jit.zeros(host.weights.len())?,
            sums: jit.zeros(inputs.div_ceil(SIDE) * SIDE)?,
            delta: jit.upload(&host.delta)?,
            host,
        }))
    }
}

impl Workload for Backprop {
    fn reset(&mut self, _: &mut dyn Launcher) -> kiln::Result<()> {
        self.weights.write(&self.host.weights)?;
        self.old.write(&vec![0.0; self.host.weights.len()])
    }

    fn run(&mut self, launcher: &mut dyn Launcher) -> kiln::Result<()> {
        let config = LaunchConfig::new((1, self.sums.len() / SIDE), (SIDE, SIDE));
        launcher.launch(&Launch {
            kernel: &forward,
            twin: "forward",
            config,
            args: args!(&self.input, &mut self.weights, &mut self.sums),
            lengths: &[self.input.len()],
        })?;
        launcher.launch(&Launch {
            kernel: &adjust,
            twin: "adjust",
            config,
            args: args!(&self.delta, &self.input, &mut self.weights, &mut self.old),
            lengths: &[self.input.len()],
        })
    }

    fn check(&mut self) -> Checked {
        let Host {
            input,
            weights,
            delta,
        } = &self.host;
        let product = |row: usize, unit: usize| weights[(SIDE + 1) * row + unit] * input[row];
        let blocks = self.sums.len() / SIDE;
        let sums = (0..blocks).flat_map(|block| {
            let rows = SIDE * block + 1..input.len().min(SIDE * (block + 1) + 1);
            (1..=SIDE).map(move |unit| rows.clone().map(|row| product(row, unit)).sum())
        });
        close(&self.sums.to_vec()?, &sums.collect::<Vec<f32>>(), 1e-4)?;
        let change = |row: usize, unit: usize| {
            let input = if row == 0 { 1.0 } else { input[row] };
            if unit == 0 {
                0.0
            } else {
                RATE * delta[unit] * input
            }
        };
        let all = |at: usize| change(at / (SIDE + 1), at % (SIDE + 1));
        let wanted: Vec<f32> = (0..weights.len()).map(all).collect();
        close(&self.old.to_vec()?, &wanted, 1e-5)
    }
}
