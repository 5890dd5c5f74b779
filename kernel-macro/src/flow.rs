//! Control flow: expressions that are made of statements.

use proc_macro2::{Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Expr, ExprForLoop, ExprRange, Label, Pat, RangeLimits};

use crate::body::{Destination, Translator, unroll};
use crate::expression::{operator, strip};
use crate::function::Kind;
use crate::scan::only_computes;

/// Something that `break` or `continue` can mean.
pub(crate) struct Frame {
    label: Option<String>,
    kind: FrameKind,
    /// Where `break` leaves a value.
    to: Destination,
}

#[derive(Copy, Clone, PartialEq, Eq)]
enum FrameKind {
    /// A loop of the kernel.
    Loop,
    /// A labelled block: in the IR a loop that is run once.
    Block,
    /// A `for` over an array, which leaves no loop.
    Unrolled,
}

impl Translator<'_> {
    /// An expression for which [`crate::body::is_structured`] holds.
    pub(crate) fn structured(&mut self, expr: &Expr, to: &Destination) -> TokenStream {
        match expr {
            Expr::Paren(e) => self.into(&e.expr, to),
            Expr::Group(e) => self.into(&e.expr, to),
            Expr::Block(e) => match &e.label {
                None => self.block(&e.block, to),
                Some(label) => self.labelled_block(label, e, to),
            },
            Expr::If(e) => self.if_(e, to),
            Expr::Match(e) => self.match_(e, to),
            Expr::Loop(e) => {
                self.refuse_unroll(&e.attrs);
                let body = self.framed(e.label.as_ref(), FrameKind::Loop, to, |this| {
                    this.block(&e.body, &Destination::Discard)
                });
                quote_spanned!(e.loop_token.span()=> __kiln.loop_(&mut || #body);)
            }
            Expr::While(e) => {
                self.refuse_unroll(&e.attrs);
                let cond = self.condition(&e.cond);
                let to = &Destination::Discard;
                let body = self.framed(e.label.as_ref(), FrameKind::Loop, to, |this| {
                    this.block(&e.body, to)
                });
                quote_spanned!(e.while_token.span()=> __kiln.while_(&mut || #cond, &mut || #body);)
            }
            Expr::ForLoop(e) => self.for_(e),
            Expr::Assign(e) => self.assign(e),
            Expr::Binary(e) => self.compound(e),
            Expr::Break(e) => self.break_(e),
            Expr::Continue(e) => self.continue_(e),
            Expr::Return(e) => self.return_(e),
            _ => self.refuse(expr, "kernels do not have this expression"),
        }
    }

    fn framed(
        &mut self,
        label: Option<&Label>,
        kind: FrameKind,
        to: &Destination,
        translate: impl FnOnce(&mut Self) -> TokenStream,
    ) -> TokenStream {
        self.frames.push(Frame {
            label: label.map(|label| label.name.ident.to_string()),
            kind,
            to: to.clone(),
        });
        let tokens = translate(self);
        self.frames.pop();
        tokens
    }

    fn labelled_block(
        &mut self,
        label: &Label,
        block: &syn::ExprBlock,
        to: &Destination,
    ) -> TokenStream {
        let body = self.framed(Some(label), FrameKind::Block, to, |this| {
            this.block(&block.block, to)
        });
        quote_spanned!(label.span()=> __kiln.loop_(&mut || { #body __kiln.break_(0); });)
    }

    /// A condition; `let` in it is refused.
    fn condition(&mut self, cond: &Expr) -> TokenStream {
        self.expr(cond)
    }

    fn if_(&mut self, e: &syn::ExprIf, to: &Destination) -> TokenStream {
        let span = e.if_token.span();
        let cond = self.condition(&e.cond);
        let then = self.block(&e.then_branch, to);
        match &e.else_branch {
            None => quote_spanned!(span=> __kiln.if_(#cond, &mut || #then);),
            Some((_, otherwise)) => {
                let otherwise = self.into(otherwise, to);
                quote_spanned!(span=> __kiln.if_else(#cond, &mut || #then, &mut || { #otherwise });)
            }
        }
    }

    fn refuse_unroll(&mut self, attributes: &[syn::Attribute]) {
        for attribute in attributes.iter().filter(|a| a.path().is_ident("unroll")) {
            self.refuse(
                attribute,
                "only a `for` over a range is unrolled, as the others have no number of iterations",
            );
        }
    }

    fn unroll_wish(&mut self, e: &ExprForLoop) -> TokenStream {
        let Some(attribute) = e.attrs.iter().find(|a| a.path().is_ident("unroll")) else {
            return unroll("Auto", None);
        };
        match &attribute.meta {
            syn::Meta::Path(_) => return unroll("Full", None),
            syn::Meta::List(list) => {
                let factor = list.parse_args::<syn::LitInt>();
                let factor = factor.and_then(|factor| factor.base10_parse::<u32>());
                if let Ok(factor @ 1..=1024) = factor {
                    return unroll("By", Some(factor));
                }
                let never = list.parse_args::<syn::Ident>();
                if never.is_ok_and(|word| word == "never") {
                    return unroll("Never", None);
                }
            }
            syn::Meta::NameValue(_) => {}
        }
        self.refuse(
            attribute,
            "write `#[unroll]`, `#[unroll(4)]` with a factor of 1 to 1024, or `#[unroll(never)]`",
        )
    }

    fn for_(&mut self, e: &ExprForLoop) -> TokenStream {
        let span = e.for_token.span();
        let index = self.fresh(span);
        if let Expr::Array(array) = strip(&e.expr) {
            let values = self.eager_list(array.elems.iter());
            let body = self.for_body(e, FrameKind::Unrolled, &index);
            return quote_spanned!(span=> for #index in [#(#values),*] #body);
        }
        let Some(range) = self.range(&e.expr) else {
            return TokenStream::new();
        };
        let unroll = self.unroll_wish(e);
        let body = self.for_body(e, FrameKind::Loop, &index);
        quote_spanned!(span=> __kiln.for_(#range, #unroll, &mut |#index| #body);)
    }

    fn for_body(
        &mut self,
        e: &ExprForLoop,
        kind: FrameKind,
        index: &proc_macro2::Ident,
    ) -> TokenStream {
        let closures = self.closures.clone();
        let bind = match &*e.pat {
            Pat::Ident(_) | Pat::Wild(_) => self.bind_pattern(&e.pat, &quote!(#index)),
            pattern => self.refuse(
                pattern,
                "the index of a loop has a name; write `for i in ..`",
            ),
        };
        let to = Destination::Discard;
        let body = self.framed(e.label.as_ref(), kind, &to, |this| this.block(&e.body, &to));
        self.closures = closures;
        quote!({ #bind #body })
    }

    /// What a `for` goes over.
    fn range(&mut self, expr: &Expr) -> Option<TokenStream> {
        let span = expr.span();
        match strip(expr) {
            Expr::Range(ExprRange {
                start: Some(start),
                limits,
                end: Some(end),
                ..
            }) => {
                let ends = self.eager_list([&**start, &**end].into_iter());
                let inclusive = matches!(limits, RangeLimits::Closed(_));
                Some(quote_spanned!(span=> __kiln.range(#(#ends),*, #inclusive)))
            }
            Expr::Range(range) => {
                self.refuse(
                    range,
                    "a loop of a kernel has both ends: `for i in 0..n`; or use `loop`",
                );
                None
            }
            Expr::MethodCall(call) if call.method == "rev" && call.args.is_empty() => {
                let range = self.range(&call.receiver)?;
                if has_step(&call.receiver) {
                    self.refuse(
                        &call.method,
                        "write `.rev()` before `.step_by(..)`, and mind that the two orders differ",
                    );
                }
                Some(quote_spanned!(span=> #range.rev()))
            }
            Expr::MethodCall(call) if call.method == "step_by" && call.args.len() == 1 => {
                let range = self.range(&call.receiver)?;
                if has_step(&call.receiver) {
                    self.refuse(
                        &call.method,
                        "one `.step_by(..)` is enough; multiply the steps",
                    );
                }
                let step = self.expr(call.args.first()?);
                Some(quote_spanned!(span=> #range.step_by(#step)))
            }
            other => {
                self.refuse(
                    other,
                    "a `for` of a kernel goes over a range, `for i in 0..x.len() { .. x[i] .. }`, or \
                     over an array literal, `for k in [1, 2, 4]`, which is unrolled",
                );
                None
            }
        }
    }

    fn assign(&mut self, e: &syn::ExprAssign) -> TokenStream {
        let span = e.span();
        match strip(&e.left) {
            Expr::Infer(_) => {
                let value = self.expr(&e.right);
                return quote_spanned!(span=> __kiln.discard(#value););
            }
            Expr::Tuple(places) => return self.assign_tuple(places, &e.right),
            left @ (Expr::Array(_) | Expr::Struct(_) | Expr::Call(_)) => {
                return self.refuse(left, "assign one place at a time");
            }
            _ => {}
        }
        self.assign_by("assign", span, &e.left, &e.right)
    }

    /// The call of a method that assigns.
    fn assign_by(&mut self, method: &str, span: Span, left: &Expr, right: &Expr) -> TokenStream {
        let method = quote::format_ident!("{method}", span = span);
        // Rust evaluates the right side first. Where both only compute, the place first is as good.
        let in_order = only_computes(right);
        let (left, right) = (self.expr(left), self.expr(right));
        match in_order {
            true => quote_spanned!(span=> __kiln.#method(#left, #right);),
            false => {
                let value = self.fresh(span);
                quote_spanned!(span=> {
                    let #value = #right.eager();
                    __kiln.#method(#left, #value);
                })
            }
        }
    }

    fn assign_tuple(&mut self, places: &syn::ExprTuple, right: &Expr) -> TokenStream {
        let span = places.span();
        let value = self.fresh(span);
        let right = self.expr(right);
        let mut out = quote_spanned!(span=> let #value = #right.eager(););
        for (i, place) in places.elems.iter().enumerate() {
            let field = i.to_string();
            let place = match strip(place) {
                Expr::Infer(_) => continue,
                place => self.expr(place),
            };
            out.extend(quote_spanned!(span=> __kiln.assign(#place, #value.field(#field).eager());));
        }
        quote!({ #out })
    }

    fn compound(&mut self, e: &syn::ExprBinary) -> TokenStream {
        let span = e.span();
        let Some(name) = operator(&e.op) else {
            return self.refuse(e, "kernels do not have this operator");
        };
        self.assign_by(&format!("{name}_assign"), span, &e.left, &e.right)
    }

    /// The frame that a `break` or `continue` means, and how many loops out it is.
    fn target(
        &mut self,
        token: &dyn quote::ToTokens,
        label: Option<&syn::Lifetime>,
        only_loops: bool,
    ) -> Option<(u32, Destination)> {
        let label = label.map(|label| label.ident.to_string());
        let mut depth = 0;
        let mut found = None;
        for frame in self.frames.iter().rev() {
            let meant = match &label {
                Some(label) => frame.label.as_ref() == Some(label),
                None => frame.kind != FrameKind::Block,
            };
            if meant {
                found = Some((frame.kind, frame.to.clone()));
                break;
            }
            depth += u32::from(frame.kind != FrameKind::Unrolled);
        }
        match found {
            Some((FrameKind::Unrolled, _)) => {
                self.refuse(
                    token,
                    "a `for` over an array is written out and has no loop to leave; use `if`, or a \
                     `for` over a range",
                );
                None
            }
            Some((FrameKind::Block, _)) if only_loops => {
                self.refuse(
                    token,
                    "`continue` goes on with a loop; leave a block with `break`",
                );
                None
            }
            Some((_, to)) => Some((depth, to)),
            None => {
                self.refuse(
                    token,
                    "there is no loop around this; end the thread with `return`",
                );
                None
            }
        }
    }

    fn break_(&mut self, e: &syn::ExprBreak) -> TokenStream {
        let span = e.break_token.span();
        let Some((depth, to)) = self.target(&e.break_token, e.label.as_ref(), false) else {
            return TokenStream::new();
        };
        let value = e.expr.as_ref().map(|value| self.into(value, &to));
        quote_spanned!(span=> #value __kiln.break_(#depth);)
    }

    fn continue_(&mut self, e: &syn::ExprContinue) -> TokenStream {
        let span = e.continue_token.span();
        match self.target(&e.continue_token, e.label.as_ref(), true) {
            Some((depth, _)) => quote_spanned!(span=> __kiln.continue_(#depth);),
            None => TokenStream::new(),
        }
    }

    /// The body of a function that is described in place and returns early: a loop that is run once.
    pub(crate) fn run_once(
        &mut self,
        to: &Destination,
        translate: impl FnOnce(&mut Self) -> TokenStream,
    ) -> TokenStream {
        let body = self.framed(None, FrameKind::Block, to, translate);
        quote!(__kiln.loop_(&mut || { #body __kiln.break_(0); });)
    }

    /// `return` in a closure, or in a function that is described in place: out of all loops, with the
    /// value.
    fn return_in_place(&mut self, e: &syn::ExprReturn) -> TokenStream {
        let span = e.return_token.span();
        let Some(function) = self.frames.first() else {
            return TokenStream::new();
        };
        let to = function.to.clone();
        let inner = self.frames.iter().skip(1);
        let depth = inner.filter(|frame| frame.kind != FrameKind::Unrolled);
        let depth = depth.count() as u32;
        let value = e.expr.as_ref().map(|value| self.into(value, &to));
        quote_spanned!(span=> #value __kiln.break_(#depth);)
    }

    fn return_(&mut self, e: &syn::ExprReturn) -> TokenStream {
        let span = e.return_token.span();
        if self.in_closure || self.is_inlined {
            return self.return_in_place(e);
        }
        match &e.expr {
            Some(value) if self.kind == Kind::Device => {
                let value = self.expr(value);
                quote_spanned!(span=> __kiln.return_value(#value);)
            }
            Some(value) if !matches!(&**value, Expr::Tuple(t) if t.elems.is_empty()) => self
                .refuse(
                    value,
                    "a kernel returns nothing; write its results to a `&mut [T]`",
                ),
            _ => quote_spanned!(span=> __kiln.return_();),
        }
    }
}

fn has_step(range: &Expr) -> bool {
    match strip(range) {
        Expr::MethodCall(call) => call.method == "step_by" || has_step(&call.receiver),
        _ => false,
    }
}
