//! Facts about a body that are found before it is translated.

use std::collections::HashSet;

use proc_macro2::Ident;
use syn::visit::Visit;
use syn::{BinOp, Expr, Pat};

use crate::body::plain_name;
use crate::checked::{is_cast, marked, marked_method};
use crate::expression::strip;
use crate::refusal::METHODS;

/// The names of variables that need an address: they are borrowed, indexed, or assigned in part; or a
/// method may change a part of one, for which it has to be `mut`.
/// Names, not variables: one that is shadowed by another of its name shares its fate, which costs a
/// little memory and changes nothing.
pub(crate) fn addressed<'a>(
    block: &'a syn::Block,
    params: impl Iterator<Item = &'a syn::Pat>,
) -> HashSet<String> {
    let mut scan = Addressed::default();
    scan.visit_block(block);
    params.for_each(|pattern| scan.visit_pat(pattern));
    let changed = scan.receivers.intersection(&scan.mutable).cloned();
    let changed: Vec<String> = changed.collect();
    scan.names.extend(changed);
    scan.names
}

#[derive(Default)]
struct Addressed {
    names: HashSet<String>,
    /// Variables that methods are called on parts of.
    receivers: HashSet<String>,
    mutable: HashSet<String>,
}

/// The variable that an expression is a part of.
fn variable(place: &Expr) -> Option<&Ident> {
    match place {
        Expr::Path(path) => path.path.get_ident(),
        Expr::Field(field) => variable(&field.base),
        Expr::Index(index) => variable(&index.expr),
        Expr::Paren(paren) => variable(&paren.expr),
        Expr::Group(group) => variable(&group.expr),
        _ => None,
    }
}

impl Addressed {
    fn add(&mut self, place: &Expr) {
        self.names.extend(variable(place).map(ToString::to_string));
    }
}

impl<'ast> Visit<'ast> for Addressed {
    fn visit_pat_ident(&mut self, pattern: &'ast syn::PatIdent) {
        if pattern.mutability.is_some() {
            self.mutable.insert(pattern.ident.to_string());
        }
        syn::visit::visit_pat_ident(self, pattern);
    }

    fn visit_expr(&mut self, expr: &'ast Expr) {
        if let Some((_, call)) = marked_method(expr)
            && may_change(call)
            && !matches!(strip(&call.receiver), Expr::Path(_))
        {
            let name = variable(&call.receiver).map(ToString::to_string);
            self.receivers.extend(name);
        }
        match expr {
            Expr::Reference(reference) => self.add(&reference.expr),
            Expr::Index(index) => self.add(&index.expr),
            Expr::Assign(assign) if !matches!(*assign.left, Expr::Path(_)) => {
                self.add(&assign.left)
            }
            Expr::Binary(binary)
                if is_compound(&binary.op) && !matches!(*binary.left, Expr::Path(_)) =>
            {
                self.add(&binary.left);
            }
            _ => {}
        }
        syn::visit::visit_expr(self, expr);
    }
}

/// Whether a method may assign something: those with a name of the library do not, whose they ever are.
fn may_change(call: &syn::ExprMethodCall) -> bool {
    !METHODS.contains(&plain_name(&call.method).as_str())
}

/// The names of variables that are `mut`, each as often as there are such variables.
#[derive(Default)]
pub(crate) struct Mutable(pub(crate) Vec<String>);

impl<'ast> Visit<'ast> for Mutable {
    fn visit_pat_ident(&mut self, pattern: &'ast syn::PatIdent) {
        if pattern.mutability.is_some() {
            self.0.push(pattern.ident.to_string());
        }
        syn::visit::visit_pat_ident(self, pattern);
    }
}

impl Mutable {
    /// A variable that a closure names, is `mut`, and is none of its own.
    pub(crate) fn captured_by(&self, closure: &syn::ExprClosure) -> Option<Ident> {
        let mut own = Mutable::default();
        own.visit_expr_closure(closure);
        let count = |names: &[String], name: &str| names.iter().filter(|n| *n == name).count();
        let mut used = Used(Vec::new());
        used.visit_expr(&closure.body);
        used.0.into_iter().find(|name| {
            let text = name.to_string();
            count(&self.0, &text) > count(&own.0, &text)
        })
    }
}

struct Used(Vec<Ident>);

impl<'ast> Visit<'ast> for Used {
    fn visit_expr_path(&mut self, path: &'ast syn::ExprPath) {
        self.0.extend(path.path.get_ident().cloned());
    }
}

/// The first variable of a name.
pub(crate) fn variable_named(name: &Ident, block: &syn::Block) -> Option<Ident> {
    let mut variables = Variables::default();
    variables.visit_block(block);
    variables
        .names
        .into_iter()
        .find(|variable| variable == name)
}

/// The names that patterns bind.
#[derive(Default)]
pub(crate) struct Variables {
    /// All of them.
    pub(crate) names: Vec<Ident>,
    /// Those of closures.
    pub(crate) closures: HashSet<String>,
}

impl Variables {
    /// Adds those of a parameter.
    pub(crate) fn visit_param(&mut self, pattern: &Pat, is_closure: bool) {
        self.visit_pat(pattern);
        if let (Pat::Ident(name), true) = (pattern, is_closure) {
            self.closures.insert(name.ident.to_string());
        }
    }
}

impl<'ast> Visit<'ast> for Variables {
    fn visit_pat_ident(&mut self, pattern: &'ast syn::PatIdent) {
        self.names.push(pattern.ident.clone());
        syn::visit::visit_pat_ident(self, pattern);
    }

    fn visit_local(&mut self, local: &'ast syn::Local) {
        let init = local.init.as_ref().map(|init| strip(&init.expr));
        if let (Pat::Ident(name), Some(Expr::Closure(_))) = (&local.pat, init) {
            self.closures.insert(name.ident.to_string());
        }
        syn::visit::visit_local(self, local);
    }
}

/// Whether a body returns before its end; what closures in it return is theirs.
pub(crate) fn returns_early(block: &syn::Block) -> bool {
    let mut returns = Returns(false);
    returns.visit_block(block);
    returns.0
}

/// The same of an expression.
pub(crate) fn returns_inside(expr: &Expr) -> bool {
    let mut returns = Returns(false);
    returns.visit_expr(expr);
    returns.0
}

struct Returns(bool);

impl<'ast> Visit<'ast> for Returns {
    fn visit_expr_return(&mut self, _: &'ast syn::ExprReturn) {
        self.0 = true;
    }
    fn visit_expr_closure(&mut self, _: &'ast syn::ExprClosure) {}
}

/// Whether an operator assigns its left side.
pub(crate) fn is_compound(op: &BinOp) -> bool {
    matches!(
        op,
        BinOp::AddAssign(_)
            | BinOp::SubAssign(_)
            | BinOp::MulAssign(_)
            | BinOp::DivAssign(_)
            | BinOp::RemAssign(_)
            | BinOp::BitXorAssign(_)
            | BinOp::BitAndAssign(_)
            | BinOp::BitOrAssign(_)
            | BinOp::ShlAssign(_)
            | BinOp::ShrAssign(_)
    )
}

/// Whether an expression only computes: it assigns nothing and leaves no block, so that it makes no
/// difference whether it is evaluated before or after something else that only computes.
pub(crate) fn only_computes(expr: &Expr) -> bool {
    if let Some((_, inner)) = marked(expr) {
        return only_computes(inner);
    }
    if let Some((_, call)) = marked_method(expr) {
        let mut parts = std::iter::once(&*call.receiver).chain(&call.args);
        return !may_change(call) && parts.all(only_computes);
    }
    match expr {
        Expr::Lit(_) | Expr::Path(_) => true,
        Expr::Paren(e) => only_computes(&e.expr),
        Expr::Group(e) => only_computes(&e.expr),
        Expr::Unary(e) => only_computes(&e.expr),
        Expr::Cast(e) => only_computes(&e.expr),
        Expr::Field(e) => only_computes(&e.base),
        Expr::Reference(e) => only_computes(&e.expr),
        Expr::Index(e) => only_computes(&e.expr) && only_computes(&e.index),
        Expr::Binary(e) => !is_compound(&e.op) && only_computes(&e.left) && only_computes(&e.right),
        Expr::MethodCall(e) if is_cast(e) => only_computes(&e.receiver),
        // Without arguments there is nothing that it could write to; what a closure assigns is borrowed
        // as long as the closure is there, so that nothing else in the expression reads it.
        Expr::Call(e) => e.args.is_empty(),
        Expr::Tuple(e) => e.elems.iter().all(only_computes),
        Expr::Array(e) => e.elems.iter().all(only_computes),
        Expr::Struct(e) => e.fields.iter().all(|f| only_computes(&f.expr)),
        _ => false,
    }
}
