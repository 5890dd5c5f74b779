//! `match`, and patterns wherever they stand.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Arm, Expr, Lit, Member, Pat, PatRange, RangeLimits, UnOp};

use crate::body::{Destination, Translator, plain_name};
use crate::expression::strip;

/// What a pattern asks of a value: a condition, unless it always matches.
type Test = Option<TokenStream>;

impl Translator<'_> {
    /// `let pattern = value;` for a pattern that always matches.
    pub(crate) fn bind_pattern(&mut self, pattern: &Pat, value: &TokenStream) -> TokenStream {
        let span = pattern.span();
        match pattern {
            Pat::Ident(ident) => {
                if let Some(by_ref) = &ident.by_ref {
                    return self
                        .refuse(by_ref, "kernels have no `ref`; write `&` on the right side");
                }
                let (name, mutable) = (&ident.ident, ident.mutability.is_some());
                self.closures.remove(&name.to_string());
                let (text, memory) = (plain_name(name), self.is_addressed(name));
                let inner = ident
                    .subpat
                    .as_ref()
                    .map(|(_, inner)| self.bind_pattern(inner, &quote!(#name)));
                quote_spanned!(span=> let #name = __kiln.bind(#text, #value, #mutable, #memory); #inner)
            }
            Pat::Wild(_) => quote_spanned!(span=> let _ = #value.eager();),
            Pat::Paren(paren) => self.bind_pattern(&paren.pat, value),
            Pat::Type(typed) => self.bind_pattern(&typed.pat, value),
            Pat::Reference(reference) => {
                let inner = self.fresh(span);
                let rest = self.bind_pattern(&reference.pat, &quote!(#inner));
                quote_spanned!(span=> let #inner = #value.deref(); #rest)
            }
            Pat::Tuple(_) | Pat::Struct(_) | Pat::TupleStruct(_) => {
                let whole = self.fresh(span);
                let mut out = quote_spanned!(span=> let #whole = #value.eager(););
                for (field, pattern) in self.fields(pattern) {
                    let part = quote_spanned!(span=> #whole.field(#field));
                    out.extend(self.bind_pattern(&pattern, &part));
                }
                out
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
                if matches!(name.as_deref(), Some("Some" | "Ok" | "Err")) {
                    self.refuse(
                        tuple,
                        "kernels have no `Option` and no `Result`; use a `bool` beside the value",
                    );
                }
                numbered(self, &mut tuple.elems.iter())
            }
            Pat::Struct(fields) => {
                let part = |field: &syn::FieldPat| {
                    let name = match &field.member {
                        Member::Named(name) => plain_name(name),
                        Member::Unnamed(index) => index.index.to_string(),
                    };
                    (name, (*field.pat).clone())
                };
                fields.fields.iter().map(part).collect()
            }
            _ => Vec::new(),
        }
    }

    pub(crate) fn match_(&mut self, e: &syn::ExprMatch, to: &Destination) -> TokenStream {
        let span = e.match_token.span();
        let value = self.fresh(span);
        let subject = self.expr(&e.expr);
        if let (Some(last), true) = (e.arms.last(), e.arms.len() > 100) {
            return self.refuse(
                last,
                "a `match` of a kernel has at most 100 arms; use a table",
            );
        }
        let arms: Vec<&Arm> = e.arms.iter().collect();
        let arms = self.arms(&arms, &quote!(#value), to);
        quote_spanned!(span=> { let #value = #subject.eager(); #arms })
    }

    fn arms(&mut self, arms: &[&Arm], value: &TokenStream, to: &Destination) -> TokenStream {
        let Some((arm, rest)) = arms.split_first() else {
            return TokenStream::new();
        };
        let span = arm.pat.span();
        let test = self.test(&arm.pat, value);
        // What the arm binds hides closures in the arm only.
        let closures = self.closures.clone();
        let bindings = self.bindings(&arm.pat, value);
        let guard = arm.guard.as_ref().map(|(_, guard)| {
            let guard = self.expr(guard);
            quote_spanned!(guard.span()=> { #bindings #guard })
        });
        let body = self.into(&arm.body, to);
        let body = quote!({ #bindings #body });
        self.closures = closures;
        let cond = match (test, guard) {
            (None, None) => return body,
            // rustc has checked that the arms before it leave nothing else.
            (Some(_), None) if rest.is_empty() => return body,
            (Some(test), None) => test,
            (None, Some(guard)) => guard,
            (Some(test), Some(guard)) => quote_spanned!(span=> __kiln.and(#test, &mut || #guard)),
        };
        let rest = self.nested(&arm.body, |this| this.arms(rest, value, to));
        quote_spanned!(span=> __kiln.if_else(#cond, &mut || #body, &mut || { #rest });)
    }

    /// The condition under which a pattern matches.
    fn test(&mut self, pattern: &Pat, value: &TokenStream) -> Test {
        let span = pattern.span();
        match pattern {
            Pat::Wild(_) => None,
            Pat::Paren(paren) => self.test(&paren.pat, value),
            Pat::Type(typed) => self.test(&typed.pat, value),
            Pat::Reference(reference) => {
                let inner = quote_spanned!(span=> #value.deref());
                self.test(&reference.pat, &inner)
            }
            Pat::Ident(ident) if is_constant_name(&ident.ident) && ident.subpat.is_none() => {
                let name = &ident.ident;
                Some(quote_spanned!(span=> __kiln.eq(#value, __kiln.constant(#name))))
            }
            Pat::Ident(ident) => {
                let inner = ident.subpat.as_ref()?;
                self.test(&inner.1, value)
            }
            Pat::Path(path) => {
                Some(quote_spanned!(span=> __kiln.eq(#value, __kiln.constant(#path))))
            }
            Pat::Lit(lit) => {
                let lit = self.pattern_constant(&Expr::Lit(lit.clone()), value)?;
                Some(quote_spanned!(span=> __kiln.eq(#value, #lit)))
            }
            Pat::Verbatim(tokens) => match syn::parse2::<Expr>(tokens.clone()) {
                Ok(expr) => {
                    let lit = self.pattern_constant(&expr, value)?;
                    Some(quote_spanned!(span=> __kiln.eq(#value, #lit)))
                }
                Err(_) => self.no_pattern(pattern),
            },
            Pat::Range(range) => self.range_test(range, value),
            Pat::Or(or) => {
                let mut all = Vec::new();
                for case in &or.cases {
                    all.push(self.test(case, value)?);
                }
                let either = |a, b| quote_spanned!(span=> __kiln.bitor(#a, #b));
                all.into_iter().reduce(either)
            }
            Pat::Tuple(_) | Pat::Struct(_) | Pat::TupleStruct(_) => {
                let mut all = Vec::new();
                for (field, part) in self.fields(pattern) {
                    let part_value = quote_spanned!(span=> #value.field(#field));
                    all.extend(self.test(&part, &part_value));
                }
                let both = |a, b| quote_spanned!(span=> __kiln.bitand(#a, #b));
                all.into_iter().reduce(both)
            }
            _ => self.no_pattern(pattern),
        }
    }

    fn no_pattern(&mut self, pattern: &Pat) -> Test {
        self.refuse(
            pattern,
            "a `match` of a kernel compares with integers, ranges, bools, constants and enums \
             without fields",
        );
        None
    }

    /// The names that a pattern binds, as statements.
    fn bindings(&mut self, pattern: &Pat, value: &TokenStream) -> TokenStream {
        let span = pattern.span();
        match pattern {
            Pat::Ident(ident) if is_constant_name(&ident.ident) && ident.subpat.is_none() => {
                TokenStream::new()
            }
            Pat::Ident(ident) => {
                let mut named = ident.clone();
                let inner = named.subpat.take();
                let mut out = self.bind_pattern(&Pat::Ident(named), value);
                if let Some((_, inner)) = inner {
                    out.extend(self.bindings(&inner, value));
                }
                out
            }
            Pat::Paren(paren) => self.bindings(&paren.pat, value),
            Pat::Reference(reference) => {
                let inner = quote_spanned!(span=> #value.deref());
                self.bindings(&reference.pat, &inner)
            }
            Pat::Tuple(_) | Pat::Struct(_) | Pat::TupleStruct(_) => {
                let mut out = TokenStream::new();
                for (field, part) in self.fields(pattern) {
                    let part_value = quote_spanned!(span=> #value.field(#field));
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
                TokenStream::new()
            }
            _ => TokenStream::new(),
        }
    }

    fn range_test(&mut self, range: &PatRange, value: &TokenStream) -> Test {
        let span = range.span();
        let exclusive = matches!(range.limits, RangeLimits::HalfOpen(_));
        let mut end = |end: &Option<Box<Expr>>| {
            let constant = end.as_ref().and_then(|e| self.pattern_constant(e, value));
            match constant {
                Some(constant) => quote!(::core::option::Option::Some(#constant)),
                None => quote!(::core::option::Option::None),
            }
        };
        let (low, high) = (end(&range.start), end(&range.end));
        Some(quote_spanned!(span=> __kiln.in_range(#value, #low, #high, #exclusive)))
    }

    /// A constant in a pattern, of the type of what it is compared with.
    fn pattern_constant(&mut self, expr: &Expr, value: &TokenStream) -> Option<TokenStream> {
        let span = expr.span();
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
                    Some(quote_spanned!(span=> __kiln.like(#value, #number)))
                }
                Lit::Bool(_) | Lit::Byte(_) => Some(quote_spanned!(span=> __kiln.constant(#lit))),
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
            Expr::Path(path) if !negative => Some(quote_spanned!(span=> __kiln.constant(#path))),
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
