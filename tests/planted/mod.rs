//! Wrong promises to LLVM, planted by a hook before its passes: what the passes make of them has to be
//! found by running their output.

use kiln::core::hook::{Hook, HookResult};
use kiln::core::inkwell::attributes::{Attribute, AttributeLoc};
use kiln::core::inkwell::module::Module;
use kiln::core::inkwell::values::{
    AnyValue as _, BasicValue as _, CallSiteValue, InstructionOpcode, InstructionValue,
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
    /// Warp synchronization accesses no memory.
    UnorderedWarps,
    /// What is written before a release comes after it.
    LateStores,
}

impl Planted {
    /// The hook that plants it.
    pub fn hook(self) -> Hook {
        Hook::new("planted-promise")
            .key("promise", self)
            .finish_module(move |_, module| self.plant(module))
    }

    fn plant(self, module: &Module<'_>) -> HookResult<()> {
        let instructions: Vec<_> = module
            .get_functions()
            .flat_map(|f| f.get_basic_block_iter())
            .flat_map(|block| block.get_instructions())
            .collect();
        match self {
            Planted::NoAlias => no_alias(&instructions),
            Planted::Invariant => invariant(module, &instructions),
            Planted::Unordered => unordered(module, &instructions, &[BARRIER, WARP_SYNC]),
            Planted::UnorderedWarps => unordered(module, &instructions, &[WARP_SYNC]),
            Planted::LateStores => late_stores(module)?,
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

/// How calls that order memory begin.
const BARRIER: &str = "@llvm.nvvm.barrier";
const WARP_SYNC: &str = "bar.warp.sync";

fn unordered(module: &Module<'_>, instructions: &[InstructionValue<'_>], names: &[&str]) {
    let context = module.get_context();
    let kind = Attribute::get_named_enum_kind_id("memory");
    let nothing = context.create_enum_attribute(kind, 0);
    for &call in instructions {
        let text = call.print_to_string().to_string_lossy().into_owned();
        let orders = names.iter().any(|name| text.contains(name));
        if let (true, Ok(call)) = (orders, CallSiteValue::try_from(call)) {
            call.add_attribute(AttributeLoc::Function, nothing);
        }
    }
}

/// Moves plain stores behind the atomic that follows them in their basic block, if it releases or a fence
/// before it does, nothing between accesses memory, and the two are to different memory.
fn late_stores(module: &Module<'_>) -> HookResult<()> {
    let builder = module.get_context().create_builder();
    for block in module
        .get_functions()
        .flat_map(|f| f.get_basic_block_iter())
    {
        let mut last_store = None;
        let mut is_released = false;
        for instruction in block.get_instructions().collect::<Vec<_>>() {
            let text = instruction.print_to_string().to_string_lossy().into_owned();
            let orders = [" release", " acq_rel", " seq_cst", ".release.", ".acq_rel."];
            is_released |= orders.iter().any(|order| text.contains(order));
            let is_atomic = text.contains(" atomic ") || text.contains("\"atom.");
            let next = instruction.get_next_instruction();
            match instruction.get_opcode() {
                InstructionOpcode::Fence => {}
                _ if is_atomic => {
                    let moved =
                        last_store.filter(|store| is_released && apart(store, &instruction));
                    if let (Some(store), Some(next)) = (moved, next) {
                        store.remove_from_basic_block();
                        builder.position_at(block, &next);
                        builder.insert_instruction(&store, None);
                    }
                    last_store = None;
                }
                InstructionOpcode::Store => (last_store, is_released) = (Some(instruction), false),
                InstructionOpcode::Load | InstructionOpcode::Call => last_store = None,
                _ => {}
            }
        }
    }
    Ok(())
}

/// Whether a store and an atomic are to different parameters or variables.
fn apart(store: &InstructionValue<'_>, atomic: &InstructionValue<'_>) -> bool {
    let address = match atomic.get_opcode() {
        InstructionOpcode::Store => 1,
        _ => 0,
    };
    let bases = [(store, 1), (atomic, address)].map(|(access, operand)| base(access, operand));
    matches!(bases, [Some(one), Some(other)] if one != other)
}

/// The parameter or variable that the address in an operand is of, if that is plain to see.
fn base(access: &InstructionValue<'_>, operand: u32) -> Option<String> {
    use InstructionOpcode::{AddrSpaceCast, BitCast, GetElementPtr};
    let mut value = access.get_operand(operand)?.value()?;
    while let Some(from) = value.as_instruction_value() {
        let (BitCast | AddrSpaceCast | GetElementPtr) = from.get_opcode() else {
            return None;
        };
        value = from.get_operand(0)?.value()?;
    }
    Some(value.print_to_string().to_string_lossy().into_owned())
}
