//! Types of other tables, and types with arguments for their parameters.

use super::{ArrayLen, StructData, Type, TypeData, TypeTable};
use crate::entity::Entity as _;
use crate::{ConstArg, Constant, free_name};

impl TypeTable {
    /// The type of another table, entered into this one. Type and const parameters keep their
    /// position.
    pub fn import(&mut self, from: &TypeTable, ty: Type) -> Type {
        self.import_with(from, ty, Self::intern_struct)
    }

    /// A type of another table, where a struct that has the name of another one here gets a number after its name.
    pub(crate) fn import_apart(&mut self, from: &TypeTable, ty: Type) -> Type {
        self.import_with(from, ty, Self::intern_struct_apart)
    }

    /// The struct type with these fields, named so, or with a number after the name if another struct has it.
    pub fn intern_struct_apart(&mut self, data: StructData) -> Type {
        let name = free_name(&data.name, |name| {
            self.structs()
                .any(|(_, s)| s.name == name && (&s.fields, s.align) != (&data.fields, data.align))
        });
        self.intern_struct(StructData { name, ..data })
    }

    fn import_with(
        &mut self,
        from: &TypeTable,
        ty: Type,
        enter: fn(&mut TypeTable, StructData) -> Type,
    ) -> Type {
        // Scalars are the same in every table.
        if ty.as_scalar().is_some() {
            return ty;
        }
        let data = match from.data(ty).clone() {
            TypeData::Array { element, len } => TypeData::Array {
                element: self.import_with(from, element, enter),
                len,
            },
            TypeData::Struct(id) => {
                let mut of = from.struct_data(id).clone();
                for (_, ty) in &mut of.fields {
                    *ty = self.import_with(from, *ty, enter);
                }
                return enter(self, of);
            }
            TypeData::Pointer {
                pointee,
                space,
                mutable,
            } => TypeData::Pointer {
                pointee: self.import_with(from, pointee, enter),
                space,
                mutable,
            },
            TypeData::Slice {
                element,
                space,
                mutable,
                wide,
            } => TypeData::Slice {
                element: self.import_with(from, element, enter),
                space,
                mutable,
                wide,
            },
            flat @ (TypeData::Unit
            | TypeData::Scalar(_)
            | TypeData::Vector { .. }
            | TypeData::Param(_)) => flat,
        };
        self.intern(data)
    }

    /// `ty` with type and const parameters replaced by arguments.
    pub fn substitute(&mut self, ty: Type, types: &[Type], consts: &[ConstArg]) -> Type {
        if !self.is_generic(ty) {
            return ty;
        }
        let data = match self.data(ty).clone() {
            TypeData::Param(p) => return types.get(p.index()).copied().unwrap_or(ty),
            TypeData::Array { element, len } => {
                let element = self.substitute(element, types, consts);
                TypeData::Array {
                    element,
                    len: substitute_len(len, consts),
                }
            }
            TypeData::Struct(id) => {
                let mut of = self.struct_data(id).clone();
                for (_, ty) in &mut of.fields {
                    *ty = self.substitute(*ty, types, consts);
                }
                return self.intern_struct(of);
            }
            TypeData::Pointer {
                pointee,
                space,
                mutable,
            } => {
                let pointee = self.substitute(pointee, types, consts);
                TypeData::Pointer {
                    pointee,
                    space,
                    mutable,
                }
            }
            TypeData::Slice {
                element,
                space,
                mutable,
                wide,
            } => {
                let element = self.substitute(element, types, consts);
                TypeData::Slice {
                    element,
                    space,
                    mutable,
                    wide,
                }
            }
            flat @ (TypeData::Unit | TypeData::Scalar(_) | TypeData::Vector { .. }) => flat,
        };
        self.intern(data)
    }
}

fn substitute_len(len: ArrayLen, consts: &[ConstArg]) -> ArrayLen {
    let ArrayLen::Param(param) = len else {
        return len;
    };
    match consts.get(param.index()) {
        Some(ConstArg::Known(Constant::Int(n))) => u64::try_from(*n).map_or(len, ArrayLen::Known),
        Some(ConstArg::Param(outer)) => ArrayLen::Param(*outer),
        _ => len,
    }
}
