//! The house rules that a program can check, checked on every file of the repository.
//!
//! One rule is one function from a file to its problems; [`RULES`] is the list. The test collects
//! all problems of all files before it fails, each with its file, its line and what to do. Every
//! rule has a test of its own that it fires, so that a rule that checks nothing is noticed.

#[path = "tidy/code.rs"]
mod code;
#[path = "tidy/examples.rs"]
mod examples;
#[path = "tidy/found.rs"]
mod found;
#[path = "tidy/functions.rs"]
mod functions;
#[path = "tidy/guesses.rs"]
mod guesses;
#[path = "../../tests/random/tests/planted/mutants.rs"]
mod mutants;
#[path = "tidy/paths.rs"]
mod paths;
#[path = "tidy/sentences.rs"]
mod sentences;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use code::{code_of, lines_before_tests, words};

/// The longest a source file may be, in lines, its tests left out.
const MAX_LINES: usize = 800;

/// Where `unsafe` may be written; a name that ends in `/` stands for all that is below it. Elsewhere
/// code is safe or asks one of these modules.
const UNSAFE_ALLOWED: &[&str] = &[
    // Calls into LLVM.
    "jit-core/codegen/",
    // Kernels of modules that were rewritten; a clause that has the word.
    "directives/src/kernel.rs",
    "directives/macro/src/clauses.rs",
    // Calls into the CUDA driver; buffers that devices share.
    "jit-core/runtime/",
    // The signatures of host code, which is called through pointers.
    "jit-core/ir/src/host_abi.rs",
    // Loads and stores of the interpreter's memory, once bounds are checked.
    "jit-core/interp/src/memory.rs",
    // The promise about device memory that the interpreter is given.
    "jit-core/interp/src/lib.rs",
    "jit-core/interp/src/run.rs",
    // Values seen as bytes.
    "jit-core/compiler/src/value.rs",
    // Memory that nobody has written: a promise of the caller's.
    "jit-core/compiler/src/buffer.rs",
    // References to what has no place in memory.
    "jit-core/compiler/src/part.rs",
    "jit-core/src/jit/mod.rs",
    "jit-core/src/jit/stream.rs",
    // The same of types of other crates.
    "jit-core/compiler/src/value/foreign.rs",
    "jit-core/compiler/src/value/vector.rs",
    // What Python calls.
    "python/src/lib.rs",
    // Memory that other code holds: its promises, and the traits by which other crates make them.
    "jit-core/compiler/src/lent.rs",
    "jit-core/compiler/src/lent/",
    // Functions of other code, of which the program promises what they do.
    "jit-core/src/jit/foreign.rs",
    // Memory of the host that copies use.
    "jit-core/compiler/src/pinned.rs",
    // Building accesses without bounds checks: a promise of the caller's.
    "jit-core/compiler/src/build/kernel.rs",
    "jit-core/compiler/src/front/function.rs",
    "jit-core/kernel-macro/src/function.rs",
    "jit-core/kernel-macro/src/arguments.rs",
    "jit-core/compiler/src/build/place.rs",
    "jit-core/compiler/src/build/value.rs",
    // The code that `#[derive(KernelType)]` writes makes the promise of the trait.
    "jit-core/kernel-macro/src/derive.rs",
    // The promise about device memory that the interpreter is given, and a GPU.
    "tests/random/src/gpu.rs",
    "tests/random/src/run.rs",
    // Libraries that are loaded while the test runs, and what they export.
    "notebook/tests/",
    // Benches call the driver as a C program would, and count allocations.
    "benches/",
    // A CUDA driver for tests, and tests that load it or libLLVM.
    "jit-core/tests/",
    // Tests of unchecked accesses and of raw pointers; what the macros refuse.
    "tests/",
];

/// Where `TypeId` may be written: to ask for one type of Rust's own, never to tell users' types apart.
const TYPE_ID_ALLOWED: &[&str] = &[
    // Whether a const parameter is a `usize`.
    "jit-core/compiler/src/front/pool.rs",
    // That Rust takes two types for one, which the test is about.
    "notebook/tests/two_libraries/",
];

/// The words by which a file has tests.
const TESTS: [&str; 2] = ["#[test]", "#[cfg(test)]"];

/// Names that say nothing about a module's subject.
const EMPTY_NAMES: &[&str] = &[
    "util", "utils", "helper", "helpers", "common", "misc", "manager", "handler", "handlers",
    "engine",
];

/// A file of the repository.
struct File<'a> {
    /// Its path from the root, with `/`.
    path: &'a str,
    /// Its text.
    text: &'a str,
    /// Its text with comments and the insides of literals blanked, for Rust files.
    code: Option<String>,
}

impl<'a> File<'a> {
    fn new(path: &'a str, text: &'a str) -> File<'a> {
        File {
            path,
            text,
            code: path.ends_with(".rs").then(|| code_of(text)),
        }
    }
}

/// Where what users get lies.
const PRODUCT: [&str; 6] = [
    "directives/",
    "jit-core/",
    "hooks/src/",
    "device-stdlib/src/",
    "array-lib/src/",
    "src/",
];

/// Whether a file is Rust that users get, tests left out.
fn is_product(file: &File<'_>) -> bool {
    file.code.is_some()
        && !is_for_tests(file)
        && PRODUCT.iter().any(|folder| file.path.starts_with(folder))
}

/// Whether a file holds tests and nothing else.
fn is_for_tests(file: &File<'_>) -> bool {
    let mut parts = file.path.split('/');
    parts.any(|part| part == "tests" || part.ends_with("tests.rs"))
}

/// What breaks a rule: the line, counted from 1, and what to do.
type Problem = (usize, String);

/// A rule: its problems with a file.
type Rule = fn(&File<'_>) -> Vec<Problem>;

/// All rules.
const RULES: &[Rule] = &[
    opens_with_doc,
    sentences_stand_alone,
    calls_are_shown,
    is_short,
    functions_are_short,
    is_named_by_subject,
    allows_with_reason,
    unsafe_in_place,
    layers_stay_apart,
    floors_stay_apart,
    types_by_form,
    errors_are_readable,
    nothing_is_guessed,
    is_portable,
    names_what_is_there,
    loses_no_test,
    is_in_a_folder,
];

/// Every Rust file opens with `//!` that says what it is for.
fn opens_with_doc(file: &File<'_>) -> Vec<Problem> {
    match file.code.is_none() || file.text.starts_with("//!") {
        true => Vec::new(),
        false => vec![(
            1,
            "open the file with `//!` that says what it is for".to_owned(),
        )],
    }
}

/// The first sentence of a doc comment says what its item is, to a reader who sees nothing else.
fn sentences_stand_alone(file: &File<'_>) -> Vec<Problem> {
    if !is_product(file) {
        return Vec::new();
    }
    let problem = |(line, start)| {
        let advice = format!(
            "the documentation begins with \"{start}\", which says nothing to who reads this sentence alone: \
             name what it is about"
        );
        (line, advice)
    };
    let found = sentences::fragments(file.text).into_iter();
    found.map(problem).collect()
}

/// Where the functions are that users call; a name that ends in `/` stands for all that is below it.
const CALLED: [&str; 16] = [
    "array-lib/src/",
    "directives/src/kernel.rs",
    "directives/src/program.rs",
    "directives/src/schedule.rs",
    "device-stdlib/src/",
    "hooks/src/",
    "jit-core/compiler/src/args.rs",
    "jit-core/compiler/src/buffer.rs",
    "jit-core/compiler/src/part.rs",
    "jit-core/compiler/src/build/",
    "jit-core/compiler/src/event.rs",
    "jit-core/compiler/src/hook/",
    "jit-core/compiler/src/observe.rs",
    "jit-core/compiler/src/view.rs",
    "jit-core/src/",
    "src/",
];

/// A function that users call is in an example of its file's documentation.
fn calls_are_shown(file: &File<'_>) -> Vec<Problem> {
    let is_here = |place: &&str| match place.ends_with('/') {
        true => file.path.starts_with(*place),
        false => file.path == *place,
    };
    if !is_product(file) || !CALLED.iter().any(is_here) {
        return Vec::new();
    }
    let problem = |(line, name)| {
        let advice = format!(
            "no example shows `{name}`: write one into the documentation of it or of its type, or hide from \
             the documentation what users do not call"
        );
        (line, advice)
    };
    examples::without(file.text)
        .into_iter()
        .map(problem)
        .collect()
}

/// Source files stay short; tests may be as long as they need.
fn is_short(file: &File<'_>) -> Vec<Problem> {
    let in_tests = file
        .path
        .split('/')
        .any(|part| part == "tests" || part.ends_with("tests.rs"));
    let Some(code) = file.code.as_ref().filter(|_| !in_tests) else {
        return Vec::new();
    };
    let lines = lines_before_tests(code);
    match lines <= MAX_LINES {
        true => Vec::new(),
        false => vec![(
            lines,
            format!("{lines} lines: divide it by subject ({MAX_LINES} at most)"),
        )],
    }
}

/// Functions stay short, but for those of tests.
fn functions_are_short(file: &File<'_>) -> Vec<Problem> {
    if file.code.is_none() || is_for_tests(file) {
        return Vec::new();
    }
    let long = functions::long_functions(file.text).into_iter();
    long.map(|(line, name, lines)| {
        let advice =
            "divide it, or say `// flat match` before it if it is one match over a closed list";
        (line, format!("`{name}` has {lines} lines: {advice}"))
    })
    .collect()
}

/// Files, folders and modules are named by their subject.
fn is_named_by_subject(file: &File<'_>) -> Vec<Problem> {
    let Some(code) = &file.code else {
        return Vec::new();
    };
    let mut problems = Vec::new();
    let parts = file
        .path
        .split('/')
        .map(|part| part.trim_end_matches(".rs"));
    for part in parts.filter(|part| EMPTY_NAMES.contains(part)) {
        problems.push((
            1,
            format!("`{part}` says nothing: name the file by its subject"),
        ));
    }
    let found = words(code).collect::<Vec<_>>();
    for pair in found.windows(2).filter(|pair| pair[0].1 == "mod") {
        let (line, name) = pair[1];
        if EMPTY_NAMES.contains(&name) {
            problems.push((
                line,
                format!("`mod {name}` says nothing: name it by its subject"),
            ));
        }
    }
    problems
}

/// A lint is switched off with a reason only.
fn allows_with_reason(file: &File<'_>) -> Vec<Problem> {
    let Some(code) = &file.code else {
        return Vec::new();
    };
    let mut problems = Vec::new();
    for lint in ["allow", "expect"] {
        for opening in ["#[", "#!["] {
            let start = format!("{opening}{lint}(");
            for (at, _) in code.match_indices(&start) {
                let attribute = code[at..].split(']').next().unwrap_or_default();
                if !attribute.contains("reason") {
                    let line = code[..at].matches('\n').count() + 1;
                    problems.push((line, format!("give `{lint}` a `reason = \"...\"`")));
                }
            }
        }
    }
    problems
}

/// `unsafe` stays in the modules that are there for it.
fn unsafe_in_place(file: &File<'_>) -> Vec<Problem> {
    let allowed = |place: &str| match place.ends_with('/') {
        true => file.path.starts_with(place),
        false => file.path == place,
    };
    let Some(code) = file
        .code
        .as_ref()
        .filter(|_| !UNSAFE_ALLOWED.iter().any(|p| allowed(p)))
    else {
        return Vec::new();
    };
    let advice = "no `unsafe` here: move it to a module that UNSAFE_ALLOWED in xtask/tests/tidy.rs \
                  names, or add this one with its reason";
    words(code)
        .filter(|w| w.1 == "unsafe")
        .map(|(line, _)| (line, advice.to_owned()))
        .collect()
}

/// Types are told apart by what the IR has of them. Libraries of one process may define a type again with
/// other fields, and its `TypeId` stays.
fn types_by_form(file: &File<'_>) -> Vec<Problem> {
    let Some(code) = &file.code else {
        return Vec::new();
    };
    if TYPE_ID_ALLOWED
        .iter()
        .any(|path| file.path.starts_with(path))
    {
        return Vec::new();
    }
    let advice = "a type that is defined again keeps its `TypeId`; tell types apart by \
                  `DeviceType::FORM.digest()`";
    words(code)
        .filter(|w| w.1 == "TypeId")
        .map(|(line, _)| (line, advice.to_owned()))
        .collect()
}

/// Which of Kiln's crates each may depend on, for those that know few; see ARCHITECTURE.md.
const LAYERS: [(&str, &[&str]); 7] = [
    ("jit-core/description/Cargo.toml", &[]),
    ("jit-core/ir/Cargo.toml", &[]),
    ("jit-core/interp/Cargo.toml", &["kiln-ir"]),
    ("jit-core/codegen/Cargo.toml", &["kiln-ir"]),
    ("jit-core/runtime/Cargo.toml", &["kiln-interp", "kiln-ir"]),
    (
        "jit-core/compiler/Cargo.toml",
        &[
            "kiln-codegen",
            "kiln-description",
            "kiln-interp",
            "kiln-ir",
            "kiln-runtime",
        ],
    ),
    ("hooks/Cargo.toml", &["kiln-compiler"]),
];

/// A layer knows nothing of what is above it.
fn layers_stay_apart(file: &File<'_>) -> Vec<Problem> {
    let Some((_, below)) = LAYERS.iter().find(|(path, _)| file.path == *path) else {
        return Vec::new();
    };
    let mut problems = Vec::new();
    for (at, line) in (1..).zip(file.text.lines()) {
        let name = line.split(['.', ' ']).next().unwrap_or_default();
        if name.starts_with("kiln-") && !below.contains(&name) {
            let advice = format!("`{name}` is above this layer; see ARCHITECTURE.md");
            problems.push((at, advice));
        }
    }
    problems
}

/// The floors of code generation, from the ground up: files and folders of `jit-core/codegen/src`.
const FLOORS: [&[&str]; 6] = [
    &["llvm", "simt", "illegal", "private", "provenance"],
    &["options"],
    &["admitted", "hooks"],
    &["isa"],
    &["cpu", "gpu"],
    &["targets"],
];

/// In code generation a file knows its own folder and the floors below it: what all targets share knows no
/// target, and no target the list of them.
fn floors_stay_apart(file: &File<'_>) -> Vec<Problem> {
    let floor = |room: &str| FLOORS.iter().position(|floor| floor.contains(&room));
    let inside = file.path.strip_prefix("jit-core/codegen/src/");
    let room = inside.and_then(|path| path.split(['/', '.']).next());
    let in_tests = file.path.ends_with("tests.rs");
    let (Some(room), Some(code)) = (room, file.code.as_ref().filter(|_| !in_tests)) else {
        return Vec::new();
    };
    let Some(own) = floor(room) else {
        return match room {
            // It lists all.
            "lib" => Vec::new(),
            _ => vec![(
                1,
                format!("`{room}` has no floor: add it to FLOORS in xtask/tests/tidy.rs"),
            )],
        };
    };
    let mut problems = Vec::new();
    for (at, start) in code.match_indices("crate::") {
        let path = &code[at + start.len()..];
        let is_name = |c: char| c.is_alphanumeric() || c == '_';
        let other = path.split(|c| !is_name(c)).next().unwrap_or_default();
        if other != room && floor(other).is_none_or(|other| other >= own) {
            let line = code[..at].matches('\n').count() + 1;
            let advice =
                format!("`{room}` knows `crate::{other}`, which is not below it; see FLOORS");
            problems.push((line, advice));
        }
    }
    problems
}

/// Errors of the compiler have texts that can be read, however long names and types are: those that
/// have parts are made by `error_text!`, and `Debug` shows the text.
fn errors_are_readable(file: &File<'_>) -> Vec<Problem> {
    if !file.path.starts_with("jit-core/") || file.path.contains("/tests/") {
        return Vec::new();
    }
    let line = |at: usize| file.text[..at].matches('\n').count() + 1;
    let mut problems = Vec::new();
    for (at, attribute) in file.text.match_indices("#[error(") {
        let inner = file.text[at + attribute.len()..].trim_start();
        // What comes after a quote in the literal is not looked at.
        let literal = inner.strip_prefix('"').and_then(|l| l.split('"').next());
        let literal = literal.unwrap_or_default();
        if literal.contains('{') && !inner.starts_with("\"{}\", error_text!(") {
            let advice = "a text with parts is `\"{}\", error_text!(..)`, which bounds it";
            problems.push((line(at), advice.to_owned()));
        }
    }
    for (at, derive) in file.text.match_indices("#[derive(") {
        let inner = &file.text[at + derive.len()..];
        let derived = inner.split(')').next().unwrap_or_default();
        if derived.contains("thiserror::Error") && derived.contains("Debug") {
            let advice = "the `Debug` form of an error is its text: `debug_as_text!`";
            problems.push((line(at), advice.to_owned()));
        }
    }
    problems
}

/// What is to be done for an operation, a scalar or a type is said for each of them.
fn nothing_is_guessed(file: &File<'_>) -> Vec<Problem> {
    if !is_product(file) {
        return Vec::new();
    }
    let found = guesses::guesses(file.text);
    let mut problems = Vec::new();
    for name in guesses::GROWING {
        let lines = || {
            found
                .iter()
                .filter(|(_, of)| *of == name)
                .map(|(line, _)| *line)
        };
        let (count, allowed) = (lines().count(), guesses::allowed(file.path, name));
        if count > allowed {
            let advice = format!(
                "variants of `{name}` that are not named here are taken for alike: name all, ask `ir` a \
                 question about it, or count it in ALLOWED in xtask/tests/tidy/guesses.rs, with the \
                 reason ({count} places here, {allowed} allowed)"
            );
            problems.extend(lines().map(|line| (line, advice.clone())));
        } else if count < allowed {
            let advice = format!(
                "{count} places leave variants of `{name}` open, and ALLOWED in \
                 xtask/tests/tidy/guesses.rs counts {allowed}: lower the number there"
            );
            problems.push((1, advice));
        }
    }
    problems
}

/// No file names a folder of the machine it was written on.
fn is_portable(file: &File<'_>) -> Vec<Problem> {
    let folders = ["root", "home", "work", "Users"].map(|folder| format!("/{folder}/"));
    let mut problems = Vec::new();
    for (number, line) in file.text.lines().enumerate() {
        for folder in &folders {
            // In `tests/work/x`, `../work/x` and `https://host/work/x` it is part of another path.
            let starts_there = line.match_indices(folder.as_str()).any(|(at, _)| {
                let before = line[..at].chars().next_back();
                !before.is_some_and(|c| c.is_alphanumeric() || "._-~}$)*".contains(c))
            });
            if starts_there {
                problems.push((number + 1, format!("`{folder}` is a folder of one machine")));
            }
        }
    }
    problems
}

/// A manifest that spares the program of a library's tests is one of a library that has none.
fn loses_no_test(file: &File<'_>) -> Vec<Problem> {
    let Some(folder) = file.path.strip_suffix("Cargo.toml") else {
        return Vec::new();
    };
    let library = file
        .text
        .split("\n[")
        .find(|section| section.starts_with("lib]"));
    if !library.is_some_and(|library| library.contains("\ntest = false")) {
        return Vec::new();
    }
    let sources = format!("{folder}src/");
    let mut sources = known_files()
        .iter()
        .filter(|path| path.starts_with(&sources));
    let has_tests = |path: &&String| {
        let text = std::fs::read_to_string(root().join(path)).unwrap_or_default();
        TESTS.iter().any(|word| text.contains(word))
    };
    let tests = sources.find(has_tests);
    let problem = |path| {
        (
            1,
            format!("`{path}` has tests, which `test = false` leaves out"),
        )
    };
    tests.map(problem).into_iter().collect()
}

/// The root holds documents, licences and settings; an output that a program left there is none of them.
fn is_in_a_folder(file: &File<'_>) -> Vec<Problem> {
    let path = file.path;
    let belongs = path.contains('/')
        || path == ".gitignore"
        || path.starts_with("LICENSE-")
        || [".md", ".toml", ".lock"]
            .iter()
            .any(|ending| path.ends_with(ending));
    match belongs {
        true => Vec::new(),
        false => vec![(
            1,
            "the root is no place for this file: move or remove it".to_owned(),
        )],
    }
}

/// The documents whose paths are looked for.
const DOCUMENTS: [&str; 3] = ["ARCHITECTURE.md", "CONTRIBUTING.md", "README.md"];

/// What a document names is there.
fn names_what_is_there(file: &File<'_>) -> Vec<Problem> {
    if !DOCUMENTS.contains(&file.path) {
        return Vec::new();
    }
    let missing = paths::missing(file.text, known_files());
    let problem = |(line, path)| (line, format!("there is no `{path}`; say where it is now"));
    missing.into_iter().map(problem).collect()
}

fn problems(path: &str, text: &str) -> Vec<String> {
    let file = File::new(path, text);
    let found = RULES.iter().flat_map(|rule| rule(&file));
    found
        .map(|(line, problem)| format!("{path}:{line}: {problem}"))
        .collect()
}

/// The repository's root.
fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("xtask lies in the workspace")
}

/// The paths of all files from the root: what git tracks or would track; without git, all files but
/// those of hidden and generated folders.
fn files() -> Vec<String> {
    let mut git = Command::new("git");
    git.current_dir(root()).args([
        "ls-files",
        "-z",
        "--cached",
        "--others",
        "--exclude-standard",
    ]);
    match git.output() {
        Ok(output) if output.status.success() => {
            let list = String::from_utf8_lossy(&output.stdout).into_owned();
            list.split('\0')
                .filter(|path| !path.is_empty())
                .map(str::to_owned)
                .collect()
        }
        _ => {
            let mut files = Vec::new();
            walk(root(), &mut files);
            files
        }
    }
}

/// The same, looked for once.
fn known_files() -> &'static [String] {
    static FILES: OnceLock<Vec<String>> = OnceLock::new();
    FILES.get_or_init(files)
}

fn walk(folder: &Path, files: &mut Vec<String>) {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    for path in entries.map(|entry| entry.path()) {
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let from_root: PathBuf = path.strip_prefix(root()).unwrap_or(&path).to_owned();
        if !path.is_dir() {
            files.push(from_root.to_string_lossy().replace('\\', "/"));
        } else if !name.starts_with('.') && name != "target" && name != "bundle" {
            walk(&path, files);
        }
    }
}

#[test]
fn the_repository_keeps_the_rules() {
    let files = files();
    assert!(
        files.iter().any(|path| path == "xtask/tests/tidy.rs"),
        "this file is not found"
    );
    let mut all = Vec::new();
    for path in &files {
        // A tracked file may have been removed, and a binary one has no lines.
        if let Ok(text) = std::fs::read_to_string(root().join(path)) {
            all.extend(problems(path, &text));
        }
    }
    assert!(
        all.is_empty(),
        "{} problems:\n{}",
        all.len(),
        all.join("\n")
    );
}

/// The bugs that are planted in a copy of the CPU backend. Whoever changes a line that one changes learns it
/// here, not from the copy.
#[test]
fn planted_bugs_have_their_places() {
    let read = |path: &str| std::fs::read_to_string(root().join(path));
    if let Err(wrong) = mutants::plant(&mutants::all(), read) {
        panic!("{wrong}");
    }
}

#[test]
fn a_planted_bug_without_a_place_is_found() {
    let all = mutants::all();
    let before = |path: &str| std::fs::read_to_string(root().join(path));
    let lost = |path: &str| before(path).map(|text| text.replace("is_signed_int", "is_signed"));
    let wrong = mutants::plant(&all, lost).expect_err("two bugs look for that");
    for name in ["WrongSign: jit-core/", "UnsignedConversion: jit-core/"] {
        assert!(wrong.contains(name), "{wrong}");
    }
    assert!(wrong.contains("has these lines 0 times"), "{wrong}");
    let twice = mutants::plant(&all, |path| before(path).map(|text| text.repeat(2)));
    let wrong = twice.expect_err("all are there twice");
    assert_eq!(wrong.matches("has these lines 2 times").count(), all.len());
}

#[test]
fn walking_finds_what_git_finds() {
    let mut walked = Vec::new();
    walk(root(), &mut walked);
    for path in ["Cargo.toml", "xtask/src/main.rs", "xtask/tests/tidy.rs"] {
        assert!(walked.iter().any(|p| p == path), "{path}");
    }
    assert!(
        !walked
            .iter()
            .any(|p| p.starts_with("target/") || p.starts_with(".git/"))
    );
}
