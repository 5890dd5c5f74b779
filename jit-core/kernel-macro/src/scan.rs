//! Facts about a body that are found before it is translated.

use std::collections::{HashMap, HashSet};

use kiln_description::When;
use proc_macro2::{Ident, TokenStream};
use syn::visit::Visit;
use syn::{BinOp, Expr, ExprMethodCall, Pat};

use crate::checked::{is_cast, marked, marked_method, marked_operand};
use crate::expression::strip;
use crate::option::{is_result_function, is_some_function};
use crate::pool::Pool;

/// The methods that a body calls, by the names that they are marked with: their entries of the pool. What
/// they are, and so whether they change something, rustc says when it has found them.
#[derive(Default)]
pub(crate) struct Methods(HashMap<String, u32>);

impl Methods {
    /// The methods of a marked body, which become entries of the pool. Of each is told whether it is given closures.
    pub(crate) fn of(
        block: &syn::Block,
        closures: &HashSet<String>,
        pool: &mut Pool,
        entry: impl Fn(&Ident, &ExprMethodCall, bool) -> TokenStream,
    ) -> Methods {
        struct Calls<'a>(Vec<(&'a Ident, &'a ExprMethodCall)>);
        impl<'a> Visit<'a> for Calls<'a> {
            fn visit_expr(&mut self, expr: &'a Expr) {
                self.0.extend(marked_method(expr));
                syn::visit::visit_expr(self, expr);
            }
        }
        let mut calls = Calls(Vec::new());
        calls.visit_block(block);
        let mut numbered = |(of, call): (&Ident, &ExprMethodCall)| {
            let takes_closures = call.args.iter().any(|arg| is_closure(arg, closures));
            let number = pool.entry(&entry(of, call, takes_closures));
            (of.to_string(), number)
        };
        Methods(calls.0.into_iter().map(&mut numbered).collect())
    }

    /// The entry of a call, by its mark.
    pub(crate) fn entry(&self, of: &Ident) -> Option<u32> {
        self.0.get(&of.to_string()).copied()
    }

    /// When a call changes something that is not its own.
    fn changes(&self, of: &Ident) -> When {
        self.entry(of)
            .map_or(When::Always, |entry| When::Changing(vec![entry]))
    }

    /// When the evaluation of an expression does more than computing its value: it assigns something or
    /// leaves a block, so that it makes a difference whether it is evaluated before or after something
    /// else that only computes.
    pub(crate) fn change(&self, expr: &Expr) -> When {
        if let Some((_, inner)) = marked(expr).or_else(|| marked_operand(expr)) {
            return self.change(inner);
        }
        if let Some((of, call)) = marked_method(expr) {
            let parts = self.change_in(std::iter::once(&*call.receiver).chain(&call.args));
            return self.changes(of).or(parts);
        }
        match expr {
            Expr::Lit(_) | Expr::Path(_) => When::Never,
            Expr::Paren(e) => self.change(&e.expr),
            Expr::Group(e) => self.change(&e.expr),
            Expr::Unary(e) => self.change(&e.expr),
            Expr::Cast(e) => self.change(&e.expr),
            Expr::Field(e) => self.change(&e.base),
            Expr::Reference(e) => self.change(&e.expr),
            Expr::Index(e) => self.change_in([&*e.expr, &e.index]),
            Expr::Binary(e) if !is_compound(&e.op) => self.change_in([&*e.left, &e.right]),
            Expr::MethodCall(e) if is_cast(e) => self.change(&e.receiver),
            // Without arguments there is nothing that it could write to; what a closure assigns is
            // borrowed as long as the closure is there, so that nothing else in the expression reads it.
            Expr::Call(e) if e.args.is_empty() => When::Never,
            Expr::Call(e) if is_some_function(&e.func) || is_result_function(&e.func) => {
                self.change_in(&e.args)
            }
            Expr::Tuple(e) => self.change_in(&e.elems),
            Expr::Array(e) => self.change_in(&e.elems),
            Expr::Struct(e) => self.change_in(e.fields.iter().map(|f| &f.expr)),
            _ => When::Always,
        }
    }

    /// When the evaluation of several expressions does more than computing their values.
    pub(crate) fn change_in<'e>(&self, exprs: impl IntoIterator<Item = &'e Expr>) -> When {
        let changes = exprs.into_iter().map(|expr| self.change(expr));
        changes.fold(When::Never, When::or)
    }
}

/// When variables need an address, by their names: they are borrowed, indexed, or assigned in part; or a
/// method changes a part of one, for which it has to be `mut`.
/// Names, not variables: one that is shadowed by another of its name shares its fate, which costs a
/// little memory and changes nothing.
pub(crate) fn addressed<'a>(
    block: &'a syn::Block,
    params: impl Iterator<Item = &'a syn::Pat>,
    methods: &Methods,
) -> HashMap<String, When> {
    let mut scan = Addressed {
        when: HashMap::new(),
        receivers: Vec::new(),
        mutable: HashSet::new(),
        methods,
    };
    scan.visit_block(block);
    params.for_each(|pattern| scan.visit_pat(pattern));
    for (name, when) in std::mem::take(&mut scan.receivers) {
        if scan.mutable.contains(&name) {
            scan.add(name, when);
        }
    }
    scan.when
}

/// How the names of methods end that lend a part of their receiver mutably.
const LENDING: &[&str] = &["_mut", "_mut_slice", "_mut_checked"];

struct Addressed<'a> {
    when: HashMap<String, When>,
    /// Variables that methods are called on parts of, and when those change something.
    receivers: Vec<(String, When)>,
    mutable: HashSet<String>,
    methods: &'a Methods,
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

impl Addressed<'_> {
    fn add(&mut self, name: String, when: When) {
        let before = self.when.entry(name).or_default();
        *before = std::mem::take(before).or(when);
    }

    fn add_variable(&mut self, place: &Expr) {
        if let Some(name) = variable(place) {
            self.add(name.to_string(), When::Always);
        }
    }
}

impl<'ast> Visit<'ast> for Addressed<'_> {
    fn visit_pat_ident(&mut self, pattern: &'ast syn::PatIdent) {
        if pattern.mutability.is_some() {
            self.mutable.insert(pattern.ident.to_string());
        }
        syn::visit::visit_pat_ident(self, pattern);
    }

    fn visit_expr(&mut self, expr: &'ast Expr) {
        // What such a method returns is a part of its receiver, by the names that Rust gives them.
        if let Some((_, call)) = marked_method(expr)
            && LENDING
                .iter()
                .any(|end| call.method.to_string().ends_with(end))
        {
            self.add_variable(&call.receiver);
        }
        if let Some((of, call)) = marked_method(expr)
            && !matches!(strip(&call.receiver), Expr::Path(_))
            && let Some(name) = variable(&call.receiver)
        {
            let when = self.methods.changes(of);
            self.receivers.push((name.to_string(), when));
        }
        match expr {
            Expr::Reference(reference) => self.add_variable(&reference.expr),
            Expr::Index(index) => self.add_variable(&index.expr),
            // In a `for`: elsewhere methods are marked.
            Expr::MethodCall(call) if crate::items::borrows(call) => {
                self.add_variable(&call.receiver);
            }
            Expr::Assign(assign) if !matches!(*assign.left, Expr::Path(_)) => {
                self.add_variable(&assign.left);
            }
            Expr::Binary(binary)
                if is_compound(&binary.op) && !matches!(*binary.left, Expr::Path(_)) =>
            {
                self.add_variable(&binary.left);
            }
            _ => {}
        }
        syn::visit::visit_expr(self, expr);
    }
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

/// Whether an argument is a closure: one that is written there, or one of these names.
pub(crate) fn is_closure(argument: &Expr, closures: &HashSet<String>) -> bool {
    match strip(argument) {
        Expr::Closure(_) => true,
        Expr::Reference(reference) => is_closure(&reference.expr, closures),
        Expr::Path(path) => {
            let name = path.path.get_ident().map(ToString::to_string);
            name.is_some_and(|name| closures.contains(&name))
        }
        _ => false,
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
    /// The names that closures have.
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

/// Whether an expression returns from the function it is in.
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
    fn visit_expr_try(&mut self, _: &'ast syn::ExprTry) {
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
