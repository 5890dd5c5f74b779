//! What hooks do on a device: what is passed for them, and what they are told.

use std::sync::Arc;

use kiln::core::hook::Hook;
use kiln::core::ir::{AddressSpace, AtomicOp, InstData, Type};
use kiln::prelude::*;

use super::{Outcome, chapter};

chapter![
    hidden_arguments_are_those_of_each_launch,
    hidden_arguments_reach_functions_that_are_called,
    a_fault_is_told_beside_hidden_arguments,
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
        x[i as usize] = 2.0;
    }
}

/// Counts the stores that threads execute, each as `weight`, which is taken anew at each launch.
fn count_stores(count: Arc<Buffer<u32>>, weight: Arc<std::sync::atomic::AtomicU32>) -> Hook {
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
            hidden.set("weight", weight.load(std::sync::atomic::Ordering::Relaxed))?;
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
    let weight = Arc::new(std::sync::atomic::AtomicU32::new(1));
    let jit = with(jit, count_stores(count.clone(), weight.clone()));
    let mut x = jit.upload(&[4.0f32, 16.0, 32.0, 8.0])?;
    halve_large.launch(&jit, (1, 32), &mut x, 10.0)?;
    assert_eq!(x.to_vec()?, [4.0, 8.0, 16.0, 8.0]);
    assert_eq!(count.to_vec()?, [2]);
    weight.store(100, std::sync::atomic::Ordering::Relaxed);
    let prepared = jit.compile(&halve_large, args!(&mut x, 5.0f32))?;
    prepared.launch(1, 32, args!(&mut x, 5.0f32))?;
    assert_eq!(count.to_vec()?, [302]);
    weight.store(1000, std::sync::atomic::Ordering::Relaxed);
    prepared.launch(1, 32, args!(&mut x, 7.0f32))?;
    assert_eq!(count.to_vec()?, [1302]);
    assert_eq!(x.to_vec()?, [4.0, 4.0, 4.0, 4.0]);
    Ok(())
}

fn hidden_arguments_reach_functions_that_are_called(jit: &Jit) -> Outcome {
    let count = Arc::new(jit.zeros::<u32>(1)?);
    let weight = Arc::new(std::sync::atomic::AtomicU32::new(3));
    let jit = with(jit, count_stores(count.clone(), weight));
    let mut x = jit.upload(&vec![8.0f32; 1000])?;
    halve_large.launch(&jit, (grid_for(1000, 64), 64), &mut x, 1.0)?;
    assert_eq!(count.to_vec()?, [3000]);
    assert_eq!(x.to_vec()?, vec![4.0; 1000]);
    Ok(())
}

fn a_fault_is_told_beside_hidden_arguments(jit: &Jit) -> Outcome {
    let count = Arc::new(jit.zeros::<u32>(1)?);
    let weight = Arc::new(std::sync::atomic::AtomicU32::new(1));
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
