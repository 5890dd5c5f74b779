//! Conversions that may fail: of integers to others, and of slices to arrays. Where one fails the thread ends.

use crate::ir::{CompareOp, Type};

use super::items::Taken;
use super::{Front, Operand};

impl<'k> Front<'k> {
    /// An integer as one of another type, if that holds it.
    pub fn to_integer(self, value: Operand<'k>, ty: Type, message: &str) -> Operand<'k> {
        let value = value.target().eager();
        let converted = self.convert(ty, value).eager();
        let back = self.convert(value.ty(), converted);
        let is_negative = |of: Operand<'k>| self.compare(CompareOp::Lt, of, self.int(of.ty(), 0));
        let same_sign = self.compare(CompareOp::Eq, is_negative(value), is_negative(converted));
        let same = self.compare(CompareOp::Eq, back, value);
        self.builder.assert(self.and(same, || same_sign), message);
        converted
    }
}

impl<'k> Operand<'k> {
    /// The elements of a slice as an array, if they are as many.
    pub fn to_array(self, array: Type, message: &str) -> Operand<'k> {
        let front = Front::new(self.builder);
        let (copy, items) = (self.builder.local(array), self.items(Taken::Shared));
        let (copy, len) = (self.in_memory(copy), self.target().len());
        let same = front.compare(CompareOp::Eq, len, copy.len());
        self.builder.assert(same, message);
        let elements = copy.items(Taken::Mutable);
        front.for_each(elements.item_count(), &mut |index| {
            front.assign(elements.item(index).deref(), items.item(index).deref());
        });
        copy
    }
}
