//! Code that the hook puts in beside an access or a loop.

use kiln_compiler::ir::{
    Constant, Function, Inst, InstData, Location, Region, RegionData, Type, Value,
};

/// Instructions that are put in, in order.
pub(super) struct Code<'f> {
    pub(super) function: &'f mut Function,
    pub(super) insts: Vec<Inst>,
    inst: Inst,
    location: Location,
}

impl<'f> Code<'f> {
    /// Of the line of an access or of a loop.
    pub(super) fn new(function: &'f mut Function, inst: Inst) -> Code<'f> {
        Code {
            location: function.insts[inst].location,
            function,
            insts: Vec::new(),
            inst,
        }
    }

    pub(super) fn into_insts(self) -> Vec<Inst> {
        self.insts
    }

    pub(super) fn effect(&mut self, data: InstData) {
        let inst = self.function.new_inst(data, Type::UNIT, self.location);
        self.insts.push(inst);
    }

    pub(super) fn value(&mut self, data: InstData, ty: Type) -> Value {
        let inst = self.function.new_inst(data, ty, self.location);
        self.insts.push(inst);
        let value = self.function.insts[inst].result;
        value.expect("the operation has a result, of a type that is not unit")
    }

    /// A constant of an integer type.
    pub(super) fn constant(&mut self, known: i64, ty: Type) -> Value {
        self.value(InstData::Const(Constant::Int(known.into())), ty)
    }

    pub(super) fn region(&mut self, insts: Vec<Inst>) -> Region {
        self.function.regions.push(RegionData { insts })
    }

    /// The index of the access.
    pub(super) fn index(&self) -> Value {
        let access = self.function.insts[self.inst].data.access();
        access.expect("the instruction selects an element").0.index
    }

    /// Has the access select the element of an index that is in bounds.
    pub(super) fn select(&mut self, to: Value) {
        self.select_at(self.inst, to);
    }

    /// Has another access select the element of an index that is in bounds.
    pub(super) fn select_at(&mut self, access: Inst, to: Value) {
        if let InstData::SliceIndex { index, checked, .. }
        | InstData::ElementPtr { index, checked, .. } = &mut self.function.insts[access].data
        {
            (*index, *checked) = (to, false);
        }
    }
}
