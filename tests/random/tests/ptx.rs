//! Random kernels become PTX: code generation takes all that the generator makes, and none of it is
//! what `ptxas` is known to get wrong. No GPU is needed.

use std::collections::HashMap;

use kiln_jit_core::compile::{NoObserver, compile};
use kiln_jit_core::hook::HookSet;
use kiln_jit_core::job::{CompileJob, CompileOptions};
use kiln_jit_core::target::{PtxTarget, Target};
use kiln_random::{Budget, Case, generate, hooked, hooks_of};

fn ptx_of(case: &Case, sm: u32) -> String {
    let seed = case.seed;
    let case = hooked(case, &hooks_of(case)).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
    let target = Target::Ptx(PtxTarget::for_sm(sm));
    let job = CompileJob::new(case.module, target, CompileOptions::default());
    let compiled = compile(job, &HookSet::new(), &NoObserver);
    let compiled = compiled.unwrap_or_else(|e| panic!("seed {seed}, sm_{sm}: {e}"));
    compiled.code.ptx().expect("PTX").text.to_string()
}

#[test]
fn random_kernels_become_ptx() {
    for seed in 0..200 {
        let case = generate(seed, &Budget::default());
        let ptx = ptx_of(&case, [75, 80, 90, 120][seed as usize % 4]);
        assert!(ptx.contains(".entry"), "seed {seed}");
        let offences = offences(&ptx);
        assert!(offences.is_empty(), "seed {seed}: {offences:#?}\n{ptx}");
    }
}

/// What once went wrong on a GPU is written in another way, and the form that went wrong is known when it
/// is seen.
#[test]
fn ptx_that_is_assembled_wrong_is_not_written() {
    let mut known = Vec::new();
    for entry in std::fs::read_dir("../../docs/upstream").expect("the folder of cases") {
        let path = entry.expect("a file").path();
        let text = std::fs::read_to_string(&path).expect("a text");
        let extension = path.extension().and_then(|e| e.to_str());
        if extension == Some("kir") {
            let case = Case::from_text(&text).unwrap_or_else(|e| panic!("{path:?}: {e}"));
            let ptx = ptx_of(&case, 90);
            let offences = offences(&ptx);
            assert!(offences.is_empty(), "{path:?}: {offences:#?}\n{ptx}");
        } else if extension == Some("ptx") {
            let kinds = offences(&text).into_iter().map(|(kind, _)| kind);
            known.extend(kinds);
        }
    }
    known.sort_unstable();
    known.dedup();
    assert_eq!(
        known,
        [
            Kind::Boolean,
            Kind::Extremum,
            Kind::Narrow,
            Kind::Pair,
            Kind::Short,
            Kind::Unused
        ]
    );
}

/// What `ptxas` gets wrong (`jit-core/codegen/src/gpu/ptxas`).
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Kind {
    Boolean,
    Extremum,
    Narrow,
    Pair,
    Short,
    Unused,
}

/// The places in a PTX text that `ptxas` would get wrong, each with its line.
fn offences(ptx: &str) -> Vec<(Kind, String)> {
    let functions = ptx.split_inclusive("\n}").flat_map(|f| f.split(".func"));
    functions.flat_map(offences_of_function).collect()
}

fn offences_of_function(text: &str) -> Vec<(Kind, String)> {
    let lines = || {
        text.lines()
            .filter(|line| !line.trim_start().starts_with("//"))
    };
    let mut made_by: HashMap<&str, (&str, Vec<&str>)> = HashMap::new();
    let mut mentions: HashMap<&str, usize> = HashMap::new();
    for line in lines() {
        let (opcode, operands) = instruction(line);
        if let Some(&result) = operands.first()
            && result.starts_with('%')
        {
            made_by.insert(result, (opcode, operands));
        }
        let mut registers = registers(line);
        registers.sort_unstable();
        registers.dedup();
        for register in registers {
            *mentions.entry(register).or_default() += 1;
        }
    }
    let kind_of = |line: &str| -> Option<Kind> {
        let (opcode, operands) = instruction(line);
        let source = operands.get(1).and_then(|source| made_by.get(source));
        let is_float = |name: &str| ["f16", "bf16", "f32", "f64"].contains(&name);
        let types: Vec<&str> = opcode.split('.').collect();
        let communicates = ["vote.sync", "match.any", "match.all", "redux.sync"];
        let alone = |register: &&str| mentions.get(register) == Some(&1);
        if ["min.s16", "max.s16", "min.u16", "max.u16"].contains(&opcode) {
            return Some(Kind::Extremum);
        }
        if ["neg.s16", "abs.s16"].contains(&opcode) {
            return Some(Kind::Short);
        }
        if let Some(at) = communicates.iter().find_map(|name| line.find(name)) {
            // By a mask that is the same in all lanes, they stay together.
            let mask = line[at..].split(';').next()?.rsplit(',').next()?.trim();
            let fixed = made_by.get(mask).is_some_and(|(by, of)| {
                by.starts_with("mov") && of.get(1).is_some_and(|n| n.parse::<i64>().is_ok())
            });
            let unused = registers(line).iter().any(alone);
            return (unused && !fixed).then_some(Kind::Unused);
        }
        if opcode.starts_with("ld.acquire") {
            return operands.first().is_some_and(alone).then_some(Kind::Unused);
        }
        if opcode.ends_with("16x2") && types[0] != "ld" {
            let number = |of: &Vec<&str>| of.get(1).is_some_and(|n| n.parse::<i64>().is_ok());
            let fixed = |(by, of): &(&str, Vec<&str>)| *by == "mov.b32" && number(of);
            let mut made = operands.iter().filter_map(|from| made_by.get(from));
            return made.any(fixed).then_some(Kind::Pair);
        }
        if types[0] == "cvt" && types.iter().any(|name| is_float(name)) {
            let (by, of) = source?;
            let truth = by.starts_with("selp") && of.get(1..3) == Some(&["1", "0"]);
            return truth.then_some(Kind::Boolean);
        }
        if types[0] == "st" && operands.len() == 2 {
            let stored = operands[1];
            let (by, _) = source?;
            let width = match stored.trim_end_matches(|c: char| c.is_ascii_digit()) {
                "%rs" => 16,
                "%rd" => 64,
                _ => 32,
            };
            let bits: u32 = types.last()?.trim_start_matches('b').parse().ok()?;
            // Of `cvt`, the first type is the result's.
            let made = by
                .split('.')
                .skip(1)
                .find(|name| is_float(name) || name.starts_with(['u', 's', 'b']) && name.len() > 1);
            let float = made.is_some_and(is_float) && !by.starts_with("setp");
            return (bits < width && float).then_some(Kind::Narrow);
        }
        None
    };
    let found = lines().filter_map(|line| Some((kind_of(line)?, line.trim().to_owned())));
    found.collect()
}

/// The opcode and the operands of a line.
fn instruction(line: &str) -> (&str, Vec<&str>) {
    let line = line.trim().trim_end_matches(';');
    let line = match line.strip_prefix('@') {
        Some(guarded) => guarded.split_once(' ').map_or("", |(_, rest)| rest.trim()),
        None => line,
    };
    let (opcode, operands) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    (opcode, operands.split(',').map(str::trim).collect())
}

/// All registers in a line.
fn registers(line: &str) -> Vec<&str> {
    let ends = |c: char| !c.is_ascii_alphanumeric();
    let starts = line.match_indices('%').map(|(at, _)| at);
    starts
        .map(|at| {
            let rest = &line[at + 1..];
            let length = rest.find(ends).unwrap_or(rest.len());
            &line[at..=at + length]
        })
        .collect()
}
