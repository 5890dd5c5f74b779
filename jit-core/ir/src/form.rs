//! Types written out: what a type of the host is in the IR, as a constant of the host's program.
//!
//! A [`Type`] is an index, which means something in one module. A [`TypeForm`] needs no module, so a type
//! of the host can have it as a constant, and so it is what keys are made of: its [`TypeDigest`] tells
//! types apart by all that the IR knows of them, layout, fields and their names. Nothing else of a Rust
//! type would do. Libraries of one process (cells of a notebook, plug-ins) may define a struct of one path
//! with other fields, and rustc gives both one `TypeId`; a name is not unique even within a function; a
//! generic function's statics and addresses are shared, or not, as the linker likes.

mod digest;

use std::fmt;
use std::hash::{Hash, Hasher};

use digest::Sha256;

use super::entity::Entity;
use super::types::{Scalar, StructData, Type, TypeData, TypeParam, TypeTable};

/// Tells types apart: a digest of all that a [`TypeForm`] says, made while rustc compiles the program.
/// Equal in all libraries of a process exactly for types that the IR takes for one.
#[derive(Copy, Clone, PartialEq, Eq)]
pub struct TypeDigest(u128);

impl Hash for TypeDigest {
    /// One word, which is uniform: this is on the launch's hot path. Equality compares all of it.
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.0 as u64);
    }
}

impl fmt::Debug for TypeDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TypeDigest({:032x})", self.0)
    }
}

/// A field: its name and its type.
pub type FieldForm = (&'static str, &'static TypeForm);

#[derive(Debug)]
enum Shape {
    Unit,
    Scalar(Scalar),
    Vector(Scalar, u8),
    Array(&'static TypeForm, u64),
    Struct(&'static str, &'static [FieldForm]),
    Param(u32),
}

/// A type of the IR, written out. Displays as the text form does, structs with their fields.
///
/// ```
/// use kiln_ir::{Scalar, TypeForm};
///
/// const F32: &TypeForm = &TypeForm::scalar(Scalar::F32);
/// const POINT: &TypeForm = &TypeForm::structure("Point", &[("x", F32), ("y", F32)]);
/// assert_eq!(POINT.to_string(), "@Point {x: f32, y: f32}");
/// ```
#[derive(Debug)]
pub struct TypeForm {
    shape: Shape,
    digest: TypeDigest,
}

impl TypeForm {
    /// The type of nothing.
    pub const UNIT: TypeForm = TypeForm::new(Shape::Unit, Sha256::new().byte(0));

    /// A number or a bool.
    pub const fn scalar(scalar: Scalar) -> TypeForm {
        let text = Sha256::new().byte(1).byte(scalar as u8);
        TypeForm::new(Shape::Scalar(scalar), text)
    }

    /// A short vector.
    pub const fn vector(element: Scalar, lanes: u8) -> TypeForm {
        let text = Sha256::new().byte(2).byte(element as u8).byte(lanes);
        TypeForm::new(Shape::Vector(element, lanes), text)
    }

    /// A fixed array.
    pub const fn array(element: &'static TypeForm, len: u64) -> TypeForm {
        let text = Sha256::new().byte(3).number(len).form(element);
        TypeForm::new(Shape::Array(element, len), text)
    }

    /// A struct with C layout, fields in memory order.
    pub const fn structure(name: &'static str, fields: &'static [FieldForm]) -> TypeForm {
        let mut text = Sha256::new().byte(4).name(name).number(fields.len() as u64);
        let mut position = 0;
        while position < fields.len() {
            let (name, form) = fields[position];
            text = text.name(name).form(form);
            position += 1;
        }
        TypeForm::new(Shape::Struct(name, fields), text)
    }

    /// A type parameter of the function being described, by position.
    pub const fn param(position: u32) -> TypeForm {
        let text = Sha256::new().byte(5).number(position as u64);
        TypeForm::new(Shape::Param(position), text)
    }

    const fn new(shape: Shape, text: Sha256) -> TypeForm {
        let digest = TypeDigest(text.leading_bytes());
        TypeForm { shape, digest }
    }

    /// What tells it apart.
    pub const fn digest(&self) -> TypeDigest {
        self.digest
    }

    /// The type in a table, entered if it is new.
    pub fn enter(&self, types: &mut TypeTable) -> Type {
        match self.shape {
            Shape::Unit => Type::UNIT,
            Shape::Scalar(scalar) => Type::scalar(scalar),
            Shape::Vector(element, lanes) => types.vector(element, lanes),
            Shape::Array(element, len) => {
                let element = element.enter(types);
                types.array(element, len)
            }
            Shape::Struct(name, fields) => {
                let fields = fields.iter();
                let fields = fields.map(|(name, form)| ((*name).to_owned(), form.enter(types)));
                let fields = fields.collect();
                let name = name.to_owned();
                types.intern_struct(StructData { name, fields })
            }
            Shape::Param(position) => {
                types.intern(TypeData::Param(TypeParam::from_index(position as usize)))
            }
        }
    }

    /// The type of a field, or of the elements of an array whatever the position; `None` if it has no
    /// such part.
    pub fn part(&self, position: u32) -> Option<&'static TypeForm> {
        match self.shape {
            Shape::Array(element, _) => Some(element),
            Shape::Struct(_, fields) => fields.get(position as usize).map(|(_, form)| *form),
            _ => None,
        }
    }
}

impl PartialEq for TypeForm {
    fn eq(&self, other: &Self) -> bool {
        self.digest == other.digest
    }
}

impl Eq for TypeForm {}

impl fmt::Display for TypeForm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.shape {
            Shape::Unit => f.write_str("()"),
            Shape::Scalar(scalar) => f.write_str(scalar.name()),
            Shape::Vector(element, lanes) => write!(f, "{}x{lanes}", element.name()),
            Shape::Array(element, len) => write!(f, "[{element}; {len}]"),
            Shape::Struct(name, fields) => {
                write!(f, "@{name} {{")?;
                for (i, (name, form)) in fields.iter().enumerate() {
                    let comma = if i == 0 { "" } else { ", " };
                    write!(f, "{comma}{name}: {form}")?;
                }
                f.write_str("}")
            }
            Shape::Param(position) => write!(f, "${position}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const F32: &TypeForm = &TypeForm::scalar(Scalar::F32);
    const F64: &TypeForm = &TypeForm::scalar(Scalar::F64);

    /// Types that only the whole of what the IR knows tells apart, each with how it displays.
    fn different() -> Vec<(TypeForm, &'static str)> {
        const INNER: &TypeForm = &TypeForm::structure("P", &[("a", F32)]);
        vec![
            (TypeForm::UNIT, "()"),
            (TypeForm::scalar(Scalar::F32), "f32"),
            (TypeForm::scalar(Scalar::U32), "u32"),
            (TypeForm::vector(Scalar::F32, 2), "f32x2"),
            (TypeForm::vector(Scalar::F32, 4), "f32x4"),
            (TypeForm::array(F32, 4), "[f32; 4]"),
            (TypeForm::array(F32, 5), "[f32; 5]"),
            (TypeForm::array(F64, 4), "[f64; 4]"),
            (TypeForm::array(INNER, 4), "[@P {a: f32}; 4]"),
            (TypeForm::param(0), "$0"),
            (TypeForm::param(1), "$1"),
            (TypeForm::structure("P", &[]), "@P {}"),
            (TypeForm::structure("Q", &[]), "@Q {}"),
            (
                TypeForm::structure("P", &[("a", F32), ("b", F32)]),
                "@P {a: f32, b: f32}",
            ),
            (
                TypeForm::structure("P", &[("a", F64), ("b", F64)]),
                "@P {a: f64, b: f64}",
            ),
            (
                TypeForm::structure("P", &[("b", F32), ("a", F32)]),
                "@P {b: f32, a: f32}",
            ),
            (
                TypeForm::structure("P", &[("x", INNER)]),
                "@P {x: @P {a: f32}}",
            ),
            (
                TypeForm::structure("P", &[("ab", F32), ("c", F32)]),
                "@P {ab: f32, c: f32}",
            ),
            (
                TypeForm::structure("P", &[("a", F32), ("bc", F32)]),
                "@P {a: f32, bc: f32}",
            ),
        ]
    }

    #[test]
    fn the_whole_of_a_type_tells_it_apart() {
        for (i, (form, text)) in different().iter().enumerate() {
            assert_eq!(form.to_string(), *text);
            for (j, (other, other_text)) in different().iter().enumerate() {
                let same = form.digest() == other.digest();
                assert_eq!(same, i == j, "{text} and {other_text}");
            }
        }
    }

    #[test]
    fn forms_are_one_where_types_of_a_table_are() {
        let mut types = TypeTable::new();
        let entered: Vec<Type> = different()
            .iter()
            .map(|(f, _)| f.enter(&mut types))
            .collect();
        for (i, (form, _)) in different().iter().enumerate() {
            assert_eq!(entered.iter().position(|ty| *ty == entered[i]), Some(i));
            assert_eq!(form.enter(&mut types), entered[i]);
        }
    }
}
