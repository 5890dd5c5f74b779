//! Running sums of blocks in memory of the kernel's, against the host: in blocks of any size and shape, of values of each width
//! that lies in its own way, one after the other in the same memory, with operators whose operands may not change places.

use kiln::prelude::*;

use super::groups::Affine;
use super::warp::{noise, threads};
use super::{Outcome, chapter};

chapter![
    sums_in_memory_keep_the_order,
    values_of_each_width_have_their_places,
    sums_follow_each_other_in_the_same_memory,
    sizes_that_are_known_are_no_others,
    too_little_memory_is_refused,
];

/// Sizes around those of warps, around where one warp goes over the values of all, and shapes.
const SHAPES: [[u32; 3]; 15] = [
    [1, 1, 1],
    [31, 1, 1],
    [32, 1, 1],
    [33, 1, 1],
    [64, 1, 1],
    [96, 1, 1],
    [100, 1, 1],
    [256, 1, 1],
    [500, 1, 1],
    [512, 1, 1],
    [544, 1, 1],
    [1024, 1, 1],
    [8, 8, 2],
    [5, 3, 3],
    [3, 50, 1],
];

fn affines(n: usize) -> Vec<Affine> {
    let affine = |i| Affine {
        factor: noise(i) | 1,
        sum: noise(7 * i),
    };
    (0..n).map(affine).collect()
}

const FIRST: Affine = Affine { factor: 3, sum: 5 };

// As many threads as a block can have, each with what two sums of structs hold.
#[kernel(launch_bounds(1024))]
fn both(x: &[Affine], up_to: &mut [Affine], before: &mut [Affine]) {
    let (i, memory) = (thread_linear_id(), shared!([Affine; 1024]));
    let first = Affine { factor: 3, sum: 5 };
    up_to[i] = block_inclusive_scan_in(x[i], memory, |a, b| a.then(b));
    before[i] = block_exclusive_scan_in(x[i], first, memory, |a, b| a.then(b));
}

fn sums_in_memory_keep_the_order(jit: &Jit) -> Outcome {
    for shape in SHAPES {
        let n = threads(shape);
        let x = affines(n);
        let (mut up_to, mut before) = (jit.upload(&x)?, jit.upload(&x)?);
        let input = jit.upload(&x)?;
        jit.launch(&both, 1, shape, args!(&input, &mut up_to, &mut before))?;
        let sums = x.iter().scan(Affine { factor: 1, sum: 0 }, |sum, &x| {
            *sum = sum.then(x);
            Some(*sum)
        });
        let sums: Vec<Affine> = sums.collect();
        assert_eq!(up_to.to_vec()?, sums, "{shape:?}");
        let begin = |sum: Affine| FIRST.then(sum);
        let before_each = (0..n).map(|i| if i == 0 { FIRST } else { begin(sums[i - 1]) });
        assert_eq!(
            before.to_vec()?,
            before_each.collect::<Vec<_>>(),
            "{shape:?}"
        );
    }
    Ok(())
}

/// The last one that is not 0: the order matters, and the result is one of the values.
#[device_fn]
fn last<T: Num>(a: T, b: T) -> T {
    if b != T::ZERO { b } else { a }
}

/// The last ones by fields of several widths: 1, 2, 4, 8, 16 and 24 bytes.
#[kernel]
fn of_widths(x: &[u32], out: &mut [[u32; 6]]) {
    let (i, v) = (thread_linear_id(), x[thread_linear_id()]);
    let (bytes, shorts) = (shared!([u8; 1024]), shared!([u16; 1024]));
    let (words, longs) = (shared!([u32; 1024]), shared!([u64; 1024]));
    let (pairs, triples) = (shared!([[u64; 2]; 512]), shared!([[u64; 3]; 512]));
    let (pair, triple) = ([v as u64, 7], [v as u64, 8, v as u64]);
    out[i] = [
        block_inclusive_scan_in(v as u8, bytes, |a, b| last(a, b)) as u32,
        block_inclusive_scan_in(v as u16, shorts, |a, b| last(a, b)) as u32,
        block_inclusive_scan_in(v, words, |a, b| last(a, b)),
        block_inclusive_scan_in(v as u64, longs, |a, b| last(a, b)) as u32,
        block_inclusive_scan_in(pair, pairs, |a, b| [last(a[0], b[0]), a[1]])[0] as u32,
        block_inclusive_scan_in(triple, triples, |a, b| [last(a[0], b[0]), a[1], b[2]])[0] as u32,
    ];
}

fn values_of_each_width_have_their_places(jit: &Jit) -> Outcome {
    for n in [33, 64, 128, 256, 300, 512] {
        let x: Vec<u32> = (0..n)
            .map(|i| noise(i as usize) % 250 * (noise(3 * i as usize) % 3))
            .map(|v| v % 256)
            .collect();
        let mut out = jit.upload(&vec![[0u32; 6]; x.len()])?;
        jit.launch(&of_widths, 1, n, args!(&jit.upload(&x)?, &mut out))?;
        let mut up_to = 0;
        for (i, (got, &v)) in out.to_vec()?.into_iter().zip(&x).enumerate() {
            up_to = if v != 0 { v } else { up_to };
            assert_eq!(got, [up_to; 6], "thread {i} of {n}");
        }
    }
    Ok(())
}

/// Sums of sums, with nothing but the calls between them.
#[kernel]
fn again(x: &mut [u32], rounds: u32) {
    let (i, memory) = (global_id().x, shared!([u32; 512]));
    let mut v = x[i];
    for round in 0..rounds {
        v = block_inclusive_scan_in(v, memory, |a, b| a.wrapping_add(b));
        v ^= block_exclusive_scan_in(v, round, memory, |a, b| {
            a.wrapping_mul(31).wrapping_add(b) & 1
        });
    }
    x[i] = v;
}

fn sums_follow_each_other_in_the_same_memory(jit: &Jit) -> Outcome {
    // Blocks of each size go over their values by different warps.
    for n in [64, 70, 95, 161, 256, 511] {
        let (blocks, rounds) = (6, 3);
        let mut want: Vec<u32> = (0..blocks * n).map(noise).collect();
        let mut x = jit.upload(&want)?;
        jit.launch(&again, blocks as u32, n as u32, args!(&mut x, rounds))?;
        for block in want.chunks_mut(n) {
            for round in 0..rounds {
                let mut sum = 0u32;
                for v in block.iter_mut() {
                    sum = sum.wrapping_add(*v);
                    *v = sum;
                }
                // The last bit of an odd multiple is that of the number.
                let mut before = round;
                for (i, v) in block.iter_mut().enumerate() {
                    let mine = *v;
                    *v ^= if i == 0 { round } else { before & 1 };
                    before = before.wrapping_add(mine);
                }
            }
        }
        assert_eq!(x.to_vec()?, want, "{n} threads");
    }
    Ok(())
}

#[kernel]
fn of_known_size<const BLOCK: usize>(x: &[u32], out: &mut [u32]) {
    assume(block_dim().x == BLOCK && block_dim().y == 1 && block_dim().z == 1);
    let (i, memory) = (global_id().x, shared!([u32; BLOCK]));
    let sum = block_inclusive_scan_in(x[i], memory, |a, b| a.wrapping_add(b));
    let largest = block_exclusive_scan_in(x[i], 3, memory, |a, b| a.max(b));
    let latest = block_inclusive_scan(x[i], |a, b| last(a, b));
    let whole = block_reduce_to_first(sum, |a, b| a ^ b);
    let rest = if thread_idx().x == 0 { whole } else { 0 };
    out[i] = sum.wrapping_add(largest) ^ latest ^ rest;
}

fn check_known_size<const BLOCK: usize>(jit: &Jit) -> Outcome {
    let x: Vec<u32> = (0..3 * BLOCK).map(|i| noise(i) * (noise(i) % 2)).collect();
    let mut out = jit.zeros::<u32>(x.len())?;
    of_known_size.launch::<BLOCK>(jit, (3, BLOCK as u32), &jit.upload(&x)?, &mut out)?;
    let mut want = Vec::new();
    for block in x.chunks(BLOCK) {
        let (mut sum, mut largest, mut last, mut whole) = (0u32, 3, 0, 0);
        let first = want.len();
        for &v in block {
            sum = sum.wrapping_add(v);
            last = if v != 0 { v } else { last };
            whole ^= sum;
            want.push(sum.wrapping_add(largest) ^ last);
            largest = largest.max(v);
        }
        want[first] ^= whole;
    }
    assert_eq!(out.to_vec()?, want, "{BLOCK} threads");
    Ok(())
}

fn sizes_that_are_known_are_no_others(jit: &Jit) -> Outcome {
    check_known_size::<48>(jit)?;
    check_known_size::<128>(jit)?;
    check_known_size::<512>(jit)?;
    check_known_size::<1024>(jit)
}

#[kernel]
fn in_little(out: &mut [u32], is_exclusive: bool) {
    let memory = shared!([u32; 40]);
    out[thread_idx().x] = if is_exclusive {
        block_exclusive_scan_in(1, 0, memory, |a, b| a + b)
    } else {
        block_inclusive_scan_in(1, memory, |a, b| a + b)
    };
}

fn too_little_memory_is_refused(jit: &Jit) -> Outcome {
    for is_exclusive in [false, true] {
        let mut out = jit.zeros::<u32>(41)?;
        in_little.launch(jit, (1, 40), &mut out, is_exclusive)?;
        let first = u32::from(!is_exclusive);
        assert_eq!(out.to_vec()?[..3], [first, first + 1, first + 2]);
        let launched = in_little.launch(jit, (1, 41), &mut out, is_exclusive);
        let error = launched.and_then(|()| jit.synchronize());
        let text = error.expect_err("it is refused").to_string();
        let told = "a block's running sums take memory for a value of each thread";
        assert!(text.contains(told), "{text}");
    }
    Ok(())
}
