//! Attributes that stand on a function beside Kiln's own. Each means something for it or is refused:
//! nothing that a user writes is ignored.

use proc_macro2::TokenTree;
use quote::ToTokens;
use syn::{Attribute, Meta};

use crate::function::Kind;
use crate::refusal::Refusals;

/// What `#[inline]` asks for, as the description has it.
#[derive(Copy, Clone, PartialEq, Eq, Default)]
pub(crate) enum Inline {
    /// Nothing.
    #[default]
    Auto = 0,
    /// `#[inline]`.
    Hint = 1,
    /// `#[inline(always)]`.
    Always = 2,
    /// `#[inline(never)]`.
    Never = 3,
}

/// Attributes that rustc reads on what a function becomes. It has replaced `cfg_attr` by then.
const KEPT: [&str; 8] = [
    "doc",
    "allow",
    "expect",
    "cfg",
    "deprecated",
    "warn",
    "deny",
    "forbid",
];

/// The attributes that mean something on the function of the host that a device function also is.
const OF_HOST: [&str; 1] = ["must_use"];

/// Lints about a kernel itself; others are about what is in it.
const ABOUT_ITEMS: [&str; 2] = ["dead_code", "missing_docs"];

/// Attributes of a kernel that mean something for what is checked as its body: those that set lints.
pub(crate) fn of_body(attributes: &[Attribute]) -> Vec<&Attribute> {
    let mut of_body = kept(attributes);
    of_body.retain(|attribute| {
        let about = ["doc", "deprecated"];
        !about.iter().any(|name| attribute.path().is_ident(name)) && !expects_of_item(attribute)
    });
    of_body
}

/// Attributes that mean something on the static of a kernel. What is expected is so once.
pub(crate) fn of_item(attributes: &[Attribute]) -> Vec<&Attribute> {
    let mut of_item = kept(attributes);
    of_item.retain(|attribute| !attribute.path().is_ident("expect") || expects_of_item(attribute));
    of_item
}

/// Whether a lint is expected that is about the kernel itself.
fn expects_of_item(attribute: &Attribute) -> bool {
    let Meta::List(list) = &attribute.meta else {
        return false;
    };
    let is_about = |tree: TokenTree| matches!(tree, TokenTree::Ident(name) if ABOUT_ITEMS.iter().any(|lint| name == lint));
    list.path.is_ident("expect") && list.tokens.clone().into_iter().any(is_about)
}

/// Attributes that rustc reads on what a kernel becomes.
pub(crate) fn kept(attributes: &[Attribute]) -> Vec<&Attribute> {
    let keep = |attribute: &&Attribute| KEPT.iter().any(|name| attribute.path().is_ident(name));
    attributes.iter().filter(keep).collect()
}

/// Reads the attributes of a function.
pub(crate) fn read(kind: Kind, attributes: &[Attribute], refusals: &mut Refusals) -> Inline {
    let mut inline = Inline::Auto;
    for attribute in attributes {
        if attribute.path().is_ident("inline") {
            inline = read_inline(kind, attribute, refusals);
        } else {
            check(kind, &attribute.meta, refusals);
        }
    }
    inline
}

/// Whether an attribute is for rustc or for a tool.
fn check(kind: Kind, meta: &Meta, refusals: &mut Refusals) {
    let path = meta.path();
    let is = |names: &[&str]| names.iter().any(|name| path.is_ident(name));
    // `#[rustfmt::skip]`, `#[clippy::..]`.
    let of_a_tool = path.segments.len() > 1;
    if is(&KEPT) || of_a_tool || (kind == Kind::Device && is(&OF_HOST)) {
        return;
    }
    let message = format!(
        "`#[{}]` means nothing on a function with `{}`; leave it out",
        path.to_token_stream().to_string().replace(' ', ""),
        kind.attribute(),
    );
    refusals.refuse(meta, &message);
}

fn read_inline(kind: Kind, attribute: &Attribute, refusals: &mut Refusals) -> Inline {
    if kind == Kind::Kernel {
        refusals.refuse(
            attribute,
            "a kernel is launched, not called; `#[inline]` is for `#[device_fn]` functions",
        );
        return Inline::Auto;
    }
    match &attribute.meta {
        Meta::Path(_) => Inline::Hint,
        Meta::List(list) if list.tokens.to_string() == "always" => Inline::Always,
        Meta::List(list) if list.tokens.to_string() == "never" => Inline::Never,
        // rustc says what is wrong with it, on the function of the host.
        _ => Inline::Auto,
    }
}
