//! The sum of integers by a tree in shared memory and one atomic addition a block ("Scalable Parallel Programming with
//! CUDA", figure 10). [`reduce`](crate::reduce) has what one writes today.

use kiln::prelude::*;

use crate::data::{Random, equal};
use crate::{Benchmark, Bound, Checked, Launch, Launcher, Workload};

pub const PLUS_REDUCE: Benchmark = Benchmark {
    name: "plus_reduce",
    bound: Bound::Memory,
    source: include_str!("mod.rs"),
    twin: include_str!("twin.cu"),
    make: |jit, size| {
        let length = size.of(5000, 1 << 22, 1 << 28);
        let host = Random::new(25).integers(length, 1000);
        Ok(Box::new(PlusReduce {
            input: jit.upload(&host)?,
            total: jit.zeros(1)?,
            // The sum of the largest input is beyond 32 bits, and wraps around on the device, too.
            wanted: host.iter().fold(0, |sum: i32, x| sum.wrapping_add(*x)),
        }))
    },
};

const BLOCK: usize = 256;

#[kernel]
fn plus_reduce(input: &[i32], total: &mut [i32]) {
    let x = shared!([i32; BLOCK]);
    let (i, thread) = (global_id().x, thread_idx().x);
    x[thread] = if i < input.len() { input[i] } else { 0 };
    barrier();
    let mut s = block_dim().x / 2;
    while s > 0 {
        if thread < s {
            x[thread] += x[thread + s];
        }
        barrier();
        s /= 2;
    }
    if thread == 0 {
        atomic_add(&mut total[0], x[0]);
    }
}

struct PlusReduce {
    input: Buffer<i32>,
    total: Buffer<i32>,
    wanted: i32,
}

impl Workload for PlusReduce {
    fn reset(&mut self, _: &mut dyn Launcher) -> kiln::Result<()> {
        self.total.write(&[0])
    }

    fn run(&mut self, launcher: &mut dyn Launcher) -> kiln::Result<()> {
        let n = self.input.len();
        launcher.launch(&Launch {
            kernel: &plus_reduce,
            twin: "plus_reduce",
            config: LaunchConfig::new(n.div_ceil(BLOCK), BLOCK),
            args: args!(&self.input, &mut self.total),
            lengths: &[n],
        })
    }

    fn check(&mut self) -> Checked {
        equal(&self.total.to_vec()?, &[self.wanted])
    }
}
