//! Runs every `.kir` file under `tests/filetests`.
//!
//! The first line names the kind of test. `; test text`: the file, comments aside, is exactly what
//! printing it gives, it verifies, and it survives printing without loss. `; test verify`: the
//! errors of the verifier are those that the lines announce with `; error: message`; an error
//! about the module belongs to the line that begins it, one about a signature to the function's.
//! With `UPDATE_EXPECT=1` the expectations are rewritten; look at the difference before it is
//! committed.

use std::collections::{BTreeMap, HashSet};
use std::mem::discriminant;
use std::path::{Path, PathBuf};

use kiln_jit_core::ir::{self, Module, PrintOptions};

use crate::intrinsics::find;

const MARK: &str = "; error: ";

/// The files of one folder, in order.
fn files(folder: &str) -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/filetests");
    let entries = std::fs::read_dir(root.join(folder)).expect("the folder exists");
    let mut files: Vec<PathBuf> = entries.map(|e| e.expect("an entry").path()).collect();
    files.retain(|path| path.extension().is_some_and(|e| e == "kir"));
    files.sort();
    assert!(!files.is_empty(), "no files in {folder}");
    files
}

fn read(path: &Path, kind: &str) -> String {
    let text = std::fs::read_to_string(path).expect("the file can be read");
    let first = text.lines().next();
    assert_eq!(first, Some(kind), "{}: the kind of test", path.display());
    text
}

fn blessing() -> bool {
    std::env::var_os("UPDATE_EXPECT").is_some_and(|value| value == "1")
}

/// Compares what a file says with what it should say, or makes it say so.
fn settle(path: &Path, found: &str, wanted: &str) {
    if found == wanted {
        return;
    }
    if blessing() {
        std::fs::write(path, wanted).expect("the file can be written");
        return;
    }
    let lines = found.lines().zip(wanted.lines()).enumerate();
    let difference = lines
        .filter(|(_, (found, wanted))| found != wanted)
        .map(|(i, (found, wanted))| format!("line {}:\n  {found}\nshould be\n  {wanted}", i + 1))
        .next()
        .unwrap_or_else(|| "one is longer than the other".to_owned());
    let path = path.display();
    panic!("{path}: {difference}\n(UPDATE_EXPECT=1 rewrites the file)\n\n{wanted}");
}

fn parse(path: &Path, text: &str) -> Module {
    ir::parse(text, &find).unwrap_or_else(|e| panic!("{}:{e}", path.display()))
}

#[test]
fn text() {
    let mut kinds = HashSet::new();
    for path in files("text") {
        let text = read(&path, "; test text");
        let module = parse(&path, &text);
        let comments: String = text
            .lines()
            .take_while(|line| line.starts_with(';'))
            .map(|line| format!("{line}\n"))
            .collect();
        let printed = module.to_string();
        settle(&path, &text, &(comments + &printed));
        let again = parse(&path, &printed);
        assert_eq!(again.to_string(), printed, "{}", path.display());
        assert_eq!(ir::fingerprint(&again), ir::fingerprint(&module));
        if let Err(errors) = ir::verify(&module) {
            panic!("{}: {errors}", path.display());
        }
        let nodes = module.functions.values().flat_map(|f| f.insts.values());
        kinds.extend(nodes.map(|node| discriminant(&node.data)));
    }
    assert_eq!(kinds.len(), 41, "kinds of instructions that the files show");
}

#[test]
fn text_without_locations_is_the_same_text_less_locations() {
    for path in files("text") {
        let module = parse(&path, &read(&path, "; test text"));
        let plain = ir::print(&module, PrintOptions { locations: false });
        assert!(!plain.contains('!'), "{}", path.display());
        let again = parse(&path, &plain);
        assert_eq!(again.to_string(), plain, "{}", path.display());
    }
}

#[test]
fn verify() {
    for path in files("verify") {
        let text = read(&path, "; test verify");
        let module = ir::parse_file("here", &text, &find)
            .unwrap_or_else(|e| panic!("{}:{e}", path.display()));
        let mut errors: BTreeMap<usize, Vec<String>> = BTreeMap::new();
        let found = ir::verify(&module).err().map_or(Vec::new(), |e| e.errors);
        for error in found {
            let mut place = error.location.split(':').skip(1);
            let module_line = text
                .lines()
                .position(|l| l.starts_with("module"))
                .unwrap_or(0)
                + 1;
            let line = place
                .next()
                .map_or(module_line, |n| n.parse().expect("a line"));
            errors.entry(line).or_default().push(error.message);
        }
        let mut wanted = String::new();
        for (i, line) in text.lines().enumerate() {
            wanted += line.split(MARK).next().unwrap_or(line).trim_end();
            for message in errors.remove(&(i + 1)).into_iter().flatten() {
                wanted += &format!(" {MARK}{message}");
            }
            wanted += "\n";
        }
        assert!(
            errors.is_empty(),
            "errors about no line of {}: {errors:?}",
            path.display()
        );
        settle(&path, &text, &wanted);
    }
}

/// A rule that no file breaks is a rule that nobody tests.
#[test]
fn every_kind_of_file_expects_something() {
    for path in files("verify") {
        let text = read(&path, "; test verify");
        let expects = text.contains(MARK);
        let is_clean = path.file_stem().is_some_and(|stem| stem == "clean");
        assert!(
            expects != is_clean,
            "{} expects errors: {expects}",
            path.display()
        );
    }
}
