//! Comparisons of structs: what `#[derive(KernelType)]` tells of those that the host has, and `#[device_fn]` on an
//! `impl PartialEq` or `impl PartialOrd`.
//!
//! Kernels compare structs by their fields, and by IR types, so that a struct inside of an array, an option or another
//! struct is compared as it is by itself. What the type has in place of that is a fact of its form
//! (`kiln_compiler::value::comparison`): the functions of a block that `#[device_fn]` is on, and how to ask the host
//! whether its own comparison is that of the fields.

use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::{DeriveInput, GenericParam, ImplItem, ItemImpl, Path, PathArguments, TypeParamBound};

use crate::body::plain_name;
use crate::call::number_of;
use crate::function::root;
use crate::position::before;
use crate::refusal::Refusals;

/// The traits of comparisons, and the function of each that kernels call.
const COMPARISONS: &[(&str, &str)] = &[("PartialEq", "eq"), ("PartialOrd", "partial_cmp")];

/// The function by which kernels compare what a block is of, if it is of a comparison.
pub(crate) fn function_of(block: &ItemImpl) -> Option<&'static str> {
    let (_, path, _) = block.trait_.as_ref()?;
    let last = path.segments.last()?;
    let known = COMPARISONS.iter().find(|(name, _)| last.ident == name);
    known.map(|(_, function)| *function)
}

/// Refuses the blocks of comparisons that kernels could not call wherever they compare.
pub(crate) fn check(
    block: &ItemImpl,
    ty: Option<&Path>,
    is_foreign: bool,
    refusals: &mut Refusals,
) {
    let (Some(function), Some((_, of, _))) = (function_of(block), &block.trait_) else {
        return;
    };
    let arguments = of.segments.last().map(|last| &last.arguments);
    if arguments.is_some_and(|arguments| !matches!(arguments, PathArguments::None)) {
        refusals.refuse(
            of,
            "kernels compare values of one type; write a method of another name for this",
        );
    }
    if is_foreign {
        refusals.refuse(
            of,
            "types of other crates are compared field by field in kernels; write a method of another name",
        );
    }
    let is_generic = ty.is_some_and(|ty| ty.segments.iter().any(|s| !s.arguments.is_empty()));
    if is_generic {
        refusals.refuse(
            of,
            "a comparison of a generic type is that of all fields in kernels; derive it, or write a method of another name",
        );
    }
    let others = block.items.iter().filter_map(|item| match item {
        ImplItem::Fn(item) if item.sig.ident != function => Some(&item.sig.ident),
        _ => None,
    });
    for name in others {
        let message = format!(
            "kernels make all operators of this trait of `{function}`; leave this function out"
        );
        refusals.refuse(name, &message);
    }
}

/// How comparisons in kernels find a function of a block: from anywhere where there is a value of the type.
pub(crate) fn own_comparison(ty: &syn::Type, function: &Ident) -> TokenStream {
    let (root, name) = (root(), number_of(function));
    quote_spanned! {before(function.span())=>
        #[diagnostic::do_not_recommend]
        impl #root::OwnComparison<#name> for #ty {
            const CALL: #root::CallFn = <Self as #root::Method<#name, ()>>::call;
        }
    }
}

/// What the form of a struct knows of its comparisons. `fields` are the names of its fields in Rust, and their types.
pub(crate) fn known(input: &DeriveInput, fields: &[(TokenStream, &syn::Type)]) -> TokenStream {
    let (root, name) = (root(), &input.ident);
    let is_generic = !input.generics.params.is_empty();
    let own = |function: &str| {
        let number = number_of(&format_ident!("{function}"));
        match is_generic {
            true => quote!(::core::option::Option::None),
            false => quote!(#root::OwnInKernels::<#name, #number>::CALL),
        }
    };
    let (equal, order, hosts) = (own("eq"), own("partial_cmp"), instances(input));
    let hosts = hosts.iter().map(|ty| on_host(input, ty, fields));
    quote! {
        {
            #[allow(unused_imports, reason = "they are used where the type has no comparison")]
            use #root::{NoComparison as _, NoEquality as _, NoOrder as _};
            static __KILN_COMPARISON: #root::Comparison = #root::Comparison {
                equal: #equal,
                order: #order,
                host: &[#(#hosts),*],
            };
            &__KILN_COMPARISON
        }
    }
}

/// The types that stand for the parameters of a generic struct, where the host is asked: one list for each time that
/// it is. A bound that no number is known to meet leaves nothing to ask.
fn instances(input: &DeriveInput) -> Vec<Option<&'static str>> {
    if input.generics.params.is_empty() {
        return vec![None];
    }
    let mut numbers = vec!["f32", "i32", "f64", "u32"];
    if input.generics.where_clause.is_some() {
        return Vec::new();
    }
    for param in &input.generics.params {
        let GenericParam::Type(param) = param else {
            return Vec::new();
        };
        for bound in &param.bounds {
            let TypeParamBound::Trait(bound) = bound else {
                return Vec::new();
            };
            let last = bound
                .path
                .segments
                .last()
                .map(|last| plain_name(&last.ident));
            match last.unwrap_or_default().as_str() {
                "Float" => numbers.retain(|number| number.starts_with('f')),
                "Int" => numbers.retain(|number| !number.starts_with('f')),
                "Num" | "KernelType" | "DeviceType" | "Copy" | "Clone" | "PartialEq"
                | "PartialOrd" | "Debug" | "Default" | "Send" | "Sync" | "Sized" => {}
                _ => return Vec::new(),
            }
        }
    }
    numbers.into_iter().map(Some).collect()
}

/// How the host is asked, with a type in place of each parameter.
fn on_host(
    input: &DeriveInput,
    number: &Option<&'static str>,
    fields: &[(TokenStream, &syn::Type)],
) -> TokenStream {
    let (root, name) = (root(), &input.ident);
    let params: Vec<&Ident> = input.generics.type_params().map(|p| &p.ident).collect();
    let number = number.map(|number| format_ident!("{number}"));
    let aliases = params.iter().map(|param| quote!(type #param = #number;));
    let arguments = (!params.is_empty()).then(|| quote!(<#(#params),*>));
    let equal = fields.iter().map(|(member, ty)| {
        quote!(&& #root::OnHost::<#ty>::EQUAL.is_some_and(|__kiln_of| __kiln_of(&__kiln_a.#member, &__kiln_b.#member)))
    });
    let order = fields.iter().map(|(member, ty)| {
        quote! {
            let __kiln_order = #root::then_fields(
                __kiln_order,
                #root::OnHost::<#ty>::ORDER,
                &__kiln_a.#member,
                &__kiln_b.#member,
            );
        }
    });
    quote! {
        {
            #(#[allow(non_camel_case_types, dead_code, reason = "it is named as a parameter is")] #aliases)*
            type __KilnSelf = #name #arguments;
            fn __kiln_equal(__kiln_a: &__KilnSelf, __kiln_b: &__KilnSelf) -> bool {
                let _ = (__kiln_a, __kiln_b);
                true #(#equal)*
            }
            fn __kiln_ordered(
                __kiln_a: &__KilnSelf,
                __kiln_b: &__KilnSelf,
            ) -> ::core::option::Option<::core::cmp::Ordering> {
                let _ = (__kiln_a, __kiln_b);
                let __kiln_order = ::core::option::Option::Some(::core::cmp::Ordering::Equal);
                #(#order)*
                __kiln_order
            }
            #root::HostComparison {
                is_equality_of_fields: || {
                    #root::is_equality_of_fields::<__KilnSelf>(#root::OnHost::<__KilnSelf>::EQUAL, __kiln_equal)
                },
                is_order_of_fields: || {
                    #root::is_order_of_fields::<__KilnSelf>(#root::OnHost::<__KilnSelf>::ORDER, __kiln_ordered)
                },
            }
        }
    }
}

/// The proof that an enum, which is an integer in kernels, is compared as one on the host, too. A constant stands in a
/// pattern only if its `PartialEq` is derived, so that rustc refuses one that is written by hand.
pub(crate) fn of_enum(name: &Ident, first: Option<&Ident>) -> TokenStream {
    let Some(first) = first else {
        return TokenStream::new();
    };
    let root = root();
    let [equal, order] =
        ["eq", "partial_cmp"].map(|function| number_of(&format_ident!("{function}")));
    let pattern = quote_spanned!(before(name.span())=> <_ as #root::InPattern>::VALUE);
    quote! {
        impl #root::InPattern for #name {
            const VALUE: Self = #name::#first;
        }

        const _: () = {
            #[allow(unused_imports, reason = "they are used where the type has no comparison")]
            use #root::{IsCompared as _, IsNotCompared as _, NoComparison as _};
            assert!(
                #root::OwnInKernels::<#name, #equal>::CALL.is_none()
                    && #root::OwnInKernels::<#name, #order>::CALL.is_none(),
                "enums are compared as integers in kernels: derive `PartialEq` and `PartialOrd`"
            );
            #[allow(dead_code, clippy::all, reason = "rustc looks at the pattern")]
            fn __kiln_proof() {
                match (&#root::Compared::<#name>::NEW).of_pattern() {
                    #pattern => {}
                    #[allow(unreachable_patterns, reason = "there may be one variant")]
                    _ => {}
                }
            }
        };
    }
}
