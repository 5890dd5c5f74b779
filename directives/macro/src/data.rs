//! `global!(..)`, `constant!(..)` and `shape!(..)`, in the function with launches and in the sequential one.

use std::collections::BTreeSet;

use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote};
use syn::visit::{self, Visit};
use syn::{Block, Error, Expr, Result, Stmt};

use crate::capture::{Kind, Variables};
use crate::clauses::{Clause, Constant, Global, Sectioned, Word};
use crate::region::present;

/// The variable that holds a slice's shape.
fn shape_of(slice: &Ident) -> Ident {
    format_ident!("__shape_{}", slice)
}

/// Whether a statement is the directive `shape!(..)`.
pub(crate) fn is_shape(statement: &Stmt) -> bool {
    matches!(statement, Stmt::Macro(held) if held.mac.path.is_ident("shape"))
}

/// Whether a statement is the directive `constant!(..)`.
pub(crate) fn is_constant(statement: &Stmt) -> bool {
    matches!(statement, Stmt::Macro(held) if held.mac.path.is_ident("constant"))
}

/// The slices that a function has in constant memory somewhere.
pub(crate) fn constants(block: &Block) -> BTreeSet<String> {
    struct Search(BTreeSet<String>);
    impl Visit<'_> for Search {
        fn visit_stmt(&mut self, statement: &Stmt) {
            if let Stmt::Macro(held) = statement
                && is_constant(statement)
                // What is wrong with it is said where it stands.
                && let Ok(Constant { clauses }) = held.mac.parse_body()
            {
                let named = clauses.iter().flat_map(|clause| &clause.slices);
                self.0.extend(named.map(|held| held.slice.to_string()));
            }
            visit::visit_stmt(self, statement);
        }
    }
    let mut search = Search(BTreeSet::new());
    search.visit_block(block);
    search.0
}

/// The slice whose shape a statement says, and how many dimensions it has.
pub(crate) fn shape(statement: &Stmt) -> Result<Sectioned> {
    let Stmt::Macro(held) = statement else {
        return Err(Error::new_spanned(statement, "the directive is no macro"));
    };
    let held = held.mac.parse_body::<Sectioned>()?;
    match held.dims.is_empty() {
        true => Err(Error::new_spanned(
            held.slice,
            "`shape!` says how many elements a slice has along each dimension: `shape!(a[rows][columns])`",
        )),
        false => Ok(held),
    }
}

/// The statement that holds a shape.
pub(crate) fn let_shape(Sectioned { slice, dims }: &Sectioned) -> TokenStream {
    let (shape, count) = (shape_of(slice), dims.len());
    quote! {
        #[allow(unused_variables, reason = "no section needs it")]
        let #shape: [usize; #count] = [#((#dims) as usize),*];
    }
}

/// What refuses a shape of another number of elements than the slice has.
pub(crate) fn check_shape(Sectioned { slice, .. }: &Sectioned) -> TokenStream {
    let shape = shape_of(slice);
    quote!(::kiln::directives::macros::check_shape(#slice.len(), &#shape)?;)
}

/// The section of a slice.
fn section(Sectioned { slice, dims }: &Sectioned) -> TokenStream {
    let bounds = dims.iter().map(|dim| match dim {
        Expr::Range(range) => quote!(::kiln::directives::macros::bounds(#range)),
        // One element.
        index => quote!(::kiln::directives::macros::bounds((#index)..=(#index))),
    });
    let (shape, bounds) = match dims.len() {
        0 => (
            quote!([#slice.len()]),
            quote!(::kiln::directives::macros::bounds(..)),
        ),
        1 => (quote!([#slice.len()]), quote!(#(#bounds),*)),
        _ => {
            let shape = shape_of(slice);
            (quote!(#shape), quote!(#(#bounds),*))
        }
    };
    quote!(::kiln::directives::macros::Section::of(#slice.len(), #shape, [#bounds])?)
}

/// What a directive does in the function with launches; `shapes` are the dimensions of slices whose shapes are said.
pub(crate) fn global(
    statement: &Stmt,
    variables: &Variables,
    shapes: &[(String, usize)],
) -> Result<TokenStream> {
    let Stmt::Macro(held) = statement else {
        return Err(Error::new_spanned(statement, "the directive is no macro"));
    };
    let clauses = match is_constant(statement) {
        true => held.mac.parse_body::<Constant>()?.clauses,
        false => held.mac.parse_body::<Global>()?.clauses,
    };
    let mut written = TokenStream::new();
    for clause in &clauses {
        let named = clause.slices.iter().map(|held| (held, false));
        for (named, is_to) in named.chain(clause.to.iter().map(|held| (held, true))) {
            let needs_mut = match clause.word {
                Word::Alloc | Word::CopyIn | Word::ConstantIn | Word::Remove => false,
                Word::CopyOut => is_to || clause.to.is_empty(),
                Word::Clear | Word::Free => true,
            };
            check(named, variables, shapes, needs_mut)?;
        }
        written.extend(clause_of(clause));
    }
    Ok(written)
}

/// Refuses what is no slice of the function, or has another shape.
fn check(
    Sectioned { slice, dims }: &Sectioned,
    variables: &Variables,
    shapes: &[(String, usize)],
    needs_mut: bool,
) -> Result<()> {
    let refuse = |message: &str| Err(Error::new_spanned(slice, message));
    let name = slice.to_string();
    let Some(Kind::Slice { mutable, .. }) = variables.get(&name).map(|variable| &variable.kind)
    else {
        return refuse("the function's own block has no slice of this name");
    };
    if needs_mut && !mutable {
        return refuse(
            "the directive writes the slice of the host, which is not mutable: take it as `&mut`",
        );
    }
    let said = shapes.iter().rev().find(|(shaped, _)| *shaped == name);
    match (dims.len(), said) {
        (0 | 1, _) => Ok(()),
        (count, Some((_, said))) if count == *said => Ok(()),
        _ => refuse(
            "a section of several dimensions is of a slice whose shape is said before: `shape!(a[rows][columns])`",
        ),
    }
}

fn clause_of(clause: &Clause) -> TokenStream {
    let mut written = TokenStream::new();
    for (number, held) in clause.slices.iter().enumerate() {
        let (slice, name) = (&held.slice, held.slice.to_string());
        let (present, section) = (present(&name), section(held));
        written.extend(match clause.word {
            Word::Alloc if held.dims.is_empty() => quote!(#present.alloc();),
            Word::Alloc => quote!(#present.alloc_section(#section);),
            Word::CopyIn => quote!(#present.copy_in(__offload, (&#slice[..], #name), #section)?;),
            Word::CopyOut => match clause.to.get(number) {
                None => quote! {{
                    let __section = #section;
                    #present.copy_out(__offload, (&mut #slice[..], #name), &__section)?;
                }},
                Some(to) => copy_out_to(held, to),
            },
            Word::Clear => quote!(#present.clear(__offload, #slice.len())?;),
            Word::Free => quote!(#present.free(__offload, &mut #slice[..])?;),
            Word::ConstantIn => {
                quote!(#present.constant_in(__offload, (&#slice[..], #name), #section)?;)
            }
            Word::Remove => quote!(#present.remove(#name)?;),
        });
    }
    written
}

fn copy_out_to(held: &Sectioned, to: &Sectioned) -> TokenStream {
    let (slice, name) = (&held.slice, held.slice.to_string());
    let (over, to_present) = (&to.slice, present(&to.slice.to_string()));
    let (present, from, to) = (present(&name), section(held), section(to));
    quote! {{
        #to_present.copy_back(__offload, &mut #over[..])?;
        #to_present.let_go();
        let (__from, __to) = (#from, #to);
        #present.copy_out_to(__offload, (&#slice[..], #name), &__from, (&mut #over[..], &__to))?;
    }}
}

/// What a directive does in the sequential function.
pub(crate) fn sequential(statement: &Stmt) -> Result<TokenStream> {
    let Stmt::Macro(held) = statement else {
        return Err(Error::new_spanned(statement, "the directive is no macro"));
    };
    let held: Global = held.mac.parse_body()?;
    let mut written = TokenStream::new();
    for clause in &held.clauses {
        for (held, to) in clause.slices.iter().zip(&clause.to) {
            let (slice, over) = (&held.slice, &to.slice);
            let (from, to) = (section(held), section(to));
            written.extend(quote! {
                (|| -> ::kiln::Result<()> {
                    let (__from, __to) = (#from, #to);
                    ::kiln::directives::macros::copy_section((&mut #over[..], &__to), (&#slice[..], &__from))
                })()
                .unwrap_or_else(|error| ::core::panic!("{error}"));
            });
        }
        if clause.word == Word::Clear {
            let slices = clause.slices.iter().map(|held| &held.slice);
            written.extend(quote!(#(::kiln::directives::macros::clear(&mut #slices[..]);)*));
        }
    }
    Ok(written)
}
