//! The builder is one variable wherever it is named.
//!
//! Generated calls carry the positions of the user's tokens, which decide lines and columns in errors.
//! Where those come through a `macro_rules!`, they bring its hygiene, too, and `__kiln` in two places
//! would be two variables.

use proc_macro2::{Group, Span, TokenStream, TokenTree};

/// The variable, and the arguments of a closure. Other names that the macros make up are the same identifier at all their places, made
/// once and copied; and the ones in the checked copy must not look as if a macro had made them, or
/// rustc points at less than the user's statement.
const NAMES: [&str; 2] = ["__kiln", "__kiln_in"];

/// The tokens with the builder resolved where the macro is called; positions stay.
pub(crate) fn unified(tokens: TokenStream) -> TokenStream {
    match names_builder(tokens.clone()) {
        true => tokens.into_iter().map(unified_tree).collect(),
        false => tokens,
    }
}

fn names_builder(tokens: TokenStream) -> bool {
    tokens.into_iter().any(|tree| match tree {
        TokenTree::Ident(ident) => NAMES.iter().any(|name| ident == name),
        TokenTree::Group(group) => names_builder(group.stream()),
        _ => false,
    })
}

fn unified_tree(tree: TokenTree) -> TokenTree {
    match tree {
        TokenTree::Ident(mut ident) if NAMES.iter().any(|name| ident == name) => {
            ident.set_span(ident.span().resolved_at(Span::call_site()));
            ident.into()
        }
        TokenTree::Group(group) => {
            let mut new = Group::new(group.delimiter(), unified(group.stream()));
            new.set_span(group.span());
            new.into()
        }
        other => other,
    }
}
