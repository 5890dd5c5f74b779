//! Variables and memory of the thread's own: what one iteration of a distributed loop leaves in them, no other may
//! find there.

use std::collections::HashSet;

use kiln_jit_core::ir::{Control, Inst, InstData, Region, Value, Var, VarUse};

use crate::accesses::is_local;
use crate::error::DirectiveError;
use crate::program::Program;
use crate::schedule::{LoopSchedule, Schedule};
use crate::uniform::base_of;

/// Refuses variables that iterations hand on.
pub(crate) fn check(program: &Program, schedule: &Schedule) -> Result<(), DirectiveError> {
    let function = program.function();
    let mut apart = Vec::new();
    function.for_each_inst(|_, inst| {
        let number = program.number_of(inst);
        let held = number.map_or_else(LoopSchedule::default, |number| schedule.loops[number]);
        if held.partition.is_some() || program.singular.contains_key(&inst) {
            apart.push((inst, "which different threads execute"));
        } else if held.jammed() > 1 {
            apart.push((inst, "which are executed side by side"));
        }
    });
    for (inst, how) in apart {
        let number = program.number_of(inst);
        let has_running = number.is_some_and(|number| schedule.loops[number].scan);
        for region in function.insts[inst].data.regions() {
            let body = Body::new(program, (inst, how), region);
            match has_running {
                true => body.check_arrays()?,
                false => body.check()?,
            }
        }
    }
    Ok(())
}

/// What is executed by some threads only, or by each thread in iterations of its own.
pub(crate) struct Body<'p> {
    program: &'p Program,
    holder: Inst,
    /// How iterations of the holder are executed.
    apart: &'static str,
    region: Region,
    inside: HashSet<Inst>,
}

impl<'p> Body<'p> {
    /// A region of what is executed apart, and how.
    pub(crate) fn new(
        program: &'p Program,
        (holder, apart): (Inst, &'static str),
        region: Region,
    ) -> Body<'p> {
        let mut inside = HashSet::new();
        program.function().walk(region, &mut |_, inst| {
            inside.insert(inst);
        });
        Body {
            program,
            holder,
            apart,
            region,
            inside,
        }
    }

    /// Refuses what it hands on.
    pub(crate) fn check(&self) -> Result<(), DirectiveError> {
        self.check_arrays()?;
        match self.carried().first() {
            Some(&(var, inst)) => {
                let name = &self.program.function().vars[var].name;
                Err(self.carries(inst, format!("`{name}`")))
            }
            None => Ok(()),
        }
    }

    /// Refuses arrays that it hands on.
    pub(crate) fn check_arrays(&self) -> Result<(), DirectiveError> {
        let function = self.program.function();
        let mut stored: Vec<(Value, Inst)> = Vec::new();
        function.walk(self.region, &mut |_, inst| {
            let data = &function.insts[inst].data;
            if let InstData::Store { ptr, .. } = data {
                let base = base_of(function, *ptr);
                if is_local(function, base) {
                    stored.push((base, inst));
                }
            }
        });
        for (base, inst) in stored {
            let is_inside = match function.values[base].def {
                kiln_jit_core::ir::ValueDef::Inst(made) => self.inside.contains(&made),
                _ => true,
            };
            if !is_inside {
                return Err(self.carries(inst, "an array".to_owned()));
            }
        }
        Ok(())
    }

    /// The variables that it hands on, each with the first statement that assigns it.
    pub(crate) fn carried(&self) -> Vec<(Var, Inst)> {
        let function = self.program.function();
        let mut written: Vec<(Var, Inst)> = Vec::new();
        function.walk(self.region, &mut |_, inst| {
            let data = &function.insts[inst].data;
            match data.var_use() {
                Some(VarUse::Set(var, _)) if written.iter().all(|(known, _)| *known != var) => {
                    written.push((var, inst))
                }
                _ => {}
            }
        });
        written.retain(|&(var, _)| {
            let mut handed_on = false;
            function.for_each_inst(|_, user| {
                let reads = function.insts[user].data.var_use() == Some(VarUse::Get(var));
                handed_on |= reads && !self.inside.contains(&user);
            });
            handed_on |= self.assigned(self.region, var, false).is_none();
            handed_on
        });
        written
    }

    /// Whether a variable is assigned behind a region, if it is or is not before; `None` if it may be read before it
    /// is assigned.
    fn assigned(&self, region: Region, var: Var, before: bool) -> Option<bool> {
        let function = self.program.function();
        let mut assigned = before;
        for &inst in &function.regions[region].insts {
            let data = &function.insts[inst].data;
            match data.var_use() {
                Some(VarUse::Get(read)) if read == var && !assigned => return None,
                Some(VarUse::Set(set, _)) if set == var => assigned = true,
                _ => {}
            }
            match data.control() {
                Control::If {
                    then_region,
                    else_region,
                    ..
                } => {
                    let then = self.assigned(then_region, var, assigned)?;
                    let otherwise = match else_region {
                        Some(region) => self.assigned(region, var, assigned)?,
                        None => assigned,
                    };
                    assigned = then && otherwise;
                }
                Control::Loop { body } | Control::For { body, .. } => {
                    self.assigned(body, var, assigned)?;
                }
                // What comes behind is not executed.
                Control::Leave { .. } | Control::Return { .. } => return Some(true),
                Control::Next => {}
            }
        }
        Some(assigned)
    }

    fn carries(&self, inst: Inst, name: String) -> DirectiveError {
        let function = self.program.function();
        DirectiveError::Carried {
            place: self.program.place(function.insts[inst].location),
            holder: self.program.place(function.insts[self.holder].location),
            name,
            apart: self.apart,
        }
    }
}
