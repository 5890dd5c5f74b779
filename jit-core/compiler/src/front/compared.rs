//! Comparisons as Rust has them: of numbers by the IR's own instructions, of what is made of parts by its parts.

use crate::ir::{CompareOp, Constant, Type};

use super::items::Taken;
use super::option::is_option;
use super::result::is_result;
use super::{Front, Operand};

impl<'k> Front<'k> {
    /// A comparison: of options and results by whether they have values, and by these; of slices, arrays, tuples and
    /// structs part by part.
    pub(super) fn compared(
        self,
        op: CompareOp,
        left: Operand<'k>,
        right: Operand<'k>,
    ) -> Operand<'k> {
        let (left, right) = (left.target(), right.target());
        let is_option = self.is_option(left);
        let is_result = self.is_result(left);
        let have_elements = left.is_of_elements() && right.is_of_elements();
        match op {
            CompareOp::Eq if is_option => self.equal_options(left, right),
            CompareOp::Eq if is_result => self.equal_results(left, right),
            CompareOp::Eq if have_elements => left.equal_elements(right),
            CompareOp::Ne if is_option || is_result || have_elements => {
                self.not(self.compared(CompareOp::Eq, left, right))
            }
            _ => match self.fields_of(left) {
                Some(fields) => self.compared_fields(op, left.eager(), right.eager(), &fields),
                None => self.compare(op, left, right),
            },
        }
    }

    /// `left < right`, of numbers and of what is made of them.
    pub fn is_less(self, left: Operand<'k>, right: Operand<'k>) -> Operand<'k> {
        self.compared(CompareOp::Lt, left, right)
    }

    /// `left == right`, of whatever kernels compare.
    pub fn is_equal(self, left: Operand<'k>, right: Operand<'k>) -> Operand<'k> {
        self.compared(CompareOp::Eq, left, right)
    }

    /// The names of the fields of a tuple or a struct that are compared one by one; `None` of what is none.
    fn fields_of(self, operand: Operand<'k>) -> Option<Vec<String>> {
        let ty = operand.ty();
        self.builder.with_types(|types| {
            let data = types.as_struct(ty)?;
            if is_option(types, ty) || is_result(types, ty) {
                return None;
            }
            Some(data.fields.iter().map(|(name, _)| name.clone()).collect())
        })
    }

    /// Tuples and structs from a field on: the first fields that differ decide, as in Rust, where
    /// `#[derive(PartialOrd)]` has the order of the declaration; of those that no order decides, none.
    fn compared_fields(
        self,
        op: CompareOp,
        left: Operand<'k>,
        right: Operand<'k>,
        fields: &[String],
    ) -> Operand<'k> {
        let Some((name, rest)) = fields.split_first() else {
            let holds = matches!(op, CompareOp::Eq | CompareOp::Le | CompareOp::Ge);
            return self.literal(Type::BOOL, Constant::Bool(holds));
        };
        let (a, b) = (left.field(name).eager(), right.field(name).eager());
        if rest.is_empty() {
            return self.compared(op, a, b);
        }
        let here = |op| self.compared(op, a, b).read();
        let rest = self.compared_fields(op, left, right, rest).read();
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
