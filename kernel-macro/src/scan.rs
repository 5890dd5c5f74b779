//! Facts about a body that are found before it is translated.

use std::collections::HashSet;

use syn::visit::Visit;
use syn::{BinOp, Expr};

/// The names of variables that need an address: they are borrowed, indexed, or assigned in part.
/// Names, not variables: one that is shadowed by another of its name shares its fate, which costs a
/// little memory and changes nothing.
pub(crate) fn addressed(block: &syn::Block) -> HashSet<String> {
    let mut scan = Addressed(HashSet::new());
    scan.visit_block(block);
    scan.0
}

struct Addressed(HashSet<String>);

impl Addressed {
    fn add(&mut self, place: &Expr) {
        match place {
            Expr::Path(path) => {
                if let Some(name) = path.path.get_ident() {
                    self.0.insert(name.to_string());
                }
            }
            Expr::Field(field) => self.add(&field.base),
            Expr::Index(index) => self.add(&index.expr),
            Expr::Paren(paren) => self.add(&paren.expr),
            Expr::Group(group) => self.add(&group.expr),
            _ => {}
        }
    }
}

impl<'ast> Visit<'ast> for Addressed {
    fn visit_expr(&mut self, expr: &'ast Expr) {
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

/// Whether a body returns before its end; what closures in it return is theirs.
pub(crate) fn returns_early(block: &syn::Block) -> bool {
    struct Returns(bool);
    impl<'ast> Visit<'ast> for Returns {
        fn visit_expr_return(&mut self, _: &'ast syn::ExprReturn) {
            self.0 = true;
        }
        fn visit_expr_closure(&mut self, _: &'ast syn::ExprClosure) {}
    }
    let mut returns = Returns(false);
    returns.visit_block(block);
    returns.0
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
        Expr::MethodCall(e) => only_computes(&e.receiver) && e.args.iter().all(only_computes),
        // Without arguments there is nothing that it could write to; what a closure assigns is borrowed
        // as long as the closure is there, so that nothing else in the expression reads it.
        Expr::Call(e) => e.args.is_empty(),
        Expr::Tuple(e) => e.elems.iter().all(only_computes),
        Expr::Array(e) => e.elems.iter().all(only_computes),
        Expr::Struct(e) => e.fields.iter().all(|f| only_computes(&f.expr)),
        _ => false,
    }
}
