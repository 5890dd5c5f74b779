//! Types of the IR, interned per module, and their layout.
//!
//! A [`Type`] is an index into its module's [`TypeTable`]; equal types have equal indices, and the
//! scalar types have the same index in every module, so `Type::F32` needs no table. Layout (size,
//! alignment, field offsets, in bytes) is that of C on a 64-bit machine, the same on the host, the
//! CPU backend and the GPU: a `#[repr(C)]` struct can be copied between them as it is.

use std::collections::HashMap;

use super::entity::{Entity, entity};

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

/// The numeric types and `bool`.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum Scalar {
    /// True or false; one byte in memory, 0 or 1.
    Bool,
    /// Signed 8-bit integer, two's complement like all signed integers here.
    I8,
    /// Signed 16-bit integer.
    I16,
    /// Signed 32-bit integer.
    I32,
    /// Signed 64-bit integer.
    I64,
    /// Unsigned 8-bit integer.
    U8,
    /// Unsigned 16-bit integer.
    U16,
    /// Unsigned 32-bit integer.
    U32,
    /// Unsigned 64-bit integer.
    U64,
    /// IEEE 754 binary16.
    F16,
    /// bfloat16: the upper half of a binary32.
    BF16,
    /// IEEE 754 binary32.
    F32,
    /// IEEE 754 binary64.
    F64,
}

impl Scalar {
    /// All scalar types, in the order of their fixed type indices.
    pub const ALL: [Scalar; 13] = [
        Scalar::Bool,
        Scalar::I8,
        Scalar::I16,
        Scalar::I32,
        Scalar::I64,
        Scalar::U8,
        Scalar::U16,
        Scalar::U32,
        Scalar::U64,
        Scalar::F16,
        Scalar::BF16,
        Scalar::F32,
        Scalar::F64,
    ];

    /// The name in the text form, which is Rust's where Rust has one.
    pub const fn name(self) -> &'static str {
        match self {
            Scalar::Bool => "bool",
            Scalar::I8 => "i8",
            Scalar::I16 => "i16",
            Scalar::I32 => "i32",
            Scalar::I64 => "i64",
            Scalar::U8 => "u8",
            Scalar::U16 => "u16",
            Scalar::U32 => "u32",
            Scalar::U64 => "u64",
            Scalar::F16 => "f16",
            Scalar::BF16 => "bf16",
            Scalar::F32 => "f32",
            Scalar::F64 => "f64",
        }
    }

    /// Size and alignment in memory, in bytes.
    pub fn bytes(self) -> u32 {
        match self {
            Scalar::Bool | Scalar::I8 | Scalar::U8 => 1,
            Scalar::I16 | Scalar::U16 | Scalar::F16 | Scalar::BF16 => 2,
            Scalar::I32 | Scalar::U32 | Scalar::F32 => 4,
            Scalar::I64 | Scalar::U64 | Scalar::F64 => 8,
        }
    }

    /// Width in bits; 1 for `bool`.
    pub fn bits(self) -> u32 {
        if self == Scalar::Bool {
            1
        } else {
            self.bytes() * 8
        }
    }

    /// Whether this is one of `i8` .. `u64`.
    pub fn is_int(self) -> bool {
        matches!(self as u8, 1..=8)
    }

    /// Whether this is one of `i8` .. `i64`.
    pub fn is_signed_int(self) -> bool {
        matches!(self as u8, 1..=4)
    }

    /// Whether this is `f16`, `bf16`, `f32` or `f64`.
    pub fn is_float(self) -> bool {
        matches!(self as u8, 9..=12)
    }

    /// Whether this is `f16` or `bf16`: stored in 16 bits, computed in `f32` and rounded.
    pub fn is_half(self) -> bool {
        matches!(self, Scalar::F16 | Scalar::BF16)
    }
}

/// Where the memory behind a pointer lies (CUDA guide, "Memory Hierarchy"; PTX ISA, "State
/// Spaces"). The numbers that LLVM gives these exist only in `codegen`.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum AddressSpace {
    /// Any of the others; found out at run time by the machine.
    Generic,
    /// Device memory, visible to all threads and to the host.
    Global,
    /// Memory of one thread block, for the block's lifetime.
    Shared,
    /// Read-only memory of a module, filled when it is loaded.
    Constant,
    /// Memory of one thread.
    Local,
    /// The kernel's parameter block: read-only, the same for all threads.
    Param,
}

impl AddressSpace {
    /// All address spaces.
    pub const ALL: [AddressSpace; 6] = [
        AddressSpace::Generic,
        AddressSpace::Global,
        AddressSpace::Shared,
        AddressSpace::Constant,
        AddressSpace::Local,
        AddressSpace::Param,
    ];

    /// The name in the text form.
    pub const fn name(self) -> &'static str {
        match self {
            AddressSpace::Generic => "generic",
            AddressSpace::Global => "global",
            AddressSpace::Shared => "shared",
            AddressSpace::Constant => "constant",
            AddressSpace::Local => "local",
            AddressSpace::Param => "param",
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
        /// What it points at.
        pointee: Type,
        /// Where that lies.
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

/// A struct type: nominal, fields in memory order.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct StructData {
    /// The type's name, for the text form and for errors.
    pub name: String,
    /// Field names and types.
    pub fields: Vec<(String, Type)>,
}

/// How many levels of a type are printed; deeper ones do not pass the verifier.
const MAX_DISPLAY_DEPTH: usize = 12;

/// Size and alignment in bytes.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Layout {
    /// Size, a multiple of `align`.
    pub size: u64,
    /// Alignment, a power of two.
    pub align: u64,
}

impl Layout {
    fn uniform(bytes: u64) -> Layout {
        Layout {
            size: bytes,
            align: bytes.max(1),
        }
    }
}

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

    /// What `ty` is. Types of another module give nonsense or `Unit`, never a panic.
    pub fn data(&self, ty: Type) -> &TypeData {
        self.types.get(ty.0 as usize).unwrap_or(&TypeData::Unit)
    }

    /// Whether `ty` is an index of this table.
    pub fn contains(&self, ty: Type) -> bool {
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
        let id = known.unwrap_or_else(|| self.structs.push(data));
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

    /// Whether `ty` is a pointer or slice through which memory can be written.
    pub fn is_mutable(&self, ty: Type) -> bool {
        matches!(
            self.data(ty),
            TypeData::Pointer { mutable: true, .. } | TypeData::Slice { mutable: true, .. }
        )
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
            flat => flat,
        };
        self.intern(data)
    }

    /// `ty` with type and const parameters replaced by arguments.
    pub fn substitute(&mut self, ty: Type, types: &[Type], consts: &[super::ConstArg]) -> Type {
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
            flat => flat,
        };
        self.intern(data)
    }

    /// Size and alignment of a value of type `ty` in memory, or `None` for unit, for a type that
    /// is still generic, and for sizes beyond 2^62 bytes. A slice in memory is an address and a
    /// 64-bit length.
    pub fn layout(&self, ty: Type) -> Option<Layout> {
        match self.data(ty) {
            TypeData::Unit | TypeData::Param(_) => None,
            TypeData::Scalar(s) => Some(Layout::uniform(s.bytes().into())),
            TypeData::Vector { element, lanes } => {
                let size = u64::from(element.bytes()) * u64::from(*lanes);
                Some(Layout {
                    size,
                    align: size.min(16),
                })
            }
            TypeData::Array {
                element,
                len: ArrayLen::Known(n),
            } => {
                let element = self.layout(*element)?;
                let size = element.size.checked_mul(*n).filter(|s| *s < 1 << 62)?;
                Some(Layout {
                    size,
                    align: element.align,
                })
            }
            TypeData::Array { .. } => None,
            TypeData::Struct(id) => self.struct_layout(*id).map(|(layout, _)| layout),
            TypeData::Pointer { .. } => Some(Layout::uniform(8)),
            TypeData::Slice { .. } => Some(Layout { size: 16, align: 8 }),
        }
    }

    /// Layout of a struct and the offset of each field, in bytes.
    pub fn struct_layout(&self, id: StructId) -> Option<(Layout, Vec<u64>)> {
        let mut size: u64 = 0;
        let mut align = 1;
        let mut offsets = Vec::new();
        for (_, ty) in &self.structs[id].fields {
            let field = self.layout(*ty)?;
            size = size.next_multiple_of(field.align);
            offsets.push(size);
            size = size.checked_add(field.size).filter(|s| *s < 1 << 62)?;
            align = align.max(field.align);
        }
        Some((
            Layout {
                size: size.next_multiple_of(align),
                align,
            },
            offsets,
        ))
    }

    /// The bytes of a value of type `ty` that are not padding, as ranges from its start.
    pub fn defined_ranges(&self, ty: Type) -> Vec<std::ops::Range<usize>> {
        let mut ranges = Vec::new();
        self.collect_ranges(ty, 0, &mut ranges);
        ranges
    }

    fn collect_ranges(&self, ty: Type, at: u64, ranges: &mut Vec<std::ops::Range<usize>>) {
        match self.data(ty) {
            TypeData::Struct(id) => {
                let Some((_, offsets)) = self.struct_layout(*id) else {
                    return;
                };
                for ((_, field), offset) in self.structs[*id].fields.iter().zip(offsets) {
                    self.collect_ranges(*field, at + offset, ranges);
                }
            }
            TypeData::Array {
                element,
                len: ArrayLen::Known(n),
            } => {
                let Some(layout) = self.layout(*element) else {
                    return;
                };
                if self.is_aggregate(*element) {
                    (0..*n)
                        .for_each(|i| self.collect_ranges(*element, at + i * layout.size, ranges));
                } else {
                    ranges.push(at as usize..(at + n * layout.size) as usize);
                }
            }
            _ => {
                let size = self.layout(ty).map_or(0, |l| l.size);
                ranges.push(at as usize..(at + size) as usize);
            }
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

fn substitute_len(len: ArrayLen, consts: &[super::ConstArg]) -> ArrayLen {
    let ArrayLen::Param(param) = len else {
        return len;
    };
    match consts.get(param.index()) {
        Some(super::ConstArg::Known(super::Constant::Int(n))) => {
            u64::try_from(*n).map_or(len, ArrayLen::Known)
        }
        Some(super::ConstArg::Param(outer)) => ArrayLen::Param(*outer),
        _ => len,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn struct_layout_is_cs() {
        let mut t = TypeTable::new();
        let f4 = t.vector(Scalar::F32, 4);
        let inner = t.array(Type::U16, 3);
        let fields = [("a", Type::U8), ("b", Type::F64), ("c", inner), ("d", f4)];
        let ty = t.intern_struct(StructData {
            name: "S".into(),
            fields: fields.iter().map(|(n, t)| (n.to_string(), *t)).collect(),
        });
        let TypeData::Struct(id) = *t.data(ty) else {
            panic!("not a struct")
        };
        let (layout, offsets) = t.struct_layout(id).unwrap();
        assert_eq!(offsets, [0, 8, 16, 32]);
        assert_eq!(
            layout,
            Layout {
                size: 48,
                align: 16
            }
        );
    }

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
