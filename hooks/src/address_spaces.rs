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
//!
//! A device function that is called with one memory here and another there is compiled once for each, at most
//! eight times (`copies.rs`).

mod copies;

use std::collections::HashMap;

use kiln_compiler::hook::Hook;
use kiln_compiler::ir::{
    AddressSpace, Constant, Cursor, FuncId, Function, FunctionKind, Inst, InstData, Module, Type,
    TypeData, TypeTable, Value, Var,
};

/// Tightens generic pointers and slices. See the [module](self) documentation.
///
/// ```
/// use kiln::prelude::*;
///
/// use kiln::core::hook::HookSet;
///
/// #[kernel]
/// fn double(x: &mut [f32]) {
///     x[global_id().x] *= 2.0;
/// }
///
/// # fn main() -> kiln::Result<()> {
/// let with = Jit::builder().hooks(HookSet::from(kiln::hooks::address_spaces())).build()?;
/// let without = Jit::builder().hooks(HookSet::new()).build()?;
/// let mut x = with.zeros::<f32>(1)?;
/// assert!(with.inspect(&double, args!(&mut x))?.ir().contains("ptr<global"));
/// let mut x = without.zeros::<f32>(1)?;
/// assert!(without.inspect(&double, args!(&mut x))?.ir().contains("ptr<generic"));
/// # Ok(())
/// # }
/// ```
pub fn address_spaces() -> Hook {
    Hook::new("address-spaces")
        .version(3)
        .may_be_kept()
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

/// Infers and rewrites.
fn infer_address_spaces(module: &mut Module) {
    let spaces = copies::separate(module);
    rewrite(module, &spaces);
}

/// What reaches what.
fn inferred(module: &Module) -> Spaces {
    let mut spaces = Spaces::default();
    seed(module, &mut spaces);
    loop {
        spaces.changed = false;
        for id in module.functions.keys() {
            let function = &module.functions[id];
            function.for_each_inst(|_, inst| flow(module, id, inst, &mut spaces));
        }
        if !spaces.changed {
            return spaces;
        }
    }
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
    let numbers = addresses_as_numbers(module);
    let tightened = |types: &mut TypeTable, ty: &mut Type, place: Holder| {
        let space = spaces.of(place).filter(|s| *s != AddressSpace::Generic)?;
        let generic = space_of(types, *ty) == Some(AddressSpace::Generic);
        *ty = types.in_space(*ty, space).filter(|_| generic)?;
        Some(())
    };
    let Module {
        types, functions, ..
    } = module;
    let mut changed = false;
    for (id, function) in functions.iter_mut() {
        for (value, data) in function.values.iter_mut() {
            changed |= tightened(types, &mut data.ty, Holder::Value(id, value)).is_some();
        }
        for (var, data) in function.vars.iter_mut() {
            changed |= tightened(types, &mut data.ty, Holder::Var(id, var)).is_some();
        }
        changed |= tightened(types, &mut function.result, Holder::Result(id)).is_some();
    }
    if changed {
        module.rewrite_each(|at| mend(at, &numbers));
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

/// Takes out a cast that no longer changes the address space, and casts operands that do not fit.
fn mend(at: &mut Cursor<'_>, numbers: &HashMap<(FuncId, Inst), AddressSpace>) {
    if let (&InstData::SpaceCast { arg }, Some(result)) = (at.data(), at.result())
        && at.type_of(arg) == at.type_of(result)
    {
        at.replace_by(arg);
        return;
    }
    for (position, value, wanted) in misfits(at, numbers) {
        let cast = in_space(at, value, wanted);
        at.set_operand(position, cast);
    }
}

/// The operands that are to be addresses in another memory, by position, with that memory.
fn misfits(
    at: &Cursor<'_>,
    numbers: &HashMap<(FuncId, Inst), AddressSpace>,
) -> Vec<(usize, Value, AddressSpace)> {
    let (module, function) = (at.module(), at.function());
    let space = |value: Value| space_of(&module.types, function.type_of(value));
    let mut misfits = Vec::new();
    let mut want = |position: usize, value: Value, wanted: Option<AddressSpace>| {
        if let (Some(has), Some(wanted)) = (space(value), wanted)
            && has != wanted
        {
            misfits.push((position, value, wanted));
        }
    };
    let result = at.result().map_or(Type::UNIT, |v| function.type_of(v));
    for operand in function.operand_types(module, at.data(), result) {
        let wanted = space_of(&module.types, operand.ty);
        want(operand.position, operand.value, wanted);
    }
    match *at.data() {
        InstData::Bitcast { arg } => {
            let number = at
                .inst()
                .and_then(|inst| numbers.get(&(at.function_id(), inst)));
            want(0, arg, number.copied());
        }
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
    if let Some(address) = at.data().atomic_address()
        && !space(address).is_some_and(AddressSpace::has_atomics)
    {
        want(0, address, Some(AddressSpace::Generic));
    }
    misfits
}

/// An operand as an address in the memory that is wanted.
fn in_space(at: &mut Cursor<'_>, value: Value, wanted: AddressSpace) -> Value {
    let has = at.type_of(value);
    let generic = space_of(at.types(), has) == Some(AddressSpace::Generic);
    let null = at.function().constant(value) == Some(Constant::Zero);
    // From one memory to another only by way of a generic address.
    let path = match null || generic || wanted == AddressSpace::Generic {
        true => [None, Some(wanted)],
        false => [Some(AddressSpace::Generic), Some(wanted)],
    };
    let mut value = value;
    for space in path.into_iter().flatten() {
        let ty = at.types_mut().in_space(has, space).unwrap_or(has);
        value = match null {
            true => at.ins().zero(ty),
            false => at.ins().space_cast(value, ty),
        };
    }
    value
}
