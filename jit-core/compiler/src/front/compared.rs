//! Comparisons as Rust has them: of numbers by the IR's own instructions, of what is made of parts by its parts.

use std::any::Any;
use std::cmp::Ordering;

use crate::ir::{CompareOp, Constant, Scalar, Type, TypeTable};
use crate::value::comparison::{Comparison, HostComparison};

use super::items::Taken;
use super::option::is_option;
use super::pool::CallFn;
use super::result::is_result;
use super::{Front, Operand};

/// What is said of structs that are one in the IR, of which one has a comparison of its own.
const SAME_NAME: &str = "there are two structs with this name and these fields, and one of them has a comparison with \
                         `#[device_fn]`; name them differently";

/// What is said of a comparison of the host's that kernels do not have.
fn by_hand(ty: &str, is_equality: bool) -> String {
    let name = if is_equality {
        "PartialEq"
    } else {
        "PartialOrd"
    };
    format!(
        "the `{name}` of `{ty}` is written by hand and compares something else than all fields in their order, which \
         kernels do; mark that `impl` with `#[device_fn]`, derive `{name}`, or write a method of another name"
    )
}

impl<'k> Front<'k> {
    /// A comparison: of options and results by whether they have values, and by these; of slices, arrays, vectors, tuples
    /// and structs part by part.
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
        let are_vectors = left.lanes().is_some() && left.lanes() == right.lanes();
        match op {
            CompareOp::Eq if is_option => self.equal_options(left, right),
            CompareOp::Eq if is_result => self.equal_results(left, right),
            CompareOp::Eq if have_elements => left.equal_elements(right),
            CompareOp::Eq if are_vectors => left.equal_lanes(right),
            CompareOp::Ne if is_option || is_result || have_elements || are_vectors => {
                self.not(self.compared(CompareOp::Eq, left, right))
            }
            _ => match self.fields_of(left) {
                Some(fields) => self.compared_structs(op, left.eager(), right.eager(), &fields),
                None => self.compare(op, left, right),
            },
        }
    }

    /// Whether something is compared by its parts: an option, a result, a slice, an array, a vector, a tuple or a struct.
    pub(super) fn has_parts(self, operand: Operand<'k>) -> bool {
        let ty = operand.ty();
        let is_struct = self
            .builder
            .with_types(|types| types.as_struct(ty).is_some());
        is_struct || operand.is_of_elements() || operand.lanes().is_some()
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

    /// What compares two structs in place of their fields, if anything does; an error where kernels do not have what
    /// the host compares by.
    fn own_comparison(
        self,
        is_equality: bool,
        left: Operand<'k>,
        right: Operand<'k>,
    ) -> Result<Option<CallFn>, String> {
        let ty = left.ty();
        if ty != right.ty() {
            return Ok(None);
        }
        let known: Vec<&'static Comparison> = self.builder.with_types(|types| {
            let facts = types.as_struct(ty).into_iter();
            let facts = facts.flat_map(|data| data.known.facts());
            facts
                .filter_map(|fact| (fact as &dyn Any).downcast_ref())
                .collect()
        });
        let own = |of: &&'static Comparison| match is_equality {
            true => of.equal,
            false => of.order,
        };
        let function = known.iter().find_map(own);
        if function.is_some() && known.len() > 1 {
            return Err(SAME_NAME.to_owned());
        }
        let by_fields = |host: &'static HostComparison| host.is_of_fields(is_equality);
        match function.is_some() || known.iter().flat_map(|of| of.host).all(by_fields) {
            true => Ok(function),
            false => Err(by_hand(&self.struct_name(ty), is_equality)),
        }
    }

    fn struct_name(self, ty: Type) -> String {
        let name = |types: &TypeTable| types.as_struct(ty).map(|data| data.name.clone());
        self.builder
            .with_types(|types| name(types))
            .unwrap_or_default()
    }

    /// A comparison of structs, by the function that their type has for it or by their fields.
    fn compared_structs(
        self,
        op: CompareOp,
        left: Operand<'k>,
        right: Operand<'k>,
        fields: &[String],
    ) -> Operand<'k> {
        let is_equality = matches!(op, CompareOp::Eq | CompareOp::Ne);
        match self.own_comparison(is_equality, left, right) {
            Ok(None) => self.compared_fields(op, left, right, fields),
            Ok(Some(call)) => self.call_comparison(op, call, left, right),
            Err(message) => left.unsupported(&message),
        }
    }

    /// A comparison by the function that a type has for it.
    fn call_comparison(
        self,
        op: CompareOp,
        call: CallFn,
        left: Operand<'k>,
        right: Operand<'k>,
    ) -> Operand<'k> {
        let result = call(self, &[], &[left.address(false), right.address(false)]);
        match op {
            CompareOp::Eq => result,
            CompareOp::Ne => self.not(result),
            CompareOp::Lt => self.is_order(result, &[Ordering::Less]),
            CompareOp::Gt => self.is_order(result, &[Ordering::Greater]),
            CompareOp::Le => self.is_order(result, &[Ordering::Less, Ordering::Equal]),
            CompareOp::Ge => self.is_order(result, &[Ordering::Greater, Ordering::Equal]),
        }
    }

    /// Whether an `Option<Ordering>` is one of these orders.
    fn is_order(self, result: Operand<'k>, orders: &[Ordering]) -> Operand<'k> {
        if result.is_recovered() {
            return result;
        }
        let value = result.some_value().read();
        let is = |&order: &Ordering| value.eq(self.builder.lit(Type::I8, order as i8));
        let none = self.builder.lit(Type::BOOL, false);
        let any = orders.iter().map(is).fold(none, |any, is| any | is);
        self.value(result.is_some().read() & any)
    }

    /// Whether neither of two fields is before the other, so that the next ones decide: by the order that they have,
    /// where that is not the one of their own fields.
    fn is_level(self, left: Operand<'k>, right: Operand<'k>) -> Operand<'k> {
        let (left, right) = (left.target(), right.target());
        let Some(fields) = self.fields_of(left) else {
            return self.compared(CompareOp::Eq, left, right);
        };
        let (left, right) = (left.eager(), right.eager());
        match self.own_comparison(false, left, right) {
            Ok(Some(call)) => {
                let order = call(self, &[], &[left.address(false), right.address(false)]);
                self.is_order(order, &[Ordering::Equal])
            }
            Ok(None) => {
                let level = |name: &String| self.is_level(left.field(name), right.field(name));
                let all = self.builder.lit(Type::BOOL, true);
                let all = (fields.iter()).fold(all, |all, name| all & level(name).read());
                self.value(all)
            }
            Err(message) => left.unsupported(&message),
        }
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
        let level = || self.is_level(a, b).read();
        let rest = self.compared_fields(op, left, right, rest).read();
        self.value(match op {
            CompareOp::Eq => here(op) & rest,
            CompareOp::Ne => here(op) | rest,
            CompareOp::Lt | CompareOp::Le => here(CompareOp::Lt) | level() & rest,
            CompareOp::Gt | CompareOp::Ge => here(CompareOp::Gt) | level() & rest,
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

    /// The type and the number of a vector's lanes, if this operand is one.
    fn lanes(self) -> Option<(Scalar, u8)> {
        let ty = self.ty();
        self.builder.with_types(|types| types.as_vector(ty))
    }

    /// Whether two vectors of one type have the same numbers in their lanes.
    fn equal_lanes(self, other: Operand<'k>) -> Operand<'k> {
        let (left, right) = (self.read(), other.read());
        let lanes = self.lanes().map_or(0, |(_, lanes)| lanes.into());
        let equal = |i: u32| left.element(i).eq(right.element(i));
        let all = self.builder.lit(Type::BOOL, true);
        let all = (0..lanes).fold(all, |all, i| all & equal(i));
        Front::new(self.builder).value(all)
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
