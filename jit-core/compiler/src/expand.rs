//! Operations that are written in the IR become calls of their functions: intrinsics with a body, and
//! the remainder of floats.
//!
//! Hooks that rewrite the specialized module still see the operation by its name and can put
//! something else in its place; everything after sees a function like any other, so that all
//! targets compute the same bits.

mod remainder;

use std::collections::HashMap;

use crate::definition::{Definition, Snapshot};
use crate::error::Result;
use crate::ir::{
    BinaryOp, FuncId, Inst, InstData, IntrinsicId, Meaning, Module, Processor, Scalar, Type,
};
use crate::specialize;

/// Puts calls in the place of the operations that have a body, in all functions of a specialized
/// module and in the bodies themselves. What a processor has a cell for stays.
///
/// # Errors
/// A body that cannot be a part of the module: its row is wrong.
pub fn expand(module: &mut Module, processor: Option<Processor>) -> Result<()> {
    let mut linked: HashMap<(Operation, Scalar), FuncId> = HashMap::new();
    let mut done = 0;
    // Bodies are added at the end, and expanded in their turn.
    while let Some(function) = module.functions.keys().nth(done) {
        done += 1;
        for place in operations_with_bodies(module, processor, function) {
            let callee = match linked.get(&(place.operation, place.scalar)) {
                Some(&known) => known,
                None => match link_body(module, &place)? {
                    Some(new) => new,
                    // The check of legality says that there is no such operation.
                    None => continue,
                },
            };
            linked.insert((place.operation, place.scalar), callee);
            call_instead(module, function, place.inst, callee);
        }
    }
    Ok(())
}

/// What has a body.
#[derive(Copy, Clone, PartialEq, Eq, Hash)]
enum Operation {
    Row(IntrinsicId),
    Remainder,
}

/// An operation in a function's body.
struct WrittenOperation {
    inst: Inst,
    operation: Operation,
    scalar: Scalar,
    body: fn(Scalar) -> Option<Module>,
}

fn operations_with_bodies(
    module: &Module,
    processor: Option<Processor>,
    function: FuncId,
) -> Vec<WrittenOperation> {
    let function = &module.functions[function];
    let place = |(inst, node): (Inst, &crate::ir::InstNode)| {
        let (id, args) = match &node.data {
            InstData::Intrinsic { id, args } => (id, args),
            InstData::Binary {
                op: BinaryOp::Rem,
                args: [dividend, _],
            } => {
                let scalar = function.type_of(*dividend).as_scalar();
                return scalar
                    .filter(|s| s.is_float())
                    .map(|scalar| WrittenOperation {
                        inst,
                        operation: Operation::Remainder,
                        scalar,
                        body: remainder::body,
                    });
            }
            _ => return None,
        };
        let def = module.intrinsics[*id];
        let Meaning::Body(body) = def.meaning else {
            return None;
        };
        let types: Vec<Type> = args.iter().map(|&a| function.type_of(a)).collect();
        let result = node.result.map_or(Type::UNIT, |r| function.type_of(r));
        let scalar = def.cell_type(&module.types, &types, result)?;
        let has_cell = |processor| def.cell(Some(scalar), processor).is_some();
        let place = WrittenOperation {
            inst,
            operation: Operation::Row(*id),
            scalar,
            body,
        };
        (!processor.is_some_and(has_cell)).then_some(place)
    };
    function.insts.iter().filter_map(place).collect()
}

fn link_body(module: &mut Module, place: &WrittenOperation) -> Result<Option<FuncId>> {
    let Some(library) = (place.body)(place.scalar) else {
        return Ok(None);
    };
    let Some(definition) = Definition::of_library(&library) else {
        return Ok(None);
    };
    let snapshot = Snapshot::of(&definition)?;
    Ok(Some(specialize::link(module, &snapshot, &[], &[])?))
}

fn call_instead(module: &mut Module, function: FuncId, inst: Inst, callee: FuncId) {
    let data = &mut module.functions[function].insts[inst].data;
    let args = match data {
        InstData::Intrinsic { args, .. } => std::mem::take(args),
        InstData::Binary { args, .. } => args.iter().copied().collect(),
        _ => return,
    };
    *data = InstData::Call {
        callee,
        type_args: Vec::new(),
        const_args: Vec::new(),
        args,
    };
}
