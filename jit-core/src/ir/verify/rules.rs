//! The list of all operations and the rule of each.
//!
//! A rule gives the type of the result that an instruction must have (unit: none), or says what is
//! wrong with its operands. It is told the type that the result has, which decides where operands
//! alone do not: for constants, casts, and what makes memory.

use super::Checker;
use super::table::TypeFacts;
use crate::ir::{
    AddressSpace, Entity, Function, InstData, Module, Type, TypeBound, TypeData, TypeTable, Value,
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
    pub(super) fn expect_same(&self, what: &str, wanted: Type, given: Type) -> Result<(), String> {
        let wanted_name = self.name(wanted);
        self.expect(
            wanted == given,
            &format!("{what} is a `{wanted_name}`"),
            given,
        )
    }

    pub(super) fn pointer(&self, ptr: Value) -> Result<(Type, AddressSpace, bool), String> {
        let ty = self.ty(ptr);
        let pointer = self.types.as_pointer(ty);
        pointer.ok_or_else(|| format!("an address is a pointer, not `{}`", self.name(ty)))
    }

    pub(super) fn slice(&self, slice: Value) -> Result<(Type, AddressSpace, bool, bool), String> {
        match *self.types.data(self.ty(slice)) {
            TypeData::Slice {
                element,
                space,
                mutable,
                wide,
            } => Ok((element, space, mutable, wide)),
            _ => Err(format!(
                "it takes a slice, not `{}`",
                self.name(self.ty(slice))
            )),
        }
    }

    pub(super) fn index(&self, index: Value) -> Result<(), String> {
        let ty = self.ty(index);
        self.expect(self.is_integer(ty), "an index is an integer", ty)
    }

    // flat match
    pub(super) fn check(&self, data: &InstData, result: Type) -> Rule {
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
            InstData::Select {
                cond,
                if_true,
                if_false,
            } => {
                self.expect_same("the condition", Type::BOOL, self.ty(cond))?;
                let ty = self.ty(if_true);
                self.expect_same("the other choice", ty, self.ty(if_false))?;
                Ok(ty)
            }
            InstData::Cast { arg } => self.cast(self.ty(arg), result),
            InstData::Bitcast { arg } => self.bitcast(self.ty(arg), result),
            InstData::Construct { ref parts } => self.construct(parts, result),
            InstData::Extract { aggregate, index } => self.part(self.ty(aggregate), index),
            InstData::Insert {
                aggregate,
                index,
                value,
            } => {
                let part = self.part(self.ty(aggregate), index)?;
                self.expect_same("the part", part, self.ty(value))?;
                Ok(self.ty(aggregate))
            }
            InstData::VarGet(var) => Ok(self.function.vars[var].ty),
            InstData::VarSet(var, value) => {
                let wanted = self.function.vars[var].ty;
                self.expect_same("the variable", wanted, self.ty(value))?;
                Ok(Type::UNIT)
            }
            InstData::Load { ptr, .. } => Ok(self.pointer(ptr)?.0),
            InstData::Store { ptr, value, .. } => self.store(ptr, value),
            InstData::PtrOffset { ptr, index } => {
                self.pointer(ptr)?;
                self.index(index)?;
                Ok(self.ty(ptr))
            }
            InstData::FieldPtr { ptr, field } => self.field_ptr(ptr, field, result),
            InstData::ElementPtr { ptr, index, .. } => self.element_ptr(ptr, index, result),
            InstData::SpaceCast { arg } => self.space_cast(self.ty(arg), result),
            InstData::SliceNew { ptr, len } => self.slice_new(ptr, self.ty(len), result),
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
            InstData::AtomicStore {
                ptr,
                value,
                ordering,
                ..
            } => self.atomic_store(ptr, value, ordering),
            InstData::AtomicRmw { op, ptr, value, .. } => self.atomic_rmw(op, ptr, value),
            InstData::AtomicCas {
                ptr, expected, new, ..
            } => self.atomic_cas(ptr, expected, new),
            InstData::Fence { ordering, .. } => self.fence(ordering),
            InstData::Call {
                callee,
                ref type_args,
                ref const_args,
                ref args,
            } => self.call(callee, type_args, const_args, args, result),
            InstData::Intrinsic { id, ref args } => {
                let types: Vec<Type> = args.iter().map(|&a| self.ty(a)).collect();
                self.module.intrinsics[id].result_type(self.types, &types)
            }
            InstData::If { cond, .. } => {
                self.expect_same("the condition", Type::BOOL, self.ty(cond))?;
                Ok(Type::UNIT)
            }
            InstData::For {
                index,
                start,
                end,
                step,
                unroll,
                ..
            } => self.counted_loop(self.ty(index), [start, end, step], unroll),
            InstData::Barrier
            | InstData::Loop { .. }
            | InstData::Break { .. }
            | InstData::Continue { .. } => Ok(Type::UNIT),
            InstData::Return { value } => {
                let given = value.map_or(Type::UNIT, |v| self.ty(v));
                let what = format!("the result of `{}`", self.function.name);
                self.expect_same(&what, self.function.result, given)?;
                Ok(Type::UNIT)
            }
        }
    }
}
