//! Groups in kernels from the builder, beside the same kernels as functions.

use kiln::prelude::*;

use super::groups::Affine;
use super::warp::{noise, threads};
use super::{Outcome, chapter};

chapter![
    groups_of_lanes,
    blocks_as_groups,
    grids_as_groups,
    calls_that_do_not_fit
];

/// `b` after `a`, by the builder.
fn then<'k>(a: Val<'k>, b: Val<'k>) -> Val<'k> {
    let k = a.builder();
    let factor = a.field("factor") * b.field("factor");
    let sum = a.field("sum") * b.field("factor") + b.field("sum");
    k.construct(a.ty(), &[factor, sum])
}

fn affines(n: usize) -> Vec<Affine> {
    let affine = |i| Affine {
        factor: noise(i) | 1,
        sum: noise(7 * i),
    };
    (0..n).map(affine).collect()
}

#[kernel]
fn lanes<const N: u32>(x: &[Affine], out: &mut [u32]) {
    let i = thread_linear_id();
    let mine = x[i];
    let tile = tile(N);
    let first = Affine { factor: 3, sum: 5 };
    let mut all = group_reduce(tile, mine, |a, b| a.then(b)).sum;
    all = 31 * all + group_inclusive_scan(tile, mine, |a, b| a.then(b)).sum;
    all = 31 * all + group_exclusive_scan(tile, mine, first, |a, b| a.then(b)).sum;
    all = 31 * all + tile.rank() + 100 * tile.size() + tile.mask() + tile.lane(0);
    all = 31 * all + tile.shuffle(mine.sum, 1) + tile.shuffle_up(mine.sum, 1);
    all = 31 * all + tile.shuffle_down(mine.sum, 1) + tile.shuffle_xor(mine.sum, 1);
    tile.sync();
    let odd = mine.sum % 2 == 1;
    all = 31 * all + tile.broadcast(mine.sum) + tile.ballot(odd) + tile.rank_where(odd);
    all = 31 * all + tile.count(odd) + tile.any(odd) as u32 + 2 * tile.all(odd) as u32;
    let alike = labeled(this_warp(), mine.sum % 3);
    all = 31 * all + group_exclusive_scan(alike, i as u32, 7, |a, b| a + b);
    let chosen = this_warp().ballot(odd);
    if odd {
        all = 31 * all + group_reduce(lanes_of(chosen), mine.sum, |a, b| a.max(b));
    }
    all += (coalesced().is_first() && !tile.is_first()) as u32;
    out[i] = all;
}

fn lanes_built(width: u32) -> kiln::Result<Kernel> {
    Kernel::build("lanes_built", |k| {
        let (x, out) = (
            k.slice("x", k.ty::<Affine>()),
            k.slice_mut("out", Type::U32),
        );
        let i = k.thread_linear_id();
        let mine = x.at(i).get();
        let (sum, tile) = (mine.field("sum"), k.tile(width));
        let first = k.construct(mine.ty(), &[k.lit(Type::U32, 3), k.lit(Type::U32, 5)]);
        let all = k.var("all", tile.reduce(mine, then).field("sum"));
        let add = |value: Val<'_>| all.set(all.get() * 31 + value);
        add(tile.inclusive_scan(mine, then).field("sum"));
        add(tile.exclusive_scan(mine, first, then).field("sum"));
        add(tile.rank() + tile.size() * 100 + tile.mask() + tile.lane(0));
        add(tile.shuffle(sum, 1) + tile.shuffle_up(sum, 1));
        add(tile.shuffle_down(sum, 1) + tile.shuffle_xor(sum, 1));
        tile.sync();
        let odd = (sum % 2).eq(1);
        add(tile.broadcast(sum) + tile.ballot(odd) + tile.rank_where(odd));
        add(tile.count(odd) + tile.any(odd).cast(Type::U32) + tile.all(odd).cast(Type::U32) * 2);
        let alike = k.this_warp().labeled(sum % 3);
        add(alike.exclusive_scan(i, 7, |a, b| a + b));
        let chosen = k.this_warp().ballot(odd);
        k.if_(odd, || add(k.lanes_of(chosen).reduce(sum, |a, b| a.max(b))));
        let late = k.coalesced().is_first() & !tile.is_first();
        out.at(i).set(all.get() + late.cast(Type::U32));
    })
}

fn check_lanes<const N: u32>(jit: &Jit) -> Outcome {
    let built = lanes_built(N)?;
    for shape in [[100, 1, 1], [5, 3, 3]] {
        let n = threads(shape);
        let x = jit.upload(&affines(n))?;
        let (mut want, mut out) = (jit.zeros::<u32>(n)?, jit.zeros::<u32>(n)?);
        lanes.launch::<N>(jit, (1, shape), &x, &mut want)?;
        jit.launch(&built, 1, shape, args!(&x, &mut out))?;
        assert_eq!(out.to_vec()?, want.to_vec()?, "{shape:?}, tiles of {N}");
    }
    Ok(())
}

fn groups_of_lanes(jit: &Jit) -> Outcome {
    check_lanes::<8>(jit)
}

#[kernel]
fn of_block(x: &[Affine], out: &mut [u32]) {
    let (block, memory) = (this_block(), shared!([u32; 256]));
    let (i, mine) = (block.rank() as usize, x[block.rank() as usize]);
    let first = Affine { factor: 3, sum: 5 };
    let mut all = block_reduce(mine, |a, b| a.then(b)).sum;
    all = 31 * all + block_inclusive_scan(mine, |a, b| a.then(b)).sum;
    all = 31 * all + block_exclusive_scan(mine, first, |a, b| a.then(b)).sum;
    all = 31 * all + block_inclusive_scan_in(mine.sum, memory, |a, b| a + b);
    all = 31 * all + block_exclusive_scan_in(mine.sum, 9, memory, |a, b| a.max(b));
    let odd = mine.sum % 2 == 1;
    all = 31 * all + block.count(odd) + block.any(odd) as u32 + 2 * block.all(odd) as u32;
    all = 31 * all + block.broadcast(mine.sum, 2) + block.size();
    all = 31 * all + block.shuffle(mine.sum, block.size() - 1 - block.rank(), memory);
    block.sync();
    out[i] = all;
    let whole = block_reduce_to_first(all, |a, b| a + b);
    if i == 0 {
        out[i] = whole;
    }
}

fn block_built() -> kiln::Result<Kernel> {
    Kernel::build("block_built", |k| {
        let (x, out) = (
            k.slice("x", k.ty::<Affine>()),
            k.slice_mut("out", Type::U32),
        );
        let (block, memory) = (k.this_block(), k.shared_array("memory", Type::U32, 256));
        let (i, mine) = (block.rank(), x.at(block.rank()).get());
        let first = k.construct(mine.ty(), &[k.lit(Type::U32, 3), k.lit(Type::U32, 5)]);
        let (sum, odd) = (mine.field("sum"), (mine.field("sum") % 2).eq(1));
        let mut all = block.reduce(mine, then).field("sum");
        all = all * 31 + block.inclusive_scan(mine, then).field("sum");
        all = all * 31 + block.exclusive_scan(mine, first, then).field("sum");
        all = all * 31 + block.inclusive_scan_in(sum, memory, |a, b| a + b);
        all = all * 31 + block.exclusive_scan_in(sum, 9, memory, |a, b| a.max(b));
        all = all * 31
            + block.count(odd)
            + block.any(odd).cast(Type::U32)
            + block.all(odd).cast(Type::U32) * 2;
        all = all * 31 + block.broadcast(sum, 2) + block.size();
        all = all * 31 + block.shuffle(sum, block.size() - 1 - i, memory);
        block.sync();
        out.at(i).set(all);
        let whole = block.reduce_to_first(all, |a, b| a + b);
        k.if_(i.eq(0), || out.at(i).set(whole));
    })
}

fn blocks_as_groups(jit: &Jit) -> Outcome {
    let built = block_built()?;
    for shape in [[100, 1, 1], [5, 3, 3]] {
        let n = threads(shape);
        let x = jit.upload(&affines(n))?;
        let (mut want, mut out) = (jit.zeros::<u32>(n)?, jit.zeros::<u32>(n)?);
        of_block.launch(jit, (1, shape), &x, &mut want)?;
        jit.launch(&built, 1, shape, args!(&x, &mut out))?;
        assert_eq!(out.to_vec()?, want.to_vec()?, "{shape:?}");
    }
    Ok(())
}

#[kernel]
fn of_grid(x: &[u64], out: &mut [u64], memory: &mut [u64]) {
    let grid = this_grid();
    let i = grid.rank() as usize;
    let mut all = grid_reduce(x[i], memory, |a, b| a + b);
    all = 31 * all + grid_inclusive_scan(x[i], memory, |a, b| a + b);
    all = 31 * all + grid_exclusive_scan(x[i], 9, memory, |a, b| a.max(b));
    all = 31 * all + grid.count(x[i] % 2 == 1) + grid.any(x[i] > 90) as u64;
    all = 31 * all + grid.all(x[i] < 90) as u64 + grid.broadcast(x[i], 3, memory);
    grid.sync();
    out[i] = 31 * all + grid.size() + grid.num_blocks() + grid.block_rank();
}

fn grid_built() -> kiln::Result<Kernel> {
    Kernel::build("grid_built", |k| {
        let (x, out) = (k.slice("x", Type::U64), k.slice_mut("out", Type::U64));
        let memory = k.slice_mut("memory", Type::U64);
        let grid = k.this_grid();
        let i = grid.rank().cast(Type::U32);
        let mine = x.at(i).get();
        let mut all = grid.reduce(mine, memory, |a, b| a + b);
        all = all * 31 + grid.inclusive_scan(mine, memory, |a, b| a + b);
        all = all * 31 + grid.exclusive_scan(mine, 9, memory, |a, b| a.max(b));
        all = all * 31 + grid.count((mine % 2).eq(1)) + grid.any(mine.gt(90)).cast(Type::U64);
        all = all * 31 + grid.all(mine.lt(90)).cast(Type::U64) + grid.broadcast(mine, 3, memory);
        grid.sync();
        out.at(i)
            .set(all * 31 + grid.size() + grid.num_blocks() + grid.block_rank());
    })
}

fn grids_as_groups(jit: &Jit) -> Outcome {
    let built = grid_built()?;
    for threads in [5u32, 64] {
        let (blocks, n) = (4, 4 * threads as usize);
        let x: Vec<u64> = (0..n).map(|i| u64::from(noise(i)) % 97).collect();
        let x = jit.upload(&x)?;
        let (mut want, mut out) = (jit.zeros::<u64>(n)?, jit.zeros::<u64>(n)?);
        let mut memory = jit.zeros::<u64>(4)?;
        let config = LaunchConfig::new(blocks, threads).cooperative();
        of_grid.launch(jit, config, &x, &mut want, &mut memory)?;
        let config = LaunchConfig::new(blocks, threads).cooperative();
        jit.launch_with(&built, config, args!(&x, &mut out, &mut memory))?;
        assert_eq!(out.to_vec()?, want.to_vec()?, "{threads}");
    }
    Ok(())
}

#[device_fn]
fn folded<F: Fn(u32, u32) -> u32>(x: u32, y: u32, f: F) -> u32 {
    f(x, y)
}

/// What the builder says of wrong calls.
fn calls_that_do_not_fit(_jit: &Jit) -> Outcome {
    let said = |calls: &dyn Fn(&KernelBuilder)| match Kernel::build("wrong", |k| calls(k)) {
        Ok(_) => String::new(),
        Err(error) => error.to_string(),
    };
    let few = said(&|k| {
        k.call_inline::<folded>(&[k.lit(Type::U32, 1)], &[&|args| args[0]]);
    });
    assert!(few.contains("`folded` takes 2 values, not 1"), "{few}");
    let none = said(&|k| {
        k.call_inline::<folded>(&[k.lit(Type::U32, 1), k.lit(Type::U32, 1)], &[]);
    });
    assert!(none.contains("more closures than the call has"), "{none}");
    let wrong = said(&|k| {
        k.this_warp().shuffle(1, k.lit(Type::F32, 1.0));
    });
    assert!(wrong.contains("f32"), "{wrong}");
    assert_eq!(folded(1, 2, |x, y| x + y), 3);
    Ok(())
}
