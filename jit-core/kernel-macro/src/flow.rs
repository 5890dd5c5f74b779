//! Control flow: expressions that are made of statements.

use kiln_description::{Code, Op, When};
use proc_macro2::Span;
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::{Expr, ExprForLoop, ExprRange, Label, RangeLimits};

use crate::arguments::unroll_wish;
use crate::body::{Destination, Translator, local};
use crate::checked::marked_operand;
use crate::expression::{operator, operator_method, strip};
use crate::function::Kind;
use crate::position::Start;

/// Something that `break` or `continue` can mean.
pub(crate) struct Frame {
    label: Option<String>,
    kind: FrameKind,
    /// Where `break` leaves a value.
    to: Destination,
}

#[derive(Copy, Clone, PartialEq, Eq)]
pub(crate) enum FrameKind {
    /// A loop of the kernel.
    Loop,
    /// A labelled block: in the IR a loop that is run once.
    Block,
    /// A `for` over an array, which leaves no loop.
    Unrolled,
}

/// What a `for` goes over.
struct RangeParts {
    start: Code,
    end: Code,
    inclusive: bool,
    step: Option<Code>,
    reversed: bool,
}

impl Translator<'_> {
    /// An expression for which [`crate::body::is_structured`] holds.
    pub(crate) fn structured(&mut self, expr: &Expr, to: &Destination) -> Code {
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
                self.op(Op::Loop, e.loop_token.span()).region(&body)
            }
            Expr::While(e) => {
                self.refuse_unroll(&e.attrs);
                if let Some(code) = self.while_let(e) {
                    return code;
                }
                let cond = self.expr(&e.cond);
                let to = &Destination::Discard;
                let body = self.framed(e.label.as_ref(), FrameKind::Loop, to, |this| {
                    this.block(&e.body, to)
                });
                let code = self.op(Op::While, e.while_token.span());
                code.region(&cond).region(&body)
            }
            Expr::ForLoop(e) => self.for_(e),
            Expr::Assign(e) => self.assign(e),
            Expr::Binary(e) => self.compound(e),
            Expr::Break(e) => self.break_(e),
            Expr::Continue(e) => self.continue_(e),
            Expr::Return(e) => self.return_(e),
            Expr::Call(e) => self.opened(e),
            _ => self.refuse(expr, "kernels do not have this expression"),
        }
    }

    pub(crate) fn framed(
        &mut self,
        label: Option<&Label>,
        kind: FrameKind,
        to: &Destination,
        translate: impl FnOnce(&mut Self) -> Code,
    ) -> Code {
        self.frames.push(Frame {
            label: label.map(|label| label.name.ident.to_string()),
            kind,
            to: to.clone(),
        });
        let code = translate(self);
        self.frames.pop();
        code
    }

    fn labelled_block(&mut self, label: &Label, block: &syn::ExprBlock, to: &Destination) -> Code {
        let body = self.framed(Some(label), FrameKind::Block, to, |this| {
            this.block(&block.block, to)
        });
        self.op(Op::Loop, label.span()).region(&once(body))
    }

    /// Something that a `break` of its own leaves early, and that is done once.
    pub(crate) fn left_once(
        &mut self,
        span: Span,
        to: &Destination,
        translate: impl FnOnce(&mut Self) -> Code,
    ) -> Code {
        let body = self.framed(None, FrameKind::Block, to, translate);
        self.op(Op::Loop, span).region(&once(body))
    }

    fn if_(&mut self, e: &syn::ExprIf, to: &Destination) -> Code {
        if let Some(code) = self.if_let(e, to) {
            return code;
        }
        let span = e.if_token.span();
        let cond = self.expr(&e.cond);
        let then = self.block(&e.then_branch, to);
        match &e.else_branch {
            None => self.op(Op::If, span).code(&cond).region(&then),
            Some((_, otherwise)) => {
                let otherwise = self.into(otherwise, to);
                let code = self.op(Op::IfElse, span).code(&cond);
                code.region(&then).region(&otherwise)
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

    /// What a loop asks for, as the number that `Op::For` has for it.
    pub(crate) fn unroll_wish(&mut self, e: &ExprForLoop) -> u32 {
        const AUTO: u32 = 0;
        const FULL: u32 = 2;
        let Some(attribute) = e.attrs.iter().find(|a| a.path().is_ident("unroll")) else {
            return AUTO;
        };
        match &attribute.meta {
            syn::Meta::Path(_) => return FULL,
            syn::Meta::List(list) => {
                if let Some(wish) = unroll_wish(&list.tokens) {
                    return wish;
                }
            }
            syn::Meta::NameValue(_) => {}
        }
        self.refuse(
            attribute,
            "write `#[unroll]`, `#[unroll(4)]` with a factor of 1 to 1024, or `#[unroll(never)]`",
        );
        AUTO
    }

    fn for_(&mut self, e: &ExprForLoop) -> Code {
        let span = e.for_token.span();
        let index = self.fresh();
        if let Expr::Array(array) = strip(&e.expr) {
            let values = self.eager_list(array.elems.iter());
            let body = self.for_body(e, FrameKind::Unrolled, index);
            let code = self.op(Op::ForEach, span).number(index);
            return code.list(&values).region(&body);
        }
        if !crate::items::is_range(&e.expr) {
            return self.for_items(e);
        }
        let Some(range) = self.range(&e.expr) else {
            return Code::new(Op::Unit, None);
        };
        let unroll = self.unroll_wish(e);
        let body = self.for_body(e, FrameKind::Loop, index);
        let code = self.op(Op::For, span);
        let code = code.flag(range.inclusive).flag(range.reversed);
        let code = code.number(unroll).number(index);
        let code = code.code(&range.start).code(&range.end);
        code.option(range.step.as_ref()).region(&body)
    }

    fn for_body(&mut self, e: &ExprForLoop, kind: FrameKind, index: u32) -> Code {
        self.body_of(e, kind, |this| this.bind_pattern(&e.pat, &local(index)))
    }

    /// The body of a `for` that is a loop, behind what binds its pattern.
    pub(crate) fn loop_body(
        &mut self,
        e: &ExprForLoop,
        bind: impl FnOnce(&mut Self) -> Code,
    ) -> Code {
        self.body_of(e, FrameKind::Loop, bind)
    }

    fn body_of(
        &mut self,
        e: &ExprForLoop,
        kind: FrameKind,
        bind: impl FnOnce(&mut Self) -> Code,
    ) -> Code {
        self.scoped(|this| {
            let (bind, to) = (bind(this), Destination::Discard);
            let body = this.framed(e.label.as_ref(), kind, &to, |this| this.block(&e.body, &to));
            Code::block(vec![bind, body])
        })
    }

    /// What a `for` goes over.
    fn range(&mut self, expr: &Expr) -> Option<RangeParts> {
        let span = expr.start();
        match strip(expr) {
            Expr::Range(ExprRange {
                start: Some(start),
                limits,
                end: Some(end),
                ..
            }) => self.closed_range(span, [start, end], limits),
            Expr::Range(range) => {
                self.refuse(
                    range,
                    "a loop of a kernel has both ends: `for i in 0..n`; or use `loop`",
                );
                None
            }
            Expr::MethodCall(call) if call.method == "rev" && call.args.is_empty() => {
                let mut range = self.range(&call.receiver)?;
                if range.step.is_some() {
                    self.refuse(
                        &call.method,
                        "write `.rev()` before `.step_by(..)`, and mind that the two orders differ",
                    );
                }
                range.reversed = true;
                Some(range)
            }
            Expr::MethodCall(call) if call.method == "step_by" && call.args.len() == 1 => {
                let mut range = self.range(&call.receiver)?;
                if range.step.is_some() {
                    self.refuse(
                        &call.method,
                        "one `.step_by(..)` is enough; multiply the steps",
                    );
                }
                let step = self.expr(call.args.first()?);
                range.step = Some(self.op(Op::Eager, span).code(&step));
                Some(range)
            }
            // It is a range.
            _ => None,
        }
    }

    /// A range that has both ends, which are evaluated now.
    fn closed_range(
        &mut self,
        span: Span,
        [start, end]: [&Expr; 2],
        limits: &RangeLimits,
    ) -> Option<RangeParts> {
        let ends = self.eager_list([start, end].into_iter());
        let ends = ends.iter().map(|end| self.op(Op::Eager, span).code(end));
        let ends: Vec<Code> = ends.collect();
        let [start, end] = ends.try_into().ok()?;
        Some(RangeParts {
            start,
            end,
            inclusive: matches!(limits, RangeLimits::Closed(_)),
            step: None,
            reversed: false,
        })
    }

    fn assign(&mut self, e: &syn::ExprAssign) -> Code {
        let span = e.start();
        match strip(&e.left) {
            Expr::Infer(_) => {
                let value = self.expr(&e.right);
                return self.op(Op::Discard, span).code(&value);
            }
            Expr::Tuple(places) => {
                let part =
                    |this: &Self, i: usize, span| this.op(Op::Field, span).text(&i.to_string());
                return self.assign_parts(&places.elems, places.span(), &e.right, part);
            }
            Expr::Array(places) => {
                let part = |this: &Self, i: usize, span| {
                    this.op(Op::ElementAt, span).flag(false).number(i as u32)
                };
                return self.assign_parts(&places.elems, places.span(), &e.right, part);
            }
            left @ (Expr::Struct(_) | Expr::Call(_)) => {
                return self.refuse(left, "assign one place at a time");
            }
            _ => {}
        }
        self.assign_by(None, span, &e.left, &e.right)
    }

    /// An assignment, of the result of an operator if there is one.
    fn assign_by(&mut self, op: Option<Op>, span: Span, left: &Expr, right: &Expr) -> Code {
        // Rust evaluates the right side first. Where both only compute, the place first is as good.
        let early = self.methods.change(right);
        let (left, right) = (self.expr(left), self.expr(right));
        let assign = |op| self.op(op, span).when(&early).region(&right).code(&left);
        match op {
            None => assign(Op::Assign),
            Some(op) => assign(Op::AssignOp).op(op),
        }
    }

    /// `(a, b) = right;`, `[a, b] = right;`
    fn assign_parts(
        &mut self,
        places: &Punctuated<Expr, syn::Token![,]>,
        span: Span,
        right: &Expr,
        part: impl Fn(&Self, usize, Span) -> Code,
    ) -> Code {
        let value = self.fresh();
        let right = self.expr(right);
        let right = self.op(Op::Eager, span).code(&right);
        let mut parts = vec![Code::new(Op::Let, None).number(value).code(&right)];
        for (i, place) in places.iter().enumerate() {
            let place = match strip(place) {
                Expr::Infer(_) => continue,
                place => self.expr(place),
            };
            let field = part(self, i, span).code(&local(value));
            let field = self.op(Op::Eager, span).code(&field);
            let assign = self.op(Op::Assign, span).when(&When::Never);
            parts.push(assign.region(&field).code(&place));
        }
        Code::block(parts)
    }

    fn compound(&mut self, e: &syn::ExprBinary) -> Code {
        match operator(&e.op) {
            Some(op) => {
                let code = self.assign_by(Some(op), e.start(), &e.left, &e.right);
                let method = operator_method(&e.op).unwrap_or_default();
                self.operator_of(marked_operand(&e.right), method, code)
            }
            None => self.refuse(e, "kernels do not have this operator"),
        }
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

    fn break_(&mut self, e: &syn::ExprBreak) -> Code {
        let span = e.break_token.span();
        let Some((depth, to)) = self.target(&e.break_token, e.label.as_ref(), false) else {
            return Code::new(Op::Unit, None);
        };
        self.leave(depth, e.expr.as_deref(), &to, span)
    }

    /// Leaves the loop `depth` loops out, with a value.
    fn leave(&mut self, depth: u32, value: Option<&Expr>, to: &Destination, span: Span) -> Code {
        let value = value.map(|value| self.into(value, to));
        let leave = self.op(Op::Break, span).number(depth);
        Code::block(value.into_iter().chain([leave]).collect())
    }

    fn continue_(&mut self, e: &syn::ExprContinue) -> Code {
        let span = e.continue_token.span();
        match self.target(&e.continue_token, e.label.as_ref(), true) {
            Some((depth, _)) => self.op(Op::Continue, span).number(depth),
            None => Code::new(Op::Unit, None),
        }
    }

    /// The body of a function that is described in place and returns early: a loop that is run once.
    pub(crate) fn run_once(
        &mut self,
        to: &Destination,
        translate: impl FnOnce(&mut Self) -> Code,
    ) -> Code {
        let body = self.framed(None, FrameKind::Block, to, translate);
        Code::new(Op::Loop, None).region(&once(body))
    }

    /// `return` in a closure, or in a function that is described in place: out of all loops, with the
    /// value.
    fn return_in_place(&mut self, e: &syn::ExprReturn) -> Code {
        match self.out_of_function() {
            Some((to, depth)) => self.leave(depth, e.expr.as_deref(), &to, e.return_token.span()),
            None => Code::new(Op::Unit, None),
        }
    }

    /// Where what is described in place leaves its value, and how many loops out its end is.
    pub(crate) fn out_of_function(&self) -> Option<(Destination, u32)> {
        let to = self.frames.first()?.to.clone();
        let inner = self.frames.iter().skip(1);
        let depth = inner.filter(|frame| frame.kind != FrameKind::Unrolled);
        Some((to, depth.count() as u32))
    }

    fn return_(&mut self, e: &syn::ExprReturn) -> Code {
        let span = e.return_token.span();
        if self.in_closure || self.is_inlined {
            return self.return_in_place(e);
        }
        match &e.expr {
            Some(value) if self.kind == Kind::Device => {
                let value = self.expr(value);
                self.op(Op::ReturnValue, span).code(&value)
            }
            Some(value) if !matches!(&**value, Expr::Tuple(t) if t.elems.is_empty()) => self
                .refuse(
                    value,
                    "a kernel returns nothing; write its results to a `&mut [T]`",
                ),
            _ => self.op(Op::Return, span),
        }
    }
}

/// The body of a loop that is run once.
fn once(body: Code) -> Code {
    Code::block(vec![body, Code::new(Op::Break, None).number(0)])
}
