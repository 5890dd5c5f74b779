//! Loads through generic addresses stay apart.
//!
//! Behind the passes, LLVM 22's code generator makes one load of three words of three loads side by side. Where it
//! also finds that all lanes load the same constant memory, and the address is a generic one, it selects
//! `s_load_dwordx3`, which gfx90a does not have; the size of that instruction, which its branch relaxation
//! asks for, ends the process. A cast to a generic address that the passes left is enough: large kernels get
//! too few of them, and parameters that are passed by value are constant memory.

use inkwell::attributes::AttributeLoc;
use inkwell::context::Context;
use inkwell::module::Module;
use inkwell::values::{BasicValueEnum, FunctionValue, InstructionOpcode, InstructionValue};

use kiln_ir::AddressSpace;

use crate::gpu::inline_ptx::enum_attribute;
use crate::gpu::types::space_number;

/// Marks the functions in which LLVM must not put loads together.
pub(super) fn keep<'ctx>(context: &'ctx Context, module: &Module<'ctx>) {
    // LLVM's load and store vectorizer leaves such functions as they are; nothing else on AMD's GPUs asks.
    let apart = enum_attribute(context, "noimplicitfloat", 0);
    for function in module.get_functions().filter(|f| loads_generic(*f)) {
        function.add_attribute(AttributeLoc::Function, apart);
    }
}

fn loads_generic(function: FunctionValue<'_>) -> bool {
    let blocks = function.get_basic_block_iter();
    let mut instructions = blocks.flat_map(|block| block.get_instructions());
    instructions.any(is_generic_load)
}

fn is_generic_load(instruction: InstructionValue<'_>) -> bool {
    if instruction.get_opcode() != InstructionOpcode::Load {
        return false;
    }
    let address = instruction
        .get_operand(0)
        .and_then(|operand| operand.value());
    let Some(BasicValueEnum::PointerValue(address)) = address else {
        return false;
    };
    address.get_type().get_address_space() == space_number(AddressSpace::Generic).into()
}
