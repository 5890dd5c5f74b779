//! `match`, and patterns wherever they stand.

use kiln_description::{Code, Op};
use proc_macro2::Span;
use syn::spanned::Spanned;
use syn::{Arm, Expr, Lit, Pat, PatRange, PatSlice, RangeLimits, UnOp};

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
            Pat::Slice(slice) => {
                let (whole, eager) = (self.fresh(), self.op(Op::Eager, span).code(value));
                let mut parts = vec![Code::new(Op::Let, None).number(whole).code(&eager)];
                for (pattern, element) in self.bound_elements(slice, &local(whole), false) {
                    parts.push(self.bind_pattern(&pattern, &element));
                }
                Code::block(parts)
            }
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
        let arms = self.arms(&arms, &local(value), is_unsized_place(&e.expr), to);
        let subject = Code::new(Op::Let, None).number(value).code(&subject);
        Code::block(vec![subject, arms])
    }

    fn arms(&mut self, arms: &[&Arm], value: &Code, is_place: bool, to: &Destination) -> Code {
        let Some((arm, rest)) = arms.split_first() else {
            return Code::new(Op::Unit, None);
        };
        let span = arm.pat.start();
        let test = self.test(&arm.pat, value);
        let (guard, body) = self.scoped(|this| {
            let bindings = this.bindings_of(&arm.pat, value, is_place);
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
        let rest = self.nested(&arm.body, |this| this.arms(rest, value, is_place, to));
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
            Pat::Slice(slice) => Some(self.elements_test(slice, value)),
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
             tuples, structs, arrays and slices of such",
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
                self.bindings_of(&reference.pat, &inner, true)
            }
            Pat::Tuple(_) | Pat::Struct(_) | Pat::TupleStruct(_) => {
                let mut out = Vec::new();
                for (field, part) in self.fields(pattern) {
                    let part_value = self.op(Op::BoundField, span).text(&field).code(value);
                    out.extend(self.bindings(&part, &part_value));
                }
                out
            }
            Pat::Slice(slice) => self.element_bindings(slice, value, false),
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

    /// [`Translator::bindings`] of a pattern that may be one of the elements of a slice itself, not of a reference to it.
    pub(crate) fn bindings_of(&mut self, pattern: &Pat, value: &Code, is_place: bool) -> Vec<Code> {
        match pattern {
            Pat::Paren(paren) => self.bindings_of(&paren.pat, value, is_place),
            Pat::Slice(slice) => self.element_bindings(slice, value, is_place),
            _ => self.bindings(pattern, value),
        }
    }

    fn element_bindings(&mut self, slice: &PatSlice, value: &Code, is_place: bool) -> Vec<Code> {
        let mut out = Vec::new();
        for (part, element) in self.bound_elements(slice, value, is_place) {
            out.extend(self.bindings(&part, &element));
        }
        out
    }

    /// The patterns of elements and of the rest with what each binds.
    fn bound_elements(
        &mut self,
        slice: &PatSlice,
        value: &Code,
        is_place: bool,
    ) -> Vec<(Pat, Code)> {
        let parts = ElementPatterns::of(slice);
        let mut bound = Vec::new();
        for (pattern, number, from_end) in parts.elements() {
            let code = self.op(Op::BoundElement, pattern.start());
            let code = code.flag(from_end).flag(is_place);
            bound.push((pattern.clone(), code.number(number).code(value)));
        }
        if let Some(Pat::Ident(rest)) = parts.rest {
            let code = self.op(Op::BoundRest, rest.ident.span());
            let code = code.number(parts.front.len() as u32);
            let code = code.number(parts.back.len() as u32).code(value);
            let mut name = rest.clone();
            name.subpat = None;
            bound.push((Pat::Ident(name), code));
        }
        bound
    }

    /// Whether there are as many elements as a pattern has, and these match.
    fn elements_test(&mut self, slice: &PatSlice, value: &Code) -> Code {
        let span = slice.bracket_token.span.open();
        let parts = ElementPatterns::of(slice);
        let least = (parts.front.len() + parts.back.len()) as u32;
        let count = self.op(Op::HasElements, span).flag(parts.rest.is_some());
        let count = count.number(least).code(value);
        let mut all = Vec::new();
        for (pattern, number, from_end) in parts.elements() {
            let element = self.op(Op::ElementAt, pattern.start()).flag(from_end);
            all.extend(self.test(pattern, &element.number(number).code(value)));
        }
        let both = |a, b| self.op(Op::BitAnd, span).code(&a).code(&b);
        match all.into_iter().reduce(both) {
            // They are there only if the count is right.
            Some(inner) => self.op(Op::And, span).code(&count).region(&inner),
            None => count,
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

/// A pattern of elements: those from the start on, `..` or a name for the rest, those up to the end.
struct ElementPatterns<'p> {
    front: Vec<&'p Pat>,
    rest: Option<&'p Pat>,
    back: Vec<&'p Pat>,
}

impl<'p> ElementPatterns<'p> {
    fn of(slice: &'p PatSlice) -> Self {
        let mut all: Vec<&Pat> = slice.elems.iter().collect();
        let Some(at) = all.iter().position(|pattern| is_rest(pattern)) else {
            return ElementPatterns {
                front: all,
                rest: None,
                back: Vec::new(),
            };
        };
        let back = all.split_off(at + 1);
        let rest = all.pop();
        ElementPatterns {
            front: all,
            rest,
            back,
        }
    }

    /// The patterns of elements, the number of each, and whether it is counted from the end.
    fn elements(&self) -> Vec<(&'p Pat, u32, bool)> {
        let front = self
            .front
            .iter()
            .zip(0..)
            .map(|(&pattern, at)| (pattern, at, false));
        let back = self
            .back
            .iter()
            .rev()
            .zip(0..)
            .map(|(&pattern, at)| (pattern, at, true));
        front.chain(back).collect()
    }
}

/// Whether a pattern stands for any number of elements: `..`, `rest @ ..`.
fn is_rest(pattern: &Pat) -> bool {
    match pattern {
        Pat::Rest(_) => true,
        Pat::Ident(ident) => ident
            .subpat
            .as_ref()
            .is_some_and(|(_, inner)| is_rest(inner)),
        Pat::Paren(paren) => is_rest(&paren.pat),
        _ => false,
    }
}

/// Whether an expression is a slice itself, of which a pattern binds elements and no references: `*x`, `x[a..b]`.
pub(crate) fn is_unsized_place(expr: &Expr) -> bool {
    match strip(expr) {
        Expr::Unary(unary) => matches!(unary.op, UnOp::Deref(_)),
        Expr::Index(index) => matches!(strip(&index.index), Expr::Range(_)),
        _ => false,
    }
}

/// Whether a name in a pattern is taken for a constant: those are written in capitals, or are
/// variants of an enum.
fn is_constant_name(name: &proc_macro2::Ident) -> bool {
    name.to_string().starts_with(char::is_uppercase)
}
