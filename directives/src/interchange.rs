//! Loops that are interchanged: of two, one directly in the other, the inner one becomes the outer one.
//!
//! What comes between them is computed before both, or where it depends on the outer counter in each iteration. Dependences
//! that would be turned round are refused by [`dependence`](crate::dependence): of an iteration on one in an earlier turn of the
//! outer loop and a later one of the inner loop (Allen and Kennedy, "Automatic loop interchange", 1984).

use std::collections::HashSet;

use kiln_jit_core::ir::{Control, Function, Inst, Module, Source, Value};

use crate::error::DirectiveError;
use crate::private::Body;
use crate::program::Program;
use crate::transform::{breaks, region_of};

/// Two loops, one directly in the other.
pub(crate) struct Pair {
    pub(crate) outer: Inst,
    pub(crate) inner: Inst,
    /// What comes between and is the same in all turns of the outer loop.
    before: Vec<Inst>,
    /// What is not.
    within: Vec<Inst>,
}

const NOT_A_PAIR: &str = "the loop holds something else than one `for` loop and what that one's bounds and indices are computed of: \
                          let the inner loop stand alone in it";

impl Pair {
    /// The loop and the one within; what is wrong with them.
    pub(crate) fn of(program: &Program, outer: Inst) -> Result<Pair, &'static str> {
        let function = program.function();
        let Control::For { index, body, .. } = function.insts[outer].data.control() else {
            return Err(NOT_A_PAIR);
        };
        let Some((&inner, between)) = function.regions[body].insts.split_last() else {
            return Err(NOT_A_PAIR);
        };
        let Control::For {
            bounds,
            body: innermost,
            ..
        } = function.insts[inner].data.control()
        else {
            return Err(NOT_A_PAIR);
        };
        if !between
            .iter()
            .all(|&inst| is_pure(&program.module, function, inst))
        {
            return Err(NOT_A_PAIR);
        }
        if breaks(function, innermost, 0) || breaks(function, body, 0) {
            return Err(
                "`break`, or the end of a loop around, is in the loops: test in each iteration whether there is something to do",
            );
        }
        let mut varying = HashSet::from([index]);
        let (mut before, mut within) = (Vec::new(), Vec::new());
        for &inst in between {
            let mut varies = false;
            let node = &function.insts[inst];
            node.data
                .for_each_operand(|value: Value| varies |= varying.contains(&value));
            match varies {
                true => {
                    varying.extend(node.result);
                    within.push(inst);
                }
                false => before.push(inst),
            }
        }
        match bounds.iter().any(|bound| varying.contains(bound)) {
            true => Err(
                "the bounds of the inner loop depend on the outer one's counter: let them be the same for all of its turns",
            ),
            false => Ok(Pair {
                outer,
                inner,
                before,
                within,
            }),
        }
    }

    /// Refuses variables that iterations of one of the loops hand on.
    pub(crate) fn check_variables(&self, program: &Program) -> Result<(), DirectiveError> {
        for inst in [self.outer, self.inner] {
            for region in program.function().insts[inst].data.regions() {
                Body::new(
                    program,
                    (inst, "which are executed in another order"),
                    region,
                )
                .check()?;
            }
        }
        Ok(())
    }

    /// Lets the inner loop be the outer one.
    pub(crate) fn write(self, function: &mut Function) {
        let bodies = [self.outer, self.inner].map(|inst| function.insts[inst].data.regions()[0]);
        let around = region_of(function, self.outer);
        let innermost = std::mem::take(&mut function.regions[bodies[1]].insts);
        function.regions[bodies[1]].insts = vec![self.outer];
        function.regions[bodies[0]].insts = [self.within, innermost].concat();
        let insts = &mut function.regions[around].insts;
        let place = insts.iter().position(|&inst| inst == self.outer);
        let place = place.expect("a loop is in its region");
        insts.splice(place..=place, self.before.into_iter().chain([self.inner]));
    }
}

/// Whether an instruction computes a value of others and does nothing else.
fn is_pure(module: &Module, function: &Function, inst: Inst) -> bool {
    let data = &function.insts[inst].data;
    let facts = data.facts(&module.intrinsics);
    let acts = facts.reads || facts.writes || facts.assumes || facts.steers || facts.meets;
    matches!(facts.source, Source::Operands)
        && facts.check.is_none()
        && !acts
        && data.var_use().is_none()
        && data.regions().is_empty()
}
