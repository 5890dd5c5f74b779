//! The product as its loops, with directives (hiCUDA's Figure 3): nothing staged; in tiles of 16 columns and rows; in tiles
//! whose threads each have 8 x 8 elements.

use kiln::directives::Report;
use kiln::prelude::*;

use crate::directed::{Directed, Plan};

pub(crate) const NAIVE: Directed = directed("matmul naive", of_naive);
pub(crate) const TILED: Directed = directed("matmul tiled", of_tiled);
pub(crate) const TILED_REMAINDER: Directed = directed("matmul tiled, remainder", of_tiled);
pub(crate) const REGISTERS: Directed = directed("matmul registers", of_registers);
pub(crate) const REGISTERS_REMAINDER: Directed =
    directed("matmul registers, remainder", of_registers);

const fn directed(name: &'static str, plan: Plan) -> Directed {
    Directed::of(name, include_str!("directed.rs"), plan)
}

fn of_naive(jit: &Jit, numbers: &[usize]) -> kiln::Result<Report> {
    let [m, n, k] = [numbers[3], numbers[4], numbers[5]];
    let (a, b, mut c) = (vec![0.0; m * k], vec![0.0; k * n], vec![0.0; m * n]);
    naive.plan_on(jit, &a, &b, &mut c, m, n, k)
}

#[kiln::offload]
fn naive(a: &[f32], b: &[f32], c: &mut [f32], m: usize, n: usize, k: usize) {
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

fn of_tiled(jit: &Jit, numbers: &[usize]) -> kiln::Result<Report> {
    let [m, n, k] = [numbers[3], numbers[4], numbers[5]];
    let (a, b, mut c) = (vec![0.0; m * k], vec![0.0; k * n], vec![0.0; m * n]);
    tiled.plan_on(jit, &a, &b, &mut c, m, n, k)
}

#[kiln::offload]
fn tiled(a: &[f32], b: &[f32], c: &mut [f32], m: usize, n: usize, k: usize) {
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

fn of_registers(jit: &Jit, numbers: &[usize]) -> kiln::Result<Report> {
    let [m, n, k] = [numbers[3], numbers[4], numbers[5]];
    let (a, b, mut c) = (vec![0.0; m * k], vec![0.0; k * n], vec![0.0; m * n]);
    registers.plan_on(jit, &a, &b, &mut c, m, n, k)
}

#[kiln::offload]
fn registers(a: &[f32], b: &[f32], c: &mut [f32], m: usize, n: usize, k: usize) {
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
