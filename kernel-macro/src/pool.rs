//! The pool of a function: what its description refers to and only rustc can tell.

use std::collections::HashMap;

use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, quote};
use syn::Item;

/// The entries of a function's pool, and the items that they see.
#[derive(Default)]
pub(crate) struct Pool {
    entries: Vec<TokenStream>,
    /// Where entries are that say the same.
    known: HashMap<String, u32>,
    /// Items of the blocks around what is translated, outermost first.
    items: Vec<TokenStream>,
}

/// The variable of generated code that is the front end. Hygiene keeps it apart from the user's.
pub(crate) fn front() -> Ident {
    Ident::new("__kiln", Span::mixed_site())
}

impl Pool {
    /// An entry, by its number.
    pub(crate) fn entry(&mut self, entry: &TokenStream) -> u32 {
        let items = &self.items;
        self.entries.push(match items.is_empty() {
            true => entry.clone(),
            false => quote!({ #(#items)* #entry }),
        });
        self.entries.len() as u32 - 1
    }

    /// The same, for an entry that means the same wherever it stands: one is enough.
    pub(crate) fn shared_entry(&mut self, entry: &TokenStream) -> u32 {
        if !self.items.is_empty() {
            return self.entry(entry);
        }
        let text = entry.to_string();
        match self.known.get(&text) {
            Some(&number) => number,
            None => {
                let number = self.entry(entry);
                self.known.insert(text, number);
                number
            }
        }
    }

    /// Enters an item that later entries see.
    pub(crate) fn enter_item(&mut self, item: &Item) {
        self.items.push(item.to_token_stream());
    }

    /// How many items later entries see.
    pub(crate) fn items(&self) -> usize {
        self.items.len()
    }

    /// Leaves the last items.
    pub(crate) fn leave_items(&mut self, to: usize) {
        self.items.truncate(to);
    }

    /// The pool, as an expression of the host.
    pub(crate) fn tokens(&self) -> TokenStream {
        let entries = &self.entries;
        quote!(&[#(#entries),*])
    }
}
