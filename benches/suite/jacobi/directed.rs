//! A step of Jacobi's iteration as its loops, with directives: the tile, its halo and who copies what are found by Kiln.

use crate::directed::Directed;

pub(crate) const JACOBI: Directed =
    Directed::of("jacobi", include_str!("directed.rs"), |jit, numbers| {
        let side = numbers[2];
        let (from, mut to) = (vec![0.0; side * side], vec![0.0; side * side]);
        jacobi.plan_on(jit, &from, &mut to, side)
    });

#[kiln::offload]
fn jacobi(from: &[f32], to: &mut [f32], side: usize) {
    #[kernel(tblock((side - 2).div_ceil(8), (side - 2).div_ceil(32)), thread(8, 32))]
    {
        #[loop_partition(over_tblock, over_thread)]
        for i in 1..side - 1 {
            #[loop_partition(over_tblock, over_thread)]
            #[shared(copyin(from))]
            for j in 1..side - 1 {
                let at = i * side + j;
                let across = from[at - 1] + from[at + 1];
                to[at] = 0.25 * (across + (from[at - side] + from[at + side]));
            }
        }
    }
}
