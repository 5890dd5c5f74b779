//! The items that a function becomes.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::visit_mut::VisitMut;
use syn::{FnArg, Generics, ItemFn, ReturnType, Type, parse_quote};

use crate::arguments::Bounds;
use crate::attributes::{kept, of_body, of_item};
use crate::body::{Translator, plain_name};
use crate::checked::{CheckedCopy, for_host, unfit_lints};
use crate::launch::kernel_type;
use crate::pool::front;
use crate::position::{again, before};
use crate::refusal::Refusals;
use crate::signature::Signature;
use crate::types::has_references;

/// What a function is made into.
#[derive(Copy, Clone, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A kernel.
    Kernel,
    /// A function that kernels call.
    Device,
}

impl Kind {
    /// The attribute as users write it.
    pub(crate) fn attribute(self) -> &'static str {
        match self {
            Kind::Kernel => "#[kernel]",
            Kind::Device => "#[device_fn]",
        }
    }

    /// What the attribute stands before.
    fn goes_on(self) -> &'static str {
        match self {
            Kind::Kernel => "a function",
            Kind::Device => "a function, an `impl` block or a trait",
        }
    }
}

/// Where the generated code finds Kiln.
pub(crate) fn root() -> TokenStream {
    root_at(Span::call_site())
}

/// [`root`] before a token of the user's: a call is where its first token is.
pub(crate) fn root_at(span: Span) -> TokenStream {
    quote_spanned!(before(span)=> ::kiln::macros)
}

/// Expands `kernel_expr!(name(parameters) { .. })`: a block of the host with the kernel in it, whose value is
/// the kernel.
pub(crate) fn expand_expression(tokens: TokenStream) -> TokenStream {
    let span = tokens.clone().into_iter().next().map(|t| t.span());
    let item = quote_spanned!(span.unwrap_or_else(Span::call_site)=> fn #tokens);
    let name = match syn::parse2::<ItemFn>(item.clone()) {
        Ok(function) => function.sig.ident,
        Err(error) => {
            let message = format!(
                "write the kernel without `fn`, `kernel_expr!(scale(x: &mut [f32], by: f32) {{ .. }})`: {error}"
            );
            let error = syn::Error::new(error.span(), message).to_compile_error();
            return quote!({ #error });
        }
    };
    let items = expand(Kind::Kernel, TokenStream::new(), item);
    quote!({
        #items
        let __kiln_kernel: &'static #name = &#name;
        __kiln_kernel
    })
}

/// Names the types of parameters that are written `impl Shape`, as `fn f<Impl1: Shape>(x: Impl1)` has it.
pub(crate) fn name_impls(sig: &mut syn::Signature) {
    struct Named<'a>(&'a mut Generics);
    impl VisitMut for Named<'_> {
        fn visit_type_mut(&mut self, ty: &mut Type) {
            let Type::ImplTrait(of) = &*ty else {
                syn::visit_mut::visit_type_mut(self, ty);
                return;
            };
            let is_taken = |name: &Ident| self.0.type_params().any(|param| param.ident == *name);
            let names = (1..).map(|i| format_ident!("Impl{i}", span = of.impl_token.span));
            let Some(name) = names.into_iter().find(|name| !is_taken(name)) else {
                return;
            };
            let bounds = &of.bounds;
            self.0.params.push(parse_quote!(#name: #bounds));
            *ty = parse_quote!(#name);
        }
    }
    let mut named = Named(&mut sig.generics);
    for input in &mut sig.inputs {
        if let FnArg::Typed(param) = input {
            named.visit_type_mut(&mut param.ty);
        }
    }
}

/// Expands an attribute on an item.
pub(crate) fn expand(kind: Kind, attribute: TokenStream, item: TokenStream) -> TokenStream {
    let item = match syn::parse2::<ItemFn>(item.clone()) {
        Ok(mut item) => {
            name_impls(&mut item.sig);
            crate::lifetimes::name_elided(&mut item.sig);
            item
        }
        Err(error) => {
            if let (Kind::Device, Ok(block)) = (kind, syn::parse2(item.clone())) {
                return crate::method::expand(&attribute, block);
            }
            if let (Kind::Device, Ok(of)) = (kind, syn::parse2(item.clone())) {
                return crate::traits::expand(&attribute, of);
            }
            let message = format!("{} goes on {}: {error}", kind.attribute(), kind.goes_on());
            let error = syn::Error::new(error.span(), message).to_compile_error();
            return quote!(#item #error);
        }
    };
    let mut refusals = Refusals::default();
    let signature = Signature::new(kind, attribute, &item, &mut refusals);
    let is_declared = refusals.is_empty();
    let body = refusals
        .is_empty()
        .then(|| Parts::new(kind, &signature, &item, &mut refusals));
    match body {
        Some(parts) if refusals.is_empty() => parts.items(&signature, &item),
        _ => {
            let errors = refusals.into_tokens();
            let stand_in = stand_in(kind, &signature, &item, is_declared);
            quote!(#stand_in #errors)
        }
    }
}

/// What the body of a function becomes.
pub(crate) struct Parts {
    kind: Kind,
    /// The body as rustc is to check it, and the declarations of its types.
    copy: CheckedCopy,
    /// The bytes of the description and its pool.
    description: TokenStream,
}

impl Parts {
    pub(crate) fn new(
        kind: Kind,
        signature: &Signature,
        item: &ItemFn,
        refusals: &mut Refusals,
    ) -> Parts {
        if signature.result.as_ref().is_some_and(has_references) {
            let names = crate::checked::variables(&item.block, signature);
            crate::promoted::check(&item.block, &|name| names.contains(name), refusals);
        }
        let copy = CheckedCopy::new(&item.block, signature);
        let mut translator = Translator::new(kind, signature, copy.body(), refusals);
        let description = translator.function(signature, copy.body());
        Parts {
            kind,
            copy,
            description,
        }
    }

    /// The function of the host that describes this one.
    pub(crate) fn describing_function(&self, signature: &Signature) -> TokenStream {
        let generics = signature.described_generics();
        let clause = &generics.where_clause;
        let (types, copy) = (
            self.copy.types(),
            self.copy.closure(signature, self.kind == Kind::Device),
        );
        let (root, front, description) = (root(), front(), &self.description);
        quote! {
            fn __kiln_describe #generics (#front: #root::Front<'_>) #clause {
                #types
                #copy
                #[allow(unused, nonstandard_style, clippy::all, clippy::pedantic, reason = "written by a macro")]
                {
                    #root::describe(#front, #description)
                }
            }
        }
    }

    fn items(&self, signature: &Signature, item: &ItemFn) -> TokenStream {
        let describe = self.describing_function(signature);
        let instance = signature.instance();
        let (vis, name) = (&item.vis, &item.sig.ident);
        let (ty, text) = (again(name), plain_name(name));
        let (root, here) = (root(), root_at(name.span()));
        let (attributes, on_body) = (of_item(&item.attrs), of_body(&item.attrs));
        match self.kind {
            Kind::Kernel if signature.is_of_several() => self.kernels(signature, item, &describe),
            Kind::Kernel => {
                let new = lazy_kernel(signature, name, &text);
                let items = kernel_type(vis, &attributes, signature);
                quote! {
                    #(#attributes)*
                    #[allow(non_upper_case_globals, reason = "it has the name of the function")]
                    #vis static #name: #ty = #ty { kernel: <#ty as #root::Described>::KERNEL };
                    // Not in the value of the static, which editors show with its name.
                    #(#on_body)*
                    const _: () = {
                        #describe
                        impl #root::Described for #ty {
                            const KERNEL: #root::LazyKernel = #new;
                        }
                    };
                    #items
                }
            }
            Kind::Device if signature.is_inlined() => {
                let host = host_function(signature, item);
                let describe = crate::closure::describing_function(
                    signature,
                    &self.copy.types(),
                    &self.copy.closure(signature, true),
                    &self.description,
                );
                let companion = crate::closure::companion(vis, name, &describe);
                quote!(#[allow(dead_code, reason = "the builder names its type")] #host #companion)
            }
            Kind::Device if signature.is_of_several() => {
                let host = host_function(signature, item);
                let companion = crate::dispatch::companion(vis, name, signature, &describe);
                quote!(#host #companion)
            }
            Kind::Device => {
                let host = host_function(signature, item);
                let new = quote_spanned!(before(name.span())=> #here::LazyDeviceFn::new(#text, __kiln_describe #instance));
                let companion = companion(vis, name, |front, types, args| {
                    quote! {
                        <Self as #root::DescribedFn>::function().call(#front, #types, #args)
                    }
                });
                // What a program names by its type alone it uses, too.
                let used = quote!(let _ = #ty #instance;);
                let described = described_fn(name, &quote!(#describe #used), &new);
                quote!(#host #companion #described)
            }
        }
    }

    /// The items of a kernel that is one for each type of some parameters.
    fn kernels(&self, signature: &Signature, item: &ItemFn, describe: &TokenStream) -> TokenStream {
        let (vis, name) = (&item.vis, &item.sig.ident);
        let (ty, text) = (again(name), plain_name(name));
        let (attributes, on_body) = (of_item(&item.attrs), of_body(&item.attrs));
        let new = lazy_kernels(signature, name, &text);
        let described = quote!(#(#on_body)* #describe);
        let items = crate::launch::kernels_type(vis, &attributes, signature, &described);
        quote! {
            #(#attributes)*
            #[allow(non_upper_case_globals, reason = "it has the name of the function")]
            #vis static #name: #ty = #ty { kernels: #new };
            #items
        }
    }
}

/// The value of a kernel: what describes it, under its name. One without checks is made in the user's own `unsafe`,
/// for lints that look for it.
fn lazy_kernel(signature: &Signature, name: &Ident, text: &str) -> TokenStream {
    let (here, instance) = (root_at(name.span()), signature.instance());
    let at = before(name.span());
    match signature.indices {
        Some(Bounds::Unchecked(span)) => {
            let new = quote_spanned!(at=> #here::LazyKernel::new_unchecked(#text, __kiln_describe #instance));
            quote_spanned!(span=> unsafe { #new })
        }
        Some(Bounds::Checked | Bounds::Clamped) | None => {
            quote_spanned!(at=> #here::LazyKernel::new(#text, __kiln_describe #instance))
        }
    }
}

/// [`lazy_kernel`] of a kernel that is one for each type.
fn lazy_kernels(signature: &Signature, name: &Ident, text: &str) -> TokenStream {
    let (here, at) = (root_at(name.span()), before(name.span()));
    match signature.indices {
        Some(Bounds::Unchecked(span)) => {
            let new = quote_spanned!(at=> #here::LazyKernels::new_unchecked(#text));
            quote_spanned!(span=> unsafe { #new })
        }
        Some(Bounds::Checked | Bounds::Clamped) | None => {
            quote_spanned!(at=> #here::LazyKernels::new(#text))
        }
    }
}

/// The function as the host calls it.
fn host_function(signature: &Signature, item: &ItemFn) -> TokenStream {
    let mut item = item.clone();
    item.sig.generics = signature.generics.clone();
    let block = for_host(&item.block);
    let (attributes, vis, sig) = (&item.attrs, &item.vis, &item.sig);
    let lints = unfit_lints();
    quote!(#lints #(#attributes)* #vis #sig #block)
}

/// The type of a device function's name, which is what calls in kernels go through.
fn companion(
    vis: &syn::Visibility,
    name: &Ident,
    call: impl FnOnce(&Ident, &Ident, &Ident) -> TokenStream,
) -> TokenStream {
    let (root, name) = (root(), again(name));
    // Hygiene keeps these apart from names of the user.
    let parameter = |name: &str| Ident::new(name, Span::mixed_site());
    let (front, types) = (parameter("__kiln_front"), parameter("__kiln_types"));
    let args = parameter("__kiln_args");
    let call = call(&front, &types, &args);
    quote! {
        #[doc(hidden)]
        #[allow(non_camel_case_types, reason = "it has the name of the function")]
        #vis enum #name {}

        impl #root::Callable for #name {
            fn call<'k>(
                #front: #root::Front<'k>,
                #types: &[#root::Type],
                #args: &[#root::Operand<'k>],
            ) -> #root::Operand<'k> {
                #call
            }
        }
    }
}

/// How programs name a device function: what is described for it, with what that needs.
fn described_fn(name: &Ident, needs: &TokenStream, new: &TokenStream) -> TokenStream {
    // An editor that is asked about the function is not to find its type.
    let (root, name) = (root(), again(name));
    quote! {
        impl #root::DescribedFn for #name {
            fn function() -> &'static #root::LazyDeviceFn {
                #needs
                static FUNCTION: #root::LazyDeviceFn = #new;
                &FUNCTION
            }
        }
    }
}

/// What stands for a function that is refused, so that its uses are no errors of their own. If its
/// signature is not what is refused it is `is_declared`.
fn stand_in(kind: Kind, signature: &Signature, item: &ItemFn, is_declared: bool) -> TokenStream {
    let (vis, name) = (&item.vis, &item.sig.ident);
    let root = root();
    let text = name.to_string();
    match kind {
        Kind::Kernel => {
            let ty = again(name);
            let items = match is_declared {
                true => kernel_type(vis, &kept(&item.attrs), signature),
                false => crate::launch::type_of_any(vis, signature),
            };
            quote! {
                #[allow(non_upper_case_globals, reason = "it has the name of the function")]
                #vis static #name: #ty = #ty { kernel: #root::LazyKernel::new(#text, |_| {}) };
                #items
            }
        }
        // Beside a method there is no room for a type.
        Kind::Device if item.sig.receiver().is_some() => quote!(#item),
        Kind::Device => {
            let mut item = item.clone();
            item.sig.generics = signature.generics.clone();
            item.sig.asyncness = None;
            let returns_impl = matches!(&item.sig.output, ReturnType::Type(_, ty) if matches!(**ty, Type::ImplTrait(_)));
            if returns_impl {
                item.sig.output = ReturnType::Default;
            }
            *item.block = syn::parse_quote!({ ::core::unimplemented!() });
            item.attrs = vec![syn::parse_quote!(#[allow(unused, reason = "it is refused")])];
            let companion = companion(vis, name, |front, types, args| {
                quote! {
                    let _ = (#types, #args);
                    #front.unit()
                }
            });
            let new = quote!(#root::LazyDeviceFn::new(#text, |_| {}));
            let described = described_fn(name, &quote!(), &new);
            quote!(#item #companion #described)
        }
    }
}
