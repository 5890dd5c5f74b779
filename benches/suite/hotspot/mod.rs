//! How warm a chip gets (Rodinia's hotspot): a difference equation on a grid, two steps a launch in shared memory
//! with a border that shrinks. In `f32` alone: the constants of Rodinia's are of `f64`, and so are its sums.

pub(crate) mod directed;

use std::cell::OnceCell;

use kiln::prelude::*;

use crate::data::{Random, close};
use crate::{Benchmark, Bound, Checked, Launch, Launcher, Size, Workload};

pub const HOTSPOT: Benchmark = Benchmark {
    name: "hotspot",
    bound: Bound::Memory,
    source: include_str!("mod.rs"),
    twin: include_str!("twin.cu"),
    make: |jit, size| Ok(Box::new(Hotspot::new(jit, size)?)),
};

const BLOCK: usize = 16;
/// Steps of one launch.
const STEPS: usize = 2;
/// What a block writes, a side.
const WIDTH: usize = BLOCK - 2 * STEPS;
const AMBIENT: f32 = 80.0;

/// What the chip is made of.
#[derive(Copy, Clone, KernelType)]
#[repr(C)]
struct Chip {
    /// The step of time by the capacity of a cell.
    step: f32,
    /// One by the resistance along a row, a column, and to the air.
    row: f32,
    column: f32,
    air: f32,
}

#[kernel]
fn hotspot(chip: Chip, power: &[f32], from: &[f32], to: &mut [f32], side: u32, ambient: f32) {
    let now = shared!([[f32; BLOCK]; BLOCK]);
    let own_power = shared!([[f32; BLOCK]; BLOCK]);
    let next = shared!([[f32; BLOCK]; BLOCK]);
    let (tx, ty) = (thread_idx().x, thread_idx().y);
    let last = side as i32 - 1;
    let row = (WIDTH * block_idx().y) as i32 - STEPS as i32 + ty as i32;
    let column = (WIDTH * block_idx().x) as i32 - STEPS as i32 + tx as i32;
    let inside = row >= 0 && row <= last && column >= 0 && column <= last;
    let at = (row * side as i32 + column) as usize;
    if inside {
        now[ty][tx] = from[at];
        own_power[ty][tx] = power[at];
    }
    barrier();
    // At the border of the chip a cell is its own neighbour.
    let north = if row > 0 && ty > 0 { ty - 1 } else { ty };
    let south = if row < last && ty < BLOCK - 1 {
        ty + 1
    } else {
        ty
    };
    let west = if column > 0 && tx > 0 { tx - 1 } else { tx };
    let east = if column < last && tx < BLOCK - 1 {
        tx + 1
    } else {
        tx
    };
    let mut computed = false;
    for step in 0..STEPS {
        let (low, high) = (step + 1, BLOCK - 2 - step);
        computed = inside && tx >= low && tx <= high && ty >= low && ty <= high;
        if computed {
            let own = now[ty][tx];
            let along_column = (now[south][tx] + now[north][tx] - 2.0 * own) * chip.column;
            let along_row = (now[ty][east] + now[ty][west] - 2.0 * own) * chip.row;
            let to_air = (ambient - own) * chip.air;
            next[ty][tx] =
                own + chip.step * (own_power[ty][tx] + along_column + along_row + to_air);
        }
        barrier();
        if step < STEPS - 1 && computed {
            now[ty][tx] = next[ty][tx];
        }
        barrier();
    }
    if computed {
        to[at] = next[ty][tx];
    }
}

struct Hotspot {
    side: usize,
    launches: usize,
    power: Buffer<f32>,
    heat: [Buffer<f32>; 2],
    host: (Vec<f32>, Vec<f32>),
    wanted: OnceCell<Vec<f32>>,
}

impl Hotspot {
    fn new(jit: &Jit, size: Size) -> kiln::Result<Hotspot> {
        let (side, launches) = size.of((37, 2), (1024, 2), (8192, 4));
        let mut random = Random::new(6);
        let heat: Vec<f32> = random
            .units(side * side)
            .iter()
            .map(|x| x + 323.0)
            .collect();
        let power = random.units(side * side);
        Ok(Hotspot {
            side,
            launches,
            power: jit.upload(&power)?,
            heat: [jit.upload(&heat)?, jit.upload(&heat)?],
            host: (heat, power),
            wanted: OnceCell::new(),
        })
    }

    /// A chip of 0.5 mm, whose cells are 1/1024 of 16 mm however many there are: smaller ones need shorter steps.
    fn chip() -> Chip {
        let (thick, cell, conducts, heat) = (0.0005, 0.016 / 1024.0, 100.0, 1.75e6);
        let capacity = 0.5 * heat * thick * cell * cell;
        let steepest = 3.0e6 / (0.5 * thick * heat);
        Chip {
            step: 1.0e-6 / steepest / capacity,
            row: 2.0 * conducts * thick,
            column: 2.0 * conducts * thick,
            air: conducts * cell * cell / thick,
        }
    }

    /// The heat after all steps.
    fn on_host(&self) -> Vec<f32> {
        let (chip, side) = (Self::chip(), self.side);
        let (mut heat, power) = (self.host.0.clone(), &self.host.1);
        for _ in 0..self.launches * STEPS {
            let step = |at: usize| {
                let (row, column, own) = (at / side, at % side, heat[at]);
                let other = |is_inside: bool, at: usize| if is_inside { heat[at] } else { own };
                let north = other(row > 0, at.wrapping_sub(side));
                let south = other(row < side - 1, at + side);
                let west = other(column > 0, at.wrapping_sub(1));
                let east = other(column < side - 1, at + 1);
                let flow = power[at]
                    + (south + north - 2.0 * own) * chip.column
                    + (east + west - 2.0 * own) * chip.row
                    + (AMBIENT - own) * chip.air;
                own + chip.step * flow
            };
            heat = (0..side * side).map(step).collect();
        }
        heat
    }
}

impl Workload for Hotspot {
    fn reset(&mut self, _: &mut dyn Launcher) -> kiln::Result<()> {
        self.heat[0].write(&self.host.0)
    }

    fn run(&mut self, launcher: &mut dyn Launcher) -> kiln::Result<()> {
        let (chip, side) = (Self::chip(), self.side as u32);
        let blocks = self.side.div_ceil(WIDTH);
        let [from, to] = &mut self.heat;
        let (mut from, mut to) = (from, to);
        for _ in 0..self.launches {
            launcher.launch(&Launch {
                kernel: &hotspot,
                twin: "hotspot",
                config: LaunchConfig::new((blocks, blocks), (BLOCK, BLOCK)),
                args: args!(chip, &self.power, &*from, &mut *to, side, AMBIENT),
                lengths: &[],
            })?;
            (from, to) = (to, from);
        }
        Ok(())
    }

    fn check(&mut self) -> Checked {
        let wanted = self.wanted.get_or_init(|| self.on_host());
        close(&self.heat[self.launches % 2].to_vec()?, wanted, 1e-5)
    }
}
