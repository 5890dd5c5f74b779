//! Files of kinds `hook`, `llvm` and `ptx`: what stages of the pipeline give.
//!
//! `; target: cpu` is an x86-64 processor without extensions, with vectors of 8 lanes and blocks of 32
//! threads, unless `lanes` and `block` say other; `; target: sm_90` is a GPU. A file can have several.
//! `hooks` names some of [`hooks::ALL`](super::hooks::ALL); `stage: optimized-llvm` looks at the module
//! after LLVM's passes; `contract: off` compiles without the option by which `a * b + c` is rounded once.

use std::sync::Mutex;
use std::time::Duration;

use kiln::core::codegen::Isas;
use kiln::core::compile::{Compiler, Stage, StageObserver};
use kiln::core::hook::{Hook, HookSet};
use kiln::core::ir::{self, PrintOptions};
use kiln::core::job::{CompileJob, CompileOptions};
use kiln::core::target::{CpuTarget, PtxTarget, Target};
use suite::Outcome;
use suite::files::File;

use super::{checks, gives, hooks};

/// A target by its name.
pub(super) fn target(file: &File, name: &str) -> Result<Target, String> {
    if name == "interpreter" {
        return Ok(Target::Interpreter);
    }
    if name == "cpu" {
        let lanes = file.extents("lanes")?.map_or(8, |[lanes, ..]| lanes);
        return Ok(Target::Cpu(CpuTarget {
            block: Some(file.extents("block")?.unwrap_or([32, 1, 1])),
            lanes: Some(lanes),
            ..CpuTarget::default()
        }));
    }
    let sm = name.strip_prefix("sm_").and_then(|sm| sm.parse().ok());
    let sm = sm.ok_or_else(|| format!("`{name}` is no target"))?;
    Ok(Target::Ptx(PtxTarget::for_sm(sm)))
}

/// The names of a file's targets.
pub(super) fn targets(file: &File) -> impl Iterator<Item = &str> {
    file.settings()
        .filter_map(|(name, value)| (name == "target").then_some(value))
}

/// Keeps the output of one stage.
struct Keeps {
    stage: Stage,
    text: Mutex<Option<String>>,
}

impl StageObserver for Keeps {
    fn stage(&self, _: &str, stage: Stage, _: Duration, text: &dyn Fn() -> String) {
        if stage == self.stage {
            *self.text.lock().expect("nothing panics here") = Some(text());
        }
    }
}

/// The hooks that a file names.
pub(super) fn hooks_of(file: &File) -> Result<HookSet, String> {
    hooks::named(file.setting("hooks").unwrap_or_default())
}

/// What a stage gives for a target.
fn output(file: &File, hooks: &HookSet, target: Target, stage: Stage) -> Result<String, String> {
    let keeps = Keeps {
        stage,
        text: Mutex::new(None),
    };
    let compiler = Compiler {
        hooks,
        isas: &Isas::default(),
        observer: &keeps,
    };
    let contract = match file.setting("contract") {
        None => true,
        Some("off") => false,
        Some(other) => return Err(format!("`contract` is `off`, not `{other}`")),
    };
    let options = CompileOptions::default().contract(contract);
    let job = CompileJob::new(file.module()?, target, options);
    let compiled = match stage {
        Stage::Specialized | Stage::Legal => compiler.legalize(job).map(drop),
        Stage::Llvm | Stage::OptimizedLlvm | Stage::Ptx | Stage::Object => {
            compiler.compile(job).map(drop)
        }
    };
    compiled.map_err(|error| error.to_string())?;
    let text = keeps.text.into_inner().expect("nothing panics here");
    text.ok_or_else(|| format!("the target has no stage `{}`", stage.name()))
}

pub(super) fn check_hooks(file: &File) -> Outcome {
    let name = targets(file).next().unwrap_or("interpreter");
    let hooks = hooks_of(file)?;
    let given = output(file, &hooks, target(file, name)?, Stage::Legal);
    let given = given.map(|text| without_places(&text, &hooks));
    let given = given.unwrap_or_else(Ok)?;
    gives::settle(file, &given)
}

/// The text of a module that does not say where it comes from.
fn without_places(text: &str, hooks: &HookSet) -> Result<String, ir::ParseError> {
    let of_hooks = |name: &str| {
        let mut rows = hooks.iter().flat_map(Hook::rows);
        rows.find(|row| row.name == name).copied()
    };
    let find = |name: &str| kiln::stdlib::find(name).or_else(|| of_hooks(name));
    let module = ir::parse(text, &find)?;
    Ok(ir::print(&module, PrintOptions { locations: false }))
}

pub(super) fn check_llvm(file: &File) -> Outcome {
    check_stage(file, llvm_stage(file)?)
}

/// Which of LLVM's stages a file of kind `llvm` looks at.
fn llvm_stage(file: &File) -> Result<Stage, String> {
    match file.setting("stage") {
        None => Ok(Stage::Llvm),
        Some("optimized-llvm") => Ok(Stage::OptimizedLlvm),
        Some(other) => Err(format!("`{other}` is no stage of LLVM's")),
    }
}

pub(super) fn check_ptx(file: &File) -> Outcome {
    check_stage(file, Stage::Ptx)
}

/// The stages that hooks can change, by the kinds of files that look at them.
pub(super) const HOOKED: [(&str, fn(&File) -> Result<Stage, String>); 3] = [
    ("hook", |_| Ok(Stage::Legal)),
    ("llvm", llvm_stage),
    ("ptx", |_| Ok(Stage::Ptx)),
];

/// Whether a stage of a file gives something else without one of the hooks that the file names.
pub(super) fn shows(file: &File, stage: Stage, hook: &str) -> Result<bool, String> {
    let (with, without) = (hooks_of(file)?, hooks_of(file)?.without(hook));
    let mut names: Vec<&str> = targets(file).collect();
    if names.is_empty() {
        names.push("interpreter");
    }
    for name in names {
        let target = target(file, name)?;
        let with = output(file, &with, target.clone(), stage);
        if with != output(file, &without, target, stage) {
            return Ok(true);
        }
    }
    Ok(false)
}

fn check_stage(file: &File, stage: Stage) -> Outcome {
    let mut names = targets(file).peekable();
    names.peek().ok_or("`; target: ..` is missing")?;
    let mut wanted = file.clone();
    for name in names {
        let text = output(file, &hooks_of(file)?, target(file, name)?, stage)?;
        match file.is_rewritten() {
            true => wanted.text = checks::blessed(&wanted, name, &text)?,
            false => checks::check(file, name, &text)?,
        }
    }
    file.settle(&wanted.text)
}
