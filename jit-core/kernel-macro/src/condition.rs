//! Patterns that may not match outside of `match`: `if let`, `while let`, `let .. else`, `matches!`.

use kiln_description::{Code, Op};
use proc_macro2::Span;
use quote::quote_spanned;
use syn::parse::{Parse, ParseStream};
use syn::spanned::Spanned;
use syn::{BinOp, Expr, ExprIf, ExprLet, ExprWhile, Local, Macro, Pat, Token};

use crate::body::{Destination, Translator, local};
use crate::flow::FrameKind;
use crate::pattern::is_unsized_place;
use crate::position::Start;

/// A part of a condition.
#[derive(Copy, Clone)]
enum Part<'e> {
    Holds(&'e Expr),
    Matches(&'e ExprLet),
}

/// The parts of a condition that are joined by `&&`, if there is a `let` in it.
fn parts(condition: &Expr) -> Option<Vec<Part<'_>>> {
    fn add<'e>(expr: &'e Expr, parts: &mut Vec<Part<'e>>) {
        match expr {
            Expr::Let(of) => parts.push(Part::Matches(of)),
            Expr::Binary(e) if matches!(e.op, BinOp::And(_)) => {
                add(&e.left, parts);
                add(&e.right, parts);
            }
            Expr::Group(group) => add(&group.expr, parts),
            other => parts.push(Part::Holds(other)),
        }
    }
    let mut all = Vec::new();
    add(condition, &mut all);
    let matches = all.iter().any(|part| matches!(part, Part::Matches(_)));
    matches.then_some(all)
}

/// A value and whether it matches.
struct Subject {
    /// Evaluates what is matched.
    evaluate: Code,
    value: Code,
    /// Whether the value matches; none if that is always so.
    test: Option<Code>,
}

impl Translator<'_> {
    /// What a pattern is compared with, evaluated once.
    fn subject(&mut self, pattern: &Pat, value: &Code, span: Span) -> Subject {
        let variable = self.fresh();
        let eager = self.op(Op::Eager, span).code(value);
        let value = local(variable);
        Subject {
            evaluate: Code::new(Op::Let, None).number(variable).code(&eager),
            test: self.test(pattern, &value),
            value,
        }
    }

    /// `if` whose condition has a `let`; none if it has none.
    pub(crate) fn if_let(&mut self, e: &ExprIf, to: &Destination) -> Option<Code> {
        let parts = parts(&e.cond)?;
        let span = e.if_token.span();
        let Some((_, otherwise)) = &e.else_branch else {
            return Some(self.chain(&parts, span, &mut |this| this.block(&e.then_branch, to)));
        };
        if let [Part::Matches(of)] = parts.as_slice() {
            let then = |this: &mut Self| this.block(&e.then_branch, to);
            let otherwise = |this: &mut Self| this.into(otherwise, to);
            return Some(self.matched(of, span, then, otherwise));
        }
        // What follows when one of several does not hold stands once, behind all of them.
        Some(self.left_once(span, to, |this| {
            let leave = Code::new(Op::Break, None).number(0);
            let all = this.chain(&parts, span, &mut |this| {
                let then = this.block(&e.then_branch, to);
                Code::block(vec![then, leave.clone()])
            });
            Code::block(vec![all, this.into(otherwise, to)])
        }))
    }

    /// `while` whose condition has a `let`; none if it has none.
    pub(crate) fn while_let(&mut self, e: &ExprWhile) -> Option<Code> {
        let parts = parts(&e.cond)?;
        let (span, to) = (e.while_token.span(), &Destination::Discard);
        let body = self.framed(e.label.as_ref(), FrameKind::Loop, to, |this| {
            let leave = |this: &mut Self| this.op(Op::Break, span).number(0);
            if let [Part::Matches(of)] = parts.as_slice() {
                return this.matched(of, span, |this| this.block(&e.body, to), leave);
            }
            let all = this.chain(&parts, span, &mut |this| {
                let body = this.block(&e.body, to);
                Code::block(vec![body, Code::new(Op::Continue, None).number(0)])
            });
            Code::block(vec![all, leave(this)])
        });
        Some(self.op(Op::Loop, span).region(&body))
    }

    /// One thing where a pattern matches, with its names, and another where it does not.
    fn matched(
        &mut self,
        of: &ExprLet,
        span: Span,
        then: impl FnOnce(&mut Self) -> Code,
        otherwise: impl FnOnce(&mut Self) -> Code,
    ) -> Code {
        let value = self.expr(&of.expr);
        let subject = self.subject(&of.pat, &value, of.pat.start());
        let then = self.scoped(|this| {
            let mut bound = this.bindings_of(&of.pat, &subject.value, is_unsized_place(&of.expr));
            bound.push(then(this));
            Code::block(bound)
        });
        let otherwise = otherwise(self);
        Code::block(vec![
            subject.evaluate,
            match subject.test {
                None => then,
                Some(test) => {
                    let code = self.op(Op::IfElse, span).code(&test);
                    code.region(&then).region(&otherwise)
                }
            },
        ])
    }

    /// What is to be done where all parts hold, each of which sees the names of those before it.
    fn chain(
        &mut self,
        parts: &[Part<'_>],
        span: Span,
        then: &mut dyn FnMut(&mut Self) -> Code,
    ) -> Code {
        let Some((part, rest)) = parts.split_first() else {
            return then(self);
        };
        match part {
            Part::Holds(condition) => {
                let condition = self.expr(condition);
                let rest = self.chain(rest, span, then);
                self.op(Op::If, span).code(&condition).region(&rest)
            }
            Part::Matches(of) => {
                let value = self.expr(&of.expr);
                let subject = self.subject(&of.pat, &value, of.pat.start());
                let rest = self.scoped(|this| {
                    let mut bound =
                        this.bindings_of(&of.pat, &subject.value, is_unsized_place(&of.expr));
                    bound.push(this.chain(rest, span, then));
                    Code::block(bound)
                });
                let rest = match subject.test {
                    None => rest,
                    Some(test) => self.op(Op::If, span).code(&test).region(&rest),
                };
                Code::block(vec![subject.evaluate, rest])
            }
        }
    }

    /// `let pattern = value else { .. };`
    pub(crate) fn let_else(
        &mut self,
        local: &Local,
        pattern: &Pat,
        value: &Code,
        otherwise: &Expr,
    ) -> Code {
        let span = local.let_token.span();
        let subject = self.subject(pattern, value, span);
        let mut parts = vec![subject.evaluate];
        if let Some(test) = subject.test {
            let fails = self.op(Op::Not, span).code(&test);
            let otherwise = self.into(otherwise, &Destination::Discard);
            parts.push(self.op(Op::If, span).code(&fails).region(&otherwise));
        }
        let is_place = (local.init.as_ref()).is_some_and(|init| is_unsized_place(&init.expr));
        parts.extend(self.bindings_of(pattern, &subject.value, is_place));
        Code::block(parts)
    }
}

/// What stands in the parentheses of `matches!`.
struct Matches {
    value: Expr,
    pattern: Pat,
    guard: Option<Expr>,
}

impl Parse for Matches {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let value = input.parse()?;
        input.parse::<Token![,]>()?;
        let pattern = Pat::parse_multi_with_leading_vert(input)?;
        let guard = match input.parse::<Option<Token![if]>>()? {
            Some(_) => Some(input.parse()?),
            None => None,
        };
        input.parse::<Option<Token![,]>>()?;
        Ok(Matches {
            value,
            pattern,
            guard,
        })
    }
}

/// The `match` that `matches!` is; none of another macro, and of one that is written wrongly.
pub(crate) fn opened(written: &Macro) -> Option<Expr> {
    let name = &written.path.segments.last()?.ident;
    if name != "matches" {
        return None;
    }
    let Matches {
        value,
        pattern,
        guard,
    } = written.parse_body().ok()?;
    let guard = guard.map(|guard| quote_spanned!(name.span()=> if #guard));
    let whole = quote_spanned! {name.span()=>
        match #value {
            #pattern #guard => true,
            #[allow(unreachable_patterns, reason = "the pattern may match whatever there is")]
            _ => false,
        }
    };
    syn::parse2(whole).ok()
}
