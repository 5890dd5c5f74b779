//! The potential as its loops, with directives, of charges in constant memory: portions as small as those that are passed by
//! value, which is what the directive `constant` does.

use kiln::prelude::*;

use super::{Charge, Charges, Coulomb, FEW, SPACING, Way};
use crate::directed::{Directed, Make, Scheduling};
use crate::{Checked, Launcher, Workload};

pub(crate) const BY_VALUE: Directed = Directed {
    benchmark: "coulomb, by value",
    name: "coulomb, by value",
    source: include_str!("constant.rs"),
    make: Make::Own(|jit, size| {
        let coulomb = Coulomb::new(
            jit,
            Way::Values,
            size.of(super::SMALL, super::MEDIUM, super::FULL),
        )?;
        let portions = coulomb.host.chunks(FEW);
        let portions = portions.map(|portion| jit.upload(portion));
        Ok(Box::new(OfConstants {
            portions: portions.collect::<kiln::Result<_>>()?,
            coulomb,
            scheduling: Scheduling::new(jit, |_, numbers| {
                let (side, charge) = (numbers[2], [Charge::NONE; FEW]);
                // One kernel for all portions: an array that is longer than the last one is for it, too.
                potential.plan(&charge, &mut vec![0.0; side * side], side, SPACING)
            }),
        }))
    }),
};

#[kiln::offload]
fn potential(charges: &[Charge], to: &mut [f32], side: usize, spacing: f32) {
    constant!(copyin charges);
    #[kernel(tblock(side.div_ceil(8), side.div_ceil(128)), thread(8, 16))]
    {
        #[loop_partition(over_tblock, over_thread)]
        for row in 0..side {
            #[loop_partition(over_tblock, over_thread, coarsen(8))]
            for column in 0..side {
                let (x, y) = (spacing * column as f32, spacing * row as f32);
                let mut sum = 0.0;
                for i in 0..charges.len() {
                    let charge = charges[i];
                    let (dx, dy) = (x - charge.x, y - charge.y);
                    let rest = dy * dy + charge.height;
                    sum += charge.charge * (1.0 / (dx * dx + rest).sqrt());
                }
                to[row * side + column] += sum;
            }
        }
    }
}

/// [`Coulomb`] with the loops' kernel in its launches.
struct OfConstants {
    coulomb: Coulomb,
    /// The portions on the device, by which indices are checked.
    portions: Vec<Buffer<Charge>>,
    scheduling: Scheduling,
}

impl Workload for OfConstants {
    fn reset(&mut self, launcher: &mut dyn Launcher) -> kiln::Result<()> {
        self.coulomb.reset(launcher)
    }

    fn run(&mut self, launcher: &mut dyn Launcher) -> kiln::Result<()> {
        let Coulomb {
            side,
            portions,
            potential: to,
            ..
        } = &mut self.coulomb;
        for (charges, values) in self.portions.iter().zip(portions) {
            let Charges::Value(values, _) = values else {
                continue;
            };
            let args = args!(charges, &mut *to, *side as u32, SPACING, values.charges);
            self.scheduling
                .launch(launcher, "potential_by_value", args)?;
        }
        Ok(())
    }

    fn check(&mut self) -> Checked {
        self.coulomb.check()
    }
}
