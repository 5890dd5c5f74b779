//! Hidden values become parameters: of the kernel, which the launch passes them to, and of each device
//! function that needs them, from caller to callee.
//!
//! ```text
//! hidden hidden0 counts: slice<global, mut u64> hook "count-loads"
//!
//! kernel @k(%0 n: u32) {                kernel @k(%0 n: u32, %1 counts: slice<..> hidden0) {
//!   call @f(%0)                    =>     call @f(%0, %1)
//! }                                     }
//! device @f(%0 n: u32) {                device @f(%0 n: u32, %1 counts: slice<..> hidden0) {
//!   %1: slice<..> = hidden hidden0
//!   %2: .. = slice_index %1, %0           %2: .. = slice_index %1, %0
//! ```
//!
//! After that a legal module has ordinary parameters, so that nothing behind it knows of hidden values but
//! for who gives them. The address of the fault channel is one of them. No operation reads it by name:
//! each function that can fault needs it, so it is passed last, when hooks can add no accesses any more.

use crate::ir::fault::{FaultChannel, fault_insts};
use crate::ir::{
    AddressSpace, Cursor, Entity, FuncId, FunctionKind, HiddenData, HiddenParam, HiddenSource,
    InstData, Location, Module, ParamFacts, Type,
};

/// Makes parameters of all hidden values that are read.
pub(crate) fn pass_hidden(module: &mut Module) {
    for id in module.hidden.keys().collect::<Vec<_>>() {
        let reads = |data: &InstData| matches!(data, InstData::Hidden(read) if *read == id);
        let mut needed = vec![false; module.functions.len()];
        for (function, f) in module.functions.iter() {
            f.for_each_inst(|_, inst| needed[function.index()] |= reads(&f.insts[inst].data));
        }
        pass(module, id, needed, ParamFacts::default());
    }
    module.rewrite_each(use_params);
    share_arguments(module);
}

/// A buffer that a hook gives may be an argument of the launch, too: nothing sees to it that it is none. So where a
/// hook's address is passed, no argument is taken to be the only way to its memory. A global is no argument.
fn share_arguments(module: &mut Module) {
    let Some(kernel) = module.kernel() else {
        return;
    };
    let is_hooks_address = |id: HiddenParam| {
        let hidden = &module.hidden[id];
        matches!(hidden.source, HiddenSource::Hook(_)) && module.types.address(hidden.ty).is_some()
    };
    let params = &module.functions[kernel].params;
    if params
        .iter()
        .filter_map(|param| param.hidden)
        .any(is_hooks_address)
    {
        for param in &mut module.functions[kernel].params {
            param.facts.noalias = false;
        }
    }
}

/// Passes the address of the fault channel to what can fault.
pub(crate) fn pass_fault_channel(module: &mut Module) {
    let mut needed = vec![false; module.functions.len()];
    for (function, _) in fault_insts(module) {
        needed[function.index()] = true;
    }
    if !needed.contains(&true) {
        return;
    }
    let ty = module.types.pointer(Type::U64, AddressSpace::Global, true);
    let id = module.hidden_value(HiddenData {
        name: "fault_channel".to_owned(),
        ty,
        source: HiddenSource::FaultChannel,
        location: Location::unknown(),
    });
    let facts = ParamFacts {
        align: align_of::<FaultChannel>() as u32,
        ..ParamFacts::default()
    };
    pass(module, id, needed, facts);
}

/// Gives the functions that need a hidden value, and those that call them, a parameter for it, if they have
/// none. `needed` is by function.
fn pass(module: &mut Module, id: HiddenParam, mut needed: Vec<bool>, facts: ParamFacts) {
    let calls = calls(module);
    // A call can come before its callee's own calls were seen: repeat until nothing changes.
    loop {
        let before = needed.clone();
        for &(caller, callee) in &calls {
            needed[caller.index()] |= needed.get(callee.index()).copied().unwrap_or(false);
        }
        if needed == before {
            break;
        }
    }
    let HiddenData { name, ty, .. } = module.hidden[id].clone();
    let mut added = vec![false; needed.len()];
    for (function, f) in module.functions.iter_mut() {
        if needed[function.index()] && f.hidden_param(id).is_none() {
            f.add_param(name.clone(), ty, f.location);
            if let Some(param) = f.params.last_mut() {
                param.hidden = Some(id);
                param.facts = match f.kind {
                    FunctionKind::Kernel => facts,
                    FunctionKind::Device => ParamFacts::default(),
                };
            }
            added[function.index()] = true;
        }
    }
    for (_, f) in module.functions.iter_mut() {
        let Some(passed) = f.hidden_param(id).map(|param| param.value) else {
            continue;
        };
        for (_, node) in f.insts.iter_mut() {
            if let InstData::Call { callee, args, .. } = &mut node.data
                && added.get(callee.index()) == Some(&true)
            {
                args.push(passed);
            }
        }
    }
}

/// Who calls whom.
fn calls(module: &Module) -> Vec<(FuncId, FuncId)> {
    let mut calls = Vec::new();
    for (caller, function) in module.functions.iter() {
        function.for_each_inst(|_, inst| {
            let callee = function.insts[inst].data.callee();
            calls.extend(callee.map(|callee| (caller, callee)));
        });
    }
    calls
}

/// Uses the parameters in the place of what reads them.
fn use_params(at: &mut Cursor<'_>) {
    if let InstData::Hidden(id) = *at.data()
        && let Some(param) = at.function().hidden_param(id)
    {
        let value = param.value;
        at.replace_by(value);
    }
}
