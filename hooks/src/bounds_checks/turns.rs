//! A loop as it is looked at from before it, or from further ahead: from before a loop around it, or the kernel's
//! start.
//!
//! What a variable is before the loop's first turn is read there, if nothing else is between. From further ahead it is
//! what the one assignment beside the loop gives it, computed anew.

use kiln_compiler::ir::{Function, Inst, Region, Value, Var, VarUse};

use super::before::{Before, Inside};

/// A loop, and from where it is looked at.
pub(super) struct Turns {
    pub(super) inst: Inst,
    pub(super) inside: Inside,
    /// The region that it stands in, if it is looked at from before more than itself.
    around: Option<Region>,
}

impl Turns {
    /// Of the loop that is asked about.
    pub(super) fn of(function: &Function, the_loop: Inst) -> Turns {
        Turns {
            inst: the_loop,
            inside: Inside::of(function, the_loop),
            around: None,
        }
    }

    /// Of a loop in what is asked about.
    pub(super) fn within(function: &Function, (around, the_loop): (Region, Inst)) -> Turns {
        Turns {
            around: Some(around),
            ..Turns::of(function, the_loop)
        }
    }

    /// What is done in a turn; `None` if there are several regions.
    pub(super) fn body(&self, function: &Function) -> Option<Region> {
        let [body] = function.insts[self.inst].data.regions()[..] else {
            return None;
        };
        Some(body)
    }

    /// What a variable is before the first turn, if that is known where it is asked and, where it matters, the same for
    /// all threads.
    pub(super) fn first(&self, before: &mut Before<'_>, var: Var) -> Option<Value> {
        match self.around {
            None => before.variable(var),
            Some(around) => {
                let given = self.given(before, around, var)?;
                before.moved(given)
            }
        }
    }

    /// What a variable is given beside the loop, if nothing else than that and the loop's turns assigns it.
    fn given(&self, before: &Before<'_>, around: Region, var: Var) -> Option<Value> {
        let function = &*before.function;
        let insts = &function.regions[around].insts;
        let loop_at = insts.iter().position(|&inst| inst == self.inst)?;
        let assigned = |&inst: &Inst| match function.insts[inst].data.var_use() {
            Some(VarUse::Set(set, value)) if set == var => Some(value),
            _ => None,
        };
        let once_more = self.inside.assignments(var) + 1;
        let given = insts[..loop_at].iter().find_map(assigned);
        given.filter(|_| before.inside.assignments(var) == once_more)
    }
}
