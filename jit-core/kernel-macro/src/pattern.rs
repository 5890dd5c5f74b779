//! `match`, and patterns wherever they stand.

use kiln_description::{Code, Op};
use proc_macro2::Span;
use syn::spanned::Spanned;
use syn::{Arm, Expr, Lit, Pat, PatRange, RangeLimits, UnOp};

use crate::body::{Destination, Translator, local, plain_name};
use crate::expression::{member_name, strip};
use crate::option::{VALUE, is_none, is_some};
use crate::position::Start;

/// What a pattern asks of a value: a condition, unless it always matches.
type Test = Option<Code>;

impl Translator<'_> {
    /// `let pattern = value;` for a pattern that always matches.
    pub(crate) fn bind_pattern(&mut self, pattern: &Pat, value: &Code) -> Code {
        let span = pattern.start();
        match pattern {
            Pat::Ident(ident) => {
                if let Some(by_ref) = &ident.by_ref {
                    return self
                        .refuse(by_ref, "kernels have no `ref`; write `&` on the right side");
                }
                let (name, mutable) = (&ident.ident, ident.mutability.is_some());
                let (variable, memory) = (self.variable(name), self.addressed(name));
                let code = self.op(Op::Bind, span).text(&plain_name(name));
                let code = code.flag(mutable).when(&memory);
                let code = code.number(variable).code(value);
                let mut parts = vec![code];
                if let Some((_, inner)) = &ident.subpat {
                    parts.push(self.bind_pattern(inner, &local(variable)));
                }
                Code::block(parts)
            }
            Pat::Wild(_) => self.op(Op::Eager, span).code(value),
            Pat::Paren(paren) => self.bind_pattern(&paren.pat, value),
            Pat::Type(typed) => self.bind_pattern(&typed.pat, value),
            Pat::Reference(reference) => {
                let value = self.op(Op::Deref, span).code(value);
                self.bind_pattern(&reference.pat, &value)
            }
            Pat::Tuple(_) | Pat::Struct(_) | Pat::TupleStruct(_) => {
                let (whole, eager) = (self.fresh(), self.op(Op::Eager, span).code(value));
                let mut parts = vec![Code::new(Op::Let, None).number(whole).code(&eager)];
                for (field, pattern) in self.fields(pattern) {
                    let part = self.op(Op::BoundField, span).text(&field);
                    let part = part.code(&local(whole));
                    parts.push(self.bind_pattern(&pattern, &part));
                }
                Code::block(parts)
            }
            Pat::Slice(_) => self.refuse(pattern, "kernels index: `let a = x[0];`"),
            _ => self.refuse(
                pattern,
                "this pattern may not match; give the value a name and use `match` or `if`",
            ),
        }
    }

    /// The parts of a tuple or struct pattern, by field.
    fn fields(&mut self, pattern: &Pat) -> Vec<(String, Pat)> {
        let numbered = |this: &mut Self, parts: &mut dyn Iterator<Item = &Pat>| {
            let mut fields = Vec::new();
            for (i, part) in parts.enumerate() {
                if let Pat::Rest(_) = part {
                    this.refuse(
                        part,
                        "name every field, with `_` for those that are not needed",
                    );
                }
                fields.push((i.to_string(), part.clone()));
            }
            fields
        };
        match pattern {
            Pat::Tuple(tuple) => numbered(self, &mut tuple.elems.iter()),
            Pat::TupleStruct(tuple) => {
                let name = tuple.path.segments.last().map(|s| s.ident.to_string());
                if matches!(name.as_deref(), Some("Ok" | "Err")) {
                    self.refuse(tuple, crate::refusal::NO_RESULT);
                }
                if is_some(&tuple.path) {
                    let value = tuple.elems.first().cloned();
                    return value
                        .map(|value| (VALUE.to_owned(), value))
                        .into_iter()
                        .collect();
                }
                numbered(self, &mut tuple.elems.iter())
            }
            Pat::Struct(fields) => {
                let part =
                    |field: &syn::FieldPat| (member_name(&field.member), (*field.pat).clone());
                fields.fields.iter().map(part).collect()
            }
            _ => Vec::new(),
        }
    }

    pub(crate) fn match_(&mut self, e: &syn::ExprMatch, to: &Destination) -> Code {
        let span = e.match_token.span();
        let value = self.fresh();
        let subject = self.op(Op::Eager, span).code(&self.expr(&e.expr));
        if let (Some(last), true) = (e.arms.last(), e.arms.len() > 100) {
            return self.refuse(
                last,
                "a `match` of a kernel has at most 100 arms; use a table",
            );
        }
        let arms: Vec<&Arm> = e.arms.iter().collect();
        let arms = self.arms(&arms, &local(value), to);
        let subject = Code::new(Op::Let, None).number(value).code(&subject);
        Code::block(vec![subject, arms])
    }

    fn arms(&mut self, arms: &[&Arm], value: &Code, to: &Destination) -> Code {
        let Some((arm, rest)) = arms.split_first() else {
            return Code::new(Op::Unit, None);
        };
        let span = arm.pat.start();
        let test = self.test(&arm.pat, value);
        let (guard, body) = self.scoped(|this| {
            let bindings = this.bindings(&arm.pat, value);
            let bound = |code: Code| {
                let mut parts = bindings.clone();
                parts.push(code);
                Code::block(parts)
            };
            let guard = arm.guard.as_ref().map(|(_, guard)| bound(this.expr(guard)));
            (guard, bound(this.into(&arm.body, to)))
        });
        let cond = match (test, guard) {
            (None, None) => return body,
            // rustc has checked that the arms before it leave nothing else.
            (Some(_), None) if rest.is_empty() => return body,
            (Some(test), None) => test,
            (None, Some(guard)) => guard,
            (Some(test), Some(guard)) => self.op(Op::And, span).code(&test).region(&guard),
        };
        let rest = self.nested(&arm.body, |this| this.arms(rest, value, to));
        let code = self.op(Op::IfElse, span).code(&cond);
        code.region(&body).region(&rest)
    }

    /// The condition under which a pattern matches.
    // flat match
    pub(crate) fn test(&mut self, pattern: &Pat, value: &Code) -> Test {
        let span = pattern.start();
        match pattern {
            Pat::Wild(_) => None,
            Pat::Paren(paren) => self.test(&paren.pat, value),
            Pat::Type(typed) => self.test(&typed.pat, value),
            Pat::Reference(reference) => {
                let inner = self.op(Op::Deref, span).code(value);
                self.test(&reference.pat, &inner)
            }
            Pat::Ident(ident) if ident.ident == "None" && ident.subpat.is_none() => {
                Some(self.none_test(value, span))
            }
            Pat::Path(path) if is_none(&path.path) => Some(self.none_test(value, span)),
            Pat::Ident(ident) if is_constant_name(&ident.ident) && ident.subpat.is_none() => {
                let constant = self.constant(&ident.ident, span);
                Some(self.op(Op::Eq, span).code(value).code(&constant))
            }
            Pat::Ident(ident) => {
                let inner = ident.subpat.as_ref()?;
                self.test(&inner.1, value)
            }
            Pat::Path(path) => {
                let constant = self.constant(path, span);
                Some(self.op(Op::Eq, span).code(value).code(&constant))
            }
            Pat::Lit(lit) => {
                let lit = self.pattern_constant(&Expr::Lit(lit.clone()), value)?;
                Some(self.op(Op::Eq, span).code(value).code(&lit))
            }
            Pat::Verbatim(tokens) => match syn::parse2::<Expr>(tokens.clone()) {
                Ok(expr) => {
                    let lit = self.pattern_constant(&expr, value)?;
                    Some(self.op(Op::Eq, span).code(value).code(&lit))
                }
                Err(_) => self.no_pattern(pattern),
            },
            Pat::Range(range) => self.range_test(range, value),
            Pat::Or(or) => {
                let mut all = Vec::new();
                for case in &or.cases {
                    all.push(self.test(case, value)?);
                }
                let either = |a, b| self.op(Op::BitOr, span).code(&a).code(&b);
                all.into_iter().reduce(either)
            }
            // Its value is there only if it is.
            Pat::TupleStruct(tuple) if is_some(&tuple.path) => {
                let is_some = self.is_some_of(value, span);
                let inner = self.op(Op::Field, span).text(VALUE).code(value);
                let inner = (tuple.elems.first()).and_then(|part| self.test(part, &inner));
                Some(match inner {
                    Some(inner) => self.op(Op::And, span).code(&is_some).region(&inner),
                    None => is_some,
                })
            }
            Pat::Tuple(_) | Pat::Struct(_) | Pat::TupleStruct(_) => {
                let mut all = Vec::new();
                for (field, part) in self.fields(pattern) {
                    let part_value = self.op(Op::Field, span).text(&field).code(value);
                    all.extend(self.test(&part, &part_value));
                }
                let both = |a, b| self.op(Op::BitAnd, span).code(&a).code(&b);
                all.into_iter().reduce(both)
            }
            _ => self.no_pattern(pattern),
        }
    }

    fn none_test(&self, value: &Code, span: Span) -> Code {
        let is_some = self.is_some_of(value, span);
        self.op(Op::Not, span).code(&is_some)
    }

    fn no_pattern(&mut self, pattern: &Pat) -> Test {
        self.refuse(
            pattern,
            "patterns of kernels are integers, ranges, bools, constants, enums without fields, `Some`, `None`, and \
             tuples and structs of such",
        );
        None
    }

    /// The names that a pattern binds, as statements.
    pub(crate) fn bindings(&mut self, pattern: &Pat, value: &Code) -> Vec<Code> {
        let span = pattern.start();
        match pattern {
            Pat::Ident(ident) if is_constant_name(&ident.ident) && ident.subpat.is_none() => {
                Vec::new()
            }
            Pat::Ident(ident) => {
                let mut named = ident.clone();
                let inner = named.subpat.take();
                let mut out = vec![self.bind_pattern(&Pat::Ident(named), value)];
                if let Some((_, inner)) = inner {
                    out.extend(self.bindings(&inner, value));
                }
                out
            }
            Pat::Paren(paren) => self.bindings(&paren.pat, value),
            Pat::Reference(reference) => {
                let inner = self.op(Op::Deref, span).code(value);
                self.bindings(&reference.pat, &inner)
            }
            Pat::Tuple(_) | Pat::Struct(_) | Pat::TupleStruct(_) => {
                let mut out = Vec::new();
                for (field, part) in self.fields(pattern) {
                    let part_value = self.op(Op::BoundField, span).text(&field).code(value);
                    out.extend(self.bindings(&part, &part_value));
                }
                out
            }
            Pat::Or(or) => {
                for case in &or.cases {
                    if !self.bindings(case, value).is_empty() {
                        self.refuse(case, "alternatives bind no names; write an arm for each");
                    }
                }
                Vec::new()
            }
            _ => Vec::new(),
        }
    }

    fn range_test(&mut self, range: &PatRange, value: &Code) -> Test {
        let exclusive = matches!(range.limits, RangeLimits::HalfOpen(_));
        let mut end = |end: &Option<Box<Expr>>| {
            let end = end.as_ref()?;
            self.pattern_constant(end, value)
        };
        let (low, high) = (end(&range.start), end(&range.end));
        let code = self.op(Op::InRange, range.span()).flag(exclusive);
        Some(code.code(value).option(low.as_ref()).option(high.as_ref()))
    }

    /// A constant in a pattern, of the type of what it is compared with.
    fn pattern_constant(&mut self, expr: &Expr, value: &Code) -> Option<Code> {
        let span = expr.start();
        let (negative, inner) = match strip(expr) {
            Expr::Unary(unary) if matches!(unary.op, UnOp::Neg(_)) => (true, strip(&unary.expr)),
            other => (false, other),
        };
        match inner {
            Expr::Lit(lit) => match &lit.lit {
                Lit::Int(int) => {
                    let Ok(number) = int
                        .base10_parse::<i64>()
                        .map(i128::from)
                        .or_else(|_| int.base10_parse::<u64>().map(i128::from))
                    else {
                        self.refuse(int, "integers of kernels have at most 64 bits");
                        return None;
                    };
                    let number = if negative { -number } else { number };
                    Some(self.op(Op::Like, span).code(value).int(number))
                }
                Lit::Bool(_) | Lit::Byte(_) => Some(self.constant(lit, span)),
                Lit::Float(_) => {
                    self.refuse(lit, "floats are compared with `<` and `==` in an `if`");
                    None
                }
                _ => {
                    self.refuse(
                        lit,
                        "kernels have no strings and no `char`; match on integers",
                    );
                    None
                }
            },
            Expr::Path(path) if !negative => Some(self.constant(path, span)),
            other => {
                self.refuse(
                    other,
                    "a pattern has literals and constants; compare in a guard",
                );
                None
            }
        }
    }
}

/// Whether a name in a pattern is taken for a constant: those are written in capitals, or are
/// variants of an enum.
fn is_constant_name(name: &proc_macro2::Ident) -> bool {
    name.to_string().starts_with(char::is_uppercase)
}
