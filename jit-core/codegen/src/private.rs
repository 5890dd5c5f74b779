//! Private memory holds zeros whenever control comes to its declaration: what a thread reads is
//! decided by the kernel, not by what the stack held before, and LLVM sees no undefined value.

use std::collections::HashSet;

use kiln_ir::{Function, Inst};

/// The declarations of private memory that need zeros written: all but those whose next use stores a
/// whole value there, which Rust's `let` does.
pub(super) fn needs_zeros(function: &Function) -> HashSet<Inst> {
    let mut found = HashSet::new();
    for region in function.regions.values() {
        for (at, &inst) in region.insts.iter().enumerate() {
            let is_local = function.insts[inst].data.is_local();
            if is_local && !is_stored_whole(function, inst, &region.insts[at + 1..]) {
                found.insert(inst);
            }
        }
    }
    found
}

/// Whether the first of these instructions that may reach the memory of `local` stores to all of it.
fn is_stored_whole(function: &Function, local: Inst, rest: &[Inst]) -> bool {
    let Some(address) = function.insts[local].result else {
        return false;
    };
    for &inst in rest {
        let data = &function.insts[inst].data;
        if let Some((ptr, value)) = data.stored()
            && ptr == address
        {
            return value != address;
        }
        let mut mentions = !data.regions().is_empty();
        data.for_each_operand(|operand| mentions |= operand == address);
        if mentions {
            return false;
        }
    }
    false
}
