//! Where an object is in a film with noise (Rodinia's particlefilter, in `f64`): particles move at random, are weighed by
//! how the image looks around each, and are drawn anew by their weights. One frame.

use kiln::prelude::*;

use crate::data::{Random, close_f64};
use crate::{Benchmark, Bound, Checked, Launch, Launcher, Workload};

pub const PARTICLEFILTER: Benchmark = Benchmark {
    name: "particlefilter",
    bound: Bound::Gather,
    source: include_str!("mod.rs"),
    twin: include_str!("twin.cu"),
    make: |jit, size| {
        let (side, n) = size.of((24, 600), (128, 10_000), (128, 100_000));
        let mut random = Random::new(21);
        let image: Vec<u8> = (0..side * side)
            .map(|_| 100 + random.below(128) as u8)
            .collect();
        let seeds = random.integers(n, i32::MAX as u32);
        let around = (-4..=4).flat_map(|y| (-4..=4).map(move |x| Offset { x, y }));
        let object: Vec<Offset> = around.filter(|o| o.x * o.x + o.y * o.y < 25).collect();
        let centre = side as f64 / 2.0;
        let blocks = n.div_ceil(BLOCK);
        let state = State {
            xs: vec![centre; n],
            ys: vec![centre; n],
            seeds,
        };
        Ok(Box::new(Particlefilter {
            side,
            image: jit.upload(&image)?,
            object: jit.upload(&object)?,
            seeds: jit.upload(&state.seeds)?,
            xs: jit.upload(&state.xs)?,
            ys: jit.upload(&state.ys)?,
            weights: jit.zeros(n)?,
            partial: jit.zeros(blocks)?,
            cumulated: jit.zeros(n)?,
            start: jit.zeros(1)?,
            chosen: (jit.zeros(n)?, jit.zeros(n)?),
            host: (image, object, state),
        }))
    },
};

const BLOCK: usize = 512;

/// A pixel of the object, from its centre.
#[derive(Copy, Clone, KernelType)]
#[repr(C)]
struct Offset {
    x: i32,
    y: i32,
}

/// A number in `0.0..1.0`; the generator of Rodinia's.
#[device_fn]
fn uniform(seeds: &mut [i32], i: usize) -> f64 {
    let next = seeds[i].wrapping_mul(1_103_515_245).wrapping_add(12_345) % i32::MAX;
    seeds[i] = next;
    (next as f64 / 2_147_483_647.0).abs()
}

/// A number of the normal distribution (Box and Muller 1958).
#[device_fn]
fn normal(seeds: &mut [i32], i: usize) -> f64 {
    let (u, v) = (uniform(seeds, i), uniform(seeds, i));
    let cosine = (2.0 * std::f64::consts::PI * v).cos();
    (-2.0 * u.ln()).sqrt() * cosine
}

/// The `f64` next to it that is an integer, halves up.
#[device_fn]
fn round(x: f64) -> f64 {
    (x + 0.5).floor()
}

/// Moves the particles and weighs them; the sum of each block's weights.
#[kernel]
fn likelihood(
    image: &[u8],
    object: &[Offset],
    seeds: &mut [i32],
    xs: &mut [f64],
    ys: &mut [f64],
    weights: &mut [f64],
    partial: &mut [f64],
    side: u32,
) {
    let sums = shared!([f64; BLOCK]);
    let (i, tx, n, side) = (global_id().x, thread_idx().x, xs.len(), side as i32);
    sums[tx] = 0.0;
    if i < n {
        let x = xs[i] + 1.0 + 5.0 * normal(seeds, i);
        let y = ys[i] - 2.0 + 2.0 * normal(seeds, i);
        xs[i] = x;
        ys[i] = y;
        let mut sum = 0.0;
        for j in 0..object.len() {
            let column = round(x) as i32 + object[j].x;
            let row = round(y) as i32 + object[j].y;
            let mut at = (row * side + column).abs();
            if at >= side * side {
                at = 0;
            }
            let pixel = image[at as usize] as f64;
            let (dark, light) = (pixel - 100.0, pixel - 228.0);
            sum += (dark * dark - light * light) / 50.0;
        }
        let weight = (sum / object.len() as f64).exp() / n as f64;
        weights[i] = weight;
        sums[tx] = weight;
    }
    barrier();
    let mut half = BLOCK / 2;
    while half > 0 {
        if tx < half {
            sums[tx] += sums[tx + half];
        }
        barrier();
        half /= 2;
    }
    if tx == 0 {
        partial[block_idx().x] = sums[0];
    }
}

/// Adds up what the blocks have summed. One thread.
#[kernel]
fn add_up(partial: &mut [f64]) {
    let mut sum = 0.0;
    for i in 0..partial.len() {
        sum += partial[i];
    }
    partial[0] = sum;
}

#[kernel]
fn normalize(weights: &mut [f64], partial: &[f64]) {
    let i = global_id().x;
    if i < weights.len() {
        weights[i] /= partial[0];
    }
}

/// The sums of the weights up to each, and where drawing starts. One thread.
#[kernel]
fn cumulate(weights: &[f64], cumulated: &mut [f64], start: &mut [f64], seeds: &mut [i32]) {
    let mut sum = 0.0;
    for i in 0..weights.len() {
        sum += weights[i];
        cumulated[i] = sum;
    }
    start[0] = uniform(seeds, 0) / weights.len() as f64;
}

/// Draws the particles anew.
#[kernel]
fn draw(
    cumulated: &[f64],
    start: &[f64],
    xs: &[f64],
    ys: &[f64],
    new_xs: &mut [f64],
    new_ys: &mut [f64],
) {
    let (i, n) = (global_id().x, cumulated.len());
    if i < n {
        let wanted = start[0] + i as f64 / n as f64;
        let mut index = n - 1;
        for j in 0..n {
            if cumulated[j] >= wanted {
                index = j;
                break;
            }
        }
        new_xs[i] = xs[index];
        new_ys[i] = ys[index];
    }
}

/// What is the same at the start of each run.
struct State {
    xs: Vec<f64>,
    ys: Vec<f64>,
    seeds: Vec<i32>,
}

struct Particlefilter {
    side: usize,
    image: Buffer<u8>,
    object: Buffer<Offset>,
    seeds: Buffer<i32>,
    xs: Buffer<f64>,
    ys: Buffer<f64>,
    weights: Buffer<f64>,
    partial: Buffer<f64>,
    cumulated: Buffer<f64>,
    start: Buffer<f64>,
    chosen: (Buffer<f64>, Buffer<f64>),
    host: (Vec<u8>, Vec<Offset>, State),
}

impl Particlefilter {
    /// Moves and weighs.
    fn weigh(&mut self, launcher: &mut dyn Launcher) -> kiln::Result<()> {
        let (n, blocks) = (self.xs.len(), self.partial.len());
        let (all, one) = (LaunchConfig::new(blocks, BLOCK), LaunchConfig::new(1, 1));
        launcher.launch(&Launch {
            kernel: &likelihood,
            twin: "likelihood",
            config: all,
            args: args!(
                &self.image,
                &self.object,
                &mut self.seeds,
                &mut self.xs,
                &mut self.ys,
                &mut self.weights,
                &mut self.partial,
                self.side as u32
            ),
            lengths: &[self.object.len(), n],
        })?;
        launcher.launch(&Launch {
            kernel: &add_up,
            twin: "add_up",
            config: one,
            args: args!(&mut self.partial),
            lengths: &[blocks],
        })
    }

    /// Draws by the weights.
    fn choose(&mut self, launcher: &mut dyn Launcher) -> kiln::Result<()> {
        let (n, blocks) = (self.xs.len(), self.partial.len());
        let (all, one) = (LaunchConfig::new(blocks, BLOCK), LaunchConfig::new(1, 1));
        launcher.launch(&Launch {
            kernel: &normalize,
            twin: "normalize",
            config: all,
            args: args!(&mut self.weights, &self.partial),
            lengths: &[n],
        })?;
        launcher.launch(&Launch {
            kernel: &cumulate,
            twin: "cumulate",
            config: one,
            args: args!(
                &self.weights,
                &mut self.cumulated,
                &mut self.start,
                &mut self.seeds
            ),
            lengths: &[n],
        })?;
        let (new_xs, new_ys) = (&mut self.chosen.0, &mut self.chosen.1);
        launcher.launch(&Launch {
            kernel: &draw,
            twin: "draw",
            config: all,
            args: args!(
                &self.cumulated,
                &self.start,
                &self.xs,
                &self.ys,
                new_xs,
                new_ys
            ),
            lengths: &[n],
        })
    }
}

impl Workload for Particlefilter {
    fn reset(&mut self, _: &mut dyn Launcher) -> kiln::Result<()> {
        let state = &self.host.2;
        self.xs.write(&state.xs)?;
        self.ys.write(&state.ys)?;
        self.seeds.write(&state.seeds)
    }

    fn run(&mut self, launcher: &mut dyn Launcher) -> kiln::Result<()> {
        self.weigh(launcher)?;
        self.choose(launcher)
    }

    fn check(&mut self) -> Checked {
        let (image, object, state) = &self.host;
        let (n, side) = (self.xs.len(), self.side as i32);
        let mut seeds = state.seeds.clone();
        let moved: Vec<(f64, f64)> = (0..n)
            .map(|i| {
                let x = state.xs[i] + 1.0 + 5.0 * normal(&mut seeds, i);
                (x, state.ys[i] - 2.0 + 2.0 * normal(&mut seeds, i))
            })
            .collect();
        let (xs, ys): (Vec<f64>, Vec<f64>) = moved.into_iter().unzip();
        close_f64(&self.xs.to_vec()?, &xs, 1e-9)?;
        close_f64(&self.ys.to_vec()?, &ys, 1e-9)?;
        let weight = |x: f64, y: f64| {
            let pixel = |offset: &Offset| {
                let (column, row) = (round(x) as i32 + offset.x, round(y) as i32 + offset.y);
                let at = (row * side + column).abs();
                let pixel = f64::from(image[if at < side * side { at as usize } else { 0 }]);
                ((pixel - 100.0).powi(2) - (pixel - 228.0).powi(2)) / 50.0
            };
            (object.iter().map(pixel).sum::<f64>() / object.len() as f64).exp() / n as f64
        };
        let weights: Vec<f64> = xs.iter().zip(&ys).map(|(x, y)| weight(*x, *y)).collect();
        let total: f64 = weights.iter().sum();
        let weights: Vec<f64> = weights.iter().map(|weight| weight / total).collect();
        close_f64(&self.weights.to_vec()?, &weights, 1e-9)?;
        // What is drawn, from the sums that the device has.
        let (cumulated, start) = (self.cumulated.to_vec()?, self.start.to_vec()?[0]);
        let drawn = |i: usize| {
            let wanted = start + i as f64 / n as f64;
            xs[cumulated.partition_point(|sum| *sum < wanted).min(n - 1)]
        };
        close_f64(
            &self.chosen.0.to_vec()?,
            &(0..n).map(drawn).collect::<Vec<_>>(),
            1e-9,
        )
    }
}
