//! The type of a kernel's name, and its launch whose arguments rustc checks.
//!
//! A kernel `fn k<T: Num>(a: T, x: &[T], y: &mut [T])` has a method
//! `k.launch(&jit, (grid, block), a: T, x: &impl ToSlice<T>, y: &mut impl ToSliceMut<T>)`. Types are as written, save
//! `usize` inside of others, which has 32 bits in kernels: a `&[usize]` is a buffer of `u32`. A type that is written with a lifetime
//! is a view, for which whatever becomes it is passed. Its method `k.record(g, (grid, block), a, &x, &mut y)` is the same
//! for a graph, whose slots stand for the arguments.

use std::collections::HashSet;

use proc_macro2::{Ident, Span, TokenStream, TokenTree};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::visit_mut::VisitMut;
use syn::{Attribute, GenericParam, Generics, Lifetime, Pat, Type, parse_quote};

use crate::body::plain_name;
use crate::call::is_number;
use crate::dispatch::with_functions;
use crate::function::{root, root_at};
use crate::position::{again, before, last_of, until};
use crate::signature::Signature;
use crate::view::first_lifetime;

/// The struct that is the type of a kernel's static, with what can be done with it.
pub(crate) fn kernel_type(
    vis: &syn::Visibility,
    attributes: &[&Attribute],
    signature: &Signature,
) -> TokenStream {
    let cfgs: Vec<_> = attributes
        .iter()
        .filter(|a| a.path().is_ident("cfg"))
        .collect();
    let methods = [launch(vis, signature), record(vis, signature)];
    type_with(vis, &cfgs, signature, &quote!(#(#methods)*))
}

/// The struct that is the type of the static of a kernel that is one for each type of some parameters. `describe` is
/// the function that describes it for them.
pub(crate) fn kernels_type(
    vis: &syn::Visibility,
    attributes: &[&Attribute],
    signature: &Signature,
    describe: &TokenStream,
) -> TokenStream {
    let cfgs = attributes.iter().filter(|a| a.path().is_ident("cfg"));
    let cfgs: Vec<_> = cfgs.collect();
    let (root, name) = (root(), again(&signature.name));
    let doc = format!("The type of the kernel `{}`.", plain_name(&name));
    let mut generics = signature.described_generics();
    let params = std::mem::take(&mut generics.params).into_iter();
    let is_asked = |param: &GenericParam| match param {
        GenericParam::Type(param) => signature.is_dispatched(&param.ident),
        GenericParam::Const(param) => signature.fixed.contains(&param.ident),
        GenericParam::Lifetime(_) => false,
    };
    generics.params = params.filter(is_asked).collect();
    if let Some(clause) = &mut generics.where_clause {
        let predicates = std::mem::take(&mut clause.predicates).into_iter();
        let is_asked = |predicate: &syn::WherePredicate| match predicate {
            syn::WherePredicate::Type(of) => signature
                .dispatched
                .iter()
                .any(|param| mentions(of.bounded_ty.to_token_stream(), &param.name)),
            _ => false,
        };
        clause.predicates = predicates.filter(is_asked).collect();
    }
    let (asked, _, clause) = generics.split_for_impl();
    let (instance, launch, record) = (
        signature.instance(),
        launch(vis, signature),
        record(vis, signature),
    );
    quote! {
        #(#cfgs)*
        #[doc = #doc]
        #[allow(non_camel_case_types, reason = "it has the name of the function")]
        #vis struct #name { kernels: #root::LazyKernels }

        #(#cfgs)*
        impl #name {
            /// The kernel for these types, as `jit.launch` takes one.
            #[allow(dead_code, private_bounds, reason = "each kernel has it, with its parameters")]
            #vis fn of #asked (&self) -> &'static #root::LazyKernel #clause {
                #describe
                self.kernels.of(__kiln_describe #instance)
            }

            #launch
            #record
        }
    }
}

/// The kernel of a launch: of one that is for each type, that of the types of the launch.
fn launched_kernel(signature: &Signature) -> TokenStream {
    let names = signature
        .generics
        .params
        .iter()
        .filter_map(|param| match param {
            GenericParam::Type(param) => {
                Some(&param.ident).filter(|name| signature.is_dispatched(name))
            }
            GenericParam::Const(param) => {
                Some(&param.ident).filter(|name| signature.fixed.contains(name))
            }
            GenericParam::Lifetime(_) => None,
        });
    match signature.is_of_several() {
        false => quote!(&self.kernel),
        true => quote!(self.of::<#(#names),*>()),
    }
}

/// The type of a kernel whose signature is refused: its launch takes anything.
pub(crate) fn type_of_any(vis: &syn::Visibility, signature: &Signature) -> TokenStream {
    let types = (0..signature.params.len()).map(|i| format_ident!("T{i}"));
    let types: Vec<Ident> = types.collect();
    let root = root();
    let launch = quote! {
        #[allow(dead_code, clippy::too_many_arguments, reason = "its kernel is refused")]
        #vis fn launch<#(#types),*>(
            &self,
            _: &#root::Jit,
            _: impl ::core::convert::Into<#root::LaunchConfig>,
            #(_: #types),*
        ) -> ::core::result::Result<(), #root::Error> {
            self.kernel.get().map(|_| ())
        }

        #[allow(dead_code, clippy::too_many_arguments, reason = "its kernel is refused")]
        #vis fn record<#(#types),*>(
            &self,
            _: &mut #root::Recording,
            _: impl ::core::convert::Into<#root::LaunchConfig>,
            #(_: #types),*
        ) -> ::core::result::Result<(), #root::Error> {
            self.kernel.get().map(|_| ())
        }
    };
    type_with(vis, &[], signature, &launch)
}

fn type_with(
    vis: &syn::Visibility,
    cfgs: &[&&Attribute],
    signature: &Signature,
    launch: &TokenStream,
) -> TokenStream {
    let (root, name) = (root(), again(&signature.name));
    let doc = format!("The type of the kernel `{}`.", plain_name(&name));
    quote! {
        #(#cfgs)*
        #[doc = #doc]
        #[allow(non_camel_case_types, reason = "it has the name of the function")]
        #vis struct #name { kernel: #root::LazyKernel }

        #(#cfgs)*
        impl ::core::ops::Deref for #name {
            type Target = #root::LazyKernel;
            fn deref(&self) -> &#root::LazyKernel {
                &self.kernel
            }
        }

        #(#cfgs)*
        impl #name {
            #launch
        }
    }
}

/// The documentation of the method `launch`, as one text: it is part of what each kernel costs rustc.
const LAUNCH: &str = " Launches the kernel with arguments of the types that it declares. The second \
    argument is\n a `LaunchConfig`, or the grid and the block.\n\n # Errors\n As `Jit::launch`, save \
    that types and numbers of arguments are right.";

/// The method `launch`.
fn launch(vis: &syn::Visibility, signature: &Signature) -> TokenStream {
    let (root, doc) = (root(), LAUNCH);
    // Hygiene keeps these apart from parameters of the kernel; and no item, kernels among them, has such a name,
    // which no variable may shadow.
    let own = |name: &str| Ident::new(name, Span::mixed_site());
    let (jit, config) = (own("jit_"), own("config_"));
    let names: Vec<Ident> = (signature.params.iter().enumerate())
        .map(|(i, param)| argument_name(i, &param.pattern))
        .collect();
    let (generics, types) = with_named_lifetimes(signature);
    let params = names.iter().zip(types.iter().map(host_type));
    let params = params.map(|(name, ty)| quote!(#name: #ty));
    let generics = launch_generics(generics, signature);
    let (generics, _, clause) = generics.split_for_impl();
    let kernel = launched_kernel(signature);
    let body = launch_body(
        &kernel,
        [&jit, &config],
        &given_consts(signature),
        &names,
        &types,
    );
    quote! {
        #[doc = #doc]
        #[allow(dead_code, clippy::too_many_arguments, reason = "each kernel has it, with its parameters")]
        #vis fn launch #generics (
            &self,
            #jit: &#root::Jit,
            #config: impl ::core::convert::Into<#root::LaunchConfig>,
            #(#params),*
        ) -> ::core::result::Result<(), #root::Error> #clause {
            #body
        }
    }
}

/// The documentation of the method `record`.
const RECORD: &str = " Records a launch in a graph: `launch` with slots in the place of arguments. That of \
    `&x` is passed as\n `&slot`, that of `&mut x` as `&slot` or `&mut slot`, that of a number as \
    `&slot`.\n\n # Errors\n As `Recording::launch`, save that types and numbers of arguments are right.";

/// The method `record`.
fn record(vis: &syn::Visibility, signature: &Signature) -> TokenStream {
    let (root, doc) = (root(), RECORD);
    let own = |name: &str| Ident::new(name, Span::mixed_site());
    let (graph, config) = (own("graph_"), own("config_"));
    let names: Vec<Ident> = (signature.params.iter().enumerate())
        .map(|(i, param)| argument_name(i, &param.pattern))
        .collect();
    let (generics, types) = with_named_lifetimes(signature);
    let generics = launch_generics(generics, signature);
    let params = names
        .iter()
        .zip(types.iter().map(|ty| slot_type(ty, signature)));
    let params = params.map(|(name, ty)| quote!(#name: #ty));
    let args = names.iter().zip(&types).map(|(name, ty)| match ty {
        ty if is_view(ty) => quote!(#root::Viewed::of(#name)?.into_arg()),
        Type::Reference(reference) if reference.mutability.is_none() => {
            quote!(#root::ReadSlot::read_arg(#name))
        }
        Type::Reference(_) => quote!(#root::IntoArg::into_arg(#name)),
        ty if is_struct(ty, signature) => quote!(#root::RecordedStruct::recorded_arg(&#name)),
        _ => quote!(#root::RecordedValue::recorded_arg(&#name)),
    });
    let (generics, _, clause) = generics.split_for_impl();
    let (consts, kernel) = (given_consts(signature), launched_kernel(signature));
    quote! {
        #[doc = #doc]
        #[allow(dead_code, clippy::too_many_arguments, reason = "each kernel has it, with its parameters")]
        #vis fn record #generics (
            &self,
            #graph: &mut #root::Recording,
            #config: impl ::core::convert::Into<#root::LaunchConfig>,
            #(#params),*
        ) -> ::core::result::Result<(), #root::Error> #clause {
            #graph.launch_typed(
                #kernel,
                ::core::convert::Into::into(#config),
                &#consts,
                &[#(#args),*],
            )
        }
    }
}

/// The const parameters that no argument determines, by name.
fn given_consts(signature: &Signature) -> TokenStream {
    let consts = unbound_consts(signature).map(|name| {
        let text = plain_name(name);
        quote!((#text, #name as i128))
    });
    quote!([#(#consts),*])
}

/// The launch of what was launched before, whose arguments are written to a block here, and else by a list of them.
fn launch_body(
    kernel: &TokenStream,
    [jit, config]: [&Ident; 2],
    consts: &TokenStream,
    names: &[Ident],
    types: &[Type],
) -> TokenStream {
    let root = root();
    let own = |name: &str| Ident::new(name, Span::mixed_site());
    let (packing, to, list) = (own("packing_"), own("to_"), own("consts_"));
    let launched = own("launched_");
    let (block, read, written) = (own("block_"), own("read_"), own("written_"));
    let passed = passed(names, types);
    let args = names.iter().zip(types).map(|(name, ty)| match is_view(ty) {
        true => quote!(#name.into_arg()),
        false => quote!(#root::IntoArg::into_arg(#name)),
    });
    let pack = names.iter().zip(types).map(|(name, ty)| {
        let call = match is_view(ty) {
            true => quote!(#root::Viewed::pack),
            false => quote!(#root::IntoArg::pack),
        };
        quote!(let #packing = #call(&#name, #packing, &mut #to);)
    });
    let (bytes, reads, writes) = room(types);
    quote! {
        let #config: #root::LaunchConfig = ::core::convert::Into::into(#config);
        let #list: &[(&str, i128)] = &#consts;
        #(#passed)*
        let (mut #block, mut #read, mut #written) = (
            [0; #bytes],
            [::core::option::Option::None; #reads],
            [::core::option::Option::None; #writes],
        );
        let #packing = #jit.packing();
        let mut #to = #root::Parameters {
            bytes: &mut #block,
            read: &mut #read,
            written: &mut #written,
        };
        #(#pack)*
        let #launched = match #packing.done(#to) {
            ::core::option::Option::Some(mut #to) => {
                #jit.launch_packed(#kernel, &#config, #list, &mut #to)
            }
            ::core::option::Option::None => ::core::result::Result::Ok(false),
        };
        match #launched {
            ::core::result::Result::Ok(true) => ::core::result::Result::Ok(()),
            ::core::result::Result::Ok(false) => {
                #jit.launch_typed(#kernel, #config, #list, #packing.key(), &[#(#args),*])
            }
            ::core::result::Result::Err(error) => ::core::result::Result::Err(error),
        }
    }
}

/// What makes of arguments what is passed: buffers of what has elements, and views.
fn passed(names: &[Ident], types: &[Type]) -> Vec<TokenStream> {
    let root = root();
    let passed = names.iter().zip(types).map(|(name, ty)| match ty {
        ty if is_view(ty) => quote!(let #name = #root::Viewed::of(#name)?;),
        Type::Reference(reference) if matches!(*reference.elem, Type::Slice(_)) => {
            match reference.mutability {
                Some(_) => quote!(let #name = #root::ToSliceMut::to_slice_mut(#name)?;),
                None => quote!(let #name = #root::ToSlice::to_slice(#name)?;),
            }
        }
        _ => TokenStream::new(),
    });
    passed.collect()
}

/// Bytes of a block with room for the arguments and what is hidden, and how many of them may be buffers that are read
/// and that are written.
fn room(types: &[Type]) -> (usize, usize, usize) {
    /// More than most views have.
    const FIELDS: usize = 8;
    let bytes = |ty: &Type| match ty {
        ty if is_view(ty) => 16 * FIELDS,
        Type::Path(path) if path.path.get_ident().is_some_and(is_word) => 4,
        // An address and a length, or what is aligned by as much; what is larger is no argument of this way.
        _ => 16,
    };
    let fields = FIELDS * types.iter().filter(|ty| is_view(ty)).count();
    let of = |mutable: bool| {
        let is_one =
            |ty: &&Type| matches!(ty, Type::Reference(r) if r.mutability.is_some() == mutable);
        types.iter().filter(is_one).count() + fields
    };
    (
        types.iter().map(bytes).sum::<usize>() + 32,
        of(false),
        of(true),
    )
}

/// Whether a number has at most 4 bytes.
fn is_word(name: &Ident) -> bool {
    is_number(name) && !name.to_string().ends_with("64") && !name.to_string().ends_with("128")
}

/// Whether whatever becomes a view is passed.
fn is_view(ty: &Type) -> bool {
    !matches!(ty, Type::Reference(_)) && first_lifetime(ty).is_some()
}

/// The name of an argument: that of the parameter, if it has one.
fn argument_name(index: usize, pattern: &Pat) -> Ident {
    match pattern {
        Pat::Ident(ident) => again(&ident.ident),
        _ => format_ident!("parameter{index}", span = before(pattern.span())),
    }
}

/// What the host passes for a parameter.
fn host_type(ty: &Type) -> TokenStream {
    let (root, span) = (root_at(ty.span()), before(ty.span()));
    if let Type::Reference(reference) = ty
        && let Type::Slice(slice) = &*reference.elem
    {
        let (lifetime, mutability) = (&reference.lifetime, &reference.mutability);
        let element = with_width(slice.elem.to_token_stream());
        let of = match mutability {
            Some(_) => quote_spanned!(span=> ToSliceMut),
            None => quote_spanned!(span=> ToSlice),
        };
        let buffer = quote_spanned! {span=>
            &#lifetime #mutability (impl #root::#of<#element> + ?::core::marker::Sized)
        };
        return until(last_of(ty), buffer);
    }
    if let Some(lifetime) = first_lifetime(ty) {
        let any = quote_spanned!(span=> impl #root::IntoView<#lifetime, #ty>);
        return until(last_of(ty), any);
    }
    value_type(ty)
}

/// Whether a value is of a type of the user's that mentions no parameter of the kernel.
fn is_struct(ty: &Type, signature: &Signature) -> bool {
    own_type(ty).is_some() && is_closed(ty, signature)
}

/// What a recording is given for a parameter.
fn slot_type(ty: &Type, signature: &Signature) -> TokenStream {
    let (root, span) = (root_at(ty.span()), before(ty.span()));
    if let Type::Reference(reference) = ty
        && let Type::Slice(slice) = &*reference.elem
    {
        let element = with_width(slice.elem.to_token_stream());
        let slot = match reference.mutability {
            Some(_) => quote_spanned!(span=> &mut #root::SlotMut<#element>),
            None => quote_spanned!(span=> &impl #root::ReadSlot<#element>),
        };
        return until(last_of(ty), slot);
    }
    if first_lifetime(ty).is_some() {
        return host_type(ty);
    }
    // Named in an `impl`, a type that lacks its lifetime would have a second error: it is compared when it is recorded.
    if is_struct(ty, signature) {
        return quote_spanned!(span=> impl #root::RecordedStruct);
    }
    let value = value_type(ty);
    until(
        last_of(ty),
        quote_spanned!(span=> impl #root::RecordedValue<#value>),
    )
}

/// What the host passes for a value. A `usize` is one: the launch looks whether it fits. What lies in memory has
/// the width that it has there.
pub(crate) fn value_type(ty: &Type) -> TokenStream {
    match ty {
        Type::Paren(paren) => value_type(&paren.elem),
        Type::Group(group) => value_type(&group.elem),
        Type::Path(path) if path.path.is_ident("usize") || path.path.is_ident("isize") => {
            ty.to_token_stream()
        }
        _ => with_width(ty.to_token_stream()),
    }
}

/// The signature with a name for each lifetime of a view that has none: an `impl` takes no others.
fn with_named_lifetimes(signature: &Signature) -> (Generics, Vec<Type>) {
    let mut generics = signature.generics.clone();
    let mut types = Vec::new();
    for (i, param) in signature.params.iter().enumerate() {
        let mut ty = param.ty.clone();
        if !matches!(ty, Type::Reference(_)) {
            let taken = generics
                .lifetimes()
                .map(|param| param.lifetime.ident.to_string());
            let taken: HashSet<String> = taken.collect();
            // No lifetime has the name of a keyword.
            let mut name = match argument_name(i, &param.pattern).to_string() {
                name if name.starts_with("r#") => format!("parameter{i}"),
                name => name,
            };
            while taken.contains(&name) {
                name.push('_');
            }
            name_lifetimes(&name, &mut ty, &mut generics);
        }
        types.push(ty);
    }
    (generics, types)
}

/// Gives `'_` in a type a name, and declares that if it is there.
pub(crate) fn name_lifetimes(name: &str, ty: &mut Type, generics: &mut Generics) {
    let name = name.to_owned();
    let mut named = Named {
        name,
        is_used: false,
    };
    named.visit_type_mut(ty);
    if named.is_used {
        let lifetime = Lifetime::new(&format!("'{}", named.name), Span::call_site());
        generics.params.insert(0, parse_quote!(#lifetime));
    }
}

/// Gives `'_` a name.
struct Named {
    name: String,
    is_used: bool,
}

impl VisitMut for Named {
    fn visit_lifetime_mut(&mut self, lifetime: &mut Lifetime) {
        if lifetime.ident == "_" {
            lifetime.ident = Ident::new(&self.name, before(lifetime.ident.span()));
            self.is_used = true;
        }
    }
}

/// A type with the integers that `usize` and `isize` are in kernels.
pub(crate) fn with_width(tokens: TokenStream) -> TokenStream {
    let replaced = |tree: TokenTree| -> TokenTree {
        match tree {
            TokenTree::Ident(ident) if ident == "usize" => {
                Ident::new("u32", before(ident.span())).into()
            }
            TokenTree::Ident(ident) if ident == "isize" => {
                Ident::new("i32", before(ident.span())).into()
            }
            TokenTree::Group(group) => {
                let inner = with_width(group.stream());
                let mut new = proc_macro2::Group::new(group.delimiter(), inner);
                new.set_span(group.span());
                new.into()
            }
            other => other,
        }
    };
    tokens.into_iter().map(replaced).collect()
}

/// The generics of the kernel, with the bounds of what lies in buffers.
fn launch_generics(mut generics: Generics, signature: &Signature) -> Generics {
    let root = root();
    generics = with_functions(&generics, &signature.dispatched);
    let mut names = Vec::new();
    for param in &mut generics.params {
        if let GenericParam::Type(param) = param {
            names.push(param.ident.clone());
            param.bounds.push(parse_quote!(#root::KernelType));
        }
    }
    let clause = generics.make_where_clause();
    let mut seen = HashSet::new();
    for param in &signature.params {
        let ty = match &param.ty {
            Type::Reference(reference) => match &*reference.elem {
                Type::Slice(slice) => &slice.elem,
                _ => continue,
            },
            // Its own `impl` says so.
            ty if first_lifetime(ty).is_some() => continue,
            ty => ty,
        };
        let tokens = ty.to_token_stream();
        let is_open = names.iter().any(|name| mentions(tokens.clone(), name));
        let is_param = names.iter().any(|name| *name == tokens.to_string());
        if is_open && !is_param && seen.insert(tokens.to_string()) {
            clause.predicates.push(parse_quote!(#ty: #root::KernelType));
        }
    }
    for ty in declared_types(signature) {
        let (span, root) = (ty.span(), root_at(ty.span()));
        let bound = quote_spanned!(before(span)=> #root::KernelType);
        let bound = until(last_of(ty), bound);
        clause.predicates.push(parse_quote!(#ty: #bound));
    }
    generics
}

/// The user's own types in the parameters of a kernel. The launch has a bound that each is what kernels hold, which
/// has the position of the type; the description takes it for granted: one mistake, one error.
pub(crate) fn declared_types(signature: &Signature) -> Vec<&Type> {
    let mut seen = HashSet::new();
    let types = signature
        .params
        .iter()
        .filter_map(|param| own_type(&param.ty));
    let types = types.filter(|ty| seen.insert(ty.to_token_stream().to_string()));
    types.filter(|ty| is_closed(ty, signature)).collect()
}

/// Whether a type mentions no parameter of the kernel.
fn is_closed(ty: &Type, signature: &Signature) -> bool {
    let params = signature.generics.params.iter();
    let mut names = params.map(|param| match param {
        GenericParam::Type(param) => &param.ident,
        GenericParam::Const(param) => &param.ident,
        GenericParam::Lifetime(param) => &param.lifetime.ident,
    });
    !names.any(|name| mentions(ty.to_token_stream(), name))
}

/// The type of a value or of the elements of a slice, if it has a name that is no number's; none of what borrows.
fn own_type(ty: &Type) -> Option<&Type> {
    match ty {
        ty if ty.to_token_stream().to_string().contains('\'') => None,
        Type::Reference(reference) => own_type(&reference.elem),
        Type::Slice(slice) => own_type(&slice.elem),
        Type::Array(array) => own_type(&array.elem),
        Type::Paren(paren) => own_type(&paren.elem),
        Type::Group(group) => own_type(&group.elem),
        Type::Path(path) => match path.path.get_ident() {
            Some(name) if is_number(name) || name == "bool" => None,
            _ => Some(ty),
        },
        _ => None,
    }
}

/// The const parameters that no argument's type determines.
fn unbound_consts(signature: &Signature) -> impl Iterator<Item = &Ident> {
    let names = signature.consts.iter().map(|(name, _)| name);
    names.filter(|name| {
        let mut types = signature.params.iter().map(|p| p.ty.to_token_stream());
        !types.any(|ty| mentions(ty, name))
    })
}

fn mentions(tokens: TokenStream, name: &Ident) -> bool {
    tokens.into_iter().any(|tree| match tree {
        TokenTree::Ident(ident) => ident == *name,
        TokenTree::Group(group) => mentions(group.stream(), name),
        _ => false,
    })
}
