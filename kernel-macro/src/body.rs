//! Statements: `let`, items, and expressions as statements.

use std::collections::HashSet;

use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::visit::Visit;
use syn::{Block, Expr, Item, Local, Pat, Stmt, Type};

use crate::flow::Frame;
use crate::function::{Kind, root};
use crate::refusal::{NAME_OF_KERNEL, Refusals};
use crate::scan::{self, Mutable, addressed};
use crate::signature::Signature;

/// Translates one body.
pub(crate) struct Translator<'a> {
    pub(crate) kind: Kind,
    /// The function's name, to see direct recursion. A method is not called by its name alone.
    pub(crate) name: Option<Ident>,
    pub(crate) refusals: &'a mut Refusals,
    /// Loops and labelled blocks around what is translated, outermost first.
    pub(crate) frames: Vec<Frame>,
    /// Names of closures in scope.
    pub(crate) closures: HashSet<String>,
    /// Whether what is translated is the body of a closure.
    pub(crate) in_closure: bool,
    /// Whether the function is described in place of its calls.
    pub(crate) is_inlined: bool,
    /// The variables that are `mut`.
    pub(crate) mutable: Mutable,
    addressed: HashSet<String>,
    type_params: Vec<Ident>,
    consts: Vec<(Ident, Type)>,
    fresh: usize,
    depth: usize,
}

/// How deep expressions may nest: the translator recurses, and so does rustc.
const MAX_DEPTH: usize = 128;

/// Where the value of an expression goes.
#[derive(Clone)]
pub(crate) enum Destination {
    /// Nowhere.
    Discard,
    /// Into the slot with this name.
    Slot(Ident),
}

impl<'a> Translator<'a> {
    pub(crate) fn new(
        kind: Kind,
        signature: &Signature,
        body: &Block,
        refusals: &'a mut Refusals,
    ) -> Self {
        let mut mutable = Mutable::default();
        mutable.visit_block(body);
        for param in &signature.params {
            mutable.visit_pat(&param.pattern);
        }
        Translator {
            mutable,
            kind,
            name: signature.is_free.then(|| signature.name.clone()),
            refusals,
            frames: Vec::new(),
            closures: HashSet::new(),
            in_closure: false,
            is_inlined: signature.is_inlined(),
            addressed: addressed(body, signature.params.iter().map(|p| &p.pattern)),
            type_params: signature
                .types
                .iter()
                .map(|(name, _)| name.clone())
                .collect(),
            consts: signature.consts.clone(),
            fresh: 0,
            depth: 0,
        }
    }

    /// The whole description: parameters, then the body.
    pub(crate) fn function(&mut self, signature: &Signature, body: &Block) -> TokenStream {
        if let (Kind::Kernel, Some(variable)) =
            (self.kind, scan::variable_named(&signature.name, body))
        {
            self.refuse(&variable, NAME_OF_KERNEL);
        }
        if self.is_inlined {
            return self.inlined_function(signature, body);
        }
        let mut out = TokenStream::new();
        for (i, param) in signature.params.iter().enumerate() {
            out.extend(self.param(i, &param.pattern, &param.ty));
        }
        out.extend(match (&signature.result, body.stmts.split_last()) {
            (None, _) => self.block(body, &Destination::Discard),
            // A body that is one expression is returned as it is.
            (Some(_), Some((Stmt::Expr(last, None), before))) if !is_structured(last) => {
                let before = self.statements(before, &Destination::Discard);
                let value = self.expr(last);
                quote_spanned!(last.span()=> #before __kiln.return_value(#value);)
            }
            (Some(_), _) => {
                let slot = self.fresh(body.span());
                let body = self.block(body, &Destination::Slot(slot.clone()));
                quote!(let #slot = __kiln.slot(); #body __kiln.finish(#slot);)
            }
        });
        out
    }

    fn param(&mut self, index: usize, pattern: &Pat, ty: &Type) -> TokenStream {
        let span = pattern.span();
        let ty = self.ty(ty);
        if let Pat::Ident(ident) = pattern
            && ident.by_ref.is_none()
            && ident.subpat.is_none()
        {
            let (name, mutable) = (&ident.ident, ident.mutability.is_some());
            let (text, memory) = (plain_name(name), self.is_addressed(name));
            return quote_spanned!(span=> let #name = __kiln.param(#text, #ty, #mutable, #memory););
        }
        let text = format!("parameter{index}");
        let value = self.fresh(span);
        let parts = self.bind_pattern(pattern, &quote!(#value));
        quote_spanned!(span=> let #value = __kiln.param(#text, #ty, false, false); #parts)
    }

    /// A name that is nobody else's.
    pub(crate) fn fresh(&mut self, span: Span) -> Ident {
        self.fresh += 1;
        format_ident!("__kiln_{}", self.fresh, span = span)
    }

    pub(crate) fn is_addressed(&self, name: &Ident) -> bool {
        self.addressed.contains(&name.to_string())
    }

    pub(crate) fn is_type_param(&self, name: &Ident) -> bool {
        self.type_params.contains(name)
    }

    pub(crate) fn is_const_param(&self, name: &Ident) -> bool {
        self.consts.iter().any(|(n, _)| n == name)
    }

    /// The declared type of a const parameter.
    pub(crate) fn const_param(&self, name: &Ident) -> Option<Type> {
        let found = self.consts.iter().find(|(n, _)| n == name);
        found.map(|(_, ty)| ty.clone())
    }

    pub(crate) fn refuse(&mut self, tokens: &dyn ToTokens, message: &str) -> TokenStream {
        self.refusals.refuse(tokens, message);
        quote!(__kiln.unit())
    }

    /// Runs `translate` one level deeper, unless that is too deep.
    pub(crate) fn nested(
        &mut self,
        expr: &Expr,
        translate: impl FnOnce(&mut Self) -> TokenStream,
    ) -> TokenStream {
        if self.depth >= MAX_DEPTH {
            return self.refuse(
                expr,
                "this is nested too deeply; give parts of it names with `let`",
            );
        }
        self.depth += 1;
        let tokens = translate(self);
        self.depth -= 1;
        tokens
    }

    /// A block of the host that describes this one, its value left at the destination.
    pub(crate) fn block(&mut self, block: &Block, to: &Destination) -> TokenStream {
        let closures = self.closures.clone();
        let statements = self.statements(&block.stmts, to);
        self.closures = closures;
        quote!({ #statements })
    }

    pub(crate) fn statements(&mut self, statements: &[Stmt], to: &Destination) -> TokenStream {
        let mut out = TokenStream::new();
        for (i, statement) in statements.iter().enumerate() {
            let is_last = i + 1 == statements.len();
            out.extend(match statement {
                Stmt::Local(local) => self.local(local),
                Stmt::Item(item) => self.item(item),
                Stmt::Expr(expr, None) if is_last => self.into(expr, to),
                Stmt::Expr(expr, _) => self.into(expr, &Destination::Discard),
                Stmt::Macro(call) => {
                    let value = self.macro_call(&call.mac, None);
                    quote!(#value;)
                }
            });
        }
        out
    }

    fn item(&mut self, item: &Item) -> TokenStream {
        match item {
            Item::Const(_) | Item::Use(_) => {
                quote!(#[allow(unused, reason = "for the description")] #item)
            }
            _ => {
                self.refuse(
                    item,
                    "only `const` and `use` items are inside a kernel; move this one out of the \
                     function",
                );
                TokenStream::new()
            }
        }
    }

    fn local(&mut self, local: &Local) -> TokenStream {
        let span = local.span();
        let (pattern, ty) = match &local.pat {
            Pat::Type(typed) => (&*typed.pat, Some(&*typed.ty)),
            pattern => (pattern, None),
        };
        if let Some(ty) = ty
            && !matches!(ty, Type::Infer(_))
        {
            self.check_annotation(ty);
        }
        let Some(init) = &local.init else {
            return self.declaration(pattern, ty);
        };
        if let Some((token, _)) = &init.diverge {
            self.refuse(token, "kernels have no `let .. else`; use `if`");
            return TokenStream::new();
        }
        if let Expr::Closure(closure) = crate::expression::strip(&init.expr) {
            return self.local_closure(pattern, closure);
        }
        if let (Pat::Tuple(pattern), Expr::Tuple(values), None) = (pattern, &*init.expr, ty)
            && pattern.elems.len() == values.elems.len()
            && !pattern.elems.iter().any(|p| matches!(p, Pat::Rest(_)))
        {
            return self.parallel(pattern, values);
        }
        let value = match &*init.expr {
            Expr::Macro(call) => self.macro_call(&call.mac, pattern_name(pattern)),
            expr => self.expr(expr),
        };
        let value = match ty {
            Some(ty @ Type::Reference(_)) => {
                let ty = self.ty(ty);
                quote_spanned!(span=> __kiln.coerce(#value, #ty))
            }
            _ => value,
        };
        self.bind_pattern(pattern, &value)
    }

    /// `let x;`
    fn declaration(&mut self, pattern: &Pat, ty: Option<&Type>) -> TokenStream {
        let Pat::Ident(ident) = pattern else {
            return self.refuse(
                pattern,
                "a variable without a value has a name; give this one a value",
            );
        };
        let (name, memory) = (&ident.ident, self.is_addressed(&ident.ident));
        let ty = match ty {
            Some(ty) if memory => {
                let ty = self.ty(ty);
                quote!(::core::option::Option::Some(#ty))
            }
            _ => quote!(::core::option::Option::None),
        };
        quote_spanned!(name.span()=> let #name = __kiln.declare(#ty, #memory);)
    }

    /// `let (a, b) = (x, y);` without a tuple.
    fn parallel(&mut self, pattern: &syn::PatTuple, values: &syn::ExprTuple) -> TokenStream {
        let mut out = TokenStream::new();
        let mut names = Vec::new();
        for value in &values.elems {
            let name = self.fresh(value.span());
            let value = self.expr(value);
            out.extend(quote_spanned!(name.span()=> let #name = #value.eager();));
            names.push(name);
        }
        for (pattern, name) in pattern.elems.iter().zip(names) {
            out.extend(self.bind_pattern(pattern, &quote!(#name)));
        }
        out
    }

    fn check_annotation(&mut self, ty: &Type) {
        // `[_; 4]` and `&[_]` are for rustc.
        let open = ty.to_token_stream().to_string().contains('_');
        if !open {
            crate::types::check_type(ty, self.refusals);
        }
    }

    /// An expression whose value goes to a destination.
    pub(crate) fn into(&mut self, expr: &Expr, to: &Destination) -> TokenStream {
        if is_structured(expr) {
            return self.nested(expr, |this| this.structured(expr, to));
        }
        let value = self.expr(expr);
        match to {
            Destination::Slot(slot) => {
                quote_spanned!(expr.span()=> __kiln.assign(#slot, #value);)
            }
            Destination::Discard => quote_spanned!(expr.span()=> __kiln.discard(#value);),
        }
    }

    /// A new slot, filled by an expression, as an operand.
    pub(crate) fn through_slot(&mut self, expr: &Expr) -> TokenStream {
        let slot = self.fresh(expr.span());
        let fill = self.structured(expr, &Destination::Slot(slot.clone()));
        quote_spanned!(expr.span()=> { let #slot = __kiln.slot(); #fill #slot })
    }
}

/// Whether an expression is made of statements.
pub(crate) fn is_structured(expr: &Expr) -> bool {
    match expr {
        Expr::Paren(paren) => is_structured(&paren.expr),
        Expr::Group(group) => is_structured(&group.expr),
        Expr::Binary(binary) => crate::scan::is_compound(&binary.op),
        _ => matches!(
            expr,
            Expr::If(_)
                | Expr::Match(_)
                | Expr::Block(_)
                | Expr::Loop(_)
                | Expr::While(_)
                | Expr::ForLoop(_)
                | Expr::Assign(_)
                | Expr::Break(_)
                | Expr::Continue(_)
                | Expr::Return(_)
        ),
    }
}

fn pattern_name(pattern: &Pat) -> Option<&Ident> {
    match pattern {
        Pat::Ident(ident) => Some(&ident.ident),
        _ => None,
    }
}

/// A name without `r#`.
pub(crate) fn plain_name(name: &Ident) -> String {
    let text = name.to_string();
    text.strip_prefix("r#").unwrap_or(&text).to_owned()
}

/// `Unroll` of the IR, as an expression of the host.
pub(crate) fn unroll(way: &str, factor: Option<u32>) -> TokenStream {
    let (root, way) = (root(), format_ident!("{way}"));
    match factor {
        Some(factor) => quote!(#root::Unroll::By(#factor)),
        None => quote!(#root::Unroll::#way),
    }
}
