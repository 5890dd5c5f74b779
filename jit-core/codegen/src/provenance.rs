//! Where values come from: from memory that nobody writes, or that other threads may be writing.
//!
//! A load that races with a store is undefined to LLVM: each use of what it gave may be another
//! number. An index that comes from such a load is frozen before it is compared with a length, so
//! that what is compared is what is used. Values are followed through operators, variables and
//! aggregates; what a call gives or a device function is given counts as loaded.

use std::collections::HashSet;

use kiln_ir::{
    AddressSpace, Function, FunctionKind, InstData, InstNode, ParamData, Passing, TypeData,
    TypeTable, Value, Var,
};

/// What is known of a function's values.
#[derive(Debug, Default)]
pub(super) struct Provenance {
    /// Pointers and slices into memory that nobody writes while the kernel runs.
    unchanging: HashSet<Value>,
    /// Values that depend on a load which another thread's store may race with.
    racy: HashSet<Value>,
    vars: HashSet<Var>,
}

impl Provenance {
    /// Looks at all of a function.
    pub(super) fn of(types: &TypeTable, function: &Function) -> Provenance {
        let mut known = Provenance::default();
        for param in &function.params {
            if function.kind == FunctionKind::Device {
                known.racy.insert(param.value);
            } else if is_unchanging(types, function, param) {
                known.unchanging.insert(param.value);
            }
        }
        // A variable that is assigned in a loop is read before that, too.
        loop {
            let before = (known.racy.len(), known.vars.len());
            function.for_each_inst(|_, inst| known.visit(types, function, &function.insts[inst]));
            if (known.racy.len(), known.vars.len()) == before {
                return known;
            }
        }
    }

    /// Whether nobody writes what is at an address, while the kernel runs.
    pub(super) fn is_unchanging(&self, address: Value) -> bool {
        self.unchanging.contains(&address)
    }

    /// Whether a value may be one that a race left undetermined.
    pub(super) fn may_race(&self, value: Value) -> bool {
        self.racy.contains(&value)
    }

    fn visit(&mut self, types: &TypeTable, function: &Function, node: &InstNode) {
        let racy = match &node.data {
            InstData::Load { ptr, .. } => {
                let space = types.as_pointer(function.type_of(*ptr)).map(|(_, s, _)| s);
                let fixed = matches!(space, Some(AddressSpace::Constant | AddressSpace::Param));
                !fixed && !self.is_unchanging(*ptr)
            }
            InstData::Call { .. } => true,
            // What is read atomically is one value.
            InstData::AtomicLoad { .. }
            | InstData::AtomicRmw { .. }
            | InstData::AtomicCas { .. } => false,
            InstData::VarGet(var) => self.vars.contains(var),
            InstData::VarSet(var, value) => {
                if self.may_race(*value) {
                    self.vars.insert(*var);
                }
                false
            }
            InstData::For {
                index, start, step, ..
            } => {
                if self.may_race(*start) || self.may_race(*step) {
                    self.racy.insert(*index);
                }
                false
            }
            data => {
                let mut any = false;
                data.for_each_operand(|value| any |= self.may_race(value));
                any
            }
        };
        let Some(result) = node.result else { return };
        if racy {
            self.racy.insert(result);
        }
        if address_base(&node.data).is_some_and(|base| self.is_unchanging(base)) {
            self.unchanging.insert(result);
        }
    }
}

/// Whether nobody writes to what a kernel's parameter points at: a slice or pointer that is not
/// mutable, and by which alone the launch reaches its memory.
fn is_unchanging(types: &TypeTable, function: &Function, param: &ParamData) -> bool {
    match *types.data(function.type_of(param.value)) {
        TypeData::Pointer { space, mutable, .. } | TypeData::Slice { space, mutable, .. } => {
            let readable = matches!(space, AddressSpace::Global | AddressSpace::Generic);
            param.passing != Passing::ByValue && readable && !mutable && param.facts.noalias
        }
        _ => false,
    }
}

/// What an address was computed from, directly.
fn address_base(data: &InstData) -> Option<Value> {
    match *data {
        InstData::SlicePtr { slice } | InstData::SliceIndex { slice, .. } => Some(slice),
        InstData::PtrOffset { ptr, .. }
        | InstData::FieldPtr { ptr, .. }
        | InstData::ElementPtr { ptr, .. } => Some(ptr),
        InstData::SpaceCast { arg } => Some(arg),
        _ => None,
    }
}
