//! The pool of a function: what its description refers to and only rustc can tell.

use std::collections::HashMap;

use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, quote};
use syn::spanned::Spanned;

use crate::names::hygiene;

/// The entries of a function's pool, and the items that they see.
#[derive(Default)]
pub(crate) struct Pool {
    entries: Vec<TokenStream>,
    /// Where entries are that say the same.
    known: HashMap<(String, String), u32>,
    /// The items of each block around what is translated, outermost first.
    items: Vec<TokenStream>,
}

/// The variable of generated code that is the front end. Hygiene keeps it apart from the user's.
pub(crate) fn front() -> Ident {
    Ident::new("__kiln", Span::mixed_site())
}

impl Pool {
    /// An entry, by its number.
    pub(crate) fn entry(&mut self, entry: &TokenStream) -> u32 {
        // In blocks of their own: an item may hide one of a block around it.
        let blocks = self.items.iter().rev();
        let entry = blocks.fold(entry.clone(), |entry, items| quote!({ #items #entry }));
        self.entries.push(entry);
        self.entries.len() as u32 - 1
    }

    /// The number of an entry that means the same wherever it stands: one is enough.
    pub(crate) fn shared_entry(&mut self, entry: &TokenStream) -> u32 {
        self.entry_for(entry, || entry.clone())
    }

    /// The number of an entry that is known by what it is for.
    pub(crate) fn entry_for(
        &mut self,
        what: &dyn ToTokens,
        entry: impl FnOnce() -> TokenStream,
    ) -> u32 {
        if !self.items.is_empty() {
            return self.entry(&entry());
        }
        let what = what.to_token_stream();
        let key = (hygiene(what.span()), what.to_string());
        match self.known.get(&key) {
            Some(&number) => number,
            None => {
                let number = self.entry(&entry());
                self.known.insert(key, number);
                number
            }
        }
    }

    /// Enters the items of a block, which later entries see.
    pub(crate) fn enter_items(&mut self, items: TokenStream) {
        if !items.is_empty() {
            self.items.push(items);
        }
    }

    /// How many blocks of items later entries see.
    pub(crate) fn blocks(&self) -> usize {
        self.items.len()
    }

    /// Leaves the last blocks.
    pub(crate) fn leave_to(&mut self, blocks: usize) {
        self.items.truncate(blocks);
    }

    /// All entries, by number.
    pub(crate) fn entries(&self) -> &[TokenStream] {
        &self.entries
    }

    /// The pool, as an expression of the host.
    pub(crate) fn tokens(&self) -> TokenStream {
        let entries = self.entries();
        quote!(&[#(#entries),*])
    }
}
