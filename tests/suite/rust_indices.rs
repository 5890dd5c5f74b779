//! Numbers of threads and blocks in all dimensions, and the indices of grid-stride loops.

use kiln::prelude::*;

use super::{Outcome, chapter};

chapter![
    numbers,
    numbers_in_the_builder,
    strides,
    strides_of_every_length
];

/// What a thread is told: its numbers, then its grid's.
type Told = [u64; 11];

#[kernel]
fn tell(out: &mut [Told]) {
    let (id, size) = (global_id_u64(), global_size_u64());
    let i = global_linear_id();
    out[i as usize] = [
        i,
        thread_linear_id() as u64,
        block_linear_id(),
        id.x,
        id.y,
        id.z,
        block_size() as u64,
        global_linear_size(),
        size.x,
        size.y,
        size.z,
    ];
}

/// What the threads of a launch are told, in the order of their numbers.
fn told(grid: [u64; 3], block: [u64; 3]) -> Vec<Told> {
    let counted = |of: [u64; 3]| {
        let [width, height, depth] = of;
        let row = move |z, y| (0..width).map(move |x| [x, y, z]);
        (0..depth).flat_map(move |z| (0..height).flat_map(move |y| row(z, y)))
    };
    let size = [0, 1, 2].map(|axis| grid[axis] * block[axis]);
    let threads = block.iter().product();
    let mut all = Vec::new();
    for (number, at) in counted(grid).enumerate() {
        for (thread, within) in counted(block).enumerate() {
            let id = [0, 1, 2].map(|axis| at[axis] * block[axis] + within[axis]);
            all.push([
                all.len() as u64,
                thread as u64,
                number as u64,
                id[0],
                id[1],
                id[2],
                threads,
                size.iter().product(),
                size[0],
                size[1],
                size[2],
            ]);
        }
    }
    all
}

const SHAPES: [([u64; 3], [u64; 3]); 5] = [
    ([1, 1, 1], [1, 1, 1]),
    ([5, 1, 1], [33, 1, 1]),
    ([2, 3, 4], [4, 2, 3]),
    ([1, 2, 1], [3, 5, 7]),
    ([3, 1, 2], [32, 2, 1]),
];

fn config((grid, block): ([u64; 3], [u64; 3])) -> LaunchConfig {
    let dim = |[x, y, z]: [u64; 3]| (x as u32, y as u32, z as u32);
    LaunchConfig::new(dim(grid), dim(block))
}

fn numbers(jit: &Jit) -> Outcome {
    for shape in SHAPES {
        let wanted = told(shape.0, shape.1);
        let mut out = jit.zeros::<Told>(wanted.len())?;
        tell.launch(jit, config(shape), &mut out)?;
        assert_eq!(out.to_vec()?, wanted, "{shape:?}");
    }
    // On the host: one thread, the first one.
    assert_eq!(
        told([1; 3], [1; 3])[0][..3],
        [global_linear_id(), 0, block_linear_id()]
    );
    assert_eq!(
        (thread_linear_id(), block_size(), global_linear_size()),
        (0, 1, 1)
    );
    Ok(())
}

fn numbers_in_the_builder(jit: &Jit) -> Outcome {
    let kernel = Kernel::build("tell", |k| {
        let out = k.slice_mut("out", k.ty::<u64>());
        let (id, i) = (k.global_id_u64(), k.global_linear_id());
        let sum = k.thread_linear_id().cast(Type::U64) * 3u64 + k.block_linear_id() * 5u64;
        let sum = sum + k.block_size().cast(Type::U64) * 7u64 + k.global_linear_size() * 11u64;
        out.at(i)
            .set(sum + id.x() * 13u64 + id.y() * 17u64 + k.global_size_u64().z() * 19u64);
    })?;
    for shape in SHAPES {
        let told = told(shape.0, shape.1);
        let mut out = jit.zeros::<u64>(told.len())?;
        jit.launch_with(&kernel, config(shape), args!(&mut out))?;
        let wanted = told.iter().map(|t| {
            t[1] * 3 + t[2] * 5 + t[6] * 7 + t[7] * 11 + t[3] * 13 + t[4] * 17 + t[10] * 19
        });
        assert_eq!(out.to_vec()?, wanted.collect::<Vec<_>>(), "{shape:?}");
    }
    Ok(())
}

/// Adds to each number how often it is visited.
#[device_fn]
fn visit(x: &mut [u32], skipped: usize) {
    let mine = grid_stride(x.len());
    #[unroll(2)]
    for i in mine {
        if i % 10 == skipped {
            continue;
        }
        x[i] += 1;
    }
    'outer: for i in grid_stride(x.len()) {
        for j in grid_stride(3) {
            if i >= 50 {
                break 'outer;
            }
            x[i] += 100 * (j as u32 + 1);
        }
    }
}

#[kernel]
fn visits(x: &mut [u32], skipped: usize) {
    visit(x, skipped);
}

fn strides(jit: &Jit) -> Outcome {
    let mut x = jit.zeros::<u32>(123)?;
    visits.launch(jit, (2, 16), &mut x, 3)?;
    let got = x.to_vec()?;
    for (i, got) in got.into_iter().enumerate() {
        // Of 0, 1, 2 a thread has those that are its own number: the first threads of the grid.
        let of_three = match (i < 50, i % 32) {
            (true, thread @ 0..3) => 100 * (thread as u32 + 1),
            _ => 0,
        };
        assert_eq!(got, u32::from(i % 10 != 3) + of_three, "{i}");
    }
    // On the host one thread visits them all.
    let mut x = [0; 60];
    visit(&mut x, 3);
    let wanted = |i: usize| u32::from(i % 10 != 3) + if i < 50 { 600 } else { 0 };
    assert!(x.into_iter().enumerate().all(|(i, x)| x == wanted(i)));
    Ok(())
}

#[kernel]
fn count(x: &mut [u32], n: usize) {
    for i in grid_stride(n) {
        atomic_add(&mut x[i], 1);
    }
}

fn strides_of_every_length(jit: &Jit) -> Outcome {
    for (grid, block) in [(1, 1), (1, 32), (3, 7), (2, 64)] {
        for n in [0, 1, 31, 32, 33, 127, 128, 129, 200] {
            let mut x = jit.zeros::<u32>(200)?;
            count.launch(jit, (grid, block), &mut x, n)?;
            let wanted: Vec<u32> = (0..200).map(|i| u32::from(i < n)).collect();
            assert_eq!(x.to_vec()?, wanted, "{n} by {grid} blocks of {block}");
        }
    }
    Ok(())
}
