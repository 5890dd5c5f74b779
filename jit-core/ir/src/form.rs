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
use std::ops::Range;

use digest::Sha256;

use super::entity::Entity;
use super::types::{ArrayLen, HostFact, Scalar, StructData, Type, TypeData, TypeParam, TypeTable};

/// Tells types apart: a digest of all that a [`TypeForm`] says, made while rustc compiles the program.
/// Equal in all libraries of a process exactly for types that the IR takes for one.
#[derive(Copy, Clone, PartialEq, Eq)]
pub struct TypeDigest(u128);

impl TypeDigest {
    /// One word of the digest, which is uniform, for hash tables.
    #[doc(hidden)]
    #[inline]
    pub const fn leading_word(self) -> u64 {
        self.0 as u64
    }

    /// The other word.
    #[doc(hidden)]
    #[inline]
    pub const fn second_word(self) -> u64 {
        (self.0 >> 64) as u64
    }
}

impl TypeDigest {
    /// The number that it is, for who keeps it outside the process.
    pub(crate) fn to_bits(self) -> u128 {
        self.0
    }

    /// The digest that was this number.
    pub(crate) fn from_bits(bits: u128) -> TypeDigest {
        TypeDigest(bits)
    }
}

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

impl TypeDigest {
    /// What tells a type of a module apart, the same as of its form; `None` if no value of the host is of that
    /// type: a pointer or a slice, or what depends on a parameter.
    pub(crate) fn of(types: &TypeTable, ty: Type) -> Option<TypeDigest> {
        let text = match types.data(ty) {
            TypeData::Unit => return Some(TypeForm::UNIT.digest),
            TypeData::Scalar(scalar) => return Some(TypeForm::scalar(*scalar).digest),
            TypeData::Vector { element, lanes } => {
                return Some(TypeForm::vector(*element, *lanes).digest);
            }
            TypeData::Array {
                element,
                len: ArrayLen::Known(len),
            } => {
                let element = TypeDigest::of(types, *element)?;
                TypeForm::array_text(*len).digest(element)
            }
            TypeData::Struct(id) => {
                let data = types.struct_data(*id);
                let start = TypeForm::structure_text(&data.name, data.fields.len(), data.align);
                data.fields.iter().try_fold(start, |text, (name, ty)| {
                    Some(text.name(name).digest(TypeDigest::of(types, *ty)?))
                })?
            }
            TypeData::Array { .. }
            | TypeData::Pointer { .. }
            | TypeData::Slice { .. }
            | TypeData::Param(_) => return None,
        };
        Some(TypeDigest(text.leading_bytes()))
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
    /// Name, fields, and the least alignment.
    Struct(&'static str, &'static [FieldForm], u64),
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
    extent: Extent,
    digest: TypeDigest,
    /// What is known of the type of the host, which is no part of the form.
    known: Option<HostFact>,
}

/// How a type lies in memory, as [`TypeTable::layout`] has it, made while rustc compiles the program.
#[derive(Copy, Clone, Debug)]
struct Extent {
    size: u64,
    align: u64,
    /// How many bytes are no padding.
    defined: u64,
}

impl Extent {
    const fn of(shape: &Shape) -> Extent {
        match *shape {
            Shape::Unit | Shape::Param(_) => Extent::dense(0, 1),
            Shape::Scalar(scalar) => Extent::dense(scalar.bytes() as u64, scalar.bytes() as u64),
            Shape::Vector(element, lanes) => {
                let size = element.bytes() as u64 * lanes as u64;
                Extent::dense(size, if size < 16 { size } else { 16 })
            }
            Shape::Array(element, len) => Extent {
                size: element.extent.size.saturating_mul(len),
                align: element.extent.align,
                defined: element.extent.defined.saturating_mul(len),
            },
            Shape::Struct(_, fields, align) => {
                let (mut whole, mut position) = (Extent::dense(0, align), 0);
                while position < fields.len() {
                    let field = fields[position].1.extent;
                    whole = Extent {
                        size: whole
                            .size
                            .next_multiple_of(field.align)
                            .saturating_add(field.size),
                        align: if field.align > whole.align {
                            field.align
                        } else {
                            whole.align
                        },
                        defined: whole.defined.saturating_add(field.defined),
                    };
                    position += 1;
                }
                let size = whole.size.next_multiple_of(whole.align);
                Extent { size, ..whole }
            }
        }
    }

    const fn dense(size: u64, align: u64) -> Extent {
        Extent {
            size,
            align,
            defined: size,
        }
    }
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
        let text = TypeForm::array_text(len).form(element);
        TypeForm::new(Shape::Array(element, len), text)
    }

    /// A struct with C layout, fields in memory order.
    pub const fn structure(name: &'static str, fields: &'static [FieldForm]) -> TypeForm {
        TypeForm::aligned_structure(name, fields, 1)
    }

    /// A struct whose values are aligned to `align` bytes at least, a power of two, as `#[repr(C, align(16))]` has it.
    ///
    /// ```
    /// use kiln_ir::{Scalar, TypeForm};
    ///
    /// const F32: &TypeForm = &TypeForm::scalar(Scalar::F32);
    /// const POINT: &TypeForm = &TypeForm::aligned_structure("Point", &[("x", F32)], 8);
    /// assert_eq!(POINT.to_string(), "@Point align(8) {x: f32}");
    /// ```
    pub const fn aligned_structure(
        name: &'static str,
        fields: &'static [FieldForm],
        align: u64,
    ) -> TypeForm {
        let mut text = TypeForm::structure_text(name, fields.len(), align);
        let mut position = 0;
        while position < fields.len() {
            let (name, form) = fields[position];
            text = text.name(name).form(form);
            position += 1;
        }
        TypeForm::new(Shape::Struct(name, fields, align), text)
    }

    /// A type parameter of the function being described, by position.
    pub const fn param(position: u32) -> TypeForm {
        let text = Sha256::new().byte(5).number(position as u64);
        TypeForm::new(Shape::Param(position), text)
    }

    /// How the text of an array begins; what it is of follows.
    const fn array_text(len: u64) -> Sha256 {
        Sha256::new().byte(3).number(len)
    }

    /// How the text of a struct begins; its fields follow, name and type.
    const fn structure_text(name: &str, fields: usize, align: u64) -> Sha256 {
        let text = Sha256::new().byte(4).name(name).number(align);
        text.number(fields as u64)
    }

    const fn new(shape: Shape, text: Sha256) -> TypeForm {
        TypeForm {
            extent: Extent::of(&shape),
            digest: TypeDigest(text.leading_bytes()),
            shape,
            known: None,
        }
    }

    /// A form with something that is known of the type of the host, for [`StructData::known`].
    pub const fn knowing(self, fact: HostFact) -> TypeForm {
        TypeForm {
            known: Some(fact),
            ..self
        }
    }

    /// Whether a value has no padding.
    pub const fn is_dense(&self) -> bool {
        self.extent.defined == self.extent.size
    }

    /// Calls `f` with the bytes of a value that are no padding, in order.
    pub fn for_each_defined(&self, f: &mut dyn FnMut(Range<usize>)) {
        self.defined_from(0, f);
    }

    fn defined_from(&self, start: u64, f: &mut dyn FnMut(Range<usize>)) {
        match self.shape {
            Shape::Array(element, len) if !self.is_dense() => {
                (0..len).for_each(|n| element.defined_from(start + n * element.extent.size, f));
            }
            Shape::Struct(_, fields, _) if !self.is_dense() => {
                let mut at = 0u64;
                for (_, field) in fields {
                    at = at.next_multiple_of(field.extent.align);
                    field.defined_from(start + at, f);
                    at += field.extent.size;
                }
            }
            _ => f(start as usize..(start + self.extent.size) as usize),
        }
    }

    /// Calls `f` with each scalar of a value and the byte that it begins at, in order.
    pub fn for_each_scalar(&self, f: &mut dyn FnMut(usize, Scalar)) {
        self.scalars_from(0, f);
    }

    fn scalars_from(&self, start: u64, f: &mut dyn FnMut(usize, Scalar)) {
        match self.shape {
            Shape::Unit | Shape::Param(_) => {}
            Shape::Scalar(scalar) => f(start as usize, scalar),
            Shape::Vector(element, lanes) => {
                let bytes = element.bytes() as u64;
                (0..lanes.into()).for_each(|lane: u64| f((start + lane * bytes) as usize, element));
            }
            Shape::Array(element, len) => {
                (0..len).for_each(|n| element.scalars_from(start + n * element.extent.size, f));
            }
            Shape::Struct(_, fields, _) => {
                let mut at = 0u64;
                for (_, field) in fields {
                    at = at.next_multiple_of(field.extent.align);
                    field.scalars_from(start + at, f);
                    at += field.extent.size;
                }
            }
        }
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
            Shape::Struct(name, fields, align) => {
                let fields = fields.iter();
                let fields = fields.map(|(name, form)| ((*name).to_owned(), form.enter(types)));
                let fields = fields.collect();
                let name = name.to_owned();
                types.intern_struct(StructData {
                    name,
                    fields,
                    align,
                    known: self.known.into_iter().collect(),
                })
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
            Shape::Struct(_, fields, _) => fields.get(position as usize).map(|(_, form)| *form),
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
            Shape::Struct(name, fields, align) => {
                write!(f, "@{name} ")?;
                if align > 1 {
                    write!(f, "align({align}) ")?;
                }
                f.write_str("{")?;
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
                TypeForm::aligned_structure("P", &[("a", F32), ("b", F32)], 8),
                "@P align(8) {a: f32, b: f32}",
            ),
            (
                TypeForm::aligned_structure("P", &[("a", F32), ("b", F32)], 16),
                "@P align(16) {a: f32, b: f32}",
            ),
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

    /// The bytes that ranges say, one by one.
    fn bytes(ranges: &[Range<usize>]) -> Vec<usize> {
        ranges.iter().cloned().flatten().collect()
    }

    #[test]
    fn forms_lie_in_memory_as_types_of_a_table_do() {
        const U8: &TypeForm = &TypeForm::scalar(Scalar::U8);
        const PADDED: &TypeForm = &TypeForm::structure("A", &[("a", U8), ("b", F64), ("c", U8)]);
        const ALIGNED: &TypeForm = &TypeForm::aligned_structure("E", &[("a", F32)], 16);
        const LANES: &TypeForm = &TypeForm::vector(Scalar::F32, 4);
        let padded = [
            TypeForm::array(PADDED, 3),
            TypeForm::structure("B", &[("a", U8), ("b", PADDED), ("c", LANES)]),
            TypeForm::structure("C", &[("a", PADDED), ("b", F32)]),
            TypeForm::structure("D", &[("a", U8), ("b", ALIGNED), ("c", U8)]),
        ];
        let all = different().into_iter().map(|(form, _)| form).chain(padded);
        for form in all {
            let mut types = TypeTable::new();
            let ty = form.enter(&mut types);
            let Some(layout) = types.layout(ty) else {
                continue;
            };
            let Extent { size, align, .. } = form.extent;
            assert_eq!((size, align), (layout.size, layout.align), "{form}");
            let mut ranges = Vec::new();
            form.for_each_defined(&mut |range| ranges.push(range));
            let defined = bytes(&ranges);
            assert_eq!(defined, bytes(&types.defined_ranges(ty)), "{form}");
            assert_eq!(form.is_dense(), defined.len() as u64 == size, "{form}");
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
            let concrete = !matches!(types.data(entered[i]), TypeData::Param(_));
            let digest = TypeDigest::of(&types, entered[i]);
            assert_eq!(digest, concrete.then_some(form.digest()), "{form}");
        }
    }
}
