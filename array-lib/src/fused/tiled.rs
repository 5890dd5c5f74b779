//! Results whose neighbours lie apart in an operand, which has those along another dimension side by side: a block of a
//! GPU brings a tile of 32 x 32 elements to shared memory along that one, and takes it from there along the last (G.
//! Ruetsch, P. Micikevicius: "Optimizing Matrix Transpose in CUDA"). A row of the tile has a place more, so that those
//! of a column are at different banks.

use kiln_device_stdlib::index::Index;
use kiln_jit_core::build::Val;

use super::elements::{At, Elements, Places};
use super::{BLOCK, Fused, What};
use crate::space::{Access, Inner};

/// Rows and columns of a tile.
const SIDE: u32 = 32;

/// Dimensions of fewer elements leave most of a tile empty.
const LEAST: usize = 16;

/// The bytes of shared memory that tiles have at most.
const MOST_BYTES: usize = 32 << 10;

/// What goes through tiles: the operands, and the dimension along which their neighbours lie side by side.
#[derive(Default)]
pub(super) struct Tiled {
    pub(super) dim: Option<usize>,
    operands: Vec<usize>,
}

impl Fused<'_> {
    /// Finds what goes through tiles.
    pub(super) fn find_tiled(&mut self) {
        let dims = &self.groups[0].dims;
        let is_long = |at: usize| dims[at] >= LEAST;
        let last = dims.len().saturating_sub(1);
        if !self.is_for_gpu() || self.wide || self.out.is_some() || last == 0 || !is_long(last) {
            return;
        }
        let mut tiled = Tiled::default();
        let mut bytes = 0;
        for (array, operand) in self.operands.iter().enumerate() {
            let (What::Buffer(input), Access::Strided([Inner::Any, _])) =
                (operand.what, operand.access)
            else {
                continue;
            };
            let strides = &self.groups[0].strides[array];
            let beside = (0..last).find(|at| strides[*at] == 1 && is_long(*at));
            let more = (SIDE * (SIDE + 1)) as usize * input.element_bytes();
            let is_one = beside.is_some() && (tiled.dim.is_none() || tiled.dim == beside);
            if is_one && bytes + more <= MOST_BYTES {
                tiled.dim = beside;
                tiled.operands.push(array);
                bytes += more;
            }
        }
        self.tiled = tiled;
    }

    /// How many tiles there are, each of which a block has.
    pub(super) fn tiles(&self, dim: usize) -> u32 {
        let dims = self.groups[0].dims.iter().enumerate();
        let last = dims.len() - 1;
        let count = dims.map(|(at, count)| match at == dim || at == last {
            true => count.div_ceil(SIDE as usize),
            false => *count,
        });
        count.product::<usize>() as u32
    }
}

/// A tile that is being described: where it begins along each dimension, and the shared memory of its operands.
struct Tile<'k> {
    dim: usize,
    dims: Vec<Val<'k>>,
    start: Vec<Val<'k>>,
    operands: Vec<(usize, Val<'k>)>,
    /// The place of a thread in the first rows that a block has at once.
    column: Val<'k>,
    row: Val<'k>,
}

impl<'k> Tile<'k> {
    /// The coordinates so far from where the tile begins.
    fn at(&self, along_dim: Val<'k>, along_last: Val<'k>) -> Vec<Val<'k>> {
        let (mut at, last) = (self.start.clone(), self.start.len() - 1);
        at[self.dim] = at[self.dim] + along_dim;
        at[last] = at[last] + along_last;
        at
    }

    fn has(&self, at: &[Val<'k>]) -> Val<'k> {
        let (dim, last) = (self.dim, at.len() - 1);
        at[dim].lt(self.dims[dim]) & at[last].lt(self.dims[last])
    }

    /// The rows of a thread.
    fn rows(&self) -> Vec<Val<'k>> {
        let steps = (0..SIDE).step_by((BLOCK / SIDE) as usize);
        steps.map(|step| self.row + step).collect()
    }
}

impl<'k> Elements<'_, '_, 'k> {
    /// Describes that each block stores a tile, which goes along a dimension and the last. Of a whole one a thread
    /// reads all that it needs before it waits for the first.
    pub(super) fn store_tiled(&self, dim: usize) {
        let (k, tile) = (self.k, self.tile(dim));
        let number = |n: u32| k.lit(k.ty::<u32>(), n);
        let is_whole = tile.has(&tile.at(number(SIDE - 1), number(SIDE - 1)));
        k.if_(is_whole, || {
            let brought: Vec<_> = tile
                .rows()
                .iter()
                .map(|row| self.read_in(&tile, *row))
                .collect();
            for (row, values) in tile.rows().into_iter().zip(brought) {
                self.bring(&tile, row, &values);
            }
        })
        .else_(|| {
            for row in tile.rows() {
                k.if_(tile.has(&tile.at(tile.column, row)), || {
                    self.bring(&tile, row, &self.read_in(&tile, row));
                });
            }
        });
        k.barrier();
        k.if_(is_whole, || {
            let values: Vec<_> = tile
                .rows()
                .iter()
                .map(|row| self.take(&tile, *row))
                .collect();
            for (index, value) in values {
                self.put(At::Index(index), value);
            }
        })
        .else_(|| {
            for row in tile.rows() {
                k.if_(tile.has(&tile.at(row, tile.column)), || {
                    let (index, value) = self.take(&tile, row);
                    self.put(At::Index(index), value);
                });
            }
        });
    }

    /// The tile of this block, whose number is taken apart.
    fn tile(&self, dim: usize) -> Tile<'k> {
        let (k, dims) = (self.k, self.all_dims());
        let (last, mut rest) = (dims.len() - 1, k.block_idx().x());
        let mut start = vec![rest; dims.len()];
        let others = (0..dims.len()).rev().filter(|at| *at != dim && *at != last);
        for at in [last, dim].into_iter().chain(others) {
            let is_along = at == last || at == dim;
            let count = match is_along {
                true => (dims[at] + (SIDE - 1)) / SIDE,
                false => dims[at],
            };
            let next = rest / count;
            let here = rest - next * count;
            start[at] = if is_along { here * SIDE } else { here };
            rest = next;
        }
        let thread = k.thread_idx().x();
        Tile {
            dim,
            dims,
            start,
            operands: self.tiles_in_memory(),
            column: thread % SIDE,
            row: thread / SIDE,
        }
    }

    /// What a thread reads of a row, whose elements lie side by side in the operands.
    fn read_in(&self, tile: &Tile<'k>, row: Val<'k>) -> Vec<Option<Val<'k>>> {
        let places = self.places_of(&tile.at(tile.column, row));
        let read = |(operand, _): &(usize, Val<'k>)| {
            let from = self.params[*operand].value?;
            Some(from.at(places[*operand]?).get())
        };
        tile.operands.iter().map(read).collect()
    }

    fn bring(&self, tile: &Tile<'k>, row: Val<'k>, values: &[Option<Val<'k>>]) {
        for ((_, memory), value) in tile.operands.iter().zip(values) {
            if let Some(value) = value {
                memory.at(row * (SIDE + 1) + tile.column).set(*value);
            }
        }
    }

    /// The element of a thread of a row of results, and its index.
    fn take(&self, tile: &Tile<'k>, row: Val<'k>) -> (Val<'k>, Val<'k>) {
        let at = tile.at(row, tile.column);
        let dims = tile.dims.iter().zip(&at).skip(1);
        let index = dims.fold(at[0], |index, (dim, at)| index * *dim + *at);
        let known = |position: usize| {
            let operand = tile
                .operands
                .iter()
                .find(|(operand, _)| *operand == position);
            operand.map(|(_, memory)| memory.at(tile.column * (SIDE + 1) + row).get())
        };
        (
            index,
            self.read_with(&self.places_of(&at), At::Index(index), &known),
        )
    }

    /// Shared memory for the operands that go through tiles.
    fn tiles_in_memory(&self) -> Vec<(usize, Val<'k>)> {
        let operands = self.fused.tiled.operands.iter();
        let tile = |operand: &usize| {
            let element = self.params[*operand].value?.at(0).ty();
            let name = format!("tile{operand}");
            let tile = self.k.shared_array(&name, element, SIDE * (SIDE + 1));
            Some((*operand, tile))
        };
        operands.filter_map(tile).collect()
    }

    /// The extents along all dimensions: the first is what the others leave of all elements.
    fn all_dims(&self) -> Vec<Val<'k>> {
        let others = &self.dims[0];
        let first = others.iter().fold(self.count(0), |all, dim| all / *dim);
        std::iter::once(first)
            .chain(others.iter().copied())
            .collect()
    }

    /// Where the operands' elements lie at these coordinates.
    fn places_of(&self, at: &[Val<'k>]) -> Places<'k> {
        let operands = self.fused.operands.iter().zip(&self.params);
        let place = |(operand, param): (&super::Operand<'_>, &super::elements::Param<'k>)| {
            let Access::Strided([inner, _]) = operand.access else {
                return None;
            };
            self.moved(param, None, self.shift(param, 0, inner, at))
        };
        operands.map(place).collect()
    }
}
