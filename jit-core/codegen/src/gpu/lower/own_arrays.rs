//! Loops that are unrolled to the end although nobody asks: those whose counter indexes arrays of the thread.
//!
//! Registers have no index, so an array that a loop's counter indexes is in memory as long as there is a loop: a load or a store
//! of local memory for each use, where its elements would be registers. LLVM's own measure is the size of the unrolled body,
//! which a loop that is there twice, with checks and without, does not keep to, and one that remains keeps the array in memory
//! for all others. nvcc unrolls such loops, and LLVM does for AMD's GPUs (`amdgpu-unroll-threshold-private`).

use kiln_ir::{Function, Inst, InstData, Region, Unroll, Value, ValueDef};

use crate::llvm::unrolled::turns;

/// The most turns, and the most instructions of the IR that all of them become.
const MOST_TURNS: u64 = 64;
const MOST: u64 = 2_048;
/// How many operations an index is looked through for the counter.
const DEEP: u32 = 6;

/// Whether a loop's counter indexes arrays of the thread, and its turns are few enough to be written out.
pub(super) fn keeps_arrays_in_memory(function: &Function, looping: Inst) -> bool {
    turns_over_arrays(function, looping).is_some_and(|turns| {
        let body = inside(function, looping);
        turns.saturating_mul(body) <= MOST
    })
}

/// The turns of a loop whose counter indexes arrays of the thread; `None` of all others, and of what is to stay one.
fn turns_over_arrays(function: &Function, looping: Inst) -> Option<u64> {
    let &InstData::For {
        index,
        start,
        end,
        step,
        body,
        unroll: Unroll::Auto | Unroll::Full,
    } = &function.insts[looping].data
    else {
        return None;
    };
    let turns = turns(function, [start, end, step])?;
    let few = (1..=MOST_TURNS).contains(&turns);
    (few && indexes_own_arrays(function, body, index)).then_some(turns)
}

/// The instructions in the regions of one, of loops that are written out those of all turns.
fn inside(function: &Function, inst: Inst) -> u64 {
    let regions = function.insts[inst].data.regions().into_iter();
    let insts = regions.flat_map(|region| &function.regions[region].insts);
    let sizes = insts.map(|&inst| {
        let body = inside(function, inst);
        let turns = turns_over_arrays(function, inst);
        let all = turns.map(|turns| turns.saturating_mul(body));
        all.filter(|&all| all <= MOST)
            .unwrap_or(body)
            .saturating_add(1)
    });
    sizes.fold(0, u64::saturating_add)
}

fn indexes_own_arrays(function: &Function, region: Region, counter: Value) -> bool {
    function.regions[region].insts.iter().any(|&inst| {
        let data = &function.insts[inst].data;
        let indexes = match *data {
            InstData::ElementPtr { ptr: of, index, .. }
            | InstData::SliceIndex {
                slice: of, index, ..
            } => is_of_counter(function, index, counter) && is_own(function, of),
            _ => false,
        };
        let mut regions = data.regions().into_iter();
        indexes || regions.any(|region| indexes_own_arrays(function, region, counter))
    })
}

/// Whether an address is of memory of the thread, or a slice of it.
fn is_own(function: &Function, mut address: Value) -> bool {
    loop {
        match defining(function, address) {
            Some(InstData::LocalAlloc) => return true,
            Some(other) => match other.same_memory() {
                Some(base) => address = base,
                None => return false,
            },
            None => return false,
        }
    }
}

/// Whether a value is computed from a counter, and else from constants and counters of other loops alone: what is known of
/// each turn once the loops are written out.
fn is_of_counter(function: &Function, value: Value, counter: Value) -> bool {
    let mut has_counter = false;
    let is_known = is_of_counters(function, value, DEEP, &mut |found| {
        has_counter |= found == counter
    });
    is_known && has_counter
}

fn is_of_counters(
    function: &Function,
    value: Value,
    deep: u32,
    counter: &mut impl FnMut(Value),
) -> bool {
    let Some(data) = defining(function, value) else {
        counter(value);
        return matches!(function.values[value].def, ValueDef::Index(_));
    };
    let operands = match *data {
        InstData::Binary { args, .. } => args,
        InstData::Unary { arg, .. } | InstData::Cast { arg, .. } => [arg, arg],
        _ => return function.constant(value).is_some(),
    };
    deep > 0
        && operands
            .iter()
            .all(|&operand| is_of_counters(function, operand, deep - 1, counter))
}

fn defining(function: &Function, value: Value) -> Option<&InstData> {
    match function.values[value].def {
        ValueDef::Inst(inst) => Some(&function.insts[inst].data),
        ValueDef::Param(_) | ValueDef::Index(_) => None,
    }
}
