//! Folds as GPUs have them: threads read elements next to each other at once, and several times before they fold; what
//! the threads of a block have is folded by shuffles.

use kiln_device_stdlib::index::Index;
use kiln_device_stdlib::warp::{FULL_MASK, Warp};
use kiln_jit_core::build::{KernelBuilder, Val, Var};
use kiln_jit_core::ir::{AtomicOp, Ordering, Scope, Type, Unroll};
use kiln_jit_core::launch::grid_for;

use super::{BLOCK, Fold, Plan};
use crate::Arrays;
use crate::fused::{Fused, MOST_ALONG_Y};
use crate::signature::Way;

/// Threads of a warp.
const WARP: u32 = 32;

/// How many times a thread reads, at most, before it folds what it has read.
const DEPTH: u32 = 8;

/// Of more additions than this for the elements that are read at once an expression is long.
const LONG: usize = 32;

/// How many blocks a multiprocessor has, at most, of those that fold all elements; of what takes long more.
const BLOCKS: u32 = 6;
const LONG_BLOCKS: u32 = 8;

/// Of fewer elements a thread should not have its part of a column.
const SHORT_COLUMN: usize = 32;

/// The most bytes of an element of which blocks that fold columns have those of all threads in shared memory.
const MOST_BYTES: usize = 64;

/// The multiprocessors of a device.
pub(super) fn multiprocessors(arrays: &Arrays) -> u32 {
    arrays.jit().device().info().multiprocessors.max(1)
}

/// Whether an expression takes so long that functions are among it which ask. No load goes past these, so what several
/// steps need is read before anything is computed; and as it waits less for memory, two copies of it are enough, which
/// take less time to compile.
fn is_long(fused: &Fused<'_>) -> bool {
    fused.weight * fused.adjacent() as usize > LONG
}

/// How many blocks fold all elements, at most.
pub(super) fn most_blocks(fused: &Fused<'_>, multiprocessors: u32) -> u32 {
    let of_each = match is_long(fused) {
        true => LONG_BLOCKS,
        false => BLOCKS,
    };
    grid_for(fused.shape.len(), BLOCK * fused.adjacent()).min(multiprocessors * of_each)
}

/// How many elements a block folds at a time, of all elements.
fn tile(fused: &Fused<'_>) -> u32 {
    BLOCK * fused.adjacent() * DEPTH
}

/// How many times each of so many blocks has a whole tile of all elements.
pub(super) fn rounds(fused: &Fused<'_>, blocks: u32) -> u32 {
    let round = blocks.max(1) as usize * tile(fused) as usize;
    u32::try_from(fused.shape.len() / round).unwrap_or(u32::MAX)
}

/// How dimensions are folded of which some stay; `None` if not by what is here.
pub(super) fn plan(
    fused: &Fused<'_>,
    (kept, folded): (usize, usize),
    bytes: usize,
    multiprocessors: u32,
) -> Option<Plan> {
    let count = fused.adjacent() as usize;
    let threads = multiprocessors.max(1) as usize * 2048;
    if fused.along() == 1 {
        let block = BLOCK as usize * count;
        if kept * WARP as usize >= threads / 2 || folded < 2 * block {
            let lanes = folded.div_ceil(4 * count).next_power_of_two();
            let lanes = lanes.clamp(1, WARP as usize);
            let blocks = (kept * lanes).div_ceil(BLOCK as usize);
            return Some(Plan {
                way: Way::Lanes(lanes as u32),
                grid: (blocks as u32, 1),
                block: BLOCK,
                parts: 1,
                passed: None,
            });
        }
        let most = threads / BLOCK as usize;
        let parts = (most / kept).min(folded / (DEPTH as usize * block)).max(1);
        return Some(Plan {
            way: Way::LongRows,
            grid: ((kept * parts) as u32, 1),
            block: BLOCK,
            parts,
            passed: Some(parts as u32),
        });
    }
    if bytes > MOST_BYTES {
        return None;
    }
    let along = kept.div_ceil(count).next_power_of_two();
    let mut along = along.clamp(1, WARP as usize);
    let enough = threads / BLOCK as usize;
    let is_short = |along: usize| folded < SHORT_COLUMN * (BLOCK as usize / along);
    // Of short columns a thread has more, so that less is folded between threads, as long as there are enough blocks.
    while along < BLOCK as usize && is_short(along) && kept / (2 * along * count) >= enough {
        along *= 2;
    }
    let blocks = kept.div_ceil(along * count);
    let rows = BLOCK as usize / along;
    // No more blocks than there are at once: a few that are left over would take as long as all others.
    let most = (enough / blocks).max(1);
    let parts = most.min(folded / (rows * 64)).clamp(1, MOST_ALONG_Y);
    let step = folded.div_ceil(parts);
    Some(Plan {
        way: Way::Tall(along as u32),
        grid: (blocks as u32, parts as u32),
        block: BLOCK,
        parts,
        passed: Some(step as u32),
    })
}

impl<'k> Fold<'_, '_, '_, 'k> {
    /// Goes from an index to an end by steps, by two of them at once while there are two.
    fn go_by_two(
        &self,
        (first, end, step): (Val<'k>, Val<'k>, Val<'k>),
        each: &dyn Fn(&[Val<'k>]),
    ) {
        let (k, two) = (self.k, self.fused.widened(self.k.lit(Type::U32, 2)));
        let next = k.var("next", first);
        let last = end - end.min(step);
        k.for_loop(first, last, step * two, Unroll::Never, |i| {
            each(&[i, i + step]);
            next.set(i + step * two);
        });
        k.if_(next.get().lt(end), || each(&[next.get()]));
    }

    fn shuffled(&self, value: Val<'k>, lanes: u32) -> Val<'k> {
        self.k.shuffle_down(FULL_MASK, value, lanes, WARP)
    }

    /// What the first `lanes` lanes of each warp have, for its first.
    fn of_lanes(&self, sum: &Var<'k>, lanes: u32) {
        let mut apart = lanes / 2;
        while apart > 0 {
            let own = sum.get();
            sum.set((self.op)(own, self.shuffled(own, apart)));
            apart /= 2;
        }
    }

    /// What the threads of a block have, for its first thread.
    fn of_block(&self, sum: &Var<'k>) {
        let (k, warps) = (self.k, BLOCK / WARP);
        let thread = k.thread_idx().x();
        let tile = k.shared_array("warps", self.identity.ty(), warps);
        self.of_lanes(sum, WARP);
        k.if_((thread % WARP).eq(0), || tile.at(thread / WARP).set(*sum));
        k.barrier();
        k.if_(thread.lt(WARP), || {
            sum.set(self.identity);
            k.if_(thread.lt(warps), || sum.set(tile.at(thread)));
            self.of_lanes(sum, warps);
        });
    }

    /// Folds all elements: each block its share, of which threads read elements next to each other; the block that is
    /// done last folds what all have left (CUDA guide, "Memory Fence Functions", on sums in one pass). The result has
    /// place 0, what blocks leave the places behind it.
    ///
    /// Both folds of a block's threads are turns of one loop: code that is there once takes half as long to assemble.
    pub(super) fn total(&self, total: Total<'k>) {
        let (k, grid) = (self.k, self.k.grid_dim().x());
        let (counters, counter) = (total.counters, total.counter);
        k.launch_bounds(BLOCK, 0);
        let place = k.block_idx().x() + 1u32;
        // The launch has made both: said here, no access of them needs code for one that fails.
        let is_there = place.lt(self.out.len()) & counter.lt(counters.len());
        k.if_(!is_there, || k.return_());
        self.shares(total.rounds);
        let thread = k.thread_idx().x();
        let is_first = thread.eq(0);
        let done = k.shared_array("done", Type::U32, 1);
        let is_whole = k.var("whole", grid.eq(1));
        k.loop_(|| {
            self.of_block(&self.sum);
            k.if_(is_whole, || k.break_());
            k.if_(is_first, || {
                self.out.at(place).set(self.sum);
                // What this block has left is seen by whoever counts later, and what others left by this one.
                let before = counters.at(counter).atomic(
                    AtomicOp::Add,
                    1u32,
                    Ordering::AcquireRelease,
                    Scope::Device,
                );
                done.at(0).set(before + 1u32);
            });
            k.barrier();
            k.if_(done.at(0).get().ne(grid), || k.return_());
            self.sum.set(self.identity);
            k.for_loop(thread, grid, BLOCK, Unroll::Never, |from| {
                let place = from + 1u32;
                k.if_(place.lt(self.out.len()), || {
                    self.add(self.out.at(place).get())
                });
            });
            is_whole.set(true);
        });
        k.if_(is_first & thread.lt(self.out.len()), || {
            self.out.at(thread).set(self.sum)
        });
    }

    /// Folds a block's share of all elements.
    ///
    /// Before each loop stands whether it stays among the elements, asked in 64 bits as bounds checks are that are made
    /// once before a loop: so that is known there, and no other loop follows that checks each element.
    fn shares(&self, rounds: Val<'k>) {
        let (k, fused) = (self.k, self.fused);
        let (count, wide) = (self.elements.count(0), fused.adjacent());
        let number = |n: u32| fused.widened(k.lit(Type::U32, n));
        let long = |n: Val<'k>| n.cast(Type::U64);
        let (thread, block) = (k.thread_idx().x(), fused.widened(k.block_idx().x()));
        let grid = fused.widened(k.grid_dim().x());
        // In whole rounds each block has a tile.
        let (tile, tiles) = (tile(fused), fused.widened(rounds) * grid);
        k.for_loop(block, tiles, grid, Unroll::Never, |at| {
            let first = at * number(tile) + fused.widened(thread * wide);
            let last = (DEPTH - 1) * BLOCK * wide + wide - 1;
            k.if_(self.elements.has(long(first) + last), || {
                let (at_once, unroll) = match is_long(self.fused) {
                    true => (2, Unroll::Never),
                    false => (1, Unroll::By(DEPTH)),
                };
                let (zero, steps) = (number(0), number(DEPTH));
                k.for_loop(zero, steps, number(at_once), unroll, |step| {
                    let next = |n: u32| first + (step + number(n)) * number(BLOCK * wide);
                    let firsts: Vec<_> = (0..at_once).map(next).collect();
                    let all = self.elements.runs(&firsts, wide);
                    all.into_iter().for_each(|value| self.add(value));
                });
            });
        });
        // The rest is counted in runs of elements next to each other, so that LLVM sees where they begin.
        let (place, runs) = (
            block * number(BLOCK) + fused.widened(thread),
            count / number(wide),
        );
        let (first, step) = (tiles * number(BLOCK * DEPTH) + place, grid * number(BLOCK));
        // Less than a tile is left for a block: of what takes long to compute one copy is enough.
        let unroll = match is_long(self.fused) {
            true => Unroll::Never,
            false => Unroll::By(DEPTH / 2),
        };
        k.if_(self.elements.has(long(runs * number(wide)) - 1u32), || {
            k.for_loop(first, runs, step, unroll, |run| {
                let all = self.elements.runs(&[run * number(wide)], wide);
                all.into_iter().for_each(|value| self.add(value));
            });
        });
        if wide > 1 {
            let last = runs * number(wide) + place;
            k.if_(self.elements.has(long(last)), || {
                self.add(self.elements.at(last))
            });
        }
    }

    /// Folds elements along rows, of which a thread has runs next to each other: from the first on each so many
    /// further.
    fn go_along_runs(&self, from: &[Option<Val<'k>>], (first, step): (Val<'k>, Val<'k>)) {
        let (k, wide, from) = (self.k, self.fused.adjacent(), from.to_vec());
        let number = |n: u32| self.fused.widened(k.lit(Type::U32, n));
        let runs = self.elements.count(1) / number(wide);
        let each = |runs: &[Val<'k>]| {
            let place = |run: &Val<'k>| {
                let i = *run * number(wide);
                (self.elements.places(Some(&from), 1, i), i)
            };
            let places: Vec<_> = runs.iter().map(place).collect();
            let all = self.elements.runs_beside(&places, 1);
            all.into_iter().for_each(|value| self.add(value));
        };
        if is_long(self.fused) {
            return self.go_by_two((first, runs, step), &each);
        }
        let unroll = Unroll::By(DEPTH / 2);
        k.for_loop(first, runs, step, unroll, |run| each(&[run]));
    }

    /// Folds a row by so many lanes of a warp.
    pub(super) fn lanes(&self, lanes: u32) {
        let (k, fused) = (self.k, self.fused);
        let thread = k.thread_idx().x();
        let row = k.block_idx().x() * (BLOCK / lanes) + thread / lanes;
        let (rows, row) = (self.elements.count(0), fused.widened(row));
        let lane = thread % lanes;
        k.if_(row.lt(rows), || {
            let places = self.elements.places(None, 0, row);
            let step = fused.widened(k.lit(Type::U32, lanes));
            self.go_along_runs(&places, (fused.widened(lane), step));
        });
        self.of_lanes(&self.sum, lanes);
        k.if_(row.lt(rows) & lane.eq(0), || self.out.at(row).set(self.sum));
    }

    /// Folds a row, or a share of it: each row has so many blocks.
    pub(super) fn long_rows(&self, parts: Val<'k>) {
        let (k, fused) = (self.k, self.fused);
        let (here, thread) = (k.block_idx().x(), k.thread_idx().x());
        let row = here / parts;
        let part = here - row * parts;
        let places = self.elements.places(None, 0, fused.widened(row));
        let first = fused.widened(part * BLOCK + thread);
        self.go_along_runs(&places, (first, fused.widened(parts * BLOCK)));
        self.of_block(&self.sum);
        k.if_(thread.eq(0), || self.out.at(here).set(self.sum));
    }

    /// Folds columns, or so many elements of each: a block has threads beside each other along them, each of which has
    /// columns next to each other, and below each other along what is folded.
    pub(super) fn tall(&self, along: u32, step: Val<'k>) {
        let (k, fused, wide) = (self.k, self.fused, self.fused.adjacent());
        let (thread, rows) = (k.thread_idx().x(), BLOCK / along);
        let (columns, end) = (self.elements.count(0), self.elements.count(1));
        let (step, part) = (fused.widened(step), fused.widened(k.block_idx().y()));
        let left = fused.widened(k.block_idx().x() * (along * wide));
        let column = left + fused.widened(thread % along * wide);
        let sums: Vec<Var<'k>> = (0..wide).map(|_| k.var("sum", self.identity)).collect();
        k.if_(column.lt(columns), || {
            let from = self.elements.places(None, 0, column);
            let first = part * step + fused.widened(thread / along);
            let (end, rows) = (end.min(part * step + step), k.lit(Type::U32, rows));
            let each = |rows: &[Val<'k>]| {
                let place = |i: &Val<'k>| (self.elements.places(Some(&from), 1, *i), *i);
                let places: Vec<_> = rows.iter().map(place).collect();
                let all = self.elements.runs_beside(&places, 0);
                for (value, sum) in all.into_iter().zip(sums.iter().cycle()) {
                    sum.set((self.op)(sum.get(), value));
                }
            };
            let rows = fused.widened(rows);
            match is_long(self.fused) {
                true => self.go_by_two((first, end, rows), &each),
                false => {
                    k.for_loop(first, end, rows, Unroll::By(DEPTH), |i| each(&[i]));
                }
            }
        });
        self.between_rows(&sums, (along, left, part * columns), columns);
    }

    /// Folds what the threads of a block have of columns, of which so many threads are beside each other from a column on,
    /// and stores it behind a place.
    fn between_rows(
        &self,
        sums: &[Var<'k>],
        (along, left, to): (u32, Val<'k>, Val<'k>),
        columns: Val<'k>,
    ) {
        let (k, fused, wide) = (self.k, self.fused, self.fused.adjacent());
        let (thread, width) = (k.thread_idx().x(), along * wide);
        let tile = k.shared_array("tile", self.identity.ty(), BLOCK * wide);
        for (item, sum) in (0..).zip(sums) {
            tile.at(thread * wide + item).set(*sum);
        }
        k.barrier();
        for turn in 0..width.div_ceil(BLOCK) {
            let place = thread + turn * BLOCK;
            let column = left + fused.widened(place);
            k.if_(place.lt(width) & column.lt(columns), || {
                let sum = k.var("column", tile.at(place));
                for row in 1..BLOCK / along {
                    let other = tile.at(place + row * width).get();
                    sum.set((self.op)(sum.get(), other));
                }
                self.out.at(to + column).set(sum);
            });
        }
    }
}

/// The parameters of a kernel that folds all elements, behind the neutral element.
pub(super) struct Total<'k> {
    /// Where blocks that are done are counted, and the place there of this launch.
    counters: Val<'k>,
    counter: Val<'k>,
    /// How many times each block has a whole tile, which takes a division.
    rounds: Val<'k>,
}

impl<'k> Total<'k> {
    pub(super) fn declare(k: &'k KernelBuilder) -> Total<'k> {
        Total {
            counters: k.slice_mut("counters", Type::U32),
            counter: k.param("counter", Type::U32),
            rounds: k.param("rounds", Type::U32),
        }
    }
}
