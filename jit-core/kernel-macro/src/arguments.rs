//! What stands in the parentheses of `#[kernel(..)]` and `#[device_fn(..)]`.

use proc_macro2::TokenStream;
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

/// What is said of a function in the parentheses.
#[derive(Default)]
pub(crate) struct Arguments {
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
    if kind == Kind::Device && arguments.bounds.is_some() {
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
             block, or `#[kernel(launch_bounds(256, 2))]`, or `#[kernel(attribute(fast_math, unroll = 4))]` \
             with what hooks are to read"
        }
        Kind::Device => {
            "write `#[device_fn]`, or `#[device_fn(attribute(fast_math, unroll = 4))]` with what hooks are \
             to read; launch bounds belong to a kernel"
        }
    }
}

fn parse(input: ParseStream<'_>) -> syn::Result<Arguments> {
    let mut arguments = Arguments::default();
    while !input.is_empty() {
        let name: Ident = input.parse()?;
        let inner;
        syn::parenthesized!(inner in input);
        match name.to_string().as_str() {
            "launch_bounds" if arguments.bounds.is_none() => {
                arguments.bounds = Some(launch_bounds(&name, &inner)?);
            }
            "attribute" => {
                let said = Punctuated::<_, Token![,]>::parse_terminated_with(&inner, attribute)?;
                arguments.attributes.extend(said);
            }
            _ => return Err(syn::Error::new(name.span(), "")),
        }
        if !input.is_empty() {
            input.parse::<Token![,]>()?;
        }
    }
    Ok(arguments)
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
