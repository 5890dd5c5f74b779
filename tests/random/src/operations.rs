//! The names of operations, for tests that look whether one is missing.

use std::fmt::Debug;

use kiln_jit_core::ir::{AtomicOp, BinaryOp, CompareOp, InstData, UnaryOp};

/// Names the variants of an enumeration; one that is not in the list does not compile.
macro_rules! variants {
    ($all:ident, $name:ident of $enumeration:ident: $($variant:ident),* $(,)?) => {
        const $all: &[&str] = &[$(stringify!($variant)),*];

        fn $name(of: &$enumeration) -> &'static str {
            match of {
                $($enumeration::$variant { .. } => stringify!($variant)),*
            }
        }
    };
}

variants! { VARIANTS, variant of InstData:
    Const, ConstParam, Unary, Binary, Compare, Select, Cast, Bitcast, Construct, Extract, Insert, VarGet,
    VarSet, Load, Store, PtrOffset, FieldPtr, ElementPtr, SpaceCast, SliceNew, SliceLen, SlicePtr,
    SliceIndex, SharedAddr, DynamicShared, LocalAlloc, GlobalAddr, Hidden, AtomicLoad, AtomicStore, AtomicRmw,
    AtomicCas, Barrier, Assume, Assert, Print, Fence, Call, Intrinsic, If, Loop, For, Break, Continue, Return,
}

/// The name of an operation: that of its variant, with what it computes if that is an enumeration of
/// its own, as in `Binary(Rem)`.
pub fn name(data: &InstData) -> String {
    let variant = variant(data);
    match data {
        InstData::Unary { op, .. } => with(variant, op),
        InstData::Binary { op, .. } => with(variant, op),
        InstData::Compare { op, .. } => with(variant, op),
        InstData::AtomicRmw { op, .. } => with(variant, op),
        _ => variant.to_owned(),
    }
}

/// The names of all operations.
pub fn all() -> Vec<String> {
    fn each(variant: &str, all: &[impl Debug]) -> Vec<String> {
        all.iter().map(|op| with(variant, op)).collect()
    }
    let names = |&variant: &&str| match variant {
        "Unary" => each(variant, &UnaryOp::ALL),
        "Binary" => each(variant, &BinaryOp::ALL),
        "Compare" => each(variant, &CompareOp::ALL),
        "AtomicRmw" => each(variant, &AtomicOp::ALL),
        _ => vec![variant.to_owned()],
    };
    VARIANTS.iter().flat_map(names).collect()
}

fn with(variant: &str, op: &impl Debug) -> String {
    format!("{variant}({op:?})")
}
