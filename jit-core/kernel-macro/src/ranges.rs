//! Ranges that have a name, `let r = a..b;`: written out as variables of their ends, and as a range again where the name is.
//!
//! ```text
//! let r = from..to;          let s = from; let e = to;
//! for i in r.clone() { .. }  for i in (s..e) { .. }
//! &x[r]                      &x[(s..e)]
//! ```
//! Both copies of a body are made of that, as they are of chains ([`crate::chain`]). A range that is no variable of its
//! own, an argument or a part of a struct, stays what it is, and is refused.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::visit::Visit;
use syn::visit_mut::VisitMut;
use syn::{Block, Expr, ExprMethodCall, Member, Pat, RangeLimits, Stmt};

use crate::expression::strip;
use crate::scan::Variables;

/// Writes the ranges of a body out that have names.
pub(crate) fn open(body: &mut Block) {
    Open { names: 0 }.visit_block_mut(body);
}

struct Open {
    /// How many names there are.
    names: u32,
}

impl Open {
    /// A variable for an end of a range, with a name that no user can write.
    fn end(&mut self, end: Option<&Expr>, at: Span, written: &mut Vec<Stmt>) -> Option<Ident> {
        let end = end?;
        self.names += 1;
        let span = Span::mixed_site().located_at(at);
        let name = Ident::new(&format!("__kiln_range{}", self.names), span);
        written.push(syn::parse2(quote!(let #name = #end;)).ok()?);
        Some(name)
    }

    /// The range that a statement names, and the statements that it becomes.
    fn named(&mut self, statement: &Stmt) -> Option<(Named, Vec<Stmt>)> {
        let Stmt::Local(local) = statement else {
            return None;
        };
        let (Pat::Ident(pattern), Some(init)) = (&local.pat, &local.init) else {
            return None;
        };
        let is_plain =
            pattern.by_ref.is_none() && pattern.mutability.is_none() && pattern.subpat.is_none();
        let Expr::Range(range) = strip(&init.expr) else {
            return None;
        };
        if !is_plain || init.diverge.is_some() || range.start.is_none() && range.end.is_none() {
            return None;
        }
        let (at, mut written) = (pattern.ident.span(), Vec::new());
        let start = self.end(range.start.as_deref(), at, &mut written);
        let end = self.end(range.end.as_deref(), at, &mut written);
        let named = Named {
            name: pattern.ident.clone(),
            start,
            end,
            limits: range.limits,
        };
        Some((named, written))
    }
}

impl VisitMut for Open {
    fn visit_block_mut(&mut self, block: &mut Block) {
        let mut rest = std::mem::take(&mut block.stmts);
        rest.reverse();
        while let Some(mut statement) = rest.pop() {
            if let Some((mut named, written)) = self.named(&statement) {
                rest.reverse();
                named.in_statements(&mut rest);
                rest.reverse();
                block.stmts.extend(written);
                continue;
            }
            self.visit_stmt_mut(&mut statement);
            block.stmts.push(statement);
        }
    }

    fn visit_item_mut(&mut self, _: &mut syn::Item) {}
}

/// A range that is written out, where its name is known.
struct Named {
    name: Ident,
    start: Option<Ident>,
    end: Option<Ident>,
    limits: RangeLimits,
}

impl Named {
    /// Puts the range in place of its name, up to where another variable has the name.
    fn in_statements(&mut self, statements: &mut [Stmt]) {
        for statement in statements {
            self.visit_stmt_mut(statement);
            if let Stmt::Local(local) = statement
                && self.is_bound_by(&local.pat)
            {
                return;
            }
        }
    }

    fn is_bound_by(&self, pattern: &Pat) -> bool {
        let mut variables = Variables::default();
        variables.visit_pat(pattern);
        variables.names.contains(&self.name)
    }

    /// Whether a condition binds the name, for what stands behind it.
    fn is_bound_in(&self, condition: &Expr) -> bool {
        match condition {
            Expr::Let(of) => self.is_bound_by(&of.pat),
            Expr::Binary(both) => self.is_bound_in(&both.left) || self.is_bound_in(&both.right),
            _ => false,
        }
    }

    fn is_named(&self, expr: &Expr) -> bool {
        matches!(strip(expr), Expr::Path(path) if path.path.get_ident() == Some(&self.name))
    }

    /// The range itself.
    fn range(&self, at: Span) -> TokenStream {
        let (start, end, limits) = (&self.start, &self.end, &self.limits);
        quote_spanned!(at=> (#start #limits #end))
    }

    /// Methods of a range that are no chain's: `len` and `is_empty`, the ends of an inclusive one, `clone`.
    fn method(&self, call: &ExprMethodCall) -> Option<TokenStream> {
        let at = Span::mixed_site().located_at(call.span());
        let is_closed = matches!(self.limits, RangeLimits::Closed(_));
        if !call.args.is_empty() {
            return None;
        }
        let (start, end) = (self.start.as_ref(), self.end.as_ref());
        match (call.method.to_string().as_str(), start, end) {
            ("clone", ..) => Some(self.range(call.span())),
            ("len", Some(start), Some(end)) if !is_closed => Some(
                quote_spanned!(at=> ((if #start < #end { #end - #start } else { 0 }) as usize)),
            ),
            ("is_empty", Some(start), Some(end)) => Some(match is_closed {
                true => quote_spanned!(at=> (!(#start <= #end))),
                false => quote_spanned!(at=> (!(#start < #end))),
            }),
            ("start", Some(start), _) if is_closed => Some(quote_spanned!(at=> (&#start))),
            ("end", _, Some(end)) if is_closed => Some(quote_spanned!(at=> (&#end))),
            _ => None,
        }
    }

    /// What stands in place of an expression that is about the range.
    fn written_out(&self, expr: &Expr) -> Option<TokenStream> {
        match expr {
            Expr::Path(path) if self.is_named(expr) => Some(self.range(path.span())),
            Expr::MethodCall(call) if self.is_named(&call.receiver) => self.method(call),
            Expr::Field(field) if self.is_named(&field.base) => match &field.member {
                Member::Named(name) if name == "start" => Some(self.start.to_token_stream()),
                Member::Named(name) if name == "end" => Some(self.end.to_token_stream()),
                _ => None,
            },
            _ => None,
        }
    }
}

impl VisitMut for Named {
    fn visit_expr_mut(&mut self, expr: &mut Expr) {
        if let Some(tokens) = self.written_out(expr)
            && let Ok(written) = syn::parse2(tokens)
        {
            *expr = written;
            return;
        }
        match expr {
            Expr::Closure(closure) if closure.inputs.iter().any(|p| self.is_bound_by(p)) => {}
            Expr::ForLoop(each) if self.is_bound_by(&each.pat) => {
                self.visit_expr_mut(&mut each.expr);
            }
            Expr::If(branch) if self.is_bound_in(&branch.cond) => {
                self.visit_expr_mut(&mut branch.cond);
                if let Some((_, otherwise)) = &mut branch.else_branch {
                    self.visit_expr_mut(otherwise);
                }
            }
            Expr::While(turns) if self.is_bound_in(&turns.cond) => {
                self.visit_expr_mut(&mut turns.cond);
            }
            _ => syn::visit_mut::visit_expr_mut(self, expr),
        }
    }

    fn visit_arm_mut(&mut self, arm: &mut syn::Arm) {
        if !self.is_bound_by(&arm.pat) {
            syn::visit_mut::visit_arm_mut(self, arm);
        }
    }

    fn visit_block_mut(&mut self, block: &mut Block) {
        self.in_statements(&mut block.stmts);
    }

    fn visit_item_mut(&mut self, _: &mut syn::Item) {}
}
