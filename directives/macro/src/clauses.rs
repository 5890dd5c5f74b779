//! What stands in the parentheses of directives.

use proc_macro2::TokenStream;
use quote::quote;
use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::{Attribute, Error, Expr, Ident, Result, Token, parenthesized};

/// A directive that is an attribute.
pub(crate) enum Directive {
    Kernel(Grid),
    Partition(Partition),
    Shared,
    Singular,
}

/// The grid of a kernel region.
pub(crate) struct Grid {
    pub(crate) blocks: Vec<Expr>,
    pub(crate) threads: Vec<Expr>,
    pub(crate) nowait: bool,
}

/// How a loop is distributed.
#[derive(Default)]
pub(crate) struct Partition {
    /// As `marks::partition` takes it.
    blocks: u32,
    threads: bool,
    independent: bool,
}

impl Partition {
    /// The marks before the loop.
    pub(crate) fn marks(&self) -> TokenStream {
        let (blocks, threads) = (self.blocks, u32::from(self.threads));
        let independent = self
            .independent
            .then(|| quote!(::kiln::directives::marks::independent();));
        quote!(::kiln::directives::marks::partition(#blocks, #threads); #independent)
    }
}

/// What a block reads from shared memory in a turn of a loop.
pub(crate) struct Shared {
    pub(crate) slices: Vec<Ident>,
}

impl Shared {
    /// The marks before the loop.
    pub(crate) fn marks(&self) -> TokenStream {
        let slices = &self.slices;
        quote!(#(::kiln::directives::marks::shared(#slices.len() as u32);)*)
    }
}

/// The directive that an attribute is.
pub(crate) fn directive(attribute: &Attribute) -> Result<Option<Directive>> {
    let path = attribute.path();
    Ok(Some(if path.is_ident("kernel") {
        Directive::Kernel(attribute.parse_args()?)
    } else if path.is_ident("loop_partition") {
        Directive::Partition(attribute.parse_args()?)
    } else if path.is_ident("shared") {
        Directive::Shared
    } else if path.is_ident("singular") {
        attribute.meta.require_path_only()?;
        Directive::Singular
    } else {
        return Ok(None);
    }))
}

/// Whether an attribute is a directive.
pub(crate) fn is_directive(attribute: &Attribute) -> bool {
    let names = ["kernel", "loop_partition", "shared", "singular"];
    names.iter().any(|name| attribute.path().is_ident(name))
}

/// Whether attributes say that a block is a kernel region.
pub(crate) fn is_kernel(attributes: &[Attribute]) -> bool {
    attributes
        .iter()
        .any(|attribute| attribute.path().is_ident("kernel"))
}

fn dims(input: ParseStream<'_>) -> Result<Vec<Expr>> {
    let inner;
    parenthesized!(inner in input);
    let dims = Punctuated::<Expr, Token![,]>::parse_terminated(&inner)?;
    match dims.is_empty() {
        true => Err(Error::new(
            inner.span(),
            "a grid has one dimension or more: write how many there are along each",
        )),
        false => Ok(dims.into_iter().collect()),
    }
}

impl Parse for Grid {
    fn parse(input: ParseStream<'_>) -> Result<Grid> {
        let (mut blocks, mut threads, mut nowait) = (None, None, false);
        while !input.is_empty() {
            let name: Ident = input.parse()?;
            let twice = Error::new_spanned(&name, "this clause is there twice");
            let is_new = match name.to_string().as_str() {
                "tblock" => blocks.replace(dims(input)?).is_none(),
                "thread" => threads.replace(dims(input)?).is_none(),
                "nowait" => !std::mem::replace(&mut nowait, true),
                _ => {
                    let message =
                        "a kernel region has the clauses `tblock(..)`, `thread(..)` and `nowait`";
                    return Err(Error::new_spanned(name, message));
                }
            };
            if !is_new {
                return Err(twice);
            }
            if !input.is_empty() {
                input.parse::<Token![,]>()?;
            }
        }
        let missing = |what| {
            Error::new(
                input.span(),
                format!("a kernel region says its grid: write `{what}`"),
            )
        };
        Ok(Grid {
            blocks: blocks.ok_or_else(|| missing("tblock(..)"))?,
            threads: threads.ok_or_else(|| missing("thread(..)"))?,
            nowait,
        })
    }
}

impl Parse for Partition {
    fn parse(input: ParseStream<'_>) -> Result<Partition> {
        let mut partition = Partition::default();
        while !input.is_empty() {
            if input.peek(Token![unsafe]) {
                input.parse::<Token![unsafe]>()?;
                let inner;
                parenthesized!(inner in input);
                let promise: Ident = inner.parse()?;
                if promise != "independent" {
                    return Err(Error::new_spanned(
                        promise,
                        "the promise about a loop is `unsafe(independent)`",
                    ));
                }
                partition.independent = true;
            } else {
                let name: Ident = input.parse()?;
                match name.to_string().as_str() {
                    "over_tblock" => partition.blocks = blocks(input)?,
                    "over_thread" => partition.threads = true,
                    "independent" => {
                        let message = "nobody checks this promise: write `unsafe(independent)`";
                        return Err(Error::new_spanned(name, message));
                    }
                    _ => {
                        let message = "`loop_partition` has the clauses `over_tblock(BLOCK)`, `over_tblock(CYCLIC)`, \
                                       `over_thread` and `unsafe(independent)`";
                        return Err(Error::new_spanned(name, message));
                    }
                }
            }
            if !input.is_empty() {
                input.parse::<Token![,]>()?;
            }
        }
        match partition.blocks > 0 || partition.threads {
            true => Ok(partition),
            false => Err(Error::new(
                input.span(),
                "`loop_partition` has no clause: write `over_tblock`, `over_thread` or both",
            )),
        }
    }
}

impl Parse for Shared {
    fn parse(input: ParseStream<'_>) -> Result<Shared> {
        let message =
            "`shared` says which slices a block copies to shared memory: write `copyin(a, b)`";
        let name: Ident = input
            .parse()
            .map_err(|error| Error::new(error.span(), message))?;
        if name != "copyin" || !input.peek(syn::token::Paren) {
            return Err(Error::new_spanned(name, message));
        }
        let inner;
        parenthesized!(inner in input);
        let whole = |error: Error| {
            let message = "`copyin` takes the names of slices: Kiln finds out which elements a turn of the loop reads";
            Error::new(error.span(), message)
        };
        let slices = Punctuated::<Ident, Token![,]>::parse_terminated(&inner).map_err(whole)?;
        match slices.is_empty() || !input.is_empty() {
            true => Err(Error::new_spanned(name, message)),
            false => Ok(Shared {
                slices: slices.into_iter().collect(),
            }),
        }
    }
}

/// How blocks are given their shares: `BLOCK` if nothing is said.
fn blocks(input: ParseStream<'_>) -> Result<u32> {
    if !input.peek(syn::token::Paren) {
        return Ok(1);
    }
    let inner;
    parenthesized!(inner in input);
    let how: Ident = inner.parse()?;
    match how.to_string().as_str() {
        "BLOCK" => Ok(1),
        "CYCLIC" => Ok(2),
        _ => Err(Error::new_spanned(
            how,
            "blocks have their shares by `BLOCK` or `CYCLIC`",
        )),
    }
}
