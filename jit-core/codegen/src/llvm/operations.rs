//! Operations of the IR by LLVM's names, for every target.

use inkwell::values::FastMathFlags;
use inkwell::{AtomicRMWBinOp, FloatPredicate, IntPredicate};

#[cfg(feature = "gpu-on-host")]
use kiln_ir::Scalar;
use kiln_ir::{AtomicOp, CompareOp, FastMath};

/// The one for signed or the one for unsigned integers.
pub(crate) fn by_sign<T>(signed: bool, when_signed: T, when_unsigned: T) -> T {
    if signed { when_signed } else { when_unsigned }
}

/// LLVM's flags of a sum, a difference or a product. It moves few of them unless zeros have no sign.
pub(crate) fn sum_flags(fast: FastMath) -> FastMathFlags {
    let mut flags = FastMathFlags::empty();
    flags.set(FastMathFlags::AllowContract, fast.has(FastMath::CONTRACT));
    let reassociates = FastMathFlags::AllowReassoc | FastMathFlags::NoSignedZeros;
    flags.set(reassociates, fast.has(FastMath::REASSOCIATE));
    flags
}

/// LLVM's flags of a division or of a square root of `f32`.
pub(crate) fn quotient_flags(fast: FastMath) -> FastMathFlags {
    let mut flags = FastMathFlags::empty();
    let approximates = FastMathFlags::ApproxFunc | FastMathFlags::AllowReciprocal;
    flags.set(approximates, fast.has(FastMath::APPROXIMATE));
    flags
}

/// A comparison of integers or addresses.
pub(crate) fn int_predicate(op: CompareOp, signed: bool) -> IntPredicate {
    match (op, signed) {
        (CompareOp::Eq, _) => IntPredicate::EQ,
        (CompareOp::Ne, _) => IntPredicate::NE,
        (CompareOp::Lt, true) => IntPredicate::SLT,
        (CompareOp::Lt, false) => IntPredicate::ULT,
        (CompareOp::Le, true) => IntPredicate::SLE,
        (CompareOp::Le, false) => IntPredicate::ULE,
        (CompareOp::Gt, true) => IntPredicate::SGT,
        (CompareOp::Gt, false) => IntPredicate::UGT,
        (CompareOp::Ge, true) => IntPredicate::SGE,
        (CompareOp::Ge, false) => IntPredicate::UGE,
    }
}

/// A comparison of floats; NaN is unequal to everything and has no order.
pub(crate) fn float_predicate(op: CompareOp) -> FloatPredicate {
    match op {
        CompareOp::Eq => FloatPredicate::OEQ,
        CompareOp::Ne => FloatPredicate::UNE,
        CompareOp::Lt => FloatPredicate::OLT,
        CompareOp::Le => FloatPredicate::OLE,
        CompareOp::Gt => FloatPredicate::OGT,
        CompareOp::Ge => FloatPredicate::OGE,
    }
}

/// An atomic operation on integers.
pub(crate) fn llvm_operation(op: AtomicOp, signed: bool) -> AtomicRMWBinOp {
    match (op, signed) {
        (AtomicOp::Add, _) => AtomicRMWBinOp::Add,
        (AtomicOp::Min, true) => AtomicRMWBinOp::Min,
        (AtomicOp::Min, false) => AtomicRMWBinOp::UMin,
        (AtomicOp::Max, true) => AtomicRMWBinOp::Max,
        (AtomicOp::Max, false) => AtomicRMWBinOp::UMax,
        (AtomicOp::And, _) => AtomicRMWBinOp::And,
        (AtomicOp::Or, _) => AtomicRMWBinOp::Or,
        (AtomicOp::Xor, _) => AtomicRMWBinOp::Xor,
        (AtomicOp::Exchange, _) => AtomicRMWBinOp::Xchg,
        (AtomicOp::Increment, _) => AtomicRMWBinOp::UIncWrap,
        (AtomicOp::Decrement, _) => AtomicRMWBinOp::UDecWrap,
    }
}

/// How LLVM names a type in an overloaded intrinsic.
#[cfg(feature = "gpu-on-host")]
pub(crate) fn llvm_suffix(scalar: Scalar) -> &'static str {
    match scalar {
        Scalar::Bool => "i1",
        Scalar::I8 | Scalar::U8 => "i8",
        Scalar::I16 | Scalar::U16 => "i16",
        Scalar::I32 | Scalar::U32 => "i32",
        Scalar::I64 | Scalar::U64 => "i64",
        Scalar::F16 => "f16",
        Scalar::BF16 => "bf16",
        Scalar::F32 => "f32",
        Scalar::F64 => "f64",
    }
}
