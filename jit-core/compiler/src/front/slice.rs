//! What methods of slices and arrays do: elements and parts that may not be there, and elements in place.
//!
//! What is borrowed of an array is of the variable itself where that has an address; `mutable` ones ask for it.

use crate::build::Place;
use crate::ir::{CompareOp, Constant, Type, Unroll};

use super::items::{Counted, Taken};
use super::{Front, Operand};

/// Which of the two ends of a slice.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum End {
    /// The element with index 0.
    First,
    /// The element before the length.
    Last,
}

impl<'k> Operand<'k> {
    /// `x.split_at(middle)`: both parts, which are there if the first is.
    pub fn split_at(self, middle: Operand<'k>, mutable: bool) -> Operand<'k> {
        let (whole, middle) = (self.whole_slice(mutable), middle.eager());
        let first = whole.part(None, Some(middle), false, mutable);
        let rest = whole.rest(middle, mutable);
        Front::new(self.builder).tuple(&[first, rest])
    }

    /// `x.split_at_checked(middle)`.
    pub fn split_at_checked(self, middle: Operand<'k>, mutable: bool) -> Operand<'k> {
        let front = Front::new(self.builder);
        let (whole, middle) = (self.whole_slice(mutable), middle.eager());
        front.some_if(front.le(middle, whole.len()), || {
            let zero = front.int(Type::U32, 0);
            let first = whole.known_part(zero, middle, mutable);
            front.tuple(&[first, whole.rest(middle, mutable)])
        })
    }

    /// `x.get(index)`.
    pub fn get(self, index: Operand<'k>, mutable: bool) -> Operand<'k> {
        let front = Front::new(self.builder);
        let (whole, index) = (self.whole_slice(mutable), index.eager());
        front.some_if(front.lt(index, whole.len()), || whole.known(index))
    }

    /// `x.first()` or `x.last()`.
    pub fn end(self, end: End, mutable: bool) -> Operand<'k> {
        let whole = self.whole_slice(mutable);
        whole.unless_empty(|| whole.known(whole.index_of(end)))
    }

    /// `x.split_first()` or `x.split_last()`.
    pub fn split_end(self, end: End, mutable: bool) -> Operand<'k> {
        let front = Front::new(self.builder);
        let whole = self.whole_slice(mutable);
        whole.unless_empty(|| {
            let element = whole.known(whole.index_of(end));
            let rest = match end {
                End::First => whole.rest(front.int(Type::U32, 1), mutable),
                End::Last => {
                    let zero = front.int(Type::U32, 0);
                    whole.known_part(zero, whole.index_of(End::Last), mutable)
                }
            };
            front.tuple(&[element, rest])
        })
    }

    /// `x.swap(i, j)`; both are looked for before one is assigned.
    pub fn swap(self, i: Operand<'k>, j: Operand<'k>) {
        let whole = self.whole_slice(true).read();
        let (i, j) = (i.eager(), j.eager());
        exchange(whole.at(i), whole.at(j));
    }

    /// `x.reverse()`.
    pub fn reverse(self) {
        let (front, items) = (Front::new(self.builder), self.items(Taken::Mutable));
        let count = items.item_count();
        let half = match count.known_int() {
            Some(n) => front.int(Type::U32, n / 2),
            None => front.value(count.read() >> 1u32),
        };
        front.for_each(half, &mut |index| {
            let other = items.item(count.count_back(index));
            exchange(items.item(index).place(), other.place());
        });
    }

    /// `x.fill(value)`.
    pub fn fill(self, value: Operand<'k>) {
        let (front, items, value) = (
            Front::new(self.builder),
            self.items(Taken::Mutable),
            value.eager(),
        );
        front.for_each(items.item_count(), &mut |index| {
            front.assign(items.item(index).deref(), value);
        });
    }

    /// `x.copy_from_slice(other)`, or another method of this name that copies.
    pub fn copy_from(self, other: Operand<'k>, method: &str) {
        let front = Front::new(self.builder);
        let (to, from) = (self.items(Taken::Mutable), other.items(Taken::Shared));
        let (len, other_len) = (self.target().len(), other.target().len());
        let message = format!("{method}: the slice that is copied is not as long as the other");
        match (len.known_int(), other_len.known_int()) {
            // rustc tells arrays of different lengths apart only where they are no slices.
            (Some(a), Some(b)) if a == b => {}
            _ => self
                .builder
                .assert_compared(CompareOp::Eq, other_len, len, &message),
        }
        front.for_each(to.item_count(), &mut |index| {
            front.assign(to.item(index).deref(), from.item(index).deref());
        });
    }

    /// `x.contains(value)`.
    pub fn contains(self, value: Operand<'k>) -> Operand<'k> {
        let (b, front) = (self.builder, Front::new(self.builder));
        let (items, value) = (self.items(Taken::Shared), value.target().eager());
        let found = b.var("found", b.constant(Constant::Bool(false), Type::BOOL));
        front.for_each(items.item_count(), &mut |index| {
            let element = items.item(index).deref();
            b.if_(front.compared(CompareOp::Eq, element, value), || {
                found.set(b.constant(Constant::Bool(true), Type::BOOL));
                b.break_();
            });
        });
        front.value(found.get())
    }

    /// `x.starts_with(other)`, `x.ends_with(other)`.
    pub fn has_at_end(self, end: End, other: Operand<'k>) -> Operand<'k> {
        let front = Front::new(self.builder);
        let (whole, other) = (self.whole_slice(false), other.whole_slice(false));
        let (len, count) = (whole.len().eager(), other.len().eager());
        front.and(front.le(count, len), || {
            let from = match end {
                End::First => front.int(Type::U32, 0),
                End::Last => front.sub(len, count),
            };
            front.is_equal(whole.known_part(from, count, false), other)
        })
    }

    /// `x.get(from..to)`: the part if it is there.
    pub(super) fn part_if_there(
        self,
        from: Option<Operand<'k>>,
        to: Option<Operand<'k>>,
        inclusive: bool,
        mutable: bool,
    ) -> Operand<'k> {
        let front = Front::new(self.builder);
        let whole = self.whole_slice(mutable);
        let from = from.unwrap_or_else(|| front.int(Type::U32, 0)).eager();
        let (len, one) = (whole.len().eager(), front.int(Type::U32, 1));
        let to = to.map(Operand::eager);
        // The end is looked at first: behind the last element there is nothing to add one to.
        let (ends, end) = match (to, inclusive) {
            (None, _) => (None, len),
            (Some(to), false) => (Some(front.le(to, len)), to),
            (Some(to), true) => (Some(front.lt(to, len)), front.add(to, one)),
        };
        let starts = || front.le(from, end);
        let is_there = match ends {
            Some(ends) => front.and(ends, starts),
            None => starts(),
        };
        front.some_if(is_there, || {
            whole.known_part(from, front.sub(end, from), mutable)
        })
    }

    /// `x.map(|v| ..)` of an array.
    pub fn map_array(self, f: impl Fn(&[Operand<'k>]) -> Operand<'k>) -> Operand<'k> {
        let front = Front::new(self.builder);
        let whole = self.spill(self.read());
        match whole.len().known_int() {
            Some(len) if len <= MAX_MAP => {
                let element = |i| f(&[whole.index(front.int(Type::U32, i)).eager()]).eager();
                front.array(&(0..len).map(element).collect::<Vec<_>>())
            }
            _ => self.unsupported(&format!(
                "`map` of an array of more than {MAX_MAP} elements, or of a length that is a const parameter, is a loop \
                 over its indices"
            )),
        }
    }

    /// The reference to an element that is there.
    fn known(self, index: Operand<'k>) -> Operand<'k> {
        let element = self.read().at_known(index);
        self.in_memory(element).address(true)
    }

    /// A part that is there.
    fn known_part(self, from: Operand<'k>, len: Operand<'k>, mutable: bool) -> Operand<'k> {
        let (b, whole) = (self.builder, self.read());
        let part = b.known_part_of_slice(whole, from.read(), len.read());
        self.borrowed(part, mutable)
    }

    /// What is behind an index that is not beyond the length.
    fn rest(self, from: Operand<'k>, mutable: bool) -> Operand<'k> {
        let front = Front::new(self.builder);
        self.known_part(from, front.sub(self.len(), from), mutable)
    }

    fn index_of(self, end: End) -> Operand<'k> {
        let front = Front::new(self.builder);
        match end {
            End::First => front.int(Type::U32, 0),
            End::Last => front.sub(self.len(), front.int(Type::U32, 1)),
        }
    }

    fn unless_empty(self, value: impl FnOnce() -> Operand<'k>) -> Operand<'k> {
        let front = Front::new(self.builder);
        let has_some = front.compare(CompareOp::Ne, self.len(), front.int(Type::U32, 0));
        front.some_if(has_some, value)
    }
}

/// The longest array that is mapped element by element.
const MAX_MAP: i128 = 256;

impl<'k> Front<'k> {
    /// A loop over the indices below a count.
    pub(super) fn for_each(self, count: Operand<'k>, body: &mut dyn FnMut(Operand<'k>)) {
        let counted = Counted {
            start: None,
            end: count,
            step: None,
            reversed: false,
        };
        self.for_items(counted, Unroll::Auto, body);
    }
}

/// Has two places hold what the other has held; they may be one.
pub(super) fn exchange<'k>(a: Place<'k>, b: Place<'k>) {
    let (first, second) = (a.get(), b.get());
    a.set(second);
    b.set(first);
}
