//! Files of kinds `verify` and `legal`: lines announce what is wrong with them by `; error: message`.
//! An error about the module belongs to the line that begins it, one about a signature to the function's.

use std::collections::BTreeMap;

use kiln::core::codegen::Isas;
use kiln::core::compile::{Compiler, NoObserver};
use kiln::core::hook::HookSet;
use kiln::core::ir;
use kiln::core::job::{CompileJob, CompileOptions};
use suite::Outcome;
use suite::files::File;

use super::compiled::target;

const MARK: &str = "; error: ";

/// A place, as `here:line:column`, and what is wrong there.
type Wrong = (String, String);

pub(super) fn check_verifier(file: &File) -> Outcome {
    let errors = ir::verify(&file.module()?).err();
    let errors = errors.map_or(Vec::new(), |e| e.errors);
    settle(file, errors.into_iter().map(|e| (e.location, e.message)))
}

pub(super) fn check_legality(file: &File) -> Outcome {
    let name = file.setting("target").ok_or("`; target: ..` is missing")?;
    let target = target(file, name)?;
    let job = CompileJob::new(file.module()?, target, CompileOptions::default());
    let compiler = Compiler {
        hooks: &HookSet::new(),
        isas: &Isas::default(),
        observer: &NoObserver,
    };
    let job = compiler.legalize(job)?;
    let isa = compiler.isas.of(&job.target).ok_or("an unknown target")?;
    let errors = isa.check(&job.legal).err();
    let errors = errors.map_or(Vec::new(), |e| e.list);
    settle(file, errors.into_iter().map(|e| (e.location, e.message)))
}

/// Holds the errors against those that the file announces.
fn settle(file: &File, errors: impl Iterator<Item = Wrong>) -> Outcome {
    let is_module = |line: &str| line.starts_with("module");
    let module_line = file.text.lines().position(is_module).unwrap_or(0) + 1;
    let mut by_line: BTreeMap<usize, Vec<String>> = BTreeMap::new();
    for (place, message) in errors {
        let line = match place.split(':').nth(1) {
            Some(number) => number.parse()?,
            None => module_line,
        };
        by_line.entry(line).or_default().push(message);
    }
    let mut wanted = String::new();
    for (i, line) in file.text.lines().enumerate() {
        wanted += line.split(MARK).next().unwrap_or(line).trim_end();
        for message in by_line.remove(&(i + 1)).into_iter().flatten() {
            wanted += &format!(" {MARK}{message}");
        }
        wanted += "\n";
    }
    match by_line.is_empty() {
        true => file.settle(&wanted),
        false => Err(format!("errors about no line: {by_line:?}").into()),
    }
}
