//! Which operations hooks are asked to lower, and what of them is seen where: what the documentation of the points
//! says.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use kiln::Result;
use kiln::core::hook::Hook;
use kiln::core::ir::{Function, InstNode, Module, Type, TypeData};
use kiln::prelude::*;

use super::for_gpu;

#[derive(Copy, Clone, KernelType)]
#[repr(C)]
struct Pair {
    a: f32,
    b: f32,
}

/// Operations that give a number, an address, a struct, an array and nothing; rows with and without a body.
#[kernel]
fn mixed(x: &mut [f32], pairs: &mut [Pair]) {
    let tile = shared!([f32; 32]);
    let i = thread_idx().x;
    tile[i % 32] = 1.0;
    barrier();
    if i < x.len() && i < pairs.len() {
        let list = [x[i], tile[i % 32]];
        let pair = Pair {
            a: list[i % 2],
            b: x[i].sqrt(),
        };
        pairs[i] = pair;
        x[i] = pairs[i].b.sin() + pair.a;
    }
}

#[derive(Default)]
struct Seen {
    /// Kinds of operations that give what one value of LLVM's is, and all others.
    single: BTreeSet<String>,
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

fn is_single(module: &Module, function: &Function, inst: &InstNode) -> bool {
    let ty = inst.result.map_or(Type::UNIT, |r| function.type_of(r));
    let data = module.types.data(ty);
    use TypeData::{Pointer, Scalar, Vector};
    matches!(data, Scalar(_) | Vector { .. } | Pointer { .. })
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
                    match is_single(module, function, inst) {
                        true => seen.single.insert(kind(inst)),
                        false => seen.others.insert(kind(inst)),
                    };
                }
            }
            Ok(())
        })
        .lower_inst(move |cx, inst, _| {
            assert!(is_single(cx.module(), cx.function(), inst), "{inst:?}");
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
fn hooks_are_asked_for_all_that_gives_one_value_and_nothing_else() -> Result<()> {
    for gpu in [true, false] {
        let mut seen = seen(gpu)?;
        for missing in ["Store", "Barrier", "Construct"] {
            assert!(seen.others.contains(missing), "{:?}", seen.others);
            assert!(!seen.asked.contains(missing), "{:?}", seen.asked);
        }
        // There are no calls where they were put in place.
        assert!(seen.single.contains("Call"), "{:?}", seen.single);
        if !gpu {
            seen.single.remove("Call");
        }
        assert_eq!(seen.asked, seen.single, "for a GPU: {gpu}");
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
