//! `x.into()`, and `x.try_into().unwrap()`: conversions to the type that rustc has found.

use kiln_description::{Code, Op, TypeOp};
use proc_macro2::Ident;
use quote::quote_spanned;
use syn::{Expr, ExprMethodCall};

use crate::body::Translator;
use crate::checked::marked;
use crate::expression::strip;
use crate::function::root_at;
use crate::position::{Start, before};

/// How a value is converted.
#[derive(Copy, Clone, PartialEq, Eq)]
pub(crate) enum Conversion {
    /// `x.into()`.
    Into,
    /// `x.try_into().unwrap()`.
    Unwrapped,
    /// `x.try_into().expect("..")`.
    Expected,
}

impl Conversion {
    /// The conversion that an expression is.
    pub(crate) fn of(expr: &Expr) -> Option<Conversion> {
        let Expr::MethodCall(call) = expr else {
            return None;
        };
        let tried =
            matches!(strip(&call.receiver), Expr::MethodCall(inner) if is(inner, "try_into"));
        match call.method.to_string().as_str() {
            "into" if is(call, "into") => Some(Conversion::Into),
            "unwrap" if tried && call.args.is_empty() => Some(Conversion::Unwrapped),
            "expect" if tried && crate::option::expected(call).is_some() => {
                Some(Conversion::Expected)
            }
            _ => None,
        }
    }
}

fn is(call: &ExprMethodCall, name: &str) -> bool {
    call.method == name && call.args.is_empty() && call.turbofish.is_none()
}

/// What is converted.
pub(crate) fn operand_mut(expr: &mut Expr, conversion: Conversion) -> Option<&mut Expr> {
    let Expr::MethodCall(call) = expr else {
        return None;
    };
    match conversion {
        Conversion::Into => Some(&mut call.receiver),
        Conversion::Unwrapped | Conversion::Expected => inner(&mut call.receiver),
    }
}

/// What `try_into` is called on.
fn inner(tried: &mut Expr) -> Option<&mut Expr> {
    match tried {
        Expr::Paren(paren) => inner(&mut paren.expr),
        Expr::Group(group) => inner(&mut group.expr),
        Expr::MethodCall(call) => Some(&mut call.receiver),
        _ => None,
    }
}

impl Translator<'_> {
    /// A conversion to the type of what is marked.
    pub(crate) fn converted(&mut self, how: Conversion, expr: &Expr, ty: &Ident) -> Code {
        let (span, mut expr) = (expr.start(), expr.clone());
        let text = match &expr {
            Expr::MethodCall(call) => crate::option::expected(call),
            _ => None,
        };
        let Some(operand) = operand_mut(&mut expr, how) else {
            return Code::new(Op::Unit, None);
        };
        let (root, place) = (root_at(span), before(span));
        if how == Conversion::Into {
            let Some((of, operand)) = marked(operand) else {
                return Code::new(Op::Unit, None);
            };
            let value = self.expr(operand);
            let entry = quote_spanned!(place=> #root::into_number(&#of, &#ty));
            let ty = Code::ty(TypeOp::Pooled).number(self.pool.entry(&entry));
            return self.op(Op::Cast, span).code(&value).code(&ty);
        }
        let value = self.expr(operand);
        let expected = match text {
            Some(_) => quote_spanned!(place=> true),
            None => quote_spanned!(place=> false),
        };
        let entry = quote_spanned!(place=> #root::try_into_of::<_, #expected>(&#ty));
        let code = self.op(Op::Call, span).number(self.pool.entry(&entry));
        let code = code.list(&[]).list(&[value]);
        match text {
            Some(text) => self.op(Op::Written, span).text(&text).code(&code),
            None => code,
        }
    }
}
