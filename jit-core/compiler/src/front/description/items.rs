//! What a `for` goes over but ranges.

use kiln_description::Op;

use super::super::Operand;
use super::super::items::{Counted, Parts, Taken};
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

    fn parts(&mut self) -> Parts<'k> {
        Parts {
            windows: self.code.flag(),
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
