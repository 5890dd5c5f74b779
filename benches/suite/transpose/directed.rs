//! The transposition as its loops, with directives: which elements a block stages is found by Kiln.

use crate::directed::Directed;

pub(crate) const TRANSPOSE: Directed =
    Directed::of("transpose", include_str!("directed.rs"), |jit, numbers| {
        let [rows, columns] = [numbers[2], numbers[3]];
        let (from, mut to) = (vec![0.0; rows * columns], vec![0.0; rows * columns]);
        transpose.plan_on(jit, &from, &mut to, rows, columns)
    });

#[kiln::offload]
fn transpose(from: &[f32], to: &mut [f32], rows: usize, columns: usize) {
    #[kernel(tblock(columns.div_ceil(32), rows.div_ceil(32)), thread(8, 32))]
    {
        #[loop_partition(over_tblock, over_thread, coarsen(4))]
        for i in 0..columns {
            #[loop_partition(over_tblock, over_thread)]
            #[shared(copyin(from))]
            for j in 0..rows {
                to[i * rows + j] = from[j * columns + i];
            }
        }
    }
}
