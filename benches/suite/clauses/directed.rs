//! The same by clauses of directives.

use super::{BINS, BLOCK, COUNTED};
use crate::directed::{Directed, Plan};

/// Blocks that add up all elements.
pub(super) const BLOCKS: usize = 1024;

pub(crate) const CLAUSES: [Directed; 5] = [
    clause("over_lane", |jit, numbers| {
        let (x, mut y) = slices(numbers);
        lanes.plan_on(jit, &x, &mut y, numbers[2], numbers[3])
    }),
    clause("reduction", |jit, numbers| {
        let (x, mut y) = slices(numbers);
        all.plan_on(jit, &x, &mut y, numbers[2], numbers[3])
    }),
    clause("scan", |jit, numbers| {
        let (x, mut y) = slices(numbers);
        scan.plan_on(jit, &x, &mut y, numbers[2], numbers[3])
    }),
    clause("privatize", |jit, numbers| {
        let (x, mut y) = slices(numbers);
        own.plan_on(jit, &x, &mut y, numbers[2], numbers[3])
    }),
    clause("peel", |jit, numbers| {
        let (x, mut y) = slices(numbers);
        ends.plan_on(jit, &x, &mut y, numbers[2], numbers[3])
    }),
];

const fn clause(name: &'static str, plan: Plan) -> Directed {
    Directed::of(name, include_str!("directed.rs"), plan)
}

fn slices(numbers: &[usize]) -> (Vec<u32>, Vec<u32>) {
    (vec![0; numbers[0]], vec![0; numbers[1]])
}

#[kiln::offload]
fn lanes(x: &[u32], y: &mut [u32], rows: usize, columns: usize) {
    #[kernel(tblock(rows.div_ceil(BLOCK / 32)), thread(BLOCK))]
    {
        #[loop_partition(over_tblock, over_warp)]
        for row in 0..rows {
            #[loop_partition(over_lane, reduction(y))]
            for column in 0..columns {
                y[row] += x[row * columns + column];
            }
        }
    }
}

#[kiln::offload]
fn all(x: &[u32], y: &mut [u32], rows: usize, columns: usize) {
    #[kernel(tblock(BLOCKS), thread(BLOCK))]
    {
        #[loop_partition(over_tblock, over_thread, reduction(y))]
        for i in 0..rows * columns {
            y[0] += x[i];
        }
    }
}

#[kiln::offload]
fn scan(x: &[u32], y: &mut [u32], rows: usize, columns: usize) {
    #[kernel(tblock(rows), thread(BLOCK))]
    {
        #[loop_partition(over_tblock)]
        for row in 0..rows {
            let mut sum = 0;
            #[loop_partition(over_thread, scan(sum))]
            for column in 0..columns {
                sum += x[row * columns + column];
                y[row * columns + column] = sum;
            }
        }
    }
}

#[kiln::offload]
fn own(x: &[u32], y: &mut [u32], rows: usize, columns: usize) {
    let mut bins: Vec<u32> = vec![0; BINS];
    global!(alloc bins);
    #[kernel(tblock(columns.div_ceil(BLOCK)), thread(BLOCK))]
    {
        #[loop_partition(over_tblock, over_thread)]
        #[loop_transform(privatize(bins))]
        for column in 0..columns {
            for bin in 0..bins.len() {
                bins[bin] = 0;
            }
            for row in 0..COUNTED.min(rows) {
                bins[x[row * columns + column] as usize % BINS] += 1;
            }
            let mut largest = 0;
            for bin in 0..bins.len() {
                largest = largest.max(bins[bin]);
            }
            y[column] = largest;
        }
    }
}

#[kiln::offload]
fn ends(x: &[u32], y: &mut [u32], rows: usize, columns: usize) {
    #[kernel(tblock(columns.div_ceil(BLOCK)), thread(BLOCK))]
    {
        #[loop_partition(over_tblock, over_thread)]
        for column in 0..columns {
            #[loop_transform(peel_first(1), peel_last(1))]
            for row in 0..rows {
                let at = row * columns + column;
                let above = if row == 0 { 0 } else { x[at - columns] };
                let below = if row + 1 == rows { 0 } else { x[at + columns] };
                y[at] = above + 2 * x[at] + below;
            }
        }
    }
}
