//! `Option` and `Result`: `Some(x)`, `None`, `Ok(x)`, `Err(e)`, `?`, and what the macros know of their types and
//! methods. What they are in kernels is in `kiln_jit_core::front::{option, result}`, their methods are in
//! `device-stdlib/src/plain`.

use kiln_description::{Code, Op, TypeOp, When};
use proc_macro2::{Ident, Span};
use quote::quote;
use syn::spanned::Spanned;
use syn::{
    Expr, ExprCall, ExprLit, ExprMethodCall, ExprTry, GenericArgument, Lit, Path, PathArguments,
    Type, TypePath,
};

use crate::body::{Translator, local};
use crate::function::{Kind, root};

/// The fields of an option, as the front end names them.
pub(crate) const IS_SOME: &str = "is_some";
pub(crate) const VALUE: &str = "value";
/// The fields of a result besides its value, as the front end names them.
pub(crate) const IS_OK: &str = "is_ok";
pub(crate) const ERROR: &str = "error";

/// Whether a path is a name by itself, or one of a type.
fn is_of(path: &Path, ty: &str, name: &str) -> bool {
    let mut segments = path.segments.iter().rev();
    let is_name = segments.next().is_some_and(|last| last.ident == name);
    is_name && segments.next().is_none_or(|of| of.ident == ty)
}

/// Whether a path is `Ok`.
pub(crate) fn is_ok(path: &Path) -> bool {
    is_of(path, "Result", "Ok")
}

/// Whether a path is `Err`.
pub(crate) fn is_err(path: &Path) -> bool {
    is_of(path, "Result", "Err")
}

/// Whether a function is `Ok` or `Err`.
pub(crate) fn is_result_function(function: &Expr) -> bool {
    matches!(function, Expr::Path(path) if path.qself.is_none() && (is_ok(&path.path) || is_err(&path.path)))
}

/// Whether a path is `Some`.
pub(crate) fn is_some(path: &Path) -> bool {
    is_of(path, "Option", "Some")
}

/// Whether a path is `None`.
pub(crate) fn is_none(path: &Path) -> bool {
    is_of(path, "Option", "None")
}

/// Whether an expression is `None`.
pub(crate) fn is_none_value(expr: &Expr) -> bool {
    matches!(expr, Expr::Path(path) if path.qself.is_none() && is_none(&path.path))
}

/// Whether a function is `Some`.
pub(crate) fn is_some_function(function: &Expr) -> bool {
    matches!(function, Expr::Path(path) if path.qself.is_none() && is_some(&path.path))
}

/// What an option is of, or a result, value and error, if a type is written as one.
pub(crate) fn parts_of_type(ty: &TypePath) -> Option<Vec<&Type>> {
    let last = ty.path.segments.last()?;
    let PathArguments::AngleBracketed(arguments) = &last.arguments else {
        return None;
    };
    let count = match last.ident.to_string().as_str() {
        "Option" => 1,
        "Result" => 2,
        _ => return None,
    };
    let parts = arguments.args.iter().map(|argument| match argument {
        GenericArgument::Type(part) => Some(part),
        _ => None,
    });
    let parts: Vec<&Type> = parts.collect::<Option<_>>()?;
    (parts.len() == count).then_some(parts)
}

/// The message of `x.expect("..")`.
pub(crate) fn expected(call: &ExprMethodCall) -> Option<String> {
    match (call.method == "expect", call.args.first()) {
        (
            true,
            Some(Expr::Lit(ExprLit {
                lit: Lit::Str(text),
                ..
            })),
        ) => Some(text.value()),
        _ => None,
    }
}

impl Translator<'_> {
    /// `Some(x)`.
    pub(crate) fn some(&mut self, call: &ExprCall) -> Code {
        let Some(value) = call.args.first() else {
            return Code::new(Op::Unit, None);
        };
        let value = self.expr(value);
        self.op(Op::Some, call.func.span()).code(&value)
    }

    /// `None`, of the type that rustc has inferred.
    pub(crate) fn none(&mut self, of: &Ident, span: Span) -> Code {
        let root = root();
        let ty = self.pool.entry(&quote!(#root::Pooled::made_of(&#of)));
        let ty = Code::ty(TypeOp::Pooled).number(ty);
        self.op(Op::Nothing, span).code(&ty)
    }

    /// `Ok(x)` or `Err(x)`, of the type that rustc has inferred.
    pub(crate) fn result_value(&mut self, call: &ExprCall, of: &Ident) -> Code {
        let is_ok = matches!(&*call.func, Expr::Path(path) if is_ok(&path.path));
        let Some(value) = call.args.first() else {
            return Code::new(Op::Unit, None);
        };
        let (root, op) = (root(), if is_ok { Op::Ok } else { Op::Err });
        let ty = self.pool.entry(&quote!(#root::Pooled::made_of(&#of)));
        let ty = Code::ty(TypeOp::Pooled).number(ty);
        let value = self.expr(value);
        self.op(op, call.func.span()).code(&ty).code(&value)
    }

    /// Whether an option has a value.
    pub(crate) fn is_some_of(&self, option: &Code, span: Span) -> Code {
        self.op(Op::Field, span).text(IS_SOME).code(option)
    }

    /// `x?`.
    pub(crate) fn question_mark(&mut self, e: &ExprTry) -> Code {
        let span = e.question_token.span();
        if self.kind == Kind::Kernel && !self.in_closure {
            return self.refuse(
                &e.question_token,
                "a kernel returns nothing; write `let Some(x) = .. else { return };`",
            );
        }
        let result = match (&self.result, self.in_closure) {
            (Some(Type::Path(path)), false) => path.clone(),
            (_, true) => {
                return self.refuse(
                    &e.question_token,
                    "`?` stands in `#[device_fn]` functions; in a closure of a kernel write \
                     `let Some(x) = .. else { return None };`",
                );
            }
            // rustc says that this function returns no `Option` and no `Result`.
            _ => return Code::new(Op::Unit, None),
        };
        let option = self.fresh();
        let value = self.expr(&e.expr);
        let value = self.op(Op::Eager, span).code(&value);
        let is_none = self.op(Op::HasValue, span).code(&local(option));
        let is_none = self.op(Op::Not, span).code(&is_none);
        let ty = match parts_of_type(&result) {
            Some(_) => self.ty(&Type::Path(result)),
            // It may be another name of one.
            None => {
                let root = root();
                let entry = quote!(#root::Pooled::made_of(&#root::TypeOf::<#result>::OPEN));
                Code::ty(TypeOp::Pooled).number(self.pool.entry(&entry))
            }
        };
        let none = self.op(Op::Residual, span).code(&ty).code(&local(option));
        let leave = self.return_with(none, span);
        Code::block(vec![
            Code::new(Op::Let, None).number(option).code(&value),
            self.op(Op::If, span).code(&is_none).region(&leave),
            self.op(Op::HeldValue, span).code(&local(option)),
        ])
    }

    /// Returns a value that is translated already.
    fn return_with(&mut self, value: Code, span: Span) -> Code {
        if !self.is_inlined {
            return self.op(Op::ReturnValue, span).code(&value);
        }
        let Some((to, depth)) = self.out_of_function() else {
            return Code::new(Op::Unit, None);
        };
        let assign = match to {
            crate::body::Destination::Slot(slot) => {
                let code = self.op(Op::Assign, span).when(&When::Never);
                code.region(&value).code(&local(slot))
            }
            crate::body::Destination::Discard => self.op(Op::Discard, span).code(&value),
        };
        Code::block(vec![assign, self.op(Op::Break, span).number(depth)])
    }
}
