//! From an optimized module for NVPTX to one for this machine.

use inkwell::AddressSpace;
use inkwell::attributes::{Attribute, AttributeLoc};
use inkwell::builder::Builder;
use inkwell::context::Context;
use inkwell::llvm_sys::core::{LLVMDeleteGlobal, LLVMReplaceAllUsesWith};
use inkwell::module::{Linkage, Module};
use inkwell::targets::TargetData;
use inkwell::types::BasicTypeEnum;
use inkwell::values::{
    AsValueRef as _, BasicValue as _, BasicValueEnum, FunctionValue, GlobalValue,
    InstructionOpcode, InstructionValue,
};

use kiln_ir::IntrinsicDef;
use kiln_ir::gpu_on_host::{OPERATE, OnHostCode, Operation, SHARED, Site, THREAD_ENTRY};
use kiln_ir::legal::Legal;

use super::operation::{of_assembly, of_intrinsic};
use crate::gpu::nvptx::PTX_KERNEL;
use crate::gpu::types::space_number;
use crate::isa::LlvmJob;
use crate::llvm::bindings::{Wrap, build_gep};
use crate::llvm::error::BackendError;
use crate::llvm::inspect::{Called, called, loop_heads, others_may_wait, stack_of};
use crate::llvm::word_calls::WordCalls;

/// LLVM's calling convention of C.
const C: u32 = 0;

/// Alignment of dynamic shared memory in bytes, as it is declared for the GPU.
const DYNAMIC_ALIGN: u64 = 16;

/// Bytes of stack for what is not in a kernel: the functions of the runtime, and of rows.
const STACK_FLOOR: u64 = 64 << 10;

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
    let mut rewriting = Rewriting {
        context,
        builder: context.create_builder(),
        module,
        legal: job.legal,
        rows: job.legal.intrinsics.values().copied().collect(),
        calls: WordCalls::new(context, module, OPERATE),
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

struct Rewriting<'a, 'ctx> {
    context: &'ctx Context,
    builder: Builder<'ctx>,
    module: &'a Module<'ctx>,
    legal: &'a Legal,
    rows: Vec<&'static IntrinsicDef>,
    /// Calls of the runtime's function for what only a GPU has.
    calls: WordCalls<'ctx>,
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
            let number = self.site(Operation::Accessed);
            self.calls.before(next, number)?;
        }
        for call in instructions {
            if let Some(operation) = self.operation_of(call)? {
                let number = self.site(operation);
                self.sites[number].arguments = self.calls.replace(call, number)?;
            }
        }
        Ok(())
    }

    /// Has a thread come by the runtime in every turn of every loop, so that one that does not end
    /// is noticed.
    fn count_turns(&mut self, function: FunctionValue<'ctx>) -> Result<(), BackendError> {
        for head in loop_heads(function) {
            let first = head
                .get_instructions()
                .find(|i| i.get_opcode() != InstructionOpcode::Phi)
                .ok_or_else(|| refused("a block without an end"))?;
            let number = self.site(Operation::Turn);
            self.calls.before(first, number)?;
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

    /// A new site, with its number.
    fn site(&mut self, operation: Operation) -> usize {
        let number = self.sites.len();
        self.sites.push(Site {
            operation,
            number,
            arguments: 0,
        });
        number
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
            let offset = self.context.i64_type().const_int(slot.offset.into(), false);
            let byte = self.context.i8_type().into();
            let at = build_gep(&self.builder, byte, params, &[offset], Wrap::InBounds);
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
