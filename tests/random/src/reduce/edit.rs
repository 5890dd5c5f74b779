//! Changes that make a module smaller. Each leaves alone what it cannot change; the verifier decides
//! whether what came out is a module.

use kiln_jit_core::ir::{
    Constant, Entity, FastMath, FuncId, Function, FunctionKind, GlobalId, Inst, InstData, InstNode,
    Module, ParamFacts, PrimaryMap, Region, SharedVar, Type, TypeData, Unroll, Value, Var,
};
use kiln_jit_core::simt::inlined;

use super::Place;
use crate::case::{Arg, Case};

/// Whether a type is or contains an address, so that it has no useful zero.
fn is_address(module: &Module, ty: Type) -> bool {
    match module.types.data(ty) {
        TypeData::Pointer { .. } | TypeData::Slice { .. } => true,
        _ => crate::generate::part_types(module, ty)
            .into_iter()
            .any(|part| is_address(module, part)),
    }
}

/// Removes an instruction with the regions it holds; if its result is used, that becomes zero.
pub(super) fn remove(module: &mut Module, (id, region, inst): Place) {
    let result = module.functions[id].insts[inst].result;
    let ty = result.map(|v| module.functions[id].type_of(v));
    let address = ty.is_some_and(|ty| is_address(module, ty));
    let function = &mut module.functions[id];
    let used = result.is_some_and(|v| uses(function)[v.index()] > 0);
    match ty.filter(|_| used) {
        None => function.regions[region].insts.retain(|i| *i != inst),
        Some(_) if address => {}
        Some(_) => become_constant(&mut function.insts[inst], Constant::Zero),
    }
}

/// Has an instruction give a constant, which has no flags.
fn become_constant(node: &mut InstNode, constant: Constant) {
    (node.data, node.fast) = (InstData::Const(constant), FastMath::NONE);
}

/// Whether an instruction does nothing but give its result.
fn is_pure(data: &InstData) -> bool {
    !matches!(
        data,
        InstData::VarSet(..)
            | InstData::Store { .. }
            | InstData::AtomicStore { .. }
            | InstData::AtomicRmw { .. }
            | InstData::AtomicCas { .. }
            | InstData::Barrier
            | InstData::Assume { .. }
            | InstData::Assert { .. }
            | InstData::Print { .. }
            | InstData::Fence { .. }
            | InstData::Call { .. }
            | InstData::If { .. }
            | InstData::Loop { .. }
            | InstData::For { .. }
            | InstData::Break { .. }
            | InstData::Continue { .. }
            | InstData::Return { .. }
    )
}

/// By value: how many instructions that have a place use it.
fn uses(function: &Function) -> Vec<u32> {
    let mut uses = vec![0; function.values.len()];
    function.for_each_inst(|_, inst| {
        function.insts[inst]
            .data
            .for_each_operand(|v| uses[v.index()] += 1);
    });
    uses
}

/// Removes instructions whose results nobody uses, and assignments of variables nobody reads.
/// Whether there were any.
pub(super) fn remove_unused(module: &mut Module) -> bool {
    let mut removed = false;
    for (_, function) in module.functions.iter_mut() {
        loop {
            let uses = uses(function);
            let read = read_vars(function);
            let mut unused: Vec<Inst> = Vec::new();
            function.for_each_inst(|_, inst| {
                let node = &function.insts[inst];
                let idle = match (&node.data, node.result) {
                    (InstData::VarSet(var, _), _) => !read.contains(var),
                    (data, Some(value)) => is_pure(data) && uses[value.index()] == 0,
                    (data, None) => is_empty(function, data),
                };
                if idle {
                    unused.push(inst);
                }
            });
            if unused.is_empty() {
                break;
            }
            removed = true;
            for region in function.regions.keys() {
                function.regions[region]
                    .insts
                    .retain(|inst| !unused.contains(inst));
            }
        }
    }
    removed
}

/// Whether it is a branch or a counted loop with nothing in it.
fn is_empty(function: &Function, data: &InstData) -> bool {
    let holds = matches!(data, InstData::If { .. } | InstData::For { .. });
    let empty = |region: &Region| function.regions[*region].insts.is_empty();
    holds && data.regions().iter().all(empty)
}

fn read_vars(function: &Function) -> Vec<Var> {
    let mut read = Vec::new();
    function.for_each_inst(|_, inst| {
        if let InstData::VarGet(var) = function.insts[inst].data {
            read.push(var);
        }
    });
    read
}

/// Replaces a branch by its region number `which`, or a loop by one iteration. Without `jumps`, a
/// jump or return at the region's end is dropped, too.
pub(super) fn splice(
    module: &mut Module,
    (id, region, inst): Place,
    which: usize,
    jumps: bool,
) -> bool {
    let function = &mut module.functions[id];
    let data = function.insts[inst].data.clone();
    let Some(&inner) = data.regions().get(which) else {
        return false;
    };
    if let InstData::For { index, start, .. } = data {
        replace_uses(function, index, start);
    }
    if !matches!(data, InstData::If { .. }) {
        leave_loop(function, inner, 0);
    }
    let mut insts = function.regions[inner].insts.clone();
    let ends = insts
        .last()
        .is_some_and(|&last| function.insts[last].data.is_terminator());
    if ends && !jumps {
        insts.pop();
    }
    let list = &mut function.regions[region].insts;
    let Some(at) = list.iter().position(|i| *i == inst) else {
        return false;
    };
    // Nothing follows a jump.
    let end = if ends && jumps { list.len() } else { at + 1 };
    list.splice(at..end, insts);
    true
}

/// Rewrites the jumps in a region as if the loop `level` loops out of it were not there.
fn leave_loop(function: &mut Function, region: Region, level: u32) {
    let insts = function.regions[region].insts.clone();
    let mut kept = Vec::new();
    for inst in insts {
        let data = &mut function.insts[inst].data;
        if let InstData::Break { depth } | InstData::Continue { depth } = data {
            if *depth == level {
                continue;
            }
            *depth -= u32::from(*depth > level);
        }
        kept.push(inst);
        let is_loop = matches!(data, InstData::Loop { .. } | InstData::For { .. });
        for inner in data.regions() {
            leave_loop(function, inner, level + u32::from(is_loop));
        }
    }
    function.regions[region].insts = kept;
}

fn replace_uses(function: &mut Function, old: Value, new: Value) {
    for (_, node) in function.insts.iter_mut() {
        node.data.map_operands(|v| if v == old { new } else { v });
    }
}

/// Puts operand `number` in the place of an instruction's result, if it has its type.
pub(super) fn replace_by_operand(
    module: &mut Module,
    (id, region, inst): Place,
    number: usize,
) -> bool {
    let function = &mut module.functions[id];
    let Some(result) = function.insts[inst].result else {
        return false;
    };
    let mut operands = Vec::new();
    function.insts[inst]
        .data
        .for_each_operand(|v| operands.push(v));
    match operands.get(number) {
        Some(&operand) if function.type_of(operand) == function.type_of(result) => {
            replace_uses(function, result, operand);
            function.regions[region].insts.retain(|i| *i != inst);
            true
        }
        _ => false,
    }
}

/// Puts a value that an instruction's operands were computed from in the place of its result: the one
/// with this number among those of its type, by way of variables, too.
pub(super) fn replace_by_origin(
    module: &mut Module,
    (id, region, inst): Place,
    number: usize,
) -> bool {
    let function = &mut module.functions[id];
    let Some(result) = function.insts[inst].result else {
        return false;
    };
    let ty = function.type_of(result);
    let mut origins = vec![result];
    let mut at = 0;
    while let Some(&value) = origins.get(at).filter(|_| at < MAX_ORIGINS) {
        for origin in computed_from(function, value) {
            if !origins.contains(&origin) {
                origins.push(origin);
            }
        }
        at += 1;
    }
    let mut fitting = origins.into_iter().skip(1);
    match fitting
        .by_ref()
        .filter(|&v| function.type_of(v) == ty)
        .nth(number)
    {
        Some(origin) => {
            replace_uses(function, result, origin);
            function.regions[region].insts.retain(|i| *i != inst);
            true
        }
        None => false,
    }
}

/// How many values are looked at for where one comes from.
const MAX_ORIGINS: usize = 32;

/// The operands of what gives a value; of a variable's value, what is assigned to it.
fn computed_from(function: &Function, value: Value) -> Vec<Value> {
    let mut from = Vec::new();
    function.for_each_inst(|_, inst| {
        let node = &function.insts[inst];
        if node.result != Some(value) {
            return;
        }
        match node.data {
            InstData::VarGet(var) => function.for_each_inst(|_, inst| {
                if let InstData::VarSet(set, value) = function.insts[inst].data
                    && set == var
                {
                    from.push(value);
                }
            }),
            _ => node.data.for_each_operand(|operand| from.push(operand)),
        }
    });
    from
}

/// Makes `if a { return x } .. return y` a choice between the two at the end.
pub(super) fn merge_returns(module: &mut Module, (id, region, inst): Place) -> bool {
    let function = &mut module.functions[id];
    let InstData::If {
        cond,
        then_region,
        else_region: None,
    } = function.insts[inst].data
    else {
        return false;
    };
    let returned = |function: &Function, inst: &Inst| match function.insts[*inst].data {
        InstData::Return { value } => value,
        _ => None,
    };
    let early = match function.regions[then_region].insts.as_slice() {
        [only] => returned(function, only),
        _ => None,
    };
    let last = function.regions[region].insts.last().copied();
    let late = last.and_then(|last| returned(function, &last));
    let (Some(early), Some(late), Some(last)) = (early, late, last) else {
        return false;
    };
    let location = function.insts[inst].location;
    let choice = InstData::Select {
        cond,
        if_true: early,
        if_false: late,
    };
    let choice = function.new_inst(choice, function.type_of(late), location);
    function.insts[last].data = InstData::Return {
        value: function.insts[choice].result,
    };
    let insts = &mut function.regions[region].insts;
    insts.insert(insts.len() - 1, choice);
    insts.retain(|i| *i != inst);
    true
}

/// Puts the bodies of all functions in the place of their calls.
pub(super) fn inline_calls(module: &mut Module) -> bool {
    let calls = module.functions.len() > 1;
    match inlined(module) {
        Ok(flat) if calls => {
            *module = flat;
            true
        }
        _ => false,
    }
}

/// Makes an instruction a constant, if that is one of its result's type.
pub(super) fn replace_by_constant(
    module: &mut Module,
    (id, _, inst): Place,
    constant: Constant,
) -> bool {
    let node = &module.functions[id].insts[inst];
    let Some(result) = node.result else {
        return false;
    };
    let ty = module.functions[id].type_of(result);
    let fits = match constant {
        Constant::Bool(_) => ty == Type::BOOL,
        Constant::Int(_) => ty.is_int() || ty.is_float(),
        _ => !is_address(module, ty),
    };
    if fits {
        become_constant(&mut module.functions[id].insts[inst], constant);
    }
    fits
}

/// Drops all that code does not need to run: how to unroll, launch bounds, facts of parameters.
pub(super) fn forget_promises(case: &mut Case) -> bool {
    for (_, function) in case.module.functions.iter_mut() {
        function.launch_bounds = None;
        for param in &mut function.params {
            param.facts = ParamFacts::default();
        }
        for (_, node) in function.insts.iter_mut() {
            if let InstData::For { unroll, .. } = &mut node.data {
                *unroll = Unroll::Auto;
            }
        }
    }
    true
}

/// A smaller form of the same instruction: no `else`, no unrolling.
pub(super) fn simplify(module: &mut Module, (id, _, inst): Place) -> bool {
    match &mut module.functions[id].insts[inst].data {
        InstData::If { else_region, .. } if else_region.is_some() => {
            *else_region = None;
            true
        }
        InstData::For { unroll, .. } if *unroll != Unroll::Auto => {
            *unroll = Unroll::Auto;
            true
        }
        _ => false,
    }
}

/// A map without the entries that are not `kept`, and where each of the others went.
fn keep_only<K: Entity, V: Clone>(
    map: &PrimaryMap<K, V>,
    kept: impl Fn(K) -> bool,
) -> (PrimaryMap<K, V>, Vec<Option<K>>) {
    let mut new = PrimaryMap::new();
    let moved = map
        .iter()
        .map(|(key, value)| kept(key).then(|| new.push(value.clone())));
    let moved = moved.collect();
    (new, moved)
}

/// Removes a device function that nobody calls.
pub(super) fn remove_function(module: &mut Module, id: FuncId) -> bool {
    let mut called = module.functions[id].kind == FunctionKind::Kernel;
    for function in module.functions.values() {
        function.for_each_inst(|_, inst| {
            called |= matches!(function.insts[inst].data, InstData::Call { callee, .. } if callee == id);
        });
    }
    if called {
        return false;
    }
    let (functions, moved) = keep_only(&module.functions, |key| key != id);
    module.functions = functions;
    for (_, function) in module.functions.iter_mut() {
        for (_, node) in function.insts.iter_mut() {
            if let InstData::Call { callee, .. } = &mut node.data {
                // Instructions without a place may still name it; they have no meaning.
                *callee = moved[callee.index()].unwrap_or(*callee);
            }
        }
    }
    true
}

/// Removes a parameter that is not used, with its arguments.
pub(super) fn remove_param(case: &mut Case, id: FuncId, param: usize) -> bool {
    let function = &mut case.module.functions[id];
    let value = function.params[param].value;
    if uses(function)[value.index()] > 0 {
        return false;
    }
    function.params.remove(param);
    if function.kind == FunctionKind::Kernel {
        case.args.remove(param);
        return true;
    }
    for (_, function) in case.module.functions.iter_mut() {
        for (_, node) in function.insts.iter_mut() {
            if let InstData::Call { callee, args, .. } = &mut node.data
                && *callee == id
            {
                args.remove(param);
            }
        }
    }
    true
}

/// Removes variables that are not named.
pub(super) fn remove_vars(module: &mut Module, id: FuncId) -> bool {
    let function = &mut module.functions[id];
    let mut named: Vec<Var> = Vec::new();
    function.for_each_inst(|_, inst| match function.insts[inst].data {
        InstData::VarGet(var) | InstData::VarSet(var, _) => named.push(var),
        _ => {}
    });
    let before = function.vars.len();
    let (vars, moved) = keep_only(&function.vars, |var| named.contains(&var));
    function.vars = vars;
    for (_, node) in function.insts.iter_mut() {
        if let InstData::VarGet(var) | InstData::VarSet(var, _) = &mut node.data {
            *var = moved[var.index()].unwrap_or(*var);
        }
    }
    function.vars.len() < before
}

/// Removes shared variables that are not named.
pub(super) fn remove_shared(module: &mut Module, id: FuncId) -> bool {
    let function = &mut module.functions[id];
    let mut named: Vec<SharedVar> = Vec::new();
    function.for_each_inst(|_, inst| {
        if let InstData::SharedAddr(var) = function.insts[inst].data {
            named.push(var);
        }
    });
    let before = function.shared.len();
    let (shared, moved) = keep_only(&function.shared, |var| named.contains(&var));
    function.shared = shared;
    for (_, node) in function.insts.iter_mut() {
        if let InstData::SharedAddr(var) = &mut node.data {
            *var = moved[var.index()].unwrap_or(*var);
        }
    }
    function.shared.len() < before
}

/// Removes constants of the module that are not named.
pub(super) fn remove_globals(module: &mut Module) -> bool {
    let mut named: Vec<GlobalId> = Vec::new();
    for function in module.functions.values() {
        function.for_each_inst(|_, inst| {
            if let InstData::GlobalAddr(id) = function.insts[inst].data {
                named.push(id);
            }
        });
    }
    let before = module.globals.len();
    let (globals, moved) = keep_only(&module.globals, |id| named.contains(&id));
    module.globals = globals;
    for (_, function) in module.functions.iter_mut() {
        for (_, node) in function.insts.iter_mut() {
            if let InstData::GlobalAddr(id) = &mut node.data {
                *id = moved[id.index()].unwrap_or(*id);
            }
        }
    }
    module.globals.len() < before
}

/// Removes a buffer that no argument names.
pub(super) fn remove_buffer(case: &mut Case, buffer: usize) -> bool {
    if case.args.contains(&Arg::Buffer(buffer)) {
        return false;
    }
    case.buffers.remove(buffer);
    for arg in &mut case.args {
        if let Arg::Buffer(other) = arg {
            *other -= usize::from(*other > buffer);
        }
    }
    true
}
