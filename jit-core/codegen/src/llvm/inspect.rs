//! What instructions of a module are, where inkwell does not say.

use std::collections::HashMap;
use std::ffi::c_char;

use inkwell::basic_block::BasicBlock;
use inkwell::llvm_sys::LLVMOpcode;
use inkwell::llvm_sys::core::{
    LLVMGetCalledValue, LLVMGetConstOpcode, LLVMGetInlineAsmAsmString,
    LLVMGetInlineAsmConstraintString, LLVMGetNumSuccessors, LLVMGetOperand, LLVMGetSuccessor,
    LLVMGetValueName2, LLVMIsAConstantExpr, LLVMIsAFunction, LLVMIsAGlobalVariable,
    LLVMIsAInlineAsm, LLVMIsAtomic, LLVMIsGlobalConstant,
};
use inkwell::llvm_sys::prelude::LLVMValueRef;
use inkwell::targets::TargetData;
use inkwell::types::BasicTypeEnum;
use inkwell::values::{
    AsValueRef as _, BasicValueEnum, FunctionValue, GlobalValue, InstructionOpcode,
    InstructionValue,
};

/// What a call calls.
pub(crate) enum Called {
    /// Inline assembly: its template and its constraints.
    Assembly(String, String),
    /// A function, by name.
    Function(String),
}

/// What an instruction calls, if it is a call, and of something that has a name.
pub(crate) fn called(instruction: InstructionValue<'_>) -> Option<Called> {
    if instruction.get_opcode() != InstructionOpcode::Call {
        return None;
    }
    if let Some((template, constraints)) = assembly_of(instruction) {
        return Some(Called::Assembly(template, constraints));
    }
    // SAFETY: the instruction is a call, and what is called is asked as what it is.
    unsafe {
        let value = LLVMGetCalledValue(instruction.as_value_ref());
        (!LLVMIsAFunction(value).is_null())
            .then(|| Called::Function(text_of(value, LLVMGetValueName2)))
    }
}

/// The template and the constraints, if what a call calls is inline assembly.
pub(crate) fn assembly_of(call: InstructionValue<'_>) -> Option<(String, String)> {
    // SAFETY: the instruction is a call of a live module; what it calls is asked as what it is.
    unsafe {
        let called = LLVMGetCalledValue(call.as_value_ref());
        (!LLVMIsAInlineAsm(called).is_null()).then(|| {
            let template = text_of(called, LLVMGetInlineAsmAsmString);
            (template, text_of(called, LLVMGetInlineAsmConstraintString))
        })
    }
}

/// The bytes of the constant that an address is of, whatever address space it is seen in; none of another address.
pub(crate) fn text_at(address: BasicValueEnum<'_>) -> Option<Vec<u8>> {
    let mut value = address.as_value_ref();
    // SAFETY: each value is one of a live module, and is asked as what it is.
    let initializer = unsafe {
        while !LLVMIsAConstantExpr(value).is_null() {
            // An address within the constant is not that of its bytes.
            if LLVMGetConstOpcode(value) != LLVMOpcode::LLVMAddrSpaceCast {
                return None;
            }
            value = LLVMGetOperand(value, 0);
        }
        if LLVMIsAGlobalVariable(value).is_null() || LLVMIsGlobalConstant(value) == 0 {
            return None;
        }
        GlobalValue::new(value).get_initializer()?
    };
    match initializer {
        BasicValueEnum::ArrayValue(text) => text.as_const_string().map(<[u8]>::to_vec),
        _ => None,
    }
}

/// The text that a function of LLVM gives, as a pointer and a length.
///
/// # Safety
/// The function may be asked about the value.
unsafe fn text_of(
    value: LLVMValueRef,
    ask: unsafe extern "C" fn(LLVMValueRef, *mut usize) -> *const c_char,
) -> String {
    let mut length = 0;
    // SAFETY: the caller's promise; the text belongs to the value.
    let bytes = unsafe {
        let text = ask(value, &raw mut length);
        std::slice::from_raw_parts(text.cast::<u8>(), length)
    };
    String::from_utf8_lossy(bytes).into_owned()
}

/// Whether other threads may wait for what an instruction does, or it waits for them: atomics, fences and
/// volatile accesses.
pub(crate) fn others_may_wait(instruction: InstructionValue<'_>) -> bool {
    match instruction.get_opcode() {
        InstructionOpcode::AtomicRMW
        | InstructionOpcode::AtomicCmpXchg
        | InstructionOpcode::Fence => true,
        InstructionOpcode::Load | InstructionOpcode::Store => {
            // SAFETY: the instruction is alive.
            let atomic = unsafe { LLVMIsAtomic(instruction.as_value_ref()) } != 0;
            atomic || instruction.get_volatile().unwrap_or(false)
        }
        _ => false,
    }
}

/// Blocks of which every cycle has one: those that a branch of the block itself or of a later one goes to.
pub(crate) fn loop_heads(function: FunctionValue<'_>) -> Vec<BasicBlock<'_>> {
    let blocks = function.get_basic_blocks();
    let order: HashMap<_, _> = blocks.iter().zip(0..).map(|(&b, n)| (b, n)).collect();
    let mut is_head = vec![false; blocks.len()];
    for (from, block) in blocks.iter().enumerate() {
        for target in successors(*block) {
            let to = order.get(&target).copied().unwrap_or(usize::MAX);
            if to <= from {
                is_head[to] = true;
            }
        }
    }
    let heads = blocks.into_iter().zip(is_head).filter(|(_, head)| *head);
    heads.map(|(block, _)| block).collect()
}

/// The blocks that a block may go on with.
pub(crate) fn successors(block: BasicBlock<'_>) -> Vec<BasicBlock<'_>> {
    let Some(end) = block.get_terminator() else {
        return Vec::new();
    };
    // SAFETY: a terminator of the module, and successors that it has.
    let refs: Vec<_> = unsafe {
        let count = LLVMGetNumSuccessors(end.as_value_ref());
        (0..count)
            .map(|n| LLVMGetSuccessor(end.as_value_ref(), n))
            .collect()
    };
    // SAFETY: each is a block of the same function.
    let blocks = refs.into_iter().map(|b| unsafe { BasicBlock::new(b) });
    blocks.flatten().collect()
}

/// Bytes of stack for the arguments of a call, which few instructions are.
const CALL_BYTES: u64 = 32;

/// Bytes of stack that a function needs at most: its variables, and every value in a slot of its
/// own, as code that is not optimized has them.
pub(crate) fn stack_of(function: FunctionValue<'_>, data: &TargetData) -> u64 {
    let instructions = function
        .get_basic_block_iter()
        .flat_map(|block| block.get_instructions());
    let of_one = |instruction: InstructionValue<'_>| {
        let variable = instruction.get_allocated_type().ok();
        let ty = variable.or(BasicTypeEnum::try_from(instruction.get_type()).ok());
        ty.map_or(0, |ty| data.get_abi_size(&ty))
            .next_multiple_of(16)
            + CALL_BYTES
    };
    instructions.map(of_one).sum()
}
