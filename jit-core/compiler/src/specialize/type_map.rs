//! Types of a generic module, entered in the specialized one with parameters replaced.
//!
//! Struct types are nominal and their names must stay unique in the new module: a generic struct
//! at two types, or two structs of the same name from different modules, are told apart by a
//! number after the name.

use std::collections::HashMap;

use crate::ir::{ArrayLen, Entity, StructData, Type, TypeData, TypeTable};

/// Why a type has no counterpart.
pub(super) enum NoType {
    /// A type or const parameter that is not bound.
    Unbound,
    /// An array of this length.
    Length(i128),
}

/// The way from the types of one module to those of another, for one function instance.
pub(super) struct TypeMap {
    type_args: Vec<Type>,
    const_args: Vec<i128>,
    /// Whether slices inside of other types are wide.
    wide_inside: bool,
    known: HashMap<Type, Type>,
}

impl TypeMap {
    /// `type_args` are of the module mapped to.
    pub(super) fn new(type_args: Vec<Type>, const_args: Vec<i128>, wide_inside: bool) -> Self {
        Self {
            type_args,
            const_args,
            wide_inside,
            known: HashMap::new(),
        }
    }

    /// The value of a const parameter.
    pub(super) fn const_arg(&self, param: impl Entity) -> Option<i128> {
        self.const_args.get(param.index()).copied()
    }

    /// The type in `to` for the type `ty` of `from`.
    // flat match
    pub(super) fn map(
        &mut self,
        from: &TypeTable,
        to: &mut TypeTable,
        ty: Type,
    ) -> Result<Type, NoType> {
        // Scalars are the same in every module.
        if ty.as_scalar().is_some() {
            return Ok(ty);
        }
        if let Some(&known) = self.known.get(&ty) {
            return Ok(known);
        }
        let mapped = match from.data(ty) {
            TypeData::Param(param) => {
                let bound = self.type_args.get(param.index());
                bound.copied().ok_or(NoType::Unbound)?
            }
            TypeData::Array { element, len } => {
                let element = self.map_inside(from, to, *element)?;
                let len = ArrayLen::Known(self.length(*len)?);
                to.intern(TypeData::Array { element, len })
            }
            TypeData::Struct(id) => {
                let source = from.struct_data(*id);
                let mut fields = Vec::with_capacity(source.fields.len());
                for (name, ty) in &source.fields {
                    fields.push((name.clone(), self.map_inside(from, to, *ty)?));
                }
                to.intern_struct_apart(StructData {
                    align: source.align,
                    ..StructData::new(source.name.clone(), fields)
                })
            }
            TypeData::Pointer {
                pointee,
                space,
                mutable,
            } => {
                let pointee = self.map_inside(from, to, *pointee)?;
                to.pointer(pointee, *space, *mutable)
            }
            TypeData::Slice {
                element,
                space,
                mutable,
                wide,
            } => {
                let element = self.map_inside(from, to, *element)?;
                to.intern(TypeData::Slice {
                    element,
                    space: *space,
                    mutable: *mutable,
                    wide: *wide,
                })
            }
            other @ (TypeData::Unit | TypeData::Scalar(_) | TypeData::Vector { .. }) => {
                to.intern(other.clone())
            }
        };
        self.known.insert(ty, mapped);
        Ok(mapped)
    }

    /// The type of a part of another.
    fn map_inside(
        &mut self,
        from: &TypeTable,
        to: &mut TypeTable,
        ty: Type,
    ) -> Result<Type, NoType> {
        let mapped = self.map(from, to, ty)?;
        Ok(match self.wide_inside {
            true => widened(to, mapped),
            false => mapped,
        })
    }

    fn length(&self, len: ArrayLen) -> Result<u64, NoType> {
        match len {
            ArrayLen::Known(n) => Ok(n),
            ArrayLen::Param(param) => {
                let value = self.const_arg(param).ok_or(NoType::Unbound)?;
                u64::try_from(value).map_err(|_| NoType::Length(value))
            }
        }
    }
}

/// The slice type `ty` with a 64-bit length; other types as they are.
pub(super) fn widened(types: &mut TypeTable, ty: Type) -> Type {
    match types.as_slice(ty) {
        Some((at, _)) => types.intern(TypeData::Slice {
            element: at.pointee,
            space: at.space,
            mutable: at.mutable,
            wide: true,
        }),
        None => ty,
    }
}

/// The text of a type or number as a part of a function's name: letters, digits and `_`.
pub(super) fn name_part(text: &str) -> String {
    let mut part = String::new();
    for c in text.chars() {
        match c {
            c if c.is_ascii_alphanumeric() || c == '_' => part.push(c),
            '-' => part.push_str("minus"),
            _ if part.is_empty() || part.ends_with('_') => {}
            _ => part.push('_'),
        }
    }
    part.trim_end_matches('_').to_owned()
}
