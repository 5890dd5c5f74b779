//! The machines that extensions are tried on.

use kiln::core::hook::{Hook, HookSet};
use kiln::core::target::{PtxTarget, Target};
use kiln::prelude::*;

fn standard_and(hook: Hook) -> HookSet {
    kiln::hooks::standard().with(hook)
}

/// This machine's CPU, with the standard hooks and this one.
pub fn cpu(hook: Hook) -> Jit {
    Jit::with(Device::cpu(), standard_and(hook), JitOptions::default())
}

/// The interpreter.
pub fn interpreter(hook: Hook) -> Jit {
    for_target(standard_and(hook), Target::Interpreter)
}

/// A `Jit` that compiles for an H100 and launches nothing: for looking at PTX.
pub fn ptx(hooks: impl Into<HookSet>) -> Jit {
    let hooks = kiln::hooks::standard().with_all(&hooks.into());
    for_target(hooks, Target::Ptx(PtxTarget::for_sm(90)))
}

fn for_target(hooks: HookSet, target: Target) -> Jit {
    let options = JitOptions {
        target: Some(target),
        ..JitOptions::default()
    };
    Jit::with(Device::cpu(), hooks, options)
}
