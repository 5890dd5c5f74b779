//! Kernels without bounds checks, as CUDA C++ has them.

use kiln::core::hook::{Hook, HookSet};
use kiln::core::ir::{InstData, Module};

/// The standard hooks, after one that takes the checks out of all accesses, so that there is nothing to be moved out of
/// loops. The programs of the suite stay within their buffers: what they do with checks is tested on every device.
pub fn without_checks() -> HookSet {
    let unchecked = Hook::new("unchecked")
        .may_remove_checks()
        .rewrite_ir(|_, module| {
            remove_checks(module);
            Ok(())
        });
    kiln::hooks::standard().first(unchecked)
}

/// Makes all indexing of a module unchecked.
pub fn remove_checks(module: &mut Module) {
    for (_, function) in module.functions.iter_mut() {
        for (_, inst) in function.insts.iter_mut() {
            if let InstData::SliceIndex { checked, .. } | InstData::ElementPtr { checked, .. } =
                &mut inst.data
            {
                *checked = false;
            }
        }
    }
}
