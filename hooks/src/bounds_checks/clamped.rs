//! Indices that are clamped, which a question before may find in bounds as it may those that are checked.
//!
//! ```text
//! for i in 0..n {                              if n <= x.len() {
//!     sum += x[min(i, x.len() - 1)];               for i in 0..n { sum += x[i]; }
//! }                                            } else { .. }                         // the loop as it was
//! ```
//!
//! On CPUs only: there a minimum keeps neighbours from being read as a vector. Nothing follows from an access whose index
//! is clamped, as it ends no thread.

use kiln_compiler::ir::{BinaryOp, Check, Function, Inst, InstData, TypeTable, Value};

use super::before::known_integer;
use super::counter::defining;
use super::proof::known_length;

/// What an access looks at: its own check, or, of one that is clamped, that the minimum changes nothing.
pub(super) fn check(
    function: &Function,
    types: &TypeTable,
    (inst, on_cpu): (Inst, bool),
) -> Option<Check> {
    let data = &function.insts[inst].data;
    if let Some(check) = data.check() {
        return Some(check);
    }
    let (base, index) = match *data {
        InstData::SliceIndex { slice, index, .. } => (slice, index),
        InstData::ElementPtr { ptr, index, .. } => (ptr, index),
        _ => return None,
    };
    let (index, last) = match *defining(function, index).filter(|_| on_cpu)? {
        InstData::Binary {
            op: BinaryOp::Min,
            args: [index, last],
        } => (index, last),
        _ => return None,
    };
    let is_unsigned = |value: Value| {
        let scalar = function.type_of(value).as_scalar();
        scalar.is_some_and(|scalar| !scalar.is_signed_int())
    };
    let is_clamped = is_unsigned(index) && is_last(function, types, (last, base));
    is_clamped.then(|| Check {
        base,
        index: before_cast(function, index),
    })
}

/// Whether a value is the index of the last element.
fn is_last(function: &Function, types: &TypeTable, (last, base): (Value, Value)) -> bool {
    let known = known_length(function, types, base);
    if known.is_some_and(|length| known_integer(function, last) == Some(length - 1)) {
        return true;
    }
    let Some(&InstData::Binary {
        op: BinaryOp::Sub,
        args: [length, one],
    }) = defining(function, last)
    else {
        return false;
    };
    let is_length = |slice: Value| slice == base;
    known_integer(function, one) == Some(1)
        && matches!(defining(function, length), Some(&InstData::SliceLen { slice }) if is_length(slice))
}

/// The integer that was cast to be compared: where it is in bounds, so is what it is cast to, and the same.
fn before_cast(function: &Function, index: Value) -> Value {
    match defining(function, index) {
        Some(&InstData::Cast { arg })
            if function
                .type_of(arg)
                .as_scalar()
                .is_some_and(|s| s.is_int()) =>
        {
            arg
        }
        _ => index,
    }
}
