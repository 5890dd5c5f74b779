//! Rows of intrinsics: all that they say is in fingerprints, and no two of one call graph have one name.

use std::collections::HashSet;
use std::sync::Arc;

use expect_test::expect;
use kiln_jit_core::build::{Kernel, KernelBuilder};
use kiln_jit_core::definition::Definition;
use kiln_jit_core::ir::*;

use super::build::*;

const U32: TypePattern = TypePattern::Exact(Scalar::U32);

/// A row that is made here, whoever asks.
const fn made_here(name: &'static str, params: &'static [TypePattern]) -> IntrinsicDef {
    IntrinsicDef::new(name, params, U32, Meaning::Pure(|_, _| 0))
}

static BASE: IntrinsicDef = made_here("row", &[]);
/// As another library has it that holds the same source.
static SAME: IntrinsicDef = made_here("row", &[]);
/// Each differs from `BASE` in one thing.
static CHANGED: [IntrinsicDef; 10] = [
    made_here("rows", &[]),
    made_here("row", &[U32]),
    made_here("row", &[]).with_uniformity(Uniformity::Block),
    made_here("row", &[]).with_effects(Effects::Memory),
    made_here("row", &[]).with_result_below(7),
    made_here("row", &[]).with_cells(&[Cell::asm(Family::PTX, None, "mov.u32 $0, 1;", "=r")]),
    made_here("row", &[]).with_cells(&[Cell::asm(Family::PTX, None, "mov.u32 $0, 2;", "=r")]),
    made_here("row", &[]).known_as(Known::LaneId),
    made_here("row", &[]).with_version(2),
    // Here, not there: what the functions of two meanings compute cannot be compared.
    IntrinsicDef::new("row", &[], U32, Meaning::Pure(|_, _| 1)),
];

/// A device function that gives what a row does.
fn device(name: &str, row: &'static IntrinsicDef) -> Arc<Definition> {
    let mut f = Build::device(name);
    let id = f.module.intrinsic(row);
    let data = InstData::Intrinsic {
        id,
        args: ValueList::new(),
    };
    let value = f.value(data, Type::U32);
    f.ret(value);
    f.define()
}

#[test]
fn two_rows_of_one_name_are_refused_where_a_kernel_is_built() {
    let kernel = Kernel::build("rows", |k: &KernelBuilder| {
        k.intrinsic(&BASE, &[]);
        k.intrinsic(&SAME, &[]);
        k.intrinsic(&CHANGED[9], &[]);
    });
    let error = kernel.expect_err("two rows of one name").to_string();
    expect![[r#"
        `rows` cannot be built: 1 error
          jit-core/tests/specialize/rows.rs:56:11: two intrinsics are named `row`: that of jit-core/tests/specialize/rows.rs:17:5 and that of jit-core/tests/specialize/rows.rs:35:5; give one of them another name"#]].assert_eq(&error);
}

#[test]
fn all_that_a_row_says_is_in_the_fingerprint() {
    let fingerprint = |row| snapshot(&device("f", row)).fingerprint;
    let mut fingerprints = HashSet::from([fingerprint(&BASE)]);
    for row in &CHANGED {
        assert!(fingerprints.insert(fingerprint(row)), "{row:?}");
    }
    assert!(!fingerprints.insert(fingerprint(&SAME)));
}

#[test]
fn rows_of_two_libraries_are_one() {
    let mut module = Module::new("rows");
    let first = module.intrinsic(&BASE);
    assert_eq!(module.intrinsic(&SAME), first);
    assert_ne!(module.intrinsic(&CHANGED[8]), first);
}

#[test]
fn two_rows_of_one_name_are_refused_in_a_module() {
    let mut module = Module::new("rows");
    module.intrinsic(&BASE);
    module.intrinsic(&CHANGED[9]);
    let errors = verify(&module).expect_err("two rows of one name");
    expect!["two intrinsics are named `row`: that of jit-core/tests/specialize/rows.rs:17:5 and that of jit-core/tests/specialize/rows.rs:35:5; give one of them another name"].assert_eq(&errors.errors[0].message);
}

#[test]
fn two_rows_of_one_name_are_refused_in_a_call_graph() {
    let mut k = Build::kernel("caller");
    for (name, row) in [("first", &BASE), ("second", &CHANGED[9])] {
        let callee = k.declare(&device(name, row));
        k.call(callee, &[], &[], &[], Type::U32);
    }
    expect![[r#"
        `second` (k.rs:2:1): two intrinsics are named `row`: that of jit-core/tests/specialize/rows.rs:17:5 and that of jit-core/tests/specialize/rows.rs:35:5; give one of them another name
    "#]].assert_eq(&shown(&refused(&k.define(), &on(&[], &[]))));
}
