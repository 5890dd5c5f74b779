//! Cases as the standard hooks leave them: the result is what it was.

use kiln_hooks::standard;
use kiln_jit_core::abi::ParamLayout;
use kiln_jit_core::hook::{HookContext, HookSet};
use kiln_jit_core::ir::verify;
use kiln_jit_core::job::CompileOptions;
use kiln_jit_core::target::{CpuTarget, Target};

use crate::case::Case;
use crate::run::by_value;

/// The standard hooks, all of them and each alone.
pub fn hook_sets() -> Vec<HookSet> {
    let all = standard();
    let alone = |hook: &_| {
        let mut set = HookSet::new();
        set.push(std::sync::Arc::clone(hook));
        set
    };
    let mut sets: Vec<HookSet> = all.iter().map(alone).collect();
    sets.push(all);
    sets
}

/// The hooks that a case is compiled with: none for one case in as many as there are sets and one more.
pub fn hooks_of(case: &Case) -> HookSet {
    let sets = hook_sets();
    let number = case.seed as usize % (sets.len() + 1);
    sets.into_iter().nth(number).unwrap_or_default()
}

/// The case after these hooks' methods on the IR. Arguments that they have made by-value ones are so.
///
/// # Errors
/// A hook that fails, or leaves a module that does not verify.
pub fn hooked(case: &Case, hooks: &HookSet) -> Result<Case, String> {
    let mut case = case.clone();
    let (target, options) = (Target::Cpu(CpuTarget::host()), CompileOptions::default());
    let cx = HookContext {
        kernel: "random",
        target: &target,
        options: &options,
    };
    for hook in hooks.iter() {
        let done = hook.rewrite_ir(&cx, &mut case.module);
        done.map_err(|e| format!("{}: {e}", hook.name()))?;
        verify(&case.module).map_err(|e| format!("{}: {e}", hook.name()))?;
    }
    let before = case.clone();
    for hook in hooks.iter() {
        let done = hook.lower_abi(&cx, &mut case.module);
        done.map_err(|e| format!("{}: {e}", hook.name()))?;
        verify(&case.module).map_err(|e| format!("{}: {e}", hook.name()))?;
    }
    let now = ParamLayout::of(&case.module).unwrap_or_default();
    case.args = by_value(&before, &now).args;
    Ok(case)
}
