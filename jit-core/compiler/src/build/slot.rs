//! Slots: variables that have their type from what is assigned to them, in branches that are described
//! one after the other.

use crate::ir::{Inst, InstData, Location, Region, Type, Var as IrVar};

use super::{KernelBuilder, OpenRegion, State, Val, Var};

/// A variable that has its type from what is assigned to it.
#[derive(Default)]
pub(super) struct Slot {
    var: Option<IrVar>,
    /// Whether the variable's type was declared, and so is not open.
    declared: bool,
    /// Where the variable is assigned.
    assigned: Vec<(Region, Inst, Location)>,
}

impl KernelBuilder {
    /// A new variable whose type is not known yet, by number.
    pub(crate) fn new_slot(&self) -> usize {
        let slots = &mut self.state.borrow_mut().slots;
        slots.push(Slot::default());
        slots.len() - 1
    }

    /// A new variable of a type that was declared, by number.
    pub(crate) fn declared_slot(&self, ty: Type) -> usize {
        let slot = self.new_slot();
        self.fill_slot(slot, ty);
        self.state.borrow_mut().slots[slot].declared = true;
        slot
    }

    /// The variable of a slot, once it has a type.
    pub(crate) fn slot(&self, slot: usize) -> Option<Var<'_>> {
        let state = self.state.borrow();
        let var = state.slots.get(slot)?.var?;
        let ty = state.function.vars[var].ty;
        Some(Var {
            builder: self,
            var,
            ty,
        })
    }

    /// Whether the type of a slot is what was declared.
    pub(crate) fn is_declared(&self, slot: usize) -> bool {
        self.state.borrow().slots[slot].declared
    }

    /// Gives a slot its type.
    pub(crate) fn fill_slot(&self, slot: usize, ty: Type) {
        let var = self.uninit_var("value", ty);
        if let Some(slot) = self.state.borrow_mut().slots.get_mut(slot) {
            slot.var = Some(var.var);
        }
    }

    /// Assigns a slot that has its type.
    #[track_caller]
    pub(crate) fn assign_slot<'k>(&'k self, slot: usize, value: Val<'k>) {
        let Some(var) = self.slot(slot) else {
            return;
        };
        let (at, region) = (self.here(), self.state.borrow().here());
        var.set(value);
        let mut state = self.state.borrow_mut();
        let last = state.function.regions[region].insts.last().copied();
        if let Some(inst) = last {
            state.slots[slot].assigned.push((region, inst, at));
        }
    }

    /// Gives a slot another type, to which `convert` brings what has been assigned so far. Nothing has
    /// read it yet.
    pub(crate) fn weaken_slot<'k>(
        &'k self,
        slot: usize,
        ty: Type,
        convert: impl Fn(Val<'k>) -> Val<'k>,
    ) {
        let Some(var) = self.slot(slot) else {
            return;
        };
        let assigned = self.state.borrow().slots[slot].assigned.clone();
        self.state.borrow_mut().function.vars[var.var].ty = ty;
        for (region, inst, at) in assigned {
            self.at_location(at, || self.convert_assigned(region, inst, &convert));
        }
    }

    /// Converts what an assignment of a region assigns, in front of it.
    fn convert_assigned<'k>(
        &'k self,
        region: Region,
        inst: Inst,
        convert: impl Fn(Val<'k>) -> Val<'k>,
    ) {
        let Some((id, after)) = self.state.borrow_mut().reopen(region, inst) else {
            return;
        };
        let value = Val {
            builder: self,
            id,
            ty: self.state.borrow().function.type_of(id),
        };
        let converted = convert(value);
        let mut state = self.state.borrow_mut();
        if let InstData::VarSet(_, value) = &mut state.function.insts[inst].data {
            *value = converted.id;
        }
        state.open.pop();
        state.function.regions[region].insts.extend(after);
    }
}

impl State {
    /// Opens a region again as it was before an assignment, in the scope of the value assigned, and
    /// returns that and the instructions taken out.
    fn reopen(&mut self, region: Region, inst: Inst) -> Option<(crate::ir::Value, Vec<Inst>)> {
        use crate::ir::Entity;
        let InstData::VarSet(_, value) = self.function.insts[inst].data else {
            return None;
        };
        let insts = &mut self.function.regions[region].insts;
        let at = insts.iter().position(|i| *i == inst)?;
        let after = insts.split_off(at);
        self.open.push(OpenRegion {
            region,
            scope: self.scopes[value.index()],
            is_loop: false,
        });
        Some((value, after))
    }
}
