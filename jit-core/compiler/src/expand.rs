//! Operations that are written in the IR become calls of their functions: intrinsics with a body, the
//! remainder of floats, atomics that no target has on their type, and what is printed. An intrinsic that is executed for each number
//! of a value becomes one for each (`expand/each.rs`).
//!
//! Hooks that rewrite the specialized module still see the operation by its name and can put
//! something else in its place; everything after sees a function like any other, so that all
//! targets compute the same bits.

mod atomic;
mod each;
mod printed;
mod remainder;

use std::collections::HashMap;

use crate::definition::{Definition, Snapshot};
use crate::error::Result;
use crate::ir::{
    BinaryOp, Cursor, FuncId, InstData, IntrinsicId, Meaning, Module, Processor, Scalar, Type,
    ValueList,
};
use crate::specialize;

/// Puts calls in the place of the operations that have a body, and an operation for each number in that of those
/// on values of several, in all functions of a specialized module and in the bodies themselves. What a processor has a
/// cell for stays.
///
/// # Errors
/// A body that cannot be a part of the module: its row is wrong.
pub fn expand(module: &mut Module, processor: Option<Processor>, kernel_tag: u64) -> Result<()> {
    let mut linked: HashMap<Written, FuncId> = HashMap::new();
    let mut done = 0;
    // Bodies are added at the end, and expanded in their turn.
    while let Some(function) = module.functions.keys().nth(done) {
        done += 1;
        let mut at = Cursor::new(module, function);
        while at.next_inst().is_some() {
            if each::expand(&mut at) {
                continue;
            }
            let Some(written) = written_operation(&at, processor) else {
                continue;
            };
            let callee = match linked.get(&written) {
                Some(&known) => known,
                None => match link_body(at.module_mut(), written)? {
                    Some(new) => new,
                    // The check of legality says that there is no such operation.
                    None => continue,
                },
            };
            linked.insert(written, callee);
            let args = match written.0 {
                Operation::Print(_) => printed::arguments(&mut at, kernel_tag),
                _ => operands(at.data()),
            };
            at.replace().call(callee, &args);
        }
    }
    Ok(())
}

fn operands(data: &InstData) -> ValueList {
    let mut operands = ValueList::new();
    data.for_each_operand(|operand| operands.push(operand));
    operands
}

/// What has a body.
#[derive(Copy, Clone, PartialEq, Eq, Hash)]
enum Operation {
    Row(IntrinsicId),
    Remainder,
    Atomic(atomic::Change),
    /// Of so many values.
    Print(u32),
}

/// An operation with a body, and the type that it is on.
type Written = (Operation, Scalar);

fn written_operation(at: &Cursor<'_>, processor: Option<Processor>) -> Option<Written> {
    match *at.data() {
        InstData::Intrinsic { id, ref args } => {
            let def = at.module().intrinsics[id];
            let Meaning::Body(_) = def.meaning else {
                return None;
            };
            let types: Vec<Type> = args.iter().map(|&arg| at.type_of(arg)).collect();
            let result = at.result().map_or(Type::UNIT, |result| at.type_of(result));
            let scalar = def.cell_type(at.types(), &types, result)?;
            let fast = at.node().fast;
            let has_cell = |processor| def.cell_of(fast, Some(scalar), processor).is_some();
            (!processor.is_some_and(has_cell)).then_some((Operation::Row(id), scalar))
        }
        InstData::Binary {
            op: BinaryOp::Rem,
            args: [dividend, _],
        } => {
            let scalar = at.type_of(dividend).as_scalar();
            let scalar = scalar.filter(|scalar| scalar.is_float())?;
            Some((Operation::Remainder, scalar))
        }
        InstData::AtomicRmw {
            op,
            ptr,
            value,
            ordering,
            scope,
        } => {
            let scalar = at.type_of(value).as_scalar();
            let native = |scalar| match processor {
                Some(processor) => op.is_native_for(scalar, processor),
                None => op.is_native_on(scalar),
            };
            let scalar = scalar.filter(|&scalar| !native(scalar))?;
            let change = atomic::Change {
                op,
                ordering,
                scope,
                space: at.types().address(at.type_of(ptr))?.space,
            };
            Some((Operation::Atomic(change), scalar))
        }
        InstData::Print { ref values, .. } => {
            let count = values.len() as u32;
            Some((Operation::Print(count), Scalar::U64))
        }
        _ => None,
    }
}

fn link_body(module: &mut Module, (operation, scalar): Written) -> Result<Option<FuncId>> {
    let library = match operation {
        Operation::Row(id) => match module.intrinsics[id].meaning {
            Meaning::Body(body) => body(scalar),
            Meaning::Pure(_) | Meaning::Position(_) | Meaning::Warp(_) | Meaning::Grid => None,
        },
        Operation::Remainder => remainder::body(scalar),
        Operation::Atomic(change) => change.body(scalar),
        Operation::Print(values) => printed::body(values),
    };
    let Some(library) = library else {
        return Ok(None);
    };
    let Some(definition) = Definition::of_library(&library) else {
        return Ok(None);
    };
    let snapshot = Snapshot::of(&definition)?;
    Ok(Some(specialize::link(module, &snapshot, &[], &[])?))
}
