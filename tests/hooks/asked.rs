//! Which operations hooks are asked to lower, and what of them is seen where: what the documentation of the points
//! says.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use kiln::Result;
use kiln::core::hook::Hook;
use kiln::core::ir::{InstData, InstNode, Module, Type};
use kiln::prelude::*;

use super::for_gpu;

#[derive(Copy, Clone, KernelType)]
#[repr(C)]
struct Pair {
    a: f32,
    b: f32,
}

/// Operations that give a number, an address, a struct, an array and nothing; rows with and without a body; loops.
#[kernel]
fn mixed(x: &mut [f32], pairs: &mut [Pair]) {
    let tile = shared!([f32; 32]);
    let i = thread_idx().x;
    tile[i % 32] = 1.0;
    barrier();
    thread_fence();
    let mut turns = i;
    while turns > 40 {
        turns /= 2;
    }
    if i < x.len() && i < pairs.len() {
        let list = [x[i], tile[i % 32]];
        let pair = Pair {
            a: list[i % 2],
            b: x[i].sqrt() + turns as f32,
        };
        pairs[i] = pair;
        x[i] = pairs[i].b.sin() + pair.a;
    }
}

#[derive(Default)]
struct Seen {
    /// Kinds of operations that hooks are asked for, and the others.
    operations: BTreeSet<String>,
    others: BTreeSet<String>,
    /// Kinds that were asked for at `lower_inst`, and rows at `lower_intrinsic`.
    asked: BTreeSet<String>,
    rows: BTreeSet<&'static str>,
    /// Rows in the IR that hooks rewrite, and in the legal one.
    rewritten: BTreeSet<&'static str>,
    legal: BTreeSet<&'static str>,
}

fn kind(inst: &InstNode) -> String {
    let text = format!("{:?}", inst.data);
    let letters = text.chars().take_while(|c| c.is_alphanumeric());
    letters.collect()
}

/// What is no operation that a hook could lower: where control goes, and variables.
fn is_control(inst: &InstNode) -> bool {
    use InstData::{Break, Continue, For, If, Loop, Return, VarGet, VarSet};
    matches!(
        inst.data,
        If { .. }
            | Loop { .. }
            | For { .. }
            | Break { .. }
            | Continue { .. }
            | Return { .. }
            | VarGet(_)
            | VarSet(..)
    )
}

fn rows(module: &Module) -> BTreeSet<&'static str> {
    let insts = module.functions.values().flat_map(|f| f.insts.values());
    let used = insts.filter_map(|inst| inst.data.intrinsic());
    used.map(|(id, _)| module.intrinsics[id].name).collect()
}

fn listens(seen: &Arc<Mutex<Seen>>) -> Hook {
    let [a, b, c, d] = std::array::from_fn(|_| seen.clone());
    Hook::new("listens")
        .key("changes", "nothing")
        .rewrite_ir(move |_, module| {
            a.lock().unwrap().rewritten.extend(rows(module));
            Ok(())
        })
        .lower_abi(move |_, module| {
            let mut seen = b.lock().unwrap();
            seen.legal.extend(rows(module));
            for function in module.functions.values() {
                for inst in function.insts.values() {
                    match is_control(inst) {
                        true => seen.others.insert(kind(inst)),
                        false => seen.operations.insert(kind(inst)),
                    };
                }
            }
            Ok(())
        })
        .lower_inst(move |cx, inst, args| {
            let of_slice = |ty: &Type| usize::from(cx.module().types.is_slice(*ty));
            let types = cx.operand_types();
            let want = types.len() + types.iter().map(of_slice).sum::<usize>();
            assert_eq!(args.len(), want, "{inst:?}");
            c.lock().unwrap().asked.insert(kind(inst));
            Ok(None)
        })
        .lower_intrinsic(move |_, row, _| {
            d.lock().unwrap().rows.insert(row.name);
            Ok(None)
        })
}

fn seen(gpu: bool) -> Result<Seen> {
    let seen = Arc::default();
    let hook = listens(&seen);
    let jit = match gpu {
        true => for_gpu(hook.into()),
        false => Jit::with(Device::cpu(), hook.into(), JitOptions::default()),
    };
    let mut x = jit.zeros::<f32>(4)?;
    let mut pairs = jit.upload(&[Pair { a: 0.0, b: 0.0 }; 4])?;
    jit.inspect_block(&mixed, 32, args!(&mut x, &mut pairs))?;
    Ok(std::mem::take(&mut *seen.lock().unwrap()))
}

#[test]
fn hooks_are_asked_for_all_but_control_and_variables() -> Result<()> {
    for gpu in [true, false] {
        let mut seen = seen(gpu)?;
        for operation in ["Store", "Barrier", "Construct", "Fence"] {
            let operations = &seen.operations;
            assert!(operations.contains(operation), "{operations:?}");
        }
        for other in ["If", "Loop", "Break", "VarGet", "VarSet"] {
            assert!(seen.others.contains(other), "{:?}", seen.others);
        }
        // There are no calls where they were put in place.
        assert!(seen.operations.contains("Call"), "{:?}", seen.operations);
        if !gpu {
            seen.operations.remove("Call");
        }
        assert_eq!(seen.asked, seen.operations, "for a GPU: {gpu}");
    }
    Ok(())
}

#[test]
fn rows_with_bodies_are_seen_where_the_ir_is_rewritten() -> Result<()> {
    for gpu in [true, false] {
        let seen = seen(gpu)?;
        assert!(seen.rewritten.contains("math.sin"), "{:?}", seen.rewritten);
        assert!(!seen.legal.contains("math.sin"), "{:?}", seen.legal);
        assert!(seen.rows.contains("math.sqrt"), "{:?}", seen.rows);
        assert_eq!(seen.rows, seen.legal, "for a GPU: {gpu}");
    }
    Ok(())
}
