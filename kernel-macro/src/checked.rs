//! The checked copy: the body as it was written, for rustc.
//!
//! Literals without a suffix and struct literals go through a `TypeOf`, `__kiln_t0.of(1)`, whose type
//! rustc infers with everything else; the description asks it for the type.

use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::visit_mut::VisitMut;
use syn::{Block, Expr, ExprMethodCall, ExprPath, Lit, Pat, Token};

use crate::function::root;
use crate::signature::Signature;

/// How the names of `TypeOf`s begin.
const PREFIX: &str = "__kiln_t";

/// A body whose literals tell their types.
pub(crate) struct CheckedCopy {
    body: Block,
    types: Vec<Ident>,
}

impl CheckedCopy {
    pub(crate) fn new(body: &Block) -> CheckedCopy {
        let mut body = body.clone();
        let mut mark = MarkLiterals { types: Vec::new() };
        mark.visit_block_mut(&mut body);
        CheckedCopy {
            body,
            types: mark.types,
        }
    }

    /// The body, literals marked and attributes in place.
    pub(crate) fn body(&self) -> &Block {
        &self.body
    }

    /// The declarations of the types.
    pub(crate) fn types(&self) -> TokenStream {
        let (types, root) = (&self.types, root());
        quote!(#(let #types = #root::TypeOf::new();)*)
    }

    /// The closure that nobody calls; `quiet` if its body is somewhere else, too.
    pub(crate) fn closure(&self, signature: &Signature, quiet: bool) -> TokenStream {
        let mut body = self.body.clone();
        ForHost.visit_block_mut(&mut body);
        let params = signature.params.iter().map(|param| {
            let (pattern, ty) = (&param.pattern, &param.ty);
            quote!(#pattern: #ty)
        });
        let result = signature.result.iter();
        let quiet = match quiet {
            true => quote! {
                #[allow(warnings, clippy::all, reason = "the function itself is warned about")]
            },
            false => unfit_lints(),
        };
        quote!(#quiet let _ = |#(#params),*| #(-> #result)* #body;)
    }
}

/// Switches off the lints that recommend what kernels do not have: iterators, and methods that are
/// not of the device.
pub(crate) fn unfit_lints() -> TokenStream {
    quote! {
        #[allow(
            clippy::needless_range_loop,
            clippy::manual_memcpy,
            clippy::manual_swap,
            clippy::manual_is_multiple_of,
            clippy::manual_div_ceil,
            clippy::manual_clamp,
            clippy::manual_range_contains,
            clippy::implicit_saturating_sub,
            clippy::explicit_counter_loop,
            clippy::excessive_precision,
            clippy::redundant_closure,
            clippy::redundant_closure_call,
            clippy::too_many_arguments,
            reason = "they recommend what kernels do not have"
        )]
    }
}

/// A body as the host runs it.
pub(crate) fn for_host(body: &Block) -> Block {
    let mut body = body.clone();
    ForHost.visit_block_mut(&mut body);
    body
}

/// The argument of `__kiln_t0.of(argument)` and the name of its type.
pub(crate) fn marked(expr: &Expr) -> Option<(&Ident, &Expr)> {
    let Expr::MethodCall(call) = expr else {
        return None;
    };
    let Expr::Path(receiver) = &*call.receiver else {
        return None;
    };
    let name = receiver.path.get_ident()?;
    let is_mark = name.to_string().starts_with(PREFIX) && call.method == "of";
    is_mark.then_some(name).zip(call.args.first())
}

struct MarkLiterals {
    types: Vec<Ident>,
}

impl MarkLiterals {
    fn mark(&mut self, expr: &mut Expr) {
        let span = expr.span();
        let name = format_ident!("{PREFIX}{}", self.types.len(), span = span);
        // Built by hand: a macro must not panic, and parsing might.
        let receiver = ExprPath {
            attrs: Vec::new(),
            qself: None,
            path: name.clone().into(),
        };
        let argument = std::mem::replace(expr, Expr::Verbatim(TokenStream::new()));
        *expr = Expr::MethodCall(ExprMethodCall {
            attrs: Vec::new(),
            receiver: Box::new(Expr::Path(receiver)),
            dot_token: Token![.](span),
            method: Ident::new("of", span),
            turbofish: None,
            paren_token: syn::token::Paren(span),
            args: std::iter::once(argument).collect(),
        });
        self.types.push(name);
    }
}

/// Whether an expression is a number without a suffix, perhaps negative.
pub(crate) fn is_open_literal(expr: &Expr) -> bool {
    match expr {
        Expr::Lit(lit) => match &lit.lit {
            Lit::Int(int) => int.suffix().is_empty(),
            Lit::Float(float) => float.suffix().is_empty(),
            _ => false,
        },
        Expr::Unary(unary) => matches!(unary.op, syn::UnOp::Neg(_)) && is_open_literal(&unary.expr),
        _ => false,
    }
}

impl VisitMut for MarkLiterals {
    fn visit_expr_mut(&mut self, expr: &mut Expr) {
        if is_open_literal(expr) {
            self.mark(expr);
            return;
        }
        // A literal that is cast has its type from the cast.
        if let Expr::Cast(cast) = expr
            && is_open_literal(crate::expression::strip(&cast.expr))
        {
            return;
        }
        // The length of a repetition is a constant of the host.
        if let Expr::Repeat(repeat) = expr {
            self.visit_expr_mut(&mut repeat.expr);
            return;
        }
        syn::visit_mut::visit_expr_mut(self, expr);
        if let Expr::Struct(_) = expr {
            self.mark(expr);
        }
    }

    // What is in these is no expression of the kernel.
    fn visit_pat_mut(&mut self, _: &mut Pat) {}
    fn visit_type_mut(&mut self, _: &mut syn::Type) {}
    fn visit_item_mut(&mut self, _: &mut syn::Item) {}
    fn visit_attribute_mut(&mut self, _: &mut syn::Attribute) {}
    fn visit_path_mut(&mut self, _: &mut syn::Path) {}
    fn visit_angle_bracketed_generic_arguments_mut(
        &mut self,
        _: &mut syn::AngleBracketedGenericArguments,
    ) {
    }
}

/// Takes out what rustc does not know: attributes of loops and `shared!`.
struct ForHost;

impl VisitMut for ForHost {
    fn visit_expr_mut(&mut self, expr: &mut Expr) {
        if let Expr::ForLoop(each) = expr {
            each.attrs.retain(|a| !a.path().is_ident("unroll"));
        }
        if let Expr::Macro(shared) = expr
            && shared.mac.path.is_ident("shared")
        {
            let (ty, root) = (&shared.mac.tokens, root());
            *expr = Expr::Verbatim(quote_spanned!(shared.span()=> #root::shared_memory::<#ty>()));
        }
        syn::visit_mut::visit_expr_mut(self, expr);
    }
}
