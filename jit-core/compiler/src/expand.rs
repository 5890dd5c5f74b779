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
    BinaryOp, Cursor, FuncId, InstData, IntrinsicId, Meaning, Module, Processor, Scalar, Type,
    ValueList,
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
        let mut at = Cursor::new(module, function);
        while at.next_inst().is_some() {
            let Some(written) = written_operation(&at, processor) else {
                continue;
            };
            let key = (written.operation, written.scalar);
            let callee = match linked.get(&key) {
                Some(&known) => known,
                None => match link_body(at.module_mut(), &written)? {
                    Some(new) => new,
                    // The check of legality says that there is no such operation.
                    None => continue,
                },
            };
            linked.insert(key, callee);
            let mut args = ValueList::new();
            at.data().for_each_operand(|arg| args.push(arg));
            at.replace().call(callee, &args);
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

/// An operation with a body, where a walk stands.
struct WrittenOperation {
    operation: Operation,
    scalar: Scalar,
    body: fn(Scalar) -> Option<Module>,
}

fn written_operation(at: &Cursor<'_>, processor: Option<Processor>) -> Option<WrittenOperation> {
    match at.data() {
        InstData::Intrinsic { id, args } => {
            let def = at.module().intrinsics[*id];
            let Meaning::Body(body) = def.meaning else {
                return None;
            };
            let types: Vec<Type> = args.iter().map(|&arg| at.type_of(arg)).collect();
            let result = at.result().map_or(Type::UNIT, |result| at.type_of(result));
            let scalar = def.cell_type(at.types(), &types, result)?;
            let fast = at.node().fast;
            let has_cell = |processor| def.cell_of(fast, Some(scalar), processor).is_some();
            (!processor.is_some_and(has_cell)).then_some(WrittenOperation {
                operation: Operation::Row(*id),
                scalar,
                body,
            })
        }
        InstData::Binary {
            op: BinaryOp::Rem,
            args: [dividend, _],
        } => {
            let scalar = at.type_of(*dividend).as_scalar();
            let scalar = scalar.filter(|scalar| scalar.is_float())?;
            Some(WrittenOperation {
                operation: Operation::Remainder,
                scalar,
                body: remainder::body,
            })
        }
        _ => None,
    }
}

fn link_body(module: &mut Module, written: &WrittenOperation) -> Result<Option<FuncId>> {
    let Some(library) = (written.body)(written.scalar) else {
        return Ok(None);
    };
    let Some(definition) = Definition::of_library(&library) else {
        return Ok(None);
    };
    let snapshot = Snapshot::of(&definition)?;
    Ok(Some(specialize::link(module, &snapshot, &[], &[])?))
}
