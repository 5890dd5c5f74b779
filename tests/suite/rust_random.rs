//! Random numbers: the streams that the host has, number by number. That these are the published ones, and how they are
//! distributed, is tested where they are defined.

use kiln::prelude::*;
use kiln::stdlib::random::{Philox, Xoroshiro};

use super::{Outcome, chapter};

chapter![
    integers_of_philox,
    integers_of_xoroshiro,
    numbers_in_any_order,
    normal_numbers,
    states_in_buffers,
    far_places,
    bounds_of_zero,
];

const SEED: u64 = 0x0123_4567_89ab_cdef;

/// What a thread draws that has the same bits everywhere.
#[derive(KernelType, Copy, Clone, Debug, PartialEq)]
#[repr(C)]
struct Drawn {
    wide: [u64; 2],
    narrow: [u32; 3],
    single: f32,
    double: f64,
    below: [u32; 4],
    below_wide: [u64; 2],
    between: i32,
    between_wide: i64,
}

macro_rules! integers {
    ($($name:ident $drawn:ident $kernel:ident: $generator:ident;)*) => {$(
        #[device_fn]
        fn $drawn(seed: u64, stream: u64) -> Drawn {
            let mut random = $generator::new(seed, stream);
            let narrow = [random.next_u32(), random.next_u32(), random.next_u32()];
            let wide = [random.next_u64(), random.next_u64()];
            let single = random.uniform_f32();
            let double = random.uniform_f64();
            let mut below = [6, 1, 3 << 30, u32::MAX];
            for i in 0..below.len() {
                below[i] = random.below(below[i]);
            }
            Drawn {
                wide,
                narrow,
                single,
                double,
                below,
                below_wide: [random.below_u64(10), random.below_u64(3 << 62)],
                between: random.range_i32(-5, 6),
                between_wide: random.range_i64(i64::MIN, i64::MAX),
            }
        }

        #[kernel]
        fn $kernel(out: &mut [Drawn], seed: u64) {
            let i = global_id().x;
            if i < out.len() {
                out[i] = $drawn(seed, i as u64 * 0x1_0000_0001);
            }
        }

        fn $name(jit: &Jit) -> Outcome {
            let mut out = jit.upload(&[$drawn(0, 0); 200])?;
            $kernel.launch(jit, (4, 64), &mut out, SEED)?;
            for (i, drawn) in out.to_vec()?.into_iter().enumerate() {
                assert_eq!(drawn, $drawn(SEED, i as u64 * 0x1_0000_0001), "stream {i}");
                assert!((0.0..1.0).contains(&drawn.single) && (0.0..1.0).contains(&drawn.double));
            }
            Ok(())
        }
    )*};
}
integers! {
    integers_of_philox drawn_of_philox fill_of_philox: Philox;
    integers_of_xoroshiro drawn_of_xoroshiro fill_of_xoroshiro: Xoroshiro;
}

/// Threads of one warp that draw at different places of the program.
#[kernel]
fn walk(ends: &mut [i32], seed: u64) {
    let i = global_id().x;
    if i < ends.len() {
        let mut random = Philox::new(seed, i as u64);
        let mut at = 0;
        while at != 5 && at != -5 {
            if random.next_u32() & 1 == 0 {
                at += random.range_i32(1, 3).min(5 - at);
            } else {
                at -= 1;
            }
        }
        ends[i] = at * 1000 + random.below(1000) as i32;
    }
}

fn numbers_in_any_order(jit: &Jit) -> Outcome {
    let mut ends = jit.zeros::<i32>(100)?;
    walk.launch(jit, (2, 64), &mut ends, SEED)?;
    for (i, end) in ends.to_vec()?.into_iter().enumerate() {
        let mut random = Philox::new(SEED, i as u64);
        let mut at = 0i32;
        while at.abs() != 5 {
            match random.next_u32() & 1 {
                0 => at += random.range_i32(1, 3).min(5 - at),
                _ => at -= 1,
            }
        }
        assert_eq!(end, at * 1000 + random.below(1000) as i32, "walk {i}");
    }
    Ok(())
}

#[kernel]
fn normals(single: &mut [[f32; 3]], double: &mut [[f64; 3]], seed: u64) {
    let i = global_id().x;
    if i < single.len() {
        let mut random = Xoroshiro::new(seed, i as u64);
        let pair = random.normal_pair_f32();
        single[i] = [pair.0, pair.1, random.normal_f32()];
        let pair = random.normal_pair_f64();
        double[i] = [pair.0, pair.1, random.normal_f64()];
    }
}

fn normal_numbers(jit: &Jit) -> Outcome {
    const N: usize = 1000;
    let (mut single, mut double) = (jit.zeros(N)?, jit.zeros(N)?);
    normals.launch(jit, (grid_for(N, 64), 64), &mut single, &mut double, SEED)?;
    let (single, double) = (single.to_vec()?, double.to_vec()?);
    for i in 0..N {
        let mut random = Xoroshiro::new(SEED, i as u64);
        let (a, b) = random.normal_pair_f32();
        // Sine and cosine near their zeros are off by what the angle is: by 1 in 2^24 of the whole.
        let near = |x: f64, y: f64, unit: f64| (x - y).abs() <= 8.0 * unit * y.abs().max(1.0);
        for (x, y) in single[i].into_iter().zip([a, b, random.normal_f32()]) {
            assert!(near(x.into(), y.into(), f32::EPSILON.into()), "{x} and {y}");
        }
        let (a, b) = random.normal_pair_f64();
        for (x, y) in double[i].into_iter().zip([a, b, random.normal_f64()]) {
            assert!(near(x, y, f64::EPSILON), "{x} and {y}");
        }
    }
    Ok(())
}

#[kernel]
fn take<const N: usize>(philox: &mut [Philox], xoroshiro: &mut [Xoroshiro], sums: &mut [u64]) {
    let i = global_id().x;
    if i < sums.len() {
        for _ in 0..N {
            sums[i] += philox[i].below(1000) as u64 + xoroshiro[i].below_u64(1000);
        }
    }
}

fn states_in_buffers(jit: &Jit) -> Outcome {
    let philox: Vec<_> = (0..40).map(|i| Philox::new(SEED, i)).collect();
    let xoroshiro: Vec<_> = (0..40).map(|i| Xoroshiro::new(SEED, i)).collect();
    let (mut p, mut x) = (jit.upload(&philox)?, jit.upload(&xoroshiro)?);
    let mut sums = jit.zeros::<u64>(40)?;
    for _ in 0..3 {
        take.launch::<3>(jit, (1, 64), &mut p, &mut x, &mut sums)?;
    }
    let mut states = philox.into_iter().zip(xoroshiro);
    let (p, x) = (p.to_vec()?, x.to_vec()?);
    for (i, sum) in sums.to_vec()?.into_iter().enumerate() {
        let (mut philox, mut xoroshiro) = states.next().expect("there are as many");
        let draw = |_| u64::from(philox.below(1000)) + xoroshiro.below_u64(1000);
        assert_eq!(sum, (0..9).map(draw).sum::<u64>());
        assert_eq!((p[i], x[i]), (philox, xoroshiro));
    }
    Ok(())
}

#[kernel]
fn far(philox: &mut [Philox], xoroshiro: &mut [Xoroshiro], blocks: &mut [[u32; 4]]) {
    let i = global_id().x;
    if i < philox.len() {
        philox[i].skip(i as u64 * 0x4000_0000_0000_0001);
        blocks[i] = philox[i].next_u32x4();
        philox[i].skip(i as u64);
        if i % 2 == 0 {
            xoroshiro[i].jump();
        } else {
            xoroshiro[i].long_jump();
        }
    }
}

fn far_places(jit: &Jit) -> Outcome {
    let philox: Vec<_> = (0..8).map(|i| Philox::new(SEED, i)).collect();
    let xoroshiro: Vec<_> = (0..8).map(|i| Xoroshiro::new(SEED, i)).collect();
    let (mut p, mut x) = (jit.upload(&philox)?, jit.upload(&xoroshiro)?);
    let mut blocks = jit.zeros(8)?;
    far.launch(jit, (1, 32), &mut p, &mut x, &mut blocks)?;
    let (p, x, blocks) = (p.to_vec()?, x.to_vec()?, blocks.to_vec()?);
    for (i, (mut philox, mut xoroshiro)) in philox.into_iter().zip(xoroshiro).enumerate() {
        philox.skip((i as u64).wrapping_mul(0x4000_0000_0000_0001));
        assert_eq!(blocks[i], philox.next_u32x4());
        philox.skip(i as u64);
        match i % 2 {
            0 => xoroshiro.jump(),
            _ => xoroshiro.long_jump(),
        }
        assert_eq!((p[i], x[i]), (philox, xoroshiro));
    }
    Ok(())
}

#[kernel]
fn roll(out: &mut [u32], sides: u32) {
    out[0] = Philox::new(1, 2).below(sides);
}

fn bounds_of_zero(jit: &Jit) -> Outcome {
    let mut out = jit.zeros::<u32>(1)?;
    roll.launch(jit, (1, 1), &mut out, 1)?;
    assert_eq!(out.to_vec()?, [0]);
    let launched = roll.launch(jit, (1, 1), &mut out, 0);
    let error = launched
        .and_then(|()| jit.synchronize())
        .expect_err("no number is below 0");
    let text = error.to_string();
    assert!(text.contains("there is no integer below 0"), "{text}");
    Ok(())
}
