//! `#[device_fn]` on a trait: what kernels need of the bodies that it has for all types, and of its supertraits.
//!
//! The trait stays as it is. Beside it there is a function of its name, by which the blocks that implement the trait
//! find what they do not have themselves (`crate::dispatch::trait_functions`): an import of a trait's name imports the
//! function, too. Each body is described as a device function of a type with the trait, for each such type.

use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote};
use syn::{
    GenericParam, Generics, ImplItemFn, ItemTrait, TraitItem, TraitItemFn, Visibility, parse_quote,
};

use crate::checked::{for_host, unfit_lints};
use crate::dispatch::{spelled, user_traits};
use crate::function::root;
use crate::method::{Of, take_said};
use crate::position::again;
use crate::refusal::Refusals;
use crate::signature::Signature;

/// Expands the attribute on a trait.
pub(crate) fn expand(attribute: &TokenStream, mut item: ItemTrait) -> TokenStream {
    let mut refusals = Refusals::default();
    if !attribute.is_empty() {
        refusals.refuse(attribute, "`#[device_fn]` of a trait takes nothing");
    }
    let is_lifetime = |param: &&GenericParam| matches!(param, GenericParam::Lifetime(_));
    if let Some(param) = item
        .generics
        .params
        .iter()
        .find(|param| !is_lifetime(param))
    {
        refusals.refuse(
            param,
            "the bodies of a trait with parameters are not for kernels; leave `#[device_fn]` out, and write the functions \
             in the `impl` block of each type",
        );
    }
    let bodies = match refusals.is_empty() {
        true => bodies(&mut item, &mut refusals),
        false => TokenStream::new(),
    };
    for function in functions(&mut item) {
        function.default = function.default.as_ref().map(for_host);
    }
    let (lints, errors) = (unfit_lints(), refusals.into_tokens());
    quote!(#lints #item #bodies #errors)
}

fn functions(item: &mut ItemTrait) -> impl Iterator<Item = &mut TraitItemFn> {
    item.items.iter_mut().filter_map(|item| match item {
        TraitItem::Fn(function) => Some(function),
        _ => None,
    })
}

/// The function that finds the bodies, and what the supertraits have.
fn bodies(item: &mut ItemTrait, refusals: &mut Refusals) -> TokenStream {
    let (root, vis, name) = (root(), item.vis.clone(), again(&item.ident));
    // As it is named where a type lacks what a bound asks for.
    let implementor = format_ident!("Implementor", span = name.span());
    let generics: Generics = parse_quote!(<#implementor: #name>);
    let signature = Signature::of_impl(&generics, refusals);
    let mut bounded = signature.described_generics();
    let supertraits: Vec<_> = user_traits(&item.supertraits).iter().map(spelled).collect();
    for of in &supertraits {
        let clause = bounded.make_where_clause();
        clause
            .predicates
            .push(parse_quote!(#implementor: #root::TraitFns<#of>));
    }
    let mut arms = Vec::new();
    for function in functions(item) {
        let Some(block) = function.default.clone() else {
            continue;
        };
        let mut function_of_type = ImplItemFn {
            attrs: std::mem::take(&mut function.attrs),
            vis: Visibility::Inherited,
            defaultness: None,
            sig: function.sig.clone(),
            block,
        };
        let said = take_said(&mut function_of_type, refusals);
        function.attrs.clone_from(&function_of_type.attrs);
        let (path, ty) = (parse_quote!(#implementor), parse_quote!(#implementor));
        arms.push(arm(
            &Of::trait_itself(&path, &ty, &signature),
            &implementor,
            &function_of_type,
            said,
            refusals,
        ));
    }
    let clause = &bounded.where_clause;
    let params = &bounded.params;
    quote! {
        #[doc(hidden)]
        #[allow(non_snake_case, dead_code, private_bounds, reason = "it has the name of the trait")]
        #vis fn #name<#params>(
            __kiln_name: u64,
            __kiln_as_method: bool,
        ) -> ::core::option::Option<#root::Pooled> #clause {
            match (__kiln_name, __kiln_as_method) {
                #(#arms)*
                _ => {
                    let __kiln_supertraits: &[fn(u64, bool) -> ::core::option::Option<#root::Pooled>] =
                        &[#(<#implementor as #root::TraitFns<#supertraits>>::entry),*];
                    __kiln_supertraits.iter().find_map(|__kiln_of| __kiln_of(__kiln_name, __kiln_as_method))
                }
            }
        }
    }
}

/// The arm of one function.
fn arm(
    of: &Of<'_>,
    implementor: &Ident,
    function: &ImplItemFn,
    said: TokenStream,
    refusals: &mut Refusals,
) -> TokenStream {
    let root = root();
    let Some(described) = of.body(function, said, refusals) else {
        return TokenStream::new();
    };
    let (description, called, generics) = (
        &described.description,
        &described.called,
        &described.generics,
    );
    let (params, clause, number) = (&generics.params, &generics.where_clause, &described.number);
    let call = quote! {
        #description
        fn __kiln_call<'__kiln, #params>(
            __kiln_front: #root::Front<'__kiln>,
            __kiln_types: &[#root::Type],
            __kiln_args: &[#root::Operand<'__kiln>],
        ) -> #root::Operand<'__kiln> #clause {
            #called.call(__kiln_front, __kiln_types, __kiln_args)
        }
    };
    let method = described.receiver.map(|how| {
        let (how, changes) = (format_ident!("{how}"), described.changes);
        quote! {
            (#number, true) => {
                #call
                ::core::option::Option::Some(#root::Pooled::method(
                    #root::Receiver::#how,
                    #changes,
                    __kiln_call::<#implementor>,
                ))
            }
        }
    });
    quote! {
        #method
        (#number, false) => {
            #call
            ::core::option::Option::Some(#root::Pooled::call(__kiln_call::<#implementor>))
        }
    }
}
