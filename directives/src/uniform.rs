//! What is the same for all threads of a block, in a program under a schedule.

use std::collections::HashSet;

use kiln_jit_core::ir::{
    Control, Effects, Function, Inst, InstData, Read, Region, Source, Value, ValueDef, Var, VarUse,
};

use crate::program::Program;
use crate::schedule::Schedule;

/// The values of a program that threads of a block may have different, and what they meet in.
#[derive(Debug)]
pub(crate) struct Uniform {
    varying: HashSet<Value>,
    varying_vars: HashSet<Var>,
    /// Instructions that are barriers, or hold one.
    meeting: HashSet<Inst>,
    /// Parameters whose memory the program writes.
    written: HashSet<Value>,
    changed: bool,
}

/// The value that an address was made from: a parameter, memory of the thread's own, or what was loaded.
pub(crate) fn base_of(function: &Function, address: Value) -> Value {
    let ValueDef::Inst(inst) = function.values[address].def else {
        return address;
    };
    match function.insts[inst].data {
        InstData::SliceIndex { slice: from, .. }
        | InstData::SlicePtr { slice: from }
        | InstData::ElementPtr { ptr: from, .. }
        | InstData::FieldPtr { ptr: from, .. }
        | InstData::PtrOffset { ptr: from, .. }
        | InstData::SliceNew { ptr: from, .. }
        | InstData::SpaceCast { arg: from } => base_of(function, from),
        _ => address,
    }
}

/// What a program writes: parameters, and others that addresses are made from.
pub(crate) fn written(program: &Program) -> HashSet<Value> {
    let (module, function) = (&program.module, program.function());
    let mut written = HashSet::new();
    function.for_each_inst(|_, inst| {
        let data = &function.insts[inst].data;
        if !data.facts(&module.intrinsics).writes {
            return;
        }
        data.for_each_operand(|value| {
            if module.types.has_references(function.type_of(value)) {
                written.insert(base_of(function, value));
            }
        });
    });
    written
}

impl Uniform {
    /// What differs between threads of a block: `apart`, and what comes of the program's loops and memory.
    pub(crate) fn of(program: &Program, schedule: &Schedule, apart: &[Value]) -> Uniform {
        let function = program.function();
        let mut uniform = Uniform {
            varying: apart.iter().copied().collect(),
            varying_vars: HashSet::new(),
            meeting: HashSet::new(),
            written: written(program),
            changed: true,
        };
        uniform.find_meeting(function, function.body);
        while std::mem::take(&mut uniform.changed) {
            uniform.visit(program, schedule, function.body, false);
        }
        uniform
    }

    /// Whether threads of a block may have a value different.
    pub(crate) fn is_varying(&self, value: Value) -> bool {
        self.varying.contains(&value)
    }

    /// Whether an instruction is a barrier or holds one.
    pub(crate) fn meets(&self, inst: Inst) -> bool {
        self.meeting.contains(&inst)
    }

    /// Whether an address is of a parameter's memory that the program does not write.
    pub(crate) fn is_of_what_stays(&self, function: &Function, address: Value) -> bool {
        let base = base_of(function, address);
        let is_param = matches!(function.values[base].def, ValueDef::Param(_));
        is_param && !self.written.contains(&base)
    }

    fn find_meeting(&mut self, function: &Function, region: Region) -> bool {
        let mut any = false;
        for &inst in &function.regions[region].insts {
            let data = &function.insts[inst].data;
            let mut meets = data.is_barrier();
            for inner in data.regions() {
                meets |= self.find_meeting(function, inner);
            }
            if meets {
                self.meeting.insert(inst);
            }
            any |= meets;
        }
        any
    }

    fn vary(&mut self, value: Option<Value>) {
        if let Some(value) = value {
            self.changed |= self.varying.insert(value);
        }
    }

    fn visit(&mut self, program: &Program, schedule: &Schedule, region: Region, apart: bool) {
        let function = program.function();
        for &inst in &function.regions[region].insts {
            let node = &function.insts[inst];
            let differs = self.differs(program, inst);
            if differs {
                self.vary(node.result);
            }
            if let Some(VarUse::Set(var, _)) = node.data.var_use()
                && (differs || apart)
            {
                self.changed |= self.varying_vars.insert(var);
            }
            let parts = match node.data.control() {
                Control::If { cond, .. } => {
                    self.is_varying(cond) || program.singular.contains_key(&inst)
                }
                // Its threads may leave it in different turns.
                Control::Loop { .. } => true,
                Control::For { index, body, .. } => {
                    let number = program.number_of(inst);
                    let over_threads = number.is_some_and(|number| {
                        let held = schedule.loops.get(number);
                        held.is_some_and(|held| held.partition.over_threads.is_some())
                    });
                    if over_threads || differs {
                        self.vary(Some(index));
                    }
                    over_threads || differs || leaves(function, body)
                }
                Control::Next | Control::Leave { .. } | Control::Return { .. } => false,
            };
            let apart = apart || parts;
            for inner in node.data.regions() {
                self.visit(program, schedule, inner, apart);
            }
        }
    }

    /// Whether what an instruction gives, assigns or repeats may differ.
    fn differs(&self, program: &Program, inst: Inst) -> bool {
        let function = program.function();
        let data = &function.insts[inst].data;
        let mut of_operands = false;
        data.for_each_operand(|value| of_operands |= self.is_varying(value));
        match data.facts(&program.module.intrinsics).source {
            Source::None | Source::Operands => of_operands,
            Source::Variable(var) => self.varying_vars.contains(&var),
            Source::Memory { ptr, read } => {
                of_operands || read != Read::Plain || !self.is_of_what_stays(function, ptr)
            }
            Source::Row(row) => of_operands || row.effects != Effects::None,
            Source::Own | Source::Execution | Source::Callee => true,
        }
    }
}

/// Whether control leaves a loop from within its body.
pub(crate) fn leaves(function: &Function, body: Region) -> bool {
    let mut found = false;
    function.walk(body, &mut |_, inst| {
        found |= function.insts[inst].data.is_terminator()
    });
    found
}
