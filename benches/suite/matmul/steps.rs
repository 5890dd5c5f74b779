//! The product on its way from sequential loops to tuned ones, as the guide's chapter goes: directive by directive.

use kiln::directives::Report;

use crate::directed::{Directed, Plan};

/// The steps behind the sequential function, each beside the twin that has its sums in registers.
pub(crate) const STEPS: [Directed; 6] = [
    step("2: a row a block", |jit, numbers| {
        planned(numbers, |(a, b, c), [m, n, k]| {
            rows.plan_on(jit, a, b, c, m, n, k)
        })
    }),
    step("3: an element a thread", |jit, numbers| {
        planned(numbers, |(a, b, c), [m, n, k]| {
            elements.plan_on(jit, a, b, c, m, n, k)
        })
    }),
    step("4: tiles in shared memory", |jit, numbers| {
        planned(numbers, |(a, b, c), [m, n, k]| {
            tiles.plan_on(jit, a, b, c, m, n, k)
        })
    }),
    step("5: four columns a thread", |jit, numbers| {
        planned(numbers, |(a, b, c), [m, n, k]| {
            columns.plan_on(jit, a, b, c, m, n, k)
        })
    }),
    step("6: a patch a thread", |jit, numbers| {
        planned(numbers, |(a, b, c), [m, n, k]| {
            patches.plan_on(jit, a, b, c, m, n, k)
        })
    }),
    step("7: unrolled", |jit, numbers| {
        planned(numbers, |(a, b, c), [m, n, k]| {
            unrolled.plan_on(jit, a, b, c, m, n, k)
        })
    }),
];

const fn step(name: &'static str, plan: Plan) -> Directed {
    Directed::of("matmul registers", include_str!("steps.rs"), plan).named(name)
}

/// The matrices of a plan.
type Matrices<'a> = (&'a [f32], &'a [f32], &'a mut [f32]);

fn planned(
    numbers: &[usize],
    plan: impl FnOnce(Matrices<'_>, [usize; 3]) -> kiln::Result<Report>,
) -> kiln::Result<Report> {
    let [m, n, k] = [numbers[3], numbers[4], numbers[5]];
    let (a, b, mut c) = (vec![0.0; m * k], vec![0.0; k * n], vec![0.0; m * n]);
    plan((&a, &b, &mut c), [m, n, k])
}

#[kiln::offload]
fn rows(a: &[f32], b: &[f32], c: &mut [f32], m: usize, n: usize, k: usize) {
    #[kernel(tblock(m), thread(256))]
    {
        #[loop_partition(over_tblock)]
        for i in 0..m {
            #[loop_partition(over_thread)]
            for j in 0..n {
                let mut sum = 0.0;
                for kk in 0..k {
                    sum += a[i * k + kk] * b[kk * n + j];
                }
                c[i * n + j] = sum;
            }
        }
    }
}

#[kiln::offload]
fn elements(a: &[f32], b: &[f32], c: &mut [f32], m: usize, n: usize, k: usize) {
    #[kernel(tblock(m.div_ceil(16), n.div_ceil(16)), thread(16, 16))]
    {
        #[loop_partition(over_tblock, over_thread)]
        for i in 0..m {
            #[loop_partition(over_tblock, over_thread)]
            for j in 0..n {
                let mut sum = 0.0;
                for kk in 0..k {
                    sum += a[i * k + kk] * b[kk * n + j];
                }
                c[i * n + j] = sum;
            }
        }
    }
}

#[kiln::offload]
fn tiles(a: &[f32], b: &[f32], c: &mut [f32], m: usize, n: usize, k: usize) {
    #[kernel(tblock(m.div_ceil(16), n.div_ceil(16)), thread(16, 16))]
    {
        #[loop_partition(over_tblock, over_thread)]
        for i in 0..m {
            #[loop_partition(over_tblock, over_thread)]
            for j in 0..n {
                let mut sum = 0.0;
                #[shared(copyin(a, b))]
                #[loop_transform(tile(16))]
                for kk in 0..k {
                    sum += a[i * k + kk] * b[kk * n + j];
                }
                c[i * n + j] = sum;
            }
        }
    }
}

#[kiln::offload]
fn columns(a: &[f32], b: &[f32], c: &mut [f32], m: usize, n: usize, k: usize) {
    #[kernel(tblock(m.div_ceil(16), n.div_ceil(64)), thread(16, 16))]
    {
        #[loop_partition(over_tblock, over_thread)]
        for i in 0..m {
            #[loop_partition(over_tblock, over_thread, coarsen(4))]
            for j in 0..n {
                let mut sum = 0.0;
                #[shared(copyin(a, b))]
                #[loop_transform(tile(16))]
                for kk in 0..k {
                    sum += a[i * k + kk] * b[kk * n + j];
                }
                c[i * n + j] = sum;
            }
        }
    }
}

#[kiln::offload]
fn patches(a: &[f32], b: &[f32], c: &mut [f32], m: usize, n: usize, k: usize) {
    #[kernel(tblock(m.div_ceil(128), n.div_ceil(128)), thread(16, 16))]
    {
        #[loop_partition(over_tblock, over_thread, coarsen(8))]
        for i in 0..m {
            #[loop_partition(over_tblock, over_thread, coarsen(8))]
            for j in 0..n {
                let mut sum = 0.0;
                #[shared(copyin(a, b))]
                #[loop_transform(tile(8))]
                for kk in 0..k {
                    sum += a[i * k + kk] * b[kk * n + j];
                }
                c[i * n + j] = sum;
            }
        }
    }
}

#[kiln::offload]
fn unrolled(a: &[f32], b: &[f32], c: &mut [f32], m: usize, n: usize, k: usize) {
    #[kernel(tblock(m.div_ceil(128), n.div_ceil(128)), thread(16, 16))]
    {
        #[loop_partition(over_tblock, over_thread, coarsen(8))]
        for i in 0..m {
            #[loop_partition(over_tblock, over_thread, coarsen(8))]
            for j in 0..n {
                let mut sum = 0.0;
                #[shared(copyin(a, b))]
                #[loop_transform(tile(8), unroll(4))]
                for kk in 0..k {
                    sum += a[i * k + kk] * b[kk * n + j];
                }
                c[i * n + j] = sum;
            }
        }
    }
}
