//! Every operation of a warp at every type, compiled and interpreted, bit by bit: also where a GPU
//! may give anything, as for a shuffle from a lane that takes no part.
//!
//! Each kernel does its operations at five places: where all lanes are, in both sides of a branch,
//! where lanes have member masks of their own, and after some lanes have ended.

use std::cell::Cell;

use half::{bf16, f16};
use kiln::core::args::{Arg, IntoArg};
use kiln::core::ir::{
    self, Effects, Family, IntrinsicDef, Lanes, Meaning, Scalar, TypePattern, Uniformity,
    WARP_LANES, WarpArgs,
};
use kiln::core::runtime::CpuOptions;
use kiln::core::target::Barriers;
use kiln::prelude::*;

/// Whole warps; a short last warp of a block with several dimensions.
const SHAPES: [[u32; 3]; 2] = [[64, 1, 1], [5, 3, 3]];
const PLACES: usize = 5;

/// A number without a pattern for each index.
fn noise(i: usize) -> u32 {
    (i as u32 + 1).wrapping_mul(0x9e37_79b9) >> 7
}

/// Where a kernel's operations leave their results: slot by slot, an element a thread.
struct Results<'k> {
    out: Val<'k>,
    thread: Val<'k>,
    threads: Val<'k>,
    slots: Cell<u32>,
}

impl<'k> Results<'k> {
    fn new(k: &'k KernelBuilder, ty: Type) -> Self {
        let (at, of) = (k.thread_idx(), k.block_dim());
        Results {
            out: k.slice_mut("out", ty),
            thread: (at.z() * of.y() + at.y()) * of.x() + at.x(),
            threads: k.param("threads", Type::U32),
            slots: Cell::new(0),
        }
    }

    fn put(&self, value: Val<'k>) {
        let slot = self.slots.replace(self.slots.get() + 1);
        let at = self.threads * slot + self.thread;
        self.out.at(at).set(value);
    }
}

/// Does something at all places, given the member mask.
fn places<'k>(k: &'k KernelBuilder, thread: Val<'k>, act: impl Fn(Val<'k>)) {
    let all = k.lit(Type::U32, FULL_MASK);
    act(all);
    let side = ((thread * 5u32) & 8).eq(0);
    let (with, without) = (k.ballot(all, side), k.ballot(all, !side));
    k.if_(side, || act(with)).else_(|| act(without));
    act(k.match_any(all, (thread / 3) % 4));
    k.if_((thread % 5).eq(2), || k.return_());
    act(all);
}

fn device(options: CpuOptions) -> Jit {
    Jit::on(Device::cpu_with(options))
}

/// Gives the arguments that follow `out` and `threads`, once for each launch.
type Launches<'l> = &'l dyn Fn(&Jit, usize, &mut dyn FnMut(&[Arg<'_>]));

/// Runs a kernel with `slots` results of each thread at each place, and compares.
fn compare<T: KernelType>(
    kernel: &Kernel,
    slots: usize,
    zero: T,
    bits: fn(T) -> u64,
    launches: Launches<'_>,
) {
    let interpreter = device(CpuOptions::default().interpret(true));
    let compiled = device(CpuOptions::default());
    let coroutines = device(CpuOptions::default().barriers(Barriers::Coroutines));
    for shape in SHAPES {
        let threads = shape.iter().product::<u32>();
        let run = |jit: &Jit| -> Vec<u64> {
            let zeros = vec![zero; PLACES * slots * threads as usize];
            let mut all = Vec::new();
            launches(jit, threads as usize, &mut |more| {
                let mut out = jit.upload(&zeros).expect("memory");
                let mut args = vec![IntoArg::into_arg(&mut out), IntoArg::into_arg(threads)];
                args.extend(more.iter().map(|a| a.duplicate().expect("it is no `&mut`")));
                jit.launch(kernel, 1, shape, &args).expect("a launch");
                all.extend(out.to_vec().expect("no fault").into_iter().map(bits));
            });
            all
        };
        let want = run(&interpreter);
        check(&want, &run(&compiled), threads as usize, "segments");
        // The operations are the same code for all types.
        if size_of::<T>() == 4 && shape == SHAPES[1] {
            check(&want, &run(&coroutines), threads as usize, "coroutines");
        }
    }
}

fn check(want: &[u64], got: &[u64], threads: usize, how: &str) {
    let differ = want.iter().zip(got).position(|(want, got)| want != got);
    if let Some(i) = differ {
        let (slot, thread) = (i / threads, i % threads);
        panic!(
            "slot {slot}, thread {thread} of {threads}, {how}: {:#x} and not {:#x}",
            got[i], want[i]
        );
    }
}

type Shuffle = for<'k> fn(&'k KernelBuilder, [Val<'k>; 3], u32) -> Val<'k>;

const SHUFFLES: [Shuffle; 4] = [
    |k, [mask, x, from], width| k.shuffle_idx(mask, x, from, width),
    |k, [mask, x, from], width| k.shuffle_up(mask, x, from, width),
    |k, [mask, x, from], width| k.shuffle_down(mask, x, from, width),
    |k, [mask, x, from], width| k.shuffle_xor(mask, x, from, width),
];

/// Constant sources for each width, in range and out of it; a type has one of them chosen.
const WIDTHS: [(u32, [u32; 3]); 6] = [
    (1, [0, 1, 32]),
    (2, [1, 34, 3]),
    (4, [2, 31, 1]),
    (8, [3, 4, u32::MAX]),
    (16, [8, 17, 15]),
    (32, [16, 33, 31]),
];

/// Shuffles by constants, by a parameter, and by what differs from lane to lane; of values that
/// differ and of one that does not.
fn shuffles_of<T: KernelType + for<'a> IntoArg<'a>>(
    choice: usize,
    make: fn(u32) -> T,
    bits: fn(T) -> u64,
) {
    for shuffle in SHUFFLES {
        let kernel = Kernel::build("shuffles", |k| {
            let t = k.ty::<T>();
            let results = Results::new(k, t);
            let (x, from) = (k.slice("x", t), k.slice("from", Type::U32));
            let (distance, same) = (k.param("distance", Type::U32), k.param("same", t));
            let (x, from) = (x.at(results.thread).get(), from.at(results.thread).get());
            places(k, results.thread, |mask| {
                for (width, constants) in WIDTHS {
                    let constant = k.lit(Type::U32, constants[choice % 3]);
                    results.put(shuffle(k, [mask, x, constant], width));
                }
                for width in [4, 32] {
                    results.put(shuffle(k, [mask, x, distance], width));
                    results.put(shuffle(k, [mask, x, from], width));
                }
                results.put(shuffle(k, [mask, same, from], 8));
            });
        });
        let kernel = kernel.expect("a kernel without mistakes");
        compare(&kernel, 11, make(0), bits, &|jit, threads, launch| {
            let x: Vec<T> = (0..threads).map(|i| make(noise(i))).collect();
            let from: Vec<u32> = (0..threads).map(noise).collect();
            let x = jit.upload(&x).expect("memory");
            let from = jit.upload(&from).expect("memory");
            for distance in [5u32, 38] {
                launch(args!(&x, &from, distance, make(77)));
            }
        });
    }
}

#[test]
fn shuffles_of_small_types() {
    shuffles_of::<bool>(0, |x| x % 2 == 1, u64::from);
    shuffles_of::<i8>(1, |x| x as i8, |x| x as u64);
    shuffles_of::<u8>(2, |x| x as u8, u64::from);
    shuffles_of::<i16>(0, |x| x as i16, |x| x as u64);
    shuffles_of::<u16>(1, |x| x as u16, u64::from);
    shuffles_of::<f16>(2, |x| f16::from_bits(x as u16), |x| x.to_bits().into());
    shuffles_of::<bf16>(0, |x| bf16::from_bits(x as u16), |x| x.to_bits().into());
}

#[test]
fn shuffles_of_large_types() {
    shuffles_of::<i32>(1, |x| (x << 8) as i32, |x| x as u64);
    shuffles_of::<u32>(2, |x| x << 8, u64::from);
    shuffles_of::<f32>(0, |x| f32::from_bits(x << 7), |x| x.to_bits().into());
    shuffles_of::<i64>(1, |x| i64::from(x) << 39 | 7, |x| x as u64);
    shuffles_of::<u64>(2, |x| u64::from(x) << 37 | 5, |x| x);
    shuffles_of::<f64>(0, |x| f64::from_bits(u64::from(x) << 39 | 1), f64::to_bits);
}

/// A distance that only a loop gives.
#[test]
fn shuffles_in_loops() {
    for shuffle in SHUFFLES {
        let kernel = Kernel::build("loops", |k| {
            let results = Results::new(k, Type::U32);
            let most = k.param("most", Type::U32);
            places(k, results.thread, |mask| {
                for (width, bound) in [(32, k.lit(Type::U32, 32)), (8, most)] {
                    let sum = k.var("sum", results.thread);
                    let from = k.var("from", 1u32);
                    k.while_(
                        || from.get().lt(bound),
                        || {
                            sum.set(sum * 3u32 + shuffle(k, [mask, sum.get(), from.get()], width));
                            from.set(from * 2u32);
                        },
                    );
                    results.put(sum.get());
                }
            });
        });
        let kernel = kernel.expect("a kernel without mistakes");
        compare(&kernel, 2, 0u32, u64::from, &|_, _, launch| {
            launch(args!(40u32));
        });
    }
}

/// Matches of few values, of many, and of one.
fn matches_of<T: KernelType + for<'a> IntoArg<'a>>(make: fn(u32) -> T) {
    let kernel = Kernel::build("matches", |k| {
        let t = k.ty::<T>();
        let results = Results::new(k, Type::U32);
        let (x, y, same) = (k.slice("x", t), k.slice("y", t), k.param("same", t));
        let values = [x, y].map(|x| x.at(results.thread).get());
        places(k, results.thread, |mask| {
            for value in values.into_iter().chain([same]) {
                results.put(k.match_any(mask, value));
                results.put(k.match_all(mask, value));
            }
        });
    });
    let kernel = kernel.expect("a kernel without mistakes");
    compare(&kernel, 6, 0u32, u64::from, &|jit, threads, launch| {
        let upload = |make: &dyn Fn(usize) -> T| {
            jit.upload(&(0..threads).map(make).collect::<Vec<T>>())
                .expect("memory")
        };
        let many = upload(&|i| make(noise(i)));
        let few = upload(&|i| make(noise(i) % 3));
        // The same in one group of lanes, and in those that are left at the end.
        let alike = upload(&|i| make(u32::from((i / 3) % 4 == 1)));
        let ends = upload(&|i| make(u32::from(i % 5 == 2)));
        launch(args!(&many, &few, make(1)));
        launch(args!(&alike, &ends, make(2)));
    });
}

#[test]
fn matches_of_all_types() {
    matches_of::<bool>(|x| x % 2 == 1);
    matches_of::<i8>(|x| x as i8);
    matches_of::<u8>(|x| x as u8);
    matches_of::<i16>(|x| x as i16);
    matches_of::<u16>(|x| (x << 12) as u16);
    matches_of::<f16>(|x| f16::from_bits((x << 15) as u16));
    matches_of::<bf16>(|x| bf16::from_bits((x << 14) as u16));
    matches_of::<i32>(|x| x as i32);
    matches_of::<u32>(|x| x << 30);
    // Zeros of both signs, and NaNs.
    matches_of::<f32>(|x| f32::from_bits((x << 31) | ((x & 2) * 0x3fe0_0000)));
    matches_of::<i64>(|x| i64::from(x) << 40);
    matches_of::<u64>(|x| u64::from(x) << 62);
    matches_of::<f64>(|x| f64::from_bits(u64::from(x) << 63));
}

/// Reductions of what is loaded, of what grows evenly, and of one value.
fn reductions_of<T: KernelType + for<'a> IntoArg<'a>>(make: fn(u32) -> T, bits: fn(T) -> u64) {
    let kernel = Kernel::build("reductions", |k| {
        let t = k.ty::<T>();
        let results = Results::new(k, t);
        let (x, same) = (k.slice("x", t), k.param("same", t));
        let lane = k.lane_id().bitcast(t);
        let values = [x.at(results.thread).get(), same, lane];
        places(k, results.thread, |mask| {
            for value in values {
                results.put(k.warp_reduce_add(mask, value));
                results.put(k.warp_reduce_min(mask, value));
                results.put(k.warp_reduce_max(mask, value));
                results.put(k.warp_reduce_and(mask, value));
                results.put(k.warp_reduce_or(mask, value));
                results.put(k.warp_reduce_xor(mask, value));
            }
        });
    });
    let kernel = kernel.expect("a kernel without mistakes");
    compare(&kernel, 18, make(0), bits, &|jit, threads, launch| {
        let x: Vec<T> = (0..threads).map(|i| make(noise(i) << 7)).collect();
        let x = jit.upload(&x).expect("memory");
        launch(args!(&x, make(u32::MAX - 8)));
        launch(args!(&x, make(5)));
    });
}

#[test]
fn reductions_of_all_types() {
    reductions_of::<u32>(|x| x, u64::from);
    reductions_of::<i32>(|x| x as i32, |x| x as u64);
}

fn number<'k>(k: &'k KernelBuilder, vote: Val<'k>) -> Val<'k> {
    vote.select(k.lit(Type::U32, 1), k.lit(Type::U32, 0))
}

#[test]
fn votes() {
    let kernel = Kernel::build("votes", |k| {
        let results = Results::new(k, Type::U32);
        let (x, same) = (k.slice("x", Type::BOOL), k.param("same", Type::BOOL));
        let votes = [x.at(results.thread).get(), same];
        places(k, results.thread, |mask| {
            k.warp_sync(mask);
            for vote in votes {
                results.put(k.ballot(mask, vote));
                results.put(number(k, k.warp_any(mask, vote)));
                results.put(number(k, k.warp_all(mask, vote)));
                results.put(number(k, k.warp_uniform(mask, vote)));
            }
        });
    });
    let kernel = kernel.expect("a kernel without mistakes");
    compare(&kernel, 8, 0u32, u64::from, &|jit, threads, launch| {
        let inputs: [fn(usize) -> bool; 5] = [
            |i| noise(i) % 2 == 1,
            |i| (i / 3) % 4 == 1,
            |i| i % 5 == 2,
            |_| true,
            |_| false,
        ];
        for input in inputs {
            let x: Vec<bool> = (0..threads).map(input).collect();
            let x = jit.upload(&x).expect("memory");
            launch(args!(&x, false));
            launch(args!(&x, true));
        }
    });
}

/// Operations that no library has: computed by what their rows say they mean.
static ROWS: [IntrinsicDef; 2] = [
    row("test.turn", Uniformity::Lane, |_, warp| {
        let mut results = [0; WARP_LANES];
        let lanes: Vec<usize> = warp.each().collect();
        for (i, &lane) in lanes.iter().enumerate() {
            results[lane] = warp.args[1][lanes[(i + 1) % lanes.len()]];
        }
        results
    }),
    row("test.middle", Uniformity::Warp, |_, warp| {
        let mut values: Vec<u64> = warp.each().map(|lane| warp.args[1][lane]).collect();
        values.sort_unstable();
        [values[values.len() / 2]; WARP_LANES]
    }),
];

const fn row(
    name: &'static str,
    uniformity: Uniformity,
    meaning: fn(Scalar, &WarpArgs<'_>) -> Lanes,
) -> IntrinsicDef {
    IntrinsicDef::new(
        name,
        &[
            TypePattern::Exact(Scalar::U32),
            TypePattern::OneOf(&[Scalar::U32, Scalar::F64]),
        ],
        TypePattern::SameAs(1),
        Meaning::Warp(meaning),
    )
    .with_uniformity(uniformity)
    .with_effects(Effects::Convergent)
    .with_cells(&[CELL])
}

/// There is no GPU here to run it.
const CELL: ir::Cell = ir::Cell::asm(Family::PTX, None, "", "");

fn rows_of<T: KernelType>(make: fn(u32) -> T, bits: fn(T) -> u64) {
    let kernel = Kernel::build("rows", |k| {
        let results = Results::new(k, k.ty::<T>());
        let x = k.slice("x", k.ty::<T>());
        let x = x.at(results.thread).get();
        places(k, results.thread, |mask| {
            for row in &ROWS {
                results.put(k.intrinsic(row, &[mask, x]));
            }
        });
    });
    let kernel = kernel.expect("a kernel without mistakes");
    compare(&kernel, 2, make(0), bits, &|jit, threads, launch| {
        let x: Vec<T> = (0..threads).map(|i| make(noise(i))).collect();
        let x = jit.upload(&x).expect("memory");
        launch(args!(&x));
    });
}

#[test]
fn rows_that_only_have_a_meaning() {
    rows_of::<u32>(|x| x, u64::from);
    rows_of::<f64>(f64::from, f64::to_bits);
}
