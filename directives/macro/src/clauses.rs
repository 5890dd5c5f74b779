//! What stands in the parentheses of directives.

use std::ops::RangeInclusive;

use proc_macro2::TokenStream;
use quote::quote;
use syn::parse::discouraged::Speculative;
use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::{Attribute, Error, Expr, Ident, Result, Token, parenthesized};

/// A directive that is an attribute.
pub(crate) enum Directive {
    Kernel(Grid),
    Partition(Partition),
    Shared,
    Transform,
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
    /// Both as `marks::partition` takes them.
    blocks: u32,
    threads: u32,
    independent: bool,
    /// Slices that the loop reduces.
    pub(crate) reduction: Vec<Ident>,
    /// Variables that iterations combine with values and hand on.
    pub(crate) scan: Vec<Ident>,
    /// How many iterations a thread executes side by side.
    coarsen: Option<u32>,
}

impl Partition {
    /// Takes what a loop is distributed over within a block.
    fn over(&mut self, input: ParseStream<'_>, name: &Ident) -> Result<()> {
        if input.peek(syn::token::Paren) {
            let message = format!(
                "`{name}` takes nothing: how many threads there are is said by `thread(..)` of the region"
            );
            return Err(Error::new_spanned(name, message));
        }
        let threads = match name.to_string().as_str() {
            "over_thread" => 1,
            "over_warp" => 2,
            _ => 3,
        };
        match std::mem::replace(&mut self.threads, threads) {
            before if before == 0 || before == threads => Ok(()),
            _ => {
                let message = "a loop has one of `over_thread`, `over_warp` and `over_lane`: the lanes of all warps are the threads";
                Err(Error::new_spanned(name, message))
            }
        }
    }

    /// The marks before the loop.
    pub(crate) fn marks(&self) -> TokenStream {
        let (blocks, threads) = (self.blocks, self.threads);
        let independent = self
            .independent
            .then(|| quote!(::kiln::directives::marks::independent();));
        let coarsen = self
            .coarsen
            .map(|count| quote!(::kiln::directives::marks::jam(#count);));
        let reduction = &self.reduction;
        let reduction = quote!(#(::kiln::directives::marks::reduction(#reduction.len() as u32);)*);
        let scan = &self.scan;
        let scan = (!scan.is_empty())
            .then(|| quote!(#(let _ = #scan;)* ::kiln::directives::marks::scan();));
        quote!(::kiln::directives::marks::partition(#blocks, #threads); #independent #coarsen #reduction #scan)
    }
}

/// How a loop is transformed, as the marks take it.
#[derive(Default)]
pub(crate) struct Transform {
    interchange: bool,
    peel_first: Option<u32>,
    peel_last: Option<u32>,
    tile: Option<u32>,
    jam: Option<u32>,
    unroll: Option<u32>,
    /// Slices of which iterations have elements of their own.
    pub(crate) privatized: Vec<Ident>,
}

impl Transform {
    /// The marks before the loop.
    pub(crate) fn marks(&self) -> TokenStream {
        let mark = |name: &str, count: Option<u32>| {
            let name = Ident::new(name, proc_macro2::Span::call_site());
            count.map(|count| quote!(::kiln::directives::marks::#name(#count);))
        };
        let (tile, jam) = (mark("tile", self.tile), mark("jam", self.jam));
        let first = mark("peel_first", self.peel_first);
        let last = mark("peel_last", self.peel_last);
        let unroll = mark("unroll", self.unroll);
        let interchange = self
            .interchange
            .then(|| quote!(::kiln::directives::marks::interchange();));
        let own = &self.privatized;
        let own = quote!(#(::kiln::directives::marks::privatize(#own.len() as u32);)*);
        quote!(#interchange #first #last #tile #jam #unroll #own)
    }
}

/// What `global!(..)` says, clause by clause.
pub(crate) struct Global {
    pub(crate) clauses: Vec<Clause>,
}

/// A clause of `global!(..)` or `constant!(..)`.
pub(crate) struct Clause {
    pub(crate) word: Word,
    pub(crate) slices: Vec<Sectioned>,
    /// What the elements are copied over, if that is not where they come from.
    pub(crate) to: Vec<Sectioned>,
}

/// What is done to slices.
#[derive(Copy, Clone, PartialEq, Eq)]
pub(crate) enum Word {
    Alloc,
    CopyIn,
    CopyOut,
    Clear,
    Free,
    ConstantIn,
    Remove,
}

/// A slice, and along each dimension which of its elements; all if there is none.
#[derive(Clone)]
pub(crate) struct Sectioned {
    pub(crate) slice: Ident,
    pub(crate) dims: Vec<Expr>,
}

impl Parse for Sectioned {
    fn parse(input: ParseStream<'_>) -> Result<Sectioned> {
        let (slice, mut dims) = (input.parse()?, Vec::new());
        while input.peek(syn::token::Bracket) {
            let inner;
            syn::bracketed!(inner in input);
            dims.push(inner.parse()?);
            if !inner.is_empty() {
                return Err(inner.error(
                    "a section has a range in brackets for each dimension: `a[1..=6][0..4]`",
                ));
            }
        }
        match dims.len() {
            0..=3 => Ok(Sectioned { slice, dims }),
            _ => Err(Error::new_spanned(
                slice,
                "a section has up to three dimensions",
            )),
        }
    }
}

/// Slices with commas between.
fn sections(input: ParseStream<'_>) -> Result<Vec<Sectioned>> {
    let mut all = vec![input.parse()?];
    while input.peek(Token![,]) {
        input.parse::<Token![,]>()?;
        if !input.is_empty() {
            all.push(input.parse()?);
        }
    }
    Ok(all)
}

impl Parse for Global {
    fn parse(input: ParseStream<'_>) -> Result<Global> {
        let message = "`global!` says what is on the device: `alloc a, b` of slices of which regions write all that they read, `copyin a[0..4]` and \
                       `copyout a[0..4] to b[4..8]` for sections that are copied there and back here, `clear a` for zeros, `free a`; other \
                       slices are copied where that is needed";
        let mut clauses = Vec::new();
        while !input.is_empty() || clauses.is_empty() {
            let word: Ident = input
                .parse()
                .map_err(|error| Error::new(error.span(), message))?;
            let kind = match word.to_string().as_str() {
                "alloc" => Word::Alloc,
                "copyin" => Word::CopyIn,
                "copyout" => Word::CopyOut,
                "clear" => Word::Clear,
                "free" => Word::Free,
                _ => return Err(Error::new_spanned(word, message)),
            };
            if input.is_empty() {
                return Err(Error::new_spanned(word, message));
            }
            let slices = sections(input)?;
            let ahead = input.fork();
            let has_to =
                kind == Word::CopyOut && ahead.parse::<Ident>().is_ok_and(|next| next == "to");
            let mut to = Vec::new();
            if has_to {
                input.parse::<Ident>()?;
                to = sections(input)?;
            }
            let is_whole = |held: &&Sectioned| {
                matches!(kind, Word::Clear | Word::Free) && !held.dims.is_empty()
            };
            if let Some(held) = slices.iter().find(is_whole) {
                let message = "`clear` and `free` are of all of a slice: write its name alone";
                return Err(Error::new_spanned(&held.slice, message));
            }
            if has_to && to.len() != slices.len() {
                let message = "`copyout a, b to c, d` has as many slices on either side";
                return Err(Error::new_spanned(word, message));
            }
            clauses.push(Clause {
                word: kind,
                slices,
                to,
            });
        }
        Ok(Global { clauses })
    }
}

/// What `constant!(..)` says, clause by clause.
pub(crate) struct Constant {
    pub(crate) clauses: Vec<Clause>,
}

impl Parse for Constant {
    fn parse(input: ParseStream<'_>) -> Result<Constant> {
        let message = "`constant!` says what is in constant memory: `copyin a, b[0..4]` for what regions read of slices from here on and \
                       none writes, `remove a` of what is there";
        let mut clauses = Vec::new();
        while !input.is_empty() || clauses.is_empty() {
            let word: Ident = input
                .parse()
                .map_err(|error| Error::new(error.span(), message))?;
            let kind = match word.to_string().as_str() {
                "copyin" => Word::ConstantIn,
                "remove" => Word::Remove,
                _ => return Err(Error::new_spanned(word, message)),
            };
            if input.is_empty() {
                return Err(Error::new_spanned(word, message));
            }
            let slices = sections(input)?;
            let mut parts = slices.iter().filter(|held| !held.dims.is_empty());
            if let (Word::Remove, Some(held)) = (kind, parts.next()) {
                let message = "`remove` is of all that is there of a slice: write its name alone";
                return Err(Error::new_spanned(&held.slice, message));
            }
            let (word, to) = (kind, Vec::new());
            clauses.push(Clause { word, slices, to });
        }
        Ok(Constant { clauses })
    }
}

/// A slice that is staged: what of it a turn reads, or all of it.
pub(crate) struct Staged {
    pub(crate) slice: Ident,
    is_whole: bool,
}

impl Parse for Staged {
    fn parse(input: ParseStream<'_>) -> Result<Staged> {
        let slice = input.parse()?;
        let is_whole = input.peek(syn::token::Bracket);
        if is_whole {
            let inner;
            syn::bracketed!(inner in input);
            inner.parse::<Token![..]>()?;
            if !inner.is_empty() {
                return Err(inner.error(""));
            }
        }
        Ok(Staged { slice, is_whole })
    }
}

/// What a block reads from shared memory in a turn of a loop.
#[derive(Default)]
pub(crate) struct Shared {
    pub(crate) slices: Vec<Staged>,
    /// Slices of which a block computes what a turn reads.
    pub(crate) computed: Vec<Ident>,
    /// Slices to which what a turn writes is copied behind it.
    pub(crate) copied_out: Vec<Ident>,
    /// Whether rows there are as long as they need be.
    unpadded: bool,
}

impl Shared {
    /// The marks before the loop.
    pub(crate) fn marks(&self) -> TokenStream {
        let unpadded = self
            .unpadded
            .then(|| quote!(::kiln::directives::marks::unpadded();));
        let slices = self.slices.iter().map(|held| {
            let (slice, mark) = (&held.slice, if held.is_whole { "whole" } else { "shared" });
            let mark = Ident::new(mark, proc_macro2::Span::call_site());
            quote!(::kiln::directives::marks::#mark(#slice.len() as u32);)
        });
        let computed = &self.computed;
        let computed = quote!(#(::kiln::directives::marks::compute(#computed.len() as u32);)*);
        let copied_out = &self.copied_out;
        let copied_out = quote!(#(::kiln::directives::marks::copyout(#copied_out.len() as u32);)*);
        quote!(#(#slices)* #computed #copied_out #unpadded)
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
    } else if path.is_ident("loop_transform") {
        Directive::Transform
    } else if path.is_ident("singular") {
        attribute.meta.require_path_only()?;
        Directive::Singular
    } else {
        return Ok(None);
    }))
}

/// Whether an attribute is a directive.
pub(crate) fn is_directive(attribute: &Attribute) -> bool {
    let names = [
        "kernel",
        "loop_partition",
        "loop_transform",
        "shared",
        "singular",
    ];
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
        let (mut partition, mut coarsened) = (Partition::default(), None);
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
                    "over_thread" | "over_warp" | "over_lane" => {
                        partition.over(input, &name)?;
                    }
                    "reduction" => partition.reduction.extend(reduction(input, &name)?),
                    "scan" => partition.scan.extend(scan(input, &name)?),
                    "coarsen" => coarsened = Some((count(input, &name, 1..=64)?, name)),
                    "independent" => {
                        let message = "nobody checks this promise: write `unsafe(independent)`";
                        return Err(Error::new_spanned(name, message));
                    }
                    _ => {
                        let message = "`loop_partition` has the clauses `over_tblock(BLOCK)`, `over_tblock(CYCLIC)`, \
                                       `over_thread`, `over_warp`, `over_lane`, `coarsen(n)`, `reduction(a)`, `scan(v)` and `unsafe(independent)`";
                        return Err(Error::new_spanned(name, message));
                    }
                }
            }
            if !input.is_empty() {
                input.parse::<Token![,]>()?;
            }
        }
        if let Some((count, name)) = coarsened {
            if partition.threads == 0 {
                let message = "`coarsen` gives a thread several iterations at a time, of a loop with `over_thread`, `over_warp` or \
                               `over_lane`; other loops have `#[loop_transform(unroll_and_jam(n))]`";
                return Err(Error::new_spanned(name, message));
            }
            partition.coarsen = Some(count);
        }
        match partition.blocks > 0 || partition.threads > 0 {
            true => Ok(partition),
            false => Err(Error::new(
                input.span(),
                "`loop_partition` has no clause: write `over_tblock`, one of `over_thread`, `over_warp` and `over_lane`, or both",
            )),
        }
    }
}

/// The slices of a clause `reduction`.
fn reduction(input: ParseStream<'_>, name: &Ident) -> Result<Vec<Ident>> {
    let message = "`reduction` takes the names of slices whose elements iterations combine with values: write `reduction(a)`";
    match input.peek(syn::token::Paren) {
        true => listed(input, name, message),
        false => Err(Error::new_spanned(name, message)),
    }
}

/// The variables of a clause `scan`.
fn scan(input: ParseStream<'_>, name: &Ident) -> Result<Vec<Ident>> {
    let message = "`scan` takes the names of variables that iterations combine with values and hand on: write `scan(sum)`";
    match input.peek(syn::token::Paren) {
        true => listed(input, name, message),
        false => Err(Error::new_spanned(name, message)),
    }
}

impl Parse for Transform {
    fn parse(input: ParseStream<'_>) -> Result<Transform> {
        let message = "`loop_transform` has the clauses `interchange`, `peel_first(n)`, `peel_last(n)`, `tile(n)`, `unroll_and_jam(n)`, \
                       `unroll(n)`, `unroll`, `unroll(never)` and `privatize(a)`";
        let (mut transform, mut interchange) = (Transform::default(), None);
        if input.is_empty() {
            return Err(Error::new(input.span(), message));
        }
        while !input.is_empty() {
            let name: Ident = input.parse()?;
            if name == "privatize" && input.peek(syn::token::Paren) {
                transform.privatized.extend(privatized(input, &name)?);
                comma(input)?;
                continue;
            }
            let (clause, number) = match name.to_string().as_str() {
                "interchange" => (&mut interchange, 1),
                "peel_first" => (&mut transform.peel_first, count(input, &name, 1..=64)?),
                "peel_last" => (&mut transform.peel_last, count(input, &name, 1..=64)?),
                "tile" => (&mut transform.tile, count(input, &name, 1..=65_536)?),
                "unroll_and_jam" => (&mut transform.jam, count(input, &name, 1..=64)?),
                "unroll" => (&mut transform.unroll, times(input, &name)?),
                _ => return Err(Error::new_spanned(name, message)),
            };
            if clause.replace(number).is_some() {
                return Err(Error::new_spanned(name, "this clause is there twice"));
            }
            comma(input)?;
        }
        transform.interchange = interchange.is_some();
        Ok(transform)
    }
}

/// The literal in the parentheses of a clause.
fn count(input: ParseStream<'_>, name: &Ident, range: RangeInclusive<u32>) -> Result<u32> {
    let message = format!(
        "`{name}` takes a literal from {} to {}: write `{name}(4)`",
        range.start(),
        range.end()
    );
    if !input.peek(syn::token::Paren) {
        return Err(Error::new_spanned(name, message));
    }
    let inner;
    parenthesized!(inner in input);
    let literal: syn::LitInt = inner
        .parse()
        .map_err(|error| Error::new(error.span(), &message))?;
    let number = literal.base10_parse::<u32>().ok();
    let number = number.filter(|number| range.contains(number) && inner.is_empty());
    number.ok_or_else(|| Error::new_spanned(literal, message))
}

/// How often the body of a loop is written, as the mark has it: 0 for all turns, 1 for never more than once.
fn times(input: ParseStream<'_>, name: &Ident) -> Result<u32> {
    if !input.peek(syn::token::Paren) {
        return Ok(0);
    }
    let ahead = input.fork();
    let inner;
    parenthesized!(inner in ahead);
    let never: Option<Ident> = inner.parse().ok();
    if never.is_some_and(|never| never == "never") && inner.is_empty() {
        input.advance_to(&ahead);
        return Ok(1);
    }
    count(input, name, 1..=1024)
}

impl Parse for Shared {
    fn parse(input: ParseStream<'_>) -> Result<Shared> {
        let message = "`shared` says what a block has in shared memory: write `copyin(a, b)` for slices of which it copies what a \
                       turn of the loop reads, `compute(c)` for those of which it computes that, `copyout(d)` for those that the turn \
                       writes and that are copied from there behind it, and behind them may be `nopad`, \
                       with which rows are not longer there than they need be";
        let mut shared = Shared::default();
        let mut last = None;
        while !input.is_empty() {
            let name: Ident = input
                .parse()
                .map_err(|error| Error::new(error.span(), message))?;
            let has_list = input.peek(syn::token::Paren);
            match name.to_string().as_str() {
                "copyin" if has_list => shared.slices.extend(copied(input, &name)?),
                "compute" if has_list => shared.computed.extend(computed(input, &name)?),
                "copyout" if has_list => shared.copied_out.extend(copied_out(input, &name)?),
                "nopad" if !has_list => shared.unpadded = true,
                _ => return Err(Error::new_spanned(name, message)),
            }
            last = Some(name);
            if !input.is_empty() {
                input.parse::<Token![,]>()?;
            }
        }
        let is_empty = [&shared.computed, &shared.copied_out]
            .iter()
            .all(|slices| slices.is_empty());
        match (last, shared.slices.is_empty() && is_empty) {
            (Some(_), false) => Ok(shared),
            (Some(name), true) => Err(Error::new_spanned(name, message)),
            (None, _) => Err(Error::new(input.span(), message)),
        }
    }
}

/// The slices of a clause `privatize`.
fn privatized(input: ParseStream<'_>, name: &Ident) -> Result<Vec<Ident>> {
    let message =
        "`privatize` takes the names of slices of which each iteration has elements of its own";
    listed(input, name, message)
}

/// What stands between clauses, behind all but the last one.
fn comma(input: ParseStream<'_>) -> Result<()> {
    if !input.is_empty() {
        input.parse::<Token![,]>()?;
    }
    Ok(())
}

/// The slices of a clause `copyin`.
fn copied(input: ParseStream<'_>, name: &Ident) -> Result<Vec<Staged>> {
    let message = "`copyin` takes the names of slices: Kiln finds out which elements a turn of the loop reads, and `a[..]` is all \
                   of them";
    listed(input, name, message)
}

/// The slices of a clause `compute`.
fn computed(input: ParseStream<'_>, name: &Ident) -> Result<Vec<Ident>> {
    let message = "`compute` takes the names of slices that loops before this one write: a block computes what a turn reads of \
                   them, whichever elements these are";
    listed(input, name, message)
}

/// The slices of a clause `copyout`.
fn copied_out(input: ParseStream<'_>, name: &Ident) -> Result<Vec<Ident>> {
    let message = "`copyout` takes the names of slices: Kiln finds out which elements a turn of the loop writes";
    listed(input, name, message)
}

/// What is in the parentheses of a clause, at least one.
fn listed<T: Parse>(input: ParseStream<'_>, name: &Ident, message: &str) -> Result<Vec<T>> {
    let inner;
    parenthesized!(inner in input);
    let all = Punctuated::<T, Token![,]>::parse_terminated(&inner);
    let all = all.map_err(|error| Error::new(error.span(), message))?;
    match all.is_empty() {
        true => Err(Error::new_spanned(name, message)),
        false => Ok(all.into_iter().collect()),
    }
}

/// How blocks are given their shares: `BLOCK` if nothing is said.
fn blocks(input: ParseStream<'_>) -> Result<u32> {
    if !input.peek(syn::token::Paren) {
        return Ok(1);
    }
    let inner;
    parenthesized!(inner in input);
    let message = "blocks have their shares by `BLOCK` or `CYCLIC`; how many there are is said by `tblock(..)` of the region";
    let how: Ident = inner
        .parse()
        .map_err(|error| Error::new(error.span(), message))?;
    match how.to_string().as_str() {
        "BLOCK" => Ok(1),
        "CYCLIC" => Ok(2),
        _ => Err(Error::new_spanned(how, message)),
    }
}
