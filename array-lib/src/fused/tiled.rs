//! Results whose neighbours lie apart in an operand, which has those along another dimension side by side: a block of a
//! GPU brings a tile of 32 x 64 elements to shared memory along that one, and takes it from there along the last (G.
//! Ruetsch, P. Micikevicius: "Optimizing Matrix Transpose in CUDA"). A line of the tile has a place more, so that those
//! across are at different banks. It has so many lines that a thread has eight elements on their way at once.

use kiln_device_stdlib::index::Index;
use kiln_jit_core::build::Val;

use super::elements::{At, Elements, Places};
use super::{BLOCK, Fused, What};
use crate::space::{Access, Inner};

/// Elements of a tile along the dimension that operands have side by side, a line, and along the last.
const SIDE: u32 = 32;
const LONG: u32 = 64;

/// How far the lines of a tile are apart.
const LINE: u32 = SIDE + 1;

/// Dimensions of fewer elements leave most of a tile empty.
const LEAST: usize = 16;

/// The bytes of shared memory that tiles have at most.
const MOST_BYTES: usize = 40 << 10;

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
            let more = (LONG * LINE) as usize * input.element_bytes();
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
        let count = dims.map(|(at, count)| count.div_ceil(extent(at, (dim, last)) as usize));
        count.product::<usize>() as u32
    }
}

/// How many elements a tile has along a dimension, which lies along the one of its lines and the last.
fn extent(at: usize, (dim, last): (usize, usize)) -> u32 {
    match at {
        _ if at == dim => SIDE,
        _ if at == last => LONG,
        _ => 1,
    }
}

/// A place in a tile: along the dimension of its lines, and along the last.
type Place<'k> = (Val<'k>, Val<'k>);

/// A tile that is being described: where it begins along each dimension, and the shared memory of its operands.
struct Tile<'k> {
    dim: usize,
    dims: Vec<Val<'k>>,
    start: Vec<Val<'k>>,
    operands: Vec<(usize, Val<'k>)>,
    thread: Val<'k>,
}

impl<'k> Tile<'k> {
    /// The coordinates of a place.
    fn at(&self, (along_dim, along_last): Place<'k>) -> Vec<Val<'k>> {
        let (mut at, last) = (self.start.clone(), self.start.len() - 1);
        at[self.dim] = at[self.dim] + along_dim;
        at[last] = at[last] + along_last;
        at
    }

    fn has(&self, at: &[Val<'k>]) -> Val<'k> {
        let (dim, last) = (self.dim, at.len() - 1);
        at[dim].lt(self.dims[dim]) & at[last].lt(self.dims[last])
    }

    /// The places that a thread reads: those of threads beside each other are beside each other in a line.
    fn read(&self) -> Vec<Place<'k>> {
        let (column, row) = (self.thread % SIDE, self.thread / SIDE);
        let steps = (0..LONG).step_by((BLOCK / SIDE) as usize);
        steps.map(|step| (column, row + step)).collect()
    }

    /// The places that a thread stores: those of threads beside each other are beside each other along the last dimension.
    fn stored(&self) -> Vec<Place<'k>> {
        let (column, row) = (self.thread % LONG, self.thread / LONG);
        let steps = (0..SIDE).step_by((BLOCK / LONG) as usize);
        steps.map(|step| (row + step, column)).collect()
    }

    /// Where a place is in shared memory.
    fn in_memory((along_dim, along_last): Place<'k>) -> Val<'k> {
        along_last * LINE + along_dim
    }
}

impl<'k> Elements<'_, '_, 'k> {
    /// Describes that each block stores a tile, which goes along a dimension and the last. Of a whole one a thread
    /// reads all that it needs before it waits for the first.
    pub(super) fn store_tiled(&self, dim: usize) {
        let (k, tile) = (self.k, self.tile(dim));
        let number = |n: u32| k.lit(k.ty::<u32>(), n);
        let is_whole = tile.has(&tile.at((number(SIDE - 1), number(LONG - 1))));
        k.if_(is_whole, || {
            let (read, read_in) = (tile.read(), |place: &Place<'k>| self.read_in(&tile, *place));
            let brought: Vec<_> = read.iter().map(read_in).collect();
            for (place, values) in read.into_iter().zip(brought) {
                self.bring(&tile, place, &values);
            }
        })
        .else_(|| {
            for place in tile.read() {
                k.if_(tile.has(&tile.at(place)), || {
                    self.bring(&tile, place, &self.read_in(&tile, place));
                });
            }
        });
        k.barrier();
        k.if_(is_whole, || {
            let stored = tile.stored().into_iter();
            let values: Vec<_> = stored.map(|place| self.take(&tile, place)).collect();
            for (index, value) in values {
                self.put(At::Index(index), value);
            }
        })
        .else_(|| {
            for place in tile.stored() {
                k.if_(tile.has(&tile.at(place)), || {
                    let (index, value) = self.take(&tile, place);
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
            let extent = extent(at, (dim, last));
            let count = match extent {
                1 => dims[at],
                _ => (dims[at] + (extent - 1)) / extent,
            };
            let next = rest / count;
            start[at] = (rest - next * count) * extent;
            rest = next;
        }
        Tile {
            dim,
            dims,
            start,
            operands: self.tiles_in_memory(),
            thread: k.thread_idx().x(),
        }
    }

    /// What a thread reads of the operands at a place.
    fn read_in(&self, tile: &Tile<'k>, place: Place<'k>) -> Vec<Option<Val<'k>>> {
        let places = self.places_of(&tile.at(place));
        let read = |(operand, _): &(usize, Val<'k>)| {
            let from = self.params[*operand].value?;
            Some(from.at(places[*operand]?).get())
        };
        tile.operands.iter().map(read).collect()
    }

    fn bring(&self, tile: &Tile<'k>, place: Place<'k>, values: &[Option<Val<'k>>]) {
        for ((_, memory), value) in tile.operands.iter().zip(values) {
            if let Some(value) = value {
                memory.at(Tile::in_memory(place)).set(*value);
            }
        }
    }

    /// The element of a thread at a place, and its index.
    fn take(&self, tile: &Tile<'k>, place: Place<'k>) -> (Val<'k>, Val<'k>) {
        let at = tile.at(place);
        let dims = tile.dims.iter().zip(&at).skip(1);
        let index = dims.fold(at[0], |index, (dim, at)| index * *dim + *at);
        let known = |position: usize| {
            if let Access::Coordinate(dim) = self.fused.operands[position].access {
                return Some(at[dim]);
            }
            let operand = tile
                .operands
                .iter()
                .find(|(operand, _)| *operand == position);
            operand.map(|(_, memory)| memory.at(Tile::in_memory(place)).get())
        };
        (
            index,
            self.read_with(&self.places_of(&at), At::Index(index), &known, &|_, _| None),
        )
    }

    /// Shared memory for the operands that go through tiles.
    fn tiles_in_memory(&self) -> Vec<(usize, Val<'k>)> {
        let operands = self.fused.tiled.operands.iter();
        let tile = |operand: &usize| {
            let element = self.params[*operand].value?.at(0).ty();
            let name = format!("tile{operand}");
            let tile = self.k.shared_array(&name, element, LONG * LINE);
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
