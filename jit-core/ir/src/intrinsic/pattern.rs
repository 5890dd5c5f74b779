//! Patterns of types: what the parameters and the result of an intrinsic can be.

use std::fmt;

use crate::types::{AddressSpace, ArrayLen, Scalar, StructData, Type, TypeData, TypeTable};

/// What a parameter of an intrinsic accepts, and what its result is. Rows with other patterns than scalars
/// mean a function of the IR ([`Meaning::Body`](super::Meaning::Body)).
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub enum TypePattern {
    /// This scalar type.
    Exact(Scalar),
    /// Any of these scalar types.
    OneOf(&'static [Scalar]),
    /// One of these scalar types, or a vector, an array or a struct of nothing else, of at most
    /// [`MAX_EACH`](TypePattern::MAX_EACH) numbers: the row is executed for each of them, and a result of the chosen
    /// type is made of what it gives. In a legal module there is an operation for each.
    Each(&'static [Scalar]),
    /// The type of the parameter with this position, one that comes before.
    SameAs(u8),
    /// The type that the arguments choose, which selects the cell: that in the first parameter that
    /// leaves a choice. Of a pointer to one of several types it is what it points to.
    Chosen,
    /// A vector of so many lanes of a scalar type.
    Vector(&'static TypePattern, u8),
    /// An array of so many elements.
    Array(&'static TypePattern, u64),
    /// Several values, as Rust's tuples are in kernels: several results.
    Tuple(&'static [TypePattern]),
    /// An address.
    Pointer {
        /// Of what.
        to: &'static TypePattern,
        /// In which memory.
        space: AddressSpace,
        /// Whether what is there may be written.
        mutable: bool,
    },
    /// No value; for results only.
    Unit,
}

/// What a row is called with.
#[derive(Copy, Clone)]
pub(super) struct Given<'a> {
    /// The types of the arguments.
    pub(super) args: &'a [Type],
    /// The type that the arguments choose.
    pub(super) chosen: Option<Type>,
}

/// The name of the struct that a tuple is; its fields are numbered.
const TUPLE: &str = "tuple";

impl TypePattern {
    /// `f32` and `f64`.
    pub const FLOAT: TypePattern = TypePattern::OneOf(&[Scalar::F32, Scalar::F64]);
    /// Integers of 32 and 64 bits.
    pub const INT32_64: TypePattern =
        TypePattern::OneOf(&[Scalar::I32, Scalar::U32, Scalar::I64, Scalar::U64]);
    /// How many numbers a value that [`TypePattern::Each`] takes can have.
    pub const MAX_EACH: u64 = 1024;

    /// Whether the pattern stands for one scalar value, or none, where code is made of it.
    pub const fn is_scalar(self) -> bool {
        match self {
            TypePattern::Exact(_)
            | TypePattern::OneOf(_)
            | TypePattern::Each(_)
            | TypePattern::SameAs(_)
            | TypePattern::Chosen
            | TypePattern::Unit => true,
            TypePattern::Vector(..)
            | TypePattern::Array(..)
            | TypePattern::Tuple(_)
            | TypePattern::Pointer { .. } => false,
        }
    }

    /// Whether the pattern leaves a choice of types.
    pub const fn has_choice(self) -> bool {
        match self {
            TypePattern::OneOf(_) | TypePattern::Each(_) => true,
            TypePattern::Vector(inner, _)
            | TypePattern::Array(inner, _)
            | TypePattern::Pointer { to: inner, .. } => inner.has_choice(),
            TypePattern::Tuple(mut parts) => {
                while let [part, rest @ ..] = parts {
                    if part.has_choice() {
                        return true;
                    }
                    parts = rest;
                }
                false
            }
            TypePattern::Exact(_)
            | TypePattern::SameAs(_)
            | TypePattern::Chosen
            | TypePattern::Unit => false,
        }
    }

    /// Whether all that it is made of holds together, behind so many parameters of a row of `params`: what refers
    /// to itself or to one that comes later would fit anything.
    pub(crate) fn refers(self, before: usize, params: usize) -> bool {
        match self {
            TypePattern::SameAs(i) => usize::from(i) < before,
            TypePattern::Chosen => params > 0,
            TypePattern::OneOf(list) | TypePattern::Each(list) => !list.is_empty(),
            TypePattern::Exact(_) | TypePattern::Unit => true,
            TypePattern::Vector(inner, _)
            | TypePattern::Array(inner, _)
            | TypePattern::Pointer { to: inner, .. } => inner.refers(before, params),
            TypePattern::Tuple(parts) => parts.iter().all(|part| part.refers(before, params)),
        }
    }

    /// The type inside a type of this pattern that selects a cell: its first choice, or its first scalar.
    pub(super) fn inside(self, types: &TypeTable, ty: Type) -> Option<Type> {
        match (self, types.data(ty)) {
            (TypePattern::Vector(..), TypeData::Vector { element, .. }) => {
                Some(Type::scalar(*element))
            }
            (TypePattern::Array(inner, _), TypeData::Array { element, .. }) => {
                inner.inside(types, *element)
            }
            (TypePattern::Pointer { to, .. }, TypeData::Pointer { pointee, .. }) => {
                to.inside(types, *pointee)
            }
            (TypePattern::Tuple(parts), _) => {
                let at = parts.iter().position(|part| part.has_choice());
                let at = at.unwrap_or(0);
                parts.get(at)?.inside(types, types.part(ty, at as u32)?)
            }
            (
                TypePattern::Vector(..) | TypePattern::Array(..) | TypePattern::Pointer { .. },
                TypeData::Param(_),
            ) => None,
            _ => Some(ty),
        }
    }

    /// The type of an address that fits in place of one of type `actual`, which may be in other memory.
    pub(crate) fn address_type(self, types: &TypeTable, actual: Type) -> Option<Type> {
        let TypePattern::Pointer { space, mutable, .. } = self else {
            return None;
        };
        let (pointee, ..) = types.as_pointer(actual)?;
        types.find(&TypeData::Pointer {
            pointee,
            space,
            mutable,
        })
    }

    /// Whether a value of this type fits. What is open until specialization does.
    pub(super) fn accepts(self, types: &TypeTable, actual: Type, given: Given<'_>) -> bool {
        match (self, types.data(actual)) {
            (_, TypeData::Param(_)) => true,
            (TypePattern::Exact(s), _) => actual == Type::scalar(s),
            (TypePattern::OneOf(list), _) => actual.as_scalar().is_some_and(|s| list.contains(&s)),
            (TypePattern::Each(list), _) => {
                types.leaf_count(actual) <= TypePattern::MAX_EACH
                    && types.is_made_of(actual, &|scalar| list.contains(&scalar))
            }
            (TypePattern::SameAs(i), _) => given.args.get(usize::from(i)) == Some(&actual),
            (TypePattern::Chosen, _) => given.chosen == Some(actual),
            (TypePattern::Unit, _) => actual == Type::UNIT,
            (TypePattern::Vector(inner, n), TypeData::Vector { element, lanes }) => {
                n == *lanes && inner.accepts(types, Type::scalar(*element), given)
            }
            (TypePattern::Array(inner, n), TypeData::Array { element, len }) => {
                let fits = match len {
                    ArrayLen::Known(len) => n == *len,
                    ArrayLen::Param(_) => true,
                };
                fits && inner.accepts(types, *element, given)
            }
            (
                TypePattern::Pointer { to, space, mutable },
                TypeData::Pointer {
                    pointee,
                    space: actual_space,
                    mutable: actual_mutable,
                },
            ) => {
                let same = (space, mutable) == (*actual_space, *actual_mutable);
                same && to.accepts(types, *pointee, given)
            }
            (TypePattern::Tuple(parts), TypeData::Struct(id)) => {
                let data = types.struct_data(*id);
                let fits = |(i, (part, (name, ty))): (usize, (&TypePattern, &(String, Type)))| {
                    *name == i.to_string() && part.accepts(types, *ty, given)
                };
                // Its name says nothing: tuples of other types in the module have it, too.
                parts.len() == data.fields.len()
                    && parts.iter().zip(&data.fields).enumerate().all(fits)
            }
            _ => false,
        }
    }

    /// What the row takes beside these arguments, for those who brought something else.
    pub(super) fn wanted(self, types: &TypeTable, given: Given<'_>) -> String {
        let referred = match self {
            TypePattern::SameAs(i) => given.args.get(usize::from(i)).copied(),
            TypePattern::Chosen => given.chosen,
            TypePattern::Exact(_)
            | TypePattern::OneOf(_)
            | TypePattern::Each(_)
            | TypePattern::Vector(..)
            | TypePattern::Array(..)
            | TypePattern::Tuple(_)
            | TypePattern::Pointer { .. }
            | TypePattern::Unit => None,
        };
        match referred {
            Some(ty) => format!("{}, {self}", types.display(ty)),
            None => self.to_string(),
        }
    }

    /// The type that a result of this pattern has, if it is made of no other.
    pub(super) fn scalar_type(self, given: Given<'_>) -> Option<Type> {
        match self {
            TypePattern::Exact(s) => Some(Type::scalar(s)),
            TypePattern::OneOf(list) | TypePattern::Each(list) => {
                list.first().map(|&s| Type::scalar(s))
            }
            TypePattern::SameAs(i) => given.args.get(usize::from(i)).copied(),
            TypePattern::Chosen => given.chosen,
            TypePattern::Unit => Some(Type::UNIT),
            TypePattern::Vector(..)
            | TypePattern::Array(..)
            | TypePattern::Tuple(_)
            | TypePattern::Pointer { .. } => None,
        }
    }

    /// The type that a result of this pattern has.
    pub(super) fn type_of(self, types: &mut TypeTable, given: Given<'_>) -> Option<Type> {
        Some(match self {
            TypePattern::Exact(_)
            | TypePattern::OneOf(_)
            | TypePattern::Each(_)
            | TypePattern::SameAs(_)
            | TypePattern::Chosen
            | TypePattern::Unit => self.scalar_type(given)?,
            TypePattern::Vector(inner, lanes) => {
                let element = inner.type_of(types, given)?.as_scalar()?;
                types.vector(element, lanes)
            }
            TypePattern::Array(inner, len) => {
                let element = inner.type_of(types, given)?;
                types.array(element, len)
            }
            TypePattern::Pointer { to, space, mutable } => {
                let pointee = to.type_of(types, given)?;
                types.pointer(pointee, space, mutable)
            }
            TypePattern::Tuple(parts) => {
                let mut fields = Vec::new();
                for (i, part) in parts.iter().enumerate() {
                    fields.push((i.to_string(), part.type_of(types, given)?));
                }
                types.intern_struct(StructData::new(TUPLE.to_owned(), fields))
            }
        })
    }
}

impl fmt::Display for TypePattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            TypePattern::Exact(scalar) => f.write_str(scalar.name()),
            TypePattern::OneOf(list) if Scalar::ALL.iter().all(|s| list.contains(s)) => {
                f.write_str("any scalar")
            }
            TypePattern::OneOf(list) => {
                let names: Vec<&str> = list.iter().map(|scalar| scalar.name()).collect();
                match names.as_slice() {
                    [first @ .., last] if !first.is_empty() => {
                        write!(f, "{} or {last}", first.join(", "))
                    }
                    all => f.write_str(&all.join(", ")),
                }
            }
            TypePattern::Each(list) => write!(
                f,
                "{}, or a struct, array or vector of at most {} of them",
                TypePattern::OneOf(list),
                TypePattern::MAX_EACH
            ),
            TypePattern::SameAs(i) => write!(f, "the type of argument {}", i + 1),
            TypePattern::Chosen => f.write_str("the type in the other arguments"),
            TypePattern::Vector(inner, lanes) => write!(f, "a vector of {lanes} of {inner}"),
            TypePattern::Array(inner, len) => write!(f, "an array of {len} of {inner}"),
            TypePattern::Tuple(parts) => {
                let parts: Vec<String> = parts.iter().map(TypePattern::to_string).collect();
                write!(f, "({})", parts.join(", "))
            }
            TypePattern::Pointer { to, space, mutable } => {
                let mutable = if mutable { "mut " } else { "" };
                write!(f, "ptr<{}, {mutable}{to}>", space.name())
            }
            TypePattern::Unit => f.write_str("no value"),
        }
    }
}
