//! Products of matrices: each block computes a tile of 128 x 128 elements, of which a thread has 8 x 8 in registers (V. Volkov,
//! J. W. Demmel: "Benchmarking GPUs to Tune Dense Linear Algebra", SC 2008). The parts of the matrices that it needs next are
//! read while it multiplies.
//!
//! Where the rows of both are made of whole quads, and an element has at most four bytes, threads bring four elements at once,
//! two parts of each matrix are in shared memory, so that a barrier is enough for each, and a warp has a tile of 32 x 64, for which
//! it reads the least of them (A. Kerr et al., "CUTLASS: Fast Linear Algebra in CUDA C++", 2017).

use kiln_device_stdlib::plain::index::{block_idx, thread_idx};
use kiln_device_stdlib::plain::memory::barrier;
use kiln_device_stdlib::plain::number::Num;
use kiln_jit_core::args::IntoArg;
use kiln_jit_core::front::AsKernel as _;
use kiln_kernel_macro::{device_fn, kernel};

use crate::fused::MOST_ALONG_Y;
use crate::{Array, NumberElement, Result};

/// Rows and columns of a block's tile.
const TILE: usize = 128;

/// Rows and columns of a thread's part, which lies in four places: threads next to each other then read elements next to
/// each other, each thread four at once.
const OWN: usize = 8;

/// How much of the rows of the left and the columns of the right matrix is in shared memory.
const DEPTH: usize = 8;

/// Threads in a row and in a column of a block.
const SIDE: u32 = 16;

/// Elements of each matrix that a thread brings.
const BROUGHT: usize = 4;

/// Matrices with fewer rows or columns are folded.
const LEAST: usize = 16;

/// What a thread brings of the left matrix.
#[device_fn]
fn of_left<T: Num>(
    a: &[T],
    row: usize,
    from: usize,
    rows: usize,
    k: usize,
    start: usize,
) -> [T; BROUGHT] {
    let mut brought = [T::ZERO; BROUGHT];
    #[unroll]
    for i in 0..BROUGHT {
        if row < rows && from + i < k {
            brought[i] = a[start + row * k + from + i];
        }
    }
    brought
}

/// What a thread brings of the right matrix.
#[device_fn]
fn of_right<T: Num>(
    b: &[T],
    from: usize,
    column: usize,
    columns: usize,
    k: usize,
    start: usize,
) -> [T; BROUGHT] {
    let mut brought = [T::ZERO; BROUGHT];
    #[unroll]
    for i in 0..BROUGHT {
        let at = column + 32 * i;
        if from < k && at < columns {
            brought[i] = b[start + from * columns + at];
        }
    }
    brought
}

/// Where the `i`-th row or column of a thread's part is in the tile.
#[device_fn]
fn place(of_thread: usize, i: usize) -> usize {
    i / 4 * (TILE / 2) + of_thread * 4 + i % 4
}

/// What a thread multiplies at one depth: of a column of the left tile, and of a row of the right one.
#[device_fn]
fn parts_at<T: Num, const LINE: usize>(
    a_line: &[T; LINE],
    b_line: &[T; TILE],
    (row, column): (usize, usize),
) -> ([T; OWN], [T; OWN]) {
    let (mut a_part, mut b_part) = ([T::ZERO; OWN], [T::ZERO; OWN]);
    #[unroll]
    for i in 0..OWN {
        a_part[i] = a_line[place(row, i)];
        b_part[i] = b_line[place(column, i)];
    }
    (a_part, b_part)
}

/// Adds products of a column and a row to the sums of a thread.
#[device_fn]
fn add_outer<T: Num>(a_part: &[T; OWN], b_part: &[T; OWN], sums: &mut [[T; OWN]; OWN]) {
    #[unroll]
    for i in 0..OWN {
        #[unroll]
        for j in 0..OWN {
            sums[i][j] += a_part[i] * b_part[j];
        }
    }
}

/// Adds the products of what is in shared memory to the sums of a thread.
#[device_fn]
fn add_products<T: Num>(
    a_tile: &[[T; TILE]; DEPTH],
    b_tile: &[[T; TILE]; DEPTH],
    own: (usize, usize),
    sums: &mut [[T; OWN]; OWN],
) {
    #[unroll]
    for depth in 0..DEPTH {
        let (a_part, b_part) = parts_at(&a_tile[depth], &b_tile[depth], own);
        add_outer(&a_part, &b_part, sums);
    }
}

/// A tile of the product of two matrices; the third dimension of the grid goes along pairs of them.
#[kernel]
fn multiply<T: Num>(a: &[T], b: &[T], rows: usize, columns: usize, k: usize, out: &mut [T]) {
    let a_tile = shared!([[T; TILE]; DEPTH]);
    let b_tile = shared!([[T; TILE]; DEPTH]);
    let (tx, ty, pair) = (thread_idx().x, thread_idx().y, block_idx().z);
    let thread = ty * SIDE as usize + tx;
    let (first_row, first_column) = (block_idx().y * TILE, block_idx().x * TILE);
    // Two threads bring a row of the left tile, 32 a row of the right one.
    let (a_row, a_depth) = (thread / 2, thread % 2 * BROUGHT);
    let (b_depth, b_column) = (thread / 32, thread % 32);
    let (a_start, b_start) = (pair * rows * k, pair * k * columns);
    let mut sums = [[T::ZERO; OWN]; OWN];
    let mut left = of_left(a, first_row + a_row, a_depth, rows, k, a_start);
    let mut right = of_right(b, b_depth, first_column + b_column, columns, k, b_start);
    let mut first = 0;
    while first < k {
        #[unroll]
        for i in 0..BROUGHT {
            a_tile[a_depth + i][a_row] = left[i];
            b_tile[b_depth][b_column + 32 * i] = right[i];
        }
        barrier();
        first += DEPTH;
        if first < k {
            left = of_left(a, first_row + a_row, first + a_depth, rows, k, a_start);
            right = of_right(
                b,
                first + b_depth,
                first_column + b_column,
                columns,
                k,
                b_start,
            );
        }
        add_products(a_tile, b_tile, (ty, tx), &mut sums);
        barrier();
    }
    #[unroll]
    for i in 0..OWN {
        #[unroll]
        for j in 0..OWN {
            let (row, column) = (first_row + place(ty, i), first_column + place(tx, j));
            if row < rows && column < columns {
                out[pair * rows * columns + row * columns + column] = sums[i][j];
            }
        }
    }
}

/// Elements that are brought and stored at once.
const QUAD: usize = 4;

/// The length of a line of the left tile: threads that bring elements of the same row, one line of four others apart, have
/// different banks.
const PADDED: usize = TILE + QUAD;

/// What a thread brings of a matrix at once: a quad, or zeros where there is none.
#[device_fn]
fn quad_of<T: Num>(matrix: &[[T; QUAD]], at: usize, is_there: bool) -> [T; QUAD] {
    // One comparison for both: an index that no slice has.
    let at = if is_there { at } else { usize::MAX };
    match matrix.get(at) {
        Some(quad) => *quad,
        None => [T::ZERO; QUAD],
    }
}

/// Puts what a thread has brought of both matrices where the threads of its block read it.
#[device_fn]
fn put_quads<T: Num>(
    a_tile: &mut [[T; PADDED]; DEPTH],
    b_tile: &mut [[T; TILE]; DEPTH],
    thread: usize,
    (left, right): ([T; QUAD], [T; QUAD]),
) {
    #[unroll]
    for i in 0..QUAD {
        a_tile[thread % 2 * QUAD + i][thread / 2] = left[i];
        b_tile[thread / 32][thread % 32 * QUAD + i] = right[i];
    }
}

/// Where a thread of a block of 256 is in the 16 x 16 parts of its tile: row and column. A warp has 4 x 8 of them.
#[device_fn]
fn part_of(thread: usize) -> (usize, usize) {
    let (warp, lane) = (thread / 32, thread % 32);
    (warp / 2 * 4 + lane / 8, warp % 2 * 8 + lane % 8)
}

/// Stores the sums of a thread, of a product of so many rows and quads in a row whose first row is this one of all.
#[device_fn]
fn store_quads<T: Num>(
    out: &mut [[T; QUAD]],
    sums: &[[T; OWN]; OWN],
    (first_row, first_quad): (usize, usize),
    (row, column): (usize, usize),
    (rows, columns, first): (usize, usize, usize),
) {
    #[unroll]
    for i in 0..OWN {
        #[unroll]
        for j in 0..OWN / QUAD {
            let (row, quad) = (
                first_row + place(row, i),
                first_quad + j * (TILE / 2 / QUAD) + column,
            );
            if row < rows && quad < columns {
                let mut own = [T::ZERO; QUAD];
                #[unroll]
                for n in 0..QUAD {
                    own[n] = sums[i][j * QUAD + n];
                }
                out[(first + row) * columns + quad] = own;
            }
        }
    }
}

/// What a thread brings of a part of both matrices, from its first quads on; `k` and `columns` count quads. Behind the last
/// part there are zeros, which change no sum.
#[device_fn]
fn bring<T: Num>(
    (a, b): (&[[T; QUAD]], &[[T; QUAD]]),
    part: usize,
    (a_from, b_from): (usize, usize),
    (a_quad, b_depth): (usize, usize),
    (has_row, has_column): (bool, bool),
    (columns, k): (usize, usize),
) -> ([T; QUAD], [T; QUAD]) {
    let (quad, depth) = (part * (DEPTH / QUAD), part * DEPTH);
    let is_there = has_column && depth + b_depth < k * QUAD;
    (
        quad_of(a, a_from + quad, has_row && quad + a_quad < k),
        quad_of(b, b_from + depth * columns, is_there),
    )
}

/// [`multiply`] of matrices whose rows are whole quads: `k` and `columns` count these.
#[kernel(launch_bounds(256, 2))]
fn multiply_quads<T: Num>(
    a: &[[T; QUAD]],
    b: &[[T; QUAD]],
    rows: usize,
    columns: usize,
    k: usize,
    out: &mut [[T; QUAD]],
) {
    let a_tile = shared!([[[T; PADDED]; DEPTH]; 2]);
    let b_tile = shared!([[[T; TILE]; DEPTH]; 2]);
    let (thread, pair) = (thread_idx().x, block_idx().z);
    let (first_row, first_quad) = (block_idx().y * TILE, block_idx().x * (TILE / QUAD));
    // Two threads bring a row of the left tile, 32 a row of the right one.
    let (a_row, a_quad) = (thread / 2, thread % 2);
    let (b_depth, b_quad) = (thread / 32, thread % 32);
    let a_from = (pair * rows + first_row + a_row) * k + a_quad;
    let b_from = (pair * k * QUAD + b_depth) * columns + first_quad + b_quad;
    let (has_row, has_column) = (first_row + a_row < rows, first_quad + b_quad < columns);
    let own = part_of(thread);
    let mut sums = [[T::ZERO; OWN]; OWN];
    let (from, at) = ((a_from, b_from), (a_quad, b_depth));
    let (has, extents) = ((has_row, has_column), (columns, k));
    let first = bring((a, b), 0, from, at, has, extents);
    put_quads(&mut a_tile[0], &mut b_tile[0], thread, first);
    barrier();
    let tiles = (k * QUAD).div_ceil(DEPTH);
    let (mut a_next, mut b_next) = parts_at(&a_tile[0][0], &b_tile[0][0], own);
    let mut tile = 0;
    while tile < tiles {
        // Both parts of shared memory in turn: where each lies is known then.
        #[unroll]
        for here in 0..2 {
            let there = 1 - here;
            tile += 1;
            let brought = bring((a, b), tile, from, at, has, extents);
            #[unroll]
            for depth in 0..DEPTH {
                // What is multiplied next is read before, also behind the barrier.
                let (a_part, b_part) = (a_next, b_next);
                if depth + 1 < DEPTH {
                    let next = depth + 1;
                    (a_next, b_next) = parts_at(&a_tile[here][next], &b_tile[here][next], own);
                } else {
                    put_quads(&mut a_tile[there], &mut b_tile[there], thread, brought);
                    barrier();
                    (a_next, b_next) = parts_at(&a_tile[there][0], &b_tile[there][0], own);
                }
                add_outer(&a_part, &b_part, &mut sums);
            }
        }
    }
    store_quads(
        out,
        &sums,
        (first_row, first_quad),
        own,
        (rows, columns, pair * rows),
    );
}

/// The products of pairs of matrices that lie one behind the other, if they are worth tiles: of as many as there are pairs.
pub(crate) fn tiled<T: NumberElement>(a: &Array<T>, b: &Array<T>) -> Result<Option<Array<T>>> {
    let (rank, dims) = (a.rank(), a.dims());
    if rank < 2 || rank != b.rank() || dims[..rank - 2] != b.dims()[..rank - 2] {
        return Ok(None);
    }
    let (rows, k, columns) = (dims[rank - 2], dims[rank - 1], b.dims()[rank - 1]);
    let pairs: usize = dims[..rank - 2].iter().product();
    let largest = [rows * k, k * columns, rows * columns].into_iter().max();
    let fits = largest.is_some_and(|most| most.saturating_mul(pairs) <= u32::MAX as usize);
    if rows.min(columns) < LEAST || k == 0 || !(1..=MOST_ALONG_Y).contains(&pairs) || !fits {
        return Ok(None);
    }
    let (a, b) = (a.contiguous()?, b.contiguous()?);
    let mut shape = dims.to_vec();
    shape[rank - 1] = columns;
    let mut out = a.arrays().unspecified::<T>(shape.as_slice())?;
    let tiles = |n: usize| n.div_ceil(TILE) as u32;
    let grid = (tiles(columns), tiles(rows), pairs as u32);
    let in_quads = k.is_multiple_of(QUAD) && columns.is_multiple_of(QUAD) && size_of::<T>() <= 4;
    let jit = a.arrays().jit();
    let extents = |unit: usize| {
        let [rows, columns, k] = [rows, columns / unit, k / unit].map(|n| (n as u32).into_arg());
        [rows, columns, k]
    };
    if in_quads {
        let [rows, columns, k] = extents(QUAD);
        let quads = a.as_part()?.cast::<[T; QUAD]>()?;
        let (a, b) = (
            quads.into_arg(),
            b.as_part()?.cast::<[T; QUAD]>()?.into_arg(),
        );
        let args = [
            a,
            b,
            rows,
            columns,
            k,
            out.owned()?.cast_mut::<[T; QUAD]>()?.into_arg(),
        ];
        jit.launch(multiply_quads.as_kernel()?, grid, (SIDE * SIDE, 1), &args)?;
    } else {
        let [rows, columns, k] = extents(1);
        let (a, b) = (a.as_part()?.into_arg(), b.as_part()?.into_arg());
        let args = [a, b, rows, columns, k, out.owned()?.into_arg()];
        jit.launch(multiply.as_kernel()?, grid, (SIDE, SIDE), &args)?;
    }
    a.arrays().count_launch();
    Ok(Some(out))
}
