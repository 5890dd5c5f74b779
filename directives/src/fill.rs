//! Filling sections in shared memory: all threads of a block together, neighbours neighbouring elements.
//!
//! Elements are copied, or computed by the loops that write the slice ([`compute`](crate::compute)). Those that the slice does
//! not have are left out, or zero where lanes beyond the end of a loop read them ([`edge`](crate::edge)).

use kiln_jit_core::ir::{BinaryOp, CompareOp, Constant, InstData, Scalar, Type, Unroll, Value};

use crate::compute::Producer;
use crate::drain::Flags;
use crate::emit::Emit;
use crate::integer::ceil;
use crate::stage::Tile;

/// What fills a section, as one of the threads that do.
pub(crate) struct Filler<'s> {
    pub(crate) tile: &'s Tile,
    /// The loops that compute the elements, if they are not copied.
    pub(crate) producer: Option<&'s Producer>,
    /// What tells which elements are copied to the slice, if they are copied there and not from there.
    pub(crate) out: Option<Flags>,
    /// The thread's number, and how many threads there are.
    pub(crate) own: Value,
    pub(crate) threads: i128,
    /// Where the thread is along rows, if these are to be filled one by one.
    pub(crate) along: Option<AlongRows>,
}

/// Where a thread is among those of a block that fill rows, as the lanes of whole warps have neighbouring elements of one row.
#[derive(Copy, Clone, Debug)]
pub(crate) struct AlongRows {
    /// The thread's place along x, and the number of its line of threads.
    pub(crate) x: Value,
    pub(crate) line: Value,
    /// How many threads a line has, and how many lines there are.
    pub(crate) width: i128,
    pub(crate) lines: i128,
    /// Whether the thread is the first of its block.
    pub(crate) is_first: Value,
}

/// The columns of a section that lines of threads fill: from which one on, and how many.
#[derive(Copy, Clone, Debug)]
struct Main {
    first: i128,
    columns: i128,
}

/// Of fewer columns than this part of a line, one thread fills in one element after the other sooner than a line does in each row.
const FEW: i128 = 4;

/// The signed type that has the size of an integer.
fn signed_like(emit: &Emit<'_>, value: Value) -> Type {
    let scalar = emit.function.type_of(value).as_scalar();
    match scalar.map_or(64, Scalar::bits) {
        8 => Type::I8,
        16 => Type::I16,
        32 => Type::I32,
        _ => Type::I64,
    }
}

impl Filler<'_> {
    /// The type in which places in the slice are counted.
    fn counted_in(&self) -> Type {
        match self.tile.section.is_short {
            true => Type::I32,
            false => Type::I64,
        }
    }

    /// Fills the section, whose origin is at an index.
    pub(crate) fn fill(&self, emit: &mut Emit<'_>, origin: Value) {
        let (own, threads) = (self.own, self.threads);
        let origin = match self.tile.section.is_signed {
            true => {
                let signed = signed_like(emit, origin);
                emit.cast(origin, signed)
            }
            false => origin,
        };
        let counted = self.counted_in();
        let origin = match self.tile.section.is_whole {
            true => emit.int(0, counted),
            false => emit.cast(origin, counted),
        };
        let dims = self.tile.section.dims.iter();
        let ahead = dims.map(|dim| dim.first * dim.stride).sum();
        let ahead = emit.int(ahead, counted);
        let origin = emit.binary(BinaryOp::Add, origin, ahead);
        if let Some((along, main)) = self
            .along
            .and_then(|along| Some((along, self.main(along)?)))
        {
            return self.fill_along(emit, origin, (along, main));
        }
        let rounds = ceil(self.tile.section.len(), threads);
        if let [rows, row] = self.tile.section.dims[..]
            && row.extent <= threads
            && ceil(rows.extent, threads / row.extent) <= rounds
        {
            return self.fill_rows(emit, origin);
        }
        let bounds = [0, rounds, 1].map(|number| emit.int(number, Type::U32));
        emit.for_(bounds, Unroll::Auto, |emit, round| {
            let threads_of_all = emit.int(threads, Type::U32);
            let before = emit.binary(BinaryOp::Mul, round, threads_of_all);
            let number = emit.binary(BinaryOp::Add, before, own);
            let is_there = (self.tile.section.len() % threads != 0).then(|| {
                let len = emit.int(self.tile.section.len(), Type::U32);
                emit.compare(CompareOp::Lt, number, len)
            });
            emit.where_(is_there, |emit| self.copy_number(emit, origin, number));
        });
    }

    /// Copies a section as many rows at a time as there are threads for: which element of a row a thread has stays the same.
    fn fill_rows(&self, emit: &mut Emit<'_>, origin: Value) {
        let (own, threads) = (self.own, self.threads);
        let counted = self.counted_in();
        let (rows, row) = (self.tile.section.dims[0], self.tile.section.dims[1]);
        let pitch = row.extent + self.tile.section.padding;
        let at_once = threads / row.extent;
        let [extent, pitch, at_once_of_all] =
            [row.extent, pitch, at_once].map(|number| emit.int(number, Type::U32));
        let first = emit.binary(BinaryOp::Div, own, extent);
        let column = emit.binary(BinaryOp::Rem, own, extent);
        let rounds = ceil(rows.extent, at_once);
        let bounds = [0, rounds, 1].map(|number| emit.int(number, Type::U32));
        emit.for_(bounds, Unroll::Auto, |emit, round| {
            let before = emit.binary(BinaryOp::Mul, round, at_once_of_all);
            let own_row = emit.binary(BinaryOp::Add, before, first);
            let mut conditions = Vec::new();
            if at_once * row.extent < threads {
                conditions.push(emit.compare(CompareOp::Lt, first, at_once_of_all));
            }
            if rows.extent % at_once != 0 {
                let all = emit.int(rows.extent, Type::U32);
                conditions.push(emit.compare(CompareOp::Lt, own_row, all));
            }
            let is_there = emit.all(&conditions);
            emit.where_(is_there, |emit| {
                let mut from = origin;
                for (place, stride) in [(own_row, rows.stride), (column, row.stride)] {
                    let place = emit.cast(place, counted);
                    let stride = emit.int(stride, counted);
                    let ahead = emit.binary(BinaryOp::Mul, place, stride);
                    from = emit.binary(BinaryOp::Add, from, ahead);
                }
                let to = emit.binary(BinaryOp::Mul, own_row, pitch);
                let to = emit.binary(BinaryOp::Add, to, column);
                self.copy(emit, from, to);
            });
        });
    }

    /// The columns that lines of threads fill, if a row has enough for that. They begin where the threads' own ones do, as what is read on
    /// both sides of these may be of other rows.
    fn main(&self, along: AlongRows) -> Option<Main> {
        let row = self.tile.section.dims.last()?;
        let own = -row.first;
        let has_own = own >= 0 && own + along.width <= row.extent;
        let first = if has_own { own } else { 0 };
        let columns = row.extent - first;
        let (whole, rest) = (columns / along.width, columns % along.width);
        let columns = match rest > along.width / FEW {
            true => columns,
            false => whole * along.width,
        };
        (columns > 0).then_some(Main { first, columns })
    }

    /// Fills rows by lines of threads, neighbours neighbouring elements of one row; the few columns that are left one thread, whose code
    /// is that of one lane.
    fn fill_along(&self, emit: &mut Emit<'_>, origin: Value, (along, main): (AlongRows, Main)) {
        let dims = &self.tile.section.dims;
        let (row, outer) = dims.split_last().expect("a row is a dimension");
        let rows: i128 = outer.iter().map(|dim| dim.extent).product();
        emit.each_of(rows, (along.line, along.lines), |emit, number| {
            let first = emit.int(main.first, Type::U32);
            let (from, to) = self.place(emit, origin, (number, first));
            let of_line = (along.x, along.width);
            emit.each_of(main.columns, of_line, |emit, ahead| {
                let to = emit.binary(BinaryOp::Add, to, ahead);
                self.copy_along(emit, (from, ahead), to);
            });
        });
        let left = row.extent - main.columns;
        if left == 0 {
            return;
        }
        emit.where_(Some(along.is_first), |emit| {
            let bounds = [0, rows * left, 1].map(|number| emit.int(number, Type::U32));
            emit.for_(bounds, Unroll::Auto, |emit, number| {
                let [all, first, held] =
                    [left, main.first, main.columns].map(|number| emit.int(number, Type::U32));
                let own_row = emit.binary(BinaryOp::Div, number, all);
                let column = emit.binary(BinaryOp::Rem, number, all);
                let behind = emit.binary(BinaryOp::Add, column, held);
                let is_before = emit.compare(CompareOp::Lt, column, first);
                let column = emit.select(is_before, column, behind);
                let (from, to) = self.place(emit, origin, (own_row, column));
                self.copy(emit, from, to);
            });
        });
    }

    /// Where the element of a row and a column is in the slice and in the section. Rows are counted along all dimensions but the last.
    fn place(
        &self,
        emit: &mut Emit<'_>,
        origin: Value,
        (row, column): (Value, Value),
    ) -> (Value, Value) {
        let counted = self.counted_in();
        let pitches = self.tile.section.pitches(self.tile.section.padding);
        let dims = &self.tile.section.dims;
        let (mut rest, mut from, mut to) = (row, origin, emit.int(0, Type::U32));
        for (position, (dim, pitch)) in dims.iter().zip(pitches).enumerate().rev() {
            let is_last = position + 1 == dims.len();
            let place = match position {
                _ if is_last => column,
                0 => rest,
                _ => {
                    let extent = emit.int(dim.extent, Type::U32);
                    let place = emit.binary(BinaryOp::Rem, rest, extent);
                    rest = emit.binary(BinaryOp::Div, rest, extent);
                    place
                }
            };
            let pitch = emit.int(pitch, Type::U32);
            let ahead = emit.binary(BinaryOp::Mul, place, pitch);
            to = emit.binary(BinaryOp::Add, to, ahead);
            let place = emit.cast(place, counted);
            let stride = emit.int(dim.stride, counted);
            let ahead = emit.binary(BinaryOp::Mul, place, stride);
            from = emit.binary(BinaryOp::Add, from, ahead);
        }
        (from, to)
    }

    /// Fills in the element that lies so many places of a row ahead of another one, which is the same for a line of threads.
    fn copy_along(&self, emit: &mut Emit<'_>, (from, ahead): (Value, Value), to: Value) {
        let row = self.tile.section.dims.last().expect("a row is a dimension");
        let counted = self.counted_in();
        let by_producer = self
            .producer
            .filter(|producer| producer.goes_along(row.stride));
        let by_number = |emit: &mut Emit<'_>| {
            let (ahead, stride) = (emit.cast(ahead, counted), emit.int(row.stride, counted));
            let ahead = emit.binary(BinaryOp::Mul, ahead, stride);
            let place = emit.binary(BinaryOp::Add, from, ahead);
            self.copy(emit, place, to);
        };
        let Some(producer) = by_producer.filter(|_| self.out.is_none()) else {
            return by_number(emit);
        };
        let set = |emit: &mut Emit<'_>, value: Value| {
            let to = self.tile.address(emit, to);
            emit.store(to, value);
        };
        producer.compute_along(emit, (from, ahead), set, by_number);
    }

    /// Copies the element of a number.
    fn copy_number(&self, emit: &mut Emit<'_>, origin: Value, number: Value) {
        let counted = self.counted_in();
        let pitches = self.tile.section.pitches(self.tile.section.padding);
        let (mut rest, mut from) = (number, origin);
        let mut to = emit.int(0, Type::U32);
        for (position, dim) in self.tile.section.dims.iter().enumerate().rev() {
            let place = match position {
                0 => rest,
                _ => {
                    let extent = emit.int(dim.extent, Type::U32);
                    let place = emit.binary(BinaryOp::Rem, rest, extent);
                    rest = emit.binary(BinaryOp::Div, rest, extent);
                    place
                }
            };
            let pitch = emit.int(pitches[position], Type::U32);
            let ahead = emit.binary(BinaryOp::Mul, place, pitch);
            to = emit.binary(BinaryOp::Add, to, ahead);
            let place = emit.cast(place, counted);
            let stride = emit.int(dim.stride, counted);
            let ahead = emit.binary(BinaryOp::Mul, place, stride);
            from = emit.binary(BinaryOp::Add, from, ahead);
        }
        let to = if self.tile.section.padding == 0 {
            number
        } else {
            to
        };
        self.copy(emit, from, to);
    }

    /// Fills in one element, if the slice has it.
    fn copy(&self, emit: &mut Emit<'_>, from: Value, to: Value) {
        if let Some(flags) = self.out {
            return flags.drain(emit, self.tile, (to, from));
        }
        let set = |emit: &mut Emit<'_>, value: Value| {
            let to = self.tile.address(emit, to);
            emit.store(to, value);
        };
        // Lanes that have no iteration read it.
        let otherwise = self
            .tile
            .section
            .is_padded
            .then_some(|emit: &mut Emit<'_>| {
                let zero = emit.value(InstData::Const(Constant::Zero), self.tile.element.ty);
                set(emit, zero);
            });
        if let Some(producer) = self.producer {
            return producer.compute(emit, from, set, otherwise);
        }
        let copy = |emit: &mut Emit<'_>| {
            let data = InstData::SliceIndex {
                slice: self.tile.section.slice,
                index: from,
                checked: false,
            };
            let element = emit.value(data, self.tile.element.in_slice);
            let value = emit.load(element, self.tile.element.ty);
            set(emit, value);
        };
        if self.tile.section.is_within {
            return copy(emit);
        }
        // What is below 0 is no number of the unsigned type that a slice has as its length.
        let unsigned = match self.tile.section.is_short {
            true => Type::U32,
            false => Type::U64,
        };
        let len = emit.len(self.tile.section.slice);
        let (from, len) = (emit.cast(from, unsigned), emit.cast(len, unsigned));
        let is_there = emit.compare(CompareOp::Lt, from, len);
        let then = emit.region(copy);
        match otherwise {
            Some(otherwise) => {
                let otherwise = emit.region(otherwise);
                emit.if_else(is_there, then, otherwise);
            }
            None => emit.if_(is_there, then),
        }
    }
}
