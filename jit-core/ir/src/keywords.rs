//! The words of the text form: one table per enumeration, read by the printer and the parser.
//!
//! A variant without a word does not compile.

use super::{
    AddressSpace, AtomicOp, BinaryOp, Bounds, CompareOp, Ordering, Passing, Phase, Scalar, Scope,
    TypeBound, UnaryOp,
};

/// An enumeration whose variants have a word each.
pub(super) trait Keyword: Copy + PartialEq + 'static {
    /// Every variant with its word.
    const TABLE: &'static [(Self, &'static str)];

    /// The word of a variant.
    fn keyword(self) -> &'static str;

    /// The variant with this word.
    fn from_keyword(word: &str) -> Option<Self> {
        let row = Self::TABLE.iter().find(|(_, known)| *known == word);
        row.map(|(variant, _)| *variant)
    }
}

/// Writes the table of an enumeration.
macro_rules! keywords {
    ($($name:ident { $($variant:ident = $word:literal,)* })*) => {$(
        impl Keyword for $name {
            const TABLE: &'static [(Self, &'static str)] = &[$(($name::$variant, $word)),*];

            fn keyword(self) -> &'static str {
                match self {
                    $($name::$variant => $word,)*
                }
            }
        }
    )*};
}

keywords! {
    UnaryOp { Neg = "neg", Not = "not", }
    BinaryOp {
        Add = "add", Sub = "sub", Mul = "mul", Div = "div", Rem = "rem", Min = "min", Max = "max",
        And = "and", Or = "or", Xor = "xor", Shl = "shl", Shr = "shr",
    }
    CompareOp { Eq = "eq", Ne = "ne", Lt = "lt", Le = "le", Gt = "gt", Ge = "ge", }
    AtomicOp {
        Add = "add", Min = "min", Max = "max", And = "and", Or = "or", Xor = "xor",
        Exchange = "exchange", Increment = "inc", Decrement = "dec",
    }
    Scope { Block = "block", Device = "device", System = "system", }
    Ordering {
        Relaxed = "relaxed", Acquire = "acquire", Release = "release",
        AcquireRelease = "acquire_release",
        SequentiallyConsistent = "sequentially_consistent",
    }
    TypeBound { Any = "any", Num = "num", Int = "int", Float = "float", }
    Bounds { Checked = "checked", Clamped = "clamped", Unchecked = "unchecked", }
    Passing { Direct = "direct", ByReference = "by_reference", ByValue = "by_value", }
    Phase { Generic = "generic", Specialized = "specialized", Legal = "legal", }
}

/// Takes the words from where the names of types are.
macro_rules! names {
    ($($name:ident)*) => {$(
        impl Keyword for $name {
            const TABLE: &'static [(Self, &'static str)] = &{
                let mut table = [($name::ALL[0], ""); $name::ALL.len()];
                let mut i = 0;
                while i < table.len() {
                    table[i] = ($name::ALL[i], $name::ALL[i].name());
                    i += 1;
                }
                table
            };

            fn keyword(self) -> &'static str {
                self.name()
            }
        }
    )*};
}

names! { Scalar AddressSpace }

#[cfg(test)]
mod tests {
    use super::*;

    fn check<K: Keyword + std::fmt::Debug>() {
        for (variant, word) in K::TABLE {
            assert_eq!(variant.keyword(), *word);
            assert_eq!(K::from_keyword(word), Some(*variant), "{word}");
        }
    }

    #[test]
    fn every_variant_has_its_own_word() {
        check::<UnaryOp>();
        check::<BinaryOp>();
        check::<CompareOp>();
        check::<AtomicOp>();
        check::<Scope>();
        check::<Ordering>();
        check::<TypeBound>();
        check::<Bounds>();
        check::<Passing>();
        check::<Phase>();
        check::<Scalar>();
        check::<AddressSpace>();
    }
}
