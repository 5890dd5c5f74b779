//! `#[device_fn]` on an `impl` block.
//!
//! The block stays as it is. Beside it each function in it is described as a free one is, with the
//! generics of the block before its own, `Self` written out and `self` under another name; and the type
//! implements `Method` and `AssociatedFn` for the number of its name, by which calls in kernels find it
//! (`device-stdlib/src/plain/resolve.rs`). What a block of a trait has are methods of the type in kernels, too. A block that
//! implements an operator has one function, which operators in
//! kernels find as `Operator` (`device-stdlib/src/plain/operator.rs`). With `#[device_fn(foreign)]` the block does not
//! stay: it describes what a type of another crate has already.

use proc_macro2::{Ident, Literal, TokenStream};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::visit::Visit;
use syn::visit_mut::VisitMut;
use syn::{
    Attribute, Expr, FnArg, GenericArgument, GenericParam, Generics, ImplItem, ImplItemFn, ItemFn,
    ItemImpl, Meta, Path, PathArguments, Type, parse_quote,
};

use crate::body::plain_name;
use crate::call::{is_number, number_of};
use crate::checked::{for_host, unfit_lints};
use crate::comparison::own_comparison;
use crate::dispatch::{Dispatched, TraitFunction, pointer_to, trait_functions, with_functions};
use crate::function::{Kind, Parts, name_impls, root, root_at};
use crate::itself::{Again, WithoutSelf, self_at};
use crate::launch::name_lifetimes;
use crate::position::before;
use crate::refusal::{CLOSURE_TO_METHOD, Refusals};
use crate::signature::Signature;

/// Expands the attribute on an `impl` block.
pub(crate) fn expand(attribute: &TokenStream, mut block: ItemImpl) -> TokenStream {
    let mut refusals = Refusals::default();
    let is_foreign = attribute.to_string() == "foreign";
    check_block(attribute, &block, &mut refusals);
    name_impls_in(&mut block);
    let operator = block.trait_.as_ref().map(|(_, of, _)| operator_trait(of));
    let output = block.items.iter().find_map(|item| match item {
        ImplItem::Type(item) if item.ident == "Output" => Some(item.ty.clone()),
        _ => None,
    });
    let mut described = TokenStream::new();
    let (mut self_ty, mut generics) = ((*block.self_ty).clone(), block.generics.clone());
    // One lifetime wherever the type is written out, as it is one of the block.
    name_lifetimes("__kiln_view", &mut self_ty, &mut generics);
    if let Some(ty) = self_path(&self_ty)
        && !is_of(&block, ELEMENT_MUT)
        && !is_of_number(&block)
    {
        let signature = Signature::of_impl(&generics, &mut refusals);
        let (declared, generics) = (&signature.generics, signature.described_generics());
        let operator = operator.flatten();
        let is_operator = operator.is_some();
        let right = operator.flatten();
        let of = Of {
            ty: &ty,
            is_foreign,
            operator: is_operator,
            element: is_of(&block, ELEMENT),
            compares: crate::comparison::function_of(&block).is_some(),
            right: right.as_ref(),
            output: output.as_ref(),
            self_ty: &self_ty,
            generics: &generics,
            declared,
            dispatched: &signature.dispatched,
            is_refused: !refusals.is_empty(),
        };
        let mut functions = Vec::new();
        for item in &mut block.items {
            if let ImplItem::Fn(function) = item {
                let said = take_said(function, &mut refusals);
                described.extend(of.function(function, said, &mut refusals));
                functions.push(of.trait_function(function));
            }
        }
        if let (Some((_, path, _)), false, false) = (&block.trait_, is_operator, is_foreign) {
            described.extend(trait_functions(path, &self_ty, &generics, &functions));
        }
        read_bounds(&mut block.generics);
    }
    for_host_in(&mut block);
    let (lints, errors) = (unfit_lints(), refusals.into_tokens());
    match is_foreign {
        true => quote!(#described #errors),
        false => quote!(#lints #block #described #errors),
    }
}

/// Names what is written `impl Num` in the functions of a block. Those of a trait are as that has them.
fn name_impls_in(block: &mut ItemImpl) {
    let is_inherent = block.trait_.is_none();
    for item in block.items.iter_mut().filter(|_| is_inherent) {
        if let ImplItem::Fn(function) = item {
            name_impls(&mut function.sig);
        }
    }
}

/// The functions of a block as the host has them.
fn for_host_in(block: &mut ItemImpl) {
    for item in &mut block.items {
        if let ImplItem::Fn(function) = item {
            function.block = for_host(&function.block);
            read_bounds(&mut function.sig.generics);
        }
    }
}

/// The operators that types can have of their own in kernels, by their traits; those that assign have `Assign` behind
/// it.
const OPERATORS: &[&str] = &[
    "Add", "Sub", "Mul", "Div", "Rem", "BitAnd", "BitOr", "BitXor", "Shl", "Shr",
];

/// The trait of elements, `a[(i, j)]`.
const ELEMENT: &str = "Index";
/// The trait of elements that are assigned.
const ELEMENT_MUT: &str = "IndexMut";

/// What is right of the operator that a trait is for: `None` inside for the type itself, or for nothing. `None` for
/// other traits.
fn operator_trait(of: &Path) -> Option<Option<Type>> {
    let last = of.segments.last()?;
    let name = last.ident.to_string();
    let binary =
        name == ELEMENT || OPERATORS.contains(&name.strip_suffix("Assign").unwrap_or(&name));
    if !binary && name != "Neg" && name != "Not" {
        return None;
    }
    let unary = (!binary).then(|| parse_quote!(()));
    Some(unary.or_else(|| match &last.arguments {
        PathArguments::AngleBracketed(list) => {
            list.args.iter().find_map(|argument| match argument {
                GenericArgument::Type(ty) => Some(ty.clone()),
                _ => None,
            })
        }
        _ => None,
    }))
}

fn is_of(block: &ItemImpl, name: &str) -> bool {
    let path = block.trait_.as_ref().map(|(_, path, _)| path);
    let last = path.and_then(|path| path.segments.last());
    last.is_some_and(|last| last.ident == name)
}

/// Whether a block is of a trait for a number, and of no operator.
fn is_of_number(block: &ItemImpl) -> bool {
    let is_operator = |(_, of, _): &(_, Path, _)| operator_trait(of).is_some();
    let path = self_path(&block.self_ty);
    let name = path.as_ref().and_then(Path::get_ident);
    block.trait_.as_ref().is_some_and(|of| !is_operator(of)) && name.is_some_and(is_number)
}

fn check_block(attribute: &TokenStream, block: &ItemImpl, refusals: &mut Refusals) {
    if !attribute.is_empty() && attribute.to_string() != "foreign" {
        refusals.refuse(
            attribute,
            "`#[device_fn]` of a block takes nothing but `foreign`: write `#[device_fn(attribute(..))]` on the functions in it that it is \
             about; launch bounds belong to a kernel",
        );
    }
    if let (Some((_, of, _)), true) = (&block.trait_, is_of(block, ELEMENT_MUT)) {
        refusals.refuse(
            of,
            "kernels find what `a[(i, j)]` assigns to by `Index`, too; leave `#[device_fn]` out here",
        );
    } else if self_path(&block.self_ty).is_none() {
        refusals.refuse(
            &block.self_ty,
            "methods of kernels are those of a `#[derive(KernelType)]` type; name it here",
        );
    }
    if block.trait_.is_some() {
        let is_foreign = attribute.to_string() == "foreign";
        let ty = self_path(&block.self_ty);
        crate::comparison::check(block, ty.as_ref(), is_foreign, refusals);
        if is_of_number(block) {
            refusals.refuse(
                &block.self_ty,
                "kernels find what a trait has of types of yours alone; put the number in a `#[derive(KernelType)]` struct",
            );
        }
    }
    if let Some(token) = &block.unsafety {
        refusals.refuse(token, "kernels are safe; leave `unsafe` out");
    }
}

/// Takes `#[device_fn(..)]` off a function of a block: what stands in its parentheses.
pub(crate) fn take_said(function: &mut ImplItemFn, refusals: &mut Refusals) -> TokenStream {
    let is_ours = |attribute: &Attribute| {
        let last = attribute.path().segments.last();
        last.is_some_and(|last| last.ident == "device_fn")
    };
    let (ours, others) = std::mem::take(&mut function.attrs)
        .into_iter()
        .partition::<Vec<_>, _>(is_ours);
    function.attrs = others;
    if let Some(second) = ours.get(1) {
        refusals.refuse(
            second,
            "`#[device_fn]` is there already; write one with all of it",
        );
    }
    match ours.into_iter().next().map(|first| first.meta) {
        Some(Meta::List(list)) => list.tokens,
        _ => TokenStream::new(),
    }
}

/// The type as a path that stands in types, expressions and patterns alike.
fn self_path(ty: &Type) -> Option<Path> {
    match ty {
        Type::Group(group) => self_path(&group.elem),
        Type::Paren(paren) => self_path(&paren.elem),
        Type::Path(path) if path.qself.is_none() => {
            let mut path = path.path.clone();
            for segment in &mut path.segments {
                if let PathArguments::AngleBracketed(arguments) = &mut segment.arguments {
                    arguments.colon2_token = Some(syn::Token![::](arguments.span()));
                }
            }
            Some(path)
        }
        _ => None,
    }
}

/// Replaces the bound `KernelType` by what it means in kernels; what is wrong has been said.
fn read_bounds(generics: &mut Generics) {
    let mut said = Refusals::default();
    *generics = Signature::of_impl(generics, &mut said).generics;
}

/// A body of a trait as it is described for a type that has the trait.
pub(crate) struct Body {
    pub(crate) number: Literal,
    pub(crate) description: TokenStream,
    /// What is called.
    pub(crate) called: TokenStream,
    pub(crate) generics: Generics,
    pub(crate) receiver: Option<&'static str>,
    pub(crate) changes: bool,
}

/// What the functions of a block belong to.
pub(crate) struct Of<'a> {
    ty: &'a Path,
    self_ty: &'a Type,
    generics: &'a Generics,
    /// The generics as the block declares them.
    declared: &'a Generics,
    /// The parameters of the block that have functions by traits of the user's.
    dispatched: &'a [Dispatched],
    /// Whether type and functions are another crate's.
    is_foreign: bool,
    /// Whether the block is of an operator.
    operator: bool,
    /// Whether the operator is the index of `a[(i, j)]`.
    element: bool,
    /// Whether the block is of a comparison.
    compares: bool,
    /// What is right of the operator, if it is not the type itself.
    right: Option<&'a Type>,
    /// What `Self::Output` is.
    output: Option<&'a Type>,
    /// Whether the whole block is refused: its functions then stand for themselves without a meaning,
    /// so that their uses are no errors of their own.
    is_refused: bool,
}

impl<'a> Of<'a> {
    /// What the bodies of a trait belong to: a type parameter that has it.
    pub(crate) fn trait_itself(
        ty: &'a Path,
        self_ty: &'a Type,
        signature: &'a Signature,
    ) -> Of<'a> {
        Of {
            ty,
            self_ty,
            generics: &signature.generics,
            declared: &signature.generics,
            dispatched: &signature.dispatched,
            is_foreign: false,
            operator: false,
            element: false,
            compares: false,
            right: None,
            output: None,
            is_refused: false,
        }
    }

    /// The signature and the parts of a function without `self`, if nothing of it, or found before, is refused.
    fn read(
        &self,
        item: &ItemFn,
        said: TokenStream,
        refusals: &mut Refusals,
    ) -> Option<(Signature, Parts)> {
        let mut signature = Signature::new(Kind::Device, said, item, refusals);
        signature.is_free = false;
        if let Some((closure, _)) = signature.closures.first() {
            refusals.refuse(closure, CLOSURE_TO_METHOD);
        }
        let of_block: Vec<_> = (self.declared.const_params())
            .map(|param| param.ident.clone())
            .collect();
        check_own_types(self.dispatched, &of_block, &signature, refusals);
        signature.fix(of_block.into_iter());
        if !refusals.is_empty() {
            return None;
        }
        let parts = Parts::new(Kind::Device, &signature, item, refusals);
        refusals.is_empty().then_some((signature, parts))
    }

    /// The description of a body of a trait.
    pub(crate) fn body(
        &self,
        function: &ImplItemFn,
        said: TokenStream,
        refusals: &mut Refusals,
    ) -> Option<Body> {
        let mut own = Refusals::default();
        let receiver = receiver(function, &mut own);
        let Some((signature, parts)) = self.read(&self.free(function), said, &mut own) else {
            refusals.extend(own);
            return None;
        };
        Some(Body {
            number: number_of(&signature.name),
            description: described(&parts, &signature, &plain_name(&signature.name)),
            called: function_of(&signature),
            generics: with_functions(self.generics, self.dispatched),
            receiver,
            changes: changes(function),
        })
    }

    /// The description of a function, and the implementations that lead to it.
    fn function(
        &self,
        function: &ImplItemFn,
        said: TokenStream,
        refusals: &mut Refusals,
    ) -> TokenStream {
        if self.is_refused {
            return self.stand_in(function);
        }
        let mut own = Refusals::default();
        let receiver = receiver(function, &mut own);
        let element = self.element.then(|| element(function, &mut own));
        if let Some(None) = element {
            refusals.extend(own);
            return self.stand_in(function);
        }
        let item = match &element {
            Some(Some((_, number))) => self.free(number),
            _ => self.free(function),
        };
        let Some((signature, parts)) = self.read(&item, said, &mut own) else {
            refusals.extend(own);
            return self.stand_in(function);
        };
        let text = format!("{}::{}", path_name(self.ty), plain_name(&signature.name));
        let described = described(&parts, &signature, &text);
        let call = self.call(&function_of(&signature));
        let name = &signature.name;
        if let Some(Some((field, _))) = element {
            let element = self.own_element(&field, &call);
            return quote!(const _: () = { #described #element };);
        }
        if self.operator {
            let operator = self.own_operator(function, receiver.unwrap_or("Value"), &call);
            return quote!(const _: () = { #described #operator };);
        }
        let method = receiver.map(|how| self.method(function, how, &call));
        let bound = self.bound(function, &signature);
        let associated = self.associated_fn(name, bound.as_ref(), &call);
        let own = self.described_method(name, &quote!(), &function_of(&signature));
        let compared = self.compares.then(|| own_comparison(self.self_ty, name));
        let cfgs = function.attrs.iter().filter(|a| a.path().is_ident("cfg"));
        quote! {
            #(#cfgs)*
            const _: () = { #described #method #associated #own #compared };
        }
    }

    /// A function as the trait has it.
    fn trait_function(&self, function: &ImplItemFn) -> TraitFunction {
        let mut own = Refusals::default();
        let item = self.free(function);
        let signature = Signature::new(Kind::Device, TokenStream::new(), &item, &mut own);
        let signature =
            Some(&signature).filter(|_| !self.generics.params.is_empty() && own.is_empty());
        TraitFunction {
            name: number_of(&function.sig.ident),
            is_method: function.sig.receiver().is_some(),
            pointer: pointer_to(signature, &function.sig.generics),
        }
    }

    /// The function outside of its block.
    fn free(&self, function: &ImplItemFn) -> ItemFn {
        let mut function = function.clone();
        WithoutSelf(self.ty, self.output).visit_impl_item_fn_mut(&mut function);
        let mut sig = function.sig;
        name_impls(&mut sig);
        crate::lifetimes::name_elided(&mut sig);
        for input in &mut sig.inputs {
            if let FnArg::Receiver(receiver) = input {
                let name = self_at(receiver.self_token.span());
                let (mutability, ty) = (&receiver.mutability, &mut receiver.ty);
                // There is `self`, and no type.
                if receiver.colon_token.is_none() {
                    Again.visit_type_mut(ty);
                }
                let mutability = match receiver.reference {
                    Some(_) => &None,
                    None => mutability,
                };
                *input = parse_quote!(#mutability #name: #ty);
            }
        }
        sig.generics = joined(self.declared, &sig.generics);
        crate::lifetimes::outlive_result(&mut sig.generics);
        ItemFn {
            attrs: function.attrs,
            vis: function.vis,
            sig,
            block: Box::new(function.block),
        }
    }

    /// The type arguments of a call: those of the type, then those that are written.
    fn call(&self, function: &TokenStream) -> TokenStream {
        let root = root();
        let names = self.generics.type_params().map(|param| &param.ident);
        let is_plain = |name: &&Ident| !self.dispatched.iter().any(|of| of.name == **name);
        let names = names.filter(is_plain);
        quote! {
            fn call<'k>(
                __kiln_front: #root::Front<'k>,
                __kiln_types: &[#root::Type],
                __kiln_args: &[#root::Operand<'k>],
            ) -> #root::Operand<'k> {
                let mut __kiln_all: ::std::vec::Vec<#root::Type> =
                    ::std::vec![#(__kiln_front.builder().device_type::<#names>()),*];
                __kiln_all.extend(__kiln_types);
                let __kiln_function: &#root::LazyDeviceFn = #function;
                __kiln_function.call(__kiln_front, &__kiln_all, __kiln_args)
            }
        }
    }

    /// What stands for a function that is refused.
    fn stand_in(&self, function: &ImplItemFn) -> TokenStream {
        let root = root();
        let call = quote! {
            fn call<'k>(
                __kiln_front: #root::Front<'k>,
                _: &[#root::Type],
                _: &[#root::Operand<'k>],
            ) -> #root::Operand<'k> {
                __kiln_front.unit()
            }
        };
        let name = &function.sig.ident;
        let receiver = receiver(function, &mut Refusals::default());
        if self.element {
            return self.own_element("", &call);
        }
        if self.operator {
            return self.own_operator(function, receiver.unwrap_or("Value"), &call);
        }
        let method = receiver.map(|how| self.method(function, how, &call));
        let inline = receiver.map(|_| self.inline_stand_in(name));
        let associated = self.associated_fn(name, None, &call);
        let text = plain_name(name);
        let nothing = quote! {
            static __KILN_FUNCTION: #root::LazyDeviceFn = #root::LazyDeviceFn::new(#text, |_| {});
        };
        let own = self.described_method(name, &nothing, &quote!(&__KILN_FUNCTION));
        quote!(#method #inline #associated #own)
    }

    /// What stands for a method that is refused where it is given closures.
    fn inline_stand_in(&self, name: &Ident) -> TokenStream {
        let (root, ty, name) = (root(), self.self_ty, number_of(name));
        let (params, clause) = (self.generics.params.iter(), &self.generics.where_clause);
        quote! {
            #[diagnostic::do_not_recommend]
            impl<#(#params),*> #root::InlineMethod<#name, ()> for #ty #clause {
                fn call_inline<'k>(
                    __kiln_front: #root::Front<'k>,
                    _: &#root::InlineCall<'_, 'k>,
                ) -> #root::Operand<'k> {
                    __kiln_front.unit()
                }
            }
        }
    }

    /// The implementation by which method calls find a function.
    fn method(&self, function: &ImplItemFn, how: &'static str, call: &TokenStream) -> TokenStream {
        let (root, changes) = (root_at(function.sig.ident.span()), changes(function));
        let (ty, how) = (self.self_ty, format_ident!("{how}"));
        let name = number_of(&function.sig.ident);
        let (params, clause) = (self.generics.params.iter(), &self.generics.where_clause);
        quote_spanned! {before(ty.span())=>
            #[diagnostic::do_not_recommend]
            impl<#(#params),*> #root::Method<#name, ()> for #ty #clause {
                const RECEIVER: #root::Receiver = #root::Receiver::#how;
                const CHANGES: bool = #changes;
                #call
            }
        }
    }

    /// The implementation by which operators find a function.
    fn own_operator(
        &self,
        function: &ImplItemFn,
        how: &'static str,
        call: &TokenStream,
    ) -> TokenStream {
        let (root, ty, how) = (
            root_at(function.sig.ident.span()),
            self.self_ty,
            format_ident!("{how}"),
        );
        let name = number_of(&function.sig.ident);
        let mut right = self.right.unwrap_or(ty).clone();
        WithoutSelf(self.ty, self.output).visit_type_mut(&mut right);
        let (params, clause) = (self.generics.params.iter(), &self.generics.where_clause);
        quote_spanned! {before(ty.span())=>
            #[diagnostic::do_not_recommend]
            impl<#(#params),*> #root::Operator<#name, #right> for #ty #clause {
                const RECEIVER: #root::Receiver = #root::Receiver::#how;
                #call
            }
        }
    }

    /// The implementation by which `a[(i, j)]` finds the number of an element.
    fn own_element(&self, field: &str, call: &TokenStream) -> TokenStream {
        let (root, ty) = (root(), self.self_ty);
        let mut right = self.right.unwrap_or(ty).clone();
        WithoutSelf(self.ty, self.output).visit_type_mut(&mut right);
        let count = match &right {
            Type::Tuple(tuple) => tuple.elems.len(),
            _ => 1,
        };
        let (params, clause) = (self.generics.params.iter(), &self.generics.where_clause);
        quote_spanned! {before(ty.span())=>
            #[diagnostic::do_not_recommend]
            impl<#(#params),*> #root::ElementAt<#right> for #ty #clause {
                const FIELD: &'static str = #field;
                const COUNT: usize = #count;
                #call
            }
        }
    }

    /// The implementation by which programs name a function, with what that needs.
    fn described_method(
        &self,
        name: &Ident,
        needs: &TokenStream,
        described: &TokenStream,
    ) -> TokenStream {
        // The trait is the compiler's, and the type is not the library's.
        if self.is_foreign {
            return TokenStream::new();
        }
        let (root, ty, name) = (root(), self.self_ty, number_of(name));
        let (params, clause) = (self.generics.params.iter(), &self.generics.where_clause);
        quote_spanned! {before(ty.span())=>
            #[diagnostic::do_not_recommend]
            impl<#(#params),*> #root::DescribedMethod<#name> for #ty #clause {
                fn function() -> &'static #root::LazyDeviceFn {
                    #needs
                    #described
                }
            }
        }
    }

    /// What tells the parameters of the type by the function that rustc has found for a path: that it
    /// has these parameters and this result. A function with parameters of its own has no such bound, as
    /// they would be parameters of nothing else.
    fn bound(&self, function: &ImplItemFn, signature: &Signature) -> Option<TokenStream> {
        let has_own = (function.sig.generics.params.iter())
            .any(|param| !matches!(param, GenericParam::Lifetime(_)));
        if has_own || self.generics.params.is_empty() {
            return None;
        }
        let inputs = signature.params.iter().map(|param| &param.ty);
        let output = signature.result.as_ref().map(|ty| quote!(-> #ty));
        let mut named = function.sig.clone();
        crate::lifetimes::name_elided(&mut named);
        let lifetimes = named.generics.lifetimes().map(|l| &l.lifetime);
        Some(quote!(__KilnFn: for<#(#lifetimes),*> ::core::ops::Fn(#(#inputs),*) #output))
    }

    /// The implementation by which paths find a function.
    fn associated_fn(
        &self,
        name: &Ident,
        bound: Option<&TokenStream>,
        call: &TokenStream,
    ) -> TokenStream {
        let root = root_at(name.span());
        let (ty, name) = (self.self_ty, number_of(name));
        let params = self.generics.params.iter();
        let predicates = self.generics.where_clause.iter();
        let predicates = predicates.flat_map(|clause| &clause.predicates);
        let bounds = predicates.map(ToTokens::to_token_stream);
        let bounds = bounds.chain(bound.cloned());
        quote_spanned! {before(ty.span())=>
            #[diagnostic::do_not_recommend]
            impl<#(#params,)* __KilnFn> #root::AssociatedFn<#name, __KilnFn>
                for #ty
            where
                #(#bounds,)*
            {
                #call
            }
        }
    }
}

/// Refuses what a function of a block has no room for: types that decide what it is, but those of the block.
fn check_own_types(
    of_block: &[Dispatched],
    consts: &[Ident],
    signature: &Signature,
    refusals: &mut Refusals,
) {
    if let Some(own) = signature.fixed.iter().find(|own| !consts.contains(own)) {
        refusals.refuse(
            own,
            "a method has no const parameter of its own that is an argument of a type; write a `#[device_fn]` outside of the \
             `impl` block",
        );
    }
    let is_own = |of: &&Dispatched| of_block.iter().all(|other| other.name != of.name);
    for own in signature.dispatched.iter().filter(is_own) {
        refusals.refuse(
            &own.name,
            "a method has no type parameter of its own with a trait of yours as its bound; write a `#[device_fn]` \
             outside of the `impl` block",
        );
    }
}

/// The description, and what it is that is described.
fn described(parts: &Parts, signature: &Signature, text: &str) -> TokenStream {
    let (describe, instance) = (parts.describing_function(signature), signature.instance());
    let (root, here) = (root(), root_at(signature.name.span()));
    if signature.is_of_several() {
        return quote! {
            #describe
            static __KILN_FUNCTIONS: #root::LazyDeviceFns = #here::LazyDeviceFns::new(#text);
        };
    }
    let new = quote_spanned! {before(signature.name.span())=>
        #here::LazyDeviceFn::new(#text, __kiln_describe #instance)
    };
    quote! {
        #describe
        static __KILN_FUNCTION: #root::LazyDeviceFn = #new;
    }
}

/// What is described for a function, where an implementation is: for the types of that, if the function is one for
/// each.
fn function_of(signature: &Signature) -> TokenStream {
    let instance = signature.instance();
    match signature.is_of_several() {
        false => quote!(&__KILN_FUNCTION),
        true => quote!(__KILN_FUNCTIONS.of(__kiln_describe #instance)),
    }
}

/// The field in whose slice `index` finds an element, and the function that gives the number which it has there.
fn element(function: &ImplItemFn, refusals: &mut Refusals) -> Option<(String, ImplItemFn)> {
    let mut number = function.clone();
    let indices = function.sig.inputs.iter().nth(1);
    let has_indices = matches!(
        indices,
        Some(FnArg::Typed(param)) if matches!(&*param.ty, Type::Tuple(tuple) if tuple.elems.len() > 1)
    );
    if !has_indices {
        refusals.refuse(
            &function.sig.inputs,
            "kernels have `Index` of several numbers, `impl Index<(usize, usize)>`; write a method for others",
        );
        return None;
    }
    number.sig.output = parse_quote!(-> usize);
    let last = number.block.stmts.last_mut();
    if let Some(syn::Stmt::Expr(last, None)) = last
        && let Expr::Reference(reference) = &*last
        && let Expr::Index(index) = &*reference.expr
        && let Expr::Field(field) = &*index.expr
        && let (Expr::Path(base), syn::Member::Named(name)) = (&*field.base, &field.member)
        && base.path.is_ident("self")
    {
        let field = plain_name(name);
        *last = (*index.index).clone();
        return Some((field, number));
    }
    refusals.refuse(
        &function.block,
        "`index` of kernels ends with an element of a slice of the type, `&self.data[number]`",
    );
    None
}

/// How a function takes `self`, as the variant of `Receiver`, if it does.
fn receiver(function: &ImplItemFn, refusals: &mut Refusals) -> Option<&'static str> {
    let receiver = function.sig.receiver()?;
    if receiver.colon_token.is_some() {
        refusals.refuse(receiver, "write `self`, `&self` or `&mut self`");
    }
    Some(match (&receiver.reference, &receiver.mutability) {
        (None, _) => "Value",
        (Some(_), None) => "Shared",
        (Some(_), Some(_)) => "Mutable",
    })
}

/// Whether a function takes something that it may assign.
fn changes(function: &ImplItemFn) -> bool {
    struct Mutable(bool);
    impl<'ast> Visit<'ast> for Mutable {
        fn visit_type_reference(&mut self, reference: &'ast syn::TypeReference) {
            self.0 |= reference.mutability.is_some();
            syn::visit::visit_type_reference(self, reference);
        }
    }
    let mut mutable = Mutable(false);
    for input in &function.sig.inputs {
        match input {
            FnArg::Receiver(receiver) => mutable.visit_type(&receiver.ty),
            FnArg::Typed(param) => mutable.visit_type(&param.ty),
        }
    }
    mutable.0
}

/// Generics of a block and of a function in it.
fn joined(outer: &Generics, own: &Generics) -> Generics {
    let mut all = outer.clone();
    // Lifetimes come first.
    let is_lifetime = |param: &&GenericParam| matches!(param, GenericParam::Lifetime(_));
    let (first, last): (Vec<_>, Vec<_>) = own.params.iter().partition(is_lifetime);
    let params = first.into_iter().chain(&outer.params).chain(last);
    all.params = params.cloned().collect();
    if let Some(clause) = &own.where_clause {
        let predicates = clause.predicates.iter().cloned();
        all.make_where_clause().predicates.extend(predicates);
    }
    all
}

/// A path without its arguments, for names.
fn path_name(path: &Path) -> String {
    let segments = path.segments.iter().map(|s| plain_name(&s.ident));
    segments.last().unwrap_or_default()
}
