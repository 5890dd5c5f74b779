//! Blocks in which a thread ends, behind all others.
//!
//! Of a branch LLVM's code generator makes one that goes on with the block behind it, if that is one of the two, and
//! else two: `@%p bra next; bra.uni other`. For NVIDIA's GPUs it cannot turn one around once blocks are placed, and it
//! places unlikely ones last. `ptxas` puts what a second branch goes to in between. So what is unlikely goes last before.

use std::collections::HashSet;

use inkwell::basic_block::BasicBlock;
use inkwell::module::Module;
use inkwell::values::{FunctionValue, InstructionOpcode, InstructionValue};

/// Moves the blocks from which no function returns to its end.
pub(super) fn move_to_end(module: &Module<'_>) {
    for function in module.get_functions() {
        let returning = returning(function);
        if returning.is_empty() {
            continue;
        }
        for block in function.get_basic_blocks() {
            let last = function.get_last_basic_block();
            if let Some(last) = last.filter(|last| *last != block && !returning.contains(&block)) {
                // Both are in this function, which is all that is asked for.
                let _ = block.move_after(last);
            }
        }
    }
}

/// The blocks from which a function may return: from others a thread ends, or goes on for ever.
fn returning<'ctx>(function: FunctionValue<'ctx>) -> HashSet<BasicBlock<'ctx>> {
    let mut blocks = function.get_basic_blocks();
    // Most blocks come after those that go to them.
    blocks.reverse();
    let mut returning = HashSet::new();
    loop {
        let before = returning.len();
        for &block in &blocks {
            let last = block.get_terminator();
            let returns = last.is_some_and(|last| match last.get_opcode() {
                InstructionOpcode::Return => true,
                _ => successors(last).any(|next| returning.contains(&next)),
            });
            if returns {
                returning.insert(block);
            }
        }
        if returning.len() == before {
            return returning;
        }
    }
}

fn successors<'ctx>(last: InstructionValue<'ctx>) -> impl Iterator<Item = BasicBlock<'ctx>> {
    let operands = 0..last.get_num_operands();
    operands.filter_map(move |n| last.get_operand(n)?.block())
}

#[cfg(test)]
mod tests {
    use inkwell::context::Context;
    use inkwell::memory_buffer::MemoryBuffer;

    use super::*;
    use crate::llvm::error::BackendError;
    use crate::llvm::session::on_compile_thread;

    /// The names of a function's blocks, once those in which a thread ends are moved.
    fn order(blocks: &str) -> Vec<String> {
        let text = format!("define void @f(i1 %a) {{\n{blocks}\n}}\n\0");
        let moved = move || -> Result<Vec<String>, BackendError> {
            let context = Context::create();
            let buffer = MemoryBuffer::create_from_memory_range_copy(text.as_bytes(), "f");
            let module = context
                .create_module_from_ir(buffer)
                .map_err(|error| BackendError::new("parse", error.to_string_lossy()))?;
            move_to_end(&module);
            let functions = module.get_functions();
            let blocks = functions.flat_map(|function| function.get_basic_blocks());
            let name = |block: BasicBlock<'_>| block.get_name().to_string_lossy().into_owned();
            Ok(blocks.map(name).collect())
        };
        let order = on_compile_thread("cold", moved).expect("LLVM is there");
        order.expect("it is a module")
    }

    #[test]
    fn what_ends_a_thread_goes_last() {
        let blocks = "in:\n  br i1 %a, label %which, label %next\nwhich:\n  br i1 %a, label %one, label %other\n\
                      next:\n  br i1 %a, label %next, label %out\none:\n  unreachable\nout:\n  ret void\n\
                      other:\n  unreachable";
        assert_eq!(
            order(blocks),
            ["in", "next", "out", "which", "one", "other"]
        );
    }

    #[test]
    fn a_function_that_does_not_return_stays() {
        let blocks = "in:\n  br i1 %a, label %again, label %end\nagain:\n  br label %again\nend:\n  unreachable";
        assert_eq!(order(blocks), ["in", "again", "end"]);
    }
}
