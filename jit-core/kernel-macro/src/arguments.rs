//! What stands in the parentheses of `#[kernel(..)]` and `#[device_fn(..)]`.

use proc_macro2::{Span, TokenStream};
use syn::ext::IdentExt as _;
use syn::parse::{ParseStream, Parser};
use syn::punctuated::Punctuated;
use syn::{Ident, Lit, LitInt, Token};

use crate::function::Kind;
use crate::refusal::Refusals;
use crate::signature::LaunchBounds;

/// What an attribute for hooks says.
#[derive(Clone)]
pub(crate) enum Said {
    /// `name`, `name = true`, `name = false`.
    Bool(bool),
    /// `name = 4`.
    Int(i64),
    /// `name = "text"`.
    Text(String),
}

/// What an index out of bounds does.
#[derive(Copy, Clone)]
pub(crate) enum Bounds {
    /// `checked`
    Checked,
    /// `clamped`
    Clamped,
    /// `unsafe(unchecked)`, and where it says so.
    Unchecked(Span),
}

/// The flags of [`fast`](Arguments::fast) by name, as the description has them, and those of `fast` alone.
const FAST: [(&str, u32); 4] = [
    ("contract", 1),
    ("reassociate", 2),
    ("approximate", 4),
    ("flush", FLUSH),
];
const FLUSH: u32 = 8;
const ALL_OF_EXPRESSIONS: u32 = 7;

/// What is said of a function in the parentheses.
#[derive(Default)]
pub(crate) struct Arguments {
    /// What an index out of bounds does in a kernel.
    pub(crate) indices: Option<Bounds>,
    /// What floats may do, as bits.
    pub(crate) fast: u32,
    /// How many registers a thread of a kernel may have; 0 if nothing is said.
    pub(crate) max_registers: u32,
    /// How loops of a kernel are unrolled, as the description has it; 0 if nothing is said.
    pub(crate) unroll: u32,
    /// Up to which cost functions are inlined in a kernel.
    pub(crate) inline_threshold: Option<u32>,
    /// The launch bounds of a kernel.
    pub(crate) bounds: Option<LaunchBounds>,
    /// Attributes for hooks.
    pub(crate) attributes: Vec<(Ident, Said)>,
}

/// Reads what stands in the parentheses.
pub(crate) fn read(kind: Kind, tokens: TokenStream, refusals: &mut Refusals) -> Arguments {
    if tokens.is_empty() {
        return Arguments::default();
    }
    let arguments = match Parser::parse2(parse, tokens.clone()) {
        Ok(arguments) => arguments,
        Err(_) => {
            refusals.refuse(&tokens, form(kind));
            return Arguments::default();
        }
    };
    let of_kernels = arguments.bounds.is_some()
        || arguments.indices.is_some()
        || arguments.max_registers != 0
        || arguments.unroll != 0
        || arguments.inline_threshold.is_some()
        || arguments.fast & FLUSH != 0;
    if kind == Kind::Device && of_kernels {
        refusals.refuse(&tokens, form(kind));
    }
    for (i, (name, _)) in arguments.attributes.iter().enumerate() {
        if arguments.attributes[..i]
            .iter()
            .any(|(other, _)| other == name)
        {
            refusals.refuse(
                name,
                &format!("the attribute `{name}` is given twice; leave one out"),
            );
        }
    }
    arguments
}

/// What may stand there.
fn form(kind: Kind) -> &'static str {
    match kind {
        Kind::Kernel => {
            "write `#[kernel]`, or `#[kernel(launch_bounds(256))]` with the largest number of threads a \
             block, or `#[kernel(launch_bounds(256, 2))]`; `max_registers(64)`; `unroll(4)` or `unroll(never)` for loops that \
             do not say it; `inline_threshold(100)`; `checked`, `clamped` or \
             `unsafe(unchecked)` for what an index out of bounds does; `fast`, or `fast(contract, reassociate, \
             approximate, flush)` with what floats may do; `attribute(fast_math, unroll = 4)` with what hooks \
             are to read; several of them with commas"
        }
        Kind::Device => {
            "write `#[device_fn]`, or `#[device_fn(attribute(fast_math, unroll = 4))]` with what hooks are \
             to read, or `#[device_fn(fast)]`; launch bounds, registers, limits, `flush` and what an index out of \
             bounds does belong to a kernel"
        }
    }
}

fn parse(input: ParseStream<'_>) -> syn::Result<Arguments> {
    let mut arguments = Arguments::default();
    while !input.is_empty() {
        let name = input.call(Ident::parse_any)?;
        if !input.peek(syn::token::Paren) {
            word(&name, &mut arguments)?;
            separator(input)?;
            continue;
        }
        let inner;
        syn::parenthesized!(inner in input);
        match name.to_string().as_str() {
            "unsafe" if arguments.indices.is_none() => {
                if inner.parse::<Ident>()? != "unchecked" || !inner.is_empty() {
                    return Err(syn::Error::new(name.span(), ""));
                }
                arguments.indices = Some(Bounds::Unchecked(name.span()));
            }
            "fast" if arguments.fast == 0 => arguments.fast = fast(&name, &inner)?,
            "max_registers" if arguments.max_registers == 0 => {
                let number = inner.parse::<LitInt>()?.base10_parse()?;
                if !(16..=255).contains(&number) || !inner.is_empty() {
                    return Err(syn::Error::new(name.span(), ""));
                }
                arguments.max_registers = number;
            }
            "unroll" if arguments.unroll == 0 => {
                let wish = unroll_wish(&inner.parse()?);
                arguments.unroll = wish.ok_or_else(|| syn::Error::new(name.span(), ""))?;
            }
            "inline_threshold" if arguments.inline_threshold.is_none() => {
                let cost = inner.parse::<LitInt>()?.base10_parse()?;
                if !inner.is_empty() {
                    return Err(syn::Error::new(name.span(), ""));
                }
                arguments.inline_threshold = Some(cost);
            }
            "launch_bounds" if arguments.bounds.is_none() => {
                arguments.bounds = Some(launch_bounds(&name, &inner)?);
            }
            "attribute" => {
                let said = Punctuated::<_, Token![,]>::parse_terminated_with(&inner, attribute)?;
                arguments.attributes.extend(said);
            }
            _ => return Err(syn::Error::new(name.span(), "")),
        }
        separator(input)?;
    }
    Ok(arguments)
}

/// What `#[unroll(..)]` and `unroll(..)` ask for, as the number that `Op::For` has for it.
pub(crate) fn unroll_wish(wish: &TokenStream) -> Option<u32> {
    const NEVER: u32 = 1;
    const FULL: u32 = 2;
    if let Ok(factor) = syn::parse2::<LitInt>(wish.clone()) {
        let factor = factor.base10_parse::<u32>().ok()?;
        return (1..=1024).contains(&factor).then_some(FULL + factor);
    }
    let word = syn::parse2::<Ident>(wish.clone()).ok()?;
    (word == "never").then_some(NEVER)
}

/// A comma, unless nothing comes any more.
fn separator(input: ParseStream<'_>) -> syn::Result<()> {
    if !input.is_empty() {
        input.parse::<Token![,]>()?;
    }
    Ok(())
}

/// What stands without parentheses of its own.
fn word(name: &Ident, arguments: &mut Arguments) -> syn::Result<()> {
    match name.to_string().as_str() {
        "checked" if arguments.indices.is_none() => arguments.indices = Some(Bounds::Checked),
        "clamped" if arguments.indices.is_none() => arguments.indices = Some(Bounds::Clamped),
        "fast" if arguments.fast == 0 => arguments.fast = ALL_OF_EXPRESSIONS,
        _ => return Err(syn::Error::new(name.span(), "")),
    }
    Ok(())
}

/// `contract, approximate`
fn fast(name: &Ident, input: ParseStream<'_>) -> syn::Result<u32> {
    let mut flags = 0;
    for flag in Punctuated::<Ident, Token![,]>::parse_terminated(input)? {
        let known = FAST.iter().find(|(known, _)| flag == known);
        let (_, bit) = known.ok_or_else(|| syn::Error::new(flag.span(), ""))?;
        flags |= bit;
    }
    match flags {
        0 => Err(syn::Error::new(name.span(), "")),
        flags => Ok(flags),
    }
}

fn launch_bounds(name: &Ident, input: ParseStream<'_>) -> syn::Result<LaunchBounds> {
    let numbers = Punctuated::<LitInt, Token![,]>::parse_terminated(input)?;
    let mut numbers = numbers.iter().map(LitInt::base10_parse::<u32>);
    let bounds = LaunchBounds {
        max_threads: numbers.next().unwrap_or(Ok(0))?,
        min_blocks: numbers.next().unwrap_or(Ok(0))?,
    };
    match (bounds.max_threads, numbers.next()) {
        (1.., None) => Ok(bounds),
        _ => Err(syn::Error::new(name.span(), "")),
    }
}

/// `fast_math`, `unroll = 4`, `note = "by hand"`
fn attribute(input: ParseStream<'_>) -> syn::Result<(Ident, Said)> {
    let name: Ident = input.parse()?;
    if input.parse::<Option<Token![=]>>()?.is_none() {
        return Ok((name, Said::Bool(true)));
    }
    let negative = input.parse::<Option<Token![-]>>()?.is_some();
    let said = match input.parse::<Lit>()? {
        Lit::Int(value) if negative => Said::Int(
            format!("-{}", value.base10_digits())
                .parse()
                .map_err(|_| syn::Error::new(value.span(), ""))?,
        ),
        Lit::Int(value) => Said::Int(value.base10_parse()?),
        Lit::Bool(value) if !negative => Said::Bool(value.value),
        Lit::Str(value) if !negative => Said::Text(value.value()),
        other => return Err(syn::Error::new(other.span(), "")),
    };
    Ok((name, said))
}
