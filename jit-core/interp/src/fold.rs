//! The values of a function that are known before any thread runs.

use std::collections::HashMap;

use kiln_ir::{Function, InstData, Type, Value};

use crate::ops;

/// The scalars that constants decide in a function without parameters of types and consts
/// ([`Function::decided_by_arguments`]), each as a register holds it: computed as a thread would.
pub fn known_scalars(function: &Function) -> HashMap<Value, u64> {
    let mut known = HashMap::new();
    function.for_each_inst(|_, inst| {
        let node = &function.insts[inst];
        if let Some(result) = node.result
            && let Some(bits) = computed(function, &node.data, function.type_of(result), &known)
        {
            known.insert(result, bits);
        }
    });
    known
}

fn computed(
    function: &Function,
    data: &InstData,
    result: Type,
    known: &HashMap<Value, u64>,
) -> Option<u64> {
    let bits = |value: Value| known.get(&value).copied();
    let scalar = |value: Value| function.type_of(value).as_scalar();
    Some(match *data {
        InstData::Const(constant) => ops::constant(constant, result.as_scalar()?),
        InstData::Unary { op, arg } => ops::unary(op, scalar(arg)?)(bits(arg)?),
        InstData::Binary { op, args: [a, b] } => ops::binary(op, scalar(a)?)?(bits(a)?, bits(b)?),
        InstData::Compare { op, args: [a, b] } => ops::compare(op, scalar(a)?)(bits(a)?, bits(b)?),
        InstData::Cast { arg } => ops::cast(scalar(arg)?, result.as_scalar()?)(bits(arg)?),
        InstData::Select {
            cond,
            if_true,
            if_false,
        } => match bits(cond)? {
            0 => bits(if_false)?,
            _ => bits(if_true)?,
        },
        _ => return None,
    })
}
