//! Files of kind `run`: a kernel, its launch, and what the launch gives, on every backend.
//!
//! ```text
//! ; test run
//! ; block: 4
//! ; arg x: 1 2 3 4 -> 2 4 6 8
//! ; arg n: 4
//! module double legal
//! ...
//! ```
//!
//! `grid` and `block` have up to three extents, `shared` is the bytes of dynamic shared memory. There is
//! an `arg` for each parameter, in order, as numbers; what is passed by address has behind `->` what it
//! holds after the launch. A launch that faults has a line `; fault: index 4 of 4`, and nothing behind `->`.

use kiln::core::codegen::Isas;
use kiln::core::compile::{Compiler, NoObserver};
use kiln::core::hook::HookSet;
use kiln::core::ir::TypeData;
use kiln::core::job::{CompileJob, CompileOptions};
use kiln::core::target::Target;
use kiln_random::{Arg, Case, InterpreterRunner, OnHostRunner, Runner, runners};

use super::File;
use super::numbers::Numbers;
use crate::Outcome;

/// What a run gives: the buffers, or why there are none.
type Given = Result<Vec<Vec<u8>>, String>;

/// How a run says that a thread has faulted.
const FAULT: &str = "fault: ";

/// Further seeds for code for GPUs on this CPU: other architectures, hooks, orders of turns.
const SEEDS: std::ops::Range<u64> = 1..4;

/// All backends that need no GPU.
pub struct Everywhere(Vec<Box<dyn Runner>>);

impl Default for Everywhere {
    fn default() -> Self {
        Everywhere(runners())
    }
}

impl Everywhere {
    /// Runs a file on each. What it expects is what the interpreter gives, and the others have to agree.
    ///
    /// # Errors
    /// The first backend that gives something else than the file says.
    pub fn check(&self, file: &File) -> Outcome {
        let case = case(file)?;
        let expected = rendered(file, &case, InterpreterRunner.run(&case))?;
        file.settle(&expected)?;
        let file = &File {
            text: expected,
            ..file.clone()
        };
        let faults = file.text.contains(&format!("; {FAULT}"));
        for runner in &self.0 {
            let given = runner.run(&case);
            // Where a thread faults, one whose indices are clamped may go on; what it leaves is its own.
            if faults && runner.clamps() && given.is_ok() {
                continue;
            }
            agrees(file, &case, &runner.name(), given)?;
        }
        for seed in SEEDS {
            let (runner, case) = (
                OnHostRunner::default(),
                Case {
                    seed,
                    ..case.clone()
                },
            );
            agrees(file, &case, &runner.name(), runner.run(&case))?;
        }
        Ok(())
    }
}

/// A device that has no runner here: a GPU.
pub type OnDevice<'a> = &'a dyn Fn(&Case) -> Given;

impl File {
    /// Runs a file of kind `run` on a device.
    ///
    /// # Errors
    /// What the device gives, if that is something else than the file says.
    pub fn check_on(&self, device: OnDevice<'_>) -> Outcome {
        let case = case(self)?;
        agrees(self, &case, "the device", device(&case))
    }
}

/// Whether a run gives what the file says.
fn agrees(file: &File, case: &Case, name: &str, given: Given) -> Outcome {
    let text = rendered(file, case, given).map_err(|error| format!("{name}: {error}"))?;
    match text == file.text {
        true => Ok(()),
        false => Err(format!("{name}, {}", file.difference(&text)).into()),
    }
}

/// The case that a file describes, its module as hooks on the IR would find it.
fn case(file: &File) -> Result<Case, String> {
    let job = CompileJob::new(
        file.module()?,
        Target::Interpreter,
        CompileOptions::default(),
    );
    let compiler = Compiler {
        hooks: &HookSet::new(),
        isas: &Isas::default(),
        observer: &NoObserver,
    };
    let legal = compiler.legalize(job).map_err(|e| e.to_string())?;
    let shared = file.setting("shared").map_or(Ok(0), str::parse);
    let mut case = Case {
        module: legal.legal.module().clone(),
        grid: file.extents("grid")?.unwrap_or([1; 3]),
        block: file.extents("block")?.unwrap_or([1; 3]),
        dynamic_shared: shared.map_err(|_| "`shared` is no number of bytes")?,
        args: Vec::new(),
        buffers: Vec::new(),
        seed: 0,
    };
    let given: Vec<(&str, &str)> = args(file).collect();
    let names: Vec<String> = case
        .kernel()
        .params
        .iter()
        .map(|p| p.name.clone())
        .collect();
    if given
        .iter()
        .map(|(name, _)| *name)
        .ne(names.iter().map(String::as_str))
    {
        return Err(format!(
            "a line `; arg NAME: ..` is needed for each of {names:?}, in order"
        ));
    }
    for (index, (name, values)) in given.into_iter().enumerate() {
        let before = values.split_once("->").map_or(values, |(before, _)| before);
        let bytes = numbers(&case, index).and_then(|numbers| numbers.read(before));
        let bytes = bytes.map_err(|error| format!("`arg {name}`: {error}"))?;
        case.args.push(match is_address(&case, index) {
            true => Arg::Buffer(case.buffers.len()),
            false => Arg::Bytes(bytes.clone()),
        });
        if is_address(&case, index) {
            case.buffers.push(bytes);
        }
    }
    Ok(case)
}

/// The arguments that a file gives, each with the name of its parameter.
fn args(file: &File) -> impl Iterator<Item = (&str, &str)> {
    file.settings()
        .filter_map(|(name, values)| Some((name.strip_prefix("arg ")?, values)))
}

fn is_address(case: &Case, param: usize) -> bool {
    let kernel = case.kernel();
    let ty = kernel.type_of(kernel.params[param].value);
    let data = case.module.types.data(ty);
    matches!(data, TypeData::Slice { .. } | TypeData::Pointer { .. })
}

fn numbers(case: &Case, param: usize) -> Result<Numbers, String> {
    Numbers::of(&case.module.types, case.element(param))
}

/// The text of the file if a run gives this.
fn rendered(file: &File, case: &Case, given: Given) -> Result<String, String> {
    let (buffers, fault) = match &given {
        Ok(buffers) => (buffers.clone(), None),
        Err(why) => match why.strip_prefix(FAULT) {
            // One runner numbers threads the other way round.
            Some(fault) => (Vec::new(), fault.split(" (").next()),
            None => return Err(why.clone()),
        },
    };
    let mut args = case.args.iter().enumerate();
    let mut text = String::new();
    let mut in_settings = true;
    for line in file.text.lines() {
        if in_settings && !line.starts_with(';') {
            in_settings = false;
            if let Some(fault) = &fault {
                text += &format!("; {FAULT}{fault}\n");
            }
        }
        if in_settings && line.starts_with("; fault:") {
            continue;
        }
        let before = line.split("->").next().unwrap_or(line).trim_end();
        let is_arg = in_settings && line.starts_with("; arg ");
        text += if is_arg { before } else { line };
        if is_arg
            && let Some((index, Arg::Buffer(buffer))) = args.next()
            && let Some(bytes) = buffers.get(*buffer)
            && case.is_written(*buffer)
        {
            text += &format!(" -> {}", numbers(case, index)?.write(bytes));
        }
        text += "\n";
    }
    Ok(text)
}
