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

/// What decides which operations stay as they are.
#[derive(Copy, Clone)]
pub struct Machine {
    /// What code is made for.
    pub processor: Processor,
    /// The machine whose cells stand for rows that mean a function, too.
    pub cells: Option<Processor>,
}

/// Puts calls in the place of the operations that have a body, and an operation for each number in that of those
/// on values of several, in all functions of a specialized module and in the bodies themselves. What the machine has a
/// cell for stays.
///
/// # Errors
/// A body that cannot be a part of the module: its row is wrong.
pub fn expand(module: &mut Module, machine: Machine, kernel_tag: u64) -> Result<()> {
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
            let Some(written) = written_operation(&at, machine) else {
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

fn written_operation(at: &Cursor<'_>, machine: Machine) -> Option<Written> {
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
            (!machine.cells.is_some_and(has_cell)).then_some((Operation::Row(id), scalar))
        }
        InstData::Binary {
            op: BinaryOp::Rem,
            args: [dividend, _],
        } => {
            let scalar = at.type_of(dividend).as_scalar();
            let scalar = scalar.filter(|scalar| scalar.is_float())?;
            Some((Operation::Remainder, scalar))
        }
        InstData::AtomicRmw { .. } | InstData::AtomicCas { .. } => written_atomic(at, machine),
        InstData::Print { ref values, .. } => {
            let count = values.len() as u32;
            Some((Operation::Print(count), Scalar::U64))
        }
        _ => None,
    }
}

fn written_atomic(at: &Cursor<'_>, machine: Machine) -> Option<Written> {
    let (step, ptr, value, order) = match *at.data() {
        InstData::AtomicRmw {
            op,
            ptr,
            value,
            ordering,
            scope,
        } => (atomic::Step::Modify(op), ptr, value, (ordering, scope)),
        InstData::AtomicCas {
            ptr,
            new,
            ordering,
            scope,
            ..
        } => (atomic::Step::Swap, ptr, new, (ordering, scope)),
        _ => return None,
    };
    let scalar = at.type_of(value).as_scalar()?;
    let is_native = match (step, machine.cells) {
        (atomic::Step::Modify(op), Some(processor)) => op.is_native_for(scalar, processor),
        (atomic::Step::Modify(op), None) => op.is_native_on(scalar),
        (atomic::Step::Swap, _) => machine.processor.swaps(scalar),
    };
    let change = atomic::Change {
        step,
        order,
        space: at.types().address(at.type_of(ptr))?.space,
        in_word: scalar.is_int() && !machine.processor.swaps(scalar),
    };
    (!is_native).then_some((Operation::Atomic(change), scalar))
}

fn link_body(module: &mut Module, (operation, scalar): Written) -> Result<Option<FuncId>> {
    let library = match operation {
        Operation::Row(id) => match module.intrinsics[id].meaning {
            Meaning::Body(body) => body(scalar),
            Meaning::Pure(_)
            | Meaning::Position(_)
            | Meaning::Warp(_)
            | Meaning::Grid
            | Meaning::NamedBarrier { .. } => None,
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
