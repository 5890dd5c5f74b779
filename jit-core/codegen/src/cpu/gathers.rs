//! The indices of gathers and scatters, extended where they are used.
//!
//! The instruction extends an index of 32 bits itself, so that it takes twice as many as of 64. LLVM sees that where the
//! extension is in the block of the access, as the code generator looks at one block at a time; its passes compute it once for
//! all accesses by an index, in the block of the first.

use inkwell::builder::Builder;
use inkwell::context::Context;
use inkwell::module::Module;
use inkwell::values::{
    AnyValue as _, BasicValueEnum, InstructionOpcode, InstructionValue, VectorValue,
};

use crate::llvm::error::BackendError;
use crate::llvm::inspect::{Called, called};

/// Computes the addresses of a module's gathers and scatters, and the indices that these extend, before each, after the passes.
pub(super) fn extend_at_accesses<'ctx>(
    context: &'ctx Context,
    module: &Module<'ctx>,
) -> Result<(), BackendError> {
    let builder = context.create_builder();
    let blocks = module.get_functions().flat_map(|f| f.get_basic_blocks());
    let accesses: Vec<_> = blocks
        .flat_map(|block| block.get_instructions())
        .filter_map(|call| Some((call, addresses_of(call)?)))
        .collect();
    for (call, operand) in accesses {
        extend_at(&builder, call, operand)?;
    }
    Ok(())
}

/// Which operand of a call the addresses are, if it is a gather or a scatter.
fn addresses_of(call: InstructionValue<'_>) -> Option<u32> {
    match called(call)? {
        Called::Function(name) if name.starts_with("llvm.masked.gather") => Some(0),
        Called::Function(name) if name.starts_with("llvm.masked.scatter") => Some(1),
        _ => None,
    }
}

/// The instruction of this kind that gives an operand, a vector.
fn made_by<'ctx>(
    user: InstructionValue<'ctx>,
    operand: u32,
    is_kind: fn(InstructionOpcode) -> bool,
) -> Option<InstructionValue<'ctx>> {
    let value = user.get_operand(operand)?.value()?;
    let BasicValueEnum::VectorValue(lanes) = value else {
        return None;
    };
    lanes
        .as_instruction()
        .filter(|made| is_kind(made.get_opcode()))
}

fn extend_at<'ctx>(
    builder: &Builder<'ctx>,
    call: InstructionValue<'ctx>,
    operand: u32,
) -> Result<(), BackendError> {
    use InstructionOpcode::{GetElementPtr, SExt, ZExt};
    let addresses = made_by(call, operand, |opcode| opcode == GetElementPtr);
    let Some(addresses) = addresses else {
        return Ok(());
    };
    let extended = made_by(addresses, 1, |opcode| matches!(opcode, SExt | ZExt));
    let Some(extended) = extended else {
        return Ok(());
    };
    let here = call.get_parent();
    if addresses.get_parent() == here && extended.get_parent() == here {
        return Ok(());
    }
    builder.position_before(&call);
    let again = |of: InstructionValue<'ctx>| -> Result<_, BackendError> {
        let copy = of.explicit_clone();
        builder.insert_instruction(&copy, None);
        let no_vector = |()| BackendError::new("optimize", "an address of lanes is no vector");
        let lanes = VectorValue::try_from(copy.as_any_value_enum()).map_err(no_vector)?;
        Ok((copy, lanes))
    };
    let (_, index) = again(extended)?;
    let (copy, lanes) = again(addresses)?;
    copy.set_operand(1, index);
    call.set_operand(operand, lanes);
    Ok(())
}

#[cfg(test)]
mod tests {
    use inkwell::memory_buffer::MemoryBuffer;

    use super::*;
    use crate::llvm::session::on_compile_thread;

    /// A gather and a scatter by one index, which is extended in the block before the scatter's.
    const TWO_BLOCKS: &str = "
        define void @both(ptr %at, <4 x i32> %index, <4 x i1> %mask, i1 %more) {
        first:
          %wide = sext <4 x i32> %index to <4 x i64>
          %places = getelementptr i32, ptr %at, <4 x i64> %wide
          %values = call <4 x i32> @llvm.masked.gather.v4i32.v4p0(<4 x ptr> align 4 %places, <4 x i1> %mask,
            <4 x i32> zeroinitializer)
          br i1 %more, label %second, label %end
        second:
          call void @llvm.masked.scatter.v4i32.v4p0(<4 x i32> %values, <4 x ptr> align 4 %places, <4 x i1> %mask)
          br label %end
        end:
          ret void
        }";

    #[test]
    fn an_index_is_extended_in_the_block_of_each_access() {
        let opcodes = on_compile_thread("m", || {
            let context = Context::create();
            let text =
                MemoryBuffer::create_from_memory_range_copy(TWO_BLOCKS.as_bytes(), "gathers");
            let module = context
                .create_module_from_ir(text)
                .expect("it is LLVM's text");
            extend_at_accesses(&context, &module).expect("addresses are vectors");
            module.verify().expect("it is a module without mistakes");
            let blocks = module.get_functions().flat_map(|f| f.get_basic_blocks());
            let opcodes = |block: inkwell::basic_block::BasicBlock<'_>| {
                let all = block.get_instructions().map(|inst| inst.get_opcode());
                all.collect::<Vec<_>>()
            };
            blocks.map(opcodes).collect::<Vec<_>>()
        });
        use InstructionOpcode::{Call, GetElementPtr, Return, SExt};
        let opcodes = opcodes.expect("a compile thread");
        assert_eq!(opcodes[0][..3], [SExt, GetElementPtr, Call]);
        assert_eq!(opcodes[1][..3], [SExt, GetElementPtr, Call]);
        assert_eq!(opcodes[2], [Return]);
    }
}
