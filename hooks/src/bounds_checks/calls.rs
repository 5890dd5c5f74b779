//! Bodies of functions in place of their calls, before checks are looked at.
//!
//! ```text
//! fn at(x: &[f32], w: usize, i: usize, j: usize) -> f32 { x[i * w + j] }
//!
//! for j in 0..w { sum += at(x, w, i, j); }        for j in 0..w { sum += x[i * w + j]; }
//! ```
//!
//! What checks prove is proved where they are repeated, and that is in the caller: in its loop, beside its other
//! accesses, with the lengths that it knows. So a body takes the place of a call where the GPU's compiler would do the
//! same later on: a small one in each place, a large one where it is called once. How a function asks to be inlined holds
//! here, too, and what the kernel says of functions that ask nothing. Calls that stay have their checks in the function.

use std::collections::HashMap;

use kiln_compiler::ir::{FuncId, Function, Inline, Module};

use super::references;

/// LLVM's cost of an instruction, by which a kernel says up to which cost functions are inlined.
const COST: usize = 5;

/// Up to which cost a function is that is called in several places, or has no checks. LLVM's own is about five times
/// that; what is larger stays as it comes.
const MAX_COST: usize = 500;

/// Up to how many instructions a function with checks has that is called once.
const MAX_ONCE: usize = 2_000;

/// Up to how many instructions a function has in which no call of another is replaced any more.
const MAX_CALLER: usize = 10_000;

/// Up to how many instructions all copies but the first of each function have together.
const MAX_GROWTH: usize = 2_000;

/// How deep loops and conditions nest where another body is put.
const MAX_NESTING: usize = 32;

/// Puts bodies in place of calls, callees first, and removes the functions that nobody calls any more.
pub(super) fn make(module: &mut Module) {
    if !module.functions.values().any(has_checks) {
        return;
    }
    let before = calls(module);
    let mut growth = 0;
    for id in callees_first(module) {
        let caller = &module.functions[id];
        if size(caller) > MAX_CALLER || depth(caller) > MAX_NESTING {
            continue;
        }
        let called = calls(module);
        module.inline_calls(id, |module, callee| {
            let times = called.get(&callee).copied().unwrap_or(0);
            let more = times.saturating_sub(1) * size(&module.functions[callee]);
            let is_put_in = fits(module, callee, times) && growth + more <= MAX_GROWTH;
            growth += if is_put_in { more } else { 0 };
            is_put_in
        });
    }
    for (_, function) in module.functions.iter_mut() {
        references::make(function, &module.types);
    }
    let now = calls(module);
    let gone: Vec<FuncId> = before
        .into_keys()
        .filter(|id| !now.contains_key(id))
        .collect();
    module.remove_functions(&gone);
}

/// How many calls there are of each function that is called.
fn calls(module: &Module) -> HashMap<FuncId, usize> {
    let mut calls = HashMap::new();
    for function in module.functions.values() {
        for callee in function
            .insts
            .values()
            .filter_map(|node| node.data.callee())
        {
            *calls.entry(callee).or_default() += 1;
        }
    }
    calls
}

/// The functions of a module, each behind those that it calls.
fn callees_first(module: &Module) -> Vec<FuncId> {
    let (mut order, mut open) = (Vec::new(), Vec::new());
    for id in module.functions.keys() {
        open.push((id, false));
        while let Some((id, is_done)) = open.pop() {
            if order.contains(&id) {
                continue;
            }
            if is_done {
                order.push(id);
                continue;
            }
            open.push((id, true));
            let insts = module.functions[id].insts.values();
            open.extend(insts.filter_map(|node| Some((node.data.callee()?, false))));
        }
    }
    order
}

fn size(function: &Function) -> usize {
    let mut size = 0;
    function.for_each_inst(|_, _| size += 1);
    size
}

/// How deep its loops and conditions nest.
fn depth(function: &Function) -> usize {
    let (mut deepest, mut open) = (0, vec![(function.body, 1)]);
    while let Some((region, depth)) = open.pop() {
        deepest = deepest.max(depth);
        for &inst in &function.regions[region].insts {
            let inner = function.insts[inst].data.regions();
            open.extend(inner.iter().map(|&region| (region, depth + 1)));
        }
    }
    deepest
}

fn has_checks(function: &Function) -> bool {
    let mut has_checks = false;
    function.for_each_inst(|_, inst| has_checks |= function.insts[inst].data.check().is_some());
    has_checks
}

/// Whether a body is small enough to stand in place of so many calls.
fn fits(module: &Module, id: FuncId, times: usize) -> bool {
    let function = &module.functions[id];
    // Hooks look for what is said of it.
    if !function.attributes.is_empty() || depth(function) > MAX_NESTING / 2 {
        return false;
    }
    let kernel = module
        .kernel()
        .map(|kernel| module.functions[kernel].choices);
    let chosen = kernel.and_then(|choices| choices.inline_threshold);
    let cost = COST * size(function);
    let most = match times == 1 && has_checks(function) {
        true => MAX_ONCE * COST,
        false => MAX_COST,
    };
    match function.inline {
        Inline::Never => false,
        Inline::Always => cost <= MAX_ONCE * COST,
        Inline::Hint => cost <= most,
        Inline::Auto => cost <= chosen.map_or(most, |chosen| most.min(chosen as usize)),
    }
}
