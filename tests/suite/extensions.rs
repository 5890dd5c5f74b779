//! What hooks do on a device: what is passed for them, and what they are told.

use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use kiln::core::abi::LaunchArg;
use kiln::core::hook::{Hook, LoweredOperation};
use kiln::core::inkwell::values::BasicValueEnum::{IntValue, PointerValue, StructValue};
use kiln::core::inkwell::{AtomicOrdering, AtomicRMWBinOp};
use kiln::core::ir::{
    AddressSpace, AtomicOp, Cell, Effects, Family, InstData, IntrinsicDef, Meaning, Scalar, Type,
    TypePattern,
};
use kiln::core::target::Target;
use kiln::prelude::*;

use super::{Outcome, chapter};

chapter![
    hidden_arguments_are_those_of_each_launch,
    hidden_arguments_reach_functions_that_are_called,
    a_fault_is_told_beside_hidden_arguments,
    a_function_runs_in_threads_that_fault,
    launches_have_times_and_arguments,
    loaded_code_has_facts,
    an_assembler_of_ones_own_makes_the_code,
    functions_in_two_memories,
    kernels_share_globals,
    functions_stand_in_the_place_of_others,
    operations_are_lowered_in_another_way,
];

#[device_fn]
fn halve(x: &mut [f32], i: usize) {
    x[i] /= 2.0;
}

#[kernel]
fn halve_large(x: &mut [f32], limit: f32) {
    let i = global_id().x;
    if i < x.len() && x[i] > limit {
        halve(x, i);
    }
}

#[kernel]
fn beyond(x: &mut [f32], i: u32) {
    if global_id().x == 0 {
        x[0] = 1.0;
    }
    // What a thread wrote since it last met others may be missing where it faults.
    barrier();
    if global_id().x == 0 {
        x[i as usize] = 2.0;
    }
}

/// Counts the stores that threads execute, each as `weight`, which is taken anew at each launch.
fn count_stores(count: Arc<Buffer<u32>>, weight: Arc<AtomicU32>) -> Hook {
    Hook::new("count-stores")
        .rewrite_ir(|_, module| {
            let ty = module.types.pointer(Type::U32, AddressSpace::Global, true);
            let count = module.add_hidden("count-stores", "count", ty);
            let weight = module.add_hidden("count-stores", "weight", Type::U32);
            module.rewrite_each(|at| {
                if let InstData::Store { .. } = at.data() {
                    let (count, weight) = (at.ins().hidden(count), at.ins().hidden(weight));
                    at.ins().atomic_rmw(AtomicOp::Add, count, weight);
                }
            });
            Ok(())
        })
        .hidden_arguments(move |_, hidden| {
            hidden.set("weight", weight.load(Relaxed))?;
            hidden.set("count", &count)
        })
}

/// The same device and target with one more hook.
fn with(jit: &Jit, hook: Hook) -> Jit {
    let hooks = jit.hooks().clone().with(hook);
    Jit::with(jit.device().clone(), hooks, jit.options().clone())
}

fn hidden_arguments_are_those_of_each_launch(jit: &Jit) -> Outcome {
    let count = Arc::new(jit.zeros::<u32>(1)?);
    let weight = Arc::new(AtomicU32::new(1));
    let jit = with(jit, count_stores(count.clone(), weight.clone()));
    let mut x = jit.upload(&[4.0f32, 16.0, 32.0, 8.0])?;
    halve_large.launch(&jit, (1, 32), &mut x, 10.0)?;
    assert_eq!(x.to_vec()?, [4.0, 8.0, 16.0, 8.0]);
    assert_eq!(count.to_vec()?, [2]);
    weight.store(100, Relaxed);
    let prepared = jit.compile(&halve_large, args!(&mut x, 5.0f32))?;
    prepared.launch(1, 32, args!(&mut x, 5.0f32))?;
    assert_eq!(count.to_vec()?, [302]);
    weight.store(1000, Relaxed);
    prepared.launch(1, 32, args!(&mut x, 7.0f32))?;
    assert_eq!(count.to_vec()?, [1302]);
    assert_eq!(x.to_vec()?, [4.0, 4.0, 4.0, 4.0]);
    Ok(())
}

fn hidden_arguments_reach_functions_that_are_called(jit: &Jit) -> Outcome {
    let count = Arc::new(jit.zeros::<u32>(1)?);
    let weight = Arc::new(AtomicU32::new(3));
    let jit = with(jit, count_stores(count.clone(), weight));
    let mut x = jit.upload(&vec![8.0f32; 1000])?;
    halve_large.launch(&jit, (grid_for(1000, 64), 64), &mut x, 1.0)?;
    assert_eq!(count.to_vec()?, [3000]);
    assert_eq!(x.to_vec()?, vec![4.0; 1000]);
    Ok(())
}

fn a_fault_is_told_beside_hidden_arguments(jit: &Jit) -> Outcome {
    let count = Arc::new(jit.zeros::<u32>(1)?);
    let weight = Arc::new(AtomicU32::new(1));
    let jit = with(jit, count_stores(count.clone(), weight));
    let mut x = jit.zeros::<f32>(4)?;
    let told = beyond
        .launch(&jit, (1, 32), &mut x, 9)
        .and_then(|()| jit.synchronize());
    let error = told.expect_err("an index is out of bounds");
    let fault = error.fault().ok_or("it is no fault")?;
    assert_eq!((fault.index, fault.length), (9, 4));
    assert_eq!(count.to_vec()?, [1]);
    Ok(())
}

/// Has threads that fault count themselves, and add up their indices and the lengths that there are.
fn count_faults() -> kiln::Result<Hook> {
    let count = DeviceFn::build("count_faults", |k| {
        k.param("site", Type::U32);
        let (index, length) = (k.param("index", Type::U64), k.param("length", Type::U64));
        let faults = k.global("extensions.faults", &[0u64; 3]);
        faults.at(0).atomic_add(1u64);
        faults.at(1).atomic_add(index);
        faults.at(2).atomic_add(length);
    })?;
    let hook = Hook::new("count-faults").key("counts", "index and length");
    Ok(hook.fault_function(move |_, module| Ok(Some(count.link_into(module, &[], &[])?))))
}

#[device_fn]
fn set(x: &mut [u32], i: usize) {
    x[i] = 1;
}

#[kernel]
fn some_beyond(x: &mut [u32], by: i32) {
    let i = global_id().x;
    if by < 0 {
        x[(i as i32 + by) as usize] = 2;
    } else {
        set(x, i);
    }
}

fn a_function_runs_in_threads_that_fault(jit: &Jit) -> Outcome {
    let jit = with(jit, count_faults()?);
    let faults = |x: &mut Buffer<u32>, by| {
        let launched = some_beyond.launch(&jit, (1, 32), x, by);
        let told = launched.and_then(|()| jit.synchronize());
        told.err().and_then(|error| error.fault().cloned())
    };
    let mut x = jit.zeros::<u32>(32)?;
    assert_eq!(faults(&mut x, 0), None);
    assert_eq!(x.to_vec()?, [1; 32]);
    let counted = jit.global::<u64>("extensions.faults")?;
    assert_eq!(counted.to_vec()?, [0; 3]);
    let mut x = jit.zeros::<u32>(29)?;
    let fault = faults(&mut x, 0).ok_or("three threads fault")?;
    assert!((29..32).contains(&fault.index), "{fault}");
    assert_eq!(fault.length, 29);
    assert_eq!(counted.to_vec()?, [3, 29 + 30 + 31, 3 * 29]);
    assert_eq!(x.to_vec()?, [1; 29]);
    counted.write(&[0; 3])?;
    // Of `usize`, which has 32 bits in kernels.
    let first = u64::from(u32::MAX);
    faults(&mut x, -1).ok_or("the first thread and the last two fault")?;
    assert_eq!(counted.to_vec()?, [3, first + 29 + 30, 3 * 29]);
    Ok(())
}

#[kernel]
fn triple(x: &mut [f32]) {
    let i = global_id().x;
    if i < x.len() {
        x[i] *= 3.0;
    }
}

fn launches_have_times_and_arguments(jit: &Jit) -> Outcome {
    let told = Arc::new(Mutex::new(Vec::new()));
    let tells = told.clone();
    let hook = Hook::new("times").before_launch(move |event| {
        let length = match event.arg("x") {
            Some(LaunchArg::Slice { length, .. }) => length,
            other => return Err(format!("{other:?}").into()),
        };
        let line = (event.id, event.kernel.to_owned(), length, event.measure());
        tells.lock().unwrap().push(line);
        Ok(())
    });
    let jit = with(jit, hook);
    let mut x = jit.upload(&vec![1.0f32; 1000])?;
    for _ in 0..3 {
        triple.launch(&jit, (grid_for(1000, 64), 64), &mut x)?;
    }
    assert_eq!(x.to_vec()?[999], 27.0);
    let told = told.lock().unwrap();
    assert_eq!(told.len(), 3);
    let mut ids: Vec<u64> = told.iter().map(|(id, ..)| *id).collect();
    ids.dedup();
    assert_eq!(ids.len(), 3);
    for (_, kernel, length, time) in told.iter() {
        assert_eq!((kernel.as_str(), *length), ("triple", 1000));
        assert!(time.milliseconds()?.is_some_and(|ms| ms >= 0.0), "{time:?}");
    }
    Ok(())
}

fn loaded_code_has_facts(jit: &Jit) -> Outcome {
    let told = Arc::new(Mutex::new(Vec::new()));
    let tells = told.clone();
    let hook = Hook::new("facts").after_load(move |cx, facts| {
        let line = (cx.kernel.to_owned(), facts.registers, facts.block_threads);
        tells.lock().unwrap().push(line);
        Ok(())
    });
    let jit = with(jit, hook);
    let mut x = jit.upload(&[1.0f32; 4])?;
    for _ in 0..2 {
        triple.launch(&jit, (1, 32), &mut x)?;
    }
    assert_eq!(x.to_vec()?, [9.0; 4]);
    let told = told.lock().unwrap();
    let [(kernel, registers, threads)] = told.as_slice() else {
        panic!("told of one code: {told:?}");
    };
    assert_eq!(kernel, "triple");
    if let (DeviceKind::Cuda, Target::Ptx(_)) = (jit.device().info().kind, jit.target()) {
        assert!(registers.is_some_and(|count| count > 0), "{told:?}");
        assert!(threads.is_some_and(|count| count >= 32), "{told:?}");
    }
    Ok(())
}

/// What `ptxas` makes of PTX, if there is one.
fn by_ptxas(used: Arc<AtomicU32>) -> Hook {
    Hook::new("by-ptxas")
        .key("options", "-O3")
        .assemble(move |cx, ptx| {
            let Target::Ptx(target) = cx.target else {
                return Ok(None);
            };
            let name = format!("kiln-{}-{:x}.ptx", std::process::id(), cx.tag);
            let source = std::env::temp_dir().join(name);
            let cubin = source.with_extension("cubin");
            std::fs::write(&source, ptx)?;
            let mut ptxas = Command::new("ptxas");
            ptxas.arg(format!("-arch=sm_{}", target.sm)).arg(&source);
            let made = ptxas.arg("-o").arg(&cubin).status();
            if !made.is_ok_and(|status| status.success()) {
                return Ok(None);
            }
            used.fetch_add(1, Relaxed);
            Ok(Some(std::fs::read(&cubin)?))
        })
        .if_supported()
}

fn an_assembler_of_ones_own_makes_the_code(jit: &Jit) -> Outcome {
    let used = Arc::new(AtomicU32::new(0));
    let (kind, target) = (jit.device().info().kind, jit.target());
    let is_gpu = matches!((kind, target), (DeviceKind::Cuda, Target::Ptx(_)));
    let has_ptxas = Command::new("ptxas").arg("--version").output().is_ok();
    let jit = with(jit, by_ptxas(used.clone()));
    let mut x = jit.upload(&[1.0f32; 4])?;
    triple.launch(&jit, (1, 32), &mut x)?;
    assert_eq!(x.to_vec()?, [3.0; 4]);
    assert!(used.load(Relaxed) == 1 || !is_gpu || !has_ptxas);
    Ok(())
}

#[device_fn]
fn put(to: &mut [u32], at: usize, value: u32) {
    let mut sum = value;
    for i in 0..value {
        sum = sum * 3 + i;
    }
    to[at] = sum;
}

#[kernel]
fn by_way_of_shared(out: &mut [u32]) {
    let tile = shared!([u32; 64]);
    let t = thread_idx().x;
    put(tile, t, t as u32);
    barrier();
    let i = global_id().x;
    if i < out.len() {
        put(out, i, tile[63 - t] % 5);
    }
}

fn functions_in_two_memories(jit: &Jit) -> Outcome {
    let put = |value: u32| (0..value).fold(value, |sum, i| sum.wrapping_mul(3).wrapping_add(i));
    let mut out = jit.zeros::<u32>(100)?;
    by_way_of_shared.launch(jit, (2, 64), &mut out)?;
    let want = (0..100u32).map(|i| put(put(63 - i % 64) % 5));
    assert!(out.to_vec()?.into_iter().eq(want));
    Ok(())
}

fn kernels_share_globals(jit: &Jit) -> Outcome {
    let adds = |name: &str, by: u32| {
        Kernel::build(name, move |k| {
            let counter = k.global("extensions.counter", &[7u32, 0]);
            counter.at(1).atomic_add(by);
        })
    };
    jit.launch(&adds("adds_one", 1)?, 1, 32, args!())?;
    jit.launch(&adds("adds_ten", 10)?, 2, 32, args!())?;
    let counter = jit.global::<u32>("extensions.counter")?;
    assert_eq!(counter.to_vec()?, [7, 32 + 640]);
    Ok(())
}

#[device_fn]
fn weigh<T: Num>(x: T, by: T) -> T {
    x * by
}

#[device_fn]
fn weigh_twice<T: Num>(x: T, by: T) -> T {
    weigh(weigh(x, by), by)
}

#[kernel]
fn weigh_each(x: &mut [f32], y: &mut [u32]) {
    let i = global_id().x;
    if i < x.len() && i < y.len() {
        x[i] = weigh(x[i], 0.5);
        y[i] = weigh(y[i], 3);
    }
}

fn functions_stand_in_the_place_of_others(jit: &Jit) -> Outcome {
    let (of, by) = (DeviceFn::of::<weigh>()?, DeviceFn::of::<weigh_twice>()?);
    let overlaid = with(jit, Hook::new("twice").overlay(&of, &by));
    let (mut x, mut y) = (jit.upload(&[8.0f32; 100])?, jit.upload(&[2u32; 100])?);
    for (jit, want) in [(jit, (4.0, 6)), (&overlaid, (1.0, 54)), (jit, (0.5, 162))] {
        weigh_each.launch(jit, (4, 32), &mut x, &mut y)?;
        assert_eq!(
            (x.to_vec()?, y.to_vec()?),
            (vec![want.0; 100], vec![want.1; 100])
        );
    }
    Ok(())
}

/// The row of this chapter, for texts of its kernels.
pub(crate) fn find(name: &str) -> Option<&'static IntrinsicDef> {
    Some(&REMARK).filter(|row| row.name == name)
}

/// A row that gives nothing.
static REMARK: IntrinsicDef = IntrinsicDef::new(
    "extensions.remark",
    &[TypePattern::Exact(Scalar::U32)],
    TypePattern::Unit,
    Meaning::Pure(|_, _| 0),
)
.with_effects(Effects::Memory)
.with_cells(&[Cell::asm(
    Family::PTX,
    None,
    "{ .reg .b32 a; mov.u32 a, $0; }",
    "r",
)]);

#[derive(Copy, Clone, PartialEq, Debug, KernelType)]
#[repr(C)]
struct Span {
    low: u32,
    high: u32,
}

/// Each thread writes down its element of a slice and that of another thread.
fn span_kernel() -> kiln::Result<Kernel> {
    Kernel::build("spans", |k| {
        let (x, spans) = (
            k.slice("x", Type::U32),
            k.slice_mut("spans", k.ty::<Span>()),
        );
        let sum = k.slice_mut("sum", Type::U32);
        let tile = k.shared_array("tile", Type::F32, 64);
        let t = k.thread_idx().x();
        tile.at(t).set(x.at(t).get().cast(Type::F32));
        k.barrier();
        let [near, far] = [t, 63 - t].map(|at| tile.at(at).get().cast(Type::U32));
        k.intrinsic(&REMARK, &[far]);
        k.if_((t % 3).ne(0), || {
            spans.at(t).set(k.construct(k.ty::<Span>(), &[near, far]));
            sum.at(t).set(near);
        });
    })
}

/// Has stores of numbers add to what is there, and structs of two numbers hold them the other way round.
fn adds_and_swaps(lowered: [Arc<AtomicU32>; 4]) -> Hook {
    let [stores, structs, barriers, remarks] = lowered;
    Hook::new("adds-and-swaps")
        .key("counts", "what it lowers")
        .lower_inst(move |cx, inst, args| match (&inst.data, args) {
            (InstData::Store { .. }, &[PointerValue(to), IntValue(value)]) => {
                let (add, relaxed) = (AtomicRMWBinOp::Add, AtomicOrdering::Monotonic);
                cx.builder().build_atomicrmw(add, to, value, relaxed)?;
                stores.fetch_add(1, Relaxed);
                Ok(Some(LoweredOperation::Done))
            }
            (InstData::Construct { .. }, &[low, high]) => {
                let StructValue(empty) = cx.llvm_result_type()?.const_zero() else {
                    return Ok(None);
                };
                structs.fetch_add(1, Relaxed);
                let span = cx.builder().build_insert_value(empty, high, 0, "")?;
                let span = cx.builder().build_insert_value(span, low, 1, "")?;
                Ok(Some(span.into_struct_value().into()))
            }
            (InstData::Barrier, []) => {
                barriers.fetch_add(1, Relaxed);
                if let Target::Cpu(_) = cx.target() {
                    // The threads of a block meet there.
                    return Ok(Some(LoweredOperation::Done));
                }
                let zero = cx.context().i32_type().const_zero().into();
                let barrier = "llvm.nvvm.barrier.cta.sync.aligned.all";
                Ok(Some(cx.call_intrinsic(barrier, None, &[zero])?.into()))
            }
            _ => Ok(None),
        })
        .lower_intrinsic(move |_, row, _| match row.name == REMARK.name {
            true => {
                remarks.fetch_add(1, Relaxed);
                Ok(Some(LoweredOperation::Done))
            }
            false => Ok(None),
        })
        .if_supported()
}

fn operations_are_lowered_in_another_way(jit: &Jit) -> Outcome {
    let lowered: [Arc<AtomicU32>; 4] = Default::default();
    let hooked = with(jit, adds_and_swaps(lowered.clone()));
    let x: Vec<u32> = (0..64).map(|i| i * i).collect();
    let on_device = jit.upload(&x)?;
    let kernel = span_kernel()?;
    // Interpreted kernels are lowered by nobody.
    let interprets = matches!(jit.target(), Target::Interpreter);
    for (jit, is_hooked) in [(jit, false), (&hooked, !interprets)] {
        let mut spans = jit.upload(&[Span { low: 7, high: 7 }; 64])?;
        let mut sum = jit.upload(&[1000u32; 64])?;
        jit.launch(&kernel, 1, 64, args!(&on_device, &mut spans, &mut sum))?;
        let (spans, sum) = (spans.to_vec()?, sum.to_vec()?);
        for (t, span) in spans.into_iter().enumerate() {
            let (near, far) = (x[t], x[63 - t]);
            let want = match (t % 3, is_hooked) {
                (0, _) => (7, 7),
                (_, false) => (near, far),
                (_, true) => (far, near),
            };
            assert_eq!(
                (span.low, span.high),
                want,
                "thread {t}, hooked: {is_hooked}"
            );
        }
        for (t, sum) in sum.into_iter().enumerate() {
            let want = match (t % 3, is_hooked) {
                (0, _) => 1000,
                (_, false) => x[t],
                (_, true) => 1000 + x[t],
            };
            assert_eq!(sum, want, "thread {t}, hooked: {is_hooked}");
        }
    }
    let counts = lowered.each_ref().map(|count| count.load(Relaxed) > 0);
    assert_eq!(counts, [!interprets; 4]);
    Ok(())
}
