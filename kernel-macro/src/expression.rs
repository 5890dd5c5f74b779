//! Expressions that compute: each becomes an operand.

use proc_macro2::TokenStream;
use quote::{format_ident, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{BinOp, Expr, ExprLit, ExprPath, ExprRange, ExprStruct, Lit, Member, UnOp};

use crate::body::{Translator, is_structured};
use crate::checked::{is_cast, is_open_literal, marked, marked_method};
use crate::function::const_name;
use crate::scan::only_computes;

impl Translator<'_> {
    /// An expression of the host that is the operand for this one.
    pub(crate) fn expr(&mut self, expr: &Expr) -> TokenStream {
        self.nested(expr, |this| this.expr_here(expr))
    }

    fn expr_here(&mut self, expr: &Expr) -> TokenStream {
        if let Some((name, inner)) = marked(expr) {
            return match inner {
                Expr::Struct(literal) => {
                    let ty = quote_spanned!(expr.span()=> #name.ty(__kiln.builder()));
                    self.struct_literal(literal, &ty)
                }
                Expr::Path(path) => {
                    let root = crate::function::root_at(expr.span());
                    quote_spanned!(expr.span()=> #root::Named::named(#name.of(#path), __kiln))
                }
                literal => {
                    quote_spanned!(expr.span()=> __kiln.constant(#name.of(#literal)))
                }
            };
        }
        if let Some((of, call)) = marked_method(expr) {
            return self.method_call(of, call);
        }
        if is_structured(expr) {
            return self.through_slot(expr);
        }
        let span = expr.span();
        match expr {
            Expr::Paren(e) => self.expr(&e.expr),
            Expr::Group(e) => self.expr(&e.expr),
            Expr::Lit(e) => self.literal(e),
            Expr::Path(e) => self.path(e),
            Expr::Unary(e) => self.unary(e),
            Expr::Binary(e) => self.binary(e),
            Expr::Cast(e) if is_open_literal(strip(&e.expr)) => {
                quote_spanned!(span=> __kiln.constant(#e))
            }
            Expr::Cast(e) => {
                let (value, ty) = (self.expr(&e.expr), self.ty(&e.ty));
                quote_spanned!(span=> #value.cast(#ty))
            }
            Expr::Field(e) => {
                let base = self.expr(&e.base);
                let name = match &e.member {
                    Member::Named(name) => crate::body::plain_name(name),
                    Member::Unnamed(index) => index.index.to_string(),
                };
                quote_spanned!(span=> #base.field(#name))
            }
            Expr::Index(e) => {
                if let Expr::Range(range) = strip(&e.index) {
                    return self.part(e, range, false);
                }
                let base = self.expr(&e.expr);
                let index = self.expr(&e.index);
                quote_spanned!(span=> #base.index(#index))
            }
            Expr::Reference(e) => self.reference(e),
            Expr::Tuple(e) if e.elems.is_empty() => quote!(__kiln.unit()),
            Expr::Tuple(e) => {
                let parts = self.eager_list(e.elems.iter());
                quote_spanned!(span=> __kiln.tuple(&[#(#parts),*]))
            }
            Expr::Array(e) if e.elems.is_empty() => {
                self.refuse(expr, "an array of a kernel has at least one element")
            }
            Expr::Array(e) => {
                let parts = self.eager_list(e.elems.iter());
                quote_spanned!(span=> __kiln.array(&[#(#parts),*]))
            }
            Expr::Repeat(e) => {
                let (element, len) = (self.expr(&e.expr), self.len(&e.len));
                quote_spanned!(span=> __kiln.repeat(#element, #len))
            }
            Expr::Call(e) => self.call(e),
            Expr::MethodCall(e) if is_cast(e) => self.cast(e),
            Expr::Macro(e) => self.macro_call(&e.mac, None),
            _ => self.refuse_expr(expr),
        }
    }

    /// What kernels do not have, by its syntax.
    fn refuse_expr(&mut self, expr: &Expr) -> TokenStream {
        let message = match expr {
            Expr::Async(_) | Expr::Await(_) => {
                "a kernel is not `async`; threads wait for each other at `barrier()`"
            }
            Expr::Closure(_) => {
                "a closure has a name, `let f = |x| ..;`, or is passed to a `#[device_fn]`"
            }
            Expr::Let(_) => "kernels have no `if let`; use `match`, or `if` with a comparison",
            Expr::Range(_) => "a range stands in `for i in a..b`; keep its two ends instead",
            Expr::Try(_) => {
                "kernels have no `Result` and no `?`; `return` early, and write what went wrong to a \
                 `&mut [T]`"
            }
            Expr::Unsafe(_) => {
                "kernels are safe; for indexing without checks use `Kernel::build_unchecked`"
            }
            Expr::Yield(_) => "kernels have no generators; use a loop",
            Expr::Const(_) => "write a `const` item instead of a `const` block",
            Expr::RawAddr(_) => "kernels have references, not raw pointers; write `&` or `&mut`",
            Expr::Infer(_) => "`_` stands on the left of `=` only",
            Expr::TryBlock(_) => "kernels have no `Result`; use `if` and `return`",
            Expr::Verbatim(_) => "kernels do not have this; use simpler Rust",
            _ => {
                "kernels do not have this expression; write it with `if`, `match`, loops and calls"
            }
        };
        self.refuse(expr, message)
    }

    /// Expressions one after the other: each as it is at its place.
    pub(crate) fn eager_list<'e>(
        &mut self,
        exprs: impl Iterator<Item = &'e Expr>,
    ) -> Vec<TokenStream> {
        let exprs: Vec<&Expr> = exprs.collect();
        let lazy = exprs.iter().all(|e| only_computes(e));
        let eager = |this: &mut Self, e: &Expr| {
            let value = this.expr(e);
            match lazy {
                true => value,
                false => quote_spanned!(e.span()=> #value.eager()),
            }
        };
        exprs.into_iter().map(|e| eager(self, e)).collect()
    }

    fn literal(&mut self, literal: &ExprLit) -> TokenStream {
        let message = match &literal.lit {
            Lit::Int(_) | Lit::Float(_) | Lit::Bool(_) | Lit::Byte(_) => {
                return quote_spanned!(literal.span()=> __kiln.constant(#literal));
            }
            Lit::Char(_) => "kernels have no `char`; use a byte, `b'a'`",
            Lit::Str(_) | Lit::ByteStr(_) | Lit::CStr(_) => {
                "kernels have no strings; pass bytes as a slice `&[u8]`"
            }
            _ => "kernels do not have this literal",
        };
        self.refuse(literal, message)
    }

    fn path(&mut self, path: &ExprPath) -> TokenStream {
        let span = path.span();
        if let Some(name) = path.path.get_ident() {
            if let Some(ty) = self.const_param(name) {
                let (ty, name) = (self.ty(&ty), const_name(name));
                return quote_spanned!(span=> __kiln.const_value(#name, #ty));
            }
            if name == "self" {
                return self.refuse(
                    path,
                    "kernels are free functions; take the value as a parameter",
                );
            }
            if self.is_closure(name) {
                return self.refuse(
                    path,
                    "a closure is called, or passed to a `#[device_fn]`; it is no value",
                );
            }
            if name == "None" {
                return self.refuse(
                    path,
                    "kernels have no `Option`; use a `bool` beside the value",
                );
            }
        }
        let mut segments = path.path.segments.iter();
        if let (Some(first), Some(second), None) =
            (segments.next(), segments.next(), segments.next())
            && self.is_type_param(&first.ident)
        {
            let ty = &first.ident;
            let number = match second.ident.to_string().as_str() {
                "ZERO" => 0i128,
                "ONE" => 1,
                _ => {
                    return self.refuse(
                        &second.ident,
                        "type parameters have the constants `ZERO` and `ONE`; make others with \
                         `T::from_f64` or `T::from_i32`",
                    );
                }
            };
            let ty = quote_spanned!(span=> __kiln.builder().device_type::<#ty>());
            return match number {
                0 => quote_spanned!(span=> __kiln.zero(#ty)),
                _ => quote_spanned!(span=> __kiln.int(#ty, #number)),
            };
        }
        let root = crate::function::root_at(span);
        quote_spanned!(span=> #root::Named::named(#path, __kiln))
    }

    fn unary(&mut self, unary: &syn::ExprUnary) -> TokenStream {
        let span = unary.span();
        let value = self.expr(&unary.expr);
        match unary.op {
            UnOp::Neg(_) => quote_spanned!(span=> __kiln.neg(#value)),
            UnOp::Not(_) => quote_spanned!(span=> __kiln.not(#value)),
            UnOp::Deref(_) => quote_spanned!(span=> #value.deref()),
            _ => self.refuse(unary, "kernels do not have this operator"),
        }
    }

    fn binary(&mut self, binary: &syn::ExprBinary) -> TokenStream {
        let span = binary.span();
        let (mut left, right) = (self.expr(&binary.left), self.expr(&binary.right));
        let name = match operator(&binary.op) {
            Some(name) => format_ident!("{name}", span = span),
            None => {
                let name = match binary.op {
                    BinOp::And(_) => "and",
                    BinOp::Or(_) => "or",
                    _ => return self.refuse(binary, "kernels do not have this operator"),
                };
                let name = format_ident!("{name}", span = span);
                return quote_spanned!(span=> __kiln.#name(#left, &mut || #right));
            }
        };
        // An operand that is a variable is read where the operator is, unless the right side may
        // assign it.
        if !only_computes(&binary.right) {
            left = quote_spanned!(span=> #left.eager());
        }
        quote_spanned!(span=> __kiln.#name(#left, #right))
    }

    fn reference(&mut self, reference: &syn::ExprReference) -> TokenStream {
        let mutable = reference.mutability.is_some();
        if let Expr::Index(index) = strip(&reference.expr)
            && let Expr::Range(range) = strip(&index.index)
        {
            return self.part(index, range, mutable);
        }
        let place = self.expr(&reference.expr);
        quote_spanned!(reference.span()=> #place.address(#mutable))
    }

    /// `x[a..b]`: a slice of its own; `x[..]` is `x`.
    fn part(&mut self, index: &syn::ExprIndex, range: &ExprRange, mutable: bool) -> TokenStream {
        let span = index.span();
        let base = self.expr(&index.expr);
        let ends = range
            .start
            .as_deref()
            .into_iter()
            .chain(range.end.as_deref());
        let mut ends = self.eager_list(ends).into_iter();
        if range.start.is_none() && range.end.is_none() {
            return quote_spanned!(span=> #base.whole_slice(#mutable));
        }
        let mut bound = |end: &Option<Box<Expr>>| match end.as_ref().and_then(|_| ends.next()) {
            Some(end) => quote!(::core::option::Option::Some(#end)),
            None => quote!(::core::option::Option::None),
        };
        let (from, to) = (bound(&range.start), bound(&range.end));
        let inclusive = matches!(range.limits, syn::RangeLimits::Closed(_));
        quote_spanned!(span=> #base.part(#from, #to, #inclusive, #mutable))
    }

    fn struct_literal(&mut self, literal: &ExprStruct, ty: &TokenStream) -> TokenStream {
        let span = literal.span();
        let values = self.eager_list(literal.fields.iter().map(|field| &field.expr));
        let fields = literal.fields.iter().zip(values).map(|(field, value)| {
            let name = match &field.member {
                Member::Named(name) => crate::body::plain_name(name),
                Member::Unnamed(index) => index.index.to_string(),
            };
            quote!((#name, #value))
        });
        let fields: Vec<_> = fields.collect();
        let base = match &literal.rest {
            Some(base) => {
                let base = self.expr(base);
                quote!(::core::option::Option::Some(#base))
            }
            None => quote!(::core::option::Option::None),
        };
        quote_spanned!(span=> __kiln.construct(#ty, &[#(#fields),*], #base))
    }
}

/// The method of `Front` for an operator, save the short-circuit ones.
pub(crate) fn operator(op: &BinOp) -> Option<&'static str> {
    Some(match op {
        BinOp::Add(_) | BinOp::AddAssign(_) => "add",
        BinOp::Sub(_) | BinOp::SubAssign(_) => "sub",
        BinOp::Mul(_) | BinOp::MulAssign(_) => "mul",
        BinOp::Div(_) | BinOp::DivAssign(_) => "div",
        BinOp::Rem(_) | BinOp::RemAssign(_) => "rem",
        BinOp::BitXor(_) | BinOp::BitXorAssign(_) => "bitxor",
        BinOp::BitAnd(_) | BinOp::BitAndAssign(_) => "bitand",
        BinOp::BitOr(_) | BinOp::BitOrAssign(_) => "bitor",
        BinOp::Shl(_) | BinOp::ShlAssign(_) => "shl",
        BinOp::Shr(_) | BinOp::ShrAssign(_) => "shr",
        BinOp::Eq(_) => "eq",
        BinOp::Lt(_) => "lt",
        BinOp::Le(_) => "le",
        BinOp::Ne(_) => "ne",
        BinOp::Ge(_) => "ge",
        BinOp::Gt(_) => "gt",
        _ => return None,
    })
}

/// An expression without parentheses around it.
pub(crate) fn strip(expr: &Expr) -> &Expr {
    match expr {
        Expr::Paren(paren) => strip(&paren.expr),
        Expr::Group(group) => strip(&group.expr),
        _ => expr,
    }
}
