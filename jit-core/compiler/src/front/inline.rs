//! Device functions that take closures: described in place of each call.
//!
//! A closure is a piece of description. It reads and assigns what is around it in the caller, so the
//! function it is passed to has to be described there as well. While that goes on, the function's type
//! parameters, which are numbered from 0 as every function's are, stand for types of the caller: a
//! *scope* of the builder. A closure is described in the scope that it was made in.

use crate::build::{KernelBuilder, Parameter};
use crate::ir::{ConstArg, Type};

use super::operand::Kind;
use super::{Front, Operand, Pooled};

/// A closure of the kernel: what describes a call of it with these arguments.
pub type Closure<'c, 'k> = &'c (dyn Fn(&[Operand<'k>]) -> Operand<'k> + 'c);

/// A call of a function that takes closures.
#[derive(Copy, Clone)]
pub struct InlineCall<'c, 'k> {
    /// Type arguments that are written at the call.
    pub types: &'c [Type],
    /// Const arguments that are written at the call.
    pub consts: &'c [ConstArg],
    /// Arguments that are values, in order.
    pub args: &'c [Operand<'k>],
    /// Arguments that are closures, in order.
    pub closures: &'c [Closure<'c, 'k>],
}

/// A function that takes closures, as its description has it.
pub(super) struct InlineFunction<'d> {
    pub(super) name: &'d str,
    /// Type parameters, each with its place among the type arguments of a call.
    pub(super) types: &'d [(&'d str, usize)],
    /// Names of const parameters.
    pub(super) consts: &'d [&'static str],
    /// The types of its value parameters, where its parameters stand for themselves.
    pub(super) declared: &'d [Type],
}

/// What a call with closures can call. `#[device_fn]` implements it for functions with parameters of
/// types like `F: Fn(f32) -> f32`.
#[diagnostic::on_unimplemented(
    message = "this function takes no closures in kernels",
    label = "takes no closures",
    note = "closures are passed to `#[device_fn]` functions like `fn f<F: Fn(f32) -> f32>(x: f32, f: F)`"
)]
pub trait Inlinable {
    /// Describes it here.
    fn call_inline<'k>(front: Front<'k>, call: &InlineCall<'_, 'k>) -> Operand<'k>;

    /// The function as an entry in a pool.
    fn pooled() -> Pooled {
        Pooled::inline(Self::call_inline)
    }
}

/// How deep functions may be described in one another, and how many of them for one kernel. Only
/// functions that call themselves come near.
const MAX_DEPTH: usize = 64;
const MAX_INLINED: usize = 20_000;

impl<'k> Front<'k> {
    /// The value of what is described here, read before anything else is assigned.
    pub(super) fn taken(self, value: Operand<'k>) -> Operand<'k> {
        match value.ty() == Type::UNIT && !matches!(value.kind, Kind::Lazy(_) | Kind::Steps(_)) {
            true => self.unit(),
            false => value.eager(),
        }
    }

    /// Types as a function declares them, whatever its type parameters stand for.
    pub(super) fn declared(self, types: impl FnOnce() -> Vec<Type>) -> Vec<Type> {
        let before = self.builder.enter_scope(None);
        let types = types();
        self.builder.enter_scope(before);
        types
    }

    /// What the type and const parameters of a function stand for in a call; the error says what nothing tells.
    fn inferred(
        self,
        function: &InlineFunction<'_>,
        call: &InlineCall<'_, 'k>,
        args: &[Type],
    ) -> Result<(Vec<Type>, Vec<ConstArg>), String> {
        let (name, consts) = (function.name, function.consts);
        // A call of which some `_` are numbers does not say which.
        let is_written = |ty: &Type| *ty != Type::UNIT;
        if call.consts.len() != consts.len()
            && (!call.consts.is_empty() || call.types.iter().any(is_written))
            && let Some(param) = consts.first()
        {
            return Err(format!(
                "this call of `{name}` has types or numbers, and `_` for a const parameter as `{param}`; write all \
                 numbers, or no list"
            ));
        }
        let given = |&(name, at): &(_, usize)| {
            // `_` is unit.
            let ty = call.types.get(at).copied();
            (name, ty.filter(is_written))
        };
        let type_params: Vec<_> = function.types.iter().map(given).collect();
        let given = |at| call.consts.get(at).copied();
        let const_params: Vec<_> = (0..consts.len()).map(given).collect();
        let found = self
            .builder
            .infer(&type_params, const_params, function.declared, args);
        found.map_err(|param| {
            let (kind, param) = match param {
                Parameter::Type(name) => ("type", name),
                Parameter::Const(number) => ("const", consts[number]),
            };
            format!(
                "nothing tells the {kind} parameter `{param}` of `{name}`; write it at the call, \
                 `{name}::<..>(..)`"
            )
        })
    }

    /// Describes the body of a function, with what its value parameters and its const parameters are.
    pub(super) fn inlined(
        self,
        function: &InlineFunction<'_>,
        call: &InlineCall<'_, 'k>,
        describe: impl FnOnce(&[Operand<'k>], &[ConstArg]) -> Operand<'k>,
    ) -> Operand<'k> {
        let (b, name) = (self.builder, function.name);
        if call.args.len() != function.declared.len() {
            let (wanted, given) = (function.declared.len(), call.args.len());
            return self.refuse(&format!("`{name}` takes {wanted} values, not {given}"));
        }
        let args: Vec<Operand<'k>> = call.args.iter().map(|arg| arg.eager()).collect();
        let types: Vec<Type> = args.iter().map(|arg| arg.ty()).collect();
        let (scope, consts) = match self.inferred(function, call, &types) {
            Ok(found) => found,
            Err(message) => {
                return match args.iter().any(|arg| arg.is_recovered()) {
                    true => self.value(b.recovered(Type::I32)),
                    false => self.refuse(&message),
                };
            }
        };
        if !b.may_inline(MAX_DEPTH, MAX_INLINED) {
            let message = format!(
                "`{name}` is described in its own description without end; a device function cannot \
                 call itself, as threads have no stack to speak of; write a loop"
            );
            return self.refuse(&message);
        }
        let declared = |ty| b.with_types(|types| types.substitute(ty, &scope, &consts));
        let declared: Vec<Type> = function.declared.iter().copied().map(declared).collect();
        let before = b.enter_scope(Some(b.new_scope(scope)));
        let args = args.iter().zip(declared);
        let args = args.map(|(arg, ty)| self.coerce(*arg, ty));
        let result = describe(&args.collect::<Vec<_>>(), &consts);
        b.enter_scope(before);
        b.inlined_one();
        result
    }
}

impl KernelBuilder {
    /// A declared type in the present scope.
    pub(super) fn in_scope(&self, ty: Type) -> Type {
        match self.scope_types() {
            Some(types) => self.with_types(|table| table.substitute(ty, &types, &[])),
            None => ty,
        }
    }
}
