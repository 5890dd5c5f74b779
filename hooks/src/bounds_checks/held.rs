//! What a turn reads in any case, read before its question about a gather, and not where it is used behind that.
//!
//! Where what is left of a turn stands in a condition (`gathers.rs`), the element of the matrix would be read once the
//! index was, though it is in bounds whatever the index is: the thread waits twice for what it could have had at once.
//!
//! ```text
//! let column = columns[k];                    let (value, column) = (values[k], columns[k]);
//! if column < x.len() {                       if column < x.len() {
//!     sum += values[k] * x[column];               sum += value * x[column];
//! }                                           }
//! ```
//!
//! LLVM moves a load to where its only use is, if nothing else is done with what it gives: so a row takes that, which is no
//! instruction of a machine.

use std::collections::HashSet;

use kiln_compiler::ir::{
    Cell, Control, Effects, Family, FuncId, Function, Inst, InstData, IntrinsicDef, IntrinsicId,
    Meaning, Module, PrimaryMap, Region, Scalar, Source, TypePattern, Value, ValueDef,
};
use kiln_compiler::target::Target;

/// Scalars that a register holds.
const HELD: &[Scalar] = &[
    Scalar::I32,
    Scalar::U32,
    Scalar::F32,
    Scalar::I64,
    Scalar::U64,
    Scalar::F64,
];

const fn cell(ty: Scalar, constraints: &'static str) -> Cell {
    Cell::asm(Family::PTX, Some(ty), "", constraints)
}

/// Gives what it takes, and stays where it is.
static ROW: IntrinsicDef = IntrinsicDef::new(
    "bounds_checks.held",
    &[TypePattern::OneOf(HELD)],
    TypePattern::SameAs(0),
    Meaning::Pure(|_, args| args[0]),
)
.with_effects(Effects::Memory)
.with_cells(&[
    cell(Scalar::I32, "=r,0"),
    cell(Scalar::U32, "=r,0"),
    cell(Scalar::F32, "=f,0"),
    cell(Scalar::I64, "=l,0"),
    cell(Scalar::U64, "=l,0"),
    cell(Scalar::F64, "=d,0"),
]);

/// Whether code for a target has the row.
pub(super) fn is_for(target: &Target) -> bool {
    matches!(target, Target::Ptx(_))
}

/// All rows that are put in.
pub(super) fn rows() -> impl Iterator<Item = &'static IntrinsicDef> {
    std::iter::once(&ROW)
}

/// Takes out of what is left of a turn the loads that can be made before it, and what they need, in order: those whose
/// elements are `proved` to be there in each turn that comes so far. No turn of such a loop writes memory.
pub(super) fn loads_of(
    function: &Function,
    intrinsics: &PrimaryMap<IntrinsicId, &'static IntrinsicDef>,
    (rest, proved): (&mut Vec<Inst>, &HashSet<Inst>),
) -> Vec<Inst> {
    let inner: HashSet<Inst> = rest.iter().copied().collect();
    let mut early = HashSet::new();
    // What stands behind a branch may be there only for those that come behind it.
    let runs_on = |inst: &&Inst| {
        let data = &function.insts[**inst].data;
        matches!(data.control(), Control::Next) && data.assumption().is_none()
    };
    for &inst in rest.iter().take_while(runs_on) {
        let data = &function.insts[inst].data;
        let mut is_there = true;
        data.for_each_operand(|operand| {
            is_there &= match function.values[operand].def {
                ValueDef::Inst(inst) => !inner.contains(&inst) || early.contains(&inst),
                ValueDef::Index(_) | ValueDef::Param(_) => true,
            };
        });
        let facts = data.facts(intrinsics);
        let computes = matches!(facts.source, Source::Operands) && facts.is_harmless();
        let is_safe = match data.access() {
            Some(_) => proved.contains(&inst),
            None => computes || is_held(function, (inst, proved)),
        };
        if is_there && is_safe {
            early.insert(inst);
        }
    }
    let mut needed = HashSet::new();
    for &inst in rest.iter().rev().filter(|inst| early.contains(inst)) {
        if needed.contains(&inst) || is_held(function, (inst, proved)) {
            needed.insert(inst);
            function.insts[inst].data.for_each_operand(|operand| {
                if let ValueDef::Inst(inst) = function.values[operand].def {
                    needed.insert(inst);
                }
            });
        }
    }
    let is_taken = |inst: &Inst| early.contains(inst) && needed.contains(inst);
    let taken = rest.iter().copied().filter(is_taken).collect();
    rest.retain(|inst| !is_taken(inst));
    taken
}

/// Whether an instruction loads an element that is proved to be there, and that a register holds.
fn is_held(function: &Function, (inst, proved): (Inst, &HashSet<Inst>)) -> bool {
    let node = &function.insts[inst];
    let InstData::Load {
        ptr,
        volatile: false,
    } = node.data
    else {
        return false;
    };
    let is_proved = match function.values[ptr].def {
        ValueDef::Inst(access) => proved.contains(&access),
        ValueDef::Index(_) | ValueDef::Param(_) => false,
    };
    let result = node
        .result
        .and_then(|value| function.type_of(value).as_scalar());
    is_proved && result.is_some_and(|scalar| HELD.contains(&scalar))
}

/// A load that is made before the region in which what it gives is used.
pub(super) type Held = (Inst, Region);

/// Puts the row behind each of these loads, and has what uses them in a region take what it gives.
pub(super) fn hold(module: &mut Module, id: FuncId, loads: &[Held]) {
    if loads.is_empty() {
        return;
    }
    let row = module.intrinsic(&ROW);
    let function = &mut module.functions[id];
    for &(load, region) in loads {
        let node = &function.insts[load];
        let (value, at) = (node.result.expect("a load gives a value"), node.location);
        let args = [value].into_iter().collect();
        let held = InstData::Intrinsic { id: row, args };
        let held = function.new_inst(held, function.type_of(value), at);
        let gives = function.insts[held].result.expect("the row gives a value");
        let mut users = Vec::new();
        function.walk(region, &mut |_, inst| users.push(inst));
        for user in users {
            let take = |operand: Value| if operand == value { gives } else { operand };
            function.insts[user].data.map_operands(take);
        }
        put_behind(function, function.body, (load, held));
    }
}

/// Puts an instruction behind another one.
fn put_behind(function: &mut Function, region: Region, (first, next): (Inst, Inst)) -> bool {
    let insts = function.regions[region].insts.clone();
    if let Some(at) = insts.iter().position(|&inst| inst == first) {
        function.regions[region].insts.insert(at + 1, next);
        return true;
    }
    insts.into_iter().any(|inst| {
        let mut inner = function.insts[inst].data.regions().into_iter();
        inner.any(|region| put_behind(function, region, (first, next)))
    })
}
