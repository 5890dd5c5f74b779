//! Every cell of the table of legal operations, compiled and assembled.
//!
//! For each (operation, type, address space) and for sm_75 and sm_90: either the target's check refuses
//! it, or LLVM selects it and `ptxas` takes the text. Cells are compiled many to a kernel; when a
//! kernel fails its cells are compiled one by one to name the culprit.

use crate::kernels::*;
use kiln_jit_core::codegen::Isas;
use kiln_jit_core::ir::{
    AddressSpace, AtomicOp, BinaryOp, CompareOp, Constant, InstData, Module, Ordering, Scalar,
    Scope, Type, UnaryOp, Value,
};
use kiln_jit_core::legal::Legal;
use kiln_jit_core::target::{PtxTarget, Target};

const SMS: [u32; 2] = [75, 90];
const CELLS_PER_KERNEL: usize = 64;

/// The type of an operand of a cell.
#[derive(Copy, Clone, PartialEq, Debug)]
enum Operand {
    Scalar(Scalar),
    Vector(Scalar, u8),
    Pointer(Scalar, AddressSpace),
    /// The address of a `u64x2`.
    PointerToPair(AddressSpace),
    /// A pointer that is read through.
    ReadOnly(Scalar, AddressSpace),
    /// No value; of results only.
    Nothing,
}

impl Operand {
    fn ty(self, m: &mut Module) -> Type {
        match self {
            Operand::Scalar(scalar) => Type::scalar(scalar),
            Operand::Vector(element, lanes) => m.types.vector(element, lanes),
            Operand::Pointer(pointee, space) => {
                let read_only = [AddressSpace::Constant, AddressSpace::Param].contains(&space);
                m.types.pointer(Type::scalar(pointee), space, !read_only)
            }
            Operand::PointerToPair(space) => {
                let pair = m.types.vector(Scalar::U64, 2);
                m.types.pointer(pair, space, true)
            }
            Operand::ReadOnly(pointee, space) => {
                m.types.pointer(Type::scalar(pointee), space, false)
            }
            Operand::Nothing => Type::UNIT,
        }
    }
}

/// Makes the instruction of a cell from its operands.
type MakeInst = Box<dyn Fn(&[Value]) -> InstData>;

/// One operation on operands of given types.
struct Cell {
    name: String,
    operands: Vec<Operand>,
    result: Operand,
    data: MakeInst,
}

fn cell(
    name: String,
    operands: &[Operand],
    result: Operand,
    data: impl Fn(&[Value]) -> InstData + 'static,
) -> Cell {
    Cell {
        name,
        operands: operands.to_vec(),
        result,
        data: Box::new(data),
    }
}

/// A kernel that loads the operands of each cell, applies it, and stores the result.
fn kernel(cells: &[&Cell]) -> Module {
    let mut m = legal_module("grid");
    let bytes = m.types.pointer(Type::U8, AddressSpace::Global, true);
    let mut b = Body::kernel("grid");
    let base = b.param("memory", bytes);
    let mut offset = 0;
    let mut place = |m: &mut Module, b: &mut Body, ty: Type| {
        let index = b.int(offset, Type::I64);
        offset += 256;
        let ptr = b.value(InstData::PtrOffset { ptr: base, index }, bytes);
        let ptr_type = m.types.pointer(ty, AddressSpace::Global, true);
        b.value(InstData::Bitcast { arg: ptr }, ptr_type)
    };
    for cell in cells {
        let mut args = Vec::new();
        for operand in &cell.operands {
            let ty = operand.ty(&mut m);
            let from = place(&mut m, &mut b, ty);
            args.push(b.load(from, ty));
        }
        let ty = cell.result.ty(&mut m);
        if ty == Type::UNIT {
            b.stmt((cell.data)(&args));
            continue;
        }
        let result = b.value((cell.data)(&args), ty);
        let to = place(&mut m, &mut b, ty);
        b.store(to, result);
    }
    m.functions.push(b.f);
    m
}

/// Compiles and assembles all legal cells; how many there are.
fn compile_legal(cells: &[Cell], sm: u32) -> usize {
    let target = Target::Ptx(PtxTarget::for_sm(sm));
    let isa = Isas::default().of(&target).expect("PTX");
    let legal: Vec<&Cell> = cells
        .iter()
        .filter(|cell| {
            let legal = Legal::new(kernel(&[cell]));
            legal.is_ok_and(|legal| isa.check(&legal).is_ok())
        })
        .collect();
    for chunk in legal.chunks(CELLS_PER_KERNEL) {
        match compile(kernel(chunk), sm) {
            Ok(ptx) => assemble(&ptx, sm),
            Err(_) => {
                let errors: Vec<String> = chunk
                    .iter()
                    .filter_map(|cell| {
                        let error = compile(kernel(&[cell]), sm).err()?;
                        Some(format!("{} on sm_{sm}: {error}", cell.name))
                    })
                    .collect();
                panic!("{}", errors.join("\n"));
            }
        }
    }
    legal.len()
}

/// Compiles the cells for both architectures; `legal` is how many must be legal on each.
fn check(cells: &[Cell], legal: usize) {
    check_each(cells, SMS.map(|_| legal));
}

/// The same where the architectures differ.
fn check_each(cells: &[Cell], legal: [usize; SMS.len()]) {
    for (sm, legal) in SMS.into_iter().zip(legal) {
        assert_eq!(
            compile_legal(cells, sm),
            legal,
            "of {} on sm_{sm}",
            cells.len()
        );
    }
}

fn numbers() -> Vec<Operand> {
    let mut all: Vec<Operand> = Scalar::ALL.map(Operand::Scalar).to_vec();
    for scalar in Scalar::ALL.into_iter().filter(|s| *s != Scalar::Bool) {
        all.push(Operand::Vector(scalar, 2));
    }
    // The largest, and the ones whose memory form is an array.
    all.push(Operand::Vector(Scalar::I8, 16));
    all.push(Operand::Vector(Scalar::F16, 8));
    all.push(Operand::Vector(Scalar::F32, 8));
    all.push(Operand::Vector(Scalar::I64, 4));
    all
}

#[test]
fn unary_operations() {
    let mut cells = Vec::new();
    for ty in numbers() {
        for op in UnaryOp::ALL {
            let data = move |args: &[Value]| InstData::Unary { op, arg: args[0] };
            cells.push(cell(format!("{op:?} {ty:?}"), &[ty], ty, data));
        }
    }
    // Neg: 12 numbers. Not: bool, 8 integers.
    check(&cells, 12 + 9);
}

#[test]
fn binary_operations() {
    let mut cells = Vec::new();
    for ty in numbers() {
        for op in BinaryOp::ALL {
            let data = move |args: &[Value]| InstData::Binary {
                op,
                args: [args[0], args[1]],
            };
            cells.push(cell(format!("{op:?} {ty:?}"), &[ty, ty], ty, data));
        }
    }
    // Bool has 3, each of 8 integers all 12, each of 4 floats 6: the remainder is a call by now.
    check(&cells, 3 + 8 * 12 + 4 * 6);
}

#[test]
fn comparisons_and_choices() {
    let mut cells = Vec::new();
    let bool = Operand::Scalar(Scalar::Bool);
    let pointer = Operand::Pointer(Scalar::F32, AddressSpace::Global);
    for ty in numbers().into_iter().chain([pointer]) {
        for op in CompareOp::ALL {
            let data = move |args: &[Value]| InstData::Compare {
                op,
                args: [args[0], args[1]],
            };
            cells.push(cell(format!("{op:?} {ty:?}"), &[ty, ty], bool, data));
        }
        let data = |args: &[Value]| InstData::Select {
            cond: args[0],
            if_true: args[1],
            if_false: args[2],
        };
        cells.push(cell(format!("select {ty:?}"), &[bool, ty, ty], ty, data));
    }
    // Comparisons of 12 numbers and a pointer, 2 of bools, choices of all 29 + 1 types.
    check(&cells, 13 * 6 + 2 + 30);
}

#[test]
fn conversions() {
    let mut cells = Vec::new();
    for from in Scalar::ALL {
        for to in Scalar::ALL {
            let data = |args: &[Value]| InstData::Cast { arg: args[0] };
            let (from, to) = (Operand::Scalar(from), Operand::Scalar(to));
            cells.push(cell(format!("{from:?} as {to:?}"), &[from], to, data));
        }
    }
    // Everything to 12 numbers, and bool to bool.
    check(&cells, 13 * 12 + 1);
}

#[test]
fn reinterpretations() {
    let mut types = numbers();
    types.push(Operand::Pointer(Scalar::F32, AddressSpace::Global));
    types.push(Operand::Pointer(Scalar::U8, AddressSpace::Global));
    types.push(Operand::Pointer(Scalar::U8, AddressSpace::Generic));
    let mut m = Module::new("sizes");
    let mut cells = Vec::new();
    let mut legal = 0;
    for &from in &types {
        for &to in &types {
            let data = |args: &[Value]| InstData::Bitcast { arg: args[0] };
            cells.push(cell(format!("{from:?} seen as {to:?}"), &[from], to, data));
            let bool = Operand::Scalar(Scalar::Bool);
            let size = |m: &mut Module, o: Operand| {
                let ty = o.ty(m);
                m.types.layout(ty)
            };
            let spaces = match (from, to) {
                (Operand::Pointer(_, a), Operand::Pointer(_, b)) => a == b,
                _ => true,
            };
            let sizes = size(&mut m, from).map(|l| l.size) == size(&mut m, to).map(|l| l.size);
            legal += usize::from(sizes && spaces && from != bool && to != bool);
        }
    }
    check(&cells, legal);
}

#[test]
fn address_spaces() {
    let mut cells = Vec::new();
    for from in AddressSpace::ALL {
        for to in AddressSpace::ALL {
            let data = |args: &[Value]| InstData::SpaceCast { arg: args[0] };
            let name = format!("{from:?} to {to:?}");
            let from = Operand::ReadOnly(Scalar::U32, from);
            cells.push(cell(
                name,
                &[from],
                Operand::ReadOnly(Scalar::U32, to),
                data,
            ));
        }
        for scalar in Scalar::ALL {
            let data = |args: &[Value]| InstData::Load {
                ptr: args[0],
                volatile: false,
            };
            let ptr = Operand::Pointer(scalar, from);
            cells.push(cell(
                format!("load {ptr:?}"),
                &[ptr],
                Operand::Scalar(scalar),
                data,
            ));
        }
    }
    // To itself, and between generic and the 5 others, but never to parameters; loads of all.
    check(&cells, 5 + 9 + 6 * 13);
}

#[test]
fn atomics() {
    let mut cells = Vec::new();
    let orders = [
        (Ordering::Relaxed, Scope::Device),
        (Ordering::Relaxed, Scope::System),
        (Ordering::AcquireRelease, Scope::Block),
    ];
    for space in AddressSpace::ALL {
        for scalar in Scalar::ALL {
            let ptr = Operand::Pointer(scalar, space);
            let value = Operand::Scalar(scalar);
            for (ordering, scope) in orders {
                for op in AtomicOp::ALL {
                    let data = move |args: &[Value]| InstData::AtomicRmw {
                        op,
                        ptr: args[0],
                        value: args[1],
                        ordering,
                        scope,
                    };
                    let name = format!("{op:?} {ordering:?} {scope:?} {ptr:?}");
                    cells.push(cell(name, &[ptr, value], value, data));
                }
                let data = move |args: &[Value]| InstData::AtomicCas {
                    ptr: args[0],
                    expected: args[1],
                    new: args[2],
                    ordering,
                    scope,
                };
                let name = format!("cas {ordering:?} {scope:?} {ptr:?}");
                cells.push(cell(name, &[ptr, value, value], value, data));
            }
        }
    }
    // In 3 spaces and 3 orders: all 7 of 4 integers, 2 more of one, 2 of 2 floats, swaps of 6 integers, additions of
    // `f16`, and on the newer one of `bf16`.
    let older = 4 * 7 + 2 + 2 * 2 + 6 + 1;
    check_each(&cells, [9 * older, 9 * (older + 1)]);
}

#[test]
fn atomics_of_words() {
    let mut cells = Vec::new();
    let value = Operand::Vector(Scalar::U64, 2);
    for space in [
        AddressSpace::Generic,
        AddressSpace::Global,
        AddressSpace::Shared,
    ] {
        for ordering in Ordering::ALL {
            for scope in Scope::ALL {
                let ptr = Operand::PointerToPair(space);
                let exchange = move |args: &[Value]| InstData::AtomicRmw {
                    op: AtomicOp::Exchange,
                    ptr: args[0],
                    value: args[1],
                    ordering,
                    scope,
                };
                let name = format!("exchange {ordering:?} {scope:?} {space:?}");
                cells.push(cell(name, &[ptr, value], value, exchange));
                let swap = move |args: &[Value]| InstData::AtomicCas {
                    ptr: args[0],
                    expected: args[1],
                    new: args[2],
                    ordering,
                    scope,
                };
                let name = format!("cas {ordering:?} {scope:?} {space:?}");
                cells.push(cell(name, &[ptr, value, value], value, swap));
            }
        }
    }
    // In 3 spaces, 5 orders and 3 scopes, on the newer one.
    check_each(&cells, [0, 2 * 3 * 5 * 3]);
}

#[test]
fn atomic_loads_and_stores() {
    let mut cells = Vec::new();
    let loads = [
        Ordering::Relaxed,
        Ordering::Acquire,
        Ordering::SequentiallyConsistent,
    ];
    let stores = [
        Ordering::Relaxed,
        Ordering::Release,
        Ordering::SequentiallyConsistent,
    ];
    for space in AddressSpace::ALL {
        for scalar in Scalar::ALL {
            let (ptr, value) = (Operand::Pointer(scalar, space), Operand::Scalar(scalar));
            for scope in Scope::ALL {
                for ordering in loads {
                    let data = move |args: &[Value]| InstData::AtomicLoad {
                        ptr: args[0],
                        ordering,
                        scope,
                    };
                    let name = format!("atomic load {ordering:?} {scope:?} {ptr:?}");
                    cells.push(cell(name, &[ptr], value, data));
                }
                for ordering in stores {
                    let data = move |args: &[Value]| InstData::AtomicStore {
                        ptr: args[0],
                        value: args[1],
                        ordering,
                        scope,
                    };
                    let name = format!("atomic store {ordering:?} {scope:?} {ptr:?}");
                    cells.push(cell(name, &[ptr, value], Operand::Nothing, data));
                }
            }
        }
    }
    // In 3 spaces and 3 scopes: 3 loads and 3 stores of every scalar.
    check(&cells, 9 * 6 * Scalar::ALL.len());
}

#[test]
fn parts_and_constants() {
    let mut cells = Vec::new();
    for ty in numbers() {
        let zero = |_: &[Value]| InstData::Const(Constant::Zero);
        cells.push(cell(format!("zero {ty:?}"), &[], ty, zero));
        let Operand::Vector(element, lanes) = ty else {
            continue;
        };
        let lane = Operand::Scalar(element);
        let extract = move |args: &[Value]| InstData::Extract {
            aggregate: args[0],
            index: u32::from(lanes) - 1,
        };
        cells.push(cell(format!("extract {ty:?}"), &[ty], lane, extract));
        let insert = |args: &[Value]| InstData::Insert {
            aggregate: args[0],
            index: 1,
            value: args[1],
        };
        cells.push(cell(format!("insert {ty:?}"), &[ty, lane], ty, insert));
        let construct = |args: &[Value]| InstData::Construct {
            parts: args.iter().copied().collect(),
        };
        let parts = vec![lane; usize::from(lanes)];
        cells.push(cell(format!("construct {ty:?}"), &parts, ty, construct));
    }
    let legal = cells.len();
    check(&cells, legal);
}
