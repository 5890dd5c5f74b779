//! Where values come from: from memory that nobody writes, or that other threads may be writing.
//!
//! A load that races with a store is undefined to LLVM: each use of what it gave may be another
//! number. An index that comes from such a load is frozen before it is compared with a length, so
//! that what is compared is what is used. Values are followed through operators, variables and
//! aggregates; what a call gives or a device function is given counts as loaded.
//!
//! Where a test stands for the checks of accesses that make none, as before a loop, what was loaded is frozen as
//! soon as it is there: the test, the loop's end and the index are then of one number.

use std::collections::{HashMap, HashSet};

use kiln_ir::{
    Address, AddressSpace, Control, Function, FunctionKind, InstData, InstNode, Module, ParamData,
    Passing, Read, Region, Source, TypeTable, Value, ValueDef, Var, VarUse,
};

/// What is known of a function's values.
#[derive(Debug, Default)]
pub(super) struct Provenance {
    /// Pointers and slices into memory that nobody writes while the kernel runs.
    unchanging: HashSet<Value>,
    /// Values that depend on a load which another thread's store may race with.
    racy: HashSet<Value>,
    vars: HashSet<Var>,
    /// Values that race themselves, which both a test and what it stands for are made of.
    relied_on: HashSet<Value>,
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
                break;
            }
        }
        if !known.racy.is_empty() {
            known.rely(module, function);
        }
        known
    }

    /// Whether nobody writes what is at an address, while the kernel runs.
    pub(super) fn is_unchanging(&self, address: Value) -> bool {
        self.unchanging.contains(&address)
    }

    /// Whether a value may be one that a race left undetermined.
    pub(super) fn may_race(&self, value: Value) -> bool {
        self.racy.contains(&value)
    }

    /// Whether a value is to be frozen where it is defined: it may race, and a test of it stands for checks.
    pub(super) fn is_relied_on(&self, value: Value) -> bool {
        self.relied_on.contains(&value)
    }

    /// Finds what is relied on.
    fn rely(&mut self, module: &Module, function: &Function) {
        let mut uses = Uses::default();
        if !uses.region(function, function.body) {
            return;
        }
        let (unchecked, vars) = made_of(module, function, uses.unchecked);
        // What is known of one of several values may be what the choice between them says.
        let chosen = |var: &Var| uses.choices.get(var).into_iter().flatten();
        let mut tested = uses.tested;
        tested.extend(vars.iter().flat_map(chosen));
        for node in function.insts.values() {
            if let InstData::Select { cond, .. } = node.data
                && node
                    .result
                    .is_some_and(|result| unchecked.contains(&result))
            {
                tested.insert(cond);
            }
        }
        let (tested, _) = made_of(module, function, tested);
        let races = |value: &Value| {
            let comes_from_elsewhere = match function.values[*value].def {
                ValueDef::Param(_) => true,
                ValueDef::Index(_) => false,
                ValueDef::Inst(inst) => {
                    let facts = function.insts[inst].data.facts(&module.intrinsics);
                    !matches!(facts.source, Source::Operands | Source::Variable(_))
                }
            };
            self.may_race(*value) && comes_from_elsewhere
        };
        let both = tested.intersection(&unchecked).copied();
        self.relied_on = both.filter(races).collect();
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

/// What decides the indices of a function, and what is asked of them.
#[derive(Default)]
struct Uses {
    /// Indices that are not checked, and what decides how often and whether it comes to them.
    unchecked: HashSet<Value>,
    /// Indices that are checked, and the conditions around those that are not.
    tested: HashSet<Value>,
    /// The conditions under which variables are assigned.
    choices: HashMap<Var, HashSet<Value>>,
    /// The conditions around what is looked at.
    around: Vec<Value>,
}

impl Uses {
    /// Looks at a region; says whether an access in it is not checked.
    fn region(&mut self, function: &Function, region: Region) -> bool {
        let mut any = false;
        for &inst in &function.regions[region].insts {
            let data = &function.insts[inst].data;
            match data.access() {
                Some((check, true)) => self.tested.extend([check.index]),
                Some((check, false)) => {
                    self.unchecked.insert(check.index);
                    any = true;
                }
                None => {}
            }
            if let Some(assumed) = data.assumption() {
                // What follows may not be checked for it.
                self.tested.insert(assumed.cond);
                self.unchecked.insert(assumed.cond);
            }
            if let Some(VarUse::Set(var, _)) = data.var_use() {
                let choices = self.choices.entry(var).or_default();
                choices.extend(self.around.iter().copied());
            }
            let known = self.around.len();
            if let Control::If { cond, .. } = data.control() {
                self.around.push(cond);
            }
            let mut inside = false;
            for region in data.regions() {
                inside |= self.region(function, region);
            }
            self.around.truncate(known);
            if inside {
                self.around(function, data.control());
            }
            any |= inside;
        }
        any
    }

    /// Notes what decides whether, and how often, accesses are made that are not checked.
    fn around(&mut self, function: &Function, control: Control) {
        match control {
            // The checks of a run are made before it, as its conditions are.
            Control::If { cond, .. } => {
                self.tested.insert(cond);
                self.unchecked.insert(cond);
            }
            Control::For { bounds, .. } => self.unchecked.extend(bounds),
            // It ends by what is in it.
            Control::Loop { body } => {
                for &inst in &function.regions[body].insts {
                    if let Control::If { cond, .. } = function.insts[inst].data.control() {
                        self.unchecked.insert(cond);
                    }
                }
            }
            Control::Next | Control::Leave { .. } | Control::Return { .. } => {}
        }
    }
}

/// All values that some are made of, by operators, by way of variables and of loops; and these variables.
fn made_of(
    module: &Module,
    function: &Function,
    some: HashSet<Value>,
) -> (HashSet<Value>, HashSet<Var>) {
    let (mut values, mut vars) = (some, HashSet::new());
    let mut insts = Vec::new();
    function.for_each_inst(|_, inst| insts.push(inst));
    loop {
        let before = (values.len(), vars.len());
        for &inst in insts.iter().rev() {
            let node = &function.insts[inst];
            if let Some(VarUse::Set(var, value)) = node.data.var_use()
                && vars.contains(&var)
            {
                values.insert(value);
            }
            if let Control::For { index, bounds, .. } = node.data.control()
                && values.contains(&index)
            {
                values.extend(bounds);
            }
            if !node.result.is_some_and(|result| values.contains(&result)) {
                continue;
            }
            match node.data.facts(&module.intrinsics).source {
                Source::Operands | Source::Row(_) => {
                    node.data.for_each_operand(|value| values.extend([value]));
                }
                Source::Variable(var) => vars.extend([var]),
                Source::None
                | Source::Memory { .. }
                | Source::Own
                | Source::Execution
                | Source::Callee => {}
            }
        }
        if (values.len(), vars.len()) == before {
            return (values, vars);
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
