//! The potential of many charges on a slice of a grid (Parboil's cp; hiCUDA's CP): the charges are read by all threads
//! at once, in portions, and a thread has eight places along x. Portions are buffers of the size that constant memory has, or
//! smaller ones passed by value, which a GPU has in constant memory: what the originals fill before each launch.

pub(crate) mod constant;
pub(crate) mod directed;

use kiln::prelude::*;

use crate::data::{Random, close};
use crate::{Benchmark, Bound, Checked, Launch, Launcher, Size, Workload};

pub const COULOMB: Benchmark = benchmark("coulomb", |jit, size| {
    Coulomb::boxed(
        jit,
        Way::Buffers,
        size.of((64, 50), (256, 1000), (2048, 40_000)),
    )
});

pub const BY_VALUE: Benchmark = benchmark("coulomb, by value", |jit, size| {
    Coulomb::boxed(jit, Way::Values, size.of(SMALL, MEDIUM, FULL))
});

/// Places along an edge, and charges that are passed by value.
const SMALL: (usize, usize) = (37, 260);
const MEDIUM: (usize, usize) = (256, 1000);
const FULL: (usize, usize) = (2048, 8_000);

pub const REMAINDER: Benchmark = benchmark("coulomb, remainder", |jit, size| {
    Coulomb::boxed(
        jit,
        Way::Buffers,
        size.of((37, 50), (251, 1000), (2041, 8_000)),
    )
});

const fn benchmark(
    name: &'static str,
    make: fn(&Jit, Size) -> kiln::Result<Box<dyn Workload>>,
) -> Benchmark {
    Benchmark {
        name,
        bound: Bound::Arithmetic,
        source: include_str!("mod.rs"),
        twin: include_str!("twin.cu"),
        make,
    }
}

/// Charges of a buffer.
const PORTION: usize = 4000;
/// Charges of a launch by value; every GPU has room for 4,096 bytes of arguments.
const FEW: usize = 250;
/// Places of a thread.
const OWN: usize = 8;
/// Threads of a block along x and y.
const BLOCK: (usize, usize) = (16, 8);
const SPACING: f32 = 0.1;

/// `height` is the square of how far the charge is from the slice. Aligned, it is read at once.
#[derive(Copy, Clone, KernelType)]
#[repr(C, align(16))]
struct Charge {
    x: f32,
    y: f32,
    height: f32,
    charge: f32,
}

impl Charge {
    /// What launches are planned with.
    const NONE: Charge = Charge {
        x: 0.0,
        y: 0.0,
        height: 1.0,
        charge: 0.0,
    };
}

#[kernel]
fn potential(charges: &[Charge], to: &mut [f32], side: u32, spacing: f32) {
    let (side, row) = (side as usize, global_id().y);
    // The places of a thread are a block's width apart, so that a warp writes side by side.
    let column = block_idx().x * block_dim().x * OWN + thread_idx().x;
    let apart = block_dim().x;
    let (x, y) = (spacing * column as f32, spacing * row as f32);
    let mut sums = [0.0f32; OWN];
    for i in 0..charges.len() {
        let charge = charges[i];
        let dy = y - charge.y;
        let rest = dy * dy + charge.height;
        let mut dx = x - charge.x;
        #[unroll]
        for own in 0..OWN {
            sums[own] += charge.charge * (1.0 / (dx * dx + rest).sqrt());
            dx += spacing * apart as f32;
        }
    }
    #[unroll]
    for own in 0..OWN {
        let column = column + own * apart;
        if row < side && column < side {
            to[row * side + column] += sums[own];
        }
    }
}

#[derive(Copy, Clone, KernelType)]
#[repr(C, align(16))]
struct Portion {
    charges: [Charge; FEW],
}

/// [`potential`] of the first `count` charges of a portion.
#[kernel]
fn potential_by_value(portion: Portion, count: u32, to: &mut [f32], side: u32, spacing: f32) {
    let (side, row) = (side as usize, global_id().y);
    let column = block_idx().x * block_dim().x * OWN + thread_idx().x;
    let apart = block_dim().x;
    let (x, y) = (spacing * column as f32, spacing * row as f32);
    let mut sums = [0.0f32; OWN];
    for i in 0..count as usize {
        let charge = portion.charges[i];
        let dy = y - charge.y;
        let rest = dy * dy + charge.height;
        let mut dx = x - charge.x;
        #[unroll]
        for own in 0..OWN {
            sums[own] += charge.charge * (1.0 / (dx * dx + rest).sqrt());
            dx += spacing * apart as f32;
        }
    }
    #[unroll]
    for own in 0..OWN {
        let column = column + own * apart;
        if row < side && column < side {
            to[row * side + column] += sums[own];
        }
    }
}

#[derive(Copy, Clone)]
enum Way {
    Buffers,
    Values,
}

/// The charges of a launch.
enum Charges {
    Buffer(Buffer<Charge>),
    Value(Box<Portion>, u32),
}

impl Charges {
    /// A buffer of a portion, or one that is filled up with its last charge, which is not counted.
    fn new(jit: &Jit, way: Way, portion: &[Charge]) -> kiln::Result<Charges> {
        Ok(match way {
            Way::Buffers => Charges::Buffer(jit.upload(portion)?),
            Way::Values => {
                let charges = std::array::from_fn(|i| portion[i.min(portion.len() - 1)]);
                Charges::Value(Box::new(Portion { charges }), portion.len() as u32)
            }
        })
    }
}

struct Coulomb {
    side: usize,
    portions: Vec<Charges>,
    potential: Buffer<f32>,
    host: Vec<Charge>,
}

impl Coulomb {
    /// A grid with so many places along an edge, and so many charges.
    fn boxed(jit: &Jit, way: Way, size: (usize, usize)) -> kiln::Result<Box<dyn Workload>> {
        Ok(Box::new(Coulomb::new(jit, way, size)?))
    }

    fn new(jit: &Jit, way: Way, (side, count): (usize, usize)) -> kiln::Result<Coulomb> {
        let mut random = Random::new(14);
        let mut charge = || Charge {
            x: 0.1 * side as f32 * random.unit(),
            y: 0.1 * side as f32 * random.unit(),
            height: random.unit() + 0.01,
            charge: 2.0 * random.unit() - 1.0,
        };
        let host: Vec<Charge> = (0..count).map(|_| charge()).collect();
        let of_launch = match way {
            Way::Buffers => PORTION,
            Way::Values => FEW,
        };
        let portions = host.chunks(of_launch);
        let portions = portions.map(|portion| Charges::new(jit, way, portion));
        Ok(Coulomb {
            side,
            portions: portions.collect::<kiln::Result<_>>()?,
            potential: jit.zeros(side * side)?,
            host,
        })
    }
}

impl Workload for Coulomb {
    fn reset(&mut self, _: &mut dyn Launcher) -> kiln::Result<()> {
        self.potential.write(&vec![0.0; self.side * self.side])
    }

    fn run(&mut self, launcher: &mut dyn Launcher) -> kiln::Result<()> {
        // A grid that is small is one block wide.
        let width = BLOCK.0.min(self.side.div_ceil(OWN));
        let grid = (self.side.div_ceil(width * OWN), self.side.div_ceil(BLOCK.1));
        let config = LaunchConfig::new(grid, (width, BLOCK.1));
        let side = self.side as u32;
        for charges in &self.portions {
            match charges {
                Charges::Buffer(charges) => launcher.launch(&Launch {
                    kernel: &potential,
                    twin: "potential",
                    config,
                    args: args!(charges, &mut self.potential, side, SPACING),
                    lengths: &[charges.len()],
                })?,
                Charges::Value(portion, count) => launcher.launch(&Launch {
                    kernel: &potential_by_value,
                    twin: "potential_by_value",
                    config,
                    args: args!(**portion, *count, &mut self.potential, side, SPACING),
                    lengths: &[],
                })?,
            }
        }
        Ok(())
    }

    fn check(&mut self) -> Checked {
        let (side, found) = (self.side, self.potential.to_vec()?);
        for row in (0..side).step_by(side.div_ceil(16)) {
            let place = |column: usize| {
                let (x, y) = (SPACING * column as f32, SPACING * row as f32);
                let of = |charge: &Charge| {
                    let (dx, dy) = (f64::from(x - charge.x), f64::from(y - charge.y));
                    f64::from(charge.charge) / (dx * dx + dy * dy + f64::from(charge.height)).sqrt()
                };
                self.host.iter().map(of).sum::<f64>() as f32
            };
            let columns = (0..side).step_by(side.div_ceil(64));
            let wanted: Vec<f32> = columns.clone().map(place).collect();
            let found: Vec<f32> = columns.map(|column| found[row * side + column]).collect();
            close(&found, &wanted, 2e-3)?;
        }
        Ok(())
    }
}
