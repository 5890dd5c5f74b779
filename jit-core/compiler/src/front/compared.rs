//! Comparisons as Rust has them: of numbers by the IR's own instructions, of what is made of parts by its parts.

use crate::ir::{CompareOp, Constant, Type};

use super::binding::tuple_parts;
use super::items::Taken;
use super::{Front, Operand};

impl<'k> Front<'k> {
    /// A comparison: of options by whether they have values, and by these; of slices, arrays and tuples part by part.
    pub(super) fn compared(
        self,
        op: CompareOp,
        left: Operand<'k>,
        right: Operand<'k>,
    ) -> Operand<'k> {
        let (left, right) = (left.target(), right.target());
        let is_option = self.is_option(left);
        let have_elements = left.is_of_elements() && right.is_of_elements();
        match op {
            CompareOp::Eq if is_option => self.equal_options(left, right),
            CompareOp::Eq if have_elements => left.equal_elements(right),
            CompareOp::Ne if is_option || have_elements => {
                self.not(self.compared(CompareOp::Eq, left, right))
            }
            _ => match self.parts_of_tuple(left) {
                Some(parts) => {
                    self.compared_tuples(op, left.eager(), right.eager(), 0..parts.len())
                }
                None => self.compare(op, left, right),
            },
        }
    }

    /// The types of the parts of a tuple; `None` of what is none.
    fn parts_of_tuple(self, operand: Operand<'k>) -> Option<Vec<Type>> {
        let ty = operand.ty();
        self.builder.with_types(|types| tuple_parts(types, ty))
    }

    /// Tuples from a field on: the first fields that differ decide, as in Rust; of those that no order decides, none.
    fn compared_tuples(
        self,
        op: CompareOp,
        left: Operand<'k>,
        right: Operand<'k>,
        fields: std::ops::Range<usize>,
    ) -> Operand<'k> {
        let name = fields.start.to_string();
        let (a, b) = (left.field(&name).eager(), right.field(&name).eager());
        let rest = fields.start + 1..fields.end;
        if rest.is_empty() {
            return self.compared(op, a, b);
        }
        let here = |op| self.compared(op, a, b).read();
        let rest = self.compared_tuples(op, left, right, rest).read();
        self.value(match op {
            CompareOp::Eq => here(op) & rest,
            CompareOp::Ne => here(op) | rest,
            CompareOp::Lt | CompareOp::Le => here(CompareOp::Lt) | here(CompareOp::Eq) & rest,
            CompareOp::Gt | CompareOp::Ge => here(CompareOp::Gt) | here(CompareOp::Eq) & rest,
        })
    }

    /// Whether two options are equal: both have no value, or both have one and these are equal.
    fn equal_options(self, left: Operand<'k>, right: Operand<'k>) -> Operand<'k> {
        let (left, right) = (left.eager(), right.eager());
        let (one, other) = (left.is_some().read(), right.is_some().read());
        let same = self.value(one.eq(other));
        self.and(same, || {
            let none = self.not(self.value(one));
            self.or(none, || {
                self.compared(CompareOp::Eq, left.some_value(), right.some_value())
            })
        })
    }
}

impl<'k> Operand<'k> {
    /// Whether this operand is a slice or an array.
    fn is_of_elements(self) -> bool {
        let b = self.builder;
        b.as_slice(self.ty()).is_some() || b.as_array(self.ty()).is_some()
    }

    /// Whether two slices or arrays have as many elements, and the same ones.
    fn equal_elements(self, other: Operand<'k>) -> Operand<'k> {
        let (b, front) = (self.builder, Front::new(self.builder));
        let (left, right) = (self.items(Taken::Shared), other.items(Taken::Shared));
        let (count, other_count) = (left.item_count(), right.item_count());
        let same = match (count.known_int(), other_count.known_int()) {
            (Some(a), Some(b)) => front.literal(Type::BOOL, Constant::Bool(a == b)),
            _ => front.compare(CompareOp::Eq, front.wide(count), front.wide(other_count)),
        };
        let equal = b.var("equal", same.read());
        b.if_(equal.get(), || {
            front.for_each(count, &mut |index| {
                let (a, c) = (left.item(index).deref(), right.item(index).deref());
                b.if_(front.compared(CompareOp::Ne, a, c), || {
                    equal.set(b.constant(Constant::Bool(false), Type::BOOL));
                    b.break_();
                });
            });
        });
        front.value(equal.get())
    }
}
