//! Every cell of the library's rows on this machine: as code for its CPU and as code for GPUs. On a GPU they are part of
//! `tests/gpu.rs`.

use expect_test::expect;
use kiln::core::ir::{Cell, Family, IntrinsicDef, Known, Meaning, Scalar, TypePattern};
use kiln::core::runtime::OnHostOptions;
use kiln::prelude::*;
use libtest_mimic::Trial;
use suite::cells::{APART, APPROXIMATIONS, Row, seed};
use suite::{Case, Outcome};

use crate::assemble::modules;
use crate::test;

/// The tests.
pub fn tests() -> Vec<Trial> {
    let mut tests = each_row("compiled", || Jit::on(Device::cpu()));
    tests.extend(each_row("gpu_on_host", || {
        let device = OnHostOptions::default().device();
        Jit::with(device, kiln::hooks::standard(), JitOptions::default())
    }));
    tests.extend([
        test("cells::those_apart_are_in_cases", reasons),
        test("cells::approximations_are_in_a_case", approximations),
        test("cells::other_bits_are_found", other_bits),
        test("cells::rows_of_no_known_form_are_told", unknown),
    ]);
    tests
}

fn each_row(device: &str, jit: fn() -> Jit) -> Vec<Trial> {
    let rows = Row::all().into_iter();
    let on_device = |row: Row| {
        let name = format!("{device}::cells::{}", row.name());
        test(name, move || row.check(&jit(), seed()))
    };
    rows.map(on_device).collect()
}

/// Whether a kernel of a case executes a row.
fn has_row(case: &Case, row: &str) -> bool {
    let call = format!("intrinsic {row}(");
    let mut modules = modules(case).into_iter();
    modules.any(|module| module.to_string().contains(&call))
}

fn case(path: &str) -> Result<Case, String> {
    let found = suite::cases().into_iter().find(|case| case.path() == path);
    found.ok_or_else(|| format!("there is no case `{path}`"))
}

/// How many cells there are, at least: of rows that leave no type open one each.
const CELLS: usize = 400;

/// A reason is one only as long as there is the row, and what it says launches it.
fn reasons() -> Outcome {
    for apart in APART {
        let Some(def) = kiln::stdlib::find(apart.row) else {
            return Err(format!("there is no row `{}`", apart.row).into());
        };
        // Modules are kept as they are when questions about the target are answered.
        let is_answered = matches!(def.known, Some(Known::TargetIsGpu | Known::TargetSm));
        if !is_answered && !has_row(&case(apart.case)?, apart.row) {
            let (row, case) = (apart.row, apart.case);
            return Err(format!("no kernel of `{case}` has `{row}`").into());
        }
    }
    let count: usize = Row::all().into_iter().map(Row::count).sum();
    match count {
        CELLS.. => Ok(()),
        _ => Err(format!("{count} cells are left, of at least {CELLS}").into()),
    }
}

fn approximations() -> Outcome {
    let case = case(APPROXIMATIONS)?;
    let mut rows = kiln::stdlib::registry().filter(|def| !def.approximations.is_empty());
    match rows.find(|def| !has_row(&case, def.name)) {
        None => Ok(()),
        Some(def) => Err(format!("`{}` can be approximated, and is not there", def.name).into()),
    }
}

const U32: TypePattern = TypePattern::Exact(Scalar::U32);

/// A machine's instruction counts ones, the row one more of those that are not all.
static COUNT: IntrinsicDef = IntrinsicDef::new(
    "user.count",
    &[U32],
    U32,
    Meaning::Pure(|_, args| u64::from(args[0].count_ones() + u32::from(args[0] == 7))),
)
.with_cells(&[Cell::overloaded(Family::Any, Scalar::U32, "llvm.ctpop")]);

fn other_bits() -> Outcome {
    let found = Row::of(&COUNT).check(&Jit::on(Device::cpu()), 1);
    let error = found.expect_err("it counts one more").to_string();
    expect![[r#"
        user.count, seed 1:
        u32, result 0: 1 of 960
          of 7 (0x00000007), thread 848: 3 (0x00000003), not 4 (0x00000004)"#]]
    .assert_eq(&error);
    Ok(())
}

static ARRAY: IntrinsicDef = IntrinsicDef::new(
    "user.array",
    &[TypePattern::Array(&U32, 3)],
    U32,
    Meaning::Body(|_| None),
);

fn unknown() -> Outcome {
    let told = Row::of(&ARRAY).check(&Jit::on(Device::cpu()), 1);
    let error = told.expect_err("it takes an array").to_string();
    expect!["`user.array` has a parameter of an array of 3 of u32, with which no launch is made: make one in `cells/call.rs`, or name the row in `cells::APART` with a case that launches it"].assert_eq(&error);
    Ok(())
}
