//! Rules about calls: arguments, type arguments and const arguments.
//!
//! The types of a callee are in terms of its own parameters. They are compared with the caller's
//! types under the arguments of the call, part by part, because the module cannot be given the
//! substituted types here.

use super::arithmetic::scalar_holds;
use super::rules::{Rule, Rules};
use crate::named_barrier::{wrong_number, wrong_threads};
use crate::{
    ArrayLen, ConstArg, ConstParam, Constant, Entity, FuncId, Function, FunctionKind, InstData,
    IntrinsicDef, Phase, Type, TypeBound, TypeData, Value,
};

/// The arguments that a callee's types are read under.
struct Binding<'a> {
    types: &'a [Type],
    consts: &'a [ConstArg],
}

impl Rules<'_> {
    pub(super) fn call(
        &self,
        callee: FuncId,
        types: &[Type],
        consts: &[ConstArg],
        args: &[Value],
    ) -> Rule {
        if !self.checker.is_sound(callee) {
            // The callee is reported; nothing can be said about its signature.
            return Ok(());
        }
        let callee = &self.module.functions[callee];
        let name = &callee.name;
        if callee.kind == FunctionKind::Kernel {
            return Err(format!(
                "`{name}` is a kernel, which is launched, not called"
            ));
        }
        for (what, takes, given) in [
            ("arguments", callee.params.len(), args.len()),
            ("type arguments", callee.type_params.len(), types.len()),
            ("const arguments", callee.const_params.len(), consts.len()),
        ] {
            if takes != given {
                return Err(format!("`{name}` takes {takes} {what}, not {given}"));
            }
        }
        for (param, &arg) in callee.type_params.iter().zip(types) {
            self.type_arg(&param.name, param.bound, arg)?;
        }
        for (param, &arg) in callee.const_params.iter().zip(consts) {
            self.const_arg(&param.name, param.ty, arg)?;
        }
        let binding = Binding { types, consts };
        for (param, &arg) in callee.params.iter().zip(args) {
            let wanted = callee.type_of(param.value);
            if !self.facts(wanted).is_generic() {
                continue;
            }
            self.bound_type(
                &format!("`{}`", param.name),
                callee,
                wanted,
                &binding,
                self.ty(arg),
            )?;
        }
        Ok(())
    }

    /// In a legal module an intrinsic that is executed for each number of a value is called with one number.
    pub(super) fn of_numbers(&self, def: &IntrinsicDef, args: &[Value]) -> Rule {
        let is_number = |arg: Value| self.ty(arg).as_scalar().is_some();
        let each = def.each();
        let mut of_each = each.iter().zip(args).filter(|(is_each, _)| **is_each);
        if self.module.phase < Phase::Legal || of_each.all(|(_, &arg)| is_number(arg)) {
            return Ok(());
        }
        Err(format!(
            "`{}` is executed for each number of a value: in a legal module that is an operation for each",
            def.name
        ))
    }

    /// What a named barrier is given as constants has to be right.
    pub(super) fn named_barrier(&self, def: &IntrinsicDef, args: &[Value]) -> Rule {
        let number = |arg: Value| match self.function.constant(arg)? {
            Constant::Int(number) => u32::try_from(number).ok(),
            _ => None,
        };
        let &[which, threads] = args else {
            return Ok(());
        };
        if !def.is_named_barrier() {
            return Ok(());
        }
        let wrong = number(which).and_then(wrong_number);
        let wrong = wrong.or_else(|| number(threads).and_then(wrong_threads));
        wrong.map_or(Ok(()), Err)
    }

    /// `result` if it is what the callee gives under the arguments of the call.
    pub(super) fn gives_result(&self, data: &InstData, result: Type) -> Result<Type, String> {
        if let InstData::Call {
            callee,
            type_args,
            const_args,
            ..
        } = data
        {
            let callee = &self.module.functions[*callee];
            let binding = Binding {
                types: type_args,
                consts: const_args,
            };
            self.bound_type("the result", callee, callee.result, &binding, result)?;
        }
        Ok(result)
    }

    fn bound_type(
        &self,
        what: &str,
        callee: &Function,
        wanted: Type,
        binding: &Binding<'_>,
        given: Type,
    ) -> Rule {
        if self.matches(wanted, binding, given) {
            return Ok(());
        }
        let own = match self.facts(wanted).is_generic() {
            true => " under the arguments given for its parameters",
            false => "",
        };
        let (wanted, given) = (self.name(wanted), self.name(given));
        let callee = &callee.name;
        Err(format!(
            "{what} of `{callee}` is a `{wanted}`{own}, not `{given}`"
        ))
    }

    fn type_arg(&self, name: &str, bound: TypeBound, arg: Type) -> Rule {
        let own = self.bound(arg);
        let (holds, taken) = match bound {
            TypeBound::Any => (arg != Type::UNIT, "a type"),
            TypeBound::Num => (self.is_number(arg), "a number"),
            TypeBound::Int => (self.is_integer(arg), "an integer"),
            TypeBound::Float => (arg.is_float() || own == Some(TypeBound::Float), "a float"),
        };
        self.expect(
            holds,
            &format!("type parameter `{name}` takes {taken}"),
            arg,
        )
    }

    fn const_arg(&self, name: &str, ty: Type, arg: ConstArg) -> Rule {
        let (holds, given) = match arg {
            ConstArg::Known(constant) => (
                ty.as_scalar().is_some_and(|s| scalar_holds(s, constant)),
                crate::print::constant_text(constant),
            ),
            ConstArg::Param(param) => {
                let own = self.function.const_params.get(param.index());
                (own.is_some_and(|p| p.ty == ty), param.to_string())
            }
        };
        if holds {
            return Ok(());
        }
        let ty = self.name(ty);
        Err(format!(
            "const parameter `{name}` is a `{ty}`, and `{given}` is none"
        ))
    }

    /// Whether a type of the callee, under the arguments of the call, is a type of the caller.
    fn matches(&self, of_callee: Type, binding: &Binding<'_>, of_caller: Type) -> bool {
        if !self.facts(of_callee).is_generic() {
            return of_callee == of_caller;
        }
        match (self.types.data(of_callee), self.types.data(of_caller)) {
            (TypeData::Param(p), _) => binding.types.get(p.index()) == Some(&of_caller),
            (
                TypeData::Array { element, len },
                TypeData::Array {
                    element: other,
                    len: given,
                },
            ) => len_matches(*len, binding, *given) && self.matches(*element, binding, *other),
            (
                TypeData::Pointer {
                    pointee,
                    space,
                    mutable,
                },
                TypeData::Pointer {
                    pointee: other,
                    space: s,
                    mutable: m,
                },
            ) => (space, mutable) == (s, m) && self.matches(*pointee, binding, *other),
            (
                TypeData::Slice {
                    element,
                    space,
                    mutable,
                    wide,
                },
                TypeData::Slice {
                    element: other,
                    space: s,
                    mutable: m,
                    wide: w,
                },
            ) => (space, mutable, wide) == (s, m, w) && self.matches(*element, binding, *other),
            (TypeData::Struct(_), TypeData::Struct(_)) => {
                self.struct_matches(of_callee, binding, of_caller)
            }
            _ => false,
        }
    }

    fn struct_matches(&self, of_callee: Type, binding: &Binding<'_>, of_caller: Type) -> bool {
        let both = (
            self.types.as_struct(of_callee),
            self.types.as_struct(of_caller),
        );
        let (Some(wanted), Some(given)) = both else {
            return false;
        };
        let fields = || wanted.fields.iter().zip(&given.fields);
        wanted.name == given.name
            && wanted.fields.len() == given.fields.len()
            && fields().all(|((a, ty), (b, other))| a == b && self.matches(*ty, binding, *other))
    }
}

fn len_matches(of_callee: ArrayLen, binding: &Binding<'_>, of_caller: ArrayLen) -> bool {
    let bound = |param: ConstParam| binding.consts.get(param.index()).copied();
    match of_callee {
        ArrayLen::Known(_) => of_callee == of_caller,
        ArrayLen::Param(param) => match (bound(param), of_caller) {
            (Some(ConstArg::Known(Constant::Int(n))), ArrayLen::Known(len)) => n == i128::from(len),
            (Some(ConstArg::Param(outer)), ArrayLen::Param(own)) => outer == own,
            _ => false,
        },
    }
}
