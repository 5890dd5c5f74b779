//! Const parameters that are arguments of types, `N` of `x: Stack<T, N>`: how such a type lies in memory rustc alone can
//! say, for one number. So a function with such a parameter is described for each number that it is used with, as one
//! with a trait of the user's is for each type ([`crate::dispatch`]).

use proc_macro2::{Ident, TokenStream, TokenTree};
use quote::ToTokens;
use syn::visit::Visit;
use syn::{AngleBracketedGenericArguments, ExprPath, ItemFn, TypePath};

use crate::option::parts_of_type;

/// The const parameters of a function that are arguments of types in it.
pub(crate) fn consts(item: &ItemFn) -> Vec<Ident> {
    let params = item.sig.generics.const_params();
    let params: Vec<Ident> = params.map(|param| param.ident.clone()).collect();
    if params.is_empty() {
        return params;
    }
    let mut arguments = Arguments(TokenStream::new());
    arguments.visit_signature(&item.sig);
    arguments.visit_block(&item.block);
    let is_one = |name: &Ident| names(arguments.0.clone(), name);
    params.into_iter().filter(is_one).collect()
}

/// The arguments of types, all in a row.
struct Arguments(TokenStream);

impl Arguments {
    fn add(&mut self, arguments: &syn::PathArguments) {
        if let syn::PathArguments::AngleBracketed(list) = arguments {
            self.0.extend(list.args.to_token_stream());
        }
    }
}

impl Visit<'_> for Arguments {
    fn visit_type_path(&mut self, ty: &TypePath) {
        match parts_of_type(ty) {
            Some(parts) => parts.into_iter().for_each(|part| self.visit_type(part)),
            None => ty.path.segments.iter().for_each(|s| self.add(&s.arguments)),
        }
    }

    /// Of a function by its path the arguments are those of the function; the IR has them.
    fn visit_expr_path(&mut self, path: &ExprPath) {
        let segments = path.path.segments.iter();
        let is_type = |s: &&syn::PathSegment| s.ident.to_string().starts_with(char::is_uppercase);
        segments
            .filter(is_type)
            .for_each(|s| self.add(&s.arguments));
    }

    fn visit_path(&mut self, path: &syn::Path) {
        path.segments.iter().for_each(|s| self.add(&s.arguments));
    }

    fn visit_macro(&mut self, of: &syn::Macro) {
        if let Ok(ty) = syn::parse2::<syn::Type>(of.tokens.clone()) {
            self.visit_type(&ty);
        }
    }

    // Those of a method that is called.
    fn visit_angle_bracketed_generic_arguments(&mut self, _: &AngleBracketedGenericArguments) {}
}

/// Whether a name is among tokens.
pub(crate) fn names(tokens: TokenStream, name: &Ident) -> bool {
    tokens.into_iter().any(|tree| match tree {
        TokenTree::Ident(ident) => ident == *name,
        TokenTree::Group(group) => names(group.stream(), name),
        _ => false,
    })
}
