//! Memory space inference: generic pointers tightened to the memory they point into.
//!
//! The builder types a kernel's slices as generic: it does not know where a caller's memory lies.
//! This hook finds out (Besard et al. 2018, section 5.1.1; Wu et al. 2016, "gpucc", section 3.2).
//! A kernel's pointer parameters are global, because the host has no other addresses to give;
//! shared, local and constant memory say so themselves. From there a fixed point goes through
//! pointer arithmetic, mutable variables (the phi nodes of this IR: pointers that a loop moves
//! along), selects, and calls. It is optimistic: everything starts as unknown, and only what is
//! reached by two memories, or comes out of memory or a part of a value, stays generic.
//!
//! Afterwards every operand that its place no longer fits is cast. What the places are, the IR tells
//! ([`Function::operand_types`]), so that no kernel is refused for what this hook has changed. Two things
//! keep the meaning:
//!
//! - An address that becomes a number stays the address that it was: of a generic one the number is the
//!   generic address, not the offset in shared memory.
//! - A null pointer points nowhere and fits everywhere, but shared and local memory have something at
//!   their address 0, whose generic address is not 0. Where a kernel looks at the bits of an address, a
//!   null pointer is one into global memory, which is addressed alike.
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

use kiln_jit_core::hook::Hook;
use kiln_jit_core::ir::{
    AddressSpace, Constant, FuncId, Function, FunctionKind, Inst, InstData, Module, Type, TypeData,
    TypeTable, Value, Var,
};

/// Tightens generic pointers and slices. See the [module](self) documentation.
pub fn address_spaces() -> Hook {
    Hook::new("address-spaces")
        .version(2)
        .rewrite_ir(|_, module| {
            infer_address_spaces(module);
            Ok(())
        })
}

/// What holds a pointer: a value, a variable, or what a function returns.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
enum Holder {
    Value(FuncId, Value),
    Var(FuncId, Var),
    Result(FuncId),
}

/// What is known of each place; absent means nothing has reached it yet.
#[derive(Default)]
struct Spaces {
    known: HashMap<Holder, AddressSpace>,
    changed: bool,
    /// What a null pointer points into; `None` if that does not matter.
    null: Option<AddressSpace>,
}

impl Spaces {
    /// A pointer into `space` reaches `place`.
    fn reach(&mut self, place: Holder, space: Option<AddressSpace>) {
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

    fn of(&self, place: Holder) -> Option<AddressSpace> {
        self.known.get(&place).copied()
    }
}

/// The address space of a pointer or slice type.
fn space_of(types: &TypeTable, ty: Type) -> Option<AddressSpace> {
    match types.data(ty) {
        TypeData::Pointer { space, .. } | TypeData::Slice { space, .. } => Some(*space),
        _ => None,
    }
}

/// Infers and rewrites. Whether anything changed.
fn infer_address_spaces(module: &mut Module) {
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
    rewrite(module, &spaces);
}

/// What is known from the start: parameters of the kernel are global, and so are null pointers, those of
/// variables that are not assigned among them, if the bits of an address are looked at.
fn seed(module: &Module, spaces: &mut Spaces) {
    let mut functions = module.functions.values();
    spaces.null = functions
        .any(|function| looks_at_addresses(&module.types, function))
        .then_some(AddressSpace::Global);
    for (id, function) in module.functions.iter() {
        for (var, data) in function.vars.iter() {
            if space_of(&module.types, data.ty).is_some() {
                spaces.reach(Holder::Var(id, var), spaces.null);
            }
        }
        if function.kind != FunctionKind::Kernel {
            continue;
        }
        for param in &function.params {
            let space = match space_of(&module.types, function.type_of(param.value)) {
                Some(AddressSpace::Generic) => Some(AddressSpace::Global),
                declared => declared,
            };
            spaces.reach(Holder::Value(id, param.value), space);
        }
    }
}

/// Whether a function takes an address for a number, or what holds an address for something else.
fn looks_at_addresses(types: &TypeTable, function: &Function) -> bool {
    let mut looks = false;
    function.for_each_inst(|_, inst| {
        let node = &function.insts[inst];
        let result = node.result.map_or(Type::UNIT, |v| function.type_of(v));
        looks |= match node.data {
            InstData::Bitcast { arg } => space_of(types, function.type_of(arg)).is_some(),
            // Memory that is seen as several types.
            InstData::DynamicShared => match *types.data(result) {
                TypeData::Slice { element, .. } => holds_address(types, element),
                _ => false,
            },
            _ => false,
        };
    });
    looks
}

/// Whether a value of the type is, or has in it, an address.
fn holds_address(types: &TypeTable, ty: Type) -> bool {
    match *types.data(ty) {
        TypeData::Pointer { .. } | TypeData::Slice { .. } => true,
        TypeData::Array { element, .. } => holds_address(types, element),
        TypeData::Struct(id) => {
            let mut fields = types.struct_data(id).fields.iter();
            fields.any(|(_, ty)| holds_address(types, *ty))
        }
        _ => false,
    }
}

/// Lets one instruction pass on what reaches its operands.
fn flow(module: &Module, id: FuncId, inst: Inst, spaces: &mut Spaces) {
    let function = &module.functions[id];
    let node = &function.insts[inst];
    let value = |v: Value| Holder::Value(id, v);
    let is_address = |ty: Type| space_of(&module.types, ty).is_some();
    match &node.data {
        InstData::VarSet(var, v) if is_address(function.vars[*var].ty) => {
            let space = spaces.of(value(*v));
            spaces.reach(Holder::Var(id, *var), space);
        }
        InstData::Return { value: Some(v) } if is_address(function.result) => {
            let space = spaces.of(value(*v));
            spaces.reach(Holder::Result(id), space);
        }
        InstData::Call { callee, args, .. } => {
            let params = &module.functions[*callee].params;
            for (param, arg) in params.iter().zip(args) {
                let space = spaces.of(value(*arg));
                spaces.reach(Holder::Value(*callee, param.value), space);
            }
        }
        _ => {}
    }
    let Some(result) = node.result else { return };
    let Some(declared) = space_of(&module.types, function.type_of(result)) else {
        return;
    };
    if declared != AddressSpace::Generic {
        spaces.reach(value(result), Some(declared));
        return;
    }
    let reaching = match &node.data {
        InstData::VarGet(var) => spaces.of(Holder::Var(id, *var)),
        InstData::Call { callee, .. } => spaces.of(Holder::Result(*callee)),
        InstData::Select {
            if_true, if_false, ..
        } => {
            let space = spaces.of(value(*if_true));
            spaces.reach(value(result), space);
            spaces.of(value(*if_false))
        }
        InstData::SpaceCast { arg } => spaces.of(value(*arg)),
        InstData::Const(_) => spaces.null,
        // What comes out of memory, of a number or of a part of a value can be anything.
        data => match data.address_base() {
            Some(base) if is_address(function.type_of(base)) => spaces.of(value(base)),
            _ => Some(AddressSpace::Generic),
        },
    };
    // Only parameters point into parameter memory.
    let reaching = reaching.map(|space| match space {
        AddressSpace::Param => AddressSpace::Generic,
        space => space,
    });
    spaces.reach(value(result), reaching);
}

/// Gives every place that is reached by one memory only that memory's type, and casts where such a
/// pointer goes to something of another type.
fn rewrite(module: &mut Module, spaces: &Spaces) {
    let numbers: HashMap<(FuncId, Inst), AddressSpace> = addresses_as_numbers(module);
    let mut changed = false;
    for id in module.functions.keys().collect::<Vec<_>>() {
        let tightened = |module: &mut Module, ty: Type, place: Holder| {
            let space = spaces.of(place).filter(|s| *s != AddressSpace::Generic)?;
            let generic = space_of(&module.types, ty) == Some(AddressSpace::Generic);
            generic.then(|| module.types.in_space(ty, space))?
        };
        for value in module.functions[id].values.keys().collect::<Vec<_>>() {
            let ty = module.functions[id].type_of(value);
            if let Some(ty) = tightened(module, ty, Holder::Value(id, value)) {
                module.functions[id].values[value].ty = ty;
                changed = true;
            }
        }
        for var in module.functions[id].vars.keys().collect::<Vec<_>>() {
            let ty = module.functions[id].vars[var].ty;
            if let Some(ty) = tightened(module, ty, Holder::Var(id, var)) {
                module.functions[id].vars[var].ty = ty;
                changed = true;
            }
        }
        let ty = module.functions[id].result;
        if let Some(ty) = tightened(module, ty, Holder::Result(id)) {
            module.functions[id].result = ty;
            changed = true;
        }
    }
    if changed {
        for id in module.functions.keys().collect::<Vec<_>>() {
            drop_identity_casts(&mut module.functions[id]);
            mend(module, id, &numbers);
        }
    }
}

/// The bit casts that make numbers of addresses, with the memory that the address is one of.
fn addresses_as_numbers(module: &Module) -> HashMap<(FuncId, Inst), AddressSpace> {
    let mut numbers = HashMap::new();
    for (id, function) in module.functions.iter() {
        function.for_each_inst(|_, inst| {
            let node = &function.insts[inst];
            let result = node.result.map_or(Type::UNIT, |v| function.type_of(v));
            if let InstData::Bitcast { arg } = node.data
                && let Some(space) = space_of(&module.types, function.type_of(arg))
                && space_of(&module.types, result).is_none()
            {
                numbers.insert((id, inst), space);
            }
        });
    }
    numbers
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

/// An operand that is to be an address in another memory.
struct Misfit {
    inst: Inst,
    position: usize,
    value: Value,
    wanted: AddressSpace,
}

/// Inserts a cast before every instruction with an operand that does not fit.
fn mend(module: &mut Module, id: FuncId, numbers: &HashMap<(FuncId, Inst), AddressSpace>) {
    let function = &module.functions[id];
    let mut misfits = Vec::new();
    function.for_each_inst(|_, inst| {
        let mut want = |position: usize, value: Value, wanted: Option<AddressSpace>| {
            let has = space_of(&module.types, function.type_of(value));
            if let (Some(has), Some(wanted)) = (has, wanted)
                && has != wanted
            {
                misfits.push(Misfit {
                    inst,
                    position,
                    value,
                    wanted,
                });
            }
        };
        let node = &function.insts[inst];
        let result = node.result.map_or(Type::UNIT, |v| function.type_of(v));
        for operand in function.operand_types(module, &node.data, result) {
            let wanted = space_of(&module.types, operand.ty);
            want(operand.position, operand.value, wanted);
        }
        let space = |value: Value| space_of(&module.types, function.type_of(value));
        match node.data {
            InstData::Bitcast { arg } => want(0, arg, numbers.get(&(id, inst)).copied()),
            // From one memory to another only by way of a generic address.
            InstData::SpaceCast { arg } => {
                let generic = Some(AddressSpace::Generic);
                let (from, to) = (space(arg), space_of(&module.types, result));
                if from != to && from != generic && to != generic {
                    want(0, arg, generic);
                }
            }
            _ => {}
        }
        if let Some(address) = node.data.atomic_address()
            && !space(address).is_some_and(AddressSpace::has_atomics)
        {
            want(0, address, Some(AddressSpace::Generic));
        }
    });
    let Module {
        types, functions, ..
    } = module;
    let function = &mut functions[id];
    let mut before: HashMap<Inst, Vec<Inst>> = HashMap::new();
    for misfit in misfits {
        let casts = before.entry(misfit.inst).or_default();
        let cast = in_space(types, function, &misfit, casts);
        let mut position = 0;
        function.insts[misfit.inst].data.map_operands(|operand| {
            position += 1;
            match position - 1 == misfit.position {
                true => cast,
                false => operand,
            }
        });
    }
    for region in function.regions.keys().collect::<Vec<_>>() {
        let insts = std::mem::take(&mut function.regions[region].insts);
        let mended = insts.into_iter().flat_map(|inst| {
            let casts = before.remove(&inst).unwrap_or_default();
            casts.into_iter().chain([inst])
        });
        function.regions[region].insts = mended.collect();
    }
}

/// The operand as an address in the memory that is wanted; what it takes is added to `casts`.
fn in_space(
    types: &mut TypeTable,
    function: &mut Function,
    misfit: &Misfit,
    casts: &mut Vec<Inst>,
) -> Value {
    let has = function.type_of(misfit.value);
    let generic = space_of(types, has) == Some(AddressSpace::Generic);
    let location = function.insts[misfit.inst].location;
    let null = function.constant(misfit.value) == Some(Constant::Zero);
    // From one memory to another only by way of a generic address.
    let path = match null || generic || misfit.wanted == AddressSpace::Generic {
        true => [None, Some(misfit.wanted)],
        false => [Some(AddressSpace::Generic), Some(misfit.wanted)],
    };
    let mut value = misfit.value;
    for space in path.into_iter().flatten() {
        let ty = types.in_space(has, space).unwrap_or(has);
        let data = match null {
            true => InstData::Const(Constant::Zero),
            false => InstData::SpaceCast { arg: value },
        };
        let inst = function.new_inst(data, ty, location);
        casts.push(inst);
        value = function.insts[inst].result.unwrap_or(value);
    }
    value
}
