//! Rules about the module as a whole: names, kernels, constants, intrinsic rows, recursion.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::Checker;
use crate::{
    AddressSpace, Cell, Effects, Family, FuncId, FunctionKind, HiddenData, HiddenSource,
    IntrinsicDef, Lowering, Meaning, Module, Phase, Scalar, TypePattern,
};

/// Checks what concerns the module.
pub(super) fn check(checker: &mut Checker<'_>) {
    names(checker);
    kernels(checker);
    globals(checker);
    hidden(checker);
    inlined(checker);
    recursion(checker);
}

/// Rows of intrinsics come from anywhere; those that contradict themselves or have one name are refused.
/// Whether there is none.
pub(super) fn check_intrinsics(checker: &mut Checker<'_>) -> bool {
    let before = checker.errors.len();
    let mut named: HashMap<&str, &IntrinsicDef> = HashMap::new();
    for &def in checker.module.intrinsics.values() {
        let first = *named.entry(def.name).or_insert(def);
        if !first.is_same(def) {
            checker.report_module(first.conflict(def));
        }
        for what in contradictions(def) {
            checker.report_module(format!("the row of intrinsic `{}` {what}", def.name));
        }
    }
    checker.errors.len() == before
}

/// What a row says that cannot be.
fn contradictions(def: &IntrinsicDef) -> Vec<String> {
    let mut found = Vec::new();
    let mut patterns = def.params.iter().chain([&def.result]).enumerate();
    if !patterns.all(|(before, pattern)| pattern.refers(before, def.params.len())) {
        found.push("refers to no parameter before that which refers to it".to_owned());
    }
    let takes_any = matches!(def.meaning, Meaning::Body(_) | Meaning::Grid);
    if !def.is_scalar() && !takes_any {
        let what = "takes or gives more than scalars, and its meaning is no function of the IR; \
                    give it a `Meaning::Body`";
        found.push(what.to_owned());
    }
    if def.each().contains(&true) && !def.takes_chosen(def.result) {
        let what = "is executed for each number of a value, and its result is none of that type; \
                    let it be `TypePattern::Chosen`";
        found.push(what.to_owned());
    }
    let warp = matches!(def.meaning, Meaning::Warp(_));
    let mask = TypePattern::Exact(Scalar::U32);
    if warp && def.params.first().is_some_and(|&first| first != mask) {
        let what = "is of a warp, and its first parameter is no `u32`, the member mask";
        found.push(what.to_owned());
    }
    if matches!(def.meaning, Meaning::Grid) && !def.waits_for_grid() {
        let what = "waits for the grid, and gives something or does not say that it accesses memory; let it give \
                    nothing, with the effects `Memory`";
        found.push(what.to_owned());
    }
    if matches!(def.meaning, Meaning::NamedBarrier { .. }) && !def.is_named_barrier() {
        let what = "is a named barrier, and does not take two `u32` and give nothing, with the effects `Synchronizes`; \
                    let it do so";
        found.push(what.to_owned());
    }
    if let Some(known) = def.known.filter(|known| !known.fits(def)) {
        found.push(format!(
            "says that it is `{known:?}`, and has not the parameters, the result, the effects and the \
             kind of meaning of that; leave out `known_as`, and it is what its cells and its meaning say"
        ));
    }
    found.extend(
        def.cells
            .iter()
            .filter_map(|cell| wrong_cell(def, cell))
            .map(str::to_owned),
    );
    found
}

/// What is wrong with a cell.
fn wrong_cell(def: &IntrinsicDef, cell: &Cell) -> Option<&'static str> {
    let is_asm = matches!(cell.lowering, Lowering::Asm { .. });
    let for_gpus = match cell.family {
        Family::Ptx { .. } => true,
        Family::Any | Family::Host => false,
    };
    if is_asm && !for_gpus {
        return Some(
            "has inline assembly in a cell that is not for a family of GPUs; a CPU needs no cell, it \
             calls the meaning",
        );
    }
    if matches!(cell.lowering, Lowering::Function { .. }) && !for_gpus {
        return Some(
            "has a function in a cell that is not for a family of GPUs; a CPU needs no cell, it calls the \
             meaning",
        );
    }
    if matches!(cell.lowering, Lowering::Ptx(_)) && !for_gpus {
        return Some(
            "has a function in PTX in a cell that is not for NVIDIA's GPUs; give it the family `Family::Ptx`",
        );
    }
    if cell.lowering == Lowering::ViaF32 && !def.is_scalar() {
        return Some("goes through `f32`, and takes or gives more than scalars");
    }
    let (clobbers, synchronizes) = (cell.clobbers_memory(), def.effects == Effects::Synchronizes);
    if is_asm && synchronizes && !clobbers {
        return Some(
            "synchronizes, and its inline assembly does not say so; add `~{memory}` to the constraints",
        );
    }
    if clobbers && matches!(def.effects, Effects::None | Effects::Convergent) {
        return Some(
            "has inline assembly that clobbers memory (`~{memory}`), and effects that leave memory \
             alone; give it the effects `Memory` or `Synchronizes`",
        );
    }
    None
}

fn names(checker: &mut Checker<'_>) {
    let module = checker.module;
    let mut known = HashSet::new();
    for function in module.functions.values() {
        let name = &function.name;
        if !known.insert(name) {
            let message = format!("there are two functions named `{name}`");
            checker.report(function, None, message);
        }
    }
    known.clear();
    for global in module.globals.values() {
        let name = &global.name;
        if !known.insert(name) {
            checker.report_module(format!("there are two constants named `{name}`"));
        }
    }
}

fn kernels(checker: &mut Checker<'_>) {
    let module = checker.module;
    let is_kernel = |f: &&crate::Function| f.kind == FunctionKind::Kernel;
    let count = module.functions.values().filter(is_kernel).count();
    if count > 1 {
        checker.report_module(format!("a module has one kernel, and here are {count}"));
    }
    if count == 0 && module.phase >= Phase::Specialized {
        checker.report_module("there is no kernel".to_owned());
    }
}

fn globals(checker: &mut Checker<'_>) {
    let module = checker.module;
    for global in module.globals.values() {
        let (name, bytes) = (&global.name, global.bytes.len());
        let layout = module
            .types
            .contains(global.ty)
            .then(|| module.types.layout(global.ty));
        let ty = module.types.display(global.ty);
        let message = match layout {
            None => format!("the type of constant `{name}` is not of this module"),
            Some(None) => format!("constant `{name}` of type `{ty}` has no fixed size"),
            Some(Some(layout)) if layout.size != bytes as u64 => {
                format!(
                    "constant `{name}` of type `{ty}` has {bytes} bytes, not {}",
                    layout.size
                )
            }
            Some(Some(_)) => continue,
        };
        checker.report_module(message);
    }
}

/// Bodies that were put in place of calls are in such bodies that come before them.
fn inlined(checker: &mut Checker<'_>) {
    let module = checker.module;
    for (id, call) in module.inlined.iter() {
        let name = &call.function;
        if call.at.is_known() && module.files.get(call.at.file).is_none() {
            let file = call.at.file;
            checker.report_module(format!(
                "{file} of an inlined call of `{name}` does not exist"
            ));
        }
        if call.at.inlined.is_some_and(|outer| outer >= id) {
            checker.report_module(format!(
                "an inlined call of `{name}` is in the body of one that does not come before it"
            ));
        }
    }
}

/// Hidden values have types of this module, and each a name of its own.
fn hidden(checker: &mut Checker<'_>) {
    let module = checker.module;
    let mut known = HashSet::new();
    for data in module.hidden.values() {
        let HiddenData { name, source, .. } = data;
        if !known.insert((name, source)) {
            checker.report_module(format!("{source} gives two hidden values named `{name}`"));
        }
        if !module.types.contains(data.ty) {
            checker.report_module(format!(
                "the type of hidden value `{name}` is not of this module"
            ));
            continue;
        }
        let at = data.location;
        if at.is_known() && module.files.get(at.file).is_none() {
            checker.report_module(format!(
                "{} of hidden value `{name}` does not exist",
                at.file
            ));
        }
        let ty = module.types.display(data.ty);
        if module.types.layout(data.ty).is_none() {
            checker.report_module(format!(
                "hidden value `{name}` of type `{ty}` has no fixed size"
            ));
        }
        let address = module.types.address(data.ty);
        if let HiddenSource::Global(initial) = source {
            let size = address.and_then(|address| module.types.layout(address.pointee));
            let size = size.map(|layout| layout.size);
            let fits = |initial: &Arc<[u8]>| size == Some(initial.len() as u64);
            if size.is_none() || !module.types.is_pointer(data.ty) {
                checker.report_module(format!(
                    "global `{name}` of type `{ty}` is no pointer to what has a fixed size"
                ));
            } else if !initial.as_ref().is_none_or(fits) {
                checker.report_module(format!(
                    "global `{name}` of type `{ty}` has not as many bytes at first"
                ));
            }
        }
        if address.is_some_and(|address| address.space != AddressSpace::Global) {
            checker.report_module(format!(
                "hidden value `{name}` of type `{ty}` is an address, and not of global memory"
            ));
        }
    }
}

/// How far the search for recursion has come with a function.
#[derive(Copy, Clone, PartialEq)]
enum Search {
    New,
    Open,
    Done,
}

/// No function calls itself: one message for each call that closes a circle.
fn recursion(checker: &mut Checker<'_>) {
    use crate::Entity;
    let module = checker.module;
    let mut search = vec![Search::New; module.functions.len()];
    for start in module.functions.keys() {
        if search[start.index()] != Search::New {
            continue;
        }
        search[start.index()] = Search::Open;
        // The path from `start`, each function with the callees still to visit. A list, not
        // recursion: a chain of calls has any length.
        let mut path = vec![(start, callees(checker, start))];
        while let Some((at, pending)) = path.last_mut() {
            let Some(next) = pending.pop() else {
                search[at.index()] = Search::Done;
                path.pop();
                continue;
            };
            match search[next.index()] {
                Search::Done => {}
                Search::New => {
                    search[next.index()] = Search::Open;
                    path.push((next, callees(checker, next)));
                }
                Search::Open => {
                    let circle = path.iter().map(|(id, _)| *id);
                    let circle: Vec<FuncId> = circle.skip_while(|id| *id != next).collect();
                    let message = format!("{}; use a loop", circle_text(module, &circle));
                    checker.report(&module.functions[next], None, message);
                }
            }
        }
    }
}

/// Whom a function calls; of one that cannot be walked, nobody.
fn callees(checker: &Checker<'_>, id: FuncId) -> Vec<FuncId> {
    let mut list = Vec::new();
    if !checker.is_sound(id) {
        return list;
    }
    let function = &checker.module.functions[id];
    function.for_each_inst(|_, inst| {
        if let Some(callee) = function.insts[inst].data.callee() {
            list.push(callee);
        }
    });
    list.reverse();
    list
}

fn circle_text(module: &Module, circle: &[FuncId]) -> String {
    let ids = circle.iter().chain(circle.first());
    let names: Vec<String> = ids
        .map(|id| format!("`{}`", module.functions[*id].name))
        .collect();
    format!("it calls itself: {}", names.join(" -> "))
}
