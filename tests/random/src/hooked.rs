//! Cases as the standard hooks leave them: the result is what it was.

use kiln_hooks::standard;
use kiln_jit_core::abi::ParamLayout;
use kiln_jit_core::codegen::Isas;
use kiln_jit_core::compile::{Compiler, NoObserver};
use kiln_jit_core::hook::{Hook, HookSet};
use kiln_jit_core::job::{CompileJob, CompileOptions};
use kiln_jit_core::target::Target;

use crate::case::Case;
use crate::run::by_value;

/// The architecture for which hooks rewrite cases.
const SM: u32 = 90;

/// The standard hooks, all of them and each alone.
pub fn hook_sets() -> Vec<HookSet> {
    let all = standard();
    let alone = |hook: &Hook| all.clone().only(hook.name());
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

/// The case after these hooks' work on the IR. Arguments that they have made by-value ones are so.
///
/// # Errors
/// A hook that fails, or leaves a module that does not verify.
pub fn hooked(case: &Case, hooks: &HookSet) -> Result<Case, String> {
    // A GPU's, where each of them has something to do.
    hooked_for(kiln_jit_core::ir::gpu_on_host::target(SM), case, hooks)
}

/// [`hooked`] for a target.
///
/// # Errors
/// As there.
pub fn hooked_for(target: Target, case: &Case, hooks: &HookSet) -> Result<Case, String> {
    let compiler = Compiler {
        hooks,
        isas: &Isas::default(),
        observer: &NoObserver,
    };
    let job = CompileJob::new(case.module.clone(), target, CompileOptions::default());
    let legal = compiler.legalize(job).map_err(|e| e.to_string())?.legal;
    let mut now = case.clone();
    now.module = legal.module().clone();
    let layout = ParamLayout::of(&now.module).unwrap_or_default();
    now.args = by_value(case, &layout).args;
    Ok(now)
}
