//! `match`, and patterns wherever they stand.

use kiln_description::{Code, Op, When};
use proc_macro2::Span;
use syn::spanned::Spanned;
use syn::visit::Visit;
use syn::{Arm, Expr, Lit, Pat, PatIdent, PatOr, PatRange, PatSlice, Path, RangeLimits, UnOp};

use crate::body::{Destination, Translator, local, plain_name};
use crate::expression::{member_name, strip};
use crate::names::Meaning;
use crate::option::{ERROR, IS_OK, VALUE, is_err, is_none, is_ok, is_some};
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
            Pat::Or(or) => {
                let (whole, eager) = (self.fresh(), self.op(Op::Eager, span).code(value));
                let mut parts = vec![Code::new(Op::Let, None).number(whole).code(&eager)];
                parts.extend(self.bindings_of_alternatives(or, &local(whole), false));
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
                let field = match &tuple.path {
                    path if is_some(path) || is_ok(path) => VALUE,
                    path if is_err(path) => ERROR,
                    _ => return numbered(self, &mut tuple.elems.iter()),
                };
                let part = tuple.elems.first();
                part.map(|part| (field.to_owned(), part.clone()))
                    .into_iter()
                    .collect()
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
        let arms: Vec<Arm> = e
            .arms
            .iter()
            .flat_map(|arm| self.tried_apart(arm))
            .collect();
        let arms: Vec<&Arm> = arms.iter().collect();
        let arms = self.arms(&arms, &local(value), is_unsized_place(&e.expr), to);
        let subject = Code::new(Op::Let, None).number(value).code(&subject);
        Code::block(vec![subject, arms])
    }

    /// An arm as arms for its alternatives, if it has a guard that sees their names: Rust asks it for each alternative
    /// that matches.
    fn tried_apart(&mut self, arm: &Arm) -> Vec<Arm> {
        if arm.guard.is_none() {
            return vec![arm.clone()];
        }
        let cases = alternatives(&arm.pat);
        if let Some(inner) = cases.iter().find_map(|case| named_alternatives(case)) {
            self.refuse(
                inner,
                "a guard is asked for each of these alternatives that matches; write them as alternatives of the whole \
                 pattern, or an arm for each",
            );
        }
        let of = |pat: &Pat| Arm {
            pat: pat.clone(),
            ..arm.clone()
        };
        cases.into_iter().map(of).collect()
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
            Pat::TupleStruct(tuple)
                if let Some(holds) = self.variant_test(&tuple.path, value, span) =>
            {
                let parts = self.fields(pattern);
                let inner = parts.first().and_then(|(field, part)| {
                    let inner = self.op(Op::Field, span).text(field).code(value);
                    self.test(part, &inner)
                });
                // What it has is there only if it is.
                Some(match inner {
                    Some(inner) => self.op(Op::And, span).code(&holds).region(&inner),
                    None => holds,
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

    /// Whether a value is `Some`, `Ok` or `Err`, if a path is one of these.
    fn variant_test(&self, path: &Path, value: &Code, span: Span) -> Option<Code> {
        let is_ok_value = || self.op(Op::Field, span).text(IS_OK).code(value);
        match path {
            path if is_some(path) => Some(self.is_some_of(value, span)),
            path if is_ok(path) => Some(is_ok_value()),
            path if is_err(path) => Some(self.op(Op::Not, span).code(&is_ok_value())),
            _ => None,
        }
    }

    fn none_test(&self, value: &Code, span: Span) -> Code {
        let is_some = self.is_some_of(value, span);
        self.op(Op::Not, span).code(&is_some)
    }

    fn no_pattern(&mut self, pattern: &Pat) -> Test {
        self.refuse(
            pattern,
            "patterns of kernels are integers, ranges, bools, constants, enums without fields, `Some`, `None`, `Ok`, `Err`, and \
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
            Pat::Or(or) => self.bindings_of_alternatives(or, value, false),
            _ => Vec::new(),
        }
    }

    /// [`Translator::bindings`] of a pattern that may be one of the elements of a slice itself, not of a reference to it.
    pub(crate) fn bindings_of(&mut self, pattern: &Pat, value: &Code, is_place: bool) -> Vec<Code> {
        match pattern {
            Pat::Paren(paren) => self.bindings_of(&paren.pat, value, is_place),
            Pat::Slice(slice) => self.element_bindings(slice, value, is_place),
            Pat::Or(or) => self.bindings_of_alternatives(or, value, is_place),
            _ => self.bindings(pattern, value),
        }
    }

    /// The names of alternatives, each of which binds the same ones: those of the first that matches.
    fn bindings_of_alternatives(&mut self, or: &PatOr, value: &Code, is_place: bool) -> Vec<Code> {
        let names = or.cases.first().map_or_else(Vec::new, bound_names);
        if names.is_empty() {
            return Vec::new();
        }
        let slots: Vec<u32> = names.iter().map(|_| self.fresh()).collect();
        let mut chosen = None;
        for case in or.cases.iter().rev() {
            let span = case.start();
            let test = self.test(case, value);
            let bound = self.scoped(|this| {
                let mut parts = this.bindings_of(case, value, is_place);
                for (name, &slot) in names.iter().zip(&slots) {
                    // rustc says so if a name is not in each of them.
                    let Some(Meaning::Variable(number)) = this.names.meaning(&name.ident) else {
                        continue;
                    };
                    let assign = this.op(Op::Assign, span).when(&When::Never);
                    parts.push(assign.region(&local(number)).code(&local(slot)));
                }
                Code::block(parts)
            });
            chosen = Some(match (test, chosen) {
                (Some(test), Some(others)) => {
                    let code = self.op(Op::IfElse, span).code(&test);
                    code.region(&bound).region(&others)
                }
                // The last one matches where no other does.
                _ => bound,
            });
        }
        let slot = |&slot: &u32| Code::new(Op::Slot, None).number(slot);
        let mut parts: Vec<Code> = slots.iter().map(slot).chain(chosen).collect();
        for (name, slot) in names.into_iter().zip(slots) {
            parts.push(self.bind_pattern(&Pat::Ident(name), &local(slot)));
        }
        parts
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

/// The patterns that a pattern is one of; those that bind no names are one.
fn alternatives(pattern: &Pat) -> Vec<&Pat> {
    match pattern {
        Pat::Paren(paren) => alternatives(&paren.pat),
        Pat::Or(or) if !bound_names(pattern).is_empty() => {
            or.cases.iter().flat_map(alternatives).collect()
        }
        _ => vec![pattern],
    }
}

/// Alternatives with names somewhere in a pattern.
fn named_alternatives(pattern: &Pat) -> Option<&PatOr> {
    struct Named<'p>(Option<&'p PatOr>);
    impl<'p> Visit<'p> for Named<'p> {
        fn visit_pat_or(&mut self, or: &'p PatOr) {
            if or.cases.iter().any(|case| !bound_names(case).is_empty()) {
                self.0 = Some(or);
            }
        }
    }
    let mut named = Named(None);
    named.visit_pat(pattern);
    named.0
}

/// The names that a pattern binds, each once, without what is matched behind them.
fn bound_names(pattern: &Pat) -> Vec<PatIdent> {
    struct Bound(Vec<PatIdent>);
    impl Visit<'_> for Bound {
        fn visit_pat_ident(&mut self, pattern: &PatIdent) {
            let is_new = self.0.iter().all(|known| known.ident != pattern.ident);
            if is_new && !(is_constant_name(&pattern.ident) && pattern.subpat.is_none()) {
                let mut named = pattern.clone();
                named.subpat = None;
                self.0.push(named);
            }
            syn::visit::visit_pat_ident(self, pattern);
        }
    }
    let mut bound = Bound(Vec::new());
    bound.visit_pat(pattern);
    bound.0
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
