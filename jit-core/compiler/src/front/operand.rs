//! What an expression of a kernel is while it is described, and what can be done with it.

use crate::build::{BuildErrorKind, IntoVal, KernelBuilder, PartBounds, Place, Val, Var};
use crate::ir::{
    ArrayLen, BinaryOp, CompareOp, Constant, InstData, Location, Type, TypeData, UnaryOp,
};

use super::Front;

/// The fields of something that is computed as far as it is asked for: by a field's name, its value.
pub type Fields = for<'k> fn(&'k KernelBuilder, &str) -> Option<Val<'k>>;

/// An expression of a kernel.
#[derive(Copy, Clone)]
pub struct Operand<'k> {
    pub(super) builder: &'k KernelBuilder,
    pub(super) kind: Kind<'k>,
}

/// What an [`Operand`] is.
#[derive(Copy, Clone)]
pub(super) enum Kind<'k> {
    /// Nothing: `()`, or what never comes about.
    Unit,
    /// A value.
    Value(Val<'k>),
    /// A mutable local variable.
    Var(Var<'k>),
    /// One value in memory, and where the kernel names it: reading it is said to happen there, not
    /// where its value is used.
    Place(Place<'k>, Location),
    /// A literal or a constant, which becomes an instruction where it is used.
    Literal(Constant, Type),
    /// A struct whose fields are computed as they are asked for.
    Lazy(Fields),
    /// A variable that has its type from what is first assigned to it, by number.
    Slot(usize),
    /// Indices in steps, which a `for` goes over.
    Steps(Steps<'k>),
}

/// Indices from a first one on, each so much behind the one before, below an end.
#[derive(Copy, Clone)]
pub(super) struct Steps<'k> {
    pub(super) start: Val<'k>,
    pub(super) end: Val<'k>,
    pub(super) step: Val<'k>,
}

impl<'k> Operand<'k> {
    pub(super) fn new(builder: &'k KernelBuilder, kind: Kind<'k>) -> Self {
        Operand { builder, kind }
    }

    /// The operand's type; unit for what is none.
    pub fn ty(self) -> Type {
        match self.kind {
            Kind::Unit | Kind::Lazy(_) | Kind::Steps(_) => Type::UNIT,
            Kind::Value(value) => value.ty(),
            Kind::Var(var) => var.ty(),
            Kind::Place(place, _) => place.ty(),
            Kind::Literal(_, ty) => ty,
            Kind::Slot(slot) => self.builder.slot(slot).map_or(Type::UNIT, Var::ty),
        }
    }

    /// The integer it is, for a literal.
    pub fn known_int(self) -> Option<i128> {
        match self.kind {
            Kind::Literal(Constant::Int(n), _) => Some(n),
            _ => None,
        }
    }

    /// The bool it is, for a constant.
    pub(super) fn known_bool(self) -> Option<bool> {
        match self.kind {
            Kind::Literal(Constant::Bool(known), _) => Some(known),
            _ => None,
        }
    }

    /// The operand's value, read here.
    pub fn read(self) -> Val<'k> {
        self.into_val(self.builder, None)
    }

    /// The operand as it is here, whatever is assigned later. Literals stay literals.
    pub fn eager(self) -> Operand<'k> {
        match self.kind {
            Kind::Var(_) | Kind::Place(..) | Kind::Slot(_) => self.wrap(Kind::Value(self.read())),
            _ => self,
        }
    }

    pub(super) fn wrap(self, kind: Kind<'k>) -> Operand<'k> {
        Operand::new(self.builder, kind)
    }

    /// A value in memory that is named here.
    pub(super) fn in_memory(self, place: Place<'k>) -> Operand<'k> {
        self.wrap(Kind::Place(place, self.builder.here()))
    }

    /// The operand where the user names it.
    pub(super) fn named(self) -> Operand<'k> {
        match self.kind {
            Kind::Place(place, _) => self.in_memory(place),
            _ => self,
        }
    }

    /// Notes that this cannot be done, and goes on with a zero.
    pub(super) fn unsupported(self, message: &str) -> Operand<'k> {
        let kind = BuildErrorKind::Unsupported(message.to_owned());
        let value = match self.is_recovered() {
            true => self.builder.recovered(Type::I32),
            false => self.builder.error(kind, Type::I32),
        };
        self.wrap(Kind::Value(value))
    }

    /// Whether an error that was noted is why it is what it is.
    pub(super) fn is_recovered(self) -> bool {
        let b = self.builder;
        match self.kind {
            Kind::Value(value) => b.is_recovered(value),
            Kind::Var(var) => b.is_recovered_var(var.id()),
            Kind::Place(place, _) => b.is_recovered(place.address()),
            Kind::Slot(slot) => b.slot(slot).is_some_and(|var| b.is_recovered_var(var.id())),
            Kind::Unit | Kind::Literal(..) | Kind::Lazy(_) | Kind::Steps(_) => false,
        }
    }

    /// The field with this name, of a struct, or its number, of a tuple.
    pub(crate) fn field(self, name: &str) -> Operand<'k> {
        let b = self.builder;
        match self.kind {
            Kind::Lazy(fields) => match b.at_location(b.here(), || fields(b, name)) {
                Some(value) => self.wrap(Kind::Value(value)),
                None => self.unsupported(&format!("there is no field `{name}`")),
            },
            Kind::Place(place, _) => match b.type_data(place.ty()) {
                TypeData::Struct(_) => self.in_memory(place.field(name)),
                TypeData::Vector { .. } => match lane_of(name) {
                    Some(lane) => self.in_memory(place.at(lane)),
                    None => self.named(),
                },
                TypeData::Pointer { .. } => self.deref().field(name),
                _ => self.eager().field(name),
            },
            _ => {
                let value = self.read();
                match b.type_data(value.ty()) {
                    TypeData::Pointer { .. } => self.wrap(Kind::Value(value)).deref().field(name),
                    TypeData::Vector { .. } => match lane_of(name) {
                        Some(lane) => self.wrap(Kind::Value(value.element(lane))),
                        // The lanes of `F32x4` and its kind are its field 0.
                        None => self.wrap(Kind::Value(value)),
                    },
                    _ => self.wrap(Kind::Value(value.field(name))),
                }
            }
        }
    }

    /// The field that a pattern binds: of what is behind a reference, a reference to it.
    pub(super) fn bound_field(self, name: &str) -> Operand<'k> {
        let field = self.field(name);
        match field.kind {
            Kind::Place(..) if self.builder.is_pointer(self.ty()) => field.address(true),
            _ => field,
        }
    }

    /// The element with this index, of a slice or an array.
    pub(crate) fn index(self, index: Operand<'k>) -> Operand<'k> {
        let b = self.builder;
        if let Kind::Place(place, _) = self.kind {
            match b.type_data(place.ty()) {
                TypeData::Array { .. } | TypeData::Vector { .. } => {
                    return self.in_memory(place.at(index));
                }
                TypeData::Pointer { .. } => return self.deref().index(index),
                _ => {}
            }
        }
        let value = self.read();
        match b.type_data(value.ty()) {
            TypeData::Pointer { .. } => self.wrap(Kind::Value(value)).deref().index(index),
            TypeData::Array { len, .. } => match (index.known_int(), len) {
                (Some(n), ArrayLen::Known(len)) if (0..i128::from(len)).contains(&n) => {
                    self.wrap(Kind::Value(value.element(n as u32)))
                }
                _ => self.spill(value).index(index),
            },
            TypeData::Vector { lanes, .. } => match index.known_int() {
                Some(n) if (0..i128::from(lanes)).contains(&n) => {
                    self.wrap(Kind::Value(value.element(n as u32)))
                }
                _ => self.spill(value).index(index),
            },
            _ => self.in_memory(value.at(index)),
        }
    }

    /// A copy of `value` in memory of the thread.
    pub(super) fn spill(self, value: Val<'k>) -> Operand<'k> {
        let place = self.builder.local(value.ty());
        place.set(value);
        self.in_memory(place)
    }

    /// `*self`.
    pub(crate) fn deref(self) -> Operand<'k> {
        let value = self.read();
        match self.builder.type_data(value.ty()) {
            TypeData::Pointer { .. } => self.in_memory(value.referent()),
            // A slice is its own reference.
            TypeData::Slice { .. } => self.wrap(Kind::Value(value)),
            _ => self.unsupported("`*` takes a reference"),
        }
    }

    /// What a method or an operator is applied to: behind a reference, what it refers to.
    pub fn target(self) -> Operand<'k> {
        match self.builder.is_pointer(self.ty()) {
            true => self.deref().target(),
            false => self,
        }
    }

    /// `&self` or `&mut self`. What has no address is copied to memory for it.
    pub fn address(self, mutable: bool) -> Operand<'k> {
        let b = self.builder;
        let is_slice = |ty| b.as_slice(ty).is_some();
        let reference = match self.kind {
            // A slice is its own reference.
            Kind::Place(place, _) if is_slice(place.ty()) => self.read(),
            Kind::Value(value) if is_slice(value.ty()) => value,
            Kind::Place(place, _) => place.address(),
            Kind::Var(_) | Kind::Slot(_) if mutable => {
                return self.unsupported(
                    "this variable has no address; borrow the whole variable by name",
                );
            }
            _ => {
                let place = b.local(self.ty());
                place.set(self.read());
                place.address()
            }
        };
        self.borrowed(reference, mutable)
    }

    /// A reference to all or a part of what this is.
    pub(super) fn borrowed(self, reference: Val<'k>, mutable: bool) -> Operand<'k> {
        self.wrap(Kind::Value(match mutable {
            true => reference,
            false => self.builder.shared_reference(reference),
        }))
    }

    /// `&self[..]` or `&mut self[..]`, of a slice or array.
    pub fn whole_slice(self, mutable: bool) -> Operand<'k> {
        let (b, ty) = (self.builder, self.ty());
        let whole = match b.with_types(|types| types.is_reference(ty)) {
            true => self.read(),
            false => self.address(mutable).read(),
        };
        let whole = match b.is_pointer(whole.ty()) {
            true => b.slice_of_array(whole),
            false => whole,
        };
        self.borrowed(whole, mutable)
    }

    /// `self[from..to]` of a slice or array, which is a slice.
    pub(crate) fn part(
        self,
        from: Option<Operand<'k>>,
        to: Option<Operand<'k>>,
        inclusive: bool,
        mutable: bool,
    ) -> Operand<'k> {
        let b = self.builder;
        let whole = self.whole_slice(mutable).read();
        let bounds = PartBounds {
            from: from.map(|from| from.read().cast(Type::U32)),
            to: to.map(|to| to.read().cast(Type::U32)),
            inclusive,
        };
        self.wrap(Kind::Value(b.part_of_slice(whole, bounds)))
    }

    /// The element behind `&mut x[i]`, for functions that take one: atomics.
    pub fn place(self) -> Place<'k> {
        match self.deref().kind {
            Kind::Place(place, _) => place,
            _ => {
                self.unsupported("this takes `&mut` of an element");
                self.builder.local(Type::I32)
            }
        }
    }

    /// The number of elements of a slice or array, a `usize`.
    pub fn len(self) -> Operand<'k> {
        let b = self.builder;
        let (ty, value) = match self.kind {
            Kind::Place(place, _) => (place.ty(), None),
            _ => {
                let value = self.read();
                (value.ty(), Some(value))
            }
        };
        match (b.type_data(ty), value) {
            (TypeData::Array { len, .. }, _) => b.array_len(self, len),
            (TypeData::Pointer { .. }, _) => self.deref().len(),
            (TypeData::Slice { .. }, Some(value)) => self.wrap(Kind::Value(value.len())),
            (TypeData::Slice { .. }, None) => self.eager().len(),
            _ => self.unsupported("`len` is for slices and arrays"),
        }
    }

    /// A length that was just taken, in as many bits as it has.
    pub(super) fn whole_len(self) -> Operand<'k> {
        match self.kind {
            Kind::Value(value) => self.wrap(Kind::Value(self.builder.whole_len(value))),
            _ => self,
        }
    }

    /// `self as` a scalar type.
    pub(crate) fn cast(self, ty: Type) -> Operand<'k> {
        if ty == self.ty() {
            return self;
        }
        self.wrap(Kind::Value(self.read().cast(ty)))
    }
}

/// The lane that a field of a vector is, `v.x`.
fn lane_of(field: &str) -> Option<u32> {
    let lanes = ["x", "y", "z", "w"];
    let lane = lanes.into_iter().position(|lane| lane == field)?;
    Some(lane as u32)
}

impl KernelBuilder {
    fn array_len<'k>(&'k self, array: Operand<'k>, len: ArrayLen) -> Operand<'k> {
        match len {
            ArrayLen::Known(n) => array.wrap(Kind::Literal(Constant::Int(n.into()), Type::U32)),
            ArrayLen::Param(param) => {
                let len = self.emit(InstData::ConstParam(param), Type::U64);
                array.wrap(Kind::Value(len.cast(Type::U32)))
            }
        }
    }
}

impl<'k> IntoVal<'k> for Operand<'k> {
    fn own_type(&self) -> Option<Type> {
        match self.kind {
            Kind::Literal(..) => None,
            _ => Some(self.ty()),
        }
    }

    fn known_int(&self) -> Option<i128> {
        Operand::known_int(*self)
    }

    fn into_val(self, builder: &'k KernelBuilder, like: Option<Type>) -> Val<'k> {
        match self.kind {
            Kind::Value(value) => value.into_val(builder, like),
            Kind::Var(var) => var.into_val(builder, like),
            Kind::Place(place, at) => builder.at_location(at, || place.into_val(builder, like)),
            Kind::Literal(Constant::Int(n), _) if like == Some(Type::I64) => {
                builder.constant(Constant::Int(n), Type::I64)
            }
            Kind::Literal(constant, ty) => builder.constant(constant, ty),
            Kind::Slot(slot) => match builder.slot(slot) {
                Some(var) => var.into_val(builder, like),
                None => builder.unit(),
            },
            Kind::Unit => builder.unit(),
            Kind::Lazy(_) => {
                let message = "take one of its fields, `.x`, `.y` or `.z`";
                let kind = BuildErrorKind::Unsupported(message.to_owned());
                builder.error(kind, Type::U32)
            }
            Kind::Steps(_) => {
                let message =
                    "a range in steps is what a `for` goes over: `for i in grid_stride(n)`";
                let kind = BuildErrorKind::Unsupported(message.to_owned());
                builder.error(kind, Type::U32)
            }
        }
    }
}

impl<'k> Front<'k> {
    /// An operator, as an instruction.
    pub(crate) fn binary(self, op: BinaryOp, left: Operand<'k>, right: Operand<'k>) -> Operand<'k> {
        self.value(self.builder.binary(op, left.target(), right.target()))
    }

    /// A comparison, as an instruction.
    pub(crate) fn compare(
        self,
        op: CompareOp,
        left: Operand<'k>,
        right: Operand<'k>,
    ) -> Operand<'k> {
        self.value(self.builder.compare(op, left.target(), right.target()))
    }
}

macro_rules! operators {
    ($($method:ident $op:ident)*) => {
        impl<'k> Front<'k> {$(
            /// The operator, as an instruction.
            pub(crate) fn $method(self, left: Operand<'k>, right: Operand<'k>) -> Operand<'k> {
                self.binary(BinaryOp::$op, left, right)
            }
        )*}
    };
}
operators! { add Add sub Sub bitand And }

macro_rules! comparisons {
    ($($method:ident $op:ident)*) => {
        impl<'k> Front<'k> {$(
            /// The comparison, as an instruction.
            pub(crate) fn $method(self, left: Operand<'k>, right: Operand<'k>) -> Operand<'k> {
                self.compare(CompareOp::$op, left, right)
            }
        )*}
    };
}
comparisons! { lt Lt le Le ge Ge }

macro_rules! shifts {
    ($($method:ident $op:ident)*) => {
        impl<'k> Front<'k> {$(
            /// The shift, as an instruction. The amount may have any integer type: it counts modulo
            /// the width.
            pub(crate) fn $method(self, left: Operand<'k>, amount: Operand<'k>) -> Operand<'k> {
                let (left, amount) = (left.target().read(), amount.target());
                let amount = match amount.known_int() {
                    Some(n) => self.builder.shift_amount(n, left.ty()),
                    None => amount.cast(left.ty()).read(),
                };
                self.value(self.builder.binary(BinaryOp::$op, left, amount))
            }
        )*}
    };
}
shifts! { shl Shl shr Shr }

impl KernelBuilder {
    fn shift_amount(&self, amount: i128, ty: Type) -> Val<'_> {
        let width = ty.as_scalar().map_or(i128::MAX, |s| s.bits().into());
        self.constant(Constant::Int(amount.rem_euclid(width)), ty)
    }
}

impl<'k> Front<'k> {
    /// A value as an operand. Pointers are made of places only.
    pub fn value(self, value: Val<'k>) -> Operand<'k> {
        let operand = Operand::new(self.builder, Kind::Value(value));
        match self.builder.type_data(value.ty()) {
            TypeData::Pointer { .. } => operand.unsupported("a bare pointer is no reference"),
            TypeData::Unit => Operand::new(self.builder, Kind::Unit),
            _ => operand,
        }
    }

    /// What a function gives, which may be a reference.
    pub(super) fn given(self, value: Val<'k>) -> Operand<'k> {
        match self.builder.is_pointer(value.ty()) {
            true => Operand::new(self.builder, Kind::Value(value)),
            false => self.value(value),
        }
    }

    /// Notes that what was written is not supported, and goes on with a zero.
    pub fn refuse(self, message: &str) -> Operand<'k> {
        self.unit().unsupported(message)
    }

    /// Whether bit operations are defined on values of this type.
    pub fn is_integer(self, ty: Type) -> bool {
        self.builder.is_integer(ty)
    }

    /// `()`.
    pub fn unit(self) -> Operand<'k> {
        Operand::new(self.builder, Kind::Unit)
    }

    /// What computes its fields as they are asked for.
    pub fn lazy(self, fields: Fields) -> Operand<'k> {
        Operand::new(self.builder, Kind::Lazy(fields))
    }

    /// Indices from `start` on and below `end`, in steps, for a `for`.
    pub fn steps(self, start: Val<'k>, end: Operand<'k>, step: Val<'k>) -> Operand<'k> {
        let end = end.read();
        Operand::new(self.builder, Kind::Steps(Steps { start, end, step }))
    }

    /// `-operand`.
    pub(crate) fn neg(self, operand: Operand<'k>) -> Operand<'k> {
        self.value(self.builder.unary(UnaryOp::Neg, operand.target()))
    }

    /// `!operand`.
    pub fn not(self, operand: Operand<'k>) -> Operand<'k> {
        self.value(self.builder.unary(UnaryOp::Not, operand.target()))
    }
}
