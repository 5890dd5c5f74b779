//! Slices whose lengths a kernel is made for: checks compare with a number, which what proves that an index is one can make use of.
//!
//! A kernel that is for the arguments of a launch asserts their lengths when it begins. What comes behind takes a slice of the same
//! memory with that number as its length, where accesses are checked.

use kiln_jit_core::ir::{FuncId, Function, Inst, InstData, Module, Type, Value, ValueDef};

use crate::affine::Known;
use crate::emit::Emit;
use crate::stage::arguments;

/// Lets checked accesses of parameters ask for the lengths that are known; what is to stand behind the assertion of these.
pub(crate) fn by_numbers(module: &mut Module, kernel: FuncId, known: &[Known]) -> Vec<Inst> {
    let lengths = arguments(module, &module.functions[kernel], known);
    let mut list = Vec::new();
    for (param, number) in lengths {
        let ty = module.functions[kernel].type_of(param);
        let Some((address, is_wide)) = module.types.as_slice(ty) else {
            continue;
        };
        let function = &module.functions[kernel];
        let mut checks = Vec::new();
        function.for_each_inst(|_, inst| {
            let check = function.insts[inst].data.check();
            if check.is_some_and(|check| check.base == param) {
                checks.push(inst);
            }
        });
        if checks.is_empty() {
            continue;
        }
        let pointer = module
            .types
            .pointer(address.pointee, address.space, address.mutable);
        let function = &mut module.functions[kernel];
        let at = function.location;
        let mut emit = Emit::new(function, at);
        let ptr = emit.value(InstData::SlicePtr { slice: param }, pointer);
        let len = emit.int(number, if is_wide { Type::U64 } else { Type::U32 });
        let by_number = emit.value(InstData::SliceNew { ptr, len }, ty);
        list.append(&mut emit.list);
        for inst in checks {
            let data = &mut function.insts[inst].data;
            data.map_operands(|operand| if operand == param { by_number } else { operand });
        }
    }
    list
}

/// Whether a slice is another one, or that one with a number as its length.
pub(crate) fn is_all_of(function: &Function, slice: Value, other: Value) -> bool {
    let made_by = |value: Value| match function.values[value].def {
        ValueDef::Inst(inst) => Some(&function.insts[inst].data),
        _ => None,
    };
    let by_number = match made_by(slice) {
        Some(&InstData::SliceNew { ptr, .. }) => made_by(ptr),
        _ => None,
    };
    slice == other || matches!(by_number, Some(InstData::SlicePtr { slice: of }) if *of == other)
}
