//! Compiles every kernel of the suite for one of four architectures, which take turns, and assembles it; with
//! `KILN_ASSEMBLE_ALL`, which `cargo xtask soak` sets, for all. Among the four are the oldest and the newest that
//! NVIDIA's `ptxas` and Kiln share; two have lines of the source. What several cases compile is assembled with the
//! first of them.
//!
//! A case runs in the interpreter; an observer keeps the module of every kernel that it compiles, as text, before any
//! hook has seen it. Each is parsed, compiled to PTX with the standard hooks and assembled. Needs `KILN_PTXAS`,
//! which `cargo xtask test` sets; without it the kernels are compiled and not assembled.

use std::collections::{BTreeMap, BTreeSet};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use kiln::core::compile::{NoObserver, Stage, StageObserver, compile};
use kiln::core::ir::{Module, parse};
use kiln::core::job::{CompileJob, CompileOptions};
use kiln::core::runtime::CpuOptions;
use kiln::core::target::{PtxTarget, Target};
use kiln::prelude::*;
use libtest_mimic::Trial;
use suite::quiet::unless_it_panics;
use suite::{Case, Outcome};

use crate::{each_case, test};

/// The tests.
pub fn tests() -> Vec<Trial> {
    let mut tests = each_case("assembled", |case| {
        let wrong: Vec<String> = modules(case).iter().flat_map(refusals).collect();
        match wrong.is_empty() {
            true => Ok(()),
            false => Err(wrong.join("\n").into()),
        }
    });
    tests.push(test("assembled::modules_are_kept", modules_are_kept));
    tests
}

const ARCHITECTURES: [u32; 4] = [75, 80, 90, 120];

/// Keeps the text of every specialized module.
#[derive(Default)]
struct KernelModules(Mutex<BTreeSet<String>>);

impl StageObserver for KernelModules {
    fn stage(&self, _: &str, stage: Stage, _: Duration, text: &dyn Fn() -> String) {
        if stage == Stage::Specialized {
            self.0
                .lock()
                .expect("no panic while it is held")
                .insert(text());
        }
    }

    fn wants_text(&self) -> bool {
        false
    }
}

/// The modules that a case compiles. Whether it passes is the subject of another test.
pub fn modules(case: &Case) -> Vec<Module> {
    static KEPT: Mutex<BTreeMap<&str, Arc<OnceLock<BTreeSet<String>>>>> =
        Mutex::new(BTreeMap::new());
    let kept = {
        let mut kept = KEPT.lock().expect("no panic while it is held");
        kept.entry(case.path()).or_default().clone()
    };
    let texts = kept.get_or_init(|| texts(case)).iter();
    let module = |text: &String| parse(text, &suite::find_row).expect("it parses");
    texts.map(module).collect()
}

/// The text of each.
fn texts(case: &Case) -> BTreeSet<String> {
    let modules = Arc::new(KernelModules::default());
    let observer: Arc<dyn StageObserver + Send + Sync> = modules.clone();
    let options = JitOptions::default().observer(observer);
    let device = Device::cpu_with(CpuOptions::default().interpret(true));
    let jit = Jit::with(device, kiln::hooks::standard(), options);
    let _ = unless_it_panics(|| (case.run)(&jit));
    let mut texts = modules.0.lock().expect("no panic while it is held");
    std::mem::take(&mut texts)
}

fn modules_are_kept() -> Outcome {
    let cases = suite::visibility::CASES;
    match cases.iter().all(|case| !modules(case).is_empty()) {
        true => Ok(()),
        false => Err("a case compiles a kernel, and its module is not kept".into()),
    }
}

/// What `ptxas` has against a text, if anything.
fn assemble(ptxas: &std::ffi::OsStr, ptx: &str, sm: u32) -> Result<(), String> {
    use std::io::Write;
    let mut child = Command::new(ptxas)
        .args([&format!("-arch=sm_{sm}"), "-o", "/dev/null", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|e| format!("ptxas cannot be started: {e}"))?;
    if let Some(mut input) = child.stdin.take() {
        input.write_all(ptx.as_bytes()).map_err(|e| e.to_string())?;
    }
    let output = child.wait_with_output().map_err(|e| e.to_string())?;
    if output.status.success() {
        return Ok(());
    }
    Err(String::from_utf8_lossy(&output.stderr).into_owned())
}

/// Whether it is the first time that this module is met: cases share kernels, as those of arrays do.
fn is_new(module: &Module) -> bool {
    static MET: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    let mut met = MET.lock().expect("no panic while it is held");
    met.insert(module.to_string())
}

/// Why a module is refused, by Kiln or the assembler, for which architecture.
fn refusals(module: &Module) -> Vec<String> {
    if !is_new(module) {
        return Vec::new();
    }
    let hooks = kiln::hooks::standard();
    let ptxas = std::env::var_os("KILN_PTXAS");
    // A kernel that asks for its architecture has been answered that it is on a CPU, which has all.
    let oldest = if module.changes_word_pairs() { 90 } else { 0 };
    let numbered = ARCHITECTURES.into_iter().enumerate();
    let fitting: Vec<(usize, u32)> = numbered.filter(|&(_, sm)| sm >= oldest).collect();
    // Which of them, a kernel's name says.
    let turn = fitting[module.name.len() % fitting.len()].0;
    let all = std::env::var_os("KILN_ASSEMBLE_ALL").is_some();
    let refusal = |(place, sm): (usize, u32)| {
        let target = Target::Ptx(PtxTarget::for_sm(sm));
        let options = CompileOptions::default().line_info(place >= 2);
        let job = CompileJob::new(module.clone(), target, options);
        let assembled = compile(job, &hooks, &NoObserver)
            .map_err(|error| error.to_string())
            .and_then(|compiled| match (&ptxas, compiled.code.ptx()) {
                (_, None) => Err("it is no PTX".to_owned()),
                (Some(ptxas), Some(ptx)) => assemble(ptxas, &ptx.text, sm),
                (None, Some(_)) => Ok(()),
            });
        let why = assembled.err()?;
        Some(format!("{} for sm_{sm}: {why}", module.name))
    };
    let in_turn = fitting
        .into_iter()
        .filter(|(place, _)| all || *place == turn);
    in_turn.filter_map(refusal).collect()
}
