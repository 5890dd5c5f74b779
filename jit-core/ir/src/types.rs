//! Types of the IR, interned per module, and their layout.
//!
//! A [`Type`] is an index into its module's [`TypeTable`]; equal types have equal indices, and the
//! scalar types have the same index in every module, so `Type::F32` needs no table. Layout (size,
//! alignment, field offsets, in bytes) is that of C on a 64-bit machine, the same on the host, the
//! CPU backend and the GPU: a `#[repr(C)]` struct can be copied between them as it is.

mod layout;
mod leaf;
mod scalar;
mod substitute;

use std::collections::HashMap;

use super::entity::entity;

pub use layout::Layout;
pub use leaf::{LeafKind, LeafType};
pub use scalar::{AddressSpace, FloatFormat, Half, Scalar, ScalarKind};

entity! {
    /// A type parameter of a generic function, by position.
    TypeParam = "$";
    /// A const parameter of a generic function, by position.
    ConstParam = "#";
    /// A struct type of a module.
    StructId = "struct";
}

/// A type, as an index into the [`TypeTable`] of its module.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Type(u32);

impl std::fmt::Debug for Type {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.as_scalar() {
            Some(scalar) => write!(f, "{}", scalar.name()),
            None => write!(f, "type{}", self.0),
        }
    }
}

/// The length of an array type: known, or a const parameter until specialization.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub enum ArrayLen {
    /// A number of elements.
    Known(u64),
    /// The value of a const parameter of the enclosing function.
    Param(ConstParam),
}

/// What a [`Type`] is.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum TypeData {
    /// No value; the result type of a function that returns nothing.
    Unit,
    /// A number or a bool.
    Scalar(Scalar),
    /// A short vector: 2, 4, 8 or 16 lanes of a number, aligned to its size, at most 16 bytes of
    /// alignment (CUDA guide, "Built-in Vector Types").
    Vector {
        /// The type of a lane; not `bool`.
        element: Scalar,
        /// The number of lanes.
        lanes: u8,
    },
    /// A fixed array, elements one after the other.
    Array {
        /// The element type.
        element: Type,
        /// The number of elements.
        len: ArrayLen,
    },
    /// A struct with C layout.
    Struct(StructId),
    /// The address of one value, or of the first of several.
    Pointer {
        /// The type that the pointer points at.
        pointee: Type,
        /// Where the pointee lies.
        space: AddressSpace,
        /// Whether one may store through it.
        mutable: bool,
    },
    /// An address and a number of elements; indexing checks the bound.
    Slice {
        /// The element type.
        element: Type,
        /// Where the elements lie.
        space: AddressSpace,
        /// Whether one may store through it.
        mutable: bool,
        /// Whether the length takes 64 bits. Slices are narrow unless an argument has 2^32
        /// elements or more, which is a specialization of its own.
        wide: bool,
    },
    /// A type parameter of the enclosing function; gone after specialization.
    Param(TypeParam),
}

/// What a pointer or slice points at, and how.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Address {
    /// The type of the value, or of an element.
    pub pointee: Type,
    /// Where the memory lies.
    pub space: AddressSpace,
    /// Whether one may store through it.
    pub mutable: bool,
}

/// A struct type: nominal, fields in memory order.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct StructData {
    /// The type's name, for the text form and for errors.
    pub name: String,
    /// Field names and types.
    pub fields: Vec<(String, Type)>,
    /// The least alignment of a value, in bytes: 1 for C's own, else a power of two up to
    /// [`StructData::MAX_ALIGN`], as `#[repr(C, align(16))]` asks for.
    pub align: u64,
    /// What is known of the types of the host that have this form.
    pub known: HostFacts,
}

/// What whoever describes functions knows of the types of the host that a struct stands for. No part of what the
/// struct is: two structs are one whatever is known of each, and then all of it is known.
#[derive(Clone, Default, Debug)]
pub struct HostFacts(Vec<HostFact>);

/// One thing that is known of a type of the host, for who put it there.
pub type HostFact = &'static (dyn std::any::Any + Send + Sync);

impl HostFacts {
    /// The facts, one for each type of the host that has any.
    pub fn facts(&self) -> impl Iterator<Item = HostFact> {
        self.0.iter().copied()
    }

    fn extend(&mut self, other: HostFacts) {
        for fact in other.0 {
            let is_new = |known: &HostFact| !std::ptr::addr_eq(*known, fact);
            if self.0.iter().all(is_new) {
                self.0.push(fact);
            }
        }
    }
}

impl FromIterator<HostFact> for HostFacts {
    fn from_iter<I: IntoIterator<Item = HostFact>>(facts: I) -> HostFacts {
        HostFacts(facts.into_iter().collect())
    }
}

impl PartialEq for HostFacts {
    fn eq(&self, _: &HostFacts) -> bool {
        true
    }
}

impl Eq for HostFacts {}

impl std::hash::Hash for HostFacts {
    fn hash<H: std::hash::Hasher>(&self, _: &mut H) {}
}

impl StructData {
    /// The largest alignment: that of the widest access of a thread.
    pub const MAX_ALIGN: u64 = 16;

    /// A struct as C lays it out.
    ///
    /// ```
    /// use kiln_ir::{StructData, Type, TypeTable};
    ///
    /// let fields = vec![("x".to_owned(), Type::F32), ("y".to_owned(), Type::F32)];
    /// let plain = StructData::new("Point".to_owned(), fields);
    /// let aligned = StructData { align: 8, ..plain.clone() };
    /// let mut types = TypeTable::new();
    /// let (plain, aligned) = (types.intern_struct(plain), types.intern_struct(aligned));
    /// assert_eq!(types.layout(plain).map(|layout| layout.align), Some(4));
    /// assert_eq!(types.layout(aligned).map(|layout| layout.align), Some(8));
    /// ```
    pub fn new(name: String, fields: Vec<(String, Type)>) -> StructData {
        StructData {
            name,
            fields,
            align: 1,
            known: HostFacts::default(),
        }
    }
}

/// How many levels of a type are printed; deeper ones do not pass the verifier.
const MAX_DISPLAY_DEPTH: usize = 12;

impl Type {
    /// The type of nothing.
    pub const UNIT: Type = Type(0);
    /// `bool`
    pub const BOOL: Type = Type::scalar(Scalar::Bool);
    /// `i8`
    pub const I8: Type = Type::scalar(Scalar::I8);
    /// `i16`
    pub const I16: Type = Type::scalar(Scalar::I16);
    /// `i32`
    pub const I32: Type = Type::scalar(Scalar::I32);
    /// `i64`
    pub const I64: Type = Type::scalar(Scalar::I64);
    /// `u8`
    pub const U8: Type = Type::scalar(Scalar::U8);
    /// `u16`
    pub const U16: Type = Type::scalar(Scalar::U16);
    /// `u32`
    pub const U32: Type = Type::scalar(Scalar::U32);
    /// `u64`
    pub const U64: Type = Type::scalar(Scalar::U64);
    /// `f16`
    pub const F16: Type = Type::scalar(Scalar::F16);
    /// `bf16`
    pub const BF16: Type = Type::scalar(Scalar::BF16);
    /// `f32`
    pub const F32: Type = Type::scalar(Scalar::F32);
    /// `f64`
    pub const F64: Type = Type::scalar(Scalar::F64);

    /// The type of a scalar, the same in every module.
    pub const fn scalar(scalar: Scalar) -> Type {
        Type(1 + scalar as u32)
    }

    /// The scalar that this type is, if it is one.
    pub fn as_scalar(self) -> Option<Scalar> {
        match self.0 {
            0 => None,
            n => Scalar::ALL.get(n as usize - 1).copied(),
        }
    }

    /// The position in the type table.
    pub(super) fn index(self) -> usize {
        self.0 as usize
    }

    /// Whether this is `i8` .. `u64`.
    pub fn is_int(self) -> bool {
        self.as_scalar().is_some_and(Scalar::is_int)
    }

    /// Whether this is a floating-point scalar.
    pub fn is_float(self) -> bool {
        self.as_scalar().is_some_and(Scalar::is_float)
    }
}

/// The types of one module.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TypeTable {
    types: Vec<TypeData>,
    index: HashMap<TypeData, Type>,
    structs: super::PrimaryMap<StructId, StructData>,
}

impl Default for TypeTable {
    fn default() -> Self {
        Self::new()
    }
}

impl TypeTable {
    /// A table that holds unit and the scalars.
    pub fn new() -> Self {
        let mut table = Self {
            types: Vec::new(),
            index: HashMap::new(),
            structs: super::PrimaryMap::new(),
        };
        table.intern(TypeData::Unit);
        for scalar in Scalar::ALL {
            let ty = table.intern(TypeData::Scalar(scalar));
            debug_assert_eq!(ty, Type::scalar(scalar));
        }
        table
    }

    /// The type with this data, entered if it is new.
    pub fn intern(&mut self, data: TypeData) -> Type {
        if let Some(&ty) = self.index.get(&data) {
            return ty;
        }
        let ty = Type(self.types.len() as u32);
        self.types.push(data.clone());
        self.index.insert(data, ty);
        ty
    }

    /// The type with this data, if it was entered.
    pub fn find(&self, data: &TypeData) -> Option<Type> {
        self.index.get(data).copied()
    }

    /// What `ty` is. Types of another module give nonsense or `Unit`, never a panic.
    pub fn data(&self, ty: Type) -> &TypeData {
        self.types.get(ty.0 as usize).unwrap_or(&TypeData::Unit)
    }

    /// Whether `ty` is an index of this table.
    pub(crate) fn contains(&self, ty: Type) -> bool {
        (ty.0 as usize) < self.types.len()
    }

    /// All types with what they are, in the order of entry.
    pub fn iter(&self) -> impl Iterator<Item = (Type, &TypeData)> {
        self.types
            .iter()
            .enumerate()
            .map(|(i, data)| (Type(i as u32), data))
    }

    /// The struct type with this name and these fields, entered if it is new.
    pub fn intern_struct(&mut self, data: StructData) -> Type {
        let known = self
            .structs
            .iter()
            .find(|(_, s)| **s == data)
            .map(|(id, _)| id);
        let id = match known {
            Some(id) => {
                self.structs[id].known.extend(data.known);
                id
            }
            None => self.structs.push(data),
        };
        self.intern(TypeData::Struct(id))
    }

    /// The struct `id`.
    pub fn struct_data(&self, id: StructId) -> &StructData {
        &self.structs[id]
    }

    /// All struct types, in the order of entry.
    pub fn structs(&self) -> impl Iterator<Item = (StructId, &StructData)> {
        self.structs.iter()
    }

    /// The struct that `ty` is, if it is one.
    pub fn as_struct(&self, ty: Type) -> Option<&StructData> {
        match self.data(ty) {
            TypeData::Struct(id) => self.structs.get(*id),
            _ => None,
        }
    }

    /// A pointer type.
    pub fn pointer(&mut self, pointee: Type, space: AddressSpace, mutable: bool) -> Type {
        self.intern(TypeData::Pointer {
            pointee,
            space,
            mutable,
        })
    }

    /// A slice type with a 32-bit length.
    pub fn slice(&mut self, element: Type, space: AddressSpace, mutable: bool) -> Type {
        self.intern(TypeData::Slice {
            element,
            space,
            mutable,
            wide: false,
        })
    }

    /// A pointer or slice type moved to another address space; `None` for other types.
    pub fn in_space(&mut self, ty: Type, space: AddressSpace) -> Option<Type> {
        let data = match *self.data(ty) {
            TypeData::Pointer {
                pointee, mutable, ..
            } => TypeData::Pointer {
                pointee,
                space,
                mutable,
            },
            TypeData::Slice {
                element,
                mutable,
                wide,
                ..
            } => TypeData::Slice {
                element,
                space,
                mutable,
                wide,
            },
            _ => return None,
        };
        Some(self.intern(data))
    }

    /// A fixed array type.
    pub fn array(&mut self, element: Type, len: u64) -> Type {
        self.intern(TypeData::Array {
            element,
            len: ArrayLen::Known(len),
        })
    }

    /// A short vector type.
    pub fn vector(&mut self, element: Scalar, lanes: u8) -> Type {
        self.intern(TypeData::Vector { element, lanes })
    }

    /// The pointee, address space and mutability of a pointer type.
    pub fn as_pointer(&self, ty: Type) -> Option<(Type, AddressSpace, bool)> {
        match *self.data(ty) {
            TypeData::Pointer {
                pointee,
                space,
                mutable,
            } => Some((pointee, space, mutable)),
            _ => None,
        }
    }

    /// What a pointer or slice points at, and how.
    pub fn address(&self, ty: Type) -> Option<Address> {
        match *self.data(ty) {
            TypeData::Pointer {
                pointee,
                space,
                mutable,
            }
            | TypeData::Slice {
                element: pointee,
                space,
                mutable,
                ..
            } => Some(Address {
                pointee,
                space,
                mutable,
            }),
            _ => None,
        }
    }

    /// Whether `ty` is a pointer or a slice.
    pub fn is_reference(&self, ty: Type) -> bool {
        self.address(ty).is_some()
    }

    /// Whether there are pointers or slices in values of `ty`.
    pub fn has_references(&self, ty: Type) -> bool {
        match self.data(ty) {
            TypeData::Pointer { .. } | TypeData::Slice { .. } => true,
            TypeData::Struct(id) => {
                let mut fields = self.struct_data(*id).fields.iter();
                fields.any(|(_, ty)| self.has_references(*ty))
            }
            TypeData::Array { element, .. } => self.has_references(*element),
            TypeData::Unit | TypeData::Scalar(_) | TypeData::Vector { .. } | TypeData::Param(_) => {
                false
            }
        }
    }

    /// Whether `ty` is a pointer.
    pub fn is_pointer(&self, ty: Type) -> bool {
        self.as_pointer(ty).is_some()
    }

    /// Whether `ty` is a slice.
    pub fn is_slice(&self, ty: Type) -> bool {
        self.as_slice(ty).is_some()
    }

    /// What a slice points at, and whether its length takes 64 bits.
    pub fn as_slice(&self, ty: Type) -> Option<(Address, bool)> {
        match *self.data(ty) {
            TypeData::Slice { wide, .. } => Some((self.address(ty)?, wide)),
            _ => None,
        }
    }

    /// The element type and the length of an array type.
    pub fn as_array(&self, ty: Type) -> Option<(Type, ArrayLen)> {
        match *self.data(ty) {
            TypeData::Array { element, len } => Some((element, len)),
            _ => None,
        }
    }

    /// The type of a lane and the number of lanes of a vector type.
    pub fn as_vector(&self, ty: Type) -> Option<(Scalar, u8)> {
        match *self.data(ty) {
            TypeData::Vector { element, lanes } => Some((element, lanes)),
            _ => None,
        }
    }

    /// Whether a type is `u64x2`, the 16 bytes that are exchanged and compared and swapped in one step.
    pub fn is_word_pair(&self, ty: Type) -> bool {
        self.as_vector(ty) == Some((Scalar::U64, 2))
    }

    /// The type and the number of what an index chooses from behind a pointer: the elements of an array or the
    /// lanes of a vector.
    pub fn as_indexed(&self, ty: Type) -> Option<(Type, ArrayLen)> {
        match self.as_vector(ty) {
            Some((lane, lanes)) => Some((Type::scalar(lane), ArrayLen::Known(lanes.into()))),
            None => self.as_array(ty),
        }
    }

    /// Whether `ty` is a pointer or slice through which memory can be written.
    pub fn is_mutable(&self, ty: Type) -> bool {
        self.address(ty).is_some_and(|address| address.mutable)
    }

    /// The type of a field, element or lane; `None` if there is no such part. How many elements an array
    /// has may be open until specialization.
    pub fn part(&self, whole: Type, index: u32) -> Option<Type> {
        match *self.data(whole) {
            TypeData::Struct(id) => {
                let fields = &self.structs.get(id)?.fields;
                fields.get(index as usize).map(|(_, ty)| *ty)
            }
            TypeData::Vector { element, lanes } => {
                (index < u32::from(lanes)).then_some(Type::scalar(element))
            }
            TypeData::Array { element, len } => match len {
                ArrayLen::Known(n) => (u64::from(index) < n).then_some(element),
                ArrayLen::Param(_) => Some(element),
            },
            _ => None,
        }
    }

    /// Whether `ty` is a struct or an array: passed by reference or by value as a whole.
    pub fn is_aggregate(&self, ty: Type) -> bool {
        matches!(self.data(ty), TypeData::Struct(_) | TypeData::Array { .. })
    }

    /// Whether a type or const parameter occurs in `ty`.
    pub fn is_generic(&self, ty: Type) -> bool {
        match self.data(ty) {
            TypeData::Param(_)
            | TypeData::Array {
                len: ArrayLen::Param(_),
                ..
            } => true,
            TypeData::Array { element, .. } | TypeData::Slice { element, .. } => {
                self.is_generic(*element)
            }
            TypeData::Pointer { pointee, .. } => self.is_generic(*pointee),
            TypeData::Struct(id) => self.structs[*id]
                .fields
                .iter()
                .any(|(_, ty)| self.is_generic(*ty)),
            TypeData::Unit | TypeData::Scalar(_) | TypeData::Vector { .. } => false,
        }
    }

    /// The type as text: `f32`, `[f32; 16]`, `@Point`, `slice<global, mut f32>` ...
    pub fn display(&self, ty: Type) -> String {
        self.display_nested(ty, 0)
    }

    /// A table may hold a type that contains itself, by a mistake that the verifier reports; the
    /// limit lets it be printed.
    fn display_nested(&self, ty: Type, depth: usize) -> String {
        if depth > MAX_DISPLAY_DEPTH {
            return "...".to_owned();
        }
        let display = |inner: Type| self.display_nested(inner, depth + 1);
        match self.data(ty) {
            TypeData::Unit => "()".to_owned(),
            TypeData::Scalar(s) => s.name().to_owned(),
            TypeData::Vector { element, lanes } => format!("{}x{lanes}", element.name()),
            TypeData::Array { element, len } => match len {
                ArrayLen::Known(n) => format!("[{}; {n}]", display(*element)),
                ArrayLen::Param(p) => format!("[{}; {p}]", display(*element)),
            },
            TypeData::Struct(id) => match self.structs.get(*id) {
                Some(s) => format!("@{}", s.name),
                None => format!("{id}"),
            },
            TypeData::Pointer {
                pointee,
                space,
                mutable,
            } => {
                let m = if *mutable { "mut " } else { "" };
                format!("ptr<{}, {m}{}>", space.name(), display(*pointee))
            }
            TypeData::Slice {
                element,
                space,
                mutable,
                wide,
            } => {
                let m = if *mutable { "mut " } else { "" };
                let w = if *wide { ", wide" } else { "" };
                format!("slice<{}, {m}{}{w}>", space.name(), display(*element))
            }
            TypeData::Param(p) => p.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_types_are_equal_indices() {
        let mut t = TypeTable::new();
        let a = t.slice(Type::F32, AddressSpace::Global, true);
        let b = t.slice(Type::F32, AddressSpace::Global, true);
        assert_eq!(a, b);
        assert_eq!(t.display(a), "slice<global, mut f32>");
        assert_ne!(a, t.slice(Type::F32, AddressSpace::Global, false));
    }
}
