//! The elements of a block in order, their ranks and their counts, and what the blocks before come to, against the host: in
//! blocks of all sizes, with several elements a thread, with keys of all kinds.

use kiln::prelude::*;

use super::warp::{noise, threads};
use super::{Outcome, chapter};

chapter![
    ranks_by_digits,
    orders_by_keys,
    orders_by_comparison,
    parts_are_merged,
    counts_of_bins,
    bins_beyond_the_counts_fault,
    tiles_look_back,
];

/// Threads of blocks: of no warp, one, several, with a last one that is not full, in several dimensions.
const BLOCKS: [[u32; 3]; 5] = [[1, 1, 1], [5, 1, 1], [33, 1, 1], [7, 5, 3], [200, 1, 1]];

#[derive(KernelType, Copy, Clone, Debug, PartialEq, Eq)]
#[repr(C)]
struct Item {
    key: u32,
    at: u16,
}

fn items(n: usize, keys: u32) -> Vec<Item> {
    let item = |i| Item {
        key: noise(i) % keys,
        at: i as u16,
    };
    (0..n).map(item).collect()
}

#[kernel]
fn rank(digits: &[u32], ranks: &mut [u32], starts: &mut [u32]) {
    let (thread, counts) = (thread_linear_id(), shared!([u16; 16 * 200]));
    let mut mine = [0u32; 3];
    for i in 0..3 {
        mine[i] = digits[3 * thread + i];
    }
    let found = block_radix_rank(mine, counts);
    for i in 0..3 {
        ranks[3 * thread + i] = found[i];
    }
    barrier();
    for digit in (thread..16).step_by(block_size()) {
        starts[digit] = counts[digit * block_size()] as u32;
    }
}

fn ranks_by_digits(jit: &Jit) -> Outcome {
    for shape in BLOCKS {
        for values in [16, 1, 3] {
            let n = 3 * threads(shape);
            let digits: Vec<u32> = (0..n).map(|i| noise(i) % values * 5 % 16).collect();
            let (mut ranks, mut starts) = (jit.zeros::<u32>(n)?, jit.zeros::<u32>(16)?);
            let there = jit.upload(&digits)?;
            jit.launch(&rank, 1, shape, args!(&there, &mut ranks, &mut starts))?;
            let below = |limit| digits.iter().filter(|d| **d < limit).count() as u32;
            let of = |(i, digit): (usize, &u32)| {
                let alike = digits[..i].iter().filter(|d| *d == digit).count() as u32;
                below(*digit) + alike
            };
            let want: Vec<u32> = digits.iter().enumerate().map(of).collect();
            assert_eq!(ranks.to_vec()?, want, "{shape:?} {values}");
            assert_eq!(starts.to_vec()?, (0..16).map(below).collect::<Vec<_>>());
        }
    }
    Ok(())
}

#[kernel]
fn radix_sort(x: &mut [Item], bits: u32) {
    let i = 2 * thread_linear_id();
    let (counts, memory) = (shared!([u16; 16 * 200]), shared!([u32; 400]));
    let beside = shared!([u16; 400]);
    let (keys, at) = ([x[i].key, x[i + 1].key], [x[i].at, x[i + 1].at]);
    let (keys, at) = block_radix_sort_pairs(keys, at, bits, counts, memory, beside);
    for k in 0..2 {
        x[i + k] = Item {
            key: keys[k],
            at: at[k],
        };
    }
}

#[kernel]
fn radix_sort_any<K: Int>(x: &mut [K], bits: u32) {
    let i = thread_linear_id();
    let (counts, memory) = (shared!([u16; 16 * 200]), shared!([K; 200]));
    x[i] = block_radix_sort([x[i]], bits, counts, memory)[0];
}

fn orders_by_keys(jit: &Jit) -> Outcome {
    for shape in BLOCKS {
        let n = 2 * threads(shape);
        for (keys, bits) in [(u32::MAX, 32u32), (1 << 10, 10), (3, 2), (2, 1), (9, 3)] {
            let mut want = items(n, keys);
            let mut x = jit.upload(&want)?;
            jit.launch(&radix_sort, 1, shape, args!(&mut x, bits))?;
            let mask = u32::MAX >> (32 - bits);
            want.sort_by_key(|item| item.key & mask);
            assert_eq!(x.to_vec()?, want, "{shape:?} {bits}");
        }
        let n = threads(shape);
        let wide =
            |i| (i64::from(noise(i)) << 38 | i64::from(noise(i + 9))) * (1 - 2 * (i as i64 % 2));
        whole(jit, shape, (0..n).map(wide).collect())?;
        whole(jit, shape, (0..n).map(|i| wide(i) as i32).collect())?;
        whole(jit, shape, (0..n).map(|i| wide(i) as u64).collect())?;
        whole(jit, shape, (0..n).map(|i| noise(i) as i8).collect())?;
    }
    Ok(())
}

/// All bits of numbers of a type.
fn whole<K: KernelType + Ord + std::fmt::Debug>(
    jit: &Jit,
    shape: [u32; 3],
    mut want: Vec<K>,
) -> Outcome {
    let mut x = jit.upload(&want)?;
    let bits = 8 * size_of::<K>() as u32;
    jit.launch(&radix_sort_any, 1, shape, args!(&mut x, bits))?;
    want.sort();
    assert_eq!(x.to_vec()?, want, "{shape:?}");
    Ok(())
}

#[kernel]
fn merge_sort(x: &mut [Item]) {
    let (tile, spare, n) = (shared!([Item; 700]), shared!([Item; 700]), x.len());
    for i in (thread_linear_id()..n).step_by(block_size()) {
        tile[i] = x[i];
    }
    block_merge_sort(&mut tile[..n], &mut spare[..n], |a, b| a.key > b.key);
    for i in (thread_linear_id()..n).step_by(block_size()) {
        x[i] = tile[i];
    }
}

fn orders_by_comparison(jit: &Jit) -> Outcome {
    for shape in BLOCKS {
        for (n, keys) in [
            (1, 9),
            (2, u32::MAX),
            (31, 5),
            (100, u32::MAX),
            (700, 50),
            (259, 2),
        ] {
            let mut want = items(n, keys);
            let mut x = jit.upload(&want)?;
            jit.launch(&merge_sort, 1, shape, args!(&mut x))?;
            want.sort_by_key(|item| std::cmp::Reverse(item.key));
            assert_eq!(x.to_vec()?, want, "{n} by {shape:?}");
        }
    }
    Ok(())
}

#[kernel]
fn merge(x: &[Item], middle: u32, out: &mut [Item]) {
    let middle = middle as usize;
    block_merge(&x[..middle], &x[middle..], out, |a, b| a.key < b.key);
}

fn parts_are_merged(jit: &Jit) -> Outcome {
    for shape in BLOCKS {
        for n in [1, 40, 333] {
            for middle in [0, 1, n / 3, n - 1, n] {
                let mut want = items(n, 20);
                want[..middle].sort_by_key(|item| item.key);
                want[middle..].sort_by_key(|item| item.key);
                let (x, mut out) = (jit.upload(&want)?, jit.upload(&items(n, 1))?);
                jit.launch(&merge, 1, shape, args!(&x, middle as u32, &mut out))?;
                want.sort_by_key(|item| item.key);
                assert_eq!(out.to_vec()?, want, "{shape:?} {middle}");
            }
        }
    }
    Ok(())
}

#[kernel]
fn histogram(x: &[u32], out: &mut [u32], rounds: u32) {
    let (i, counts) = (2 * thread_linear_id(), shared!([u32; 50]));
    for _ in 0..rounds {
        block_histogram([x[i], x[i + 1]], counts);
    }
    block_histogram_add([x[i + 1]], counts);
    for bin in (thread_linear_id()..50).step_by(block_size()) {
        out[bin] = counts[bin];
    }
}

fn counts_of_bins(jit: &Jit) -> Outcome {
    for shape in BLOCKS {
        for (bins, rounds) in [(50, 1u32), (1, 1), (7, 2)] {
            let x: Vec<u32> = (0..2 * threads(shape)).map(|i| noise(i) % bins).collect();
            let mut out = jit.zeros::<u32>(50)?;
            jit.launch(
                &histogram,
                1,
                shape,
                args!(&jit.upload(&x)?, &mut out, rounds),
            )?;
            let mut want = [0; 50];
            for (i, bin) in x.iter().enumerate() {
                want[*bin as usize] += 1 + i as u32 % 2;
            }
            assert_eq!(out.to_vec()?, want, "{shape:?} {bins}");
        }
    }
    Ok(())
}

fn bins_beyond_the_counts_fault(jit: &Jit) -> Outcome {
    let (x, mut out) = (jit.upload(&[3u32, 50])?, jit.zeros::<u32>(50)?);
    let launched = jit.launch(&histogram, 1, 1, args!(&x, &mut out, 1u32));
    let error = launched
        .and_then(|()| jit.synchronize())
        .expect_err("50 is beyond");
    let fault = error.fault().expect("it is a fault");
    assert_eq!((fault.index, fault.length), (50, 50), "{fault}");
    Ok(())
}

#[derive(KernelType, Copy, Clone, Debug, PartialEq, Eq)]
#[repr(C)]
struct Affine {
    factor: u32,
    sum: u32,
}

#[device_fn]
fn then(a: Affine, b: Affine) -> Affine {
    Affine {
        factor: a.factor * b.factor,
        sum: a.sum * b.factor + b.sum,
    }
}

#[kernel]
fn before_each_tile(
    x: &[Affine],
    first: Affine,
    out: &mut [Affine],
    state: &mut [u32],
    sums: &mut [Affine],
    totals: &mut [Affine],
) {
    let tile = look_back_tile(state);
    let own = block_reduce_to_first(x[tile * block_size() + thread_linear_id()], |a, b| {
        then(a, b)
    });
    let before = block_look_back(tile, own, first, state, sums, totals, |a, b| then(a, b));
    out[tile * block_size() + thread_linear_id()] = before;
}

fn tiles_look_back(jit: &Jit) -> Outcome {
    let first = Affine { factor: 3, sum: 11 };
    for (block, tiles) in [
        (1u32, 1usize),
        (1, 70),
        (5, 40),
        (32, 33),
        (64, 100),
        (96, 3),
    ] {
        let each = block as usize;
        let affine = |i| Affine {
            factor: noise(i) | 1,
            sum: noise(3 * i),
        };
        let x: Vec<Affine> = (0..tiles * each).map(affine).collect();
        let none = vec![first; x.len()];
        let mut out = jit.upload(&none)?;
        let mut state = jit.zeros::<u32>(1 + tiles)?;
        let (mut sums, mut totals) = (jit.upload(&none[..tiles])?, jit.upload(&none[..tiles])?);
        let there = jit.upload(&x)?;
        let args = args!(&there, first, &mut out, &mut state, &mut sums, &mut totals);
        jit.launch(&before_each_tile, tiles, block, args)?;
        let (mut want, mut sum) = (Vec::new(), first);
        let then = |a: Affine, b: Affine| Affine {
            factor: a.factor.wrapping_mul(b.factor),
            sum: a.sum.wrapping_mul(b.factor).wrapping_add(b.sum),
        };
        for tile in x.chunks(each) {
            want.extend(vec![sum; each]);
            sum = tile.iter().fold(sum, |a, b| then(a, *b));
        }
        assert_eq!(out.to_vec()?, want, "{tiles} of {block}");
    }
    Ok(())
}
