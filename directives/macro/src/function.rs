//! The item that a function becomes.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Error, FnArg, Ident, ItemFn, Pat, Result, ReturnType};

use crate::capture::{Kind, Variable, Variables, add_inner, add_locals, kind_of};
use crate::host::Host;
use crate::region::present;
use crate::sequential::without_directives;

/// What `#[offload]` makes of a function.
pub(crate) fn expand(attribute: TokenStream, item: TokenStream) -> TokenStream {
    let expanded = syn::parse2::<ItemFn>(item).and_then(|function| {
        if !attribute.is_empty() {
            return Err(Error::new_spanned(
                attribute,
                "`#[offload]` takes nothing: directives stand in the function",
            ));
        }
        item_of(&function)
    });
    expanded.unwrap_or_else(|error| error.to_compile_error())
}

fn refuse_signature(function: &ItemFn) -> Result<()> {
    let signature = &function.sig;
    let refuse = |tokens: &dyn quote::ToTokens, message: &str| {
        Err(Error::new_spanned(tokens.to_token_stream(), message))
    };
    if !signature.generics.params.is_empty() {
        return refuse(
            &signature.generics,
            "a function with directives has no type, const or lifetime parameters: write its types",
        );
    }
    for (word, name) in [
        (signature.asyncness.map(|word| word.span), "async"),
        (signature.unsafety.map(|word| word.span), "unsafe"),
        (signature.constness.map(|word| word.span), "const"),
    ] {
        if let Some(span) = word {
            return Err(Error::new(
                span,
                format!("a function with directives is not `{name}`"),
            ));
        }
    }
    Ok(())
}

/// The parameters: their names, and what the function's variables are.
fn params_of(function: &ItemFn) -> Result<(Vec<Ident>, Variables)> {
    let (mut names, mut variables) = (Vec::new(), Variables::new());
    for input in &function.sig.inputs {
        let FnArg::Typed(input) = input else {
            return Err(Error::new_spanned(
                input,
                "a function with directives has no `self`: pass what it uses",
            ));
        };
        let Pat::Ident(name) = &*input.pat else {
            return Err(Error::new_spanned(
                &input.pat,
                "a parameter of a function with directives is a name",
            ));
        };
        let kind = kind_of(&input.ty, name.mutability.is_some(), true);
        let place = names.len();
        variables.insert(name.ident.to_string(), Variable { kind, place });
        names.push(name.ident.clone());
    }
    add_locals(&mut variables, &function.block)?;
    add_inner(&mut variables, &function.block)?;
    Ok((names, variables))
}

fn item_of(function: &ItemFn) -> Result<TokenStream> {
    refuse_signature(function)?;
    let (names, variables) = params_of(function)?;
    let (name, vis, inputs) = (&function.sig.ident, &function.vis, &function.sig.inputs);
    let result = match &function.sig.output {
        ReturnType::Default => quote!(()),
        ReturnType::Type(_, ty) => quote!(#ty),
    };
    let mut host = Host {
        name,
        variables: &variables,
        regions: 0,
        shapes: Vec::new(),
        constants: crate::data::constants(&function.block),
    };
    let (statements, value) = host.block(&function.block)?;
    if host.regions == 0 {
        let message = "the function has no kernel region: write `#[kernel(tblock(..), thread(..))] { .. }` around a loop nest";
        return Err(Error::new_spanned(name, message));
    }
    let params = variables
        .iter()
        .filter(|(_, variable)| matches!(variable.kind, Kind::Slice { is_param: true, .. }));
    let copies: TokenStream = params.map(|(name, _)| host.copy(name, false)).collect();
    let presents = presents(&variables);
    let value = value.unwrap_or_else(|| quote!(()));
    let sequential = without_directives(&function.block);
    let attributes = &function.attrs;
    let run = quote! {
        #(#presents)*
        #statements
        let __result: #result = #value;
        #copies
        ::core::result::Result::Ok((__result, __offload.report()?))
    };
    let launches = launches(function, &names, &result, &run);
    Ok(quote! {
        #(#attributes)*
        #[allow(non_camel_case_types, reason = "it has the name of the function")]
        #[derive(Clone, Copy, Debug)]
        #vis struct #name;

        #[allow(clippy::all, clippy::pedantic, unused, reason = "a program may use some of it")]
        impl #name {
            /// Executes the function as it is written, on one thread of the host.
            #vis fn sequential(&self, #inputs) -> #result #sequential

            #launches
        }
    })
}

/// What of each slice is on the device, as variables.
fn presents(variables: &Variables) -> Vec<TokenStream> {
    let slices = variables
        .iter()
        .filter_map(|(name, variable)| match &variable.kind {
            Kind::Slice { element, .. } => {
                let present = present(name);
                Some(quote! {
                    #[allow(unused_mut, reason = "no region writes the slice")]
                    let mut #present = ::kiln::directives::macros::Present::<#element>::new();
                })
            }
            _ => None,
        });
    slices.collect()
}

/// The methods that run kernel regions on a device.
fn launches(
    function: &ItemFn,
    names: &[Ident],
    result: &TokenStream,
    run: &TokenStream,
) -> TokenStream {
    let (vis, inputs) = (&function.vis, &function.sig.inputs);
    let plans = plans(function, names);
    quote! {
        /// Executes the function with its kernel regions on a device.
        ///
        /// # Errors
        /// A region whose threads would depend on each other, or for which the grid is too small or too large;
        /// what a launch or a copy meets.
        #vis fn launch(&self, __jit: &::kiln::prelude::Jit, #inputs) -> ::kiln::Result<#result> {
            ::core::result::Result::Ok(self.launch_reported(__jit, #(#names),*)?.0)
        }

        /// Executes the function as `launch` does, and says what was copied and launched.
        ///
        /// # Errors
        /// As those of `launch`.
        #vis fn launch_reported(
            &self,
            __jit: &::kiln::prelude::Jit,
            #inputs
        ) -> ::kiln::Result<(#result, ::kiln::directives::Report)> {
            let mut __offload = ::kiln::directives::macros::Offload::new(__jit);
            self.__run(&mut __offload, #(#names),*)
        }

        #plans

        fn __run(
            &self,
            __offload: &mut ::kiln::directives::macros::Offload<'_>,
            #inputs
        ) -> ::kiln::Result<(#result, ::kiln::directives::Report)> {
            #run
        }
    }
}

/// The methods that tell what a launch would do.
fn plans(function: &ItemFn, names: &[Ident]) -> TokenStream {
    let (vis, inputs) = (&function.vis, &function.sig.inputs);
    quote! {
        /// What a launch with these arguments would copy and launch: kernel regions are verified and become kernels,
        /// but nothing is copied, compiled or launched. What the function does besides, it does, with slices as they
        /// are without the regions.
        ///
        /// # Errors
        /// As those of `launch`, but for what a device meets.
        #vis fn plan(&self, #inputs) -> ::kiln::Result<::kiln::directives::Report> {
            let __none = ::core::option::Option::None;
            let mut __offload = ::kiln::directives::macros::Offload::planned(__none);
            ::core::result::Result::Ok(self.__run(&mut __offload, #(#names),*)?.1)
        }

        /// What `plan` says, with the kernels of a device: on a CPU, slices are read where they are, and not from shared memory, and blocks
        /// that compute what they read may be wider and lower, so that the grid of a launch is the kernel's and not the schedule's.
        ///
        /// # Errors
        /// As those of `plan`.
        #vis fn plan_on(
            &self,
            __jit: &::kiln::prelude::Jit,
            #inputs
        ) -> ::kiln::Result<::kiln::directives::Report> {
            let __some = ::core::option::Option::Some(__jit);
            let mut __offload = ::kiln::directives::macros::Offload::planned(__some);
            ::core::result::Result::Ok(self.__run(&mut __offload, #(#names),*)?.1)
        }
    }
}
