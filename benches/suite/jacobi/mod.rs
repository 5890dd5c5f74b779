//! A step of Jacobi's iteration on a grid, each point the mean of its four neighbours, with tiles and their halo in
//! shared memory (hiCUDA's jacobi).

pub(crate) mod directed;

use std::cell::OnceCell;

use kiln::prelude::*;

use crate::data::{Random, close};
use crate::{Benchmark, Bound, Checked, Launch, Launcher, Workload};

pub const JACOBI: Benchmark = Benchmark {
    name: "jacobi",
    bound: Bound::Memory,
    source: include_str!("mod.rs"),
    twin: include_str!("twin.cu"),
    make: |jit, size| {
        let (side, steps) = size.of((45, 3), (1026, 3), (8194, 4));
        let host = Random::new(15).units(side * side);
        Ok(Box::new(Jacobi {
            side,
            steps,
            grids: [jit.upload(&host)?, jit.upload(&host)?],
            host,
            wanted: OnceCell::new(),
        }))
    },
};

const WIDTH: usize = 32;
const HEIGHT: usize = 8;

#[kernel]
fn jacobi(from: &[f32], to: &mut [f32], side: u32) {
    let tile = shared!([[f32; WIDTH + 2]; HEIGHT + 2]);
    let side = side as usize;
    let (tx, ty) = (thread_idx().x, thread_idx().y);
    // The edge of the grid stays as it is.
    let (column, row) = (global_id().x + 1, global_id().y + 1);
    let inside = column < side - 1 && row < side - 1;
    let at = row * side + column;
    if inside {
        tile[ty + 1][tx + 1] = from[at];
        if ty == 0 {
            tile[0][tx + 1] = from[at - side];
        }
        if ty == HEIGHT - 1 || row == side - 2 {
            tile[ty + 2][tx + 1] = from[at + side];
        }
        if tx == 0 {
            tile[ty + 1][0] = from[at - 1];
        }
        if tx == WIDTH - 1 || column == side - 2 {
            tile[ty + 1][tx + 2] = from[at + 1];
        }
    }
    barrier();
    if inside {
        let across = tile[ty + 1][tx] + tile[ty + 1][tx + 2];
        let along = tile[ty][tx + 1] + tile[ty + 2][tx + 1];
        to[at] = 0.25 * (across + along);
    }
}

struct Jacobi {
    side: usize,
    steps: usize,
    grids: [Buffer<f32>; 2],
    host: Vec<f32>,
    wanted: OnceCell<Vec<f32>>,
}

impl Jacobi {
    /// The grid after all steps.
    fn on_host(&self) -> Vec<f32> {
        let side = self.side;
        let mut grid = self.host.clone();
        for _ in 0..self.steps {
            let old = grid.clone();
            for at in (1..side - 1).flat_map(|row| (1..side - 1).map(move |i| row * side + i)) {
                let across = old[at - 1] + old[at + 1];
                grid[at] = 0.25 * (across + (old[at - side] + old[at + side]));
            }
        }
        grid
    }
}

impl Workload for Jacobi {
    fn reset(&mut self, _: &mut dyn Launcher) -> kiln::Result<()> {
        self.grids[0].write(&self.host)
    }

    fn run(&mut self, launcher: &mut dyn Launcher) -> kiln::Result<()> {
        let inner = self.side - 2;
        let grid = (inner.div_ceil(WIDTH), inner.div_ceil(HEIGHT));
        let [from, to] = &mut self.grids;
        let (mut from, mut to) = (from, to);
        for _ in 0..self.steps {
            launcher.launch(&Launch {
                kernel: &jacobi,
                twin: "jacobi",
                config: LaunchConfig::new(grid, (WIDTH, HEIGHT)),
                args: args!(&*from, &mut *to, self.side as u32),
                lengths: &[],
            })?;
            (from, to) = (to, from);
        }
        Ok(())
    }

    fn check(&mut self) -> Checked {
        let wanted = self.wanted.get_or_init(|| self.on_host());
        close(&self.grids[self.steps % 2].to_vec()?, wanted, 1e-6)
    }
}
