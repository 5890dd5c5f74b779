//! The commands that documents name, and where each of them is run: a command that nothing runs is one
//! that one day no longer works.
//!
//! A test takes the commands out of the documents and holds that each is in the list. `cargo xtask commands`,
//! which `cargo xtask test` starts, runs those of the list that nothing else runs, in a short form where the
//! whole takes long, and with the libraries of the tests where a document has them as `release` builds.

use std::fs;
use std::process::{Command, Stdio};
use std::time::Instant;

use crate::programs::{LIKE_TESTS, line_like_tests};
use crate::tests::Totals;
use crate::workspace::{root, target_folder};

/// A command as documents have it, without variables and redirections, and where it is run.
type Named = (&'static str, Where);

/// Where a command is run.
#[derive(Copy, Clone, Debug)]
enum Where {
    /// By [`run`], in this form.
    Here(&'static str),
    /// By what a file of the repository says, which has this text.
    By(&'static str, &'static str),
    /// On a GPU machine, from the bundle.
    Bundle,
    /// By people alone, and why; a test, by file and text, holds a part of it.
    Hand(&'static str, (&'static str, &'static str)),
}
use Where::{Bundle, By, Hand, Here};

/// All commands.
const NAMED: &[Named] = &[
    (
        "cargo run --release --example quickstart",
        Here("cargo run --release --example quickstart"),
    ),
    (
        "cargo run --release --example array_tasks",
        Here("cargo run --release --example array_tasks"),
    ),
    (
        "cargo run --release --example fit_csv",
        Here("cargo run --release --example fit_csv -- target/stopping.svg"),
    ),
    (
        "cargo run --release --bin ahead -- --out kernels --target sm_80 --target sm_90 --target x86-64-v3",
        Hand(
            "it is a program of the reader's",
            ("jit-core/src/ahead.rs", "fn command_lines"),
        ),
    ),
    (
        "cargo kiln bundle",
        Hand(
            "it is of a program of the reader's",
            ("cargo-kiln/src/lib.rs", "fn a_folder_of_a_program"),
        ),
    ),
    (
        "cargo kiln bundle --out my-program --bin my-program --kernels kernels",
        Hand(
            "it is of a program of the reader's",
            ("cargo-kiln/src/lib.rs", "fn a_folder_of_a_program"),
        ),
    ),
    (
        "cargo run --release -p kiln-random -- --minutes 5",
        Here("cargo run --release -p kiln-random -- --count 5"),
    ),
    (
        "cargo bench --bench compile",
        Here("cargo bench --bench compile"),
    ),
    (
        "cargo bench -p kiln-suite --bench suite",
        Here("cargo bench -p kiln-suite --bench suite -- --samples 3 --filter saxpy"),
    ),
    (
        "cargo bench -p kiln-suite --bench suite -- --ablation checked",
        Here("cargo bench -p kiln-suite --bench suite -- --ablation checked --filter saxpy"),
    ),
    (
        "cargo bench -p kiln-suite --bench sequential",
        Here("cargo bench -p kiln-suite --bench sequential -- --samples 1 --size small"),
    ),
    (
        "cargo bench -p kiln-suite --bench strangers",
        Here("cargo bench -p kiln-suite --bench strangers -- --samples 1 --size small"),
    ),
    (
        "cargo bench -p kiln-suite --bench compile-suite",
        Here(
            "cargo bench -p kiln-suite --bench compile-suite -- --samples 1 --suite --filter saxpy",
        ),
    ),
    (
        "cargo bench --bench launch",
        Here("cargo bench --bench launch"),
    ),
    (
        "cargo bench --bench launch -- --instructions",
        Here("cargo bench --bench launch -- --instructions look-up"),
    ),
    (
        "cargo bench --bench cpu -- --one-core",
        Here("cargo bench --bench cpu -- --quick --one-core --kernel saxpy --peer none"),
    ),
    (
        "cargo bench --bench cpu -- --kernel fused --peer gcc --one-core",
        Here("cargo bench --bench cpu -- --quick --one-core --kernel fused --peer none"),
    ),
    (
        "cargo bench --bench cpu -- --kernel functions --peer gcc --one-core",
        Here("cargo bench --bench cpu -- --quick --one-core --kernel functions --peer none"),
    ),
    (
        "cargo bench --bench arrays",
        Here("cargo bench --bench arrays -- --quick"),
    ),
    (
        "cargo bench --bench arrays -- --cpu",
        Here("cargo bench --bench arrays -- --quick"),
    ),
    (
        "cargo bench --bench startup",
        Here("cargo bench --bench startup -- --samples 2"),
    ),
    (
        "cargo bench --bench cpu -- --instructions",
        Here("cargo bench --bench cpu -- --instructions --kernel saxpy"),
    ),
    (
        "cargo bench --bench cpu",
        Here("cargo bench --bench cpu -- --quick --one-core --kernel saxpy --peer none"),
    ),
    (
        "cargo test -p kiln-tests --test suite cells",
        By("xtask/src/tests.rs", "\"--tests\""),
    ),
    (
        "cargo test -p kiln-tests --test suite compiled",
        By("xtask/src/tests.rs", "\"--tests\""),
    ),
    (
        "cargo test -p kiln-tests --test suite gpu_on_host",
        By("xtask/src/tests.rs", "\"--tests\""),
    ),
    (
        "cargo run",
        By("docs/guide/shown.rs", "FILE: &str = \"src/main.rs\""),
    ),
    ("cargo check", By("tests/refused/refused.rs", "TestCases")),
    ("cargo build", Here("cargo xtask bench-build --quick")),
    (
        "cargo build --release",
        By("xtask/src/build_cost.rs", "&[\"build\", \"--release\"]"),
    ),
    ("cargo doc --open", By(".ci/run", "cargo doc --workspace")),
    ("cargo xtask help", Here("cargo xtask help")),
    (
        "cargo xtask setup",
        By("xtask/src/tests.rs", "tools::setup(Kit::Assembler)"),
    ),
    (
        "cargo xtask setup --nvcc",
        Hand(
            "it downloads 130 MB, and what it installs changes what tests/nvcc.rs compares",
            ("xtask/src/tools.rs", "the_larger_kit_contains_the_smaller"),
        ),
    ),
    ("cargo xtask test", By(".ci/run", "cargo xtask test")),
    (
        "cargo xtask test saxpy",
        Hand(
            "it starts each test program, as `cargo xtask test` does",
            ("xtask/src/tests.rs", "fn a_filter_is_no_selection"),
        ),
    ),
    (
        "cargo xtask test -p kiln-hooks",
        Here("cargo xtask test -p kiln-description"),
    ),
    (
        "cargo xtask test -p kiln-tests nvcc",
        By("xtask/src/tests.rs", "\"--tests\""),
    ),
    (
        "cargo xtask test -p kiln-tests programs",
        By("xtask/src/tests.rs", "\"--tests\""),
    ),
    (
        "cargo xtask test kir::run::atomics",
        By("xtask/src/tests.rs", "\"--tests\""),
    ),
    (
        "cargo xtask test refusals",
        By("xtask/src/tests.rs", "\"--tests\""),
    ),
    ("cargo xtask bench", Here("cargo xtask bench gpu")),
    ("cargo xtask bench launch", Here("cargo xtask bench launch")),
    (
        "cargo xtask bench-peers",
        Hand(
            "it downloads 1.3 GB",
            (
                "xtask/src/peers.rs",
                "fn programs_take_what_they_are_started_with",
            ),
        ),
    ),
    (
        "cargo xtask bench-build",
        Here("cargo xtask bench-build --quick"),
    ),
    (
        "cargo xtask bench-build --quick",
        Here("cargo xtask bench-build --quick"),
    ),
    (
        "cargo xtask notebook",
        By("xtask/src/tests.rs", "\"notebook\""),
    ),
    (
        "cargo xtask notebook FILES",
        By("xtask/src/tests.rs", "\"notebook\""),
    ),
    (
        "cargo xtask notebook --prepare",
        Here("cargo xtask notebook --prepare"),
    ),
    ("cargo xtask fuzz", Here("cargo xtask fuzz --count 5")),
    (
        "cargo xtask fuzz --minutes 10",
        Here("cargo xtask fuzz --count 5"),
    ),
    (
        "cargo xtask fuzz --on-host --count 5000",
        Here("cargo xtask fuzz --on-host --count 5"),
    ),
    (
        "cargo xtask fuzz --functions",
        Here("cargo xtask fuzz --functions --count 2"),
    ),
    ("cargo xtask guide", By("xtask/src/tests.rs", "\"guide\"")),
    (
        "cargo xtask commands",
        By("xtask/src/tests.rs", "\"commands\""),
    ),
    ("cargo xtask deny", By("xtask/src/tests.rs", "\"deny\"")),
    (
        "cargo xtask deny --advisories",
        Hand(
            "what is known against crates lies elsewhere, and changes from day to day",
            ("xtask/src/tests.rs", "\"deny\""),
        ),
    ),
    (
        "cargo xtask newcomer",
        By("xtask/src/tests.rs", "\"newcomer\""),
    ),
    ("cargo xtask ci", By(".ci/run", "cargo xtask test")),
    (
        "cargo xtask soak",
        Hand(
            "it takes hours, and its tests run in a form of seconds with the others",
            (
                "jit-core/tests/cuda_driver/soak.rs",
                "fn mixed_work_of_many_threads",
            ),
        ),
    ),
    (
        "cargo xtask miri",
        Hand(
            "it needs nightly Rust, and takes minutes",
            ("jit-core/tests/stages.rs", "mod interpreter"),
        ),
    ),
    (
        "cargo xtask tsan",
        Hand(
            "it needs nightly Rust, and takes minutes",
            (
                "jit-core/runtime/src/cpu/pool.rs",
                "fn launches_of_many_threads",
            ),
        ),
    ),
    ("cargo xtask bundle", Bundle),
    ("cargo xtask bundle --no-llvm", Bundle),
    ("./run --python [NAMES]", Bundle),
    ("./run --help", Bundle),
    ("./run --list", Bundle),
    ("./run --all-tests", Bundle),
    ("./run --unpack", Bundle),
    ("./run NAME", Bundle),
    ("./run gpu-tests", Bundle),
    ("./run litmus", Bundle),
    ("./run gpu-tests --math-errors --points 1000000000", Bundle),
    ("./run gpu-tests --math-errors --f32", Bundle),
    ("./run random-kernels", Bundle),
    ("./run reset", Bundle),
    ("./run soak --minutes 6", Bundle),
    ("./run launch", Bundle),
    ("./run graphs", Bundle),
    ("./run startup", Bundle),
    ("./run suite", Bundle),
    ("./run compile", Bundle),
    ("./run gpu", Bundle),
    ("./run collectives", Bundle),
    ("./run math", Bundle),
    ("./run arrays", Bundle),
];

/// Runs the commands that nothing else runs, and looks whether the others are still where the list says;
/// tells how many of it all is as it should be, and how many is not.
pub(crate) fn run() -> Totals {
    let (mut passed, mut failed) = (0, 0);
    let mut seen = Vec::new();
    for (name, place) in NAMED {
        let started = Instant::now();
        let (what, good) = match place {
            Here(form) if seen.contains(form) => continue,
            Here(form) => {
                seen.push(form);
                (format!("`{form}`"), succeeds(form))
            }
            By(file, text) => (format!("`{name}`, by {file}"), has(file, text)),
            Hand(why, (file, text)) => {
                let what = format!("`{name}` is not run, as {why}; {file} has a test for it");
                (what, has(file, text))
            }
            Bundle => continue,
        };
        match good {
            true => passed += 1,
            false => failed += 1,
        }
        let result = if good { "ok" } else { "FAILED" };
        let seconds = started.elapsed().as_secs_f32();
        println!("command {what} ... {result} ({seconds:.1} s)");
    }
    Totals { passed, failed }
}

/// Whether a file of the repository has this text.
fn has(file: &str, text: &str) -> bool {
    fs::read_to_string(root().join(file)).is_ok_and(|found| found.contains(text))
}

/// Runs a command in the root of the workspace. Its output is shown if it fails.
fn succeeds(form: &str) -> bool {
    let mut command = Command::new("sh");
    command
        .args(["-c", &format!("{{ {}; }} 2>&1", line_like_tests(form))])
        .env(LIKE_TESTS, "1")
        .current_dir(root());
    // The user's Jupyter is left alone.
    command.env(
        "JUPYTER_DATA_DIR",
        target_folder().join("kiln-notebooks/user"),
    );
    match command.stdin(Stdio::null()).output() {
        Ok(output) if output.status.success() => true,
        Ok(output) => {
            eprint!("{}", String::from_utf8_lossy(&output.stdout));
            false
        }
        Err(error) => {
            eprintln!("xtask: sh cannot be started: {error}");
            false
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::path::{Path, PathBuf};

    use super::*;
    use crate::HELP;
    use crate::wheels::entries;
    use crate::workspace::{self, Target, TargetKind};

    /// The documents with commands for people.
    fn documents() -> Vec<PathBuf> {
        let mut files: Vec<PathBuf> = [
            "README.md",
            "CONTRIBUTING.md",
            "ARCHITECTURE.md",
            "benches/RESULTS.md",
        ]
        .iter()
        .map(|file| root().join(file))
        .collect();
        files.extend(entries(&root().join("docs/guide/src")).filter(|file| has_ending(file, "md")));
        files.extend(entries(&root().join("notebook")).filter(|file| has_ending(file, "ipynb")));
        files
    }

    fn has_ending(file: &Path, ending: &str) -> bool {
        file.extension().is_some_and(|found| found == ending)
    }

    /// The commands in a text: what stands between backticks, and lines of blocks.
    fn commands(text: &str) -> Vec<String> {
        let is_block = |line: &&str| line.starts_with("    ");
        let (mut in_fence, mut prose, mut found) = (false, String::new(), Vec::new());
        for line in text.lines() {
            if line.starts_with("```") {
                in_fence = !in_fence;
            } else if in_fence || is_block(&line) {
                found.extend(line.split("&&").filter_map(command));
            } else {
                prose.push_str(line);
                prose.push('\n');
            }
        }
        let quoted = prose.split('`').skip(1).step_by(2);
        found.extend(
            quoted
                .flat_map(|span| span.split("&&"))
                .filter_map(command)
                .flat_map(|command| each_of(&command)),
        );
        found
    }

    /// A command of cargo or of the bundle without variables before it and comments after it.
    fn command(text: &str) -> Option<String> {
        let words = text.split(" #").next()?.split_whitespace();
        let words: Vec<&str> = words.skip_while(|word| word.contains('=')).collect();
        let is_command = match words[..] {
            // Cargo's own words in prose: `cargo`, and what installs programs of others.
            ["cargo", "install" | "clean" | "expand", ..] => false,
            ["cargo", _, ..] | ["./run", _, ..] => true,
            _ => false,
        };
        is_command.then(|| words.join(" ").replace("[FILES]", "FILES"))
    }

    /// `cargo xtask a, b` names two commands.
    fn each_of(command: &str) -> Vec<String> {
        let (first, others) = command.split_once(", ").unwrap_or((command, ""));
        let before = first.rsplit_once(' ').map_or("", |(before, _)| before);
        let others = others.split(", ").filter(|other| !other.is_empty());
        let others = others.map(|other| format!("{before} {other}"));
        [first.to_owned()].into_iter().chain(others).collect()
    }

    /// The commands that the help lists, with the options that it gives them.
    fn helped() -> Vec<String> {
        let list = HELP.split("Commands:\n").nth(1).unwrap_or_default();
        let lines = list.lines().filter_map(|line| line.strip_prefix("  "));
        let heads = lines.filter(|line| !line.starts_with(' '));
        let mut found = Vec::new();
        for head in heads {
            let head = head.split("  ").next().unwrap_or_default();
            let name = head.split(' ').next().unwrap_or_default();
            found.push(format!("cargo xtask {name}"));
            for option in [
                "--nvcc",
                "--prepare",
                "--functions",
                "--no-llvm",
                "--quick",
                "--advisories",
            ] {
                if head.contains(option) {
                    found.push(format!("cargo xtask {name} {option}"));
                }
            }
        }
        found
    }

    #[test]
    fn commands_are_taken_out_of_texts() {
        let text = "Run `cargo xtask\nguide, ci` or `A=1 cargo xtask notebook [FILES] && ./run gpu`, `cargo`.\n\n    \
                    cargo xtask ci   # all\n```sh\ncargo install x\nX=y cargo doc --open\n```\n";
        let expected = [
            "cargo xtask ci",
            "cargo doc --open",
            "cargo xtask guide",
            "cargo xtask ci",
            "cargo xtask notebook FILES",
            "./run gpu",
        ];
        assert_eq!(commands(text), expected);
        assert!(
            helped().contains(&"cargo xtask bundle --no-llvm".to_owned()),
            "{:?}",
            helped()
        );
    }

    #[test]
    fn every_command_of_the_documents_is_run_somewhere() {
        let mut named: BTreeMap<String, String> = BTreeMap::new();
        for file in documents() {
            let text = fs::read_to_string(&file).expect("it is there");
            let place = file.display().to_string();
            named.extend(
                commands(&text)
                    .into_iter()
                    .map(|command| (command, place.clone())),
            );
        }
        let help = include_str!("bundle/run").lines();
        let calls = help.filter_map(|line| command(line.strip_prefix("#   ")?.split("  ").next()?));
        let calls = calls.map(|call| call.replace(" [ARGS]", ""));
        named.extend(calls.map(|call| (call, "the bundle's help".to_owned())));
        named.extend(
            helped()
                .into_iter()
                .map(|command| (command, "the help".to_owned())),
        );
        let known = |command: &str| NAMED.iter().any(|(name, _)| *name == command);
        let unknown: Vec<_> = named
            .iter()
            .filter(|(command, _)| !known(command))
            .collect();
        assert!(
            unknown.is_empty(),
            "run these in xtask/src/commands.rs, or say there where they are run: {unknown:#?}"
        );
        let unnamed: Vec<_> = NAMED
            .iter()
            .filter(|(name, _)| !named.contains_key(*name))
            .collect();
        assert!(unnamed.is_empty(), "no document names these: {unnamed:#?}");
    }

    #[test]
    fn benches_are_of_the_packages_that_are_named() {
        let targets = workspace::targets().expect("cargo tells them");
        for (name, _) in NAMED {
            let program = name.split(" -- ").next().unwrap_or(name);
            let words: Vec<&str> = program.split(' ').collect();
            let (package, bench) = match words[..] {
                ["cargo", "bench", "--bench", bench] => ("kiln-jit", bench),
                ["cargo", "bench", "-p", package, "--bench", bench] => (package, bench),
                _ => continue,
            };
            let is_named = |target: &Target| target.name == bench && target.package == package;
            let is_bench = |target: &Target| target.kind == TargetKind::Bench && is_named(target);
            assert!(targets.iter().any(is_bench), "`{name}`: {targets:?}");
        }
    }

    #[test]
    fn places_have_what_is_said_of_them() {
        for (name, place) in NAMED {
            if let By(file, text) | Hand(_, (file, text)) = place {
                assert!(has(file, text), "`{name}`: {file} has no `{text}`");
            }
        }
    }
}
