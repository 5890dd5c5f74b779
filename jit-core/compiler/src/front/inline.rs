//! Device functions that take closures: described in place of each call.
//!
//! A closure is a piece of description. It reads and assigns what is around it in the caller, so the
//! function it is passed to has to be described there as well. While that goes on, the function's type
//! parameters, which are numbered from 0 as every function's are, stand for types of the caller: a
//! *scope* of the builder. A closure is described in the scope that it was made in.

use crate::build::KernelBuilder;
use crate::ir::Type;

use super::operand::Kind;
use super::{Front, Operand, Pooled};

/// A closure of the kernel: what describes a call of it with these arguments.
pub type Closure<'c, 'k> = &'c (dyn Fn(&[Operand<'k>]) -> Operand<'k> + 'c);

/// A call of a function that takes closures.
#[derive(Copy, Clone)]
pub struct InlineCall<'c, 'k> {
    /// Type arguments that are written at the call.
    pub types: &'c [Type],
    /// Arguments that are values, in order.
    pub args: &'c [Operand<'k>],
    /// Arguments that are closures, in order.
    pub closures: &'c [Closure<'c, 'k>],
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

    /// Describes the body of a function with these type parameters, each with its place among the
    /// type arguments of a call, and value parameters of these types.
    pub(super) fn inlined(
        self,
        name: &str,
        call: &InlineCall<'_, 'k>,
        type_params: &[(&str, usize)],
        declared: &[Type],
        describe: impl FnOnce(&[Operand<'k>]) -> Operand<'k>,
    ) -> Operand<'k> {
        let b = self.builder;
        let args: Vec<Operand<'k>> = call.args.iter().map(|arg| arg.eager()).collect();
        let types: Vec<Type> = args.iter().map(|arg| arg.ty()).collect();
        let given = |&(name, at): &(_, usize)| {
            // `_` is unit.
            let ty = call.types.get(at).copied();
            (name, ty.filter(|ty| *ty != Type::UNIT))
        };
        let type_params: Vec<_> = type_params.iter().map(given).collect();
        let scope = match b.infer(&type_params, declared, &types) {
            Ok(scope) => scope,
            Err(param) => {
                let message = format!(
                    "nothing tells the type parameter `{param}` of `{name}`; write it at the call, \
                     `{name}::<..>(..)`"
                );
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
        let before = b.enter_scope(Some(b.new_scope(scope)));
        let args = args.iter().zip(declared);
        let args = args.map(|(arg, &ty)| self.coerce(*arg, b.in_scope(ty)));
        let result = describe(&args.collect::<Vec<_>>());
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
