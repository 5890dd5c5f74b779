//! What has no file: nothing may.

use std::collections::{BTreeMap, BTreeSet};

use kiln::core::hook::{Hook, HookPoint};
use kiln::core::ir::Module;
use kiln_random::operations;
use libtest_mimic::Trial;
use suite::Outcome;
use suite::files::File;

use super::compiled::{self, targets};
use super::{KINDS, checks, hooks};
use crate::test;

pub(super) fn tests() -> Vec<Trial> {
    let tests: [(&str, fn() -> Outcome); 6] = [
        ("each_folder_is_of_a_kind", folders),
        ("each_operation_has_a_text", texts),
        ("each_operation_is_lowered_for_gpus", || lowered("sm_")),
        ("each_operation_is_lowered_for_cpus", || lowered("cpu")),
        ("each_operation_is_run", runs),
        ("each_extension_point_has_a_file", extension_points),
    ];
    let named = |(name, run): (&str, fn() -> Outcome)| test(format!("kir::{name}"), run);
    tests.into_iter().map(named).collect()
}

/// What specialization leaves nothing of.
const BEFORE_SPECIALIZATION: &[&str] = &["ConstParam"];

/// Where hooks are called with what a program has at a launch, which no file has, or give what is no text
/// (`tests/hooks.rs`).
const IN_NO_FILE: [HookPoint; 6] = [
    HookPoint::ConvertArgument,
    HookPoint::Assemble,
    HookPoint::AfterLoad,
    HookPoint::BeforeLaunch,
    HookPoint::HiddenArguments,
    HookPoint::AfterLaunch,
];

/// The operations of a module by the lines of its file.
fn by_line(module: &Module) -> BTreeMap<usize, BTreeSet<String>> {
    let mut lines = BTreeMap::<usize, BTreeSet<String>>::new();
    for function in module.functions.values() {
        for node in function.insts.values() {
            let at_line = lines.entry(node.location.line as usize).or_default();
            at_line.insert(operations::name(&node.data));
        }
    }
    lines
}

/// Whether all operations were seen, but for some.
fn all_seen(but: &[&str], seen: &BTreeSet<String>, what: &str) -> Outcome {
    let missing = |name: &String| !but.contains(&name.as_str()) && !seen.contains(name);
    let missing: Vec<_> = operations::all().into_iter().filter(missing).collect();
    match missing.is_empty() {
        true => Ok(()),
        false => Err(format!("{what}: {missing:?}; write one in tests/filetests").into()),
    }
}

/// Files of another folder would be read by nobody.
fn folders() -> Outcome {
    let is_kind = |folder: &String| KINDS.iter().any(|(kind, _)| kind == folder);
    match File::folders().into_iter().find(|f| !is_kind(f)) {
        None => Ok(()),
        Some(folder) => Err(format!("there is no kind `{folder}` of file tests").into()),
    }
}

fn texts() -> Outcome {
    let mut seen = BTreeSet::new();
    for file in File::all("text") {
        seen.extend(by_line(&file.module()?).into_values().flatten());
    }
    all_seen(&[], &seen, "no file of kind `text` has")
}

fn runs() -> Outcome {
    let mut seen = BTreeSet::new();
    for file in File::all("run") {
        seen.extend(by_line(&file.module()?).into_values().flatten());
    }
    let what = "no file of kind `run` has";
    all_seen(BEFORE_SPECIALIZATION, &seen, what)
}

/// Whether each operation has a check below it about a target of a family.
fn lowered(family: &str) -> Outcome {
    let mut seen = BTreeSet::new();
    for file in File::all("llvm") {
        let lines = by_line(&file.module()?);
        let of_family: Vec<&str> = targets(&file).filter(|t| t.starts_with(family)).collect();
        for check in checks::of(&file, &of_family) {
            seen.extend(lines.get(&check.about).into_iter().flatten().cloned());
        }
    }
    let what = format!("no file of kind `llvm` has a line `; {family}..: ..` below");
    all_seen(BEFORE_SPECIALIZATION, &seen, &what)
}

fn extension_points() -> Outcome {
    let mut shown = BTreeSet::new();
    for (kind, stage) in compiled::HOOKED {
        for file in File::all(kind) {
            for hook in compiled::hooks_of(&file)?.iter() {
                if compiled::shows(&file, stage(&file)?, hook.name())? {
                    shown.insert(hook.name().to_owned());
                }
            }
        }
    }
    let known: Vec<Hook> = hooks::ALL.iter().map(|make| make()).collect();
    if let Some(hook) = known.iter().find(|hook| !shown.contains(hook.name())) {
        return Err(format!("no file shows what the hook `{}` does", hook.name()).into());
    }
    let acted_at: Vec<HookPoint> = known.iter().flat_map(Hook::points).collect();
    let mut needed = HookPoint::ALL.iter().filter(|p| !IN_NO_FILE.contains(p));
    match needed.find(|point| !acted_at.contains(point)) {
        None => Ok(()),
        Some(point) => Err(format!("no hook of a file acts at `{point}`; write one").into()),
    }
}
