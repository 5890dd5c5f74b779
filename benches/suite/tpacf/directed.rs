//! The pairs as the loops that count them, with directives: each block has counts of its own, and the bins' edges in shared
//! memory.

use super::{BINS, BLOCK, Point};
use crate::directed::Directed;

pub(crate) const TPACF: Directed =
    Directed::of("tpacf", include_str!("directed.rs"), |jit, numbers| {
        let point = Point {
            x: 0.0,
            y: 0.0,
            z: 1.0,
        };
        let (points, edges) = (vec![point; numbers[0]], vec![0.0; BINS]);
        count_pairs.plan_on(jit, &points, &edges, &mut [0; BINS + 1])
    });

#[kiln::offload]
fn count_pairs(points: &[Point], edges: &[f32], counts: &mut [u32]) {
    #[kernel(tblock(points.len().div_ceil(BLOCK)), thread(BLOCK))]
    {
        #[loop_partition(over_tblock, over_thread, reduction(counts))]
        #[shared(copyin(edges[..]))]
        for i in 0..points.len() {
            let own = points[i];
            for j in 0..i {
                let other = points[j];
                let cosine = own.x * other.x + own.y * other.y + own.z * other.z;
                let (mut low, mut high) = (0, edges.len());
                while low < high {
                    let middle = (low + high) / 2;
                    if cosine >= edges[middle] {
                        high = middle;
                    } else {
                        low = middle + 1;
                    }
                }
                counts[low] += 1;
            }
        }
    }
}
