//! What a `for` goes over but ranges: the elements of slices and arrays, and parts of slices.
//!
//! A source is a slice, a reference to an array, or an array in memory of its own, whose elements are values. Its
//! elements are counted from 0 to its length, which stays the same, so they are taken without checks. Lengths of
//! slices are counted in 64 bits: all elements are visited, however many there are. A range in steps that a function
//! gives is a source, too, whose elements are the indices themselves.

use crate::ir::{ArrayLen, BinaryOp, CompareOp, InstData, Type, TypeTable, Unroll};

use super::operand::Kind;
use super::range::Range;
use super::{Front, Operand};

/// How a `for` comes to the elements of something.
#[derive(Copy, Clone, PartialEq, Eq)]
pub(super) enum Taken {
    /// The elements of an array, references to those of a reference, by `for v in x`.
    AsIs,
    /// By reference, by `x.iter()`.
    Shared,
    /// By mutable reference, by `x.iter_mut()`.
    Mutable,
    /// What an array or a reference is, as an iterator, by `x.into_iter()`.
    AsIterator,
}

/// Where the parts of a slice begin and end.
#[derive(Copy, Clone, PartialEq, Eq)]
pub(super) enum PartKind {
    /// One where another ends; what is left is in none.
    Exact,
    /// One at each element.
    Windows,
    /// One where another ends; the last may be shorter.
    Chunks,
}

/// Parts of a slice, by their size.
#[derive(Copy, Clone)]
pub(super) struct Parts<'k> {
    pub(super) kind: PartKind,
    pub(super) slice: Operand<'k>,
    pub(super) size: Operand<'k>,
}

/// The elements that a `for` goes over.
pub(super) struct Counted<'k> {
    pub(super) start: Option<Operand<'k>>,
    pub(super) end: Operand<'k>,
    pub(super) step: Option<Operand<'k>>,
    pub(super) reversed: bool,
}

impl<'k> Operand<'k> {
    /// The source of elements that this is.
    pub(super) fn items(self, taken: Taken) -> Operand<'k> {
        if let Kind::Steps(_) = self.kind {
            return match taken {
                Taken::AsIs => self,
                Taken::Shared | Taken::Mutable | Taken::AsIterator => self.unsupported(
                    "a range in steps is what a `for` goes over as it is: `for i in grid_stride(n)`",
                ),
            };
        }
        let target = match taken {
            Taken::AsIs | Taken::AsIterator => self,
            Taken::Shared | Taken::Mutable => self.target(),
        };
        let (b, ty) = (self.builder, target.ty());
        let pointee = b.with_types(|types| types.as_pointer(ty).map(|(pointee, ..)| pointee));
        if b.as_array(ty).is_some() {
            return match taken {
                Taken::AsIs | Taken::AsIterator => self.spill(self.read()),
                Taken::Shared | Taken::Mutable => target.address(taken == Taken::Mutable),
            };
        }
        if b.as_slice(ty).is_some() {
            return target.borrowed(target.read(), taken != Taken::Shared);
        }
        match pointee {
            Some(array) if b.as_array(array).is_some() => target.wrap(Kind::Value(target.read())),
            _ => self.unsupported("a `for` of a kernel goes over ranges, slices and arrays"),
        }
    }

    /// The number of elements of a source: a literal, or a `u64`; of a range in steps itself.
    pub(super) fn item_count(self) -> Operand<'k> {
        let b = self.builder;
        if let Kind::Steps(_) = self.kind {
            return self;
        }
        if b.as_slice(self.ty()).is_some() {
            return self.len().whole_len().cast(Type::U64);
        }
        match b.as_array(self.array_type()) {
            Some((_, ArrayLen::Param(param))) => {
                let len = b.emit(InstData::ConstParam(param), Type::U64);
                self.wrap(Kind::Value(len))
            }
            Some((_, ArrayLen::Known(_))) => self.len(),
            None => Front::new(b).int(Type::U32, 0),
        }
    }

    /// The array that a source is, or refers to.
    fn array_type(self) -> Type {
        let types =
            |types: &mut TypeTable| types.as_pointer(self.ty()).map(|(pointee, ..)| pointee);
        let pointee = self.builder.with_types(types);
        pointee.unwrap_or(self.ty())
    }

    /// The index that is as far from the end of this many as `index` is from the start.
    pub(super) fn count_back(self, index: Operand<'k>) -> Operand<'k> {
        let (front, ty) = (Front::new(self.builder), index.ty());
        let count = match self.known_int() {
            Some(n) => front.int(ty, n),
            None => self.cast(ty),
        };
        front.sub(front.sub(count, index), front.int(ty, 1))
    }

    /// The element of a source with an index that is below its count.
    pub(super) fn item(self, index: Operand<'k>) -> Operand<'k> {
        let b = self.builder;
        let element = match self.kind {
            Kind::Place(place, _) => return self.in_memory(place.at_known(index)),
            Kind::Value(value) if b.is_pointer(value.ty()) => value.referent().at_known(index),
            Kind::Value(value) if b.as_slice(value.ty()).is_some() => value.at_known(index),
            Kind::Steps(_) => return index,
            // What is no source was refused.
            _ => return self,
        };
        self.in_memory(element).address(true)
    }
}

impl<'k> Parts<'k> {
    /// How many there are: a `u64`.
    pub(super) fn count(self) -> Operand<'k> {
        let b = self.slice.builder;
        let front = Front::new(b);
        if self.size.known_int().is_none_or(|size| size == 0) {
            let what = match self.kind {
                PartKind::Windows => "window",
                PartKind::Exact | PartKind::Chunks => "chunk",
            };
            let zero = front.int(Type::U32, 0);
            let holds = front.compare(CompareOp::Ne, self.size, zero);
            b.assert(holds, &format!("{what} size must be non-zero"));
        }
        let (len, size) = (self.slice.item_count(), self.size.cast(Type::U64));
        match self.kind {
            PartKind::Windows => {}
            PartKind::Exact => return front.binary(BinaryOp::Div, len, size),
            PartKind::Chunks => {
                let last = front.sub(size, front.int(Type::U64, 1));
                return front.binary(BinaryOp::Div, front.add(len, last), size);
            }
        }
        let count = front.sub(front.add(len, front.int(Type::U64, 1)), size);
        let none = front.int(Type::U64, 0);
        let is_long = front.ge(len, size).read();
        front.value(is_long.select(count, none))
    }

    /// The one with an index that is below their count.
    pub(super) fn at(self, index: Operand<'k>) -> Operand<'k> {
        let b = self.slice.builder;
        let index = index.cast(Type::U64);
        let front = Front::new(b);
        let size = self.size.cast(Type::U64);
        let start = match self.kind {
            PartKind::Windows => index,
            PartKind::Exact | PartKind::Chunks => front.binary(BinaryOp::Mul, index, size),
        };
        let size = match self.kind {
            PartKind::Chunks => {
                let left = front.sub(self.slice.item_count(), start);
                front.binary(BinaryOp::Min, left, size)
            }
            PartKind::Windows | PartKind::Exact => self.size,
        };
        let size = size.read().cast(Type::U32);
        let part = b.known_part_of_slice(self.slice.read(), start.read(), size);
        self.slice.wrap(Kind::Value(part))
    }
}

impl<'k> Front<'k> {
    /// The least of two counts, as a literal, or a `u64`.
    pub(super) fn least(self, a: Operand<'k>, b: Operand<'k>) -> Operand<'k> {
        if let (Kind::Steps(_), _) | (_, Kind::Steps(_)) = (a.kind, b.kind) {
            let message = "a range in steps has no `zip`; write `for i in grid_stride(n)`, and `x[i]` in the body";
            return self.refuse(message);
        }
        match (a.known_int(), b.known_int()) {
            (Some(x), Some(y)) => self.int(Type::U32, x.min(y)),
            _ => self.binary(BinaryOp::Min, self.wide(a), self.wide(b)),
        }
    }

    pub(super) fn wide(self, count: Operand<'k>) -> Operand<'k> {
        match count.known_int() {
            Some(n) => self.int(Type::U64, n),
            None => count.cast(Type::U64),
        }
    }

    /// `for` over elements by their indices.
    pub(super) fn for_items(
        self,
        counted: Counted<'k>,
        unroll: Unroll,
        body: &mut dyn FnMut(Operand<'k>),
    ) {
        let Counted {
            start,
            end,
            step,
            reversed,
        } = counted;
        if let Kind::Steps(steps) = end.kind {
            let range = Range {
                start: self.value(steps.start),
                end: self.value(steps.end),
                inclusive: false,
                step: Some(self.value(steps.step)),
                reversed: false,
            };
            return self.for_(range, unroll, body);
        }
        let is_known = end.known_int().is_some() && start.is_none_or(|s| s.known_int().is_some());
        let like = |n: Operand<'k>| match is_known {
            true => self.int(Type::U32, n.known_int().unwrap_or(0)),
            false => self.wide(n),
        };
        let range = Range {
            start: start.map_or_else(|| like(self.int(Type::U32, 0)), like),
            end: like(end),
            inclusive: false,
            step,
            reversed,
        };
        self.for_(range, unroll, body);
    }
}
