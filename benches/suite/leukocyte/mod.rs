//! Where cells are in an image (Rodinia's leukocyte, detection): how even the gradient is along circles around each
//! pixel, and the largest of these numbers near each.

use kiln::prelude::*;

use crate::data::{Random, close};
use crate::{Benchmark, Bound, Checked, Launch, Launcher, Workload};

pub const LEUKOCYTE: Benchmark = Benchmark {
    name: "leukocyte",
    bound: Bound::Arithmetic,
    source: include_str!("mod.rs"),
    twin: include_str!("twin.cu"),
    make: |jit, size| {
        let (height, width) = size.of((56, 61), (219, 640), (1752, 2560));
        let mut random = Random::new(22);
        let gradients = (random.units(height * width), random.units(height * width));
        let angle = |i: usize| std::f32::consts::TAU * i as f32 / POINTS as f32;
        let directions: Vec<Direction> = (0..POINTS)
            .map(|i| Direction {
                cosine: angle(i).cos(),
                sine: angle(i).sin(),
            })
            .collect();
        let circle = |radius: f32| {
            directions.iter().map(move |d| Offset {
                x: (radius * d.cosine) as i32,
                y: (radius * d.sine) as i32,
            })
        };
        let offsets: Vec<Offset> = (0..CIRCLES)
            .flat_map(|i| circle(8.0 + 2.0 * i as f32))
            .collect();
        let reach = REACH as i32;
        let around = (-reach..=reach).flat_map(|y| (-reach..=reach).map(move |x| (x, y)));
        let disk: Vec<u8> = around
            .map(|(x, y)| u8::from(x * x + y * y <= reach * reach))
            .collect();
        Ok(Box::new(Leukocyte {
            size: (height, width),
            x: jit.upload(&gradients.0)?,
            y: jit.upload(&gradients.1)?,
            offsets: jit.upload(&offsets)?,
            directions: jit.upload(&directions)?,
            disk: jit.upload(&disk)?,
            scores: jit.zeros(height * width)?,
            largest: jit.zeros(height * width)?,
            host: Host {
                gradients,
                offsets,
                directions,
                disk,
            },
        }))
    },
};

const BLOCK: usize = 192;
const CIRCLES: usize = 7;
const POINTS: usize = 150;
/// The radius of the largest circle, and one more.
const MARGIN: usize = 22;
/// How far the second kernel looks.
const REACH: usize = 6;

#[derive(Copy, Clone, KernelType)]
#[repr(C)]
struct Direction {
    cosine: f32,
    sine: f32,
}

#[derive(Copy, Clone, KernelType)]
#[repr(C)]
struct Offset {
    x: i32,
    y: i32,
}

/// The mean of the gradient along a circle, squared, by its variance (Welford 1962); of the best circle.
#[kernel]
fn score_circles(
    gradient_x: &[f32],
    gradient_y: &[f32],
    offsets: &[Offset],
    directions: &[Direction],
    scores: &mut [f32],
    height: u32,
    width: u32,
) {
    let (height, width, i) = (height as usize, width as usize, global_id().x);
    let inner = width - 2 * MARGIN;
    let (row, column) = (i / inner + MARGIN, i % inner + MARGIN);
    if row < height - MARGIN {
        let mut best = 0.0f32;
        for circle in 0..CIRCLES {
            let (mut mean, mut squares) = (0.0f32, 0.0f32);
            for point in 0..POINTS {
                let offset = offsets[circle * POINTS + point];
                let y = row as i32 + offset.y;
                let x = column as i32 + offset.x;
                let at = (y * width as i32 + x) as usize;
                let direction = directions[point];
                let along = gradient_x[at] * direction.cosine + gradient_y[at] * direction.sine;
                let off = along - mean;
                mean += off / (point + 1) as f32;
                squares += off * (along - mean);
            }
            let variance = squares / (POINTS - 1) as f32;
            best = best.max(mean * mean / variance);
        }
        scores[row * width + column] = best;
    }
}

/// The largest score in a disk around each pixel.
#[kernel]
fn dilate(scores: &[f32], disk: &[u8], largest: &mut [f32], height: u32, width: u32) {
    let (height, width, i) = (height as i32, width as i32, global_id().x);
    if i < scores.len() {
        let (row, column) = (i as i32 / width, i as i32 % width);
        let mut best = 0.0f32;
        for a in 0..2 * REACH + 1 {
            let y = row - REACH as i32 + a as i32;
            if y >= 0 && y < height {
                for b in 0..2 * REACH + 1 {
                    let x = column - REACH as i32 + b as i32;
                    if x >= 0 && x < width && disk[a * (2 * REACH + 1) + b] != 0 {
                        best = best.max(scores[(y * width + x) as usize]);
                    }
                }
            }
        }
        largest[i] = best;
    }
}

struct Host {
    gradients: (Vec<f32>, Vec<f32>),
    offsets: Vec<Offset>,
    directions: Vec<Direction>,
    disk: Vec<u8>,
}

struct Leukocyte {
    size: (usize, usize),
    x: Buffer<f32>,
    y: Buffer<f32>,
    offsets: Buffer<Offset>,
    directions: Buffer<Direction>,
    disk: Buffer<u8>,
    scores: Buffer<f32>,
    largest: Buffer<f32>,
    host: Host,
}

impl Leukocyte {
    /// What the host says of a pixel.
    fn score(&self, row: usize, column: usize) -> f32 {
        let Host {
            gradients: (x, y),
            offsets,
            directions,
            ..
        } = &self.host;
        let (height, width) = self.size;
        let inside = |i: usize, end: usize| (MARGIN..end - MARGIN).contains(&i);
        if !inside(row, height) || !inside(column, width) {
            return 0.0;
        }
        let score = |circle: &[Offset]| {
            let along = circle.iter().zip(directions).map(|(offset, direction)| {
                let at =
                    (row as i32 + offset.y) as usize * width + (column as i32 + offset.x) as usize;
                f64::from(x[at] * direction.cosine + y[at] * direction.sine)
            });
            let along: Vec<f64> = along.collect();
            let mean = along.iter().sum::<f64>() / POINTS as f64;
            let squares: f64 = along.iter().map(|value| (value - mean).powi(2)).sum();
            (mean * mean / (squares / (POINTS - 1) as f64)) as f32
        };
        offsets.chunks(POINTS).map(score).fold(0.0, f32::max)
    }
}

impl Workload for Leukocyte {
    fn run(&mut self, launcher: &mut dyn Launcher) -> kiln::Result<()> {
        let (height, width) = self.size;
        let inner = (height - 2 * MARGIN) * (width - 2 * MARGIN);
        launcher.launch(&Launch {
            kernel: &score_circles,
            twin: "score_circles",
            config: LaunchConfig::new(inner.div_ceil(BLOCK), BLOCK),
            args: args!(
                &self.x,
                &self.y,
                &self.offsets,
                &self.directions,
                &mut self.scores,
                height as u32,
                width as u32
            ),
            lengths: &[],
        })?;
        let all = height * width;
        launcher.launch(&Launch {
            kernel: &dilate,
            twin: "dilate",
            config: LaunchConfig::new(all.div_ceil(BLOCK), BLOCK),
            args: args!(
                &self.scores,
                &self.disk,
                &mut self.largest,
                height as u32,
                width as u32
            ),
            lengths: &[all],
        })
    }

    fn check(&mut self) -> Checked {
        let (height, width) = self.size;
        let (found, largest) = (self.scores.to_vec()?, self.largest.to_vec()?);
        let side = 2 * REACH + 1;
        for row in (0..height).step_by(height.div_ceil(24)) {
            let wanted: Vec<f32> = (0..width).map(|column| self.score(row, column)).collect();
            close(&found[row * width..][..width], &wanted, 1e-3)?;
            let best = |column: usize| {
                let near = (0..side * side)
                    .filter(|at| self.host.disk[*at] != 0)
                    .filter_map(|at| {
                        let row = (row + at / side)
                            .checked_sub(REACH)
                            .filter(|row| *row < height)?;
                        let column = (column + at % side).checked_sub(REACH)?;
                        (column < width).then(|| found[row * width + column])
                    });
                near.fold(0.0, f32::max)
            };
            let wanted: Vec<f32> = (0..width).map(best).collect();
            close(&largest[row * width..][..width], &wanted, 0.0)?;
        }
        Ok(())
    }
}
