//! Which expressions are numbers whatever rustc infers, by how they are written.
//!
//! An operator on anything else may be one of a struct, so rustc is asked what its operands are, which costs it time
//! in each kernel. So what is known here is worth little each and all of it together: parameters and variables whose
//! types are written, what is made of them, literals, indices. "A number" is also a `bool` and a slice, an array, a
//! tuple or a reference of numbers; nothing of these has operators of its own.

use std::collections::HashMap;

use proc_macro2::Ident;
use syn::visit::Visit;
use syn::{Block, Expr, Local, Pat, Path, Stmt, Type};

use crate::call::is_number;
use crate::signature::Signature;

/// Functions of Kiln's library whose results are numbers, or indices, which are made of them.
const FUNCTIONS: &[&str] = &[
    "global_id",
    "thread_idx",
    "block_idx",
    "block_dim",
    "grid_dim",
    "lane_id",
    "warp_id",
];

/// Others that kernels call often.
const OTHERS: &[&str] = &["global_size", "barrier"];

/// Whether a path names a function of Kiln's library, by its name, that is one for all types: its calls need not be told
/// apart.
pub(crate) fn is_one_for_all(path: &Path) -> bool {
    let mut known = FUNCTIONS.iter().chain(OTHERS);
    path.get_ident()
        .is_some_and(|name| known.any(|one| name == one))
}

/// What is known of the names of a body.
pub(crate) struct Numbers {
    type_params: Vec<Ident>,
    /// Variables and const parameters, and whether all of that name are numbers.
    names: HashMap<String, bool>,
}

impl Numbers {
    /// Looks through a body as it was written.
    pub(crate) fn of(body: &Block, signature: &Signature) -> Numbers {
        let mut numbers = Numbers {
            type_params: signature.type_names(),
            names: HashMap::new(),
        };
        for param in &signature.params {
            let known = numbers.is_type(&param.ty);
            numbers.bind(&param.pattern, known);
        }
        for param in signature.generics.const_params() {
            numbers.note(&param.ident, true);
        }
        numbers.visit_block(body);
        numbers
    }

    /// Whether neither operand of an operator can be one with operators of its own.
    pub(crate) fn are(&self, operands: &[&Expr]) -> bool {
        operands.iter().all(|operand| self.is(operand))
    }

    fn note(&mut self, name: &Ident, known: bool) {
        let all = self.names.entry(name.to_string()).or_insert(true);
        *all &= known;
    }

    /// Enters the variables of a pattern.
    fn bind(&mut self, pattern: &Pat, known: bool) {
        struct Idents<'a>(Vec<&'a Ident>);
        impl<'a> Visit<'a> for Idents<'a> {
            fn visit_pat_ident(&mut self, pattern: &'a syn::PatIdent) {
                self.0.push(&pattern.ident);
                syn::visit::visit_pat_ident(self, pattern);
            }
            fn visit_expr(&mut self, _: &'a Expr) {}
        }
        let mut idents = Idents(Vec::new());
        idents.visit_pat(pattern);
        for name in idents.0 {
            self.note(name, known);
        }
    }

    /// Whether a type is made of numbers alone.
    fn is_type(&self, ty: &Type) -> bool {
        match ty {
            Type::Array(array) => self.is_type(&array.elem),
            Type::Slice(slice) => self.is_type(&slice.elem),
            Type::Reference(reference) => self.is_type(&reference.elem),
            Type::Group(group) => self.is_type(&group.elem),
            Type::Paren(paren) => self.is_type(&paren.elem),
            Type::Tuple(tuple) => tuple.elems.iter().all(|ty| self.is_type(ty)),
            Type::Path(path) if let Some(parts) = crate::option::parts_of_type(path) => {
                parts.into_iter().all(|part| self.is_type(part))
            }
            Type::Path(path) if path.qself.is_none() => {
                path.path.get_ident().is_some_and(|name| self.is_name(name))
            }
            _ => false,
        }
    }

    /// Whether a name is that of a type of numbers. A type parameter is one: kernels know no operators of others.
    fn is_name(&self, name: &Ident) -> bool {
        is_number(name) || name == "bool" || self.type_params.contains(name)
    }

    /// Whether an expression is made of numbers alone.
    fn is(&self, expr: &Expr) -> bool {
        match expr {
            Expr::Lit(_) => true,
            Expr::Paren(e) => self.is(&e.expr),
            Expr::Group(e) => self.is(&e.expr),
            Expr::Unary(e) => self.is(&e.expr),
            Expr::Reference(e) => self.is(&e.expr),
            Expr::Field(e) => self.is(&e.base),
            Expr::Index(e) => self.is(&e.expr),
            Expr::Repeat(e) => self.is(&e.expr),
            Expr::Binary(e) => is_comparison(&e.op) || self.are(&[&e.left, &e.right]),
            Expr::Cast(e) => self.is_type(&e.ty),
            Expr::Tuple(e) => e.elems.iter().all(|e| self.is(e)),
            Expr::Array(e) => e.elems.iter().all(|e| self.is(e)),
            Expr::MethodCall(e) if crate::checked::is_cast(e) => true,
            Expr::MethodCall(e) => self.is(&e.receiver) && e.args.iter().all(|e| self.is(e)),
            Expr::Call(e) if crate::option::is_some_function(&e.func) => {
                e.args.iter().all(|e| self.is(e))
            }
            Expr::Try(e) => self.is(&e.expr),
            Expr::Call(e) => match &*e.func {
                Expr::Path(path) => self.is_call(&path.path),
                _ => false,
            },
            Expr::Path(path) if path.qself.is_none() => self.is_path(&path.path),
            Expr::If(e) => {
                let other = e.else_branch.as_ref();
                self.is_block(&e.then_branch) && other.is_some_and(|(_, other)| self.is(other))
            }
            Expr::Block(e) => self.is_block(&e.block),
            Expr::Match(e) => e.arms.iter().all(|arm| self.is(&arm.body)),
            Expr::Macro(e) if e.mac.path.is_ident("shared") => {
                syn::parse2(e.mac.tokens.clone()).is_ok_and(|ty| self.is_type(&ty))
            }
            _ => false,
        }
    }

    /// Whether what a `for` goes over has numbers. The ends of a range are some.
    fn has_numbers(&self, expr: &Expr) -> bool {
        match crate::expression::strip(expr) {
            Expr::Range(_) => true,
            Expr::MethodCall(call) if crate::items::is_of_iterator(call) => {
                let is_zip = call.method == "zip";
                let zipped = !is_zip || call.args.iter().all(|other| self.has_numbers(other));
                self.has_numbers(&call.receiver) && zipped
            }
            other => self.is(other),
        }
    }

    fn is_block(&self, block: &Block) -> bool {
        matches!(block.stmts.last(), Some(Stmt::Expr(last, None)) if self.is(last))
    }

    /// A variable, or a constant of a number.
    fn is_path(&self, path: &Path) -> bool {
        let first = path.segments.first().map(|segment| &segment.ident);
        match path.get_ident() {
            Some(name) => self.names.get(&name.to_string()) == Some(&true),
            None => path.segments.len() == 2 && first.is_some_and(|name| self.is_name(name)),
        }
    }

    /// A function of a number or of the library.
    fn is_call(&self, path: &Path) -> bool {
        match path.get_ident() {
            Some(name) => FUNCTIONS.iter().any(|function| name == function),
            None => self.is_path(path),
        }
    }
}

impl<'ast> Visit<'ast> for Numbers {
    fn visit_local(&mut self, local: &'ast Local) {
        syn::visit::visit_local(self, local);
        let (pattern, known) = match (&local.pat, &local.init) {
            (Pat::Type(typed), _) if !crate::types::is_open(&typed.ty) => {
                (&*typed.pat, self.is_type(&typed.ty))
            }
            (pattern, Some(init)) => (pattern, self.is(&init.expr)),
            (pattern, None) => (pattern, false),
        };
        self.bind(pattern, known);
    }

    fn visit_expr_for_loop(&mut self, each: &'ast syn::ExprForLoop) {
        let known = self.has_numbers(&each.expr);
        self.bind(&each.pat, known);
        syn::visit::visit_expr_for_loop(self, each);
    }

    fn visit_expr_match(&mut self, e: &'ast syn::ExprMatch) {
        let known = self.is(&e.expr);
        e.arms.iter().for_each(|arm| self.bind(&arm.pat, known));
        syn::visit::visit_expr_match(self, e);
    }

    fn visit_expr_let(&mut self, e: &'ast syn::ExprLet) {
        let known = self.is(&e.expr);
        self.bind(&e.pat, known);
        syn::visit::visit_expr_let(self, e);
    }

    fn visit_expr_closure(&mut self, closure: &'ast syn::ExprClosure) {
        for input in &closure.inputs {
            let known = matches!(input, Pat::Type(typed) if self.is_type(&typed.ty));
            self.bind(input, known);
        }
        syn::visit::visit_expr_closure(self, closure);
    }

    fn visit_item(&mut self, _: &'ast syn::Item) {}
}

fn is_comparison(op: &syn::BinOp) -> bool {
    use syn::BinOp::{And, Eq, Ge, Gt, Le, Lt, Ne, Or};
    matches!(
        op,
        And(_) | Or(_) | Eq(_) | Lt(_) | Le(_) | Ne(_) | Ge(_) | Gt(_)
    )
}
