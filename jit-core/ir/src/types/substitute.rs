//! Types of other tables, and types with arguments for their parameters.

use super::{ArrayLen, StructData, Type, TypeData, TypeTable};
use crate::entity::Entity as _;
use crate::{ConstArg, Constant};

impl TypeTable {
    /// The type of another table, entered into this one. Type and const parameters keep their
    /// position.
    pub fn import(&mut self, from: &TypeTable, ty: Type) -> Type {
        let data = match from.data(ty).clone() {
            TypeData::Array { element, len } => TypeData::Array {
                element: self.import(from, element),
                len,
            },
            TypeData::Struct(id) => {
                let StructData { name, fields } = from.struct_data(id).clone();
                let fields = fields.into_iter().map(|(n, ty)| (n, self.import(from, ty)));
                let fields = fields.collect();
                return self.intern_struct(StructData { name, fields });
            }
            TypeData::Pointer {
                pointee,
                space,
                mutable,
            } => TypeData::Pointer {
                pointee: self.import(from, pointee),
                space,
                mutable,
            },
            TypeData::Slice {
                element,
                space,
                mutable,
                wide,
            } => TypeData::Slice {
                element: self.import(from, element),
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
                let StructData { name, fields } = self.struct_data(id).clone();
                let fields = fields.into_iter();
                let fields = fields.map(|(n, ty)| (n, self.substitute(ty, types, consts)));
                let fields = fields.collect();
                return self.intern_struct(StructData { name, fields });
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
