//! `Option`: `Some(x)`, `None`, `?`, and what the macros know of its type and its methods. What it is in kernels is in
//! `kiln_jit_core::front::option`, its methods are in `device-stdlib/src/plain/option.rs`.

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

/// Whether a path is a name by itself, or one of `Option`.
fn is_of_option(path: &Path, name: &str) -> bool {
    let mut segments = path.segments.iter().rev();
    let is_name = segments.next().is_some_and(|last| last.ident == name);
    is_name && segments.next().is_none_or(|of| of.ident == "Option")
}

/// Whether a path is `Some`.
pub(crate) fn is_some(path: &Path) -> bool {
    is_of_option(path, "Some")
}

/// Whether a path is `None`.
pub(crate) fn is_none(path: &Path) -> bool {
    is_of_option(path, "None")
}

/// Whether an expression is `None`.
pub(crate) fn is_none_value(expr: &Expr) -> bool {
    matches!(expr, Expr::Path(path) if path.qself.is_none() && is_none(&path.path))
}

/// Whether a function is `Some`.
pub(crate) fn is_some_function(function: &Expr) -> bool {
    matches!(function, Expr::Path(path) if path.qself.is_none() && is_some(&path.path))
}

/// What an option is of, if a type is written as one.
pub(crate) fn value_type(ty: &TypePath) -> Option<&Type> {
    let last = ty.path.segments.last()?;
    let PathArguments::AngleBracketed(arguments) = &last.arguments else {
        return None;
    };
    match arguments.args.first()? {
        GenericArgument::Type(value) if last.ident == "Option" && arguments.args.len() == 1 => {
            Some(value)
        }
        _ => None,
    }
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
            (Some(Type::Path(path)), false) if value_type(path).is_some() => path.clone(),
            (_, true) => {
                return self.refuse(
                    &e.question_token,
                    "`?` stands in `#[device_fn]` functions; in a closure of a kernel write \
                     `let Some(x) = .. else { return None };`",
                );
            }
            // rustc says that this function returns no `Option`.
            _ => return Code::new(Op::Unit, None),
        };
        let option = self.fresh();
        let value = self.expr(&e.expr);
        let value = self.op(Op::Eager, span).code(&value);
        let is_none = self.is_some_of(&local(option), span);
        let is_none = self.op(Op::Not, span).code(&is_none);
        let ty = self.ty(&Type::Path(result));
        let none = self.op(Op::Nothing, span).code(&ty);
        let leave = self.return_with(none, span);
        Code::block(vec![
            Code::new(Op::Let, None).number(option).code(&value),
            self.op(Op::If, span).code(&is_none).region(&leave),
            self.op(Op::Field, span).text(VALUE).code(&local(option)),
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
