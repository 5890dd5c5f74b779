//! Values that are lent to a method for reading, and parts of structs that are put together.
//!
//! `m.at(i, j)` passes the address of a copy of `m`, from which the body loads a slice and a width. In place of the call
//! that copy is written once and only read, so what is loaded is the part of `m` itself: it does not change in a loop in
//! which `m` does not. A view is a struct that is put together at the start of a kernel, so `m.data` is the parameter.

use std::collections::{HashMap, HashSet};

use kiln_compiler::ir::{Function, Inst, InstData, Region, Type, TypeTable, Value};

use super::counter::defining;

/// How many structs in structs a part that is loaded is in.
const MAX_PATH: usize = 8;

/// Has what is loaded from memory that is written once be a part of what was written.
pub(super) fn make(function: &mut Function, types: &TypeTable) {
    let may_be_of_use =
        |data: &InstData| matches!(data, InstData::LocalAlloc | InstData::Extract { .. });
    if !(function.insts.values()).any(|node| may_be_of_use(&node.data)) {
        return;
    }
    let seen = Seen::of(function);
    let allocs = seen.order.iter().map(|&(_, inst)| inst);
    let allocs = allocs.filter(|&inst| function.insts[inst].data == InstData::LocalAlloc);
    let found: Vec<Lent> = allocs
        .filter_map(|alloc| seen.written_once(function, types, alloc))
        .collect();
    let (mut gone, mut replaced) = (HashSet::new(), HashMap::new());
    for lent in found {
        gone.extend(lent.gone);
        for (region, load, path) in lent.loads {
            match (path.split_last(), function.insts[load].result) {
                (Some(path), _) => select(function, (region, load), lent.value, path),
                (None, Some(result)) => {
                    replaced.insert(result, lent.value);
                    gone.insert(load);
                }
                (None, None) => {}
            }
        }
    }
    for region in function.regions.keys().collect::<Vec<_>>() {
        let insts = &mut function.regions[region].insts;
        insts.retain(|inst| !gone.contains(inst));
    }
    parts_of_what_is_put_together(function, &mut replaced);
    for (_, node) in function.insts.iter_mut() {
        node.data.map_operands(|value| now(&replaced, value));
    }
}

/// What stands for a value.
fn now(replaced: &HashMap<Value, Value>, mut value: Value) -> Value {
    while let Some(&other) = replaced.get(&value) {
        value = other;
    }
    value
}

/// Memory that holds one value.
struct Lent {
    value: Value,
    /// Loads, each with where the part is, from the outside in.
    loads: Vec<(Region, Inst, Path)>,
    /// The memory, its addresses and what is written there.
    gone: Vec<Inst>,
}

/// Fields of structs, each with its type.
type Path = Vec<(u32, Type)>;

/// Instructions in the order in which they stand, and who uses values.
struct Seen {
    order: Vec<(Region, Inst)>,
    places: HashMap<Inst, usize>,
    users: HashMap<Value, Vec<Inst>>,
}

impl Seen {
    fn of(function: &Function) -> Seen {
        let mut seen = Seen {
            order: Vec::new(),
            places: HashMap::new(),
            users: HashMap::new(),
        };
        function.for_each_inst(|region, inst| {
            seen.places.insert(inst, seen.order.len());
            seen.order.push((region, inst));
            let data = &function.insts[inst].data;
            data.for_each_operand(|value| seen.users.entry(value).or_default().push(inst));
        });
        seen
    }

    /// Memory that is written as a whole, where it is made and before all else, and only read otherwise.
    fn written_once(&self, function: &Function, types: &TypeTable, alloc: Inst) -> Option<Lent> {
        let (mut store, mut first) = (None, usize::MAX);
        let (mut loads, mut gone) = (Vec::new(), vec![alloc]);
        let mut open = vec![(function.insts[alloc].result?, Path::new())];
        while let Some((address, path)) = open.pop() {
            for &user in self.users.get(&address).into_iter().flatten() {
                let (place, result) = (self.places[&user], function.insts[user].result);
                match function.insts[user].data {
                    InstData::SpaceCast { .. } => open.push((result?, path.clone())),
                    InstData::FieldPtr { field, .. } if path.len() < MAX_PATH => {
                        let ty = types.address(function.type_of(result?))?.pointee;
                        let further = path.iter().copied().chain([(field, ty)]).collect();
                        open.push((result?, further));
                    }
                    InstData::Load {
                        volatile: false, ..
                    } => {
                        loads.push((self.order[place].0, user, path.clone()));
                        first = first.min(place);
                        continue;
                    }
                    InstData::Store {
                        ptr,
                        value,
                        volatile: false,
                    } if ptr == address && value != address && path.is_empty() => {
                        if store.replace((place, value)).is_some() {
                            return None;
                        }
                    }
                    _ => return None,
                }
                gone.push(user);
            }
        }
        let (place, value) = store?;
        let is_home = self.order[place].0 == self.order[self.places[&alloc]].0;
        (is_home && place < first).then_some(Lent { value, loads, gone })
    }
}

/// Has an instruction give a part of a value instead of loading it.
fn select(
    function: &mut Function,
    (region, load): (Region, Inst),
    value: Value,
    (&(index, _), outer): (&(u32, Type), &[(u32, Type)]),
) {
    let at = function.insts[load].location;
    let (mut aggregate, mut made) = (value, Vec::new());
    for &(index, ty) in outer {
        let inst = function.new_inst(InstData::Extract { aggregate, index }, ty, at);
        made.push(inst);
        aggregate = function.insts[inst].result.unwrap_or(aggregate);
    }
    function.insts[load].data = InstData::Extract { aggregate, index };
    let insts = &mut function.regions[region].insts;
    if let Some(place) = insts.iter().position(|&inst| inst == load) {
        insts.splice(place..place, made);
    }
}

/// Has parts of structs that are put together be what they were put together of.
fn parts_of_what_is_put_together(function: &Function, replaced: &mut HashMap<Value, Value>) {
    function.for_each_inst(|_, inst| {
        let node = &function.insts[inst];
        let InstData::Extract { aggregate, index } = node.data else {
            return;
        };
        let whole = defining(function, now(replaced, aggregate));
        if let (Some(InstData::Construct { parts }), Some(result)) = (whole, node.result)
            && let Some(&part) = parts.get(index as usize)
        {
            replaced.insert(result, part);
        }
    });
}
