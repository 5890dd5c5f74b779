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

impl<'k> Elements<'_, '_, 'k> {
    /// Describes that each block stores a tile, which goes along a dimension and the last.
    pub(super) fn store_tiled(&self, dim: usize) {
        let k = self.k;
        let dims = self.all_dims();
        let (last, mut rest) = (dims.len() - 1, k.block_idx().x());
        // The number of the block is taken apart: where the tile begins along each dimension.
        let mut start = vec![rest; dims.len()];
        let others = (0..dims.len()).rev().filter(|at| *at != dim && *at != last);
        for at in [last, dim].into_iter().chain(others) {
            let is_tile = at == last || at == dim;
            let count = match is_tile {
                true => (dims[at] + (SIDE - 1)) / SIDE,
                false => dims[at],
            };
            let next = rest / count;
            let here = rest - next * count;
            start[at] = if is_tile { here * SIDE } else { here };
            rest = next;
        }
        let thread = k.thread_idx().x();
        let (column, row) = (thread % SIDE, thread / SIDE);
        let steps = || (0..SIDE).step_by((BLOCK / SIDE) as usize);
        let place = |along_dim: Val<'k>, along_last: Val<'k>| {
            let mut place = start.clone();
            place[dim] = place[dim] + along_dim;
            place[last] = place[last] + along_last;
            let is_there = place[dim].lt(dims[dim]) & place[last].lt(dims[last]);
            (place, is_there)
        };
        let tiles: Vec<(usize, Val<'k>)> = self.tiles_in_memory();
        for step in steps() {
            let (place, is_there) = place(column, row + step);
            k.if_(is_there, || {
                let places = self.places_of(&place);
                for (operand, tile) in &tiles {
                    if let (Some(from), Some(at)) = (self.params[*operand].value, places[*operand])
                    {
                        tile.at((row + step) * (SIDE + 1) + column).set(from.at(at));
                    }
                }
            });
        }
        k.barrier();
        for step in steps() {
            let (place, is_there) = place(row + step, column);
            k.if_(is_there, || {
                let mut index = place[0];
                for (dim, at) in dims.iter().zip(&place).skip(1) {
                    index = index * *dim + *at;
                }
                let known = |position: usize| {
                    let tile = tiles.iter().find(|(operand, _)| *operand == position);
                    tile.map(|(_, tile)| tile.at(column * (SIDE + 1) + (row + step)).get())
                };
                let value = self.read_with(&self.places_of(&place), At::Index(index), &known);
                self.out.at(index).set(value);
            });
        }
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
