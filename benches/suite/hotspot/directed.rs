//! A step of the difference equation as its loops, with directives. The twin has two steps a launch, in tiles whose border
//! shrinks: blocks compute what neighbours compute, too, which no directive says yet. Here a launch is a step.

use kiln::prelude::*;

use super::{AMBIENT, Chip, Hotspot, STEPS};
use crate::directed::{Directed, Make, Scheduling};
use crate::{Checked, Launcher, Workload};

pub(crate) const HOTSPOT: Directed = Directed {
    benchmark: "hotspot",
    source: include_str!("directed.rs"),
    make: Make::Own(|jit, size| {
        Ok(Box::new(BySteps {
            hotspot: Hotspot::new(jit, size)?,
            scheduling: Scheduling::new(|numbers| {
                let side = numbers[4];
                let (power, from) = (vec![0.0; side * side], vec![0.0; side * side]);
                let mut to = from.clone();
                hotspot.plan(Hotspot::chip(), &power, &from, &mut to, side, AMBIENT)
            }),
        }))
    }),
};

#[kiln::offload]
fn hotspot(chip: Chip, power: &[f32], from: &[f32], to: &mut [f32], side: usize, ambient: f32) {
    #[kernel(tblock(side.div_ceil(16), side.div_ceil(32)), thread(16, 32))]
    {
        #[loop_partition(over_tblock, over_thread)]
        for i in 0..side {
            #[loop_partition(over_tblock, over_thread)]
            #[shared(copyin(from))]
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
                to[at] = own + chip.step * (power[at] + along_column + along_row + to_air);
            }
        }
    }
}

/// [`Hotspot`] with a launch for each step.
struct BySteps {
    hotspot: Hotspot,
    scheduling: Scheduling,
}

impl Workload for BySteps {
    fn reset(&mut self, launcher: &mut dyn Launcher) -> kiln::Result<()> {
        self.hotspot.reset(launcher)
    }

    fn run(&mut self, launcher: &mut dyn Launcher) -> kiln::Result<()> {
        let (chip, side) = (Hotspot::chip(), self.hotspot.side as u32);
        let [from, to] = &mut self.hotspot.heat;
        let (mut from, mut to) = (from, to);
        for _ in 0..self.hotspot.launches * STEPS {
            let args = args!(chip, &self.hotspot.power, &*from, &mut *to, side, AMBIENT);
            self.scheduling.launch(launcher, "hotspot", args)?;
            (from, to) = (to, from);
        }
        Ok(())
    }

    fn check(&mut self) -> Checked {
        self.hotspot.check()
    }
}
