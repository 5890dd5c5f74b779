//! Closures, and the device functions that take them.
//!
//! A closure becomes a closure of the host that describes a call of it. A function that takes one is
//! described in place of each call (`kiln_jit_core::front::inline` says why): its body is the same
//! calls, in a function that gets the arguments as operands.

use kiln_description::{Code, Len, Op};
use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{
    Block, Expr, ExprCall, ExprClosure, GenericParam, Generics, Pat, PathArguments, ReturnType,
    Stmt, Type, TypeParamBound, WherePredicate,
};

use crate::body::{Destination, Translator, is_structured, local, plain_name};
use crate::expression::strip;
use crate::function::{root, root_at};
use crate::names::Meaning;
use crate::pool::front;
use crate::position::{Start, again, before};
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
        GenericParam::Const(param) => Some(param.ident.to_token_stream()),
        GenericParam::Lifetime(_) => None,
    });
    let instance = signature.instance();
    let front = front();
    quote! {
        fn __kiln_describe<'__kiln, #params>(
            #front: #root::Front<'__kiln>,
            __kiln_call: &#root::InlineCall<'_, '__kiln>,
        ) -> #root::Operand<'__kiln> #clause {
            #types
            #copy
            #[allow(unused, nonstandard_style, clippy::all, clippy::pedantic, reason = "written by a macro")]
            {
                #root::describe_inline(#front, __kiln_call, #description)
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
    let (root, name) = (root(), again(name));
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
        self.closure_named(name).is_some()
    }

    fn closure_named(&self, name: &Ident) -> Option<u32> {
        match self.names.meaning(name) {
            Some(Meaning::Closure(number)) => Some(number),
            _ => None,
        }
    }

    /// The description of a function that takes closures.
    pub(crate) fn inlined_function(&mut self, signature: &Signature, body: &Block) -> Code {
        let values = signature.params.iter().filter(|param| !param.is_closure);
        let types: Vec<Code> = values.map(|param| self.ty(&param.ty)).collect();
        let first = self.fresh_list(types.len());
        let (mut parts, mut at) = (Vec::new(), first);
        for param in &signature.params {
            if !param.is_closure {
                parts.push(self.bind_pattern(&param.pattern, &local(at)));
                at += 1;
                continue;
            }
            let closure = Meaning::Closure(self.fresh_closure());
            if let Pat::Ident(ident) = &param.pattern {
                self.names.bind(&ident.ident, closure);
            }
        }
        let params = signature.generics.type_params().enumerate();
        let params = params.filter(|(_, param)| !signature.is_closure(&param.ident));
        let params = params.map(|(at, param)| {
            let name = Code::default().text(&plain_name(&param.ident));
            name.number(at as u32)
        });
        let params: Vec<Code> = params.collect();
        parts.push(self.inlined_body(body));
        let code = Code::new(Op::InlineBody, None).text(&plain_name(&signature.name));
        let code = code.list(&params).list(&types).number(first);
        let code = code.region(&Code::block(parts));
        let mut all = self.inline_consts(signature);
        all.push(code);
        match all.len() {
            1 => all.remove(0),
            _ => Code::block(all),
        }
    }

    /// The const parameters of a function that takes closures.
    fn inline_consts(&mut self, signature: &Signature) -> Vec<Code> {
        let root = root();
        let consts = signature.consts.iter().map(|(name, ty)| {
            let entry = self.pool.entry(&quote!(#root::Pooled::const_type::<#ty>()));
            let code = Code::new(Op::InlineConst, None);
            code.text(&plain_name(name)).number(entry)
        });
        consts.collect()
    }

    /// The body, whose value is what the function returns.
    fn inlined_body(&mut self, body: &Block) -> Code {
        if let (false, Some((Stmt::Expr(last, None), before))) =
            (scan::returns_early(body), body.stmts.split_last())
            && !is_structured(last)
        {
            self.enter_items(&body.stmts);
            let mut parts = self.statements(before, &Destination::Discard);
            let value = self.expr(last);
            parts.push(self.op(Op::Eager, last.start()).code(&value));
            return Code::block(parts);
        }
        self.with_slot(|this, to| match scan::returns_early(body) {
            true => this.run_once(to, |this| this.block(body, to)),
            false => this.block(body, to),
        })
    }

    /// Numbers of variables one after the other: the first.
    pub(crate) fn fresh_list(&mut self, count: usize) -> u32 {
        let numbers: Vec<u32> = (0..count).map(|_| self.fresh()).collect();
        numbers.first().copied().unwrap_or(0)
    }

    /// `let f = |x| ..;`
    pub(crate) fn local_closure(&mut self, pattern: &Pat, closure: &ExprClosure) -> Code {
        let Pat::Ident(ident) = pattern else {
            return self.refuse(pattern, "a closure has a name: `let f = |x| ..;`");
        };
        let number = self.fresh_closure();
        let value = self.closure(closure, number);
        self.names.bind(&ident.ident, Meaning::Closure(number));
        value
    }

    /// The definition of a closure.
    fn closure(&mut self, closure: &ExprClosure, number: u32) -> Code {
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
        let first = self.fresh_list(closure.inputs.len());
        let body = self.scoped(|this| this.closure_body(closure, first));
        let code = self.op(Op::LetClosure, closure.span()).number(number);
        let code = code.number(first).number(closure.inputs.len() as u32);
        code.region(&body)
    }

    /// What a call of a closure does: its arguments are variables from `first` on.
    pub(crate) fn closure_body(&mut self, closure: &ExprClosure, first: u32) -> Code {
        let mut parts = Vec::new();
        for (at, pattern) in (first..).zip(&closure.inputs) {
            let mut value = local(at);
            if let Pat::Type(typed) = pattern {
                value = self.coerced(value, &typed.ty, typed.ty.span());
            }
            parts.push(self.bind_pattern(pattern, &value));
        }
        if let ReturnType::Type(_, ty) = &closure.output {
            crate::types::check_type(ty, self.refusals);
        }
        let frames = std::mem::take(&mut self.frames);
        let outside = std::mem::replace(&mut self.in_closure, true);
        let body = &closure.body;
        parts.push(match scan::returns_inside(body) {
            true => self.with_slot(|this, to| this.run_once(to, |this| this.into(body, to))),
            false => self.expr(body),
        });
        self.in_closure = outside;
        self.frames = frames;
        Code::block(parts)
    }

    /// `f(x)` of a closure.
    pub(crate) fn call_of_closure(&mut self, call: &ExprCall, name: &Ident) -> Code {
        if let Some(argument) = call.args.iter().find(|arg| self.closure_argument(arg)) {
            return self.refuse(
                argument,
                "a closure takes values; write a `#[device_fn]` that takes the closure",
            );
        }
        let args = self.eager_list(call.args.iter());
        let args = call.args.iter().zip(args);
        let args = args.map(|(arg, value)| self.op(Op::Eager, arg.start()).code(&value));
        let args: Vec<Code> = args.collect();
        let number = self.closure_named(name).unwrap_or_default();
        let code = self.op(Op::CallClosure, call.start()).number(number);
        code.list(&args)
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
        types: &[Code],
        consts: &[Len],
    ) -> Code {
        let span = call.start();
        let root = root_at(span);
        let (closures, values): (Vec<&Expr>, Vec<&Expr>) =
            call.args.iter().partition(|arg| self.closure_argument(arg));
        let args = self.eager_list(values.into_iter());
        let closures = closures.into_iter().map(|arg| self.closure_value(arg));
        let closures: Vec<Code> = closures.collect();
        let (import, callee) = (crate::call::import(path), crate::call::callee(path));
        let entry = quote_spanned! {before(span)=>
            { #import <#callee as #root::Inlinable>::pooled() }
        };
        let entry = self.pool.entry(&entry);
        let code = match consts {
            [] => self.op(Op::CallInline, span).number(entry).list(types),
            _ => {
                let code = self.op(Op::CallInlineWithConsts, span).number(entry);
                code.list(types).consts(consts)
            }
        };
        code.list(&args).list(&closures)
    }

    pub(crate) fn closure_value(&mut self, argument: &Expr) -> Code {
        match strip(argument) {
            Expr::Reference(reference) => self.closure_value(&reference.expr),
            Expr::Closure(closure) => {
                let number = self.fresh_closure();
                self.closure(closure, number)
            }
            Expr::Path(path) => {
                let number = path
                    .path
                    .get_ident()
                    .and_then(|name| self.closure_named(name));
                Code::new(Op::Closure, None).number(number.unwrap_or_default())
            }
            _ => Code::new(Op::Unit, None),
        }
    }
}
