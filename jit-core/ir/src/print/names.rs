//! Names and numbers of the text form.
//!
//! What the text numbers, it numbers in the order of appearance: values of a function, source
//! files and struct types of a module. What does not appear is not printed, so two modules that
//! mean the same print the same, however they were made. Nothing here indexes without asking:
//! the printer also shows modules that the verifier refused.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt::Write;

use super::MAX_PRINT_DEPTH;
use crate::{
    Entity, Function, InstData, Module, Region, StructId, Type, TypeData, TypeTable, Value,
};

/// A name as the text writes it: bare when it is a word, else in quotes.
pub(crate) fn name(text: &str) -> Cow<'_, str> {
    if is_word(text) {
        Cow::Borrowed(text)
    } else {
        Cow::Owned(quote(text))
    }
}

/// Whether the lexer reads `text` as one word: letters, digits and `_`, with single dots between.
fn is_word(text: &str) -> bool {
    let bytes = text.as_bytes();
    let in_word = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
    let starts = bytes
        .first()
        .is_some_and(|&b| b.is_ascii_alphabetic() || b == b'_');
    let goes_on = |i: usize| {
        in_word(bytes[i]) || bytes[i] == b'.' && bytes.get(i + 1).is_some_and(|&b| in_word(b))
    };
    starts && (1..bytes.len()).all(goes_on)
}

/// A string in quotes, with the escapes that the lexer knows.
pub(crate) fn quote(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            c if c.is_control() => {
                let _ = write!(quoted, "\\u{{{:x}}}", u32::from(c));
            }
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

/// The numbers of a function's values, in the order in which the text defines them.
pub(crate) struct ValueNumbers {
    by_value: Vec<Option<u32>>,
    next: u32,
}

impl ValueNumbers {
    /// The numbers of all values that the text of `function` defines.
    pub(crate) fn of(function: &Function) -> Self {
        let mut numbers = ValueNumbers {
            by_value: vec![None; function.values.len()],
            next: 0,
        };
        for param in &function.params {
            numbers.enter(param.value);
        }
        let mut seen = vec![false; function.regions.len()];
        numbers.region(function, function.body, 0, &mut seen);
        numbers
    }

    fn enter(&mut self, value: Value) {
        if let Some(number @ None) = self.by_value.get_mut(value.index()) {
            *number = Some(self.next);
            self.next += 1;
        }
    }

    fn region(&mut self, function: &Function, region: Region, depth: usize, seen: &mut [bool]) {
        let Some(data) = function.regions.get(region) else {
            return;
        };
        if depth > MAX_PRINT_DEPTH || std::mem::replace(&mut seen[region.index()], true) {
            return;
        }
        for node in data.insts.iter().filter_map(|&i| function.insts.get(i)) {
            if let Some(result) = node.result {
                self.enter(result);
            }
            if let InstData::For { index, .. } = node.data {
                self.enter(index);
            }
            for inner in node.data.regions() {
                self.region(function, inner, depth + 1, seen);
            }
        }
    }

    /// `%3`; `%?3`, which does not parse, for a value that the text does not define.
    pub(crate) fn text(&self, value: Value) -> String {
        match self.by_value.get(value.index()) {
            Some(Some(number)) => format!("%{number}"),
            _ => format!("%?{}", value.index()),
        }
    }
}

/// Struct types in the order in which the text needs them, each with a name of its own.
#[derive(Default)]
pub(super) struct StructNames {
    /// In the order of declaration.
    pub(super) order: Vec<(Type, String)>,
    known: HashMap<StructId, usize>,
}

impl StructNames {
    /// The name of a struct, which is declared, after those it is made of, if it is new.
    pub(super) fn enter(&mut self, types: &TypeTable, ty: Type, id: StructId) -> &str {
        // Fields first. A list, not recursion: an unverified table may nest without end.
        let mut pending = vec![(ty, id, 0)];
        while let Some((ty, id, field)) = pending.pop() {
            if self.known.contains_key(&id) {
                continue;
            }
            let fields = types.as_struct(ty).map_or(&[][..], |s| &s.fields);
            match fields.get(field) {
                Some((_, part)) => {
                    pending.push((ty, id, field + 1));
                    let open = |id| pending.iter().any(|(_, open, _)| *open == id);
                    match innermost_struct(types, *part) {
                        Some((part, id)) if !open(id) => pending.push((part, id, 0)),
                        _ => {}
                    }
                }
                None => self.declare(types, ty, id),
            }
        }
        let position = self.known.get(&id);
        position.map_or("?", |&at| self.order[at].1.as_str())
    }

    fn declare(&mut self, types: &TypeTable, ty: Type, id: StructId) {
        let given = types.as_struct(ty).map_or("?", |s| s.name.as_str());
        let taken = |name: &str| self.order.iter().any(|(_, known)| known == name);
        let mut name = given.to_owned();
        let mut suffix = 1;
        while taken(&name) {
            name = format!("{given}.{suffix}");
            suffix += 1;
        }
        self.known.insert(id, self.order.len());
        self.order.push((ty, name));
    }
}

/// The struct behind the pointers, slices and arrays of `ty`.
fn innermost_struct(types: &TypeTable, mut ty: Type) -> Option<(Type, StructId)> {
    for _ in 0..MAX_PRINT_DEPTH {
        ty = match *types.data(ty) {
            TypeData::Struct(id) => return Some((ty, id)),
            TypeData::Array { element, .. } | TypeData::Slice { element, .. } => element,
            TypeData::Pointer { pointee, .. } => pointee,
            TypeData::Unit | TypeData::Scalar(_) | TypeData::Vector { .. } | TypeData::Param(_) => {
                return None;
            }
        };
    }
    None
}

/// Source files in the order in which locations name them.
#[derive(Default)]
pub(super) struct FileNumbers<'m> {
    /// In the order of declaration.
    pub(super) order: Vec<&'m str>,
    known: HashMap<&'m str, usize>,
}

impl<'m> FileNumbers<'m> {
    /// The number of a file, which is declared if it is new.
    pub(super) fn enter(&mut self, module: &'m Module, file: crate::FileId) -> usize {
        let path: &'m str = module.files.get(file).map_or("unknown", |path| path);
        *self.known.entry(path).or_insert_with(|| {
            self.order.push(path);
            self.order.len() - 1
        })
    }
}
