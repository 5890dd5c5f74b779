//! Every setting alone: each that can change code changes the key, and none that cannot.
//!
//! The settings are taken apart field by field: whoever adds one says here which it is.

use std::sync::Arc;
use std::time::Duration;

use kiln_compiler::args;
use kiln_compiler::build::Kernel;
use kiln_compiler::checks::Checks;
use kiln_compiler::codegen::Isas;
use kiln_compiler::compile::NoObserver;
use kiln_compiler::error::Result;
use kiln_compiler::hook::{Hook, HookSet};
use kiln_compiler::ir::Type;
use kiln_compiler::job::CompileOptions;
use kiln_compiler::runtime::Device;
use kiln_compiler::target::{Barriers, CpuFeatures, CpuTarget, CustomTarget, PtxTarget, Target};

use super::{Jit, JitOptions};
use crate::cache::{CacheFolder, CacheKey};

/// Settings with one changed, and its name.
type Changed = (String, JitOptions);

/// Settings of which each is another key than the options themselves are.
fn in_the_key(options: &JitOptions) -> Vec<Changed> {
    let JitOptions {
        compile,
        specialize_facts,
        target: _,
        checks: _,
        // No part of code.
        time_limit: _,
        memory_bound: _,
        share_code: _,
        cache: _,
        shipped: _,
        observer: _,
        on_fault: _,
        on_print: _,
        // A target's fingerprint, which the target of its family asks for.
        isas: _,
    } = options;
    let of = |name: &str, options| (name.to_owned(), options);
    let options = || options.clone();
    let mut changed = vec![
        of(
            "specialize_facts",
            options().specialize_facts(!specialize_facts),
        ),
        // Code that is checked is the interpreter's.
        of("checks", options().checks(Checks::all())),
    ];
    for (name, compile) in CompileOptions::each_changed(compile) {
        changed.push(of(&format!("compile.{name}"), options().compile(compile)));
    }
    for (name, target) in targets() {
        changed.push(of(&format!("target {name}"), options().target(target)));
    }
    changed
}

/// Targets of which each is another key than all others.
fn targets() -> Vec<(&'static str, Target)> {
    let PtxTarget { sm, ptx } = PtxTarget::for_sm(90);
    let custom = |family, settings: &str| {
        Target::Custom(CustomTarget {
            family,
            settings: settings.to_owned(),
        })
    };
    let mut targets = vec![
        ("PTX", Target::Ptx(PtxTarget { sm, ptx })),
        ("PTX, sm", Target::Ptx(PtxTarget { sm: sm + 1, ptx })),
        ("PTX, version", Target::Ptx(PtxTarget { sm, ptx: ptx + 1 })),
        ("interpreter", Target::Interpreter),
        ("custom", custom("one", "")),
        ("custom, family", custom("other", "")),
        ("custom, settings", custom("one", "more")),
    ];
    // All that a CPU is told by.
    let CpuTarget {
        block: _,
        lanes: _,
        barriers: _,
        features: _,
        scheduled_for_host: _,
    } = CpuTarget::default();
    let cpu = |change: &dyn Fn(&mut CpuTarget)| {
        let mut target = CpuTarget::default();
        change(&mut target);
        Target::Cpu(target)
    };
    targets.extend([
        ("CPU", cpu(&|_| {})),
        ("CPU, block", cpu(&|cpu| cpu.block = Some([32, 1, 1]))),
        ("CPU, lanes", cpu(&|cpu| cpu.lanes = Some(8))),
        (
            "CPU, waits",
            cpu(&|cpu| cpu.barriers = Some(Barriers::Coroutines)),
        ),
        ("CPU, schedule", cpu(&|cpu| cpu.scheduled_for_host ^= true)),
    ]);
    // What it has may be what this machine has, or nothing.
    if CpuFeatures::host() != CpuFeatures::default() {
        let features = cpu(&|cpu| cpu.features = CpuFeatures::host());
        targets.push(("CPU, features", features));
    }
    targets
}

/// Settings of which none is another key.
fn beside_the_key(options: &JitOptions) -> Vec<Changed> {
    let options = || options.clone();
    let folder = std::env::temp_dir().join("kiln-key-of-options");
    let changed = [
        ("time_limit", options().time_limit(Duration::from_secs(1))),
        ("memory_bound", options().memory_bound(1 << 20)),
        ("share_code", options().share_code(false)),
        ("cache", options().cache(CacheFolder::At(folder.clone()))),
        ("shipped", options().shipped(folder)),
        ("observer", options().observer(Arc::new(NoObserver))),
        ("on_fault", options().on_fault(|_| {})),
        ("on_print", options().on_print(|_| {})),
        ("isas", options().isas(Isas::default())),
    ];
    changed
        .map(|(name, options)| (name.to_owned(), options))
        .into()
}

fn key_of(kernel: &Kernel, options: JitOptions, hooks: HookSet) -> Result<CacheKey> {
    let jit = Jit::with(Device::cpu(), hooks, options);
    let mut x = jit.zeros::<f32>(4)?;
    // The number is a multiple of 16.
    let request = jit.request(kernel, jit.snapshot(kernel)?, args!(&mut x, 32u32))?;
    Ok(request.identity.key.clone())
}

fn kernel() -> Result<Kernel> {
    Kernel::build("sets", |k| {
        let (x, n) = (k.slice_mut("x", Type::F32), k.param("n", Type::U32));
        x.at(n).set(1.0f32);
    })
}

#[test]
fn every_option_alone() -> Result<()> {
    let kernel = kernel()?;
    let options = JitOptions::default().cache(CacheFolder::Off);
    let base = key_of(&kernel, options.clone(), HookSet::new())?;
    let mut known = vec![("none".to_owned(), base.clone())];
    for (name, changed) in in_the_key(&options) {
        let key = key_of(&kernel, changed, HookSet::new())?;
        let same = known.iter().find(|(_, earlier)| *earlier == key);
        // What is checked is the interpreter's code.
        let is_that = |other: &str| name == "target interpreter" && other == "checks";
        if let Some((other, _)) = same
            && !is_that(other)
        {
            panic!("`{name}` has the key of `{other}`");
        }
        known.push((name, key));
    }
    for (name, changed) in beside_the_key(&options) {
        assert_eq!(key_of(&kernel, changed, HookSet::new())?, base, "{name}");
    }
    Ok(())
}

#[test]
fn everything_of_hooks_alone() -> Result<()> {
    let kernel = kernel()?;
    let hook = |name: &'static str| Hook::new(name).rewrite_ir(|_, _| Ok(()));
    let sets = [
        HookSet::new(),
        HookSet::new().with(hook("a")),
        HookSet::new().with(hook("b")),
        HookSet::new().with(hook("a").version(2)),
        HookSet::new().with(hook("a").key("setting", 1)),
        HookSet::new().with(hook("a").key("setting", 2)),
        HookSet::new().with(hook("a").key("other", 1)),
        HookSet::new().with(hook("a")).with(hook("b")),
        HookSet::new().with(hook("b")).with(hook("a")),
    ];
    let options = JitOptions::default().cache(CacheFolder::Off);
    let mut known: Vec<CacheKey> = Vec::new();
    for (at, hooks) in sets.into_iter().enumerate() {
        let key = key_of(&kernel, options.clone(), hooks)?;
        let same = known.iter().position(|earlier| *earlier == key);
        assert_eq!(same, None, "the key of set {at} is that of");
        known.push(key);
    }
    Ok(())
}
