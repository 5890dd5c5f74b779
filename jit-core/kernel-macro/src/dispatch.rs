//! Type parameters with a trait of the user's as their bound, `T: Shape`: static dispatch, as in Rust.
//!
//! What `x.area()` of a `T` means no description for all types can say. So rustc has the function that describes it for
//! each type that a call has: the call passes the type of the function that it has found, which tells the parameters of
//! that (`f::in_kernels`). The functions of the trait a type has by `TraitFns` and the trait's name, which
//! `#[device_fn]` on the `impl` block writes (`device-stdlib/src/plain/dispatch.rs`).

use proc_macro2::{Ident, Literal, TokenStream};
use quote::{ToTokens, quote};
use syn::punctuated::Punctuated;
use syn::{GenericParam, Generics, Path, PathArguments, Token, TypeParamBound, parse_quote};

use crate::body::plain_name;
use crate::function::root;
use crate::position::again;
use crate::signature::Signature;

/// A type parameter that is dispatched on, and its traits.
#[derive(Clone)]
pub(crate) struct Dispatched {
    pub(crate) name: Ident,
    pub(crate) traits: Vec<Path>,
}

/// Traits of the standard library that bound what kernels hold and change nothing in kernels.
const HOST_TRAITS: &[&str] = &["Debug", "Display", "PartialEq", "PartialOrd", "Eq", "Ord"];

/// Traits of the standard library that kernels know nothing of.
const NO_TRAITS_OF_KERNELS: &[&str] = &[
    "Hash",
    "Default",
    "Into",
    "From",
    "TryInto",
    "TryFrom",
    "AsRef",
    "AsMut",
    "Borrow",
    "ToString",
    "ToOwned",
    "Iterator",
    "IntoIterator",
    "Deref",
    "DerefMut",
    "Drop",
    "Any",
    "Error",
    "Fn",
    "FnMut",
    "FnOnce",
    "Add",
    "Sub",
    "Mul",
    "Div",
    "Rem",
    "Neg",
    "Not",
    "BitAnd",
    "BitOr",
    "BitXor",
    "Shl",
    "Shr",
    "AddAssign",
    "SubAssign",
    "MulAssign",
    "DivAssign",
    "RemAssign",
    "Index",
    "IndexMut",
    "Sum",
    "Product",
    "Send",
    "Sync",
    "Sized",
    "Copy",
    "Clone",
    "Unpin",
    "Num",
    "Int",
    "Float",
    "KernelType",
    "DeviceType",
];

/// Whether a bound is there for the host alone, where other bounds say what kernels do with a type.
pub(crate) fn is_for_host(name: &str) -> bool {
    HOST_TRAITS.contains(&name)
}

/// The traits of the user's among bounds.
pub(crate) fn user_traits<'b>(bounds: impl IntoIterator<Item = &'b TypeParamBound>) -> Vec<Path> {
    let is_user = |path: &&Path| {
        let name = path.segments.last().map(|last| plain_name(&last.ident));
        name.is_some_and(|name| {
            !is_for_host(&name) && !NO_TRAITS_OF_KERNELS.contains(&name.as_str())
        })
    };
    let paths = bounds.into_iter().filter_map(|bound| match bound {
        TypeParamBound::Trait(bound) => Some(&bound.path),
        _ => None,
    });
    paths.filter(is_user).cloned().collect()
}

/// How many letters the type that is a trait's name has.
const LETTERS: usize = 24;

/// The type that is a trait's name.
pub(crate) fn spelled(path: &Path) -> TokenStream {
    let (root, name) = (
        root(),
        path.segments.last().map(|last| plain_name(&last.ident)),
    );
    let name = name.unwrap_or_default();
    let letters = name.chars().take(LETTERS).map(Literal::character);
    quote!(#root::Spelled<#(#letters),*>)
}

/// Bounds of a type.
type Bounds = Punctuated<TypeParamBound, Token![+]>;

/// Generics with what a description needs of the types that are dispatched on.
pub(crate) fn with_functions(generics: &Generics, dispatched: &[Dispatched]) -> Generics {
    let mut generics = generics.clone();
    if dispatched.is_empty() {
        return generics;
    }
    let root = root();
    for Dispatched { name, traits } in dispatched {
        let names = traits.iter().map(spelled);
        let bounds: Bounds = parse_quote!(#root::DeviceType #(+ #root::TraitFns<#names>)*);
        // Where the others are: bounds in two places are what clippy warns about.
        let mut params = generics.type_params_mut();
        match params.find(|param| param.ident == *name && !param.bounds.is_empty()) {
            Some(param) => param.bounds.extend(bounds),
            None => {
                let clause = generics.make_where_clause();
                clause.predicates.push(parse_quote!(#name: #bounds));
            }
        }
    }
    generics
}

/// An entry of a pool that may be one of a parameter's traits, where no type has it by itself.
pub(crate) fn or_of_traits(
    entry: TokenStream,
    name: &Literal,
    as_method: bool,
    dispatched: &[Dispatched],
) -> TokenStream {
    let root = root();
    dispatched.iter().fold(entry, |entry, of| {
        let (ty, names) = (again(&of.name), of.traits.iter().map(spelled));
        quote! {
            #root::OfParam::<_, #ty>::new(#entry).or_of(
                #name, #as_method, &[#(<#ty as #root::TraitFns<#names>>::entry),*],
            )
        }
    })
}

/// The type of a function's name, by which calls find the function for their types.
pub(crate) fn companion(
    vis: &syn::Visibility,
    name: &Ident,
    signature: &Signature,
    describe: &TokenStream,
) -> TokenStream {
    let (root, text, name) = (root(), plain_name(name), again(name));
    let inputs = signature.params.iter().map(|param| &param.ty);
    let inputs: Vec<_> = inputs.collect();
    let output = signature.result.as_ref().map(|ty| quote!(-> #ty));
    let told = quote!(#(#inputs),* #output);
    let generics = told_generics(signature, &told);
    let (params, clause) = (&generics.params, &generics.where_clause);
    let types: Vec<&Ident> = signature.generics.type_params().map(|p| &p.ident).collect();
    let all = arguments(&generics);
    let written = match types.iter().all(|ty| names(&told, ty)) {
        true => quote!(__KilnWritten),
        false => quote!((#(#types,)*)),
    };
    let open = (written.to_string() == "__KilnWritten").then(|| quote!(, __KilnWritten));
    let (instance, plain) = (signature.instance(), signature.plain_types());
    let consts = signature.plain_consts();
    quote! {
        #[doc(hidden)]
        #[allow(non_camel_case_types, reason = "it has the name of the function")]
        #vis enum #name {}

        impl #name {
            #[doc(hidden)]
            #[allow(private_bounds, private_interfaces, reason = "it is for the calls of the function")]
            #vis fn in_kernels<#params, __KilnFn: ::core::ops::Fn(#(#inputs),*) #output #open>(
                _: &#root::TypeOf<__KilnFn>,
                _: #root::TypeOf<#written>,
            ) -> #root::Pooled #clause {
                static __KILN_FUNCTIONS: #root::LazyDeviceFns = #root::LazyDeviceFns::new(#text);
                #describe
                fn __kiln_call<'__kiln, #params>(
                    __kiln_front: #root::Front<'__kiln>,
                    __kiln_types: &[#root::Type],
                    __kiln_args: &[#root::Operand<'__kiln>],
                ) -> #root::Operand<'__kiln> #clause {
                    let __kiln_types = #root::picked(__kiln_types, &[#(#plain),*]);
                    __kiln_front.keep_consts(&[#(#consts),*]);
                    __KILN_FUNCTIONS.of(__kiln_describe #instance).call(__kiln_front, &__kiln_types, __kiln_args)
                }
                #root::Pooled::call(__kiln_call::<#(#all),*>)
            }
        }

        impl #root::Callable for #name {
            fn call<'k>(
                __kiln_front: #root::Front<'k>,
                _: &[#root::Type],
                _: &[#root::Operand<'k>],
            ) -> #root::Operand<'k> {
                __kiln_front.refuse("a variable has the name of this function, which is one for each type; name it otherwise")
            }
        }
    }
}

/// The parameters of generics as arguments.
fn arguments(generics: &Generics) -> Vec<&Ident> {
    let names = generics.params.iter().filter_map(|param| match param {
        GenericParam::Lifetime(_) => None,
        GenericParam::Type(param) => Some(&param.ident),
        GenericParam::Const(param) => Some(&param.ident),
    });
    names.collect()
}

/// The generics of a function that finds one for the types of a call. A number that no type of the function has in it
/// rustc could not find; the call says it.
fn told_generics(signature: &Signature, told: &TokenStream) -> Generics {
    let mut generics = with_functions(&signature.generics, &signature.dispatched);
    let params = std::mem::take(&mut generics.params).into_iter();
    let is_told = |param: &GenericParam| match param {
        GenericParam::Const(param) => names(told, &param.ident),
        _ => true,
    };
    generics.params = params.filter(is_told).collect();
    generics
}

/// Whether a name is among tokens.
fn names(tokens: &TokenStream, name: &Ident) -> bool {
    tokens.clone().into_iter().any(|tree| match tree {
        proc_macro2::TokenTree::Ident(ident) => ident == *name,
        proc_macro2::TokenTree::Group(group) => names(&group.stream(), name),
        _ => false,
    })
}

/// The functions of a trait that a block has, for what is bounded by the trait.
pub(crate) fn trait_functions(
    of: &Path,
    ty: &syn::Type,
    generics: &Generics,
    functions: &[TraitFunction],
) -> TokenStream {
    let (root, rest) = (root(), of_trait(of));
    let of = spelled(of);
    let (params, clause) = (generics.params.iter(), &generics.where_clause);
    let arms = functions.iter().map(
        |TraitFunction {
             name,
             is_method,
             pointer,
         }| {
            let method = is_method.then(|| {
                quote! {
                    (#name, true) => ::core::option::Option::Some(#root::Pooled::method(
                        <Self as #root::Method<#name, ()>>::RECEIVER,
                        <Self as #root::Method<#name, ()>>::CHANGES,
                        <Self as #root::Method<#name, ()>>::call,
                    )),
                }
            });
            quote! {
                #method
                (#name, false) => ::core::option::Option::Some(
                    #root::Pooled::call(<Self as #root::AssociatedFn<#name, #pointer>>::call),
                ),
            }
        },
    );
    quote! {
        #[diagnostic::do_not_recommend]
        impl<#(#params),*> #root::TraitFns<#of> for #ty #clause {
            fn entry(__kiln_name: u64, __kiln_as_method: bool) -> ::core::option::Option<#root::Pooled> {
                match (__kiln_name, __kiln_as_method) {
                    #(#arms)*
                    _ => #rest,
                }
            }
        }
    }
}

/// What a type has by the trait itself: bodies that are for all types, and supertraits. A trait without `#[device_fn]`
/// has none: where its name means no function, there is one behind it.
fn of_trait(of: &Path) -> TokenStream {
    let (root, mut path) = (root(), of.clone());
    let bound: TypeParamBound = parse_quote!(#of);
    if user_traits([&bound]).is_empty() {
        return quote!(::core::option::Option::None);
    }
    for segment in &mut path.segments {
        segment.arguments = PathArguments::None;
        segment.ident = again(&segment.ident);
    }
    quote! {
        {
            #[allow(unused_imports, reason = "the trait may have no function beside it")]
            use {#path as HostDefaults, #root::no_bodies::*};
            HostDefaults::<Self>(__kiln_name, __kiln_as_method)
        }
    }
}

/// A function of a trait that a block has.
pub(crate) struct TraitFunction {
    /// The number of the function's name.
    pub(crate) name: Literal,
    /// Whether the function takes `self`.
    pub(crate) is_method: bool,
    /// The type of a pointer to it, by which the parameters of the type are known.
    pub(crate) pointer: TokenStream,
}

/// The type of a pointer to a function with parameters of its type alone; of any other, of any function.
pub(crate) fn pointer_to(signature: Option<&Signature>, own: &Generics) -> TokenStream {
    let has_own = (own.params.iter()).any(|param| !matches!(param, GenericParam::Lifetime(_)));
    let Some(signature) = signature.filter(|_| !has_own) else {
        return quote!(fn());
    };
    let inputs = signature.params.iter().map(|param| &param.ty);
    let output = signature.result.as_ref().map(|ty| quote!(-> #ty));
    let lifetimes = own
        .lifetimes()
        .map(|param| param.lifetime.to_token_stream());
    quote!(for<#(#lifetimes),*> fn(#(#inputs),*) #output)
}
