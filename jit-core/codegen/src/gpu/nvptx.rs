//! NVIDIA's GPUs, as lowering sees them (LLVM, "User Guide for NVPTX Back-end").
//!
//! A relaxed read-modify-write of device scope is an `atomicrmw`, which LLVM understands and prints as
//! plain `atom` (PTX ISA, "atom": relaxed, `.gpu`). LLVM drops the ordering and scope of an `atomicrmw`, so
//! every other one is inline PTX that names both.

use inkwell::attributes::AttributeLoc;
use inkwell::types::BasicTypeEnum;
use inkwell::values::{BasicValueEnum, CallSiteValue, InstructionValue, IntValue, PointerValue};

use kiln_ir::target::PtxTarget;
use kiln_ir::{
    AddressSpace, AtomicOp, Choices, Effects, LaunchBounds, Module, Ordering, Processor, Scalar,
    Scope,
};

use super::hooked_ptx;
use super::lower::{Atomic, Dialect, Order, ParamBlock, Point};
use crate::hooks::{InlineAssembly, OperationError};
use crate::llvm::ask::value_of;
use crate::llvm::error::BackendError;
use crate::llvm::optimize::{OptLevel, has_packs};

/// LLVM's calling convention of a kernel (`ptx_kernel`).
pub(super) const PTX_KERNEL: u32 = 71;

/// Inline PTX behind which LLVM does not see where an address comes from, with its constraints.
pub(crate) const HIDDEN_ADDRESS: (&str, &str) = ("mov.b64 $0, $1;", "=l,l");

/// Inline PTX behind which LLVM does not see where a number of 32 bits comes from, with its constraints.
pub(crate) const HIDDEN_WORD: (&str, &str) = ("mov.b32 $0, $1;", "=r,r");

/// `memory(argmem: readwrite)`: what a relaxed atomic reaches and orders.
const ARGUMENT_MEMORY: u64 = 0b11;

/// Whether an instruction is a barrier of the block.
pub(super) fn is_barrier(instruction: InstructionValue<'_>) -> bool {
    let callee = CallSiteValue::try_from(instruction).ok();
    let callee = callee.and_then(|call| call.get_called_fn_value());
    callee.is_some_and(|callee| {
        callee
            .get_name()
            .to_bytes()
            .starts_with(b"llvm.nvvm.barrier.")
    })
}

/// The names of dimensions in special registers.
const AXES: [char; 3] = ['x', 'y', 'z'];

impl Dialect for PtxTarget {
    fn processor(&self) -> Processor {
        PtxTarget::processor(*self)
    }

    fn kernel_convention(&self) -> u32 {
        PTX_KERNEL
    }

    fn kernel_attributes(
        &self,
        bounds: Option<LaunchBounds>,
        choices: Choices,
    ) -> Vec<(&'static str, String)> {
        let promises = [
            (
                "nvvm.maxntid",
                bounds.map_or(0, |bounds| bounds.max_threads),
            ),
            (
                "nvvm.minctasm",
                bounds.map_or(0, |bounds| bounds.min_blocks),
            ),
            ("nvvm.maxnreg", choices.max_registers),
        ];
        let made = promises.into_iter().filter(|(_, number)| *number > 0);
        made.map(|(name, number)| (name, number.to_string()))
            .collect()
    }

    fn param_block(&self) -> ParamBlock {
        ParamBlock {
            space: None,
            by_value: "byval",
            mark: Some("nvvm.grid_constant"),
        }
    }

    fn passes(&self, level: OptLevel, kernel: &Module) -> String {
        level.ptx_pipeline(has_packs(self.sm, kernel))
    }

    fn scope(&self, scope: Scope) -> &'static str {
        match scope {
            Scope::Block => "block",
            Scope::Device => "device",
            Scope::System => "",
        }
    }

    fn address_register(&self) -> char {
        'l'
    }

    fn thread_index<'ctx>(
        &self,
        at: &Point<'_, '_, 'ctx>,
        axis: usize,
    ) -> Result<IntValue<'ctx>, BackendError> {
        at.number(&format!("llvm.nvvm.read.ptx.sreg.tid.{}", AXES[axis]), &[])
    }

    fn block_index<'ctx>(
        &self,
        at: &Point<'_, '_, 'ctx>,
        axis: usize,
    ) -> Result<IntValue<'ctx>, BackendError> {
        let register = format!("llvm.nvvm.read.ptx.sreg.ctaid.{}", AXES[axis]);
        at.number(&register, &[])
    }

    /// A special register (PTX ISA, `%dynamic_smem_size`).
    fn dynamic_shared_bytes<'ctx>(
        &self,
        at: &Point<'_, '_, 'ctx>,
    ) -> Result<IntValue<'ctx>, BackendError> {
        let register = ("mov.u32 $0, %dynamic_smem_size;", "=r");
        let bytes = at.asm(register, at.int(32).into(), &[], Effects::None)?;
        Ok(bytes.into_int_value())
    }

    fn barrier(&self, at: &Point<'_, '_, '_>) -> Result<(), BackendError> {
        let barrier = at.int(32).const_zero();
        at.call(
            "llvm.nvvm.barrier.cta.sync.aligned.all",
            &[],
            &[barrier.into()],
        )?;
        Ok(())
    }

    fn publish(&self, at: &Point<'_, '_, '_>) -> Result<(), BackendError> {
        at.call("llvm.nvvm.membar.sys", &[], &[])?;
        Ok(())
    }

    /// `exit` (PTX ISA, "Control Flow Instructions").
    fn end_thread(&self, at: &Point<'_, '_, '_>) -> Result<(), BackendError> {
        at.asm_statement("exit;")
    }

    fn check_assembly<'ctx>(
        &self,
        assembly: InlineAssembly<'_>,
        result: Option<BasicTypeEnum<'ctx>>,
        args: &[BasicValueEnum<'ctx>],
    ) -> Result<(), OperationError> {
        hooked_ptx::check(assembly, result, args)
    }

    /// LLVM 22 takes every load of global memory that nobody writes for one of the read-only cache, and
    /// its code generator ends the process on an atomic one.
    fn atomic_address<'ctx>(
        &self,
        at: &Point<'_, '_, 'ctx>,
        address: PointerValue<'ctx>,
    ) -> Result<PointerValue<'ctx>, BackendError> {
        let (ty, args) = (address.get_type().into(), [address.into()]);
        let hidden = at.asm(HIDDEN_ADDRESS, ty, &args, Effects::None)?;
        Ok(hidden.into_pointer_value())
    }

    /// [`ordered`] (PTX ISA, "atom").
    fn atomic<'ctx>(
        &self,
        at: &Point<'_, '_, 'ctx>,
        (operation, scalar): (Atomic, Scalar),
        (address, space): (PointerValue<'ctx>, AddressSpace),
        operands: &[BasicValueEnum<'ctx>],
        order: Order,
    ) -> Result<Option<BasicValueEnum<'ctx>>, BackendError> {
        let operation = match operation {
            Atomic::Modify(op)
                if order == (Ordering::Relaxed, Scope::Device) && !op.goes_round() =>
            {
                return Ok(None);
            }
            Atomic::Modify(op) => ptx_operation(op, scalar),
            Atomic::CompareAndSwap => format!("cas.b{}", scalar.bits()),
        };
        let bits = match scalar.is_half() {
            // A register has the bits of a half, whatever LLVM takes its type for.
            true => address.get_type().get_context().i16_type().into(),
            false => operands[0].get_type(),
        };
        let change = Change {
            operation: &operation,
            register: ptx_register(scalar),
            bits,
            place: (address, space),
        };
        ordered(at, &change, operands, order).map(Some)
    }

    /// `atom.<order>.<scope>.<space>.cas.b128` and `.exch.b128` (PTX ISA, "atom": from 8.4 on, of sm_90). Of this size LLVM
    /// 22 would keep ordering and scope; as inline PTX they are written as all others, and known to code for GPUs on the
    /// host, for which LLVM would call a function of the host's library.
    fn atomic_of_words<'ctx>(
        &self,
        at: &Point<'_, '_, 'ctx>,
        place: (PointerValue<'ctx>, AddressSpace),
        operands: &[IntValue<'ctx>],
        order: Order,
    ) -> Result<Option<BasicValueEnum<'ctx>>, BackendError> {
        let operation = match operands.len() {
            1 => "exch.b128",
            _ => "cas.b128",
        };
        let change = Change {
            operation,
            register: 'q',
            bits: operands[0].get_type().into(),
            place,
        };
        let operands: Vec<_> = operands.iter().map(|&operand| operand.into()).collect();
        ordered(at, &change, &operands, order).map(Some)
    }

    fn towards_zero<'ctx>(
        &self,
        at: &Point<'_, '_, 'ctx>,
        value: IntValue<'ctx>,
        from: Scalar,
    ) -> Result<BasicValueEnum<'ctx>, BackendError> {
        let name = match (from.is_signed_int(), value.get_type().get_bit_width()) {
            (true, ..=32) => "llvm.nvvm.i2f.rz",
            (false, ..=32) => "llvm.nvvm.ui2f.rz",
            (true, _) => "llvm.nvvm.ll2f.rz",
            (false, _) => "llvm.nvvm.ull2f.rz",
        };
        at.value(name, &[], &[value.into()])
    }
}

/// A read-modify-write that is inline PTX.
struct Change<'a, 'ctx> {
    /// Operation and type, as in `add.u32`.
    operation: &'a str,
    /// The inline assembly constraint for its registers.
    register: char,
    /// What a register holds.
    bits: BasicTypeEnum<'ctx>,
    place: (PointerValue<'ctx>, AddressSpace),
}

/// `atom.<order>.<scope>.<space>.<operation>`; the old value.
fn ordered<'ctx>(
    at: &Point<'_, '_, 'ctx>,
    change: &Change<'_, 'ctx>,
    operands: &[BasicValueEnum<'ctx>],
    order: Order,
) -> Result<BasicValueEnum<'ctx>, BackendError> {
    let ordering = match order.0 {
        Ordering::SequentiallyConsistent => {
            at.fence(order);
            Ordering::Acquire
        }
        weaker => weaker,
    };
    let (order, scope) = (ptx_ordering(ordering), ptx_scope(order.1));
    let Change {
        operation,
        register,
        bits,
        place: (address, space),
    } = *change;
    let space = ptx_space(space);
    let mut template = format!("atom.{order}.{scope}{space}.{operation} $0, [$1]");
    let mut constraints = format!("={register},l");
    for i in 0..operands.len() {
        template.push_str(&format!(", ${}", i + 2));
        constraints.push_str(&format!(",{register}"));
    }
    template.push(';');
    constraints.push_str(",~{memory}");
    let ty = operands[0].get_type();
    let operands = operands
        .iter()
        .map(|&operand| at.builder.build_bit_cast(operand, bits, ""));
    let mut args = vec![address.into()];
    args.extend(operands.collect::<Result<Vec<_>, _>>()?);
    let assembly = (template.as_str(), constraints.as_str());
    let call = at.asm_call(assembly, Some(bits), &args, Effects::Memory)?;
    if ordering == Ordering::Relaxed {
        let attribute = at.attribute("memory", ARGUMENT_MEMORY);
        call.add_attribute(AttributeLoc::Function, attribute);
    }
    let old = value_of(call, &template)?;
    Ok(at.builder.build_bit_cast(old, ty, "")?)
}

fn ptx_space(space: AddressSpace) -> &'static str {
    match space {
        AddressSpace::Global => ".global",
        AddressSpace::Shared => ".shared",
        _ => "",
    }
}

/// The operation and type of an `atom` instruction. There is no signed 64-bit addition, nor need
/// for one.
fn ptx_operation(op: AtomicOp, scalar: Scalar) -> String {
    let bits = scalar.bits();
    let signed = if scalar.is_signed_int() { 's' } else { 'u' };
    match op {
        AtomicOp::Add if scalar.is_half() => format!("add.noftz.{}", scalar.name()),
        AtomicOp::Add if scalar.is_float() => format!("add.f{bits}"),
        AtomicOp::Add => format!("add.u{bits}"),
        AtomicOp::Min => format!("min.{signed}{bits}"),
        AtomicOp::Max => format!("max.{signed}{bits}"),
        AtomicOp::And => format!("and.b{bits}"),
        AtomicOp::Or => format!("or.b{bits}"),
        AtomicOp::Xor => format!("xor.b{bits}"),
        AtomicOp::Exchange => format!("exch.b{bits}"),
        AtomicOp::Increment => format!("inc.u{bits}"),
        AtomicOp::Decrement => format!("dec.u{bits}"),
    }
}

fn ptx_ordering(ordering: Ordering) -> &'static str {
    match ordering {
        Ordering::Relaxed => "relaxed",
        Ordering::Acquire => "acquire",
        Ordering::Release => "release",
        // After the fence that makes the difference.
        Ordering::AcquireRelease | Ordering::SequentiallyConsistent => "acq_rel",
    }
}

fn ptx_scope(scope: Scope) -> &'static str {
    match scope {
        Scope::Block => "cta",
        Scope::Device => "gpu",
        Scope::System => "sys",
    }
}

/// The inline assembly constraint for a scalar's register (NVPTX: `h` 16, `r` 32, `l` 64 bits).
fn ptx_register(scalar: Scalar) -> char {
    match scalar {
        Scalar::F32 => 'f',
        Scalar::F64 => 'd',
        Scalar::I64 | Scalar::U64 => 'l',
        Scalar::I32 | Scalar::U32 => 'r',
        Scalar::Bool
        | Scalar::I8
        | Scalar::I16
        | Scalar::U8
        | Scalar::U16
        | Scalar::F16
        | Scalar::BF16 => 'h',
    }
}
