//! Hooks that lower what gives a struct, an array or a slice, and what gives nothing, mean the same in code for GPUs
//! and for CPUs.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use half::f16;
use kiln::core::inkwell::types::BasicTypeEnum;
use kiln::core::inkwell::values::{
    AggregateValueEnum, ArrayValue, BasicValue as _, BasicValueEnum, StructValue,
};
use kiln::core::inkwell::{AtomicOrdering, AtomicRMWBinOp};
use kiln::core::ir::InstNode;
use kiln::core::prelude::*;
use kiln::core::runtime::{CpuOptions, OnHostOptions};
use kiln::core::target::Barriers;
use kiln::prelude::*;

const TEXT: &str = "module whole generic
struct @Inner { flag: bool, half: f16 }
struct @Whole { inner: @Inner, list: [u32; 2], wide: f32x8 }
struct @Two { first: slice<generic, u32>, second: slice<generic, u32> }

kernel @whole(%0 a: slice<generic, u32>, %1 b: slice<generic, u32>, %2 inners: slice<generic, mut @Inner>, %3 out: slice<generic, mut f32>) {
  shared shared0 tile: [u32; 64] align 4
  %4: u32 = intrinsic thread_idx.x()
  %5: u32 = const 1
  %6: u32 = const 63
  %7: ptr<shared, mut [u32; 64]> = shared_addr shared0
  %8: ptr<shared, mut u32> = element_ptr %7, %4
  store %8, %4
  fence acquire_release block
  barrier
  %9: u32 = sub %6, %4
  %10: ptr<shared, mut u32> = element_ptr %7, %9
  %11: u32 = load %10
  %12: u32 = and %11, %5
  %13: bool = eq %12, %5
  %14: @Two = construct(%0, %1)
  %15: slice<generic, u32> = extract %14, 0
  %16: slice<generic, u32> = extract %14, 1
  %17: slice<generic, u32> = select %13, %15, %16
  %18: ptr<generic, u32> = slice_index %17, %11
  %19: u32 = load %18
  %20: ptr<local, mut [u32; 4]> = local_alloc
  %21: u32 = const 3
  %22: u32 = and %19, %21
  %23: ptr<local, mut u32> = element_ptr %20, %22
  store %23, %19
  %24: ptr<local, mut u32> = element_ptr %20, %5
  %25: u32 = load %24
  %26: ptr<generic, mut @Inner> = slice_index %2, %4
  %27: @Inner = load %26
  %28: bool = extract %27, 0
  %29: f16 = extract %27, 1
  %30: [u32; 2] = construct(%19, %25)
  %31: f32x8 = const zero
  %32: f32 = cast %25
  %33: f32x8 = insert %31, 5, %32
  %34: @Whole = construct(%27, %30, %33)
  %35: bool = not %28
  %36: @Inner = construct(%35, %29)
  %37: @Whole = insert %34, 0, %36
  %38: @Inner = extract %37, 0
  store %26, %38
  %39: f32x8 = extract %37, 2
  %40: f32 = extract %39, 5
  %41: [u32; 2] = extract %37, 1
  %42: u32 = extract %41, 0
  %43: f32 = cast %42
  %44: f32 = add %40, %43
  if %28 {
    %45: ptr<generic, mut f32> = slice_index %3, %4
    store %45, %44
  }
}";

#[derive(Copy, Clone, PartialEq, Debug, KernelType)]
#[repr(C)]
struct Inner {
    flag: bool,
    half: f16,
}

/// The kinds of operations that a hook has lowered.
type Lowered = Arc<Mutex<BTreeSet<String>>>;

/// Lowers operations to what they are.
fn again(lowered: &Lowered) -> Hook {
    let lowered = lowered.clone();
    Hook::new("again")
        .key("changes", "nothing")
        .lower_inst(move |cx, inst, args| {
            let made = lower(cx, inst, args)?;
            if made.is_some() {
                let kind = format!("{:?}", inst.data);
                let letters = kind.chars().take_while(|c| c.is_alphanumeric());
                lowered.lock().unwrap().insert(letters.collect());
            }
            Ok(made)
        })
}

fn lower<'ctx>(
    cx: &OperationLowering<'_, 'ctx>,
    inst: &InstNode,
    args: &[BasicValueEnum<'ctx>],
) -> HookResult<Option<LoweredOperation<'ctx>>> {
    let builder = cx.builder();
    let wholes = [
        cx.result_type(),
        *cx.operand_types().first().unwrap_or(&Type::UNIT),
    ];
    let [gives_whole, takes_whole] = wholes.map(|ty| cx.module().types.is_aggregate(ty));
    Ok(Some(match (&inst.data, args) {
        (InstData::Construct { .. }, parts) if gives_whole => {
            let parts = in_memory(cx, &cx.operand_types(), parts)?;
            let mut whole = empty(cx.llvm_result_type()?);
            for (i, part) in (0..).zip(parts) {
                whole = builder.build_insert_value(whole, part, i, "")?;
            }
            whole.as_basic_value_enum().into()
        }
        (&InstData::Insert { index, .. }, &[whole, ..]) if gives_whole => {
            let parts = in_memory(cx, &cx.operand_types()[1..], &args[1..])?;
            let whole = builder.build_insert_value(aggregate(whole), parts[0], index, "")?;
            whole.as_basic_value_enum().into()
        }
        (&InstData::Extract { index, .. }, &[whole]) if takes_whole => {
            let part = builder.build_extract_value(aggregate(whole), index, "")?;
            return from_memory(cx, part).map(Some);
        }
        (InstData::Select { .. }, &[cond, p, n, q, m]) => {
            let cond = cond.into_int_value();
            let address = builder.build_select(cond, p, q, "")?.into_pointer_value();
            let length = builder.build_select(cond, n, m, "")?.into_int_value();
            (address, length).into()
        }
        (InstData::Load { .. }, &[from]) => {
            let ty = cx.llvm_result_type()?;
            builder
                .build_load(ty, from.into_pointer_value(), "")?
                .into()
        }
        (InstData::Store { .. }, &[to, value]) => {
            builder.build_store(to.into_pointer_value(), value)?;
            LoweredOperation::Done
        }
        (InstData::Fence { .. }, []) => {
            builder.build_fence(AtomicOrdering::AcquireRelease, false, "")?;
            LoweredOperation::Done
        }
        (InstData::Barrier, []) if matches!(cx.target(), Target::Cpu(_)) => LoweredOperation::Done,
        (InstData::Barrier, []) => {
            let zero = cx.context().i32_type().const_zero().into();
            let name = "llvm.nvvm.barrier.cta.sync.aligned.all";
            cx.call_intrinsic(name, None, &[zero])?.into()
        }
        _ => return Ok(None),
    }))
}

/// Operands as they are in a struct or an array.
fn in_memory<'ctx>(
    cx: &OperationLowering<'_, 'ctx>,
    types: &[Type],
    args: &[BasicValueEnum<'ctx>],
) -> HookResult<Vec<BasicValueEnum<'ctx>>> {
    let context = cx.context();
    let mut args = args.iter().copied();
    let mut next = || args.next().ok_or("an operand is missing");
    let mut parts = Vec::new();
    for &ty in types {
        let first = next()?;
        parts.push(match cx.module().types.data(ty) {
            TypeData::Slice { .. } => {
                let length = next()?.into_int_value();
                let word = context.i64_type();
                let length = cx.builder().build_int_z_extend(length, word, "")?;
                let pair = context.struct_type(&[first.get_type(), word.into()], false);
                let pair = pair.const_zero();
                let pair = cx.builder().build_insert_value(pair, first, 0, "")?;
                let pair = cx.builder().build_insert_value(pair, length, 1, "")?;
                pair.as_basic_value_enum()
            }
            TypeData::Vector { .. } => {
                let halves = first.into_vector_value();
                let four = context.f32_type().vec_type(4);
                let mut array = four.array_type(2).const_zero();
                for i in 0..2u32 {
                    let lanes: Vec<_> = (0..4)
                        .map(|lane| context.i32_type().const_int((4 * i + lane).into(), false))
                        .collect();
                    let mask = kiln::core::inkwell::types::VectorType::const_vector(&lanes);
                    let builder = cx.builder();
                    let part = builder.build_shuffle_vector(halves, halves, mask, "")?;
                    let inserted = builder.build_insert_value(array, part, i, "")?;
                    array = inserted.into_array_value();
                }
                array.into()
            }
            _ if ty == Type::BOOL => {
                let byte = context.i8_type();
                let value = first.into_int_value();
                cx.builder().build_int_z_extend(value, byte, "")?.into()
            }
            _ => first,
        });
    }
    Ok(parts)
}

/// A part of a struct or an array as an operation gives it.
fn from_memory<'ctx>(
    cx: &OperationLowering<'_, 'ctx>,
    part: BasicValueEnum<'ctx>,
) -> HookResult<LoweredOperation<'ctx>> {
    let (builder, context) = (cx.builder(), cx.context());
    let types = &cx.module().types;
    if types.is_slice(cx.result_type()) {
        let pair = part.into_struct_value();
        let address = builder
            .build_extract_value(pair, 0, "")?
            .into_pointer_value();
        let length = builder.build_extract_value(pair, 1, "")?.into_int_value();
        let length = builder.build_int_truncate(length, context.i32_type(), "")?;
        return Ok((address, length).into());
    }
    if cx.result_type() == Type::BOOL {
        let bit = context.bool_type();
        return Ok(builder
            .build_int_truncate(part.into_int_value(), bit, "")?
            .into());
    }
    if let TypeData::Vector { .. } = types.data(cx.result_type()) {
        let lanes: Vec<_> = (0..8)
            .map(|lane| context.i32_type().const_int(lane, false))
            .collect();
        let mask = kiln::core::inkwell::types::VectorType::const_vector(&lanes);
        let array = part.into_array_value();
        let low = builder
            .build_extract_value(array, 0, "")?
            .into_vector_value();
        let high = builder
            .build_extract_value(array, 1, "")?
            .into_vector_value();
        return Ok(builder.build_shuffle_vector(low, high, mask, "")?.into());
    }
    Ok(part.into())
}

fn empty(ty: BasicTypeEnum<'_>) -> AggregateValueEnum<'_> {
    aggregate(ty.const_zero())
}

fn aggregate(value: BasicValueEnum<'_>) -> AggregateValueEnum<'_> {
    match value {
        BasicValueEnum::ArrayValue(value) => <ArrayValue<'_> as Into<_>>::into(value),
        value => <StructValue<'_> as Into<_>>::into(value.into_struct_value()),
    }
}

fn inputs() -> (Vec<u32>, Vec<u32>, Vec<Inner>) {
    let inner = |i: u32| Inner {
        flag: !i.is_multiple_of(5),
        half: f16::from_f32(i as f32 / 2.0),
    };
    (
        (0..64).map(|i| i * 7 % 32).collect(),
        (0..64).map(|i| i * 5 + 100).collect(),
        (0..64).map(inner).collect(),
    )
}

fn check(name: &str, jit: &Jit) -> kiln::Result<()> {
    let (a, b, inners) = inputs();
    let (on_a, on_b) = (jit.upload(&a)?, jit.upload(&b)?);
    let (mut whole, mut out) = (jit.upload(&inners)?, jit.zeros::<f32>(64)?);
    // SAFETY: all accesses are checked.
    let kernel = unsafe { Kernel::parse("whole.kir", TEXT, &kiln::stdlib::find) }?;
    jit.launch(&kernel, 1, 64, args!(&on_a, &on_b, &mut whole, &mut out))?;
    let (whole, out) = (whole.to_vec()?, out.to_vec()?);
    for t in 0..64 {
        let other = 63 - t;
        let read = if other % 2 == 1 { a[other] } else { b[other] };
        let kept = if read % 4 == 1 { read } else { 0 };
        let Inner { flag, half } = inners[t];
        assert_eq!(whole[t], Inner { flag: !flag, half }, "{name}, thread {t}");
        let want = if flag { (read + kept) as f32 } else { 0.0 };
        assert_eq!(out[t], want, "{name}, thread {t}");
    }
    Ok(())
}

/// What the hook has to have lowered.
const KINDS: [&str; 8] = [
    "Barrier",
    "Construct",
    "Extract",
    "Fence",
    "Insert",
    "Load",
    "Select",
    "Store",
];

fn check_lowered(name: &str, device: Device) -> kiln::Result<()> {
    let lowered = Lowered::default();
    let jit = Jit::with(device, again(&lowered).into(), JitOptions::default());
    check(name, &jit)?;
    let lowered = lowered.lock().unwrap();
    assert!(lowered.iter().eq(&KINDS), "{name}: {lowered:?}");
    Ok(())
}

#[test]
fn on_a_cpu_of_any_width() -> kiln::Result<()> {
    for lanes in [None, Some(1), Some(8), Some(16), Some(32), Some(64)] {
        for barriers in [None, Some(Barriers::Coroutines)] {
            let options = CpuOptions::default().lanes(lanes).barriers(barriers);
            let name = format!("{lanes:?} lanes, {barriers:?}");
            check_lowered(&name, Device::cpu_with(options))?;
        }
    }
    check("without hooks", &Jit::on(Device::cpu()))
}

#[test]
fn in_code_for_gpus() -> kiln::Result<()> {
    check_lowered("sm_90 on this CPU", OnHostOptions::default().device())
}

#[kernel]
fn mark(x: &mut [u32], n: u32) {
    if global_id().x < n as usize {
        x[0] = 1;
    }
}

/// Has stores of numbers add to what is there.
fn adds() -> Hook {
    Hook::new("adds").lower_inst(|cx, inst, args| match (&inst.data, args) {
        (InstData::Store { .. }, &[to, value]) => {
            let (to, value) = (to.into_pointer_value(), value.into_int_value());
            let (add, relaxed) = (AtomicRMWBinOp::Add, AtomicOrdering::Monotonic);
            cx.builder().build_atomicrmw(add, to, value, relaxed)?;
            Ok(Some(LoweredOperation::Done))
        }
        _ => Ok(None),
    })
}

/// All lanes have the same operands, and each is a thread.
#[test]
fn each_thread_does_what_gives_nothing() -> kiln::Result<()> {
    for device in [Device::cpu(), OnHostOptions::default().device()] {
        let jit = Jit::with(device, adds().into(), JitOptions::default());
        let mut x = jit.zeros::<u32>(1)?;
        mark.launch(&jit, (3, 50), &mut x, 130)?;
        assert_eq!(x.to_vec()?, [130]);
    }
    Ok(())
}

/// What a hook gives for the operations of a kind that is not what they give.
fn wrong(kind: &'static str, gives: fn(&OperationLowering<'_, '_>) -> Wrong) -> Hook {
    Hook::new("wrong")
        .key("kind", kind)
        .lower_inst(move |cx, inst, args| {
            if !format!("{:?}", inst.data).starts_with(kind) {
                return Ok(None);
            }
            let word = cx.context().i32_type().const_zero();
            Ok(Some(match gives(cx) {
                Wrong::Word => word.into(),
                Wrong::Slice => (args[0].into_pointer_value(), word).into(),
                Wrong::Nothing => LoweredOperation::Done,
            }))
        })
}

enum Wrong {
    Word,
    Slice,
    Nothing,
}

#[test]
fn what_an_operation_does_not_give_is_an_error() -> kiln::Result<()> {
    let mut said = String::new();
    for hook in [
        || wrong("Store", |_| Wrong::Word),
        || wrong("Barrier", |_| Wrong::Word),
        || wrong("Load", |_| Wrong::Nothing),
        || wrong("Load", |_| Wrong::Slice),
        || wrong("Construct", |_| Wrong::Word),
        || wrong("Select", |_| Wrong::Nothing),
    ] {
        let mut errors = Vec::new();
        for device in [Device::cpu(), OnHostOptions::default().device()] {
            let jit = Jit::with(device, hook().into(), JitOptions::default());
            let error = check("wrong", &jit).expect_err("it is not what the operation gives");
            // The types of addresses, as GPUs have several memories.
            let text = error.to_string();
            errors.push(
                text.replace(" addrspace(1)", "")
                    .replace(" addrspace(3)", ""),
            );
        }
        assert_eq!(errors[0], errors[1]);
        said += &format!("{}\n", errors[0]);
    }
    expect_test::expect![[r#"
        hook `wrong` failed: an operation of function `whole` was lowered to a value of LLVM's type `i32`, and it gives nothing; give `LoweredOperation::Done`
          kernel: whole, extension point: lower_inst
        hook `wrong` failed: an operation of function `whole` was lowered to a value of LLVM's type `i32`, and it gives nothing; give `LoweredOperation::Done`
          kernel: whole, extension point: lower_inst
        hook `wrong` failed: an operation of function `whole` was lowered to nothing, and it gives a value of LLVM's type `i32`; give a value of that type, which `OperationLowering::llvm_result_type` says
          kernel: whole, extension point: lower_inst
        hook `wrong` failed: an operation of function `whole` was lowered to a slice of an address of LLVM's type `ptr` and a length of `i32`, and it gives a value of LLVM's type `i32`; give a value of that type, which `OperationLowering::llvm_result_type` says
          kernel: whole, extension point: lower_inst
        hook `wrong` failed: an operation of function `whole` was lowered to a value of LLVM's type `i32`, and it gives a value of LLVM's type `{ { ptr, i64 }, { ptr, i64 } }`; give a value of that type, which `OperationLowering::llvm_result_type` says
          kernel: whole, extension point: lower_inst
        hook `wrong` failed: an operation of function `whole` was lowered to nothing, and it gives a slice of an address of LLVM's type `ptr` and a length of `i32`; give a `LoweredOperation::Slice` of these
          kernel: whole, extension point: lower_inst
    "#]].assert_eq(&said);
    Ok(())
}
