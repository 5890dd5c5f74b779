//! Questions about the target become constants, and branches that they decide are left out, with the functions that are
//! called nowhere else.
//!
//! It is done before it is asked whether the target has everything that the kernel uses, and before hooks rewrite the
//! module: both see what is for this target alone.

use std::collections::HashMap;

use crate::interp::known_scalars;
use crate::ir::{
    Constant, Control, Cursor, FuncId, Function, Inst, InstData, Known, Module, Processor, Region,
    Value,
};

/// Answers the questions of a specialized module.
pub(crate) fn answer(module: &mut Module, processor: Processor) {
    let is_question = |known| matches!(known, Some(Known::TargetIsGpu | Known::TargetSm));
    if !module.intrinsics.values().any(|row| is_question(row.known)) {
        return;
    }
    module.rewrite_each(|at| {
        if let Some(answer) = answer_to(at, processor)
            && let Some(result) = at.result()
        {
            let ty = at.type_of(result);
            at.replace().constant_of(ty, answer);
        }
    });
    for (_, function) in module.functions.iter_mut() {
        let known = known_scalars(function);
        let body = function.body;
        keep_decided(function, body, &known);
    }
    keep_called(module);
}

/// The answer to the instruction at the cursor, if it asks.
fn answer_to(at: &Cursor<'_>, processor: Processor) -> Option<Constant> {
    let (id, _) = at.data().intrinsic()?;
    match at.module().intrinsics[id].known? {
        Known::TargetIsGpu => Some(Constant::Bool(processor != Processor::Host)),
        Known::TargetSm => Some(Constant::Int(match processor {
            Processor::Ptx { sm } => sm.into(),
            Processor::Amdgpu | Processor::Host => 0,
        })),
        _ => None,
    }
}

/// Puts what a decided branch does in its place, in a region and those in it.
fn keep_decided(function: &mut Function, region: Region, known: &HashMap<Value, u64>) {
    let kept = decided(function, region, known);
    function.regions[region].insts = kept;
}

fn decided(function: &mut Function, region: Region, known: &HashMap<Value, u64>) -> Vec<Inst> {
    let mut kept = Vec::new();
    for inst in std::mem::take(&mut function.regions[region].insts) {
        if let Control::If {
            cond,
            then_region,
            else_region,
        } = function.insts[inst].data.control()
            && let Some(&cond) = known.get(&cond)
        {
            let taken = if cond != 0 {
                Some(then_region)
            } else {
                else_region
            };
            if let Some(taken) = taken {
                kept.extend(decided(function, taken, known));
            }
        } else {
            for region in function.insts[inst].data.regions() {
                keep_decided(function, region, known);
            }
            kept.push(inst);
        }
        // What follows is never reached.
        if kept
            .last()
            .is_some_and(|&last| function.insts[last].data.is_terminator())
        {
            break;
        }
    }
    kept
}

/// Leaves out the functions that the kernel calls no more.
fn keep_called(module: &mut Module) {
    let Some(kernel) = module.kernel() else {
        return;
    };
    let mut called = vec![kernel];
    let mut seen = 0;
    while let Some(&caller) = called.get(seen) {
        seen += 1;
        let function = &module.functions[caller];
        function.for_each_inst(|_, inst| {
            if let Some(callee) = function.insts[inst].data.callee()
                && !called.contains(&callee)
            {
                called.push(callee);
            }
        });
    }
    let all = std::mem::take(&mut module.functions);
    let mut moved: HashMap<FuncId, FuncId> = HashMap::new();
    for (id, function) in all.iter().filter(|(id, _)| called.contains(id)) {
        moved.insert(id, module.functions.push(function.clone()));
    }
    for (_, function) in module.functions.iter_mut() {
        for (_, node) in function.insts.iter_mut() {
            let Some(callee) = node.data.callee_mut() else {
                continue;
            };
            match moved.get(callee) {
                Some(&new) => *callee = new,
                // The call is in no region any more.
                None => node.data = InstData::Const(Constant::Zero),
            }
        }
    }
}
