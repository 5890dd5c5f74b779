//! Warp operations against models in plain Rust: every shuffle, votes and matches in code that
//! branches, and reductions; in warps that are whole, short, or of blocks with several dimensions.

use std::fmt::Debug;

use half::{bf16, f16};
use kiln::core::args::{Arg, IntoArg};
use kiln::core::value::{F32x2, F32x4};
use kiln::prelude::*;

use super::{Outcome, chapter};

chapter![
    lanes_and_their_masks,
    shuffles_of_small_types,
    shuffles_of_32_bits,
    shuffles_of_64_bits,
    shuffles_of_structs_arrays_and_vectors,
    shuffles_where_lanes_branch_apart,
    votes_where_lanes_branch_apart,
    active_masks_hold_who_is_there,
    matches_of_all_types,
    reductions_over_masks,
];

/// Blocks of whole warps, with a short last one, shorter than a warp, and of several dimensions.
pub const SHAPES: [[u32; 3]; 6] = [
    [64, 1, 1],
    [33, 1, 1],
    [100, 1, 1],
    [7, 1, 1],
    [8, 8, 2],
    [5, 3, 3],
];

pub fn threads(shape: [u32; 3]) -> usize {
    shape.iter().map(|&n| n as usize).product()
}

/// For `n` threads the range of each warp's.
pub fn warps(n: usize) -> impl Iterator<Item = std::ops::Range<usize>> {
    (0..n)
        .step_by(32)
        .map(move |first| first..n.min(first + 32))
}

/// The lanes of a warp whose threads satisfy `chosen`.
pub fn mask_of(warp: std::ops::Range<usize>, chosen: impl Fn(usize) -> bool) -> u32 {
    let lanes = warp.enumerate().filter(|&(_, i)| chosen(i));
    lanes.fold(0, |mask, (lane, _)| mask | 1 << lane)
}

/// A number without a pattern for each index.
pub fn noise(i: usize) -> u32 {
    (i as u32 + 1).wrapping_mul(0x9e37_79b9) >> 8
}

/// The number of the thread in its block.
pub fn linear(k: &KernelBuilder) -> Val<'_> {
    let (at, of) = (k.thread_idx(), k.block_dim());
    (at.z() * of.y() + at.y()) * of.x() + at.x()
}

/// A bool as 0 or 1.
fn bit<'k>(k: &'k KernelBuilder, x: Val<'k>) -> Val<'k> {
    x.select(k.lit(Type::U32, 1), k.lit(Type::U32, 0))
}

/// Launches one block of a shape with `slots` results a thread, and gives them slot by slot.
pub fn run<T: KernelType>(
    jit: &Jit,
    kernel: &Kernel,
    shape: [u32; 3],
    slots: Vec<T>,
    more: &[Arg<'_>],
) -> kiln::Result<Vec<T>> {
    let mut out = jit.upload(&slots)?;
    {
        let mut args = vec![IntoArg::into_arg(&mut out)];
        args.extend(more.iter().map(|a| a.duplicate().expect("it is no `&mut`")));
        jit.launch(kernel, 1, shape, &args)?;
    }
    out.to_vec()
}

fn lanes_and_their_masks(jit: &Jit) -> Outcome {
    let kernel = Kernel::build("positions", |k| {
        let out = k.slice_mut("out", Type::U32);
        let (i, n) = (linear(k), out.len() / 7);
        let values = [
            k.lane_id(),
            k.warp_id(),
            k.lanemask_lt(),
            k.lanemask_le(),
            k.lanemask_gt(),
            k.lanemask_ge(),
            k.lanemask_eq(),
        ];
        for (slot, value) in (0u32..).zip(values) {
            out.at(n * slot + i).set(value);
        }
    })?;
    for shape in SHAPES {
        let n = threads(shape);
        let out = run(jit, &kernel, shape, vec![0u32; 7 * n], &[])?;
        for i in 0..n {
            let got: Vec<u32> = (0..7).map(|slot| out[slot * n + i]).collect();
            let (lane, warp) = (i as u32 % 32, i as u32 / 32);
            let lt = (1u64 << lane) as u32 - 1;
            let eq = 1u32 << lane;
            let want = [lane, warp, lt, lt | eq, !(lt | eq), !lt, eq];
            assert_eq!(got, want, "thread {i} of {shape:?}");
        }
    }
    Ok(())
}

#[derive(Copy, Clone, Debug)]
enum Shuffle {
    Idx,
    Up,
    Down,
    Xor,
}

const SHUFFLES: [Shuffle; 4] = [Shuffle::Idx, Shuffle::Up, Shuffle::Down, Shuffle::Xor];
pub const WIDTHS: [u32; 6] = [1, 2, 4, 8, 16, 32];

impl Shuffle {
    fn build<'k>(self, mask: Val<'k>, x: Val<'k>, from: Val<'k>, width: u32) -> Val<'k> {
        let k = x.builder();
        match self {
            Shuffle::Idx => k.shuffle_idx(mask, x, from, width),
            Shuffle::Up => k.shuffle_up(mask, x, from, width),
            Shuffle::Down => k.shuffle_down(mask, x, from, width),
            Shuffle::Xor => k.shuffle_xor(mask, x, from, width),
        }
    }

    /// The lane that `lane` reads (CUDA guide, "Warp Shuffle Functions").
    fn source(self, lane: u32, from: u32, width: u32) -> u32 {
        let first = lane / width * width;
        let from = from % 32;
        match self {
            Shuffle::Idx => first + from % width,
            Shuffle::Up if lane >= first + from => lane - from,
            Shuffle::Down if lane + from < first + width => lane + from,
            Shuffle::Xor if lane ^ from < first + width => lane ^ from,
            Shuffle::Up | Shuffle::Down | Shuffle::Xor => lane,
        }
    }
}

/// Every kind and width of shuffle of a type.
fn shuffles_of<T: KernelType + PartialEq + Debug>(jit: &Jit, make: fn(usize) -> T) -> Outcome {
    let each_width = |shuffle| WIDTHS.map(|width| (shuffle, width));
    let cases: Vec<(Shuffle, u32)> = SHUFFLES.into_iter().flat_map(each_width).collect();
    shuffles_among(jit, make, &cases, &SHAPES)
}

/// Shuffles of a type in blocks of these shapes, with the sources in a buffer.
fn shuffles_among<T: KernelType + PartialEq + Debug>(
    jit: &Jit,
    make: fn(usize) -> T,
    cases: &[(Shuffle, u32)],
    shapes: &[[u32; 3]],
) -> Outcome {
    let kernel = Kernel::build("shuffles", |k| {
        let out = k.slice_mut("out", k.ty::<T>());
        let (x, from) = (k.slice("x", k.ty::<T>()), k.slice("from", Type::U32));
        let (i, n) = (linear(k), x.len());
        let (value, from) = (x.at(i).get(), from.at(i).get());
        let mask = k.lit(Type::U32, FULL_MASK);
        for (slot, (shuffle, width)) in (0u32..).zip(cases) {
            let got = shuffle.build(mask, value, from, *width);
            out.at(n * slot + i).set(got);
        }
    })?;
    // Sources at random, many of them out of range; a permutation; a broadcast.
    let sources: [fn(usize) -> u32; 3] = [|i| noise(i) % 70, |i| (i as u32 * 7 + 3) % 32, |_| 5];
    for &shape in shapes {
        let n = threads(shape);
        let hx: Vec<T> = (0..n).map(make).collect();
        let x = jit.upload(&hx)?;
        for source in sources {
            let hfrom: Vec<u32> = (0..n).map(source).collect();
            let from = jit.upload(&hfrom)?;
            let zeros = vec![make(0); n * cases.len()];
            let out = run(jit, &kernel, shape, zeros, args!(&x, &from))?;
            for (got, (shuffle, width)) in out.chunks_exact(n).zip(cases) {
                check_shuffle(*shuffle, *width, &hx, &hfrom, got);
            }
        }
    }
    Ok(())
}

/// Compares with the model, where the lane to be read is there.
fn check_shuffle<T: PartialEq + Debug>(
    shuffle: Shuffle,
    width: u32,
    x: &[T],
    from: &[u32],
    got: &[T],
) {
    for warp in warps(x.len()) {
        for i in warp.clone() {
            let lane = (i - warp.start) as u32;
            let read = warp.start + shuffle.source(lane, from[i], width) as usize;
            if warp.contains(&read) {
                let what = format!("{shuffle:?} by {} in {width}, thread {i}", from[i]);
                assert_eq!(got[i], x[read], "{what} of {}", x.len());
            }
        }
    }
}

fn shuffles_of_small_types(jit: &Jit) -> Outcome {
    shuffles_of::<bool>(jit, |i| noise(i) % 2 == 1)?;
    shuffles_of::<i8>(jit, |i| noise(i) as i8)?;
    shuffles_of::<u8>(jit, |i| noise(i) as u8)?;
    shuffles_of::<i16>(jit, |i| noise(i) as i16)?;
    shuffles_of::<u16>(jit, |i| noise(i) as u16)?;
    shuffles_of::<f16>(jit, |i| f16::from_f32(i as f32 - 20.5))?;
    shuffles_of::<bf16>(jit, |i| bf16::from_f32(i as f32 - 20.5))
}

fn shuffles_of_32_bits(jit: &Jit) -> Outcome {
    shuffles_of::<i32>(jit, |i| noise(i) as i32 - (1 << 23))?;
    shuffles_of::<u32>(jit, |i| noise(i) << 8)?;
    shuffles_of::<f32>(jit, |i| i as f32 * 1.25 - 9.0)
}

fn shuffles_of_64_bits(jit: &Jit) -> Outcome {
    shuffles_of::<i64>(jit, |i| i64::from(noise(i)) << 36 | i as i64)?;
    shuffles_of::<u64>(jit, |i| u64::from(noise(i)) << 40 | i as u64)?;
    shuffles_of::<f64>(jit, |i| f64::from(noise(i)) * 1e100 - i as f64)
}

/// Numbers of each width, with padding between them.
#[derive(Copy, Clone, Debug, PartialEq, KernelType)]
#[repr(C)]
struct Mixed {
    tag: u8,
    mass: f64,
    inner: Inner,
    two: [Inner; 2],
    is_set: bool,
}

#[derive(Copy, Clone, Debug, PartialEq, KernelType)]
#[repr(C)]
struct Inner {
    half: f16,
    word: i32,
    vector: F32x2,
}

impl Inner {
    fn of(i: usize) -> Inner {
        Inner {
            half: f16::from_f32(i as f32 + 0.5),
            word: noise(i) as i32 - 1000,
            vector: [i as f32, -0.25 * i as f32].into(),
        }
    }
}

impl Mixed {
    fn of(i: usize) -> Mixed {
        Mixed {
            tag: noise(i) as u8,
            mass: f64::from(noise(i)) * 1e90,
            inner: Inner::of(i),
            two: [Inner::of(i + 3), Inner::of(7 * i)],
            is_set: noise(i) % 2 == 1,
        }
    }
}

fn shuffles_of_structs_arrays_and_vectors(jit: &Jit) -> Outcome {
    fn some<T: KernelType + PartialEq + Debug>(jit: &Jit, make: fn(usize) -> T) -> Outcome {
        let cases = [(Shuffle::Idx, 32), (Shuffle::Down, 16)];
        shuffles_among(jit, make, &cases, &SHAPES[1..2])
    }
    some::<Mixed>(jit, Mixed::of)?;
    some::<[[u16; 3]; 2]>(jit, |i| [[noise(i) as u16, i as u16, 7], [3; 3]])?;
    some::<F32x4>(jit, |i| [i as f32, 0.5, -1.0, 2.0 * i as f32].into())
}

fn shuffles_where_lanes_branch_apart(jit: &Jit) -> Outcome {
    // Each half of the lanes rotates its values among its own, in an order of its own.
    let kernel = Kernel::build("halves", |k| {
        let (out, x) = (k.slice_mut("out", Type::U32), k.slice("x", Type::U32));
        let i = linear(k);
        let (value, low) = (x.at(i).get(), k.lane_id().lt(16));
        let (low_mask, high_mask) = (k.ballot(FULL_MASK, low), k.ballot(FULL_MASK, !low));
        k.if_(low, || {
            out.at(i)
                .set(k.shuffle_idx(low_mask, value, k.lane_id() + 1, 16));
        })
        .else_(|| {
            out.at(i)
                .set(k.shuffle_xor(high_mask, value, 1, 32) + 1000u32);
        });
    })?;
    for shape in [[64, 1, 1], [8, 8, 2]] {
        let n = threads(shape);
        let hx: Vec<u32> = (0..n).map(noise).collect();
        let x = jit.upload(&hx)?;
        let out = run(jit, &kernel, shape, vec![0u32; n], args!(&x))?;
        for (i, &got) in out.iter().enumerate() {
            let (warp, lane) = (i / 32 * 32, i % 32);
            let want = match lane {
                0..16 => hx[warp + (lane + 1) % 16],
                _ => hx[warp + (lane ^ 1)] + 1000,
            };
            assert_eq!(got, want, "thread {i} of {shape:?}");
        }
    }
    Ok(())
}

/// Stores the four votes on `q` among the lanes of `mask`, from slot `first` on.
fn store_votes<'k>(out: Val<'k>, i: Val<'k>, n: Val<'k>, first: u32, mask: Val<'k>, q: Val<'k>) {
    let k = out.builder();
    let votes = [
        k.ballot(mask, q),
        bit(k, k.warp_all(mask, q)),
        bit(k, k.warp_any(mask, q)),
        bit(k, k.warp_uniform(mask, q)),
    ];
    for (slot, vote) in (first..).zip(votes) {
        out.at(n * slot + i).set(vote);
    }
}

/// The votes of the lanes of `mask`, where those of `yes` vote yes.
fn votes(mask: u32, yes: u32) -> [u32; 4] {
    let yes = yes & mask;
    let bits = [yes == mask, yes != 0, yes == 0 || yes == mask];
    [yes, bits[0].into(), bits[1].into(), bits[2].into()]
}

fn votes_where_lanes_branch_apart(jit: &Jit) -> Outcome {
    let kernel = Kernel::build("votes", |k| {
        let (out, x) = (k.slice_mut("out", Type::U32), k.slice("x", Type::U32));
        let (i, n) = (linear(k), x.len());
        let x = x.at(i).get();
        let (p, q) = ((x & 1).ne(0), (x & 2).ne(0));
        store_votes(out, i, n, 0, k.lit(Type::U32, FULL_MASK), q);
        let (with, without) = (k.ballot(FULL_MASK, p), k.ballot(FULL_MASK, !p));
        k.if_(p, || store_votes(out, i, n, 4, with, q))
            .else_(|| store_votes(out, i, n, 4, without, q));
    })?;
    // Any votes, all yes, all no, all in one branch.
    let inputs: [fn(usize) -> u32; 4] = [|i| noise(i) % 4, |i| noise(i) % 2 + 2, |_| 0, |_| 3];
    for shape in SHAPES {
        for input in inputs {
            let n = threads(shape);
            let hx: Vec<u32> = (0..n).map(input).collect();
            let x = jit.upload(&hx)?;
            let out = run(jit, &kernel, shape, vec![9u32; 8 * n], args!(&x))?;
            for warp in warps(n) {
                let live = mask_of(warp.clone(), |_| true);
                let yes = mask_of(warp.clone(), |i| hx[i] & 2 != 0);
                for i in warp.clone() {
                    let branch = mask_of(warp.clone(), |j| hx[j] & 1 == hx[i] & 1);
                    let got: Vec<u32> = (0..8).map(|slot| out[slot * n + i]).collect();
                    assert_eq!(got[..4], votes(live, yes), "thread {i} of {shape:?}");
                    assert_eq!(got[4..], votes(branch, yes), "thread {i} of {shape:?}");
                }
            }
        }
    }
    Ok(())
}

fn active_masks_hold_who_is_there(jit: &Jit) -> Outcome {
    let kernel = Kernel::build("active", |k| {
        let (out, x) = (k.slice_mut("out", Type::U32), k.slice("x", Type::U32));
        let (i, n) = (linear(k), x.len());
        out.at(i).set(k.active_mask());
        let odd = (x.at(i) & 1).ne(0);
        k.if_(odd, || out.at(n + i).set(k.active_mask()))
            .else_(|| out.at(n + i).set(k.active_mask()));
        // All are there again.
        out.at(n * 2 + i).set(k.active_mask());
    })?;
    let exact = jit.device().info().kind == DeviceKind::Cpu;
    for shape in SHAPES {
        let n = threads(shape);
        let hx: Vec<u32> = (0..n).map(noise).collect();
        let x = jit.upload(&hx)?;
        let out = run(jit, &kernel, shape, vec![0u32; 3 * n], args!(&x))?;
        for warp in warps(n) {
            let live = mask_of(warp.clone(), |_| true);
            for i in warp.clone() {
                let branch = mask_of(warp.clone(), |j| hx[j] & 1 == hx[i] & 1);
                let own = 1u32 << (i % 32);
                for (slot, most) in [live, branch, live].into_iter().enumerate() {
                    let got = out[slot * n + i];
                    let right = got & own != 0 && got & !most == 0 && (!exact || got == most);
                    assert!(right, "{got:#x} of {most:#x}, thread {i} of {shape:?}");
                }
            }
        }
    }
    Ok(())
}

/// `match_any` and `match_all` of a type, in all lanes and in the even ones. `make` gives another
/// value for each number below `values`.
fn matches_of<T: KernelType>(jit: &Jit, values: u32, make: fn(u32) -> T) -> Outcome {
    let kernel = Kernel::build("matches", |k| {
        let (out, x) = (k.slice_mut("out", Type::U32), k.slice("x", k.ty::<T>()));
        let (i, n) = (linear(k), x.len());
        let value = x.at(i).get();
        out.at(i).set(k.match_any(FULL_MASK, value));
        out.at(n + i).set(k.match_all(FULL_MASK, value));
        let even = (i % 2).eq(0);
        let mask = k.ballot(FULL_MASK, even);
        k.if_(even, || {
            out.at(n * 2 + i).set(k.match_any(mask, value));
            out.at(n * 3 + i).set(k.match_all(mask, value));
        });
    })?;
    // A few values; one value in all; one value in the even lanes.
    let inputs: [fn(usize) -> u32; 3] = [noise, |_| 1, |i| (i % 2) as u32];
    for shape in SHAPES {
        for input in inputs {
            let n = threads(shape);
            let keys: Vec<u32> = (0..n).map(|i| input(i) % values).collect();
            let x = jit.upload(&keys.iter().map(|&key| make(key)).collect::<Vec<_>>())?;
            let out = run(jit, &kernel, shape, vec![0u32; 4 * n], args!(&x))?;
            check_matches(&keys, |_| true, &out[..2 * n]);
            check_matches(&keys, |i| i % 2 == 0, &out[2 * n..]);
        }
    }
    Ok(())
}

/// Compares the results of the threads that satisfy `member`.
fn check_matches(keys: &[u32], member: impl Fn(usize) -> bool, got: &[u32]) {
    let n = keys.len();
    for warp in warps(n) {
        let mask = mask_of(warp.clone(), &member);
        for i in warp.clone().filter(|&i| member(i)) {
            let any = mask_of(warp.clone(), |j| member(j) && keys[j] == keys[i]);
            let all = if any == mask { mask } else { 0 };
            assert_eq!((got[i], got[n + i]), (any, all), "thread {i} of {n}");
        }
    }
}

fn matches_of_all_types(jit: &Jit) -> Outcome {
    matches_of::<bool>(jit, 2, |key| key == 1)?;
    matches_of::<i8>(jit, 3, |key| key as i8 - 1)?;
    matches_of::<u8>(jit, 3, |key| key as u8 + 126)?;
    matches_of::<i16>(jit, 3, |key| (key as i16 - 1) * 256)?;
    matches_of::<u16>(jit, 3, |key| key as u16 * 256)?;
    matches_of::<i32>(jit, 3, |key| key as i32 - 1)?;
    matches_of::<u32>(jit, 3, |key| key << 30)?;
    // The values differ in the upper half only.
    matches_of::<i64>(jit, 3, |key| i64::from(key) << 32)?;
    matches_of::<u64>(jit, 3, |key| u64::from(key) << 62)?;
    matches_of::<f16>(jit, 3, |key| f16::from_f32(key as f32))?;
    matches_of::<bf16>(jit, 3, |key| bf16::from_f32(key as f32))?;
    // Bits are compared: -0 is not 0, and a NaN is itself.
    matches_of::<f32>(jit, 3, |key| [0.0, -0.0, f32::NAN][key as usize])?;
    matches_of::<f64>(jit, 3, |key| [0.0, -0.0, f64::NAN][key as usize])
}

/// All six reductions of an integer type, in all lanes and in the lanes of odd values.
macro_rules! reductions_of {
    ($jit:expr, $t:ty) => {
        let kernel = Kernel::build("reductions", |k| {
            let t = k.ty::<$t>();
            let (out, x) = (k.slice_mut("out", t), k.slice("x", t));
            let (i, n) = (linear(k), x.len());
            let value = x.at(i).get();
            let store = |first: u32, mask: Val<'_>| {
                let results = [
                    k.warp_reduce_add(mask, value),
                    k.warp_reduce_min(mask, value),
                    k.warp_reduce_max(mask, value),
                    k.warp_reduce_and(mask, value),
                    k.warp_reduce_or(mask, value),
                    k.warp_reduce_xor(mask, value),
                ];
                for (slot, result) in (first..).zip(results) {
                    out.at(n * slot + i).set(result);
                }
            };
            store(0, k.lit(Type::U32, FULL_MASK));
            let odd = (value & 1).ne(0);
            let mask = k.ballot(FULL_MASK, odd);
            k.if_(odd, || store(6, mask));
        })?;
        for shape in SHAPES {
            let n = threads(shape);
            let hx: Vec<$t> = (0..n).map(|i| (noise(i) << 8) as $t >> 3).collect();
            let x = $jit.upload(&hx)?;
            let out = run($jit, &kernel, shape, vec![0; 12 * n], args!(&x))?;
            for warp in warps(n) {
                for i in warp.clone() {
                    let got: Vec<$t> = (0..12).map(|slot| out[slot * n + i]).collect();
                    assert_eq!(got[..6], reduced(&hx[warp.clone()]), "thread {i}");
                    if hx[i] & 1 == 1 {
                        let odd: Vec<$t> = hx[warp.clone()]
                            .iter()
                            .copied()
                            .filter(|x| x & 1 == 1)
                            .collect();
                        assert_eq!(got[6..], reduced(&odd), "thread {i}");
                    }
                }
            }
        }
    };
}

fn reductions_over_masks(jit: &Jit) -> Outcome {
    macro_rules! model {
        ($t:ty) => {
            fn reduced(values: &[$t]) -> [$t; 6] {
                let fold = |f: fn($t, $t) -> $t| values.iter().copied().reduce(f).unwrap_or(0);
                [
                    fold(<$t>::wrapping_add),
                    fold(Ord::min),
                    fold(Ord::max),
                    fold(|a, b| a & b),
                    fold(|a, b| a | b),
                    fold(|a, b| a ^ b),
                ]
            }
        };
    }
    {
        model!(i32);
        reductions_of!(jit, i32);
    }
    {
        model!(u32);
        reductions_of!(jit, u32);
    }
    Ok(())
}
