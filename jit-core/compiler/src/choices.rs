//! What a kernel and the compile options choose, written out in the module: accesses that are clamped or
//! unchecked, instructions with flags.
//!
//! It is done before hooks rewrite the module, so that they see what an access and an operation mean. Functions
//! that come after, such as the bodies of `math.sin`, keep what they say themselves: their errors are proved for
//! operations that round.

use crate::codegen::CompileOptions;
use crate::ir::{
    ArrayLen, BinaryOp, Bounds, Choices, Constant, Cursor, FastMath, Function, FunctionKind,
    InstData, InstNode, Module, Type, TypeTable, Unroll, Value,
};

/// Writes them out in a specialized module.
pub(crate) fn write_out(module: &mut Module, options: &CompileOptions) {
    let kernel = module.kernel().map(|kernel| &module.functions[kernel]);
    let own = kernel.map(|kernel| kernel.choices).unwrap_or_default();
    let bounds = own.bounds.unwrap_or(options.bounds());
    give_flags(module, own.fast | options.fast);
    give_limits(module, own, options);
    module.rewrite_each(|at| match bounds {
        Bounds::Checked => {}
        Bounds::Clamped => clamp(at),
        Bounds::Unchecked => leave_out(at),
    });
}

/// Has loops that do not say how they are unrolled be unrolled as is chosen, and the kernel say what it inlines and how many
/// registers it has.
fn give_limits(module: &mut Module, own: Choices, options: &CompileOptions) {
    let chosen = match own.unroll {
        Unroll::Auto => options.unroll,
        own => own,
    };
    if let Some(kernel) = module.kernel() {
        let has_bounds = module.functions[kernel].launch_bounds.is_some();
        let choices = &mut module.functions[kernel].choices;
        choices.unroll = chosen;
        choices.inline_threshold = own.inline_threshold.or(options.inline_threshold);
        if own.max_registers == 0 && !has_bounds {
            choices.max_registers = options.max_registers;
        }
    }
    if chosen == Unroll::Auto {
        return;
    }
    for (_, function) in module.functions.iter_mut() {
        for (_, node) in function.insts.iter_mut() {
            if let InstData::For { unroll, .. } = &mut node.data
                && *unroll == Unroll::Auto
            {
                *unroll = chosen;
            }
        }
    }
}

/// Puts flags on all operations of floats, those that all functions have and those of the function.
fn give_flags(module: &mut Module, of_all: FastMath) {
    let types = &module.types;
    for (_, function) in module.functions.iter_mut() {
        let of_function = match function.kind {
            FunctionKind::Kernel => of_all,
            FunctionKind::Device => of_all.of_expressions(),
        };
        function.choices.fast = function.choices.fast | of_function;
        let flags = function.choices.fast.of_expressions();
        if flags.is_empty() {
            continue;
        }
        for inst in function.insts.keys().collect::<Vec<_>>() {
            if is_of_floats(types, function, &function.insts[inst]) {
                let node = &mut function.insts[inst];
                node.fast = node.fast | flags;
            }
        }
    }
}

/// Whether an instruction computes a float or takes one.
fn is_of_floats(types: &TypeTable, function: &Function, node: &InstNode) -> bool {
    let is_float = |value: Value| {
        let ty = function.type_of(value);
        let lane = types
            .as_vector(ty)
            .map_or(ty, |(lane, _)| Type::scalar(lane));
        lane.is_float()
    };
    let mut is_of_floats = node.result.is_some_and(is_float);
    node.data
        .for_each_operand(|operand| is_of_floats |= is_float(operand));
    is_of_floats && node.data.takes_fast()
}

/// Makes an access or an assumption unchecked.
fn leave_out(at: &mut Cursor<'_>) {
    if let Some(data) = unchecked(at.data()) {
        at.replace().inst(data, Type::UNIT);
    }
}

/// Has the cursor's access be of the last element if its index is out of bounds. One whose address nobody uses stays:
/// it is there for its fault, as those of the bounds of a part of a slice.
fn clamp(at: &mut Cursor<'_>) {
    let Some(check) = at.data().check() else {
        return;
    };
    let used = at.result().is_some_and(|result| at.is_used(result));
    if !used {
        return;
    }
    let (base, index) = (check.base, check.index);
    let base_type = at.type_of(base);
    let array = at.types().as_pointer(base_type).map(|(array, ..)| array);
    let array = array.and_then(|array| at.types().as_indexed(array));
    let last = match array {
        Some((_, ArrayLen::Known(0) | ArrayLen::Param(_))) => return,
        Some((_, ArrayLen::Known(len))) => {
            let ty = counted_in(at, index, len > u64::from(u32::MAX));
            (at.ins()).constant_of(ty, Constant::Int(i128::from(len) - 1))
        }
        None => {
            let wide = at.types().as_slice(base_type).is_some_and(|(_, wide)| wide);
            let ty = counted_in(at, index, wide);
            last_of_slice(at, base, ty)
        }
    };
    let index = no_larger(at, index, last);
    // Behind the slice or the array.
    at.set_operand(1, index);
    leave_out(at);
}

/// The type that an index and a length are compared in.
fn counted_in(at: &Cursor<'_>, index: Value, wide: bool) -> Type {
    let index = at.type_of(index).as_scalar();
    match wide || index.is_some_and(|index| index.bits() == 64) {
        true => Type::U64,
        false => Type::U32,
    }
}

/// The index of the last element, behind a check that there is one.
fn last_of_slice(at: &mut Cursor<'_>, slice: Value, ty: Type) -> Value {
    let zero = at.ins().constant(0u32);
    at.ins().slice_index(slice, zero);
    let len = at.ins().slice_len(slice, ty);
    let one = at.ins().constant_of(ty, Constant::Int(1));
    at.ins().binary(BinaryOp::Sub, len, one)
}

/// The smaller of an index and a bound; a negative index is a large one.
fn no_larger(at: &mut Cursor<'_>, index: Value, last: Value) -> Value {
    let ty = at.type_of(last);
    let index = match at.type_of(index) == ty {
        true => index,
        false => at.ins().cast(index, ty),
    };
    at.ins().binary(BinaryOp::Min, index, last)
}

/// An access or an assumption without its check.
fn unchecked(data: &InstData) -> Option<InstData> {
    let mut data = data.clone();
    match &mut data {
        InstData::SliceIndex { checked, .. }
        | InstData::ElementPtr { checked, .. }
        | InstData::Assume { checked, .. }
            if *checked =>
        {
            *checked = false;
            Some(data)
        }
        _ => None,
    }
}
