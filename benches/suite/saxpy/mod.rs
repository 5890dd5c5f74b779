//! `y = a * x + y` ("Scalable Parallel Programming with CUDA", figure 1), and the triad of STREAM and SHOC,
//! `c = a + s * b`: one element a thread, as fast as memory is.

use kiln::prelude::*;

use crate::data::{Random, close, close_f64};
use crate::{Benchmark, Bound, Checked, Launch, Launcher, Workload};

const BLOCK: u32 = 256;

pub const SAXPY: Benchmark = Benchmark {
    name: "saxpy",
    bound: Bound::Memory,
    source: include_str!("mod.rs"),
    twin: include_str!("twin.cu"),
    make: |jit, size| {
        let mut random = Random::new(1);
        let n = size.of(1000, 1 << 22, 1 << 28);
        let (x, y) = (random.units(n), random.units(n));
        Ok(Box::new(Saxpy {
            a: 1.5,
            x: jit.upload(&x)?,
            y: jit.upload(&y)?,
            host: (x, y),
        }))
    },
};

pub const TRIAD: Benchmark = Benchmark {
    name: "triad",
    bound: Bound::Memory,
    source: include_str!("mod.rs"),
    twin: include_str!("twin.cu"),
    make: |jit, size| {
        let mut random = Random::new(2);
        let n = size.of(1000, 1 << 22, 1 << 27);
        let f64s = |random: &mut Random| (0..n).map(|_| f64::from(random.unit())).collect();
        let (a, b): (Vec<f64>, Vec<f64>) = (f64s(&mut random), f64s(&mut random));
        Ok(Box::new(Triad {
            a: jit.upload(&a)?,
            b: jit.upload(&b)?,
            c: jit.zeros(n)?,
            host: (a, b),
        }))
    },
};

#[kernel]
fn saxpy(a: f32, x: &[f32], y: &mut [f32]) {
    let i = global_id().x;
    if i < y.len() {
        y[i] += a * x[i];
    }
}

#[kernel]
fn triad(s: f64, a: &[f64], b: &[f64], c: &mut [f64]) {
    let i = global_id().x;
    if i < c.len() {
        c[i] = a[i] + s * b[i];
    }
}

struct Saxpy {
    a: f32,
    x: Buffer<f32>,
    y: Buffer<f32>,
    host: (Vec<f32>, Vec<f32>),
}

impl Workload for Saxpy {
    fn reset(&mut self, _: &mut dyn Launcher) -> kiln::Result<()> {
        self.y.write(&self.host.1)
    }

    fn run(&mut self, launcher: &mut dyn Launcher) -> kiln::Result<()> {
        let n = self.y.len();
        launcher.launch(&Launch {
            kernel: &saxpy,
            twin: "saxpy",
            config: LaunchConfig::new(grid_for(n, BLOCK), BLOCK),
            args: args!(self.a, &self.x, &mut self.y),
            lengths: &[n],
        })
    }

    fn check(&mut self) -> Checked {
        let (x, y) = &self.host;
        let wanted = x.iter().zip(y).map(|(x, y)| self.a.mul_add(*x, *y));
        close(&self.y.to_vec()?, &wanted.collect::<Vec<_>>(), 1e-6)
    }
}

struct Triad {
    a: Buffer<f64>,
    b: Buffer<f64>,
    c: Buffer<f64>,
    host: (Vec<f64>, Vec<f64>),
}

impl Workload for Triad {
    fn run(&mut self, launcher: &mut dyn Launcher) -> kiln::Result<()> {
        let n = self.c.len();
        launcher.launch(&Launch {
            kernel: &triad,
            twin: "triad",
            config: LaunchConfig::new(grid_for(n, BLOCK), BLOCK),
            args: args!(3.0f64, &self.a, &self.b, &mut self.c),
            lengths: &[n],
        })
    }

    fn check(&mut self) -> Checked {
        let (a, b) = &self.host;
        let wanted = a.iter().zip(b).map(|(a, b)| 3.0f64.mul_add(*b, *a));
        close_f64(&self.c.to_vec()?, &wanted.collect::<Vec<_>>(), 1e-15)
    }
}
