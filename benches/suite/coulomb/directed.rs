//! The potential as its loops, with directives: each thread has eight places at once, a block's width apart.

use kiln::directives::Report;
use kiln::prelude::*;

use super::Charge;
use crate::directed::Directed;

pub(crate) const COULOMB: Directed = directed("coulomb");
pub(crate) const REMAINDER: Directed = directed("coulomb, remainder");

const fn directed(name: &'static str) -> Directed {
    Directed::of(name, include_str!("directed.rs"), of_potential)
}

fn of_potential(jit: &Jit, numbers: &[usize]) -> kiln::Result<Report> {
    let side = numbers[2];
    let (charges, mut to) = (vec![Charge::NONE; numbers[0]], vec![0.0; side * side]);
    potential.plan_on(jit, &charges, &mut to, side, super::SPACING)
}

#[kiln::offload]
fn potential(charges: &[Charge], to: &mut [f32], side: usize, spacing: f32) {
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
