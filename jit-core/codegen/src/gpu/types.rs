//! IR types as LLVM types, and the numbers LLVM gives address spaces.
//!
//! A type has two forms. The *value* form is what instructions compute with: `bool` is `i1`, a
//! slice is no LLVM value but a pointer and a length side by side. The *memory* form is what
//! structs, arrays and addresses hold: `bool` is `i8`, a slice is `{ptr, i64}`, a vector of more
//! than 16 bytes is an array of vectors of 16, because LLVM would align it to its size.
//! Offsets of LLVM's structs are compared with ours once per type; a difference is an error.

use std::cell::RefCell;
use std::collections::HashMap;

use inkwell::context::Context;
use inkwell::targets::TargetData;
use inkwell::types::{BasicType as _, BasicTypeEnum, FloatType, IntType, PointerType, StructType};

use kiln_ir::legal::{LegalTypes, Proved as _};
use kiln_ir::{AddressSpace, ArrayLen, Layout, Scalar, StructId, Type, TypeData};

use crate::hooks::lanes_per_piece;
use crate::llvm::error::BackendError;

/// LLVM's number of an address space (LLVM, "User Guide for NVPTX Back-end", Address Spaces).
///
/// Parameter space is generic here: LLVM finds the loads that can be `ld.param` by itself, and a
/// callee that is not inlined cannot read its caller's parameters through `ld.param`.
pub(crate) fn space_number(space: AddressSpace) -> u16 {
    match space {
        AddressSpace::Generic | AddressSpace::Param => 0,
        AddressSpace::Global => 1,
        AddressSpace::Shared => 3,
        AddressSpace::Constant => 4,
        AddressSpace::Local => 5,
    }
}

/// The types of one module in LLVM.
pub(crate) struct TypeLowering<'a, 'ctx> {
    context: &'ctx Context,
    table: LegalTypes<'a>,
    data: TargetData,
    memory: RefCell<HashMap<Type, BasicTypeEnum<'ctx>>>,
}

impl<'a, 'ctx> TypeLowering<'a, 'ctx> {
    /// For the types of `table`, with the target's sizes and alignments.
    pub(crate) fn new(context: &'ctx Context, table: LegalTypes<'a>, data: TargetData) -> Self {
        TypeLowering {
            context,
            table,
            data,
            memory: RefCell::default(),
        }
    }

    /// The IR's types.
    pub(crate) fn table(&self) -> LegalTypes<'a> {
        self.table
    }

    /// Size and alignment in memory.
    pub(crate) fn layout(&self, ty: Type) -> Layout {
        self.table.layout_of(ty)
    }

    /// `ptr addrspace(n)`.
    pub(crate) fn pointer(&self, space: AddressSpace) -> PointerType<'ctx> {
        self.context.ptr_type(space_number(space).into())
    }

    /// The integer type of a width in bits: 1, 8, 16, 32 or 64.
    pub(crate) fn int(&self, bits: u32) -> IntType<'ctx> {
        match bits {
            1 => self.context.bool_type(),
            8 => self.context.i8_type(),
            16 => self.context.i16_type(),
            32 => self.context.i32_type(),
            _ => self.context.i64_type(),
        }
    }

    /// The type of a float; `f32` for what is not a float.
    pub(crate) fn float(&self, scalar: Scalar) -> FloatType<'ctx> {
        match scalar {
            Scalar::F16 => self.context.f16_type(),
            Scalar::BF16 => self.context.bf16_type(),
            Scalar::F64 => self.context.f64_type(),
            Scalar::F32
            | Scalar::Bool
            | Scalar::I8
            | Scalar::I16
            | Scalar::I32
            | Scalar::I64
            | Scalar::U8
            | Scalar::U16
            | Scalar::U32
            | Scalar::U64 => self.context.f32_type(),
        }
    }

    /// The value form of a scalar.
    pub(crate) fn scalar(&self, scalar: Scalar) -> BasicTypeEnum<'ctx> {
        if scalar.is_float() {
            self.float(scalar).into()
        } else {
            self.int(scalar.bits()).into()
        }
    }

    /// The value form of a type; slices have none.
    pub(crate) fn value(&self, ty: Type) -> Result<BasicTypeEnum<'ctx>, BackendError> {
        match *self.table.data(ty) {
            TypeData::Scalar(scalar) => Ok(self.scalar(scalar)),
            TypeData::Vector { element, lanes } => Ok(self.vector(element, lanes)),
            TypeData::Slice { .. } => Err(self.error(ty, "is not a single LLVM value")),
            TypeData::Unit
            | TypeData::Array { .. }
            | TypeData::Struct(_)
            | TypeData::Pointer { .. }
            | TypeData::Param(_) => self.memory(ty),
        }
    }

    /// The type of a load or store of a single value: the value form, save that `bool` is a byte.
    pub(crate) fn access(&self, ty: Type) -> Result<BasicTypeEnum<'ctx>, BackendError> {
        if ty == Type::BOOL {
            Ok(self.int(8).into())
        } else {
            self.value(ty)
        }
    }

    /// The type of a slice's length.
    pub(crate) fn slice_length(&self, wide: bool) -> IntType<'ctx> {
        self.int(if wide { 64 } else { 32 })
    }

    /// The memory form of a slice.
    pub(crate) fn slice_memory(&self, space: AddressSpace) -> StructType<'ctx> {
        let fields = [self.pointer(space).into(), self.int(64).into()];
        self.context.struct_type(&fields, false)
    }

    /// The memory form of a type.
    pub(crate) fn memory(&self, ty: Type) -> Result<BasicTypeEnum<'ctx>, BackendError> {
        if let Some(&known) = self.memory.borrow().get(&ty) {
            return Ok(known);
        }
        let made = self.make_memory(ty)?;
        self.memory.borrow_mut().insert(ty, made);
        Ok(made)
    }

    fn make_memory(&self, ty: Type) -> Result<BasicTypeEnum<'ctx>, BackendError> {
        match *self.table.data(ty) {
            TypeData::Scalar(scalar) if scalar.is_bool() => Ok(self.int(8).into()),
            TypeData::Scalar(scalar) => Ok(self.scalar(scalar)),
            TypeData::Vector { element, lanes } => {
                let Some(piece) = lanes_per_piece(element, lanes) else {
                    return Ok(self.vector(element, lanes));
                };
                let pieces = u32::from(lanes / piece);
                Ok(self.vector(element, piece).array_type(pieces).into())
            }
            TypeData::Array {
                element,
                len: ArrayLen::Known(len),
            } => {
                let len = u32::try_from(len)
                    .map_err(|_| self.error(ty, "has 2^32 elements or more; use a slice"))?;
                Ok(self.memory(element)?.array_type(len).into())
            }
            TypeData::Struct(id) => self.struct_memory(ty, id),
            TypeData::Pointer { space, .. } => Ok(self.pointer(space).into()),
            TypeData::Slice { space, .. } => Ok(self.slice_memory(space).into()),
            TypeData::Unit | TypeData::Array { .. } | TypeData::Param(_) => {
                Err(self.error(ty, "has no place in memory"))
            }
        }
    }

    /// An LLVM vector.
    pub(crate) fn vector(&self, element: Scalar, lanes: u8) -> BasicTypeEnum<'ctx> {
        match self.scalar(element) {
            BasicTypeEnum::FloatType(t) => t.vec_type(lanes.into()).into(),
            // A vector's element is a number.
            _ => self.int(element.bits()).vec_type(lanes.into()).into(),
        }
    }

    /// The struct, if LLVM puts every field where we do.
    fn struct_memory(&self, ty: Type, id: StructId) -> Result<BasicTypeEnum<'ctx>, BackendError> {
        let data = self.table.struct_data(id);
        let fields = data.fields.iter().map(|(_, field)| self.memory(*field));
        let mut fields = fields.collect::<Result<Vec<BasicTypeEnum<'ctx>>, _>>()?;
        // No bytes, but the alignment, so that LLVM puts the struct where we do wherever it is inside of another.
        match data.align {
            2 | 4 | 8 => fields.push(self.int(8 * data.align as u32).array_type(0).into()),
            16 => fields.push(self.int(32).vec_type(4).array_type(0).into()),
            _ => {}
        }
        let made = self.context.struct_type(&fields, false);
        let offsets = self
            .table
            .field_offsets(ty)
            .proved("the layout of a struct");
        let agrees = offsets
            .iter()
            .enumerate()
            .all(|(i, &offset)| self.data.offset_of_element(&made, i as u32) == Some(offset));
        if agrees && self.data.get_abi_size(&made) == self.layout(ty).size {
            Ok(made.into())
        } else {
            Err(self.error(ty, "is laid out in another way by LLVM"))
        }
    }

    fn error(&self, ty: Type, what: &str) -> BackendError {
        let name = self.table.display(ty);
        BackendError::new("lower", format!("type `{name}` {what}"))
    }
}
