//! Assembles every kernel of the suite with NVIDIA's `ptxas`, for the oldest, two middle and the
//! newest architecture it and Kiln share.
//!
//! The suite runs on the CPU; an observer keeps the legal module of every kernel it compiles, as
//! text. Each is parsed, compiled to PTX for each architecture and assembled. Needs `KILN_PTXAS`,
//! which `cargo xtask test` sets; without it the kernels are compiled and not assembled.

mod suite;

use std::collections::BTreeSet;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use kiln::core::compile::{NoObserver, Stage, StageObserver, compile};
use kiln::core::hook::HookSet;
use kiln::core::ir::{Module, parse};
use kiln::core::job::{CompileJob, CompileOptions};
use kiln::core::target::{PtxTarget, Target};
use kiln::prelude::*;

const ARCHITECTURES: [u32; 4] = [75, 80, 90, 120];

/// Keeps the text of every legal module.
#[derive(Default)]
struct LegalModules(Mutex<BTreeSet<String>>);

impl StageObserver for LegalModules {
    fn stage(&self, _: &str, stage: Stage, _: Duration, text: &dyn Fn() -> String) {
        if stage == Stage::Legal {
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

fn suite_modules() -> Vec<Arc<Module>> {
    let modules = Arc::new(LegalModules::default());
    let device = Device::cpu();
    for (_, case) in suite::cases() {
        let observer: Arc<dyn StageObserver + Send + Sync> = modules.clone();
        let options = JitOptions {
            observer: Some(observer),
            ..JitOptions::default()
        };
        let jit = Jit::with(device.clone(), kiln::hooks::standard(), options);
        // Whether the case passes is the subject of another test.
        let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| case(&jit)));
    }
    let texts = modules.0.lock().expect("no panic while it is held");
    let module = |text: &String| Arc::new(parse(text, &kiln::stdlib::find).expect("it parses"));
    texts.iter().map(module).collect()
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

#[test]
fn every_kernel_of_the_suite_assembles() {
    let modules = suite_modules();
    assert!(
        modules.len() > 80,
        "the suite compiles only {} kernels",
        modules.len()
    );
    let ptxas = std::env::var_os("KILN_PTXAS");
    let (hooks, options) = (HookSet::new(), CompileOptions::default());
    let mut wrong = Vec::new();
    for module in &modules {
        for sm in ARCHITECTURES {
            let target = Target::Ptx(PtxTarget::for_sm(sm));
            let job = CompileJob::new(Module::clone(module), target, options.clone());
            let ptx = match compile(job, &hooks, &NoObserver) {
                Ok(compiled) => compiled.code.ptx().expect("PTX").text.clone(),
                Err(error) => {
                    wrong.push(format!("{} for sm_{sm}: {error}", module.name));
                    continue;
                }
            };
            let assembled = ptxas
                .as_ref()
                .map_or(Ok(()), |ptxas| assemble(ptxas, &ptx, sm));
            if let Err(message) = assembled {
                wrong.push(format!("{} for sm_{sm}: {message}", module.name));
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {}:\n{}",
        wrong.len(),
        modules.len(),
        wrong.join("\n")
    );
}
