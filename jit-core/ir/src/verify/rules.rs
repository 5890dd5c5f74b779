//! The list of all operations and the rule of each.
//!
//! A rule gives the type of the result that an instruction must have (unit: none), or says what is
//! wrong with its operands. It is told the type that the result has, which decides where operands
//! alone do not: for constants, casts, and what makes memory.

use super::Checker;
use super::table::TypeFacts;
use crate::{
    AddressSpace, Entity, Function, InstData, Module, OperandRole, Type, TypeBound, TypeData,
    TypeTable, Value,
};

/// The rules, for one function whose entities exist.
pub(super) struct Rules<'c> {
    pub(super) checker: &'c Checker<'c>,
    pub(super) module: &'c Module,
    pub(super) types: &'c TypeTable,
    pub(super) function: &'c Function,
}

/// The type of the result, or what is wrong.
pub(super) type Rule = Result<Type, String>;

impl<'c> Rules<'c> {
    pub(super) fn new<'m: 'c>(checker: &'c Checker<'m>, function: &'c Function) -> Self {
        Rules {
            checker,
            module: checker.module,
            types: &checker.module.types,
            function,
        }
    }

    pub(super) fn ty(&self, value: Value) -> Type {
        self.function.type_of(value)
    }

    pub(super) fn name(&self, ty: Type) -> String {
        self.types.display(ty)
    }

    pub(super) fn facts(&self, ty: Type) -> TypeFacts {
        self.checker.types[ty.index()]
    }

    /// The bound of a type parameter.
    pub(super) fn bound(&self, ty: Type) -> Option<TypeBound> {
        match self.types.data(ty) {
            TypeData::Param(p) => self.function.type_params.get(p.index()).map(|p| p.bound),
            _ => None,
        }
    }

    /// A number, or a parameter that stands for one.
    pub(super) fn is_number(&self, ty: Type) -> bool {
        match self.bound(ty) {
            Some(bound) => bound != TypeBound::Any,
            None => ty.is_int() || ty.is_float(),
        }
    }

    /// An integer, or a parameter that stands for one.
    pub(super) fn is_integer(&self, ty: Type) -> bool {
        ty.is_int() || self.bound(ty) == Some(TypeBound::Int)
    }

    /// `Err` saying what is taken, unless it holds.
    pub(super) fn expect(&self, holds: bool, taken: &str, ty: Type) -> Result<(), String> {
        if holds {
            Ok(())
        } else {
            Err(format!("{taken}, not `{}`", self.name(ty)))
        }
    }

    /// `Err` naming what it is about, unless the types are one.
    fn expect_same(&self, what: &OperandRole<'_>, wanted: Type, given: Type) -> Result<(), String> {
        if wanted == given {
            return Ok(());
        }
        let (wanted, given) = (self.name(wanted), self.name(given));
        Err(format!("{what} is a `{wanted}`, not `{given}`"))
    }

    pub(super) fn pointer(&self, ptr: Value) -> Result<(Type, AddressSpace, bool), String> {
        let ty = self.ty(ptr);
        let pointer = self.types.as_pointer(ty);
        pointer.ok_or_else(|| format!("an address is a pointer, not `{}`", self.name(ty)))
    }

    pub(super) fn slice(&self, slice: Value) -> Result<(Type, AddressSpace, bool, bool), String> {
        let ty = self.ty(slice);
        match self.types.as_slice(ty) {
            Some((at, wide)) => Ok((at.pointee, at.space, at.mutable, wide)),
            None => Err(format!("it takes a slice, not `{}`", self.name(ty))),
        }
    }

    pub(super) fn index(&self, index: Value) -> Result<(), String> {
        let ty = self.ty(index);
        self.expect(self.is_integer(ty), "an index is an integer", ty)
    }

    /// The rule of the operation, then those of operands that go to something of a type.
    pub(super) fn check(&self, data: &InstData, result: Type) -> Rule {
        let given = self.operation(data, result)?;
        for wanted in self.function.operand_types(self.module, data, result) {
            self.expect_same(&wanted.role, wanted.ty, self.ty(wanted.value))?;
        }
        Ok(given)
    }

    // flat match
    fn operation(&self, data: &InstData, result: Type) -> Rule {
        match *data {
            InstData::Const(constant) => self.constant(constant, result),
            InstData::ConstParam(param) => {
                let params = &self.function.const_params;
                params
                    .get(param.index())
                    .map(|p| p.ty)
                    .ok_or_else(|| format!("there is no const parameter {param}"))
            }
            InstData::Unary { op, arg } => self.unary(op, self.ty(arg)),
            InstData::Binary { op, args } => self.binary(op, args),
            InstData::Compare { op, args } => self.compare(op, args),
            InstData::Select { if_true, .. } => Ok(self.ty(if_true)),
            InstData::Cast { arg } => self.cast(self.ty(arg), result),
            InstData::Bitcast { arg } => self.bitcast(self.ty(arg), result),
            InstData::Construct { ref parts } => self.construct(parts, result),
            InstData::Extract { aggregate, index } => self.part(self.ty(aggregate), index),
            InstData::Insert {
                aggregate, index, ..
            } => {
                self.part(self.ty(aggregate), index)?;
                Ok(self.ty(aggregate))
            }
            InstData::VarGet(var) => Ok(self.function.vars[var].ty),
            InstData::Load { ptr, .. } => Ok(self.pointer(ptr)?.0),
            InstData::Store { ptr, .. } => self.store(ptr),
            InstData::PtrOffset { ptr, index } => {
                self.pointer(ptr)?;
                self.index(index)?;
                Ok(self.ty(ptr))
            }
            InstData::FieldPtr { ptr, field } => self.field_ptr(ptr, field, result),
            InstData::ElementPtr { ptr, index, .. } => self.element_ptr(ptr, index, result),
            InstData::SpaceCast { arg } => self.space_cast(self.ty(arg), result),
            InstData::SliceNew { ptr, .. } => self.slice_new(ptr, result),
            InstData::SliceLen { slice } => self.slice_len(slice, result),
            InstData::SlicePtr { slice } => {
                let (element, space, mutable, _) = self.slice(slice)?;
                self.gives_pointer((element, space, mutable), result)
            }
            InstData::SliceIndex { slice, index, .. } => {
                let (element, space, mutable, _) = self.slice(slice)?;
                self.index(index)?;
                self.gives_pointer((element, space, mutable), result)
            }
            InstData::SharedAddr(var) => {
                let ty = self.function.shared[var].ty;
                self.gives_pointer((ty, AddressSpace::Shared, true), result)
            }
            InstData::DynamicShared => self.dynamic_shared(result),
            InstData::LocalAlloc => self.local_alloc(result),
            InstData::GlobalAddr(id) => {
                let ty = self.module.globals[id].ty;
                self.gives_pointer((ty, AddressSpace::Constant, false), result)
            }
            InstData::AtomicLoad { ptr, ordering, .. } => self.atomic_load(ptr, ordering),
            InstData::AtomicStore { ptr, ordering, .. } => self.atomic_store(ptr, ordering),
            InstData::AtomicRmw { op, ptr, .. } => self.atomic_rmw(op, ptr),
            InstData::AtomicCas { ptr, .. } => self.atomic_cas(ptr),
            InstData::Fence { ordering, .. } => self.fence(ordering),
            InstData::Call {
                callee,
                ref type_args,
                ref const_args,
                ref args,
            } => self.call(callee, type_args, const_args, args, result),
            InstData::Intrinsic { id, ref args } => {
                let types: Vec<Type> = args.iter().map(|&a| self.ty(a)).collect();
                self.module.intrinsics[id].check(self.types, &types, result)
            }
            InstData::For { index, unroll, .. } => self.counted_loop(self.ty(index), unroll),
            InstData::VarSet(..)
            | InstData::If { .. }
            | InstData::Barrier
            | InstData::Loop { .. }
            | InstData::Break { .. }
            | InstData::Continue { .. } => Ok(Type::UNIT),
            InstData::Return { value } => {
                let given = value.map_or(Type::UNIT, |v| self.ty(v));
                let role = OperandRole::Result(&self.function.name);
                self.expect_same(&role, self.function.result, given)?;
                Ok(Type::UNIT)
            }
        }
    }
}
