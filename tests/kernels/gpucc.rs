//! The micro-kernels of "gpucc: An Open-Source GPGPU Compiler" (Wu et al. 2016), sections 3.1 to 3.6: with `u32` and `i32` as
//! indices, as loops and unrolled by hand. `tests/nvcc/gpucc.rs` has what becomes of them beside nvcc's; they run on every
//! device in the suite.

use kiln::core::args::Arg;
use kiln::core::front::AsKernel;

/// Does something with a kernel and arguments of it.
pub type Act<'a> = &'a mut dyn FnMut(&dyn AsKernel, &[Arg<'_>]) -> kiln::Result<()>;

/// The kernels with an integer type for indices and one of 64 bits.
macro_rules! kernels {
    ($module:ident, $int:ident, $wide:ident) => {
        /// The kernels with one of these types.
        pub mod $module {
            use kiln::prelude::*;

            #[device_fn]
            fn fill(v: &mut [f32; 8], x: &[f32], first: $int) {
                for i in 0..8 {
                    v[i] = x[first as usize + i];
                }
            }

            #[device_fn]
            fn sum_of(x: &[f32], n: $int) -> f32 {
                let mut sum = 0.0;
                for i in 0..n {
                    sum += x[i as usize];
                }
                sum
            }

            #[kernel]
            fn local_looped(x: &[f32], out: &mut [f32]) {
                let t = global_id().x as $int;
                let (mut v, mut sum) = ([0.0f32; 8], 0.0);
                for i in 0..8 {
                    v[i as usize] = x[(t * 8 + i) as usize];
                }
                for i in 0..8usize {
                    sum += v[i] * v[7 - i];
                }
                out[t as usize] = sum;
            }

            #[kernel]
            fn local_unrolled(x: &[f32], out: &mut [f32]) {
                let t = global_id().x as $int;
                let v = [
                    x[(t * 4) as usize],
                    x[(t * 4 + 1) as usize],
                    x[(t * 4 + 2) as usize],
                    x[(t * 4 + 3) as usize],
                ];
                out[t as usize] = v[0] * v[3] + v[1] * v[2] + v[2] * v[1] + v[3] * v[0];
            }

            #[kernel]
            fn local_called(x: &[f32], out: &mut [f32]) {
                let t = global_id().x as $int;
                let (mut v, mut sum) = ([0.0f32; 8], 0.0);
                fill(&mut v, x, t * 8);
                for i in 0..8usize {
                    sum += v[i] * v[7 - i];
                }
                out[t as usize] = sum;
            }

            #[kernel]
            fn spaces(x: &[f32], out: &mut [f32], n: $int) {
                let tile = shared!([f32; 256]);
                let t = thread_idx().x as $int;
                tile[t as usize] = x[t as usize];
                barrier();
                out[t as usize] = sum_of(tile, n);
            }

            #[kernel]
            fn dead_store(out: &mut [f32]) {
                let tile = shared!([f32; 256]);
                let t = thread_idx().x as $int;
                tile[t as usize] = 1.0;
                out[t as usize] = 2.0;
                tile[t as usize] = 3.0;
                barrier();
                out[t as usize] = tile[(255 - t) as usize];
            }

            #[kernel]
            fn accumulated(x: &[f32], out: &mut [f32], n: $int) {
                let tile = shared!([f32; 256]);
                let t = thread_idx().x as $int;
                tile[t as usize] = x[t as usize];
                barrier();
                for j in 0..n {
                    out[t as usize] += tile[j as usize] * tile[t as usize];
                }
            }

            #[kernel]
            fn neighbours_looped(a: &[f32], out: &mut [f32], n: $int) {
                let (b, c) = (global_id().y as $int, global_id().x as $int);
                let mut sum = 0.0;
                for x in 0..3 {
                    for y in 0..3 {
                        sum += a[((b + x) * n + c + y) as usize];
                    }
                }
                out[(b * n + c) as usize] = sum;
            }

            #[kernel]
            fn neighbours_unrolled(a: &[f32], out: &mut [f32], n: $int) {
                let (b, c) = (global_id().y as $int, global_id().x as $int);
                let mut sum = a[(b * n + c) as usize]
                    + a[(b * n + c + 1) as usize]
                    + a[(b * n + c + 2) as usize];
                sum += a[((b + 1) * n + c) as usize]
                    + a[((b + 1) * n + c + 1) as usize]
                    + a[((b + 1) * n + c + 2) as usize];
                sum += a[((b + 2) * n + c) as usize]
                    + a[((b + 2) * n + c + 1) as usize]
                    + a[((b + 2) * n + c + 2) as usize];
                out[(b * n + c) as usize] = sum;
            }

            #[kernel]
            fn strides_looped(a: &[f32], out: &mut [f32], n: $int) {
                let t = global_id().x as $int;
                let mut sum = 0.0;
                for i in 1..5 {
                    sum += a[(t * i + n * i) as usize];
                }
                out[t as usize] = sum;
            }

            #[kernel]
            fn strides_unrolled(a: &[f32], out: &mut [f32], n: $int) {
                let t = global_id().x as $int;
                out[t as usize] = a[(t + n) as usize]
                    + a[(t * 2 + n * 2) as usize]
                    + a[(t * 3 + n * 3) as usize]
                    + a[(t * 4 + n * 4) as usize];
            }

            #[kernel]
            fn speculated(a: &[f32], out: &mut [f32], j: $int, flags: $int) {
                let i = global_id().x as $int;
                let mut sum = 0.0;
                if flags & 1 != 0 {
                    sum += a[i as usize];
                }
                if flags & 2 != 0 {
                    sum += a[(i + j) as usize];
                }
                out[i as usize] = sum;
            }

            #[kernel]
            fn divided(a: &[$wide], b: &[$wide], out: &mut [$wide]) {
                let i = global_id().x as $int;
                out[i as usize] = a[i as usize] / b[i as usize];
            }

            /// What the kernels read and write.
            pub struct Memory {
                /// Read by all but one.
                pub x: Buffer<f32>,
                /// Written by all but one.
                pub out: Buffer<f32>,
                /// What that one divides.
                pub a: Buffer<$wide>,
                /// By what.
                pub b: Buffer<$wide>,
                /// What that gives.
                pub quotients: Buffer<$wide>,
            }

            impl Memory {
                /// Hands the kernel of a name to a function, with its arguments: memory, a number, and for one that asks bits
                /// of it these flags.
                pub fn with(
                    &mut self,
                    name: &str,
                    [n, flags]: [$int; 2],
                    act: super::Act<'_>,
                ) -> kiln::Result<()> {
                    let Memory {
                        x,
                        out,
                        a,
                        b,
                        quotients,
                    } = self;
                    let x = &*x;
                    match name {
                        "local_looped" => act(&local_looped, args!(x, out)),
                        "local_unrolled" => act(&local_unrolled, args!(x, out)),
                        "local_called" => act(&local_called, args!(x, out)),
                        "spaces" => act(&spaces, args!(x, out, n)),
                        "dead_store" => act(&dead_store, args!(out)),
                        "accumulated" => act(&accumulated, args!(x, out, n)),
                        "neighbours_looped" => act(&neighbours_looped, args!(x, out, n)),
                        "neighbours_unrolled" => act(&neighbours_unrolled, args!(x, out, n)),
                        "strides_looped" => act(&strides_looped, args!(x, out, n)),
                        "strides_unrolled" => act(&strides_unrolled, args!(x, out, n)),
                        "speculated" => act(&speculated, args!(x, out, n, flags)),
                        "divided" => act(&divided, args!(&*a, &*b, quotients)),
                        _ => panic!("no kernel `{name}`"),
                    }
                }
            }
        }
    };
}

kernels! { of_u32, u32, u64 }
kernels! { of_i32, i32, i64 }
