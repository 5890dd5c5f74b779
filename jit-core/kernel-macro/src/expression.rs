//! Expressions that compute: each becomes an operand.

use kiln_description::{Code, Op, TypeOp, When, method_name};
use proc_macro2::{Ident, Literal, Span};
use quote::{ToTokens, quote, quote_spanned};
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::{BinOp, Expr, ExprLit, ExprPath, ExprRange, ExprStruct, Lit, Member, UnOp};

use crate::body::{Translator, is_structured};
use crate::call::is_any_default;
use crate::checked::{is_cast, is_open_literal, marked, marked_method, marked_operand};
use crate::conversion::Conversion;
use crate::function::{root, root_at};
use crate::names::Meaning;
use crate::option::{is_none_value, is_result_function};
use crate::position::{Start, before};
use crate::refusal::NOT_OF_THE_KERNEL;
use crate::stand::Stand;
use crate::types::has_references;

impl Translator<'_> {
    /// The operand that an expression is.
    pub(crate) fn expr(&mut self, expr: &Expr) -> Code {
        self.nested(expr, |this| this.expr_here(expr))
    }

    // flat match
    fn expr_here(&mut self, expr: &Expr) -> Code {
        if let Some((name, inner)) = marked(expr) {
            if let Some(conversion) = Conversion::of(inner) {
                return self.converted(conversion, inner, name);
            }
            let stand_in = Stand::of(inner).map(|stand| stand.literal(expr.start()));
            return match stand_in.as_ref().unwrap_or(inner) {
                Expr::Struct(literal) => self.struct_literal(literal, name),
                inner if is_none_value(inner) => self.none(name, expr.start()),
                Expr::Call(call) if is_result_function(&call.func) => self.result_value(call, name),
                Expr::Call(call) if is_any_default(call) => self.any_default(call, name),
                inner if is_open_literal(inner) => {
                    let root = root();
                    let ty = self.pool.entry(&quote!(#root::Pooled::type_of(&#name)));
                    let ty = Code::ty(TypeOp::Pooled).number(ty);
                    self.number(inner, &ty, expr.start())
                }
                inner => {
                    let root = root();
                    self.constant(&quote!(#root::of(#name, #inner)), expr.start())
                }
            };
        }
        if let Some((of, call)) = marked_method(expr) {
            return self.method_call(of, call);
        }
        if let Some((_, operand)) = marked_operand(expr) {
            return self.expr(operand);
        }
        if is_structured(expr) {
            return self.through_slot(expr);
        }
        let span = expr.start();
        match expr {
            Expr::Paren(e) => self.expr(&e.expr),
            Expr::Group(e) => self.expr(&e.expr),
            Expr::Lit(e) => self.literal(e),
            Expr::Path(e) => self.path(e),
            Expr::Unary(e) => self.unary(e),
            Expr::Binary(e) => self.binary(e),
            Expr::Cast(e) if is_open_literal(strip(&e.expr)) => self.constant(e, span),
            Expr::Cast(e) => {
                let (value, ty) = (self.expr(&e.expr), self.ty(&e.ty));
                self.op(Op::Cast, span).code(&value).code(&ty)
            }
            Expr::Field(e) => {
                let base = self.expr(&e.base);
                let code = self.op(Op::Field, span).text(&member_name(&e.member));
                code.code(&base)
            }
            Expr::Index(e) => {
                if let Expr::Range(range) = strip(&e.index) {
                    return self.part(e, range, false);
                }
                if let Some((of, Expr::Tuple(indices))) = marked_operand(&e.index) {
                    return self.element(e, of, indices);
                }
                let (base, index) = (self.expr(&e.expr), self.expr(&e.index));
                self.op(Op::Index, span).code(&base).code(&index)
            }
            Expr::Reference(e) => self.reference(e),
            Expr::Tuple(e) if e.elems.is_empty() => Code::new(Op::Unit, None),
            Expr::Tuple(e) => {
                let parts = self.eager_list(e.elems.iter());
                self.op(Op::Tuple, span).list(&parts)
            }
            Expr::Array(e) if e.elems.is_empty() => {
                self.refuse(expr, "an array of a kernel has at least one element")
            }
            Expr::Array(e) => {
                let parts = self.eager_list(e.elems.iter());
                self.op(Op::Array, span).list(&parts)
            }
            Expr::Repeat(e) => {
                let (element, len) = (self.expr(&e.expr), self.len(&e.len));
                self.op(Op::Repeat, span).code(&element).len(len)
            }
            Expr::Call(e) => match self.stand_in(e) {
                Some(code) => code,
                None => self.call(e),
            },
            Expr::MethodCall(e) if is_cast(e) => self.cast(e),
            Expr::Macro(e) => self.macro_call(&e.mac, None),
            Expr::Const(e) => self.static_assertions(e),
            Expr::Try(e) => self.question_mark(e),
            _ => self.refuse_expr(expr),
        }
    }

    /// `a[(i, j)]`: of a type that has such elements, or of a matrix, which is an array of columns. The last index is
    /// the innermost, as it is for that.
    fn element(&mut self, index: &syn::ExprIndex, of: &Ident, indices: &syn::ExprTuple) -> Code {
        let span = index.start();
        let in_order = self.methods.change_in(&indices.elems) != When::Never;
        let mut before = Vec::new();
        let mut part = |this: &mut Self, part: &Expr| {
            let code = this.expr(part);
            if !in_order {
                return code;
            }
            let (variable, eager) = (this.fresh(), this.op(Op::Eager, part.start()).code(&code));
            before.push(Code::new(Op::Let, None).number(variable).code(&eager));
            crate::body::local(variable)
        };
        let indices: Vec<Code> = (indices.elems.iter())
            .map(|index| part(self, index))
            .collect();
        let base = self.expr(&index.expr);
        let element = (indices.iter().rev()).fold(base, |base, index| {
            self.op(Op::Index, span).code(&base).code(index)
        });
        let (root, open) = (root_at(span), quote_spanned!(span=> _));
        let entry = quote_spanned! {crate::position::before(span)=>
            <#open as #root::HasElement>::pooled(#of.indexed().entry())
        };
        let entry = self.pool.entry(&entry);
        let element = Code::new(Op::Operator, None).number(entry).code(&element);
        match before.is_empty() {
            true => element,
            false => Code::block(before.into_iter().chain([element]).collect()),
        }
    }

    /// What kernels do not have, by its syntax.
    fn refuse_expr(&mut self, expr: &Expr) -> Code {
        let message = match expr {
            Expr::Async(_) | Expr::Await(_) => {
                "a kernel is not `async`; threads wait for each other at `barrier()`"
            }
            Expr::Closure(_) => {
                "a closure has a name, `let f = |x| ..;`, or is passed to a `#[device_fn]`"
            }
            Expr::Let(_) => {
                "a `let` stands in the condition of an `if` or a `while`, joined with others by `&&`"
            }
            Expr::Range(_) => {
                "a range of a kernel is what a `for` or a chain of iterators goes over, what a slice is indexed by, or a \
                 variable, `let r = a..b;`; pass and keep its two ends instead"
            }
            Expr::Unsafe(_) => {
                "kernels are safe; for indexing without checks write `#[kernel(unsafe(unchecked))]`"
            }
            Expr::Yield(_) => "kernels have no generators; use a loop",
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

    /// A literal or a constant of the host.
    pub(crate) fn constant(&mut self, value: &dyn ToTokens, span: Span) -> Code {
        let entry = match self.result.as_ref().is_some_and(has_references) {
            true => self.constant_alone(value),
            false => self.constant_entry(value),
        };
        self.op(Op::Constant, span).number(entry)
    }

    /// Expressions one after the other: each as it is at its place.
    pub(crate) fn eager_list<'e>(&mut self, exprs: impl Iterator<Item = &'e Expr>) -> Vec<Code> {
        let exprs: Vec<&Expr> = exprs.collect();
        let when = self.methods.change_in(exprs.iter().copied());
        let eager = |this: &mut Self, e: &Expr| {
            let value = this.expr(e);
            this.eager_when(&when, value, e.start())
        };
        exprs.into_iter().map(|e| eager(self, e)).collect()
    }

    /// An operand that is taken as it is here when something is changed before it is used.
    fn eager_when(&self, when: &When, value: Code, span: Span) -> Code {
        match when {
            When::Never => value,
            When::Always => self.op(Op::Eager, span).code(&value),
            When::Changing(_) => self.op(Op::EagerWhen, span).when(when).code(&value),
        }
    }

    /// A number without a suffix, perhaps negative, of a type.
    fn number(&mut self, number: &Expr, ty: &Code, span: Span) -> Code {
        let (negative, literal) = digits(number, false);
        let sign = if negative { "-" } else { "" };
        match literal {
            Some(Lit::Int(int)) => {
                // One that is too large is rustc's to refuse.
                let value = int.base10_parse::<u64>().map_or(0, i128::from);
                let value = if negative { -value } else { value };
                self.op(Op::Int, span).code(ty).int(value)
            }
            Some(Lit::Float(float)) => {
                let text = format!("{sign}{}", float.base10_digits());
                self.op(Op::Float, span).code(ty).text(&text)
            }
            _ => self.refuse(number, "kernels do not have this literal"),
        }
    }

    fn literal(&mut self, literal: &ExprLit) -> Code {
        let span = literal.span();
        let message = match &literal.lit {
            Lit::Bool(lit) => return self.op(Op::Bool, span).flag(lit.value),
            Lit::Byte(lit) => {
                let code = self.op(Op::Int, span);
                let ty = self.host_type(&Ident::new("u8", before(lit.span())));
                return code.code(&ty).int(lit.value().into());
            }
            Lit::Int(_) | Lit::Float(_) | Lit::ByteStr(_) => return self.constant(literal, span),
            Lit::Char(_) => "kernels have no `char`; use a byte, `b'a'`",
            Lit::Str(_) | Lit::CStr(_) => {
                "kernels have no strings; write bytes, `b\"..\"`, or pass them as a slice `&[u8]`"
            }
            _ => "kernels do not have this literal",
        };
        self.refuse(literal, message)
    }

    fn path(&mut self, path: &ExprPath) -> Code {
        let span = path.span();
        if let Some(name) = path.path.get_ident() {
            if let Some(Meaning::Variable(number)) = self.names.meaning(name) {
                return self.op(Op::Name, span).number(number);
            }
            if let Some((number, ty)) = self.const_param(name) {
                let ty = self.ty(&ty);
                return self.op(Op::ConstParam, span).number(number).code(&ty);
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
            // Were it left to rustc, it would say that a constant cannot name a variable. After another refusal
            // the name may be one that a refused pattern binds.
            let is_lower = name.unraw().to_string().starts_with(char::is_lowercase);
            let is_unknown = is_lower && self.names.is_unknown(name);
            if is_unknown && self.refusals.is_empty() {
                return self.refuse(path, NOT_OF_THE_KERNEL);
            }
        }
        let mut segments = path.path.segments.iter();
        if let (Some(first), Some(second), None) =
            (segments.next(), segments.next(), segments.next())
            && self.is_type_param(&first.ident)
        {
            let ty = &first.ident;
            let ty = self.host_type(ty);
            return match second.ident.to_string().as_str() {
                "ZERO" => self.op(Op::Zero, span).code(&ty),
                "ONE" => self.op(Op::Int, span).code(&ty).int(1),
                _ => self.refuse(
                    &second.ident,
                    "type parameters have the constants `ZERO` and `ONE`; make others with \
                     `T::from_f64` or `T::from_i32`",
                ),
            };
        }
        let ends = (path.path.segments.first(), path.path.segments.last());
        if let (Some(ty), Some(name)) = ends
            && path.path.segments.len() == 2
            && (ty.ident == "usize" || ty.ident == "isize")
            && name.ident == "BITS"
        {
            return self.constant(&quote_spanned!(span=> u32::BITS), span);
        }
        self.constant(path, span)
    }

    fn unary(&mut self, unary: &syn::ExprUnary) -> Code {
        let op = match unary.op {
            UnOp::Neg(_) => Op::Neg,
            UnOp::Not(_) => Op::Not,
            UnOp::Deref(_) => Op::Deref,
            _ => return self.refuse(unary, "kernels do not have this operator"),
        };
        let value = self.expr(&unary.expr);
        let code = self.op(op, unary.span()).code(&value);
        let name = if op == Op::Neg { "neg" } else { "not" };
        self.operator_of(marked_operand(&unary.expr), name, code)
    }

    /// An operator that an operand may have of its own, if one is marked.
    pub(crate) fn operator_of(
        &mut self,
        marked: Option<(&Ident, &Expr)>,
        method: &str,
        code: Code,
    ) -> Code {
        let Some((of, operand)) = marked else {
            return code;
        };
        let (span, number) = (operand.start(), Literal::u64_suffixed(method_name(method)));
        let (root, open) = (root_at(span), quote_spanned!(span=> _));
        let entry = quote_spanned! {before(span)=>
            <#open as #root::HasOperator>::pooled(#of.named::<#number>().entry())
        };
        let entry = self.pool.entry(&entry);
        Code::new(Op::Operator, None).number(entry).code(&code)
    }

    fn binary(&mut self, binary: &syn::ExprBinary) -> Code {
        let span = binary.start();
        let (mut left, right) = (self.expr(&binary.left), self.expr(&binary.right));
        let Some(op) = operator(&binary.op) else {
            let op = match binary.op {
                BinOp::And(_) => Op::And,
                BinOp::Or(_) => Op::Or,
                _ => return self.refuse(binary, "kernels do not have this operator"),
            };
            return self.op(op, span).code(&left).region(&right);
        };
        // An operand that is a variable is read where the operator is, unless the right side may
        // assign it.
        left = self.eager_when(&self.methods.change(&binary.right), left, span);
        let code = self.op(op, span).code(&left).code(&right);
        let method = operator_method(&binary.op).unwrap_or_default();
        self.operator_of(marked_operand(&binary.left), method, code)
    }

    fn reference(&mut self, reference: &syn::ExprReference) -> Code {
        let mutable = reference.mutability.is_some();
        if let Expr::Index(index) = strip(&reference.expr)
            && let Expr::Range(range) = strip(&index.index)
        {
            return self.part(index, range, mutable);
        }
        let place = self.expr(&reference.expr);
        self.op(Op::Address, reference.span())
            .flag(mutable)
            .code(&place)
    }

    /// `x[a..b]`: a slice of its own; `x[..]` is `x`.
    pub(crate) fn part(
        &mut self,
        index: &syn::ExprIndex,
        range: &ExprRange,
        mutable: bool,
    ) -> Code {
        let span = index.start();
        let base = self.expr(&index.expr);
        if range.start.is_none() && range.end.is_none() {
            return self.op(Op::WholeSlice, span).flag(mutable).code(&base);
        }
        let (from, to) = self.ends(range);
        let inclusive = matches!(range.limits, syn::RangeLimits::Closed(_));
        let code = self.op(Op::Part, span).flag(mutable).flag(inclusive);
        code.code(&base).option(from.as_ref()).option(to.as_ref())
    }

    /// Both ends of a range, each of which may be left out.
    pub(crate) fn ends(&mut self, range: &ExprRange) -> (Option<Code>, Option<Code>) {
        let (start, end) = (range.start.as_deref(), range.end.as_deref());
        let mut ends = self.eager_list(start.into_iter().chain(end)).into_iter();
        let mut bound = |end: Option<&Expr>| end.and_then(|_| ends.next());
        (bound(start), bound(end))
    }

    /// `S { a, b: 1, ..base }`, of the type that rustc has inferred.
    fn struct_literal(&mut self, literal: &ExprStruct, ty: &Ident) -> Code {
        let (span, root) = (literal.span(), root());
        let ty = self.pool.entry(&quote!(#root::Pooled::type_of(&#ty)));
        let values = self.eager_list(literal.fields.iter().map(|field| &field.expr));
        let fields = literal.fields.iter().zip(values).map(|(field, value)| {
            let name = Code::default().text(&member_name(&field.member));
            name.code(&value)
        });
        let fields: Vec<Code> = fields.collect();
        let base = literal.rest.as_ref().map(|base| self.expr(base));
        let code = self.op(Op::Construct, span);
        let code = code.code(&Code::ty(TypeOp::Pooled).number(ty));
        code.list(&fields).option(base.as_ref())
    }
}

/// The literal in a number that may have signs before it, and whether it is negative.
fn digits(number: &Expr, negative: bool) -> (bool, Option<&Lit>) {
    match number {
        Expr::Unary(unary) => digits(&unary.expr, !negative),
        Expr::Lit(lit) => (negative, Some(&lit.lit)),
        _ => (negative, None),
    }
}

/// The name of a field, or its number.
pub(crate) fn member_name(member: &Member) -> String {
    match member {
        Member::Named(name) => crate::body::plain_name(name),
        Member::Unnamed(index) => index.index.to_string(),
    }
}

/// The operation for an operator, save the short-circuit ones.
pub(crate) fn operator(op: &BinOp) -> Option<Op> {
    Some(match op {
        BinOp::Add(_) | BinOp::AddAssign(_) => Op::Add,
        BinOp::Sub(_) | BinOp::SubAssign(_) => Op::Sub,
        BinOp::Mul(_) | BinOp::MulAssign(_) => Op::Mul,
        BinOp::Div(_) | BinOp::DivAssign(_) => Op::Div,
        BinOp::Rem(_) | BinOp::RemAssign(_) => Op::Rem,
        BinOp::BitXor(_) | BinOp::BitXorAssign(_) => Op::BitXor,
        BinOp::BitAnd(_) | BinOp::BitAndAssign(_) => Op::BitAnd,
        BinOp::BitOr(_) | BinOp::BitOrAssign(_) => Op::BitOr,
        BinOp::Shl(_) | BinOp::ShlAssign(_) => Op::Shl,
        BinOp::Shr(_) | BinOp::ShrAssign(_) => Op::Shr,
        BinOp::Eq(_) => Op::Eq,
        BinOp::Lt(_) => Op::Lt,
        BinOp::Le(_) => Op::Le,
        BinOp::Ne(_) => Op::Ne,
        BinOp::Ge(_) => Op::Ge,
        BinOp::Gt(_) => Op::Gt,
        _ => return None,
    })
}

/// The method that an operator is for types of their own: the arithmetic ones, and those that assign. Whatever is
/// compared is a number.
pub(crate) fn operator_method(op: &BinOp) -> Option<&'static str> {
    Some(match op {
        BinOp::Add(_) => "add",
        BinOp::Sub(_) => "sub",
        BinOp::Mul(_) => "mul",
        BinOp::Div(_) => "div",
        BinOp::Rem(_) => "rem",
        BinOp::BitXor(_) => "bitxor",
        BinOp::BitAnd(_) => "bitand",
        BinOp::BitOr(_) => "bitor",
        BinOp::Shl(_) => "shl",
        BinOp::Shr(_) => "shr",
        BinOp::AddAssign(_) => "add_assign",
        BinOp::SubAssign(_) => "sub_assign",
        BinOp::MulAssign(_) => "mul_assign",
        BinOp::DivAssign(_) => "div_assign",
        BinOp::RemAssign(_) => "rem_assign",
        BinOp::BitXorAssign(_) => "bitxor_assign",
        BinOp::BitAndAssign(_) => "bitand_assign",
        BinOp::BitOrAssign(_) => "bitor_assign",
        BinOp::ShlAssign(_) => "shl_assign",
        BinOp::ShrAssign(_) => "shr_assign",
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
