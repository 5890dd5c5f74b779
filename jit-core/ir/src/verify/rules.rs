//! The list of all operations and the rule of each.
//!
//! A rule says what is wrong with the operands of an instruction. It is told the type that the result has,
//! which counts where operands alone do not decide it: for constants, casts, and what makes memory. What
//! they decide, [`Function::result_type`] says.

use super::Checker;
use super::table::TypeFacts;
use crate::printed::Format;
use crate::{
    AddressSpace, Entity, Function, InstData, Module, OperandRole, Phase, ResultType, Type,
    TypeBound, TypeData, TypeTable, Value,
};

/// The rules, for one function whose entities exist.
pub(super) struct Rules<'c> {
    pub(super) checker: &'c Checker<'c>,
    pub(super) module: &'c Module,
    pub(super) types: &'c TypeTable,
    pub(super) function: &'c Function,
}

/// Nothing, or what is wrong.
pub(super) type Rule = Result<(), String>;

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

    /// The value that a launch passes; in a legal module it is a parameter.
    fn hidden(&self) -> Rule {
        match self.module.phase {
            Phase::Legal => Err("a hidden value is a parameter in a legal module".to_owned()),
            Phase::Generic | Phase::Specialized => Ok(()),
        }
    }

    /// What is printed; in a legal module that is a call.
    fn print(&self, format: &str, values: &[Value]) -> Rule {
        if self.module.phase == Phase::Legal {
            return Err("what is printed is a call in a legal module".to_owned());
        }
        for ty in values.iter().map(|&value| self.ty(value)) {
            let told = self.is_number(ty) || ty == Type::BOOL;
            self.expect(told, "numbers and bools are printed", ty)?;
        }
        let types: Vec<_> = values.iter().map(|&v| self.ty(v).as_scalar()).collect();
        let format = Format::parse(format).map_err(|wrong| wrong.to_string())?;
        format.accept(&types).map_err(|wrong| wrong.to_string())
    }

    /// `Err` saying what is taken, unless it holds.
    pub(super) fn expect(&self, holds: bool, taken: &str, ty: Type) -> Rule {
        if holds {
            Ok(())
        } else {
            Err(format!("{taken}, not `{}`", self.name(ty)))
        }
    }

    /// `Err` naming what it is about, unless the types are one.
    fn expect_same(&self, what: &OperandRole<'_>, wanted: Type, given: Type) -> Rule {
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

    pub(super) fn index(&self, index: Value) -> Rule {
        let ty = self.ty(index);
        self.expect(self.is_integer(ty), "an index is an integer", ty)
    }

    /// The rule of the operation, what it gives, then the rules of operands that go to something of a type.
    pub(super) fn check(&self, data: &InstData, result: Type) -> Result<Type, String> {
        self.operation(data, result)?;
        let given = self.given(data, result)?;
        for wanted in self.function.operand_types(self.module, data, result) {
            self.expect_same(&wanted.role, wanted.ty, self.ty(wanted.value))?;
        }
        Ok(given)
    }

    /// The type of the result that an operation gives, or how `result` is not of it.
    fn given(&self, data: &InstData, result: Type) -> Result<Type, String> {
        if let Some(callee) = data.callee()
            && !self.checker.is_sound(callee)
        {
            // The callee is reported; nothing can be said about what it gives.
            return Ok(result);
        }
        match self.function.result_type(self.module, data) {
            Some(ResultType::None) => Ok(Type::UNIT),
            Some(ResultType::Known(ty)) => Ok(ty),
            Some(ResultType::Pointer(at)) => self.gives_pointer(at, result),
            Some(ResultType::Called { .. }) => self.gives_result(data, result),
            Some(ResultType::Row(row, args)) => row.check(self.types, &args, result),
            // Its rule has looked at it; the length says the rest.
            Some(ResultType::Slice { .. } | ResultType::Chosen) => Ok(result),
            None => Err("it takes no such operands".to_owned()),
        }
    }

    // flat match
    fn operation(&self, data: &InstData, result: Type) -> Rule {
        match *data {
            InstData::Const(constant) => self.constant(constant, result),
            InstData::ConstParam(param) => {
                let known = param.index() < self.function.const_params.len();
                known
                    .then_some(())
                    .ok_or_else(|| format!("there is no const parameter {param}"))
            }
            InstData::Unary { op, arg } => self.operator(op.takes(), self.ty(arg)),
            InstData::Binary { op, args } => self.binary(op, args),
            InstData::Compare { op, args } => self.compare(op, args),
            InstData::Cast { arg } => self.cast(self.ty(arg), result),
            InstData::Bitcast { arg } => self.bitcast(self.ty(arg), result),
            InstData::Construct { ref parts } => self.construct(parts, result),
            InstData::Extract { aggregate, index }
            | InstData::Insert {
                aggregate, index, ..
            } => self.part(self.ty(aggregate), index),
            InstData::Load { ptr, .. } => self.pointer(ptr).map(|_| ()),
            InstData::Store { ptr, .. } => self.store(ptr),
            InstData::PtrOffset { ptr, index } => {
                self.pointer(ptr)?;
                self.index(index)
            }
            InstData::FieldPtr { ptr, field } => self.field_ptr(ptr, field),
            InstData::ElementPtr { ptr, index, .. } => self.element_ptr(ptr, index),
            InstData::SpaceCast { arg } => self.space_cast(self.ty(arg), result),
            InstData::SliceNew { ptr, .. } => self.slice_new(ptr, result),
            InstData::SliceLen { slice } => self.slice_len(slice, result),
            InstData::SlicePtr { slice } => self.slice(slice).map(|_| ()),
            InstData::SliceIndex { slice, index, .. } => {
                self.slice(slice)?;
                self.index(index)
            }
            InstData::DynamicShared => self.dynamic_shared(result),
            InstData::LocalAlloc => self.local_alloc(result),
            InstData::Hidden(_) => self.hidden(),
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
            } => self.call(callee, type_args, const_args, args),
            InstData::Assert {
                values: Some([left, _]),
                ..
            } => {
                let ty = self.ty(left);
                let told = self.is_number(ty) || ty == Type::BOOL;
                self.expect(told, "an assertion tells numbers and bools", ty)
            }
            InstData::Print {
                ref format,
                ref values,
                ..
            } => self.print(format, values),
            InstData::For { index, unroll, .. } => self.counted_loop(self.ty(index), unroll),
            // The places exist, and rows and operands are looked at with what they give.
            InstData::Select { .. }
            | InstData::VarGet(_)
            | InstData::SharedAddr(_)
            | InstData::GlobalAddr(_)
            | InstData::VarSet(..)
            | InstData::If { .. }
            | InstData::Barrier
            | InstData::Assume { .. }
            | InstData::Assert { .. }
            | InstData::Loop { .. }
            | InstData::Break { .. }
            | InstData::Continue { .. } => Ok(()),
            InstData::Intrinsic { id, ref args } => {
                let def = self.module.intrinsics[id];
                self.named_barrier(def, args)?;
                self.of_numbers(def, args)
            }
            InstData::Return { value } => {
                let given = value.map_or(Type::UNIT, |v| self.ty(v));
                let role = OperandRole::Result(&self.function.name);
                self.expect_same(&role, self.function.result, given)
            }
        }
    }
}
