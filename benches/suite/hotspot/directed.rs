//! Two steps of the difference equation as their loops, with directives: in a launch, each block computes in shared memory what
//! its cells read of the first step, which neighbours compute, too, as in the twin, whose tiles overlap.

use kiln::prelude::*;

use super::{AMBIENT, Chip, Hotspot};
use crate::directed::{Directed, Make, Scheduling};
use crate::{Checked, Launcher, Workload};

pub(crate) const HOTSPOT: Directed = Directed {
    benchmark: "hotspot",
    name: "hotspot",
    source: include_str!("directed.rs"),
    make: Make::Own(|jit, size| {
        let heat = Hotspot::new(jit, size)?;
        Ok(Box::new(ByTwoSteps {
            half: jit.zeros(heat.side * heat.side)?,
            heat,
            scheduling: Scheduling::new(jit, |jit, numbers| {
                let side = numbers[4];
                let (power, from) = (vec![0.0; side * side], vec![0.0; side * side]);
                let mut to = from.clone();
                hotspot.plan_on(jit, Hotspot::chip(), &power, &from, &mut to, side, AMBIENT)
            }),
        }))
    }),
};

#[kiln::offload]
fn hotspot(chip: Chip, power: &[f32], from: &[f32], to: &mut [f32], side: usize, ambient: f32) {
    let mut half: Vec<f32> = vec![0.0; side * side];
    global!(alloc half);
    #[kernel(tblock(side.div_ceil(16), side.div_ceil(32)), thread(16, 32))]
    {
        for i in 0..side {
            for j in 0..side {
                let at = i * side + j;
                let own = from[at];
                // At the border of the chip a cell is its own neighbour.
                let north = if i > 0 { from[at - side] } else { own };
                let south = if i < side - 1 { from[at + side] } else { own };
                let west = if j > 0 { from[at - 1] } else { own };
                let east = if j < side - 1 { from[at + 1] } else { own };
                let along_column = (south + north - 2.0 * own) * chip.column;
                let along_row = (east + west - 2.0 * own) * chip.row;
                let to_air = (ambient - own) * chip.air;
                half[at] = own + chip.step * (power[at] + along_column + along_row + to_air);
            }
        }
        #[loop_partition(over_tblock, over_thread)]
        for i in 0..side {
            #[loop_partition(over_tblock, over_thread)]
            #[shared(compute(half))]
            for j in 0..side {
                let at = i * side + j;
                let own = half[at];
                let north = if i > 0 { half[at - side] } else { own };
                let south = if i < side - 1 { half[at + side] } else { own };
                let west = if j > 0 { half[at - 1] } else { own };
                let east = if j < side - 1 { half[at + 1] } else { own };
                let along_column = (south + north - 2.0 * own) * chip.column;
                let along_row = (east + west - 2.0 * own) * chip.row;
                let to_air = (ambient - own) * chip.air;
                to[at] = own + chip.step * (power[at] + along_column + along_row + to_air);
            }
        }
    }
}

/// [`Hotspot`] with the loops' kernel in its launches.
struct ByTwoSteps {
    heat: Hotspot,
    /// The heat after the first step, which is in shared memory alone.
    half: Buffer<f32>,
    scheduling: Scheduling,
}

impl Workload for ByTwoSteps {
    fn reset(&mut self, launcher: &mut dyn Launcher) -> kiln::Result<()> {
        self.heat.reset(launcher)
    }

    fn run(&mut self, launcher: &mut dyn Launcher) -> kiln::Result<()> {
        let (chip, side) = (Hotspot::chip(), self.heat.side as u32);
        let [from, to] = &mut self.heat.heat;
        let (mut from, mut to) = (from, to);
        for _ in 0..self.heat.launches {
            let (power, half) = (&self.heat.power, &mut self.half);
            let args = args!(chip, power, &*from, &mut *to, side, AMBIENT, half);
            self.scheduling.launch(launcher, "hotspot", args)?;
            (from, to) = (to, from);
        }
        Ok(())
    }

    fn check(&mut self) -> Checked {
        self.heat.check()
    }
}
