//! What names in a body mean: variables and closures, as rustc resolves them.

use std::fmt::Write;

use proc_macro2::{Ident, Span};

/// What a name means.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Meaning {
    /// A variable, by its number.
    Variable(u32),
    /// A closure, by its number.
    Closure(u32),
    /// An item of the body, which hides variables around it.
    Item,
}

/// The names in scope, innermost last.
#[derive(Default)]
pub(crate) struct Names {
    bound: Vec<(Name, Meaning)>,
}

#[derive(PartialEq, Eq)]
struct Name {
    text: String,
    hygiene: String,
}

impl Name {
    fn new(ident: &Ident) -> Name {
        Name {
            text: ident.to_string(),
            hygiene: hygiene(ident.span()),
        }
    }
}

/// Tells apart names that different `macro_rules!` have made: to rustc, `x` of one is not `x` of
/// another. No stable interface tells the hygiene of a span but its `Debug`, `#3 bytes(10..11)`. Were it
/// to tell something else, names would be their texts alone.
pub(crate) fn hygiene(span: Span) -> String {
    let mut text = String::new();
    let written = write!(text, "{span:?}");
    match (written, text.split_once(' ')) {
        (Ok(()), Some((context, _))) if context.starts_with('#') => context.to_owned(),
        _ => String::new(),
    }
}

/// How many names are in scope.
#[derive(Copy, Clone)]
pub(crate) struct Scope(usize);

impl Names {
    /// Gives a name a meaning, until its scope is left.
    pub(crate) fn bind(&mut self, name: &Ident, meaning: Meaning) {
        self.bound.push((Name::new(name), meaning));
    }

    /// What a name means; none for what is outside of the body.
    pub(crate) fn meaning(&self, name: &Ident) -> Option<Meaning> {
        let text = name.to_string();
        if !self.bound.iter().any(|(bound, _)| bound.text == text) {
            return None;
        }
        let name = Name::new(name);
        let found = self.bound.iter().rev().find(|(bound, _)| *bound == name);
        found.map(|(_, meaning)| *meaning)
    }

    /// Whether nothing in scope is called this, whoever wrote it.
    pub(crate) fn is_unknown(&self, name: &Ident) -> bool {
        !self.bound.iter().any(|(bound, _)| *name == bound.text)
    }

    /// The present scope.
    pub(crate) fn scope(&self) -> Scope {
        Scope(self.bound.len())
    }

    /// Goes back to a scope.
    pub(crate) fn leave_to(&mut self, scope: Scope) {
        self.bound.truncate(scope.0);
    }
}
