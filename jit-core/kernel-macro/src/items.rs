//! What a `for` goes over but ranges: elements of slices and arrays, by iterators that rustc sees as they are
//! written, and that are described as the indices of a counted loop.
//!
//! ```text
//! for (i, (a, b)) in x.iter().zip(&y[..n]).enumerate() { .. }
//!
//! let (s, t) = (x, &y[..n]);
//! for k in 0..s.len().min(t.len()) { let i = k; let a = &s[k]; let b = &t[k]; .. }
//! ```

use kiln_description::{Code, Op};
use proc_macro2::{Ident, Span};
use syn::spanned::Spanned;
use syn::{Expr, ExprForLoop, ExprMethodCall, Pat};

use crate::body::{Translator, local};
use crate::checked::marked_method;
use crate::expression::strip;
use crate::position::{Start, before};

/// The methods that iterators in a `for` are made with, by the number of their arguments.
const METHODS: &[(&str, usize)] = &[
    ("iter", 0),
    ("iter_mut", 0),
    ("into_iter", 0),
    ("enumerate", 0),
    ("copied", 0),
    ("cloned", 0),
    ("rev", 0),
    ("zip", 1),
    ("chunks", 1),
    ("chunks_mut", 1),
    ("chunks_exact", 1),
    ("chunks_exact_mut", 1),
    ("windows", 1),
    ("take", 1),
    ("skip", 1),
    ("step_by", 1),
];

/// Whether a method call makes an iterator, where a `for` goes over what it gives.
pub(crate) fn is_of_iterator(call: &ExprMethodCall) -> bool {
    let is_it = |&(name, args): &(&str, usize)| call.method == name && call.args.len() == args;
    METHODS.iter().any(is_it)
}

/// Whether a method borrows what it is called on.
pub(crate) fn borrows(call: &ExprMethodCall) -> bool {
    let borrowing = [
        "iter",
        "iter_mut",
        "chunks",
        "chunks_mut",
        "chunks_exact",
        "chunks_exact_mut",
        "windows",
    ];
    borrowing.iter().any(|name| call.method == name)
}

/// Whether a `for` goes over a range, perhaps from its end, in steps.
pub(crate) fn is_range(expr: &Expr) -> bool {
    match strip(expr) {
        Expr::Range(_) => true,
        Expr::MethodCall(call) if call.method == "rev" || call.method == "step_by" => {
            is_range(&call.receiver)
        }
        _ => false,
    }
}

/// How far an iterator that a `for` goes over is: 0 the elements, 1 with `take` and `skip` around them, 2 with `rev` around
/// these, 3 with `step_by` around all. `None` for what a `for` does not go over as it is.
pub(crate) fn place_in_order(expr: &Expr) -> Option<u32> {
    let Expr::MethodCall(call) = strip(expr) else {
        return None;
    };
    if !is_of_iterator(call) {
        return None;
    }
    if borrows(call) || call.method == "into_iter" {
        return Some(0);
    }
    // Numbers beside elements are counted (`crate::chain`).
    if call.method == "zip" && call.args.iter().any(is_range) {
        return None;
    }
    let inner = place_in_order(&call.receiver)?;
    match (call.method.to_string().as_str(), inner) {
        ("take" | "skip", 0 | 1) => Some(1),
        ("rev", 1) => Some(2),
        ("step_by", 0..3) => Some(3),
        ("take" | "skip" | "step_by", _) => None,
        (_, 0) => Some(0),
        _ => None,
    }
}

/// What to say about iterators that kernels do not have.
const NO_SUCH_ITERATOR: &str = "a `for` of a kernel goes over a range, or over elements of slices and arrays, with `iter`, \
     `iter_mut`, `chunks`, `chunks_exact`, `windows`, `enumerate`, `zip`, `copied` and `rev`, and at the end `take` and `skip`, then `rev`, then \
     `step_by`; write what else is to happen in the loop";

/// What the indices of a loop select.
enum Items {
    /// Elements of what a variable is.
    Elements { of: u32 },
    /// Parts of a slice, of a size. Their kind has the numbers of `Op::PartCount`.
    Parts { kind: u32, of: u32, size: u32 },
    /// With the index before.
    Enumerated(Box<Items>),
    /// Both.
    Zipped(Box<Items>, Box<Items>),
    /// What references refer to.
    Copied(Box<Items>),
    /// From the last on, of so many.
    Reversed(Box<Items>, u32),
}

/// Items, and the variable that has their number.
struct Iterated {
    items: Items,
    count: u32,
}

/// What is said of all of a loop, from the inside out.
#[derive(Default)]
struct Around {
    /// The number of items that are looked at.
    end: Vec<Code>,
    start: Option<Code>,
    reversed: bool,
    step: Option<Code>,
}

impl Translator<'_> {
    /// `for` over elements.
    pub(crate) fn for_items(&mut self, e: &ExprForLoop) -> Code {
        let span = e.for_token.span();
        let (mut parts, mut around) = (Vec::new(), Around::default());
        let Some(iterator) = self.around(&e.expr, &mut parts, &mut around) else {
            return Code::new(Op::Unit, None);
        };
        let (index, unroll) = (self.fresh(), self.unroll_wish(e));
        let body = self.loop_body(e, |this| this.bind_items(&e.pat, &iterator.items, index));
        let mut end = vec![local(iterator.count)];
        end.append(&mut around.end);
        let end = match end.len() {
            1 => local(iterator.count),
            _ => Code::new(Op::Least, None).list(&end),
        };
        let code = self.op(Op::ForItems, span).flag(around.reversed);
        let code = code.number(unroll).number(index).code(&end);
        let code = code.option(around.start.as_ref());
        let code = code.option(around.step.as_ref());
        parts.push(code.region(&body));
        Code::block(parts)
    }

    /// What is around all of an iterator: `.take(n).skip(n).rev().step_by(n)`, each of which may be left out.
    fn around(
        &mut self,
        expr: &Expr,
        parts: &mut Vec<Code>,
        around: &mut Around,
    ) -> Option<Iterated> {
        let call = match strip(expr) {
            Expr::MethodCall(call) if place_in_order(expr) > Some(0) => call,
            _ => return self.iterator(expr, parts),
        };
        let iterator = self.around(&call.receiver, parts, around)?;
        let mut number = |this: &mut Self| {
            let value = this.expr(call.args.first()?);
            let value = this.op(Op::Eager, call.method.span()).code(&value);
            let number = this.fresh();
            parts.push(Code::new(Op::Let, None).number(number).code(&value));
            Some(local(number))
        };
        match call.method.to_string().as_str() {
            "take" => {
                let count = number(self)?;
                let end = self.behind(around.start.as_ref(), count, call.method.span());
                around.end.push(end);
            }
            "skip" => {
                let count = number(self)?;
                let start = self.behind(around.start.as_ref(), count, call.method.span());
                around.start = Some(start);
            }
            "rev" => around.reversed = true,
            _ => around.step = number(self),
        }
        Some(iterator)
    }

    /// A number of items and those that are left out before them, in 64 bits.
    fn behind(&mut self, start: Option<&Code>, count: Code, span: Span) -> Code {
        let Some(start) = start else {
            return count;
        };
        let wide = |this: &mut Self, number: &Code| {
            let u64 = this.host_type(&Ident::new("u64", before(span)));
            this.op(Op::Cast, span).code(number).code(&u64)
        };
        let (start, count) = (wide(self, start), wide(self, &count));
        self.op(Op::Add, span).code(&start).code(&count)
    }

    /// An iterator, whose sources and counts become variables.
    fn iterator(&mut self, expr: &Expr, parts: &mut Vec<Code>) -> Option<Iterated> {
        let expr = strip(expr);
        let Expr::MethodCall(call) = expr else {
            return match marked_method(expr) {
                Some((_, call)) if is_foreign(call) => {
                    self.refuse(&call.method, NO_SUCH_ITERATOR);
                    None
                }
                _ => Some(self.source(expr, 0, parts)),
            };
        };
        let span = call.method.span();
        match call.method.to_string().as_str() {
            "into_iter" => Some(self.source(&call.receiver, 3, parts)),
            "iter" => Some(self.source(&call.receiver, 1, parts)),
            "iter_mut" => Some(self.source(&call.receiver, 2, parts)),
            "chunks" | "chunks_exact" | "windows" => self.parts_of(call, false, parts),
            "chunks_mut" | "chunks_exact_mut" => self.parts_of(call, true, parts),
            "enumerate" => self.wrapped(call, Items::Enumerated, parts),
            "copied" | "cloned" => self.wrapped(call, Items::Copied, parts),
            "rev" => {
                let Iterated { items, count } = self.iterator(&call.receiver, parts)?;
                let items = Items::Reversed(Box::new(items), count);
                Some(Iterated { items, count })
            }
            "zip" => {
                let first = self.iterator(&call.receiver, parts)?;
                let second = self.iterator(call.args.first()?, parts)?;
                let counts = [local(first.count), local(second.count)];
                let least = self.op(Op::Least, span).list(&counts);
                Some(Iterated {
                    items: Items::Zipped(Box::new(first.items), Box::new(second.items)),
                    count: self.entered(&least, parts),
                })
            }
            _ => {
                self.refuse(&call.method, NO_SUCH_ITERATOR);
                None
            }
        }
    }

    fn wrapped(
        &mut self,
        call: &ExprMethodCall,
        wrap: fn(Box<Items>) -> Items,
        parts: &mut Vec<Code>,
    ) -> Option<Iterated> {
        let Iterated { items, count } = self.iterator(&call.receiver, parts)?;
        let items = wrap(Box::new(items));
        Some(Iterated { items, count })
    }

    /// A new variable with a value.
    fn entered(&mut self, value: &Code, parts: &mut Vec<Code>) -> u32 {
        let number = self.fresh();
        parts.push(Code::new(Op::Let, None).number(number).code(value));
        number
    }

    /// What has elements itself: 0 as it is, 1 by reference, 2 by mutable reference, 3 as an iterator.
    fn source(&mut self, expr: &Expr, taken: u32, parts: &mut Vec<Code>) -> Iterated {
        let span = expr.start();
        let value = match taken {
            2 => self.receiver(expr),
            _ => self.expr(expr),
        };
        let value = self.op(Op::Items, span).number(taken).code(&value);
        let of = self.entered(&value, parts);
        let count = self.op(Op::ItemCount, span).code(&local(of));
        let count = self.entered(&count, parts);
        let items = Items::Elements { of };
        Iterated { items, count }
    }

    /// `x.chunks_exact(n)` and its kind.
    fn parts_of(
        &mut self,
        call: &ExprMethodCall,
        mutable: bool,
        parts: &mut Vec<Code>,
    ) -> Option<Iterated> {
        let span = call.method.span();
        let slice = match mutable {
            true => self.receiver(&call.receiver),
            false => self.expr(&call.receiver),
        };
        let slice = self.op(Op::WholeSlice, span).flag(mutable).code(&slice);
        let of = self.entered(&slice, parts);
        let size = self.expr(call.args.first()?);
        let size = self.op(Op::Eager, span).code(&size);
        let size = self.entered(&size, parts);
        let kind = match call.method.to_string().as_str() {
            "windows" => 1,
            "chunks" | "chunks_mut" => 2,
            _ => 0,
        };
        let count = self.op(Op::PartCount, span).number(kind);
        let count = count.code(&local(of)).code(&local(size));
        let count = self.entered(&count, parts);
        let items = Items::Parts { kind, of, size };
        Some(Iterated { items, count })
    }

    /// Binds a pattern to the item with an index. One of a pair goes to the parts of the pair, which is not made.
    fn bind_items(&mut self, pattern: &Pat, items: &Items, index: u32) -> Code {
        let two = match pattern {
            Pat::Paren(paren) => return self.bind_items(&paren.pat, items, index),
            Pat::Tuple(tuple) if !tuple.elems.iter().any(|p| matches!(p, Pat::Rest(_))) => {
                tuple.elems.first().zip(tuple.elems.get(1))
            }
            _ => None,
        };
        let span = pattern.start();
        match (two, items) {
            (_, Items::Reversed(inner, count)) => {
                let (reversed, index) = self.counted_back(*count, index, span);
                Code::block(vec![reversed, self.bind_items(pattern, inner, index)])
            }
            (Some((number, item)), Items::Enumerated(inner)) => {
                let counted = self.index(index, span);
                let number = self.bind_pattern(number, &counted);
                Code::block(vec![number, self.bind_items(item, inner, index)])
            }
            (Some((left, right)), Items::Zipped(first, second)) => {
                let left = self.bind_items(left, first, index);
                Code::block(vec![left, self.bind_items(right, second, index)])
            }
            _ => {
                let item = self.selected(items, index, span);
                self.bind_pattern(pattern, &item)
            }
        }
    }

    /// The index from the other end, in a new variable.
    fn counted_back(&mut self, count: u32, index: u32, span: Span) -> (Code, u32) {
        let back = self.op(Op::CountBack, span).code(&local(count));
        let back = back.code(&local(index));
        let variable = self.fresh();
        let back = Code::new(Op::Let, None).number(variable).code(&back);
        (back, variable)
    }

    /// An index as the `usize` that it is in Rust.
    fn index(&mut self, index: u32, span: Span) -> Code {
        let usize = self.host_type(&Ident::new("usize", before(span)));
        self.op(Op::Cast, span).code(&local(index)).code(&usize)
    }

    /// The item with an index.
    fn selected(&mut self, items: &Items, index: u32, span: Span) -> Code {
        match items {
            Items::Elements { of } => {
                let code = self.op(Op::Item, span).code(&local(*of));
                code.code(&local(index))
            }
            Items::Parts { kind, of, size } => {
                let code = self.op(Op::PartOf, span).number(*kind);
                let code = code.code(&local(*of)).code(&local(*size));
                code.code(&local(index))
            }
            Items::Enumerated(inner) => {
                let pair = [self.index(index, span), self.selected(inner, index, span)];
                self.op(Op::Tuple, span).list(&pair)
            }
            Items::Zipped(first, second) => {
                let pair = [first, second].map(|items| self.selected(items, index, span));
                self.op(Op::Tuple, span).list(&pair)
            }
            Items::Copied(inner) => {
                let item = self.selected(inner, index, span);
                self.op(Op::Deref, span).code(&item)
            }
            Items::Reversed(inner, count) => {
                let (back, variable) = self.counted_back(*count, index, span);
                Code::block(vec![back, self.selected(inner, variable, span)])
            }
        }
    }
}

/// Whether a method that kernels do not have is one of iterators.
fn is_foreign(call: &ExprMethodCall) -> bool {
    const ADAPTERS: &[&str] = &[
        "iter",
        "iter_mut",
        "into_iter",
        "map",
        "filter",
        "filter_map",
        "flat_map",
        "chain",
        "cycle",
        "take",
        "take_while",
        "skip",
        "skip_while",
        "step_by",
        "peekable",
        "scan",
        "inspect",
        "zip",
        "enumerate",
        "rev",
        "chunks",
        "chunks_mut",
        "chunks_exact",
        "chunks_exact_mut",
        "rchunks",
        "windows",
        "split",
        "copied",
        "cloned",
        "map_while",
        "fuse",
        "drain",
    ];
    ADAPTERS.iter().any(|name| call.method == name)
}
