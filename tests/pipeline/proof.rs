//! What code generation takes for proved, and what happens where it is not so.

use std::sync::Arc;

use expect_test::{Expect, expect};
use kiln::core::codegen::{
    BackendError, Generator, IllegalOperations, Isa, Isas, LlvmIsa, LlvmJob, Lowered,
};
use kiln::core::hook::HookSet;
use kiln::core::ir::{Cell, Effects, Family, IntrinsicDef, Meaning, Scalar, TypePattern};
use kiln::core::legal::Legal;
use kiln::core::target::{CustomTarget, PtxTarget, Target};
use kiln::prelude::*;

const FAMILY: &str = "misled";

/// Takes every parameter for a number, as no proof says.
struct Misled;

impl Isa for Misled {
    fn fingerprint(&self) -> String {
        "misled 1".to_owned()
    }

    fn check(&self, _: &Legal) -> Result<(), IllegalOperations> {
        Ok(())
    }

    fn generator(&self) -> Generator<'_> {
        Generator::Llvm(self)
    }
}

impl LlvmIsa for Misled {
    fn lower<'a>(&self, job: LlvmJob<'a>) -> Result<Lowered<'a>, BackendError> {
        let kernel = job.legal.kernel();
        let types = job.legal.legal_types();
        let numbers = kernel.params.iter().map(|param| {
            let scalar = types.scalar_of(kernel.type_of(param.value));
            format!("{scalar:?}")
        });
        Ok(Lowered::Interpret(numbers.collect()))
    }
}

#[kernel]
fn ones(y: &mut [u32]) {
    let i = thread_idx().x;
    if i < y.len() {
        y[i] = 1;
    }
}

#[test]
fn a_proof_that_does_not_hold_is_an_error_that_names_the_kernel() -> kiln::Result<()> {
    let options = JitOptions::default()
        .target(Target::Custom(CustomTarget {
            family: FAMILY,
            settings: String::new(),
        }))
        .isas(Isas::default().with(FAMILY, |_| Arc::new(Misled)));
    let jit = Jit::with(Device::cpu(), HookSet::new(), options);
    let mut y = jit.zeros::<u32>(4)?;
    let error = jit.inspect(&ones, args!(&mut y)).expect_err("it is misled");
    expect![[r#"
        compiling kernel `ones` panicked: type `slice<generic, mut u32>` is not a scalar, though the module is legal
        help: this is a bug in a hook or in Kiln"#]]
    .assert_eq(&error.to_string());
    // The process has lost nothing.
    let jit = Jit::with(Device::cpu(), HookSet::new(), JitOptions::default());
    let mut y = jit.zeros::<u32>(4)?;
    ones.launch(&jit, (1, 4), &mut y)?;
    assert_eq!(y.to_vec()?, [1; 4]);
    Ok(())
}

const U32: TypePattern = TypePattern::Exact(Scalar::U32);
const F32: TypePattern = TypePattern::Exact(Scalar::F32);

const fn row(name: &'static str, result: TypePattern) -> IntrinsicDef {
    IntrinsicDef::new(name, &[U32], result, Meaning::Pure(|_, _| 0))
}

static OTHER: IntrinsicDef =
    row("wrong.type", F32).with_cells(&[Cell::overloaded(Family::Any, Scalar::U32, "llvm.ctpop")]);

static NONE: IntrinsicDef = row("wrong.nothing", U32)
    .with_effects(Effects::Synchronizes)
    .with_cells(&[Cell::named(Family::PTX, "llvm.nvvm.bar.warp.sync")]);

#[test]
fn cells_that_give_what_the_row_does_not_say_are_errors_that_name_it() -> kiln::Result<()> {
    let ptx = Some(Target::Ptx(PtxTarget::for_sm(90)));
    let check = |row: &'static IntrinsicDef, target, want: Expect| -> kiln::Result<()> {
        let kernel = Kernel::build("calls", |k| {
            let out = k.slice_mut("out", Type::U32);
            let given = k.intrinsic(row, &[k.thread_idx().x()]);
            out.at(0).set(given.cast(Type::U32));
        })?;
        let options = JitOptions::default().target(target);
        let jit = Jit::with(Device::cpu(), HookSet::new(), options);
        let mut out = jit.zeros::<u32>(1)?;
        let error = jit.inspect_block(&kernel, 32, args!(&mut out));
        let error = error.expect_err("the cell is wrong").to_string();
        // A CPU with narrower registers runs fewer lanes at once.
        want.assert_eq(&error.replace("<16 x ", "<32 x "));
        Ok(())
    };
    check(
        &OTHER,
        ptx.clone(),
        expect![[
            r#"LLVM back end, lower: a cell of the intrinsic `wrong.type` gives a value of LLVM's type `i32`, and the row's result is of LLVM's type `float`; give the cell another name or template, or leave it out"#
        ]],
    )?;
    check(
        &OTHER,
        None,
        expect![[
            r#"LLVM back end, lower: a cell of the intrinsic `wrong.type` gives a value of LLVM's type `<32 x i32>`, and the row's result is of LLVM's type `<32 x float>`; give the cell another name or template, or leave it out"#
        ]],
    )?;
    check(
        &NONE,
        ptx,
        expect![[
            r#"LLVM back end, lower: a cell of the intrinsic `wrong.nothing` gives no value, and the row's result is of LLVM's type `i32`; give the cell another name or template, or leave it out"#
        ]],
    )?;
    Ok(())
}
