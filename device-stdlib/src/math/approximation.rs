//! The instructions by which NVIDIA's GPUs approximate functions of `f32` (PTX ISA, "Floating Point
//! Instructions"), for instructions that may be approximations.
//!
//! They are those that nvcc takes with `-use_fast_math` (CUDA guide, "Intrinsic Functions"), and `tanh.approx`. The
//! arc functions have none.

use kiln_jit_core::ir::{Cell, Family, Scalar};

/// A cell of inline PTX with one operand.
const fn ptx(template: &'static str) -> Cell {
    of_operands(template, "=f,f")
}

const fn of_operands(template: &'static str, operands: &'static str) -> Cell {
    let all = Family::Ptx { min_sm: 0 };
    Cell::asm(all, Some(Scalar::F32), template, operands)
}

pub(super) const SIN: &[Cell] = &[ptx("sin.approx.f32 $0, $1;")];
pub(super) const COS: &[Cell] = &[ptx("cos.approx.f32 $0, $1;")];
pub(super) const EXP2: &[Cell] = &[ptx("ex2.approx.f32 $0, $1;")];
pub(super) const LOG2: &[Cell] = &[ptx("lg2.approx.f32 $0, $1;")];
pub(super) const RSQRT: &[Cell] = &[ptx("rsqrt.approx.f32 $0, $1;")];
pub(super) const TANH: &[Cell] = &[ptx("tanh.approx.f32 $0, $1;")];
// By log2(e), ln(2) and log10(2).
pub(super) const EXP: &[Cell] = &[ptx(
    "{ .reg .f32 t; mul.f32 t, $1, 0f3FB8AA3B; ex2.approx.f32 $0, t; }",
)];
pub(super) const LN: &[Cell] = &[ptx(
    "{ .reg .f32 t; lg2.approx.f32 t, $1; mul.f32 $0, t, 0f3F317218; }",
)];
pub(super) const LOG10: &[Cell] = &[ptx(
    "{ .reg .f32 t; lg2.approx.f32 t, $1; mul.f32 $0, t, 0f3E9A209B; }",
)];
// The first result may be in the register of the operand, hence the copy.
pub(super) const SIN_COS: &[Cell] = &[of_operands(
    "{ .reg .f32 t; mov.f32 t, $2; sin.approx.f32 $0, t; cos.approx.f32 $1, t; }",
    "=f,=f,f",
)];
pub(super) const TAN: &[Cell] = &[ptx(
    "{ .reg .f32 s, c; sin.approx.f32 s, $1; cos.approx.f32 c, $1; div.approx.f32 $0, s, c; }",
)];
pub(super) const POW: &[Cell] = &[of_operands(
    "{ .reg .f32 t; lg2.approx.f32 t, $1; mul.f32 t, t, $2; ex2.approx.f32 $0, t; }",
    "=f,f,f",
)];
