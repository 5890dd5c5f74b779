//! Waits for all of the grid: blocks of all sizes, again and again, with what a block keeps meanwhile, and what ends them.

use kiln::Error;
use kiln::core::launch::LaunchError;
use kiln::core::runtime::DeviceKind;
use kiln::core::target::Target;
use kiln::prelude::*;

use super::groups::Affine;
use super::warp::{SHAPES, noise, threads};
use super::{Outcome, chapter};

chapter![
    ranks_of_a_grid,
    all_blocks_see_what_all_wrote,
    a_sum_that_each_round_needs_whole,
    what_a_block_has_stays,
    messages_in_relaxed_words,
    waits_in_functions_and_branches_of_all,
    threads_that_have_ended_are_not_waited_for,
    launches_that_are_not_cooperative_are_refused,
    grids_that_do_not_fit_are_refused,
    blocks_that_end_are_told_of,
    graphs_wait_too,
    grids_vote,
    threads_that_have_ended_do_not_vote,
    grids_combine_in_order,
    one_thread_tells_the_grid,
    grids_refuse_ranks_and_memory,
];

/// As many blocks as every device holds.
const BLOCKS: u32 = 6;

#[kernel]
fn positions(out: &mut [[u64; 4]]) {
    let grid = this_grid();
    out[grid.rank() as usize] = [
        grid.rank(),
        grid.size(),
        grid.block_rank(),
        grid.num_blocks(),
    ];
}

fn ranks_of_a_grid(jit: &Jit) -> Outcome {
    for (blocks, shape) in [([3, 1, 1], [33, 1, 1]), ([2, 3, 2], [3, 2, 2])] {
        let (each, total) = (threads(shape) as u64, blocks.iter().product::<u32>());
        let all = each * u64::from(total);
        let mut out = jit.upload(&vec![[0; 4]; all as usize])?;
        jit.launch(&positions, blocks, shape, args!(&mut out))?;
        let want = |rank| [rank, all, rank / each, u64::from(total)];
        assert_eq!(out.to_vec()?, (0..all).map(want).collect::<Vec<_>>());
    }
    Ok(())
}

/// Each round a thread reads what the thread as far from the end wrote in the round before.
#[kernel]
fn mirror(x: &mut [u32], y: &mut [u32], rounds: u32) {
    let grid = this_grid();
    let (i, n) = (grid.rank() as usize, x.len());
    for round in 0..rounds {
        y[i] = x[n - 1 - i] * 3 + round;
        grid.sync();
        x[i] = y[(i + 1) % n] + i as u32;
        grid.sync();
    }
}

fn mirrored(n: usize, rounds: u32) -> Vec<u32> {
    let mut x: Vec<u32> = (0..n as u32).collect();
    for round in 0..rounds {
        let of = |i: usize| x[n - 1 - i].wrapping_mul(3).wrapping_add(round);
        let y: Vec<u32> = (0..n).map(of).collect();
        let of = |i: usize| y[(i + 1) % n].wrapping_add(i as u32);
        x = (0..n).map(of).collect();
    }
    x
}

fn all_blocks_see_what_all_wrote(jit: &Jit) -> Outcome {
    for shape in SHAPES {
        for (blocks, rounds) in [(1, 3), (2, 1), (BLOCKS, 7)] {
            let n = threads(shape) * blocks as usize;
            let first: Vec<u32> = (0..n as u32).collect();
            let (mut x, mut y) = (jit.upload(&first)?, jit.zeros(n)?);
            let config = LaunchConfig::new(blocks, shape).cooperative();
            mirror.launch(jit, config, &mut x, &mut y, rounds)?;
            assert_eq!(x.to_vec()?, mirrored(n, rounds), "{blocks} of {shape:?}");
        }
    }
    Ok(())
}

/// A sum over the grid that each thread needs in each round, by one atomic a block.
#[kernel]
fn normalize(x: &mut [u64], sums: &mut [u64]) {
    let grid = this_grid();
    let i = grid.rank() as usize;
    for round in 0..sums.len() {
        let sum = block_reduce(x[i], |a, b| a + b);
        if thread_linear_id() == 0 {
            atomic_add(&mut sums[round], sum);
        }
        grid.sync();
        x[i] = x[i] * 5 % 1009 + sums[round] % 31;
    }
}

fn a_sum_that_each_round_needs_whole(jit: &Jit) -> Outcome {
    for block in [1u32, 31, 64, 200] {
        let n = u64::from(block * BLOCKS);
        let mut want: Vec<u64> = (0..n).map(|i| i * i % 77).collect();
        let (mut x, mut sums) = (jit.upload(&want)?, jit.zeros::<u64>(5)?);
        let config = LaunchConfig::new(BLOCKS, block).cooperative();
        normalize.launch(jit, config, &mut x, &mut sums)?;
        for sum in sums.to_vec()? {
            assert_eq!(sum, want.iter().sum::<u64>(), "{block}");
            for x in &mut want {
                *x = *x * 5 % 1009 + sum % 31;
            }
        }
        assert_eq!(x.to_vec()?, want, "{block}");
    }
    Ok(())
}

/// Shared memory, static and dynamic, local arrays and variables over waits.
#[kernel]
fn keep(out: &mut [u32], gate: &mut [u32]) {
    let (grid, t) = (this_grid(), thread_idx().x);
    let (tile, more) = (shared!([u32; 64]), dynamic_shared::<u32>());
    let mut own = [0u32; 4];
    let block = block_idx().x as u32;
    tile[t] = block * 1000 + t as u32;
    more[t] = block * 7;
    own[t % 4] = block + 1;
    for round in 0..3 {
        grid.sync();
        if t == 0 {
            gate[block_idx().x] += tile[round] + 1;
        }
        grid.sync();
        let next = (block_idx().x + 1) % grid_dim().x;
        tile[t] += gate[next];
        own[t % 4] += round as u32;
    }
    barrier();
    let other = block_dim().x - 1 - t;
    out[global_id().x] = tile[other] + 100_000 * more[other] + 10_000_000 * own[t % 4];
}

fn what_a_block_has_stays(jit: &Jit) -> Outcome {
    let (n, blocks) = (50u32, BLOCKS);
    let mut out = jit.zeros((n * blocks) as usize)?;
    let mut gate = jit.zeros(blocks as usize)?;
    let config = LaunchConfig::new(blocks, n).shared_bytes(4 * n);
    keep.launch(jit, config.cooperative(), &mut out, &mut gate)?;
    let mut tiles: Vec<Vec<u32>> = (0..blocks)
        .map(|block| (0..n).map(|t| block * 1000 + t).collect())
        .collect();
    let mut gates = vec![0; blocks as usize];
    for round in 0..3 {
        for (gate, tile) in gates.iter_mut().zip(&tiles) {
            *gate += tile[round] + 1;
        }
        for (block, tile) in tiles.iter_mut().enumerate() {
            let more: u32 = gates[(block + 1) % gates.len()];
            tile.iter_mut().for_each(|x| *x += more);
        }
    }
    let mut want = Vec::new();
    for (block, tile) in (0..).zip(&tiles) {
        let rest = 100_000 * block * 7 + 10_000_000 * (block + 1 + 3);
        want.extend(tile.iter().rev().map(|x| x + rest));
    }
    assert_eq!(out.to_vec()?, want);
    Ok(())
}

/// Relaxed stores of one thread of each block, and relaxed loads of all others: only the wait orders them.
#[kernel]
fn messages(words: &mut [u32], wrong: &mut [u32]) {
    let grid = this_grid();
    let mine = grid.block_rank() as usize;
    for round in 1..20 {
        if thread_linear_id() == block_size() - 1 {
            atomic_store(&mut words[mine], round, Ordering::Relaxed, Scope::Device);
        }
        grid.sync();
        let from = (mine + thread_linear_id() + 1) % words.len();
        if atomic_load(&words[from], Ordering::Relaxed, Scope::Device) != round {
            atomic_add(&mut wrong[0], 1);
        }
        grid.sync();
    }
}

fn messages_in_relaxed_words(jit: &Jit) -> Outcome {
    for block in [1, 32, 65] {
        let mut words = jit.zeros::<u32>(BLOCKS as usize)?;
        let mut wrong = jit.zeros::<u32>(1)?;
        let config = LaunchConfig::new(BLOCKS, block).cooperative();
        messages.launch(jit, config, &mut words, &mut wrong)?;
        assert_eq!(wrong.to_vec()?, [0], "{block}");
    }
    Ok(())
}

#[device_fn]
fn wait_twice(grid: GridGroup, counts: &mut [u32]) -> u32 {
    if thread_linear_id() == 0 {
        atomic_add(&mut counts[0], 1);
    }
    grid.sync();
    let seen = counts[0];
    grid.sync();
    seen
}

#[kernel]
fn in_branches(counts: &mut [u32], seen: &mut [u32], twice: u32) {
    let grid = this_grid();
    let i = grid.rank() as usize;
    seen[i] = wait_twice(grid, counts);
    if twice > 0 {
        seen[i] += 100 * wait_twice(grid, counts);
    }
    let mut left = twice;
    while left > 0 {
        seen[i] += 10_000 * wait_twice(grid, counts);
        left -= 1;
    }
}

fn waits_in_functions_and_branches_of_all(jit: &Jit) -> Outcome {
    for (twice, want) in [(0, 4), (1, 120_804), (2, 280_804)] {
        let (mut counts, mut seen) = (jit.zeros(1)?, jit.zeros::<u32>(4 * 40)?);
        let config = LaunchConfig::new(4, 40).cooperative();
        in_branches.launch(jit, config, &mut counts, &mut seen, twice)?;
        assert_eq!(seen.to_vec()?, [want; 160], "{twice}");
    }
    Ok(())
}

/// Of each block the first threads end, of some blocks all of the first warp.
#[kernel]
fn some_end(x: &mut [u32], sums: &mut [u32]) {
    let grid = this_grid();
    let (i, t) = (grid.rank() as usize, thread_linear_id() as u32);
    if t < grid.block_rank() as u32 * 20 {
        return;
    }
    x[i] = 1;
    grid.sync();
    let mut sum = 0;
    for i in 0..x.len() {
        sum += x[i];
    }
    grid.sync();
    sums[i] = sum;
}

fn threads_that_have_ended_are_not_waited_for(jit: &Jit) -> Outcome {
    let (mut x, mut sums) = (jit.zeros::<u32>(3 * 70)?, jit.zeros::<u32>(3 * 70)?);
    for round in 1..3 {
        let config = LaunchConfig::new(3, 70).cooperative();
        some_end.launch(jit, config, &mut x, &mut sums)?;
        let ended = |i: usize| i % 70 < i / 70 * 20;
        let want = (0..3 * 70).map(|i| if ended(i) { 0 } else { 210 - 60 });
        assert_eq!(sums.to_vec()?, want.collect::<Vec<u32>>(), "{round}");
    }
    Ok(())
}

fn launches_that_are_not_cooperative_are_refused(jit: &Jit) -> Outcome {
    let (mut x, mut y) = (jit.zeros(32)?, jit.zeros(32)?);
    let refused = |result: kiln::Result<()>| match result {
        Err(Error::Launch(error @ LaunchError::NotCooperative { .. })) => {
            expect_test::expect!["kernel `mirror`: its blocks wait for all others of the grid (`this_grid().sync()`), which have to be there at the same time; launch it cooperatively, `LaunchConfig::new(grid, block).cooperative()`"].assert_eq(&error.to_string());
        }
        other => panic!("expected a launch error, got {other:?}"),
    };
    for _ in 0..2 {
        refused(mirror.launch(jit, (1, 32), &mut x, &mut y, 1));
        refused(jit.launch(&mirror, 1, 32, args!(&mut x, &mut y, 1u32)));
    }
    let ready = jit.compile(&mirror, args!(&mut x, &mut y, 1u32))?;
    refused(ready.launch(1, 32, args!(&mut x, &mut y, 1u32)));
    assert_eq!(x.to_vec()?, [0; 32]);
    Ok(())
}

fn grids_that_do_not_fit_are_refused(jit: &Jit) -> Outcome {
    let (mut x, mut y) = (jit.zeros::<u32>(1)?, jit.zeros::<u32>(1)?);
    let ready = jit.compile(&mirror, args!(&mut x, &mut y, 1u32))?;
    let most = ready.occupancy(64, 0)?.all_blocks();
    assert!(most >= u64::from(BLOCKS), "{most}");
    let n = 64 * most as usize;
    let first: Vec<u32> = (0..n as u32).collect();
    let (mut x, mut y) = (jit.upload(&first)?, jit.zeros(n)?);
    let config = LaunchConfig::new(most as u32, 64).cooperative();
    mirror.launch(jit, config, &mut x, &mut y, 2)?;
    assert_eq!(x.to_vec()?, mirrored(n, 2));
    let more = LaunchConfig::new(most as u32 + 1, 64).cooperative();
    match mirror.launch(jit, more, &mut x, &mut y, 2) {
        Err(Error::Launch(LaunchError::NotAllAtOnce { fitting, .. })) => assert_eq!(fitting, most),
        other => panic!("expected a launch error, got {other:?}"),
    }
    Ok(())
}

#[kernel]
fn one_block_ends(x: &mut [u32], which: u32) {
    if block_idx().x as u32 == which {
        return;
    }
    this_grid().sync();
    if this_grid().rank() == 0 {
        x[0] = 1;
    }
}

/// On a GPU it would wait for ever.
fn blocks_that_end_are_told_of(jit: &Jit) -> Outcome {
    if let (DeviceKind::Cuda, Target::Ptx(_)) = (jit.device().info().kind, jit.target()) {
        return Ok(());
    }
    let mut x = jit.zeros::<u32>(1)?;
    for which in [0, 2] {
        let config = LaunchConfig::new(3, 40).cooperative();
        let launched = one_block_ends.launch(jit, config, &mut x, which);
        let text = launched
            .and_then(|()| jit.synchronize())
            .expect_err("it waits in vain")
            .to_string();
        let told = "2 of 3 blocks wait for all of the grid (`this_grid().sync()`), and the others have ended";
        assert!(
            text.contains("kernel `one_block_ends`") && text.contains(told),
            "{text}"
        );
        // The next launch has its blocks to itself.
        let config = LaunchConfig::new(3, 40).cooperative();
        one_block_ends.launch(jit, config, &mut x, 9)?;
        assert_eq!(x.to_vec()?, [1]);
    }
    Ok(())
}

fn graphs_wait_too(jit: &Jit) -> Outcome {
    let n = 40 * BLOCKS as usize;
    let first: Vec<u32> = (0..n as u32).collect();
    let (mut x, mut y) = (jit.upload(&first)?, jit.zeros::<u32>(n)?);
    let config = LaunchConfig::new(BLOCKS, 40).cooperative();
    let mut graph = jit.graph((&mut x, &mut y), |g, (mut x, mut y)| {
        mirror.record(g, config, &mut x, &mut y, 3)
    })?;
    graph.replay(args!(&mut x, &mut y))?;
    assert_eq!(x.to_vec()?, mirrored(n, 3));
    Ok(())
}

/// Votes again and again, with what other blocks count between them.
#[kernel]
fn votes(x: &[u32], out: &mut [u64]) {
    let grid = this_grid();
    let i = grid.rank() as usize;
    let mut told = 0;
    for m in 2..5 {
        let of_all = grid.any(x[i] % 100 == m) as u64 + 2 * grid.all(x[i] % m < 3) as u64;
        told = told * 100_000 + grid.count(x[i] % m == 0) * 4 + of_all;
    }
    out[i] = told;
}

/// Blocks that are one thread, one block of it, and as many threads as a block can have.
const GRIDS: [(u32, [u32; 3]); 3] = [(1, [1, 1, 1]), (BLOCKS, [1, 1, 1]), (2, [1024, 1, 1])];

fn grids_vote(jit: &Jit) -> Outcome {
    for (blocks, shape) in GRIDS {
        let n = blocks as usize * threads(shape);
        let x: Vec<u32> = (0..n).map(|i| noise(i) % 1000).collect();
        let mut out = jit.zeros::<u64>(n)?;
        let config = LaunchConfig::new(blocks, shape).cooperative();
        votes.launch(jit, config, &jit.upload(&x)?, &mut out)?;
        let mut want = 0;
        for m in 2..5 {
            let (any, all) = (x.iter().any(|v| v % 100 == m), x.iter().all(|v| v % m < 3));
            let count = x.iter().filter(|v| *v % m == 0).count() as u64;
            want = want * 100_000 + count * 4 + u64::from(any) + 2 * u64::from(all);
        }
        assert_eq!(out.to_vec()?, vec![want; n], "{blocks} of {shape:?}");
    }
    Ok(())
}

/// Of each block the first threads end, of the last one all but one.
#[kernel]
fn some_vote(out: &mut [u64]) {
    let grid = this_grid();
    if (thread_linear_id() as u64) < grid.block_rank() * 23 {
        return;
    }
    let left = grid.count(true);
    out[grid.rank() as usize] = left + 1000 * grid.all(true) as u64;
}

fn threads_that_have_ended_do_not_vote(jit: &Jit) -> Outcome {
    let mut out = jit.zeros::<u64>(4 * 70)?;
    some_vote.launch(jit, LaunchConfig::new(4, 70).cooperative(), &mut out)?;
    let has_ended = |i: usize| i % 70 < i / 70 * 23;
    let left = (0..280).filter(|&i| !has_ended(i)).count() as u64;
    let want = (0..280).map(|i| if has_ended(i) { 0 } else { 1000 + left });
    assert_eq!(out.to_vec()?, want.collect::<Vec<_>>());
    Ok(())
}

#[kernel]
fn of_grid(x: &[Affine], out: &mut [[Affine; 3]], memory: &mut [Affine]) {
    let i = this_grid().rank() as usize;
    let first = Affine { factor: 3, sum: 5 };
    out[i] = [
        grid_reduce(x[i], memory, |a, b| a.then(b)),
        grid_inclusive_scan(x[i], memory, |a, b| a.then(b)),
        grid_exclusive_scan(x[i], first, memory, |a, b| a.then(b)),
    ];
}

/// The last of these alone, as each is code of its own for each shape of a block.
#[kernel]
fn scanned(x: &[Affine], out: &mut [[Affine; 3]], memory: &mut [Affine]) {
    let i = this_grid().rank() as usize;
    let first = Affine { factor: 3, sum: 5 };
    out[i][2] = grid_exclusive_scan(x[i], first, memory, |a, b| a.then(b));
}

fn affine(i: usize) -> Affine {
    Affine {
        factor: noise(i) | 1,
        sum: noise(7 * i),
    }
}

/// All combined, those up to each thread and those before it, of as many threads.
fn combined(n: usize) -> Vec<[Affine; 3]> {
    let same = Affine { factor: 1, sum: 0 };
    let whole = (0..n).map(affine).fold(same, Affine::then);
    let (mut up_to, mut before) = (same, Affine { factor: 3, sum: 5 });
    let mut all = Vec::new();
    for mine in (0..n).map(affine) {
        up_to = up_to.then(mine);
        all.push([whole, up_to, before]);
        before = before.then(mine);
    }
    all
}

fn grids_combine_in_order(jit: &Jit) -> Outcome {
    let none = [affine(5); 3];
    let ragged = (3, [11, 3, 2]);
    for (blocks, shape) in GRIDS.into_iter().chain([ragged]) {
        let n = blocks as usize * threads(shape);
        let x = jit.upload(&(0..n).map(affine).collect::<Vec<_>>())?;
        let mut out = jit.upload(&vec![none; n])?;
        // What is there before does not matter.
        let mut memory = jit.upload(&vec![affine(99); blocks as usize])?;
        let config = LaunchConfig::new(blocks, shape).cooperative();
        let mut want = combined(n);
        if (blocks, shape) == ragged {
            of_grid.launch(jit, config, &x, &mut out, &mut memory)?;
        } else {
            scanned.launch(jit, config, &x, &mut out, &mut memory)?;
            for want in &mut want {
                (want[0], want[1]) = (none[0], none[1]);
            }
        }
        for (i, (got, want)) in out.to_vec()?.into_iter().zip(want).enumerate() {
            assert_eq!(got, want, "thread {i} of {blocks} of {shape:?}");
        }
    }
    Ok(())
}

/// 24 bytes with padding.
#[derive(KernelType, Copy, Clone, Debug, PartialEq)]
#[repr(C)]
struct Told {
    by: u8,
    rank: i64,
    parts: [i16; 2],
}

/// The threads from `from` on tell all, one after another.
#[kernel]
fn tell(from: u64, out: &mut [i64], memory: &mut [Told]) {
    let grid = this_grid();
    let own = Told {
        by: block_idx().x as u8,
        rank: -(grid.rank() as i64),
        parts: [3, grid.rank() as i16],
    };
    let mut sum = 0;
    for rank in from..grid.size() {
        let told = grid.broadcast(own, rank, memory);
        sum = sum * 3 + told.rank * told.parts[0] as i64 + told.parts[1] as i64 + told.by as i64;
    }
    out[grid.rank() as usize] = sum;
}

fn one_thread_tells_the_grid(jit: &Jit) -> Outcome {
    let none = Told {
        by: 9,
        rank: 9,
        parts: [9; 2],
    };
    for (blocks, each, from) in [(1, 1, 0), (BLOCKS, 1, 0), (BLOCKS, 33, 195)] {
        let n = i64::from(blocks * each);
        let (mut out, mut memory) = (jit.zeros::<i64>(n as usize)?, jit.upload(&[none])?);
        let config = LaunchConfig::new(blocks, each).cooperative();
        tell.launch(jit, config, from as u64, &mut out, &mut memory)?;
        let told = |rank: i64| -rank * 3 + rank + rank / i64::from(each);
        let sum = (from..n).fold(0, |sum, rank| sum * 3 + told(rank));
        assert_eq!(out.to_vec()?, vec![sum; n as usize], "{blocks} of {each}");
    }
    Ok(())
}

#[kernel]
fn combine_wrong(out: &mut [u32], memory: &mut [u32], which: u32) {
    let grid = this_grid();
    out[grid.rank() as usize] = if which == 0 {
        grid_reduce(1, memory, |a, b| a + b)
    } else {
        grid.broadcast(1, grid.size(), memory)
    };
}

fn grids_refuse_ranks_and_memory(jit: &Jit) -> Outcome {
    let (mut out, mut memory) = (jit.zeros::<u32>(8)?, jit.zeros::<u32>(3)?);
    combine_wrong.launch(
        jit,
        LaunchConfig::new(3, 2).cooperative(),
        &mut out,
        &mut memory,
        0,
    )?;
    for (which, told) in [
        (
            0,
            "what a grid combines takes memory for a value of each block",
        ),
        (1, "a grid's broadcast is of one of its threads"),
    ] {
        let config = LaunchConfig::new(4, 2).cooperative();
        let launched = combine_wrong.launch(jit, config, &mut out, &mut memory, which);
        let error = launched.and_then(|()| jit.synchronize());
        let text = error.expect_err("it is refused").to_string();
        assert!(text.contains(told), "{text}");
    }
    assert_eq!(out.to_vec()?, [6, 6, 6, 6, 6, 6, 0, 0]);
    Ok(())
}
