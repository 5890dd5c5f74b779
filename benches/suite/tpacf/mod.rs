//! How many pairs of points on a sphere are how far apart (Parboil's tpacf, the two-point angular correlation of
//! hiCUDA): dot products, a search in a table of bins, and counts in shared memory.

pub(crate) mod directed;

use kiln::prelude::*;

use crate::data::{Random, equal};
use crate::{Benchmark, Bound, Checked, Launch, Launcher, Workload};

pub const TPACF: Benchmark = Benchmark {
    name: "tpacf",
    bound: Bound::Arithmetic,
    source: include_str!("mod.rs"),
    twin: include_str!("twin.cu"),
    make: |jit, size| {
        let n = size.of(300, 2048, 65_536);
        let mut random = Random::new(19);
        let mut point = || {
            let (z, angle) = (
                2.0 * random.unit() - 1.0,
                std::f32::consts::TAU * random.unit(),
            );
            let radius = (1.0 - z * z).sqrt();
            Point {
                x: radius * angle.cos(),
                y: radius * angle.sin(),
                z,
            }
        };
        let host: Vec<Point> = (0..n).map(|_| point()).collect();
        // Cosines of angles that are further apart the larger they are.
        let edges: Vec<f32> = (0..BINS)
            .map(|i| (0.01f32 * 1.3f32.powi(i as i32)).min(3.0).cos())
            .collect();
        Ok(Box::new(Tpacf {
            points: jit.upload(&host)?,
            edges: jit.upload(&edges)?,
            counts: jit.zeros(BINS + 1)?,
            host: (host, edges),
        }))
    },
};

const BLOCK: usize = 128;
const BINS: usize = 20;

#[derive(Copy, Clone, KernelType)]
#[repr(C)]
struct Point {
    x: f32,
    y: f32,
    z: f32,
}

/// Counts the pairs of the block's points with all that come before them.
#[kernel]
fn count_pairs(points: &[Point], edges: &[f32], counts: &mut [u32]) {
    let tile = shared!([Point; BLOCK]);
    let bounds = shared!([f32; BINS]);
    let own_counts = shared!([u32; BINS + 1]);
    let tx = thread_idx().x;
    if tx < BINS {
        bounds[tx] = edges[tx];
    }
    if tx <= BINS {
        own_counts[tx] = 0;
    }
    let i = global_id().x;
    let known = i < points.len();
    let own = points[if known { i } else { 0 }];
    for first in (0..block_idx().x * BLOCK + 1).step_by(BLOCK) {
        barrier();
        if first + tx < points.len() {
            tile[tx] = points[first + tx];
        }
        barrier();
        for j in 0..BLOCK {
            if known && first + j < i {
                let other = tile[j];
                let cosine = own.x * other.x + own.y * other.y + own.z * other.z;
                let (mut low, mut high) = (0, BINS);
                while low < high {
                    let middle = (low + high) / 2;
                    if cosine >= bounds[middle] {
                        high = middle;
                    } else {
                        low = middle + 1;
                    }
                }
                atomic_add(&mut own_counts[low], 1);
            }
        }
    }
    barrier();
    if tx <= BINS {
        atomic_add(&mut counts[tx], own_counts[tx]);
    }
}

struct Tpacf {
    points: Buffer<Point>,
    edges: Buffer<f32>,
    counts: Buffer<u32>,
    host: (Vec<Point>, Vec<f32>),
}

impl Workload for Tpacf {
    fn reset(&mut self, _: &mut dyn Launcher) -> kiln::Result<()> {
        self.counts.write(&[0; BINS + 1])
    }

    fn run(&mut self, launcher: &mut dyn Launcher) -> kiln::Result<()> {
        let n = self.points.len();
        launcher.launch(&Launch {
            kernel: &count_pairs,
            twin: "count_pairs",
            config: LaunchConfig::new(n.div_ceil(BLOCK), BLOCK),
            args: args!(&self.points, &self.edges, &mut self.counts),
            lengths: &[n],
        })
    }

    fn check(&mut self) -> Checked {
        let ((points, edges), found) = (&self.host, self.counts.to_vec()?);
        let pairs = points.len() * (points.len() - 1) / 2;
        let all: u64 = found.iter().map(|count| u64::from(*count)).sum();
        equal(&[all], &[pairs as u64])?;
        // What lies at the edge of a bin may fall to either side by how a product is rounded.
        let mut counts = vec![0i64; BINS + 1];
        for (i, a) in points.iter().enumerate().take(4096) {
            for b in &points[..i] {
                let cosine = a.x * b.x + a.y * b.y + a.z * b.z;
                counts[edges.partition_point(|edge| cosine < *edge)] += 1;
            }
        }
        if points.len() > 4096 {
            return Ok(());
        }
        let off = |(found, wanted): (&u32, &i64)| (i64::from(*found) - wanted).abs();
        let most = found.iter().zip(&counts).map(off).max().unwrap_or(0);
        match most <= 2 + pairs as i64 / 100_000 {
            true => Ok(()),
            false => Err(format!("{found:?}, not {counts:?}").into()),
        }
    }
}
