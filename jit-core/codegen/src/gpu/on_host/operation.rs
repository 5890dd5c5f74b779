//! What a call that only a GPU has stands for.
//!
//! Most of it is in the rows of intrinsics: a call that is what a row's cell says, the same LLVM
//! intrinsic or the same inline PTX, has the row's meaning, so that a new row comes along by itself.
//! The rest is what code generation writes of its own: barriers, fences, the end of a thread,
//! conversions and atomics.

use kiln_ir::gpu_on_host::{Operation, RowCall};
use kiln_ir::{Cell, IntrinsicDef, Lowering, Meaning, Scalar, ThreadPosition, TypePattern};

use super::access;
use crate::gpu::nvptx::HIDDEN_ADDRESS;
use crate::gpu::ptxas::{BYTE_OF_16, SHORT_OF_32, SHORT_OF_64, WORD_OF_64};

/// The types in the order in which they stand for a cell of inline PTX that several have: what PTX
/// sees is registers, and an integer is all of its register.
const WHOLE_REGISTERS_FIRST: [Scalar; Scalar::ALL.len()] = [
    Scalar::U32,
    Scalar::I32,
    Scalar::U64,
    Scalar::I64,
    Scalar::U16,
    Scalar::I16,
    Scalar::F32,
    Scalar::F64,
    Scalar::F16,
    Scalar::BF16,
    Scalar::U8,
    Scalar::I8,
    Scalar::Bool,
];

/// The operation of a row's cell; `None` for a row that has none here.
fn of_row(row: &'static IntrinsicDef, cell: Option<Scalar>) -> Option<Operation> {
    let named = |at: usize| match row.params.get(at) {
        Some(TypePattern::Exact(scalar)) => Some(*scalar),
        _ => None,
    };
    // As `IntrinsicDef::cell_type`, of the patterns alone.
    let choice = |pattern: &TypePattern| matches!(pattern, TypePattern::OneOf(_));
    let at = row.params.iter().position(choice).unwrap_or(0);
    let scalar = cell.or(named(at)).unwrap_or(Scalar::U32);
    let mut params: Vec<Scalar> = Vec::new();
    for (n, pattern) in row.params.iter().enumerate() {
        params.push(match *pattern {
            TypePattern::Exact(scalar) => scalar,
            TypePattern::SameAs(other) => *params.get(usize::from(other))?,
            TypePattern::OneOf(_) if n == at => scalar,
            TypePattern::Chosen => scalar,
            // Rows of these mean functions of the IR, which are called here.
            TypePattern::OneOf(_)
            | TypePattern::Unit
            | TypePattern::Vector(..)
            | TypePattern::Array(..)
            | TypePattern::Tuple(_)
            | TypePattern::Pointer { .. } => return None,
        });
    }
    let call = RowCall {
        row,
        scalar,
        params,
    };
    match row.meaning {
        Meaning::Pure(f) => Some(Operation::Pure(call, f)),
        Meaning::Position(f) => Some(Operation::Position(f)),
        Meaning::Warp(_) => Some(Operation::Warp(call)),
        Meaning::Body(_) => None,
    }
}

/// The operation of the first row with a cell that `chosen` takes, whole registers before parts.
fn of_rows(rows: &[&'static IntrinsicDef], chosen: impl Fn(&Cell) -> bool) -> Option<Operation> {
    let types = WHOLE_REGISTERS_FIRST.map(Some).into_iter().chain([None]);
    let cells = types.flat_map(|ty| rows.iter().map(move |&row| (row, ty)));
    let chosen = |cell: &Cell| cell.family.min_sm().is_some() && chosen(cell);
    let mut fitting =
        cells.filter(|&(row, ty)| row.cells.iter().any(|cell| cell.ty == ty && chosen(cell)));
    fitting.find_map(|(row, ty)| of_row(row, ty))
}

/// What inline PTX stands for.
///
/// # Errors
/// It is not known.
pub(super) fn of_assembly(
    rows: &[&'static IntrinsicDef],
    wanted: (&str, &str),
) -> Result<Operation, String> {
    let (template, constraints) = wanted;
    let same = |cell: &Cell| match cell.lowering {
        Lowering::Asm {
            template,
            constraints,
        } => (template, constraints) == wanted,
        Lowering::Llvm { .. } | Lowering::ViaF32 => false,
    };
    if let Some(operation) = of_rows(rows, same) {
        return Ok(operation);
    }
    let known = match template {
        "" => Some(Operation::Nothing),
        _ if wanted == HIDDEN_ADDRESS => Some(Operation::Function(|x| x)),
        "exit;" => Some(Operation::Exit),
        "mov.u32 $0, %dynamic_smem_size;" => Some(Operation::DynamicSharedBytes),
        WORD_OF_64 => Some(Operation::Function(|x| x & 0xffff_ffff)),
        SHORT_OF_64 | SHORT_OF_32 => Some(Operation::Function(|x| x & 0xffff)),
        BYTE_OF_16 => Some(Operation::Function(|x| x & 0xff)),
        _ => {
            let results = usize::from(constraints.starts_with('='));
            access::parse(template, results).map(Operation::Accesses)
        }
    };
    known.ok_or_else(|| {
        format!(
            "inline PTX `{template}` with the constraints `{constraints}` is the cell of no row of \
             the kernel and not known otherwise; what code generation writes of its own needs a \
             line in codegen/gpu/on_host/operation.rs"
        )
    })
}

/// What an LLVM intrinsic of NVPTX stands for.
///
/// # Errors
/// It is not known.
pub(super) fn of_intrinsic(
    rows: &[&'static IntrinsicDef],
    wanted: &str,
) -> Result<Operation, String> {
    let same = |cell: &Cell| match cell.lowering {
        Lowering::Llvm {
            name,
            overloaded: false,
        } => name == wanted,
        Lowering::Llvm {
            name,
            overloaded: true,
        } => {
            let suffix = wanted.strip_prefix(name).and_then(|s| s.strip_prefix('.'));
            suffix.is_some() && suffix == cell.ty.map(llvm_suffix)
        }
        Lowering::Asm { .. } | Lowering::ViaF32 => false,
    };
    if let Some(operation) = of_rows(rows, same) {
        return Ok(operation);
    }
    let known = match wanted {
        "llvm.nvvm.barrier.cta.sync.aligned.all" => Some(Operation::Barrier),
        "llvm.nvvm.membar.cta" | "llvm.nvvm.membar.gl" | "llvm.nvvm.membar.sys" => {
            Some(Operation::Nothing)
        }
        "llvm.nvvm.i2f.rz" => Some(Operation::Function(|x| {
            towards_zero(i128::from(x as u32 as i32))
        })),
        "llvm.nvvm.ui2f.rz" => Some(Operation::Function(|x| towards_zero(i128::from(x as u32)))),
        "llvm.nvvm.ll2f.rz" => Some(Operation::Function(|x| towards_zero(i128::from(x as i64)))),
        "llvm.nvvm.ull2f.rz" => Some(Operation::Function(|x| towards_zero(i128::from(x)))),
        _ => wanted
            .strip_prefix("llvm.nvvm.read.ptx.sreg.")
            .and_then(special_register)
            .map(Operation::Position),
    };
    known.ok_or_else(|| {
        format!(
            "`{wanted}` is the cell of no row of the kernel and not known otherwise; what code \
             generation calls of its own needs a line in codegen/gpu/on_host/operation.rs"
        )
    })
}

/// How LLVM names a type in an overloaded intrinsic.
fn llvm_suffix(scalar: Scalar) -> &'static str {
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

/// The special registers that code generation reads whether a row does or not (PTX ISA, "Special
/// Registers").
fn special_register(name: &str) -> Option<fn(&ThreadPosition) -> u64> {
    Some(match name {
        "tid.x" => |at| at.thread[0].into(),
        "tid.y" => |at| at.thread[1].into(),
        "tid.z" => |at| at.thread[2].into(),
        "ctaid.x" => |at| at.block[0].into(),
        "ctaid.y" => |at| at.block[1].into(),
        "ctaid.z" => |at| at.block[2].into(),
        _ => return None,
    })
}

/// The bits of an integer as `f32`, rounded towards zero.
fn towards_zero(value: i128) -> u64 {
    let magnitude = value.unsigned_abs();
    let lost = (u128::BITS - magnitude.leading_zeros()).saturating_sub(f32::MANTISSA_DIGITS);
    let kept = (magnitude >> lost << lost) as f32;
    let result = if value < 0 { -kept } else { kept };
    result.to_bits().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_cut_to_floats() {
        let float = |x| f32::from_bits(towards_zero(x) as u32);
        assert_eq!(float(0), 0.0);
        assert_eq!(float(16_777_217), 16_777_216.0);
        assert_eq!(float(-16_777_219), -16_777_218.0);
        assert_eq!(float(i128::from(u64::MAX)), 18_446_742_974_197_923_840.0);
        assert_eq!(float(i128::from(i64::MIN)), -9_223_372_036_854_775_808.0);
    }

    #[test]
    fn what_is_not_known_is_named() {
        let refused = |result: Result<Operation, String>| result.expect_err("it is not known");
        let text = refused(of_intrinsic(&[], "llvm.nvvm.bar.warp.sync"));
        assert!(text.contains("`llvm.nvvm.bar.warp.sync`"), "{text}");
        let text = refused(of_assembly(&[], ("brkpt;", "")));
        assert!(text.contains("`brkpt;`"), "{text}");
    }
}
