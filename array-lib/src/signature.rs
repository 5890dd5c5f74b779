//! What the kernel of an expression computes, as the key under which it is kept.
//!
//! Of types it holds what the IR has of them ([`TypeDigest`]). The names that Rust gives them are not
//! unique: two structs of one function may share one, as may a struct and what a cell of a notebook
//! makes of it later.

use kiln_jit_core::ir::TypeDigest;

use crate::Element;
use crate::broadcast::Access;
use crate::function::{Applied, FunctionName};

/// A step of what a kernel computes.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Word {
    /// Stores each element of an expression of this type.
    Broadcast(TypeDigest),
    /// Folds the elements of an expression of this type with a function that captures numbers of these
    /// types.
    Reduce(TypeDigest, FunctionName, Vec<TypeDigest>),
    /// Reads a parameter.
    Read(usize, Access, TypeDigest),
    /// Applies a function to as many values, which follow.
    Apply(FunctionName, usize),
}

/// The whole of it, in prefix notation.
pub(crate) type Words = Vec<Word>;

/// What a kernel computes, as far as it can be said.
pub(crate) struct Signature(Option<Words>);

impl Signature {
    /// Of a kernel that stores each element of an expression, which is still to be said.
    pub(crate) fn broadcast<T: Element>() -> Signature {
        Signature(Some(vec![Word::Broadcast(T::FORM.digest())]))
    }

    /// Of a kernel that folds the elements of an expression, which is still to be said.
    pub(crate) fn reduction<T: Element>(op: &Applied) -> Signature {
        let captures = op.captures.iter().map(|number| number.element());
        let name = op.name.clone();
        let word = name.map(|name| Word::Reduce(T::FORM.digest(), name, captures.collect()));
        Signature(word.map(|word| vec![word]))
    }

    /// Adds that a parameter of this type is read.
    pub(crate) fn read(&mut self, position: usize, access: Access, element: TypeDigest) {
        if let Some(words) = &mut self.0 {
            words.push(Word::Read(position, access, element));
        }
    }

    /// Adds that a function is applied to as many values; without a name nothing can be said.
    pub(crate) fn apply(&mut self, function: Option<&FunctionName>, args: usize) {
        match (function, &mut self.0) {
            (Some(name), Some(words)) => words.push(Word::Apply(name.clone(), args)),
            _ => self.0 = None,
        }
    }

    /// What can be a key; `None` if some of it cannot be said.
    pub(crate) fn words(self) -> Option<Words> {
        self.0
    }
}
