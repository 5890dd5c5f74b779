//! The words of the text form: one table per enumeration, read by the printer and the parser.
//!
//! A variant that is missing from its table would print as `?`, which the parser refuses; the
//! tests at the end count the rows.

use super::{
    AddressSpace, AtomicOp, BinaryOp, CompareOp, Ordering, Passing, Phase, Scalar, Scope,
    TypeBound, UnaryOp,
};

/// An enumeration whose variants have a word each.
pub(super) trait Keyword: Copy + PartialEq + 'static {
    /// Every variant with its word.
    const TABLE: &'static [(Self, &'static str)];

    /// The word of a variant.
    fn keyword(self) -> &'static str {
        let row = Self::TABLE.iter().find(|(variant, _)| *variant == self);
        row.map_or("?", |(_, word)| word)
    }

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
        Exchange = "exchange",
    }
    Scope { Block = "block", Device = "device", System = "system", }
    Ordering {
        Relaxed = "relaxed", Acquire = "acquire", Release = "release",
        AcquireRelease = "acquire_release",
        SequentiallyConsistent = "sequentially_consistent",
    }
    TypeBound { Any = "any", Num = "num", Int = "int", Float = "float", }
    Passing { Direct = "direct", ByReference = "by_reference", ByValue = "by_value", }
    Phase { Generic = "generic", Specialized = "specialized", Legal = "legal", }
}

impl Keyword for Scalar {
    const TABLE: &'static [(Self, &'static str)] = &{
        let mut table = [(Scalar::Bool, ""); Scalar::ALL.len()];
        let mut i = 0;
        while i < table.len() {
            table[i] = (Scalar::ALL[i], Scalar::ALL[i].name());
            i += 1;
        }
        table
    };
}

impl Keyword for AddressSpace {
    const TABLE: &'static [(Self, &'static str)] = &{
        let mut table = [(AddressSpace::Generic, ""); AddressSpace::ALL.len()];
        let mut i = 0;
        while i < table.len() {
            table[i] = (AddressSpace::ALL[i], AddressSpace::ALL[i].name());
            i += 1;
        }
        table
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check<K: Keyword + std::fmt::Debug>(rows: usize) {
        assert_eq!(K::TABLE.len(), rows);
        for (variant, word) in K::TABLE {
            assert_eq!(variant.keyword(), *word);
            assert_eq!(K::from_keyword(word), Some(*variant), "{word}");
        }
    }

    #[test]
    fn every_variant_has_its_own_word() {
        check::<UnaryOp>(UnaryOp::Not as usize + 1);
        check::<BinaryOp>(BinaryOp::Shr as usize + 1);
        check::<CompareOp>(CompareOp::Ge as usize + 1);
        check::<AtomicOp>(AtomicOp::Exchange as usize + 1);
        check::<Scope>(Scope::System as usize + 1);
        check::<Ordering>(Ordering::SequentiallyConsistent as usize + 1);
        check::<TypeBound>(TypeBound::Float as usize + 1);
        check::<Passing>(Passing::ByValue as usize + 1);
        check::<Phase>(Phase::Legal as usize + 1);
        check::<Scalar>(Scalar::F64 as usize + 1);
        check::<AddressSpace>(AddressSpace::Param as usize + 1);
    }
}
