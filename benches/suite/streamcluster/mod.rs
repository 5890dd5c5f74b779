//! What opening a new centre would save for each point (Rodinia's streamcluster): the cost of a point is its weight by
//! its distance from its centre, and each centre has a row of what its points would save.

use kiln::prelude::*;

use crate::data::{Random, close};
use crate::{Benchmark, Bound, Checked, Launch, Launcher, Workload};

pub const STREAMCLUSTER: Benchmark = Benchmark {
    name: "streamcluster",
    bound: Bound::Memory,
    source: include_str!("mod.rs"),
    twin: include_str!("twin.cu"),
    make: |jit, size| {
        let (n, dimensions) = size.of((300, 5), (8192, 32), (65_536 * 4, 256));
        let mut random = Random::new(20);
        let coordinates = random.units(n * dimensions);
        let mut point = || Point {
            weight: 1.0 + random.unit(),
            cost: dimensions as f32 * random.unit(),
            centre: random.below(CENTRES as u32) as i64 * (n / CENTRES) as i64,
        };
        let points: Vec<Point> = (0..n).map(|_| point()).collect();
        let table: Vec<i32> = (0..n)
            .map(|i| (i / (n / CENTRES)).min(CENTRES - 1) as i32)
            .collect();
        Ok(Box::new(Streamcluster {
            dimensions,
            points: jit.upload(&points)?,
            coordinates: jit.upload(&coordinates)?,
            table: jit.upload(&table)?,
            moves: jit.zeros(n)?,
            work: jit.zeros(n * (CENTRES + 1))?,
            host: (points, coordinates, table),
        }))
    },
};

const BLOCK: usize = 512;
const CENTRES: usize = 16;
/// The point that may become a centre.
const NEW: usize = 7;

#[derive(Copy, Clone, KernelType)]
#[repr(C)]
struct Point {
    weight: f32,
    cost: f32,
    /// The point that is its centre.
    centre: i64,
}

/// The square of the distance of two points, whose coordinates lie a dimension after the other.
#[device_fn]
fn distance(a: usize, b: usize, coordinates: &[f32], n: usize, dimensions: usize) -> f32 {
    let mut sum = 0.0;
    for i in 0..dimensions {
        let apart = coordinates[i * n + a] - coordinates[i * n + b];
        sum += apart * apart;
    }
    sum
}

#[kernel]
fn gain(
    points: &[Point],
    coordinates: &[f32],
    table: &[i32],
    moves: &mut [bool],
    work: &mut [f32],
    dimensions: u32,
    centres: u32,
    new: u32,
) {
    let (i, n, centres) = (global_id().x, points.len(), centres as usize);
    if i < n {
        let point = points[i];
        let cost = point.weight * distance(i, new as usize, coordinates, n, dimensions as usize);
        let own = i * (centres + 1);
        if cost < point.cost {
            moves[i] = true;
            work[own + centres] = cost - point.cost;
        } else {
            let centre = table[point.centre as usize] as usize;
            work[own + centre] += point.cost - cost;
        }
    }
}

struct Streamcluster {
    dimensions: usize,
    points: Buffer<Point>,
    coordinates: Buffer<f32>,
    table: Buffer<i32>,
    moves: Buffer<bool>,
    work: Buffer<f32>,
    host: (Vec<Point>, Vec<f32>, Vec<i32>),
}

impl Workload for Streamcluster {
    fn reset(&mut self, _: &mut dyn Launcher) -> kiln::Result<()> {
        self.moves.write(&vec![false; self.points.len()])?;
        self.work.write(&vec![0.0; self.work.len()])
    }

    fn run(&mut self, launcher: &mut dyn Launcher) -> kiln::Result<()> {
        let n = self.points.len();
        launcher.launch(&Launch {
            kernel: &gain,
            twin: "gain",
            config: LaunchConfig::new(n.div_ceil(BLOCK), BLOCK),
            args: args!(
                &self.points,
                &self.coordinates,
                &self.table,
                &mut self.moves,
                &mut self.work,
                self.dimensions as u32,
                CENTRES as u32,
                NEW as u32
            ),
            lengths: &[n],
        })
    }

    fn check(&mut self) -> Checked {
        let ((points, coordinates, table), n) = (&self.host, self.points.len());
        let found = self.work.to_vec()?;
        for i in (0..n).step_by(n.div_ceil(4096)) {
            let apart = |d: usize| coordinates[d * n + i] - coordinates[d * n + NEW];
            let squares = (0..self.dimensions).map(|d| apart(d) * apart(d));
            let (point, cost) = (points[i], points[i].weight * squares.sum::<f32>());
            let mut wanted = vec![0.0; CENTRES + 1];
            match cost < point.cost {
                true => wanted[CENTRES] = cost - point.cost,
                false => wanted[table[point.centre as usize] as usize] = point.cost - cost,
            }
            close(&found[i * (CENTRES + 1)..][..CENTRES + 1], &wanted, 1e-4)?;
        }
        Ok(())
    }
}
