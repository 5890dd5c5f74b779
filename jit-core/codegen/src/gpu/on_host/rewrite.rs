//! From an optimized module for NVPTX to one for this machine.

use std::collections::HashMap;

use inkwell::AddressSpace;
use inkwell::attributes::{Attribute, AttributeLoc};
use inkwell::basic_block::BasicBlock;
use inkwell::builder::Builder;
use inkwell::context::Context;
use inkwell::llvm_sys::core::{
    LLVMDeleteGlobal, LLVMGetCalledValue, LLVMGetNumSuccessors, LLVMGetSuccessor,
    LLVMGetValueName2, LLVMIsAFunction, LLVMIsAtomic, LLVMReplaceAllUsesWith,
};
use inkwell::module::{Linkage, Module};
use inkwell::targets::TargetData;
use inkwell::types::BasicTypeEnum;
use inkwell::values::{
    AsValueRef as _, BasicValue as _, BasicValueEnum, CallSiteValue, FunctionValue, GlobalValue,
    InstructionOpcode, InstructionValue, IntValue, PointerValue,
};

use kiln_ir::IntrinsicDef;
use kiln_ir::gpu_on_host::{OPERATE, OnHostCode, Operation, SHARED, Site, THREAD_ENTRY};
use kiln_ir::legal::Legal;

use super::operation::{of_assembly, of_intrinsic};
use crate::admitted::{assembly_of, text_of};
use crate::gpu::types::space_number;
use crate::isa::LlvmJob;
use crate::llvm::error::BackendError;

/// LLVM's calling convention of a kernel (`ptx_kernel`).
const PTX_KERNEL: u32 = 71;

/// LLVM's calling convention of C.
const C: u32 = 0;

/// Alignment of dynamic shared memory in bytes, as it is declared for the GPU.
const DYNAMIC_ALIGN: u64 = 16;

/// Bytes of stack for what is not in a kernel: the functions of the runtime, and of rows.
const STACK_FLOOR: u64 = 64 << 10;

/// Bytes of stack for the arguments of a call, which few instructions are.
const CALL_BYTES: u64 = 32;

fn kernel<'ctx>(module: &Module<'ctx>) -> Option<FunctionValue<'ctx>> {
    module
        .get_functions()
        .find(|f| f.get_call_conventions() == PTX_KERNEL)
}

fn refused(what: impl Into<String>) -> BackendError {
    BackendError::new("lower", what)
}

/// Rewrites a module in place; triple and layout are the host's already. Gives the code without its object.
pub(super) fn rewrite<'ctx>(
    job: &LlvmJob<'ctx>,
    module: &Module<'ctx>,
    data: &TargetData,
) -> Result<OnHostCode, BackendError> {
    let kernel = kernel(module).ok_or_else(|| refused("a module without a kernel"))?;
    let context = job.context;
    let word = context.i64_type();
    let pointer = context.ptr_type(AddressSpace::default());
    let operate = word.fn_type(&[word.into(), pointer.into()], false);
    let mut rewriting = Rewriting {
        context,
        builder: context.create_builder(),
        module,
        legal: job.legal,
        rows: job.legal.intrinsics.values().copied().collect(),
        operate: module.add_function(OPERATE, operate, Some(Linkage::External)),
        sites: Vec::new(),
    };
    let static_shared = rewriting.place_shared(data)?;
    let mut stack_bytes = STACK_FLOOR;
    let bodies: Vec<_> = module
        .get_functions()
        .filter(|f| f.count_basic_blocks() > 0)
        .collect();
    for &function in &bodies {
        stack_bytes += stack_of(function, data);
        rewriting.function(function)?;
    }
    rewriting.entry(kernel)?;
    Ok(OnHostCode {
        object: Vec::new(),
        sites: rewriting.sites.into(),
        static_shared,
        stack_bytes,
    })
}

/// Bytes of stack that a function needs at most: its variables, and every value in a slot of its
/// own, as code that is not optimized has them.
fn stack_of(function: FunctionValue<'_>, data: &TargetData) -> u64 {
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

struct Rewriting<'a, 'ctx> {
    context: &'ctx Context,
    builder: Builder<'ctx>,
    module: &'a Module<'ctx>,
    legal: &'a Legal,
    rows: Vec<&'static IntrinsicDef>,
    /// The runtime's function for what only a GPU has.
    operate: FunctionValue<'ctx>,
    sites: Vec<Site>,
}

impl<'ctx> Rewriting<'_, 'ctx> {
    /// Gives every shared variable its place in the memory that a block is run with. The launch's
    /// own bytes come last; where they begin is the result.
    fn place_shared(&self, data: &TargetData) -> Result<u64, BackendError> {
        let space = AddressSpace::from(space_number(kiln_ir::AddressSpace::Shared));
        let of_shared = |global: &GlobalValue<'ctx>| {
            let ty = global.as_pointer_value().get_type();
            ty.get_address_space() == space
        };
        let (dynamic, fixed): (Vec<_>, Vec<_>) = self
            .module
            .get_globals()
            .filter(of_shared)
            .partition(|global| global.is_declaration());
        let byte = self.context.i8_type();
        let memory = self
            .module
            .add_global(byte.array_type(0), Some(space), SHARED);
        let mut end: u64 = 0;
        let put = |global: GlobalValue<'ctx>, offset: u64| {
            let offset = self.context.i64_type().const_int(offset, false);
            // SAFETY: the offset lies in the memory of a block; address and variable are constants of the
            // module's context and of one type; nothing uses the variable once its uses are replaced.
            unsafe {
                let address = memory.as_pointer_value().const_gep(byte, &[offset]);
                LLVMReplaceAllUsesWith(global.as_value_ref(), address.as_value_ref());
                LLVMDeleteGlobal(global.as_value_ref());
            }
        };
        for global in fixed {
            let ty = BasicTypeEnum::try_from(global.get_value_type())
                .map_err(|()| refused("a shared variable without a size"))?;
            end = end.next_multiple_of(u64::from(global.get_alignment().max(1)));
            let size = data.get_abi_size(&ty);
            put(global, end);
            end += size;
        }
        end = end.next_multiple_of(DYNAMIC_ALIGN);
        for global in dynamic {
            put(global, end);
        }
        Ok(end)
    }

    fn function(&mut self, function: FunctionValue<'ctx>) -> Result<(), BackendError> {
        for name in ["target-cpu", "target-features"] {
            function.remove_string_attribute(AttributeLoc::Function, name);
        }
        self.count_turns(function)?;
        let instructions: Vec<_> = function
            .get_basic_block_iter()
            .flat_map(|block| block.get_instructions())
            .collect();
        for &instruction in instructions.iter().filter(|i| others_may_wait(**i)) {
            let next = instruction
                .get_next_instruction()
                .ok_or_else(|| refused("an access at the end of a block"))?;
            self.builder.position_before(&next);
            self.call_site(Operation::Accessed, &[], function)?;
        }
        for call in instructions {
            if let Some(operation) = self.operation_of(call)? {
                self.replace(call, operation, function)?;
            }
        }
        Ok(())
    }

    /// Has a thread come by the runtime in every turn of every loop, so that one that does not end
    /// is noticed. Every cycle has a branch to its own block or one before.
    fn count_turns(&mut self, function: FunctionValue<'ctx>) -> Result<(), BackendError> {
        let blocks: Vec<BasicBlock<'ctx>> = function.get_basic_block_iter().collect();
        let order: HashMap<_, _> = blocks.iter().zip(0..).map(|(&b, n)| (b, n)).collect();
        let mut headers = vec![false; blocks.len()];
        for (from, block) in blocks.iter().enumerate() {
            for target in successors(*block) {
                let to = order.get(&target).copied().unwrap_or(usize::MAX);
                if to <= from {
                    headers[to] = true;
                }
            }
        }
        for (block, _) in blocks.iter().zip(headers).filter(|(_, header)| *header) {
            let first = block
                .get_instructions()
                .find(|i| i.get_opcode() != InstructionOpcode::Phi)
                .ok_or_else(|| refused("a block without an end"))?;
            self.builder.position_before(&first);
            self.call_site(Operation::Turn, &[], function)?;
        }
        Ok(())
    }

    /// What a call stands for if only a GPU has it.
    fn operation_of(
        &self,
        instruction: InstructionValue<'ctx>,
    ) -> Result<Option<Operation>, BackendError> {
        let rows = &self.rows;
        match called(instruction) {
            Some(Called::Assembly(template, constraints)) => {
                of_assembly(rows, (&template, &constraints)).map(Some)
            }
            Some(Called::Function(name)) if name.starts_with("llvm.nvvm.") => {
                of_intrinsic(rows, &name).map(Some)
            }
            _ => Ok(None),
        }
        .map_err(refused)
    }

    fn replace(
        &mut self,
        instruction: InstructionValue<'ctx>,
        operation: Operation,
        function: FunctionValue<'ctx>,
    ) -> Result<(), BackendError> {
        self.builder.position_before(&instruction);
        let call =
            CallSiteValue::try_from(instruction).map_err(|()| refused("a call that is none"))?;
        let mut args = Vec::new();
        for n in 0..call.count_arguments() {
            let argument = instruction.get_operand(n).and_then(|o| o.value());
            let argument = argument.ok_or_else(|| refused("an argument that is no value"))?;
            args.push(self.to_word(argument)?);
        }
        let word = self.call_site(operation, &args, function)?;
        if let Ok(ty) = BasicTypeEnum::try_from(instruction.get_type()) {
            let value = self.of_word(word, ty)?;
            // SAFETY: the value is of the call's type and defined where the call is.
            unsafe { LLVMReplaceAllUsesWith(instruction.as_value_ref(), value.as_value_ref()) };
        }
        instruction.erase_from_basic_block();
        Ok(())
    }

    /// Calls the runtime, with words on the stack.
    fn call_site(
        &mut self,
        operation: Operation,
        args: &[IntValue<'ctx>],
        function: FunctionValue<'ctx>,
    ) -> Result<IntValue<'ctx>, BackendError> {
        let word = self.context.i64_type();
        let pointer = self.context.ptr_type(AddressSpace::default());
        let words = match args {
            [] => pointer.const_null(),
            args => {
                let words = self.words(function, args.len() as u32)?;
                for (n, &arg) in (0..).zip(args) {
                    let at = self.byte_offset(words, 8 * n)?;
                    self.builder.build_store(at, arg)?;
                }
                words
            }
        };
        let number = self.sites.len();
        self.sites.push(Site {
            operation,
            number,
            arguments: args.len(),
        });
        let number = word.const_int(number as u64, false);
        let args = [number.into(), words.into()];
        let call = self.builder.build_call(self.operate, &args, "")?;
        match call.try_as_basic_value().basic() {
            Some(BasicValueEnum::IntValue(result)) => Ok(result),
            _ => Err(refused("a call without a result")),
        }
    }

    /// Room for words in the frame of a function.
    fn words(
        &self,
        function: FunctionValue<'ctx>,
        count: u32,
    ) -> Result<PointerValue<'ctx>, BackendError> {
        let first = function
            .get_first_basic_block()
            .and_then(|block| block.get_first_instruction())
            .ok_or_else(|| refused("a function without a body"))?;
        let builder = self.context.create_builder();
        builder.position_before(&first);
        let ty = self.context.i64_type().array_type(count);
        Ok(builder.build_alloca(ty, "")?)
    }

    fn byte_offset(
        &self,
        base: PointerValue<'ctx>,
        bytes: u64,
    ) -> Result<PointerValue<'ctx>, BackendError> {
        let offset = self.context.i64_type().const_int(bytes, false);
        // SAFETY: the offset lies in what `base` points at: words, or the parameter block.
        Ok(unsafe {
            self.builder
                .build_gep(self.context.i8_type(), base, &[offset], "")?
        })
    }

    /// A register's bits in the low bits of a word.
    fn to_word(&self, value: BasicValueEnum<'ctx>) -> Result<IntValue<'ctx>, BackendError> {
        let word = self.context.i64_type();
        let bits = match value {
            BasicValueEnum::IntValue(bits) => bits,
            BasicValueEnum::PointerValue(pointer) => {
                return Ok(self.builder.build_ptr_to_int(pointer, word, "")?);
            }
            BasicValueEnum::FloatValue(float) => {
                let ty = self.int(float.get_type().get_bit_width());
                match self.builder.build_bit_cast(float, ty, "")? {
                    BasicValueEnum::IntValue(bits) => bits,
                    _ => return Err(refused("a float without bits")),
                }
            }
            _ => return Err(refused(format!("an argument of type {}", value.get_type()))),
        };
        Ok(self
            .builder
            .build_int_z_extend_or_bit_cast(bits, word, "")?)
    }

    fn of_word(
        &self,
        word: IntValue<'ctx>,
        ty: BasicTypeEnum<'ctx>,
    ) -> Result<BasicValueEnum<'ctx>, BackendError> {
        match ty {
            BasicTypeEnum::IntType(ty) => Ok(self
                .builder
                .build_int_truncate_or_bit_cast(word, ty, "")?
                .into()),
            BasicTypeEnum::FloatType(ty) => {
                let bits = self.int(ty.get_bit_width());
                let bits = self
                    .builder
                    .build_int_truncate_or_bit_cast(word, bits, "")?;
                Ok(self.builder.build_bit_cast(bits, ty, "")?)
            }
            BasicTypeEnum::PointerType(ty) => {
                Ok(self.builder.build_int_to_ptr(word, ty, "")?.into())
            }
            _ => Err(refused(format!("a result of type {ty}"))),
        }
    }

    fn int(&self, bits: u32) -> inkwell::types::IntType<'ctx> {
        match bits {
            16 => self.context.i16_type(),
            32 => self.context.i32_type(),
            _ => self.context.i64_type(),
        }
    }

    /// Writes the function that runs a thread: it takes the parameter block apart, as the driver
    /// and the GPU do.
    fn entry(&self, kernel: FunctionValue<'ctx>) -> Result<(), BackendError> {
        let pointer = self.context.ptr_type(AddressSpace::default());
        let ty = self.context.void_type().fn_type(&[pointer.into()], false);
        let entry = self
            .module
            .add_function(THREAD_ENTRY, ty, Some(Linkage::External));
        let block = self.context.append_basic_block(entry, "");
        self.builder.position_at_end(block);
        let params = match entry.get_nth_param(0) {
            Some(BasicValueEnum::PointerValue(params)) => params,
            _ => return Err(refused("an entry without a parameter")),
        };
        let byval = Attribute::get_named_enum_kind_id("byval");
        let mut args = Vec::new();
        for (n, param) in (0..).zip(kernel.get_params()) {
            let slot = self.legal.layout().slots.get(n as usize);
            let slot = slot.ok_or_else(|| refused("more parameters than slots"))?;
            let at = self.byte_offset(params, slot.offset.into())?;
            let place = AttributeLoc::Param(n);
            if kernel.get_enum_attribute(place, byval).is_some() {
                // In place, as on the GPU.
                kernel.remove_enum_attribute(place, byval);
                args.push(at.into());
            } else {
                let value = self.builder.build_load(param.get_type(), at, "")?;
                if let Some(load) = value.as_instruction_value() {
                    // A power of two, which is all that is asked.
                    let _ = load.set_alignment(1);
                }
                args.push(value.into());
            }
        }
        kernel.set_call_conventions(C);
        kernel.set_linkage(Linkage::Internal);
        self.builder.build_call(kernel, &args, "")?;
        self.builder.build_return(None)?;
        Ok(())
    }
}

/// Whether other threads may wait for what an instruction does, or it waits for them: atomics,
/// fences and volatile accesses.
fn others_may_wait(instruction: InstructionValue<'_>) -> bool {
    let opcode = instruction.get_opcode();
    match opcode {
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

fn successors(block: BasicBlock<'_>) -> Vec<BasicBlock<'_>> {
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

/// What a call calls.
enum Called {
    /// Inline assembly: its template and its constraints.
    Assembly(String, String),
    /// A function, by name.
    Function(String),
}

fn called(instruction: InstructionValue<'_>) -> Option<Called> {
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
