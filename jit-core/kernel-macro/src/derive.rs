//! `#[derive(KernelType)]`: the promise that a type of the host and one of the IR have one layout.
//!
//! A struct is `#[repr(C)]`, aligned to more if it says so, or `#[repr(transparent)]` with one field, and nothing else; that its fields lie where C has them is
//! asserted in the code that is written as well, so that no attribute which is expanded later can break the promise.
//! An enum without fields is an integer in the IR; what a kernel stored is checked before it is read
//! back as a value of the enum.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Attribute, Data, DataEnum, DataStruct, DeriveInput, Fields, Ident};

use crate::body::plain_name;
use crate::function::root;
use crate::position::{before, last_of, until};
use crate::refusal::Refusals;
use crate::types::{call_of, check_type, item_of};

/// Expands the derive on an item.
pub(crate) fn expand(item: TokenStream) -> TokenStream {
    let input: DeriveInput = match syn::parse2(item) {
        Ok(input) => input,
        Err(error) => return error.to_compile_error(),
    };
    let mut refusals = Refusals::default();
    let code = match &input.data {
        Data::Struct(data) => of_struct(&input, data, &mut refusals),
        Data::Enum(data) => of_enum(&input, data, &mut refusals),
        Data::Union(data) => {
            refusals.refuse(
                &data.union_token,
                "a union does not say what it holds; use a struct, or `to_bits` of a number",
            );
            TokenStream::new()
        }
    };
    match refusals.is_empty() {
        true => code,
        false => refusals.into_tokens(),
    }
}

/// The words inside `#[repr(..)]`.
fn representation(attributes: &[Attribute]) -> Vec<String> {
    let lists = attributes.iter().filter(|a| a.path().is_ident("repr"));
    let words = lists.filter_map(|a| a.meta.require_list().ok());
    words
        .flat_map(|list| {
            let text = list.tokens.to_string();
            text.split(',')
                .map(|word| word.trim().to_owned())
                .filter(|word| !word.is_empty())
                .collect::<Vec<_>>()
        })
        .collect()
}

/// The largest alignment that the IR knows, `StructData::MAX_ALIGN`.
const MAX_ALIGN: usize = 16;

/// What a word inside `#[repr(..)]` aligns a struct to; `None` for other words.
fn alignment(word: &str) -> Option<usize> {
    let inside = word.strip_prefix("align")?.trim_start();
    let inside = inside.strip_prefix('(')?.strip_suffix(')')?;
    inside.trim().parse().ok()
}

/// What `#[repr(C, align(16))]` asks for; 1 if it asks for nothing.
fn least_alignment(input: &DeriveInput) -> usize {
    let words = representation(&input.attrs);
    let asked = words.iter().filter_map(|word| alignment(word));
    asked.max().unwrap_or(1)
}

fn of_struct(input: &DeriveInput, data: &DataStruct, refusals: &mut Refusals) -> TokenStream {
    let mut words = representation(&input.attrs);
    words.retain(|word| alignment(word).is_none());
    // One field lies where the struct does.
    let is_transparent = words == ["transparent"] && data.fields.len() == 1;
    if words != ["C"] && !is_transparent {
        refusals.refuse(
            &input.ident,
            "write `#[repr(C)]` on this struct, and no other `repr` but `align`: host and device must agree \
             on where its fields are",
        );
    }
    if least_alignment(input) > MAX_ALIGN {
        refusals.refuse(
            &input.ident,
            "kernels align values to at most 16 bytes, which is the most that a thread reads at once; write \
             `align(16)`",
        );
    }
    for param in &input.generics.params {
        match param {
            syn::GenericParam::Type(_) | syn::GenericParam::Const(_) => {}
            syn::GenericParam::Lifetime(param) => refusals.refuse(
                param,
                "a value that kernels hold borrows nothing; a struct with slices that is passed to \
                 kernels is a view, `#[derive(KernelView)]`",
            ),
        }
    }
    for field in &data.fields {
        check_type(&field.ty, refusals);
        if let syn::Type::Reference(reference) = &field.ty {
            refusals.refuse(
                reference,
                "a value that kernels hold borrows nothing; a struct with slices that is passed to \
                 kernels is a view, `#[derive(KernelView)]`",
            );
        }
    }
    let device = device_type(input, data);
    let kernel = kernel_type(input, data);
    let constructor = match (&data.fields, input.generics.params.is_empty()) {
        (Fields::Unnamed(fields), true) => constructor(&input.ident, fields.unnamed.len()),
        _ => TokenStream::new(),
    };
    quote!(#device #kernel #constructor)
}

/// The fields as they are named in Rust, in the IR, and their types.
fn fields(data: &DataStruct) -> Vec<(TokenStream, String, &syn::Type)> {
    let named = |(i, field): (usize, &'_ syn::Field)| match &field.ident {
        Some(name) => (quote!(#name), plain_name(name)),
        None => {
            let index = syn::Index::from(i);
            (quote!(#index), i.to_string())
        }
    };
    let fields = data.fields.iter().enumerate();
    fields
        .map(|(i, field)| {
            let (member, name) = named((i, field));
            (member, name, &field.ty)
        })
        .collect()
}

/// Generics with a bound on each type parameter.
pub(crate) fn bounded(input: &DeriveInput, bound: &TokenStream) -> syn::Generics {
    let mut generics = input.generics.clone();
    let names: Vec<Ident> = generics.type_params().map(|p| p.ident.clone()).collect();
    let clause = generics.make_where_clause();
    for name in names {
        let predicate = syn::parse2(quote!(#name: #bound));
        clause
            .predicates
            .extend(predicate.into_iter().collect::<Vec<syn::WherePredicate>>());
    }
    generics
}

fn device_type(input: &DeriveInput, data: &DataStruct) -> TokenStream {
    let (root, name) = (root(), &input.ident);
    let (text, align) = (plain_name(name), least_alignment(input));
    let generics = bounded(input, &quote!(#root::DeviceType));
    let (parameters, arguments, clause) = generics.split_for_impl();
    let (mut scalars, mut entries, mut layout) = (Vec::new(), Vec::new(), Vec::new());
    let members = fields(data).into_iter();
    let members: Vec<_> = members.map(|(member, _, ty)| (member, ty)).collect();
    let known = crate::comparison::known(input, &members);
    for (member, field, ty) in fields(data) {
        let device_type = quote!(DeviceType);
        let form = item_of(ty, &device_type, "FORM");
        let value = until(
            last_of(ty),
            quote_spanned!(before(ty.span())=> &self.#member),
        );
        let arguments = quote!(#value, __kiln_out);
        let all = call_of(ty, &device_type, "scalars", &arguments);
        scalars.push(quote!(#all;));
        entries.push(quote!((#field, #form)));
        layout.push(quote! {
            __kiln_size = __kiln_size.next_multiple_of(::core::mem::align_of::<#ty>());
            assert!(
                ::core::mem::offset_of!(Self, #member) == __kiln_size,
                "a field is not where C has it"
            );
            __kiln_size += ::core::mem::size_of::<#ty>();
            if ::core::mem::align_of::<#ty>() > __kiln_align {
                __kiln_align = ::core::mem::align_of::<#ty>();
            }
        });
    }
    quote! {
        #[diagnostic::do_not_recommend]
        impl #parameters #root::DeviceType for #name #arguments #clause {
            const FORM: &'static #root::TypeForm = {
                // The layout algorithm of the IR, on what rustc has made of the fields.
                #[allow(unused_mut, reason = "a struct without fields assigns neither")]
                let (mut __kiln_size, mut __kiln_align) = (0_usize, #align);
                #(#layout)*
                assert!(::core::mem::align_of::<Self>() == __kiln_align, "the alignment is not C's");
                assert!(
                    ::core::mem::size_of::<Self>() == __kiln_size.next_multiple_of(__kiln_align),
                    "the size is not C's"
                );
                &#root::TypeForm::aligned_structure(#text, &[#(#entries),*], #align as u64).knowing(#known)
            };
            fn scalars(&self, __kiln_out: &mut ::std::vec::Vec<#root::Constant>) {
                let _ = &__kiln_out;
                #(#scalars)*
            }
        }
    }
}

fn kernel_type(input: &DeriveInput, data: &DataStruct) -> TokenStream {
    let (root, name) = (root(), &input.ident);
    let generics = bounded(input, &quote!(#root::KernelType));
    let (parameters, arguments, clause) = generics.split_for_impl();
    let (mut any_bits, mut valid) = (Vec::new(), Vec::new());
    for (member, _, ty) in fields(data) {
        let kernel_type = quote!(KernelType);
        let any = item_of(ty, &kernel_type, "ANY_BITS");
        let is_value = call_of(ty, &kernel_type, "is_value", &quote!(__kiln_field));
        any_bits.push(quote!(&& #any));
        valid.push(quote! {
            && {
                let __kiln_start = ::core::mem::offset_of!(Self, #member);
                let __kiln_end = __kiln_start + ::core::mem::size_of::<#ty>();
                __kiln_bytes.get(__kiln_start..__kiln_end).is_some_and(|__kiln_field| #is_value)
            }
        });
    }
    quote! {
        // SAFETY: the assertions in `FORM` prove the layout; every field is a `KernelType`, so a
        // value is valid if all its fields are.
        #[diagnostic::do_not_recommend]
        unsafe impl #parameters #root::KernelType for #name #arguments #clause {
            const ANY_BITS: bool = true #(#any_bits)*;
            fn is_value(__kiln_bytes: &[u8]) -> bool {
                let _ = __kiln_bytes;
                true #(#valid)*
            }
        }
    }
}

/// `Point(x, y)` as a call in a kernel.
fn constructor(name: &Ident, fields: usize) -> TokenStream {
    let root = root();
    let names = (0..fields).map(|i| i.to_string());
    let values = 0..fields;
    quote! {
        impl #root::Callable for #name {
            fn call<'k>(
                __kiln_front: #root::Front<'k>,
                _: &[#root::Type],
                __kiln_args: &[#root::Operand<'k>],
            ) -> #root::Operand<'k> {
                let __kiln_ty = __kiln_front.builder().device_type::<#name>();
                // rustc has checked the number of arguments.
                let __kiln_fields = [#((#names, __kiln_args.get(#values).copied().unwrap_or(__kiln_front.unit()))),*];
                __kiln_front.construct(__kiln_ty, &__kiln_fields, ::core::option::Option::None)
            }
        }
    }
}

fn of_enum(input: &DeriveInput, data: &DataEnum, refusals: &mut Refusals) -> TokenStream {
    let Some(repr) = integer_of(input) else {
        refusals.refuse(
            &input.ident,
            "write the integer type of this enum, `#[repr(u32)]` for instance: host and device \
             must agree on its size",
        );
        return TokenStream::new();
    };
    for variant in data
        .variants
        .iter()
        .filter(|v| !matches!(v.fields, Fields::Unit))
    {
        refusals.refuse(
            &variant.fields,
            "variants of kernels have no fields; use a struct with the enum and the values beside it",
        );
    }
    if !input.generics.params.is_empty() {
        refusals.refuse(
            &input.generics,
            "an enum without fields has no use for parameters",
        );
    }
    if data.variants.is_empty() {
        refusals.refuse(&input.ident, "an enum without variants has no values");
    }
    as_integer(&input.ident, data, &repr)
}

/// The integer type that an enum is laid out as.
fn integer_of(input: &DeriveInput) -> Option<Ident> {
    const INTEGERS: [&str; 8] = ["u8", "u16", "u32", "u64", "i8", "i16", "i32", "i64"];
    match representation(&input.attrs).as_slice() {
        [word] if INTEGERS.contains(&word.as_str()) => {
            Some(Ident::new(word, before(input.ident.span())))
        }
        _ => None,
    }
}

/// An enum without fields as its integer type, of which it has some values.
fn as_integer(name: &Ident, data: &DataEnum, repr: &Ident) -> TokenStream {
    let root = root();
    let variants: Vec<&Ident> = data.variants.iter().map(|v| &v.ident).collect();
    let proof = crate::comparison::of_enum(name, variants.first().copied());
    quote! {
        #[diagnostic::do_not_recommend]
        impl #root::DeviceType for #name {
            const FORM: &'static #root::TypeForm = <#repr as #root::DeviceType>::FORM;
            fn scalars(&self, __kiln_out: &mut ::std::vec::Vec<#root::Constant>) {
                #root::DeviceType::scalars(&(*self as #repr), __kiln_out);
            }
        }

        const _: () = assert!(
            ::core::mem::size_of::<#name>() == ::core::mem::size_of::<#repr>()
                && ::core::mem::align_of::<#name>() == ::core::mem::align_of::<#repr>(),
            "the enum does not lie as its integer type"
        );

        #proof

        // SAFETY: the assertion above proves the layout, and `is_value` tells which integers are
        // variants.
        #[diagnostic::do_not_recommend]
        unsafe impl #root::KernelType for #name {
            const ANY_BITS: bool = false;
            fn is_value(__kiln_bytes: &[u8]) -> bool {
                let Ok(__kiln_bytes) = __kiln_bytes.try_into() else {
                    return false;
                };
                let __kiln_value = #repr::from_ne_bytes(__kiln_bytes);
                [#(#name::#variants as #repr),*].contains(&__kiln_value)
            }
        }
    }
}
