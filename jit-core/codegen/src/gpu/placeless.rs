//! Addresses that are computed from constants alone, which LLVM 22's inference of address spaces
//! forgets.
//!
//! `infer-address-spaces` follows generic addresses to the memories that they point into. What begins
//! with null (or another number) points nowhere, so it gets no memory; where that then meets an address
//! into shared memory, by a `phi` or `select`, the pass writes no operand at all for it, and whatever
//! looks at the instruction next ends the process (`docs/upstream/offset_null.ll`). In a kernel it takes
//! a slice that is nothing at first and part of shared memory later.
//!
//! A frozen constant is the same constant, but not one that the pass looks through: what is computed
//! from it is generic. Passes that come after fold it back. So constants are frozen where nothing else
//! says of an address where it points, before each run of the inference: those in the pipeline of
//! passes, and the one in the code generator.

use std::collections::{HashMap, HashSet};

use inkwell::context::Context;
use inkwell::llvm_sys::LLVMOpcode;
use inkwell::llvm_sys::core::{LLVMGetConstOpcode, LLVMGetOperand, LLVMIsAConstantExpr};
use inkwell::llvm_sys::prelude::LLVMValueRef;
use inkwell::module::Module;
use inkwell::types::AnyTypeEnum;
use inkwell::values::{
    AsValueRef as _, BasicValueEnum, CallSiteValue, FunctionValue, InstructionOpcode,
    InstructionValue, PointerValue,
};

use kiln_ir::{AddressSpace, TypeTable};

use super::types::space_number;
use crate::llvm::bindings::build_freeze;
use crate::llvm::error::BackendError;
use crate::llvm::machine::Machine;
use crate::llvm::session::Session;

/// The pass before which constants are frozen.
const INFERENCE: &str = "infer-address-spaces";

/// Runs a pipeline of passes, and freezes constants before each inference of address spaces if the
/// kernel has types of addresses that it may have to be inferred for.
///
/// # Errors
/// As [`Machine::run_passes`].
pub(super) fn run_gpu_passes<'ctx>(
    machine: &Machine,
    session: &Session<'_>,
    (context, module): (&'ctx Context, &Module<'ctx>),
    types: &TypeTable,
    pipeline: &str,
) -> Result<(), BackendError> {
    match has_generic_addresses(types) {
        true => run_freezing(machine, session, (context, module), pipeline),
        false => machine.run_passes(session, module, pipeline),
    }
}

/// Runs a pipeline of passes, and freezes constants before each inference of address spaces.
///
/// # Errors
/// As [`Machine::run_passes`].
pub(super) fn run_freezing<'ctx>(
    machine: &Machine,
    session: &Session<'_>,
    (context, module): (&'ctx Context, &Module<'ctx>),
    pipeline: &str,
) -> Result<(), BackendError> {
    for part in before_each_inference(pipeline) {
        freeze_placeless(context, module)?;
        machine.run_passes(session, module, &part)?;
    }
    Ok(())
}

/// Freezes constants before the inference in the code generator, which makes values of variables
/// first.
///
/// # Errors
/// As [`Machine::run_passes`].
pub(super) fn prepare_emission<'ctx>(
    machine: &Machine,
    session: &Session<'_>,
    (context, module): (&'ctx Context, &Module<'ctx>),
    types: &TypeTable,
) -> Result<(), BackendError> {
    match has_generic_addresses(types) {
        true => {
            machine.run_passes(session, module, "function(sroa<modify-cfg>)")?;
            freeze_placeless(context, module)
        }
        false => Ok(()),
    }
}

/// Whether a kernel may have addresses of which the inference has to find out the memory.
pub(super) fn has_generic_addresses(types: &TypeTable) -> bool {
    let mut addresses = types.iter().filter_map(|(ty, _)| types.address(ty));
    addresses.any(|address| address.space == AddressSpace::Generic)
}

/// A pipeline in parts that each begin with the inference, but for the first. An inference that is
/// nested deeper than in `function(..)` is left where it is.
fn before_each_inference(pipeline: &str) -> Vec<String> {
    let (mut parts, mut opening, mut start) = (Vec::new(), "", 0);
    for (at, _) in pipeline.match_indices(INFERENCE) {
        let passes = &pipeline[start..at];
        let (passes, closing, next) = match *open_nests(&pipeline[..at]) {
            [] => (passes, "", ""),
            ["function"] => match passes.strip_suffix("function(") {
                Some(passes) => (passes, "", "function("),
                None => (passes, ")", "function("),
            },
            _ => continue,
        };
        parts.push(format!(
            "{opening}{}{closing}",
            passes.trim_end_matches(',')
        ));
        (opening, start) = (next, at);
    }
    parts.push(format!("{opening}{}", &pipeline[start..]));
    parts.retain(|part| !part.is_empty());
    parts
}

/// The names of what is open at the end of the beginning of a pipeline.
fn open_nests(beginning: &str) -> Vec<&str> {
    let mut nests = Vec::new();
    let mut word = 0;
    for (at, c) in beginning.char_indices() {
        match c {
            '(' => nests.push(&beginning[word..at]),
            ')' => drop(nests.pop()),
            ',' => {}
            _ => continue,
        }
        word = at + 1;
    }
    nests
}

/// Freezes the constants from which a generic address is computed that comes from nothing else.
///
/// # Errors
/// If LLVM's builder refuses, which it does not.
fn freeze_placeless<'ctx>(
    context: &'ctx Context,
    module: &Module<'ctx>,
) -> Result<(), BackendError> {
    for function in module.get_functions() {
        freeze_in(context, function)?;
    }
    Ok(())
}

fn freeze_in<'ctx>(
    context: &'ctx Context,
    function: FunctionValue<'ctx>,
) -> Result<(), BackendError> {
    let placeless = placeless(function);
    let first = function
        .get_first_basic_block()
        .and_then(|block| block.get_first_instruction());
    let Some(first) = first.filter(|_| !placeless.is_empty()) else {
        return Ok(());
    };
    let builder = context.create_builder();
    builder.position_before(&first);
    let mut frozen: HashMap<PointerValue<'ctx>, BasicValueEnum<'ctx>> = HashMap::new();
    for instruction in placeless {
        for (n, address) in addresses(instruction) {
            if is_placeless_constant(address) {
                let constant = *frozen
                    .entry(address)
                    .or_insert_with(|| build_freeze(&builder, address.into()));
                instruction.set_operand(n, constant);
            }
        }
    }
    Ok(())
}

/// Instructions that compute a generic address from nothing but constants and each other's results.
fn placeless(function: FunctionValue<'_>) -> Vec<InstructionValue<'_>> {
    let instructions = function
        .get_basic_block_iter()
        .flat_map(|block| block.get_instructions());
    let mut found: Vec<_> = instructions
        .filter(|&i| computes_generic_address(i))
        .collect();
    // From all of them those that are not, until none is found: so loops keep each other.
    loop {
        let among: HashSet<_> = found.iter().copied().collect();
        let before = found.len();
        found.retain(|&instruction| {
            addresses(instruction)
                .iter()
                .all(|&(_, address)| match address.as_instruction() {
                    Some(source) => among.contains(&source),
                    None => is_placeless_constant(address),
                })
        });
        if found.len() == before {
            return found;
        }
    }
}

/// Whether an instruction is one that the inference follows addresses through.
fn computes_generic_address(instruction: InstructionValue<'_>) -> bool {
    let AnyTypeEnum::PointerType(ty) = instruction.get_type() else {
        return false;
    };
    let generic = space_number(AddressSpace::Generic).into();
    ty.get_address_space() == generic && !addresses(instruction).is_empty()
}

/// The operands that are addresses, with their numbers, of an instruction that computes one from
/// them in the same memory.
fn addresses(instruction: InstructionValue<'_>) -> Vec<(u32, PointerValue<'_>)> {
    let operands = match instruction.get_opcode() {
        InstructionOpcode::GetElementPtr | InstructionOpcode::BitCast => 0..1,
        InstructionOpcode::Phi => 0..instruction.get_num_operands(),
        InstructionOpcode::Select => 1..3,
        InstructionOpcode::Call if is_mask(instruction) => 0..1,
        _ => 0..0,
    };
    let address = |n| match instruction.get_operand(n)?.value()? {
        BasicValueEnum::PointerValue(address) => Some((n, address)),
        _ => None,
    };
    operands.filter_map(address).collect()
}

fn is_mask(instruction: InstructionValue<'_>) -> bool {
    let call = CallSiteValue::try_from(instruction).ok();
    let callee = call.and_then(|call| call.get_called_fn_value());
    callee.is_some_and(|callee| callee.get_name().to_bytes().starts_with(b"llvm.ptrmask."))
}

/// Whether an address is a constant that does not say which memory it points into.
fn is_placeless_constant(address: PointerValue<'_>) -> bool {
    address.is_const() && !names_memory(address.as_value_ref())
}

fn names_memory(constant: LLVMValueRef) -> bool {
    // SAFETY: a constant of the module; what it is is asked before it is asked as that.
    unsafe {
        if LLVMIsAConstantExpr(constant).is_null() {
            return false;
        }
        match LLVMGetConstOpcode(constant) {
            LLVMOpcode::LLVMAddrSpaceCast => true,
            LLVMOpcode::LLVMGetElementPtr => names_memory(LLVMGetOperand(constant, 0)),
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use inkwell::memory_buffer::MemoryBuffer;

    use super::*;
    use crate::llvm::session::on_compile_thread;

    /// What LLVM's verifier says of the case in `docs/upstream` after the inference, and the PTX of it.
    #[test]
    fn what_ends_llvm_is_compiled() {
        let case = include_bytes!("../../../../docs/upstream/offset_null.ll");
        let compile = || -> Result<String, BackendError> {
            let context = Context::create();
            let session = Session::new(&context);
            let machine = Machine::nvptx(90, 80)?;
            let buffer = MemoryBuffer::create_from_memory_range_copy(case, "offset_null");
            let module = context
                .create_module_from_ir(buffer)
                .map_err(|error| BackendError::new("parse", error.to_string_lossy()))?;
            let pipeline = "function(infer-address-spaces)";
            run_freezing(&machine, &session, (&context, &module), pipeline)?;
            session.verify(&module)?;
            freeze_placeless(&context, &module)?;
            machine.emit_assembly(&session, &module)
        };
        let ptx = on_compile_thread("offset_null", compile).expect("LLVM is there");
        let ptx = ptx.expect("it is compiled");
        assert!(ptx.contains(".entry k("), "{ptx}");
    }

    #[test]
    fn pipelines_are_cut_before_each_inference() {
        let parts = |pipeline: &str| before_each_inference(pipeline).join(" | ");
        assert_eq!(parts("default<O1>"), "default<O1>");
        assert_eq!(
            parts("function(sroa<modify-cfg>,infer-address-spaces,gvn<>),default<O3>"),
            "function(sroa<modify-cfg>) | function(infer-address-spaces,gvn<>),default<O3>"
        );
        assert_eq!(
            parts("infer-address-spaces,a,function(infer-address-spaces),infer-address-spaces,b"),
            "infer-address-spaces,a | function(infer-address-spaces) | infer-address-spaces,b"
        );
        assert_eq!(
            parts("cgscc(function(a,infer-address-spaces))"),
            "cgscc(function(a,infer-address-spaces))"
        );
    }
}
