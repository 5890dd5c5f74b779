//! What a `for` goes over but ranges, and patterns of elements.

use kiln_description::Op;

use super::super::Operand;
use super::super::items::{Counted, PartKind, Parts, Taken};
use super::Cursor;

impl<'k> Cursor<'_, '_, 'k> {
    pub(super) fn items(&mut self, op: Op) -> Operand<'k> {
        match op {
            Op::Items => {
                let taken = match self.code.number() {
                    0 => Taken::AsIs,
                    1 => Taken::Shared,
                    2 => Taken::Mutable,
                    _ => Taken::AsIterator,
                };
                self.eval().items(taken)
            }
            Op::ItemCount => self.eval().item_count(),
            Op::Item => {
                let source = self.eval();
                source.item(self.eval())
            }
            Op::CountBack => {
                let count = self.eval();
                count.count_back(self.eval())
            }
            Op::PartCount => self.parts().count(),
            Op::PartOf => {
                let parts = self.parts();
                parts.at(self.eval())
            }
            _ => {
                let front = self.front();
                let counts = self.list().into_iter();
                let least = counts.reduce(|a, b| front.least(a, b));
                least.unwrap_or_else(|| self.unfit())
            }
        }
    }

    /// What a pattern of elements looks at.
    pub(super) fn elements(&mut self, op: Op) -> Operand<'k> {
        match op {
            Op::HasElements => {
                let (more, count) = (self.code.flag(), self.code.number());
                self.eval().has_elements(count, more)
            }
            Op::BoundRest => {
                let (skipped, left) = (self.code.number(), self.code.number());
                self.eval().bound_rest(skipped, left)
            }
            _ => {
                let from_end = self.code.flag();
                if op == Op::ElementAt {
                    let number = self.code.number();
                    return self.eval().element_at(number, from_end);
                }
                let (copied, number) = (self.code.flag(), self.code.number());
                self.eval().bound_element(number, from_end, copied)
            }
        }
    }

    fn parts(&mut self) -> Parts<'k> {
        Parts {
            kind: match self.code.number() {
                0 => PartKind::Exact,
                1 => PartKind::Windows,
                _ => PartKind::Chunks,
            },
            slice: self.eval(),
            size: self.eval(),
        }
    }

    pub(super) fn for_items(&mut self) {
        let front = self.front();
        let reversed = self.code.flag();
        let unroll = self.unroll();
        let variable = self.code.number();
        let counted = Counted {
            end: self.eval(),
            start: self.option().map(Operand::eager),
            step: self.option().map(Operand::eager),
            reversed,
        };
        let region = self.region();
        // The body is described once, whatever the range becomes.
        front.for_items(counted, unroll, &mut |index| {
            self.body.set_local(variable, index);
            Cursor { ..region }.eval();
        });
    }
}
