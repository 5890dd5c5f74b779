//! Closures, and the device functions that take them.
//!
//! A closure becomes a closure of the host that describes a call of it. A function that takes one is
//! described in place of each call (`kiln_jit_core::front::inline` says why): its body is the same
//! calls, in a function that gets the arguments as operands.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{
    Block, Expr, ExprCall, ExprClosure, GenericParam, Generics, Pat, PathArguments, ReturnType,
    Stmt, Type, TypeParamBound, WherePredicate,
};

use crate::body::{Destination, Translator, is_structured, plain_name};
use crate::expression::strip;
use crate::function::{root, root_at};
use crate::scan;
use crate::signature::Signature;

/// The type parameters that are bounded by `Fn`, `FnMut` or `FnOnce`, each with the type of a function
/// pointer that meets the bound.
pub(crate) fn closure_params(generics: &Generics) -> Vec<(Ident, TokenStream)> {
    let predicates = generics.where_clause.iter().flat_map(|c| &c.predicates);
    let mut found = Vec::new();
    for param in generics.type_params() {
        let name = &param.ident;
        let in_clause = predicates.clone().filter_map(|predicate| match predicate {
            WherePredicate::Type(of) if named(&of.bounded_ty) == Some(name) => Some(&of.bounds),
            _ => None,
        });
        let mut bounds = param.bounds.iter().chain(in_clause.flatten());
        if let Some(pointer) = bounds.find_map(function_pointer) {
            found.push((name.clone(), pointer));
        }
    }
    found
}

/// `fn(A, B) -> R` for `Fn(A, B) -> R` and its kind.
fn function_pointer(bound: &TypeParamBound) -> Option<TokenStream> {
    let TypeParamBound::Trait(bound) = bound else {
        return None;
    };
    let last = bound.path.segments.last()?;
    let PathArguments::Parenthesized(arguments) = &last.arguments else {
        return None;
    };
    let is_closure = ["Fn", "FnMut", "FnOnce"].iter().any(|n| last.ident == n);
    let (inputs, output) = (&arguments.inputs, &arguments.output);
    is_closure.then(|| quote!(fn(#inputs) #output))
}

/// Whether a bound is that of closures.
pub(crate) fn is_closure_bound(bound: &TypeParamBound) -> bool {
    function_pointer(bound).is_some()
}

/// The name that a type is, perhaps behind a reference.
pub(crate) fn named(ty: &Type) -> Option<&Ident> {
    match ty {
        Type::Path(path) if path.qself.is_none() => path.path.get_ident(),
        Type::Reference(reference) => named(&reference.elem),
        Type::Paren(paren) => named(&paren.elem),
        Type::Group(group) => named(&group.elem),
        _ => None,
    }
}

/// The generics without closures, and with the lifetime of the builder.
fn without_closures(signature: &Signature) -> Generics {
    let is_closure = |name: &Ident| signature.closures.iter().any(|(n, _)| n == name);
    let mut generics = signature.generics.clone();
    let params = generics.params.into_iter();
    generics.params = params
        .filter(|param| !matches!(param, GenericParam::Type(ty) if is_closure(&ty.ident)))
        .collect();
    if let Some(clause) = &mut generics.where_clause {
        let predicates = std::mem::take(&mut clause.predicates).into_iter();
        clause.predicates = predicates
            .filter(|predicate| match predicate {
                WherePredicate::Type(of) => !named(&of.bounded_ty).is_some_and(is_closure),
                _ => true,
            })
            .collect();
    }
    generics
}

/// The functions of the host that describe a function in place of its call.
pub(crate) fn describing_function(
    signature: &Signature,
    types: &TokenStream,
    copy: &TokenStream,
    description: &TokenStream,
) -> TokenStream {
    let root = root();
    let (open, outer) = (&signature.generics, without_closures(signature));
    let (params, clause) = (&open.params, &open.where_clause);
    let (outer_params, outer_clause) = (&outer.params, &outer.where_clause);
    let args = open.params.iter().filter_map(|param| match param {
        GenericParam::Type(param) => {
            let closure = signature.closures.iter().find(|(n, _)| *n == param.ident);
            let name = &param.ident;
            Some(closure.map_or_else(|| quote!(#name), |(_, pointer)| pointer.clone()))
        }
        _ => None,
    });
    let instance = signature.instance();
    quote! {
        fn __kiln_describe<'__kiln, #params>(
            __kiln: #root::Front<'__kiln>,
            __kiln_call: &#root::InlineCall<'_, '__kiln>,
        ) -> #root::Operand<'__kiln> #clause {
            #types
            #copy
            #[allow(unused, nonstandard_style, clippy::all, clippy::pedantic, reason = "written by a macro")]
            {
                #description
            }
        }
        fn __kiln_instance<'__kiln, #outer_params>(
            __kiln: #root::Front<'__kiln>,
            __kiln_call: &#root::InlineCall<'_, '__kiln>,
        ) -> #root::Operand<'__kiln> #outer_clause {
            __kiln_describe::<#(#args),*>(__kiln, __kiln_call)
        }
        __kiln_instance #instance
    }
}

/// The type of the function's name, which is what calls in kernels go through.
pub(crate) fn companion(
    vis: &syn::Visibility,
    name: &Ident,
    describe: &TokenStream,
) -> TokenStream {
    let root = root();
    // Hygiene keeps these apart from names of the user.
    let own = |name: &str| Ident::new(name, Span::mixed_site());
    let (front, call, instance) = (
        own("__kiln_front"),
        own("__kiln_call"),
        own("__kiln_instance"),
    );
    quote! {
        #[doc(hidden)]
        #[allow(non_camel_case_types, reason = "it has the name of the function")]
        #vis enum #name {}

        impl #root::Inlinable for #name {
            #[track_caller]
            fn call_inline<'k>(
                #front: #root::Front<'k>,
                #call: &#root::InlineCall<'_, 'k>,
            ) -> #root::Operand<'k> {
                let #instance = { #describe };
                #instance(#front, #call)
            }
        }

        // For calls whose closures are no closures: rustc says so of the argument, and of nothing else.
        impl #root::Callable for #name {
            fn call<'k>(
                #front: #root::Front<'k>,
                _: &[#root::Type],
                _: &[#root::Operand<'k>],
            ) -> #root::Operand<'k> {
                #front.refuse("this function takes a closure, `|x| ..`")
            }
        }
    }
}

impl Translator<'_> {
    pub(crate) fn is_closure(&self, name: &Ident) -> bool {
        self.closures.contains(&name.to_string())
    }

    /// The description of a function that takes closures.
    pub(crate) fn inlined_function(&mut self, signature: &Signature, body: &Block) -> TokenStream {
        let name = plain_name(&signature.name);
        let (mut declared, mut bind) = (Vec::new(), TokenStream::new());
        let mut closures = 0usize;
        for param in &signature.params {
            let pattern = &param.pattern;
            if let (true, Pat::Ident(ident)) = (param.is_closure, pattern) {
                let name = &ident.ident;
                self.closures.insert(name.to_string());
                bind.extend(quote!(let #name = __kiln_call.closures[#closures];));
                closures += 1;
                continue;
            }
            let at = declared.len();
            declared.push(self.ty(&param.ty));
            bind.extend(self.bind_pattern(pattern, &quote!(__kiln_args[#at])));
        }
        let mut type_params = Vec::new();
        for (at, param) in signature.generics.type_params().enumerate() {
            if signature.types.iter().any(|(name, _)| *name == param.ident) {
                let text = plain_name(&param.ident);
                type_params.push(quote!((#text, #at)));
            }
        }
        let body = self.inlined_body(body);
        quote! {
            let __kiln_declared = __kiln.declared(|| ::std::vec![#(#declared),*]);
            __kiln.inlined(#name, __kiln_call, &[#(#type_params),*], &__kiln_declared, |__kiln_args| {
                #bind
                #body
            })
        }
    }

    /// The body as a block of the host whose value is what the function returns.
    fn inlined_body(&mut self, body: &Block) -> TokenStream {
        if let (false, Some((Stmt::Expr(last, None), before))) =
            (scan::returns_early(body), body.stmts.split_last())
            && !is_structured(last)
        {
            let before = self.statements(before, &Destination::Discard);
            let value = self.expr(last);
            return quote_spanned!(last.span()=> #before __kiln.taken(#value));
        }
        let slot = self.fresh(body.span());
        let to = Destination::Slot(slot.clone());
        let body = match scan::returns_early(body) {
            true => self.run_once(&to, |this| this.block(body, &to)),
            false => self.block(body, &to),
        };
        quote!(let #slot = __kiln.slot(); #body __kiln.taken(#slot))
    }

    /// `let f = |x| ..;`
    pub(crate) fn local_closure(&mut self, pattern: &Pat, closure: &ExprClosure) -> TokenStream {
        let Pat::Ident(ident) = pattern else {
            return self.refuse(pattern, "a closure has a name: `let f = |x| ..;`");
        };
        let value = self.closure(closure);
        let name = &ident.ident;
        self.closures.insert(name.to_string());
        quote_spanned!(name.span()=> let #name = &#value;)
    }

    /// A closure of the host that describes a call of this one.
    pub(crate) fn closure(&mut self, closure: &ExprClosure) -> TokenStream {
        // What does not change is the same whether it is moved or seen where the closure is called.
        if closure.capture.is_some()
            && let Some(variable) = self.mutable.captured_by(closure)
        {
            return self.refuse(
                &variable,
                "closures of kernels are described where they are called and see this variable as it is \
                 then; leave `move` out, or copy it with `let` to one that is not `mut`",
            );
        }
        if let Some(token) = &closure.asyncness {
            return self.refuse(
                token,
                "a kernel is not `async`; threads wait for each other at `barrier()`",
            );
        }
        let known = self.closures.clone();
        let mut bind = TokenStream::new();
        for (at, pattern) in closure.inputs.iter().enumerate() {
            let value = match pattern {
                Pat::Type(typed) if matches!(*typed.ty, Type::Reference(_)) => {
                    let ty = self.ty(&typed.ty);
                    quote!(__kiln.coerce(__kiln_in[#at], #ty))
                }
                _ => quote!(__kiln_in[#at]),
            };
            bind.extend(self.bind_pattern(pattern, &value));
        }
        if let ReturnType::Type(_, ty) = &closure.output {
            crate::types::check_type(ty, self.refusals);
        }
        let frames = std::mem::take(&mut self.frames);
        let outside = std::mem::replace(&mut self.in_closure, true);
        let body = match scan::returns_inside(&closure.body) {
            true => {
                let slot = self.fresh(closure.body.span());
                let to = Destination::Slot(slot.clone());
                let body = self.run_once(&to, |this| this.into(&closure.body, &to));
                quote!({ let #slot = __kiln.slot(); #body #slot })
            }
            false => self.expr(&closure.body),
        };
        self.in_closure = outside;
        self.frames = frames;
        self.closures = known;
        quote_spanned!(closure.span()=> __kiln.closure(|__kiln_in| { #bind __kiln.taken(#body) }))
    }

    /// `f(x)` of a closure.
    pub(crate) fn call_of_closure(&mut self, call: &ExprCall, name: &Ident) -> TokenStream {
        if let Some(argument) = call.args.iter().find(|arg| self.closure_argument(arg)) {
            return self.refuse(
                argument,
                "a closure takes values; write a `#[device_fn]` that takes the closure",
            );
        }
        let args = self.eager_list(call.args.iter());
        let args = call.args.iter().zip(args);
        let args = args.map(|(arg, value)| quote_spanned!(arg.span()=> #value.eager()));
        quote_spanned!(call.span()=> #name(&[#(#args),*]))
    }

    /// Whether an argument is a closure: one that is written there, or the name of one.
    pub(crate) fn closure_argument(&self, argument: &Expr) -> bool {
        match strip(argument) {
            Expr::Closure(_) => true,
            Expr::Path(path) => path.path.get_ident().is_some_and(|n| self.is_closure(n)),
            Expr::Reference(reference) => self.closure_argument(&reference.expr),
            _ => false,
        }
    }

    /// A call of a function that takes closures.
    pub(crate) fn call_with_closures(
        &mut self,
        call: &ExprCall,
        path: &syn::Path,
        types: &[TokenStream],
    ) -> TokenStream {
        let span = call.span();
        let root = root_at(span);
        let (closures, values): (Vec<&Expr>, Vec<&Expr>) =
            call.args.iter().partition(|arg| self.closure_argument(arg));
        let args = self.eager_list(values.into_iter());
        let closures = closures.into_iter().map(|argument| {
            let closure = self.closure_value(argument);
            quote_spanned!(argument.span()=> #closure as #root::Closure<'_, '_>)
        });
        let closures: Vec<TokenStream> = closures.collect();
        let callee = crate::call::callee(path);
        let name = Ident::new("__kiln_callee", path.span());
        quote_spanned! {span=> {
            #callee
            <#name as #root::Inlinable>::call_inline(__kiln, &#root::InlineCall {
                types: &[#(#types),*],
                args: &[#(#args),*],
                closures: &[#(#closures),*],
            })
        }}
    }

    fn closure_value(&mut self, argument: &Expr) -> TokenStream {
        match strip(argument) {
            Expr::Reference(reference) => self.closure_value(&reference.expr),
            Expr::Closure(closure) => {
                let closure = self.closure(closure);
                quote_spanned!(argument.span()=> &#closure)
            }
            name => name.to_token_stream(),
        }
    }
}
