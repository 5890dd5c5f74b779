//! Narrow blocks of several rows, which a CPU runs side by side: what each has of its own, whatever the width of the grid, and what
//! is told where one of them goes wrong.

use kiln::error::{Error, RunError};
use kiln::prelude::*;

use super::{Outcome, chapter, unchecked};

chapter![
    memory_of_a_block,
    values_of_a_block,
    blocks_that_part,
    blocks_that_end,
    arrays_of_threads,
    numbers_of_warps,
    ways_of_blocks,
    dear_ways_of_blocks,
    faults_of_one_block,
    faults_beside_others,
];

/// Blocks of whole rows of lanes, and others.
const BLOCKS: [[u32; 3]; 8] = [
    [32, 8, 1],
    [16, 16, 1],
    [64, 4, 1],
    [8, 3, 5],
    [32, 1, 4],
    [128, 2, 1],
    [10, 7, 1],
    [1, 64, 1],
];

/// Grids whose rows are shorter than what is run side by side, just as long, and longer.
const GRIDS: [[u32; 3]; 5] = [[1, 1, 1], [3, 2, 2], [8, 1, 1], [17, 3, 1], [67, 1, 2]];

/// Launches `run` for blocks of all shapes, with how many threads there are.
fn each_shape(mut run: impl FnMut(LaunchConfig, usize, [u32; 3], [u32; 3]) -> Outcome) -> Outcome {
    for block in BLOCKS {
        for grid in GRIDS {
            let threads: u32 = block.iter().chain(&grid).product();
            let config =
                LaunchConfig::new((grid[0], grid[1], grid[2]), (block[0], block[1], block[2]));
            run(config, threads as usize, block, grid)?;
        }
    }
    Ok(())
}

/// Values of each block, turned round in its own memory, and three times their sum with those of the neighbours there.
#[kernel]
fn turned(x: &[u32], out: &mut [u32]) {
    let tile = shared!([u32; 512]);
    let sums = shared!([u32; 512]);
    let (thread, size) = (thread_linear_id(), block_size());
    let first = block_linear_id() as usize * size;
    tile[size - 1 - thread] = x[first + thread];
    barrier();
    let mine = tile[thread];
    sums[thread] = mine + tile[(thread + 1) % size] + tile[(thread + 2) % size];
    barrier();
    for round in 0..2 {
        let next = sums[(thread + 1) % size];
        barrier();
        sums[thread] = next + round as u32;
        barrier();
    }
    out[first + thread] = mine + 3 * sums[thread];
}

fn memory_of_a_block(jit: &Jit) -> Outcome {
    each_shape(|config, count, block, _| {
        let x: Vec<u32> = (0..count as u32).map(|i| i * 7 % 1009).collect();
        let (there, mut out) = (jit.upload(&x)?, jit.zeros::<u32>(count)?);
        turned.launch(jit, config, &there, &mut out)?;
        let size = block.iter().product::<u32>() as usize;
        let mut wanted = Vec::new();
        for block in x.chunks(size) {
            let mirrored: Vec<u32> = block.iter().rev().copied().collect();
            let at = |i: usize| mirrored[i % size];
            let mut sums: Vec<u32> = (0..size).map(|i| at(i) + at(i + 1) + at(i + 2)).collect();
            for round in 0..2 {
                sums = (0..size).map(|i| sums[(i + 1) % size] + round).collect();
            }
            wanted.extend((0..size).map(|i| mirrored[i] + 3 * sums[i]));
        }
        assert_eq!(out.to_vec()?, wanted, "{config:?}");
        Ok(())
    })
}

/// Values and variables of a block, some of which depend on its place.
#[kernel]
fn placed(out: &mut [u32]) {
    let (block, grid) = (block_idx(), grid_dim());
    let place = (block.z * grid.y + block.y) * grid.x + block.x;
    let mut kept = place as u32 * 3;
    let mut common = 1;
    kept += kept;
    common += grid.x as u32;
    if block.x % 2 == 1 {
        kept += 100;
    }
    let thread = thread_idx();
    let own = (thread.z * 100 + thread.y * 10 + thread.x) as u32;
    out[place * block_size() + thread_linear_id()] = kept + 1000 * own + 7 * common;
}

fn values_of_a_block(jit: &Jit) -> Outcome {
    each_shape(|config, count, [x, y, z], grid| {
        let mut out = jit.zeros::<u32>(count)?;
        placed.launch(jit, config, &mut out)?;
        let size = x * y * z;
        let wanted = (0..count as u32).map(|i| {
            let (place, thread) = (i / size, i % size);
            let own = thread / (x * y) * 100 + thread / x % y * 10 + thread % x;
            let odd = if place % grid[0] % 2 == 1 { 100 } else { 0 };
            6 * place + odd + 1000 * own + 7 * (1 + grid[0])
        });
        assert_eq!(out.to_vec()?, wanted.collect::<Vec<_>>(), "{config:?}");
        Ok(())
    })
}

/// Barriers where only some blocks come to them.
#[kernel]
fn parted(out: &mut [u32]) {
    let tile = shared!([u32; 512]);
    let (thread, size, block) = (thread_linear_id(), block_size(), block_idx().x);
    tile[thread] = thread as u32;
    if block % 3 == 0 {
        barrier();
        let other = tile[size - 1 - thread];
        barrier();
        tile[thread] = other + block as u32;
    }
    for _ in 0..block % 2 {
        barrier();
        let other = tile[(thread + 1) % size];
        barrier();
        tile[thread] = other;
    }
    out[block_linear_id() as usize * size + thread] = tile[thread];
}

fn blocks_that_part(jit: &Jit) -> Outcome {
    each_shape(|config, count, block, grid| {
        let mut out = jit.zeros::<u32>(count)?;
        parted.launch(jit, config, &mut out)?;
        let size = block.iter().product::<u32>();
        let wanted = (0..count as u32).map(|i| {
            let (x, thread) = (i / size % grid[0], i % size);
            let thread = if x % 2 == 1 {
                (thread + 1) % size
            } else {
                thread
            };
            match x % 3 {
                0 => size - 1 - thread + x,
                _ => thread,
            }
        });
        assert_eq!(out.to_vec()?, wanted.collect::<Vec<_>>(), "{config:?}");
        Ok(())
    })
}

/// Whole blocks and single threads that end before others write.
#[kernel]
fn ended(out: &mut [u32]) {
    let (thread, block) = (thread_linear_id(), block_idx().x);
    if block % 4 == 1 || thread % 7 == 3 {
        return;
    }
    out[block_linear_id() as usize * block_size() + thread] = 1 + block as u32;
}

fn blocks_that_end(jit: &Jit) -> Outcome {
    each_shape(|config, count, block, grid| {
        let mut out = jit.zeros::<u32>(count)?;
        ended.launch(jit, config, &mut out)?;
        let size = block.iter().product::<u32>();
        let wanted = (0..count as u32).map(|i| {
            let (x, thread) = (i / size % grid[0], i % size);
            let has_ended = x % 4 == 1 || thread % 7 == 3;
            if has_ended { 0 } else { 1 + x }
        });
        assert_eq!(out.to_vec()?, wanted.collect::<Vec<_>>(), "{config:?}");
        Ok(())
    })
}

/// Arrays of threads.
#[kernel]
fn own_arrays(out: &mut [u32]) {
    let mut own = [0u32; 5];
    let (thread, place) = (thread_linear_id(), block_linear_id() as usize);
    own[thread % 5] = place as u32 + 1;
    own[(thread + 1) % 5] += own[thread % 5] * 10;
    let mut sum = 0;
    for i in 0..5 {
        sum += own[i] * (i as u32 + 1);
    }
    out[place * block_size() + thread] = sum;
}

fn arrays_of_threads(jit: &Jit) -> Outcome {
    each_shape(|config, count, block, _| {
        let mut out = jit.zeros::<u32>(count)?;
        own_arrays.launch(jit, config, &mut out)?;
        let size = block.iter().product::<u32>();
        let wanted = (0..count as u32).map(|i| {
            let (first, thread) = (i / size + 1, i % size);
            first * (thread % 5 + 1) + 10 * first * ((thread + 1) % 5 + 1)
        });
        assert_eq!(out.to_vec()?, wanted.collect::<Vec<_>>(), "{config:?}");
        Ok(())
    })
}

/// Warps, of which lanes read each other's values.
#[kernel]
fn of_warps(out: &mut [u32]) {
    let (thread, block) = (thread_linear_id(), block_idx().x);
    let sum = warp_reduce_add(FULL_MASK, thread as u32 + block as u32);
    out[block_linear_id() as usize * block_size() + thread] = 1000 * warp_id() + sum;
}

fn numbers_of_warps(jit: &Jit) -> Outcome {
    each_shape(|config, count, block, grid| {
        let size = block.iter().product::<u32>();
        if !size.is_multiple_of(32) {
            return Ok(());
        }
        let mut out = jit.zeros::<u32>(count)?;
        of_warps.launch(jit, config, &mut out)?;
        let wanted = (0..count as u32).map(|i| {
            let (x, warp) = (i / size % grid[0], i % size / 32);
            1000 * warp + (0..32).map(|lane| warp * 32 + lane + x).sum::<u32>()
        });
        assert_eq!(out.to_vec()?, wanted.collect::<Vec<_>>(), "{config:?}");
        Ok(())
    })
}

/// One of two ways as a whole, by the block's place; both take from a list what is dear to find.
#[kernel]
fn two_ways(x: &[u32], out: &mut [u32], bits: u32) {
    let block = block_idx().x as u32;
    let first = (block ^ (block >> 3)).wrapping_mul(0x9e37_79b9);
    let mixed = (first ^ (first >> 15)).wrapping_mul(0x85eb_ca6b);
    if (block & bits) == bits {
        let place = block_linear_id() as usize * block_size() + thread_linear_id();
        out[place] = x[(mixed >> 20) as usize & 63] + 5 * x[place & 63] + 1;
    } else {
        let place = block_linear_id() as usize * block_size() + thread_linear_id();
        out[place] = mixed ^ x[(place + block as usize) & 63];
    }
}

/// As [`two_ways`], by what is dear to find.
#[kernel]
fn dear_ways(x: &[u32], out: &mut [u32], bits: u32) {
    let block = block_idx().x as u32;
    let first = (block ^ (block >> 3)).wrapping_mul(0x9e37_79b9);
    let mixed = (first ^ (first >> 15)).wrapping_mul(0x85eb_ca6b);
    if ((mixed >> 9) & bits) == bits {
        let place = block_linear_id() as usize * block_size() + thread_linear_id();
        out[place] = x[(mixed >> 20) as usize & 63] + 5 * x[place & 63] + 1;
    } else {
        let place = block_linear_id() as usize * block_size() + thread_linear_id();
        out[place] = mixed ^ x[(place + block as usize) & 63];
    }
}

/// A launch over a list, into another, with the bits that the first way is for.
type Launch = fn(&Jit, LaunchConfig, &Buffer<u32>, &mut Buffer<u32>, u32) -> kiln::Result<()>;

fn compare_ways(jit: &Jit, launch: Launch, asked: fn(u32, u32) -> u32) -> Outcome {
    let x: Vec<u32> = (0..64).map(|i| i * 37 % 1009).collect();
    for jit in [jit, &unchecked(jit)] {
        let there = jit.upload(&x)?;
        for bits in [0, 1, 3, 6] {
            each_shape(|config, count, block, grid| {
                let mut out = jit.zeros::<u32>(count)?;
                launch(jit, config, &there, &mut out, bits)?;
                let size = block.iter().product::<u32>();
                let wanted = (0..count as u32).map(|i| {
                    let block = i / size % grid[0];
                    let first = (block ^ (block >> 3)).wrapping_mul(0x9e37_79b9);
                    let mixed = (first ^ (first >> 15)).wrapping_mul(0x85eb_ca6b);
                    match asked(block, mixed) & bits == bits {
                        true => x[mixed as usize >> 20 & 63] + 5 * x[i as usize & 63] + 1,
                        false => mixed ^ x[(i + block) as usize & 63],
                    }
                });
                assert_eq!(
                    out.to_vec()?,
                    wanted.collect::<Vec<_>>(),
                    "{config:?}, {bits}"
                );
                Ok(())
            })?;
        }
    }
    Ok(())
}

fn ways_of_blocks(jit: &Jit) -> Outcome {
    compare_ways(
        jit,
        |jit, config, x, out, bits| two_ways.launch(jit, config, x, out, bits),
        |block, _| block,
    )
}

fn dear_ways_of_blocks(jit: &Jit) -> Outcome {
    compare_ways(
        jit,
        |jit, config, x, out, bits| dear_ways.launch(jit, config, x, out, bits),
        |_, mixed| mixed >> 9,
    )
}

/// One thread of one block reaches beyond the end.
#[kernel]
fn reaching(out: &mut [u32], at: u32) {
    let place = block_linear_id() as usize * block_size() + thread_linear_id();
    let far = if place == at as usize { out.len() } else { 0 };
    out[place + far] = 1;
}

fn faults_of_one_block(jit: &Jit) -> Outcome {
    each_shape(|config, count, [x, y, z], grid| {
        let mut out = jit.zeros::<u32>(count)?;
        let at = count * 2 / 3;
        reaching.launch(jit, config, &mut out, at as u32)?;
        let fault = match jit.synchronize() {
            Err(Error::Run(RunError::Fault(fault))) => fault,
            other => panic!("expected a fault, got {other:?}"),
        };
        let (block, thread) = (at as u32 / (x * y * z), at as u32 % (x * y * z));
        let block = [
            block % grid[0],
            block / grid[0] % grid[1],
            block / grid[0] / grid[1],
        ];
        let told = [fault.block.x, fault.block.y, fault.block.z];
        assert_eq!(told, block, "{config:?}");
        let told = [fault.thread.x, fault.thread.y, fault.thread.z];
        assert_eq!(
            told,
            [thread % x, thread / x % y, thread / x / y],
            "{config:?}"
        );
        let out = out.to_vec()?;
        assert!(
            (0..count).all(|i| out[i] == u32::from(i != at)),
            "{config:?}"
        );
        Ok(())
    })
}

/// Elements, and those that are `far` ahead, of blocks and rows that begin so far behind each other. A block knows at its start
/// whether all of its threads stay within bounds.
#[kernel]
fn ahead(x: &[u32], out: &mut [u32], far: u32, pitch: u32) {
    let (block, grid, thread) = (block_idx(), grid_dim(), thread_idx());
    let first = ((block.z * grid.y + block.y) * grid.x + block.x) * pitch as usize;
    let place = first + thread.z * 512 + thread.y * 128 + thread.x;
    out[place] = x[place] + x[place + far as usize];
}

/// Only the last thread of the last block reaches beyond the end: blocks beside it are known to stay within.
fn faults_beside_others(jit: &Jit) -> Outcome {
    each_shape(|config, _, [x, y, z], grid| {
        let pitch = if z > 1 { 512 * z } else { 128 * y };
        let blocks: u32 = grid.iter().product();
        let place = |thread: u32| thread / x / y * 512 + thread / x % y * 128 + thread % x;
        let last = (blocks - 1) * pitch + place(x * y * z - 1);
        let numbers: Vec<u32> = (0..last + 5).collect();
        let (there, mut out) = (jit.upload(&numbers)?, jit.zeros(numbers.len())?);
        ahead.launch(jit, config, &there, &mut out, 5, pitch)?;
        let fault = match jit.synchronize() {
            Err(Error::Run(RunError::Fault(fault))) => fault,
            other => panic!("expected a fault, got {other:?}"),
        };
        let told = [fault.block.x, fault.block.y, fault.block.z];
        assert_eq!(told, grid.map(|extent| extent - 1), "{config:?}");
        let told = [fault.thread.x, fault.thread.y, fault.thread.z];
        assert_eq!(told, [x - 1, y - 1, z - 1], "{config:?}");
        let mut wanted = vec![0; numbers.len()];
        for block in 0..blocks {
            for at in (0..x * y * z).map(|thread| block * pitch + place(thread)) {
                wanted[at as usize] = 2 * at + 5;
            }
        }
        wanted[last as usize] = 0;
        assert_eq!(out.to_vec()?, wanted, "{config:?}");
        Ok(())
    })
}
