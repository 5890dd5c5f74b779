//! Long blocks, cut before the code generator sees them.
//!
//! What schedules the instructions of a block compares its loads in pairs, so a block of 5000 takes LLVM
//! seconds, and one of twice as many four times as long. A cut is a branch that is always taken, on a byte
//! that LLVM takes for unknown, as it would join blocks again otherwise. It costs a load and a branch for
//! each [`LONG`] instructions.

use inkwell::IntPredicate;
use inkwell::basic_block::BasicBlock;
use inkwell::builder::Builder;
use inkwell::context::Context;
use inkwell::module::Module;
use inkwell::targets::TargetData;
use inkwell::values::{
    BasicValue as _, FunctionValue, InstructionOpcode, InstructionValue, PointerValue,
};

use crate::llvm::effort::registers;
use crate::llvm::error::BackendError;

/// The longest block that stays whole, in registers that its instructions fill.
const LONG: u64 = 1000;

/// Cuts the long blocks of a module, after the passes.
pub(super) fn split_long_blocks<'ctx>(
    context: &'ctx Context,
    module: &Module<'ctx>,
    target: &TargetData,
) -> Result<(), BackendError> {
    let builder = context.create_builder();
    for function in module.get_functions() {
        let mut cutter = Cutter {
            context,
            builder: &builder,
            function,
            unknown: None,
        };
        for block in function.get_basic_blocks() {
            let cuts = cuts(block, target);
            if !cuts.is_empty() {
                cutter.cut(block, &cuts)?;
            }
        }
    }
    Ok(())
}

/// The instructions that begin a part of a long block, in order.
fn cuts<'ctx>(block: BasicBlock<'ctx>, target: &TargetData) -> Vec<InstructionValue<'ctx>> {
    let mut cuts = Vec::new();
    let mut length = 0;
    for instruction in block.get_instructions() {
        let opcode = instruction.get_opcode();
        let stays = matches!(
            opcode,
            InstructionOpcode::Phi | InstructionOpcode::Alloca | InstructionOpcode::LandingPad
        );
        if stays {
            continue;
        }
        if length > LONG && !instruction.is_terminator() {
            cuts.push(instruction);
            length = 0;
        }
        length += registers(instruction, target);
    }
    cuts
}

struct Cutter<'c, 'ctx> {
    context: &'ctx Context,
    builder: &'c Builder<'ctx>,
    function: FunctionValue<'ctx>,
    /// A byte on the stack that is 0, and where control would go if it were not.
    unknown: Option<(PointerValue<'ctx>, BasicBlock<'ctx>)>,
}

impl<'ctx> Cutter<'_, 'ctx> {
    /// Moves what is before each cut to blocks before `block`, which keeps its end: other blocks say by
    /// which block they are reached.
    fn cut(
        &mut self,
        block: BasicBlock<'ctx>,
        cuts: &[InstructionValue<'ctx>],
    ) -> Result<(), BackendError> {
        let (byte, never) = self.unknown()?;
        let heads: Vec<_> = cuts
            .iter()
            .map(|_| self.context.prepend_basic_block(block, "part"))
            .collect();
        self.redirect(block, heads[0]);
        for (i, (&head, &cut)) in heads.iter().zip(cuts).enumerate() {
            self.builder.position_at_end(head);
            while let Some(first) = block.get_first_instruction().filter(|&first| first != cut) {
                first.remove_from_basic_block();
                self.builder.insert_instruction(&first, None);
            }
            let int = self.context.i8_type();
            let value = self.builder.build_load(int, byte, "")?;
            if let Some(load) = value.as_instruction_value() {
                // A load can be volatile.
                let _ = load.set_volatile(true);
            }
            let (value, zero) = (value.into_int_value(), int.const_zero());
            let go_on = self
                .builder
                .build_int_compare(IntPredicate::EQ, value, zero, "")?;
            let next = heads.get(i + 1).copied().unwrap_or(block);
            self.builder.build_conditional_branch(go_on, next, never)?;
        }
        Ok(())
    }

    /// Has what goes to `block` go to `head`. LLVM would also have the blocks after `block` be reached by
    /// `head`, which it finds by the block's last instruction; so that is away meanwhile.
    fn redirect(&self, block: BasicBlock<'ctx>, head: BasicBlock<'ctx>) {
        let end = block.get_terminator();
        if let Some(end) = end {
            end.remove_from_basic_block();
        }
        block.replace_all_uses_with(&head);
        if let Some(end) = end {
            self.builder.position_at_end(block);
            self.builder.insert_instruction(&end, None);
        }
    }

    fn unknown(&mut self) -> Result<(PointerValue<'ctx>, BasicBlock<'ctx>), BackendError> {
        if let Some(known) = self.unknown {
            return Ok(known);
        }
        let never = self.context.append_basic_block(self.function, "never");
        self.builder.position_at_end(never);
        self.builder.build_unreachable()?;
        let first = self.function.get_first_basic_block();
        let start = first.and_then(|block| block.get_first_instruction());
        let Some(start) = start else {
            return Err(BackendError::new("emit", "a function without a block"));
        };
        self.builder.position_before(&start);
        let int = self.context.i8_type();
        let byte = self.builder.build_alloca(int, "")?;
        self.builder.build_store(byte, int.const_zero())?;
        self.unknown = Some((byte, never));
        Ok((byte, never))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::llvm::machine::Machine;
    use crate::llvm::session::on_compile_thread;

    /// A loop of one block, whose turns start with a value of the turn before.
    fn long_loop<'ctx>(
        context: &'ctx Context,
        module: &Module<'ctx>,
        length: u64,
    ) -> Result<(), BackendError> {
        let int = context.i64_type();
        let ty = int.fn_type(&[int.into()], false);
        let function = module.add_function("long", ty, None);
        let append = |name| context.append_basic_block(function, name);
        let (entry, body, end) = (append("entry"), append("body"), append("end"));
        let builder = context.create_builder();
        builder.position_at_end(entry);
        builder.build_unconditional_branch(body)?;
        builder.position_at_end(body);
        let start = builder.build_phi(int, "start")?;
        let first = start.as_basic_value().into_int_value();
        let step = match function.get_first_param() {
            Some(step) => step.into_int_value(),
            None => int.const_zero(),
        };
        let mut sum = first;
        for _ in 0..length {
            sum = builder.build_int_mul(sum, step, "")?;
        }
        let more = builder.build_int_compare(IntPredicate::ULT, sum, step, "")?;
        builder.build_conditional_branch(more, body, end)?;
        start.add_incoming(&[(&step, entry), (&sum, body)]);
        builder.position_at_end(end);
        let last = builder.build_phi(int, "last")?;
        last.add_incoming(&[(&sum, body)]);
        builder.build_return(Some(&last.as_basic_value()))?;
        Ok(())
    }

    #[test]
    fn long_blocks_are_cut_and_short_ones_stay() {
        let lengths = |length| -> Result<Vec<usize>, BackendError> {
            let context = Context::create();
            let module = context.create_module("m");
            long_loop(&context, &module, length)?;
            let machine = Machine::plain_host()?;
            split_long_blocks(&context, &module, &machine.target_data())?;
            let verified = module.verify();
            verified.map_err(|e| BackendError::new("verify", e.to_string_lossy()))?;
            let blocks = module.get_functions().flat_map(|f| f.get_basic_blocks());
            Ok(blocks.map(|b| b.get_instructions().count()).collect())
        };
        let [long, short] = on_compile_thread("m", move || [lengths(5000), lengths(LONG - 10)])
            .expect("a compile thread");
        let long = long.expect("a module without mistakes");
        assert_eq!(long.len(), 3 + 4 + 1, "{long:?}");
        assert!(long.iter().all(|&n| n as u64 <= LONG + 5), "{long:?}");
        assert_eq!(short.expect("a module without mistakes").len(), 3);
    }
}
