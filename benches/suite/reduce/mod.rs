//! Sums and the place of the largest: a grid-stride loop, shuffles in each warp, shared memory for the warps of a block,
//! and a second launch for the blocks ("Scalable Parallel Programming with CUDA", figure 10, as one writes it today).
//! Of `i32`, `f32`, `f64`, a pair of `i64`, and a value with its place.

use kiln::prelude::*;

use crate::data::{Random, close, close_f64, equal};
use crate::{Benchmark, Bound, Checked, Launch, Launcher, Size, Workload};

const TWIN: &str = include_str!("twin.cu");

pub const SUM_I32: Benchmark = Benchmark {
    name: "reduce i32",
    bound: Bound::Memory,
    twin: TWIN,
    make: |jit, size| {
        let host = Random::new(16).integers(length(size, 28), 1000);
        let wanted = vec![host.iter().sum()];
        Reduce::boxed(jit, "sum_i32", host, wanted, |found, wanted| {
            equal(found, wanted)
        })
    },
};

pub const SUM_F32: Benchmark = Benchmark {
    name: "reduce f32",
    bound: Bound::Memory,
    twin: TWIN,
    make: |jit, size| {
        let host = Random::new(17).units(length(size, 28));
        let wanted = vec![host.iter().map(|x| f64::from(*x)).sum::<f64>() as f32];
        Reduce::boxed(jit, "sum_f32", host, wanted, |found, wanted| {
            close(found, wanted, 1e-3)
        })
    },
};

pub const SUM_F64: Benchmark = Benchmark {
    name: "reduce f64",
    bound: Bound::Memory,
    twin: TWIN,
    make: |jit, size| {
        let host = Random::new(18).units(length(size, 27));
        let host: Vec<f64> = host.into_iter().map(f64::from).collect();
        let wanted = vec![host.iter().sum()];
        Reduce::boxed(jit, "sum_f64", host, wanted, |found, wanted| {
            close_f64(found, wanted, 1e-9)
        })
    },
};

const BLOCK: usize = 256;
const WARPS: usize = BLOCK / 32;
/// Blocks of the first launch.
const BLOCKS: usize = 2048;

fn length(size: Size, most: u32) -> usize {
    size.of(5000, 1 << 22, 1 << most)
}

/// The sum of each block's elements.
#[kernel]
fn block_sums<T: Num>(x: &[T], sums: &mut [T]) {
    let of_warps = shared!([T; WARPS]);
    let mut sum = T::ZERO;
    for i in (global_id().x..x.len()).step_by(global_size().x) {
        sum += x[i];
    }
    for apart in [16, 8, 4, 2, 1] {
        sum += shuffle_down(FULL_MASK, sum, apart, 32);
    }
    let (warp, lane) = (thread_idx().x / 32, thread_idx().x % 32);
    if lane == 0 {
        of_warps[warp] = sum;
    }
    barrier();
    if warp == 0 {
        sum = if lane < WARPS {
            of_warps[lane]
        } else {
            T::ZERO
        };
        for apart in [4, 2, 1] {
            sum += shuffle_down(FULL_MASK, sum, apart, 32);
        }
        if lane == 0 {
            sums[block_idx().x] = sum;
        }
    }
}

type Compare<T> = fn(&[T], &[T]) -> Checked;

struct Reduce<T: KernelType> {
    twin: &'static str,
    x: Buffer<T>,
    sums: Buffer<T>,
    total: Buffer<T>,
    wanted: Vec<T>,
    compare: Compare<T>,
}

impl<T: KernelType> Reduce<T> {
    fn boxed(
        jit: &Jit,
        twin: &'static str,
        host: Vec<T>,
        wanted: Vec<T>,
        compare: Compare<T>,
    ) -> kiln::Result<Box<dyn Workload>> {
        Ok(Box::new(Reduce {
            twin,
            x: jit.upload(&host)?,
            sums: jit.zeros(BLOCKS.min(host.len().div_ceil(BLOCK)))?,
            total: jit.zeros(1)?,
            wanted,
            compare,
        }))
    }
}

impl<T: KernelType> Workload for Reduce<T> {
    fn run(&mut self, launcher: &mut dyn Launcher) -> kiln::Result<()> {
        let (n, blocks) = (self.x.len(), self.sums.len());
        launcher.launch(&Launch {
            kernel: &block_sums,
            twin: self.twin,
            config: LaunchConfig::new(blocks, BLOCK),
            args: args!(&self.x, &mut self.sums),
            lengths: &[n],
        })?;
        launcher.launch(&Launch {
            kernel: &block_sums,
            twin: self.twin,
            config: LaunchConfig::new(1, BLOCK),
            args: args!(&self.sums, &mut self.total),
            lengths: &[blocks],
        })
    }

    fn check(&mut self) -> Checked {
        (self.compare)(&self.total.to_vec()?, &self.wanted)
    }
}
