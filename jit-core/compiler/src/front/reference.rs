//! References, by themselves and as parts of tuples, views and arrays: which can stand for which, and what they
//! become where several meet.
//!
//! rustc has checked all of this and rejects what is wrong. The IR has more types than Rust: a reference
//! has an address space, which Rust does not tell apart, so one that meets others is generic; and a join
//! of branches is described before its last branch is known, so it takes the weakest of what has come.

use crate::build::{BuildErrorKind, IntoVal, KernelBuilder, Val};
use crate::ir::{Address, AddressSpace, ArrayLen, StructData, Type, TypeData, TypeTable};

use super::operand::Kind;
use super::{Front, Operand};

/// What a reference is, apart from what it refers to.
#[derive(Copy, Clone)]
struct Access {
    space: AddressSpace,
    mutable: bool,
}

impl Access {
    /// Whether one such reference can stand for another.
    fn stands_for(self, wanted: Access) -> bool {
        let space = wanted.space == self.space || wanted.space == AddressSpace::Generic;
        space && (self.mutable || !wanted.mutable)
    }

    /// What both can stand for.
    fn meet(self, other: Access) -> Access {
        Access {
            space: match self.space == other.space {
                true => self.space,
                false => AddressSpace::Generic,
            },
            mutable: self.mutable && other.mutable,
        }
    }
}

/// A reference type, and how it refers.
#[derive(Copy, Clone)]
enum Reference {
    To(Type, Access),
    Slice(Type, bool, Access),
}

impl Reference {
    fn of(types: &TypeTable, ty: Type) -> Option<Reference> {
        let Address {
            pointee,
            space,
            mutable,
        } = types.address(ty)?;
        let access = Access { space, mutable };
        Some(match types.as_slice(ty) {
            Some((_, wide)) => Reference::Slice(pointee, wide, access),
            None => Reference::To(pointee, access),
        })
    }

    /// The slice that a reference to an array becomes.
    fn as_slice(self, types: &TypeTable) -> Option<(Type, bool, Access)> {
        match self {
            Reference::Slice(element, wide, access) => Some((element, wide, access)),
            Reference::To(pointee, access) => {
                let (element, _) = types.as_array(pointee)?;
                Some((element, false, access))
            }
        }
    }

    fn intern(self, types: &mut TypeTable) -> Type {
        types.intern(match self {
            Reference::To(pointee, Access { space, mutable }) => TypeData::Pointer {
                pointee,
                space,
                mutable,
            },
            Reference::Slice(element, wide, Access { space, mutable }) => TypeData::Slice {
                element,
                space,
                mutable,
                wide,
            },
        })
    }

    /// This reference as `wanted` has it, which keeps what it refers to: in `wanted` that may be a
    /// parameter of another function, or left to rustc.
    fn as_wanted(self, types: &TypeTable, wanted: Reference) -> Option<Reference> {
        match (self, wanted) {
            (Reference::To(pointee, has), Reference::To(_, wants)) => has
                .stands_for(wants)
                .then_some(Reference::To(pointee, wants)),
            (_, Reference::Slice(.., wants)) => {
                let (element, wide, has) = self.as_slice(types)?;
                has.stands_for(wants)
                    .then_some(Reference::Slice(element, wide, wants))
            }
            _ => None,
        }
    }

    /// What both can stand for.
    fn meet(self, types: &TypeTable, other: Reference) -> Option<Reference> {
        if let (Reference::To(a, x), Reference::To(b, y)) = (self, other)
            && a == b
        {
            return Some(Reference::To(a, x.meet(y)));
        }
        let (a, wide, x) = self.as_slice(types)?;
        let (b, also_wide, y) = other.as_slice(types)?;
        (a == b && wide == also_wide).then(|| Reference::Slice(a, wide, x.meet(y)))
    }
}

/// What a type is made of, for types that can have references in them.
enum Parts {
    Reference(Reference),
    /// A struct: a tuple, or a view.
    Struct(StructData),
    Array(Type, ArrayLen),
    Other,
}

fn parts(types: &TypeTable, ty: Type) -> Parts {
    if let Some(reference) = Reference::of(types, ty) {
        return Parts::Reference(reference);
    }
    if let Some((element, len)) = types.as_array(ty) {
        return Parts::Array(element, len);
    }
    match types.as_struct(ty) {
        Some(data) => Parts::Struct(data.clone()),
        None => Parts::Other,
    }
}

/// A struct like `of` with its fields in other types; none if one is none.
fn with_fields(
    types: &mut TypeTable,
    of: &StructData,
    mut field: impl FnMut(&mut TypeTable, usize) -> Option<Type>,
) -> Option<Type> {
    let mut data = of.clone();
    for (i, (_, ty)) in data.fields.iter_mut().enumerate() {
        *ty = field(types, i)?;
    }
    match data == *of {
        true => None,
        false => Some(types.intern_struct(data)),
    }
}

/// Two types of which each part of the one belongs to a part of the other, combined reference by
/// reference; none if they do not fit. Types without references are `ours`.
fn combined(
    types: &mut TypeTable,
    ours: Type,
    theirs: Type,
    combine: &impl Fn(&TypeTable, Reference, Reference) -> Option<Reference>,
) -> Option<Type> {
    if ours == theirs {
        return Some(ours);
    }
    match (parts(types, ours), parts(types, theirs)) {
        (Parts::Reference(a), Parts::Reference(b)) => Some(combine(types, a, b)?.intern(types)),
        (Parts::Struct(a), Parts::Struct(b)) if a.fields.len() == b.fields.len() => {
            let mut fits = true;
            let made = with_fields(types, &a, |types, i| {
                let field = combined(types, a.fields[i].1, b.fields[i].1, combine);
                fits &= field.is_some();
                field
            });
            fits.then(|| made.unwrap_or(ours))
        }
        (Parts::Array(a, len), Parts::Array(b, _)) => {
            let element = combined(types, a, b, combine)?;
            Some(types.intern(TypeData::Array { element, len }))
        }
        (Parts::Reference(_), _) | (_, Parts::Reference(_)) => None,
        _ => Some(ours),
    }
}

/// What values of two types become where they meet.
fn meet(types: &mut TypeTable, a: Type, b: Type) -> Option<Type> {
    combined(types, a, b, &|types, a, b| a.meet(types, b))
}

/// A type with all its references in the generic space.
fn generic(types: &mut TypeTable, ty: Type) -> Type {
    match parts(types, ty) {
        Parts::Reference(_) => types.in_space(ty, AddressSpace::Generic).unwrap_or(ty),
        Parts::Struct(tuple) => with_fields(types, &tuple, |types, i| {
            Some(generic(types, tuple.fields[i].1))
        })
        .unwrap_or(ty),
        Parts::Array(element, len) => {
            let element = generic(types, element);
            types.intern(TypeData::Array { element, len })
        }
        Parts::Other => ty,
    }
}

impl<'k> Front<'k> {
    /// A value with its references as another type has them, where rustc lets them stand for those:
    /// `&mut` for `&`, an array for a slice.
    pub(super) fn coerce(self, value: Operand<'k>, wanted: Type) -> Operand<'k> {
        let b = self.builder;
        if value.ty() == wanted || !b.has_references(wanted) {
            return value;
        }
        Operand::new(b, Kind::Value(b.fitted(value.read(), wanted)))
    }
}

impl<'k> Front<'k> {
    /// What a reference type refers to; `None` of another type.
    pub fn referent(self, reference: Type) -> Option<Type> {
        let target = |types: &mut TypeTable| Some(types.as_pointer(reference)?.0);
        self.builder.with_types(target)
    }

    /// A reference as an argument of type `wanted`, which may be into any memory.
    pub fn passed(self, reference: Val<'k>, wanted: Type) -> Val<'k> {
        self.builder.fitted(reference, wanted)
    }
}

impl KernelBuilder {
    /// Whether values of a type are references.
    pub(super) fn is_reference(&self, ty: Type) -> bool {
        self.with_types(|types| Reference::of(types, ty).is_some())
    }

    fn has_references(&self, ty: Type) -> bool {
        self.with_types(|types| types.has_references(ty))
    }

    /// What `&place` is: a shared reference, whatever the place is.
    pub(super) fn shared_reference<'k>(&'k self, value: Val<'k>) -> Val<'k> {
        let shared = self.with_types(|types| {
            let mut reference = Reference::of(types, value.ty())?;
            let (Reference::To(_, access) | Reference::Slice(.., access)) = &mut reference;
            access.mutable = false;
            Some(reference.intern(types))
        });
        match shared {
            Some(ty) => self.converted(value, ty),
            None => value,
        }
    }

    /// A value that others may take the place of: its references may then be into other memory.
    pub(super) fn generic<'k>(&'k self, value: Val<'k>) -> Val<'k> {
        if value.ty() == Type::UNIT || !self.has_references(value.ty()) {
            return value;
        }
        let ty = self.with_types(|types| generic(types, value.ty()));
        self.converted(value, ty)
    }

    /// Values as the elements of one array.
    pub(super) fn as_one_type<'k>(&'k self, values: Vec<Val<'k>>) -> Vec<Val<'k>> {
        let types = values.iter().map(|value| value.ty());
        let Some(ty) = types.map(Some).reduce(|a, b| {
            let (a, b) = (a?, b?);
            self.with_types(|types| meet(types, a, b))
        }) else {
            return values;
        };
        match ty {
            Some(ty) => values.into_iter().map(|v| self.converted(v, ty)).collect(),
            None => values,
        }
    }

    /// A value for a place of a type: references become what the place wants.
    pub(super) fn fitted<'k>(&'k self, value: Val<'k>, wanted: Type) -> Val<'k> {
        if value.ty() == wanted || value.ty() == Type::UNIT || !self.has_references(wanted) {
            return value;
        }
        let target = self.with_types(|types| {
            combined(types, value.ty(), wanted, &|types, a, b| {
                a.as_wanted(types, b)
            })
        });
        match target {
            Some(target) => self.converted(value, target),
            None => {
                let kind = BuildErrorKind::Unsupported(format!(
                    "a `{}` cannot stand for a `{}`",
                    self.type_name(value.ty()),
                    self.type_name(wanted)
                ));
                self.error_about(&[value], kind, wanted)
            }
        }
    }

    /// A value as one of a type that [`combined`] or [`generic`] has made of its own.
    fn converted<'k>(&'k self, value: Val<'k>, target: Type) -> Val<'k> {
        if value.ty() == target {
            return value;
        }
        let kind = |ty| self.with_types(|types| parts(types, ty));
        match (kind(value.ty()), kind(target)) {
            (Parts::Reference(Reference::To(..)), Parts::Reference(Reference::Slice(..))) => {
                let slice = self.slice_of_array(value);
                self.converted(slice, target)
            }
            (Parts::Reference(_), Parts::Reference(_)) => self.space_cast(value, target),
            (Parts::Struct(_), Parts::Struct(tuple)) => {
                let fields = tuple.fields.iter();
                let fields = fields.map(|(name, ty)| self.converted(value.field(name), *ty));
                self.construct(target, &fields.collect::<Vec<_>>())
            }
            (Parts::Array(..), Parts::Array(element, ArrayLen::Known(len))) => {
                let elements = (0..len as u32).map(|i| self.converted(value.element(i), element));
                self.construct(target, &elements.collect::<Vec<_>>())
            }
            _ => value,
        }
    }

    /// Assigns a slot, which has its type from what is assigned to it, or from its declaration.
    pub(super) fn set_slot<'k>(&'k self, slot: usize, value: Operand<'k>) {
        if value.ty() == Type::UNIT {
            return;
        }
        let declared = self.slot(slot).map(crate::build::Var::ty);
        let value = self.generic(value.into_val(self, declared));
        let Some(var) = self.slot(slot) else {
            self.fill_slot(slot, value.ty());
            return self.assign_slot(slot, value);
        };
        if value.ty() == var.ty() {
            return self.assign_slot(slot, value);
        }
        let joined = match self.is_declared(slot) {
            true => None,
            false => self.with_types(|types| meet(types, var.ty(), value.ty())),
        };
        let joined = joined.unwrap_or(var.ty());
        if joined != var.ty() {
            self.weaken_slot(slot, joined, |value| self.converted(value, joined));
        }
        self.assign_slot(slot, self.fitted(value, joined));
    }
}
