//! Kernels without bounds checks, as CUDA C++ has them.

use kiln::core::hook::Hook;
use kiln::core::ir::{InstData, Module};

/// Takes the checks out of all accesses. The programs of the suite stay within their buffers: what they do with
/// checks is tested on every device. To stand first: then there is nothing to be moved out of loops.
pub fn unchecked() -> Hook {
    Hook::new("unchecked")
        .may_remove_checks()
        .rewrite_ir(|_, module| {
            remove_checks(module);
            Ok(())
        })
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
