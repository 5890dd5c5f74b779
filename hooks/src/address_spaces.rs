//! Memory space inference: generic pointers tightened to the memory they point into.
//!
//! The builder types a kernel's slices as generic: it does not know where a caller's memory lies.
//! This hook finds out (Besard et al. 2018, section 5.1.1; Wu et al. 2016, "gpucc", section 3.2).
//! A kernel's pointer parameters are global, because the host has no other addresses to give;
//! shared, local and constant memory say so themselves. From there a fixed point goes through
//! pointer arithmetic, mutable variables (the phi nodes of this IR: pointers that a loop moves
//! along), selects, and calls. It is optimistic: everything starts as unknown, and only what is
//! reached by two memories, or comes out of memory, stays generic.
//!
//! ```text
//! %3: ptr<generic, f32> = slice_index %1, %2       ld.b32        %r1, [%rd1];
//! %3: ptr<global, f32> = slice_index %1, %2        ld.global.b32 %r1, [%rd1];
//! ```
//!
//! LLVM finds the easy cases again while it writes code, when most optimizations have run; alias
//! analysis, which tells shared from global memory, has had no use of it by then. Switch it off
//! with `hooks::standard().without("address-spaces")` to see what it is worth.

use std::collections::HashMap;

use kiln_jit_core::hook::{Changed, Hook, HookContext, HookResult};
use kiln_jit_core::ir::{
    AddressSpace, FuncId, Function, FunctionKind, Inst, InstData, Module, Type, TypeData, Value,
    Var,
};

/// Tightens generic pointers and slices. See the [module](self) documentation.
#[derive(Copy, Clone, Debug, Default)]
pub struct AddressSpaces;

impl Hook for AddressSpaces {
    fn name(&self) -> &'static str {
        "address-spaces"
    }

    fn rewrite_ir(&self, _cx: &HookContext<'_>, module: &mut Module) -> HookResult<Changed> {
        Ok(infer_address_spaces(module).into())
    }
}

/// A place that has an address space: a value, a variable, or what a function returns.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
enum Place {
    Value(FuncId, Value),
    Var(FuncId, Var),
    Result(FuncId),
}

/// What is known of each place; absent means nothing has reached it yet.
#[derive(Default)]
struct Spaces {
    known: HashMap<Place, AddressSpace>,
    changed: bool,
}

impl Spaces {
    /// A pointer into `space` reaches `place`.
    fn reach(&mut self, place: Place, space: Option<AddressSpace>) {
        let Some(space) = space else { return };
        let before = self.known.get(&place).copied();
        let after = match before {
            None => space,
            Some(before) if before == space => before,
            Some(_) => AddressSpace::Generic,
        };
        if before != Some(after) {
            self.known.insert(place, after);
            self.changed = true;
        }
    }

    fn of(&self, place: Place) -> Option<AddressSpace> {
        self.known.get(&place).copied()
    }
}

/// The address space of a pointer or slice type.
fn space_of(module: &Module, ty: Type) -> Option<AddressSpace> {
    match module.types.data(ty) {
        TypeData::Pointer { space, .. } | TypeData::Slice { space, .. } => Some(*space),
        _ => None,
    }
}

/// Infers and rewrites. Whether anything changed.
fn infer_address_spaces(module: &mut Module) -> bool {
    let mut spaces = Spaces::default();
    seed(module, &mut spaces);
    loop {
        spaces.changed = false;
        for id in module.functions.keys() {
            let function = &module.functions[id];
            function.for_each_inst(|_, inst| flow(module, id, inst, &mut spaces));
        }
        if !spaces.changed {
            break;
        }
    }
    rewrite(module, &spaces)
}

/// What is known from the start: parameters of the kernel are global.
fn seed(module: &Module, spaces: &mut Spaces) {
    for (id, function) in module.functions.iter() {
        if function.kind != FunctionKind::Kernel {
            continue;
        }
        for param in &function.params {
            let space = match space_of(module, function.type_of(param.value)) {
                Some(AddressSpace::Generic) => Some(AddressSpace::Global),
                declared => declared,
            };
            spaces.reach(Place::Value(id, param.value), space);
        }
    }
}

/// Lets one instruction pass on what reaches its operands.
fn flow(module: &Module, id: FuncId, inst: Inst, spaces: &mut Spaces) {
    let function = &module.functions[id];
    let node = &function.insts[inst];
    let value = |v: Value| Place::Value(id, v);
    match &node.data {
        InstData::VarSet(var, v) if space_of(module, function.vars[*var].ty).is_some() => {
            let space = spaces.of(value(*v));
            spaces.reach(Place::Var(id, *var), space);
        }
        InstData::Return { value: Some(v) } if space_of(module, function.result).is_some() => {
            let space = spaces.of(value(*v));
            spaces.reach(Place::Result(id), space);
        }
        InstData::Call { callee, args, .. } => {
            let params = &module.functions[*callee].params;
            for (param, arg) in params.iter().zip(args) {
                let space = spaces.of(value(*arg));
                spaces.reach(Place::Value(*callee, param.value), space);
            }
        }
        _ => {}
    }
    let Some(result) = node.result else { return };
    let Some(declared) = space_of(module, function.type_of(result)) else {
        return;
    };
    let reaching = match &node.data {
        _ if declared != AddressSpace::Generic => Some(declared),
        InstData::VarGet(var) => spaces.of(Place::Var(id, *var)),
        InstData::Call { callee, .. } => spaces.of(Place::Result(*callee)),
        InstData::Select {
            if_true, if_false, ..
        } => {
            let space = spaces.of(value(*if_true));
            spaces.reach(value(result), space);
            spaces.of(value(*if_false))
        }
        InstData::PtrOffset { ptr: base, .. }
        | InstData::FieldPtr { ptr: base, .. }
        | InstData::ElementPtr { ptr: base, .. }
        | InstData::SliceNew { ptr: base, .. }
        | InstData::SlicePtr { slice: base }
        | InstData::SliceIndex { slice: base, .. }
        | InstData::SpaceCast { arg: base } => spaces.of(value(*base)),
        // A pointer in a kernel's parameter was put there by the host.
        InstData::Extract { aggregate, .. } if is_parameter(function, *aggregate) => {
            Some(AddressSpace::Global)
        }
        // Null points nowhere and fits everywhere; what comes out of memory can be anything.
        InstData::Const(_) => None,
        _ => Some(AddressSpace::Generic),
    };
    spaces.reach(value(result), reaching);
}

/// Whether `value` is a parameter of a kernel, or a part of one.
fn is_parameter(function: &Function, value: Value) -> bool {
    use kiln_jit_core::ir::ValueDef;
    match function.values[value].def {
        ValueDef::Param(_) => function.kind == FunctionKind::Kernel,
        ValueDef::Inst(inst) => match function.insts[inst].data {
            InstData::Extract { aggregate, .. } => is_parameter(function, aggregate),
            _ => false,
        },
        ValueDef::Index(_) => false,
    }
}

/// Gives every place that is reached by one memory only that memory's type, and casts where such a
/// pointer goes to something that stays generic.
fn rewrite(module: &mut Module, spaces: &Spaces) -> bool {
    let mut changed = false;
    for id in module.functions.keys().collect::<Vec<_>>() {
        let tightened = |module: &mut Module, ty: Type, place: Place| {
            let space = spaces.of(place).filter(|s| *s != AddressSpace::Generic)?;
            let generic = space_of(module, ty) == Some(AddressSpace::Generic);
            generic.then(|| module.types.in_space(ty, space))?
        };
        for value in module.functions[id].values.keys().collect::<Vec<_>>() {
            let ty = module.functions[id].type_of(value);
            if let Some(ty) = tightened(module, ty, Place::Value(id, value)) {
                module.functions[id].values[value].ty = ty;
                changed = true;
            }
        }
        for var in module.functions[id].vars.keys().collect::<Vec<_>>() {
            let ty = module.functions[id].vars[var].ty;
            if let Some(ty) = tightened(module, ty, Place::Var(id, var)) {
                module.functions[id].vars[var].ty = ty;
                changed = true;
            }
        }
        let ty = module.functions[id].result;
        if let Some(ty) = tightened(module, ty, Place::Result(id)) {
            module.functions[id].result = ty;
            changed = true;
        }
    }
    if changed {
        for id in module.functions.keys().collect::<Vec<_>>() {
            drop_identity_casts(&mut module.functions[id]);
            mend(module, id);
        }
    }
    changed
}

/// Removes casts that no longer change the address space; their uses take what was cast.
fn drop_identity_casts(function: &mut Function) {
    let mut same: HashMap<Value, Value> = HashMap::new();
    let mut removed = Vec::new();
    function.for_each_inst(|region, inst| {
        let node = &function.insts[inst];
        if let (InstData::SpaceCast { arg }, Some(result)) = (&node.data, node.result)
            && function.type_of(*arg) == function.type_of(result)
        {
            // Outer before inner: what is cast may be such a cast itself.
            same.insert(result, same.get(arg).copied().unwrap_or(*arg));
            removed.push((region, inst));
        }
    });
    for (region, inst) in removed {
        function.regions[region].insts.retain(|&i| i != inst);
    }
    for (_, node) in function.insts.iter_mut() {
        node.data
            .map_operands(|v| same.get(&v).copied().unwrap_or(v));
    }
}

/// Inserts a cast before every instruction one of whose operands is wanted generic and is not.
fn mend(module: &mut Module, id: FuncId) {
    let mut casts: Vec<(kiln_jit_core::ir::Region, Inst, Value, Type)> = Vec::new();
    let function = &module.functions[id];
    function.for_each_inst(|region, inst| {
        for (operand, wanted) in wanted_types(module, function, inst) {
            let has = function.type_of(operand);
            let tight = space_of(module, has).is_some_and(|s| s != AddressSpace::Generic);
            if has != wanted && tight && space_of(module, wanted) == Some(AddressSpace::Generic) {
                casts.push((region, inst, operand, wanted));
            }
        }
    });
    let function = &mut module.functions[id];
    for (region, inst, operand, wanted) in casts {
        let location = function.insts[inst].location;
        let cast = function.new_inst(InstData::SpaceCast { arg: operand }, wanted, location);
        let insts = &mut function.regions[region].insts;
        let at = insts.iter().position(|&i| i == inst).unwrap_or(insts.len());
        insts.insert(at, cast);
        if let Some(generic) = function.insts[cast].result {
            function.insts[inst]
                .data
                .map_operands(|v| if v == operand { generic } else { v });
        }
    }
}

/// The operands of an instruction that must have a certain type, with that type.
fn wanted_types(module: &Module, function: &Function, inst: Inst) -> Vec<(Value, Type)> {
    let node = &function.insts[inst];
    let result = node.result.map(|v| function.type_of(v));
    match &node.data {
        InstData::VarSet(var, value) => vec![(*value, function.vars[*var].ty)],
        InstData::Store { ptr, value, .. } => match module.types.as_pointer(function.type_of(*ptr))
        {
            Some((pointee, ..)) => vec![(*value, pointee)],
            None => Vec::new(),
        },
        InstData::Return { value: Some(value) } => vec![(*value, function.result)],
        InstData::Select {
            if_true, if_false, ..
        } => result.map_or(Vec::new(), |ty| vec![(*if_true, ty), (*if_false, ty)]),
        InstData::Call { callee, args, .. } => {
            let callee = &module.functions[*callee];
            let wanted = callee.params.iter().map(|p| callee.type_of(p.value));
            args.iter().copied().zip(wanted).collect()
        }
        InstData::Construct { parts } => {
            let fields = result.and_then(|ty| module.types.as_struct(ty));
            let wanted = fields.map(|s| s.fields.iter().map(|(_, ty)| *ty));
            wanted.map_or(Vec::new(), |wanted| {
                parts.iter().copied().zip(wanted).collect()
            })
        }
        InstData::Insert { index, value, .. } => {
            let fields = result.and_then(|ty| module.types.as_struct(ty));
            let field = fields.and_then(|s| s.fields.get(*index as usize));
            field.map_or(Vec::new(), |(_, ty)| vec![(*value, *ty)])
        }
        _ => Vec::new(),
    }
}
