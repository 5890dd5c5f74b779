//! Patterns of elements, `[a, b]` and `[first, .., last]`: of arrays, whose length decides before there is code, and of
//! slices, whose length is asked. What such a pattern looks at is there by its length, so nothing is checked.

use crate::ir::{ArrayLen, CompareOp, Constant, Type};

use super::operand::Kind;
use super::{Front, Operand};

impl<'k> Operand<'k> {
    /// Whether there are so many elements, or with `more` at least so many. An array has as many as its pattern says.
    pub(super) fn has_elements(self, count: u32, more: bool) -> Operand<'k> {
        let (b, front) = (self.builder, Front::new(self.builder));
        let of = self.target();
        if b.as_slice(of.ty()).is_none() {
            return front.literal(Type::BOOL, Constant::Bool(true));
        }
        let op = if more { CompareOp::Ge } else { CompareOp::Eq };
        let len = of.item_count();
        front.compare(op, len, front.int(Type::U64, count.into()))
    }

    /// The element of a number, from the start or before the end.
    pub fn element_at(self, number: u32, from_end: bool) -> Operand<'k> {
        let (b, of) = (self.builder, self.target());
        if let Kind::Value(array) = of.kind
            && let Some((_, ArrayLen::Known(len))) = b.as_array(of.ty())
        {
            let at = if from_end {
                len as u32 - 1 - number
            } else {
                number
            };
            return of.wrap(Kind::Value(array.element(at)));
        }
        let front = Front::new(b);
        let at = front.int(Type::U32, number.into());
        let at = match from_end {
            true => of.number_of_elements().count_back(at),
            false => at,
        };
        match of.kind {
            Kind::Place(place, _) if b.as_array(of.ty()).is_some() => {
                of.in_memory(place.at_known(at))
            }
            _ if b.as_slice(of.ty()).is_some() => of.in_memory(of.read().at_known(at)),
            _ if b.as_array(of.ty()).is_some() => of.spill(of.read()).element_at(number, from_end),
            _ => of.unsupported("a pattern of elements, `[a, b]`, is for arrays and slices"),
        }
    }

    /// [`Operand::element_at`] as a pattern binds it: of what is behind a reference, a reference, unless a slice is not
    /// behind one.
    pub(super) fn bound_element(self, number: u32, from_end: bool, copied: bool) -> Operand<'k> {
        let b = self.builder;
        let element = self.element_at(number, from_end);
        let is_behind = b.is_pointer(self.ty()) || !copied && b.as_slice(self.ty()).is_some();
        match element.kind {
            Kind::Place(..) if is_behind => element.address(true),
            _ => element,
        }
    }

    /// The elements between, as a pattern binds them: of an array that is a value an array, otherwise a slice.
    pub(super) fn bound_rest(self, skipped: u32, left: u32) -> Operand<'k> {
        let (b, front) = (self.builder, Front::new(self.builder));
        if let Some((_, ArrayLen::Known(len))) = b.as_array(self.ty()) {
            let rest = skipped..(len as u32).saturating_sub(left);
            let rest: Vec<_> = rest.map(|at| self.element_at(at, false)).collect();
            return front.array(&rest);
        }
        if b.as_array(self.ty()).is_some() {
            return self.unsupported("write `&` before an array whose rest is to have a name");
        }
        let whole = self.target().whole_slice(true);
        let count = whole.item_count();
        let all = front.int(Type::U64, i128::from(skipped + left));
        let start = front.int(Type::U64, skipped.into());
        let size = front.sub(front.convert(Type::U64, count), all);
        let part = b.known_part_of_slice(whole.read(), start.read(), size.read().cast(Type::U32));
        self.wrap(Kind::Value(part))
    }

    /// How many elements a slice or an array has: a literal, or a `u64`.
    fn number_of_elements(self) -> Operand<'k> {
        let b = self.builder;
        match (b.as_slice(self.ty()), b.as_array(self.ty())) {
            (None, Some((_, ArrayLen::Known(len)))) => Front::new(b).int(Type::U32, len.into()),
            _ => self.item_count(),
        }
    }
}
