//! What a call that only a GPU has stands for.
//!
//! Most of it is in the rows of intrinsics: a call that is what a row's cell says, the same LLVM
//! intrinsic or the same inline PTX, has the row's meaning, so that a new row comes along by itself.
//! The rest is what code generation writes of its own: barriers, fences, the end of a thread,
//! conversions and atomics.

use kiln_ir::gpu_on_host::{Change, Element, Operation, RowCall};
use kiln_ir::{AtomicOp, Cell, IntrinsicDef, Lowering, Meaning, Scalar, TypePattern};

use crate::gpu::nvptx::{HIDDEN_ADDRESS, HIDDEN_WORD};
use crate::gpu::ptxas::{BYTE_OF_16, SHORT_OF_32, SHORT_OF_64, SUMS, WORD_OF_64};
use crate::llvm::operations::llvm_suffix;

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

/// The absolute difference of two integers, added to a third (PTX ISA, "sad"): no row of the library, as code
/// generation finds it in other operations.
static SUM_OF_DIFFERENCE: IntrinsicDef = IntrinsicDef::new(
    "sum_of_difference",
    &[TypePattern::Chosen; 3],
    TypePattern::Exact(Scalar::U32),
    Meaning::Pure(|scalar, args| {
        let (x, y, sum) = (args[0] as u32, args[1] as u32, args[2] as u32);
        let difference = if scalar.is_signed_int() {
            x.cast_signed().abs_diff(y.cast_signed())
        } else {
            x.abs_diff(y)
        };
        u64::from(sum.wrapping_add(difference))
    }),
);

fn sum_of_difference(scalar: Scalar) -> Operation {
    Operation::Row(RowCall {
        row: &SUM_OF_DIFFERENCE,
        scalar,
        params: vec![scalar; 3],
    })
}

/// The operation of a row's cell; `None` for a row that has none here, as it means a function of the IR, which
/// is called.
fn of_row(row: &'static IntrinsicDef, cell: Option<Scalar>) -> Option<Operation> {
    if row.waits_for_grid() {
        return Some(Operation::Grid);
    }
    let (scalar, params) = row.scalars(cell)?;
    match row.meaning {
        Meaning::Pure(_)
        | Meaning::Position(_)
        | Meaning::Warp(_)
        | Meaning::NamedBarrier { .. } => Some(Operation::Row(RowCall {
            row,
            scalar,
            params,
        })),
        Meaning::Body(_) | Meaning::Grid => None,
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
        Lowering::Llvm { .. } | Lowering::Function { .. } | Lowering::Ptx(_) | Lowering::ViaF32 => {
            false
        }
    };
    if let Some(operation) = of_rows(rows, same) {
        return Ok(operation);
    }
    let known = match template {
        "" => Some(Operation::Nothing),
        _ if wanted == HIDDEN_ADDRESS => Some(Operation::LowBits(64)),
        "exit;" => Some(Operation::Exit),
        "mov.u32 $0, %dynamic_smem_size;" => Some(Operation::DynamicSharedBytes),
        _ if wanted == HIDDEN_WORD => Some(Operation::LowBits(32)),
        WORD_OF_64 => Some(Operation::LowBits(32)),
        SHORT_OF_64 | SHORT_OF_32 => Some(Operation::LowBits(16)),
        BYTE_OF_16 => Some(Operation::LowBits(8)),
        _ => atomic(template),
    };
    known.ok_or_else(|| {
        format!(
            "inline PTX `{template}` with the constraints `{constraints}` is the cell of no row of \
             the kernel and not known otherwise; what code generation writes of its own needs a \
             line in codegen/gpu/on_host/operation.rs"
        )
    })
}

/// `atom.<order>.<scope>.<space>.<operation>.<type>` as `nvptx` writes it. Orders, scopes and spaces make no
/// difference here: the threads of a block take turns on one thread of the host, and each sees what those
/// before it did.
fn atomic(template: &str) -> Option<Operation> {
    let (opcode, operands) = template.strip_prefix("atom.")?.split_once(' ')?;
    let words: Vec<&str> = opcode.split('.').collect();
    let ([_, _, operation, ty] | [_, _, "global" | "shared", operation, ty]) = words[..] else {
        return None;
    };
    let (change, wanted) = match operation {
        "cas" => (Change::CompareAndSwap, "$0, [$1], $2, $3;"),
        _ => (Change::Modify(modification(operation)?), "$0, [$1], $2;"),
    };
    let element = Element::named(ty)?;
    let takes_words = match change {
        Change::CompareAndSwap => true,
        Change::Modify(op) => op.takes_words(),
    };
    (operands == wanted && (takes_words || element.bits <= u64::BITS))
        .then_some(Operation::Atomic(change, element))
}

fn modification(word: &str) -> Option<AtomicOp> {
    Some(match word {
        "add" => AtomicOp::Add,
        "min" => AtomicOp::Min,
        "max" => AtomicOp::Max,
        "and" => AtomicOp::And,
        "or" => AtomicOp::Or,
        "xor" => AtomicOp::Xor,
        "exch" => AtomicOp::Exchange,
        "inc" => AtomicOp::Increment,
        "dec" => AtomicOp::Decrement,
        _ => return None,
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
        Lowering::Asm { .. } | Lowering::Function { .. } | Lowering::Ptx(_) | Lowering::ViaF32 => {
            false
        }
    };
    if let Some(operation) = of_rows(rows, same) {
        return Ok(operation);
    }
    let to_float = |signed, bits| Operation::ToFloat { signed, bits };
    let known = match wanted {
        "llvm.nvvm.barrier.cta.sync.aligned.all" => Some(Operation::Barrier),
        "llvm.nvvm.membar.cta" | "llvm.nvvm.membar.gl" | "llvm.nvvm.membar.sys" => {
            Some(Operation::Nothing)
        }
        _ if wanted == SUMS[0] => Some(sum_of_difference(Scalar::U32)),
        _ if wanted == SUMS[1] => Some(sum_of_difference(Scalar::I32)),
        "llvm.nvvm.i2f.rz" => Some(to_float(true, 32)),
        "llvm.nvvm.ui2f.rz" => Some(to_float(false, 32)),
        "llvm.nvvm.ll2f.rz" => Some(to_float(true, 64)),
        "llvm.nvvm.ull2f.rz" => Some(to_float(false, 64)),
        _ => wanted
            .strip_prefix("llvm.nvvm.read.ptx.sreg.")
            .and_then(special_register),
    };
    known.ok_or_else(|| {
        format!(
            "`{wanted}` is the cell of no row of the kernel and not known otherwise; what code \
             generation calls of its own needs a line in codegen/gpu/on_host/operation.rs"
        )
    })
}

/// The special registers that code generation reads whether a row does or not (PTX ISA, "Special
/// Registers").
fn special_register(name: &str) -> Option<Operation> {
    Some(match name {
        "tid.x" => Operation::Thread(0),
        "tid.y" => Operation::Thread(1),
        "tid.z" => Operation::Thread(2),
        "ctaid.x" => Operation::Block(0),
        "ctaid.y" => Operation::Block(1),
        "ctaid.z" => Operation::Block(2),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn atomics_are_read() {
        let unsigned = Element::named("u32").expect("an element");
        let add = Operation::Atomic(Change::Modify(AtomicOp::Add), unsigned);
        assert_eq!(
            atomic("atom.acq_rel.gpu.global.add.u32 $0, [$1], $2;"),
            Some(add)
        );
        let bits = Element::named("b64").expect("an element");
        let swap = Operation::Atomic(Change::CompareAndSwap, bits);
        assert_eq!(
            atomic("atom.relaxed.sys.cas.b64 $0, [$1], $2, $3;"),
            Some(swap)
        );
    }

    #[test]
    fn what_is_not_known_is_not_guessed() {
        for template in [
            "atom.relaxed.gpu.global.nand.u32 $0, [$1], $2;",
            "atom.relaxed.gpu.global.add.u32 $0, [$1+4], $2;",
            "atom.relaxed.gpu.add.noftz.f16 $0, [$1], $2;",
            "atom.relaxed.gpu.add.b128 $0, [$1], $2;",
            "atom.relaxed.gpu.add.f16 $0, [$1], $2;",
            "atom.relaxed.gpu.global.add.u32 $0, [$1], $2; exit;",
            "ld.u32 $0, [$1];",
        ] {
            assert_eq!(atomic(template), None, "{template}");
        }
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
