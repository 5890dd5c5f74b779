//! The builder is one variable wherever it is named.
//!
//! Generated calls carry the positions of the user's tokens, which decide lines and columns in errors.
//! Where those come through a `macro_rules!`, they bring its hygiene, too, and `__kiln` in two places
//! would be two variables.

use proc_macro2::{Group, Span, TokenStream, TokenTree};

/// The variable, and the arguments of a closure. Other names that the macros make up are the same
/// identifier at all their places, made once and copied; and the ones in the checked copy must not look
/// as if a macro had made them, or rustc points at less than the user's statement.
const NAMES: [&str; 2] = ["__kiln", "__kiln_in"];

/// The tokens with the builder resolved where the macro is called; positions stay.
pub(crate) fn unified(tokens: TokenStream) -> TokenStream {
    resolved(tokens.clone()).unwrap_or(tokens)
}

/// The same, of tokens that name the builder; `None` for others, which stay as they are.
fn resolved(tokens: TokenStream) -> Option<TokenStream> {
    let mut names_builder = false;
    let resolve = |tree| match tree {
        TokenTree::Ident(mut ident) if NAMES.iter().any(|name| ident == name) => {
            names_builder = true;
            ident.set_span(ident.span().resolved_at(Span::call_site()));
            ident.into()
        }
        TokenTree::Group(group) => match resolved(group.stream()) {
            Some(inner) => {
                names_builder = true;
                let mut new = Group::new(group.delimiter(), inner);
                new.set_span(group.span());
                new.into()
            }
            None => group.into(),
        },
        other => other,
    };
    let trees: Vec<TokenTree> = tokens.into_iter().map(resolve).collect();
    names_builder.then(|| trees.into_iter().collect())
}
