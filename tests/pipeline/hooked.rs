//! Hooks that lower operations mean the same in code for GPUs and for CPUs: for each thread, in the lanes
//! that execute the operation.

use half::f16;
use kiln::core::hook::{Hook, HookResult, HookSet, LoweredOperation, OperationLowering};
use kiln::core::inkwell::FloatPredicate;
use kiln::core::inkwell::values::BasicValueEnum::{self, FloatValue, IntValue, PointerValue};
use kiln::core::ir::{BinaryOp, CompareOp, InstData, InstNode, Type};
use kiln::core::runtime::{CpuOptions, OnHostOptions};
use kiln::core::target::Barriers;
use kiln::prelude::*;

/// Lowers one operation of each kind to another.
fn changes() -> Hook {
    Hook::new("changes")
        .lower_inst(lower_inst)
        .lower_intrinsic(|cx, intrinsic, args| {
            Ok(match (intrinsic.name, args) {
                ("math.sqrt", &[FloatValue(x)]) => {
                    Some(cx.builder().build_float_neg(x, "")?.into())
                }
                _ => None,
            })
        })
}

fn lower_inst<'ctx>(
    cx: &OperationLowering<'_, 'ctx>,
    inst: &InstNode,
    args: &[BasicValueEnum<'ctx>],
) -> HookResult<Option<LoweredOperation<'ctx>>> {
    let builder = cx.builder();
    let is_u64 = inst
        .result
        .is_some_and(|r| cx.function().type_of(r) == Type::U64);
    Ok(Some(match (&inst.data, args) {
        // Products become quotients, also of halves.
        (
            InstData::Binary {
                op: BinaryOp::Mul, ..
            },
            &[FloatValue(a), FloatValue(b)],
        ) => builder.build_float_div(a, b, "")?.into(),
        (
            InstData::Binary {
                op: BinaryOp::Xor, ..
            },
            &[IntValue(a), IntValue(b)],
        ) => builder.build_and(a, b, "")?.into(),
        (
            InstData::Compare {
                op: CompareOp::Lt, ..
            },
            &[FloatValue(a), FloatValue(b)],
        ) => builder
            .build_float_compare(FloatPredicate::OGE, a, b, "")?
            .into(),
        // Through an address, with a branch: what is loaded counts up to 10.
        (InstData::Load { .. }, &[PointerValue(from)]) if is_u64 => {
            let word = cx.context().i64_type();
            let value = builder.build_load(word, from, "")?.into_int_value();
            let ten = word.const_int(10, false);
            let above = builder.build_int_compare(
                kiln::core::inkwell::IntPredicate::UGT,
                value,
                ten,
                "",
            )?;
            let [high, done] = ["high", "done"]
                .map(|name| cx.context().append_basic_block(cx.llvm_function(), name));
            let before = builder
                .get_insert_block()
                .ok_or("a builder without a place")?;
            builder.build_conditional_branch(above, high, done)?;
            builder.position_at_end(high);
            builder.build_unconditional_branch(done)?;
            builder.position_at_end(done);
            let phi = builder.build_phi(word, "")?;
            phi.add_incoming(&[(&ten, high), (&value, before)]);
            phi.as_basic_value().into()
        }
        _ => return Ok(None),
    }))
}

const THREADS: usize = 200;

#[kernel]
fn operations(
    x: &[f32],
    words: &[u64],
    by: f32,
    out: &mut [f32],
    bits: &mut [u64],
    halves: &mut [f16],
) {
    let i = global_id().x;
    if i >= out.len() {
        return;
    }
    // Lanes part, and one operation has the same operands in all of them.
    let same = by * 4.0;
    if i % 3 == 0 {
        out[i] = x[i] * by;
        bits[i] = words[i];
    } else if x[i] < 5.0 {
        out[i] = x[i].sqrt() + same;
        bits[i] = words[i] ^ 6;
    } else {
        let scale = halves[i + THREADS];
        halves[i] *= scale;
    }
}

fn inputs() -> (Vec<f32>, Vec<u64>) {
    let i = || 0..THREADS as u32;
    (
        i().map(|i| (i % 11) as f32).collect(),
        i().map(|i| u64::from(i) % 17).collect(),
    )
}

fn halves() -> Vec<f16> {
    let i = 0..2 * THREADS as u32;
    i.map(|i| f16::from_f32((i % 13 + 1) as f32)).collect()
}

fn expected() -> (Vec<f32>, Vec<u64>, Vec<f16>) {
    let (x, words) = inputs();
    let by = 2.0;
    let loaded = |i: usize| words[i].min(10);
    let (mut out, mut bits, mut halves) = (vec![0.0; THREADS], vec![0; THREADS], halves());
    for i in 0..THREADS {
        if i % 3 == 0 {
            (out[i], bits[i]) = (x[i] / by, loaded(i));
        } else if x[i] >= 5.0 {
            (out[i], bits[i]) = (-x[i] + by / 4.0, loaded(i) & 6);
        } else {
            halves[i] = halves[i] / halves[i + THREADS];
        }
    }
    (out, bits, halves)
}

fn check(name: &str, jit: &Jit) -> kiln::Result<()> {
    let (x, words) = inputs();
    let (x, words) = (jit.upload(&x)?, jit.upload(&words)?);
    let mut out = jit.zeros::<f32>(THREADS)?;
    let mut bits = jit.zeros::<u64>(THREADS)?;
    let mut halves = jit.upload(&halves())?;
    let launch = (4, 50);
    operations.launch(
        jit,
        launch,
        &x,
        &words,
        2.0,
        &mut out,
        &mut bits,
        &mut halves,
    )?;
    let found = (out.to_vec()?, bits.to_vec()?, halves.to_vec()?);
    assert_eq!(found, expected(), "{name}");
    Ok(())
}

#[test]
fn on_a_cpu_of_any_width() -> kiln::Result<()> {
    for lanes in [None, Some(1), Some(8), Some(16), Some(32), Some(64)] {
        for barriers in [None, Some(Barriers::Coroutines)] {
            let options = CpuOptions::default().lanes(lanes).barriers(barriers);
            let hooks = HookSet::new().with(changes());
            let jit = Jit::with(Device::cpu_with(options), hooks, JitOptions::default());
            check(&format!("{lanes:?} lanes, {barriers:?}"), &jit)?;
        }
    }
    Ok(())
}

#[test]
fn in_code_for_gpus() -> kiln::Result<()> {
    let device = OnHostOptions::default().device();
    let hooks = HookSet::new().with(changes());
    let jit = Jit::with(device, hooks, JitOptions::default());
    check("sm_90 on this CPU", &jit)
}

/// Gives a number of another type.
fn wrong() -> Hook {
    Hook::new("wrong").lower_inst(|cx, inst, _| {
        let is_product = matches!(inst.data, InstData::Binary { op, .. } if op == BinaryOp::Mul);
        Ok(is_product.then(|| cx.context().i8_type().const_zero().into()))
    })
}

#[test]
fn a_value_of_another_type_is_an_error() -> kiln::Result<()> {
    let jit = Jit::with(
        Device::cpu(),
        HookSet::new().with(wrong()),
        JitOptions::default(),
    );
    let error = check("wrong", &jit).expect_err("a product is no `i8`");
    let error = error.to_string();
    assert!(
        error.contains(
            "hook `wrong` failed: an operation of function `operations` was lowered to a value of LLVM's type"
        ),
        "{error}"
    );
    Ok(())
}
