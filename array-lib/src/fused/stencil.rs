//! What a thread of a GPU reads where several of its elements need it: neighbours at distances that are part of the kernel.
//!
//! A thread has elements next to each other, and those in rows below. What lies among them or around is read once, however
//! many of them it is a neighbour of, and only what lies around asks what stands beyond the border.

use std::cell::RefCell;
use std::collections::HashMap;

use kiln_jit_core::build::Val;
use kiln_jit_core::ir::{Type, Unroll};
use smallvec::SmallVec;

use super::elements::{At, Elements, Places};
use super::{Fused, What};
use crate::neighbor::{Border, Near, both};
use crate::space::{Access, Inner};

/// Of how many rows a thread has elements at most.
const MOST_ROWS: u32 = 8;

/// How many registers what is read and what is computed of it may need.
const REGISTERS: usize = 80;

/// Where an expression reads a neighbour.
pub(super) struct NearRead<'e> {
    near: &'e Near,
    /// Which of the operands, in the order in which the expression reads them, are its own.
    first: usize,
    count: usize,
}

impl<'e> NearRead<'e> {
    pub(super) fn of(near: &'e Near, first: usize, count: usize) -> NearRead<'e> {
        NearRead { near, first, count }
    }

    /// How many operands it has.
    pub(super) fn operands(&self) -> usize {
        self.count
    }
}

/// An array that neighbours are read of: the operand, the one that says where its own elements lie, and the size of those.
#[derive(Copy, Clone, PartialEq, Eq)]
pub(super) struct NearArray {
    pub(super) array: usize,
    pub(super) place: usize,
    pub(super) bytes: usize,
}

/// What threads read once.
pub(super) struct Stencil {
    pub(super) arrays: SmallVec<[NearArray; 2]>,
    /// How far what is read lies around, along the dimension of rows below each other and along the last.
    around: [usize; 2],
}

impl Fused<'_> {
    /// The operands of a neighbour.
    fn operands_of(&self, read: &NearRead<'_>) -> &[usize] {
        &self.order[read.first..][..read.count]
    }

    /// Finds whether threads read what several of their elements need once: all that is read where a function says are
    /// such neighbours, along dimensions that the kernel goes through.
    pub(super) fn find_stencil(&mut self) {
        let dims = self.groups[0].dims.len();
        let has_beside = self.by_rows || dims == 1;
        if !self.is_for_gpu() || self.wide || self.near.is_empty() || !has_beside {
            return;
        }
        let mut stencil = Stencil {
            arrays: SmallVec::new(),
            around: [0; 2],
        };
        let (mut first, mut last) = ([0i32; 2], [0i32; 2]);
        for read in &self.near {
            let operands = self.operands_of(read);
            let What::Whole(input) = self.operands[operands[0]].what else {
                return;
            };
            let array = NearArray {
                array: operands[0],
                place: operands[1],
                bytes: input.element_bytes(),
            };
            if !stencil.arrays.contains(&array) {
                stencil.arrays.push(array);
            }
            for along in read.near.along(operands) {
                let Access::Coordinate(dim) = self.operands[along.index].access else {
                    return;
                };
                if let Some(at) = (dim + 2).checked_sub(dims) {
                    first[at] = first[at].min(along.by);
                    last[at] = last[at].max(along.by);
                }
            }
        }
        stencil.around = std::array::from_fn(|at| (last[at] - first[at]) as usize);
        let is_whole = |position: &&usize| matches!(self.operands[**position].what, What::Whole(_));
        // What another function reads where it likes is not known.
        if self.order.iter().filter(is_whole).count() == self.near.len() {
            self.stencil = Some(stencil);
        }
    }

    /// Of how many rows a thread has elements, which are of so many bytes.
    pub(super) fn rows_of_stencil(&self, result: usize) -> u32 {
        let Some(stencil) = &self.stencil else {
            return 1;
        };
        let ([below, beside], columns) = (stencil.around, self.adjacent as usize);
        let words = |bytes: usize| bytes.div_ceil(4);
        let fits = |rows: usize| {
            let read = stencil
                .arrays
                .iter()
                .map(|near| words(near.bytes))
                .sum::<usize>();
            let read = read * (rows + below) * (columns + beside);
            read + rows * columns * words(result) <= REGISTERS
        };
        let mut rows = MOST_ROWS;
        while rows > 1 && !fits(rows as usize) {
            rows /= 2;
        }
        rows
    }

    /// Whether an array's rows begin where accesses to so many elements may.
    pub(super) fn is_near_even(&self, near: NearArray, count: usize) -> bool {
        let place = &self.operands[near.place];
        let is_even = match place.access {
            Access::Strided(inners) => {
                inners[self.along] == Inner::Unit && self.is_even(near.place, count)
            }
            access => access == Access::Linear,
        };
        is_even && self.operands[near.array].is_aligned()
    }

    /// The arrays that neighbours are read of once.
    pub(super) fn near_arrays(&self) -> impl Iterator<Item = NearArray> {
        let stencil = self.stencil.iter();
        stencil.flat_map(|stencil| stencil.arrays.iter().copied())
    }

    /// Whether an operand says where the elements of such an array lie.
    pub(super) fn is_place_of_near(&self, operand: usize) -> bool {
        self.near_arrays().any(|near| near.place == operand)
    }

    /// The array that neighbours are read of which this operand is, too.
    pub(super) fn like(&self, operand: usize) -> Option<NearArray> {
        let own = &self.operands[operand];
        if !matches!(own.what, What::Buffer(_)) {
            return None;
        }
        self.near_arrays().find(|near| {
            let array = &self.operands[near.array];
            let elements = [own.what, array.what].map(|what| match what {
                What::Buffer(input) | What::Whole(input) => Some(input.element()),
                What::Place | What::Number(_) => None,
            });
            own.identity().is_some()
                && own.identity() == array.identity()
                && elements[0] == elements[1]
                && own.layout == self.operands[near.place].layout
        })
    }
}

/// What is read: of an array, so far from the first element of a thread along each dimension, with what stands beyond the
/// border.
type Key = (
    usize,
    usize,
    SmallVec<[i32; 4]>,
    Option<(Border<()>, Option<usize>)>,
);

/// The elements of a thread, and what they have read.
struct Tile<'t, 'f, 'e, 'k> {
    elements: &'t Elements<'f, 'e, 'k>,
    /// The coordinates of the first.
    first: Vec<Val<'k>>,
    rows: u32,
    read: RefCell<HashMap<Key, Val<'k>>>,
}

impl<'f, 'e, 'k> Elements<'f, 'e, 'k> {
    /// Describes that a thread stores elements next to each other, from index `i` of a row on, and those in the rows
    /// below, as far as there are any.
    pub(super) fn store_stencil(&self, outer: Val<'k>, i: Val<'k>, row: Val<'k>) {
        let (k, rows, results) = (self.k, self.fused.rows, self.results());
        let at = |outer: Val<'k>| At::Row(outer, i, outer * row + i);
        if rows == 1 {
            return self.store_tile(at(outer), row, 1);
        }
        let last = outer + (rows - 1);
        let mut has_all = at(last).index().lt(results);
        // Rows of one plane only are neighbours.
        if let [.., below, _] = self.dims[0].as_slice() {
            has_all = has_all & (outer % *below + (rows - 1)).lt(*below);
        }
        let all = || self.store_tile(at(outer), row, rows);
        k.if_(has_all, all).else_(|| {
            k.for_loop(outer, outer + rows, 1u32, Unroll::Never, |outer| {
                let at = at(outer);
                k.if_(at.index().lt(results), || self.store_tile(at, row, 1));
            });
        });
    }

    /// Stores the elements next to each other from the first on, and those below them in so many rows, whose indices are
    /// so far apart.
    pub(super) fn store_tile(&self, first: At<'k>, row: Val<'k>, rows: u32) {
        let tile = Tile {
            elements: self,
            first: self.coordinates(0, first),
            rows,
            read: RefCell::default(),
        };
        let below = |n: u32| match first {
            At::Row(outer, i, index) if n > 0 => At::Row(outer + n, i, index + row * n),
            at => at,
        };
        let columns = 0..self.fused.adjacent;
        let all = (0..rows).flat_map(|n| columns.clone().map(move |column| (n, column)));
        let all: Vec<(u32, u32)> = all.collect();
        all.iter().for_each(|at| tile.read_neighbors(*at));
        let read: Vec<_> = (0..rows)
            .map(|n| self.places_at(None, 0, below(n)))
            .flat_map(|places| columns.clone().map(move |column| (places.clone(), column)))
            .zip(&all)
            .map(|((places, column), at)| {
                let places = self.beside(&places, 0, column);
                let at_element = below(at.0).further(column);
                let operands = tile.operands(&places, at_element, *at);
                (places, at_element, operands)
            })
            .collect();
        let values: Vec<(At<'k>, Val<'k>)> = read
            .into_iter()
            .zip(&all)
            .map(|((places, at, operands), of)| (at, tile.value(&places, at, &operands, *of)))
            .collect();
        values
            .into_iter()
            .for_each(|(at, value)| self.put(at, value));
    }
}

impl<'k> Tile<'_, '_, '_, 'k> {
    /// Reads the neighbours of one of the elements.
    fn read_neighbors(&self, at: (u32, u32)) {
        for read in &self.elements.fused.near {
            self.neighbor(read.near, self.elements.fused.operands_of(read), at);
        }
    }

    /// What one of the elements reads of arrays besides.
    fn operands(&self, places: &Places<'k>, at: At<'k>, of: (u32, u32)) -> Vec<Option<Val<'k>>> {
        let fused = self.elements.fused;
        let operand = |position: usize| match fused.like(position) {
            Some(near) => {
                let beside = self.own(of);
                Some(self.element(near.array, near.place, beside, None))
            }
            None => self.elements.read_ahead(places, at, position),
        };
        (0..fused.operands.len()).map(operand).collect()
    }

    /// The value of one of the elements, whose operands were read.
    fn value(
        &self,
        places: &Places<'k>,
        at: At<'k>,
        operands: &[Option<Val<'k>>],
        of: (u32, u32),
    ) -> Val<'k> {
        let near = |near: &Near, operands: &[usize]| self.neighbor(near, operands, of);
        let known = |position: usize| operands[position];
        self.elements.read_with(places, at, &known, &near)
    }

    /// How far one of the elements lies from the first along each dimension.
    fn own(&self, (row, column): (u32, u32)) -> SmallVec<[i32; 4]> {
        let mut beside = SmallVec::from_elem(0, self.first.len());
        if let [.., below, last] = beside.as_mut_slice() {
            (*below, *last) = (row as i32, column as i32);
        } else {
            beside.fill(column as i32);
        }
        beside
    }

    /// A neighbour of one of the elements.
    fn neighbor(&self, near: &Near, operands: &[usize], at: (u32, u32)) -> Option<Val<'k>> {
        let mut beside = self.own(at);
        for along in near.along(operands) {
            let Access::Coordinate(dim) = self.elements.fused.operands[along.index].access else {
                return None;
            };
            beside[dim] += along.by;
        }
        Some(self.element(operands[0], operands[1], beside, Some((near, operands))))
    }

    /// How many elements of a thread there are along a dimension.
    fn extent(&self, dim: usize) -> i32 {
        match self.first.len() - dim {
            1 => self.elements.fused.adjacent as i32,
            2 => self.rows as i32,
            _ => 1,
        }
    }

    /// The element of an array that lies so far from the first, or what stands beyond the border for this neighbour.
    fn element(
        &self,
        array: usize,
        place: usize,
        beside: SmallVec<[i32; 4]>,
        near: Option<(&Near, &[usize])>,
    ) -> Val<'k> {
        let is_own = |(dim, by): (usize, &i32)| (0..self.extent(dim)).contains(by);
        let is_own = beside.iter().enumerate().all(is_own);
        let border = near.filter(|_| !is_own);
        let name = border.map(|(near, operands)| (near.border, near.value(operands)));
        let key = (array, place, beside, name);
        if let Some(known) = self.read.borrow().get(&key) {
            return *known;
        }
        let value = self.read_element(array, place, &key.2, border);
        self.read.borrow_mut().insert(key, value);
        value
    }

    fn read_element(
        &self,
        array: usize,
        place: usize,
        beside: &[i32],
        border: Option<(&Near, &[usize])>,
    ) -> Val<'k> {
        let (k, params) = (self.elements.k, &self.elements.params);
        let mut is_there = None;
        let mut at = Vec::with_capacity(beside.len());
        for (dim, by) in beside.iter().enumerate() {
            let first = self.first[dim];
            let extent = border.and_then(|(near, operands)| {
                let mut along = near.along(operands);
                let is_along = |index: usize| {
                    self.elements.fused.operands[index].access == Access::Coordinate(dim)
                };
                along
                    .find(|along| is_along(along.index))
                    .map(|along| along.extent)
            });
            let is_own = (0..self.extent(dim)).contains(by);
            let (index, own) = match (border, extent.and_then(|n| params[n].value)) {
                (Some((near, _)), Some(extent)) if !is_own => {
                    near.border.beside(first, *by, extent)
                }
                _ => (first + k.lit(Type::U32, *by as u32), None),
            };
            at.push(index);
            is_there = both(is_there, own);
        }
        let place = self.elements.place_of(place, &at);
        let array = params[array].value;
        let element = array.map_or(place, |array| array.at(place).get());
        let value = border.and_then(|(near, operands)| near.value(operands));
        match (is_there, value.and_then(|value| params[value].value)) {
            (Some(is_there), Some(value)) => is_there.select(element, value.cast(element.ty())),
            _ => element,
        }
    }
}

impl<'k> Elements<'_, '_, 'k> {
    /// Where an operand has the element at these coordinates.
    fn place_of(&self, operand: usize, at: &[Val<'k>]) -> Val<'k> {
        let index = || {
            let dims = at.iter().skip(1).zip(&self.dims[0]);
            dims.fold(at[0], |index, (i, dim)| index * *dim + *i)
        };
        match self.fused.operands[operand].access {
            Access::Strided(inners) => {
                let param = &self.params[operand];
                let shift = self.shift(param, 0, inners[0], at);
                self.moved(param, None, shift).unwrap_or_else(index)
            }
            Access::Coordinate(dim) => at[dim],
            _ => index(),
        }
    }
}
