//! What the kernel of an expression computes, as the key under which it is kept.
//!
//! Of types it holds what the IR has of them ([`TypeDigest`]). The names that Rust gives them are not
//! unique: two structs of one function may share one, as may a struct and what a cell of a notebook
//! makes of it later.

use kiln_jit_core::ir::TypeDigest;

use crate::Element;
use crate::function::{Applied, FunctionName};
use crate::space::Access;

/// A step of what a kernel computes.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Word {
    /// Stores each element of an expression of this type.
    Broadcast(TypeDigest),
    /// Folds the elements of an expression of this type with a function that captures numbers of these
    /// types.
    Reduce(TypeDigest, FunctionName, Vec<TypeDigest>),
    /// How elements are folded.
    Fold(Way),
    /// Is the kernel of this crate with this name, for elements of this type.
    Named(&'static str, TypeDigest),
    /// Reads an operand.
    Read(usize),
    /// Applies a function to as many values, which follow.
    Apply(FunctionName, usize),
    /// How the next operand is read; of indices there is no type.
    Operand(Access, Option<TypeDigest>),
    /// How many dimensions there are in each group, which of these are passed their length, and whether indices have 64
    /// bits.
    Space([usize; 2], [bool; 2], bool),
    /// Blocks go along rows; whether the grid says which row.
    ByRows(bool),
    /// A thread stores several elements, each beside those of its neighbours.
    Several,
    /// A thread stores elements of rows below each other.
    Below,
    /// A thread reads once what several of its elements need of their neighbours; those of how many rows.
    Stencil(u32),
    /// The next operand is read as the array of this one, where that one says: neighbours are read of it.
    Like(usize, usize),
    /// Blocks have tiles along this dimension and the last.
    Tiled(usize),
    /// A thread has so many elements next to each other.
    Adjacent(u32),
}

/// How elements are folded.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Way {
    /// All of them, by many blocks.
    Whole,
    /// A row by one or several blocks of so many threads.
    Rows(u32),
    /// A column by a thread.
    Columns,
    /// A column by several threads, a part each.
    Parts,
    /// All of them, by many blocks of a GPU, the last of which folds what they have left.
    Total,
    /// A row by so many lanes of a warp.
    Lanes(u32),
    /// A row by one or several blocks of a GPU.
    LongRows,
    /// Columns by blocks of a GPU that have so many threads along them.
    Tall(u32),
}

/// How many words most kernels have at most.
const USUAL: usize = 24;

/// The whole of it, in prefix notation.
pub(crate) type Words = Vec<Word>;

/// What a kernel computes, as far as it can be said.
pub(crate) struct Signature(Option<Words>);

impl Signature {
    /// Of a kernel that one word says all about.
    pub(crate) fn of(word: Word) -> Signature {
        Signature(Some(vec![word]))
    }

    /// Of a kernel that stores each element of an expression, which is still to be said.
    pub(crate) fn broadcast<T: Element>() -> Signature {
        let mut words = Vec::with_capacity(USUAL);
        words.push(Word::Broadcast(T::FORM.digest()));
        Signature(Some(words))
    }

    /// Of a kernel that folds the elements of an expression, which is still to be said.
    pub(crate) fn reduction<T: Element>(op: &Applied) -> Signature {
        let captures = op.captures.iter().map(|number| number.element());
        let name = op.name.clone();
        let word = name.map(|name| Word::Reduce(T::FORM.digest(), name, captures.collect()));
        Signature(word.map(|word| vec![word]))
    }

    /// Adds how elements are folded.
    pub(crate) fn fold(&mut self, way: Way) {
        self.add(Word::Fold(way));
    }

    /// Adds a word.
    pub(crate) fn add(&mut self, word: Word) {
        if let Some(words) = &mut self.0 {
            words.push(word);
        }
    }

    /// Adds that a function is applied to as many values; without a name nothing can be said.
    pub(crate) fn apply(&mut self, function: Option<&FunctionName>, args: usize) {
        match function {
            Some(name) => self.add(Word::Apply(name.clone(), args)),
            None => self.0 = None,
        }
    }

    /// Whether all of it can be said.
    pub(crate) fn is_named(&self) -> bool {
        self.0.is_some()
    }

    /// What can be a key; `None` if some of it cannot be said.
    pub(crate) fn words(self) -> Option<Words> {
        self.0
    }
}
