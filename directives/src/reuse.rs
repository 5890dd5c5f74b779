//! Storage of shared memory: what is used in different parts of a kernel has one place there.
//!
//! A variable is used in the smallest region that holds all that makes its address. Two variables whose regions do not hold one
//! another are never in use at the same time, as threads meet at a barrier when they come to such a region, before they use the
//! variable: none of them is left in the other one.

use std::collections::HashMap;

use kiln_jit_core::ir::{
    AddressSpace, FuncId, Function, Inst, InstData, Module, PrimaryMap, Region, SharedVar, Type,
    Value,
};

use crate::arrays::array_of;
use crate::jam::holds;
use crate::uniform::base_of;

/// Lets variables that are not in use at the same time have one place.
pub(crate) fn share_storage(module: &mut Module, kernel: FuncId) {
    let groups = groups(module, &module.functions[kernel]);
    for group in &groups {
        if let [place, others @ ..] = &group[..] {
            for &var in others {
                take_place(module, kernel, (*place, var));
            }
        }
    }
    let function = &mut module.functions[kernel];
    let kept: Vec<SharedVar> = groups.iter().map(|group| group[0]).collect();
    let (mut shared, mut places) = (PrimaryMap::new(), HashMap::new());
    for (var, data) in function.shared.iter() {
        if kept.contains(&var) {
            places.insert(var, shared.push(data.clone()));
        }
    }
    function.shared = shared;
    let mut all = Vec::new();
    function.for_each_inst(|_, inst| all.push(inst));
    for inst in all {
        function.insts[inst].data.map_shared(|var| places[&var]);
    }
}

/// The variables that are used, those together that have one place; the first one of each is the largest.
fn groups(module: &Module, function: &Function) -> Vec<Vec<SharedVar>> {
    let tree = Tree::of(function);
    let size = |var: SharedVar| {
        let layout = module.types.layout(function.shared[var].ty);
        layout.map_or(0, |layout| layout.size)
    };
    let mut vars: Vec<SharedVar> = function.shared.keys().collect();
    vars.retain(|var| tree.homes.contains_key(var));
    vars.sort_by_key(|&var| std::cmp::Reverse(size(var)));
    let mut groups: Vec<Vec<SharedVar>> = Vec::new();
    for var in vars {
        let is_free = |group: &&mut Vec<SharedVar>| {
            let mut others = group.iter();
            others.all(|&other| tree.are_apart(function, var, other))
        };
        match groups.iter_mut().find(is_free) {
            Some(group) => group.push(var),
            None => groups.push(vec![var]),
        }
    }
    groups
}

/// Lets a variable have the place of another one, which is at least as large.
fn take_place(module: &mut Module, kernel: FuncId, (place, var): (SharedVar, SharedVar)) {
    let Module {
        types, functions, ..
    } = module;
    let function = &mut functions[kernel];
    let align = function.shared[var].align;
    let (ty, is_alike) = (
        function.shared[place].ty,
        function.shared[place].ty == function.shared[var].ty,
    );
    function.shared[place].align = function.shared[place].align.max(align);
    let address = types.pointer(ty, AddressSpace::Shared, true);
    let mut made: Vec<(Region, Inst)> = Vec::new();
    function.for_each_inst(|region, inst| {
        if matches!(function.insts[inst].data, InstData::SharedAddr(held) if held == var) {
            made.push((region, inst));
        }
    });
    for (region, inst) in made {
        if is_alike {
            function.insts[inst].data = InstData::SharedAddr(place);
            continue;
        }
        let arg = at_place(function, (region, inst), (place, address));
        function.insts[inst].data = InstData::Bitcast { arg };
    }
}

/// The address of a place, made before an instruction.
fn at_place(
    function: &mut Function,
    (region, inst): (Region, Inst),
    (place, address): (SharedVar, Type),
) -> Value {
    let at = function.insts[inst].location;
    let new = function.new_inst(InstData::SharedAddr(place), address, at);
    let insts = &mut function.regions[region].insts;
    let before = insts.iter().position(|&held| held == inst);
    insts.insert(before.unwrap_or(0), new);
    function.insts[new].result.expect("an address is a value")
}

/// The regions of a function.
struct Tree {
    /// By region, the one around it.
    around: HashMap<Region, Region>,
    /// By variable, the smallest region with all that makes its address.
    homes: HashMap<SharedVar, Region>,
}

impl Tree {
    fn of(function: &Function) -> Tree {
        let mut tree = Tree {
            around: HashMap::new(),
            homes: HashMap::new(),
        };
        let mut made: Vec<(SharedVar, Region)> = Vec::new();
        function.for_each_inst(|region, inst| {
            let data = &function.insts[inst].data;
            let inner = data.regions().into_iter();
            tree.around.extend(inner.map(|inner| (inner, region)));
            if let InstData::SharedAddr(var) = *data {
                made.push((var, region));
            }
        });
        for (var, region) in made {
            let home = match tree.homes.get(&var) {
                Some(&home) => tree.both(home, region),
                None => region,
            };
            tree.homes.insert(var, home);
        }
        tree
    }

    /// A region and those around it, from the inside.
    fn way(&self, region: Region) -> Vec<Region> {
        let around = |region: &Region| self.around.get(region).copied();
        std::iter::successors(Some(region), around).collect()
    }

    /// The smallest region that holds two.
    fn both(&self, a: Region, b: Region) -> Region {
        let (a, b) = (self.way(a), self.way(b));
        let common = a.into_iter().find(|region| b.contains(region));
        common.expect("the function's body holds all")
    }

    /// Whether two variables are not in use at the same time.
    fn are_apart(&self, function: &Function, a: SharedVar, b: SharedVar) -> bool {
        let homes = [self.homes[&a], self.homes[&b]];
        let [a_way, b_way] = homes.map(|home| self.way(home));
        !a_way.contains(&homes[1])
            && !b_way.contains(&homes[0])
            && begins_with_barrier(function, homes[0], a)
            && begins_with_barrier(function, homes[1], b)
    }
}

/// Whether threads meet in a region before anything in it uses a variable.
fn begins_with_barrier(function: &Function, home: Region, var: SharedVar) -> bool {
    let makes = |data: &InstData| matches!(*data, InstData::SharedAddr(held) if held == var);
    let uses = |data: &InstData| {
        let mut found = false;
        data.for_each_operand(|operand| {
            found |= array_of(function, base_of(function, operand)) == Some(var);
        });
        found
    };
    for &inst in &function.regions[home].insts {
        let data = &function.insts[inst].data;
        if data.is_barrier() {
            return true;
        }
        // What makes an address uses nothing; what holds that may use it.
        if !makes(data) && holds(function, inst, |data| makes(data) || uses(data)) {
            return false;
        }
    }
    false
}

/// The bytes of shared memory that a block of a kernel has.
pub(crate) fn shared_bytes(module: &Module, kernel: FuncId) -> u64 {
    let shared = module.functions[kernel].shared.values();
    let layouts = shared.filter_map(|data| module.types.layout(data.ty));
    layouts.map(|layout| layout.size).sum()
}
