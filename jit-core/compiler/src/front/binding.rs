//! What gets a name or a type: parameters, `let`, constants, structs, arrays, shared memory.

use std::sync::Arc;

use crate::build::{BuildErrorKind, IntoVal, KernelBuilder, Val};
use crate::ir::{ArrayLen, ConstArg, Constant, InstData, StructData, Type, TypeData, TypeTable};

use super::operand::Kind;
use super::{Front, Operand};

impl<'k> Front<'k> {
    /// A literal.
    pub(super) fn literal(self, ty: Type, constant: Constant) -> Operand<'k> {
        Operand::new(self.builder, Kind::Literal(constant, ty))
    }

    /// An integer of a type that may be a parameter.
    pub(crate) fn int(self, ty: Type, value: i128) -> Operand<'k> {
        self.literal(ty, Constant::Int(value))
    }

    /// A number of another type as one of type `ty`, as `as` converts it; of a literal that every type
    /// has or that is rounded to a float, the literal.
    pub fn convert(self, ty: Type, number: Operand<'k>) -> Operand<'k> {
        let everywhere = 0.0..=127.0;
        let fits = |x: f64| everywhere.contains(&x) && x.fract() == 0.0;
        match number.kind {
            Kind::Literal(constant, _)
                if self.builder.is_certainly_float(ty)
                    || match constant {
                        Constant::Float(x) => fits(x),
                        Constant::Int(n) => fits(n as f64),
                        _ => true,
                    } =>
            {
                Operand::new(self.builder, Kind::Literal(constant, ty))
            }
            _ => number.cast(ty),
        }
    }

    /// The value of a const parameter, as the type that it has in the kernel.
    pub(super) fn const_value(self, param: ConstArg, declared: Type, ty: Type) -> Operand<'k> {
        let value = match param {
            ConstArg::Param(param) => self.builder.emit(InstData::ConstParam(param), declared),
            ConstArg::Known(number) => self.builder.constant(number, declared),
        };
        Operand::new(self.builder, Kind::Value(value.cast(ty)))
    }

    /// Declares a parameter of a type as it is written, and binds it.
    pub fn param(self, name: &str, ty: Type, mutable: bool, memory: bool) -> Operand<'k> {
        let value = self.builder.param(name, ty);
        self.bind(
            name,
            Operand::new(self.builder, Kind::Value(value)),
            mutable,
            memory,
        )
    }

    /// `let name = value` or `let mut name = value`. With `memory` its address or an element of it
    /// is taken somewhere, so that it has to have one.
    pub(super) fn bind(
        self,
        name: &str,
        value: Operand<'k>,
        mutable: bool,
        memory: bool,
    ) -> Operand<'k> {
        let b = self.builder;
        if let (false, Kind::Literal(..) | Kind::Lazy(_) | Kind::Steps(_)) =
            (mutable || memory, value.kind)
        {
            return value;
        }
        if value.ty() == Type::UNIT {
            return value;
        }
        let value = match mutable {
            true => b.generic(value.read()),
            false => value.read(),
        };
        let is_address = b.with_types(|types| types.is_reference(value.ty()));
        let kind = if memory && !is_address {
            let place = b.local(value.ty());
            place.set(value);
            Kind::Place(place, b.here())
        } else if mutable {
            let var = b.uninit_var(name, value.ty());
            var.set(value);
            Kind::Var(var)
        } else {
            Kind::Value(value)
        };
        Operand::new(b, kind)
    }

    /// `let name;`: it is assigned later, perhaps in several branches. With a type it is in memory,
    /// unless that is a reference.
    pub(super) fn declare(self, ty: Option<Type>) -> Operand<'k> {
        let b = self.builder;
        let kind = match ty {
            Some(ty) if b.is_reference(ty) => Kind::Slot(b.declared_slot(ty)),
            Some(ty) => Kind::Place(b.local(ty), b.here()),
            None => Kind::Slot(b.new_slot()),
        };
        Operand::new(b, kind)
    }

    /// `place = value`.
    pub(super) fn assign(self, place: Operand<'k>, value: Operand<'k>) {
        match place.kind {
            Kind::Place(place, _) => {
                let value = value.into_val(self.builder, Some(place.ty()));
                place.set(self.builder.fitted(value, place.ty()));
            }
            Kind::Var(var) => {
                let value = value.into_val(self.builder, Some(var.ty()));
                var.set(self.builder.fitted(value, var.ty()));
            }
            Kind::Slot(slot) => self.builder.set_slot(slot, value),
            Kind::Unit => {}
            Kind::Value(_) | Kind::Literal(..) | Kind::Lazy(_) | Kind::Steps(_) => {
                place.unsupported("this cannot be assigned");
            }
        }
    }

    /// An expression as a statement: evaluated, its value forgotten.
    pub(super) fn discard(self, value: Operand<'k>) {
        value.eager();
    }

    /// A tuple.
    pub fn tuple(self, parts: &[Operand<'k>]) -> Operand<'k> {
        let parts: Vec<Val<'k>> = parts.iter().map(|part| part.read()).collect();
        let types: Vec<Type> = parts.iter().map(|part| part.ty()).collect();
        let ty = self.tuple_type(&types);
        Operand::new(
            self.builder,
            Kind::Value(self.builder.construct(ty, &parts)),
        )
    }

    /// A tuple type: a struct whose fields are numbered.
    pub(super) fn tuple_type(self, types: &[Type]) -> Type {
        self.builder.with_types(|table| tuple_type(table, types))
    }

    /// A reference type, of a slice if `element` is what a slice has.
    pub fn reference_type(self, target: Type, slice: bool, mutable: bool) -> Type {
        let space = crate::ir::AddressSpace::Generic;
        self.builder.with_types(|types| match slice {
            true => types.slice(target, space, mutable),
            false => types.pointer(target, space, mutable),
        })
    }

    /// `[a, b, c]`.
    pub fn array(self, elements: &[Operand<'k>]) -> Operand<'k> {
        let elements = elements.iter().map(|element| element.read()).collect();
        let elements = self.builder.as_one_type(elements);
        let ty = elements.first().map_or(Type::I32, |element| element.ty());
        let ty = self.builder.array(ty, elements.len() as u64);
        Operand::new(
            self.builder,
            Kind::Value(self.builder.construct(ty, &elements)),
        )
    }

    /// A fixed array type.
    pub(super) fn array_type(self, element: Type, len: ArrayLen) -> Type {
        let array = TypeData::Array { element, len };
        self.builder.with_types(|types| types.intern(array))
    }

    /// `[element; len]`.
    pub(super) fn repeat(self, element: Operand<'k>, len: ArrayLen) -> Operand<'k> {
        let b = self.builder;
        let ty = self.array_type(element.ty(), len);
        let is_zero = match element.kind {
            Kind::Literal(Constant::Zero | Constant::Int(0) | Constant::Bool(false), _) => true,
            Kind::Literal(Constant::Float(x), _) => x.to_bits() == 0,
            // An array of zeros, as `[[0.0; 4]; N]` has it.
            Kind::Value(value) => b.is_zero(value),
            _ => false,
        };
        if is_zero {
            return Operand::new(b, Kind::Value(b.zero(ty)));
        }
        match b.as_array(ty) {
            Some((_, ArrayLen::Known(len))) if len <= MAX_REPEAT => {
                let parts = vec![element.read(); len as usize];
                Operand::new(b, Kind::Value(b.construct(ty, &parts)))
            }
            _ => element.unsupported(&format!(
                "an array of more than {MAX_REPEAT} elements, or of a length that is a const \
                 parameter, starts as zeros; fill it in a loop"
            )),
        }
    }

    /// `S { field: value, .. }`: a struct by the names of its fields; what is not named comes from
    /// `base`.
    pub fn construct(
        self,
        ty: Type,
        fields: &[(&str, Operand<'k>)],
        base: Option<Operand<'k>>,
    ) -> Operand<'k> {
        let b = self.builder;
        let values: Vec<_> = fields.iter().map(|(name, v)| (*name, v.read())).collect();
        let base = base.map(Operand::read);
        let wanted = b.with_types(|types| types.as_struct(ty).map(|data| data.fields.clone()));
        let mut parts = Vec::new();
        for (name, ty) in wanted.unwrap_or_default() {
            match (values.iter().find(|(n, _)| *n == name), base) {
                (Some((_, value)), _) => parts.push(b.fitted(*value, ty)),
                (None, Some(base)) => parts.push(b.fitted(base.field(&name), ty)),
                (None, None) => {
                    let message = format!("the field `{name}` is missing");
                    parts.push(b.error(BuildErrorKind::Unsupported(message), Type::I32));
                }
            }
        }
        Operand::new(b, Kind::Value(b.construct(ty, &parts)))
    }

    /// A vector of type `ty` from an array of its lanes.
    pub(crate) fn vector(self, ty: Type, lanes: Operand<'k>) -> Operand<'k> {
        let b = self.builder;
        let wanted = b.with_types(|types| types.as_vector(ty));
        let (lane, count) = wanted.map_or((Type::I32, 0), |(lane, n)| (Type::scalar(lane), n));
        let lanes = lanes.read();
        let part = |index| b.fitted(lanes.element(index), lane);
        let parts: Vec<Val<'k>> = (0..count.into()).map(part).collect();
        Operand::new(b, Kind::Value(b.construct(ty, &parts)))
    }

    /// `shared!(ty)`: memory of the block, as a mutable reference.
    pub(super) fn shared(self, name: &str, ty: Type) -> Operand<'k> {
        let place = self.builder.shared(name, ty);
        Operand::new(self.builder, Kind::Value(place.address()))
    }

    /// The array that kernels of a `Jit` have in common under a name, as a mutable reference.
    pub(crate) fn global(self, name: &str, array: Type, initial: Option<Arc<[u8]>>) -> Operand<'k> {
        let place = self.builder.global_array(name, array, initial);
        Operand::new(self.builder, Kind::Value(place.address()))
    }

    /// The dynamic shared memory of the launch, as a mutable slice.
    pub fn dynamic_shared(self, element: Type) -> Operand<'k> {
        let slice = self.builder.dynamic_shared(element);
        Operand::new(self.builder, Kind::Value(slice))
    }
}

/// A tuple type: a struct whose fields are numbered.
pub(super) fn tuple_type(table: &mut TypeTable, types: &[Type]) -> Type {
    let fields = types.iter().enumerate();
    let fields = fields.map(|(i, &ty)| (i.to_string(), ty)).collect();
    table.intern_struct(StructData::new(TUPLE.to_owned(), fields))
}

/// The types of the parts of a tuple, if a type is one.
pub(super) fn tuple_parts(table: &TypeTable, ty: Type) -> Option<Vec<Type>> {
    let data = table.as_struct(ty).filter(|data| data.name == TUPLE)?;
    Some(data.fields.iter().map(|(_, ty)| *ty).collect())
}

/// What tuples are called as structs.
const TUPLE: &str = "tuple";

/// The longest array that is written out element by element.
const MAX_REPEAT: u64 = 256;

impl KernelBuilder {
    /// A value of any type from its scalars, in memory order.
    pub(super) fn whole(&self, ty: Type, scalars: &mut dyn Iterator<Item = Constant>) -> Val<'_> {
        let parts: Vec<Type> = match self.type_data(ty) {
            TypeData::Struct(_) => self.with_types(|types| {
                let fields = types.as_struct(ty).map_or(&[][..], |s| &s.fields);
                fields.iter().map(|(_, ty)| *ty).collect()
            }),
            TypeData::Array {
                element,
                len: ArrayLen::Known(len),
            } => vec![element; len as usize],
            TypeData::Vector { element, lanes } => vec![Type::scalar(element); lanes.into()],
            _ => return self.constant(scalars.next().unwrap_or(Constant::Zero), ty),
        };
        let parts: Vec<Val<'_>> = parts.iter().map(|&ty| self.whole(ty, scalars)).collect();
        self.construct(ty, &parts)
    }
}
