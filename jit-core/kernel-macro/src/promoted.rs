//! Constants behind references in functions whose result has references.
//!
//! rustc keeps a constant that is borrowed for as long as the program runs (Rust reference, "Constant promotion"); in a
//! kernel it is a value of the function that borrows it, so that a reference in the function's result would be to nothing.

use syn::visit::Visit;
use syn::{Block, Expr, ExprMethodCall, ExprReference, Lit};

use crate::expression::strip;
use crate::refusal::Refusals;

const MESSAGE: &str = "a device function that returns a reference has no constants to refer to, as its own memory ends with it; \
                       take what it refers to as a parameter, or give the value a name with `let`";

/// Refuses the constants that a body borrows; `is_variable` says which names are variables. Those that have a name and are
/// no numbers are refused where they are described (`Named::pooled_alone`).
pub(crate) fn check(body: &Block, is_variable: &dyn Fn(&str) -> bool, refusals: &mut Refusals) {
    let mut borrowed = Borrowed {
        is_variable,
        refusals,
    };
    borrowed.visit_block(body);
}

struct Borrowed<'a> {
    is_variable: &'a dyn Fn(&str) -> bool,
    refusals: &'a mut Refusals,
}

impl<'ast> Visit<'ast> for Borrowed<'_> {
    fn visit_expr_reference(&mut self, reference: &'ast ExprReference) {
        if self.is_constant(&reference.expr) {
            self.refusals.refuse(reference, MESSAGE);
        }
        syn::visit::visit_expr_reference(self, reference);
    }

    fn visit_expr_method_call(&mut self, call: &'ast ExprMethodCall) {
        if has_parts(&call.receiver) && self.is_constant(&call.receiver) {
            self.refusals.refuse(&call.receiver, MESSAGE);
        }
        syn::visit::visit_expr_method_call(self, call);
    }
}

impl Borrowed<'_> {
    /// Whether rustc may keep the value of an expression.
    fn is_constant(&self, expr: &Expr) -> bool {
        match strip(expr) {
            Expr::Lit(_) | Expr::Const(_) => true,
            Expr::Path(path) => {
                let name = path.path.get_ident().map(ToString::to_string);
                name.is_none_or(|name| name != "self" && !(self.is_variable)(&name))
            }
            Expr::Array(array) => array.elems.iter().all(|e| self.is_constant(e)),
            Expr::Tuple(tuple) => tuple.elems.iter().all(|e| self.is_constant(e)),
            Expr::Repeat(repeat) => self.is_constant(&repeat.expr),
            Expr::Struct(of) => {
                let rest = of.rest.as_ref().is_none_or(|rest| self.is_constant(rest));
                rest && of.fields.iter().all(|field| self.is_constant(&field.expr))
            }
            Expr::Unary(e) => self.is_constant(&e.expr),
            Expr::Cast(e) => self.is_constant(&e.expr),
            Expr::Field(e) => self.is_constant(&e.base),
            Expr::Index(e) => self.is_constant(&e.expr),
            Expr::Reference(e) => self.is_constant(&e.expr),
            Expr::Binary(e) => self.is_constant(&e.left) && self.is_constant(&e.right),
            // A call of a function is none, but one of a struct's or a variant's name is.
            Expr::Call(call) => {
                is_constructor(&call.func) && call.args.iter().all(|e| self.is_constant(e))
            }
            _ => false,
        }
    }
}

/// Whether an expression is the name of a struct or a variant, as far as names tell.
fn is_constructor(function: &Expr) -> bool {
    let Expr::Path(path) = strip(function) else {
        return false;
    };
    let last = path.path.segments.last().map(|last| last.ident.to_string());
    last.is_some_and(|name| name.starts_with(char::is_uppercase))
}

/// Whether a value is no number and no name. Methods of numbers give no references, and names are looked up.
fn has_parts(expr: &Expr) -> bool {
    match strip(expr) {
        Expr::Lit(lit) => matches!(lit.lit, Lit::ByteStr(_)),
        Expr::Path(_) | Expr::Unary(_) | Expr::Binary(_) | Expr::Cast(_) => false,
        _ => true,
    }
}
