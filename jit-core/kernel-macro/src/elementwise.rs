//! `device!(..)`: a device function or a closure as a value that array operations take.
//!
//! The value has the host's function, for rustc to check and to infer types from, and a closure that
//! describes a call of it. Variables of the host that a closure names become parameters of the kernel;
//! names that begin with a capital are constants, as everywhere in Rust.

use std::collections::HashSet;

use kiln_description::Code;
use proc_macro2::{Ident, Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::visit::Visit;
use syn::{
    Block, Expr, ExprClosure, ExprPath, GenericArgument, ItemFn, Pat, PathArguments, Stmt, Type,
};

use crate::body::{Translator, plain_name};
use crate::call::is_number;
use crate::checked::{CheckedCopy, for_host};
use crate::expression::strip;
use crate::function::{Kind, root, root_at};
use crate::pool::front;
use crate::position::{before, last_of, until};
use crate::refusal::Refusals;
use crate::signature::Signature;

/// The most arguments that a closure takes, as many as array operations have.
const MAX_ARGS: usize = 8;

/// Expands `device!(function)` or `device!(|x| ..)`.
pub(crate) fn expand(tokens: TokenStream) -> TokenStream {
    let mut refusals = Refusals::default();
    let value = match syn::parse2::<Expr>(tokens.clone()) {
        Ok(expr) => match strip(&expr) {
            Expr::Closure(closure) => of_closure(closure, &mut refusals),
            Expr::Path(path) => of_function(path, &mut refusals),
            other => {
                refusals.refuse(other, USAGE);
                TokenStream::new()
            }
        },
        Err(error) => {
            let message = format!("{USAGE}: {error}");
            return syn::Error::new(error.span(), message).to_compile_error();
        }
    };
    match refusals.is_empty() {
        true => value,
        // As an expression they have any type, so that rustc adds no errors.
        false => {
            let errors = refusals.into_tokens();
            quote!({ #errors })
        }
    }
}

const USAGE: &str = "`device!` takes the name of a `#[device_fn]`, `device!(gelu)`, or a closure, \
                     `device!(|x| gelu(x) * scale)`";

/// `device!(gelu)`, `device!(gelu::<f32>)`.
fn of_function(function: &ExprPath, refusals: &mut Refusals) -> TokenStream {
    let mut path = function.path.clone();
    let names: Vec<String> = path.segments.iter().map(|s| plain_name(&s.ident)).collect();
    if let ([ty, method], None) = (names.as_slice(), &function.qself)
        && (function.path.segments.first()).is_some_and(|segment| is_number(&segment.ident))
    {
        let message =
            format!("`{ty}::{method}` is no `#[device_fn]`; write a closure, `|x| x.{method}()`");
        refusals.refuse(function, &message);
        return TokenStream::new();
    }
    if function.qself.is_some() {
        refusals.refuse(
            function,
            "kernels do not call functions of traits; write a `#[device_fn]`",
        );
        return TokenStream::new();
    }
    let mut types = Vec::new();
    if let Some(last) = path.segments.last_mut()
        && let PathArguments::AngleBracketed(arguments) = std::mem::take(&mut last.arguments)
    {
        let arguments = arguments.args.into_iter();
        types = arguments.collect();
    }
    let block = Block {
        brace_token: Default::default(),
        stmts: Vec::new(),
    };
    let Some(signature) = signature(function.span(), refusals) else {
        return TokenStream::new();
    };
    let mut translator = Translator::new(Kind::Device, &signature, &block, refusals);
    let types = types.iter().map(|argument| match argument {
        GenericArgument::Type(Type::Infer(token)) => {
            translator.refuse(token, "write the type here, or leave the list out")
        }
        GenericArgument::Type(ty) => translator.ty(ty),
        other => translator.refuse(
            other,
            "const arguments of device functions come from the lengths of their array arguments; \
             leave this out",
        ),
    });
    let types: Vec<Code> = types.collect();
    let description = translator.call_of_all(&path, &types);
    let (span, root, front) = (function.span(), root_at(function.span()), front());
    let made = quote_spanned! {before(span)=>
        #root::ElementFn::of(
            #function,
            #[allow(unused, reason = "written by a macro")]
            |#front, __kiln_in| #root::describe_closure(#front, __kiln_in, #description),
        )
    };
    until(last_of(&function), made)
}

/// `device!(|x| gelu(x) * scale)`.
fn of_closure(closure: &ExprClosure, refusals: &mut Refusals) -> TokenStream {
    if closure.inputs.is_empty() || closure.inputs.len() > MAX_ARGS {
        let message = format!("a closure of `device!` takes 1 to {MAX_ARGS} elements");
        refusals.refuse(&closure.or1_token, &message);
        return TokenStream::new();
    }
    let mut closure = closure.clone();
    crate::panic::open_closure(&mut closure);
    let captures = captures(&closure);
    if let Some(token) = captures.iter().find(|name| *name == "self") {
        refusals.refuse(
            token,
            "a closure for a device takes no `self` along; give the number a name first, `let scale = \
             self.scale;`",
        );
        return TokenStream::new();
    }
    let at = closure.or1_token.span();
    // What is captured is copied in any case.
    closure.capture = None;
    let block = Block {
        brace_token: Default::default(),
        stmts: vec![Stmt::Expr(Expr::Closure(closure), None)],
    };
    let Some(signature) = signature(at, refusals) else {
        return TokenStream::new();
    };
    let copy = CheckedCopy::new(&block, &signature);
    let mut translator = Translator::new(Kind::Device, &signature, copy.body(), refusals);
    let [Stmt::Expr(Expr::Closure(marked), None)] = copy.body().stmts.as_slice() else {
        return TokenStream::new();
    };
    let first = translator.fresh_list(marked.inputs.len());
    for name in &captures {
        translator.variable(name);
    }
    let body = translator.closure_body(marked, first);
    let description = translator.data(translator.with_header(&body));
    let (count, span) = (marked.inputs.len(), marked.span());
    let (types, host) = (copy.types(), for_host(copy.body()).stmts);
    let (root, here, front) = (root(), root_at(span), front());
    let function = format_ident!("closure{count}");
    let values = captures
        .iter()
        .map(|name| quote_spanned!(before(name.span())=> #here::Captured::captured(&#name)));
    quote! {{
        #types
        #root::#function(
            ::std::vec![#(#values),*],
            &#(#host)*,
            #[allow(unused, nonstandard_style, clippy::all, clippy::pedantic, reason = "written by a macro")]
            move |#front, __kiln_in| #root::describe_closure(#front, __kiln_in, #description),
        )
    }}
}

/// The signature of a function without parameters, which is where the closure is: type parameters around
/// `device!` are types of the host.
fn signature(span: Span, refusals: &mut Refusals) -> Option<Signature> {
    let name = Ident::new("closure", span);
    let item: ItemFn = syn::parse2(quote!(fn #name() {})).ok()?;
    Some(Signature::new(
        Kind::Device,
        TokenStream::new(),
        &item,
        refusals,
    ))
}

/// The variables of the host that a closure names, each once, where it stands first.
fn captures(closure: &ExprClosure) -> Vec<Ident> {
    let mut names = FreeNames {
        scopes: Vec::new(),
        found: Vec::new(),
    };
    names.visit_expr_closure(closure);
    names.found
}

/// Finds the names in a body that nothing in it binds.
struct FreeNames {
    scopes: Vec<HashSet<String>>,
    found: Vec<Ident>,
}

impl FreeNames {
    fn bind(&mut self, pattern: &Pat) {
        struct Names<'s>(&'s mut HashSet<String>);
        impl<'ast> Visit<'ast> for Names<'_> {
            fn visit_pat_ident(&mut self, ident: &'ast syn::PatIdent) {
                self.0.insert(ident.ident.to_string());
                syn::visit::visit_pat_ident(self, ident);
            }
            fn visit_expr(&mut self, _: &'ast Expr) {}
            fn visit_type(&mut self, _: &'ast Type) {}
        }
        if let Some(scope) = self.scopes.last_mut() {
            Names(scope).visit_pat(pattern);
        }
    }

    fn scoped(&mut self, visit: impl FnOnce(&mut Self)) {
        self.scopes.push(HashSet::new());
        visit(self);
        self.scopes.pop();
    }
}

impl<'ast> Visit<'ast> for FreeNames {
    fn visit_expr_path(&mut self, path: &'ast ExprPath) {
        let Some(name) = path.path.get_ident() else {
            return;
        };
        let text = name.to_string();
        let is_constant = text.trim_start_matches('_').starts_with(char::is_uppercase);
        let is_bound = self.scopes.iter().any(|scope| scope.contains(&text));
        if !is_constant && !is_bound && !self.found.contains(name) {
            self.found.push(name.clone());
        }
    }

    fn visit_expr_call(&mut self, call: &'ast syn::ExprCall) {
        // The name of a function is none of a variable.
        if !matches!(strip(&call.func), Expr::Path(_)) {
            self.visit_expr(&call.func);
        }
        call.args.iter().for_each(|arg| self.visit_expr(arg));
    }

    fn visit_block(&mut self, block: &'ast Block) {
        self.scoped(|this| {
            for statement in &block.stmts {
                if let (Stmt::Item(syn::Item::Const(item)), Some(scope)) =
                    (statement, this.scopes.last_mut())
                {
                    scope.insert(item.ident.to_string());
                }
            }
            block
                .stmts
                .iter()
                .for_each(|statement| this.visit_stmt(statement));
        });
    }

    fn visit_local(&mut self, local: &'ast syn::Local) {
        if let Some(init) = &local.init {
            self.visit_expr(&init.expr);
        }
        self.bind(&local.pat);
    }

    fn visit_expr_closure(&mut self, closure: &'ast ExprClosure) {
        self.scoped(|this| {
            closure.inputs.iter().for_each(|input| this.bind(input));
            this.visit_expr(&closure.body);
        });
    }

    fn visit_expr_for_loop(&mut self, each: &'ast syn::ExprForLoop) {
        self.visit_expr(&each.expr);
        self.scoped(|this| {
            this.bind(&each.pat);
            this.visit_block(&each.body);
        });
    }

    fn visit_arm(&mut self, arm: &'ast syn::Arm) {
        self.scoped(|this| {
            this.bind(&arm.pat);
            if let Some((_, guard)) = &arm.guard {
                this.visit_expr(guard);
            }
            this.visit_expr(&arm.body);
        });
    }

    fn visit_expr_repeat(&mut self, repeat: &'ast syn::ExprRepeat) {
        // The length is a constant.
        self.visit_expr(&repeat.expr);
    }

    // What is in these is no expression of the kernel.
    fn visit_pat(&mut self, _: &'ast Pat) {}
    fn visit_type(&mut self, _: &'ast Type) {}
    fn visit_item(&mut self, _: &'ast syn::Item) {}
    fn visit_attribute(&mut self, _: &'ast syn::Attribute) {}
    fn visit_macro(&mut self, _: &'ast syn::Macro) {}
    fn visit_angle_bracketed_generic_arguments(
        &mut self,
        _: &'ast syn::AngleBracketedGenericArguments,
    ) {
    }
}
