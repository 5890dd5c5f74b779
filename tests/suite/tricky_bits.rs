//! Tricky kernels, bits: numbers that are 0 or 1, parts of floats, the smallest integer of 16 bits,
//! results that nobody wants. NVIDIA's assembler gets each wrong if it is written as it comes to mind
//! (`jit-core/codegen/src/gpu/ptxas`), so only a GPU shows whether these pass.

use half::{bf16, f16};
use kiln::prelude::*;

use super::warp::noise;
use super::{Outcome, chapter, exact};

chapter![
    truths_as_floats,
    truths_as_bits_of_floats,
    parts_of_floats,
    smallest_of_16_bits,
    votes_that_nobody_reads,
    sums_of_16_bits,
    acquired_for_order_alone,
    signs_of_nans,
];

const THREADS: usize = 64;

/// Floats of conditions, as bits, beside votes of conditions, which compare numbers with 0 again.
fn truths(k: &KernelBuilder) {
    let (bits, negated) = (
        k.slice_mut("bits", Type::U64),
        k.slice_mut("negated", Type::U64),
    );
    let (votes, x) = (k.slice_mut("votes", Type::U32), k.slice("x", Type::U32));
    let i = k.thread_idx().x();
    let (odd, large) = ((x.at(i).get() % 2).eq(1), x.at(i).get().gt(1 << 20));
    let any = k.warp_any(u32::MAX, odd).cast(Type::U32);
    votes
        .at(i)
        .set(any + k.warp_all(u32::MAX, large).cast(Type::U32) * 2);
    let both = k.var("both", 0u32);
    k.if_(odd, || both.set(large.cast(Type::U32)));
    let one_of = odd.cast(Type::U32) ^ large.cast(Type::U32);
    let numbers = [
        (odd.cast(Type::U32), Type::F32, Type::U32),
        (large.cast(Type::I32), Type::F64, Type::U64),
        (odd.cast(Type::U64), Type::F16, Type::U16),
        (large.cast(Type::U32), Type::BF16, Type::U16),
        (both.get(), Type::F32, Type::U32),
        (one_of, Type::F32, Type::U32),
    ];
    for (at, (number, float, register)) in (0u32..).step_by(THREADS).zip(numbers) {
        let number = number.cast(float);
        bits.at(i + at)
            .set(number.bitcast(register).cast(Type::U64));
        negated
            .at(i + at)
            .set((-number).bitcast(register).cast(Type::U64));
    }
}

fn truths_as_floats(jit: &Jit) -> Outcome {
    let kernel = Kernel::build("truths", truths)?;
    for seed in 0..3 {
        let x: Vec<u32> = (0..THREADS).map(|i| noise(i + 100 * seed) >> 10).collect();
        let buffer = jit.upload(&x)?;
        let (mut bits, mut negated) = (jit.zeros::<u64>(384)?, jit.zeros::<u64>(384)?);
        let mut votes = jit.zeros::<u32>(THREADS)?;
        let args = args!(&mut bits, &mut negated, &mut votes, &buffer);
        jit.launch(&kernel, 1, THREADS as u32, args)?;
        let (bits, negated) = (bits.to_vec()?, negated.to_vec()?);
        for (i, &x) in x.iter().enumerate() {
            let (odd, large) = (x % 2 == 1, x > 1 << 20);
            let of = |truth: bool| if truth { 1.0 } else { 0.0 };
            let single = |x: f32| u64::from(x.to_bits());
            let half = |x: f32| u64::from(f16::from_f32(x).to_bits());
            let brain = |x: f32| u64::from(bf16::from_f32(x).to_bits());
            let expected = [
                (single(of(odd)), single(-of(odd))),
                (
                    f64::from(of(large)).to_bits(),
                    f64::from(-of(large)).to_bits(),
                ),
                (half(of(odd)), half(-of(odd))),
                (brain(of(large)), brain(-of(large))),
                (single(of(odd && large)), single(-of(odd && large))),
                (single(of(odd != large)), single(-of(odd != large))),
            ];
            for (part, expected) in expected.into_iter().enumerate() {
                let at = part * THREADS + i;
                assert_eq!(
                    (bits[at], negated[at]),
                    expected,
                    "{part} of thread {i}, x = {x}"
                );
            }
        }
    }
    Ok(())
}

/// What is 0 or 1 taken for the bits of a float, the smallest there is, and converted.
fn truths_as_bits_of_floats(jit: &Jit) -> Outcome {
    let kernel = Kernel::build("smallest", |k| {
        let (out, wide) = (
            k.slice_mut("out", Type::U32),
            k.slice_mut("wide", Type::F64),
        );
        let x = k.slice("x", Type::U32);
        let i = k.thread_idx().x();
        let odd = (x.at(i).get() % 2).eq(1);
        let small = odd.cast(Type::U32).bitcast(Type::F32);
        let any = k.warp_any(u32::MAX, odd);
        wide.at(i).set(small.cast(Type::F64));
        out.at(i)
            .set(small.cast(Type::U32) + any.cast(Type::U32) * 4);
        let half = odd.cast(Type::U16).bitcast(Type::F16);
        out.at(i + THREADS as u32)
            .set(half.cast(Type::F32).bitcast(Type::U32));
    })?;
    let x: Vec<u32> = (0..THREADS).map(|i| noise(i) >> 3).collect();
    let (buffer, mut out) = (jit.upload(&x)?, jit.zeros::<u32>(2 * THREADS)?);
    let mut wide = jit.zeros::<f64>(THREADS)?;
    jit.launch(
        &kernel,
        1,
        THREADS as u32,
        args!(&mut out, &mut wide, &buffer),
    )?;
    let (out, wide) = (out.to_vec()?, wide.to_vec()?);
    for (i, &x) in x.iter().enumerate() {
        let odd = x % 2;
        assert_eq!(wide[i], f64::from(f32::from_bits(odd)), "thread {i}");
        assert_eq!(out[i], 4, "thread {i}");
        let half = f16::from_bits(odd as u16).to_f32();
        assert_eq!(out[THREADS + i], half.to_bits(), "thread {i}");
    }
    Ok(())
}

#[kernel]
fn cut(x: &[f32], halves: &[f16], bytes: &mut [u8], shorts: &mut [u16], words: &mut [u32]) {
    let i = thread_idx().x;
    let single = x[i] * 3.0;
    let double = single as f64 * 7.0;
    let half = halves[i] + halves[i];
    let chosen = if single > 10.0 { single } else { 0.5 };
    bytes[i] = single.to_bits() as u8;
    bytes[64 + i] = double.to_bits() as u8;
    bytes[128 + i] = half.to_bits() as u8;
    bytes[192 + i] = chosen.to_bits() as u8;
    shorts[i] = single.to_bits() as u16;
    shorts[64 + i] = double.to_bits() as u16;
    shorts[128 + i] = (i as f32).to_bits() as u16;
    shorts[192 + i] = chosen.to_bits() as u16;
    words[i] = double.to_bits() as u32;
}

/// The low bits of floats, stored.
fn parts_of_floats(jit: &Jit) -> Outcome {
    let jit = &exact(jit);
    let x: Vec<f32> = (0..THREADS).map(|i| noise(i) as f32 * 1.1e-8).collect();
    let h: Vec<f16> = x.iter().map(|&x| f16::from_f32(x)).collect();
    let (buffer, halves) = (jit.upload(&x)?, jit.upload(&h)?);
    let (mut bytes, mut shorts) = (jit.zeros::<u8>(256)?, jit.zeros::<u16>(256)?);
    let mut words = jit.zeros::<u32>(THREADS)?;
    cut.launch(
        jit,
        (1, THREADS as u32),
        &buffer,
        &halves,
        &mut bytes,
        &mut shorts,
        &mut words,
    )?;
    let (bytes, shorts, words) = (bytes.to_vec()?, shorts.to_vec()?, words.to_vec()?);
    for (i, &x) in x.iter().enumerate() {
        let single = x * 3.0;
        let double = f64::from(single) * 7.0;
        let half = h[i] + h[i];
        let chosen = if single > 10.0 { single } else { 0.5 };
        let at = |part: usize| part * THREADS + i;
        let found = [bytes[at(0)], bytes[at(1)], bytes[at(2)], bytes[at(3)]];
        let wanted = [
            single.to_bits() as u8,
            double.to_bits() as u8,
            half.to_bits() as u8,
            chosen.to_bits() as u8,
        ];
        assert_eq!(found, wanted, "bytes of thread {i}");
        let found = [shorts[at(0)], shorts[at(1)], shorts[at(2)], shorts[at(3)]];
        let wanted = [
            single.to_bits() as u16,
            double.to_bits() as u16,
            (i as f32).to_bits() as u16,
            chosen.to_bits() as u16,
        ];
        assert_eq!(found, wanted, "shorts of thread {i}");
        assert_eq!(words[i], double.to_bits() as u32, "thread {i}");
    }
    Ok(())
}

#[kernel]
fn negate(x: &[i16], wide: &mut [i64], below: &mut [u32]) {
    let i = thread_idx().x;
    let negated = x[i].wrapping_neg();
    let absolute = x[i].wrapping_abs();
    wide[2 * i] = negated as i64;
    wide[2 * i + 1] = absolute as i64;
    below[i] = (negated < x[i]) as u32 + 2 * (absolute < 0) as u32;
}

fn smallest_of_16_bits(jit: &Jit) -> Outcome {
    let x: Vec<i16> = (0..THREADS)
        .map(|i| {
            if i % 3 == 0 {
                i16::MIN
            } else {
                noise(i) as i16
            }
        })
        .collect();
    let (buffer, mut wide) = (jit.upload(&x)?, jit.zeros::<i64>(2 * THREADS)?);
    let mut below = jit.zeros::<u32>(THREADS)?;
    negate.launch(jit, (1, THREADS as u32), &buffer, &mut wide, &mut below)?;
    let (wide, below) = (wide.to_vec()?, below.to_vec()?);
    for (i, &x) in x.iter().enumerate() {
        let (negated, absolute) = (x.wrapping_neg(), x.wrapping_abs());
        assert_eq!(wide[2 * i], negated.into(), "thread {i}, x = {x}");
        assert_eq!(wide[2 * i + 1], absolute.into(), "thread {i}, x = {x}");
        let expected = u32::from(negated < x) + 2 * u32::from(absolute < 0);
        assert_eq!(below[i], expected, "thread {i}, x = {x}");
    }
    Ok(())
}

/// Groups of lanes vote, match and add without anybody reading what comes of it; some lanes leave.
#[kernel]
fn unread(x: &[u32], n: u32, out: &mut [u32]) {
    let i = global_id().x;
    let block = block_idx().x as u32;
    let group = match_any(FULL_MASK, x[i] % 5);
    warp_all(group, false);
    ballot(group, true);
    match_any(group, x[i]);
    if block >= x[i] % 5 {
        return;
    }
    // The same in all threads of a block, so that it is computed once for a warp.
    let scaled = (block * n + 17) * 0x9e37_79b1;
    out[i] = scaled ^ i as u32;
}

fn votes_that_nobody_reads(jit: &Jit) -> Outcome {
    const BLOCKS: usize = 4;
    let x: Vec<u32> = (0..THREADS * BLOCKS).map(noise).collect();
    let (buffer, mut out) = (jit.upload(&x)?, jit.zeros::<u32>(x.len())?);
    unread.launch(jit, (BLOCKS as u32, THREADS as u32), &buffer, 3, &mut out)?;
    for (i, (found, x)) in (0u32..).zip(out.to_vec()?.into_iter().zip(x)) {
        let block = i / THREADS as u32;
        let scaled = (block * 3 + 17).wrapping_mul(0x9e37_79b1) ^ i;
        let expected = if block >= x % 5 { 0 } else { scaled };
        assert_eq!(found, expected, "thread {i}");
    }
    Ok(())
}

/// Sums of rows of numbers that begin with another one: they are added in pairs, and what the first pair is
/// added to is a constant of which one half is used.
#[kernel]
fn sums(rows: &[[i16; 64]], out: &mut [i16]) {
    let i = thread_idx().x;
    let mut sum = 1;
    for j in 0..64 {
        sum += rows[i][j];
    }
    out[i] = sum;
}

fn sums_of_16_bits(jit: &Jit) -> Outcome {
    let number = |n: usize| (noise(n) >> 24) as i16;
    let rows: Vec<[i16; 64]> = (0..THREADS)
        .map(|row| std::array::from_fn(|column| number(64 * row + column)))
        .collect();
    let (buffer, mut out) = (jit.upload(&rows)?, jit.zeros::<i16>(THREADS)?);
    sums.launch(jit, (1, THREADS as u32), &buffer, &mut out)?;
    for (i, (found, row)) in out.to_vec()?.into_iter().zip(rows).enumerate() {
        assert_eq!(found, row.iter().sum::<i16>() + 1, "row {i}");
    }
    Ok(())
}

/// Each thread acquires once or twice, for the order alone: what the flag is, nobody reads. What comes
/// after it is in all memories there are.
#[kernel]
fn acquired(x: &[u64], flag: &[u32], out: &mut [u64]) {
    let tile = shared!([u16; 64]);
    let t = thread_idx().x;
    for j in (t..64).step_by(48) {
        atomic_load(&flag[0], Ordering::Acquire, Scope::System);
        tile[j] = 3;
    }
    barrier();
    let own = x[t];
    let mixed = own ^ tile[t] as u64;
    let chosen = [mixed, own, mixed + 1, own + 1];
    out[t] = chosen[own as usize % 4];
}

fn acquired_for_order_alone(jit: &Jit) -> Outcome {
    const LANES: usize = 48;
    let x: Vec<u64> = (0..LANES).map(|i| noise(i).into()).collect();
    let (buffer, flag) = (jit.upload(&x)?, jit.upload(&[1u32])?);
    let mut out = jit.zeros::<u64>(LANES)?;
    acquired.launch(jit, (1, LANES as u32), &buffer, &flag, &mut out)?;
    for (i, (found, own)) in out.to_vec()?.into_iter().zip(x).enumerate() {
        let mixed = own ^ 3;
        let expected = [mixed, own, mixed + 1, own + 1][own as usize % 4];
        assert_eq!(found, expected, "thread {i}");
    }
    Ok(())
}

/// A kernel that asks for bits of floats with their signs changed, in each way, and has floats of the same signs beside them;
/// and its check, at numbers of which some are NaNs.
macro_rules! signs {
    ($name:ident, $float:ident, $bits:ident) => {
        mod $name {
            use kiln::prelude::*;

            const SIGN: $bits = 1 << ($bits::BITS - 1);

            #[kernel]
            fn changed(x: &[$float], bits: &mut [[$bits; 5]], least: &mut [$float]) {
                let i = thread_idx().x;
                let (own, next) = (x[i].to_bits(), x[(i + 1) % x.len()].to_bits());
                bits[i][0] = own & !SIGN;
                bits[i][1] = own ^ SIGN;
                bits[i][2] = own | SIGN;
                bits[i][3] = (own & !SIGN) | (next & SIGN);
                bits[i][4] = if next > own { own & !SIGN } else { own ^ SIGN };
                least[i] = (x[i].abs() + 1.0).min(-x[i]).max(-x[i].abs());
            }

            pub(super) fn check(jit: &Jit, x: &[$float]) -> super::Outcome {
                let (buffer, mut bits) = (jit.upload(x)?, jit.zeros::<[$bits; 5]>(x.len())?);
                let mut least = jit.zeros::<$float>(x.len())?;
                changed.launch(jit, (1, x.len() as u32), &buffer, &mut bits, &mut least)?;
                let (bits, least) = (bits.to_vec()?, least.to_vec()?);
                for (i, x_i) in x.iter().enumerate() {
                    let (own, next) = (x_i.to_bits(), x[(i + 1) % x.len()].to_bits());
                    let (without, other) = (own & !SIGN, own ^ SIGN);
                    let joined = without | (next & SIGN);
                    let either = if next > own { without } else { other };
                    let expected = [without, other, own | SIGN, joined, either];
                    assert_eq!(bits[i], expected, "{i}, of {own:#x} and {next:#x}");
                    let expected = (x_i.abs() + 1.0).min(-x_i).max(-x_i.abs());
                    let is_same = least[i] == expected || least[i].is_nan() && expected.is_nan();
                    assert!(is_same, "{i}: {} of {own:#x}, not {expected}", least[i]);
                }
                Ok(())
            }
        }
    };
}

signs!(signs_of_singles, f32, u32);
signs!(signs_of_doubles, f64, u64);

/// LLVM makes absolute values and negations of such bits, which a GPU gives another NaN of.
fn signs_of_nans(jit: &Jit) -> Outcome {
    let singles: Vec<f32> = (0..THREADS)
        .map(|i| match i % 4 {
            0 => f32::from_bits(0x7f80_0001 + i as u32),
            1 => f32::from_bits(0xffc0_0000 | noise(i) >> 10),
            2 => f32::from_bits(noise(i)),
            _ => i as f32 - 20.0,
        })
        .collect();
    let wide = |x: &f32| match x.is_nan() {
        true => f64::from_bits(u64::from(x.to_bits() | 0x70_0000) << 32 | 5),
        false => f64::from(*x),
    };
    let doubles: Vec<f64> = singles.iter().map(wide).collect();
    signs_of_singles::check(jit, &singles)?;
    signs_of_doubles::check(jit, &doubles)
}
