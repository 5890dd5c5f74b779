//! Sums and the place of the largest: a grid-stride loop, shuffles in each warp, shared memory for the warps of a block,
//! and a second launch for the blocks ("Scalable Parallel Programming with CUDA", figure 10, as one writes it today).
//! Of `i32`, `f32`, `f64`, a pair of `i64`, and a value with its place, of equal ones the first.

use kiln::core::front::AsKernel;
use kiln::prelude::*;

use crate::data::{Random, close, close_f64, equal};
use crate::{Benchmark, Bound, Checked, Launch, Launcher, Size, Workload};

const TWIN: &str = include_str!("twin.cu");

pub const SUM_I32: Benchmark = Benchmark {
    name: "reduce i32",
    bound: Bound::Memory,
    source: include_str!("mod.rs"),
    twin: TWIN,
    make: |jit, size| {
        let host = Random::new(16).integers(length(size, 28), 1000);
        // The largest input's sum is beyond 32 bits, and wraps around on the device, too.
        let wanted = vec![host.iter().fold(0, |sum: i32, x| sum.wrapping_add(*x))];
        Reduce::boxed(jit, sums_by("sum_i32"), host, wanted, |found, wanted| {
            equal(found, wanted)
        })
    },
};

pub const SUM_F32: Benchmark = Benchmark {
    name: "reduce f32",
    bound: Bound::Memory,
    source: include_str!("mod.rs"),
    twin: TWIN,
    make: |jit, size| {
        let host = Random::new(17).units(length(size, 28));
        let wanted = vec![host.iter().map(|x| f64::from(*x)).sum::<f64>() as f32];
        Reduce::boxed(jit, sums_by("sum_f32"), host, wanted, |found, wanted| {
            close(found, wanted, 1e-3)
        })
    },
};

pub const SUM_F64: Benchmark = Benchmark {
    name: "reduce f64",
    bound: Bound::Memory,
    source: include_str!("mod.rs"),
    twin: TWIN,
    make: |jit, size| {
        let host = Random::new(18).units(length(size, 27));
        let host: Vec<f64> = host.into_iter().map(f64::from).collect();
        let wanted: Vec<f64> = vec![host.iter().sum()];
        Reduce::boxed(jit, sums_by("sum_f64"), host, wanted, |found, wanted| {
            close_f64(found, wanted, 1e-9)
        })
    },
};

pub const SUM_PAIR: Benchmark = Benchmark {
    name: "reduce pair of i64",
    bound: Bound::Memory,
    source: include_str!("mod.rs"),
    twin: TWIN,
    make: |jit, size| {
        let mut random = Random::new(23);
        // More than 32 bits hold, of both signs.
        let mut number = || random.next() as i64 >> 24;
        let pairs = (0..length(size, 26)).map(|_| Pair {
            a: number(),
            b: number(),
        });
        let host: Vec<Pair> = pairs.collect();
        let wanted = host.iter().fold(Pair { a: 0, b: 0 }, |sum, pair| Pair {
            a: sum.a + pair.a,
            b: sum.b + pair.b,
        });
        let steps: [Step; 2] = [(&block_pairs, "sum_pair"); 2];
        Reduce::boxed(jit, steps, host, vec![wanted], |found, wanted| {
            let numbers = |pairs: &[Pair]| [pairs[0].a, pairs[0].b];
            equal(&numbers(found), &numbers(wanted))
        })
    },
};

pub const ARGMAX: Benchmark = Benchmark {
    name: "reduce argmax",
    bound: Bound::Memory,
    source: include_str!("mod.rs"),
    twin: TWIN,
    make: |jit, size| {
        // Few different numbers, so that the largest is there often.
        let host = Random::new(24).integers(length(size, 28), 1000);
        let host: Vec<f32> = host.into_iter().map(|n| n as f32 - 2000.0).collect();
        let value = host.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let place = host.iter().position(|x| *x == value).unwrap_or_default() as u32;
        let steps: [Step; 2] = [
            (&block_best, "argmax"),
            (&best_of_blocks, "argmax_of_blocks"),
        ];
        Reduce::boxed(
            jit,
            steps,
            host,
            vec![Best { value, place }],
            |found, wanted| {
                equal(&[found[0].place], &[wanted[0].place])?;
                equal(&[found[0].value], &[wanted[0].value])
            },
        )
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

#[derive(Copy, Clone, KernelType)]
#[repr(C)]
struct Pair {
    a: i64,
    b: i64,
}

/// The sum with the lane `apart` above.
#[device_fn]
fn with_above(own: Pair, apart: u32) -> Pair {
    Pair {
        a: own.a + shuffle_down(FULL_MASK, own.a, apart, 32),
        b: own.b + shuffle_down(FULL_MASK, own.b, apart, 32),
    }
}

/// [`block_sums`] of pairs.
#[kernel]
fn block_pairs(x: &[Pair], sums: &mut [Pair]) {
    let of_warps = shared!([Pair; WARPS]);
    let mut sum = Pair { a: 0, b: 0 };
    for i in (global_id().x..x.len()).step_by(global_size().x) {
        let own = x[i];
        sum.a += own.a;
        sum.b += own.b;
    }
    for apart in [16, 8, 4, 2, 1] {
        sum = with_above(sum, apart);
    }
    let (warp, lane) = (thread_idx().x / 32, thread_idx().x % 32);
    if lane == 0 {
        of_warps[warp] = sum;
    }
    barrier();
    if warp == 0 {
        sum = Pair { a: 0, b: 0 };
        if lane < WARPS {
            sum = of_warps[lane];
        }
        for apart in [4, 2, 1] {
            sum = with_above(sum, apart);
        }
        if lane == 0 {
            sums[block_idx().x] = sum;
        }
    }
}

/// A number, and where it is.
#[derive(Copy, Clone, KernelType)]
#[repr(C)]
struct Best {
    value: f32,
    place: u32,
}

/// What every number is better than.
const NONE: Best = Best {
    value: f32::NEG_INFINITY,
    place: u32::MAX,
};

/// The larger of both, of equal ones the first.
#[device_fn]
fn better(a: Best, b: Best) -> Best {
    if b.value > a.value || b.value == a.value && b.place < a.place {
        b
    } else {
        a
    }
}

/// The better of a lane's own and that of the lane `apart` above.
#[device_fn]
fn better_above(own: Best, apart: u32) -> Best {
    let above = Best {
        value: shuffle_down(FULL_MASK, own.value, apart, 32),
        place: shuffle_down(FULL_MASK, own.place, apart, 32),
    };
    better(own, above)
}

/// Writes the best of a block's threads; `of_warps` is shared memory.
#[device_fn]
fn store_best_of_block(own: Best, of_warps: &mut [Best], best: &mut [Best]) {
    let mut own = own;
    for apart in [16, 8, 4, 2, 1] {
        own = better_above(own, apart);
    }
    let (warp, lane) = (thread_idx().x / 32, thread_idx().x % 32);
    if lane == 0 {
        of_warps[warp] = own;
    }
    barrier();
    if warp == 0 {
        own = NONE;
        if lane < WARPS {
            own = of_warps[lane];
        }
        for apart in [4, 2, 1] {
            own = better_above(own, apart);
        }
        if lane == 0 {
            best[block_idx().x] = own;
        }
    }
}

/// The largest of each block's elements.
#[kernel]
fn block_best(x: &[f32], best: &mut [Best]) {
    let of_warps = shared!([Best; WARPS]);
    let mut own = NONE;
    for i in (global_id().x..x.len()).step_by(global_size().x) {
        // Later ones are no better for being equal.
        if x[i] > own.value {
            own = Best {
                value: x[i],
                place: i as u32,
            };
        }
    }
    store_best_of_block(own, of_warps, best);
}

/// The best of what the blocks have found.
#[kernel]
fn best_of_blocks(blocks: &[Best], best: &mut [Best]) {
    let of_warps = shared!([Best; WARPS]);
    let mut own = NONE;
    for i in (global_id().x..blocks.len()).step_by(global_size().x) {
        own = better(own, blocks[i]);
    }
    store_best_of_block(own, of_warps, best);
}

/// A kernel, and its name in the twin.
type Step = (&'static dyn AsKernel, &'static str);

/// Sums of blocks, twice.
fn sums_by(twin: &'static str) -> [Step; 2] {
    [(&block_sums, twin); 2]
}

type Compare<T> = fn(&[T], &[T]) -> Checked;

struct Reduce<X: KernelType, T: KernelType> {
    /// What is done with the elements, and with what comes of each block.
    steps: [Step; 2],
    x: Buffer<X>,
    of_blocks: Buffer<T>,
    result: Buffer<T>,
    wanted: Vec<T>,
    compare: Compare<T>,
}

impl<X: KernelType, T: KernelType> Reduce<X, T> {
    fn boxed(
        jit: &Jit,
        steps: [Step; 2],
        host: Vec<X>,
        wanted: Vec<T>,
        compare: Compare<T>,
    ) -> kiln::Result<Box<dyn Workload>> {
        Ok(Box::new(Reduce {
            steps,
            x: jit.upload(&host)?,
            of_blocks: jit.zeros(BLOCKS.min(host.len().div_ceil(BLOCK)))?,
            result: jit.zeros(1)?,
            wanted,
            compare,
        }))
    }
}

impl<X: KernelType, T: KernelType> Workload for Reduce<X, T> {
    fn run(&mut self, launcher: &mut dyn Launcher) -> kiln::Result<()> {
        let (n, blocks) = (self.x.len(), self.of_blocks.len());
        let [of_elements, of_blocks] = self.steps;
        launcher.launch(&Launch {
            kernel: of_elements.0,
            twin: of_elements.1,
            config: LaunchConfig::new(blocks, BLOCK),
            args: args!(&self.x, &mut self.of_blocks),
            lengths: &[n],
        })?;
        launcher.launch(&Launch {
            kernel: of_blocks.0,
            twin: of_blocks.1,
            config: LaunchConfig::new(1, BLOCK),
            args: args!(&self.of_blocks, &mut self.result),
            lengths: &[blocks],
        })
    }

    fn check(&mut self) -> Checked {
        (self.compare)(&self.result.to_vec()?, &self.wanted)
    }
}
