//! A small table of intrinsics for tests of the IR, which knows none itself.

use kiln_jit_core::ir::{IntrinsicDef, Meaning, Scalar, TypePattern};

const fn row(
    name: &'static str,
    params: &'static [TypePattern],
    result: TypePattern,
    meaning: Meaning,
) -> IntrinsicDef {
    IntrinsicDef::new(name, params, result, meaning)
}

static TABLE: [IntrinsicDef; 3] = [
    row(
        "thread_idx.x",
        &[],
        TypePattern::Exact(Scalar::U32),
        Meaning::Position(|at| at.thread[0].into()),
    ),
    row(
        "math.sqrt",
        &[TypePattern::FLOAT],
        TypePattern::SameAs(0),
        Meaning::Pure(|_, args| args[0]),
    ),
    row(
        "math.fma",
        &[
            TypePattern::FLOAT,
            TypePattern::SameAs(0),
            TypePattern::SameAs(0),
        ],
        TypePattern::SameAs(0),
        Meaning::Pure(|_, args| args[0]),
    ),
];

/// The row of this name.
pub fn find(name: &str) -> Option<&'static IntrinsicDef> {
    TABLE.iter().find(|def| def.name == name)
}
