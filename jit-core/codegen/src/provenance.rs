//! Where values come from: from memory that nobody writes, or that other threads may be writing.
//!
//! A load that races with a store is undefined to LLVM: each use of what it gave may be another
//! number. An index that comes from such a load is frozen before it is compared with a length, so
//! that what is compared is what is used. Values are followed through operators, variables and
//! aggregates; what a call gives or a device function is given counts as loaded.

use std::collections::HashSet;

use kiln_ir::{
    Address, AddressSpace, Control, Function, FunctionKind, InstData, InstNode, Module, ParamData,
    Passing, Read, Source, TypeTable, Value, Var, VarUse,
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
    pub(super) fn of(module: &Module, function: &Function) -> Provenance {
        let mut known = Provenance::default();
        for param in &function.params {
            if function.kind == FunctionKind::Device {
                known.racy.insert(param.value);
            } else if is_unchanging(&module.types, function, param) {
                known.unchanging.insert(param.value);
            }
        }
        // A variable that is assigned in a loop is read before that, too.
        loop {
            let before = (known.racy.len(), known.vars.len());
            function.for_each_inst(|_, inst| known.visit(module, function, &function.insts[inst]));
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

    /// Whether the result of an operation may be one that a race left undetermined.
    fn is_racy(&self, module: &Module, function: &Function, data: &InstData) -> bool {
        let facts = data.facts(&module.intrinsics);
        let any_operand = || {
            let mut any = false;
            data.for_each_operand(|value| any |= self.may_race(value));
            any
        };
        match facts.source {
            Source::None | Source::Own | Source::Execution => false,
            Source::Operands => any_operand(),
            Source::Row(_) => facts.reads || any_operand(),
            Source::Callee => true,
            Source::Variable(var) => self.vars.contains(&var),
            Source::Memory { ptr, read } => match read {
                // One value.
                Read::Atomic => false,
                Read::Plain | Read::Volatile => {
                    let pointer = module.types.as_pointer(function.type_of(ptr));
                    let fixed = |(_, space, _)| {
                        matches!(space, AddressSpace::Constant | AddressSpace::Param)
                    };
                    !pointer.is_some_and(fixed) && !self.is_unchanging(ptr)
                }
            },
        }
    }

    fn visit(&mut self, module: &Module, function: &Function, node: &InstNode) {
        if let Some(VarUse::Set(var, value)) = node.data.var_use()
            && self.may_race(value)
        {
            self.vars.insert(var);
        }
        match node.data.control() {
            Control::For {
                index,
                bounds: [start, _, step],
                ..
            } if self.may_race(start) || self.may_race(step) => {
                self.racy.insert(index);
            }
            Control::Next
            | Control::If { .. }
            | Control::Loop { .. }
            | Control::For { .. }
            | Control::Leave { .. }
            | Control::Return { .. } => {}
        }
        let Some(result) = node.result else { return };
        if self.is_racy(module, function, &node.data) {
            self.racy.insert(result);
        }
        if node
            .data
            .same_memory()
            .is_some_and(|base| self.is_unchanging(base))
        {
            self.unchanging.insert(result);
        }
    }
}

/// Whether nobody writes to what a kernel's parameter points at: a slice or pointer that is not
/// mutable, and by which alone the launch reaches its memory.
fn is_unchanging(types: &TypeTable, function: &Function, param: &ParamData) -> bool {
    let address = types.address(function.type_of(param.value));
    address.is_some_and(|Address { space, mutable, .. }| {
        let readable = matches!(space, AddressSpace::Global | AddressSpace::Generic);
        param.passing != Passing::ByValue && readable && !mutable && param.facts.noalias
    })
}
