//! Accesses whose index is below the slice's length, whatever the turns of loops around are.
//!
//! Asked as the constraints of [`dependence`](crate::dependence): that an execution of the access has an index that the
//! slice does not have. Where there is no such execution of the sequential program, no thread has one either, as threads
//! execute its iterations.

use kiln_jit_core::ir::{Function, Inst, InstData, Value, ValueDef};

use crate::accesses::{Access, Accesses};
use crate::affine::{Affine, Execution, Known, Step};
use crate::error::DirectiveError;
use crate::integer::{Linear, System};
use crate::program::Program;
use crate::schedule::Schedule;

/// The indexings of slices that need no check for such arguments.
pub(crate) fn proved(
    program: &Program,
    schedule: &Schedule,
    known: &[Known],
) -> Result<Vec<Inst>, DirectiveError> {
    let function = program.function();
    let mut proof = Proof {
        program,
        affine: Affine::new(function, known),
    };
    let mut proved = Vec::new();
    for access in &Accesses::of(program, schedule)?.all {
        let Some(indexing) = indexing(function, access) else {
            continue;
        };
        if !proved.contains(&indexing) && proof.holds(access).unwrap_or(false) {
            proved.push(indexing);
        }
    }
    Ok(proved)
}

/// The instruction by which an access finds its element of a parameter, if it is in the access's region, so that
/// what is around one is around the other.
fn indexing(function: &Function, access: &Access) -> Option<Inst> {
    let region = access.way.last()?.region;
    let insts = &function.regions[region].insts;
    let of_param = |&inst: &Inst| match function.insts[inst].data {
        InstData::SliceIndex { slice, .. } if slice == access.base => Some(inst),
        _ => None,
    };
    let mut at: Option<Value> = None;
    function.insts[access.inst].data.for_each_operand(|value| {
        let is_address = matches!(function.values[value].def, ValueDef::Inst(_));
        if at.is_none() && is_address && crate::affine::path_of(function, value).0 == access.base {
            at = Some(value);
        }
    });
    let mut at = at?;
    loop {
        let ValueDef::Inst(inst) = function.values[at].def else {
            return None;
        };
        if let Some(found) = of_param(&inst) {
            return insts.contains(&found).then_some(found);
        }
        at = match function.insts[inst].data {
            InstData::ElementPtr { ptr, .. } | InstData::FieldPtr { ptr, .. } => ptr,
            InstData::SpaceCast { arg } => arg,
            _ => return None,
        };
    }
}

struct Proof<'p> {
    program: &'p Program,
    affine: Affine<'p>,
}

impl Proof<'_> {
    /// Whether the slice has each element that an access uses; `None` if that is not found out.
    fn holds(&mut self, access: &Access) -> Option<bool> {
        let Some(Step::Index { index, of: Some(_) }) = access.steps.as_ref()?.first() else {
            return None;
        };
        let (form, length) = (self.affine.form(*index)?, self.affine.length(access.base)?);
        let mut system = System::default();
        let mut execution = Execution::new();
        for held in &access.loops {
            let turn = self.affine.turn(held.inst);
            execution.variable(&mut self.affine, &mut system, turn)?;
        }
        let conditions = (self.program, access);
        execution.conditions(&mut self.affine, &mut system, conditions)?;
        let index = execution.value(&mut self.affine, &mut system, &form)?;
        let mut below = system.clone();
        below.at_least.push(Linear::number(-1).plus(&index, -1)?);
        system
            .at_least
            .push(index.plus(&Linear::number(-length), 1)?);
        Some(!below.has_solution()? && !system.has_solution()?)
    }
}
