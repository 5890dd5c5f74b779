//! What both sides of a barrier compute, each under conditions of its own.
//!
//! ```text
//! if row < rows { tile[row][t] = x[at + row * side] }      // sixteen times
//! barrier
//! if row < rows { x[at + row * side] = tile[row][t] }      // sixteen times
//! ```
//!
//! No condition's branch is on all ways to the other, so LLVM's passes compute an element's place in both. Its code generator
//! computes what is cheap before the branch, whether it is taken or not, and then has each place twice and keeps the first one: sixteen
//! registers through the kernel, and too few for the loads. So behind the barrier the places begin with a number of which it
//! does not see where it comes from.

use std::collections::HashMap;

use inkwell::context::Context;
use inkwell::types::AnyTypeEnum;
use inkwell::values::{
    BasicValue as _, BasicValueEnum, FunctionValue, InstructionOpcode, InstructionValue, Operand,
};

use kiln_ir::Effects;

use super::super::inline_ptx::InlinePtx;
use super::super::nvptx::{HIDDEN_ADDRESS, HIDDEN_WORD};
use super::{barriers, is_cheap, result_of};
use crate::llvm::ask::value_of;
use crate::llvm::error::BackendError;
use crate::llvm::flow::{Flow, Place};

/// An address takes two registers.
const WIDTH: usize = 2;

/// An operation on what is numbered or is something of its own.
type Key<'ctx> = (InstructionOpcode, Vec<Part<'ctx>>);

#[derive(Copy, Clone, PartialEq, Eq, Hash)]
enum Part<'ctx> {
    Numbered(usize),
    Own(BasicValueEnum<'ctx>),
}

/// An addition behind a barrier, and which of its operands is from before it.
type Addition<'ctx> = (InstructionValue<'ctx>, u32);

/// Has what is computed on both sides of a barrier stay apart, where that frees as many registers as it has to be worth.
pub(super) fn keep<'ctx>(
    context: &'ctx Context,
    (function, flow): (FunctionValue<'ctx>, &Flow<'ctx>),
    worth: u32,
) -> Result<(), BackendError> {
    for ((barrier, from), additions) in twins(function, flow) {
        if WIDTH * additions.len() < worth as usize {
            continue;
        }
        let next = flow.blocks[barrier.block]
            .get_instructions()
            .nth(barrier.at + 1);
        let (Some(next), Some(number)) = (next, result_of(from)) else {
            continue;
        };
        let builder = context.create_builder();
        builder.position_before(&next);
        let (template, constraints) = match width(from) {
            Some(64) => HIDDEN_ADDRESS,
            _ => HIDDEN_WORD,
        };
        let ptx = InlinePtx {
            template,
            constraints,
            effects: Effects::None,
        };
        let call = ptx.call(context, &builder, Some(number.get_type()), &[number])?;
        let hidden = value_of(call, "a hidden number")?;
        for (addition, operand) in additions {
            addition.set_operand(operand, hidden);
        }
    }
    Ok(())
}

/// The additions behind a barrier that another barrier, or none, is before elsewhere, by the barrier and what they add to;
/// in order.
fn twins<'ctx>(
    function: FunctionValue<'ctx>,
    flow: &Flow<'ctx>,
) -> Vec<((Place, InstructionValue<'ctx>), Vec<Addition<'ctx>>)> {
    let barriers = barriers(function, flow);
    let last_above = flow.last_above(&barriers);
    let mut numbers: HashMap<Key<'ctx>, (usize, Option<Place>)> = HashMap::new();
    let mut numbered: HashMap<InstructionValue<'ctx>, usize> = HashMap::new();
    let mut found: Vec<((Place, InstructionValue<'ctx>), Vec<Addition<'ctx>>)> = Vec::new();
    for (n, &block) in flow.blocks.iter().enumerate() {
        let mut above = flow.dominator(n).and_then(|before| last_above[before]);
        for value in block.get_instructions() {
            let place = flow.place(value);
            above = place.filter(|place| barriers.contains(place)).or(above);
            if width(value).is_none() || !is_cheap(value) {
                continue;
            }
            let part = |operand: Option<Operand<'ctx>>| {
                let operand = operand?.value()?;
                let known = operand.as_instruction_value();
                let known = known.and_then(|operand| numbered.get(&operand));
                Some(known.map_or(Part::Own(operand), |&known| Part::Numbered(known)))
            };
            let Some(parts) = value.get_operands().map(part).collect() else {
                continue;
            };
            let next = numbers.len();
            let key = (value.get_opcode(), parts);
            let (number, first) = *numbers.entry(key).or_insert((next, above));
            numbered.insert(value, number);
            let Some(barrier) = above.filter(|_| first != above) else {
                continue;
            };
            if let Some((from, operand)) = adds_to(value, flow, barrier) {
                let of = (barrier, from);
                match found.iter_mut().find(|(known, _)| *known == of) {
                    Some((_, additions)) => additions.push((value, operand)),
                    None => found.push((of, vec![(value, operand)])),
                }
            }
        }
    }
    found
}

/// The bits of a number that an index can be.
fn width(value: InstructionValue<'_>) -> Option<u32> {
    match value.get_type() {
        AnyTypeEnum::IntType(ty) => Some(ty.get_bit_width()).filter(|bits| [32, 64].contains(bits)),
        _ => None,
    }
}

/// What an addition adds to that is there at a barrier.
fn adds_to<'ctx>(
    value: InstructionValue<'ctx>,
    flow: &Flow<'ctx>,
    barrier: Place,
) -> Option<(InstructionValue<'ctx>, u32)> {
    if value.get_opcode() != InstructionOpcode::Add {
        return None;
    }
    let operand = |n| {
        let operand = value.get_operand(n)?.value()?.as_instruction_value()?;
        let is_there = flow.is_above(flow.place(operand)?, barrier);
        is_there.then_some((operand, n))
    };
    operand(0).or_else(|| operand(1))
}
