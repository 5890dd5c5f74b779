//! The machines that extensions are tried on.

use kiln::core::prelude::*;
use kiln::prelude::*;

fn standard_and(hook: Hook) -> HookSet {
    kiln::hooks::standard().with(hook)
}

/// This machine's CPU, with the standard hooks and this one.
pub fn cpu(hook: Hook) -> Jit {
    cpu_of(Device::cpu(), hook)
}

/// The same of a device that the hook knows.
pub fn cpu_of(device: Device, hook: Hook) -> Jit {
    Jit::with(device, standard_and(hook), JitOptions::default())
}

/// The interpreter.
pub fn interpreter(hook: Hook) -> Jit {
    interpreter_of(Device::cpu(), hook)
}

/// The same of a device that the hook knows.
pub fn interpreter_of(device: Device, hook: Hook) -> Jit {
    for_target(device, standard_and(hook), Target::Interpreter)
}

/// A `Jit` that compiles for an H100 and launches nothing: for looking at PTX.
pub fn ptx(hooks: impl Into<HookSet>) -> Jit {
    let hooks = kiln::hooks::standard().with_all(&hooks.into());
    for_target(Device::cpu(), hooks, Target::Ptx(PtxTarget::for_sm(90)))
}

fn for_target(device: Device, hooks: HookSet, target: Target) -> Jit {
    let options = JitOptions::default().target(target);
    Jit::with(device, hooks, options)
}
