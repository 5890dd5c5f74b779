//! Functions and methods that users call and that no example of documentation shows.
//!
//! Examples are doctests, so what they show is compiled and run. An example counts for the file that it is
//! written in: files are named by their subject, and an example of `Val` shows more of its methods than one.

use std::collections::HashSet;

use proc_macro2::{TokenStream, TokenTree};
use quote::ToTokens as _;
use syn::visit::{self, Visit};
use syn::{Attribute, ImplItemFn, Item, ItemFn, ItemImpl, ItemMacro, ItemMod, Visibility};

/// The functions of a file, by line and name, that its examples do not show; none where it is no Rust, which
/// rustc tells.
pub(crate) fn without(text: &str) -> Vec<(usize, String)> {
    let Ok(file) = syn::parse_file(text) else {
        return Vec::new();
    };
    let mut called = Called::default();
    called.visit_file(&file);
    let shown = shown(text);
    called.0.retain(|(_, name)| !shown.contains(name.as_str()));
    called.0
}

/// The words of all examples of a file.
fn shown(text: &str) -> HashSet<&str> {
    let mut words = HashSet::new();
    let mut inside = None;
    for line in text.lines() {
        let line = line.trim_start();
        let Some(doc) = line.strip_prefix("///").or(line.strip_prefix("//!")) else {
            inside = None;
            continue;
        };
        match (doc.trim().strip_prefix("```"), inside) {
            (Some(kind), None) => inside = Some(!kind.starts_with("text")),
            (Some(_), Some(_)) => inside = None,
            (None, Some(true)) => {
                words.extend(doc.split(|c: char| !c.is_alphanumeric() && c != '_'));
            }
            (None, _) => {}
        }
    }
    words
}

/// What users call, by line and name.
#[derive(Default)]
struct Called(Vec<(usize, String)>);

impl Called {
    fn enter(&mut self, name: &syn::Ident) {
        self.0.push((name.span().start().line, name.to_string()));
    }

    /// The functions of a table, `fn name(..)` each.
    fn enter_table(&mut self, tokens: TokenStream) {
        let mut after_fn = false;
        for token in tokens {
            match token {
                TokenTree::Ident(name) if after_fn => self.enter(&name),
                TokenTree::Group(group) if !after_fn => self.enter_table(group.stream()),
                token => {
                    after_fn = matches!(&token, TokenTree::Ident(word) if word == "fn");
                    continue;
                }
            }
            after_fn = false;
        }
    }
}

impl<'ast> Visit<'ast> for Called {
    fn visit_item(&mut self, item: &'ast Item) {
        let attributes = match item {
            Item::Mod(ItemMod { attrs, .. })
            | Item::Fn(ItemFn { attrs, .. })
            | Item::Impl(ItemImpl { attrs, .. })
            | Item::Macro(ItemMacro { attrs, .. }) => attrs,
            _ => return,
        };
        if !is_left_out(attributes) {
            visit::visit_item(self, item);
        }
    }

    fn visit_item_fn(&mut self, function: &'ast ItemFn) {
        if matches!(function.vis, Visibility::Public(_)) {
            self.enter(&function.sig.ident);
        }
    }

    fn visit_impl_item_fn(&mut self, method: &'ast ImplItemFn) {
        let is_public = matches!(method.vis, Visibility::Public(_));
        if is_public && !is_left_out(&method.attrs) {
            self.enter(&method.sig.ident);
        }
    }

    fn visit_item_macro(&mut self, item: &'ast ItemMacro) {
        let name = item.mac.path.get_ident().map(ToString::to_string);
        if TABLES.iter().any(|table| name.as_deref() == Some(table)) {
            self.enter_table(item.mac.tokens.clone());
        }
    }
}

/// The macros whose tables are what kernels can call.
const TABLES: [&str; 4] = ["methods", "operations", "functions", "indices"];

/// Whether an item is for tests or hidden from documentation.
fn is_left_out(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let text = attribute.meta.to_token_stream().to_string();
        let text = text.replace(' ', "");
        ["doc(hidden)", "cfg(test)", "cfg(doc)"].contains(&text.as_str())
    })
}
