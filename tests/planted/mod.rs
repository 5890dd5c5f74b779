//! Wrong promises to LLVM, planted by a hook before its passes: what the passes make of them has to be
//! found by running their output.

use kiln::core::hook::{Hook, HookContext, HookResult};
use kiln::core::inkwell::attributes::{Attribute, AttributeLoc};
use kiln::core::inkwell::module::Module;
use kiln::core::inkwell::values::{
    AnyValue as _, CallSiteValue, InstructionOpcode, InstructionValue,
};

/// A wrong promise to LLVM, planted in the module before its passes.
#[derive(Copy, Clone, Debug)]
#[allow(
    dead_code,
    reason = "each program that includes this plants some of them"
)]
pub enum Planted {
    /// No other thread accesses what a slice is of.
    NoAlias,
    /// What a slice is of does not change.
    Invariant,
    /// Barriers and warp synchronization access no memory.
    Unordered,
}

impl Hook for Planted {
    fn name(&self) -> &'static str {
        "planted-promise"
    }

    fn finish_module(&self, _: &HookContext<'_>, module: &Module<'_>) -> HookResult<()> {
        let instructions: Vec<_> = module
            .get_functions()
            .flat_map(|f| f.get_basic_block_iter())
            .flat_map(|block| block.get_instructions())
            .collect();
        match self {
            Planted::NoAlias => no_alias(&instructions),
            Planted::Invariant => invariant(module, &instructions),
            Planted::Unordered => unordered(module, &instructions),
        }
        Ok(())
    }
}

/// Mutable parameters are `noalias`; inline assembly without instructions says that other threads have
/// the address all the same.
fn no_alias(instructions: &[InstructionValue<'_>]) {
    for call in instructions {
        let text = call.print_to_string().to_string_lossy().into_owned();
        if text.contains("asm sideeffect \"\",") {
            call.erase_from_basic_block();
        }
    }
}

fn invariant(module: &Module<'_>, instructions: &[InstructionValue<'_>]) {
    let context = module.get_context();
    let node = context.metadata_node(&[]);
    let loads = instructions
        .iter()
        .filter(|i| i.get_opcode() == InstructionOpcode::Load);
    for load in loads.filter(|load| !load.get_volatile().unwrap_or(true)) {
        let text = load.print_to_string().to_string_lossy().into_owned();
        if text.contains("ptr addrspace(1)") {
            // Only a string is refused.
            let _ = load.set_metadata(node, context.get_kind_id("invariant.load"));
        }
    }
}

fn unordered(module: &Module<'_>, instructions: &[InstructionValue<'_>]) {
    let context = module.get_context();
    let kind = Attribute::get_named_enum_kind_id("memory");
    let nothing = context.create_enum_attribute(kind, 0);
    for &call in instructions {
        let text = call.print_to_string().to_string_lossy().into_owned();
        let orders = text.contains("@llvm.nvvm.barrier") || text.contains("bar.warp.sync");
        if let (true, Ok(call)) = (orders, CallSiteValue::try_from(call)) {
            call.add_attribute(AttributeLoc::Function, nothing);
        }
    }
}
